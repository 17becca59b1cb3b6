"""Unpenalized columns: the answer of an independent solver, dual points that are feasible, the null model."""

from __future__ import annotations

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from groupowl.model import build_model
from groupowl.problem import build_problem
from groupowl.solvers import check_settings
from support import make_case

N, D, Q = 60, 25, 3
FREE = np.array([3, 10, 17])
LOSSES = ("squared", "multinomial")
SOLVERS = {"auto": (go.WorkingSet(), 1e-10), "apgd": (go.APGD(restart="gradient"), 1e-9), "spgd": (go.SPGD(), 1e-4)}


@cache
def make_data(loss):
    """Correlated groups; two unpenalized columns are nearly the same, and one explains much of the targets."""
    rng = np.random.default_rng(0)
    task = "regression" if loss == "squared" else "classification"
    data = go.datasets.make_correlated_groups(N, D, Q, task=task, random_state=1)
    X, Y = data.X.copy(), data.Y
    X[:, 17] = 2.0 * X[:, 3] + 1e-3 * rng.standard_normal(N)
    X[:, 5] += 3.0
    if loss == "squared":
        Y = Y + X[:, [10]] * [[1.0, -2.0, 3.0]]
    return X, Y, rng.uniform(0.2, 2.0, N)


def make_model(loss, *, fit_intercept=True, standardize=False, kind=np.asarray):
    X, Y, weight = make_data(loss)
    settings = {"fit_intercept": fit_intercept, "standardize": standardize, "sample_weight": weight}
    return build_model(kind(X), Y, loss=loss, unpenalized=FREE, **settings)


def solve(model, alpha, solver="auto", screening="safe", tol=None):
    settings, usual = SOLVERS[solver]
    tol = usual if tol is None else tol
    return model.continuation(check_settings(settings, screening, tol, 20_000, random_state=0)).solve(
        model.sequence_weights, alpha
    )


def scales(loss, standardize):
    X, _, weight = make_data(loss)
    w = weight / weight.sum()
    return np.sqrt(w @ (X - w @ X) ** 2) if standardize else np.ones(D)


def objective(loss, B, intercept, alpha, weights, scale):
    """The documented objective, from its definition."""
    X, Y, weight = make_data(loss)
    w, Z = weight / weight.sum(), X @ B + intercept
    penalized = np.delete(B * scale[:, None], FREE, axis=0)
    norms = np.sort(np.linalg.norm(penalized, axis=1))[::-1]
    if loss == "squared":
        value = 0.5 * np.sum(w[:, None] * (Y - Z) ** 2)
    else:
        value = w @ (logsumexp(Z, axis=1) - np.sum(Y * Z, axis=1))
    return value + alpha * norms @ weights


