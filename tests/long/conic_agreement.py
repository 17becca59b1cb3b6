"""Each feature of real tables with the others switched on at random, against a conic solver: 200 problems of each."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from combined_support import FEATURES, disagreement, draw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200, help="of each feature")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # solves that fall short are reported
    n_found = 0
    for feature in FEATURES:
        began, unjudged = time.perf_counter(), 0
        for seed in range(options.first, options.first + options.problems):
            case = draw(seed, feature)
            found, is_judged = disagreement(case, case.solve())
            unjudged += not is_judged and not found
            if found:
                n_found += 1
                print(f"{feature}, seed {seed}: {found}", flush=True)
        took = time.perf_counter() - began
        print(f"{feature}: {options.problems} problems, {unjudged} without an accurate judge, {took:.0f} s", flush=True)
    print(f"{n_found} findings")
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
