"""One page about a selection of features: what is promised and assumed, a picture and a table."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_file
from .contents import shown_name
from .page import SHOWN_ROWS, cell, style_sheet, template, versions_text


@dataclass(frozen=True, eq=False)
class SelectionContents:
    """What the report of a selection is made from.

    Parameters
    ----------
    title : str
        Headline.
    command : sequence of str
        Command line that reproduces the run, one string per argument.
    facts : mapping of str to str
        What was done, in the order in which to show it.
    selector : fitted selector
        What has selected, as it prints.
    promise, assumption : str
        What is promised, and under which assumption, in a sentence each.
    frame : pandas.DataFrame
        What ``selector.to_frame(sort=True)`` returns, with names of features.
    picture : bytes
        A picture as SVG.
    caption : str
        What the picture shows.
    notes : sequence of str
        What the reader should be warned of, in words.
    """

    title: str
    command: Sequence[str]
    facts: Mapping[str, str]
    selector: Any
    promise: str
    assumption: str
    frame: Any
    picture: bytes
    caption: str
    notes: Sequence[str]


def write_selection_report(path: Any, contents: SelectionContents) -> None:
    """Write the report of a selection as one HTML file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write; one that is there is replaced. Its folder must exist.
    contents : SelectionContents
        What the report is about.
    """
    frame = contents.frame
    wanted = [name for name in frame.columns if name != "feature"]
    shown = frame.iloc[:SHOWN_ROWS]
    cells = [_cells(frame[name].to_numpy()) for name in wanted]
    page = template("selection.html").render(
        contents=contents,
        n_features=len(frame),
        n_selected=int(frame["selected"].sum()),
        columns=[f"{name[:1].upper()}{name[1:]}".replace("_", " ") for name in wanted],
        rows=list(zip(map(shown_name, shown["feature"]), shown["selected"], zip(*cells, strict=True), strict=True)),
        picture=base64.b64encode(contents.picture).decode("ascii"),
        command=shlex.join(map(str, contents.command)),
        style=style_sheet(),
        versions=versions_text(),
    )
    write_file(Path(path), page.encode("utf-8", "replace"))  # names may have halves of characters


def _cells(values: Any) -> list[str]:
    """The first entries of a column as text."""
    if values.dtype == bool:
        return ["yes" if value else "no" for value in values[:SHOWN_ROWS].tolist()]
    is_count = values.dtype.kind in "iu"
    return [cell(value, whole=is_count) for value in np.asarray(values[:SHOWN_ROWS], dtype=np.float64).tolist()]
