"""Compiled kernels against the NumPy reference, and the choice of the engine."""

import copy
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import reservoir
from reservoir import ESNRegressor, _kernels
from reservoir.activations import ACTIVATIONS, Activation
from reservoir.building import build_reservoir
from reservoir.dynamics import (
    Reservoir,
    engines,
    iter_many,
    iter_states,
    run,
    run_closed_loop,
    run_many,
)
from reservoir.dynamics.features import DrivenReservoir
from reservoir.topologies import TOPOLOGIES, diagonals, random_sparse

pytestmark = pytest.mark.one_engine

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

TOLERANCE = {"float64": 1e-12, "float32": 2e-5}  # absolute: states of contracting networks


def network(
    n_units,
    *,
    seed=0,
    n_features=2,
    n_outputs=0,
    density=0.3,
    storage="sparse",
    leak=1.0,
    activation="tanh",
    dtype="float64",
):
    """A contracting reservoir."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_units, n_units)) * (rng.random((n_units, n_units)) < density)
    W *= 0.8 / max(np.linalg.norm(W, 2), 1e-3)
    return Reservoir(
        sp.csr_array(W) if storage == "sparse" else W,
        rng.uniform(-1, 1, (n_units, n_features)),
        rng.uniform(-0.3, 0.3, n_units),
        leak_rate=rng.uniform(0.1, 1.0, n_units) if leak == "per unit" else leak,
        activation=activation,
        W_fb=rng.uniform(-0.5, 0.5, (n_units, n_outputs)) if n_outputs else None,
    ).astype(dtype)


def sparse(n_units, rng, columns):
    """A contracting W with entries in the given columns of each row."""
    W = np.zeros((n_units, n_units))
    for row, places in zip(W, columns, strict=True):
        row[places] = rng.uniform(-0.9, 0.9, len(places)) / max(len(places), 1)
    return sp.csr_array(W)


def some(n_units, rng, degree):
    return rng.permutation(n_units)[:degree]


def network_of(W):
    n_units = W.shape[0]
    return Reservoir(W, np.ones((n_units, 1)), np.zeros(n_units))


LAYOUTS = {
    "rows of one length": lambda n, rng: sparse(n, rng, [some(n, rng, 10) for _ in range(n)]),
    "rows of any length": lambda n, rng: sparse(n, rng, [some(n, rng, i % 7) for i in range(n)]),
    "diagonals": lambda n, rng: 0.1 * diagonals(n, int(rng.integers(1, 17)), random_state=rng),
    "dense": lambda n, rng: rng.uniform(-0.9, 0.9, (n, n)) / n,
}


networks = st.builds(
    network,
    st.integers(1, 40) | st.sampled_from([64, 65, 130, 200]),  # more than a kernel takes at a time
    seed=st.integers(0, 2**32 - 1),
    n_features=st.sampled_from([0, 1, 2, 3, 12]),
    n_outputs=st.sampled_from([0, 0, 1, 3]),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    storage=st.sampled_from(["sparse", "dense"]),
    leak=st.sampled_from([1.0, 0.3, "per unit"]),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    dtype=st.sampled_from(["float64", "float32"]),
)


def drive(net, n_samples, seed=1):
    """Inputs, teacher-forced outputs where there is feedback, and an initial state."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, net.n_features))
    F = rng.normal(size=(n_samples, net.n_outputs)) if net.n_outputs else None
    return X, F, rng.uniform(-0.5, 0.5, net.n_units)


