"""The contract of a loss, run over every loss of the table; a new loss joins by being in it."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, softmax

from groupowl.losses import LOSSES, Loss, MultinomialLoss, SquaredLoss, resolve_loss, survival_targets
from groupowl.problem.unpenalized import best_constant

EPS = np.finfo(float).eps
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
every_additive_loss = pytest.mark.parametrize(
    "loss", [pytest.param(loss, id=name) for name, loss in LOSSES.items() if loss.is_additive]
)


# Inputs -------------------------------------------------------------------------------------------------


def make_targets(loss, rng, n, q, *, soft=False):
    """The first kind of targets that the loss accepts; a loss with another kind adds it here."""
    classes = rng.dirichlet(np.ones(q), size=n) if soft else np.eye(q)[rng.integers(q, size=n)]
    candidates = [
        rng.standard_normal((n, q)),
        rng.poisson(2.0, (n, q)).astype(float),
        rng.random((n, q)) if soft else (rng.random((n, q)) < 0.5).astype(float),
        classes,
    ]
    for Y in candidates:
        try:
            return loss.check_targets(Y)
        except ValueError:
            continue
    pytest.fail(f"make_targets knows no targets for loss {loss.name!r}: add a kind of targets to its list.")


def make_case(loss, seed, *, n=12, q=4, size=1.0, soft=False, orders=0.3):
    """Predictor, targets and weights that span ``orders`` orders of magnitude each way.

    Predictors of losses without a bound on their curvature are moderate: beyond, the loss overflows.
    """
    rng = np.random.default_rng(seed)
    size = size if math.isfinite(loss.curvature) else min(size, 3.0)
    Y = make_targets(loss, rng, n, q, soft=soft)
    w = 10.0 ** rng.uniform(-orders, orders, (n, 1))
    return size * rng.standard_normal((n, q)), Y, w


def null_intercept(loss, Y, w):
    """From the means of the targets where these say it, else by the search that problems use."""
    means = np.sum(w * Y, axis=0) / w.sum()
    found = loss.null_intercept(means)
    return best_constant(loss, means, lambda total: total(Y, w)) if np.isnan(found).any() else found


def dual_value(loss, Z, Y, w, scale=1.0):
    """The dual value at ``scale`` times the dual point of ``Z``."""
    theta = loss.dual_point(Z, Y, w)
    return loss.ray_value(scale * theta, Y, w, scale, loss.ray_totals(theta, Y, w, Z))


# Fenchel-Young ------------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 30.0])
def test_fenchel_young_equality_at_the_dual_point(loss, size, soft):
    """``F(Z) + F*(-theta) = -<Z, theta>`` at ``theta = -grad F(Z)``."""
    Z, Y, w = make_case(loss, 0, size=size, soft=soft)
    theta = loss.dual_point(Z, Y, w)
    total = loss.value(Z, Y, w) - dual_value(loss, Z, Y, w)
    assert total == pytest.approx(-np.sum(Z * theta), abs=1e-13 * (1 + np.sum(np.abs(Z * theta)) + w.sum()))


@every_loss
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_fenchel_young_inequality_elsewhere(loss, size, soft):
    """Any predictor with any dual point of the domain, with the margin that the curvature promises."""
    Z, Y, w = make_case(loss, 1, soft=soft)
    rng = np.random.default_rng(2)
    for _ in range(20):
        other = size * rng.standard_normal(Z.shape)
        theta = loss.dual_point(other, Y, w)
        margin = loss.value(Z, Y, w) - dual_value(loss, other, Y, w) + np.sum(Z * theta)
        distance = np.sum((theta - loss.dual_point(Z, Y, w)) ** 2 / w)
        assert distance > 1e-4
        assert margin >= distance / (2 * loss.curvature) * (1 - 1e-9)


@every_loss
def test_dual_value_at_zero_bounds_every_loss(loss):
    """Weak duality: ``theta = 0`` is feasible whatever the design, so no predictor has ``F(Z) < D(0)``."""
    Z, Y, w = make_case(loss, 3)
    bound = loss.dual_value(np.zeros_like(Z), Y, w)
    rng = np.random.default_rng(3)
    assert all(loss.value(rng.standard_normal(Z.shape) * s, Y, w) >= bound - 1e-12 for s in (0.0, 1.0, 10.0))


@every_loss
def test_dual_point_is_minus_the_gradient(loss):
    Z, Y, w = make_case(loss, 4, n=3, q=3, soft=True)
    theta = loss.dual_point(Z, Y, w)
    step = 1e-5
    for i, k in np.ndindex(Z.shape):
        move = np.zeros_like(Z)
        move[i, k] = step
        slope = (loss.value(Z + move, Y, w) - loss.value(Z - move, Y, w)) / (2 * step)
        assert theta[i, k] == pytest.approx(-slope, abs=1e-8)


@every_additive_loss
def test_weights_of_entries_are_those_of_tasks(loss):
    """With weights of shape (n, q) each task is a problem of its own; entries of weight zero are not there."""
    if loss.needs_whole_samples:
        pytest.skip(loss.needs_whole_samples)
    Z, Y, _ = make_case(loss, 27, soft=True)
    rng = np.random.default_rng(27)
    w = 10.0 ** rng.uniform(-1, 1, Z.shape) * (rng.random(Z.shape) < 0.8)
    whole, move = loss.per_entry(), rng.standard_normal(Z.shape)
    theta = whole.dual_point(Z, Y, w)
    dual, values = whole.dual_value(theta, Y, w), np.zeros(4)
    balanced_theta = balanced(whole, theta, Y, w)
    assert not theta[w == 0.0].any()
    assert not balanced_theta[w == 0.0].any()
    for k in range(Z.shape[1]):
        seen = w[:, k] > 0.0
        z, y, u, v = (array[seen, k : k + 1] for array in (Z, Y, w, move))
        own = loss.dual_point(z, y, u)
        np.testing.assert_allclose(theta[seen, k], own[:, 0], rtol=1e-14)
        np.testing.assert_allclose(balanced_theta[seen, k], balanced(loss, own, y, u)[:, 0], atol=1e-12)
        np.testing.assert_allclose(whole.curved(Z, Y, w, move)[seen, k], loss.curved(z, y, u, v)[:, 0], rtol=1e-13)
        values += loss.value(z, y, u), loss.dual_value(own, y, u), loss.floor(y, u), loss.change(z, y, u, v)
    found = whole.value(Z, Y, w), dual, whole.floor(Y, w), whole.change(Z, Y, w, move)
    np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
    assert values[0] - values[1] == pytest.approx(-np.sum(Z * theta), abs=1e-12 * w.sum())


def corner(n, q, outside):
    """Probabilities of which the first is above 1, and the last below 0, by so much."""
    P = np.zeros((n, q))
    P[:, 0], P[:, -1] = 1.0 + outside, -outside
    return P


#: Dual points at the border of the domain of the conjugate, or outside by a share; of a loss without a border none.
BORDERS = {
    "squared": [],
    "multinomial": [lambda Y, w, outside: w * (Y - corner(*Y.shape, outside))],
    "logistic": [lambda Y, w, outside: w * (Y - 1.0 - outside), lambda Y, w, outside: w * (Y + outside)],
    "poisson": [lambda Y, w, outside: w * (Y + outside)],
    "huber": [lambda Y, w, outside: np.sign(Y) * 1.345 * (1.0 + outside) * w],
}


@every_additive_loss
def test_the_domain_of_the_conjugate_has_its_border(loss):
    """Finite at the border itself, minus infinity a thousandth outside, if only in one entry."""
    _, Y, w = make_case(loss, 26)
    for border in BORDERS[loss.name]:
        inside, outside = (border(Y, w, share) for share in (0.0, 1e-3))
        assert np.isfinite(loss.dual_value(inside, Y, w))
        assert loss.dual_value(outside, Y, w) == -np.inf
        one = inside.copy()
        one[3] = outside[3]
        assert loss.dual_value(one, Y, w) == -np.inf
    if not BORDERS[loss.name]:
        assert np.isfinite(loss.dual_value(1e6 * w * (1.0 + Y), Y, w))


# Curvature ----------------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("size", [1e-3, 1.0, 20.0])
def test_curvature_bounds_the_change_of_the_gradient(loss, size):
    """Row by row, for short and long moves: the Lipschitz constant of each ``grad f_i``."""
    rng = np.random.default_rng(5)
    for seed in range(20):
        Z, Y, w = make_case(loss, seed, q=2 + seed % 3, size=rng.choice([0.1, 1.0, 5.0]))
        move = size * rng.standard_normal(Z.shape)
        change = (loss.dual_point(Z, Y, w) - loss.dual_point(Z + move, Y, w)) / w
        bound = loss.curvature * np.linalg.norm(move, axis=1)
        assert np.all(np.linalg.norm(change, axis=1) <= bound * (1 + 1e-9))


STEEPEST = {
    "squared": (np.array([[0.3, -0.2, 0.1]]), np.array([[1.0, 2.0, -1.0]])),
    "multinomial": (np.array([[0.0, 0.0, -40.0]]), np.array([[1.0, -1.0, 0.0]])),  # p = (1/2, 1/2, 0)
    "logistic": (np.zeros((1, 3)), np.array([[1.0, 2.0, -1.0]])),
    "huber": (np.array([[0.3, -0.2, 0.1]]), np.array([[1.0, 2.0, -1.0]])),
}


@pytest.mark.parametrize("name", STEEPEST)
def test_curvature_is_attained(name):
    loss = LOSSES[name]
    Z, direction = STEEPEST[name]
    Y, w, step = np.array([[1.0, 0.0, 0.0]]), np.array([[2.5]]), 1e-4
    change = (loss.dual_point(Z, Y, w) - loss.dual_point(Z + step * direction, Y, w)) / w
    attained = np.linalg.norm(change) / (step * np.linalg.norm(direction))
    assert attained == pytest.approx(loss.curvature, rel=0.01)


@every_additive_loss
def test_dual_value_is_strongly_concave(loss):
    """With constant ``1/curvature`` in the norm ``sum_i ||theta_i||^2 / w_i``: what safe radii rest on."""
    rng = np.random.default_rng(6)
    for seed in range(30):
        Z, Y, w = make_case(loss, seed, q=2 + seed % 3, size=0.1)  # two classes near 1/2: no room to spare
        left = loss.dual_point(Z, Y, w)
        right = loss.dual_point((0.1, 1.0, 10.0)[seed % 3] * rng.standard_normal(Z.shape), Y, w)
        ends = loss.dual_value(left, Y, w), loss.dual_value(right, Y, w)
        square = np.sum((left - right) ** 2 / w)
        for s in (0.1, 0.5, 0.9):
            middle = loss.dual_value((1 - s) * left + s * right, Y, w)
            assert middle >= (1 - s) * ends[0] + s * ends[1] + s * (1 - s) * square / (2 * loss.curvature) - 1e-11


def two_sided_bound(loss, x, theta, raw, Y, w, gap):
    """The local bound on ``||x^T (theta* - midpoint)||``, from its formula."""
    linear = 0.25 * loss.bend * gap * np.abs(x).max()
    V = np.max((w * loss.spread(theta, raw, Y, w) * x[:, None] ** 2).sum(axis=0))
    return linear + np.sqrt(linear**2 + gap * V)


@every_loss
@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 3.0])
def test_the_local_bound_holds_the_dual_optimum(loss, size):
    """For any column, from any two points whose divergences from the best one are known; and it is not far too large.

    ``theta*`` maximizes ``D(theta) - <Z*, theta>``.
    """
    if loss.bend is None:
        assert np.isfinite(loss.curvature)  # one of the two must bound it
        with pytest.raises(NotImplementedError, match="has no local bound"):
            loss.spread(np.zeros((1, 2)), np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 1)))
        return
    rng, used = np.random.default_rng(21), []
    for seed in range(60):
        Z, Y, w = make_case(loss, seed, q=2 + seed % 3)
        one, other = (Z + size * rng.standard_normal(Z.shape) for _ in range(2))
        if seed % 3 == 0:  # both on the same side of the best one: the bound is tight for short moves
            other = one
        best, theta, raw = (loss.dual_point(point, Y, w) for point in (Z, one, other))
        gap = dual_value(loss, Z, Y, w) - dual_value(loss, one, Y, w) + np.sum(Z * (theta - best))
        gap += loss.value(other, Y, w) - loss.value(Z, Y, w) + np.sum(best * (other - Z))
        difference = best - 0.5 * (theta + raw)
        aligned = (difference / (w * loss.spread(theta, raw, Y, w) + 1e-300))[:, 0]
        columns = [rng.standard_normal(len(Z)), np.eye(len(Z))[seed % len(Z)], aligned]
        for x in columns:
            moved, bound = np.linalg.norm(x @ difference), two_sided_bound(loss, x, theta, raw, Y, w, gap)
            assert moved <= bound * (1 + 1e-6) + 1e-12 * np.abs(x).max()
            used.append(moved / bound)
    assert max(used) > (0.6 if size <= 0.1 else 0.15)


@pytest.mark.parametrize("seed", range(20))
def test_the_spread_between_two_points(seed):
    """By its formula, one sample at a time, with the term for how far the two points are apart.

    No problem is known on which bounds without this term fail, so that only the formula can tell that it is there.
    """
    loss, (Z, Y, w) = MultinomialLoss(), make_case(MultinomialLoss(), seed, q=2 + seed % 3, soft=bool(seed % 2))
    other = Z + np.random.default_rng(seed).standard_normal(Z.shape)
    found = loss.spread(loss.dual_point(Z, Y, w), loss.dual_point(other, Y, w), Y, w)
    for h, p, p_other in zip(found, softmax(Z, axis=1), softmax(other, axis=1), strict=True):
        r = (p + p_other) / 2 + np.abs(p - p_other) / 4
        top, share = int(np.argmax(r)), r.max() / r.sum()
        expected = r if share <= 0.5 else 2 * share * r
        if share > 0.5:
            expected[top] = 2 * share * (1 - share) * r.sum()
        np.testing.assert_allclose(h, expected, rtol=1e-9, atol=1e-15)


def expected_events(Z, event, time, w):
    """Of each sample for a weight of 1, by the definition of Breslow's partial likelihood, term by term."""
    mu = np.zeros(Z.shape)
    for i, k in np.ndindex(Z.shape):
        for died in np.flatnonzero(event[:, k] & (time[:, k] <= time[i, k])):
            at_risk = time[:, k] >= time[died, k]
            mu[i, k] += w[died, 0] * np.exp(Z[i, k]) / (w[at_risk, 0] @ np.exp(Z[at_risk, k]))
    return mu


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["logistic", "poisson", "cox"])
def test_the_spread_of_means_between_two_points(name, seed):
    """The same for labels, counts and expected events: variances of the means, and a quarter of their distance."""
    rng, n, q = np.random.default_rng(seed), 12, 3
    Z, other, w = rng.standard_normal((n, q)), rng.standard_normal((n, q)), rng.uniform(0.3, 3.0, (n, 1))
    loss, event, time = LOSSES[name], rng.random((n, q)) < 0.6, rng.exponential(size=(n, q))
    event[0] = True
    mean, variance, Y = {
        "logistic": (expit, lambda p: p * (1.0 - p), event.astype(float)),
        "poisson": (np.exp, lambda p: p, rng.poisson(2.0, (n, q)).astype(float)),
        "cox": (lambda Z: expected_events(Z, event, time, w), lambda p: p, survival_targets(event, time)),
    }[name]
    p, p_other = mean(Z), mean(other)
    expected = (variance(p) + variance(p_other)) / 2 + np.abs(p - p_other) / 4
    found = loss.spread(loss.dual_point(Z, Y, w), loss.dual_point(other, Y, w), Y, w)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_diagonal_of_the_multinomial_spread():
    """It is above the covariance of every vector of probabilities, and no larger than the probabilities."""
    rng, loss = np.random.default_rng(3), MultinomialLoss()
    for _ in range(300):
        q = int(rng.integers(2, 6))
        P = rng.dirichlet(np.full(q, 10 ** rng.uniform(-2, 1)), size=1)
        theta = -P  # for targets of zero
        (h,) = loss.spread(theta, theta, np.zeros((1, q)), np.ones((1, 1)))
        assert np.linalg.eigvalsh(np.diag(h) - np.diag(P[0]) + np.outer(P[0], P[0])).min() >= -1e-15
        assert np.all(h <= 2.0 * P[0] + 1e-15)


