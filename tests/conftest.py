"""What several folders of tests need."""

import signal
import sys

import pytest
import twin_support

from groupowl import kernel
from groupowl.solvers import continuation


@pytest.fixture
def numpy_kernel(monkeypatch):
    """Solves by NumPy alone, for what concerns its working sets and for numbers that pages show."""
    monkeypatch.setattr(kernel, "is_available", lambda: False)


@pytest.fixture(autouse=True)
def proved_twice(monkeypatch):
    """Whatever the compiled certificate proves in any test is compared with the definition."""
    monkeypatch.setattr(kernel, "whole_fit", twin_support.compared_fit)
    monkeypatch.setattr(continuation, "twin_looks", twin_support.compared_looks)


@pytest.fixture(autouse=True)
def no_figure_stays():
    """Every test closes its figures: one that opens the twenty-first is warned, whichever tests opened the others."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def heeds_interrupts():
    """Ctrl-C raises KeyboardInterrupt, whoever started the tests: those in the background of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
