"""Checks at the public edge: every error names the argument, what was given and what to do."""

from __future__ import annotations

import datetime
import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ._text import listed
from ._typing import FloatArray, IndexArray

#: What to do about NaN and infinity in X.
IMPUTE = (
    "Remove those rows or columns, or fill them in before the fit, for example "
    "make_pipeline(SimpleImputer(), model) with sklearn.impute.SimpleImputer."
)

NO_WEIGHT = "is all zero: at least one sample must have a positive weight."

REAL_KINDS = "fiub"

#: For whoever does not care which: to seed a new one takes a tenth of a small solve.
_GENERATOR = np.random.default_rng()

#: Squares of numbers up to this do not overflow; what is smaller than others by this factor vanishes beside them.
LARGEST_FACTOR = 1e150

_LONGEST_ENTRY = 40

_TEXT, _DATES = "text", "dates"
_REMEDIES = {
    _TEXT: "Encode text or categories as numbers first (for example with sklearn.preprocessing.OneHotEncoder; "
    "estimators and paths do it for columns of data frames that are named in categories).",
    _DATES: "Turn dates into numbers first, for example the days since the first of them.",
}
_OTHER_REMEDY = "Every entry must be a number: take those columns out, or convert them first."

Entry = TypeVar("Entry")


def lookup(argument: str, name: Any, known: Mapping[str, Entry]) -> Entry:
    """Entry of ``known`` under ``name``; an unknown name is refused with the list of known ones."""
    if not isinstance(name, str) or name not in known:
        options = ", ".join(repr(option) for option in known)
        raise ValueError(f"{argument} must be one of {options}; got {name!r}.")
    return known[name]


def truth_value(argument: str, value: Any) -> bool:
    """``value`` as True or False; numbers and text, which Python would take for one of them, are refused."""
    if value is True or value is False:
        return bool(value)
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{argument} must be True or False, got {value!r} of type {type(value).__name__}.")
    return bool(value)


def positive_integer(argument: str, value: Any, *, minimum: int = 1) -> int:
    """``value`` as an integer of at least ``minimum``."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise TypeError(f"{argument} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < minimum:
        raise ValueError(f"{argument} must be at least {minimum}, got {value!r}.")
    return int(value)


def finite_number(argument: str, value: Any, *, above: float = -np.inf, at_least: float = -np.inf) -> float:
    """``value`` as a finite float, strictly above one bound and not below the other."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise TypeError(f"{argument} must be a number, got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{argument} is too large for a number of double precision.") from error
    if not math.isfinite(number) or number <= above or number < at_least:
        bound = f" above {above:g}" if above > -np.inf else f" of at least {at_least:g}" if at_least > -np.inf else ""
        raise ValueError(f"{argument} must be a finite number{bound}, got {value!r}.")
    return number


def number_in(argument: str, value: Any, interval: str) -> float:
    """``value`` as a number in an interval such as ``"[0, 1)"``."""
    low, high = map(float, interval[1:-1].split(","))
    with suppress(ValueError):
        number = finite_number(argument, value)
        is_end = (interval[0] == "[" and number == low) or (interval[-1] == "]" and number == high)
        if low < number < high or is_end:
            return number
    raise ValueError(f"{argument} must lie in {interval}, got {value!r}.")


def as_float_array(argument: str, values: Any, ndim: tuple[int, ...]) -> FloatArray:
    """``values`` as a float64 array with one of the given numbers of dimensions; no check for NaN."""
    array = numeric_array(argument, values)
    if array.ndim not in ndim:
        expected = " or ".join(f"{n}-dimensional" for n in ndim)
        raise ValueError(f"{argument} must be {expected}, got an array of shape {array.shape}.")
    return array.astype(np.float64, copy=False)


