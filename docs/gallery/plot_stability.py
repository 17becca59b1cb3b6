"""
Which measurements are stable: stability selection
==================================================

The breast cancer data have ten measurements of cell nuclei, each as a mean, a standard error and a worst value: 30
strongly correlated columns. A single fit selects some of them. Would it select the same ones from other patients?
:class:`~groupowl.inference.StabilitySelector` fits random halves of the samples again and again, and bounds the
expected number of features that are selected falsely.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import groupowl as go
from groupowl.inference import StabilitySelector
from groupowl.plotting import StabilityDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target
correlations = np.abs(np.corrcoef(X.T.to_numpy()))
np.fill_diagonal(correlations, 0.0)
print(f"{X.shape[1]} columns; the largest correlation is {correlations.max():.3f}")

# %%
# Columns one by one. Radius, perimeter and area of a nucleus measure nearly the same thing, so that what one half
# selects another may replace: each of them is selected less often than all of them together would be.

single = StabilitySelector(max_false=1, n_pairs=25, random_state=0).fit(X, y)
single.summary()

# %%
# Which of the ten *measurements* are stable is a better question. Groups of columns are in or out together.

measurement = [name.replace("mean ", "").replace("worst ", "").replace(" error", "") for name in X.columns]
print(sorted(set(measurement)))
estimator = go.GroupOWLClassifier(weights="constant", standardize=True, feature_groups=measurement)
grouped = StabilitySelector(max_false=1, estimator=estimator, n_pairs=25, random_state=0).fit(X, y)
print(f"at most {grouped.n_selected_} measurements from each half, threshold {grouped.threshold_:.2f}")
for name in sorted(set(measurement)):
    column = measurement.index(name)
    verdict = "selected" if grouped.support_[column] else ""
    print(f"{name:20s} {grouped.scores_[column]:5.2f} {verdict}")

# %%
# The share of the halves that have selected a column, against alpha, and at its end. Every entry comes from a fit with
# a proof: the column is selected, proved to be zero, or undecided, because the duality gap leaves both open. Undecided
# entries are orange. They do not count for a column, but they count against the size that a half may return.

axes = [plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1] for _ in range(2)]
StabilityDisplay.from_estimator(single, ax=axes[0], max_features=8)
axes[0].set_title("columns one by one")
StabilityDisplay.from_estimator(single, ax=axes[1], kind="frequencies", max_features=15)
axes[1].set_title("columns one by one")

# sphinx_gallery_thumbnail_number = 2
