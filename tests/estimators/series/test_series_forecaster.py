"""ESNForecaster of series with trends and seasons: containers, dates, gaps, panels, errors."""

import copy
import logging
import pickle
import re
import sys
from html import escape

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from helpers.series import assert_first_steps_stay, quick
from reservoir import ESNForecaster, load, save
from reservoir.datasets import lorenz

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
T = np.arange(46)
MONTHS = pd.date_range("2015-01-01", periods=46, freq="MS", name="month")
PRICE = pd.DataFrame({"price": RNG.normal(size=46)}, index=MONTHS)
SALES = pd.Series(
    100 + 0.5 * T + 10 * np.sin(2 * np.pi * T / 12) + RNG.normal(size=46), MONTHS, name="sales"
)
DRIVEN = (SALES + 8 * PRICE.price).rename("sales")
PAST, LATER = SALES[:40], SALES[40:]
FRAME = pd.DataFrame({"a": SALES, "b": -SALES.to_numpy()[::-1]})
TALL = pd.concat({"north": PAST, "south": SALES[:30]}, names=["shop"])
LONG = TALL.reset_index(level=0)


@pytest.fixture(scope="module")
def _fitted():
    return quick(season=12).fit(PAST)


@pytest.fixture
def fitted(_fitted):
    return copy.deepcopy(_fitted)


@pytest.fixture(scope="module")
def driven():
    return quick().fit(DRIVEN[:40], PRICE[:40])


@pytest.fixture(scope="module")
def _panel():
    return quick(panel="each").fit(FRAME[:40])


@pytest.fixture
def panel(_panel):
    return copy.deepcopy(_panel)


# --- containers ----------------------------------------------------------------------------------


def test_a_series_comes_back_with_its_dates_continued(fitted):
    forecast = fitted.forecast(6)
    assert fitted.kind_ == "series"
    assert forecast.name == "sales"
    pd.testing.assert_index_equal(forecast.index, LATER.index)
    assert np.abs(forecast - LATER).mean() < 2.5  # noise of 1, season of 10


def test_containers_hold_the_same_forecast(fitted):
    expected = fitted.forecast(4).to_numpy()
    periods = quick().fit(PAST.to_period("M")).forecast(4)
    assert periods.index[0] == pd.Period("2018-05", "M")
    table = quick().fit(PAST.to_frame()).forecast(4)
    assert list(table.columns) == ["sales"]
    given = PAST.tolist(), PAST.reset_index(drop=True)
    plain = (quick(season=12).fit(y).forecast(4) for y in given)
    for found in (periods, table["sales"], *plain):
        np.testing.assert_array_equal(found, expected)
    assert quick().fit(PAST.astype(np.float32)).forecast(4).dtype == np.float32


def test_columns_are_forecast_together_and_keep_their_names():
    model = quick().fit(FRAME[:40])
    forecast = model.forecast(3, coverage=[0.5, 0.9])
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["a", "b"]
    labels = ["forecast", "lower 50%", "upper 50%", "lower 90%", "upper 90%"]
    assert list(forecast.columns) == [(name, label) for name in "ab" for label in labels]
    pd.testing.assert_index_equal(forecast.index, LATER.index[:3])
    np.testing.assert_array_equal(forecast["a"]["forecast"], model.forecast(3)["a"])
    assert model.simulate(3, 2).columns.nlevels == 2


# --- seasons and scales --------------------------------------------------------------------------


def test_seasons_are_those_of_the_frequency_or_those_given():
    assert quick().fit(PAST).seasons_ == (12,)
    assert quick().fit(PAST[:18]).seasons_ == (12,)
    assert quick().fit(PAST[:17]).seasons_ == ()
    assert quick(season=1).fit(PAST).seasons_ == ()
    assert quick(season=[12, 4.5]).fit(PAST.to_numpy()).seasons_ == (4.5, 12)
    assert quick(season=[1, 12]).fit(PAST).seasons_ == (12,)
    assert quick().fit(PAST.to_numpy()).seasons_ == ()
    hours = pd.Series(np.tile(PAST, 2), pd.date_range("2024", periods=80, freq="h"))
    assert quick(horizon=8).fit(hours).seasons_ == (24,)


def test_logarithms_are_for_positive_series_alone(fitted):
    assert set(fitted.search_results_["scale"]) == {"log", "plain"}
    assert set(quick().fit(PAST - 100).search_results_["scale"]) == {"plain"}


@pytest.mark.slow
def test_growth_is_followed_and_units_do_not_matter():
    rows = np.exp(0.05 * T[:40]) * (1 + 0.1 * np.sin(np.pi * T[:40] / 6))
    truth = np.exp(0.05 * (40 + np.arange(6)))
    forecast = quick(season=12).fit(rows).forecast(6)
    assert np.abs(forecast / truth - 1).max() < 0.2
    for factor in (1e-299, 1e299):
        scaled = quick(season=12).fit(factor * rows).forecast(6) / factor
        np.testing.assert_allclose(scaled, forecast, rtol=1e-3)


