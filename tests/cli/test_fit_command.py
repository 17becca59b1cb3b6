"""The commands fit, path and cv: what they write is what the library gives, and what they say is true."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, mean_squared_error, r2_score
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, StratifiedKFold, train_test_split

import groupowl as go
from cli_support import columns_of, make_data, write_csv
from groupowl import kernel
from groupowl.cli import commands as options
from groupowl.cli import model_commands
from groupowl.designs import DenseDesign, SufficientStatistics
from groupowl.model_selection import CRITERIA, FOLD_RULES
from groupowl.problem import Problem
from groupowl.report.page import number
from groupowl.solvers import Run
from groupowl.tables import FORMATS, TASKS

TARGETS = ("--targets", "y1,y2", "--drop", "id,house,w")
FILES = {"model", "run.json", "coefficients.csv", "report.html", "alphas.csv"}


@pytest.fixture(scope="module")
def frame(train):
    return pd.read_csv(train)


@pytest.fixture(scope="module")
def data():
    return make_data()


def features(frame):
    return frame[[name for name in frame.columns if name.startswith("gene")]]


def described(ran):
    """The JSON object that a command has printed, alone on stdout."""
    assert ran.code == 0, ran.err
    (line,) = ran.out.splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A file with a text target, and what it holds."""
    data = go.datasets.make_correlated_groups(
        60, 8, 3, n_informative=4, task="classification", signal_to_noise=4.0, random_state=2
    )
    columns = columns_of(data)
    columns = {name: column for name, column in columns.items() if name.startswith("gene")}
    columns["kind"] = [("elm", "fir", "oak")[k] for k in data.labels]
    return write_csv(tmp_path_factory.mktemp("classes") / "trees.csv", columns)


# What is written ----------------------------------------------------------------------------------------


def test_fit_is_the_estimators_fit(run, train, frame, tmp_path):
    out = tmp_path / "new" / "model"
    answer = described(run("fit", train, *TARGETS, "--alpha", "0.3", "--weights", "bh", "--out", out, "--json"))
    assert {path.name for path in out.iterdir()} == FILES
    assert {str(out / name) for name in FILES} == set(answer["written"])
    saved = go.load(out / "model")
    once = np.ones(len(frame))  # with weights a fit goes the way of the command, which shows progress: all digits agree
    expected = go.GroupOWLRegressor(0.3, weights="bh").fit(features(frame), frame[["y1", "y2"]], once)
    np.testing.assert_array_equal(saved.coef_, expected.coef_)
    assert saved.get_params() == go.GroupOWLRegressor(0.3, weights="bh", random_state=0).get_params()
    assert answer["alpha"] == 0.3
    assert answer["objective"] == expected.solve_result_.primal
    assert {item["feature"] for item in answer["selected"]} == set(expected.selected_features_)
    assert (answer["n_samples"], answer["n_features"], answer["targets"]) == (40, 12, ["y1", "y2"])
    assert answer["converged"] is True


def test_features_are_listed_as_the_penalty_ranks_them(run, frame, tmp_path):
    genes = features(frame)
    file = tmp_path / "units.csv"
    frame.assign(**genes * np.geomspace(1.0, 1e4, genes.shape[1])).to_csv(file, index=False)
    options = ("--standardize", "--unpenalized", "gene1", "--json")
    found = described(run("fit", file, *TARGETS, *options))["selected"]
    *clusters, last = [item["cluster"] for item in found]
    assert clusters == sorted(clusters)
    assert (clusters[0], last, found[-1]["feature"]) == (1, 0, "gene1")
    assert (np.diff([item["norm"] for item in found[:-1]]) > 0).any()


