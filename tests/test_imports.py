"""The direction of imports: every module has a layer and imports only from layers below its own."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import groupowl

SOURCE = Path(groupowl.__file__).parent

# Layers from the bottom up, by name. A module may import from lower layers, from its own subpackage, and from modules
# that stand before it in its own layer. "groupowl" is the package's __init__, which gathers the public names.
LAYERS = {
    "foundation": [
        "_typing",
        "_lazy",
        "_files",
        "_text",
        "_html",
        "_checks",
        "_threads",
        "_progress",
        "_resume",
        "kernel",
        "versions",
    ],
    "mathematics": ["weights", "norm", "losses", "datasets"],
    "data": ["inputs", "categories", "designs"],
    "problem": ["problem"],
    "screening": ["screening"],
    "solvers": ["solvers"],
    "paths": ["model", "path"],
    "models": ["model_selection", "selection", "estimators", "inference"],
    "public names": ["storage", "groupowl"],
    "programs": ["tables", "plotting", "report", "cli", "__main__"],
}
ORDER = [module for modules in LAYERS.values() for module in modules]
LEVEL = {module: level for level, module in enumerate(ORDER)}
# Narrower than their layer: nothing of the package but these.
ONLY = {"datasets": set(LAYERS["foundation"])}
# The same for other packages; the standard library is always allowed.
ONLY_PACKAGES = {"datasets": {"numpy", "scipy"}}


@dataclass(frozen=True)
class Import:
    """One imported name, absolute, with the file and line that imports it."""

    where: str
    source: tuple[str, ...]  # path of the importing module below the package, () for its __init__
    target: str

    @property
    def unit(self):
        """What the layers speak of: the first name below the package."""
        return self.source[0] if self.source else "groupowl"


def module_path(file, root):
    parts = file.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(file, root):
    """Absolute names of everything a file imports, wherever in the file the statement stands."""
    source = module_path(file, root)
    package = source if file.name == "__init__.py" else source[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = ("groupowl", *package)[: len(package) + 2 - node.level] if node.level else ()
            prefix = ".".join([*parents, *([node.module] if node.module else [])])
            # "from .losses import base" may name a module: the last part decides nothing below the first level.
            targets = [f"{prefix}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            yield Import(f"{file.relative_to(root).as_posix()}:{node.lineno}", source, target)


def imported_unit(target, root):
    """First name below the package that the target stands for; a public name stands for the package."""
    parts = target.split(".")
    if len(parts) == 1:
        return "groupowl"
    exists = (root / f"{parts[1]}.py").exists() or (root / parts[1]).is_dir()
    return parts[1] if exists else "groupowl"


def violations(root):
    """Sentences about imports against the direction, and about modules that no layer knows."""
    found = []
    for file in sorted(root.rglob("*.py")):
        source = module_path(file, root)
        unit = source[0] if source else "groupowl"
        if unit not in LEVEL:
            found.append(
                f"{file.relative_to(root).as_posix()}: module {unit!r} has no layer. Add it to LAYERS in "
                f"tests/test_imports.py, above everything it imports and below everything that imports it."
            )
            continue
        for item in imports_of(file, root):
            found.extend(complaints(item, root))
    return found


def complaints(item, root):
    if item.target.partition(".")[0] != "groupowl":
        return foreign_complaints(item)
    target = imported_unit(item.target, root)
    if target not in LEVEL:
        return [f"{item.where}: imports {item.target}, and module {target!r} has no layer; see LAYERS."]
    if target == item.unit and item.unit != "groupowl":
        return []
    allowed = ONLY.get(item.unit)
    if allowed is not None and target not in allowed:
        return [f"{item.where}: {item.unit} may import only {sorted(allowed)} from groupowl, not {target}."]
    if LEVEL[target] >= LEVEL[item.unit]:
        return [f"{item.where}: {item.unit} imports {target}, which is not in a layer below it."]
    return []


def foreign_complaints(item):
    package = item.target.partition(".")[0]
    allowed = ONLY_PACKAGES.get(item.unit)
    if allowed is not None and package not in allowed and package not in sys.stdlib_module_names:
        return [f"{item.where}: {item.unit} may import only {sorted(allowed)}, not {package}."]
    is_below = LEVEL[item.unit] < LEVEL[LAYERS["models"][0]]
    if package == "sklearn" and is_below and item.target.split(".")[1:2] != ["exceptions"]:
        return [f"{item.where}: {item.unit} lies below the models and may import only sklearn.exceptions."]
    return []


def test_imports_point_one_way():
    found = violations(SOURCE)
    assert not found, "\n" + "\n".join(found)


def test_the_checker_sees_the_real_imports():
    """Known arrows, so that an empty list of violations means something."""
    arrows = {
        (item.unit, imported_unit(item.target, SOURCE))
        for file in SOURCE.rglob("*.py")
        for item in imports_of(file, SOURCE)
        if item.target.startswith("groupowl")
    }
    expected = {
        ("norm", "_typing"), ("weights", "_checks"), ("norm", "weights"), ("losses", "_checks"),
        ("designs", "norm"), ("problem", "losses"), ("screening", "problem"), ("solvers", "screening"),
        ("groupowl", "solvers"), ("groupowl", "weights"), ("designs", "designs"),
    }  # fmt: skip
    assert expected <= arrows


# A planted tree -----------------------------------------------------------------------------------------

HEALTHY = {
    "__init__.py": "from . import weights\nfrom .solvers import solve\n",
    "designs/__init__.py": "from ..norm import GroupOWL\n",
    "_typing.py": "import numpy as np\n",
    "_checks.py": "from ._typing import FloatArray\n",
    "weights.py": "from ._checks import lookup\n",
    "norm/__init__.py": "from .norm import GroupOWL\n",
    "norm/penalty.py": "from ..weights import check_sequence\n",
    "datasets.py": "import math\nimport numpy as np\nfrom scipy import signal\nfrom ._checks import lookup\n",
    "losses/__init__.py": "from .._checks import lookup\nfrom .base import Loss\n",
    "losses/base.py": "from .._typing import FloatArray\n",
    "problem.py": "from .losses import Loss\nfrom .norm.penalty import GroupOWL\n",
    "solvers/__init__.py": "from sklearn.exceptions import ConvergenceWarning\nfrom ..problem import Problem\n",
    "solvers/deep/__init__.py": "from ...problem import Problem\nfrom ..driver import Run\n",
    "solvers/driver.py": "import groupowl.problem\n",
    "estimators/__init__.py": "from sklearn.base import BaseEstimator\nfrom ..solvers import solve\n",
    "plotting.py": "import groupowl as go\n",
}


def plant(root, **changed):
    for name, text in {**HEALTHY, **changed}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_a_healthy_tree_passes(tmp_path):
    assert violations(plant(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("_checks.py", "from .weights import bh", "_checks.py:1: _checks imports weights"),
        ("weights.py", "\nfrom . import norm", "weights.py:2: weights imports norm"),
        ("weights.py", "import groupowl.problem", "weights imports problem"),
        ("weights.py", "from groupowl.problem import Problem", "weights imports problem"),
        ("weights.py", "from groupowl import solve", "weights imports groupowl"),
        ("weights.py", "import groupowl as go", "weights imports groupowl"),
        ("weights.py", "def late():\n    from .solvers import solve", "weights.py:2: weights imports solvers"),
        ("weights.py", "if TYPE_CHECKING:\n    from .problem import Problem", "weights imports problem"),
        ("norm/penalty.py", "from ..losses import Loss", "norm imports losses"),
        ("losses/base.py", "from ..designs import Design", "losses/base.py:1: losses imports designs"),
        ("losses/base.py", "from .. import problem", "losses imports problem"),
        ("solvers/deep/__init__.py", "from ...estimators import X", "solvers imports estimators"),
        ("problem.py", "from .solvers.driver import Run", "problem imports solvers"),
        ("__init__.py", "from . import plotting", "groupowl imports plotting"),
        ("datasets.py", "from .weights import bh", "datasets may import only"),
        ("datasets.py", "import pandas as pd", "datasets may import only"),
        ("solvers/driver.py", "from sklearn.base import clone", "may import only sklearn.exceptions"),
        ("solvers/driver.py", "import sklearn", "may import only sklearn.exceptions"),
        ("norm/penalty.py", "from sklearn import exceptions, linear_model", "may import only sklearn.exceptions"),
        ("novelty.py", "import numpy", "module 'novelty' has no layer. Add it to LAYERS"),
        ("novelty/inner.py", "import numpy", "module 'novelty' has no layer. Add it to LAYERS"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path, name, text, message):
    found = violations(plant(tmp_path, **{name: text}))
    assert len(found) == 1
    assert message in found[0]


# What importing costs -----------------------------------------------------------------------------------


LOADED_EXTRAS = """
import sys
import sklearn.linear_model  # scikit-learn loads pandas and rich where they are installed: not ours, so forget them

