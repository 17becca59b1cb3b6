"""Every module of the project loads, and every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import groupowl_paper

NAMES = sorted(module.name for module in pkgutil.walk_packages(groupowl_paper.__path__, prefix="groupowl_paper."))


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found():
    tests = [test for name in NAMES for test in doctest.DocTestFinder().find(importlib.import_module(name))]
    assert {test.name.rpartition(".")[2] for test in tests if test.examples} >= {"setting_lam"}
