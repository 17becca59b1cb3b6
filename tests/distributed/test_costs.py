"""What a fit on Dask costs: products with X, visits of its blocks, task graphs, memory."""

from __future__ import annotations

import gc
import weakref

import dask
import dask.array as da
import numpy as np
import pytest

import groupowl as go
from dask_support import (
    computed_rows,
    counted,
    counted_journeys,
    counted_products,
    planted,
    random_rows,
    row_chunks,
    targets_of,
)
from groupowl.designs import DaskDesign
from groupowl.designs.dask import dask_design
from support import make_case

LOSSES = ["squared", "multinomial"]
# Products X^T T with all of X that a fit to a relative gap of 1e-6 may take.
MOST_PRODUCTS = {"squared": 12, "multinomial": 40}
N, D, N_BLOCKS = 96, 20, 6


class Source:
    """Blocks of an array that count how often they are computed, and how many of them are alive at once."""

    def __init__(self, A):
        self.A = A
        self.computed = self.alive = self.most_alive = 0

    def collection(self, n_blocks=N_BLOCKS):
        chunks = (tuple(map(len, np.array_split(self.A, n_blocks))), self.A.shape[1:])
        starts = np.cumsum([0, *chunks[0]])

        def make(block_info=None):
            i = block_info[None]["chunk-location"][0]
            block = self.A[starts[i] : starts[i + 1]].copy()
            self.computed += 1
            self.alive += 1
            self.most_alive = max(self.most_alive, self.alive)
            weakref.finalize(block, self.forget)
            return block

        return da.map_blocks(make, chunks=chunks, dtype=float, meta=np.empty((0, 0)))

    def forget(self):
        self.alive -= 1


def small_case(loss, **settings):
    return make_case(21, n=N, d=D, q=3, loss=loss, **({"fraction": 0.2} | settings))


def solve(case, X, **settings):
    arguments = case.arguments() | {"X": X, "solver": go.WorkingSet(compress=False), **settings}
    result = go.solve(**arguments)
    assert result.converged
    return result


# Products -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_products_with_all_of_X(loss, monkeypatch):
    """Few, and not more of them for ten times the samples."""
    B, counts = planted(200, 3, 8), []
    for n in (10_000, 100_000):
        X = random_rows(n, 200, 5)
        Y = targets_of(X, B, loss)
        lam = 0.1 * go.lam_max(X, Y, "oscar", loss=loss, fit_intercept=True) * go.weights.oscar(200)
        with counted_products(monkeypatch, 200) as products:
            result = go.solve(X, Y, lam, loss=loss, fit_intercept=True, tol=1e-6)
        assert result.converged
        assert 0 < len(result.support) < 40
        assert 0 < len(products) <= MOST_PRODUCTS[loss]
        counts.append(len(products))
    assert max(counts) <= 1.2 * min(counts) + 1e-9 or max(counts) - min(counts) <= 1


