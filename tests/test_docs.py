"""The API reference has every public name; the check of the built site, part of ``make docs``, sees what is wrong."""

import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import matplotlib
import pytest

DOCS = Path(__file__).parents[1] / "docs"
# Modules whose __all__ is for users; of others the reference picks what users meet.
PUBLIC_MODULES = ["groupowl", "groupowl.datasets", "groupowl.estimators", "groupowl.storage", "groupowl.plotting"]
PUBLIC_MODULES += ["groupowl.weights"]


def load_check():
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_site = load_check()


def resolve(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_every_public_name_is_in_the_reference_once():
    names = check_site.documented(DOCS)
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


def test_every_public_object_has_an_example():
    """In its docstring, run as a doctest by another test; constants have theirs on the page."""
    objects = {name: resolve(name) for name in check_site.documented(DOCS)}
    assert [name for name, value in objects.items() if callable(value) and ">>>" not in (value.__doc__ or "")] == []


def test_the_index_has_every_name_once_and_constants_apart():
    """By topic, with one line each; constants come last and are in none of the tables."""
    index = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    tables, _, last = index.partition("Constants\n---------\n")
    listed = re.findall(r"^   ~([\w.]+)$", tables, flags=re.MULTILINE)
    documented = check_site.documented(DOCS)
    assert sorted(listed) == sorted(name for name in documented if callable(resolve(name)))
    assert sorted(re.findall(r":data:`~([\w.]+)`", last)) == sorted({*documented} - {*listed})


def constants():
    """Names of constants in the reference, and what stands below them."""
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.rst"))]
    pattern = re.compile(r"^\.\. data:: (\w+)\n((?:\n| +.*\n)*)", flags=re.MULTILINE)
    return {match[1]: match[2] for text in pages for match in pattern.finditer(text)}


@pytest.mark.parametrize("name", constants())
def test_every_constant_has_an_example_that_runs(name):
    matplotlib.use("Agg")
    test = doctest.DocTestParser().get_doctest(constants()[name], {}, name, "docs/api", 0)
    assert any(name in example.source for example in test.examples)
    report = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=report.append).failed == 0, "".join(report)


def test_every_constant_is_seen():
    """So that the test above is not empty."""
    documented = [name for name in check_site.documented(DOCS) if not callable(resolve(name))]
    assert {name.rpartition(".")[2] for name in documented} == set(constants()) != set()


SITE = {
    "index.html": '<a href="pages/a.html#there">a</a> <img src="_images/own.png"> <a href="https://scipy.org">S</a>',
    "pages/a.html": '<h1 id="there">A</h1><a href="../index.html">u</a><a href="#there">a</a><a href="mailto:x">x</a>',
    "_images/own.png": "content",
    "_static/own.css": "p {background: url(own.png)}",
}


def write_site(folder, changes):
    for name, text in (SITE | changes).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return check_site.check(folder)


def test_a_site_without_fault(tmp_path):
    assert write_site(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.html", '<script src="https://cdn.net/x.js"></script>', "x.html: loads https://cdn.net/x.js from elsewhere"),
        ("x.html", '<link rel="stylesheet" href="//fonts.net/x.css">', "loads //fonts.net/x.css from elsewhere"),
        ("x.html", '<img src="_images/other.png">', "picture, style or script '_images/other.png' leads nowhere"),
        ("x.html", '<a href="pages/b.html">b</a>', "link 'pages/b.html' leads nowhere"),
        ("x.html", '<a href="pages/a.html#nowhere">b</a>', "link 'pages/a.html#nowhere' leads to no anchor"),
        ("x.html", '<a href="#nowhere">b</a>', "link '#nowhere' leads to no anchor"),
        ("_images/own.png", "", "index.html: picture, style or script '_images/own.png' leads nowhere"),
        ("c.css", "@font-face {src: url(https://fonts.net/x.woff)}", "c.css: loads https://fonts.net/x.woff"),
    ],
)
def test_faults_are_seen(tmp_path, name, text, message):
    (found,) = write_site(tmp_path, {name: text})
    assert message in found


def test_an_empty_site_and_missing_names_are_seen(tmp_path):
    assert check_site.check(tmp_path) == [f"{tmp_path} has no page"]
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "a.html").write_text('<dt id="groupowl.solve">', encoding="utf-8")
    assert check_site.missing_names(tmp_path, ["groupowl.solve", "groupowl.lars"]) == [
        "groupowl.lars has no place in the reference"
    ]
