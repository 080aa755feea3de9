"""Predictions of many sequences in batches: the bits of one run, and the memory of a batch."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

from reservoir import ESNClassifier, ESNRegressor, RNNClassifier, RNNRegressor
from reservoir.estimators.forecasting import predictor
from reservoir.estimators.forecasting.predictor import batches_of

pytestmark = pytest.mark.one_engine
MANY = 100


def many(n=MANY, seed=0, equal=False):
    """Return sequences of different lengths, and targets that depend on two rows."""
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(9 if equal else rng.integers(2, 15), 2)) for _ in range(n)]
    return Xs, [X[:, 0] + np.r_[0, X[:-1, 1]] for X in Xs]


@pytest.fixture
def small_batches(monkeypatch):
    """Let a few sequences be more than a batch holds."""
    monkeypatch.setattr(predictor, "_SEQUENCES", 32)
    monkeypatch.setattr(predictor, "_FEWEST_ROWS", 0)


def containers(Xs):
    """Return sequences in several containers, with the id column of each."""
    ids = np.concatenate([np.full(len(X), i) for i, X in enumerate(Xs)])
    packed = np.empty(len(Xs), dtype=object)
    packed[:] = Xs
    equal = many(equal=True)[0]
    return [
        (Xs, None),
        (packed, None),
        (np.column_stack([ids, np.concatenate(Xs)]), 0),
        (np.stack(equal), None),
        (np.stack(equal)[:, ::-1], None),  # not contiguous
    ]


def test_batches_hold_each_sequence_once():
    rng = np.random.default_rng(0)
    assert batches_of([3] * 1024) == []
    for lengths in ([1] * 9000, rng.integers(1, 9000, 1500).tolist(), [5] * 8193):
        batches = batches_of(lengths)
        np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(len(lengths)))
        rows = [sum(lengths[i] for i in batch) for batch in batches]
        sizes = [len(batch) for batch in batches]
        assert all(size % 32 == 0 for size in sizes[:-1])  # groups are those of a single run
        assert len(batches) == 1 or min(sizes) > 1
        assert all(n >= 4096 for n in rows[:-1])
        assert all(n < 2**16 + 33 * 9000 for n in rows)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "model",
    [
        ESNRegressor(12, random_state=0),
        ESNRegressor(12, dtype="float32", initial_state="steady", random_state=0),
        ESNRegressor(5, feedback=True, spectral_radius=0.5, random_state=0),
        RNNRegressor(5, init="esn", max_iter=1, random_state=0),
    ],
    ids=["plain", "steady", "feedback", "trained"],
)
def test_batches_lead_to_the_bits_of_one_run(model, monkeypatch):
    """Those of trained networks to rounding: products over all cases, which a BLAS may cut up."""
    assert_same = np.testing.assert_array_equal
    if isinstance(model, RNNRegressor):
        assert_same = partial(np.testing.assert_allclose, rtol=0, atol=1e-10)
    Xs, ys = many()
    given = containers(Xs)
    for X, column in given:
        model.set_params(sequence_column=column)
        if column is None:
            model.fit(
                list(X[:20]), ys[:20] if len(X[0]) == len(ys[0]) else [x[:, 0] for x in X[:20]]
            )
        else:
            model.fit(X[X[:, 0] < 20], np.concatenate(ys[:20]))
        one, states = model.predict(X, return_state=True)
        starts = np.random.default_rng(0).uniform(-1, 1, (MANY, model.n_units))
        from_there = model.predict(X, initial_state=starts)
        with monkeypatch.context() as patch:
            patch.setattr(predictor, "_SEQUENCES", 32)
            patch.setattr(predictor, "_FEWEST_ROWS", 0)
            found, ends = model.predict(X, return_state=True)
            again = model.predict(X, initial_state=starts)
            with pytest.raises(ValueError, match=rf"n_sequences={MANY}, .*shape \(3, "):
                model.predict(X, initial_state=starts[:3])
        assert type(found) is type(one)
        assert_same(ends, states)
        for mine, theirs in ((found, one), (again, from_there)):
            assert len(mine) == len(theirs)
            for a, b in zip(mine, theirs, strict=True):
                assert_same(a, b)


def test_labels_probabilities_and_frames(small_batches):
    pd = pytest.importorskip("pandas")
    Xs, ys = many()
    labels = [np.where(y > 0, "up", "down") for y in ys]
    for model in (
        ESNClassifier(10, random_state=0),
        RNNClassifier(4, init="esn", max_iter=1, random_state=0),
    ):
        model.fit(Xs[:20], labels[:20])
        for ask in ("predict", "predict_proba", "decision_function"):
            parts = getattr(model, ask)(Xs)
            for i in (0, 40, MANY - 1):
                alone = getattr(model, ask)([Xs[i], Xs[0]])[0]
                if ask == "predict":
                    np.testing.assert_array_equal(parts[i], alone)
                else:
                    np.testing.assert_allclose(parts[i], alone, atol=1e-9)
        frames = [pd.DataFrame(X, index=5 + np.arange(len(X))) for X in Xs]
        model.set_output(predict="pandas")
        for i, frame in enumerate(model.predict(frames)):
            assert frame.index.equals(frames[i].index)
    last = RNNClassifier(4, init="esn", max_iter=1, target="last", random_state=0)
    last.fit(Xs[:40], [y[-1] for y in labels[:40]])
    found = last.predict_proba(Xs)
    assert found.shape == (MANY, 2)
    np.testing.assert_allclose(found[[3, 99]], last.predict_proba([Xs[3], Xs[99]]), atol=1e-9)


def test_messages_number_sequences_in_x(small_batches):
    Xs, ys = many()
    bad = [X.copy() for X in Xs]
    bad[97][1, 0] = 1e300
    rnn = RNNRegressor(4, init="esn", max_iter=1, activation="relu", random_state=0).fit(
        Xs[:20], ys[:20]
    )
    rnn.params_["W_in"] *= 1e10
    with pytest.raises(ValueError, match="row 1 of sequence 97 overflows"):
        rnn.predict(bad)
    stack = np.stack(many(equal=True)[0])
    esn = ESNRegressor(5, random_state=0).fit(stack[:20], stack[:20, :, 0])
    stack[99, 4, 1] = np.nan
    with pytest.raises(
        ValueError, match="sequence 99 of X contains NaN in column 1, first in row 4"
    ):
        esn.predict(stack)
    with pytest.raises(ValueError, match="X has 1 features"):
        esn.predict(stack[:, :, :1])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kind", ["array", "list", "ids"])
def test_the_result_is_held_once_beside_a_batch(kind, small_batches):
    n_steps, n_units = 20, 80
    column = 0 if kind == "ids" else None
    esn = ESNRegressor(n_units, sequence_column=column, washout=0, random_state=0)
    peaks, sizes = [], []
    for n in (256, 512):
        X = np.random.default_rng(0).normal(size=(n, n_steps, 1))
        y = X[..., 0]
        if kind == "list":
            X = list(X)
        elif kind == "ids":
            X = np.column_stack([np.repeat(np.arange(n), n_steps), X.ravel()])
            y = y.ravel()
        esn.fit(X[:200], y[:200])
        esn.predict(X[:200])
        tracemalloc.start()
        found = esn.predict(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(n * n_steps * 8)
        del found
    # states alone would add four times the memory of the outputs to these; ids, and the table
    # without them, take some, too
    allowed = {"array": 2.5, "list": 3.5, "ids": 6}[kind]
    assert peaks[1] - peaks[0] < allowed * (sizes[1] - sizes[0])
