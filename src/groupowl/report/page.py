"""The page as a whole: sections, style and scripts in one file."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from .._files import write_file
from ..plotting.style import CHOSEN, COLOURS
from . import sections
from .contents import ReportContents
from .features import feature_columns, feature_payload
from .markup import text
from .payload import as_json, choice_payload, path_payload
from .proof import proof
from .subject import Subject

# In the order in which they are joined: the first has what the others share.
_SCRIPTS = ("shared.js", "plot.js", "path.js", "choice.js", "table.js", "start.js")


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
    columns = feature_columns(subject)
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();"
    data = {
        "path": path_payload(subject),
        "choice": choice_payload(subject.choice),
        "table": feature_payload(subject, columns) if len(subject.selection.features) else None,
    }
    return Template(_asset("page.html")).substitute(
        title=text(contents.title),
        policy=_policy(script),
        style=_colours() + _asset("style.css"),
        beginning=sections.lead(subject) + sections.notes(subject),
        facts=sections.facts(subject),
        scores=sections.scores(subject),
        body="\n".join(
            [
                sections.along_the_path(subject),
                sections.choice_of_alpha(subject),
                sections.features(subject, columns),
                sections.clusters(subject),
                proof(subject),
                sections.reproduction(subject),
            ]
        ),
        data=as_json(data),
        script=script,
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """What browsers may load for the page: nothing; and run: this script alone, whatever names may smuggle in."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def _colours() -> str:
    """The colours of all pictures as variables of the style; that of a choice is for nothing else."""
    named = [colour for colour in COLOURS if colour != CHOSEN["color"]]
    variables = "".join(f"--line{i}:{colour};" for i, colour in enumerate(named))
    return f":root{{{variables}--chosen:{CHOSEN['color']};}}\n"
