"""What a run has found, in one value for the report, the summary, the JSON object and the files.

Beside the model: how well it predicts, next to a model without features, and what looks odd about the data or the
choice of alpha.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import skew

from .. import __version__
from .._text import counted, listed
from .._typing import FloatArray
from ..designs import Design, StandardizedDesign, as_design, standardize
from ..estimators.fit_summary import (
    LARGEST_RATIO,
    clusters_of_groups,
    clusters_text,
    coefficient_norms,
    edge_of_grid_text,
    scale_is_known,
    strongest_first,
)
from ..model_selection.scores import Confusion, Score, scoring_name
from ..model_selection.search import best_sequence, candidate_names, ridges_of, value_path
from ..path import PathResult
from ..plotting import SurvivalDisplay
from ..tables import Reading, Table
from ..weights import sequence_names

_VERSIONS = ("numpy", "scipy", "scikit-learn", "pyarrow")
# Names of targets or classes that are listed.
_LISTED = 8
# What became of missing features.
_MISSING = {
    "drop": "their samples were left out",
    "mean": "filled with the mean of the column",
    "median": "filled with the median of the column",
}
# Fewer whole numbers in a row may well be a measurement.
_SHORTEST_COUNT = 10
# Whole numbers with a larger mean, or nearly symmetric ones, are well described by squared loss.
_LARGEST_MEAN = 20.0
_SKEWED = 0.5


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
    scores : mapping of str to Score
        Scores of the model and of the null model, by a name that says what was held out.
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
    survival : tuple of SurvivalDisplay
        Of times until events: samples by predicted risk, held out or of the fit, for each target.
    confusion : tuple of Confusion
        Of classes one; of labels that do not exclude each other one for each.
    criteria : mapping of str to ndarray of shape (n_alphas,)
        Information criteria along the path, where one of them has chosen alpha.
    fills : list or None
        What stands in for missing cells of each feature.
    """

    command: str
    typed: tuple[str, ...]
    table: Table
    estimator: Any
    path: PathResult | None
    scores: Mapping[str, Score]
    notes: tuple[str, ...]
    seconds: float
    converged: bool = True
    reading: Reading = field(default_factory=Reading)
    test_size: float | None = None
    seed: int = 0
    survival: tuple[SurvivalDisplay, ...] = ()
    confusion: tuple[Confusion, ...] = ()
    criteria: Mapping[str, FloatArray] = field(default_factory=dict)
    fills: list[Any] | None = None

    @property
    def title(self) -> str:
        """What was done, in one line."""
        kind = "Cox regression" if self.table.has_times else self.table.task
        return f"Group OWL {kind}: {self.table.source}"

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns of the coefficients: features, and levels of categories."""
        has_levels = hasattr(self.estimator, "categories_")
        return self.estimator.coef_names_.tolist() if has_levels else self.table.feature_names

    @property
    def features(self) -> list[int]:
        """Positions of the features in the model, strongest first on the scale of the penalty."""
        n_selected = np.count_nonzero(self.estimator.get_support())
        return strongest_first(self.estimator)[:n_selected].tolist()

    @property
    def class_counts(self) -> dict[Any, int]:
        """Samples of each class; empty for a regression."""
        counts = np.unique(self.table.y, return_counts=True)[1].tolist() if self.table.is_classification else []
        return dict(zip(self.table.classes, counts, strict=True))

    @property
    def is_hopeless(self) -> bool:
        """Whether no feature is selected at any alpha: the targets, or all features, are constant."""
        return self.path is not None and self.path.alpha_max == 0.0

    @property
    def weights_name(self) -> str:
        """The weight sequence; of several, the one that was chosen."""
        given, names = self.estimator.weights, sequence_names(self.estimator.weights)
        if len(names) == 1:
            return names[0]
        chosen = names[best_sequence(self.estimator.search_results_) // len(ridges_of(self.estimator))]
        return f"{chosen} (chosen from {given if isinstance(given, str) else ', '.join(given)})"

    @property
    def ridge_text(self) -> str:
        """The ridge, if there is one; of several, the one that was chosen."""
        ridges = ridges_of(self.estimator)
        if len(ridges) > 1:
            return f"{self.estimator.ridge_:g} (chosen from {', '.join(f'{ridge:g}' for ridge in ridges)})"
        return f"{ridges[0]:g}" if ridges[0] > 0.0 else ""

    @property
    def measure(self) -> tuple[str, bool]:
        """What alpha was chosen by, in words, and whether lower is better."""
        fitted = self.estimator
        if hasattr(fitted, "criterion_path_"):
            return fitted.selection.upper(), True
        return (fitted._fitted_loss.measure, True) if fitted.scoring is None else scoring_name(fitted.scoring)

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Each weight sequence and ridge at its best alpha, with its score or criterion; empty where there is one."""
        names, found = candidate_names(self.estimator), []
        if len(names) == 1:
            return []
        reports = self.estimator.search_results_
        measure, lower_is_better = self.measure
        for k, (name, report) in enumerate(zip(names, reports, strict=True)):
            best = report["best_index"]
            value = float(value_path(report)[best])
            if "criterion_path" not in report and lower_is_better:
                value = -value
            error = float(report["std_error_path"][best]) if "std_error_path" in report else None
            alpha = float(report["alphas"][best])
            described = {"name": name, "alpha": alpha, "measure": measure, "score": value, "std_error": error}
            found.append(described | {"chosen": k == best_sequence(reports)})
        return found

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The alpha that each information criterion chooses, where one of them has chosen."""
        found = []
        for name, values in self.criteria.items():
            best, path = int(np.argmin(values)), self.estimator.path_
            point = {"criterion": name, "alpha": float(path.alphas[best]), "n_selected": int(path.n_selected[best])}
            found.append(point | {"chosen": name == self.estimator.selection})
        return found

    @property
    def facts(self) -> dict[str, str]:
        """What was fitted, in words."""
        table, estimator, result = self.table, self.estimator, self.estimator.solve_result_
        loss = estimator._fitted_loss
        options = {
            "Missing targets": _missing_text(table),
            "Missing features": _MISSING.get(self.reading.missing or "", ""),
            "Sample weights": self.reading.roles.sample_weight,
            "Groups": self.reading.roles.groups,
            "Strata": self.reading.roles.strata,
            "Event": self.reading.roles.event,
            "Offset": self.reading.roles.offset,
            "Exposure": self.reading.roles.exposure,
            "Ridge": self.ridge_text,
            "Not negative": listed(table.positive, shown=_LISTED, quoted=False) if table.positive else "",
            "Loss": "" if table.is_classification or loss.is_quadratic else loss.name,
            "Unpenalized": ", ".join(table.unpenalized),
            "Categories": ", ".join(
                f"{name} ({counted(len(levels), 'level')})"
                for name, levels in getattr(estimator, "categories_", {}).items()
            ),
            "Feature groups": "; ".join(f"{name}: {listed(part)}" for name, part in table.feature_groups.items()),
            "Penalty factors": "adaptive"
            if estimator.penalty_factor == "adaptive"
            else ", ".join(f"{name} {value:g}" for name, value in table.penalty_factor.items()),
            "Targets from": self.reading.targets_from,
        }
        classes = [f"{label} ({count})" for label, count in self.class_counts.items()]
        goal = listed(classes or table.target_names, shown=_LISTED, quoted=False)
        if table.is_classification:
            goal = f"{table.target_names[0]}, {len(table.classes)} classes: {goal}"
        rule = getattr(estimator, "selection", None)
        if hasattr(estimator, "score_path_"):
            rule = f"{estimator.score_path_.shape[1]} folds, rule {rule}"
        if rule is not None:
            choice = f"chosen of {len(estimator.alphas_)} by {rule}"
        elif estimator.alpha != "auto":
            choice = "given"
        else:
            choice = "any: no feature explains the targets" if self.is_hopeless else "a tenth of the largest"
        versions = [f"groupowl {__version__}", f"Python {platform.python_version()}"]
        return {
            "File": table.source,
            "Samples": str(table.n_samples) + ("" if self.test_size is None else ", without those held out"),
            "Features": str(table.n_features)
            + (f", {len(self.names)} with the levels of categories" if table.categories else ""),
            "Targets": goal,
            **{name: value for name, value in options.items() if value},
            "Weights": self.weights_name,
            "Alpha": f"{estimator.alpha_:.6g} ({choice})",
            "Standardized": "yes" if estimator.standardize else "no",
            "Selected features": clusters_text(estimator),
            "Objective": f"{result.primal:.10g}, proved within {result.gap:.3g} of the minimum",
            "Converged": "yes" if self.converged else f"no: {result.status}",
            "Seed": str(self.seed),
            "Seconds": f"{self.seconds:.1f}",
            "Versions": ", ".join([*versions, *(f"{name} {version(name)}" for name in _VERSIONS)]),
        }

    def described(self) -> dict[str, Any]:
        """The outcome as plain values, for programs."""
        table, estimator, result = self.table, self.estimator, self.estimator.solve_result_
        selected = [self._described_feature(j) for j in self.features]
        return {
            "command": self.command,
            "file": table.source,
            **{name: getattr(table, name) for name in ("task", "n_samples", "n_features")},
            "targets": table.target_names,
            "missing_targets": table.missing,
            "classes": table.classes,
            "class_counts": {str(label): count for label, count in self.class_counts.items()},
            "weights": self.weights_name,
            "alpha": estimator.alpha_,
            "ridge": _chosen_ridge(estimator),
            "objective": result.primal,
            "gap": result.gap,
            "converged": self.converged,
            "n_selected": len(selected),
            "selected": selected,
            "scores": {name: score.described() for name, score in self.scores.items()},
            "confusion": [confusion.described() for confusion in self.confusion],
            "candidates": self.candidates,
            "criteria": self.choices,
            "notes": self.notes,
            "seconds": self.seconds,
        }

    def _described_feature(self, j: int) -> dict[str, Any]:
        """A feature of the model: names, cluster, norm, and for one target the coefficient; also as penalized."""
        estimator, groups = self.estimator, getattr(self.estimator, "feature_groups_", None)
        sizes = {"": np.atleast_2d(estimator.coef_)[:, j]}
        if scale_is_known(estimator):
            sizes["scaled_"] = np.atleast_2d(estimator.scaled_coef_)[:, j]
        described: dict[str, Any] = {"feature": self.names[j]} | ({} if groups is None else {"group": str(groups[j])})
        described["cluster"] = clusters_of_groups(estimator)[j]
        for prefix, values in sizes.items():
            described[f"{prefix}norm"] = float(coefficient_norms(values))
            if len(values) == 1:
                described[prefix.rstrip("_") or "coef"] = float(values[0])
        return described


def _chosen_ridge(estimator: Any) -> float:
    return float(getattr(estimator, "ridge_", estimator.ridge))


def _missing_text(table: Table) -> str:
    """Note on missing targets: how many samples lack each."""
    parts = [f"{name} ({count})" for name, count in table.missing.items()]
    return listed(parts, shown=_LISTED, quoted=False) if parts else ""


def named_design(X: Any, names: Sequence[str]) -> Any:
    """The design of a matrix, with the names of its columns beside it; sparse data and those on disk keep their own.

    Data frames, of files with categories, are themselves.
    """
    if hasattr(X, "columns") and not isinstance(X, Design):  # a data frame
        return X
    design = as_design(X)
    if isinstance(X, np.ndarray):
        design.feature_names = list(names)
    return design


# Notes --------------------------------------------------------------------------------------------------


def data_notes(table: Table, X: Design, *, standardized: bool) -> list[str]:
    """Notes on the features ``X`` of a table, with the option that helps; data on disk are not read for them."""
    if isinstance(table.X, Design):
        return []
    if table.categories:
        table = table.without_categories()
        if table.n_features == 0:
            return []
        X = as_design(table.X)
    notes = []
    counters = _counters(table)
    if counters:
        remedy = f"use {'--id-column' if table.ids is None else '--drop'} {shlex.quote(counters[0])}"
        rest = f", and --drop for {listed(counters[1:])}" if counters[1:] else ""
        notes.append(f"Samples are counted by {listed(counters)}; if that names them, {remedy}{rest}.")
    if not standardized:
        # Whether the penalty sees columns of very different sizes; constant and unpenalized ones do not count.
        weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
        scaled = standardize(X, X.samples(weight[:, None]), center=True, scale=True)
        assert isinstance(scaled, StandardizedDesign)
        inverse, names = scaled.inverse_scale.copy(), table.feature_names
        inverse[[names.index(name) for name in table.unpenalized]] = 0.0
        smallest = int(np.argmax(inverse))
        largest = int(np.argmin(np.where(inverse > 0.0, inverse, np.inf)))
        if inverse[smallest] >= LARGEST_RATIO * inverse[largest] > 0.0:
            ratio = f"a factor of {inverse[smallest] / inverse[largest]:.3g}"
            which = f"{names[largest]!r} has the largest, {names[smallest]!r} the smallest"
            remedy = "--standardize makes the penalty treat them alike"
            notes.append(f"Standard deviations of columns differ by {ratio} ({which}): {remedy}.")
    return notes


def count_note(table: Table, loss: str) -> list[str]:
    """Whether targets with squared loss look like counts, which have a loss of their own."""
    if loss != "squared" or table.is_classification:
        return []
    for column in table.numbers.T:
        counts = column[~np.isnan(column)]
        is_whole = np.array_equal(counts, np.round(counts)) and counts.min(initial=0.0) >= 0.0
        if not (is_whole and len(np.unique(counts)) > 2 and counts.mean() < _LARGEST_MEAN and skew(counts) > _SKEWED):
            return []
    what = (
        f"Target {listed(table.target_names, shown=_LISTED)} has whole numbers that are not negative and mostly small"
    )
    return [f"{what}; if they are counts, use --loss poisson."]


def _counters(table: Table) -> list[str]:
    """Features that number the samples: consecutive whole numbers, each once.

    Those without penalty are wanted as they are.
    """
    X, n_samples = table.X, table.n_samples
    if not isinstance(X, np.ndarray) or n_samples < _SHORTEST_COUNT:
        return []
    first = X.min(axis=0)
    likely = np.flatnonzero(X.max(axis=0) - first == n_samples - 1).tolist()
    found = [j for j in likely if np.array_equal(np.sort(X[:, j]), first[j] + np.arange(n_samples))]
    return [table.feature_names[j] for j in found if table.feature_names[j] not in table.unpenalized]


def edge_note(estimator: Any) -> list[str]:
    """Whether the chosen alpha is the last of a grid that was made from --eps."""
    note = edge_of_grid_text(estimator, "--eps with a value below {:g} looks further")
    return [note] if note else []


def full_model_note(estimator: Any, criteria: Mapping[str, FloatArray]) -> list[str]:
    """That the extended criterion has chosen all features, for which it is no stricter than the plain one."""
    if not criteria or estimator.selection != "ebic":
        return []
    found = {name: int(estimator.path_.n_selected[np.argmin(values)]) for name, values in criteria.items()}
    if found["ebic"] < np.shape(estimator.coef_)[-1] or found["bic"] >= found["ebic"]:
        return []
    why = "what it adds counts the sets of so many features, and there is one set of all"
    return [
        f"ebic keeps all {found['ebic']} features, bic {found['bic']}: {why}. --selection bic saves the smaller model."
    ]


def choice_note(estimator: Any, criteria: Mapping[str, FloatArray], out: Path | None) -> list[str]:
    """What to do where a criterion has chosen a model without features, although there are others."""
    if not criteria or estimator.path_.alpha_max == 0.0 or estimator.path_.n_selected[estimator.best_index_] > 0:
        return []
    path, others, typed = estimator.path_, [], []
    for name, values in criteria.items():
        best = int(np.argmin(values))
        if path.n_selected[best] > 0:
            others.append(
                f"{name} chooses {path.alphas[best]:.6g} with {counted(int(path.n_selected[best]), 'feature')}"
            )
            typed.append(f"{path.alphas[best]:.6g}")
    found = f"{estimator.selection} chooses alpha {estimator.alpha_:.6g}, which selects NO FEATURE"
    kept = f"All {len(path)} points of the path are kept"
    which = "MODEL" if out is None else shlex.quote(str(out))
    cv = "the command cv chooses by samples that were held out"
    if not path.n_selected.any():
        return [f"{found}, and no other point of the path does. A smaller --eps, or other --alphas, go further; {cv}."]
    if not typed:
        i = int(np.argmax(path.n_selected > 0))
        some = f"the largest alpha that selects some is {path.alphas[i]:.6g}"
        typed_one = f"groupowl predict {which} FILE --alpha {path.alphas[i]:.6g} predicts with it"
        return [f"{found}, as the other criteria do. {kept}; {some}: {typed_one}, and {cv}."]
    use = f"groupowl predict {which} FILE --alpha {typed[0]} predicts with another"
    return [f"{found}; {', '.join(others)}. {kept}: {use}, --selection saves what another criterion chooses, and {cv}."]
