"""Warm-started solves along decreasing strengths."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from groupowl.path import solve_path
from groupowl.solvers import working_set
from groupowl.solvers.continuation import Extrapolation
from support import OpaqueDesign, make_case

KINDS = [
    {"loss": "squared"},
    {"loss": "squared", "fit_intercept": True, "weighted": True},
    {"loss": "squared", "n": 200, "d": 20, "fit_intercept": True},
    {"loss": "multinomial", "fit_intercept": True},
    {"loss": "multinomial", "sparse": True, "weighted": True},
]


def path_of(case, strengths, X=None, **settings):
    data = {"loss": case.loss, "fit_intercept": case.fit_intercept, "sample_weight": case.sample_weight}
    return solve_path(case.X if X is None else X, case.Y, "oscar", strengths=strengths, **data, **settings)


def strengths_of(case, n_strengths=12):
    data = {"loss": case.loss, "fit_intercept": case.fit_intercept, "sample_weight": case.sample_weight}
    return go.lam_max(case.X, case.Y, "oscar", **data) * np.geomspace(1.0, 0.02, n_strengths)


@pytest.mark.parametrize("solver", ["auto", "apgd"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_point_is_the_solution_of_its_own_problem(kind, solver):
    case = make_case(50, **{"n": 40, "d": 60, **kind})
    strengths = strengths_of(case)
    d = case.X.shape[1]
    results = path_of(case, strengths, solver=solver, tol=1e-8)
    for strength, result in zip(strengths, results, strict=True):
        alone = go.solve(**{**case.arguments(), "lam": strength * go.weights.oscar(d)}, tol=1e-8)
        assert result.converged
        assert abs(result.primal - alone.primal) <= result.gap + alone.gap
        active = np.flatnonzero(np.linalg.norm(alone.B, axis=1) > 1e-4)
        assert set(active) <= set(result.active)


def test_nothing_is_selected_at_lam_max_and_something_just_below():
    for n, d in [(40, 60), (300, 20)]:
        case = make_case(51, n=n, d=d, fit_intercept=True)
        top = strengths_of(case)[0]
        first, second = path_of(case, [top, 0.999 * top])
        assert (len(first.support), first.gap) == (0, 0.0)
        assert len(second.support) > 0


@pytest.mark.usefixtures("numpy_kernel")
def test_residuals_carry_over():
    """The certificate at the start of a point costs nothing: the residual is that of the last point."""
    data = go.datasets.make_correlated_groups(100, 2000, 5, random_state=0)
    strengths = go.lam_max(data.X, data.Y, "oscar") * np.geomspace(1.0, 0.3, 20)
    results = solve_path(data.X, data.Y, "oscar", strengths=strengths)
    assert sum(result.n_passes for result in results) < 1.8 * len(strengths)


def test_a_tall_path_is_one_pass():
    case = make_case(52, n=300, d=30, fit_intercept=True)
    results = path_of(case, strengths_of(case)[1:])
    assert results[0].n_passes == pytest.approx(1.0)
    assert sum(result.n_passes for result in results[1:]) == 0.0


def test_samples_stay_with_their_design():
    case = make_case(53, n=30, d=40)
    strengths = strengths_of(case, 5)
    plain, opaque = path_of(case, strengths), path_of(case, strengths, X=OpaqueDesign.of(case.X))
    for one, other in zip(plain, opaque, strict=True):
        assert abs(one.primal - other.primal) <= one.gap + other.gap + 1e-12 * one.primal


def test_extrapolation_follows_the_line_and_keeps_zero_rows():
    line = Extrapolation()
    assert line.at(1.0) is None
    line.add(3.0, np.array([[1.0, 0.0], [1.0, 1.0], [4.0, 0.0], [5.0, 5.0]]))
    assert line.at(1.0) is None
    line.add(2.0, np.array([[2.0, 1.0], [0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]))
    guess = line.at(1.5)
    np.testing.assert_allclose(guess, [[2.5, 1.5], [0.0, 0.0], [0.0, 0.0], [5.0, 5.0]])
    line.add(2.0, guess)
    assert line.at(1.0) is None  # the same strength twice is no line


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_paths_may_repeat_strengths_and_jump(loss):
    case = make_case(56, n=30, d=40, loss=loss)
    top = strengths_of(case)[0]
    strengths = top * np.array([1.0, 1.0, 0.5, 0.5, 0.5, 0.01, 0.0099])
    results = path_of(case, strengths)
    assert all(result.converged for result in results)
    assert abs(results[3].primal - results[4].primal) <= results[3].gap + results[4].gap


def test_the_extrapolation_is_nearer_than_the_last_solution():
    data = go.datasets.make_correlated_groups(80, 500, 4, random_state=0)
    strengths = go.lam_max(data.X, data.Y, "constant") * np.geomspace(1.0, 0.01, 60)
    results = solve_path(data.X, data.Y, "constant", strengths=strengths)
    line, distances = Extrapolation(), []
    for strength, result in zip(strengths, results, strict=True):
        if (guess := line.at(strength)) is not None:
            candidates = guess, line.points[-1][1]
            distances.append([_objective(data, B, strength) - result.dual for B in candidates])
        line.add(strength, result.B)
    guessed, last = np.array(distances).T
    assert np.mean(guessed < last) > 0.8
    assert np.median(guessed / last) < 0.25


@pytest.mark.usefixtures("numpy_kernel")
def test_inner_solves_start_from_the_extrapolation(monkeypatch):
    guesses, original = [], working_set.minimize

    def noted(*args, guess=None, **settings):
        guesses.append(guess is not None)
        return original(*args, guess=guess, **settings)

    monkeypatch.setattr(working_set, "minimize", noted)
    case = make_case(54, n=30, d=40)
    path_of(case, strengths_of(case, 6))
    assert sum(guesses) == 4  # the first round of every strength but the first two
    assert not guesses[0]  # of the second strength: the first selects nothing and needs no inner solve


def _objective(data, B, strength):
    return 0.5 * np.sum((data.Y - data.X @ B) ** 2) + strength * np.linalg.norm(B, axis=1).sum()


def test_callback_knows_the_position_on_the_path():
    case = make_case(54, n=30, d=40)
    seen = []
    path_of(case, strengths_of(case, 4), callback=lambda progress: seen.append(progress.alpha_index))
    assert sorted(set(seen)) == [0, 1, 2, 3]
    assert seen == sorted(seen)


def test_a_callback_may_end_the_path():
    case = make_case(54, n=30, d=40)
    results = path_of(case, strengths_of(case, 4), callback=lambda progress: progress.alpha_index == 2)
    assert [result.status for result in results] == ["converged", "converged", "callback"]
    with pytest.raises(TypeError, match="callback must be callable, got 5"):
        path_of(case, strengths_of(case, 4), callback=5)


def test_strengths_that_fall_short_are_named():
    case = make_case(54, n=30, d=40)
    with pytest.warns(ConvergenceWarning, match=r"of 6 strengths fell short of tol, the first at index 1. Stopped"):
        results = path_of(case, strengths_of(case, 6), max_iter=2)
    assert results[1].status == "max_iter"
    assert all(result.n_iter <= 2 for result in results)


@pytest.mark.parametrize("strengths", [[], [1.0, 2.0], [1.0, -1.0], [1.0, np.nan]])
def test_bad_strengths_are_refused(strengths):
    case = make_case(55)
    with pytest.raises(ValueError, match="strengths"):
        path_of(case, strengths)


def test_statistics_stand_for_their_samples():
    """Weights that depend on the number of samples count those behind the statistics."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 8))
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((500, 2))
    statistics = go.SufficientStatistics.from_arrays(X, Y)
    from_data = solve_path(X, Y, "chi_gauss", strengths=[50.0, 10.0])
    from_statistics = solve_path(statistics, None, "chi_gauss", strengths=[50.0, 10.0])
    for one, other in zip(from_data, from_statistics, strict=True):
        assert other.primal == pytest.approx(one.primal, rel=1e-6)
