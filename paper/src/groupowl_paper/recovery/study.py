"""Running the study."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import product

from threadpoolctl import threadpool_limits

from .fitting import METHODS, fit
from .report import Cell, RecoveryReport
from .scoring import Scores, score
from .simulation import VARIANTS, Setting, simulate

#: Called as ``progress(done, total, description)`` before each data set.
ProgressHook = Callable[[int, int, str], None]
#: Small enough for a look at whether everything works; too small for conclusions.
QUICK = Setting(n_samples=40, n_features=100, correlations=(0.5, 0.9, 0.99), n_repetitions=2, n_alphas=15)


def run_recovery(*, quick: bool = False, progress: ProgressHook | None = None) -> RecoveryReport:
    """Fit every method to every data set, on one core.

    Parameters
    ----------
    quick : bool, default=False
        Whether to run the small study :data:`QUICK` in place of the full one.
    progress : callable, default=None
        Called as ``progress(done, total, description)`` before each data set.

    Returns
    -------
    RecoveryReport
    """
    return run_study(QUICK if quick else Setting(), progress=progress)


def run_study(setting: Setting, *, progress: ProgressHook | None = None) -> RecoveryReport:
    """The study with a setting of one's own."""
    tasks = list(product(VARIANTS, setting.correlations, range(setting.n_repetitions)))
    scores: defaultdict[tuple[str, float, str], list[Scores]] = defaultdict(list)
    with threadpool_limits(1):  # the problems are small: threads would wait for each other
        for done, (variant, correlation, repetition) in enumerate(tasks):
            if progress is not None:
                description = f"{VARIANTS[variant].title}: correlation {correlation:g}, data set {repetition + 1}"
                progress(done, len(tasks), description)
            for method, result in score_methods(setting, variant, correlation, repetition).items():
                scores[variant, correlation, method].append(result)
    return RecoveryReport(setting, tuple(Cell(*key, tuple(values)) for key, values in scores.items()))


def score_methods(setting: Setting, variant: str, correlation: float, repetition: int) -> dict[str, Scores]:
    """Scores of every method on one data set, the same for all."""
    data = simulate(setting, variant, correlation, repetition)
    return {method: score(fit(method, data, setting), data, setting.fractions) for method in METHODS}
