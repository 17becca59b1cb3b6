"""What can be read from the history of a run: its time at a gap, and the share of the inactive rows it has screened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from groupowl._typing import FloatArray, IndexArray

#: Most points of a history that are kept.
LONGEST = 200


@dataclass(frozen=True)
class RunHistory:
    """Certificates of one run and its end, as lists of equal length.

    Attributes
    ----------
    iteration : list of int
    passes : list of float
    cpu, wall : list of float
        Seconds since the start of the run, set-up included.
    gap : list of float
        Relative to the null loss.
    alive : list of int
        Rows not yet proved zero when the certificate was made; the last number is that of the whole run.
    """

    iteration: list[int] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.iteration)

    def thinned(self, longest: int = LONGEST) -> RunHistory:
        """At most ``longest`` points: half of them evenly spread, half dense at the start; first and last stay."""
        if len(self) <= longest:
            return self
        last, half = len(self) - 1, longest // 2
        even, early = np.linspace(0, last, half), np.geomspace(1, last, half)
        return self.at(np.unique(np.concatenate([even, early]).round().astype(np.intp)))

    def at(self, index: IndexArray) -> RunHistory:
        """The points of an index."""
        return RunHistory(**{name: [column[k] for k in index] for name, column in vars(self).items()})

    @property
    def best_gap(self) -> float:
        """Smallest gap reached."""
        return min(self.gap, default=np.inf)

    @property
    def first_removal(self) -> int | None:
        """Index of the certificate that proved the first row zero; columns of zeros were gone before."""
        smaller = np.flatnonzero(np.array(self.alive) < max(self.alive, default=0))
        # What the last certificate proves is noted beside it, what others prove at the next one.
        return None if len(smaller) == 0 else int(max(smaller[0] - 1, 0))

    def seconds_at(self, gap: float, clock: str = "cpu") -> float | None:
        """Seconds until a certificate proved at most this gap; None if none did."""
        reached = np.flatnonzero(np.array(self.gap) <= gap)
        times: list[float] = getattr(self, clock)
        return times[reached[0]] if len(reached) else None

    def iterations_at(self, gap: float) -> int | None:
        """Iterations until a certificate proved at most this gap; None if none did."""
        reached = np.flatnonzero(np.array(self.gap) <= gap)
        return self.iteration[reached[0]] if len(reached) else None

    def screening_rate(self, n_selected: int) -> FloatArray:
        """Rows screened over rows that are zero at the optimum, where ``n_selected`` are not; no columns of zeros.

        Above 1 where rows were screened that are not zero: then screening was not safe.
        """
        alive = np.array(self.alive, dtype=float)
        inactive = alive[0] - n_selected if len(alive) else 0.0
        if inactive > 0:
            return np.maximum(alive[:1] - alive, 0.0) / inactive
        return np.where(alive < n_selected, np.inf, 1.0)


def common_gap(histories: Iterable[RunHistory], tol: float) -> float:
    """Smallest gap that every one of the runs reached, but never below what they were asked for."""
    return max([tol, *(history.best_gap for history in histories)])