def assert_close(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    tolerance = TOLERANCE[expected.dtype.name]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# --- the engines agree ---------------------------------------------------------------------------


@settings(max_examples=100)
@given(networks, st.sampled_from([0, 1, 2, 7, 40]))
def test_open_loop_agrees(net, n_samples):
    X, F, x0 = drive(net, n_samples)
    compiled, reference = (
        run(net, X, initial_state=x0, feedback=F, engine=engine) for engine in ("numba", "numpy")
    )
    assert_close(compiled, reference)


SIZES = [*range(1, 42), 63, 64, 65, 100, 128, 129, 257]  # around lines, and several, of numbers


def single_step(net, x0, u):
    """The state after one step, in double precision or better."""
    W, W_in, bias, x0, u = (
        np.asarray(each.toarray() if sp.issparse(each) else each, dtype=np.longdouble)
        for each in (net.W, net.W_in, net.bias, x0.astype(net.dtype), u.astype(net.dtype))
    )
    value = ACTIVATIONS[net.activation].function(W @ x0 + W_in @ u + bias)
    leak = np.asarray(net.leak_rate, dtype=net.dtype).astype(np.longdouble)
    return (1 - leak) * x0 + leak * value


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu", "softplus"])
def test_single_steps_are_exact_to_two_eps(layout, dtype, activation):
    for n_units in SIZES:
        rng = np.random.default_rng(n_units)
        W = LAYOUTS[layout](n_units, rng)
        for n_features, leak in ((0, 1.0), (1, 0.3), (3, rng.uniform(0.1, 1, n_units))):
            W_in = rng.uniform(-0.5, 0.5, (n_units, n_features))
            bias = rng.uniform(-0.3, 0.3, n_units)
            net = Reservoir(W, W_in, bias, leak_rate=leak, activation=activation).astype(dtype)
            x0, u = rng.uniform(-1, 1, n_units), rng.uniform(-1, 1, (1, n_features))
            beside = np.full((3, n_units), np.nan, dtype)  # what lies around the states stays
            for _ in iter_states(net, u, initial_state=x0, out=beside[1:2], engine="numba"):
                pass
            assert np.isnan(beside[[0, 2]]).all()
            error = np.abs(beside[1] - single_step(net, x0, u[0])).max()
            assert error <= 2 * np.finfo(dtype).eps, (n_units, n_features)


def test_few_diagonals_are_found():
    found = {"ring": 1, "delay_line": 1, "band": 5, "diagonals": 10, "cycle_with_jumps": 3}
    for name, n_diagonals in found.items():
        packed = network_of(TOPOLOGIES[name](300, random_state=0))._packed
        assert isinstance(packed, _kernels.Diagonals), name
        assert len(packed.offsets) == n_diagonals
    for others in (
        random_sparse(300, random_state=0),
        diagonals(300, 17),
        sp.csr_array((300, 300)),
    ):
        assert isinstance(network_of(others)._packed, _kernels.Sell)
    few = sp.csr_array(([1.0], ([3], [299])), shape=(300, 300))  # one entry of a diagonal
    assert isinstance(network_of(few)._packed, _kernels.Sell)


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("n_units", [1, 2, 7, 40, 300, 70_001])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_with_diagonals(n_units, dtype):
    rng = np.random.default_rng(n_units)
    W = diagonals(n_units, 3, random_state=rng).astype(dtype)
    twice = sp.csr_array(  # every entry stored twice
        (np.repeat(W.data, 2) / 2, np.repeat(W.indices, 2), 2 * W.indptr), shape=W.shape
    )
    x = rng.normal(size=n_units).astype(dtype)
    for matrix in (W, twice):
        packed = _kernels.pack(matrix)
        assert isinstance(packed, _kernels.Diagonals)
        np.testing.assert_allclose(
            _kernels.multiply(packed, x), W @ x, rtol=0, atol=20 * np.finfo(dtype).eps
        )


@settings(max_examples=50)
@given(networks, st.lists(st.integers(0, 30), max_size=40), st.booleans())
def test_many_sequences_agree(net, lengths, starts_given):
    """With kernels to the bit, whichever sequences run beside a sequence."""
    driven = [drive(net, n, seed=i) for i, n in enumerate(lengths)]
    F = [F for _, F, _ in driven] if net.n_outputs else None
    x0 = np.array([x for _, _, x in driven]) if starts_given and lengths else None
    for engine in ("numba", "numpy"):
        together = run_many(
            net, [X for X, _, _ in driven], initial_states=x0, feedback=F, engine=engine
        )
        assert len(together) == len(lengths)
        for states, (X, feedback, x) in zip(together, driven, strict=True):
            start = x if x0 is not None else None
            alone = run(net, X, initial_state=start, feedback=feedback, engine="numpy")
            assert_close(states, alone)
            if engine == "numba" and net.activation in _kernels.CODES:
                alone = run(net, X, initial_state=start, feedback=feedback, engine="numba")
                np.testing.assert_array_equal(states, alone)


@settings(max_examples=100)
@given(
    networks.filter(lambda net: net.n_features or net.n_outputs),
    st.sampled_from([0, 1, 2, 60]),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([None, "square", "even_square"]),
)
def test_closed_loop_agrees(net, n_steps, include_input, n_exog, augment):
    n_exog = net.n_features if net.n_outputs else min(n_exog, net.n_features - 1)
    n_outputs = net.n_outputs or net.n_features - n_exog
    if augment is not None:  # loops of squares amplify rounding from step to step
        n_steps = min(n_steps, 3)
    rng = np.random.default_rng(2)
    n_columns = net.n_units * (2 if augment == "square" else 1)
    n_columns += net.n_features if include_input else 0
    readout = (
        0.3 * rng.normal(size=(n_outputs, n_columns)) / n_columns,
        rng.normal(size=n_outputs),
    )
    options = {
        "initial_state": rng.uniform(-0.5, 0.5, net.n_units),
        "initial_output": rng.normal(size=n_outputs),
        "exog": rng.normal(size=(n_steps, n_exog)) if n_exog else None,
        "include_input": include_input,
        "augment": augment,
        "clip": None if augment is None else (-3.0, 3.0),  # squares would carry loops away
    }
    compiled, reference = (
        run_closed_loop(net, readout, n_steps, engine=engine, **options)
        for engine in ("numba", "numpy")
    )
    assert_close(compiled[0], reference[0])
    assert_close(compiled[1], reference[1])


@pytest.mark.parametrize("n_loops", [1, 8, 9, 41])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_loops_side_by_side_agree(n_loops, n_outputs, global_random_seed):
    """With kernels to the bit, whichever loops and steps are beside a loop."""
    source = DrivenReservoir(network(30, seed=global_random_seed, n_features=3), True)
    rng, n_steps = np.random.default_rng(global_random_seed), 12
    coef = 0.1 * rng.normal(size=(n_loops, n_outputs, source.width))
    intercept = rng.normal(size=(n_loops, n_outputs))
    states, inputs = rng.normal(size=(n_loops, 30)), rng.normal(size=(n_steps, n_loops, 3))
    clip = intercept - 0.02, intercept + 0.03

    def loops(which=slice(None), n=n_steps, engine="numba"):
        return source.run_lanes(
            coef[which],
            intercept[which],
            states=states[which],
            inputs=inputs[:n, which],
            clip=[bound[which] for bound in clip],
            engine=engine,
        )

    compiled = loops()
    assert_close(compiled, loops(engine="auto"))
    assert ((compiled == clip[0]) | (compiled == clip[1])).any()
    np.testing.assert_array_equal(compiled[:5, -1:], loops(slice(-1, None), 5))
    # one step of one loop, by the formula
    after = run(source.reservoir, inputs[0, :1], initial_state=states[0], engine="numpy")
    row = coef[0] @ np.append(after, inputs[0, 0]) + intercept[0]
    assert_close(compiled[0, 0], np.clip(row, clip[0][0], clip[1][0]))


def test_an_output_that_is_no_number_is_fed_back_as_zero():
    """Bounds hold for infinite sums, too."""
    source = DrivenReservoir(network(5, n_features=1), True)
    coef, size = np.zeros((3, 1, 6)), np.full((3, 1), 0.5)
    intercept = np.array([[np.nan], [np.inf], [-np.inf]])
    inputs = np.ones((2, 3, 1))
    for engine in ("numba", "auto"):
        found = source.run_lanes(
            coef, intercept, states=np.zeros((3, 5)), inputs=inputs, clip=(-size, size),
            engine=engine,
        )  # fmt: skip
        np.testing.assert_array_equal(found[..., 0], [[0, 0.5, -0.5]] * 2)


@pytest.mark.parametrize("storage", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_exog", [0, 2])
def test_closed_loop_equals_single_steps_across_blocks(storage, dtype, n_exog):
    net = network(30, n_features=1 + n_exog, storage=storage, dtype=dtype, leak="per unit")
    rng = np.random.default_rng(0)
    coef, intercept = 0.1 * rng.normal(size=(1, 31 + n_exog)), np.array([0.2])
    exog = rng.normal(size=(1200, n_exog))
    outputs, state = run_closed_loop(
        net, (coef, intercept), 1200, exog=exog if n_exog else None, include_input=True,
        engine="numba",
    )  # fmt: skip
    x, y = np.zeros(30), np.zeros(1)
    for k in range(1200):
        u = np.concatenate([y, exog[k]])
        x = reservoir.dynamics.step(net, x, u)
        y = coef @ np.concatenate([x, u]) + intercept
        np.testing.assert_allclose(outputs[k], y, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(state, x, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("activation", ["identity", "relu", "tanh"])
def test_a_diverging_loop_stops_at_the_same_step(activation):
    net = network(20, n_features=1, activation=activation)
    gain = np.full((1, 20), 3.0 if activation == "identity" else 1e160)
    ends = []
    for engine in ("numba", "numpy"):
        with pytest.warns(RuntimeWarning, match="diverged at step") as caught:
            outputs, state = run_closed_loop(
                net, (gain, np.zeros(1)), 3000, initial_output=[1.0], engine=engine
            )
        assert caught[0].filename == __file__
        assert np.isfinite(outputs).all()
        ends.append((str(caught[0].message), outputs[-1], state))
    assert ends[0][0] == ends[1][0]
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-9)
    np.testing.assert_allclose(ends[0][2], ends[1][2], rtol=1e-9)


@pytest.mark.parametrize("order", ["C", "F", "strided", "wide"])
def test_where_the_states_go(order):
    net, n = network(9, leak=0.5), 700
    X = drive(net, n)[0]
    expected = run(net, X, engine="numpy")
    out = {
        "C": np.empty((n, 9)),
        "F": np.empty((n, 9), order="F"),
        "strided": np.empty((2 * n, 18))[::2, ::2],
        "wide": np.empty((n, 12))[:, :9],
    }[order]
    for start, block in iter_states(net, X, out=out, engine="numba"):
        assert np.shares_memory(block, out[start : start + len(block)])
    assert_close(out, expected)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_a_custom_buffer(engine):
    net = network(9, leak=0.5)
    X = drive(net, 250)[0]
    buffer = np.full((100, 12), 7.0)
    starts, parts = [], []
    for start, block in iter_states(net, X, buffer=buffer, engine=engine):
        assert np.shares_memory(block, buffer)
        starts.append(start)
        parts.append(block.copy())
    assert starts == [0, 100, 200]
    assert (buffer[:, 9:] == 7.0).all()
    assert_close(np.concatenate(parts), run(net, X, engine="numpy"))


def test_memory_that_does_not_fit_raises():
    net, X = network(9), np.zeros((5, 2))
    for bad in ({"out": np.empty((4, 9))}, {"out": np.empty((5, 9), np.float32)}):
        with pytest.raises(ValueError, match=r"out must have shape \(5, 9\) and dtype float64"):
            next(iter_states(net, X, **bad))
    for buffer in (
        np.empty((5, 8)), np.empty((0, 9)), np.empty(9), np.empty((5, 9), order="F"),
        np.empty((5, 9), np.float32),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"buffer must be a C-ordered array .*at least 9"):
            next(iter_states(net, X, buffer=buffer))
    with pytest.raises(ValueError, match="out or buffer, not both"):
        next(iter_states(net, X, out=np.empty((5, 9)), buffer=np.empty((5, 9))))


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("custom", [False, True])
def test_states_may_run_over_the_inputs_they_came_from(engine, custom):
    mine = Activation("mine", np.tanh, None, 1.0, None, True)
    net = network(2, n_features=2, activation=mine if custom else "tanh", leak=0.5)
    Z = np.random.default_rng(0).normal(size=(1301, 2))
    expected = run(net, Z[:-1], engine="numpy")
    for _ in iter_states(net, Z[:-1], out=Z[1:], engine=engine):
        pass
    assert_close(Z[1:], expected)


@pytest.mark.parametrize("order", ["F", "strided"])
def test_where_the_states_of_a_custom_activation_go(order):
    mine = Activation("mine", np.tanh, None, 1.0, None, True)
    net = network(12, activation=mine)
    X = drive(net, 40)[0]
    out = np.empty((40, 12), order="F") if order == "F" else np.empty((40, 24))[:, ::2]
    for _ in iter_states(net, X, out=out, engine="numba"):
        pass
    assert_close(out, run(net, X, engine="numpy"))


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_a_block_may_be_changed_by_the_caller(engine):
    net = network(9, leak=0.5)
    X = drive(net, 3000)[0]
    expected = run(net, X, engine="numpy")
    for _, start, block in iter_many(net, [X] * 9, engine=engine):
        assert_close(block.copy(), expected[start : start + len(block)])
        block[:] = 7.0


def test_auto_chooses_for_all_series_at_once(usual_rule):
    net = network(20)
    series = [drive(net, n, seed=n)[0] for n in (6000, 50, 40, 30, 20, 10)]
    for auto, numba in zip(
        run_many(net, series), run_many(net, series, engine="numba"), strict=True
    ):
        np.testing.assert_array_equal(auto, numba)


@pytest.mark.parametrize("how", ["run", "run_many", "run_closed_loop"])
def test_inputs_near_the_largest_float_are_left_to_the_reference(how):
    net = Reservoir(
        sp.eye_array(9, format="csr") * 0.5, np.tile([[2.0, -2.0]], (9, 1)), np.zeros(9)
    )
    X = np.array([[0.1, 0.2], [1.7e308, 0.0], [0.0, 0.0]])
    readout = (np.full((1, 9), 0.1), np.zeros(1))
    loop = Reservoir(net.W, net.W_in, net.bias)
    results = []
    for engine in ("numba", "numpy"):
        if how == "run":
            results.append(run(net, X, engine=engine))
        elif how == "run_many":
            results.append(run_many(net, [X] * 8, engine=engine)[3])
        else:
            results.append(
                run_closed_loop(
                    loop, readout, 3, initial_output=[1e308], exog=X[:, 1:], engine=engine
                )[0]
            )
    np.testing.assert_array_equal(*results)


def test_huge_outputs_that_cancel_diverge_in_both_engines():
    net = Reservoir(np.zeros((3, 3)), np.tile([1.0, -1.0], (3, 2)), np.zeros(3))
    readout = (np.zeros((4, 3)), np.zeros(4))
    results = []
    for engine in ("numba", "numpy"):
        with pytest.warns(RuntimeWarning, match="diverged at step 0"):
            results.append(
                run_closed_loop(net, readout, 3, initial_output=[1.7e308] * 4, engine=engine)[0]
            )
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_states_that_diverge_under_a_zero_readout(storage):
    net = Reservoir(
        sp.csr_array(np.eye(3) * 2.0) if storage == "sparse" else np.eye(3) * 2.0,
        np.ones((3, 1)), np.zeros(3), activation="identity",
    )  # fmt: skip
    readout, messages, states = (np.zeros((1, 3)), np.ones(1)), [], []
    for engine in ("numba", "numpy"):
        with pytest.warns(RuntimeWarning, match="diverged at step 51") as caught:
            _, state = run_closed_loop(net, readout, 900, engine=engine)
        messages.append(str(caught[0].message))
        states.append(state)
    assert messages[0] == messages[1]
    np.testing.assert_array_equal(*states)


def test_read_only_arrays_compile_nothing_new():
    from reservoir._kernels import _time_loops

    net = network(9, n_features=2)
    X = drive(net, 30)[0]
    readout = (np.full((2, 9), 0.1), 0.0)
    run(net, X, engine="numba")
    run_closed_loop(net, (readout[0], np.zeros(2)), 5, engine="numba")
    before = [len(k.signatures) for k in (_time_loops.advance, _time_loops.closed_loop)]
    X.flags.writeable = False
    run(net, X, engine="numba")
    run(net, np.asfortranarray(X), engine="numba")
    run_closed_loop(net, readout, 5, engine="numba")
    assert [len(k.signatures) for k in (_time_loops.advance, _time_loops.closed_loop)] == before


def test_noise_is_the_same_in_both_engines():
    net, states = network(9, leak=0.5), {}
    X = drive(net, 700)[0]
    for engine in ("numba", "numpy"):
        states[engine] = np.empty((700, 9))
        for _ in iter_states(
            net, X, noise=0.1, generator=np.random.default_rng(3), out=states[engine], engine=engine
        ):
            pass
    assert_close(states["numba"], states["numpy"])


@pytest.mark.parametrize("layout", ["F", "strided", "reversed", "read-only"])
def test_layouts_of_the_inputs(layout):
    net = network(9, n_outputs=1)
    X, F, x0 = drive(net, 50)
    plain = run(net, X, feedback=F, initial_state=x0, engine="numpy")
    if layout == "F":
        X, F = np.asfortranarray(X), np.asfortranarray(F)
    elif layout == "strided":
        X, x0 = np.repeat(X, 2, axis=1)[:, ::2], np.repeat(x0, 3)[::3]
    elif layout == "reversed":
        X, F = X[::-1].copy()[::-1], F[::-1].copy()[::-1]
    else:
        for array in (X, F, x0):
            array.flags.writeable = False
    assert_close(run(net, X, feedback=F, initial_state=x0, engine="numba"), plain)
    together = run_many(
        net, [X] * 9, feedback=[F] * 9, initial_states=np.array([x0] * 9), engine="numba"
    )
    assert_close(together[8], plain)


def test_rows_of_very_unequal_length():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(200, 200)) * (rng.random((200, 200)) < 0.02)
    W[17] = rng.normal(size=200)
    W[3] = 0
    W = sp.csr_array(0.05 * W)
    net = Reservoir(W, rng.normal(size=(200, 1)), np.zeros(200))
    X = rng.normal(size=(30, 1))
    assert_close(run(net, X, engine="numba"), run(net, X, engine="numpy"))
    assert_close(run_many(net, [X] * 8, engine="numba")[5], run(net, X, engine="numpy"))


@pytest.mark.slow
def test_more_units_than_short_indices_hold():
    n_units = 2**16 + 9
    W = sp.eye_array(n_units, k=-(2**16), format="csr") * 0.5  # the last units hear the first
    net = Reservoir(W, np.linspace(-1, 1, n_units)[:, None], np.zeros(n_units))
    X = np.array([[1.0], [0.5], [-1.0]])
    assert net._packed.indices.dtype == np.uint32
    assert_close(run(net, X, engine="numba"), run(net, X, engine="numpy"))
    assert_close(run_many(net, [X] * 8, engine="numba")[3], run(net, X, engine="numpy"))


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_a_custom_activation(storage):
    mine = Activation("half", lambda z, out=None: np.multiply(z, 0.5, out=out), None, 0.5, None, 0)
    named = Activation("tanh", lambda z, out=None: np.sin(z, out=out), None, 1.0, None, 1)
    for activation in (mine, named):
        net = network(12, storage=storage, activation=activation, leak=0.4)
        X = drive(net, 40)[0]
        expected = run(net, X, engine="numpy")
        assert_close(run(net, X, engine="numba"), expected)
        assert_close(run_many(net, [X] * 9, engine="numba")[4], expected)
        readout = (np.full((2, 12), 0.1), np.zeros(2))
        loops = [run_closed_loop(net, readout, 30, engine=e)[0] for e in ("numba", "numpy")]
        assert_close(*loops)


def test_states_that_overflow_raise_on_both_engines():
    net = Reservoir(np.eye(3) * 2.0, np.ones((3, 1)), np.zeros(3), activation="identity")
    X = np.ones((3000, 1))
    for engine in ("numba", "numpy"):
        with pytest.raises(ValueError, match=r"not finite from step 102\d on \(activation='ident"):
            run(net, X, engine=engine)
        with pytest.raises(ValueError, match=r"not finite from step 102\d on"):
            run_many(net, [X] * 8, engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_bounded_states_that_are_no_number_raise(engine):
    W = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.5e308, 1.5e308, 0.0]])
    net = Reservoir(W, [[0.0], [0.0], [1.0]], [20.0, 20.0, -1e308])
    with pytest.raises(ValueError, match="not finite from step 1 on"):  # infinity less infinity
        run(net, [[1e308], [-1e308]], engine=engine)
    with pytest.raises(ValueError, match="not finite from step 1 on"):
        run_many(net, [[[1e308], [-1e308]]] * 8, engine=engine)


