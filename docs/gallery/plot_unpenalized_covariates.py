"""
Covariates that are not penalized
=================================

Age, sex or the batch of a measurement are often in a model not because they are of interest but because they are
confounders. They should neither be subject to selection nor be shrunk. ``unpenalized`` names such columns. They are in
the model at every alpha, and their coefficients are not penalized.

In this example the batch shifts the targets, and it shifts twenty genes that have no effect on the targets.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import groupowl as go
from groupowl.plotting import COLORS, CoefficientPathDisplay

rng = np.random.default_rng(0)
data = go.datasets.make_correlated_groups(
    150, 120, 3, n_informative=8, group_size=2, structure="block", correlation=0.8, random_state=4
)
batch = rng.integers(0, 2, size=150).astype(float)
age = rng.uniform(-1, 1, size=150)
follows_batch = np.flatnonzero(data.groups == 0)[:20]
genes = data.X.copy()
genes[:, follows_batch] += 1.5 * batch[:, None]
Y = data.Y + np.outer(batch, [4.0, -3.0, 3.0]) + np.outer(age, [1.0, 1.0, -1.0])

names = np.array([f"gene {j}" for j in range(120)])
names[data.groups > 0] = [f"true {j}" for j in np.flatnonzero(data.groups)]
X = pd.DataFrame(np.column_stack([genes, batch, age]), columns=[*names, "batch", "age"])

# %%
# We compare three models with the same penalty for genes: without the covariates, with covariates that are penalized
# like genes, and with covariates that are not penalized.

models = {
    "without covariates": (X.drop(columns=["batch", "age"]), None),
    "penalized": (X, None),
    "not penalized": (X, ["batch", "age"]),
}
paths = {
    name: go.group_owl_path(frame, Y, alphas=40, eps=0.05, unpenalized=unpenalized)
    for name, (frame, unpenalized) in models.items()
}

# %%
# This is the path of the third model. Batch and age are dashed: they have their full size already at the alpha where no
# gene is selected, and hardly change.

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
CoefficientPathDisplay.from_result(paths["not penalized"], ax=ax)

# %%
# Genes that depend on the batch act as proxies for it. Without the batch in the model they are selected early, before
# some of the genes with a true effect. If the batch is penalized, its coefficients are shrunk, and these genes still
# explain the rest of its effect. If it is not penalized, nothing is left for them to explain, until alpha is so small
# that genes of all kinds are selected.

figure, panels = plt.subplots(1, 3, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, (name, path) in zip(panels, paths.items(), strict=True):
    is_gene = path.clusters[:120] > 0
    true, false = is_gene[data.groups > 0].sum(axis=0), is_gene[follows_batch].sum(axis=0)
    ax.step(path.alphas / path.alpha_max, true, where="post", color=COLORS[2], linewidth=2, label="true genes, of 8")
    ax.step(
        path.alphas / path.alpha_max,
        false,
        where="post",
        color=COLORS[5],
        linestyle="--",
        linewidth=2,
        label="genes of the batch, of 20",
    )
    ax.set(title=name, xscale="log", xlim=(1, 0.05), xlabel="alpha / alpha_max")
    ax.set_xticks([1, 0.5, 0.2, 0.1, 0.05], ["1", "0.5", "0.2", "0.1", "0.05"])
    ax.minorticks_off()
    ax.grid(color="0.9")
    complete = np.flatnonzero(true >= 6)
    print(f"{name:<19} {false[complete[0]]:>2} genes of the batch are selected when six true ones are")
panels[0].set(ylabel="selected", yticks=[0, 5, 10, 15, 20])
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

# sphinx_gallery_thumbnail_number = 2
