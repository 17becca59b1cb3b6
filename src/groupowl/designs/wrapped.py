"""Designs that change the columns of another without forming the result, so that sparse data stay sparse.

Columns are centered and scaled, or what the unpenalized columns explain of them is taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._typing import BoolArray, FloatArray, Handle, IndexArray
from ..norm.kernels import (
    EPS,
    SMALLEST_NORM,
    divide_rows,
    exceeds_rounding,
    matrix_product,
    nonzero_rows,
    row_norms,
)
from .base import ColumnMoments, Design, PlainData, Sum, check_overflow, check_underflow, products, rounding_rtol
from .dense import DenseColumns
from .factors import CompressedData
from .sparse import Columns, SparseColumns

# Columns of which less than this is left by the projection are looked at again, one by one.
_SUSPECT = 1e-5
# Working sets of sparse data are made dense up to so many entries (a gigabyte); larger ones stay with the design.
_MOST_ENTRIES = 1 << 27
# What a design that wraps another leaves to it: sample space, and what is known of costs.
_SAMPLE_SPACE = (
    "samples",
    "map",
    "reduce",
    "reduce_all",
    "gather",
    "exported",
    "select",
    "orthonormal",
    "widest",
    "is_one_block",
)
_COSTS = (
    "shape",
    "dtype",
    "passes",
    "unit",
    "density",
    "keeps_columns",
    "journey",
    "is_distributed",
    "shuffled",
    "patterns",
    "left_out",
)
# And how its columns came from X as it was given.
_ORIGIN = ("mean", "inverse_scale", "deviation", "treated_as_constant")

NO_COLUMNS: IndexArray = np.zeros(0, dtype=np.intp)


class WrappedDesign(Design):
    """A design that changes the columns of another, its ``base``, and leaves sample space to it."""

    def __init__(self, base: Design) -> None:
        self.base = base
        for name in (*_SAMPLE_SPACE, *_COSTS, *_ORIGIN):
            setattr(self, name, getattr(base, name))

    def on(self, base: Design, columns: IndexArray) -> Design:
        """The same change of these columns of the base, which ``base`` has alone."""
        raise NotImplementedError(f"{type(self).__name__} has no columns of its own")

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, from dense copies of columns, in which nothing cancels, or from the base."""
        chosen = None if self.keeps_columns else self.columns(left)
        if isinstance(chosen, DenseColumns):
            other = None if right is left else self.columns(right)
            if other is None or isinstance(other, DenseColumns):
                return chosen.gram(w, other)
        return self.gram_by_base(left, right, w)

    def gram_by_base(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """The same from products of the base."""
        raise NotImplementedError(f"{type(self).__name__} has no columns of its own")

    def restrict(self, columns: IndexArray) -> Design:
        return self.on(self.base.restrict(columns), columns)

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        near = self.base.brought_near(columns, n_tasks)
        return None if near is None else self.on(near, columns)


class StandardizedDesign(WrappedDesign):
    """``(X - 1 mean^T) diag(inverse_scale)``; ``inverse_scale`` is 0 for columns without variation."""

    mean: FloatArray
    inverse_scale: FloatArray

    def __init__(self, base: Design, mean: FloatArray, inverse_scale: FloatArray) -> None:
        super().__init__(base)
        self.mean = mean
        self.inverse_scale = inverse_scale

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        B_scaled, shift = self.input_coefficients(B)
        return self.base.matmul(B_scaled, shift if offset is None else offset + shift)

    def predictor(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        B_scaled, shift = self.input_coefficients(B)
        return self.base.predictor(B_scaled, shift if offset is None else offset + shift)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` of the base, less the means times the column sums of ``T``, which are among the other sums."""
        C, (columns, *others) = self.base.evaluate(T, (np.add.reduce, T), *sums)
        return self.inverse_scale[:, None] * (C - np.outer(self.mean, columns)), others

    def column_norms(self, w: Handle) -> FloatArray:
        """Column norms; if the columns are not centered, those of the base, which are cheaper than moments."""
        return super().column_norms(w) if self.mean.any() else self.inverse_scale * self.base.column_norms(w)

    def compute_moments(self, w: Handle) -> ColumnMoments:
        base, factors = self.base.moments(w), self.inverse_scale
        mean = factors * ((base.mean - self.mean) + base.rest)
        return ColumnMoments(base.total_weight, mean, np.zeros_like(mean), factors**2 * base.squares)

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """Of the base about the means; centers of these columns are shifted and scaled back."""
        about = self.mean if center is None else self.mean + divide_rows(center[:, None], self.inverse_scale)[:, 0]
        return self.inverse_scale[:, None] ** 2 * self.base.squared_products(H, about)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        lowest, highest = self.base.ranges()
        return self.inverse_scale * (lowest - self.mean), self.inverse_scale * (highest - self.mean)

    def on(self, base: Design, columns: IndexArray) -> StandardizedDesign:
        return StandardizedDesign(base, self.mean[columns], self.inverse_scale[columns])

    def plain_data(self) -> PlainData | None:
        """X of the base with the means and scales; an infinite scale makes a column zero."""
        base = self.base.plain_data()
        with np.errstate(divide="ignore"):
            return None if base is None else PlainData(base.X, self.mean, 1.0 / self.inverse_scale)

    def rows(self, rows: IndexArray) -> StandardizedDesign:
        """Copy rows of the base; means and scales stay those of all rows."""
        return StandardizedDesign(self.base.rows(rows), self.mean, self.inverse_scale)

    def columns(self, columns: IndexArray) -> Columns | None:
        base = self.base.columns(columns)
        if isinstance(base, DenseColumns):
            return base.standardized(self.mean[columns], self.inverse_scale[columns])
        return None if base is None else SparseColumns(self.on(base.design, columns))

    def gram_by_base(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        products, left_sums, right_sums, total = self.base.gram_and_sums(left, right, w)
        mean = self.mean[left]
        products -= np.outer(mean, right_sums) + np.outer(left_sums - total * mean, self.mean[right])
        return self.inverse_scale[left, None] * products * self.inverse_scale[right]

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Compressed data of the base, centered (by the means for ``w``) and scaled like this design."""
        data = self.base.compressed(Y, w, exact=exact, center=center or bool(self.mean.any()))
        return None if data is None else data.scaled(self.inverse_scale)

    def compressed_patterns(self, Y: Handle, w: Handle, *, center: bool) -> Any:
        """Those of the base, less the means and scaled."""
        data = self.base.compressed_patterns(Y, w, center=center or bool(self.mean.any()))
        return None if data is None else data.standardized(self.mean, self.inverse_scale)

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms before the means are taken off: products cancel that much."""
        return np.sqrt(norms**2 + total_weight * (self.inverse_scale * self.mean) ** 2)


def scale_columns(design: Design, factors: FloatArray) -> Design:
    """The columns times a factor each; the design itself where all are 1."""
    return design if np.all(factors == 1.0) else StandardizedDesign(design, np.zeros_like(factors), factors)


def standardize(
    design: Design,
    w: Handle,
    *,
    center: bool,
    scale: bool,
    unscaled: IndexArray | None = None,
    rescaled: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
) -> Design:
    """Wrap ``design`` so that its columns have weighted mean 0 (``center``) and deviation 1 (``scale``).

    The deviation is about the mean (ddof 0) whether or not columns are centered. Columns without variation
    become exact zeros when they are centered or scaled, but for those ``unscaled``, which are centered at most.
    ``rescaled`` makes what columns are multiplied with in the end from what it would be, and the deviations.
    """
    if not (center or scale or rescaled):
        return design
    moments = design.moments(w)
    deviation = np.sqrt(moments.squares / moments.total_weight)
    how: dict[str, Any] = {"center": center, "scale": scale, "unscaled": unscaled, "rescaled": rescaled}
    return with_deviations(design, moments.mean, deviation, **how)


def with_deviations(
    design: Design,
    mean: FloatArray,
    deviation: FloatArray,
    *,
    center: bool,
    scale: bool,
    unscaled: IndexArray | None = None,
    rescaled: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
    size: FloatArray | None = None,
) -> StandardizedDesign:
    """The same for known means and deviations; ``size`` is that of the entries, where the means do not tell."""
    size = np.abs(mean) if size is None else size
    suspects = np.flatnonzero((deviation < SMALLEST_NORM) & (size < SMALLEST_NORM / EPS))
    check_underflow(design, suspects, constant_is_zero=True)
    varies = exceeds_rounding(deviation, size)
    inverse_scale = np.where(varies | (not (center or scale)), 1.0, 0.0)
    if scale:
        inverse_scale[varies] = 1.0 / deviation[varies]
    is_constant = inverse_scale == 0.0
    if rescaled is not None:
        inverse_scale = rescaled(inverse_scale, np.where(varies, deviation, 0.0))
    if unscaled is not None:
        inverse_scale[unscaled] = varies[unscaled] if center else 1.0
        is_constant[unscaled] = inverse_scale[unscaled] == 0.0
    wrapped = StandardizedDesign(design, mean if center else np.zeros_like(mean), inverse_scale)
    wrapped.treated_as_constant = np.flatnonzero(is_constant & (deviation > 0.0))
    if scale:
        wrapped.deviation = np.where(varies, deviation, 1.0)
    return wrapped


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal basis of the unpenalized columns.

    Attributes
    ----------
    Q : handle of shape (n_samples, rank)
        ``Q = X_U mixing`` with ``Q^T diag(w) Q = I``.
    w : handle
        The weights in which it is orthonormal.
    columns : ndarray of int
        Columns U.
    mixing : ndarray of shape (n_columns, rank)
    condition : float
        Error of the basis relative to that of the columns.
    explained : ndarray of int
        Columns that became zeros because the basis explains all of them but rounding.
    """

    Q: Handle
    w: Handle
    columns: IndexArray
    mixing: FloatArray
    condition: float = 1.0
    explained: IndexArray = field(default_factory=lambda: NO_COLUMNS)

    @property
    def rank(self) -> int:
        """Columns of Q."""
        return self.mixing.shape[1]


class ProjectedDesign(WrappedDesign):
    """``X - Q L`` with ``L = Q^T diag(w) X``: what the span of the unpenalized columns does not explain of X.

    The unpenalized columns themselves become exact zeros. Nothing is formed but the basis, so that sparse data stay
    sparse.

    Parameters
    ----------
    base : Design
        X, centered where there is an intercept: the basis is then orthogonal to the constant.
    basis : Basis
        Its columns are those of this design; empty where it was restricted to some of its columns.
    loadings : ndarray of shape (rank, n_features)
        L, with that of the unpenalized columns.
    vanishing : ndarray of bool of shape (n_features,)
        Columns in the span of Q, unpenalized or not.
    """

    def __init__(self, base: Design, basis: Basis, loadings: FloatArray, vanishing: BoolArray) -> None:
        super().__init__(base)
        self.basis = basis
        self.loadings = loadings
        self.vanishing = vanishing
        self._kept = (~vanishing).astype(np.float64)[:, None]

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B`` of the base, less its part in the span of the basis."""
        return self._without_basis(B, self.base.matmul(B * self._kept, offset))

    def predictor(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        return self._without_basis(B, self.base.predictor(B * self._kept, offset))

    def _without_basis(self, B: FloatArray, product: Handle) -> Handle:
        rows = np.flatnonzero(nonzero_rows(B))
        explained = matrix_product(self.loadings[:, rows], (B * self._kept)[rows])
        minus = partial(_minus_product, coefficients=explained)
        return self.map(minus, product, self.basis.Q)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` of the base, less the loadings times ``Q^T T``, which is among the other sums."""
        C, (explained, *others) = self.base.evaluate(T, (products, self.basis.Q, T), *sums)
        return self._kept * (C - self.loadings.T @ explained), others

    def column_norms(self, w: Handle) -> FloatArray:
        """Weighted norms, by Pythagoras where that does not cancel."""
        whole = self.base.column_norms(w)
        cross, square = self._basis_products(w)
        L = self.loadings
        squares = whole**2 - (np.einsum("rj,jr->j", L, 2.0 * cross) - np.einsum("rj,rj->j", L, square @ L))
        suspects = np.flatnonzero((squares < _SUSPECT * whole**2) & ~self.vanishing)
        if len(suspects):
            product = partial(_minus_product, coefficients=L[:, suspects])
            rest = self.map(product, self.base.restrict(suspects).matmul(np.eye(len(suspects))), self.basis.Q)
            squares[suspects] = self.reduce(_weighted_squares, rest, w)
        return np.sqrt(np.where(self.vanishing, 0.0, np.maximum(squares, 0.0)))

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """Those of the base, less what the basis explains, with room for what cancels; about zero alone."""
        if center is not None:
            raise NotImplementedError("projected columns have products about zero only")
        L, rank = self.loadings, len(self.loadings)
        if rank == 0:  # unpenalized columns that are zeros
            return self._kept * self.base.squared_products(H)
        weighted = self.map(_times_each, self.basis.Q, H)
        C, (square,) = self.base.evaluate(weighted, (products, self.basis.Q, weighted))
        cross = np.einsum("rj,jkr->jk", L, C.reshape(len(C), C.shape[1] // rank, rank))  # there may be no column left
        explained = np.einsum("rj,rks,sj->jk", L, square.reshape(rank, -1, rank), L, optimize=True)
        whole = self.base.squared_products(H)
        room = 8 * EPS * np.sqrt(self.n_samples) * (whole + explained)  # each of the three parts is no larger
        return self._kept * np.maximum(whole - 2.0 * cross + explained + 4.0 * room, 0.0)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Those of the base, moved by no more than the basis can."""
        lowest, highest = self.base.ranges()
        moved = np.abs(self.loadings.T) @ np.max(self.reduce(_sizes, self.basis.Q), axis=0)
        kept = self._kept[:, 0]
        return kept * (lowest - moved), kept * (highest + moved)

    def _basis_products(self, w: Handle) -> tuple[FloatArray, FloatArray]:
        """``X^T diag(w) Q`` and ``Q^T diag(w) Q``, which are known for the weights of the basis."""
        if w is self.basis.w:
            return self.loadings.T, np.eye(len(self.loadings))
        weighted = self.map(np.multiply, self.basis.Q, w)
        cross, (square,) = self.base.evaluate(weighted, (products, self.basis.Q, weighted))
        return cross, square

    def on(self, base: Design, columns: IndexArray) -> ProjectedDesign:
        """The same on some columns; the basis stays, and moves where the base did."""
        basis = replace(self.basis, columns=NO_COLUMNS)  # only the whole design knows where they are
        if base.is_distributed != self.is_distributed:
            basis = replace(basis, Q=self.gather(basis.Q), w=None)
        return ProjectedDesign(base, basis, self.loadings[:, columns], self.vanishing[columns])

    def rows(self, rows: IndexArray) -> ProjectedDesign:
        """Copy rows of the base and of the basis."""
        basis = replace(self.basis, Q=self.select(self.basis.Q, rows), w=None)
        return ProjectedDesign(self.base.rows(rows), basis, self.loadings, self.vanishing)

    def columns(self, columns: IndexArray) -> Columns | None:
        """Dense copies, with the basis projected out."""
        if self.density < 1.0 and len(columns) * self.n_samples > _MOST_ENTRIES:
            return None
        base = self.base.columns(columns)
        if base is None:
            return None
        At = base.dense(np.arange(len(columns)))
        At -= self.loadings[:, columns].T @ np.asarray(self.basis.Q).T
        At[self.vanishing[columns]] = 0.0
        return DenseColumns(At, self.passes, self.unit)

    def gram_by_base(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of the base, less those with the basis."""
        cross, square = self._basis_products(w)
        L_left, L_right = self.loadings[:, left], self.loadings[:, right]
        explained = L_left.T @ cross[right].T + (cross[left] - L_left.T @ square) @ L_right
        return self._kept[left] * (self.base.gram(left, right, w) - explained) * self._kept[right].T

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Compressed data of the base, by QR, with the unpenalized columns projected out of the few samples."""
        data = self.base.compressed(Y, w, exact=True, center=center)
        if data is None:
            return None
        Q = data.R[:, self.basis.columns] @ self.basis.mixing
        R = (data.R - Q @ (Q.T @ data.R)) * self._kept.T
        R -= Q @ (Q.T @ R)
        return replace(data, R=R, x_size=data.x_size * self._kept[:, 0])

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the base's columns; ``on_basis`` are those of the basis."""
        B = B * self._kept
        own = -(self.loadings @ B) if on_basis is None else on_basis - self.loadings @ B
        B[..., self.basis.columns, :] = self.basis.mixing @ own
        return super().input_coefficients(B)

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of the projected columns."""
        return super().own_coefficients(B) * self._kept

    def _own_scale(self) -> FloatArray | None:
        """The penalty does not see unpenalized columns: they are shown per standard deviation where others are."""
        scale = super()._own_scale()
        if scale is not None and self.deviation is not None:
            scale[self.basis.columns] = self.deviation[self.basis.columns]
        return scale

    def basis_coefficients(self, B: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of the part of ``X B`` in the span of the basis, and a bound on it before cancellation."""
        whole = super().own_coefficients(B)
        return self.loadings @ whole, float(row_norms(self.loadings.T) @ row_norms(whole))

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms before the projection: products cancel that much."""
        explained = self.basis.condition**2 * np.einsum("rj,rj->j", self.loadings, self.loadings)
        whole = np.sqrt(norms**2 + explained)
        return np.where(self.vanishing, 0.0, self.base.rounding_norms(whole, total_weight))


def project_out(design: Design, columns: IndexArray, w: Handle) -> ProjectedDesign:
    """Wrap ``design`` so that these columns are unpenalized."""
    whole = design.column_norms(w)
    check_overflow(whole)
    check_underflow(design, columns[whole[columns] < SMALLEST_NORM])
    U = design.restrict(columns).matmul(np.eye(len(columns)))
    if design.mean is not None and design.mean[columns].any():
        # Beside means that are far from zero rounding has left a part of the constant, which mixing would blow up.
        sums, total = design.reduce(products, w, U), design.reduce(np.sum, w)
        U = design.map(partial(_shifted, by=-sums / total), U)
    Q, mixing = design.orthonormal(U, w)
    loadings = design.rmatmul(design.map(np.multiply, Q, w)).T
    vanishing = np.zeros(design.n_features, dtype=bool)
    vanishing[columns] = True
    # How far errors of the unpenalized columns, relative to their norms, can turn the basis.
    condition = float(np.linalg.norm(whole[columns, None] * mixing, 2)) if mixing.size else 1.0
    basis = Basis(Q, w, columns, mixing, condition)
    left = ProjectedDesign(design, basis, loadings, vanishing).column_norms(w)
    vanishing |= left <= rounding_rtol(design.n_samples) * whole
    explained = np.flatnonzero(vanishing & (loadings != 0.0).any(axis=0))
    # Unpenalized columns that are not part of the basis are explained by the others.
    explained = np.setdiff1d(explained, columns[mixing.any(axis=1)])
    return ProjectedDesign(design, replace(basis, explained=explained), loadings, vanishing)


def _shifted(U: FloatArray, by: FloatArray) -> FloatArray:
    return U + by


def _minus_product(Z: FloatArray, Q: FloatArray, coefficients: FloatArray) -> FloatArray:
    return Z - Q @ coefficients


def _times_each(Q: FloatArray, H: FloatArray) -> FloatArray:
    """All products of a column of ``H`` and one of ``Q``, the latter fastest."""
    return (H[:, :, None] * Q[:, None, :]).reshape(len(Q), -1)


def _sizes(Q: FloatArray) -> list[FloatArray]:
    """Largest size in each column of some rows, in a list: sums of these are lists of all blocks."""
    return [np.abs(Q).max(axis=0, initial=0.0)]


def _weighted_squares(U: FloatArray, w: FloatArray) -> FloatArray:
    return (w * U * U).sum(axis=0)
