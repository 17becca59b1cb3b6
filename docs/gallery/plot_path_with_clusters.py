"""
A path and its clusters
=======================

The penalty sorts the rows of ``B`` by norm and multiplies the largest norm by the largest weight. It has kinks where
two norms are equal, so norms of correlated features often become exactly equal. Features with equal norms form a
*cluster*. This example shows the clusters along a path of decreasing ``alpha``.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS, ClusterDisplay, CoefficientPathDisplay, label_log_axis

data = go.datasets.make_correlated_groups(
    100,
    60,
    4,
    n_informative=16,
    group_size=4,
    structure="block",
    correlation=0.9,
    signal_to_noise=2.0,
    random_state=3,
)
names = [f"noise {j}" if group == 0 else f"{'abcd'[group - 1]}{j % 4 + 1}" for j, group in enumerate(data.groups)]
path = go.group_owl_path(data.X, data.Y, weights="bh", alphas=60, eps=0.03)
print(path)

# %%
# Four groups of four features have an effect; their names start with a, b, c and d. Lines on top of each other are rows
# of equal norm. Eight features are selected within the first steps and have the same norm, until alpha is too small to
# keep their norms equal. Clusters may contain features of several groups: those of a and c share one line, and so does
# one of b for a while.

figure, ax = plt.subplots(figsize=(9, 4.8), layout="constrained")
CoefficientPathDisplay.from_result(path, feature_names=names, ax=ax)

# %%
# The next picture compares the numbers of selected features and of clusters. A model with many features in few clusters
# has fewer degrees of freedom, and the information criteria of the CV estimators take this into account.

n_clusters = np.array([point.clusters.max(initial=0) for point in path])
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.plot(path.alphas, path.n_selected, color=COLORS[2], linewidth=2, label="features selected")
ax.plot(path.alphas, n_clusters, color=COLORS[5], linewidth=2, linestyle="--", label="clusters")
ax.axhline(16, color="0.6", linewidth=1, linestyle=":", label="features that matter: 16, in 4 groups")
ax.set(xscale="log", xlabel="alpha", ylabel="number", xlim=(path.alphas[0], path.alphas[-1]))
label_log_axis(ax.xaxis)
ax.legend()

# %%
# This is the last point of the path with no more than 16 features. Adjacent bars of one color form a cluster; their
# norms are exactly equal.

point = [point for point in path if point.n_selected <= 16][-1]
display = ClusterDisplay.from_result(point, feature_names=names)
display.ax_.set_title(f"alpha = {point.alpha:.3g}: {point.n_selected} features in {point.clusters.max()} clusters")

# sphinx_gallery_thumbnail_number = 1
