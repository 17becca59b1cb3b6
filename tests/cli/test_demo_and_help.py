"""The command demo, what all commands say of themselves, and where the command reproduce comes from."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import entry_points

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

import groupowl
from groupowl.cli import commands
from groupowl.cli import demo as demo_module
from groupowl.cli.commands import build_app
from groupowl.cli.demo import RUNS, demo_figures, demo_problems, run_demo

matplotlib.use("Agg")
from matplotlib.figure import Figure
from matplotlib.image import imread

FIGURES = ("gap_against_time.png", "rows_against_passes.png")
FILES = (*FIGURES, "report.html")


@pytest.fixture
def run(monkeypatch):
    """Run the command line in 80 columns, as in a pipe."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def reports():
    return run_demo(demo_problems(n_samples=40, n_features=300, n_digits=300))


@pytest.fixture
def small_demo(reports, monkeypatch):
    """The demo command on small problems that are solved already."""
    monkeypatch.setattr(demo_module, "run_demo", lambda progress: reports)
    monkeypatch.setattr(demo_module, "_REPORT_SIZE", (40, 60))
    monkeypatch.setattr(demo_module, "_FIGURE_DPI", 72)


@pytest.fixture
def blank_figures(monkeypatch):
    """For tests that are not about pictures."""
    monkeypatch.setattr(demo_module, "demo_figures", lambda reports: {name: Figure() for name in FIGURES})


def assert_is_a_picture(path):
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 300
    assert len(set(map(bytes, pixels.reshape(-1, 3)))) > 50  # colors, and gray levels at their edges


# The demo as a function -------------------------------------------------------------------------------


def test_demo_reports_every_solve(reports):
    for report in reports:
        assert list(report.results) == list(RUNS)
        for (solver, screening), result in report.results.items():
            assert result.converged
            assert result.gap <= 1e-6 * report.null_loss
            if screening != "none":
                assert len(result.active) < len(report.results[solver, "none"].active)


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


def test_the_report_of_the_demo_shows_groups_and_an_alpha_inside_the_grid():
    """What a new user sees first: clusters of several features, few features, and a choice that was one."""
    model = demo_module.fit_demo(("groupowl", "demo")).estimator
    sizes = np.bincount(model.clusters_)[1:]
    assert np.count_nonzero(sizes > 1) >= 3
    assert sizes.sum() <= 30
    assert 0 < model.best_index_ < len(model.alphas_) - 1


# The demo as a command --------------------------------------------------------------------------------


def test_demo_module(run, tmp_path):
    """The real thing: table, sentence and figures."""
    out = tmp_path / "new" / "folder"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output
    for name in FIGURES:
        assert_is_a_picture(out / name)
        assert str(out / name) in result.output.splitlines()
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Group OWL regression: built-in data" in page
    assert "<dt>Seed</dt><dd>0</dd>" in page
    assert "The model, in Python (seed 0);" in page
    lines = [line.split() for line in result.output.splitlines()]
    headings = ["solver", "screening", "(s)", "passes", "gap", "kept", "selected", "speed-up"]
    assert lines.count(headings) == 2
    for run_of_both_problems in RUNS:
        found = [line for line in lines if tuple(line[:2]) == run_of_both_problems]
        assert [len(line) for line in found] == [8, 8]  # nothing cut off or folded at 80 columns
    assert max(map(len, result.output.splitlines())) <= max(80, len(str(out / max(FIGURES, key=len))))
    assert result.output.count("all 6 answers agree") == 2


def test_demo_module_prints_a_row_per_solve(run, tmp_path, small_demo, blank_figures, reports):
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    for report in reports:
        assert report.title in result.output
        for (solver, screening), solved in report.results.items():
            cells = [solver, screening, f"{solved.seconds:.3f}", f"{solved.n_passes:.0f}"]
            cells += [f"{solved.gap / report.null_loss:.1e}", str(len(solved.active)), str(len(solved.support))]
            speed_up = report.results[solver, "none"].seconds / solved.seconds
            assert [*cells, f"{speed_up:.1f}x"] in [line.split() for line in result.output.splitlines()]
    words = " ".join(result.output.split())
    assert "Passes: products with the data" in words
    assert "Rows kept: features that are not yet proved to be zero" in words
    assert "auto, works on few rows anyway" in words


