"""Pictures of the guide and of the start pages: each function draws one, when the documentation is built."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

import groupowl as go
from groupowl import GroupOWLClassifierCV
from groupowl.plotting import (
    COLORS,
    LINE_STYLES,
    CoefficientPathDisplay,
    CrossValidationDisplay,
    label_log_axis,
)

FloatArray = NDArray[np.float64]

BLACK, ORANGE, BLUE, PINK, GREEN, RED, _ = COLORS
#: Size of the group in :func:`twins`, and how many other features there are.
GROUP, OTHERS = 5, 25
#: Features of the picture of the first page that measure nearly the same.
THREE = ["worst radius", "worst perimeter", "worst area"]
#: Resamples in :func:`one_or_all`, and their alpha as a share of the largest.
RESAMPLES, SHARE = 20, 0.4


# Correlated features ----------------------------------------------------------------------------------


def twins() -> tuple[FloatArray, FloatArray]:
    """Data whose first five features measure the same thing (correlation 0.99) and explain all three targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, GROUP + OTHERS))
    X[:, :GROUP] = rng.standard_normal((80, 1)) + 0.1 * rng.standard_normal((80, GROUP))
    X /= X.std(axis=0)
    B = np.zeros((GROUP + OTHERS, 3))
    B[:GROUP] = np.array([1.0, -0.6, 0.4]) / GROUP
    return X, X @ B + 0.7 * rng.standard_normal((80, 3))


def resampled_norms(weights: str) -> FloatArray:
    """Norms of the coefficients of each feature, fitted to samples drawn again with replacement; a row for each."""
    X, Y = twins()
    norms = []
    for seed in range(RESAMPLES):
        drawn = np.random.default_rng(seed).integers(len(X), size=len(X))
        largest = go.group_owl_path(X[drawn], Y[drawn], weights=weights, alphas=2, eps=0.5).alphas[0]
        model = go.GroupOWLRegressor(alpha=SHARE * largest, weights=weights).fit(X[drawn], Y[drawn])
        norms.append(np.linalg.norm(model.coef_, axis=0))
    return np.array(norms)


def one_or_all() -> None:
    """Which of five equal features are selected, when the samples are drawn again."""
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.6), sharey=True, layout="constrained")
    for ax, weights in zip(axes, ("constant", "oscar", "linear"), strict=True):
        norms = resampled_norms(weights)[:, : GROUP + 5]
        image = ax.imshow(norms, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0)
        ax.axvline(GROUP - 0.5, color=RED, linewidth=1.4)
        selected = np.mean(np.sum(norms[:, :GROUP] > 0, axis=1))
        ax.set_title(f'weights="{weights}"\n{selected:.1f} of the 5 selected', fontsize=10)
        ax.set_xlabel("feature")
        ax.set_xticks(range(GROUP + 5), [str(j + 1) for j in range(GROUP + 5)])
    axes[0].set_ylabel("resample")
    axes[0].set_yticks([0, 9, 19], ["1", "10", "20"])
    figure.colorbar(image, ax=axes, label="norm of coefficients")


def balls() -> None:
    """Where the norm of two features is 1, for three weight sequences."""
    sequences = {"constant (1, 1)": (1.0, 1.0), "oscar (1, 0.67)": (1.0, 2 / 3), "linear (1, 0.5)": (1.0, 0.5)}
    _, ax = plt.subplots(figsize=(4.6, 4.0), layout="constrained")
    angles = np.linspace(0.0, np.pi / 2, 361)
    for (name, weights), color, style in zip(sequences.items(), (BLACK, BLUE, RED), LINE_STYLES, strict=False):
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        values = np.sort(directions, axis=1)[:, ::-1] @ np.array(weights)
        points = directions / values[:, None]
        ax.plot(*points.T, color=color, linestyle=style, label=name)
    ax.plot([0, 0.72], [0, 0.72], color="0.6", linewidth=1.0, linestyle=":")
    ax.text(0.25, 0.275, "equal norms", rotation=45, ha="center", color="0.35", fontsize=9)
    ax.set(xlabel="norm of the first row", ylabel="norm of the second row", xlim=(0, 1.08), ylim=(0, 1.08))
    ax.set_aspect("equal")
    ax.legend(frameon=False)


