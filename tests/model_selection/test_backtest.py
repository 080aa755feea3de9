"""Backtests: the rows of each fit and forecast, and errors against naive loops."""

from __future__ import annotations

import logging

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_absolute_error, median_absolute_error
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reservoir
from reservoir import ESNForecaster, ESNRegressor, NVARRegressor, ReservoirTransformer, RNNRegressor
from reservoir.datasets import load_el_nino, lorenz
from reservoir.metrics import mase, pinball, rmsse, smape
from reservoir.model_selection import backtest

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine

MONTHS = pd.date_range("2000-01", periods=96, freq="MS")
RNG = np.random.default_rng(0)
SALES = pd.Series(
    50 + 10 * np.sin(2 * np.pi * np.arange(96) / 12) + RNG.normal(size=96), MONTHS, name="sales"
)
FRAME = pd.DataFrame({"a": SALES, "b": SALES.to_numpy()[::-1] ** 2}, index=MONTHS)
PRICE = pd.DataFrame({"price": RNG.normal(size=96)}, index=MONTHS)


class Drift:
    """A forecaster by duck typing: the last row, and its mean step; notes what it is given."""

    def __init__(self):
        self.log = []

    def fit(self, y, exog=None):
        self.log = [("fit", y, exog)]
        self.y = y
        return self

    def update(self, y_new, exog=None):
        self.log.append(("update", y_new, exog))
        self.y = pd.concat([self.y, y_new]) if hasattr(y_new, "iloc") else np.r_[self.y, y_new]

    def forecast(self, n_steps, exog=None, coverage=None):
        self.log.append(("forecast", n_steps, exog))
        LOG.append(self.log)
        rows = np.asarray(self.y, dtype=float)
        steps = np.arange(1, n_steps + 1)
        slope = (rows[-1] - rows[0]) / (len(rows) - 1)
        guess = rows[-1] + np.multiply.outer(steps, slope)
        if coverage is not None:
            parts = [guess]
            for level in np.atleast_1d(coverage):
                width = np.reshape(10 * level * np.sqrt(steps), (-1, *[1] * (guess.ndim - 1)))
                parts += [guess - width, guess + width]
            guess = np.stack(parts, axis=-1)
        return self.like(guess, n_steps, np.atleast_1d([] if coverage is None else coverage))

    def like(self, guess, n_steps, levels=()):
        if not hasattr(self.y, "iloc"):
            return guess
        names = ["forecast"]
        for level in levels:
            names += [f"lower {100 * level:g}%", f"upper {100 * level:g}%"]
        index = pd.date_range(self.y.index[-1], periods=n_steps + 1, freq=self.y.index.freq)[1:]
        if guess.ndim == self.y.ndim:
            of = {"columns": self.y.columns} if guess.ndim == 2 else {"name": self.y.name}
            return type(self.y)(guess, index=index, **of)
        if self.y.ndim == 2:
            names = pd.MultiIndex.from_product([self.y.columns, names])
        return pd.DataFrame(guess.reshape(n_steps, -1), index=index, columns=names)


LOG: list = []


@pytest.fixture(autouse=True)
def fresh_log():
    LOG.clear()


def drift_errors(y, origins, horizon, window=None):
    """Naive: truth less forecast, (n_origins, horizon)."""
    found = []
    for origin in origins:
        start = 0 if window is None else origin - window
        slope = (y[origin - 1] - y[start]) / (origin - start - 1)
        found.append([y[origin + h] - y[origin - 1] - (h + 1) * slope for h in range(horizon)])
    return np.array(found)


@pytest.mark.parametrize("container", [pd.Series, np.asarray, list])
@pytest.mark.parametrize("window", [None, 36])
def test_errors_are_those_of_a_naive_loop(container, window):
    y = SALES if container is pd.Series else container(SALES)
    result = backtest(Drift(), y, horizon=6, n_origins=4, step=3, window=window, season=12)
    origins = [81, 84, 87, 90]
    expected = drift_errors(SALES.to_numpy(), origins, 6, window)
    np.testing.assert_allclose(result.errors["error"].to_numpy().reshape(4, 6), expected)
    assert result.errors["step"].tolist() == 4 * [1, 2, 3, 4, 5, 6]
    told = MONTHS if container is pd.Series else np.arange(96)
    assert result.scores.index.tolist() == [told[origin - 1] for origin in origins]
    assert result.errors["time"].tolist() == [told[o + h] for o in origins for h in range(6)]
    assert result.forecasts["truth"].tolist() == [
        SALES.iloc[o + h] for o in origins for h in range(6)
    ]
    for k, origin in enumerate(origins):
        train = SALES.to_numpy()[0 if window is None else origin - window : origin]
        zero = np.zeros(6)
        assert result.scores["mase"].iloc[k] == pytest.approx(
            mase(expected[k], zero, y_train=train, season=12)
        )
        assert result.scores["rmse"].iloc[k] == pytest.approx(np.sqrt(np.mean(expected[k] ** 2)))


