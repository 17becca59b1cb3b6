"""The paper's experiments as a program: settings, plan, runs, judge, store, resumption, report and figures."""

from __future__ import annotations

import csv
import json
import random
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib.figure import Figure
from matplotlib.image import imread

import groupowl as go
from groupowl_harness.judge import Verdict, judge
from groupowl_harness.process import WorkerError
from groupowl_paper.data import DATASETS, find_datasets, load_dataset
from groupowl_paper.reproduce import (
    BusyError,
    Options,
    Results,
    quick_options,
    refuted,
    report_markdown,
    result_figures,
    results_csv,
    write_outputs,
)
from groupowl_paper.reproduce import outputs as outputs_module
from groupowl_paper.reproduce import store as store_module
from groupowl_paper.reproduce import worker as worker_module
from groupowl_paper.reproduce.claims import Bounds, complaint, judged_gap
from groupowl_paper.reproduce.histories import RunHistory, common_gap
from groupowl_paper.reproduce.messages import without_folders
from groupowl_paper.reproduce.plan import (
    Budget,
    Item,
    expected_seconds,
    first_stages,
    hard_limit,
    later_stages,
    variants_of,
)
from groupowl_paper.reproduce.process import ProcessWorker
from groupowl_paper.reproduce.records import RunRecord
from groupowl_paper.reproduce.settings import (
    ALGORITHMS,
    FEWEST_SNAPSHOTS,
    SETTINGS,
    batch_size,
    make_solver,
    setting_lam,
)
from groupowl_paper.reproduce.store import Store, data_fingerprint
from groupowl_paper.reproduce.worker import Server, _descends
from reproduce_support import STEPS, CannedWorker, InlineWorker, assert_same, campaign, small_options, write_folder
from support import REAL_FOLDER, needs_real_folder

NAMES = ("PlantGO", "CMUFaces", "ProteinVal", "Bibtex")


def hurry(patch):
    """Times do not matter here: short runs are not repeated, and figures have few pixels."""
    patch.setattr(worker_module, "REPEATS", 1)
    patch.setattr(worker_module.gc, "collect", lambda: 0)  # slow in a process as large as that of the tests
    patch.setattr(outputs_module, "_DPI", 60)


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    hurry(monkeypatch)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    """A campaign that ran through, and its folder."""
    out = tmp_path_factory.mktemp("done")
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        results = campaign(data, out).run()
    return results, out


def canned(data, out, options=None, **settings):
    """A campaign whose numbers do not matter."""
    options = options or small_options(datasets=("PlantGO",), trials=1)
    return campaign(data, out, options, **{"make_worker": CannedWorker, **settings})


def timeless(results):
    """What must not depend on time: the report and the records."""
    bare = results.timeless()
    return report_markdown(bare), bare.to_dict()


def assert_alike(one, other):
    """The same report, and the same records but for rounding."""
    (report, records), (other_report, other_records) = timeless(one), timeless(other)
    assert report == other_report
    assert_same(records, other_records)


# Settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", SETTINGS)
def test_weights_are_the_papers(i):
    rng = np.random.default_rng(0)
    X, Y, tau, d = rng.standard_normal((9, 6)), rng.standard_normal((9, 2)), 3.0, 6
    largest = max(np.sqrt(sum((X[:, j] @ Y[:, k]) ** 2 for k in range(2))) for j in range(d))
    alpha_1 = i * np.exp(-tau) * largest
    expected = [alpha_1 + alpha_1 / d * (d - rank) for rank in range(1, d + 1)]
    np.testing.assert_allclose(setting_lam(X, Y, tau, i), expected, rtol=1e-14)


def test_sets_have_the_papers_exponents_and_algorithms():
    assert {name: entry.tau for name, entry in DATASETS.items() if entry.stands_in_for is None} == {
        "PlantGO": 3, "EukaryoteGO": 4, "IndoorLoc": 3, "Bookmarks": 2,
        "DrivFace": 3, "Reuters21578": 3, "Protein": 2, "Mnist": 2,
    }  # fmt: skip
    options = Options()
    assert [algorithm.name for algorithm in options.algorithms("apgd")] == [
        "apgd-none", "apgd-paper", "apgd-safe", "apgd-none-restart", "default",
    ]  # fmt: skip
    assert "apgd-none-restart" not in {algorithm.name for algorithm in quick_options().algorithms("apgd")}
    assert [algorithm.name for algorithm in options.algorithms("spgd")] == [
        "spgd-paper-none", "spgd-paper-paper", "spgd-paper-safe",
        "spgd-auto-none", "spgd-auto-paper", "spgd-auto-safe", "default",
    ]  # fmt: skip


def test_solvers_are_as_stated():
    assert (batch_size(2871), batch_size(60_000)) == (30, 40)
    fixed = make_solver("spgd-paper", 60_000, 1e-6)
    assert (fixed.batch_size, fixed.inner_steps, fixed.step) == (40, 40, 1e-6)
    automatic = make_solver("spgd-auto", 2871)
    assert (automatic.batch_size, automatic.inner_steps, automatic.step) == (30, None, "auto")
    assert make_solver("apgd", 100).screen_after > 0  # the paper's warm start
    assert make_solver("apgd", 100).restart == "screen"
    assert make_solver("apgd-restart", 100).restart == "gradient"
    restarted = ALGORITHMS["apgd-none-restart"]
    assert (restarted.screening, restarted.family) == ("none", "apgd-restart")
    assert isinstance(make_solver("default", 100), go.WorkingSet)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cap": 0.0}, "cap must be a finite number above 0, got 0.0"),
        ({"minutes": -1.0}, "minutes must be a finite number above 0, got -1.0"),
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"jobs": 0}, "jobs must be at least 1, got 0"),
        ({"datasets": ("PlantGO", "Plant")}, "datasets must be one of 'PlantGO', .*; got 'Plant'"),
    ],
)
def test_bad_options(changes, message):
    with pytest.raises(ValueError, match=message):
        Options(**changes)


# The plan --------------------------------------------------------------------------------------------


def items_of(stages):
    return [item for stage in stages for group in stage for item in group]


def test_keys_are_unique_and_fit_every_file_system():
    entries = list(DATASETS.values())
    items = items_of([*first_stages(entries, Options()), *later_stages(entries, Options(), set())])
    keys = [item.key for item in items]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9 .-]+", key) for key in keys)
    assert Item("run", "PlantGO", 2, "apgd-paper", 3).key == "PlantGO.p2.apgd-paper.t3"


def test_first_trials_come_first_and_the_first_setting_before_the_others():
    entries = [DATASETS[name] for name in NAMES]
    items = items_of(first_stages(entries, Options()))
    runs = [item for item in items if item.kind == "run"]
    assert {item.trial for item in runs} == {1}
    others = [item.setting > 1 for item in runs]
    assert others == sorted(others)
    assert {item.setting for item in runs} == set(SETTINGS)
    assert {item.dataset for item in runs} == set(NAMES)
    assert items.index(Item("pilot", "Bibtex")) < items.index(Item("run", "Bibtex", 1, "spgd-paper-none"))
    assert Item("study") in items
    assert Item("study") not in items_of(first_stages(entries, Options(study=False)))


def test_slow_cells_are_repeated_once_and_last():
    entries, slow = [DATASETS["PlantGO"]], ("PlantGO", 1, "apgd-none")
    items = items_of(later_stages(entries, Options(), {slow}))
    assert [item.trial for item in items if item.cell == slow] == [2]
    assert items[-1].cell == slow
    others = {item.cell for item in items} - {slow}
    for cell in others:
        assert [item.trial for item in items if item.cell == cell] == [2, 3, 4, 5]
    assert later_stages(entries, Options(trials=1), {slow}) == []


@pytest.mark.parametrize(("change", "count"), [({}, 3), ({"cpu": 6.0}, 2), ({"status": "capped"}, 2)])
def test_what_counts_as_slow(data, tmp_path, change, count):
    """A sixth of the limit of 30 s, or a run that was cut off."""

    class Changed(CannedWorker):
        def ask(self, request, limit):
            reply = super().ask(request, limit)
            return {**reply, **change} if request.get("algorithm") == "apgd-none" and "seed" in request else reply

    results = canned(data, tmp_path, small_options(datasets=("PlantGO",), trials=3), make_worker=Changed).run()
    assert len(results.trials("PlantGO", 1, "apgd-none")) == count
    assert len(results.trials("PlantGO", 1, "apgd-paper")) == 3
    assert ("Trials were cut" in report_markdown(results)) == (count < 3)


