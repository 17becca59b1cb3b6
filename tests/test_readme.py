"""The README's code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def pictures_go_to_files(monkeypatch, tmp_path):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_script_does_what_its_comments_say(tmp_path, capsys):
    """Blocks follow each other: the second uses the data of the first."""
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), names)
    model, result = names["model"], names["result"]
    printed = capsys.readouterr().out
    assert "the fit holds" in printed
    assert "gene" in printed
    assert bool(model.verify(names["X"], names["y"]))
    assert len(model.selected_features_) > 0
    assert (tmp_path / "path.png").stat().st_size > 10_000
    assert result.converged


def test_the_script_has_25_lines():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 25


def rows_of_tables(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_figures_of_the_table_are_those_of_the_benchmark():
    """Times over groupowl's, package by package: what the last results say."""
    page = README.parent / "benchmarks" / "results" / "README.md"
    measured = {(row[0], row[1]): row[2] for row in rows_of_tables(page.read_text(encoding="utf-8")) if len(row) == 6}
    header, *rows = rows_of_tables(README.read_text(encoding="utf-8"))
    packages = [title.split()[0] for title in header[1:] if title]
    groups = {
        "many tasks, sorted weights": "(a)",
        "one task, sorted weights": "(c)",
        "many tasks, equal weights": "(b)",
        "multinomial, equal weights": "(d)",
    }
    compared = 0
    for title, *cells in rows:
        if not title.startswith("time / groupowl, "):
            continue
        group = groups[title.removeprefix("time / groupowl, ")]
        for package, cell in zip(packages, cells, strict=True):
            if package not in ("groupowl", "R") and cell:
                assert cell == measured[group, package], (title, package)
                compared += 1
    assert compared == 7


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert [target for target in targets if "://" not in target and not (README.parent / target).exists()] == []
