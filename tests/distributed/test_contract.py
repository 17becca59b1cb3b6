"""The contract of a design, as tests/designs states it, over Dask collections."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dask_support import COLLECTIONS
from groupowl.designs import DaskDesign, standardize
from groupowl.designs.dask.blocks import Blocks


def load_contract():
    path = Path(__file__).parents[1] / "designs" / "test_designs.py"
    spec = importlib.util.spec_from_file_location("contract_of_designs", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where data classes look for their own module
    spec.loader.exec_module(module)
    return module


contract = load_contract()
# Single samples are not taken out of blocks, and a collection is not an array that could change.
NOT_HERE = {"test_rows_and_select", "test_input_is_never_modified", "test_passes", "test_shape_and_dtype"}


class Opened:
    """A design on Dask that takes local arrays and gives them back."""

    def __init__(self, design):
        self.design = design

    def __getattr__(self, name):
        value = getattr(self.design, name)
        return self.opening(value) if callable(value) else value

    def opening(self, method):
        def call(*args, **kwargs):
            result = method(*map(self.sent, args), **kwargs)
            return self.design.gather(result) if isinstance(result, Blocks) else result

        return call

    def sent(self, value):
        is_sample = isinstance(value, np.ndarray) and value.ndim == 2 and len(value) == self.design.n_samples
        return self.design.samples(value) if is_sample else value

    def restrict(self, columns):
        return Opened(self.design.restrict(columns))


def make_case(kind, wrapper):
    rng = np.random.default_rng(0)
    A = contract.table(rng)
    w = rng.uniform(0.2, 3.0, (contract.N, 1))
    center, scale = contract.WRAPPERS[wrapper]
    base = DaskDesign(COLLECTIONS[kind](A))
    design = Opened(standardize(base, base.samples(w), center=center, scale=scale))
    S, shift, inverse = contract.reference_standardized(A, w, center, scale)
    return contract.Case(design, base, None, A, S, (np.abs(A) + np.abs(shift)) * inverse, A * inverse, w)


# Kinds that meet every wrapper, and others that meet one; the rest only differ in how blocks come about.
WRAPPED_IN_ALL = ("computed at every use", "CSR")
WRAPPED_ONCE = ("uneven and empty chunks", "more chunks than are added up at once", "CSC", "CSR with duplicates")


@pytest.mark.parametrize(
    ("kind", "wrapper"),
    [
        *((kind, wrapper) for kind in WRAPPED_IN_ALL for wrapper in contract.WRAPPERS),
        *((kind, "standardized") for kind in WRAPPED_ONCE),
    ],
)
class TestContract:
    @pytest.fixture
    def case(self, kind, wrapper):
        return make_case(kind, wrapper)

    check_restriction = contract.TestContract.check_restriction


for name, function in vars(contract.TestContract).items():
    if name.startswith("test_") and name not in NOT_HERE:
        setattr(TestContract, name, function)


def test_the_contract_is_here():
    """Were the tests renamed, nothing would run."""
    names = {name for name in vars(contract.TestContract) if name.startswith("test_")}
    assert names > NOT_HERE
    assert {name for name in vars(TestContract) if name.startswith("test_")} == names - NOT_HERE
    assert len(names - NOT_HERE) >= 15


def test_shape_and_dtype():
    A = contract.table(np.random.default_rng(0))
    for kind, make in COLLECTIONS.items():
        design = DaskDesign(make(A))
        assert design.shape == (design.n_samples, design.n_features) == A.shape
        assert design.dtype == (np.float32 if "float32" in kind else np.float64)


def test_integers_and_booleans():
    A = contract.table(np.random.default_rng(0))
    B = np.random.default_rng(1).standard_normal((A.shape[1], 2))
    for dtype in (np.int64, np.uint8, bool, np.float16):
        values = np.abs(A[:, :5]).astype(dtype)
        design = DaskDesign(COLLECTIONS["uneven and empty chunks"](np.vstack([values] * 3)))
        assert design.dtype == np.float64
        Z = design.gather(design.matmul(B[:5]))
        np.testing.assert_allclose(Z, np.vstack([values.astype(float)] * 3) @ B[:5], rtol=1e-13)


def test_passes():
    """A product counts the fraction of columns and rows that it reads, on one counter."""
    rng = np.random.default_rng(0)
    A = contract.table(rng)
    design = DaskDesign(COLLECTIONS["computed at every use"](A))
    n, d = A.shape
    passes = design.passes

    def cost(product):
        before = passes.total
        product()
        return passes.total - before

    few = np.array([1, 4, 9])
    B, T = rng.standard_normal((d, 2)), design.samples(rng.standard_normal((n, 2)))
    assert passes.total == 0.0
    assert cost(lambda: design.matmul(B)) == pytest.approx(1.0)
    assert cost(lambda: design.rmatmul(T)) == pytest.approx(1.0)
    assert cost(lambda: design.restrict(few).rmatmul(T)) == pytest.approx(3 / d)
    assert cost(lambda: design.restrict(few).matmul(B[few])) == pytest.approx(3 / d)
    lone = np.zeros((d, 2))
    lone[1] = 1.0
    assert cost(lambda: design.matmul(lone)) == pytest.approx(1 / d)
    weight = np.r_[np.zeros(n // 2), np.ones(n - n // 2)]
    half, _, w = design.adopt(np.ones(n), weight, lambda Y: Y)
    assert half.n_samples == n - n // 2
    assert cost(lambda: half.rmatmul(w)) == pytest.approx(half.n_samples / n)


def test_single_samples_are_refused():
    design = DaskDesign(COLLECTIONS["even chunks"](np.eye(6)))
    with pytest.raises(ValueError, match="does not give out single samples"):
        design.rows(np.array([1]))
    with pytest.raises(ValueError, match="does not give out single samples"):
        design.select(design.samples(np.eye(6)), np.array([1]))
