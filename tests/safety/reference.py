"""A second opinion: a small solver and a judge in extended precision that share no code with the package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import isotonic_regression

Long = np.longdouble
TINY = np.finfo(float).tiny
PATIENCE = 1000  # iterations after which the reference looks whether it will get there
DELTA = 1.345  # of the Huber loss, as the package has it by default


# Losses that are sums over entries: cost, mean of the targets, dual cost of means in their range, and balance --------


class Logistic:
    curvature = 0.25

    def cost(self, Z, Y):
        return np.log1p(np.exp(-np.abs(Z))) + np.maximum(Z, 0) - Y * Z

    def mean(self, Z, Y):
        return 0.5 * (1.0 + np.tanh(0.5 * Z))

    def dual(self, P, Y):
        P = np.clip(P, 0.0, 1.0)
        return -_xlogx(P) - _xlogx(1.0 - P)

    def bend(self, Z, Y):
        P = self.mean(Z, Y)
        return P * (1.0 - P)

    def balanced(self, P, has, wants, total):
        shrunk = P * (wants / np.where(has > 0, has, 1.0))
        grown = 1.0 - (1.0 - P) * ((total - wants) / np.where(total > has, total - has, 1.0))
        return np.where(has > wants, shrunk, grown)

    def null(self, mean):
        return np.log(mean) - np.log1p(-mean)


class Poisson:
    curvature = np.inf

    def cost(self, Z, Y):
        return np.exp(Z) - Y * Z

    def mean(self, Z, Y):
        return np.exp(Z)

    def dual(self, P, Y):
        P = np.maximum(P, 0.0)
        return P - _xlogx(P)

    def bend(self, Z, Y):
        return np.exp(Z)

    def balanced(self, P, has, wants, total):
        return P * (wants / np.where(has > 0, has, 1.0))

    def null(self, mean):
        return np.log(mean)


class Huber:
    curvature = 1.0

    def cost(self, Z, Y):
        size = np.abs(Y - Z)
        inner = np.minimum(size, DELTA)
        return inner * (size - inner / 2)

    def mean(self, Z, Y):
        return Y - np.clip(Y - Z, -DELTA, DELTA)

    def bend(self, Z, Y):
        return (np.abs(Y - Z) < DELTA).astype(float)

    def dual(self, P, Y):
        R = Y - P
        return R * Y - R * R / 2

    def null(self, mean):
        raise NotImplementedError  # no function of means


SEPARABLE = {"logistic": Logistic(), "poisson": Poisson(), "huber": Huber()}


def _xlogx(P):
    return P * np.log(np.where(P > 0, P, 1.0))


class Cox:
    """The partial likelihood, term by term: a death is a choice among those at risk, whose weights are a row.

    ``F(Z) = unit (sum_t mass_t log(rows_t . exp(z)) - sum(died * Z))``, where z is the column of Z of the task of t.
    With Efron's ties a tie of m deaths has m terms, and in term l they count 1 - l / m.
    """

    def __init__(self, event, time, strata, ties, w):
        self.unit = w.mean()
        self.died = w[:, None] / self.unit * event
        terms = [term for k in range(event.shape[1]) for term in self._terms(event[:, k], time[:, k], strata, ties, k)]
        tasks, deaths, rows, masses = zip(*terms, strict=True)
        base = w / self.unit
        self.task, self.rows = np.array(tasks), np.array(rows) * base
        self.mass = np.array([share * base[tied].sum() for share, tied in zip(masses, deaths, strict=True)])
        self.known = np.array([tied * base / base[tied].sum() for tied in deaths])  # who died, as probabilities
        self.of_task = (self.task == np.arange(event.shape[1])[:, None]).astype(float)

    @staticmethod
    def _terms(event, time, strata, ties, k):
        """Task, tied deaths, how much each sample counts that is at risk, and the share of the tie's weight."""
        for stratum in np.unique(strata):
            for moment in np.unique(time[event & (strata == stratum)]):
                at_risk = (strata == stratum) & (time >= moment)
                tied = at_risk & event & (time == moment)
                n_terms = tied.sum() if ties == "efron" else 1
                for number in range(n_terms):
                    yield k, tied, at_risk - tied * (number / n_terms), 1.0 / n_terms

    def choices(self, Z):
        """Logarithms of the sums over those at risk, and the probabilities of each choice."""
        logs = np.where(self.rows > 0, Z.T[self.task], -np.inf)
        top = logs.max(axis=1)
        odds = self.rows * np.exp(logs - top[:, None])
        sums = odds.sum(axis=1)
        return top + np.log(sums), odds / sums[:, None]

    def value(self, Z):
        return self.unit * (self.mass @ self.choices(Z)[0] - (self.died * Z).sum())

    def residual(self, P):
        return self.unit * (self.died - (self.of_task @ (self.mass[:, None] * P)).T)

    def dual(self, P):
        ratios = np.where(P > 0, P, 1) / np.where(P > 0, self.rows, 1)
        return -self.unit * (self.mass @ (P * np.log(ratios)).sum(axis=1))


