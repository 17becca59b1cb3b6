"""The command line: the demo does its job, and what goes wrong is one clear line."""

import builtins
import importlib.util
from dataclasses import replace
from importlib.metadata import entry_points

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

import groupowl
from groupowl import cli
from groupowl.experiments import demo as demo_module
from groupowl.experiments.demo import RUNS, demo_figures, demo_problems, run_demo

matplotlib.use("Agg")
from matplotlib.figure import Figure
from matplotlib.image import imread

FIGURES = ("gap_against_time.png", "rows_against_passes.png")


@pytest.fixture
def run(monkeypatch):
    """Run the command line in 80 columns, as in a pipe."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(cli.build_app(), [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def reports():
    return run_demo(demo_problems(n_samples=40, n_features=300, n_digits=300))


@pytest.fixture
def small_demo(reports, monkeypatch):
    """The demo command on small problems that are solved already."""
    monkeypatch.setattr(demo_module, "run_demo", lambda progress: reports)
    monkeypatch.setattr(cli, "_FIGURE_DPI", 72)


@pytest.fixture
def blank_figures(monkeypatch):
    """For tests that are not about pictures."""
    monkeypatch.setattr(demo_module, "demo_figures", lambda reports: {name: Figure() for name in FIGURES})


def assert_is_a_picture(path):
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 300
    assert len(set(map(bytes, pixels.reshape(-1, 3)))) > 50  # colours, and grey levels at their edges


# The demo as a function -------------------------------------------------------------------------------


def test_demo_reports_every_solve(reports):
    for report in reports:
        assert [(row.solver, row.screening) for row in report.rows] == list(RUNS)
        for row, result in zip(report.rows, report.results.values(), strict=True):
            assert result.converged
            assert row.problem == report.name
            assert row.relative_gap <= 1e-6
            assert row.rows_selected <= row.rows_kept == len(result.active)
            assert row.seconds > 0
            assert row.passes > 0
        unscreened = [row for row in report.rows if row.screening == "none"]
        assert all(row.speed_up == 1.0 for row in unscreened)
        for row in report.rows:
            if row.screening != "none":
                assert row.rows_kept < unscreened[0].rows_kept


def test_demo_answers_agree(reports):
    for report in reports:
        assert report.agrees
        assert "all 6 answers agree" in report.agreement


def test_demo_notices_a_disagreement(reports):
    key, result = next(iter(reports[0].results.items()))
    wrong = replace(result, primal=result.primal + 2.0 * result.gap)
    report = replace(reports[0], results=reports[0].results | {key: wrong})
    assert not report.agrees
    assert "DISAGREE" in report.agreement


def test_demo_gaps_are_relative_to_the_model_without_features(reports):
    regression, digits = demo_problems(n_samples=40, n_features=300, n_digits=300)
    frequencies = digits.Y.mean(axis=0)
    entropy = -len(digits.Y) * np.sum(frequencies * np.log(frequencies))
    assert reports[0].null_loss == pytest.approx(0.5 * np.sum(regression.Y**2), rel=1e-12)
    assert reports[1].null_loss == pytest.approx(entropy, rel=1e-12)


def test_demo_prints_nothing_and_tells_its_progress(capsys):
    calls = []
    run_demo(demo_problems(n_samples=20, n_features=50, n_digits=100)[:1], progress=lambda *state: calls.append(state))
    assert [(done, total) for done, total, _ in calls] == [(i, 6) for i in range(6)]
    assert all("Regression, 20 x 50" in description for *_, description in calls)
    assert capsys.readouterr() == ("", "")


def test_demo_figures_have_a_panel_per_problem(reports):
    figures = demo_figures(reports)
    assert tuple(figures) == FIGURES
    for figure in figures.values():
        assert [ax.get_title() for ax in figure.axes] == [report.title for report in reports]
        assert len(figure.legends[0].get_texts()) == len(RUNS)


def visible_ticks(axis):
    low, high = axis.get_view_interval()
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]


def test_demo_figures_overlap_nowhere(reports):
    for figure in demo_figures(reports).values():
        figure.draw_without_rendering()
        texts = [figure._suptitle]
        for ax in figure.axes:
            texts += [ax.title, ax.xaxis.label, ax.yaxis.label]
            texts += [tick.label1 for axis in (ax.xaxis, ax.yaxis) for tick in visible_ticks(axis)]
        boxes = [text.get_window_extent() for text in texts]
        boxes += [ax.get_window_extent() for ax in figure.axes] + [figure.legends[0].get_window_extent()]
        for i, box in enumerate(boxes):
            assert not box.count_overlaps(boxes[i + 1 :])


# The demo as a command --------------------------------------------------------------------------------


def test_demo_command(run, tmp_path):
    """The real thing: table, sentence and figures."""
    out = tmp_path / "new" / "folder"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output
    for name in FIGURES:
        assert_is_a_picture(out / name)
        assert str(out / name) in result.output.splitlines()
    assert sorted(path.name for path in out.iterdir()) == sorted(FIGURES)
    lines = [line.split() for line in result.output.splitlines()]
    headings = ["solver", "screening", "(s)", "passes", "gap", "kept", "selected", "speed-up"]
    assert lines.count(headings) == 2
    for run_of_both_problems in RUNS:
        found = [line for line in lines if tuple(line[:2]) == run_of_both_problems]
        assert [len(line) for line in found] == [8, 8]  # nothing cut off or folded at 80 columns
    assert max(map(len, result.output.splitlines())) <= max(80, len(str(out / max(FIGURES, key=len))))
    assert result.output.count("all 6 answers agree") == 2


def test_demo_command_prints_a_row_per_solve(run, tmp_path, small_demo, blank_figures, reports):
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    for report in reports:
        assert report.title in result.output
        for row in report.rows:
            cells = [row.solver, row.screening, f"{row.seconds:.3f}", f"{row.passes:.0f}", f"{row.relative_gap:.1e}"]
            cells += [str(row.rows_kept), str(row.rows_selected), f"{row.speed_up:.1f}x"]
            assert cells in [line.split() for line in result.output.splitlines()]


def test_quiet_demo_prints_paths_only(run, tmp_path, small_demo):
    result = run("demo", "--out", tmp_path, "--quiet")
    assert result.exit_code == 0
    assert result.output.splitlines() == [str(tmp_path / name) for name in FIGURES]
    for name in FIGURES:
        assert_is_a_picture(tmp_path / name)


def test_demo_writes_to_demo_by_default(run, tmp_path, small_demo, blank_figures, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("demo", "-q").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == sorted(FIGURES)


def test_demo_that_disagrees_fails(run, tmp_path, reports, blank_figures, monkeypatch):
    key, result = next(iter(reports[0].results.items()))
    wrong = replace(result, primal=result.primal + 2.0 * result.gap)
    report = replace(reports[0], results=reports[0].results | {key: wrong})
    monkeypatch.setattr(demo_module, "run_demo", lambda progress: [report])
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 1
    assert "DISAGREE" in result.output


# What goes wrong --------------------------------------------------------------------------------------


def assert_one_line(result, *parts):
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("groupowl: ")
    assert all(str(part) in line for part in parts), line


@pytest.fixture
def no_demo(monkeypatch):
    """A demo that must not start: the folder is tried first."""

    def start(progress):
        raise AssertionError("the demo ran before its folder was tried")

    monkeypatch.setattr(demo_module, "run_demo", start)


def test_out_is_a_file(run, tmp_path, no_demo):
    out = tmp_path / "taken"
    out.write_text("here first")
    assert_one_line(run("demo", "--out", out), "cannot write to", out, "it is a file, not a folder")
    assert out.read_text() == "here first"


def test_out_lies_below_a_file(run, tmp_path, no_demo):
    (tmp_path / "taken").write_text("")
    assert_one_line(run("demo", "--out", tmp_path / "taken" / "below"), "cannot write to")


@pytest.mark.parametrize("call", ["pathlib.Path.mkdir", "tempfile.TemporaryFile"])
def test_out_without_permission(run, tmp_path, no_demo, monkeypatch, call):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(call, refuse)
    assert_one_line(run("demo", "--out", tmp_path), "cannot write to", tmp_path, "Permission denied")


def test_figure_that_cannot_be_written(run, tmp_path, small_demo, blank_figures):
    (tmp_path / FIGURES[1]).mkdir()
    assert_one_line(run("demo", "--out", tmp_path, "-q"), "cannot write to", tmp_path / FIGURES[1])


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib"])
def test_missing_extra_is_one_line(package, monkeypatch, capsys):
    """The module imports without the extra; main() says what to install."""
    real_import = builtins.__import__

    def without_package(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}", name=name)
        return real_import(name, *args, **kwargs)

    spec = importlib.util.spec_from_file_location("groupowl._cli_without_extra", cli.__file__)
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without_package)
        spec.loader.exec_module(module)
        with pytest.raises(SystemExit) as stopped:
            module.main()
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f'groupowl: the command line needs {package}; run: pip install "groupowl[cli]"\n'


# Help -------------------------------------------------------------------------------------------------


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.output == f"groupowl {groupowl.__version__}\n"


def test_installed_command(monkeypatch, capsys):
    (script,) = entry_points(group="console_scripts", name="groupowl")
    monkeypatch.setattr("sys.argv", ["groupowl", "--version"])
    with pytest.raises(SystemExit) as stopped:
        script.load()()
    assert stopped.value.code == 0
    assert groupowl.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("--help",), ("demo", "--help")])
def test_help_shows_an_example(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    assert "Example: groupowl demo --out demo" in result.output


def test_every_command_has_help_and_an_example():
    for function, example in cli._commands.items():
        assert function.__doc__
        assert example.startswith(f"groupowl {function.__name__}")


def test_unknown_command(run):
    result = run("dmeo")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
