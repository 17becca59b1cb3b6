"""What the compiled library has beside solves, as functions of arrays: twins of the norm and of the certificate."""

from __future__ import annotations

from ctypes import POINTER, c_double, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from groupowl import kernel
from groupowl._typing import FloatArray, IndexArray
from groupowl.kernel import Proposals, _address, _Blas, _Certificate, _Data, _float

_GRAM = 4  # the kind of data of a Gram matrix


_CERTIFICATE_NUMBERS = (
    "loss", "primal", "dual", "gap", "rounding", "gauge", "scale", "product", "square", "norm", "reach",
)  # fmt: skip


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
    library.go_certificate_workspace.restype = c_size_t
    library.go_certificate_workspace.argtypes = [POINTER(_Data)]
    library.go_certify.restype = None
    library.go_certify.argtypes = [POINTER(_Data), POINTER(_Certificate), POINTER(_Blas), c_void_p]
    return library


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
    """What certificates of squared loss are made of; ``theta`` and what belongs to it is not scaled yet."""

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


@dataclass(frozen=True, eq=False)
class PathNumbers:
    """The same for all solves of a path, without what is in sample space; one entry per solve."""

    correlations: FloatArray  # (n_run, n_units)
    loss: FloatArray
    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    rounding: FloatArray
    gauge: FloatArray
    scale: FloatArray
    product: FloatArray
    square: FloatArray
    norm: FloatArray
    reach: FloatArray


class Certifier:
    """Twin of :meth:`groupowl.problem.Problem.certify` for squared loss, from coefficients alone.

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
        self.data, self.library = data, _library()
        self.norms, self.rounding_norms, self.y_norm = _float(norms), _float(rounding_norms), y_norm
        self.memory_size = self.library.go_certificate_workspace(data.struct)
        n, d, q, units = data.struct.n, data.struct.d, data.struct.q, data.struct.n_units
        self.ends = n * q, (n + d) * q, (n + d) * q + units  # of theta, products and correlations in one array

    def certify(self, lam: FloatArray, B: FloatArray) -> Numbers:
        """Certificate of coefficients of shape (d, q) at these weights."""
        row = np.flatnonzero(B.any(axis=1)).astype(np.intc)
        lam, values, struct = _float(lam), _float(B[row]), self.data.struct
        c, floats = self._new()
        c.lam, c.n_rows, c.row, c.B = _address(lam), len(row), _address(row), _address(values)
        memory = np.empty(self.memory_size, dtype=np.uint8)
        self.library.go_certify(struct, c, self.library.blas, _address(memory))
        theta_end, products_end, end = self.ends
        theta = floats[:theta_end].reshape(struct.n, struct.q)
        products = floats[theta_end:products_end].reshape(struct.d, struct.q)
        numbers = (getattr(c, name) for name in _CERTIFICATE_NUMBERS)
        return Numbers(theta, products, floats[products_end:end], *numbers)

    def certify_path(self, weights: FloatArray, alphas: FloatArray, proposal: Proposals) -> PathNumbers:
        """Certificates of all solves of a path that were run, each at its alpha times the weights."""
        n_run, struct, library = proposal.n_run, self.data.struct, self.library
        lams = np.multiply.outer(_float(alphas)[:n_run], _float(weights))
        correlations, numbers = np.empty(lams.shape), np.empty((len(_CERTIFICATE_NUMBERS), n_run))
        c, floats = self._new()
        found = np.frombuffer(c, dtype=np.float64, count=len(numbers), offset=_Certificate.loss.offset)
        memory = np.empty(self.memory_size, dtype=np.uint8)
        at_lam, at_row, at_B = _address(lams), _address(proposal.row), _address(proposal.values)
        at_correlations, at_memory, units = _address(correlations), _address(memory), struct.n_units
        first = proposal.first.tolist()
        for k in range(n_run):
            c.lam, c.correlations = at_lam + 8 * k * units, at_correlations + 8 * k * units
            c.n_rows, c.row, c.B = first[k + 1] - first[k], at_row + 4 * first[k], at_B + 8 * struct.q * first[k]
            library.go_certify(struct, c, library.blas, at_memory)
            numbers[:, k] = found
        del floats
        return PathNumbers(correlations, *numbers)

    def _new(self) -> tuple[Any, FloatArray]:
        """A certificate with the data that all share, and the array of its results."""
        floats, ends = np.empty(self.ends[-1] + self.data.struct.d), self.ends
        at = _address(floats)
        c = _Certificate(
            norms=_address(self.norms), rounding_norms=_address(self.rounding_norms), y_norm=self.y_norm,
            theta=at, products=at + 8 * ends[0], correlations=at + 8 * ends[1], excess=at + 8 * ends[2],
        )  # fmt: skip
        return c, floats
