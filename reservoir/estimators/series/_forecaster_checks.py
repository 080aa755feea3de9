"""What ESNForecaster refuses and warns of, beyond its containers."""

from __future__ import annotations

import warnings

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.estimators.series._dynamical_fit import DynamicalFit
from reservoir.estimators.series._series_panels import Panel
from reservoir.estimators.series._statistical_fit import StatisticalFit

_FEWEST = 5  # observed rows of a series


def refuse_few(rows: list[Array], panel: Panel) -> None:
    """Refuse series of which next to nothing is known."""
    for values, each in zip(rows, panel.ids, strict=True):
        n_known = int(np.isfinite(values).all(axis=1).sum())
        if n_known < _FEWEST:
            which = "y" if len(rows) == 1 else f"series {each!r} of y"
            raise ValueError(
                f"{which} has {n_known} rows without missing values (n_samples={len(values)}), "
                f"and at least {_FEWEST} are needed. Give a longer series, or leave it out."
            )


def check_context(fit: DynamicalFit, rows: Array) -> None:
    """Refuse a context that networks cannot go on from; warn if it is short."""
    if len(rows) < fit.fewest:
        raise ValueError(
            f"context has {len(rows)} row{'s' * (len(rows) != 1)}, and the networks need at "
            f"least {fit.fewest} to go on from. After {fit.washout + 1} they have forgotten "
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


def warn_of_bounds(n_free: int, n_steps: int) -> None:
    """Say so where the loop was held at its bounds."""
    if n_free == n_steps:
        return
    warnings.warn(
        f"The forecast was held at its bounds (clip), first in step {n_free} of {n_steps}, counted "
        "from 0: it left the range of the training data. The rows from there on are not to be "
        "trusted. More rows in fit, or fewer steps, help.",
        RuntimeWarning,
        stacklevel=caller_level(),
    )


def warn_of_constants(fits: list[StatisticalFit], panel: Panel) -> None:
    """Say so where all values of a series are equal."""
    for fit, each in zip(fits, panel.ids, strict=True):
        values = np.where(fit.data.observed, fit.data.values, np.nan)
        if (np.nanmax(values, axis=0) > np.nanmin(values, axis=0)).any():
            continue
        which = "y" if len(fits) == 1 else f"series {each!r} of y"
        warnings.warn(
            f"All values of {which} are equal ({fit.data.values[0, 0]:.6g}, n_samples="
            f"{len(values)}): the forecast is that value, and its intervals have no width.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return