# --- activations ---------------------------------------------------------------------------------


def units_in_the_last_place(values, exact, dtype):
    mpmath = pytest.importorskip("mpmath")
    info = np.finfo(dtype)
    smallest = mpmath.mpf(float(info.smallest_subnormal))
    errors = []
    for value, reference in zip(values, exact, strict=True):
        exponent = mpmath.frexp(abs(reference))[1] if reference else -10_000
        unit = max(mpmath.mpf(2) ** (exponent - info.nmant - 1), smallest)
        errors.append(float(abs(mpmath.mpf(float(value)) - reference) / unit))
    return np.array(errors)


def products_are_fused():
    """Whether compiled code rounds ``x * x - y`` once."""
    from numba import njit

    from reservoir._kernels import _compile

    fused = njit(**_compile.OPTIONS)(lambda x, y: x * x - y)
    return fused(1 + 2.0**-30, 1 + 2.0**-29) != 0.0


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("name", ["tanh", "logistic", "softplus"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(3))
def test_within_two_units_in_the_last_place(name, dtype, seed):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    low, ends = {"float64": (-320, 760), "float32": (-45, 110)}[dtype]
    n = 500
    with np.errstate(over="ignore"):
        x = np.concatenate(
            [
                rng.normal(size=n),
                rng.uniform(0.03, 0.8, n),  # where exp(2x) - 1 cancels
                rng.uniform(-ends, ends, n),
                10.0 ** rng.uniform(low, 3, n) * rng.choice([-1, 1], n),
                rng.uniform(17, 20, n),  # where tanh becomes 1
                rng.uniform(-10, -7, n),
                [info.tiny, info.smallest_subnormal, info.eps, 1.0, 0.5],
            ]
        ).astype(dtype)  # fmt: skip
    values = _kernels.activate(x, _kernels.CODES[name])
    assert values.dtype == dtype
    with mpmath.workprec(200):
        exact = {
            "tanh": lambda v: mpmath.tanh(v),
            "softplus": lambda v: mpmath.log1p(mpmath.exp(-abs(v))) + max(v, 0),
            "logistic": lambda v: 1 / (1 + mpmath.exp(-v)),
        }[name]
        errors = units_in_the_last_place(values, [exact(mpmath.mpf(float(v))) for v in x], dtype)
    # the remainder that corrects a quotient is exact where a product and a sum are fused; where not
    # (x86 before Haswell), its product is rounded: half a unit more
    within = 1.5 if products_are_fused() else 2.0
    within += 0.5 * (name == "softplus")  # a sum of two rounded numbers, not corrected
    assert errors.max() <= within, (errors.max(), x[errors.argmax()])
    assert name == "softplus" or np.abs(values).max() <= 1.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_special_values(name, dtype):
    info = np.finfo(dtype)
    x = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, -info.tiny,
         info.smallest_subnormal, -info.smallest_subnormal, 1.0, -1.0, 30.0, -30.0], dtype,
    )  # fmt: skip
    values = _kernels.activate(x, _kernels.CODES[name])
    with np.errstate(all="ignore"):
        expected = ACTIVATIONS[name].function(x.copy())
    np.testing.assert_allclose(values, expected, rtol=4 * info.eps, atol=0)
    if name in ("tanh", "identity"):
        assert np.signbit(values[1])
        np.testing.assert_array_equal(np.signbit(values), np.signbit(expected))


