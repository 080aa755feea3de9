"""Steps of different lengths: sequences with a column of times."""

import numpy as np
import pytest

from reservoir import ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures, load, save
from reservoir.building import build_reservoir
from reservoir.dynamics import Pooling, Reservoir, iter_many, pool_many, run, run_many
from reservoir.dynamics.state_quantiles import state_quantiles
from reservoir.estimators.sequences import reservoir_features
from reservoir.model_selection import channel_importance, stack_sequences

pytestmark = pytest.mark.one_engine


def timed(seed=0, n=20, n_channels=2, longest=20):
    """Return sequences with a column of times in front, and labels."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, longest, n)
    X = [
        np.c_[np.cumsum(rng.exponential(3.0, m) + 0.1), rng.normal(size=(m, n_channels))]
        for m in lengths
    ]
    return X, np.arange(n) % 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("per_unit", [True, False])
@pytest.mark.parametrize("lengths", [[1], [5, 40, 33, 32, 700, 1, 2], [9] * 40], ids=str)
def test_many_series_are_those_run_alone(lengths, per_unit, dtype):
    rng = np.random.default_rng(3)
    leak = rng.uniform(0.1, 1, 20) if per_unit else 0.3
    res = build_reservoir(20, 3, leak_rate=leak, dtype=dtype, random_state=0)
    X = [rng.normal(size=(n, 3)) for n in lengths]
    dt = [rng.exponential(2.0, n) + 0.01 for n in lengths]
    alone = [run(res, rows, dt=steps) for rows, steps in zip(X, dt, strict=True)]
    atol = 1e-13 if dtype == "float64" else 2e-6
    for one, other in zip(run_many(res, X, dt=dt), alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    for i, start, block in iter_many(res, X, dt=dt):
        np.testing.assert_allclose(block, alone[i][start : start + len(block)], rtol=0, atol=atol)
    pooled = pool_many(res, X, Pooling(("mean", "last")), dt=dt)
    expected = [np.r_[states.mean(axis=0), states[-1]] for states in alone]
    np.testing.assert_allclose(pooled, expected, rtol=0, atol=atol)


def test_steps_of_length_one_change_no_bit():
    rng = np.random.default_rng(0)
    res = build_reservoir(20, 3, leak_rate=0.3, random_state=0)
    X = [rng.normal(size=(n, 3)) for n in (5, 9, 30)]
    with_dt = run_many(res, X, dt=[np.ones(len(rows)) for rows in X], engine="numpy")
    for one, other in zip(with_dt, run_many(res, X, engine="numpy"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_how_a_span_is_cut_does_not_matter_to_what_is_forgotten():
    # without recurrence, under an input that is held, a span moves the state as one step would
    res = Reservoir([[0.0]], [[1.0]], [0.0], leak_rate=0.2)
    one, many = run_many(res, [np.ones((1, 1)), np.ones((4, 1))], dt=[[6.0], [1.0, 0.5, 2.5, 2.0]])
    np.testing.assert_allclose(one[-1], many[-1], rtol=1e-14)


@pytest.mark.parametrize(
    ("dt", "message"),
    [
        ([[1.0, 1.0]], "dt has 1 items, but there are 2 series"),
        ([[1.0, 1.0], [1.0]], r"dt of series\[1\] must have shape \(n_samples=2,\)"),
        ([[1.0, 1.0], [1.0, 0.0]], r"dt of series\[1\] must be positive and finite; got 0"),
        ([[1.0, 1.0], [1.0, np.inf]], r"dt of series\[1\] must be positive and finite; got inf"),
    ],
)
def test_bad_steps_raise(dt, message):
    res = build_reservoir(5, 1, leak_rate=0.3, random_state=0)
    with pytest.raises(ValueError, match=message):
        run_many(res, [np.ones((2, 1))] * 2, dt=dt)


def test_kernels_take_no_steps_of_several_lengths():
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    res = build_reservoir(200, 2, leak_rate=0.3, random_state=0)  # a job that kernels would take
    X = [rng.normal(size=(400, 2)) for _ in range(20)]
    dt = [rng.exponential(2.0, 400) + 0.01 for _ in X]
    for states, rows, steps in zip(run_many(res, X, dt=dt), X, dt, strict=True):
        np.testing.assert_allclose(states, run(res, rows, dt=steps), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match='engine="numba" does not support dt'):
        run_many(res, X, dt=dt, engine="numba")


def test_thresholds_are_quantiles_of_states_under_these_steps():
    X, _ = timed(n=12, longest=60)
    made = {"differences": False, "dtype": "float64", "random_state": 0, "n_quantiles": 4}
    model = ReservoirFeatures(20, time_column=0, pool="quantiles", **made).fit(X)
    for way, thresholds in zip((1, -1), model.thresholds_, strict=True):
        states = []
        for rows in X:
            inputs = (rows[:, 1:] - model.mean_) / model.scale_
            dt = np.append(1.0, np.diff(rows[:, 0])[::way] / model.time_step_)
            states.append(run(model.reservoir_, inputs[::way], dt=dt))
        expected = np.quantile(np.concatenate(states), [1 / 8, 3 / 8, 5 / 8, 7 / 8], axis=0)
        np.testing.assert_allclose(thresholds, expected, rtol=0, atol=1e-12)


def test_steps_are_those_of_the_sampled_rows(monkeypatch):
    seen = []

    def watched(reservoir, series, levels, *, dt, **options):
        seen.extend(zip(series, dt, strict=True))
        return state_quantiles(reservoir, series, levels, dt=dt, **options)

    monkeypatch.setattr(reservoir_features, "state_quantiles", watched)
    gaps = np.random.default_rng(0).exponential(2.0, 3000) + 0.1  # more than are sampled
    X = [np.c_[np.cumsum(gaps), gaps]] * 2
    made = {"scaling": None, "differences": False, "bidirectional": False, "random_state": 0}
    ReservoirFeatures(10, time_column=0, time_step=1.0, pool="quantiles", **made).fit(X)
    for rows, dt in seen:
        assert len(rows) < 3000
        np.testing.assert_allclose(dt[1:], rows[1:, 0], rtol=1e-5)


def test_sequences_that_differ_in_their_times_alone_are_two_cases():
    times = [np.arange(8.0), np.r_[np.arange(7.0), 60.0]]
    X = [np.c_[times[k % 2], np.ones(8)] for k in range(40)]
    clf = ESNSequenceClassifier(6, time_column=0, leak_rate=0.1, random_state=0)
    assert clf.fit(X, np.arange(40) % 2).score(X, np.arange(40) % 2) == 1


@pytest.mark.parametrize("container", [list, np.stack])
def test_times_are_not_exchanged(container):
    rows, y = timed(n=20, longest=6)
    X = container(rows)
    clf = ESNSequenceClassifier(6, time_column=0, random_state=0).fit(X, y)
    found = channel_importance(clf, X, y, n_repeats=2, random_state=0)
    assert found.importances_mean[0] == 0
    assert np.any(found.importances_mean[1:] != 0)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_features_are_those_of_runs_with_these_steps(bidirectional):
    X, _ = timed(n=12, longest=60)
    model = ReservoirFeatures(
        30,
        time_column=0,
        differences=False,
        pool=("mean", "last"),
        bidirectional=bidirectional,
        dtype="float64",
        random_state=0,
    ).fit(X)
    gaps = [np.diff(rows[:, 0]) for rows in X]
    assert model.time_step_ == np.median(np.concatenate(gaps))
    expected = []
    for rows, between in zip(X, gaps, strict=True):
        inputs = (rows[:, 1:] - model.mean_) / model.scale_
        found = []
        for way in (1, -1)[: 1 + bidirectional]:
            dt = np.append(1.0, between[::way] / model.time_step_)
            states = run(model.reservoir_, inputs[::way], dt=dt)
            found += [states.mean(axis=0), states[-1]]
        expected.append(np.concatenate(found))
    np.testing.assert_allclose(model.transform(X), expected, rtol=0, atol=1e-12)


def test_even_times_are_no_times():
    X, _ = timed(n=12, longest=1300)  # longer than what thresholds are taken from
    even = [np.c_[7.0 + 0.5 * np.arange(len(rows)), rows[:, 1:]] for rows in X]
    one = ReservoirFeatures(20, time_column=0, random_state=0).fit_transform(even)
    other = ReservoirFeatures(20, random_state=0).fit_transform([rows[:, 1:] for rows in X])
    # which NumPy may not have run, but kernels: equal to rounding, thresholds to one step in many
    assert np.median(abs(one - other)) < 1e-6
    assert abs(one - other).max() < 0.02


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_unit_of_time_does_not_matter(seed):
    X, y = timed(seed)
    hours = [np.c_[rows[:, :1] * 8, rows[:, 1:]] for rows in X]
    made = {"time_column": 0, "random_state": seed}
    features = ReservoirFeatures(30, **made)
    np.testing.assert_array_equal(features.fit_transform(X), features.fit_transform(hours))
    one = ESNSequenceClassifier(6, **made).fit(X, y)
    fixed = ESNSequenceClassifier(6, time_step=one.features_.time_step_, **made).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), fixed.predict_proba(X))


def test_information_in_times_is_learned(global_random_seed):
    # half of the sequences have waited for long before the last row: what was before has faded
    rng = np.random.default_rng(global_random_seed)
    n = 200
    y = rng.integers(0, 2, n)
    X = []
    for label in y:
        times = np.arange(12.0)
        times[-1] += 40 * label
        X.append(np.c_[times, rng.normal(size=12) + 2])
    made = {
        "pool": "last",
        "leak_rate": 0.1,
        "bidirectional": False,
        "random_state": global_random_seed,
    }
    told = ESNSequenceClassifier(50, time_column=0, **made).fit(X[:100], y[:100])
    untold = ESNSequenceClassifier(50, **made).fit([rows[:, 1:] for rows in X[:100]], y[:100])
    assert told.score(X[100:], y[100:]) > 0.95
    assert untold.score([rows[:, 1:] for rows in X[100:]], y[100:]) < 0.7


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_column_may_be_anywhere(place):
    X, y = timed()
    made = {"random_state": 0}
    expected = ESNSequenceClassifier(6, time_column=0, **made).fit(X, y).predict_proba(X)
    order = np.insert([1, 2], place, 0)
    moved = [rows[:, order] for rows in X]
    for column in (place, place - 3):
        clf = ESNSequenceClassifier(6, time_column=column, **made).fit(moved, y)
        np.testing.assert_array_equal(clf.predict_proba(moved), expected)
        assert clf.n_features_in_ == 3
        assert clf.features_.n_channels_ == 2


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("ids_first", [True, False])
def test_tables_with_ids_and_names(ids_first):
    pd = pytest.importorskip("pandas")
    X, y = timed()
    expected = ESNSequenceClassifier(6, time_column=0, random_state=0).fit(X, y).predict_proba(X)
    frames = [pd.DataFrame(rows, columns=["day", "a", "b"]) for rows in X]
    clf = ESNSequenceClassifier(6, time_column="day", random_state=0).fit(frames, y)
    np.testing.assert_array_equal(clf.predict_proba(frames), expected)
    table = pd.concat(frames, keys=range(len(frames)), names=["case", None]).reset_index("case")
    if not ids_first:
        table = table[["day", "a", "b", "case"]]
    for column in ("day", list(table.columns).index("day"), list(table.columns).index("day") - 4):
        clf = ESNSequenceClassifier(
            6, time_column=column, sequence_column="case", random_state=0
        ).fit(table, y)
        np.testing.assert_array_equal(clf.predict_proba(table), expected)
    found = channel_importance(clf, table, y, n_repeats=1, random_state=0)
    assert found.importances_mean[found.names.index("day")] == 0
    assert np.any(found.importances_mean != 0)
    with pytest.raises(ValueError, match="the same column"):
        ESNSequenceClassifier(time_column="case", sequence_column="case").fit(table, y)
    with pytest.raises(ValueError, match=r"'when' is not in X; its columns are 'day'"):
        ESNSequenceClassifier(time_column="when").fit(frames, y)
    dated = [frame.assign(day=pd.to_datetime(frame["day"], unit="D")) for frame in frames]
    with pytest.raises(TypeError, match=r"'day'.*for time_column, the hours since a fixed date"):
        ESNSequenceClassifier(time_column="day").fit(dated, y)


def test_stacked_arrays_and_regression():
    X, y = timed()
    stacked = stack_sequences(X)[0]
    expected = ESNSequenceRegressor(6, time_column=0, random_state=0).fit(X, y).predict(X)
    net = ESNSequenceRegressor(6, time_column=1, sequence_column=0, random_state=0)
    np.testing.assert_array_equal(net.fit(stacked, y).predict(stacked), expected)


@pytest.mark.parametrize(
    ("column", "change", "error", "message"),
    [
        (0, lambda rows: rows[::-1], ValueError, "Times must increase within a sequence"),
        (0, lambda rows: rows[:, :1], ValueError, "no column except the column of times"),
        (3, lambda rows: rows, ValueError, "time_column=3 is outside X, which has 3 columns"),
        ("day", lambda rows: rows, ValueError, "'day' is a name, but X has no column names"),
        (0.5, lambda rows: rows, TypeError, "time_column must be an int or a column name"),
        (True, lambda rows: rows, TypeError, "time_column must be an int or a column name"),
        (
            0,
            lambda rows: np.c_[[1, 2, 5, 5, 6], rows[:5, 1:]],
            ValueError,
            "column 0 has 5 after 5 at step 3 of sequence 0",
        ),
    ],
)
def test_bad_columns_raise(column, change, error, message):
    X, y = timed()
    with pytest.raises(error, match=message):
        ESNSequenceClassifier(10, time_column=column).fit([change(rows) for rows in X], y)


def test_other_errors():
    X, y = timed()
    clf = ESNSequenceClassifier(10, time_column=0, missing_values="hold", random_state=0).fit(X, y)
    X[3][2, 0] = np.nan
    with pytest.raises(ValueError, match="is NaN at step 2 of sequence 3 of X"):
        clf.predict(X)
    with pytest.raises(ValueError, match=r"is NaN at step 2 of sequence 1 of X"):
        clf.predict(X[2:4])
    X, y = timed()
    with pytest.raises(ValueError, match="has no effect at leak_rate=1"):
        ESNSequenceClassifier(10, time_column=0, leak_rate=1.0).fit(X, y)
    with pytest.raises(ValueError, match="time_step"):
        ESNSequenceClassifier(10, time_column=0, time_step=0.0).fit(X, y)
    with pytest.raises(ValueError, match="time_step"):
        ESNSequenceClassifier(10, time_column=0, time_step="mean").fit(X, y)


def test_saved_and_changed_afterwards(tmp_path):
    X, y = timed()
    clf = ESNSequenceClassifier(10, time_column=0, random_state=0).fit(X, y)
    expected = clf.predict_proba(X)
    save(clf, tmp_path / "clf.npz")
    np.testing.assert_array_equal(load(tmp_path / "clf.npz").predict_proba(X), expected)
    clf.set_params(time_column=None, time_step=5.0)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
