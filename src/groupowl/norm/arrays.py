"""The Group OWL norm as functions of arrays: NumPy's, and those of namespaces that follow the array API standard.

Of other namespaces (PyTorch, JAX, CuPy and others) norms of rows are taken where the array is, and keep gradients where
the namespace has them. Only the prox brings the norms to NumPy, which pools them, and takes a factor for each row back.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .._checks import LARGEST_FACTOR, finite_matrix, finite_number
from .._typing import FloatArray
from .kernels import TINY, prox_and_value
from .penalty import GroupOWL


@np.errstate(all="ignore")
def owl_norm(B: Any, lam: Any) -> Any:
    """Group OWL norm ``sum_i lam_i ||B_[i],:||_2``.

    Parameters
    ----------
    B : array-like of shape (n_features, n_tasks) or (n_features,)
        Coefficients; a 1-D array is one task (the OWL, or SLOPE, norm). Arrays of other namespaces that follow the
        array API standard, PyTorch's for example, stay in theirs and keep their gradients.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.

    Returns
    -------
    float, or array of no dimensions
        An array where B is one of another namespace.

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0])
    11.0
    """
    if (xp := namespace_of(B)) is not None:
        return Rows("B", B, lam, xp).value()
    rows, penalty = _rows_and_penalty("B", B, lam)
    return penalty.value(rows)


@np.errstate(all="ignore")
def owl_dual_norm(C: Any, lam: Any) -> Any:
    """Dual norm of the Group OWL norm.

    It is ``max_k (sum of the k largest ||C_j||) / (lam_1 + ... + lam_k)``.

    Parameters
    ----------
    C : array-like of shape (n_features, n_tasks) or (n_features,)
        Correlations, usually ``X^T theta``; ``theta`` is dual feasible where the result is at most 1. Or an array of
        another namespace, as for :func:`owl_norm`.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.

    Returns
    -------
    float, or array of no dimensions
        An array where C is one of another namespace.

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_dual_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0])
    2.5
    """
    if (xp := namespace_of(C)) is not None:
        return Rows("C", C, lam, xp).dual_norm()
    rows, penalty = _rows_and_penalty("C", C, lam)
    return penalty.dual_norm(rows)


@np.errstate(all="ignore")
def owl_prox(V: Any, lam: Any, *, step: float = 1.0) -> Any:
    """Proximal map of the Group OWL norm: minimizer of ``||P - V||^2 / 2 + step J(P)``.

    Parameters
    ----------
    V : array-like of shape (n_features, n_tasks) or (n_features,)
        Point to map. Or an array of another namespace, as for :func:`owl_norm`.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.
    step : float, default=1.0
        Factor of the norm.

    Returns
    -------
    ndarray of the shape of V
        Or an array of its namespace. Zero rows are exactly zero.

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_prox([5.0, 4.5, 0.5], [2.0, 1.0, 1.0])
    array([3.25, 3.25, 0.  ])
    """
    step = finite_number("step", step, above=0.0)
    if (xp := namespace_of(V)) is not None:
        return Rows("V", V, lam, xp).prox(step)
    rows, penalty = _rows_and_penalty("V", V, lam)
    P = penalty.prox(rows, step)
    return P if np.ndim(V) == 2 else P[:, 0]


def _rows_and_penalty(argument: str, B: Any, lam: Any) -> tuple[FloatArray, GroupOWL]:
    rows = finite_matrix(argument, B, remedy="Every entry must be a finite number.")
    if np.abs(rows).max(initial=0.0) > LARGEST_FACTOR:
        raise ValueError(f"{argument} has entries above {LARGEST_FACTOR:g}, whose squares overflow; rescale it.")
    return rows, _penalty(argument, len(rows), lam)


def _penalty(argument: str, n_rows: int, lam: Any) -> GroupOWL:
    penalty = GroupOWL(lam)
    if len(penalty.lam) != n_rows:
        raise ValueError(
            f"lam must have one weight per row of {argument}: {argument} has {n_rows} rows, lam has length "
            f"{len(penalty.lam)}."
        )
    return penalty


def namespace_of(array: Any) -> Any:
    """The namespace of an array that is not NumPy's; None for all that NumPy takes."""
    if isinstance(array, np.ndarray | np.generic):
        return None
    if type(array).__module__.partition(".")[0] == "torch":  # which has no `__array_namespace__`
        return _torch_namespace()
    find = getattr(array, "__array_namespace__", None)
    return None if find is None else find()


class Rows:
    """An array of a namespace, its penalty, and the norms of its rows.

    Parameters
    ----------
    argument : str
        What the array is called in messages.
    values : array of shape (n_rows, n_tasks) or (n_rows,)
    lam : array-like of shape (n_rows,)
        Weights, in this namespace or any that NumPy reads.
    xp : module
        The namespace.
    """

    def __init__(self, argument: str, values: Any, lam: Any, xp: Any) -> None:
        self.values, self.xp = values, xp
        if values.ndim not in (1, 2):
            raise ValueError(f"{argument} must be 1- or 2-dimensional, got {values.ndim} dimensions.")
        if not xp.isdtype(values.dtype, "real floating"):
            raise TypeError(f"{argument} must hold real floating-point numbers, got {values.dtype}.")
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(f"{argument} contains NaN or infinity. Every entry must be a finite number.")
        self.penalty = _penalty(argument, values.shape[0], _as_numpy(lam))
        # `vector_norm` has a gradient at zero, which the root of a sum of squares has not.
        self.norms = xp.abs(values) if values.ndim == 1 else xp.linalg.vector_norm(values, axis=1)

    def value(self) -> Any:
        """``sum_i lam_i norm_[i]``, of no dimensions."""
        return self.xp.sum(self._falling() * self._like(self.penalty.lam))

    def dual_norm(self) -> Any:
        """``max_k (sum of the k largest norms) / (lam_1 + ... + lam_k)``, of no dimensions."""
        sums = self.xp.cumulative_sum(self._falling())
        return self.xp.max(sums / self._like(np.cumsum(self.penalty.lam)))

    def prox(self, step: float) -> Any:
        """Rows times a factor each."""
        norms = _as_numpy(self.norms).astype(np.float64)
        factors = self._like(prox_and_value(norms, self.penalty.lam, step)[0] / np.maximum(norms, TINY))
        return self.values * (factors if self.values.ndim == 1 else factors[:, None])

    def _falling(self) -> Any:
        return self.xp.sort(self.norms, descending=True)

    def _like(self, numbers: FloatArray) -> Any:
        """Numbers where the array is, in its precision."""
        return self.xp.asarray(numbers, dtype=self.values.dtype, device=self.values.device)


def _as_numpy(array: Any) -> Any:
    """A copy in NumPy, without gradient, of what is an array of another namespace."""
    if namespace_of(array) is None:
        return array
    if hasattr(array, "detach"):  # PyTorch's
        array = array.detach().cpu()
    return np.array(np.from_dlpack(array))


def _torch_namespace() -> Any:
    """PyTorch with the names and arguments of the standard."""
    try:
        return import_module("array_api_compat.torch")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Arrays of PyTorch need the package array-api-compat: pip install 'groupowl[array-api]'. Or give a NumPy "
            "array."
        ) from error
