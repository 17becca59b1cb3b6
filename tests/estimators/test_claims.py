"""verify finds what was changed in a saved model, says its name, and holds for honest fits of awkward data."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from estimator_support import labelled_data, regression_data
from groupowl.estimators.verification import Claim


def data_of(kind):
    return regression_data(1) if kind is go.GroupOWLRegressor else labelled_data(1)


KINDS = [go.GroupOWLRegressor, go.GroupOWLClassifier]


def stated(**changes):
    """A change of the stored result of the solve."""

    def change(model):
        result = model.solve_result_
        model.solve_result_ = replace(result, **{name: new(getattr(result, name)) for name, new in changes.items()})

    return change


def attribute(name, new):
    return lambda model: setattr(model, name, new(getattr(model, name)))


def all_of(*changes):
    def change(model):
        for each in changes:
            each(model)

    return change


def other_gap(new):
    """The gap, wherever it is stored, and the dual value that goes with it."""

    def change(model):
        result = model.solve_result_
        gap = new(result.gap)
        model.dual_gap_ = gap
        model.solve_result_ = replace(result, gap=gap, dual=result.primal - gap)

    return change


def merged(clusters):
    return np.where(clusters == 2, 1, clusters)


CHANGES = {
    "dual_gap_ to 0": ("dual_gap_", attribute("dual_gap_", lambda gap: 0.0)),
    "dual_gap_ doubled": ("dual_gap_", attribute("dual_gap_", lambda gap: 2.0 * gap)),
    "dual_gap_ to text": ("dual_gap_", attribute("dual_gap_", str)),
    "dual_gap_ negative": ("dual_gap_", attribute("dual_gap_", lambda gap: -gap)),
    "dual_gap_ to nan": ("dual_gap_", attribute("dual_gap_", lambda gap: np.nan)),
    "all gaps halved": ("dual_gap_", other_gap(lambda gap: 0.5 * gap)),
    "all gaps doubled": ("dual_gap_", other_gap(lambda gap: 2.0 * gap)),
    "all gaps to 0": ("dual_gap_", other_gap(lambda gap: 0.0)),
    "gap of the solve": ("solve_result_.gap", stated(gap=lambda gap: 0.9 * gap)),
    "dual of the solve": ("solve_result_.dual", stated(dual=lambda dual: dual - 1e-3 * abs(dual))),
    "objective": ("objective", stated(primal=lambda primal: primal * (1.0 + 1e-8))),
    "status": ("status", stated(status=lambda status: "max_iter")),
    "no status": ("status", stated(status=lambda status: "fine")),
    "weights": ("weights_", attribute("weights_", lambda weights: weights * (1.0 + 1e-6))),
    "longer weights": ("weights_", attribute("weights_", lambda weights: np.append(weights, weights[-1]))),
    "rising weights": ("weights_", attribute("weights_", lambda weights: weights[::-1].copy())),
    "clusters": ("clusters_", attribute("clusters_", merged)),
    "clusters everywhere": (
        "clusters_",
        all_of(attribute("clusters_", merged), stated(clusters=merged)),
    ),
    "clusters of the solve": ("solve_result_.clusters", stated(clusters=merged)),
    "coefficients": ("coef_", attribute("coef_", lambda coef: coef * (1.0 + 1e-10))),
    "coefficients of the solve": ("coef_", stated(B=lambda B: B * (1.0 + 1e-10))),
    "intercept": ("intercept_", attribute("intercept_", lambda b: b + 1e-9 * np.arange(1, len(b) + 1))),
    "unpenalized": ("unpenalized_", attribute("unpenalized_", lambda columns: np.array([1]))),
    "steps": ("n_iter_", attribute("n_iter_", lambda count: count + 1)),
    "screened fraction": ("screened_fraction_", attribute("screened_fraction_", lambda share: 1.0)),
    "active": ("solve_result_.active", stated(active=lambda active: active[1:])),
}


# What does not fit together is not even loaded.
NOT_LOADED = {
    "dual_gap_ to text": "dual_gap_ must hold real numbers, got '.*'",
    "longer weights": "31 weights and 0 unpenalized features",
    "unpenalized": "30 weights and 1 unpenalized features",
    "no status": "status must hold one of converged, .* got 'fine'",
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_a_saved_model_is_named(kind, name, tmp_path):
    X, y = data_of(kind)
    model = go.load(go.save(kind(tol=1e-5).fit(X, y), tmp_path / "model"))
    assert model.verify(X, y)
    place, change = CHANGES[name]
    change(model)
    folder = go.save(model, tmp_path / "model")
    if name in NOT_LOADED:
        with pytest.raises(ValueError, match=NOT_LOADED[name]):
            go.load(folder)
        return
    check = go.load(folder).verify(X, y)
    assert not check
    failed = [finding.text for finding in check.findings if not finding.holds]
    assert any(text.startswith(place) or f"({place}" in text for text in failed), failed


def test_a_fit_cut_short_cannot_be_called_converged():
    X, y = data_of(go.GroupOWLRegressor)
    with pytest.warns(ConvergenceWarning):
        model = go.GroupOWLRegressor(max_iter=2).fit(X, y)
    model.solve_result_ = replace(model.solve_result_, status="converged")
    assert "[FAILED] status: the fit says 'converged', the data give 'not converged'" in repr(model.verify(X, y))


@pytest.mark.parametrize(
    ("claimed", "found", "allowance", "complaint"),
    [
        (1.0, 1.0 + 1e-12, 1e-9, None),
        (np.nan, np.nan, 0.0, None),
        (np.inf, np.inf, 0.0, None),
        (np.nan, 1.0, 1e9, "x: the fit says nan, the data give 1"),
        ("1", 1.0, 0.0, "x: the fit says '1', which is not a number"),
        ([1, 2, 4], [1, 3, 3], 0.0, "x[1]: the fit says 2, the data give 3 (2 entries differ)"),
        ([1.0], [1.0, 2.0], 0.0, "x: the fit says an array of shape (1,), the data give (2,)"),
        ("a", "b", 0.0, "x: the fit says 'a', the data give 'b'"),
    ],
)
def test_a_claim_says_how_it_is_wrong(claimed, found, allowance, complaint):
    assert Claim("x", claimed, found, allowance).complaint() == complaint


@pytest.mark.parametrize(
    ("name", "words"),
    [("dual_gap_", "duality gap (dual_gap_)"), ("path_.primal", "path, objective (path_.primal)"), ("x", "x")],
)
def test_a_claim_has_words_for_people_and_a_name_for_programs(name, words):
    assert Claim(name, 1.0, 2.0).complaint() == f"{words}: the fit says 1, the data give 2"


# Honest fits --------------------------------------------------------------------------------------------

FORMS = {
    "dense": lambda X: X,
    "sparse": lambda X: sp.csc_array(np.where(np.abs(X - X.mean()) > 0.4 * X.std(), X, 0.0)),
    "single": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize(
    ("x_scale", "x_shift", "y_scale", "y_shift"),
    [
        (1, 0, 1e-6, 1e8),
        (1e4, 1e6, 1e-6, 1e8),
        (1, 0, 1e-8, 0),
        (1e-8, 0, 1e8, 0),
        (1, 1e6, 1e-3, 1e4),
        (1, 0, 1e-12, 0),
    ],
)
@pytest.mark.parametrize(
    "settings", [{}, {"standardize": True}, {"unpenalized": [0, 5]}, {"fit_intercept": False, "relaxed": True}], ids=str
)
def test_honest_fits_of_awkward_data_hold(x_scale, x_shift, y_scale, y_shift, tol, form, settings):
    """Targets far from zero, tiny ones, and scales far apart: rounding is no reason to refuse."""
    X, Y = regression_data(2)
    X = FORMS[form](x_scale * X + x_shift)
    Y = y_shift + y_scale * Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where rounding forbids to prove the tolerance
        model = go.GroupOWLRegressor(tol=tol, weights="bh", **settings).fit(X, Y)
    assert model.solve_result_.status in ("converged", "precision")
    check = model.verify(X, Y)
    assert check, repr(check)


@pytest.mark.parametrize("seed", range(6))
def test_a_target_that_rounding_may_have_made_counts_as_constant_here_too(seed):
    """Some targets of a fit vary by less than 64 roundings of their means; the others decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((81, 12))
    Y = 1e8 + 1e-6 * (X[:, :3] @ rng.standard_normal((3, 4)) + 0.3 * rng.standard_normal((81, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rounding of the intercepts may take what tol allows
        model = go.GroupOWLRegressor(weights="chi", tol=1e-3).fit(X, Y)
    check = model.verify(X, Y)
    assert check, repr(check)
