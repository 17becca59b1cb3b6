"""The compiled kernel: finding it, and thin functions over NumPy arrays.

The kernel proposes coefficients; what they are worth is proved elsewhere. Its sources are in ``native/``, its interface
in ``native/groupowl.h``, whose structures and names are repeated here. Where it is missing, refused or switched off by
``GROUPOWL_KERNEL=numpy``, NumPy does the same work, and :func:`kernel_info` says why.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._typing import FloatArray, IndexArray

IntArray: TypeAlias = npt.NDArray[np.intc]

#: What ended a solve, by its number in ``native/groupowl.h``.
STATUSES = ("converged", "max_steps", "gave_up", "interrupted", "no_room", "not_run")
NO_ROOM = STATUSES.index("no_room")
#: Bytes of the two largest arrays of a solve, columns and Gram matrix of a working set, at most.
_MOST_BYTES = 2**28
#: A thread keeps its workspace for the next solve if no more than this of it was touched.
_KEPT_BYTES = 2**26

_FOLDER = Path(__file__).parent
_SOURCES = _FOLDER.parents[1] / "native"
_DENSE_F64, _DENSE_F32, _CSC_F64, _CSC_F32, _GRAM = range(5)


class _Blas(Structure):
    _fields_ = [(name, c_void_p) for name in ("dgemm", "dgemv", "dsyrk", "dpotrf", "dpotrs")]


class _Data(Structure):
    _fields_ = [
        ("n", c_int), ("d", c_int), ("q", c_int), ("kind", c_int), ("by_rows", c_int), ("stride", c_ssize_t),
        ("X", c_void_p), ("start", c_void_p), ("index", c_void_p), ("wide", c_int), ("mean", c_void_p),
        ("scale", c_void_p), ("Y", c_void_p), ("weight", c_void_p), ("y_square", c_double), ("intercept", c_int),
        ("n_units", c_int), ("unit_start", c_void_p), ("loss", c_void_p),
    ]  # fmt: skip


class _Task(Structure):
    _fields_ = [
        ("n_lam", c_int), ("lam", c_void_p), ("alpha", c_void_p), ("goal", c_void_p), ("max_steps", c_int),
        ("capacity", c_int), ("gram_capacity", c_int), ("interrupted", c_void_p), ("n_init", c_int),
        ("init_row", c_void_p), ("init_B", c_void_p), ("init_intercept", c_void_p), ("room", c_int),
        ("first", c_void_p), ("row", c_void_p), ("B", c_void_p), ("intercept", c_void_p), ("gap", c_void_p),
        ("passes", c_void_p), ("steps", c_void_p), ("status", c_void_p), ("peak", c_void_p),
    ]  # fmt: skip


_CERTIFICATE_NUMBERS = (
    "loss", "primal", "dual", "gap", "rounding", "gauge", "scale", "product", "square", "norm", "reach",
)  # fmt: skip


class _Certificate(Structure):
    _fields_ = [
        ("lam", c_void_p), ("norms", c_void_p), ("rounding_norms", c_void_p), ("y_norm", c_double), ("n_rows", c_int),
        ("row", c_void_p), ("B", c_void_p), ("theta", c_void_p), ("products", c_void_p), ("correlations", c_void_p),
        ("excess", c_void_p), *((name, c_double) for name in _CERTIFICATE_NUMBERS),
    ]  # fmt: skip


_Interrupted = ctypes.CFUNCTYPE(c_int)


# Finding it -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelInfo:
    """Which kernel runs.

    Attributes
    ----------
    name : "compiled" or "numpy"
    compiler : str
        The compiler and its version, "" without a compiled kernel.
    reason : str
        Why the compiled kernel is not used, "" if it is.
    path : str
        The library, "" if there is none.

    Examples
    --------
    >>> import groupowl as go
    >>> bool(go.kernel_info().reason) == (go.kernel_info().name == "numpy")
    True
    """

    name: str
    compiler: str = ""
    reason: str = ""
    path: str = ""

    def __str__(self) -> str:
        return f"compiled kernel ({self.compiler})" if self.name == "compiled" else f"NumPy kernel: {self.reason}"


def source_stamp(folder: Path) -> str:
    """Hash of the kernel's sources: a library that was compiled from others is refused."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def kernel_info() -> KernelInfo:
    """Which kernel runs, with the reason where it is not the compiled one.

    Examples
    --------
    >>> import groupowl as go
    >>> go.kernel_info().name in ("compiled", "numpy")
    True
    """
    return _found()[0]


