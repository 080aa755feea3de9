"""The order of rows by their index: errors and warnings."""

import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from sklearn.base import clone  # noqa: E402
from sklearn.ensemble import BaggingRegressor  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from reservoir import (  # noqa: E402
    ESNClassifier,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNRegressor,
)
from reservoir.datasets import narma  # noqa: E402
from reservoir.model_selection import make_forecast_pairs  # noqa: E402

pytestmark = pytest.mark.one_engine
N = 24
LATER = np.r_[N // 2 : N]  # the rows of the second sequence, where there are two
STAMPS = {
    "dates": pd.date_range("2020-01-01", periods=N, freq="D"),
    "zone": pd.date_range("2020-03-20", periods=N, freq="D", tz="Europe/Berlin"),
    "periods": pd.period_range("2020-01", periods=N, freq="M"),
    "numbers": pd.RangeIndex(5, N + 5),
}
# which row stands where; equal stamps and missing ones are made of dates alone
FAULTS = {
    "falling": np.r_[0:13, 14, 13, 15:N],
    "reversed": np.r_[0 : N // 2, LATER[::-1]],
    "equal": np.r_[0:14, 13, 15:N],
    "missing": np.r_[0:N],
}


def made(stamps, fault, container):
    """Return X, y and a sequence column."""
    rows = FAULTS[fault]
    index = STAMPS[stamps][rows]
    if fault == "missing":
        index = index.where(np.arange(N) != 15)
    X = pd.DataFrame({"a": rows / 10.0}, index=index)
    y = pd.Series(rows / 5.0, index=index, name="b")
    ids = np.repeat(["q", "p"], N // 2)  # not in the order of the alphabet
    if container == "ids":
        return X.assign(id=ids), y, "id"
    if container == "ids by number, arrays":
        return X.assign(id=ids), y.to_numpy(), 1
    if container == "levels":
        levels = pd.MultiIndex.from_arrays([ids, index])
        return X.set_axis(levels), y.set_axis(levels), None
    if container == "list":
        return [X[: N // 2], X[N // 2 :]], [y[: N // 2], y[N // 2 :]], None
    if container == "object arrays":
        packed = np.empty((2, 2), dtype=object)
        for i, each in enumerate((X, y.to_numpy())):
            packed[i, 0], packed[i, 1] = each[: N // 2], each[N // 2 :]
        return packed[0], packed[1], None
    if container == "list, arrays":
        return [X[: N // 2], X[N // 2 :]], [y[: N // 2].tolist(), y[N // 2 :].tolist()], None
    if container == "y alone":
        return X.to_numpy(), y, None
    if container == "arrays":
        return X, y.to_numpy(), None
    return X, y, None


ALL = ["table", "arrays", "y alone", "levels", "ids", "ids by number, arrays", "list"]
ALL += ["list, arrays", "object arrays"]


def told(call, stamps, fault):
    """Return what a call raises of dates, or warns of where it is numbers."""
    if stamps == "numbers":
        with pytest.warns(UserWarning, match="permutation of whole numbers") as caught:
            call()
        assert len(caught) == 1
        assert caught[0].filename == __file__
        return str(caught[0].message)
    text = {"equal": "twice, in rows ", "missing": "no date in row "}.get(fault, "not increasing")
    with pytest.raises(ValueError, match=text) as error:
        call()
    return str(error.value)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("container", ALL)
@pytest.mark.parametrize(("stamps", "fault"), [
    *((stamps, fault) for stamps in ("dates", "zone", "periods") for fault in FAULTS),
    ("numbers", "reversed"),
])  # fmt: skip
def test_the_rows_in_disorder_are_named(stamps, fault, container):
    X, y, column = made(stamps, fault, container)
    esn = ESNRegressor(5, washout=0, sequence_column=column, random_state=0)
    message = told(lambda: esn.fit(X, y), stamps, fault)
    pairs = {"falling": (13, 14), "reversed": (12, 13), "equal": (13, 14), "missing": (15, 15)}
    a, b = pairs[fault]
    if "list" in container or "object" in container:
        a, b = a - N // 2, b - N // 2
        assert "index of sequence 1 of X" in message
    assert f"row {b} " in message or f"and {b}, " in message
    assert f"row {a} " in message or f"rows {a} and" in message


@pytest.mark.parametrize("container", ["levels", "ids", "list"])
@pytest.mark.parametrize(
    ("stamps", "fault"),
    [("dates", "falling"), ("periods", "equal"), ("zone", "missing"), ("numbers", "reversed")],
)
def test_whole_sequences_have_steps_in_order_too(stamps, fault, container):
    X, _, column = made(stamps, fault, container)
    y = np.array([0.0, 1.0])
    model = ESNSequenceRegressor(4, sequence_column=column, random_state=0)
    told(lambda: model.fit(X, y), stamps, fault)
    if container != "list":  # one target for each row
        told(lambda: model.fit(X, np.repeat(y, N // 2)), stamps, fault)
    for other in (ReservoirFeatures, LiquidStateMachine):
        told(lambda other=other: other(27, sequence_column=column).fit(X), stamps, fault)


def test_rows_that_are_series_may_come_in_any_order():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 9)))
    order = np.random.default_rng(1).permutation(12)
    ESNSequenceClassifier(4, random_state=0).fit(X.iloc[order], order % 2).predict(X.iloc[::-1])
    dated = X.set_axis(pd.date_range("2020", periods=12)[order])
    ESNSequenceClassifier(4, random_state=0).fit(dated, order % 2)


@pytest.mark.parametrize(
    "model",
    [
        ESNRegressor(10, random_state=0),
        ESNClassifier(10, random_state=0),
        NVARRegressor(),
        RNNRegressor(4, init="esn", max_iter=1, random_state=0),
        make_pipeline(StandardScaler(), ESNRegressor(10, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_shuffled_splits_are_warned_of_in_every_estimator(model):
    X, y = narma(120, random_state=0)
    X, y = pd.DataFrame(X, columns=["u"]), pd.Series(y if "Cl" not in str(model) else y > 0.4)
    shuffled = train_test_split(X, y, random_state=0)
    text = r"permutation of whole numbers: row \d+ \(\d+\) comes after row \d+ \(\d+\)"
    with pytest.warns(UserWarning, match=text):
        model.fit(shuffled[0], shuffled[2])
    kept = train_test_split(X, y, shuffle=False)
    model.fit(kept[0], kept[2]).score(kept[1], kept[3])
    with pytest.warns(UserWarning, match=text):
        model.score(shuffled[1], shuffled[3])
    if hasattr(model, "states"):
        with pytest.warns(UserWarning, match=text):
            model.predict(shuffled[1])


def test_the_warning_of_order_names_what_is_lost():
    X, y = narma(600, random_state=0)
    X, y = pd.DataFrame(X), pd.Series(y)
    esn = ESNRegressor(100, random_state=0)
    parts = train_test_split(X, y, test_size=300, random_state=0)
    with pytest.warns(UserWarning, match="permutation"):
        shuffled = esn.fit(parts[0], parts[2]).score(X[300:], y[300:])
    assert esn.fit(X[:300], y[:300]).score(X[300:], y[300:]) > shuffled + 0.2


# numbers that say nothing of order, or rows that are in order: no word of these
# pairs of neighbours that changed places: 4 in 39 steps are a tenth, 3 are not
SWAPPED = {n: np.r_[np.arange(2 * n).reshape(-1, 2)[:, ::-1].ravel(), 2 * n : 40] for n in (3, 4)}
WHOLE = pd.DataFrame({"u": np.linspace(-1, 1, 60)})
LABELS = {
    "weekdays": np.arange(60) % 7,
    "hours of part of a day": np.r_[20:24, 0:6],
    "months of a winter": [11, 12, 1, 2],
    "two sequences": np.r_[0:30, 0:30],
    "years before the present": np.round(-0.5 * np.arange(60), 1),
    "one block that came first": np.r_[30:60, 0:30],
    "every third": 3 * np.arange(60),
    "kept by a mask": np.flatnonzero(np.random.default_rng(0).random(200) < 0.3)[:50],
    "drawn with replacement": np.random.default_rng(0).integers(0, 60, 60),
    "measured": np.random.default_rng(0).normal(size=60).round(3),
    "whole floats": np.arange(60.0),
    "equal": np.zeros(60, dtype=int),
    "few that changed places": SWAPPED[3],
    "two rows": [5, 3],
    "one row": [5],
}


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_and_rows_in_order_are_nothing_to_warn_of(kind):
    X = WHOLE[: len(LABELS[kind])].set_axis(np.array(LABELS[kind]))
    y = pd.Series(X["u"].to_numpy(), index=X.index)
    if len(X) > 1:
        esn = ESNRegressor(5, washout=0, initial_state="zeros", random_state=0)
        esn.fit(X, y).score(X, y)
    transformer = ReservoirTransformer(5, random_state=0).fit(WHOLE)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "initial_state")  # rows that follow training do not
        transformer.transform(X)
    ESNSequenceRegressor(4, random_state=0).fit([X, 2 * WHOLE], [0.0, 1.0])


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(60)[::-1],
        np.random.default_rng(0).permutation(60),
        np.random.default_rng(0).permutation(60).astype(float),
        SWAPPED[4],
        [3, 2, 1],
    ],
)
def test_permutations_are_warned_of(numbers):
    X = pd.DataFrame({"u": np.linspace(-1, 1, len(numbers))}, index=np.array(numbers))
    with pytest.warns(UserWarning, match="permutation of whole numbers"):
        ESNRegressor(5, washout=0, random_state=0).fit(X, X["u"])


DAYS = pd.date_range("2020", periods=60)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize(
    "labels",
    [DAYS - DAYS[0], DAYS.date, DAYS.to_pydatetime(), DAYS.strftime("%Y-%m-%d")],
    ids=["durations", "dates", "datetimes", "text"],
)
@pytest.mark.parametrize("container", ["table", "list", "y", "whole sequences"])
def test_durations_and_dates_that_are_labels_are_permuted_too(labels, container):
    rows = pd.DataFrame(
        {"u": np.arange(60) / 60}, pd.Index(labels, dtype=getattr(labels, "dtype", object))
    )
    esn = ESNRegressor(5, random_state=0)
    calls = {
        "table": lambda X: esn.fit(X, X.to_numpy()),
        "list": lambda X: esn.fit([rows, X], [rows.to_numpy()] * 2),
        "y": lambda X: esn.fit(X.to_numpy(), X["u"]),
        "whole sequences": lambda X: ReservoirFeatures(5, random_state=0).fit([X, rows]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls[container](rows)
        calls[container](rows.set_axis(rows.index.take(np.r_[1:60, 0])))  # falls once: labels
        calls[container](rows.set_axis(rows.index.take(np.arange(60) % 6)))
    with pytest.warns(UserWarning, match="is a permutation of (durations|dates): row 1") as told:
        calls[container](rows[::-1])
    assert len(told) == 1


def test_order_counts_within_each_sequence():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.normal(size=90), "id": np.repeat([2, 0, 1], 30)})
    falling = frame.iloc[np.r_[60:90, 0:30, 30:60]]  # the index falls between sequences
    esn = ESNRegressor(5, sequence_column="id", random_state=0)
    esn.fit(falling, falling["u"]).predict(falling)
    restarting = frame.set_axis(np.tile(np.arange(30), 3))
    esn.fit(restarting, restarting["u"])
    # one sequence that is shuffled among many
    many = pd.concat([restarting.assign(id=i) for i in range(20)])
    one = many.iloc[np.r_[0:300, 300 + rng.permutation(30), 330 : len(many)]]
    with pytest.warns(UserWarning, match=r"row 30\d \(\d+\) comes after row 30\d "):
        esn.fit(one[["u"]].assign(id=np.repeat(np.arange(60), 30)), one["u"])
    dated = frame.set_axis(np.tile(pd.date_range("2020", periods=30), 3))
    esn.fit(dated, dated["u"])
    order = np.r_[0:40, 41, 40, 42:90]
    with pytest.raises(ValueError, match=r"row 41 .* comes after row 40"):
        esn.fit(dated.iloc[order], dated["u"].iloc[order])


def test_splits_in_order_are_nothing_to_warn_of():
    X, y = narma(200, random_state=0)
    X, y = pd.DataFrame(X), pd.Series(y)
    esn = ESNRegressor(10, initial_state="zeros", random_state=0)
    for cv in (3, KFold(4), KFold(3, shuffle=True, random_state=0), TimeSeriesSplit(3)):
        cross_val_score(esn, X, y, cv=cv)
    cross_val_predict(esn, X, y, cv=3)
    kept = X[0] > X[0].median()
    esn.fit(X[kept], y[kept])
    with pytest.warns(UserWarning, match="permutation"):
        cross_val_score(esn, X, y, cv=ShuffleSplit(1, random_state=0))


def test_random_rows_are_distinguished_from_ordered_ones():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    X, y = narma(120, random_state=0)
    X, y = pd.DataFrame(X, columns=["u"]), pd.Series(y)
    esn = ESNRegressor(8, initial_state="zeros", random_state=0)
    made = {"cv": TimeSeriesSplit(2), "random_state": 0}
    search = HalvingGridSearchCV(esn, {"leak_rate": [0.5, 1.0]}, **made)
    with pytest.warns(UserWarning, match="permutation"):
        search.fit(X, y)
    search.set_params(resource="n_units", max_resources=16).fit(X, y)
    # rows that are drawn twice weigh more, and stay where they are
    bags = BaggingRegressor(esn, 2, random_state=0).fit(X, y)
    (drawn, _), (one, _) = bags.estimators_samples_, bags.estimators_
    weights = np.bincount(drawn, minlength=len(X))
    expected = clone(one).fit(X.to_numpy(), y, sample_weight=weights)
    np.testing.assert_array_equal(one.coef_, expected.coef_)


def test_pairs_of_numbers_that_are_permuted_warn():
    # sorted afterwards they would hold the wrong targets
    rows = np.random.default_rng(0).permutation(40)
    with pytest.warns(UserWarning, match="The index of the series is a permutation"):
        make_forecast_pairs(pd.Series(rows / 40, rows), exog=rows[:, None] / 2)
