"""Finding data sets in a folder, loading them, and preparing their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from groupowl._checks import check_data_shape, check_finite, check_targets, numeric_array, sparse_array
from groupowl._typing import FloatArray

from .formats import COMPRESSIONS, Raw, dense, format_of
from .table import DATASETS, SILENCE, DatasetEntry


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, ready to be solved.

    Attributes
    ----------
    name : str
        Of its entry: the paper's name, or a stand-in's own.
    X : ndarray or csr_array of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_tasks)
        Centered targets, or one-hot classes.
    loss : {"squared", "multinomial"}
    solver : {"apgd", "spgd"}
        The paper's algorithm: batch or stochastic.
    tau : float
        The paper's exponent.
    preprocessing : str
        What was done to the values in the file.
    notes : tuple of str
        Sentences on what differs from the paper; empty where nothing does.
    stands_in_for : str or None
        Name of the paper's set that this one replaces.
    """

    name: str
    X: Any
    Y: FloatArray
    loss: str
    solver: str
    tau: float
    preprocessing: str
    notes: tuple[str, ...] = ()
    stands_in_for: str | None = None


class FoundDataset(NamedTuple):
    """A data set that a folder holds; of several files that belong together, ``path`` is the first."""

    entry: DatasetEntry
    path: Path


class MissingDataset(NamedTuple):
    """A data set that a folder does not hold, and the names looked for; ``a + b`` means both."""

    entry: DatasetEntry
    looked_for: tuple[str, ...]


def find_datasets(folder: str | Path) -> tuple[list[FoundDataset], list[MissingDataset]]:
    """Data sets, of the paper and stand-ins, whose files lie in a folder.

    Names are compared without regard to case. Text files may be compressed (``.gz``, ``.bz2``).

    Parameters
    ----------
    folder : str or Path
        Where the files are; its subfolders are not searched.

    Returns
    -------
    found : list of FoundDataset
        In the order of the table, each ready for :func:`load_dataset`.
    missing : list of MissingDataset
        The other sets, with the file names that were looked for.
    """
    files = _files_in(Path(folder))
    found, missing = [], []
    for entry in DATASETS.values():
        groups = (_locate(group, files) for group in entry.files)
        path = next((paths[0] for paths in groups if paths), None)
        if path is None:
            missing.append(MissingDataset(entry, tuple(" + ".join(group) for group in entry.files)))
        else:
            found.append(FoundDataset(entry, path))
    return found, missing


