"""What a solve returns: coefficients, their certificate, and how they came about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

import numpy as np

from .._html import facts_table, titled
from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import cluster_labels, nonzero_rows
from ..problem import Certificate, Problem, Published

#: ``screened_at`` of rows that are not proved zero.
NEVER = -1
#: The same where the row is zero because its column varies by no more than rounding and was treated as constant.
AS_CONSTANT = -2
#: The same where unpenalized columns explain all of its column but rounding.
AS_EXPLAINED = -3


class Status(StrEnum):
    """Why a solve ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    CALLBACK = "callback"
    STALLED = "stalled"
    PRECISION = "precision"


_ENDINGS: dict[str, str] = {
    Status.MAX_ITER: "stopped at max_iter",
    Status.CALLBACK: "stopped by the callback",
    Status.PRECISION: "stopped at the limit of the arithmetic",
}
#: What to say where the goal was not met, and what to change.
WARNINGS: dict[str, str] = {
    Status.MAX_ITER: "Stopped after max_iter={max_iter} steps: {reached}. Raise max_iter or tol.",
    Status.STALLED: "Stopped because steps bring no more progress: {reached}. "
    "Raise tol, rescale the columns of X, or choose another step.",
    Status.PRECISION: "Stopped at the limit of the arithmetic: {reached}. Raise tol, give X in double precision, or "
    "bring columns and targets nearer to zero.",
}

Value = TypeVar("Value")

#: Why a solve may have ended, by name.
STATUSES = tuple(status.value for status in Status)


@dataclass(frozen=True)
class HistoryRow:
    """State at one certificate."""

    iteration: int
    seconds: float
    passes: float
    primal: float
    dual: float
    gap: float
    n_active: int
    n_nonzero: int


@dataclass(frozen=True, eq=False)
class History:
    """Objective, gap and active rows at each certificate of a solve, as arrays.

    ``history[i]`` is the row of one certificate, ``len(history)`` the number of certificates.

    Attributes
    ----------
    iteration : ndarray of int
        Proximal steps taken so far; epochs with ``solver="spgd"``.
    seconds, passes : ndarray
        Time, and products with X in units of one product with all columns, so far.
    primal, dual, gap : ndarray
        Objective, dual value, and the proved bound on the distance of the objective from its minimum.
    n_active : ndarray of int
        Rows not proved zero.
    n_nonzero : ndarray of int
        Rows with coefficients that are not zero.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    >>> history = go.solve(data.X, data.Y, lam, solver="apgd").history
    >>> bool(history.gap[-1] < history.gap[0]), len(history) == len(history.gap)
    (True, True)
    """

    iteration: IndexArray
    seconds: FloatArray
    passes: FloatArray
    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    n_active: IndexArray
    n_nonzero: IndexArray

    @classmethod
    def from_rows(cls, rows: list[HistoryRow]) -> History:
        """Columns from rows."""
        return cls(*map(np.array, zip(*(vars(row).values() for row in rows), strict=True)))

    def __len__(self) -> int:
        return len(self.iteration)

    def __getitem__(self, index: int) -> HistoryRow:
        return HistoryRow(*(column[index].item() for column in self.as_dict().values()))

    def __repr__(self) -> str:
        last = self[-1]
        return f"History({len(self)} certificates, {last.iteration} iterations, last gap {last.gap:.3g})"

    def as_dict(self) -> dict[str, Any]:
        """Columns by name, ready for a data frame."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True)
class Progress(HistoryRow):
    """State of a solve, which a callback receives after each certificate.

    A callback that returns True stops the solve. Beside the fields of a row of the history, ``alpha_index`` is the
    position on a path (0 for a single solve), and :meth:`coefficients` gives the current ``B`` and intercept on the
    scale of the input. ``seconds`` are those of this solve; on a path they begin anew at each alpha.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    >>> kept = []
    >>> def remember(progress):
    ...     kept.append(progress.coefficients()[0])
    ...     return progress.gap < 1.0
    >>> result = go.solve(data.X, data.Y, lam, solver="apgd", callback=remember)
    >>> result.status, kept[-1].shape
    ('callback', (30, 2))
    """

    alpha_index: int
    _coefficients: Callable[[], tuple[FloatArray, FloatArray]] = field(repr=False)

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Current ``B`` (n_features, n_tasks) and intercept (n_tasks,)."""
        return self._coefficients()


