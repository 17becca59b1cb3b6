"""The study of correlated groups: its data, its measures, its tuning, and that its words follow its numbers."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.linear_model import MultiTaskLasso

import groupowl as go
from groupowl.norm.kernels import cluster_labels, row_norms
from groupowl_paper.recovery import VARIANTS, RecoveryReport, Setting, recovery_figure, run_recovery, simulate
from groupowl_paper.recovery import study as study_module
from groupowl_paper.recovery.fitting import BASELINE, METHODS, TunedPath, choose, coefficient_path, group_owl
from groupowl_paper.recovery.reading import BETTER, PANELS, SAME, WORSE, Measure, outcome
from groupowl_paper.recovery.report import Cell, estimate
from groupowl_paper.recovery.scoring import (
    Scores,
    cluster_index,
    excess_error,
    groups_whole,
    score,
    support_f1,
)
from groupowl_paper.recovery.study import QUICK, run_study, score_methods

TINY = Setting(
    n_samples=20, n_test=30, n_features=30, n_tasks=2, n_active_groups=2, correlations=(0.5, 0.9),
    n_repetitions=2, n_alphas=4,
)  # fmt: skip
LARGE = replace(TINY, n_test=20_000, n_tasks=4)  # for laws of large numbers


# Data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.5, 0.95])
def test_features_correlate_within_groups_and_not_between(correlation):
    X = simulate(LARGE, "whole", correlation, 0).X_test
    same_group = np.equal.outer(np.arange(30) // 5, np.arange(30) // 5)
    expected = np.where(same_group, correlation, 0.0) + (1.0 - correlation) * np.eye(30)
    np.testing.assert_allclose(np.corrcoef(X.T), expected, atol=5 / np.sqrt(len(X)))
    np.testing.assert_allclose(X.var(axis=0), 1.0, atol=0.06)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_signal_and_noise_have_their_ratio(variant, ratio):
    data = simulate(replace(LARGE, n_samples=2000, signal_to_noise=ratio), variant, 0.9, 1)
    signal = np.sqrt(np.mean((data.X_test @ data.B) ** 2))
    assert signal == pytest.approx(ratio * data.noise, rel=0.05)
    for X, Y in [(data.X, data.Y), (data.X_validation, data.Y_validation)]:
        assert np.std(Y - X @ data.B) == pytest.approx(data.noise, rel=0.05)


@pytest.mark.parametrize(("variant", "sizes"), [("whole", [1, 1, 1, 1, 1]), ("partial", [1.5, 1, 0.5])])
def test_truth_is_that_of_the_variant(variant, sizes):
    """Rows of a group are multiples of one row, and features count as active where they have a coefficient."""
    data = simulate(TINY, variant, 0.5, 0)
    np.testing.assert_array_equal(data.groups > 0, data.B.any(axis=1))
    np.testing.assert_array_equal(np.bincount(data.groups)[1:], [len(sizes), len(sizes)])
    for group in (1, 2):
        members = np.flatnonzero(data.groups == group)
        assert len(set(members // 5)) == 1
        np.testing.assert_allclose(data.B[members], np.outer(sizes, data.B[members].mean(axis=0)), rtol=1e-12)


def test_data_follow_the_seed_and_the_repetition_alone():
    first, again = (simulate(TINY, "whole", 0.5, 1) for _ in range(2))
    for item in fields(first):
        np.testing.assert_array_equal(getattr(first, item.name), getattr(again, item.name))
    for other in (simulate(TINY, "whole", 0.5, 2), simulate(replace(TINY, seed=1), "whole", 0.5, 1)):
        assert not np.isclose(other.X, first.X).any()
        assert not np.isclose(other.Y, first.Y).any()
    np.testing.assert_array_equal(simulate(TINY, "whole", 0.9, 1).B, first.B)


def test_training_validation_and_test_sets_are_apart():
    data = simulate(TINY, "whole", 0.5, 0)
    assert data.X.shape == data.X_validation.shape == (20, 30)
    assert data.Y.shape == data.Y_validation.shape == (20, 2)
    rows = np.concatenate([data.X, data.X_validation, data.X_test])
    assert len(np.unique(rows[:, 0])) == len(rows) == 70
    errors = [data.Y - data.X @ data.B, data.Y_validation - data.X_validation @ data.B]
    assert not np.isclose(*errors).any()


def test_the_full_study_is_the_one_asked_for():
    setting = Setting()
    assert (setting.correlations[0], setting.correlations[-1]) == (0.5, 0.99)
    assert setting.n_repetitions == 20
    assert setting.n_samples < setting.n_features
    assert (setting.fractions[0], setting.fractions[-1]) == (1.0, setting.smallest_fraction)
    assert len(setting.fractions) == setting.n_alphas


# Measures -----------------------------------------------------------------------------------------------

GROUPS = np.repeat([1, 0, 2, 0], 5)  # two active groups of five among twenty features
ACTIVE = GROUPS > 0


def rows_with_norms(norms):
    """Rows of these norms, in directions that differ."""
    angles = np.arange(len(norms))
    return np.asarray(norms)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


def test_perfect_recovery_scores_one():
    B = rows_with_norms(np.choose(GROUPS, [0.0, 2.0, 1.0]))
    assert support_f1(B.any(axis=1), ACTIVE) == 1.0
    assert cluster_index(B, GROUPS) == 1.0
    assert cluster_index(B, GROUPS, among=np.ones(20, dtype=bool)) == 1.0
    assert groups_whole(B.any(axis=1), GROUPS) == 1.0


def test_one_member_per_group_is_a_third_and_no_cluster():
    """What the L2,1 norm is said to do: 2 of 10 active features, precision 1, recall 1/5, F1 = 1/3."""
    norms = np.zeros(20)
    norms[[0, 10]] = 3.0, 2.0
    B = rows_with_norms(norms)
    assert support_f1(B.any(axis=1), ACTIVE) == pytest.approx(1 / 3)
    assert cluster_index(B, GROUPS) == 0.0
    assert groups_whole(B.any(axis=1), GROUPS) == 0.0


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    selected = np.zeros(20, dtype=bool)
    selected[:8] = True  # 5 of 10 active features and 3 others
    precision, recall = 5 / 8, 5 / 10
    assert support_f1(selected, ACTIVE) == pytest.approx(2 / (1 / precision + 1 / recall))
    assert support_f1(np.zeros(20, dtype=bool), ACTIVE) == 0.0


@pytest.mark.parametrize(
    ("norms", "index"),
    [
        (np.choose(GROUPS, [0.0, 1.0, 1.0]), 0.0),  # both groups in one cluster
        (np.arange(1.0, 21.0), 0.0),  # all selected, none tied
        (np.choose(GROUPS, [0.0, 1.0, 0.0]), 10 / 19),  # a group dropped: being zero together is no cluster
        (np.choose(GROUPS, [0.0, 1.0, 1.0 + 1e-12]), 0.0),  # equal up to rounding
        (np.choose(GROUPS, [0.0, 1.0, 1.0 + 1e-6]), 1.0),
    ],
)
def test_cluster_index_on_constructed_answers(norms, index):
    """10/19: 10 of 20 true pairs found among 45, chance 40/9, so (10 - 40/9) / ((10 + 20)/2 - 40/9)."""
    assert cluster_index(rows_with_norms(norms), GROUPS) == pytest.approx(index, abs=1e-12)


def test_false_selections_in_clusters_lower_the_wider_index_alone():
    norms = np.choose(GROUPS, [0.0, 2.0, 1.0])
    norms[5:10] = 1.0  # inactive features in the cluster of the second group
    B = rows_with_norms(norms)
    assert cluster_index(B, GROUPS) == 1.0
    assert cluster_index(B, GROUPS, among=ACTIVE | B.any(axis=1)) < 0.8


def test_clusters_are_those_of_the_solver():
    data = simulate(TINY, "whole", 0.99, 0)
    weights = go.weights.bh(30)
    result = go.solve(data.X, data.Y, 0.4 * go.lam_max(data.X, data.Y, weights) * weights)
    assert result.clusters.max() < len(result.support)  # some norms are tied
    np.testing.assert_array_equal(cluster_labels(row_norms(result.B)), result.clusters)


def test_a_group_counts_as_whole_with_all_its_members():
    selected = ACTIVE.copy()
    assert groups_whole(selected, GROUPS) == 1.0
    selected[12] = False
    assert groups_whole(selected, GROUPS) == 0.5


def test_excess_error_is_zero_for_the_truth_and_the_signal_for_nothing():
    data = simulate(replace(LARGE, signal_to_noise=2.0), "partial", 0.7, 0)
    assert excess_error(data.B, data) == 0.0
    assert excess_error(np.zeros_like(data.B), data) == pytest.approx(2.0**2, rel=0.05)


def test_scores_are_those_of_the_chosen_strength_and_the_best_of_the_path():
    data = simulate(TINY, "whole", 0.5, 0)
    wrong = np.where(data.B.any(axis=1), 0.0, 1.0)[:, None] * np.ones(2)
    fractions = np.array([1.0, 0.5, 0.1])
    path = np.stack([np.zeros_like(data.B), data.B, wrong])
    chosen_last, chosen_right = (score(TunedPath(path, k), data, fractions) for k in (2, 1))
    assert (chosen_right.support_f1, chosen_right.cluster_index, chosen_right.excess_error) == (1.0, 1.0, 0.0)
    assert (chosen_right.n_selected, chosen_right.fraction, chosen_right.at_end) == (10.0, 0.5, 0.0)
    assert (chosen_last.support_f1, chosen_last.cluster_index, chosen_last.groups_whole) == (0.0, 0.0, 0.0)
    assert (chosen_last.n_selected, chosen_last.fraction, chosen_last.at_end) == (20.0, 0.1, 1.0)
    assert chosen_right.cluster_index_all == 1.0
    assert chosen_last.cluster_index_all < 0.0  # 20 inactive features in one cluster
    assert chosen_last.best_f1 == chosen_last.best_cluster_index == 1.0
    assert chosen_last.excess_error > 0.0


# Methods ------------------------------------------------------------------------------------------------


def test_tuning_picks_the_smallest_validation_error():
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((12, 4)), rng.standard_normal((4, 2))
    path = np.stack([0.0 * B, 0.5 * B, 0.9 * B, 1.3 * B, 3.0 * B])
    assert choose(path, X, X @ B) == 2
    assert choose(path, X, X @ B * 3.0) == 4
    assert choose(path[[0, 2, 2]], X, X @ B) == 1  # the stronger penalty of two that are equal


def test_tuning_uses_the_validation_set():
    data = simulate(TINY, "whole", 0.5, 0)
    swapped = replace(data, Y_validation=-data.Y_validation)
    assert study_module.fit("oscar", data, TINY).chosen > 0
    assert study_module.fit("oscar", swapped, TINY).chosen == 0  # where the signal is reversed, nothing is best


@pytest.mark.parametrize("method", METHODS)
def test_every_path_starts_where_its_method_selects_nothing(method):
    data = simulate(TINY, "whole", 0.9, 0)
    path = coefficient_path(method, data.X, data.Y, replace(TINY, n_alphas=2, smallest_fraction=0.95))
    assert path.shape == (2, 30, 2)
    assert not path[0].any()
    assert path[1].any()


@pytest.mark.parametrize("correlation", [0.5, 0.99])
def test_the_baseline_is_group_owl_with_constant_weights(correlation):
    """And both are MultiTaskLasso. Fits lie within sqrt(2 gap) of the optimum, as the loss is strongly convex."""
    tight = replace(TINY, tol=1e-10)
    data = simulate(tight, "whole", correlation, 0)
    theirs = coefficient_path(BASELINE, data.X, data.Y, tight)
    ours = group_owl("constant", data.X, data.Y, tight.fractions, tight.tol)
    distance = 2.0 * np.sqrt(2.0 * tight.tol * 0.5 * np.sum(data.Y**2))
    strengths = tight.fractions * go.lam_max(data.X, data.Y, "constant") / len(data.X)
    for alpha, B, C in zip(strengths, theirs, ours, strict=True):
        model = MultiTaskLasso(alpha, fit_intercept=False, tol=tight.tol / 2, max_iter=100_000).fit(data.X, data.Y)
        assert np.linalg.norm(data.X @ (B - C)) <= distance
        assert np.linalg.norm(data.X @ (B - model.coef_.T)) <= distance


@pytest.mark.parametrize("method", METHODS)
def test_paths_reach_their_tolerance(method):
    """The duality gap of every method, proved by one and the same function."""
    data = simulate(TINY, "whole", 0.9, 0)
    weights = go.weights.constant(30) if method == BASELINE else getattr(go.weights, method)
    if method == "chi":
        weights = weights(30, 2)
    elif method != BASELINE:
        weights = weights(30)
    strongest = go.lam_max(data.X, data.Y, weights)
    for fraction, B in zip(TINY.fractions, coefficient_path(method, data.X, data.Y, TINY), strict=True):
        report = go.SafeScreener(data.X, data.Y, fraction * strongest * weights).update(B)
        assert report.gap <= 1.1 * TINY.tol * 0.5 * np.sum(data.Y**2)


# The study ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    return run_study(TINY)


def test_all_methods_see_the_same_data(monkeypatch):
    seen = []

    def watched(method, data, setting):
        seen.append((method, data))
        return TunedPath(np.zeros((setting.n_alphas, *data.B.shape)), 0)

    monkeypatch.setattr(study_module, "fit", watched)
    score_methods(TINY, "whole", 0.5, 0)
    assert [method for method, _ in seen] == list(METHODS)
    assert all(data is seen[0][1] for _, data in seen)


def test_report_holds_every_case_once(report):
    keys = [(cell.variant, cell.correlation, cell.method) for cell in report.cells]
    assert keys == [(v, c, m) for v in VARIANTS for c in TINY.correlations for m in METHODS]
    assert all(len(cell.scores) == TINY.n_repetitions for cell in report.cells)


def test_study_is_reproducible_by_seed(report):
    again = score_methods(TINY, "whole", 0.9, 1)
    other = score_methods(replace(TINY, seed=1), "whole", 0.9, 1)
    for method in METHODS:
        cell = next(c for c in report.cells if (c.variant, c.correlation, c.method) == ("whole", 0.9, method))
        assert cell.scores[1] == again[method]
        assert cell.scores[1].excess_error != other[method].excess_error


def test_progress_counts_the_data_sets(monkeypatch):
    monkeypatch.setattr(study_module, "score_methods", lambda *arguments: {})
    calls = []
    run_study(TINY, progress=lambda *call: calls.append(call))
    assert [call[:2] for call in calls] == [(i, 8) for i in range(8)]
    assert "correlation 0.5, data set 1" in calls[0][2]


@pytest.mark.parametrize(("quick", "expected"), [(True, QUICK), (False, Setting())])
def test_quick_chooses_the_setting(monkeypatch, quick, expected):
    monkeypatch.setattr(study_module, "run_study", lambda setting, progress: (setting, progress))
    assert run_recovery(quick=quick, progress=print) == (expected, print)


def test_report_survives_json(report):
    assert RecoveryReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_real_numbers_make_a_section(report):
    text = report.markdown()
    assert text.startswith("## ")
    assert len(re.findall(r"^\| 0\.[59] \|", text, flags=re.MULTILINE)) == len(report.cells)
    assert "nan" not in text


# Words --------------------------------------------------------------------------------------------------

PLAIN = {item.name: 0.5 for item in fields(Scores)}
SPREAD = np.linspace(-0.2, 0.2, 20)  # differences between data sets, shared by all methods


def constructed(change, *, correlations=(0.5, 0.99), noise=0.0, n=20):
    """A report in which Group OWL differs from the baseline by `change(measure, correlation)`, plus `noise`."""
    rng = np.random.default_rng(0)
    cells = []
    for variant in VARIANTS:
        for correlation in correlations:
            for method in METHODS:
                scores = []
                for i in range(n):
                    shift = 0.0 if method == BASELINE else noise * rng.standard_normal()
                    row = {name: value + SPREAD[i] + shift for name, value in PLAIN.items()}
                    if method != BASELINE:
                        row = {name: value + change(name, correlation) for name, value in row.items()}
                    scores.append(Scores(**row))
                cells.append(Cell(variant, correlation, method, tuple(scores)))
    return RecoveryReport(Setting(correlations=correlations, n_repetitions=n), tuple(cells))


def verdict_line(text, measure):
    return next(line for line in text.splitlines() if line.startswith(f"- **{measure.title}**:"))


@pytest.mark.parametrize("measure", PANELS, ids=lambda measure: measure.name)
@pytest.mark.parametrize("is_better", [True, False])
def test_words_name_the_winner(measure, is_better):
    """A small difference that all data sets show counts, though the data sets differ more among themselves."""
    step = 0.01 * measure.sign * (1 if is_better else -1)
    text = constructed(lambda name, c: step if name == measure.name else 0.0, noise=0.001).markdown()
    line = verdict_line(text, measure)
    assert f"the claim {'holds' if is_better else 'fails'} throughout" in line
    assert ("better in 16 and worse in 0" if is_better else "better in 0 and worse in 16") in line
    assert f"OSCAR {BETTER if is_better else WORSE} at every correlation" in text
    other = next(panel for panel in PANELS if panel != measure)
    assert "throughout" not in verdict_line(text, other)


def test_words_say_when_there_is_no_difference():
    text = constructed(lambda name, c: 0.0).markdown()
    for measure in PANELS:
        assert verdict_line(text, measure).endswith(f"{SAME} in any of 16 comparisons.")
    assert f"OSCAR {SAME} anywhere" in text
    assert "claim holds" not in text
    assert "claim fails" not in text


def test_words_follow_the_correlation():
    text = constructed(lambda name, c: 0.1 if c > 0.9 else -0.1, correlations=(0.5, 0.7, 0.99), noise=0.01).markdown()
    assert "OSCAR worse at 0.5 and 0.7, better at 0.99;" in text
    assert "OSCAR worse at 0.99, better at 0.5 and 0.7;" in text  # the error, where less is better
    assert "the claim fails in most cases. Of 24 comparisons, Group OWL is better in 8 and worse in 16" in text
    assert "| whole groups, equal rows | OSCAR | - - + | - - + | + + - |" in text


def test_words_for_a_difference_here_and_none_there():
    text = constructed(lambda name, c: 0.1 if c > 0.9 else 0.0, correlations=(0.5, 0.7, 0.99)).markdown()
    assert "OSCAR better at 0.99, elsewhere no difference;" in text
    assert "undecided, more often better than worse. Of 24 comparisons, Group OWL is better in 8 and worse in 0" in text
    assert "undecided, more often worse than better. Of 24 comparisons, Group OWL is better in 0 and worse in 8" in text


@pytest.mark.parametrize(("errors", "expected"), [(1.9, SAME), (2.1, BETTER), (-1.9, SAME), (-2.1, WORSE)])
def test_two_standard_errors_decide(errors, expected):
    report = constructed(lambda name, c: 0.0, noise=0.1)
    case = ("whole", 0.5, "bh")
    mean, error = report.difference(*case, "support_f1")
    cell = next(c for c in report.cells if (c.variant, c.correlation, c.method) == case)
    moved = tuple(replace(s, support_f1=s.support_f1 - mean + errors * error) for s in cell.scores)
    changed = replace(report, cells=tuple(replace(c, scores=moved) if c is cell else c for c in report.cells))
    assert outcome(changed, *case, Measure("support_f1", "F1")) == expected


def test_standard_error_is_that_of_a_mean():
    assert estimate(np.array([0.0, 2.0])) == pytest.approx((1.0, 1.0))  # deviation sqrt(2) of two values, over sqrt(2)


def test_tables_show_mean_and_standard_error():
    text = constructed(lambda name, c: 0.25 if name == "support_f1" else 0.0).markdown()
    error = np.std(SPREAD, ddof=1) / np.sqrt(20)
    assert f"| 0.5 | L2,1 (MultiTaskLasso) | 0.50 ± {error:.2f} |" in text
    assert f"| 0.5 | OSCAR | 0.75 ± {error:.2f} |" in text
    assert "| OSCAR | 0.75 | 0.50 | 0.500 |" in text  # means over all cases


def test_few_repetitions_are_called_too_few():
    assert "too few for conclusions" in constructed(lambda name, c: 0.0, n=3).markdown()
    assert "too few for conclusions" not in constructed(lambda name, c: 0.0).markdown()


def test_words_name_the_best_clusters_and_the_ends_of_the_grid():
    report = constructed(lambda name, c: 0.0)
    best = ("partial", 0.99, "chi")
    raised = tuple(
        replace(cell, scores=tuple(replace(s, cluster_index=0.83, cluster_index_all=0.21) for s in cell.scores))
        if (cell.variant, cell.correlation, cell.method) == best
        else replace(cell, scores=tuple(replace(s, at_end=float(cell.method == "bh")) for s in cell.scores))
        for cell in report.cells
    )
    text = replace(report, cells=raised).markdown()
    assert "is 0.83 (chi weights, 3 of 5 members active, unequal rows, correlation 0.99), and 0.21 there" in text
    assert "(its highest mean ARI is 0.50)" in text
    assert "Of 80 fits per method" in text
    assert "L2,1 (MultiTaskLasso) 0, OSCAR 0, linear 0, BH 80," in text


# The figure ---------------------------------------------------------------------------------------------


def test_figure_shows_three_panels_per_variant(report):
    figure = recovery_figure(report)
    assert len(figure.axes) == 3 * len(VARIANTS)
    for ax, (variant, measure) in zip(figure.axes, [(v, m) for v in VARIANTS for m in PANELS], strict=True):
        assert ax.get_title() == VARIANTS[variant].title
        assert measure.title in ax.get_ylabel()
        assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "0.9"]
        assert len(ax.containers) == len(METHODS)
        for container, method in zip(ax.containers, METHODS, strict=True):
            expected = np.array([report.mean(variant, c, method, measure.name) for c in TINY.correlations])
            np.testing.assert_allclose(container.lines[0].get_ydata().astype(float), expected[:, 0])
            bars = np.array(container.lines[2][0].get_segments())[:, :, 1]
            np.testing.assert_allclose(np.diff(bars)[:, 0], 2 * expected[:, 1], atol=1e-12)
            low, high = ax.get_ylim()
            assert low <= min(0.0, bars.min())
            assert bars.max() <= high


def test_figure_names_the_methods_once_each(report):
    legend = recovery_figure(report).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "L2,1 (MultiTaskLasso)", "Group OWL, OSCAR", "Group OWL, linear", "Group OWL, BH", "Group OWL, chi",
    ]  # fmt: skip
    colors = {handle.lines[0].get_color() for handle in recovery_figure(report).axes[0].containers}
    assert len(colors) == len(METHODS)
