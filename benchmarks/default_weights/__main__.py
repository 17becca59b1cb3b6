"""Run the study of default weights, and write its page.

    python -m benchmarks.default_weights [--data DIR] [--splits 10] [--minutes 25] [--work DIR] [--out DIR] [--render]

Real data come with scikit-learn, with ISLP and statsmodels (``pip install --no-deps ISLP statsmodels``: only their
files are read) and from the folder ``--data``; what is not there is left out, and the page says so. Runs are kept one
by one in the folder ``--work``: a study that was stopped, by its minutes of processor time or by hand, goes on when it
is started again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ..versions import versions
from .data import MOST_SPLITS, known_sources, real_sources
from .run import Log, load_all, run_all

_PACKAGES = ("numpy", "scipy", "scikit-learn", "ISLP", "statsmodels")
_RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description="Which weight sequence should be the default.")
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="folder with .npz files of real data")
    parser.add_argument("--splits", type=int, default=10, help=f"splits of each data set, 2 to {MOST_SPLITS}")
    parser.add_argument("--minutes", type=float, default=25.0, help="stop after so much processor time")
    parser.add_argument("--work", type=Path, default=Path("results") / "default_weights", help="folder of the runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the page")
    parser.add_argument("--render", action="store_true", help="the page of stored results, without runs")
    given = parser.parse_args()
    from .report import render, write

    if given.render:
        render(given.out)
        return
    if not 2 <= given.splits <= MOST_SPLITS:
        parser.error(f"--splits must be from 2 to {MOST_SPLITS}, got {given.splits}")
    data_sets, absent = load_all([*real_sources(given.data), *known_sources()])
    print("\n".join([*absent, f"{len(data_sets)} data sets"]), flush=True)
    log = Log(given.work)
    deadline = time.process_time() + 60.0 * given.minutes
    is_complete = run_all(data_sets, given.splits, log, deadline)
    write(given.out, data_sets, log, absent=absent, versions=versions(_PACKAGES))
    print(given.out, "complete" if is_complete else "not complete: start again to go on", flush=True)


if __name__ == "__main__":
    main()