@every_additive_loss
def test_curvature_near_a_predictor_bounds_the_change_of_the_gradient(loss):
    rng = np.random.default_rng(22)
    for seed in range(10):
        Z, Y, w = make_case(loss, seed)
        move = rng.uniform(-1.0, 1.0, Z.shape) / 2.0
        change = (loss.dual_point(Z, Y, w) - loss.dual_point(Z + move, Y, w)) / w
        bound = loss.curvature_near(Z, Y, w) * np.linalg.norm(move, axis=1)
        assert np.all(np.linalg.norm(change, axis=1) <= bound * (1 + 1e-9))


@every_loss
def test_floor_and_deviance(loss):
    """No predictor is below the floor, and some come close to it."""
    Z, Y, w = make_case(loss, 23, soft=True)
    floor = loss.floor(Y, w)
    assert loss.value(Z, Y, w) >= floor
    assert loss.deviance(Z, Y, w) == pytest.approx(2 * (loss.value(Z, Y, w) - floor))
    for _ in range(3000):  # gradient steps, short enough for the curvature near the predictor
        Z = Z + loss.dual_point(Z, Y, w) / (w * min(loss.curvature, loss.curvature_near(Z, Y, w)))
    assert loss.value(Z, Y, w) <= floor + 0.05 * w.sum()


