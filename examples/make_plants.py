"""Make the small example files of the command line: plants.csv, plants_new.csv and plants_kinds.csv.

    python examples/make_plants.py

``plants.csv`` has 120 plants in 6 houses and 60 measurements (columns light_1 ... soil_12, neighbors strongly
correlated), and two responses, growth and yield, that depend on three groups of four measurements. ``plants_new.csv``
has 20 more plants without responses. ``plants_kinds.csv`` names a kind for each plant by its id: two plants of the
first file are not in it, and three are in no other file. All of it is drawn from a fixed seed.

    groupowl cv examples/plants.csv --targets growth,yield --id-column plant --groups house --out model
    groupowl predict model examples/plants_new.csv --out predictions.csv
    groupowl fit examples/plants.csv --targets-from examples/plants_kinds.csv --id-column plant --drop 2,3,4
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import groupowl as go

N_PLANTS, N_NEW, N_HOUSES = 120, 20, 6
MEASURED = ("light", "water", "heat", "air", "soil")
KINDS = ("bush", "herb", "vine")

Rows = list[list[object]]


def make_tables(scale: float = 1.0) -> dict[str, Rows]:
    """The rows of each file by its name, header first; ``scale`` makes fewer plants."""
    n_known, n_new = max(int(scale * N_PLANTS), 12), max(int(scale * N_NEW), 2)
    data = go.datasets.make_correlated_groups(
        n_known + n_new, 60, 2, n_informative=12, group_size=4, correlation=0.8, structure="block", random_state=8
    )
    names = [f"{group}_{j + 1}" for group in MEASURED for j in range(12)]
    plants = [f"P{i + 1:03d}" for i in range(n_known + n_new)]
    cells = [[f"{value:.4f}" for value in row] for row in data.X]
    responses = [[f"{value:.3f}" for value in row] for row in data.Y + np.array([20.0, 5.0])]
    known = [[plants[i], f"H{i % N_HOUSES + 1}", *responses[i], *cells[i]] for i in range(n_known)]
    new = [[plants[i], *cells[i]] for i in range(n_known, n_known + n_new)]
    level = data.Y[:, 0] + 0.3 * np.random.default_rng(8).standard_normal(len(data.Y))
    ranks = np.digitize(level, np.quantile(level, [1 / 3, 2 / 3]))
    kinds = [[plants[i], KINDS[ranks[i]]] for i in range(2, n_known)]
    kinds += [[f"Q{k + 1:03d}", KINDS[k]] for k in range(3)]
    return {
        "plants.csv": [["plant", "house", "growth", "yield", *names], *known],
        "plants_new.csv": [["plant", *names], *new],
        "plants_kinds.csv": [["plant", "kind"], *kinds],
    }


def main(scale: float = 1.0, folder: Path | None = None) -> None:
    """Print what the files hold, and write them if a folder is given."""
    for name, rows in make_tables(scale).items():
        print(f"{name}: {len(rows) - 1} plants, {len(rows[0])} columns")
        if folder is not None:
            with (folder / name).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main(folder=Path(__file__).parent)
