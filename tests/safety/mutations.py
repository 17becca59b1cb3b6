"""Deliberate errors in the package that the campaign must find."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np

import groupowl.screening
from groupowl.losses import MultinomialLoss
from groupowl.norm.kernels import owl_gauge
from groupowl.problem import Balls, Problem, Unpenalized


@contextmanager
def no_slack():
    """No bound on rounding errors, neither in the gap nor in the correlations nor in the partial sums."""

    def bare_cut(upper, lam):
        excess = np.concatenate([[0.0], np.cumsum(upper - lam)])
        return len(upper) - int(np.argmax(excess[::-1]))

    with (
        mock.patch.object(Problem, "_rounding", return_value=0.0),
        mock.patch.object(Problem, "_cancellation", return_value=0.0),
        mock.patch("groupowl.problem.bounds.EPS", 0.0),
        mock.patch("groupowl.norm.kernels.last_argmax_cut", bare_cut),
    ):
        yield


@contextmanager
def too_strong_concavity():
    """L = 4 in place of 2 for the multinomial loss: a radius too small by a factor of 0.71."""
    with mock.patch.object(MultinomialLoss, "curvature", 0.25):
        yield


@contextmanager
def no_square_root():
    """The squared radius in place of the radius, about the dual point."""
    with mock.patch.object(Balls, "radius", property(lambda self: 2.0 * self.curvature * self.gap)):
        yield


@contextmanager
def no_square_root_at_the_midpoint():
    """The squared radius of the midpoint ball in place of the radius."""
    radius = Balls.midpoint_radius.fget
    with mock.patch.object(Balls, "midpoint_radius", property(lambda self: radius(self) ** 2)):
        yield


@contextmanager
def too_small_a_midpoint_ball():
    """A wrong constant: all of the squared distance taken off, not a quarter."""

    def wrong_radius(self):
        return np.sqrt(max(self.curvature * self.gap - self.distance**2, 0.0))

    with mock.patch.object(Balls, "midpoint_radius", property(wrong_radius)):
        yield


@contextmanager
def wrong_weights_in_the_reduced_gauge():
    """The dual ball of a reduced problem measured with weights that are all as large as the first."""

    def wrong_gauge(norms, lam):
        return owl_gauge(norms, np.full_like(lam, lam[0]) if 0 < len(lam) < wrong_gauge.full else lam)

    wrong_gauge.full = 0
    original = groupowl.screening.ScreenedProblem.certify

    def certify(self, *arguments, **keywords):
        wrong_gauge.full = self.full.n_rows
        return original(self, *arguments, **keywords)

    with (
        mock.patch("groupowl.norm.penalty.owl_gauge", wrong_gauge),
        mock.patch.object(groupowl.screening.ScreenedProblem, "certify", certify),
    ):
        yield


@contextmanager
def forgotten_balance():
    """An intercept whose dual constraint is ignored."""
    with mock.patch.object(Unpenalized, "balanced", lambda self, theta, Z: theta):
        yield


@contextmanager
def smallest_weights_stay():
    """Rows that leave take the largest weights with them instead of the smallest."""
    original = Problem.restrict

    def restrict(self, keep):
        reduced = original(self, keep)
        return reduced.with_lam(self.lam[len(self.lam) - len(keep) :])

    with mock.patch.object(Problem, "restrict", restrict):
        yield


MUTATIONS = {
    mutation.__name__: mutation
    for mutation in (
        no_slack,
        too_strong_concavity,
        no_square_root,
        no_square_root_at_the_midpoint,
        too_small_a_midpoint_ball,
        wrong_weights_in_the_reduced_gauge,
        forgotten_balance,
        smallest_weights_stay,
    )
}
