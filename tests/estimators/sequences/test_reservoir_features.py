"""ReservoirFeatures: equal to a naive version, in every container; missing values, errors."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import naive
from reservoir import LiquidStateMachine, ReservoirFeatures
from reservoir.dynamics import run
from reservoir.scaling import spectral_radius

pytestmark = pytest.mark.both_engines

ALL = ("mean", "std", "max", "min", "last", "quantiles")
RNG = np.random.default_rng(0)
WALKS = [RNG.normal(size=(n, 2)).cumsum(axis=0) * [1.0, 100.0] for n in (30, 7, 55, 1, 18, 30)]
EQUAL = RNG.normal(size=(12, 20, 3)).cumsum(axis=1)


def small(**params):
    return ReservoirFeatures(**({"n_units": 20, "random_state": 0, "dtype": "float64"} | params))


# --- what is computed


def prepared(X, rows, lags):
    """Inputs as the docstring says: standardised channels, then their differences, lag by lag."""
    table = np.concatenate(X)
    mine = (rows - table.mean(axis=0)) / table.std(axis=0)
    parts = [mine]
    for lag in lags:
        pairs = [(x[lag:] - x[:-lag]) / table.std(axis=0) for x in X if len(x) > lag]
        size = np.sqrt((np.concatenate(pairs) ** 2).mean(axis=0))
        earlier = np.vstack([np.repeat(mine[:1], lag, axis=0), mine])[: len(mine)]
        parts.append((mine - earlier) / size)
    return np.hstack(parts)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-12), ("float32", 3e-6)])
def test_equals_the_slow_way(dtype, atol, bidirectional):
    features = small(pool=ALL, dtype=dtype, bidirectional=bidirectional).fit(WALKS)
    rows = features.transform(WALKS)
    assert rows.dtype == dtype
    assert features.lags_ == (1, 3)
    thresholds = features.thresholds_ if bidirectional else [features.thresholds_]
    for row, x in zip(rows, WALKS, strict=True):
        inputs, expected = prepared(WALKS, x, features.lags_), []
        for way, levels in zip((1, -1), thresholds, strict=False):
            states = run(features.reservoir_, inputs[::way], engine="numpy")
            expected.append(naive.pooled(states, ALL, levels))
        np.testing.assert_allclose(row, np.concatenate(expected), rtol=0, atol=atol)


def test_leak_rates_make_groups_in_one_reservoir():
    plain = {"differences": False, "topology": "random_sparse"}
    res = small(n_units=23, leak_rate=(1.0, 0.5, 0.1), **plain).fit(WALKS).reservoir_
    np.testing.assert_array_equal(res.leak_rate, np.repeat([1.0, 0.5, 0.1], [8, 8, 7]))
    W = res.W.toarray()
    for begin, end in ((0, 8), (8, 16), (16, 23)):
        block = W[begin:end, begin:end]
        assert spectral_radius(block) == pytest.approx(0.9)
        assert np.count_nonzero(W[begin:end]) == np.count_nonzero(block)
        others = [W[a:b, a:b] for a, b in ((0, 8), (8, 16)) if a != begin]
        assert not any(np.array_equal(block, other) for other in others)
    # a number, one per unit, or a W of one's own: one reservoir as a whole
    per_unit = np.linspace(0.1, 1, 20)
    for rate, expected in ((0.5, 0.5), ((0.5,), 0.5), (per_unit, per_unit)):
        whole = small(leak_rate=rate, **plain).fit(WALKS).reservoir_
        np.testing.assert_allclose(whole.leak_rate, expected)
        assert np.count_nonzero(whole.W.toarray()[:5, 5:]) > 0
    mine = sp.csr_array(RNG.normal(size=(20, 20)))
    own = {"topology": mine, "spectral_radius": None, "differences": False}
    given = small(leak_rate=(1.0, 0.1), **own).fit(WALKS).reservoir_
    np.testing.assert_array_equal(given.W.toarray(), mine.toarray())
    np.testing.assert_array_equal(given.leak_rate, np.repeat([1.0, 0.1], 10))


def test_each_group_reads_one_kind_of_input():
    """Values, and the differences over each lag, times two leak rates; two channels."""
    features = small(n_units=27, leak_rate=(1.0, 0.2), differences=(4, 1)).fit(WALKS)
    res = features.reservoir_
    assert features.lags_ == (1, 4)
    sizes = [5, 5, 5, 4, 4, 4]
    np.testing.assert_array_equal(res.leak_rate, np.repeat([1.0, 0.2] * 3, sizes))
    kinds = np.repeat([0, 0, 1, 1, 2, 2], sizes)
    heard = res.W_in != 0
    for kind in range(3):
        expected = np.isin(np.arange(6), [2 * kind, 2 * kind + 1])
        assert (heard[kinds == kind] == expected).all()
    group = np.repeat(np.arange(6), sizes)
    rows, columns = res.W.nonzero()
    assert (group[rows] == group[columns]).all()
    # the indicators of what is missing are read beside each kind
    told = small(n_units=27, differences=True, missing_values="hold", add_indicator=True)
    heard = told.fit(WALKS).reservoir_.W_in != 0
    assert heard[:, 4:].all()
    assert not (heard[:, :2] & heard[:, 2:4]).any()
    # a W of one's own stays whole, and still each unit reads one kind
    mine = small(topology=np.ones((20, 20)), leak_rate=0.5, differences=True).fit(WALKS).reservoir_
    assert np.count_nonzero(mine.W) == 400
    assert np.count_nonzero(mine.W_in) == 40
    per_unit = small(leak_rate=np.linspace(0.1, 1, 20), differences=(1, 2)).fit(WALKS).reservoir_
    np.testing.assert_allclose(per_unit.leak_rate, np.linspace(0.1, 1, 20))
    assert np.count_nonzero(per_unit.W_in) == 40


def test_lags_are_those_that_series_and_units_have_room_for():
    long = [np.arange(20.0), np.arange(50.0), np.arange(31.0)]
    lags = (1, 2, 4, 8, 16, 32)
    for differences, options, expected in (
        (lags, {}, (1, 2, 4, 8)),  # up to a third of 31
        (lags, {"n_units": 12}, (1, 2, 4)),
        (lags, {"n_units": 12, "leak_rate": 0.5}, (1, 2, 4, 8)),
        (lags, {"n_units": 5}, ()),
        ((30, 20), {}, (20,)),
        ((10,), {}, (10,)),
        (True, {}, (1,)),
        (False, {}, ()),
    ):
        features = small(differences=differences, **({"leak_rate": (1.0, 0.3, 0.1)} | options))
        assert features.fit(long).lags_ == expected
        assert np.isfinite(features.transform(long)).all()


def test_given_weights_are_shared_out_to_the_groups():
    W_in, bias = RNG.normal(size=(20, 6)), RNG.normal(size=20)
    res = small(input_weights=W_in, bias=bias).fit(WALKS).reservoir_
    np.testing.assert_array_equal(res.W_in, W_in)
    np.testing.assert_array_equal(res.bias, bias)


def test_input_scaling_is_per_channel_and_shared_by_the_inputs_of_a_unit():
    one = small(n_units=400, input_scaling=1.0).fit(WALKS).reservoir_.W_in
    assert abs(one).max() == pytest.approx(0.5**0.5, abs=0.01)  # two channels
    three = small(n_units=400, input_scaling=[1.0, 3.0]).fit(WALKS).reservoir_.W_in
    np.testing.assert_allclose(three, one * np.tile([1, 3], 3))


def test_thresholds_cut_the_states_of_fit():
    features = small(n_quantiles=3, leak_rate=0.3, differences=False).fit(list(EQUAL))
    shares = features.transform(list(EQUAL))[:, -60:].reshape(-1, 3, 20).mean(axis=0)
    np.testing.assert_allclose(
        shares, np.repeat([[5 / 6], [1 / 2], [1 / 6]], 20, axis=1), atol=0.01
    )


def test_states_at_rest_do_not_lie_above_themselves():
    """A constant series settles: whether it is counted must not depend on the last bit."""
    rest = [np.full((200, 1), 3.0), np.full((150, 1), 3.0)]
    features = small(pool="quantiles", n_quantiles=1, leak_rate=0.9, spectral_radius=0.3).fit(rest)
    assert (features.transform(rest) < 0.25).all()


def test_scaling_none_leaves_the_channels_as_they_are():
    features = small(scaling=None, differences=False).fit(WALKS)
    assert features.reservoir_.n_features == 2
    states = run(features.reservoir_, WALKS[0])
    np.testing.assert_allclose(features.transform(WALKS)[0, :20], states.mean(axis=0), atol=1e-12)


# --- containers


def test_series_of_one_channel():
    waves = EQUAL[:, :, 0]
    expected = small().fit_transform(waves[:, :, None])
    for X in (waves, list(waves), waves.tolist(), waves.astype(str).astype(object)):
        np.testing.assert_array_equal(small().fit_transform(X), expected)
    rows = small().fit(waves)
    assert (rows.n_features_in_, rows.n_channels_) == (20, 1)
    # fitted in one way, used in another
    np.testing.assert_array_equal(rows.transform(waves[:, :, None]), expected)
    np.testing.assert_array_equal(rows.transform([x[:9] for x in waves]).shape, expected.shape)
    lists = small().fit(list(waves))
    assert lists.n_features_in_ == 1
    np.testing.assert_array_equal(lists.transform(waves), expected)
    assert lists.transform(waves[:, :5]).shape == expected.shape
    with pytest.raises(
        ValueError, match="X has 19 features, but ReservoirFeatures is expecting 20"
    ):
        rows.transform(waves[:, :19])


@pytest.mark.parametrize("features", [ReservoirFeatures(5), LiquidStateMachine(30)])
def test_names_of_other_columns_raise(features):
    pd = pytest.importorskip("pandas")
    features.fit(WALKS)
    names = features.get_feature_names_out()
    assert list(features.get_feature_names_out(["a", "b"])) == list(names)
    with pytest.raises(ValueError, match="number of features"):
        features.get_feature_names_out(["a", "b", "c"])
    features.fit([pd.DataFrame(x, columns=["up", "down"]) for x in WALKS])
    assert list(features.get_feature_names_out(["up", "down"])) == list(names)
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        features.get_feature_names_out(["down", "up"])


def test_tables_come_out_with_names_and_ids():
    pd = pytest.importorskip("pandas")
    features = small(pool=("mean", "quantiles"), n_quantiles=2, bidirectional=True)
    features.set_output(transform="pandas")
    frames = [pd.DataFrame(x, columns=["up", "down"]) for x in WALKS]
    out = features.fit_transform(pd.concat(frames, keys=list("fedcba")))
    assert list(out.index) == list("fedcba")
    assert out.shape == (6, 2 * 3 * 20)
    assert list(out.columns) == list(features.get_feature_names_out())
    assert out.columns[0] == "forward_mean_unit0"
    assert out.columns[-1] == "backward_above1_unit19"
    assert list(features.transform(frames[:2]).index) == [0, 1]


# --- missing values


def test_missing_values_are_filled():
    gaps = [x.copy() for x in WALKS]
    gaps[0][[0, 3, 4, 29], 1] = np.nan
    gaps[4][:, 0] = np.nan
    mean = np.nanmean(np.concatenate(gaps), axis=0)
    filled = {way: [x.copy() for x in WALKS] for way in ("hold", "interpolate")}
    known = WALKS[0][:, 1]
    filled["hold"][0][[0, 3, 4, 29], 1] = known[[1, 2, 2, 28]]
    steps = known[2] + (known[5] - known[2]) * np.array([1 / 3, 2 / 3])
    filled["interpolate"][0][[0, 3, 4, 29], 1] = [known[1], *steps, known[28]]
    for way, by_hand in filled.items():
        by_hand[4][:, 0] = mean[0]
        features = small(missing_values=way).fit(gaps)
        np.testing.assert_allclose(
            features.transform(gaps), features.transform(by_hand), rtol=0, atol=1e-12
        )
    # a further input says where
    told = small(missing_values="hold", add_indicator=True, differences=True).fit(gaps)
    assert told.reservoir_.n_features == 6
    inputs = told._inputs(gaps)[0]
    assert np.flatnonzero(inputs[:, 4]).tolist() == []
    assert np.flatnonzero(inputs[:, 5]).tolist() == [0, 3, 4, 29]
    assert abs(told.transform(gaps) - told.transform(filled["hold"])).max() > 1e-3


def test_a_channel_without_any_value():
    gone = [np.c_[np.arange(n), np.full(n, np.nan)] for n in (5, 3)]
    with pytest.warns(UserWarning, match="Channel 1 of X has no value in any of the 2 sequences"):
        table = small(missing_values="hold").fit_transform(gone)
    assert np.isfinite(table).all()


# --- what must not matter


def test_a_row_depends_on_its_sequence_alone():
    features = small(dtype="float32", pool=ALL).fit(WALKS)
    together = features.transform(WALKS)
    alone = np.vstack([features.transform([x]) for x in WALKS])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
    two = clone(features).set_params(n_jobs=2)
    many = WALKS * 15
    np.testing.assert_array_equal(
        two.fit(WALKS).transform(many), clone(features).fit(WALKS).transform(many)
    )


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1e20, 1e300])
def test_units_do_not_matter(size):
    constant = [np.column_stack([x, np.full(len(x), 7.0)]) for x in WALKS]
    expected = small().fit_transform(constant)
    assert np.isfinite(expected).all()
    scaled = small().fit_transform([x * size for x in constant])
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=1e-9)
    shifted = small().fit_transform([x + np.array([1e6, 0, 1e300]) for x in constant])
    np.testing.assert_allclose(shifted, expected, rtol=0, atol=1e-3)


def test_single_precision_is_as_good():
    """Of states; sums and scales are in double precision in either case."""
    rows = {
        kind: small(n_units=100, dtype=kind).fit_transform(EQUAL) for kind in ("float32", "float64")
    }
    far = abs(rows["float32"] - rows["float64"])
    assert far[:, :400].max() < 2e-6
    assert (far[:, 400:] > 0.06).mean() < 1e-3  # one of twenty steps within rounding of a threshold


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_does_not_grow_with_the_series(dtype):
    """Beside the result, of 80 numbers for a series of 2000."""
    X = np.zeros((400, 2000, 1), dtype)
    X[:, 1] = 1
    features = small(pool=("mean", "std", "max", "min"), bidirectional=False).fit(X[:10])
    features.transform(X)  # what kernels take when they are loaded is not counted
    peaks = []
    for n in (40, 400):
        tracemalloc.start()
        features.transform(X[:n])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
    assert peaks[1] - peaks[0] < X.nbytes / 4


def test_single_precision_is_read_as_it_is():
    X = EQUAL.astype(np.float32)
    expected = small().fit_transform(X.astype(np.float64))
    for same in (X, list(X), X.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
        np.testing.assert_array_equal(small().fit_transform(same), expected)


# --- in scikit-learn


def test_it_works_in_pipelines_and_searches():
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    waves = [np.sin(np.arange(rng.integers(30, 60)) * (0.3 + 0.1 * k)) for k in y]
    equal = np.array([x[:30] for x in waves]) + 0.1 * rng.normal(size=(40, 30))
    pipe = make_pipeline(small(), StandardScaler(), RidgeClassifierCV())
    assert pipe.fit(waves[:20], y[:20]).score(waves[20:], y[20:]) == 1.0
    for X in (equal, equal[:, :, None]):
        assert cross_val_score(pipe, X, y, cv=2).mean() > 0.9
    search = GridSearchCV(pipe, {"reservoirfeatures__differences": [False, True]}, cv=2)
    assert search.fit(equal, y).best_score_ > 0.9


# --- what is refused

BAD_DATA = {
    "single steps": (np.ones((5, 1, 3)), "Every sequence of X has 1 step.*n_steps, n_channels"),
    "no steps": (np.ones((5, 0, 3)), "no steps"),
    "NaN": ([np.ones((3, 2)), np.array([[1.0, np.nan]])], "sequence 1 of X contains NaN.*hold"),
    "NaN, array": (np.where(EQUAL > 5, np.nan, EQUAL), "of X contains NaN.*missing_values"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_raise(name):
    X, match = BAD_DATA[name]
    features = small()
    with pytest.raises((ValueError, TypeError), match=match):
        features.fit(X)
    assert not hasattr(features, "reservoir_")


def test_infinity_raises_where_nan_does_not():
    with pytest.raises(ValueError, match="infinity"):
        small(missing_values="hold").fit([np.array([[1.0], [np.nan], [-np.inf]])])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_values_that_overflow_once_scaled_raise(bidirectional):
    features = small(dtype="float32", bidirectional=bidirectional).fit(EQUAL)
    far = EQUAL.copy()
    far[3, 5, 1] = 1e60
    with pytest.raises(
        ValueError, match=r"1e\+60 in channel 1, step 5 of sequence 3 of X, overflows float32"
    ):
        features.transform(far)
    assert np.isfinite(small().fit(EQUAL).transform(far)).all()  # saturated, in double precision
    with pytest.raises(ValueError, match="differences of channel 0 of X overflow"):
        small(scaling=None).fit([np.array([[1e308], [-1e308]])])
    huge = small(scaling=None).fit(EQUAL * 1e200)
    assert np.isfinite(huge.transform(EQUAL * 1e200)).all()


def test_other_channels_raise():
    features = small().fit(WALKS)
    with pytest.raises(ValueError, match="X has 3 features, but ReservoirFeatures is expecting 2"):
        features.transform(EQUAL)
    with pytest.raises(ValueError, match=r"series of 1 channel.*fitted on series of 2.*a list"):
        features.transform(np.ones((30, 2)))
    rows = small().fit(EQUAL[:, :, 0])
    with pytest.raises(ValueError, match=r"series of 3 channel.*of 1"):
        rows.transform(EQUAL)


BAD_PARAMETERS = {
    "leak_rate": [
        (0.0, "in \\(0, 1\\]"),
        ((1.0, 2.0), "in \\(0, 1\\]"),
        ([0.1] * 21, "n_units=20"),
    ],
    "pool": [
        ("median", "not known"),
        ((), "must be one or several of these names"),
        (("max", "max"), "twice"),
    ],
    "n_quantiles": [(0, "at least 1"), (1.5, "integer")],
    "missing_values": [("drop", "not known")],
    "scaling": [("robust", "not known")],
    "differences": [
        (1, "True, False, or lags"),
        ((), "True, False, or lags"),
        ((1, 0), "at least 1"),
        ((1.5,), "integer"),
        ((2, 2), "contains a lag twice"),
    ],
    "bidirectional": [("yes", "True or False")],
    "add_indicator": [(None, "True or False")],
    "input_scaling": [([1.0, 2.0, 3.0], "one factor per channel")],
    "bias": [("stable", "bias=.stable. proves")],
    "dtype": [("float16", "float32")],
    "n_jobs": [(0, "n_jobs=0")],
    "n_units": [(0, "at least 1")],
    "topology": [("spares", "Did you mean|not known")],
}


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [(name, *case) for name, cases in BAD_PARAMETERS.items() for case in cases],
)
def test_bad_parameters_raise(name, value, match):
    with pytest.raises((ValueError, TypeError), match=match):
        small(**{name: value}).fit(WALKS)
