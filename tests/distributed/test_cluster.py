"""On a real cluster with worker processes: answers, bytes that move, what is left behind, workers and clusters lost.

``make test`` runs this file by itself, after the others: worker processes need the cores that tests in parallel take.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import signal
import time

import dask
import dask.array as da
import numpy as np
import pytest

import distributed
import groupowl as go
from dask_support import planted, random_rows, row_chunks, targets_of
from groupowl.designs import DaskDesign
from groupowl.designs.dask import dask_design
from support import make_case

LOSSES = ["squared", "multinomial"]
SETTINGS = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The client of two worker processes, started and stopped here."""
    folder = str(tmp_path_factory.mktemp("workers"))
    with (
        dask.config.set({"distributed.admin.low-level-log-length": None}),  # every transfer stays in the workers' logs
        distributed.LocalCluster(processes=True, local_directory=folder, **SETTINGS) as workers,
        distributed.Client(workers, set_as_default=False) as client,  # tests of other files compute without it
    ):
        yield client


@pytest.fixture(autouse=True)
def _no_endless_wait():
    """A cluster that does not answer ends the run with a traceback instead of holding it up."""
    faulthandler.dump_traceback_later(300.0, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _current(request):
    """The cluster computes for the tests that ask for it."""
    if "cluster" not in request.fixturenames:
        yield
        return
    with request.getfixturevalue("cluster").as_current():
        yield


def small_case(loss="multinomial", seed=31):
    return make_case(seed, n=400, d=25, q=3, loss=loss, fit_intercept=True, weighted=True, fraction=0.15)


def solve(case, X, **settings):
    return go.solve(**case.arguments() | {"X": X, "tol": 1e-9, **settings})


def far(monkeypatch):
    """Inner solves by steps on the workers."""
    monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", 0)


# Answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_answer_as_in_memory(cluster, loss, monkeypatch):
    far(monkeypatch)
    case = small_case(loss)
    expected = solve(case, case.X)
    found = solve(case, row_chunks(case.X, (90, 200)).map_blocks(np.array), solver=go.WorkingSet(compress=False))
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)
    theta = found.theta
    assert isinstance(theta, da.Array)
    assert go.owl_dual_norm(case.X.T @ theta.compute(), case.lam) <= 1 + 1e-9


def test_unpenalized_columns(cluster):
    case = small_case()
    settings = {"loss": "multinomial", "alphas": [0.02], "unpenalized": [1, 7], "standardize": True}
    found = go.group_owl_path(row_chunks(case.X, (90, 200)), case.Y, **settings)
    np.testing.assert_allclose(found.coefs, go.group_owl_path(case.X, case.Y, **settings).coefs, atol=1e-5)


def test_errors_of_blocks_come_back_as_they_are(cluster):
    X = np.ones((100, 4))
    X[70, 2] = np.nan
    with pytest.raises(ValueError, match="X in block 3 has 1 NaN or infinite entry in column 2"):
        go.solve(row_chunks(X, (20,) * 4).map_blocks(np.array), np.ones(100), np.ones(4))


def raise_look_alike(block):
    class KilledWorker(RuntimeError):
        """As Dask calls its own."""

    raise KilledWorker("no answer from the disk")


def test_an_error_that_only_looks_like_the_loss_of_a_cluster(cluster):
    X = da.ones((20, 3), chunks=(10, 3)).map_blocks(raise_look_alike, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match="no answer from the disk"):
        go.solve(X, np.ones(20), np.ones(3))


# What moves, and what stays -------------------------------------------------------------------------------


def sent(client):
    """Bytes that the workers have sent so far: to each other, and elsewhere."""
    logs = client.run(lambda dask_worker: [(entry["who"], entry["total"]) for entry in outgoing(dask_worker)])
    to_workers = sum(size for log in logs.values() for who, size in log if who in logs)
    return to_workers, sum(size for log in logs.values() for _, size in log) - to_workers


def outgoing(worker):
    return worker.transfer_outgoing_log


@pytest.mark.parametrize("loss", LOSSES)
def test_less_than_a_hundredth_of_X_comes_to_the_client(cluster, loss):
    """X is made where it is used; predictors and dual points stay on the workers."""
    n, d, q = 200_000, 200, 3
    X = random_rows(n, d, 8)
    Y = targets_of(X, planted(d, q, 20), loss)
    before = sent(cluster)
    lam = 0.05 * go.lam_max(X, Y, "oscar", loss=loss, fit_intercept=True) * go.weights.oscar(d)
    result = go.solve(X, Y, lam, loss=loss, fit_intercept=True)
    to_workers, to_client = (after - start for after, start in zip(sent(cluster), before, strict=True))
    assert result.converged
    assert 15 <= len(result.support) < 60
    assert 8 * d * q < to_client < 0.01 * X.nbytes
    assert to_workers < X.nbytes  # workers that have nothing to do take over samples of others, not X pass by pass
    before = sent(cluster)
    result.theta.compute()
    moved = sent(cluster)[1] - before[1]
    assert 8 * n * q <= moved < 9 * n * q  # a gathered array would be seen


def tasks_of(client):
    return client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))


