"""Bad inputs of the command line: files of every format, and every option of every command.

A row is a file, or a value of an option; the message must name the file or the option, in one line, with exit code 1 or
2, and nothing is written.
"""

import bz2
import gzip
import json
import lzma
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bad_input_support import CommandRow
from cli_support import run_main, without_progress
from groupowl.cli.commands import build_app

N = 12
GOOD = "a,b,y\n" + "".join(f"{i},{i * i % 7},{3 * i % 5}.5\n" for i in range(N))
CLASSES = "a,b,y\n" + "".join(f"{i}.5,{i * i % 7},{'uv'[i % 2]}\n" for i in range(N))
ARFF = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y numeric\n@data\n"
X = np.arange(2.0 * N).reshape(N, 2) % 7


def cell(text, column=0, row=5):
    """The good file with another cell."""
    rows = [line.split(",") for line in GOOD.splitlines()]
    rows[row][column] = text
    return "\n".join(map(",".join, rows)) + "\n"


def frame(**columns):
    return lambda path: pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X.sum(axis=1), **columns}).to_parquet(
        path, index=False
    )


def archive(**arrays):
    return lambda path: np.savez(path, **arrays)


def cut(write, size):
    """A file without its end."""

    def write_part(path):
        write(path)
        path.write_bytes(path.read_bytes()[:size])

    return write_part


