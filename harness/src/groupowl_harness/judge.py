"""The judge: objective and duality gap of any answer, with one scaling, in plain NumPy and without groupowl.

The problem is ``F(XB) + sum_i lam_i ||B_[i],:||_2``, or the same with groups of rows in the place of rows, with ``F`` a
sum over samples: half the squared distance to
``Y``, the multinomial log-loss of one-hot ``Y``, the logistic loss of 0 and 1, the Poisson loss of counts, or Cox's
partial likelihood of times without ties, which are negative where the event was not seen. The dual point is the
residual, scaled into the dual ball. Gaps are relative to the loss at ``B = 0``, above its lower bound. Targets that are
NaN were not observed, and have no part in squared, logistic and Poisson loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import entr, expit, logsumexp, softmax, xlogy

FloatArray: TypeAlias = npt.NDArray[np.float64]
# Losses that are sums over samples and tasks.
_OF_ENTRIES = ("squared", "logistic", "poisson")


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth: objective and dual value of the full problem there, and the loss at zero."""

    objective: float
    dual: float
    null_loss: float

    @property
    def gap(self) -> float:
        """Duality gap, relative to the loss at zero."""
        return (self.objective - self.dual) / self.null_loss

    @property
    def is_finite(self) -> bool:
        """Whether all three are numbers that can be compared."""
        return all(map(isfinite, (self.objective, self.dual, self.null_loss))) and self.null_loss > 0


def judge(X: Any, Y: FloatArray, lam: FloatArray, loss: str, rows: Any, values: Any, groups: Any = None) -> Verdict:
    """Objective and dual value of the full problem, from the non-zero rows of an answer.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_tasks)
    lam : ndarray of shape (n_features,), or (n_groups,)
    loss : {"squared", "multinomial", "logistic", "poisson", "cox"}
    rows : array-like of int
        Non-zero rows.
    values : array-like of shape (len(rows), n_tasks)
        Their coefficients.
    groups : ndarray of int of shape (n_features,), default=None
        The group of each feature, from 0: the norm of a group is that of all its rows together.

    Returns
    -------
    Verdict
        The dual value belongs to the residual of the answer, scaled into the dual ball: a lower bound of the
        minimum, whatever the answer. Answers that overflow have values that are not finite.
    """
    values = np.reshape(np.asarray(values, dtype=np.float64), (len(rows), Y.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X[:, rows] @ values if len(rows) else np.zeros(Y.shape)
        norms = np.sort(_norms(values, None if groups is None else np.asarray(groups)[rows]))[::-1]
        objective = _loss(Z, Y, loss) + float(norms @ lam[: len(norms)])
        residual = _residual(Z, Y, loss)
        size = gauge(_norms(X.T @ residual, groups), lam)
        dual = _RiskSets(Z, Y).dual(size) if loss == "cox" else _dual(residual, Y, loss, size)
    return Verdict(objective, dual, null_loss(Y, loss))


def gauge(correlations: FloatArray, lam: FloatArray) -> float:
    """Dual norm of the sorted penalty: at most 1 where the dual point is feasible."""
    return float(np.max(np.cumsum(np.sort(correlations)[::-1]) / np.cumsum(lam)))


def null_loss(Y: FloatArray, loss: str) -> float:
    """Loss at ``B = 0``, less the lower bound that no predictor goes below: zero but for counts."""
    floor = float(np.nansum(Y - xlogy(Y, Y))) if loss == "poisson" else 0.0
    return _loss(np.zeros(Y.shape), Y, loss) - floor


def lam_max(X: Any, Y: FloatArray, weights: FloatArray, loss: str, groups: Any = None) -> float:
    """Smallest strength at which ``B = 0`` is optimal."""
    return gauge(_norms(X.T @ _residual(np.zeros(Y.shape), Y, loss), groups), weights)


def _norms(rows: FloatArray, groups: Any) -> FloatArray:
    """Norms of rows, or of the rows of each group together."""
    norms = np.linalg.norm(rows, axis=1)
    return norms if groups is None or len(norms) == 0 else np.sqrt(np.bincount(groups, norms * norms))


class _RiskSets:
    """Samples of one task from late to early: those at risk at a death are it and the ones before it."""

    def __init__(self, Z: FloatArray, Y: FloatArray) -> None:
        if Y.shape[1] != 1 or len(np.unique(np.abs(Y))) < len(Y):
            raise ValueError("loss='cox' is judged for one task without ties")
        self.order = np.argsort(-np.abs(Y[:, 0]))
        self.z = Z[self.order, 0] - Z.max()
        self.died = Y[self.order, 0] > 0
        self.logs = np.logaddexp.accumulate(self.z)  # of the sums over those at risk

    def loss(self) -> float:
        return float(np.sum((self.logs - self.z)[self.died]))

    def residual(self) -> FloatArray:
        """Events less expected events."""
        rates = np.logaddexp.accumulate(np.where(self.died, -self.logs, -np.inf)[::-1])[::-1]
        found = np.empty((len(self.z), 1))
        found[self.order, 0] = self.died - np.exp(self.z + rates)
        return found

    def dual(self, size: float) -> float:
        """Entropy of the choices of who dies, mixed with those who did until the residual is feasible."""
        s = 1.0 / max(1.0, size)
        own = np.exp(self.z - self.logs)  # probability of the one who died
        mean = np.cumsum(np.exp(self.z) * self.z) / np.exp(self.logs)
        others = s * ((1.0 - own) * np.log(s) + mean - self.logs - xlogy(own, own))
        return -float(np.sum((others + xlogy(1.0 - s + s * own, 1.0 - s + s * own))[self.died]))


def _loss(Z: FloatArray, Y: FloatArray, loss: str) -> float:
    if loss == "cox":
        return _RiskSets(Z, Y).loss()
    if loss in _OF_ENTRIES:
        Z, Y = Z[~np.isnan(Y)], Y[~np.isnan(Y)]
    if loss == "squared":
        return 0.5 * float(np.sum((Y - Z) ** 2))
    if loss == "logistic":
        return float(np.sum(np.logaddexp(0.0, Z) - Y * Z))
    if loss == "poisson":
        return float(np.sum(np.exp(Z) - Y * Z))
    return float(np.sum(logsumexp(Z, axis=1) - np.sum(Y * Z, axis=1)))


def _residual(Z: FloatArray, Y: FloatArray, loss: str) -> FloatArray:
    if loss == "cox":
        return _RiskSets(Z, Y).residual()
    if loss == "multinomial":
        return Y - softmax(Z, axis=1)
    means = {"logistic": expit, "poisson": np.exp}.get(loss, np.asarray)(Z)
    return np.where(np.isnan(Y), 0.0, Y - means)


def _dual(residual: FloatArray, Y: FloatArray, loss: str, size: float) -> float:
    """Dual value at the best (squared) or nearest (other losses) feasible multiple of the residual."""
    largest = np.inf if size == 0 else 1.0 / size
    if loss in _OF_ENTRIES:
        residual, Y = residual[~np.isnan(Y)], Y[~np.isnan(Y)]
    if loss != "squared":
        means = np.maximum(Y - min(1.0, largest) * residual, 0.0)
        dual = float(np.sum(entr(means)))
        if loss == "logistic":
            dual += float(np.sum(entr(np.maximum(1.0 - means, 0.0))))
        return dual + float(np.sum(means)) if loss == "poisson" else dual
    square = float(np.sum(residual * residual))
    product = float(np.sum(residual * Y))
    factor = min(max(product / square, 0.0), largest) if square else 0.0
    return factor * product - 0.5 * factor * factor * square
