"""
A Dask array in place of X
==========================

X may be a Dask array or data frame in blocks of rows. Products with X are computed on the workers that hold the blocks,
and only arrays with a row for each feature are sent back. Solver, screening and certificates are the same as for an
array in memory. This example runs in this process; with a ``dask.distributed.Client`` the same code runs on a cluster.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.callbacks import Callback

import groupowl as go
from groupowl.plotting import COLORS

data = go.datasets.make_correlated_groups(4000, 300, 3, task="classification", correlation=0.7, random_state=0)
X, Y = da.from_array(data.X, chunks=(1000, 300)), da.from_array(data.Y, chunks=(1000, 3))
weights = go.weights.oscar(300)
print(X)

# %%
# A Dask callback counts the task graphs and tasks that were run. The callback of ``solve`` records both counts and the
# duality gap at each certificate.


class Counter(Callback):
    """Counts the graphs and tasks that Dask runs."""

    def __init__(self):
        self.graphs = self.tasks = 0

    def _start(self, graph):
        self.graphs += 1

    def _posttask(self, key, result, graph, state, worker):
        self.tasks += 1


counter, record = Counter(), []


def note(progress):
    record.append((counter.graphs, counter.tasks, progress.gap, progress.n_active))


with dask.config.set(scheduler="synchronous"), counter:
    alpha = 0.2 * go.lam_max(X, Y, weights, loss="multinomial", fit_intercept=True)
    lam = alpha * weights
    result = go.solve(X, Y, lam, loss="multinomial", fit_intercept=True, callback=note)
print(result)
print(f"{counter.graphs} task graphs, {counter.tasks} tasks on 4 blocks of X")

# %%
# The first picture shows the gap against the number of task graphs. Time on a cluster depends mostly on this number,
# because each graph needs communication with the workers. The graphs before the first certificate look for NaN, compute
# means and norms, and find the smallest alpha at which no feature is selected. After that, each certificate takes a few
# graphs, and the steps on the working set are between them. The second one compares the coefficients with those of the
# same problem in memory. They agree as far as the two gaps allow.

local = go.solve(data.X, data.Y, lam, loss="multinomial", fit_intercept=True)
graphs, _, gaps, _ = np.transpose(record)
_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
left.plot(graphs, gaps, color=COLORS[2], marker="o", linewidth=2)
left.set(yscale="log", xlabel="task graphs run", ylabel="duality gap")
left.set_xlim(left=0)
left.grid(color="0.9")
right.axline((0, 0), slope=1, color="0.7", linewidth=1)
right.plot(local.B.ravel(), result.B.ravel(), "o", color=COLORS[5], markersize=4)
right.set(xlabel="coefficient, X in memory", ylabel="coefficient, X in Dask")
print(f"largest difference of coefficients: {np.abs(local.B - result.B).max():.1e}")

# %%
# Estimators accept Dask arrays too, and their predictions are Dask arrays. With squared loss, the first graphs compute
# the sufficient statistics of all data and of each fold. Cross-validation then runs in this process, and more alphas
# need no more graphs.

responses = (X @ data.B + da.random.default_rng(0).normal(scale=3.0, size=(4000, 3), chunks=(1000, 3))).persist()
for n_alphas in (10, 30):
    counter = Counter()
    with dask.config.set(scheduler="synchronous"), counter:
        model = go.GroupOWLRegressorCV(alphas=n_alphas, eps=0.05, cv=4).fit(X, responses)
    print(f"{n_alphas} alphas, 4 folds: {counter.graphs} task graphs")
print(model.predict(X))