def merging_paths() -> None:
    """Norms of the five equal features along alpha, with constant weights and with OSCAR's."""
    X, Y = twins()
    _, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
    for ax, weights in zip(axes, ("constant", "oscar"), strict=True):
        path = go.group_owl_path(X, Y, weights=weights, alphas=60, eps=0.1)
        norms = np.linalg.norm(path.coefs, axis=0)
        ax.plot(path.alphas, norms[GROUP:].T, color="0.75", linewidth=1.0)
        for j in range(GROUP):
            ax.plot(path.alphas, norms[j], color=COLORS[j], linestyle=LINE_STYLES[j], label=f"feature {j + 1}")
        ax.set_xscale("log")
        label_log_axis(ax.xaxis)
        ax.invert_xaxis()
        ax.set(title=f'weights="{weights}"', xlabel="alpha")
    axes[0].set_ylabel("norm of coefficients")
    axes[0].legend(frameon=False, loc="upper left")


# Weights ----------------------------------------------------------------------------------------------


def weight_sequences() -> None:
    """The sequences by name, for 50 features."""
    d = 50
    sequences = {
        "constant": go.weights.constant(d),
        "oscar": go.weights.oscar(d),
        "linear": go.weights.linear(d),
        "bh": go.weights.bh(d),
        "chi, 3 tasks": go.weights.chi(d, 3),
    }
    _, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for (name, weights), color, style in zip(sequences.items(), COLORS, LINE_STYLES, strict=False):
        ax.plot(np.arange(1, d + 1), weights, color=color, linestyle=style, label=name)
    ax.set(xlabel="rank of the feature, by the norm of its coefficients", ylabel="weight", ylim=(0, 1.05))
    ax.legend(frameon=False, ncols=2)


# Certificate and screening ----------------------------------------------------------------------------


def wide_problem(name: str = "oscar") -> tuple[FloatArray, FloatArray, FloatArray]:
    """Data and weights of a problem with many more features than samples."""
    data = go.datasets.make_correlated_groups(60, 800, 3, n_informative=6, correlation=0.5, random_state=0)
    weights = getattr(go.weights, name)(800)
    return data.X, data.Y, 0.4 * go.lam_max(data.X, data.Y, weights) * weights


def two_bounds() -> None:
    """Objective and dual value of a solve: the minimum lies between them."""
    X, Y, lam = wide_problem()
    history = go.solve(X, Y, lam, solver=go.APGD(check_every=2), tol=1e-4).history
    _, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    ax.plot(history.iteration, history.primal, color=BLUE, label="objective of the coefficients")
    ax.plot(history.iteration, history.dual, color=RED, linestyle="--", label="dual value: no objective is below")
    ax.fill_between(history.iteration, history.dual, history.primal, color="0.88", label="duality gap")
    top = history.primal[0]
    ax.set(xlabel="step", ylabel="value", ylim=(0.55 * top, 1.05 * top), xlim=(0, history.iteration[-1]))
    ax.legend(frameon=False)


def rule_for_one_feature() -> None:
    """Three regions of possible dual points against the strip in which a feature is zero, at two gaps."""
    _, axes = plt.subplots(1, 2, figsize=(9.0, 3.9), sharey=True, layout="constrained")
    for ax, gap, title in zip(
        axes,
        (0.16, 0.26),
        (
            "smaller gap: the ball about the midpoint\nproves that the feature is zero",
            "larger gap: only the local bound proves it",
        ),
        strict=True,
    ):
        _draw_rule(ax, gap)
        ax.set_title(title, fontsize=10)


