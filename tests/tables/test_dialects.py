"""Cells as people write them: separators, decimal commas, thousands, encodings, no header, workbooks."""

from __future__ import annotations

import sys

import numpy as np
import openpyxl
import pytest

from groupowl.tables import Dialect, Kept, Reading, Roles, TableError, convert, load_features, load_table, read_sheet

USUAL = Dialect()

TABLE = {"a": [1234.5, -2.5, None], "b": [2000.25, 12, 1000000], "c": ["é", "y", "z"]}


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("a;b;c\n1234,5;2000,25;é\n-2,5;12;y\n;1000000;z\n", Dialect(decimal=",")),
        ("a;b;c\n1.234,5;2.000,25;é\n-2,5;12;y\n;1.000.000;z\n", Dialect(decimal=",", thousands=".")),
        ('a,b,c\n"1,234.5","2,000.25",é\n-2.5,12,y\n,"1,000,000",z\n', Dialect(thousands=",")),
        ("a\tb\tc\n1 234,5\t2\u00a0000,25\té\n-2,5\t12\ty\n\t1\u202f000 000\tz\n", Dialect(decimal=",", thousands=" ")),
        ("a|b|c\n1234.5|2000.25|é\n-2.5|12|y\n|1000000|z\n", Dialect(sep="|")),
        (" a   b\tc\n1234.5 2000.25   é\n\n -2.5 12 y  \nNA 1000000 z\n", Dialect(sep=" ")),
        ("a b c\n1'234,5 2'000,25 é\n-2,5 12 y\nNA 1'000'000 z\n", Dialect(sep=" ", decimal=",", thousands="'")),
    ],
)
@pytest.mark.parametrize("encoding", [None, "cp1252", "utf-16"])
def test_a_table_is_the_same_however_it_is_written(tmp_path, text, dialect, encoding):
    if encoding == "cp1252":
        text = text.replace("\u202f", " ")
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding or "utf-8"))
    sheet = read_sheet(path, dialect=Dialect(**{**vars(dialect), "encoding": encoding}))
    assert list(sheet.names) == list(TABLE)
    for j, cells in enumerate(TABLE.values()):
        assert sheet.labels(j) == cells


def test_columns_without_names_are_numbered(tmp_path):
    (tmp_path / "t.data").write_text(" 0.5  18.0   1\n 1.5   7.0   2\n 2.5  9.0  3\n")
    dialect = Dialect(sep=" ", header=False)
    table = load_table(tmp_path / "t.data", Reading(Roles(targets=("-1",)), dialect=dialect))
    assert list(table.feature_names) == ["x1", "x2"]
    assert table.target_names == ("x3",)
    np.testing.assert_array_equal(table.X, [[0.5, 18.0], [1.5, 7.0], [2.5, 9.0]])
    (tmp_path / "new.data").write_text("1 2\n")
    features = load_features(tmp_path / "new.data", Reading(dialect=dialect), table.feature_names)
    np.testing.assert_array_equal(features.X, [[1.0, 2.0]])


def test_a_sample_taken_for_names_is_refused_with_what_to_type(tmp_path):
    for first in ("0.5,1,2", "1,1,2"):
        (tmp_path / "t.csv").write_text(f"{first}\n1,2,3\n")
        with pytest.raises(TableError, match=r"Use --no-header if"):
            read_sheet(tmp_path / "t.csv")


