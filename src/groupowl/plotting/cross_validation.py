"""How well the models along a path predict, or what a criterion says about them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import truth_value
from .._typing import FloatArray, IndexArray
from .style import CHOSEN, COLORS, FAINT, Display, alpha_axis, clear_legend
from .support import fitted_attribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FOLDS = 20  # more lines hide the mean
_WITHIN = "within one standard error of the best"
_REMEDY = "Use GroupOWLRegressorCV or GroupOWLClassifierCV."


@dataclass(eq=False)
class CrossValidationDisplay(Display):
    """Score or criterion against alpha, with the alpha that was chosen.

    For cross-validation: the mean over folds with a band of one standard error on both sides, the folds as faint
    lines, and the band that the one-standard-error rule looks at, from the best mean down to one standard error below
    it. For an information criterion: its values. Along the top is the number of features selected on all data.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths of the penalty, falling.
    values : ndarray of shape (n_alphas,)
        Mean scores (higher is better) or criterion (lower is better).
    label : str
        What the values are.
    alpha : float
        Chosen alpha.
    std_errors : ndarray of shape (n_alphas,) or None
        Standard errors of the means; None for a criterion.
    scores : ndarray of shape (n_alphas, n_folds) or None
        Scores of the folds; None for a criterion.
    n_selected : ndarray of int of shape (n_alphas,) or None
        Number of selected features at each alpha.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        Line of the values.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import CrossValidationDisplay
    >>> data = go.datasets.make_correlated_groups(60, 10, 3, n_informative=4, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=10, cv=3, selection="1se").fit(data.X, data.Y)
    >>> CrossValidationDisplay.from_estimator(model).ax_.get_ylabel()
    'negative mean squared error'
    """

    alphas: FloatArray
    values: FloatArray
    label: str
    alpha: float
    std_errors: FloatArray | None = None
    scores: FloatArray | None = None
    n_selected: IndexArray | None = None
    line_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **settings: Any) -> CrossValidationDisplay:
        """Draw how a cross-validated estimator chose alpha.

        Parameters
        ----------
        estimator : fitted GroupOWLRegressorCV or GroupOWLClassifierCV
            Its ``score_path_`` or ``criterion_path_`` is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CrossValidationDisplay
        """
        return cls.undrawn(estimator).plot(ax=ax, **settings)

    @classmethod
    def undrawn(cls, estimator: Any) -> CrossValidationDisplay:
        """The numbers of a cross-validated estimator, to be drawn by :meth:`plot` or by other means.

        Parameters
        ----------
        estimator : fitted GroupOWLRegressorCV or GroupOWLClassifierCV
            Its ``score_path_`` or ``criterion_path_`` is read.

        Returns
        -------
        CrossValidationDisplay
        """
        alphas = np.asarray(fitted_attribute(estimator, "alphas_", _REMEDY))
        path = estimator.path_
        n_selected = np.asarray(path.n_selected) if len(path.alphas) == len(alphas) else None
        chosen: dict[str, Any] = {"alpha": float(estimator.alpha_), "n_selected": n_selected}
        criterion = getattr(estimator, "criterion_path_", None)
        if criterion is not None:
            return cls(alphas, np.asarray(criterion), estimator.selection.upper(), **chosen)
        means, errors, scores = estimator.mean_score_path_, estimator.std_error_path_, estimator.score_path_
        return cls(alphas, means, _score_name(estimator), std_errors=errors, scores=scores, **chosen)

    @property
    def one_se_band(self) -> tuple[float, float] | None:
        """The best mean score less its standard error, and the best mean score; None for a criterion."""
        if self.std_errors is None:
            return None
        best = int(np.nanargmax(self.values))
        return float(self.values[best] - self.std_errors[best]), float(self.values[best])

    def plot(self, ax: Axes | None = None, *, folds: bool | None = None) -> CrossValidationDisplay:
        """Draw the values.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        folds : bool, default=None
            Whether to draw a line for each fold; by default when there are at most 20.

        Returns
        -------
        CrossValidationDisplay
            This display, with ``ax_``, ``figure_`` and ``line_``.
        """
        ax = self._begin(ax)
        marks: list[Any] = []
        wanted = None if folds is None else truth_value("folds", folds)
        if self.scores is not None and (self.scores.shape[1] <= _MOST_FOLDS if wanted is None else wanted):
            lines = ax.plot(self.alphas, self.scores, color=FAINT, linewidth=0.8)
            lines[0].set_label("folds")
            marks.append(lines[0])
        style: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8, "marker": "o", "markersize": 2.5}
        name = "criterion (lower is better)" if self.std_errors is None else "mean over folds (higher is better)"
        (self.line_,) = ax.plot(self.alphas, self.values, label=name, zorder=3, **style)
        marks.append(self.line_)
        if self.std_errors is not None and self.one_se_band is not None:
            around = self.values - self.std_errors, self.values + self.std_errors
            marks += [
                ax.fill_between(self.alphas, *around, color=COLORS[6], alpha=0.4, lw=0, label="± one standard error"),
                ax.axhspan(*self.one_se_band, color=COLORS[1], alpha=0.3, lw=0, label=_WITHIN),
            ]
        choice = f"chosen alpha = {self.alpha:.3g}"
        for count in self._counts_at([self.alpha]):
            choice += f", {count} feature{'' if count == 1 else 's'}"
        marks.append(ax.axvline(self.alpha, label=choice, **CHOSEN))
        alpha_axis(ax, np.append(self.alphas, self.alpha))
        ax.set_ylabel(self.label)
        ax.margins(y=0.08)
        if self.n_selected is not None:
            top = ax.secondary_xaxis("top")
            top.set_xticks(ax.get_xticks(), [str(count) for count in self._counts_at(ax.get_xticks())])
            top.minorticks_off()
            top.set_xlabel("features selected")
        clear_legend(ax, marks)
        return self

    def _counts_at(self, alphas: Iterable[float]) -> list[int]:
        """Numbers of features selected at the alphas of the path that are nearest; none where they are not known."""
        if self.n_selected is None:
            return []
        return [int(self.n_selected[np.argmin(np.abs(np.log(self.alphas / alpha)))]) for alpha in alphas]


def _score_name(estimator: Any) -> str:
    """What the scores are, in words."""
    scoring = estimator.scoring
    if scoring is None:
        return "negative log-loss" if hasattr(estimator, "classes_") else "negative mean squared error"
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return re.sub("^neg ", "negative ", name.replace("_", " "))
