"""A second opinion: a small solver and a judge in extended precision that share no code with the package."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
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
class Data:
    """One problem as plain double-precision arrays; `w` and `lam` as given."""

    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    lam: np.ndarray
    loss: str
    fit_intercept: bool
    cox: Cox | None = None  # with `Y` the events

    @classmethod
    def of(cls, X, Y, lam, loss, fit_intercept, sample_weight, survival=None):
        """`survival` are times, strata and ties of the Cox loss, whose `Y` says who died."""
        w = np.ones(len(X)) if sample_weight is None else sample_weight
        Y = Y / Y.sum(axis=1, keepdims=True) if loss == "multinomial" else Y
        there = w > 0
        cox = None
        if survival is not None:
            time, strata, ties = survival
            cox = Cox(Y[there] > 0, time[there], strata[there], ties, w[there])
        return cls(X[there], Y[there], w[there], lam, loss, fit_intercept, cox)

    @property
    def ignores_level(self) -> bool:
        """Whether columns may be centered: an intercept takes up the rest, or the loss does not see it."""
        return self.fit_intercept or self.cox is not None

    def without(self, rows):
        """The problem without some rows of B; they take the smallest weights with them."""
        keep = np.delete(np.arange(self.X.shape[1]), rows)
        return replace(self, X=self.X[:, keep], lam=self.lam[: len(keep)])

    def objective(self, B, intercept) -> Long:
        """The objective, evaluated in extended precision."""
        Z = self.X.astype(Long) @ B.astype(Long) + np.asarray(intercept, dtype=Long)
        norms = np.sort(np.sqrt((B.astype(Long) ** 2).sum(axis=1)))[::-1]
        penalty = norms @ self.lam.astype(Long)
        if self.cox is not None:
            return self.cox.value(Z) + penalty
        if self.loss in SEPARABLE:
            losses = SEPARABLE[self.loss].cost(Z, self.Y).sum(axis=1)
        elif self.loss == "squared":
            losses = ((self.Y - Z) ** 2).sum(axis=1) / 2
        else:
            top = Z.max(axis=1, keepdims=True)
            losses = np.log(np.exp(Z - top).sum(axis=1)) + (self.Y * (top - Z)).sum(axis=1)
        return self.w.astype(Long) @ losses + penalty

    def residual(self, B, intercept, precision=float):
        """Minus the gradient of the loss in the predictor."""
        Z = self.X.astype(precision) @ B.astype(precision) + intercept
        if self.cox is not None:
            return self.cox.residual(self.cox.choices(Z)[1])
        if self.loss in SEPARABLE:
            Z = SEPARABLE[self.loss].mean(Z, self.Y)
        elif self.loss == "multinomial":
            odds = np.exp(Z - Z.max(axis=1, keepdims=True))
            Z = odds / odds.sum(axis=1, keepdims=True)
        return self.w[:, None] * (self.Y - Z)

    def evaluation_error(self, B, intercept, value) -> float:
        """What extended precision can be wrong by in `objective`: it squares residuals of large numbers."""
        reach = np.abs(self.Y).max() + (np.abs(self.X) @ np.abs(B)).max(initial=0.0) + np.max(np.abs(intercept))
        if self.loss not in SEPARABLE and self.cox is None:
            return float(32 * np.finfo(Long).eps * (value + np.sqrt(2 * value * self.w.sum()) * reach))
        sizes = self.w @ np.abs(self.Y) + self.slopes(B, intercept)  # predictors multiply both
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
        return self.null_loss() - float(np.sum(self.w[:, None] * SEPARABLE[self.loss].dual(self.Y, self.Y)))

    def null_loss(self) -> float:
        """Loss of the model without features."""
        zero = np.zeros((self.X.shape[1], self.Y.shape[1]))
        return float(self.objective(zero, self._null_intercept()))

    def _null_intercept(self):
        if not self.fit_intercept:
            return np.zeros(self.Y.shape[1])
        mean = self.w @ self.Y / self.w.sum()
        if self.loss == "huber":
            return np.array([huber_center(y, self.w) for y in self.Y.T])
        if self.loss in SEPARABLE:
            return SEPARABLE[self.loss].null(mean)
        return mean if self.loss == "squared" else np.log(np.maximum(mean, 1e-300))


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
    def __init__(self, data: Data):
        self.data = data
        self.total = data.w.sum()
        self.mean = data.w @ data.X / self.total if data.ignores_level else np.zeros(data.X.shape[1])
        X = data.X - self.mean
        # What rounding leaves of constant columns is not a feature.
        spread = np.sqrt(data.w @ X**2 / self.total)
        X = np.where(spread > 1e-13 * np.abs(self.mean), X, 0.0)
        self.root = np.sqrt(data.w)[:, None]
        self.squared = data.loss == "squared"
        Y = data.Y
        if self.squared and data.fit_intercept:
            self.center = data.w @ Y / self.total
            Y = Y - self.center
            Y = Y - data.w @ Y / self.total
        self.Y = Y
        self.X = X
        self.d = X.shape[1]
        self.free = data.fit_intercept and not self.squared
        norms = np.sqrt(data.w @ X**2)
        self.scale = (norms.max() or 1.0) / np.sqrt(self.total)
        self.A = np.column_stack([X, np.full(len(X), self.scale)]) if self.free else X
        self.AT = np.ascontiguousarray(self.A.T)
        self.separable = SEPARABLE.get(data.loss)
        self.lipschitz = self.first_curvature() * np.linalg.norm(self.root * self.A, 2) ** 2 or 1.0

    def first_curvature(self):
        """That of the loss, or where this has no bound, the largest of the model without features."""
        self.is_bounded = True
        if self.data.cox is not None:
            self.is_bounded = False
            zero = np.zeros((self.d, self.Y.shape[1]))
            return (self.Y - self.data.residual(zero, 0.0) / self.data.w[:, None]).max()
        if self.separable is None:
            return 1.0 if self.squared else 0.5
        self.is_bounded = np.isfinite(self.separable.curvature)
        return self.separable.curvature if self.is_bounded else np.exp(self.data._null_intercept()).max()

    def loss(self, Z):
        if self.data.cox is not None:
            logs, P = self.data.cox.choices(Z)
            cox = self.data.cox
            return cox.unit * (cox.mass @ logs - np.vdot(cox.died, Z)), cox.residual(P)
        if self.squared:
            R = self.Y - Z
            return 0.5 * np.vdot(self.data.w @ (R * R), np.ones(R.shape[1])), self.data.w[:, None] * R
        if self.separable is not None:
            value = self.data.w @ self.separable.cost(Z, self.Y).sum(axis=1)
            return value, self.data.w[:, None] * (self.Y - self.separable.mean(Z, self.Y))
        below = Z.max(axis=1, keepdims=True) - Z
        odds = np.exp(-below)
        sums = odds.sum(axis=1, keepdims=True)
        value = self.data.w @ (np.log(sums[:, 0]) + np.einsum("ik,ik->i", self.Y, below))
        return value, self.data.w[:, None] * (self.Y - odds / sums)

    def prox(self, V, lipschitz):
        """The rows of `V` shrunken, but for that of the intercept, and the penalty of what is left."""
        norms = np.sqrt(np.einsum("jk,jk->j", V[: self.d], V[: self.d]))
        order = norms.argsort()[::-1]
        sizes = norms[order]
        z = sizes - self.data.lam / lipschitz
        if (z[1:] > z[:-1]).any():
            z = isotonic_regression(z, increasing=False).x
        z = np.maximum(z, 0.0)
        factors = np.ones(len(V))
        factors[order] = z / np.maximum(sizes, TINY)
        return V * factors[:, None], float(z @ self.data.lam)

    def start(self):
        B = np.zeros((self.A.shape[1], self.Y.shape[1]))
        if self.free:
            logs = self.data._null_intercept()
            B[-1] = (logs if self.separable is not None else logs - logs.mean()) / self.scale
        return B

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
            while True:
                new, penalty = self.prox(B + descent / lipschitz, lipschitz)
                move = new - B
                square = np.vdot(move, move)
                new_value, new_theta = self.loss(self.A @ new)
                objective = new_value + penalty
                accept = objective <= ceiling - 5e-5 * lipschitz * square + 1e-15 * abs(objective)
                if accept or (self.is_bounded and (iteration == 0 or lipschitz >= 4 * self.lipschitz)):
                    break
                if not lipschitz <= 1e20 * self.lipschitz:  # nor is it a number
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

    def gap(self, B, theta):
        """P - D in double precision; good to about 1e-13 of the null loss."""
        w = self.data.w[:, None]
        Z = self.A @ B
        primal = self.loss(Z)[0] + self.penalty(B)
        if self.free:
            theta = self.balanced(theta)
        norms = np.sort(np.sqrt(((self.X.T @ theta) ** 2).sum(axis=1)))[::-1]
        gauge = np.max(np.cumsum(norms) / np.cumsum(self.data.lam))
        if self.squared:
            square = np.sum(theta * theta / w)
            bound = 1.0 / gauge if gauge > 0 else np.inf
            s = np.clip(np.sum(theta * self.Y) / square, -bound, bound) if square > 0 else 0.0
            return primal - (s * np.sum(theta * self.Y) - 0.5 * s * s * square)
        if self.data.cox is not None:
            s = 1.0 / max(1.0, gauge)
            return primal - self.data.cox.dual((1 - s) * self.data.cox.known + s * self.data.cox.choices(Z)[1])
        if self.separable is not None:
            return primal - np.sum(w * self.separable.dual(self.Y - theta / max(1.0, gauge) / w, self.Y))
        P = np.maximum(self.Y - theta / max(1.0, gauge) / w, 0.0)
        return primal + np.sum(w * P * np.log(np.where(P > 0, P, 1.0)))

    def balanced(self, theta):
        w = self.data.w[:, None]
        if self.data.loss == "huber":
            sums, most = theta.sum(axis=0), DELTA * self.total
            return theta - (np.abs(sums) / (np.abs(sums) + most)) * (np.sign(sums) * w * DELTA + theta)
        if self.separable is not None:
            P = self.Y - theta / w
            return w * (self.Y - self.separable.balanced(P, (w * P).sum(axis=0), (w * self.Y).sum(axis=0), self.total))
        P = np.maximum(self.Y - theta / w, 0.0)
        has, wants = (w * P).sum(axis=0), (w * self.Y).sum(axis=0)
        kept = np.where(has > wants, wants / np.where(has > 0, has, 1.0), 1.0)
        lacks = np.maximum(wants - has, 0.0)
        if lacks.sum() == 0:
            return theta
        Q = P * kept + (P * (1 - kept)).sum(axis=1, keepdims=True) * lacks / lacks.sum()
        return w * (self.Y - Q)

    def penalty(self, B):
        norms = np.sqrt((B[: self.d] ** 2).sum(axis=1))
        return float(np.sort(norms)[::-1] @ self.data.lam)

    def solution(self, coefficients, gap, goal):
        B = coefficients[: self.d]
        intercept = np.zeros(self.Y.shape[1])
        if self.free:
            intercept = self.scale * coefficients[-1] - self.mean @ B
        elif self.data.fit_intercept:
            intercept = self.center - self.mean @ B
        primal = self.data.objective(B, intercept)
        return Solution(B, intercept, primal, float(max(gap, 0.0)), bool(gap <= goal))