def huber_center(y, w):
    """Where the clipped residuals of one task add up to zero: by bisection between the extremes."""
    low, high = y.min(), y.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if w @ np.clip(y - middle, -DELTA, DELTA) > 0 else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True)
class Shape:
    """What the penalty sees of ``B``: the norms of the units of ``metric @ B``, a ridge on all of it, and signs.

    Columns of unit -1 are free. A row of zeros in the metric is a column that is left out.
    """

    metric: np.ndarray
    units: np.ndarray
    ridge: float = 0.0
    signs: np.ndarray | None = None

    @classmethod
    def plain(cls, d):
        return cls(np.eye(d), np.arange(d)) if d <= 1000 else cls(sp.eye_array(d).tocsr(), np.arange(d))

    @property
    def free(self):
        return np.flatnonzero(self.units < 0)

    @property
    def penalized(self):
        return np.flatnonzero(self.units >= 0)

    @cached_property
    def is_alone(self):
        """Whether every column is a unit."""
        return np.array_equal(self.units, np.arange(len(self.units)))

    def inverse(self):
        """What makes the columns that the penalty sees from those of X; zero columns for what it does not see."""
        if sp.issparse(self.metric):
            return self.metric
        A = np.zeros_like(self.metric)
        for unit in range(self.units.max(initial=-1) + 1):
            rows = np.ix_(self.units == unit, self.units == unit)
            A[rows] = np.linalg.pinv(self.metric[rows], rcond=1e-7)
        return A

    def norms(self, V):
        """Norms of the units of coefficients, or correlations, that the penalty sees."""
        squares = (V * V).sum(axis=1)
        if self.is_alone:
            return np.sqrt(squares)
        found = np.zeros(self.units.max(initial=-1) + 1, dtype=V.dtype)
        np.add.at(found, self.units[self.penalized], squares[self.penalized])
        return np.sqrt(found)

    def projected(self, V):
        if self.signs is None:
            return V
        return np.where((self.signs[:, None] * V < 0.0) & (self.units >= 0)[:, None], 0.0, V)

    def without(self, rows):
        keep = np.delete(np.arange(len(self.units)), rows)
        metric = self.metric[keep][:, keep]
        units = self.units[keep]
        units[units >= 0] = np.unique(units[units >= 0], return_inverse=True)[1]
        return Shape(metric, units, self.ridge, None if self.signs is None else self.signs[keep])


