"""Solutions of a path on disk: those of a run that was interrupted are certified again and not solved again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._resume import Facts, ResumeFolder, described, fingerprint
from .._typing import FloatArray
from ..model import Model
from ..norm.kernels import nonzero_rows
from ..solvers import SolveResult, SolverSettings
from ..solvers.continuation import Known
from ..versions import installed_version

#: Goes up whenever what is kept changes its meaning.
_FORMAT = "1"


@dataclass(frozen=True, eq=False)
class KeptPoints:
    """Solutions of one path in a folder, a file for each alpha, in the coefficients that the problem has."""

    folder: ResumeFolder
    name: str = "alpha"

    def read(self, i: int) -> Known | None:
        """What is there for an alpha, by its position on the path."""
        found = self.folder.read(f"{self.name}_{i:05d}")
        if found is None or not {"rows", "values", "costs"} <= found.keys():
            return None
        steps, passes, seconds = found["costs"].tolist()
        return Known(found["rows"], found["values"], int(steps), passes, seconds)

    def write(self, i: int, B: FloatArray, result: SolveResult) -> None:
        """Keep a solution, unless it is there."""
        name = f"{self.name}_{i:05d}"
        if self.folder.read(name) is None:
            rows = np.flatnonzero(nonzero_rows(B))
            self.folder.write(name, rows=rows, values=B[rows], costs=[result.n_iter, result.n_passes, result.seconds])


def path_facts(model: Model, settings: SolverSettings, alphas: Any, data: Any) -> dict[str, str | list[float]]:
    """What the solutions of a path depend on; ``data`` as for :func:`data_fact`.

    Not how many steps a solve may take: those that fell short of the tolerance are not kept.
    """
    problem = model.problem
    return {
        "alphas": np.asarray(alphas).tolist(),
        "the data": data_fact(model, data),
        "the format": _FORMAT,
        "the intercept": str(problem.fit_intercept),
        "the loss": described(problem.loss),
        "the penalty": f"{described(model.options)}, {described(model.unpenalized)}, {model.two_classes}",
        "the loss of the null model": [problem.null_loss],
        "the norms of the columns": _sketch(problem.norms),
        "the size of the data": f"{problem.design.n_samples} x {problem.n_rows} x {problem.samples.n_tasks}",
        "screening": described(settings.rule),
        "the solver": described(settings.solver),
        "tol": repr(settings.tol),
        "the version of groupowl": installed_version("groupowl"),
        "the weights": fingerprint(model.weights),
    }


def data_fact(model: Model, data: Any) -> str | list[float]:
    """Fingerprint of the data: of all bytes in memory, otherwise of what a first pass over them found.

    ``data`` are X, or a design of it, and arrays that belong to it; None where there is none.
    """
    X, *others = data
    plain = X.plain_data() if hasattr(X, "plain_data") else X
    matrix = getattr(plain, "X", plain)
    is_here = isinstance(matrix, np.ndarray) or hasattr(matrix, "indptr")
    if is_here and not any(hasattr(other, "dask") for other in others):
        return fingerprint(matrix, *(other for other in others if other is not None))
    return _sketch(model.null_residual.products)


def _sketch(values: FloatArray) -> list[float]:
    """The norm and some random combinations: they change with any entry, and by rounding only a little."""
    rng, flat = np.random.default_rng(0), np.ravel(values)
    return [float(np.linalg.norm(flat)), *(float(rng.standard_normal(len(flat)) @ flat) for _ in range(3))]


def solution_folder(resume: Any, facts: Facts) -> ResumeFolder:
    """The folder that a user has given to go on from."""
    return ResumeFolder(resume, facts, holds="solutions")
