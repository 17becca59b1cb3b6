"""
Which pixels matter: knockoffs with classes
===========================================

A classifier of handwritten digits uses many pixels. Which of them say something about the digit that the other pixels
do not? :class:`~groupowl.inference.KnockoffSelector` answers with a bound on the false discovery rate. It gives every
pixel a competitor, its *knockoff*, with the same correlations and no relation to the digit.

The images are real. To see false discoveries we add as many columns that are false for sure: pixels of other images,
drawn at random, so that they look like pixels and say nothing about the digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import groupowl as go
from groupowl.inference import KnockoffSelector

rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
varies = images.std(axis=0) > 0.1
pixels = images[:, varies]
strangers = pixels[rng.permutation(len(pixels))]
X = np.hstack([pixels, strangers])
n_pixels = pixels.shape[1]
print(f"{len(X)} images, {n_pixels} pixels that vary, as many columns that are false")

# %%
# The law of the pixels is not known: its covariance is estimated, and pixels are not normal. The promise is approximate
# then, which the columns that we know to be false let us check. One fit on pixels and knockoffs, with all ten classes,
# gives each column a statistic ``W``: positive where the column beats its knockoff.

selector = KnockoffSelector(fdr=0.1, random_state=0).fit(X, digits)
selector.summary()

# %%
# All selected columns, and the false ones among them.

n_false = int(selector.support_[n_pixels:].sum())
print(f"selected: {selector.support_.sum()}, of which false for sure: {n_false}")

# %%
# Cross-validation chooses alpha for prediction. It keeps false columns as long as they do no harm.

model = go.GroupOWLClassifierCV(weights="constant", standardize=True, alphas=20, eps=0.01, cv=3).fit(X, digits)
chosen = np.atleast_2d(model.coef_).any(axis=0)
print(f"cross-validation selects {chosen.sum()}, of which false for sure: {chosen[n_pixels:].sum()}")

# %%
# The statistics of the real pixels, where they are in the image, and those of the false columns beside them.

maps = []
for values in (selector.scores_[:n_pixels], selector.scores_[n_pixels:]):
    image = np.full(64, np.nan)
    image[varies] = values
    maps.append(image.reshape(8, 8))
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
largest = np.nanmax(np.abs(maps))
for ax, image, title in zip(axes, maps, ("pixels", "pixels of other images"), strict=True):
    drawn = ax.imshow(image, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(title=title, xticks=[], yticks=[])
figure.colorbar(drawn, ax=axes, label="W")

# %%
# The same as a histogram, with the threshold.

_, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
ax.hist(
    [selector.scores_[:n_pixels], selector.scores_[n_pixels:]], bins=25, label=["pixels", "other images"], stacked=True
)
ax.axvline(selector.threshold_, color="0.3", linestyle="--", label="threshold")
ax.set(xlabel="W", ylabel="columns")
ax.legend()
