"""Draws the picture of the README, which is one of the guide's: python docs/readme_picture.py."""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Draw it into a file."""
    import matplotlib

    matplotlib.use("Agg")
    sys.path.insert(0, str(HERE / "guide"))
    import matplotlib.pyplot as plt
    import pictures

    pictures.one_or_all()
    plt.savefig(HERE / "picture.png", dpi=110)


if __name__ == "__main__":
    main()
