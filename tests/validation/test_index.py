"""The pandas index of rows: whether rows follow, are in order, and belong together."""

import copy
import io
import warnings
from itertools import pairwise

import joblib
import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from sklearn.compose import TransformedTargetRegressor  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.metrics import r2_score  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    KFold,
    TimeSeriesSplit,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from reservoir import (  # noqa: E402
    ESNClassifier,
    ESNRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    forecast,
    load,
    save,
)
from reservoir._validation import ending_of, steps_between  # noqa: E402
from reservoir.datasets import mackey_glass  # noqa: E402
from reservoir.model_selection import ContextSplit, stack_sequences, washout_scorer  # noqa: E402

pytestmark = pytest.mark.both_engines

SEEDS = range(3)
N, LATER = 300, 200
DOES_NOT_FOLLOW = "does not follow"
MONTH_END = pd.offsets.MonthEnd()

REGULAR = {
    "days": pd.date_range("2020-01-01", periods=N + LATER, freq="D"),
    "hours": pd.date_range("2020-01-01", periods=N + LATER, freq="h", tz="Europe/Berlin"),
    # the last training day is 23 hours long
    "days where clocks change": pd.date_range(
        end=pd.Timestamp("2024-03-31", tz="Europe/Berlin"), periods=N, freq="D"
    ).append(pd.date_range("2024-04-01", periods=LATER, freq="D", tz="Europe/Berlin")),
    "seconds": pd.date_range("2020-01-01", periods=N + LATER, freq="s").as_unit("s"),
    "month ends": pd.date_range("1980-01-31", periods=N + LATER, freq=MONTH_END),
    "quarters": pd.date_range("1900-03-31", periods=N + LATER, freq=pd.offsets.QuarterEnd()),
    "business days": pd.bdate_range("2020-01-01", periods=N + LATER),
    "months": pd.period_range("1980-01", periods=N + LATER, freq="M"),
    "numbers": pd.Index(np.arange(N + LATER) + 17),
    "every third": pd.RangeIndex(0, 3 * (N + LATER), 3),
    "floats": pd.Index(0.1 * np.arange(N + LATER)),
    "positions": pd.RangeIndex(N + LATER),
}
# what pandas infers no frequency of
NOT_INFERRED = {
    "months on a fixed day": pd.DateOffset(months=1),
    "half months": pd.offsets.SemiMonthBegin(day_of_month=16),
    "last Fridays": pd.offsets.LastWeekOfMonth(weekday=4),
    "days but Sundays": pd.offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat"),
    "every second work day": pd.offsets.BusinessDay(2),
}
EVENTS = pd.DatetimeIndex(
    pd.Timestamp("2020-01-01")
    + pd.to_timedelta(np.cumsum(np.random.default_rng(0).integers(1, 9, N + LATER)), "h")
)


def table(index, seed=0):
    series = mackey_glass(len(index) + 1, random_state=seed).ravel()
    return pd.DataFrame({"x": series[:-1]}, index=index), pd.Series(series[1:], index=index)


def network(seed=0, **params):
    return ESNRegressor(30, random_state=seed, **params)


def restarted(call):
    """Return what a call answers that says that rows do not follow, once."""
    with pytest.warns(UserWarning, match=DOES_NOT_FOLLOW) as caught:
        answer = call()
    assert len(caught) == 1
    return answer


def test_steps_between_are_counted_though_floats_are_rounded():
    index = REGULAR["floats"]
    rows = np.zeros((len(index), 1))
    ends = [ending_of(pd.DataFrame(rows[:k], index=index[:k])) for k in range(3, len(index))]
    assert [steps_between(ends[0], end) for end in ends] == list(range(len(ends)))
    assert [steps_between(*pair) for pair in pairwise(ends)] == [1] * (len(ends) - 1)


# ---------------------------------------------------------------- initial_state="last"


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("copied", [False, True], ids=["", "without freq"])
@pytest.mark.parametrize("kind", REGULAR)
def test_runs_continue_where_rows_follow_and_only_there(kind, copied):
    X, y = table(REGULAR[kind], seed=1)
    if copied:  # as behind an array of rows, which cross-validation picks
        X, y = X.iloc[np.arange(len(X))], y.iloc[np.arange(len(X))]
    esn = network().fit(X.iloc[:N], y.iloc[:N])
    following = X.iloc[N : N + 50]
    expected = esn.predict(following, initial_state=esn.state_)
    assert np.array_equal(esn.predict(following), expected)
    for rows in (X.iloc[N + 1 :], X.iloc[N + 100 :], X.iloc[N - 1 :], X.iloc[50:90]):
        steady = esn.predict(rows, initial_state="steady")
        assert np.array_equal(restarted(lambda rows=rows: esn.predict(rows)), steady)
        assert not np.allclose(steady, esn.predict(rows, initial_state=esn.state_))


def test_positions_of_cross_validation():
    X, y = table(pd.RangeIndex(200))
    esn = network().fit(X.iloc[40:], y.iloc[40:])
    restarted(lambda: esn.predict(X.iloc[:40]))  # the first fold: again RangeIndex(0, 40)
    kept = np.r_[0:80, 120:200]
    esn.fit(X.iloc[kept], y.iloc[kept])
    restarted(lambda: esn.predict(X.iloc[80:120]))


