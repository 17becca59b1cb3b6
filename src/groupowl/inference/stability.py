"""Stability selection: features that fits to random halves of the samples select again and again."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from .._checks import (
    as_generator,
    finite_number,
    lookup,
    number_in,
    positive_integer,
)
from .._progress import CountedLine
from .._resume import fingerprint
from .._threads import blas_threads, check_jobs, count_threads
from .._typing import BoolArray, FloatArray, IndexArray
from ..designs import as_design
from ..estimators.base import FitData, GroupOWLBase
from ..model import Model
from ..path.follower import given_alphas
from ..solvers.continuation import wants_statistics
from .base import FeatureSelector, check_verbose, model_words
from .stability_bounds import (
    BOUNDS,
    CUTOFF,
    POWER,
    false_selections,
    integrand,
    integrated_scores,
    largest_size,
    measure_of,
    smallest_count,
)
from .stability_halves import HalfFits, PairFolder, PairOfEntries, run_pairs

_METHODS = {"pairs": "pairs", "integrated": "integrated"}
# Where neither the threshold nor the size of the base selector is given, the size is what this threshold allows.
_USUAL_THRESHOLD = 0.75
_MOST_ALPHAS = 10_000
# Of the files of a folder; another number where the meaning of a pair changes.
_FORMAT = "1"
_MOST_SEEDS = np.iinfo(np.int64).max
# Parameters of estimators that change nothing of a path.
_WITHOUT_EFFECT = ("alpha", "callback", "random_state", "resume", "relaxed", "verbose", "warm_start")


class _Plan(NamedTuple):
    """What the base selector may return, and how often a unit must be returned."""

    n_units: int
    n_pairs: int
    n_selected: int
    n_needed: int | None  # halves that return a feature; None where paths are integrated


class StabilitySelector(FeatureSelector):
    """Select the features that most fits to random halves of the samples select.

    The samples are split into two halves ``n_pairs`` times. On each half a path of Group OWL fits is followed until
    more than ``n_selected`` features would have been selected; the features of the path so far are what the *base
    selector* returns. Those that a large share of the ``2 n_pairs`` halves return are selected.

    **What is promised.** The expected number of falsely selected features is at most ``max_false``. With
    ``bound="worst-case"`` (Shah and Samworth 2013, Theorem 1), false features are those that the base selector returns
    with a probability of at most ``n_selected / n_features``, which is no more often than at random; nothing else is
    assumed. ``bound="r-concave"`` (their equation 8) is much smaller. It assumes that the number of halves that return
    such a feature has an r-concave distribution. That every feature without an effect is returned no more often than at
    random is a separate assumption, which columns that are strongly correlated with true features violate. The bound is
    on a number of features, not on a rate. The halves should be independent. With Huber loss and ``delta="auto"``, both
    use the delta of all samples, and depend on each other to this extent.

    **What is proved.** Fits are certified, so each feature is, in each half and at each alpha: selected; proved to be
    zero at the optimum; or undecided, because the coefficients are zero and the duality gap does not prove it.
    Undecided features count as returned where the size of the base selector is limited, and as not returned where
    features are selected. Both choices are conservative: the bounds hold for a selector that also returns undecided
    features, and every feature that is selected here would be selected by that one, too.

    Parameters
    ----------
    max_false : float, default=1.0
        Expected number of false selections.
    estimator : GroupOWLRegressor, GroupOWLClassifier or GroupOWLCox, default=None
        Loss, weights and options of the fits; its alpha is not used. By default one with constant weights and
        standardized columns: a regressor for fractions and for numbers with more than 20 different values, whole or
        not; a classifier for text and for fewer whole numbers; GroupOWLCox for events and times.
    method : {"pairs", "integrated"}, default="pairs"
        "pairs" compares how often features are returned, at any alpha, with a threshold. "integrated" (integrated path
        stability selection, Melikechi and Miller 2024) compares the integral of ``max(2 frequency - 1, 0)^3`` over the
        logarithm of alpha, and selects more: the variant with the cubic function, the integral ending where that of
        the bound reaches 0.05, and the size of the base selector estimated by its mean over the halves. Unlike theirs,
        sets only grow along the path, as those of "pairs" do. It assumes more, too: that pairs return a feature
        without an effect as if they were independent of each other. Where columns are correlated, or the noise of
        several targets is, that does not hold, and in our simulations there were up to three times as many false
        selections as asked for: there it is a ranking, and nothing is promised.
    bound : {"r-concave", "worst-case"}, default="r-concave"
        Bound on the number of false selections, for ``method="pairs"``.
    threshold : float, default=None
        Share of the halves that must return a feature, in (0.5, 1]. The default is the smallest one that keeps
        ``max_false``.
    n_selected : int, default=None
        Maximum number of features (or of feature groups) that the base selector returns. The default is the largest
        number that the threshold allows (0.75 if none is given), and at most half the number of samples in a half.
    n_pairs : int, default=50
        Random splits of the samples.
    alphas : int or array-like, default=30
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing *from the half*; or
        positive numbers, the same for all halves.
    eps : float, default=0.05
        Smallest alpha relative to the largest; not used when alphas are given.
    n_jobs : int or None, default=None
        Number of pairs that are fitted in parallel; -1 for one per processor. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the splits.
    verbose : int, default=0
        1 shows how many pairs are done.
    resume : str or Path, default=None
        A folder that keeps finished pairs. A fit that was interrupted goes on from there; pairs of other data or
        parameters are refused. More pairs may be added where ``n_selected`` is given: its default depends on how many
        there are. Needs an integer as ``random_state``.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Selected features. Unpenalized features are not judged and never selected.
    scores_ : ndarray of shape (n_features,)
        Share of the halves that return a feature, undecided ones not counted; the integral with
        ``method="integrated"``. NaN for unpenalized features.
    upper_scores_ : ndarray of shape (n_features,)
        The same with undecided ones counted.
    expected_false_ : ndarray of shape (n_features,)
        Smallest ``max_false`` at which a feature would be selected, with the same base selector.
    undecided_ : ndarray of bool of shape (n_features,)
        Features that are not selected, but would be if all undecided entries were selected.
    frequencies_, upper_frequencies_ : ndarray of shape (n_features, n_alphas)
        Share of the halves that have selected a feature at this alpha or a larger one; and that have not proved it to
        be zero.
    sizes_ : ndarray of shape (n_alphas,)
        Mean number of features that are returned up to this alpha, undecided ones among them.
    alphas_ : ndarray of shape (n_alphas,)
        Falling; fractions of the smallest alpha that selects nothing from a half, unless alphas were given.
    threshold_ : float
        Share of the halves, or integral, that a feature needs.
    bound_ : float
        Bound on the expected number of false selections at this threshold.
    n_selected_ : int
        Most features that the base selector returns.
    model_ : str
        Estimator and loss of the fits, in words.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    See Also
    --------
    KnockoffSelector : Controls the false discovery rate, a share of the selected features.

    References
    ----------
    Meinshausen and Bühlmann (2010), Stability selection, JRSS B 72. Shah and Samworth (2013), Variable selection with
    error control: another look at stability selection, JRSS B 75. Melikechi and Miller (2024), Integrated path
    stability selection, arXiv:2403.15877.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(100, 60, 3, n_informative=4, random_state=0)
    >>> selector = go.inference.StabilitySelector(max_false=1, n_pairs=25, random_state=0)
    >>> selector = selector.fit(data.X, data.Y)
    >>> bool(selector.bound_ <= 1), bool(0.5 < selector.threshold_ <= 1)
    (True, True)
    >>> bool((selector.support_ & ~data.B.any(axis=1)).any())  # false selections
    False
    """

    if TYPE_CHECKING:  # what a fit stores
        alphas_: FloatArray
        bound_: float
        expected_false_: FloatArray
        model_: str
        n_selected_: int
        sizes_: npt.NDArray[Any]
        threshold_: float
        undecided_: BoolArray
        upper_scores_: FloatArray

    def __init__(
        self,
        max_false: float = 1.0,
        *,
        estimator: Any = None,
        method: str = "pairs",
        bound: str = "r-concave",
        threshold: float | None = None,
        n_selected: int | None = None,
        n_pairs: int = 50,
        alphas: Any = 30,
        eps: float = 0.05,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        resume: Any = None,
    ) -> None:
        self.max_false = max_false
        self.estimator = estimator
        self.method = method
        self.bound = bound
        self.threshold = threshold
        self.n_selected = n_selected
        self.n_pairs = n_pairs
        self.alphas = alphas
        self.eps = eps
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.resume = resume

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Fit the halves of all pairs, and select.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data in memory.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels. Both halves of a pair have as many samples of each class, as far as that is possible.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of samples in the fits. Halves are halves of the samples whatever their weights; samples of weight
            zero are not there.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors of all fits, as in ``fit`` of the estimator: for example the logarithm of the
            exposure for ``loss="poisson"``.

        Returns
        -------
        self
            The fitted selector.

        Warns
        -----
        ConvergenceWarning
            When fits stopped before the gap met the tolerance: more features may be undecided.
        """
        self._check_parameters()
        n_jobs = check_jobs(self.n_jobs)
        with blas_threads(X, are_taken=count_threads(n_jobs) > 1):
            prototype, data = self._data(X, y, sample_weight, offset)
            data = self._checked(prototype, data)
            model = data.fitting.model(data.X, data.Y, prototype.weights, data.sample_weight)
            plan = self._plan(model, data.n_samples // 2)
            fits = self._fits(model, data, plan)
            entropy = int(as_generator(self.random_state).integers(_MOST_SEEDS))
            pairs = run_pairs(
                fits,
                _classes_of_samples(data),
                plan.n_pairs,
                entropy,
                n_jobs=n_jobs,
                folder=PairFolder(self.resume, self._facts(prototype, data, fits, entropy)),
                line=CountedLine(type(self).__name__, "pairs", bool(self.verbose)),
            )
        self._warn_of_short_fits(pairs, len(fits.alphas))
        findings = self._findings(model, fits, plan, pairs, self._given_features(data))
        return self._store(data, model_=model_words(prototype, data), **findings)

    # What is asked for ------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse parameters that need no data to be known as wrong."""
        finite_number("max_false", self.max_false, above=0.0)
        lookup("method", self.method, _METHODS)
        lookup("bound", self.bound, dict.fromkeys(BOUNDS))
        positive_integer("n_pairs", self.n_pairs, minimum=3 if self.method == "integrated" else 1)
        if self.threshold is not None:
            if self.method == "integrated":
                raise ValueError(
                    f"threshold={self.threshold!r} is for method='pairs'; with method='integrated' max_false decides. "
                    "Leave it out."
                )
            number_in("threshold", self.threshold, "(0.5, 1]")
        if self.n_selected is not None:
            positive_integer("n_selected", self.n_selected)
        check_verbose(self.verbose)
        if self.resume is not None and (
            isinstance(self.random_state, bool) or not isinstance(self.random_state, numbers.Integral)
        ):
            raise ValueError(
                f"resume needs the same splits each time, got random_state={self.random_state!r}. Give an integer."
            )

    def _checked(self, prototype: GroupOWLBase, data: FitData) -> FitData:
        """The data with what they decide of the fits, where halves can be fitted."""
        if data.n_samples < 4:
            raise ValueError(f"X has {data.n_samples} samples, but two halves need at least 4.")
        if prototype._is_adaptive:
            raise ValueError(
                "penalty_factor='adaptive' makes factors from all samples, and what a half returns must depend on the "
                "half alone. Give factors as numbers, or none."
            )
        if data.fitting.settings.rule is None:
            raise ValueError(
                "screening='none' proves nothing, so that every feature would be undecided. Use screening='safe'."
            )
        return prototype._completed(data)

    def _plan(self, model: Model, n_half: int) -> _Plan:
        """The size of the base selector and the count of halves, of which the user may have given one or both."""
        n_units = model.problem.penalty.n_units - len(model.unpenalized)
        n_pairs, max_false = int(self.n_pairs), float(self.max_false)
        size = None if self.n_selected is None else min(int(self.n_selected), n_units)
        if self.method == "integrated":
            return _Plan(n_units, n_pairs, size or min(n_units, n_half), None)
        count = None if self.threshold is None else math.ceil(2 * n_pairs * float(self.threshold) - 1e-9)
        if size is None:
            usual = math.ceil(2 * n_pairs * _USUAL_THRESHOLD)
            allowed = largest_size(self.bound, n_units, count or usual, n_pairs, max_false)
            size = max(min(allowed, n_units, n_half // 2), 1)
        if count is None:
            count = smallest_count(self.bound, n_units, size, n_pairs, max_false) or 2 * n_pairs
        found = false_selections(self.bound, n_units, size, count, n_pairs)
        if found > max_false:
            raise ValueError(
                f"max_false={self.max_false!r} cannot be promised: with n_selected={size} of {n_units} features and a "
                f"threshold of {count / (2 * n_pairs):g} the {self.bound} bound is {found:.3g}. Allow more false "
                "selections, lower n_selected, raise the threshold, or raise n_pairs."
            )
        return _Plan(n_units, n_pairs, size, count)

    def _fits(self, model: Model, data: FitData, plan: _Plan) -> HalfFits:
        """The base selector."""
        alphas, are_fractions = self._alphas(model)
        settings, weight, total = data.fitting.settings, data.sample_weight, None
        design = as_design(data.X)
        shares = wants_statistics(model.problem, settings.solver, len(alphas)) and not len(model.unpenalized)
        if shares and model.problem.n_rows < data.n_samples // 2 and np.ndim(weight) < 2 and not np.isnan(data.Y).any():
            w = np.ones(data.n_samples) if weight is None else weight
            total = design.statistics_of_parts(data.Y, w[:, None], np.zeros(data.n_samples, dtype=np.intp), 1)[0]
        return HalfFits(
            design, data.Y, weight, data.fitting, model.weights, alphas, are_fractions, plan.n_selected, total
        )

    def _alphas(self, model: Model) -> tuple[FloatArray, bool]:
        """Falling alphas, and whether they are fractions."""
        fraction = number_in("eps", self.eps, "(0, 1)")
        if isinstance(self.alphas, numbers.Integral):
            count = positive_integer("alphas", self.alphas)
            if count > _MOST_ALPHAS:
                raise ValueError(f"alphas must be at most {_MOST_ALPHAS}, got {self.alphas!r}.")
            return np.geomspace(1.0, fraction, count + 1)[1:], True  # nothing is selected at the first one
        if isinstance(self.alphas, str) or np.ndim(self.alphas) == 0:
            raise TypeError(f"alphas must be an integer, how many, or positive numbers, got {self.alphas!r}.")
        return given_alphas(self.alphas, model), False

    def _facts(
        self, prototype: GroupOWLBase, data: FitData, fits: HalfFits, entropy: int
    ) -> dict[str, str | list[float]]:
        """What a pair depends on, for the folder."""
        if self.resume is None:
            return {}
        params = {}
        for name, value in prototype.get_params(deep=False).items():
            if name not in _WITHOUT_EFFECT:
                is_simple = value is None or isinstance(value, str | bool | int | float)
                params[name] = repr(value) if is_simple else fingerprint(np.asarray(value, dtype=object))
        return {
            "the data": fingerprint(data.X, data.Y, *(() if data.sample_weight is None else (data.sample_weight,))),
            "the estimator": f"{type(prototype).__name__} {params}",
            "the weights": fingerprint(fits.weights),
            "alphas": f"{fits.are_fractions} {fits.alphas.tolist()}",
            "n_selected": str(fits.most),
            "random_state": str(entropy),
            "the format": _FORMAT,
        }

    # What was found ---------------------------------------------------------------------------------

    def _warn_of_short_fits(self, pairs: list[PairOfEntries], n_alphas: int) -> None:
        n_short = sum(entries.n_short for pair in pairs for entries in pair)
        if n_short:
            warnings.warn(
                f"{n_short} of at most {2 * len(pairs) * n_alphas} fits stopped short of their tolerance, which leaves "
                "more features undecided. Raise max_iter of the estimator, or rescale the columns of X.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _findings(
        self, model: Model, fits: HalfFits, plan: _Plan, pairs: list[PairOfEntries], given: Any
    ) -> dict[str, Any]:
        """Fitted attributes, from where features enter the paths of the halves; ``given`` are columns to tell of."""
        n_alphas, n_halves = len(fits.alphas), 2 * plan.n_pairs
        lower = np.zeros((model.problem.n_rows, n_alphas + 1), dtype=np.intp)
        upper = lower.copy()
        for pair in pairs:
            for entries in pair:
                lower[entries.features, entries.selected_at] += 1
                upper[entries.features, entries.candidate_at] += 1
        lower, upper = (np.cumsum(counts, axis=1)[:, :-1] for counts in (lower, upper))
        units, judged = self._units(model)
        sizes = upper[units].sum(axis=0) / n_halves
        lower, upper, judged = lower[given], upper[given], judged[given]
        judge = self._judge_pairs if plan.n_needed is not None else self._judge_integrals
        scores, highest, threshold, expected, bound = judge(plan, lower / n_halves, upper / n_halves, sizes, fits)
        support = judged & (scores >= threshold)
        return {
            "support_": support,
            "scores_": np.where(judged, scores, np.nan),
            "upper_scores_": np.where(judged, highest, np.nan),
            "expected_false_": np.where(judged, expected, np.nan),
            "undecided_": judged & (highest >= threshold) & ~support,
            "frequencies_": lower / n_halves,
            "upper_frequencies_": upper / n_halves,
            "sizes_": sizes,
            "alphas_": fits.alphas,
            "threshold_": threshold,
            "bound_": bound,
            "n_selected_": plan.n_selected,
        }

    def _units(self, model: Model) -> tuple[IndexArray, BoolArray]:
        """One feature of each penalized unit, and which features are penalized."""
        judged = np.ones(model.problem.n_rows, dtype=bool)
        judged[model.unpenalized] = False
        penalized, units = np.flatnonzero(judged), model.problem.penalty.units
        return (penalized if units is None else penalized[np.unique(units[penalized], return_index=True)[1]]), judged

    def _judge_pairs(
        self, plan: _Plan, lower: FloatArray, upper: FloatArray, sizes: FloatArray, fits: HalfFits
    ) -> tuple[FloatArray, FloatArray, float, FloatArray, float]:
        """Frequencies at the end of the paths against the threshold."""
        assert plan.n_needed is not None
        n_halves = 2 * plan.n_pairs
        scores, highest = lower[:, -1], upper[:, -1]
        counts = np.rint(scores * n_halves).astype(np.intp).tolist()
        bounds = {}
        for count in {plan.n_needed, *counts}:  # a bound takes a search
            bounds[count] = false_selections(self.bound, plan.n_units, plan.n_selected, count, plan.n_pairs)
        expected = np.array([bounds[count] for count in counts])
        # A share of halves that a feature has exactly must not fall below its threshold by rounding.
        return scores, highest, plan.n_needed / n_halves, expected, bounds[plan.n_needed]

    def _judge_integrals(
        self, plan: _Plan, lower: FloatArray, upper: FloatArray, sizes: FloatArray, fits: HalfFits
    ) -> tuple[FloatArray, FloatArray, float, FloatArray, float]:
        """Integrals of frequencies against that of the bound."""
        values = integrand(plan.n_units, sizes, plan.n_pairs)
        measure = measure_of(fits.alphas, values)
        total = float(values @ measure)
        scores, highest = integrated_scores(lower, measure), integrated_scores(upper, measure)
        threshold = max(total / float(self.max_false), np.finfo(float).tiny)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.where(scores > 0.0, np.minimum(total / scores, plan.n_units), plan.n_units)
        return scores, highest, threshold, expected, float(min(total / threshold, plan.n_units))

    def _columns(self) -> dict[str, Any]:
        return {"score": self.scores_, "expected_false": self.expected_false_, "undecided": self.undecided_}

    def _promise(self) -> tuple[str, str]:
        """What is promised, and under which assumption, in a sentence each."""
        promise = f"The expected number of false selections is at most {self.bound_:.3g}"
        assumption = "Features without an effect are returned by the base selector no more often than at random"
        if self.method == "integrated":
            promise += ", where columns and the noise of the targets are uncorrelated; elsewhere nothing is promised"
            assumption += ", and by different pairs as if these were independent"
        elif self.bound == "r-concave":
            assumption += ", and the number of halves that return one has an r-concave distribution"
        return f"{promise}.", f"{assumption}."

    def _summary_lines(self) -> list[str]:
        promise, assumption = self._promise()
        what = f"integral of max(2 frequency - 1, 0)^{POWER}, to {CUTOFF:g} of the bound"
        if self.method == "pairs":
            what = f"share of the halves at least {self.threshold_:.3g}"
        n_undecided = int(np.count_nonzero(self.undecided_))
        return [
            *super()._summary_lines(),
            f"  model      {self.model_}",
            f"  promise    {promise}",
            f"  assumes    {assumption}",
            f"  method     {self.n_pairs} pairs of halves, at most {self.n_selected_} features from each; {what}",
            f"  undecided  {n_undecided}",
        ]


def _classes_of_samples(data: FitData) -> IndexArray | None:
    """The class of each sample as a number; None where targets are no classes."""
    if data.classes is None:
        return None
    labels: IndexArray = np.unique(data.targets, axis=0, return_inverse=True)[1].ravel()
    return labels
