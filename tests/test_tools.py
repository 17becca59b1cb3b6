"""The tools count what they say they count."""

import runpy
from pathlib import Path

import groupowl as go

TOOLS = Path(__file__).parents[1] / "tools"

MODULE = '''"""A docstring
of two lines."""

# a comment
import math  # counts


def area(radius):
    """Another one."""
    text = """no docstring,
    but two lines"""
    return math.pi * radius**2, text
'''


def test_code_lines(tmp_path):
    (tmp_path / "area.py").write_text(MODULE, encoding="utf-8")
    assert runpy.run_path(str(TOOLS / "size.py"))["code_lines"](tmp_path / "area.py") == 5


def test_the_size_of_a_package(tmp_path, capsys):
    for name in ("a/__init__.py", "a/base.py", "a/sum.py", "b/base.py", "b/sum.py", "b/adding.py", "screening.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MODULE, encoding="utf-8")
    runpy.run_path(str(TOOLS / "size.py"))["main"]([str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.startswith("total")] == [["total", "35", "7"]]
    assert "file names that occur twice: 1" in lines
    assert "  a/sum.py = b/sum.py" in lines
    assert "modules named by a gerund: 1" in lines
    assert "  b/adding" in lines


def test_the_size_of_groupowl(capsys):
    runpy.run_path(str(TOOLS / "size.py"))["main"]([])
    assert "longest chain of imports between layers: " in capsys.readouterr().out


def test_a_journey():
    journey = runpy.run_path(str(TOOLS / "journey.py"))["Journey"]()
    journey.record(lambda: go.weights.constant(3))
    assert "constant" in journey.functions["weights.py"]
    assert journey.depth >= 1
    entered = dict(journey.functions)
    go.weights.oscar(3)  # which is not recorded
    assert dict(journey.functions) == entered
    assert "oscar" not in journey.functions["weights.py"]
