"""The pages of the site that people read first: their code runs, and prints what they show.

Examples with prompts are run as doctests, blocks of Python without prompts in their places between them, commands of
``console`` blocks by the command line. Output is compared as text with numbers in it: see :class:`NumbersChecker`.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import groupowl as go
from groupowl.cli.commands import run

matplotlib.use("Agg")

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = Path(__file__).parents[1] / "examples"
FOLDERS = ("start", "guide", "guide/losses", "migration")
PAGES = sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.rst"))

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])")
#: How hard a fit was depends on the machine: numbers before these words are not compared.
EFFORT = re.compile(r"\s*(?:s\b|steps\b|passes\b)")
#: Gaps and residuals below this are all called tiny.
TINY = 1e-4
CODE_BLOCK = re.compile(r"^(?P<indent> *)(?=\S)(?:\.\. code-block:: python|(?!\.\. )(?:.*[^:])?::)$")
CONSOLE_BLOCK = re.compile(r"^(?P<indent> *)\.\. code-block:: console$")


# Reading a page -----------------------------------------------------------------------------------------


def blocks(text, header):
    """Number of the first line, and source, of the indented blocks below lines that ``header`` matches."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (match := header.match(line)) is None:
            continue
        depth = len(match["indent"])
        below = number + 1
        while below < len(lines) and (
            not lines[below].strip() or len(lines[below]) - len(lines[below].lstrip()) > depth
        ):
            below += 1
        source = "\n".join(lines[number + 1 : below])
        if source.strip():
            yield number + 1, textwrap.dedent(source).strip("\n")


