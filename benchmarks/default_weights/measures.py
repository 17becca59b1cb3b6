"""What is measured: of one fit, and of the selections of all splits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax


def deviance(Z: Any, y: Any, *, classes: Any, is_labeled: bool) -> float:
    """Mean squared error of predictors of numbers; mean log-loss of those of classes, or of labels of 0 and 1.

    Two classes have one column, for the second.
    """
    if is_labeled:
        return float(np.mean(np.logaddexp(0.0, Z) - y * Z))
    if classes is not None:
        places = np.searchsorted(classes, y)
        Z = np.column_stack([np.zeros(len(y)), Z]) if Z.shape[1] == 1 else Z
        return float(-np.mean(log_softmax(Z, axis=1)[np.arange(len(y)), places]))
    return float(np.mean((Z - y.reshape(len(y), -1)) ** 2))


def null_predictor(y: Any, *, classes: Any, is_labeled: bool) -> Any:
    """The best predictor without features on training samples; a label that all or none have counts half a time."""
    if is_labeled:
        shares = np.clip(y.mean(axis=0), 0.5 / len(y), 1.0 - 0.5 / len(y))
        return np.log(shares / (1.0 - shares))
    if classes is not None:
        return np.log([np.mean(y == name) for name in classes])
    return y.reshape(len(y), -1).mean(axis=0)


def stability(selections: Any) -> float:
    """Nogueira's measure of selections, of shape (n_splits, n_features): 1 where all are equal, 0 by chance.

    Where all splits select every feature, or none, it is not defined: a random choice of so many would do the same,
    and 0 is taken.
    """
    n = len(selections)
    share = float(selections.mean())
    if share in (0.0, 1.0):
        return 0.0
    frequency = selections.mean(axis=0)
    variance = float(np.mean(n / (n - 1) * frequency * (1.0 - frequency)))
    return 1.0 - variance / (share * (1.0 - share))


def togetherness(selected: Any, groups: Any, *, by_feature: bool = False, is_scaled: bool = True) -> float:
    """How far selected features have the others of their group with them: 1 for whole groups.

    It is the mean, over groups of two or more of which something is selected, of the share of the other members that
    are selected too, less the share of other features that are, in units of 1 less that. 0 where every feature is
    selected, as for stability, and where no feature of such a group is.

    This is the form that decides. It has two faults that a look at results showed: by chance it is below 0, since a
    group counts only once one of its members is selected, which the mean over selected features (``by_feature``) is
    not; and it has no bound below, which it has without units (``is_scaled=False``).
    """
    sizes, counts = _of_groups(selected, groups)
    is_touched, chance = counts >= 1, _chance(selected)
    if not is_touched.any() or chance >= 1.0:
        return 0.0
    shares = (counts[is_touched] - 1.0) / (sizes[is_touched] - 1.0)
    beyond = float(np.average(shares, weights=counts[is_touched] if by_feature else None)) - chance
    return beyond / (1.0 - chance) if is_scaled else beyond


def _of_groups(selected: Any, groups: Any) -> tuple[Any, Any]:
    """Size of each group of two or more, and how many of its members are selected."""
    sizes = np.bincount(groups)
    counts = np.bincount(groups, weights=selected)
    return sizes[sizes >= 2], counts[sizes >= 2]


def _chance(selected: Any) -> float:
    """Share of the other features that are selected, for a selected one."""
    return float((selected.sum() - 1.0) / (len(selected) - 1.0))


def whole_groups(selected: Any, groups: Any) -> float:
    """Share of the groups of two or more, of which something is selected, that are selected whole."""
    sizes, counts = _of_groups(selected, groups)
    is_touched = counts >= 1
    return float(np.mean(counts[is_touched] == sizes[is_touched])) if is_touched.any() else float("nan")


def support_f1(selected: Any, effects: Any) -> float:
    """Harmonic mean of precision and recall of the selected features."""
    return 2.0 * float(np.sum(selected & effects)) / float(selected.sum() + effects.sum())


def n_tied(clusters: Any) -> int:
    """Selected features whose norm another one has too."""
    sizes = np.bincount(clusters[clusters > 0])
    return int(sizes[sizes >= 2].sum())