def numeric_array(argument: str, values: Any) -> FloatArray:
    """``values`` as an array of real numbers; anything else is a TypeError that says what it is."""
    if values is None:
        raise TypeError(f"{argument} must be an array of numbers, got None.")
    array = rectangular_array(argument, values)
    is_frame = hasattr(values, "dtypes")
    if array.dtype.kind in REAL_KINDS and not is_frame:
        return array
    given = values if is_frame else array
    if complaint := complain_of_dates(argument, given):
        raise TypeError(complaint)
    if array.dtype.kind in REAL_KINDS:
        return array
    complaint = f"{argument} must hold real numbers, got dtype {array.dtype}."
    if array.dtype.kind in "OUS":
        advice = f"Encode text as numbers first; numbers of dtype {array.dtype} become real ones by .astype(float)."
        complaint = complain_of_entries(argument, given) or f"{complaint} {advice}"
    raise TypeError(complaint)


def rectangular_array(argument: str, values: Any) -> Any:
    """``values`` as an array of any kind; nested lists must have rows of one length."""
    refuse_mask(argument, values)
    if hasattr(values, "toarray"):
        raise TypeError(f"{argument} must be a dense array, got a sparse matrix; use {argument}.toarray().")
    try:
        array = np.asarray(values)
        return _nullable_numbers(values) if array.dtype == object and _is_nullable(values) else array
    except ValueError as error:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in values]
        i = next((i for i in range(1, len(lengths)) if lengths[i] != lengths[i - 1]), 0)
        found = f"row {i - 1} has length {lengths[i - 1]}, row {i} has {lengths[i]}" if i else ""
        reason = f"{found}. All rows must have one length." if i else str(error)
        raise ValueError(f"{argument} cannot be read as a rectangular array of numbers: {reason}") from error


def _is_nullable(values: Any) -> bool:
    """Whether this is a data frame of numbers only, some of a dtype of pandas that has a missing value of its own."""
    if not (hasattr(values, "isna") and hasattr(values, "dtypes")):
        return False
    return all(getattr(dtype, "kind", "O") in REAL_KINDS for dtype in np.ravel(values.dtypes))


def _nullable_numbers(frame: Any) -> FloatArray:
    """Numbers of such a frame, NaN where they are missing."""
    numbers: FloatArray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def refuse_mask(argument: str, values: Any) -> None:
    """Refuse a masked array, and a list of them: NumPy and scikit-learn would drop the mask without a word."""
    rows = values if isinstance(values, list | tuple) else (values,)
    if any(map(np.ma.isMaskedArray, rows)):
        raise TypeError(f"{argument} is a masked array, and masks are not supported; fill it in first.")


#: Arrays that place the entries of a sparse matrix, by its format; in other formats these are Python's lists.
_SPARSE_PIECES: dict[str, tuple[str, ...]] = dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr"))
_SPARSE_PIECES |= {"coo": ("coords",), "dia": ("offsets",)}


def checked_sparse(argument: str, matrix: Any) -> Any:
    """The same sparse matrix, or an error where its indices point outside of it: compiled code does not look.

    SciPy checks the arrays of a new matrix. They are shared with the one that was given, which stays as it is, even
    where it is not in canonical format.
    """
    try:
        given = matrix if matrix.format in _SPARSE_PIECES else matrix.tocsr()
        names = _SPARSE_PIECES[given.format]
        pieces = [getattr(given, name) for name in names]
        for name, piece in zip(names, pieces, strict=True):
            for part in piece if name == "coords" else (piece,):
                if part.dtype.kind not in "iu":
                    raise ValueError(f"{name} must be integers, but their dtype is {part.dtype}")
        # SciPy does not look where nothing is stored.
        if "indptr" in names and np.any(pieces[-1][1:] < pieces[-1][:-1]):
            raise ValueError("indptr must not fall")
        again = type(given)((given.data, *pieces), shape=given.shape)
        if "indptr" in names:
            again.check_format(full_check=True)
        return again
    except (TypeError, ValueError, IndexError) as error:
        what = f"{argument} is a damaged sparse matrix of shape {matrix.shape} in the format {matrix.format!r}"
        remedy = "Make it again, for example from its entries with scipy.sparse.coo_array."
        raise ValueError(f"{what}: {str(error).rstrip('.')}. {remedy}") from error


