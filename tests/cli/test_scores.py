"""Scores that people expect on the command line: per target, beside the null model, of folds and of new files."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold

import groupowl as go

N = 90


@pytest.fixture(scope="module")
def frame():
    """Features, a target that they explain, one that is noise, classes, and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((N, 6)), columns=list("abcdef"))
    frame["y"] = frame["a"] + 0.5 * frame["b"] + 0.5 * rng.standard_normal(N)
    frame["noise"] = rng.standard_normal(N)
    frame["kind"] = np.where(frame["a"] + rng.standard_normal(N) > 0, "oak", "elm")
    frame["l1"] = (frame["c"] + rng.standard_normal(N) > 0).astype(int)
    frame["l2"] = (rng.random(N) < 0.4).astype(int)
    frame["w"] = rng.integers(1, 4, N)
    return frame


@pytest.fixture
def file(frame, tmp_path):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


FEATURES = list("abcdef")


def roles(*targets, keep=()):
    others = [name for name in ("y", "noise", "kind", "l1", "l2", "w") if name not in (*targets, *keep)]
    return ("--targets", ",".join(targets), "--drop", ",".join(others))


def described(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# Folds --------------------------------------------------------------------------------------------------


def test_each_target_has_its_score_and_error(run, file, frame):
    """Those of a loop over the folds, and a warning for the target that is noise."""
    answer = described(run("cv", file, *roles("y", "noise"), "--alphas", 10, "--json"))
    X, Y = frame[FEATURES].to_numpy(), frame[["y", "noise"]].to_numpy()
    score = answer["scores"]["mean squared error (held out, 5 folds)"]
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    fits = [go.GroupOWLRegressor(answer["alpha"], tol=1e-9).fit(X[train], Y[train]) for train, _ in folds]
    errors = np.array(
        [
            mean_squared_error(Y[test], fit.predict(X[test]), multioutput="raw_values")
            for fit, (_, test) in zip(fits, folds, strict=True)
        ]
    )
    for k, name in enumerate(["y", "noise"]):
        own = score["targets"][name]
        assert own["model"] == pytest.approx(errors[:, k].mean(), rel=1e-3)  # folds are solved to 1e-4
        assert own["std_error"] == pytest.approx(errors[:, k].std(ddof=1) / np.sqrt(5), rel=1e-2)
    assert score["std_error"] == pytest.approx(errors.mean(axis=1).std(ddof=1) / np.sqrt(5), rel=1e-2)
    assert score["lower_is_better"]
    assert score["targets"]["noise"]["model"] >= score["targets"]["noise"]["null_model"]
    assert answer["notes"][0] == "For 1 target of 2 the model is no better than the null model: noise."


def test_a_model_of_noise_is_told_loudly(run, file, tmp_path):
    arguments = ("cv", file, *roles("noise"), "--alphas", 10, "--out", tmp_path / "m")
    ran = run(*arguments)
    assert "WARNING: The model does NO BETTER than the null model" in ran.out
    assert '<li class="loud">The model does NO BETTER' in (tmp_path / "m" / "report.html").read_text(encoding="utf-8")
    notes = json.loads((tmp_path / "m" / "run.json").read_text())["notes"]
    assert notes[0].startswith("The model does NO BETTER")


def test_two_classes(run, file, frame, tmp_path):
    """AUC, counts and the confusion matrix of the held-out predictions."""
    out = tmp_path / "m"
    answer = described(run("cv", file, *roles("kind"), "--alphas", 10, "--out", out, "--json"))
    X, y = frame[FEATURES].to_numpy(), frame["kind"].to_numpy()
    areas, predicted = [], np.empty(N, dtype=object)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        fit = go.GroupOWLClassifier(answer["alpha"], tol=1e-9).fit(X[train], y[train])
        areas.append(roc_auc_score(y[test], fit.decision_function(X[test])))
        predicted[test] = fit.predict(X[test])
    area = answer["scores"]["AUC (held out, 5 folds)"]
    assert (area["model"], area["null_model"]) == (pytest.approx(np.mean(areas), abs=1e-3), 0.5)
    (confusion,) = answer["confusion"]
    assert confusion["labels"] == ["elm", "oak"]
    np.testing.assert_allclose(confusion["matrix"], confusion_matrix(y, predicted.astype(str)), atol=1)
    assert np.sum(confusion["matrix"]) == N
    assert answer["class_counts"] == frame["kind"].value_counts().to_dict()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "What each class was taken for" in page
    shown = run("cv", file, *roles("kind"), "--alphas", 10).out
    assert "as elm" in shown
    assert f"elm ({answer['class_counts']['elm']})" in shown


def test_labels_that_do_not_exclude_each_other(run, file, frame):
    answer = described(run("cv", file, *roles("l1", "l2"), "--loss", "logistic", "--alphas", 10, "--json"))
    area = answer["scores"]["AUC (held out, 5 folds)"]
    assert area["model"] == pytest.approx(np.mean([area["targets"][name]["model"] for name in ("l1", "l2")]))
    assert [own["target"] for own in answer["confusion"]] == ["l1", "l2"]
    for own in answer["confusion"]:
        assert np.sum(own["matrix"], axis=1).tolist() == [N - frame[own["target"]].sum(), frame[own["target"]].sum()]


def test_repeats(run, file, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ("cv", file, *roles("y"), "--repeats", 3, "--folds", 4, "--alphas", 8, "--out", out, "--json")
    answer = described(run(*arguments))
    model = go.load(out / "model")
    assert model.score_path_.shape == (8, 12)
    assert isinstance(model.cv, RepeatedKFold)
    errors = model.score_path_.std(axis=1, ddof=1) / 2.0  # the root of four folds, whatever the repeats
    np.testing.assert_allclose(model.std_error_path_, errors)
    score = answer["scores"]["mean squared error (held out, 4 folds, 3 times)"]
    assert score["model"] == pytest.approx(-model.best_score_, rel=1e-9)
    assert score["std_error"] == pytest.approx(errors[model.best_index_], rel=1e-9)
    assert run("verify", out, file).code == 0
    grouped = roles("y", keep=("w",))
    message = run("cv", file, *grouped, "--groups", "w", "--folds", 2, "--repeats", 3).message
    assert "--repeats 3 makes other folds each time" in message


def test_scoring_chooses_alpha_and_is_shown(run, file, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ("--scoring", "neg_mean_absolute_error", "--alphas", 8, "--out", out, "--json")
    answer = described(run("cv", file, *roles("y"), *arguments))
    model, y = go.load(out / "model"), frame["y"].to_numpy()
    name, score = next(iter(answer["scores"].items()))
    assert name == "mean absolute error (held out, 5 folds)"
    assert (score["model"], score["lower_is_better"]) == (pytest.approx(-model.best_score_), True)
    folds = KFold(5, shuffle=True, random_state=0).split(y)
    nulls = [mean_absolute_error(y[test], np.full(len(test), y[train].mean())) for train, test in folds]
    assert score["null_model"] == pytest.approx(np.mean(nulls))
    held = described(
        run("fit", file, *roles("y"), "--scoring", "neg_mean_absolute_error", "--test-size", 0.3, "--json")
    )
    assert "mean absolute error (held out, 27 samples)" in held["scores"]
    message = run("cv", file, *roles("y"), "--scoring", "mean_absolute").message
    assert "--scoring must be the name of a score of scikit-learn, for example" in message
    assert "neg_mean_absolute_error" in message


# Options of the model -----------------------------------------------------------------------------------


def test_options_reach_the_estimator(run, file, frame, tmp_path):
    def fitted(command, *more):
        ran = run(command, file, *more, "--out", tmp_path / "m", "--force", "--quiet")
        assert ran.code == 0, ran.err
        return go.load(tmp_path / "m" / "model")

    for command, more in (("fit", ()), ("path", ("--alphas", 5)), ("cv", ("--alphas", 5))):
        model = fitted(command, *roles("kind"), *more, "--class-weight", "oak=3", "--relaxed", "--no-intercept")
        assert model.class_weight == {"oak": 3.0}
        assert model.relaxed
        assert not model.fit_intercept
        assert model.intercept_ == 0.0
    assert fitted("fit", *roles("kind"), "--class-weight", "balanced").class_weight == "balanced"
    labels = ("--loss", "logistic", "--class-weight", "l1=2", "--class-weight", "l2=0.5")
    assert fitted("fit", *roles("l1", "l2"), *labels).class_weight == {"l1": 2.0, "l2": 0.5}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("y", "--class-weight", "balanced"), "--class-weight is for classes"),
        (("kind", "--class-weight", "ash=2"), "give CLASS=NUMBER for classes of the target, 'elm', 'oak', or balanced"),
        (("kind", "--class-weight", "oak=-2"), "--class-weight oak=-2: the weight must be a positive number"),
        (("y", "--relaxed", "--positive", "a"), "--relaxed fits the selected features again"),
    ],
)
def test_options_that_are_refused(run, file, given, message):
    target, *more = given
    assert message in run("fit", file, *roles(target), *more).message


