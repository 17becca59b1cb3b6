"""What a campaign leaves for its reader: tables for machines, a report, figures."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

from groupowl._files import write_file

from .figures import FIGURE_NAMES, result_figures
from .report import report_markdown
from .results import Results
from .spreadsheet import results_csv

_DPI = 150
_SUFFIXES = ("png", "svg")


def write_outputs(results: Results, out: Path) -> list[Path]:
    """Write ``results.json``, ``results.csv``, ``report.md`` and the figures as PNG and SVG; their paths.

    Parameters
    ----------
    results : Results
    out : Path
        Folder, made if needed. Each file is complete whenever it exists; figures of earlier calls that these results
        do not have are removed.

    Returns
    -------
    list of Path
        The report first.
    """
    from matplotlib import rc_context

    out.mkdir(parents=True, exist_ok=True)
    figures = result_figures(results)
    contents: dict[str, str | bytes] = {
        "report.md": with_pictures(report_markdown(results), figures),
        "results.json": json.dumps(results.to_dict(), indent=1) + "\n",
        "results.csv": results_csv(results),
    }
    for name, figure in figures.items():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # found once, for both formats
        for suffix in _SUFFIXES:
            buffer = io.BytesIO()
            with rc_context({"svg.hashsalt": name}):  # the same file for the same figure
                figure.savefig(buffer, format=suffix, dpi=_DPI, metadata={"Date": None} if suffix == "svg" else None)
            contents[f"{name}.{suffix}"] = buffer.getvalue()
    for name, content in contents.items():
        write_file(out / name, content)
    for stale in {f"{name}.{suffix}" for name in FIGURE_NAMES for suffix in _SUFFIXES} - contents.keys():
        (out / stale).unlink(missing_ok=True)  # of an earlier call, with other data sets
    return [out / name for name in contents]


def with_pictures(report: str, figures: Iterable[str]) -> str:
    """The report with each figure below the paragraph that names its file."""
    shown = []
    for paragraph in report.split("\n\n"):
        named = [name for name in figures if f"`{name}.png`" in paragraph]
        shown += [paragraph, *(f"![{name.replace('_', ' ')}]({name}.png)" for name in named)]
    return "\n\n".join(shown)