def _draw_rule(ax: plt.Axes, gap: float) -> None:
    """The plane of dual points, turned so that the column of X points to the right."""
    point, residual, optimum, edge = np.array([0.45, -0.2]), np.array([0.75, 0.25]), np.array([0.66, 0.0]), 1.0
    midpoint, distance = 0.5 * (point + residual), float(np.linalg.norm(point - residual))
    rho = np.sqrt(gap - distance**2 / 4)
    regions = (
        ("$r = \\sqrt{2G}$, about Θ", point, np.sqrt(2 * gap), ORANGE, LINE_STYLES[1]),
        ("$\\rho$, about the midpoint", midpoint, rho, BLUE, LINE_STYLES[0]),
        ("local bound for $x_j$", midpoint, 0.75 * rho, GREEN, LINE_STYLES[2]),
    )
    ax.add_patch(Rectangle((-edge, -2.0), 2 * edge, 4.0, facecolor="0.93", edgecolor="none"))
    for side in (-edge, edge):
        ax.axvline(side, color="0.4", linewidth=1.2)
    for name, center, radius, color, style in regions[:2]:
        ax.add_patch(Circle(center, radius, facecolor=color, alpha=0.12))
        ax.add_patch(Circle(center, radius, facecolor="none", edgecolor=color, linestyle=style, linewidth=1.5))
        ax.plot([], [], color=color, linestyle=style, label=name)
    name, center, width, color, style = regions[2]  # how far along the column; across it bounds nothing
    for side in (-width, width):
        ax.axvline(center[0] + side, color=color, linestyle=style, linewidth=1.5, label=name if side > 0 else None)
    ax.plot(*np.column_stack([point, residual]), color="0.4", linewidth=0.8)
    for text, place, marker, at in (
        ("Θ", point, "o", (-0.14, -0.08)),
        ("$Θ_B$", residual, "s", (-0.12, 0.08)),
        ("Θ*", optimum, "*", (0.05, -0.14)),
    ):
        ax.plot(*place, marker=marker, color=BLACK, markersize=5 + 3 * (marker == "*"))
        ax.text(*(place + np.array(at)), text, fontsize=9)
    ax.annotate("", (-0.35, -1.0), (-0.95, -1.0), arrowprops={"arrowstyle": "->", "color": BLACK, "linewidth": 1.6})
    ax.text(-0.3, -1.05, "$x_j$", fontsize=11)
    ax.set(xlim=(-1.2, 1.4), ylim=(-1.15, 1.3), xlabel="$x_j^T Θ$", yticks=[])
    ax.set_xticks([-edge, 0, edge], ["$-λ$", "0", "$λ$"])
    ax.set_aspect("equal")
    ax.legend(frameon=False, loc="upper left", fontsize=8)


def rows_left() -> None:
    """Features that are not proved zero, against the gap, with both rules and two weight sequences."""
    _, axes = plt.subplots(1, 2, figsize=(9.0, 3.3), sharey=True, layout="constrained")
    names = {"paper": "the paper's rule", "safe": "the default rule"}
    for ax, weights in zip(axes, ("oscar", "linear"), strict=True):
        X, Y, lam = wide_problem(weights)
        scale = 0.5 * np.sum(Y**2)
        for (rule, name), color, width in zip(names.items(), (ORANGE, BLUE), (4.0, 1.5), strict=True):
            history = go.solve(X, Y, lam, solver=go.APGD(check_every=2), screening=rule, tol=1e-7).history
            ax.plot(history.gap / scale, history.n_active, color=color, linewidth=width, label=name)
        selected = history.n_nonzero[-1]
        ax.axhline(selected, color="0.5", linewidth=1.0, linestyle=":")
        ax.text(2e-7, 1.15 * selected, f"{selected} selected", fontsize=9, ha="right")
        ax.set(xscale="log", yscale="log", xlabel="duality gap, relative to the null model", ylim=(2.0, 1500.0))
        ax.set_title(f'weights="{weights}"', fontsize=10)
        ax.invert_xaxis()
    axes[0].set_ylabel("features left, of 800")
    axes[0].legend(frameon=False)


# Start ------------------------------------------------------------------------------------------------


