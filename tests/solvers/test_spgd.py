"""Algorithm 2: an unbiased gradient from few samples, seeds, steps that recover, screening in the outer loop."""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from groupowl.problem import Problem
from support import make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for loss, intercept, weighted, sparse in itertools.product(["squared", "multinomial"], *[[False, True]] * 3)
]
RECORDED = ("primal", "dual", "gap", "passes", "n_active", "n_nonzero", "iteration")


def kind_name(kind):
    return "-".join([kind["loss"], *(name for name in ("fit_intercept", "weighted", "sparse") if kind[name])])


def spgd(case, *, random_state=0, screening="none", tol=1e-6, max_iter=1000, callback=None, **settings):
    """Solve with SPGD of these settings."""
    return go.solve(
        **case.arguments(),
        solver=go.SPGD(**settings),
        screening=screening,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        callback=callback,
    )


def snapshots(case, number, **settings):
    """Coefficients at the start and after each of the first ``number`` outer iterations."""
    seen = []

    def stop(progress):
        seen.append(progress.coefficients()[0].copy())
        return len(seen) > number

    spgd(case, tol=1e-14, callback=stop, **settings)
    return seen


@pytest.fixture
def batches(monkeypatch):
    """The batches that inner steps use, as (samples, rows of the problem), in order."""
    seen = []
    original = Problem.batch_descent_change

    def spy(problem, rows, B, theta):
        seen.append((rows, problem.n_rows))
        return original(problem, rows, B, theta)

    monkeypatch.setattr(Problem, "batch_descent_change", spy)
    return seen


def shrink_batch_lipschitz(monkeypatch, factor):
    """Make the automatic step start ``factor`` times longer than it should."""
    original = Problem.batch_lipschitz
    monkeypatch.setattr(Problem, "batch_lipschitz", lambda problem, size: original(problem, size) / factor)


def sample_descents(case, B):
    """Minus the gradient of each sample's loss, (n_samples, n_features, n_tasks), from scratch."""
    Z = case.X @ B
    if case.loss == "multinomial":
        Z = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    w = np.ones(len(Z)) if case.sample_weight is None else case.sample_weight
    return case.X[:, :, None] * (w[:, None] * (case.Y - Z))[:, None, :]


# The estimate of the gradient ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 6, 24])
@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_batch_estimate_is_unbiased(kind, size):
    """Its mean over batches that make up the data is the difference of the full directions."""
    problem = make_case(70, n=24, d=10, **kind).problem()
    rng = np.random.default_rng(0)
    snapshot, B = rng.standard_normal((2, problem.n_coefficients, 3))
    Z = problem.predictor(snapshot)
    change = problem.descent(problem.predictor(B)) - problem.descent(Z)
    estimates = [
        problem.batch_descent_change(rows, B, problem.dual_point(Z)) for rows in rng.permutation(24).reshape(-1, size)
    ]
    accuracy = 1e-12 * np.abs(change).max()
    np.testing.assert_allclose(np.mean(estimates, axis=0), change, rtol=0, atol=accuracy)
    if size < 24:  # and it is an estimate: single batches differ
        assert np.abs(estimates[0] - change).max() > 1e6 * accuracy


@pytest.mark.parametrize("kind", [{"loss": "squared"}, {"loss": "multinomial", "weighted": True}], ids=str)
def test_batch_mean_against_a_sum_as_printed_in_the_paper_is_biased(kind):
    """Errata (b): with the batch's mean the average direction is nowhere near the gradient; with ours it is it."""
    case = make_case(71, n=24, d=10, **kind)
    problem = case.problem()
    rng = np.random.default_rng(0)
    snapshot, B = rng.standard_normal((2, 10, 3))
    at_snapshot, at_B = sample_descents(case, snapshot), sample_descents(case, B)
    theta = problem.dual_point(problem.predictor(snapshot))
    printed, ours = [], []
    for rows in rng.permutation(24).reshape(-1, 6):
        batch_sum = (at_B - at_snapshot)[rows].sum(axis=0)
        printed.append(batch_sum / 6 + at_snapshot.sum(axis=0))
        ours.append(problem.batch_descent_change(rows, B, theta) + at_snapshot.sum(axis=0))
        np.testing.assert_allclose(ours[-1], 24 / 6 * batch_sum + at_snapshot.sum(axis=0), rtol=1e-10, atol=1e-10)
    gradient = at_B.sum(axis=0)
    np.testing.assert_allclose(np.mean(ours, axis=0), gradient, rtol=0, atol=1e-12 * np.abs(gradient).max())
    assert np.linalg.norm(np.mean(printed, axis=0) - gradient) > 0.5 * np.linalg.norm(gradient)


