"""
Sample weights: two instruments of different precision
======================================================

Samples may have different weights. In this example a quarter of them come from a precise instrument, and the others
from one whose noise has three times the standard deviation. For squared loss the right weight of a sample is one over
the variance of its noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS, label_log_axis

settings = {"n_informative": 12, "group_size": 3, "structure": "block", "correlation": 0.8, "random_state": 5}
clean = go.datasets.make_correlated_groups(300, 100, 3, signal_to_noise=20.0, **settings)
rng = np.random.default_rng(0)
noise = np.where(np.arange(300) < 75, 6.0, 18.0)
Y = clean.Y + noise[:, None] * rng.standard_normal(clean.Y.shape)
scale = np.linalg.norm(clean.X @ clean.B) / np.linalg.norm(clean.Y)  # responses are multiples of X B

# %%
# There are three ways to use the data: all samples with equal weights, the precise instrument alone, or all samples
# with weights. A weight of 2 has the same effect as two copies of the sample, and a weight of 0 the same as leaving the
# sample out. For estimators and paths only the ratios of the weights matter.

precision = 1.0 / noise**2
fits = {
    "all samples alike": np.ones(300),
    "good instrument only": (noise == 6.0).astype(float),
    "weighted by precision": precision,
}
paths = {
    name: go.group_owl_path(clean.X, Y, weights="bh", alphas=30, eps=0.02, sample_weight=weight)
    for name, weight in fits.items()
}

# %%
# The first picture shows the error of the coefficients along the three paths, relative to the norm of the true
# coefficients. Weights are better than equal weights, and better than leaving out the less precise instrument, which
# still has information. The gain depends on the ratio of the noise levels: the less precise the second instrument is,
# the less it adds to the first.

_, left = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
target = clean.B.T / scale
styles = zip(paths.items(), (COLORS[0], COLORS[1], COLORS[2]), ("-", "--", "-."), strict=True)
for (name, path), color, style in styles:
    errors = np.linalg.norm(path.coefs - target[:, :, None], axis=(0, 1)) / np.linalg.norm(target)
    best = int(np.argmin(errors))
    left.plot(path.alphas / path.alpha_max, errors, color=color, linestyle=style, linewidth=2, label=name)
    left.plot(path.alphas[best] / path.alpha_max, errors[best], color=color, marker="o")
    print(f"{name:<22} smallest error {errors[best]:.2f}, {path.n_selected[best]} features there, 12 are true")
left.set(xscale="log", xlim=(1, 0.02), xlabel="alpha / alpha_max", ylabel="relative error of the coefficients")
left.set_ylim(bottom=0)
label_log_axis(left.xaxis)
left.legend(loc="upper center")
for name, color, marker in (("all samples alike", COLORS[0], "x"), ("weighted by precision", COLORS[2], "o")):
    path = paths[name]
    best = np.argmin(np.linalg.norm(path.coefs - target[:, :, None], axis=(0, 1)))
    right.plot(target.ravel(), path.coefs[:, :, best].ravel(), marker, color=color, label=name, markersize=5, alpha=0.7)
right.axline((0, 0), slope=1, color="0.6", linewidth=1)
right.set(xlabel="true coefficient", ylabel="estimate, at the best alpha of each path")
right.legend(loc="upper left")

# %%
# Finally we check that repeating samples and weighting them give the same solution.

weight = rng.integers(0, 4, size=300)
repeated = np.repeat(np.arange(300), weight)
by_weight = go.GroupOWLRegressor(alpha=2.0, tol=1e-10).fit(clean.X, Y, sample_weight=weight)
by_repetition = go.GroupOWLRegressor(alpha=2.0, tol=1e-10).fit(clean.X[repeated], Y[repeated])
print(f"largest difference of coefficients: {np.abs(by_weight.coef_ - by_repetition.coef_).max():.1e}")
