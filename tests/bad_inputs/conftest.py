"""What tables of bad inputs share: work is bounded by the bytes it allocates; the clock only ends what hangs."""

import faulthandler
import tracemalloc

import pytest

from bad_input_support import MOST_BYTES

_HANGS = 60.0


@pytest.fixture(autouse=True)
def bounded_work():
    """Refusing takes few bytes, whatever was asked for; who hangs is ended with a traceback."""
    faulthandler.dump_traceback_later(_HANGS, exit=True)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
        faulthandler.cancel_dump_traceback_later()