@pytest.mark.parametrize(
    "index",
    [
        None,
        pd.RangeIndex(N + LATER),
        pd.Index([f"row {i}" for i in range(N + LATER)]),
        pd.Index(np.random.default_rng(0).integers(0, 24, N + LATER)),  # labels, not places
        pd.CategoricalIndex(np.arange(N + LATER) % 7),
    ],
    ids=["arrays", "positions twice", "text", "hours", "categories"],
)
def test_runs_continue_where_nothing_is_known(index):
    X, y = table(pd.RangeIndex(N + LATER))
    for start in (N + 50, 20):
        if index is None:
            parts = X[:N].to_numpy(), y[:N].to_numpy(), X[start:].to_numpy()
        else:
            X, y = X.set_axis(index), y.set_axis(index)
            parts = X.iloc[:N], y.iloc[:N], X.iloc[start:]
        if isinstance(index, pd.RangeIndex):
            parts = *parts[:2], parts[2].reset_index(drop=True)
        esn = network().fit(*parts[:2])
        assert np.array_equal(
            esn.predict(parts[2]), esn.predict(parts[2], initial_state=esn.state_)
        )


def test_other_kinds_of_index_cannot_be_compared():
    X, y = table(REGULAR["days"])
    esn = network().fit(X[:N], y[:N])
    for index in (X.index.tz_localize("UTC"), X.index.to_period(), np.arange(500) + 3):
        esn.predict(X.set_axis(index)[N + 20 :])  # no warning


def test_a_zone_is_no_gap():
    X, y = table(REGULAR["days"].tz_localize("UTC"))
    esn = network().fit(X[:N], y[:N])
    esn.predict(X[N:].tz_convert("Asia/Tokyo"))
    esn.predict(X[N:].set_axis(X.index[N:].as_unit("ns")))
    restarted(lambda: esn.predict(X[N + 1 :].tz_convert("Asia/Tokyo")))


def test_irregular_steps_continue_within_the_longest():
    X, y = table(EVENTS)
    with pytest.warns(UserWarning, match="No frequency"):
        esn = network().fit(X[:N], y[:N])
    end = X.index[N - 1]
    for hours, follows in ((1, True), (8, True), (9, False), (0, False), (-5, False)):
        rows = X[N:].set_axis(X.index[N:] - X.index[N] + end + pd.Timedelta(hours=hours))
        esn.predict(rows) if follows else restarted(lambda rows=rows: esn.predict(rows))


