"""What a search for alpha works with, whatever decides: all of a fit but the weight sequence, and what was found."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._typing import FloatArray
from ..model import Model
from ..model_selection import Fitting
from ..path import PathFit
from ..path.continuation import MAX_DEVIANCE
from ..progress import progress_callback
from .base import GroupOWLBase, Settings
from .fit_data import FitData


@dataclass(frozen=True, eq=False)
class Job:
    """All of a fit but the weight sequence.

    Attributes
    ----------
    estimator : GroupOWLBase
        Whose parameters say what to search; it stays as it is.
    data : FitData
        The samples.
    given_X : array, sparse matrix or data frame
        X as scorers get it: with names where it has names.
    weight : ndarray of shape (n_samples,)
        Of the samples as the user gave it, for scores.
    y : ndarray
        Targets or labels, for scorers.
    settings : Settings
        Of the fits on all data.
    fitting : Fitting
        The same for models of any samples.
    scorer : callable or None
        None is the loss of the model.
    scorer_params : dict
        Arguments of the scorer, for all samples.
    labels : tuple of str
        What each weight sequence is called in lines of progress; empty for the only one.
    """

    estimator: GroupOWLBase
    data: FitData
    given_X: Any
    weight: FloatArray
    y: Any
    settings: Settings
    fitting: Fitting
    scorer: Any
    scorer_params: dict[str, Any]
    labels: tuple[str, ...]

    @property
    def fit_weight(self) -> FloatArray:
        """Weights of the samples for fits, those of classes included."""
        return self.weight if self.data.sample_weight is None else self.data.sample_weight

    def seeds(self, count: int) -> list[int]:
        """Seeds for stochastic solvers: the answer does not depend on the number of jobs."""
        return [int(seed) for seed in self.settings.rng.integers(np.iinfo(np.int64).max, size=count)]

    def what(self, sequence: int, part: str) -> str:
        """The beginning of a line of progress: estimator, weight sequence and part of the work."""
        return ", ".join(item for item in (type(self.estimator).__name__, self.labels[sequence], part) if item)


@dataclass(frozen=True, eq=False)
class Searched:
    """What was found for one weight sequence: the path on all data, and what the choice is made from."""

    model: Model
    path: PathFit
    best_index: int
    merit: float  # of the best alpha; sequences are compared by it
    attributes: dict[str, Any]  # fitted attributes, without the underscore

    def report(self) -> dict[str, Any]:
        """What ``search_results_`` says of the sequence."""
        common = {"weights": self.model.weights, "alphas": self.path.alphas, "best_index": self.best_index}
        return common | self.attributes


def sequence_labels(specs: list[Any]) -> tuple[str, ...]:
    """What to call each of several weight sequences, by number and by name where it has one."""
    if len(specs) == 1:
        return ("",)
    names = [f" ({spec})" if isinstance(spec, str) else "" for spec in specs]
    return tuple(f"weights {i + 1}/{len(specs)}{name}" for i, name in enumerate(names))


def full_paths(job: Job, models: list[Model], grids: list[FloatArray]) -> list[PathFit]:
    """The path of each model on all data; a grid of our own ends where the deviance is explained."""
    estimator = job.estimator
    max_deviance = MAX_DEVIANCE if isinstance(estimator.alphas, numbers.Integral) else None
    arguments = [
        (job.fitting, model, grid, seed, max_deviance, estimator.verbose, job.what(i, "all data"))
        for i, (model, grid, seed) in enumerate(zip(models, grids, job.seeds(len(models)), strict=True))
    ]
    if len(arguments) == 1:
        return [_full_path(*arguments[0])]
    return list(Parallel(n_jobs=estimator.n_jobs)(delayed(_full_path)(*item) for item in arguments))


def _full_path(
    fitting: Fitting, model: Model, alphas: FloatArray, seed: int, max_deviance: float | None, verbose: int, what: str
) -> PathFit:
    line = progress_callback(verbose, goal=fitting.tol * model.null_loss, what=what, n_alphas=len(alphas))
    try:
        return fitting.path(model, alphas, seed=seed, max_deviance=max_deviance, callback=line)
    finally:
        if line is not None:
            line.close()
