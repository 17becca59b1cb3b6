"""Draws the pictures of the README, which are also on the site: python docs/readme_picture.py."""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Draw them into files."""
    import matplotlib

    matplotlib.use("Agg")
    sys.path.insert(0, str(HERE / "guide"))
    import matplotlib.pyplot as plt
    import pictures

    for draw, name in ((pictures.lasso_and_group_owl, "picture.png"), (pictures.one_or_all, "groups.png")):
        draw()
        plt.savefig(HERE / name, dpi=110)


if __name__ == "__main__":
    main()
