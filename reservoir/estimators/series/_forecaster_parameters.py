"""Parameters of ESNForecaster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._validation import check_choice, check_count, check_n_jobs, check_number
from reservoir.estimators.parameters import natural_or_switch, parameter
from reservoir.estimators.series._own_networks import check_search


def _check_clip(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str) or np.ndim(value) > 0:
        raise ValueError(f'clip={value!r} must be "auto" or a number of widths, at least 0.')
    check_number(name, value, low=0.0)


def _check_horizon(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_count(name, value)


def _check_season(name: str, value: Any) -> None:
    if value is None:
        return
    if np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name}={value!r} must be a number of rows per period, several, 1 for none, or None."
        )
    for each in np.atleast_1d(np.asarray(value, dtype=object)).tolist():
        check_number(name, each, low=1.0)


def _check_panel(name: str, value: Any) -> None:
    if value is not None:
        check_choice(name, value, ("each", "shared"))


def _check_missing(name: str, value: Any) -> None:
    check_choice(name, value, ("raise", "hold", "interpolate"))


@dataclass(eq=False, repr=False, kw_only=True)
class ForecasterParameters:
    """The fields of ESNForecaster."""

    search: Any = parameter(
        "auto",
        '"auto", "dynamics", "series" or list of dicts',
        """What is tried: what suits the data; networks for series that follow a rule; models for
        series with trends and seasons; or your own networks, each a dict with
        `n_units` and, if you like, `spectral_radius` (default 0.05), `input_scaling` (0.3, of
        standardised rows), `bias_scaling` (1), `leak_rate` (1), `augment` (None, "square" or
        "even_square"), `n_lags` (1) and `skip` (1), as in ESNRegressor and NVARRegressor. Your
        own networks keep their size, also on long series.""",
        check_search,
    )
    season: Any = parameter(
        None,
        "float or list of floats",
        """Rows per period, of one season or of several: 12, or [24, 168]. 1 means none. None reads
        the frequency of the index: months have 12, hours 24 and 168, and so on, as far as the rows
        hold two whole periods of the shortest, three of the others. Of "dynamics" no season is
        known.""",
        _check_season,
    )
    panel: Any = parameter(
        None,
        '"each" or "shared"',
        """None: columns are variables of one system. Else they are series that are forecast one by
        one, as are those of a list, of a MultiIndex, or of a column of ids. "each" finds models
        for each alone. "shared" learns from all of them together: networks in closed loop and
        autoregressions have one readout for all series, each of which is standardised by itself,
        and models are compared by the forecasts of all, so that they have the same shares in each
        average (the other models more where a series is too short for one). The last season,
        Theta and the direct network are fitted to each series, and its intervals are its own. All
        series have the seasons of the longest. This helps where series are short and alike.
        Both are "series".""",
        _check_panel,
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """With `panel`: the column of y, and of exog, that holds the ids of series.""",
    )
    n_networks: int = parameter(
        3,
        "int",
        """Networks whose median is taken, or fed back.""",
        check_count,
    )
    clip: Any = parameter(
        "auto",
        '"auto" or float',
        """Widths of the range of the training data that a forecast may leave it by; "auto" is
        1. For "series" forecasts of data that were never negative are not, either.""",
        _check_clip,
    )
    horizon: Any = parameter(
        "auto",
        'int or "auto"',
        """Steps of the forecasts that models are chosen by. "auto" is, for "dynamics", a fifth of
        the series, at most 100, from 1500 rows on 150; for "series" a season, 8 to 60, and at most
        a fifth of the rows.""",
        _check_horizon,
    )
    missing_values: str = parameter(
        "raise",
        '{"raise", "hold", "interpolate"}',
        """What becomes of missing values in `exog`: refused, the value before them again, or a
        straight line. Those in y are never filled in for good: models do not learn them.""",
        _check_missing,
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Workers for the networks of the bank, or for the series of a panel (joblib). The result
        does not depend on it, to the bit: each network is fitted on one BLAS thread.""",
        lambda name, value: check_n_jobs(value),
    )
    verbose: int = parameter(
        0,
        "int",
        """Whether progress is shown.""",
        natural_or_switch,
    )
    random_state: Any = parameter(None, "int, Generator, RandomState or None")
