"""When a solver has done enough: all of them stop at the same duality gap."""

from math import log, sqrt

from benchopt.stopping_criterion import StoppingCriterion

SMALLEST_TOLERANCE = 1e-15


class GapCriterion(StoppingCriterion):
    """Stop at a relative duality gap, which unlike small progress cannot be reached by standing still.

    Parameters
    ----------
    target : float, default=1e-8
        The gap, relative to the loss at zero.
    strategy, key_to_monitor, minimize
        As in benchopt.
    """

    def __init__(self, target=1e-8, strategy=None, key_to_monitor="relative_gap", minimize=True):
        self.target = target
        super().__init__(target=target, strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize)

    def check_convergence(self, objective_list):
        gap = objective_list[-1][self.key_to_monitor_]
        if gap <= self.target:
            return True, 1.0
        return False, max(0.0, min(1.0, log(gap) / log(self.target)))

    def get_next_stop_val(self, stop_val):
        """Two tolerances per power of ten: each point of a curve is a solve of its own."""
        if self.strategy == "tolerance":
            return min(1.0, max(stop_val / sqrt(10.0), SMALLEST_TOLERANCE))
        return super().get_next_stop_val(stop_val)
