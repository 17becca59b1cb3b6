"""
Wines: a path and its clusters
==============================

The wine data of scikit-learn have 13 chemical measurements of 178 wines from three growers. This example fits a
multinomial model along a path of decreasing ``alpha``. Features are selected for all growers together, and features
whose coefficients have exactly the same norm form a *cluster*.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import groupowl as go
from groupowl.plotting import COLORS, ClusterDisplay, CoefficientPathDisplay, label_log_axis

X, y = load_wine(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
path = go.group_owl_path(X, y, loss="multinomial", weights="bh", alphas=60, eps=0.01)
print(path)

# %%
# Lines on top of each other are features of equal norm. The penalty has kinks where two norms are equal, so norms stay
# equal over a range of alphas, until alpha is too small to hold them together.

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
CoefficientPathDisplay.from_result(path, ax=ax)

# %%
# The next picture compares the numbers of selected features and of clusters. A model with many features in few clusters
# has fewer degrees of freedom, which the information criteria of the CV estimators take into account.

n_clusters = np.array([point.clusters.max(initial=0) for point in path])
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(path.alphas, path.n_selected, color=COLORS[2], linewidth=2, label="features selected")
ax.plot(path.alphas, n_clusters, color=COLORS[5], linewidth=2, linestyle="--", label="clusters")
ax.set(xscale="log", xlabel="alpha", ylabel="number", xlim=(path.alphas[0], path.alphas[-1]))
label_log_axis(ax.xaxis)
ax.legend()

# %%
# This is the last point of the path with at most six features. Adjacent bars of one color form a cluster: their norms
# are exactly equal.

k = int(np.flatnonzero(path.n_selected <= 6)[-1])
point = path[k]
display = ClusterDisplay.from_result(point, feature_names=list(X.columns))
display.ax_.set_title(f"alpha = {point.alpha:.3g}: {point.n_selected} features in {point.clusters.max()} clusters")

# %%
# Equal norms do not mean equal coefficients: each feature has a coefficient for each grower. These are the coefficients
# of the same point.

clusters, coefs = path.clusters[:, k], path.coefs[:, :, k]
print("grower" + "".join(f"{grower:>8}" for grower in np.unique(y)) + "  cluster  feature")
for j in sorted(np.flatnonzero(clusters), key=lambda j: clusters[j]):
    print(" " * 6 + "".join(f"{value:8.2f}" for value in coefs[:, j]) + f"  {clusters[j]:>7}  {X.columns[j]}")

# sphinx_gallery_thumbnail_number = 1
