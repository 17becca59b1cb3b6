"""Tables of the study, in Markdown for the pages of measurements and in reStructuredText for the guide."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .cells import FDR, N_SAMPLES, N_TRUE, NOISE_CORRELATION, Cell
from .procedures import MAX_FALSE, N_PAIRS, N_REPEATS, PROCEDURES, Procedure
from .run import Log, Plan, Summary, summarize

#: Files of all runs, of results and of tables.
PACKED, FULL_RESULTS, QUICK_RESULTS, PAGE, GUIDE_TABLE = (
    "inference_runs.json.gz",
    "inference.json",
    "inference_quick.json",
    "inference.md",
    "inference_guide.rst",
)
_GUIDE = [
    ("orthogonal", Cell(200, 5, "orthogonal")),
    ("rho = 0", Cell(200, 5, "rho 0")),
    ("rho = .5", Cell(200, 5, "rho .5")),
    ("rho = .8", Cell(200, 5, "rho .8")),
    ("noise correlated", Cell(200, 5, "rho 0", noise="correlated")),
    ("rho = .5, d = 1000", Cell(1000, 5, "rho .5")),
]


def collect(plan: Plan, log: Log) -> list[dict[str, Any]]:
    """One record for each procedure and cell that was run, with the verdict on its promise."""
    records = []
    for cell in plan.cells:
        for procedure in PROCEDURES:
            first = summarize(log.of(cell, procedure, fresh=False))
            if first is None:
                continue
            again = summarize(log.of(cell, procedure, fresh=True))
            record: dict[str, Any] = {"cell": cell.name, "procedure": procedure.name, "first": _rounded(first)}
            record["verdict"] = verdict(procedure, cell, first, again)
            if again is not None:
                record["again"] = _rounded(again)
            records.append(record)
    return records


def verdict(procedure: Procedure, cell: Cell, first: Summary, again: Summary | None) -> str:
    """Whether a promise is kept: "kept", "kept when run again", "missed", "to be run again", or "" for no promise."""
    if not procedure.judges(cell) or not first.n_runs:
        return ""
    if not first.is_above(procedure.promise, 2.0):
        return "kept"
    if again is None or not again.n_runs:
        return "to be run again"
    return "missed" if again.is_above(procedure.promise, 3.0) else "kept when run again"


def _rounded(summary: Summary) -> dict[str, Any]:
    values = {}
    for name, value in summary._asdict().items():
        if isinstance(value, float):
            value = None if math.isnan(value) else round(value, 4)
        values[name] = value
    return values


def write(out: Path, plan: Plan, log: Log, *, is_quick: bool, is_complete: bool) -> None:
    """The records with versions, the page, and the table of the guide."""
    records = collect(plan, log)
    about = {"quick": is_quick, "complete": is_complete, "versions": log.used_environments(), "records": records}
    out.mkdir(parents=True, exist_ok=True)
    stored = out / (QUICK_RESULTS if is_quick else FULL_RESULTS)
    stored.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    render(out)


def render(out: Path) -> None:
    """Page and table of the guide from stored records: those of the full study where they are there."""
    about = stored_results(out)
    (out / PAGE).write_text(page(about), encoding="utf-8")
    (out / GUIDE_TABLE).write_text(guide_table(about), encoding="utf-8")


def stored_results(out: Path) -> dict[str, Any]:
    """What the page and the guide show."""
    stored = next(path for path in (out / FULL_RESULTS, out / QUICK_RESULTS) if path.exists())
    about: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8"))
    return about


# Pages ----------------------------------------------------------------------------------------------------


def page(about: dict[str, Any]) -> str:
    """The page of measurements."""
    records = about["records"]
    lines = ["# False discoveries", ""]
    if about["quick"]:
        n_most = max(record["first"]["n_runs"] for record in records)
        lines += [
            f"**This is the quick form of the study: at most {n_most} runs of a procedure on a cell, few cells, large "
            "standard errors.** It shows that the study runs, and the coarse picture; `make inference-study` is the "
            "full one.",
            "",
        ]
    if not about["complete"]:
        lines += [
            "**Not all runs are done.** Tables say how many there are so far, and standard errors are those of these; "
            "what is above its promise is run again when the first runs are done. `make inference-study` goes on.",
            "",
        ]
    lines += [
        f"Simulated data with {N_SAMPLES} samples, {N_TRUE} true features, d features and q tasks (or classes). "
        "Columns are normal with correlation `rho^|j-k|`, or made orthogonal. Coefficients of true features have 1.2 "
        "times the norm that all noise stays below, in random directions or all in one (rank-one), in units of the "
        f"noise, whose tasks are independent or have correlations of {NOISE_CORRELATION:g}. The false discovery rate "
        f"asked for is {FDR:g}; stability selection ({N_PAIRS} pairs) is asked for at most {MAX_FALSE:g} false "
        f"selections on average; derandomized knockoffs combine {N_REPEATS} draws.",
        "",
        "Entries are: false discovery rate ± standard error, power in brackets; runs are those of a cell. An asterisk "
        "marks cells for which nothing is promised. Peers know one target: they are run for each task, and all that "
        "they select is taken together, which no promise covers.",
        "",
    ]
    lines += verdict_lines(records)
    for title, names in _blocks(records):
        lines += ["", f"## {title}", "", *_table(records, names)]
    lines += ["", "## False selections", "", *_count_lines(records)]
    lines += ["", "## Seconds of processor time per run, median", "", *_time_lines(records)]
    lines += ["", "## Versions", ""]
    for environment in about["versions"]:
        names = [f"{name} {version}" for name, version in environment.items() if name != "runs"]
        runs = f"{environment['runs']} runs: " if "runs" in environment else ""
        lines.append(f"- {runs}{', '.join(names)}")
    return "\n".join(lines) + "\n"


def verdict_lines(records: list[dict[str, Any]]) -> list[str]:
    """What the judge says, with both figures of everything that was above its promise."""
    judged = [record for record in records if record["verdict"]]
    above = [record for record in judged if record["verdict"] != "kept"]
    lines = [
        "## Promises",
        "",
        f"{len(judged) - len(above)} of {len(judged)} promises were kept at once: the mean was ",
    ]
    lines[-1] += "at most what was promised plus two standard errors."
    if above:
        lines += ["", "| procedure | cell | first | again, fresh seeds | verdict |", "|---|---|---|---|---|"]
        for record in above:
            promise = _procedure(record["procedure"]).promise
            figures = [_promised_figure(record.get(key), promise) for key in ("first", "again")]
            cells = [record["procedure"], record["cell"], *figures, record["verdict"]]
            lines.append("| " + " | ".join(cells) + " |")
    failed = [record for record in records if record["first"]["n_errors"]]
    for record in failed:
        n_errors, why = record["first"]["n_errors"], record["first"]["error"]
        lines += ["", f"{record['procedure']} failed {n_errors} times on {record['cell']}: {why}"]
    return lines


def _promised_figure(summary: dict[str, Any] | None, promise: str) -> str:
    if summary is None or not summary["n_runs"]:
        return "-"
    key = "count" if promise == "count" else "rate"
    return f"{summary[key]:.3f} ± {summary[key + '_se']:.3f} ({summary['n_runs']} runs)"


def _blocks(records: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Cells that share a table: those of one loss, number of features and design."""
    blocks: dict[str, list[str]] = {}
    for record in records:
        parts = record["cell"].split(", ")
        kind = parts[0] if not parts[0].startswith("d=") else "regression"
        d, _, design = (parts if kind == "regression" else parts[1:])[:3]
        blocks.setdefault(f"{kind.capitalize()}, {design}, {d}", [])
        if record["cell"] not in blocks[f"{kind.capitalize()}, {design}, {d}"]:
            blocks[f"{kind.capitalize()}, {design}, {d}"].append(record["cell"])
    return list(blocks.items())


