"""R's glmnet in a process of its own, which measures its own CPU time (glmnet.R)."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

_SCRIPT = Path(__file__).with_name("glmnet.R")
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def version() -> str | None:
    """Version of the R package with that of R, or None where it is missing."""
    command = 'cat(as.character(packageVersion("glmnet")), "with R", as.character(getRversion()))'
    try:
        done = subprocess.run(["Rscript", "-e", command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


class Session:
    """R with the data that it has loaded."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="groupowl-glmnet-"))
        self.process = subprocess.Popen(
            ["Rscript", "--vanilla", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        self.X: Any = None

    def ask(self, *words: object) -> list[str]:
        """The words of the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("R ended; its message is above")
        return line.split()

    def file(self, name: str, values: np.ndarray) -> Path:
        """Values by columns in a file."""
        path = self.folder / name
        path.write_bytes(np.asarray(values, dtype="<f8").tobytes(order="F"))
        return path

    def load(self, X: Any, Y: np.ndarray, loss: str) -> None:
        """Give R the data, unless it has them; a sparse X by columns."""
        if X is self.X:
            return
        entries = X.nnz if sp.issparse(X) else 0
        if entries:
            for name, part in (("X.rows", X.indices), ("X.starts", X.indptr)):
                (self.folder / name).write_bytes(part.astype("<i4").tobytes())
        values = self.file("X", X.data if entries else X)
        self.ask("load", *X.shape, Y.shape[1], loss, values, self.file("Y", Y), entries)
        self.X = X

    def answers(self, n_features: int, n_tasks: int) -> np.ndarray:
        """Coefficients of the last call, of shape (lambdas, features, tasks)."""
        path = self.folder / "answers"
        self.ask("write", path)
        values = np.fromfile(path, dtype="<f8").reshape(n_tasks, -1, n_features)
        path.unlink()
        return values.transpose(1, 2, 0)


class Timed:
    """Answers that are fetched when someone looks at them, with the seconds that R measured."""

    def __init__(self, session: Session, seconds: float, shape: tuple[int, int], wanted: int) -> None:
        self.session, self.seconds, self.shape, self.wanted = session, seconds, shape, wanted

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.session.answers(*self.shape)[-self.wanted :])


@cache
def _session() -> Session:
    return Session()


def solve(X: Any, Y: np.ndarray, loss: str, lambdas: np.ndarray, thresh: float, wanted: int) -> Timed:
    """A path, of which the end is wanted; one call is timed, or several together where one is short."""
    session = _session()
    session.load(X, Y, loss)
    seconds, count = session.ask("solve", f"{thresh:.17g}", session.file("lambdas", lambdas))
    if int(count) != len(lambdas):
        raise RuntimeError(f"solved {count} of {len(lambdas)} strengths")
    return Timed(session, float(seconds), (X.shape[1], Y.shape[1]), wanted)


def _end_with_parent() -> None:
    """Let the kernel end R with the process that started it: a fit that takes too long listens to nobody."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
