"""SeasonalNaive: the last season repeated, in every container, with intervals."""

import numpy as np
import pytest
from sklearn.base import clone

from reservoir import ESNForecaster, SeasonalNaive, load, save
from reservoir.model_selection import backtest

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine
RNG = np.random.default_rng(0)
MONTHS = pd.date_range("2015-01", periods=48, freq="MS", name="month")
SALES = pd.Series(10 + np.sin(np.arange(48)) + 0.1 * RNG.normal(size=48), MONTHS, name="sales")


def test_the_last_season_is_repeated(tmp_path):
    model = SeasonalNaive().fit(SALES)
    assert model.seasons_ == (12,)
    save(model, tmp_path / "naive.npz")
    for each in (model, load(tmp_path / "naive.npz")):
        forecast = each.forecast(30)
        np.testing.assert_array_equal(forecast, np.resize(SALES[-12:], 30))
        assert forecast.index[0] == pd.Timestamp("2019-01-01")
        assert forecast.name == "sales"
    np.testing.assert_array_equal(SeasonalNaive(1).fit(SALES).forecast(3), [SALES.iloc[-1]] * 3)
    np.testing.assert_array_equal(SeasonalNaive(5).fit(SALES.to_numpy()).forecast(5), SALES[-5:])
    few = SeasonalNaive(season=[4, 40]).fit(SALES)  # 48 rows are less than 1.5 periods of 40
    np.testing.assert_array_equal(few.forecast(4), SALES[-4:])


def test_rows_are_appended_whatever_their_level():
    model = SeasonalNaive().fit(SALES[:36])
    model.update(5 + SALES[36:])
    np.testing.assert_array_equal(model.forecast(12), 5 + SALES[36:])
    with pytest.raises(ValueError, match=r"y begins at 2018-01-01.*2019-01-01 is due"):
        model.update(SALES[36:])


def test_intervals_contain_what_they_say(global_random_seed):
    rng, inside = np.random.default_rng(global_random_seed), []
    for _ in range(40):
        y = np.tile(rng.normal(size=4), 20) + 0.3 * rng.normal(size=80)
        bands = SeasonalNaive(4).fit(y[:72]).forecast(8, coverage=0.8)
        inside.append(((bands[:, 1] <= y[72:]) & (y[72:] <= bands[:, 2])).mean())
    assert 0.74 < np.mean(inside) < 0.9


def test_days_with_larger_errors_have_wider_intervals(tmp_path):
    days = pd.date_range("2024-01-03", periods=140, name="day")
    drawn = np.random.default_rng(0).normal(size=(2, 140)) * np.where(days.day_of_week == 6, 10, 1)
    other, y = (pd.Series(each, days) for each in drawn)
    panel = SeasonalNaive(panel="each").fit([other[9:126], y[:126]])
    model = SeasonalNaive().fit(y[:126])
    save(model, tmp_path / "naive.npz")
    for n_later in range(7):  # each is one day later
        bands = load(tmp_path / "naive.npz").forecast(7, coverage=0.8)
        np.testing.assert_array_equal(bands, model.forecast(7, coverage=0.8))
        np.testing.assert_array_equal(bands, panel.forecast(7, coverage=0.8)[1])
        width = bands.iloc[:, 2] - bands.iloc[:, 1]
        assert width.idxmax().day_of_week == 6
        later = y[126 + n_later : 127 + n_later]
        model.update(later)
        panel.update([other[126 + n_later : 127 + n_later], later])
        save(model, tmp_path / "naive.npz")


def test_series_of_a_panel_are_those_alone():
    y = pd.concat({"b": SALES, "a": SALES[:15], "c": SALES[3:40]}, names=["shop"])
    table = y.to_frame("sales").reset_index(level=0)
    model = SeasonalNaive(panel="each", sequence_column="shop").fit(table)
    assert model.seasons_ == {"b": (12,), "a": (), "c": (12,)}
    assert "1 to 12" in model._repr_html_()
    found = model.forecast(4, coverage=0.9)
    for each in "bac":
        alone = SeasonalNaive().fit(y[each]).forecast(4, coverage=0.9)
        np.testing.assert_array_equal(found[found["shop"] == each].iloc[:, 1:], alone)
    with pytest.raises(ValueError, match="panel='shared'"):
        SeasonalNaive(panel="shared").fit(table)
    by_ids = SeasonalNaive(sequence_column="shop").fit(table).forecast(4, coverage=0.9)
    pd.testing.assert_frame_equal(by_ids, found)


def test_gaps_are_filled_and_names_of_others_are_known():
    holed = SALES.where(np.arange(48) != 46)
    forecast = clone(SeasonalNaive()).fit(holed).forecast(12)
    np.testing.assert_array_equal(np.delete(forecast, 10), np.delete(SALES[-12:].to_numpy(), 10))
    assert np.isfinite(forecast.iloc[10])
    with pytest.raises(TypeError, match="season=12"):
        SeasonalNaive(season_length=12)
    with pytest.raises(ValueError, match="at least 5"):
        SeasonalNaive().fit(SALES[:3])


def test_it_is_a_rival_in_one_line():
    places = {"horizon": 6, "n_origins": 3, "metrics": "mase", "coverage": 0.8}
    naive = backtest(SeasonalNaive(), SALES, **places).scores["mase"]
    quick = ESNForecaster(search="series", n_networks=1, random_state=0)
    assert backtest(quick, SALES, **places).scores["mase"].mean() < naive.mean()
    updated = backtest(SeasonalNaive(), SALES, refit=False, **places).scores["mase"]
    np.testing.assert_array_equal(updated, naive)
