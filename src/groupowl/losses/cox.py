"""Cox partial likelihood: times until an event, of which only the order counts, and some of which are censored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import xlogy

from .._checks import check_finite, check_length, finite_matrix, lookup, rectangular_array
from .._typing import BoolArray, FloatArray, IndexArray
from .base import Loss

#: What a stratum adds to the times of its samples; times must be below it.
STRATUM = 2.0**32
# Ranks, and numbers of strata, are smaller than these allow.
_MOST_RANKS = 2.0**28
_LARGEST_CODE = 2.0**53
# Relative risks that are further apart, in logarithms, leave the range of numbers: such a step is refused.
_LARGEST_RANGE = 700.0
# Bound on the second derivatives of logarithms of sums where each predictor moves by 1, relative to those before.
_NEAR = math.exp(2.0)


@dataclass(frozen=True)
class CoxLoss(Loss):
    """``F(Z) = sum over deaths of log sum_{j at risk} exp(z_j) - sum over deaths of z_i``, in each task.

    Targets are times, with a minus sign where the event was not seen (censored). Only their order counts, within
    strata: a sample of stratum s has ``s STRATUM`` added to its time. With sample weights deaths count by their weight
    and risk sets add up weighted risks, divided by the mean weight, so that the loss is in proportion to the weights.

    Each death is a multinomial choice among the samples at risk. The dual problem has a vector p of probabilities for
    each of them, and ``theta = w (event - expected events)`` is what their sum leaves unexplained. On the ray through
    the dual point of a predictor the probabilities are mixed with those that know who died,
    ``(1 - s) q + s p``, which gives a dual value for ``s theta``.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        What is done about deaths at the same time. With weights Efron's terms count by the mean weight of the tied
        deaths, as in R's survival.
    """

    ties: str = "efron"

    name: ClassVar[str] = "cox"
    curvature: ClassVar[float] = np.inf  # as many deaths as a sample is at risk for
    is_additive: ClassVar[bool] = False
    ignores_constants: ClassVar[bool] = True
    bend: ClassVar[float | None] = 1.0
    target: ClassVar[str] = "times"
    needs_whole_samples: ClassVar[str] = "it compares samples with each other, all of which need a time"
    measure: ClassVar[str] = "partial likelihood loss"

    def __post_init__(self) -> None:
        lookup("ties", self.ties, dict.fromkeys(("efron", "breslow")))

    def check_targets(self, Y: FloatArray) -> FloatArray:
        if not Y.all():
            raise ValueError(
                "loss='cox' needs times that are positive, with a minus sign where they are censored, but Y has a "
                "zero. groupowl.survival_targets makes Y of events and times."
            )
        size = np.abs(Y)
        is_code = (size % STRATUM < _MOST_RANKS) & (size % 1.0 == 0.0) & (size < _LARGEST_CODE)
        if size.max(initial=0.0) >= STRATUM and not is_code.all():
            raise ValueError(
                f"loss='cox' needs times below 2^32, but the largest is {size.max():g}: larger numbers stand for "
                "strata. groupowl.survival_targets makes Y of any times, by their ranks."
            )
        without = np.flatnonzero(~(Y > 0.0).any(axis=0))
        if len(without):
            raise ValueError(
                f"loss='cox' needs an event in each column of Y, a positive number, but column {without[0]} has none. "
                "Leave it out, or check which value stands for an event; training sets of folds need one, too."
            )
        return Y

    def observed(self, Y: FloatArray) -> FloatArray:
        """1 for events."""
        return (Y > 0.0).astype(np.float64)

    # Value and conjugate ----------------------------------------------------------------------------

    def _tasks(self, Y: FloatArray, w: FloatArray) -> tuple[RiskSets, ...]:
        w = np.broadcast_to(w, Y.shape) if w.shape[1] > 1 else w
        return _risk_sets(np.ascontiguousarray(Y).tobytes(), w.tobytes(), Y.shape[1], w.shape[1], self.ties)

    def _states(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> Iterator[tuple[int, RiskSets, Risks]]:
        for k, sets in enumerate(self._tasks(Y, w)):
            yield k, sets, sets.risks(Z[:, k])

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return sum((sets.value(risks) for _, sets, risks in self._states(Z, Y, w)), 0.0)

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return self.value_and_dual_point(Z, Y, w)[1]

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        value, theta = 0.0, np.empty(Z.shape)
        for k, sets, risks in self._states(Z, Y, w):
            value += sets.value(risks)
            theta[sets.order, k] = sets.weight * (sets.is_event - sets.expected(risks))
        return value, theta

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """The floor at zero. Elsewhere a point alone does not tell its probabilities: :meth:`ray_value` does."""
        return -np.inf if theta.any() else self.floor(Y, w)

    def floor(self, Y: FloatArray, w: FloatArray) -> float:
        """Deaths at a time of their own cost nothing; those at the same time have the same risk, at the best."""
        return sum((sets.floor() for sets in self._tasks(Y, w)), 0.0)

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """The predictor: the dual value on the ray is no function of a few sums."""
        if Z is None:
            raise TypeError("loss='cox' needs the predictor of a dual point")
        return Z

    def ray_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray, scale: float, totals: FloatArray) -> float:
        """Entropy of the mixed probabilities ``(1 - s) q + s p``, relative to the weights of the risk sets."""
        if not theta.any():
            return self.floor(Y, w)
        return sum((sets.mixed_entropy(risks, scale) for _, sets, risks in self._states(totals, Y, w)), 0.0)

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return np.zeros((0, Y.shape[1]))

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """As many events are expected as there are: dual points are balanced."""
        return theta

    def cumulative_hazards(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Breslow's estimate for a predictor of zero, at each time of a death: by task, stratum and time."""
        return np.concatenate([sets.cumulative_hazard(Z[:, k]) for k, sets in enumerate(self._tasks(Y, w))])

    # Curvature --------------------------------------------------------------------------------------

    def _expected(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Expected events of each sample, for a weight of 1."""
        return np.maximum(self.observed(Y) - theta / w, 0.0)

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Expected events: the second derivatives are this diagonal less a sum of squares."""
        return (w * self._expected(theta, Y, w)).mean(axis=1, keepdims=True)

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        result = np.empty(Z.shape)
        for k, sets, risks in self._states(Z, Y, w):
            v, rates = move[sets.order, k], sets.mass / risks.sums
            means = sets.total(risks.weighted * v) / risks.sums
            change = risks.relative * (v * sets.at_risk(rates) - sets.at_risk(rates * means))
            result[sets.order, k] = sets.weight * change
        return result

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        r, q = E.shape[1], Y.shape[1]
        H = np.zeros((r, q, r, q))
        for k, sets, risks in self._states(Z, Y, w):
            sorted_E = E[sets.order]
            means = sets.total(risks.weighted[:, None] * sorted_E) / risks.sums[:, None]
            expected = sets.weight * sets.expected(risks)
            H[:, k, :, k] = sorted_E.T @ (expected[:, None] * sorted_E)
            H[:, k, :, k] -= sets.unit * (means.T @ (sets.mass[:, None] * means))
        return H.reshape(r * q, r * q)

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """From what is added to the sums over risk sets, relative to them."""
        change = 0.0
        for k, sets, risks in self._states(Z, Y, w):
            v = sets.below_top(move[sets.order, k])
            added = sets.total(risks.weighted * np.expm1(v)) / risks.sums
            change += sets.unit * float(
                sets.mass @ np.log1p(np.maximum(added, -1.0)) - sets.base[sets.died] @ v[sets.died]
            )
        return change

    def spread(self, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """That of Poisson means: divergences of sums of probabilities are at most the sums of their divergences."""
        one, other = self._expected(theta, Y, w), self._expected(raw, Y, w)
        return 0.5 * (one + other) + 0.25 * np.abs(one - other)

    def curvature_near(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return _NEAR * float(self._expected(self.dual_point(Z, Y, w), Y, w).max(initial=0.0))

    # The rest ---------------------------------------------------------------------------------------

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        return np.zeros(len(target_means))

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Partial log-likelihood of these samples among themselves, mean over tasks."""
        return -self.value(Z, Y, w) / Y.shape[1]

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        return 2.0 * n_samples * loss

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Sums over risk sets carry the rounding of running sums, and of the largest predictors."""
        sizes = (1.0 + 2.0 * np.abs(Z).max(axis=0, initial=0.0)) * math.sqrt(len(Z))
        return float(np.sum(np.broadcast_to(w, Z.shape).sum(axis=0) * sizes))


class Risks(NamedTuple):
    """What a predictor says of the samples of one task, in the order of :class:`RiskSets`."""

    logs: FloatArray  # predictors less the largest of the stratum
    relative: FloatArray  # their exponentials
    weighted: FloatArray  # the same times weights
    sums: FloatArray  # of each term


@dataclass(frozen=True, eq=False)
class RiskSets:
    """The samples of one task from late to early: those at risk at a time are the ones before its deaths, and these.

    At the same time those censored come before the deaths. A *tie* is all deaths at one time; it has one *term* with
    Breslow's method, and one for each death with Efron's, in which tied deaths count ``1 - less``.
    """

    order: IndexArray
    is_event: BoolArray
    weight: FloatArray
    #: Mean weight, and weights over it: all that follows counts in this unit.
    unit: float
    base: FloatArray
    stratum: IndexArray
    largest_stratum: int
    #: Samples that died, by ties, and the tie of each.
    died: IndexArray
    tie_of_died: IndexArray
    #: First death of each tie, and where this is not the first of its stratum.
    first: IndexArray
    has_others: BoolArray
    #: Weight of the deaths of each tie, and the number of its terms.
    deaths: FloatArray
    terms: IndexArray
    #: Tie of each term, what is taken off its tied deaths, and its weight.
    tie: IndexArray
    less: FloatArray
    mass: FloatArray

    def risks(self, z: FloatArray) -> Risks:
        """From the predictors of the samples, in their own order; those of the last predictor are kept.

        Certificates ask for the loss, the dual point and the dual value of one predictor after the other.
        """
        last = vars(self).get("_last")
        if last is not None and bool((last[0] == z).all()):
            found: Risks = last[1]
            return found
        logs = self.below_top(z[self.order])
        relative = np.exp(logs)
        weighted = self.base * relative
        found = Risks(logs, relative, weighted, self.total(weighted))
        vars(self)["_last"] = z.copy(), found  # at once: other threads may read it
        return found

    def value(self, risks: Risks) -> float:
        """The loss of this task; infinite where relative risks leave the range of numbers."""
        if not risks.logs.min(initial=0.0) >= -_LARGEST_RANGE:
            return np.inf
        return self.unit * float(self.mass @ np.log(risks.sums) - self._base_of_died @ risks.logs[self.died])

    def floor(self) -> float:
        """The value where deaths have all the risk, those of a tie the same."""
        return self.unit * float(self.mass @ np.log((1.0 - self.less) * self.deaths[self.tie]))

    def cumulative_hazard(self, z: FloatArray) -> FloatArray:
        """Breslow's estimate for a predictor of zero, after each tie, by stratum and time."""
        logs, sums = self.below_top(z[self.order]), self.risks(z).sums[self._first_terms]
        top = (z[self.order] - logs)[self.first]
        jumps = (self.deaths / sums * np.exp(-top))[::-1]
        strata = self.stratum[self.first][::-1]
        starts = np.flatnonzero(np.diff(strata, prepend=-1))
        return np.concatenate([np.cumsum(part) for part in np.split(jumps, starts[1:])])

    def expected(self, risks: Risks) -> FloatArray:
        """Events that each sample should have had, for a weight of 1."""
        return risks.relative * self.at_risk(self.mass / risks.sums)

    def total(self, x: FloatArray) -> FloatArray:
        """Sum of ``x`` over each term, tied deaths less what is taken off."""
        if self._is_untied:
            return self._running(x, self.stratum)[self.died]
        less = self.less if x.ndim == 1 else self.less[:, None]
        return self._others(x)[self.tie] + (1.0 - less) * np.add.reduceat(x[self.died], self._ties)[self.tie]

    def at_risk(self, rates: FloatArray) -> FloatArray:
        """For each sample the sum of ``rates`` over the terms that it is part of, less what is taken off there."""
        jumps = np.zeros(len(self.order))
        if self._is_untied:
            jumps[self.died] = rates
            return self._running(jumps[::-1], self.stratum[::-1])[::-1]
        jumps[self.first[self.has_others] - 1] = np.bincount(self.tie, rates)[self.has_others]
        found = self._running(jumps[::-1], self.stratum[::-1])[::-1]
        found[self.died] += np.bincount(self.tie, rates * (1.0 - self.less))[self.tie_of_died]
        return found

    def mixed_entropy(self, risks: Risks, s: float) -> float:
        """``-sum of mass p log(p / base weight)`` with ``p = (1 - s) q + s (softmax)``, q that of the tied deaths."""
        shares = s * self.mass / risks.sums
        logs = np.log(s) - np.log(risks.sums) if s > 0.0 else np.zeros(len(risks.sums))
        others, moments = self._others(risks.weighted), self._others(risks.weighted * risks.logs)
        if self._is_untied:  # the same as below with less to look up
            p = (1.0 - s) / self.deaths + s * risks.relative[self.died] / risks.sums
            total = float(shares @ (others * logs + moments)) + float((self.mass * self._base_of_died) @ xlogy(p, p))
            return -self.unit * total
        total = float(shares @ (others[self.tie] * logs + moments[self.tie]))
        chosen, tie, place = self.died, self.tie_of_died, 0
        while len(chosen):  # one term of each tie at a time
            term = self._first_terms[tie] + place
            kept = 1.0 - self.less[term]
            p = (1.0 - s) / self.deaths[tie] + s * kept * risks.relative[chosen] / risks.sums[term]
            total += float(np.sum(self.mass[term] * self.base[chosen] * xlogy(p, p / kept)))
            place += 1
            has_more = self.terms[tie] > place
            chosen, tie = chosen[has_more], tie[has_more]
        return -self.unit * total

    def below_top(self, x: FloatArray) -> FloatArray:
        """Less the largest of the stratum."""
        if self._is_one_stratum:
            return x - np.maximum.reduce(x)
        return x - np.maximum.reduceat(x, self._strata)[self.stratum]

    @cached_property
    def _is_one_stratum(self) -> bool:
        return self.largest_stratum == len(self.order)

    @cached_property
    def _is_untied(self) -> bool:
        """Whether every death is at a time of its own, and so a term of its own."""
        return len(self.first) == len(self.died)

    @cached_property
    def _have_others(self) -> bool:
        return bool(self.has_others.all())

    @cached_property
    def _base_of_died(self) -> FloatArray:
        return self.base[self.died]

    @cached_property
    def _strata(self) -> IndexArray:
        """First sample of each stratum."""
        return np.flatnonzero(np.diff(self.stratum, prepend=-1))

    @cached_property
    def _ties(self) -> IndexArray:
        """First of those who died in each tie."""
        return np.flatnonzero(np.diff(self.tie_of_died, prepend=-1))

    @cached_property
    def _first_terms(self) -> IndexArray:
        return np.cumsum(self.terms) - self.terms

    def _others(self, x: FloatArray) -> FloatArray:
        """Sum of ``x`` over those at risk at each tie but its deaths."""
        found: FloatArray = self._running(x, self.stratum)[self.first - 1]
        if not self._have_others:
            found[~self.has_others] = 0.0
        return found

    def _running(self, x: FloatArray, stratum: IndexArray) -> FloatArray:
        """Running sums within strata; doubling steps, because differences of sums over all strata would cancel."""
        if self._is_one_stratum:
            return np.add.accumulate(x)
        x, step = x.copy(), 1
        while step < self.largest_stratum:
            is_same = stratum[step:] == stratum[:-step]
            added = x[:-step] * (is_same if x.ndim == 1 else is_same[:, None])
            x[step:] += added
            step *= 2
        return x


@lru_cache(maxsize=8)
def _risk_sets(targets: bytes, weights: bytes, q: int, q_w: int, ties: str) -> tuple[RiskSets, ...]:
    """Risk sets of each task: kept by the targets themselves, because they take a sort."""
    Y, w = np.frombuffer(targets).reshape(-1, q), np.frombuffer(weights).reshape(-1, q_w)
    return tuple(_sorted(Y[:, k], w[:, min(k, q_w - 1)], ties == "efron") for k in range(q))


def _sorted(y: FloatArray, w: FloatArray, efron: bool) -> RiskSets:
    size = np.abs(y)
    order = np.lexsort((y > 0.0, -size))
    y, size, weight = y[order], size[order], w[order]
    stratum = np.cumsum(np.diff(np.floor(size / STRATUM), prepend=np.inf) != 0.0) - 1
    is_event = y > 0.0
    died = np.flatnonzero(is_event)
    is_first = np.diff(y[died], prepend=np.inf) != 0.0
    tie_of_died = np.cumsum(is_first) - 1
    first = died[is_first]
    unit = float(w.mean())
    base = weight / unit
    count = np.bincount(tie_of_died)
    deaths: FloatArray = np.asarray(np.bincount(tie_of_died, base[died]), dtype=np.float64)
    tie, terms = np.arange(len(count)), np.ones_like(count)
    less, mass = np.zeros(len(count)), deaths
    if efron:
        tie, terms = tie_of_died, count
        less = (np.arange(len(died)) - np.flatnonzero(is_first)[tie]) / count[tie]
        mass = (deaths / count)[tie]
    has_others = (first > 0) & (stratum[first - 1] == stratum[first])
    return RiskSets(
        order, is_event, weight, unit, base, stratum, int(np.bincount(stratum).max()), died, tie_of_died, first,
        has_others, deaths, terms, tie, less, mass,
    )  # fmt: skip


def survival_targets(event: Any, time: Any, strata: Any = None) -> FloatArray:
    """Targets for ``loss="cox"`` from events and times.

    Times become ranks, with a minus sign if the sample is censored.

    Parameters
    ----------
    event : array-like of shape (n_samples,) or (n_samples, n_endpoints)
        Whether the event was seen: booleans, or 1 and 0 (censored).
    time : array-like of the same shape
        Time of the event, or of the end of the observation; positive.
    strata : array-like of shape (n_samples,), default=None
        Label of the stratum of each sample. Samples are compared within their stratum only.

    Returns
    -------
    ndarray of shape (n_samples, n_endpoints)
        The rank of each time among the different times of its column, from 1, plus 2^32 times the number of the
        stratum.

    Examples
    --------
    >>> import groupowl as go
    >>> go.survival_targets([True, False, True], [5.0, 7.5, 2.0]).ravel()
    array([ 2., -3.,  1.])
    """
    remedy = "Remove the samples without a time: they cannot be compared with others, which have one."
    times = finite_matrix("time", time, remedy=remedy)
    remedy = "Remove the samples without it: each is compared with all that are at risk. 0 means that none was seen."
    events = finite_matrix("event", event, remedy=remedy)
    if events.shape != times.shape:
        raise ValueError(f"event and time must have the same shape, got {events.shape} and {times.shape}.")
    is_flag = np.isin(events, (0.0, 1.0))
    if not is_flag.all() and np.isin(times, (0.0, 1.0)).all():
        raise ValueError(
            "time has only the entries 0 and 1, and event has others: they have changed places. The event comes first, "
            "then the time: two columns in this order, survival_targets(event, time), or columns by these names."
        )
    if times.min(initial=1.0) <= 0.0:
        raise ValueError(
            f"time must be positive, but its smallest entry is {times.min():g}. Remove samples that were not observed, "
            "or add half of the smallest unit of time."
        )
    if not is_flag.all():
        odd = events[~is_flag][0]
        raise ValueError(
            f"event must be True or False, or 1 and 0, but it has the entry {odd:g}. Give event == value for the value "
            "that stands for an event; events of several kinds are endpoints, one column for each."
        )
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] + 1.0 for column in times.T])
    if strata is not None:
        labels = rectangular_array("strata", strata)
        check_length("strata", labels.shape, len(times))
        if labels.ndim != 1:
            raise ValueError(f"strata must have one label for each sample, got an array of shape {labels.shape}.")
        if labels.dtype.kind == "f":
            check_finite("strata", labels, remedy="Give samples without a stratum a label of their own.")
        ranks += STRATUM * np.unique(labels, return_inverse=True)[1][:, None]
    return np.where(events == 1.0, ranks, -ranks)


LOSS: Loss = CoxLoss()