def test_quiet_demo_prints_nothing(run, tmp_path, small_demo):
    result = run("demo", "--out", tmp_path, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FIGURES:
        assert_is_a_picture(tmp_path / name)


@pytest.mark.parametrize("call", ["groupowl.cli.demo.fit_demo", "matplotlib.figure.Figure.savefig"])
def test_an_interrupted_demo_writes_nothing(run, tmp_path, small_demo, monkeypatch, call):
    """As its message says: not even some of the pictures."""

    def interrupt(*args, **kwargs):
        if args:  # a picture that is half drawn
            args[1].write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(call, lambda *args, **kwargs: interrupt(*(args if "savefig" in call else ())))
    result = run("demo", "--out", tmp_path, "-q")
    assert result.exit_code == 130
    assert result.output == "groupowl: stopped; nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_is_written_whole_or_not_at_all(run, tmp_path, small_demo, blank_figures, monkeypatch, name):
    original = os.replace

    def replace_all_but(source, target):
        if str(target).endswith(name):
            raise OSError(28, "No space left on device")
        original(source, target)

    monkeypatch.setattr("groupowl._files.os.replace", replace_all_but)
    assert_one_line(run("demo", "--out", tmp_path, "-q"), "cannot write to", tmp_path / name, "No space left")
    assert sorted(path.name for path in tmp_path.iterdir()) == list(FIGURES[: FIGURES.index(name)])


def test_demo_writes_to_demo_by_default(run, tmp_path, small_demo, blank_figures, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("demo", "-q").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == sorted(FILES)


def test_demo_that_disagrees_fails(run, tmp_path, reports, small_demo, blank_figures, monkeypatch):
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


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib", "pandas", "pyarrow", "jinja2"])
def test_missing_extra_is_one_line(package, monkeypatch, capsys):
    """The module imports without the extra; main() says what to install."""
    code = "import sys; sys.meta_path.insert(0, Missing()); from groupowl import cli; cli.main()"
    finder = (
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {package!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
    )
    result = subprocess.run([sys.executable, "-c", f"{finder}\n{code}"], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == f'groupowl: the command line needs {package}; run: pip install "groupowl[cli]"\n'


# Help -------------------------------------------------------------------------------------------------


def test_installed_command(monkeypatch, capsys):
    (script,) = entry_points(group="console_scripts", name="groupowl")
    monkeypatch.setattr("sys.argv", ["groupowl", "--version"])
    with pytest.raises(SystemExit) as stopped:
        script.load()()
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"groupowl {groupowl.__version__}\n"


def test_the_package_is_a_command_too():
    command = [sys.executable, "-m", "groupowl", "--version"]
    assert subprocess.check_output(command, text=True) == f"groupowl {groupowl.__version__}\n"


@pytest.mark.parametrize("name", ["fit", "path", "cv", "predict", "verify", "select", "demo"])
def test_help_shows_an_example(run, name):
    """Each example is of the command itself."""
    result = run(name, "--help")
    assert result.exit_code == 0
    (example,) = [text for function, text in commands.COMMANDS.items() if function.__name__ == name]
    assert example.startswith(f"groupowl {name}")
    assert f" Example: {example} " in result.output  # on one line, so that it can be copied
    assert max(len(line) for line in result.output.splitlines()) <= 80


def test_help_names_no_values_of_flags_and_breaks_no_word(run):
    lines = run("cv", "--help").output.splitlines()
    (flag,) = [line for line in lines if "--standardize" in line and "Penalize" in line]
    assert "bool" not in flag
    words = " ".join(line.strip("│ ") for line in lines)
    assert "classification" in words
    assert "large for matrices on disk" in " ".join(words.split())
    assert "|classif" not in words


def test_help_says_how_columns_are_given_and_what_1se_is(run):
    words = " ".join(run("cv", "--help").output.replace("│", " ").split())
    assert "likewise" not in words
    assert words.count("given like those of --targets") == 5
    assert "1se: for each weight sequence the largest alpha within one standard error" in words
    assert "Of several sequences, the one with the best score is taken." in words


def test_help_lists_the_commands(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "Example: groupowl cv train.csv --targets y1,y2 --out model" in result.output
    for function in commands.COMMANDS:
        assert function.__doc__
        assert f" {function.__name__} " in result.output


# The paper's experiments, which are a project of their own ----------------------------------------------


class HalfInstalled:
    def load(self):
        raise ModuleNotFoundError("No module named 'groupowl_harness'", name="groupowl_harness")


@pytest.mark.parametrize("points", [(), (HalfInstalled(),)])
def test_reproduce_that_is_not_installed_says_how_to_install_it(run, monkeypatch, points):
    monkeypatch.setattr("groupowl.cli.commands.entry_points", lambda group, name: points)
    for arguments in (["--data", "folder", "--out", "results", "-q"], ["--quick"], []):
        assert_one_line(run("reproduce", *arguments), "is not installed", "run: pip install ./harness ./paper")
    assert " reproduce  Repeat the paper's experiments" in run("--help").output
    shown = run("reproduce", "--help")
    assert shown.exit_code == 0
    assert "pip install ./harness ./paper" in " ".join(shown.output.split())


def test_reproduce_is_found_by_its_entry_point(run, monkeypatch):
    def reproduce(data: str = "") -> None:
        """Repeat everything."""
        print(f"repeated with {data}")

    asked = []

    class Installed:
        def load(self):
            return reproduce

    monkeypatch.setitem(commands.COMMANDS, reproduce, "groupowl reproduce --data x")
    monkeypatch.setattr(
        "groupowl.cli.commands.entry_points", lambda group, name: asked.append((group, name)) or (Installed(),)
    )
    assert run("reproduce", "--data", "these").output == "repeated with these\n"
    assert set(asked) == {("groupowl.commands", "reproduce")}


def test_unknown_command(run):
    result = run("dmeo")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