def test_quick_plan_fits_five_minutes_and_full_one_two_hours():
    """By the table of expected times, for the sets that are at hand."""
    names = ["PlantGO", "EukaryoteGO", "IndoorLoc", "Reuters21578", "Mnist", "CMUFaces", "ProteinVal", "Bibtex"]
    entries = [DATASETS[name] for name in [*names, "TMC2007-500"]]
    for options, minutes in ((quick_options(), 5), (Options(trials=1), 120)):
        seconds = sum(expected_seconds(item, options) for item in items_of(first_stages(entries, options)))
        assert seconds <= 60 * minutes
    assert quick_options().minutes == 5
    assert Options().minutes == 120


def test_preparations_that_are_compared():
    assert variants_of(DATASETS["IndoorLoc"]) == ("raw targets", "raw features", "raw features and targets")
    assert variants_of(DATASETS["Mnist"]) == ()  # one unit for all pixels changes nothing


# Budget ----------------------------------------------------------------------------------------------


class FakeClock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def slow_worker(clock, seconds):
    """A worker whose answers take time on the fake clock, and that is late where it may not take so long."""

    class Slow(CannedWorker):
        def ask(self, request, limit):
            if seconds > limit:
                clock.now += limit
                raise WorkerError("no answer", late=True)
            clock.now += seconds
            return super().ask(request, limit)

    return Slow


@pytest.mark.parametrize("seconds", [0.5, 7.0, 45.0])
def test_the_budget_is_kept_whatever_runs_take(data, tmp_path, seconds):
    clock = FakeClock()
    options = small_options(minutes=2.0, cap=10.0, step_cap=10.0, trials=1, datasets=("PlantGO", "Bibtex"))
    started = campaign(data, tmp_path, options, clock=clock, make_worker=slow_worker(clock, seconds))
    results = started.run()
    assert clock.now - 1000.0 <= 120.0
    planned = {item.key for item in items_of(started._first_stages())}
    assert set(results.records) | set(results.not_run) | set(results.failed) == planned
    assert bool(results.not_run) == (seconds > 0.5)
    report = report_markdown(results)
    for key in results.not_run:
        assert f"- {key}\n" in report


def test_time_of_earlier_calls_counts(data, tmp_path):
    """A second call with the same minutes has only what the first one left."""
    clock, options = FakeClock(), small_options(minutes=1.0, datasets=("PlantGO",))
    first = campaign(data, tmp_path, options, clock=clock, make_worker=slow_worker(clock, 5.0)).run()
    assert first.not_run
    again = campaign(data, tmp_path, options, clock=clock, make_worker=slow_worker(clock, 5.0))
    second = again.run()
    assert set(second.not_run) == set(first.not_run)
    assert clock.now - 1000.0 <= 60.0
    more = campaign(data, tmp_path, replace(options, minutes=30.0), clock=clock, make_worker=CannedWorker).run()
    assert more.not_run == []


def test_budget_arithmetic():
    clock = FakeClock()
    budget = Budget(100.0, spent=40.0, clock=clock, reserve=10.0)
    assert budget.left == 50.0
    assert budget.allows(30.0)
    clock.now += 30.0
    assert not budget.allows(30.0)
    assert hard_limit(Item("run", "PlantGO", 1, "apgd-none"), Options()) > Options().cap


def test_what_will_not_fit_is_not_begun(data, tmp_path):
    """A study of five minutes is not started with one minute left, even if nothing says that it would be late."""
    asked, clock = [], FakeClock()

    class Recording(CannedWorker):
        def ask(self, request, limit):
            asked.append(request["do"])
            return super().ask(request, limit)

    options = small_options(datasets=("PlantGO",), trials=1, minutes=1.0, study=True)
    results = canned(data, tmp_path, options, make_worker=Recording, clock=clock).run()
    assert results.not_run == ["study"]
    assert "study" not in asked
    assert "run" in asked


def test_seconds_and_expectation_agree_with_the_budget_of_several_jobs(data, tmp_path):
    """Two runs side by side for 40 s each are 40 s, not 80, by every number."""
    clock, options = FakeClock(), small_options(datasets=("PlantGO",), trials=1, minutes=2.0, jobs=2)
    first = canned(data, tmp_path, options, clock=clock)
    first.run()
    for item in items_of(first._first_stages()):
        envelope = json.loads(first.store.path(item).read_text())
        first.store.path(item).write_text(json.dumps({**envelope, "elapsed": 0.0}))
    envelope = json.loads(first.store.path(item).read_text())
    first.store.path(item).write_text(json.dumps({**envelope, "elapsed": 80.0}))
    second = canned(data, tmp_path, replace(options, trials=3), clock=clock)
    assert second.spent == 40.0
    assert second._budget.left == pytest.approx(120.0 - 40.0 - 12.0)
    assert second.expected() <= second._budget.left
    assert second.run().seconds == pytest.approx(40.0)


# Histories -------------------------------------------------------------------------------------------


def history(gaps, alive=None):
    count = len(gaps)
    steps = list(range(count))
    return RunHistory(steps, [2.0 * k for k in steps], [0.5 * k for k in steps], [0.6 * k for k in steps], list(gaps),
                      list(alive or [10] * count))  # fmt: skip


def test_time_at_a_gap_is_that_of_the_first_certificate_below_it():
    run = history([1.0, 1e-2, 3e-2, 1e-4])
    assert run.seconds_at(1e-2) == 0.5
    assert run.seconds_at(2e-2, "wall") == 0.6
    assert run.seconds_at(5e-3) == 1.5
    assert run.seconds_at(1e-5) is None


def test_best_common_gap():
    histories = [history([1.0, 1e-3, 2e-3]), history([1.0, 1e-5]), history([1.0, 1e-7])]
    assert common_gap(histories, 1e-6) == 1e-3
    assert common_gap(histories[1:], 1e-6) == 1e-5
    assert common_gap(histories[2:], 1e-6) == 1e-6
    assert common_gap([], 1e-6) == 1e-6


def test_speed_up_is_taken_at_the_best_common_gap():
    """The unscreened run was cut off at 1e-3: the other is compared there, not at its end."""
    plain = RunRecord("capped", cpu=3.0, wall=3.0, history=history([1.0, 1e-1, 1e-2, 1e-3]))
    screened = RunRecord("converged", cpu=9.0, wall=9.0, gap=1e-6, history=history([1.0, 1e-3, 1e-5, 1e-6]))
    records = {
        "PlantGO.data": {"solver": "apgd", "loss": "squared"},
        "PlantGO.p1.apgd-none.t1": plain.to_dict(),
        "PlantGO.p1.apgd-paper.t1": screened.to_dict(),
    }
    results = Results(Options(trials=1), {}, records=records)
    assert results.gap_of("PlantGO", "apgd", (1,)) == 1e-3
    assert results.speed_up("PlantGO", "apgd", (1,), "apgd-paper") == 1.5 / 0.5
    assert results.speed_up("PlantGO", "apgd", (1,), "default") is None  # was not run
    assert results.speed_up("PlantGO", "apgd", (1, 2), "apgd-paper") is None


def test_screening_rate_counts_inactive_rows():
    run = history([1.0, 1e-1, 1e-2, 1e-3], alive=[10, 10, 6, 2])
    np.testing.assert_allclose(run.screening_rate(2), [0.0, 0.0, 0.5, 1.0])
    assert run.first_removal == 1  # the certificate before the number fell
    assert history([1.0, 1e-3]).first_removal is None
    np.testing.assert_allclose(history([1.0, 0.1], alive=[3, 3]).screening_rate(3), [1.0, 1.0])


def test_thinned_history_keeps_both_ends():
    run = history(np.geomspace(1.0, 1e-6, 5000).tolist())
    thin = run.thinned()
    assert len(thin) <= 200
    assert (thin.iteration[0], thin.iteration[1], thin.iteration[-1]) == (0, 1, 4999)
    assert np.all(np.diff(thin.iteration) > 0)
    assert history([1.0, 0.5]).thinned() == history([1.0, 0.5])


