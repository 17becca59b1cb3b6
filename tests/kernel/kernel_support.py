"""What the compiled library has beside solves, as functions of arrays: twins of the norm and of the certificate."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int, c_void_p
from dataclasses import dataclass
from functools import cache

import numpy as np

from groupowl import kernel
from groupowl._typing import FloatArray, IndexArray
from groupowl.kernel import Proposals, _address, _float

_GRAM = 4  # the kind of data of a Gram matrix


@cache
def _library():
    """The library with the functions that the package itself does not call."""
    library = kernel._library()
    library.go_unit_norms.restype = None
    library.go_unit_norms.argtypes = [c_int, c_void_p, c_int, c_void_p, c_void_p]
    library.go_owl_value.restype = library.go_owl_gauge.restype = library.go_owl_prox.restype = c_double
    library.go_owl_value.argtypes = library.go_owl_gauge.argtypes = [c_int, c_void_p, c_void_p, c_void_p]
    library.go_owl_prox.argtypes = [c_int, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p, c_void_p]
    library.go_kkt_units.argtypes = [c_int, c_void_p, c_void_p, c_void_p, c_void_p]
    return library


Doubles = POINTER(c_double)
Evaluate = CFUNCTYPE(c_double, c_int, c_int, Doubles, Doubles, Doubles, Doubles)
Dual = CFUNCTYPE(c_double, c_int, c_int, Doubles, c_double, Doubles, Doubles)
Balance = CFUNCTYPE(None, c_int, c_int, Doubles, Doubles, Doubles, Doubles)
NullIntercept = CFUNCTYPE(None, c_int, c_int, Doubles, Doubles, Doubles)
Curvatures = CFUNCTYPE(None, c_int, c_int, Doubles, Doubles, Doubles, Doubles)
CurvatureNear = CFUNCTYPE(c_double, c_int, c_int, Doubles, Doubles, Doubles)
Cancelling = CFUNCTYPE(c_double, c_int, c_int, Doubles, Doubles)


class LossEntry(Structure):
    """An entry of the table of losses, with its functions."""

    _fields_ = [
        ("quadratic", c_int), ("evaluate", Evaluate), ("dual", Dual), ("balance", Balance),
        ("null_intercept", NullIntercept), ("curvatures", Curvatures), ("curvature_near", CurvatureNear),
        ("cancelling", Cancelling),
    ]  # fmt: skip


def loss_entry(name):
    """The entry of a loss."""
    return LossEntry.from_address(_library().losses[name])


def pointer(array):
    """To the numbers of a contiguous array of doubles."""
    assert array.flags.c_contiguous
    assert array.dtype == np.float64
    return array.ctypes.data_as(Doubles)


def data_of_statistics(gram, products, y_square):
    """Squared loss by ``X^T W X``, ``X^T W Y`` and ``||Y||^2``, everything centered and scaled already."""
    gram = np.ascontiguousarray(gram)
    data = kernel.KernelData(gram, products)
    data.struct.kind, data.struct.stride, data.struct.y_square = _GRAM, len(gram), y_square
    return data


def unit_norms(B: FloatArray, starts: IndexArray | None = None) -> FloatArray:
    """Norm of each row of ``B``, or of each unit, whose first rows (and the end) are given."""
    B = _float(B)
    starts = None if starts is None else np.ascontiguousarray(starts, dtype=np.intc)
    norms = np.empty(len(B) if starts is None else len(starts) - 1)
    _library().go_unit_norms(len(norms), _address(starts), B.shape[1], _address(B), _address(norms))
    return norms


def owl_value(norms: FloatArray, lam: FloatArray) -> float:
    """Twin of :func:`groupowl.norm.kernels.owl_value`."""
    norms, lam, work = _float(norms), _float(lam), np.empty(2 * len(norms), dtype=np.intc)
    return float(_library().go_owl_value(len(norms), _address(norms), _address(lam), _address(work)))


def owl_gauge(norms: FloatArray, lam: FloatArray) -> float:
    """Twin of :func:`groupowl.norm.kernels.owl_gauge`."""
    norms, lam, work = _float(norms), _float(lam), np.empty(2 * len(norms), dtype=np.intc)
    return float(_library().go_owl_gauge(len(norms), _address(norms), _address(lam), _address(work)))


def prox_and_value(norms: FloatArray, lam: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Twin of :func:`groupowl.norm.kernels.prox_and_value`."""
    norms, lam, n = _float(norms), _float(lam), len(norms)
    order, work = np.arange(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    shrunk, blocks = np.empty(n), np.empty(n)
    arrays = (_address(order), _address(work), _address(blocks), _address(shrunk))
    value = _library().go_owl_prox(n, _address(norms), _address(lam), step, *arrays)
    return shrunk, float(value)


def kkt_rows(values: FloatArray, lam: FloatArray) -> IndexArray:
    """Twin of :func:`groupowl.norm.kernels.kkt_rows`."""
    values, lam, n = _float(values), _float(lam), len(values)
    units, work = np.empty(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    count = _library().go_kkt_units(n, _address(values), _address(lam), _address(units), _address(work))
    return np.sort(units[:count]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Numbers:
    """What certificates are made of; ``theta`` and what belongs to it is not scaled yet."""

    theta: FloatArray  # (n, q)
    products: FloatArray  # (d, q): X^T theta
    correlations: FloatArray  # (n_units,): their norms
    loss: float
    primal: float
    dual: float
    gap: float
    rounding: float
    gauge: float
    scale: float  # scale * theta is feasible
    product: float  # <theta, Y>
    square: float  # sum of theta^2 / w
    norm: float
    reach: float
    dual_error: float
    cancelling: float
    imbalance: float
    balancing: float
    raw: FloatArray | None = None  # theta before it was balanced


class Certifier:
    """:func:`groupowl.kernel.certify` for coefficients, and for all solves of a path.

    Parameters
    ----------
    data : KernelData
        With targets that are centered where there is an intercept.
    norms, rounding_norms : ndarray of shape (d,)
        Those of the problem.
    y_norm : float
        The norm of its samples.
    """

    def __init__(self, data: kernel.KernelData, norms: FloatArray, rounding_norms: FloatArray, y_norm: float) -> None:
        self.data, is_balanced = data, bool(data.struct.intercept)
        self.known = {"norms": norms, "rounding_norms": rounding_norms, "y_norm": y_norm, "is_balanced": is_balanced}

    def certify(self, lam: FloatArray, B: FloatArray, constant: FloatArray | None = None) -> Numbers:
        """Certificate of coefficients of shape (d, q), and of an intercept that is one, at these weights."""
        constants = None if constant is None else constant[None]
        found = kernel.certify(self.data, np.atleast_2d(lam), _float(B)[None], constants, **self.known)
        raw = None if found.raw is None else found.raw[0]
        return Numbers(found.theta[0], found.products[0], found.correlations[0], *found.numbers[0], raw)

    def certify_path(self, weights: FloatArray, alphas: FloatArray, proposal: Proposals) -> Numbers:
        """Certificates of all solves of a path that were run, each at its alpha times the weights."""
        lams = np.multiply.outer(alphas[: proposal.n_run], weights)
        found = kernel.certify(self.data, lams, proposal.stack(), **self.known)
        return Numbers(found.theta, found.products, found.correlations, *found.numbers.T)
