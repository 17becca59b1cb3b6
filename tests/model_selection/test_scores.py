"""Scores with standard errors beside the null model: the numbers of scikit-learn, and what is said of them."""

import numpy as np
import pytest
from sklearn.metrics import mean_poisson_deviance, mean_squared_error, roc_auc_score

from groupowl.estimators.survival import concordance_and_error
from groupowl.losses import resolve_loss
from groupowl.model_selection.scores import (
    Parts,
    Score,
    _shares_below,
    area_under_curve,
    as_score,
    mean_score,
    order_score,
    scoring_name,
    verdicts,
)
from groupowl.model_selection.search import standard_errors


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_errors_of_losses_are_what_their_scores_are_means_of(rng):
    Z, w = rng.standard_normal((30, 3)), rng.random((30, 1))
    for name, Y in (
        ("squared", rng.standard_normal((30, 3))),
        ("huber", 3.0 * rng.standard_normal((30, 3))),
        ("poisson", rng.poisson(2.0, (30, 3)).astype(float)),
        ("logistic", rng.integers(0, 2, (30, 3)).astype(float)),
    ):
        loss = resolve_loss(name)
        weighted = np.average(loss.errors(Z, Y), axis=0, weights=w[:, 0]).mean()
        assert -loss.score(Z, Y, w / w.sum()) == pytest.approx(weighted, rel=1e-12), name


def test_means_of_each_target_are_those_of_scikit_learn(rng):
    """With weights, and without targets that were not observed."""
    Y, P, w = rng.poisson(3.0, (40, 2)).astype(float), rng.gamma(3.0, 1.0, (40, 2)), rng.random((40, 2))
    w[:10, 1] = 0.0
    for metric, name, Z in ((mean_squared_error, "squared", P), (mean_poisson_deviance, "poisson", np.log(P))):
        errors = resolve_loss(name).errors(Z, Y)
        score = mean_score(errors, 2.0 * errors, w, Parts.whole(40), ["a", "b"])
        for k, target in enumerate(score.targets):
            expected = metric(Y[w[:, k] > 0, k], P[w[:, k] > 0, k], sample_weight=w[w[:, k] > 0, k])
            assert score.targets[target].model == pytest.approx(expected, rel=1e-12)
            assert score.targets[target].null == pytest.approx(2.0 * expected, rel=1e-12)
        assert score.model == pytest.approx(np.average(errors, weights=w), rel=1e-12)


def test_the_standard_error_of_a_mean_over_samples(rng):
    errors = rng.random((25, 1))
    score = mean_score(errors, errors + 1.0, np.ones((25, 1)), Parts.whole(25))
    assert score.std_error == pytest.approx(errors.std(ddof=1) / 5.0, rel=1e-12)
    assert score.difference_error == pytest.approx(0.0, abs=1e-12)  # both see the same samples


def test_standard_errors_over_folds_are_those_of_the_search(rng):
    """Repetitions share their samples: they do not make the error smaller."""
    errors, number = rng.random((30, 1)), np.repeat(np.arange(6), 5)
    folds = errors.reshape(6, 5).mean(axis=1)
    for repeats in (1, 2):
        score = mean_score(errors, errors, np.ones((30, 1)), Parts(number, 6, repeats))
        assert score.std_error == pytest.approx(folds.std(ddof=1) / np.sqrt(6 / repeats), rel=1e-12)
        assert score.std_error == pytest.approx(standard_errors(folds[None], repeats)[0], rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_area_under_the_curve(rng, weighted):
    y, w = rng.integers(0, 2, 60) == 1, rng.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    z = np.round(y + rng.standard_normal(60), 1)  # with ties
    area, error = area_under_curve(y, z, w)
    assert area == pytest.approx(roc_auc_score(y, z, sample_weight=w), rel=1e-12)
    placements = _shares_below(z[y], z[~y], w[~y])
    assert np.average(placements, weights=w[y]) == pytest.approx(area, rel=1e-12)
    draws = []
    for _ in range(400):
        rows = rng.integers(0, 60, 60)
        draws.append(roc_auc_score(y[rows], z[rows], sample_weight=w[rows]))
    assert error == pytest.approx(np.std(draws), rel=0.2)
    assert np.isnan(area_under_curve(y | True, z, w)).all()


def test_concordance_has_the_error_of_a_bootstrap(rng):
    z = rng.standard_normal(80)
    y = np.empty(80, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = rng.random(80) < 0.7, rng.exponential(np.exp(-z))
    index, error = concordance_and_error(y, z, np.ones(80))
    draws = []
    for _ in range(200):
        rows = rng.integers(0, 80, 80)
        draws.append(concordance_and_error(y[rows], z[rows], np.ones(80))[0])
    assert 0.5 < index < 1.0
    assert error == pytest.approx(np.std(draws), rel=0.2)


def test_an_order_within_folds_or_across_them(rng):
    """Where a fold has one class only, samples of all folds are compared."""
    y, z, w = np.arange(20) % 2 == 0, rng.standard_normal(20), np.ones(20)

    def measure(rows):
        return area_under_curve(y[rows], z[rows], w[rows])

    number = np.repeat([0, 1], 10)
    inside = [roc_auc_score(y[number == k], z[number == k]) for k in (0, 1)]
    assert order_score(measure, w, Parts(number, 2)).model == pytest.approx(np.mean(inside), rel=1e-12)
    apart = order_score(measure, w, Parts(np.where(y, 0, 1), 2))
    assert apart.model == pytest.approx(roc_auc_score(y, z), rel=1e-12)
    assert apart.null == 0.5


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_verdicts(lower_is_better):
    """No better at all, better by less than one standard error, and better; the direction is that of the score."""
    sign = -1.0 if lower_is_better else 1.0

    def said(gain, error):
        score = Score(10.0 + sign * gain, 10.0, 1.0, error, lower_is_better)
        return verdicts({"score": score})

    assert "NO BETTER" in said(-0.1, 1.0)[0]
    assert "NO BETTER" in said(0.0, 0.0)[0]
    assert "NO BETTER" in said(1e-13, 0.0)[0]  # rounding is no gain
    assert "LESS THAN ONE STANDARD ERROR" in said(0.5, 1.0)[0]
    assert said(1.5, 1.0) == []


def test_verdicts_on_single_targets():
    good, bad, unclear = (Score(model, 1.0, 0.1, 0.2, True) for model in (0.5, 1.1, 0.9))
    scores = {"error": good._replace(targets={"a": good, "b": bad, "c": unclear})}
    first, second = verdicts(scores)
    assert first == "For 1 target of 3 the model is no better than the null model: b."
    assert second == "For 1 target of 3 the model is less than one standard error better than the null model: c."


def test_nothing_is_said_of_pairs_and_of_unknown_null_models():
    assert (
        verdicts({}) == verdicts({"r2": (0.1, 0.5)}) == verdicts({"error": Score(1.0, np.nan, 0.1, np.nan, True)}) == []
    )
    assert as_score((0.1, 0.5))[:2] == (0.1, 0.5)


def test_names_of_scorers():
    assert scoring_name("neg_mean_absolute_error") == ("mean absolute error", True)
    assert scoring_name("roc_auc") == ("roc auc", False)
