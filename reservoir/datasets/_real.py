"""Small real series, included in the package as CSV files."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_choice

if TYPE_CHECKING:
    import pandas as pd


def load_sunspots(*, as_frame: bool = False) -> Array | pd.DataFrame:
    """Load yearly sunspot numbers, 1700 to 2008.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return a pandas DataFrame, with a DatetimeIndex (start of the year).

    Returns
    -------
    X : ndarray of shape (309, 1), or DataFrame with the column "sunspots"
        Mean sunspot number of each year. No value is missing. A solar cycle takes about 11 years.

    Raises
    ------
    ImportError
        If `as_frame` is set and pandas is not installed.

    Notes
    -----
    Source: National Geophysical Data Center (NOAA), solar data services, yearly sunspot
    numbers, as carried by statsmodels (``statsmodels.datasets.sunspots``). Public domain.

    Examples
    --------
    >>> from reservoir.datasets import load_sunspots
    >>> load_sunspots()[:4].ravel()
    array([ 5., 11., 16., 23.])
    """
    _, values = _read("sunspots.csv")
    return _frame(values, "sunspots", "1700-01-01", "YS") if as_frame else values


def load_co2(*, missing: str = "interpolate", as_frame: bool = False) -> Array | pd.DataFrame:
    """Load the weekly carbon dioxide concentration at Mauna Loa, March 1958 to December 2001.

    For 59 of the 2284 weeks, most of them in 1958 and 1964, there is no measurement.

    Parameters
    ----------
    missing : {"interpolate", "nan", "drop"}, default="interpolate"
        Treatment of weeks without a measurement. With "interpolate" values are interpolated
        linearly, so that rows are a week apart and contain no NaN, which estimators reject. With
        "nan" the data are returned unchanged. With "drop" these weeks are omitted, so that rows are
        no longer evenly spaced in time.
    as_frame : bool, default=False
        Whether to return a pandas DataFrame, with a DatetimeIndex (Saturdays).

    Returns
    -------
    X : ndarray of shape (2284, 1), or (2225, 1) with "drop", or DataFrame with the column "co2"
        Carbon dioxide concentration in parts per million by volume.

    Raises
    ------
    ValueError
        If `missing` is not one of these three strings.
    ImportError
        If `as_frame` is set and pandas is not installed.

    Notes
    -----
    Source: C. D. Keeling and T. P. Whorf (2004), "Atmospheric CO2 concentrations derived from
    flask air samples at sites in the SIO network", Trends: A Compendium of Data on Global Change,
    Carbon Dioxide Information Analysis Center, Oak Ridge National Laboratory, as carried by
    statsmodels (``statsmodels.datasets.co2``). Public domain.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.datasets import load_co2
    >>> load_co2()[:3].ravel()
    array([316.1, 317.3, 317.6])
    >>> int(np.isnan(load_co2(missing="nan")).sum())
    59
    """
    check_choice("missing", missing, ("interpolate", "nan", "drop"))
    dates, values = _read("co2.csv")
    known = ~np.isnan(values[:, 0])
    if missing == "interpolate":
        weeks = np.arange(len(values))
        values = np.interp(weeks, weeks[known], values[known, 0])[:, None]
    frame = _frame(values, "co2", dates[0], "W-SAT") if as_frame else values
    return frame[known] if missing == "drop" else frame


def load_el_nino(*, as_frame: bool = False) -> Array | pd.DataFrame:
    """Load the monthly sea-surface temperature of the eastern Pacific, 1950 to 2010.

    The region is Nino 1+2, 0 to 10 degrees South, 90 to 80 degrees West, where El Nino events
    appear as warm years.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return a pandas DataFrame, with a DatetimeIndex (start of the month).

    Returns
    -------
    X : ndarray of shape (732, 1), or DataFrame with the column "temperature"
        Temperature in degrees Celsius, averaged over month and region. No value is missing.

    Raises
    ------
    ImportError
        If `as_frame` is set and pandas is not installed.

    Notes
    -----
    Source: National Weather Service (NOAA), Climate Prediction Center, ERSST.V3B, Nino 1+2, as
    carried by statsmodels (``statsmodels.datasets.elnino``). Public domain.

    Examples
    --------
    >>> from reservoir.datasets import load_el_nino
    >>> load_el_nino()[:3].ravel()
    array([23.11, 24.2 , 25.37])
    """
    dates, values = _read("el_nino.csv")
    return _frame(values, "temperature", dates[0], "MS") if as_frame else values


def _read(name: str) -> tuple[list[str], Array]:
    """Return a CSV file's dates as strings and its values, (n, 1), with NaN for empty ones."""
    text = files("reservoir.datasets").joinpath("data", name).read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return [date for date, _ in rows], np.array([[float(v or "nan")] for _, v in rows])


def _frame(values: Array, column: str, start: str, freq: str) -> Any:
    """Return values as a DataFrame with one column, indexed by dates at a pandas frequency."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas. Install it (pip install pandas), or leave as_frame=False."
        ) from error
    index = pd.date_range(start, periods=len(values), freq=freq, name="date")
    return pd.DataFrame(values, index=index, columns=[column])
