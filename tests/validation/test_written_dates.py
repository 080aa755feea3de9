"""Dates written as whole numbers: recognised, errors and warnings."""

import datetime

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from reservoir import (  # noqa: E402
    ESNForecaster,
    ESNRegressor,
    ReservoirTransformer,
    fill_gaps,
)
from reservoir._validation.written_dates import written_dates  # noqa: E402
from reservoir.model_selection import make_forecast_pairs  # noqa: E402

pytestmark = pytest.mark.one_engine


def numbers(form, dates):
    return pd.Index([int(date.strftime(form)) for date in dates])


MONTHS = numbers("%Y%m", pd.date_range("2018-01", periods=30, freq="MS"))
DAYS = numbers("%Y%m%d", pd.date_range("2018-01-15", periods=60))
HOURS = numbers("%Y%m%d%H", pd.date_range("2018-02-27 18:00", periods=40, freq="60min"))
QUARTERS = pd.Index([10 * (1990 + i // 4) + i % 4 + 1 for i in range(30)])
WEEKS = numbers("%G%V", pd.date_range("2018-01-15", periods=120, freq="W"))


@pytest.mark.parametrize(
    "index, what, jumps",
    [
        (MONTHS, "months", True),
        (MONTHS[:12], "months", False),
        (pd.RangeIndex(201801, 201813), "months", False),
        (numbers("%Y%m", pd.date_range("2018-03", periods=4, freq="3MS")), "months", False),
        (MONTHS.delete(15), "months", True),
        (DAYS, "days", True),
        (DAYS[17:45], "days", False),  # February
        (numbers("%Y%m%d", pd.bdate_range("2018-01-02", periods=10)), "days", True),
        (numbers("%Y%m%d", pd.date_range("2018-01-15", periods=5, freq="MS")), "days", False),
        (WEEKS, "weeks", True),
        (WEEKS[::2], "weeks", True),
        (numbers("%G%V", pd.date_range("2020-11-02", periods=20, freq="W")), "weeks", True),  # 53
        (MONTHS.astype(float), "months", True),
        (HOURS, "hours", True),
        (HOURS[6:20], "hours", False),
        (QUARTERS, "quarters", True),
        (QUARTERS[::2], "quarters", True),
    ],
)
def test_dates_are_recognised(index, what, jumps):
    found = written_dates(index)
    assert (found.what, found.jumps) == (what, jumps)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(40),
        pd.RangeIndex(201801, 201853),  # rows of a long table: no weeks
        pd.Index(list(range(201801, 201853))),
        pd.RangeIndex(201803, 201808),
        pd.RangeIndex(201801, 204000),
        pd.RangeIndex(20180101, 20180201),  # 32 rows: there is no 20180132
        pd.Index(range(1950, 2020)),  # years, which go on as numbers do
        pd.Index([200001, 200101, 200201]),  # each January, too
        pd.Index([20000101, 20010101, 20020101]),
        pd.Index([201801, 201802]),
        pd.Index([201902, 201901, 201812]),  # falling: said elsewhere
        pd.Index([201850, 201851, 201852, 201902]),  # two weeks are missing, or none are meant
        pd.Index([0.5, 1.5, 2.5]),
        pd.Index([201811.0, 201812.0, np.nan]),
        pd.Index([201811.5, 201812.5, 201901.5]),
        pd.RangeIndex(19901, 19905),
        pd.Index([19903, 19904, 19912]),
        pd.Index([2018010122, 2018010123, 2018010124]),
        pd.Index([300001, 300002, 300003]),
    ],
)
def test_other_numbers_are_left_alone(index):
    assert written_dates(index) is None


def test_weeks_of_all_years():
    years = np.arange(1900, 2199)
    last = [datetime.date(year, 12, 28).isocalendar() for year in years]
    for week, year in zip(last, years, strict=True):
        index = pd.Index([100 * year + week[1] - 1, 100 * year + week[1], 100 * year + 101])
        assert written_dates(index).what == "weeks"
        assert written_dates(index - [1, 1, 0]) is None


def test_forecasts_of_numbers_that_are_dates():
    y = pd.Series(np.sin(np.arange(30.0)), MONTHS)
    forecaster = ESNForecaster(search="series", horizon=1)
    with pytest.raises(
        ValueError, match=r"months written as whole numbers, 201801 to 202006.*year"
    ):
        forecaster.fit(y)
    with pytest.warns(
        UserWarning, match=r"201801 to 201812.*wrong after the end of the year"
    ) as said:
        forecaster.fit(y[:12])
    assert len(said) == 1
    days = y.set_axis(range(20180301, 20180331))
    networks = ESNForecaster(n_networks=1, search=[{"n_units": 10}], random_state=0)
    for given in (days, [days, days]):
        with pytest.warns(UserWarning, match=r"y goes from 20180301 .* end of the month") as said:
            networks.fit(given)
        assert len([each for each in said if "goes from" in str(each.message)]) == 1


def test_numbers_that_may_be_dates_cause_one_warning_in_each_call():
    X = pd.DataFrame(np.sin(np.arange(12.0))[:, None], MONTHS[:12])
    esn = ESNRegressor(5).fit(X.to_numpy()[:-1], X.to_numpy()[1:])
    states, follower = ReservoirTransformer(5), ReservoirTransformer(5).fit(X.to_numpy())
    holed = X.where(np.arange(12)[:, None] != 6)
    for call in (
        lambda: esn.predict(X),
        lambda: esn.forecast(2, context=X),
        lambda: esn.stream().predict(X),
        lambda: states.fit(X),
        lambda: follower.transform(X),
        lambda: states.fit([X, X]),
        lambda: make_forecast_pairs(X),
        lambda: fill_gaps(holed, ESNRegressor(5), min_rows=3),
    ):
        with pytest.warns(UserWarning, match="The index of .* goes from 201801 to 201812") as said:
            call()
        assert len(said) == 1