def test_zeros_where_there_is_no_fixed_point():
    X, y = table(REGULAR["days"])
    esn = network(spectral_radius=3.0, input_scaling=0.1).fit(X[:N], y[:N])
    with pytest.warns(Warning, match="no fixed point"):
        zeros = esn.predict(X[:50], initial_state="steady")
    assert np.array_equal(esn.predict(X[:50], initial_state="zeros"), zeros)
    with pytest.warns(UserWarning, match="starts from zeros instead") as caught:
        assert np.array_equal(esn.predict(X[:50]), zeros)
    assert len(caught) == 1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_cross_validation(seed):
    series = mackey_glass(1501, random_state=seed).ravel()
    index = pd.date_range("2020-01-01", periods=1500, freq="D")
    X, y = pd.DataFrame({"x": series[:-1]}, index=index), pd.Series(series[1:], index=index)
    params = {"leak_rate": 1.0, "spectral_radius": 0.95, "alpha": 1e-6}
    esn = ESNRegressor(200, **params, random_state=seed)
    arrays = X.to_numpy(), y.to_numpy()
    untold = cross_val_score(esn, *arrays, cv=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = cross_val_score(esn, X, y, cv=5)
    texts = [str(w.message) for w in caught]
    assert sum(DOES_NOT_FOLLOW in text for text in texts) == 4  # the last fold follows
    assert sum("No frequency" in text for text in texts) == 3  # those that train across a hole
    assert told.min() > max(0.99, untold.min())
    assert told[4] == pytest.approx(untold[4], abs=1e-12)
    split = TimeSeriesSplit(3)
    followed = cross_val_score(esn, *arrays, cv=split)
    assert np.array_equal(cross_val_score(esn, X, y, cv=split), followed)
    esn.set_params(initial_state="zeros")
    with pytest.warns(UserWarning, match="No frequency"):
        warm = cross_val_score(esn, X, y, cv=ContextSplit(5), scoring=washout_scorer())
    assert warm.min() > 0.9999


def test_learning_curve_and_training_rows():
    X, y = table(REGULAR["days"])
    with pytest.warns(UserWarning, match=DOES_NOT_FOLLOW):
        learning_curve(network(), X[:N], y[:N], cv=TimeSeriesSplit(2), train_sizes=[0.5, 1.0])
    esn = network().fit(X[:N], y[:N])
    score = restarted(lambda: esn.score(X[:N], y[:N]))
    assert score == r2_score(y[:N], esn.predict(X[:N], initial_state="steady"))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_scaler_the_index_of_y_counts(seed):
    X, y = table(REGULAR["days"], seed)
    later = y.shift(-5).set_axis(X.index + pd.Timedelta(days=5))[: N + 100]  # stamps of targets
    for target in (y, later):
        pipe = make_pipeline(StandardScaler(), network(seed)).fit(X[:N], target[:N])
        esn = pipe[-1]
        following, train = X[N : N + 100], X[:N]
        continued = pipe.score(following, target[N : N + 100])
        assert continued == r2_score(target[N : N + 100], pipe.predict(following))
        steady = restarted(lambda: pipe.score(train, target[:N]))  # noqa: B023
        rows = esn.predict(pipe[:-1].transform(train), initial_state="steady")
        assert steady == r2_score(target[:N], rows)
        esn.predict(pipe[:-1].transform(X[100:]))  # no index, no y: nothing is known


def test_score_reads_the_index_of_y_where_fit_saw_both():
    X, y = table(REGULAR["days"])
    esn = network().fit(X[:N], y[:N])
    lost = X[N:].reset_index(drop=True)
    assert esn.score(lost, y[N:]) == esn.score(X[N:], y[N:])
    restarted(lambda: esn.score(lost[9:].reset_index(drop=True), y[N + 9 :]))
    esn.fit(X[:N].reset_index(drop=True), y[:N])
    esn.predict(X[N + 9 :])  # fit saw the index of y alone, predict that of X: nothing is known
    restarted(lambda: esn.score(X[N + 9 :], y[N + 9 :]))


ALL = [
    ESNRegressor(20, random_state=0),
    ESNRegressor(20, feedback=True, alpha=1.0, random_state=0),  # a loop that stays
    ESNRegressor(20, readout=Ridge(), random_state=0),
    ESNClassifier(20, random_state=0),
    RNNRegressor(8, init="esn", max_iter=2, random_state=0),
    RNNRegressor(8, cell="lstm", init="esn", max_iter=2, random_state=0),
    RNNClassifier(8, init="esn", max_iter=2, random_state=0),
]


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("model", ALL, ids=repr)
def test_every_estimator(model):
    X, y = table(REGULAR["days"])
    y = (y > y.mean()).astype(float) if isinstance(model, (ESNClassifier, RNNClassifier)) else y
    model.fit(X[:N], y[:N])
    before = {name: repr(value) for name, value in vars(model).items()}
    names = ["predict", "predict_proba", "decision_function", "states"]
    for name in (name for name in names if hasattr(model, name)):
        method = getattr(model, name)
        assert np.array_equal(method(X[N:]), method(X[N:], initial_state=model.state_))
        rows = restarted(lambda method=method: method(X[N + 3 :]))
        assert np.array_equal(rows, method(X[N + 3 :], initial_state="steady"))
    restarted(lambda: model.score(X[N + 3 :], y[N + 3 :]))
    model.score(X[N:], y[N:])
    assert {name: repr(value) for name, value in vars(model).items()} == before


def test_transformer():
    X, y = table(REGULAR["days"])
    pipe = make_pipeline(ReservoirTransformer(20, random_state=0), Ridge())
    pipe.fit(X[:N], y[:N])
    assert pipe.score(X[N:], y[N:]) == r2_score(y[N:], pipe.predict(X[N:]))
    states = restarted(lambda: pipe[0].transform(X[:50]))
    steady = ReservoirTransformer(20, initial_state="steady", random_state=0).fit(X[:N])
    assert np.array_equal(states, steady.transform(X[:50]))
    ReservoirTransformer(20, initial_state="zeros").fit(X[:N]).transform(X[:50])  # silent


def test_explicit_starts_do_not_warn():
    X, y = table(REGULAR["days"])
    esn = network().fit(X[:N], y[:N])
    for start in ("zeros", "steady", esn.state_):
        esn.predict(X[:50], initial_state=start)
        esn.set_params(initial_state=start).predict(X[:50])


def test_stream_and_context_start_as_predict_does():
    X, y = table(REGULAR["days"])
    esn = network().fit(X[:N], y[:N])
    stream = esn.stream()
    first = restarted(lambda: stream.predict(X[N + 5 : N + 10]))
    rows = np.r_[first, stream.predict(X[N + 10 :])]
    assert np.allclose(rows, restarted(lambda: esn.predict(X[N + 5 :])))
    for context in (X[N:], X[N - 50 : N]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = esn.forecast(1, context=context)
            assert one[0] == esn.predict(context)[-1]
    restarted(lambda: esn.forecast(3, context=X[N - 50 : N]))
    esn.forecast(3, context=X[N:])
    esn.forecast(3)
    esn.forecast(3, initial_state="last")


def test_several_sequences_start_from_zeros_as_before():
    X, y = table(REGULAR["days"])
    esn = network().fit([X[:N]], [y[:N]])
    assert np.array_equal(esn.predict([X[N:]])[0], esn.predict(X[N:]))
    restarted(lambda: esn.predict([X[N + 1 :]]))
    two = esn.predict([X[:50], X[90:140]])
    assert np.array_equal(two[1], esn.predict(X[90:140], initial_state="zeros"))
    esn.fit([X[:100], X[150:N]], [y[:100], y[150:N]])
    assert np.array_equal(esn.predict(X[:50]), esn.predict(X[:50], initial_state="zeros"))


def test_one_sequence_of_a_multiindex():
    X, y = table(REGULAR["days"])
    index = pd.MultiIndex.from_product([["a"], X.index])
    X, y = X.set_axis(index), y.set_axis(index)
    esn = network().fit(X[:N], y[:N])
    assert np.array_equal(esn.predict(X[N:]), esn.predict(X[N:], initial_state=esn.state_))
    restarted(lambda: esn.predict(X[N + 1 :]))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("model", [ALL[0], ALL[3], ALL[4], ALL[6]], ids=repr)
def test_partial_fit_warns_of_missing_rows(model):
    X, y = table(REGULAR["days"])
    y = (y > y.mean()).astype(float) if isinstance(model, (ESNClassifier, RNNClassifier)) else y
    model.__dict__.update(type(model)(**model.get_params()).__dict__)
    for name in [name for name in vars(model) if name.endswith("_") or name.startswith("_")]:
        delattr(model, name)
    model.partial_fit(X[:100], y[:100]).partial_fit(X[100:150], y[100:150])
    with pytest.warns(
        UserWarning, match=r"begins at 2020-06-09 and that chunk ended at 2020-05-29"
    ):
        model.partial_fit(X[160:200], y[160:200])
    model.partial_fit(X[250:N], y[250:N], new_sequence=True)
    for i in range(N, N + 3):  # one row at a time
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    with pytest.warns(UserWarning, match="new_sequence"):
        model.partial_fit(X[N + 5 : N + 6], y[N + 5 : N + 6])
    model.predict(X[N + 6 :])
    restarted(lambda: model.predict(X[N + 7 :]))


CHUNKED = {
    **{kind: index for kind, index in REGULAR.items() if kind != "positions"},
    "last Fridays": pd.date_range("1990-01-01", periods=N, freq=NOT_INFERRED["last Fridays"]),
    "second Tuesdays": pd.date_range(
        "1990-01-01", periods=N, freq=pd.offsets.WeekOfMonth(week=1, weekday=1)
    ),
    "business month ends": pd.date_range("1990-01-01", periods=N, freq=pd.offsets.BMonthEnd()),
    "business days in a zone": pd.bdate_range("2020-03-01", periods=N, tz="Europe/Berlin"),
}


def chunks(esn, X, y, size, start=0, stop=70):
    for i in range(start, stop, size):
        rows = slice(i, min(i + size, stop))
        esn.partial_fit(X.iloc[rows], y.iloc[rows])
    return esn


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 12, 45])
@pytest.mark.parametrize("kind", CHUNKED)
def test_chunks_of_any_length_follow_one_another(kind, size):
    X, y = table(CHUNKED[kind])
    X, y = X.iloc[np.arange(200)], y.iloc[np.arange(200)]  # no freq any more
    for start in (31,) if size == 1 else (0, 2, 3):
        esn = chunks(network(), X, y, size, start)
    esn.predict(X.iloc[70:])
    restarted(lambda: esn.predict(X.iloc[110:]))
    with pytest.warns(UserWarning, match="new_sequence=True"):
        chunks(esn, X, y, size, 130, 130 + size)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_weeks_of_business_days_follow_one_another(zone):
    X, y = table(pd.bdate_range("2020-01-01", periods=120, tz=zone))
    X, y = X.iloc[np.arange(120)], y.iloc[np.arange(120)]
    esn = network()
    for _, week in X.groupby(X.index.tz_localize(None).to_period("W")):
        esn.partial_fit(week, y[week.index])
    monday = X.index.get_loc(X.index[X.index.day_of_week == 0][3])
    esn = chunks(network(), X, y, 5, monday, monday + 20)
    for skipped in (1, 5):  # a Monday, a week
        again = copy.deepcopy(esn)
        with pytest.warns(UserWarning, match="new_sequence=True"):
            chunks(again, X, y, 5, monday + 20 + skipped, monday + 25 + skipped)
    one = network().partial_fit(X[monday : monday + 5], y[monday : monday + 5])
    with pytest.warns(UserWarning, match="new_sequence=True"):  # its first weekend, and a Monday
        one.partial_fit(X[monday + 6 : monday + 9], y[monday + 6 : monday + 9])