# Domain -------------------------------------------------------------------------------------------------


def test_multinomial_dual_value_is_minus_infinity_off_the_simplex():
    loss = MultinomialLoss()
    Z, Y, w = make_case(loss, 7)
    inside = loss.dual_point(Z, Y, w)
    assert np.isfinite(loss.dual_value(inside, Y, w))
    negative = inside.copy()  # a probability below 0, rows still sum to 1
    negative[0] += w[0] * np.array([2.0, -2.0, 0.0, 0.0])
    assert loss.dual_value(negative, Y, w) == -np.inf
    unbalanced = inside.copy()  # rows no longer sum to 1
    unbalanced[0] -= 1e-3 * w[0]
    assert loss.dual_value(unbalanced, Y, w) == -np.inf
    assert loss.dual_value(-inside * 10, Y, w) == -np.inf


@pytest.mark.parametrize("size", [1e-12, 1e-10])
def test_multinomial_dual_value_tolerates_rounding_and_nothing_more(size):
    """A dual value that a point outside the domain may claim is above what certificates allow for rounding."""
    loss = MultinomialLoss()
    Y, w = np.eye(3)[[0, 1, 2, 0]], np.ones((4, 1))
    sure = np.tile([-size, 0.5 * size, 1.0 + 0.5 * size], (4, 1))  # nearly certain of the last class, rows sum to 1
    assert loss.dual_value(w * (Y - sure), Y, w) == -np.inf
    assert loss.dual_value(w * (Y - np.maximum(sure, 0.0) / np.maximum(sure, 0.0).sum(axis=1)[:, None]), Y, w) >= 0.0
    assert loss.dual_value(w * (Y - (1.0 + size) * np.eye(3)[[1, 1, 1, 1]]), Y, w) == -np.inf


