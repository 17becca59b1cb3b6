"""
What the certificate proves
===========================

That a solver has stopped says little about how accurate its solution is. Fits of groupowl have a duality gap: the
objective is above its minimum by at most the gap, whatever the solver did. The same gap proves that features are zero
in every solution. This example shows how both statements become sharper while a solver runs.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS

data = go.datasets.make_correlated_groups(120, 600, 3, correlation=0.6, unit_norm=True, random_state=0)
weights = go.weights.oscar(600)
lam = 0.35 * go.lam_max(data.X, data.Y, weights) * weights
null_loss = 0.5 * np.sum(data.Y**2)
exact = go.solve(data.X, data.Y, lam, tol=1e-13)

# %%
# We run accelerated proximal gradient steps and compute the duality gap after each. The distance of the objective from
# the minimum is known here only because the problem was solved nearly exactly before. The gap is always known, and it
# is never below this distance.

run = go.solve(data.X, data.Y, lam, solver=go.APGD(check_every=1, restart="gradient"), tol=1e-9)
history = run.history
distance = history.primal - exact.primal
assert np.all(history.gap >= distance)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
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
right.step(history.gap / null_loss, 600 - history.n_active, where="post", color=COLORS[2], linewidth=2)
right.axhline(
    600 - len(exact.support), color="0.5", linestyle=":", label=f"rows that are zero: {600 - len(exact.support)}"
)
right.set(xscale="log", xlabel="duality gap, relative to the loss at zero", ylabel="rows proved zero")
right.invert_xaxis()
right.grid(color="0.9")
right.legend(loc="center right")

# %%
# The right panel shows that no row is proved zero at a relative gap of a tenth, and nearly all zero rows at a gap of a
# thousandth. Rows are removed early if their correlation with the dual point, the norm of ``x_j^T theta``, is far below
# the weights. At the solution the selected rows have the largest correlations. The smaller the correlation of a row is,
# the larger is the gap at which the row is proved zero.

correlations = np.linalg.norm(data.X.T @ exact.theta, axis=1)
screened = run.screened_at >= 0
figure, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
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

model = go.GroupOWLRegressor(0.05).fit(data.X, data.Y)
print(model.certificate().counts)
print(model.verify(data.X, data.Y))
