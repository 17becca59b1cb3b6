"""Settings and algorithms of the paper's experiments, and the choices that the paper leaves open.

The paper's settings are OSCAR weights ``lam_j = alpha_1 + alpha_2 (d - j)`` with ``alpha_1 = p_i max_j ||x_j^T Y||``,
``alpha_2 = alpha_1 / d`` and ``p_i = i exp(-tau)`` for i = 1, 2, 3; no intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groupowl import APGD, SPGD, WorkingSet, oscar_lam
from groupowl._checks import finite_number, lookup, positive_integer
from groupowl._typing import FloatArray

from ..data import DATASETS

#: Relative gap that runs are asked for, and the one of the reference solution.
TOL = 1e-6
REFERENCE_TOL = 1e-8
#: Settings p_1, p_2, p_3, by their factor i.
SETTINGS = (1, 2, 3)
#: Steps of the paper for Algorithm 2, from the largest; the pilot takes the first that descends.
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
#: Snapshots of a pilot for one step.
PILOT_SNAPSHOTS = 20
#: Snapshots that every step of a pilot gets, however long they take; with fewer, nothing is said about it.
FEWEST_SNAPSHOTS = 3
#: Seconds of a pilot, for all its steps together.
PILOT_SECONDS = 20.0
#: Warm start before screening: iterations of APGD, snapshots of SPGD with the paper's and the automatic step.
WARM_START = {"apgd": 10, "apgd-restart": 0, "spgd-paper": 10, "spgd-auto": 1, "default": 0}
#: Samples from which the mini-batch and the inner length of SPGD are 40 instead of 30.
MANY_SAMPLES = 10_000


def setting_lam(X: Any, Y: FloatArray, tau: float, i: int) -> FloatArray:
    """OSCAR weights of setting ``p_i``: ``alpha_1 = i exp(-tau) max_j ||x_j^T Y||`` and ``alpha_2 = alpha_1 / d``.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_tasks)
    tau : float
        The paper's exponent for the data set.
    i : int
        Number of the setting.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from groupowl_paper.reproduce.settings import setting_lam
    >>> setting_lam(np.eye(2), np.array([[3.0, 4.0], [0.0, 1.0]]), tau=0.0, i=2)  # max_j ||x_j^T Y|| = 5
    array([15., 10.])
    """
    d = X.shape[1]
    alpha_1 = i * np.exp(-tau) * float(np.linalg.norm(X.T @ Y, axis=1).max())
    return oscar_lam(d, alpha_1, alpha_1 / d)


# Algorithms ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the comparison: a family of solvers and a screening rule.

    Attributes
    ----------
    name : str
        Short and stable: part of the names of stored files.
    label : str
        For tables and figures.
    family : str
        Runs of one family differ in their screening rule and in what follows from it. For APGD that is more than fewer
        rows: momentum starts anew whenever rows leave, and steps may become longer, while a run without screening never
        restarts. What restarts alone are worth is measured by the family of ``RESTARTED``.
    screening : {"none", "paper", "safe"}
    """

    name: str
    label: str
    family: str
    screening: str

    @property
    def is_stochastic(self) -> bool:
        """Whether trials differ in more than their time."""
        return self.family.startswith("spgd")


#: Families by name, with what they are called.
FAMILIES = {
    "apgd": "APGD",
    "apgd-restart": "APGD with gradient restart",
    "spgd-paper": "SPGD, paper's step",
    "spgd-auto": "SPGD, automatic step",
    "default": "groupowl's default solver",
}
#: Screening rules by name, with what they are called.
RULES = {"none": "no screening", "paper": "paper's rule", "safe": "extended rule"}

_STEPPING = [
    Algorithm(f"{family}-{rule}", f"{FAMILIES[family]}, {RULES[rule]}", family, rule)
    for family in ("apgd", "spgd-paper", "spgd-auto")
    for rule in RULES
]
#: A second baseline on batch data sets: restarts of momentum without screening.
RESTARTED = Algorithm("apgd-none-restart", f"{FAMILIES['apgd-restart']}, {RULES['none']}", "apgd-restart", "none")
#: The solver that everyone gets.
DEFAULT = Algorithm("default", FAMILIES["default"], "default", "safe")
#: Every algorithm by name.
ALGORITHMS = {algorithm.name: algorithm for algorithm in (*_STEPPING, RESTARTED, DEFAULT)}