def conic_minimum(loss, alpha, weights, scale, fit_intercept):
    """The minimum by a conic solver, from the definition as well."""
    X, Y, weight = make_data(loss)
    w, penalized = weight / weight.sum(), np.delete(np.arange(D), FREE)
    B, b = cp.Variable((D, Q)), cp.Variable((1, Q)) if fit_intercept else np.zeros((1, Q))
    Z = X @ B + np.ones((N, 1)) @ b
    norms = cp.norm(cp.multiply(scale[penalized][:, None], B[penalized]), 2, axis=1)
    steps = alpha * (weights - np.append(weights[1:], 0.0))
    penalty = sum(step * cp.sum_largest(norms, k + 1) for k, step in enumerate(steps) if step > 0)
    if loss == "squared":
        value = 0.5 * cp.sum(cp.multiply(np.repeat(w[:, None], Q, axis=1), cp.square(Y - Z)))
    else:
        value = cp.sum(cp.multiply(w, cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(Y, Z), axis=1)))
    problem = cp.Problem(cp.Minimize(value + penalty))
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_answer_is_that_of_a_conic_solver(loss, fit_intercept, standardize):
    model = make_model(loss, fit_intercept=fit_intercept, standardize=standardize)
    scale = scales(loss, standardize)
    alpha = float(f"{0.2 * model.alpha_max:.3g}")  # with some numbers of many digits the conic solver is not content
    result = solve(model, alpha)
    assert result.converged
    found = objective(loss, result.B, result.intercept, alpha, model.weights, scale)
    assert found == pytest.approx(result.primal, abs=1e-11)
    minimum = conic_minimum(loss, alpha, model.weights, scale, fit_intercept)
    assert minimum - result.dual >= -1e-10  # the conic solver's answer cannot be below the proved bound
    assert found <= minimum + result.gap + 1e-10


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_and_kinds_of_matrices_agree(loss, solver, kind):
    expected = solve(make_model(loss), 0.2 * make_model(loss).alpha_max)
    model = make_model(loss, kind=kind)
    tol = 1e-5 if kind is np.float32 else SOLVERS[solver][1]
    result = solve(model, 0.2 * make_model(loss).alpha_max, solver, tol=tol)
    assert result.converged
    slack = 2e-5 if kind is np.float32 else 1e-12  # the data themselves differ in single precision
    assert result.dual <= expected.primal + slack
    assert abs(result.primal - expected.primal) <= result.gap + expected.gap + slack


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_dual_points_are_orthogonal_to_unpenalized_columns(loss, fit_intercept, seed):
    """Wherever the coefficients are, the certificate's point is feasible: its dual value bounds the minimum."""
    model = make_model(loss, fit_intercept=fit_intercept)
    problem = model.problem.with_lam(0.1 * model.alpha_max * model.sequence_weights)
    rng = np.random.default_rng(seed)
    B = problem.null_coefficients()
    B = B + 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(B.shape)
    B[FREE] = 0.0
    certificate = problem.certify(B)
    theta, X = certificate.theta, make_data(loss)[0]
    basis = np.column_stack([X[:, FREE], np.ones(N)]) if fit_intercept else X[:, FREE]
    size = np.linalg.norm(basis, axis=0)[:, None] * np.linalg.norm(theta) + 1e-300
    assert np.abs(basis.T @ theta / size).max() < 1e-12
    assert go.owl_dual_norm(np.delete(X, FREE, axis=1).T @ theta, problem.lam[:-3]) <= 1 + 1e-9
    minimum = solve(model, 0.1 * model.alpha_max)
    assert certificate.dual <= minimum.primal + 1e-12
    assert certificate.gap >= certificate.primal - minimum.primal - 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_penalized_is_selected_from_alpha_max_up(loss):
    model = make_model(loss)
    for factor in (1.0, 1 + 1e-13, 1 + 1e-12, 1 + 1e-10, 3.0):
        result = solve(model, factor * model.alpha_max)
        assert list(result.support) == list(FREE)
        assert result.n_iter == 1
        assert result.gap < 1e-9 * model.problem.null_loss  # the rounding of a basis of nearly equal columns
    below = solve(model, (1 - 1e-4) * model.alpha_max)
    assert len(below.support) > len(FREE)


@pytest.mark.parametrize("loss", LOSSES)
def test_screening_does_not_change_the_answer_and_spares_unpenalized_columns(loss):
    model = make_model(loss)
    screened, plain = (solve(model, 0.5 * model.alpha_max, screening=rule) for rule in ("safe", "none"))
    assert np.isin(FREE, screened.active).all()
    assert (screened.screened_at[FREE] == -1).all()
    assert len(screened.active) < D
    assert not screened.clusters[FREE].any()
    assert abs(screened.primal - plain.primal) <= screened.gap + plain.gap
    proved = np.setdiff1d(np.arange(D), screened.active)
    assert not plain.B[proved].any()


def test_least_squares_on_unpenalized_columns_is_the_null_model():
    X, Y, weight = make_data("squared")
    model = make_model("squared")
    root = np.sqrt(weight / weight.sum())[:, None]
    basis = np.column_stack([X[:, FREE], np.ones(N)])
    coefficients = np.linalg.lstsq(root * basis, root * Y, rcond=None)[0]
    assert model.problem.null_loss == pytest.approx(0.5 * np.sum((root * (Y - basis @ coefficients)) ** 2), rel=1e-10)
    result = solve(model, model.alpha_max)
    np.testing.assert_allclose(result.B[FREE], coefficients[:-1], atol=1e-7 * np.abs(coefficients).max())


