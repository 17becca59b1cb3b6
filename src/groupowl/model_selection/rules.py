"""From the scores of folds to one alpha."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray

#: Rules that choose from the scores of folds.
FOLD_RULES = ("min", "1se")


@np.errstate(all="ignore")  # scores that are not finite have means that are not
def mean_scores(scores: FloatArray, fold_weights: FloatArray) -> FloatArray:
    """Mean over folds for each alpha, weighted by the weight of the test samples."""
    shares = fold_weights / fold_weights.max()
    return scores @ (shares / shares.sum())


@np.errstate(all="ignore")
def standard_errors(scores: FloatArray) -> FloatArray:
    """Standard deviation over folds (ddof 1) divided by the root of their number; NaN for a single fold."""
    n_alphas, n_folds = scores.shape
    if n_folds < 2:
        return np.full(n_alphas, np.nan)
    size = np.abs(scores).max(axis=1, keepdims=True)
    size[(size == 0.0) | ~np.isfinite(size)] = 1.0
    deviations = size[:, 0] * np.std(scores / size, axis=1, ddof=1)  # squares of large scores would overflow
    return deviations / np.sqrt(n_folds)


@np.errstate(all="ignore")
def choose(selection: str, means: FloatArray, errors: FloatArray) -> int:
    """Index of the chosen alpha; alphas fall, and of equal scores the largest alpha counts.

    "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
    """
    if np.isnan(means).all():
        raise ValueError(
            "every mean score is NaN: scoring is not defined on the test samples of some fold. Choose another scoring, "
            "or folds that have all classes."
        )
    best = int(np.nanargmax(means))
    if selection == "min":
        return best
    if np.isnan(errors[best]):
        raise ValueError("selection='1se' needs at least two folds with test samples of positive weight.")
    return int(np.flatnonzero(means >= means[best] - errors[best])[0])