@dataclass(frozen=True)
class Data:
    """One problem as plain double-precision arrays; weights are (n, 1), or (n, q) and zero for missing targets."""

    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    lam: np.ndarray
    loss: str
    fit_intercept: bool
    cox: Cox | None = None  # with `Y` the events
    shape: Shape | None = None
    offset: np.ndarray | None = None

    @classmethod
    def of(cls, X, Y, lam, loss, fit_intercept, sample_weight, survival=None, shape=None, offset=None):
        """`survival` are times, strata and ties of the Cox loss, whose `Y` says who died."""
        w = np.ones(len(X)) if sample_weight is None else sample_weight
        w = w[:, None] if w.ndim == 1 else w
        if np.isnan(Y).any():
            w = w * ~np.isnan(Y)
            Y = np.nan_to_num(Y)
        Y = Y / Y.sum(axis=1, keepdims=True) if loss == "multinomial" else Y
        there = (w > 0).any(axis=1)
        cox = None
        if survival is not None:
            time, strata, ties = survival
            cox = Cox(Y[there] > 0, time[there], strata[there], ties, w[there, 0])
        shape = Shape.plain(X.shape[1]) if shape is None else shape
        offset = None if offset is None else (np.reshape(offset, (len(X), -1)) * np.ones(Y.shape))[there]
        return cls(X[there], Y[there], w[there], lam, loss, fit_intercept, cox, shape, offset)

    @property
    def ignores_level(self) -> bool:
        """Whether columns may be centered: an intercept takes up the rest, or the loss does not see it."""
        return self.fit_intercept or self.cox is not None

    @property
    def totals(self):
        return self.w.sum(axis=0)

    @property
    def pooled_mean(self):
        """Means of the columns over all that was observed."""
        if not self.ignores_level:
            return np.zeros(self.X.shape[1])
        pooled = self.w.sum(axis=1)
        return pooled @ self.X / pooled.sum()

    def task_mean(self, V):
        return (self.w * V).sum(axis=0) / self.totals

    def without(self, rows):
        """The problem without some rows of B; their units take the smallest weights with them."""
        keep = np.delete(np.arange(self.X.shape[1]), rows)
        shape = self.shape.without(rows)
        return replace(self, X=self.X[:, keep], lam=self.lam[: shape.units.max(initial=-1) + 1], shape=shape)

    def shifted(self, Z):
        return Z if self.offset is None else Z + self.offset

    def objective(self, B, intercept) -> Long:
        """The objective, evaluated in extended precision; infinite where signs are wrong."""
        Z = self.shifted(self.X.astype(Long) @ B.astype(Long) + np.asarray(intercept, dtype=Long))
        if np.any(self.shape.projected(B) != B):
            return Long(np.inf)
        seen = B.astype(Long) if sp.issparse(self.shape.metric) else self.shape.metric.astype(Long) @ B.astype(Long)
        norms = np.sort(self.shape.norms(seen))[::-1]
        penalty = norms @ self.lam.astype(Long) + Long(self.shape.ridge) / 2 * (norms @ norms)
        if self.cox is not None:
            return self.cox.value(Z) + penalty
        if self.loss in SEPARABLE:
            losses = SEPARABLE[self.loss].cost(Z, self.Y)
        elif self.loss == "squared":
            losses = (self.Y - Z) ** 2 / 2
        else:
            top = Z.max(axis=1, keepdims=True)
            losses = np.log(np.exp(Z - top).sum(axis=1)) + (self.Y * (top - Z)).sum(axis=1)
            return self.w[:, 0].astype(Long) @ losses + penalty
        return np.where(self.w > 0, self.w * losses, 0.0).sum() + penalty

    def residual(self, B, intercept, precision=float):
        """Minus the gradient of the loss in the predictor."""
        Z = self.shifted(self.X.astype(precision) @ B.astype(precision) + intercept)
        if self.cox is not None:
            return self.cox.residual(self.cox.choices(Z)[1])
        if self.loss in SEPARABLE:
            Z = SEPARABLE[self.loss].mean(Z, self.Y)
        elif self.loss == "multinomial":
            odds = np.exp(Z - Z.max(axis=1, keepdims=True))
            Z = odds / odds.sum(axis=1, keepdims=True)
        return np.where(self.w > 0, self.w * (self.Y - Z), 0.0)

    def evaluation_error(self, B, intercept, value) -> float:
        """What extended precision can be wrong by in `objective`: it squares residuals of large numbers."""
        reach = np.abs(self.Y).max() + (np.abs(self.X) @ np.abs(B)).max(initial=0.0) + np.max(np.abs(intercept))
        reach += 0.0 if self.offset is None else np.abs(self.offset).max()
        total = (self.w * np.ones(self.Y.shape)).sum(axis=0).max()
        if self.loss not in SEPARABLE and self.cox is None:
            return float(32 * np.finfo(Long).eps * (np.abs(value) + np.sqrt(2 * np.abs(value) * total) * reach))
        sizes = (self.w * np.abs(self.Y)).sum(axis=0) + self.slopes(B, intercept)  # predictors multiply both
        return float(32 * np.finfo(Long).eps * (np.abs(value) + sizes.sum() * (1.0 + reach)))

    def slopes(self, B, intercept):
        """How much the loss may change, to first order, with the predictors of each task."""
        return np.abs(self.residual(B, intercept)).sum(axis=0)

    def scale(self) -> float:
        """Loss of the model without features, less what no model can avoid."""
        if self.cox is not None:
            return self.null_loss() - float(self.cox.dual(self.cox.known))
        if self.loss not in SEPARABLE or self.loss == "huber":
            return self.null_loss()
        return self.null_loss() - float(np.sum(self.w * SEPARABLE[self.loss].dual(self.Y, self.Y)))

    def null_loss(self) -> float:
        """Loss of the model without features, but for those that are free."""
        return float(self.objective(*self.null_model))

    @cached_property
    def null_model(self):
        """Coefficients, of free columns alone, and intercept."""
        B, free = np.zeros((self.X.shape[1], self.Y.shape[1])), self.shape.free
        if self.offset is None and len(free) == 0:
            return B, self._null_intercept()
        E = self.block(self.X)
        if E.shape[1] == 0:
            return B, np.zeros(self.Y.shape[1])
        start = np.zeros((E.shape[1], self.Y.shape[1]))
        if self.fit_intercept and self.loss != "huber":
            start[-1] = self._null_intercept()
        found = newton(self, E, start)
        B[free] = found[: len(free)]
        return B, found[-1] if self.fit_intercept else np.zeros(self.Y.shape[1])

    def block(self, X):
        """Free columns and the constant."""
        free = X[:, self.shape.free]
        return np.column_stack([free, np.ones(len(X))]) if self.fit_intercept else free

    def _null_intercept(self):
        if not self.fit_intercept:
            return np.zeros(self.Y.shape[1])
        mean = self.task_mean(self.Y)
        if self.loss == "huber":
            W = self.w * np.ones(self.Y.shape)
            return np.array([huber_center(y[w > 0], w[w > 0]) for y, w in zip(self.Y.T, W.T, strict=True)])
        if self.loss in SEPARABLE:
            return SEPARABLE[self.loss].null(mean)
        return mean if self.loss == "squared" else np.log(np.maximum(mean, 1e-300))

    # Parts of the loss of a predictor, for the solver below ---------------------------------------------

    def loss_and_residual(self, Z, Y):
        """Loss and residual at a predictor without its offset."""
        S = self.shifted(Z)
        if self.cox is not None:
            logs, P = self.cox.choices(S)
            return self.cox.unit * (self.cox.mass @ logs - np.vdot(self.cox.died, S)), self.cox.residual(P)
        if self.loss == "squared":
            R = self.w * (Y - S)
            return 0.5 * np.vdot(R, Y - S), R
        if self.loss in SEPARABLE:
            kind = SEPARABLE[self.loss]
            costs = kind.cost(S, Y)
            return np.where(self.w > 0, self.w * costs, 0.0).sum(), np.where(
                self.w > 0, self.w * (Y - kind.mean(S, Y)), 0.0
            )
        below = S.max(axis=1, keepdims=True) - S
        odds = np.exp(-below)
        sums = odds.sum(axis=1, keepdims=True)
        value = self.w[:, 0] @ (np.log(sums[:, 0]) + np.einsum("ik,ik->i", Y, below))
        return value, self.w * (Y - odds / sums)

    def hessians(self, Z, E):
        """Second derivatives in coefficients of E, of all tasks together."""
        S, (k, q) = self.shifted(Z), (E.shape[1], self.Y.shape[1])
        H = np.zeros((k, q, k, q))
        if self.loss == "multinomial":
            odds = np.exp(S - S.max(axis=1, keepdims=True))
            P = odds / odds.sum(axis=1, keepdims=True)
            for a in range(q):
                for b in range(q):
                    h = self.w[:, 0] * (P[:, a] * (a == b) - P[:, a] * P[:, b])
                    H[:, a, :, b] = E.T @ (h[:, None] * E)
        else:
            h = np.ones_like(S) if self.loss == "squared" else SEPARABLE[self.loss].bend(S, self.Y)
            h = np.where(self.w > 0, self.w * h, 0.0)
            for a in range(q):
                H[:, a, :, a] = E.T @ (h[:, [a]] * E)
        return H.reshape(k * q, k * q)


