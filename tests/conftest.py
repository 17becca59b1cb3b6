"""What several folders of tests need."""

import pytest

from groupowl import kernel


@pytest.fixture
def numpy_kernel(monkeypatch):
    """Solves by NumPy alone, for what concerns its working sets and for numbers that pages show."""
    monkeypatch.setattr(kernel, "is_available", lambda: False)
