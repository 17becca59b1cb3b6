"""verify of the estimators that choose alpha: a changed path, score or choice is found, an honest one holds."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

import groupowl as go
from estimator_support import labelled_data, regression_data
from groupowl import kernel

X, Y = regression_data(1)
SETTINGS = {"alphas": 8, "eps": 0.05, "cv": 3}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Fitted once; every test loads its own."""
    folder = tmp_path_factory.mktemp("saved")
    go.save(go.GroupOWLRegressorCV(**SETTINGS).fit(X, Y), folder / "folds")
    go.save(go.GroupOWLRegressorCV(**SETTINGS, selection="bic").fit(X, Y), folder / "criterion")
    return folder


def failures(model, X=X, Y=Y, **settings):
    check = model.verify(X, Y, **settings)
    assert bool(check) == ("NOT hold" not in repr(check))
    return [finding.text for finding in check.findings if not finding.holds]


def is_about(text, name):
    """Whether a text names something, by itself or after the words for it."""
    return text.startswith(name) or f"({name}" in text


def attribute(name, new):
    return lambda model: setattr(model, name, new(getattr(model, name)))


def report(name, new):
    return lambda model: model.search_results_[0].update({name: new(model.search_results_[0][name])})


def point(i=3, **changes):
    """A change of one point of the path."""

    def change(model):
        points = list(model.path_.points)
        points[i] = replace(points[i], **{name: new(getattr(points[i], name)) for name, new in changes.items()})
        model.path_ = replace(model.path_, points=tuple(points))

    return change


def path(**changes):
    def change(model):
        new = {name: change(getattr(model.path_, name)) for name, change in changes.items()}
        model.path_ = replace(model.path_, **new)

    return change


def plus(size):
    return lambda value: value + size


def times(factor):
    return lambda value: value * factor


CHANGES = {
    "rows of the path": ("path_.primal[3]", point(rows=times(1.0 + 1e-4))),
    "a row of zeros": ("path_", point(rows=times(0.0))),
    "an intercept of the path": ("path_.primal[3]", point(intercept=plus(0.1))),
    "a gap of the path": ("path_.dual_gaps[3]", point(gap=times(0.5))),
    "a gap of zero": ("path_.dual_gaps[3]", point(gap=times(0.0))),
    "a large gap": ("path_.dual_gaps[3]", point(gap=times(2.0))),
    "a gap below zero": ("path_.dual_gaps[3]", point(gap=times(-1.0))),
    "an objective of the path": ("path_.primal[3]", point(primal=times(1.0 + 1e-9))),
    "a loss of the path": ("path_.losses[3]", point(loss=times(1.0 + 1e-9))),
    "a share of the deviance": ("path_.deviance_ratio[3]", point(deviance_ratio=plus(1e-6))),
    "a count": ("path_.n_selected[3]", point(n_selected=plus(1))),
    "a status": ("path_.statuses[3]", point(status=lambda status: "max_iter")),
    "clusters of the path": ("path_.clusters", point(clusters=plus(1))),
    "an alpha of the path": ("path_.alphas[3]", point(alpha=times(1.001))),
    "a support": ("path_[3]", point(support=plus(1000))),
    "weights of the path": ("path_.weights", path(weights=times(1.001))),
    "the largest alpha": ("path_.alpha_max", path(alpha_max=times(1.001))),
    "the null loss": ("path_.null_loss", path(null_loss=times(1.001))),
    "alphas": ("path_.alphas", attribute("alphas_", times(1.001))),
    "alpha": ("alpha_", attribute("alpha_", times(1.0 + 1e-6))),
    "the chosen index": ("best_index_", attribute("best_index_", plus(-1))),
    "weights": ("weights_", attribute("weights_", times(1.0 + 1e-6))),
}
OF_FOLDS = {
    "fold scores": ("score_path_", attribute("score_path_", times(0.999))),
    "mean scores": ("mean_score_path_", attribute("mean_score_path_", times(0.999))),
    "standard errors": ("std_error_path_", attribute("std_error_path_", times(0.999))),
    "the best score": ("best_score_", attribute("best_score_", times(0.999))),
    "how often selected": ("selection_frequency_", attribute("selection_frequency_", plus(1))),
    "fold scores of the search": ("search_results_.", report("score_path", times(0.9))),
    "mean scores of the search": ("search_results_.mean_score_path", report("mean_score_path", times(0.999))),
    "index of the search": ("search_results_.best_index", report("best_index", plus(1))),
    "weights of the search": ("search_results_.weights", report("weights", times(1.001))),
    "nothing of the search": ("search_results_", lambda model: model.search_results_[0].pop("score_path")),
    "no search": ("search_results_", attribute("search_results_", lambda found: [])),
}


