"""Draw ``layers.svg`` from the table of layers in ``tests/test_imports.py``.

python docs/contributing/draw_layers.py
"""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "tests" / "test_imports.py"
PICTURE = HERE / "layers.svg"

COLORS = ("#e8e8e8", "#f6efcf", "#dcefd8", "#d5ecec", "#d9e2f3", "#e3d9f3", "#f3d9e5")
WIDTH, ROW, LEFT, TOP, GAP = 760, 34, 120, 40, 6


def read_layers(table: Path = TABLE) -> dict[str, list[str]]:
    """Modules of each layer by the name of the layer, from the bottom up."""
    for node in ast.parse(table.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            layers: dict[str, list[str]] = ast.literal_eval(node.value)
            return layers
    raise ValueError(f"{table} has no table named LAYERS.")


def draw(layers: dict[str, list[str]]) -> str:
    """The picture: one row of boxes per layer, the lowest at the bottom."""
    height = TOP + ROW * len(layers) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="Layers of the package; imports point down">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" fill="#444444">imports point down, and within a layer to the left</text>',
        f'<path d="M {WIDTH - 24} {TOP} V {height - 22} m -5 -8 l 5 8 l 5 -8" fill="none" stroke="#888888"/>',
    ]
    for level, (name, modules) in enumerate(layers.items()):
        y = TOP + ROW * (len(layers) - 1 - level)
        parts.append(f'<text class="layer" x="12" y="{y + 20}" fill="#444444">{name}</text>')
        parts.extend(_boxes(modules, y, COLORS[level * len(COLORS) // len(layers)]))
    return "\n".join([*parts, "</svg>", ""])


def _boxes(modules: list[str], y: int, color: str) -> list[str]:
    width = (WIDTH - LEFT - 48 - GAP * (len(modules) - 1)) / len(modules)
    parts = []
    for k, module in enumerate(modules):
        x = LEFT + k * (width + GAP)
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 6}" rx="4" fill="{color}" '
            'stroke="#999999" stroke-width="0.6"/>'
        )
        parts.append(
            f'<text class="module" x="{x + width / 2:.1f}" y="{y + 20}" text-anchor="middle" fill="#111111">'
            f"{module}</text>"
        )
    return parts


if __name__ == "__main__":
    PICTURE.write_text(draw(read_layers()), encoding="utf-8")