def test_memory_of_stamps_restarts_where_rows_do_not_follow():
    X, y = table(REGULAR["business days"])
    X, y = X.iloc[np.arange(N)], y.iloc[np.arange(N)]
    for told in (False, True):
        esn = chunks(network(), X, y, 5, 0, 60)
        if told:
            esn.partial_fit(X[100:105], y[100:105], new_sequence=True)
        else:
            with pytest.warns(UserWarning, match="new_sequence=True"):
                esn.partial_fit(X[100:105], y[100:105])
        assert len(esn._model.progress.ended[0].recent) == 5
        chunks(esn, X, y, 5, 105, 200)
        assert len(esn._model.progress.ended[0].recent) == 40
        with pytest.warns(UserWarning, match="new_sequence=True"):
            esn.partial_fit(X[205:210], y[205:210])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "kind", ["business days", "month ends", "last Fridays", "months", "floats"]
)
def test_the_memory_of_stamps_is_saved(tmp_path, kind):
    X, y = table(CHUNKED[kind])
    X, y = X.iloc[np.arange(200)], y.iloc[np.arange(200)]
    for stop in (2, 4, 5, 60):
        esn = chunks(network(), X, y, 2, 0, stop)
        save(esn, tmp_path / "esn.npz")
        again = load(tmp_path / "esn.npz")
        assert again._model.progress.ended == esn._model.progress.ended
        chunks(again, X, y, 2, stop, stop + 30)
        with pytest.warns(UserWarning, match="new_sequence=True"):
            chunks(again, X, y, 2, stop + 45, stop + 47)


