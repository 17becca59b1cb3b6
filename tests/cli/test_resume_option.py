"""--resume: what was finished is kept, and the same command goes on."""

from __future__ import annotations

import os
import signal
import time

import pytest
from test_interruption import ARGUMENTS, start

import groupowl as go
from cli_support import columns_of, make_data, write_csv
from groupowl.model_selection import search


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

    monkeypatch.setattr("groupowl.cli.model_commands.load_table", interrupt)
    ran = run("fit", train, *ARGUMENTS, "--resume", tmp_path / "kept")
    assert (ran.code, ran.message) == (130, "stopped; nothing was written.")


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
