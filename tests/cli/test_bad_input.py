"""Bad input of more than forty kinds: the right exit code, exactly one message, and nothing is written."""

from __future__ import annotations

import errno
import gzip
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import groupowl as go
from cli_support import columns_of, make_data, write_csv

GOOD = "a,b,y\n" + "".join(f"{i},{i * i % 7},{3 * i % 5}.5\n" for i in range(12))
CLASSES = "a,b,y\n" + "".join(f"{i}.5,{i * i % 7},{'uv'[i % 2]}\n" for i in range(12))
ARFF = "@relation r\n@attribute a numeric\n@attribute y numeric\n@data\n"


@dataclass(frozen=True)
class Bad:
    """A file (text, bytes, or a function that writes it), a command line and what the message must say.

    ``{file}`` stands for the file in arguments and messages.
    """

    content: object
    says: tuple[str, ...]
    name: str = "t.csv"
    command: str = "fit"
    arguments: tuple[object, ...] = ("--targets", "y")
    code: int = 1


def parquet(path):
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(path, index=False)


def cut(write, size):
    """A file without its end."""

    def write_part(path):
        write(path)
        path.write_bytes(path.read_bytes()[:size])

    return write_part


def archive(**arrays):
    return lambda path: np.savez(path, **arrays)


def nested(path):
    pd.DataFrame({"a": [[1.0], [2.0]], "y": [1.0, 2.0]}).to_parquet(path, index=False)