extras = {extras!r}
for name in [name for name in sys.modules if name.partition(".")[0] in extras]:
    del sys.modules[name]
{statement}
print(*sorted(extras & set(sys.modules)))
"""


HEAVY = {"numpy", "scipy", "sklearn", "joblib", "pandas", "polars", "matplotlib", "typer", "rich", "dask", "cvxpy"}


def loaded_by(statement):
    """Of the heavy packages, and of our own modules, those that a new process has after the statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = result.stdout.split()
    return HEAVY & {name.partition(".")[0] for name in found}, {name for name in found if name.startswith("groupowl")}


@pytest.mark.parametrize("statement", ["import groupowl", "import groupowl; dir(groupowl); groupowl.__version__"])
def test_importing_the_package_loads_what_solving_needs(statement):
    """No more, or importing would be slow; no less, or a first call would be."""
    heavy, ours = loaded_by(statement)
    assert heavy == {"numpy", "scipy"}
    assert "groupowl.solvers.working_set" in ours
    unwanted = ("estimators", "inference", "path", "plotting", "storage", "designs.dask", "designs.disk")
    assert not [name for name in ours if name.startswith(tuple(f"groupowl.{part}" for part in unwanted))]
    solve = "import numpy as np; groupowl.solve(np.eye(3), np.ones(3), [0.3, 0.2, 0.1])"
    assert loaded_by(f"{statement}; {solve}") == (heavy, ours)


