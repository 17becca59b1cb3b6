"""
Safe screening for a solver of your own
=======================================

Screening does not depend on the solver: from any iterate it may prove that some rows are zero in every solution.
:class:`groupowl.SafeScreener` makes it available to other solvers. This example uses it to speed up a proximal gradient
method (ISTA) that is written in a few lines.
"""

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS

data = go.datasets.make_correlated_groups(80, 1500, 3, correlation=0.6, unit_norm=True, random_state=1)
X, Y = data.X, data.Y
weights = go.weights.oscar(1500)
lam = 0.5 * go.lam_max(X, Y, weights) * weights
goal = 1e-6 * 0.5 * (Y**2).sum()

# %%
# Every ten steps the solver passes its coefficients to the screener. The report has a duality gap, which is also the
# stopping criterion, and ``screener.active`` has the rows that are not proved zero. With ``shrink`` the solver
# continues with these rows only. ``screener.lam`` has their weights, which are the largest ones.


def ista(shrink, every=10, most=20_000):
    screener = go.SafeScreener(X, Y, lam)
    rows, B = np.arange(X.shape[1]), np.zeros((X.shape[1], Y.shape[1]))
    history, work = [], 0.0
    for iteration in range(most):
        A, weights_of_rows = X[:, rows], lam[: len(rows)]
        if iteration % every == 0:
            report = screener.update(B)
            history.append((iteration, work, report.gap, len(screener.active) if shrink else len(rows)))
            if report.gap <= goal:
                break
            if shrink and len(screener.active) < len(rows):
                B, rows = B[np.searchsorted(rows, screener.active)], screener.active
                A, weights_of_rows = X[:, rows], screener.lam
            step = 1.0 / np.linalg.eigvalsh(A @ A.T)[-1]
        B = go.owl_prox(B - step * (A.T @ (A @ B - Y)), weights_of_rows, step=step)
        work += 2 * len(rows) / X.shape[1]
    answer = np.zeros((X.shape[1], Y.shape[1]))
    answer[rows] = B
    return answer, np.array(history)


runs = {"all rows": ista(shrink=False), "rows not proved zero": ista(shrink=True)}

# %%
# Both runs stop at the same gap, and their objectives differ by less than the gap. The second run also takes longer
# steps, because the largest eigenvalue of ``A @ A.T`` is smaller with fewer columns.

for name, (B, history) in runs.items():
    objective = 0.5 * np.sum((Y - X @ B) ** 2) + go.owl_norm(B, lam)
    steps, passes, gap, _ = history[-1]
    print(f"{name:<21} objective {objective:.7f}, gap {gap:.1e}, {steps:.0f} steps, {passes:.0f} passes")

_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
for (name, (_, history)), color, style in zip(runs.items(), (COLORS[0], COLORS[5]), ("-", "--"), strict=True):
    steps, passes, gaps, alive = history.T
    left.step(steps, alive, where="post", color=color, linestyle=style, linewidth=2, label=name)
    right.plot(passes, gaps, color=color, linestyle=style, linewidth=2, label=name)
left.set(yscale="log", xlabel="steps", ylabel="rows that the solver works on", ylim=(5, 2500))
right.set(yscale="log", xlabel="passes over the data", ylabel="duality gap")
right.axhline(goal, color="0.5", linewidth=1, linestyle=":", label="where to stop")
for ax in (left, right):
    ax.grid(color="0.9")
right.legend()

# %%
# ``examples/any_solver.py`` in the repository does the same with an accelerated solver of another package, for the
# squared and the multinomial loss.
