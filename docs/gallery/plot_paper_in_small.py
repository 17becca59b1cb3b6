"""
The paper's figures in small
============================

R. Bao, Q. Lu and Y. Zhang, *Safe Screening Rules for Group OWL Models*, measure their Algorithms 1 and 2 with and
without screening, for OSCAR weights at several alphas. This example makes small versions of their Figures 1 and 2 with
simulated data. :doc:`The reproduction </measured/reproduction>` has the full experiments on their data sets.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS

data = go.datasets.make_correlated_groups(150, 1000, 4, correlation=0.9, unit_norm=True, random_state=0)
weights = go.weights.oscar(1000)
lam_max = go.lam_max(data.X, data.Y, weights)
fractions = [0.7, 0.5, 0.35]

# %%
# Every problem is solved to the same relative duality gap by Algorithm 1 (APGD), without screening, with the rule of
# the paper, and with the extended rule.

solver = go.APGD(check_every=5)
solvers = {"APGD": "none", "APGD + paper's rule": "paper", "APGD + extended rule": "safe"}
runs = {
    (name, fraction): go.solve(data.X, data.Y, fraction * lam_max * weights, solver=solver, screening=rule, tol=1e-6)
    for fraction in fractions
    for name, rule in solvers.items()
}
for fraction in fractions:
    plain, screened = runs["APGD", fraction], runs["APGD + paper's rule", fraction]
    print(
        f"lam = {fraction:<4} lam_max: {len(plain.support):>3} rows selected, {plain.n_passes:.0f} passes without and "
        f"{screened.n_passes:.0f} with the paper's rule, {plain.n_passes / screened.n_passes:.1f} times fewer"
    )

# %%
# The bars show the cost in passes over the data, which does not depend on the machine. Screening saves most if few rows
# are selected, and the factor decreases with alpha. It depends on the data as well: with ``correlation=0.5`` it is
# about three to four for these alphas. The :doc:`benchmarks </measured/benchmarks>` have times in seconds and
# comparisons with other packages.

positions = np.arange(len(fractions))
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for shift, name, color in zip((-0.27, 0, 0.27), solvers, (COLORS[0], COLORS[1], COLORS[2]), strict=True):
    passes = [runs[name, fraction].n_passes for fraction in fractions]
    bars = ax.bar(positions + shift, passes, width=0.25, color=color, label=name)
    ax.bar_label(bars, labels=[f"{value:.0f}" for value in passes], padding=2, fontsize=9)
ax.set(xticks=positions, xticklabels=[f"{fraction:g}" for fraction in fractions], xlabel="lam / lam_max")
ax.set_ylabel("passes over the data")
ax.margins(y=0.1)
ax.legend(loc="upper left")

# %%
# The next picture shows the share of rows that both rules have removed after 20 % to 100 % of the iterations. At the
# end only the selected rows are left. For these weights the extended rule removes rows somewhat earlier, because its
# bounds are smaller than the paper's; the example :ref:`sphx_glr_auto_gallery_plot_screening_rules.py` has weights for
# which it removes far more.

figure, panels = plt.subplots(1, len(fractions), figsize=(9, 3.8), sharey=True, layout="constrained")
stages = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
for ax, fraction in zip(panels, fractions, strict=True):
    for shift, name, color in zip((-0.2, 0.2), list(solvers)[1:], (COLORS[1], COLORS[2]), strict=True):
        run = runs[name, fraction]
        reached = np.searchsorted(run.history.iteration, stages * run.history.iteration[-1], side="right") - 1
        ax.bar(np.arange(5) + shift, 100 * (1 - run.history.n_active[reached] / 1000), 0.38, color=color, label=name)
    ax.axhline(100 * (1 - len(run.support) / 1000), color="0.3", linewidth=1, linestyle=":", label="rows that are zero")
    ax.set(
        xticks=range(5), xticklabels=[f"{100 * stage:.0f} %" for stage in stages], title=f"lam = {fraction:g} lam_max"
    )
    ax.set_xlabel("of the iterations")
panels[0].set_ylabel("rows screened (%)")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