# Remedies that can be typed -----------------------------------------------------------------------------


def test_an_offset_of_three_classes(run, frame, tmp_path):
    three = frame.assign(kind=np.where(frame["b"] > 1.0, "ash", frame["kind"]))
    three.to_csv(tmp_path / "t.csv", index=False)
    message = run("fit", tmp_path / "t.csv", *roles("kind", keep=("y",)), "--offset", "y").message
    assert "--offset adds the same number to all 3 classes" in message
    assert "Leave it out" in message


def test_a_scale_of_groups(run, frame, tmp_path):
    """Targets that are missing: the remedy is an option."""
    frame.assign(noise=frame["noise"].where(frame["a"] > 0)).to_csv(tmp_path / "t.csv", index=False)
    options = ("--feature-groups", "g=a,b", "--group-scale", "orthonormal")
    message = run("fit", tmp_path / "t.csv", *roles("y", "noise"), *options).message
    assert "--group-scale orthonormal needs the same samples" in message
    assert "Use --group-scale frobenius" in message
    assert "'" not in message.split("orthonormal", 1)[1]


def test_huber_is_not_told_to_use_criteria(run, file):
    message = run("cv", file, *roles("y"), "--loss", "huber", "--folds", 200).message
    assert "Use fewer folds." in message
    assert "bic" not in message
    assert "or --selection bic" in run("cv", file, *roles("y"), "--folds", 200).message
    message = run("path", file, *roles("y"), "--loss", "huber").message
    assert "--selection ebic needs a likelihood, which --loss huber is not. Use the command cv" in message


