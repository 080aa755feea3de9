"""Type aliases for arrays, and the glossary of symbols in the package.

The names of public parameters are words; functions on arrays use the symbols of the literature.
Rows are time steps.

======================  ======  ===========================  =======================================
word                    symbol  shape                        meaning
======================  ======  ===========================  =======================================
series                  X, U    (n_samples, n_features)      inputs, one row per time step
targets                 Y       (n_samples, n_outputs)       values for the readout to predict
states                  H       (n_samples, n_units)         x[t], one row per time step
recurrent weights       W       (n_units, n_units)           row i: weights of inputs to unit i
input weights           W_in    (n_units, n_features)
bias                    b       (n_units,)
feedback weights        W_fb    (n_units, n_outputs)
leak rate               a       scalar or (n_units,)         0 < a <= 1, per step
readout                 C, c    (n_outputs, n_units) and     y[t] = C x[t] + c
                                (n_outputs,)
======================  ======  ===========================  =======================================

The state update is the same everywhere in the package::

    x[t] = (1 - a) x[t-1] + a f(W x[t-1] + W_in u[t] + b + W_fb y[t-1])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "Matrix", "RandomState", "Report"]

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # NDArray or scipy.sparse.csr_array, which ships no annotations
RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"
# report(results, costs, what, later=0.0, unit=...) returns the results, and shows progress, as
# ProgressReport.follow of estimators/reporting.py does
Report: TypeAlias = Callable[..., Iterable[Any]]
