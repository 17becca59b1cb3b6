"""The problem of a fit in coordinates that the judge can compute with: objectives and lower bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from judge_exact import EPS, Exact, Long


@dataclass(frozen=True)
class Question:
    """Data and settings as the user gave them.

    ``Y`` holds targets (n, q), or one-hot rows; ``lam`` is the full sequence of the penalized columns (alpha applied);
    ``mean`` says whether the weights are divided by their sum.
    """

    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    lam: np.ndarray
    loss: str = "squared"
    fit_intercept: bool = True
    standardize: bool = False
    unpenalized: tuple[int, ...] = ()
    mean: bool = True


@dataclass(frozen=True)
class JudgeProblem:
    """Penalized columns ``A`` orthogonal to an orthonormal unpenalized block ``Q``, both with weights in the norm.

    The predictor is ``A B + Q C``. Squared loss: ``Y`` and columns are multiplied by the roots of the weights, and what
    ``Q`` explains is taken off, so that ``C`` plays no role.
    """

    question: Question
    penalized: tuple[int, ...]
    free: tuple[int, ...]
    A: np.ndarray
    Q: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    lam: np.ndarray
    scale: np.ndarray  # of the penalized columns
    center: np.ndarray  # of all columns
    basis: np.ndarray  # unpenalized columns (centered) times this are Q
    explained: np.ndarray  # of the penalized columns by Q
    unexplained: np.ndarray  # what is left of their norms, relatively
    y_explained: np.ndarray
    bound_error: Long
    exact_X: Exact
    exact_Y: Exact

    @classmethod
    def of(cls, question: Question, left_out=()) -> JudgeProblem:
        there = question.w > 0
        X, Y = Exact.of(question.X[there]), Exact.of(question.Y[there])
        w = question.w[there].astype(Long)
        if question.mean:
            w = w / w.sum()
        d = question.X.shape[1]
        moved = (X - X[:1]).long()
        varies = moved.any(axis=0)
        means = X[0].long() + w @ moved / w.sum()
        center = means if question.fit_intercept else np.zeros(d, dtype=Long)
        columns = (X - Exact.of(center)).long()
        free = tuple(j for j in question.unpenalized if j not in set(left_out))
        gone = set(left_out) | set(free)
        if question.standardize or question.fit_intercept:
            gone |= set(np.flatnonzero(~varies).tolist())
        penalized = tuple(j for j in range(d) if j not in gone)
        scale = np.ones(len(penalized), dtype=Long)
        if question.standardize:
            about = moved[:, penalized] - w @ moved[:, penalized] / w.sum()
            scale = np.sqrt(w @ about**2 / w.sum())
        A = columns[:, penalized] / scale
        block = [np.ones(len(w), dtype=Long)[:, None]] if question.fit_intercept else []
        Q, basis = _orthonormal(np.column_stack([*block, columns[:, free]]), w)
        explained = Q.T @ (w[:, None] * A)
        lengths = np.sqrt(w @ A**2)
        A = A - Q @ explained
        A = A - Q @ (Q.T @ (w[:, None] * A))
        unexplained = np.sqrt(w @ A**2) / np.where(lengths > 0, lengths, 1)
        A[:, unexplained <= 1e-16] = 0
        lam = question.lam[: len(penalized)].astype(Long)
        if question.loss == "squared":
            y_center = Y[0].long() + w @ (Y - Y[:1]).long() / w.sum()
            targets = (Y - Exact.of(y_center)).long() if question.fit_intercept else Y.long()
            y_explained = Q.T @ (w[:, None] * targets)
            size = np.sqrt(np.sum(w[:, None] * targets**2))
            targets = targets - Q @ y_explained
            targets = targets - Q @ (Q.T @ (w[:, None] * targets))
            left = np.sqrt(np.sum(w[:, None] * targets**2))
            bound_error = 256 * EPS * size * (left + EPS * size)
            y_explained = (y_center if question.fit_intercept else 0 * y_center), y_explained
        else:
            targets, y_explained = question.Y[there].astype(Long), None
            bound_error = 256 * EPS * w.sum()
        return cls(
            question=replace(question, w=question.w[there]),
            penalized=penalized,
            free=free,
            A=A,
            Q=Q,
            Y=targets,
            w=w,
            lam=lam,
            scale=scale,
            center=center,
            basis=basis,
            explained=explained,
            unexplained=unexplained,
            y_explained=y_explained,
            bound_error=bound_error,
            exact_X=X,
            exact_Y=Y,
        )

    def without(self, rows) -> JudgeProblem:
        keep = np.delete(np.arange(len(self.penalized)), rows)
        return replace(
            self,
            penalized=tuple(self.penalized[k] for k in keep),
            A=self.A[:, keep],
            lam=self.lam[: len(keep)],
            scale=self.scale[keep],
            explained=self.explained[:, keep],
            unexplained=self.unexplained[keep],
        )

    # Between the coordinates ------------------------------------------------------------------------------

    def inner(self, B, intercept):
        """Public coefficients in the judge's coordinates, to double precision at least."""
        B = np.asarray(B).astype(Long)
        own = B[list(self.penalized)] * self.scale[:, None]
        Z = (self.exact_X @ Exact.of(B) + Exact.of(np.asarray(intercept).astype(Long))).long()
        return own, self.Q.T @ (self.w[:, None] * Z)

    def outer(self, B, C):
        """Coefficients of the columns as they were given, and the exact intercept."""
        d = self.question.X.shape[1]
        full = np.zeros((d, B.shape[1]), dtype=Long)
        full[list(self.penalized)] = B / self.scale[:, None]
        if self.question.loss == "squared":
            y_center, y_explained = self.y_explained
            C = y_explained
        block = self.basis @ (C - self.explained @ B)
        shift = np.zeros(B.shape[1], dtype=Long)
        if self.question.fit_intercept:
            shift, block = block[0], block[1:]
        full[list(self.free)] = block
        intercept = Exact.of(shift) - Exact.of(self.center) @ Exact.of(full)
        if self.question.loss == "squared":
            intercept = intercept + Exact.of(y_center)
        return full, intercept

    # Objectives -------------------------------------------------------------------------------------------

    def documented(self, B, intercept) -> Long:
        """The documented objective at coefficients of the columns as they were given, from exact predictors."""
        B = np.asarray(B).astype(Long)
        offset = intercept if isinstance(intercept, Exact) else Exact.of(np.asarray(intercept).astype(Long))
        Z = self.exact_X @ Exact.of(B) + offset
        if self.question.loss == "squared":
            losses = np.sum((Z - self.exact_Y).long() ** 2, axis=1) / 2
        else:
            labels = np.argmax(self.Y, axis=1)
            own = Exact(np.take_along_axis(Z.whole, labels[:, None], axis=1), Z.exponent)
            losses = _log_loss((Z - own).long())
        return self.w @ losses + self.penalty(B[list(self.penalized)] * self.scale[:, None])

    def penalty(self, B) -> Long:
        return np.sort(row_norms(B))[::-1] @ self.lam

    def value(self, B, C) -> Long:
        """The objective in the judge's coordinates."""
        return self.loss(self.A @ B + self.Q @ C) + self.penalty(B)

    def loss(self, Z) -> Long:
        if self.question.loss == "squared":
            return np.sum(self.w[:, None] * (self.Y - Z) ** 2) / 2
        return self.w @ _log_loss(Z - np.sum(self.Y * Z, axis=1, keepdims=True))

    def residual(self, Z):
        """Minus the gradient of the loss by the predictor."""
        if self.question.loss == "squared":
            return self.w[:, None] * (self.Y - Z)
        return self.w[:, None] * (self.Y - softmax(Z))

    # Lower bounds -----------------------------------------------------------------------------------------

    def lower(self, B, C) -> Long:
        """Dual value of a feasible point near the residual."""
        if self.question.loss == "squared":
            theta = self.residual(self.A @ B)
            theta = theta - self.w[:, None] * (self.Q @ (self.Q.T @ theta))
            gauge = self._gauge(theta)
            inner, square = np.sum(theta * self.Y), np.sum(theta**2 / self.w[:, None])
            if square == 0:
                return Long(0)
            factor = np.clip(inner / square, 0, 1 / gauge if gauge > 0 else Long(np.inf))
            return max(factor * inner - factor**2 * square / 2, Long(0))
        Z = self.A @ B + self.Q @ C
        losses = _log_loss(Z - np.sum(self.Y * Z, axis=1, keepdims=True))
        bounds = [Long(0)]
        for negligible in (1e-30, 1e-18, 1e-12):
            bounds.append(self._entropy_bound(Z, C, losses > negligible))
        return max(bounds)

    def _entropy_bound(self, Z, C, rows) -> Long:
        """The dual value without the samples that cost nothing (their loss is positive, so it remains a bound)."""
        if not rows.any():
            return Long(0)
        w, Y, Q, A = self.w[rows][:, None], self.Y[rows], self.Q[rows], self.A[rows]
        P = softmax(Z[rows])
        for _ in range(4):  # move the probabilities until the unpenalized block is balanced
            error = Q.T @ (w * (Y - P))
            if not Q.shape[1] or np.abs(error).max() <= EPS**2 * np.sqrt(w.sum()):
                break
            H = curvature(Q.astype(float), w[:, 0].astype(float), P.astype(float))
            s = solve_symmetric(H, error.astype(float).ravel()).reshape(error.shape).astype(Long)
            move = np.clip(Q @ s, -1, 1)  # at -1 a probability becomes 0
            P = P * (1 + move - np.sum(P * move, axis=1, keepdims=True))
            P = np.maximum(P, 0)
            P = P / P.sum(axis=1, keepdims=True)
        theta = w * (Y - P)
        norms = np.sort(row_norms(A.T @ theta))[::-1]
        gauge = np.max(np.cumsum(norms) / np.cumsum(self.lam)) if len(norms) else Long(0)
        factor = 1 / max(Long(1), gauge)
        P = Y - factor * (Y - P)
        left = np.abs(Q.T @ (w * (Y - P))).sum() if Q.shape[1] else Long(0)
        # Of the unpenalized coefficients at the optimum, generously; a predictor of 1 has the root of all weights.
        reach = 4 * (np.sqrt(w.sum()) + np.abs(C).max(initial=0))
        return -np.sum(w * P * np.log(np.where(P > 0, P, 1))) - left * reach

    def _gauge(self, theta) -> Long:
        norms = np.sort(row_norms(self.A.T @ theta))[::-1]
        return np.max(np.cumsum(norms) / np.cumsum(self.lam), initial=Long(0))