def test_saved_and_loaded(tmp_path):
    for kind in ("month ends", "months", "floats", "positions", "hours"):
        X, y = table(REGULAR[kind])
        esn = network().fit(X.iloc[:N], y.iloc[:N])
        save(esn, tmp_path / "esn.npz")
        joblib.dump(esn, pickled := io.BytesIO())
        pickled.seek(0)
        for again in (load(tmp_path / "esn.npz"), joblib.load(pickled)):
            assert np.array_equal(again.predict(X.iloc[N:]), esn.predict(X.iloc[N:]))
            restarted(lambda again=again, X=X: again.predict(X.iloc[N + 1 :]))


def test_files_that_know_less_of_the_index(tmp_path):
    X, y = table(REGULAR["month ends"])
    esn = network().fit(X[:N], y[:N])
    for name in ("recent", "frequency", "unit", "zone", "ids", "names"):
        vars(esn._model.progress.ended[0]).pop(name)
    save(esn, tmp_path / "esn.npz")
    again = load(tmp_path / "esn.npz").set_output(predict="pandas")
    again.predict(X[N:])
    restarted(lambda: again.predict(X[N + 1 :]))
    rows = again.forecast(3, context=X[N : N + 20])
    assert rows.index.equals(X.index[N + 20 : N + 23])
    with pytest.raises(ValueError, match="no frequency"):
        again.forecast(3)


def test_a_new_fit_forgets_where_the_old_one_ended():
    X, y = table(REGULAR["days"])
    esn = network().fit(X[:N], y[:N])
    restarted(lambda: esn.predict(X[:50]))
    esn.fit(X[:N].reset_index(drop=True), y[:N].to_numpy()).predict(X[:50])
    rnn = network().fit(X[:N], y[:N]).to_rnn()
    restarted(lambda: rnn.predict(X[:50]))
    with pytest.raises(ValueError, match="not increasing"):
        rnn.fit(X[:N][::-1], y[:N][::-1])
    restarted(lambda: rnn.predict(X[:50]))  # a fit that fails leaves no trace


# ---------------------------------------------------------------- frequency


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("kind", ["days", "month ends", "business days", "months", "quarters"])
@pytest.mark.parametrize("hole", [1, 40])
def test_a_missing_row_is_named(kind, hole):
    X, y = table(REGULAR[kind])
    X, y = X[:N].drop(X.index[hole + 1]), y[:N].drop(y.index[hole + 1])
    a, b = (str(X.index[i]).removesuffix(" 00:00:00") for i in (hole, hole + 1))
    with pytest.warns(UserWarning, match="No frequency") as caught:
        network().fit(X, y)
    assert len(caught) == 1
    if hole == 40 or kind in ("days", "months"):
        one_hole = f"missing between row {hole} ({a}) and row {hole + 1} ({b}). The network "
        step = f"from row {hole} ({a}) to row {hole + 1} ({b}) is the first that does not fit"
        assert (one_hole if hole == 40 else step) in str(caught[0].message)
    with pytest.warns(UserWarning, match="No frequency"):
        esn = network().partial_fit(X[:150], y[:150])
    esn.partial_fit(X[150:], y[150:])  # said once
    assert caught[0].filename == __file__


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("kind", NOT_INFERRED)
def test_frequencies_that_pandas_does_not_infer(kind, zone):
    X, y = table(pd.date_range("1990-01-05", periods=120, freq=NOT_INFERRED[kind], tz=zone))
    X, y = X.iloc[np.arange(120)], y.iloc[np.arange(120)]  # no freq any more
    esn = network().fit(X[:60], y[:60])
    esn.predict(X[60:])
    restarted(lambda: esn.predict(X[61:]))
    esn.partial_fit(X[:60], y[:60], new_sequence=True).partial_fit(X[60:90], y[60:90])
    holed = np.r_[0:60, 70:120]
    with pytest.warns(UserWarning, match=r"missing between row 59 .* and row 60 "):
        network().fit(X.iloc[holed], y.iloc[holed])


HOLED = ["days", "hours", "seconds", "month ends", "quarters", "business days", "months"]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", HOLED)
def test_one_gap_is_distinguished_from_other_irregularities(kind):
    X, y = table(REGULAR[kind])
    esn = network(initial_state="zeros")
    with pytest.warns(UserWarning, match="No frequency") as caught:
        cross_val_score(esn, X[:N], y[:N], cv=ContextSplit(5, context=20))
    texts = [str(w.message) for w in caught]
    assert len(texts) == 3
    assert all("This is correct if a cross-validator removed them" in t for t in texts)
    assert "between row 59 (" in texts[0]
    assert "row 60 as the step after row 59" in texts[0]
    two_holes = np.r_[0:50, 60:100, 120:N]
    for rows in (two_holes, np.r_[0:50, 60:N:2], np.r_[0:50, 51, 53, 57:60]):
        with pytest.warns(UserWarning, match="is the first that does not fit.*events"):
            esn.fit(X.iloc[rows], y.iloc[rows])


