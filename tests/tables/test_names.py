"""Names that a file only numbers behave as if all of them were there, and take no memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.tables import Reading, TableError, load_features, load_table, read_sheet
from groupowl.tables.sheet import Sheet
from groupowl.tables.table import NumberedNames

NAMES = NumberedNames("x", 1, 4, ("y", "x9"))
LISTED = ("x1", "x2", "x3", "x4", "y", "x9")


def test_a_sequence_like_any_other():
    assert tuple(NAMES) == LISTED
    assert NAMES == LISTED
    assert NumberedNames("x", 1, 4, ("y", "x9")) == NAMES
    assert NumberedNames("x", 0, 4, ("y", "x9")) != NAMES
    assert LISTED[:-1] != NAMES
    assert [NAMES[j] for j in (*range(6), -1, np.int64(2))] == [*LISTED, "x9", "x3"]
    assert NAMES[1:5] == LISTED[1:5]
    with pytest.raises(IndexError):
        NAMES[6]
    assert [NAMES.index(name) for name in LISTED] == list(range(6))


@pytest.mark.parametrize("name", ["x0", "x5", "x01", "x+1", "x 1", "X1", "x", "", "1", "x" + "9" * 5000, "x²", None, 1])
def test_names_that_are_not_there(name):
    assert name not in NAMES
    assert NAMES.find(name) == -1
    with pytest.raises(ValueError, match="is no column"):
        NAMES.index(name)


def test_positions_and_choices():
    assert NAMES.positions_of(LISTED).tolist() == list(range(6))
    assert NAMES.positions_of(["y", "z"]).tolist() == [4, -1]
    assert NAMES.positions_of(NumberedNames("x", 1, 5)).tolist() == [0, 1, 2, 3, -1]
    assert NAMES.positions_of(NumberedNames("x", 0, 5)).tolist() == [-1, 0, 1, 2, 3]
    assert NAMES.positions_of(NumberedNames("", 1, 2)).tolist() == [-1, -1]
    assert NumberedNames(others=tuple("231")).positions_of(NumberedNames("", 1, 3)).tolist() == [2, 0, 1]
    assert isinstance(NAMES.chosen(np.arange(3)), NumberedNames)
    assert tuple(NAMES.chosen(np.arange(3))) == LISTED[:3]
    assert NAMES.chosen(np.array([0, 2, 5])) == ("x1", "x3", "x9")
    assert NAMES.chosen(np.arange(6)) == LISTED
    assert Sheet("file", NAMES).find_columns("--drop", ["x2,x9", "-2", "x[34]"]) == [1, 5, 4, 2, 3]
    with pytest.raises(TableError, match=r"has no column 'x7'\. Columns: 'x1', 'x2', 'x3', 'x4', 'y' and 1 more"):
        Sheet("file", NAMES).find_columns("--drop", ["x7"])


def test_a_vector_of_an_archive_must_not_have_the_name_of_a_column(tmp_path):
    np.savez(tmp_path / "X.npz", X=np.ones((4, 3)), y=np.arange(4.0), x2=np.ones(4))
    with pytest.raises(TableError, match="has 1 column name more than once: 'x2'"):
        read_sheet(tmp_path / "X.npz")


N_COLUMNS = 2_000_000


def wide_file(path, n_columns):
    path.write_text(f"1 {n_columns}:1\n-1 3:1 7:2\n1 4:1\n2 2:3\n")
    return path


def wide_archive(path, n_columns):
    X = sp.csr_array(([1.0, 2.0], ([0, 1], [n_columns - 1, 2])), shape=(4, n_columns))
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=np.arange(4.0))
    return path


@pytest.mark.parametrize(("write", "name"), [(wide_file, "X.svm"), (wide_archive, "X.npz")])
def test_a_wide_file_takes_few_bytes_per_column(tmp_path, write, name):
    """Names alone would take sixty bytes each; positions are numbers of eight bytes, a few arrays of them."""
    path = write(tmp_path / name, N_COLUMNS)
    load_table(write(tmp_path / f"small{name}", 20), Reading())  # what is imported on the way
    tracemalloc.start()
    table = load_table(path, Reading())
    features = load_features(path, Reading(), table.feature_names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.X.shape == features.X.shape == (4, N_COLUMNS)
    assert len(table.feature_names) == N_COLUMNS
    assert len(features.extra) == len(features.absent) == 0
    assert peak < 40 * N_COLUMNS


def test_new_samples_with_fewer_and_with_more_columns(tmp_path):
    path = wide_file(tmp_path / "X.svm", 9)
    wider, narrower = NumberedNames("", 1, 12), NumberedNames("", 1, 8)
    for names in (wider, narrower):
        found = load_features(path, Reading(), names)
        listed = load_features(path, Reading(), tuple(names))
        np.testing.assert_array_equal(found.X.toarray(), listed.X.toarray())
        assert tuple(found.extra) == listed.extra
        assert tuple(found.absent) == listed.absent == ()
    assert tuple(found.extra) == ("9",)
    archive = wide_archive(tmp_path / "X.npz", 9)
    with pytest.raises(TableError, match=r"lacks 3 columns of the model's 12 features: 'x10', 'x11', 'x12'"):
        load_features(archive, Reading(), NumberedNames("x", 1, 12))
