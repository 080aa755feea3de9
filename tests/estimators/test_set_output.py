"""Predictions as Series and DataFrames: their index, their names, and copies of the setting."""

import io
import sys

import joblib
import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from sklearn.base import clone  # noqa: E402
from sklearn.compose import TransformedTargetRegressor  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from reservoir import (  # noqa: E402
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    forecast,
    load,
    save,
)
from reservoir.model_selection import (  # noqa: E402
    ClosedLoopSearchCV,
    make_forecast_pairs,
    washout_scorer,
)

pytestmark = pytest.mark.both_engines

N, LATER = 80, 12
DAYS = pd.date_range("2020-01-01", periods=N + LATER, freq="D", name="day")
NUMBERS = [
    ESNRegressor(10, initial_state="zeros", random_state=0),
    NVARRegressor(2, degree=1, initial_state="zeros"),
    RNNRegressor(4, init="esn", max_iter=1, initial_state="zeros", random_state=0),
]
LABELS = [
    ESNClassifier(10, initial_state="zeros", random_state=0),
    RNNClassifier(4, init="esn", max_iter=1, initial_state="zeros", random_state=0),
]


def name_of(model):
    return type(model).__name__


def series(index=DAYS, name="sales"):
    return pd.Series(np.sin(0.4 * np.arange(len(index))), index=index, name=name)


def asked(model):
    return clone(model).set_output(predict="pandas")


# ---------------------------------------------------------------- predict


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("model", NUMBERS, ids=name_of)
def test_predictions_have_the_index_of_x_and_the_names_of_y(model):
    X, y = make_forecast_pairs(series())
    plain = clone(model).fit(X, y).predict(X)
    model = asked(model).fit(X, y)
    rows = model.predict(X)
    pd.testing.assert_series_equal(rows, pd.Series(plain, X.index, name="sales"))
    stream = model.stream("zeros")
    assert stream.predict(X[:30]).index.equals(X.index[:30])
    assert stream.predict(X[30:]).index.equals(X.index[30:])
    assert np.array_equal(model.predict(X, return_state=True)[1].shape, model.state_.shape)
    two = pd.DataFrame({"a": y, "b": -y})
    frame = model.fit(X, two).predict(X)
    assert list(frame.columns) == ["a", "b"]
    assert frame.index.equals(X.index)
    arrays = clone(model).set_output(predict="default").fit(X, two)
    assert model.score(X, two) == pytest.approx(arrays.score(X, two), rel=1e-9)
    assert np.array_equal(model.set_output().predict(X), frame)  # None leaves it as it is
    assert isinstance(model.set_output(predict="default").predict(X), np.ndarray)


@pytest.mark.parametrize("model", NUMBERS, ids=name_of)
def test_arrays_are_numbered(model):
    X, y = (each.to_numpy() for each in make_forecast_pairs(series()))
    rows = asked(model).fit(X, y).predict(X)
    assert rows.name is None
    assert rows.index.equals(pd.RangeIndex(len(X)))
    frame = asked(model).fit(X, y[:, None]).predict(X)
    assert list(frame.columns) == [0]
    ahead = asked(model).fit(X, y).forecast(3)
    assert ahead.index.equals(pd.RangeIndex(3))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("model", NUMBERS, ids=name_of)
