"""The parent's side of a worker: start it, ask it with a time limit, kill it when it hangs, start it again."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from .adapters import ADAPTERS, ROOT

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


class OverLimit(Exception):
    """The competitor needed more than it was given."""


class Failed(Exception):
    """The competitor raised an error or died."""


def environment(threads: int) -> dict[str, str]:
    """The environment of a worker: every known thread pool has the same size."""
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONWARNINGS": "ignore"}


class Process:
    """A worker for one competitor."""

    def __init__(self, name: str, threads: int, log: Path) -> None:
        self.name, self.threads, self.log = name, threads, log
        self.process: Any = None
        self.warmed: set[Any] = set()  # kinds of problems it has solved since its start

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """The reply to a request, or :class:`OverLimit` and the end of the process."""
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            raise Failed("worker died") from None
        reply: dict[str, Any] = json.loads(self._read(limit))
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def _start(self) -> None:
        python = str(ADAPTERS[self.name].python)
        command = [python, "-m", "benchmarks.peers.worker", self.name, str(self.threads)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env=environment(self.threads), cwd=ROOT, **pipes)
        self.warmed.clear()

    def _read(self, limit: float) -> bytes:
        descriptor, line, end = self.process.stdout.fileno(), b"", time.monotonic() + limit
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.stop()
                raise OverLimit
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                code = self.process.wait()
                self.stop()
                raise Failed(f"worker died with code {code}")
            line += piece
        return line
