"""
Diabetes: the sparsest model within one standard error
======================================================

Cross-validation chooses the ``alpha`` with the best mean score. This mean is an estimate with a standard error, and the
curve is flat near its best point: models with far fewer features predict equally well within this error. The
one-standard-error rule takes the sparsest of them.

The data are the 442 patients of scikit-learn's diabetes data, with the ten measurements, their squares and their
products.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import PolynomialFeatures

import groupowl as go
from groupowl.plotting import CrossValidationDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas").fit_transform(X)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
print(f"{X.shape[0]} patients to fit, {X_new.shape[0]} to test, {X.shape[1]} features")

# %%
# The two estimators differ in ``selection`` only. They use the same folds and the same alphas.

settings = {"weights": "bh", "standardize": True, "alphas": 40, "eps": 0.01}
settings["cv"] = KFold(10, shuffle=True, random_state=0)
models = {selection: go.GroupOWLRegressorCV(selection=selection, **settings).fit(X, y) for selection in ("min", "1se")}

# %%
# The orange band extends from the best mean score to one standard error below it. "min" chooses the alpha with the best
# mean score, "1se" the largest alpha whose mean score is inside the band. The numbers along the top are the numbers of
# selected features.

for selection, model in models.items():
    figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    CrossValidationDisplay.from_estimator(model, ax=ax, folds=False)
    ax.set_title(f'selection="{selection}"', pad=12)

# %%
# Both models on the patients that were held out:

for selection, model in models.items():
    names = ", ".join(model.selected_features_[:8])
    more = "" if len(model.selected_features_) <= 8 else ", ..."
    print(f"{selection}: R2 {model.score(X_new, y_new):.3f}, {len(model.selected_features_)} features: {names}{more}")

# sphinx_gallery_thumbnail_number = 2