# --- what is known beforehand --------------------------------------------------------------------


def test_known_inputs_are_used(driven):
    forecast = driven.forecast(6, PRICE[40:])
    without = quick().fit(DRIVEN[:40]).forecast(6)
    truth = DRIVEN[40:]
    assert np.abs(forecast - truth).mean() < 0.5 * np.abs(without - truth).mean()
    np.testing.assert_array_equal(driven.forecast(6, PRICE[40:].to_numpy()), forecast)
    np.testing.assert_array_equal(driven.forecast(6, PRICE.price[40:]), forecast)


@pytest.mark.parametrize(
    ("given", "exog", "message"),
    [
        (6, None, "exog is missing, but fit had 1 column of exog. Give exog with 6 rows"),
        (6, PRICE[39:45], "exog does not match the rows after y: row 0 is 2018-04-01, but 2018-05-"
         "01 is due.* from 2018-05-01 to 2018-10-01 are needed; exog has none for 2018-10"),
        (6, PRICE[39:], r"from 2018-05-01 to 2018-10-01 are needed, each once\. Select them by l"),
        (6, PRICE[40:44], "exog has 4 rows, but 6 are needed: the rows after y"),
        (6, PRICE[40:].set_axis(["cost"], axis=1), "Column 0 of exog is 'cost'.*was 'price'"),
        (6, PRICE[40:].assign(more=1.0), "exog has 2 columns, but in fit it had 1"),
        (PAST, PRICE[:39], "exog has 39 rows, but 40 are needed: the rows of y"),
        (PAST, PRICE[1:41], "exog does not match y: row 0 is 2015-02-01, but 2015-01-01 is due"),
        # no stamp in common
        (PAST, PRICE[:40].set_axis(PAST.index + pd.offsets.MonthEnd(0)),
         "from 2015-01-01 to 2018-04-01 are needed; exog has none for 2015-01-01"),
    ],
)  # fmt: skip
def test_other_known_inputs_raise(given, exog, message, driven):
    for call in (quick().fit,) if given is PAST else (driven.forecast, driven.simulate):
        with pytest.raises((ValueError, TypeError), match=message):
            call(given, exog=exog)


def test_missing_inputs_raise_or_are_held_or_interpolated():
    holes = PRICE.copy()
    holes.iloc[[7, 8, 42]] = np.nan
    with pytest.raises(ValueError, match=r"Row 7 of exog has no value in column 0.*interpolate"):
        quick().fit(PAST, holes[:40])
    for how, filled in (("hold", holes.ffill()), ("interpolate", holes.interpolate())):
        found = quick(missing_values=how).fit(PAST, holes[:40]).forecast(6, holes[40:])
        np.testing.assert_array_equal(
            found, quick().fit(PAST, filled[:40]).forecast(6, filled[40:])
        )
    with pytest.raises(ValueError, match="Column 0 of exog begins with missing values"):
        quick(missing_values="hold").fit(PAST, PRICE[:40].where(T[:40, None] > 2))


# --- intervals and paths -------------------------------------------------------------------------


def test_intervals_lie_within_each_other_around_the_forecast(fitted):
    table = fitted.forecast(6, coverage=[0.8, 0.955])
    names = ["forecast", "lower 80%", "upper 80%", "lower 95.5%", "upper 95.5%"]
    assert list(table.columns) == names
    pd.testing.assert_index_equal(table.index, LATER.index)
    np.testing.assert_array_equal(table.forecast, fitted.forecast(6))
    order = ["lower 95.5%", "lower 80%", "forecast", "upper 80%", "upper 95.5%"]
    assert (np.diff(table[order], axis=1) > 0).all()
    one = fitted.forecast(6, coverage=0.8)
    pd.testing.assert_frame_equal(one, table[names[:3]])
    flat = quick(season=12).fit(PAST.to_numpy())
    np.testing.assert_array_equal(flat.forecast(6, coverage=[0.8, 0.955]), table)
    both = quick(season=12).fit(FRAME[:40].to_numpy()).forecast(6, coverage=(0.8,))
    assert both.shape == (6, 2, 3)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, np.nan, "a", True, [], [0.8, 0.8], [0.8, 2]])
def test_bad_coverages_raise(fitted, coverage):
    with pytest.raises(
        ValueError, match=r"coverage=.*(probability between 0 and 1|none of them twice)"
    ):
        fitted.forecast(2, coverage=coverage)


def test_paths_spread_as_the_intervals_and_follow_a_seed(fitted):
    paths = fitted.simulate(6, 400)
    assert paths.shape == (6, 400)
    for params in ({}, {"random_state": 0}):
        pd.testing.assert_frame_equal(fitted.simulate(6, 400, **params), paths)
    assert not fitted.simulate(6, 400, random_state=1).equals(paths)
    table = fitted.forecast(6, coverage=0.8)
    inside = paths.ge(table["lower 80%"], axis=0) & paths.le(table["upper 80%"], axis=0)
    assert 0.7 < inside.to_numpy().mean() < 0.9
    assert quick(season=12).fit(PAST.to_numpy()).simulate(6, 3).shape == (3, 6)