def spreadsheet(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")


def matrix(path):
    X = np.eye(12, 3)
    X[4, 1] = X[5, 1] = np.nan
    np.save(path, X)


JUNK = np.random.default_rng(0).bytes(5000)

FILES = {
    "no such file": Bad(None, ("{file} does not exist",)),
    "a folder": Bad(lambda path: path.mkdir(), ("t.csv",)),
    "a folder with a format": Bad(
        lambda path: path.mkdir(), ("is a folder, not a CSV file",), arguments=("--targets", "y", "--format", "csv")
    ),
    "a pipe": Bad(os.mkfifo, ("is no file but a pipe or a device. Save the data to a file",)),
    "an array inside a CSV file": Bad(None, ("t.csv::y does not exist",), name="t.csv::y"),
    "empty": Bad("", ("is empty",)),
    "blank lines": Bad("\n\n  \n", ("is empty",)),
    "a header alone": Bad("a,b,y\n", ("has no rows below its header",)),
    "no header": Bad("1.5,2.5,3.5\n1,2,3\n", ("the first line should hold column names, but '1.5' is a number",)),
    "binary junk": Bad(JUNK, ("is binary data",)),
    "zeros": Bad(bytes(300), ("is binary data",)),
    "a spreadsheet": Bad(spreadsheet, ("a ZIP archive or a workbook", "--format excel")),
    "a Parquet file named CSV": Bad(parquet, ("is binary data",)),
    "compressed without a suffix": Bad(gzip.compress(GOOD.encode()), ("is compressed data", "a name that ends in .gz")),
    "a broken gz": Bad(gzip.compress(GOOD.encode())[:-20], ("cannot be read as a CSV file",), name="t.csv.gz"),
    "no gz at all": Bad(GOOD, ("t.csv.gz",), name="t.csv.gz"),
    "UTF-16": Bad(
        GOOD.encode("utf-16"),
        ("is UTF-16 or UTF-32 text, not UTF-8 text with cells between separators. Use --encoding utf-16",),
    ),
    "Latin-1 in the header": Bad(
        "größe,y\n1,2\n".encode("latin-1"), ("is not UTF-8 text: byte 0xf6 in line 1", "--encoding cp1252")
    ),
    "Latin-1 in a cell": Bad(
        ("a,n,y\n" + "1,x,2\n" * 40 + "1,ö,2\n").encode("latin-1"), ("is not UTF-8 text: byte 0xf6",)
    ),
    "duplicate names": Bad("a,a,b,y\n1,2,3,4\n", ("has 1 column name more than once: 'a'",)),
    "an empty name": Bad("a,,y\n1,2,3\n", ("column 2 has no name",)),
    "a short row": Bad(GOOD + "1,2\n", ("row 13 below the header has 2 cells, but the header has 3 names",)),
    "a long row": Bad(GOOD + "1,2,3,4\n", ("row 13 below the header has 4 cells",)),
    "cut off": Bad(GOOD[:-5], ("row 12 below the header has 2 cells", "cut off")),
    "an open quotation mark": Bad(GOOD + '1,"2,3\n4,5,6\n', ("row 13",)),
    "one column": Bad("y\n1\n2\n", ("has no column left that is a feature",)),
    "another separator": Bad(GOOD.replace(",", "|"), ("has no column 'y'", "one column, 'a|b|y': give --sep '|' if")),
    "a word among numbers": Bad(
        GOOD + "1,two,3\n", ("feature is 'two' in row 13 (below the header) of column 'b' (column 2)", "--drop")
    ),
    "names of samples": Bad(
        "id,sex,b,y\nW054,f,1,3\nW055,m,2,1\n",
        (
            "feature is 'W054' in row 1 (below the header) of column 'id' (column 1)",
            "; nor are cells of 'sex'. Encode it as a number, use --categories if it has levels, --id-column if it "
            "names the samples, or leave columns out with --drop.",
        ),
    ),
    "words that name no samples": Bad(
        "sex,id,y\nf,W054,3\nm,W055,1\nf,W056,2\n",
        (". Encode it as a number, use --categories if it has levels, --id-column if it names the samples, or leave",),
    ),
    "a decimal comma": Bad(
        "a;b;y\n1,5;2;3\n2,5;3;4\n",
        ("'1,5' in row 1", "Use --decimal , if that is how numbers are written. Encode"),
    ),
    "a date": Bad("a,b,y\n1,2020-01-31,3\n2,2020-02-01,1\n", ("2020-01-31", "Dates are not numbers: count days")),
    "a point for a gap": Bad("a,b,y\n1,.,3\n2,4,1\n", ("'.' in row 1", "Use --na . if that is a missing value")),
    "a word for a gap": Bad("a,b,y\n1,missing,3\n2,4,1\n", ("Use --na missing if that is a missing value",)),
    "a percentage": Bad("a,b,y\n1,5%,3\n2,6%,1\n", ("'5%' in row 1", "Write numbers without units")),
    "spaces between cells": Bad("a b y\n1 2 3\n2 3 4\n", ("give --sep space if",)),
    "samples from the first line": Bad("0.5,1,2\n1.5,2,3\n", ("Use --no-header if it has none",)),
    "a sheet of a text": Bad(
        GOOD, ("--sheet is for Excel workbooks", "Leave it out"), arguments=("-t", "y", "--sheet", "2")
    ),
    "marks of a Parquet file": Bad(
        parquet, ("--sep is for text files",), name="t.parquet", arguments=("-t", "y", "--sep", "tab")
    ),
    "an unknown encoding": Bad(
        GOOD,
        ("--encoding must be an encoding",),
        arguments=("-t", "y", "--encoding", "klingon"),
        code=2,
    ),
    "two characters between cells": Bad(
        GOOD, ("--sep must be one character, or tab",), arguments=("-t", "y", "--sep", "||"), code=2
    ),
    "the same mark twice": Bad(
        GOOD, ("--decimal and --thousands are both ','",), arguments=("-t", "y", "--decimal", ",", "--thousands", ",")
    ),
    "an old workbook": Bad(JUNK, ("Save it as .xlsx or CSV",), name="t.xls"),
    "a file of R": Bad(JUNK, ("In R, write.csv(",), name="t.rds"),
    "a broken workbook": Bad(JUNK, ("cannot be read as a workbook of Excel",), name="t.xlsx"),
    "gaps": Bad(
        GOOD + ",NA,3\n,1,2\n",
        (
            "has 3 missing values in 2 feature columns: 'a' (2), 'b' (1)",
            "Use --missing mean or median to fill them in, --missing drop to leave those samples out, or --drop",
        ),
    ),
    "no target at all": Bad("a,b,y\n1,2,\n2,1,\n", ("no sample has a target. Check --targets",)),
    "infinity": Bad(GOOD + "inf,2,3\n", ("has 1 infinite value in 1 feature column: 'a' (1). Correct them, or leave",)),
    "one sample": Bad("a,b,y\n1,2,3\n", ("has one sample only. A fit needs at least two",)),
    "numbers beyond all bounds": Bad(
        GOOD + "1e200,2,3\n", ("column 'a' has values as large as 1e+200, the squares of which overflow",)
    ),
    "an empty column": Bad("a,b,y\n1,,3\n2,,4\n", ("has 2 missing values in 1 feature column: 'b' (2)",)),
    "a word in the target": Bad(
        GOOD.replace("0.5", "high", 1),
        ("target is 'high'", "classification"),
        arguments=("--targets", "y", "--task", "regression"),
    ),
    "one class": Bad(CLASSES.replace("v", "u"), ("y has one class only, ['u']",)),
    "a gap among labels": Bad(CLASSES + "1,2,\n", ("target 'y' has 1 missing value (row 13)",)),
    "fractions as classes": Bad(
        GOOD, ("has fractions such as",), arguments=("--targets", "y", "--task", "classification")
    ),
    "an unknown suffix": Bad(GOOD, ("the suffix '.table' says no format",), name="t.table"),
    "no suffix": Bad(GOOD, ("says no format",), name="t"),
    "a matrix without names": Bad(JUNK, ("t.h5",), name="t.h5"),
    "TSV with commas": Bad(GOOD, ("has no column 'y'",), name="t.tsv"),
    "gaps in a matrix on disk": Bad(
        matrix, ("has 2 missing values in 1 feature column: 'x2' (2)", "--drop"), name="t.npy", arguments=("-t", "x1")
    ),
    "no Parquet": Bad(GOOD, ("cannot be read as a Parquet file",), name="t.parquet"),
    "an empty Parquet": Bad(b"", ("cannot be read as a Parquet file",), name="t.parquet"),
    "half a Parquet": Bad(cut(parquet, 200), ("cannot be read as a Parquet file",), name="t.parquet"),
    "lists in Parquet": Bad(nested, ("'[1.0]' in row 1", "not a number"), name="t.parquet"),
    "no archive": Bad(GOOD, ("File is not a zip file",), name="t.npz"),
    "half an archive": Bad(cut(archive(X=np.eye(9), y=np.ones(9)), 300), ("File is not a zip file",), name="t.npz"),
    "an archive without X": Bad(archive(y=np.ones(3)), ("the arrays in it are y",), name="t.npz", arguments=()),
    "an archive of objects": Bad(
        archive(X=np.array([{}], dtype=object)), ("allow_pickle",), name="t.npz", arguments=()
    ),
    "an archive of words": Bad(
        archive(X=np.array([["a"]]), y=[1]), ("X must be a matrix of real numbers",), name="t.npz", arguments=()
    ),
    "an archive with too few answers": Bad(
        archive(X=np.eye(3), y=[1, 2]),
        ("labels for the 3 rows of X, but its shape is (2,)",),
        name="t.npz",
        arguments=(),
    ),
    "an archive of a vector": Bad(
        archive(X=np.ones(3), y=np.ones(3)),
        ("X must be a matrix of real numbers, but its shape is (3,)",),
        name="t.npz",
        arguments=(),
    ),
    "an archive without answers": Bad(
        archive(X=np.eye(3)), ("are targets? Name them with --targets",), name="t.npz", arguments=(), code=2
    ),
    "LIBSVM of words": Bad("1 1:2\n1 one:two\n", ("line 2 is not in the format",), name="t.svm", arguments=()),
    "LIBSVM beyond all bounds": Bad(
        "1 1:2 2:-1e200\n2 1:3\n", ("column '2' has values as large as 1e+200",), name="t.svm", arguments=()
    ),
    "LIBSVM that falls": Bad("1 2:2 1:1\n", ("cannot be read as a LIBSVM file",), name="t.svm", arguments=()),
    "an empty LIBSVM": Bad("", ("t.svm",), name="t.svm", arguments=()),
    "ARFF without data": Bad(ARFF.replace("@data", ""), ("there is no line @data",), name="t.arff"),
    "ARFF without rows": Bad(ARFF, ("has no rows",), name="t.arff"),
    "ARFF with a short row": Bad(ARFF + "1\n", ("line 5: 1 values for 2 attributes",), name="t.arff"),
    "ARFF with a word": Bad(ARFF + "1,2\nx,2\n", ("line 6: could not convert string to float: 'x'",), name="t.arff"),
    "ARFF with an unknown value": Bad(
        ARFF.replace("y numeric", "y {u,v}") + "1,w\n", ("line 5: 'w' is no value of 'y'",), name="t.arff"
    ),
    "ARFF of an unknown kind": Bad(
        ARFF.replace("y numeric", "y vector") + "1,2\n",
        ("line 3 declares no attribute with a name and a known kind",),
        name="t.arff",
    ),
    "ARFF with two names alike": Bad(
        ARFF.replace("@data", "@attribute a real\n@data") + "1,2,3\n", ("more than once: 'a'",), name="t.arff"
    ),
    "ARFF with a gap": Bad(ARFF + "1,2\n?,2\n", ("has 1 missing value in 1 feature column: 'a' (1)",), name="t.arff"),
}

OPTIONS = {
    "no targets": Bad(GOOD, ("which columns of {file} are targets?", "'a', 'b', 'y'"), arguments=(), code=2),
    "an unknown column": Bad(
        GOOD, ("--targets: {file} has no column 'z'", "Columns: 'a', 'b', 'y'"), arguments=("--targets", "z")
    ),
    "a position beyond": Bad(GOOD, ("position 4, but {file} has 3 columns",), arguments=("--targets", "4")),
    "a pattern without a match": Bad(GOOD, ("no column 'q*'",), arguments=("--targets", "q*")),
    "an unknown column to drop": Bad(
        GOOD, ("--drop: {file} has no column",), arguments=("--targets", "y", "--drop", "zz")
    ),
    "an unknown column of groups": Bad(
        GOOD, ("--groups: {file} has no column",), arguments=("--targets", "y", "--groups", "zz")
    ),
    "unknown weights of samples": Bad(
        GOOD, ("--sample-weight: {file} has no column",), arguments=("--targets", "y", "--sample-weight", "zz")
    ),
    "a weight below zero": Bad(
        GOOD.replace("\n3,", "\n-3,"), ("has the weight -3",), arguments=("--targets", "y", "--sample-weight", "a")
    ),
    "an unknown unpenalized column": Bad(
        GOOD, ("--unpenalized: {file} has no column",), arguments=("--targets", "y", "--unpenalized", "zz")
    ),
    "all unpenalized": Bad(
        GOOD, ("no column left that is a feature with a penalty",), arguments=("--targets", "y", "--unpenalized", "a,b")
    ),
    "target and dropped": Bad(GOOD, ("is also in --drop",), arguments=("--targets", "y", "--drop", "y")),
    "no file of targets": Bad(
        GOOD, ("nowhere.csv does not exist",), arguments=("--targets-from", "nowhere.csv", "--id-column", "a")
    ),
    "no id column": Bad(
        GOOD, ("--id-column: {file} has no column 'zz'",), arguments=("--targets-from", "{file}", "--id-column", "zz")
    ),
    "ids twice": Bad(
        GOOD.replace("\n3,", "\n2,"),
        ("1 id more than once: '2'",),
        arguments=("--targets-from", "{file}", "--id-column", "a", "--targets", "y"),
    ),
    "more folds than samples": Bad(
        GOOD,
        ("--folds 13 needs at least 13 samples, but there are 12",),
        command="cv",
        arguments=("--targets", "y", "--folds", 13),
    ),
    "more folds than groups": Bad(
        GOOD, ("needs at least 5 groups, but there are 4",), command="cv", arguments=("--targets", "y", "--groups", "b")
    ),
    "more folds than a class has": Bad(
        CLASSES,
        ("needs at least 7 samples of class 'u', but there are 6",),
        command="cv",
        arguments=("--targets", "y", "--folds", 7),
    ),
    "a class among other targets": Bad(
        CLASSES, ("target is 'u' in row 1", "and no other target in --targets"), arguments=("--targets", "a,y")
    ),
    "a class of one sample": Bad(
        CLASSES + "1,2,w\n",
        ("--test-size 0.5 cannot be used here: The least populated class", "or leave --test-size out"),
        arguments=("--targets", "y", "--test-size", 0.5),
    ),
    "a share without some classes": Bad(
        CLASSES,
        ("--test-size 0.05 cannot be used here", ". Use another share"),
        arguments=("-t", "y", "--test-size", 0.05),
    ),
    "a share without samples": Bad(GOOD, ("--test-size 0.99",), arguments=("--targets", "y", "--test-size", 0.99)),
    "no number for alpha": Bad(
        GOOD, ("--alpha must be a positive number, got 'big'",), arguments=("--targets", "y", "--alpha", "big"), code=2
    ),
    "alpha zero": Bad(
        GOOD, ("--alpha must be a positive number, got '0'",), arguments=("--targets", "y", "--alpha", 0), code=2
    ),
    "alphas zero": Bad(
        GOOD,
        ("--alphas must be from 1 to 1000000, got 0",),
        command="cv",
        arguments=("--targets", "y", "--alphas", 0),
        code=2,
    ),
    "alphas of words": Bad(
        GOOD,
        ("--alphas must be a positive number, got 'x'",),
        command="path",
        arguments=("--targets", "y", "--alphas", "1,x"),
        code=2,
    ),
    "eps one": Bad(
        GOOD,
        ("--eps must be above 0 and below 1, got 1",),
        command="path",
        arguments=("--targets", "y", "--eps", 1),
        code=2,
    ),
    "unknown weights": Bad(
        GOOD,
        ("--weights must be one of 'oscar'", "got 'scar'"),
        arguments=("--targets", "y", "--weights", "scar"),
        code=2,
    ),
    "two sequences for a fit": Bad(
        GOOD, ("--weights must be one sequence here",), arguments=("--targets", "y", "--weights", "bh,chi"), code=2
    ),
    "levels for a fit": Bad(
        GOOD, ("--weights must be one sequence here",), arguments=("--targets", "y", "--weights", "levels"), code=2
    ),
    "tol zero": Bad(GOOD, ("--tol must be above 0, got 0",), arguments=("--targets", "y", "--tol", 0), code=2),
    "a share of one": Bad(
        GOOD,
        ("--test-size must be above 0 and below 1, got 1",),
        arguments=("--targets", "y", "--test-size", 1),
        code=2,
    ),
    "one fold": Bad(
        GOOD, ("--folds must be at least 2, got 1",), command="cv", arguments=("--targets", "y", "--folds", 1), code=2
    ),
    "no jobs": Bad(
        GOOD, ("--jobs must be at least 1, or -1",), command="cv", arguments=("--targets", "y", "--jobs", 0), code=2
    ),
    "an unknown rule": Bad(
        GOOD, ("--selection",), command="cv", arguments=("--targets", "y", "--selection", "max"), code=2
    ),
    "a rule of folds for a path": Bad(
        GOOD, ("--selection",), command="path", arguments=("--targets", "y", "--selection", "1se"), code=2
    ),
    "an unknown task": Bad(GOOD, ("--task",), arguments=("--targets", "y", "--task", "guess"), code=2),
    "an unknown format": Bad(GOOD, ("--format",), arguments=("--targets", "y", "--format", "xlsx"), code=2),
    "an unknown option": Bad(GOOD, ("--frobnicate",), arguments=("--targets", "y", "--frobnicate"), code=2),
    "an option of another command": Bad(GOOD, ("--folds",), arguments=("--targets", "y", "--folds", 3), code=2),
    "no steps": Bad(
        GOOD, ("--max-iter must be at least 1, got 0",), arguments=("--targets", "y", "--max-iter", 0), code=2
    ),
    "a seed that is too large": Bad(
        GOOD, ("--seed must be from 0 to 4294967295, got 4294967296",), arguments=("-t", "y", "--seed", 2**32), code=2
    ),
    "a seed below zero": Bad(
        GOOD, ("--seed must be from 0 to 4294967295, got -1",), arguments=("--targets", "y", "--seed", -1), code=2
    ),
    "no whole number": Bad(
        GOOD,
        ("'--folds': 'x' is not a valid integer. See",),
        command="cv",
        arguments=("-t", "y", "--folds", "x"),
        code=2,
    ),
    "a transposed archive": Bad(
        archive(X=np.eye(3), y=[1, 2, 3]), ("--transpose is for CSV",), name="t.npz", arguments=("--transpose",)
    ),
}

KINDS = FILES | OPTIONS


def write_content(path, content):
    if callable(content):
        content(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content, encoding="utf-8")


def snapshot(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_there_are_enough_kinds():
    assert len(KINDS) >= 40
    assert len({(str(kind.content), kind.name, kind.command, kind.arguments) for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input(run, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    bad = KINDS[kind]
    path = Path(bad.name)
    write_content(path, bad.content)
    before = snapshot(tmp_path)
    arguments = [str(argument).replace("{file}", bad.name) for argument in bad.arguments]
    ran = run(bad.command, path, *arguments, "--out", "model")
    assert ran.code == bad.code, ran
    for words in bad.says:
        assert words.replace("{file}", bad.name) in ran.message, ran.message
    assert ran.message.rstrip()[-1] in ".?" or ran.message.endswith("--help"), ran.message
    assert snapshot(tmp_path) == before


# The same for the other commands ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory, train):
    """A folder as ``fit`` writes it."""
    from typer.testing import CliRunner

    from groupowl.cli.commands import build_app

    out = tmp_path_factory.mktemp("models") / "m"
    arguments = ["fit", str(train), "--targets", "y1,y2", "--drop", "house,w", "--id-column", "id", "--out", str(out)]
    assert CliRunner().invoke(build_app(), arguments).exit_code == 0
    return out


def damaged(part, content):
    def damage(folder):
        (folder / part).write_bytes(content)

    return damage


def newer(folder):
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"format_version": 1', '"format_version": 99'))


def other_record(**changes):
    def damage(folder):
        record = json.loads((folder / "run.json").read_text())
        record |= {name: change(record[name]) for name, change in changes.items()}
        (folder / "run.json").write_text(json.dumps(record))

    return damage


MODELS = {
    "no folder": (None, "does not exist. Give the folder"),
    "a file": ("file", "is a file. Give the folder"),
    "an empty folder": ("empty", "is no folder that groupowl's save has written"),
    "a path": ("path", "holds a PathResult, and no model"),
    "no record": (damaged("run.json", b"{}"), "run.json is damaged (KeyError"),
    "half a record": (damaged("run.json", b'{"kind": "grou'), "run.json is damaged (JSONDecodeError"),
    "a record of something else": (damaged("run.json", b'{"kind": "cake"}'), "its kind is 'cake'"),
    "a newer record": (newer, "Update groupowl"),
    "a deep record": (damaged("run.json", b"[" * 100_000), "run.json is damaged (RecursionError"),
    "no such format": (other_record(format_version=lambda _: 0), "its format 0). Fit the model again"),
    "a format that is no number": (other_record(format_version=lambda _: True), "its format True"),
    "fewer features": (other_record(features=lambda names: names[:-1]), "it has 11 features, but the model has 12"),
    "other features": (other_record(features=lambda names: names[::-1]), "its features are not those of the model"),
    "numbered features": (
        other_record(features=lambda names: {"stem": "x", "first": 1, "n_numbered": len(names), "others": []}),
        "its features are not those of the model",
    ),
    "a numbering that is none": (
        other_record(features=lambda _: {"stem": "x", "first": 1, "n_numbered": -4, "others": []}),
        "features must be a list of names or their numbering",
    ),
    "more targets": (other_record(targets=lambda names: [*names, "y9"]), "it has 3 targets, but the model has 2"),
    "targets that are no names": (other_record(targets=lambda names: [1, None]), "targets is (1, None)"),
    "no seed": (other_record(seed=lambda _: None), "seed is None"),
    "all held out": (other_record(test_size=lambda _: 7.0), "the samples that were held out are unknown"),
    "other coefficients": (
        lambda folder: go.save(go.GroupOWLRegressor(), folder / "model"),
        "holds a GroupOWLRegressor that is not fitted",
    ),
    "no tree": (damaged("model/model.json", b"junk"), "is damaged: model.json cannot be read"),
    "half the arrays": (damaged("model/arrays.npz", b"PK\x03\x04junk"), "is damaged: arrays.npz cannot be read"),
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--lambda", 0.1), "--lambda is not known here: the strength of the penalty is --alpha in fit, --alphas in"),
        (("--lambda=0.1",), "--lambda is not known here: the strength of the penalty is --alpha in fit, --alphas in"),
        (("--family", "binomial"), "--family binomial is not known here: classes need no --loss: a target of text"),
        (("--family=gaussian",), "--family gaussian is not known here: use --loss squared"),
        (("--family", "poisson"), "use --loss poisson"),
        (("--family", "cox"), "use --loss cox and --targets EVENT,TIME"),
        (("--family", "mgaussian"), "use --loss squared, which is the default, and several --targets"),
        (("--family", "tweedie"), "--family is not known here: use --loss; classes are recognized by the target"),
        (("--loss", "binomial"), "--loss binomial is not known here: classes need no --loss"),
        (("--loss", "multinomial"), "one of numbers with --task classification"),
        (("--loss", "hubr"), "Invalid value for '--loss': 'hubr' is not one of 'squared'"),
        (("--selection", "lambda.1se"), "--selection lambda.1se is not known here: use --selection 1se"),
        (("--selection", "lambda.min"), "use --selection min"),
        (("--relax",), "--relax is not known here: use --relaxed"),
        (("--nfolds", 5), "use --folds in cv"),
    ],
)
def test_words_of_glmnet(run, train, given, message):
    ran = run("cv", train, "-t", "y1", *given)
    assert ran.code == 2
    assert message in ran.message
    assert ran.message.endswith("See: groupowl cv --help")


@pytest.mark.parametrize("command", ["predict", "verify"])
@pytest.mark.parametrize("kind", MODELS)
def test_bad_models(run, tmp_path, model, train, command, kind):
    import shutil

    change, message = MODELS[kind]
    folder = tmp_path / "model"
    if change == "file":
        folder.write_text("no model")
    elif change == "empty":
        folder.mkdir()
    elif change == "path":
        data = make_data()
        go.save(go.group_owl_path(data.X, data.Y, alphas=3), folder)
    elif change is not None:
        shutil.copytree(model, folder)
        change(folder)
    before = snapshot(tmp_path)
    out = ["--out", tmp_path / "pred.csv"] if command == "predict" else []
    ran = run(command, folder, train, *out)
    assert ran.code == 1
    assert message in ran.message
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns: columns.pop("gene3"), "lacks 1 column of the model's 12 features: 'gene3'"),
        (lambda columns: columns.update(gene3=["x"] * 40), "feature is 'x' in row 1"),
        (lambda columns: columns.update(gene3=[""] * 40), "has 40 missing values in 1 feature column: 'gene3' (40)"),
    ],
)
def test_bad_files_to_predict(run, tmp_path, model, change, message):
    columns = columns_of(make_data())
    change(columns)
    ran = run("predict", model, write_csv(tmp_path / "new.csv", columns), "--out", tmp_path / "pred.csv")
    assert ran.code == 1
    assert message in ran.message
    assert "--drop" not in ran.message  # which predict has not
    assert snapshot(tmp_path) == ["new.csv"]


def test_ids_that_are_asked_for_must_be_there(run, train, model):
    ran = run("predict", model, train, "--id-column", "name")
    assert ran.code == 1
    assert "--id-column: " in ran.message
    assert "has no column 'name'" in ran.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns: columns.pop("house"), "as {model} has them; give the file of the fit"),
        (lambda columns: columns.update(gene3=["x"] * 40), "as {model} has them; give the file of the fit"),
        (lambda columns: columns.pop("y2"), "has no column 'y2'"),
        (lambda columns: columns.pop("gene3"), "does not have the features of the fit: it lacks 'gene3'"),
        (lambda columns: columns.update(more=[1.0] * 40), "it has also 'more'"),
        (lambda columns: columns.update(gene3=columns.pop("gene3")), "has them in another order"),
    ],
)
def test_bad_files_to_verify(run, tmp_path, model, change, message):
    columns = columns_of(make_data())
    change(columns)
    ran = run("verify", model, write_csv(tmp_path / "data.csv", columns))
    assert ran.code == 1
    assert message.format(model=model) in ran.message


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda out: out.write_text("mine"), "exists. Use --force"),
        (lambda out: out.mkdir(), "it is no file"),
    ],
)
def test_predictions_have_nowhere_to_go(run, tmp_path, model, train, prepare, message):
    out = tmp_path / "pred.csv"
    prepare(out)
    ran = run("predict", model, train, "--out", out)
    assert ran.code == 1
    assert message in ran.message
    assert snapshot(tmp_path) == ["pred.csv"]


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_out_is_in_the_way(run, tmp_path, train, place):
    (tmp_path / "taken").write_text("here first")
    ran = run("fit", train, "--targets", "y1", "--drop", "id,house", "--out", tmp_path / place)
    assert ran.code == 1
    assert "cannot write to" in ran.message
    assert snapshot(tmp_path) == ["taken"]


