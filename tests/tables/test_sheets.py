"""Every format says the same: the columns of a file by name, numbers as numbers, labels as labels."""

from __future__ import annotations

import bz2
import gzip
import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from groupowl.designs import MemmapDesign
from groupowl.tables import FORMATS, Reading, Roles, TableError, load_table, read_sheet

RNG = np.random.default_rng(3)
X = np.where(RNG.random((7, 4)) < 0.6, RNG.standard_normal((7, 4)), 0.0)
Y = RNG.standard_normal((7, 2))
KINDS = ["oak", "elm", "oak", "fir", "elm", "fir", "oak"]
NAMES = ["a", "b", "c", "d"]
TABLE = pd.DataFrame(np.hstack([X, Y]), columns=[*NAMES, "y1", "y2"])
TABLE["kind"] = KINDS


def dense(values):
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def write_arff(path, sparse):
    head = [f"@attribute {name} numeric" for name in [*NAMES, "y1", "y2"]] + ["@attribute kind {elm,fir,oak}"]
    rows = []
    for *numbers, kind in TABLE.itertuples(index=False):
        cells = [*map(repr, map(float, numbers)), kind]
        pairs = [f"{j} {cell}" for j, cell in enumerate(cells) if cell not in ("0.0", "elm")]
        rows.append("{" + ", ".join(pairs) + "}" if sparse else ",".join(cells))
    path.write_text("\n".join(["@relation trees", *head, "@data", *rows]) + "\n")


def write_npz(path):
    np.savez(path, X=X, Y=Y, feature_names=NAMES, kind=KINDS)


