"""Steps of a fold that are not solved are proved nevertheless."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from groupowl.model import build_model
from groupowl.path.follower import Follower, resolve_alphas
from groupowl.problem import options_of
from groupowl.solvers import WorkingSet, check_settings

TOL = 1e-4


def make_model(loss="squared", n=40, d=6, q=2, seed=0, **settings):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0
    Z = X[:, :3] @ rng.standard_normal((3, q)) + rng.standard_normal((n, q))
    Y = Z if loss == "squared" else np.eye(q)[Z.argmax(axis=1)]
    return build_model(X, Y, loss=loss, **settings)


def follower_of(model, **settings):
    solver = WorkingSet(**settings)
    return Follower(model, resolve_alphas(60, 1e-3, model), check_settings(solver, "safe", TOL, 10_000))


# With a first size of one's own the compiled kernel is not asked.
NO_KERNEL = {"first_size": 50}


def settings_of(screening, tol, callback=None):
    return check_settings(WorkingSet(), screening, tol, 10_000, callback, random_state=0)


CASES = [("squared", 1), ("squared", 3), ("multinomial", 2), ("multinomial", 3)]


@pytest.mark.parametrize(("loss", "q"), CASES)
@pytest.mark.parametrize("d", [6, 60])
@pytest.mark.parametrize("settings", [NO_KERNEL, {}], ids=["lines", "any"])
def test_every_step_meets_the_tolerance_by_a_certificate_of_its_own(loss, q, d, settings):
    model = make_model(loss, q=q, d=d)
    alphas, follower = resolve_alphas(60, 1e-3, model), follower_of(model, **settings)
    solutions = follower.follow()
    assert len(follower.solved) < 0.8 * len(alphas)
    assert follower.n_short == 0
    for alpha, solution in zip(alphas, solutions, strict=True):
        problem = model.problem.with_lam(alpha * model.sequence_weights)
        # Its own dual point is not the one that proved it, and may prove a little less.
        assert (
            problem.certify(problem.from_input(solution.coef(d), solution.intercept)).gap
            <= 3.0 * TOL * model.problem.null_loss
        )


def test_starts_between_solutions_keep_signs():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 20))
    Y = rng.poisson(np.exp(0.35 * X[:, :2] + 0.15 * X[:, 2:4])).astype(float)
    _, options = options_of(X, feature_groups=None, group_scale="size", penalty_factor=None, ridge=0.0, positive=True)
    n_short, lowest = 0, []
    for fold in range(4):
        rows = np.arange(90) % 4 != fold
        follower = follower_of(build_model(X[rows], Y[rows], loss="poisson", options=options))
        lowest += [solution.coef(20).min() for solution in follower.follow()]
        n_short += follower.n_short
    assert n_short == 0  # a parabola through coefficients near zero is below it
    assert min(lowest) >= 0.0


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_bend_bounds_the_distance_from_the_minimum_on_the_line(q, seed):
    """Far apart, so that patterns differ; the minimum in between is bounded from below by an accurate solve."""
    model = make_model(q=q, d=12, seed=seed)
    weights, top = model.sequence_weights, model.alpha_max
    solves = model.continuation(settings_of("none", 1e-10))
    ends = []
    for alpha in (0.6 * top, 0.05 * top):
        solves.solve(weights, alpha)
        ends.append((alpha, solves.B, solves.source, solves.certificate))
    (a0, B0, problem, start), (a1, B1, _, end) = ends
    bend = problem.interpolation_excess(start, end, a1 / a0)
    for s in (0.1, 0.5, 0.8):
        between = model.problem.with_lam(((1.0 - s) * a0 + s * a1) * weights)
        solves.solve(weights, (1.0 - s) * a0 + s * a1)
        primal = between.certify((1.0 - s) * B0 + s * B1).primal
        bound = (1.0 - s) * start.gap + s * end.gap + s * (1.0 - s) * bend
        assert primal - solves.certificate.primal <= bound + 1e-12 * primal
        assert bound < 0.5 * model.problem.null_loss  # and says something


def test_a_line_with_one_pattern_does_not_bend():
    """One task: solutions are linear in alpha, and the bound knows it."""
    model = make_model(q=1, d=4, seed=1)
    solves = model.continuation(settings_of("none", 1e-12))
    proofs = []
    for alpha in (0.011 * model.alpha_max, 0.01 * model.alpha_max):
        solves.solve(model.sequence_weights, alpha)
        proofs.append(solves.certificate)
    assert abs(solves.source.interpolation_excess(*proofs, 10 / 11)) < 1e-8 * model.problem.null_loss


def test_other_losses_have_no_bend():
    model = make_model("multinomial", q=3)
    certificate = model.problem.certify(model.problem.null_coefficients())
    assert model.problem.interpolation_excess(certificate, certificate, 0.5) == np.inf


def test_whole_lines_are_taken_without_certificates(monkeypatch):
    taken, original = [], Follower._proves_line

    def noted(self, first, last):
        found = original(self, first, last)
        taken.append(last - first - 1 if found else 0)
        return found

    monkeypatch.setattr(Follower, "_proves_line", noted)
    follower_of(make_model(), **NO_KERNEL).follow()
    assert sum(taken) > 30


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_a_solve_aside_leaves_no_trace(loss, fails):
    """The next solve starts where it would have started, whether the one in between ends or is interrupted."""
    model = make_model(loss, d=30)
    weights, settings = model.sequence_weights, settings_of("safe", TOL)
    plain, other = (model.continuation(settings, n_solves=4) for _ in range(2))
    for solves in (plain, other):
        for share in (0.5, 0.4):
            solves.solve(weights, share * model.alpha_max)
    start, before = model.problem.null_coefficients(), dict(vars(other))
    with pytest.raises(KeyboardInterrupt) if fails else nullcontext(), other.aside(start):
        assert other.B is start
        other.settings = settings_of("safe", TOL, interrupt if fails else None)
        other.solve(weights, 0.01 * model.alpha_max)
        assert other.B is not start
    assert {name for name, value in vars(other).items() if value is not before[name]} <= {"_null", "settings"}
    other.settings = settings
    wanted, found = (solves.solve(weights, 0.3 * model.alpha_max) for solves in (plain, other))
    np.testing.assert_array_equal(found.B, wanted.B)
    assert found.n_iter == wanted.n_iter


def interrupt(progress):
    raise KeyboardInterrupt
