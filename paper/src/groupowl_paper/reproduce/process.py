"""Whoever does the work: by default a process of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import groupowl
import groupowl_harness
import groupowl_paper
from groupowl_harness.process import WorkerProcess, environment


class Worker(Protocol):
    """Whoever does the work."""

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Reply within ``limit`` seconds, or :class:`groupowl_harness.process.WorkerError`."""
        ...

    def stop(self) -> None:
        """End it, whatever it is doing; it may be asked again."""
        ...


class ProcessWorker(WorkerProcess):
    """A worker in a process of its own, with one BLAS thread and the same packages as here."""

    def __init__(self) -> None:
        packages = (groupowl_paper, groupowl, groupowl_harness)
        folders = dict.fromkeys(str(Path(package.__path__[0]).parent) for package in packages)
        search = os.pathsep.join(filter(None, [*folders, os.environ.get("PYTHONPATH")]))
        super().__init__("groupowl_paper.reproduce.worker", environment=environment(1, PYTHONPATH=search))