WRITERS = {
    "t.csv": lambda path: TABLE.to_csv(path, index=False),
    "t.csv.gz": lambda path: TABLE.to_csv(path, index=False, compression="gzip"),
    "t.csv.bz2": lambda path: TABLE.to_csv(path, index=False, compression="bz2"),
    "semicolons.csv": lambda path: TABLE.to_csv(path, index=False, sep=";"),
    "t.tsv": lambda path: TABLE.to_csv(path, index=False, sep="\t"),
    "T.TAB": lambda path: TABLE.to_csv(path, index=False, sep="\t"),
    "quoted.csv": lambda path: TABLE.to_csv(path, index=False, quoting=1),
    "windows.csv": lambda path: TABLE.to_csv(path, index=False, lineterminator="\r\n"),
    "mark.csv": lambda path: TABLE.to_csv(path, index=False, encoding="utf-8-sig"),
    "blank_lines.csv": lambda path: path.write_text("\n\n" + TABLE.to_csv(index=False).replace("\n", "\n\n")),
    "spaces.csv": lambda path: path.write_text(TABLE.to_csv(index=False).replace(",", " , ").replace("oak", "oak")),
    "t.parquet": lambda path: TABLE.to_parquet(path, index=False),
    "category.pq": lambda path: TABLE.astype({"kind": "category"}).to_parquet(path, index=False),
    "t.npz": write_npz,
    "dense.arff": lambda path: write_arff(path, sparse=False),
    "sparse.arff": lambda path: write_arff(path, sparse=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_all_formats_hold_the_same(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    sheet = read_sheet(path)
    assert sheet.source == str(path)
    assert sheet.n_rows == 7
    assert set(sheet.names) == set(TABLE.columns)
    features = [sheet.names.index(name) for name in NAMES]
    targets = [sheet.names.index(name) for name in ("y1", "y2")]
    np.testing.assert_array_equal(dense(sheet.matrix(features)), X)  # to the last bit
    np.testing.assert_array_equal(sheet.dense(targets), Y)
    kind = sheet.names.index("kind")
    assert kind in sheet.texts
    assert sheet.is_category(kind)
    assert [label.strip() for label in sheet.labels(kind)] == KINDS
    assert all(j not in sheet.texts and not sheet.is_category(j) for j in (*features, *targets))


@pytest.mark.parametrize("suffix", [".libsvm", ".svm", ".svmlight", ".svm.gz", ".libsvm.bz2"])
@pytest.mark.parametrize("first_index", [0, 1])
def test_libsvm(tmp_path, suffix, first_index):
    plain, path = tmp_path / "plain", tmp_path / f"t{suffix}"
    dump_svmlight_file(X, Y[:, 0], str(plain), zero_based=first_index == 0)
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(plain.read_bytes()))
    sheet = read_sheet(path)
    assert sheet.names.first == first_index
    assert sheet.names == (*(str(j + first_index) for j in range(4)), "label")
    assert sheet.matrix([0, 1, 2, 3]).format == "csr"
    np.testing.assert_allclose(dense(sheet.matrix([0, 1, 2, 3])), X, rtol=1e-14)
    np.testing.assert_allclose(sheet.dense(sheet.suggested_targets)[:, 0], Y[:, 0], rtol=1e-14)


def test_libsvm_with_lists_of_labels(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1,3 1:2 2:1\n3 2:5\n 1:1\n1,7 1:1\n")
    sheet = read_sheet(path)
    assert [sheet.names[j] for j in sheet.suggested_targets] == ["label 1", "label 3", "label 7"]
    expected = [[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
    np.testing.assert_array_equal(sheet.dense(sheet.suggested_targets), expected)


def test_libsvm_keeps_the_counting_of_a_model(tmp_path):
    """A file without column 0 counts from 0 all the same if the fit did."""
    path = tmp_path / "t.svm"
    path.write_text("1 2:5\n2 1:4\n")
    assert read_sheet(path).names == ("1", "2", "label")
    assert read_sheet(path, first_index=0).names == ("0", "1", "2", "label")
    np.testing.assert_array_equal(dense(read_sheet(path, first_index=0).matrix([0, 1, 2])), [[0, 0, 5], [0, 4, 0]])
    path.write_text("1 0:5\n")
    with pytest.raises(TableError, match="it has the index 0, but columns count from 1"):
        read_sheet(path, first_index=1)


def test_npz_with_sparse_pieces_and_vectors(tmp_path):
    matrix = sp.csr_matrix(X)
    pieces = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    np.savez(tmp_path / "t.npz", **pieces, y=KINDS, age=np.arange(7), ids=np.arange(70, 77))
    sheet = read_sheet(tmp_path / "t.npz")
    assert sheet.names == ("x1", "x2", "x3", "x4", "y", "age")
    assert sheet.auxiliary == range(4, 6)
    assert sheet.suggested_targets == (4,)
    assert sheet.index == ("70", "71", "72", "73", "74", "75", "76")
    np.testing.assert_array_equal(dense(sheet.matrix([0, 1, 2, 3])), X)
    assert sheet.labels(4) == KINDS


def test_npz_with_text_as_bytes(tmp_path):
    """As HDF5 and older files have it."""
    np.savez(tmp_path / "t.npz", X=X, y=np.array(KINDS, dtype="S"), when=np.arange(7).astype("datetime64[D]"))
    sheet = read_sheet(tmp_path / "t.npz")
    assert sheet.labels(4) == KINDS
    assert sheet.labels(5)[1] == "1970-01-02"
    assert load_table(tmp_path / "t.npz", Reading()).classes == ["elm", "fir", "oak"]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_npz_of_scipy(tmp_path, kind):
    sp.save_npz(tmp_path / "t.npz", kind(X))
    sheet = read_sheet(tmp_path / "t.npz")
    assert sheet.suggested_targets == ()
    np.testing.assert_array_equal(dense(sheet.matrix(range(4))), X)


def test_npz_keeps_single_precision(tmp_path):
    np.savez(tmp_path / "t.npz", X=X.astype(np.float32), y=Y[:, 0])
    assert read_sheet(tmp_path / "t.npz").matrix(range(4)).dtype == np.float32


def test_the_format_can_be_named(tmp_path):
    path = tmp_path / "data.table"
    TABLE.to_csv(path, index=False, sep="\t")
    assert read_sheet(path, format="tsv").names == tuple(TABLE.columns)
    with pytest.raises(TableError, match=r"suffix '.table' says no format that .* Known are .csv, .*--format"):
        read_sheet(path)
    with pytest.raises(TableError, match="format must be one of csv, tsv"):
        read_sheet(path, format="xlsx")


def test_suffixes_are_for_one_format_each():
    suffixes = [suffix for form in FORMATS.values() for suffix in form.suffixes]
    assert len(suffixes) == len(set(suffixes))


# Cells --------------------------------------------------------------------------------------------------


def test_cells_of_a_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        'number,whole,word,flag,gaps,quoted\n1.5,1,north,true,,"NA"\n-2e3,2,NA,false,NA,"a, b"\n inf ,3,,true,nan,""\n'
    )
    sheet = read_sheet(path)
    assert sheet.texts == {2, 5}
    assert [sheet.is_category(j) for j in range(6)] == [False, False, True, True, False, True]
    np.testing.assert_array_equal(sheet.dense([0, 1, 3]), [[1.5, 1, 1], [-2000, 2, 0], [np.inf, 3, 1]])
    assert np.isnan(sheet.dense([4])).all()
    assert sheet.labels(1) == [1, 2, 3]
    assert sheet.labels(2) == ["north", None, None]
    assert sheet.labels(3) == [True, False, True]
    assert sheet.labels(5) == ["NA", "a, b", None]  # words in quotes are text, but nothing is nothing


def test_a_fraction_that_is_text_further_down(tmp_path):
    """The first rows say that a column is numbers, a later one that it is not."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1.5,2.5\n" * 300 + "1.5,unknown\n")
    sheet = read_sheet(path)
    assert sheet.texts == {1}
    assert sheet.labels(1)[-1] == "unknown"


def test_whole_numbers_that_become_fractions(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 300 + "1.5,2\n")
    sheet = read_sheet(path)
    assert sheet.dense([0])[-1, 0] == 1.5
    assert sheet.labels(0)[0] == 1


def test_ids_keep_their_zeros(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a\n007,1\n12345678901234567890,2\n")
    for given in ("id", "1"):
        assert read_sheet(path, text_columns=(given,)).labels(0) == ["007", "12345678901234567890"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_nameless_first_column_names_the_rows(tmp_path, suffix):
    """As pandas and R write row names."""
    frame = pd.DataFrame(X, columns=NAMES, index=[f"s{i}" for i in range(7)])
    path = tmp_path / f"t{suffix}"
    frame.to_csv(path) if suffix == ".csv" else frame.to_parquet(path)
    sheet = read_sheet(path)
    assert sheet.names == tuple(NAMES)
    assert sheet.index == tuple(frame.index)


def test_numbered_columns_are_names(tmp_path):
    pd.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    assert read_sheet(tmp_path / "t.csv").names == ("0", "1", "2", "3")


def test_types_of_parquet(tmp_path):
    columns = {
        "half": pa.array([1.5, None], pa.float32()),
        "small": pa.array([1, 2], pa.uint8()),
        "money": pa.array([1, 2], pa.decimal128(9, 2)),
        "words": pa.array(["u", None]).dictionary_encode(),
        "day": pa.array([1, 2], pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    sheet = read_sheet(tmp_path / "t.parquet")
    assert sheet.texts == {3, 4}
    assert [sheet.is_category(j) for j in range(5)] == [False, False, False, True, True]
    np.testing.assert_array_equal(sheet.dense([0, 1, 2]), [[1.5, 1, 1], [np.nan, 2, 2]])
    assert sheet.labels(3) == ["u", None]
    assert sheet.labels(4) == ["1970-01-02", "1970-01-03"]


def test_numbers_that_pandas_calls_categories(tmp_path):
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.5], "level": pd.Categorical([3, 1, 3])})
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    sheet = read_sheet(tmp_path / "t.parquet")
    assert sheet.texts == set()
    assert [sheet.is_category(j) for j in range(2)] == [False, True]
    assert sheet.labels(1) == [3, 1, 3]


def test_arff_as_it_is_written(tmp_path):
    """Quoted names and values, comments, gaps, strings, labels by MEKA's note."""
    path = tmp_path / "t.arff"
    path.write_text(
        "% a comment\n@RELATION 'trees: -C 2'\n@attribute 'is it, a tree' {0,1}\n@attribute tall {no, 'very, very'}\n"
        "@attribute \"a name\" real\n@attribute note string\n@attribute day DATE 'yyyy'\n@data\n"
        "1,'very, very',2.5,'it\\'s old',2020\n0,no,?,'?',2021\n"
    )
    sheet = read_sheet(path)
    assert sheet.names == ("is it, a tree", "tall", "a name", "note", "day")
    assert sheet.suggested_targets == (0, 1)
    assert sheet.is_category(0)
    np.testing.assert_array_equal(sheet.dense([0, 2]), [[1, 2.5], [0, np.nan]])
    assert sheet.labels(0) == [1, 0]
    assert sheet.labels(1) == ["very, very", "no"]
    assert sheet.labels(3) == ["it's old", "?"]
    assert sheet.labels(4) == ["2020", "2021"]


def test_meka_labels_at_the_end(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation 'x: -C -1'\n@attribute a real\n@attribute b real\n@data\n1,2\n")
    assert read_sheet(path).suggested_targets == (1,)


def test_wide_files_are_read_in_no_time(tmp_path):
    """Ten times as many columns must not cost a hundred times as much: this takes a tenth of a second or so."""
    values = RNG.standard_normal((20, 20_000))
    pd.DataFrame(values, columns=[f"gene{j}" for j in range(20_000)]).to_csv(tmp_path / "wide.csv", index=False)
    started = time.process_time()
    sheet = read_sheet(tmp_path / "wide.csv")
    read = sheet.matrix(range(20_000))
    assert time.process_time() - started < 4.0
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("t.csv", "row 3 (below the header) of column 'b' (column 2)"),
        ("t.parquet", "row 3 of column 'b' (column 2)"),
        ("named.csv", "row 3 (below the header) of column 'b'"),
    ],
)
def test_where_a_cell_is(tmp_path, name, place):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    path = tmp_path / name
    frame.to_parquet(path, index=False) if path.suffix == ".parquet" else frame.to_csv(path, index=name == "named.csv")
    assert read_sheet(path).place(2, 1) == place


# Transposed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("corner", ["gene", ""])
def test_features_in_rows(tmp_path, suffix, corner):
    frame = pd.DataFrame(X.T, columns=[f"s{i}" for i in range(7)], index=pd.Index(NAMES, name=corner or None))
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        frame.reset_index(names=corner or "__index_level_0__").to_parquet(path, index=False)
    else:
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",")
    sheet = read_sheet(path, transpose=True)
    assert sheet.names == tuple(NAMES)
    assert sheet.index == tuple(f"s{i}" for i in range(7))
    np.testing.assert_array_equal(sheet.matrix(range(4)), X)


def test_a_row_of_words_among_numbers(tmp_path):
    """Every column of the file is mixed, and the rows are still told apart."""
    path = tmp_path / "t.csv"
    path.write_text("gene,s1,s2,s3\na,1,2.5,\nkind,oak,elm,oak\nb,4,5,6\n")
    sheet = read_sheet(path, transpose=True)
    assert sheet.texts == {1}
    np.testing.assert_array_equal(sheet.matrix([0, 2]), [[1, 4], [2.5, 5], [np.nan, 6]])
    assert sheet.labels(1) == ["oak", "elm", "oak"]
    assert sheet.place(1, 1) == "row 2 (below the header, feature 'kind') of column 's2'"
    path.write_text(
        "gene,s1,s2,s3\na,1,2,true\nkind,oak,2,false\n"
    )  # of two samples all cells are numbers or truth values
    sheet = read_sheet(path, transpose=True)
    np.testing.assert_array_equal(sheet.matrix([0]), [[1], [2], [1]])
    assert sheet.labels(1) == ["oak", "2", "False"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gene\na\nb\n", "has one column"),
        ("gene,s1\na,1\na,2\n", "has 1 feature name more than once: 'a'"),
        ("gene,s1\na,1\n,2\n", "feature 2 has no name. Give it one"),
    ],
)
def test_transposed_files_that_are_wrong(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match=message):
        read_sheet(tmp_path / "t.csv", transpose=True)


def test_other_formats_have_samples_in_rows(tmp_path):
    write_npz(tmp_path / "t.npz")
    with pytest.raises(TableError, match="--transpose is for CSV, TSV and Parquet"):
        read_sheet(tmp_path / "t.npz", transpose=True)


# The seam for matrices that stay on disk -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.npy", "folder"])
@pytest.mark.parametrize("is_small", [True, False])
def test_large_formats_go_to_the_designs(tmp_path, monkeypatch, name, is_small):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        np.save(path / "part1.npy", X[:2])
        np.save(path / "part2.npy", X[2:])
    else:
        np.save(path, X)
    if not is_small:
        monkeypatch.setattr("groupowl.designs._SMALL_SHARE", 1e12)
    sheet = read_sheet(path)
    assert sheet.names == ("x1", "x2", "x3", "x4")
    assert isinstance(sheet.X, MemmapDesign) is not is_small
    matrix = sheet.matrix([0, 2])
    values = matrix if is_small else matrix.matmul(np.eye(2))
    np.testing.assert_array_equal(values, X[:, [0, 2]])


def test_one_of_several_arrays_on_disk(tmp_path):
    """By the name that the refusal of the whole file suggests."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["early"], file["late"] = X, 2.0 * X
    with pytest.raises(TableError, match="has 2 two-dimensional arrays") as refused:
        read_sheet(tmp_path / "t.h5")
    suggested = re.search("'([^']*::[^']*)'", str(refused.value)).group(1)
    np.testing.assert_array_equal(read_sheet(suggested).X, X)
    np.testing.assert_array_equal(read_sheet(f"{tmp_path}/t.h5::late").X, 2.0 * X)
    with pytest.raises(TableError, match="has no array 'noon'"):
        read_sheet(f"{tmp_path}/t.h5::noon")


def test_gaps_in_a_matrix_on_disk_are_no_matter_where_they_are_not_used(tmp_path):
    Z = X.copy()
    Z[1, 2] = np.nan
    np.save(tmp_path / "t.npy", Z)
    table = load_table(tmp_path / "t.npy", Reading(Roles(targets=("x1",), drop=("x3",))))
    np.testing.assert_array_equal(table.X, X[:, [1, 3]])


def test_large_formats_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "t.npy").write_bytes(b"anything")
    with pytest.raises(TableError, match="no array that NumPy could read"):
        read_sheet(tmp_path / "t.npy")


def test_zeros_after_a_compressed_file_are_padding(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,2\n3,4\n") + bytes(512))
    assert read_sheet(path).n_rows == 2
