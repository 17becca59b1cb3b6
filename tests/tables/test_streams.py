"""Files that are streamed into a matrix on disk: the same numbers, in bounded memory, with what is beside it."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import groupowl as go
from groupowl import designs
from groupowl.designs import Design
from groupowl.tables import (
    Dialect,
    Kept,
    Reading,
    Roles,
    TableError,
    convert,
    find_files,
    load_features,
    load_table,
    read_sheet,
    streams,
)
from groupowl.tables.gaps import fills_of


def make_frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=["a", "b", "c", "d"])
    frame = frame.assign(id=[f"{i:03d}" for i in range(n)], site=["u", "v"] * (n // 2), y=frame["a"] - frame["b"])
    frame.loc[5, "c"] = np.nan
    return frame


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(streams, "_BLOCK_BYTES", 2000)


@pytest.fixture(params=[False, True], ids=["in memory", "on disk"])
def is_on_disk(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(designs, "_SMALL_SHARE", 10**12)
    return request.param


def quiet(done, total, n_samples):
    assert 0 <= done <= total


def converted(files, folder, reading=None, **kept):
    folder.mkdir()
    return convert(files, folder, Kept(**kept), reading or Reading(Roles(id_column="id")), quiet)


def write_frame(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=70)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_a_matrix_on_disk_is_the_table_of_the_file(tmp_path, name, is_on_disk):
    frame = make_frame()
    write_frame(frame, tmp_path / name)
    found = converted([tmp_path / name], tmp_path / "big", targets=("y",))
    assert (found.n_samples, found.n_features, found.n_missing) == (200, 4, 1)
    assert (found.beside, found.texts) == (("id", "site", "y"), ("site",))
    reading = Reading(Roles(id_column="id", groups="site"), missing="mean")
    table = load_table(tmp_path / "big", reading)
    expected = load_table(
        tmp_path / name, Reading(Roles(id_column="id", groups="site", targets=("y",)), missing="mean")
    )
    assert isinstance(table.X, Design) == is_on_disk
    assert list(table.feature_names) == list(expected.feature_names) == ["a", "b", "c", "d"]
    assert (table.ids, table.target_names) == (expected.ids, ("y",))
    np.testing.assert_array_equal(table.groups, expected.groups)
    np.testing.assert_array_equal(table.y, expected.y)
    (filled, fills), (same, same_fills) = table.filled("mean"), expected.filled("mean")
    np.testing.assert_allclose(fills, same_fills, rtol=1e-13)
    X = filled.X.in_memory() if is_on_disk else filled.X
    np.testing.assert_allclose(X, same.X, rtol=1e-13)
    assert filled.notes[-1] == same.notes[-1]
    assert load_table(tmp_path / "big", Reading(missing="drop")).n_samples == 199
    assert go.MemmapDesign(tmp_path / "big").feature_names == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_medians_of_a_matrix_on_disk_are_those_of_the_table(tmp_path, monkeypatch, at_once):
    """Whatever the number of columns that fit into memory; of some rows as well, in memory or not."""
    frame = make_frame()
    frame.loc[[3, 150, 151], "b"] = np.nan
    frame.loc[20:90, "d"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    converted([tmp_path / "t.csv"], tmp_path / "big", targets=("y",))
    beside = Roles(id_column="id", groups="site", targets=("y",))
    expected = load_table(tmp_path / "t.csv", Reading(beside, missing="median"))
    design = go.MemmapDesign(tmp_path / "big")
    monkeypatch.setattr(type(design), "_available_bytes", at_once * 4 * 8 * design.n_samples)
    passes = []
    whole = type(design).in_memory
    monkeypatch.setattr(type(design), "in_memory", lambda self: passes.append(self.shape[1]) or whole(self))
    assert fills_of(design, "median") == expected.filled("median")[1]
    assert passes == {1: [1] * 4, 3: [3, 1], 100: [4]}[at_once]
    some = np.arange(20, 90, 3)
    found = fills_of(design.rows(some), "median")
    assert found == fills_of(expected.X[some], "median")
    assert found[3] == 0.0  # where there is nothing


@pytest.mark.usefixtures("small_blocks")
def test_several_files_are_below_each_other(tmp_path):
    frame = make_frame()
    for k in range(12):
        write_frame(frame.iloc[k::12], tmp_path / f"part-{k}.csv")
    files = find_files([tmp_path / "part-*.csv"])
    assert [path.name for path in files] == [f"part-{k}.csv" for k in range(12)]  # 2 before 10
    (tmp_path / "big").mkdir()
    seen = []
    convert(files, tmp_path / "big", Kept(("y",)), Reading(Roles(id_column="id")), lambda *now: seen.append(now))
    assert seen == sorted(seen)
    assert seen[-1] == (sum(path.stat().st_size for path in files),) * 2 + (200,)
    table = load_table(tmp_path / "big", Reading(missing="mean"))
    together = load_table(files, Reading(Roles(targets=("y",), drop=("id,site",)), missing="mean"))
    np.testing.assert_array_equal(table.y[:, 0], pd.concat([frame.iloc[k::12] for k in range(12)])["y"])
    np.testing.assert_array_equal(together.y, table.y)
    np.testing.assert_array_equal(together.X, read_sheet(tmp_path / "big").matrix(range(4)))


def test_memory_is_that_of_a_block_not_of_the_file(tmp_path, monkeypatch):
    """Files of 20 MB of text and 8 MB of numbers take less than 4 MB in pieces of 64 kB, of which Arrow has 32."""
    monkeypatch.setattr(streams, "_BLOCK_BYTES", 1 << 16)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50_000, 20)), columns=[f"g{j}" for j in range(20)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    # one group of rows, 8 MB, of which readers have a page of each column
    pages = {"use_dictionary": False, "data_page_size": 1 << 13, "write_batch_size": 100}
    frame.to_parquet(tmp_path / "t.parquet", compression="none", **pages)
    for name, n_bytes in (("t.csv", 19_000_000), ("t.parquet", 8_000_000)):
        assert (tmp_path / name).stat().st_size > n_bytes
        pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
        pa.set_memory_pool(pool)
        tracemalloc.start()
        try:
            converted([tmp_path / name], tmp_path / name.replace(".", "_"), Reading())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(before)
        assert peak < 4_000_000
        assert 0 < pool.max_memory() < 4_000_000
    for name in ("t_csv", "t_parquet"):
        np.testing.assert_array_equal(np.load(tmp_path / name / "X.npy"), frame.to_numpy())


def test_cells_are_written_as_people_do(tmp_path):
    rows = "".join(f"{i}.{i:03d},5;{i},25;r{i}\n" for i in range(1, 50))
    (tmp_path / "t.csv").write_bytes(("größe;b;name\n" + rows).encode("cp1252"))
    dialect = Dialect(decimal=",", thousands=".", encoding="cp1252")
    converted([tmp_path / "t.csv"], tmp_path / "big", Reading(dialect=dialect))
    numbers = np.arange(1, 50)
    np.testing.assert_array_equal(np.load(tmp_path / "big" / "X.npy"), np.c_[numbers * 1001 + 0.5, numbers + 0.25])
    assert list(read_sheet(tmp_path / "big").names) == ["größe", "b", "name"]


def test_files_without_header(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3\n4,5,6\n")
    converted([tmp_path / "t.csv"], tmp_path / "big", Reading(dialect=Dialect(header=False)), targets=("-1",))
    table = load_table(tmp_path / "big", Reading())
    assert (list(table.feature_names), table.target_names) == (["x1", "x2"], ("x3",))


def test_names_of_rows_stay_names_of_rows(tmp_path):
    frame = make_frame().drop(columns=["id", "site"]).set_index(pd.Index([f"r{i}" for i in range(200)]))
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("csv", "parquet"):
        converted([tmp_path / f"t.{name}"], tmp_path / name, Reading(), targets=("y",))
        assert load_table(tmp_path / name, Reading(missing="mean")).ids[:2] == ("r0", "r1")


def test_predictions_from_the_disk_ignore_what_was_not_selected(tmp_path, monkeypatch):
    monkeypatch.setattr(designs, "_SMALL_SHARE", 10**12)
    frame = make_frame().drop(columns=["id", "site", "y"])
    frame["d"] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    found = load_features(tmp_path / "t.parquet", Reading(format="large"), list("abcd"), needed=["a", "b"])
    assert np.isfinite(found.X.matmul(np.array([[1.0], [1.0], [0.0], [0.0]]))).sum() == 200
    with pytest.raises(TableError, match=r"has missing values of 'c' \(1\)\. Use --missing drop"):
        load_features(tmp_path / "t.parquet", Reading(format="large"), list("abcd"), needed=["a", "b", "c"])
    kept = load_features(
        tmp_path / "t.parquet", Reading(format="large", missing="drop"), list("abcd"), needed=["a", "b", "c"]
    )
    assert kept.rows.tolist() == [i for i in range(200) if i != 5]


# What is wrong ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,two,3", r"column 'b' has 'two' in row 1001, which is not a number, unlike its first cells\. .* --drop b"),
        ("1,2", r"row 1001 below the header has 2 cells, but the header has 3 names"),
        ("1,inf,3", r"infinite values in column 'b'\. Correct them, or use --drop b"),
    ],
)
def test_what_is_wrong_further_down_is_said(tmp_path, line, message):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2,3\n" * 1000 + line + "\n" + "1,2,3\n" * 1000)
    with pytest.raises(TableError, match=message):
        converted([tmp_path / "t.csv"], tmp_path / "big", Reading())


@pytest.mark.parametrize("mark", [None, ","])
def test_quoted_cells_are_missing_values_as_in_a_sheet(tmp_path, small_blocks, mark):
    lines = ['1,"-999","NA","u"\n', '2,"",4.5,"NA"\n', '3,"7",,""\n', '"4",8,"1.5",-999\n']
    (tmp_path / "t.csv").write_text("y,a,b,label\n" + "".join(lines) * 300)
    reading = Reading(Roles(), dialect=Dialect(na=("-999",), thousands=mark))
    found = converted([tmp_path / "t.csv"], tmp_path / "big", reading, targets=("y", "label"))
    sheet = read_sheet(tmp_path / "big")
    assert (found.texts, found.n_missing) == ((), 1200)
    assert sheet.labels(sheet.names.index("label")) == ["u", "NA", None, None] * 300
    np.testing.assert_array_equal(sheet.dense([0, 1])[:4], [[np.nan, np.nan], [np.nan, 4.5], [7, np.nan], [8, 1.5]])


def test_other_text_than_utf_8_says_what_to_type(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,n,y\n1,ö,2\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"byte 0xf6 in line 2\. Use --encoding cp1252"):
        converted([tmp_path / "t.csv"], tmp_path / "big", Reading())


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    (tmp_path / "t1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t2.csv").write_text("a,c\n1,2\n")
    (tmp_path / "t3.csv").write_text("b,a\n1,2\n")
    differs = r"t2.csv does not have the columns of .*t1.csv: it lacks 'b' and has also 'c'\."
    with pytest.raises(TableError, match=differs):
        converted([tmp_path / "t1.csv", tmp_path / "t2.csv"], tmp_path / "x", Reading())
    with pytest.raises(TableError, match=r"it has them in another order"):
        converted([tmp_path / "t1.csv", tmp_path / "t3.csv"], tmp_path / "y", Reading())
    with pytest.raises(TableError, match=differs):
        load_table([tmp_path / "t1.csv", tmp_path / "t2.csv"], Reading(Roles(targets=("a",))))
    table = load_table([tmp_path / "t1.csv", tmp_path / "t3.csv"], Reading(Roles(targets=("a",))))
    assert (table.X.tolist(), table.y.tolist()) == ([[2.0], [1.0]], [[1.0], [2.0]])


def test_pieces_of_columns_find_a_common_kind(tmp_path):
    for k, cells in enumerate((("1", "NA", "1", "x"), ("0.5", "2", "", "3"))):
        (tmp_path / f"t{k}.csv").write_text("a,b,c,d\n" + ",".join(cells) + "\n")
    (sheet,) = [streams_of(tmp_path)]
    assert [sheet.labels(j) for j in range(4)] == [[1, 0.5], [None, 2], [1, None], ["x", "3"]]


def streams_of(folder):
    from groupowl.tables.readers import read_sheets

    return read_sheets(find_files([folder / "t*.csv"]))


def test_a_pattern_without_files_and_files_that_are_no_blocks_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"no file matches '.*part-\*\.csv'\. Check the pattern"):
        find_files([tmp_path / "part-*.csv"])
    (tmp_path / "star[1].csv").write_text("a,b\n1,2\n")
    assert find_files([tmp_path / "star[1].csv"]) == [tmp_path / "star[1].csv"]  # a name, not a pattern
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    np.savez(tmp_path / "b.npz", X=np.eye(3))
    with pytest.raises(TableError, match=r"several files are read only if they are CSV.* give the folder"):
        load_table([tmp_path / "a.npz", tmp_path / "b.npz"], Reading())
    with pytest.raises(TableError, match=r"is a NumPy archive: only CSV files, TSV and Parquet files are streamed"):
        converted([tmp_path / "a.npz"], tmp_path / "big")


def test_gz_is_streamed_by_its_own_size(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000))
    seen = []
    (tmp_path / "big").mkdir()
    convert([tmp_path / "t.csv.gz"], tmp_path / "big", Kept(), Reading(), lambda *now: seen.append(now))
    size = (tmp_path / "t.csv.gz").stat().st_size
    assert seen[-1] == (size, size, 1000)
