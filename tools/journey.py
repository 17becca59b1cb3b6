"""Print how many functions of the package one ``GroupOWLRegressorCV().fit`` walks through.

Run as ``python tools/journey.py``; with ``--list`` it names the functions of each file.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import groupowl as go

PACKAGE = os.path.dirname(go.__file__) + os.sep


class Journey:
    """Functions of the package that a call enters.

    Attributes
    ----------
    functions : dict
        Names of the functions that were entered, by file; lambdas and comprehensions count as functions.
    depth : int
        The largest number of them that were running at the same time, one inside the other.
    """

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = defaultdict(set)
        self.depth = 0
        self._running = 0

    def record(self, call: Callable[[], Any]) -> None:
        """Make a call and record what it enters."""
        sys.setprofile(self._profile)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            self.functions[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)
            self._running += 1
            self.depth = max(self.depth, self._running)
        elif event == "return":
            self._running -= 1


def main(arguments: list[str]) -> None:
    """Fit 60 samples of 200 features and 3 tasks, and print what was entered."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 200))
    B = np.zeros((200, 3))
    B[:5] = 1.0
    Y = X @ B + rng.standard_normal((60, 3))
    model = go.GroupOWLRegressorCV()
    journey = Journey()
    journey.record(lambda: model.fit(X, Y))
    if "--list" in arguments:
        for file, names in sorted(journey.functions.items()):
            print(f"{file} ({len(names)})")
            for name in sorted(names):
                print(f"  {name}")
    n_functions = sum(len(names) for names in journey.functions.values())
    print(f"{n_functions} functions in {len(journey.functions)} files, {journey.depth} deep")


if __name__ == "__main__":
    main(sys.argv[1:])
