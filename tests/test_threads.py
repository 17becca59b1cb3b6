"""Threads: BLAS has one for small data, set by the outermost call; folds in threads give the answer of one."""

import threading

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from dask import delayed
from sklearn.base import clone
from sklearn.utils.parallel import Parallel
from threadpoolctl import ThreadpoolController

import groupowl as go
from groupowl import _threads, kernel
from groupowl._threads import Interrupted, blas_threads, count_threads, run_in_threads
from groupowl.model_selection import search

SMALL, LARGE = np.ones((2, 2)), np.broadcast_to(1.0, (2**12, 2**11))


class Library:
    """A BLAS library as threadpoolctl shows it."""

    def __init__(self, n_threads):
        self.n_threads = n_threads
        self.set_to = []

    def get_num_threads(self):
        return self.n_threads

    def set_num_threads(self, n_threads):
        self.set_to.append(n_threads)
        self.n_threads = n_threads


@pytest.fixture
def library(monkeypatch):
    found = Library(4)
    monkeypatch.setattr(_threads, "_libraries", lambda: [found])
    return found


def test_the_libraries_are_those_of_the_process(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    found = _threads._libraries.__wrapped__()
    expected = {library.filepath for library in ThreadpoolController().lib_controllers if library.user_api == "blas"}
    assert {library.filepath for library in found} == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert _threads._libraries.__wrapped__() == []


def test_small_data_have_one_thread_and_large_ones_all(library):
    with blas_threads(SMALL):
        assert library.n_threads == 1
    assert library.n_threads == 4
    with blas_threads(LARGE):
        assert library.n_threads == 4
    for unknown in (
        "a file",
        da.ones((4, 2), chunks=2)[da.ones(4, chunks=2) > 0],
        dd.from_array(np.ones((4, 2))),
        delayed(4),
    ):
        with blas_threads(unknown):
            assert library.n_threads == 4
    with blas_threads(LARGE, are_taken=True):
        assert library.n_threads == 1
    assert library.set_to == [1, 4, 1, 4]


def test_the_outermost_call_decides(library):
    with blas_threads(SMALL), blas_threads(LARGE), blas_threads(SMALL):
        assert library.n_threads == 1
    assert library.set_to == [1, 4]
    with blas_threads(LARGE), blas_threads(SMALL):
        assert library.n_threads == 4
    assert library.set_to == [1, 4]


def test_an_exception_restores_the_threads(library):
    with pytest.raises(ZeroDivisionError), blas_threads(SMALL), blas_threads(SMALL):
        raise ZeroDivisionError
    assert library.n_threads == 4
    with pytest.raises(ValueError, match="lam"):
        go.solve(SMALL, np.ones(2), [1.0, 2.0])
    assert library.set_to == [1, 4, 1, 4]


def test_one_thread_is_left_as_it_is(monkeypatch):
    found = Library(1)
    monkeypatch.setattr(_threads, "_libraries", lambda: [found])
    with blas_threads(SMALL):
        pass
    assert found.set_to == []


def test_calls_in_several_threads_share_the_limit(library):
    """The last of them restores what the first has found."""
    inside, leave = threading.Barrier(3), threading.Event()

    def call():
        with blas_threads(SMALL):
            inside.wait()
            leave.wait()

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    assert library.n_threads == 1
    with blas_threads(SMALL):
        pass
    assert library.n_threads == 1
    leave.set()
    for thread in threads:
        thread.join()
    assert library.set_to == [1, 4]


DATA = go.datasets.make_correlated_groups(30, 20, 2, n_informative=3, random_state=0)
CALLS = {
    "solve": lambda: go.solve(DATA.X, DATA.Y, np.ones(20)),
    "solve_many": lambda: go.solve_many(DATA.X, [DATA.Y] * 20, np.ones(20), n_jobs=2),
    "group_owl_path": lambda: go.group_owl_path(DATA.X, DATA.Y, alphas=3),
    "fit": lambda: go.GroupOWLRegressor().fit(DATA.X, DATA.Y),
    "fit of folds": lambda: go.GroupOWLRegressorCV(alphas=3, n_jobs=2).fit(DATA.X, DATA.Y),
}


@pytest.mark.parametrize("name", CALLS)
def test_public_calls_set_the_limit_once(name, library, monkeypatch):
    inside, certify = [], go.problem.Problem.certify

    def watched(*args, **settings):
        inside.append(library.n_threads)
        return certify(*args, **settings)

    monkeypatch.setattr(go.problem.Problem, "certify", watched)
    CALLS[name]()
    assert set(inside) == {1}
    assert library.set_to == [1, 4]


def test_numbers_of_threads():
    assert count_threads(None) == count_threads(1) == 1
    assert count_threads(3) == 3
    assert count_threads(-1) >= 1


def test_work_keeps_its_order():
    assert run_in_threads(lambda item, stop: 2 * item, range(20), 3) == list(range(0, 40, 2))


def test_threads_end_before_an_exception_goes_on():
    begun, ended = threading.Barrier(2), []

    def work(item, stop):
        begun.wait()
        if item == 0:
            raise ZeroDivisionError
        try:
            while True:
                stop()
        except Interrupted:
            ended.append(item)
            raise

    with pytest.raises(ZeroDivisionError):
        run_in_threads(work, range(2), 2)
    assert ended == [1]


# Folds --------------------------------------------------------------------------------------------------


def test_folds_are_threads_where_the_kernel_works(monkeypatch):
    asked = []

    def noting(kind):
        return lambda **settings: asked.append(settings) or kind(**settings)

    monkeypatch.setattr(search, "Parallel", noting(Parallel))
    monkeypatch.setattr(search.joblib, "Parallel", noting(search.joblib.Parallel))
    preferred = []
    for other in ({}, {"solver": "apgd"}, {"scoring": "r2"}):
        go.GroupOWLRegressorCV(alphas=5, eps=0.1, **other).fit(DATA.X, DATA.Y)
        preferred.append(asked[-1]["prefer"])  # the last work of a fit is that of its folds
    assert preferred == ["threads" if kernel.is_available() else None, None, None]


@pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))
@pytest.mark.parametrize("shape", [(30, 60), (120, 8)], ids=["wide", "statistics"])
def test_folds_in_threads_give_the_answer_of_one(shape, monkeypatch):
    data = go.datasets.make_correlated_groups(*shape, 2, n_informative=3, random_state=0)
    names, run_fold = set(), search.run_fold

    def watched(*args):
        names.add(threading.current_thread().name)
        return run_fold(*args)

    monkeypatch.setattr(search, "run_fold", watched)
    model = go.GroupOWLRegressorCV(alphas=20, eps=0.05, weights=["oscar", "constant"], random_state=0)
    one = clone(model).fit(data.X, data.Y)
    assert names == {"MainThread"}
    two = clone(model).set_params(n_jobs=2).fit(data.X, data.Y)
    assert len(names) > 1
    np.testing.assert_array_equal(one.score_path_, two.score_path_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.selection_frequency_, two.selection_frequency_)
    assert one.path_.n_passes.tolist() == two.path_.n_passes.tolist()


@pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))
def test_a_fold_that_fails_ends_the_others(monkeypatch):
    begun, ended, names = threading.Barrier(2), threading.Event(), []

    def run_fold(task, fitting, *args):
        names.append(threading.current_thread().name)
        begun.wait()
        if names[0] == threading.current_thread().name:
            raise ZeroDivisionError
        try:
            while True:
                fitting.settings.interrupted()
        except Interrupted:
            ended.set()
            raise

    monkeypatch.setattr(search, "run_fold", run_fold)
    with pytest.raises(ZeroDivisionError):
        go.GroupOWLRegressorCV(alphas=3, cv=2, n_jobs=2).fit(DATA.X, DATA.Y)
    assert ended.wait(timeout=10.0)
