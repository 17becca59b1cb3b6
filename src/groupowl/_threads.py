"""Threads: those that BLAS may use, and fits that run side by side in threads of their own."""

from __future__ import annotations

import math
import numbers
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Entries of X up to which BLAS has one thread. On two cores that others used too, solves with two threads took as long
# up to 2^17 entries, 0.9 to 14 times as long from 2^18 to 2^22 (most 1.3 to 4 times; 10000 x 300 x 3 gained), and
# 0.85 to 1.1 times as long at 500 x 10000 x 10.
_LARGE = 2**22

_lock = threading.Lock()
_calls = 0  # public calls in progress
_former: list[tuple[Any, int]] = []  # libraries that have one thread now, with the threads they had


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of this process, found once; none where the environment leaves them one thread."""
    if "1" in (os.environ.get("OMP_NUM_THREADS"), os.environ.get("OPENBLAS_NUM_THREADS")):
        return []
    from threadpoolctl import ThreadpoolController  # which takes longer than most solves

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def blas_threads(X: Any, *, are_taken: bool = False) -> Iterator[None]:
    """Public calls run in this: BLAS has one thread while X is small or processors ``are_taken`` by threads of ours.

    The number is that of the whole process: the first call to begin decides, and what it changed is changed back when
    the last one ends, so that calls in calls, and calls in several threads, change nothing.
    """
    global _calls
    shape: Any = getattr(X, "shape", None)  # that of files is not known, nor how long a collection of Dask is
    is_known = isinstance(shape, tuple) and set(map(type, shape)) == {int}
    is_small = is_known and math.prod(shape) <= _LARGE
    with _lock:
        _calls += 1
        if _calls == 1 and (are_taken or is_small):
            for library in _libraries():
                n_threads = library.get_num_threads()
                if n_threads is not None and n_threads > 1:
                    library.set_num_threads(1)
                    _former.append((library, n_threads))
    try:
        yield
    finally:
        with _lock:
            _calls -= 1
            while _calls == 0 and _former:
                library, n_threads = _former.pop()
                library.set_num_threads(n_threads)


def check_jobs(n_jobs: Any) -> int | None:
    """Check ``n_jobs`` early: joblib would round it, or fail on it after hours."""
    is_whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is None or (is_whole and n_jobs != 0 and abs(n_jobs) < 2**31):
        return None if n_jobs is None else int(n_jobs)
    kind = ValueError if is_whole else TypeError
    raise kind(f"n_jobs must be None or an integer, -1 for all processors and never 0, got {n_jobs!r}.")


def count_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``, which may be negative; those of joblib's context for None."""
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):  # whose import takes longer than many solves
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class Interrupted(Exception):
    """Ends a thread whose result nobody wants any more."""


class Stop:
    """Asked now and then by threads: raises in them once what they work for has ended, and ``is_over``."""

    is_over = False

    def __call__(self) -> bool:
        if self.is_over:
            raise Interrupted
        return False


def run_in_threads(work: Callable[[Item, Stop], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """``work(item, stop)`` for each item, in their order; an exception, that of Ctrl-C too, ends all threads first."""
    stop = Stop()
    if n_threads == 1:
        return [work(item, stop) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:  # which waits for its threads
        try:
            return list(pool.map(work, items, repeat(stop)))
        except BaseException:
            stop.is_over = True
            raise