@pytest.mark.parametrize("n_classes", [2, 10, 1000])
@pytest.mark.parametrize("size", [0.1, 30.0, 1e4])
def test_rounding_leaves_multinomial_points_in_the_domain(n_classes, size):
    """Dual points at any predictor, balanced or not, at any place of their ray."""
    loss, rng = MultinomialLoss(), np.random.default_rng(0)
    Z = size * rng.standard_normal((30, n_classes))
    Y = loss.check_targets(rng.dirichlet(np.full(n_classes, 0.1), 30))
    w = 10.0 ** rng.uniform(-6, 6, (30, 1))
    theta = loss.dual_point(Z, Y, w)
    even = balanced(loss, theta, Y, w)
    assert all(np.isfinite(loss.dual_value(s * point, Y, w)) for s in (1e-9, 0.3, 1.0) for point in (theta, even))


def test_multinomial_dual_value_at_the_corners_of_the_simplex():
    """``0 log 0 = 0``: certain predictions have entropy zero."""
    loss = MultinomialLoss()
    Y, w = np.eye(3), np.array([[1.0], [2.0], [3.0]])
    assert loss.dual_value(w * (Y - Y[[1, 2, 0]]), Y, w) == 0.0
    assert loss.dual_value(np.zeros((3, 3)), Y, w) == 0.0
    assert loss.dual_value(w * (Y - 1 / 3), Y, w) == pytest.approx(6 * math.log(3), rel=1e-15)