def cancer_fits() -> dict[str, GroupOWLClassifierCV]:
    """The two models of the first page, by their weights."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    settings = {"standardize": True, "selection": "1se"}
    return {name: GroupOWLClassifierCV(weights=name, **settings).fit(X, y) for name in ("constant", "bh")}


def lasso_and_group_owl() -> None:
    """Sizes of the largest coefficients of both models, with the three features of :data:`THREE` in red."""
    deviations = load_breast_cancer(as_frame=True).data.std(ddof=0)
    sizes = {name: model.coef_[0] * deviations for name, model in cancer_fits().items()}
    order = pd.DataFrame({"size": sizes["bh"].abs().round(6), "is_one_of_three": sizes["bh"].index.isin(THREE)})
    shown = order.sort_values(["size", "is_one_of_three"], kind="stable").index[-10:]  # rounding decides about no tie
    titles = {"constant": "lasso", "bh": "Group OWL"}
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 4.0), sharey=True, layout="constrained")
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        is_one_of_three = shown.isin(THREE)
        ax.barh(shown, sizes[name][shown].abs(), color=np.where(is_one_of_three, RED, BLUE))
        ax.set_title(title, fontsize=15)
        ax.tick_params(labelsize=13)
        ax.spines[["top", "right"]].set_visible(False)
    for label, is_one in zip(axes[0].get_yticklabels(), is_one_of_three, strict=True):
        label.set_color(RED if is_one else BLACK)
    figure.supxlabel("size of coefficient, per standard deviation", fontsize=13)


def cross_validated() -> None:
    """The picture of the first five minutes."""
    data = go.datasets.make_correlated_groups(
        120, 100, 3, n_informative=12, group_size=4, structure="block", correlation=0.95, random_state=3
    )
    X = pd.DataFrame(data.X, columns=[f"gene {j}" for j in range(100)])
    model = go.GroupOWLRegressorCV(alphas=30, eps=0.02, selection="1se").fit(X, data.Y)
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    CrossValidationDisplay.from_estimator(model, ax=left)
    CoefficientPathDisplay.from_estimator(model, ax=right)


# False discoveries --------------------------------------------------------------------------------------


def _box(ax: plt.Axes, place: tuple[float, float], text: str, color: str, size: tuple[float, float]) -> None:
    """A box with a text in its middle."""
    (x, y), (width, height) = place, size
    corner = (x - width / 2, y - height / 2)
    box = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0.02", facecolor=color, edgecolor="0.3")
    ax.add_patch(box)
    ax.text(x, y, text, ha="center", va="center", fontsize=9)


def _arrow(ax: plt.Axes, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """An arrow with a word at its side."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "0.3"})
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    is_level = start[1] == end[1]
    look = {"ha": "center", "va": "bottom"} if is_level else {"ha": "left", "va": "center"}
    ax.text(x + (0.0 if is_level else 0.06), y + (0.04 if is_level else 0.0), text, fontsize=8.5, color="0.2", **look)


def which_procedure() -> None:
    """From what is asked, and n, d, the correlations and the tasks, to a procedure."""
    _, ax = plt.subplots(figsize=(10.0, 6.4), layout="constrained")
    question, answer = (3.6, 0.62), (4.1, 0.78)
    left, right = 2.0, 7.3
    steps = [
        ("What may be false?", "a number of features", "StabilitySelector(max_false=...)\nany loss, n and d"),
        (
            "Fewer than about 1 / fdr true features?",
            "yes",
            "StabilitySelector, or tests with p-values\nknockoffs select 1 / fdr features or none",
        ),
        (
            "Are all columns nearly uncorrelated,\nand is the loss the squared one?",
            "yes",
            'weights "chi_gauss", noise estimated\nseveral tasks are whitened; one fit',
        ),
        (
            "Squared loss, and n at least 2 d?",
            "yes",
            'KnockoffSelector(sampler="fixed")\nno law of X; or Hotelling tests, n > d + q',
        ),
        (
            "Is the law of X known, or are there\nenough samples to estimate it?",
            "yes",
            "KnockoffSelector(covariance=...)\nany loss, any number of tasks, d > n",
        ),
    ]
    for k, (ask, word, advice) in enumerate(steps):
        y = -1.15 * k
        _box(ax, (left, y), ask, "0.93", question)
        _box(ax, (right, y), advice, "#D6E8F5", answer)
        _arrow(ax, (left + question[0] / 2 + 0.03, y), (right - answer[0] / 2 - 0.03, y), word)
        if k + 1 < len(steps):
            down = "a share of them" if k == 0 else "no"
            _arrow(ax, (left, y - question[1] / 2 - 0.03), (left, y - 1.15 + question[1] / 2 + 0.03), down)
    y = -1.15 * len(steps)
    _arrow(ax, (left, y + 1.15 - question[1] / 2 - 0.03), (left, y + question[1] / 2 + 0.03), "no")
    _box(ax, (left, y), "StabilitySelector", "#D6E8F5", question)
    ax.set(xlim=(0.0, 9.6), ylim=(y - 0.5, 0.55))
    ax.axis("off")
