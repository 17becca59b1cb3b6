"""The sections of a report as HTML; what only scripts can draw has an empty place here."""

from __future__ import annotations

import shlex

import numpy as np

from ..estimators.fit_summary import PROVED_ZERO
from ..model_selection import CRITERIA
from ..versions import installed_versions
from .features import SHOWN_ROWS, Column, feature_table_html
from .markup import count, figure, listed, number, paragraph, section, table, text
from .subject import Subject

_MOST_CLUSTERS = 40
_MOST_MEMBERS = 12


# The beginning ------------------------------------------------------------------------------------------


def lead(subject: Subject) -> str:
    """The result in two or three sentences."""
    contents, certificate = subject.contents, subject.certificate
    what = f"{count(contents.n_features, 'feature')}, {_goal(subject)}."
    if certificate is None:
        path = contents.path
        assert path is not None
        return paragraph(
            f"A path of {count(len(path), 'alpha')} for {what} No alpha was chosen; the table below shows the fit at "
            f"the smallest, {figure(subject.alpha)}, which has {_selected(subject)}.",
            "lead",
        )
    zeros = certificate.counts[PROVED_ZERO]
    proof = f"; {zeros:,} {'is' if zeros == 1 else 'are'} proved to be zero" if zeros else ""
    return paragraph(
        f"A model for {what} At alpha {figure(subject.alpha)}, {_chosen_by(subject)}{_selected(subject)} "
        f"{'is' if len(subject.selection.features) <= 1 else 'are'} in the model{proof}.",
        "lead",
    )


def _goal(subject: Subject) -> str:
    classes = subject.contents.classes
    return count(subject.contents.n_targets, "target") if classes is None else count(len(classes), "class", "classes")


def _selected(subject: Subject) -> str:
    """How many features are in the model, in words."""
    n_free, n_all = subject.n_free, len(subject.selection.features)
    if n_all == 0:
        return "no feature"
    words = f"{count(n_all - n_free, 'feature')} in {count(subject.n_clusters, 'cluster')}"
    return words if not n_free else f"{words} and {n_free:,} unpenalised"


def _chosen_by(subject: Subject) -> str:
    """The rule that chose alpha, in words before a comma; nothing where it was given."""
    if subject.choice is None:
        return ""
    rule = subject.estimator.selection
    if rule in CRITERIA:
        return f"which has the smallest {rule.upper()}, "
    folds = count(subject.n_folds, "fold")
    if rule == "1se":
        return f"the largest within one standard error of the best mean score over {folds}, "
    return f"which has the best mean score over {folds}, "


def notes(subject: Subject) -> str:
    """Warnings: those of the run, and what the fit says of itself."""
    words = [text(note) for note in subject.contents.notes]
    certificate = subject.certificate
    if certificate is not None and not certificate.converged:
        words.insert(0, f"The fit stopped short of its tolerance ({text(subject.estimator.solve_result_.status)}).")
    items = "".join(f"<li>{note}</li>" for note in words)
    return f'<ul class="notes" aria-label="Notes">{items}</ul>' if words else ""


def facts(subject: Subject) -> str:
    """What was fitted."""
    rows = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in subject.contents.facts.items()
    )
    return section("What was fitted", "facts", f"<dl>{rows}</dl>" if rows else "")


def scores(subject: Subject) -> str:
    """Scores beside those of the null model."""
    given = subject.contents.scores
    if not given:
        return ""
    rows = [(text(name), number(float(model)), number(float(null))) for name, (model, null) in given.items()]
    explained = "The null model selects nothing: a model that has learnt nothing does as well."
    return section(
        "How well it predicts",
        "scores",
        f'<div class="box">{table(("Score", "This model", "Null model"), rows, "plain")}</div>',
        paragraph(explained, "aside"),
    )


# Pictures -----------------------------------------------------------------------------------------------


