"""plotting.forecast of one of several series, in every container of a panel."""

from functools import cache

import numpy as np
import pytest

from reservoir import ESNForecaster, plotting

pd = pytest.importorskip("pandas")
plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.one_engine
MONTHS = pd.date_range("2020-01", periods=30, freq="MS")
RNG = np.random.default_rng(0)
SERIES = {name: pd.Series(RNG.normal(size=30).cumsum(), MONTHS, name="v") for name in "ba"}
LEVELS = pd.concat(SERIES, names=["shop"])
IDS = {"sequence_column": "shop"}
THREE = {**IDS, "time_column": "when", "target_column": "v"}
TABLE = LEVELS.rename_axis(["shop", "when"]).reset_index()
CASES = {
    "list": (list(SERIES.values()), None, 1),
    "arrays": ([each.to_numpy() for each in SERIES.values()], None, 1),
    "stack": (LEVELS.to_numpy().reshape(2, 30, 1), None, 1),
    "columns": (pd.DataFrame(SERIES), None, "a"),
    "columns of an array": (pd.DataFrame(SERIES).to_numpy(), None, 1),
    "levels": (LEVELS, None, "a"),
    "levels of a frame": (LEVELS.to_frame(), None, "a"),
    "ids": (LEVELS.to_frame().reset_index(level=0), "shop", "a"),
    "targets": (LEVELS.to_frame().reset_index(level=0), {**IDS, "target_column": "v"}, "a"),
    "times": (TABLE, THREE, "a"),
    "times of an array": (
        np.column_stack([np.repeat([0, 1], 30), np.tile(np.arange(5, 35), 2), LEVELS]),
        {"sequence_column": 0, "time_column": 1},
        1,
    ),
    "ids of an array": (np.column_stack([np.repeat([0, 1], 30), LEVELS]), 0, 1),
}


@cache
def forecast_alone(dated):
    model = ESNForecaster(search="series", n_networks=1, random_state=0)
    return np.ravel(model.fit(SERIES["a"] if dated else SERIES["a"].to_numpy()).forecast(5))


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("coverage", [None, 0.8])
def test_one_series_is_drawn_by_its_id(case, coverage):
    y, column, key = CASES[case]
    columns = column if isinstance(column, dict) else {"sequence_column": column}
    model = ESNForecaster(
        search="series", panel="each", n_networks=1, random_state=0, **columns
    ).fit(y)
    ax = plotting.forecast(model, 5, series=key, coverage=coverage)
    (drawn,) = [line for line in ax.lines if line.get_label() == "forecast"]
    np.testing.assert_array_equal(drawn.get_ydata()[-5:], forecast_alone(bool(model.seasons_[key])))
    assert len(ax.collections) == (coverage is not None)
    plt.close(ax.figure)


def test_names_of_tables_with_a_column_of_times(polars):
    given = {name: TABLE[name].to_list() for name in TABLE}
    model = ESNForecaster(search="series", n_networks=1, random_state=0, **THREE)
    ax = plotting.forecast(model.fit(polars.DataFrame(given)), 5, series="a", coverage=0.8)
    (drawn,) = [line for line in ax.lines if line.get_label() == "forecast"]
    assert drawn.get_xdata()[-1] == np.datetime64("2022-11-01")
    plt.close(ax.figure)
    made = model.fit(TABLE).forecast(5, coverage=0.8)
    one = made[made["shop"] == "a"].set_index("when").drop(columns="shop")
    ax = plotting.forecast(SERIES["a"], one)
    assert len(ax.collections) == 1
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="forecast of one series, without ids and times"):
        plotting.forecast(SERIES["a"], made)


def test_a_series_must_be_named():
    model = ESNForecaster(search="series", panel="each", n_networks=1).fit(CASES["list"][0])
    with pytest.raises(ValueError, match=r"fitted to 2 series, such as 0.*Name it by series"):
        plotting.forecast(model, 3)
    with pytest.raises(ValueError, match="7 is not in the panel"):
        plotting.forecast(model, 3, series=7)
    with pytest.raises(TypeError, match="series is for a model"):
        plotting.forecast(SERIES["a"], SERIES["a"][20:], series="a")
