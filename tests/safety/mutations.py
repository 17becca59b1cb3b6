"""Deliberate errors in the package that the campaign must find."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

import groupowl.screening
from groupowl.designs.observed import norms_of_tasks
from groupowl.losses import CoxLoss, MultinomialLoss, SquaredLoss, WithOffset
from groupowl.losses.cox import RiskSets
from groupowl.norm import GroupOWL
from groupowl.norm.kernels import owl_gauge
from groupowl.problem import Balls, Problem, Unpenalized
from groupowl.problem.bounds import UnitNorms, squared_distance


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
def balanced_residual_for_the_raw_one():
    """The distance to the balanced residual, without what balancing changed."""

    def balls(self, certificate, two_sided):
        found = original(self, certificate, two_sided)
        residual = certificate.residual
        if residual is None or residual.raw is None:
            return found
        square = squared_distance(certificate.theta, residual.theta, self.samples.w)
        return found._replace(distance=np.sqrt(square), balancing=0.0)

    original = Problem._balls
    with mock.patch.object(Problem, "_balls", balls):
        yield


@contextmanager
def too_small_a_spread():
    """A wrong constant in the local bound: half of the variances."""
    original = MultinomialLoss.spread
    with mock.patch.object(MultinomialLoss, "spread", lambda *arguments: 0.5 * original(*arguments)):
        yield


@contextmanager
def no_linear_term():
    """The local bound as if variances were those at the two points wherever the optimum is."""
    with mock.patch.object(MultinomialLoss, "bend", 0.0):
        yield


@contextmanager
def no_square_root_in_the_local_bound():
    """The squared radius of the local bound in place of the radius."""
    original = Problem.local_bounds

    def squared_bounds(self, certificate, *, estimated=False):
        if certificate.residual is None or self.loss.bend is None:
            return original(self, certificate)
        center, _ = self._balls(certificate, True).center(self._correlations(certificate), 0)
        return center + (original(self, certificate) - center) ** 2

    with mock.patch.object(Problem, "local_bounds", squared_bounds):
        yield


@contextmanager
def balanced_spread():
    """The local bound between the dual point and the balanced residual, as if balancing had changed nothing."""
    original = Problem.local_bounds

    def local_bounds(self, certificate, *, estimated=False):
        residual = certificate.residual
        if residual is not None and residual.raw is not None:
            certificate = replace(certificate, residual=replace(residual, raw=residual.theta, balancing=0.0))
        return original(self, certificate, estimated=estimated)

    with mock.patch.object(Problem, "local_bounds", local_bounds):
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
    """An intercept whose dual constraint is ignored, and not looked at afterwards."""
    balanced = mock.patch.object(Unpenalized, "balanced", lambda self, theta, Z: (theta, Z))
    with balanced, mock.patch.object(Problem, "_imbalance", return_value=0.0):
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


@contextmanager
def too_small_a_spread_of_expected_events():
    """A wrong constant in the local bound of the Cox loss: 0.7 of the variances."""
    original = CoxLoss.spread
    with mock.patch.object(CoxLoss, "spread", lambda *arguments: 0.7 * original(*arguments)):
        yield


@contextmanager
def no_linear_term_for_times():
    """The local bound of the Cox loss as if expected events were those at the two points wherever the optimum is."""
    with mock.patch.object(CoxLoss, "bend", 0.0):
        yield


@contextmanager
def unmixed_choices():
    """The dual value of the residual for a dual point that is a part of it."""
    original = RiskSets.mixed_entropy
    with mock.patch.object(RiskSets, "mixed_entropy", lambda self, risks, s: original(self, risks, 1.0)):
        yield


@contextmanager
def deaths_at_risk_no_more():
    """Efron's ties with Breslow's dual value: tied deaths at full risk in each term."""
    original = RiskSets.mixed_entropy

    def entropy(self, risks, s):
        return original(replace(self, less=np.zeros_like(self.less)), risks, s)

    with mock.patch.object(RiskSets, "mixed_entropy", entropy):
        yield


# What real tables have -------------------------------------------------------------------------------------


@contextmanager
def spectral_norms_from_below():
    """The longest column of a group for its spectral norm: what an iteration that has not converged says."""
    original = UnitNorms.__init__

    def planted(self, design, w, penalty, norms, *others):
        original(self, design, w, penalty, norms, *others)
        self.bounds = np.zeros(penalty.n_units)
        np.maximum.at(self.bounds, penalty.units, norms)
        self.is_open[:] = False

    with mock.patch.object(UnitNorms, "__init__", planted):
        yield


@contextmanager
def smallest_column_in_the_local_bound():
    """The local bound of a group from its smallest column, not from the sum of them."""

    def sums(self, values):
        if self.units is None:
            return values
        found = np.full((self.n_units, *values.shape[1:]), np.inf)
        np.minimum.at(found, self.units, values)
        return found

    original = Problem.local_bounds

    def local_bounds(self, *arguments, **keywords):
        with mock.patch.object(GroupOWL, "sums", sums):
            return original(self, *arguments, **keywords)

    with mock.patch.object(Problem, "local_bounds", local_bounds):
        yield


@contextmanager
def mean_norm_of_tasks():
    """The mean of the norms that a column has in the tasks, not the largest."""

    def norms(design, w, *, center):
        own, whole = norms_of_tasks(design, w, center=center)
        return np.broadcast_to(np.sqrt((own**2).mean(axis=1, keepdims=True)), own.shape), whole

    with mock.patch("groupowl.problem.build.norms_of_tasks", norms):
        yield


@contextmanager
def half_the_conjugate_of_a_ridge():
    """A wrong factor in the dual of a ridge."""
    original = GroupOWL.conjugate

    def conjugate(self, C):
        value, at = original(self, C)
        return 0.5 * value, at

    with mock.patch.object(GroupOWL, "conjugate", conjugate):
        yield


@contextmanager
def no_ridge_in_the_primal():
    """The penalty of coefficients without their ridge."""
    with mock.patch.object(GroupOWL, "ridge_value", return_value=0.0):
        yield


@contextmanager
def projection_onto_the_wrong_cones():
    """Correlations that count where the sign is wrong, and not where it is right: dual points are not feasible."""
    original = GroupOWL.correlations

    def correlations(self, C):
        return original(self, C) if self.signs is None else original(self, -C)

    with mock.patch.object(GroupOWL, "correlations", correlations):
        yield


@contextmanager
def any_sign_will_do():
    """Coefficients of a wrong sign are certified like others."""
    original = GroupOWL.value
    with mock.patch.object(GroupOWL, "value", lambda self, B: original(self, self.projected(B))):
        yield


@contextmanager
def no_offset_in_the_dual():
    """The dual value without its product with the offset."""
    with mock.patch.object(WithOffset, "_product", return_value=0.0):
        yield


@contextmanager
def missing_targets_count():
    """Weights of one for targets that nobody has seen, which are taken as zero."""
    original = SquaredLoss.dual_point

    def dual_point(self, Z, Y, w):
        return original(self, Z, Y, np.where(w == 0.0, 1.0, w) if w.shape[1] > 1 else w)

    with mock.patch.object(SquaredLoss, "dual_point", dual_point):
        yield


#: Errors in what real tables have, with the trait that problems must have to notice.
TABLE_MUTATIONS = {
    mutation.__name__: (mutation, trait)
    for mutation, trait in (
        (spectral_norms_from_below, "groups"),
        (smallest_column_in_the_local_bound, "groups"),
        (mean_norm_of_tasks, "missing targets"),
        (half_the_conjugate_of_a_ridge, "ridge"),
        (no_ridge_in_the_primal, "ridge"),
        (projection_onto_the_wrong_cones, "signs"),
        (any_sign_will_do, "signs"),
        (no_offset_in_the_dual, "offset"),
        (missing_targets_count, "missing targets"),
    )
}

#: Errors in the Cox loss, which problems of other losses cannot notice.
COX_MUTATIONS = {
    mutation.__name__: mutation
    for mutation in (
        too_small_a_spread_of_expected_events,
        no_linear_term_for_times,
        unmixed_choices,
        deaths_at_risk_no_more,
    )
}

MUTATIONS = {
    mutation.__name__: mutation
    for mutation in (
        no_slack,
        too_strong_concavity,
        no_square_root,
        no_square_root_at_the_midpoint,
        too_small_a_midpoint_ball,
        balanced_residual_for_the_raw_one,
        too_small_a_spread,
        no_linear_term,
        no_square_root_in_the_local_bound,
        balanced_spread,
        wrong_weights_in_the_reduced_gauge,
        forgotten_balance,
        smallest_weights_stay,
    )
}
