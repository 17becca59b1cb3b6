"""The public norm, dual norm and prox, and the penalty object behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import groupowl as go


def draw(seed, shape=(9, 3)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape), -np.sort(-rng.uniform(0.0, 2.0, shape[0]))


# Values -------------------------------------------------------------------------------------------------


def test_norm_by_hand():
    assert go.owl_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0]) == 11.0
    assert go.owl_norm([[0.0, 1.0], [3.0, 4.0]], [2.0, 1.0]) == 11.0  # the largest row pays most, wherever it is
    assert go.owl_norm([-1.0, 3.0, 2.0], [3.0, 2.0, 1.0]) == 14.0


def test_dual_norm_by_hand():
    assert go.owl_dual_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0]) == 2.5
    assert go.owl_dual_norm([2.0, -2.0], [2.0, 1.0]) == pytest.approx(4 / 3, rel=1e-15)


def test_prox_by_hand():
    np.testing.assert_array_equal(go.owl_prox([5.0, 4.5, 0.5], [2.0, 1.0, 1.0]), [3.25, 3.25, 0.0])
    np.testing.assert_array_equal(go.owl_prox([-0.5, 5.0, -4.5], [2.0, 1.0, 1.0]), [0.0, 3.25, -3.25])


def test_norm_is_a_norm():
    """Homogeneous, subadditive, positive when the first weight is."""
    (A, lam), (B, _) = draw(0), draw(1)
    assert go.owl_norm(-2.5 * A, lam) == pytest.approx(2.5 * go.owl_norm(A, lam), rel=1e-14)
    assert go.owl_norm(A + B, lam) <= go.owl_norm(A, lam) + go.owl_norm(B, lam) + 1e-13
    assert go.owl_norm(np.eye(9, 3), np.eye(1, 9)[0]) == 1.0
    assert go.owl_norm(np.zeros((9, 3)), lam) == 0.0


def test_constant_weights_give_the_group_lasso_norms():
    B, _ = draw(2)
    norms = np.linalg.norm(B, axis=1)
    assert go.owl_norm(B, np.full(9, 0.7)) == pytest.approx(0.7 * norms.sum(), rel=1e-14)
    assert go.owl_dual_norm(B, np.full(9, 0.7)) == pytest.approx(norms.max() / 0.7, rel=1e-14)


@pytest.mark.parametrize("step", [1e-3, 0.5, 1.0, 20.0])
def test_prox_with_a_step_is_optimal(step):
    """``(V - P)/step`` is a subgradient at ``P``."""
    V, lam = draw(3)
    P = go.owl_prox(V, lam, step=step)
    slope = (V - P) / step
    assert go.owl_dual_norm(slope, lam) <= 1 + 1e-12
    assert np.sum(slope * P) == pytest.approx(go.owl_norm(P, lam), rel=1e-11, abs=1e-14)


def test_prox_beats_every_other_point_tried():
    V, lam = draw(4)
    rng = np.random.default_rng(4)

    def objective(P):
        return np.sum((P - V) ** 2) / 2 + go.owl_norm(P, lam)

    P = go.owl_prox(V, lam)
    for size in (1e-6, 1e-3, 1.0):
        move = size * rng.standard_normal(V.shape)
        assert objective(P) + np.sum(move**2) / 2 <= objective(P + move) * (1 + 1e-13)


# Shapes and types ---------------------------------------------------------------------------------------


def test_one_dimension_is_one_task():
    V, lam = draw(5, (7, 1))
    assert go.owl_norm(V[:, 0], lam) == go.owl_norm(V, lam)
    assert go.owl_dual_norm(V[:, 0], lam) == go.owl_dual_norm(V, lam)
    P = go.owl_prox(V[:, 0], lam)
    assert P.shape == (7,)
    np.testing.assert_array_equal(P, go.owl_prox(V, lam)[:, 0])
    assert go.owl_prox(V, lam).shape == (7, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_other_numbers_are_read_as_double(dtype):
    V, lam = np.array([[3, 4], [0, 1]]).astype(dtype), np.array([2, 1])
    assert go.owl_norm(V, lam) == go.owl_norm(V.astype(float), lam.astype(float))
    assert go.owl_prox(V, lam).dtype == np.float64


def test_inputs_are_left_alone():
    V, lam = draw(6)
    copies = V.copy(), lam.copy()
    for array in (V, lam):
        array.setflags(write=False)
    go.owl_norm(V, lam), go.owl_dual_norm(V, lam), go.owl_prox(V, lam)
    np.testing.assert_array_equal(V, copies[0])
    np.testing.assert_array_equal(lam, copies[1])


def test_prox_does_not_return_its_input():
    V = np.zeros((3, 2))
    assert not np.shares_memory(go.owl_prox(V, [1.0, 1.0, 1.0]), V)


# GroupOWL -----------------------------------------------------------------------------------------------


def test_penalty_object_agrees_with_the_functions():
    B, lam = draw(7)
    penalty = go.GroupOWL(lam)
    assert penalty.value(B) == go.owl_norm(B, lam)
    assert penalty.dual_norm(B) == go.owl_dual_norm(B, lam)
    np.testing.assert_array_equal(penalty.prox(B), go.owl_prox(B, lam))
    np.testing.assert_array_equal(penalty.prox(B, 0.3), go.owl_prox(B, lam, step=0.3))


def test_penalty_object_is_frozen():
    penalty = go.GroupOWL(np.ones(2))
    with pytest.raises(AttributeError):
        penalty.lam = np.zeros(2)


def test_clusters_are_rows_of_equal_norm():
    B = np.array([[3.0, 4.0], [0.0, 1.0], [-5.0, 0.0], [0.0, 0.0], [4.0, -3.0]])
    assert go.GroupOWL(np.ones(5)).clusters(B).tolist() == [1, 2, 1, 0, 1]


# Errors -------------------------------------------------------------------------------------------------

FUNCTIONS = {"B": go.owl_norm, "C": go.owl_dual_norm, "V": go.owl_prox}


@pytest.mark.parametrize("argument", FUNCTIONS)
@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([[1.0, math.nan], [2.0, 0.0]], ValueError, r"{} has 1 NaN or infinite entry in column 1\. "),
        ([[math.inf, math.nan], [2.0, 0.0]], ValueError, r"{} has 2 NaN or infinite entries in columns 0, 1\. "),
        ([1.0, math.inf], ValueError, r"{} has 1 NaN or infinite entry\. "),
        (np.zeros((2, 1, 1)), ValueError, r"{} must be 1-dimensional or 2-dimensional, got .* shape \(2, 1, 1\)\."),
        (3.0, ValueError, r"{} must be 1-dimensional or 2-dimensional, got .* shape \(\)\."),
        ([["a"], ["b"]], TypeError, r"{} must hold real numbers, but column 0 has text"),
        (np.zeros((2, 2), dtype=object), TypeError, r"{} must hold real numbers, got dtype object\."),
        (np.zeros(2, dtype=complex), TypeError, r"{} must hold real numbers, got dtype complex128\."),
        ([[1.0], [2.0, 3.0]], ValueError, r"{} cannot be read as a rectangular array of numbers"),
    ],
)
def test_bad_rows(argument, rows, error, message):
    with pytest.raises(error, match="^" + message.format(argument)):
        FUNCTIONS[argument](rows, [2.0, 1.0])


@pytest.mark.parametrize("argument", FUNCTIONS)
@pytest.mark.parametrize(
    ("lam", "message"),
    [
        ([1.0], r"^lam must have one weight per row of .: . has 2 rows, lam has length 1"),
        ([1.0, 2.0], r"^lam must be non-increasing"),
        ([1.0, -1.0], r"^lam must be non-negative"),
        ([0.0, 0.0], r"^lam is all zero"),
        ([1.0, math.nan], r"^lam has 1 NaN"),
    ],
)
def test_bad_lam(argument, lam, message):
    with pytest.raises(ValueError, match=message):
        FUNCTIONS[argument](np.ones((2, 3)), lam)


@pytest.mark.parametrize("argument", FUNCTIONS)
def test_no_rows_at_all_names_the_argument(argument):
    with pytest.raises(ValueError, match=rf"\b({argument}|lam)\b"):
        FUNCTIONS[argument]([], [])


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_bad_step(step):
    with pytest.raises(ValueError, match=rf"^step must be a finite number above 0, got {step!r}\.$"):
        go.owl_prox([1.0], [1.0], step=step)


def test_step_of_another_type():
    with pytest.raises(TypeError, match=r"^step must be a number, got '1' of type str\.$"):
        go.owl_prox([1.0], [1.0], step="1")


def test_the_penalty_checks_its_weights():
    assert go.GroupOWL([2, 1]).lam.dtype == np.float64
    with pytest.raises(ValueError, match=r"lam must be non-increasing, but lam\[1\] = 2.0"):
        go.GroupOWL([1.0, 2.0])
    with pytest.raises(ValueError, match="lam is empty"):
        go.GroupOWL([])


# The contract of a penalty, whatever its units are ------------------------------------------------------

UNITS = {
    "rows": lambda lam: go.GroupOWL(lam),
    "pairs of rows": lambda lam: go.GroupOWL(lam, units=np.repeat(np.arange(len(lam)), 2)),
    "units of 1, 2, 3 rows": lambda lam: go.GroupOWL(
        lam, units=np.repeat(np.arange(len(lam)), 1 + np.arange(len(lam)) % 3)
    ),
    "scattered rows": lambda lam: go.GroupOWL(lam, units=np.concatenate([np.arange(len(lam))[::-1], [2, 0, 2, 5]])),
}


def make_penalty(kind, seed, n_units=8):
    rng = np.random.default_rng(seed)
    penalty = UNITS[kind](-np.sort(-rng.uniform(0.2, 2.0, n_units)))
    V = rng.standard_normal((penalty.n_rows, 3)) * penalty.spread(rng.choice([0.3, 1.0, 3.0], n_units))[:, None]
    if seed % 3 == 0:
        V[penalty.rows(np.array([0, 2]))] = 0.0
    return penalty, V


def blocks(penalty, B):
    """The rows of each unit, by the definition."""
    units = np.arange(penalty.n_units) if penalty.units is None else penalty.units
    return [B[units == k] for k in range(penalty.n_units)]


every_unit = pytest.mark.parametrize("kind", UNITS)
seeds = pytest.mark.parametrize("seed", range(6))


@every_unit
@seeds
def test_units_have_the_norms_of_their_rows(kind, seed):
    penalty, V = make_penalty(kind, seed)
    norms = [np.linalg.norm(block) for block in blocks(penalty, V)]
    np.testing.assert_allclose(penalty.norms(V), norms, rtol=1e-14)
    assert penalty.value(V) == pytest.approx(np.sort(norms)[::-1] @ penalty.lam, rel=1e-13)
    sums, weights = np.cumsum(np.sort(norms)[::-1]), np.cumsum(penalty.lam)
    assert penalty.dual_norm(V) == pytest.approx(np.max(sums / weights), rel=1e-13)
    assert penalty.gauge(penalty.norms(V)) == penalty.dual_norm(V)


@every_unit
@seeds
@pytest.mark.parametrize("step", [0.1, 1.0, 5.0])
def test_prox_is_optimal_for_any_units(kind, seed, step):
    """``(V - P)/step`` is a subgradient at ``P``: dual norm at most 1, and tight; no other point is better."""
    penalty, V = make_penalty(kind, seed)
    P = penalty.prox(V, step)
    slope = (V - P) / step
    assert penalty.dual_norm(slope) <= 1 + 1e-12
    assert np.sum(slope * P) == pytest.approx(penalty.value(P), rel=1e-10, abs=1e-13)
    in_place = V.copy()
    assert penalty.shrink(in_place, step) == pytest.approx(penalty.value(P), rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(in_place, P, rtol=0, atol=1e-14)
    kept = penalty.spread(penalty.norms(P)) > 0
    np.testing.assert_array_equal(P.any(axis=1), kept & V.any(axis=1))  # a unit is zero as a whole


@every_unit
@seeds
def test_dual_norm_is_dual(kind, seed):
    """``<B, C> <= J(B) J°(C)``, with equality for some ``B``: at the prox of a multiple of ``C``."""
    penalty, C = make_penalty(kind, seed)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        B = rng.standard_normal(C.shape)
        assert np.sum(B * C) <= penalty.value(B) * penalty.dual_norm(C) * (1 + 1e-12)
    best = penalty.prox(C, (1 - 1e-9) * penalty.dual_norm(C))
    assert best.any()
    assert np.sum(best * C) == pytest.approx(penalty.value(best) * penalty.dual_norm(C), rel=1e-6)


@every_unit
@seeds
def test_units_and_rows_belong_together(kind, seed):
    penalty, V = make_penalty(kind, seed)
    assert penalty.n_rows == len(V)
    everything = penalty.rows(np.arange(penalty.n_units))
    np.testing.assert_array_equal(everything, np.arange(penalty.n_rows))
    chosen = np.array([1, 4, 6])
    smaller = penalty.restrict(chosen)
    rows = penalty.rows(chosen)
    np.testing.assert_array_equal(smaller.norms(V[rows]), penalty.norms(V)[chosen])
    np.testing.assert_array_equal(smaller.lam, penalty.lam[:3])
    alone = np.zeros_like(V)
    alone[rows] = V[rows]
    assert smaller.value(V[rows]) == pytest.approx(penalty.value(alone), rel=1e-14)  # zeros take the smallest weights
    np.testing.assert_array_equal(penalty.spread(np.arange(penalty.n_units))[rows], smaller.spread(chosen))
    assert penalty.rows(np.zeros(0, dtype=np.intp)).shape == (0,)


@every_unit
@seeds
def test_values_of_rows_become_values_of_units(kind, seed):
    penalty, V = make_penalty(kind, seed)
    np.testing.assert_array_equal(penalty.nonzero(V), [block.any() for block in blocks(penalty, V)])
    sizes = np.abs(V[:, 0])
    lengths = [np.linalg.norm(block) for block in blocks(penalty, sizes)]
    np.testing.assert_allclose(penalty.lengths(sizes), lengths, rtol=1e-14)
    flags = np.random.default_rng(seed).random(penalty.n_rows) < 0.6
    np.testing.assert_array_equal(penalty.of_units(flags), [block.all() for block in blocks(penalty, flags)])


@every_unit
def test_clusters_are_units_of_equal_norm(kind):
    penalty, V = make_penalty(kind, 1)
    norms = penalty.norms(V)
    factors = np.ones(penalty.n_units)
    factors[[3, 5]] = norms[1] / norms[[3, 5]]
    factors[0] = 0.0
    labels = penalty.clusters(V * penalty.spread(factors)[:, None])
    assert labels.shape == (penalty.n_rows,)
    first = labels[[penalty.rows(np.array([k]))[0] for k in range(penalty.n_units)]]
    np.testing.assert_array_equal(labels, penalty.spread(first))
    assert first[0] == 0
    assert first[1] == first[3] == first[5] > 0
    assert len(np.unique(first)) == penalty.n_units - 2


@every_unit
@seeds
def test_candidates_hold_the_units_of_a_solution(kind, seed):
    """At the prox of V with step 1, ``V - P`` are the correlations at the optimum of a problem with design I."""
    penalty, V = make_penalty(kind, seed)
    P = penalty.prox(V)
    selected = np.flatnonzero(penalty.norms(P))
    assert set(selected) <= set(penalty.candidates(penalty.norms(V)))
    assert set(selected) <= set(penalty.candidates(penalty.norms(V - P) * (1 + 1e-12)))


@pytest.mark.parametrize("units", [[0, 1, 2], [0, 0], [1, 2], [[0, 1]], [0, -1]])
def test_bad_units_are_refused(units):
    with pytest.raises(ValueError, match="units must have the numbers 0 to 1, one per weight, each at least once"):
        go.GroupOWL([2.0, 1.0], units=units)


def test_units_know_whether_their_rows_follow_each_other():
    np.testing.assert_array_equal(go.GroupOWL([2.0, 1.0]).unit_starts, [0, 1, 2])
    np.testing.assert_array_equal(go.GroupOWL([2.0, 1.0], units=[0, 0, 1]).unit_starts, [0, 2, 3])
    assert go.GroupOWL([2.0, 1.0], units=[0, 1, 0]).unit_starts is None
    assert go.GroupOWL([2.0, 1.0], units=[1, 0]).unit_starts is None
