"""The conversions of docs/migration do what its pages say.

scikit-learn and sortedl1 are fitted beside us. The objectives that growl-reg and glmnet document are minimized by a
conic solver, as they are written there.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import sortedl1
from sklearn.linear_model import Lasso, LassoCV, MultiTaskElasticNet, MultiTaskLasso, MultiTaskLassoCV

import groupowl as go
from r_support import run_r
from support import lasso_logistic_regression

FOLDER = Path(__file__).parents[1] / "docs" / "migration"
TIGHT = 1e-10


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


growl, slope, sklearn_, glmnet = map(load, ["from_growl_reg", "from_sortedl1", "from_scikit_learn", "from_glmnet"])


def make_data(seed=0, n=40, d=12, q=3):
    """Columns of different scale, away from zero, so that scalings and intercepts matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 3.0, d) + rng.uniform(-1.0, 1.0, d)
    Y = X[:, :4] @ rng.standard_normal((4, q)) + rng.standard_normal((n, q)) + 2.0
    return X, Y


def minimize(objective):
    """The minimum of a convex program."""
    program = cp.Problem(cp.Minimize(objective))
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return program.value


def sorted_norms(B, w):
    """``sum_i w_i ||B_[i],:||`` for weights that do not rise: a sum of sums of the k largest norms."""
    drops = np.asarray(w) - np.append(w[1:], 0.0)
    return sum(drop * cp.sum_largest(cp.norm(B, 2, axis=1), k + 1) for k, drop in enumerate(drops) if drop > 0)


# The tables ---------------------------------------------------------------------------------------------

CALLS = {
    "sortedl1": [sortedl1.Slope, sortedl1.Slope.path, sortedl1.Slope.cv],
    "scikit_learn": [MultiTaskLasso, MultiTaskLassoCV, Lasso, LassoCV],
}


@pytest.mark.parametrize("page", CALLS)
def test_every_parameter_of_the_other_package_is_on_the_page(page):
    """Parameter by parameter, as the index says; packages that are not installed here are not looked at."""
    code = " ".join(re.findall(r"``(.+?)``", (FOLDER / f"{page}.rst").read_text(encoding="utf-8")))
    for call in CALLS[page]:
        parameters = inspect.signature(call).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        missing = [name for name in names if name not in ("self", "X", "y") and not re.search(rf"\b{name}\b", code)]
        assert missing == [], call


# growl-reg ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("lambda_1", "lambda_2", "ramp_size"), [(0.3, 0.0, 0.0), (0.1, 0.05, 1.0), (0.2, 0.1, 0.3), (0.0, 0.08, 1.0)]
)
def test_growl_reg(lambda_1, lambda_2, ramp_size, fit_intercept):
    X, Y = make_data()
    n, p = X.shape
    ours = growl.regressor(p, lambda_1, lambda_2, ramp_size, fit_intercept, tol=TIGHT).fit(X, Y)
    # Its documentation: centered data for an intercept, and the weights one by one.
    Xc, Yc = (X - X.mean(axis=0), Y - Y.mean(axis=0)) if fit_intercept else (X, Y)
    ramp = int(np.ceil(ramp_size * p))
    w = [lambda_1 + lambda_2 * (ramp - i + 1) if i <= ramp else lambda_1 for i in range(1, p + 1)]
    B = cp.Variable((p, 3))
    minimum = minimize(cp.sum_squares(Yc - Xc @ B) / (2 * n) + sorted_norms(B, np.array(w)))
    assert ours.solve_result_.primal == pytest.approx(minimum, abs=1e-6)
    np.testing.assert_allclose(ours.coef_.T, B.value, atol=1e-4)
    expected = Y.mean(axis=0) - X.mean(axis=0) @ ours.coef_.T if fit_intercept else 0.0
    np.testing.assert_allclose(ours.intercept_, expected, atol=1e-10)


def test_growl_reg_oscar_is_one_step_above_ours():
    np.testing.assert_allclose(growl.growl_weights(7, 0.3, 0.2, 1.0), go.oscar_lam(7, 0.3 + 0.2, 0.2))


# sortedl1 -----------------------------------------------------------------------------------------------


