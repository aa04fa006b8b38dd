"""How kernels are compiled.

State goes to a kernel by name: as records of numpy, whose fields numba reads at constant offsets,
where each variable, joint or loop has its own; as named tuples of arrays otherwise.
"""

from __future__ import annotations

import logging
from datetime import date

import numba
import numpy as np
from numba import njit
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: An array of records.
Records = NDArray[np.void]

_FLAGS = {"nogil": True, "error_model": "numpy"}
_FUSED = {**_FLAGS, "fastmath": {"nnan", "nsz", "contract"}}
#: Without fused products: two versions of a computation agree to the last bit.
_EXACT = {**_FLAGS, "fastmath": {"nnan", "nsz"}}
#: For functions that only kernels call: no entry from Python, which takes long to compile.
#: They borrow arrays and allocate none, so they need not count references to them: each array of a
#: named tuple would be counted at each use, which takes a tenth to a third of a search's time.
_INNER: dict[str, bool] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: A bet on an option that is private to numba, made for numba 0.68: when it is to be gone.
REMOVE_BY = date(2027, 11, 30)
if hasattr(DefaultOptions, "_nrt"):  # numba uses it for its own sorting
    _INNER["_nrt"] = False
else:
    logging.getLogger(__name__).warning(
        "kernels: made for numba 0.68, but numba %s has no option _nrt; references are counted in"
        " kernels, which are slower. To be removed by %s.",
        numba.__version__,
        REMOVE_BY.isoformat(),
    )

jit = njit(cache=True, **_FUSED)
helper = njit(**_FUSED, **_INNER)
exact_jit = njit(cache=True, **_EXACT)
exact_helper = njit(**_EXACT, **_INNER)
#: For functions that allocate.
maker = njit(**_FUSED)