def test_bad_forecasts_raise(fitted):
    for call, message in (
        (lambda: fitted.forecast(0), "n_steps=0 must be at least 1"),
        (lambda: fitted.forecast(2.5), "n_steps must be an integer"),
        (lambda: fitted.simulate(0), "n_steps=0 must be at least 1"),
        (lambda: fitted.simulate(2, 0), "n_paths=0 must be at least 1"),
        (lambda: fitted.forecast(2, context=PAST), 'context can be used only if kind_ is "dyn'),
        (lambda: fitted.forecast(3, PRICE[40:43]), "exog was given, but .* fitted without exog"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_unfitted_forecasters_raise():
    for call in (lambda m: m.forecast(3), lambda m: m.update(PAST), lambda m: m.summary()):
        with pytest.raises(NotFittedError, match="not fitted"):
            call(quick())


# --- horizons ------------------------------------------------------------------------------------


def any_forecaster(seed):
    """A series of any kind, with settings of any kind; what is known of 30 further rows."""
    rng = np.random.default_rng(seed)
    n_rows, panel = int(rng.integers(20, 60)), rng.choice([None, "each", "shared"])
    n_columns = int(rng.integers(1, 3)) if panel is None else 2
    rows = np.arange(n_rows)[:, None]
    y = rng.normal(size=(n_rows, n_columns)).cumsum(axis=0) + 4 * np.sin(rows * np.pi / 6)
    y[rng.integers(n_rows)] += rng.choice([0, 30])  # an outlier
    y = rng.choice([0, 60, 1e6]) + rng.choice([1e-3, 1.0]) * y
    y[1:-1][rng.random((n_rows - 2, n_columns)) < rng.choice([0, 0.05, 0.2])] = np.nan
    y[n_rows - rng.integers(3) :, 0] = np.nan  # a column ends early
    known = rng.normal(size=(n_rows + 30, 2)) if panel is None and rng.random() < 0.5 else None
    frequency = rng.choice([None, pd.offsets.MonthEnd(), "D", "h", "B"])
    if frequency is not None:
        y = pd.DataFrame(y, pd.date_range("2020-01-31", periods=n_rows, freq=frequency))
    if n_columns == 1:
        y = y.iloc[:, 0] if frequency is not None else y[:, 0]
    season, clip = rng.choice([None, 1, 4, 12]), rng.choice([0.05, 1.0])
    model = quick(season=season, clip=clip, panel=panel, random_state=seed)
    return model.fit(y, None if known is None else known[:n_rows]), known


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The forecast.* was clipped at its bounds")
@pytest.mark.filterwarnings("ignore:.* was expected.* counts as missing")
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(8, 80))]
)
def test_more_steps_change_none_of_the_first(seed):
    model, known = any_forecaster(seed)

    def ahead(n_steps):
        """Return forecasts with intervals, and paths; steps come first."""
        exog = None if known is None else known[-30:][:n_steps]
        paths = model.simulate(n_steps, 4, random_state=1, exog=exog)
        paths = np.asarray(paths) if hasattr(paths, "columns") else np.swapaxes(paths, 0, 1)
        bands = model.forecast(n_steps, exog, coverage=[0.5, 0.9])
        point, bands = (
            np.asarray(rows).reshape(n_steps, -1) for rows in (model.forecast(n_steps, exog), bands)
        )
        np.testing.assert_array_equal(bands.reshape(*point.shape, 5)[..., 0], point)
        return np.hstack([bands, paths.reshape(n_steps, -1)])

    values = np.concatenate([fit.data.values for fit in model._fits])
    leeway = 1e-12 * np.ptp(values, axis=0).min() + 1e-15 * np.abs(values).max()
    assert_first_steps_stay(ahead, (1, 11), 30, leeway)


# --- bounds --------------------------------------------------------------------------------------


def test_forecasts_that_reach_their_bounds_warn():
    rows = pd.Series(1.0 * T[:40], PAST.index)
    with pytest.warns(RuntimeWarning, match=r"clipped.*step (39|40|41) of 60") as said:
        forecast = quick(season=1).fit(rows).forecast(60)
    assert [each.filename for each in said] == [__file__]
    assert forecast.max() <= 39 * 2 * (1 + 1e-9)
    assert forecast.iloc[:30].to_numpy() == pytest.approx(40 + np.arange(30), abs=0.5)
    table = pd.DataFrame({"a": SALES, "up": T, "down": -T})
    with pytest.warns(
        RuntimeWarning, match=r"series 'up' \(and 1 more\) was clipped.*first in step 0"
    ):
        quick(panel="each", clip=0).fit(table).forecast(3)