def sparse_array(argument: str, matrix: Any) -> Any:
    """A sparse matrix as CSR or CSC array of float32 or float64 with one entry per place."""
    if matrix.dtype.kind not in REAL_KINDS:
        raise TypeError(f"{argument} must hold real numbers, got a sparse matrix of dtype {matrix.dtype}.")
    matrix = checked_sparse(argument, matrix)
    array = sp.csc_array(matrix) if matrix.format == "csc" else sp.csr_array(matrix)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not array.has_canonical_format:
        array = array.copy()
        array.sum_duplicates()
    return array


def check_finite(argument: str, values: Any, *, remedy: str, names: Iterable[Any] | None = None) -> None:
    """Refuse NaN and infinity in an array or sparse array, with their number and columns, by name where there are."""
    is_sparse = sp.issparse(values)
    stored = values.data if is_sparse else values
    if _has_finite_sum(stored):
        return
    bad = ~np.isfinite(stored)
    if not bad.any():
        return
    if is_sparse:
        per_column = np.bincount(values.tocoo().col[bad], minlength=values.shape[1])
    else:
        per_column = bad.reshape(len(bad), -1).sum(axis=0) if bad.ndim else np.ones(1, dtype=np.intp)
    raise ValueError(count_message(argument, per_column, remedy, names))


def _has_finite_sum(values: Any) -> bool:
    """Whether numbers have a finite sum, and so are finite: quicker than a look at each."""
    with np.errstate(all="ignore"):
        return math.isfinite(np.add.reduce(values, axis=None, dtype=np.float64))


def finite_matrix(argument: str, values: Any, *, remedy: str, names: Iterable[Any] | None = None) -> FloatArray:
    """``values`` as a finite matrix; a 1-D array is one column."""
    array = as_float_array(argument, values, ndim=(1, 2))
    check_finite(argument, array, remedy=remedy, names=names)
    return array if array.ndim == 2 else array[:, None]


def finite_vector(argument: str, values: Any, length: int, *, remedy: str, size: str = "n_tasks") -> FloatArray:
    """``values`` as a finite vector of the given length, which ``size`` names; a number counts as one entry."""
    vector = np.atleast_1d(as_float_array(argument, values, ndim=(0, 1)))
    if vector.shape != (length,):
        raise ValueError(f"{argument} must have shape ({length},) ({size},), got {vector.shape}.")
    check_finite(argument, vector, remedy=remedy)
    return vector


def nonnegative_weights(argument: str, values: Any, length: int, *, per: str, where: str = "") -> FloatArray:
    """``values`` as finite, non-negative weights, one ``per`` "sample" (row of X), "feature" (column) or group."""
    weights = as_float_array(f"{argument}{where}", values, ndim=(1,))
    if len(weights) != length:
        what = {"sample": "rows", "feature": "columns"}.get(per, "groups of columns")
        found = f"X has {length} {what}, {argument} has length {len(weights)}"
        raise ValueError(f"{argument}{where} must have one weight per {per}: {found}.")
    check_finite(f"{argument}{where}", weights, remedy="Every weight must be a finite number.")
    if weights.min(initial=0.0) < 0:
        i = int(np.argmin(weights))
        raise ValueError(f"{argument}{where} must be non-negative, but {argument}[{i}] is {float(weights[i])!r}.")
    return weights


def checked_names(argument: str, names: Any, count: int) -> Sequence[Any]:
    """Names as a list, as many as there should be."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a list of names, got {names!r}.")
    listed = names if isinstance(names, Sequence) else list(names)
    if len(listed) != count:
        raise ValueError(f"{argument} must have one name for each of the {count}, got {len(listed)} names.")
    return listed


def checked_path(argument: str, value: Any) -> Path:
    """``value`` as the path of a file or folder."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{argument} must be a str or a Path, got {value!r} of type {type(value).__name__}.")
    if not os.fspath(value):
        raise ValueError(f"{argument} is empty. Give the name of a file or folder.")
    return Path(value)