def test_collections_keep_their_kind(model):
    parts = [series(), series(DAYS[:40] + pd.Timedelta(days=900))]
    Xs, ys = make_forecast_pairs(parts)
    model = asked(model).fit(Xs, ys)
    rows = model.predict(Xs)
    assert isinstance(rows, list)
    assert all(each.index.equals(X.index) for each, X in zip(rows, Xs, strict=True))
    assert [each.name for each in rows] == ["sales", "sales"]
    packed = np.empty(2, dtype=object)
    packed[:] = Xs
    assert model.predict(packed)[1].equals(rows[1])
    assert model.score(Xs, ys) == model.set_output(predict="default").score(Xs, ys)
    packed[1] = Xs[0]  # of one length
    assert model.predict(packed).shape == (2,)
    # a MultiIndex is kept
    model.set_output(predict="pandas")
    X, y = pd.concat(Xs, keys=["a", "b"]), pd.concat(ys, keys=["a", "b"])
    both = model.fit(X, y).predict(X)
    assert both.index.equals(X.index)
    assert np.array_equal(both, np.concatenate(rows))
    table = np.stack([X.to_numpy() for X in (Xs[0][:30], Xs[1][:30])])
    stacked = model.fit(table, table).predict(table)
    assert stacked.shape == table.shape  # what three dimensions have no frame for


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("model", LABELS, ids=name_of)
@pytest.mark.parametrize("names", [["low", "high"], ["low", "high", "top"]])
def test_classes_are_the_columns(model, names):
    X, y = make_forecast_pairs(series())
    labels = pd.cut(y, len(names), labels=names).astype(str).rename("band")
    model = asked(model).fit(X, labels)
    found = model.predict(X)
    assert found.name == "band"
    assert found.index.equals(X.index)
    assert set(found) <= set(names)
    for each in ("predict_proba", "decision_function"):
        rows = getattr(model, each)(X)
        assert rows.index.equals(X.index)
        if each == "predict_proba" or len(names) > 2:
            assert list(rows.columns) == sorted(names)
        plain = clone(model).set_output(predict="default").fit(X, labels)
        assert np.array_equal(rows, getattr(plain, each)(X))
    assert model.score(X, labels) == np.mean(found.to_numpy() == labels.to_numpy())


def test_one_answer_per_sequence():
    model = RNNRegressor(4, init="esn", max_iter=1, target="last", random_state=0).set_output(
        predict="pandas"
    )
    Xs = [series()[:20].to_frame(), series()[20:50].to_frame()]
    model.fit(Xs, pd.Series([1.0, 2.0], name="yield"))
    assert model.predict(Xs).index.equals(pd.RangeIndex(2))
    X = pd.concat(Xs, keys=["a", "b"], names=["field", "day"])
    rows = model.fit(X, pd.Series([1.0, 2.0], ["a", "b"], name="yield")).predict(X)
    assert rows.name == "yield"
    assert rows.index.tolist() == ["a", "b"]
    assert rows.index.name == "field"
    frame = X.reset_index(level=0)
    model.set_params(sequence_column="field").fit(frame, [[1.0], [2.0]])
    assert model.predict(frame).index.equals(rows.index)


# ---------------------------------------------------------------- forecast

