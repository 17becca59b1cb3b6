"""The judge: objective and duality gap of any answer, with one scaling, in plain NumPy and without groupowl.

The problem is ``F(XB) + sum_i lam_i ||B_[i],:||_2`` with ``F`` a sum over samples: half the squared distance to
``Y``, or the multinomial log-loss of one-hot ``Y``. The dual point is the residual, scaled into the dual ball.
Gaps are relative to the loss at ``B = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, logsumexp, softmax


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth; ``gap`` is relative to the loss at zero."""

    objective: float
    dual: float
    gap: float
    n_rows: int


def gauge(correlations: np.ndarray, lam: np.ndarray) -> float:
    """Dual norm of the sorted penalty: at most 1 where the dual point is feasible."""
    return float(np.max(np.cumsum(np.sort(correlations)[::-1]) / np.cumsum(lam)))


def null_loss(Y: np.ndarray, loss: str) -> float:
    return 0.5 * float(np.sum(Y * Y)) if loss == "squared" else len(Y) * float(np.log(Y.shape[1]))


def lam_max(X, Y: np.ndarray, weights: np.ndarray, loss: str) -> float:
    """Smallest strength at which ``B = 0`` is optimal."""
    return gauge(np.linalg.norm(X.T @ _residual(np.zeros_like(Y), Y, loss), axis=1), weights)


def judge(X, Y: np.ndarray, lam: np.ndarray, loss: str, rows: np.ndarray, values: np.ndarray) -> Verdict:
    """Verdict on the answer whose non-zero rows are ``values`` at ``rows``."""
    Z = X[:, rows] @ values if len(rows) else np.zeros_like(Y)
    norms = np.sort(np.linalg.norm(values, axis=1))[::-1]
    objective = _loss(Z, Y, loss) + float(norms @ lam[: len(norms)])
    residual = _residual(Z, Y, loss)
    dual = _dual(residual, Y, loss, gauge(np.linalg.norm(X.T @ residual, axis=1), lam))
    return Verdict(objective, dual, (objective - dual) / null_loss(Y, loss), len(rows))


def _loss(Z: np.ndarray, Y: np.ndarray, loss: str) -> float:
    if loss == "squared":
        return 0.5 * float(np.sum((Y - Z) ** 2))
    return float(np.sum(logsumexp(Z, axis=1) - np.sum(Y * Z, axis=1)))


def _residual(Z: np.ndarray, Y: np.ndarray, loss: str) -> np.ndarray:
    return Y - (Z if loss == "squared" else softmax(Z, axis=1))


def _dual(residual: np.ndarray, Y: np.ndarray, loss: str, size: float) -> float:
    """Dual value at the best (squared) or nearest (multinomial) feasible multiple of the residual."""
    largest = np.inf if size == 0 else 1.0 / size
    if loss == "multinomial":
        return float(np.sum(entr(np.maximum(Y - min(1.0, largest) * residual, 0.0))))
    square = float(np.sum(residual * residual))
    product = float(np.sum(residual * Y))
    factor = min(max(product / square, 0.0), largest) if square else 0.0
    return factor * product - 0.5 * factor * factor * square