def families_of(solver: str) -> tuple[str, ...]:
    """Families that run on data sets with the paper's ``solver``; the default solver runs on all."""
    return ("apgd",) if solver == "apgd" else ("spgd-paper", "spgd-auto")


class _PatientAPGD(APGD):
    """Plain momentum swings for thousands of iterations on images: the time limit ends a run, not lack of progress."""

    patience = 10**9


class _PatientSPGD(SPGD):
    """The same for the paper's tiny steps."""

    patience = 10**9


def batch_size(n_samples: int) -> int:
    """Mini-batch and inner length of SPGD, which the paper sets to 30 or 40 without saying where."""
    return 40 if n_samples >= MANY_SAMPLES else 30


def make_solver(family: str, n_samples: int, step: float | None = None) -> Any:
    """The solver of a family; ``step`` is that of SPGD where it is not automatic."""
    size, screen_after = batch_size(n_samples), WARM_START[family]
    makers: dict[str, Callable[[], Any]] = {
        "apgd": lambda: _PatientAPGD(screen_after=screen_after),
        "apgd-restart": lambda: _PatientAPGD(restart="gradient"),
        "spgd-paper": lambda: _PatientSPGD(size, inner_steps=size, step=step or "auto", screen_after=screen_after),
        "spgd-auto": lambda: _PatientSPGD(size, screen_after=screen_after),
        "default": WorkingSet,
    }
    return lookup("family", family, makers)()


# Options ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """What a user may choose.

    Attributes
    ----------
    cap : float
        Seconds after which a run is stopped.
    step_cap : float
        The same for SPGD with the paper's step.
    trials : int
        Runs of one cell.
    minutes : float
        Most time to spend.
    jobs : int
        Runs side by side.
    study : bool
        Whether to run the study of correlated groups as well.
    quick : bool
        On stochastic data sets only setting p_1, no extended rule, and no reference solution; on batch data sets no
        second baseline.
    datasets : tuple of str or None
        Names of data sets; None for all that are found.
    tol : float
        Relative gap that runs are asked for.
    reference_tol : float
        Relative gap of the solution that answers are compared with.
    steps : tuple of float
        Steps that the pilot tries, from the largest.
    """

    cap: float = 90.0
    step_cap: float = 90.0
    trials: int = 5
    minutes: float = 120.0
    jobs: int = 1
    study: bool = True
    quick: bool = False
    datasets: tuple[str, ...] | None = None
    tol: float = TOL
    reference_tol: float = REFERENCE_TOL
    steps: tuple[float, ...] = STEPS

    def __post_init__(self) -> None:
        finite_number("cap", self.cap, above=0.0)
        finite_number("step_cap", self.step_cap, above=0.0)
        finite_number("minutes", self.minutes, above=0.0)
        finite_number("tol", self.tol, above=0.0)
        positive_integer("trials", self.trials)
        positive_integer("jobs", self.jobs)
        for name in self.datasets or ():
            lookup("datasets", name, DATASETS)

    def limit(self, family: str) -> float:
        """Seconds after which a run of the family is stopped."""
        return self.step_cap if family == "spgd-paper" else self.cap

    def settings(self, solver: str) -> tuple[int, ...]:
        """Settings that are run on data sets with the paper's ``solver``."""
        return SETTINGS[:1] if self.quick and solver == "spgd" else SETTINGS

    def algorithms(self, solver: str) -> list[Algorithm]:
        """Algorithms that are run on data sets with the paper's ``solver``; the default solver is the last."""
        chosen = [algorithm for algorithm in ALGORITHMS.values() if algorithm.family in families_of(solver)]
        if self.quick and solver == "spgd":
            chosen = [algorithm for algorithm in chosen if algorithm.screening != "safe"]
        return [*chosen, RESTARTED, DEFAULT] if solver == "apgd" and not self.quick else [*chosen, DEFAULT]

    def has_reference(self, solver: str) -> bool:
        """Whether a tight solution is computed beside the runs; without it, the best of them takes its place."""
        return not (self.quick and solver == "spgd")


def quick_options(**changes: Any) -> Options:
    """Options that take five minutes: one trial and short runs."""
    quick = Options(cap=10.0, step_cap=3.0, trials=1, minutes=5.0, quick=True, reference_tol=1e-7)
    return replace(quick, **changes)