def position_in(argument: str, index: Any, length: int, what: str) -> int:
    """``index`` into ``length`` items as a non-negative integer; negative ones count from the end."""
    try:
        return range(length)[operator.index(index)]
    except (IndexError, TypeError) as error:
        valid = f"an index must be an integer from {-length} to {length - 1}"
        raise type(error)(f"{argument} has {length} {what}: {valid}, got {index!r}.") from None


def count_message(argument: str, bad_per_column: Any, remedy: str, names: Iterable[Any] | None = None) -> str:
    """Message for ``bad_per_column`` NaN or infinite entries in each column."""
    columns = np.flatnonzero(bad_per_column).tolist()
    labels = list(names) if names is not None else None
    where = f" in {list_columns(columns, labels)}" if len(bad_per_column) > 1 else ""
    total = int(bad_per_column.sum())
    entries = "entry" if total == 1 else "entries"
    return f"{argument} has {total} NaN or infinite {entries}{where}. {remedy}"


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator (used as it is), a RandomState, or None, for one that all share."""
    if random_state is None:
        return _GENERATOR
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    try:
        if isinstance(random_state, bool):
            raise TypeError("a truth value is no seed")
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        message = "random_state must be a non-negative integer, a NumPy Generator or RandomState, or None"
        raise ValueError(f"{message}; got {random_state!r}.") from error


# Columns of data frames, and of arrays of objects: what in them is no number, in words ------------------------


def column_names(X: Any) -> list[Any] | None:
    """Column names of a pandas or polars frame; None for anything else."""
    names = getattr(X, "columns", None)
    return None if names is None or not hasattr(X, "dtypes") else list(names)


def repeated_columns(names: list[Any]) -> list[int]:
    """Positions of the columns that share the first repeated name; empty if names are unique."""
    if len(set(names)) == len(names):
        return []
    name = next(name for j, name in enumerate(names) if name in names[:j])
    return [j for j, other in enumerate(names) if other == name]


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, a sparse matrix or a frame, as the same kind of thing."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def list_columns(columns: Sequence[int], names: list[Any] | None) -> str:
    """Some columns by name, or index, in words."""
    labels = columns if names is None else [names[j] for j in columns]
    return f"column{'s' if len(columns) > 1 else ''} {listed(labels)}"


def complain_of_dates(argument: str, X: Any) -> str | None:
    """Complaint about dates in a frame or an array, which NumPy would convert to numbers; None if there are none."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        return f"{argument} must hold real numbers, got dtype {X.dtype}. {_REMEDIES[_DATES]}"
    names = column_names(X)
    columns = []
    for j, dtype in enumerate([] if names is None else X.dtypes):
        is_temporal = getattr(dtype, "is_temporal", bool)  # of polars; dtypes of pandas have a kind
        if getattr(dtype, "kind", "") in ("M", "m") or is_temporal():
            columns.append(j)
    return _sentence(argument, columns, names, _DATES, str(list(X.dtypes)[columns[0]])) if columns else None


def complain_of_entries(argument: str, X: Any) -> str | None:
    """Complaint about columns with entries that are not numbers; None if there are none."""
    names = column_names(X)
    if names is None and not (isinstance(X, np.ndarray) and X.ndim == 2):
        return None
    found: dict[str, list[int]] = {}
    example = ""
    for j in range(X.shape[1]):
        values = np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j])  # several columns may have one name
        for i, entry in enumerate([] if values.dtype.kind in "fiubc" else values):
            try:
                float(entry)
            except (TypeError, ValueError):
                plain = entry.item() if isinstance(entry, np.str_ | np.bytes_) else entry
                shown = repr(plain)
                shown = shown if len(shown) <= _LONGEST_ENTRY else f"{shown[:_LONGEST_ENTRY]}..."
                found.setdefault(_kind(plain), []).append(j)
                example = example or f"{shown} in row {i}"
                break
    kind = next(iter(found), "")  # of the first column, as the example is
    return _sentence(argument, found[kind], names, kind, example) if kind else None


