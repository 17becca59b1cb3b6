"""Knockoffs: copies of the columns of X that can be exchanged with them, and have nothing to do with the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve, cholesky, eigvalsh, inv, solve_triangular

from .._checks import as_float_array, as_generator, check_finite, finite_matrix, lookup, nonnegative_weights
from .._typing import BoolArray, FloatArray, IndexArray
from ..designs.base import check_overflow

# Equicorrelated knockoffs stop short of the boundary, where the joint covariance is singular.
_INSIDE = 0.999
# Coordinates whose changes of the inverse are applied together, by one product of matrices.
_BLOCK = 64
_MOST_SWEEPS = 100
# A sweep that lowers the objective by less, relatively, is the last one.
_SWEEP_RTOL = 1e-5
# Columns that vary by less than this, relative to their size, are constant.
_CONSTANT_RTOL = 1e-10
# Smallest eigenvalue of a correlation matrix that can be inverted.
_SINGULAR = 1e-10
# Smallest eigenvalue of estimated correlations.
_LEAST_EIGENVALUE = 1e-4


# How far knockoffs are from their columns -------------------------------------------------------------------


def equicorrelated(R: FloatArray) -> FloatArray:
    """``min(1, 2 lambda_min(R))`` for every coordinate of a correlation matrix R, a little inside."""
    smallest = float(eigvalsh(R, subset_by_index=[0, 0])[0])
    return np.full(len(R), _INSIDE * min(1.0, 2.0 * smallest))


def minimum_variance(R: FloatArray) -> FloatArray:
    """The diagonal s that minimizes ``tr(G^{-1}) = sum_j 1 / s_j + tr((2 R - diag(s))^{-1})`` (MVR).

    G is the joint covariance of columns and knockoffs. Coordinate descent on the convex objective (Spector and Janson
    2022): with ``A = 2 R - diag(s)`` and ``a`` the column j of ``A^{-1}``, a step of size t changes the trace by
    ``t ||a||^2 / (1 - t a_j)``, so that the best one is ``t = (1 - ||a|| s_j) / (a_j + ||a||)``.
    """
    s = equicorrelated(R)
    last = np.inf
    for _ in range(_MOST_SWEEPS):
        inverse = inv(2.0 * R - np.diag(s), overwrite_a=True)  # anew, so that rounding does not add up
        objective = float(np.sum(1.0 / s) + np.trace(inverse))
        if objective > (1.0 - _SWEEP_RTOL) * last:
            break
        last = objective
        for start in range(0, len(R), _BLOCK):
            _descend(inverse, s, np.arange(start, min(start + _BLOCK, len(R))))
    return s


def _descend(inverse: FloatArray, s: FloatArray, block: IndexArray) -> None:
    """One step along each coordinate of a block; changes s and the inverse in place."""
    steps = np.empty(len(block))
    directions = np.empty((len(s), len(block)), order="F")
    for k, j in enumerate(block.tolist()):
        known = directions[:, :k]  # changes of the inverse that are still to be applied
        a = inverse[:, j] + known @ (steps[:k] * known[j])
        size = float(np.linalg.norm(a))
        t = (1.0 - size * s[j]) / (a[j] + size)
        s[j] += t
        steps[k] = t / (1.0 - t * a[j])
        directions[:, k] = a
    inverse += (directions * steps) @ directions.T


_DISTANCES = {"mvr": minimum_variance, "equicorrelated": equicorrelated}


@dataclass(frozen=True, eq=False)
class _Exchange:
    """``S`` with ``[[V, V - S], [V - S, V]]`` positive definite, block diagonal over groups.

    Attributes
    ----------
    S : ndarray of shape (n_columns, n_columns)
    root : ndarray of shape (n_columns, n_columns)
        ``root root^T = 2 S - S V^{-1} S``, the covariance of knockoffs given the columns.
    """

    S: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, V: FloatArray, groups: IndexArray, s: str) -> Self:
        """For a covariance V; ``S = L diag(s) L^T`` with ``L L^T`` the diagonal blocks of V.

        Columns of a group are uncorrelated in the coordinates of ``L``, so that any diagonal is that of a valid S. With
        groups of one these are correlations, and S is the usual diagonal. With the equicorrelated s,
        ``S = gamma blockdiag(V_gg)``.
        """
        L = _block_roots(V, groups)
        half = solve_triangular(L, V, lower=True)
        R = solve_triangular(L, half.T, lower=True)
        R = 0.5 * (R + R.T)
        distance = lookup("s", s, _DISTANCES)(R)
        conditional = 2.0 * np.diag(distance) - distance[:, None] * inv(R) * distance
        scaled = L * distance
        return cls(scaled @ L.T, L @ cholesky(0.5 * (conditional + conditional.T), lower=True))


def _block_roots(V: FloatArray, groups: IndexArray) -> FloatArray:
    """Lower triangular roots of the diagonal blocks of V; columns of a group need not be neighbors."""
    if len(np.unique(groups)) == len(groups):
        return np.diag(np.sqrt(np.diag(V)))
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    blocks = [cholesky(V[np.ix_(part, part)], lower=True) for part in np.split(order, starts[1:])]
    L = np.zeros_like(V)
    L[np.ix_(order, order)] = block_diag(*blocks)  # triangular as it was: the order is ascending within groups
    return L


def _group_numbers(groups: Any, n_features: int) -> IndexArray:
    """Numbers of the groups of all columns from labels; each column is one where there are none."""
    if groups is None:
        return np.arange(n_features)
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(f"groups must have shape {(n_features,)}, a label for each feature, got {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1]


def _checked_data(X: Any) -> FloatArray:
    """Finite numbers whose squares are finite, too."""
    data = finite_matrix("X", X, remedy="Impute missing entries.")
    with np.errstate(over="ignore"):
        check_overflow(np.sqrt(np.einsum("ij,ij->j", data, data)))
    return data


# Columns with a normal law ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class GaussianKnockoffs:
    """Model-X knockoffs for normally distributed features: call it with X and a random generator.

    ``X~ = X - (X - mean) V^{-1} S + N(0, 2 S - S V^{-1} S)``, so that the joint covariance of a sample and its knockoff
    is ``[[V, V - S], [V - S, V]]``, which stays the same when columns are exchanged with their knockoffs (Candès, Fan,
    Janson and Lv 2018).

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        V.
    S : ndarray of shape (n_features, n_features)
        Diagonal, or block diagonal over groups; zero for columns that have no knockoffs, or are constant.
    shift : ndarray of shape (n_features, n_features)
        ``V^{-1} S``.
    root : ndarray of shape (n_features, n_features)
        ``root root^T = 2 S - S V^{-1} S``.

    Examples
    --------
    >>> import numpy as np
    >>> from groupowl.inference import GaussianKnockoffs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> knockoffs = GaussianKnockoffs.of(X, covariance=np.eye(5))
    >>> knockoffs(X, rng).shape
    (200, 5)
    >>> np.diag(knockoffs.S).round(3)
    array([1., 1., 1., 1., 1.])
    """

    mean: FloatArray
    covariance: FloatArray
    S: FloatArray
    shift: FloatArray
    root: FloatArray

    @classmethod
    def of(
        cls, X: Any, *, covariance: Any = None, s: str = "mvr", groups: Any = None, without: IndexArray | None = None
    ) -> Self:
        """Knockoffs for the law of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, from which the mean is estimated, and the covariance where it is not given.
        covariance : {"ledoit-wolf", "graphical-lasso"} or array-like of shape (n_features, n_features), default=None
            The covariance, or how it is estimated: from standardized columns, by shrinkage (the default) or with a
            sparse inverse whose penalty is cross-validated.
        s : {"mvr", "equicorrelated"}, default="mvr"
            "mvr" minimizes the variance-based reconstructability; "equicorrelated" has the same distance for all, which
            takes all power where many columns are correlated with each other, and adds a little between neighbors.
        groups : array-like of shape (n_features,), default=None
            Labels of groups of columns that are exchanged as a whole; each column is one by default.
        without : ndarray of int, default=None
            Columns that need no knockoffs: those of all others are made given these, which stay as they are.

        Returns
        -------
        GaussianKnockoffs
        """
        data = _checked_data(X)
        d = data.shape[1]
        mean = data.mean(axis=0)
        V = _covariance_of(data, covariance)
        varies = np.diag(V) > 0.0
        if without is not None:
            is_open = varies.copy()
            is_open[without] = False
        else:
            is_open = varies
        S, shift, root = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
        if is_open.any():
            exchange = _Exchange.of(_given_others(V, is_open, varies), _group_numbers(groups, d)[is_open], s)
            chosen = np.ix_(is_open, is_open)
            S[chosen], root[chosen] = exchange.S, exchange.root
            whole = np.ix_(varies, varies)
            shift[whole] = cho_solve(cho_factor(V[whole], lower=True), S[whole])
        return cls(mean, V, S, shift, root)

    def __repr__(self) -> str:
        return f"GaussianKnockoffs({len(self.mean)} features)"

    def __call__(self, X: Any, rng: np.random.Generator) -> FloatArray:
        """Knockoffs of the rows of X; columns without knockoffs as they are."""
        data = _checked_data(X)
        if data.shape[1] != len(self.mean):
            raise ValueError(
                f"X must have {len(self.mean)} columns, as the samples of the law had, got {data.shape[1]}."
            )
        noise = as_generator(rng).standard_normal(data.shape)
        knockoffs: FloatArray = data - (data - self.mean) @ self.shift + noise @ self.root.T
        return knockoffs


def _given_others(V: FloatArray, is_open: BoolArray, varies: BoolArray) -> FloatArray:
    """Covariance of some columns given the others that vary."""
    others = varies & ~is_open
    inner = V[np.ix_(is_open, is_open)]
    if not others.any():
        return inner
    cross = V[np.ix_(others, is_open)]
    explained = cross.T @ cho_solve(cho_factor(V[np.ix_(others, others)], lower=True), cross)
    return inner - 0.5 * (explained + explained.T)


def _ledoit_wolf(X: FloatArray) -> FloatArray:
    from sklearn.covariance import ledoit_wolf

    return np.asarray(ledoit_wolf(X, assume_centered=True)[0])


def _graphical_lasso(X: FloatArray) -> FloatArray:
    from sklearn.covariance import GraphicalLassoCV

    return np.asarray(GraphicalLassoCV(assume_centered=True).fit(X).covariance_)


_COVARIANCES = {"ledoit-wolf": _ledoit_wolf, "graphical-lasso": _graphical_lasso}


def _covariance_of(X: FloatArray, covariance: Any) -> FloatArray:
    """The covariance that was given, after a check, or an estimate; rows of constant columns are zero."""
    if covariance is None or isinstance(covariance, str):
        return _estimated_covariance(X, lookup("covariance", covariance or "ledoit-wolf", _COVARIANCES))
    V = as_float_array("covariance", covariance, ndim=(2,))
    check_finite("covariance", V, remedy="Give a matrix of finite numbers.")
    d = X.shape[1]
    if V.shape != (d, d):
        raise ValueError(f"covariance must have shape {(d, d)}, a row for each feature, got {V.shape}.")
    if np.abs(V - V.T).max(initial=0.0) > 1e-8 * np.abs(V).max(initial=0.0):
        raise ValueError("covariance must be symmetric, and is not.")
    wrong = np.flatnonzero((np.diag(V) < 0.0) | ((np.diag(V) == 0.0) & (np.ptp(X, axis=0) > 0.0)))
    if len(wrong):
        j = int(wrong[0])
        raise ValueError(
            f"covariance[{j}, {j}] must be the variance of column {j}, which is positive, got {V[j, j]:g}. Give a "
            "positive definite matrix, or let it be estimated: covariance=None."
        )
    deviation = np.sqrt(np.diag(V))
    varies = deviation > 0.0
    if varies.any():
        R = V[np.ix_(varies, varies)] / np.outer(deviation[varies], deviation[varies])
        smallest = float(eigvalsh(R, subset_by_index=[0, 0])[0])
        if smallest < _SINGULAR:
            raise ValueError(
                f"covariance must be positive definite, but the smallest eigenvalue of its correlations is "
                f"{smallest:.2g}. Leave out columns that others determine, or let it be estimated: covariance=None."
            )
    return 0.5 * (V + V.T)


def _estimated_covariance(X: FloatArray, estimate: Any) -> FloatArray:
    """From standardized columns, so that shrinkage is towards no correlation, whatever the units."""
    center, size = X.mean(axis=0), np.abs(X).max(axis=0)
    deviation = X.std(axis=0)
    varies = deviation > _CONSTANT_RTOL * size
    V = np.zeros((X.shape[1], X.shape[1]))
    if varies.any():
        R = estimate((X[:, varies] - center[varies]) / deviation[varies])
        lacking = _LEAST_EIGENVALUE - float(eigvalsh(R, subset_by_index=[0, 0])[0])
        R[np.diag_indices(len(R))] += max(lacking, 0.0)  # two samples are correlated by one, which is not shrunk
        V[np.ix_(varies, varies)] = R * np.outer(deviation[varies], deviation[varies])
    return V


# Columns as they are ----------------------------------------------------------------------------------------


def fixed_knockoffs(
    X: Any,
    *,
    s: str = "mvr",
    groups: Any = None,
    without: IndexArray | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    random_state: Any = None,
) -> FloatArray:
    """Fixed-X knockoffs: without assumptions on the distribution of X, for at least twice as many samples as features.

    ``X~^T X~ = X^T X`` and ``X^T X~ = X^T X - S`` with S diagonal, or block diagonal over groups, of columns that are
    centered where there is an intercept (Barber and Candès 2015). For targets with normal errors of equal variance.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with ``n_samples >= 2 n_features``, and one more with an intercept.
    s : {"mvr", "equicorrelated"}, default="mvr"
        How far knockoffs are from their columns, as for :class:`GaussianKnockoffs`.
    groups : array-like of shape (n_features,), default=None
        Labels of groups of columns that are exchanged as a whole; each column is one by default.
    without : ndarray of int, default=None
        Columns that need no knockoffs, and stay as they are.
    fit_intercept : bool, default=True
        Whether models have an intercept.
    sample_weight : array-like of shape (n_samples,), default=None
        Positive weights w; products above are then ``X^T diag(w) X~``.
    random_state : int, Generator, RandomState or None, default=None
        Which of many directions the knockoffs take.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from groupowl.inference import fixed_knockoffs
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> copies = fixed_knockoffs(X, random_state=0)
    >>> centered, copied = X - X.mean(axis=0), copies - copies.mean(axis=0)
    >>> bool(np.allclose(copied.T @ copied, centered.T @ centered))
    True
    """
    data = _checked_data(X)
    n, d = data.shape
    root = np.sqrt(_positive_weights(sample_weight, n))[:, None]
    is_open = np.ones(d, dtype=bool)
    if without is not None:
        is_open[without] = False
    block = root * np.column_stack([np.ones((n, int(fit_intercept))), data[:, ~is_open]])
    basis = _orthonormal(block)
    needed = basis.shape[1] + 2 * int(is_open.sum())
    if n < needed:
        raise ValueError(
            f"Fixed-X knockoffs of {int(is_open.sum())} features need at least {needed} samples, got {n}. Use "
            "sampler='gaussian', which needs the law of the columns in their place."
        )
    inside = root * data[:, is_open]
    explained = basis @ (basis.T @ inside)
    columns = inside - explained
    size = np.linalg.norm(columns, axis=0)
    if np.any(size <= _CONSTANT_RTOL * np.linalg.norm(inside, axis=0)):
        first = int(np.flatnonzero(is_open)[np.argmin(size)])
        raise ValueError(f"Column {first} of X is constant, or unpenalized ones determine it. Leave it out.")
    columns = columns / size
    copies = _knockoff_columns(columns, basis, _group_numbers(groups, d)[is_open], s, random_state)
    result = data.copy()
    result[:, is_open] = (explained + size * copies) / root
    return result


def _positive_weights(sample_weight: Any, n_samples: int) -> FloatArray:
    """Weights of samples that all count; ones by default."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = nonnegative_weights("sample_weight", sample_weight, n_samples, per="sample")
    if not weight.all():
        where = int(np.argmin(weight))
        raise ValueError(f"sample_weight must be positive, but sample_weight[{where}] is 0. Leave such samples out.")
    return weight


