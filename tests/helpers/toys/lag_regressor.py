"""An estimator over that source: a ridge on lagged inputs."""

from dataclasses import dataclass

from reservoir import ESNRegressor
from reservoir._saving import saved
from reservoir._validation import check_count
from reservoir.estimators._parameters import documented, parameter


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
    _source_kind = "lags"
