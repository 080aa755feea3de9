"""Pooling during a run equals pooling the stored states."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import naive
from reservoir import _kernels
from reservoir.building import build_reservoir
from reservoir.dynamics import Pooling, Reservoir, join_reservoirs, pool_many, run, run_many
from reservoir.dynamics.pooling import POOLS, pool_into
from reservoir.dynamics.state_quantiles import state_quantiles

ENGINES = [
    "numpy",
    pytest.param(
        "numba",
        marks=pytest.mark.skipif(
            not _kernels.installed() or _kernels.disabled(), reason="needs numba"
        ),
    ),
]
ALL = tuple(POOLS)
LENGTHS = [[1], [1, 1, 1], [5, 40, 33, 32, 31, 64, 65, 1, 2, 3, 100, 200, 7], [2100, 1025, 3]]
on_every_engine = pytest.mark.parametrize("engine", ENGINES)


def drawn(n_units=20, n_features=3, *, dtype="float64", seed=0, **params):
    rng = np.random.default_rng(seed)
    params = {"leak_rate": rng.uniform(0.1, 1, n_units), "in_degree": 5} | params
    return build_reservoir(n_units, n_features, dtype=dtype, random_state=seed, **params)


def series_of(lengths, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, n_features)) for n in lengths]


@pytest.mark.fast_cases(2)
@on_every_engine
@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)} series")
@pytest.mark.parametrize("n_units", [1, 20, 67])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-13), ("float32", 1e-6)])
def test_equals_pooling_all_states(dtype, atol, n_units, lengths, engine):
    res, X = drawn(n_units, dtype=dtype), series_of(lengths)
    rng = np.random.default_rng(1)
    thresholds = rng.uniform(-1, 1, (5, n_units)).astype(dtype)
    starts = rng.uniform(-1, 1, (len(X), n_units))
    rows = pool_many(res, X, Pooling(ALL, thresholds), initial_states=starts, engine=engine)
    assert rows.dtype == dtype
    for row, rows_of_x, start in zip(rows, X, starts, strict=True):
        states = run(res, rows_of_x, initial_state=start, engine=engine)
        expected = naive.pooled(states, ALL, thresholds)
        np.testing.assert_allclose(row[: 5 * n_units], expected[: 5 * n_units], rtol=0, atol=atol)
        # a state within rounding of a threshold may lie on either side of it
        close = (abs(states[:, None] - thresholds) < 1e-5).mean(axis=0).ravel()
        allowed = close * (dtype == "float32") + 1e-7
        assert (abs(row[5 * n_units :] - expected[5 * n_units :]) <= allowed).all()


@on_every_engine
@pytest.mark.parametrize("activation", ["identity", "relu", "logistic"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-9), ("float32", 1e-4)])
def test_a_large_mean_costs_the_deviation_no_digits(dtype, rtol, activation, engine):
    """E[x^2] - E[x]^2 would leave no digit of it in float32, and few in float64."""
    offset = {"float64": 1e7, "float32": 1e3}[dtype] if activation != "logistic" else 5.0
    W = sp.csr_array((3, 3), dtype=dtype)
    res = Reservoir(W, np.diag([1.0, 0.1, 0.01]), np.full(3, offset), activation=activation)
    X = series_of([3000, 40, 2])
    rows = pool_many(res, X, Pooling(("std",)), engine=engine)
    for row, rows_of_x in zip(rows, X, strict=True):
        states = run(res, rows_of_x, engine=engine).astype(np.float64)
        states -= states[0]  # exact; NumPy's own deviation loses digits to the mean
        np.testing.assert_allclose(row, states.std(axis=0), rtol=rtol)


@on_every_engine
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_state_at_its_threshold_is_not_above(dtype, engine):
    """As zeros of relu units are, where a quantile falls on them."""
    res = Reservoir(np.zeros((1, 1), dtype), np.ones((1, 1)), np.zeros(1), activation="relu")
    X = [np.array([[-1.0], [0.0], [2.0], [1.0]]), np.array([[-3.0], [5.0]])]
    rows = pool_many(res, X, Pooling(("quantiles",), np.array([[0.0], [1.0]])), engine=engine)
    np.testing.assert_array_equal(rows, [[0.5, 0.25], [0.5, 0.5]])


@on_every_engine
def test_threads_change_nothing(engine):
    res, X = drawn(30), series_of([20, 300, 41] * 8)
    pooling = Pooling(ALL, np.zeros((4, 30)))
    one, two = (pool_many(res, X, pooling, engine=engine, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_a_series_does_not_depend_on_those_beside_it(engine):
    res, X = drawn(30, dtype="float32"), series_of([20, 300, 41] * 4)
    pooling = Pooling(ALL, np.zeros((4, 30)))
    together = pool_many(res, X, pooling, engine=engine)
    alone = np.vstack([pool_many(res, [rows], pooling, engine=engine) for rows in X])
    np.testing.assert_array_equal(together, alone)


@on_every_engine
def test_memory_does_not_grow_with_the_length(engine):
    res, X = drawn(200, 1), series_of([30_000], 1)
    pooling = Pooling(ALL, np.zeros((4, 200)))
    pool_many(res, [X[0][:50]], pooling, engine=engine)
    tracemalloc.start()
    try:
        pool_many(res, X, pooling, engine=engine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10e6 < 30_000 * 200 * 8 / 4  # of 48 MB of states


@on_every_engine
def test_a_dense_w_and_no_common_engine(engine):
    res = drawn(12, topology="orthogonal")
    X, thresholds = series_of([9, 30]), np.zeros((1, 12))
    rows = pool_many(res, X, Pooling(ALL, thresholds), engine=engine)
    for row, rows_of_x in zip(rows, X, strict=True):
        expected = naive.pooled(run(res, rows_of_x, engine=engine), ALL, thresholds)
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-13)


@on_every_engine
def test_overflow_raises(engine):
    res = Reservoir(2 * np.eye(1), [[1.0]], [0.0], activation="identity")
    with pytest.raises(ValueError, match="not finite"):
        pool_many(res, [np.ones((2000, 1))], Pooling(("mean",)), engine=engine)
    X = [np.ones((3, 1)), np.ones((700, 1))]
    with pytest.raises(ValueError, match=r"series\[1\] overflow"):
        pool_many(res, X, Pooling(("std",)), engine=engine)


def test_bad_arguments_raise():
    res = drawn(5, 1)
    with pytest.raises(ValueError, match="Did you mean 'mean'"):
        Pooling(("meen",))
    with pytest.raises(ValueError, match="twice"):
        Pooling(("max", "max"))
    with pytest.raises(ValueError, match="must be one or several of these names"):
        Pooling(())
    with pytest.raises(ValueError, match="needs thresholds"):
        Pooling(("quantiles",))
    with pytest.raises(ValueError, match=r"series\[1\] has 0 steps"):
        pool_many(res, [np.ones((2, 1)), np.ones((0, 1))], Pooling(("max",)), engine="numpy")
    with pytest.raises(ValueError, match="n_units=5"):
        pool_many(res, [np.ones((2, 1))], Pooling(("quantiles",), np.zeros((1, 4))), engine="numpy")


@on_every_engine
def test_quantiles_of_states_are_those_of_all_where_all_are_drawn(engine):
    res, X = drawn(10), series_of([50, 31, 7, 60, 1, 2])
    states = np.vstack([run(res, rows, engine=engine) for rows in X])
    levels = np.array([0.2, 0.5, 0.9])
    rng = np.random.default_rng(0)
    ours = state_quantiles(res, X, levels, generator=rng, engine=engine)
    np.testing.assert_allclose(ours, np.quantile(states, levels, axis=0), rtol=0, atol=1e-13)
    few = state_quantiles(res, X, levels, max_rows=100, generator=rng, engine=engine)
    assert 0 < abs(few - ours).max() < 0.5


def test_joined_reservoirs_run_as_each_alone():
    parts = [drawn(n, dtype="float32", seed=n, leak_rate=a) for n, a in ((4, 1.0), (7, 0.2))]
    whole, X = join_reservoirs(parts), series_of([40])[0]
    assert (whole.dtype, whole.n_units) == ("float32", 11)
    alone = np.hstack([run(part, X, engine="numpy") for part in parts])
    np.testing.assert_allclose(run(whole, X, engine="numpy"), alone, rtol=0, atol=1e-6)
    dense = [replace(part, W=sp.csr_array(part.W).toarray()) for part in parts]
    np.testing.assert_array_equal(join_reservoirs(dense).W.toarray(), whole.W.toarray())
    for wrong, match in (
        ([], "empty"),
        ([parts[0], drawn(4, 2, dtype="float32")], "same n_features"),
        ([parts[0], drawn(4)], "same dtype"),
        ([build_reservoir(3, 3, n_outputs=1)] * 2, "W_fb"),
    ):
        with pytest.raises(ValueError, match=match):
            join_reservoirs(wrong)


def test_messages_call_series_by_their_names():
    res = Reservoir(2 * np.eye(1), [[1.0]], [0.0], activation="identity")
    given = {"engine": "numpy", "name_of": ["anna", "bert"].__getitem__}
    place = np.empty((2, 1)), np.arange(2)
    for length, match in [(700, "states of bert overflow"), (2000, "In bert: The states are not")]:
        X = [np.ones((3, 1)), np.ones((length, 1))]
        with pytest.raises(ValueError, match=match):
            pool_into(*place, res, X, Pooling(("std",)), **given)
    with pytest.raises(ValueError, match="bert has 0 steps"):
        pool_into(*place, res, [X[0], X[0][:0]], Pooling(("std",)), **given)


@on_every_engine
def test_steps_are_counted_alike_in_run_and_run_many(engine):
    res = Reservoir(2 * np.eye(1), [[1.0]], [0.0], activation="identity")
    lengths = [*[100] * 7, 2000]
    with pytest.raises(ValueError, match=r"^The states are not finite") as alone:
        run(res, np.ones((2000, 1)), engine=engine)
    with pytest.raises(ValueError, match=r"^The states are not finite") as beside:
        run_many(res, [np.ones((n, 1)) for n in lengths], engine=engine)
    assert str(beside.value) == str(alone.value)
    again = pickle.loads(pickle.dumps(beside.value))
    assert str(again) == str(alone.value)