def test_touching_a_bound_is_not_being_held_there():
    counts = np.tile([0, 2, 5, 0], 10)
    forecast = quick(season=4, clip=0).fit(counts).forecast(8)
    np.testing.assert_allclose(forecast, np.tile([0, 2, 5, 0], 2), atol=0.05)


@pytest.mark.filterwarnings("ignore:The forecast was clipped")
@pytest.mark.filterwarnings("ignore:.*These bounds are widened")
def test_intervals_without_a_season_reach_farther_than_forecasts(tmp_path):
    walk = 20 + np.cumsum(np.random.default_rng(1).normal(size=40))
    walk -= walk.min()  # never negative
    most, far = walk.max(), {"n_steps": 300, "coverage": 0.999}

    def ends(model):
        forecast, low, high = model.forecast(**far).T
        assert forecast.min() >= 0
        assert forecast.max() <= 2 * most * (1 + 1e-12)
        paths = model.simulate(300, 200, random_state=0)
        assert low.min() <= paths.min()
        assert paths.max() <= high.max()
        return low.min(), high.max(), paths.max()

    model = quick().fit(walk)
    np.testing.assert_allclose(ends(model)[:2], [0, 3 * most])
    assert ends(model)[2] > 2 * most
    # a number bounds both, and so do seasons
    np.testing.assert_allclose(ends(quick(clip=1.0).fit(walk)), [0, 2 * most, 2 * most])
    np.testing.assert_allclose(ends(quick(season=4).fit(walk))[:2], [0, 2 * most])
    save(model, tmp_path / "walk.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "walk.npz").forecast(**far), model.forecast(**far)
    )
    later = 2.5 * most
    model = quick(outliers="keep").fit(walk).update(np.array([later]))
    assert model.forecast(**far)[:, 2].max() == 3 * later


# --- later rows ----------------------------------------------------------------------------------


def test_update_continues_from_later_rows(fitted):
    before = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    assert fitted.update(LATER[:4]) is fitted
    forecast = fitted.forecast(2)
    pd.testing.assert_index_equal(forecast.index, LATER.index[4:])
    after = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    np.testing.assert_equal(after, before)  # nothing is learned
    assert np.abs(forecast - LATER[4:]).mean() < 2.5


def test_update_in_parts_is_update_at_once(fitted, driven):
    parts, plain = copy.deepcopy(fitted), copy.deepcopy(fitted)
    expected = fitted.update(LATER).forecast(5)
    for k in range(6):
        parts.update(LATER[k : k + 1])
    pd.testing.assert_series_equal(parts.forecast(5), expected)
    pd.testing.assert_series_equal(plain.update(LATER.to_numpy()).forecast(5), expected)
    with pytest.raises(ValueError, match="2018-11-01 is due"):
        plain.update(LATER)
    pd.testing.assert_series_equal(plain.forecast(5), expected)
    model = copy.deepcopy(driven).update(DRIVEN[40:43], PRICE[40:43])
    assert np.abs(model.forecast(3, PRICE[43:]) - DRIVEN[43:]).mean() < 4


def test_what_is_missing_in_an_update_is_what_was_forecast(fitted):
    whole, empty = copy.deepcopy(fitted), copy.deepcopy(fitted)
    expected = fitted.forecast(6)
    given = copy.deepcopy(fitted).update(expected[:3])
    empty.update(LATER[:3] * np.nan)
    pd.testing.assert_series_equal(empty.forecast(3), given.forecast(3))
    hole = LATER.where(np.arange(6) != 2)
    said = whole.update(LATER[:2]).forecast(1).iloc[0]
    fitted.update(hole)
    whole.update(LATER.where(np.arange(6) != 2, said)[2:])
    pd.testing.assert_series_equal(fitted.forecast(4), whole.forecast(4))


