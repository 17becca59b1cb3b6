"""sortedl1: hybrid coordinate descent for SLOPE, which is Group OWL with one task."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from sortedl1 import Slope


class Solver(BaseSolver):
    """``Slope``, without centering and scaling."""

    name = "sortedl1"
    requirements = ["pip::sortedl1"]
    references = ["J. Larsson, Q. Klopfenstein, M. Massias, J. Wallin. Coordinate Descent for SLOPE. AISTATS 2023."]
    sampling_strategy = "tolerance"

    def skip(self, X, Y, lam, loss):
        if loss != "squared":
            return True, "its multinomial penalty is elementwise"
        if Y.shape[1] > 1:
            return True, "one task only"
        return False, None

    def set_objective(self, X, Y, lam, loss):
        self.model = Slope(
            lam=lam / lam[0],
            alpha=lam[0] / len(Y),
            fit_intercept=False,
            centering="none",
            scaling="none",
            max_iter=10**6,
        )
        self.X = X if sp.issparse(X) else np.asfortranarray(X)
        self.y = Y[:, 0]

    def run(self, tol):
        self.model.set_params(tol=min(tol, 1.0)).fit(self.X, self.y)

    def get_result(self):
        return {"B": self.model.coef_.reshape(-1, 1)}
