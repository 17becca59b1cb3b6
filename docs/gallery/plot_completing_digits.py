"""
Many targets: the lower half of a digit from its upper half
===========================================================

This is a regression with 32 targets. The features are the pixels of the upper half of scikit-learn's handwritten
digits, the targets those of the lower half. A pixel is selected for all 32 targets or for none, so the model shows
which upper pixels are worth looking at.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import groupowl as go
from groupowl.plotting import COLORS

images = load_digits().data / 16
train, test = train_test_split(images, train_size=1000, random_state=0)
X, Y, X_new, Y_new = train[:, :32], train[:, 32:], test[:, :32], test[:, 32:]
model = go.GroupOWLRegressorCV(alphas=30, eps=0.005, selection="1se").fit(X, Y)
print(f"{len(model.selected_features_)} of 32 pixels, R2 on new digits {model.score(X_new, Y_new):.2f}")

# %%
# Some new digits: as they are, and with the lower half predicted. A linear model gets the rough shape right where the
# upper half says enough, and a blur where several digits begin in the same way.

n_shown = 5
figure, panels = plt.subplots(2, n_shown, figsize=(6.2, 2.9), layout="constrained")
predicted = np.hstack([X_new, model.predict(X_new)])
for column in range(n_shown):
    for ax, image in zip(panels[:, column], (test[column], predicted[column]), strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.axhline(3.5, color=COLORS[5], linewidth=1.5)
        ax.set(xticks=[], yticks=[])
panels[0, 0].set_ylabel("digit")
panels[1, 0].set_ylabel("predicted")

# %%
# How strongly is each upper pixel used? The first picture shows the norm of its 32 coefficients; pixels that are not
# selected are gray. The second one shows the held-out mean squared error against the number of pixels.

norms = np.linalg.norm(model.coef_, axis=0)
_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
shown = left.imshow(np.where(norms > 0, norms, np.nan).reshape(4, 8), cmap="viridis")
left.set(xticks=[], yticks=[], facecolor="0.85", title="upper pixels")
left.figure.colorbar(shown, ax=left, label="norm of coefficients", orientation="horizontal")
n_pixels = model.path_.n_selected
right.plot(n_pixels, -model.mean_score_path_, color=COLORS[2], marker="o", markersize=4)
right.axvline(n_pixels[model.best_index_], color=COLORS[5], linestyle="--", label="chosen")
right.set(xlabel="pixels selected, of 32", ylabel="held-out error")
right.legend()

# %%
# The pixels that are zero are proved to be zero in the solution, for all 32 targets at once.

print(model.certificate().counts)

# sphinx_gallery_thumbnail_number = 1