# The judge -------------------------------------------------------------------------------------------


def problem(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 15))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) if loss == "squared" else np.eye(3)[rng.integers(0, 3, 40)]
    return X, Y, go.oscar_lam(15, 4.0 if loss == "squared" else 1.5, 0.1)


def judged_run(X, Y, lam, B, claimed, status="converged"):
    rows = np.flatnonzero(B.any(axis=1))
    verdict = judge(X, Y, lam, "squared", rows.tolist(), B[rows])
    return RunRecord(status, gap=claimed, rows=rows.tolist(), values=B[rows].tolist(), verdict=verdict)


def test_judge_catches_a_planted_wrong_answer():
    X, Y, lam = problem("squared")
    B = go.solve(X, Y, lam, tol=1e-10).B
    right = judged_run(X, Y, lam, B, 1e-10)
    wrong = judged_run(X, Y, lam, np.where(np.arange(15)[:, None] == 0, 0.0, B), 1e-6)  # an active row was screened
    bounds = Bounds.of([right, wrong])
    assert complaint(right, bounds, 1e-6) is None
    assert judged_gap(right, bounds) <= 1e-10
    assert "claims a relative gap of 1.00e-06, but another answer is better by" in complaint(wrong, bounds, 1e-6)
    honest = replace(wrong, gap=judged_gap(wrong, bounds) + 1e-9, status="capped")
    assert complaint(honest, bounds, 1e-6) is None
    assert "counts as converged" in complaint(replace(honest, status="converged"), bounds, 1e-6)


def test_judge_catches_an_objective_below_the_minimum():
    verdict = Verdict(objective=1.0, dual=0.9, null_loss=10.0)
    low = replace(verdict, objective=0.8, dual=0.5)
    runs = [RunRecord("converged", gap=1e-6, verdict=v) for v in (verdict, low)]
    assert "below a lower bound" in complaint(runs[1], Bounds.of(runs), 1e-6)


FINE = Verdict(objective=1.0, dual=1.0 - 1e-8, null_loss=1.0)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (RunRecord("converged", gap=1e-7), "was not judged"),
        (RunRecord("converged", gap=1e-7, verdict=replace(FINE, objective=np.nan)), "is not finite"),
        (RunRecord("converged", gap=1e-7, verdict=replace(FINE, dual=-np.inf)), "is not finite"),
        (RunRecord("capped", gap=1e-7, verdict=replace(FINE, objective=np.inf)), "is not finite"),
        (RunRecord("converged", gap=np.nan, verdict=FINE), "without a finite gap"),
        (RunRecord("converged", verdict=FINE), "without a finite gap"),
        (RunRecord("converged", gap=9e-7, verdict=replace(FINE, objective=1.0 + 2e-6)), "better by 2.00e-06"),
        (RunRecord("capped", gap=9e-7, verdict=replace(FINE, objective=1.0 + 2e-6)), "better by 2.00e-06"),
    ],
)
def test_false_claims_are_caught(claim, message):
    bounds = Bounds.of([RunRecord("converged", gap=1e-8, verdict=FINE), claim])
    assert np.isfinite([bounds.lower, bounds.upper]).all()
    assert message in complaint(claim, bounds, 1e-6)


@pytest.mark.parametrize("status", ["diverged", "killed", "capped"])
def test_who_claims_nothing_is_not_blamed(status):
    for gap, verdict in ((None, None), (np.nan, replace(FINE, objective=np.nan)), (np.inf, None)):
        assert complaint(RunRecord(status, gap=gap, verdict=verdict), Bounds.of([]), 1e-6) is None


def test_all_runs_may_share_a_false_claim():
    """No answer is better than another, but none is as good as it says."""
    verdict = Verdict(objective=1.0, dual=0.9, null_loss=1.0)
    runs = [RunRecord("converged", gap=1e-7, verdict=verdict)] * 2
    assert "its relative gap is judged 1.00e-01, above 1e-06" in complaint(runs[0], Bounds.of(runs), 1e-6)
    assert complaint(replace(runs[0], status="capped"), Bounds.of(runs), 1e-6) is None


def test_references_are_held_to_their_own_gap(done):
    results, _ = done
    key = "PlantGO.p1.reference"
    record = results.records[key]
    spoiled = replace(results, records=results.records | {key: {**record, "gap": 5e-4}})
    assert len(refuted(spoiled)) == 1
    assert "reference: counts as converged with a relative gap of 5.00e-04, above 1e-05" in refuted(spoiled)[0]


def test_a_planted_wrong_answer_is_in_the_report(done):
    results, _ = done
    key = "PlantGO.p1.apgd-paper.t1"
    record = results.records[key]
    verdict = {**record["verdict"], "objective": record["verdict"]["objective"] + 1e-3 * record["verdict"]["null_loss"]}
    spoiled = replace(results, records=results.records | {key: {**record, "verdict": verdict}})
    assert refuted(results) == []
    assert len(refuted(spoiled)) == 1
    report = report_markdown(spoiled)
    assert "PROBLEMS: 1 claim of runs found false." in report
    assert "PlantGO, p_1, APGD, paper's rule, trial 1: claims a relative gap" in report


# Screened rows ---------------------------------------------------------------------------------------


def spoiled_run(results, key, **changes):
    return replace(results, records=results.records | {key: {**results.records[key], **changes}})


def test_a_screened_row_that_is_needed_is_a_complaint(done):
    """One row of the reference is missing among those that the run kept: the count alone does not show it."""
    results, _ = done
    key = "CMUFaces.p3.apgd-safe.t1"
    reference, run = results.records["CMUFaces.p3.reference"], results.records[key]
    assert set(reference["rows"]) <= set(run["alive_rows"])
    assert len(run["alive_rows"]) == run["alive"] < 30
    needed = reference["rows"][int(np.argmax(reference["effects"]))]
    swapped = [row for row in run["alive_rows"] if row != needed]
    swapped.append(next(j for j in range(30) if j not in run["alive_rows"]))
    spoiled = spoiled_run(results, key, alive_rows=swapped)
    (problem,) = refuted(spoiled)
    assert problem.startswith("CMUFaces, p_3, APGD, extended rule, trial 1: screened rows that are not zero in ")
    assert problem in report_markdown(spoiled)
    again = Results.from_dict(json.loads(json.dumps(spoiled.to_dict())))
    assert refuted(again) == [problem]
    pairs = zip(reference["rows"], reference["effects"], strict=True)
    tiny = [1e-9 if row == needed else effect for row, effect in pairs]
    left_over = spoiled_run(spoiled, "CMUFaces.p3.reference", effects=tiny)
    assert refuted(left_over) == []
    assert "screened a row which is not zero there beyond what the gap allows: 0." in report_markdown(left_over)


def test_a_rate_above_one_is_a_complaint(done):
    results, _ = done
    key, selected = "PlantGO.p1.apgd-paper.t1", results.n_selected("PlantGO", 1)
    alive = [*results.records[key]["history"]["alive"][:-1], selected - 1]
    history = {**results.records[key]["history"], "alive": alive}
    spoiled = spoiled_run(results, key, alive=selected - 1, history=history)
    assert RunHistory(**history).screening_rate(selected)[-1] > 1
    (problem,) = refuted(spoiled)
    assert "the screening rate is above 1" in problem
    assert max(result_figures(spoiled)["figure2_screening_regression"].axes[0].get_ylim()) > 100


def test_effects_are_comparable_with_gaps(data):
    """``||x_j|| ||b_j|| / sqrt(2 null_loss)``, for sparse and dense features."""
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    for name in ("PlantGO", "CMUFaces"):
        path = str(found[name].path)
        request = {"do": "run", "dataset": name, "path": path, "setting": 1, "algorithm": "default", "cap": 20.0}
        reply = Server().answer({**request, "tol": 1e-4})
        X = load_dataset(found[name].entry, path).X
        X = X if isinstance(X, np.ndarray) else X.toarray()
        expected = [
            np.linalg.norm(X[:, j]) * np.linalg.norm(values) / np.sqrt(2 * reply["verdict"]["null_loss"])
            for j, values in zip(reply["rows"], reply["values"], strict=True)
        ]
        np.testing.assert_allclose(reply["effects"], expected, rtol=1e-12)
        assert set(reply["rows"]) <= set(reply["alive_rows"])
        unscreened = Server().answer({**request, "tol": 1e-2, "algorithm": "apgd-none"})
        assert unscreened["alive_rows"] is None