def _table(records: list[dict[str, Any]], names: list[str]) -> list[str]:
    found = {(record["procedure"], record["cell"]): record for record in records}
    heads = [_short(name) for name in names]
    lines = ["| procedure | runs | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(names)]
    for procedure in PROCEDURES:
        those = [found.get((procedure.name, name)) for name in names]
        entries = [_entry(record) for record in those]
        if any(entry != "-" for entry in entries):
            lines.append(f"| {procedure.name} | {_runs(those)} | " + " | ".join(entries) + " |")
    return lines


def _runs(records: list[dict[str, Any] | None]) -> str:
    """How many runs entries are of: one number, or the smallest and the largest."""
    counts = sorted(record["first"]["n_runs"] for record in records if record and record["first"]["n_runs"])
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]}-{counts[-1]}"


def _short(name: str) -> str:
    """What tells the cells of one table apart."""
    parts = name.split(", ")
    q, noise, signal = next(part for part in parts if part.startswith("q=")), parts[-2], parts[-1]
    others = [part for part in (noise, signal) if part not in ("independent noise", "random signal")]
    return ", ".join([q, *others])


def _entry(record: dict[str, Any] | None) -> str:
    if record is None or not record["first"]["n_runs"]:
        return "-"
    first = record["first"]
    star = "" if record["verdict"] else "*"
    return f"{_two(first['rate'])} ± {_two(first['rate_se'])}{star} ({_two(first['power'])})"


