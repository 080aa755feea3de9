"""Forecasts after several contexts are the forecasts after each of them, in the same container."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from reservoir import ESNRegressor, NVARRegressor, RNNRegressor, forecast
from reservoir.datasets import henon

pytestmark = pytest.mark.both_engines


@pytest.fixture(scope="module")
def rows():
    return henon(400, random_state=0)


def esn(**params):
    return ESNRegressor(30, washout=20, random_state=0, **params)


MODELS = {
    "ESN": esn(),
    "single precision": esn(dtype="float32"),
    "NVAR": NVARRegressor(2, degree=2),
    "GRU": RNNRegressor(8, cell="gru", init="orthogonal", max_iter=1, random_state=0),
    "scaled": make_pipeline(StandardScaler(), esn()),
    "by rows": make_pipeline(FunctionTransformer(np.tanh), esn()),
    "targets": TransformedTargetRegressor(esn(), transformer=StandardScaler()),
    "search": GridSearchCV(esn(), {"leak_rate": [0.3]}, cv=TimeSeriesSplit(2)),
}


@pytest.mark.fast_cases(4)
@pytest.mark.filterwarnings("ignore:The closed loop:RuntimeWarning")
@pytest.mark.parametrize("name", MODELS)
def test_many_contexts_are_single_calls(rows, name):
    known = 0.1 * np.random.default_rng(0).normal(size=(400, 1))
    X = np.hstack([rows[:-1], known[1:]])
    model = MODELS[name].fit(X[:200], rows[1:201])
    for ends in ((220, 250, 251), (260, 280, 300)):
        ragged = ends[0] == 220
        contexts = [X[200 if ragged else end - 40 : end] for end in ends]
        exog = [known[end + 1 :][:11] for end in ends]
        single = [
            forecast(model, 12, context=C, exog=E) for C, E in zip(contexts, exog, strict=True)
        ]
        found = forecast(model, 12, context=contexts, exog=exog)
        assert type(found) is list
        for ours, theirs in zip(found, single, strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
    stacked = forecast(model, 12, context=np.stack(contexts), exog=np.stack(exog))
    np.testing.assert_array_equal(stacked, np.stack(single))
    packed = np.empty(3, dtype=object)
    packed[:] = contexts
    found = forecast(model, 12, context=packed, exog=exog)
    assert (found.dtype, found.shape) == (object, (3,))
    np.testing.assert_array_equal(np.stack(found), stacked)
    # a collection of one stays a collection
    (alone,) = forecast(model, 12, context=contexts[:1], exog=exog[:1])
    np.testing.assert_array_equal(alone, single[0])


@pytest.mark.parametrize("feedback", [False, True])
def test_states_are_one_each(rows, feedback):
    model = esn(feedback=feedback)
    X = rows[:200, 1:] if feedback else rows[:200]
    model.fit(X, rows[:200, :1] if feedback else rows[1:201])
    columns = slice(1, None) if feedback else slice(None)
    contexts = [rows[200:230, columns], rows[240:290, columns]]
    exog = [rows[230:235, 1:], rows[290:295, 1:]] if feedback else [None, None]
    starts = np.random.default_rng(0).uniform(-1, 1, size=(2, model.state_.size))
    for given in (None, "zeros", starts[0], starts):
        found, states = model.forecast(
            6,
            context=contexts,
            exog=exog if feedback else None,
            initial_state=given,
            return_state=True,
            clip=(-2, 2),
        )
        assert states.shape == starts.shape
        for i, (C, E) in enumerate(zip(contexts, exog, strict=True)):
            spec = starts[i] if given is starts else given
            alone, state = model.forecast(
                6, context=C, exog=E, initial_state=spec, return_state=True, clip=(-2, 2)
            )
            np.testing.assert_array_equal(found[i], alone)
            np.testing.assert_array_equal(states[i], state)


def test_one_table_of_several_sequences(rows):
    pd = pytest.importorskip("pandas")
    parts = {"b": rows[200:230], "a": rows[240:290]}
    plain = esn().fit(rows[:199], rows[1:200])
    single = [plain.forecast(4, context=C) for C in parts.values()]
    # ids in a column
    ids = [np.repeat(float(i), len(C))[:, None] for i, C in enumerate(parts.values())]
    table = np.hstack([np.concatenate(ids), np.concatenate(list(parts.values()))])
    train = np.insert(rows, 0, 7.0, axis=1)
    numbered = esn(sequence_column=0).fit(train[:199], rows[1:200])
    found, states = numbered.forecast(4, context=table, return_state=True)
    np.testing.assert_array_equal(found, np.concatenate(single))
    assert states.shape == (2, len(plain.state_))
    # ids in the index, which comes back
    frames = {
        name: pd.DataFrame(C, columns=["u", "v"], index=pd.RangeIndex(50, 50 + len(C)))
        for name, C in parts.items()
    }
    context = pd.concat(frames, names=["site", "hour"])
    known = pd.DataFrame(rows[:199], columns=["u", "v"])
    indexed = esn(initial_state="zeros").fit(known, rows[1:200]).set_output(predict="pandas")
    framed = indexed.forecast(4, context=context)
    assert list(framed.index.names) == ["site", "hour"]
    assert framed.index[4] == ("a", 100)
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(
            framed.loc[name], indexed.forecast(4, context=frame), check_names=False
        )
    listed = indexed.forecast(4, context=list(frames.values()))
    pd.testing.assert_frame_equal(listed[1], indexed.forecast(4, context=frames["a"]))
    with_exog = esn(initial_state="zeros").fit(known, rows[1:200, 0])
    given = context[["v"]].groupby(level=0, sort=False).head(3)
    found = with_exog.forecast(4, context=context, exog=given)
    alone = with_exog.forecast(4, context=frames["a"], exog=given.loc["a"])
    np.testing.assert_array_equal(found[4:], alone)
    with pytest.raises(ValueError, match=r"exog has the sequences \['a', 'b'\]"):
        with_exog.forecast(4, context=context, exog=given.sort_index())


def test_the_warning_names_the_sequences_whose_loops_leave():
    growing = 1.5 ** np.arange(60)[:, None]
    model = ESNRegressor(10, activation="identity", washout=5, random_state=0)
    model.fit(growing[:-1], growing[1:, 0])
    still = np.zeros((5, 1))
    contexts = [still, growing[:20], still, growing[:30]]
    where = {"initial_state": "zeros"}
    with pytest.warns(
        RuntimeWarning, match="closed loop of sequence 1 .*other sequences: 3"
    ) as caught:
        model.forecast(60, context=contexts, **where)
    assert len(caught) == 1
    with pytest.warns(RuntimeWarning, match=r"of sequence 0 diverged at step \d+"):
        found = model.forecast(4000, context=contexts[1:2], **where)
    assert np.isfinite(found[0]).all()


def test_refusals(rows):
    model = esn().fit(rows[:199], rows[1:200, 0])
    C, E = rows[200:220], rows[220:222, 1:]
    for context, exog, message in (
        ([C, C], E, r"collection of 2 tables of shape \(2, 1\); got one table of shape \(2, 1\)"),
        ([C, C], [E], r"collection of 2 tables .* got 1 of them"),
        ([C, C], [E, E[:1]], r"exog\[1\] must have shape \(2, 1\)"),
        ([C, C], None, r"Pass exog of shape \(2, 1\)"),
        ([C, C[:, :1]], [E, E], r"In context\[1\]: X has 1 features"),
        (np.zeros((0, 5, 2)), E, "context contains no sequences"),
    ):
        with pytest.raises(ValueError, match=message):
            model.forecast(3, context=context, exog=exog)
    with pytest.raises(ValueError, match="initial_state has 3 rows, but context has 2"):
        model.forecast(3, context=[C, C], exog=[E, E], initial_state=np.zeros((3, 30)))
