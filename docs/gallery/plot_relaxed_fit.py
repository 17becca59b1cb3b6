"""
A relaxed fit: select with the penalty, estimate without
========================================================

The penalty that selects features also shrinks their coefficients, and Group OWL makes the norms of a cluster equal.
``relaxed=True`` fits the selected features again by least squares, without penalty. This removes the shrinkage and also
its benefit, a smaller variance. It helps if few features are selected and the signal is strong.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS, CrossValidationDisplay, label_log_axis

settings = {"n_informative": 12, "group_size": 3, "structure": "block", "correlation": 0.5, "random_state": 2}
data = go.datasets.make_correlated_groups(1000, 120, 3, signal_to_noise=2.0, **settings)
X, Y = data.X[:200], data.Y[:200]
X_new, Y_new = data.X[200:], data.Y[200:]

# %%
# The picture shows the error on new samples along a path, for the penalized and the relaxed fit at each alpha. The
# relaxed fit has its smallest error at a larger alpha, with fewer features. The penalized fit needs a small alpha to
# shrink the true features less, and at a small alpha features without an effect are selected too.

alphas = np.geomspace(3.0, 0.05, 25)
errors = {"penalized": [], "relaxed": []}
n_selected = []
for alpha in alphas:
    model = go.GroupOWLRegressor(alpha, weights="bh", relaxed=True, tol=1e-5).fit(X, Y)
    penalized = X_new @ model.penalized_coef_.T + model.penalized_intercept_
    errors["penalized"].append(np.mean((Y_new - penalized) ** 2))
    errors["relaxed"].append(np.mean((Y_new - model.predict(X_new)) ** 2))
    n_selected.append(len(model.selected_features_))

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, values), color, style in zip(errors.items(), (COLORS[0], COLORS[5]), ("-", "--"), strict=True):
    best = int(np.argmin(values))
    ax.plot(alphas, values, color=color, linestyle=style, linewidth=2, label=f"{name}, {n_selected[best]} features")
    ax.plot(alphas[best], values[best], "o", color=color)
    print(f"{name:<10} best error on new samples {values[best]:.3f}, with {n_selected[best]} features (12 are true)")
ax.axhline(1.0, color="0.5", linewidth=1, linestyle=":", label="noise")
ax.set(xscale="log", xlim=(alphas[0], alphas[-1]), xlabel="alpha", ylabel="mean squared error on new samples")
ax.set_ylim(0, 3)
label_log_axis(ax.xaxis)
ax.legend()

# %%
# Cross-validation with ``relaxed=True`` relaxes the fits in the folds as well, so alpha is chosen for the relaxed fit.
# The estimator keeps both sets of coefficients, and its certificate is for the penalized ones. The right panel shows
# estimates against true coefficients: the penalized estimates are shrunk toward zero.

model = go.GroupOWLRegressorCV(weights="bh", alphas=25, eps=0.02, cv=5, relaxed=True).fit(X, Y)
true = data.groups > 0
factor = np.std(data.X @ data.B) / 2.0  # the generator scales the signal to twice the noise
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
CrossValidationDisplay.from_estimator(model, ax=left)
truth = data.B[true].T.ravel() / factor
for name, coef, color, marker in (
    ("penalized", model.penalized_coef_, COLORS[0], "x"),
    ("relaxed", model.coef_, COLORS[5], "o"),
):
    right.plot(truth, coef[:, true].ravel(), marker, color=color, label=name, alpha=0.8)
right.axline((0, 0), slope=1, color="0.6", linewidth=1)
right.set(xlabel="true coefficient", ylabel="estimate", title=f"{len(model.selected_features_)} features selected")
right.legend()