def _two(value: float) -> str:
    """Two digits without the zero before the point."""
    text = f"{value:.2f}"
    return text.removeprefix("0") if value < 1.0 and not text.startswith("1") else text


def _count_lines(records: list[dict[str, Any]]) -> list[str]:
    names = [procedure.name for procedure in PROCEDURES if procedure.promise == "count"]
    lines = [
        f"Mean number of false selections ± standard error; at most {MAX_FALSE:g} is promised.",
        "",
        "| cell | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    found = {(record["procedure"], record["cell"]): record["first"] for record in records}
    cells = list(dict.fromkeys(record["cell"] for record in records))
    for cell in cells:
        entries = []
        for name in names:
            first = found.get((name, cell))
            entries.append(
                "-" if first is None or not first["n_runs"] else f"{first['count']:.2f} ± {first['count_se']:.2f}"
            )
        if any(entry != "-" for entry in entries):
            lines.append(f"| {cell} | " + " | ".join(entries) + " |")
    return lines


def _time_lines(records: list[dict[str, Any]]) -> list[str]:
    lines = ["| procedure | d = 200 | d = 1000 |", "|---|---|---|"]
    for procedure in PROCEDURES:
        entries = []
        for d in ("d=200", "d=1000"):
            times = []
            for record in records:
                is_here = record["procedure"] == procedure.name and d in record["cell"].split(", ")
                if is_here and record["first"]["seconds"] is not None and "q=5" in record["cell"]:
                    times.append(record["first"]["seconds"])
            entries.append(f"{sorted(times)[len(times) // 2]:.2g}" if times else "-")
        if entries != ["-", "-"]:
            lines.append(f"| {procedure.name} | " + " | ".join(entries) + " |")
    return ["With five tasks.", "", *lines]


def guide_table(about: dict[str, Any]) -> str:
    """The table of the guide: five tasks, the designs side by side."""
    found = {(record["procedure"], record["cell"]): record for record in about["records"]}
    columns = [(head, cell.name) for head, cell in _GUIDE if any(name == cell.name for _, name in found)]
    which = "the quick form of the study: a few runs each" if about["quick"] else _guide_runs(about)
    lines = [
        ".. generated by benchmarks/inference_study",
        "",
        f".. list-table:: False discovery rate, and power in brackets, from {which}",
        "   :header-rows: 1",
        "",
        "   * - procedure",
        *(f"     - {head}" for head, _ in columns),
    ]
    for procedure in PROCEDURES:
        entries = []
        for _, name in columns:
            record = found.get((procedure.name, name))
            is_there = record is not None and record["first"]["n_runs"]
            entries.append(
                f"{_two(record['first']['rate'])} ({_two(record['first']['power'])})" if record and is_there else r"\-"
            )
        if any(entry != r"\-" for entry in entries):
            lines += [f"   * - {procedure.name}", *(f"     - {entry}" for entry in entries)]
    return "\n".join(lines) + "\n"


def _guide_runs(about: dict[str, Any]) -> str:
    if about["complete"]:
        return "the full study"
    counts = [record["first"]["n_runs"] for record in about["records"] if record["first"]["n_runs"]]
    return f"the full study as far as it is done: {min(counts)} to {max(counts)} runs each"


def _procedure(name: str) -> Procedure:
    return next(procedure for procedure in PROCEDURES if procedure.name == name)
