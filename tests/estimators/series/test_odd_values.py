"""Odd values at the end of a series in ESNForecaster: forecasts, intervals, warnings, updates."""

import warnings

import numpy as np
import pytest

from helpers.series import quick as model
from reservoir import ESNForecaster, load, save
from reservoir.datasets import lorenz
from reservoir.series_models import outliers

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine
ODD = r"was expected: the difference is \d+ times the typical error of one step"


def quiet(n=72, seed=0):
    return 100 + np.random.default_rng(seed).normal(size=n)


def forecast(y, n=6, **params):
    return model(**params).fit(y).forecast(n, coverage=[0.5, 0.8, 0.95])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("value", [0.0, 1000.0])
@pytest.mark.parametrize("back", [1, 2, 5, 10])
def test_an_odd_value_counts_as_missing(value, back):
    y = quiet()
    y[-back] = value
    with pytest.warns(UserWarning, match=ODD) as caught:
        warned = forecast(y)
    assert str(len(y) - back) in str(caught[0].message)
    assert ("intervals contain its level" in str(caught[0].message)) == (back == 1)
    found = forecast(y, outliers="missing")  # warnings are errors here
    np.testing.assert_array_equal(found, warned)
    y[-back] = np.nan
    plain = forecast(y)
    np.testing.assert_array_equal(found[:, 0], plain[:, 0])
    if back > 1:
        np.testing.assert_array_equal(found, plain)
        return
    for lower, upper in ((1, 2), (3, 4), (5, 6)):
        near, far = (upper, lower) if value == 0 else (lower, upper)
        np.testing.assert_array_equal(found[:, near], plain[:, near])
        assert (np.abs(found[:, far] - value) < 5).all()
    assert (found >= 0).all()


def test_intervals_of_positive_data_do_not_contain_the_level_of_a_negative_value():
    y = quiet(40)
    y[-1] = -1000.0
    with pytest.warns(UserWarning, match=ODD) as caught:
        found = forecast(y)
    assert "intervals contain" not in str(caught[0].message)
    assert (found >= 0).all()


def test_four_rows_are_a_new_level():
    y = quiet()
    y[-4:] += 50
    np.testing.assert_array_equal(forecast(y), forecast(y, outliers="keep"))
    y[-4] -= 50
    assert (np.abs(forecast(y, outliers="missing")[:, 0] - 100) < 3).all()
    assert (forecast(y, outliers="keep")[:, 0] > 110).all()


def test_clean_series_are_left_alone():
    ones = [model(outliers=how).fit(quiet()) for how in ("warn", "keep")]
    np.testing.assert_array_equal(*[one.forecast(6, coverage=[0.5, 0.95]) for one in ones])
    rows = [one.update(quiet(5, 1)).forecast(3, coverage=0.9) for one in ones]
    np.testing.assert_array_equal(*rows)


def test_sample_paths_are_at_either_level():
    y = quiet()
    y[-1] = 1000
    one = model(outliers="missing").fit(y)
    paths = one.simulate(4, n_paths=400)
    high = paths > 500
    assert (high.all(axis=1) | ~high.any(axis=1)).all()
    assert 0.15 < high[:, 0].mean() < 0.35
    np.testing.assert_array_equal(paths[:, :2], one.simulate(2, n_paths=400))


def test_the_warning_names_series_date_and_column():
    days = pd.date_range("2024-01-01", periods=60)
    table = pd.DataFrame({"a": quiet(60), "b": quiet(60, 1)}, days)
    table.loc[days[-1], "b"] = 0.0
    place = r"y has the value 0 in row 59 \(2024-02-29"
    for panel, told in (
        ("each", f"series 'b' of {place}"),
        (None, f"{place}.*, column 1"),
        ("shared", f"series 'b' of {place}"),
    ):
        with pytest.warns(UserWarning, match=told):
            rows = model(panel=panel).fit(table).forecast(3, coverage=0.9)
        assert (rows["a"]["lower 90%"] > 90).all()
        assert (rows["b"]["lower 90%"] < 5).all()
        assert (np.abs(rows["b"]["forecast"] - 100) < 5).all()


