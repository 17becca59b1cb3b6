"""
The sparsest model within one standard error
============================================

Cross-validation chooses the ``alpha`` with the best mean score. This mean is an estimate with a standard error, and the
curve is flat near its best point: models with far fewer features predict equally well within this error. The
one-standard-error rule takes the sparsest of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import CrossValidationDisplay

settings = {"n_informative": 12, "group_size": 3, "structure": "block", "correlation": 0.8, "random_state": 1}
data = go.datasets.make_correlated_groups(400, 150, 3, signal_to_noise=1.5, **settings)
X, Y = data.X[:120], data.Y[:120]
X_new, Y_new = data.X[120:], data.Y[120:]

# %%
# The two estimators differ in ``selection`` only. They use the same folds and the same alphas.

models = {
    selection: go.GroupOWLRegressorCV(weights="bh", alphas=30, eps=0.05, cv=5, selection=selection).fit(X, Y)
    for selection in ("min", "1se")
}

# %%
# The orange band extends from the best mean score to one standard error below it. "min" chooses the alpha with the best
# mean score, "1se" the largest alpha whose mean score is inside the band. The numbers along the top are the numbers of
# selected features.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
for ax, (selection, model) in zip(panels, models.items(), strict=True):
    CrossValidationDisplay.from_estimator(model, ax=ax)
    ax.set_title(f'selection="{selection}"', pad=12)
panels[1].set_ylabel("")
panels[0].set_ylim(-2.6, -0.9)

# %%
# We compare the two models on new samples. Twelve features have a true effect.

true = data.groups > 0
for selection, model in models.items():
    selected = np.isin(np.arange(150), model.selected_features_)
    print(
        f"{selection}: {selected.sum():>3} features, {np.sum(selected & true)} of 12 true ones, "
        f"R2 on new samples {model.score(X_new, Y_new):.3f}"
    )