def test_metrics_by_name_and_function():
    names = ["mase", "rmsse", "smape", "mae", median_absolute_error]
    result = backtest(Drift(), SALES, horizon=12, n_origins=2, metrics=names)
    assert list(result.scores) == [*names[:4], "median_absolute_error"]
    truth, guess = (
        result.forecasts[part].to_numpy().reshape(2, 12) for part in ("truth", "forecast")
    )
    train = SALES.to_numpy()[:84]
    assert result.season == 12
    scaled = {"y_train": train, "season": 12}
    assert result.scores.iloc[1].tolist() == pytest.approx(
        [
            mase(truth[1], guess[1], **scaled),
            rmsse(truth[1], guess[1], **scaled),
            smape(truth[1], guess[1]),
            mean_absolute_error(truth[1], guess[1]),
            median_absolute_error(truth[1], guess[1]),
        ]
    )
    assert result.summary().loc["mae", "mean"] == pytest.approx(result.scores["mae"].mean())
    assert "2 origins, horizon 12" in repr(result)


def test_a_forecaster_is_given_the_rows_before_and_what_is_known_of_the_horizon():
    model = Drift()
    backtest(model, SALES, horizon=6, n_origins=2, exog=PRICE)
    assert model.log == []  # a clone was fitted
    for log, origin in zip(LOG, (84, 90), strict=True):
        (_, y, exog), (_, n_steps, ahead) = log
        pd.testing.assert_series_equal(y, SALES.iloc[:origin])
        pd.testing.assert_frame_equal(exog, PRICE.iloc[:origin])
        assert n_steps == 6
        pd.testing.assert_frame_equal(ahead, PRICE.iloc[origin : origin + 6])


def test_without_refit_a_forecaster_is_updated_with_the_new_rows():
    refitted = backtest(Drift(), SALES, horizon=6, n_origins=3, exog=PRICE)
    LOG.clear()
    updated = backtest(Drift(), SALES, horizon=6, n_origins=3, exog=PRICE, refit=False)
    assert [what for what, *_ in LOG[-1]] == ["fit", "forecast", *2 * ["update", "forecast"]]
    _, rows, exog = LOG[-1][2]
    pd.testing.assert_series_equal(rows, SALES.iloc[78:84])
    pd.testing.assert_frame_equal(exog, PRICE.iloc[78:84])
    pd.testing.assert_frame_equal(updated.errors, refitted.errors)  # Drift keeps all rows


@pytest.mark.parametrize("y", [SALES, FRAME, FRAME.to_numpy(), SALES.to_numpy()])
def test_intervals_are_read_in_every_container(y):
    result = backtest(
        Drift(),
        y,
        horizon=4,
        n_origins=3,
        coverage=[0.8, 0.95],
        season=12,
        metrics=["pinball", "mae"],
    )
    bounds = ["lower 80%", "upper 80%", "lower 95%", "upper 95%"]
    assert list(result.forecasts)[6:] == bounds
    for level in (0.8, 0.95):
        low, high = (result.forecasts[f"{side} {level:.0%}"] for side in ("lower", "upper"))
        half = 10 * level * np.sqrt(result.forecasts["step"])
        np.testing.assert_allclose(high - low, 2 * half)
        np.testing.assert_allclose((low + high) / 2, result.forecasts["forecast"])
        inside = result.forecasts["truth"].between(low, high)
        shares = inside.groupby([result.forecasts["column"], result.forecasts["origin"]]).mean()
        assert result.scores[f"coverage {level}"].mean() == pytest.approx(shares.mean())
        assert result.scores[f"width {level}"].to_numpy() == pytest.approx(
            20 * level * np.mean(np.sqrt([1, 2, 3, 4]))
        )
    first = result.forecasts.iloc[:4]
    losses = [
        pinball(first["truth"], first[name], quantile=q)
        for name, q in zip(bounds, (0.1, 0.9, 0.025, 0.975), strict=True)
    ]
    assert result.scores["pinball"].iloc[0] == pytest.approx(np.mean(losses))


