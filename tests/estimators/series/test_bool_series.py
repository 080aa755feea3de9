"""Forecasts of bool series, which stay within 0 and 1."""

import numpy as np
import pytest

from helpers.series import quick
from reservoir import ESNForecaster, load, save

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

MONTHS = pd.date_range("2015-01-01", periods=60, freq="MS")
OPEN = np.arange(60) % 12 > 3
OPEN = OPEN ^ (np.random.default_rng(0).random(60) < 0.15)
SMALL = [{"n_units": 20}]


def forecasts(model):
    """Return all values of forecast, intervals and paths as one array."""
    tables = model.forecast(15, coverage=[0.5, 0.99]), model.simulate(15, 20)
    return np.concatenate([np.ravel(table) for table in tables])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", ["array", "list", "Series", "boolean", "gaps", "DataFrame"])
def test_bool_series_stay_within_0_and_1(kind):
    dated = pd.Series(OPEN, MONTHS, name="open")
    y = {
        "array": OPEN,
        "list": OPEN.tolist(),
        "Series": dated,
        "boolean": dated.astype("boolean").mask(np.arange(60) == 7),
        "gaps": dated.drop(MONTHS[[20, 33]]).asfreq("MS"),  # objects: True, False, NaN
        "DataFrame": dated.to_frame(),
    }[kind]
    found = forecasts(quick().fit(y))
    assert (found.min(), found.max()) == (0, 1)  # clipped, and no warning says so
    numbers = np.asarray(pd.DataFrame(y).astype(float))
    assert forecasts(quick().fit(numbers)).max() > 1


def test_bool_series_of_polars_stay_within_0_and_1(polars):
    for y in (polars.Series("open", OPEN), polars.DataFrame({"open": OPEN})):
        found = quick().fit(y).forecast(15, coverage=0.99).to_numpy()
        assert (found.min(), found.max()) == (0, 1)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("panel", ["each", "shared"])
def test_only_the_bool_series_of_a_panel_are_bounded(panel):
    y = pd.DataFrame({"open": OPEN, "sales": 0.0 + OPEN, "closed": ~OPEN}, MONTHS)
    model = quick(panel=panel).fit(y)
    table, paths = model.forecast(15, coverage=0.99), model.simulate(15, 20)
    for name in ("open", "closed"):
        assert table[name].max(axis=None) == 1
        assert paths.xs(name, axis=1, level=1).max(axis=None) == 1
    assert table["sales"].max(axis=None) > 1
    long = y[["open"]].assign(shop="b")
    model = quick(panel=panel, sequence_column="shop").fit(pd.concat([long, long.assign(shop="a")]))
    assert model.forecast(15, coverage=0.99).drop(columns="shop").max(axis=None) == 1
    model = quick(panel=panel).fit([y.open, y.sales])
    one, other = model.forecast(15, coverage=0.99)
    assert one.max(axis=None) == 1 < other.max(axis=None)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("later", [np.array([True, False, True]), np.array([1.0, 0.0, np.nan])])
def test_later_rows_and_files_keep_the_bounds(later, tmp_path):
    model = quick().fit(OPEN).update(later)
    save(model, tmp_path / "model.npz")
    found = forecasts(model)
    assert (found.min(), found.max()) == (0, 1)
    np.testing.assert_array_equal(forecasts(load(tmp_path / "model.npz")), found)
    with pytest.raises(ValueError, match=r"y has the value 2 in row 1, column 0.*was bool.*fit"):
        model.update(np.array([1.0, 2.0]))


def test_a_series_that_was_always_true_may_become_false():
    with pytest.warns(UserWarning, match="All values of y are equal"):
        model = quick().fit(pd.Series(np.ones(30, bool), MONTHS[:30]))
    later = pd.Series([False, True], MONTHS[30:32])
    assert model.update(later).forecast(3).between(0, 1).all()


def switching(n_rows):
    """Return a logistic map, and whether it is large."""
    values = np.empty(n_rows)
    values[0] = 0.3
    for i in range(1, n_rows):
        values[i] = 3.9 * values[i - 1] * (1 - values[i - 1])
    return pd.DataFrame({"value": values, "large": values > 0.5})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:In closed loop no network")
def test_bool_columns_of_a_system_stay_within_0_and_1(tmp_path):
    y = switching(200)
    model = ESNForecaster(search=SMALL, n_networks=1, random_state=0).fit(y)
    assert model.kind_ == "dynamics"
    found = model.forecast(100, coverage=0.99)
    assert found["large"].min(axis=None) == 0
    assert found["large"].max(axis=None) == 1
    save(model, tmp_path / "model.npz")
    back = load(tmp_path / "model.npz").update(y.tail(30).set_axis(range(200, 230)))
    assert back.forecast(100, coverage=0.99)["large"].max(axis=None) == 1
    assert model.simulate(9, 20).xs("large", axis=1, level=1).max(axis=None) == 1
    with pytest.raises(ValueError, match="context has the value 2 in row 0, column 1"):
        model.forecast(3, context=y.assign(large=2.0))
    both = ESNForecaster(search=SMALL, n_networks=1, random_state=0).fit([y.astype(float), y])
    assert both.forecast(100, coverage=0.99)["large"].max(axis=None) > 1
