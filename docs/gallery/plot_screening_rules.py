"""
Screening in action
===================

While a solver runs, each certificate may prove that some rows of ``B`` are zero in every solution. Those rows leave the
problem for good: the solver no longer multiplies with their columns. ``screening="paper"`` is the rule of Bao, Lu and
Zhang, ``"safe"`` (the default) one that always keeps a subset of its rows, and ``"none"`` switches it off.
"""

import matplotlib.pyplot as plt

import groupowl as go
from groupowl.plotting import COLORS, plot_rows_kept

data = go.datasets.make_correlated_groups(100, 1500, 3, correlation=0.7, unit_norm=True, random_state=0)
sequences = {"OSCAR weights": go.weights.oscar(1500), "linear weights": go.weights.linear(1500)}
rules = {"none": "no screening", "paper": "the paper's rule", "safe": "extended rule"}

# %%
# Algorithm 1 of the paper with each of the three rules, for two sequences of weights. OSCAR weights in the paper's
# setting fall from 1 to a half, linear ones to nearly zero.


def solve(weights, **settings):
    lam = 0.4 * go.lam_max(data.X, data.Y, weights) * weights
    return go.solve(data.X, data.Y, lam, tol=1e-7, **settings)


runs = {
    title: {name: solve(weights, solver=go.APGD(check_every=4), screening=rule) for rule, name in rules.items()}
    for title, weights in sequences.items()
}
for title, by_rule in runs.items():
    for name, run in by_rule.items():
        print(
            f"{title:<14}  {name:<16}  objective {run.primal:.6f}, {run.n_passes:>3.0f} passes, "
            f"{len(run.active):>4} rows kept, {len(run.support)} selected"
        )

# %%
# Rows alive against passes over the data, where a product with a tenth of the columns counts a tenth. Nothing happens
# until the gap is small enough to prove something. Then a few iterations remove nearly everything, iterations cost next
# to nothing, and the curves fall straight down to their end. The objectives above agree: screening changes the cost of
# an answer, not the answer.
#
# The paper's rule compares a row with the smallest weight of the rows that are left. Where weights fall to nearly zero
# it proves nothing. The extended rule compares sums over many rows with sums of weights, and works for both sequences.
# The dotted line is the number of rows that are not zero, below which no safe rule can go.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, (title, by_rule) in zip(panels, runs.items(), strict=True):
    plot_rows_kept(by_rule, ax=ax)
    ax.axhline(len(by_rule["extended rule"].support), color="0.5", linewidth=1, linestyle=":")
    ax.set(title=title, ylim=(8, 2500))
    ax.get_legend().set_loc("center right")
panels[1].set_ylabel("")
panels[1].get_legend().remove()

# %%
# The default solver brings screening and working sets together: it solves on a few rows, certifies on all of them, and
# adds rows where that is needed. How solvers compare in seconds, on many problems, is on the page of :doc:`benchmarks
# </measured/benchmarks>`.

figure, panels = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for ax, (title, by_rule) in zip(panels, runs.items(), strict=True):
    by_rule["default solver"] = solve(sequences[title])
    passes = [run.n_passes for run in by_rule.values()]
    bars = ax.barh(list(by_rule), passes, color=COLORS[2])
    ax.bar_label(bars, labels=[f"{value:.1f}" for value in passes], padding=4)
    ax.set(title=title, xscale="log", xlabel="passes to a relative gap of 1e-7", xlim=(1, 4000))
panels[0].invert_yaxis()