def test_a_sparse_file_with_foreign_columns_is_refused(run, file, frame, tmp_path):
    """Its columns have numbers for names: none of them is a feature, and no prediction follows."""
    out = tmp_path / "m"
    assert run("fit", file, *roles("y"), "--out", out, "-q").code == 0
    dump_svmlight_file(frame[FEATURES].to_numpy(), np.zeros(N), str(tmp_path / "t.svm"), zero_based=False)
    message = run("predict", out, tmp_path / "t.svm").message
    assert "lacks 6 columns of the model's 6 features: 'a', 'b'" in message


# Paths --------------------------------------------------------------------------------------------------


def test_a_path_keeps_all_points_and_says_who_chose(run, file, frame, tmp_path):
    out = tmp_path / "m"
    answer = described(run("path", file, *roles("y"), "--alphas", 20, "--selection", "bic", "--out", out, "--json"))
    table, model = pd.read_csv(out / "alphas.csv"), go.load(out / "model")
    assert [own["criterion"] for own in answer["criteria"]] == ["aic", "bic", "ebic"]
    for own in answer["criteria"]:
        best = int(table[own["criterion"]].argmin())
        assert (own["alpha"], own["n_selected"]) == (pytest.approx(model.alphas_[best]), model.path_.n_selected[best])
        assert own["chosen"] == (own["criterion"] == "bic")
    np.testing.assert_allclose(table["bic"], model.criterion_path_)
    again = go.GroupOWLRegressorCV(alphas=20, selection="aic").fit(frame[FEATURES], frame[["y"]])
    np.testing.assert_allclose(table["aic"], again.criterion_path_, rtol=1e-6)
    assert "--selection aic" in run("path", file, *roles("y"), "--alphas", 20).out


def test_a_criterion_that_chooses_nothing_says_what_to_type(run, file, frame, tmp_path):
    out = tmp_path / "m"
    ran = run("path", file, *roles("noise"), "--alphas", 20, "--out", out)
    assert go.load(out / "model").path_.n_selected.max() > 0
    said = " ".join(ran.out.split())
    assert "ebic chooses alpha" in said
    assert "selects NO FEATURE" in said
    assert "All " in said
    typed = said.split("groupowl predict ")[1].split(" predicts")[0].split()
    assert typed[1:3] == ["FILE", "--alpha"]
    predicted = run("predict", out, file, "--alpha", typed[3])
    assert predicted.code == 0
    assert "was not fitted" not in predicted.err  # rounded, it is still that point
    assert pd.read_csv(io.StringIO(predicted.out))["predicted_noise"].nunique() > 1


