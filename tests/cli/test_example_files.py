"""The files in examples/ are what their script makes, and the commands shown for them work."""

from __future__ import annotations

import csv
import importlib.util
import shlex
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_plants", EXAMPLES / "make_plants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_are_what_the_script_makes(script, tmp_path, capsys):
    script.main(folder=tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in EXAMPLES.glob("*.csv"))
    for name in made:
        with (tmp_path / name).open() as fresh, (EXAMPLES / name).open() as stored:
            new, old = list(csv.reader(fresh)), list(csv.reader(stored))
        assert new[0] == old[0]
        assert [row[0] for row in new] == [row[0] for row in old]
        for ours, theirs in zip(new[1:], old[1:], strict=True):  # another version of NumPy may round otherwise
            for cell, other in zip(ours[1:], theirs[1:], strict=True):
                assert cell == other or abs(float(cell) - float(other)) < 2e-3


def test_the_commands_that_are_shown(script, run, tmp_path, monkeypatch):
    """In the order of the docstring, in a folder of their own."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    shown = [shlex.split(line) for line in script.__doc__.splitlines() if line.strip().startswith("groupowl ")]
    assert [words[1] for words in shown] == ["cv", "predict", "fit"]
    for words in shown:
        ran = run(*words[1:])
        assert ran.code == 0, ran.err
    assert (tmp_path / "model" / "report.html").is_file()
    assert (tmp_path / "predictions.csv").read_text().startswith("plant,predicted_growth,predicted_yield\n")
    assert run("verify", "model", "examples/plants.csv").code == 0
