"""Group OWL problems in plain NumPy, without groupowl: weights, loss, norm, dual norm and duality gap.

The problem is ``F(XB) + sum_i lam_i ||B_[i],:||_2``, where ``||B_[1],:|| >= ||B_[2],:|| >= ...`` are the sorted norms
of the rows of ``B``, ``lam`` does not increase, and ``F`` is half the squared distance to ``Y`` or the multinomial
log-loss of one-hot ``Y``, both summed over samples.
"""

import numpy as np
from scipy.special import entr, logsumexp, softmax
from scipy.stats import norm


def sorted_weights(name, n_features):
    """A sequence that does not increase and begins with 1."""
    ranks = np.arange(1, n_features + 1)
    if name == "constant":
        return np.ones(n_features)
    if name == "oscar":
        weights = 1.0 + (n_features - ranks) / n_features
    elif name == "bh":
        weights = norm.isf(0.1 * ranks / (2 * n_features))
    else:
        raise ValueError(f"weights must be 'constant', 'oscar' or 'bh', got {name!r}.")
    return weights / weights[0]


def has_equal_weights(lam):
    """Whether the penalty is that of the group lasso."""
    return lam[0] == lam[-1]


def dual_norm(C, lam):
    """Dual of the norm at the rows of ``C``: at most 1 where a dual point is feasible."""
    sorted_norms = np.sort(np.linalg.norm(C, axis=1))[::-1]
    return np.max(np.cumsum(sorted_norms) / np.cumsum(lam))


def residual(Z, Y, loss):
    """Minus the gradient of the loss in the predictor ``Z = XB``."""
    return Y - (Z if loss == "squared" else softmax(Z, axis=1))


def loss_value(Z, Y, loss):
    """The loss at the predictor ``Z``."""
    if loss == "squared":
        return 0.5 * np.sum((Y - Z) ** 2)
    return np.sum(logsumexp(Z, axis=1) - np.sum(Y * Z, axis=1))


def lam_max(X, Y, weights, loss):
    """Smallest multiple of the weights at which ``B = 0`` is optimal."""
    return dual_norm(X.T @ residual(np.zeros(Y.shape), Y, loss), weights)


def primal_and_dual(X, Y, lam, loss, B):
    """Objective at ``B``, and dual objective at the residual of ``B``, scaled into the dual ball: a lower bound."""
    Z = X @ B
    row_norms = np.sort(np.linalg.norm(B, axis=1))[::-1]
    primal = loss_value(Z, Y, loss) + row_norms @ lam
    R = residual(Z, Y, loss)
    scale = 1.0 / max(1.0, dual_norm(X.T @ R, lam))
    if loss == "squared":
        return primal, scale * np.sum(R * Y) - 0.5 * scale**2 * np.sum(R * R)
    return primal, np.sum(entr(np.maximum(Y - scale * R, 0.0)))
