"""Algorithm 1: steps, restarts, the paper's warm start."""

import itertools

import numpy as np
import pytest

import groupowl as go
from support import make_case

CASES = [
    {"loss": loss, "fit_intercept": intercept, "weighted": True}
    for loss, intercept in itertools.product(["squared", "multinomial"], [False, True])
]


@pytest.mark.parametrize("restart", ["screen", "gradient"])
@pytest.mark.parametrize("step", ["auto", "backtracking"])
@pytest.mark.parametrize("kind", CASES, ids=str)
def test_every_step_and_restart_reaches_the_minimum(kind, step, restart):
    case = make_case(40, n=30, d=80, **kind)
    reference = go.solve(**case.arguments(), tol=1e-10)
    result = go.solve(**case.arguments(), solver=go.APGD(step=step, restart=restart), tol=1e-8)
    assert result.converged
    assert abs(result.primal - reference.primal) <= result.gap + reference.gap


def test_a_number_is_the_step_itself():
    """With step 1 and an orthonormal design the first prox step is the solution."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((30, 10)))
    Y = rng.standard_normal((30, 2))
    lam = 0.3 * go.weights.oscar(10)
    result = go.solve(Q, Y, lam, solver=go.APGD(step=1.0, check_every=1), tol=1e-9)
    assert result.n_iter == 1
    np.testing.assert_allclose(result.B, go.owl_prox(Q.T @ Y, lam), atol=1e-12)


def test_momentum_is_nesterovs_and_not_the_step():
    """Errata (a): the convergence rate 2 L ||B*||^2 / (k + 1)^2 holds at every certificate."""
    case = make_case(41, n=40, d=60, fraction=0.05)
    minimum = go.solve(**case.arguments(), tol=1e-12)
    problem = case.problem()
    lipschitz = np.linalg.norm(case.X, 2) ** 2
    result = go.solve(**case.arguments(), solver=go.APGD(step=1 / lipschitz, check_every=1), screening="none", tol=1e-6)
    k = result.history.iteration[1:]
    bound = 2 * lipschitz * np.sum(minimum.B**2) / (k + 1) ** 2
    assert np.all(result.history.primal[1:] - minimum.primal <= bound + minimum.gap)
    assert problem.lipschitz() >= 0.98 * lipschitz


def test_gradient_restart_saves_iterations_on_a_badly_conditioned_problem():
    data = go.datasets.make_correlated_groups(80, 150, 3, correlation=0.95, random_state=0)
    lam = 0.05 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(150)
    iterations = {
        restart: go.solve(data.X, data.Y, lam, solver=go.APGD(restart=restart), screening="none").n_iter
        for restart in ("screen", "gradient")
    }
    assert iterations["gradient"] < iterations["screen"]


def test_screen_after_delays_the_first_test():
    case = make_case(42, n=30, d=200, fraction=0.6)
    early = go.solve(**case.arguments(), solver=go.APGD(check_every=1))
    late = go.solve(**case.arguments(), solver=go.APGD(check_every=1, screen_after=15))
    assert early.history.n_active[10] < 200
    assert np.all(late.history.n_active[:16] == 200)
    assert late.history.n_active[16] < 200
    assert abs(early.primal - late.primal) <= early.gap + late.gap


def test_screening_lowers_the_number_of_passes():
    data = go.datasets.make_correlated_groups(60, 1500, 3, unit_norm=True, random_state=1)
    lam = 0.4 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(1500)
    passes = {
        rule: go.solve(data.X, data.Y, lam, solver=go.APGD(), screening=rule).n_passes
        for rule in ("none", "paper", "safe")
    }
    assert passes["safe"] <= passes["paper"] < 0.6 * passes["none"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": "fixed"}, "step must be one of 'auto', 'backtracking'"),
        ({"step": 0.0}, "step must be a finite number above 0"),
        ({"step": -1.0}, "step must be a finite number above 0"),
        ({"restart": "never"}, "restart must be one of 'screen', 'gradient'; got 'never'"),
        ({"screen_after": -1}, "screen_after must be at least 0, got -1"),
        ({"check_every": 0}, "check_every must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        go.APGD(**settings)