def test_more_than_one_is_counted():
    y = quiet()
    y[-3], y[-1] = 0, 200
    with pytest.warns(UserWarning, match=r"value 0 in row 69 \(and 1 more\)"):
        model().fit(y)


# ---------------------------------------------------------------------------- update


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("chunk", [1, 2, 6])
def test_update_finds_what_fit_finds(chunk, tmp_path):
    later = quiet(6, seed=5)
    later[-1] = 0
    one = model(outliers="missing").fit(quiet())
    for start in range(0, 6, chunk):
        one.update(later[start : start + chunk])
    rows = one.forecast(4, coverage=0.9)
    plain = model(outliers="missing").fit(quiet()).update(np.r_[later[:-1], np.nan])
    np.testing.assert_allclose(rows[:, 0], plain.forecast(4), rtol=1e-9)
    assert (rows[:, 1] == 0).all()
    # the next row is as before: nothing remains, in a file neither
    save(one, tmp_path / "model.npz")
    expected = plain.update([100.0]).forecast(4, coverage=0.9)
    for each in (one, load(tmp_path / "model.npz")):
        after = each.update([100.0]).forecast(4, coverage=0.9)
        np.testing.assert_allclose(after, expected, rtol=1e-9)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_later", [1, 9, 10, 12, 40])
def test_an_odd_value_remains_missing_when_later_rows_are_as_before(n_later):
    y, later = quiet(), quiet(n_later, seed=3)
    y[-2] = 0
    one = model(outliers="missing").fit(y).update(later)
    assert (one._fits[0].data.values > 90).all()
    assert (~one._fits[0].data.observed).sum() == 1
    one.update(quiet(15, seed=4))
    assert (one._fits[0].data.values > 90).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_later", [3, 12, 40])
def test_a_new_level_begins_with_its_first_row(n_later):
    y, later = quiet(), 106 + np.random.default_rng(3).normal(size=n_later)
    y[-1] = 112
    one = model(outliers="missing").fit(y)
    assert one._fits[0].ending.odd is not None
    with pytest.warns(UserWarning, match="bounds are widened"):
        one.update(later + 5)
    assert one._fits[0].data.observed.all()


def test_update_warns_of_new_rows_only():
    one = model().fit(quiet())
    with pytest.warns(UserWarning, match="in row 72, where"):
        one.update([0.0])
    one.update([100.0])
    with pytest.warns(UserWarning, match=r"in row 74, where"):
        one.update([500.0])


def test_update_takes_the_fourth_row_as_a_new_level():
    one, kept = model(outliers="missing").fit(quiet()), model(outliers="keep").fit(quiet())
    level = 104 + np.arange(4.0)
    level += 10
    for row in level[:3]:
        one.update([row])
        assert (np.abs(one.forecast(3) - 100) < 3).all()
    with pytest.warns(UserWarning, match="beyond|between"):
        one.update(level[3:])
    with pytest.warns(UserWarning, match="between"):
        kept.update(level)
    np.testing.assert_allclose(one.forecast(3), kept.forecast(3), rtol=1e-9)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("search", ["series", [{"n_units": 20}]])
def test_rows_beyond_the_bounds_widen_them(search):
    y = np.sin(0.3 * np.arange(80)) + 2
    one = ESNForecaster(search=search, n_networks=1, random_state=0).fit(y)
    bounds = one._fits[0].bounds
    with pytest.warns(UserWarning, match=r"value 42 in row 0 of update.* Fit again with all rows"):
        one.update(40 + y[:12])
    wider = one._fits[0].bounds
    assert (wider.low <= bounds.low).all()
    assert (wider.high > 40).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert one.forecast(2).max() > bounds.high.max()


def test_a_new_zero_among_logarithms_still_raises_if_it_is_not_odd():
    y = np.exp(np.random.default_rng(0).normal(size=80))
    one = model(outliers="keep").fit(y)
    assert one._fits[0].uses_logarithms
    with pytest.raises(ValueError, match="value 0 in row 0, but in fit all values were positive"):
        one.update([0.0])


# ---------------------------------------------------------------------------- other kinds


