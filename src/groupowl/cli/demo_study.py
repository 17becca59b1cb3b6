"""The main job on built-in data: two problems, solved with and without screening, and compared.

A correlated multi-task regression and the handwritten digits of scikit-learn, each at :data:`FRACTION` of the
penalty at which nothing is selected. The report is about a smaller regression with tighter groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from .. import datasets, weights
from .._typing import FloatArray
from ..estimators import GroupOWLRegressorCV
from ..plotting import label_log_axis, plot_gap, plot_rows_kept
from ..problem import lam_max
from ..solvers import APGD, SolveResult, solve
from ..tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Strength of the penalty, as a fraction of the smallest one that selects nothing.
FRACTION = 0.4
#: The paper's algorithm as it stands, and the solver that everyone gets.
SOLVERS: dict[str, Any] = {"apgd": APGD(), "auto": "auto"}
SCREENINGS = ("none", "paper", "safe")
RUNS = tuple(product(SOLVERS, SCREENINGS))

#: Called as ``progress(done, total, description)`` before each solve.
ProgressHook = Callable[[int, int, str], None]


@dataclass(frozen=True)
class DemoProblem:
    """One problem of the demo, in the paper's scaling."""

    title: str
    X: FloatArray
    Y: FloatArray
    loss: str
    fit_intercept: bool

    @property
    def lam(self) -> FloatArray:
        """OSCAR weights at :data:`FRACTION` of the strength that selects nothing."""
        sequence = weights.oscar(self.X.shape[1])
        strongest = lam_max(self.X, self.Y, sequence, loss=self.loss, fit_intercept=self.fit_intercept)
        return FRACTION * strongest * sequence

    def solve(self, lam: FloatArray, **settings: Any) -> SolveResult:
        """Solve with weights ``lam`` and the settings of :func:`groupowl.solve`."""
        return solve(self.X, self.Y, lam, loss=self.loss, fit_intercept=self.fit_intercept, **settings)


@dataclass(frozen=True)
class DemoReport:
    """All solves of one problem.

    Attributes
    ----------
    title : str
        Of the problem.
    null_loss : float
        Loss of the model without features, which gaps are relative to.
    results : dict of (solver, screening) to SolveResult
    """

    title: str
    null_loss: float
    results: dict[tuple[str, str], SolveResult]

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
        return (
            f"{self.title}: all {len(objectives)} answers agree: "
            f"their objectives differ by a relative {spread:.1e}, within their duality gaps."
        )


def demo_problems(*, n_samples: int = 200, n_features: int = 5000, n_digits: int | None = None) -> list[DemoProblem]:
    """The regression, with ``n_samples`` x ``n_features`` data, and the first ``n_digits`` digits (None: all)."""
    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels[:n_digits] / 16.0, labels[:n_digits]  # grey levels are 0 to 16
    digits = f"Digits, {len(pixels)} x {pixels.shape[1]}, 10 classes"
    return [
        _regression(n_samples, n_features, correlation=0.7),
        DemoProblem(digits, pixels, np.eye(10)[labels], "multinomial", fit_intercept=True),
    ]


def _regression(n_samples: int, n_features: int, *, correlation: float) -> DemoProblem:
    """Four groups of five features that explain five tasks, among others that explain nothing."""
    data = datasets.make_correlated_groups(
        n_samples,
        n_features,
        5,
        n_informative=20,
        group_size=5,
        correlation=correlation,
        structure="block",
        random_state=0,
    )
    title = f"Regression, {n_samples} x {n_features}, 5 tasks"
    return DemoProblem(title, data.X, data.Y, "squared", fit_intercept=False)


def run_demo(problems: list[DemoProblem] | None = None, *, progress: ProgressHook | None = None) -> list[DemoReport]:
    """Solve each problem with every solver and screening rule.

    Parameters
    ----------
    problems : list of DemoProblem, default=None
        What to solve; :func:`demo_problems` by default.
    progress : callable, default=None
        Called as ``progress(done, total, description)`` before each solve.

    Returns
    -------
    list of DemoReport
        One per problem.
    """
    problems = demo_problems() if problems is None else problems
    reports: list[DemoReport] = []

    def announce(run: int, description: str) -> None:
        if progress is not None:
            progress(len(reports) * len(RUNS) + run, len(problems) * len(RUNS), description)

    # Times are compared: on a busy machine BLAS threads wait for each other, and cost ten times what they save.
    with threadpool_limits(1):
        for problem in problems:
            reports.append(_solve_all(problem, announce))
    return reports


def _solve_all(problem: DemoProblem, announce: Callable[[int, str], None]) -> DemoReport:
    lam = problem.lam
    problem.solve(lam, callback=lambda progress: True)  # the first call pays for what libraries load and start
    results: dict[tuple[str, str], SolveResult] = {}
    for run, (solver, screening) in enumerate(RUNS):
        announce(run, f"{problem.title}: solver {solver}, screening {screening}")
        results[solver, screening] = problem.solve(lam, solver=SOLVERS[solver], screening=screening)
    null_loss = float(results[RUNS[0]].history.primal[0])  # solves start from the model without features
    return DemoReport(problem.title, null_loss, results)


def demo_figures(reports: list[DemoReport]) -> dict[str, Figure]:
    """Figures by file name, each with one panel per problem."""

    def gap(report: DemoReport, ax: Axes) -> None:
        plot_gap(_labelled(report), x="seconds", relative_to=report.null_loss, ax=ax)

    def rows(report: DemoReport, ax: Axes) -> None:
        plot_rows_kept(_labelled(report), x="passes", ax=ax)

    return {
        "gap_against_time.png": _panels(reports, gap),
        "rows_against_passes.png": _panels(reports, rows),
    }


def _labelled(report: DemoReport) -> dict[str, SolveResult]:
    return {f"{solver}, screening {screening}": result for (solver, screening), result in report.results.items()}


def _panels(reports: list[DemoReport], draw: Callable[[DemoReport, Axes], None]) -> Figure:
    """A panel per problem and one legend for all; no pyplot, so no display and no figure left open."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(reports), 4.6), layout="constrained")
    panels = figure.subplots(1, len(reports), squeeze=False)[0]
    for report, ax in zip(reports, panels, strict=True):
        draw(report, ax)
        figure.suptitle(ax.get_title())
        ax.set_title(report.title)
        ax.set_xscale("log")  # solves differ by more than ten times
        label_log_axis(ax.xaxis)
        ax.get_legend().remove()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(SOLVERS), handlelength=4.0)
    return figure


def demo_table(problem: DemoProblem | None = None) -> Table:
    """A regression as a table, like one read from a file; by default one whose groups a fit can find."""
    problem = _regression(200, 500, correlation=0.9) if problem is None else problem
    n_features, n_tasks = problem.X.shape[1], problem.Y.shape[1]
    return Table(
        source="built-in data",
        X=problem.X,
        feature_names=tuple(f"feature {j + 1}" for j in range(n_features)),
        y=problem.Y,
        target_names=tuple(f"task {k + 1}" for k in range(n_tasks)),
        task="regression",
    )


def fit_demo(table: Table) -> GroupOWLRegressorCV:
    """A cross-validated fit, for a report: few features, some in clusters, at an alpha inside the grid."""
    folds = KFold(5, shuffle=True, random_state=0)
    model = GroupOWLRegressorCV(weights="bh", alphas=30, eps=0.02, cv=folds, selection="1se", random_state=0)
    return model.fit(table.frame, table.target_frame)
