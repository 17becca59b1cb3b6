"""Information criteria: the likelihood of a fit against its degrees of freedom, on all data, without folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .._checks import lookup
from .._kernels import EPS
from .._typing import FloatArray, IndexArray

#: Weight of the number of supports of a size in the extended criterion.
EBIC_GAMMA = 0.5

_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Evidence:
    """What a criterion knows of a fit.

    Attributes
    ----------
    loss : float
        Loss per unit of sample weight, without the penalty.
    degrees_of_freedom : float
    n_selected : int
        Penalised features in the support.
    """

    loss: float
    degrees_of_freedom: float
    n_selected: int


@dataclass(frozen=True)
class Likelihood:
    """What all fits of a data set share.

    Attributes
    ----------
    loss : {"squared", "multinomial"}
    n_samples : float
        Total sample weight: a weight of 2 counts as two samples.
    n_columns : int
        Targets or classes.
    n_penalized : int
        Features to choose from.
    null_loss : float
        Loss without features, per unit of sample weight.
    """

    loss: str
    n_samples: float
    n_columns: int
    n_penalized: int
    null_loss: float

    @property
    def n_free_columns(self) -> int:
        """Parameters of a feature: one per target, one less than classes."""
        return self.n_columns - (self.loss == "multinomial")

    def deviance(self, loss: float) -> float:
        """Minus twice the logarithm of the likelihood.

        Squared loss: normal errors of one variance for all targets, estimated from the residuals. What rounding leaves
        of a perfect fit counts as its variance.
        """
        if self.loss == "multinomial":
            return 2.0 * self.n_samples * loss
        variance = 2.0 * max(loss, EPS * self.null_loss, _SMALLEST) / self.n_columns
        return float(self.n_samples * self.n_columns * (np.log(2.0 * np.pi * variance) + 1.0))

    def shrunken_freedom(self, clusters: IndexArray, n_free: int, fit_intercept: bool) -> int:
        """Degrees of freedom of a penalised fit: the rows of a cluster share their norm.

        A cluster of m rows has ``m (q - 1) + 1``; intercepts and unpenalised features are free. ``n_free`` is the rank
        of the latter, beside the intercept: collinear columns have as many parameters as directions.
        """
        q = self.n_free_columns
        sizes = np.bincount(clusters[clusters > 0])[1:]
        return int(np.sum(sizes[sizes > 0] * (q - 1) + 1)) + q * (n_free + fit_intercept)

    def relaxed_freedom(self, n_selected: int, n_free: int, fit_intercept: bool) -> int:
        """Degrees of freedom of a fit that is free on its support."""
        return self.n_free_columns * (n_selected + n_free + fit_intercept)


def criterion_path(name: str, likelihood: Likelihood, fits: list[Evidence]) -> FloatArray:
    """The criterion of each fit; lower is better."""
    price = lookup("selection", name, _PRICES)
    return np.array([likelihood.deviance(fit.loss) + price(likelihood, fit) for fit in fits])


def _aic(likelihood: Likelihood, fit: Evidence) -> float:
    return 2.0 * fit.degrees_of_freedom


def _bic(likelihood: Likelihood, fit: Evidence) -> float:
    return float(np.log(likelihood.n_samples)) * fit.degrees_of_freedom


def _ebic(likelihood: Likelihood, fit: Evidence) -> float:
    d, k = likelihood.n_penalized, fit.n_selected
    n_supports = gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1)  # logarithm of d choose k
    return _bic(likelihood, fit) + 2.0 * EBIC_GAMMA * float(n_supports)


_PRICES = {"aic": _aic, "bic": _bic, "ebic": _ebic}
#: Names of the criteria.
CRITERIA = tuple(_PRICES)
