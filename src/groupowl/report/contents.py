"""What a report is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..path import PathResult


@dataclass(frozen=True, eq=False)
class ReportContents:
    """What a report is made from; names and numbers are shown as they are, whatever characters they have.

    Parameters
    ----------
    title : str
        Headline, such as "Group OWL regression: train.csv".
    command : sequence of str
        Command line that reproduces the run, one string per argument.
    facts : mapping of str to str
        What was fitted, in the order in which to show it: file, samples, features, weights, seconds.
    estimator : fitted groupowl estimator or None
        What was fitted. None where only a path was: the report is then about the end of the path.
    path : PathResult or None
        Fits along alphas; None for a fit at one alpha.
    feature_names : sequence of str
        Names of all features, in the order of the columns of X.
    target_names : sequence of str
        Names of the targets of a regression. Of a classification the names of all classes, in their order, or the
        one name of the column with the labels; the classes then go by their labels.
    scores : mapping of str to (float, float)
        By the name of the score: that of the model and that of the null model.
    notes : sequence of str
        What the reader should be warned of, in words.
    """

    title: str
    command: Sequence[str]
    facts: Mapping[str, str]
    estimator: Any
    path: PathResult | None
    feature_names: Sequence[str]
    target_names: Sequence[str]
    scores: Mapping[str, tuple[float, float]]
    notes: Sequence[str]

    def __post_init__(self) -> None:
        for name in ("command", "feature_names", "target_names", "notes"):
            _check_list(name, getattr(self, name))
        self._check_source()
        _check_count("feature_names", self.feature_names, {self.n_features: "features"})
        expected = {self.n_targets: "targets"} if self.classes is None else {len(self.classes): "classes", 1: "column"}
        _check_count("target_names", self.target_names, expected)
        for name, pair in self.scores.items():
            if not isinstance(pair, Iterable) or len(list(pair)) != 2:
                raise ValueError(f"scores[{name!r}] must be two numbers, (model, null model), got {pair!r}.")

    def _check_source(self) -> None:
        if self.estimator is None and self.path is None:
            raise ValueError("estimator and path are both None: a report needs a fitted estimator, a path, or both.")
        if self.estimator is not None:
            check_is_fitted(self.estimator)
        if self.path is not None and not isinstance(self.path, PathResult):
            raise TypeError(f"path must be a PathResult or None, got {type(self.path).__name__}.")
        if self.estimator is not None and self.path is not None:
            ours, theirs = self.estimator.n_features_in_, self.path.n_features
            if ours != theirs:
                raise ValueError(f"estimator has {ours} features and path has {theirs}: give a path of the same data.")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.estimator.n_features_in_ if self.path is None else self.path.n_features)

    @property
    def n_targets(self) -> int:
        """Rows of ``coef_``: targets, classes from three on, 1 for two classes."""
        if self.path is not None:
            return self.path.n_targets
        return 1 if self.estimator.coef_.ndim == 1 else len(self.estimator.coef_)

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes; None for a regression."""
        source = getattr(self.estimator, "classes_", None) if self.path is None else self.path.classes
        if source is None:
            return None
        given = list(self.target_names)
        return [str(label) for label in (given if len(given) == len(source) else source)]

    @property
    def columns(self) -> list[str]:
        """What the coefficients of a feature are for: targets or classes; of two classes one against the other."""
        classes = self.classes
        if classes is None:
            return [str(name) for name in self.target_names]
        return [f"{classes[1]} against {classes[0]}"] if len(classes) == 2 else classes


def _check_list(argument: str, values: Any) -> None:
    if isinstance(values, str) or not isinstance(values, Iterable) or not hasattr(values, "__len__"):
        raise TypeError(f"{argument} must be a list of strings, got {values!r}. Put it in a list.")


def _check_count(argument: str, names: Sequence[str], expected: dict[int, str]) -> None:
    """One name for each of what there is; ``expected`` has the numbers that will do."""
    if len(names) not in expected:
        wanted = " or ".join(f"{count} ({what})" for count, what in expected.items())
        raise ValueError(f"{argument} must have {wanted} names, got {len(names)}.")