@pytest.mark.parametrize("way", [0, 1_000_000])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_product_is_computed_twice(loss, fit_intercept, way, monkeypatch):
    """Every product with all of X visits every block once, also where several task graphs need its result."""
    monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", way)
    case = small_case(loss, fit_intercept=fit_intercept)
    made, matmul = [], DaskDesign.matmul
    with (
        counted_products(monkeypatch, D) as products,
        counted(monkeypatch, dask_design, "block_product", "block_correlations") as calls,
        monkeypatch.context() as patch,
    ):
        patch.setattr(DaskDesign, "matmul", lambda self, *a: made.append(self.n_features) or matmul(self, *a))
        solve(case, computed_rows(case.X, (16,) * 5))
    all_columns = {name: [shape for shape in found if shape[1] == D] for name, found in calls.items()}
    assert len(all_columns["block_correlations"]) == N_BLOCKS * len(products)
    assert 0 < len(all_columns["block_product"]) <= N_BLOCKS * made.count(D)
    few = [shape for shape in calls["block_product"] if shape[1] < D]
    assert len(few) <= N_BLOCKS * len([n for n in made if n < D])
    assert bool(few) == (loss == "multinomial" and way == 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_visits_of_X(loss):
    """Once for its norms and once for each certificate; twice where a dual point is balanced by a total."""
    for fit_intercept, visits in ((False, 1), (True, 2)):
        case = small_case(loss, fit_intercept=fit_intercept)
        source = Source(case.X)
        result = solve(case, source.collection())
        rounds = len(result.history)
        columns = rounds - 1  # those of the working set, in every round but the last
        # The first certificate is that of the null model, whose predictor needs no X.
        assert source.computed <= N_BLOCKS * (1 + 1 + visits * (rounds - 1) + columns)
        assert source.computed >= N_BLOCKS * (1 + rounds)


def test_what_was_persisted_is_not_computed_again():
    case = small_case("multinomial", fit_intercept=True)
    source = Source(case.X)
    X = source.collection().persist()
    assert source.computed == N_BLOCKS
    solve(case, X)
    assert source.computed == N_BLOCKS


# Memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_that_are_computed_do_not_wait_for_each_other(loss, fit_intercept, weighted):
    """One block of X at a time in each thread, also where a certificate needs a sum over all of them first."""
    case = small_case(loss, fit_intercept=fit_intercept)
    weight = np.where(np.arange(N) % 7 == 0, 0.0, 1.5) if weighted else None
    source = Source(case.X)
    solve(case, source.collection(24), sample_weight=weight)
    assert source.computed >= 3 * 24
    assert source.most_alive <= 2


def test_nothing_of_X_is_left_after_a_fit():
    case = small_case("multinomial", fit_intercept=True)
    source = Source(case.X)
    result = solve(case, source.collection())
    gc.collect()
    assert source.alive == 0
    assert result.theta.shape == (N, 3)


def test_a_peak_would_be_seen():
    source = Source(np.ones((N, 2)))
    dask.compute(*source.collection().to_delayed().ravel())
    assert source.most_alive == N_BLOCKS


# Task graphs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fit_intercept", "graphs"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_certificate_takes_few_graphs_and_one_more_for_its_dual_value(loss, fit_intercept, graphs, monkeypatch):
    """One before it for an intercept; and few tasks for every block: one, the arrays it leaves behind, its sums."""
    case = small_case(loss, fit_intercept=fit_intercept)
    problem = go.problem.build_problem(**case.arguments() | {"X": row_chunks(case.X, (4,) * 23)})
    with counted_journeys(monkeypatch) as journeys:
        problem.certify(np.pad(0.1 * np.ones((3, 3)), ((0, problem.n_coefficients - 3), (0, 0))))
    assert len(journeys) == graphs + 1
    data = 24 * 4  # blocks of X, targets and weights, and what is kept of one graph for the next
    assert max(journeys) <= data + 5 * 24 + 10


def test_all_targets_and_weights_are_checked_in_one_graph(monkeypatch):
    case = small_case("multinomial", weighted=True)
    design = DaskDesign(row_chunks(case.X, (30, 40)))
    with counted_journeys(monkeypatch) as journeys:
        design.adopt(case.Y, case.sample_weight, go.losses.resolve_loss("multinomial").check_targets, 1.0)
    assert len(journeys) == 1


def test_statistics_take_one_pass():
    case = small_case("squared", fit_intercept=True)
    source = Source(case.X)
    go.group_owl_path(source.collection(), case.Y, alphas=30, solver=go.WorkingSet(compress=True))
    assert source.computed <= 6 * N_BLOCKS  # of norms, statistics, and the largest alpha


def test_columns_move_once_and_targets_too(monkeypatch):
    """Targets and weights that were brought near stay there for later rounds."""
    monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", 1_000_000)
    case = small_case("multinomial", fraction=0.02)
    fetched, gathered = dask_design.fetched, []
    monkeypatch.setattr(
        dask_design, "fetched", lambda handle: gathered.append(handle.function is None) or fetched(handle)
    )
    solve(case, computed_rows(case.X), solver=go.WorkingSet(first_size=2, compress=False))
    assert gathered.count(True) == 2
    assert gathered.count(False) > 2


# The rule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_tasks", [1, 10])
def test_columns_are_brought_near_where_that_moves_fewer_bytes(n_tasks):
    """Samples from which on steps on the workers are cheaper, by the documented rule."""
    columns = np.arange(5)
    limit = 100 * (16 * 5 * n_tasks + 2**18) / (8 * (5 + n_tasks + 1))
    for factor, near in ((0.99, True), (1.01, False)):
        X = da.zeros((int(factor * limit), 6), chunks=(1_000_000, 6))
        assert (DaskDesign(X).brought_near(columns, n_tasks) is not None) == near
