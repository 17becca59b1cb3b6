"""The documentation builds without a warning, needs no network, and has every public name."""

import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# Modules whose __all__ is for users; of others the reference picks what users meet.
PUBLIC_MODULES = ["groupowl", "groupowl.datasets", "groupowl.estimators", "groupowl.persistence", "groupowl.plotting"]
PUBLIC_MODULES += ["groupowl.weights"]
MISSING = [name for name in ("sphinx", "numpydoc", "pydata_sphinx_theme") if importlib.util.find_spec(name) is None]


def documented():
    """Full names in the API reference: rows of tables below their module, and what autodoc is asked for."""
    found = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = "groupowl"
        is_table = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            if line and not line.startswith(" "):
                is_table = line.startswith(".. autosummary::")
            pattern = r"   (\w+)" if is_table else r"\.\. (?:autofunction|autoclass|data):: (\w+)"
            if match := re.fullmatch(pattern, line):
                found.append(f"{module}.{match[1]}")
    return found


def resolve(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_every_public_name_is_in_the_reference_once():
    names = documented()
    values = [resolve(name) for name in names]
    assert len({id(value) for value in values}) == len(names)
    for module in map(importlib.import_module, PUBLIC_MODULES):
        public = {name: getattr(module, name) for name in module.__all__}
        missing = [
            name
            for name, value in public.items()
            if not inspect.ismodule(value) and not any(value is other for other in values)
        ]
        assert not missing, f"not in docs/api: {missing} of {module.__name__}"


def test_every_page_is_a_page_of_the_site():
    """Markdown files in docs/ are read from pages of the site, and pages are in a table of contents."""
    texts = {page: page.read_text(encoding="utf-8") for page in DOCS.rglob("*.rst") if "generated" not in page.parts}
    for page in DOCS.glob("*.md"):
        assert any(f"../{page.name}" in text for text in texts.values()), f"{page.name} has no page"
    assert len(list(DOCS.glob("*.md"))) >= 2


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra docs)")
def test_docs_build_without_warning_and_without_network(tmp_path):
    """One test for all that needs a build, which takes a while."""
    source, site = tmp_path / "docs", tmp_path / "html"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build", "generated"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(site)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for name in documented():
        assert f'id="{name}"' in "".join(page.read_text(encoding="utf-8") for page in pages_for(site, name)), name
    assert foreign_references(site) == []


def pages_for(site, name):
    generated = site / "api" / "generated" / f"{name}.html"
    return [generated] if generated.exists() else (site / "api").glob("*.html")


def foreign_references(site):
    """Scripts, styles, fonts and pictures that a browser would load from elsewhere."""
    found = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text)
        found += [f"{page.name}: {tag}" for tag in tags if re.search(r"""(?:src|href)=["'](?:https?:)?//""", tag)]
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        found += [
            f"{style.name}: {match}" for match in re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", text)
        ]
    return found


def test_foreign_references_would_be_seen(tmp_path):
    (tmp_path / "a.html").write_text('<script defer src="https://cdn.net/x.js"></script><img src="_static/own.png">')
    (tmp_path / "b.html").write_text(
        '<link rel="stylesheet" href="//fonts.net/x.css"><a href="https://scipy.org">SciPy</a>'
    )
    (tmp_path / "c.css").write_text("@font-face {src: url(https://fonts.net/x.woff)} p {background: url(own.png)}")
    assert len(foreign_references(tmp_path)) == 3