def _kind(entry: Any) -> str:
    if isinstance(entry, str | bytes):
        return _TEXT
    dates = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if isinstance(entry, dates) or type(entry).__name__ == "Period":
        return _DATES
    return f"entries of type {type(entry).__name__}"


def _sentence(argument: str, columns: list[int], names: list[Any] | None, kind: str, example: str) -> str:
    has = "have" if len(columns) > 1 else "has"
    remedy = _REMEDIES.get(kind, _OTHER_REMEDY)
    return f"{argument} must hold real numbers, but {list_columns(columns, names)} {has} {kind} ({example}). {remedy}"


# Samples ------------------------------------------------------------------------------------------------
# ``where`` says which samples, for messages: empty for all of them, else such as " of block 3".


def check_data_shape(shape: tuple[int, ...], where: str = "", *, needs_samples: bool = True) -> None:
    """Refuse an X that is no matrix, has no columns or, unless samples may be missing, no rows."""
    if len(shape) != 2:
        hint = " Use X.reshape(-1, 1) for a single feature." if len(shape) == 1 else ""
        raise ValueError(f"X{where} must be 2-dimensional (n_samples, n_features), got shape {shape}.{hint}")
    if shape[1] == 0 or (needs_samples and shape[0] == 0):
        needed = "at least one sample and one feature are" if needs_samples else "at least one feature is"
        raise ValueError(f"X{where} is empty: its shape is {shape}; {needed} needed.")


def check_targets(
    Y: Any,
    n_samples: int,
    where: str = "",
    *,
    argument: str = "Y",
    names: Any = None,
    may_miss: bool = False,
    remedy: str = "Remove the samples without a target.",
    needs_entry: bool = True,
) -> FloatArray:
    """Targets as a finite matrix with one row per sample and at least one column.

    NaN stands for targets that were not observed, where they may be missing; not for all of a task, but in a part of
    the samples, which needs none.
    """
    names = getattr(Y, "columns", names)
    if may_miss:
        matrix = as_float_array(f"{argument}{where}", Y, ndim=(1, 2))
        matrix = matrix if matrix.ndim == 2 else matrix[:, None]
        may_miss = len(matrix) == 0 or not _has_finite_sum(matrix)
        if may_miss:
            remedy = "Remove or correct them; NaN stands for a target that was not observed."
            missing = np.isnan(matrix)
            check_finite(f"{argument}{where}", np.where(missing, 0.0, matrix), remedy=remedy, names=names)
    else:
        matrix = finite_matrix(f"{argument}{where}", Y, remedy=remedy, names=names)
    check_length(argument, np.shape(Y), n_samples, where)
    if matrix.shape[1] == 0:
        raise ValueError(f"{argument}{where} is empty: its shape is {matrix.shape}; at least one column is needed.")
    if may_miss and needs_entry:
        check_tasks(~missing, argument=argument, names=names)
    return matrix


def check_tasks(observed: Any, *, argument: str = "Y", names: Any = None) -> None:
    """Refuse targets of which some task has none, by its name or index; ``observed`` says which entries there are."""
    empty = np.flatnonzero(~observed.any(axis=0)).tolist()
    if empty:
        which = list_columns(empty, None if names is None else list(names))
        what = f"{argument} has no observed entry of positive weight in {which}"
        raise ValueError(f"{what}. Leave such targets out: nothing can be learned of them.")


