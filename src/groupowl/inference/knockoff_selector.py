"""Selection with a bound on the false discovery rate by knockoffs."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._checks import (
    as_generator,
    check_finite,
    finite_vector,
    lookup,
    number_in,
    numeric_array,
    positive_integer,
)
from .._progress import CountedLine
from .._threads import blas_threads, check_jobs
from .._typing import BoolArray, FloatArray, IndexArray
from ..estimators.base import FitData, GroupOWLBase
from ..losses import resolve_loss
from ..solvers import SolveResult, warn_unless_converged
from .base import FeatureSelector, check_verbose, model_words
from .knockoffs import GaussianKnockoffs, fixed_knockoffs
from .pairs import STATISTICS, PairFits, Pairs, Units, whitening

_MOST_SEEDS = 2**63
_AGGREGATIONS = ("e-values",)
# Level of single draws relative to that of their average. Of 0.4 to 1 in steps of 0.1, on twelve settings with 12 to 60
# true features: half has no power with up to 20 of them, 0.8 and more lose it where draws differ.
_DRAW_SHARE = 0.7
# Statistics that are told of where nothing is selected.
_SHOWN_VALUES = 3
# Of a note on the page, in characters.
_WIDTH = 110


def knockoff_threshold(W: Any, fdr: float = 0.1, *, offset: int = 1) -> float:
    """Threshold of knockoff statistics for a target false discovery rate.

    This is the smallest t with ``(offset + #{W_j <= -t}) / #{W_j >= t} <= fdr``, and infinity if there is none.

    Parameters
    ----------
    W : array-like of shape (n_features,)
        Statistics, positive in favor of features and negative in favor of knockoffs.
    fdr : float, default=0.1
        Target false discovery rate, in (0, 1).
    offset : {1, 0}, default=1
        1 is knockoff+, which controls the false discovery rate; 0 controls a smaller, modified rate only.

    Returns
    -------
    float

    Examples
    --------
    >>> from groupowl.inference import knockoff_threshold
    >>> knockoff_threshold([5, 4, 3, 2, -1, 0.5], fdr=0.25)
    2.0
    """
    values = finite_vector("W", W, np.size(W), remedy="Statistics are finite numbers.")
    level = number_in("fdr", fdr, "(0, 1)")
    _check_offset(offset)
    sizes, n_above, n_below = _counts(values)
    return _first(sizes, offset + n_below <= level * np.maximum(n_above, 1))


def _check_offset(offset: Any) -> None:
    if isinstance(offset, bool) or offset not in (0, 1):
        raise ValueError(f"offset must be 1 (knockoff+) or 0, got {offset!r}.")


def _counts(W: FloatArray) -> tuple[FloatArray, IndexArray, IndexArray]:
    """Sizes t of statistics, ascending, and how many statistics are at least t, and at most -t."""
    sizes, ascending = np.unique(np.abs(W[W != 0.0])), np.sort(W)
    n_above = len(W) - np.searchsorted(ascending, sizes, side="left")
    return sizes, n_above, np.searchsorted(ascending, -sizes, side="right")


def _first(sizes: FloatArray, is_enough: BoolArray) -> float:
    """The first size that is enough; infinity where none is."""
    return float(sizes[np.argmax(is_enough)]) if is_enough.any() else np.inf


def _e_values(W: FloatArray, level: float) -> FloatArray:
    """``n 1{W_j >= T} / (1 + #{W_j <= -T})``, where T stops at the threshold of knockoff+ at some level, or earlier.

    Earlier is where fewer than ``1 / level`` statistics are left, with which that threshold cannot be reached: a draw
    that would select nothing has e-values all the same. Ren and Barber's proof holds for any T that stops by the counts
    of signs from T on, as both rules do: the expected sum of the e-values of false features is at most n.
    """
    sizes, n_above, n_below = _counts(W)
    least = _first(sizes, (1 + n_below <= level * np.maximum(n_above, 1)) | (level * n_above < 1.0))
    return len(W) * (least <= W) / (1.0 + np.count_nonzero(-least >= W))


def _e_threshold(values: FloatArray, fdr: float) -> float:
    """What e-values must reach by the procedure of Benjamini and Hochberg; infinity where none does."""
    falling = np.sort(values)[::-1]
    ranks = np.arange(1, len(values) + 1)
    passing = np.flatnonzero(falling * ranks >= len(values) / fdr * (1.0 - 1e-12))
    return float(falling[passing[-1]]) if len(passing) else np.inf


class _Run(NamedTuple):
    """Statistics of one draw of knockoffs, and a solve that fell short of its tolerance, with its goal."""

    W: FloatArray
    short: SolveResult | None
    goal: float


class _Attributes(FeatureSelector):
    """What a fit stores; apart from the parameters, of which these would be some."""

    if TYPE_CHECKING:
        model_: str
        n_units_: int
        note_: str
        statistics_: FloatArray
        threshold_: float


@dataclass(eq=False, repr=False)
class KnockoffSelector(_Attributes):
    """Select features so that, on average, at most a share ``fdr`` of the selected ones is false.

    Every feature competes with a knockoff, a copy that has the same correlations with other features but nothing to do
    with the targets. A fit to both gives statistics ``W_j = ||B_j|| - ||B~_j||``, and features with
    ``W_j >= threshold`` are selected, where the negative statistics say how many of these are false. A feature is
    false if it is independent of *all* targets given the other features: ordinary knockoffs of X suffice for several
    targets, and for every loss.

    **What is promised.** With ``sampler="gaussian"`` and a known law of X: a false discovery rate of at most ``fdr``,
    whatever the targets are. The covariance of X is estimated by default, and the promise then is approximate. With
    ``sampler="fixed"``: the same without any law of X, for targets with normal errors, at least twice as many samples
    as features and the squared loss.

    Parameters
    ----------
    fdr : float, default=0.1
        Target false discovery rate, in (0, 1). Knockoffs select at least ``1/fdr`` features, or none.
    estimator : GroupOWLRegressor, GroupOWLClassifier, GroupOWLCox or None, default=None
        What is fitted: loss, weights, ``standardize``, ``unpenalized``, ``feature_groups``, ``penalty_factor`` and so
        on are taken from it; ``weights`` is a name or a function, as there are twice as many features.
        ``alpha="auto"`` is here the alpha that columns of noise stay below, but for a fifth of them, or fewer where
        there are more columns than samples. A number is used as it is, and must not come from a fit to X alone. None
        is a group lasso (constant weights) on standardized columns, of the kind that ``y`` asks for: a regressor
        for fractions and for numbers with more than 20 different values, whole or not; a classifier for text and for
        fewer whole numbers; events and times for structured arrays. Where that is not what you mean, give an
        estimator. Unpenalized features are in every fit and are not judged; groups of features are selected as a whole.
    statistic : {"coefficients", "path"} or callable, default="coefficients"
        "coefficients": difference of the norms in one fit. "path": the larger of the alphas at which feature and
        knockoff enter the path, with the sign of the first. A function ``f(X, X_knockoffs, y)`` returns W, one number
        for each judged feature or group; columns are exchanged with their knockoffs at random before it is called, and
        its signs changed accordingly.
    sampler : {"gaussian", "fixed"}, array-like of shape (n_samples, n_features) or callable, default="gaussian"
        "gaussian": rows of X are samples of a normal law. "fixed": see above. Or knockoffs of your own, or a function
        ``f(X, rng)`` that makes them.
    covariance : {"ledoit-wolf", "graphical-lasso"} or array-like of shape (n_features, n_features), default=None
        Covariance of the features for ``sampler="gaussian"``, or how it is estimated; Ledoit-Wolf by default.
    s : {"mvr", "equicorrelated"}, default="mvr"
        How far knockoffs are from their features: minimum variance-based reconstructability, or the same for all. The
        first keeps some power where many features are correlated with each other, and the second has none.
    offset : {1, 0}, default=1
        1 is knockoff+; 0 selects more, and controls a modified false discovery rate only.
    n_repeats : int, default=1
        Draws of knockoffs. More than one makes the selection depend less on chance.
    aggregation : {"e-values"}, default="e-values"
        How draws are combined: each is a knockoff filter at the level ``draw_fdr`` whose selection becomes e-values;
        their means go through the procedure of Benjamini and Hochberg at ``fdr``.
    draw_fdr : float, default=None
        Level of single draws where there are several; the promise holds for any. By default ``0.7 fdr``: ``fdr / 2``,
        which Ren and Barber recommend, selects little where fewer than ``2 / fdr`` features have an effect, and levels
        near ``fdr`` do where draws differ.
    n_jobs : int or None, default=None
        Draws to work on at a time, in threads; -1 is one for each processor. The result is the same.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the knockoffs.
    verbose : int, default=0
        1 shows how many of several draws are done.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Features that are selected.
    scores_ : ndarray of shape (n_features,)
        W for one draw, means of e-values for several. Features of a group share theirs; NaN for unpenalized features.
    threshold_ : float
        Features with scores of at least this are selected; infinity where none is.
    statistics_ : ndarray of shape (n_repeats, n_features)
        W of each draw.
    n_units_ : int
        Features, or groups of them, that were judged.
    model_ : str
        Estimator and loss of the fits, in words.
    note_ : str
        Why nothing is selected, and what to try; empty where something is.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Warns
    -----
    UserWarning
        Where nothing can be selected, because fewer than ``1/fdr`` statistics are positive: the text of ``note_``.

    Notes
    -----
    For the squared loss with several targets, targets are whitened first: by the residuals of least squares on
    ``[X X~]`` ("fixed"), or on what a first fit selects ("gaussian"). W is then in units of the errors. Not with
    missing targets, ``positive``, or an alpha of your own.

    Zeros of a fit are proved, so that W is exactly zero where neither feature nor knockoff is selected. The order of a
    feature and its knockoff in ``[X X~]`` is random, so that solves that stop short of the optimum cannot favor one.

    References
    ----------
    Barber, R. F. and Candès, E. J. (2015). Controlling the false discovery rate via knockoffs. Ann. Statist. 43.

    Candès, E. J., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: model-X knockoffs for high dimensional
    controlled variable selection. J. R. Stat. Soc. B 80.

    Spector, A. and Janson, L. (2022). Powerful knockoffs via minimizing reconstructability. Ann. Statist. 50.

    Ren, Z. and Barber, R. F. (2024). Derandomised knockoffs: leveraging e-values for false discovery rate control.
    J. R. Stat. Soc. B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from groupowl.inference import KnockoffSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 60))
    >>> B = np.zeros((60, 3))
    >>> B[:15] = rng.normal(size=(15, 3))
    >>> Y = X @ B + rng.normal(size=(300, 3))
    >>> selector = KnockoffSelector(fdr=0.2, random_state=0).fit(X, Y)
    >>> bool(selector.support_[:15].all()), selector.transform(X).shape[1] <= 20
    (True, True)
    """

    fdr: float = 0.1
    _: KW_ONLY
    estimator: Any = None
    statistic: Any = "coefficients"
    sampler: Any = "gaussian"
    covariance: Any = None
    s: str = "mvr"
    offset: int = 1
    n_repeats: int = 1
    aggregation: str = "e-values"
    draw_fdr: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Draw knockoffs, fit to features and knockoffs, and select.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data in memory; sparse data become dense, as knockoffs are.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets as the estimator takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the fits; with ``sampler="fixed"`` errors have variances of their inverses. The
            law of X is estimated without them.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors of the fits, as in ``fit`` of the estimator: for example the logarithm of the
            exposure for ``loss="poisson"``. The promise then takes it for a part of the targets: a feature is false if
            it is independent of targets *and* offset given the other features. A feature that is correlated with the
            offset may be selected for that; let it be a feature, or unpenalized, where that matters.

        Returns
        -------
        self
            The fitted selector. A fit that fails or is interrupted leaves an earlier one as it was.
        """
        n_repeats = self._check_parameters()
        with blas_threads(X, are_taken=self.n_jobs not in (None, 1)):
            prototype, data = self._data(X, y, sample_weight, offset)
            draws = _Draws(self, prototype, data, y)
            runs = self._runs(draws, n_repeats)
        for run in runs:
            if run.short is not None:
                warn_unless_converged(run.short, run.goal, data.fitting.settings)
                break
        model = "a statistic of your own" if callable(self.statistic) else model_words(prototype, data)
        return self._select(data, draws.units, np.stack([run.W for run in runs]), model)

    def _check_parameters(self) -> int:
        """Refuse parameters that no data could make right; the number of draws."""
        number_in("fdr", self.fdr, "(0, 1)")
        if self.draw_fdr is not None:
            number_in("draw_fdr", self.draw_fdr, "(0, 1)")
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        n_repeats = positive_integer("n_repeats", self.n_repeats)
        lookup("aggregation", self.aggregation, dict.fromkeys(_AGGREGATIONS))
        _check_offset(self.offset)
        if n_repeats > 1 and self.offset == 0:
            raise ValueError(f"offset=0 has no e-values, which n_repeats={n_repeats} draws are combined by. Use 1.")
        if n_repeats > 1 and self._has_knockoffs:
            what = f"n_repeats={n_repeats}, but sampler is one array of knockoffs"
            raise ValueError(f"{what}. Give a function f(X, rng) that draws them.")
        return n_repeats

    def _runs(self, draws: _Draws, n_repeats: int) -> list[_Run]:
        """One run for each draw, each with a seed of its own."""
        seeds = as_generator(self.random_state).integers(_MOST_SEEDS, size=n_repeats)
        work = (delayed(draws.run)(int(seed)) for seed in seeds)
        n_jobs = self.n_jobs if n_repeats > 1 else 1
        line = CountedLine(type(self).__name__, "draws", bool(self.verbose) and n_repeats > 1)
        line.begin(n_repeats, 0)
        runs = []
        try:
            for run in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(work):
                runs.append(run)
                line.advance()
        finally:
            line.close()
        return runs

    def _select(self, data: FitData, units: Units, W: FloatArray, model: str) -> Self:
        """Fitted attributes from statistics of shape (n_repeats, n_units)."""
        if len(W) == 1:
            scores, threshold = W[0], knockoff_threshold(W[0], self.fdr, offset=self.offset)
        else:
            level = _DRAW_SHARE * self.fdr if self.draw_fdr is None else self.draw_fdr
            scores = np.mean([_e_values(row, level) for row in W], axis=0)
            threshold = _e_threshold(scores, self.fdr)
        note = "" if np.isfinite(threshold) else self._reason(W, scores)
        if note and np.count_nonzero((W > 0.0).any(axis=0)) < self._needed:  # no signs could have led to a selection
            warnings.warn(note, UserWarning, stacklevel=3)
        by_feature = units.by_feature(scores, data.n_features)
        return self._store(
            data,
            support_=by_feature >= threshold,
            scores_=by_feature,
            threshold_=threshold,
            statistics_=np.stack([units.by_feature(row, data.n_features) for row in W]),
            n_units_=units.count,
            model_=model,
            note_=note,
        )

    def _reason(self, W: FloatArray, scores: FloatArray) -> str:
        """Why nothing is selected, how near it was, and what to try."""
        why = f"no threshold of W keeps the promise at fdr={self.fdr:g}"
        if self.offset:
            why = f"at fdr={self.fdr:g} knockoffs select at least {self._needed} features (1/fdr) or none"
        n_repeats, largest = len(W), ", ".join(f"{value:.3g}" for value in np.sort(scores)[::-1][:_SHOWN_VALUES])
        found = f"the largest mean e-values of {n_repeats} draws are {largest}"
        if n_repeats == 1:
            n_positive, n_negative = np.count_nonzero(W > 0.0), np.count_nonzero(W < 0.0)
            found = (
                f"{n_positive} of {W.size} statistics W are positive and {n_negative} negative, the largest {largest}"
            )
        chance = "" if self._has_knockoffs else " The knockoffs, and so the answer, depend on random_state."
        return (
            f"Nothing is selected: {why}. Here {found}{self._nearest(scores, n_repeats)}.{chance} Try a larger fdr, or "
            "stability selection (StabilitySelector, --method stability), which can select single features and bounds "
            "the number of false ones."
        )

    def _nearest(self, scores: FloatArray, n_repeats: int) -> str:
        """The threshold with the smallest estimated share of false features, in words."""
        if n_repeats == 1:
            sizes, n_above, n_below = _counts(scores)
            with np.errstate(divide="ignore"):
                shares = (self.offset + n_below) / n_above
        else:
            sizes = np.unique(scores[scores > 0.0])
            n_above = np.array([np.count_nonzero(scores >= size) for size in sizes])
            shares = len(scores) / (sizes * n_above)
        if not len(sizes) or shares.min() == np.inf:
            return ""
        best = int(np.argmin(shares))
        rate = f"an estimated false discovery rate of {shares[best]:.2g}"
        return f"; the nearest threshold is {sizes[best]:.3g}, which {n_above[best]} reach, with {rate}"

    @property
    def _has_knockoffs(self) -> bool:
        """Whether knockoffs were given, and none are drawn."""
        return not isinstance(self.sampler, str) and not callable(self.sampler)

    @property
    def _needed(self) -> int:
        """The fewest features that can be selected, up to rounding of 1/fdr."""
        return int(np.ceil(self.offset / self.fdr * (1.0 - 1e-12)))

    def _columns(self) -> dict[str, Any]:
        if len(self.statistics_) == 1:
            return {"W": self.scores_}
        return {"e_value": self.scores_, "mean_W": self.statistics_.mean(axis=0)}

    def _strongest_first(self) -> Any:
        scores, W = np.nan_to_num(self.scores_, nan=-np.inf), np.nan_to_num(self.statistics_.mean(axis=0))
        return np.lexsort((-W, -scores))  # many e-values are equal

    def _promise(self) -> tuple[str, str]:
        """What is promised, and under which assumption, in a sentence each."""
        rate = "false discovery rate" if self.offset else "modified false discovery rate"
        promise = f"The {rate}, the expected share of false features among the selected ones, is at most {self.fdr:g}"
        sampler = self.sampler if isinstance(self.sampler, str) else "own"
        is_known = self.covariance is not None and not isinstance(self.covariance, str)
        is_approximate = sampler == "gaussian" and not is_known
        promise += ", approximately: the covariance of the features is estimated." if is_approximate else "."
        law = "the covariance that was given" if is_known else "a covariance as it was estimated"
        return promise, {
            "gaussian": f"Samples of the features are independent and follow a normal distribution with {law}.",
            "fixed": "Errors of the targets are normal, independent between samples and of equal variance.",
            "own": "Features and the given knockoffs can be exchanged without a change of their joint law.",
        }[sampler]

    def _summary_lines(self) -> list[str]:
        promise, assumption = self._promise()
        n_repeats = len(self.statistics_)
        what = "W" if n_repeats == 1 else f"mean e-value of {n_repeats} draws"
        threshold = "none holds the promise" if self.note_ else f"{what} at least {self.threshold_:.4g}"
        return [
            *super()._summary_lines(),
            f"  model      {self.model_}",
            f"  promise    {promise}",
            f"  assumes    {assumption}",
            f"  threshold  {threshold}",
        ]

    def _table_lines(self) -> list[str]:
        return [*super()._table_lines(), *wrap(self.note_, _WIDTH, initial_indent="  ", subsequent_indent="  ")]


