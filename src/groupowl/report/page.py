"""The page as a whole: text, style and scripts in one file; ``assets/page.html`` has the words."""

from __future__ import annotations

import base64
import hashlib
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_file
from .._text import printable
from ..estimators.fit_summary import AS_CONSTANT, AS_EXPLAINED, NOT_PROVED, PROVED_ZERO, SELECTED
from ..model_selection import CRITERIA
from ..plotting.style import CHOSEN, COLORS
from ..versions import installed_versions
from .contents import ReportContents, Subject
from .payload import SHOWN_ROWS, as_json, choice_payload, feature_columns, feature_payload, fixed, number, path_payload

# In the order in which they are joined: the first has what the others share.
_SCRIPTS = ("shared.js", "plot.js", "path.js", "choice.js", "table.js", "start.js")
# Rows of tables.
_MOST_CLUSTERS = 40
_MOST_GAPS = 8

_WHY_LEFT_OUT = {
    AS_CONSTANT: "These columns vary by no more than the rounding of their numbers; if that is real, take the offset "
    "off.",
    AS_EXPLAINED: "The unpenalized columns explain all of these columns but rounding.",
}


def write_report(path: Any, contents: ReportContents) -> None:
    """Write a report as one HTML file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write; one that is there is replaced. Its folder must exist.
    contents : ReportContents
        What the report is about.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import groupowl as go
    >>> from groupowl.report import ReportContents, write_report
    >>> data = go.datasets.make_correlated_groups(30, 5, 2, n_informative=2, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=10, cv=3).fit(data.X, data.Y)
    >>> contents = ReportContents(
    ...     title="Five features",
    ...     command=("groupowl", "cv", "train.csv"),
    ...     facts={"Samples": "30"},
    ...     estimator=model,
    ...     path=model.path_,
    ...     feature_names=["a", "b", "c", "d", "e"],
    ...     target_names=["u", "v"],
    ...     scores={},
    ...     notes=(),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", contents)
    ...     print((Path(folder) / "report.html").read_text(encoding="utf-8")[:15])
    <!doctype html>
    """
    if not isinstance(contents, ReportContents):
        raise TypeError(f"contents must be ReportContents, got {type(contents).__name__}.")
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(
            f"path must name a file, but {str(path)!r} is a folder. Add a name such as report.html."
        )
    page = render_report(contents).encode("utf-8", "replace")  # names may have halves of characters
    write_file(target, page)


def render_report(contents: ReportContents) -> str:
    """The page as text.

    Parameters
    ----------
    contents : ReportContents
        What the report is about.

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    subject = Subject.of(contents)
    estimator = contents.estimator
    columns = feature_columns(subject)
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();"
    data = {
        "path": path_payload(subject),
        "choice": choice_payload(subject.choice),
        "table": feature_payload(subject, columns),
    }
    known = {name: found for name, found in installed_versions().items() if found != "not installed"}
    return _template().render(
        contents=contents,
        subject=subject,
        estimator=estimator,
        classes=contents.classes,
        path=contents.path,
        along=subject.along,
        choice=subject.choice,
        criteria=CRITERIA,
        certificate=subject.certificate,
        proof=_proof(subject),
        clusters=_clusters(subject),
        columns=columns,
        shown_rows=SHOWN_ROWS,
        is_relaxed=getattr(estimator, "relaxed", False),
        is_standardized=getattr(estimator, "standardize", False),
        command=shlex.join(map(str, contents.command)),
        versions=", ".join(f"{name} {found}" for name, found in known.items()),
        policy=_policy(script),
        style=_colors() + _asset("style.css"),
        data=as_json(data),
        script=script,
    )


def _template() -> Any:
    """The page with its places to fill, which show any text literally."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        raise ImportError('a report needs jinja2, which is not installed; run: pip install "groupowl[cli]"') from error

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value, keep="\n\t\u2028\u2029")

    environment = Environment(
        autoescape=True, finalize=shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "fixed": fixed}
    return environment.from_string(_asset("page.html"))


def _proof(subject: Subject) -> dict[str, Any] | None:
    """What is proved of the features, by the states that they are in; None where only a path was fitted."""
    certificate = subject.certificate
    if certificate is None:
        return None
    counts = certificate.counts

    def names_of(state: str) -> list[str]:
        return [subject.names[j] for j in np.flatnonzero(certificate.states == state).tolist()]

    gaps = certificate.gaps[np.isfinite(certificate.gaps)]
    reached = np.unique(gaps)[::-1]
    shown = reached[np.unique(np.linspace(0, len(reached) - 1, _MOST_GAPS).round().astype(int))] if len(reached) else []
    return {
        "n_zero": counts[PROVED_ZERO],
        "gaps": [(float(gap), int(np.count_nonzero(gaps >= gap))) for gap in shown],
        "not_proved": names_of(NOT_PROVED),
        "left_out": {state: (why, names_of(state)) for state, why in _WHY_LEFT_OUT.items() if counts.get(state)},
        "n_selected": counts[SELECTED],
    }


def _clusters(subject: Subject) -> dict[str, Any] | None:
    """Clusters of more than one feature, with their norms as shares of the largest; None without clusters."""
    chosen, n_clusters = subject.selection, subject.n_clusters
    if n_clusters == 0:
        return None
    sizes = np.bincount(chosen.clusters, minlength=n_clusters + 1)[1:]
    several = 1 + np.flatnonzero(sizes > 1)
    members = {int(cluster): np.flatnonzero(chosen.clusters == cluster) for cluster in several[:_MOST_CLUSTERS]}
    means = {cluster: float(chosen.norms[rows].mean()) for cluster, rows in members.items()}
    shown = [
        {
            "number": cluster,
            "names": [chosen.names[k] for k in rows],
            "norms": (float(chosen.norms[rows].min()), float(chosen.norms[rows].max())),
            "share": means[cluster] / max(means.values()),
        }
        for cluster, rows in members.items()
    ]
    return {"n_several": len(several), "n_single": int(np.count_nonzero(sizes == 1)), "shown": shown}


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """What browsers may load for the page: nothing; and run: this script alone, whatever names may smuggle in."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def _colors() -> str:
    """The colors of all pictures as variables of the style; that of a choice is for nothing else."""
    named = [color for color in COLORS if color != CHOSEN["color"]]
    variables = "".join(f"--line{i}:{color};" for i, color in enumerate(named))
    return f":root{{{variables}--chosen:{CHOSEN['color']};}}\n"