INDEXES = {
    "days": DAYS,
    "clocks change": pd.date_range("2024-01-20", periods=N + LATER, tz="Europe/Berlin"),
    "hours": pd.date_range("2024-03-28", periods=N + LATER, freq="h", tz="UTC+02:00"),
    "business days": pd.bdate_range("2020-01-01", periods=N + LATER).as_unit("s"),
    "last Fridays": pd.date_range(
        "1990-01-01", periods=N + LATER, freq=pd.offsets.LastWeekOfMonth(weekday=4)
    ),
    "days but Sundays": pd.date_range(
        "2020-01-01", periods=N + LATER, freq=pd.offsets.CustomBusinessDay(weekmask="1111110")
    ),
    "beyond nanoseconds": pd.date_range(
        "3000-01-01", periods=N + LATER, freq=pd.DateOffset(months=1), unit="s"
    ),
    "quarters": pd.period_range("1980Q1", periods=N + LATER, freq="Q", name="quarter"),
    "every third": pd.RangeIndex(5, 5 + 3 * (N + LATER), 3),
    "floats": pd.Index(0.5 * np.arange(N + LATER)),
    "default": pd.RangeIndex(N + LATER),
    "levels": pd.MultiIndex.from_product([["shop"], DAYS], names=["place", "day"]),
    "three levels": pd.MultiIndex.from_product([["shop"], DAYS[:1], DAYS]),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kind", INDEXES)
def test_forecasts_continue_the_index(kind):
    index = INDEXES[kind]
    whole = series(index)
    X, y = whole.to_frame().iloc[: N - 1], whole.iloc[1:N]
    model = asked(NUMBERS[1]).fit(X, y)
    expected = clone(model).set_output(predict="default").fit(X, y).forecast(LATER)
    rows = model.forecast(LATER)
    pd.testing.assert_series_equal(
        rows, pd.Series(expected, index[N:], name="sales"), check_freq=False
    )
    # so do targets under the index of X, and those of chunks
    assert model.fit(X, y.set_axis(X.index)).forecast(LATER).index.equals(index[N:])
    model.fit(X, y)
    for start in (N - 5, 20):  # five work days look daily
        rows = model.forecast(5, context=whole.to_frame().iloc[np.arange(start, N)])
        assert rows.index.equals(index[N : N + 5])
    if kind not in ("default", "floats"):
        one = model.forecast(5, context=whole.to_frame()[30:31])
        assert one.index.equals(index[31:36])
        whole = whole.iloc[np.arange(N)]  # no freq any more
        chunked = asked(NUMBERS[1])
        for i in range(0, N - 1, 9):
            stop = min(i + 9, N - 1)
            chunked.partial_fit(whole.to_frame()[i:stop], whole[i + 1 : stop + 1])
        assert chunked.forecast(LATER).index.equals(index[N:])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("model", [NUMBERS[0], NUMBERS[2]], ids=name_of)
def test_several_outputs_through_pipelines(model):
    frame = pd.DataFrame({"a": series(), "b": series() ** 2})
    X, y = make_forecast_pairs(frame[:N])
    pipe = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    expected = forecast(pipe, LATER)
    pipe[-1].set_output(predict="pandas")
    rows = forecast(pipe, LATER)
    assert list(rows.columns) == ["a", "b"]
    assert np.array_equal(rows, expected)
    assert rows.index.equals(DAYS[N:])  # by the dates of y: the scaler has dropped those of X
    assert forecast(pipe, 5, context=X[-5:]).index.equals(DAYS[N - 1 : N + 4])
    assert pipe.predict(X).index.equals(pd.RangeIndex(N - 1))
    pipe.set_output(transform="pandas").fit(X, y)
    assert pipe.predict(X).index.equals(X.index)
    scaled = TransformedTargetRegressor(asked(model), transformer=StandardScaler()).fit(X, y)
    assert forecast(scaled, LATER).index.equals(DAYS[N:])
    search = GridSearchCV(pipe, {f"{name_of(model).lower()}__leak_rate": [0.5]}, cv=2)
    search.fit(X, y)
    assert list(forecast(search, 2).columns) == ["a", "b"]


def test_feedback_weights_give_rows_the_dates_of_their_own_inputs():
    rng = np.random.default_rng(0)
    known = pd.DataFrame({"temp": rng.normal(size=N + LATER)}, DAYS)
    y = 0.5 * known["temp"].rename("load")
    model = ESNRegressor(10, feedback=True, alpha=1.0, random_state=0).set_output(predict="pandas")
    model.fit(known[:N], y[:N])
    rows = model.forecast(LATER, exog=known[N:])
    assert rows.index.equals(DAYS[N:])
    assert np.array_equal(rows, model.predict(known[N:]))
    rows = model.forecast(3, context=known[N : N + 4], exog=known[N + 4 : N + 6])
    assert rows.index.equals(DAYS[N + 3 : N + 6])  # row 0 is what predict says of the last one
    model.fit(known[:N], y[2 : N + 2].set_axis(DAYS[2 : N + 2]))
    assert model.forecast(3, exog=known[N : N + 3]).index.equals(DAYS[N + 2 : N + 5])
    rows = model.forecast(3, context=known[N : N + 4], exog=known[N + 4 : N + 6])
    assert rows.index.equals(DAYS[N + 5 : N + 8])


def test_what_cannot_be_continued_raises_with_a_remedy():
    whole = series()
    events = DAYS[np.cumsum(np.random.default_rng(0).integers(1, 3, 50))]
    for index in (events, pd.date_range("1900-01-01", periods=N, freq=pd.offsets.Easter())):
        part = whole[: len(index)].set_axis(index)
        model = asked(NUMBERS[1])
        with pytest.warns(UserWarning, match="No frequency") if index is events else _nothing():
            model.fit(*make_forecast_pairs(part))
        with pytest.raises(ValueError, match=r"no frequency.*number the rows.*default"):
            model.forecast(3)
        assert len(model.set_output(predict="default").forecast(3)) == 3
    late = whole[:N].set_axis(pd.date_range(end="2262-04-10", periods=N, unit="ns"))
    with pytest.raises(OverflowError, match="as_unit"):
        asked(NUMBERS[1]).fit(*make_forecast_pairs(late)).forecast(3)
    labels = whole.set_axis([f"row {i}" for i in range(len(whole))])
    model = asked(NUMBERS[1]).fit(*make_forecast_pairs(labels))
    assert model.forecast(3).index.equals(pd.RangeIndex(3))  # labels tell nothing


def test_holidays_that_the_index_carries():
    holidays = pd.offsets.CustomBusinessDay(holidays=["2020-03-02", "2020-04-24"])
    index = pd.date_range("2020-01-01", periods=N + LATER, freq=holidays)
    model = asked(NUMBERS[1]).fit(*make_forecast_pairs(series(index[:N])))
    assert model.forecast(LATER).index.equals(index[N:])


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


# ---------------------------------------------------------------- what keeps the setting


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("model", [*NUMBERS, *LABELS], ids=name_of)
def test_the_setting_and_the_names_are_kept(tmp_path, model):
    X, y = make_forecast_pairs(series())
    y = (y > 0).rename(("a", 1)) if model in LABELS else y.rename(("a", 1))
    index = pd.MultiIndex.from_product([DAYS[:1], X.index])
    X, y = X.set_axis(index), y.set_axis(index)
    model = asked(model).fit(X, y)
    expected = model.predict(X)
    assert expected.name == ("a", 1)
    save(model, tmp_path / "model.npz")
    joblib.dump(model, kept := io.BytesIO())
    kept.seek(0)
    for again in (load(tmp_path / "model.npz"), joblib.load(kept), clone(model).fit(X, y)):
        pd.testing.assert_series_equal(again.predict(X), expected)
        if model not in LABELS and hasattr(model, "forecast"):
            assert again.forecast(3).equals(model.forecast(3))
    copied = clone(model).set_output(predict="default")
    assert isinstance(model.predict(X), pd.Series)
    assert isinstance(copied.fit(X, y).predict(X), np.ndarray)


def test_searches_and_scores_do_not_mind():
    X, y = make_forecast_pairs(series())
    plain, model = NUMBERS[0], asked(NUMBERS[0])
    split = TimeSeriesSplit(2)
    for scoring in ("r2", "neg_mean_absolute_error", washout_scorer("r2", 3)):
        scores = [cross_val_score(each, X, y, cv=split, scoring=scoring) for each in (plain, model)]
        assert np.array_equal(*scores)
    with pytest.warns(UserWarning, match="No frequency"):
        rows = cross_val_predict(model, X, y, cv=4)
    assert len(rows) == len(X)
    search = GridSearchCV(model, {"leak_rate": [0.5, 1.0]}, cv=split).fit(X, y)
    assert search.predict(X).index.equals(X.index)
    assert search.predict(X).name == "sales"
    loops = ClosedLoopSearchCV(model, {"alpha": [1e-4, 1.0]}, horizon=4, n_starts=2).fit(X, y)
    assert loops.forecast(3).index.equals(DAYS[-1] + pd.to_timedelta([1, 2, 3], "D"))
    labels = (y > 0).rename("high")
    clf = asked(LABELS[0])
    assert np.isfinite(cross_val_score(clf, X, labels, cv=split)).all()


def test_a_trained_copy_keeps_names_and_setting():
    X, y = make_forecast_pairs(series())
    esn = asked(NUMBERS[0]).fit(X, y)
    rnn = esn.to_rnn()
    assert np.allclose(rnn.predict(X), esn.predict(X))
    assert rnn.predict(X).name == "sales"
    assert rnn.forecast(3).index.equals(esn.forecast(3).index)


def test_transformers_have_the_setting_of_scikit_learn():
    frame = series().to_frame()
    states = ReservoirTransformer(5, random_state=0).set_output(transform="pandas")
    assert states.fit_transform(frame).index.equals(frame.index)
    with pytest.raises(TypeError, match="predict"):
        states.set_output(predict="pandas")
    with pytest.raises(TypeError, match="transform"):
        NUMBERS[0].set_output(transform="pandas")


def test_other_containers_and_a_missing_pandas(monkeypatch):
    with pytest.raises(ValueError, match="predict='polars'"):
        clone(NUMBERS[0]).set_output(predict="polars")
    model = asked(NUMBERS[1]).fit(*(each.to_numpy() for each in make_forecast_pairs(series())))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas.*default"):
        clone(NUMBERS[0]).set_output(predict="pandas")
    with pytest.raises(ImportError, match="pip install pandas"):
        model.forecast(2)
    assert len(model.set_output(predict="default").forecast(2)) == 2