def test_differences_of_answers_are_reported(done):
    """A planted coefficient and a planted support, with the default solver included."""
    results, _ = done
    entries = {(entry.run, entry.other): entry for entry in results.agreement.differences}
    assert len(entries) == 2 * 3 * (3 + 2 * 2 + 2)  # paper and safe per family, the default against each family
    assert all(entry.objective <= 2e-3 for entry in entries.values())
    for key, label in (("default.t1", "groupowl's default solver"), ("apgd-safe.t1", "APGD, extended rule")):
        record = results.records[f"PlantGO.p2.{key}"]
        values = [[1e3 * x for x in row] for row in record["values"]]
        spoiled = spoiled_run(results, f"PlantGO.p2.{key}", values=values[1:], rows=record["rows"][1:])
        entry = next(e for e in spoiled.agreement.differences if e.run == f"PlantGO.p2.{key}")
        assert entry.coefficients == pytest.approx(0.999, abs=1e-3)
        assert entry.rows >= 1
        report = report_markdown(spoiled)
        assert f"{entry.coefficients:.1e} of the largest (PlantGO, p_2, {label}, trial 1, and " in report


# The step --------------------------------------------------------------------------------------------


def test_descent():
    assert _descends([4.0, 3.0, 2.0])
    assert _descends([4.0, 2.0, 2.0 + 1e-9])
    assert not _descends([4.0, 2.0, 3.0])
    assert not _descends([4.0, 4.0])
    assert not _descends([4.0, np.inf])
    assert not _descends([4.0])


def test_pilot_takes_the_largest_step_that_descends(data):
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    request = {"do": "pilot", "dataset": "Bibtex", "path": str(found["Bibtex"].path), "seconds": 20.0}
    reply = Server().answer({**request, "steps": [10.0, 1.0, 1e-3, 1e-4]})
    assert [(trial["step"], trial["descends"]) for trial in reply["tried"]] == [
        (10.0, False),
        (1.0, False),
        (1e-3, True),
    ]
    assert reply["step"] == 1e-3
    assert Server().answer({**request, "steps": [10.0]})["step"] is None


def test_pilot_without_time_still_looks(data):
    """With no time at all, every step gets a few snapshots; a step that could not show anything had no time."""
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    request = {"do": "pilot", "dataset": "Bibtex", "path": str(found["Bibtex"].path), "seconds": 0.0}
    reply = Server().answer({**request, "steps": [10.0, 1e-3]})
    assert [trial["descends"] for trial in reply["tried"]] == [False, True]
    assert reply["tried"][1]["snapshots"] == FEWEST_SNAPSHOTS


def test_pilot_that_was_cut_off_had_no_time(data, tmp_path, monkeypatch):
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    request = {"do": "pilot", "dataset": "Bibtex", "path": str(found["Bibtex"].path), "seconds": 5.0}
    monkeypatch.setattr(worker_module, "_watch", lambda objectives, end, progress: not objectives.append(4.0))
    reply = Server().answer({**request, "steps": [1e-3]})
    assert reply["tried"] == [{"step": 1e-3, "descends": None, "lowered": None, "snapshots": 0}]

    class Cut(CannedWorker):
        def ask(self, request, limit):
            return reply if request["do"] == "pilot" else super().ask(request, limit)

    results = canned(data, tmp_path, small_options(datasets=("Bibtex",), trials=1), make_worker=Cut).run()
    assert "| Bibtex | 1e-03 had no time | · |" in report_markdown(results)


def test_no_step_at_all_is_said(data, tmp_path):
    results = campaign(data, tmp_path, small_options(datasets=("Bibtex",), steps=(10.0,), trials=1)).run()
    assert set(results.failed) == {
        f"Bibtex.p{i}.spgd-paper-{rule}.t1" for i in SETTINGS for rule in ("none", "paper", "safe")
    }
    assert "Not possible, because the pilot found no step that descends:" in report_markdown(results)
    assert results.broken == {}
    assert "Bibtex.p1.spgd-auto-paper.t1" in results.records


# A whole campaign ------------------------------------------------------------------------------------


def test_everything_is_run_and_agrees(done):
    results, _ = done
    assert (results.failed, results.not_run, results.unreadable) == ({}, [], {})
    assert tuple(results.datasets) == NAMES
    for name in NAMES:
        for setting in SETTINGS:
            for algorithm in results.algorithms(name):
                trials = results.trials(name, setting, algorithm.name)
                assert len(trials) == 2
                for run in trials:
                    assert run.converged
                    assert run.gap <= 1e-3
                    assert judged_gap(run, results.bounds(name, setting)) <= 1e-3
    assert refuted(results) == []
    assert "Every answer keeps what its run claims." in report_markdown(results)


def test_trials_of_stochastic_solvers_differ_in_their_seed(done):
    results, _ = done
    first, second = results.trials("Bibtex", 1, "spgd-auto-none")
    assert first.history.gap != second.history.gap
    first, second = results.trials("PlantGO", 1, "apgd-none")
    assert first.history.gap == second.history.gap


def test_screening_happened_and_is_measured(done):
    results, _ = done
    run = results.trials("CMUFaces", 3, "apgd-paper")[0]
    assert results.n_selected("CMUFaces", 3) <= run.alive < 30
    assert 0 < run.first_removal["passes"] <= run.passes
    assert results.trials("CMUFaces", 3, "apgd-none")[0].first_removal is None
    assert results.trials("PlantGO", 3, "apgd-paper")[0].history.alive[0] == 59  # the column of zeros is gone at once
    memory = results.memory("PlantGO", "apgd-paper")
    assert 0 < memory["held"] <= memory["peak"]


def test_report_has_every_section_and_cell(done):
    results, _ = done
    report = report_markdown(results)
    for section in (
        "What must hold", "Data", "Settings", "Running times (Figures 1 and 3)", "Iterations and passes",
        "Before the first row leaves", "Screening rate (Figures 2 and 4)", "Speed-up against sparsity", "Memory",
        "Runs that missed the gap", "Checks from outside", "What the preparation changes", "Not run",
    ):  # fmt: skip
        assert report.count(f"\n## {section}\n") == 1
    for claim in ("2x to 6x", "1.5x to 10x", "4x to 7x", "1.2x to 2.4x"):
        assert f"the paper claims {claim}" in report
    assert "divides the gap by the objective instead" in report
    for name in NAMES:
        for setting in SETTINGS:
            assert f"| {name}, p_{setting} |" in report


def planted_times(results, cpu, names=("PlantGO", "CMUFaces")):
    """The results with other times, by algorithm and setting."""
    planted = dict(results.records)
    for name in names:
        for setting in SETTINGS:
            for algorithm, seconds in cpu.items():
                seconds = seconds if isinstance(seconds, float) else seconds[setting - 1]
                for trial in (1, 2):
                    key = Item("run", name, setting, algorithm, trial).key
                    planted[key] = {**planted[key], "cpu": seconds}
    return replace(results, records=planted)


TIMES = {"apgd-none": 30.0, "apgd-paper": 10.0, "default": 1.0, "apgd-none-restart": 15.0}


def test_times_are_means_over_the_trials(done):
    results, _ = done
    for trial, cpu in ((1, 1.0), (2, 4.0)):
        results = spoiled_run(results, f"PlantGO.p1.apgd-none.t{trial}", cpu=cpu)
    assert results.seconds_of("PlantGO", 1, "apgd-none", 1e-3) == 2.5


def test_iterations_that_screening_added_are_counted(done):
    results, _ = done
    plain = results.trials("PlantGO", 1, "apgd-none")[0].iterations
    total = 3 * (2 + 2 + 4 + 4)
    assert re.search(rf"It held in (all comparisons \({total}\)|\d+ of {total} comparisons)", report_markdown(results))
    worse = spoiled_run(results, "PlantGO.p1.apgd-paper.t1", iterations=plain + 10)
    better = spoiled_run(results, "PlantGO.p1.apgd-paper.t1", iterations=plain)
    held = [
        int(re.search(rf"It held in (?:all comparisons \()?(\d+)(?: of {total})?", report_markdown(changed)).group(1))
        for changed in (worse, better)
    ]
    assert held[1] == held[0] + 1
    assert "so it is not true in general" in report_markdown(worse)


