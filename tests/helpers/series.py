"""Series with a season, as models of series receive them."""

import numpy as np

from reservoir.series_models.history import History
from reservoir.series_models.series_data import SeriesData

AHEAD = 40  # rows that inputs are known for, beyond the end


def seasonal(n_rows, period=12, *, seed=0, n_outputs=1, step=0.3):
    rng = np.random.default_rng(seed)
    rows = np.arange(n_rows)[:, None]
    profile = rng.normal(size=(period, n_outputs))[rows[:, 0] % period]
    return 30 + 0.05 * rows + 2 * profile + step * rng.normal(size=(n_rows, n_outputs)).cumsum(0)


def history_of(levels, seasons=(12.0,), *, n_known=0, seed=1, first=0):
    known = np.random.default_rng(seed).normal(size=(len(levels) + AHEAD, n_known))
    return History(levels, np.ones(levels.shape, bool), known, seasons, first)


def data_of(values, seasons=(12.0,), *, n_known=0):
    history = history_of(values, seasons, n_known=n_known)
    positive = (values > 0).all(axis=0)
    return SeriesData(values, history.observed, history.known, seasons, positive)
