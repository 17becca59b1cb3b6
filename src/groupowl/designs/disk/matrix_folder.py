"""A folder with a matrix and what belongs to it: names of its columns, and columns of other kinds beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

#: Files in it; those with an underscore are no blocks of the matrix.
MATRIX, SAMPLES, RECORD = "X.npy", "_samples.parquet", "_matrix.json"
#: Column of the samples that has the names of rows, where there are.
INDEX = "__index__"

_KIND = "groupowl matrix"
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class MatrixFolder:
    """What is known about the matrix of a folder.

    Attributes
    ----------
    columns : list of str
        Names of its columns.
    targets : list of str
        Columns of the samples that are to be explained.
    """

    columns: list[str]
    targets: list[str]

    def write(self, folder: Path) -> None:
        """Beside the matrix."""
        record = {"kind": _KIND, "format_version": _FORMAT_VERSION, **asdict(self)}
        (folder / RECORD).write_text(json.dumps(record) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> MatrixFolder | None:
        """None of a folder that has no such record."""
        path = folder / RECORD
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["kind"] != _KIND or record["format_version"] != _FORMAT_VERSION:
                raise ValueError(f"its kind is {record['kind']!r}, its format {record['format_version']!r}")
            lists = [[str(name) for name in record[part]] for part in ("columns", "targets")]
            return cls(*lists)
        except (ValueError, KeyError, TypeError) as error:
            remedy = "Make the folder again with groupowl convert."
            raise ValueError(f"{path} is damaged ({type(error).__name__}: {error}). {remedy}") from error