@every_loss
def test_zero_is_in_the_domain(loss):
    """Scaling towards zero is what makes any dual point feasible."""
    Z, Y, w = make_case(loss, 8, size=20.0)
    assert all(np.isfinite(dual_value(loss, Z, Y, w, s)) for s in (0.0, 1e-9, 0.3, 1.0))


# Points on the ray --------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("limit", [0.0, 1e-3, 0.7, 1.0, 25.0, np.inf])
def test_ray_scale_is_feasible(loss, limit):
    for seed in range(10):
        Z, Y, w = make_case(loss, seed, size=3.0, orders=2.0)
        theta = loss.dual_point(Z, Y, w)
        s = loss.ray_scale(loss.ray_totals(theta, Y, w, Z), limit)
        assert abs(s) <= limit
        reached = dual_value(loss, Z, Y, w, s)
        plain = dual_value(loss, Z, Y, w, min(1.0, limit))
        assert np.isfinite(reached)
        assert reached >= plain - 1e-12 * abs(plain)


@pytest.mark.parametrize("limit", [0.05, 0.7, 1.0, 25.0, np.inf])
def test_ray_scale_of_the_squared_loss_is_optimal(limit):
    loss = SquaredLoss()
    for seed in range(10):
        Z, Y, w = make_case(loss, seed, orders=1.0)
        theta = loss.dual_point(2.0 * Z, Y, w) * (1 if seed % 2 else -1)
        s = loss.ray_scale(loss.ray_totals(theta, Y, w), limit)
        best = loss.dual_value(s * theta, Y, w)
        others = np.linspace(-min(limit, 10.0), min(limit, 10.0), 201)
        assert best >= max(loss.dual_value(t * theta, Y, w) for t in others) - 1e-12 * abs(best)


@every_loss
def test_ray_scale_of_zero_is_finite(loss):
    Z, Y, w = make_case(loss, 9)
    assert np.isfinite(loss.ray_scale(loss.ray_totals(np.zeros_like(Y), Y, w, Z), np.inf))


# Balance ------------------------------------------------------------------------------------------------


def balanced(loss, theta, Y, w):
    return loss.balance(theta, Y, w, loss.balance_totals(theta, Y, w))


@every_additive_loss
@pytest.mark.parametrize("orders", [0.0, 3.0], ids=["equal weights", "weights over 6 orders"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4], ids=["null", "moderate", "probabilities 0"])
@pytest.mark.parametrize("missing", [0, 2], ids=["all occur", "two columns never occur"])
def test_balance_sums_to_zero_inside_the_domain(loss, orders, size, missing):
    for seed in range(5):
        Z, Y, w = make_case(loss, seed, n=30, size=size, orders=orders)
        if missing:
            Y = without_columns(loss, Y, missing)
        theta = loss.dual_point(Z, Y, w)
        result = balanced(loss, theta, Y, w)
        scale = np.sum(w) + np.sum(np.abs(theta))
        assert np.abs(result.sum(axis=0)).max() <= 1e-14 * scale
        assert np.isfinite(loss.dual_value(result, Y, w))
        if size == 1.0:
            assert np.abs(theta.sum(axis=0)).max() > 1e-6 * scale  # there was something to balance


def without_columns(loss, Y, missing):
    """Targets whose last columns are zero; the mass of probabilities goes to the first column."""
    Y = Y.copy()
    lost = Y[:, -missing:].sum(axis=1)
    Y[:, -missing:] = 0.0
    try:
        return loss.check_targets(Y)
    except ValueError:  # they must sum to one, or some must be positive in every column
        Y[:, 0] += lost
    try:
        return loss.check_targets(Y)
    except ValueError:
        pytest.skip("the loss refuses columns without a positive target")


def test_multinomial_balance_keeps_probabilities():
    """Rows stay in the simplex up to rounding, far below what the dual value tolerates."""
    loss = MultinomialLoss()
    for seed in range(20):
        Z, Y, w = make_case(loss, seed, n=30, size=10.0, orders=3.0)
        P = Y - balanced(loss, loss.dual_point(Z, Y, w), Y, w) / w
        assert P.min() >= -8 * EPS
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=16 * EPS)
        np.testing.assert_allclose(np.sum(w * P, axis=0), np.sum(w * Y, axis=0), rtol=1e-12)


@every_additive_loss
@pytest.mark.parametrize("orders", [0.0, 3.0])
def test_balance_changes_nothing_that_is_balanced(loss, orders):
    """A second time, and at the model without features, whose dual point is balanced already."""
    Z, Y, w = make_case(loss, 10, n=30, orders=orders)
    once = balanced(loss, loss.dual_point(Z, Y, w), Y, w)
    np.testing.assert_allclose(balanced(loss, once, Y, w) / w, once / w, rtol=0, atol=1e-13)
    intercept = null_intercept(loss, Y, w)
    null = loss.dual_point(np.broadcast_to(intercept, Y.shape), Y, w)
    np.testing.assert_allclose(balanced(loss, null, Y, w) / w, null / w, rtol=0, atol=1e-13)


