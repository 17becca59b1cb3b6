"""`go.solve`: every solver with every rule reaches the minimum, and says honestly how it ended."""

import dataclasses
import gc
import itertools
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from support import RULE_NAMES, SOLVER_NAMES, conic_minimum, make_case, with_opaque_design

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for loss, intercept, weighted, sparse in itertools.product(["squared", "multinomial"], *[[False, True]] * 3)
]


def kind_name(kind):
    return "-".join([kind["loss"], *(name for name in ("fit_intercept", "weighted", "sparse") if kind[name])])


@pytest.mark.parametrize("screening", RULE_NAMES)
@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_objective_agrees_with_an_interior_point_solver(kind, solver, screening):
    minimum = conic_minimum(seed=20, **kind)
    case = make_case(20, **kind)
    result = go.solve(**case.arguments(), solver=solver, screening=screening, tol=1e-8, random_state=0)
    assert result.converged
    assert result.primal == pytest.approx(minimum, rel=1e-7)
    assert case.objective(result.B, result.intercept) == pytest.approx(result.primal, rel=1e-10)


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("shape", ["linear", "bh", "constant", "two-level"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_screened_solves_reach_the_unscreened_objective(loss, shape, solver):
    """The paper's Property 2, with each rule, on a wide problem where rows really are removed."""
    case = make_case(21, n=30, d=200, shape=shape, loss=loss, fit_intercept=True, fraction=0.6)
    plain = go.solve(**case.arguments(), solver=solver, screening="none", tol=1e-9, random_state=0)
    assert len(plain.active) == 200
    for screening in ("paper", "safe"):
        result = go.solve(**case.arguments(), solver=solver, screening=screening, tol=1e-9, random_state=0)
        assert abs(result.primal - plain.primal) <= result.gap + plain.gap
        norms = np.linalg.norm(plain.B, axis=1)
        assert set(np.flatnonzero(norms > 1e-6 * norms.max())) <= set(result.active)
    assert len(result.active) < 200


@pytest.mark.parametrize("screening", RULE_NAMES)
@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind["sparse"]], ids=kind_name)
def test_sample_space_is_never_opened_outside_the_design(kind, solver, screening):
    """Opaque handles raise when they are looked into; the answer is that of the plain design."""
    case = make_case(22, n=24, d=60, **kind)
    plain = go.solve(**case.arguments(), solver=solver, screening=screening, tol=1e-8, random_state=0)
    opaque = go.solve(
        **with_opaque_design(case).arguments(), solver=solver, screening=screening, tol=1e-8, random_state=0
    )
    assert opaque.converged
    assert abs(opaque.primal - plain.primal) <= opaque.gap + plain.gap
    if screening == "safe":
        assert len(opaque.active) < 60
    with pytest.raises(TypeError, match="sample-space arrays"):
        np.asarray(opaque.theta)


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_single_precision_data_give_double_precision_certificates(loss, solver):
    case = make_case(23, n=40, d=80, loss=loss, fit_intercept=True)
    X = case.X.astype(np.float32)
    single = go.solve(**{**case.arguments(), "X": X}, solver=solver, tol=1e-9, random_state=0)
    double = go.solve(**{**case.arguments(), "X": X.astype(np.float64)}, solver=solver, tol=1e-9, random_state=0)
    assert single.converged
    assert abs(single.primal - double.primal) <= single.gap + double.gap


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_sparse_kinds_agree_with_dense(make):
    case = make_case(24, n=40, d=80, fit_intercept=True, sparse=True)
    dense = go.solve(**{**case.arguments(), "X": case.X.toarray()}, tol=1e-9)
    result = go.solve(**{**case.arguments(), "X": make(case.X)}, tol=1e-9)
    assert abs(result.primal - dense.primal) <= result.gap + dense.gap


def test_a_huge_sparse_matrix_is_never_made_dense():
    """100,000 x 1,000,000: as a dense array it would need 800 GB."""
    rng = np.random.default_rng(0)
    n, d, nnz = 100_000, 1_000_000, 1_500_000
    X = sp.csr_array((rng.standard_normal(nnz), (rng.integers(0, n, nnz), rng.integers(0, d, nnz))), shape=(n, d))
    columns = np.argsort(-np.bincount(X.indices, minlength=d))[:5]
    y = np.asarray(X[:, columns].sum(axis=1)).ravel() + 1e-3 * rng.standard_normal(n)
    lam = 0.7 * go.lam_max(X, y, "oscar", fit_intercept=True) * go.weights.oscar(d)
    result = go.solve(X, y, lam, fit_intercept=True, tol=1e-4)
    assert result.converged
    assert 0 < len(result.support) <= len(result.active) < 1000