def test_the_series_is_what_it_says():
    mpmath = pytest.importorskip("mpmath")
    from reservoir._kernels._vector import FORMATS

    with mpmath.workprec(200):
        for bits, tolerance in ((64, 1e-17), (32, 1e-8)):
            form = FORMATS[bits]
            for r in np.linspace(-0.25 * np.log(2), 0.75 * np.log(2), 501):
                r = mpmath.mpf(float(r))
                exact = (mpmath.expm1(r) - r) / r**2 if r else mpmath.mpf(0.5)
                value = sum(mpmath.mpf(c) * r**k for k, c in enumerate(reversed(form.series)))
                assert abs(value / exact - 1) <= tolerance
            high, low = form.ln2
            assert abs(mpmath.mpf(high) + mpmath.mpf(low) - mpmath.log(2)) <= 2.0 ** (-bits - 10)


# --- the choice ----------------------------------------------------------------------------------


@pytest.fixture
def usual_rule(monkeypatch):
    """The rule as it is, also where all tests are put on kernels."""
    monkeypatch.setattr(engines, "_WORTH_LOADING", 0.01)


@pytest.mark.usefixtures("usual_rule")
def test_small_jobs_stay_with_numpy_and_large_ones_do_not():
    small, dense = network(20), network(600, storage="dense")
    assert not engines.uses_kernels(small, 500, "auto")
    assert engines.uses_kernels(small, 50_000, "auto")
    assert not engines.uses_kernels(dense, 50_000, "auto")  # BLAS has nothing to lose
    mine = network(20, activation=Activation("f", np.sin, np.cos, 1.0, None, True))
    assert not engines.uses_kernels(mine, 50_000, "auto")
    for net in (small, dense, mine):
        assert engines.uses_kernels(net, 1, "numba")
        assert not engines.uses_kernels(net, 10**9, "numpy")


