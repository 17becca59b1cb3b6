"""
Covariates that are not penalized
=================================

Age, sex or the batch of a measurement are often in a model not because they are of interest but because they are
confounders. They should be neither selected nor shrunk. ``unpenalized`` names such columns: they are in the model at
every alpha, with coefficients that are not penalized.

In the diabetes data of scikit-learn, age, sex, body mass index (bmi) and blood pressure (bp) of a patient are known
without a laboratory. Which of the six blood measurements, s1 to s6, tell something about the progression of the disease
beyond that?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import groupowl as go
from groupowl.plotting import COLORS, CoefficientPathDisplay, label_log_axis

X, y = load_diabetes(return_X_y=True, as_frame=True)
known = ["age", "sex", "bmi", "bp"]
blood = [name for name in X.columns if name not in known]

# %%
# The covariates are dashed: they have their full size already at the alpha where no blood measurement is selected.

path = go.group_owl_path(X, y, alphas=50, eps=0.005, unpenalized=known)
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
CoefficientPathDisplay.from_result(path, ax=ax)

# %%
# In which order do the blood measurements enter? Without the covariates in the model, measurements that are correlated
# with them stand in for them. We compare with a model of blood alone, and with one in which all columns are penalized.

models = {
    "blood alone": (X[blood], None),
    "all penalized": (X, None),
    "covariates not penalized": (X, known),
}
paths = {
    name: go.group_owl_path(frame, y, alphas=200, eps=0.005, unpenalized=unpenalized)
    for name, (frame, unpenalized) in models.items()
}
for name, path in paths.items():
    columns = list(models[name][0].columns)
    entry = {column: path.alphas[path.clusters[columns.index(column)] > 0].max(initial=0.0) for column in blood}
    order = sorted(blood, key=lambda column: -entry[column])
    print(f"{name:<25}", " ".join(column for column in order if entry[column] > 0))

# %%
# With the covariates in the model, s4 and s6 enter later than without.
#
# Cross-validation says whether the blood measurements are worth their price. At the largest alpha of each model no
# penalized column is selected: the last model has only the covariates there. With blood measurements its error is
# smaller. If the covariates are penalized as well, a small alpha is needed to come near this error.

folds = KFold(10, shuffle=True, random_state=0)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, (frame, unpenalized)), color, style in zip(models.items(), (1, 0, 2), ("--", "-.", "-"), strict=True):
    model = go.GroupOWLRegressorCV(alphas=50, eps=0.005, cv=folds, unpenalized=unpenalized).fit(frame, y)
    error = -model.mean_score_path_
    ax.plot(model.alphas_ / model.alphas_[0], error, style, color=COLORS[color], linewidth=2, label=name)
    print(f"{name:<25} error from {error[0]:.0f} down to {error.min():.0f}")
ax.set(xscale="log", xlim=(1, 0.005), xlabel="alpha / largest alpha", ylabel="mean squared error, held out")
label_log_axis(ax.xaxis)
ax.legend()

# sphinx_gallery_thumbnail_number = 1
