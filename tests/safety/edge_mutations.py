"""The false proofs that the campaign at the edges was made for, put back one by one."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np

from groupowl.designs import SufficientStatistics
from groupowl.losses import Loss
from groupowl.problem import Certificate, Problem, Published
from groupowl.solvers import solve_result


@contextmanager
def trusted_null_model():
    """The null model is called optimal wherever its gradient lies in the dual ball, whether or not it was found."""
    original = Problem._certificate_at

    def certificate_at(self, B, residual, primal):
        found = original(self, B, residual, primal)
        if not np.array_equal(B, self.null_coefficients()) or found.correlations.max() > residual.correlations.max():
            return found
        point = found.theta, found.correlations, found.theta_norm
        return Certificate(*point, primal, primal, 0.0, 0.0, residual=residual)

    with (
        mock.patch.object(Problem, "_certificate_at", certificate_at),
        mock.patch.object(Loss, "longest_move", np.inf),
    ):
        yield


@contextmanager
def trusted_deviations():
    """Deviations of statistics are taken as they are."""

    def deviations(self):
        return np.sqrt(np.diagonal(self.gram) / self.total_weight), 0.0

    with mock.patch.object(SufficientStatistics, "deviations", deviations):
        yield


@contextmanager
def unnoticed_underflow():
    """Squares that vanish make columns and targets constant."""
    with (
        mock.patch("groupowl.designs.wrapped.check_underflow"),
        mock.patch("groupowl.problem.build.check_underflow"),
        mock.patch("groupowl.problem.build._check_products"),
        mock.patch("groupowl.problem.samples.check_underflow"),
        mock.patch("groupowl.problem.unpenalized.check_underflow"),
        mock.patch("groupowl.designs.statistics._sizes", lambda squares, V: np.sqrt(squares)),
    ):
        yield


@contextmanager
def rounded_afterwards():
    """The gap is that of the numbers before they are rounded for users."""

    def published(problem, coefficients, certificate, dtype=np.float64):
        B, intercept = problem.to_input(coefficients)
        return Published(B.astype(dtype), intercept.astype(dtype), 0.0, 0.0)

    with (
        mock.patch("groupowl.solvers.driver.published", published),
        mock.patch("groupowl.solvers.continuation.published", published),
        mock.patch("groupowl.solvers.continuation.all_published", return_value=None),
    ):
        yield


@contextmanager
def proved_constant():
    """Columns that vary by rounding are called proved zero."""
    original = solve_result._when_proved

    def when_proved(*problems):
        screened_at = original(*problems)
        screened_at[screened_at == solve_result.AS_CONSTANT] = 0
        return screened_at

    with mock.patch.object(solve_result, "_when_proved", when_proved):
        yield


#: Each with the known cases that must show it.
MUTATIONS = {
    "trusted null model": (trusted_null_model, ["null model with unpenalized columns"]),
    "trusted deviations": (
        trusted_deviations,
        ["statistics subtracted", "statistics of sparse data with an offset"],
    ),
    "unnoticed underflow": (unnoticed_underflow, ["underflow of X", "underflow of y"]),
    "rounded afterwards": (
        rounded_afterwards,
        ["rounded intercept", "rounded unpenalized coefficients", "rounded to float32"],
    ),
    "proved constant": (proved_constant, ["constant by rounding"]),
}