# Statuses, history, callback ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_history_has_a_row_per_certificate(solver):
    case = make_case(25, n=30, d=100)
    seen = []
    result = go.solve(**case.arguments(), solver=solver, callback=seen.append, random_state=0)
    history = result.history
    assert len(history) == len(seen)
    assert [p.gap for p in seen] == list(history.gap)
    assert history.iteration[0] == 0
    assert history.iteration[-1] == result.n_iter
    for column in (history.iteration, history.seconds, history.passes, -history.n_active, history.dual):
        assert np.all(np.diff(column) >= 0)
    assert np.all(history.gap >= history.primal - history.dual)
    assert history.n_active[0] == 100
    assert history[-1].n_active >= len(result.active)
    assert np.all(history.n_nonzero <= 100)
    assert 0 < history.passes[-1] <= result.n_passes
    assert "certificates" in repr(history)
    assert "converged" in repr(result)
    assert set(history.as_dict()) == {field.name for field in dataclasses.fields(history)}


@pytest.mark.parametrize(
    ("status", "n_iter", "words"),
    [
        ("converged", 2, "converged after 2 steps"),
        ("max_iter", 1, "stopped at max_iter after 1 step"),
        ("callback", 0, "stopped by the callback after 0 steps"),
        ("stalled", 3, "stalled after 3 steps"),
        ("precision", 3, "stopped at the limit of the arithmetic after 3 steps"),
    ],
)
def test_results_say_why_the_solve_ended(status, n_iter, words):
    result = go.solve(**make_case(25).arguments())
    result = dataclasses.replace(result, status=status, n_iter=n_iter, n_passes=2.25, seconds=0.5)
    assert repr(result).startswith(f"SolveResult({words}, 2.2 passes, 0.5 s\n  objective")


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_callback_sees_coefficients_of_full_size_and_can_stop(solver):
    case = make_case(26, n=30, d=100, fit_intercept=True)
    seen = []

    def stop_after_two(progress):
        seen.append(progress.coefficients())
        return len(seen) == 2

    if solver == "auto":
        solver = go.WorkingSet(first_size=1)  # else it may be done after one round
    result = go.solve(**case.arguments(), solver=solver, callback=stop_after_two, tol=1e-12, random_state=0)
    assert (result.status, result.converged, len(seen)) == ("callback", False, 2)
    B, intercept = seen[-1]
    assert B.shape == (100, 3)
    assert intercept.shape == (3,)
    assert case.objective(B, intercept) == pytest.approx(result.history.primal[-1], rel=1e-10)


def test_screened_at_points_to_the_certificate_that_proved_the_row_zero():
    result = go.solve(**make_case(27, n=30, d=200).arguments(), tol=1e-8)
    assert np.array_equal(np.flatnonzero(result.screened_at == -1), result.active)
    for index in range(len(result.history) - 1):
        proved_before = np.count_nonzero((result.screened_at >= 0) & (result.screened_at <= index))
        assert 200 - proved_before == result.history.n_active[index + 1]
    assert not result.B[result.screened_at >= 0].any()


def test_stopping_early_returns_the_result_and_warns_once():
    case = make_case(28, n=30, d=100)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=5.*gap is.*tol=1e-12 asks for") as record:
        result = go.solve(**case.arguments(), max_iter=5, tol=1e-12)
    assert len(record) == 1
    assert record[0].filename == __file__
    assert (result.status, result.converged, result.n_iter) == ("max_iter", False, 5)
    minimum = go.solve(**case.arguments(), tol=1e-10).primal
    assert result.primal - minimum <= result.gap
    assert str(f"{result.gap:.3g}") in str(record[0].message)


def test_a_tolerance_below_rounding_is_refused_honestly():
    with pytest.warns(ConvergenceWarning, match="limit of the arithmetic"):
        result = go.solve(**make_case(29).arguments(), tol=1e-17)
    assert result.status == "precision"
    assert result.gap <= 1e-11 * result.primal


def test_a_diverging_step_stalls_and_returns_the_best_point():
    case = make_case(30)
    with pytest.warns(ConvergenceWarning, match="no more progress"):
        result = go.solve(**case.arguments(), solver=go.APGD(step=10.0))
    assert result.status == "stalled"
    assert np.isfinite(result.B).all()
    assert result.primal <= case.objective(np.zeros((12, 3))) * (1 + 1e-12)