class _Draws:
    """What all draws share: data, units and the law of the columns."""

    def __init__(self, selector: KnockoffSelector, prototype: GroupOWLBase, data: FitData, y: Any) -> None:
        if categories := data.labels.get("categories_"):
            raise ValueError(
                f"X has a column of categories, {next(iter(categories))!r}, and knockoffs are for numbers. Leave such "
                "columns out, or use stability selection."
            )
        self.selector = selector
        self.prototype = prototype
        self.data = data
        self.y = y
        dense = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        self.X = np.ascontiguousarray(dense, dtype=np.float64)  # frames are in another order, and would round otherwise
        self.units = Units.of(data)
        self.loss = resolve_loss(data.fitting.loss)
        self.statistic = selector.statistic
        if not callable(self.statistic):
            lookup("statistic", self.statistic, STATISTICS)
        else:
            for name, is_given in (("sample_weight", data.sample_weight), ("offset", data.labels.get("has_offset_"))):
                if is_given is not None:
                    raise ValueError(f"{name} is not passed to a statistic of your own. Leave it out, or use it there.")
        self._check_weights(prototype.weights)
        if isinstance(prototype.alpha, str):
            lookup("alpha", prototype.alpha, {"auto": None})
        self.sampler = self._sampler()

    def _check_weights(self, weights: Any) -> None:
        """Refuse weights for features alone: knockoffs are as many."""
        expected = 2 * self.units.count
        is_sequence = not isinstance(weights, str) and not callable(weights)
        if is_sequence and np.shape(weights) != (expected,):
            raise ValueError(
                f"weights of the estimator must be a name, a function, or {expected} numbers, one for each feature and "
                f"each knockoff, got {np.size(weights)}."
            )

    def _sampler(self) -> Any:
        """A function of X and a random generator."""
        sampler, s = self.selector.sampler, self.selector.s
        if callable(sampler):
            return sampler
        if not isinstance(sampler, str):
            given = _checked_knockoffs("sampler", sampler, self.X)
            return lambda X, rng: given
        groups = self._groups()
        known: dict[str, Any] = {"s": s, "groups": groups, "without": self.data.fitting.unpenalized}
        kinds = {"gaussian": self._gaussian, "fixed": self._fixed}
        return lookup("sampler", sampler, kinds)(known)

    def _groups(self) -> Any:
        """A label for each column: its unit, and others for unpenalized columns."""
        labels = -1 - np.arange(self.data.n_features)
        labels[self.units.columns] = self.units.unit
        return labels

    def _gaussian(self, known: dict[str, Any]) -> Any:
        return GaussianKnockoffs.of(self.X, covariance=self.selector.covariance, **known)

    def _fixed(self, known: dict[str, Any]) -> Any:
        data = self.data
        if not self.loss.is_quadratic:
            raise ValueError(
                f"sampler='fixed' is for the squared loss, got {self.loss.name!r}: its promise needs normal errors. "
                "Use sampler='gaussian'."
            )
        if np.isnan(data.Y).any() or np.ndim(data.sample_weight) == 2:
            raise ValueError("sampler='fixed' needs all targets of a sample. Use sampler='gaussian'.")
        known |= {"fit_intercept": data.fitting.fit_intercept, "sample_weight": data.sample_weight}
        return lambda X, rng: fixed_knockoffs(X, random_state=rng, **known)

    def run(self, seed: int) -> _Run:
        """Statistics of one draw."""
        rng = np.random.default_rng(seed)
        knockoffs = _checked_knockoffs("The knockoffs that sampler returned", self.sampler(self.X, rng), self.X)
        pairs = Pairs.of(self.X, knockoffs, self.units, rng)
        run = self._own_statistic(pairs) if callable(self.statistic) else self._fitted_statistic(pairs)
        return run._replace(W=pairs.signed(run.W))

    def _own_statistic(self, pairs: Pairs) -> _Run:
        second = pairs.X.copy()
        second[:, self.units.columns] = pairs.other
        W = self.statistic(pairs.X, second, self.y)
        remedy = "It must return a finite number for each judged feature, or group of features."
        W = finite_vector("What statistic returned", W, self.units.count, remedy=remedy, size="n_units")
        return _Run(W, None, 0.0)

    def _fitted_statistic(self, pairs: Pairs) -> _Run:
        data, alpha = pairs.fit_data(self.data, self.prototype), self.prototype.alpha
        statistic = lookup("statistic", self.statistic, STATISTICS)
        fits = PairFits(data, self.prototype, self.units)
        if self._whitens(alpha) and (whitener := self._whitener(fits)) is not None:
            fits = PairFits(data, self.prototype, self.units, whitener)
        W = statistic(fits, alpha)
        return _Run(W, fits.short, fits.model.problem.goal(data.fitting.settings.tol))

    def _whitens(self, alpha: Any) -> bool:
        """Whether errors of tasks can be made uncorrelated without a change of what was asked for."""
        data = self.data
        is_whole = np.ndim(data.sample_weight) < 2 and not np.isnan(data.Y).any()
        is_free = isinstance(alpha, str) and data.fitting.options.signs is None
        return bool(self.loss.is_quadratic and data.n_targets > 1 and is_whole and is_free)

    def _whitener(self, fits: PairFits) -> FloatArray | None:
        if isinstance(self.selector.sampler, str) and self.selector.sampler == "fixed":
            return _whitener_of_all(fits.data)
        fits.settle()
        return fits.whitener()


def _whitener_of_all(data: FitData) -> FloatArray | None:
    """From the residuals of all columns, which are independent of the products that statistics are made of."""
    X, Y = data.X, data.Y
    root = np.ones((len(Y), 1)) if data.sample_weight is None else np.sqrt(data.sample_weight)[:, None]
    A = root * np.column_stack([X, np.ones((len(X), int(data.fitting.fit_intercept)))])
    left = len(A) - A.shape[1]
    if left < 2 * Y.shape[1]:
        return None
    residuals = root * Y - A @ np.linalg.lstsq(A, root * Y, rcond=None)[0]
    return whitening(root * Y, residuals, None)


def _checked_knockoffs(argument: str, knockoffs: Any, X: FloatArray) -> FloatArray:
    """Finite knockoffs of the shape of X."""
    values = numeric_array(argument, knockoffs)
    if values.shape != X.shape:
        raise ValueError(
            f"{argument} must have the shape of X without samples of weight zero, {X.shape}, got {values.shape}."
        )
    check_finite(argument, values, remedy="Knockoffs are finite numbers.")
    return np.asarray(values, dtype=np.float64)