def test_each_column_of_a_frame_is_scored_by_itself():
    both = backtest(Drift(), FRAME, horizon=6, n_origins=2)
    assert both.scores.index.names == ["origin", "column"]
    for column in FRAME:
        one = backtest(Drift(), FRAME[column], horizon=6, n_origins=2)
        np.testing.assert_allclose(both.scores.xs(column, level="column"), one.scores)
        np.testing.assert_allclose(both.summary().loc[column], one.summary())


def test_steps_whose_truth_is_missing_are_left_out_of_the_scores():
    y = SALES.copy()
    y.iloc[[91, 93]] = np.nan
    result = backtest(Drift(), y, horizon=6, n_origins=1, metrics="mae")
    errors = result.errors["error"].to_numpy()
    assert np.isnan(errors).tolist() == [False, True, False, True, False, False]
    assert result.scores["mae"].item() == pytest.approx(np.nanmean(np.abs(errors)))


def test_missing_values_of_pandas_are_nan():
    y = SALES.astype("Float64")
    y.iloc[95] = pd.NA
    result = backtest(Drift2(), y, horizon=3, n_origins=1, metrics="mae")
    assert np.isnan(result.errors["error"]).tolist() == [False, False, True]


def test_a_lost_forecast_warns_and_counts():
    class Lost(Drift):
        def forecast(self, n_steps, exog=None):
            return np.r_[1.0, np.full(n_steps - 1, np.inf)]

    with pytest.warns(RuntimeWarning, match="origin 2007-06-01 is not finite from step 2 on"):
        result = backtest(Lost(), SALES, horizon=6, n_origins=1, metrics=("mae", "rmse"))
    assert result.scores["mae"].item() > 1e29


# --- regressors on lags -------------------------------------------------------------------------


def lagged_forecast(model, y, exog, n_lags, horizon):
    """Naive: fit on lags, then feed predictions back."""
    n = len(y)
    X = [[*y[t - n_lags : t][::-1].ravel(), *exog[t]] for t in range(n_lags, n)]
    model.fit(X, y[n_lags:].squeeze())
    rows = list(y)
    for h in range(horizon):
        x = [*np.array(rows[-n_lags:])[::-1].ravel(), *exog[n + h]]
        rows.append(np.reshape(model.predict([x]), -1))
    return np.array(rows[n:])


@pytest.mark.parametrize("y", [SALES.to_frame(), FRAME])
@pytest.mark.parametrize("known", [np.zeros((96, 0)), PRICE.to_numpy()])
@pytest.mark.parametrize("window", [None, 40])
def test_a_regressor_on_lags_against_a_naive_loop(y, known, window):
    exog = pd.DataFrame(known, index=MONTHS) if known.size else None
    result = backtest(Ridge(), y, horizon=5, n_origins=2, n_lags=3, window=window, exog=exog)
    for origin, part in zip((86, 91), (0, 1), strict=True):
        start = 0 if window is None else origin - window
        expected = lagged_forecast(Ridge(), y.to_numpy()[start:origin], known[start:], 3, 5)
        rows = result.forecasts["forecast"].to_numpy().reshape(2, y.shape[1], 5)[part].T
        np.testing.assert_allclose(rows, expected)


def test_a_regressor_on_lags_continues_without_refit():
    period = np.tile([1.0, 5.0, 2.0, 7.0], 12)
    once = backtest(
        LinearRegression(), period, horizon=4, n_origins=3, n_lags=4, refit=False, metrics="mae"
    )
    np.testing.assert_allclose(once.scores["mae"], 0, atol=1e-10)


# --- networks -----------------------------------------------------------------------------------


def scaled(network):
    return make_pipeline(StandardScaler(), network)