# Seeds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_a_seed_decides_every_bit(loss):
    case = make_case(72, n=60, d=40, loss=loss, fit_intercept=True)
    first, again = (spgd(case, screening="safe", random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.B, again.B)
    np.testing.assert_array_equal(first.intercept, again.intercept)
    for name in RECORDED:
        np.testing.assert_array_equal(getattr(first.history, name), getattr(again.history, name))


def test_other_seeds_take_other_ways_to_the_same_objective():
    case = make_case(73, n=60, d=40, loss="multinomial")
    results = [spgd(case, tol=1e-8, random_state=seed) for seed in (0, 1, None)]
    for one, other in itertools.combinations(results, 2):
        assert one.history.primal[1] != other.history.primal[1]
        assert abs(one.primal - other.primal) <= one.gap + other.gap


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["Generator", "RandomState"])
def test_generators_are_used_as_they_are(make):
    """Equal generators give equal answers; one that has been used goes on from where it is."""
    case = make_case(74, n=60, d=20)
    generator = make(3)
    first, second = spgd(case, random_state=generator), spgd(case, random_state=generator)
    np.testing.assert_array_equal(first.B, spgd(case, random_state=make(3)).B)
    assert first.history.primal[1] != second.history.primal[1]


def test_a_generator_of_a_seed_is_that_seed():
    case = make_case(74, n=60, d=20)
    np.testing.assert_array_equal(spgd(case, random_state=7).B, spgd(case, random_state=np.random.default_rng(7)).B)


@pytest.mark.parametrize("random_state", ["seed", -1, 1.5, object(), np.random])
def test_bad_random_states_are_refused(random_state):
    with pytest.raises(ValueError, match=r"random_state must be a non-negative integer.*; got .+\."):
        spgd(make_case(75), random_state=random_state)