def test_warm_start_with_coefficients_of_unpenalized_columns():
    model = make_model("multinomial")
    first = solve(model, 0.2 * model.alpha_max)
    start = model.start(first.B.T, first.intercept)
    solves = model.continuation(check_settings("auto", "safe", 1e-9, 100), start=start)
    again = solves.solve(model.sequence_weights, 0.2 * model.alpha_max)
    assert (again.status, again.n_iter) == ("converged", 1)


def test_columns_that_separate_the_classes_are_refused():
    X, Y, _ = make_data("multinomial")
    X = X.copy()
    X[:, 0] = Y.argmax(axis=1)
    with pytest.raises(ValueError, match="tell the classes apart"):
        build_model(X, (Y[:, :1] == [[1.0, 0.0]]).astype(float), loss="multinomial", unpenalized=np.array([0]))


def with_free_column(column):
    X, Y, _ = make_data("multinomial")
    return np.column_stack([X, column]), Y


def rare_category(labels):
    """Three samples of it, all of one class: its coefficient there is best at infinity."""
    column = np.zeros(N)
    column[np.flatnonzero(labels == 1)[:3]] = 1.0
    return column


QUASI_SEPARATING = {
    "a rare category": rare_category,
    "one sample": lambda labels: (np.arange(N) == 7).astype(float),
    "positive for one class only": lambda labels: np.where(labels == 2, np.arange(N) % 3, -(np.arange(N) % 2)),
}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", QUASI_SEPARATING)
def test_columns_without_a_finite_optimum_are_warned_about(name, fit_intercept):
    """By paths and by estimators, once; the fit is proved all the same."""
    labels = make_data("multinomial")[1].argmax(axis=1)
    X, _ = with_free_column(QUASI_SEPARATING[name](labels))
    settings = {"unpenalized": [0, D], "fit_intercept": fit_intercept}
    message = r"unpenalized columns \(indices 0, 25\) have no finite optimum.*Penalize such columns"
    for fit in (
        lambda: go.group_owl_path(X, labels, loss="multinomial", alphas=3, eps=0.1, **settings),
        lambda: go.GroupOWLClassifier(**settings).fit(X, labels),
        lambda: go.GroupOWLClassifierCV(alphas=3, eps=0.1, cv=2, **settings).fit(X, labels),
    ):
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            fitted = fit()
        assert [item.filename for item in caught] == [__file__]
    assert fitted.solve_result_.converged


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_columns_with_a_finite_optimum_are_not(noise, seed):
    """However well they tell classes apart: two samples of either class on the wrong side keep coefficients finite."""
    rng = np.random.default_rng(seed)
    x, labels = rng.standard_normal(200), np.arange(200) % 2
    x = np.where(labels == 1, np.abs(x), -np.abs(x)) / noise
    x[:4] *= -0.01
    X = np.column_stack([x, rng.standard_normal((200, 3))])
    model = build_model(X, np.eye(2)[labels], loss="multinomial", unpenalized=np.array([0]))
    assert model.problem.unpenalized.has_minimum


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_classes_have_mean_zero(solver):
    model = make_model("multinomial")
    result = solve(model, 0.2 * model.alpha_max, solver)
    assert np.abs(result.B.sum(axis=1)).max() < 1e-12 * np.abs(result.B).max() * Q
    assert abs(result.intercept.sum()) < 1e-12 * np.abs(result.intercept).max() * Q


@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_that_overflow_prove_nothing(loss):
    model = make_model(loss)
    problem = model.problem.with_lam(0.1 * model.alpha_max * model.sequence_weights)
    for value in (np.nan, np.inf, 1e200):
        B = problem.null_coefficients()
        B[0] = value
        with np.errstate(all="ignore"):
            certificate = problem.certify(B)
        assert certificate.gap == np.inf


# Blocks that are hard to span ---------------------------------------------------------------------------


