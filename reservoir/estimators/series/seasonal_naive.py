"""The forecaster that others are compared with: it repeats the last season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count
from reservoir.estimators.describe import Described
from reservoir.estimators.parameters import (
    check_parameters,
    documented,
    parameter,
    with_other_names,
)
from reservoir.estimators.reporting import not_reported, restored_on_error
from reservoir.estimators.series.checks import (
    check_season,
    check_together,
    panel_of,
    read_coverages,
    warn_of_times,
)
from reservoir.estimators.series.fits import Settings
from reservoir.estimators.series.long_table import Columns, LongTable
from reservoir.estimators.series.model_search import ModelSearch
from reservoir.estimators.series.panel import Panel
from reservoir.series_models.candidates import Candidate, seen_periods
from reservoir.series_models.seasonal_naive import LastSeason
from reservoir.series_models.series_data import SeriesData

__all__ = ["SeasonalNaive"]

_WIDTHS = 1.0  # a value of the last season never leaves the range of the data


def _last_season(data: SeriesData, n_networks: int) -> list[Candidate]:
    """Return the one model: the longest season of which the data have 1.5 periods, repeated."""
    period = seen_periods(data)[-1]
    return [Candidate(f"naive, period {period}", False, LastSeason(period, drift=False))]


_SETTINGS = Settings(
    plans=None,
    n_networks=1,
    widths=_WIDTHS,
    horizon=None,
    seed=0,
    n_jobs=None,
    report=not_reported,
    keep_odd=True,
    candidates=_last_season,
)


def _check_panel(name: str, value: Any) -> None:
    if value is not None:
        check_choice(name, value, ("each",))


@saved
@documented()
@dataclass(eq=False, repr=False)
class SeasonalNaive(Described, BaseEstimator):
    """Forecaster that repeats the last season, with which other forecasters are compared.

    Errors of forecasts are often given relative to its errors within the data [1]_. Without a
    season the last value is repeated.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    seasons_ : tuple of float, or dict of these
        Rows per period of each season, ascending; the longest is repeated. Empty if there is none;
        with ``panel="each"`` those of each series, by its id.
    n_features_in_ : int
        Number of variables, or of series if these are the columns of y.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of these; defined only if y has names that are all strings.

    See Also
    --------
    ESNForecaster : Chooses its models, of which this is one.
    reservoir.model_selection.backtest : Compares forecasters from many origins in a series.

    References
    ----------
    .. [1] R. J. Hyndman and A. B. Koehler, "Another look at measures of forecast accuracy",
       International Journal of Forecasting 22, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import SeasonalNaive
    >>> model = SeasonalNaive(season=4).fit(np.arange(22.0) % 4)
    >>> model.forecast(6).tolist()
    [2.0, 3.0, 0.0, 1.0, 2.0, 3.0]
    """

    season: Any = parameter(
        None,
        "float or list of floats",
        """Number of rows per period, such as 12; of several, the longest of which the series has
        1.5 periods is repeated, rounded to whole rows. 1 repeats the last value. None infers it
        from the frequency of the index, as in ESNForecaster.""",
        check_season,
    )
    panel: Any = parameter(
        None,
        '"each"',
        """Whether y contains several separate series: its columns, the items of a list, or those of
        a MultiIndex or a column of ids. With None, y is one series.""",
        _check_panel,
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """The column of y that contains the ids of series, by number or name. With ``panel=None``
        it means "each".""",
        fixed="",
    )
    time_column: Any = parameter(
        None,
        "int or str",
        """The column of y that contains the time of each row, in place of the index, as in
        ESNForecaster.""",
    )
    target_column: Any = parameter(
        None,
        "int, str or list of these",
        """The column of y that is forecast, or several; others than the ids and times are not used.
        With None all columns are forecast.""",
    )

    def fit(self, y: Any) -> SeasonalNaive:
        """Keep the last season, and learn the sizes of its errors within the data.

        Parameters
        ----------
        y : Series, DataFrame, array, or several series as in ESNForecaster
            At least five values. Missing values are filled.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As ESNForecaster.
        """
        check_parameters(self)
        check_together("series", self.panel, self.sequence_column)
        kind = panel_of(self.panel, self.sequence_column)
        with restored_on_error(self):
            self._long = LongTable.of(y, None, Columns.of(self))
            y, _ = self._long.split(y)
            with self._long.in_messages():
                rows = Panel.read(y, panel=kind, sequence_column=self._id_column())
            found = ModelSearch("series", self.season, False, _SETTINGS).run(rows)
            self._panel, self._fits = rows.panel, found.fits
            rows.panel.describe_columns(self)
            self.seasons_ = found.seasons_of(rows.panel, kind == "each")
            if self.time_column is None:
                warn_of_times(rows.values, rows.panel)
        return self

    @property
    def _table(self) -> LongTable:
        """The roles of columns; files of earlier versions have none."""
        return getattr(self, "_long", LongTable())

    def _id_column(self) -> Any:
        """Return the column of ids in the table that `Panel` reads."""
        return self._table.id_place if self._table.labels else self.sequence_column

    @with_other_names
    def forecast(self, n_steps: int, coverage: Any = None) -> Any:
        """Repeat the last season after the last row.

        Parameters
        ----------
        n_steps : int
            Number of rows to forecast.
        coverage : float or list of floats, optional
            Probabilities, such as 0.9, with which intervals should contain the value at each step.

        Returns
        -------
        array, Series, DataFrame, or list
            Forecasts in the container of y, as those of ESNForecaster.

        Raises
        ------
        ValueError
            If n_steps < 1, or a coverage is not between 0 and 1.
        """
        check_is_fitted(self)
        n_steps = check_count("n_steps", n_steps, size=8 * len(self._fits))
        coverages = read_coverages(coverage)
        points = [fit.forecast(n_steps, np.zeros((n_steps, 0)))[0] for fit in self._fits]
        if not coverages:
            return self._table.back(self._panel.wrap(points), self._panel)
        each = zip(self._fits, points, strict=True)
        bands = [fit.intervals(_SETTINGS).ends(point, coverages) for fit, point in each]
        return self._table.back(self._panel.wrap_bands(points, bands, coverages), self._panel)

    @with_other_names
    def update(self, y: Any) -> SeasonalNaive:
        """Append later rows, after which forecasts start.

        Parameters
        ----------
        y : as in `fit`
            The rows that follow those of `fit` and of earlier calls.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the rows do not begin right after the last known row, or their columns differ.
        """
        check_is_fitted(self)
        y, _ = self._table.split_later(y, None, self._panel)
        with self._table.in_messages():
            rows = self._panel.follow(y, sequence_column=self._id_column())

        def appended(fit: Any, values: Array, known: Array) -> Any:
            return fit.without_odd(values, known, keep=True).appended(_WIDTHS)

        self._fits = list(map(appended, self._fits, rows.values, rows.known))
        self._panel = rows.panel
        return self

    def _description(self) -> dict[str, str]:
        """Return the number of series and of the rows that are repeated, for HTML."""
        fits: list[Any] = self._fits
        periods = sorted({fit.ensemble.members[0].model.period for fit in fits})
        span = f"{periods[0]}" if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"
        return {"series": f"{len(self._fits)}", "rows repeated": span}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fits")