def test_files_of_r_have_no_name_above_the_names_of_rows(tmp_path):
    (tmp_path / "t.txt").write_text('"a" "b"\n"007" 1 "x y"\n"8" 3 NA\n')
    sheet = read_sheet(tmp_path / "t.txt", dialect=Dialect(sep=" "))
    assert sheet.index == ("007", "8")
    assert (sheet.labels(0), sheet.labels(1)) == ([1, 3], ["x y", None])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_names_of_rows_without_a_name_have_separators_too(tmp_path, separator):
    """As write.table of R writes them; and convert reads what fit reads."""
    (tmp_path / "t.csv").write_text('"a","b"\n"1",2.5,"x,y"\n"2",3,"z"\n'.replace(",", separator))
    sheet = read_sheet(tmp_path / "t.csv")
    assert (list(sheet.names), sheet.index) == (["a", "b"], ("1", "2"))
    assert (sheet.labels(0), sheet.labels(1)) == ([2.5, 3], [f"x{separator}y", "z"])
    (tmp_path / "big").mkdir()
    convert([tmp_path / "t.csv"], tmp_path / "big", Kept(), Reading(), lambda *unused: None)
    assert read_sheet(tmp_path / "big").index == ("1", "2")
    (tmp_path / "t.csv").write_text("a,b\nu,2.5,1\nv,3,2\n".replace(",", separator))  # with quote = FALSE
    assert read_sheet(tmp_path / "t.csv").index == ("u", "v")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y,a,b\n2,5,1,3\n3,5,2,4\n", "row 1 below the header has 4 cells, but the header has 3 names"),
        ("y,a,b\n2,5,1,3\n3,5,2,4\n", "If rows begin with their names, give those a name in the header"),
        ("y,a\nu,1,\nv,2,\n", "row 1 below the header has 3 cells, but the header has 2 names"),
        ("y,a\nu,1,2\nv,2\n", "row 2 below the header has 2 cells, but the first row has 3 cells"),
        ("y,a\nu,1,2\nu,2,3\n", "the first of which is no name of its row: it repeats. Give every column a name"),
    ],
)
def test_rows_that_are_longer_than_the_header_may_have_no_names(tmp_path, text, words):
    """A decimal comma, a separator at the end of lines, and a column without a name make rows longer too."""
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError) as caught:
        read_sheet(tmp_path / "t.csv")
    assert words in str(caught.value)


def test_the_cell_that_is_no_number_is_named_in_its_own_dialect(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1,5;1\n2.5;2\n3,5;3\n")
    with pytest.raises(TableError, match=r"feature is '2\.5' in row 2 .*not a number"):
        load_table(tmp_path / "t.csv", Reading(Roles(targets=("y",)), dialect=Dialect(decimal=",")))


def test_rows_that_are_features_have_decimal_commas_too(tmp_path):
    (tmp_path / "t.csv").write_text("gene;p;q;r\na;0,5;1,5;2,5\nkind;oak;elm;oak\n")
    reading = Reading(Roles(targets=("kind",)), transpose=True, dialect=Dialect(decimal=","))
    np.testing.assert_array_equal(load_table(tmp_path / "t.csv", reading).X, [[0.5], [1.5], [2.5]])


@pytest.mark.parametrize(
    ("cell", "option"),
    [
        ("1,5", "--decimal ,"),
        ("1.234,5", "--decimal , --thousands ."),
        ("1,234.5", "--thousands ,"),
        ("1 234", "--th"),
    ],
)
def test_numbers_of_other_dialects_say_which_option_reads_them(tmp_path, cell, option):
    (tmp_path / "t.csv").write_text(f"a;y\n{cell};1\n2;2\n")
    with pytest.raises(TableError) as caught:
        load_table(tmp_path / "t.csv", Reading(Roles(targets=("y",))))
    assert f"Use {option}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "dialect", "hint"),
    [
        ("id;age;bmi;y\np1;1,5;20,5;1\np2;2,5;21,5;2\n", Dialect(), "For 'age', 'bmi': use --decimal , if that"),
        ("id;age;bmi;y\np1;1.5;20.5;1\np2;2.5;21.5;2\n", Dialect(decimal=","), "For 'age', 'bmi': use --decimal . if"),
        ("age;bmi;y\n1.5;20.5;1\n2.5;21.5;2\n", Dialect(decimal=","), "'bmi'. Use --decimal . if that is how"),
        ("age;y\n1.5;1\n2.5;2\n", Dialect(decimal=",", thousands="."), "Use --decimal . --thousands , if that"),
    ],
)
def test_every_column_may_say_which_option_reads_it(tmp_path, text, dialect, hint):
    """Not the first alone, which may be names of samples; and points are what others write where commas are read."""
    (tmp_path / "t.csv").write_text(text)
    reading = Reading(Roles(targets=("y",)), dialect=dialect)
    with pytest.raises(TableError) as caught:
        load_table(tmp_path / "t.csv", reading)
    assert hint in str(caught.value)
    with pytest.raises(TableError) as caught:
        load_features(tmp_path / "t.csv", reading, text.split("\n")[0].split(";")[:-1])
    assert hint in str(caught.value)