def test_an_engine_that_is_not_known():
    with pytest.raises(ValueError, match=r"engine='numbo' is not known\. Did you mean 'numba'"):
        run(network(3), np.zeros((2, 2)), engine="numbo")
    with pytest.raises(ValueError, match="engine='c' is not known"):
        run_closed_loop(network(3), (np.zeros((2, 3)), np.zeros(2)), 3, engine="c")
    with pytest.raises(ValueError, match="engine='c' is not known"):
        list(iter_many(network(3), [np.zeros((2, 2))], engine="c"))


def test_without_numba(monkeypatch):
    net, X = network(20), np.zeros((5000, 2))
    expected = run(net, X, engine="numpy")
    monkeypatch.setattr(_kernels, "installed", lambda: False)
    np.testing.assert_array_equal(run(net, X), expected)
    with pytest.raises(ImportError, match="pip install numba"):
        run(net, X, engine="numba")


def test_the_choice_does_not_depend_on_what_ran_before():
    net = network(20)
    X = drive(net, 3000)[0]
    first, loop = run(net, X), run(net, X[:20])
    run(net, np.tile(X, (20, 1)), engine="numba")
    np.testing.assert_array_equal(run(net, X), first)
    np.testing.assert_array_equal(run(net, X[:20]), loop)


@pytest.mark.parametrize("engine", ["auto", "numba"])
@pytest.mark.parametrize("n_exog", [0, 1, 9])
def test_more_steps_change_none_of_the_first(engine, n_exog, monkeypatch):
    for seed in range(3):
        # chaotic: what differs in its last bit is soon elsewhere
        rng = np.random.default_rng(seed)
        W, W_in = rng.normal(size=(40, 40)) / 3, rng.uniform(-1, 1, (40, 2 + n_exog))
        net = Reservoir(W, W_in, rng.uniform(-0.3, 0.3, 40))
        readout, exog = (rng.normal(size=(2, 40)), np.zeros(2)), rng.normal(size=(300, n_exog))
        # under "auto" kernels begin in the 30th step
        worth = 29.5 * engines.numpy_seconds_per_step(net)
        monkeypatch.setattr(engines, "_WORTH_LOADING", worth)
        whole, last = run_closed_loop(net, readout, 300, exog=exog, engine=engine)
        for n_steps in (1, 2, 7, 29, 30, 31, 64, 65, 200):
            some, _ = run_closed_loop(net, readout, n_steps, exog=exog[:n_steps], engine=engine)
            np.testing.assert_array_equal(some, whole[:n_steps])
        reference, _ = run_closed_loop(net, readout, 29, exog=exog[:29], engine="numpy")
        assert engine == "numba" or np.array_equal(whole[:29], reference)
        assert np.abs(last).max() > 0.5


