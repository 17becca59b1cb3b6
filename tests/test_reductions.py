"""Special cases that other packages solve."""

import warnings

import numpy as np
import pytest
import sortedl1
from sklearn.linear_model import MultiTaskLasso

import groupowl as go
from support import lasso_logistic_regression, make_case


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_constant_weights_are_the_multi_task_lasso(fit_intercept):
    case = make_case(50, n=40, d=60, shape="constant", fit_intercept=fit_intercept)
    n = len(case.Y)
    peer = MultiTaskLasso(alpha=case.lam[0] / n, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
    peer.fit(case.X, case.Y)
    result = go.solve(**case.arguments(), tol=1e-12)
    assert result.primal == pytest.approx(case.objective(peer.coef_.T, peer.intercept_), rel=1e-9)
    np.testing.assert_allclose(result.B, peer.coef_.T, atol=1e-5)
    np.testing.assert_allclose(result.intercept, peer.intercept_, atol=1e-5)


@pytest.mark.parametrize("shape", ["oscar", "bh", "linear"])
def test_one_task_is_slope(shape):
    """sortedl1 minimizes 1/(2n)||y - Xb||^2 + alpha sum lam_i |b|_[i]."""
    case = make_case(51, n=40, d=60, q=1, shape=shape)
    n = len(case.Y)
    peer = sortedl1.Slope(
        alpha=1.0 / n,
        lam=case.lam,
        fit_intercept=False,
        centering="none",
        scaling="none",
        tol=1e-10,
        max_iter=1_000_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the peer, not ours
        peer.fit(case.X, case.Y[:, 0])
    B = np.asarray(peer.coef_).reshape(-1, 1)
    result = go.solve(**case.arguments(), tol=1e-12)
    assert result.primal == pytest.approx(case.objective(B), rel=1e-8)
    np.testing.assert_allclose(result.B, B, atol=1e-4)


def test_two_classes_are_binary_logistic():
    """Softmax with two columns: coefficient difference, at lam / sqrt(2) per coefficient."""
    case = make_case(52, n=60, d=10, q=2, loss="multinomial", shape="constant", fit_intercept=True)
    result = go.solve(**case.arguments(), tol=1e-12)
    peer = lasso_logistic_regression(C=np.sqrt(2) / case.lam[0], tol=1e-12, max_iter=200_000)
    peer.fit(case.X, case.Y[:, 1])
    coefficients = np.column_stack([-peer.coef_[0] / 2, peer.coef_[0] / 2])
    intercept = np.array([-peer.intercept_[0] / 2, peer.intercept_[0] / 2])
    assert result.primal == pytest.approx(case.objective(coefficients, intercept), rel=1e-8)
    np.testing.assert_allclose(result.B[:, 1] - result.B[:, 0], peer.coef_[0], atol=1e-4)
    np.testing.assert_allclose(np.diff(result.intercept), peer.intercept_, atol=1e-4)
