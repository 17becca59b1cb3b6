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
