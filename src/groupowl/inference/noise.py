"""The covariance of the noise of several targets: as given, or from residuals; targets whose noise is white."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._checks import as_float_array, check_finite, finite_number
from .._text import counted
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..estimators import GroupOWLRegressor
from ..norm.kernels import EPS

#: Most rounds of selection and new noise; two to four do in most cases.
MOST_ROUNDS = 12
# Residuals of all features serve where they have so many degrees of freedom for each target. With fewer, a covariance
# is so uncertain that white noise is not white: at 230 x 200 x 5, where there are 6, 21 % of the selected features were
# false and 10 % asked for, against 7 % by residuals of the selected ones; with 12 to 20 it was 10 % against 5 or 6 %.
_ENOUGH = 50


@dataclass(frozen=True, eq=False)
class Noise:
    """Covariance of the rows of ``E`` in ``Y = X B + E``.

    Attributes
    ----------
    covariance : ndarray of shape (n_tasks, n_tasks)
    freedom : float
        Degrees of freedom of the residuals that it was estimated from; infinite where it was given.
    n_rounds : int
        Selections that it took; 0 where none was needed.
    settled : bool
        Whether the last selection gave the noise that it was made with.
    """

    covariance: FloatArray
    freedom: float = np.inf
    n_rounds: int = 0
    settled: bool = True

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(self.covariance)
        if not values[0] > len(values) * EPS * max(values[-1], 0.0) or not np.isfinite(values).all():
            culprit = int(np.argmax(np.abs(vectors[:, 0])))
            raise ValueError(
                f"the noise of the targets is singular: target {culprit} is, but for rounding, a combination of others "
                "and of features, or constant. Leave it out, or give the noise."
            )
        return values, vectors

    @property
    def root(self) -> FloatArray:
        """Symmetric root of the covariance."""
        values, vectors = self._spectrum
        return np.asarray((vectors * np.sqrt(values)) @ vectors.T)

    @property
    def inverse_root(self) -> FloatArray:
        """Inverse of the root: ``Y @ inverse_root`` has independent noise of deviation 1."""
        values, vectors = self._spectrum
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def given_noise(noise: Any, n_tasks: int) -> Noise:
    """A standard deviation, one for each target, or a covariance matrix, as users give them."""
    if isinstance(noise, numbers.Real):
        return Noise(finite_number("noise", noise, above=0.0) ** 2 * np.eye(n_tasks))
    if noise is None or isinstance(noise, str):
        raise ValueError(
            f"noise must be 'estimate', a standard deviation, one for each target, or their covariance, got {noise!r}."
        )
    values = as_float_array("noise", noise, ndim=(1, 2))
    check_finite("noise", values, remedy="Give finite numbers, or noise='estimate'.")
    if values.shape not in ((n_tasks,), (n_tasks, n_tasks)):
        raise ValueError(
            f"noise must be a standard deviation for each of {n_tasks} targets, shape {(n_tasks,)}, or their "
            f"covariance, shape {(n_tasks, n_tasks)}, got shape {values.shape}."
        )
    if values.ndim == 1:
        if values.min() <= 0.0:
            raise ValueError(f"noise must be positive standard deviations, got {noise!r}.")
        return Noise(np.diag(values**2))
    if not np.allclose(values, values.T, rtol=1e-8, atol=0.0):
        raise ValueError("noise must be a symmetric covariance matrix, and is not.")
    if np.linalg.eigvalsh(values)[0] <= 0.0:
        raise ValueError("noise must be a positive definite covariance matrix, and has an eigenvalue of at most 0.")
    return Noise(values)


def residual_noise(X: FloatArray, Y: FloatArray) -> Noise:
    """From the residuals of least squares with an intercept: ``R^T R / (n - rank - 1)``."""
    n_samples = len(Y)
    R, rank = Y - Y.mean(axis=0), 0
    if X.shape[1]:
        centered = X - X.mean(axis=0)
        B, _, rank, _ = np.linalg.lstsq(centered, R, rcond=None)
        R = R - centered @ B
    freedom = n_samples - rank - 1
    if freedom < Y.shape[1]:
        raise ValueError(
            f"X has {n_samples} samples, and {rank} features and an intercept leave {freedom} degrees of freedom for "
            f"the noise of {Y.shape[1]} targets: too few. More samples are needed, or the noise must be given."
        )
    return Noise(R.T @ R / freedom, float(freedom))


def estimated_noise(
    X: Any, Y: FloatArray, select: Callable[[Noise], IndexArray], *, max_rounds: int = MOST_ROUNDS
) -> Noise:
    """Noise from residuals: of all features where there are samples enough, else of those that ``select`` finds.

    ``select`` gets the noise and returns the features that it selects with it. These give a new noise, and so on, until
    the selection stays as it is, is one that was there before, or has more than half as many features as there are
    samples.
    """
    n_samples, n_features = X.shape
    if n_samples - n_features - 1 >= _ENOUGH * Y.shape[1]:
        return residual_noise(dense(X), Y)
    support = np.zeros(0, dtype=np.intp)
    noise, seen = residual_noise(dense(X[:, support]), Y), set()
    n_rounds, settled = 0, False
    while n_rounds < max_rounds:
        n_rounds += 1
        found = select(noise)
        settled = np.array_equal(found, support)
        if settled or 2 * len(found) > n_samples or found.tobytes() in seen:
            break
        seen.add(found.tobytes())
        support = found
        noise = residual_noise(dense(X[:, support]), Y)
    return Noise(noise.covariance, noise.freedom, n_rounds, settled)


def warn_unless_settled(noise: Noise, shape: tuple[int, ...], *, stacklevel: int) -> None:
    """Warn of noise that changes with each selection."""
    if not noise.settled:
        warnings.warn(
            f"Noise and selection have not settled after {counted(noise.n_rounds, 'round')}, with {shape[0]} samples "
            f"and {counted(shape[1], 'feature')}: error rates are not known. Give the noise, or use knockoffs.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def dense(X: Any) -> FloatArray:
    """A matrix, sparse or not, as an array in double precision."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


# Data as users give them ------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Checked data: X as an array or sparse matrix, targets (n_samples, n_targets), and names as fitted attributes."""

    X: Any
    Y: FloatArray
    is_flat: bool
    labels: dict[str, Any]


def checked_data(what: str, X: Any, y: Any) -> Data:
    """Data for ``what``, which needs all samples in memory, all of their targets, and two samples at least."""
    found = GroupOWLRegressor()._validate_fit(X, y)
    if found.is_summarized or isinstance(found.X, Design):
        raise ValueError(f"X: {what} needs the samples in memory, as an array, a data frame or a sparse matrix.")
    check_finite("y", found.Y, remedy="Remove the samples without a target: all targets must be observed.")
    with np.errstate(over="ignore"):
        squares = np.sum(np.square(found.Y, dtype=np.float64))
    if not np.isfinite(squares):
        raise ValueError(f"y is so large that its squares overflow: up to {np.abs(found.Y).max():.3g}. Rescale it.")
    if found.n_samples < 2:
        raise ValueError(f"X has 1 sample (n_samples=1): {what} needs at least two.")
    return Data(found.X, np.asarray(found.Y, dtype=np.float64), found.is_flat, dict(found.labels))
