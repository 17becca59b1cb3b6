"""The runs as a table for spreadsheets."""

from __future__ import annotations

from .claims import judged_gap
from .results import Results


def results_csv(results: Results) -> str:
    """One line per run, with a heading."""
    headings = (
        "data_set,stands_in_for,whose,loss,setting,algorithm,family,screening,trial,step,status,cpu_seconds,wall_seconds,"
        "iterations,passes,relative_gap,judged_relative_gap,objective,rows_selected,rows_alive,passes_before_first_row"
    )
    lines = [headings]
    for name, data in results.datasets.items():
        step = (results.pilot(name) or {}).get("step")
        for setting in results.settings(name):
            bounds = results.bounds(name, setting)
            for algorithm in results.algorithms(name):
                for trial, run in results.numbered_trials(name, setting, algorithm.name).items():
                    cells = [
                        name,
                        data["stands_in_for"],
                        f'"{results.whose(name)}"',  # may hold a comma
                        data["loss"],
                        f"p_{setting}",
                        algorithm.name,
                        algorithm.family,
                    ]
                    cells += [
                        algorithm.screening,
                        trial,
                        step if algorithm.family == "spgd-paper" else None,
                        run.status,
                    ]
                    cells += [run.cpu, run.wall, run.iterations, run.passes, run.gap, judged_gap(run, bounds)]
                    cells += [run.verdict.objective if run.verdict else None, run.selected, run.alive]
                    cells += [run.first_removal["passes"] if run.first_removal else None]
                    lines.append(",".join("" if cell is None else str(cell) for cell in cells))
    return "\n".join(lines) + "\n"
