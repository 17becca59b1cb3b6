"""The parent's side of a worker process: start it, ask it with a time limit, end it when it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import IO, Any

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


class WorkerError(Exception):
    """A worker died, or did not answer in time (then ``late`` is True, and ``cpu`` what it used of that time)."""

    def __init__(self, message: str, *, late: bool = False, cpu: float | None = None) -> None:
        super().__init__(message)
        self.late, self.cpu = late, cpu


def environment(threads: int, **more: str) -> dict[str, str]:
    """The environment of a worker: that of this process, every known thread pool of the same size, and ``more``."""
    return {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(threads)), **more}


def cpu_seconds(pid: int) -> float | None:
    """CPU time of a process and of its running children so far; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) or 0.0 for child in children)


class WorkerProcess:
    """A worker in a process of its own, which starts with the first request and anew after it was ended.

    Parameters
    ----------
    module : str
        What the process runs: a module that calls :func:`groupowl_harness.serving.serve_parent`.
    *arguments : str
        Its arguments, from ``sys.argv[2]`` on; the first is the number of this process.
    environment : mapping
        Its environment variables.
    python : str or Path, default=sys.executable
        Its interpreter.
    folder : Path, default=None
        Where it starts; here by default.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str],
        python: str | Path = sys.executable,
        folder: Path | None = None,
    ) -> None:
        self._command = [str(python), "-m", module, str(os.getpid()), *arguments]
        self._environment = environment
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._errors: IO[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended since."""
        return self._process is not None

    def ask(self, request: dict[str, Any], limit: float, *, patience: float = 1.0) -> dict[str, Any]:
        """Reply to the request within ``limit`` seconds; a process that is late is ended.

        With ``patience`` above 1 these are seconds of CPU time, where the system tells them, and wall time may take
        that much longer: what others do on the machine does not count.
        """
        process = self._running()
        assert process.stdin is not None
        before = cpu_seconds(process.pid)
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._next_line(limit, patience if before is not None else 1.0, before or 0.0)
        except queue.Empty:
            after = cpu_seconds(process.pid)
            self.stop()
            used = None if before is None or after is None else after - before
            raise WorkerError(f"no answer within {limit:.0f} s", late=True, cpu=used) from None
        except OSError:
            line = ""
        if not line:
            code, last = process.wait(), self._last_error()
            self.stop()
            raise WorkerError(f"the worker process ended with code {code}" + (f": {last}" if last else ""))
        reply: dict[str, Any] = json.loads(line)
        return reply

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        errors, self._errors = self._errors, None
        for stream in (process.stdin, process.stdout, errors):
            if stream is not None:
                with contextlib.suppress(OSError):  # a request that was not read any more
                    stream.close()

    def _last_error(self) -> str:
        """The last line that the process wrote to stderr, which usually says why it ended."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode("utf-8", "replace").splitlines()]
        return next((line[:300] for line in reversed(lines) if line), "")

    def _next_line(self, limit: float, patience: float, before: float) -> str:
        """The next line of the reply, in short waits, so that the keyboard can interrupt them everywhere."""
        process, start = self._process, time.monotonic()
        assert process is not None
        while True:
            spent = time.monotonic() - start
            left = limit - spent
            if left <= 0 and spent < patience * limit:
                left = limit - ((cpu_seconds(process.pid) or inf) - before)
            try:
                return self._lines.get(timeout=max(min(left, 0.5), 0.0))
            except queue.Empty:
                if left <= 0:
                    raise

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._lines = queue.Queue()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (stop closes it)
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                env=self._environment,
                cwd=self._folder,
            )
            threading.Thread(target=_forward, args=(self._process.stdout, self._lines), daemon=True).start()
        return self._process


def _forward(stream: Any, lines: queue.Queue[str]) -> None:
    """Lines of the stream into the queue, and an empty one at its end."""
    try:
        for line in stream:
            lines.put(line)
    except ValueError:  # closed while it was read
        pass
    lines.put("")
