"""Laws of the array functions behind the norm, each against a reference that shares no code with them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupowl.norm import GroupOWL
from groupowl.norm.kernels import (
    CLUSTER_RTOL,
    EPS,
    cluster_labels,
    falling_order,
    last_argmax_cut,
    owl_gauge,
    owl_value,
    prox_and_value,
    repeated_test,
    row_norms,
)

PENALTY = GroupOWL([1.0])


def prox_units(V, lam):
    return PENALTY.with_lam(lam).prox(V)


def prox_norms(norms, lam):
    return prox_and_value(norms, lam, 1.0)[0]


SEEDS = st.integers(0, 2**32 - 1)
law = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# Inputs -------------------------------------------------------------------------------------------------

LAM_SHAPES = {
    "random": lambda rng, d: -np.sort(-rng.uniform(0.0, 2.0, d)),
    "decaying": lambda rng, d: 3.0 * 0.5 ** np.arange(d),
    "constant": lambda rng, d: np.full(d, rng.uniform(0.1, 2.0)),
    "plateaus": lambda rng, d: -np.sort(-rng.integers(1, 4, d).astype(float)),
    "zero tail": lambda rng, d: np.where(np.arange(d) < max(1, d // 2), np.linspace(2.0, 1.0, d), 0.0),
    "one weight": lambda rng, d: np.eye(1, d)[0],
}


def draw_lam(rng, d):
    name = list(LAM_SHAPES)[rng.integers(len(LAM_SHAPES))]
    return LAM_SHAPES[name](rng, d)


def draw_case(seed):
    """Rows and weights of comparable size, with ties, zero rows, one row and one task among the cases."""
    rng = np.random.default_rng(seed)
    d, q = int(rng.integers(1, 16)), int(rng.integers(1, 4))
    V = rng.standard_normal((d, q)) * rng.choice([0.3, 1.0, 3.0], size=(d, 1))
    if rng.random() < 0.4:  # rows of equal norm, up to rounding, or exactly
        V[: d // 2] = rng.choice([-1.0, 1.0], size=(d // 2, q))
    V[rng.random(d) < 0.2] = 0.0
    return V, draw_lam(rng, d)


def brute_force_gauge(norms, lam):
    """Every ratio of partial sums, without leaving any unit out."""
    ordered = sorted(norms, reverse=True)
    return max(math.fsum(ordered[:k]) / math.fsum(lam[:k]) for k in range(1, len(ordered) + 1))


# Norm of a unit, OWL norm, gauge ------------------------------------------------------------------------


def test_unit_norms_are_the_row_norms():
    B = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(row_norms(B), [math.sqrt(math.fsum(b * b for b in row)) for row in B], rtol=4 * EPS)


@given(seed=SEEDS)
@law
def test_norm_is_the_largest_sum_over_orders(seed):
    """The sorted sum is the largest over all pairings of norms and weights."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    norms, lam = np.abs(rng.standard_normal(d)) * (rng.random(d) < 0.8), draw_lam(rng, d)
    value = owl_value(norms, lam)
    assert value == pytest.approx(math.fsum(sorted(norms, reverse=True) * lam), rel=1e-14, abs=1e-300)
    assert all(value >= rng.permutation(norms) @ lam - 1e-13 for _ in range(20))


@pytest.mark.parametrize("shape", LAM_SHAPES)
@pytest.mark.parametrize("d", [1, 2, 7, 60])
def test_gauge_is_the_largest_ratio_of_partial_sums(shape, d):
    rng = np.random.default_rng(d)
    for _ in range(30):
        lam = LAM_SHAPES[shape](rng, d)
        norms = np.abs(rng.standard_normal(d)) ** rng.integers(1, 5)
        assert owl_gauge(norms, lam) == pytest.approx(brute_force_gauge(norms, lam), rel=1e-14 * (d + 4), abs=0)


def test_gauge_over_a_huge_dynamic_range():
    rng = np.random.default_rng(3)
    for _ in range(200):
        d = int(rng.integers(1, 30))
        norms = 10.0 ** rng.uniform(-140, 140, d)
        lam = -np.sort(-(10.0 ** rng.uniform(-140, 140, d)))
        assert owl_gauge(norms, lam) == pytest.approx(brute_force_gauge(norms, lam), rel=1e-13, abs=0)