def test_a_name_loads_what_it_needs():
    _, ours = loaded_by("from groupowl import group_owl_path")
    assert "groupowl.path" in ours
    assert "groupowl.estimators" not in ours


def test_every_public_name_is_there_as_if_it_had_been_imported():
    """Names that are imported at once, those for type checkers, in __all__ and found on access are the same things."""
    tree = ast.parse(Path(groupowl.__file__).read_text(encoding="utf-8"))
    checked, _ = [node for node in tree.body if isinstance(node, ast.If)]
    relative = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "solvers"]
    imported = {
        alias.name: importlib.import_module(f"groupowl.{node.module or alias.name}")
        for node in (*checked.body, *relative)
        for alias in node.names
    }
    assert sorted(imported) == sorted(groupowl.__all__)
    for name, module in imported.items():
        found = getattr(groupowl, name)
        assert found is (module if module.__name__ == f"groupowl.{name}" else getattr(module, name))
        assert vars(groupowl)[name] is found  # and not looked for again
    assert set(groupowl.__all__) <= set(dir(groupowl))


def test_star_imports_and_modules():
    names = {}
    exec("from groupowl import *", names)
    assert set(groupowl.__all__) <= names.keys()
    code = (
        "import groupowl as go; print(go.losses.LOSSES.keys() >= {'squared'}, go.weights.__name__, hasattr(go, 'lars'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["True", "groupowl.weights", "False"]
    with pytest.raises(AttributeError, match="module 'groupowl' has no attribute 'lars'"):
        groupowl.lars  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'lars' from 'groupowl'"):
        exec("from groupowl import lars", {})


def loaded_extras(statement):
    extras = {"matplotlib", "typer", "rich", "jinja2", "pandas", "dask", "cvxpy"}
    code = LOADED_EXTRAS.format(extras=extras, statement=statement)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_using_the_package_loads_no_extra():
    assert loaded_extras("from groupowl import *") == []


def test_a_loaded_extra_would_be_seen():
    assert loaded_extras("import rich") == ["rich"]
