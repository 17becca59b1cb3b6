"""Selection by one fit whose weights, at the noise of the data, control false discoveries of independent columns."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import lookup, number_in, positive_integer
from .._text import counted
from .._threads import blas_threads
from .._typing import FloatArray, IndexArray
from ..designs import as_design
from ..estimators import GroupOWLRegressor
from ..estimators.fit_summary import coefficient_norms
from ..inputs import coefficient_columns
from ..model import build_model, complain_of_correlation
from ..weights import chi, chi_gauss, first_quantile
from .base import FeatureSelector
from .noise import MOST_ROUNDS, Noise, checked_data, estimated_noise, given_noise, warn_unless_settled


def _chi_weights(n_features: int, n_tasks: int, n_samples: int, fdr: float) -> FloatArray:
    return chi(n_features, n_tasks, fdr=fdr)


def _chi_gauss_weights(n_features: int, n_tasks: int, n_samples: int, fdr: float) -> FloatArray:
    return chi_gauss(n_features, n_tasks, n_samples, fdr=fdr)


_SEQUENCES = {"chi_gauss": _chi_gauss_weights, "chi": _chi_weights}


class SlopeSelector(FeatureSelector):
    """Select features by SLOPE at false discovery rate ``fdr``, for (nearly) independent columns.

    The noise of the targets is whitened, ``Y Sigma^(-1/2)``, columns are standardized, and features are selected by one
    Group OWL fit at the alpha for noise of standard deviation 1. Alpha is not chosen from the data in any other way.
    Without whitening, noise that is correlated between targets leads to several times as many false features as asked
    for.

    Parameters
    ----------
    fdr : float, default=0.1
        Target false discovery rate, the expected share of features without an effect among those selected.
    noise : "estimate", float or array-like of shape (n_targets,) or (n_targets, n_targets), default="estimate"
        Standard deviation of the noise in all targets, one for each target, or the covariance of the noise of a sample.
        "estimate" finds the covariance from residuals: of all features where these leave 50 degrees of freedom for each
        target, else of the selected features, in turns with the selection.
    weights : {"chi_gauss", "chi"}, default="chi_gauss"
        Weight sequence. "chi" is for orthogonal columns, where it selects more.
    max_rounds : int, default=12
        Most turns of selection and noise.
    tol : float, default=1e-6
        Each fit stops when its duality gap is at most ``tol`` times the loss of the model without features.
    max_iter : int, default=10000
        Maximum number of proximal steps of each fit.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Features that are selected.
    scores_ : ndarray of shape (n_features,)
        Norm of the coefficients of each feature as the penalty sees them: in units of the noise, times the norm of the
        centered column.
    coef_ : ndarray of shape (n_targets, n_features) or (n_features,)
        Coefficients on the scale of the data, shrunken by the penalty.
    intercept_ : ndarray of shape (n_targets,) or float
        Intercept.
    noise_covariance_ : ndarray of shape (n_targets, n_targets)
        Covariance of the noise that was used.
    noise_freedom_ : float
        Degrees of freedom that it was estimated with; infinite where it was given.
    n_iter_ : int
        Proximal steps of the last fit.
    n_rounds_ : int
        Turns of selection and noise; 0 where none was needed.
    settled_ : bool
        Whether the last selection gave the noise that it was made with.
    lam_ : ndarray of shape (n_features,)
        Weights for white noise and columns of norm 1.
    estimator_ : GroupOWLRegressor
        The fit to targets with white noise, with its certificate.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Warns
    -----
    UserWarning
        When columns of X are correlated, with the largest correlation that was found.
    ConvergenceWarning
        When noise and selection do not settle.

    See Also
    --------
    groupowl.weights.chi_gauss : The weights.
    hotelling_tests : Tests for features of any correlation, where there are more samples than features.

    Notes
    -----
    With 500 samples, independent columns and the noise estimated, the false discovery rate was 0.03 to 0.10 at
    ``fdr=0.1`` (200 and 1000 features; 1, 5 and 10 targets; effects in random directions); up to 0.13 if all effects
    have the same direction. Where columns have a correlation of 0.5 with their neighbors it was 0.09 to 0.20.

    References
    ----------
    Bogdan, van den Berg, Sabatti, Su, Candès: SLOPE, adaptive variable selection via convex optimization, 2015.
    Brzyski, Gossmann, Su, Bogdan: Group SLOPE, adaptive selection of groups of predictors, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from groupowl.inference import SlopeSelector
    >>> rng = np.random.default_rng(1)
    >>> X, B = rng.standard_normal((300, 100)), np.zeros((100, 3))
    >>> B[:8] = 0.3 * rng.standard_normal((8, 3))
    >>> Y = X @ B + rng.standard_normal((300, 3)) @ [[1.0, 0.8, 0.8], [0.0, 0.6, 0.2], [0.0, 0.0, 0.5]]
    >>> selector = SlopeSelector(fdr=0.1).fit(X, Y)
    >>> selector.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5, 6, 7])
    >>> selector.transform(X).shape, selector.settled_
    ((300, 8), True)
    """

    if TYPE_CHECKING:  # what a fit stores
        coef_: FloatArray
        intercept_: Any  # an array, or a number where y was one-dimensional
        estimator_: GroupOWLRegressor
        lam_: FloatArray
        n_iter_: int
        n_rounds_: int
        noise_covariance_: FloatArray
        noise_freedom_: float
        settled_: bool

    def __init__(
        self,
        fdr: float = 0.1,
        *,
        noise: Any = "estimate",
        weights: str = "chi_gauss",
        max_rounds: int = MOST_ROUNDS,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        self.fdr = fdr
        self.noise = noise
        self.weights = weights
        self.max_rounds = max_rounds
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the noise and select features.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, none of them missing.

        Returns
        -------
        self
            The fitted selector. A fit that fails leaves an earlier one as it was.
        """
        fdr = number_in("fdr", self.fdr, "(0, 1)")
        sequence = lookup("weights", self.weights, _SEQUENCES)
        max_rounds = positive_integer("max_rounds", self.max_rounds)
        with blas_threads(X):
            data = checked_data(type(self).__name__, X, y)
            (n, d), q = data.X.shape, data.Y.shape[1]
            weights = sequence(d, q, n, fdr)
            top = first_quantile(d, q, fdr)
            # The estimator's columns have deviation 1, norm sqrt(n), and its loss is a mean over samples.
            estimator = GroupOWLRegressor(
                top / np.sqrt(n), weights=weights, standardize=True, tol=self.tol, max_iter=self.max_iter
            )

            def select(noise: Noise) -> IndexArray:
                return np.flatnonzero(estimator.fit(data.X, data.Y @ noise.inverse_root).get_support())

            if isinstance(self.noise, str) and self.noise == "estimate":
                noise = estimated_noise(data.X, data.Y, select, max_rounds=max_rounds)
            else:
                noise = given_noise(self.noise, q)
            select(noise)
            norms = np.sqrt(as_design(data.X).moments(np.ones((n, 1))).squares)
            model = build_model(data.X, data.Y, weights=weights, standardize=True)
        if complaint := complain_of_correlation(model, type(self).__name__):
            warnings.warn(complaint, UserWarning, stacklevel=2)
        warn_unless_settled(noise, (n, d), stacklevel=3)
        return self._store(data, **self._fitted(data, noise, estimator, top * weights, norms))

    def _fitted(self, data: Any, noise: Noise, estimator: Any, lam: FloatArray, norms: FloatArray) -> dict[str, Any]:
        """Fitted attributes: coefficients of white targets become those of the targets."""
        coef = noise.root @ np.atleast_2d(estimator.coef_)
        intercept = noise.root @ np.atleast_1d(estimator.intercept_)
        names = {name: value for name, value in data.labels.items() if name == "target_names_"}
        return names | {
            "support_": estimator.get_support(),
            "scores_": norms * coefficient_norms(np.atleast_2d(estimator.coef_)),
            "coef_": coef[0] if data.is_flat else coef,
            "intercept_": float(intercept[0]) if data.is_flat else intercept,
            "noise_covariance_": noise.covariance,
            "noise_freedom_": noise.freedom,
            "n_iter_": estimator.n_iter_,
            "n_rounds_": noise.n_rounds,
            "settled_": bool(noise.settled),
            "lam_": lam,
            "estimator_": estimator,
        }

    def _columns(self) -> dict[str, Any]:
        coef = np.atleast_2d(self.coef_)
        names = coefficient_columns(len(coef), getattr(self, "target_names_", None))
        return super()._columns() | dict(zip(names, coef, strict=True))

    def _summary_lines(self) -> list[str]:
        deviations = np.sqrt(np.diagonal(self.noise_covariance_))
        how = f"{self.noise_freedom_:g} degrees of freedom, {counted(self.n_rounds_, 'round')}"
        if not np.isfinite(self.noise_freedom_):
            how = "given"
        return [
            *super()._summary_lines(),
            f"  promise    {self.fdr:.0%} of them false on average, if columns are independent and noise is normal",
            f"  noise      deviations from {deviations.min():.4g} to {deviations.max():.4g}, {how}",
            *([] if self.settled_ else ["             not settled: nothing is promised"]),
        ]