def least_squares_loss(columns, y):
    """Of a constant and well-conditioned columns that span the same as the unpenalized ones."""
    E = np.column_stack([np.ones(len(y)), columns])
    return 0.5 * np.mean((y - E @ np.linalg.lstsq(E, y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-7, 1e-9])
def test_nearly_equal_unpenalized_columns_keep_their_difference(distance):
    """The difference of two columns explains the target, however small it is beside them."""
    rng = np.random.default_rng(0)
    u, z = rng.standard_normal((2, 60))
    X = np.column_stack([u, u + distance * z, rng.standard_normal((60, 5))])
    y = z + 0.1 * rng.standard_normal(60)
    model = build_model(X, y, unpenalized=np.array([0, 1]))
    expected = least_squares_loss(np.column_stack([u, (X[:, 1] - X[:, 0]) / distance]), y)
    result = solve(model, model.alpha_max, tol=1e-6)
    assert abs(result.primal - expected) <= result.gap + 1e-14
    assert result.gap < 1e-3 * expected


def test_powers_of_years_are_spanned():
    rng = np.random.default_rng(0)
    years = np.arange(1980.0, 2024.0)
    x = (years - years.mean()) / 20
    y = x**4 - x**2 + 0.1 * rng.standard_normal(len(x))
    X = np.column_stack([years, years**2, years**3, years**4, rng.standard_normal((len(x), 3))])
    model = build_model(X, y, unpenalized=np.arange(4))
    assert model.problem.null_loss == pytest.approx(
        least_squares_loss(np.column_stack([x, x**2, x**3, x**4]), y), rel=1e-3
    )


def test_what_is_left_of_a_penalized_column_counts_however_little_it_is():
    rng = np.random.default_rng(0)
    u, z = rng.standard_normal((2, 60))
    X = np.column_stack([u, 1e11 * u + z, rng.standard_normal((60, 3))])
    y = z + 0.01 * rng.standard_normal(60)
    model = build_model(X, y, unpenalized=np.array([0]))
    result = solve(model, 0.05, tol=1e-6)
    assert result.screened_at[1] == -1
    assert result.B[1, 0] == pytest.approx(0.95, abs=0.05)
    assert result.primal < 0.1


@pytest.mark.parametrize("loss", LOSSES)
def test_an_unpenalized_constant_column_is_an_intercept(loss):
    X, Y, _ = make_data(loss)
    X = np.column_stack([np.ones(N), X])
    settings = {"loss": loss, "standardize": True}
    model = build_model(X, Y, fit_intercept=False, unpenalized=np.array([0]), **settings)
    other = build_model(X[:, 1:], Y, fit_intercept=True, **settings)
    assert model.problem.null_loss == pytest.approx(other.problem.null_loss, rel=1e-12)
    alpha = 0.3 * other.alpha_max
    found, expected = solve(model, alpha), solve(other, alpha)
    assert found.primal == pytest.approx(expected.primal, abs=found.gap + expected.gap)
    np.testing.assert_allclose(found.B[0], expected.intercept, atol=1e-3 * np.abs(expected.intercept).max())


def test_targets_that_unpenalized_columns_explain_count_in_rounding():
    """What is left of 1e12 after a projection carries the rounding of 1e12."""
    X, Y, _ = make_data("squared")
    y = 1e12 * X[:, 0] + Y[:, 0]
    exact = build_model(X, Y[:, 0], unpenalized=np.array([0]))
    model = build_model(X, y, unpenalized=np.array([0]))
    alpha = 0.3 * exact.alpha_max
    found, expected = solve(model, alpha, tol=1e-9), solve(exact, alpha, tol=1e-9)
    assert abs(found.primal - expected.primal) <= found.gap + expected.gap


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_unpenalized_coefficients_are_solved_to_machine_precision(fit_intercept, sparse):
    """However loose the tolerance, the gradient along unpenalized columns and the constant vanishes."""
    case = make_case(78, n=90, d=30, q=3, loss="multinomial", sparse=sparse, weighted=True, fraction=0.3)
    free = [2, 11]
    fit = go.group_owl_path(
        case.X, case.Y, loss="multinomial", alphas=[0.02], tol=1e-3, fit_intercept=fit_intercept,
        sample_weight=case.sample_weight, unpenalized=free,
    )  # fmt: skip
    X = np.asarray(case.X.toarray() if sparse else case.X)
    Z = X @ fit.coefs[:, :, 0].T + fit.intercepts[:, 0]
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    weight = case.sample_weight / case.sample_weight.sum()
    rest = weight[:, None] * (P - case.Y)
    assert np.abs(X[:, free].T @ rest).max() <= 1e-11
    if fit_intercept:
        assert np.abs(rest.sum(axis=0)).max() <= 1e-11


def multinomial_minimum(X, labels, weight):
    """Smallest weighted log-loss of one column and an intercept for two classes, by a trusted optimizer."""
    sign = np.where(np.asarray(labels) == 1, 1.0, -1.0)
    share = weight / weight.sum()

    def loss(coefficients):
        return float(share @ np.logaddexp(0.0, -sign * (X[:, 0] * coefficients[0] + coefficients[1])))

    starts = [(a, b) for a in (-30.0, 0.0, 30.0) for b in (-12.0, 0.0, 12.0)]
    return min(minimize(loss, start, method="Nelder-Mead", options={"fatol": 1e-14}).fun for start in starts)


def test_a_null_model_is_proved_by_a_dual_value_only():
    """Newton steps along the unpenalized column once jumped to where no probability was left to come back by."""
    X = np.array([[0.2, 0.9], [-0.7, 0.2], [0.1, 1.4], [0.1, 0.1]])
    y, weight = [1, 1, 1, 0], np.array([1e-3, 0.1, 1e-5, 1e3])
    model = go.GroupOWLClassifier(1.0, unpenalized=[0]).fit(X, y, sample_weight=weight)  # without a warning
    best = multinomial_minimum(X, y, weight)
    assert best == pytest.approx(1.76e-5, rel=0.01)
    assert model.solve_result_.primal <= best + model.dual_gap_
    assert model.verify(X, y, sample_weight=weight)


@pytest.mark.parametrize("seed", range(60))
def test_null_models_with_weights_of_all_sizes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    X, y = rng.standard_normal((n, 2)).round(1), rng.integers(0, 2, n)
    y[:2] = [0, 1]
    weight = 10.0 ** rng.uniform(-5, 3, n)
    model = go.GroupOWLClassifier(10.0, unpenalized=[0])
    if min(X[y == 1, 0]) > max(X[y == 0, 0]) or max(X[y == 1, 0]) < min(X[y == 0, 0]):
        with pytest.raises(ValueError, match="tell the classes apart"):
            model.fit(X, y, sample_weight=weight)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weight)
    assert model.solve_result_.primal - multinomial_minimum(X, y, weight) <= model.dual_gap_ + 1e-13


