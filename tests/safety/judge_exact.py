"""Numbers without rounding, and extended precision."""

from __future__ import annotations

import numpy as np

Long = np.longdouble
EPS = np.finfo(Long).eps
_WORD = 32


def short(value) -> str:
    """A number in extended precision with three digits, whatever its size."""
    return np.format_float_scientific(Long(value), precision=2)


class Exact:
    """Numbers ``whole * 2**exponent`` with whole numbers of any length: sums and products are exact."""

    def __init__(self, whole, exponent: int) -> None:
        self.whole, self.exponent = whole, exponent

    @classmethod
    def of(cls, values) -> Exact:
        mantissa, exponents = np.frexp(np.asarray(values, dtype=Long))
        shifted = np.ldexp(mantissa, _WORD)
        high = np.trunc(shifted)
        low = np.ldexp(shifted - high, _WORD)
        nonzero = mantissa != 0
        lowest = int(exponents[nonzero].min()) if nonzero.any() else 0
        whole = (high.astype(np.int64).astype(object) << _WORD) + low.astype(np.int64).astype(object)
        return cls(whole << np.where(nonzero, exponents - lowest, 0).astype(object), lowest - 2 * _WORD)

    def _aligned(self, other: Exact):
        exponent = min(self.exponent, other.exponent)
        return self.whole << (self.exponent - exponent), other.whole << (other.exponent - exponent), exponent

    def __add__(self, other: Exact) -> Exact:
        mine, theirs, exponent = self._aligned(other)
        return Exact(mine + theirs, exponent)

    def __sub__(self, other: Exact) -> Exact:
        return self + Exact(-other.whole, other.exponent)

    def __matmul__(self, other: Exact) -> Exact:
        return Exact(self.whole @ other.whole, self.exponent + other.exponent)

    def __getitem__(self, key) -> Exact:
        return Exact(self.whole[key], self.exponent)

    def long(self):
        """Nearest numbers in extended precision, to two units in the last place."""
        flat = np.ravel(self.whole)
        shifts = [max(abs(int(n)).bit_length() - 2 * _WORD, 0) for n in flat]
        tops = [abs(int(n)) >> shift for n, shift in zip(flat, shifts, strict=True)]
        high = np.array([top >> _WORD for top in tops], dtype=Long)
        low = np.array([top & ((1 << _WORD) - 1) for top in tops], dtype=Long)
        signs = np.array([-1.0 if n < 0 else 1.0 for n in flat], dtype=Long)
        values = signs * np.ldexp(np.ldexp(high, _WORD) + low, np.array(shifts, dtype=np.int64) + self.exponent)
        return values.reshape(np.shape(self.whole))
