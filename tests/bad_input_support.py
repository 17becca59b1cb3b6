"""Tables of bad inputs: a row is a call (or a command line) and what its error must name.

To add a row, put a value into one of the dictionaries of ``tests/bad_inputs``: under the callable, then under the
argument that the error must name.
"""

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import groupowl

#: Bytes that a refusal may allocate at most: inputs here have a hundred numbers.
MOST_BYTES = 1 << 25
_PACKAGE = Path(groupowl.__file__).parent
#: Errors that are documented for bad input; positions out of range are an IndexError, missing files an OSError.
_KINDS = (ValueError, TypeError, IndexError, OSError)


@dataclass(frozen=True)
class Row:
    """A bad input: an id, the call, and the argument or file that the error must name."""

    id: str
    call: Callable[[], Any]
    names: str


@dataclass(frozen=True)
class CommandRow:
    """A bad input of the command line: what is typed, a file (text, bytes, or who writes it), what must be said."""

    id: str
    arguments: tuple[str, ...]
    file: str
    content: Any
    says: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """The file."""
        path = folder / self.file
        if callable(self.content):
            self.content(path)
        elif isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            path.write_text(self.content, encoding="utf-8", newline="")


def rows_of(calls: dict[str, Callable[..., Any]], table: dict[str, dict[str, dict[str, Any]]]) -> list[Row]:
    """Rows from ``{callable: {argument: {what: value}}}``; the value takes the place of the argument in the call."""
    return [
        Row(f"{name}({argument}: {what})", lambda call=calls[name], change={argument: value}: call(**change), argument)
        for name, arguments in table.items()
        for argument, values in arguments.items()
        for what, value in values.items()
    ]


def check(row: Row) -> None:
    """One clear error, raised by the package itself, that names what is wrong."""
    try:
        row.call()
    except _KINDS as error:
        caught = error
    else:
        raise AssertionError(f"{row.id} is not refused")
    message = str(caught)
    assert re.search(rf"(?<!\w){re.escape(row.names)}(?!\w)", message), f"{row.names} is not named: {message}"
    assert "bug of groupowl" not in message
    assert len(message) < 1000, message
    if isinstance(caught, NotFittedError):  # whose words are scikit-learn's
        return
    last = Path(traceback.extract_tb(caught.__traceback__)[-1].filename)
    assert _PACKAGE in last.parents, f"{last} has refused it: {message}"


def with_entry(array: Any, value: Any) -> Any:
    """A copy whose first entry is another."""
    copy = np.array(array, dtype=np.result_type(np.asarray(array).dtype, np.asarray(value).dtype))
    copy.flat[0] = value
    return copy


# Values that are bad for many arguments ---------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 4))
Y = RNG.standard_normal((12, 2))
LABELS = np.arange(12) % 3
LAM = np.array([2.0, 1.5, 1.0, 0.5])
NAMED = pd.DataFrame(X, columns=["age", "sex", "dose", "site"])

FLAGS = {"text": "x", "a number": 1, "None": None}
COUNTS = {"zero": 0, "negative": -3, "a fraction": 2.5, "text": "5", "True": True, "a list": [5], "infinite": np.inf}
POSITIVE = {
    "zero": 0.0,
    "negative": -0.1,
    "nan": np.nan,
    "infinite": np.inf,
    "text": "small",
    "True": True,
    "None": None,
    "complex": 1j,
    "a list": [0.1],
}
SHARES = POSITIVE | {"one": 1.0, "large": 2.5}
MATRICES = {
    "None": None,
    "nan": with_entry(X, np.nan),
    "infinite": with_entry(X, np.inf),
    "text": np.full((12, 4), "a"),
    "objects": with_entry(X.astype(object), {}),
    "dates": np.full((12, 4), np.datetime64("2020-01-01")),
    "complex": X + 1j,
    "flat": X[:, 0],
    "a cube": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "ragged": [[1.0, 2.0], [1.0]],
    "a number": 3.0,
    "a dictionary": {"a": 1},
    "a set": {1.0, 2.0},
    "a function": len,
    "nan, sparse": sp.csr_array(with_entry(X, np.nan)),
    "complex, sparse": sp.csr_array(X + 1j),
    "a frame of text": pd.DataFrame({"a": ["u"] * 12, "b": X[:, 0]}),
    "a frame with a gap": NAMED.mask(NAMED > 1.5),
    "huge": 1e200 * X,
}
SAMPLE_WEIGHTS = {
    "negative": with_entry(np.ones(12), -1.0),
    "nan": with_entry(np.ones(12), np.nan),
    "infinite": with_entry(np.ones(12), np.inf),
    "zeros": np.zeros(12),
    "too few": np.ones(9),
    "five columns": np.ones((12, 5)),
    "text": ["a"] * 12,
    "a number": 2.0,
    "a word": "balanced",
    "complex": np.ones(12) + 1j,
    "sum overflows": np.full(12, 1e308),
    "far apart": np.r_[1e300, np.ones(10), 1e-300],
}
SEQUENCES = {
    "rising": [0.5, 1.0, 1.5, 2.0],
    "negative": [2.0, 1.0, 0.5, -0.1],
    "nan": [np.nan, 1.0, 0.5, 0.1],
    "infinite": [np.inf, 1.0, 0.5, 0.1],
    "zeros": np.zeros(4),
    "too few": [1.0, 0.5],
    "too many": np.ones(5),
    "two columns": np.ones((4, 2)),
    "a number": 0.5,
    "complex": np.ones(4) + 1j,
    "far apart": [1e300, 1.0, 1e-10, 1e-300],
    "too large": np.full(4, 1e308),
    "too small": np.full(4, 1e-320),
    "texts": ["1", "2", "3", "4"],
}
SEEDS = {"text": "x", "negative": -1, "a fraction": 1.5, "True": True}
SOLVERS = {"unknown": "newton", "a class": groupowl.APGD, "None": None, "a number": 3}
RULES = {"unknown": "strong", "True": True, "None": None}
LOSSES = {"unknown": "hinge", "None": None, "a class": groupowl.losses.SquaredLoss, "a number": 2}
STARTS = {"nan": np.full((4, 2), np.nan), "text": "zeros", "too few rows": np.ones((3, 2)), "complex": np.ones(4) * 1j}
UNPENALIZED = {
    "an unknown name": ["height"],
    "an index too large": [4],
    "an index too small": [-5],
    "a fraction": [1.5],
    "everything": [0, 1, 2, 3],
    "a short mask": [True, False],
    "None in a list": [None],
    "a number with decimals": 0.5,
    "a full mask": [True] * 4,
}