def statements(source, first_line):
    """The statements of a block, as examples that print nothing: values of expressions are not shown by a script."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        start = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
        code = "\n".join(lines[start - 1 : node.end_lineno])
        shown = f"_ = ({code})" if isinstance(node, ast.Expr) else code
        yield doctest.Example(f"{shown}\n", "", lineno=first_line + start - 1)


def examples(text, skip=None):
    """Everything that a page runs, in its order."""
    found = doctest.DocTestParser().get_examples(text)
    for first_line, source in blocks(text, CODE_BLOCK):
        if ">>>" not in source and (skip is None or skip not in source):
            found += statements(source, first_line)
    return sorted(found, key=lambda example: example.lineno)


class NumbersChecker(doctest.OutputChecker):
    """Texts are equal but for numbers, which agree to 1 in 1000; efforts are not compared, and tiny is tiny."""

    def check_output(self, want, got, optionflags):
        texts = [
            " ".join(NUMBER.sub(" # ", text.replace(doctest.BLANKLINE_MARKER, "")).split()) for text in (want, got)
        ]
        return texts[0] == texts[1] and all(map(self._agree, numbers(want), numbers(got)))

    @staticmethod
    def _agree(want, got):
        if want is None or got is None:
            return want is got
        if max(abs(want), abs(got)) < TINY:
            return True
        return abs(want - got) <= 1e-3 * abs(want)


def numbers(text):
    """Numbers of a text, None for efforts."""
    for match in NUMBER.finditer(text):
        yield None if EFFORT.match(text, match.end()) else float(match[0])


# Running it ---------------------------------------------------------------------------------------------


def prepared(page):
    """Names that a page takes for granted."""
    if page.name != "large_data.rst":
        return {}
    data = go.datasets.make_correlated_groups(60, 12, 2, n_informative=4, random_state=0)
    Path("counts").mkdir()
    np.save("counts/part.npy", data.X)
    pytest.importorskip("zarr")
    pytest.importorskip("dask.array").from_array(data.X, chunks=(20, 12)).to_zarr("counts.zarr")
    blocks = [(data.X[:20], data.Y[:20]), (data.X[20:], data.Y[20:])]
    tuesday = go.SufficientStatistics.from_blocks([(data.X[::-1], data.Y[::-1] + 0.1)])
    tuesday.save("tuesday.npz")
    lam = 0.3 * go.lam_max(data.X, data.Y, "oscar", fit_intercept=True) * go.weights.oscar(12)
    return {
        "go": go,
        "X": data.X,
        "y": data.Y,
        "Y": data.Y,
        "labels": np.arange(60) % 3,
        "lam": lam,
        "blocks": blocks,
        "days": ["monday", "tuesday"],
    }


#: Code that needs more than a test has, by a part of it: here a cluster at an address. tests/distributed has such fits.
NEEDS_MORE = {"large_data.rst": "scheduler:8786"}


@pytest.fixture
def workplace(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(DOCS / "migration"))  # its pages import the code that they show
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def name_of(page):
    return f"{page.parent.name}/{page.stem}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.usefixtures("workplace", "numpy_kernel")
def test_code_runs_and_prints_what_is_shown(page):
    text = page.read_text(encoding="utf-8")
    found = examples(text, NEEDS_MORE.get(page.name))
    test = doctest.DocTest(found, prepared(page), name_of(page), str(page), 0, text)
    report = []
    outcome = doctest.DocTestRunner(NumbersChecker(), verbose=False).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


WITH_CODE = ["start/five_minutes", "start/alpha_and_weights", "guide/clusters", "guide/certificate", "guide/large_data"]


def test_code_is_found():
    """So that the test above is not empty."""
    counts = {name_of(page): len(examples(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert all(counts[name] >= 5 for name in WITH_CODE), counts


def commands(text):
    """What ``console`` blocks type, and what they show below it, in pairs."""
    found = []
    for _, source in blocks(text, CONSOLE_BLOCK):
        for line in source.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append([line[2:], ""])
            else:
                found[-1][1] += line + "\n"
    return found


@pytest.mark.usefixtures("workplace")
def test_commands_run_and_print_what_is_shown(capsys):
    text = (DOCS / "guide" / "command_line.rst").read_text(encoding="utf-8")
    typed = [pair for pair in commands(text) if pair[0].startswith("groupowl ")]
    assert {line.split()[1] for line, _ in typed} >= {"fit", "path", "cv", "predict", "verify", "demo"}
    for line, want in typed:
        try:
            code = run(shlex.split(line)[1:])
        except SystemExit as stop:
            code = stop.code
        got = capsys.readouterr().out
        assert code == (1 if "plants_new" in line and "verify" in line else 0), line
        if want.strip():
            assert NumbersChecker().check_output(want, got, 0), f"{line}\nshown:\n{want}\nprinted:\n{got}"


# The checker itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("want", "got", "agree"),
    [
        ("gap 1.1e-09, 12 rows\n", "gap 7e-10,   12 rows\n", True),
        ("gap 1.1e-09, 12 rows\n", "gap 7e-03, 12 rows\n", False),
        ("gap 1.1e-09, 12 rows\n", "gap 1.1e-09, 13 rows\n", False),
        ("after 12 steps, 3.4 passes, 0.1 s\n", "after 17 steps, 9.4 passes, 2.1 s\n", True),
        ("objective 5.6604\n", "objective 5.6611\n", True),
        ("objective 5.66\n", "objective 5.70\n", False),
        ("proved zero\n", "proved\n", False),
        ("0.5 and 0.2\n", "0.5\n", False),
    ],
)
def test_numbers_are_compared_as_said(want, got, agree):
    assert NumbersChecker().check_output(want, got, 0) is agree


# Pictures and tables of contents ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "guide" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_on_a_page_with_words_for_those_who_do_not_see_it(pictures):
    drawn = {}
    for page in [DOCS / "index.rst", *PAGES]:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^\.\. plot:: guide/pictures\.py (\w+)\n((?:   .*\n)*)", text, flags=re.MULTILINE):
            assert ":alt: " in match[2], f"{match[1]} in {page.name}"
            drawn[match[1]] = page
    own = {name: value for name, value in vars(pictures).items() if getattr(value, "__module__", "") == "pictures"}
    made = {name for name, value in own.items() if value.__annotations__.get("return") == "None"}
    assert set(drawn) == {name for name in made if not name.startswith("_")}


def test_the_lasso_picks_one_and_group_owl_keeps_the_group(pictures):
    """What the guide says of its first picture."""
    group = pictures.GROUP
    selected = {name: pictures.resampled_norms(name)[:, :group] > 0 for name in ("constant", "oscar", "linear")}
    average = {name: mask.sum(axis=1).mean() for name, mask in selected.items()}
    assert average["constant"] < 2 < 4 < average["oscar"] < average["linear"] == group
    often = selected["constant"].mean(axis=0)
    assert np.sum((often > 0) & (often < 1)) >= 3  # not always the same one


def test_the_picture_of_the_first_page_shows_what_is_said_below_it(pictures):
    """The lasso keeps one of three features, Group OWL gives them equal coefficients; the scores are those shown."""
    fits = pictures.cancer_fits()
    deviations = pictures.load_breast_cancer(as_frame=True).data.std(ddof=0)
    lasso, ours = ((fits[name].coef_[0] * deviations)[pictures.THREE].abs() for name in ("constant", "bh"))
    assert list(lasso > 0) == [True, False, False]
    assert np.ptp(ours) <= 1e-6 * ours.min()
    one, other = (f"{-fits[name].best_score_:.2f}" for name in ("bh", "constant"))
    assert one == other
    for page in (DOCS / "index.rst", DOCS.parent / "README.md"):
        assert f"({one} for both)" in " ".join(page.read_text(encoding="utf-8").split()), page.name


def test_every_loss_has_a_page_with_the_same_parts():
    parts = ["When", "Fit", "Look", "Choose alpha", "Predict", "What the certificate says"]
    pages = {page.stem: page.read_text(encoding="utf-8") for page in PAGES if page.parent.name == "losses"}
    del pages["index"]
    assert set(pages) == set(go.losses.LOSSES)
    for name, text in pages.items():
        assert re.findall(r"^(.+)\n-+$", text, flags=re.MULTILINE) == parts, name


def test_what_keeping_groups_costs_is_what_the_study_measured():
    page = (DOCS / "guide" / "correlated_features.rst").read_text(encoding="utf-8")
    shown = re.findall(r"\* - (\w+).*\n +- ([\d.]+)\n +- (\d+)\n +- ([\d.]+)\n", page)
    assert len(shown) == 5
    report = (DOCS / "measured" / "reproduction" / "report.md").read_text(encoding="utf-8")
    lines = report[report.index("Means over all truths") :].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    measured = {row[0].lower(): (row[4], row[-1], row[3]) for row in rows}
    measured["constant"] = measured["l2,1 (multitasklasso)"]
    assert {name: tuple(figures) for name, *figures in shown} == {name: measured[name] for name, *_ in shown}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_is_in_the_contents_of_its_folder(page):
    if page.stem == "index":
        return
    contents = (page.parent / "index.rst").read_text(encoding="utf-8").split(".. toctree::")[1]
    assert f"   {page.stem}\n" in contents