def test_basis_is_orthogonal_to_the_constant():
    """However far from zero the columns are: what rounding leaves of their means must not be blown up by mixing."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((8, 3)), rng.standard_normal((8, 2))
    X[:, 1] = 1e3 * X[:, 1] - 1e12
    w = 10.0 ** rng.uniform(-8, 8, 8)
    problem = build_model(X, Y, sample_weight=w, unpenalized=np.array([1, 2])).problem
    Q, w = problem.unpenalized.basis.Q, problem.samples.w[:, 0]
    np.testing.assert_allclose(w @ Q / np.sqrt(w.sum()), 0.0, atol=1e-9)
    np.testing.assert_allclose(Q.T @ (w[:, None] * Q), np.eye(2), atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_folds_in_which_an_unpenalized_column_is_constant(kind):
    """It explains nothing there: the folds are those without it."""
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((40, 6)), rng.standard_normal((40, 3))
    X[:, 2] = 1.0
    search = go.GroupOWLRegressorCV(alphas=8, eps=0.05, cv=4, unpenalized=[2], weights="constant").fit(kind(X), Y)
    alone = go.GroupOWLRegressorCV(alphas=search.alphas_, cv=4, weights="constant").fit(np.delete(X, 2, axis=1), Y)
    np.testing.assert_allclose(search.score_path_, alone.score_path_, rtol=1e-3)


def test_local_bounds_when_no_penalized_column_is_left():
    """Screening may remove all of them, and a later certificate is still judged."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 4)), rng.integers(0, 3, (20, 2)).astype(float)
    problem = build_problem(X, Y, np.ones(4), loss="poisson", fit_intercept=True, unpenalized=np.arange(2))
    bare = problem.restrict(np.zeros(0, dtype=np.intp))
    assert bare.upper_bounds(bare.certify(0.1 + bare.null_coefficients())).shape == (0,)
