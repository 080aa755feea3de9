"""One model learned from several series, compared with one model for each."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import Ridge

from reservoir import ESNForecaster, load, save
from reservoir.estimators.reporting import not_reported
from reservoir.estimators.series.calendar import Calendar, rows_after_first
from reservoir.series_models.ensemble import learn
from reservoir.series_models.recursive_ridge import Autoregression, LoopNetwork
from reservoir.series_models.rolling import RollingForecasts
from reservoir.series_models.series_data import SeriesData
from reservoir.series_models.shared_models import learn_shared, shared_errors

pytestmark = pytest.mark.one_engine

ROWS, AHEAD = 40, 12


def monthly(n, seed, n_rows=ROWS):
    """Return logarithms of series with a season, a cycle of 22 months, and units of their own."""
    rng = np.random.default_rng(seed)
    rows = np.arange(n_rows)
    season = np.sin(2 * np.pi * rows / 12) + 0.5 * np.cos(2 * np.pi * rows / 6)
    found = []
    for _ in range(n):
        shocks, cycle = 0.3 * rng.normal(size=n_rows + 50), np.zeros(n_rows + 50)
        for k in range(2, len(cycle)):
            cycle[k] = 1.5 * cycle[k - 1] - 0.8 * cycle[k - 2] + shocks[k]
        trend = rng.normal(0, 0.003) * rows + rng.uniform(0, 7)
        found.append(trend + 0.15 * (season + cycle[50:]))
    return found


def data_of(values, seasons=(12.0,)):
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    every = np.ones(values.shape, bool)
    positive = (values > 0).all(axis=0)
    data = SeriesData(values, every, np.zeros((len(values), 0)), seasons, positive)
    return data.with_room(len(values) + 24)


def learn_all(series, n_steps=None):
    return learn_shared(
        series, n_networks=1, n_steps=n_steps, widths=1.0, seed=0, n_jobs=None, report=not_reported
    )


def errors_of(forecasts, series):
    """Return mean absolute errors, relative to those of the last season again within the rows."""
    away = [np.abs(f - y[ROWS:]).mean() for f, y in zip(forecasts, series, strict=True)]
    naive = [np.abs(y[12:ROWS] - y[: ROWS - 12]).mean() for y in series]
    return np.array(away) / naive


# --- one readout for all -----------------------------------------------------------------------


def test_the_shared_readout_is_the_ridge_on_the_rows_of_all_series():
    rng = np.random.default_rng(0)
    series = [5.0**i * rng.normal(size=(n, 1)).cumsum(axis=0) for i, n in enumerate((40, 25, 60))]
    histories = [data_of(y, ()).history(log=False) for y in series]
    fitted = Autoregression().fit_shared(histories, 0)
    features, targets = [], []
    for y in series:
        step = np.diff(y[:, 0])
        step = (step - step.mean()) / step.std()
        features += [step[k - 3 : k + 1][::-1] for k in range(3, len(step) - 1)]
        targets += [step[k + 1] for k in range(3, len(step) - 1)]
    ridge = Ridge(1.0).fit(features, targets)
    for one in fitted:
        ((_, coef, intercept),) = one.members
        np.testing.assert_allclose(coef[0], ridge.coef_, rtol=1e-9)
        np.testing.assert_allclose(intercept[0], ridge.intercept_, rtol=1e-9)


@pytest.mark.parametrize("model", [Autoregression, LoopNetwork])
@pytest.mark.parametrize("lag", [0, 1, 12])
def test_a_series_many_times_under_as_many_times_the_penalty_is_the_series_once(model, lag):
    history = data_of(monthly(1, 0, 150)[0], (12.0,)).history(log=False)
    place = np.array([150])
    alone = model(lag).fit(history, 3).forecast(history, place, 24)
    for one in model(lag, alpha=4.0).fit_shared([history] * 4, 3):
        np.testing.assert_allclose(one.forecast(history, place, 24), alone, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_units_of_one_series_do_not_matter_to_the_others(seed):
    ours = [np.exp(y) for y in monthly(3, seed)]
    scaled = [y * unit for y, unit in zip(ours, (1.0, 1000.0, 0.01), strict=True)]
    for log in (True, False):
        before, after = (
            LoopNetwork(n_networks=1).fit_shared([data_of(y).history(log) for y in each], 0)
            for each in (ours, scaled)
        )
        histories = data_of(ours[0]).history(log), data_of(scaled[0]).history(log)
        place = np.array([ROWS])
        a, b = (
            one[0].forecast(history, place, 12)
            for one, history in zip((before, after), histories, strict=True)
        )
        np.testing.assert_allclose(a, b, rtol=1e-7)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("model", [Autoregression(), LoopNetwork(n_networks=2)])
def test_short_series_with_one_rule_are_forecast_better_by_a_shared_model(model):
    ratios, place = [], np.array([ROWS])
    for seed in range(4):
        every = [y[:, None] for y in monthly(25, seed, ROWS + AHEAD)]
        histories = [data_of(y[:ROWS]).history(log=False) for y in every]
        apart = [model.fit(history, 0) for history in histories]
        means = []
        for fits in (apart, model.fit_shared(histories, 0)):
            pairs = zip(fits, histories, strict=True)
            said = [one.forecast(history, place, AHEAD)[0] for one, history in pairs]
            means.append(errors_of(said, every).mean())
        ratios.append(means[1] / means[0])
    assert np.mean(ratios) < 0.92


# --- the average -------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_panel_of_one_series_is_the_series_alone(n_outputs):
    values = np.exp(np.column_stack(monthly(n_outputs, 1)))
    (shared,) = learn_all([data_of(values)])
    options = {"n_networks": 1, "n_steps": None, "widths": 1.0, "seed": 0}
    alone = learn(data_of(values), **options, report=not_reported)
    np.testing.assert_allclose(shared.errors, alone.errors / alone.errors.min(), rtol=1e-9)
    np.testing.assert_allclose(shared.shares, alone.shares, rtol=1e-8)
    np.testing.assert_array_equal(shared.rolling.origins, alone.rolling.origins)
    data, place = data_of(values).with_room(ROWS + 9), np.array([ROWS])
    a, b = (one.ensemble.forecast(data, place, 9) for one in (shared, alone))
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_series_of_other_lengths_share_what_they_can():
    lengths = (ROWS, 23, 7, 5)
    series = [data_of(np.exp(y)[:n]) for y, n in zip(monthly(4, 2), lengths, strict=True)]
    learned = learn_all(series)
    for data, one in zip(series, learned, strict=True):
        assert one.shares.sum() == pytest.approx(1)
        there = data.with_room(data.n_rows + 5)
        said = one.ensemble.forecast(there, np.array([data.n_rows]), 5)
        assert np.isfinite(said).all()
        assert np.isfinite(one.rolling.combined(one.shares)).all()
        assert np.isfinite(one.relative_error)
    # the shares of models that all can have are in the same proportion
    long, short = learned[0].shares, learned[-1].shares
    both = (long > 0) & (short > 0)
    assert both.any()
    np.testing.assert_allclose(short[both] / short[both][0], long[both] / long[both][0])


def test_a_series_that_one_model_knows_exactly_does_not_choose_for_the_others():
    rng = np.random.default_rng(0)
    followed = rng.normal(size=(5, 4, 1))
    away = np.array([3.0, 1.0, 2.0])[:, None, None, None]
    ordinary = RollingForecasts(np.arange(5), followed + away, followed)
    away = np.array([0.0, 1.0, 1.0])[:, None, None, None]
    exact = RollingForecasts(np.arange(5), followed + away, followed)
    missing = RollingForecasts(np.arange(5), np.where(away > 0, followed, np.nan), followed)
    np.testing.assert_allclose(shared_errors([ordinary]), [3, 1, 2])
    errors = shared_errors([ordinary] * 9 + [exact])
    assert np.argmin(errors) == 1
    assert np.isfinite(errors).all()
    assert np.argmin(shared_errors([ordinary, missing])) == 1
    assert np.isinf(shared_errors([missing])[0])


# --- the estimator -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def panel():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2001-01-01", periods=ROWS, freq="MS")
    parts = [pd.Series(np.exp(y), dates) for y in monthly(3, 4)]
    return pd.concat([parts[0], parts[1][3:], parts[2][:-2]], keys=["a", "b", "c"])


@pytest.fixture(scope="module")
def fitted(panel):
    return ESNForecaster(panel="shared", n_networks=1, random_state=0).fit(panel)


@pytest.mark.slow
def test_the_forecaster_reports_one_choice_for_all(fitted, panel):
    assert set(fitted.search_results_["series"]) == {"all"}
    assert isinstance(fitted.best_params_["model"], str)
    assert "3 series" in fitted.summary()
    assert fitted.summary().count("autoregression") <= 2
    forecast = fitted.forecast(6, coverage=0.8)
    assert list(forecast.index.unique(0)) == ["a", "b", "c"]
    assert np.isfinite(forecast.to_numpy()).all()
    first, *others = fitted._fits
    for fit in others:
        np.testing.assert_array_equal(fit.ensemble.shares, first.ensemble.shares)
    assert [fit.data.first for fit in fitted._fits] == [0, 3, 0]
    later = fitted.forecast(2)
    assert fitted.__class__(**fitted.get_params()).fit(panel).forecast(2).equals(later)


@pytest.mark.slow
def test_saved_forecasters_of_panels_predict_the_same(fitted, tmp_path):
    save(fitted, tmp_path / "panel.npz")
    again = load(tmp_path / "panel.npz")
    assert again.forecast(6, coverage=0.8).equals(fitted.forecast(6, coverage=0.8))


@pytest.mark.slow
def test_workers_do_not_change_the_forecast(fitted, panel):
    two = ESNForecaster(panel="shared", n_networks=1, random_state=0, n_jobs=2)
    with parallel_config(backend="threading"):
        two.fit(panel)
    np.testing.assert_array_equal(two.forecast(6), fitted.forecast(6))


def test_rows_are_counted_from_the_earliest_series():
    pd = pytest.importorskip("pandas")
    for freq in ("MS", pd.offsets.MonthEnd(), "QS", "W-MON", "B", "D", "h", "30min"):
        for zone in (None, "Europe/Berlin"):
            dates = pd.date_range("2019-01-31", periods=400, freq=freq, tz=zone)
            starts = [7, 0, 251]
            tables = [pd.Series(0.0, dates[start:][:60]) for start in starts]
            calendars = [Calendar.of("y", table) for table in tables]
            assert rows_after_first(calendars) == starts
    periods = pd.period_range("2019-01", periods=50, freq="Q")
    indexes = [periods, periods[6:]], [pd.RangeIndex(4, 40, 2), pd.RangeIndex(10, 40, 2)]
    for each, later in zip(indexes, (6, 3), strict=True):
        calendars = [Calendar.of("y", pd.Series(0.0, index)) for index in each]
        assert rows_after_first(calendars) == [0, later]
    monthly_and_daily = [
        Calendar.of("y", pd.Series(0.0, pd.date_range("2019-01-01", periods=50, freq=freq)))
        for freq in ("D", "MS")
    ]
    assert rows_after_first(monthly_and_daily) == [0, 0]


@pytest.mark.slow
def test_panels_of_fifty_short_series_are_forecast_better_by_shared_models():
    every = [np.exp(y) for y in monthly(50, 0, ROWS + AHEAD)]
    known, errors = [y[:ROWS] for y in every], {}
    for how, n in (("each", 25), ("shared", 50)):  # models of one series know no others
        model = ESNForecaster(panel=how, season=12, random_state=0).fit(known[:n])
        errors[how] = errors_of(model.forecast(AHEAD)[:25], every[:25]).mean()
    assert errors["shared"] < 0.9 * errors["each"]


def test_later_rows_of_several_variables_follow():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2001-01-01", periods=ROWS, freq="MS")
    y = pd.DataFrame(np.exp(np.column_stack(monthly(2, 0))), dates, ["a", "b"])
    model = ESNForecaster(search="series", n_networks=1, random_state=0).fit(y[:-3])
    assert model.update(y[-3:]).forecast(1).index[0] == dates[-1] + dates.freq
    with pytest.raises(ValueError, match="columns"):
        model.update(model.forecast(2)[["a"]])