def along_the_path(subject: Subject) -> str:
    """Places for the path's picture, its slider and what is selected there."""
    if subject.along is None:
        return ""
    path = subject.along.path
    words = "Each line is a feature that is in the model somewhere on the path."
    relaxed = getattr(subject.estimator, "relaxed", False)
    last, start = len(path) - 1, subject.along.nearest
    return section(
        "Along the path",
        "path",
        paragraph(
            f"{words} A large alpha, on the left, selects few features, a small one many. Point at a line for its "
            f"name, move the slider for what is selected at another alpha."
            + (" The path is that of the penalised fits, before they were relaxed." if relaxed else ""),
            "scripted",
        ),
        _needs_scripts("the path"),
        '<figure id="path-plot" class="plot scripted" aria-label="Norms of the coefficients against alpha">'
        '<svg role="img" aria-label="Norms of the coefficients against alpha"></svg>'
        '<div class="tip" hidden></div></figure>',
        '<ul id="legend" class="legend scripted" aria-label="The largest features"></ul>',
        f'<div class="slider scripted"><label for="alpha">alpha</label><input type="range" id="alpha" min="0" '
        f'max="{last}" step="1" value="{start}"><output id="alpha-value" for="alpha"></output>'
        '<button type="button" id="alpha-reset">back</button></div>',
        '<div id="at-alpha" class="at-alpha scripted" aria-live="polite"></div>',
    )


def choice_of_alpha(subject: Subject) -> str:
    """A place for the picture of scores or criterion, and how to read it."""
    choice = subject.choice
    if choice is None:
        return ""
    if choice.std_errors is None:
        words = f"{text(choice.label)} of the fits on all data; the smallest is best."
    else:
        words = (
            f"{text(choice.label[:1].upper() + choice.label[1:])}, higher is better. The line is the mean over "
            f"{count(subject.n_folds, 'fold')}, the band around it one standard error on both sides, thin lines are "
            f"folds. The horizontal band reaches from the best mean down to one standard error below it."
        )
    return section(
        "How alpha was chosen",
        "choice",
        paragraph(words),
        _needs_scripts("the curve"),
        '<figure id="choice-plot" class="plot scripted" aria-label="Score against alpha">'
        '<svg role="img" aria-label="Score against alpha"></svg><div class="tip" hidden></div></figure>',
    )


def _needs_scripts(what: str) -> str:
    return f"<noscript><p>A script in this file draws {what}, but scripts are switched off.</p></noscript>"


# Features -----------------------------------------------------------------------------------------------


def features(subject: Subject, columns: list[Column]) -> str:
    """The table of the features in the model."""
    heading = "Features in the model" if subject.estimator is not None else "Features at the smallest alpha"
    n_rows = len(subject.selection.features)
    if n_rows == 0:
        path = subject.contents.path
        rest = "None is at any alpha." if path is not None and path.alpha_max == 0.0 else "A smaller one selects some."
        return section(heading, "table", paragraph(f"No feature is selected at this alpha. {rest}"))
    more = f"Without scripts the table ends after {SHOWN_ROWS} of {n_rows:,} rows." if n_rows > SHOWN_ROWS else ""
    at_alpha = (
        '<label class="check"><input type="checkbox" id="at-slider"> only those selected at the slider\'s alpha</label>'
    )
    return section(
        heading,
        "table",
        paragraph(_about_coefficients(subject)),
        f"<noscript><p>{more}</p></noscript>" if more else "",
        '<div class="tools scripted"><label class="search">Search <input type="search" id="search" '
        'autocomplete="off" spellcheck="false"></label>'
        f'{at_alpha if subject.along is not None else ""}<span id="shown" role="status"></span></div>',
        f'<div class="box tall{_many(columns)}" tabindex="0" role="region" aria-label="{heading}">'
        f"{feature_table_html(subject, columns)}</div>",
        '<p class="scripted"><button type="button" id="show-all" hidden></button></p>',
        paragraph("Columns of coefficients are too many to be printed.", "print-only") if _many(columns) else "",
    )