def test_bad_updates_raise_and_change_nothing(fitted, driven, panel):
    expected = fitted.forecast(4)
    for model, given, message in (
        (fitted, [SALES[41:]], "y begins at 2018-06-01.*2018-05-01 is due. Give the rows in"),
        (fitted, [-LATER], r"value -\d.* in row 0, but in fit all values were positive.*Fit again"),
        (fitted, [FRAME[40:]], "y contains 2 series|y has 2 columns"),
        (fitted, [LATER[:0]], "y has no rows"),
        (fitted, [LATER, PRICE[40:]], "exog was given"),
        (driven, [DRIVEN[40:]], "exog is missing"),
        (panel, [FRAME[40:] * 0 - 1], "series 'a' of y has the value -1 in row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.update(*given)
    pd.testing.assert_series_equal(fitted.forecast(4), expected)


# --- panels --------------------------------------------------------------------------------------


def test_columns_are_series_of_their_own(panel):
    forecast = panel.forecast(3)
    assert panel.n_features_in_ == 2
    assert list(panel.feature_names_in_) == ["a", "b"]
    for name in "ab":
        alone = quick().fit(FRAME[name][:40])
        pd.testing.assert_series_equal(forecast[name], alone.forecast(3))
        table = pd.DataFrame(panel.search_results_).query("series == @name")
        np.testing.assert_array_equal(table.error, alone.search_results_["error"])
    pd.testing.assert_index_equal(forecast.index, LATER.index[:3])
    table = panel.forecast(3, coverage=0.9)
    assert list(table["b"].columns) == ["forecast", "lower 90%", "upper 90%"]
    updated = panel.update(FRAME[40:42]).forecast(2)
    pd.testing.assert_index_equal(updated.index, LATER.index[2:4])


def test_lists_levels_and_ids_are_one_panel(fitted):
    first, second = quick(panel="each").fit([PAST, SALES[:30].to_numpy()]).forecast(3)
    pd.testing.assert_series_equal(first, fitted.forecast(3))
    assert isinstance(second, np.ndarray)
    tall = quick(panel="each").fit(TALL).forecast(3)
    assert tall.index.names == ["shop", "month"]
    pd.testing.assert_series_equal(tall.loc["north"], first, check_freq=False)
    assert tall.loc["south"].index[0] == MONTHS[30]
    model = quick(panel="each", sequence_column="shop").fit(LONG)
    long = model.forecast(3)
    assert list(long.columns) == ["shop", "sales"]
    np.testing.assert_array_equal(long.sales, tall)
    # of the south there is nothing new
    later = model.update(LONG[:6].set_axis(LATER.index).assign(sales=LATER)).forecast(2)
    assert later.index[[0, 2]].tolist() == [MONTHS[45] + pd.offsets.MonthBegin(), MONTHS[30]]


def same_state(one, other):
    """Assert that two forecasters of a panel cannot be told apart."""
    assert one.seasons_ == other.seasons_
    assert one.best_params_ == other.best_params_
    assert one.best_score_ == pytest.approx(other.best_score_, rel=1e-12)
    for key, column in one.search_results_.items():
        np.testing.assert_array_equal(column, other.search_results_[key])
    for call in (
        lambda model: model.forecast(3, coverage=0.8),
        lambda model: model.simulate(2, 3, random_state=1),
    ):
        for each, again in zip(*map(np.atleast_1d, map(call, (one, other))), strict=True):
            np.testing.assert_array_equal(each, again)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("container", ["columns", "ids", "levels", "list", "array"])
def test_models_fitted_apart_are_joined_and_taken_apart(container, tmp_path):
    last = SALES[4:30].where(np.arange(26) != 4)
    y = pd.concat({7.0: SALES, 1.0: SALES[:15], 3.0: last}, names=["shop"]).rename("v")
    make = {
        "columns": lambda ids: FRAME[ids],
        "ids": lambda ids: y[ids].reset_index(level=0),
        "levels": lambda ids: y[ids],
        "list": lambda ids: [y[each] for each in ids],
        "array": lambda ids: y[ids].reset_index()[["shop", "v"]].to_numpy(),
    }[container]
    names = [["a"], ["b"]] if container == "columns" else [[7.0, 1.0], [3.0]]
    column = {"ids": "shop", "array": 0}.get(container)
    model = quick(panel="each", sequence_column=column)
    every = clone(model).fit(make([*names[0], *names[1]]))
    parts = [clone(model).fit(make(ids)) for ids in names]
    joined = ESNForecaster.concat(parts)
    save(joined, tmp_path / "joined.npz")
    for each in (joined, load(tmp_path / "joined.npz")):
        same_state(each, every)
    ids = list(every._panel.ids)
    same_state(every.select(ids), every)
    same_state(every.select(list(parts[0]._panel.ids)), parts[0])
    same_state(every.select(ids[::-1]).select(ids), every)
    assert joined.n_features_in_ == every.n_features_in_
    with pytest.raises(ValueError, match="named twice; the panel has"):
        every.select([ids[0], ids[0]])
    if container != "list":
        with pytest.raises(ValueError, match=f"series {ids[0]!r} is in two models"):
            ESNForecaster.concat([every, every.select(ids[:1])])


def test_models_that_differ_are_not_joined():
    one, other, shared = (
        quick(panel=panel).fit(y)
        for panel, y in (("each", [PAST]), ("each", [FRAME[:40]]), (None, PAST))
    )
    for call, given, message in (
        (ESNForecaster.concat, [], "models is empty"),
        (ESNForecaster.concat, [one, shared], r"panel=None, but only models of separate series"),
        (
            ESNForecaster.concat,
            [one, quick(panel="each", clip=2.0).fit([PAST])],
            "'auto' and clip=",
        ),
        (ESNForecaster.concat, [one, other], "fitted to different tables: one has 1, another 2"),
        (ESNForecaster.concat, [one, quick(panel="each").fit(TALL)], "'a list', another 'a Multi"),
        (ESNForecaster.concat, [one, PAST], "a Series, not an ESNForecaster"),
        (one.select, "0", "must be a list of ids"),
        (one.select, [], "ids is empty"),
        (one.select, [3], "3 is not in the panel; the panel has 0"),
        (shared.select, [0], "panel=None: there is one system"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call(given)


def test_panels_have_known_inputs(driven):
    both = pd.DataFrame({"a": DRIVEN, "b": -DRIVEN})
    shared = quick(panel="each").fit(both[:40], PRICE[:40]).forecast(6, PRICE[40:])
    np.testing.assert_array_equal(shared["a"], driven.forecast(6, PRICE[40:]))
    prices = pd.concat({"north": PRICE[:40], "south": PRICE[:30]})
    model = quick(panel="each").fit(TALL, prices)
    ahead = pd.concat({"south": PRICE[30:33], "north": PRICE[40:43]})
    assert model.forecast(3, ahead).shape == (6,)


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"panel": "each", "search": "dynamics"}, FRAME, "search='dynamics' fits networks to one"),
        ({"panel": "each", "search": [{"n_units": 9}]}, FRAME, r"panel='each' means that y"),
        ({}, [PAST, PAST], 'several tables.*forecast one series.*panel="each"'),
        ({"search": "auto"}, [PAST[:20]] * 2, 'has 20 rows.*panel="each" if y contains several'),
        ({"sequence_column": 0, "search": "dynamics"}, LONG, "sequence_column=0 means that y"),
        ({"panel": "all"}, FRAME, "panel='all'"),
        ({"panel": "each"}, FRAME.iloc[:3], "series 'a' of y has 3 rows without"),
        ({"season": 0.5}, PAST, "season=0.5 must be"),
        ({"season": [[12]]}, PAST, "season=.* must be a number of rows per period"),
        ({"season": "MS"}, PAST, "season must be a"),
        ({"outliers": "drop"}, PAST, "outliers"),
        ({"missing_values": "drop"}, PAST, "missing_values='drop'"),
    ],
)
def test_what_does_not_go_together_raises(params, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        quick(**params).fit(y)


# --- data as they come ---------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "gap", [slice(0, 4), slice(20, 24), slice(36, 40), [3, 4, 19, 27, 38]], ids=str
)
def test_missing_values_are_nowhere_in_the_forecast(gap):
    rows = PAST.copy()
    rows.iloc[gap] = np.nan
    forecast = quick(search="auto").fit(rows).forecast(6, coverage=0.9)
    pd.testing.assert_index_equal(forecast.index, LATER.index)
    assert np.abs(forecast.forecast - LATER).mean() < 3
    assert forecast.notna().all(axis=None)


