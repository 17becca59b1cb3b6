"""Draws the picture of the README, which is one of the guide's: python docs/readme_picture.py."""

import sys
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "guide"))
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pictures  # noqa: E402

if __name__ == "__main__":
    pictures.one_or_all()
    plt.savefig(HERE / "picture.png", dpi=110)
