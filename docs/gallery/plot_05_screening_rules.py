"""
Screening in action
===================

While a solver runs, each certificate may prove that some rows of ``B`` are zero in every solution. Those rows leave the
problem for good: the solver no longer multiplies with their columns. ``screening="paper"`` is the rule of Bao, Lu and
Zhang, ``"safe"`` (the default) one that always keeps a subset of its rows, and ``"none"`` switches it off.
"""

import matplotlib.pyplot as plt

import groupowl as go
from groupowl.plotting import COLOURS, plot_rows_kept

data = go.datasets.make_correlated_groups(100, 1500, 3, correlation=0.7, unit_norm=True, random_state=0)
weights = go.weights.oscar(1500)
lam = 0.4 * go.lam_max(data.X, data.Y, weights) * weights

# %%
# Algorithm 1 of the paper with each of the three rules, certified every second iteration.

rules = {"none": "no screening", "paper": "the paper's rule", "safe": "extended rule"}
solver = go.APGD(check_every=2)
runs = {name: go.solve(data.X, data.Y, lam, solver=solver, screening=rule, tol=1e-7) for rule, name in rules.items()}
for name, run in runs.items():
    print(
        f"{name:<17} objective {run.primal:.8f}, {run.n_iter:>4} iterations, {run.n_passes:>6.1f} passes, "
        f"{len(run.active):>4} rows kept, {len(run.support)} selected"
    )

# %%
# On the left, rows alive by iteration: nothing happens until the gap is small enough to prove something, and then a few
# iterations remove nearly everything. The extended rule sees it a little earlier. The dotted line is the number of rows
# that are not zero, below which no safe rule can go.
#
# On the right, the same against passes, where a product with a tenth of the columns counts a tenth. Once most rows are
# gone, iterations cost nearly nothing, and the curves fall straight down to their end. The objectives above agree:
# screening changes the cost of an answer, not the answer.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
plot_rows_kept(runs, ax=right)
for (name, run), line in zip(runs.items(), right.get_lines(), strict=True):
    style = {"color": line.get_color(), "linestyle": line.get_linestyle(), "linewidth": line.get_linewidth()}
    left.step(run.history.iteration, run.history.n_active, where="post", label=name, **style)
left.set(xlabel="iteration", ylabel="rows kept", title="By iteration", xlim=(0, 2 * runs["the paper's rule"].n_iter))
right.set(title="By passes over the data", ylabel="")
for ax in (left, right):
    ax.axhline(len(runs["extended rule"].support), color="0.5", linewidth=1, linestyle=":")
    ax.grid(color="0.9")
right.legend(loc="center right")

# %%
# The default solver brings screening and working sets together: it solves on a few rows, certifies on all of them, and
# adds rows where that is needed. How solvers compare in seconds, on many problems, is on the page of
# :doc:`benchmarks </measured/benchmarks>`.

runs["default solver"] = go.solve(data.X, data.Y, lam, tol=1e-7)
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
passes = [run.n_passes for run in runs.values()]
bars = ax.barh(list(runs), passes, color=COLOURS[2])
ax.bar_label(bars, labels=[f"{value:.1f}" for value in passes], padding=4)
ax.set(xscale="log", xlabel="passes over the data to a relative gap of 1e-7", xlim=(1, 3 * max(passes)))
ax.invert_yaxis()
