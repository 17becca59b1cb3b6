"""Simulated regressions with correlated groups of features, of which a few are active."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groupowl._typing import FloatArray, IndexArray
from groupowl.datasets import make_correlated_groups

#: Features in a group.
GROUP_SIZE = 5


@dataclass(frozen=True)
class Setting:
    """Everything that a study depends on.

    Attributes
    ----------
    n_samples : int
        Size of the training set, and of the validation set.
    n_test : int
        Size of the test set.
    n_features, n_tasks : int
        Shape of the coefficients.
    n_active_groups : int
        All features lie in groups of :data:`GROUP_SIZE`; so many of the groups have features with coefficients.
    signal_to_noise : float
        Ratio of the standard deviations of signal and noise, over all tasks.
    correlations : tuple of float
        Correlations within groups; features of different groups are independent.
    n_repetitions : int
        Data sets per variant and correlation, at least 2.
    n_alphas : int
        Strengths that each method is tuned over.
    smallest_fraction : float
        The weakest of them, as a fraction of the strength at which the method selects nothing.
    tol : float
        Duality gap of every solve, relative to the loss of the model without features.
    seed : int
        Of all random numbers.
    """

    n_samples: int = 60
    n_test: int = 1000
    n_features: int = 150
    n_tasks: int = 5
    n_active_groups: int = 4
    signal_to_noise: float = 1.0
    correlations: tuple[float, ...] = (0.5, 0.7, 0.9, 0.95, 0.99)
    n_repetitions: int = 20
    n_alphas: int = 17
    smallest_fraction: float = 0.08
    tol: float = 1e-6
    seed: int = 0

    @property
    def fractions(self) -> FloatArray:
        """Strengths to tune over, as fractions of the one that selects nothing, falling from 1."""
        return np.geomspace(1.0, self.smallest_fraction, self.n_alphas)


@dataclass(frozen=True)
class Variant:
    """A kind of truth: ``sizes`` are the factors of the members of an active group, 0 for inactive members."""

    title: str
    sizes: tuple[float, ...]


#: The first is what Group OWL is made for; the second does not flatter it.
VARIANTS = {
    "whole": Variant("whole groups, equal rows", (1.0, 1.0, 1.0, 1.0, 1.0)),
    "partial": Variant("3 of 5 members active, unequal rows", (1.5, 1.0, 0.5, 0.0, 0.0)),
}


@dataclass(frozen=True, eq=False)
class Simulation:
    """One data set with its truth.

    Attributes
    ----------
    X, Y : ndarray of shape (n_samples, n_features) and (n_samples, n_tasks)
        Training set.
    X_validation, Y_validation : ndarray
        Validation set of the same size.
    X_test : ndarray of shape (n_test, n_features)
        Test set; its responses are not needed, since the truth is known.
    B : ndarray of shape (n_features, n_tasks)
        True coefficients.
    groups : ndarray of int of shape (n_features,)
        Group of each active feature from 1, 0 for inactive features.
    noise : float
        Standard deviation of the noise.
    """

    X: FloatArray
    Y: FloatArray
    X_validation: FloatArray
    Y_validation: FloatArray
    X_test: FloatArray
    B: FloatArray
    groups: IndexArray
    noise: float


def simulate(setting: Setting, variant: str, correlation: float, repetition: int) -> Simulation:
    """Draw one data set.

    The random numbers depend on ``setting.seed`` and ``repetition`` alone: variants and correlations are compared on
    the same draws.

    Parameters
    ----------
    setting : Setting
        Sizes, noise and seed.
    variant : str
        A key of :data:`VARIANTS`.
    correlation : float
        Within groups.
    repetition : int
        Number of the data set, from 0.

    Returns
    -------
    Simulation
    """
    columns, errors = np.random.SeedSequence(setting.seed, spawn_key=(repetition,)).spawn(2)
    n = setting.n_samples
    drawn = make_correlated_groups(
        2 * n + setting.n_test,
        setting.n_features,
        setting.n_tasks,
        n_informative=setting.n_active_groups * GROUP_SIZE,
        group_size=GROUP_SIZE,
        correlation=correlation,
        structure="block",
        random_state=int(columns.generate_state(1)[0]),
    )
    B = drawn.B * np.tile(VARIANTS[variant].sizes, setting.n_features // GROUP_SIZE)[:, None]
    noise = signal_variance(B, correlation) ** 0.5 / setting.signal_to_noise
    X, X_validation, X_test = np.split(drawn.X, [n, 2 * n])
    error = noise * np.random.default_rng(errors).standard_normal((2 * n, setting.n_tasks))
    groups = np.where(B.any(axis=1), drawn.groups, 0)
    return Simulation(X, X @ B + error[:n], X_validation, X_validation @ B + error[n:], X_test, B, groups, noise)


def signal_variance(B: FloatArray, correlation: float) -> float:
    """Variance of ``x^T B``, averaged over tasks: ``tr(B^T C B) / q`` with the block correlation matrix C."""
    sums = B.reshape(-1, GROUP_SIZE, B.shape[1]).sum(axis=1)
    return float((1.0 - correlation) * np.sum(B**2) + correlation * np.sum(sums**2)) / B.shape[1]