# Inner steps and batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("inner_steps", "expected"), [(None, 12), (5, 5), (12, 12), (30, 30)])
def test_batches_cover_the_data_in_random_order(inner_steps, expected, batches):
    """80 samples in batches of 7: eleven whole ones and a rest of 3; no sample comes again before all were used."""
    snapshots(make_case(76, n=80, d=20), 1, batch_size=7, inner_steps=inner_steps)
    used = [rows for rows, _ in batches]
    assert [len(rows) for rows in used] == ([7] * 11 + [3]) * (expected // 12) + [7] * (expected % 12)
    rounds = [np.concatenate(used[start : start + 12]) for start in range(0, expected, 12)]
    for samples in rounds:
        assert len(np.unique(samples)) == len(samples)
    if expected > 12:
        assert not np.array_equal(rounds[0], rounds[1])  # shuffled anew


@pytest.mark.parametrize(
    ("n", "batch_size", "expected"), [(80, 1000, 8), (80, 8, 8), (80, 3, 3), (7, 50, 1), (1, 50, 1)]
)
def test_a_batch_is_at_most_a_tenth_of_the_samples(n, batch_size, expected, batches):
    snapshots(make_case(77, n=n, d=5), 1, batch_size=batch_size)
    assert max(len(rows) for rows, _ in batches) == expected
    assert sorted(np.concatenate([rows for rows, _ in batches])) == list(range(n))


@pytest.mark.parametrize(
    "settings", [{"inner_steps": 1}, {"inner_steps": 4}, {"inner_steps": 70}, {"batch_size": 1}, {"batch_size": 10**6}]
)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_every_batch_size_and_number_of_inner_steps_reaches_the_minimum(loss, settings):
    case = make_case(78, n=60, d=20, loss=loss, fit_intercept=True, weighted=True)
    reference = go.solve(**case.arguments(), tol=1e-10)
    result = spgd(case, tol=1e-7, max_iter=20_000, **settings)
    assert result.converged
    assert abs(result.primal - reference.primal) <= result.gap + reference.gap


# Steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{"loss": "squared"}, {"loss": "multinomial", "weighted": True}], ids=str)
def test_a_number_is_the_step_itself(kind, batches):
    """Inner steps by hand: the first has no batch error and is a plain proximal gradient step, the others have."""
    case = make_case(79, n=50, d=12, **kind)
    step = 1e-3
    before, one = snapshots(case, 1, step=step, inner_steps=1)
    descent = sample_descents(case, before).sum(axis=0)
    np.testing.assert_allclose(one, go.owl_prox(step * descent, case.lam, step=step), rtol=0, atol=1e-13)
    batches.clear()
    B, third = snapshots(case, 1, step=step, inner_steps=3)
    for rows, _ in batches:
        change = (sample_descents(case, B) - sample_descents(case, before))[rows].sum(axis=0)
        B = go.owl_prox(B + step * (descent + 50 / len(rows) * change), case.lam, step=step)
    assert len(batches) == 3
    np.testing.assert_allclose(third, B, rtol=0, atol=1e-12)
    assert np.abs(third - one).max() > 1e-6


@pytest.mark.parametrize("step", [0.1, 10.0, 1e100])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_too_long_a_fixed_step_stalls_and_returns_the_best_point(loss, step):
    case = make_case(70, n=100, d=30, loss=loss)
    with pytest.warns(ConvergenceWarning, match="no more progress"):
        result = spgd(case, step=step)
    assert (result.status, result.converged) == ("stalled", False)
    assert np.isfinite(result.B).all()
    assert np.isfinite(result.gap)
    assert result.gap == result.history.gap.min()
    assert result.primal <= case.objective(np.zeros((30, 3))) * (1 + 1e-12)


@pytest.mark.parametrize("screening", ["none", "safe"])
@pytest.mark.parametrize("factor", [1e3, 1e9])
@pytest.mark.parametrize("kind", [{"loss": "squared"}, {"loss": "multinomial", "fit_intercept": True}], ids=str)
def test_the_automatic_step_recovers_from_divergence(kind, factor, screening, monkeypatch):
    """A first step a thousand times too long: the rise is undone, the step halved, the minimum reached."""
    case = make_case(80, n=100, d=60, **kind)
    shrink_batch_lipschitz(monkeypatch, factor)
    result = spgd(case, screening=screening)
    assert result.converged
    history = result.history
    undone = np.count_nonzero(history.primal[1:] == history.primal[0])
    assert undone >= 5  # so many halvings before the objective moves at all
    assert np.all(np.diff(history.primal) <= 1e-12 * history.primal[0])
    reference = go.solve(**case.arguments(), tol=1e-10)
    assert abs(result.primal - reference.primal) <= result.gap + reference.gap


def test_a_timid_first_step_grows(monkeypatch):
    """A first step a million times too short costs about twenty epochs, not a million."""
    case = make_case(81, n=100, d=30)
    usual = spgd(case).n_iter
    shrink_batch_lipschitz(monkeypatch, 1e-6)
    result = spgd(case)
    assert result.converged
    assert usual + 10 < result.n_iter < usual + 40


def test_a_fixed_step_is_neither_halved_nor_doubled():
    """Four epochs in one run are four runs of one epoch, each from where the last one ended."""
    case = make_case(82, n=50, d=12)
    generator = np.random.default_rng(0)
    B = None
    for _ in range(4):
        seen = []
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            go.solve(
                **case.arguments(),
                solver=go.SPGD(step=2e-3),
                screening="none",
                tol=1e-14,
                max_iter=1,
                B_init=B,
                random_state=generator,
                callback=lambda progress, seen=seen: seen.append(progress.coefficients()[0].copy()),
            )
        B = seen[-1]
    np.testing.assert_allclose(B, snapshots(case, 4, step=2e-3)[-1], rtol=0, atol=1e-12)


# Screening -------------------------------------------------------------------------------------------------


@pytest.fixture
def mostly_zero():
    """A problem whose solution has at most a tenth of its rows."""
    case = make_case(83, n=300, d=300, fraction=0.3)
    assert 0 < len(go.solve(**case.arguments(), tol=1e-8).support) <= 30
    return case


@pytest.mark.parametrize("rule", ["paper", "safe"])
def test_screening_saves_passes_and_shrinks_what_inner_steps_see(mostly_zero, rule, batches):
    plain = spgd(mostly_zero, tol=1e-8)
    assert {n_rows for _, n_rows in batches} == {300}
    batches.clear()
    screened = spgd(mostly_zero, screening=rule, tol=1e-8)
    sizes = [n_rows for _, n_rows in batches]
    assert sizes == sorted(sizes, reverse=True)
    assert len(screened.support) <= sizes[-1] < 30
    assert screened.n_passes < 0.8 * plain.n_passes
    assert abs(screened.primal - plain.primal) <= screened.gap + plain.gap


def test_screen_after_delays_the_first_test(mostly_zero):
    early = spgd(mostly_zero, screening="safe", tol=1e-8)
    late = spgd(mostly_zero, screening="safe", screen_after=10, tol=1e-8)
    assert early.history.n_active[10] < 300
    assert np.all(late.history.n_active[:11] == 300)
    assert late.history.n_active[11] < 300
    assert abs(early.primal - late.primal) <= early.gap + late.gap


@pytest.mark.parametrize("kind", [{"loss": "squared"}, {"loss": "multinomial", "fit_intercept": True}], ids=str)
def test_the_state_follows_every_removal_of_rows(kind):
    """Non-zero rows, then zero ones, with no step accepted between: predictor and gradient are those of the rest."""
    problem, solver = make_case(84, n=40, d=12, **kind).problem(), go.SPGD(step=1e-3, inner_steps=1)
    B = problem.null_coefficients()
    B[:4] = 1.0
    state, certificate = solver.start(problem, B, np.random.default_rng(0)), problem.certify(B)
    for keep in (np.arange(2, 12), np.arange(6)):  # the first removal takes rows that are not zero, the second none
        rows = problem.row_index(keep)
        problem, certificate = problem.restrict(keep), certificate.restrict(keep, keep)
        state = solver.restrict(problem, state, rows)
        Z = problem.predictor(state.B)
        np.testing.assert_allclose(state.Z, Z, rtol=0, atol=1e-12)
        expected = problem.prox(state.B + 1e-3 * problem.descent(Z), 1e-3)
        np.testing.assert_allclose(solver.step_once(problem, state, certificate).B, expected, rtol=0, atol=1e-12)


# Designs, history, settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("screening", ["none", "safe"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("kind", [{"loss": "squared"}, {"loss": "multinomial", "fit_intercept": True}], ids=str)
def test_sparse_and_dense_designs_take_the_same_seeded_steps(kind, make, screening):
    case = make_case(85, n=80, d=60, sparse=True, weighted=True, **kind)
    dense = snapshots(dataclasses.replace(case, X=case.X.toarray()), 6, screening=screening)
    sparse = snapshots(dataclasses.replace(case, X=make(case.X)), 6, screening=screening)
    assert len(dense) == len(sparse) == 7
    for B_dense, B_sparse in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(B_sparse, B_dense, rtol=0, atol=1e-11)
    assert np.abs(dense[-1] - dense[1]).max() > 1e-4  # there was something to agree on


@pytest.mark.parametrize(
    ("kind", "inner_steps", "passes"),
    [
        ({"loss": "squared", "fit_intercept": True}, None, 4),
        ({"loss": "multinomial"}, None, 4),
        ({"loss": "multinomial", "fit_intercept": True}, None, 5),  # balancing: the gradient is a product of its own
        ({"loss": "squared"}, 30, 8),
    ],
    ids=str,
)
def test_an_iteration_is_an_epoch_of_a_few_passes(kind, inner_steps, passes, monkeypatch):
    """Two for the inner steps of an epoch, one for the predictor at the snapshot, one for its certificate."""
    monkeypatch.setattr("groupowl.designs.sparse._COPIED_ENTRIES", 0)
    case = make_case(86, n=100, d=30, sparse=True, **kind)  # by rows only: a product never skips columns
    result = spgd(case, batch_size=10, inner_steps=inner_steps)
    history = result.history
    np.testing.assert_array_equal(history.iteration, np.arange(result.n_iter + 1))
    first, *later = np.diff(history.passes)
    np.testing.assert_allclose(later, passes, rtol=1e-9)
    assert passes - 0.1 - 1e-9 <= first <= passes + 1e-9  # the first batch of all meets coefficients that are zero
    assert history.passes[-1] == pytest.approx(result.n_passes)


def test_max_iter_counts_epochs():
    case = make_case(86, n=100, d=30)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        result = spgd(case, tol=1e-12, max_iter=3, inner_steps=7)
    assert (result.n_iter, len(result.history), result.status) == (3, 4, "max_iter")


def test_history_has_the_fields_of_every_solver():
    case = make_case(87, n=60, d=100)
    history = spgd(case, screening="safe").history
    other = go.solve(**case.arguments(), solver="apgd").history
    assert list(history.as_dict()) == list(other.as_dict())
    for name, column in history.as_dict().items():
        assert column.shape == (len(history),)
        assert column.dtype == getattr(other, name).dtype
    for column in (history.seconds, history.passes, history.dual, -history.n_active):
        assert np.all(np.diff(column) >= 0)
    assert np.all(history.gap >= history.primal - history.dual)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer, got 2.5"),
        ({"inner_steps": 0}, ValueError, "inner_steps must be at least 1, got 0"),
        ({"inner_steps": "epoch"}, TypeError, "inner_steps must be an integer, got 'epoch'"),
        ({"step": "fast"}, ValueError, "step must be one of 'auto'; got 'fast'"),
        ({"step": -1.0}, ValueError, "step must be a finite number above 0, got -1.0"),
        ({"step": 0.0}, ValueError, "step must be a finite number above 0"),
        ({"step": np.nan}, ValueError, "step must be a finite number above 0"),
        ({"step": None}, TypeError, "step must be a number, got None"),
        ({"screen_after": -1}, ValueError, "screen_after must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        go.SPGD(**settings)
