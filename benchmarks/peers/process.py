"""The workers of the competitors, each in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from groupowl_harness import process as harness

from .adapters import ADAPTERS, ROOT

PATIENCE = 12.0  # limits are of CPU time; a busy machine may take so many times as long


class OverLimit(Exception):
    """The competitor needed more than it was given; ``cpu`` is what it used of it, if that is known."""

    def __init__(self, cpu: float | None = None) -> None:
        super().__init__("over the limit")
        self.cpu = cpu


class Failed(Exception):
    """The competitor raised an error or died."""


def environment(threads: int, tree: Path | None = None, folder: Path | None = None) -> dict[str, str]:
    """The environment of a worker: thread pools of the same size, another source tree, a folder for its files."""
    more = {"PYTHONWARNINGS": "ignore"}
    if tree is not None:
        more["PYTHONPATH"] = os.pathsep.join([str(tree), *filter(None, [os.environ.get("PYTHONPATH")])])
    if folder is not None:
        more["TMPDIR"] = str(folder)
    return harness.environment(threads, **more)


class Process:
    """A worker for one competitor, or for several in one process; ``tree`` is where "before" has its groupowl."""

    def __init__(self, *names: str, threads: int, tree: Path | None = None, folder: Path | None = None) -> None:
        self.tree = tree if names == ("before",) else None
        self.worker = harness.WorkerProcess(
            "benchmarks.peers.worker",
            ",".join(names),
            str(threads),
            environment=environment(threads, self.tree, folder),
            python=ADAPTERS[names[0]].python,
            folder=ROOT,
        )
        self.warmed: set[Any] = set()  # competitors and kinds of problems it has solved since its start

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """The reply to a request, or :class:`OverLimit` and the end of the process."""
        if not self.worker.is_running:
            self.warmed.clear()
        try:
            reply = self.worker.ask(request, limit, patience=PATIENCE)
        except harness.WorkerError as error:
            raise (OverLimit(error.cpu) if error.late else Failed(str(error))) from None
        if "error" in reply:
            raise Failed(f"{reply['error']} ({reply['where']})")
        return reply

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.worker.stop()