def refusal_of(path, text, roles, dialect=USUAL):
    """What is said about a file that is refused."""
    path.write_text(text)
    with pytest.raises(TableError) as caught:
        load_table(path, Reading(roles, dialect=dialect))
    return str(caught.value)


def test_where_a_decimal_comma_explains_the_cells_thousands_are_no_remedy(tmp_path):
    for lines in (("0,538;1", "2,111;2"), ("1,538;1", "2,1;2"), ("1,5;1,234", "2,5;2,345")):
        message = refusal_of(tmp_path / "t.csv", "\n".join(["a;y", *lines, ""]), Roles(("y",), task="regression"))
        assert "Use --decimal , if that is how" in message
        assert "--thousands" not in message
    message = refusal_of(tmp_path / "t.csv", "a;b;y\n1,5;1,234;1\n2,5;2,345;2\n", Roles(("y",)))
    assert "--thousands" not in message
    assert "Use --thousands , (or" in refusal_of(tmp_path / "t.csv", "a;y\n1,234;1\n2,345;2\n", Roles(("y",)))
    assert "Use --thousands , (or" in refusal_of(tmp_path / "t.csv", "a;b;y\n1,234.5;1,5;2\n3;4;5\n", Roles(("y",)))


@pytest.mark.parametrize(
    ("cells", "dialect", "remedy"),
    [
        (("2,5", "1,5", "2,5"), Dialect(sep=";"), "Use --decimal , if that is how"),
        (("1.234,5", "1.5", "2"), Dialect(sep=";"), "Use --decimal , --thousands . if that is how"),
        (("2,5", "1,5", "x"), Dialect(sep=";", decimal=","), "a target is 'x' in row 3"),
        (("21 mi", "22 mi", "23 mi"), Dialect(sep=";"), "such as '21 mi'. Write numbers without units. Use --task"),
        (("ann", "bob", "eve"), Dialect(sep=";"), "'y' is text with 9 different labels in 12 samples, such as 'ann'"),
    ],
)
def test_a_target_of_text_that_has_no_classes_is_refused_unless_somebody_says_so(tmp_path, cells, dialect, remedy):
    if cells[0] in ("21 mi", "ann"):
        cells = [*cells, *(f"{k}{cells[0]}" for k in range(6)), *cells]
    text = "y;a\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells))
    message = refusal_of(tmp_path / "t.csv", text, Roles(("y",)), dialect)
    assert remedy in message
    assert "--task classification" in message
    table = load_table(tmp_path / "t.csv", Reading(Roles(("y",), task="classification"), dialect=dialect))
    assert table.task == "classification"


def test_a_number_with_a_slip_among_whole_targets_is_shown(tmp_path):
    text = "y,a\n" + "".join(f"{k},{k}\n" for k in range(20)) + "1O,3\n"
    assert "a target is '1O' in row 21" in refusal_of(tmp_path / "t.csv", text, Roles(("y",)))


