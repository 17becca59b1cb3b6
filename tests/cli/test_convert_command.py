"""``groupowl convert``, and the other commands with the folder that it writes."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import groupowl as go
from cli_support import PROGRAM
from groupowl.cli import terminal
from groupowl.tables import readers, streams

OPTIONS = ("--targets", "y1,y2", "--id-column", "id", "--keep", "house,w")


@pytest.fixture
def big(run, train, tmp_path):
    found = run("convert", train, *OPTIONS, "--out", tmp_path / "big")
    assert found.code == 0, found
    assert found.out.startswith("40 samples x 12 features in ")
    assert "Beside the matrix: 'id', 'house', 'w', 'y1', 'y2'." in found.out
    return tmp_path / "big"


def test_a_model_of_the_folder_is_that_of_the_file(run, big, train, tmp_path):
    options = ("--id-column", "id", "--groups", "house", "--sample-weight", "w", "--folds", "3", "-q", "--tol", "1e-10")
    assert run("cv", big, *options, "-o", tmp_path / "a").code == 0
    assert run("cv", train, *options, "--targets", "y1,y2", "-o", tmp_path / "b").code == 0
    first, second = (go.load(tmp_path / name / "model") for name in "ab")
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-6)
    assert run("verify", tmp_path / "a", big, "-q").code == 0
    assert run("predict", tmp_path / "a", train).out == run("predict", tmp_path / "a", big).out


def test_a_folder_of_others_is_not_replaced(run, big, train, tmp_path):
    assert "exists. Use --force" in run("convert", train, "--out", big).message
    quiet = run("convert", train, "--drop", "id,house", "--out", big, "--force", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "holds other files" in run("fit", train, "--targets", "y1", "--drop", "id,house", "--out", big).message
    assert "holds the data of groupowl convert, and no model" in run("predict", big, train).message


def test_what_was_done_in_json(run, train, tmp_path):
    found = json.loads(run("convert", train, *OPTIONS, "--out", tmp_path / "big", "--json").out)
    assert (found["command"], found["n_samples"], found["n_features"], found["texts"]) == ("convert", 40, 12, [])


def test_nothing_is_left_of_a_conversion_that_fails(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 10 + "1,2,3\n")
    assert (
        "3 cells, but the header has 2 names" in run("convert", tmp_path / "t.csv", "--out", tmp_path / "big").message
    )
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_nothing_is_left_of_a_conversion_that_is_stopped(run, train, tmp_path, monkeypatch):
    def stop(*unused):
        raise KeyboardInterrupt

    monkeypatch.setattr(streams, "_numbers", stop)
    found = run("convert", train, *OPTIONS, "--out", tmp_path / "big")
    assert (found.code, found.message) == (130, "stopped; nothing was written.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
def test_what_a_killed_conversion_leaves_is_hidden_and_cleared(run, train, tmp_path):
    sleeps = "import time; from groupowl.tables import streams; streams._numbers = lambda *unused: time.sleep(60)"
    program = f"{sleeps}; {PROGRAM}"
    arguments = ["convert", str(train), *OPTIONS, "--out", str(tmp_path / "big")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], env=environment)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".big.*/X.npy")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".big.")
    assert run("convert", train, *OPTIONS, "--out", tmp_path / "big", "-q").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_a_long_conversion_says_how_far_it_is(run, train, tmp_path, monkeypatch):
    def slow(*given, original=streams._numbers):
        time.sleep(0.3)
        return original(*given)

    monkeypatch.setattr(streams, "_numbers", slow)
    monkeypatch.setattr(streams, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(terminal, "_WRITE_EVERY", 0.1)
    monkeypatch.setattr(terminal.Stages.__init__, "__kwdefaults__", {"patience": 0.1})
    found = run("convert", train, *OPTIONS, "--out", tmp_path / "big")
    assert re.search(r"Converting train.csv, 100 %, \d s: \d+ samples, of \S+ kB", found.err)


def test_patterns_and_several_files(run, train, tmp_path):
    header, *lines = train.read_text().splitlines(keepends=True)
    for k in range(3):
        (tmp_path / f"part-{k}.csv").write_text(header + "".join(lines[k::3]))
    whole = tmp_path / "whole.csv"
    whole.write_text(header + "".join(line for k in range(3) for line in lines[k::3]))
    options = ("--targets", "y1,y2", "--id-column", "id", "--drop", "house,w", "-q")
    parts = [tmp_path / f"part-{k}.csv" for k in range(3)]
    assert run("fit", whole, *options, "-o", tmp_path / "expected").code == 0
    expected = go.load(tmp_path / "expected" / "model").coef_
    for name, given in (("quoted", [tmp_path / "part-*.csv"]), ("expanded", parts)):
        assert run("fit", *given, *options, "-o", tmp_path / name).code == 0
        np.testing.assert_allclose(go.load(tmp_path / name / "model").coef_, expected, rtol=1e-10)
        assert run("verify", tmp_path / name, *given, "-q").code == 0
        assert run("predict", tmp_path / name, *given).out == run("predict", tmp_path / name, whole).out
    assert "no file matches" in run("fit", tmp_path / "piece-*.csv", *options).message


# Memory -------------------------------------------------------------------------------------------------


def test_a_matrix_on_disk_takes_a_limit_of_memory(run, tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 40))
    np.save(tmp_path / "X.npy", X)
    opened, original = [], readers.open_matrix

    def open_matrix(*given):
        opened.append(original(*given))
        return opened[-1]

    monkeypatch.setattr(readers, "open_matrix", open_matrix)
    limit, out = ("--max-memory", "5MB"), tmp_path / "m"
    fit = ("fit", tmp_path / "X.npy", "--targets", "x1", "-q")
    assert run(*fit).code == 0
    assert not opened[0].is_on_disk
    assert run(*fit, *limit, "--out", out).code == 0
    assert run("predict", out, tmp_path / "X.npy", *limit, "-q", "--out", tmp_path / "p.csv").code == 0
    assert run("verify", out, tmp_path / "X.npy", *limit, "-q").code == 0
    assert [design._max_memory for design in opened[1:]] == [5_000_000] * 3


@pytest.mark.parametrize(
    ("limit", "code", "message"),
    [
        ("much", 2, "--max-memory must be a positive number of bytes, or text such as '200MB' or '2GiB', got 'much'."),
        ("1kB", 1, "--max-memory 1 kB is too small for {}: the smallest piece that can be read takes "),
        ("150kB", 1, "{}: --max-memory 150 kB is too small: targets, predictors and dual points of shape (3000, 1) "),
    ],
)
def test_limits_of_memory_that_do_not_serve(run, tmp_path, limit, code, message):
    path = tmp_path / "X.npy"
    np.save(path, np.random.default_rng(0).standard_normal((3000, 40)))
    ran = run("fit", path, "--targets", "x1", "--max-memory", limit)
    assert ran.code == code
    assert ran.message.startswith(message.format(path))
    assert "max_memory" not in ran.message


def test_a_limit_of_memory_is_for_matrices_on_disk(run, train):
    ran = run("fit", train, "--targets", "y1", "--max-memory", "1GB")
    what = f"--max-memory is for matrices on disk, and {train} is a CSV file."
    assert (ran.code, ran.message.partition(" Leave")[0]) == (1, what)
    assert ran.message.endswith("by groupowl convert from CSV and Parquet files, else in Python.")
