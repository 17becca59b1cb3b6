"""Coefficients as users get them: on the scale of X as it was given, in its precision, and what rounding them costs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray
from ..norm.kernels import EPS, nonzero_rows, row_norms, sums_with_products
from .certificate import Certificate, Residual
from .problem import Problem
from .samples import task_weights

# What changes the objective by less than this, relatively, is a hundred millionth of its last digit.
_NEGLIGIBLE = 1e-8 * EPS


class Published(NamedTuple):
    """Coefficients as users get them.

    Attributes
    ----------
    B : ndarray of shape (n_features, n_tasks)
        On the scale of X as it was given.
    intercept : ndarray of shape (n_tasks,)
    excess : float
        What rounding them adds to the objective, as far as it is known.
    rounding : float
        Bound on what it can add beyond that.
    """

    B: FloatArray
    intercept: FloatArray
    excess: float
    rounding: float

    def gap(self, certificate: Certificate) -> float:
        """The gap that a certificate proves for these coefficients."""
        return max(certificate.gap + self.excess, 0.0) + self.rounding


def published(
    problem: Problem, coefficients: FloatArray, certificate: Certificate, dtype: Any = np.float64
) -> Published:
    """Coefficients in the public scale and precision, with the effect of their rounding on the objective.

    The intercept and the coefficients of unpenalized columns follow from the penalized ones after those were rounded.
    """
    rows, block = coefficients[: problem.n_rows], coefficients[problem.n_rows :]
    is_plain = problem.design.inverse_scale is None and problem.unpenalized.basis is None and not problem.fit_intercept
    if is_plain and dtype == np.float64:  # coefficients are those of X, and nothing is rounded
        return Published(rows, np.zeros(problem.samples.n_tasks), 0.0, 0.0)
    on_basis = problem.unpenalized.on_basis(block)
    B = _in_precision(problem.design.input_coefficients(rows, on_basis)[0], dtype)
    intercept, left = _rounded_intercept(problem, coefficients, B)
    residual = certificate.residual
    if residual is None:  # coefficients that overflow, of which nothing is proved
        return Published(B, intercept, 0.0, 0.0)
    change, moved = _change_by_rounding(problem, rows, B, residual)
    distance, doubt = _unpenalized_distance(problem, coefficients, B, intercept, left)
    farthest = moved + distance + doubt
    if problem.unpenalized.n_rows and certificate.gap == 0.0:  # the null model, a minimum along the block
        excess, rounding = change, 0.5 * _null_curvature(problem, residual) * farthest**2
    elif problem.unpenalized.n_rows:  # along the block the loss falls no faster than balancing says
        curvature = problem.curvature_at(coefficients)
        excess, rounding = change, residual.balancing * farthest + 0.5 * curvature * farthest**2
    else:  # the problem has the best coefficients of the block, from where the loss rises as a parabola
        curvature = problem.curvature_at(coefficients)
        excess = change + 0.5 * curvature * distance**2
        rounding = 0.5 * curvature * moved**2 + curvature * doubt * (distance + doubt)
    if abs(excess) + rounding <= _NEGLIGIBLE * abs(certificate.primal):
        return Published(B, intercept, 0.0, 0.0)
    return Published(B, intercept, excess, rounding)


@np.errstate(all="ignore")
def all_published(
    problem: Problem, stack: FloatArray, primals: FloatArray, balancing: FloatArray
) -> list[Published] | None:
    """The same of several coefficients, in double precision, or None where it is not simple.

    That is without unpenalized columns, where objectives are known, what balancing changed, and that gaps are not zero.
    """
    if problem.unpenalized.basis is not None:
        return None
    rows, others = stack[:, : problem.n_rows], stack[:, problem.n_rows :]
    B, intercepts = problem.design.input_coefficients(rows)[0], np.zeros((len(stack), problem.samples.n_tasks))
    excess = rounding = np.zeros(len(stack))
    if problem.fit_intercept:
        constants = problem.samples.center + np.stack([problem.unpenalized.intercept(block) for block in others])
        intercepts, distance, doubt = _all_intercepts(problem, rows, B, constants)
        if problem.unpenalized.n_rows:
            curvature = np.array([problem.curvature_at(coefficients) for coefficients in stack])
            rounding = (balancing + 0.5 * curvature * (distance + doubt)) * (distance + doubt)
        else:
            curvature = np.array(problem.loss.curvature)
            excess, rounding = 0.5 * curvature * distance**2, curvature * doubt * (distance + doubt)
        counts = excess + rounding > _NEGLIGIBLE * np.abs(primals)
        excess, rounding = counts * excess, counts * rounding
    if not (np.isfinite(B).all() and np.isfinite(intercepts).all()):
        return None
    return list(map(Published, B, intercepts, excess.tolist(), rounding.tolist()))


def _all_intercepts(
    problem: Problem, stack: FloatArray, B: FloatArray, constants: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intercepts of several solutions, how far predictors move by their rounding, and the error of this distance."""
    n_several, n_rows, n_tasks = stack.shape
    several, rows = np.divmod(np.flatnonzero(nonzero_rows(stack.reshape(-1, n_tasks))), n_rows)
    own, public, samples = row_norms(stack[several, rows]), B[several, rows], problem.samples
    centers = np.zeros(n_rows) if problem.design.mean is None else problem.design.mean
    intercepts, left = sums_with_products(constants, several, -centers[rows], public)
    root = np.sqrt(samples.total_weight)
    distance = root * row_norms(left)
    doubt = np.full(n_several, samples.center_error + problem.product_error * samples.norm)
    if problem.unpenalized.n_rows:
        doubt += root * EPS * row_norms(constants)
    if problem.unpenalized.n_rows and n_tasks == 2:  # the difference of two classes, as for a single solution
        unseen = 2.0 * row_norms(stack[several, rows] - problem.loss.canonical(stack[several, rows]))
        doubt += np.bincount(several, problem.norms[rows] * unseen, n_several) + root * EPS * row_norms(intercepts)
    for factor, sizes in (
        (root * EPS, np.abs(centers[rows]) * row_norms(public)),
        (8 * EPS, problem.norms[rows] * own),
        (problem.product_error, problem.rounding_norms[rows] * own),
    ):
        doubt += factor * np.bincount(several, sizes, n_several)
    return intercepts, distance, doubt