def test_predictions_at_another_alpha(run, file, frame, tmp_path):
    out = tmp_path / "m"
    assert run("cv", file, *roles("kind"), "--alphas", 10, "--out", out, "-q").code == 0
    model = go.load(out / "model")
    i = 1 if model.best_index_ > 2 else 5
    for alpha in (model.alphas_[i], 0.5 * (model.alphas_[i] + model.alphas_[i + 1])):
        answer = described(run("predict", out, file, "--alpha", repr(float(alpha)), "--json"))
        expected = model.path_.predict_proba(frame[FEATURES], alpha)
        np.testing.assert_allclose(answer["predictions"]["p(oak)"], expected[:, 1], rtol=1e-9)
        assert answer["predictions"]["predicted_kind"] == model.path_.predict(frame[FEATURES], alpha).tolist()
        assert answer["alpha"] == pytest.approx(alpha)
    assert "is outside of the path" in run("predict", out, file, "--alpha", 1e9).message
    assert run("fit", file, *roles("kind"), "--out", tmp_path / "one", "-q").code == 0
    message = run("predict", tmp_path / "one", file, "--alpha", 0.1).message
    assert "holds one fit, at alpha" in message


@pytest.mark.parametrize("target", ["y", "kind"])
def test_another_alpha_reads_the_features_that_it_needs(run, file, frame, tmp_path, target):
    """A smaller alpha has features that the chosen one has not, and they are not taken for zeros."""
    out = tmp_path / "m"
    options = (*roles(target), "--alphas", 10, "--selection", "1se", "--eps", 0.01)
    assert run("cv", file, *options, "--out", out, "-q").code == 0
    model = go.load(out / "model")
    alphas = model.alphas_[model.best_index_ + 1 :]
    between = [0.5 * (alphas[-2] + alphas[-1]), alphas[-1]]
    for alpha in (alphas[0], *between):
        answer = described(run("predict", out, file, "--alpha", repr(float(alpha)), "--json"))
        expected = model.path_.predict(frame[FEATURES], alpha)
        predicted = np.array(answer["predictions"][f"predicted_{target}"])
        if target == "kind":
            assert list(predicted) == list(expected)
        else:
            np.testing.assert_allclose(predicted, expected, rtol=1e-12)
    added = np.flatnonzero(model.path_.coef_at(alphas[-1]).any(axis=0) & ~model.get_support())
    assert len(added) > 0
    less = write_without(frame, tmp_path, FEATURES[added[0]])
    assert run("predict", out, less, "-q").code == 0
    lacking = run("predict", out, less, "--alpha", repr(float(alphas[-1])))
    assert (lacking.code, f"{FEATURES[added[0]]!r}" in lacking.message) == (1, True)


# New files ----------------------------------------------------------------------------------------------


def test_targets_in_a_new_file_are_scored(run, file, frame, tmp_path):
    """Beside the null model of the fit; gaps do not count, and predictions have columns of their own."""
    out, new = tmp_path / "m", tmp_path / "new.csv"
    fitted = (*roles("y", "noise", keep=("w",)), "--sample-weight", "w")
    assert run("fit", file, *fitted, "--out", out, "-q").code == 0
    other = frame.sample(40, random_state=1).reset_index(drop=True)
    other.loc[:9, "noise"] = np.nan
    other.to_csv(new, index=False)
    ran = run("predict", out, new, "--out", tmp_path / "p.csv")
    assert "mean squared error (40 samples)" in ran.out
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns) == ["row", "predicted_y", "predicted_noise"]
    answer = described(run("predict", out, new, "--json"))
    score = answer["scores"]["mean squared error (40 samples)"]
    for name in ("y", "noise"):
        known = other[name].notna()
        weight = {"sample_weight": other["w"][known]}
        own, mean = score["targets"][name], np.average(frame[name], weights=frame["w"])
        expected = mean_squared_error(other[name][known], table[f"predicted_{name}"][known], **weight)
        assert own["model"] == pytest.approx(expected, rel=1e-9)
        null = mean_squared_error(other[name][known], np.full(known.sum(), mean), **weight)
        assert own["null_model"] == pytest.approx(null, rel=1e-9)
    without = run("predict", out, write_without(other, tmp_path, "noise"))
    assert "Targets are not scored: the file lacks 'noise'." in without.err
    assert run("predict", out, write_without(other, tmp_path, "y", "noise")).err == ""


