"""The study of false discoveries: its cells, its judge, runs that go on, and tables that follow from stored results."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.inference_study.{name}")


def test_the_design_has_every_level_and_at_most_thirty_cells(study):
    cells = study("cells").CELLS
    assert len(set(cells)) == len(cells) <= 30
    regression = [cell for cell in cells if cell.loss == "squared"]
    assert {cell.d for cell in regression} == {200, 1000}
    assert {cell.q for cell in regression} == {1, 5, 10}
    assert {cell.design for cell in regression} == {"orthogonal", "rho 0", "rho .5", "rho .8"}
    assert {cell.d for cell in regression if cell.design == "orthogonal"} == {200}
    assert {(cell.noise, cell.signal) for cell in regression} == {
        ("independent", "random"),
        ("correlated", "random"),
        ("independent", "rank-one"),
        ("correlated", "rank-one"),
    }
    for loss in ("multinomial", "poisson"):
        assert sum(cell.loss == loss for cell in cells) == 3


def test_draws_are_what_cells_say(study):
    cells = study("cells")
    cell = cells.Cell(200, 5, "rho .5", noise="correlated", signal="rank-one")
    data = cells.draw(cell, 3)
    again = cells.draw(cell, 3)
    np.testing.assert_array_equal(data.X, again.X)
    np.testing.assert_array_equal(data.Y, again.Y)
    assert data.is_true.sum() == cells.N_TRUE
    neighbors = np.mean(data.X[:, 1:] * data.X[:, :-1])
    assert neighbors == pytest.approx(0.5, abs=0.02)
    B = np.linalg.lstsq(data.X, data.Y, rcond=None)[0]
    noise = np.corrcoef((data.Y - data.X @ B).T)
    assert noise[np.triu_indices(5, 1)].mean() == pytest.approx(0.8, abs=0.05)
    X = cells.draw(cells.Cell(200, 1, "orthogonal"), 0).X
    np.testing.assert_allclose(X.T @ X, 500 * np.eye(200), atol=1e-9)


def outcomes(false, selected=10, promise_cell="c"):
    return [
        {
            "cell": promise_cell,
            "procedure": "p",
            "seed": i,
            "selected": selected,
            "false": f,
            "seconds": 1,
        }
        for i, f in enumerate(false)
    ]


def test_the_judge(study):
    report, run, cells = study("report"), study("run"), study("cells")
    procedures = study("procedures")
    rate = procedures.Procedure("p", None)
    count = procedures.Procedure("p", None, "count")
    none = procedures.Procedure("p", None, "")
    cell = cells.Cell(200, 5, "rho 0")
    good, bad = run.summarize(outcomes([1, 1, 1, 1])), run.summarize(outcomes([3, 3, 3, 4]))
    assert good.rate == pytest.approx(0.1)
    assert report.verdict(rate, cell, good, None) == "kept"
    assert report.verdict(rate, cell, bad, None) == "to be run again"
    assert report.verdict(rate, cell, bad, bad) == "missed"
    assert report.verdict(rate, cell, bad, good) == "kept when run again"
    assert report.verdict(count, cell, good, None) == "kept"
    assert report.verdict(count, cell, bad, bad) == "missed"
    assert report.verdict(none, cell, bad, None) == ""
    spread = run.summarize(outcomes([0, 2, 0, 2, 1, 3]))  # 0.13 with a standard error of 0.05
    assert report.verdict(rate, cell, spread, None) == "kept"
    assert spread.rate_se == pytest.approx(np.std([0, 0.2, 0, 0.2, 0.1, 0.3], ddof=1) / np.sqrt(6))
    empty = run.summarize(outcomes([0, 0], selected=0))
    assert empty.rate == 0.0
    failed = run.summarize([{"cell": "c", "procedure": "p", "seed": 0, "error": "ValueError: no"}])
    assert failed.n_runs == 0
    assert failed.n_errors == 1
    assert report.verdict(rate, cell, failed, None) == ""
    assert run.summarize([]) is None


def test_runs_go_on_and_fresh_seeds_are_fresh(study, tmp_path, monkeypatch):
    run, cells, procedures = study("run"), study("cells"), study("procedures")
    cell = cells.Cell(200, 1, "rho 0")
    liar = procedures.Procedure("liar", lambda data: np.ones(data.cell.d, dtype=bool))
    heavy = procedures.Procedure("heavy", lambda data: data.is_true, is_heavy=True)
    broken = procedures.Procedure("broken", lambda data: 1 / 0)
    absent = procedures.Procedure("absent", None, exists=lambda: False)
    few = procedures.Procedure("few", lambda data: data.is_true, "", is_heavy=True)
    monkeypatch.setattr(run, "PROCEDURES", [liar, heavy, few, broken, absent])
    plan = run.Plan([cell], n_runs=3, n_heavy=2, n_few=1, n_slow=0, n_fresh=2, n_fresh_heavy=2, timed=9)
    log = run.Log(tmp_path, {"groupowl": "1"})
    items = list(run.first_items(plan, log))
    names = [("liar", "heavy", "few", "broken"), ("liar", "heavy", "broken"), ("liar", "broken")]
    assert [item.work for item in items] == [((cell, some),) for some in names]
    log.add(run.run_item(items[0]))
    with log.path.open("a") as file:
        file.write('{"cell": "cut o')
    log = run.Log(tmp_path, {"groupowl": "1"})
    assert [item.seed for item in run.first_items(plan, log)] == [1, 2]
    assert not list(run.fresh_items(plan, log))  # the first runs are not done: one look, not many
    for item in items[1:]:
        log.add(run.run_item(item))
    assert run.summarize(log.of(cell, heavy, fresh=False)).power == 1.0
    assert run.summarize(log.of(cell, liar, fresh=False)).rate == pytest.approx(0.9)
    assert "ZeroDivisionError" in run.summarize(log.of(cell, broken, fresh=False)).error
    fresh = list(run.fresh_items(plan, log))
    assert [(item.work, item.seed - run.FRESH) for item in fresh] == [(((cell, ("liar",)),), i) for i in (0, 1)]
    log = run.Log(tmp_path, {"groupowl": "1"})
    assert not list(run.first_items(plan, log))


def test_promises_that_were_withdrawn_are_not_judged(study):
    """What the documentation says of integrated paths; and what promises nothing is run less often."""
    procedures, cells, run = study("procedures"), study("cells"), study("run")
    named = {procedure.name: procedure for procedure in procedures.PROCEDURES}
    integrated, pairs = named["stability, integrated"], named["stability, r-concave"]
    kept, correlated = cells.Cell(200, 5, "rho 0"), cells.Cell(200, 5, "rho .5")
    noise = cells.Cell(200, 5, "rho 0", noise="correlated")
    assert [integrated.judges(cell) for cell in (kept, correlated, noise)] == [True, False, False]
    assert all(pairs.judges(cell) for cell in (kept, correlated, noise))
    assert [run.FULL.count(integrated, cell) for cell in (kept, correlated, noise)] == [50, 20, 20]
    assert run.FULL.count(named["knockoffs, law known"], correlated) == 200
    assert run.FULL.count(named["hidimstat, one task"], correlated) == 10
    assert run.FULL.count(named["cross-validated alpha"], correlated) == 20
    for plan in (run.FULL, run.TEN_MINUTES):
        for procedure in procedures.PROCEDURES:
            assert plan.timed in plan.seeds(procedure, correlated) or not plan.count(procedure, correlated)


def test_all_cells_are_equally_far_at_any_time(study, tmp_path):
    run = study("run")
    log = run.Log(tmp_path, {})
    seeds = [item.seed for item in run.first_items(run.FULL, log)]
    assert seeds == sorted(seeds)
    of_one = [item for item in run.first_items(run.FULL, log) if item.seed == 0]
    cells = [cell for item in of_one for cell, _ in item.work]
    assert len(cells) == len(set(cells)) == 30
    for item in of_one:  # cells of an item have the same columns
        assert len({(cell.d, cell.design) for cell, _ in item.work}) == 1


def test_packed_runs_go_on_elsewhere(study, tmp_path, monkeypatch):
    run, cells, procedures = study("run"), study("cells"), study("procedures")
    cell = cells.Cell(200, 1, "rho 0")
    good = procedures.Procedure("good", lambda data: data.is_true)
    broken = procedures.Procedure("broken", lambda data: 1 / 0)
    monkeypatch.setattr(run, "PROCEDURES", [good, broken])
    plan = run.Plan([cell], n_runs=4, n_heavy=0, n_few=0, n_slow=0, n_fresh=0, n_fresh_heavy=0, timed=1)
    packed = tmp_path / "runs.gz"
    here = run.Log(tmp_path / "here", {"commit": "aa"})
    for item in list(run.first_items(plan, here))[:2]:
        here.add(run.run_item(item))
    here.pack(packed)
    there = run.Log(tmp_path / "there", {"commit": "bb"}, packed)
    assert {key: outcome.get("seconds") is not None for key, outcome in there.outcomes.items()} == {
        (cell.name, "good", 0): False,
        (cell.name, "good", 1): True,
        (cell.name, "broken", 0): False,
        (cell.name, "broken", 1): False,
    }
    assert there.outcomes == here.outcomes
    items = list(run.first_items(plan, there))
    assert [item.seed for item in items] == [2, 3]
    there.add(run.run_item(items[0]))
    there.pack(packed)
    again = run.Log(tmp_path / "again", {"commit": "cc"}, packed)
    assert again.outcomes == there.outcomes
    assert again.used_environments() == [{"commit": "aa", "runs": 4}, {"commit": "bb", "runs": 2}]
    # What both the folder and the packed file have counts once.
    assert len(run.Log(tmp_path / "there", {"commit": "bb"}, packed).outcomes) == 6
    before = packed.read_bytes()
    again.pack(packed)
    assert packed.read_bytes() != before  # one more commit, of no run
    assert run.Log(tmp_path / "x", {}, packed).outcomes == there.outcomes


def test_runs_of_later_commits_go_on_and_all_commits_are_named(study, tmp_path):
    run = study("run")
    for number, commit in enumerate(("aa", "bb", "bb")):
        log = run.Log(tmp_path, {"groupowl": "1", "commit": commit})
        log.add([{"cell": "c", "procedure": "p", "seed": number, "selected": 1, "false": 0}])
    log = run.Log(tmp_path, {"groupowl": "1", "commit": "cc"})
    assert [found["runs"] for found in log.used_environments()] == [1, 2]
    assert [found["commit"] for found in log.used_environments()] == ["aa", "bb"]


def test_shared_work_changes_no_selection(study, monkeypatch):
    """Laws of columns, nodewise fits and paths of halves that were computed for another procedure or another cell."""
    cells, procedures, shared = study("cells"), study("procedures"), study("shared")
    monkeypatch.setattr(procedures, "N_PAIRS", 8)
    monkeypatch.setattr(procedures, "N_REPEATS", 2)
    names = ["stability, integrated", "stability, r-concave", "stability, worst case", "desparsified tests"]
    names += ["knockoffs, law known", "knockoffs, law estimated", "knockoffs, derandomized"]
    chosen = [procedure for procedure in procedures.PROCEDURES if procedure.name in names]
    for q, seed in ((1, 7), (3, 7), (3, 8)):  # the same columns, then others
        data = cells.draw(cells.Cell(200, q, "rho .5"), seed)
        together = {procedure.name: procedure.select(data) for procedure in reversed(chosen)}
        if q == 1:
            continue
        assert sum(mask.any() for mask in together.values()) >= 5
        for procedure in chosen:
            with shared.alone():
                np.testing.assert_array_equal(procedure.select(data), together[procedure.name], procedure.name)


def test_cut_paths_are_those_of_smaller_base_selectors(study):
    """Not the selections alone, but every entry."""
    from groupowl.inference import StabilitySelector, stability

    shared = study("shared")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 60))
    Y = X[:, :5] @ rng.standard_normal((5, 2)) + rng.standard_normal((80, 2))
    found = {}
    original = stability.run_pairs

    def kept(fits, *others, **more):
        found[fits.most] = original(fits, *others, **more)
        return found[fits.most]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stability, "run_pairs", kept)
        for most in (3, 10, 40):
            StabilitySelector(5, n_selected=most, n_pairs=10, random_state=0, threshold=0.99).fit(X, Y)
    for most in (3, 10):
        for long, short in zip(found[40], found[most], strict=True):
            for half, expected in zip(long, short, strict=True):
                for name, value in shared.cut(half, most, 30)._asdict().items():
                    np.testing.assert_array_equal(value, getattr(expected, name), err_msg=name)


def test_one_draw_with_procedures_of_the_package(study):
    run, cells, procedures = study("run"), study("cells"), study("procedures")
    cell = cells.Cell(200, 5, "rho .5")
    names = ("knockoffs, law known", "knockoffs, fixed X", "chi, noise known")
    found = list(run.run_item(run.Item(0, ((cell, names),))))
    assert {outcome["procedure"] for outcome in found} == set(names)
    for outcome in found:
        assert "error" not in outcome, outcome
        assert outcome["selected"] - outcome["false"] > 10
    known = {procedure.name for procedure in procedures.PROCEDURES}
    assert len(known) == len(procedures.PROCEDURES)


def test_tables_are_those_of_the_stored_results(study):
    """No figure of a page is written by hand."""
    report = study("report")
    about = report.stored_results(RESULTS)
    assert (RESULTS / report.PAGE).read_text(encoding="utf-8") == report.page(about)
    assert (RESULTS / report.GUIDE_TABLE).read_text(encoding="utf-8") == report.guide_table(about)
    assert all(versions["groupowl"] for versions in about["versions"])


def test_results_of_the_full_study_come_first(study, tmp_path):
    report = study("report")
    for name, is_quick in ((report.QUICK_RESULTS, True), (report.FULL_RESULTS, False)):
        (tmp_path / name).write_text(json.dumps({"quick": is_quick}), encoding="utf-8")
        assert report.stored_results(tmp_path) == {"quick": is_quick}
