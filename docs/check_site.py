"""Checks of the built site, as ``make docs`` runs them: python docs/check_site.py SITE.

Internal links and anchors lead somewhere, pictures are there and not empty, every public name is on a page of the
reference, and nothing is loaded from elsewhere: the site can be read without a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

#: What a browser loads by itself, as opposed to links that a reader may follow.
LOADING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("image", "href")}


class Page(HTMLParser):
    """Anchors, links and loaded files of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what matters of an element."""
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)
            elif (tag, name) in LOADING:
                self.loaded.append(value)


def is_foreign(address: str) -> bool:
    """Whether an address is on another host."""
    return re.match(r"(https?:)?//", address) is not None


def check(site: Path) -> list[str]:
    """All that is wrong with a site, one line each."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # templates of the theme
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in paths}
    found = [] if pages else [f"{site} has no page"]
    for path, page in pages.items():
        found += [f"{path.relative_to(site.resolve())}: {line}" for line in wrong_in(path, page, pages)]
    for style in site.rglob("*.css"):
        for match in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^)\"']*)", style.read_text(encoding="utf-8")):
            found.append(f"{style.name}: loads {match} from elsewhere")
    return found


def wrong_in(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    """What is wrong with one page."""
    for address in page.loaded:
        if is_foreign(address):
            yield f"loads {address} from elsewhere"
        elif not address.startswith("data:"):
            yield from missing_file(path, address, "picture, style or script")
    for address in page.links:
        if is_foreign(address) or re.match(r"[a-z]+:", address):
            continue
        target, anchor = urldefrag(address)
        yield from missing_file(path, target, "link") if target else ()
        other = pages.get((path.parent / unquote(target)).resolve() if target else path)
        if other is not None and anchor and unquote(anchor) not in other.anchors:
            yield f"link {address!r} leads to no anchor"


def missing_file(path: Path, address: str, kind: str) -> Iterator[str]:
    """A line if a file that a page needs is missing or empty."""
    file = path.parent / unquote(address.partition("?")[0].partition("#")[0])
    if not file.exists() or (file.is_file() and file.stat().st_size == 0):
        yield f"{kind} {address!r} leads nowhere"


def documented(docs: Path) -> list[str]:
    """Full names in the API reference: rows of tables below their module, and what autodoc is asked for."""
    found = []
    for page in sorted((docs / "api").glob("*.rst")):
        module = "groupowl"
        is_table = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            if line and not line.startswith(" "):
                is_table = line.startswith(".. autosummary::")
            pattern = r"   (\w+)" if is_table else r"\.\. (?:autofunction|autoclass|data):: (\w+)"
            if match := re.fullmatch(pattern, line):
                found.append(f"{module}.{match[1]}")
    return found


def missing_names(site: Path, names: list[str]) -> list[str]:
    """Names of the reference that no page of the site explains."""
    anchors: set[str] = set()
    for path in (site / "api").rglob("*.html"):
        anchors |= Page(path.read_text(encoding="utf-8")).anchors
    return [f"{name} has no place in the reference" for name in names if name not in anchors]


def main() -> int:
    """Print what is wrong."""
    site = Path(sys.argv[1])
    found = check(site) + missing_names(site, documented(Path(__file__).parent))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
