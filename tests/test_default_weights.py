"""The study of default weights: its measures, runs that go on, its judge, and a page of stored results."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import groupowl as go

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.default_weights.{name}")


def test_stability_is_1_for_equal_selections_and_0_by_chance(study):
    stability = study("measures").stability
    same = np.tile(np.arange(10) < 3, (5, 1))
    assert stability(same) == 1.0
    chance = np.random.default_rng(0).random((2000, 50)) < 0.3
    assert stability(chance) == pytest.approx(0.0, abs=0.01)
    assert stability(np.ones((4, 6), dtype=bool)) == stability(np.zeros((4, 6), dtype=bool)) == 0.0


def test_togetherness_is_1_for_whole_groups(study):
    measures = study("measures")
    groups = np.repeat(np.arange(6), [3, 3, 2, 1, 1, 90])
    whole = np.isin(groups, [0, 2, 3])
    assert measures.togetherness(whole, groups) == measures.whole_groups(whole, groups) == 1.0
    assert measures.togetherness(whole, groups, is_scaled=False) == pytest.approx(1.0 - 5 / 99)
    part = np.isin(np.arange(100), [0, 1, 3])  # one of two others, twice, and none of two
    assert measures.togetherness(part, groups) == pytest.approx((1 / 4 - 2 / 99) / (1 - 2 / 99))
    assert measures.togetherness(part, groups, by_feature=True, is_scaled=False) == pytest.approx(1 / 3 - 2 / 99)
    assert measures.whole_groups(part, groups) == 0.0
    pairs = np.arange(1000) // 2
    draws = np.random.default_rng(0).random((200, 1000)) < 0.4
    by_chance = [measures.togetherness(draw, pairs, by_feature=True) for draw in draws]
    assert np.mean(by_chance) == pytest.approx(0.0, abs=0.01)
    assert measures.togetherness(np.ones(100, dtype=bool), groups) == 0.0
    assert measures.togetherness(groups == 3, groups) == 0.0
    assert np.isnan(measures.whole_groups(groups == 3, groups))
    assert measures.n_tied(np.array([1, 1, 2, 3, 3, 0, 0])) == 4
    assert measures.n_tied(np.array([], dtype=int)) == 0


def test_groups_of_real_data_have_large_correlations_only(study):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((200, 3))
    near = base[:, :2] + 0.1 * rng.standard_normal((200, 2))
    X = np.column_stack([base, -near, np.ones(200)])
    groups = study("data").correlated_groups(X)
    assert groups[0] == groups[3]
    assert groups[1] == groups[4]
    assert len(np.unique(groups)) == 4


@pytest.mark.parametrize("name", ["breast cancer", "wine", "linnerud"])
def test_a_run_is_what_the_estimators_do(study, name, monkeypatch):
    """Both rules from one search, and errors from points of the path, are those of fits with that rule."""
    data_module, run = study("data"), study("run")
    monkeypatch.setattr(run, "N_ALPHAS", 8)
    monkeypatch.setattr(run, "EPS", 0.1)
    data = next(source for source in data_module.real_sources(None) if source.name == name).load()
    train, test = data.split(0)
    assert not set(train) & set(test)
    assert len(train) + len(test) == len(data.y)
    found = run.run_one(data, 0, "bh")
    kind = go.GroupOWLClassifierCV if data.is_classified else go.GroupOWLRegressorCV
    for rule in run.RULES:
        model = kind(weights="bh", standardize=True, alphas=8, eps=0.1, selection=rule).fit(
            data.X[train], data.y[train]
        )
        if data.is_classified:
            P = model.predict_proba(data.X[test])
            error = -np.mean(np.log(P[np.arange(len(test)), np.searchsorted(model.classes_, data.y[test])]))
        else:
            error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
        assert found[rule]["error"] == pytest.approx(error, rel=1e-4)  # two solves to the same gap
        assert found[rule]["selected"] == np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0)).tolist()
        assert found[rule]["score"] == pytest.approx(model.best_score_)


def test_what_is_absent_is_named(study, tmp_path):
    data = study("data")
    _, absent = study("run").load_all([s for s in data.real_sources(tmp_path) if s.name in ("bibtex", "iris")])
    assert absent == ["bibtex is left out: there is no bibtex.npz in the folder of data (--data DIR)"]


def test_weights_of_the_first_ranks_fall_as_far_whatever_d_is(study):
    first = study("candidates").CANDIDATES["first root of d to 1/2"]
    for d in (1, 2, 100, 10_000):
        weights = first(d, n_samples=50)
        assert weights.shape == (d,)
        assert weights[0] == 1.0
        assert (np.diff(weights) <= 0).all()
    np.testing.assert_allclose(first(10_000, n_samples=50)[[50, 100, -1]], [0.75, 0.5, 0.5])


def fake(study, weights, explained, stability, *, selected=5.0, block=None):
    """Records of one candidate on two data sets of each block."""
    records = []
    for block_name in study("judge").BLOCKS:
        for k, shift in enumerate((-0.001, 0.0, 0.001)):
            for rule in study("run").RULES:
                value = explained if block in (None, block_name) else 0.5
                records.append(
                    {
                        "data": f"{block_name} {k}",
                        "block": block_name,
                        "weights": weights,
                        "rule": rule,
                        "explained": [value + shift, value + shift],
                        "stability": stability + shift,
                        "together": None if k == 0 else stability,
                        "selected": selected,
                    }
                )
    return records


def test_the_judge_follows_the_rule(study, monkeypatch):
    judge = study("judge")
    monkeypatch.setattr(judge, "CANDIDATES", dict.fromkeys(["oscar", "a", "b", "c"]))
    records = fake(study, "oscar", 0.5, 0.6) + fake(study, "a", 0.498, 0.7) + fake(study, "b", 0.499, 0.7, selected=4.0)
    # The steadiest of all, and behind by 3 points on one block.
    results = judge.Results(records + fake(study, "c", 0.47, 0.9, block="known groups"))
    assert results.behind("known groups", "c", "min").mean == pytest.approx(3.0)
    decision = results.decision()
    assert decision.admitted == ["oscar", "a", "b"]
    assert set(decision.tied) == {"a", "b"}
    assert decision.winner == "b"  # fewer features
    even = judge.Results(
        fake(study, "oscar", 0.5, 0.7) + [r for r in results.records.values() if r["weights"] != "oscar"]
    )
    assert even.decision().winner == "oscar"  # a tie changes nothing


@pytest.mark.parametrize(
    ("behind", "is_out"),
    [
        ((0.4, 0.4, 0.4), False),  # a small difference, however sure
        ((0.6, 0.6, 0.7), True),
        ((3.0, 0.0, 0.0), False),  # a larger one that is not sure
        ((9.0, 0.0, 0.0), True),  # too large to ask
    ],
)
def test_who_predicts_too_badly_is_out(study, monkeypatch, behind, is_out):
    judge = study("judge")
    monkeypatch.setattr(judge, "CANDIDATES", dict.fromkeys(["oscar", "a"]))
    worse = fake(study, "a", 0.5, 0.7)
    for record in worse:
        if record["block"] == "real" and record["rule"] == "1se":
            shift = behind[int(record["data"][-1])] / 100.0
            record["explained"] = [value - shift for value in record["explained"]]
    results = judge.Results(fake(study, "oscar", 0.5, 0.7) + worse)
    assert results.is_out("a") == is_out


def test_runs_go_on(study, tmp_path, monkeypatch):
    run = study("run")
    monkeypatch.setattr(run, "CANDIDATES", {"a": None, "b": None})
    calls = []
    monkeypatch.setattr(run, "run_one", lambda data, number, weights: calls.append((number, weights)) or {"seconds": 1})
    data_sets = {"one": (None, None)}
    assert run.run_all(data_sets, 1, run.Log(tmp_path), np.inf)
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"data": "one", "spl')
    log = run.Log(tmp_path)
    assert len(log.runs) == 2
    assert run.run_all(data_sets, 2, log, np.inf)
    assert calls == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert len(run.Log(tmp_path).runs) == 4
    assert not run.run_all(data_sets, 3, log, -1.0)


def test_a_choice_is_what_a_list_of_weights_takes(study):
    judge = study("judge")
    run = {
        name: {"min": {"score": s}, "1se": {"score": -s}, "seconds": 2.0}
        for name, s in zip("abc", (1, 3, 2), strict=True)
    }
    judge.CHOICES["test"] = ("a", "b", "c")
    try:
        chosen = judge._chosen(run, "test")
    finally:
        del judge.CHOICES["test"]
    assert chosen["min"]["score"] == 3
    assert chosen["seconds"] == 6.0


def test_the_page_is_that_of_the_stored_results(study):
    """No figure of the page is written by hand."""
    report = study("report")
    about = report.stored_results(RESULTS)
    assert (RESULTS / report.PAGE).read_text(encoding="utf-8") == report.page(about)
    assert len([name for name, item in about["data"].items() if item["block"] == "real"]) >= 10
