"""The workers of the competitors, each in a process of its own."""

from __future__ import annotations

from typing import Any

from groupowl_harness import process as harness

from .adapters import ADAPTERS, ROOT


class OverLimit(Exception):
    """The competitor needed more than it was given."""


class Failed(Exception):
    """The competitor raised an error or died."""


def environment(threads: int) -> dict[str, str]:
    """The environment of a worker: every known thread pool has the same size."""
    return harness.environment(threads, PYTHONWARNINGS="ignore")


class Process:
    """A worker for one competitor."""

    def __init__(self, name: str, threads: int) -> None:
        self.worker = harness.WorkerProcess(
            "benchmarks.peers.worker",
            name,
            str(threads),
            environment=environment(threads),
            python=ADAPTERS[name].python,
            folder=ROOT,
        )
        self.warmed: set[Any] = set()  # kinds of problems it has solved since its start

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """The reply to a request, or :class:`OverLimit` and the end of the process."""
        if not self.worker.is_running:
            self.warmed.clear()
        try:
            reply = self.worker.ask(request, limit)
        except harness.WorkerError as error:
            raise (OverLimit if error.late else Failed(str(error))) from None
        if "error" in reply:
            raise Failed(f"{reply['error']} ({reply['where']})")
        return reply

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.worker.stop()
