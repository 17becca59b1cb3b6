"""Columns get their roles, rows of two files find each other, and nothing that is wrong slips through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from groupowl.tables import MissingTargetsError, Reading, Roles, TableError, load_features, load_table, read_sheet
from groupowl.tables.sheet import Sheet
from groupowl.tables.table import NumberedNames

NAMES = NumberedNames(others=("id", "gene1", "gene2", "gene10", "y1", "y2", "a,b", "3"))
FRAME = pd.DataFrame(
    {
        "id": ["p", "q", "r", "s"],
        "batch": ["u", "u", "v", "v"],
        "w": [1, 2, 0, 3],
        "a": [0.5, 1.5, 2.5, 3.5],
        "b": [1.0, 0.0, 1.0, 0.0],
        "c": [9.0, 8.0, 7.0, 6.0],
        "y1": [1.0, 2.0, 3.0, 4.0],
        "y2": [0.1, 0.2, 0.3, 0.4],
        "kind": ["oak", "elm", "elm", "oak"],
    }
)


@pytest.fixture
def write(tmp_path):
    """Write a frame, or text, to a file of a name."""

    def write_file(content, name="t.csv"):
        path = tmp_path / name
        path.write_text(content) if isinstance(content, str) else content.to_csv(path, index=False)
        return path

    return write_file


def load(path, **roles):
    return load_table(path, Reading(Roles(**roles)))


# Names of columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["y1"], [4]),
        (["y1,y2"], [4, 5]),
        (["y2", "y1"], [5, 4]),  # in the order of the user
        (["y1, y2 ,y1"], [4, 5]),  # each once
        (["2"], [1]),
        (["-1"], [7]),
        (["-8"], [0]),
        (["+2"], [1]),
        (["3"], [7]),  # a name is a name, even of digits
        (["a,b"], [6]),  # and with a comma
        (["gene*"], [1, 2, 3]),
        (["gene?"], [1, 2]),
        (["y[12]"], [4, 5]),
        (["gene*,y1", "2"], [1, 2, 3, 4]),
    ],
)
def test_columns_by_name_position_and_pattern(given, expected):
    assert Sheet("t.csv", NAMES).find_columns("--targets", given) == expected


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("gen1", ["--targets: t.csv has no column 'gen1'.", "Did you mean 'gene1'"]),
        ("zebra", ["has no column 'zebra'", "Columns: 'id', 'gene1', 'gene2', 'gene10', 'y1' and 3 more"]),
        ("zebra*", ["has no column 'zebra*'"]),
        ("0", ["position 0, but t.csv has 8 columns", "count from 1"]),
        ("9", ["position 9"]),
        ("-9", ["position -9"]),
        ("y1,,y2", ["has no column ''"]),
        ("", ["has no column ''"]),
        ("Y1", ["has no column 'Y1'"]),  # capitals count
    ],
)
def test_columns_that_are_not_there(given, parts):
    with pytest.raises(TableError) as caught:
        Sheet("t.csv", NAMES).find_columns("--targets", [given])
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_one_column_where_one_is_meant():
    assert Sheet("t.csv", NAMES).find_column("--groups", "-1") == 7
    with pytest.raises(TableError, match=r"--groups: 'y\*' names 2 columns of t\.csv: 'y1', 'y2'\. Name one"):
        Sheet("t.csv", NAMES).find_column("--groups", "y*")


# Roles --------------------------------------------------------------------------------------------------


def test_every_role(write):
    table = load(
        write(FRAME),
        targets=("y*",),
        drop=("kind",),
        groups="batch",
        sample_weight="w",
        id_column="id",
        unpenalized=("c",),
    )
    assert table.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(table.X, FRAME[["a", "b", "c"]])
    np.testing.assert_array_equal(table.y, FRAME[["y1", "y2"]])
    assert table.target_names == ("y1", "y2")
    assert table.task == "regression"
    assert table.ids == ("p", "q", "r", "s")
    assert table.groups.tolist() == ["u", "u", "v", "v"]
    assert table.sample_weight.tolist() == [1, 2, 0, 3]
    assert table.unpenalized == ("c",)
    assert table.ignored == ("kind",)
    assert table.notes == ()


def test_rows_of_a_table(write):
    table = load(write(FRAME), targets=("y1",), drop=("kind",), groups="batch", sample_weight="w", id_column="id")
    part = table.rows(np.array([2, 0]))
    assert part.ids == ("r", "p")
    np.testing.assert_array_equal(part.y, [[3.0], [1.0]])
    np.testing.assert_array_equal(part.X, table.X[[2, 0]])
    assert part.groups.tolist() == ["v", "u"]
    assert part.sample_weight.tolist() == [0, 1]
    assert part.feature_names == table.feature_names


def test_frames_have_names(write):
    table = load(write(FRAME), targets=("y1", "y2"), drop=("id,batch,kind",))
    assert table.feature_names == ("w", "a", "b", "c")
    assert list(table.target_frame.columns) == ["y1", "y2"]


@pytest.mark.parametrize(
    ("targets", "task", "expected"),
    [
        ("kind", "auto", "classification"),
        ("y1", "auto", "regression"),
        ("w", "auto", "regression"),
        ("w", "classification", "classification"),
        ("b", "regression", "regression"),
        ("flag", "auto", "classification"),
        ("flag", "regression", "regression"),
        ("flag,w", "auto", "regression"),
    ],
)
def test_the_task_follows_the_target(write, targets, task, expected):
    frame = FRAME.assign(flag=[True, False, True, True])
    others = [name for name in ("id", "batch", "kind") if name not in targets]
    table = load(write(frame), targets=(targets,), drop=(",".join(others),), task=task)
    assert table.task == expected
    assert table.y.ndim == (1 if expected == "classification" else 2)
    if targets == "w" and task == "classification":
        assert table.classes == [0, 1, 2, 3]


def test_few_whole_numbers_are_worth_a_note(write):
    frame = pd.DataFrame({"a": np.arange(8.0), "y": [1, 2, 1, 2, 1, 2, 1, 2]})
    table = load(write(frame), targets=("y",))
    assert "Target 'y' has 2 different values" in table.notes[0]
    assert load(write(frame), targets=("y",), task="regression").notes == ()
    assert load(write(frame.assign(y=np.arange(8))), targets=("y",)).notes == ()


def test_formats_that_name_their_targets(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(3), Y=np.eye(3)[:, :2], target_names=["u", "v"], batch=[1, 1, 2])
    table = load(tmp_path / "t.npz", groups="batch")
    assert (table.feature_names, table.target_names) == (("x1", "x2", "x3"), ("u", "v"))
    assert table.groups.tolist() == ["1", "1", "2"]
    (tmp_path / "t.svm").write_text("1 1:2 3:1\n2 2:1\n")
    sparse = load(tmp_path / "t.svm")
    assert sp.issparse(sparse.X)
    assert sparse.target_names == ("label",)


def test_a_suggested_target_may_be_something_else(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(3), Y=np.arange(6.0).reshape(3, 2))
    table = load(tmp_path / "t.npz", sample_weight="y2")
    assert table.target_names == ("y1",)
    assert table.sample_weight.tolist() == [1, 3, 5]
    with pytest.raises(TableError, match=r"t\.npz has no column left for a target\. Check"):
        load(tmp_path / "t.npz", sample_weight="y2", groups="y1")


def test_vectors_of_an_archive_are_no_features(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=[1.0, 2, 3, 4], age=[3.0, 1, 2, 5])
    assert load(tmp_path / "t.npz").feature_names == ("x1", "x2", "x3", "x4")
    table = load(tmp_path / "t.npz", targets=("age",))
    assert (table.feature_names, table.target_names) == (("x1", "x2", "x3", "x4"), ("age",))
    np.testing.assert_array_equal(table.y[:, 0], [3, 1, 2, 5])
    assert table.notes == (f"Not used: 'y' of {tmp_path / 't.npz'}.",)


def test_what_a_table_has_no_place_for_is_told(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=[1.0, 2, 3, 4], Y=np.ones((4, 2)), seeds=[1, 2, 3])
    notes = load(tmp_path / "t.npz").notes
    assert [note.partition(" of ")[0] for note in notes] == ["Array 'Y'", "Array 'seeds'"]
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [0.5, 0.25, 1.0]})
    frame.set_index([pd.Index([1, 1, 2], name="plot"), pd.Index([1, 2, 1], name="tree")]).to_parquet(tmp_path / "t.pq")
    (note,) = load(tmp_path / "t.pq", targets=("y",)).notes
    assert note.endswith("have names of several levels, 'plot', 'tree', which are not used.")


@pytest.mark.parametrize("sparse", [False, True])
def test_a_vector_of_an_archive_may_be_an_unpenalized_feature(tmp_path, sparse):
    X = np.arange(12.0).reshape(4, 3)
    matrix = sp.csr_matrix(X)
    pieces = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    np.savez(tmp_path / "t.npz", **(pieces if sparse else {"X": X}), y=[1.0, 2, 3, 4], age=[3.0, 1, 2, 5])
    table = load(tmp_path / "t.npz", unpenalized=("age,x2",))
    assert table.feature_names == ("x1", "x2", "x3", "age")
    assert table.unpenalized == ("age", "x2")
    found = table.X.toarray() if sparse else table.X
    np.testing.assert_array_equal(found, np.column_stack([X, [3, 1, 2, 5]]))
    sheet = read_sheet(tmp_path / "t.npz")
    assert sheet.dense([sheet.names.index(name) for name in ("age", "x3")]).tolist() == [
        [3, 2],
        [1, 5],
        [2, 8],
        [5, 11],
    ]


# Two files ----------------------------------------------------------------------------------------------

ANSWERS = pd.DataFrame({"id": ["s", "p", "zz", "r"], "y1": [4.0, 1.0, 9.0, 3.0], "y2": [0.4, 0.1, 0.9, 0.3]})


def joined(left, right, **roles):
    return load_table(left, Reading(Roles(**roles), targets_from=str(right)))


def test_targets_from_another_file(write):
    data = write(FRAME.drop(columns=["y1", "y2"]))
    table = joined(data, write(ANSWERS, "answers.csv"), id_column="id", drop=("kind,batch",))
    assert table.ids == ("p", "r", "s")  # in the order of the data
    np.testing.assert_array_equal(table.y, [[1.0, 0.1], [3.0, 0.3], [4.0, 0.4]])
    np.testing.assert_array_equal(table.X[:, 1], [0.5, 2.5, 3.5])
    assert table.match.only_left == ("q",)
    assert table.match.only_right == ("zz",)
    assert [note for note in table.notes if "1 id of" in note and "'q'" in note]
    assert [note for note in table.notes if "1 id of" in note and "'zz'" in note]


def test_targets_that_are_in_the_data_too_are_no_features(write):
    table = joined(write(FRAME), write(ANSWERS, "answers.csv"), id_column="id", drop=("kind,batch",))
    assert table.feature_names == ("w", "a", "b", "c")
    assert {"y1", "y2"} <= set(table.ignored)

    left_out = "Not used: 'y1', 'y2' of "
    assert [note for note in table.notes if note.startswith(left_out) and "answers.csv has them too" in note]


def test_a_name_of_two_columns_with_different_values_is_refused(write):
    data, answers = write(FRAME), write(ANSWERS.assign(b=[7.0, 8.0, 9.0, 0.5]), "answers.csv")
    with pytest.raises(
        TableError, match=r"'b' is a column of .*t\.csv and a target in .* values in 3 samples.*--drop b;"
    ):
        joined(data, answers, id_column="id", drop=("kind,batch",))
    table = joined(data, answers, id_column="id", drop=("kind,batch,b",))  # as the message says
    assert table.feature_names == ("w", "a", "c")
    assert table.target_names == ("y1", "y2", "b")
    with pytest.raises(TableError, match="'y1' in --targets is also in --unpenalized"):
        joined(data, answers, id_column="id", drop=("kind,batch,b",), unpenalized=("y1",))


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_unnamed_columns_of_two_files_are_never_the_same(write, tmp_path, suffix):
    X, Y = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    for name, values in (("X", X), ("Y", Y)):
        np.save(tmp_path / f"{name}.npy", values)
        np.savez(tmp_path / f"{name}.npz", X=values)
    left, right = tmp_path / f"X.{suffix}", tmp_path / f"Y.{suffix}"
    table = joined(left, right)
    assert (table.feature_names, table.target_names) == (("x1", "x2", "x3"), ("y1", "y2"))
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, Y)
    np.testing.assert_array_equal(joined(left, right, targets=("y2",)).y, Y[:, 1:])
    named = write(pd.DataFrame(X, columns=["x1", "y2", "z"]), "X.csv")
    table = joined(named, right)
    assert (table.feature_names, table.target_names) == (("x1", "y2", "z"), ("y_1", "y_2"))
    table = joined(left, write(pd.DataFrame(Y, columns=["x1", "t"]), "Y.csv"))
    assert (table.feature_names, table.target_names) == (("x1", "x2", "x3"), ("x1", "t"))


def test_a_file_that_names_its_targets_gives_only_those(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4))
    np.savez(tmp_path / "t.npz", X=np.ones((4, 2)), y=[1.0, 2.0, 3.0, 4.0])
    assert joined(tmp_path / "X.npy", tmp_path / "t.npz").target_names == ("y",)


def test_weights_and_groups_in_both_files_are_no_targets(write):
    answers = ANSWERS.assign(w=[4, 1, 9, 3])
    table = joined(write(FRAME), write(answers, "answers.csv"), id_column="id", sample_weight="w", drop=("kind,batch",))
    assert table.target_names == ("y1", "y2")
    assert table.sample_weight.tolist() == [1, 0, 3]
    assert [note for note in table.notes if note.startswith("Not used: 'w' of ") and "has them too" in note]


def test_ids_under_two_names_and_some_of_the_targets(write):
    answers = write(ANSWERS.rename(columns={"id": "patient"}), "answers.csv")
    table = joined(write(FRAME), answers, id_column="id=patient", targets=("y2",), drop=("kind,batch,y1",))
    np.testing.assert_array_equal(table.y, [[0.1], [0.3], [0.4]])


def test_groups_and_weights_from_the_other_file(write):
    answers = ANSWERS.assign(house=["x", "y", "y", "z"], size=[4, 1, 9, 3])
    data = FRAME.drop(columns=["batch", "w", "kind", "y1", "y2"])
    table = joined(write(data), write(answers, "answers.csv"), id_column="id", groups="house", sample_weight="size")
    assert table.target_names == ("y1", "y2")
    assert table.groups.tolist() == ["y", "z", "x"]
    assert table.sample_weight.tolist() == [1, 3, 4]


def test_groups_and_weights_of_the_data_are_joined_too(write):
    data = FRAME.drop(columns=["kind", "y1", "y2"])
    table = joined(write(data), write(ANSWERS, "answers.csv"), id_column="id", groups="batch", sample_weight="w")
    assert table.groups.tolist() == ["u", "v", "v"]
    assert table.sample_weight.tolist() == [1, 0, 3]


def test_numbers_as_ids_match_whatever_their_type(write):
    data = pd.DataFrame({"id": ["007", "12", "x"], "a": [1.0, 2.0, 3.0]})
    answers = pd.DataFrame({"id": ["12", "007"], "y": [5.0, 6.0]})
    table = joined(write(data), write(answers, "answers.csv"), id_column="id")
    np.testing.assert_array_equal(table.y[:, 0], [6.0, 5.0])


def test_genes_by_samples_with_answers_by_sample(write):
    text = "gene,p,q,r,s\na,0.5,1.5,2.5,3.5\nb,1,0,1,0\n"
    answers = write(ANSWERS, "answers.csv")
    reading = Reading(Roles(id_column="id"), transpose=True, targets_from=str(answers))
    table = load_table(write(text), reading)
    assert table.feature_names == ("a", "b")
    assert table.ids == ("p", "r", "s")
    np.testing.assert_array_equal(table.y[:, 0], [1.0, 3.0, 4.0])
    np.testing.assert_array_equal(table.X, [[0.5, 1], [2.5, 1], [3.5, 0]])


def test_a_gene_may_be_the_target(write):
    table = load_table(
        write("gene,p,q,r\na,0.5,1.5,2.5\nkind,oak,elm,oak\n"), Reading(Roles(targets=("kind",)), transpose=True)
    )
    assert table.y.tolist() == ["oak", "elm", "oak"]
    assert table.feature_names == ("a",)


def test_without_ids_the_order_counts(write):
    answers = pd.DataFrame({"y": [1.0, 2.0, 3.0, 4.0]})
    table = joined(write(FRAME), write(answers, "answers.csv"), drop=("id,batch,kind",))
    np.testing.assert_array_equal(table.y[:, 0], [1, 2, 3, 4])
    assert "joined in the order of their rows" in table.notes[0]
    with pytest.raises(TableError, match=r"4 samples, but .* has 3\. Without --id-column they are joined in order"):
        joined(write(FRAME), write(answers[:3], "answers.csv"), drop=("id,batch,kind",))


def test_only_rows_with_a_partner_must_be_complete(write):
    data = FRAME[["id", "a", "b"]].assign(a=[0.5, None, 2.5, 3.5])  # row q, which has no answer
    table = joined(write(data), write(ANSWERS, "answers.csv"), id_column="id")
    assert table.ids == ("p", "r", "s")
    kinds = pd.DataFrame({"id": ["zz", "s", "p", "r"], "kind": [None, "oak", "elm", None]})
    with pytest.raises(TableError, match=r"answers.csv: target 'kind' has 1 missing value \(row 4\)"):
        joined(write(data), write(kinds, "answers.csv"), id_column="id")


def test_an_order_that_is_taken_for_lack_of_ids_is_told(write):
    data = FRAME[["a", "b"]].set_index(pd.Index(["p", "q", "r", "s"]))
    path = write("," + data.to_csv().removeprefix(","))
    table = joined(path, write(pd.DataFrame({"y": [1.0, 2.0, 3.0, 4.0]}), "answers.csv"))
    assert table.ids == ("p", "q", "r", "s")
    assert "joined in the order of their rows" in table.notes[0]


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (["p", "q"], ["x", "y"], r"no id of .*t\.csv is in .*answers\.csv: .*'p', 'q', the second 'x', 'y'"),
        (["p", "p"], ["p", "q"], r"t\.csv: 1 id more than once: 'p'"),
        (["p", "q"], ["p", "p"], r"answers\.csv: 1 id more than once: 'p'"),
        (["p", ""], ["p", "q"], r"t\.csv: 1 sample without an id \(row 2\)"),
    ],
)
def test_ids_that_do_not_match(write, left, right, message):
    data, answers = pd.DataFrame({"id": left, "a": [1.0, 2.0]}), pd.DataFrame({"id": right, "y": [1.0, 2.0]})
    with pytest.raises(TableError, match=message):
        joined(write(data), write(answers, "answers.csv"), id_column="id")


# What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roles", "parts"),
    [
        ({}, ["which columns of", "are targets? Name them with --targets", "'id', 'batch'"]),
        ({"targets": ("y1",), "drop": ("kind,y1",)}, ["'y1' in --targets is also in --drop"]),
        ({"targets": ("y1,w",), "sample_weight": "w"}, ["'w' in --targets is also in --drop, --groups, --sam"]),
        ({"targets": ("y1",), "unpenalized": ("y1",)}, ["'y1' in --targets is also in --unpenalized"]),
        ({"targets": ("y1",), "drop": ("c",), "unpenalized": ("c",)}, ["'c' in --unpenalized is also in --drop"]),
        ({"targets": ("y1",)}, ["feature is 'p' in row 1 (below the header) of column 'id' (column 1)", "--drop"]),
        ({"targets": ("y1",), "drop": ("*",)}, ["'y1' in --targets is also in --drop"]),
        ({"targets": ("*",)}, ["has no column left that is a feature"]),
        ({"targets": ("kind,y1",), "drop": ("id,batch",)}, ["target is 'oak'", "no other target in --targets"]),
        ({"targets": ("kind",), "task": "regression", "drop": ("id,batch",)}, ["'oak' in row 1", "--task classifica"]),
        ({"targets": ("y1,y2",), "task": "classification", "drop": ("id,batch,kind",)}, ["takes one target"]),
        ({"targets": ("y2",), "task": "classification", "drop": ("id,batch,kind",)}, ["has fractions such as 0.1"]),
        ({"targets": ("y1",), "drop": ("id,batch,kind,w,a,b,c,y2",)}, ["has no column left that is a feature"]),
        ({"targets": ("y1",), "drop": ("id,batch,kind,y2",), "unpenalized": ("w,a,b,c",)}, ["feature with a penalty"]),
        ({"targets": ("y1",), "sample_weight": "kind", "drop": ("id,batch",)}, ["weight is 'oak' in row 1"]),
    ],
)  # fmt: skip
def test_roles_that_cannot_be(write, roles, parts):
    with pytest.raises(TableError) as caught:
        load(write(FRAME), **roles)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert isinstance(caught.value, MissingTargetsError) == (not roles)


@pytest.mark.parametrize(
    ("changes", "roles", "message"),
    [
        ({"a": [1, None, 2, None], "c": [None, 1, 2, 3]}, {}, "3 missing values in 2 feature columns: 'a' (2), 'c'"),
        ({"a": [0.5, np.inf, 2.5, 1.0]}, {}, "has 1 infinite value in 1 feature column: 'a' (1)"),
        ({"y1": [1.0, None, np.inf, 4.0]}, {}, "has 1 infinite value in 1 target column: 'y1' (1)"),
        ({"w": [1, -2, 0, 1]}, {"sample_weight": "w"}, "row 2 (below the header) of column 'w' (column 3) has the"),
        ({"w": [0, 0, 0, 0]}, {"sample_weight": "w"}, "has the weight 0. Weights are not below 0, and not all"),
        ({"w": [1, None, 0, 1]}, {"sample_weight": "w"}, "has 1 missing value in 1 weight column"),
        ({"batch": ["u", None, "v", "v"]}, {"groups": "batch"}, "--groups 'batch' has 1 missing value (row 2)"),
        ({"kind": ["oak", None, "elm", "elm"]}, {"targets": ("kind",)}, "target 'kind' has 1 missing value (row 2)"),
        ({"a": ["0,5", "1,5", "2,5", "3,5"]}, {}, "Use --decimal , if that is how numbers are written."),
        ({"a": ["1", "2", "x" * 60, "4"]}, {}, "feature is '" + "x" * 40 + "...' in row 3"),
    ],
)  # fmt: skip
def test_cells_that_are_wrong(write, changes, roles, message):
    used = {"targets": ("y1",), "groups": None} | roles
    drop = [name for name in ("id", "batch", "kind", "y1") if name not in (*used["targets"], used["groups"])]
    with pytest.raises(TableError) as caught:
        load(write(FRAME.assign(**changes)), **used, drop=(",".join(drop),))
    assert message in str(caught.value), str(caught.value)


def test_gaps_of_sparse_data_are_counted(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:nan 2:1\n2 2:nan 3:1\n3 2:nan\n")
    with pytest.raises(TableError, match=r"has 3 missing values in 2 feature columns: '1' \(1\), '2' \(2\)"):
        load(tmp_path / "t.svm")


def test_what_to_type_about_gaps_is_said(write):
    path = write(FRAME[["a", "b", "y1"]].assign(a=["1", "?", "3", "4"], b=["1", "2", "", "4"]))
    with pytest.raises(TableError, match=r"--missing mean or median .* --missing drop .* or --drop"):
        load(path, targets=("y1",))
    table = load_table(path, Reading(Roles(targets=("y1",)), missing="drop"))
    np.testing.assert_array_equal(table.X, [[1.0, 1.0], [4.0, 4.0]])
    assert "2 samples of 4 have missing features and are left out: 'a' (1), 'b' (1)." in table.notes


# New samples --------------------------------------------------------------------------------------------


def test_features_of_new_samples_are_matched_by_name(write):
    path = write(FRAME[["c", "kind", "id", "a"]])
    found = load_features(path, Reading(Roles(id_column="id", targets=("y1",))), ["a", "c"], known=["y1"])
    np.testing.assert_array_equal(found.X, FRAME[["a", "c"]])
    assert found.ids == ("p", "q", "r", "s")
    assert found.extra == ("kind",)


def test_missing_features_are_listed(write):
    with pytest.raises(TableError, match=r"lacks 2 columns of the model's 3 features: 'x', 'z'\. Columns are matched"):
        load_features(write(FRAME), Reading(), ["x", "a", "z"])


def test_features_that_are_not_needed_may_be_missing(write):
    found = load_features(write(FRAME), Reading(), ["x", "a", "z", "b"], needed=["a", "b"])
    np.testing.assert_array_equal(found.X, FRAME.assign(x=0.0, z=0.0)[["x", "a", "z", "b"]])
    assert found.absent == ("x", "z")
    with pytest.raises(
        TableError, match=r"lacks 1 column of the model's 3 features: 'z'\. Columns are matched by name\."
    ):
        load_features(write(FRAME), Reading(), ["x", "a", "z"], needed=["a", "z"])
    with pytest.raises(TableError, match="lacks 2 columns of the model's 2 features: 'x', 'z'"):
        load_features(write(FRAME), Reading(), ["x", "z"], needed=[])


@pytest.mark.parametrize(
    ("name", "content", "transpose"),
    [
        ("t.arff", "@relation r\n@attribute a real\n@attribute b real\n@data\n1,2\n3,4\n", False),
        ("t.arff", "@relation r\n@attribute a real\n@attribute b real\n@data\n{0 1,1 2}\n{0 3,1 4}\n", False),
        ("t.tsv", "gene\tp\tq\na\t1\t3\nb\t2\t4\n", True),
    ],
)
def test_other_files_that_name_their_columns(write, name, content, transpose):
    found = load_features(write(content, name), Reading(transpose=transpose), ["a", "x", "b"], needed=["a", "b"])
    np.testing.assert_array_equal(sp.csr_array(found.X).toarray(), [[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]])
    assert found.absent == ("x",)


def test_an_archive_with_names_names_its_columns(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2), feature_names=["a", "b"])
    found = load_features(tmp_path / "t.npz", Reading(), ["a", "x", "b"], needed=["a", "b"])
    np.testing.assert_array_equal(found.X, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert found.absent == ("x",)


def test_all_features_are_needed_where_places_are_names(tmp_path):
    """Without names, a column that is left out in the middle would move all others."""
    np.savez(tmp_path / "t.npz", X=np.eye(3))
    with pytest.raises(TableError, match=r"lacks 1 column .* 'x4'\..* features that were not selected are needed too"):
        load_features(tmp_path / "t.npz", Reading(), ["x1", "x2", "x3", "x4"], needed=["x1"])


@pytest.mark.parametrize("stem", ["", "V", "gene "])
def test_all_features_are_needed_where_names_count_columns(write, stem):
    """A frame without names that has lost its first column names the others anew."""
    names = [f"{stem}{j}" for j in range(4)]
    with pytest.raises(TableError, match=rf"lacks 1 column .* '{stem}3'\..* not selected are needed too"):
        load_features(write(pd.DataFrame(np.eye(3), columns=names[:3])), Reading(), names, needed=names[:2])


def test_what_a_sparse_file_leaves_out_is_zero(tmp_path):
    (tmp_path / "t.svm").write_text("1 2:5\n0 1:3\n")
    found = load_features(tmp_path / "t.svm", Reading(first_index=1), ["1", "2", "3", "4"])
    np.testing.assert_array_equal(found.X.toarray(), [[0, 5, 0, 0], [3, 0, 0, 0]])


# Matrices that stay on disk -------------------------------------------------------------------------------


ON_DISK = (
    np.array([[7.0, 1.0, 1.0, 0.5, 2.0, 1.5], [8.0, 1.0, 2.0, 1.5, np.nan, 0.5], [9.0, 2.0, 0.0, 2.5, 1.0, 4.0]] * 2)
    + np.r_[0, 0, 0, 3, 3, 3][:, None] * np.eye(6)[0]
)


@pytest.mark.parametrize(
    "roles",
    [
        {"targets": ("1",), "drop": ("5",)},
        {"targets": ("x4",), "drop": ("x5",), "id_column": "x1", "groups": "x2", "sample_weight": "x3"},
        {"targets": ("x4",), "drop": ("x5",), "unpenalized": ("x6",), "task": "regression"},
        {"targets": ("2",), "drop": ("5",), "task": "classification"},
        {"targets": ("x5",)},
        {"targets": ("x1",), "groups": "x5"},
    ],
)
@pytest.mark.parametrize("name", ["t.npy", "t.npz", "folder"])
def test_every_role_on_disk_is_as_in_memory(tmp_path, monkeypatch, roles, name):
    path = tmp_path / name
    if name == "t.npz":
        sp.save_npz(path, sp.csr_array(ON_DISK))
    elif name == "t.npy":
        np.save(path, ON_DISK)
    else:
        path.mkdir()
        np.save(path / "part1.npy", ON_DISK[:2])
        np.save(path / "part2.npy", ON_DISK[2:])
    reading = Reading(Roles(**roles), format="large")
    found = []
    for share in (8, 1e12):
        monkeypatch.setattr("groupowl.designs._SMALL_SHARE", share)
        try:
            found.append(load_table(path, reading))
        except TableError as error:
            found.append(str(error))
    small, large = found
    if isinstance(small, str):
        assert small == large
        return
    np.testing.assert_array_equal(large.y, small.y)
    for attribute in ("feature_names", "target_names", "task", "ids", "unpenalized", "notes"):
        assert getattr(large, attribute) == getattr(small, attribute)
    for attribute in ("groups", "sample_weight"):
        np.testing.assert_array_equal(getattr(large, attribute), getattr(small, attribute))
    X = small.X.toarray() if sp.issparse(small.X) else small.X
    np.testing.assert_array_equal(large.X.in_memory(), X)
    ones = np.ones((6, 1))  # the pass that looks for gaps, which are in a column that is not used
    np.testing.assert_allclose(large.X.moments(ones).mean, X.mean(axis=0))
