"""``groupowl reproduce`` where the project of the paper's experiments is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from .commands import command
from .messages import Failure


@dataclass(frozen=True)
class AnyOptions:
    """Whatever was typed."""

    given: Annotated[list[str] | None, typer.Argument(hidden=True)] = None


@command(example="groupowl reproduce --data downloads --out results --quick")
def reproduce(options: AnyOptions) -> None:
    """Repeat the paper's experiments, once they are installed: pip install ./harness ./paper in a clone of groupowl."""
    raise Failure(
        "the paper's experiments are a project of their own, which is not installed; "
        "in a clone of groupowl run: pip install ./harness ./paper"
    )