def settled(client, expected, seconds=60.0):
    """Keys on the scheduler once there are no more than expected, or after a while."""
    end = time.monotonic() + seconds
    while len(found := tasks_of(client)) > expected and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_nothing_is_left_on_the_workers(cluster, monkeypatch):
    far(monkeypatch)
    case = small_case()
    X = row_chunks(case.X, (90, 200)).map_blocks(np.array).persist()
    distributed.wait(X)
    settled(cluster, 3)
    before = tasks_of(cluster)
    result = solve(case, X)
    alive = tasks_of(cluster)
    assert len(alive) > len(before)
    # Targets, weights, and the dual points of a few certificates: not what every step made.
    assert len(settled(cluster, 30 * 3)) <= 30 * 3
    del result
    gc.collect()
    assert settled(cluster, len(before)) == before


def test_a_local_array_travels_once(cluster):
    """As a Dask array it would be in every task graph."""
    design = DaskDesign(row_chunks(np.ones((60, 3)), (20, 20)))
    assert all(isinstance(node, distributed.Future) for node in design.X.graph.values())
    np.testing.assert_array_equal(design.rmatmul(design.samples(np.ones((60, 1)))), np.full((3, 1), 60.0))


# Workers and clusters lost --------------------------------------------------------------------------------


def test_a_lost_cluster_is_said_so_and_the_fit_continues_elsewhere(monkeypatch):
    far(monkeypatch)
    case, checkpoints = small_case(), []
    with distributed.LocalCluster(processes=False, **SETTINGS) as workers, distributed.Client(workers):

        def stop(progress):
            checkpoints.append(progress.coefficients())
            if len(checkpoints) == 2:
                workers.close()

        with pytest.raises(ConnectionError, match=r"cluster was lost.*solve\(\.\.\., B_init=\) takes them"):
            solve(case, row_chunks(case.X, (90, 200)).map_blocks(np.array), callback=stop)
    B, intercept = checkpoints[-1]
    assert B.any()
    expected = solve(case, case.X)
    found = solve(case, case.X, B_init=B, intercept_init=intercept)
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)


NO_WORKERS = r"Dask cluster \S+ has 0 workers, and none came within 0\.2 seconds.*groupowl\.worker-timeout"


@pytest.fixture
def empty_cluster():
    """A scheduler that waits for workers."""
    settings = SETTINGS | {"n_workers": 0}
    with (
        dask.config.set({"groupowl.worker-timeout": "200 ms"}),
        distributed.LocalCluster(processes=False, **settings) as workers,
        distributed.Client(workers),
    ):
        yield workers


WITHOUT_WORKERS = {
    "solve": lambda case, X: solve(case, X),
    "local blocks": lambda case, X: solve(case, row_chunks(case.X, (90, 200))),
    "estimator": lambda case, X: go.GroupOWLRegressor(0.1).fit(X, case.Y),
    "statistics": lambda case, X: go.SufficientStatistics.from_dask(X, case.Y),
    "unknown chunks": lambda case, X: DaskDesign(X[X[:, 0] > 0]),
    "data frame": lambda case, X: DaskDesign(X.to_dask_dataframe()),
}


@pytest.mark.parametrize("name", WITHOUT_WORKERS)
def test_a_cluster_without_workers_is_no_endless_wait(empty_cluster, name):
    case = small_case("squared")
    with pytest.raises(TimeoutError, match=NO_WORKERS):
        WITHOUT_WORKERS[name](case, row_chunks(case.X, (90, 200)).map_blocks(np.array))


def test_workers_that_go_and_do_not_return(empty_cluster, monkeypatch):
    far(monkeypatch)
    case, certificates = small_case(), []
    empty_cluster.scale(1)

    def leave(progress):
        certificates.append(progress.gap)
        if len(certificates) == 2:
            empty_cluster.scale(0)
            empty_cluster.sync(empty_cluster._correct_state)

    with dask.config.set({"groupowl.worker-timeout": "20 s"}):
        found = solve(case, row_chunks(case.X, (90, 200)).map_blocks(np.array))  # the worker is waited for
    assert found.converged
    with pytest.raises(TimeoutError, match=NO_WORKERS):
        solve(case, row_chunks(case.X, (90, 200)).map_blocks(np.array), callback=leave)
    assert len(certificates) == 2


@pytest.mark.parametrize("value", ["soon", -1, None, float("nan")])
def test_a_time_to_wait_that_is_none(empty_cluster, value):
    case = small_case()
    with (
        dask.config.set({"groupowl.worker-timeout": value}),
        pytest.raises(ValueError, match=r"groupowl\.worker-timeout' must (be a time|not be negative)"),
    ):
        solve(case, row_chunks(case.X, (90, 200)))


def test_a_worker_that_dies_does_not_lose_the_fit(cluster, monkeypatch):
    """The last test of this file: the cluster has another worker afterwards."""
    far(monkeypatch)
    case, killed = small_case(), []
    expected = solve(case, case.X)

    def kill(progress):
        if len(killed) == 0 and progress.iteration > 0:
            processes = cluster.run(os.getpid)
            assert len(processes) == 2
            killed.append(next(iter(processes.values())))
            os.kill(killed[0], signal.SIGKILL)

    # Local data, which the workers hold: what one of them had comes from the scheduler again.
    found = solve(case, row_chunks(case.X, (50,) * 7), callback=kill)
    assert killed
    assert found.converged
    assert len(found.history) > 2
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)
    assert found.primal - expected.primal <= found.gap + 1e-12 * expected.primal