@pytest.mark.parametrize("name", [*CHANGES, *OF_FOLDS])
def test_a_change_of_a_saved_choice_is_named(saved, name):
    model = go.load(saved / "folds")
    place, change = (CHANGES | OF_FOLDS)[name]
    change(model)
    assert any(is_about(text, place) for text in failures(model)), failures(model)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_choice_by_a_criterion_is_named(saved, name):
    model = go.load(saved / "criterion")
    assert not failures(model)
    place, change = CHANGES[name]
    change(model)
    assert any(is_about(text, place) for text in failures(model)), failures(model)


def all_scores(factor):
    """Other scores of the folds, and all that follows from them."""

    def change(model):
        for holder, names in ((vars(model), "{}_"), (model.search_results_[0], "{}")):
            for name in ("score_path", "mean_score_path", "std_error_path", "best_score"):
                holder[names.format(name)] = factor * holder[names.format(name)]

    return change


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, -1.0])
def test_scores_that_agree_with_each_other_but_not_with_the_data(saved, factor):
    """Only folds that are fitted again tell."""
    model = go.load(saved / "folds")
    assert not failures(model)
    all_scores(factor)(model)
    assert any(is_about(text, "search_results_.score_path") for text in failures(model))
    if factor > 0.0:  # the choice is another otherwise
        assert not failures(model, scores=False)
        assert "NOT computed again: scores=False" in repr(model.verify(X, Y, scores=False))


def test_criteria_are_computed_again(saved):
    model = go.load(saved / "criterion")
    for holder, name in ((vars(model), "criterion_path_"), (model.search_results_[0], "criterion_path")):
        holder[name] = holder[name] + 0.1
    (text,) = failures(model)
    assert text.startswith("scores of the search, values of the criterion (search_results_.criterion_path[")


def test_another_weight_sequence_was_better():
    model = go.GroupOWLRegressorCV(**SETTINGS, weights=["oscar", "bh"]).fit(X, Y)
    assert not failures(model)
    model.search_results_.reverse()
    assert any(is_about(text, "search_results_[0].weights") for text in failures(model))
    model.search_results_.reverse()
    other = next(found for found in model.search_results_ if not np.array_equal(found["weights"], model.weights_))
    for name in ("score_path", "mean_score_path", "std_error_path", "best_score"):
        other[name] = 0.1 * other[name]
    assert any(is_about(text, "the chosen weight sequence") for text in failures(model))


# Honest fits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"selection": "1se", "standardize": True},
        {"relaxed": True, "unpenalized": [2]},
        {"scoring": "r2", "weights": ["oscar", "constant"]},
        {"alphas": [0.3, 0.1, 0.2], "tol": 1e-3},
        {"solver": "spgd", "alphas": [0.4, 0.3], "random_state": 0, "tol": 1e-2},
        {"selection": "aic", "relaxed": True},
        {"selection": "ebic", "weights": ["bh", "linear"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["dense", "sparse", "single"])
def test_honest_choices_hold(settings, form):
    data = {"dense": X, "sparse": sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)), "single": X.astype(np.float32)}[form]
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(Y))
    model = go.GroupOWLRegressorCV(**SETTINGS | settings).fit(data, Y, sample_weight=weight)
    assert not failures(model, data, Y, sample_weight=weight)


def test_honest_choices_of_classes_hold_in_another_form():
    """Other products round in another way: fold fits end elsewhere within their tolerance."""
    X, y = labelled_data(2, n=60)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    for form, other in ((X, sp.csr_array(X)), (sp.csr_array(X), X)):
        model = go.GroupOWLClassifierCV(**SETTINGS).fit(form, y)
        assert not failures(model, form, y)
        assert not failures(model, other, y)


def test_targets_far_from_zero():
    far = 1e8 + 1e-6 * Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # intercepts are rounded
        model = go.GroupOWLRegressorCV(**SETTINGS).fit(X, far)
    assert not failures(model, X, far)


def test_folds_of_groups_need_the_groups():
    groups = np.arange(len(Y)) // 4
    model = go.GroupOWLRegressorCV(**SETTINGS | {"cv": GroupKFold(3)}).fit(X, Y, groups=groups)
    assert not failures(model, groups=groups)
    assert not failures(model, scores=False)
    with pytest.raises(ValueError, match=r"cannot be split again by cv=GroupKFold.*groups, or scores=False"):
        model.verify(X, Y)