def test_rows_selected_are_those_of_the_smallest_gap(done):
    results, _ = done
    changed = spoiled_run(results, "PlantGO.p1.reference", selected=17)
    assert changed.n_selected("PlantGO", 1) == 17
    changed = spoiled_run(changed, "PlantGO.p1.default.t2", selected=5, gap=1e-12)
    assert changed.n_selected("PlantGO", 1) == 5
    assert spoiled_run(changed, "PlantGO.p1.default.t2", gap=np.nan).n_selected("PlantGO", 1) == 17


def test_rates_and_shares_count_the_right_rows(done):
    """Screened rows over those that are zero at the optimum; rows selected over all features."""
    results, _ = done
    history = {**results.records["PlantGO.p1.apgd-paper.t1"]["history"]}
    history["alive"] = [59] * (len(history["alive"]) - 1) + [29]
    changed = spoiled_run(results, "PlantGO.p1.apgd-paper.t1", history=history, alive=29)
    changed = spoiled_run(changed, "PlantGO.p1.reference", selected=19)
    report = report_markdown(changed)
    assert "| PlantGO | APGD, paper's rule | 19 | 75.0 % |" in report
    assert re.search(r"\| PlantGO, p_1 \| APGD \| 19 \| 31.67 % \|", report)  # of 60
    figures = result_figures(changed)
    panel = next(ax for ax in figures["figure2_screening_regression"].axes if ax.get_title() == "PlantGO")
    assert panel.lines[0].get_ydata()[-1] == pytest.approx(75.0)
    line = next(
        line for line in figures["speedup_against_sparsity"].axes[0].lines if line.get_label() == "PlantGO, APGD"
    )
    assert line.get_xdata()[0] == pytest.approx(100 * 19 / 60)


def test_what_must_hold_says_pass_or_what_was_measured(done):
    """With planted times: 3x and 30x in regression pass; 3x is below what the paper claims for classification."""
    results, _ = done
    report = report_markdown(planted_times(results, TIMES))
    assert "| PlantGO | paper's rule | 3.0x | 2x | PASS | 3.0x | 3.0x, 3.0x, 3.0x | 1.5x |" in report
    assert "| PlantGO | default solver | 30.0x | 20x | PASS | 30.0x | 30.0x, 30.0x, 30.0x | 15.0x |" in report
    assert "| CMUFaces | paper's rule | 3.0x | 4x | below | 3.0x |" in report
    passes = results.trials("CMUFaces", 3, "apgd-paper")[0].first_removal["passes"]
    assert (
        f"- CMUFaces, p_3, APGD, paper's rule: 3.0x. The first row could be screened after {passes:.1f} passes"
        in report
    )
    assert "- PlantGO, p_" not in report.partition("\n## Data")[0]
    assert "stopped by its time limit are compared" not in report


def test_a_pass_shows_its_weakest_setting(done):
    """31 s over 12 s in all pass; one setting is slower than without screening, and that is seen."""
    results, _ = done
    changed = planted_times(results, {**TIMES, "apgd-none": (29.0, 1.0, 1.0), "apgd-paper": (9.0, 1.0, 2.0)})
    report = report_markdown(changed)
    assert "| PlantGO | paper's rule | 2.6x | 2x | PASS | 0.5x | 3.2x, 1.0x, 0.5x |" in report
    assert "- PlantGO, p_3, APGD, paper's rule: 0.5x. " in report


def test_reasons_count_half_of_the_inactive_rows(done):
    """22 of 40 inactive rows are gone at the end; of all 59 that would be less than half."""
    results, _ = done
    history = {**results.records["PlantGO.p1.apgd-paper.t1"]["history"]}
    history["alive"] = [59] * (len(history["alive"]) - 1) + [37]
    slow = planted_times(results, {**TIMES, "apgd-none": 10.0}, ["PlantGO"])
    first = {"iteration": 10, "passes": 20.0, "gap": 0.1, "cpu": 0.1}
    slow = spoiled_run(slow, "PlantGO.p1.apgd-paper.t1", history=history, alive=37, first_removal=first)
    slow = spoiled_run(slow, "PlantGO.p1.reference", selected=19)
    assert f"half of the inactive rows after {history['passes'][-1]:.1f}; the whole run" in report_markdown(slow)


def test_capped_settings_say_at_which_gap_they_are_compared(done):
    results, _ = done
    key = "PlantGO.p2.apgd-none.t1"
    record = results.records[key]
    history = {**record["history"], "gap": [max(value, 0.02) for value in record["history"]["gap"]]}
    report = report_markdown(spoiled_run(results, key, status="capped", history=history, gap=0.02))
    assert "so they enter the overall factor: PlantGO p_2 at 2.0e-02; the others at 0.001." in report


def test_factors_are_split_into_fewer_and_cheaper_iterations(done):
    results, _ = done
    planted = planted_times(results, TIMES)
    for setting in SETTINGS:
        for algorithm, seconds in TIMES.items():
            for trial in (1, 2):
                key = Item("run", "PlantGO", setting, algorithm, trial).key
                iterations = {"apgd-none": 200, "apgd-paper": 100, "apgd-none-restart": 50}.get(algorithm, 1)
                planted = spoiled_run(planted, key, iterations=iterations, cpu=seconds)
    report = report_markdown(planted)
    row = next(line for line in report.splitlines() if line.startswith("| PlantGO, p_1 | 3.0x = "))
    cells = row.split(" | ")
    assert cells[1] == "3.0x = 2 x 1.5"
    assert cells[3] == "2.0x = 4 x 0.5"
    assert cells[4] == "1.5x |"
    assert "momentum restarts whenever rows are removed" in report.partition("## Settings")[2]


def test_where_the_default_solver_is_slower_is_said(done):
    results, _ = done
    slower = planted_times(results, {"spgd-auto-paper": 2.0, "default": (3.0, 1.0, 2.0)}, ["Bibtex"])
    slower = planted_times(slower, {"spgd-auto-paper": 2.0, "default": 1.0}, ["ProteinVal"])
    sentence = "was slower than SPGD with the automatic step and the paper's rule on: Bibtex p_1 (1.5x the time)."
    assert sentence in report_markdown(slower)
    faster = planted_times(slower, {"default": 1.0}, ["Bibtex"])
    assert "default solver was slower" not in report_markdown(faster)


def test_restarted_baseline_is_a_row_and_no_bar(done):
    results, _ = done
    report = report_markdown(planted_times(results, TIMES))
    assert "| PlantGO, p_1 | APGD with gradient restart | 1.0e-03 | 2 | 15.0 (2.0x) | · | · | · | 2-6x |" in report
    assert not any("restart" in line for line in report.splitlines() if line.startswith("| Bibtex"))
    assert len(result_figures(results)["figure1_time_regression"].axes[0].patches) == 12


def test_stand_ins_never_go_by_the_papers_names(done):
    results, _ = done
    report = report_markdown(results)
    for name in ("DrivFace", "Bookmarks", "Protein"):
        rows = [line for line in report.splitlines() if line.startswith(f"| {name}")]
        assert all(line.startswith("| ProteinVal") for line in rows)
        assert name not in results.datasets
        assert not any(key.split(".")[0] == name for key in results.records)
        assert f"stand-in for {name}" in report
        assert f"- {name}: looked for " in report  # the real one is listed as missing
    names = {line.split(",")[0] for line in results_csv(results).splitlines()[1:]}
    assert names == set(NAMES)


