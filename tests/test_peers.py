"""The command line of the peer benchmark: what it refuses, and what it lists."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def main(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("benchmarks.peers.__main__").main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--competitors", "groupowl,sklearn"], "--competitors: unknown competitor 'sklearn'; known are groupowl, "),
        (["--only", "b,q"], "--only: unknown group 'q'; known are a: multi-task regression"),
        (["--quick", "--cases", "7x7"], "--cases: '7x7' is in no name of a problem in a,b,c,d,e,f,g,s,x; their data "),
        (["--only", "e"], "--only: there is no problem in e; its data come from --data DIR"),
        (["--only", "x", "--cases", "oscar"], "--only: there is no problem in x"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(main, capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert f"error: argument {message}" in capsys.readouterr().err.splitlines()[-1]


def test_a_competitor_that_is_not_installed_is_refused_in_one_line(main, capsys, monkeypatch, tmp_path):
    adapters = import_module("benchmarks.peers.adapters")
    monkeypatch.setattr(adapters, "ROOT", tmp_path)  # where no environment is
    with pytest.raises(SystemExit, match="2"):
        main(["--quick", "--competitors", "groupowl,adelie", "--out", str(tmp_path / "out")])
    assert "error: argument --competitors: adelie is not installed; " in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_groups_and_names_choose_problems(main, capsys):
    main(["--list", "--quick", "--only", "b,c", "--cases", "constant"])
    listed = capsys.readouterr().out.splitlines()
    assert listed
    assert all(line.startswith("b: ") and "constant" in line for line in listed)


@pytest.mark.usefixtures("main")
def test_a_competitor_answers_fails_and_is_late():
    process = import_module("benchmarks.peers.process")
    worker = process.Process("groupowl", 1)
    try:
        assert worker.ask(120.0, do="rehearse") == {}
        worker.warmed.add("this kind")
        with pytest.raises(process.Failed, match=r"^FileNotFoundError: .*nowhere.* \(\w+\.py:\d+\)$"):
            worker.ask(120.0, do="load", folder="nowhere", loss="squared", weights="oscar", strongest=1.0)
        assert worker.warmed
        with pytest.raises(process.OverLimit):
            worker.ask(0.0, do="rehearse")
        worker.ask(120.0, do="rehearse")
        assert not worker.warmed  # a new process has solved nothing yet
    finally:
        worker.stop()


@pytest.mark.usefixtures("main")
def test_why_skglm_declines_sorted_weights():
    """It has them for one response, and that is not the same as not having them."""
    adapters = import_module("benchmarks.peers.adapters")
    refuse = adapters.ADAPTERS["skglm"].refuse
    one, many = (adapters.Kind("squared", True, one_task, sparse=False, path=False) for one_task in (True, False))
    assert "SLOPE" in refuse(one)
    assert refuse(many) == "constant weights only"
    assert refuse(adapters.Kind("squared", False, one_task=True, sparse=False, path=False)) is None
