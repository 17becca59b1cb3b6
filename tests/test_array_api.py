"""The norm, its dual and its prox of arrays of other namespaces are those of NumPy's."""

import sys

import array_api_strict as strict
import numpy as np
import pytest

import groupowl as go
from groupowl.norm import arrays


def case(seed, ndim, dtype="float64"):
    rng = np.random.default_rng(seed)
    B = np.round(rng.standard_normal((7, 3) if ndim == 2 else 7), 1)  # rounded: some norms are equal
    B[2] = 0.0
    return B.astype(dtype), np.sort(rng.random(7))[::-1].copy()


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(5))
def test_other_namespaces_have_the_same_numbers(seed, dtype, ndim):
    B, lam = case(seed, ndim, dtype)
    other, weights = strict.asarray(B), strict.asarray(lam)
    rtol = 1e-12 if dtype == "float64" else 1e-5
    for function in (go.owl_norm, go.owl_dual_norm):
        found = function(other, weights)
        assert found.__array_namespace__() is strict
        assert found.shape == ()
        assert found.dtype == other.dtype
        assert float(found) == pytest.approx(function(B, lam), rel=rtol)
    P = go.owl_prox(other, lam, step=0.7)
    assert P.__array_namespace__() is strict
    assert P.dtype == other.dtype
    expected = go.owl_prox(B, lam, step=0.7)
    np.testing.assert_allclose(np.from_dlpack(P), expected, rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-13)
    np.testing.assert_array_equal(np.from_dlpack(P) == 0.0, expected == 0.0)


@pytest.mark.parametrize(
    ("B", "lam", "error", "message"),
    [
        (strict.ones((2, 2, 2)), [1.0, 1.0], ValueError, "1- or 2-dimensional, got 3"),
        (strict.ones((2, 2), dtype=strict.int64), [1.0, 1.0], TypeError, "floating-point"),
        (strict.asarray([1.0, np.nan]), [1.0, 1.0], ValueError, "NaN or infinity"),
        (strict.ones(3), [1.0, 1.0], ValueError, "one weight per row of B: B has 3 rows, lam has length 2"),
        (strict.ones(2), strict.asarray([1.0, 2.0]), ValueError, "non-increasing"),
    ],
)
def test_bad_arrays_are_refused(B, lam, error, message):
    with pytest.raises(error, match=message):
        go.owl_norm(B, lam)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    tensor = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'groupowl\[array-api\]'"):
        go.owl_norm(tensor, [1.0])


def test_lists_and_numbers_of_numpy_are_numpy():
    assert arrays.namespace_of([1.0]) is None
    assert arrays.namespace_of(np.float64(1.0)) is None


def test_gradients_of_torch():
    """``owl_norm`` has the gradient ``lam_k B_j / ||B_j||`` of the row of rank k, zero at rows that are zero."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    B, lam = case(0, 2)
    B += np.linspace(0.0, 0.5, 7)[:, None] * (B != 0.0)  # no ties
    tensor = torch.tensor(B, requires_grad=True)
    go.owl_norm(tensor, lam).backward()
    norms = np.linalg.norm(B, axis=1)
    expected = np.zeros_like(B)
    for rank, j in enumerate(np.argsort(-norms, kind="stable")):
        if norms[j] > 0.0:
            expected[j] = lam[rank] * B[j] / norms[j]
    np.testing.assert_allclose(tensor.grad.numpy(), expected, atol=1e-12)
    P = go.owl_prox(tensor, torch.tensor(lam), step=0.7)
    np.testing.assert_allclose(P.detach().numpy(), go.owl_prox(B, lam, step=0.7), atol=1e-13)
    assert float(go.owl_dual_norm(tensor.detach(), lam)) == pytest.approx(go.owl_dual_norm(B, lam), rel=1e-12)
