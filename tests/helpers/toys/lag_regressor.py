"""An estimator over that source: a ridge on lagged inputs."""

from dataclasses import dataclass

from helpers.toys.lagged_inputs import lagged_inputs
from reservoir import ESNRegressor
from reservoir._saving import saved
from reservoir._validation import check_count
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.parameters import documented, parameter


@documented()
@saved
@dataclass(eq=False, repr=False, kw_only=True)
class LagRegressor(ESNRegressor):
    """Linear autoregression on what came in.

    Parameters
    ----------
    {PARAMETERS}
    """

    n_lags: int = parameter(3, "int", "Rows before the present one that are seen.", check_count)

    def _new_model(self, reader, data):
        return ReadoutModel(lagged_inputs(self, data.arrays), data.n_outputs)
