"""How well coefficients recover the truth: support, groups as clusters, prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from groupowl._typing import BoolArray, FloatArray, IndexArray
from groupowl.norm.kernels import cluster_labels, nonzero_rows, row_norms

from .fitting import TunedPath
from .simulation import Simulation


@dataclass(frozen=True)
class Scores:
    """Scores of one method on one data set.

    Attributes
    ----------
    support_f1 : float
        F1 score of the selected features.
    cluster_index : float
        Adjusted Rand index of the clusters and the true groups, over the active features.
    cluster_index_all : float
        The same over all features that are active or selected, each inactive feature a group of its own: clusters
        that take inactive features in lose.
    groups_whole : float
        Share of the active groups all of whose active members are selected.
    excess_error : float
        Mean squared error of the predicted signal on the test set, divided by the variance of the noise.
    n_selected : float
        Number of selected features.
    best_f1, best_cluster_index : float
        The largest along the path: what a tuning that knows the truth could reach.
    fraction : float
        Chosen strength, as a fraction of the one that selects nothing.
    at_end : float
        1 where the weakest strength of the grid was chosen, else 0.
    """

    support_f1: float
    cluster_index: float
    cluster_index_all: float
    groups_whole: float
    excess_error: float
    n_selected: float
    best_f1: float
    best_cluster_index: float
    fraction: float
    at_end: float


def score(path: TunedPath, data: Simulation, fractions: FloatArray) -> Scores:
    """Scores of a tuned path."""
    selected = nonzero_rows(path.B)
    active = data.groups > 0
    return Scores(
        support_f1=support_f1(selected, active),
        cluster_index=cluster_index(path.B, data.groups),
        cluster_index_all=cluster_index(path.B, data.groups, among=active | selected),
        groups_whole=groups_whole(selected, data.groups),
        excess_error=excess_error(path.B, data),
        n_selected=float(selected.sum()),
        best_f1=max(support_f1(nonzero_rows(B), active) for B in path.coefficients),
        best_cluster_index=max(cluster_index(B, data.groups) for B in path.coefficients),
        fraction=float(fractions[path.chosen]),
        at_end=float(path.chosen == len(fractions) - 1),
    )


def support_f1(selected: BoolArray, active: BoolArray) -> float:
    """``2 |selected and active| / (|selected| + |active|)``, the harmonic mean of precision and recall."""
    return 2.0 * float(np.sum(selected & active)) / float(selected.sum() + active.sum())


def cluster_index(B: FloatArray, groups: IndexArray, *, among: BoolArray | None = None) -> float:
    """Adjusted Rand index of rows of equal norm and ``groups``; 1 is perfect, 0 what chance gives.

    Clusters are those of :attr:`groupowl.SolveResult.clusters`. Features that are not selected, and in the truth
    those that are not active, are groups of their own: being zero together is no discovery. ``among`` restricts
    the features, by default to the active ones.
    """
    compared = groups > 0 if among is None else among
    clusters = _zeros_apart(cluster_labels(row_norms(B)))
    return float(adjusted_rand_score(_zeros_apart(groups)[compared], clusters[compared]))


def _zeros_apart(labels: IndexArray) -> IndexArray:
    """Each 0 becomes a number of its own, below 0."""
    return np.where(labels > 0, labels, -1 - np.arange(len(labels)))


def groups_whole(selected: BoolArray, groups: IndexArray) -> float:
    """Share of the groups all of whose members are selected."""
    return float(np.mean([selected[groups == group].all() for group in np.unique(groups[groups > 0])]))


def excess_error(B: FloatArray, data: Simulation) -> float:
    """``||X_test (B - B_true)||^2 / (n q noise^2)``: what prediction loses against the truth, in units of the noise."""
    return float(np.mean((data.X_test @ (B - data.B)) ** 2)) / data.noise**2