#: Cells that are no numbers, and what the message must say of them besides the file.
CELLS = {
    "1_000": "'1_000' in row 5 (below the header) of column 'a'",
    "1 000": "Use --thousands with what stands between the digits",
    "1\N{NO-BREAK SPACE}000": "Use --thousands with what stands between the digits",
    '"1,000"': "Use --thousands , (or --decimal , if fractions follow the comma)",
    '"1.000,5"': "Use --decimal , --thousands . if that",
    '"0,5"': "Use --decimal , if that",
    "\N{MINUS SIGN}5": "a plain minus",
    "\N{ARABIC-INDIC DIGIT ONE}": "in row 5",
    "\N{INFINITY}": "in row 5",
    "1e5x": "'1e5x' in row 5",
    "++5": "'++5' in row 5",
    "1d5": "'1d5' in row 5",
    "1/2": "'1/2' in row 5",
    "5%": "'5%' in row 5",
    "$5": "'$5' in row 5",
    "-": "'-' in row 5",
    ".": "'.' in row 5",
    " ": "' ' in row 5",
    "True": "'True' in row 5",
    "2020-01-01": "'2020-01-01' in row 5",
    "12:30": "'12:30' in row 5",
    "#DIV/0!": "'#DIV/0!' in row 5",
    "=1+1": "'=1+1' in row 5",
    '5"5': "in row 5",
    "z" * 99: f"'{'z' * 40}...' in row 5",
    "inf": "1 infinite value in 1 feature column: 'a'",
    "-Infinity": "1 infinite value in 1 feature column: 'a'",
    "1e999": "1 infinite value in 1 feature column: 'a'",
    "NA": "1 missing value in 1 feature column: 'a'",
    "?": "1 missing value",
    "": "1 missing value",
    "1e200": "column 'a' has values as large as 1e+200",
    '"5': "row 5 below the header has 1 cell, but the header has 3 names. Remove a title above",
    "5,6": "row 5 below the header has 4 cells, but the header has 3 names",
    "\x1b[2J": r"'\x1b[2J' in row 5",
}
TARGET_CELLS = {
    "1_000": "target is '1_000' in row 5",
    "high": "target is 'high' in row 5",
    "inf": "1 infinite value in 1 target column: 'y'",
    "1e200": "so large that the loss overflows",
}
#: Texts that are no tables, and what the message must say of them besides the file.
TEXTS = {
    "nothing": ("", "is empty"),
    "blank lines": ("\n\n", "is empty"),
    "a mark alone": ("\ufeff", "is empty"),
    "a mark and a line": ("\ufeff\n", "is empty"),
    "a header": ("a,b,y\n", "has no rows below its header"),
    "a header without an end": ("a,b,y", "has no rows below its header"),
    "a header of Windows": ("a,b,y\r\n", "has no rows below its header"),
    "numbers alone": (GOOD.partition("\n")[2], "the first line should hold column names"),
    "one column": ("y\n1\n2\n", "has no column left that is a feature"),
    "one sample": ("a,b,y\n1,2,3\n", "one sample only"),
    "a name twice": (GOOD.replace("a,b", "a,a", 1), "more than once: 'a'"),
    "no name": (GOOD.replace("a,b", "a,", 1), "column 2 has no name"),
    "a blank name": (GOOD.replace("a,b", "a, ", 1), "column 2 has no name"),
    "a title": ("My table\n" + GOOD, "Remove a title above the names"),
    "a comment": ("# mine\n" + GOOD, "Remove a title above the names"),
    "units": (GOOD.replace("\n", "\nkg,cm,s\n", 1), "'kg' in row 1"),
    "a short row": (GOOD.replace("\n3,2,", "\n3,"), "row 4 below the header has 2 cells"),
    "separators at the ends": ("a,b,y\n" + "1,2,3,\n" * 5, "row 1 below the header has 4 cells"),
    "a quotation mark in the header": (
        '"a,b,y\n1,2,3\n2,3,4\n',
        "has no rows below its header, or a quotation mark that is never closed",
    ),
    "bars": (GOOD.replace(",", "|"), "has no column 'y'"),
    "spaces": (GOOD.replace(",", " "), "has no column 'y'"),
    "another case": (GOOD.replace("y", "Y", 1), "has no column 'y'"),
    "an empty column": ("a,b,y\n" + "".join(f",{i},{i}\n" for i in range(5)), "5 missing values"),
    "one class": (CLASSES.replace("v", "u"), "one class only"),
    "a gap among labels": (CLASSES + "1,2,\n", "(row 13)"),
    "JSON": ('[{"a": 1, "y": 2}]\n', "XML or JSON"),
    "JSON by lines": ('{"a": 1, "y": 2}\n', "XML or JSON"),
    "a web page": ("<!DOCTYPE html>\n<html></html>\n", "is a web page, XML or JSON"),
    "XML": ("<?xml version='1.0'?>\n<a/>\n", "is a web page, XML or JSON"),
    "UTF-16": (GOOD.encode("utf-16"), "is UTF-16 or UTF-32 text"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "text in UTF-16 or UTF-32"),
    "UTF-16 backwards": (GOOD.encode("utf-16-be"), "text in UTF-16 or UTF-32"),
    "UTF-32": (GOOD.encode("utf-32"), "is UTF-16 or UTF-32 text"),
    "UTF-32 without a mark": (GOOD.encode("utf-32-le"), "text in UTF-16 or UTF-32"),
    "UTF-32 backwards": (b"\0\0\xfe\xff" + GOOD.encode("utf-32-be"), "is UTF-16 or UTF-32 text"),
    "Latin-1 in the header": (GOOD.replace("a", "\xe4", 1).encode("latin-1"), "byte 0xe4 in line 1"),
    "Latin-1 in a cell": (cell("\xe4").encode("latin-1"), "byte 0xe4 in line 6"),
    "a zero byte": (cell("\0"), "binary data"),
    "zeros": (bytes(300), "binary data"),
    "gzip": (gzip.compress(GOOD.encode()), "compressed data, not UTF-8 text"),
    "bzip2": (bz2.compress(GOOD.encode()), "Give it a name that ends in .bz2"),
    "xz": (lzma.compress(GOOD.encode()), "compressed data of another kind, not UTF-8 text"),
    "Zstandard": (b"\x28\xb5\x2f\xfd\x04\x00", "compressed data of another kind, not UTF-8 text"),
    "7z": (b"7z\xbc\xaf\x27\x1c", "compressed data of another kind, not UTF-8 text"),
    "RAR": (b"Rar!\x1a\x07\0", "compressed data of another kind, not UTF-8 text"),
    "ZIP": (b"PK\x03\x04" + bytes(30), "a ZIP archive or a workbook"),
    "an old spreadsheet": (b"\xd0\xcf\x11\xe0" + bytes(30), "a workbook of an old Excel"),
    "Feather": (b"ARROW1\0\0" + bytes(30), "binary data"),
    "SQLite": (b"SQLite format 3\0" + bytes(30), "binary data"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(30), "binary data"),
    "Parquet": (b"PAR1" + bytes(30), "binary data"),
    "NumPy": (b"\x93NUMPY" + bytes(30), "binary data"),
    "PNG": (b"\x89PNG" + bytes(30), "binary data"),
    "PDF": (b"%PDF-1.7\n" + bytes(30), "binary data"),
    "a pickle": (pickle.dumps([1, 2]), "t.csv"),
}
#: Files of other formats.
OTHERS = {
    "t.tsv": {"commas": GOOD, "empty": "", "a short row": "a\tb\ty\n1\t2\n", "a word": "a\ty\nx\t1\ny\t2\nx\t3\n"},
    "t.csv.gz": {"no gzip": GOOD, "cut off": gzip.compress(GOOD.encode())[:-20], "empty": b"", "junk": b"\x1f\x8b" * 9},
    "t.csv.bz2": {"no bzip2": GOOD, "cut off": bz2.compress(GOOD.encode())[:-20], "empty": b""},
    "t.parquet": {
        "text": GOOD,
        "empty": b"",
        "half": cut(frame(), 300),
        "a gap": frame(a=[None, *range(1, N)]),
        "words": frame(a=["x"] * N),
        "numbers as text": frame(a=[str(i) for i in range(N)]),
        "lists": frame(a=[[1.0]] * N),
        "dates": frame(a=pd.date_range("2020", periods=N)),
        "nothing but gaps in text": frame(a=pd.array([None] * N, dtype="string")),
        "no rows": lambda path: pd.DataFrame({"a": [], "y": []}).to_parquet(path, index=False),
        "no columns": lambda path: pd.DataFrame(index=range(3)).to_parquet(path),
    },
    "t.npz": {
        "text": GOOD,
        "empty": b"",
        "half": cut(archive(X=X, y=X[:, 0]), 200),
        "no X": archive(y=X[:, 0]),
        "nothing": archive(),
        "objects": archive(X=np.array([{}], dtype=object), y=[1]),
        "words": archive(X=np.array([["a"]]), y=[1]),
        "complex": archive(X=X + 1j, y=X[:, 0]),
        "dates": archive(X=np.full((N, 2), np.datetime64("2020-01-01")), y=X[:, 0]),
        "flat": archive(X=X[:, 0], y=X[:, 0]),
        "a cube": archive(X=X[None], y=X[:, 0]),
        "a gap": archive(X=np.where(X == 0, np.nan, X), y=X[:, 0]),
        "too few answers": archive(X=X, y=X[:5, 0]),
        "too few names": archive(X=X, y=X[:, 0], feature_names=["a"]),
        "names alike": archive(X=X, y=X[:, 0], feature_names=["a", "a"]),
        "complex answers": archive(X=X, y=X[:, 0] + 1j),
        "no answers": archive(X=X, y=np.full(len(X), np.nan)),
    },
    "t.svm": {
        "empty": "",
        "words": "1 1:2\n1 one:two\n",
        "falling": "1 2:2 1:1\n",
        "a gap": "1 1:nan\n2 1:3\n",
        "infinite": "1 1:inf\n2 1:3\n",
        "no value": "1 1:\n2 1:3\n",
        "no index": "1 :5\n2 1:3\n",
        "a word for a label": "x 1:2\ny 1:3\n",
        "commas": GOOD,
        "negative": "1 -1:2\n2 1:3\n",
    },
    "t.arff": {
        "empty": "",
        "no data": ARFF.replace("@data", ""),
        "no rows": ARFF,
        "a short row": ARFF + "1,2\n",
        "a long row": ARFF + "1,2,3,4\n",
        "a word": ARFF + "1,2,3\nx,2,3\n",
        "a gap": ARFF + "1,2,3\n?,2,3\n",
        "an unknown kind": ARFF.replace("y numeric", "y vector") + "1,2,3\n",
        "an unknown value": ARFF.replace("y numeric", "y {u,v}") + "1,2,w\n",
        "names alike": ARFF.replace("b numeric", "a numeric") + "1,2,3\n",
        "no attributes": "@relation r\n@data\n1,2\n",
        "text": GOOD,
        "Latin-1": (ARFF + "1,2,\xe4\n").encode("latin-1"),
    },
    "t.npy": {"text": GOOD, "empty": b"", "half": cut(lambda path: np.save(path, X), 100), "magic": b"\x93NUMPY\x01\0"},
    "t.h5": {"text": GOOD, "empty": b"", "magic": b"\x89HDF\r\n\x1a\n"},
    "t.zarr": {"text": GOOD, "an empty folder": Path.mkdir},
    "t.unknown": {"an unknown suffix": GOOD},
    "t": {"no suffix": GOOD, "an empty folder": Path.mkdir},
    "t.xlsx": {"a spreadsheet": b"PK\x03\x04" + bytes(30)},
}

