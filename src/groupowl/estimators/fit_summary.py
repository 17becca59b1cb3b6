"""One page about a fit."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._text import printable
from ..solvers.result import ending_text
from .fit_certificate import STATES, UNPENALIZED, counts_text
from .frames import coefficient_norms, strongest_first

_SHOWN = 25
_LONGEST_NAME = 40


def summary_text(estimator: Any) -> str:
    """The text that ``summary()`` prints."""
    return "\n".join([type(estimator).__name__, *_head(estimator), "", *_table(estimator), *_notes(estimator)])


def _head(estimator: Any) -> list[str]:
    result = estimator.solve_result_
    states = estimator._states()[0]
    coef = np.atleast_2d(estimator.coef_)
    classes = getattr(estimator, "classes_", None)
    kind = f"{len(coef)} target{'s' if len(coef) > 1 else ''}" if classes is None else f"{len(classes)} classes"
    options = [
        "with intercept" if estimator.fit_intercept else "without intercept",
        *(["standardized"] if estimator.standardize else []),
        *(["relaxed"] if estimator.relaxed else []),
    ]
    n_clusters = int(estimator.clusters_.max(initial=0))
    return [
        f"  data       {estimator.n_features_in_} features, {kind}, {', '.join(options)}",
        f"  penalty    alpha {estimator.alpha_:.6g}, weights {_weights_text(estimator)}",
        f"  objective  {result.primal:.10g}, proved within {result.gap:.3g} of the minimum",
        f"  solve      {ending_text(result)}",
        f"  features   {counts_text({state: int(np.sum(states == state)) for state in STATES})}",
        f"  clusters   {n_clusters}",
    ]


def _weights_text(estimator: Any) -> str:
    spec = estimator.weights
    if isinstance(spec, str):
        return repr(spec)
    first, last = estimator.weights_[0], estimator.weights_[-1]
    return f"from {first:.4g} down to {last:.4g}"


def _table(estimator: Any) -> list[str]:
    """Features in the model, strongest first, as many as fit a page."""
    support = estimator.get_support(indices=True)
    if len(support) == 0:
        return ["  No feature is selected. A smaller alpha selects some."]
    norms = coefficient_norms(np.atleast_2d(estimator.coef_))
    states, labels = estimator._states()[0], estimator._feature_labels()
    shown = strongest_first(estimator)[: min(len(support), _SHOWN)].tolist()
    names = [printable(labels[j])[:_LONGEST_NAME] for j in shown]
    width = max(len("feature"), *(len(name) for name in names))
    lines = [f"  {'feature':<{width}}  {'cluster':>7}  {'norm':>10}"]
    for j, name in zip(shown, names, strict=True):
        cluster = "-" if states[j] == UNPENALIZED else str(estimator.clusters_[j])
        lines.append(f"  {name:<{width}}  {cluster:>7}  {norms[j]:>10.4g}")
    if (more := len(support) - len(shown)) > 0:
        lines.append(f"  ... {more} more: coef_frame(sort=True) has them all")
    return lines


def _notes(estimator: Any) -> list[str]:
    notes = [f"  {text}" for text in (unequal_norms_text(estimator), edge_of_grid_text(estimator)) if text]
    return ["", *notes] if notes else []


def unequal_norms_text(estimator: Any) -> str:
    """Why norms in the table neither fall nor are equal in a cluster, where the penalty has seen others."""
    if not estimator.clusters_.any() or not (estimator.standardize or estimator.relaxed):
        return ""
    shown, ranked = ("of the relaxed fit", "penalised norm") if estimator.relaxed else ("per unit of a feature", "norm")
    scale = " per standard deviation" if estimator.standardize else ""
    return f"Norms are {shown}; the order is that of clusters, by {ranked}{scale}, equal in each."


def edge_of_grid_text(estimator: Any) -> str:
    """That a longer grid would go on, where the best alpha is at its end; empty otherwise."""
    if not is_at_edge(estimator):
        return ""
    return f"The best alpha is the smallest one tried; an eps below {estimator.eps:g} would look further."


def is_at_edge(estimator: Any) -> bool:
    """Whether the chosen alpha is the last of a grid of our own that nothing has cut short."""
    made = getattr(estimator, "alphas", None)
    if not isinstance(made, numbers.Integral) or made == 1 or estimator.path_.alpha_max == 0.0:
        return False
    at_end = estimator.best_index_ == len(estimator.alphas_) - 1
    return bool(at_end and estimator.path_.stopped_because == "end")
