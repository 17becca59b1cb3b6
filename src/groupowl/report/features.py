"""The table of the features in the model, for readers with and without scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray
from .markup import NOTHING, decimals_of, fixed, text
from .payload import rounded
from .subject import Subject

#: Rows that are written as HTML, and that scripts show until they are asked for all.
SHOWN_ROWS = 200


@dataclass(frozen=True, eq=False)
class Column:
    """A column of numbers: its heading, what it means, and how it is written.

    ``kind`` is "cluster", "number" or "coefficient"; ``decimals`` is as in :func:`~groupowl.report.markup.fixed`.
    """

    label: str
    meaning: str
    kind: str
    values: FloatArray
    decimals: int

    def cell(self, row: int) -> str:
        """One number as text; a feature that is not penalised has no cluster."""
        value = float(self.values[row])
        return NOTHING if self.kind == "cluster" and value == 0.0 else fixed(value, self.decimals)


def feature_columns(subject: Subject) -> list[Column]:
    """All columns but the names."""
    chosen = subject.selection
    columns = [
        _counts("Cluster", "features of one cluster have equal norms; 1 has the largest", "cluster", chosen.clusters),
        _numbers("Norm", "of the feature's coefficients, over all targets", "number", chosen.norms),
    ]
    if subject.fold_counts is not None:
        meaning = f"in how many of the {subject.n_folds} folds the feature was selected at this alpha"
        columns.append(_counts(f"Folds (of {subject.n_folds})", meaning, "number", subject.fold_counts))
    if subject.along is not None:
        entries = subject.along.entry_alphas(chosen.features)
        columns.append(_numbers("Enters at", "largest alpha of the path that selects the feature", "number", entries))
    is_single = len(chosen.tasks) == 1
    for name, values in zip(chosen.tasks, chosen.rows.T, strict=True):
        label = "Coefficient" if is_single else name
        columns.append(_numbers(label, f"coefficient: {name}", "coefficient", values))
    return columns


def _numbers(label: str, meaning: str, kind: str, values: FloatArray) -> Column:
    known = np.array(rounded(values), dtype=np.float64)  # the digits that scripts see, so that both write the same
    return Column(label, meaning, kind, known, decimals_of(known))


def _counts(label: str, meaning: str, kind: str, values: Any) -> Column:
    return Column(label, meaning, kind, np.asarray(values, dtype=np.float64), 0)


def feature_table_html(subject: Subject, columns: list[Column]) -> str:
    """The first rows as a table; scripts put the others in its place."""
    names = subject.selection.names
    head = "".join(
        f'<th scope="col" class="{column.kind}" title="{text(column.meaning)}">{text(column.label)}</th>'
        for column in columns
    )
    body = "".join(_row_html(name, row, columns) for row, name in enumerate(names[:SHOWN_ROWS]))
    return (
        '<table id="features"><thead><tr><th scope="col" class="feature" title="name of the column">Feature</th>'
        f"{head}</tr></thead><tbody>{body}</tbody>{_intercept_html(subject, columns)}</table>"
    )


def _row_html(name: str, row: int, columns: list[Column]) -> str:
    cells = "".join(f'<td class="{column.kind}">{column.cell(row)}</td>' for column in columns)
    return f'<tr><th scope="row"><div>{text(name)}</div></th>{cells}</tr>'


def _intercept_html(subject: Subject, columns: list[Column]) -> str:
    """Intercepts below the coefficients, where they stay when rows are sorted."""
    if subject.intercept is None:
        return ""
    values = iter(subject.intercept)
    cells = "".join(
        f'<td class="coefficient">{fixed(float(next(values)), max(column.decimals, 3))}</td>'
        if column.kind == "coefficient"
        else "<td></td>"
        for column in columns
    )
    return f'<tfoot><tr><th scope="row">Intercept</th>{cells}</tr></tfoot>'


def feature_payload(subject: Subject, columns: list[Column]) -> dict[str, Any]:
    """All rows for the scripts."""
    return {
        "shown": SHOWN_ROWS,
        "features": subject.selection.features.tolist(),
        "names": subject.selection.names,
        "columns": [
            {"kind": column.kind, "decimals": column.decimals, "values": rounded(column.values)} for column in columns
        ],
    }
