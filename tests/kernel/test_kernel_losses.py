"""The laws that each entry of the kernel's table of losses obeys, and its twin in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_support import loss_entry, pointer

from groupowl import kernel
from groupowl.losses import resolve_loss
from support import make_case

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))

LOSSES = [loss for loss in kernel.KernelInfo.losses if loss != "squared"]  # which has no weights of its own


class Entry:
    """An entry with its data, as functions of arrays."""

    def __init__(self, name, seed=0, size=1.0):
        self.loss, self.entry = resolve_loss(name), loss_entry(name)
        rng = np.random.default_rng(seed)
        self.Y = np.ascontiguousarray(make_case(seed, n=40, q=3, loss=name).Y)
        self.w = rng.uniform(0.2, 3.0, len(self.Y))
        self.Z = size * rng.standard_normal(self.Y.shape)
        self.given = self.Y, self.w[:, None]
        self.shape = self.Y.shape

    def evaluate(self, Z):
        theta = np.empty(self.shape)
        return self.entry.evaluate(*self.shape, *map(pointer, (Z, self.Y, self.w, theta))), theta

    def dual(self, theta, scale=1.0):
        return self.entry.dual(*self.shape, pointer(theta), scale, pointer(self.Y), pointer(self.w))

    def balance(self, theta):
        balanced = theta.copy()
        self.entry.balance(*self.shape, *map(pointer, (balanced, self.Y, self.w, np.empty(2 * self.shape[1]))))
        return balanced

    def curvatures(self, theta):
        H = np.empty(self.shape)
        self.entry.curvatures(*self.shape, *map(pointer, (theta, self.Y, self.w, H)))
        return H


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0])
def test_value_and_dual_point_are_those_of_numpy(name, size):
    for seed in range(5):
        case = Entry(name, seed, size)
        value, theta = case.evaluate(case.Z)
        assert value == pytest.approx(case.loss.value(case.Z, *case.given), rel=1e-13)
        expected = case.loss.dual_point(case.Z, *case.given)
        np.testing.assert_allclose(theta, expected, rtol=1e-12, atol=1e-15 * np.abs(expected).max())


@pytest.mark.parametrize("name", LOSSES)
def test_the_dual_point_is_minus_the_gradient(name):
    case = Entry(name)
    _, theta = case.evaluate(case.Z)
    for i, k in [(0, 0), (7, 2), (39, 1)]:
        move = np.zeros(case.shape)
        move[i, k] = 1e-6
        slope = (case.evaluate(case.Z + move)[0] - case.evaluate(case.Z - move)[0]) / 2e-6
        assert slope == pytest.approx(-theta[i, k], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_fenchel_and_young(name):
    """Equality at the dual point of a predictor, and an inequality at those of all others."""
    for seed in range(5):
        case = Entry(name, seed)
        value, theta = case.evaluate(case.Z)
        assert value - case.dual(theta) == pytest.approx(-np.vdot(case.Z, theta), rel=1e-11, abs=1e-11 * abs(value))
        other, scale = Entry(name, seed + 10).Z, 0.7
        _, point = case.evaluate(other)
        assert value - case.dual(point, scale) > -scale * np.vdot(case.Z, point)
        assert case.dual(point, scale) == pytest.approx(case.loss.dual_value(scale * point, *case.given), rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_outside_of_the_domain_there_is_no_dual_value(name):
    case = Entry(name)
    _, theta = case.evaluate(case.Z)
    for excess, is_inside in [(1e-15, True), (1e-9, False), (1.0, False)]:
        outside = theta.copy()
        outside[3] = case.w[3] * case.Y[3]  # means of zero
        outside[3, 0] += case.w[3] * excess
        if name == "multinomial":
            outside[3, 1] -= case.w[3] * (1.0 + excess)
        assert np.isfinite(case.dual(outside)) == is_inside
        assert np.isfinite(case.loss.dual_value(outside, *case.given)) == is_inside
    theta[5, 1] = np.nan
    assert case.dual(theta) == -np.inf


@pytest.mark.parametrize("name", LOSSES)
def test_balance_ends_sums_and_stays_in_the_domain(name):
    for seed in range(5):
        for size, shift in [(1.0, 0.0), (1.0, 2.0), (1.0, -2.0), (10.0, 0.0)]:
            case = Entry(name, seed, size)
            _, theta = case.evaluate(case.Z + shift * np.array([1.0, 0.3, -1.0]))
            balanced = case.balance(theta)
            assert np.abs(balanced.sum(axis=0)).max() <= 1e-13 * (np.abs(theta).sum() + np.abs(case.Y).sum())
            assert np.isfinite(case.dual(balanced))
            expected = case.loss.balance(theta, *case.given, case.loss.balance_totals(theta, *case.given))
            np.testing.assert_allclose(balanced, expected, rtol=1e-10, atol=1e-13 * np.abs(theta).max())


@pytest.mark.parametrize("name", LOSSES)
def test_curvatures_are_those_of_the_value(name):
    case = Entry(name)
    _, theta = case.evaluate(case.Z)
    H = case.curvatures(theta)
    for i, k in [(0, 0), (7, 2), (39, 1)]:
        move = np.zeros(case.shape)
        move[i, k] = 1e-6
        slope = (case.evaluate(case.Z - move)[1] - case.evaluate(case.Z + move)[1])[i, k] / 2e-6
        assert H[i, k] == pytest.approx(slope, rel=1e-5)
    near = case.entry.curvature_near(*case.shape, *map(pointer, (theta, case.Y, case.w)))
    rng = np.random.default_rng(0)
    for _ in range(20):  # of each f_i, whose dual point is theta_i / w_i
        moved = case.Z + rng.uniform(-1.0, 1.0, case.shape)
        assert np.max(case.curvatures(case.evaluate(moved)[1]) / case.w[:, None]) <= near


@pytest.mark.parametrize("name", LOSSES)
def test_what_cancels_is_what_numpy_says(name):
    case = Entry(name, size=5.0)
    found = case.entry.cancelling(*case.shape, pointer(case.Z), pointer(case.w))
    assert found == pytest.approx(case.loss.cancelling_size(case.Z, case.w[:, None]), rel=1e-13)


@pytest.mark.parametrize("name", LOSSES)
def test_the_null_model_is_balanced(name):
    case = Entry(name)
    intercept = np.empty(case.shape[1])
    case.entry.null_intercept(*case.shape, *map(pointer, (case.Y, case.w, intercept)))
    _, theta = case.evaluate(np.tile(intercept, (case.shape[0], 1)))
    assert np.abs(theta.sum(axis=0)).max() <= 1e-12 * np.abs(theta).sum()


@pytest.mark.parametrize("name", kernel.KernelInfo.losses)
def test_losses_made_of_others_are_not_compiled(name):
    """The kernel would solve, and prove, something else."""
    loss = resolve_loss(name)
    assert loss.compiled == name
    assert type("Other", (type(loss),), {}).compiled == ""


def test_poisson_loss_is_infinite_where_means_overflow():
    case = Entry("poisson")
    case.Z[4, 1] = 501.0
    assert case.evaluate(case.Z)[0] == np.inf
