"""What ESNForecaster refuses and warns of, beyond its containers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir._validation.written_dates import warn_of_written_dates
from reservoir.estimators.series._dynamical_fit import DynamicalFit
from reservoir.estimators.series._series_names import SeriesName, changed_index
from reservoir.estimators.series._series_panels import Panel
from reservoir.estimators.series._series_tables import is_collection
from reservoir.estimators.series._statistical_fit import StatisticalFit

_FEWEST = 5  # observed rows of a series
_SEEN = 0.55  # part of the rows behind which forecasts are compared with what followed


def check_together(search: Any, panel: Any, sequence_column: Any, y: Any) -> None:
    """Refuse parameters that do not go with each other, or with y."""
    networks = not isinstance(search, str) or search == "dynamics"
    if panel is not None and networks:
        raise ValueError(
            f"search={search!r} fits networks to one system, and panel={panel!r} says that y holds "
            "several series. Give panel=None for trajectories or variables of one system, or "
            'search="series".'
        )
    if panel is None and sequence_column is not None:
        raise ValueError(
            f"sequence_column={sequence_column!r} tells the series of a panel apart, and "
            'panel=None. Say panel="each" or panel="shared".'
        )
    if panel is None and isinstance(search, str) and search == "series" and is_collection(y):
        raise ValueError(
            'search="series" forecasts one series, and y holds several, which without `panel` are '
            'trajectories of one system. Say panel="each" or panel="shared".'
        )


def check_enough_values(rows: list[Array], panel: Panel) -> None:
    """Refuse series of which next to nothing is known."""
    for values, each in zip(rows, panel.ids, strict=True):
        which = "y" if len(rows) == 1 else f"series {each!r} of y"
        there = np.isfinite(values)
        n_known = int(there.all(axis=1).sum())
        if n_known < _FEWEST:
            remedy = "Give a longer series, or leave it out."
            if there.sum(axis=0).min() >= _FEWEST:
                remedy = 'Let panel="each" forecast columns one by one.'
            raise ValueError(
                f"{which} has {n_known} rows without missing values (n_samples={len(values)}), "
                f"and at least {_FEWEST} are needed. {remedy}"
            )
        end = int(np.flatnonzero(there.any(axis=1))[-1]) + 1
        begin = int(np.argmax(there.any(axis=1)))
        late = begin + int(_SEEN * (end - begin))
        if not there[late:end].any(axis=0).all():
            column = int(np.argmin(there[late:end].any(axis=0)))
            raise ValueError(
                f"Column {column} of {which} has no value in rows {late} to {end - 1}: nothing "
                'tells how well it is forecast. Leave it out, or let panel="each" forecast '
                "columns one by one, each from its own end on."
            )


def check_update(fits: list[Any], rows: list[Array], panel: Panel) -> None:
    """Refuse later rows that have no logarithm where models need it."""
    for fit, values, each in zip(fits, rows, panel.ids, strict=True):
        if not isinstance(fit, StatisticalFit) or not fit.uses_logarithms:
            continue
        wrong = (values <= 0) & fit.data.positive
        if wrong.any():
            row, column = (int(k) for k in np.argwhere(wrong)[0])
            which = f"series {each!r} of y" if len(panel) > 1 else "y"
            raise ValueError(
                f"{which} has the value {values[row, column]:g} in row {row}, and in fit all "
                "values were positive: models have learned their logarithms. Fit anew with all "
                "rows."
            )


def check_context(fit: DynamicalFit, rows: Array) -> None:
    """Refuse a context that networks cannot go on from; warn if it is short."""
    if len(rows) < fit.min_rows:
        raise ValueError(
            f"context has {len(rows)} row{'s' * (len(rows) != 1)}, and the networks need at "
            f"least {fit.min_rows} to go on from. After {fit.washout + 1} they have forgotten "
            "where they started: give that many or more."
        )
    if len(rows) <= fit.washout:
        warnings.warn(
            f"context has {len(rows)} rows, and networks need about {fit.washout} before the "
            "last one to forget where they started. The forecast may be less exact than it "
            f"could be. Give {fit.washout + 1} or more.",
            UserWarning,
            stacklevel=caller_level(),
        )


def warn_of_bounds(n_free: Sequence[int], n_steps: int, panel: Panel) -> None:
    """Say so where forecasts of series were held at their bounds."""
    held = [i for i, each in enumerate(n_free) if each < n_steps]
    if not held:
        return
    which = f" of series {panel.ids[held[0]]!r}" if len(panel) > 1 else ""
    more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
    warnings.warn(
        f"The forecast{which}{more} was held at its bounds (clip), first in step "
        f"{n_free[held[0]]} of {n_steps}, counted "
        "from 0: it left the range of the training data. The rows from there on are not to be "
        "trusted. More rows in fit, or fewer steps, help.",
        RuntimeWarning,
        stacklevel=caller_level(),
    )


def warn_of_numbers(panel: Panel) -> None:
    """Warn where whole numbers in the index of a series may be dates."""
    for each, calendar in zip(panel.ids, panel.calendars, strict=True):
        if calendar.kind == "number" and not calendar.plain:
            name = SeriesName.of("y", panel.kind, each, panel.id_name, alone=len(panel) == 1)
            warn_of_written_dates(name, calendar.index, partial(changed_index, name))
            return


def warn_of_constants(fits: list[StatisticalFit], panel: Panel) -> None:
    """Say so where all values of a series are equal."""
    for fit, each in zip(fits, panel.ids, strict=True):
        values = np.where(fit.data.observed, fit.data.values, np.nan)
        if (np.nanmax(values, axis=0) > np.nanmin(values, axis=0)).any():
            continue
        which = "y" if len(fits) == 1 else f"series {each!r} of y"
        warnings.warn(
            f"All values of {which} are equal ({values[0, 0]:.6g}, n_samples="
            f"{len(values)}): the forecast is that value, and its intervals have no width.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return
