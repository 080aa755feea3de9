"""Inputs and targets from a series: the content of the rows, their names and dates."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, NVARRegressor, RNNRegressor, forecast
from reservoir.model_selection import (
    ClosedLoopSearchCV,
    ContextSplit,
    make_forecast_pairs,
    stack_sequences,
    washout_scorer,
)

SEEDS = range(3)
N = 120


def wave(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return np.sin(0.4 * np.arange(n)) + 0.1 * rng.normal(size=n)


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("n_exog", [0, 1, 2])
@pytest.mark.parametrize("horizon", [1, 3, [1], [1, 2, 3], (4, 2), range(1, 3)])
@pytest.mark.parametrize("shape", [(10,), (10, 1), (10, 3)])
def test_every_row_holds_what_it_should(shape, horizon, n_exog):
    rng = np.random.default_rng(0)
    series, known = rng.normal(size=shape), rng.normal(size=(10, n_exog))
    exog = known[:, 0] if n_exog == 1 else known
    X, y = make_forecast_pairs(series, horizon, exog=exog if n_exog else None)
    steps = [horizon] if isinstance(horizon, int) else list(horizon)
    assert len(X) == len(y) == 10 - max(steps)
    assert y.ndim == (series.ndim if isinstance(horizon, int) else 2)
    for t in range(len(X)):
        of_targets = [known[t + h] for h in steps] if n_exog else []
        assert np.array_equal(X[t], np.concatenate([np.atleast_1d(series[t]), *of_targets]))
        ahead = np.concatenate([np.atleast_1d(series[t + h]) for h in steps])
        assert np.array_equal(np.ravel(y[t]), ahead)
    X[0] = 99.0  # copies: the series is untouched
    assert not (series == 99.0).any()


def test_collections():
    items = [np.arange(5.0), np.arange(7.0)]
    known = [10 * items[0], np.column_stack([10 * items[1]])]
    Xs, ys = make_forecast_pairs(items, 2)
    assert [X.shape for X in Xs] == [(3, 1), (5, 1)]
    assert [y.tolist() for y in ys] == [[2, 3, 4], [2, 3, 4, 5, 6]]
    assert stack_sequences(Xs, ys)[0].shape == (8, 2)
    Xs, ys = make_forecast_pairs(items, [1, 2], exog=known)
    assert Xs[1].tolist() == [[t, 10 * (t + 1), 10 * (t + 2)] for t in range(5)]
    assert ys[0].tolist() == [[1, 2], [2, 3], [3, 4]]
    packed, beside = np.empty(2, dtype=object), np.empty(2, dtype=object)
    packed[:], beside[:] = items, known
    Xo, yo = make_forecast_pairs(packed, exog=beside)
    assert Xo.dtype == yo.dtype == object
    assert yo[1].tolist() == [1, 2, 3, 4, 5, 6]
    assert Xo[0].tolist() == [[t, 10 * (t + 1)] for t in range(4)]
    stack = np.arange(24.0).reshape(2, 6, 2)
    X3, y3 = make_forecast_pairs(stack)
    assert X3.shape == y3.shape == (2, 5, 2)
    np.testing.assert_array_equal(X3[:, 1:], y3[:, :-1])
    X3, y3 = make_forecast_pairs(stack, [1, 2], exog=-stack[:, :, :1])
    assert np.array_equal(y3, np.concatenate([stack[:, 1:-1], stack[:, 2:]], axis=2))
    assert np.array_equal(X3[:, :, 2], -stack[:, 1:-1, 0])
    X, y = make_forecast_pairs([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # one table
    assert X.shape == y.shape == (2, 2)


def test_errors():
    for series, options, text in (
        (np.zeros(3), {"horizon": 3}, r"horizon=3 must be smaller .* n_samples=3"),
        (np.zeros(3), {"horizon": [1, 3]}, r"horizon=3 must be smaller .* n_samples=3"),
        ([np.zeros(3), np.zeros(1)], {}, "series 1 has n_samples=1"),
        (np.zeros(3), {"horizon": 0}, "horizon=0 must be at least 1"),
        (np.zeros(9), {"horizon": [2, 0]}, r"horizon\[1\]=0 must be at least 1"),
        (np.zeros(9), {"horizon": [2, 2]}, "none of them twice"),
        (np.zeros(9), {"horizon": []}, "at least one number of steps"),
        (np.zeros(9), {"exog": np.zeros(8)}, r"exog has shape \(8,\).*n_samples=9"),
        ([np.zeros(9)] * 2, {"exog": np.zeros((9, 2))}, "exog contains 9 items.*2 series"),
        ([np.zeros(9)], {"exog": [np.zeros(8)]}, r"exog of series 0 has shape \(8,\)"),
    ):
        with pytest.raises(ValueError, match=text):
            make_forecast_pairs(series, **options)
    for horizon in (1.5, "1", True, [1.5]):
        with pytest.raises(TypeError, match=r"must be an integer"):
            make_forecast_pairs(np.zeros(9), horizon)


# ---------------------------------------------------------------- names and dates


def indexes():
    pd = pytest.importorskip("pandas")
    return {
        "days": pd.date_range("2020-01-01", periods=N, freq="D"),
        "days in a zone": pd.date_range("2024-03-01", periods=N, freq="D", tz="Europe/Berlin"),
        "month ends": pd.date_range("2010-01-31", periods=N, freq=pd.offsets.MonthEnd()),
        "business days": pd.bdate_range("2020-01-01", periods=N),
        "quarters": pd.period_range("1980Q1", periods=N, freq="Q"),
        "numbers": pd.Index(np.arange(N) + 17),
        "floats": pd.Index(0.1 * np.arange(N)),
        "default": pd.RangeIndex(N),
        "falling": pd.Index(np.arange(N)[::-1]),
        "labels": pd.Index(np.random.default_rng(0).permutation(N)),
        "text": pd.Index([f"row {i}" for i in range(N)]),
    }


KINDS = [
    "days",
    "days in a zone",
    "month ends",
    "business days",
    "quarters",
    "numbers",
    "floats",
    "default",
    "falling",
    "labels",
    "text",
]


@pytest.mark.filterwarnings("ignore:The index of the series is a permutation")
@pytest.mark.parametrize("kind", KINDS)
def test_frames_keep_names_and_dates(kind):
    pd = pytest.importorskip("pandas")
    series = pd.Series(wave(), index=indexes()[kind], name="sales")
    known = pd.DataFrame({"temp": np.arange(N), "holiday": np.arange(N) % 7 == 0}, series.index)
    X, y = make_forecast_pairs(series, 2)
    pd.testing.assert_series_equal(y, series.iloc[2:])
    pd.testing.assert_frame_equal(X, series.to_frame().iloc[:-2])
    X, y = make_forecast_pairs(series.to_frame(), 2, exog=known)
    pd.testing.assert_frame_equal(y, series.to_frame().iloc[2:])
    assert list(X.columns) == ["sales", "temp", "holiday"]
    assert X["temp"].tolist() == list(range(2, N))
    assert X.index.equals(series.index[:-2])
    X, y = make_forecast_pairs(series, [1, 3], exog=known)
    assert list(X.columns) == ["sales", "temp+1", "holiday+1", "temp+3", "holiday+3"]
    assert X["temp+3"].tolist() == list(range(3, N))
    assert list(y.columns) == ["sales+1", "sales+3"]
    assert X.index.equals(series.index[:-3])
    assert X.index.equals(y.index)  # the horizons count from there
    assert np.array_equal(y, np.column_stack([series.iloc[1:-2], series.iloc[3:]]))


def test_known_rows_are_found_by_their_dates():
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2020-01-01", periods=N, freq="D")
    series = pd.Series(wave()[20:70], index=index[20:70], name="load")
    known = pd.DataFrame({"temp": np.arange(float(N))}, index=index)
    X, _ = make_forecast_pairs(series, exog=known.sample(frac=1, random_state=0))
    assert X["temp"].tolist() == list(range(21, 70))
    assert make_forecast_pairs(series, exog=known["temp"])[0].equals(X)
    Xs, ys = make_forecast_pairs([series, series[:20]], exog=[known, known])
    assert Xs[0].equals(X)
    assert Xs[1].equals(X[:19])
    assert ys[1].equals(series[1:20])
    for exog, text in (
        (known[30:], "exog has no row for 2020-01-21, which is in the index of the series"),
        (known.reset_index(drop=True), "exog has no row for 2020-01-21"),
        (known.rename(columns={"temp": "load"}), "two columns named 'load', one of them from exog"),
        (known.rename(columns={"temp": 7}), "a mix of names and numbers"),
        (pd.concat([known, known]), "has repeated entries"),
        (pd.concat([known], keys=["a"]), "exog has a MultiIndex"),
    ):
        with pytest.raises(ValueError, match=text):
            make_forecast_pairs(series, exog=exog)
    with pytest.raises(ValueError, match="exog of series 0 has no row"):
        make_forecast_pairs([series], exog=[known[30:]])
    with pytest.raises(ValueError, match="exog is one table, but there are 1 series"):
        make_forecast_pairs([series], exog=known)
    with pytest.raises(ValueError, match=r"two columns named 'load\+1'"):
        make_forecast_pairs(
            series.to_frame("load+1"), [1], exog=known.rename(columns={"temp": "load"})
        )
    with pytest.raises(ValueError, match="MultiIndex, so pairs would span"):
        make_forecast_pairs(pd.concat([series, series], keys=[0, 1]))


def test_names_where_there_are_none():
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2020-01-01", periods=N, freq="D")
    unnamed, known = pd.Series(wave(), index), pd.DataFrame({"temp": wave()}, index)
    assert list(make_forecast_pairs(unnamed)[0].columns) == [0]
    assert list(make_forecast_pairs(unnamed, exog=known)[0].columns) == ["y", "temp"]
    X, y = make_forecast_pairs(unnamed, [1, 2], exog=known.to_numpy())
    assert list(X.columns) == ["y", "exog0+1", "exog0+2"]
    assert list(y.columns) == ["y+1", "y+2"]
    numbered = pd.DataFrame(np.ones((N, 2)), index)
    assert list(make_forecast_pairs(numbered, exog=np.ones(N))[0].columns) == [0, 1, 2]
    X, y = make_forecast_pairs(numbered, [1, 2], exog=np.ones(N))
    assert list(X.columns) == [0, 1, 2, 3]
    assert list(y.columns) == ["0+1", "1+1", "0+2", "1+2"]


# ---------------------------------------------------------------- what is fitted on them


MODELS = [
    ESNRegressor(15, random_state=0),
    NVARRegressor(2),
    RNNRegressor(5, max_iter=1, random_state=0),
]


@pytest.mark.filterwarnings("ignore:The index of .* is a permutation:UserWarning")
@pytest.mark.fast_cases(1)
@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("kind", "model"),
    [(kind, model) for kind in KINDS for model in MODELS[:2]] + [("days", MODELS[2])],
)
def test_dates_of_targets_change_no_result(kind, model):
    pd = pytest.importorskip("pandas")
    series = pd.Series(wave(), index=indexes()[kind], name="sales")
    X, y = make_forecast_pairs(series)
    old = X.to_numpy(), y.to_numpy()
    chain = make_pipeline(StandardScaler(), model)
    if kind in ("falling", "labels", "text"):  # nothing says whether rows follow
        assert np.array_equal(model.fit(X, y).predict(X), model.fit(*old).predict(X.to_numpy()))
        return
    expected = model.fit(*(rows[:80] for rows in old)).predict(old[0][80:])
    ahead = model.forecast(5)
    model.fit(X.iloc[:80], y.iloc[:80])
    assert np.array_equal(model.predict(X.iloc[80:]), expected)
    assert np.array_equal(model.forecast(5), ahead)
    assert np.allclose(model.stream().predict(X.iloc[80:90]), expected[:10])
    split = TimeSeriesSplit(2)
    for each in (model, chain):
        told = cross_val_score(each, X, y, cv=split)
        assert np.array_equal(told, cross_val_score(each, *old, cv=split))
    chain.fit(X.iloc[:80], y.iloc[:80])
    assert chain.score(X.iloc[80:], y.iloc[80:]) == chain.fit(*(rows[:80] for rows in old)).score(
        old[0][80:], old[1][80:]
    )


@pytest.mark.both_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_known_inputs_go_to_the_forecast_under_their_dates(seed):
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2020-01-01", periods=N + 10, freq="D")
    temp = np.random.default_rng(seed).normal(size=N + 10)
    level = np.zeros(N + 10)
    for t in range(1, N + 10):
        level[t] = 0.7 * level[t - 1] + temp[t]  # what is known of the row itself drives it
    series, known = pd.Series(level, index, name="load"), pd.DataFrame({"temp": temp}, index)
    model = NVARRegressor(1, degree=1, alpha=1e-10)
    model.fit(*make_forecast_pairs(series[:N], exog=known))
    rows = model.forecast(10, exog=known[N:])
    assert np.allclose(rows, series[N:], atol=1e-5)
    # direct: each horizon from the present row and what is known of the rows in between
    X, y = make_forecast_pairs(series, [1, 2, 3], exog=known)
    model.fit(X[: N - 3], y[: N - 3])
    assert np.allclose(model.predict(X[N - 1 : N]), series[N : N + 3].to_numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="horizon 1"):
        forecast(model, 2)
    chain = make_pipeline(StandardScaler(), NVARRegressor(1, degree=1, alpha=1e-10))
    chain.fit(*make_forecast_pairs(series[:N], exog=known))
    assert np.allclose(forecast(chain, 10, exog=known[N:]), series[N:], atol=1e-4)


@pytest.mark.both_engines
@pytest.mark.parametrize("numbered", [False, True])
def test_chunks_and_searches(numbered):
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2010-01-31", periods=N, freq=pd.offsets.MonthEnd())
    series = pd.Series(wave(), index=index, name="sales")
    X, y = make_forecast_pairs(series)
    esn = ESNRegressor(15, washout=5, random_state=0)
    whole = esn.fit(X, y).coef_
    esn = ESNRegressor(15, washout=5, random_state=0)
    for i in (0, 40, 80):
        rows = X[i : i + 40], y[i : i + 40]
        esn.partial_fit(*(each.reset_index(drop=True) if numbered else each for each in rows))
    assert np.allclose(esn.coef_, whole, rtol=1e-5, atol=1e-7)
    if numbered:
        # series that begin anew at 0 tell nothing of where they stand
        for part in (series[:60], series[59:]):
            esn.partial_fit(*make_forecast_pairs(part.reset_index(drop=True)))
        esn.score(*make_forecast_pairs(series[:50].reset_index(drop=True)))
        return
    with pytest.warns(UserWarning, match="new_sequence=True"):
        esn.partial_fit(X[10:20], y[10:20])
    scores = [
        ClosedLoopSearchCV(
            ESNRegressor(15, random_state=0), {"alpha": [1e-4, 1.0]}, horizon=5, n_starts=2
        )
        .fit(*data)
        .best_score_
        for data in ((X, y), (X.to_numpy(), y.to_numpy()))
    ]
    assert scores[0] == scores[1]
    esn = ESNRegressor(15, initial_state="zeros", random_state=0)
    with pytest.warns(UserWarning, match="No frequency"):
        scored = cross_val_score(
            esn, X, y, cv=ContextSplit(4, context=10), scoring=washout_scorer("r2", 10)
        )
    assert np.isfinite(scored).all()


@pytest.mark.fast_cases(2)
@pytest.mark.both_engines
@pytest.mark.filterwarnings("ignore:The index of the series is a permutation")
@pytest.mark.parametrize("h", [1, 3])
@pytest.mark.parametrize("kind", ["falling", "labels", "repeated", "events"])
def test_rows_are_shifted_where_numbers_do_not_increase(kind, h):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    index = {
        "falling": np.arange(N)[::-1] + 5,
        "labels": rng.permutation(N),
        "repeated": np.arange(N) % 7,
        "events": np.cumsum(rng.integers(1, 9, N)),
    }[kind]
    X, y = make_forecast_pairs(pd.Series(wave(), index=index), h)
    esn = ESNRegressor(10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(cross_val_score(esn, X, y, cv=4, error_score="raise")).all()
    swapped = y.iloc[np.r_[0:50, 51, 50, 52 : len(y)]]  # of labels these might be cut out
    for rows in (y[::-1], swapped) if kind in ("falling", "events") else (y[::-1],):
        with pytest.raises(ValueError, match="index of y does not match the index of X"):
            esn.fit(X, rows)
