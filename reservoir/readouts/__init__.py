"""Readouts: from features of rows to outputs, by sums over rows wherever possible.

A `GramAccumulator` takes states and targets block by block and keeps their means and centred
products; the state matrix is never stored. It gives the ridge coefficients for one penalty
(Cholesky), or for a whole path of penalties, with the score that chooses among them (one
eigendecomposition). A `QRAccumulator` keeps a triangular factor instead, which takes twice as long
and keeps all digits: for data without noise, and penalties far below 1e-11. `leave_one_out_ridge`
is for few rows of many columns, all of them in memory.

Three regressors learn row by row: `RecursiveLeastSquares` with forgetting, `SlidingWindow` over the
last rows, and `LMS`, the cheapest. They work on any features, and as the parameter `readout` of an
echo state network.

For developers: `contract` is the interface of a readout to an estimator, `ridge` and `stored`
contain the kinds listed in `READOUTS`, and `selection` the rules that choose a penalty.
`penalised_factor` updates recursive least squares and online learners row by row. `sums` is the
interface of both accumulators, and `eigen` contains their ridge solutions for any penalty.
"""

from typing import Any

from reservoir.readouts.contract import Readout
from reservoir.readouts.dual import LeaveOneOut, leave_one_out_ridge
from reservoir.readouts.gram import GramAccumulator
from reservoir.readouts.lms import LMS
from reservoir.readouts.qr import QRAccumulator
from reservoir.readouts.recursive_least_squares import RecursiveLeastSquares
from reservoir.readouts.ridge import RidgeReadout, ridge_path
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

#: Kinds of readouts, by name; the last one that accepts the parameter `readout` is used.
READOUTS: dict[str, type[Readout]] = {"stored": StoredReadout, "ridge": RidgeReadout}


def kind_of(readout: Any) -> type[Readout] | None:
    """Return the kind that accepts `readout`, the parameter of an estimator; None if none does."""
    kinds = [kind for kind in READOUTS.values() if kind.takes(readout)]
    return kinds[-1] if kinds else None