class OnAccess(Generic[Value]):
    """A field of a dataclass that may be given as a function: it is called when the field is read for the first time.

    Whoever solves thousands of problems and reads coefficients only does not pay for the rest. The instance keeps it
    under its own name, as it does a field without this: pickles are the same.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Value:
        if instance is None:
            raise AttributeError  # for dataclass: the field has no default
        value = vars(instance)[self.name]
        if callable(value):
            value = vars(instance)[self.name] = value()
        return cast(Value, value)

    def __set__(self, instance: Any, value: Value | Callable[[], Value]) -> None:
        vars(instance)[self.name] = value


@dataclass(frozen=True, eq=False, repr=False)
class SolveResult:
    """Solution of a problem, with its duality gap and the features that are proved zero.

    Attributes
    ----------
    B : ndarray of shape (n_features, n_tasks)
        Coefficients on the scale of X as it was given.
    intercept : ndarray of shape (n_tasks,)
        Zeros when none was fitted.
    primal, dual, gap : float
        Objective, dual value and duality gap of the full problem: ``primal - minimum <= gap`` is proved.
    theta : handle
        Dual feasible point behind ``dual``, one row per sample of positive weight; not pickled.
    active : ndarray of int
        Rows not proved to be zero; all of them without screening. With Poisson and Cox losses the proof takes two
        passes over the data, which are made when it is read.
    support : ndarray of int
        Rows that are not zero.
    screened_at : ndarray of int of shape (n_features,)
        Index in the history of the certificate that proved the row zero; -1 for rows that are not proved zero. Rows
        that are zero without a proof: -2 where the column varies by no more than rounding and was treated as constant,
        -3 where unpenalized columns explain all of it but rounding.
    clusters : ndarray of int of shape (n_features,)
        Rows of equal norm share a number, from 1 by falling norm; 0 for zero rows. With feature groups it is the number
        of their group: groups of equal norm share one.
    n_iter : int
        Proximal steps taken.
    n_passes : float
        Products with X, in units of one product with all columns.
    status : {"converged", "max_iter", "callback", "stalled", "precision"}
        Why the solve stopped. "precision": rounding errors forbid to prove the tolerance asked for.
    converged : bool
        Whether the gap meets the tolerance.
    seconds : float
        Wall time.
    history : History
        One row per certificate; its ``n_active`` and ``n_nonzero`` count penalized rows only.
    scale : ndarray of shape (n_features,) or None
        What rows of ``B`` are multiplied with to be on the scale that the penalty sees: see :attr:`scaled_B`.
        None where that is the scale of X, and in results that an earlier version has saved.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    >>> result = go.solve(data.X, data.Y, lam)
    >>> result.status, result.B.shape, len(result.support)
    ('converged', (30, 2), 2)
    >>> result.primal - result.dual <= result.gap
    True
    """

    B: FloatArray
    intercept: FloatArray
    primal: float
    dual: float
    gap: float
    n_iter: int
    n_passes: float
    status: str
    seconds: float
    active: OnAccess[IndexArray] = OnAccess()
    screened_at: OnAccess[IndexArray] = OnAccess()
    clusters: OnAccess[IndexArray] = OnAccess()
    history: OnAccess[History] = OnAccess()
    _theta: Callable[[], Handle] | None = None
    scale: FloatArray | None = None

    @property
    def scaled_B(self) -> FloatArray:
        """``B`` on the scale that the penalty sees, on which features of one cluster have equal norms.

        It differs from ``B`` with feature groups and factors of the penalty, and where columns are standardized.
        Columns of groups with ``group_scale="orthonormal"`` are penalized by their combinations: their coefficients
        are per standard deviation.
        """
        return scaled_rows(self.B, self.scale)

    @property
    def converged(self) -> bool:
        """Whether the gap meets the tolerance."""
        return self.status == "converged"

    @property
    def support(self) -> IndexArray:
        """Rows of ``B`` that are not zero."""
        return cast(IndexArray, nonzero_rows(self.B).nonzero()[0])

    @cached_property
    def theta(self) -> Handle:
        """Dual feasible point of the full problem."""
        if self._theta is None:
            raise AttributeError("theta is not stored with a pickled result: it needs the data. Solve again.")
        return self._theta()

    def __getstate__(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in ("active", "screened_at", "clusters", "history")}
        return {name: value for name, value in vars(self).items() if name != "theta"} | made | {"_theta": None}

    def __repr__(self) -> str:
        d, q = self.B.shape
        return (
            f"SolveResult({ending_text(self)}\n"
            f"  objective {self.primal:.10g}, proved within {self.gap:.3g} of the minimum\n"
            f"  {len(self.support)} of {d} rows selected in {self.clusters.max(initial=0)} clusters, {q} tasks; "
            f"{d - len(self.active)} rows proved zero)"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        d, q = self.B.shape
        facts = {
            "objective": f"{self.primal:.10g}, proved within {self.gap:.3g} of the minimum",
            "rows of B": f"{len(self.support)} of {d} selected, {d - len(self.active)} proved zero",
            "clusters": str(self.clusters.max(initial=0)),
            "tasks": str(q),
            "solve": ending_text(self),
        }
        return titled(f"{type(self).__name__}: {self.status}", facts_table(facts))


def scaled_rows(rows: FloatArray, scale: FloatArray | None) -> FloatArray:
    """Rows of coefficients on the scale that the penalty sees."""
    return rows if scale is None else rows * scale[:, None]


def ending_text(result: SolveResult) -> str:
    """Why a solve ended and what it took, in words; a status that needs no others stands for itself."""
    ending = _ENDINGS.get(result.status, result.status)
    steps = f"{result.n_iter} step{'' if result.n_iter == 1 else 's'}"
    return f"{ending} after {steps}, {result.n_passes:.1f} passes, {result.seconds:.3g} s"


def short_of_tolerance(outcomes: Sequence[Any], n_wanted: int, what: str) -> tuple[Any, str]:
    """The first outcome that falls short of the tolerance, or the last one, and how a warning about all begins."""
    statuses = np.array(list(map(attrgetter("status"), outcomes)))
    short = np.flatnonzero((statuses != "converged") & (statuses != "callback"))
    if len(short) == 0:
        return outcomes[-1], ""
    return outcomes[short[0]], f"{len(short)} of {n_wanted} {what} fell short of tol, the first at index {short[0]}. "


def solve_result(
    origin: Problem,
    full: Problem,
    B: FloatArray,
    certificate: Certificate,
    public: Published,
    status: Status,
    n_iter: int,
    n_passes: float,
    seconds: float,
    *,
    screened_at: Callable[[], IndexArray],
    history: Callable[[], History],
) -> SolveResult:
    """What users get of coefficients of the problem ``full``, which stands for the problem as it was given.

    ``screened_at``, for each unit, and ``history`` are made when they are read.
    """
    when_proved = partial(_when_proved, origin, full, screened_at)
    return SolveResult(
        B=public.B,
        intercept=public.intercept,
        primal=certificate.primal + public.excess,
        dual=certificate.dual,
        gap=public.gap(certificate),
        active=lambda: np.flatnonzero(when_proved() < 0),
        screened_at=when_proved,
        clusters=partial(_clusters, full, B, public.B),
        n_iter=n_iter,
        n_passes=n_passes,
        status=status.value,
        seconds=seconds,
        history=history,
        _theta=lambda: origin.design.exported(
            certificate.theta if origin is full else origin.certify(B).theta, origin.samples.n_tasks
        ),
        scale=origin.design.penalty_scale,
    )


def _clusters(full: Problem, B: FloatArray, public: FloatArray) -> IndexArray:
    """Cluster of each feature: that of its unit, 0 for features that are zero as users get them."""
    labels = full.penalty.spread(cluster_labels(full.penalty.norms(B[: full.n_rows])))
    return labels if full.penalty.rows_are_units else np.where(nonzero_rows(public), labels, 0)


def _when_proved(origin: Problem, full: Problem, of_units: Callable[[], IndexArray]) -> IndexArray:
    """``screened_at`` of each row, without what looks proved of rows that are zero for another reason."""
    screened_at = np.array(full.penalty.spread(of_units()))
    basis = origin.unpenalized.basis
    if basis is not None:
        screened_at[basis.columns] = NEVER  # removed because they are unpenalized, not zero
    if origin.samples.hides_variation:  # of which the rows that explain it are not known
        screened_at[:] = NEVER
    if basis is not None:
        screened_at[basis.explained] = AS_EXPLAINED
    screened_at[origin.design.treated_as_constant] = AS_CONSTANT
    return screened_at