def test_outputs(done):
    results, out = done
    paths = write_outputs(results, out)
    assert paths[0] == out / "report.md"
    figures = ["figure1_time_regression", "figure2_screening_regression", "figure3_time_multinomial"]
    figures += ["figure4_screening_multinomial", "speedup_against_sparsity"]
    assert {path.name for path in paths[3:]} == {f"{name}.{suffix}" for name in figures for suffix in ("png", "svg")}
    for name in figures:
        pixels = imread(out / f"{name}.png")[..., :3]
        assert len(set(map(bytes, pixels.reshape(-1, 3)))) > 50
        assert "<svg" in (out / f"{name}.svg").read_text()
    loaded = json.loads((out / "results.json").read_text())
    assert "rows" not in loaded["records"]["PlantGO.p1.default.t1"]
    report = (out / "report.md").read_text()
    pictures = re.findall(r"^!\[.+\]\((.+)\)\n\n", report, flags=re.MULTILINE)
    assert sorted(pictures) == sorted(f"{name}.png" for name in figures)
    assert report_markdown(Results.from_dict(loaded)) == re.sub(r"^!\[.+\n\n", "", report, flags=re.MULTILINE)
    lines = results_csv(results).splitlines()
    assert len({len(cells) for cells in csv.reader(lines)}) == 1
    assert len(lines) == 1 + 2 * 3 * (2 * 5 + 2 * 7)
    assert not list(out.glob("*.part"))


def test_figures_of_other_sets_do_not_stay(done, tmp_path):
    results, _ = done
    write_outputs(results, tmp_path)
    (tmp_path / "mine.png").write_text("not ours")
    before = {path.name for path in tmp_path.iterdir()}
    records = {key: record for key, record in results.records.items() if key.startswith("PlantGO")}
    paths = write_outputs(replace(results, records=records), tmp_path)
    after = {path.name for path in tmp_path.iterdir()}
    assert after == {path.name for path in paths} | {"mine.png"}
    assert "figure3_time_multinomial.png" in before - after
    assert "](figure3_time_multinomial.png)" not in (tmp_path / "report.md").read_text()


def test_figures_are_the_same_files_each_time(done, tmp_path):
    results, _ = done
    contents = []
    for name in ("one", "two"):
        write_outputs(results, tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.svg")})
    assert len(contents[0]) == 5
    assert contents[0] == contents[1]


def texts_overlap(figure):
    figure.draw_without_rendering()
    boxes = [ax.title.get_window_extent() for ax in figure.axes if ax.title.get_text()]
    boxes += [figure._suptitle.get_window_extent(), *(legend.get_window_extent() for legend in figure.legends)]
    for ax in figure.axes:
        boxes += [axis.label.get_window_extent() for axis in (ax.xaxis, ax.yaxis) if axis.label.get_text()]
    inside = figure.bbox
    outside = [box for box in boxes if box.x0 < inside.x0 - 1 or box.x1 > inside.x1 + 1]
    return outside or any(box.count_overlaps(boxes[i + 1 :]) for i, box in enumerate(boxes))


@pytest.mark.parametrize("datasets", [NAMES, ("PlantGO",), ("ProteinVal",)])
def test_figures_overlap_nowhere(done, datasets):
    results, _ = done
    records = {key: record for key, record in results.records.items() if key.split(".")[0] in datasets}
    for name, figure in result_figures(replace(results, records=records)).items():
        assert not texts_overlap(figure), name


def test_figure_1_is_relative_to_the_first_setting(done):
    results, _ = done
    figure = result_figures(results)["figure1_time_regression"]
    panel = next(ax for ax in figure.axes if ax.get_title() == "PlantGO, APGD")
    labels = [text.get_text() for text in panel.texts]
    assert len(labels) == 12
    assert labels[0] == "100"  # p_1 without screening
    whole, other = (results.seconds_of("PlantGO", i, f"apgd-{rule}", 1e-3) for i, rule in ((1, "none"), (2, "paper")))
    bars = [bar.get_y() + bar.get_height() for bar in panel.patches]
    assert bars[4] == pytest.approx(100 * other / whole)  # rule by rule, setting by setting


def test_capped_runs_are_compared_where_all_have_been(data, tmp_path):
    """No time at all: every run ends at its first certificate, and the report copes."""
    results = campaign(data, tmp_path, small_options(cap=1e-9, step_cap=1e-9, datasets=("PlantGO",))).run()
    statuses = {record["status"] for key, record in results.records.items() if key.endswith(("t1", "t2"))}
    assert statuses == {"capped"}
    report = report_markdown(results)
    assert "| PlantGO, p_1 | APGD, no screening, trial 1 | capped |" in report
    assert results.gap_of("PlantGO", "apgd", (1,)) > 1e-3
    assert result_figures(results)


def test_a_run_that_hangs_is_recorded(data, tmp_path):
    class Hanging(CannedWorker):
        def ask(self, request, limit):
            if request.get("algorithm") == "apgd-none" and request["do"] == "run":
                raise WorkerError("no answer", late=True)
            return super().ask(request, limit)

    options = small_options(datasets=("PlantGO",), trials=1)
    results = campaign(data, tmp_path, options, make_worker=Hanging).run()
    assert results.records["PlantGO.p1.apgd-none.t1"]["status"] == "killed"
    assert results.speed_up("PlantGO", "apgd", (1,), "apgd-paper") is None
    assert "| PlantGO, p_1 | APGD, no screening, trial 1 | killed | · | · |" in report_markdown(results)
    result_figures(results)


def test_an_error_in_a_run_is_listed_and_tried_again(data, tmp_path):
    class Failing(CannedWorker):
        def ask(self, request, limit):
            if request.get("algorithm") == "apgd-safe":
                return {"error": "MemoryError: too much"}
            return super().ask(request, limit)

    options = small_options(datasets=("PlantGO",), trials=1)
    results = campaign(data, tmp_path, options, make_worker=Failing).run()
    assert results.failed["PlantGO.p1.apgd-safe.t1"] == "MemoryError: too much"
    assert "- PlantGO.p1.apgd-safe.t1: MemoryError: too much" in report_markdown(results)
    again = campaign(data, tmp_path, options, make_worker=CannedWorker).run()
    assert again.failed == {}
    assert "PlantGO.p1.apgd-safe.t1" in again.records


# Data ------------------------------------------------------------------------------------------------


def test_missing_and_broken_sets_are_listed(tmp_path):
    folder = write_folder(tmp_path / "data", ["plantgo"])
    (folder / "bibtex.npz").write_bytes(b"no archive")
    results = campaign(folder, tmp_path / "out", small_options(trials=1)).run()
    report = report_markdown(results)
    assert tuple(results.datasets) == ("PlantGO",)
    assert "- EukaryoteGO: looked for eukaryotego.npz, EukaryoteGO.arff" in report
    assert "Could not be read, and skipped:" in report
    assert "- 'bibtex.npz' cannot be read as the " in report
    assert str(tmp_path) not in report
    assert "The data have 400 samples, the paper has 978." in report


def test_messages_never_contain_folders(tmp_path):
    """The second file of a group is the broken one, in a folder with a space in its name."""
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "trainingData.csv").write_text("WAP001,LATITUDE,LONGITUDE\n1,2,3\n2,3,4\n")
    (folder / "validationData.csv").write_text("nothing of the kind\n")
    write_folder(folder, ["plantgo"])

    class Clumsy(InlineWorker):
        def ask(self, request, limit):
            if request.get("algorithm") == "apgd-safe":
                raise WorkerError(f"the process ended with code 1: OSError: {folder}/plantgo.npz and /etc/other/b.c")
            return super().ask(request, limit)

    results = campaign(folder, tmp_path / "out", small_options(trials=1), make_worker=Clumsy).run()
    assert results.unreadable["IndoorLoc"].startswith("'validationData.csv' cannot be read as the CSV file")
    assert results.failed["PlantGO.p1.apgd-safe.t1"].endswith("OSError: plantgo.npz and b.c")
    everything = report_markdown(results) + json.dumps(results.to_dict())
    for part in (str(tmp_path), "my data", "/etc"):
        assert part not in everything
    report = report_markdown(results)
    assert "Nothing was run on data sets that could not be read: IndoorLoc." in report
    assert "everything that was planned was run" not in report


def test_web_addresses_stay_in_messages():
    text = "see https://host/a/b and www.uco.es/kdis/mllresources, and/or 'C:\\data\\x.npz' or '/a/b/y.npz'"
    assert without_folders(text) == ("see https://host/a/b and www.uco.es/kdis/mllresources, and/or 'x.npz' or 'y.npz'")


