"""Where the time of a call goes: shares of the modules of groupowl, by samples of CPU time."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType

TICK = 1e-3  # seconds of CPU time between two samples, at best
ELSEWHERE = "other code"


def time_shares(call: Callable[[], object], package: Path, seconds: float) -> dict[str, float]:
    """Call again and again for some seconds of CPU time; the share of each module of a package, largest first.

    A sample belongs to the innermost frame of the package, with what it calls in other packages and in C. Signals wait
    until C returns, so a sample counts for the time since the last one.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    last = time.process_time()

    def sample(_: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.process_time()
        spent[_module(frame, package)] += now - last
        last = now

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
    try:
        end = last + seconds
        while time.process_time() < end:
            call()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    total = sum(spent.values())
    return {name: part / total for name, part in sorted(spent.items(), key=lambda item: -item[1])} if total else {}


def _module(frame: FrameType | None, package: Path) -> str:
    """Module or subpackage of the innermost frame that is in the package."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if package in path.parents:
            return path.relative_to(package).parts[0].removesuffix(".py")
        frame = frame.f_back
    return ELSEWHERE


def shares_text(shares: dict[str, float] | None) -> str:
    """The largest shares in words, as far as they are a tenth or more."""
    return ", ".join(f"{name} {100 * part:.0f} %" for name, part in (shares or {}).items() if part >= 0.1)