def test_categories_auto_takes_no_numbers_of_another_dialect(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;y\n1,5;u;1\n1,5;v;2\n2,5;u;2\n2,5;v;2\n")
    with pytest.raises(TableError, match=r"'1,5' in row 1 .* Use --decimal , if"):
        load_table(tmp_path / "t.csv", Reading(Roles(targets=("y",), categories=("auto",))))


def test_marks_must_differ():
    with pytest.raises(TableError, match="--decimal and --thousands are both ','"):
        Dialect(decimal=",", thousands=",")


def test_other_words_for_gaps(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,-999\n.,2\n3,x\n")
    sheet = read_sheet(tmp_path / "t.csv", dialect=Dialect(na=(".", "-999", "x")))
    assert [sheet.labels(j) for j in range(2)] == [[1, None, 3], [None, 2, None]]


QUOTED = """"y","whole","part","label","level"
1,"-999","NA","u","NA"
2,"3","1.5","",NA
3,"","","-999","v"
"4",".","2.5",-999,"."
"""


def test_quoted_cells_are_missing_values_too(tmp_path):
    """All of them among numbers; in text those that are empty or that the user names, but no word that is quoted."""
    (tmp_path / "t.csv").write_text(QUOTED)
    sheet = read_sheet(tmp_path / "t.csv", dialect=Dialect(na=(".", "-999")))
    cells = [sheet.labels(j) for j in range(5)]
    assert cells[:3] == [[1, 2, 3, 4], [None, 3, None, None], [None, 1.5, None, 2.5]]
    assert cells[3:] == [["u", None, None, None], ["NA", None, "v", None]]
    assert sheet.texts == {3, 4}


def test_quoted_cells_are_missing_in_other_marks_too(tmp_path):
    (tmp_path / "t.csv").write_text('a;b\n"1.000,5";"NA"\n"";"x"\n".";"-999"\n"NA";"."\n')
    sheet = read_sheet(tmp_path / "t.csv", dialect=Dialect(decimal=",", thousands=".", na=(".", "-999")))
    assert [sheet.labels(j) for j in range(2)] == [[1000.5, None, None, None], ["NA", "x", None, None]]


def test_a_separator_at_the_end_of_lines_makes_no_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,\n1,2,\n3,4,\n")
    assert list(read_sheet(tmp_path / "t.csv").names) == ["a", "b"]
    (tmp_path / "t.csv").write_text("a,b,\n1,2,\n3,4,5\n")
    with pytest.raises(TableError, match="column 3 has no name"):
        read_sheet(tmp_path / "t.csv")


def test_names_that_may_be_a_sample_are_noted(tmp_path):
    for first, count in (("5,7,2", 1), ("0,1,2", 0), ("1,2,3", 0)):
        (tmp_path / "t.csv").write_text(f"{first}\n1,2,3\n4,5,6\n")
        assert len(read_sheet(tmp_path / "t.csv").notes) == count


# Workbooks ----------------------------------------------------------------------------------------------


@pytest.fixture
def workbook(tmp_path):
    """Two sheets: of all kinds of cells, and of two numbers."""
    book = openpyxl.Workbook()
    first = book.active
    first.title = "Erste"
    for row in (["id", "a", "b", "c", None], [7, 2.5, "x", True], [8, None, "NA", False], ["NA", "3", "z", None], []):
        first.append(row)
    second = book.create_sheet("Zwei")
    for row in (["p", "q"], [1, 2], [3, 4]):
        second.append(row)
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_a_sheet_of_a_workbook_is_a_table(workbook):
    sheet = read_sheet(workbook)
    assert list(sheet.names) == ["id", "a", "b", "c"]
    cells = [[7, 8, None], [2.5, None, 3], ["x", None, "z"], [True, False, None]]
    assert [sheet.labels(j) for j in range(4)] == cells
    assert read_sheet(workbook, text_columns=("id",)).labels(0) == ["7", "8", None]


@pytest.mark.parametrize("named", ["Zwei", "2"])
def test_sheets_have_names_and_numbers(workbook, named):
    for sheet in (read_sheet(f"{workbook}::{named}"), read_sheet(workbook, dialect=Dialect(sheet=named))):
        np.testing.assert_array_equal(sheet.matrix([0, 1]), [[1.0, 2.0], [3.0, 4.0]])
    bare = read_sheet(workbook, dialect=Dialect(sheet=named, header=False))
    assert list(bare.names) == ["x1", "x2"]
    assert bare.n_rows == 3


def test_a_sheet_that_is_not_there_is_refused_with_those_that_are(workbook):
    with pytest.raises(TableError, match=r"has no sheet 'Drei'\. Give --sheet one of 'Erste', 'Zwei', or a number"):
        read_sheet(workbook, dialect=Dialect(sheet="Drei"))


def test_numbers_stored_as_text_have_the_dialect(workbook):
    book = openpyxl.load_workbook(workbook)
    book["Zwei"]["A2"] = "1.234,5"
    book.save(workbook)
    sheet = read_sheet(f"{workbook}::Zwei", dialect=Dialect(decimal=",", thousands="."))
    assert sheet.labels(0) == [1234.5, 3]


def test_formulas_without_a_result_are_missing(workbook):
    book = openpyxl.load_workbook(workbook)
    book["Zwei"]["A2"] = "#DIV/0!"
    book.save(workbook)
    sheet = read_sheet(f"{workbook}::Zwei", dialect=Dialect(na=("4",)))
    assert [sheet.labels(j) for j in range(2)] == [[None, 3], [2, None]]


def test_without_openpyxl_it_is_said_what_to_install(workbook, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r'needs openpyxl; run: pip install "groupowl\[excel\]", or save it as CSV'):
        read_sheet(workbook)
