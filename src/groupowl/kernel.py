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
from collections.abc import Callable, Iterator
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._typing import FloatArray, IndexArray

IntArray: TypeAlias = npt.NDArray[np.intc]

#: What ended a solve, by its number in ``native/groupowl.h``.
STATUSES = ("converged", "max_steps", "gave_up", "interrupted", "no_room", "not_run")
CONVERGED, NO_ROOM = map(STATUSES.index, ("converged", "no_room"))
#: Bytes of the two largest arrays of a solve, columns and Gram matrix of a working set, at most.
_MOST_BYTES = 2**28
#: Samples up to which sums of the compiled certificate lose no more digits than it allows for; NumPy adds up in pieces.
MOST_CERTIFIED_SAMPLES = 4096
#: A thread keeps its workspace for the next solve if no more than this of it was touched.
_KEPT_BYTES = 2**26
# Rows of the working set of a whole fit, or as many as there are samples.
_FEW_ROWS = 200
_PROVED = 0

_FOLDER = Path(__file__).parent
_SOURCES = _FOLDER.parents[1] / "native"
_DENSE_F64, _DENSE_F32, _CSC_F64, _CSC_F32, _GRAM = range(5)


_TABLE = ("squared", "logistic", "poisson", "multinomial")
_ROUTINES = ("dgemm", "dgemv", "dsyrk", "dpotrf", "dpotrs", "dsyev")


class _Blas(Structure):
    _fields_ = [(name, c_void_p) for name in _ROUTINES]


class _Data(Structure):
    _fields_ = [
        ("n", c_int), ("d", c_int), ("q", c_int), ("kind", c_int), ("by_rows", c_int), ("stride", c_ssize_t),
        ("X", c_void_p), ("start", c_void_p), ("index", c_void_p), ("wide", c_int), ("mean", c_void_p),
        ("scale", c_void_p), ("Y", c_void_p), ("weight", c_void_p), ("y_square", c_double), ("intercept", c_int),
        ("n_units", c_int), ("unit_start", c_void_p), ("loss", c_void_p),
    ]  # fmt: skip


class _Task(Structure):
    _fields_ = [
        ("n_lam", c_int), ("lam", c_void_p), ("alpha", c_void_p), ("goal", c_void_p),
        ("least_loss", c_double), ("max_steps", c_int), ("capacity", c_int), ("gram_capacity", c_int),
        ("interrupted", c_void_p), ("n_init", c_int),
        ("init_row", c_void_p), ("init_B", c_void_p), ("init_intercept", c_void_p), ("init_C", c_void_p),
        ("unchecked", c_int), ("room", c_int),
        ("first", c_void_p), ("row", c_void_p), ("B", c_void_p), ("intercept", c_void_p), ("gap", c_void_p),
        ("passes", c_void_p), ("steps", c_void_p), ("status", c_void_p), ("peak", c_void_p),
    ]  # fmt: skip


#: Numbers of a certificate, in the order of ``native/groupowl.h``; those of theta before it is scaled.
CERTIFICATE_NUMBERS = (
    "loss", "primal", "dual", "gap", "rounding", "gauge", "scale", "product", "square", "norm", "reach", "dual_error",
    "cancelling", "imbalance", "balancing",
)  # fmt: skip


class _Certificate(Structure):
    _fields_ = [
        ("lam", c_void_p), ("norms", c_void_p), ("rounding_norms", c_void_p), ("y_norm", c_double),
        ("product_error", c_double), ("scale_error", c_double), ("n_rows", c_int), ("row", c_void_p), ("B", c_void_p),
        ("constant", c_void_p), ("theta", c_void_p), ("raw", c_void_p), ("products", c_void_p),
        ("correlations", c_void_p), ("excess", c_void_p),
        *((name, c_double) for name in CERTIFICATE_NUMBERS),
    ]  # fmt: skip


class _Fit(Structure):
    _fields_ = [
        ("data", _Data), ("certificate", _Certificate), ("tol", c_double), ("part", c_double), ("max_steps", c_int),
        ("capacity", c_int), ("interrupted", c_void_p), ("mean", c_void_p), ("center", c_void_p),
        ("targets", c_void_p), ("norms", c_void_p), ("rounding_norms", c_void_p), ("row", c_void_p), ("B", c_void_p),
        ("intercept", c_void_p), ("n_rows", c_int), ("steps", c_int), ("passes", c_double), ("goal", c_double),
        ("rounding", c_double), ("spread", c_void_p), ("squares", c_void_p), ("largest", c_void_p),
        ("distance", c_double),
    ]  # fmt: skip


