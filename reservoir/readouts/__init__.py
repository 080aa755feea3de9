"""Readouts, which map features to outputs and are fitted from sums over rows where possible.

A `GramAccumulator` takes states and targets block by block and keeps their means and centred
products; the state matrix is never stored. It computes the ridge coefficients for one penalty
(Cholesky), or for a whole path of penalties, with the score that chooses among them (one
eigendecomposition). A `QRAccumulator` keeps a triangular factor instead, which takes twice as long
and preserves full precision: it is meant for noise-free data and for penalties far below 1e-11.
`leave_one_out_ridge` is meant for few rows with many columns, all of them in memory.

Three regressors learn row by row: `RecursiveLeastSquares` with forgetting, `SlidingWindow` over the
last rows, and `LMS`, the cheapest. They can be fitted to any features, and can be passed to an echo
state network as its parameter `readout`.

For developers: `contract` defines the interface between estimators and readouts, `ridge` and
`stored` contain the classes listed in `READOUTS`, and `selection` contains the rules that choose a
penalty. `penalised_factor` updates recursive least squares and online learners row by row. `sums`
defines the interface of both accumulators, and `eigen` contains their ridge solutions for any
penalty.
"""

from typing import Any

from reservoir.readouts.contract import Readout
from reservoir.readouts.dual import LeaveOneOut, leave_one_out_ridge
from reservoir.readouts.gram import GramAccumulator
from reservoir.readouts.lms import LMS
from reservoir.readouts.qr import QRAccumulator
from reservoir.readouts.recursive_least_squares import RecursiveLeastSquares
from reservoir.readouts.ridge import RidgeReadout
from reservoir.readouts.selection import ridge_path
from reservoir.readouts.sliding_window import SlidingWindow
from reservoir.readouts.stored import StoredReadout
from reservoir.readouts.sums import RidgeSolution

__all__ = [
    "LMS",
    "GramAccumulator",
    "LeaveOneOut",
    "QRAccumulator",
    "RecursiveLeastSquares",
    "RidgeSolution",
    "SlidingWindow",
    "leave_one_out_ridge",
    "ridge_path",
]

#: Readout classes by name. The last one that accepts an estimator's parameter `readout` is used.
READOUTS: dict[str, type[Readout]] = {"stored": StoredReadout, "ridge": RidgeReadout}


def kind_of(readout: Any) -> type[Readout] | None:
    """Return the class that accepts an estimator's parameter `readout`; None if no class does."""
    kinds = [kind for kind in READOUTS.values() if kind.takes(readout)]
    return kinds[-1] if kinds else None