def test_dated_rows_of_folds_that_are_no_blocks_are_named():
    X, _ = table(REGULAR["days"])
    labels = pd.Series(np.arange(N) ** 2 // 400 % 2, X.index[:N])
    clf = ESNClassifier(5, initial_state="zeros", random_state=0)
    said = "use KFold, which leaves out blocks of time; StratifiedKFold, the default"
    with pytest.warns(UserWarning, match=said):
        cross_val_score(clf, X[:N], labels)
    with pytest.warns(UserWarning, match="No frequency") as caught:
        cross_val_score(clf, X[:N], labels, cv=KFold(5))
    uneven = X.index[:N] + pd.to_timedelta(np.arange(N) ** 2 % 7, unit="min")
    with pytest.warns(UserWarning, match="No frequency") as others:
        clf.fit(X[:N].set_axis(uneven), labels.to_numpy())
    assert not any(said in str(w.message) for w in [*caught, *others])


def test_a_hole_that_no_rows_fill_is_a_step_that_does_not_fit():
    X, y = table(REGULAR["days"])
    index = X.index[:50].append(X.index[60:110] + pd.Timedelta(hours=5))
    with pytest.warns(UserWarning, match="is the first that does not fit"):
        network().fit(X[:100].set_axis(index), y[:100].to_numpy())
    nearer = X.index[:50].append(X.index[49:99] + pd.Timedelta(hours=5))
    with pytest.warns(UserWarning, match="is the first that does not fit"):
        network().fit(X[:100].set_axis(nearer), y[:100].to_numpy())


def test_frequency_of_each_sequence_and_of_y():
    X, y = table(REGULAR["days"])
    kept = np.r_[0:30, 31:100]
    with pytest.warns(
        UserWarning, match=r"sequence 1 of X: rows are missing between row 29 \(2020-01-30\)"
    ):
        network().fit([X[:100], X.iloc[kept]], [y[:100], y.iloc[kept]])
    with pytest.warns(UserWarning, match="index of y: rows are missing between row 29"):
        make_pipeline(StandardScaler(), network()).fit(X.iloc[kept], y.iloc[kept])
    stacked = pd.concat([X[:100], X.iloc[kept]]).assign(id=np.repeat([0, 1], [100, 99]))
    with pytest.warns(
        UserWarning, match=r"index of X: rows are missing between row 129 \(2020-01-30\)"
    ):
        network(sequence_column="id").fit(stacked, np.zeros(199))
    network().fit(X[:2], y[:2])  # two rows have no frequency


# ---------------------------------------------------------------- y beside X


def refused(X, y, row):
    esn = network()
    with pytest.raises(ValueError, match=f"index of y does not match the index of X: row {row} "):
        esn.fit(X, y)
    esn.fit(X.reset_index(drop=True), y.to_numpy())
    with pytest.raises(ValueError, match=f"index of y does not match the index of X: row {row} "):
        esn.score(X, y)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("kind", [kind for kind in REGULAR if kind != "positions"])
@pytest.mark.parametrize("h", [1, 3])
def test_targets_may_lie_ahead_by_a_constant_offset(kind, h):
    X, y = table(REGULAR[kind])
    network().fit(X.iloc[:N], y.iloc[h : N + h])
    network().fit(X.iloc[:100], y.iloc[N : N + 100])  # no date of y's is among those of X
    refused(X.iloc[h : N + h], y.iloc[:N], 0)  # behind
    order = np.r_[0:50, 51, 50, 52:N]
    refused(X.iloc[:N], y.iloc[order], 50)
    refused(X.iloc[:N], y.drop(y.index[50 + h]).iloc[h : N + h], 50)


CALENDARS = {
    "month ends": REGULAR["month ends"],
    "quarters": REGULAR["quarters"],
    "business days": REGULAR["business days"],
    "zone": REGULAR["business days"].tz_localize("Europe/Berlin"),
    "holidays": REGULAR["business days"].delete(np.arange(17, 480, 23)),
    "months": REGULAR["months"],
    "days": REGULAR["days"],
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", CALENDARS)
@pytest.mark.parametrize("h", [1, 3, 5, 12])
def test_targets_keep_their_dates_where_rows_are_cut_out(kind, h):
    X, y = table(CALENDARS[kind])
    X, y = X.iloc[:-h], y.iloc[h:]
    holes = [(start, start + n) for start in (2, 101) for n in (1, 2, h, h + 1, 40)]
    kinds = [np.r_[0:start, stop:240] for start, stop in holes]
    rng = np.random.default_rng(h)
    kinds += [np.flatnonzero(rng.random(len(X)) > share) for share in 3 * [0.02, 0.1, 0.5]]
    for kept in kinds:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No frequency")
            network().fit(X.iloc[kept], y.iloc[kept])
    kept = np.r_[0:100, 140:240]
    with pytest.raises(ValueError, match="index of y does not match the index of X"):
        network().fit(X.iloc[kept], y.iloc[kept[::-1]])
    with pytest.raises(ValueError, match="index of y does not match the index of X"):
        network().fit(X.iloc[kept], y.iloc[np.r_[0:50, 51, 50, 52:100, 140:240]])
    if kind == "holidays" and h > 3:
        return  # a weekend in every offset: rows may be missing
    changed = np.r_[0:50, 51:101, 140:240]
    with pytest.raises(ValueError, match="index of y does not match the index of X: row 50 "):
        network().fit(X.iloc[kept], y.iloc[changed])


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALENDARS)
def test_few_rows_of_targets_that_keep_their_dates(kind):
    X, y = table(CALENDARS[kind])
    esn = network(initial_state="zeros").fit(X[:16], y[:16].to_numpy())
    for h in (1, 2, 3, 5, 10):
        for length in (2, 3, 5, 10):
            for start in range(300, 340, 3):
                test = X.iloc[start : start + length], y.iloc[start + h : start + h + length]
                assert np.isfinite(esn.score(*test))
            with pytest.raises(ValueError, match="does not match"):
                esn.score(test[0], test[1][::-1])


def test_targets_of_another_frequency_raise():
    X, y = table(REGULAR["days"])
    for start in ("2020-01-03", "2030-01-03"):
        weeks = pd.date_range(start, periods=100, freq="W")
        refused(X[:100], y[:100].set_axis(weeks), 1)
    X, y = table(REGULAR["month ends"])
    within = X.index[:50] + pd.to_timedelta(np.arange(50) % 7 + 1, "D")
    refused(X[:50], y[:50].set_axis(within), 0)


def test_a_constant_duration_is_an_offset():
    X, y = table(REGULAR["month ends"])
    network().fit(X, y.set_axis(y.index + pd.Timedelta(hours=5)))
    numbers = pd.Index(np.arange(len(X)) * 2 + 5)
    network().fit(X.set_axis(numbers), y.set_axis(numbers + 1))


def test_units_and_zones_of_equal_dates():
    X, y = table(REGULAR["hours"])
    network().fit(X, y.set_axis(y.index.as_unit("ns").tz_convert("UTC")))
    fine = y.index.as_unit("ns")
    with pytest.raises(ValueError, match="row 30 "):
        network().fit(X, y.set_axis(fine.delete(30).append(fine[-1:] + MONTH_END)))


def test_no_check_without_information_in_the_index():
    X, y = table(REGULAR["days"])
    network().fit(X, y.reset_index(drop=True))
    network().fit(X, y.to_numpy())
    network().fit(X.reset_index(drop=True), y[::1])
    network().fit(X.set_axis(np.arange(500) + 5), y)  # dates and numbers
    order = np.random.default_rng(0).permutation(500)
    numbered, target = X.set_axis(np.arange(500) + 5), y.set_axis(np.arange(500) + 5)
    with pytest.warns(UserWarning, match="permutation"):  # a shuffled split
        network().fit(numbered.iloc[order], target.iloc[order])
    refused(numbered.iloc[order], target, int(np.argmax(order != np.arange(500))))


def test_y_beside_x_in_every_container():
    X, y = table(REGULAR["days"])
    index = pd.MultiIndex.from_product([["b", "a"], X.index[:250]])
    Xm, ym = X.set_axis(index), y.set_axis(index)
    network().fit(Xm, ym)
    ahead = pd.MultiIndex.from_product([["b", "a"], X.index[2:252]])
    network().fit(Xm, ym.set_axis(ahead))
    swapped = pd.MultiIndex.from_product([["a", "b"], X.index[:250]])
    refused(Xm, ym.set_axis(swapped), 0)
    with pytest.raises(
        ValueError, match="sequence 1 of y does not match the index of sequence 1 of X"
    ):
        network().fit([X[:200], X[:200]], [y[:200], y.iloc[np.r_[0:9, 10:201]]])
    for model in (ALL[3], ALL[4], ALL[6]):
        labels = (y > y.mean()).astype(int)
        with pytest.raises(ValueError, match="does not match"):
            model.fit(X[1:], labels[:-1])
    RNNRegressor(8, target="last", init="esn", max_iter=1).fit(
        [X[:50], X[:50]], y[:2]
    )  # one per sequence


def test_an_id_may_be_a_date():
    X, y = table(REGULAR["days"])
    frame = X.assign(day=X.index.normalize() - pd.to_timedelta(np.arange(500) % 250, "D"))
    esn = network(sequence_column="day").fit(frame, y)
    assert len(esn.washout_) == 2


# ---------------------------------------------------------------- frames of a forecast


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_exog_and_context_go_by_name(seed, piped):
    rng = np.random.default_rng(seed)
    series = mackey_glass(401, random_state=seed).ravel()
    X = pd.DataFrame({"x": series[:-1], "temp": rng.random(400), "price": 5 * rng.random(400)})
    model = network(seed)
    model = make_pipeline(StandardScaler(), model) if piped else model
    model.fit(X[:N], series[1 : N + 1])
    exog = X[["temp", "price"]][N : N + 10]
    say = (lambda n, **k: forecast(model, n, **k)) if piped else model.forecast
    expected = say(10, exog=exog.to_numpy())
    assert np.array_equal(say(10, exog=exog), expected)
    assert np.array_equal(say(10, exog=exog[["price", "temp"]]), expected)
    context = X[N : N + 50]
    expected = say(11, context=context, exog=exog)
    shuffled = context[["price", "x", "temp"]]
    assert np.array_equal(say(11, context=shuffled, exog=exog[["price", "temp"]]), expected)
    for wrong, text in (
        (exog.rename(columns={"temp": "t"}), r"exog lacks \['temp'\] and has \['t'\]"),
        (exog[["temp"]], r"exog lacks \['price'\]"),
        (X[N : N + 10], r"exog has \['x'\]"),
    ):
        with pytest.raises(ValueError, match=text):
            say(10, exog=wrong)
    with pytest.raises(ValueError, match=r"context lacks \['temp'\]"):
        say(3, context=context[["price", "x"]], exog=exog[:2])


def test_names_with_an_id_column_and_with_feedback():
    rng = np.random.default_rng(0)
    series = mackey_glass(401, random_state=0).ravel()
    X = pd.DataFrame({"x": series[:-1], "a": rng.random(400), "id": 7, "b": rng.random(400)})
    esn = network(sequence_column="id").fit(X[:N], series[1 : N + 1])
    exog = X[["a", "b"]][N : N + 5]
    assert np.array_equal(
        esn.forecast(5, exog=exog[["b", "a"]]), esn.forecast(5, exog=exog.to_numpy())
    )
    context = X[N:]
    assert np.array_equal(
        esn.forecast(1, context=context[["id", "b", "x", "a"]]), esn.predict(context)[-1:]
    )
    fed = network(feedback=True).fit(X[["a", "b"]][:N], series[:N])
    assert np.array_equal(fed.forecast(5, exog=exog[["b", "a"]]), fed.predict(exog))


def test_frames_go_by_position_where_fit_saw_no_names():
    rng = np.random.default_rng(0)
    series = mackey_glass(401, random_state=0).ravel()
    X = np.column_stack([series[:-1], rng.random((400, 2))])
    esn = network().fit(X[:N], series[1 : N + 1])
    exog = pd.DataFrame(X[N : N + 5, 1:], columns=["p", "q"])
    assert np.array_equal(esn.forecast(5, exog=exog), esn.forecast(5, exog=exog.to_numpy()))


# ---------------------------------------------------------------- missing targets


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_leave_out_missing_targets(seed):
    X, y = table(REGULAR["days"], seed)
    rng = np.random.default_rng(seed)
    gappy = y.where(rng.random(len(y)) > 0.2)
    known = gappy.notna().to_numpy()
    skip = network(seed, missing_targets="skip")
    esn = skip.fit(X[:N], gappy[:N])
    rows, seen = esn.predict(X[N:]), known[N:]
    expected = r2_score(y[N:][seen], rows[seen])
    assert esn.score(X[N:], gappy[N:]) == expected
    weight = rng.random(LATER)
    assert esn.score(X[N:], gappy[N:], weight) == r2_score(
        y[N:][seen], rows[seen], sample_weight=weight[seen]
    )
    assert esn.score([X[N:]], [gappy[N:].to_numpy()]) == expected
    later = seen & (np.arange(LATER) >= 40)
    of_later = y[N:][later], rows[later]
    expected = -np.abs(of_later[0] - of_later[1]).mean()
    for scoring, value in (
        ("r2", r2_score(*of_later)),
        (None, r2_score(*of_later)),
        ("neg_mean_absolute_error", expected),
    ):
        scorer = washout_scorer(scoring, 40)
        assert scorer(esn, X[N:], gappy[N:]) == pytest.approx(value, rel=1e-12)
    weighted = washout_scorer("r2", 40)(esn, X[N:], gappy[N:], sample_weight=weight)
    assert weighted == r2_score(*of_later, sample_weight=weight[later])
    pipe = make_pipeline(StandardScaler(), skip).fit(X[:N], gappy[:N])
    assert np.isfinite(washout_scorer()(pipe, X[N:], gappy[N:]))
    grid = {"esnregressor__leak_rate": [0.5, 1.0]}
    scorer = washout_scorer("r2", 20)
    search = GridSearchCV(pipe, grid, cv=TimeSeriesSplit(2), scoring=scorer).fit(X, gappy)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scaled = TransformedTargetRegressor(pipe, transformer=StandardScaler()).fit(X[:N], y[:N])
    for model in (search, scaled):
        kept = seen & (np.arange(LATER) >= 20)
        expected = r2_score(y[N:][kept], model.predict(X[N:])[kept])
        assert scorer(model, X[N:], gappy[N:]) == expected


def test_targets_of_several_columns_and_none_at_all():
    X, y = table(REGULAR["days"])
    both = pd.DataFrame({"a": y, "b": y**2})
    both.iloc[N + 50 : N + 60, 1] = np.nan
    esn = network(missing_targets="skip").fit(X[:N], both[:N])
    kept = np.r_[0:50, 60:LATER]
    expected = r2_score(both[N:].iloc[kept], esn.predict(X[N:])[kept])
    assert esn.score(X[N:], both[N:]) == expected
    assert washout_scorer("r2", 0)(esn, X[N:], both[N:]) == expected
    for score in (esn.score, lambda X, y: washout_scorer("r2", 10)(esn, X, y)):
        with pytest.raises(ValueError, match="nothing to score"):
            score(X[N:], both[N:] * np.nan)
    esn.set_params(missing_targets="raise")
    for score in (esn.score, lambda X, y: washout_scorer("r2", 10)(esn, X, y)):
        with pytest.raises(ValueError, match="NaN"):
            score(X[N:], both[N:])


def test_stacked_sequences_keep_their_scores():
    X, y = table(REGULAR["days"])
    Xs, ys, _ = stack_sequences([X[:200], X[200:400]], [y[:200], y[200:400]])
    ys[150:160] = np.nan
    esn = network(sequence_column=0, missing_targets="skip").fit(Xs, ys)
    score = washout_scorer("r2", 30)(esn, Xs, ys)
    kept = np.r_[30:150, 160:200, 230:400]
    assert score == r2_score(ys[kept], esn.predict(Xs)[kept])


def test_dates_in_polars_columns_raise(polars):
    dates = pd.date_range("2020-01-01", periods=40).to_pydatetime()
    values = np.random.default_rng(0).normal(size=40)
    y = values[::-1].copy()
    for column in (dates, [d.date() for d in dates], [d - dates[0] for d in dates]):
        table = polars.DataFrame({"a": values, "when": list(column)})
        with pytest.raises(TypeError, match="'when'"):
            ESNRegressor(10).fit(table, y)
    ESNRegressor(10).fit(table.drop("when"), y)
