"""The judge's own search for the minimum."""

from __future__ import annotations

import numpy as np
from judge_exact import EPS, Long
from judge_problem import JudgeProblem, curvature, row_norms, softmax, solve_symmetric


def _pool(values):
    """Non-increasing least-squares fit, and the block that each entry belongs to."""
    blocks: list[list] = []
    for value in values:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] <= blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    fitted = [total / count for total, count in blocks for _ in range(count)]
    labels = [number for number, (_, count) in enumerate(blocks) for _ in range(count)]
    return fitted, labels


def _prox(V, lam):
    """Proximal operator of the penalty; the block of each row, -1 for zero."""
    norms = row_norms(V) if V.dtype == Long else np.sqrt(np.einsum("jk,jk->j", V, V))
    order = np.argsort(-norms, kind="stable")
    fitted, labels = _pool((norms[order] - lam).tolist() if V.dtype != Long else list(norms[order] - lam))
    new = np.zeros(len(V), dtype=V.dtype)
    new[order] = np.maximum(fitted, 0)
    blocks = np.zeros(len(V), dtype=int)
    blocks[order] = labels
    blocks[new == 0] = -1
    return V * np.divide(new, norms, out=np.zeros_like(new), where=norms > 0)[:, None], blocks


class Search:
    """Minimizes: a quadratic model by accelerated proximal steps in double precision, then Newton's method on the
    support with residuals in extended precision; ends as soon as the claim is decided and the own gap is small.
    """

    ROUNDS = 9

    def __init__(self, problem: JudgeProblem, start, public, claimed, needs_support: bool = True) -> None:
        self.problem, self.public, self.claimed, self.needs_support = problem, public, claimed, needs_support
        self.squared = problem.question.loss == "squared"
        self.upper, self.lower = Long(np.inf), Long(0)
        self.B, self.C = start
        shape = (problem.A.shape[1], problem.Y.shape[1])
        self.zero = np.zeros(shape, dtype=Long), np.zeros((problem.Q.shape[1], shape[1]), dtype=Long)
        self.start = start
        self.best = Long(np.inf)
        # Scales that bring columns, targets and coefficients near one for double precision.
        self.sx = _power(np.sqrt(problem.w @ problem.A**2).max(initial=Long(0)))
        self.sy = _power(np.sqrt(np.sum(problem.w[:, None] * problem.Y**2))) if self.squared else Long(1)
        self.A = problem.A / self.sx
        self.lam = problem.lam / self.sx / self.sy
        if self.squared:
            self.Y = problem.Y / self.sy
            self.G = self.A.T @ (problem.w[:, None] * self.A)
            self.H = self.A.T @ (problem.w[:, None] * self.Y)

    def run(self) -> Search:
        for number in range(self.ROUNDS):
            if number == 0:
                candidate = self._scaled(self.start)
            elif number == 1:
                candidate = self._scaled(self.zero)
                candidate = self._descend(*candidate, 300)
            else:
                candidate = self._descend(*self._scaled((self.B, self.C)), 150 * 2 ** min(number, 3))
            candidate = self._polish(*candidate)
            self._take(self._unscaled(candidate))
            if self._decided(number):
                break
        return self

    def _decided(self, number: int) -> bool:
        own = self.upper - self.lower
        error = 64 * EPS * (abs(self.upper)) + self.problem.bound_error
        if own <= error:
            return True
        if not np.isfinite(self.public):  # a restricted problem: all that can be had
            return own <= 1e-14 * self.upper and number >= 2
        confirmed = self.public - self.lower <= self.claimed + error
        return bool(confirmed and (not self.needs_support or own <= 1e-9 * self.upper or number >= 3))

    def _scaled(self, point):
        B, C = point
        return B * (self.sx / self.sy), C

    def _unscaled(self, point):
        B, C = point
        return B * (self.sy / self.sx), C

    def _take(self, point) -> None:
        """Keep a point if it is better, and the better bound."""
        B, C = point
        if not (np.isfinite(B).all() and np.isfinite(C).all()):
            return
        value = self.problem.value(B, C)
        if not value < self.best and np.isfinite(self.upper):
            return
        full, intercept = self.problem.outer(B, C)
        if not np.isfinite(full).all():
            return
        documented = self.problem.documented(full, intercept)
        self.lower = max(self.lower, self.problem.lower(B, C))
        if documented < self.upper:
            self.B, self.C, self.best, self.upper = B, C, value, documented

    # First order ------------------------------------------------------------------------------------------

    def _descend(self, B, C, steps: int):
        if not self.A.shape[1]:
            return self._newton_free(B, C) if not self.squared else (B, C)
        if self.squared:
            G, H = self.G.astype(float), self.H.astype(float)
            return self._accelerated(lambda D: G @ D, H, _largest(G), B.astype(float), steps).astype(Long), C
        value = self._value(B, C)
        for _ in range(12):
            new = self._proximal_newton(B, C, steps)
            if new is None:
                break
            B, C = new
            before, value = value, self._value(B, C)
            if before - value <= 1e-12 * value:
                break
        return B, C

    def _accelerated(self, apply, linear, lipschitz, B, steps):
        """FISTA with restarts for ``<B, apply(B)>/2 - <linear, B> + penalty``."""
        lipschitz = lipschitz * (1 + 1e-9) or 1.0
        lam = self.lam.astype(float) / lipschitz
        ahead, momentum = B, 1.0
        for _ in range(steps):
            new, _ = _prox(ahead + (linear - apply(ahead)) / lipschitz, lam)
            step = new - B
            if np.vdot(ahead - new, step) > 0:
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + ((momentum - 1) / following) * step
            B, momentum = new, following
            if np.abs(step).max(initial=0) <= 1e-14 * np.abs(new).max(initial=0):
                break
        return B

    def _proximal_newton(self, B, C, steps):
        """One step of the proximal Newton method with the unpenalized block eliminated; None where nothing is won."""
        A, Q, w = self.A, self.problem.Q, self.problem.w
        Z = A @ B + Q @ C
        P = softmax(Z)
        theta = w[:, None] * (self.problem.Y - P)
        both = np.column_stack([A, Q]).astype(float)
        H = curvature(both, w.astype(float), P.astype(float))
        size, K = B.size, B.shape[1]
        gradient = np.concatenate([(A.T @ theta).ravel(), (Q.T @ theta).ravel()]).astype(float)
        HB, HX, HC = H[:size, :size], H[:size, size:], H[size:, size:]
        if len(HC):
            HC = HC + 1e-12 * np.trace(HC) / len(HC) * np.eye(len(HC))
            pull = solve_symmetric(HC, gradient[size:])
            mixed = solve_symmetric(HC, HX.T)
            schur = HB - HX @ mixed
            linear = gradient[:size] - HX @ pull
        else:
            pull, mixed, schur, linear = np.zeros(0), np.zeros((0, size)), HB, gradient[:size]
        largest = _largest(schur)
        ridge = 1e-10 * largest
        schur = schur + ridge * np.eye(size)
        start = B.astype(float)
        linear = linear.reshape(B.shape) + (schur @ start.ravel()).reshape(B.shape)
        new = self._accelerated(lambda D: (schur @ D.ravel()).reshape(D.shape), linear, largest + ridge, start, steps)
        step = (new - start).astype(Long)
        step_free = (pull - mixed @ (new - start).ravel()).reshape(-1, K).astype(Long)
        before = self._value(B, C)
        length = Long(1)
        for _ in range(30):
            value = self._value(B + length * step, C + length * step_free)
            if value < before:
                return B + length * step, C + length * step_free
            length /= 2
        return None

    def _newton_free(self, B, C):
        for _ in range(100):
            new = self._proximal_newton(B, C, 0)
            if new is None:
                break
            C = new[1]
        return B, C

    def _value(self, B, C):
        """The objective in scaled coordinates (multinomial only)."""
        penalty = np.sort(row_norms(B))[::-1] @ self.lam
        return self.problem.loss(self.A @ B + self.problem.Q @ C) + penalty

    # Second order -----------------------------------------------------------------------------------------

    def _pulls(self, B, C):
        """Minus the gradients by B and C in scaled coordinates."""
        if self.squared:
            return self.A.T @ (self.problem.w[:, None] * (self.Y - self.A @ B)), 0 * C
        theta = self.problem.residual(self.A @ B + self.problem.Q @ C)
        return self.A.T @ theta, self.problem.Q.T @ theta

    def _polish(self, B, C):
        """Newton's method for the conditions of optimality with the zeros and ties that a proximal step shows."""
        d = self.A.shape[1]
        if d == 0:
            return self._newton_free(B, C) if not self.squared else (B, C)
        lipschitz = self.sx_lipschitz()
        for _ in range(3):
            pulls, _ = self._pulls(B, C)
            B, blocks = _prox(B + pulls / lipschitz, self.lam / lipschitz)
            found = self._newton(B, C, blocks)
            if found is None:
                return B, C
            B, C = found
        return B, C

    def sx_lipschitz(self) -> Long:
        if self.squared:
            return Long(_largest(self.G.astype(float))) or Long(1)
        scaled = np.sqrt(self.problem.w.astype(float))[:, None] * self.A.astype(float)
        return Long(0.5 * _largest(scaled.T @ scaled)) or Long(1)

    def _newton(self, B, C, blocks):
        """The nearest stationary point with these ties, or None where the iterations lead astray."""
        rows = np.flatnonzero(blocks >= 0)
        clusters = {label: np.flatnonzero(blocks[rows] == label) for label in sorted(set(blocks[rows].tolist()))}
        norms = row_norms(B)[rows]
        order = np.argsort(-norms, kind="stable")
        shares = np.zeros(len(rows), dtype=Long)
        shares[order] = self.lam[: len(rows)]
        totals = np.array([shares[members].sum() for members in clusters.values()], dtype=Long)
        tie = np.zeros((len(rows), len(clusters)))
        for number, members in enumerate(clusters.values()):
            tie[members, number] = 1
        x = B[rows]
        radius = np.array([norms[members].mean() for members in clusters.values()], dtype=Long)
        directions = x / norms[:, None]
        pulls = self._pulls(B, C)[0]
        mu = np.sum(directions * pulls[rows], axis=1)
        error, last = self._stationarity(rows, x, C, mu, radius, tie, totals), None
        for _ in range(12):
            size = _size(error)
            if last is not None and not size < 0.5 * last:
                break
            last = size
            matrix = self._kkt_matrix(rows, x, C, mu, tie)
            right = np.concatenate([np.ravel(part) for part in error]).astype(float)
            step = _least_squares(matrix, right)
            parts = np.split(step, np.cumsum([x.size, C.size if not self.squared else 0, len(mu)]))
            length = Long(1)
            for _ in range(6):
                trial = (
                    x + length * parts[0].reshape(x.shape),
                    C if self.squared else C + length * parts[1].reshape(C.shape),
                    mu + length * parts[2],
                    radius + length * parts[3],
                )
                new_error = self._stationarity(rows, trial[0], trial[1], trial[2], trial[3], tie, totals)
                if _size(new_error) < size:
                    break
                length /= 4
            else:
                break
            x, C, mu, radius = trial
            error = new_error
        if not np.isfinite(x).all() or not np.isfinite(C).all():
            return None
        result = np.zeros_like(B)
        result[rows] = x
        return result, C

    def _stationarity(self, rows, x, C, mu, radius, tie, totals):
        full = np.zeros((self.A.shape[1], x.shape[1]), dtype=Long)
        full[rows] = x
        pulls, free = self._pulls(full, C)
        norms = row_norms(x)
        directions = x / np.where(norms > 0, norms, 1)[:, None]
        return (
            pulls[rows] - mu[:, None] * directions,
            np.zeros((0, x.shape[1])) if self.squared else free,
            tie @ radius - norms,
            tie.T @ mu - totals,
        )

    def _kkt_matrix(self, rows, x, C, mu, tie):
        K = x.shape[1]
        norms = row_norms(x).astype(float)
        directions = x.astype(float) / norms[:, None]
        if self.squared:
            H = np.kron(self.G[np.ix_(rows, rows)].astype(float), np.eye(K))
        else:
            full = np.zeros((self.A.shape[1], K), dtype=Long)
            full[rows] = x
            P = softmax(self.A @ full + self.problem.Q @ C).astype(float)
            both = np.column_stack([self.A[:, rows], self.problem.Q]).astype(float)
            H = curvature(both, self.problem.w.astype(float), P)
            f = self.problem.Q.shape[1]
            for k in range(f):  # a constant of all classes changes nothing; it stays where it is
                at = (len(rows) + k) * K
                H[at : at + K, at : at + K] += np.trace(H[at : at + K, at : at + K]) / K**2 + 1e-300
        s, total, c = len(rows), len(H), tie.shape[1]
        for j in range(s):
            u = directions[j]
            H[j * K : (j + 1) * K, j * K : (j + 1) * K] += float(mu[j]) / norms[j] * (np.eye(K) - np.outer(u, u))
        matrix = np.zeros((total + s + c, total + s + c))
        matrix[:total, :total] = H
        for j in range(s):
            matrix[j * K : (j + 1) * K, total + j] = directions[j]
            matrix[total + j, j * K : (j + 1) * K] = directions[j]
        matrix[total : total + s, total + s :] = -tie
        matrix[total + s :, total : total + s] = -tie.T
        return matrix


def _least_squares(matrix, right):
    """A solution of ``matrix x = right`` of least norm, after rows and columns are brought to a common size."""
    sizes = np.sqrt(np.abs(matrix).max(axis=1, initial=0))
    sizes = np.where(sizes > 0, sizes, 1)
    scaled = matrix / sizes[:, None] / sizes
    if not np.isfinite(scaled).all():
        return np.zeros(len(right))
    return np.linalg.lstsq(scaled, right / sizes, rcond=1e-13)[0] / sizes


def _size(error) -> Long:
    return max(np.abs(part).max(initial=Long(0)) for part in error)


def _largest(G) -> float:
    return float(np.linalg.eigvalsh(G)[-1]) if len(G) else 0.0


def _power(value: Long) -> Long:
    """The power of two near a positive number, 1 for zero."""
    return np.ldexp(Long(1), int(np.frexp(value)[1])) if value > 0 else Long(1)