NUMBERS = ["x", "", "nan", "inf", "-1", "0", "1,5"]
COUNTS = ["x", "", "0", "-5", "2.5", "1e3"]
COLUMNS = ["zz", "99", "0", "q*", ""]
DATA = {
    "--targets": [*COLUMNS, "a,,b", "a,zz", "a,b,y"],
    "--targets-from": ["nowhere.csv", "data"],
    "--id-column": [*COLUMNS, "a=zz", "="],
    "--task": ["guess", ""],
    "--groups": COLUMNS,
    "--sample-weight": COLUMNS,
    "--drop": [*COLUMNS, "y", "a,b", "*"],
    "--format": ["xlsx", "", "CSV8"],
}
MODEL = {
    "--weights": ["scar", "", "oscar,,bh", "1,2", "0.5"],
    "--unpenalized": [*COLUMNS, "a,b", "y"],
    "--test-size": ["x", "0", "1", "-0.5", "2", "nan", "0.99"],
    "--seed": ["x", "-1", "2.5", str(2**32)],
    "--tol": NUMBERS,
    "--max-iter": COUNTS,
}
GRID = {
    "--alphas": ["x", "", "0", "-5", "2.5,x", "1,,2", "0.1,-0.1", "0.1,nan", "1e309,1", str(10**12)],
    "--eps": ["x", "0", "1", "-0.1", "nan", "2"],
    "--selection": ["max", ""],
}
#: Values of options, by command.
OPTIONS = {
    "fit": DATA | MODEL | {"--alpha": [*NUMBERS, "best", "1e309"], "--folds": ["3"], "--frobnicate": ["1"]},
    "path": GRID | {"--selection": ["1se", "min"], "--targets": ["zz"], "--weights": ["bh,chi"], "--jobs": ["2"]},
    "cv": GRID
    | {
        "--folds": [*COUNTS, "1", "13"],
        "--jobs": ["x", "0", "2.5", "-2", ""],
        "--weights": ["bh,scar"],
        "--alpha": ["0.1"],
        "--groups": ["zz"],
    },
    "predict": {
        "--format": ["xlsx", "csv8"],
        "--id-column": ["zz", "99"],
        "--out": ["data"],
        "--targets": ["y"],
        "--alpha": ["1"],
    },
    "verify": {
        "--format": ["xlsx"],
        "--targets": ["zz", "99"],
        "--targets-from": ["nowhere.csv"],
        "--id-column": ["zz"],
        "--out": ["o"],
    },
    "select": {
        "--method": ["lasso"],
        "--fdr": ["0", "1", "x", "-0.1"],
        "--sampler": ["deep"],
        "--draws": ["0", "x"],
        "--max-false": ["0", "1"],
        "--pairs": ["0", "20"],
        "--groups": ["x1"],
        "--offset": ["x1"],
        "--exposure": ["x1"],
        "--test-size": ["0.2"],
        "--alpha": ["1"],
        "--weights": ["zz", "bh,oscar"],
        "--jobs": ["0"],
        "--out": ["t.csv"],
    },
    "demo": {"--out": ["t.csv"], "--frobnicate": ["1"], "--targets": ["y"]},
}


