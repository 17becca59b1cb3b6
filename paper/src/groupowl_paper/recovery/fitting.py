"""The methods compared: one path of strengths each, and the choice of one strength by validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import lasso_path

from groupowl import lam_max
from groupowl._typing import FloatArray
from groupowl.path import solve_path

from .simulation import Setting, Simulation

#: What Group OWL is compared with.
BASELINE = "l21"
#: Names of weight sequences, and of the baseline, with the words for them.
METHODS = {
    BASELINE: "L2,1 (MultiTaskLasso)",
    "oscar": "OSCAR",
    "linear": "linear",
    "bh": "BH",
    "chi": "chi",
}
_MAX_ITER = 100_000  # correlations of 0.99 take coordinate descent thousands of sweeps


@dataclass(frozen=True, eq=False)
class TunedPath:
    """Coefficients along a path (n_alphas, n_features, n_tasks), and the position that validation chose."""

    coefficients: FloatArray
    chosen: int

    @property
    def B(self) -> FloatArray:
        """Coefficients at the chosen strength."""
        return self.coefficients[self.chosen]


def fit(method: str, data: Simulation, setting: Setting) -> TunedPath:
    """The path of a method on the training set, tuned on the validation set."""
    coefficients = coefficient_path(method, data.X, data.Y, setting)
    return TunedPath(coefficients, choose(coefficients, data.X_validation, data.Y_validation))


def coefficient_path(method: str, X: FloatArray, Y: FloatArray, setting: Setting) -> FloatArray:
    """Coefficients at each of ``setting.fractions`` of the method's own smallest strength that selects nothing."""
    if method == BASELINE:
        return _multi_task_lasso(X, Y, setting.fractions, setting.tol)
    return group_owl(method, X, Y, setting.fractions, setting.tol)


def group_owl(weights: str, X: FloatArray, Y: FloatArray, fractions: FloatArray, tol: float) -> FloatArray:
    """Path of Group OWL with the weights of that name."""
    strengths = lam_max(X, Y, weights) * fractions
    return np.stack([result.B for result in solve_path(X, Y, weights, strengths=strengths, tol=tol)])


def _multi_task_lasso(X: FloatArray, Y: FloatArray, fractions: FloatArray, tol: float) -> FloatArray:
    # Its loss is a mean over samples; its tolerance is relative to ||Y||^2, ours to half of that.
    alphas = lam_max(X, Y, "constant") * fractions / len(X)
    coefs = lasso_path(X, Y, alphas=alphas, tol=tol / 2.0, max_iter=_MAX_ITER)[1]
    return coefs.transpose(2, 1, 0)


def choose(coefficients: FloatArray, X: FloatArray, Y: FloatArray) -> int:
    """Position of the smallest squared error on ``X, Y``; the strongest penalty where several share it."""
    errors = [float(np.sum((Y - X @ B) ** 2)) for B in coefficients]
    return int(np.argmin(errors))
