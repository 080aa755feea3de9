"""Readouts: from features of rows to outputs, by sums over rows wherever that is possible.

A `GramAccumulator` takes states and targets block by block and keeps their means and centred
products: the state matrix is never stored. From it come the ridge coefficients for one penalty
(Cholesky), or for a whole path of penalties, with the score that chooses among them (one
eigendecomposition). A `QRAccumulator` keeps a triangular factor in their place, twice as slowly and
with all digits: for data without noise, and penalties far below 1e-11. `leave_one_out_ridge` is for
few rows of many columns, all at hand.

Three regressors go on learning row by row: `RecursiveLeastSquares` with forgetting, `SlidingWindow`
of the last rows, and `LMS`, which is cheapest. They work on any features, and as the parameter
`readout` of an echo state network.

Inside the house: `contract` says what a readout is to an estimator, `ridge` and `stored` are the
kinds there are, `READOUTS` lists them, and `selection` holds the rules that choose a penalty.
`penalised_factor` is what goes on row by row under recursive least squares and in streams.
`sums` says what both accumulators offer, and `eigen` what their paths of penalties do.
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

#: Kinds of readouts, by name. The last one that takes an estimator's parameter `readout` is used.
READOUTS: dict[str, type[Readout]] = {"stored": StoredReadout, "ridge": RidgeReadout}


def kind_of(readout: Any) -> type[Readout] | None:
    """Return the kind that an estimator's parameter `readout` asks for; None if there is none."""
    kinds = [kind for kind in READOUTS.values() if kind.takes(readout)]
    return kinds[-1] if kinds else None