def test_a_loop_that_diverges_does_so_at_one_step_whoever_takes_it(monkeypatch):
    net = Reservoir([[0.0]], [[2.0]], [0.0], activation="identity")
    step = engines.numpy_seconds_per_step(net)
    for first in (0, 200, 511, 512, 5000):
        monkeypatch.setattr(engines, "_WORTH_LOADING", (first + 0.5) * step)
        outputs, state, n_valid = run_closed_loop(
            net, (np.ones((1, 1)), np.zeros(1)), 600, initial_output=[1.0], return_steps=True
        )
        expected = run_closed_loop(
            net,
            (np.ones((1, 1)), np.zeros(1)),
            600,
            initial_output=[1.0],
            return_steps=True,
            engine="numpy",
        )
        np.testing.assert_array_equal(outputs, expected[0])
        np.testing.assert_array_equal(state, expected[1])
        assert n_valid == expected[2] < 600


@pytest.mark.usefixtures("usual_rule")
@pytest.mark.parametrize("n_samples", [300, 6000])
def test_a_model_keeps_its_engine(n_samples):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_samples, 2)), rng.normal(size=n_samples)
    esn = ESNRegressor(30, random_state=0).fit(X, y)
    assert esn._model.engine == ("numba" if n_samples == 6000 else "auto")
    np.testing.assert_array_equal(
        esn.predict(X[:9]), pickle.loads(pickle.dumps(esn)).predict(X[:9])
    )


