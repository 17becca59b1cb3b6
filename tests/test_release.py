"""What a release is made of: archives that are looked into, tags that are checked, and a recipe."""

import base64
import hashlib
import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load(*parts):
    path = ROOT.joinpath(*parts)
    spec = importlib.util.spec_from_file_location(f"release_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


archives = load("tests", "long", "archives.py")
release = load("tools", "release_check.py")

# Archives ---------------------------------------------------------------------------------------------------

SOURCES = {"pyproject.toml", "src/groupowl/__init__.py", "src/groupowl_command.py", "harness/src/groupowl_harness/a.py"}
INFO = "groupowl-1.2.3.dist-info/"


def elf(machine):
    return b"\x7fELF" + bytes(14) + machine + bytes(40) + archives.source_stamp()


X86_64 = elf(b"\x3e\x00")


def make_wheel(folder, platform="manylinux_2_17_x86_64", library=X86_64, change=None):
    """A wheel that is right, but for what ``change`` does to its files before or after RECORD is written."""
    files = {"groupowl/__init__.py": b"", "groupowl_command.py": b"", f"{INFO}METADATA": b"", f"{INFO}RECORD": b""}
    files |= {f"{INFO}entry_points.txt": b"", f"{INFO}licenses/LICENSE": b""}
    files[f"{INFO}WHEEL"] = f"Wheel-Version: 1.0\nTag: py3-none-{platform}\n".encode()
    if library is not None:
        files["groupowl/_kernel.native.so"] = library
    before, after = change or (lambda files: None, lambda files: None)
    before(files)
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},," if name == f"{INFO}RECORD" else f"{name},sha256={digest},{len(data)}")
    files[f"{INFO}RECORD"] = "\n".join(lines).encode()
    after(files)
    path = folder / f"groupowl-1.2.3-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def nothing(files):
    pass


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, None),
        ({"platform": "any", "library": None}, None),
        ({"platform": "any"}, "stray file groupowl/_kernel.native.so"),
        ({"library": None}, "no file groupowl/_kernel.native.so"),
        ({"library": elf(b"\xb7\x00")}, "_kernel.native.so is for another machine"),
        ({"library": elf(b"\x3e\x00")[:-1]}, "_kernel.native.so was compiled from other sources"),
        ({"platform": "win_arm64"}, "unknown platform win_arm64"),
        ({"change": (lambda files: files.update({"notes.txt": b""}), nothing)}, "stray file notes.txt"),
        ({"change": (lambda files: files.pop("groupowl_command.py"), nothing)}, "no file groupowl_command.py"),
        (
            {"change": (nothing, lambda files: files.update({"groupowl/__init__.py": b"x"}))},
            "RECORD is wrong about groupowl/__init__.py",
        ),
        (
            {"change": (lambda files: files.update({f"{INFO}WHEEL": b"Tag: py3-none-any\n"}), nothing)},
            "WHEEL has tags ['py3-none-any']",
        ),
    ],
)
def test_wheels_are_looked_into(tmp_path, options, complaint):
    found = archives.complaints_about_wheel(make_wheel(tmp_path, **options), SOURCES)
    assert found == [] if complaint is None else complaint in found


def test_the_source_distribution_has_what_is_under_version_control_only():
    names = {"PKG-INFO", "pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "native/groupowl.h"}
    names |= {"src/groupowl/__init__.py"}
    assert archives.complaints_about_sdist(names, names - {"PKG-INFO"}) == []
    (stray,) = archives.complaints_about_sdist(names | {".venv-x/a.py"}, names)
    assert "1 stray files, the first is .venv-x/a.py" in stray
    assert archives.complaints_about_sdist(names - {"LICENSE"}, None) == ["source distribution: no LICENSE"]
    for name in names - {"PKG-INFO"}:
        assert (ROOT / name).exists(), name


def test_every_platform_of_the_wheels_is_known():
    for platform in load("tools", "wheels.py").TARGETS:
        tag = platform.replace("-", "_").replace(".", "_")
        assert any(tag.endswith(end) for end in archives.NEEDED if end in archives.PLATFORMS), tag


# Tags -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "src" / "groupowl").mkdir(parents=True)
    (tmp_path / "src" / "groupowl" / "__init__.py").write_text('__version__ = "1.2.3"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3 (2030-01-02)\n", encoding="utf-8")
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "README.md").write_text("How to.", encoding="utf-8")
    return tmp_path


def test_a_release_in_order_has_no_complaints(tree):
    assert release.complaints("v1.2.3", tree) == []


def test_what_is_forgotten_is_named(tree):
    assert "the tag is v1.2.4" in release.complaints("v1.2.4", tree)[0]
    (tree / "news" / "+cows.doc.md").write_text("Cows.", encoding="utf-8")
    assert release.complaints("v1.2.3", tree) == [
        "news/ still has 1 fragments, the first is +cows.doc.md: run make release-notes"
    ]
    (tree / "news" / "+cows.doc.md").unlink()
    (tree / "src" / "groupowl" / "__init__.py").write_text('__version__ = "1.2.4.dev0"\n', encoding="utf-8")
    development, changelog = release.complaints("v1.2.4.dev0", tree)
    assert "1.2.4.dev0 is a version of development" in development
    assert "CHANGELOG.md has no section of 1.2.4.dev0" in changelog


def test_the_workflow_publishes_what_it_has_tried():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert set(jobs["publish"]["needs"]) == {"build", "installed"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}  # trusted publishing
    assert "tag" in jobs["publish"]["if"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for path in re.findall(r"(?:tests|tools)/\S+\.py", " ".join(commands)):
        assert (ROOT / path).exists(), path
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["installed"]["strategy"]["matrix"] == tests["installed"]["strategy"]["matrix"]


@pytest.mark.parametrize("name", ["benchopt", "release"])
def test_workflows_call_targets_that_exist(name):
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [
        step["run"] for job in jobs.values() for step in job["steps"] if step.get("run", "").startswith("make ")
    ]
    assert commands
    for command in commands:
        assert re.search(rf"^{command.split()[1]}:", makefile, flags=re.MULTILINE), command


# The conda recipe -------------------------------------------------------------------------------------------


def test_the_recipe_follows_the_project():
    """``make wheels`` reads it with rattler-build's parser; here it is compared with pyproject.toml."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    project = PROJECT["project"]
    assert recipe["package"]["name"] == project["name"]
    run = [requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]]
    assert run == [f"python{project['requires-python']}", *project["dependencies"]]
    host = [requirement.replace(" ", "") for requirement in recipe["requirements"]["host"]]
    assert set(PROJECT["build-system"]["requires"]) <= set(host)
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    assert [recipe["about"]["license_file"]] == project["license-files"]
    assert recipe["context"]["version"] == '${{ env.get("GROUPOWL_VERSION") }}'  # which is written in one place


# The citation -----------------------------------------------------------------------------------------------


def test_the_citation_follows_its_schema():
    """``make wheels`` checks it, too, in an environment that has the schema."""
    cffconvert = pytest.importorskip("cffconvert", reason="not installed: cffconvert (make wheels installs it)")
    cffconvert.Citation((ROOT / "CITATION.cff").read_text(encoding="utf-8")).validate()
