"""scikit-learn: coordinate descent for equal weights."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.group_owl import has_equal_weights
from benchopt import BaseSolver
from sklearn.linear_model import Lasso, MultiTaskLasso


class Solver(BaseSolver):
    """``Lasso`` for one task, ``MultiTaskLasso`` for several."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]
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
        estimator = Lasso if Y.shape[1] == 1 else MultiTaskLasso
        self.model = estimator(alpha=lam[0] / len(Y), fit_intercept=False, max_iter=10**6, copy_X=False)
        self.X = X if sp.issparse(X) else np.asfortranarray(X)
        self.y = Y[:, 0] if Y.shape[1] == 1 else np.asfortranarray(Y)

    def run(self, tol):
        self.model.set_params(tol=min(tol, 1.0)).fit(self.X, self.y)

    def get_result(self):
        return {"B": self.model.coef_.reshape(-1, self.X.shape[1]).T}
