"""The objective: Group OWL with squared or multinomial loss, judged by a duality gap."""

import numpy as np
from benchmark_utils.criterion import GapCriterion
from benchmark_utils.group_owl import lam_max, loss_value, primal_and_dual, sorted_weights
from benchopt import BaseObjective


class Objective(BaseObjective):
    """``F(XB) + sum_i lam_i ||B_[i],:||_2`` with ``lam = reg * lam_max * weights``; the loss comes with the data.

    With ``weights="constant"`` it is the multi-task lasso, where solvers of the group lasso take part.
    """

    name = "Group OWL"
    min_benchopt_version = "1.10"
    requirements = ["numpy", "scipy"]
    parameters = {
        "weights": ["constant", "oscar", "bh"],
        "reg": [0.5, 0.1],
    }
    # Not is_convex: the check of optimality that benchopt 1.10.0 makes then takes a list of results for a dictionary.
    # groupowl's tests/test_benchopt.py looks at the gaps that solvers reach.
    stopping_criterion = GapCriterion()
    test_dataset_name = "simulated"

    def set_data(self, X, Y, loss):
        self.X, self.Y, self.loss = X, Y, loss
        weights = sorted_weights(self.weights, X.shape[1])
        self.lam = self.reg * lam_max(X, Y, weights, loss) * weights
        self.null_loss = loss_value(np.zeros(Y.shape), Y, loss)

    def skip(self, X, Y, loss):
        if loss not in ("squared", "multinomial"):
            return True, f"no loss {loss!r}"
        return False, None

    def get_objective(self):
        return {"X": self.X, "Y": self.Y, "lam": self.lam, "loss": self.loss}

    def evaluate_result(self, B):
        primal, dual = primal_and_dual(self.X, self.Y, self.lam, self.loss, B)
        return {
            "value": primal,
            "duality_gap": primal - dual,
            "relative_gap": (primal - dual) / self.null_loss,
            "n_selected": int(np.count_nonzero(np.any(B != 0.0, axis=1))),
        }

    def get_one_result(self):
        return {"B": np.zeros((self.X.shape[1], self.Y.shape[1]))}
