"""Files of the project around the code: version, changelog fragments, citation, hooks, workflow, templates."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import groupowl

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOWNCRIER = PROJECT["tool"]["towncrier"]
TYPES = {entry["directory"] for entry in TOWNCRIER["type"]}
needs_towncrier = pytest.mark.skipif(
    importlib.util.find_spec("towncrier") is None, reason="not installed: towncrier (extra test)"
)


def read_yaml(*parts):
    return yaml.safe_load(ROOT.joinpath(*parts).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def installation():
    spec = importlib.util.spec_from_file_location("installation", ROOT / "tests" / "long" / "installation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The version ------------------------------------------------------------------------------------------------


def test_the_version_is_in_one_place(installation):
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]
    path = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert path.read_text(encoding="utf-8").count(f'"{groupowl.__version__}"') == 1
    assert installation.declared_version() == groupowl.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", groupowl.__version__)
    others = [*(ROOT / "src").rglob("*.py"), *ROOT.glob("*.toml"), *ROOT.glob("*.cff"), ROOT / "docs" / "conf.py"]
    found = [other for other in others if groupowl.__version__ in other.read_text(encoding="utf-8")]
    assert found == [path]


def test_lowest_versions_follow_the_declared_bounds(installation):
    pins = installation.lowest_versions()
    assert [pin.partition("==")[0] for pin in pins] == ["numpy", "scipy", "scikit-learn"]
    for pin, requirement in zip(pins, PROJECT["project"]["dependencies"], strict=True):
        assert pin == requirement.replace(">=", "==") + ".*"
    for path in installation.QUICK_TESTS:
        assert (ROOT / path).exists(), path


# The changelog ----------------------------------------------------------------------------------------------


def complaints(names):
    """Names of fragments that are not ``<issue>.<type>.md`` or ``+<words>.<type>.md``."""
    pattern = rf"(\d+|\+[a-z0-9-]+)\.({'|'.join(sorted(TYPES))})(\.\d+)?\.md"
    return [name for name in names if name != "README.md" and not re.fullmatch(pattern, name)]


def test_fragments_have_valid_names_and_say_something():
    fragments = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    assert complaints([path.name for path in fragments]) == []
    for path in fragments:
        assert path.read_text(encoding="utf-8").strip().endswith("."), f"{path.name} is not a sentence"


def test_a_wrong_fragment_would_be_seen():
    right = ["12.feature.md", "+some-words.bugfix.md", "12.doc.1.md"]
    wrong = ["12.feture.md", "12.feature", "words.feature.md", "feature.md", "12.md", "+Some Words.doc.md"]
    assert complaints([*right, *wrong, "README.md"]) == wrong


def test_types_are_those_that_the_pages_name():
    text = (ROOT / "news" / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "contributing" / "practice.rst").read_text(encoding="utf-8")
    for name in TYPES:
        assert f"`{name}`" in text
        assert f"* - ``{name}``" in page


@pytest.fixture
def small_project(tmp_path):
    """The configuration, the changelog and two fragments, apart from the clone."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "7.feature.md").write_text("Cows fly.", encoding="utf-8")
    (tmp_path / "news" / "+low-cows.bugfix.md").write_text("Cows land.", encoding="utf-8")
    return tmp_path


def towncrier(folder, *arguments):
    command = [sys.executable, "-m", "towncrier", "build", "--version", "9.8.7", "--date", "2030-01-02", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@needs_towncrier
def test_the_configuration_builds_a_draft_of_the_real_fragments():
    draft = towncrier(ROOT, "--draft")
    assert "## 9.8.7 (2030-01-02)" in draft
    lines = " ".join(draft.split())
    for path in (ROOT / "news").glob("*.*.md"):
        first = path.read_text(encoding="utf-8").split(",")[0]
        assert " ".join(first.split()) in lines, path.name


@needs_towncrier
def test_a_release_goes_above_what_the_changelog_has(small_project):
    before = (small_project / "CHANGELOG.md").read_text(encoding="utf-8")
    assert before.count(TOWNCRIER["start_string"]) == 1
    towncrier(small_project, "--keep")
    after = (small_project / "CHANGELOG.md").read_text(encoding="utf-8")
    head, rest = before.split(TOWNCRIER["start_string"])
    assert after.startswith(head + TOWNCRIER["start_string"])
    assert after.endswith(rest.lstrip("\n"))
    added = after[len(head) : len(after) - len(rest)]
    for text in ("## 9.8.7 (2030-01-02)", "### Added", "Cows fly. (#7)", "### Fixed", "- Cows land."):
        assert text in added, added


@needs_towncrier
def test_an_unknown_type_is_no_part_of_a_release(small_project):
    (small_project / "news" / "8.novelty.md").write_text("Cows sing.", encoding="utf-8")
    assert "Cows sing" not in towncrier(small_project, "--draft")  # which is why names are tested


# Everything else --------------------------------------------------------------------------------------------


def test_citation():
    citation = read_yaml("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == PROJECT["project"]["license"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Bao", "Lu", "Zhang"]
    page = (ROOT / "docs" / "mathematics" / "index.rst").read_text(encoding="utf-8")
    assert paper["title"] in page
    assert paper["type"] == "conference-paper"
    assert f"booktitle = {{{paper['collection-title']}}}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert paper["identifiers"][0]["value"] in page


def test_hooks_run_what_the_tests_run():
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # so that nothing is downloaded
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        program, *rest = hook["entry"].removeprefix(".venv/bin/").split()
        words = " ".join([program, *rest[:1]]) if program == "ruff" else program
        assert f"$(BIN)/{words}" in makefile, hook["entry"]


def test_workflow_covers_versions_systems_and_the_site():
    workflow = read_yaml(".github", "workflows", "tests.yml")
    jobs = workflow["jobs"]
    assert set(jobs) == {"lint", "newest", "lowest", "wheels", "installed", "docs"}
    matrix = jobs["newest"]["strategy"]["matrix"]
    assert [system.partition("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    assert PROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands:
        if command.startswith("make "):
            for target in command.split()[1:]:
                assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), command
        for path in re.findall(r"tests/\S+\.py", command):
            assert (ROOT / path).exists(), command
    assert set(workflow[True]) >= {"push", "pull_request"}  # YAML reads the key "on" as a truth value


@pytest.mark.parametrize("name", ["bug_report.yml", "feature_request.yml"])
def test_issue_forms(name):
    form = read_yaml(".github", "ISSUE_TEMPLATE", name)
    assert {"name", "description", "body"} <= form.keys()
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(field["attributes"]["label"] for field in form["body"])


def test_what_the_source_distribution_names_exists():
    include = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in include:
        assert name.startswith("/"), f"{name} would be found in every folder"
        assert (ROOT / name[1:]).exists(), name
    assert {"/.github", "/.pre-commit-config.yaml"} <= set(include)  # which the tests above read


def test_paths_named_for_contributors_exist():
    for name in ("CONTRIBUTING.md", ".github/pull_request_template.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:docs|news|tests|src)/[\w/.]*)`", text):
            assert (ROOT / path).exists(), path