@every_additive_loss
def test_balance_works_block_by_block(loss):
    """With the totals of all rows, each block of rows is balanced by itself."""
    Z, Y, w = make_case(loss, 11, n=10)
    theta = loss.dual_point(Z, Y, w)
    totals = loss.balance_totals(theta, Y, w)
    pieces = [loss.balance(theta[rows], Y[rows], w[rows], totals) for rows in (slice(0, 3), slice(3, 3), slice(3, 10))]
    np.testing.assert_array_equal(np.concatenate(pieces), loss.balance(theta, Y, w, totals))


@every_loss
def test_balance_totals_have_the_documented_shape(loss):
    Z, Y, w = make_case(loss, 12)
    assert np.shape(loss.balance_totals(loss.dual_point(Z, Y, w), Y, w))[1:] == (Y.shape[1],)


@every_additive_loss
def test_balance_lets_the_gap_vanish_near_the_null_model(loss):
    """Close to the optimal intercept the balanced point has nearly the optimal dual value."""
    Z, Y, w = make_case(loss, 13, n=40)
    intercept = null_intercept(loss, Y, w)
    null = loss.value(np.broadcast_to(intercept, Y.shape), Y, w)
    for error in (1e-2, 1e-4, 1e-6):
        Z = np.broadcast_to(intercept + error * np.array([1.0, -1.0, 0.5, 0.0]), Y.shape)
        point = balanced(loss, loss.dual_point(Z, Y, w), Y, w)
        assert null - loss.dual_value(point, Y, w) <= 10 * error * abs(null) + 1e-12


# Null model, canonical form -----------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("missing", [0, 1], ids=["all occur", "a column never occurs"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_null_intercept_minimizes_over_constant_predictors(loss, missing, soft):
    _, Y, w = make_case(loss, 14, n=25, soft=soft, orders=1.0)
    if missing:
        Y = without_columns(loss, Y, missing)
    intercept = null_intercept(loss, Y, w)
    assert np.isfinite(intercept).all()

    def value(b):
        return loss.value(np.broadcast_to(b, Y.shape), Y, w)

    slope = loss.dual_point(np.broadcast_to(intercept, Y.shape), Y, w).sum(axis=0)
    np.testing.assert_allclose(slope, 0.0, rtol=0, atol=1e-13 * w.sum())
    rng = np.random.default_rng(14)
    for size in (1e-3, 0.1, 1.0, 30.0):
        assert value(intercept) <= value(intercept + size * rng.standard_normal(len(intercept))) + 1e-12


@every_loss
def test_canonical_keeps_the_loss_and_lowers_norms(loss):
    rng = np.random.default_rng(15)
    _, Y, w = make_case(loss, 15)
    X = rng.standard_normal((len(Y), 6))
    B = rng.standard_normal((6, Y.shape[1])) + rng.standard_normal((6, 1))
    B[2] = 0.0
    canonical = loss.canonical(B)
    assert loss.value(X @ canonical, Y, w) == pytest.approx(loss.value(X @ B, Y, w), rel=1e-12)
    assert np.all(np.linalg.norm(canonical, axis=1) <= np.linalg.norm(B, axis=1) * (1 + 4 * EPS))
    assert not canonical[2].any()
    np.testing.assert_allclose(loss.canonical(canonical), canonical, rtol=0, atol=1e-15)


def test_canonical_of_the_multinomial_loss_has_the_smallest_norms():
    """Rows with mean zero: no shift of a row has a smaller norm."""
    B = np.random.default_rng(16).standard_normal((5, 3)) + 2.0
    canonical = MultinomialLoss().canonical(B)
    np.testing.assert_allclose(canonical.sum(axis=1), 0.0, rtol=0, atol=1e-14)
    assert np.all(np.linalg.norm(canonical, axis=1) < np.linalg.norm(canonical + 0.01, axis=1))


# Sums over samples --------------------------------------------------------------------------------------

SUMS = {
    "value": lambda loss, Z, theta, Y, w: loss.value(Z, Y, w),
    "dual_value": lambda loss, Z, theta, Y, w: loss.dual_value(theta, Y, w),
    "ray_totals": lambda loss, Z, theta, Y, w: loss.ray_totals(theta, Y, w),
    "balance_totals": lambda loss, Z, theta, Y, w: loss.balance_totals(theta, Y, w),
    "cancelling_size": lambda loss, Z, theta, Y, w: loss.cancelling_size(Z, w),
}


@every_additive_loss
@pytest.mark.parametrize("method", SUMS)
def test_sums_add_up_over_blocks_of_rows(loss, method):
    """Blocks of any length, one row and no row included."""
    Z, Y, w = make_case(loss, 17, n=11)
    theta = loss.dual_point(Z, Y, w)
    blocks = [slice(0, 1), slice(1, 6), slice(6, 6), slice(6, 11)]
    parts = [SUMS[method](loss, Z[rows], theta[rows], Y[rows], w[rows]) for rows in blocks]
    np.testing.assert_allclose(sum(parts[1:], parts[0]), SUMS[method](loss, Z, theta, Y, w), rtol=1e-13)