def _many(columns: list[Column]) -> str:
    """A class for tables that are too wide for paper."""
    return " many" if sum(column.kind == "coefficient" for column in columns) > 8 else ""


def _about_coefficients(subject: Subject) -> str:
    classes = subject.contents.classes
    words = ["Coefficients are on the scale of the data."]
    if subject.n_free:
        words.append("A feature without a cluster is not penalised.")
    if classes is not None and len(classes) == 2:
        words.append(f"They are log-odds of {text(classes[1])} against {text(classes[0])}.")
    elif classes is not None:
        words.append("There is a column for each class; those of a feature add up to zero.")
    if getattr(subject.estimator, "standardize", False):
        words.append("The penalty saw standardised columns: features of a cluster have equal norms there, not here.")
    if getattr(subject.estimator, "relaxed", False):
        words.append(
            "They were fitted again without penalty on the selected features (relaxed); clusters and certificate are "
            "those of the penalised fit."
        )
    return " ".join(words)


def clusters(subject: Subject) -> str:
    """Clusters of more than one feature, with their norms as bars."""
    chosen, n_clusters = subject.selection, subject.n_clusters
    if n_clusters == 0:
        return ""
    sizes = np.bincount(chosen.clusters, minlength=n_clusters + 1)
    sizes[0] = 0
    several = np.flatnonzero(sizes > 1)
    n_single = int(np.count_nonzero(sizes == 1))
    words = f"{count(n_clusters, 'cluster')}: {len(several):,} of several features, {n_single:,} of one."
    words += (
        " The penalty has made the coefficients of one cluster equal in size (norm); that does not say that its "
        "features are correlated."
    )
    if not len(several):
        return section("Clusters", "clusters", paragraph("Each feature in the model is a cluster of its own."))
    shown = several[:_MOST_CLUSTERS]
    means = [float(chosen.norms[chosen.clusters == cluster].mean()) for cluster in shown]
    rows = [_cluster_row(subject, int(cluster), mean / max(means)) for cluster, mean in zip(shown, means, strict=True)]
    left_out = len(several) - len(shown)
    return section(
        "Clusters",
        "clusters",
        paragraph(words),
        f'<div class="box">{table(("Cluster", "Features", "Norm", "", "Members"), rows, "clusters")}</div>',
        paragraph(f"{count(left_out, 'cluster')} more of several features: sort the table by cluster.")
        if left_out
        else "",
    )


def _cluster_row(subject: Subject, cluster: int, share: float) -> tuple[str, ...]:
    chosen = subject.selection
    members = np.flatnonzero(chosen.clusters == cluster)
    norms = chosen.norms[members]
    low, high = number(float(norms.min()), 3), number(float(norms.max()), 3)
    bar = f'<span class="bar" style="width:{100 * share:.1f}%"></span>'
    names = [chosen.names[k] for k in members]
    extent = low if low == high else f"{low} to {high}"
    return str(cluster), f"{len(members):,}", extent, bar, listed(names, _MOST_MEMBERS)


# The end -----------------------------------------------------------------------------------------------


def reproduction(subject: Subject) -> str:
    """How to run it again: command, parameters, seed, versions."""
    contents, estimator = subject.contents, subject.estimator
    command = text(shlex.join(str(word) for word in contents.command))
    parts = [f"<pre><code>{command}</code></pre>"] if contents.command else []
    if estimator is not None:
        seed = estimator.random_state
        parts += [
            paragraph(f"The model, in Python ({'no seed was set' if seed is None else f'seed {text(seed)}'}):"),
            f"<pre><code>{text(estimator)}</code></pre>",
        ]
    versions = ", ".join(f"{name} {found}" for name, found in installed_versions().items() if found != "not installed")
    return section("How to reproduce it", "again", *parts, paragraph(f"Made with {text(versions)}.", "aside"))