def test_sets_of_another_size_are_not_called_the_papers(done):
    results, _ = done
    assert results.whose("PlantGO") == "named as the paper's, size differs"
    assert results.whose("Bibtex") == "stand-in for Bookmarks, size differs from the known copy"
    report = report_markdown(results)
    assert "| PlantGO | named as the paper's, size differs | 400 x 60, 12 |" in report
    lines = list(csv.DictReader(results_csv(results).splitlines()))
    assert {line["whose"] for line in lines if line["data_set"] == "PlantGO"} == {results.whose("PlantGO")}
    entry = DATASETS["PlantGO"]
    sizes = {size: getattr(entry, size) for size in ("n_samples", "n_features", "n_tasks")}
    assert spoiled_run(results, "PlantGO.data", **sizes).whose("PlantGO") == "the paper's"


def test_report_without_any_run(data, tmp_path):
    """Every sentence is about what was found."""

    class Broken(CannedWorker):
        def ask(self, request, limit):
            return {"unreadable": "'plantgo.npz' cannot be read."}

    results = canned(data, tmp_path, make_worker=Broken).run()
    report = report_markdown(results)
    for sentence in (
        "0 runs on 0 data sets took", "None of PlantGO could be used, so nothing can be said here.",
        "There was no pair of runs to compare.", "There were no runs.", "No answer was there to be judged.",
        "Nothing was run on data sets that could not be read: PlantGO.",
    ):  # fmt: skip
        assert sentence in report
    one = canned(data, tmp_path / "one").run()
    assert " runs on 1 data set took " in report_markdown(one)


def test_trials_keep_their_numbers(done):
    """The first trial is missing: the second does not take its name."""
    results, _ = done
    records = {key: record for key, record in results.records.items() if key != "PlantGO.p1.apgd-none.t1"}
    thinner = replace(results, records=records)
    labels = [item.label for item in thinner.answers("PlantGO", 1)]
    assert "PlantGO, p_1, APGD, no screening, trial 2" in labels
    assert "PlantGO, p_1, APGD, no screening, trial 1" not in labels
    lines = list(csv.DictReader(results_csv(thinner).splitlines()))
    cell = {"data_set": "PlantGO", "setting": "p_1", "algorithm": "apgd-none"}
    assert [line["trial"] for line in lines if cell.items() <= line.items()] == ["2"]


def test_chosen_sets_only(data, tmp_path):
    chosen = campaign(data, tmp_path, small_options(datasets=("PlantGO", "Mnist")))
    assert list(chosen.found) == ["PlantGO"]
    assert list(chosen.missing) == ["Mnist"]


def test_no_data_at_all(tmp_path):
    with pytest.raises(ValueError, match=r"data has no file of any data set.*docs/measured/reproduction.md"):
        campaign(tmp_path, tmp_path / "out")
    with pytest.raises(ValueError, match="does not exist"):
        campaign(tmp_path / "nowhere", tmp_path / "out")


def test_other_preparations_are_measured(data, tmp_path, monkeypatch):
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    request = {"do": "variant", "dataset": "PlantGO", "path": str(found["PlantGO"].path), "cap": 20.0, "tol": 1e-8}
    raw = Server().answer({**request, "variant": "raw targets"})
    with np.load(data / "plantgo.npz") as arrays:
        Y = arrays["Y"].astype(float)
    X = load_dataset(found["PlantGO"].entry, found["PlantGO"].path).X
    expected = go.solve(X, Y, setting_lam(X, Y, 3.0, 1), tol=1e-8)
    assert raw["selected"] == len(expected.support)
    assert raw["explained"] == pytest.approx(1 - expected.primal / (0.5 * np.sum(Y**2)), rel=1e-6)


# The store -------------------------------------------------------------------------------------------


def test_nothing_is_done_twice(done, data):
    results, out = done

    class Idle(InlineWorker):
        def ask(self, request, limit):
            raise AssertionError(f"asked again: {request}")

    again = campaign(data, out, make_worker=Idle).run()
    assert_alike(again, results)


def test_restart_forgets(data, tmp_path):
    canned(data, tmp_path).run()
    files = sorted((tmp_path / "runs").iterdir())
    foreign = tmp_path / "runs" / "notes.txt"
    foreign.write_text("mine")
    before = {path.name: path.stat().st_mtime_ns for path in files}
    fresh = canned(data, tmp_path, restart=True)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["notes.txt"]
    fresh.run()
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.json")}
    assert before.keys() == after.keys()
    assert all(after[name] != before[name] for name in before)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"key": "PlantGO.p1.default.t1"}', '{"key": "x", "made_from": {}}']
)
def test_a_spoiled_file_is_done_again(data, tmp_path, content):
    whole = canned(data, tmp_path).run()
    (tmp_path / "runs" / "PlantGO.p1.default.t1.json").write_text(content)
    again = canned(data, tmp_path)
    assert again.repaired == ["PlantGO.p1.default.t1"]
    assert_alike(again.run(), whole)


def test_changed_data_are_refused(tmp_path):
    folder, out = write_folder(tmp_path / "data", ["plantgo"]), tmp_path / "out"
    canned(folder, out).run()
    with np.load(folder / "plantgo.npz") as arrays:
        changed = dict(arrays)
    changed["Y"] = changed["Y"][::-1]
    np.savez(folder / "plantgo.npz", **changed)
    with pytest.raises(ValueError, match=r"PlantGO.data was made with other input: the data file .* --restart"):
        canned(folder, out)
    assert canned(folder, out, restart=True).run().failed == {}


def test_changed_settings_are_refused_and_named(data, tmp_path):
    canned(data, tmp_path).run()
    with pytest.raises(ValueError, match=r"cap \(30.0, now 9.0\)"):
        canned(data, tmp_path, small_options(datasets=("PlantGO",), trials=1, cap=9.0))
    canned(data, tmp_path, small_options(datasets=("PlantGO",), trials=3, minutes=9.0, jobs=2))  # do not change any run


def test_another_version_is_refused(data, tmp_path, monkeypatch):
    canned(data, tmp_path).run()
    monkeypatch.setattr(store_module, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"groupowl \(.*, now 9.9\)"):
        canned(data, tmp_path)


