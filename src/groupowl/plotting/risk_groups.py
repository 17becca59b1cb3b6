"""Survival by predicted risk: what was observed beside what a Cox model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._checks import check_length, check_sample_weight, positive_integer
from .._typing import BoolArray, FloatArray, IndexArray
from ..estimators.survival import concordance, survival_array
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REMEDY = "Use GroupOWLCox or GroupOWLCoxCV."
# Times at which predicted curves are computed.
_MOST_TIMES = 200
_PREDICTED = (0, (4, 2))
_NAMES = {1: ["all"], 2: ["low", "high"], 3: ["low", "middle", "high"]}


class RiskGroup(NamedTuple):
    """Samples of similar predicted risk.

    Attributes
    ----------
    name : str
        Such as "low", by rising risk.
    n_samples, n_events : int
        Samples, and events among them.
    times : ndarray of shape (n_times,)
        From 0 to the last observation of any group.
    observed : ndarray of shape (n_times,)
        Kaplan and Meier's estimate of the share without an event after each time.
    predicted : ndarray of shape (n_times,)
        Mean of what the model predicts for the samples.
    """

    name: str
    n_samples: int
    n_events: int
    times: FloatArray
    observed: FloatArray
    predicted: FloatArray

    @property
    def medians(self) -> tuple[float, float]:
        """First time at which half had an event: observed, and predicted; NaN where it is not reached."""
        reached = (np.append(curve, 0.0) <= 0.5 for curve in (self.observed, self.predicted))
        first, second = (float(np.append(self.times, np.nan)[np.argmax(found)]) for found in reached)
        return first, second


@dataclass(eq=False)
class SurvivalDisplay(style.Display):
    """Survival curves of groups of samples by predicted risk, observed and predicted.

    Solid lines are Kaplan-Meier estimates, which do not depend on the model; dashed lines are means of the predicted
    survival curves. If the groups are far apart, the model separates high from low risks. If dashed lines are close to
    solid ones, its risks are also well calibrated. On the training data both look better than on new data.

    Parameters
    ----------
    groups : list of RiskGroup
        By rising risk; one group where the model predicts the same for all samples.
    concordance : float
        Harrell's index of the samples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    lines_ : list of matplotlib Line2D
        Observed curve of each group.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> from groupowl.plotting import SurvivalDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((90, 10))
    >>> y = np.column_stack([np.ones(90), rng.exponential(np.exp(-X[:, 0]))])
    >>> display = SurvivalDisplay.from_estimator(go.GroupOWLCox().fit(X, y), X, y)
    >>> [(group.name, group.n_samples) for group in display.groups]
    [('low', 30), ('middle', 30), ('high', 30)]
    """

    groups: list[RiskGroup]
    concordance: float
    lines_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, n_groups: int = 3, **samples: Any
    ) -> Self:
        """Draw the survival of samples, new ones at best, in groups of equal size.

        Parameters
        ----------
        estimator : fitted GroupOWLCox or GroupOWLCoxCV
            Predicts the risks.
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : structured array or array-like
            Their events and times, as ``fit`` takes them.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        n_groups : int, default=3
            Number of groups.
        **samples
            ``sample_weight``, ``strata``, ``offset`` and the number of the ``endpoint``, as for :meth:`undrawn`.

        Returns
        -------
        SurvivalDisplay
        """
        return cls.undrawn(estimator, X, y, n_groups=n_groups, **samples).plot(ax=ax)

    @classmethod
    def undrawn(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_groups: int = 3,
        sample_weight: Any = None,
        strata: Any = None,
        endpoint: int = 0,
        offset: Any = None,
    ) -> Self:
        """The numbers, to be drawn by :meth:`plot` or by other means.

        Parameters
        ----------
        estimator : fitted GroupOWLCox or GroupOWLCoxCV
            Predicts the risks.
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : structured array or array-like
            Their events and times, as ``fit`` takes them.
        n_groups : int, default=3
            Number of groups, of about the same size; samples of equal risk are in one group.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in both kinds of curves.
        strata : array-like of shape (n_samples,), default=None
            Strata of the samples, where the fit had strata.
        endpoint : int, default=0
            Which of several endpoints.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        SurvivalDisplay
        """
        style.fitted_attribute(estimator, "baseline_times_", _REMEDY)
        positive_integer("n_groups", n_groups)
        pairs = survival_array(y, strata)
        pairs = pairs.reshape(len(pairs), -1)
        labels = pairs["stratum"][:, 0] if "stratum" in pairs.dtype.names else None
        z = np.asarray(estimator.predict(X, offset=offset), dtype=np.float64)
        check_length("y", pairs.shape, len(z))
        z = z.reshape(len(z), -1)
        if not 0 <= endpoint < z.shape[1]:
            raise ValueError(f"endpoint must be between 0 and {z.shape[1] - 1}, got {endpoint!r}.")
        z, pairs = z[:, endpoint], pairs[:, endpoint]
        weight = check_sample_weight(sample_weight, len(z))
        times = np.quantile(pairs["time"], np.linspace(0.0, 1.0, _MOST_TIMES), method="nearest")
        times = np.concatenate([[0.0], np.unique(times)])
        places = np.where(weight > 0.0, _groups_of(z, weight, n_groups), -1)
        members = [places == k for k in np.unique(places[places >= 0])]
        predicted = [
            [np.average(curve[chosen], weights=weight[chosen]) for chosen in members]
            for curve in estimator._survival_by_time(z, times, labels, endpoint)
        ]
        names = _NAMES.get(len(members), [f"group {k + 1}" for k in range(len(members))])
        groups = []
        for name, chosen, curve in zip(names, members, np.transpose(predicted), strict=True):
            time, event = pairs["time"][chosen], pairs["event"][chosen]
            observed = kaplan_meier(time, event, weight[chosen], times)
            groups.append(RiskGroup(name, len(time), int(event.sum()), times, observed, curve))
        return cls(groups, concordance(pairs, z, weight))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        SurvivalDisplay
            This display, with ``ax_``, ``figure_`` and ``lines_``.
        """
        ax = self._begin(ax)
        self.lines_, marks = [], {}
        for color, group in zip(style.line_colors(len(self.groups)), self.groups, strict=True):
            look: dict[str, Any] = {"color": color, "drawstyle": "steps-post"}
            self.lines_ += ax.plot(group.times, group.observed, linewidth=1.8, **look)
            ax.plot(group.times, group.predicted, linewidth=1.0, linestyle=_PREDICTED, **look)
            marks[f"{group.name} risk: {group.n_samples} samples, {group.n_events} with an event"] = self.lines_[-1]
        marks["predicted by the model"] = ax.lines[-1]
        style.name_in_legend(ax, marks, loc="best", fontsize=style.LARGEST_FONT)
        ax.set(title=f"Survival by predicted risk (concordance {self.concordance:.3f})", xlabel="time")
        ax.set(ylabel="share without an event", ylim=(0.0, 1.02), xlim=(0.0, float(self.groups[0].times[-1])))
        return self


def _groups_of(z: FloatArray, weight: FloatArray, n_groups: int) -> IndexArray:
    """The group of each sample by rising predictor, of about the same sizes; equal predictors are not torn apart."""
    edges = np.quantile(z[weight > 0.0], np.arange(1, n_groups) / n_groups, method="higher")
    return np.searchsorted(edges, z, side="right")


def kaplan_meier(time: FloatArray, event: BoolArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """The share without an event after each of some times, where censored samples leave without one."""
    moments, place = np.unique(time, return_inverse=True)
    deaths, leaving = (np.bincount(place, weight * kind) for kind in (event, np.ones(len(time))))
    at_risk = np.cumsum(leaving[::-1])[::-1]
    steps = np.concatenate([[1.0], np.cumprod(1.0 - deaths / at_risk)])
    return np.asarray(steps[np.searchsorted(moments, at, side="right")])
