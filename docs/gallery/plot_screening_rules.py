"""
Screening in action
===================

While a solver runs, each duality gap may prove that some rows of ``B`` are zero in every solution. These rows are
removed from the problem, and the solver no longer multiplies by their columns. ``screening="paper"`` is the rule of
Bao, Lu and Zhang. ``"safe"`` (the default) is a rule, with smaller bounds, that always keeps a subset of the rows which
the paper's rule keeps. ``"none"`` switches screening off.
"""

import matplotlib.pyplot as plt

import groupowl as go
from groupowl.plotting import COLORS, plot_rows_kept

data = go.datasets.make_correlated_groups(100, 1500, 3, correlation=0.7, unit_norm=True, random_state=0)
sequences = {"OSCAR weights": go.weights.oscar(1500), "linear weights": go.weights.linear(1500)}
rules = {"none": "no screening", "paper": "the paper's rule", "safe": "extended rule"}

# %%
# We run Algorithm 1 of the paper with each of the three settings, for two sequences of weights. OSCAR weights in the
# paper's setting decrease from 1 to 1/2, linear weights decrease to nearly zero.


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
# The pictures show the number of remaining rows against passes over the data; a product with a tenth of the columns
# counts as a tenth of a pass. No row is removed until the gap is small enough. Then nearly all zero rows are removed
# within a few iterations. After that iterations are very cheap, and the curves drop almost vertically to their end. The
# objectives above agree: screening changes the cost, not the solution.
#
# The paper's rule compares the bound of each row with the smallest weight of the remaining rows. If the weights
# decrease to nearly zero it proves nothing. The extended rule compares sums of bounds with sums of weights and works
# for both sequences. The dotted line is the number of non-zero rows, below which no safe rule can go.

for title, by_rule in runs.items():
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    plot_rows_kept(by_rule, ax=ax)
    ax.axhline(len(by_rule["extended rule"].support), color="0.5", linewidth=1, linestyle=":")
    ax.set(title=title, ylim=(8, 2500))
    ax.get_legend().set_loc("center right")

# %%
# The default solver combines screening with working sets: it solves the problem on a few rows, computes the duality gap
# over all rows, and adds rows where needed. The :doc:`benchmarks </measured/benchmarks>` compare solvers in seconds on
# many problems.

figure, panels = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for ax, (title, by_rule) in zip(panels, runs.items(), strict=True):
    by_rule["default solver"] = solve(sequences[title])
    passes = [run.n_passes for run in by_rule.values()]
    bars = ax.barh(list(by_rule), passes, color=COLORS[2])
    ax.bar_label(bars, labels=[f"{value:.1f}" for value in passes], padding=4)
    ax.set(title=title, xscale="log", xlabel="passes to a relative gap of 1e-7", xlim=(1, 4000))
panels[0].invert_yaxis()