@pytest.mark.parametrize("target", ["y", "kind"])
def test_samples_that_are_left_out_are_not_scored(run, file, frame, tmp_path, target):
    """Targets, weights and offsets are those of the samples that are predicted."""
    out, new = tmp_path / "m", tmp_path / "new.csv"
    fitted = (*roles(target, keep=("w", "noise")), "--sample-weight", "w", "--offset", "noise", "--alpha", 0.05)
    assert run("fit", file, *fitted, "--out", out, "-q").code == 0
    other = frame.sample(40, random_state=1).reset_index(drop=True)
    other.loc[[0, 4, 17], "a"] = np.nan
    other.loc[[4, 6, 30], target] = np.nan
    other.to_csv(new, index=False)
    answer = described(run("predict", out, new, "--missing", "drop", "--json"))
    predicted = pd.DataFrame(answer["predictions"]).set_index("row")
    assert predicted.index.tolist() == [i + 1 for i in range(40) if i not in (0, 4, 17)]
    known = other.drop(index=[0, 4, 17, 6, 30])
    rows, weight = predicted.loc[known.index + 1], {"sample_weight": known["w"]}
    if target == "y":
        name, expected = "mean squared error", mean_squared_error(known["y"], rows["predicted_y"], **weight)
    else:
        chances = rows[["p(elm)", "p(oak)"]].to_numpy()
        name, expected = "log-loss", log_loss(known["kind"], chances, labels=["elm", "oak"], **weight)
    assert answer["scores"][f"{name} (35 samples)"]["model"] == pytest.approx(expected, rel=1e-9)
    assert "Left out: 3 samples that lack features of the model (row 1, 5, 18)." in answer["notes"]


def write_without(frame, folder, *names):
    frame.drop(columns=list(names)).to_csv(folder / "less.csv", index=False)
    return folder / "less.csv"


def test_classes_in_a_new_file_are_scored(run, file, frame, tmp_path):
    out, new = tmp_path / "m", tmp_path / "new.csv"
    assert run("fit", file, *roles("kind"), "--out", out, "-q").code == 0
    other = frame.sample(40, random_state=1)
    other.to_csv(new, index=False)
    answer = described(run("predict", out, new, "--json"))
    chances = np.array([answer["predictions"][f"p({kind})"] for kind in ("elm", "oak")]).T
    shares = frame["kind"].value_counts(normalize=True)[["elm", "oak"]].to_numpy()
    found = answer["scores"]["log-loss (40 samples)"]
    assert found["model"] == pytest.approx(log_loss(other["kind"], chances, labels=["elm", "oak"]), rel=1e-9)
    assert found["null_model"] == pytest.approx(log_loss(other["kind"], [shares] * 40, labels=["elm", "oak"]), rel=1e-9)
    hits = accuracy_score(other["kind"], answer["predictions"]["predicted_kind"])
    assert answer["scores"]["accuracy (40 samples)"]["model"] == pytest.approx(hits)
    assert answer["scores"]["AUC (40 samples)"]["model"] == pytest.approx(roc_auc_score(other["kind"], chances[:, 1]))
    other.assign(kind=[1, 2] * 20).to_csv(new, index=False)  # which are other labels
    answer = described(run("predict", out, new, "--json"))
    assert answer["scores"] == {}
    assert any("labels of another kind" in note for note in answer["notes"])


def test_the_files_of_the_fit_are_recognized(run, frame, tmp_path):
    for k, rows in enumerate(np.array_split(np.arange(N), 2)):
        frame.iloc[rows].to_csv(tmp_path / f"part{k}.csv", index=False)
    parts = [tmp_path / "part0.csv", tmp_path / "part1.csv"]
    assert run("fit", *parts, *roles("y"), "--out", tmp_path / "m", "-q").code == 0
    assert "This is the file of the fit" in run("predict", tmp_path / "m", *parts).err
    ran = run("predict", tmp_path / "m", parts[1], "--json")
    assert "mean squared error (45 samples)" in described(ran)["scores"]
    assert described(ran)["notes"] == []


def test_the_file_of_the_fit_is_recognized(run, file, tmp_path):
    assert run("fit", file, *roles("y"), "--out", tmp_path / "m", "-q").code == 0
    assert "This is the file of the fit" in run("predict", tmp_path / "m", file).err


def test_a_path_says_that_the_extended_criterion_has_kept_all_features(run, tmp_path):
    """Its extra term is that of one set where all features are in, so that it is laxer than with one feature less."""
    rng = np.random.default_rng(15)
    X = rng.standard_normal((40, 8))
    y = X @ np.r_[np.ones(6), 0.3, 0.25] + 0.8 * rng.standard_normal(40)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)]).assign(y=y)
    frame.to_csv(tmp_path / "data.csv", index=False)
    answer = json.loads(run("path", tmp_path / "data.csv", "--targets", "y", "--json").out)
    counts = {own["criterion"]: own["n_selected"] for own in answer["criteria"]}
    told = [note for note in answer["notes"] if note.startswith("ebic keeps all 8 features")]
    assert counts["ebic"] == 8 > counts["bic"]
    assert f"bic {counts['bic']}:" in told[0]
