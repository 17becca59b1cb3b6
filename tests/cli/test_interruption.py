"""Ctrl-C leaves nothing behind; long work shows that it goes on; output that nobody reads is no error."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import groupowl as go
from cli_support import PROGRAM, columns_of, make_data, write_csv
from groupowl.cli.terminal import Stages
from groupowl.model_selection import search

ARGUMENTS = ("--targets", "y1,y2", "--drop", "id,house,w")


def start(*arguments, **settings):
    """The command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **settings,
    )


# Ctrl-C -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "groupowl.cli.model_commands.load_table",
        "groupowl.cli.model_commands.GroupOWLRegressor.fit",
        "groupowl.cli.run_folder.save",
        "groupowl.cli.run_folder._write_coefficients",
        "groupowl.cli.run_folder.write_report_file",
        "groupowl._files._put_in_place",
        "groupowl._files._flush",
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_interrupted_anywhere(run, train, tmp_path, monkeypatch, call, exists):
    """Nothing is written, and what was there before is still there."""
    out = tmp_path / "m"
    if exists:
        assert run("fit", train, *ARGUMENTS, "--out", out, "-q").code == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(call, interrupt)
    ran = run("fit", train, *ARGUMENTS, "--out", out, "--force")
    assert ran.code == 130
    assert ran.message == "stopped; nothing was written."
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == (["m"] if exists else [])


@pytest.mark.parametrize("writes", [True, False])
def test_interrupted_while_the_summary_is_read(run, train, tmp_path, monkeypatch, writes):
    """The files are there by then, and the message says so."""

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("groupowl.cli.model_commands.print_outcome", interrupt)
    out = tmp_path / "m"
    ran = run("fit", train, *ARGUMENTS, *(["--out", out] if writes else []))
    assert ran.code == 130
    assert ran.message == (f"stopped; {out} was written." if writes else "stopped; nothing was written.")
    assert (out / "report.html").exists() is writes


def test_predictions_interrupted(run, train, tmp_path, monkeypatch):
    assert run("fit", train, *ARGUMENTS, "--out", tmp_path / "m", "-q").code == 0

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("groupowl._files.os.replace", interrupt)
    ran = run("predict", tmp_path / "m", train, "--out", tmp_path / "pred.csv")
    assert ran.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_real_interruption(tmp_path, jobs):
    """SIGINT to the whole group of processes, as a terminal sends it, while folds are fitted."""
    path = write_csv(tmp_path / "t.csv", columns_of(make_data(n=300, d=400, q=3)))
    arguments = ("--targets", "y*", "--drop", "id,house,w", "--tol", "1e-12", "--alphas", 2000, "--eps", "1e-6")
    process = start("cv", path, *arguments, "--jobs", jobs, "--out", tmp_path / "m", start_new_session=True)
    lines = iter(process.stderr.readline, "")
    assert any(line.startswith("Fitting 300 x 400") for line in lines)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "groupowl: stopped; nothing was written."
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_reader_that_has_seen_enough(train, tmp_path):
    process = start("fit", train, *ARGUMENTS)
    process.stdout.close()
    assert process.wait(timeout=120) in (0, 1)
    error = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in error
    assert "unexpected" not in error


