"""Draw ``layers.svg`` from the table of layers in ``tests/test_imports.py``.

python docs/contributing/draw_layers.py
"""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "tests" / "test_imports.py"
PICTURE = HERE / "layers.svg"

# Groups from the top down: what they are called, their colour, and the module that their lowest layer begins with.
GROUPS = [
    ("programs", "#f3d9e5", "tables"),
    ("the package", "#e3d9f3", "groupowl"),
    ("for users", "#d9e2f3", "progress"),
    ("solving", "#d5ecec", "screening"),
    ("the problem", "#dcefd8", "designs"),
    ("mathematics", "#f6efcf", "weights"),
    ("foundation", "#e8e8e8", "_typing"),
]
WIDTH, ROW, LEFT, TOP, GAP = 760, 30, 130, 40, 8


def read_layers(table: Path = TABLE) -> list[list[str]]:
    """Modules of each layer, sorted, from the bottom up."""
    for node in ast.parse(table.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return [sorted(layer) for layer in ast.literal_eval(node.value)]
    raise ValueError(f"{table} has no table named LAYERS.")


def draw(layers: list[list[str]]) -> str:
    """The picture: one row of boxes per layer, the lowest at the bottom."""
    height = TOP + ROW * len(layers) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="Layers of the package; imports point down">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" fill="#444444">imports point down, never up and never sideways</text>',
        f'<path d="M {WIDTH - 24} {TOP} V {height - 22} m -5 -8 l 5 8 l 5 -8" fill="none" stroke="#888888"/>',
    ]
    groups = list(reversed(GROUPS))
    current = -1
    for level, modules in enumerate(layers):
        y = TOP + ROW * (len(layers) - 1 - level)
        if current + 1 < len(groups) and groups[current + 1][2] in modules:
            current += 1
            parts.append(f'<text class="group" x="12" y="{y + 19}" fill="#444444">{groups[current][0]}</text>')
        parts.extend(_boxes(modules, y, groups[current][1]))
    return "\n".join([*parts, "</svg>", ""])


def _boxes(modules: list[str], y: int, colour: str) -> list[str]:
    width = (WIDTH - LEFT - 48 - GAP * (len(modules) - 1)) / len(modules)
    parts = []
    for k, module in enumerate(modules):
        x = LEFT + k * (width + GAP)
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 5}" rx="4" fill="{colour}" '
            'stroke="#999999" stroke-width="0.6"/>'
        )
        parts.append(
            f'<text class="module" x="{x + width / 2:.1f}" y="{y + 19}" text-anchor="middle" fill="#111111">'
            f"{module}</text>"
        )
    return parts


if __name__ == "__main__":
    PICTURE.write_text(draw(read_layers()), encoding="utf-8")
