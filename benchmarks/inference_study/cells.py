"""The cells of the study: how data are drawn, and which features have an effect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import chi

#: Samples, features with an effect, and the false discovery rate that is asked for.
N_SAMPLES, N_TRUE, FDR = 500, 20, 0.1
#: Correlation of the noise of any two tasks, where it is correlated.
NOISE_CORRELATION = 0.8
# Norm of the coefficients of a true feature in units of the smallest one that all nulls stay below; classes and counts
# tell less about a predictor than its noisy values.
_SIZE = {"squared": 1.2, "multinomial": 3.0, "poisson": 1.2}


@dataclass(frozen=True)
class Cell:
    """A setting.

    Attributes
    ----------
    d, q : int
        Features and tasks, or classes.
    design : str
        "orthogonal", or "rho .5": normal columns with correlation ``.5^|j - k|``.
    noise : str
        "independent" or "correlated" tasks.
    signal : str
        Coefficients of true features in "random" directions, or all in one ("rank-one").
    loss : str
        Of the targets.
    """

    d: int
    q: int
    design: str
    noise: str = "independent"
    signal: str = "random"
    loss: str = "squared"

    @property
    def name(self) -> str:
        """One line that tells it apart."""
        kind = "" if self.loss == "squared" else f"{self.loss}, "
        return f"{kind}d={self.d}, q={self.q}, {self.design}, {self.noise} noise, {self.signal} signal"

    @property
    def rho(self) -> float:
        """Correlation of neighboring columns."""
        return 0.0 if self.design == "orthogonal" else float(self.design.removeprefix("rho "))

    @property
    def has_independent_columns(self) -> bool:
        return self.rho == 0.0

    def covariance(self) -> Any:
        """That of the columns."""
        return ar_covariance(self.d, self.rho)

    def noise_covariance(self) -> Any:
        """That of the noise of the tasks."""
        off = NOISE_CORRELATION if self.noise == "correlated" else 0.0
        return np.full((self.q, self.q), off) + (1.0 - off) * np.eye(self.q)


@dataclass(frozen=True)
class Data:
    """One draw."""

    cell: Cell
    X: Any
    Y: Any
    is_true: Any
    seed: int


@cache
def ar_covariance(d: int, rho: float) -> Any:
    """``rho^|j - k|``."""
    places = np.arange(d)
    distance = np.abs(places[:, None] - places)
    return np.where(distance == 0, 1.0, rho**distance)


def first_quantile(d: int, q: int) -> float:
    """The norm that the largest of d vectors of noise stays below with probability ``1 - FDR``, about."""
    return float(chi.isf(FDR / d, q))


def draw(cell: Cell, seed: int) -> Data:
    """Data of a cell; the same for all procedures, and with the same columns in all cells of a design."""
    X = _columns(cell, np.random.default_rng([seed, cell.d]))
    rng = np.random.default_rng([seed, cell.d, cell.q])
    is_true = np.zeros(cell.d, dtype=bool)
    is_true[rng.choice(cell.d, N_TRUE, replace=False)] = True
    Z = X @ _coefficients(cell, is_true, rng)
    if cell.loss == "squared":
        Y = Z + rng.standard_normal((N_SAMPLES, cell.q)) @ np.linalg.cholesky(cell.noise_covariance()).T
    elif cell.loss == "poisson":
        Y = rng.poisson(np.exp(np.clip(Z, None, 5.0))).astype(float)
    else:
        Y = np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)
    return Data(cell, X, Y, is_true, seed)


def _columns(cell: Cell, rng: np.random.Generator) -> Any:
    X = rng.standard_normal((N_SAMPLES, cell.d))
    if cell.design == "orthogonal":
        return np.linalg.qr(X - X.mean(axis=0))[0] * np.sqrt(N_SAMPLES)
    for j in range(1, cell.d):
        X[:, j] = cell.rho * X[:, j - 1] + np.sqrt(1.0 - cell.rho**2) * X[:, j]
    return X


def _coefficients(cell: Cell, is_true: Any, rng: np.random.Generator) -> Any:
    """Rows of one norm in units of the noise, in random directions or plus and minus one."""
    directions = rng.standard_normal((N_TRUE, cell.q))
    if cell.signal == "rank-one":
        directions = rng.choice([-1.0, 1.0], (N_TRUE, 1)) * directions[:1]
    if cell.loss == "multinomial":
        directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(cell.noise_covariance())
    root = vectors * np.sqrt(values) @ vectors.T
    B = np.zeros((cell.d, cell.q))
    B[is_true] = _SIZE[cell.loss] * first_quantile(cell.d, cell.q) / np.sqrt(N_SAMPLES) * directions @ root
    return B


#: A fraction of all combinations: every level of every factor, and the pairs of levels that procedures fail at.
CELLS = [
    Cell(200, 1, "orthogonal"),
    Cell(200, 5, "orthogonal"),
    Cell(200, 1, "rho 0"),
    Cell(200, 5, "rho 0"),
    Cell(200, 10, "rho 0"),
    Cell(200, 1, "rho .5"),
    Cell(200, 5, "rho .5"),
    Cell(200, 10, "rho .5"),
    Cell(200, 5, "rho .8"),
    Cell(200, 5, "rho 0", noise="correlated"),
    Cell(200, 5, "rho .5", signal="rank-one"),
    Cell(200, 5, "rho .5", noise="correlated", signal="rank-one"),
    Cell(1000, 1, "rho 0"),
    Cell(1000, 5, "rho 0"),
    Cell(1000, 10, "rho 0"),
    Cell(1000, 1, "rho .5"),
    Cell(1000, 5, "rho .5"),
    Cell(1000, 10, "rho .5"),
    Cell(1000, 5, "rho .8"),
    Cell(1000, 5, "rho 0", noise="correlated"),
    Cell(1000, 10, "rho .5", noise="correlated"),
    Cell(1000, 5, "rho 0", signal="rank-one"),
    Cell(1000, 10, "rho .5", signal="rank-one"),
    Cell(1000, 5, "rho .5", noise="correlated", signal="rank-one"),
    Cell(200, 4, "rho 0", loss="multinomial"),
    Cell(200, 4, "rho .5", loss="multinomial"),
    Cell(1000, 4, "rho 0", loss="multinomial"),
    Cell(200, 3, "rho 0", loss="poisson"),
    Cell(200, 3, "rho .5", loss="poisson"),
    Cell(1000, 3, "rho 0", loss="poisson"),
]
#: What ten minutes are enough for.
QUICK = [
    Cell(200, 5, "orthogonal"),
    Cell(200, 1, "rho 0"),
    Cell(200, 5, "rho 0"),
    Cell(200, 5, "rho .5"),
    Cell(200, 5, "rho 0", noise="correlated"),
    Cell(200, 5, "rho .5", noise="correlated", signal="rank-one"),
    Cell(1000, 5, "rho .5"),
    Cell(200, 4, "rho .5", loss="multinomial"),
]