def _file_rows():
    fit = ("fit", "{file}", "--targets", "y")
    for text, says in CELLS.items():
        yield CommandRow(f"a cell {text[:12]!r}", fit, "t.csv", cell(text), ("t.csv", says))
    for text, says in TARGET_CELLS.items():
        yield CommandRow(f"a target {text!r}", fit, "t.csv", cell(text, column=2), ("t.csv", says))
    for what, (content, says) in TEXTS.items():
        yield CommandRow(f"a file: {what}", fit, "t.csv", content, ("t.csv", says))
    for name, contents in OTHERS.items():
        given = ("fit", "{file}") if name in ("t.npz", "t.svm") else fit
        for what, content in contents.items():
            yield CommandRow(f"{name}: {what}", given, name, content, (name,))
    for command in ("path", "cv"):
        for what in ("nothing", "a header without an end", "UTF-32"):
            yield CommandRow(f"{command}: {what}", (command, *fit[1:]), "t.csv", TEXTS[what][0], ("t.csv",))
    for command in ("predict", "verify"):
        for what, (content, _) in TEXTS.items():
            if what not in ("another case", "one sample", "one class", "a gap among labels"):
                yield CommandRow(f"{command}: {what}", (command, "{model}", "{file}"), "t.csv", content, ("t.csv",))
        for text in ("1_000", "", "inf", "x"):
            given = (command, "{model}", "{file}")
            yield CommandRow(f"{command}: a cell {text!r}", given, "t.csv", cell(text), ("t.csv",))


