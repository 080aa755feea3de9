"""A forecaster in sktime's interface; imported only inside `as_sktime`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sktime.forecasting.base import BaseForecaster

from reservoir.estimators import ESNForecaster

_DIGITS = 9  # decimals of a coverage, so that quantiles alpha and 1 - alpha have equal coverage


class SktimeForecaster(BaseForecaster):
    """Forecaster of a series with sktime's interface.

    Parameters
    ----------
    estimator : ESNForecaster
        The forecaster to adapt.

    Examples
    --------
    >>> from reservoir import ESNForecaster
    >>> from reservoir.interop import as_sktime
    >>> as_sktime(ESNForecaster(season=12))
    SktimeForecaster(estimator=ESNForecaster(season=12))
    """

    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # update does not refit
    _tags: ClassVar[dict[str, Any]] = {
        "y_inner_mtype": ["pd.Series", "pd.DataFrame"],
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "capability:categorical_in_X": False,
        "capability:non_contiguous_X": False,
        "requires-fh-in-fit": False,
    }

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()
        self._y = self._X = None  # sktime reads them if the user sets remember_data

    def _fit(self, y: Any, X: Any, fh: Any) -> Any:
        self.estimator_ = clone(self.estimator).fit(y, X)
        self._end = y.index[-1]
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Any:
        later = y.index > self._end  # sktime may pass rows again
        if later.any():
            self.estimator_.update(y[later], None if X is None else X[X.index > self._end])
            self._end = y.index[-1]
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        return self._forecast(fh, X)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        import pandas as pd

        share = np.round(np.abs(2 * np.array(alpha) - 1), _DIGITS)
        coverages = np.unique(share[share > 0])
        found = self._forecast(fh, X, coverages.tolist() or None)
        # columns of each variable: forecast, lower, upper, lower, upper, ...
        # a quantile below 0.5 is the lower bound of its coverage, one above 0.5 the upper bound
        every = found.to_numpy().reshape(len(found), -1, 1 + 2 * len(coverages))
        pair = 2 * np.searchsorted(coverages, share)
        wanted = np.where(share == 0, 0, pair + np.where(np.array(alpha) < 0.5, 1, 2))
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return pd.DataFrame(every[:, :, wanted].reshape(len(found), -1), found.index, columns)

    def _forecast(self, fh: Any, X: Any, coverage: Any = None) -> Any:
        steps = fh.to_relative(self.cutoff).to_numpy()
        exog = None if X is None else X[X.index > self._end].iloc[: steps[-1]]
        return self.estimator_.forecast(int(steps[-1]), exog, coverage=coverage).iloc[steps - 1]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return [
            {
                "estimator": ESNForecaster(
                    search="series", season=season, n_networks=1, random_state=0
                )
            }
            for season in (1, 4)
        ]