def entry_weights(Y: FloatArray, weight: FloatArray, n_tasks: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Targets with zeros for those not observed, and weights (n, n_tasks) that are zero there; (n, 1) if all agree.

    Samples without any target have weight zero in either case. Only the first ``n_tasks`` columns are targets.
    """
    missing = np.isnan(Y[:, :n_tasks])
    column = weight if weight.ndim == 2 else weight[:, None]
    if not missing.any() and column.shape[1] == 1:
        return Y, column
    w = np.where(missing, 0.0, column)
    if np.array_equal(w, np.broadcast_to(w[:, :1], w.shape)):
        w = w[:, :1]
    return np.where(np.isnan(Y), 0.0, Y), w


def check_weights_of(whole: str, sample_weight: Any) -> None:
    """Refuse weights of entries where all targets of a sample are needed; ``whole`` is the reason, or empty."""
    if whole and np.ndim(sample_weight) == 2:
        raise ValueError(f"sample_weight must have one weight per sample, got {np.shape(sample_weight)}: {whole}.")


def check_length(argument: str, shape: tuple[int, ...], n_samples: int, where: str = "") -> None:
    """Refuse an array that does not have one row per sample."""
    if shape[0] != n_samples:
        found = f"X has {n_samples} rows, {argument} has {shape[0]} (shape {shape})"
        raise ValueError(f"X and {argument}{where} must have one row per sample: {found}.")


def sample_indices(argument: str, values: Any, n_samples: int, remedy: str) -> IndexArray:
    """Indices of samples, counted from 0, from indices that may count from the end or from a mask."""
    indices = rectangular_array(argument, values)
    if indices.dtype == bool and indices.shape == (n_samples,):
        indices = np.flatnonzero(indices)
    if indices.size == 0:
        return np.zeros(0, dtype=np.intp)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        found = f"an array of shape {indices.shape} and dtype {indices.dtype}"
        raise ValueError(f"{argument} must be indices or a mask, got {found}. {remedy}")
    if indices.min() < -n_samples or indices.max() >= n_samples:
        span = f"from {indices.min()} to {indices.max()}"
        raise ValueError(f"{argument} has indices {span}, but there are {n_samples} samples. {remedy}")
    return np.asarray(indices % n_samples, dtype=np.intp)


#: Where weights may be those of entries.
ENTRIES = (
    "Weights of each target, shape (n_samples, n_targets), and targets that are missing are for numbers, counts and "
    "label indicators, in solve, paths and estimators."
)


def check_sample_weight(
    sample_weight: Any, n_samples: int, where: str = "", *, needs_weight: bool = True, n_tasks: int = 0
) -> FloatArray:
    """Finite, non-negative weights with a finite sum, one per sample; ones by default. One at least is positive.

    Those of a part of the samples may all be zero. With ``n_tasks`` they may also be (n_samples, n_tasks), one for each
    target of a sample.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    shape = rectangular_array(f"sample_weight{where}", sample_weight).shape
    if n_tasks and len(shape) == 2:
        if shape != (n_samples, n_tasks):
            raise ValueError(
                f"sample_weight{where} must have one weight per sample, shape ({n_samples},), or one for each of its "
                f"targets, shape ({n_samples}, {n_tasks}), got {shape}."
            )
        flat = as_float_array(f"sample_weight{where}", sample_weight, ndim=(2,)).ravel()
        weights = check_sample_weight(flat, flat.size, where, needs_weight=needs_weight)
        return weights.reshape(shape)
    if len(shape) == 2:
        raise ValueError(f"sample_weight{where} must be 1-dimensional here, got shape {shape}. {ENTRIES}")
    weight = nonnegative_weights("sample_weight", sample_weight, n_samples, per="sample", where=where)
    check_weight_range(f"sample_weight{where}", weight)
    if needs_weight and not weight.any():
        raise ValueError(f"sample_weight{where} {NO_WEIGHT}")
    return weight


def check_weight_range(argument: str, weight: FloatArray) -> None:
    """Refuse weights whose sum overflows, or beside the largest of which others would vanish."""
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        what = f"{argument} is so large that its sum overflows: its largest entry is {float(weight.max())!r}"
        raise ValueError(f"{what}. Use smaller weights, for example all of them divided by the largest.")
    smallest = float(weight.min(initial=np.inf, where=weight > 0.0))
    if smallest < weight.max(initial=0.0) / LARGEST_FACTOR:
        what = f"{argument} has positive entries from {smallest!r} to {float(weight.max())!r}"
        remedy = f"Make those that are less than 1/{LARGEST_FACTOR:g} of the largest zero."
        raise ValueError(f"{what}: beside the largest the smallest vanish. {remedy}")