def _knockoff_columns(
    columns: FloatArray, basis: FloatArray, groups: IndexArray, s: str, random_state: Any
) -> FloatArray:
    """``X (I - G^{-1} S) + U C`` for columns of length 1, with U orthogonal to them and to a basis."""
    G = columns.T @ columns
    smallest = float(eigvalsh(G, subset_by_index=[0, 0])[0])
    if smallest < _SINGULAR:
        raise ValueError(
            "Columns of X determine each other (the smallest eigenvalue of their correlations is "
            f"{smallest:.2g}), so that fixed-X knockoffs are their columns. Leave out some of them."
        )
    exchange = _Exchange.of(G, groups, s)
    rng = as_generator(random_state)
    taken = _orthonormal(np.column_stack([basis, columns]))
    free = rng.standard_normal(columns.shape)
    for _ in range(2):  # the second time for what rounding left of the first
        free -= taken @ (taken.T @ free)
    U = np.linalg.qr(free)[0]
    return columns - columns @ cho_solve(cho_factor(G, lower=True), exchange.S) + U @ exchange.root.T


def _orthonormal(A: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of some columns."""
    if A.shape[1] == 0:
        return A
    left, values, _ = np.linalg.svd(A, full_matrices=False)
    return left[:, values > len(A) * np.finfo(float).eps * values[0]]
