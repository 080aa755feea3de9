"""States as features: alone, in chains and unions, in chunks, in sessions, from files."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNRegressor,
    load,
    save,
)
from reservoir.datasets import mackey_glass
from reservoir.dynamics import Reservoir, run
from reservoir.estimators import StateStream
from reservoir.estimators.progress import Progress
from reservoir.model_selection import PerStep, stack_sequences, washout_scorer

pytestmark = pytest.mark.both_engines

N = 400


def series(n=500, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, n_features))
    return X, np.sin(X[:, 0]) + np.append([0, 0], X[:-2, 0])


def states(n_units=12, **params):
    return ReservoirTransformer(n_units, **{"random_state": 0, **params})


def network(**params):
    return ESNRegressor(10, **{"random_state": 1, "alpha": 1e-4, **params})


# ---------------------------------------------------------------- alone


def test_states_of_the_regressor():
    X, y = series()
    esn = ESNRegressor(30, leak_rate=0.7, random_state=0).fit(X, y)
    made = states(30, leak_rate=0.7).fit_transform(X)
    np.testing.assert_array_equal(made, esn.states(X, initial_state="zeros"))


def test_in_a_pipeline_it_is_an_esn():
    X, y = series()
    pipe = make_pipeline(states(30), Ridge(1e-3)).fit(X, y)
    esn = ESNRegressor(
        30, leak_rate=1.0, alpha=1e-3, include_input=False, washout=0, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(pipe.predict(X), esn.predict(X), atol=1e-8)


def test_transform_continues_from_fit_and_fit_transform_starts_from_zeros():
    X, _ = series()
    whole, made = states().fit_transform(X), states()
    for _ in range(2):  # the second fit starts from zeros again
        np.testing.assert_allclose(made.fit_transform(X[:N]), whole[:N], atol=1e-14)
    for fitted in (made, states().fit(X[:N]), states(initial_state="zeros").fit(X[:N])):
        assert np.array_equal(fitted.state_, made.state_)
        rows = fitted.set_params(initial_state="last").transform(X[N:])
        np.testing.assert_allclose(rows, whole[N:], atol=1e-14)
        zeros = fitted.set_params(initial_state="zeros").transform(X[:N])
        np.testing.assert_allclose(zeros, whole[:N], atol=1e-14)


def test_several_sequences_start_from_zeros():
    X, _ = series()
    lists = states().fit([X[:100], X[100:N]])
    apart = states(initial_state="zeros").fit(X[:N])
    for rows in ([X[:60], X[60:90]], np.stack([X[:60], X[60:120]])):
        for part, one in zip(lists.transform(rows), rows, strict=True):
            np.testing.assert_allclose(part, apart.transform(one), atol=1e-14)
    np.testing.assert_array_equal(lists.transform(X[N:]), apart.transform(X[N:]))


def test_names_and_pandas():
    pd = pytest.importorskip("pandas")
    X, _ = series()
    frame = pd.DataFrame(X, columns=["a", "b"])
    transformer = states(3).set_output(transform="pandas")
    out = transformer.fit_transform(frame)
    names = ["reservoirtransformer0", "reservoirtransformer1", "reservoirtransformer2"]
    assert list(out.columns) == list(transformer.get_feature_names_out()) == names
    with pytest.raises(ValueError, match="feature names"):
        transformer.transform(frame[["b", "a"]])
    for sequences in ([frame[:50], frame[50:]], X.reshape(5, 100, 2)):
        with pytest.raises(ValueError, match=r"collection of [25] sequences\. Pass one table"):
            transformer.fit_transform(sequences)


# ---------------------------------------------------------------- chains and unions


class Node:
    """One of the reservoirs of a composition: its inputs, and by how many rows it is ahead."""

    def __init__(self, reservoir, inputs, ahead):
        self.reservoir, self.inputs, self.ahead = reservoir, inputs, ahead


def depth(model):
    """Return the number of reservoirs that a row passes one after the other."""
    if isinstance(model, Pipeline):
        return sum(depth(step) for _, step in model.steps)
    if isinstance(model, FeatureUnion):
        return max(depth(step) for _, step in model.transformer_list)
    if hasattr(model, "transformers_"):
        return max(depth(step) for _, step, _ in model.transformers_)
    return int(isinstance(model, ReservoirTransformer))


def follow(model, signals, ahead, nodes):
    """Add the reservoirs of a model to `nodes`; return its output signals, (node, column).

    Node -1 is the input X.
    """
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
        for i, step in enumerate(steps):
            signals = follow(step, signals, ahead + sum(map(depth, steps[i + 1 :])), nodes)
        return signals
    if isinstance(model, FeatureUnion):
        parts = [(step, signals) for _, step in model.transformer_list]
    elif hasattr(model, "transformers_"):
        parts = [(step, [signals[c] for c in columns]) for _, step, columns in model.transformers_]
    elif isinstance(model, ReservoirTransformer):
        nodes.append(Node(model.reservoir_, signals, ahead))
        return [(len(nodes) - 1, unit) for unit in range(model.reservoir_.n_units)]
    else:
        return signals  # passed through
    return [signal for step, given in parts for signal in follow(step, given, ahead, nodes)]


def as_one_reservoir(nodes, n_features):
    """Return one reservoir over u[t], u[t+1], ...; a node that is k rows ahead is k rows ahead.

    What a node receives from another in the same row is then a connection from the step before.
    """
    sizes = [node.reservoir.n_units for node in nodes]
    first = np.concatenate([[0], np.cumsum(sizes)])
    most = max(node.ahead for node in nodes)
    W, W_in = np.zeros((first[-1],) * 2), np.zeros((first[-1], n_features * (most + 1)))
    for k, node in enumerate(nodes):
        mine = slice(first[k], first[k + 1])
        W[mine, mine] = node.reservoir.W.toarray()
        weights = np.asarray(node.reservoir.W_in)
        for column, (source, unit) in enumerate(node.inputs):
            if source < 0:
                W_in[mine, node.ahead * n_features + unit] += weights[:, column]
            else:
                assert nodes[source].ahead == node.ahead + 1
                W[mine, first[source] + unit] += weights[:, column]
    leaks = [np.broadcast_to(node.reservoir.leak_rate, node.reservoir.n_units) for node in nodes]
    bias = np.concatenate([node.reservoir.bias for node in nodes])
    return Reservoir(W, W_in, bias, leak_rate=np.concatenate(leaks)), first, most


def outputs_of_one_reservoir(pipe, X):
    """Return what a pipeline predicts, from one reservoir that runs over all rows of X."""
    nodes, last = [], pipe[-1]
    networked = isinstance(last, ESNRegressor)
    signals = follow(pipe[:-1], [(-1, c) for c in range(X.shape[1])], int(networked), nodes)
    if networked:
        nodes.append(Node(last.reservoir_, signals, 0))
    joint, first, most = as_one_reservoir(nodes, X.shape[1])
    rows = len(X) - most
    ahead = np.hstack([X[k : k + rows] for k in range(most + 1)])
    z = run(joint, ahead)
    features = [z[:, first[-2] :]] if networked else []
    for source, unit in signals:
        column = X[:rows, unit] if source < 0 else z[:, first[source] + unit]
        late = networked and source >= 0  # one row ahead of the network behind it
        features.append((np.append(0, column[:-1]) if late else column)[:, None])
    return np.hstack(features) @ last.coef_ + last.intercept_


COMPOSED = {
    "chain": lambda: make_pipeline(states(), network()),
    "chain with leaks": lambda: make_pipeline(states(leak_rate=0.5), network(leak_rate=0.3)),
    "chain of three": lambda: make_pipeline(states(), states(9, leak_rate=0.6), network()),
    "chain before a ridge": lambda: make_pipeline(states(), states(9, random_state=2), Ridge(1e-3)),
    "union": lambda: make_pipeline(make_union(states(), states(9, leak_rate=0.3)), network()),
    "union before a ridge": lambda: make_pipeline(
        make_union(states(), states(9, leak_rate=0.3)), Ridge(1e-3)
    ),
    "union of chains": lambda: make_pipeline(
        make_union(make_pipeline(states(), states(8)), states(7, leak_rate=0.4)), network()
    ),
    "chain into a union": lambda: make_pipeline(
        states(), make_union(states(8), states(7, leak_rate=0.4)), Ridge(1e-3)
    ),
    "columns": lambda: make_pipeline(
        make_column_transformer(
            (states(), [0]), (states(9, leak_rate=0.3), [1, 0]), ("passthrough", [1])
        ),
        network(),
    ),
}


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("name", COMPOSED)
def test_a_composition_predicts_what_one_reservoir_would(name, global_random_seed):
    X, y = series(seed=global_random_seed)
    pipe = COMPOSED[name]().fit(X[:N], y[:N])
    one = outputs_of_one_reservoir(pipe, X)[N:]
    assert np.ptp(one) > 0.5
    np.testing.assert_allclose(pipe.predict(X[N:])[: len(one)], one, rtol=0, atol=1e-10)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "last",
    [
        ESNRegressor(20, random_state=1),
        NVARRegressor(2, degree=1),
        ESNClassifier(20, random_state=1),
        RNNRegressor(4, init="esn", max_iter=1, random_state=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_network_behind_a_reservoir_continues_with_it(last):
    X, y = series()
    y = y > 0 if isinstance(last, ESNClassifier) else y
    pipe = make_pipeline(states(), clone(last)).fit(X[:N], y[:N])
    alone = clone(last).fit((whole := states().fit_transform(X))[:N], y[:N])
    expected = alone.predict(whole[N:])
    if y.dtype == bool:
        assert np.array_equal(pipe.predict(X[N:]), expected)
    else:
        np.testing.assert_allclose(pipe.predict(X[N:]), expected, rtol=0, atol=1e-10)


def test_the_rows_after_training_of_a_chaotic_series():
    rows = mackey_glass(1101, random_state=0)
    X, y = rows[:-1], rows[1:].ravel()
    pipe = make_pipeline(states(50, leak_rate=0.5), ESNRegressor(60, random_state=1))
    assert pipe.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.999


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_cross_validation_over_time_is_a_run_over_all_rows(n_jobs):
    X, y = series()
    union = make_union(states(), states(9, leak_rate=0.3), n_jobs=n_jobs)
    whole, splits = union.fit_transform(X), TimeSeriesSplit(3)
    pipe = make_pipeline(union, Ridge(1e-3))
    expected = [
        Ridge(1e-3).fit(whole[train], y[train]).score(whole[test], y[test])
        for train, test in splits.split(X)
    ]
    scores = cross_val_score(pipe, X, y, cv=splits, n_jobs=n_jobs)
    np.testing.assert_allclose(scores, expected, atol=1e-10)


def test_frames_pickles_and_files_of_a_chain(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = series()
    pipe = make_pipeline(states(), network()).fit(X[:N], y[:N])
    expected = pipe.predict(X[N:])
    days = pd.date_range("2024-01-01", periods=len(X), freq="D")
    frame, target = pd.DataFrame(X, days, ["a", "b"]), pd.Series(y, days)
    for setting in ("default", "pandas"):
        framed = clone(pipe).set_output(transform=setting).fit(frame[:N], target[:N])
        np.testing.assert_allclose(framed.predict(frame[N:]), expected, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(pipe)).predict(X[N:]), expected)
    for k, step in enumerate(pipe):
        save(step, tmp_path / f"{k}.npz")
    again = Pipeline([(str(k), load(tmp_path / f"{k}.npz")) for k in range(2)])
    assert np.array_equal(again.predict(X[N:]), expected)
    assert np.array_equal(again[0].partial_fit(X[N:]).state_, pipe[0].partial_fit(X[N:]).state_)


# ---------------------------------------------------------------- gaps, ids, other splits


def test_a_gap_that_only_the_transformer_sees():
    pd = pytest.importorskip("pandas")
    rows = mackey_glass(1201, random_state=0)
    days = pd.date_range("2020-01-01", periods=1200, freq="D")
    frame, y = pd.DataFrame(rows[:-1], days, ["level"]), rows[1:].ravel()
    errors = {}
    for setting in ("default", "pandas"):
        pipe = make_pipeline(states(50, leak_rate=0.5), ESNRegressor(60, random_state=1))
        pipe.set_output(transform=setting).fit(frame[:1000], pd.Series(y, days)[:1000])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predicted = pipe.predict(frame[1113:])
        assert 'set_output(transform="pandas") on the pipeline keeps' in str(caught[0].message)
        assert 'initial_state="zeros" in all steps' in str(caught[0].message)
        assert len(caught) == (1 if setting == "default" else 2)
        errors[setting] = np.abs(predicted - y[1113:])[:3].max()
    assert errors["pandas"] < 0.5 * errors["default"]


def test_what_takes_ids_past_a_transformer():
    pd = pytest.importorskip("pandas")
    X, y = series()
    Xs, ys = [X[:150], X[150:N], X[N:]], [y[:150], y[150:N], y[N:]]
    expected = np.concatenate(make_pipeline(states(), network()).fit(Xs, ys).predict(Xs))
    table, target, _ = stack_sequences(Xs, ys)
    with_ids = make_column_transformer(("passthrough", [0]), (states(sequence_column=0), [0, 1, 2]))
    pipe = make_pipeline(with_ids, network(sequence_column=0)).fit(table, target)
    np.testing.assert_array_equal(pipe.predict(table), expected)
    with pytest.warns(UserWarning, match=r"Each of the 500 rows .* let the ids pass beside"):
        make_pipeline(with_ids.transformers[1][1], network(sequence_column=0)).fit(table, target)
    steps = np.concatenate([np.arange(len(part)) for part in Xs])
    index = pd.MultiIndex.from_arrays([table[:, 0].astype(int), steps])
    frame = pd.DataFrame(table[:, 1:], index)
    pipe = make_pipeline(states(), network()).set_output(transform="pandas").fit(frame, target)
    np.testing.assert_array_equal(pipe.predict(frame), expected)


def test_per_step_starts_no_sequence_at_the_end_of_another():
    X, _ = series()
    Xs = [X[:150], X[150:N]]
    for inner in (states(), make_union(states(), states(5))):
        with pytest.raises(ValueError, match='Use initial_state="zeros" there'):
            PerStep(inner).fit(Xs)
        expected = clone(inner).fit_transform(X)
        np.testing.assert_array_equal(PerStep(inner).fit_transform(X), expected)
    zeros = states(initial_state="zeros")
    for one, other in zip(PerStep(zeros).fit_transform(Xs), zeros.fit_transform(Xs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


def test_scorers_with_a_washout_warn_of_a_single_step_that_continues():
    X, y = series()
    scorer = washout_scorer("r2", 20)
    pipe = make_pipeline(states(), network(initial_state="zeros")).fit(X[:N], y[:N])
    with pytest.warns(UserWarning, match=r'reservoirtransformer__initial_state="last".*all steps'):
        scorer(pipe, X[N:], y[N:])
    for start in ("zeros", "last"):  # silent
        scorer(clone(pipe).set_params(
            reservoirtransformer__initial_state=start, esnregressor__initial_state=start
        ).fit(X[:N], y[:N]), X[N:], y[N:])  # fmt: skip
    scorer(pipe, [X[N:]], [y[N:]])


# ---------------------------------------------------------------- chunks


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_chunks_move_the_end_on(dtype):
    X, _ = series()
    whole = states(dtype=dtype).fit_transform(X)
    made = states(dtype=dtype)
    for begin, end in ((0, 1), (1, 150), (150, N)):
        assert made.partial_fit(X[begin:end]) is made
        np.testing.assert_allclose(made.state_, whole[end - 1], atol=1e-6)
    np.testing.assert_allclose(made.transform(X[N:]), whole[N:], rtol=0, atol=1e-6)
    assert made.state_.dtype == dtype
    zeros = states(dtype=dtype, initial_state="zeros").fit(X[:N])
    fresh = made.partial_fit(X[:100], new_sequence=True).transform(X[100:N])
    np.testing.assert_allclose(fresh, zeros.transform(X[:N])[100:], rtol=0, atol=1e-6)


def test_chunks_of_several_sequences_and_of_ids():
    X, _ = series()
    made = states().partial_fit([X[:50], X[50:200]])
    reference = states().fit(X[50:200])
    np.testing.assert_allclose(made.transform(X[200:]), reference.transform(X[200:]), atol=1e-14)
    ids = np.repeat([3.0, 5.0], 250)[:, None]
    table = np.hstack([ids, X])
    one = states(sequence_column=0).partial_fit(table[:300]).partial_fit(table[300:N])
    np.testing.assert_allclose(one.state_, states().fit(X[250:N]).state_, atol=1e-14)
    with pytest.raises(ValueError, match=r"Sequence id .*3.* occurs again"):
        one.partial_fit(table[:20])


def test_chunks_at_irregular_times():
    X, y = series()
    times = np.cumsum(1.0 + np.arange(len(X)) % 3)
    rows = np.column_stack([times, X])
    made = states(time_column=0, leak_rate=0.4).partial_fit(rows[:150]).partial_fit(rows[150:N])
    whole = states(time_column=0, leak_rate=0.4, time_step=made.time_step_).fit_transform(rows)
    np.testing.assert_allclose(made.transform(rows[N:]), whole[N:], atol=1e-12)
    session = made.stream()
    parts = [session.transform(rows[N : N + 7]), session.transform(rows[N + 7 :])]
    np.testing.assert_allclose(np.vstack(parts), whole[N:], atol=1e-12)
    assert session.state.shape == made.state_.shape == (13,)
    # times pass beside the states
    beside = make_column_transformer(("passthrough", [0]), (clone(made), [0, 1, 2]))
    timed = {"time_column": 0, "time_step": made.time_step_}
    pipe = make_pipeline(beside, network(**timed)).fit(rows[:N], y[:N])
    expected = network(**timed).fit((both := np.column_stack([times, whole]))[:N], y[:N])
    np.testing.assert_allclose(pipe.predict(rows[N:]), expected.predict(both[N:]), atol=1e-10)


def test_a_chunk_after_a_gap_warns_and_one_that_fails_changes_nothing():
    pd = pytest.importorskip("pandas")
    X, _ = series()
    frame = pd.DataFrame(X, pd.date_range("2024-01-01", periods=len(X), freq="D"), ["a", "b"])
    made = states().partial_fit(frame[:100])
    with pytest.warns(UserWarning, match="partial_fit continues from the state at the end"):
        made.partial_fit(frame[110:200])
    made.partial_fit(frame[200:300]).transform(frame[300:])  # silent
    before = dict(vars(made))
    with pytest.raises(ValueError, match="NaN"):
        made.partial_fit(frame[300:].where(frame > 0))
    assert vars(made) == before


def test_chunks_beyond_the_certified_range_and_saturated_ones_warn():
    X, _ = series()
    made = states(bias="stable", spectral_radius=0.7).partial_fit(X)
    with pytest.warns(UserWarning, match="certificate_ does not cover"):
        made.partial_fit(5 * X)
    made = states().partial_fit(100 * X[:5])
    for t in range(5, 9):
        made.partial_fit(100 * X[t : t + 1])
    with pytest.warns(UserWarning, match="the bounds of tanh"):
        made.partial_fit(100 * X[9:10])  # the tenth row
    made.partial_fit(100 * X[10:60])  # warned once


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_a_call_that_fails_changes_nothing(method):
    X, _ = series(50, 1)
    model = states(20, activation="identity", spectral_radius=1e6)
    if method != "partial_fit":
        model.fit(X[:2])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="states are not finite"):
        getattr(model, method)(np.tile(X, (8, 2)) * 1e300)
    assert vars(model) == before


# ---------------------------------------------------------------- sessions


@pytest.mark.parametrize("start", ["last", "zeros", "steady", "array"])
def test_a_session_is_one_call_in_parts(start):
    X, _ = series()
    made = states().fit(X[:N])
    spec = np.full(12, 0.1) if start == "array" else start
    session = made.stream(spec)
    assert isinstance(session, StateStream)
    before = pickle.dumps(made)
    parts = [session.transform(X[N : N + 1]), session.transform(X[N + 1 : N + 30])]
    for another in (copy.copy(session), pickle.loads(pickle.dumps(session))):
        later = another.transform(X[N + 30 :])
    assert pickle.dumps(made) == before
    expected = clone(made).fit(X[:N]).set_params(initial_state=spec).transform(X[N:])
    np.testing.assert_allclose(np.vstack([*parts, later]), expected, atol=1e-14)
    session.reset()
    np.testing.assert_allclose(session.transform(X[N:]), expected, atol=1e-14)


def test_a_saved_session_continues(tmp_path):
    X, _ = series()
    table = np.hstack([np.ones((len(X), 1)), X])
    session = states(sequence_column=0).fit(table[:N]).stream()
    for rows in (table[N : N + 10], table[N + 10 :]):
        save(session, tmp_path / "session.npz")
        again = load(tmp_path / "session.npz")
        assert np.array_equal(again.transform(rows), session.transform(rows))
    with pytest.raises(ValueError, match="belongs to another sequence"):
        again.transform(np.hstack([2 * np.ones((9, 1)), X[:9]]))
    with pytest.raises(ValueError, match=r"contains 1 sequence\(s\)"):
        states().fit(X).stream().transform([X[:9]])


def test_sessions_return_frames_and_warn_of_gaps():
    pd = pytest.importorskip("pandas")
    X, _ = series()
    days = pd.date_range("2024-01-01", periods=len(X), freq="D")
    frame = pd.DataFrame(X, days, ["a", "b"])
    made = states().set_output(transform="pandas").fit(frame[:N])
    session = made.stream()
    out = session.transform(frame[N : N + 20])
    pd.testing.assert_frame_equal(out, made.transform(frame[N : N + 20]))
    with pytest.warns(UserWarning, match="A session continues from the state after its last row"):
        session.transform(frame[N + 30 : N + 40])
    with pytest.warns(UserWarning, match="does not follow"):
        made.stream().transform(frame[N + 5 :])


def test_two_sessions_run_a_chain_row_by_row():
    X, y = series()
    pipe = make_pipeline(states(), network()).fit(X[:N], y[:N])
    first, second = pipe[0].stream(), pipe[-1].stream()
    rows = [second.predict(first.transform(X[t : t + 1]))[0] for t in range(N, len(X))]
    np.testing.assert_allclose(rows, pipe.predict(X[N:]), atol=1e-12)


# ---------------------------------------------------------------- files of earlier versions


def test_files_of_earlier_versions_keep_zeros_and_count_their_rows(tmp_path):
    X, _ = series()
    made = states().fit(X[:N])
    made._progress = Progress(0)  # as it was: ended, but without a count
    made._progress.continues = True
    del made._activity
    save(made, tmp_path / "states.npz")
    again = load(tmp_path / "states.npz").partial_fit(X[N:])
    np.testing.assert_allclose(again.state_, states().fit_transform(X)[-1], atol=1e-14)
    save(states(initial_state="zeros").fit(X), tmp_path / "states.npz")
    assert load(tmp_path / "states.npz").initial_state == "zeros"
    with np.load(tmp_path / "states.npz") as arrays:
        content = dict(arrays)
    header = str(content["header"]).replace('"initial_state": "zeros", ', "")
    np.savez(tmp_path / "without.npz", **{**content, "header": header})
    assert load(tmp_path / "without.npz").initial_state == "zeros"
