"""Draw ``call.svg``: the way of one fit through the package, from data to result.

python docs/contributing/draw_call.py

``tests/test_contributing.py`` follows a real fit and compares: every function of the table is called, by the one it
stands below, and for the first time in this order.
"""

from __future__ import annotations

from pathlib import Path

PICTURE = Path(__file__).parent / "call.svg"

# Depth, function, what it does. A function is called, perhaps through small helpers, by the nearest one above it that
# stands further left.
CALL = [
    (0, "estimators.base.SingleFit.fit", "one model at one alpha"),
    (1, "problem.build.build_problem", "checks, centering and scaling inside products, null model"),
    (2, "designs.as_design", "the owner of X; nothing else looks at its type"),
    (1, "solvers.continuation.Continuation.solve", "what carries over between solves; sufficient statistics"),
    (2, "kernel.solve", "small data in memory: proposes coefficients, which are certified"),
    (2, "solvers.driver.Run.solve", "where that is not proved, the loop: certify, record, stop, screen, step"),
    (3, "problem.problem.Problem.certify", "dual point, gap and what they prove"),
    (3, "screening.ScreenedProblem.test", "rows that the certificate proves to be zero"),
    (3, "solvers.working_set.WorkingSet.advance", "chooses a few rows"),
    (4, "solvers.inner.minimize", "and solves on them: arrays in, arrays out"),
    (3, "problem.public.published", "coefficients on the scale of X, and what rounding them costs"),
]
WIDTH, ROW, LEFT, TOP, INDENT = 860, 40, 20, 46, 34


def draw(call: list[tuple[int, str, str]]) -> str:
    """The picture: one line per function, indented below the one that calls it."""
    height = TOP + ROW * (len(call) + 1) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="The way of one fit, from data to result">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" fill="#444444">X, y: array, sparse matrix, data frame, file, Dask collection</text>',
    ]
    above: dict[int, int] = {}
    for k, (depth, name, what) in enumerate(call):
        x, y = LEFT + INDENT * depth, TOP + ROW * k
        if depth:
            start = above[depth - 1] + ROW - 12
            parts.append(f'<path d="M {x - INDENT + 12} {start} V {y + 14} H {x}" fill="none" stroke="#888888"/>')
        above[depth] = y
        module, _, function = name.rpartition(".")
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH - LEFT - x}" height="{ROW - 12}" rx="4" fill="#eef3fa" '
            'stroke="#999999" stroke-width="0.6"/>'
        )
        parts.append(
            f'<text class="call" x="{x + 8}" y="{y + 18}" fill="#111111"><tspan fill="#666666">{module}.</tspan>'
            f"{function}</text>"
        )
        parts.append(f'<text x="{WIDTH - LEFT - 8}" y="{y + 18}" text-anchor="end" fill="#444444">{what}</text>')
    y = TOP + ROW * len(call) + 20
    parts.append(f'<text x="{LEFT}" y="{y}" fill="#444444">coef_, dual_gap_, certificate: proved for X and y</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(CALL), encoding="utf-8")
