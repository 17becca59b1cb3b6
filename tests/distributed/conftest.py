"""Most tests of Dask collections compute in this process; those of clusters ask for one."""

import sys
from pathlib import Path

import dask
import pytest

# Worker processes inherit the path, and find there the functions of test modules that they are sent.
sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def _compute_here(request):
    """The scheduler that needs neither threads nor processes, unless a cluster is asked for."""
    if "cluster" in request.fixturenames:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield
