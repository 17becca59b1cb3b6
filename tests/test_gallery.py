"""Examples of the gallery, read but not run (the documentation's build runs them): titles, public names, no network."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("*.py"))
# Modules whose __all__ is for users.
PUBLIC_MODULES = ["groupowl", "groupowl.datasets", "groupowl.inference", "groupowl.plotting", "groupowl.weights"]
# What an example may import: the standard library's few, and what the extra docs installs.
PACKAGES = {"dask", "groupowl", "inspect", "matplotlib", "numpy", "pandas", "pathlib", "scipy", "sklearn", "tempfile"}
DOWNLOADS = re.compile(r"fetch_|urlopen|urlretrieve|https?://|s3://|Client\(")


def public_names():
    return {module: set(importlib.import_module(module).__all__) for module in PUBLIC_MODULES}


def dotted(node):
    """``go.weights.oscar`` as ["go", "weights", "oscar"], or nothing for other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*inner, node.attr] if inner else []


def problems_of(source):
    """What is wrong with an example, in words."""
    tree = ast.parse(source)
    title = (ast.get_docstring(tree) or "").split("\n")
    has_title = len(title) > 3 and title[1] == "=" * len(title[0]) and bool(title[0])
    found = [] if has_title else ["no title"]
    found += [] if "\n# %%\n# " in source else ["no text between blocks of code"]
    found += [f"network: {match}" for match in DOWNLOADS.findall(source)]
    public = public_names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"imports {name.name}" for name in node.names if name.name.split(".")[0] not in PACKAGES]
            found += [f"imports {name.name}" for name in node.names if name.name.startswith("groupowl.")]
        elif isinstance(node, ast.ImportFrom):
            found += imported_from(node, public)
        elif isinstance(node, ast.Attribute):
            found += used(dotted(node), node.attr, public)
    return found


def imported_from(node, public):
    module = node.module or ""
    if module.split(".")[0] != "groupowl":
        return [] if module.split(".")[0] in PACKAGES else [f"imports {module}"]
    return [f"{module}.{name.name} is not public" for name in node.names if name.name not in public.get(module, ())]


def used(names, last, public):
    """Attributes of the package and its modules that are not public, and private ones of anything."""
    if last.startswith("_"):
        return [f"{last} is private"]
    if len(names) < 2 or names[0] != "go":
        return []
    module = ".".join(["groupowl", *names[1:-1]])
    return [f"{'.'.join(names)} is not public"] if module in public and last not in public[module] else []


def test_there_are_examples_and_a_front_page():
    assert len(EXAMPLES) >= 12
    assert (DOCS / "gallery" / "README.rst").read_text(encoding="utf-8").startswith("Gallery\n=======\n")


#: Data that come with scikit-learn, and texts that come with SciPy.
REAL_DATA = re.compile(r"^from sklearn\.datasets import load_\w+|inspect\.getdoc", flags=re.MULTILINE)


def test_half_of_the_examples_use_real_data():
    real = [path.stem for path in EXAMPLES if REAL_DATA.search(path.read_text(encoding="utf-8"))]
    assert 2 * len(real) >= len(EXAMPLES), real
    assert not any("make_correlated_groups" in (DOCS / "gallery" / f"{name}.py").read_text("utf-8") for name in real)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_title_and_text_and_names_only_what_is_public(path):
    assert path.stem.startswith("plot_")  # others would not be run
    assert problems_of(path.read_text(encoding="utf-8")) == []


def test_every_example_has_a_place_in_the_order():
    spec = importlib.util.spec_from_file_location("gallery_order", DOCS / "_ext" / "gallery_order.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [path.stem.removeprefix("plot_") for path in EXAMPLES]
    assert sorted(module.ORDER) == sorted(names)
    places = sorted((path.name for path in EXAMPLES), key=module.ReadingOrder("gallery"))
    assert places == [f"plot_{name}.py" for name in module.ORDER]


GOOD = '"""\nA title\n=======\n\nText.\n"""\n\nimport groupowl as go\n\n# %%\n# Text.\n\ngo.weights.oscar(3)\n'


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("=======", "===="), "no title"),
        (("# %%\n", ""), "no text between blocks of code"),
        (("import groupowl as go", "from groupowl.solvers import Run"), "groupowl.solvers.Run is not public"),
        (("import groupowl as go", "from groupowl.norm import kernels"), "groupowl.norm.kernels is not public"),
        (("import groupowl as go", "import requests"), "imports requests"),
        (("import groupowl as go", "import groupowl.solvers"), "imports groupowl.solvers"),
        (("go.weights.oscar", "go.weights.resolve_weights"), "go.weights.resolve_weights is not public"),
        (("go.weights.oscar", "go.model"), "go.model is not public"),
        (("go.weights.oscar(3)", "go.solve(X, Y, lam)._theta"), "_theta is private"),
        (("go.weights.oscar(3)", "fetch_openml('mnist')"), "network: fetch_"),
    ],
)
def test_what_is_wrong_would_be_seen(change, complaint):
    assert problems_of(GOOD) == []
    assert complaint in problems_of(GOOD.replace(*change))
