"""How well predictions are, with standard errors, beside those of the null model, which looks at no feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from .._text import counted, listed
from .._typing import FloatArray, IndexArray

# Relative differences that are none.
_ROUNDING = 1e-9
# Targets that a sentence names.
_NAMED = 6


class Score(NamedTuple):
    """A score of the model beside that of the null model.

    Attributes
    ----------
    model, null : float
        Of the model, and of the null model; NaN where it is not known.
    std_error : float
        Standard error of the score of the model: over folds, or over samples where there are no folds.
    difference_error : float
        Standard error of the difference between both, which see the same samples.
    lower_is_better : bool or None
        Whether the score is an error; None where that is not known.
    targets : mapping of str to Score
        The same for each target, where there are several.
    """

    model: float
    null: float
    std_error: float = np.nan
    difference_error: float = np.nan
    lower_is_better: bool | None = False
    targets: Mapping[str, Score] = MappingProxyType({})

    @property
    def gain(self) -> float:
        """Difference between the score and that of the null model; negative if it is worse, NaN if unknown."""
        if self.lower_is_better is None:
            return np.nan
        return self.null - self.model if self.lower_is_better else self.model - self.null

    @property
    def is_no_better(self) -> bool:
        """Whether the null model does as well, but for rounding."""
        return self.gain <= _ROUNDING * abs(self.null)

    @property
    def may_be_chance(self) -> bool:
        """Whether the model is better by no more than one standard error."""
        return not self.is_no_better and self.gain <= self.difference_error

    def described(self) -> dict[str, Any]:
        """The score as plain values."""
        numbers: dict[str, Any] = {
            "model": self.model,
            "null_model": self.null,
            "std_error": self.std_error,
            "difference_std_error": self.difference_error,
        }
        numbers = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
        numbers["lower_is_better"] = self.lower_is_better
        targets = {name: score.described() for name, score in self.targets.items()}
        return numbers | ({"targets": targets} if targets else {})


def as_score(value: Any) -> Score:
    """A score from itself, or from the pair of model and null model."""
    if isinstance(value, Score):
        return value
    model, null = map(float, value)
    return Score(model, null, lower_is_better=None)


def verdicts(scores: Mapping[str, Any]) -> list[str]:
    """Warnings for a model that is not clearly better than the null model by its first score.

    Single targets are judged by the first score that each of them has.
    """
    if not scores:
        return []
    name, score = next((name, as_score(value)) for name, value in scores.items())
    found = f"{name}: {score.model:.4g} against {score.null:.4g}"
    if score.is_no_better:
        return [f"The model does NO BETTER than the null model, which looks at no feature. {found}."]
    said = []
    if score.may_be_chance:
        said.append(
            "The model is better than the null model by LESS THAN ONE STANDARD ERROR, which may be chance. "
            f"{found}, standard error of the difference {score.difference_error:.2g}."
        )
    targets: Mapping[str, Score] = next((as_score(v).targets for v in scores.values() if as_score(v).targets), {})
    worse = [target for target, own in targets.items() if own.is_no_better]
    unclear = [target for target, own in targets.items() if own.may_be_chance]
    for names, what in ((worse, "no better"), (unclear, "less than one standard error better")):
        if names:
            which = f"{counted(len(names), 'target')} of {len(targets)}"
            shown = listed(names, shown=_NAMED, quoted=False)
            said.append(f"For {which} the model is {what} than the null model: {shown}.")
    return said


# Samples that are scored together -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Parts:
    """Which samples are scored together: those of each fold, or all of them.

    Attributes
    ----------
    number : ndarray of int of shape (n_samples,)
        The fold of each sample.
    n_parts : int
        How many folds there are; 1 where there are none.
    repeats : int
        How often each sample is in some fold: repetitions share their samples, and make no error smaller.
    """

    number: IndexArray
    n_parts: int = 1
    repeats: int = 1

    @classmethod
    def whole(cls, n_samples: int) -> Parts:
        """All samples together."""
        return cls(np.zeros(n_samples, dtype=np.intp))

    def rows(self) -> list[IndexArray]:
        """The samples of each part."""
        return [np.flatnonzero(self.number == k) for k in range(self.n_parts)]

    @np.errstate(all="ignore")  # scores that are not finite have errors that are not
    def ratio(self, numerator: FloatArray, denominator: FloatArray) -> tuple[float, float]:
        """``sum_i a_i / sum_i b_i`` and its standard error, over parts, or over samples where there is one part."""
        value = numerator.sum() / denominator.sum()
        if self.n_parts == 1:
            n_samples = np.count_nonzero(denominator)
            residuals = numerator - value * denominator
            size = np.abs(residuals).max(initial=0.0) or 1.0  # squares of large errors would overflow
            error = size * np.sqrt(np.sum((residuals / size) ** 2) * n_samples / (n_samples - 1.0)) / denominator.sum()
            return float(value), float(error)
        sums = [np.bincount(self.number, terms, self.n_parts) for terms in (numerator, denominator)]
        is_there = sums[1] > 0.0
        return float(value), self.error_of(sums[0][is_there] / sums[1][is_there])

    def error_of(self, values: FloatArray) -> float:
        """Standard error of the mean of numbers, one for each part."""
        if len(values) < 2:
            return np.nan
        size = float(np.abs(values).max()) or 1.0
        return float(size * np.std(values / size, ddof=1) / np.sqrt(len(values) / self.repeats))


# Scores that are means over samples ---------------------------------------------------------------------


def mean_score(
    model: FloatArray, null: FloatArray, w: FloatArray, parts: Parts, names: Any = (), *, lower_is_better: bool = True
) -> Score:
    """The mean of what predictions cost, or gain.

    Parameters
    ----------
    model, null : ndarray of shape (n_samples, n_targets)
        Of the predictions of both models.
    w : ndarray of shape (n_samples, n_targets) or (n_samples, 1)
        Weights; 0 where a target was not observed.
    parts : Parts
    names : sequence of str
        Names of the targets; each has a score of its own where there are several.
    lower_is_better : bool, default=True
    """
    w = np.broadcast_to(w, model.shape)
    model, null = (np.where(w > 0.0, costs, 0.0) for costs in (model, null))
    value, error = parts.ratio((w * model).sum(axis=1), w.sum(axis=1))
    other = parts.ratio((w * null).sum(axis=1), w.sum(axis=1))[0]
    difference = parts.ratio((w * (model - null)).sum(axis=1), w.sum(axis=1))[1]
    targets = {}
    if len(names) > 1:
        for k, name in enumerate(names):
            own = slice(k, k + 1)
            columns = model[:, own], null[:, own], w[:, own]
            targets[str(name)] = mean_score(*columns, parts, lower_is_better=lower_is_better)
    return Score(value, other, error, difference, lower_is_better, targets)


def explained_share(costs: Score, whole: float, wholes: Mapping[str, float]) -> Score:
    """Which share of what the best constant costs is saved, R2 or D2, from the costs of the models.

    ``whole`` is what that constant costs, and ``wholes`` the same for each target.
    """
    targets = {name: explained_share(own, wholes[name], {}) for name, own in costs.targets.items() if wholes[name] > 0}
    shares = (1.0 - costs.model / whole, 1.0 - costs.null / whole)
    return Score(*shares, costs.std_error / whole, costs.difference_error / whole, False, targets)


# Scores of an order -------------------------------------------------------------------------------------


def order_score(measure: Callable[[IndexArray], tuple[float, float]], weight: FloatArray, parts: Parts) -> Score:
    """The area under the curve, or concordance: how often the order of two samples is right, 0.5 for no model at all.

    ``measure`` gives the score of some samples and its standard error. Where it is not defined for some fold, because
    that has one class only, samples of all folds are compared with each other.
    """
    found = [measure(rows) for rows in parts.rows()]
    values = np.array([value for value, _ in found])
    if len(found) == 1 or np.isnan(values).any():
        value, error = measure(np.arange(len(weight)))
        return Score(value, 0.5, error, error)
    shares = [weight[rows].sum() for rows in parts.rows()]
    error = parts.error_of(values)
    return Score(float(np.average(values, weights=shares)), 0.5, error, error)


def mean_of_targets(scores: Mapping[str, Score]) -> Score:
    """The mean over targets for which a score of an order is defined; its error as if they were independent."""
    known = [score for score in scores.values() if not np.isnan(score.model)]
    if not known:
        return Score(np.nan, 0.5, targets=scores)
    error = float(np.sqrt(np.sum([score.std_error**2 for score in known])) / len(known))
    return Score(float(np.mean([score.model for score in known])), 0.5, error, error, targets=scores)


def area_under_curve(is_second: Any, z: FloatArray, w: FloatArray) -> tuple[float, float]:
    """Area under the ROC curve, and its standard error by the method of DeLong and others (1988); NaN for one class."""
    present = w > 0.0
    is_second, z, w = is_second[present], z[present], w[present]
    if is_second.all() or not is_second.any():
        return np.nan, np.nan
    area = float(roc_auc_score(is_second, z, sample_weight=w))
    variance = 0.0
    for own, sign in ((is_second, 1.0), (~is_second, -1.0)):
        shares = w[own] / w[own].sum()
        placements = _shares_below(sign * z[own], sign * z[~own], w[~own])
        n = len(shares)
        if n > 1:
            variance += float(np.sum((shares * (placements - area)) ** 2)) * n / (n - 1.0)
    return area, float(np.sqrt(variance))


def _shares_below(values: FloatArray, others: FloatArray, w: FloatArray) -> FloatArray:
    """For each value the share, by weight, of others that are smaller; equal ones count half."""
    order = np.argsort(others)
    totals = np.concatenate([[0.0], np.cumsum(w[order])]) / w.sum()
    smaller, not_larger = (totals[np.searchsorted(others[order], values, side=side)] for side in ("left", "right"))
    return 0.5 * (smaller + not_larger)


# Classes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often samples of one class were taken for another.

    Attributes
    ----------
    labels : tuple
        Classes, in the order of the matrix.
    matrix : ndarray of shape (n_classes, n_classes)
        Samples, or their weights, by their class (rows) and by the class that is predicted (columns).
    target : str
        The label that samples have or not, where labels do not exclude each other.
    """

    labels: tuple[Any, ...]
    matrix: FloatArray
    target: str = ""

    @property
    def counts(self) -> FloatArray:
        """How many samples each class has."""
        return np.asarray(self.matrix.sum(axis=1))

    @property
    def predicted(self) -> FloatArray:
        """How many samples are taken for each class."""
        return np.asarray(self.matrix.sum(axis=0))

    @property
    def recalls(self) -> FloatArray:
        """The share of each class that is predicted right; NaN where there is none."""
        with np.errstate(invalid="ignore"):
            return np.diag(self.matrix) / self.counts

    def described(self) -> dict[str, Any]:
        """The matrix as plain values."""
        target = {"target": self.target} if self.target else {}
        matrix = self.matrix.tolist()
        return target | {"labels": list(self.labels), "rows": "true", "columns": "predicted", "matrix": matrix}


def scoring_name(scoring: Any) -> tuple[str, bool]:
    """What a scorer measures, in words, and whether that is an error, which the scorer takes with a minus."""
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    is_error = name.startswith("neg_")
    return name.removeprefix("neg_").replace("_", " "), is_error
