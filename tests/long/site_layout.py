"""Open every page of the built site in a real browser, wide and narrow, and look for what does not fit.

    python tests/long/site_layout.py docs/_build/html

Wrong are pages that scroll sideways, pictures that do not load, and text, tables or formulas that stick out of their
column and do not scroll by themselves. Where there is no browser nothing is checked, and the script says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser_support import MISSING, running

WIDTHS = (1280, 400)

FINDINGS = """
const room = document.documentElement.clientWidth, found = [];
const needed = document.documentElement.scrollWidth;
if (needed > room + 1) found.push(`scrolls sideways, ${needed} pixels`);
for (const picture of document.images)
    if (!picture.complete || picture.naturalWidth === 0) found.push(`broken picture ${picture.src}`);
const column = document.querySelector("article") || document.body, edge = column.getBoundingClientRect().right;
function scrolls(element) {
    for (; element && element !== column; element = element.parentElement)
        if (getComputedStyle(element).overflowX !== "visible") return true;
    return false;
}
for (const element of column.querySelectorAll("h1, h2, h3, table, pre, img, svg, math, p, li, dt, dd, code")) {
    const box = element.getBoundingClientRect(), inner = element.scrollWidth - element.clientWidth;
    const beyond = Math.round(box.right - edge) + (element.matches("h1, h2, h3, dt") ? inner : 0);
    if (box.width > 0 && beyond > 2 && !scrolls(element))
        found.push(`${element.tagName} sticks out by ${beyond} pixels: ${element.textContent.trim().slice(0, 60)}`);
}
if (room > 960)  // else menus are drawers
    for (const link of document.querySelectorAll(".bd-sidebar-primary a, .bd-sidebar-secondary a")) {
        const text = document.createRange();
        text.selectNodeContents(link);
        if (text.getBoundingClientRect().right > room) found.push(`menu entry cut off: ${link.textContent.trim()}`);
    }
return found;
"""


def findings(driver, page: Path, width: int) -> list[str]:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(page.as_uri())
    return driver.execute_script(FINDINGS)


def main(site: Path) -> int:
    pages = [path for path in sorted(site.resolve().rglob("*.html")) if "_static" not in path.parts]
    if not pages:
        sys.exit(f"{site} has no page: build the site with `make docs` first.")
    if MISSING:
        print(f"layout not checked, not installed: {', '.join(MISSING)}")
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory() as profile, running(profile) as driver:
        for width in WIDTHS:
            for page in pages:
                for line in findings(driver, page, width):
                    print(f"{page.relative_to(site.resolve())} at {width} pixels: {line}")
                    wrong += 1
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {wrong} findings")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