def test_gauge_where_the_ratio_is_attained_at_every_k():
    """All ratios equal up to rounding: leaving units out must not lose the largest."""
    lam = np.random.default_rng(0).uniform(0.5, 1.0, 200)
    lam = -np.sort(-lam)
    for factor in (1.0, 1 / 3, 7.1):
        assert owl_gauge(factor * lam, lam) == pytest.approx(brute_force_gauge(factor * lam, lam), rel=1e-13)


def test_gauge_of_zero_and_without_weights():
    assert owl_gauge(np.zeros(3), np.array([2.0, 1.0, 0.0])) == 0.0
    assert owl_gauge(np.zeros(3), np.zeros(3)) == 0.0
    assert owl_gauge(np.array([0.0, 1.0]), np.zeros(2)) == np.inf


@given(seed=SEEDS)
@law
def test_norm_and_gauge_are_dual(seed):
    """``<B, C> <= J(B) gauge(C)``, and both sides can be met."""
    C, lam = draw_case(seed)
    rng = np.random.default_rng([seed, 1])
    B = rng.standard_normal(C.shape)
    norms_B, norms_C = row_norms(B), row_norms(C)
    J, gauge = owl_value(norms_B, lam), owl_gauge(norms_C, lam)
    assert np.sum(B * C) <= J * gauge * (1 + 1e-12)

    # For this B: rows of C along those of B, with the weights as norms in the order of B.
    matching = np.empty_like(lam)
    matching[np.argsort(-norms_B, kind="stable")] = lam
    best_C = B / norms_B[:, None] * matching[:, None]
    assert owl_gauge(row_norms(best_C), lam) == pytest.approx(1.0, rel=1e-12)
    assert np.sum(B * best_C) == pytest.approx(J, rel=1e-12)

    # For this C: unit rows along the k largest of C, k from the brute force.
    order = np.argsort(-norms_C, kind="stable")
    k = 1 + int(np.argmax(np.cumsum(norms_C[order]) / np.cumsum(lam)))
    best_B = np.zeros_like(C)
    top = [j for j in order[:k] if norms_C[j] > 0]
    best_B[top] = C[top] / norms_C[top, None]
    assert np.sum(best_B * C) == pytest.approx(owl_value(row_norms(best_B), lam) * gauge, rel=1e-12)


# Prox ---------------------------------------------------------------------------------------------------


@given(seed=SEEDS)
@law
def test_prox_is_optimal(seed):
    """``V - P`` is a subgradient of J at ``P``: in the dual ball, and tight on ``P``."""
    V, lam = draw_case(seed)
    P = prox_units(V, lam)
    J = owl_value(row_norms(P), lam)
    assert owl_gauge(row_norms(V - P), lam) <= 1 + 1e-13
    assert np.sum((V - P) * P) == pytest.approx(J, rel=1e-12, abs=1e-13)


def exact_prox(norms, lam):
    """Prox of integer norms in rational arithmetic: min-max means over the whole sorted vector."""
    d = len(norms)
    order = sorted(range(d), key=lambda j: -norms[j])
    z = [Fraction(int(norms[j])) - Fraction(int(weight)) for j, weight in zip(order, lam, strict=True)]

    def mean(a, b):
        return sum(z[a : b + 1], Fraction(0)) / (b + 1 - a)

    shrunk = [Fraction(0)] * d
    for i, j in enumerate(order):
        level = min(max(mean(a, b) for b in range(i, d)) for a in range(i + 1))
        shrunk[j] = max(level, Fraction(0))
    return shrunk


