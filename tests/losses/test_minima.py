"""Every loss in whole problems: the minimum that other programs find, on every design, by every solver, proved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import PoissonRegressor

import groupowl as go
from groupowl.losses import LOSSES, HuberLoss
from support import ENTRIES, SOLVER_NAMES, conic_minimum, make_case, with_opaque_design

EPS = np.finfo(float).eps
NEW = ["logistic", "poisson", "huber"]
every_loss = pytest.mark.parametrize("loss", NEW)


def solvers_of(loss):
    return [name for name in SOLVER_NAMES if name != "spgd" or np.isfinite(LOSSES[loss].curvature)]


@every_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 3])
def test_a_conic_solver_finds_the_same_minimum(loss, fit_intercept, weighted, q):
    settings = {"seed": 7, "loss": loss, "fit_intercept": fit_intercept, "weighted": weighted, "q": q}
    case = make_case(**settings)
    result = go.solve(**case.arguments(), tol=1e-11)
    assert result.converged
    reference = conic_minimum(**settings)
    assert case.objective(result.B, result.intercept) == pytest.approx(result.primal, abs=1e-10)
    assert abs(result.primal - reference) <= 1e-8 * max(1.0, abs(reference))
    assert result.primal - result.gap <= reference + 1e-12


@pytest.mark.parametrize(("loss", "solver"), [(loss, solver) for loss in NEW for solver in solvers_of(loss)])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_with_screening(loss, solver, fit_intercept, sparse):
    """The minimum that a solve without screening has, nothing removed that it needs, and something removed."""
    case = make_case(3, n=40, d=60, loss=loss, fit_intercept=fit_intercept, weighted=True, sparse=sparse, fraction=0.4)
    reference = go.solve(**case.arguments(), screening="none", tol=1e-11)
    result = go.solve(**case.arguments(), solver=solver, tol=1e-5, random_state=0, max_iter=50_000)
    assert result.converged
    assert -reference.gap <= result.primal - reference.primal <= result.gap
    assert not reference.B[result.screened_at >= 0].any()
    assert len(result.active) < 60


def test_a_solver_that_cannot_serve_a_loss_says_which_can():
    case = make_case(0, loss="poisson")
    with pytest.raises(ValueError, match=r"solver='spgd' needs .* loss='poisson' has none\. Use solver='auto' or"):
        go.solve(**case.arguments(), solver="spgd")


@every_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lam_max_is_tight(loss, fit_intercept):
    case = make_case(1, loss=loss, fit_intercept=fit_intercept, weighted=True, fraction=1.0)
    null = go.solve(**case.arguments())
    assert len(null.support) == 0
    assert null.gap <= (1e-13 * null.primal if loss == "huber" and fit_intercept else 0.0)  # whose constant is searched
    below = replace(case, lam=0.999 * case.lam)
    assert len(go.solve(**below.arguments()).support) > 0


@every_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_no_certificate_is_above_the_minimum(loss, fit_intercept):
    """Weak duality from random coefficients, and bounds on the correlations of the dual optimum."""
    rng = np.random.default_rng(5)
    for seed in range(6):
        case = make_case(seed, loss=loss, fit_intercept=fit_intercept, weighted=True)
        problem = case.problem()
        best = go.solve(**case.arguments(), tol=1e-12)
        optimum = problem.certify(problem.from_input(best.B, best.intercept)).residual.correlations
        for size in (1e-6, 1e-3, 1e-1, 1.0):
            start = problem.from_input(best.B, best.intercept)
            certificate = problem.certify(start + size * rng.standard_normal(start.shape))
            assert certificate.primal - certificate.gap <= best.primal + 1e-9 * abs(best.primal)
            assert np.all(problem.upper_bounds(certificate) >= optimum * (1 - 1e-4) - 1e-4)


@every_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sample_space_may_be_elsewhere(loss, fit_intercept):
    case = make_case(4, n=40, d=30, loss=loss, fit_intercept=fit_intercept, weighted=True)
    here, there = (go.solve(**each.arguments(), tol=1e-9) for each in (case, with_opaque_design(case)))
    assert there.converged
    assert abs(here.primal - there.primal) <= here.gap + there.gap


@every_loss
def test_on_disk(loss, tmp_path):
    case = make_case(4, n=40, d=30, loss=loss, fit_intercept=True)
    np.save(tmp_path / "X.npy", case.X)
    here, there = (go.solve(**{**case.arguments(), "X": X}) for X in (case.X, go.MemmapDesign(tmp_path / "X.npy")))
    assert abs(here.primal - there.primal) <= here.gap + there.gap


@every_loss
def test_on_dask(loss):
    array = pytest.importorskip("dask.array")
    case = make_case(4, n=40, d=30, loss=loss, fit_intercept=True)
    far = {**case.arguments(), "X": array.from_array(case.X, chunks=(13, 30)), "Y": array.from_array(case.Y, (13, 3))}
    here, there = go.solve(**case.arguments()), go.solve(**far)
    assert there.converged
    assert abs(here.primal - there.primal) <= here.gap + there.gap


@every_loss
def test_the_screener_for_other_solvers(loss):
    case = make_case(3, n=40, d=60, loss=loss, fit_intercept=True, fraction=0.4)
    best = go.solve(**case.arguments(), tol=1e-10, screening="none")
    report = go.SafeScreener(**case.arguments()).update(best.B, best.intercept)
    assert report.primal == pytest.approx(best.primal)
    assert set(best.support) <= set(report.active)
    assert len(report.active) < 60


@every_loss
@pytest.mark.parametrize("unpenalized", [None, [5, 7]])
def test_paths_agree_with_exact_ones(loss, unpenalized):
    case = make_case(6, n=60, d=50, loss=loss)
    settings = {"loss": loss, "alphas": 5, "eps": 0.1, "unpenalized": unpenalized, "weights": "bh"}
    exact = go.group_owl_path(case.X, case.Y, **settings, screening="none", tol=1e-10)
    path = go.group_owl_path(case.X, case.Y, **settings, tol=1e-6)
    assert path.n_selected[-1] > 5
    assert np.all(path.losses >= 0.0) or loss == "poisson"
    for ours, other in zip(path, exact, strict=True):
        assert -other.gap <= ours.primal - other.primal <= ours.gap
    assert np.all(np.diff(path.deviance_ratio) > 0)


@pytest.mark.parametrize("loss", ENTRIES)
def test_a_weight_of_two_is_the_sample_twice_and_zero_none(loss):
    case = make_case(8, loss=loss, fit_intercept=True)
    weight = np.r_[np.full(5, 2.0), np.ones(15), np.zeros(5)]
    rows = np.r_[np.arange(20), np.arange(5)]
    weighted = go.solve(**replace(case, sample_weight=weight).arguments(), tol=1e-10)
    repeated = go.solve(**replace(case, X=case.X[rows], Y=case.Y[rows]).arguments(), tol=1e-10)
    assert abs(weighted.primal - repeated.primal) <= weighted.gap + repeated.gap


# What is special about one of them ------------------------------------------------------------------------


def test_labels_may_be_probabilities():
    case = make_case(2, loss="logistic", fit_intercept=True)
    rng = np.random.default_rng(0)
    result = go.solve(**replace(case, Y=rng.random(case.Y.shape)).arguments(), tol=1e-10)
    assert result.converged
    hard = go.solve(**replace(case, Y=case.Y[:, 0]).arguments())
    assert hard.B.shape == (12, 1)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_label_is_two_classes_at_weights_larger_by_the_root_of_two(fit_intercept):
    case = make_case(2, q=1, loss="logistic", fit_intercept=fit_intercept, weighted=True)
    one = go.solve(**case.arguments(), tol=1e-12)
    two = replace(case, Y=np.hstack([1 - case.Y, case.Y]), lam=np.sqrt(2) * case.lam, loss="multinomial")
    both = go.solve(**two.arguments(), tol=1e-12)
    assert one.primal == pytest.approx(both.primal, rel=1e-10)
    np.testing.assert_allclose(one.B[:, 0], both.B[:, 1] - both.B[:, 0], atol=1e-5)
    options = {"fit_intercept": fit_intercept, "sample_weight": case.sample_weight}
    ratio = go.lam_max(case.X, two.Y, "oscar", loss="multinomial", **options)
    assert ratio / go.lam_max(case.X, case.Y, "oscar", loss="logistic", **options) == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("share", [1e-3, 1e-9, 1e-13])
def test_the_null_model_of_a_label_that_nearly_all_samples_have(share):
    """As exact as that of its complement, whose mean has all digits."""
    X = np.random.default_rng(0).standard_normal((20, 4))
    y = (np.arange(20) > 0).astype(float)
    options = {"loss": "logistic", "fit_intercept": True, "sample_weight": np.where(y == 1.0, 1.0, share)}
    one, other = (go.solve(X, labels, np.full(4, 100.0), **options).intercept[0] for labels in (y, 1.0 - y))
    assert one == pytest.approx(-other, rel=1e-14)


def test_counts_without_penalty_are_those_of_scikit_learn():
    case = make_case(3, n=80, d=4, q=1, loss="poisson", fit_intercept=True)
    model = go.GroupOWLRegressor(1e-9, loss="poisson", tol=1e-11).fit(case.X, case.Y[:, 0])
    other = PoissonRegressor(alpha=0.0, tol=1e-12, max_iter=1000).fit(case.X, case.Y[:, 0])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(case.X), other.predict(case.X), rtol=1e-5)
    assert model.score(case.X, case.Y[:, 0]) == pytest.approx(other.score(case.X, case.Y[:, 0]), abs=1e-9)


def test_counts_so_large_that_the_loss_is_negative():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    Y = 1.0 * rng.poisson(np.exp(0.3 * X[:, :3] @ rng.standard_normal((3, 2)) + 3.0))
    path = go.group_owl_path(X, Y, loss="poisson", alphas=6, eps=0.1)
    assert path.losses.max() < 0.0
    assert abs(path.deviance_ratio[0]) < 1e-12 < path.deviance_ratio[-1] < 1.0
    single = go.group_owl_path(X.astype(np.float32), Y, loss="poisson", alphas=[0.3], fit_intercept=False, tol=1e-4)
    assert np.isfinite(single.dual_gaps).all()


def test_huber_is_squared_where_delta_is_large_and_ignores_the_size_of_outliers():
    case = make_case(9, loss="huber", fit_intercept=True)
    wide = go.solve(**{**case.arguments(), "loss": HuberLoss(1e6)}, tol=1e-11)
    squared = go.solve(**{**case.arguments(), "loss": "squared"}, tol=1e-11)
    assert wide.primal == pytest.approx(squared.primal, rel=1e-9)
    is_outlier = case.Y > 8.0
    assert is_outlier.sum() > 3
    moved = [np.where(is_outlier, case.Y + size, case.Y) for size in (1e3, 2e3)]
    here, there = (go.solve(**replace(case, Y=Y).arguments(), tol=1e-11) for Y in moved)
    np.testing.assert_allclose(there.B, here.B, atol=1e-4)


def test_huber_has_a_delta_for_each_target():
    case = make_case(9, loss="huber", fit_intercept=True)
    scales = np.array([1.0, 10.0, 0.1])
    together = go.solve(case.X, case.Y, case.lam, loss=HuberLoss([1.345, 1e9, 1e-3]), tol=1e-10)
    assert together.converged
    plain = go.solve(case.X, 10 * case.Y, 10 * case.lam, loss=HuberLoss(13.45), tol=1e-10)
    np.testing.assert_allclose(plain.B, 10 * go.solve(case.X, case.Y, case.lam, loss="huber", tol=1e-10).B, atol=1e-4)
    assert HuberLoss(scales).delta.tolist() == scales.tolist()


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1e6])
def test_the_null_model_of_huber_where_nothing_is_near_it(spread):
    """Two heaps far apart, or all targets equal: the slope is zero on an interval, or the root is where it jumps."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((21, 5)), np.r_[np.zeros(10), np.full(11, spread)] + 3.0
    lam = go.lam_max(X, y, "constant", loss="huber", fit_intercept=True) * np.ones(5)
    result = go.solve(X, y, np.maximum(lam, 1.0), loss="huber", fit_intercept=True)
    slope = np.clip(y - result.intercept, -1.345, 1.345).sum()
    assert abs(slope) <= 1e-9
    assert result.converged
    assert result.gap <= 1e-13 * result.primal


