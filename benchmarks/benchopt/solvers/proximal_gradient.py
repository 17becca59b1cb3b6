"""The reference: the accelerated proximal gradient method (FISTA) in NumPy, with nothing else."""

import numpy as np
from benchmark_utils.criterion import GapCriterion
from benchmark_utils.group_owl import residual
from benchopt import BaseSolver
from scipy.optimize import isotonic_regression
from scipy.sparse.linalg import svds


class Solver(BaseSolver):
    """FISTA with the step that the largest singular value of the design gives."""

    name = "proximal gradient"
    requirements = ["numpy", "scipy"]
    references = ["A. Beck, M. Teboulle. A Fast Iterative Shrinkage-Thresholding Algorithm. SIAM J. Imaging Sci. 2009."]
    sampling_strategy = "callback"
    stopping_criterion = GapCriterion(strategy="callback")  # that of the objective takes the strategy of its first user

    def set_objective(self, X, Y, lam, loss):
        self.X, self.Y, self.lam, self.loss = X, Y, lam, loss

    def run(self, callback):
        self.B = B_ahead = np.zeros((self.X.shape[1], self.Y.shape[1]))
        curvature = 1.0 if self.loss == "squared" else 0.5
        step = 1.0 / (curvature * largest_singular_value(self.X) ** 2)
        t = 1.0
        while callback():
            gradient = -self.X.T @ residual(self.X @ B_ahead, self.Y, self.loss)
            B = prox(B_ahead - step * gradient, step * self.lam)
            t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            B_ahead = B + (t - 1.0) / t_next * (B - self.B)
            self.B, t = B, t_next

    def get_result(self):
        return {"B": self.B}


def largest_singular_value(X):
    """Rounded up a little, so that the step is never too long."""
    if min(X.shape) < 3:
        return np.linalg.norm(X @ np.eye(X.shape[1]), 2)
    return 1.0001 * svds(X, k=1, return_singular_vectors=False, rng=np.random.default_rng(0))[0]


def prox(V, lam):
    """The norms of the rows less ``lam`` in their order, made non-increasing and non-negative; directions stay."""
    norms = np.linalg.norm(V, axis=1)
    order = np.argsort(-norms)
    shrunk = np.empty_like(norms)
    shrunk[order] = np.maximum(isotonic_regression(norms[order] - lam, increasing=False).x, 0.0)
    return V * np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0.0)[:, None]
