"""Progress on the terminal: one line for each finished problem, and the time left."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .adapters import Adapter
from .cases import Problem
from .run import Cell


def seconds_text(seconds: float) -> str:
    """Three digits and a unit."""
    if seconds < 1.0:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s"


def cell_text(status: str, seconds: float | None, gap: float | None) -> str:
    """What a table shows for one competitor."""
    if status == "limit":
        return f"> {seconds or 0:.0f} s"
    if status in ("declined", "failed") or seconds is None:
        return {"declined": "-"}.get(status, status)
    return seconds_text(seconds) + (f" (gap {gap:.0e})" if status == "short" else "")


class Screen:
    """A context that shows progress while it is open."""

    def __init__(self, console: Console, n_cells: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TimeRemainingColumn(), console=console)
        self.task = self.progress.add_task("starting", total=n_cells)

    def __enter__(self) -> Screen:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def start(self, problem: Problem, adapter: Adapter) -> None:
        """Say what runs now."""
        self.progress.update(self.task, description=f"{problem.key}: {adapter.name}")

    def say(self, text: str) -> None:
        """Say what else runs."""
        self.progress.update(self.task, description=text)

    def finish(self, problem: Problem, cells: list[Cell]) -> None:
        """Print a line for the problem, fastest first."""
        done = sorted((cell for cell in cells if cell.status != "declined"), key=lambda cell: cell.seconds)
        texts = [f"{cell.adapter.name} {cell_text(cell.status, cell.seconds, cell.gap)}" for cell in done]
        self.progress.console.print(f"[bold]{problem.key}[/]  {' | '.join(texts)}", highlight=False)
        self.progress.advance(self.task, len(cells))
