"""Every Dask collection that cannot be used is refused with what is wrong with it, where, and what to do."""

from __future__ import annotations

import re

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import groupowl as go
from dask_support import column_chunks, computed_rows, row_chunks, sparse_rows
from groupowl.designs import DaskDesign
from support import make_case

N, D = 40, 6
LAM = np.ones(D)


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((N, D))


@pytest.fixture
def Y():
    return np.random.default_rng(1).standard_normal((N, 2))


def in_blocks(A):
    """Blocks of 10 rows that Dask computes, one of them without rows."""
    return row_chunks(A, (10, 0, 10, 10)).map_blocks(np.array, dtype=A.dtype)


# X --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", [in_blocks, lambda A: sparse_rows(A, sizes=(10, 0, 10, 10))])
def test_what_is_not_finite_is_found_in_its_block(X, Y, make, value):
    """Numbered as X.blocks is, which counts empty ones."""
    X[23, 4] = value
    with pytest.raises(ValueError, match=r"X in block 3 has 1 NaN or infinite entry in column 4\. Remove those rows"):
        go.solve(make(X), Y, LAM)
    with pytest.raises(ValueError, match="X in block 3"):
        go.solve(make(X), Y, LAM, sample_weight=np.r_[np.zeros(15), np.ones(25)])
    with pytest.raises(ValueError, match="X in block 3"):
        go.lam_max(make(X), Y, "oscar", fit_intercept=True)


def test_numbers_whose_squares_overflow_are_no_nan(X, Y):
    X[23, 4] = 1e200
    with pytest.raises(ValueError, match=r"column 4\. Rescale"):
        go.solve(in_blocks(X), Y, LAM)


@pytest.mark.parametrize("dtype", [object, complex, "datetime64[s]", "U3"])
def test_other_things_than_numbers(Y, dtype):
    X = da.from_array(np.ones((N, D)).astype(dtype), chunks=(20, D))
    with pytest.raises(TypeError, match=re.escape(f"real numbers, got a Dask array of dtype {np.dtype(dtype)}")):
        go.solve(X, Y, LAM)


def test_a_frame_with_text(X, Y):
    data = pd.DataFrame(X, columns=list("abcdef")).assign(b="text")
    with pytest.raises(TypeError, match=r"X must hold real numbers, but its columns 'b' \("):
        go.solve(dd.from_pandas(data, npartitions=2), Y, LAM)


def test_masked_arrays(X, Y):
    masked = da.ma.masked_greater(da.from_array(X, chunks=(20, D)), 1.0)
    with pytest.raises(TypeError, match=r"^X is a masked array, and masks are not supported; fill it in first"):
        go.solve(masked, Y, LAM)
    far = da.from_array(X, chunks=(20, D))
    for y in (np.ma.masked_greater(Y, 1.0), da.ma.masked_greater(da.from_array(Y, chunks=(20, -1)), 1.0)):
        with pytest.raises(TypeError, match=r"^y is a masked array"):
            go.GroupOWLRegressor().fit(far, y)


@pytest.mark.parametrize(
    "collection", [db.from_sequence([1, 2]), dask.delayed(np.ones)((N, D))], ids=lambda value: type(value).__name__
)
def test_other_collections(Y, collection):
    with pytest.raises(
        TypeError, match=f"X must be a Dask array or data frame, got a dask {type(collection).__name__}"
    ):
        go.solve(collection, Y, LAM)
    with pytest.raises(TypeError, match="Y must be a Dask array or data frame"):
        go.solve(da.ones((N, D), chunks=(20, D)), collection, LAM)


@pytest.mark.parametrize("shape", [(N,), (N, D, 2), (0, D), (N, 0)])
def test_shapes(Y, shape):
    with pytest.raises(ValueError, match=r"X must be 2-dimensional|X is empty: its shape is"):
        go.solve(da.ones(shape, chunks=-1), Y, LAM)


def test_blocks_that_are_not_what_dask_thinks(Y):
    X = da.ones((N, D), chunks=(10, D)).map_blocks(lambda block: block[:-1], dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"block \d of X has shape \(9, 6\), but its chunks say \(10, 6\)"):
        go.solve(X, Y, LAM)


def test_the_length_of_lam(X, Y):
    with pytest.raises(ValueError, match="lam"):
        go.solve(in_blocks(X), Y, np.ones(D + 1))