def _files_in(folder: Path) -> dict[str, Path]:
    """Files by name in lower case; of names that differ in case alone, the first in sorting order."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise ValueError(
            f"folder must be a directory with the files of the data sets, but {str(folder)!r} {problem}. "
            f"Give the directory into which you downloaded them."
        )
    return {path.name.lower(): path for path in sorted(folder.iterdir(), reverse=True) if path.is_file()}


def _locate(group: tuple[str, ...], files: dict[str, Path]) -> list[Path]:
    """Paths of files that belong together; empty unless all of them are there."""
    present = [[files[variant] for variant in _variants(name) if variant in files] for name in group]
    return [paths[0] for paths in present] if all(present) else []


def _variants(name: str) -> list[str]:
    """The name in lower case, and with the suffix of a compression where the format may be compressed."""
    plain = name.lower()
    suffixes = () if plain.endswith((".npz", ".mat")) else tuple(COMPRESSIONS)
    return [f"{plain}{suffix}" for suffix in ("", *suffixes)]


def _known_names(entry: DatasetEntry) -> set[str]:
    return {variant for group in entry.files for name in group for variant in _variants(name)}


def load_dataset(entry: DatasetEntry, path: str | Path) -> Dataset:
    """Read, select and prepare a data set, and compare its size with the paper's.

    Parameters
    ----------
    entry : DatasetEntry
        Which data set it is; an entry of :data:`DATASETS`.
    path : str or Path
        Its file, as :func:`find_datasets` returns it. Files that belong with it lie beside it. The suffix
        says the format; a file of another name than the entry's is read by itself.

    Returns
    -------
    Dataset
        Its ``notes`` say what differs from the paper's size.

    Raises
    ------
    ValueError
        If a file is missing or cannot be read; the message names it, and says what it should hold.
    """
    selected, n_labels = _read_selected(entry, path)
    X, Y = prepare(selected.X, selected.targets, entry)
    return Dataset(
        name=entry.name,
        X=X,
        Y=Y,
        loss=entry.loss,
        solver=entry.solver,
        tau=entry.tau,
        preprocessing=entry.preprocessing,
        notes=(*_stand_in_note(entry), *_size_notes(entry, X.shape, Y.shape[1], n_labels)),
        stands_in_for=entry.stands_in_for,
    )


def read_dataset(entry: DatasetEntry, path: str | Path) -> Raw:
    """The rows, labels and classes that count, with their values as they stand in the file.

    Parameters
    ----------
    entry, path
        As in :func:`load_dataset`.

    Returns
    -------
    Raw
        ``X`` and ``targets``, ready for :func:`prepare`.
    """
    return _read_selected(entry, path)[0]


def _read_selected(entry: DatasetEntry, path: str | Path) -> tuple[Raw, int]:
    return _select(entry, _stack(entry, [_read(entry, part) for part in dataset_files(entry, path)]))


def dataset_files(entry: DatasetEntry, path: str | Path) -> list[Path]:
    """The file of a data set and those that belong with it, in the order of the table."""
    path = Path(path)
    if not path.is_file():
        problem = "is a directory" if path.is_dir() else "does not exist"
        raise ValueError(f"path must be a file of {entry.name}, but {str(path)!r} {problem}. See {entry.source}.")
    name = path.name.lower()
    owners = [known.name for known in DATASETS.values() if name in _known_names(known)]
    if owners and entry.name not in owners:
        raise ValueError(
            f"{str(path)!r} is a file of {owners[0]}, which must not go by the name of {entry.name}. "
            f"Use DATASETS[{owners[0]!r}], or give the file another name if it does hold {entry.name}."
        )
    for group in entry.files:
        if len(group) > 1 and any(name in _variants(member) for member in group):
            return _whole_group(entry, group, _files_in(path.parent) | {name: path})
    return [path]


def _whole_group(entry: DatasetEntry, group: tuple[str, ...], files: dict[str, Path]) -> list[Path]:
    paths = _locate(group, files)
    if not paths:
        raise ValueError(
            f"{entry.name} is made of {' and '.join(group)}, but the folder has only a part of them. "
            f"Download the others too: {entry.source}."
        )
    return paths


def _read(entry: DatasetEntry, path: Path) -> Raw:
    """Values in one file, checked; whatever goes wrong inside a reader becomes one sentence and a remedy."""
    form = format_of(path)
    try:
        return _checked(entry, form.read(path, entry))
    except MemoryError:  # the file is not to blame
        raise
    except Exception as error:  # libraries raise anything on a broken file; the cause stays attached
        problem = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ValueError(
            f"{str(path)!r} cannot be read as the {form.name} of {entry.name}: {problem}. "
            f"Expected: {form.expected}. Download it again ({entry.source}), or take it out of the folder."
        ) from error


def _checked(entry: DatasetEntry, raw: Raw) -> Raw:
    """Finite numbers, one row of targets per sample, and a single column of classes."""
    is_sparse = sp.issparse(raw.X)
    X = sparse_array("X", raw.X).astype(np.float64) if is_sparse else numeric_array("X", raw.X)
    check_data_shape(X.shape)
    check_finite("X", X, remedy="Every value must be a finite number.")
    targets = check_targets(raw.targets if np.size(raw.targets) != X.shape[0] else np.ravel(raw.targets), X.shape[0])
    if entry.loss == "multinomial" and targets.shape[1] > 1:
        raise ValueError(f"one class per sample is needed, but the targets have {targets.shape[1]} columns.")
    return Raw(X, targets)


def _stack(entry: DatasetEntry, parts: list[Raw]) -> Raw:
    """Rows of all parts below each other."""
    if len(parts) == 1:
        return parts[0]
    sizes = {(part.X.shape[1], part.targets.shape[1]) for part in parts}
    if len(sizes) > 1:
        listed = ", ".join(f"{part.X.shape[1]} features and {part.targets.shape[1]} labels" for part in parts)
        raise ValueError(f"The files of {entry.name} do not fit together: they have {listed}. See {entry.source}.")
    matrices = [part.X for part in parts]
    X = sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.vstack(matrices)
    return Raw(X, np.vstack([part.targets for part in parts]))


def _select(entry: DatasetEntry, raw: Raw) -> tuple[Raw, int]:
    """The rows, labels and classes that count, and how many labels or classes there were."""
    X, targets = (values[: entry.training_rows] for values in raw) if entry.training_rows else raw
    if entry.loss != "multinomial":
        return Raw(X, targets[:, : entry.n_tasks]), targets.shape[1]
    classes, codes = np.unique(targets.ravel(), return_inverse=True)
    keep = codes < entry.n_tasks
    return Raw(X, targets) if keep.all() else Raw(X[keep], targets[keep]), len(classes)


def prepare(X: Any, targets: Any, entry: DatasetEntry) -> tuple[Any, FloatArray]:
    """Features and targets as the experiments use them; the package's docstring has the reasons.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Values as they stand in the file.
    targets : ndarray of shape (n_samples,) or (n_samples, n_tasks)
        Classes, in any coding, for the multinomial loss; responses or 0/1 labels for the squared one.
    entry : DatasetEntry
        Says what to do: ``not_heard``, ``scaling``, ``sparse`` and ``loss``.

    Returns
    -------
    X : ndarray or csr_array of shape (n_samples, n_features)
        No value is larger than 1 in size, and zero columns are still zero.
    Y : ndarray of shape (n_samples, n_tasks)
        Centered columns, or one-hot rows with the classes in ascending order.
    """
    features = sp.csr_array(X, dtype=np.float64) if entry.sparse else dense(X)
    if entry.not_heard is not None:
        features = _signals(features, entry.not_heard)
    sizes = _largest_sizes(features)
    if entry.scaling == "matrix":
        sizes[:] = sizes.max()
    return _divide_columns(features, np.where(sizes > 0, sizes, 1.0)), _prepare_targets(targets, entry)


def _signals(X: Any, not_heard: float) -> FloatArray:
    """Strengths above :data:`SILENCE`, 0 where nothing was heard."""
    levels = np.asarray(X, dtype=np.float64)
    return np.where(levels == not_heard, 0.0, levels - SILENCE)


def _largest_sizes(X: Any) -> FloatArray:
    """Largest absolute value in each column, by way of both ends: the size of -128 is no 8-bit integer."""
    ends = X.max(axis=0), X.min(axis=0)
    high, low = (np.ravel(dense(end)).astype(np.float64) for end in ends)
    return np.maximum(high, -low)


def _divide_columns(X: Any, scale: FloatArray) -> Any:
    is_sparse = sp.issparse(X)
    if not is_sparse:
        return X / scale
    return sp.csr_array((X.data / scale[X.indices], X.indices, X.indptr), shape=X.shape)


def _prepare_targets(targets: Any, entry: DatasetEntry) -> FloatArray:
    if entry.loss == "multinomial":
        classes, codes = np.unique(np.ravel(targets), return_inverse=True)
        return np.eye(len(classes))[codes]
    Y = np.asarray(targets, dtype=np.float64).reshape(len(targets), -1)
    return Y - Y.mean(axis=0)


def _stand_in_note(entry: DatasetEntry) -> list[str]:
    if entry.stands_in_for is None:
        return []
    return [f"{entry.name} stands in for {entry.stands_in_for}, which is {DATASETS[entry.stands_in_for].size}."]


def _size_notes(entry: DatasetEntry, shape: tuple[int, int], n_tasks: int, n_labels: int) -> list[str]:
    """A sentence per size that is not the table's."""
    owner = "the paper has" if entry.stands_in_for is None else "the known copy has"
    sizes = (
        (shape[0], entry.n_samples, "samples"),
        (shape[1], entry.n_features, "features"),
        (n_tasks, entry.n_tasks, entry.task_noun),
    )
    notes = [f"The data have {size} {noun}, {owner} {known}." for size, known, noun in sizes if size != known]
    if n_labels > entry.n_tasks and n_labels != entry.n_labels:
        notes.append(f"The file has {n_labels} {entry.task_noun}, of which the first {entry.n_tasks} count.")
    return notes
