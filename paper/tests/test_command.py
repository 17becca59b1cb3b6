"""The command reproduce: it does its job, and what goes wrong is one clear line."""

import json
import random
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points

import matplotlib
import pytest
from typer.testing import CliRunner

from cli_support import run_main
from groupowl.cli import commands
from groupowl.cli.commands import build_app
from groupowl_paper import command
from groupowl_paper import reproduce as reproduce_module
from groupowl_paper.reproduce.locks import Lock
from reproduce_support import CannedWorker, InlineWorker, assert_same, write_folder

matplotlib.use("Agg")
from matplotlib.figure import Figure
from matplotlib.image import imread

OUTPUTS = ["report.md", "results.json", "results.csv"]
OUTPUTS += [f"{name}.{suffix}" for name in ("figure1_time_regression", "figure2_screening_regression",
            "figure3_time_multinomial", "figure4_screening_multinomial", "speedup_against_sparsity")
            for suffix in ("png", "svg")]  # fmt: skip


@pytest.fixture
def run(monkeypatch):
    """Run the command line in 80 columns, as in a pipe."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def assert_is_a_picture(path):
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 300
    assert len(set(map(bytes, pixels.reshape(-1, 3)))) > 50  # colors, and gray levels at their edges


def assert_one_line(result, *parts):
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("groupowl: ")
    assert all(str(part) in line for part in parts), line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("sets"))


def work_with(make_worker, monkeypatch):
    """Let the command do its work with these workers."""
    original = reproduce_module.Campaign
    monkeypatch.setattr(
        reproduce_module, "Campaign", lambda *args, **more: original(*args, **more, make_worker=make_worker)
    )


@pytest.fixture
def canned(monkeypatch):
    """Runs that are done at once."""
    work_with(CannedWorker, monkeypatch)
    monkeypatch.setattr("groupowl_paper.reproduce.outputs._DPI", 90)


@pytest.fixture
def no_pictures(monkeypatch):
    """For tests that are not about figures."""
    blank = {name.removesuffix(".png"): Figure() for name in OUTPUTS if name.endswith(".png")}
    monkeypatch.setattr("groupowl_paper.reproduce.outputs.result_figures", lambda results: blank)


def test_reproduce_command(run, folder, tmp_path, canned):
    out = tmp_path / "new" / "results"
    result = run("reproduce", "--data", folder, "--out", out, "--no-study")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Data sets: PlantGO, CMUFaces, ProteinVal, Bibtex."
    assert any(line.startswith("Missing, skipped: Mnist (looked for mnist.npz, ") for line in lines)
    assert any(line.startswith("Expected time: about ") and "never more than 2.0 hours" in line for line in lines)
    assert lines[-len(OUTPUTS) :] == [str(out / name) for name in OUTPUTS]
    assert sorted(path.name for path in out.iterdir()) == sorted([*OUTPUTS, "runs"])
    assert_is_a_picture(out / "figure1_time_regression.png")
    assert "What must hold" in (out / "report.md").read_text()
    trials = {
        key.rpartition(".t")[2] for key in json.loads((out / "results.json").read_text())["records"] if ".t" in key
    }
    assert trials == {"1", "2", "3", "4", "5"}


def test_quiet_quick_reproduce_prints_nothing(run, folder, tmp_path, canned, no_pictures, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("reproduce", "--data", folder, "--quick", "--no-study", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert {path.name for path in (tmp_path / "results").iterdir()} >= set(OUTPUTS)
    assert "This is a quick run" in (tmp_path / "results" / "report.md").read_text()


def test_reproduce_takes_its_options(run, folder, tmp_path, canned, no_pictures):
    arguments = ["--datasets", "PlantGO, Bibtex", "--trials", 2, "--cap", 7, "--minutes", 3, "--jobs", 2, "--no-study"]
    assert run("reproduce", "--data", folder, "--out", tmp_path, "-q", *arguments).exit_code == 0
    saved = json.loads((tmp_path / "results.json").read_text())
    expected = {"trials": 2, "cap": 7, "step_cap": 7, "minutes": 3, "jobs": 2, "study": False}
    assert {name: saved["options"][name] for name in expected} == expected
    assert saved["options"]["datasets"] == ["PlantGO", "Bibtex"]
    assert {key.partition(".")[0] for key in saved["records"]} == {"PlantGO", "Bibtex"}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--datasets", "Plant"], ["datasets must be one of 'PlantGO', ", "got 'Plant'"]),
        (["--datasets", " , "], ["datasets must be one of"]),
        (["--datasets", "Mnist"], ["data has no file of Mnist", "docs/measured/reproduction.md"]),
        (["--trials", 0], ["trials must be at least 1, got 0"]),
        (["--cap", 0], ["cap must be a finite number above 0"]),
        (["--cap", "nan", "--quick"], ["cap must be a finite number above 0, got nan"]),
        (["--minutes", -5], ["minutes must be a finite number above 0, got -5.0"]),
        (["--jobs", 0], ["jobs must be at least 1, got 0"]),
    ],
)
def test_bad_options_of_reproduce(run, folder, tmp_path, arguments, parts):
    assert_one_line(run("reproduce", "--data", folder, "--out", tmp_path, *arguments), *parts)


NUMBERS = ["x", "", "nan", "inf", "-1", "0", "1,5"]
COUNTS = ["x", "", "0", "-5", "2.5", "1e3"]
BAD_VALUES = {
    "--data": ["nowhere", "t.csv"],
    "--trials": COUNTS,
    "--cap": NUMBERS,
    "--minutes": NUMBERS,
    "--jobs": ["x", "0", "-1"],
    "--datasets": ["", "nonsense", "abalone,nonsense"],
}


@pytest.mark.parametrize(
    ("option", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values]
)
def test_bad_values_are_one_line_that_names_the_option(tmp_path, monkeypatch, capsys, option, value):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    before = sorted(tmp_path.rglob("*"))
    data = () if option == "--data" else ("--data", "data")
    ran = run_main(capsys, monkeypatch, "reproduce", *data, f"{option}={value}")
    assert ran.code in (1, 2), ran
    assert (value if value == "t.csv" else option) in ran.message
    assert "bug of groupowl" not in ran.message
    assert sorted(tmp_path.rglob("*")) == before


def test_reproduce_without_data(run, tmp_path):
    assert run("reproduce", "--out", tmp_path).exit_code == 2  # says that --data is required
    assert_one_line(run("reproduce", "--data", tmp_path / "nowhere", "--out", tmp_path), "nowhere", "does not exist")


def test_reproduce_on_changed_settings(run, folder, tmp_path, canned, no_pictures):
    common = (
        "reproduce",
        "--data",
        folder,
        "--out",
        tmp_path,
        "--datasets",
        "PlantGO",
        "--no-study",
        "--trials",
        1,
        "-q",
    )
    assert run(*common).exit_code == 0
    assert_one_line(run(*common, "--cap", 5), "cap (90.0, now 5.0)", "--restart")
    assert run(*common, "--cap", 5, "--restart").exit_code == 0
    (tmp_path / "runs" / "PlantGO.p1.default.t1.json").write_text("half a fi")
    result = run(*common[:-1], "--cap", 5)
    assert "Stored result PlantGO.p1.default.t1 cannot be read and is done again." in result.stdout


def test_reproduce_reports_refuted_answers(run, folder, tmp_path, canned, no_pictures, monkeypatch):
    monkeypatch.setattr(reproduce_module, "refuted", lambda results: ["a wrong one"])
    result = run("reproduce", "--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "--trials", 1)
    assert result.exit_code == 1
    assert "answers do not keep what their runs claim" in result.stderr


def test_reproduce_says_what_failed(run, folder, tmp_path, no_pictures, monkeypatch):
    class Failing(CannedWorker):
        def ask(self, request, limit):
            return {"error": "MemoryError: too much"} if request["do"] == "memory" else super().ask(request, limit)

    work_with(Failing, monkeypatch)
    result = run("reproduce", "--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "-q")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "groupowl: failed: 4 pieces of work, the first of them PlantGO.p1.memory-apgd-none (MemoryError: too much); "
        f"see {tmp_path / 'report.md'}"
    ]


def test_reproduce_says_that_nothing_was_run(run, folder, tmp_path, canned, no_pictures):
    arguments = ("--data", folder, "--datasets", "PlantGO", "--no-study", "-q")
    result = run("reproduce", *arguments, "--out", tmp_path / "short", "--minutes", 0.001)
    assert result.exit_code == 1
    assert result.stderr.startswith("groupowl: nothing was run within the 0.001 minutes; see ")
    assert "There were no runs." in (tmp_path / "short" / "report.md").read_text()


def test_reproduce_names_sets_that_cannot_be_read(run, tmp_path, no_pictures, monkeypatch):
    broken = tmp_path / "data"
    broken.mkdir()
    (broken / "plantgo.npz").write_bytes(b"no archive")
    work_with(InlineWorker, monkeypatch)
    result = run("reproduce", "--data", broken, "--out", tmp_path / "out", "--no-study", "-q")
    assert result.exit_code == 1
    assert result.stderr.startswith("groupowl: could not read the data of PlantGO; see ")


def test_an_error_inside_is_no_bad_argument(run, folder, tmp_path, canned, monkeypatch):
    """A ValueError of the program itself is not passed off as a mistake of the user."""

    def wrong(results, out):
        raise ValueError("a bug")

    monkeypatch.setattr(reproduce_module, "write_outputs", wrong)
    arguments = ("--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "-q")
    assert_one_line(run("reproduce", *arguments), "unexpected ValueError: a bug", "This is a bug of groupowl")
    result = run("reproduce", *arguments, "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize("arguments", [["--datasets", "Mnist"], ["--cap", 0], ["--data", "nowhere"]])
def test_bad_arguments_leave_no_folder(run, folder, tmp_path, arguments):
    out = tmp_path / "new"
    result = run("reproduce", "--data", folder, "--out", out, *arguments)
    assert result.exit_code == 1
    assert not out.exists()
    if "--cap" not in arguments:
        assert "--data" in result.stderr


def test_reproduce_names_sets_of_another_size(run, folder, tmp_path, canned, no_pictures):
    result = run("reproduce", "--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "--trials", 1)
    assert "PlantGO: named as the paper's, size differs." in result.stdout.splitlines()


def test_a_folder_in_use_is_refused(run, folder, tmp_path, canned, no_pictures):
    with Lock(tmp_path).held():
        result = run("reproduce", "--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "-q")
    assert_one_line(result, "another call is working on --out", tmp_path)


def test_reproduce_that_cannot_write(run, folder, tmp_path, canned):
    (tmp_path / "runs").write_text("in the way")
    result = run("reproduce", "--data", folder, "--out", tmp_path, "--datasets", "PlantGO", "--no-study", "-q")
    assert_one_line(result, "cannot write to", tmp_path)


def test_interrupted_for_real_and_resumed(tmp_path, run, no_pictures, monkeypatch):
    """Ctrl-C at a random moment of a real process: one line, whole files, and the next call continues."""
    folder = write_folder(tmp_path / "data", ["plantgo"], easy=True)
    arguments = ["--data", folder, "--trials", 1, "--no-study", "-q"]
    command = [sys.executable, "-m", "groupowl", "reproduce", *map(str, arguments), "--out"]
    process = subprocess.Popen([*command, str(tmp_path / "stopped")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stored = tmp_path / "stopped" / "runs"
    deadline = time.monotonic() + 60
    while len(list(stored.glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(random.random() * 0.3)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    if process.returncode != 0:  # else it was done before the signal came
        assert process.returncode == 130
        assert error.decode().splitlines() == [
            "groupowl: stopped; the same command without --restart continues from here."
        ]
        assert output == b""
        assert not (tmp_path / "stopped" / "report.md").exists()
    assert [path.suffix for path in stored.iterdir()] == [".json"] * len(list(stored.iterdir()))
    for path in stored.iterdir():
        json.loads(path.read_text())
    kept = {path.name: path.stat().st_mtime_ns for path in stored.iterdir()}
    work_with(InlineWorker, monkeypatch)
    assert run("reproduce", *arguments, "--out", tmp_path / "stopped").exit_code == 0
    assert all((stored / name).stat().st_mtime_ns == changed for name, changed in kept.items())
    assert run("reproduce", *arguments, "--out", tmp_path / "whole").exit_code == 0
    whole, resumed = (
        reproduce_module.Results.from_dict(json.loads((tmp_path / name / "results.json").read_text())).timeless()
        for name in ("whole", "stopped")
    )
    assert reproduce_module.report_markdown(whole) == reproduce_module.report_markdown(resumed)
    assert_same(whole.to_dict(), resumed.to_dict())


def test_the_command_is_found_by_its_entry_point():
    (point,) = entry_points(group="groupowl.commands", name="reproduce")
    assert point.load() is command.reproduce


def test_help_shows_an_example(run):
    result = run("reproduce", "--help")
    assert result.exit_code == 0
    example = commands.COMMANDS[command.reproduce]
    assert f" Example: {example} " in result.output  # on one line, so that it can be copied
    assert max(len(line) for line in result.output.splitlines()) <= 80
    listed = run("--help")
    assert " reproduce  Repeat the paper's experiments: its data sets" in listed.output