def is_available() -> bool:
    """Whether the compiled kernel can be used."""
    return _found()[1] is not None


@cache
def _found() -> tuple[KernelInfo, Any]:
    """What is known about the kernel, and the library or None."""
    if os.environ.get("GROUPOWL_KERNEL", "").lower() == "numpy":
        return KernelInfo("numpy", reason="GROUPOWL_KERNEL=numpy switches the compiled kernel off"), None
    paths = sorted(_FOLDER.glob("_kernel.native.*"))
    if "GROUPOWL_KERNEL_LIBRARY" in os.environ:  # another build of it: with sanitizers, for tests
        paths = [Path(os.environ["GROUPOWL_KERNEL_LIBRARY"])]
    if not paths:
        reason = "the package was installed without a C compiler; install one and reinstall groupowl"
        return KernelInfo("numpy", reason=reason), None
    path = str(paths[0])
    try:
        library = _opened(path)
    except (OSError, AttributeError, ImportError) as error:
        return KernelInfo("numpy", reason=f"the library cannot be loaded: {error}", path=path), None
    compiler, stamp = library.go_compiler().decode(), library.go_stamp().decode()
    if _SOURCES.is_dir() and stamp != source_stamp(_SOURCES):
        reason = "the library was compiled from other sources than those in native/; run make to compile it again"
        return KernelInfo("numpy", compiler, reason, path), None
    return KernelInfo("compiled", compiler, path=path), library


def _opened(path: str) -> Any:
    """The library with its functions declared, and SciPy's BLAS as a structure that it takes."""
    from scipy.linalg import cython_blas, cython_lapack

    library: Any = ctypes.CDLL(path)
    library.go_stamp.restype = library.go_compiler.restype = c_char_p
    library.go_loss_squared.restype = library.go_loss_multinomial.restype = c_void_p
    library.go_workspace.restype = c_size_t
    library.go_workspace.argtypes = [POINTER(_Data), POINTER(_Task)]
    library.go_solve.restype = c_ssize_t
    library.go_solve.argtypes = [POINTER(_Data), POINTER(_Task), POINTER(_Blas), c_void_p, c_size_t]
    library.go_unit_norms.restype = None
    library.go_unit_norms.argtypes = [c_int, c_void_p, c_int, c_void_p, c_void_p]
    library.go_owl_value.restype = library.go_owl_gauge.restype = library.go_owl_prox.restype = c_double
    library.go_owl_value.argtypes = library.go_owl_gauge.argtypes = [c_int, c_void_p, c_void_p, c_void_p]
    library.go_owl_prox.argtypes = [c_int, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p, c_void_p]
    library.go_kkt_units.argtypes = [c_int, c_void_p, c_void_p, c_void_p, c_void_p]
    library.go_certificate_workspace.restype = c_size_t
    library.go_certificate_workspace.argtypes = [POINTER(_Data)]
    library.go_certify.restype = None
    library.go_certify.argtypes = [POINTER(_Data), POINTER(_Certificate), POINTER(_Blas), c_void_p]
    library.go_column_sums.argtypes = [POINTER(_Data), c_void_p, c_void_p]
    library.blas = _Blas(
        *(_pointer(cython_blas, name) for name in ("dgemm", "dgemv", "dsyrk")),
        *(_pointer(cython_lapack, name) for name in ("dpotrf", "dpotrs")),
    )
    library.losses = {"squared": library.go_loss_squared(), "multinomial": library.go_loss_multinomial()}
    return library


def _pointer(module: Any, name: str) -> int:
    """Address of a function in one of SciPy's capsules."""
    capsule = module.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


def _library() -> Any:
    info, library = _found()
    if library is None:
        raise RuntimeError(f"There is no compiled kernel: {info.reason}.")
    return library


# The norm ----------------------------------------------------------------------------------------------------


def _address(array: Any) -> Any:
    return None if array is None else array.ctypes.data