def row_norms(B):
    largest = np.abs(B).max(axis=1, initial=0)
    safe = np.where(largest > 0, largest, 1)
    return largest * np.sqrt(np.sum((B / safe[:, None]) ** 2, axis=1))


def _log_loss(D):
    """Logarithm of the sum of exponentials of differences to the true class (0 for that class itself)."""
    top = np.maximum(D.max(axis=1), 0)
    others = np.exp(D - top[:, None]).sum(axis=1) - np.exp(-top)  # the true class is added back below
    exact = np.where(D == 0, 0, np.exp(D)).sum(axis=1) + (np.sum(D == 0, axis=1) - 1)
    return np.where(top > 0, top + np.log(others + np.exp(-top)), np.log1p(exact))


def softmax(Z):
    odds = np.exp(Z - Z.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _orthonormal(F, w):
    """Columns ``Q = F basis``, orthonormal with the weights; Gram and Schmidt, twice, without dependent columns."""
    n, f = F.shape
    Q, basis = np.zeros((n, 0), dtype=Long), np.zeros((f, 0), dtype=Long)
    for j in range(f):
        column, combination = F[:, j], np.zeros(f, dtype=Long)
        combination[j] = 1
        length = np.sqrt(w @ column**2)
        for _ in range(3):
            part = Q.T @ (w * column)
            column, combination = column - Q @ part, combination - basis @ part
        left = np.sqrt(w @ column**2)
        if left > 1e-15 * length:
            Q = np.column_stack([Q, column / left])
            basis = np.column_stack([basis, combination / left])
    return Q, basis


def curvature(A, w, P):
    """Hessian of the multinomial loss by coefficients of the columns A, as a matrix over (column, class)."""
    a, K = A.shape[1], P.shape[1]
    S = P[:, :, None] * (np.eye(K) - P[:, None, :])
    return np.einsum("ia,ikl,ib->akbl", A, w[:, None, None] * S, A, optimize=True).reshape(a * K, a * K)


def solve_symmetric(H, g):
    """A least-squares solution of ``H x = g`` for a scaled positive semidefinite H."""
    diagonal = np.sqrt(np.maximum(np.diagonal(H), 0))
    safe = np.where(diagonal > 0, diagonal, 1)
    scaled = H / safe[:, None] / safe
    if not np.isfinite(scaled).all():
        return np.zeros_like(g)
    values, vectors = np.linalg.eigh(scaled)
    kept = values > 1e-13 * values[-1]
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    return (inverse / safe[:, None] / safe) @ g