def test_dynamics_continue_from_the_rows_before():
    orbit = lorenz(302, dt=0.05, random_state=0)
    y = orbit[:300].copy()
    y[-1, 0] = 60.0
    plan = [{"n_units": 60}]
    with pytest.warns(UserWarning, match=ODD):
        one = ESNForecaster(search=plan, n_networks=1, random_state=0).fit(y)
    assert one.kind_ == "dynamics"
    rows = one.forecast(2, coverage=0.9)
    np.testing.assert_allclose(rows[:, :, 0], orbit[300:], atol=0.5)
    assert (rows[:, 0, 2] > 55).all()
    # another context has another end
    other = one.forecast(2, context=orbit[:250], coverage=0.9)
    assert (other[:, 0, 2] < 40).all()
    before = ESNForecaster(search=plan, n_networks=1, random_state=0).fit(y[:299])
    with pytest.warns(UserWarning, match=ODD):
        before.update(y[299:])
    np.testing.assert_allclose(before.forecast(2), rows[:, :, 0], rtol=1e-6)


def test_what_networks_forecast_is_not_odd(monkeypatch):
    """A value that autoregressions call odd, but networks foretell, counts."""
    y = lorenz(200, dt=0.05, random_state=0)[:, 0]
    called = []

    def find(before, rows, n_judged, **kept):
        if not n_judged:
            return None
        called.append(n_judged)
        last = before.first + before.n_rows + len(rows) - 1
        values, far = rows[-1], rows[-1] + 10.0
        one = np.array([last]), np.array([0])
        return outliers.OddValues(*one, values, far, np.array([9.0]), values - far)

    monkeypatch.setattr(outliers, "find_odd", find)
    plan = [{"n_units": 60}]
    one = ESNForecaster(search=plan, n_networks=1, random_state=0).fit(y)
    again = ESNForecaster(search=plan, n_networks=1, random_state=0, outliers="keep").fit(y)
    assert called
    np.testing.assert_array_equal(one.forecast(5, coverage=0.9), again.forecast(5, coverage=0.9))


def test_bool_series_have_no_odd_values():
    y = np.zeros(100, dtype=bool)
    y[-1] = True
    rows = model().fit(y).forecast(3, coverage=0.9)
    assert ((rows >= 0) & (rows <= 1)).all()


# ---------------------------------------------------------------------------- least widths


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("row", [0, 20, 38])
def test_no_band_has_width_0_unless_all_values_are_equal(row):
    sevens, sales = np.full(40, 7.0), np.zeros(100)
    sevens[row], sales[int(2.4 * row)] = 7.1, 1
    rows = forecast(sevens)
    assert (rows[:, 2] - rows[:, 1] > 0.01).all()
    assert (rows[:, 6] - rows[:, 5] > 0.1).all()
    assert (rows[:, 6] < 8).all()
    paths = model().fit(sevens).simulate(3, n_paths=200)
    assert 0.02 < paths.std() < 0.2
    rows = forecast(sales)
    assert (rows[:, 5] == 0).all()
    assert (rows[:, 6] > 0.3).all()
    hundreds = 300 + 20 * np.random.default_rng(row).normal(size=60)
    assert (forecast(np.r_[hundreds, np.zeros(40)])[:, 6] > 1).all()


def test_what_was_expected_of_counts_is_not_negative():
    counts = np.maximum(np.round(np.linspace(8, -1, 60) + 0.1 * np.sin(np.arange(60))), 0)
    counts[-1] = 60
    with pytest.warns(UserWarning, match=r"value 60 in row 59, where 0 was"):
        one = model(season=1).fit(counts)
    assert (one._fits[0].ending.odd.expected < 0).all()  # as the models have it


def test_rows_are_counted_from_the_first_of_each_series():
    days = pd.date_range("2024-01-01", periods=90)
    table = pd.DataFrame({"a": quiet(90), "b": quiet(90, 1)}, days)
    table.loc[days[:30], "b"] = np.nan
    one = model(panel="shared").fit(table[:80])
    later = table[80:].copy()
    later.loc[days[88], "b"] = 0.0
    with pytest.warns(UserWarning, match=r"'b' of y has the value 0 in row 88 \(2024-03-29\)"):
        one.update(later)
    assert "counts as missing: 0 in row 88 (2024-03-29) of series 'b'" in one.summary()
    assert "counts as missing" not in model().fit(quiet()).summary()