@given(seed=SEEDS)
@settings(law, max_examples=80)
def test_prox_equals_exact_isotonic_regression(seed):
    """Rational min-max formula on the full sorted vector, no unit left out; zeros are exact."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 10))
    norms = rng.integers(0, 12, d).astype(float)
    lam = -np.sort(-rng.integers(0, 8, d).astype(float))
    expected = exact_prox(norms, lam)
    shrunk = prox_norms(norms, lam)
    np.testing.assert_allclose(shrunk, [float(e) for e in expected], rtol=1e-14)
    assert [s == 0 for s in shrunk] == [e == 0 for e in expected]


@pytest.mark.filterwarnings("default")  # about the conic solver's own dependencies, if anything
@pytest.mark.parametrize("shape", ["random", "constant", "zero tail", "plateaus"])
def test_prox_equals_a_conic_solve(shape):
    """``J(P) = sum_k (lam_k - lam_{k+1}) (sum of the k largest row norms)`` in a conic solver."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(8)
    d, q = 5, 2
    V, lam = 1.5 * rng.standard_normal((d, q)), LAM_SHAPES[shape](rng, d)
    P = cp.Variable((d, q))
    norms = cp.norm(P, 2, axis=1)
    drops = lam - np.append(lam[1:], 0.0)
    J = sum(drop * cp.sum_largest(norms, k) for k, drop in enumerate(drops, start=1) if drop > 0)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(P - V) / 2 + J))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    ours = prox_units(V, lam)
    value = np.sum((ours - V) ** 2) / 2 + owl_value(row_norms(ours), lam)
    assert value <= problem.value + 1e-9
    np.testing.assert_allclose(ours, P.value, rtol=0, atol=2e-5)  # sqrt(2 * gap): the objective is 1-strongly convex
    assert np.count_nonzero(row_norms(ours)) > 0


def test_prox_of_zero_is_zero():
    for lam in ([3.0, 1.0, 0.0], [0.0, 0.0, 0.0]):
        P = prox_units(np.zeros((3, 2)), np.array(lam))
        assert P.shape == (3, 2)
        assert not P.any()


def test_prox_without_weights_is_the_identity():
    V = np.random.default_rng(0).standard_normal((6, 3))
    V[2] = 0.0
    np.testing.assert_array_equal(prox_units(V, np.zeros(6)), V)


def test_prox_inside_the_dual_ball_is_exactly_zero():
    """At the border too: the support is the first maximizer, so a tie selects nothing."""
    lam = np.array([4.0, 2.0, 1.0])
    assert not prox_norms(lam, lam).any()
    assert not prox_norms(np.array([3.0, 3.0, 1.0]), lam).any()
    assert np.count_nonzero(prox_norms(np.array([3.0, 3.5, 0.0]), lam)) == 2


@given(seed=SEEDS)
@law
def test_prox_vanishes_exactly_inside_the_dual_ball(seed):
    V, lam = draw_case(seed)
    gauge = owl_gauge(row_norms(V), lam)
    if gauge == 0.0:
        return
    assert not prox_units(V, gauge * (1 + 1e-13) * lam).any()
    assert prox_units(V, gauge * (1 - 1e-13) * lam).any()


def test_prox_keeps_ties():
    """Rows of equal norm stay equal, and lie at the mean of what they pay."""
    shrunk = prox_norms(np.array([2.0, 5.0, 5.0, 5.0]), np.array([4.0, 3.0, 2.0, 0.5]))
    np.testing.assert_array_equal(shrunk, [1.5, 2.0, 2.0, 2.0])


def test_prox_of_one_row_is_block_soft_thresholding():
    V = np.array([[3.0, 4.0]])
    np.testing.assert_allclose(prox_units(V, np.array([2.0])), V * (3 / 5), rtol=1e-15)
    assert not prox_units(V, np.array([5.0])).any()


def test_prox_with_constant_weights_is_row_soft_thresholding():
    V = np.random.default_rng(2).standard_normal((40, 3))
    norms = row_norms(V)
    expected = V * np.maximum(1 - 1.3 / norms, 0.0)[:, None]
    np.testing.assert_allclose(prox_units(V, np.full(40, 1.3)), expected, rtol=0, atol=1e-15)


def test_prox_of_one_task_keeps_signs_and_order():
    V = np.random.default_rng(4).standard_normal((30, 1))
    P = prox_units(V, np.linspace(1.0, 0.1, 30))
    assert np.all(P * V >= 0)
    order = np.argsort(-np.abs(V[:, 0]))
    assert np.all(np.diff(np.abs(P[order, 0])) <= 1e-15)


@given(seed=SEEDS)
@law
def test_prox_is_firmly_nonexpansive(seed):
    V, lam = draw_case(seed)
    U = V + np.random.default_rng([seed, 2]).standard_normal(V.shape)
    difference = prox_units(U, lam) - prox_units(V, lam)
    assert np.sum(difference**2) <= np.sum(difference * (U - V)) + 1e-13


@given(seed=SEEDS, exponent=st.integers(-60, 60))
@law
def test_prox_scales(seed, exponent):
    """``prox(tV, t lam) = t prox(V, lam)``; powers of two make it exact."""
    V, lam = draw_case(seed)
    t = 2.0**exponent
    np.testing.assert_array_equal(prox_units(t * V, t * lam), t * prox_units(V, lam))


