"""Run the study and write its tables.

    python -m benchmarks.inference_study [--quick] [--hours 6] [--jobs 2] [--work FOLDER] [--out FOLDER] [--render]

Runs are kept in the folder ``--work`` one by one: a study that was stopped, by its hours or by hand, goes on when it is
started again, also on a later commit. Procedures that this version does not have, and packages that are not installed,
are left out. What is above its promise by more than two standard errors is run again with fresh seeds, 1,000 in the
full study, and missed if it is then above by more than three.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ..versions import versions
from .report import render, write
from .run import FULL, TEN_MINUTES, Log, first_items, fresh_items, run_all

_PACKAGES = ("numpy", "scipy", "scikit-learn", "hidimstat", "knockpy", "ipss")
_RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulation study of selection with error control.")
    parser.add_argument("--quick", action="store_true", help="a few cells and runs, within ten minutes")
    parser.add_argument("--hours", type=float, default=None, help="stop after so many hours (6, or 0.15 with --quick)")
    parser.add_argument("--jobs", type=int, default=2, help="draws that are worked on side by side")
    parser.add_argument("--work", type=Path, default=None, help="folder of the runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the tables")
    parser.add_argument("--render", action="store_true", help="tables of stored results, without runs")
    given = parser.parse_args()
    if given.render:
        render(given.out)
        return
    plan = TEN_MINUTES if given.quick else FULL
    hours = given.hours if given.hours is not None else (0.15 if given.quick else 6.0)
    work = given.work or Path("results") / ("inference_quick" if given.quick else "inference")
    deadline = time.time() + 3600.0 * hours
    log = Log(work, versions(_PACKAGES))
    is_complete = True
    for items_of in (first_items, fresh_items):
        items = list(items_of(plan, log))
        print(f"{len(items)} draws to do", flush=True)
        is_complete = run_all(items, log, given.jobs, deadline) and is_complete
    write(given.out, plan, log, log.versions, is_quick=given.quick, is_complete=is_complete)
    print(given.out, "complete" if is_complete else "not complete: start again to go on", flush=True)


if __name__ == "__main__":
    main()