@pytest.mark.usefixtures("usual_rule")
def test_compiled_code_that_is_not_kept_is_for_large_jobs(monkeypatch):
    net = network(20)
    monkeypatch.setattr(_kernels, "keeps_code", lambda: False)
    assert not engines.uses_kernels(net, 50_000, "auto")
    assert engines.uses_kernels(net, 5_000_000, "auto")
    assert engines.uses_kernels(net, 1, "numba")


# --- copies, threads, processes, caches ----------------------------------------------------------


def test_what_the_kernels_read_is_made_once_and_never_pickled():
    net = network(20)
    before = pickle.dumps(net)
    run(net, np.zeros((3, 2)), engine="numba")
    run_many(net, [np.zeros((3, 2))] * 8, engine="numba")
    assert net._packed is net._packed
    assert pickle.dumps(net) == before
    for other in (pickle.loads(before), copy.copy(net), copy.deepcopy(net)):
        np.testing.assert_array_equal(
            run(other, np.ones((3, 2)), engine="numba"), run(net, np.ones((3, 2)), engine="numba")
        )


def test_two_threads_at_once():
    nets = [network(50, seed=s) for s in range(4)]
    X = drive(nets[0], 1500)[0]
    expected = [run(net, X, engine="numba") for net in nets]
    results = [[] for _ in nets]

    def work(k):
        net = pickle.loads(pickle.dumps(nets[k]))
        for _ in range(5):
            results[k].append(run(net, X, engine="numba"))
            results[k].append(run_many(net, [X] * 8, engine="numba")[3])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(nets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for states, reference in zip(results, expected, strict=True):
        assert len(states) == 10
        for s in states:
            np.testing.assert_allclose(s, reference, rtol=0, atol=1e-12)


def run_in_worker(seed):
    net = network(30, seed=seed)
    return run(net, drive(net, 200)[0], engine="numba")


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_forked_and_spawned_workers(method):
    expected = [run_in_worker(seed) for seed in range(4)]
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking where threads run
        with context.Pool(2) as pool:
            results = pool.map(run_in_worker, range(4))
    np.testing.assert_array_equal(results, expected)


PROGRAM = """
    import numpy as np
    from reservoir import _kernels
    from reservoir.building import build_reservoir
    from reservoir.dynamics import run, run_many, run_closed_loop

    net = build_reservoir(40, 1, leak_rate=0.5, random_state=0)
    X = np.sin(np.arange(4000.0))[:, None]
    plain = run(net, X, engine="numpy")
    for engine in ("auto", "numba"):
        np.testing.assert_allclose(run(net, X, engine=engine), plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run_many(net, [X] * 9, engine="numba")[2], plain, atol=1e-12)
    run_closed_loop(net, (np.full((1, 40), 0.01), np.zeros(1)), 50, engine="numba")
    print("kept" if _kernels.load() and _kernels.keeps_code() else "not kept")
"""


def in_a_process(program, folder, **environment):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def a_copy_of_the_package(folder):
    source = Path(reservoir.__file__).parent
    shutil.copytree(source, folder / "reservoir", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "reservoir"


@pytest.mark.slow
def test_a_custom_cache_directory_and_a_read_only_one(tmp_path):
    package = a_copy_of_the_package(tmp_path)
    kept = tmp_path / "kept"
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(kept)}
    for _ in range(2):
        assert in_a_process(PROGRAM, tmp_path, **environment) == "kept"
    assert list(kept.rglob("*.nbc"))
    # files where directories should be: nobody, root included, can write there
    blocked = tmp_path / "blocked"
    blocked.touch()
    (package / "_kernels" / "__pycache__").touch()
    nowhere = str(blocked / "below")
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"), nowhere)
    environment |= {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": nowhere}
    assert in_a_process(PROGRAM, tmp_path, **environment) == "not kept"


def test_a_disk_that_is_full(monkeypatch):
    import numba

    from reservoir._kernels import _compile, _time_loops

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_compile.Cache, "save_overload", full)
    monkeypatch.setattr(_time_loops, "multiply", _compile.kernel(_time_loops.multiply.py_func))
    assert isinstance(_time_loops.multiply, numba.core.dispatcher.Dispatcher)
    monkeypatch.setattr(_compile.Cache, "load_overload", lambda *args: None)
    net = network(10)
    x = np.arange(10.0)
    np.testing.assert_allclose(_kernels.multiply(net._packed, x), net.W @ x, rtol=1e-14)


def test_kernels_reject_arguments_that_they_would_misread():
    from numba.core.errors import NumbaError

    from reservoir._kernels import _time_loops

    W = network(9)._packed
    for z, x in ((np.zeros(16), np.zeros(16, np.float32)), (np.zeros(16), np.zeros(32)[::2])):
        with pytest.raises(NumbaError, match=r"among arrays of (32|64) bits in C order"):
            _time_loops.multiply(z, W, x)


def test_the_cache_knows_the_intrinsics():
    from reservoir._kernels import _compile, _lanes, _time_loops

    loops = (_time_loops.advance, _time_loops.closed_loop, _lanes.advance_lanes)
    for kernel in (*loops, _time_loops.multiply, _time_loops.activate):
        name = kernel.py_func.__name__
        assert isinstance(kernel._cache, _compile.Cache), name
        assert kernel.targetoptions["nogil"], name
        assert kernel.targetoptions["fastmath"] == {"contract", "nsz"}, name
    key = _time_loops.advance._cache._index_key(
        "signature", _time_loops.advance.targetctx.codegen()
    )
    assert key[-1] == _compile.Cache.made_of


@pytest.mark.slow
def test_many_workers_compile_at_once_into_one_cache(tmp_path):
    a_copy_of_the_package(tmp_path)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = [
        subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **environment}, **pipes)
        for _ in range(2)
    ]
    for worker in workers:
        out, err = worker.communicate()
        assert worker.returncode == 0, err
        assert out.strip() == "kept"