def test_an_error_inside_a_block_stays_what_it_is(Y):
    def fail(block):
        raise KeyError("the file of this block is gone")

    X = da.ones((N, D), chunks=(10, D)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(KeyError, match="the file of this block is gone"):
        go.solve(X, Y, LAM)


# Chunks ---------------------------------------------------------------------------------------------------


def test_the_cost_of_chunks_along_columns(X, Y):
    with pytest.warns(UserWarning, match=r"X has 2 chunks along its columns.*0\.00192 MB.*rechunk it once"):
        DaskDesign(column_chunks(X))
    with pytest.warns(UserWarning, match="Y has 2 chunks along its columns"):
        found = go.solve(in_blocks(X), da.from_array(Y, chunks=(20, 1)), LAM)
    assert found.primal == pytest.approx(go.solve(X, Y, LAM).primal, rel=1e-8)


def counting_array(A, visits):
    def count(block):
        visits.append(len(block))
        return block[block[:, 0] > -np.inf]

    blocks = row_chunks(A, (10, 0, 10, 10)).map_blocks(count, dtype=float, meta=np.empty((0, 0)))
    blocks._chunks = ((np.nan,) * 5, (D,))
    return blocks


def counting_frame(A, visits):
    def count(part):
        visits.append(len(part))
        return part

    frame = dd.from_pandas(pd.DataFrame(A), npartitions=4, sort=False)
    return frame.map_partitions(count, meta=frame._meta)


@pytest.mark.parametrize("make", [counting_array, counting_frame])
def test_unknown_sizes_are_computed_once(X, Y, make):
    """In one visit of every block, and never again: afterwards passes are as many as with known sizes."""
    visits = []
    design = DaskDesign(make(X, visits))
    assert sum(visits) == N
    visits.clear()
    go.solve(design, Y, LAM, solver=go.WorkingSet(compress=False))
    unknown = sum(visits) / N
    visits.clear()
    known = make(X, visits) if make is counting_frame else counting_array(X, visits)
    known = known.to_dask_array(lengths=[10] * 4) if make is counting_frame else known
    known._chunks = ((10, 0, 10, 10, 10) if make is counting_array else (10,) * 4, (D,))
    go.solve(known, Y, LAM, solver=go.WorkingSet(compress=False))
    assert unknown == sum(visits) / N >= 2


def test_an_unknown_number_of_columns(X, Y):
    kept = da.from_array(X, chunks=(10, D))
    unknown = kept[:, da.from_array(np.arange(D) < 4, chunks=D)]
    assert np.isnan(unknown.shape[1])
    found = go.solve(unknown, Y, LAM[:4])
    assert found.primal == pytest.approx(go.solve(X[:, :4], Y, LAM[:4]).primal, rel=1e-8)


# Targets and weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "Dask"])
def test_numbers_of_rows(X, Y, kind):
    def given(A):
        return A if kind == "local" else da.from_array(A, chunks=(7, *A.shape[1:]))

    with pytest.raises(ValueError, match=r"X and Y must have one row per sample: X has 40 rows, Y has 39 \(shape"):
        go.solve(in_blocks(X), given(Y[:-1]), LAM)
    with pytest.raises(ValueError, match="X has 40 rows, sample_weight has 41"):
        go.solve(in_blocks(X), given(Y), LAM, sample_weight=given(np.ones(N + 1)))


def test_targets_that_are_not_finite(X, Y):
    """NaN is a target that was not observed: tests/distributed/test_missing_targets.py."""
    Y[31, 0] = np.inf
    for targets in (Y, row_chunks(Y, (5, 20))):
        with pytest.raises(ValueError, match="Y in block 4 has 1 NaN or infinite entry"):
            go.solve(in_blocks(X), targets, LAM)


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        (None, TypeError, "Y must be an array of numbers, got None"),
        (3.0, ValueError, r"Y must be 1-dimensional or 2-dimensional, got an array of shape \(\)"),
        (["a"] * N, TypeError, "Y must hold real numbers"),
        (np.ones((N, 2, 2)), ValueError, "Y must be 1-dimensional or 2-dimensional"),
        (np.ones((N, 0)), ValueError, r"Y in block \d is empty"),
        (sp.csr_array(np.ones((N, 2))), TypeError, "Y must be a dense array"),
        (da.ones((N, 2, 2), chunks=(20, 1, 1)), ValueError, "Y must be 1-dimensional or 2-dimensional"),
        (da.ones(N, chunks=20).astype(object), TypeError, "Y must hold real numbers"),
        (da.ones(N, chunks=20).astype(complex), TypeError, "Y must hold real numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:Y has 2 chunks along its columns")
def test_targets(X, targets, error, message):
    with pytest.raises(error, match=message):
        go.solve(in_blocks(X), targets, LAM)


def test_targets_of_classes(X):
    Y = np.eye(2)[np.arange(N) % 2]
    Y[31] = [0.5, 0.4]
    with pytest.raises(ValueError, match=r"rows of Y that sum to 1, but row 1 sums to 0.9.*\(Y in block 4\)"):
        go.solve(in_blocks(X), row_chunks(Y, (20,)), LAM, loss="multinomial")
    with pytest.raises(ValueError, match="at least two columns"):
        go.solve(in_blocks(X), np.ones(N), LAM, loss="multinomial")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((slice(None), 0.0), "sample_weight is all zero"),
        ((31, -1.0), r"sample_weight in block 4 must be non-negative, but sample_weight\[1\] is -1.0"),
        ((31, np.nan), "sample_weight in block 4 has 1 NaN or infinite entry"),
    ],
)
@pytest.mark.parametrize("kind", ["local", "Dask"])
def test_weights(X, Y, change, message, kind):
    weight = np.ones(N)
    weight[change[0]] = change[1]
    weight = weight if kind == "local" else da.from_array(weight, chunks=9)
    with pytest.raises(ValueError, match=message):
        go.solve(in_blocks(X), Y, LAM, sample_weight=weight)


def test_weights_of_two_dimensions(X, Y):
    with pytest.raises(ValueError, match=r"one weight per sample, shape \(10,\), or .* shape \(10, 2\), got \(10, 1\)"):
        go.solve(in_blocks(X), Y, LAM, sample_weight=np.ones((N, 1)))


# Solvers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_stochastic_solvers_are_refused(loss):
    case = make_case(1, n=N, d=D, loss=loss)
    with pytest.raises(ValueError, match=r"solver='spgd' draws batches.*Use solver='auto', or data in memory"):
        go.solve(computed_rows(case.X), case.Y, case.lam, loss=loss, solver="spgd")
