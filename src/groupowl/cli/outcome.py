"""What a run has found, in one value: for the report, the summary, the JSON object and the files."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from .. import __version__
from ..estimators.fit_summary import strongest_first
from ..path import PathResult
from ..tables import Reading, Table
from ..tables.errors import counted

_VERSIONS = ("numpy", "scipy", "scikit-learn", "pyarrow")


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model and everything that is said about it.

    Attributes
    ----------
    command : {"fit", "path", "cv"}
    typed : tuple of str
        The command line.
    table : Table
        Data of the fit, without samples that were held out.
    estimator : estimator
        Fitted.
    path : PathResult or None
        Fits at many alphas.
    scores : mapping of str to (float, float)
        Score of the model and of the null model, by a name that says what was held out.
    notes : tuple of str
        Sentences that the user should read.
    seconds : float
        From reading to the end of the fit.
    converged : bool
        Whether all fits met their tolerance.
    reading : Reading or None
        How the file was read.
    test_size : float or None
        Share of the samples that were held out.
    seed : int
    """

    command: str
    typed: tuple[str, ...]
    table: Table
    estimator: Any
    path: PathResult | None
    scores: Mapping[str, tuple[float, float]]
    notes: tuple[str, ...]
    seconds: float
    converged: bool = True
    reading: Reading = field(default_factory=Reading)
    test_size: float | None = None
    seed: int = 0

    @property
    def title(self) -> str:
        """What was done, in one line."""
        return f"Group OWL {self.table.task}: {self.table.source}"

    @property
    def selected(self) -> Any:
        """Positions of the features in the model, strongest first."""
        return strongest_first(self.estimator)[: np.count_nonzero(self.estimator.get_support())]

    @property
    def is_hopeless(self) -> bool:
        """Whether no feature is selected at any alpha: the targets, or all features, are constant."""
        return self.path is not None and self.path.alpha_max == 0.0

    @property
    def weights_name(self) -> str:
        """The weight sequence; of several, the one that was chosen."""
        given = self.estimator.weights
        if isinstance(given, str):
            return given
        results = self.estimator.search_results_
        chosen = next(k for k, item in enumerate(results) if item["weights"] is self.estimator.weights_)
        return f"{given[chosen]} (chosen from {', '.join(given)})"

    @property
    def goal(self) -> str:
        """Targets or classes in words."""
        table = self.table
        if table.is_classification:
            return f"{table.target_names[0]}, {len(table.classes)} classes: {_few(table.classes)}"
        return _few(table.target_names)

    @property
    def facts(self) -> dict[str, str]:
        """What was fitted, in words."""
        table, estimator, result = self.table, self.estimator, self.estimator.solve_result_
        options = {
            "Sample weights": self.reading.roles.sample_weight,
            "Groups": self.reading.roles.groups,
            "Unpenalized": ", ".join(table.unpenalized),
            "Targets from": self.reading.targets_from,
        }
        return {
            "File": table.source,
            "Samples": str(table.n_samples) + ("" if self.test_size is None else ", without those held out"),
            "Features": str(table.n_features),
            "Targets": self.goal,
            **{name: value for name, value in options.items() if value},
            "Weights": self.weights_name,
            "Alpha": f"{estimator.alpha_:.6g} ({self._choice()})",
            "Standardized": "yes" if estimator.standardize else "no",
            "Selected features": self._selection(),
            "Objective": f"{result.primal:.10g}, proved within {result.gap:.3g} of the minimum",
            "Converged": "yes" if self.converged else f"no: {result.status}",
            "Seed": str(self.seed),
            "Seconds": f"{self.seconds:.1f}",
            "Versions": self.versions,
        }

    @property
    def versions(self) -> str:
        """Software that made the result."""
        parts = [f"{name} {version(name)}" for name in _VERSIONS]
        return ", ".join([f"groupowl {__version__}", f"Python {platform.python_version()}", *parts])

    @property
    def shell_line(self) -> str:
        """The command line as it can be typed again."""
        return shlex.join(self.typed)

    def _selection(self) -> str:
        n_clusters = int(self.estimator.clusters_.max(initial=0))
        return f"{len(self.selected)} in {counted(n_clusters, 'cluster')}" if len(self.selected) else "none"

    def _choice(self) -> str:
        estimator = self.estimator
        if hasattr(estimator, "score_path_"):
            n_folds = estimator.score_path_.shape[1]
            return f"chosen of {len(estimator.alphas_)} by {n_folds} folds, rule {estimator.selection}"
        if hasattr(estimator, "criterion_path_"):
            return f"chosen of {len(estimator.alphas_)} by {estimator.selection}"
        if estimator.alpha != "auto":
            return "given"
        return "any: no feature explains the targets" if self.is_hopeless else "a tenth of the largest"


def _few(items: Any, shown: int = 8) -> str:
    words = [str(item) for item in items]
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + more
