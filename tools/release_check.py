"""Refuse a tag that is no release: python tools/release_check.py v1.2.3."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def complaints(tag: str, root: Path = ROOT) -> list[str]:
    """What keeps the tag from being a release of this source tree."""
    source = (root / "src" / "groupowl" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', source, flags=re.MULTILINE)
    version = found[1] if found else "unknown"
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, but __version__ in src/groupowl/__init__.py is {version}")
    if ".dev" in version:
        wrong.append(f"{version} is a version of development: set __version__ to that of the release")
    if not re.search(rf"^## {re.escape(version)} \(", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE):
        wrong.append(f"CHANGELOG.md has no section of {version}: run make release-notes")
    fragments = sorted(path.name for path in (root / "news").glob("*.*.md"))
    if fragments:
        wrong.append(f"news/ still has {len(fragments)} fragments, the first is {fragments[0]}: run make release-notes")
    return wrong


def main() -> int:
    """Print what is wrong."""
    if len(sys.argv) != 2:
        sys.exit("name the tag: python tools/release_check.py v1.2.3")
    wrong = complaints(sys.argv[1])
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