# Permissions -----------------------------------------------------------------------------------------------


def refuse(*args, **kwargs):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.npz", "t.svm", "t.arff"])
def test_no_permission_to_read(run, tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text(GOOD)
    if name == "t.npz":
        archive(X=np.eye(3), y=np.ones(3))(path)
    if os.geteuid() == 0:  # who may read anything
        monkeypatch.setattr(Path, "open", refuse)
    else:
        path.chmod(0)
    ran = run("fit", path, "--targets", "y", "--out", tmp_path / "m")
    assert ran.code == 1
    assert "cannot be opened: Permission denied" in ran.message or "File is not a zip file" in ran.message
    assert snapshot(tmp_path) == [name]


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_no_permission_to_write(run, tmp_path, train, model, monkeypatch, command):
    """Tried before anything is read."""
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("groupowl.cli.model_commands.load_table", None)
    monkeypatch.setattr("groupowl.cli.model_commands.load_features", None)
    first = [model, train] if command == "predict" else [train, "--targets", "y1"]
    ran = run(command, *first, "--out", tmp_path / "m")
    assert ran.code == 1
    assert ran.message == f"cannot write to {tmp_path / 'm'}: Permission denied"
    assert snapshot(tmp_path) == []


@pytest.mark.parametrize("call", ["groupowl.cli.run_folder.save", "groupowl.cli.run_folder._write_coefficients"])
def test_the_disk_is_full(run, tmp_path, train, monkeypatch, call):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(call, full)
    ran = run("fit", train, "--targets", "y1", "--drop", "id,house,w,y2", "--out", tmp_path / "m")
    assert ran.code == 1
    assert ran.message == f"cannot write to {tmp_path / 'm'}: No space left on device"
    assert snapshot(tmp_path) == []


# Errors of our own -----------------------------------------------------------------------------------------


def test_a_bug_is_one_line_and_a_traceback_with_debug(run, tmp_path, train, monkeypatch):
    def broken(*args, **kwargs):
        raise IndexError("list index\nout of range")

    monkeypatch.setattr("groupowl.cli.model_commands.load_table", broken)
    ran = run("fit", train, "--targets", "y1", "--out", tmp_path / "m")
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("groupowl: unexpected IndexError: list index out of range. This is a bug of groupowl")
    ran = run("fit", train, "--targets", "y1", "--out", tmp_path / "m", "--debug")
    assert ran.code == 1
    assert "Traceback (most recent call last)" in ran.err
    assert snapshot(tmp_path) == []


def test_debug_shows_where_bad_input_was_noticed(run, tmp_path):
    ran = run("fit", tmp_path / "nowhere.csv", "--targets", "y", "--debug")
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert ran.err.splitlines()[-1].endswith("does not exist. Check the path.")


def test_memory_that_does_not_suffice(run, train, monkeypatch):
    def huge(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("groupowl.cli.model_commands.load_table", huge)
    assert "not enough memory" in run("fit", train, "--targets", "y1").message


@pytest.mark.parametrize("arguments", [["cvv"], ["fit"], ["predict", "only-one"], ["--nonsense"]])
def test_usage_is_one_line(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert "See: groupowl" in ran.message


def test_no_arguments_show_the_help(run):
    ran = run()
    assert ran.code == 2
    assert "Usage: groupowl" in ran.out + ran.err


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC])
def test_what_the_system_refuses_is_no_bug(number, run, tmp_path, monkeypatch):
    """Such as a folder for --resume that is full, or belongs to somebody else."""
    file = tmp_path / "data.csv"
    file.write_text(GOOD)

    def refuse(path, *_):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("groupowl._resume.write_file", refuse)
    ran = run("path", file, "--targets", "y", "--resume", tmp_path / "kept", "--alphas", 3)
    assert ran.code == 1
    assert f"{os.strerror(number)}. Check the rights and the free space of --out and --resume." in ran.message
    assert f"cannot write to {tmp_path / 'kept'}" in ran.message


def test_a_folder_of_parquet_files_with_text_points_to_the_pattern(run, tmp_path):
    frame = pd.DataFrame({"id": list("abcdefgh"), "a": range(8), "y": np.arange(8) ** 2.0})
    (tmp_path / "parts").mkdir()
    for k in range(2):
        frame.to_parquet(tmp_path / "parts" / f"p{k}.parquet")
    pattern = f"{tmp_path / 'parts'}/*.parquet"
    for command in ("fit", "convert"):
        out = ("--out", tmp_path / command)
        assert pattern in run(command, tmp_path / "parts", "--targets", "y", "--id-column", "id", *out).message
    assert run("fit", pattern, "--targets", "y", "--id-column", "id").code in (0, 1)