def intercept_excess(
    problem: Problem, coefficients: FloatArray, B: FloatArray, intercept: FloatArray | None
) -> tuple[float, float]:
    """Excess of the objective at a given intercept over that at the optimal one, and its rounding error.

    ``B`` are the coefficients as they were given: groups of collinear columns may have others that predict the same.
    """
    if intercept is None or problem.unpenalized.n_rows or not problem.fit_intercept:
        return 0.0, 0.0
    total, curvature = problem.samples.total_weight, problem.loss.curvature
    terms = np.stack([intercept, -problem.samples.center])
    distance = float(np.linalg.norm(problem.plus_centers(terms, B, 1.0)[0]))
    reach = problem.reach(coefficients) / np.sqrt(total)
    size = float(np.linalg.norm(intercept) + np.linalg.norm(problem.samples.center)) + reach
    excess = 0.5 * curvature * total * distance**2
    return excess, 64 * EPS * excess + 8 * EPS * curvature * total * size * (distance + EPS * size)


def _in_precision(values: FloatArray, dtype: Any) -> FloatArray:
    """Coefficients in the precision that users get."""
    rounded = values.astype(dtype, copy=False)
    if np.isfinite(rounded).all() or not np.isfinite(values).all():
        return rounded
    raise ValueError(
        f"X is in single precision, and so are the coefficients, but they go up to {np.abs(values).max():.3g}, more "
        "than single precision holds. Give X in double precision (float64), or rescale y."
    )


def _rounded_intercept(problem: Problem, coefficients: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intercept for ``B``, in its precision, and what rounding took off."""
    nothing = np.zeros(problem.samples.n_tasks)
    if not problem.fit_intercept:
        return nothing.astype(B.dtype), nothing
    constant = problem.unpenalized.intercept(coefficients[problem.n_rows :])
    terms = np.stack([problem.samples.center, constant])
    intercept, left = problem.plus_centers(terms, B.astype(np.float64, copy=False), -1.0, B.dtype)
    if not np.isfinite(intercept).all():
        _in_precision(problem.to_input(coefficients)[1], B.dtype)
    return intercept, left


def _null_curvature(problem: Problem, residual: Residual) -> float:
    """Twice the curvature near a constant predictor, per unit of weight: hardly any where there is one class."""
    design, samples = problem.design, problem.samples
    means = design.reduce(np.sum, design.map(problem.loss.curvatures, residual.theta, *samples.handles))
    least = float(np.min(design.reduce(task_weights, samples.w)))
    return min(problem.loss.curvature, 2.0 * samples.n_tasks * float(means) / least)


def _change_by_rounding(problem: Problem, rows: FloatArray, B: FloatArray, residual: Residual) -> tuple[float, float]:
    """First-order change of the objective by rounded penalized coefficients, and how far predictors move."""
    if B.dtype == np.float64:
        return 0.0, 0.0  # certificates allow for it
    rounded = problem.design.own_coefficients(B.astype(np.float64))
    moves = rounded - rows
    moved = float(problem.predictor_norms @ row_norms(moves))
    penalty = problem.penalty_value(rounded) - problem.penalty_value(rows)
    return penalty - float(np.sum(residual.products * moves)), moved


def _unpenalized_distance(
    problem: Problem, coefficients: FloatArray, B: FloatArray, intercept: FloatArray, left: FloatArray
) -> tuple[float, float]:
    """Weighted norm by which predictors differ through the rounding of unpenalized coefficients, and its error.

    ``left`` is what rounding took off the intercept.
    """
    rows, block = coefficients[: problem.n_rows], coefficients[problem.n_rows :]
    whole = B.astype(np.float64, copy=False)
    root = float(np.sqrt(problem.samples.total_weight))
    distance = doubt = 0.0
    if problem.unpenalized.rank:
        on_basis, reach = problem.design.basis_coefficients(whole)
        distance += float(np.linalg.norm(on_basis - problem.unpenalized.on_basis(block)))
        doubt += 8 * EPS * reach
    if problem.fit_intercept:
        distance += root * float(np.linalg.norm(left))
        constant = problem.unpenalized.intercept(block)
        doubt += problem.samples.center_error + root * EPS * float(np.linalg.norm(constant))
        if (centers := problem.design.mean) is not None:  # means, rounded once
            doubt += root * EPS * float(np.abs(centers) @ row_norms(whole))
        doubt += 8 * EPS * float(problem.predictor_norms @ row_norms(rows))
        doubt += problem.product_error * (problem.samples.norm + problem.reach(coefficients))
    if problem.unpenalized.n_rows and len(intercept) == 2:
        # Users may get the difference of two classes, rounded once more: what the loss does not see is then gone.
        own = problem.design.own_coefficients(whole)
        unit = float(np.finfo(B.dtype).eps)
        unseen = 2.0 * row_norms(own - problem.loss.canonical(own))
        doubt += float(problem.predictor_norms @ unseen) + root * unit * float(np.linalg.norm(intercept))
    return distance, float(doubt)
