"""Most tests of Dask collections compute in this process; those of clusters ask for one."""

import dask
import pytest


@pytest.fixture(autouse=True)
def _compute_here(request):
    """The scheduler that needs neither threads nor processes, unless a cluster is asked for."""
    if "cluster" in request.fixturenames:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield
