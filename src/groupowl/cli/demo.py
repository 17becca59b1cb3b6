"""``groupowl demo``: the main job on built-in data.

Two problems, solved with and without screening, and compared: a correlated multi-task regression and the handwritten
digits of scikit-learn, each at :data:`FRACTION` of the penalty at which nothing is selected. The report is about a
smaller regression with tighter groups.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from .. import datasets, weights
from .._typing import FloatArray
from ..estimators import GroupOWLRegressorCV
from ..plotting import ConvergenceDisplay, label_log_axis
from ..problem import lam_max
from ..solvers import APGD, SolveResult, solve
from ..tables import Table
from .commands import Options, command, option
from .evaluation import evaluate
from .messages import Failure, make_folder, print_paths, printing, writing
from .outcome import Outcome, named_design
from .run_folder import write_file, write_report_file
from .terminal import PlainConsole, Stages, plain_table, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Alpha, as a fraction of the smallest one that selects nothing.
FRACTION = 0.4
#: The paper's algorithm as it stands, and the solver that everyone gets.
SOLVERS: dict[str, Any] = {"apgd": APGD(), "auto": "auto"}
SCREENINGS = ("none", "paper", "safe")
RUNS = tuple(product(SOLVERS, SCREENINGS))

_FIGURE_DPI = 150
_FIGURES = (("gap_against_time.png", "gap", "seconds"), ("rows_against_passes.png", "rows", "passes"))
_REPORT_SIZE = (200, 500)  # samples and features
# What the columns of the tables mean, and why screening hardly changes the times of the default solver.
_EXPLANATIONS = (
    "Passes: products with the data, in units of one product with all of them. Rows kept: features that are not yet "
    "proved to be zero; a feature has a row of coefficients, one for each task or class. Speed-up: against the same "
    "solver without screening.",
    "The default solver, auto, works on few rows anyway: screening gives it proofs rather than speed, and its factors "
    "are near 1, or below.",
)


# The command --------------------------------------------------------------------------------------------


class DemoOptions(Options):
    """Where to write, and how much to say."""

    out: Path = option(Path("demo"), "DIR", "Folder to write to; made if needed.", "--out", "-o", readable=False)
    quiet: bool = option(False, "", "Print nothing but errors.", "--quiet", "-q")
    debug: bool = option(False, "", "Show the traceback of an error.", "--debug")


@command(example="groupowl demo --out demo")
def demo(options: DemoOptions) -> None:
    """Solve a regression and a classification problem on built-in data, with and without safe screening.

    Prints a table of times and proved gaps, draws the gap against time and the rows against passes, and writes the
    report of a cross-validated fit. Takes about fifteen seconds.
    """
    make_folder(options.out)
    with progress_bar(options.quiet) as progress:
        reports = run_demo(progress=progress)
    with Stages(options.quiet).stage("Cross-validating a smaller regression"):
        outcome = fit_demo(("groupowl", "demo", "--out", str(options.out)))
    pictures = {}
    for name, figure in demo_figures(reports).items():  # all of them, before anything is written
        picture = io.BytesIO()
        figure.savefig(picture, dpi=_FIGURE_DPI, format="png")
        pictures[options.out / name] = picture.getvalue()
    for path, content in pictures.items():
        write_file(path, content)
    page = options.out / "report.html"
    with writing(page):
        write_report_file(page, outcome)
    if not options.quiet:
        with printing(f"pictures and report are in {options.out}"):
            _print_reports(reports)
            print_paths([*pictures, page])
    if not all(report.agrees for report in reports):
        raise Failure("answers to the same problem disagree beyond their gaps; please report this as a bug.")


def _print_reports(reports: list[DemoReport]) -> None:
    console = PlainConsole()
    headings = ("time\n(s)", "passes", "relative\ngap", "rows\nkept", "rows\nselected", "speed-up")
    for report in reports:
        title: dict[str, Any] = {"title": report.title, "title_justify": "left", "title_style": "bold"}
        table = plain_table(("solver", "screening"), headings, **title)
        for (solver, screening), result in report.results.items():
            work = (f"{result.seconds:.3f}", f"{result.n_passes:.0f}", f"{result.gap / report.null_loss:.1e}")
            rows = (str(len(result.active)), str(len(result.support)))
            gain = f"{report.results[solver, 'none'].seconds / result.seconds:.1f}x"
            table.add_row(solver, screening, *work, *rows, gain, end_section=screening == "safe")
        console.print(table)
        console.print(f"{report.agreement}\n", highlight=False)
    for words in _EXPLANATIONS:
        console.print(f"{words}\n", highlight=False)


# Two problems, with and without screening ---------------------------------------------------------------


@dataclass(frozen=True)
class DemoProblem:
    """One problem of the demo, in the paper's scaling."""

    title: str
    X: FloatArray
    Y: FloatArray
    settings: dict[str, Any]


@dataclass(frozen=True)
class DemoReport:
    """All solves of one problem.

    Attributes
    ----------
    title : str
        Of the problem.
    results : dict of (solver, screening) to SolveResult
    """

    title: str
    results: dict[tuple[str, str], SolveResult]

    @property
    def null_loss(self) -> float:
        """Loss of the model without features, which solves start from and gaps are relative to."""
        return float(self.results[RUNS[0]].history.primal[0])

    @property
    def agrees(self) -> bool:
        """Whether every objective lies within its gap of the smallest one, as the gaps claim."""
        smallest = min(result.primal for result in self.results.values())
        return all(result.primal - smallest <= result.gap for result in self.results.values())

    @property
    def agreement(self) -> str:
        """What the comparison of objectives showed, in a sentence."""
        objectives = [result.primal for result in self.results.values()]
        spread = (max(objectives) - min(objectives)) / min(objectives)
        if not self.agrees:
            return f"{self.title}: the objectives DISAGREE: they differ by a relative {spread:.1e}, beyond their gaps."
        found = f"their objectives differ by a relative {spread:.1e}, within their duality gaps"
        return f"{self.title}: all {len(objectives)} answers agree: {found}."


def demo_problems(*, n_samples: int = 200, n_features: int = 5000, n_digits: int | None = None) -> list[DemoProblem]:
    """The regression, with ``n_samples`` x ``n_features`` data, and the first ``n_digits`` digits (None: all)."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels[:n_digits] / 16.0, labels[:n_digits]  # gray levels are 0 to 16
    digits = f"Digits, {len(pixels)} x {pixels.shape[1]}, 10 classes"
    return [
        _regression(n_samples, n_features, correlation=0.7),
        DemoProblem(digits, pixels, np.eye(10)[labels], {"loss": "multinomial", "fit_intercept": True}),
    ]


def _regression(n_samples: int, n_features: int, *, correlation: float) -> DemoProblem:
    """Four groups of five features that explain five tasks, among others that explain nothing."""
    groups: dict[str, Any] = {"n_informative": 20, "group_size": 5, "correlation": correlation, "structure": "block"}
    data = datasets.make_correlated_groups(n_samples, n_features, 5, **groups, random_state=0)
    title = f"Regression, {n_samples} x {n_features}, 5 tasks"
    return DemoProblem(title, data.X, data.Y, {})


def run_demo(problems: list[DemoProblem] | None = None, *, progress: Any = None) -> list[DemoReport]:
    """Solve each problem (by default those of :func:`demo_problems`) with every solver and screening rule.

    ``progress(done, total, description)`` is called before each solve.
    """
    problems = demo_problems() if problems is None else problems
    reports = []
    # Times are compared: on a busy machine BLAS threads wait for each other, and cost ten times what they save.
    with threadpool_limits(1):
        for i, problem in enumerate(problems):
            X, Y, sequence = problem.X, problem.Y, weights.oscar(problem.X.shape[1])
            lam = FRACTION * lam_max(X, Y, sequence, **problem.settings) * sequence
            solve(X, Y, lam, callback=lambda _: True, **problem.settings)  # pays for what libraries load and start
            results = {}
            for j, (solver, screening) in enumerate(RUNS):
                if progress is not None:
                    words = f"{problem.title}: solver {solver}, screening {screening}"
                    progress(i * len(RUNS) + j, len(problems) * len(RUNS), words)
                rules: dict[str, Any] = {"solver": SOLVERS[solver], "screening": screening, **problem.settings}
                results[solver, screening] = solve(X, Y, lam, **rules)
            reports.append(DemoReport(problem.title, results))
    return reports


def demo_figures(reports: list[DemoReport]) -> dict[str, Figure]:
    """Figures by file name: a panel per problem and one legend for all; no pyplot, so none of them is left open."""
    from matplotlib.figure import Figure

    figures = {}
    for name, y, x in _FIGURES:
        figure = figures[name] = Figure(figsize=(5.2 * len(reports), 4.6), layout="constrained")
        panels = figure.subplots(1, len(reports), squeeze=False)[0]
        for report, ax in zip(reports, panels, strict=True):
            results = {f"{solver}, screening {rule}": result for (solver, rule), result in report.results.items()}
            ConvergenceDisplay.from_result(results, relative_to=report.null_loss, x=x, y=y, ax=ax)
            figure.suptitle(ax.get_title())
            ax.set_title(report.title)
            ax.set_xscale("log")  # solves differ by more than ten times
            label_log_axis(ax.xaxis)
            ax.get_legend().remove()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(SOLVERS), handlelength=4.0)
    return figures


# The report ---------------------------------------------------------------------------------------------


def fit_demo(typed: tuple[str, ...]) -> Outcome:
    """A cross-validated fit, for a report: few features, some in clusters, at an alpha inside the grid."""
    started = time.perf_counter()
    problem = _regression(*_REPORT_SIZE, correlation=0.9)  # whose groups a fit can find
    names = tuple(f"feature {j + 1}" for j in range(problem.X.shape[1]))
    tasks = tuple(f"task {k + 1}" for k in range(problem.Y.shape[1]))
    table = Table("built-in data", problem.X, names, problem.Y, tasks, "regression")
    folds = KFold(5, shuffle=True, random_state=0)
    model = GroupOWLRegressorCV(weights="bh", alphas=30, eps=0.02, cv=folds, selection="1se", random_state=0)
    X = named_design(table.X, table.feature_names)
    model._keeps_details = True
    model.fit(X, table.target_frame)
    found = evaluate(model, X, table, None)
    return Outcome("cv", typed, table, model, model.path_, found.scores, found.notes, time.perf_counter() - started)