def fitted_slope(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the peer, not ours
        return sortedl1.Slope(tol=1e-11, max_iter=1_000_000, **parameters).fit(X, y)


SEQUENCES = [
    {"lambda_type": "bh", "q": 0.2},
    {"lambda_type": "gaussian", "q": 0.05},
    {"lambda_type": "oscar", "theta1": 0.5, "theta2": 0.1},
    {"lambda_type": "lasso"},
    {"lam": np.linspace(3.0, 1.0, 12)},
]


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.get("lambda_type", "given"))
def test_sortedl1_regression(sequence, standardize):
    X, Y = make_data()
    scaling = {"centering": "mean", "scaling": "sd"} if standardize else {}
    theirs = fitted_slope(X, Y[:, 0], alpha=0.05, **sequence, **scaling)
    ours = slope.regressor(X, alpha=0.05, standardize=standardize, options={"tol": TIGHT}, **sequence).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.alpha_ * ours.weights_, 0.05 * np.ravel(theirs.lambda_), rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert len(ours.selected_features_) > 0


def test_sortedl1_two_classes():
    X, Y = make_data()
    labels = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    theirs = fitted_slope(X, labels, alpha=0.02, loss="logistic")
    ours = slope.classifier(X, alpha=0.02, options={"tol": TIGHT}).fit(X, labels)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-6)


# scikit-learn -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_multi_task_lasso(fit_intercept):
    X, Y = make_data()
    theirs = MultiTaskLasso(0.4, fit_intercept=fit_intercept, tol=TIGHT).fit(X, Y)
    ours = sklearn_.multi_task_lasso(0.4, fit_intercept=fit_intercept, tol=TIGHT).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_sample_weights_mean_the_same():
    X, Y = make_data()
    sample_weight = np.random.default_rng(6).uniform(0.5, 2.0, len(X))
    models = Lasso(0.4, tol=TIGHT), sklearn_.multi_task_lasso(0.4, tol=TIGHT)
    theirs, ours = (model.fit(X, Y[:, 0], sample_weight=sample_weight) for model in models)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_lasso_for_one_target():
    X, Y = make_data()
    theirs, ours = Lasso(0.4, tol=TIGHT).fit(X, Y[:, 0]), sklearn_.multi_task_lasso(0.4, tol=TIGHT).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("l1_ratio", [0.2, 0.9])
def test_elastic_net(l1_ratio):
    X, Y = make_data()
    theirs = MultiTaskElasticNet(0.4, l1_ratio=l1_ratio, tol=TIGHT, max_iter=100_000).fit(X, Y)
    ours = sklearn_.multi_task_elastic_net(0.4, l1_ratio=l1_ratio, tol=TIGHT).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_positive_lasso():
    X, Y = make_data()
    theirs = Lasso(0.1, positive=True, tol=TIGHT).fit(X, Y[:, 0])
    ours = sklearn_.multi_task_lasso(0.1, positive=True, tol=TIGHT).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.coef_.any()


def test_tolerances_mean_the_same():
    """scikit-learn stops at a gap of tol ||Y||^2 / n, groupowl at 2 tol times half of that; Y is centered."""
    X, Y = make_data()
    centered = ((Y - Y.mean(axis=0)) ** 2).sum() / len(Y)
    for tol in (1e-2, 1e-4):
        theirs, ours = MultiTaskLasso(0.01, tol=tol).fit(X, Y), sklearn_.multi_task_lasso(0.01, tol=tol).fit(X, Y)
        assert theirs.dual_gap_ <= tol * centered
        assert ours.verify(X, Y).goal == pytest.approx(tol * centered)


