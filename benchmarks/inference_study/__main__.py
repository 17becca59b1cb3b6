"""Run the study and write its tables.

    python -m benchmarks.inference_study [--quick] [--hours 6] [--jobs 2] [--work FOLDER] [--out FOLDER] [--render]

Runs are kept in the folder ``--work`` one by one, and packed into one file of ``--out`` at the end: a study that was
stopped, by its hours, by hand or by a signal, goes on when it is started again, also on a later commit or on another
machine that has this file. ``--render`` packs what is there and writes tables, without new runs. Runs of a procedure
that has changed since do not belong there: remove the file where one has.

Procedures that this version does not have, and packages that are not installed, are left out. What is above its promise
by more than two standard errors is run again with fresh seeds, 1,000 in the full study, and missed if it is then above
by more than three.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from ..versions import versions
from .report import PACKED, render, write
from .run import FULL, TEN_MINUTES, Log, Plan, first_items, fresh_items, run_all

_PACKAGES = ("numpy", "scipy", "scikit-learn", "hidimstat", "knockpy", "ipss")
_RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulation study of selection with error control.")
    parser.add_argument("--quick", action="store_true", help="a few cells and runs, within ten minutes")
    parser.add_argument("--hours", type=float, default=None, help="stop after so many hours (6, or 0.15 with --quick)")
    parser.add_argument("--jobs", type=int, default=2, help="draws that are worked on side by side")
    parser.add_argument("--work", type=Path, default=None, help="folder of the runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the tables")
    parser.add_argument("--render", action="store_true", help="tables of stored runs, without new ones")
    given = parser.parse_args()
    plan = TEN_MINUTES if given.quick else FULL
    hours = given.hours if given.hours is not None else (0.15 if given.quick else 6.0)
    work = given.work or Path("results") / ("inference_quick" if given.quick else "inference")
    log = Log(work, versions(_PACKAGES), None if given.quick else given.out / PACKED)
    if not given.render:
        _run(plan, log, given.jobs, time.time() + 3600.0 * hours)
    if not log.outcomes:
        render(given.out)
        return
    is_complete = not list(first_items(plan, log)) and not list(fresh_items(plan, log))
    if not given.quick:
        log.pack(given.out / PACKED)
    write(given.out, plan, log, is_quick=given.quick, is_complete=is_complete)
    print(given.out, "complete" if is_complete else "not complete: start again to go on", flush=True)


def _run(plan: Plan, log: Log, n_jobs: int, deadline: float) -> None:
    """First runs, then those with fresh seeds; a signal to stop ends them like the deadline."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # of processes to come; runs are side by side, and times are those of one core
    threadpool_limits(1)  # of this one
    try:
        for items_of in (first_items, fresh_items):
            items = list(items_of(plan, log))
            print(f"{len(items)} draws to do", flush=True)
            run_all(items, log, n_jobs, deadline)
    except KeyboardInterrupt:
        print("stopped", flush=True)


if __name__ == "__main__":
    main()
