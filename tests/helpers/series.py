"""Series with a season, as models of series receive them."""

import numpy as np

from reservoir import ESNForecaster
from reservoir.series_models.history import History
from reservoir.series_models.series_data import SeriesData

AHEAD = 40  # rows that inputs are known for, beyond the end


def quick(**params):
    """Return a forecaster of series by one network."""
    return ESNForecaster(**{"search": "series", "n_networks": 1, "random_state": 0} | params)


def assert_first_steps_stay(ahead, few, many, leeway):
    """Assert that results of a few steps begin those of many, which `ahead` returns by step."""
    whole = ahead(many)
    for n_steps in few:
        np.testing.assert_allclose(ahead(n_steps), whole[:n_steps], rtol=0, atol=leeway)


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