def networks():
    esn = ESNRegressor(30, alpha=1e-2, washout=10, random_state=0)
    anew = ESNRegressor(30, alpha=1e-2, initial_state="zeros", random_state=0)
    return {
        "ESN": scaled(esn),
        "ESN from zeros": scaled(anew),
        "NVAR": scaled(NVARRegressor(n_lags=12, degree=1, alpha=1e-2)),
        "RNN": scaled(RNNRegressor(5, max_iter=2, random_state=0)),
        "states": make_pipeline(
            StandardScaler(), ReservoirTransformer(9, random_state=0), Ridge(0.1)
        ),
        "states from zeros": make_pipeline(
            StandardScaler(), ReservoirTransformer(9, initial_state="zeros", random_state=0), esn
        ),
        "search": GridSearchCV(
            scaled(esn), {"esnregressor__alpha": [1e-2, 1.0]}, cv=TimeSeriesSplit(2)
        ),
    }


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", networks())
@pytest.mark.parametrize("exog", [None, PRICE])
def test_networks_forecast_as_by_hand(name, exog):
    model = networks()[name]
    result = backtest(model, SALES, horizon=6, n_origins=2, exog=exog, step=4)
    for origin in (86, 90):
        table = SALES.to_frame() if exog is None else pd.concat([SALES, exog.shift(-1)], axis=1)
        y = SALES.iloc[1:origin].set_axis(MONTHS[: origin - 1])
        fitted = networks()[name].fit(table.iloc[: origin - 1], y)
        ahead = None if exog is None else exog.iloc[origin : origin + 6]
        rows = reservoir.forecast(fitted, 6, exog=ahead)
        told = result.forecasts[result.forecasts["origin"] == MONTHS[origin - 1]]
        np.testing.assert_allclose(
            told["forecast"], rows, rtol=1e-9
        )  # rows lie otherwise in memory


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    "name", ["ESN", "ESN from zeros", "NVAR", "RNN", "states", "states from zeros"]
)
@pytest.mark.parametrize("y", [SALES, SALES.to_numpy()], ids=["Series", "array"])
def test_networks_continue_without_refit(name, y):
    """As if each had been fitted once, and had listened to all further rows."""
    result = backtest(
        networks()[name], y, horizon=6, n_origins=3, exog=np.asarray(PRICE), refit=False, season=12
    )
    values, known = SALES.to_numpy(), PRICE.to_numpy()
    table = np.c_[values[:-1], known[1:]]
    fitted = networks()[name].fit(table[:77], values[1:78])
    for k, origin in enumerate((78, 84, 90)):
        if k == 0:
            rows = reservoir.forecast(fitted, 6, exog=known[78:84])
        else:  # the first row of a forecast comes from the last of the context
            first = 0 if "from zeros" in name else 77
            rows = reservoir.forecast(
                fitted, 6, context=table[first:origin], exog=known[origin + 1 : origin + 6]
            )
        np.testing.assert_allclose(result.forecasts["forecast"][6 * k : 6 * k + 6], rows)


def test_columns_of_a_frame_are_joint_variables_of_a_network():
    y = pd.DataFrame(lorenz(900, dt=0.05, washout=200, random_state=0), columns=list("xyz"))
    network = scaled(ESNRegressor(120, random_state=0))
    # another processor's rounding makes another stretch of the attractor: worst of 20 stretches .2
    result = backtest(network, y, horizon=5, n_origins=2)
    assert (result.scores["mase"] < 0.5).all()
    assert result.season == 1


def test_the_forecaster_with_its_own_networks():
    result = backtest(
        ESNForecaster(n_networks=1, random_state=0),
        lorenz(200, dt=0.05, washout=200, random_state=0),
        horizon=10,
        n_origins=1,
    )
    assert (result.scores["mase"] < 1e-2).all()


# --- seasons, workers, words --------------------------------------------------------------------


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    "freq, season",
    [
        ("MS", 12),
        ("QS", 4),
        ("W", 52),
        ("D", 7),
        ("B", 5),
        ("30min", 48),
        ("2MS", 6),
        ("2D", 1),
        ("YS", 1),
    ],
)
def test_the_season_is_read_off_the_dates(freq, season):
    for index in (
        pd.date_range("2000-01-03", periods=60, freq=freq),
        pd.DatetimeIndex(pd.date_range("2000-01-03", periods=60, freq=freq).to_numpy()),
    ):
        y = pd.Series(RNG.normal(size=60), index)
        assert backtest(Drift2(), y, horizon=1, n_origins=1).season == season
    assert backtest(Drift2(), y.iloc[:20], horizon=1, n_origins=1, metrics="mae").season == season


def test_the_season_of_periods():
    y = SALES.to_period("M")
    result = backtest(Drift2(), y, horizon=3, n_origins=2)
    assert result.season == 12
    assert result.errors["time"].iloc[-1] == pd.Period("2007-12", "M")


class Drift2(Drift):
    """Returns arrays, and knows no coverage."""

    def forecast(self, n_steps):
        return np.full(n_steps, np.asarray(self.y)[-1])


def test_workers_change_nothing():
    y = load_el_nino(as_frame=True)
    with joblib.parallel_config("threading"):  # processes take seconds to start
        one, two = (
            backtest(Ridge(), y, horizon=12, n_lags=12, n_origins=8, n_jobs=n) for n in (None, 4)
        )
    pd.testing.assert_frame_equal(one.errors, two.errors)


