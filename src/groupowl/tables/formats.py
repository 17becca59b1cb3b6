"""Which reader a file needs: by the suffix of its name, or by the format that the user names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from .errors import TableError
from .opening import format_suffix
from .readers import read_arff, read_csv, read_large, read_libsvm_sheet, read_npz, read_parquet, read_tsv
from .sheets import Sheet


class Format(NamedTuple):
    """A file format: its name, what a file of it must hold, its suffixes, and the function that reads it."""

    name: str
    expected: str
    suffixes: tuple[str, ...]
    read: Callable[..., Sheet]


#: Formats by the name that ``--format`` takes.
FORMATS: dict[str, Format] = {
    "csv": Format("CSV file", "column names in the first line, then a line per sample", (".csv",), read_csv),
    "tsv": Format("TSV file", "column names in the first line, cells between tabs", (".tsv", ".tab"), read_tsv),
    "parquet": Format("Parquet file", "a column per feature", (".parquet", ".pq"), read_parquet),
    "npz": Format(
        "NumPy archive", "X, or data, indices, indptr and shape of a sparse X; and y or Y", (".npz",), read_npz
    ),
    "libsvm": Format(
        "LIBSVM file",
        "a line 'label index:value ...' per sample",
        (".libsvm", ".svm", ".svmlight"),
        read_libsvm_sheet,
    ),
    "arff": Format("ARFF file", "lines @attribute, then @data and a row per sample", (".arff",), read_arff),
    "large": Format(
        "matrix on disk",
        "a matrix in .npy, HDF5, Zarr or a folder of blocks",
        (".npy", ".h5", ".hdf5", ".zarr"),
        read_large,
    ),
}


def read_sheet(
    path: str | Path,
    *,
    format: str | None = None,
    transpose: bool = False,
    text_columns: Collection[str] = (),
    first_index: int | None = None,
) -> Sheet:
    """Read a file.

    Parameters
    ----------
    path : str or Path
        The file; its suffix says the format. Text files may be compressed (``.gz``, ``.bz2``). Of several arrays in
        an HDF5 file or a Zarr store, ``file.h5::name`` is one.
    format : str, default=None
        Name of a format, whatever the suffix; a key of :data:`FORMATS`.
    transpose : bool, default=False
        Whether rows are features, named in the first column, and columns are samples.
    text_columns : collection of str
        Columns of a text file that are no numbers even if they look like them.
    first_index : int, default=None
        Number of the first column in a LIBSVM file; found out by default.

    Returns
    -------
    Sheet
        All columns by name.

    Raises
    ------
    TableError
        If the file cannot be read; the message says where and what to do.
    """
    path = Path(path)
    form = _format(path, format)
    try:
        sheet = form.read(path, text_columns=text_columns, first_index=first_index)
        sheet.check_not_empty()
        return sheet.transposed() if transpose else sheet
    except (TableError, MemoryError):
        raise
    except OSError as error:
        if error.errno is None:  # not of the system: a library says that the content is wrong
            raise TableError(_unreadable(path, form, error)) from error
        raise TableError(f"{path} cannot be opened: {error.strerror}. Check the path and its permissions.") from error
    except Exception as error:  # libraries raise anything on a broken file; the cause stays attached
        raise TableError(_unreadable(path, form, error)) from error


def _place(path: Path) -> Path:
    """The file or folder itself: behind the mark is the name of an array inside of it."""
    from ..designs.disk import INSIDE

    place = Path(str(path).partition(INSIDE)[0])
    is_inside = format_suffix(place) in FORMATS["large"].suffixes or place.is_dir()
    return place if is_inside and not path.exists() else path


def _format(path: Path, name: str | None) -> Format:
    path = _place(path)
    if name is not None:
        if name not in FORMATS:
            raise TableError(f"format must be one of {', '.join(FORMATS)}; got {name!r}.")
        form = FORMATS[name]
    else:
        suffix = format_suffix(path)
        found = [form for form in FORMATS.values() if suffix in form.suffixes]
        if path.is_dir():
            found = [FORMATS["large"]]
        if not path.exists():
            found = found or [FORMATS["csv"]]  # that it is not there is what counts
        if not found:
            known = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
            raise TableError(
                f"{path}: the suffix {suffix!r} says no format. Known are {known}; or give the format with --format."
            )
        form = found[0]
    _check_file(path, form)
    return form


def _check_file(path: Path, form: Format) -> None:
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    if path.is_dir() and form is not FORMATS["large"]:
        raise TableError(f"{path} is a folder, not a {form.name}. Give a file.")
    if not (path.is_file() or path.is_dir()):  # it could be read once only, or never end
        raise TableError(f"{path} is no file but a pipe or a device. Save the data to a file, and give that.")


def _unreadable(path: Path, form: Format, error: Exception) -> str:
    problem = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return (
        f"{path} cannot be read as a {form.name}: {problem}. Expected: {form.expected}. Check the file and its format."
    )