def test_missing_values_of_one_column_are_nowhere_in_the_forecast():
    table = FRAME[:40].copy()
    table.iloc[10:14, 0] = np.nan
    assert quick().fit(table).forecast(3).notna().all(axis=None)
    table.iloc[20:, 1] = np.nan
    with pytest.raises(ValueError, match=r"Column 1 of y has no value in rows 22 to 39.*each"):
        quick().fit(table)
    table.iloc[::2, 0] = np.nan
    table.iloc[1::2, 1] = np.nan
    with pytest.raises(ValueError, match=r'y has 0 rows without missing values.*panel="each"'):
        quick().fit(table)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("how", ["each", "shared"])
def test_series_of_a_panel_may_end_in_missing_values(how):
    table = FRAME[:24].copy()
    table.iloc[20:, 1] = np.nan
    forecast = quick(panel=how).fit(table).forecast(3)
    pd.testing.assert_index_equal(forecast.index, MONTHS[24:27])
    assert forecast.notna().all(axis=None)
    short = quick(panel=how).fit([table["a"], table["b"][:20]]).forecast(7)[1]
    np.testing.assert_allclose(forecast["b"], short[4:], atol=6)


@pytest.mark.parametrize("value", [0, 7.5])
def test_constants_are_forecast_with_a_warning(value):
    with pytest.warns(UserWarning, match=f"All values of y are equal .{value}, n_samples=20") as w:
        model = quick(search="auto").fit(np.full(20, value))
    assert [each.filename for each in w] == [__file__]
    np.testing.assert_allclose(model.forecast(3, coverage=0.9), value, rtol=1e-14)
    np.testing.assert_allclose(model.simulate(3, 2), value, rtol=1e-14)


def test_counts_are_never_negative():
    for seed in range(2):
        counts = np.random.default_rng(seed).poisson(0.4, 40)
        model = quick(search="auto").fit(counts)
        assert model.forecast(8, coverage=[0.5, 0.99]).min() >= 0
        assert model.simulate(8, 50).min() >= 0