# Progress -----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    """Lines come often."""
    monkeypatch.setattr("groupowl.cli.terminal._REWRITE_EVERY", 0.02)
    monkeypatch.setattr("groupowl.cli.terminal._WRITE_EVERY", 0.02)


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_short_work_is_silent(quick, kind):
    stream = kind()
    with Stages(False, stream).stage("Fitting"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_long_work_says_what_it_does(quick, kind):
    stream = kind()
    with Stages(False, stream, patience=0.01).stage("Fitting"):
        time.sleep(0.05)
        print("alpha 3 of 100", file=sys.stderr)
        time.sleep(0.2)
    text = stream.getvalue()
    assert "Fitting, 0 s" in text
    assert "Fitting, 0 s: alpha 3 of 100" in text
    if kind is Terminal:
        assert "\n" not in text
        assert text.rpartition("\r")[2] == ""  # the line is gone
    else:
        assert all(line.startswith("Fitting, 0 s") for line in text.splitlines())


def test_quiet_work_is_silent(quick):
    stream = io.StringIO()
    with Stages(True, stream, patience=0.0).stage("Fitting"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_errors_pass_through_a_stage(quick):
    stream = Terminal()

    def work():
        with Stages(False, stream, patience=0.0).stage("Fitting"):
            time.sleep(0.05)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert stream.getvalue().endswith("\r")
    assert sys.stderr is not stream


def test_two_seconds_is_when_it_begins():
    assert Stages(False).patience == 2.0


def test_a_fit_tells_its_progress(run, train, monkeypatch):
    """What the estimators print becomes the detail of the line, and stdout stays clean for --json."""
    monkeypatch.setattr("groupowl.cli.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("groupowl.cli.model_commands.Stages", lambda quiet: Stages(quiet, patience=0.0))
    monkeypatch.setattr("groupowl.cli.terminal._WRITE_EVERY", 0.001)
    ran = run("cv", train, *ARGUMENTS, "--alphas", 30, "--json")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert re.search(r"^Fitting 40 x 12, \d+ %, \d s: (all data|fold|final fit|preparing)", ran.err, re.MULTILINE)
    for line in ran.err.splitlines():  # one clock, and one percentage of all
        assert len(re.findall(r"\d s\b", line)) == 1
        assert "GroupOWL" not in line
    assert run("cv", train, *ARGUMENTS, "--alphas", 30, "--json", "--quiet").err == ""


def test_verification_tells_its_progress(run, train, tmp_path, monkeypatch):
    assert run("cv", train, *ARGUMENTS, "--alphas", 30, "-q", "--out", tmp_path / "m").code == 0
    monkeypatch.setattr("groupowl.cli.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("groupowl.cli.model_commands.Stages", lambda quiet: Stages(quiet, patience=0.0))
    monkeypatch.setattr("groupowl.cli.terminal._WRITE_EVERY", 0.001)
    monkeypatch.setattr("groupowl._progress._REWRITE_EVERY", 0.0)
    ran = run("verify", tmp_path / "m", train, "--no-scores")
    assert ran.code == 0
    assert re.search(r"^Verifying, \d+ %, \d s: alpha \d+/\d+ certified", ran.err, re.MULTILINE)
    assert run("verify", tmp_path / "m", train, "--no-scores", "-q").err == ""


LOADING = """
import sys

class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stops())
sys.argv = ["groupowl", "--help"]
import groupowl_command
groupowl_command.main()
"""


@pytest.mark.parametrize("module", ["groupowl", "numpy", "groupowl.cli.commands", "pandas"])
def test_interrupted_while_modules_load(module):
    """Which takes a second or two."""
    code = LOADING.format(module=module)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 130
    assert result.stderr == "groupowl: stopped; nothing was written.\n"


# Going on -----------------------------------------------------------------------------------------------


def test_a_search_goes_on(run, train, tmp_path, monkeypatch):
    kept, options = (
        tmp_path / "kept",
        (*ARGUMENTS, "--alphas", 8, "--resume", tmp_path / "kept", "--out", tmp_path / "m"),
    )
    original, written = search.KeptFolds.write, []

    def write(self, number, result):
        original(self, number, result)
        written.append(number)
        if len(written) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(search.KeptFolds, "write", write)
    ran = run("cv", train, *options)
    assert ran.code == 130
    assert ran.message == f"stopped; what was finished is in {kept}, and the same command goes on from there."
    assert not (tmp_path / "m").exists()
    other = run("cv", train, *options, "--tol", "1e-4")
    assert other.code == 1
    assert other.message.startswith(f"--resume: {kept} has solutions of another run, which differs in tol. ")
    assert run("cv", train, *options).code == 0
    assert written == [0, 1, 2, 3, 4]
    found = json.loads(run("cv", train, *ARGUMENTS, "--alphas", 8, "--resume", kept, "--json").out)["scores"]
    assert written == [0, 1, 2, 3, 4]
    whole = json.loads(run("cv", train, *ARGUMENTS, "--alphas", 8, "--json").out)["scores"]
    stored = json.loads((tmp_path / "m" / "run.json").read_text())["scores"]
    assert found.keys() == whole.keys() == stored.keys()
    for name, score in whole.items():  # those of folds that were read back, too
        for own in (found[name], stored[name]):
            assert own["model"] == pytest.approx(score["model"], rel=1e-3)
            assert own["null_model"] == pytest.approx(score["null_model"])
            assert own["targets"]["y2"]["model"] == pytest.approx(score["targets"]["y2"]["model"], rel=1e-3)
    assert go.load(tmp_path / "m" / "model").resume is None
    assert run("verify", tmp_path / "m", train).code == 0


@pytest.mark.parametrize("command", ["fit", "path"])
def test_other_commands_go_on(run, train, tmp_path, command):
    options = (*ARGUMENTS, "--resume", tmp_path / "kept", "-q")
    assert run(command, train, *options).code == 0
    assert (tmp_path / "kept" / "resume.json").exists()
    assert run(command, train, *options).code == 0
    assert run(command, train, *options, "--weights", "lasso").code == 1


def test_an_interrupt_before_anything_is_finished(run, train, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    kept = tmp_path / "kept"
    said = (130, f"stopped; nothing was finished yet, so nothing is in {kept}.")
    monkeypatch.setattr("groupowl.cli.model_commands.load_table", interrupt)
    ran = run("fit", train, *ARGUMENTS, "--resume", kept)
    assert (ran.code, ran.message) == said
    monkeypatch.undo()
    monkeypatch.setattr("groupowl.model_selection.search.Search._run_folds", interrupt)
    monkeypatch.setattr("groupowl.path.kept_points.KeptPoints.write", interrupt)
    ran = run("cv", train, *ARGUMENTS, "--resume", kept)
    assert kept.is_dir()
    assert (ran.code, ran.message) == said


@pytest.mark.parametrize("command", [("cv",), ("select", "--method", "stability")])
def test_a_folder_of_something_else_to_go_on_from(run, train, tmp_path, monkeypatch, command):
    """It is noticed before the data are read."""
    monkeypatch.setattr("groupowl.cli.model_commands.load_table", None)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "notes.txt").write_text("")
    ran = run(*command, train, *ARGUMENTS, "--resume", kept)
    what = "has other files ('notes.txt'), and nothing that such work has kept. Give the name of a new folder."
    assert (ran.code, ran.message) == (1, f"--resume: {kept} {what}")


def test_a_folder_that_would_be_lost(run, train, tmp_path):
    ran = run("fit", train, *ARGUMENTS, "--out", tmp_path / "m", "--resume", tmp_path / "m" / "kept")
    assert ran.code == 2
    assert "which is replaced as a whole. Give a folder beside it" in ran.message


def test_selections_go_on_where_they_have_pairs(run, train, tmp_path):
    options = ("--targets", "y1,y2", "--drop", "id,house,w", "--resume", tmp_path / "kept", "-q")
    ran = run("select", train, *options)
    assert (ran.code, ran.message) == (2, f"--resume {tmp_path / 'kept'} is for --method stability. Leave it out.")
    assert run("select", train, *options, "--method", "stability", "--max-false", 2).code == 0
    assert (tmp_path / "kept" / "stability.json").exists()


def test_a_real_interruption_keeps_what_was_finished(tmp_path):
    path = write_csv(tmp_path / "t.csv", columns_of(make_data(n=200, d=100, q=3)))
    arguments = ("--targets", "y*", "--drop", "id,house,w", "--tol", "1e-10", "--alphas", 2000, "--eps", "1e-6")
    kept = tmp_path / "kept"
    process = start("path", path, *arguments, "--resume", kept, start_new_session=True)
    until = time.monotonic() + 120
    while len(list(kept.glob("*.npz"))) < 10:
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith(f"groupowl: stopped; what was finished is in {kept}")
    assert [name for name in os.listdir(kept) if name.startswith(".")] == []
    assert len(list(kept.glob("*.npz"))) >= 10