def newton(data, E, start, Z=0.0):
    """Coefficients of some columns that minimize the loss beside a predictor: damped steps until rounding."""
    c = start
    value, theta = data.loss_and_residual(Z + E @ c, data.Y)
    for _ in range(100):
        H, g = data.hessians(Z + E @ c, E), (E.T @ theta).ravel()
        if not np.isfinite(H.sum() + g.sum()):
            break
        ridge = 1e-13 * max(np.diagonal(H).max(initial=0.0), 1e-300)
        step = np.linalg.lstsq(H + ridge * np.eye(len(H)), g, rcond=1e-14)[0].reshape(c.shape)
        if not np.isfinite(step).all():
            break
        if np.vdot(g, step.ravel()) <= 1e-30 * abs(value):
            break
        length = 1.0
        for _ in range(60):
            new, new_theta = data.loss_and_residual(Z + E @ (c + length * step), data.Y)
            if new <= value + 1e-15 * abs(value):
                break
            length /= 2
        else:
            break
        is_over = value - new <= 1e-16 * abs(value) and np.linalg.norm(E.T @ new_theta) >= np.linalg.norm(E.T @ theta)
        c, value, theta = c + length * step, new, new_theta
        if is_over:
            break
    return c


@dataclass(frozen=True)
class Solution:
    B: np.ndarray
    intercept: np.ndarray
    primal: Long
    gap: float  # relative to the null loss
    converged: bool