def huber_of_constants(y, weight, delta):
    """The loss of a constant in rational arithmetic, and where it is smallest: at a root between two breakpoints."""
    y, weight, delta = [Fraction(v) for v in y], [Fraction(v) for v in weight.tolist()], Fraction(delta)

    def loss(b):
        pairs = [(u, abs(v - b)) for u, v in zip(weight, y, strict=True)]
        return sum(u * (r * r / 2 if r <= delta else delta * (r - delta / 2)) for u, r in pairs)

    def slope(b):
        return sum(u * max(-delta, min(delta, v - b)) for u, v in zip(weight, y, strict=True))

    ends = sorted({v + side * delta for v in y for side in (-1, 1)})
    low = max(end for end in ends if slope(end) >= 0)
    high = min((end for end in ends if end > low), default=low)
    fall = slope(low) - slope(high)
    return loss, low + (high - low) * slope(low) / fall if fall else low


@pytest.mark.parametrize("seed", range(60))
def test_the_null_model_of_huber_in_rational_arithmetic(seed):
    """The gap holds where sums of outliers hide how far the loss still falls: weights and targets of any size."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 12, n if seed % 2 else 1)
    tiny = [1.0, 1.0, 2.0**-54, 1e-17, 1e8]
    weight = rng.choice(tiny, n) if seed % 3 else 10.0 ** rng.uniform(-8, 8, n)
    delta = float(10.0 ** rng.uniform(-3, 12 if seed % 5 == 0 else 1))
    options = {"fit_intercept": True, "sample_weight": weight}
    result = go.solve(np.linspace(1, 2, n)[:, None], y, [1e30], loss=HuberLoss(delta), **options)
    loss, best = huber_of_constants(y.tolist(), weight, delta)
    assert not result.B.any()
    assert loss(Fraction(float(result.intercept[0]))) - loss(best) <= Fraction(result.gap)


@pytest.mark.parametrize("far", [1e6, 1e9, 1e12])
def test_targets_far_from_zero_are_proved_like_others(far, tmp_path):
    """Centered like those of the squared loss; a predictor from outside is so, too."""
    case = make_case(9, n=40, d=60, loss="huber", fit_intercept=True, fraction=0.4)
    there = replace(case, Y=np.round(case.Y * 2.0**10) / 2.0**10 + far)  # what is left of them at 1e12 is still exact
    here = replace(there, Y=there.Y - far)
    one, other = (go.solve(**each.arguments(), tol=1e-8) for each in (here, there))
    assert other.converged
    assert abs(one.primal - other.primal) <= one.gap + other.gap
    np.testing.assert_allclose(other.intercept - far, one.intercept, atol=4 * EPS * far + 1e-3)
    Z = there.X @ other.B + other.intercept
    reports = [go.SafeScreener(**there.arguments()).update(other.B, other.intercept, Z=given) for given in (None, Z)]
    for report in reports:
        assert report.gap <= 1e-6 * other.primal + 64 * EPS * far * one.primal
        assert set(other.support) <= set(report.active)


def test_a_null_model_that_is_searched_for_has_no_negative_gap():
    """Of probabilities alone, whose loss is their entropy, and the difference of the two is rounding."""
    Y, weight = np.array([[0.99999933, 0.9992252]]), np.array([[0.12526784, 0.50131165]])
    X, options = np.array([[-29.7, -38.4]]), {"fit_intercept": True, "sample_weight": weight}
    result = go.solve(X, Y, [2.0, 1.0], loss="logistic", **options)
    assert result.converged
    assert 0.0 <= result.gap <= 1e-11


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.filterwarnings("ignore:Stopped at the limit of the arithmetic")
@pytest.mark.parametrize(("size", "offset_size"), [(1.0, 1e8), (1e12, 1.0), (1e4, 1e6)])
@pytest.mark.parametrize("n", [1, 3])
def test_the_rounding_of_offsets_counts_in_the_gap(loss, size, offset_size, n):
    """What is left of targets and offsets has the digits of its own size, however it is centered then."""
    rng = np.random.default_rng(n)
    y, offset = size / 3.0 + rng.standard_normal(n) / 7.0, offset_size * rng.standard_normal(n) / 7.0
    lam, delta = [1e30], Fraction(1.345 if loss == "huber" else 1e30)
    result = go.solve(np.ones((n, 1)), y, lam, loss=loss, fit_intercept=True, offset=offset)
    left = [Fraction(v) - Fraction(o) for v, o in zip(y.tolist(), offset.tolist(), strict=True)]
    value, best = huber_of_constants(left, np.ones(n), delta)
    excess = value(Fraction(float(result.intercept[0]))) - value(best)
    assert excess <= Fraction(result.gap) + Fraction(1e-24) * value(best)


BAD = {
    "labels": ("logistic", [[0.0], [1.0], [2.0]], r"labels of 0 or 1, .* the entry 2\. Give 1 where a label is there"),
    "minus one": ("logistic", [[-1.0], [1.0], [1.0]], r"but it has the entry -1\."),
    "constant label": ("logistic", np.eye(3)[:, [0, 0]] * [1.0, 0.0], r"column 1 of the labels is 0 for every sample"),
    "negative count": ("poisson", [[1.0], [-2.0], [0.0]], r"Y >= 0, but the smallest entry of Y is -2\. Remove such"),
    "no count": ("poisson", np.eye(3)[:, [0, 0]] * [1.0, 0.0], r"column 1 of Y is 0 for every sample .* Leave the"),
    "deltas": (HuberLoss([1.0, 2.0]), np.eye(3), r"delta has 2 entries, but there are 3 targets\. Give one number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_targets(name):
    loss, Y, message = BAD[name]
    for X in (np.eye(3), sp.csr_array(np.eye(3))):
        with pytest.raises(ValueError, match=message):
            go.solve(X, np.asarray(Y), np.ones(3), loss=loss, fit_intercept=True)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.nan, np.inf, [], [1.0, -1.0]])
def test_bad_delta(delta):
    with pytest.raises(ValueError, match="delta must be positive and finite"):
        HuberLoss(delta)