def test_cancelling_size():
    """Predictors meet in differences inside the softmax, not in a sum of squares."""
    Z, w = np.array([[1.0, -3.0], [2.0, 0.5]]), np.array([[2.0], [0.5]])
    assert MultinomialLoss().cancelling_size(Z, w) == 7.0
    assert SquaredLoss().cancelling_size(Z, w) == 0.0


@every_additive_loss
def test_dual_point_is_row_wise(loss):
    Z, Y, w = make_case(loss, 18, n=9)
    pieces = [loss.dual_point(Z[rows], Y[rows], w[rows]) for rows in (slice(0, 4), slice(4, 4), slice(4, 9))]
    np.testing.assert_allclose(np.concatenate(pieces), loss.dual_point(Z, Y, w), rtol=1e-15)


@every_additive_loss
def test_a_weight_of_two_is_the_sample_twice(loss):
    Z, Y, w = make_case(loss, 19)
    twice = [np.concatenate([array, array]) for array in (Z, Y, w)]
    assert loss.value(*twice) == pytest.approx(loss.value(Z, Y, 2 * w), rel=1e-14)
    np.testing.assert_allclose(loss.dual_point(Z, Y, 2 * w), 2 * loss.dual_point(Z, Y, w), rtol=1e-14)


@every_loss
def test_inputs_are_left_alone(loss):
    Z, Y, w = make_case(loss, 20)
    for array in (Z, Y, w):
        array.setflags(write=False)
    theta = loss.dual_point(Z, Y, w)
    theta.setflags(write=False)
    loss.check_targets(Y), loss.value(Z, Y, w), loss.dual_value(theta, Y, w), loss.cancelling_size(Z, w)
    loss.ray_totals(theta, Y, w, Z), balanced(loss, theta, Y, w), loss.canonical(Z), loss.null_intercept(Y[0])


# Stability ----------------------------------------------------------------------------------------------


def exact_squared(Z, Y, w):
    rows = zip(Z, Y, w[:, 0], strict=True)
    return sum(
        Fraction(v) / 2 * sum((Fraction(y) - Fraction(z)) ** 2 for z, y in zip(z_row, y_row, strict=True))
        for z_row, y_row, v in rows
    )


def exact_multinomial(Z, Y, w):
    """The definition: the linear part in rational arithmetic, the logarithm of a sum near 1 in double."""
    total = Fraction(0)
    for z_row, y_row, v in zip(Z, Y, w[:, 0], strict=True):
        z_exact = [Fraction(z) for z in z_row]
        top = max(z_exact)
        tail = math.fsum(math.exp(float(z - top)) for z in z_exact if z != top)
        ties = sum(z == top for z in z_exact)
        log_sum = top + Fraction(math.log(ties) + math.log1p(tail / ties))
        total += Fraction(v) * (log_sum - sum(Fraction(y) * z for y, z in zip(y_row, z_exact, strict=True)))
    return total


EXACT_VALUES = {"squared": exact_squared, "multinomial": exact_multinomial}


@pytest.mark.parametrize("name", EXACT_VALUES)
@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_value_is_accurate_for_large_predictors(name, size, offset):
    """The rounding error stays within what ``cancelling_size`` announces."""
    loss = LOSSES[name]
    Z, Y, w = make_case(loss, 21, size=size)
    Z = Z + offset
    Z[0] = offset  # ties at the top
    exact = float(EXACT_VALUES[name](Z, Y, w))
    assert abs(loss.value(Z, Y, w) - exact) <= 8 * EPS * (abs(exact) + loss.cancelling_size(Z, w))


@every_loss
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_predictors_stay_finite_and_satisfy_fenchel_young(loss, size):
    Z, Y, w = make_case(loss, 22, size=size)
    theta = loss.dual_point(Z, Y, w)
    value, conj = loss.value(Z, Y, w), -dual_value(loss, Z, Y, w)
    assert np.isfinite([value, conj]).all()
    assert np.isfinite(theta).all()
    assert value + conj == pytest.approx(-np.sum(Z * theta), abs=64 * EPS * np.sum(np.abs(Z * theta)) + 1e-12)


def test_multinomial_dual_point_in_higher_precision():
    """Against the softmax in extended precision, for predictors of every size."""
    loss = MultinomialLoss()
    for size in (1e-8, 1.0, 1e2, 1e4):
        Z, Y, w = make_case(loss, 23, size=size)
        Z_long = Z.astype(np.longdouble)
        odds = np.exp(Z_long - Z_long.max(axis=1, keepdims=True))
        expected = Y - odds / odds.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(loss.dual_point(Z, Y, w) / w, expected.astype(float), rtol=0, atol=8 * EPS)


def test_multinomial_value_of_a_certain_prediction():
    """Right by a wide margin costs nothing, wrong by a wide margin costs the margin."""
    loss = MultinomialLoss()
    Z, w = np.array([[1e4, 0.0, -1e4]]), np.array([[2.0]])
    assert loss.value(Z, np.array([[1.0, 0.0, 0.0]]), w) == 0.0
    assert loss.value(Z, np.array([[0.0, 0.0, 1.0]]), w) == 4e4
    np.testing.assert_array_equal(loss.dual_point(Z, np.array([[0.0, 0.0, 1.0]]), w), [[-2.0, 0.0, 2.0]])


