"""
Which pixels tell digits apart
==============================

This example fits a multinomial model to scikit-learn's handwritten digits, which have 8 x 8 pixels. A row of ``B``
belongs to one pixel and has a coefficient for each of the ten classes. The penalty sets whole rows to zero, so a pixel
is selected for all classes or for none. The path shows how few pixels are enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import groupowl as go
from groupowl.plotting import COLORS

digits = load_digits()
X, X_new, y, y_new = train_test_split(
    digits.data / 16, digits.target, train_size=900, stratify=digits.target, random_state=0
)
path = go.group_owl_path(X, y, loss="multinomial", alphas=30, eps=0.02, tol=1e-4)

# %%
# The first picture shows the accuracy on held-out digits against the number of selected pixels, with one dot for each
# alpha. The second one shows the largest alpha at which each pixel is selected, relative to the smallest alpha that
# selects none. Pixels at the left and right edges are nearly always blank and are not selected.

coefs, intercepts = path.coefs, path.intercepts
accuracy = [np.mean(np.argmax(X_new @ coefs[:, :, i].T + intercepts[:, i], axis=1) == y_new) for i in range(len(path))]
is_selected = np.any(coefs != 0, axis=0)
entry = np.where(is_selected.any(axis=1), path.alphas[is_selected.argmax(axis=1)] / path.alpha_max, np.nan)

_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
left.plot(path.n_selected, accuracy, color=COLORS[2], marker="o")
left.set(xlabel="pixels selected, of 64", ylabel="accuracy on held-out digits", ylim=(0, 1))
left.grid(color="0.9")
image = right.imshow(np.log10(entry).reshape(8, 8), cmap="viridis")
right.set(xticks=[], yticks=[], title="where the path starts to read", facecolor="0.85")
bar = right.figure.colorbar(image, ax=right, label="alpha at entry / alpha_max")
bar.set_ticks(np.log10([0.02, 0.05, 0.1, 0.2, 0.5]), labels=["0.02", "0.05", "0.1", "0.2", "0.5"])

# %%
# These are the coefficients at a sparse point of the path, one image per class. Red pixels are evidence for the digit,
# blue ones against it, and gray ones are not selected.

k = int(np.flatnonzero(path.n_selected <= 30)[-1])
print(f"alpha = {path.alphas[k]:.3g}: {path.n_selected[k]} pixels, accuracy {accuracy[k]:.3f}")
largest = np.abs(coefs[:, :, k]).max()
figure, panels = plt.subplots(2, 5, figsize=(9, 4.2), layout="constrained")
for digit, ax in enumerate(panels.ravel()):
    shown = np.where(is_selected[:, k], coefs[digit, :, k], np.nan).reshape(8, 8)
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(xticks=[], yticks=[], title=str(digit), facecolor="0.8")
figure.colorbar(image, ax=panels, label="coefficient", shrink=0.8)

# sphinx_gallery_thumbnail_number = 2