BAD = [
    (PAST[:4], "y has 4 rows without missing values.*at least 5 are needed"),
    (PAST.where(T[:40] % 10 == 0), "y has 4 rows without missing values"),
    (PAST * np.nan, "y has 0 rows without missing values"),
    (np.append(PAST, -1e307), "y has a value of magnitude 1e"),
    (PAST.drop(MONTHS[7]), r"The index of y has a gap.*1 row is missing.*asfreq"),
]


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize(("y", "message"), BAD)
@pytest.mark.parametrize("search", ["auto", "series"])
def test_bad_series_raise_and_change_nothing(y, message, search, fitted):
    expected, found = fitted.forecast(3), repr(fitted.search_results_)
    fitted.set_params(search=search)
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.fit(y)
    pd.testing.assert_series_equal(fitted.forecast(3), expected)
    assert repr(fitted.search_results_) == found


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("n_rows", [5, 6, 7, 8, 9, 11, 13, 16])
def test_few_rows_are_enough(n_rows):
    for y in (PAST[:n_rows], FRAME[:n_rows]):
        forecast = quick(search="auto").fit(y).forecast(2)
        assert forecast.notna().to_numpy().all()
        assert np.abs(forecast.to_numpy() - np.asarray(y)[-1]).max() < 40


# --- copies, files, workers ----------------------------------------------------------------------