@every_loss
def test_adding_a_constant_to_the_predictor(loss):
    """Only softmaxes ignore it, and then to rounding: among tasks, or among the samples of each."""
    Z, Y, w = make_case(loss, 24)
    same = loss.value(Z + 1e3, Y, w) == pytest.approx(loss.value(Z, Y, w), rel=1e-10)
    assert same == (loss.ignores_constants or (loss.canonical(np.ones((1, 4))) == 0).all())


# Targets, names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[1.0], [1.0]], r"^loss='multinomial' needs at least two columns in Y, got shape \(2, 1\)\."),
        ([[1.5, -0.5], [0.0, 1.0]], r"^loss='multinomial' needs Y >= 0, but its smallest entry is -0\.5\."),
        ([[1.0, 0.0], [1.0, 0.5]], r"^loss='multinomial' needs rows of Y that sum to 1, but row 1 sums to 1\.5\."),
        ([[0.0, 0.0], [1.0, 0.0]], r"^loss='multinomial' needs rows of Y that sum to 1, but row 0 sums to 0\."),
    ],
)
def test_multinomial_targets_are_probabilities(Y, message):
    with pytest.raises(ValueError, match=message) as error:
        MultinomialLoss().check_targets(np.array(Y))
    assert "one-hot" in str(error.value)


def test_multinomial_targets_in_single_precision_are_normalized():
    P = np.random.default_rng(25).dirichlet(np.ones(7), size=50).astype(np.float32).astype(float)
    assert np.abs(P.sum(axis=1) - 1).max() > 1e-9
    Y = MultinomialLoss().check_targets(P)
    np.testing.assert_allclose(Y.sum(axis=1), 1.0, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(Y, P, rtol=1e-6)


def test_one_hot_targets_stay_exact():
    Y = np.eye(4)[[0, 3, 3, 1]]
    np.testing.assert_array_equal(MultinomialLoss().check_targets(Y), Y)


@every_loss
def test_losses_fulfill_the_protocol_and_cannot_change(loss):
    assert isinstance(loss, Loss)
    assert LOSSES[loss.name] is loss
    assert loss.curvature > 0
    assert isinstance(loss.is_quadratic, bool)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        loss.curvature = 3.0


def test_resolve_loss():
    loss = SquaredLoss()
    assert resolve_loss(loss) is loss
    assert resolve_loss("multinomial") is LOSSES["multinomial"]
    with pytest.raises(ValueError, match=r"^loss must be one of .*; got 'hinge'\.$") as error:
        resolve_loss("hinge")
    assert all(repr(name) in str(error.value) for name in LOSSES)
    with pytest.raises(ValueError, match=r"^loss must be one of .*; got 3\.$"):
        resolve_loss(3)


# Moves of the predictor ---------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_change_is_that_of_the_value(loss, soft):
    Z, Y, w = make_case(loss, 3, soft=soft)
    move = np.random.default_rng(4).standard_normal(Z.shape)
    change = loss.value(Z + move, Y, w) - loss.value(Z, Y, w)
    assert loss.change(Z, Y, w, move) == pytest.approx(change, abs=1e-11)


@every_loss
def test_tangent_is_the_derivative_of_the_dual_point(loss):
    Z, Y, w = make_case(loss, 5)
    move = np.random.default_rng(6).standard_normal(Z.shape)
    h = 1e-5
    slope = (loss.dual_point(Z + h * move, Y, w) - loss.dual_point(Z - h * move, Y, w)) / (2 * h)
    np.testing.assert_allclose(-loss.curved(Z, Y, w, move), slope, atol=1e-8)


@every_loss
def test_curvature_along_columns_is_the_derivative_of_their_products(loss):
    """``E^T theta`` changes by minus the curvature times the coefficients."""
    Z, Y, w = make_case(loss, 7)
    rng = np.random.default_rng(8)
    E = rng.standard_normal((len(Z), 3))
    step = rng.standard_normal((3, Z.shape[1]))
    H = loss.curvature_along(Z, Y, w, E)
    np.testing.assert_allclose((H @ step.ravel()).reshape(step.shape), E.T @ loss.curved(Z, Y, w, E @ step), atol=1e-11)
    np.testing.assert_allclose(H, H.T, atol=1e-12)


@pytest.mark.parametrize("size", [20.0, 30.0, 36.0])
def test_small_multinomial_losses_have_all_their_digits(size):
    """Odds of ``exp(-size)`` beside 1 are the loss itself, not what is left after adding 1."""
    loss = MultinomialLoss()
    Z, Y, w = np.array([[size, 0.0, 0.0], [0.0, size, 1.0]]), np.eye(3)[:2], np.array([[1.0], [3.0]])
    expected = math.log1p(2 * math.exp(-size)) + 3 * math.log1p(math.exp(-size) + math.exp(1.0 - size))
    assert loss.value(Z, Y, w) == pytest.approx(expected, rel=1e-13, abs=0.0)
    assert loss.value_and_dual_point(Z.copy(), Y, w)[0] == pytest.approx(expected, rel=1e-13, abs=0.0)
