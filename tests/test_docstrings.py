"""Every example in a docstring runs, every public name is explained, every module loads without extras."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re
import subprocess
import sys

import pytest

import groupowl

EXTRAS = ["cvxpy", "dask", "h5py", "matplotlib", "pandas", "pyarrow", "rich", "typer", "zarr"]


def module_names():
    found = pkgutil.walk_packages(groupowl.__path__, prefix="groupowl.")
    left_out = {"groupowl.__main__", "groupowl.selection"}  # the latter warns, and has no examples of its own
    return ["groupowl", *sorted(module.name for module in found if module.name not in left_out)]


@pytest.mark.parametrize("name", module_names())
def test_examples_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_examples_are_found():
    """The public functions of mathematics have examples, so the test above is not empty."""
    finder = doctest.DocTestFinder()
    tests = [test for name in module_names() for test in finder.find(importlib.import_module(name))]
    with_examples = {test.name.rsplit(".", 1)[-1] for test in tests if test.examples}
    assert {"owl_norm", "owl_dual_norm", "owl_prox", "oscar_lam", "make_correlated_groups"} <= with_examples


@pytest.mark.parametrize("name", groupowl.__all__)
def test_public_names_have_a_docstring(name):
    """Of its own: neither inherited nor the signature that a dataclass writes."""
    value = getattr(groupowl, name)
    text = inspect.cleandoc(value.__doc__ or "")
    assert len(text.split()) >= 3
    assert not (inspect.isclass(value) and text.startswith(f"{name}("))


@pytest.mark.parametrize("name", [name for name in groupowl.__all__ if inspect.isclass(getattr(groupowl, name))])
def test_public_methods_have_a_docstring(name):
    members = vars(getattr(groupowl, name)).items()
    public = {key: value for key, value in members if not key.startswith("_")}
    explained = (property, classmethod, staticmethod)
    bare = [
        key
        for key, value in public.items()
        if (inspect.isfunction(value) or isinstance(value, explained)) and not value.__doc__
    ]
    assert not bare, f"{name} has public methods without a docstring: {bare}"


@pytest.mark.parametrize("name", module_names())
def test_methods_are_documented_where_they_are_introduced(name):
    """Overriding methods inherit what is said of the method that they override."""
    module = importlib.import_module(name)
    classes = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == name]
    bare = [
        f"{cls.__name__}.{key}"
        for cls in classes
        if not cls.__name__.startswith("_")
        for key, value in vars(cls).items()
        if not key.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
        if not inspect.getdoc(getattr(cls, key))
    ]
    assert not bare, f"public methods without a docstring: {bare}"


ESTIMATORS = ["GroupOWLRegressor", "GroupOWLClassifier", "GroupOWLRegressorCV", "GroupOWLClassifierCV"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_are_explained_by_the_estimators_themselves(name):
    """What the number means, and all arguments, in words of our own."""
    method = getattr(groupowl, name).score
    assert method.__module__.startswith("groupowl.")
    text = inspect.getdoc(method)
    assert all(section in text for section in ("Parameters\n---", "Returns\n---"))
    assert all(f"\n{argument} : " in text for argument in inspect.signature(method).parameters if argument != "self")


@pytest.mark.parametrize("name", [*ESTIMATORS, "group_owl_path", "weights"])
def test_that_gaussian_weights_count_rows_is_said_where_weights_are(name):
    text = " ".join(inspect.getdoc(getattr(groupowl, name)).split())
    assert "gaussian" in text
    assert "rows of X with a positive weight" in text or "rows of X whose sample weight is positive" in text


BLOCKING_IMPORT = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
for name in {modules!r}:
    importlib.import_module(name)
"""


def test_every_module_loads_without_extras():
    """As on a machine that has only what the package requires; the commands themselves come with an extra."""
    modules = [name for name in module_names() if not name.startswith("groupowl.cli.")]
    assert "groupowl.cli" in modules  # which says what to install
    code = BLOCKING_IMPORT.format(extras=EXTRAS, modules=modules)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_names_in_docstrings_are_there():
    """Of a :class:`~groupowl.x.Y` in any module, groupowl.x has Y."""
    pattern = re.compile(r":(?:class|func|mod|data|obj):`~?(groupowl\.[\w.]+)`")
    named = {
        name
        for module in module_names()
        for name in pattern.findall(inspect.getsource(importlib.import_module(module)))
    }
    assert len(named) > 10
    assert [name for name in sorted(named) if pydoc.locate(name) is None] == []