def test_verbose_prints_a_line_for_each_origin(caplog):
    with caplog.at_level(logging.WARNING, "reservoir"):
        backtest(Drift(), SALES, horizon=6, n_origins=2, verbose=1)
    assert [record.getMessage()[:37] for record in caplog.records] == [
        "backtest: origin 1 of 2 (2006-12-01):",
        "backtest: origin 2 of 2 (2007-06-01):",
    ]


class NoUpdate:
    def fit(self, y):
        return self

    def forecast(self, n_steps):
        return np.zeros(n_steps)


class Turned(Drift):
    def forecast(self, n_steps, exog=None):
        return super().forecast(n_steps).iloc[:, ::-1]


class Dated(Drift):
    def forecast(self, n_steps, exog=None):
        return pd.Series(0.0, self.y.index[-n_steps:])


FLAT = pd.Series(np.tile(np.arange(12.0), 8), MONTHS)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: backtest(Drift(), SALES, horizon=24),
            r"n_origins=5, step=24 and horizon=24 take 120 rows, .* 13 before .* y has 96",
        ),
        (lambda: backtest(Drift(), SALES, horizon=6, window=90), "window=90 needs at l"),
        (lambda: backtest(Drift(), SALES, horizon=6, window=9), "window=9 is too small"),
        (lambda: backtest(Ridge(), SALES, horizon=6, n_lags=70), "n_lags=70 needs at least 71"),
        (lambda: backtest(Drift(), SALES, horizon=0), "horizon=0 must be at least 1"),
        (lambda: backtest(Drift(), SALES, horizon=6, metrics="mas"), "mean 'mase'"),
        (lambda: backtest(Drift(), SALES, horizon=6, metrics=[]), "metrics is empty"),
        (lambda: backtest(Drift(), SALES, horizon=6, metrics=["mae"] * 2), "'mae' twice"),
        (lambda: backtest(Drift(), SALES, horizon=6, metrics="pinball"), "needs intervals"),
        (lambda: backtest(Drift(), SALES, horizon=6, coverage=90), "coverage=90 must"),
        (lambda: backtest(Drift(), SALES, horizon=6, coverage=[]), "at least one number"),
        (lambda: backtest(Drift(), FLAT, horizon=6), "no scale in .* origin 2005-06-01"),
        (lambda: backtest(Ridge(), SALES, horizon=6), "Ridge has no method forecast. Set n_lags"),
        (lambda: backtest(Drift(), SALES, horizon=6, n_lags=2), "n_lags=2 is for regr"),
        (
            lambda: backtest(ESNRegressor(), SALES, horizon=6, n_lags=2),
            "n_lags=2 is for regressors without memory",
        ),
        (lambda: backtest(ESNRegressor(feedback=True), SALES, horizon=6), "feedback=True"),
        (
            lambda: backtest(Ridge(), SALES, horizon=6, n_lags=2, coverage=0.9),
            "coverage=0.9 needs a model",
        ),
        (
            lambda: backtest(NoUpdate(), SALES, horizon=6, coverage=0.9),
            "NoUpdate.forecast has no parameter coverage",
        ),
        (
            lambda: backtest(NoUpdate(), SALES, horizon=6, refit=False),
            "NoUpdate has none. Use refit=True",
        ),
        (
            lambda: backtest(NoUpdate(), FRAME, horizon=6),
            r"has shape \(6,\); horizon=6 and 2 columns of y require 12 values",
        ),
        (
            lambda: backtest(Dated(), SALES, horizon=6),
            "has the date 2005-01-01 in step 1, but y has 2005-07-01",
        ),
        (lambda: backtest(Drift(), SALES, horizon=6, exog=PRICE[1:]), "exog has 95 rows"),
        (
            lambda: backtest(Drift(), SALES, horizon=6, exog=PRICE.set_axis(MONTHS + MONTHS.freq)),
            "exog is 2000-02-01 in row 0, but the index of y is 2000-01-01",
        ),
        (
            lambda: backtest(scaled(ESNRegressor()), SALES, horizon=6, exog=SALES.to_frame()),
            "Two columns of y and exog are named 'sales'",
        ),
        (lambda: backtest(Turned(), FRAME, horizon=6), r"columns \['b', 'a'\]; they must be"),
    ],
)
def test_errors_name_value_and_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_classes_are_no_models():
    with pytest.raises(TypeError, match="has no method fit"):
        backtest(np.mean, SALES, horizon=6)