def test_multi_task_lasso_cv():
    X, Y = make_data(n=60)
    theirs = MultiTaskLassoCV(alphas=20, eps=0.01, tol=1e-8).fit(X, Y)
    ours = sklearn_.multi_task_lasso_cv(alphas=20, eps=0.01, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_[: len(ours.alphas_)], rtol=1e-10)
    # Folds are fitted to a relative gap of 1e-4, whose root bounds how far predictions, and scores, can be off.
    np.testing.assert_allclose(-ours.score_path_, theirs.mse_path_[: len(ours.alphas_)], rtol=2e-2)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_logistic_regression_of_two_classes():
    X, Y = make_data()
    labels = Y[:, 0] > np.median(Y[:, 0])
    theirs = lasso_logistic_regression(C=0.5, tol=1e-10, max_iter=200_000)
    theirs.fit(X, labels)
    ours = sklearn_.logistic_regression(len(X), C=0.5, tol=TIGHT).fit(X, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


# glmnet -------------------------------------------------------------------------------------------------


def glmnet_penalty(B, X, w, standardize=True, penalty_factor=None, alpha=1.0, **_):
    """``sum_j v_j (a ||B_j|| + (1 - a)/2 ||B_j||^2)``, factors rescaled to sum p, on the scale of the penalty."""
    p = X.shape[1]
    v = np.ones(p) if penalty_factor is None else np.array(penalty_factor, dtype=float)
    v *= p / v.sum()
    deviation = np.sqrt(w @ (X - w @ X) ** 2) if standardize else np.ones(p)
    squares = cp.sum(cp.multiply((v * deviation**2)[:, None], cp.square(B)))
    return alpha * (v * deviation) @ cp.norm(B, 2, axis=1) + 0.5 * (1.0 - alpha) * squares


GLMNET = [
    {},
    {"standardize": False},
    {"intercept": False},
    {"penalty_factor": [0.0, 0.0, *[1.0] * 10]},
    {"penalty_factor": [0.0, *[2.0] * 11], "standardize": False},
    {"penalty_factor": np.linspace(0.0, 2.0, 12).tolist()},
    {"alpha": 0.3, "standardize": False},
    {"alpha": 0.6, "penalty_factor": [0.0, *[1.0] * 11]},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", GLMNET, ids=str)
def test_glmnet_mgaussian(options, weighted):
    X, Y = make_data(1)
    n, p = X.shape
    sample_weight = np.random.default_rng(2).uniform(0.5, 2.0, n) if weighted else None
    w = np.full(n, 1 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    ours = glmnet.mgaussian(0.3, tol=TIGHT, **options).fit(X, Y, sample_weight=sample_weight)
    B, b0 = cp.Variable((p, 3)), cp.Variable((1, 3))
    Z = X @ B + (np.ones((n, 1)) @ b0 if options.get("intercept", True) else 0.0)
    loss = cp.sum(cp.multiply(w, cp.sum(cp.square(Y - Z), axis=1))) / 2
    penalty = glmnet_penalty(B, X, w, **options)
    assert ours.solve_result_.primal == pytest.approx(minimize(loss + 0.3 * penalty), abs=1e-6)
    np.testing.assert_allclose(ours.coef_.T, B.value, atol=1e-4)


def test_glmnet_standardized_response():
    X, Y = make_data(3)
    Y = Y * [1.0, 10.0, 0.1]
    n, p = X.shape
    scaled, deviation = glmnet.standardized_response(Y)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0)
    ours = glmnet.mgaussian(0.2, tol=TIGHT).fit(X, scaled)
    # In the units of Y: residuals, and the norms of rows, are divided by the deviations.
    B, b0 = cp.Variable((p, 3)), cp.Variable((1, 3))
    residual = (Y - X @ B - np.ones((n, 1)) @ b0) @ np.diag(1 / deviation)
    penalty = glmnet_penalty(B @ np.diag(1 / deviation), X, np.full(n, 1 / n))
    minimum = minimize(cp.sum_squares(residual) / (2 * n) + 0.2 * penalty)
    assert ours.solve_result_.primal == pytest.approx(minimum, abs=1e-6)
    np.testing.assert_allclose(ours.coef_.T * deviation, B.value, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", GLMNET, ids=str)
def test_glmnet_grouped_multinomial(options, n_classes):
    X, Y = make_data(4, n=60)
    n, p = X.shape
    labels = (Y + 4 * np.random.default_rng(5).standard_normal(Y.shape))[:, :n_classes].argmax(axis=1)
    ours = glmnet.grouped_multinomial(0.03, tol=TIGHT, **options).fit(X, labels)
    B, b0 = cp.Variable((p, n_classes)), cp.Variable((1, n_classes))
    Z = X @ B + (np.ones((n, 1)) @ b0 if options.get("intercept", True) else 0.0)
    log_likelihood = cp.sum(cp.multiply(np.eye(n_classes)[labels], Z)) - cp.sum(cp.log_sum_exp(Z, axis=1))
    penalty = glmnet_penalty(B, X, np.full(n, 1 / n), **options)
    assert ours.solve_result_.primal == pytest.approx(minimize(-log_likelihood / n + 0.03 * penalty), abs=1e-6)
    penalized = np.flatnonzero(np.asarray(options.get("penalty_factor", np.ones(p))) > 0)
    expected = B.value.T if n_classes > 2 else np.diff(B.value.T, axis=0)
    np.testing.assert_allclose(ours.coef_[:, penalized], expected[:, penalized], atol=1e-3)


def test_unequal_factors_with_a_ridge_are_refused():
    with pytest.raises(ValueError, match="penalty_factor: with alpha < 1 only one positive number"):
        glmnet.mgaussian(0.1, alpha=0.5, penalty_factor=[1.0, 2.0])


#: Arguments of R, options of ours, and whether there is an offset.
BY_R = {
    "ridge": ("lambda=0.3, alpha=0.5", {"alpha": 0.5}, False),
    "factors": ("lambda=0.3, penalty.factor=c(0, 1, Inf, 2, 3, 1)", {"penalty_factor": [0, 1, np.inf, 2, 3, 1]}, False),
    "offset": ("lambda=0.3, offset=O", {}, True),
    "limits": ("lambda=0.3, lower.limits=0", {"positive": True}, False),
}


@pytest.mark.parametrize("name", BY_R)
def test_what_r_glmnet_says(name, tmp_path):
    asked, options, has_offset = BY_R[name]
    X, Y = make_data(7, d=6)
    offset = np.random.default_rng(8).standard_normal(Y.shape)
    for letter, values in (("X", X), ("Y", Y), ("O", offset)):
        np.savetxt(tmp_path / f"{letter}.txt", values)
    script = f"""
    suppressMessages(library(glmnet))
    X <- as.matrix(read.table("X.txt")); Y <- as.matrix(read.table("Y.txt")); O <- as.matrix(read.table("O.txt"))
    fit <- glmnet(X, Y, family="mgaussian", thresh=1e-14, {asked})
    for (column in coef(fit)) cat(format(as.numeric(column), digits=15), "\\n")
    """
    theirs = np.reshape(run_r(script, tmp_path, "glmnet"), (3, 7))
    ours = glmnet.mgaussian(0.3, tol=TIGHT, **options).fit(X, Y, offset=offset if has_offset else None)
    np.testing.assert_allclose(ours.coef_, theirs[:, 1:], atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs[:, 0], atol=1e-4)


def make_targets(family):
    """Data, and targets of a family, with a few features that matter."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((80, 6)) * rng.uniform(0.5, 3.0, 6)
    Z = X[:, 0] / X[:, 0].std() - 0.8 * X[:, 3] / X[:, 3].std()
    if family == "gaussian":
        return X, 3.0 * Z + 4.0 * rng.standard_normal(80) + 5.0
    if family == "binomial":
        return X, (Z + rng.logistic(size=80) > 0).astype(float)
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * Z + 0.5)).astype(float)
    times = rng.exponential(np.exp(-Z)).round(2) + 0.01  # with ties
    return X, np.column_stack([times < 1.0, np.minimum(times, 1.0)])


def converted_model(family, y, **options):
    """Our estimator for a family with one response, at lambda 0.1."""
    settings = {"tol": TIGHT, **options}
    return glmnet.gaussian(0.1, y, **settings) if family == "gaussian" else getattr(glmnet, family)(0.1, **settings)


@pytest.mark.parametrize("alpha", [1.0, 0.4])
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_glmnet_families_of_one_response(family, alpha):
    X, y = make_targets(family)
    n, p = X.shape
    ours = converted_model(family, y, alpha=alpha).fit(X, y)
    b, b0 = cp.Variable((p, 1)), cp.Variable()
    z = X @ b[:, 0] + b0
    losses = cp.logistic(z) if family == "binomial" else cp.exp(z)
    penalty = glmnet_penalty(b, X, np.full(n, 1 / n), alpha=alpha)
    minimum = minimize(cp.sum(losses - cp.multiply(y, z)) / n + 0.1 * penalty)
    assert ours.solve_result_.primal == pytest.approx(minimum, abs=1e-6)
    np.testing.assert_allclose(np.ravel(ours.coef_), b.value[:, 0], atol=1e-4)


@pytest.mark.parametrize("alpha", [1.0, 0.4])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("family", ["gaussian", "gaussian without intercept", "binomial", "poisson", "cox"])
def test_what_r_glmnet_says_of_one_response(family, standardize, alpha, tmp_path):
    family, _, left_out = family.partition(" without ")
    X, y = make_targets(family)
    np.savetxt(tmp_path / "X.txt", X)
    np.savetxt(tmp_path / "y.txt", y)
    targets = "survival::Surv(y[, 2], y[, 1])" if family == "cox" else "y[, 1]"
    options = f"thresh=1e-14, lambda=0.1, alpha={alpha}, standardize={str(standardize).upper()}"
    without = {left_out: False} if left_out else {}
    options += f", {left_out}=FALSE" if left_out else ""
    script = f"""
    suppressMessages(library(glmnet))
    X <- as.matrix(read.table("X.txt")); y <- as.matrix(read.table("y.txt"))
    fit <- glmnet(X, {targets}, family="{family}", {options})
    cat(format(as.numeric(coef(fit)), digits=15))
    """
    theirs = np.array(run_r(script, tmp_path, "glmnet"))
    ours = converted_model(family, y, alpha=alpha, standardize=standardize, **without).fit(X, y)
    np.testing.assert_allclose(np.ravel(ours.coef_), theirs[-6:], atol=1e-4)
    assert len(ours.selected_features_) > 0
    if family != "cox":
        np.testing.assert_allclose(np.ravel(ours.intercept_), theirs[:1], atol=1e-4)
