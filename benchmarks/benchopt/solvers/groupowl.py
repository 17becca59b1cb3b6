"""groupowl: working sets with safe screening, or the accelerated proximal gradient method of the paper."""

from benchopt import BaseSolver

import groupowl as go


class Solver(BaseSolver):
    """``groupowl.solve``; the tolerance is the relative duality gap that it proves."""

    name = "groupowl"
    requirements = ["pip::groupowl"]
    references = ["R. Bao, Q. Lu, Y. Zhang. Safe Screening Rules for Group OWL Models. IJCNN 2025."]
    parameters = {"solver": ["auto", "apgd"]}
    sampling_strategy = "tolerance"

    def set_objective(self, X, Y, lam, loss):
        self.problem = (X, Y, lam)
        self.loss = loss

    def warm_up(self):
        self.run_once(1e-2)

    def run(self, tol):
        options = {"loss": self.loss, "solver": self.solver, "tol": min(tol, 1.0), "max_iter": 10**7}
        self.B = go.solve(*self.problem, **options).B

    def get_result(self):
        return {"B": self.B}
