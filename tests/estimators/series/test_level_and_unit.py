"""Forecasts, bands and odd values at another level, in another unit and order, in other years."""

import numpy as np
import pytest

from reservoir import ESNForecaster
from reservoir.estimators.series.model_search import period_of
from reservoir.series_models.candidates import candidates_for
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.outliers import LastRows
from reservoir.series_models.rule import look_for_rule
from reservoir.series_models.series_data import Bounds, SeriesData

pytestmark = pytest.mark.one_engine

N_ROWS, N_LATER = 40, 3
SEASONS = (4.0,)
KINDS = {
    "series": {"search": "series", "season": 4},
    "dynamics": {"search": [{"n_units": 15, "spectral_radius": 0.4}]},
}
# factor, and distance in standard deviations; values at level c are rounded to about c * 1e-16
CHANGES = [(1, 1e-3), (1, 1.0), (1, 1e3), (1, 1e6), (1e-9, 0), (3, 0), (1e-200, 0), (1e200, 0)]


def rows_of(seed, n_columns=1):
    """Return columns of deviation 1 and a season of 4, which remain negative if they are lowered.

    Negative columns have neither logarithms nor a bound at 0. The last value of the first is odd.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(N_ROWS + N_LATER)[:, None] + np.arange(n_columns)
    noise = rng.normal(size=t.shape)
    y = np.sin(np.pi * t / 2) + 0.3 * noise + 0.1 * noise.cumsum(axis=0)
    y = (y - y.mean(axis=0)) / y.std(axis=0) - 30
    y[-1, 0] += 20
    return y


def results_of(y, **params):
    """Return forecasts with bands and paths, before and after later rows, and which are odd."""
    model = ESNForecaster(**{"n_networks": 1, "random_state": 0, "outliers": "missing"} | params)
    model.fit(y[:N_ROWS])
    found = [model.forecast(4, coverage=[0.5, 0.9]), model.simulate(3, 5)]
    model.update(y[N_ROWS:])
    found += [model.forecast(2, coverage=0.8), model.last_rows_[-N_LATER:]]
    odd = model._fits[0].ending.odd
    return found, [] if odd is None else odd.rows.tolist()


@pytest.fixture(scope="module")
def expected():
    return {name: results_of(rows_of(0), **params) for name, params in KINDS.items()}


@pytest.mark.filterwarnings("ignore:In closed loop no network")
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("factor", "distance"), CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_do_not_depend_on_level_and_unit(kind, factor, distance, expected):
    wanted, odd = expected[kind]
    assert odd == [N_ROWS + 2]
    found, odd_now = results_of((rows_of(0) - distance) * factor, **KINDS[kind])
    assert odd_now == odd
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one / factor + distance, other, rtol=0, atol=1e-6)


def forecasts_by(y):
    """Return the forecasts of all models from two origins, by name."""
    data = fill_gaps(y, np.zeros((len(y), 0)), SEASONS)
    bounds = Bounds.of(y, data.positive, 1.0)
    origins = np.array([30, len(y)])
    return {
        each.name: each.fit(data, 0).forecast(data.with_room(60), origins, 6, bounds)
        for each in candidates_for(data, 1)
    }


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(("factor", "distance"), CHANGES)
def test_no_model_depends_on_level_and_unit(factor, distance, global_random_seed):
    y = rows_of(global_random_seed, 2)
    y[[3, 17], 1] = np.nan  # gaps are filled by forecasts
    expected = forecasts_by(y)
    assert len(expected) == 9
    for name, found in forecasts_by((y - distance) * factor).items():
        found = found / factor + distance
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-6, err_msg=name)


def test_the_order_of_columns_does_not_matter(global_random_seed):
    y = rows_of(global_random_seed, 3)
    expected = forecasts_by(y)
    for name, found in forecasts_by(y[:, ::-1]).items():
        np.testing.assert_allclose(found[..., ::-1], expected[name], atol=1e-6, err_msg=name)
    known = np.zeros((len(y), 0))
    odd, turned = (
        LastRows.of(SeriesData.complete(rows, known), rows, keep=False).odd
        for rows in (y, y[:, ::-1])
    )
    assert (odd.rows.tolist(), odd.columns.tolist()) == ([N_ROWS + 2], [0])
    assert (turned.rows.tolist(), turned.columns.tolist()) == ([N_ROWS + 2], [2])
    np.testing.assert_allclose(turned.expected, odd.expected)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("factor", "distance"), CHANGES)
def test_kind_and_season_do_not_depend_on_level_and_unit(factor, distance):
    rng = np.random.default_rng(0)
    map_ = np.empty((100, 1))
    map_[0] = 0.3
    for row in range(99):
        map_[row + 1] = 3.9 * map_[row] * (1 - map_[row])
    for rows in (map_ / map_.std() - 99, rng.normal(size=(100, 1)) - 99):
        rule, found = (
            look_for_rule(SeriesData.complete(each, np.zeros((100, 0))), 0)
            for each in (rows, (rows - distance) * factor)
        )
        assert rule.followed == found.followed
        np.testing.assert_allclose(found[1:], rule[1:], rtol=1e-3)
    y = (np.sin(np.arange(200) * np.pi / 6) + 0.1 * rng.normal(size=200) - distance) * factor
    period, explained = period_of(y[:, None])
    assert period == 12
    assert explained > 0.9


def test_the_year_does_not_matter():
    pd = pytest.importorskip("pandas")
    ends = []
    for year in (2016, 1716):
        days = pd.date_range(f"{year}-03-01", periods=N_ROWS + N_LATER, freq="D")
        y = pd.Series(rows_of(0)[:, 0], days)
        model = ESNForecaster(search="series", n_networks=1, random_state=0, outliers="missing")
        model.fit(y[:N_ROWS]).update(y[N_ROWS:])
        ends.append(model.forecast(3, coverage=0.9))
        assert model.seasons_ == (7.0,)
        assert ends[-1].index[0] == days[-1] + pd.Timedelta("1D")
    np.testing.assert_array_equal(ends[1], ends[0])