def _own_address(array: Any) -> int:
    """The same for an array that was made here, in a third of the time."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def _float(values: Any) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


def unit_norms(B: FloatArray, starts: IndexArray | None = None) -> FloatArray:
    """Norm of each row of ``B``, or of each unit, whose first rows (and the end) are given."""
    B = _float(B)
    starts = None if starts is None else np.ascontiguousarray(starts, dtype=np.intc)
    norms = np.empty(len(B) if starts is None else len(starts) - 1)
    _library().go_unit_norms(len(norms), _address(starts), B.shape[1], _address(B), _address(norms))
    return norms


def owl_value(norms: FloatArray, lam: FloatArray) -> float:
    """Twin of :func:`groupowl.norm.kernels.owl_value`."""
    norms, lam, work = _float(norms), _float(lam), np.empty(2 * len(norms), dtype=np.intc)
    return float(_library().go_owl_value(len(norms), _address(norms), _address(lam), _address(work)))


def owl_gauge(norms: FloatArray, lam: FloatArray) -> float:
    """Twin of :func:`groupowl.norm.kernels.owl_gauge`."""
    norms, lam, work = _float(norms), _float(lam), np.empty(2 * len(norms), dtype=np.intc)
    return float(_library().go_owl_gauge(len(norms), _address(norms), _address(lam), _address(work)))


def prox_and_value(norms: FloatArray, lam: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Twin of :func:`groupowl.norm.kernels.prox_and_value`."""
    norms, lam, n = _float(norms), _float(lam), len(norms)
    order, work = np.arange(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    shrunk, blocks = np.empty(n), np.empty(n)
    arrays = (_address(order), _address(work), _address(blocks), _address(shrunk))
    value = _library().go_owl_prox(n, _address(norms), _address(lam), step, *arrays)
    return shrunk, float(value)


def kkt_rows(values: FloatArray, lam: FloatArray) -> IndexArray:
    """Twin of :func:`groupowl.norm.kernels.kkt_rows`."""
    values, lam, n = _float(values), _float(lam), len(values)
    units, work = np.empty(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    count = _library().go_kkt_units(n, _address(values), _address(lam), _address(units), _address(work))
    return np.sort(units[:count]).astype(np.intp)


def column_sums(X: FloatArray, sample_weight: FloatArray | None = None) -> tuple[FloatArray, FloatArray, bool]:
    """Weighted sums of the columns of dense ``X`` and of their squares in one pass, and whether all are finite."""
    data, X = _Data(), np.asarray(X)
    kept = _set_dense(data, X)
    weight = None if sample_weight is None else _float(sample_weight)
    data.weight = _address(weight)
    sums, squares = np.empty(X.shape[1]), np.empty(X.shape[1])
    finite = _library().go_column_sums(data, _address(sums), _address(squares))
    del kept
    return sums, squares, bool(finite)


# Solves ------------------------------------------------------------------------------------------------------


def _set_dense(data: _Data, X: Any) -> Any:
    """Describe dense X; what must be kept alive. Only arrays without contiguous lines are copied."""
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    size = X.itemsize
    if X.strides[1] != size and X.strides[0] != size:
        X = np.ascontiguousarray(X)
    by_rows = X.strides[1] == size and (X.strides[0] != size or X.shape[0] == 1 or X.shape[1] == 1)
    stride = (X.strides[0] if by_rows else X.strides[1]) // size
    data.n, data.d = X.shape
    data.kind = _DENSE_F64 if size == 8 else _DENSE_F32
    data.by_rows, data.stride = by_rows, max(stride, X.shape[1] if by_rows else X.shape[0], 1)
    data.X = _address(X)
    return X


def _csc(X: Any) -> Any:
    """Sparse columns of double or single precision; a copy only where X is something else."""
    return X.tocsc() if X.dtype in (np.float64, np.float32) else X.tocsc().astype(np.float64)


class KernelData:
    """Data of a problem as the kernel takes them, made once for many solves.

    Parameters
    ----------
    X : ndarray of float64 or float32, or CSC matrix, of shape (n, d)
        Not copied.
    Y : ndarray of shape (n, q)
    loss : str or int
        "squared", "multinomial", or the address of a ``go_loss``.
    mean, scale : ndarray of shape (d,), default=None
        Column j of the problem is ``(x_j - mean_j) / scale_j``.
    sample_weight : ndarray of shape (n,), default=None
        Positive.
    fit_intercept : bool, default=False
        Columns must be centered by their weighted means then.
    unit_starts : ndarray of int of shape (n_units + 1,), default=None
        First row of each unit of the penalty, and the end; by default every row is a unit.
    """

    def __init__(
        self,
        X: Any,
        Y: FloatArray,
        loss: Any = "squared",
        *,
        mean: FloatArray | None = None,
        scale: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
        fit_intercept: bool = False,
        unit_starts: IndexArray | None = None,
    ) -> None:
        data = self.struct = _Data()
        if sp.issparse(X):
            X = _csc(X)
            data.n, data.d = X.shape
            data.kind = _CSC_F64 if X.dtype == np.float64 else _CSC_F32
            data.wide = X.indptr.dtype == np.int64
            data.X, data.start, data.index = _address(X.data), _address(X.indptr), _address(X.indices)
        else:
            X = _set_dense(data, X)
        self._finish(Y, loss, unit_starts)
        data.intercept = fit_intercept
        self.keep = [X, self.Y]
        for name, values in (("mean", mean), ("scale", scale), ("weight", sample_weight)):
            if values is not None:
                values = _float(values)
                self.keep.append(values)
                setattr(data, name, _address(values))

    @classmethod
    def of_statistics(
        cls, gram: FloatArray, products: FloatArray, y_square: float, *, unit_starts: IndexArray | None = None
    ) -> KernelData:
        """Squared loss by ``X^T W X``, ``X^T W Y`` and ``||Y||^2``, everything centered and scaled already."""
        self = object.__new__(cls)
        data = self.struct = _Data()
        gram = _float(gram)
        data.n = data.d = data.stride = len(gram)
        data.kind, data.X, data.y_square = _GRAM, _address(gram), y_square
        self._finish(products, "squared", unit_starts)
        self.keep = [gram, self.Y]
        return self

    def _finish(self, Y: FloatArray, loss: Any, unit_starts: IndexArray | None) -> None:
        """Targets, loss and units."""
        data = self.struct
        self.Y = _float(Y)
        data.q, data.Y = self.Y.shape[1], _address(self.Y)
        data.loss = _library().losses[loss] if isinstance(loss, str) else loss
        data.n_units = data.d
        if unit_starts is not None:
            self.unit_starts = np.ascontiguousarray(unit_starts, dtype=np.intc)
            data.n_units, data.unit_start = len(self.unit_starts) - 1, _address(self.unit_starts)


@dataclass(frozen=True, eq=False)
class Proposals:
    """What the kernel proposes for each weight vector: estimates, nothing is proved.

    Coefficients are those of the columns of the problem, ``(x_j - mean_j) / scale_j``, and so are the intercepts; with
    squared loss these are the means of the targets.
    """

    first: IntArray  # rows of solve k are first[k] to first[k + 1] - 1
    row: IntArray
    values: FloatArray  # (rows, q)
    intercept: FloatArray  # (n_lam, q)
    gap: FloatArray
    passes: FloatArray
    steps: IntArray
    status: IntArray  # numbers of STATUSES
    n_rows: int
    n_run: int  # solves that were run

    def support(self, k: int) -> IntArray:
        """Non-zero rows of solve ``k``."""
        return self.row[self.first[k] : self.first[k + 1]]

    def B(self, k: int) -> FloatArray:
        """Coefficients of solve ``k``."""
        B = np.zeros((self.n_rows, self.values.shape[1]))
        B[self.support(k)] = self.values[self.first[k] : self.first[k + 1]]
        return B

    def stack(self) -> FloatArray:
        """Coefficients of all solves that were run, of shape (n_rows, n_run, q)."""
        B = np.zeros((self.n_rows, self.n_run, self.values.shape[1]))
        solves = np.repeat(np.arange(self.n_run), np.diff(self.first[: self.n_run + 1]))
        B[self.row, solves] = self.values
        return B


class _Buffer:
    """Memory for the kernel."""

    def __init__(self, size: int) -> None:
        self.array = np.empty(size, dtype=np.uint8)
        self.address, self.size = _own_address(self.array) if size else 0, size


class _Memory(threading.local):
    """The workspace of this thread between solves; a solve within the callback of another one finds none."""

    def __init__(self) -> None:
        self.nothing = _Buffer(0)
        self.kept = [self.nothing]

    def __enter__(self) -> _Buffer:
        buffer = self.kept[-1]
        self.kept.append(self.nothing)
        return buffer

    def __exit__(self, *_: object) -> None:
        self.kept.pop()

    def keep(self, buffer: _Buffer | None) -> None:
        """Keep a buffer for the next solve of this depth, or none."""
        self.kept[-2] = buffer or self.nothing


_memory = _Memory()


def solve(
    data: KernelData,
    lam: FloatArray,
    goal: Any,
    *,
    alphas: FloatArray | None = None,
    max_steps: int = 10_000,
    capacity: int | None = None,
    B_init: FloatArray | None = None,
    intercept_init: FloatArray | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Proposals:
    """Propose coefficients for one weight vector or for several that follow each other.

    Parameters
    ----------
    data : KernelData
    lam : ndarray of shape (n_units,) or (n_lam, n_units)
        Non-increasing weights, one row per solve.
    goal : float or ndarray of shape (n_lam,)
        Gap to reach, by the kernel's own estimate.
    alphas : ndarray of shape (n_lam,), default=None
        Factors of one ``lam`` for several solves.
    max_steps : int
        Most steps of each solve.
    capacity : int, default=None
        Most rows of a working set; a solve that needs more ends with the status "no_room". By default all rows, or as
        many as some memory takes.
    B_init : ndarray of shape (d, q), default=None
        Start of the first solve.
    intercept_init : ndarray of shape (q,), default=None
        Its intercept.
    interrupted : callable, default=None
        Asked every 50 ms at most; returning True stops. What it raises is raised here.
    """
    library, struct = _library(), data.struct
    d, q = struct.d, struct.q
    lam = _float(lam)
    alphas = None if alphas is None else _float(alphas)
    n_lam = len(alphas) if alphas is not None else 1 if lam.ndim == 1 else len(lam)
    capacity = int(min(d if capacity is None else capacity, d, max(_MOST_BYTES // (8 * max(struct.n, 1)), 1)))
    gram_capacity = min(capacity, int((_MOST_BYTES / 8) ** 0.5))
    if struct.kind != _GRAM:
        gram_capacity = min(gram_capacity, 4 * struct.n)
    room = min(n_lam * capacity, 2**31 - 1)
    # Two arrays for all results, and their addresses taken once: with small problems that is what takes time.
    floats = np.empty(n_lam * (q + 3) + room * q)
    integers = np.empty(3 * n_lam + 2 + room, dtype=np.intc)
    floats[:n_lam] = goal
    at, at_integers = _own_address(floats), _own_address(integers)
    task = _Task(
        n_lam=n_lam, lam=_address(lam), alpha=_address(alphas), goal=at, max_steps=max_steps,
        capacity=capacity, gram_capacity=gram_capacity, room=room,
        gap=at + 8 * n_lam, passes=at + 16 * n_lam, intercept=at + 24 * n_lam, B=at + 8 * n_lam * (q + 3),
        steps=at_integers, status=at_integers + 4 * n_lam, first=at_integers + 8 * n_lam,
        peak=at_integers + 4 * (3 * n_lam + 1), row=at_integers + 4 * (3 * n_lam + 2),
    )  # fmt: skip
    if B_init is not None:
        init_row = np.flatnonzero(B_init.any(axis=1)).astype(np.intc)
        init_B = _float(B_init[init_row])
        task.n_init, task.init_row, task.init_B = len(init_row), _address(init_row), _address(init_B)
    if intercept_init is not None:
        intercept_init = _float(intercept_init)
        task.init_intercept = _address(intercept_init)
    raised: list[BaseException] = []
    if interrupted is not None:
        ask = _Interrupted(_guarded(interrupted, raised))
        task.interrupted = ctypes.cast(ask, c_void_p)
    with _memory as memory:
        n_run = library.go_solve(struct, task, library.blas, memory.address, memory.size)
        if n_run < 0:  # it needs so many bytes
            memory = _Buffer(-n_run)
            n_run = library.go_solve(struct, task, library.blas, memory.address, memory.size)
        peak = int(integers[3 * n_lam + 1])
        _memory.keep(memory if 8 * peak * (struct.n + 2 * peak) <= _KEPT_BYTES else None)
    if raised:
        raise raised[0]
    first = integers[2 * n_lam : 3 * n_lam + 1]
    used = int(first[n_run]) if n_run else 0
    return Proposals(
        first=first,
        row=integers[3 * n_lam + 2 : 3 * n_lam + 2 + used],
        values=floats[n_lam * (q + 3) : n_lam * (q + 3) + used * q].reshape(used, q),
        intercept=floats[3 * n_lam : n_lam * (q + 3)].reshape(n_lam, q),
        gap=floats[n_lam : 2 * n_lam],
        passes=floats[2 * n_lam : 3 * n_lam],
        steps=integers[:n_lam],
        status=integers[n_lam : 2 * n_lam],
        n_rows=d,
        n_run=n_run,
    )


def _guarded(function: Callable[[], bool], raised: list[BaseException]) -> Callable[[], int]:
    """The function for C: an exception stops the solve and is kept."""

    def ask() -> int:
        try:
            return int(bool(function()))
        except BaseException as error:  # KeyboardInterrupt above all: it must not get lost in C
            raised.append(error)
            return 1

    return ask


# Certificates --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers:
    """What certificates of squared loss are made of; ``theta`` and what belongs to it is not scaled yet."""

    theta: FloatArray  # (n, q)
    products: FloatArray  # (d, q): X^T theta
    correlations: FloatArray  # (n_units,): their norms
    loss: float
    primal: float
    dual: float
    gap: float
    rounding: float
    gauge: float
    scale: float  # scale * theta is feasible
    product: float  # <theta, Y>
    square: float  # sum of theta^2 / w
    norm: float
    reach: float


@dataclass(frozen=True, eq=False)
class PathNumbers:
    """The same for all solves of a path, without what is in sample space; one entry per solve."""

    correlations: FloatArray  # (n_run, n_units)
    loss: FloatArray
    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    rounding: FloatArray
    gauge: FloatArray
    scale: FloatArray
    product: FloatArray
    square: FloatArray
    norm: FloatArray
    reach: FloatArray


class Certifier:
    """Twin of :meth:`groupowl.problem.Problem.certify` for squared loss, from coefficients alone.

    Parameters
    ----------
    data : KernelData
        With targets that are centered where there is an intercept.
    norms, rounding_norms : ndarray of shape (d,)
        Those of the problem.
    y_norm : float
        The norm of its samples.
    """

    def __init__(self, data: KernelData, norms: FloatArray, rounding_norms: FloatArray, y_norm: float) -> None:
        self.data, self.library = data, _library()
        self.norms, self.rounding_norms, self.y_norm = _float(norms), _float(rounding_norms), y_norm
        self.memory_size = self.library.go_certificate_workspace(data.struct)
        n, d, q, units = data.struct.n, data.struct.d, data.struct.q, data.struct.n_units
        self.ends = n * q, (n + d) * q, (n + d) * q + units  # of theta, products and correlations in one array

    def certify(self, lam: FloatArray, B: FloatArray) -> Numbers:
        """Certificate of coefficients of shape (d, q) at these weights."""
        row = np.flatnonzero(B.any(axis=1)).astype(np.intc)
        lam, values, struct = _float(lam), _float(B[row]), self.data.struct
        c, floats = self._new()
        c.lam, c.n_rows, c.row, c.B = _address(lam), len(row), _address(row), _address(values)
        memory = np.empty(self.memory_size, dtype=np.uint8)
        self.library.go_certify(struct, c, self.library.blas, _own_address(memory))
        theta_end, products_end, end = self.ends
        theta = floats[:theta_end].reshape(struct.n, struct.q)
        products = floats[theta_end:products_end].reshape(struct.d, struct.q)
        numbers = (getattr(c, name) for name in _CERTIFICATE_NUMBERS)
        return Numbers(theta, products, floats[products_end:end], *numbers)

    def certify_path(self, weights: FloatArray, alphas: FloatArray, proposal: Proposals) -> PathNumbers:
        """Certificates of all solves of a path that were run, each at its alpha times the weights."""
        n_run, struct, library = proposal.n_run, self.data.struct, self.library
        lams = np.multiply.outer(_float(alphas)[:n_run], _float(weights))
        correlations, numbers = np.empty(lams.shape), np.empty((len(_CERTIFICATE_NUMBERS), n_run))
        c, floats = self._new()
        found = np.frombuffer(c, dtype=np.float64, count=len(numbers), offset=_Certificate.loss.offset)
        memory = np.empty(self.memory_size, dtype=np.uint8)
        at_lam, at_row, at_B = _own_address(lams), _address(proposal.row), _address(proposal.values)
        at_correlations, at_memory, units = _own_address(correlations), _own_address(memory), struct.n_units
        first = proposal.first.tolist()
        for k in range(n_run):
            c.lam, c.correlations = at_lam + 8 * k * units, at_correlations + 8 * k * units
            c.n_rows, c.row, c.B = first[k + 1] - first[k], at_row + 4 * first[k], at_B + 8 * struct.q * first[k]
            library.go_certify(struct, c, library.blas, at_memory)
            numbers[:, k] = found
        del floats
        return PathNumbers(correlations, *numbers)

    def _new(self) -> tuple[Any, FloatArray]:
        """A certificate with the data that all share, and the array of its results."""
        floats, ends = np.empty(self.ends[-1] + self.data.struct.d), self.ends
        at = _own_address(floats)
        c = _Certificate(
            norms=_address(self.norms), rounding_norms=_address(self.rounding_norms), y_norm=self.y_norm,
            theta=at, products=at + 8 * ends[0], correlations=at + 8 * ends[1], excess=at + 8 * ends[2],
        )  # fmt: skip
        return c, floats
