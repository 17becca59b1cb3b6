"""Output that is full, closed, of another encoding, a device, a pipe or a link: told in words, and nothing is lost."""

from __future__ import annotations

import io
import os
import sys
import threading

import pytest

from cli_support import columns_of, make_data, write_csv
from groupowl import cli

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no such files")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")

NAMES = ["größe", "温度", *(f"gene{j}" for j in range(10))]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    columns = columns_of(make_data(), NAMES)
    return write_csv(tmp_path_factory.mktemp("data") / "data.csv", {name: columns[name] for name in [*NAMES, "y1"]})


@pytest.fixture
def model(run, data, tmp_path):
    assert run("fit", data, "-t", "y1", "--alpha", "0.01", "--out", tmp_path / "model", "-q").code == 0
    return tmp_path / "model"


def run_with(monkeypatch, stdout, *arguments):
    """Run the command line with another standard output; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["groupowl", *map(str, arguments)])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        if stdout is None:
            sys.stdout.close()  # what has taken its place
    return stopped.value.code


# Standard output ----------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize("command", ["fit", "json", "predict", "predict to a file", "verify", "--version", "--help"])
def test_a_full_output_keeps_what_was_written(run, model, data, tmp_path, monkeypatch, capsys, command):
    out = tmp_path / "new"
    arguments = {
        "fit": ["fit", data, "-t", "y1", "--out", out],
        "json": ["cv", data, "-t", "y1", "--alphas", "2", "--folds", "2", "--json", "--out", out],
        "predict": ["predict", model, data],
        "predict to a file": ["predict", model, data, "--out", out],
        "verify": ["verify", model, data],
    }.get(command, [command])
    with open("/dev/full", "w", encoding="utf-8") as full:
        code = run_with(monkeypatch, full, *arguments)
    kept = f"{out} was written" if "--out" in arguments else "nothing was written"
    message = f"groupowl: cannot write to standard output: No space left on device; {kept}.\n"
    assert (code, capsys.readouterr().err) == (1, message)
    if out.is_dir():
        assert run("verify", out, data, "-q").code == 0
    assert out.exists() == ("--out" in arguments)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_names_that_cannot_be_shown_are_escaped(model, data, tmp_path, monkeypatch, command, errors):
    text = data.read_text(encoding="utf-8").replace("y1", "größe2", 1)
    (tmp_path / "other.csv").write_text(text, encoding="utf-8")
    first = ["fit", tmp_path / "other.csv", "-t", "größe2", "--alpha", "0.01", "--out", tmp_path / "other"]
    bytes_shown = io.BytesIO()
    assert run_with(monkeypatch, io.TextIOWrapper(bytes_shown, encoding="ascii", errors=errors), *first) == 0
    if command == "predict":
        bytes_shown = io.BytesIO()
        stdout = io.TextIOWrapper(bytes_shown, encoding="ascii", errors=errors)
        assert run_with(monkeypatch, stdout, "predict", tmp_path / "other", data) == 0
    shown = bytes_shown.getvalue().decode("ascii")
    assert r"gr\xf6\xdfe2" in shown
    assert (r"\u6e29\u5ea6" in shown) == (command == "fit")


def test_a_closed_output_is_no_error(data, tmp_path, monkeypatch):
    assert run_with(monkeypatch, None, "fit", data, "-t", "y1", "--out", tmp_path / "m") == 0
    assert (tmp_path / "m" / "run.json").exists()


@needs_full
def test_notes_that_nobody_can_read_do_not_cost_the_predictions(model, data, tmp_path, monkeypatch):
    columns = {"novel": ["1"] * 40} | columns_of(make_data(), NAMES)  # of which there is a note
    wide = write_csv(tmp_path / "wide.csv", columns)
    with open("/dev/full", "w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert run_with(monkeypatch, io.StringIO(), "predict", model, wide, "--out", tmp_path / "p.csv") == 0
        with pytest.raises(OSError, match="No space left"):
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 41


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["cv", "--help"], 0),
        (["predict", "{model}", "{data}"], 0),
        (["fit", "{data}", "-t", "y1"], 0),
        (["fit", "{data}", "-t", "y1", "--json"], 0),
        (["verify", "{model}", "{data}"], 0),
        (["verify", "{model}", "{other}"], 1),  # what is wrong is so, whoever reads it
    ],
)
def test_readers_that_have_seen_enough_are_no_error(model, data, tmp_path, monkeypatch, command, code):
    columns = columns_of(make_data(seed=3), NAMES)
    other = write_csv(tmp_path / "other.csv", {name: columns[name] for name in [*NAMES, "y1"]})
    arguments = [word.format(model=model, data=data, other=other) for word in command]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as stdout:
        assert run_with(monkeypatch, stdout, *arguments) == code


# Devices, pipes and links -------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_predictions_go_through_a_device(run, model, data, force):
    before = os.stat("/dev/null")
    ran = run("predict", model, data, "--out", "/dev/null", *force)
    assert ran.out.startswith("40 samples predicted.\n/dev/null\n")
    assert os.path.samestat(os.stat("/dev/null"), before)


@needs_full
def test_a_full_device_is_told(run, model, data):
    ran = run("predict", model, data, "--out", "/dev/full", "--force")
    assert (ran.code, ran.message) == (1, "cannot write to /dev/full: No space left on device")


def test_predictions_go_through_a_pipe(run, model, data, tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run("predict", model, data, "--out", pipe).code == 0
    reader.join(timeout=60)
    assert found == [run("predict", model, data).out]
    assert pipe.is_fifo()


def test_the_file_behind_standard_output_is_not_replaced(run, model, data, tmp_path, monkeypatch):
    """As with ``--out /dev/stdout > file``: what is printed would go to a file without a name."""
    expected = run("predict", model, data).out
    path = tmp_path / "shown.csv"
    with path.open("w", encoding="utf-8") as stdout:
        assert run_with(monkeypatch, stdout, "predict", model, data, "--out", path, "--force") == 0
        assert os.path.samestat(os.fstat(stdout.fileno()), path.stat())
    assert path.read_text(encoding="utf-8") == expected


def test_links_stay(run, model, data, tmp_path):
    link, file = tmp_path / "link.csv", tmp_path / "file.csv"
    link.symlink_to(file)
    assert run("predict", model, data, "--out", link, "-q").code == 0  # which makes the file
    assert "exists. Use --force" in run("predict", model, data, "--out", link).message
    file.write_text("old")
    assert run("predict", model, data, "--out", link, "--force", "-q").code == 0
    assert link.is_symlink()
    assert file.read_text() == run("predict", model, data).out
    folder = tmp_path / "folder"
    folder.symlink_to("real")
    for force in ([], ["--force"]):
        assert run("fit", data, "-t", "y1", "--out", folder, "-q", *force).code == 0
        assert folder.is_symlink()
        assert run("verify", tmp_path / "real", data, "-q").code == 0
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for arguments in (["predict", model, data], ["fit", data, "-t", "y1"]):
        assert f"cannot write to {tmp_path / 'a'}: " in run(*arguments, "--out", tmp_path / "a", "--force").message
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