def solve(data: Data, tol: float = 1e-11) -> Solution:
    """Proximal gradient with Barzilai-Borwein steps and non-monotone acceptance, checked by a duality gap."""
    with np.errstate(all="ignore"):
        return _Spectral(data).run(tol, 3000 if data.loss in ("squared", "multinomial") else 20_000)


class _Spectral:
    """On the columns that the penalty sees, those of the block last: free columns and the constant, scaled."""

    def __init__(self, data: Data):
        self.data, shape = data, data.shape
        self.mean = data.pooled_mean
        X = data.X - self.mean
        # What rounding leaves of constant columns is not a feature.
        pooled = data.w.sum(axis=1)
        spread = np.sqrt(pooled @ X**2 / pooled.sum())
        X = np.where(spread > 1e-13 * np.abs(self.mean), X, 0.0)
        self.squared = data.loss == "squared"
        self.inverse = shape.inverse()
        self.X = X[:, shape.penalized] @ self.inverse[shape.penalized][:, shape.penalized]
        self.seen = replace(shape, units=shape.units[shape.penalized])
        if shape.signs is not None:
            self.seen = replace(self.seen, signs=shape.signs[shape.penalized])
        self.d = self.X.shape[1]
        # The squared loss of samples with one weight each has its intercept in closed form.
        self.is_centered = self.squared and data.fit_intercept and data.w.shape[1] == 1 and not len(shape.free)
        self.center = np.zeros(data.Y.shape[1])
        Y = data.Y
        if self.squared and data.fit_intercept:
            offset = 0.0 if data.offset is None else data.offset
            self.center = data.task_mean(Y - offset)
            Y = Y - self.center
            Y = Y - data.task_mean(Y - offset)
        self.Y = Y
        E = X[:, shape.free]
        self.n_free = E.shape[1]
        norms = np.sqrt((data.w[:, :, None] * self.X[:, None, :] ** 2).sum(axis=0)).max(axis=0, initial=0.0)
        self.total = data.totals.max()
        longest = norms.max(initial=0.0) or 1.0
        lengths = np.sqrt(data.w.max(axis=1) @ E**2)
        self.free_scale = longest / np.where(lengths > 0.0, lengths, np.inf)
        self.scale = longest / np.sqrt(self.total)
        self.has_constant = data.fit_intercept and not self.is_centered
        parts = [self.X, E * self.free_scale] + [np.full((len(X), 1), self.scale)] * self.has_constant
        self.A = np.hstack(parts)
        self.E = self.A[:, self.d :]
        self.AT = np.ascontiguousarray(self.A.T)
        self.separable = SEPARABLE.get(data.loss)
        root = np.sqrt(data.w.max(axis=1, keepdims=True))
        self.lipschitz = self.first_curvature() * np.linalg.norm(root * self.A, 2) ** 2 or 1.0

    def first_curvature(self):
        """That of the loss, or where this has no bound, the largest of the model without features."""
        self.is_bounded = True
        if self.separable is None and self.data.cox is None:
            return 1.0 if self.squared else 0.5
        self.is_bounded = self.data.cox is None and np.isfinite(self.separable.curvature)
        if self.is_bounded:
            return self.separable.curvature
        theta = self.data.residual(*self.data.null_model)
        return np.max(self.data.Y - over(theta, self.data.w))

    def loss(self, Z):
        return self.data.loss_and_residual(Z, self.Y)

    def prox(self, V, lipschitz):
        """The units of `V` shrunken, but for the block, and the penalty of what is left."""
        out = V.copy()
        P = self.seen.projected(V[: self.d])
        step = 1.0 / (lipschitz + self.seen.ridge)
        P = P * (lipschitz * step)
        norms = self.seen.norms(P)
        order = norms.argsort()[::-1]
        sizes = norms[order]
        z = sizes - self.data.lam * step
        if (z[1:] > z[:-1]).any():
            z = isotonic_regression(z, increasing=False).x
        z = np.maximum(z, 0.0)
        factors = np.zeros(len(norms))
        factors[order] = z / np.maximum(sizes, TINY)
        out[: self.d] = P * factors[self.seen.units][:, None]
        return out, float(z @ self.data.lam + 0.5 * self.seen.ridge * (z @ z))

    def start(self):
        V = np.zeros((self.A.shape[1], self.Y.shape[1]))
        B, intercept = self.data.null_model
        if self.n_free:
            free = self.data.shape.free
            V[self.d : self.d + self.n_free] = B[free] / np.where(self.free_scale > 0, self.free_scale, np.inf)[:, None]
            intercept = intercept + self.mean[free] @ B[free]
        if self.has_constant:
            level = intercept - self.center
            V[-1] = (level if self.data.loss != "multinomial" else level - level.mean()) / self.scale
        return V

    def run(self, tol, max_iter):
        B = self.start()
        goal = tol * self.data.scale()
        value, theta = self.loss(self.A @ B)
        descent = self.AT @ theta
        recent = [value]
        lipschitz = self.lipschitz
        best = (np.inf, B)
        before = np.inf
        for iteration in range(max_iter + 1):
            if iteration % 20 == 0:
                gap = self.gap(B, theta)
                if gap < best[0]:
                    best = (gap, B)
                if not gap > goal or not np.isfinite(gap):
                    break
            if iteration % PATIENCE == 0:
                rate = best[0] / before
                if best[0] * rate ** (2 * (max_iter - iteration) / PATIENCE) > goal:
                    break  # at this rate it would not be there in twice the time that is left
                before = best[0]
            ceiling = max(recent[-5:])
            for doubling in range(100):
                new, penalty = self.prox(B + descent / lipschitz, lipschitz)
                move = new - B
                square = np.vdot(move, move)
                new_value, new_theta = self.loss(self.A @ new)
                objective = new_value + penalty
                accept = objective <= ceiling - 5e-5 * lipschitz * square + 1e-15 * abs(objective)
                if accept or (self.is_bounded and (iteration == 0 or lipschitz >= 4 * self.lipschitz)):
                    break
                if doubling == 99 or not lipschitz <= 1e20 * self.lipschitz:  # nor is it a number
                    return self.solution(*min(best, (self.gap(B, theta), B), key=lambda pair: pair[0])[::-1], goal)
                lipschitz *= 2
            new_descent = self.AT @ new_theta
            change = descent - new_descent
            inner = np.vdot(move, change)
            if square > 0 and inner > 0:
                long_step = (iteration // (1 if iteration < 200 else 4)) % 2
                lipschitz = inner / square if long_step else np.vdot(change, change) / inner
            lipschitz = max(lipschitz, 1e-8 * self.lipschitz)
            lipschitz = min(lipschitz, self.lipschitz) if self.is_bounded else lipschitz
            B, theta, descent = new, new_theta, new_descent
            recent.append(objective)
        return self.solution(best[1], best[0], goal)

    def gap(self, V, theta):
        """P - D in double precision; good to about 1e-13 of the null loss."""
        Z = self.A @ V
        primal = self.loss(Z)[0] + self.penalty(V)
        left = 0.0
        if self.E.shape[1]:
            theta, left = self.balanced(theta, Z)
        C = self.X.T @ theta
        ridge = self.seen.ridge
        scales = [self.longest(theta, self.gauge(C))]
        if ridge > 0.0:
            scales = [1.0, self.longest(theta, self.gauge(C - ridge * V[: self.d]))]
        return min(primal - self.dual(s, theta, C, Z) + left for s in scales)

    def gauge(self, C):
        norms = np.sort(self.seen.norms(self.seen.projected(C)))[::-1]
        return np.max(np.cumsum(norms) / np.cumsum(self.data.lam), initial=0.0)

    def longest(self, theta, gauge):
        """The best multiple of a dual point that is in the dual ball, as far as it is known."""
        bound = 1.0 / gauge if gauge > 0 else np.inf
        if not self.squared:
            return min(1.0, bound)
        square = np.sum(over(theta * theta, self.data.w))
        Y = self.Y if self.data.offset is None else self.Y - self.data.offset
        least = 0.0 if self.seen.signs is not None else -bound
        return np.clip(np.sum(theta * Y) / square, least, bound) if square > 0 else 0.0

    def dual(self, s, theta, C, Z):
        data, w = self.data, self.data.w
        value = 0.0 if data.offset is None else -s * np.sum(theta * data.offset)
        if self.seen.ridge > 0.0:
            conjugate = replace(self.seen, ridge=0.0)
            at = _prox_of(conjugate, s * C, data.lam)
            value -= np.sum(at * at) / (2 * self.seen.ridge)
        if self.squared:
            return value + s * np.sum(theta * self.Y) - 0.5 * s * s * np.sum(over(theta * theta, w))
        if data.cox is not None:
            chosen = data.cox.choices(data.shifted(Z))[1]
            return value + data.cox.dual((1 - s) * data.cox.known + s * chosen)
        P = self.Y - over(s * theta, w)
        if self.separable is not None:
            return value + np.sum(np.where(w > 0, w * self.separable.dual(P, self.Y), 0.0))
        P = np.maximum(P, 0.0)
        return value - np.sum(w * P * np.log(np.where(P > 0, P, 1.0)))

    def balanced(self, theta, Z):
        """A residual with which the columns of the block have no product, and what is left times coefficients."""
        w, data = self.data.w, self.data
        if self.n_free or self.squared:
            held = replace(data, Y=self.Y)
            found = newton(held, self.E, np.zeros((self.E.shape[1], Z.shape[1])), Z)
            theta = held.loss_and_residual(Z + self.E @ found, self.Y)[1]
            left = np.linalg.norm(self.E.T @ theta) * (1.0 + np.linalg.norm(Z) / self.scale / np.sqrt(len(Z)))
            return theta, float(left)
        W, Y = w * np.ones(self.Y.shape), self.Y
        total = W.sum(axis=0)
        if data.loss == "huber":
            sums, most = theta.sum(axis=0), DELTA * total
            return theta - (np.abs(sums) / (np.abs(sums) + most)) * (np.sign(sums) * W * DELTA + theta), 0.0
        P = Y - over(theta, W)
        if self.separable is not None:
            return W * (Y - self.separable.balanced(P, (W * P).sum(axis=0), (W * Y).sum(axis=0), total)), 0.0
        P = np.maximum(P, 0.0)
        has, wants = (w * P).sum(axis=0), (w * Y).sum(axis=0)
        kept = np.where(has > wants, wants / np.where(has > 0, has, 1.0), 1.0)
        lacks = np.maximum(wants - has, 0.0)
        if lacks.sum() == 0:
            return theta, 0.0
        Q = P * kept + (P * (1 - kept)).sum(axis=1, keepdims=True) * lacks / lacks.sum()
        return w * (Y - Q), 0.0

    def penalty(self, V):
        norms = self.seen.norms(V[: self.d])
        return float(np.sort(norms)[::-1] @ self.data.lam + 0.5 * self.seen.ridge * (norms @ norms))

    def solution(self, coefficients, gap, goal):
        shape = self.data.shape
        B = np.zeros((len(shape.units), self.Y.shape[1]))
        B[shape.penalized] = self.inverse[shape.penalized][:, shape.penalized] @ coefficients[: self.d]
        B[shape.free] = self.free_scale[:, None] * coefficients[self.d : self.d + self.n_free]
        intercept = np.zeros(self.Y.shape[1])
        if self.has_constant:
            intercept = self.scale * coefficients[-1]
        if self.data.fit_intercept:
            intercept = intercept + self.center - self.mean @ B
        primal = self.data.objective(B, intercept)
        return Solution(B, intercept, primal, float(max(gap, 0.0)), bool(gap <= goal))


def over(values, w):
    """Over the weights; zero where these are."""
    return np.where(w > 0, values / np.where(w > 0, w, 1.0), 0.0)


def _prox_of(shape, V, lam):
    """The proximal map of the penalty without its ridge."""
    P = shape.projected(V)
    norms = shape.norms(P)
    order = norms.argsort()[::-1]
    z = np.maximum(isotonic_regression(norms[order] - lam, increasing=False).x, 0.0)
    factors = np.zeros(len(norms))
    factors[order] = z / np.maximum(norms[order], TINY)
    return P * factors[shape.units][:, None]