def test_fingerprint_sees_every_part(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for part in ("trainingData.csv", "validationData.csv"):
        (folder / part).write_text("1,2\n")
    (found,), _ = find_datasets(folder)
    before = data_fingerprint(found)
    (folder / "validationData.csv").write_text("1,3\n")
    assert data_fingerprint(found) != before


def test_a_missing_step_makes_its_runs_anew(data, tmp_path):
    """Runs with the paper's step depend on the pilot; without it they are not taken over."""
    options = small_options(datasets=("Bibtex",), trials=1)
    whole = canned(data, tmp_path, options).run()
    Store(tmp_path / "runs").path(Item("pilot", "Bibtex")).unlink()
    assert_alike(canned(data, tmp_path, options).run(), whole)


# Interruption ----------------------------------------------------------------------------------------


class Interrupted(InlineWorker):
    """Raises Ctrl-C at one of the requests, after the work but before its result is stored."""

    left = 0

    def ask(self, request, limit):
        reply = super().ask(request, limit)
        type(self).left -= 1
        if type(self).left < 0:
            raise KeyboardInterrupt
        return reply


@pytest.fixture(scope="module")
def pair(data, tmp_path_factory):
    """Uninterrupted results of one batch and one stochastic set."""
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        return campaign(data, tmp_path_factory.mktemp("pair"), small_options(datasets=("PlantGO", "Bibtex"))).run()


@pytest.mark.parametrize(("seed", "jobs"), [(0, 1), (1, 1), (2, 2)])
def test_interrupted_and_resumed_is_the_same_as_uninterrupted(pair, data, tmp_path, seed, jobs):
    rng = random.Random(seed)
    options = replace(pair.options, jobs=jobs)
    for _ in range(2):
        worker = type("At", (Interrupted,), {"left": rng.randrange(len(pair.records) // 2)})
        with pytest.raises(KeyboardInterrupt):
            campaign(data, tmp_path, options, make_worker=worker).run()
    resumed = campaign(data, tmp_path, options).run()
    assert_alike(replace(resumed, options=pair.options), pair)


def test_timeless_keeps_what_matters(done):
    """A different answer shows; a different time does not."""
    results, _ = done
    key = "PlantGO.p1.apgd-paper.t1"
    record = results.records[key]
    slower = replace(results, records=results.records | {key: {**record, "cpu": 99.0, "wall": 99.0}}, seconds=1e4)
    assert_alike(slower, results)
    assert report_markdown(slower) != report_markdown(results)
    longer = replace(results, records=results.records | {key: {**record, "iterations": record["iterations"] + 10}})
    assert timeless(longer)[0] != timeless(results)[0]


def test_worker_is_stopped_whatever_happens(data, tmp_path):
    made = []

    class Counted(Interrupted):
        def __init__(self):
            super().__init__()
            made.append(self)

    with pytest.raises(KeyboardInterrupt):
        campaign(data, tmp_path, make_worker=Counted).run()
    assert made
    assert all(worker.stopped for worker in made)


def test_progress_tells_how_far_and_how_long(data, tmp_path):
    states = []
    options = small_options(datasets=("PlantGO",), trials=1)
    started = canned(data, tmp_path, options)
    assert started.expected() > 0
    started.run(states.append)
    assert [state.done for state in states] == list(range(states[0].total))
    assert states[-1].seconds_left < states[0].seconds_left
    assert campaign(data, tmp_path, options).expected() == 0


# The study -------------------------------------------------------------------------------------------


@pytest.fixture
def stub_study(monkeypatch):
    """The study's interface without its work."""

    class RecoveryReport:
        def __init__(self, text):
            self.text = text

        def to_dict(self):
            return {"text": self.text}

        @classmethod
        def from_dict(cls, saved):
            return cls(**saved)

        def markdown(self):
            return f"## Groups\n\n{self.text}\n"

    def figure(report):
        drawn = Figure(layout="constrained")
        drawn.suptitle(report.text)
        return drawn

    module = types.SimpleNamespace(
        RecoveryReport=RecoveryReport,
        run_recovery=lambda *, quick, progress: RecoveryReport("quick groups" if quick else "all groups"),
        recovery_figure=figure,
    )
    monkeypatch.setitem(sys.modules, "groupowl_paper.recovery", module)


def test_study_is_run_stored_and_shown(stub_study, data, tmp_path):
    options = small_options(datasets=("PlantGO",), trials=1, minutes=30.0, study=True)
    results = canned(data, tmp_path, options).run()
    assert (tmp_path / "runs" / "study.json").exists()
    assert "\n## Groups\n\nall groups\n" in report_markdown(results)
    assert "study_correlated_groups" in result_figures(results)
    quick = replace(options, quick=True)
    assert "quick groups" in report_markdown(canned(data, tmp_path / "quick", quick).run())


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                    "VECLIB_MAXIMUM_THREADS")  # fmt: skip


# The process -----------------------------------------------------------------------------------------


def test_process_answers_survives_errors_and_can_be_killed(data):
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    request = {"dataset": "PlantGO", "path": str(found["PlantGO"].path)}
    worker = ProcessWorker()
    try:
        assert worker.ask({"do": "data", **request}, 60.0)["n_features"] == 60
        assert worker.ask({"do": "nonsense", **request}, 60.0)["error"].startswith("KeyError")
        assert "unreadable" in worker.ask({"do": "data", "dataset": "Bibtex", "path": "/nowhere/bibtex.npz"}, 60.0)
        run = {"setting": 1, "algorithm": "default", "cap": 20.0, "tol": 1e-4}
        reply = worker.ask({"do": "run", **run, **request}, 60.0)
        assert RunRecord.from_dict(reply).converged
        with pytest.raises(WorkerError, match="no answer within 0 s") as caught:
            worker.ask({"do": "data", **request}, 0.0)
        assert caught.value.late
        assert worker.ask({"do": "data", **request}, 60.0)["name"] == "PlantGO"  # starts anew
        worker._process.kill()
        with pytest.raises(WorkerError, match="ended with code"):
            worker.ask({"do": "data", **request}, 60.0)
    finally:
        worker.stop()
    worker.stop()  # twice does no harm


def test_short_runs_are_repeated_and_the_median_counts(data, monkeypatch):
    monkeypatch.setattr(worker_module, "REPEATS", 5)
    found = {item.entry.name: item for item in find_datasets(data)[0]}
    server = Server()
    request = {"do": "run", "dataset": "PlantGO", "path": str(found["PlantGO"].path), "setting": 1, "tol": 1e-4}
    times = iter([0.05, 0.01, 0.03, 0.02, 0.04])
    original = Server._timed
    monkeypatch.setattr(Server, "_timed", lambda self, *args: replace(original(self, *args), cpu=next(times)))
    reply = server.answer({**request, "algorithm": "default", "cap": 20.0})
    assert (reply["cpu"], reply["repeats"]) == (0.03, 5)


def test_worker_process_has_one_thread_for_every_blas(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    worker = ProcessWorker()
    assert {worker._environment[name] for name in THREAD_VARIABLES} == {"1"}


def test_cpu_and_wall_limits_end_a_run(monkeypatch):
    clocks = {"process_time": 10.0, "perf_counter": 100.0}
    for name in clocks:
        monkeypatch.setattr(worker_module.time, name, lambda name=name: clocks[name])
    watch = worker_module._StopWatch(5.0)
    assert not watch(None)
    clocks["process_time"] += 5.0
    assert watch(None)
    clocks["process_time"] -= 5.0
    clocks["perf_counter"] += 5.0
    assert not watch(None)  # others may use the machine
    clocks["perf_counter"] += 1.5
    assert watch(None)
    assert watch.times[1] == (5.0, 0.0)


def test_record_keeps_cpu_and_wall_apart():
    X, Y, lam = problem("squared")
    result = go.solve(X, Y, lam, tol=1e-4)
    times = [(1.0 + k, 50.0 + k) for k in range(len(result.history))]
    record = worker_module._record(result, times, 30.0, 90.0)
    assert (record.cpu, record.wall) == (30.0, 90.0)
    assert record.history.cpu == [cpu for cpu, _ in times] + [30.0]
    assert record.history.wall == [wall for _, wall in times] + [90.0]


# The lock --------------------------------------------------------------------------------------------


def test_two_calls_do_not_share_a_folder(data, tmp_path):
    class Nosy(CannedWorker):
        def ask(self, request, limit):
            with pytest.raises(BusyError, match="another call is working on --out"):
                canned(data, tmp_path).run()
            with pytest.raises(BusyError, match="another call is working on --out"):
                canned(data, tmp_path, restart=True)
            return super().ask(request, limit)

    (tmp_path / "runs").mkdir()
    results = canned(data, tmp_path, make_worker=Nosy).run()
    assert (results.failed, results.not_run) == ({}, [])
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    canned(data, tmp_path).run()  # free again


def test_a_lock_left_behind_by_a_killed_call_does_no_harm(data, tmp_path):
    (tmp_path / ".lock").write_text("")
    assert canned(data, tmp_path).run().n_runs


# Real data -------------------------------------------------------------------------------------------


@needs_real_folder
def test_real_plantgo(tmp_path):
    options = Options(datasets=("PlantGO",), trials=1, study=False)
    results = campaign(REAL_FOLDER, tmp_path, options).run()
    assert (results.failed, results.not_run, refuted(results)) == ({}, [], [])
    assert results.datasets["PlantGO"]["notes"] == []
    for setting in SETTINGS:
        passes = {
            name: results.trials("PlantGO", setting, name)[0].passes for name in ("apgd-none", "apgd-paper", "default")
        }
        assert passes["apgd-none"] > 5 * passes["apgd-paper"] > 10 * passes["default"] > 0
        assert all(run.converged for run in results.answers("PlantGO", setting).values())


def test_steps_of_the_tests_are_not_the_papers():
    assert Options().steps == (1e-5, 1e-6, 1e-7, 1e-8)
    assert Options().steps != STEPS
    assert set(ALGORITHMS) >= {"default", "apgd-none"}


# Documentation ---------------------------------------------------------------------------------------


def test_documentation_says_where_every_set_comes_from():
    text = (Path(__file__).parents[2] / "docs" / "measured" / "reproduction.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].lstrip("| "): line for line in text.splitlines() if line.startswith("| ")}
    for name, entry in DATASETS.items():
        for part in (entry.source, entry.size, entry.stands_in_for or "the paper's"):
            assert part in rows[name]
        assert all(f"`{file}`" in rows[name] for group in entry.files for file in group)
    assert set(rows) == {"data set", *DATASETS}
