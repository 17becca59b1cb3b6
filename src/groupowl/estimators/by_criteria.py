"""The choice of alpha by an information criterion: fits on all data are judged by their likelihood and freedom."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from ..model import Model
from ..model_selection import Candidate, Evidence, Fitting, Likelihood, criterion_path, relaxed_candidates
from ..path import PathFit
from .searching import Job, Searched, full_paths


def search_criteria(job: Job, models: list[Model], grids: list[FloatArray]) -> list[Searched]:
    """Fit the path of each weight sequence and choose the alpha with the smallest criterion."""
    paths = full_paths(job, models, grids)
    return [judged(job, model, path) for model, path in zip(models, paths, strict=True)]


def judged(job: Job, model: Model, path: PathFit) -> Searched:
    """What the criterion says of a path."""
    likelihood = Likelihood(
        loss=job.fitting.loss,
        n_samples=float(job.weight.sum()),
        n_columns=job.data.n_targets,
        n_penalized=len(model.weights),
        null_loss=model.null_loss,
    )
    values = criterion_path(job.estimator.selection, likelihood, _evidence(job.fitting, model, path, likelihood))
    best = int(np.argmin(values))
    return Searched(model, path, best, -float(values[best]), {"criterion_path": values})


def _evidence(fitting: Fitting, model: Model, path: PathFit, likelihood: Likelihood) -> list[Evidence]:
    """What the criterion sees of each point; a relaxed fit is judged as it is, free on its support."""
    free = (model.problem.design.n_free_directions, fitting.fit_intercept)
    if not fitting.relaxed:
        return [
            Evidence(point.loss, likelihood.shrunken_freedom(point.clusters, *free), point.n_selected)
            for point in path.points
        ]
    fitted = [Candidate(point.support, point.rows, point.intercept) for point in path.points]
    problem, losses = model.problem, {}
    for candidate in relaxed_candidates(model, fitted):
        key = candidate.support.tobytes()
        if key not in losses:
            B = problem.from_input(candidate.coef(problem.n_rows), candidate.intercept)
            losses[key] = problem.loss_value(problem.predictor(B))
    return [
        Evidence(losses[point.support.tobytes()], likelihood.relaxed_freedom(point.n_selected, *free), point.n_selected)
        for point in path.points
    ]