def test_interrupt_reaches_the_user():
    def press_ctrl_c(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go.solve(**make_case(31).arguments(), callback=press_ctrl_c)


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_warm_starts(loss, solver):
    """From the optimum: one step. From anywhere, however bad: the same minimum."""
    case = make_case(32, n=30, d=60, loss=loss, fit_intercept=True)
    first = go.solve(**case.arguments(), solver=solver, tol=1e-10, random_state=0)
    again = go.solve(**case.arguments(), solver=solver, tol=1e-9, B_init=first.B, intercept_init=first.intercept)
    assert (again.n_iter, again.converged) == (1, True)
    rng = np.random.default_rng(0)
    worst = {"B_init": 50 * rng.standard_normal((60, 3)), "intercept_init": np.array([30.0, -10.0, 5.0])}
    far = go.solve(**case.arguments(), solver=solver, tol=1e-9, random_state=0, **worst)
    assert abs(far.primal - first.primal) <= far.gap + first.gap
    if loss == "multinomial":
        np.testing.assert_allclose(far.B.sum(axis=1), 0.0, atol=1e-9)


def test_clusters_number_equal_rows_by_falling_norm():
    X = np.repeat(np.random.default_rng(0).standard_normal((40, 4)), 3, axis=1)  # triplets of equal columns
    Y = X @ np.repeat(np.diag([3.0, 2.0, 1.0, 0.0])[:, :2] + 0.5, 3, axis=0)
    lam = 0.05 * go.lam_max(X, Y, "linear") * go.weights.linear(12)
    result = go.solve(X, Y, lam, tol=1e-10)
    norms = np.linalg.norm(result.B, axis=1)
    for label in range(1, result.clusters.max() + 1):
        members = norms[result.clusters == label]
        assert len(members) >= 1
        assert np.ptp(members) <= 1e-8 * members.max()
    assert np.all(norms[result.clusters == 0] == 0)
    assert np.array_equal(np.flatnonzero(result.clusters), result.support)
    assert np.count_nonzero(result.clusters == 1) % 3 == 0
    assert norms[result.clusters == 1].min() > norms[result.clusters == result.clusters.max()].max()


def test_zero_columns_stay_zero_with_and_without_screening():
    case = make_case(33, n=30, d=40)
    X = case.X.copy()
    X[:, [3, 17]] = 0.0
    lam = np.r_[case.lam[:-2], 0.0, 0.0]
    for screening in RULE_NAMES:
        result = go.solve(X, case.Y, lam, screening=screening, B_init=np.ones((40, 3)))
        assert result.converged
        assert not result.B[[3, 17]].any()
    assert len(go.solve(X, case.Y, lam, screening="none").active) == 40


@pytest.mark.parametrize(("n", "d", "q"), [(1, 5, 2), (10, 1, 3), (10, 5, 1), (1, 1, 1), (2, 2, 2)])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_smallest_sizes(n, d, q, loss):
    q = max(q, 2) if loss == "multinomial" else q
    case = make_case(34, n=n, d=d, q=q, loss=loss)
    for solver, screening in itertools.product(SOLVER_NAMES, RULE_NAMES):
        assert go.solve(**case.arguments(), solver=solver, screening=screening, random_state=0).converged


def test_every_row_may_be_screened():
    """Just above lam_max all rows are proved zero, and what is left is the null model."""
    case = make_case(35, n=30, d=50, fit_intercept=True, fraction=1.2)
    result = go.solve(**case.arguments())
    assert (len(result.active), result.status) == (0, "converged")


def test_a_pickle_has_fields_under_their_own_names():
    """Which is what pickles from before fields were made on access have."""
    result = go.solve(**make_case(36).arguments())
    state = result.__getstate__()
    assert {"active", "screened_at", "clusters", "history"} <= set(state)
    again = object.__new__(go.SolveResult)
    again.__dict__.update(state)
    np.testing.assert_array_equal(again.active, result.active)


def test_results_pickle_without_the_data():
    result = go.solve(**make_case(36).arguments())
    assert result.theta.shape == (25, 3)
    copy = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(copy.B, result.B)
    assert len(copy.history) == len(result.history)
    with pytest.raises(AttributeError, match="needs the data"):
        copy.theta  # noqa: B018


def test_inputs_are_not_modified():
    case = make_case(37, fit_intercept=True, weighted=True)
    start = np.ones((12, 3))
    before = [case.X.copy(), case.Y.copy(), case.lam.copy(), case.sample_weight.copy(), start.copy()]
    for array in (case.X, case.Y, case.lam, case.sample_weight, start):
        array.setflags(write=False)
    go.solve(**case.arguments(), B_init=start)
    for old, new in zip(before, [case.X, case.Y, case.lam, case.sample_weight, start], strict=True):
        np.testing.assert_array_equal(old, new)


def test_one_dimensional_targets_are_one_task():
    case = make_case(38, q=1)
    flat = go.solve(**{**case.arguments(), "Y": case.Y[:, 0]})
    assert flat.B.shape == (12, 1)
    np.testing.assert_array_equal(flat.B, go.solve(**case.arguments()).B)


@pytest.mark.parametrize("solver", ["auto", "apgd"])
def test_parts_of_a_result_are_made_when_they_are_read(solver):
    """Whoever reads coefficients only does not pay for the rest; a pickle holds all of it."""
    case = make_case(2, n=30, d=20, q=2)
    result = go.solve(**case.arguments(), solver=solver)
    names = ("active", "screened_at", "clusters", "history")
    assert all(callable(vars(result)[name]) for name in names)
    clusters = result.clusters
    assert result.clusters is clusters
    assert not callable(vars(result)["clusters"])
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.clusters, clusters)
    np.testing.assert_array_equal(again.active, np.flatnonzero(result.screened_at < 0))
    assert len(again.history) == len(result.history) > 0


def test_a_result_goes_with_its_last_reference():
    """A cycle would keep the data, perhaps on a cluster, until the next garbage collection."""
    case = make_case(2, n=30, d=20, q=2)
    gc.disable()
    try:
        result = go.solve(**case.arguments())
        kept = weakref.ref(result)
        assert result.converged
        del result
        assert kept() is None
    finally:
        gc.enable()