_Interrupted = ctypes.CFUNCTYPE(c_int)


# Finding it -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelInfo:
    """Which kernel solves, compiled or NumPy, for which losses, and why.

    Attributes
    ----------
    name : "compiled" or "numpy"
    compiler : str
        The compiler and its version, "" without a compiled kernel.
    reason : str
        Why the compiled kernel is not used, "" if it is.
    path : str
        The library, "" if there is none.
    losses : tuple of str
        Losses that a compiled kernel solves; all others are solved in NumPy.
    left_to_numpy : tuple of str
        What models may have that no compiled kernel knows: they are solved in NumPy, with the same certificates.

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
    losses: tuple[str, ...] = _TABLE
    left_to_numpy: tuple[str, ...] = (
        "single fits of multinomial loss (its paths are compiled)",
        "missing targets",
        "weights per target",
        "offsets (but of squared loss)",
        "ridge",
        "signs",
        "unpenalized features (but on sufficient statistics)",
        "feature groups that are orthonormal or whose columns are apart",
    )

    def __str__(self) -> str:
        if self.name != "compiled":
            return f"NumPy kernel: {self.reason}"
        models = f"{', '.join(self.losses)} loss without {', '.join(self.left_to_numpy)}"
        return f"compiled kernel ({self.compiler}) for {models}; NumPy for all else"


def source_stamp(folder: Path) -> str:
    """Hash of the kernel's sources: a library that was compiled from others is refused."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def kernel_info() -> KernelInfo:
    """Say which kernel solves, and the reason if it is not the compiled one.

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
        reason = "the package was installed without a C compiler; install one and reinstall with --no-binary groupowl"
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
    for loss in _TABLE:
        getattr(library, f"go_loss_{loss}").restype = c_void_p
    library.go_workspace.restype = c_size_t
    library.go_workspace.argtypes = [POINTER(_Data), POINTER(_Task)]
    library.go_solve.restype = c_ssize_t
    library.go_solve.argtypes = [POINTER(_Data), POINTER(_Task), POINTER(_Blas), c_void_p, c_size_t]
    library.go_certificate_workspace.restype = c_size_t
    library.go_certificate_workspace.argtypes = [POINTER(_Data)]
    library.go_certify.restype = None
    library.go_certify.argtypes = [POINTER(_Data), POINTER(_Certificate), POINTER(_Blas), c_void_p]
    library.go_fit_whole.restype = c_ssize_t
    library.go_fit_whole.argtypes = [POINTER(_Fit), POINTER(_Blas), c_void_p, c_size_t]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    capsules: Any = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}  # each has the address of a function
    library.blas = _Blas()
    for name in _ROUTINES:
        setattr(library.blas, name, get_pointer(capsules[name], get_name(capsules[name])))
    library.losses = {loss: getattr(library, f"go_loss_{loss}")() for loss in _TABLE}
    return library


def _library() -> Any:
    info, library = _found()
    if library is None:
        raise RuntimeError(f"There is no compiled kernel: {info.reason}.")
    return library


def _address(array: Any) -> Any:
    """Where the entries of an array begin; None for None."""
    if array is None:
        return None
    try:
        return ctypes.addressof(c_char.from_buffer(array))  # in a quarter of the time of what serves all arrays
    except (TypeError, ValueError):  # read-only, empty, or not in C order
        return array.ctypes.data


_float = partial(np.ascontiguousarray, dtype=np.float64)


# Solves ------------------------------------------------------------------------------------------------------


def _set_dense(data: _Data, X: Any) -> Any:
    """Describe dense X; what must be kept alive. Only arrays without contiguous lines are copied."""
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    (n, d), size = X.shape, X.itemsize
    by_rows = _has_lines(X.strides[1], X.strides[0], n, d, size)
    if not X.flags.aligned or not (by_rows or _has_lines(X.strides[0], X.strides[1], d, n, size)):
        X, by_rows = X.copy(order="C"), True
    stride = (X.strides[0] if by_rows else X.strides[1]) // size
    data.n, data.d = X.shape
    data.kind = _DENSE_F64 if size == 8 else _DENSE_F32
    data.by_rows, data.stride = by_rows, max(stride, d if by_rows else n, 1)
    data.X = _address(X)
    return X


def _has_lines(within: int, between: int, count: int, length: int, size: int) -> bool:
    """Whether an array has so many contiguous lines of this length that follow each other without overlapping.

    Arrays that are reversed, or repeat their lines, do not: C would read memory that is not theirs.
    """
    return (within == size or length <= 1) and (between >= size * length or count <= 1)


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
        Of the table of losses in ``native/losses.c``, or the address of a ``go_loss``.
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
        Y = _float(Y)
        data.q, data.Y, data.intercept = Y.shape[1], _address(Y), fit_intercept
        data.loss = _library().losses[loss] if isinstance(loss, str) else loss
        self.keep = [X, Y]
        for name, values in (("mean", mean), ("scale", scale), ("weight", sample_weight)):
            if values is not None:
                values = _float(values)
                self.keep.append(values)
                setattr(data, name, _address(values))
        self.is_dense = data.kind == _DENSE_F64
        data.n_units = data.d
        if unit_starts is not None:
            starts = np.ascontiguousarray(unit_starts, dtype=np.intc)
            self.keep.append(starts)
            data.n_units, data.unit_start = len(starts) - 1, _address(starts)


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

    def stack(self) -> FloatArray:
        """Coefficients of all solves that were run, of shape (n_run, n_rows, q)."""
        B = np.zeros((self.n_run, self.n_rows, self.values.shape[1]))
        B[np.repeat(np.arange(self.n_run), np.diff(self.first[: self.n_run + 1])), self.row] = self.values
        return B


_memory = threading.local()  # the workspace of this thread between solves; one that is in use is not there


def solve(
    data: KernelData,
    lam: FloatArray,
    goal: Any,
    *,
    alphas: FloatArray | None = None,
    least_loss: float = -np.inf,
    max_steps: int = 10_000,
    capacity: int | None = None,
    B_init: FloatArray | None = None,
    intercept_init: FloatArray | None = None,
    products_init: FloatArray | None = None,
    unchecked: bool = False,
    interrupted: Callable[[], bool] | None = None,
    rescue: Callable[[Proposals], None] | None = None,
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
    least_loss : float
        The first solve whose loss is not above it is the last.
    max_steps : int
        Most steps of each solve.
    capacity : int, default=None
        Most rows of a working set; a solve that needs more ends with the status "no_room". By default all rows, or as
        many as some memory takes.
    B_init : ndarray of shape (d, q), default=None
        Start of the first solve.
    intercept_init : ndarray of shape (q,), default=None
        Its intercept.
    products_init : ndarray of shape (d, q), default=None
        ``X^T theta`` at the start, which saves a product with X; for squared loss.
    unchecked : bool, default=False
        End without a look at the whole problem once the working set seems to be solved: for who looks at it anyway. Of
        several solves, each but the first begins with that look.
    interrupted : callable, default=None
        Asked every 50 ms at most; returning True stops. What it raises is raised here, and so is what a signal raises.
    rescue : callable, default=None
        Gets what there is when something is raised.
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
    at, at_integers = _address(floats), _address(integers)
    task = _Task(
        n_lam=n_lam, lam=_address(lam), alpha=_address(alphas), goal=at, least_loss=least_loss,
        max_steps=max_steps, capacity=capacity, gram_capacity=gram_capacity, room=room,
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
    if products_init is not None:
        products_init = _float(products_init)
        task.init_C = _address(products_init)
    task.unchecked = unchecked
    raised: list[BaseException] = []
    n_run, memory = _called(library.go_solve, task, interrupted, raised, struct, task, library.blas)
    peak = int(integers[3 * n_lam + 1])
    if 8 * peak * (struct.n + 2 * peak) <= _KEPT_BYTES:
        _memory.kept = memory
    first = integers[2 * n_lam : 3 * n_lam + 1]
    used = int(first[n_run]) if n_run else 0
    found = Proposals(
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
    if raised:
        if rescue is not None:
            rescue(found)
        raise raised[0]
    return found


def _called(
    function: Any, task: Any, interrupted: Callable[[], bool] | None, raised: list[BaseException], *arguments: Any
) -> tuple[int, Any]:
    """What a function of the library returns, with the memory that it asked for: that of this thread, or new one.

    What was raised meanwhile, by a signal too, is put into a list.
    """
    answers = _answers(interrupted, raised)
    next(answers)
    ask = _Interrupted(answers.__next__)
    task.interrupted = ctypes.cast(ask, c_void_p)
    memory = vars(_memory).pop("kept", np.empty(1, dtype=np.uint8))
    found = function(*arguments, _address(memory), len(memory))
    if found < 0:  # it needs so many bytes
        memory = np.empty(-found, dtype=np.uint8)
        found = function(*arguments, _address(memory), len(memory))
    return found, memory


def _answers(function: Callable[[], bool] | None, raised: list[BaseException]) -> Iterator[int]:
    """What C is told each time it asks; an exception, of a signal too, stops the solve and is kept.

    Python handles signals when it goes on here, inside the try block: at the beginning of a function called by C the
    exception would be lost.
    """
    answer = 0
    while True:
        try:
            yield answer
            answer = int(function is not None and bool(function()))
        except GeneratorExit:
            return
        except BaseException as error:  # KeyboardInterrupt above all
            raised.append(error)
            answer = 1


# Certificates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Certified:
    """What certificates of several solves are made of, from their coefficients alone.

    ``theta`` and what belongs to it is not scaled yet.
    """

    theta: FloatArray  # (n_run, n, q)
    raw: FloatArray | None  # the same before it was balanced, where intercepts are coefficients
    products: FloatArray  # (n_run, d, q): X^T theta
    correlations: FloatArray  # (n_run, n_units): norms of their units, or bounds on them
    numbers: FloatArray  # (n_run, len(CERTIFICATE_NUMBERS))
    n_rows: int  # non-zero rows of all coefficients


def certify(
    data: KernelData,
    lams: FloatArray,
    stack: FloatArray,
    constants: FloatArray | None = None,
    *,
    norms: FloatArray,
    rounding_norms: FloatArray,
    y_norm: float,
    is_balanced: bool,
    product_error: float = 0.0,
    scale_error: float = 0.0,
) -> Certified:
    """The twin of :meth:`groupowl.problem.Problem.certify` for each of several coefficients and rows of weights.

    ``stack`` has shape (n_run, d, q), ``constants``, where intercepts are coefficients, (n_run, q). All else is of the
    problem; ``is_balanced`` where its dual points sum to zero.
    """
    library, struct, n_run = _library(), _Data.from_buffer_copy(data.struct), len(lams)
    struct.intercept = is_balanced
    n, d, q, n_units = struct.n, struct.d, struct.q, struct.n_units
    lams, norms, rounding_norms = map(_float, (lams, norms, rounding_norms))
    theta, products, excess = np.empty((n_run, n, q)), np.empty((n_run, d, q)), np.empty(d)
    raw = None if constants is None else np.empty_like(theta)
    constants = None if constants is None else _float(constants)
    correlations, numbers = np.empty((n_run, n_units)), np.empty((n_run, len(CERTIFICATE_NUMBERS)))
    memory = np.empty(library.go_certificate_workspace(struct), dtype=np.uint8)
    c = _Certificate(
        norms=_address(norms), rounding_norms=_address(rounding_norms), y_norm=y_norm, product_error=product_error,
        scale_error=scale_error, excess=_address(excess),
    )  # fmt: skip
    found: FloatArray = np.frombuffer(
        memoryview(c), dtype=np.float64, count=numbers.shape[1], offset=_Certificate.loss.offset
    )
    solve, row = np.divmod(np.unique(np.flatnonzero(stack != 0.0) // q), d)
    first, row, values = np.searchsorted(solve, np.arange(n_run + 1)).tolist(), row.astype(np.intc), stack[solve, row]
    at, at_lam, at_row, at_B = map(_address, (memory, lams, row, values))
    at_theta, at_products, at_correlations = map(_address, (theta, products, correlations))
    at_raw, at_constants = _address(raw), _address(constants)
    for k in range(n_run):
        c.lam, c.n_rows = at_lam + 8 * k * n_units, first[k + 1] - first[k]
        c.row, c.B = at_row + 4 * first[k], at_B + 8 * q * first[k]
        c.theta, c.products = at_theta + 8 * k * n * q, at_products + 8 * k * d * q
        c.correlations = at_correlations + 8 * k * n_units
        if raw is not None:
            c.raw, c.constant = at_raw + 8 * k * n * q, at_constants + 8 * k * q
        library.go_certify(struct, c, library.blas, at)
        numbers[k] = found
    return Certified(theta, raw, products, correlations, numbers, len(row))


# Whole fits -----------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """Coefficients that are proved optimal, to the tolerance asked for, and what proves it.

    For sample weights of 1. The certificate is :meth:`groupowl.problem.Problem.certify`, compiled.
    """

    B: FloatArray  # (d, q)
    intercept: FloatArray  # (q,)
    theta: FloatArray  # (n, q), balanced, not scaled
    correlations: FloatArray  # (d,) of theta
    norms: FloatArray  # (d,) of the columns, centered where there is an intercept
    rounding_norms: FloatArray
    scale: float  # scale * theta is feasible
    theta_norm: float
    reach: float  # bound on the norms of targets and predictor
    primal: float
    dual: float
    gap: float  # of the coefficients before the intercept was rounded
    rounding: float  # what that can add
    steps: int
    passes: float
    # Of losses that are not quadratic:
    distance: float  # from the dual point to the residual before it was balanced
    balancing: float  # what balancing changed of it
    squares: FloatArray  # (d, q): for local bounds, sums of h_ik x_ij^2, and
    largest: FloatArray  # (d,) the largest entries of the centered columns


def whole_fit(
    X: FloatArray,
    Y: FloatArray,
    lam: FloatArray,
    *,
    loss: str = "squared",
    fit_intercept: bool,
    tol: float,
    part: float,
    max_steps: int,
) -> Fit | None:
    """Fit dense data in double precision, or None where they are out of the ordinary or the proof falls short.

    The loss must be a sum over tasks that has an entry in the kernel's table, with targets that it can use. The kernel
    solves to the ``part`` of the gap that ``tol`` asks for, relative to the loss of the model without features.
    """
    library, fit = _library(), _Fit(tol=tol, part=part, max_steps=max_steps)
    kept = [_set_dense(fit.data, X), _float(Y), _float(lam)]  # contiguous, and alive while C reads them
    (n, d), q = X.shape, Y.shape[1]
    capacity = min(d, max(n, _FEW_ROWS))
    # Results first, then what is needed while it runs; addresses are taken once.
    of_loss = 0 if loss == "squared" else 1
    sizes = [n * q, d, d, d, q, of_loss * d * q, of_loss * d, d, q, n * q, d * q, d, capacity * q, of_loss * n * q]
    floats, rows = np.empty(sum(sizes)), np.empty(capacity, dtype=np.intc)
    ends = list(accumulate(sizes))
    at = _address(floats)
    theta, correlations, norms, whole, intercept, squares, largest, mean, center, targets, products, excess, B, raw = (
        at + 8 * (end - size) for end, size in zip(ends, sizes, strict=True)
    )
    data, certificate = fit.data, fit.certificate
    data.q, data.Y, data.n_units, data.loss = q, _address(kept[1]), d, library.losses[loss]
    certificate.lam, certificate.theta, certificate.products = _address(kept[2]), theta, products
    certificate.correlations, certificate.excess, certificate.raw = correlations, excess, raw
    fit.spread, fit.squares, fit.largest = targets, squares, largest  # such losses have no targets of their own
    fit.capacity, fit.targets, fit.norms, fit.rounding_norms = capacity, targets, norms, whole
    fit.row, fit.B, fit.intercept = _address(rows), B, intercept
    if fit_intercept:
        fit.mean, fit.center = mean, center
    raised: list[BaseException] = []
    end, _memory.kept = _called(library.go_fit_whole, fit, None, raised, fit, library.blas)
    if raised:
        raise raised[0]
    if end != _PROVED:
        return None
    coefficients = np.zeros((d, q))
    coefficients[rows[: fit.n_rows]] = floats[ends[11] : ends[11] + fit.n_rows * q].reshape(-1, q)
    of_rows = floats[ends[0] : ends[6]].copy()  # without what else there is room for
    correlation, norm, rounding_norm, constant, square, large = np.split(of_rows, np.array(ends[1:6]) - ends[0])
    return Fit(
        B=coefficients,
        intercept=constant if fit_intercept else np.zeros(q),
        theta=floats[: ends[0]].reshape(n, q).copy(),
        correlations=correlation,
        norms=norm,
        rounding_norms=rounding_norm,
        scale=certificate.scale,
        theta_norm=certificate.norm,
        reach=certificate.reach,
        primal=certificate.primal,
        dual=certificate.dual,
        gap=certificate.gap,
        rounding=fit.rounding,
        steps=fit.steps,
        passes=fit.passes,
        distance=fit.distance,
        balancing=certificate.balancing,
        squares=square.reshape(-1, q),
        largest=large,
    )
