"""What the command ``groupowl`` starts: it loads nothing before it can say that it was stopped."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of the package; modules take a second to load, in which Ctrl-C ends it quietly."""
    try:
        from groupowl.cli import main as run

        run()
    except KeyboardInterrupt:
        print("groupowl: stopped; nothing was written.", file=sys.stderr)
        raise SystemExit(130) from None