def test_a_second_fit_is_a_first_one(panel):
    panel.set_params(panel=None)
    panel.fit(PAST)
    fresh = quick().fit(PAST)
    pd.testing.assert_series_equal(panel.forecast(4), fresh.forecast(4))
    assert {name for name in vars(panel) if name.endswith("_")} == {
        name for name in vars(fresh) if name.endswith("_")
    }
    assert list(panel.feature_names_in_) == ["sales"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_forecast(fitted):
    pd.testing.assert_series_equal(quick().fit(PAST).forecast(4), fitted.forecast(4))
    assert not quick(random_state=1).fit(PAST).forecast(4).equals(fitted.forecast(4))


def test_workers_change_no_bit_at_any_length():
    whole = np.cumsum(np.random.default_rng(0).normal(size=60))
    series = [whole[:n_rows].copy() for n_rows in (17, 24, 60)]
    for each in series:
        each[[5, -3]] = np.nan
    with pytest.importorskip("joblib").parallel_backend("threading"):
        made = quick(panel="each", n_jobs=2).fit(series)
    alone = quick(panel="each", n_jobs=1)
    for i, found in enumerate(made.forecast(4, coverage=0.9)):
        np.testing.assert_array_equal(
            found, alone.fit(series[i : i + 1]).forecast(4, coverage=0.9)[0]
        )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("which", ["series", "panel", "exog", "joint", "periods"])
def test_files_and_pickles_hold_every_bit(which, fitted, panel, driven, tmp_path):
    rows, more = PAST[:15], {"exog": PRICE[40:43]} if which == "exog" else {}
    model = {
        "series": lambda: fitted,
        "panel": lambda: panel,
        "exog": lambda: driven,
        "joint": lambda: quick(season=[12, 4.5]).fit(FRAME[:40].to_numpy()),
        "periods": lambda: quick(panel="each").fit(
            [rows.to_period("M"), rows.tz_localize("Asia/Tokyo")]
        ),
    }[which]()
    save(model, tmp_path / "model.npz")
    for back in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert type(back) is ESNForecaster
        for one in (
            lambda made: made.summary(),
            lambda made: made.forecast(3, coverage=0.9, **more),
            lambda made: made.simulate(3, 2, **more),
            lambda made: which != "series" or copy.deepcopy(made).update(LATER).forecast(3),
        ):
            assert repr(one(back)) == repr(one(model))


# those that ask for no X: a forecaster takes a series alone
CHECKS = [
    "check_estimator_cloneable", "check_estimator_repr", "check_no_attributes_set_in_init",
    "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
    "check_mixin_order", "check_estimator_tags_renamed", "check_valid_tag_types",
]  # fmt: skip


@pytest.mark.parametrize("check", [name for name in CHECKS if hasattr(estimator_checks, name)])
def test_scikit_learn_checks(check):
    getattr(estimator_checks, check)("ESNForecaster", quick())


# --- what is said --------------------------------------------------------------------------------


def test_the_summary_names_seasons_for_which_the_series_is_too_short():
    hours = pd.Series(np.tile(PAST, 2), pd.date_range("2024", periods=80, freq="h"))
    model = quick(horizon=8).fit(hours[:70])
    expected = "not used: season of 168 rows, which needs at least 252 rows"
    assert expected in model.summary()
    assert expected in model.update(hours[70:]).summary()
    text = quick(season=12).fit(PAST[:16]).summary()
    assert "used in calendar terms only: season of 12 rows, which needs at least 18 rows" in text


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("n_days", (13, 14, 15, 16))
def test_two_weeks_of_hours_are_continued_by_a_third(n_days):
    """Days of work and free days differ, at whichever weekday the series begins."""
    ratios = []
    for first in range(7):
        rng = np.random.default_rng(first)
        hours = np.arange((n_days + 7) * 24)
        free = (hours // 24 + first) % 7 > 4
        day = 10 + np.where(free, 1, 5) * (1 + np.sin(2 * np.pi * (hours - 6) / 24))
        rows = pd.Series(
            day + rng.normal(scale=0.5, size=len(hours)),
            pd.date_range("2024-01-01", periods=len(hours), freq="h"),
        )
        past, later = rows[: n_days * 24], rows[n_days * 24 :].to_numpy()
        model = quick().fit(past)
        assert model.seasons_ == (24, 168)
        naive = np.abs(past.to_numpy()[-168:] - later).mean()
        ratios.append(np.abs(model.forecast(168).to_numpy() - later).mean() / naive)
    assert max(ratios) < 1.3
    assert np.mean(ratios) < 1


def test_the_summary_names_what_was_chosen(fitted, panel, driven):
    text = fitted.summary()
    assert 'kind_ = "series"' in text
    assert "rows per season: 12" in text
    assert fitted.best_params_["model"] in text
    shares = fitted.search_results_["share"]
    assert shares.sum() == pytest.approx(1)
    assert f"{100 * shares[0]:.0f}%" in text
    error = float(re.search(r"average: ([\d.]+)", text)[1])
    assert fitted.best_score_ == pytest.approx(-error, abs=6e-4)
    assert "series 'a'" in panel.summary()
    assert "2 series, rows: 40, 40" in panel.summary()
    assert "none" in quick(season=1).fit(PAST[:12]).summary()
    assert "not used" not in text
    assert "season of" not in quick(season=1).fit(PAST[:12]).summary()
    dynamics = ESNForecaster(search=[{"n_units": 15}], n_networks=1, random_state=0)
    text = dynamics.fit(np.sin(0.3 * np.arange(80))).summary()
    assert 'kind_ = "dynamics"' in text
    assert "n_units=15" in text


def test_the_html_holds_the_summary_escaped():
    model = quick(panel="each").fit(pd.DataFrame({"<b>": PAST, "c": -PAST}))
    html = model._repr_html_()
    assert escape(model.summary()) in html
    assert "series '<b>'" not in html
    assert "kind_" not in quick()._repr_html_()


def test_progress_counts_series(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with caplog.at_level(logging.INFO, logger="reservoir"):
        quick(panel="each").fit(FRAME[:12])
        assert not caplog.messages
        quick(panel="each", verbose=1).fit(FRAME[:12])
    assert any("models: series 2 of 2" in text for text in caplog.messages)


def test_ids_of_several_levels_are_named_in_the_results():
    rng = np.random.default_rng(0)
    months = pd.date_range("2020-01", periods=30, freq="MS")
    ids = [("x", 1), ("x", 2), ("y", 1)]
    index = pd.MultiIndex.from_tuples([(*each, month) for each in ids for month in months])
    y = pd.Series(rng.normal(size=90).cumsum() + 50, index=index, name="sales")
    model = ESNForecaster(panel="each", n_networks=1, random_state=0).fit(y)
    table = pd.DataFrame(model.search_results_)
    assert table["series"].unique().tolist() == ["x, 1", "x, 2", "y, 1"]
    assert "series 'x, 2'" in model.summary()
    assert model.forecast(2).index.droplevel(-1).unique().tolist() == ids


# ---------------------------------------------------------------------------- seasons without dates


def repeating(n_periods):
    noise = np.random.default_rng(0).normal(size=12 * n_periods)
    return np.tile(8 * np.eye(12)[-1], n_periods) + noise


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", ["array", "series", "numbers", "list"])
def test_a_season_that_no_dates_state_is_named(kind):
    y = {
        "array": repeating(10),
        "series": pd.Series(repeating(10)),
        "numbers": pd.Series(repeating(10), np.arange(5, 125)),
        "list": [repeating(5), repeating(10)],
    }[kind]
    panel, which = ("each", "series 1 of y") if kind == "list" else (None, "y")
    told = f"{which} repeats every 12 rows.* [3-7][0-9] % of the error without it. Set season=12"
    with pytest.warns(UserWarning, match=told):
        quick(panel=panel, season=None).fit(y)
    for season in (12, 1):
        quick(panel=panel, season=season).fit(y)


def test_no_season_is_named_where_there_is_none():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 100))
    cycle = np.zeros((2, 100))  # a pseudo-cycle of 10 rows
    for t in range(2, 100):
        cycle[:, t] = 1.5 * cycle[:, t - 1] - 0.86 * cycle[:, t - 2] + noise[:2, t]
    flow = lorenz(300, dt=0.05, random_state=0)[:, 0]
    short, dated = repeating(3), pd.Series(repeating(10), pd.date_range("2020", periods=120))
    wave = np.sin(0.3 * np.arange(80))  # forecast well without a season
    for y in (*noise[:2], *noise[2:].cumsum(axis=1), *cycle, flow, short, dated, wave):
        quick(season=None).fit(y)
