"""Results as HTML, for notebooks: a title, facts and tables, in the colors of the notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

_GAP = re.compile(r"\s{2,}")
_LEFT = ' style="text-align: left"'


def titled(title: str, *parts: str) -> str:
    """Parts below a title."""
    return f"<div><p><b>{escape(title)}</b></p>{''.join(parts)}</div>"


def facts_table(facts: Mapping[str, str]) -> str:
    """A row for each fact."""
    rows = [f"<tr><th{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(value)}</td></tr>" for name, value in facts.items()]
    return f'<table class="dataframe"><tbody>{"".join(rows)}</tbody></table>'


def data_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, n_words: int = 1) -> str:
    """A table whose first columns are words; all others are numbers, to the right."""
    head = "".join(f"<th{_aligned(k, n_words)}>{escape(name)}</th>" for k, name in enumerate(headings))
    body = []
    for row in rows:
        cells = "".join(f"<td{_aligned(k, n_words)}>{escape(cell)}</td>" for k, cell in enumerate(row))
        body.append(f"<tr>{cells}</tr>")
    return f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def paragraph(text: str) -> str:
    """A sentence."""
    return f"<p>{escape(text)}</p>"


def _aligned(k: int, n_words: int) -> str:
    return _LEFT if k < n_words else ' style="text-align: right"'


def page_of_text(text: str) -> str:
    """A page of plain text that is a title and blocks of lines, with empty lines between blocks.

    Cells of a line have two spaces or more between them. A block whose lines have two cells each says facts, one that
    begins with more of them is a table below its headings, and other lines are sentences.
    """
    title, _, rest = text.partition("\n")
    parts = []
    for block in re.split(r"\n[ ]*\n", rest):
        lines = [_GAP.split(line.strip()) for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        n_cells = len(lines[0])
        rows = [cells for cells in lines if n_cells > 2 and len(cells) >= n_cells]
        if all(len(cells) == 2 for cells in lines):
            parts.append(facts_table(dict(lines)))
        elif rows:
            width = max(map(len, rows))
            headings, *others = [cells + [""] * (width - len(cells)) for cells in rows]
            parts.append(data_table(headings, others))
        parts += [paragraph(" ".join(cells)) for cells in lines if cells not in rows and len(cells) != 2]
    return titled(title.strip(), *parts)