def test_all_options_reach_the_estimator(run, train, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ["--targets", "y1", "--drop", "id,house,y2", "--sample-weight", "w", "--unpenalized", "gene1,gene3"]
    arguments += ["--standardize", "--tol", "1e-9", "--max-iter", 500, "--seed", 7, "--weights", "linear"]
    described(run("fit", train, *arguments, "--out", out, "--json"))
    saved = go.load(out / "model")
    params = {"weights": "linear", "standardize": True, "unpenalized": ["gene1", "gene3"], "tol": 1e-9}
    params |= {"max_iter": 500, "random_state": 7, "verbose": 0, "alpha": "auto"}
    assert params.items() <= saved.get_params().items()
    expected = go.GroupOWLRegressor(**params).fit(features(frame), frame[["y1"]], sample_weight=frame["w"])
    np.testing.assert_array_equal(saved.coef_, expected.coef_)


def test_cv_is_the_estimators_cv(run, train, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ["--selection", "1se", "--folds", 4, "--alphas", 15, "--eps", 0.05, "--seed", 3]
    answer = described(run("cv", train, *TARGETS, *arguments, "--out", out, "--json"))
    folds = KFold(4, shuffle=True, random_state=3)
    settings = {"alphas": 15, "eps": 0.05, "selection": "1se", "random_state": 3}
    expected = go.GroupOWLRegressorCV(cv=folds, **settings).fit(features(frame), frame[["y1", "y2"]])
    saved = go.load(out / "model")
    assert saved.alpha_ == answer["alpha"] == expected.alpha_
    np.testing.assert_array_equal(saved.score_path_, expected.score_path_)
    np.testing.assert_array_equal(saved.coef_, expected.coef_)


def test_path_takes_the_alpha_of_the_criterion(run, train, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ("--alphas", "1,0.5,0.1", "--selection", "bic", "--out", out)
    answer = described(run("path", train, *TARGETS, *arguments, "--json"))
    expected = go.GroupOWLRegressorCV(alphas=[1, 0.5, 0.1], selection="bic").fit(features(frame), frame[["y1", "y2"]])
    assert answer["alpha"] == expected.alpha_
    with (out / "alphas.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["alpha"]) for row in rows] == [1, 0.5, 0.1]
    assert [int(row["selected"]) for row in rows] == expected.path_.n_selected.tolist()
    np.testing.assert_allclose([float(row["criterion"]) for row in rows], expected.criterion_path_)


def test_groups_stay_together(run, train, frame, tmp_path):
    out = tmp_path / "m"
    arguments = ["--targets", "y1,y2", "--drop", "id,w", "--groups", "house", "--alphas", 10, "--folds", 5]
    described(run("cv", train, *arguments, "--out", out, "--json"))
    expected = go.GroupOWLRegressorCV(alphas=10, cv=GroupKFold(5))
    expected.fit(features(frame), frame[["y1", "y2"]], groups=frame["house"])
    np.testing.assert_array_equal(go.load(out / "model").score_path_, expected.score_path_)


def test_the_best_of_several_sequences(run, train, tmp_path):
    out = tmp_path / "m"
    answer = described(run("cv", train, *TARGETS, "--weights", "oscar,constant", "--alphas", 8, "--out", out, "--json"))
    saved = go.load(out / "model")
    assert saved.weights == ["oscar", "constant"]
    best = max(saved.search_results_, key=lambda found: np.nanmax(found["mean_score_path"]))
    name = ["oscar", "constant"][[found is best for found in saved.search_results_].index(True)]
    assert answer["weights"] == f"{name} (chosen from oscar, constant)"


def test_the_scores_of_all_sequences_are_shown(run, train, tmp_path):
    out = tmp_path / "m"
    text = run("cv", train, *TARGETS, "--weights", "constant,levels", "--alphas", 4, "--out", out).out
    saved, page = go.load(out / "model"), (out / "report.html").read_text(encoding="utf-8")
    shown = " ".join(text.split())
    assert "(chosen from constant, levels)" in shown
    assert len(saved.search_results_) == 10
    candidates = json.loads((out / "run.json").read_text())["candidates"]
    assert [own["chosen"] for own in candidates].count(True) == 1
    for own, report in zip(candidates, saved.search_results_, strict=True):
        best = report["best_index"]
        found = (own["alpha"], own["score"], own["std_error"], own["chosen"])
        chosen = report["best_score"] == saved.best_score_
        assert found == (report["alphas"][best], -report["best_score"], report["std_error_path"][best], chosen)
        assert number(-report["best_score"]) in shown
        assert number(-report["best_score"]) in page


def test_jobs_change_nothing(run, train):
    arguments = ("cv", train, *TARGETS, "--alphas", 6, "--json")
    one, two = (described(run(*arguments, "--jobs", jobs)) for jobs in (1, 2))
    for answer in (one, two):
        del answer["seconds"]
    assert one == two


def test_classification_of_a_text_target(run, classes, tmp_path):
    out = tmp_path / "m"
    answer = described(run("cv", classes, "--targets", "kind", "--alphas", 6, "--eps", 0.05, "--out", out, "--json"))
    assert answer["task"] == "classification"
    assert answer["classes"] == ["elm", "fir", "oak"]
    saved = go.load(out / "model")
    assert isinstance(saved, go.GroupOWLClassifierCV)
    header = (out / "coefficients.csv").read_text().splitlines()[0]
    assert header == "feature,cluster,norm,state,coef_elm,coef_fir,coef_oak"


def test_coefficients_make_the_predictions(run, train, frame, tmp_path):
    """The table is all that is needed to predict by hand."""
    out = tmp_path / "m"
    described(run("fit", train, *TARGETS, "--out", out, "--json"))
    table = pd.read_csv(out / "coefficients.csv").set_index("feature")
    coef = table[["coef_y1", "coef_y2"]]
    by_hand = coef.loc["(intercept)"].to_numpy() + features(frame) @ coef.loc[features(frame).columns].to_numpy()
    np.testing.assert_allclose(by_hand, go.load(out / "model").predict(features(frame)), rtol=1e-12)
    norms = table["norm"].to_numpy()[1:]
    assert np.all(np.diff(norms) <= 0)
    assert table["state"].iloc[0] == "intercept"


def test_sparse_data_keep_their_names(run, tmp_path, data):
    X = np.where(np.abs(data.X) > 0.7, data.X, 0.0)
    path = tmp_path / "t.libsvm"
    dump_svmlight_file(X, data.Y[:, 0], str(path), zero_based=False)
    out = tmp_path / "m"
    answer = described(run("fit", path, "--unpenalized", "3", "--out", out, "--json"))
    saved = go.load(out / "model")
    assert saved.unpenalized == [2]
    assert not hasattr(saved, "feature_names_in_")
    assert {item["feature"] for item in answer["selected"]} == {str(j + 1) for j in saved.selected_features_}
    table = pd.read_csv(out / "coefficients.csv", dtype={"feature": str}).set_index("feature")
    np.testing.assert_allclose(table["coef"].loc[[str(j + 1) for j in range(12)]], saved.coef_[0], rtol=1e-15)
    assert bool(saved.verify(sp.csr_array(X), data.Y[:, :1]))


def test_the_record_repeats_the_run(run, train, tmp_path):
    """The command line that is stored gives the same folder again."""
    out = tmp_path / "m"
    described(run("cv", train, *TARGETS, "--alphas", 5, "--out", out, "--json"))
    record = json.loads((out / "run.json").read_text())
    program, *arguments = record["command"]
    assert program == "groupowl"
    described(run(*arguments, "--force"))
    again = json.loads((out / "run.json").read_text())
    assert again["scores"] == record["scores"]
    assert again["facts"]["Objective"] == record["facts"]["Objective"]


def test_the_report_gets_everything(run, train, frame, tmp_path, reports):
    out = tmp_path / "m"
    run("cv", train, *TARGETS, "--alphas", 5, "--out", out)
    (contents,) = reports
    assert contents.title == f"Group OWL regression: {train}"
    assert contents.command[:3] == ("groupowl", "cv", str(train))
    assert list(contents.feature_names) == list(features(frame).columns)
    assert list(contents.target_names) == ["y1", "y2"]
    assert contents.path is contents.estimator.path_
    assert {"File", "Samples", "Features", "Weights", "Alpha", "Versions", "Seconds"} <= set(contents.facts)
    assert all(isinstance(value, str) for value in contents.facts.values())
    assert all("held out" in name for name in contents.scores)
    assert any("slightly optimistic" in note for note in contents.notes)


def test_the_report_of_a_single_fit_has_a_path_where_it_is_cheap(run, train, tmp_path, reports, monkeypatch):
    run("fit", train, *TARGETS, "--out", tmp_path / "a")
    path, alpha = reports[0].path, reports[0].estimator.alpha_
    assert path.n_selected[0] == 0
    assert alpha in path.alphas
    chosen = path.points[path.alphas.tolist().index(alpha)]
    np.testing.assert_allclose(chosen.coef(12).T, reports[0].estimator.coef_, atol=1e-4)
    monkeypatch.setattr("groupowl.cli.model_commands._PATH_ENTRIES", 100)
    run("fit", train, *TARGETS, "--out", tmp_path / "b")
    assert reports[1].path is None
    monkeypatch.setattr("groupowl.cli.model_commands._PATH_ENTRIES", 10**6)
    monkeypatch.setattr("groupowl.cli.model_commands._PATH_SECONDS", -1.0)
    run("fit", train, *TARGETS, "--out", tmp_path / "c")
    assert reports[2].path is None


def counted_calls(monkeypatch, owner, name):
    """The arguments of each call, in a list that grows."""
    calls, original = [], getattr(owner, name)

    def counted(*args, **kwargs):
        calls.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.mark.parametrize("is_classification", [False, True])
def test_a_fit_walks_each_way_once(run, train, classes, tmp_path, reports, monkeypatch, is_classification):
    """One read, one build of statistics, a design for the fit and one for the sums that ``verify`` knows the data by.

    The fit is a point of the report's path, not solved again.
    """
    reads = counted_calls(monkeypatch, model_commands, "load_table")
    designs = counted_calls(monkeypatch, DenseDesign, "__init__")
    makers = ("from_arrays", "from_blocks")
    statistics = [counted_calls(monkeypatch, SufficientStatistics, maker) for maker in makers]
    factorizations = counted_calls(monkeypatch, Problem, "compressed")
    solves = counted_calls(monkeypatch, Run, "solve")
    proposals = counted_calls(monkeypatch, kernel, "solve")  # of the fit; the path is watched for its time
    data = (classes, "--targets", "kind") if is_classification else (train, *TARGETS)
    assert run("fit", *data, "--out", tmp_path / "m").code == 0
    (contents,) = reports
    assert len(reads) == 1
    assert len([self for self, *_ in designs if type(self) is DenseDesign]) == 2
    assert sum(map(len, statistics)) == len(factorizations) == (0 if is_classification else 1)
    assert len(solves) + len(proposals) == len(contents.path) == 31
    fitted = contents.path[contents.path.alphas.tolist().index(contents.estimator.alpha_)]
    assert (fitted.primal, fitted.gap) == (contents.estimator.solve_result_.primal, contents.estimator.dual_gap_)
    assert not [name for name in vars(contents.estimator) if "solves" in name]  # they would keep the data in memory


@pytest.mark.parametrize("more", [[], ["--standardize", "--unpenalized", "gene1", "--sample-weight", "w"]])
@pytest.mark.parametrize("alpha", ["auto", "1000", "0.001"])
def test_the_path_through_a_fit_is_the_path(run, train, frame, tmp_path, reports, alpha, more):
    """Larger alphas start from nothing, smaller ones from the fit: every point is what the path function finds."""
    data = ["--targets", "y1,y2", "--drop", "id,house" if more else "id,house,w", *more]
    assert run("fit", train, *data, "--alpha", alpha, "--tol", "1e-12", "--out", tmp_path / "m").code == 0
    path = reports[0].path
    assert np.all(np.diff(path.alphas) < 0)
    assert set(path.statuses) == {"converged"}
    settings = {"standardize": True, "unpenalized": ["gene1"], "sample_weight": frame["w"]} if more else {}
    expected = go.group_owl_path(features(frame), frame[["y1", "y2"]], alphas=path.alphas, tol=1e-12, **settings)
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=1e-3)
    np.testing.assert_allclose(path.deviance_ratio, expected.deviance_ratio, atol=1e-6)
    assert path.alpha_max == expected.alpha_max
    assert path.feature_names.tolist() == expected.feature_names.tolist()
    assert path.target_names.tolist() == expected.target_names.tolist()


def test_a_report_that_fails_does_not_cost_the_model(run, train, tmp_path, monkeypatch):
    def fail(path, contents):
        path.write_text("half a page")
        raise ZeroDivisionError("no picture")

    monkeypatch.setattr("groupowl.report.write_report", fail)
    ran = run("fit", train, *TARGETS, "--out", tmp_path / "m", "--quiet")
    assert ran.code == 1
    assert "the report could not be written (ZeroDivisionError: no picture)" in ran.err
    assert {path.name for path in (tmp_path / "m").iterdir()} == FILES - {"report.html"}


# Scores -------------------------------------------------------------------------------------------------


def pair_of(score):
    """The score of the model, and that of the null model."""
    return score["model"], score["null_model"]


def folded(estimator, X, y, folds):
    """Scores of the estimator's alpha in folds of scikit-learn, by hand."""
    return [(train, test, estimator().fit(X[train], y[train])) for train, test in folds]


def test_scores_of_folds_beside_the_null_model(run, train, frame):
    """The same numbers as a loop over the folds gives, for the model and for the mean."""
    answer = described(run("cv", train, *TARGETS, "--alphas", 6, "--tol", "1e-8", "--json"))
    X, Y = features(frame).to_numpy(), frame[["y1", "y2"]].to_numpy()
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    fits = folded(lambda: go.GroupOWLRegressor(answer["alpha"], tol=1e-8), X, Y, folds)
    model = np.average([mean_squared_error(Y[test], fit.predict(X[test])) for _, test, fit in fits], weights=[8] * 5)
    null = np.mean([np.mean((Y[test] - Y[train].mean(axis=0)) ** 2) for train, test in folds])
    found = answer["scores"]["mean squared error (held out, 5 folds)"]
    assert found["model"] == pytest.approx(model, rel=1e-3)  # folds are solved to 1e-4
    assert found["null_model"] == pytest.approx(null, rel=1e-12)
    explained = answer["scores"]["R2 (held out, 5 folds)"]
    assert explained["null_model"] == pytest.approx(1 - null / Y.var(axis=0).mean(), rel=1e-12)
    assert explained["model"] > 0.5 > 0 > explained["null_model"]


def test_scores_of_folds_of_classes(run, classes):
    answer = described(run("cv", classes, "--targets", "kind", "--alphas", 6, "--eps", 0.05, "--json"))
    frame = pd.read_csv(classes)
    labels = frame["kind"].to_numpy()
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(labels, labels))
    shares = [[np.mean(labels[train] == kind) for kind in ("elm", "fir", "oak")] for train, _ in folds]
    losses = [
        log_loss(labels[test], [share] * len(test), labels=["elm", "fir", "oak"])
        for (_, test), share in zip(folds, shares, strict=True)
    ]
    found = answer["scores"]["log-loss (held out, 5 folds)"]
    assert found["null_model"] == pytest.approx(np.average(losses, weights=[len(test) for _, test in folds]), rel=1e-12)
    assert found["model"] < found["null_model"]
    X = frame.drop(columns="kind").to_numpy()
    fits = folded(lambda: go.GroupOWLClassifier(answer["alpha"]), X, labels, folds)
    hits = answer["scores"]["accuracy (held out, 5 folds)"]
    assert hits["model"] == pytest.approx(
        sum(np.sum(fit.predict(X[test]) == labels[test]) for _, test, fit in fits) / 60
    )
    commonest = [max(sorted(set(labels)), key=list(labels[train]).count) for train, _ in folds]
    expected = sum(np.sum(labels[test] == kind) for (_, test), kind in zip(folds, commonest, strict=True)) / 60
    assert hits["null_model"] == pytest.approx(expected)
    assert hits["model"] > hits["null_model"]


def test_accuracy_of_folds_that_train_on_one_class(run, tmp_path):
    """Groups may hold all of a class: whoever has seen one class only guesses that, and gets all others wrong."""
    x = np.random.default_rng(0).standard_normal(20).tolist()
    columns = {"house": ["a"] * 10 + ["b"] * 10, "x": x, "kind": ["elm"] * 10 + ["fir"] * 10}
    arguments = ("--targets", "kind", "--groups", "house", "--folds", 2, "--alphas", 3, "--json")
    scores = described(run("cv", write_csv(tmp_path / "t.csv", columns), *arguments))["scores"]
    assert pair_of(scores["accuracy (held out, 2 folds)"]) == (0.0, 0.0)


def test_accuracy_of_folds_with_all_options(run, classes):
    """Weighted, standardized, with an unpenalized column, of two sequences, and whatever the number of jobs."""
    arguments = ["--targets", "kind", "--sample-weight", "w", "--standardize", "--unpenalized", "gene1"]
    arguments += ["--weights", "bh,constant", "--alphas", 6, "--json"]
    frame = pd.read_csv(classes).assign(w=[1, 2] * 30)
    path = classes.with_name("weighted.csv")
    frame.to_csv(path, index=False)
    scores = [described(run("cv", path, *arguments, "--jobs", jobs))["scores"] for jobs in (1, 2)]
    assert scores[0] == scores[1]
    hits = scores[0]["accuracy (held out, 5 folds)"]
    assert hits["model"] * 90 == pytest.approx(round(hits["model"] * 90))  # whole weights of 90 in all
    assert hits["model"] > hits["null_model"]


def test_scores_of_folds_count_weights(run, tmp_path):
    """A sample of weight 0 is no sample, in the scores of both models."""
    columns = columns_of(make_data())
    del columns["id"], columns["house"]
    extra = {name: [*column, 99.0] for name, column in columns.items()}
    extra["w"] = [*columns["w"], 0]
    arguments = ("--targets", "y1", "--drop", "y2", "--sample-weight", "w", "--alphas", 5, "--json")
    answer = described(run("cv", write_csv(tmp_path / "extra.csv", extra), *arguments))
    Y, w = np.array(extra["y1"]), np.array(extra["w"], dtype=float)
    folds = [
        (train[w[train] > 0], test[w[test] > 0]) for train, test in KFold(5, shuffle=True, random_state=0).split(Y)
    ]
    nulls = [
        np.average((Y[test] - np.average(Y[train], weights=w[train])) ** 2, weights=w[test]) for train, test in folds
    ]
    expected = np.average(nulls, weights=[w[test].sum() for _, test in folds])
    found = answer["scores"]["mean squared error (held out, 5 folds)"]
    assert found["null_model"] == pytest.approx(expected, rel=1e-12)


def test_samples_held_out(run, train, frame, tmp_path):
    out = tmp_path / "m"
    answer = described(run("fit", train, *TARGETS, "--test-size", 0.25, "--seed", 5, "--out", out, "--json"))
    assert answer["n_samples"] == 30
    X, Y = features(frame), frame[["y1", "y2"]]
    rows = train_test_split(np.arange(40), test_size=0.25, random_state=5)
    fitted, tested = (np.sort(part) for part in rows)
    estimator = go.load(out / "model")
    assert bool(estimator.verify(X.iloc[fitted], Y.iloc[fitted]))
    found = answer["scores"]["R2 (held out, 10 samples)"]
    predicted = estimator.predict(X.iloc[tested])
    errors = np.mean((Y.iloc[tested].to_numpy() - predicted) ** 2)
    assert found["model"] == pytest.approx(1 - errors / Y.iloc[tested].to_numpy().var(axis=0).mean(), rel=1e-10)
    assert not [note for note in answer["notes"] if "No sample was held out" in note]


def test_whole_groups_are_held_out(run, train, tmp_path):
    out = tmp_path / "m"
    arguments = ["--targets", "y1", "--drop", "id,w,y2", "--groups", "house", "--test-size", 0.4]
    answer = described(run("fit", train, *arguments, "--out", out, "--json"))
    assert answer["n_samples"] == 24  # three houses of eight
    assert run("verify", out, train).code == 0


def test_scores_of_the_fit_say_what_they_are(run, train, frame):
    answer = described(run("fit", train, "--targets", "y1", "--drop", "id,house,w,y2", "--alpha", "1e-9", "--json"))
    exact = LinearRegression().fit(features(frame), frame["y1"])
    found = answer["scores"]["R2 (data of the fit, not held out)"]
    assert found["model"] == pytest.approx(r2_score(frame["y1"], exact.predict(features(frame))), rel=1e-4)
    assert found["null_model"] == pytest.approx(0.0, abs=1e-12)
    assert [note for note in answer["notes"] if note.startswith("No sample was held out")]


def test_scores_of_classes_held_out(run, classes):
    answer = described(run("fit", classes, "--targets", "kind", "--test-size", 0.3, "--json"))
    accuracy = answer["scores"]["accuracy (held out, 18 samples)"]
    assert accuracy["model"] > accuracy["null_model"]
    assert answer["scores"]["log-loss (held out, 18 samples)"]["null_model"] == pytest.approx(np.log(3), rel=0.1)


def test_samples_of_a_class_that_the_fit_has_not_seen_count(run, tmp_path):
    """Their probability is zero, for the model and for the null model, and not that of what was predicted."""
    x = np.random.default_rng(0).standard_normal(40)
    houses = np.repeat(["a", "b", "c", "d"], 10)
    kinds = np.where(houses == "d", "oak", np.where(x > 0.0, "elm", "fir"))
    path = write_csv(tmp_path / "t.csv", {"house": houses, "x": x, "kind": kinds})
    arguments = ("--targets", "kind", "--groups", "house", "--test-size", 0.25, "--json")
    splits = (GroupShuffleSplit(1, test_size=0.25, random_state=seed).split(x, x, houses) for seed in range(99))
    seed = next(seed for seed, ((_, test),) in enumerate(splits) if houses[test[0]] == "d")
    scores = described(run("fit", path, *arguments, "--seed", seed))["scores"]
    unseen = -np.log(np.finfo(float).eps)
    assert pair_of(scores["log-loss (held out, 10 samples)"]) == pytest.approx((unseen, unseen))
    assert pair_of(scores["accuracy (held out, 10 samples)"]) == (0.0, 0.0)


# What is printed ----------------------------------------------------------------------------------------


def test_the_summary(run, train, tmp_path):
    out = tmp_path / "m"
    ran = run("cv", train, *TARGETS, "--alphas", 5, "--out", out)
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0].startswith("Group OWL regression: ")
    assert any(line.split()[:2] == ["Samples", "40"] for line in lines)
    assert any("null model" in line for line in lines)
    assert [line for line in lines if line.startswith(str(out))] == [
        str(out / name) for name in ("model", "alphas.csv", "coefficients.csv", "report.html", "run.json")
    ]


def test_quiet_prints_nothing_but_errors(run, train, tmp_path):
    out = tmp_path / "m"
    ran = run("fit", train, *TARGETS, "--out", out, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert {path.name for path in out.iterdir()} == FILES
    assert "exists. Use --force" in run("fit", train, *TARGETS, "--out", out, "--quiet").message


def test_nothing_is_written_without_out(run, train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("fit", train, *TARGETS)
    assert ran.code == 0
    assert "Nothing was written; --out DIR keeps the model" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_json_has_no_number_that_json_has_not(run, tmp_path):
    """A constant target: nothing to explain, and scores that do not exist are left out or null."""
    columns = columns_of(make_data()) | {"y1": [2.5] * 40}
    path = write_csv(tmp_path / "t.csv", columns)
    answer = described(run("fit", path, "--targets", "y1", "--drop", "id,house,w,y2", "--json"))
    assert answer["n_selected"] == 0
    (score,) = answer["scores"].items()
    assert (score[0], pair_of(score[1])) == ("mean squared error (data of the fit, not held out)", (0.0, 0.0))


def test_no_feature_is_selected(run, train):
    ran = run("fit", train, *TARGETS, "--alpha", "1e6")
    assert ran.code == 0
    assert "No feature is selected." in ran.out


@pytest.mark.parametrize("command", ["fit", "cv"])
@pytest.mark.parametrize("constant", ["y", "features"])
def test_nothing_to_explain(run, tmp_path, command, constant, reports):
    """Constant targets, or constant features: nothing promises that another alpha would select some."""
    numbers = [i * i % 11 + 0.5 for i in range(20)]
    columns = {"a": numbers, "b": [1.0] * 20, "y": [2.5] * 20}
    if constant == "features":
        columns = {"a": [3.0] * 20, "b": [1.0] * 20, "y": numbers}
    path = write_csv(tmp_path / "t.csv", columns)
    ran = run(command, path, "--targets", "y", "--out", tmp_path / "m")
    assert ran.code == 0
    assert "No feature is selected. None explains the targets, at any alpha." in ran.out
    assert ("Target 'y' has one value in all samples" in ran.out) is (constant == "y")
    assert "a tenth of the largest" not in ran.out
    assert "--task classification" not in ran.out
    page = (tmp_path / "m" / "report.html").read_text(encoding="utf-8")
    assert "No feature is selected at this alpha. None is at any alpha." in page


def test_clusters_are_counted_in_words(run, tmp_path):
    x = [float(i * i % 11) for i in range(20)]
    path = write_csv(tmp_path / "t.csv", {"a": x, "b": x[::-1], "y": x})
    facts = run("fit", path, "--targets", "y", "--drop", "b").out
    assert "Selected features  1 feature " in facts


def test_nothing_tied_is_a_sentence(run, tmp_path):
    x = [float(i * i % 11) for i in range(20)]
    y = [a - 0.5 * b for a, b in zip(x, x[3:] + x[:3], strict=True)]
    path = write_csv(tmp_path / "t.csv", {"a": x, "b": x[3:] + x[:3], "y": y})
    said = " ".join(run("fit", path, "--targets", "y", "--weights", "constant").out.split())
    assert "2 features, nothing is tied: constant weights treat each on its own." in said
    assert "fall faster" not in said
    said = " ".join(run("fit", path, "--targets", "y", "--weights", "oscar", "--alpha", "0.01").out.split())
    assert "2 features, nothing is tied: all differ in size. Weights that fall faster tie more, such as linear" in said


@pytest.mark.parametrize("options", [[], ["--standardize"]])
def test_tables_have_both_scales(run, tmp_path, options):
    """Of two features that differ by their unit only, in the terminal, in the file, and for programs."""
    x = [float(i * i % 11) for i in range(20)]
    path = write_csv(tmp_path / "t.csv", {"a": x, "b": [2000.0 * value for value in x], "y": x})
    command = ("fit", path, "--targets", "y", "--weights", "linear", "--alpha", "0.1", *options)
    ran = run(*command, "--out", tmp_path / "m")
    assert ("2 features in 1 cluster " in ran.out) is bool(options)
    assert ("Scaled means per standard deviation, as the penalty sees it" in " ".join(ran.out.split())) is bool(options)
    table = pd.read_csv(tmp_path / "m" / "coefficients.csv", index_col="feature")
    selected = json.loads(run(*command, "--json").out)["selected"]
    if not options:
        assert list(table.columns) == ["cluster", "norm", "state", "coef"]
        assert all(set(item) == {"feature", "cluster", "norm", "coef"} for item in selected)
        return
    assert list(table.columns) == ["cluster", "norm", "scaled_norm", "state", "coef", "scaled"]
    assert table.loc["a", "scaled"] == pytest.approx(table.loc["b", "scaled"], rel=1e-9)
    assert table.loc["a", "coef"] == pytest.approx(2000.0 * table.loc["b", "coef"], rel=1e-9)
    assert table.loc["a", "scaled"] == pytest.approx(np.std(x) * table.loc["a", "coef"], rel=1e-9)
    assert np.isnan(table.loc["(intercept)", "scaled"])
    for item in selected:
        for name in ("norm", "scaled_norm", "coef", "scaled"):
            assert item[name] == pytest.approx(table.loc[item["feature"], name], rel=1e-9)
    shown = {cells[0]: cells[1:] for cells in map(str.split, ran.out.splitlines()) if cells[:1] in (["a"], ["b"])}
    assert float(shown["b"][2]) == pytest.approx(table.loc["b", "coef"], rel=5e-4)
    assert shown["a"][1] == shown["b"][1]


def test_gaps_in_a_file_that_stays_on_disk(run, train, data, tmp_path, monkeypatch):
    """Found in the first pass; the remedy is one of the command line."""
    monkeypatch.setattr("groupowl.designs._SMALL_SHARE", 1e12)
    X = data.X.copy()
    X[5, 2] = np.nan
    np.save(tmp_path / "x.npy", X)
    ran = run("fit", tmp_path / "x.npy", "--targets-from", train, "--targets", "y1", "--out", tmp_path / "m")
    assert ran.code == 1
    assert "has 1 NaN or infinite entry in column 'x3'" in ran.message
    assert ran.message.endswith("or --drop to leave columns out.")
    assert not (tmp_path / "m").exists()
    arguments = ("fit", tmp_path / "x.npy", "--targets-from", train, "--targets", "y1", "--drop", "x3")
    assert run(*arguments, "--out", tmp_path / "m", "-q").code == 0
    assert run("verify", tmp_path / "m", tmp_path / "x.npy", "-q").code == 0


@pytest.mark.parametrize("is_small", [True, False])
def test_targets_of_a_matrix_without_names(run, data, tmp_path, monkeypatch, is_small):
    """In the same file or in another one; the names are in all that is written."""
    if not is_small:
        monkeypatch.setattr("groupowl.designs._SMALL_SHARE", 1e12)
    np.save(tmp_path / "X.npy", data.X)
    np.save(tmp_path / "Y.npy", data.Y)
    np.save(tmp_path / "XY.npy", np.hstack([data.X, data.Y]))
    apart = described(
        run("cv", tmp_path / "X.npy", "--targets-from", tmp_path / "Y.npy", "--out", tmp_path / "m", "--json")
    )
    joint = described(run("cv", tmp_path / "XY.npy", "-t", "-2,-1", "--json"))
    assert (apart["n_features"], apart["targets"], joint["targets"]) == (12, ["y1", "y2"], ["x13", "x14"])
    assert apart["objective"] == pytest.approx(joint["objective"], rel=1e-9)
    header = run("predict", tmp_path / "m", tmp_path / "X.npy").out.splitlines()[0]
    assert {"predicted_y1", "predicted_y2"} <= set(header.split(","))
    assert run("verify", tmp_path / "m", tmp_path / "X.npy").code == 0


def test_names_are_printed_as_they_are(run, tmp_path):
    """Brackets are markup to Rich, and must not be to us."""
    data = make_data()
    names = ["[bold]", "[/]", "a:smile:", "naïve", *[f"g{j}" for j in range(8)]]
    path = write_csv(tmp_path / "[red]t.csv", columns_of(data, names))
    ran = run("fit", path, *TARGETS, "--alpha", "1e-3", "--out", tmp_path / "[m]")
    assert ran.code == 0, ran.err
    for name in names:
        assert name in ran.out or "more" in ran.out
    assert "[red]t.csv" in ran.out
    assert str(tmp_path / "[m]" / "model") in ran.out.splitlines()
    assert {"[bold]", "[/]", "naïve"} <= set(pd.read_csv(tmp_path / "[m]" / "coefficients.csv")["feature"])


def test_a_fit_that_does_not_converge(run, train, tmp_path):
    """Exit code 3, one message, and what there is is kept."""
    out = tmp_path / "m"
    ran = run("fit", train, *TARGETS, "--alpha", "0.01", "--max-iter", 1, "--tol", "1e-12", "--out", out)
    assert ran.code == 3
    (line,) = ran.err.splitlines()
    assert line.startswith("groupowl: not converged: the fit has the status 'max_iter'")
    assert "Stopped after --max-iter 1 steps" in " ".join(ran.out.split())
    assert "Raise --max-iter or --tol." in " ".join(ran.out.split())
    assert "What there is was written." in line
    assert {path.name for path in out.iterdir()} >= FILES
    record = json.loads((out / "run.json").read_text())
    assert record["facts"]["Converged"] == "no: max_iter"


def test_a_path_that_does_not_converge_in_one_point(run, train):
    ran = run("path", train, *TARGETS, "--max-iter", 3, "--tol", "1e-10", "--json")
    assert ran.code == 3
    assert any("fell short of tol" in note for note in json.loads(ran.out)["notes"])


def test_a_fold_that_does_not_converge(run, train, monkeypatch):
    """The chosen fit may be good, and the scores that chose it are not."""
    from groupowl.model_selection import search

    original, numbers = search.run_fold, iter([2, 0, 0, 0, 0])
    monkeypatch.setattr(search, "run_fold", lambda *work: replace(original(*work), n_short=next(numbers)))
    ran = run("cv", train, *TARGETS, "--alphas", 5, "--eps", 0.1, "--json")
    assert ran.code == 3
    assert "the chosen fit meets the tolerance, but others on the path or in the folds do not" in ran.err
    assert any("2 of 25 fits of the folds stopped short" in note for note in json.loads(ran.out)["notes"])


# Folders ------------------------------------------------------------------------------------------------


def test_an_earlier_run_is_replaced_only_by_force(run, train, tmp_path):
    out = tmp_path / "m"
    assert run("fit", train, *TARGETS, "--out", out, "--alpha", "0.1").code == 0
    ran = run("fit", train, *TARGETS, "--out", out, "--alpha", "0.2")
    assert ran.code == 1
    assert "exists. Use --force" in ran.message
    assert go.load(out / "model").alpha_ == 0.1
    assert run("fit", train, *TARGETS, "--out", out, "--alpha", "0.2", "--force").code == 0
    assert go.load(out / "model").alpha_ == 0.2
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_other_files_are_safe_from_force(run, train, tmp_path):
    out = tmp_path / "home"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    ran = run("fit", train, *TARGETS, "--out", out, "--force")
    assert ran.code == 1
    assert "holds other files, which would be lost" in ran.message
    assert (out / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_used(run, train, tmp_path):
    (tmp_path / "m").mkdir()
    assert run("fit", train, *TARGETS, "--out", tmp_path / "m", "-q").code == 0


def test_choices_are_those_of_the_library():
    assert list(get_args(options.Selection)) == [*FOLD_RULES, *CRITERIA]
    assert list(get_args(options.Criterion)) == list(CRITERIA)
    assert list(get_args(options.Task)) == list(TASKS)
    assert list(get_args(options.FormatName)) == list(FORMATS)
    assert all(name in options.FORMATS for name in FORMATS)
