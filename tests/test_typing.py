"""The file that type checkers read uses every public name, so that none can lose its type unseen."""

import ast
import inspect
import re
import textwrap
from functools import cached_property
from pathlib import Path

import pytest

import groupowl

ROOT = Path(__file__).parents[1]
SOURCE = (ROOT / "tests" / "typing" / "uses_public_api.py").read_text(encoding="utf-8")


def used_names():
    """Attributes of modules as the file writes them, ``go.solve`` as ``groupowl.solve``."""
    modules = {"go": "groupowl"}
    nodes = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Attribute)]
    found = set()
    for node in nodes:
        if isinstance(node.value, ast.Name):
            found.add(f"{modules.get(node.value.id, f'groupowl.{node.value.id}')}.{node.attr}")
    return found


def documented_names():
    """What the pages of the API list, with the modules of the lists."""
    found = set()
    for page in sorted((ROOT / "docs" / "api").glob("*.rst")):
        module = "groupowl"
        for line in page.read_text(encoding="utf-8").splitlines():
            if current := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
                module = current[1]
            elif page.name != "index.rst" and re.fullmatch(r"   [A-Za-z_]\w+", line):
                found.add(f"{module}.{line.strip()}")
    return found


def test_every_public_name_is_used():
    wanted = {f"groupowl.{name}" for name in groupowl.__all__} | documented_names()
    assert len(wanted) > 60
    assert sorted(wanted - used_names()) == []


@pytest.mark.parametrize("module", ["weights", "datasets", "inference"])
def test_public_modules_are_documented(module):
    names = {f"groupowl.{module}.{name}" for name in getattr(groupowl, module).__all__}
    assert names <= documented_names() | used_names()


def test_types_are_for_users():
    """The package says that it has types, and the checkers of ``make types`` read the file."""
    assert (Path(groupowl.__file__).parent / "py.typed").exists()
    assert '"tests/typing"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "pyright -p tests/typing" in (ROOT / "Makefile").read_text(encoding="utf-8")


def declared_names(kind):
    """Attributes that the classes of an estimator annotate, and their properties."""
    made = (property, cached_property)
    found = {name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, made)}
    for base in kind.__mro__:
        if base.__module__.startswith("groupowl"):
            nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base))))
            found |= {node.target.id for node in nodes if isinstance(node, ast.AnnAssign)}
    return found


@pytest.mark.parametrize(
    "kind",
    [
        *(getattr(groupowl, name) for name in groupowl.__all__ if name.startswith("GroupOWL") and name != "GroupOWL"),
        groupowl.inference.KnockoffSelector,
        groupowl.inference.SlopeSelector,
        groupowl.inference.StabilitySelector,
    ],
)
def test_fitted_attributes_have_types(kind):
    documented = set(re.findall(r"^    ([a-z_]+_) : ", kind.__doc__, flags=re.MULTILINE))
    assert len(documented) > 5
    assert sorted(documented - declared_names(kind)) == []
