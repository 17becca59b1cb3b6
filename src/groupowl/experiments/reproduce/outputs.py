"""What a campaign leaves for its reader: tables for machines, a report, figures."""

from __future__ import annotations

import io
import json
from pathlib import Path

from .figures import result_figures
from .report import report_markdown, results_csv
from .results import Results
from .store import write_atomically

_DPI = 150


def write_outputs(results: Results, out: Path) -> list[Path]:
    """Write ``results.json``, ``results.csv``, ``report.md`` and the figures as PNG and SVG; their paths.

    Parameters
    ----------
    results : Results
    out : Path
        Folder, made if needed. Each file is complete whenever it exists.

    Returns
    -------
    list of Path
        The report first.
    """
    out.mkdir(parents=True, exist_ok=True)
    contents: dict[str, str | bytes] = {
        "report.md": report_markdown(results),
        "results.json": json.dumps(results.to_dict(), indent=1) + "\n",
        "results.csv": results_csv(results),
    }
    for name, figure in result_figures(results).items():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # found once, for both formats
        for suffix in ("png", "svg"):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, dpi=_DPI, metadata={"Date": None} if suffix == "svg" else None)
            contents[f"{name}.{suffix}"] = buffer.getvalue()
    for name, content in contents.items():
        write_atomically(out / name, content)
    return [out / name for name in contents]
