"""The state update against naive loops, and the arrays of `Reservoir`."""

import copy
import itertools
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import naive
from reservoir.activations import ACTIVATIONS, Activation
from reservoir.dynamics import (
    Reservoir,
    iter_states,
    run,
    run_closed_loop,
    run_many,
    step,
    step_jacobian,
)
from reservoir.dynamics import reference as reference_module

pytestmark = pytest.mark.both_engines

NAMES = sorted(ACTIVATIONS)


def matrices(n_units=9, n_features=2, n_outputs=2, seed=0):
    """Weights of a contracting reservoir, and leak rates per unit."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_units, n_units)) * (rng.random((n_units, n_units)) < 0.4)
    W *= 0.8 / max(np.linalg.norm(W, 2), 1e-3)
    return {
        "W": W,
        "W_in": rng.uniform(-1, 1, (n_units, n_features)),
        "bias": rng.uniform(-0.3, 0.3, n_units),
        "W_fb": rng.uniform(-0.5, 0.5, (n_units, n_outputs)),
        "leaks": rng.uniform(0.1, 1.0, n_units),
    }


def build(m, *, W="sparse", W_in="dense", leak=1.0, activation="tanh", feedback=False):
    return Reservoir(
        sp.csr_array(m["W"]) if W == "sparse" else m["W"],
        sp.csr_array(m["W_in"]) if W_in == "sparse" else m["W_in"],
        m["bias"],
        leak_rate=m["leaks"] if leak == "per unit" else leak,
        activation=activation,
        W_fb=m["W_fb"] if feedback else None,
    )


def slow(m, X, *, leak=1.0, feedback=None, **options):
    leak = m["leaks"] if leak == "per unit" else leak
    W_fb = None if feedback is None else m["W_fb"]
    return naive.open_loop(
        m["W"], m["W_in"], m["bias"], X, leak=leak, W_fb=W_fb, feedback=feedback, **options
    )


def series(n_samples, n_features=2, seed=1):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


# --- open loop ---------------------------------------------------------------------------------


@pytest.mark.parametrize("W", ["sparse", "dense"])
@pytest.mark.parametrize("W_in", ["sparse", "dense"])
@pytest.mark.parametrize("leak", [1.0, 0.3, "per unit"])
@pytest.mark.parametrize("feedback", [False, True])
def test_run_equals_naive(W, W_in, leak, feedback):
    m, X, F = matrices(), series(25), series(25, seed=2)
    x0 = np.linspace(-0.5, 0.5, 9)
    reservoir = build(m, W=W, W_in=W_in, leak=leak, feedback=feedback)
    states = run(reservoir, X, initial_state=x0, feedback=F if feedback else None)
    expected = slow(m, X, leak=leak, x0=x0, feedback=F if feedback else None)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("leak", [1.0, "per unit"])
def test_run_equals_naive_for_every_activation(activation, leak):
    m, X = matrices(), series(25)
    states = run(build(m, activation=activation, leak=leak), X)
    np.testing.assert_allclose(
        states, slow(m, X, activation=activation, leak=leak), rtol=1e-12, atol=1e-12
    )


def test_run_across_the_block_boundary():
    m = matrices(n_units=3, n_features=1)
    X = series(2 * 512 + 1, 1)
    states = run(build(m, leak=0.4), X)
    np.testing.assert_allclose(states, slow(m, X, leak=0.4), rtol=0, atol=1e-12)


def test_a_custom_activation():
    m, X = matrices(), series(10)
    mine = Activation("half", lambda z, out=None: np.multiply(z, 0.5, out=out), None, 0.5, None, 0)
    reservoir = build(m, activation=mine)
    expected = np.zeros(9)
    for u in X:
        expected = 0.5 * (m["W"] @ expected + m["W_in"] @ u + m["bias"])
    np.testing.assert_allclose(run(reservoir, X)[-1], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("feedback", [False, True])
def test_no_steps_and_one_step(feedback):
    m = matrices()
    reservoir = build(m, leak="per unit", feedback=feedback)
    none = run(reservoir, np.zeros((0, 2)), feedback=np.zeros((0, 2)) if feedback else None)
    assert none.shape == (0, 9)
    assert none.dtype == np.float64
    y = np.array([[0.3, -0.7]]) if feedback else None
    x0, X = np.full(9, 0.2), series(1)
    one = run(reservoir, X, initial_state=x0, feedback=y)
    assert one.shape == (1, 9)
    expected = step(reservoir, x0, X[0], None if y is None else y[0])
    np.testing.assert_allclose(one[0], expected, rtol=0, atol=1e-14)


def test_no_inputs_but_a_bias():
    reservoir = Reservoir([[0.5]], np.zeros((1, 0)), [0.1])
    assert run(reservoir, np.zeros((2, 0)))[:, 0].tolist() == [
        np.tanh(0.1),
        np.tanh(0.5 * np.tanh(0.1) + 0.1),
    ]


@pytest.mark.parametrize("W", ["sparse", "dense"])
@pytest.mark.parametrize("W_in", ["sparse", "dense"])
@pytest.mark.parametrize("leak", [1.0, 0.3, "per unit"])
def test_float32_end_to_end(W, W_in, leak):
    m, X, F = matrices(), series(600), series(600, seed=2)
    wide = build(m, W=W, W_in=W_in, leak=leak, feedback=True)
    narrow = wide.astype("float32")
    assert narrow.dtype == np.float32
    for name in ("W", "W_in", "bias", "W_fb"):
        assert getattr(narrow, name).dtype == np.float32, name
    states = run(narrow, X, feedback=F)
    assert states.dtype == np.float32
    np.testing.assert_allclose(states, run(wide, X, feedback=F), rtol=0, atol=2e-6)
    assert step(narrow, states[0], X[1], F[1]).dtype == np.float32
    assert step_jacobian(narrow, states[0], X[1], F[1]).dtype == np.float32


@pytest.mark.parametrize("activation", NAMES)
def test_float32_for_every_activation(activation):
    narrow = build(matrices(), activation=activation, leak=0.5).astype(np.float32)
    assert run(narrow, series(5)).dtype == np.float32
    assert step_jacobian(narrow, np.zeros(9), [0.1, 0.2]).dtype == np.float32


def test_the_dtype_of_W_decides_not_that_of_X():
    m = matrices()
    assert run(build(m), series(4).astype(np.float32)).dtype == np.float64
    assert run(build(m).astype("float32"), series(4)).dtype == np.float32
    assert Reservoir(np.eye(2, dtype=int), np.ones((2, 1)), [0, 0]).dtype == np.float64


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 1200), max_size=5),
    leak=st.sampled_from([1.0, "per unit"]),
    feedback=st.booleans(),
)
def test_any_chunking_equals_one_run(cuts, leak, feedback):
    m, X = matrices(n_units=4), series(1200)
    F = series(1200, seed=2) if feedback else None
    reservoir = build(m, leak=leak, feedback=feedback)
    whole = run(reservoir, X, feedback=F)
    state, parts, edges = np.zeros(4), [], [0, *sorted(cuts), 1200]
    for start, stop in itertools.pairwise(edges):
        part = run(
            reservoir, X[start:stop], initial_state=state, feedback=F[start:stop] if feedback else F
        )
        state = part[-1] if len(part) else state
        parts.append(part)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_samples", [0, 1, 511, 512, 513, 1024, 1300])
@pytest.mark.parametrize("leak", [1.0, 0.2])
def test_iter_states_equals_run(n_samples, leak):
    reservoir, X = build(matrices(n_units=4), leak=leak), series(n_samples)
    blocks = [(start, block.copy()) for start, block in iter_states(reservoir, X)]
    assert [start for start, _ in blocks] == list(range(0, n_samples, 512))
    states = np.concatenate([np.zeros((0, 4)), *(block for _, block in blocks)])
    np.testing.assert_array_equal(states, run(reservoir, X))


@pytest.mark.parametrize("order", ["C", "F"])
def test_iter_states_writes_into_out(order):
    reservoir, X = build(matrices(), leak=0.5), series(700)
    out = np.full((700, 9), np.nan, order=order)
    for start, block in iter_states(reservoir, X, out=out):
        assert np.shares_memory(block, out[start : start + len(block)])
    np.testing.assert_allclose(out, run(reservoir, X), rtol=0, atol=1e-14)


def test_a_block_may_be_overwritten_by_the_caller():
    reservoir, X = build(matrices()), series(1100)
    whole = run(reservoir, X)
    for start, block in iter_states(reservoir, X):
        np.testing.assert_array_equal(block, whole[start : start + len(block)])
        block[:] = np.nan


def test_noise_is_added_after_the_step_and_does_not_depend_on_blocks():
    m, X = matrices(n_units=3), series(600)
    reservoir = build(m, leak=0.5)
    noisy = np.empty((600, 3))
    for _ in iter_states(reservoir, X, noise=0.1, generator=np.random.default_rng(5), out=noisy):
        pass
    kicks = 0.1 * np.random.default_rng(5).standard_normal((600, 3))
    np.testing.assert_allclose(noisy, slow(m, X, leak=0.5, kicks=kicks), rtol=0, atol=1e-12)


def test_noise_is_checked():
    reservoir = build(matrices())
    with pytest.raises(ValueError, match=r"noise=-0\.1 must be finite and in \[0, inf\)"):
        next(iter_states(reservoir, series(3), noise=-0.1))
    with pytest.raises(ValueError, match=r"noise=0\.1 needs a generator"):
        next(iter_states(reservoir, series(3), noise=0.1))


def test_memory_of_iter_states_does_not_grow_with_the_series():
    reservoir = build(matrices(n_units=64))

    def peak(n_samples):
        X = np.zeros((n_samples, 2))
        tracemalloc.start()
        for _ in iter_states(reservoir, X):
            pass
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(16384)  # what the first call allocates for good
    short, long = peak(2048), peak(16384)
    finite_check = 16384 * 2  # one boolean per entry of X
    assert long <= short + finite_check + 20_000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_the_private_matvec(monkeypatch, dtype):
    reservoir, X = build(matrices(), leak="per unit").astype(dtype), series(60)
    readout = (np.full((2, 9), 0.1), np.zeros(2))
    fast, (loop, _) = run(reservoir, X), run_closed_loop(reservoir, readout, 20)
    many = run_many(reservoir, [X] * 3, engine="numpy")
    monkeypatch.setattr(reference_module, "_csr_matvecs", None)
    monkeypatch.setattr(reference_module, "_csr_matvec", None)
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(run(reservoir, X), fast, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        run_closed_loop(reservoir, readout, 20)[0], loop, rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        run_many(reservoir, [X] * 3, engine="numpy"), many, rtol=0, atol=tolerance
    )


@settings(max_examples=30, deadline=None)
@given(
    n_units=st.integers(1, 8),
    n_features=st.integers(1, 4),
    n_samples=st.integers(0, 12),
    layout=st.sampled_from(["C", "F", "strided", "reversed", "read-only", "list"]),
    dtype=st.sampled_from(["float64", "float32", "int64", "bool"]),
)
def test_shapes_layouts_and_dtypes_of_X(n_units, n_features, n_samples, layout, dtype):
    m = matrices(n_units, n_features)
    plain = (2 * series(n_samples, n_features)).astype(dtype)
    X = plain.copy()
    if layout == "F":
        X = np.asfortranarray(plain)
    elif layout == "strided":
        X = np.repeat(np.repeat(plain, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "reversed":
        X = plain[::-1].copy()[::-1]
    elif layout == "read-only":
        X.flags.writeable = False
    elif layout == "list" and n_samples:
        X = plain.tolist()
    states = run(build(m, leak="per unit"), X)
    assert states.shape == (n_samples, n_units)
    np.testing.assert_allclose(
        states, slow(m, plain.astype(float), leak="per unit"), rtol=0, atol=1e-12
    )


def test_run_leaves_its_arguments_alone():
    reservoir, X, x0 = build(matrices(), feedback=True), series(600), np.full(9, 0.1)
    F = series(600, seed=2)
    copies = [a.copy() for a in (X, x0, F)]
    first = run(reservoir, X, initial_state=x0, feedback=F)
    for now, before in zip((X, x0, F), copies, strict=True):
        np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(run(reservoir, X, initial_state=x0, feedback=F), first)


@pytest.mark.parametrize("value", [1e300, 1.7e308, -1.7e308])
def test_huge_inputs_saturate(value):
    m = matrices(n_features=1)
    states = run(build(m, leak=0.5), np.full((5, 1), value))
    assert np.isfinite(states).all()
    assert np.abs(states).max() <= 1
    single = step(build(m), np.zeros(9), [value])
    np.testing.assert_array_equal(np.abs(single), 1.0)
    assert np.isfinite(step_jacobian(build(m), np.zeros(9), [value])).all()


def test_huge_inputs_that_cancel_raise():
    # infinity from the input less infinity from the feedback
    reservoir = Reservoir([[0.0]], [[2.0]], [0.0], W_fb=np.array([[-2.0]]))
    X = np.array([[0.0], [1.7e308]])
    with pytest.raises(ValueError, match=r"not finite from step 1 on .*'tanh'.*Scale the inputs"):
        run(reservoir, X, feedback=X)
    with pytest.raises(ValueError, match=r"step is not finite .*Scale the inputs down"):
        step(reservoir, [0.0], X[1], X[1])


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    "terms", [(1e308, -1e308), (1e298, -1e298, 1e298, -1e298), (-1e308, 1e308)]
)
def test_inputs_that_cancel_beyond_the_largest_float_raise_everywhere(
    engine, activation, storage, terms
):
    # fused multiply-adds make +-infinity of them, which saturates: no NaN gives them away
    if engine == "numba":
        pytest.importorskip("numba")
    W = storage(np.full((3, 3), 0.1))
    res = Reservoir(W, [[0.0] * len(terms), terms, [0.0] * len(terms)], np.zeros(3),
                    activation=activation)  # fmt: skip
    X = np.zeros((4, len(terms)))
    X[2] = 1e10
    message = (
        "not finite from step 2 on .*unit 1 receives is infinity minus infinity.*Scale the inp"
    )
    with pytest.raises(ValueError, match=message):
        run(res, X, engine=engine)
    with pytest.raises(ValueError, match=message):
        list(iter_states(res, X, engine=engine))
    with pytest.raises(ValueError, match=message):
        run_many(res, [X] * 9, engine=engine)
    with pytest.raises(ValueError, match=r"step is not finite .*unit 1 .*Scale the inputs down"):
        step(res, np.zeros(3), X[2])
    with pytest.raises(ValueError, match="the step is not finite"):
        step_jacobian(res, np.zeros(3), X[2])
    for readout in (lambda x: X[2], (np.zeros((len(terms), 3)), X[2])):
        with pytest.raises(ValueError, match=r"state after step 1 is not finite .*unit 1"):
            run_closed_loop(res, readout, 4, engine=engine)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(3))
def test_sums_that_overflow_on_one_side_saturate_in_run_as_in_step(dtype, seed):
    rng = np.random.default_rng(seed)
    largest = np.finfo(dtype).max
    res = Reservoir(np.full((4, 4), 0.1), rng.choice([1.0, 2.0], (4, 3)), -np.ones(4)).astype(dtype)
    X = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1e-6], [-1.0, -1.0, -1.0], [1e-9, 0.0, -1e-9]])
    X = (X * largest).astype(dtype)
    states = run(res, X)
    assert (states[[0, 1]] == 1).all()
    assert (states[2] == -1).all()
    x = np.zeros(4, dtype)
    for row, state in zip(X, states, strict=True):
        x = step(res, x, row)
        np.testing.assert_array_equal(x, state)


def test_unbounded_states_raise():
    reservoir = Reservoir([[3.0]], [[1.0]], [0.0], activation="identity")
    with pytest.raises(ValueError, match=r"from step 646 on \(activation='identity', dtype=float6"):
        run(reservoir, np.ones((700, 1)))
    with pytest.raises(ValueError, match="step is not finite"):
        step(reservoir, [1.7e308], [0.0])


def test_a_sum_that_overflows_is_no_error():
    reservoir = Reservoir(np.zeros((2, 2)), [[1.0], [1.0]], [0.0, 0.0], activation="identity")
    assert (run(reservoir, [[1.5e308]]) == 1.5e308).all()


def test_float32_overflow_raises_without_a_warning():
    narrow = build(matrices()).astype("float32")
    with pytest.raises(ValueError, match="X contains NaN or infinity as float32, first in row 1"):
        run(narrow, [[0, 0], [1e300, 0]])
    with pytest.raises(ValueError, match="u contains NaN or infinity as float32"):
        step(narrow, np.zeros(9), [1e300, 0])
    with pytest.raises(ValueError, match="W contains NaN or infinity as float32"):
        Reservoir([[1e300]], [[1.0]], [0.0]).astype("float32")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_raise(bad):
    reservoir, X = build(matrices(), feedback=True), series(4)
    poisoned = X.copy()
    poisoned[2, 1] = bad
    with pytest.raises(ValueError, match=r"X contains NaN or infinity as float64, first in row 2"):
        run(reservoir, poisoned, feedback=X)
    with pytest.raises(ValueError, match=r"feedback contains NaN or infinity .* first in row 2"):
        run(reservoir, X, feedback=poisoned)
    with pytest.raises(ValueError, match="initial_state contains NaN or infinity"):
        run(reservoir, X, feedback=X, initial_state=np.full(9, bad))


def test_shapes_are_checked():
    plain, fed, X = build(matrices()), build(matrices(), feedback=True), series(4)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2\); got \(4, 3\)"):
        run(plain, np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2\); got \(4,\)"):
        run(plain, np.zeros(4))
    with pytest.raises(ValueError, match=r"initial_state must have shape \(9,\); got \(8,\)"):
        run(plain, X, initial_state=np.zeros(8))
    with pytest.raises(ValueError, match="feedback was given, but the reservoir has no feedback"):
        run(plain, X, feedback=X)
    with pytest.raises(ValueError, match=r"pass feedback, an array of shape \(4, 2\)"):
        run(fed, X)
    with pytest.raises(ValueError, match=r"feedback has 3 rows, but X has n_samples=4"):
        run(fed, X, feedback=X[:3])
    with pytest.raises(ValueError, match=r"feedback must have shape \(n_samples, 2\)"):
        run(fed, X, feedback=X[:, :1])
    with pytest.raises(ValueError, match=r"engine='numpi' is not known\. Did you mean 'numpy'"):
        run(plain, X, engine="numpi")


# --- one step ----------------------------------------------------------------------------------


@pytest.mark.parametrize("W", ["sparse", "dense"])
@pytest.mark.parametrize("leak", [1.0, 0.3, "per unit"])
@pytest.mark.parametrize("feedback", [False, True])
def test_step_equals_a_run_of_one_row(W, leak, feedback):
    reservoir = build(matrices(), W=W, leak=leak, feedback=feedback)
    x, u, y = np.linspace(-0.9, 0.9, 9), np.array([0.4, -1.1]), np.array([0.2, 0.5])
    row = run(reservoir, [u], initial_state=x, feedback=[y] if feedback else None)[0]
    np.testing.assert_allclose(step(reservoir, x, u, y if feedback else None), row, atol=1e-14)
    if feedback:  # no y_prev: zero
        row = run(reservoir, [u], initial_state=x, feedback=[[0, 0]])[0]
        np.testing.assert_allclose(step(reservoir, x, u), row, rtol=0, atol=1e-14)


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("leak", [1.0, 0.3, "per unit"])
@pytest.mark.parametrize("W, feedback", [("sparse", True), ("dense", False)])
def test_step_jacobian_equals_finite_differences(activation, leak, W, feedback):
    reservoir = build(matrices(), W=W, activation=activation, leak=leak, feedback=feedback)
    x, u = np.linspace(-0.9, 0.9, 9), np.array([0.4, -1.1])
    y = np.array([0.2, 0.5]) if feedback else None
    h = 1e-6
    columns = [
        (step(reservoir, x + h * e, u, y) - step(reservoir, x - h * e, u, y)) / (2 * h)
        for e in np.eye(9)
    ]
    jacobian = step_jacobian(reservoir, x, u, y)
    np.testing.assert_allclose(jacobian, np.transpose(columns), rtol=1e-7, atol=1e-9)


def test_step_checks_its_arguments():
    reservoir = build(matrices())
    with pytest.raises(ValueError, match=r"x must have shape \(9,\); got \(8,\)"):
        step(reservoir, np.zeros(8), [0, 0])
    with pytest.raises(ValueError, match=r"u must have shape \(2,\); got \(3,\)"):
        step_jacobian(reservoir, np.zeros(9), [0, 0, 0])
    with pytest.raises(ValueError, match=r"y_prev was given, but .* no feedback weights"):
        step(reservoir, np.zeros(9), [0, 0], [0.0])


# --- closed loop -------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("exog", [False, True])
@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize(
    "leak, W, W_in", [(1.0, "sparse", "dense"), ("per unit", "dense", "sparse")]
)
def test_closed_loop_equals_naive(feedback, exog, include_input, leak, W, W_in):
    n_exog = 3 if exog else 0
    n_features = n_exog if feedback else 2 + n_exog
    m = matrices(n_features=n_features)
    reservoir = build(m, W=W, W_in=W_in, leak=leak, feedback=feedback)
    rng = np.random.default_rng(3)
    coef = 0.3 * rng.normal(size=(2, 9 + (n_features if include_input else 0)))
    intercept, E = np.array([0.1, -0.2]), rng.normal(size=(30, n_exog))
    x0, y0 = rng.normal(size=9), rng.normal(size=2)
    options = {"exog": E if exog else None, "include_input": include_input}
    outputs, state = run_closed_loop(
        reservoir, (coef, intercept), 30, initial_state=x0, initial_output=y0, **options
    )
    expected, last = naive.closed_loop(
        m["W"], m["W_in"], m["bias"], lambda f: coef @ f + intercept, 30, x0=x0, y0=y0,
        leak=m["leaks"] if leak == "per unit" else leak, W_fb=m["W_fb"] if feedback else None,
        **options,
    )  # fmt: skip
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state, last, rtol=0, atol=1e-12)
    called, _ = run_closed_loop(
        reservoir, lambda f: coef @ f + intercept, 30, initial_state=x0, initial_output=y0,
        **options,
    )  # fmt: skip
    np.testing.assert_allclose(called, outputs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("activation", NAMES)
def test_closed_loop_equals_naive_for_every_activation(activation):
    m = matrices()
    coef = np.full((2, 9), 0.05)
    outputs, _ = run_closed_loop(
        build(m, activation=activation), (coef, 0.0), 20, initial_output=[1.0, -1.0]
    )
    expected, _ = naive.closed_loop(
        m["W"], m["W_in"], m["bias"], lambda f: coef @ f, 20, activation=activation, y0=[1.0, -1.0]
    )
    np.testing.assert_allclose(outputs, expected, rtol=1e-11, atol=1e-12)


def test_closed_loop_follows_the_open_loop_and_can_be_continued():
    m = matrices()
    reservoir, coef = build(m, leak=0.5), np.full((2, 9), 0.3)
    y0 = np.array([0.5, -0.5])
    outputs, state = run_closed_loop(reservoir, (coef, np.zeros(2)), 40, initial_output=y0)
    heard = np.vstack([y0, outputs[:-1]])
    states = run(reservoir, heard)
    np.testing.assert_allclose(states @ coef.T, outputs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(states[-1], state, rtol=0, atol=1e-12)
    first, middle = run_closed_loop(reservoir, (coef, np.zeros(2)), 15, initial_output=y0)
    second, _ = run_closed_loop(
        reservoir, (coef, np.zeros(2)), 25, initial_state=middle, initial_output=first[-1]
    )
    np.testing.assert_allclose(np.vstack([first, second]), outputs, rtol=0, atol=1e-13)


def test_closed_loop_of_no_steps():
    outputs, state = run_closed_loop(
        build(matrices()), (np.zeros((2, 9)), 0.0), 0, initial_state=np.full(9, 0.25)
    )
    assert outputs.shape == (0, 2)
    np.testing.assert_array_equal(state, 0.25)


def test_closed_loop_in_float32():
    m, coef = matrices(), np.full((2, 9), 0.1)
    wide, _ = run_closed_loop(build(m), (coef, np.zeros(2)), 20)
    narrow, state = run_closed_loop(build(m).astype("float32"), (coef, np.zeros(2)), 20)
    assert narrow.dtype == state.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=0, atol=2e-6)


def test_closed_loop_leaves_its_arguments_alone():
    m, coef = matrices(n_features=3), np.full((2, 9), 0.1)
    x0, y0, E = np.full(9, 0.1), np.ones(2), series(10, 1)
    copies = [a.copy() for a in (x0, y0, E, coef)]
    _, state = run_closed_loop(
        build(m), (coef, np.zeros(2)), 10, initial_state=x0, initial_output=y0, exog=E
    )
    for now, before in zip((x0, y0, E, coef), copies, strict=True):
        np.testing.assert_array_equal(now, before)
    assert not np.shares_memory(state, x0)


def test_a_readout_may_return_a_view_of_the_features():
    reservoir, seen = build(matrices()), {"view": [], "copy": []}

    def view(features):
        seen["view"].append(features.copy())
        return features[:2]

    def copied(features):
        seen["copy"].append(features.copy())
        return features[:2].copy()

    for readout in (view, copied):
        run_closed_loop(reservoir, readout, 6, initial_output=[1.0, 1.0], include_input=True)
    np.testing.assert_array_equal(seen["view"], seen["copy"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_diverging_loop_stops_with_a_warning_that_names_the_step(dtype):
    reservoir = Reservoir([[0.0]], [[1.0]], [0.0], activation="identity").astype(dtype)
    limit = np.sqrt(float(np.finfo(dtype).max))
    step_out = int(np.flatnonzero(10.0 ** np.arange(1, 200) >= limit)[0])
    with pytest.warns(RuntimeWarning, match=rf"diverged at step {step_out}:") as caught:
        outputs, state = run_closed_loop(
            reservoir, (np.array([[10.0]]), np.zeros(1)), 250, initial_output=[1.0]
        )
    assert caught[0].filename == __file__
    assert outputs.shape == (250, 1)
    np.testing.assert_allclose(outputs[:step_out, 0], 10.0 ** np.arange(1, step_out + 1), rtol=1e-4)
    np.testing.assert_array_equal(
        outputs[step_out:], outputs[step_out - 1 : step_out].repeat(250 - step_out, axis=0)
    )
    assert np.isfinite(outputs).all()
    assert np.isfinite(state).all()


def test_divergence_at_the_first_step_repeats_the_initial_output():
    reservoir = build(matrices())
    with pytest.warns(RuntimeWarning, match="diverged at step 0"):
        outputs, state = run_closed_loop(
            reservoir, lambda f: np.array([np.nan, 0.0]), 3, initial_output=[0.5, 0.25]
        )
    np.testing.assert_array_equal(outputs, [[0.5, 0.25]] * 3)
    np.testing.assert_array_equal(state, 0.0)


def test_divergence_that_the_readout_hides():
    reservoir = Reservoir([[3.0]], [[1.0]], [0.0], activation="identity")
    with pytest.warns(RuntimeWarning, match=r"diverged at step \d+"):
        outputs, state = run_closed_loop(
            reservoir, lambda f: np.tanh(f), 2000, initial_output=[1.0]
        )
    assert np.isfinite(outputs).all()
    assert np.isfinite(state).all()


def test_a_loop_that_stays_inside_does_not_warn():
    reservoir = Reservoir([[0.0]], [[1.0]], [0.0], activation="identity")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outputs, _ = run_closed_loop(
            reservoir, (np.array([[1.0]]), np.zeros(1)), 50, initial_output=[1e150]
        )
    np.testing.assert_array_equal(outputs, 1e150)


def test_closed_loop_checks_its_arguments():
    plain, fed = build(matrices()), build(matrices(), feedback=True)
    good = (np.zeros((2, 9)), np.zeros(2))
    with pytest.raises(ValueError, match=r"n_steps=-1 must be at least 0"):
        run_closed_loop(plain, good, -1)
    with pytest.raises(TypeError, match=r"n_steps must be an integer; got 2\.5"):
        run_closed_loop(plain, good, 2.5)
    with pytest.raises(ValueError, match=r"coef must have shape \(n_outputs=2, n_features=11\)"):
        run_closed_loop(plain, good, 3, include_input=True)
    with pytest.raises(ValueError, match=r"intercept must have shape \(2,\); got \(3,\)"):
        run_closed_loop(plain, (good[0], np.zeros(3)), 3)
    with pytest.raises(
        ValueError, match=r"exog has 2 columns, but the reservoir has n_features=2: at least"
    ):
        run_closed_loop(plain, good, 3, exog=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"exog has 0 columns, but .* it has feedback weights"):
        run_closed_loop(fed, good, 3)
    with pytest.raises(ValueError, match=r"exog has 2 rows, but n_steps=3"):
        run_closed_loop(fed, good, 3, exog=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"exog must have shape \(3, n_exog\); got \(3,\)"):
        run_closed_loop(fed, good, 3, exog=np.zeros(3))
    with pytest.raises(ValueError, match=r"exog contains NaN or infinity .* first in row 1"):
        run_closed_loop(fed, good, 3, exog=[[0, 0], [np.nan, 0], [0, 0]])
    with pytest.raises(ValueError, match=r"initial_output must have shape \(2,\); got \(1,\)"):
        run_closed_loop(plain, good, 3, initial_output=[1.0])
    with pytest.raises(ValueError, match=r"readout must return shape \(2,\); got \(1, 2\)"):
        run_closed_loop(plain, lambda f: np.zeros((1, 2)), 3)


# --- the reservoir as data ---------------------------------------------------------------------


def arrays_of(reservoir):
    for name in ("W", "W_in", "bias", "W_fb", "leak_rate"):
        value = getattr(reservoir, name)
        parts = (value.data, value.indices, value.indptr) if sp.issparse(value) else (value,)
        yield from (part for part in parts if isinstance(part, np.ndarray))


COPIES = {
    "itself": lambda r: r,
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "astype": lambda r: r.astype("float32"),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("W, W_in", [("sparse", "dense"), ("dense", "sparse")])
def test_reservoirs_are_frozen_and_read_only(how, W, W_in):
    reservoir = COPIES[how](build(matrices(), W=W, W_in=W_in, leak="per unit", feedback=True))
    parts = list(arrays_of(reservoir))
    assert len(parts) == 7
    assert not any(part.flags.writeable for part in parts)
    with pytest.raises(AttributeError, match="leak_rate"):
        reservoir.leak_rate = 0.5
    with pytest.raises(ValueError, match="read-only"):
        reservoir.bias[0] = 1.0


@pytest.mark.parametrize("W", ["sparse", "dense"])
def test_the_callers_arrays_are_neither_touched_nor_shared(W):
    m = matrices()
    given_W = sp.csr_array(m["W"]) if W == "sparse" else m["W"].copy()
    given = [m["W_in"].copy(), m["bias"].copy(), m["leaks"].copy(), m["W_fb"].copy()]
    reservoir = Reservoir(given_W, *given[:2], leak_rate=given[2], W_fb=given[3])
    before = run(reservoir, series(5), feedback=series(5))
    for part in (given_W.data if W == "sparse" else given_W, *given):
        assert part.flags.writeable
        part[:] = 0.5
    np.testing.assert_array_equal(run(reservoir, series(5), feedback=series(5)), before)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "list", "F"])
def test_any_storage_of_W(kind):
    m, X = matrices(), series(10)
    W = m["W"].tolist() if kind == "list" else np.asfortranarray(m["W"])
    if hasattr(sp, kind):
        W = getattr(sp, kind)(m["W"])
    states = run(Reservoir(W, m["W_in"], m["bias"]), X)
    np.testing.assert_allclose(states, slow(m, X), rtol=0, atol=1e-12)


def test_duplicate_entries_of_W_are_summed():
    W = sp.coo_array(([0.25, 0.25], ([0, 0], [0, 0])), shape=(1, 1))
    assert Reservoir(W, [[1.0]], [0.0]).W.toarray() == [[0.5]]


def test_sizes_and_repr():
    reservoir = build(matrices(n_outputs=3), feedback=True)
    assert (reservoir.n_units, reservoir.n_features, reservoir.n_outputs) == (9, 2, 3)
    assert f"connections={np.count_nonzero(matrices()['W'])}" in repr(reservoir)
    assert build(matrices()).n_outputs == 0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"W": np.ones((2, 3))}, r"W must be square .* got shape \(2, 3\)"),
        ({"W": np.zeros((0, 0))}, r"at least one unit; got shape \(0, 0\)"),
        ({"W": np.ones(2)}, r"W must be two-dimensional; got shape \(2,\)"),
        ({"W": np.full((2, 2), np.nan)}, "W contains NaN or infinity as float64"),
        ({"W": sp.csr_array([[0, np.inf], [0, 0]])}, "W contains NaN or infinity as float64"),
        (
            {"W_in": np.ones((3, 1))},
            r"W_in must have shape \(n_units=2, n_features\); got \(3, 1\)",
        ),
        ({"W_in": np.ones(2)}, r"W_in must be two-dimensional; got shape \(2,\)"),
        ({"bias": np.zeros(3)}, r"bias must have shape \(2,\); got \(3,\)"),
        ({"bias": [0, np.inf]}, "bias contains NaN or infinity"),
        ({"leak_rate": 0.0}, r"leak_rate=0 must be in \(0, 1\]; 1 means no leak"),
        ({"leak_rate": 1.5}, r"leak_rate=1\.5 must be in \(0, 1\]"),
        ({"leak_rate": np.nan}, r"leak_rate=nan must be in \(0, 1\]"),
        ({"leak_rate": [0.5, -0.25]}, r"leak_rate=-0\.25 must be in \(0, 1\]"),
        (
            {"leak_rate": [0.5] * 3},
            r"leak_rate must be a number or have shape \(2,\); got .*\(3,\)",
        ),
        (
            {"W_fb": np.ones((3, 1))},
            r"W_fb must be a dense array of shape \(n_units=2, n_outputs\)",
        ),
        ({"W_fb": np.ones((2, 0))}, r"W_fb must be a dense array .* got \(2, 0\)"),
        ({"activation": "tahn"}, r"activation='tahn' is not known\. Did you mean 'tanh'"),
    ],
)
def test_errors_of_a_reservoir(changes, message):
    fields = {"W": np.eye(2), "W_in": np.ones((2, 1)), "bias": np.zeros(2), **changes}
    with pytest.raises(ValueError, match=message):
        Reservoir(fields.pop("W"), fields.pop("W_in"), fields.pop("bias"), **fields)


@pytest.mark.parametrize("name", ["W", "W_in", "bias", "W_fb"])
def test_complex_weights_raise(name):
    fields = {"W": np.eye(2), "W_in": np.ones((2, 1)), "bias": np.zeros(2), "W_fb": np.ones((2, 1))}
    fields[name] = fields[name] * 1j
    with pytest.raises(TypeError, match=f"{name} must be real; got complex"):
        Reservoir(fields["W"], fields["W_in"], fields["bias"], W_fb=fields["W_fb"])


@pytest.mark.parametrize("dtype", ["float16", int, "int64", "flaot32"])
def test_astype_knows_two_dtypes(dtype):
    with pytest.raises(
        ValueError, match=r"dtype='.*' is not known\..* Known: 'float32', 'float64'"
    ):
        build(matrices()).astype(dtype)