def _option_rows():
    first = {"predict": ("{model}", "{file}"), "verify": ("{model}", "{file}"), "demo": ()}
    for command, options in OPTIONS.items():
        for option, values in options.items():
            for value in values:
                base = first.get(command, ("{file}",))
                targets = (
                    ()
                    if option == "--targets" or command not in ("fit", "path", "cv", "select")
                    else ("--targets", "y")
                )
                arguments = (command, *base, *targets, f"{option}={value}")
                names = value if value in ("nowhere.csv", "data", "t.csv") else option
                yield CommandRow(f"{command} {option}={value}", arguments, "t.csv", GOOD, (names,))


ROWS = [*_file_rows(), *_option_rows()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder as ``fit`` writes it."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "t.csv").write_text(GOOD, encoding="utf-8")
    arguments = ["fit", str(folder / "t.csv"), "--targets", "y", "--out", str(folder / "model"), "--quiet"]
    assert CliRunner().invoke(build_app(), arguments).exit_code == 0
    return folder / "model"


#: Values of the record of a run, by their place, that none has written.
RECORDS = {
    ("kind",): [None, "cake", 3],
    ("format_version",): [None, "x", 99, []],
    ("reading",): [None, "x", 3, [], {}],
    ("reading", "roles"): [None, "x", 3, [], ["x"], True],
    ("reading", "roles", "targets"): [None, "x", 3, [1], [None], {}],
    ("reading", "roles", "drop"): [None, "x", [3]],
    ("reading", "roles", "groups"): [3, [], {}],
    ("reading", "roles", "sample_weight"): [3, [], {}, True],
    ("reading", "roles", "id_column"): [3, [], {}, 1.5],
    ("reading", "roles", "task"): [None, 3],
    ("reading", "targets_from"): [3, [], True],
    ("reading", "transpose"): [None, "x", 1],
    ("reading", "format"): [3, []],
    ("features",): [None, 3, [], ["a"], ["a", 1], ["a", "b", "c"]],
    ("targets",): [None, 3, [], [1], ["y", "z"]],
    ("ignored",): [None, 3, [1]],
    ("test_size",): ["x", 2.0, 0.0, [], True],
    ("seed",): [None, "x", -1, 1.5, 2**32],
}
DAMAGED = [(place, value) for place, values in RECORDS.items() for value in values]


@pytest.mark.parametrize("command", ["predict", "verify"])
@pytest.mark.parametrize(("place", "value"), DAMAGED, ids=str)
def test_damaged_records(place, value, command, tmp_path, monkeypatch, capsys, model):
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model").symlink_to(model / "model")
    record = json.loads((model / "run.json").read_text(encoding="utf-8"))
    part = record
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "t.csv").write_text(GOOD, encoding="utf-8")
    without_progress(monkeypatch)
    ran = run_main(capsys, monkeypatch, command, folder, tmp_path / "t.csv")
    assert ran.code == 1, ran
    assert str(folder) in ran.message
    assert "bug of groupowl" not in ran.message


def test_rows_differ():
    assert len({row.id for row in ROWS}) == len(ROWS) > 420


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_bad_input(row, tmp_path, monkeypatch, capsys, model):
    without_progress(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    row.write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    words = {"{file}": row.file, "{model}": str(model)}
    ran = run_main(capsys, monkeypatch, *(words.get(word, word) for word in row.arguments))
    assert ran.code in (1, 2), ran
    for said in row.says:
        assert said in ran.message, ran.message
    assert "bug of groupowl" not in ran.message
    assert sorted(tmp_path.rglob("*")) == before
