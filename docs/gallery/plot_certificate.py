"""
What the certificate proves
===========================

That a solver has stopped says little about how accurate its solution is. Fits of groupowl have a duality gap: the
objective is above its minimum by at most the gap, whatever the solver did. The same gap proves that features are zero
in every solution. This example shows how both statements become sharper while a solver runs.

The data are the 442 patients of scikit-learn's diabetes data, with products of up to three of their ten measurements:
285 features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import groupowl as go
from groupowl.plotting import COLORS

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(PolynomialFeatures(3, include_bias=False).fit_transform(X))
n_features = X.shape[1]
Y = y - y.mean()
weights = go.weights.oscar(n_features)
lam = 0.3 * go.lam_max(X, Y, weights) * weights
null_loss = 0.5 * np.sum(Y**2)
exact = go.solve(X, Y, lam, tol=1e-13)
print(f"{len(exact.support)} of {n_features} features are selected")

# %%
# We run accelerated proximal gradient steps and compute the duality gap after each. The distance of the objective from
# the minimum is known here only because the problem was solved nearly exactly before. The gap is always known, and it
# is never below this distance.

run = go.solve(X, Y, lam, solver=go.APGD(check_every=1, restart="gradient"), tol=1e-9)
history = run.history
distance = history.primal - exact.primal
assert np.all(history.gap >= distance)

_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
visible = distance > 1e-11 * null_loss
left.plot(history.iteration, history.gap / null_loss, color=COLORS[2], linewidth=2, label="duality gap (proved)")
left.plot(
    history.iteration[visible],
    distance[visible] / null_loss,
    color=COLORS[5],
    linestyle="--",
    linewidth=2,
    label="distance from the minimum",
)
left.set(yscale="log", xlabel="iteration", ylabel="relative to the loss at zero")
left.grid(color="0.9")
left.legend()
right.step(history.gap / null_loss, n_features - history.n_active, where="post", color=COLORS[2], linewidth=2)
n_zero = n_features - len(exact.support)
right.axhline(n_zero, color="0.5", linestyle=":", label=f"rows that are zero: {n_zero}")
right.set(xscale="log", xlabel="duality gap, relative to the loss at zero", ylabel="rows proved zero")
right.invert_xaxis()
right.grid(color="0.9")
right.legend(loc="center right")

# %%
# The second picture shows that no row is proved zero at a relative gap of a tenth, and most of the zero rows at a gap
# of a thousandth. Rows are removed early if their correlation with the dual point, the norm of ``x_j^T theta``, is far
# below the weights. At the solution the selected rows have the largest correlations. The smaller the correlation of a
# row is, the larger is the gap at which the row is proved zero.

correlations = np.linalg.norm(X.T @ exact.theta, axis=1)
screened = run.screened_at >= 0
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(
    correlations[screened] / lam[0],
    history.gap[run.screened_at[screened]] / null_loss,
    "o",
    color=COLORS[2],
    markersize=4,
    alpha=0.5,
    label="proved zero, at this gap",
)
for j in exact.support:
    ax.axvline(
        correlations[j] / lam[0], color=COLORS[5], linewidth=0.8, label="selected" if j == exact.support[0] else None
    )
ax.set(yscale="log", xlabel="correlation with the dual point / largest weight", ylabel="relative gap at the proof")
ax.legend(loc="lower left")

# %%
# The certificate of an estimator says this for each feature. ``verify`` computes it again from the data and the
# coefficients, and does not rely on what the fit stored.

model = go.GroupOWLRegressor(10.0).fit(X, y)
print(model.certificate().counts)
print(model.verify(X, y))
