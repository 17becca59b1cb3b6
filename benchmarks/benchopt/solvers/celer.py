"""celer: coordinate descent in working sets with dual extrapolation, for equal weights."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.group_owl import has_equal_weights
from benchopt import BaseSolver
from celer.homotopy import celer_path, mtl_path


class Solver(BaseSolver):
    """The functions under its estimators, whose ``MultiTaskLasso`` needs an old version of scikit-learn."""

    name = "celer"
    requirements = ["pip::celer"]
    references = ["M. Massias, A. Gramfort, J. Salmon. Celer: a fast solver for the lasso. ICML 2018."]
    sampling_strategy = "tolerance"

    def skip(self, X, Y, lam, loss):
        if loss != "squared":
            return True, "squared loss only"
        if not has_equal_weights(lam):
            return True, "equal weights only"
        if sp.issparse(X) and Y.shape[1] > 1:
            return True, "several tasks need a dense design"
        return False, None

    def set_objective(self, X, Y, lam, loss):
        self.X = X if sp.issparse(X) else np.asfortranarray(X)
        self.Y = np.asfortranarray(Y)
        self.alphas = np.array([lam[0] / len(Y)])

    def warm_up(self):
        self.run_once(1e-2)

    def run(self, tol):
        options = {"alphas": self.alphas, "tol": min(tol, 1.0), "max_iter": 1000, "max_epochs": 10**6}
        if self.Y.shape[1] == 1:
            coefs = celer_path(self.X, self.Y[:, 0], "lasso", prune=True, **options)[1]
            self.B = coefs[:, [0]]
        else:
            self.B = mtl_path(self.X, self.Y, **options)[1][:, :, 0].T

    def get_result(self):
        return {"B": self.B}
