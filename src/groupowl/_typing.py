"""Names for the kinds of arrays that travel through the package."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

#: A sample-space array, owned by a design: an ndarray for local designs, opaque for others.
Handle: TypeAlias = Any
