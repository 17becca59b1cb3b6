"""Data with known answers: one generator for the demo, the tests, the examples and the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._checks import as_generator, finite_number, lookup, number_in, positive_integer, truth_value
from ._typing import FloatArray, IndexArray

__all__ = ["CorrelatedGroups", "make_correlated_groups"]


@dataclass(frozen=True, eq=False)
class CorrelatedGroups:
    """Simulated data with their true coefficients, as returned by :func:`make_correlated_groups`.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features, correlated in groups.
    Y : ndarray of shape (n_samples, n_tasks)
        Responses, or one-hot classes.
    B : ndarray of shape (n_features, n_tasks)
        True coefficients.
    groups : ndarray of int of shape (n_features,)
        Group of each informative feature from 1, 0 for the others.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(
    ...     50, 100, 3, n_informative=6, group_size=3, random_state=0
    ... )
    >>> data.X.shape, data.Y.shape, data.B.shape
    ((50, 100), (50, 3), (100, 3))
    >>> int((data.groups > 0).sum())
    6
    """

    X: Any
    Y: FloatArray
    B: FloatArray
    groups: IndexArray

    @property
    def labels(self) -> IndexArray:
        """Classes as integers, for classification."""
        return np.argmax(self.Y, axis=1)


def make_correlated_groups(
    n_samples: int = 200,
    n_features: int = 1000,
    n_tasks: int = 5,
    *,
    n_informative: int = 20,
    group_size: int = 1,
    correlation: float = 0.5,
    structure: str = "ar",
    task: str = "regression",
    signal_to_noise: float = 3.0,
    unit_norm: bool = False,
    density: float | None = None,
    random_state: int | None = None,
) -> CorrelatedGroups:
    """Simulate data with correlated features, of which a few groups have an effect on all tasks.

    Parameters
    ----------
    n_samples, n_features, n_tasks : int
        Shape of the data; for classification ``n_tasks`` is the number of classes.
    n_informative : int, default=20
        Number of features with non-zero coefficients, at most ``n_features``.
    group_size : int, default=1
        Informative features come in groups of this many neighbors with equal rows of coefficients; a remainder
        of ``n_informative`` that does not fill a group is left out.
    correlation : float, default=0.5
        Between neighbors for ``structure="ar"`` (it decays geometrically), within groups of ``group_size``
        columns for ``structure="block"``.
    structure : {"ar", "block"}, default="ar"
        How columns are correlated.
    task : {"regression", "classification"}, default="regression"
        Gaussian responses, or classes drawn from a softmax.
    signal_to_noise : float, default=3.0
        Ratio of the standard deviations of signal and noise; for classification the size of the predictor.
    unit_norm : bool, default=False
        Whether to scale columns to norm 1.
    density : float, default=None
        If given, X is sparse: entries are kept with this probability.
    random_state : int, default=None
        Seed.

    Returns
    -------
    CorrelatedGroups

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(
    ...     50, 100, 3, n_informative=6, group_size=3, random_state=0
    ... )
    >>> data.X.shape, data.Y.shape, int(data.groups.max())
    ((50, 100), (50, 3), 2)
    """
    n, d, q = n_samples, n_features, n_tasks
    for name, value in (("n_samples", n), ("n_features", d), ("n_tasks", q), ("group_size", group_size)):
        positive_integer(name, value)
    positive_integer("n_informative", n_informative, minimum=0)
    lookup("task", task, {"regression": None, "classification": None})
    lookup("structure", structure, {"ar": None, "block": None})
    finite_number("signal_to_noise", signal_to_noise, above=0.0)
    number_in("correlation", correlation, "[0, 1)")
    if density is not None:
        number_in("density", density, "[0, 1]")
    truth_value("unit_norm", unit_norm)
    rng = as_generator(random_state)
    X = rng.standard_normal((n, d))
    if structure == "ar":
        from scipy.signal import lfilter  # slow to import, and needed here only

        X[:, 1:] *= np.sqrt(1.0 - correlation**2)
        X = lfilter([1.0], [1.0, -correlation], X, axis=1)
    else:
        shared = np.repeat(rng.standard_normal((n, -(-d // group_size))), group_size, axis=1)[:, :d]
        X = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * X
    if density is not None:
        X = X * (rng.random((n, d)) < density)
    if unit_norm:
        norms = np.linalg.norm(X, axis=0)
        X /= np.where(norms > 0, norms, 1.0)
    B, groups = np.zeros((d, q)), np.zeros(d, dtype=np.intp)
    # equal rows within groups of neighbors, placed at random on a grid of groups
    starts = rng.choice(d // group_size, size=min(n_informative, d) // group_size, replace=False)
    for number, start in enumerate(np.sort(starts), start=1):
        members = slice(start * group_size, min((start + 1) * group_size, d))
        B[members] = rng.standard_normal(q)
        groups[members] = number
    Z = X @ B
    Z *= signal_to_noise / max(float(Z.std()), np.finfo(float).tiny)
    if task == "regression":
        Y = Z + rng.standard_normal((n, q))
    else:  # from the softmax of Z, by the Gumbel trick
        Y = np.eye(q)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]
    return CorrelatedGroups(X if density is None else sp.csr_array(X), Y, B, groups)