@given(seed=SEEDS)
@law
def test_prox_follows_permutations_and_rotations(seed):
    V, lam = draw_case(seed)
    rng = np.random.default_rng([seed, 3])
    order = rng.permutation(len(V))
    rotation = np.linalg.qr(rng.standard_normal((V.shape[1], V.shape[1])))[0]
    np.testing.assert_allclose(
        prox_units(V[order] @ rotation, lam), prox_units(V, lam)[order] @ rotation, rtol=0, atol=1e-13
    )


def test_prox_leaves_its_input_alone():
    V, lam = np.random.default_rng(0).standard_normal((8, 2)), np.linspace(1, 0, 8)
    for array in (V, lam):
        array.setflags(write=False)
    before = V.copy()
    prox_units(V, lam)
    np.testing.assert_array_equal(V, before)


def test_prox_keeps_small_rows_beside_huge_ones():
    """Partial sums swallow a small difference beside a huge one; the row must not vanish for that."""
    norms, lam = np.array([1e17, 3.0]), np.array([2.0, 1.0])
    shrunk = prox_norms(norms, lam)
    assert owl_gauge(norms[1:] - shrunk[1:], lam[1:]) <= 1 + 1e-12
    assert shrunk[1] == 2.0


# Repeated test ------------------------------------------------------------------------------------------


def repeat_until_stable(values, lam):
    """The paper's loop, literally; also the number of rounds that dropped something."""
    alive, rounds = list(range(len(values))), 0
    while True:
        kept = [j for j in alive if not values[j] < lam[len(alive) - 1]]
        if kept == alive:
            return alive, rounds
        alive, rounds = kept, rounds + 1


def closed_form(values, lam):
    ordered = sorted(values, reverse=True)
    size = max((k for k in range(1, len(values) + 1) if ordered[k - 1] >= lam[k - 1]), default=0)
    return sorted(sorted(range(len(values)), key=lambda j: -values[j])[:size])


@given(seed=SEEDS)
@law
def test_repeated_test_equals_the_loop_and_its_closed_form(seed):
    """Small integers, so that values meet weights and each other."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 40))
    values = rng.integers(0, 8, d).astype(float)
    lam = -np.sort(-rng.integers(0, 8, d).astype(float))
    kept = repeated_test(values, lam)
    assert kept.tolist() == repeat_until_stable(values, lam)[0] == closed_form(values, lam)


@pytest.mark.parametrize("survivors", [0, 1, 5, 59])
def test_repeated_test_where_the_loop_drops_one_per_round(survivors):
    d = 60
    lam = np.arange(d, 0, -1.0)
    values = lam - 0.5
    values[:survivors] = lam[:survivors]  # exactly at their weight: kept
    shuffled = np.random.default_rng(0).permutation(d)
    values = values[shuffled]
    expected, rounds = repeat_until_stable(values, lam)
    assert rounds == d - survivors
    kept = repeated_test(values, lam)
    assert kept.tolist() == expected
    assert len(kept) == survivors


def test_repeated_test_keeps_ties_at_the_cut_together():
    lam = np.array([5.0, 3.0, 3.0, 2.9])
    assert repeated_test(np.array([3.0, 6.0, 3.0, 2.8]), lam).tolist() == [0, 1, 2]
    assert repeated_test(np.array([2.9, 2.9, 2.9, 2.9]), lam).tolist() == [0, 1, 2, 3]
    assert repeated_test(np.array([2.8, 2.8, 2.8, 2.8]), lam).tolist() == []


def test_repeated_test_of_nothing():
    assert repeated_test(np.zeros(0), np.zeros(0)).tolist() == []


# Last argmax --------------------------------------------------------------------------------------------


def exact_last_argmax(upper, lam):
    best, cut, total = Fraction(0), 0, Fraction(0)
    for k, (u, weight) in enumerate(zip(upper, lam, strict=True), start=1):
        total += Fraction(u) - Fraction(weight)
        if total >= best:
            best, cut = total, k
    return cut


@given(seed=SEEDS)
@law
def test_last_argmax_is_exact_on_integers(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(0, 25))
    upper = -np.sort(-rng.integers(0, 6, d).astype(float))
    lam = -np.sort(-rng.integers(0, 6, d).astype(float))
    assert last_argmax_cut(upper, lam) == exact_last_argmax(upper, lam)


@given(seed=SEEDS)
@law
def test_last_argmax_never_cuts_below_the_exact_one(seed):
    """Beside a huge first term the partial sums round: the cut may keep too many, never too few."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 25))
    upper = -np.sort(-rng.integers(0, 6, d).astype(float))
    lam = -np.sort(-rng.integers(0, 6, d).astype(float))
    upper[0] = lam[0] + 2.0**53 + 2.0
    assert last_argmax_cut(upper, lam) >= exact_last_argmax(upper, lam)