@pytest.mark.slow
def test_a_process_killed_while_it_compiles_leaves_a_usable_cache(tmp_path):
    a_copy_of_the_package(tmp_path)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    for seconds in (1.5, 2.5, 3.5, 4.5):  # each begins with what the one before has saved
        with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **environment}) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
    assert in_a_process(PROGRAM, tmp_path, **environment) == "kept"


@pytest.mark.slow
def test_numba_told_not_to_compile(tmp_path):
    program = PROGRAM.replace(
        'print("kept" if', 'print("off" if _kernels.disabled() else "kept" if'
    )
    assert in_a_process(program, tmp_path, NUMBA_DISABLE_JIT="1") == "off"


@pytest.mark.slow
def test_a_numba_that_cannot_be_imported(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 1.0 or less')")
    program = """
        import warnings
        import numpy as np
        import pytest
        from reservoir.building import build_reservoir
        from reservoir.dynamics import run

        net = build_reservoir(40, 1, random_state=0)
        X = np.ones((4000, 1))
        with pytest.warns(RuntimeWarning, match="cannot be imported .Numba needs NumPy 1.0"):
            states = run(net, X)
        np.testing.assert_array_equal(run(net, X), states)  # said once
        with pytest.raises(ImportError, match="cannot be imported"):
            run(net, X, engine="numba")
    """
    path = os.pathsep.join([str(tmp_path), str(Path(reservoir.__file__).parents[1])])
    in_a_process(program, tmp_path, PYTHONPATH=path)


def test_small_jobs_do_not_import_numba(tmp_path):
    program = """
        import sys
        import numpy as np
        from reservoir import ESNRegressor

        X = np.sin(0.1 * np.arange(500.0))[:, None]
        ESNRegressor(50, random_state=0).fit(X[:-1], X[1:]).forecast(50)
        assert "numba" not in sys.modules
    """
    in_a_process(program, tmp_path)


def test_every_activation_has_a_kernel():
    assert set(_kernels.CODES) == set(ACTIVATIONS)


def test_crowded_sparse_matrices_are_multiplied_dense():
    for density, dense in ((0.3, False), (0.9, True)):
        net = network(40, density=density)
        assert sp.issparse(net.W)
        assert sp.issparse(net._product_W) != dense
        assert isinstance(net._packed, _kernels.Dense) == dense
        X = drive(net, 50)[0]
        plain = Reservoir(net.W.toarray(), net.W_in, net.bias)
        for engine in ("numba", "numpy"):
            assert_close(run(net, X, engine=engine), run(plain, X, engine="numpy"))
            assert_close(run_many(net, [X] * 9, engine=engine)[7], run(plain, X, engine="numpy"))


def test_build_reservoir_runs_on_kernels_for_every_topology():
    from reservoir.topologies import TOPOLOGIES

    for topology in sorted(TOPOLOGIES):
        net = build_reservoir(
            30, 1, topology=topology, spectral_radius=None, leak_rate=0.5, random_state=0
        )
        net = Reservoir(net.W * 0.1, net.W_in, net.bias, leak_rate=0.5)
        X = np.sin(np.arange(40.0))[:, None]
        assert_close(run(net, X, engine="numba"), run(net, X, engine="numpy"))