def test_folds_that_cannot_be_made_again_are_said_not_to_be():
    splits = list(KFold(3).split(X))
    cases = {
        "cv makes other folds each time; give it a random_state": ShuffleSplit(3, random_state=None),
        "cv is an iterator, which is used up": iter(splits),
    }
    for reason, cv in cases.items():
        model = go.GroupOWLRegressorCV(**SETTINGS | {"cv": cv}).fit(X, Y)
        check = model.verify(X, Y)
        assert check, repr(check)
        assert f"held-out scores are NOT computed again: {reason}" in repr(check)
        model.best_score_ += 1e-3
        assert failures(model)
    listed = go.GroupOWLRegressorCV(**SETTINGS | {"cv": splits}).fit(X, Y)
    assert "computed again, by the same steps" in repr(listed.verify(X, Y))


def test_statistics_of_folds():
    tall, answers = np.tile(X, (3, 1)), np.tile(Y, (3, 1))
    parts = [go.SufficientStatistics.from_arrays(tall[i::3], answers[i::3]) for i in range(3)]
    model = go.GroupOWLRegressorCV(**SETTINGS | {"cv": None}).fit(parts)
    assert "computed again, by the same steps" in repr(model.verify(parts))
    assert model.verify(parts)
    check = model.verify(parts[0] + parts[1] + parts[2])
    assert check, repr(check)
    assert "statistics of all samples have no folds" in repr(check)


def test_verifying_a_choice_prints_and_changes_nothing(capsys):
    model = go.GroupOWLRegressorCV(**SETTINGS, verbose=1).fit(X, Y)
    before = dict(vars(model))
    capsys.readouterr()
    assert model.verify(X, Y)
    assert capsys.readouterr() == ("", "")
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("kernel_fits", [True, False])
@pytest.mark.parametrize(
    "settings", [{"relaxed": True}, {"verbose": 1, "tol": 1e-2}, {"tol": 1e-3, "standardize": True}]
)
def test_a_fit_with_the_kernel_holds_without_it_and_the_other_way_round(settings, kernel_fits, monkeypatch):
    is_available = kernel.is_available()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((36, 16))
        T = A[:, :3] @ rng.standard_normal((3, 2)) + 0.5 * rng.standard_normal((36, 2))
        monkeypatch.setattr(kernel, "is_available", lambda: kernel_fits and is_available)
        model = go.GroupOWLRegressorCV(**SETTINGS, **settings).fit(A, T)
        monkeypatch.setattr(kernel, "is_available", lambda: not kernel_fits and is_available)
        check = model.verify(A, T)
        assert check, repr(check)


def test_other_data_are_found_without_fitting_folds():
    model = go.GroupOWLRegressorCV(**SETTINGS).fit(X, Y)
    check = model.verify(X, np.roll(Y, 1, axis=0))
    assert not check
    assert "NOT computed again: the chosen fit does not hold" in repr(check)


# Every number -------------------------------------------------------------------------------------------

# How the fit came about, which the data do not decide; and what makes the data those of another fit, an error.
EFFORTS = {"seconds", "n_passes", "history", "n_iter", "n_features_in_", "classes_"}


def places(value, place=()):
    """Where the numbers of a fitted attribute are: keys, positions and names of fields, from the outside in."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    elif hasattr(value, "__dataclass_fields__"):
        items = [(name, getattr(value, name)) for name in value.__dataclass_fields__ if not name.startswith("_")]
    else:
        is_number = np.asarray(value).dtype.kind in "iuf" and np.size(value) > 0
        return [place] if is_number else []
    return [found for key, item in items if key not in EFFORTS for found in places(item, (*place, key))]


def with_change(value, place):
    """The same with another number at one place."""
    if not place:
        return value + 1 if np.asarray(value).dtype.kind in "iu" else value * 1.01 + 1e-9
    key, rest = place[0], place[1:]
    if hasattr(value, "__dataclass_fields__"):
        return replace(value, **{key: with_change(getattr(value, key), rest)})
    if isinstance(value, dict):
        return value | {key: with_change(value[key], rest)}
    return type(value)(with_change(item, rest) if i == key else item for i, item in enumerate(value))


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("kind", [go.GroupOWLRegressorCV, go.GroupOWLClassifierCV])
def test_every_number_of_a_fit_counts(kind, relaxed):
    """Whatever is changed, the fit does not hold."""
    X, y = regression_data(1) if kind is go.GroupOWLRegressorCV else labelled_data(1)
    model = kind(alphas=2, eps=0.4, cv=2, relaxed=relaxed).fit(X, y)
    assert model.verify(X, y)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found = places(fitted)
    assert len(found) > 40
    unseen = []
    for place in found:
        changed = copy(model)
        setattr(changed, place[0], with_change(getattr(model, place[0]), place[1:]))
        if changed.verify(X, y):
            unseen.append(place)
    assert not unseen
