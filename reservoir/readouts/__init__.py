"""Ridge readouts from sums over rows: the state matrix is never stored.

A `GramAccumulator` takes states and targets block by block and keeps their means and centred
products. From it come the ridge coefficients for one penalty (Cholesky), or for a whole path of
penalties, with the score that chooses among them (one eigendecomposition).
"""

from reservoir.readouts.gram import GramAccumulator, RidgeSolution
from reservoir.readouts.ridge import ridge_path

__all__ = ["GramAccumulator", "RidgeSolution", "ridge_path"]
