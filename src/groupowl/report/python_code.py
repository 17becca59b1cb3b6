"""An estimator as Python code that makes it again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn import model_selection

from .. import solvers

# Arguments that take more characters, such as weights of thousands of features, are not shown.
_LONGEST = 2000


def python_code(estimator: Any) -> str | None:
    """Lines that import what they need and make an estimator with the same parameters; None where that takes too much.

    Only parameters that differ from their defaults are given.
    """
    kind, defaults = type(estimator), type(estimator)().get_params(deep=False)
    imports = {"import groupowl as go": None}
    arguments = []
    for name, value in estimator.get_params(deep=False).items():
        if not _is_same(value, defaults[name]):
            code = _code(value, imports)
            if code is None or len(code) > _LONGEST:
                return None
            arguments.append(f"    {name}={code},\n")
    inside = f"\n{''.join(arguments)}" if arguments else ""
    lines = sorted(imports, key=lambda line: (line.startswith("from"), line))
    return "\n".join([*lines, "", f"model = go.{kind.__name__}({inside})"])


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and np.ndim(value) == 0 and bool(value == default))


def _code(value: Any, imports: dict[str, None]) -> str | None:
    """A value as code, and what that imports; None for what has no code, such as functions."""
    kind = type(value)
    if isinstance(value, np.generic):
        return _code(value.item(), imports)
    if value is None or kind in (bool, int, float, str):
        if kind is float and not np.isfinite(value):
            return f"float({str(value)!r})"
        return repr(value)
    if kind in (list, tuple):
        items = [_code(item, imports) for item in value]
        if None in items:
            return None
        inside = ", ".join(map(str, items))
        return f"[{inside}]" if kind is list else f"({inside},)" if items else "()"
    if kind is dict:
        pairs = [(_code(key, imports), _code(item, imports)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        entries = _code(value.tolist(), imports)
        imports["import numpy as np"] = None
        return None if entries is None else f"np.array({entries})"
    if vars(model_selection).get(kind.__name__) is kind:
        imports[f"from sklearn.model_selection import {kind.__name__}"] = None
        return repr(value)
    if is_dataclass(value) and vars(solvers).get(kind.__name__) is kind:
        given = {item.name: _code(getattr(value, item.name), imports) for item in fields(value) if item.init}
        if None in given.values():
            return None
        return f"go.{kind.__name__}({', '.join(f'{name}={code}' for name, code in given.items())})"
    return None
