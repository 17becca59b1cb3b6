"""Print how large the package is: code lines, modules, names and import layers.

A code line is one that is neither blank nor part of a comment or a docstring. Run as ``python tools/size.py`` for
``src/groupowl``, or ``python tools/size.py FOLDER`` for another package.
"""

from __future__ import annotations

import ast
import io
import runpy
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "groupowl"

_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
# File names that may occur in several packages, and the terms of the field that end as a gerund does.
_REPEATABLE = ("__init__", "base")
_TERMS = ("screening", "plotting")


def code_lines(path: Path) -> int:
    """Lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(text)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """Numbers of the lines that belong to docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return lines


def print_sizes(root: Path, modules: list[Path]) -> None:
    """Code lines and modules of each top-level unit, the smallest first, and of all."""
    lines: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for path in modules:
        for unit in (path.relative_to(root).parts[0], "total"):
            lines[unit] += code_lines(path)
            counts[unit] += 1
    print(f"{'unit':<24}{'lines':>7}{'modules':>9}")
    for unit, number in sorted(lines.items(), key=lambda item: item[1]):
        print(f"{unit:<24}{number:>7}{counts[unit]:>9}")


def print_names(root: Path, modules: list[Path]) -> None:
    """File names that occur twice, and modules that are named by a gerund."""
    places = defaultdict(list)
    for path in modules:
        places[path.stem].append(path.relative_to(root).as_posix())
    repeated = [" = ".join(found) for name, found in places.items() if len(found) > 1 and name not in _REPEATABLE]
    packages = [path.parent.relative_to(root).as_posix() for path in modules if path.stem == "__init__"]
    names = [path.relative_to(root).with_suffix("").as_posix() for path in modules] + packages
    gerunds = [name for name in names if name.endswith("ing") and name not in _TERMS]
    print_list("file names that occur twice", repeated)
    print_list("modules named by a gerund", gerunds)


def print_list(title: str, items: Iterable[str]) -> None:
    """A title with the number of items, and one line for each."""
    found = sorted(items)
    print(f"\n{title}: {len(found)}")
    for item in found:
        print(f"  {item}")


def print_layers(root: Path, modules: list[Path]) -> None:
    """Number of layers in ``tests/test_imports.py``, and the longest chain of imports from layer to layer."""
    test: dict[str, Any] = runpy.run_path(str(ROOT / "tests" / "test_imports.py"))
    level: dict[str, int] = test["LEVEL"]
    below: dict[str, set[str]] = defaultdict(set)
    for path in modules:
        for item in test["imports_of"](path, root):
            if item.target.partition(".")[0] == "groupowl":
                below[item.unit].add(test["imported_unit"](item.target, root))
    longest: dict[str, list[str]] = {}
    for unit in sorted(level, key=level.__getitem__):
        chains = [longest[other] for other in sorted(below[unit]) if level.get(other, level[unit]) < level[unit]]
        longest[unit] = [unit, *max(chains, key=len, default=[])]
    chain = max(longest.values(), key=len)
    print(f"\nlayers in tests/test_imports.py: {len(test['LAYERS'])}")
    print(f"longest chain of imports between layers: {len(chain)}\n  {' > '.join(chain)}")


def main(arguments: list[str]) -> None:
    """Print everything about a package; layers only of groupowl, whose layers are known."""
    root = Path(arguments[0]).resolve() if arguments else PACKAGE
    modules = sorted(root.rglob("*.py"))
    print_sizes(root, modules)
    print_names(root, modules)
    if root == PACKAGE:
        print_layers(root, modules)


if __name__ == "__main__":
    main(sys.argv[1:])