def test_last_argmax_where_rounding_hides_the_tie():
    """In exact arithmetic the third sum equals the first; in floating point it falls two short."""
    upper, lam = np.array([2.0**53 + 6, 3.0, 3.0]), np.array([4.0, 4.0, 2.0])
    assert np.cumsum(upper - lam)[2] < np.cumsum(upper - lam)[0]
    assert exact_last_argmax(upper, lam) == last_argmax_cut(upper, lam) == 3


def test_last_argmax_keeps_a_tail_that_ties():
    assert last_argmax_cut(np.array([4.0, 2.0, 2.0]), np.array([4.0, 3.0, 1.0])) == 3
    assert last_argmax_cut(np.array([4.0, 1.9, 1.9]), np.array([4.0, 3.0, 1.0])) == 1
    assert last_argmax_cut(np.array([1.0, 1.0]), np.array([2.0, 1.0])) == 0
    assert last_argmax_cut(np.array([4.0, 0.5, 0.1]), np.array([4.0, 3.0, 0.0])) == 1


# Clusters -----------------------------------------------------------------------------------------------


def test_cluster_labels_count_distinct_norms_from_the_largest():
    assert cluster_labels(np.array([1.0, 3.0, 0.0, 1.0, 2.0])).tolist() == [3, 1, 0, 3, 2]
    assert cluster_labels(np.zeros(3)).tolist() == [0, 0, 0]
    assert cluster_labels(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("noise", [0.0, 1e-15, -1e-15])
def test_order_of_norms_does_not_depend_on_rounding(noise):
    norms = np.array([1.0, 3.0, 0.0, 1.0 + noise, 3.0 + noise, 2.0, 0.0])
    assert falling_order(norms).tolist() == [1, 4, 5, 0, 3, 2, 6]
    assert falling_order(norms[:0]).tolist() == []


def test_order_of_norms_falls():
    norms = np.random.default_rng(0).random(1000)
    assert (np.diff(norms[falling_order(norms)]) <= 0).all()


def test_cluster_labels_join_norms_equal_up_to_rounding():
    norms = np.array([1.0, 1.0 + 0.5 * CLUSTER_RTOL, 1.0 - 0.5 * CLUSTER_RTOL, 1.0 - 5 * CLUSTER_RTOL])
    assert cluster_labels(norms).tolist() == [1, 1, 1, 2]
    assert cluster_labels(1e-200 * norms).tolist() == [1, 1, 1, 2]  # the tolerance is relative
    assert cluster_labels(norms, rtol=1e-12).tolist() == [2, 1, 3, 4]


def test_rows_pooled_by_the_prox_share_a_label():
    """Rotated rows lose exact equality of norms; the labels do not."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((50, 3))
    V *= (2.0 + 1e-3 * rng.standard_normal((50, 1))) / row_norms(V)[:, None]
    P = prox_units(V, np.linspace(1.5, 0.5, 50))
    assert len(np.unique(row_norms(P))) > 1
    assert set(cluster_labels(row_norms(P))) == {1}


@pytest.mark.parametrize("d", [1_000, 100_000])
def test_gauge_of_many_units_is_not_too_small(d):
    """Sequential sums of many numbers lose hundreds of roundings; a dual point scaled by them would not be feasible."""
    lam = np.linspace(1.0, 1.0 / d, d)
    norms = np.full(d, 0.1)
    exact = max(Fraction(0.1) * k / total for k, total in [(d, sum(map(Fraction, lam)))])
    assert owl_gauge(norms, lam) >= float(exact) * (1 - 2**-52)
    assert owl_gauge(norms, lam) == pytest.approx(float(exact), rel=1e-13, abs=0)
