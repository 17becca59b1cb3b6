"""The README's code runs as it stands."""

from __future__ import annotations

import math
import re
from pathlib import Path

import matplotlib
import pytest

README = Path(__file__).parents[1] / "README.md"
BENCHMARK = README.parent / "benchmarks" / "results" / "README.md"
REPORT = README.parent / "docs" / "measured" / "reproduction" / "report.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def pictures_go_to_files(monkeypatch, tmp_path):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)


def test_the_script_does_what_its_comments_say(tmp_path, capsys):
    """Blocks follow each other: the last uses the data of the one before."""
    names: dict[str, object] = {}
    words = " ".join(README.read_text(encoding="utf-8").split())
    for i, block in enumerate(BLOCKS):
        exec(compile(block, str(README), "exec"), names)
        if i == 0:  # the scores below the picture
            (loss,) = {f"{-names[name].best_score_:.2f}" for name in ("model", "lasso")}
            assert f"log-loss is about the same ({loss} for both)" in words
    model, result = names["model"], names["result"]
    printed = capsys.readouterr().out
    assert printed.count("the fit holds") == 2
    assert "gene" in printed
    assert bool(model.verify(names["X"], names["y"]))
    assert len(model.selected_features_) > 0
    for picture in ("model.png", "path.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
    assert result.converged


def test_scripts_are_short():
    """The first has ten lines, and is the one of the first page of the site; the second has 25."""
    first, second = ([line for line in block.splitlines() if line.strip()] for block in BLOCKS[:2])
    assert len(first) <= 10
    assert len(second) <= 25
    page = (README.parent / "docs" / "index.rst").read_text(encoding="utf-8")
    assert "\n".join(f"   {line}".rstrip() for line in BLOCKS[0].splitlines()) in page


def test_what_a_newcomer_needs_comes_first():
    """What it is for, how to install it, ten lines and a picture; tables and formulas come after the examples."""
    text = README.read_text(encoding="utf-8")
    places = [
        text.index(part) for part in ("pip install", "```python", "![", "\n## ", "groupowl cv", "minimize", "\n| ")
    ]
    assert places == sorted(places)
    assert text[: text.index("\n## ")].count("\n") <= 40


def rows_of_tables(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def section(page, title):
    """The part of a page under a heading."""
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_figures_of_the_table_are_those_of_the_benchmark():
    """Times over groupowl's, package by package: what the last results say, as bounds where runs were stopped."""
    text = BENCHMARK.read_text(encoding="utf-8")
    measured = {}
    for row in rows_of_tables(section(text, "Times relative to groupowl"))[2:]:
        group, package, median, _, _, stopped = row
        measured[group, package] = median if stopped == "0" else f"at least {median}"
    header, *rows = rows_of_tables(README.read_text(encoding="utf-8"))
    packages = [title.split()[0] for title in header[1:] if title]
    groups = {
        "many tasks, sorted weights": "(a)",
        "one task, sorted weights": "(c)",
        "many tasks, equal weights": "(b)",
        "multinomial, equal weights": "(d)",
    }
    compared = 0
    for title, *cells in rows:
        if not title.startswith("time / groupowl, "):
            continue
        group = groups[title.removeprefix("time / groupowl, ")]
        for package, cell in zip(packages, cells, strict=True):
            package = {"R": "glmnet"}.get(package, package)
            if package != "groupowl" and cell not in ("", "not measured"):
                assert cell == measured[group, package], (title, package)
                compared += 1
    assert compared == 10


#: Problems of which README says that others are faster, and how many times at most.
SLOWER = {
    r"m: cox": 4.0,
    r"h: .* groups of": 1.4,
    r"[kt]: .* constant @ path": 1.2,
    r"l: (cox|logistic)": 1.2,
}


def test_problems_on_which_others_are_faster_are_those_that_are_named():
    """The page's own list of them; a quarter more or less is the noise of a measurement."""
    rows, faster = rows_of_tables(section(BENCHMARK.read_text(encoding="utf-8"), "Where groupowl is slower")), set()
    place = rows[0].index("its time / groupowl")
    for problem, *cells in rows[2:]:
        named = next((kind for kind in SLOWER if re.match(kind, problem)), None)
        assert 1.0 / float(cells[place - 1]) <= 1.25 * SLOWER.get(named, 1.0), problem
        faster.add(named)
    assert faster >= set(SLOWER)  # none is named without need


def test_every_other_time_is_on_the_page_or_a_limit():
    """Of text: no minutes or seconds but the limits of a command, and products as the page has counted them."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert re.findall(r"\w+ (?:seconds?|minutes?|hours?)\b", text) == ["Five minutes", "two hours", "five minutes"]
    counted = next(
        row for row in rows_of_tables(BENCHMARK.read_text(encoding="utf-8")) if row[0].startswith("cold fit")
    )
    least, most = map(float, re.match(r"([\d.]+) to ([\d.]+)", counted[1]).groups())
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert f"as long as {words[round(least)]} to {words[math.ceil(most)]} products with X" in text


def test_the_first_screen_says_what_a_group_is_and_the_page_how_threads_are_decided():
    text = README.read_text(encoding="utf-8")
    assert "*group*" in text[: text.index("```python")]
    assert "**Threads.**" in text
    assert "OMP_NUM_THREADS" in text


def test_what_screening_and_groups_are_said_to_bring_was_measured():
    text, report = README.read_text(encoding="utf-8"), REPORT.read_text(encoding="utf-8")
    factors = [(row[2], row[7]) for row in rows_of_tables(report) if row[1] == "paper's rule" and len(row) == 8]
    plain, restarted = (sorted(float(factor.rstrip("x")) for factor in column) for column in zip(*factors, strict=True))
    guide = (README.parent / "docs" / "guide" / "screening.rst").read_text(encoding="utf-8")
    for page in (text, guide):
        words = " ".join(page.split())
        assert f"{plain[0]}x to {plain[-1]}x faster" in words
        assert f"{restarted[0]}x to {restarted[-1]}x remain" in words
    lasso, oscar = (
        next(row for row in rows_of_tables(report[report.index("Means over all truths") :]) if row[0].startswith(name))
        for name in ("L2,1", "OSCAR")
    )
    whole, features = [f"{100 * float(row[4]):.0f} %" for row in (oscar, lasso)], [oscar[-1], lasso[-1]]
    words = " ".join(text.split())
    assert "OSCAR weights selected {} of the groups whole (equal weights {})".format(*whole) in words
    assert "but {} features (equal weights {})".format(*features) in words
    assert 0 < float(oscar[3]) - float(lasso[3]) < 0.01  # slightly larger test errors


def anchors_of(text):
    """Anchors of the headings of a Markdown page, as GitHub and the site make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(target):
    path, _, anchor = target.partition("#")
    page = README.parent / path if path else README
    if not page.exists():
        return True
    return bool(anchor) and (page.suffix != ".md" or anchor not in anchors_of(page.read_text(encoding="utf-8")))


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert any("#" in target for target in targets)
    assert [target for target in targets if "://" not in target and leads_nowhere(target)] == []


@pytest.mark.parametrize("target", ["docs/nothing.md", "CHANGELOG.md#nothing", "#nothing", "docs/index.rst#groupowl"])
def test_links_that_lead_nowhere_are_seen(target):
    assert leads_nowhere(target)
