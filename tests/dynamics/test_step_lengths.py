"""Steps of different lengths (`dt`): the leak of each step depends on its length."""

import numpy as np
import pytest

from reservoir.dynamics import Reservoir, iter_states, run

N_STEPS = 700  # more than a block


def _drawn(seed, dtype, leak):
    rng = np.random.default_rng(seed)
    W = (rng.normal(size=(7, 7)) / 4).astype(dtype)
    res = Reservoir(W, rng.normal(size=(7, 2)), rng.normal(size=7), leak_rate=leak)
    return res, rng.normal(size=(N_STEPS, 2)), rng.exponential(size=N_STEPS) + 1e-3


LEAKS = [0.3, np.array([0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("leak", LEAKS, ids=["one", "per_unit"])
@pytest.mark.parametrize("seed", range(3))
def test_run_is_the_naive_loop_with_a_leak_per_step(seed, leak, dtype):
    res, X, dt = _drawn(seed, dtype, leak)
    x, expected = np.zeros(7), []
    for u, gap in zip(X, dt, strict=True):
        a = 1 - (1 - np.asarray(res.leak_rate, float)) ** gap
        x = (1 - a) * x + a * np.tanh(res.W @ x + res.W_in @ u + res.bias)
        expected.append(x)
    states = run(res, X, dt=dt)
    assert states.dtype == dtype
    np.testing.assert_allclose(states, expected, atol=1e-12 if dtype == np.float64 else 2e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("leak", LEAKS, ids=["one", "per_unit"])
def test_steps_of_length_one_change_no_bit(leak, dtype):
    res, X, dt = _drawn(0, dtype, leak)
    plain = run(res, X, engine="numpy")
    assert np.array_equal(run(res, X, dt=np.ones(N_STEPS)), plain)
    dt[:300] = 1  # until the first other step
    mixed = run(res, X, dt=dt)
    assert np.array_equal(mixed[:300], plain[:300])
    assert not np.allclose(mixed[300:310], plain[300:310])


def test_noise_and_parts_of_a_run_keep_their_gaps():
    res, X, dt = _drawn(1, np.float64, 0.3)
    whole = run(res, X, dt=dt)
    second = run(res, X[400:], dt=dt[400:], initial_state=whole[399])
    assert np.array_equal(second, whole[400:])
    noisy = [
        block.copy()
        for _, block in iter_states(res, X, dt=dt, noise=1e-9, generator=np.random.default_rng(0))
    ]
    np.testing.assert_allclose(np.vstack(noisy), whole, atol=1e-7)


@pytest.mark.parametrize("leak", [0.01, 0.3, 0.99])
def test_without_recurrence_a_long_step_is_several_short_ones(leak):
    res = Reservoir(np.zeros((1, 1)), [[1.0]], [0.2], leak_rate=leak)
    long = run(res, [[0.7], [0.7]], dt=[2.0, 1.5])
    short = run(res, np.full((7, 1), 0.7), dt=np.full(7, 0.5))
    np.testing.assert_allclose(long[:, 0], short[[3, 6], 0], rtol=1e-14)


@pytest.mark.parametrize(
    ("dt", "leak", "engine", "message"),
    [
        ([1.0, 0.0, 1.0], 0.5, "auto", r"got 0 in row 1"),
        ([1.0, 1.0, -2.5], 0.5, "auto", r"got -2.5 in row 2"),
        ([np.inf, 1.0, 1.0], 0.5, "auto", r"got inf in row 0"),
        ([1.0, np.nan, 1.0], 0.5, "auto", "dt"),
        ([1.0, 1.0], 0.5, "auto", r"n_samples=3"),
        ([1.0, 2.0, 1.0], 1.0, "auto", r"has no effect with leak_rate=1"),
        ([1.0, 2.0, 1.0], 0.5, "numba", "does not support dt"),
    ],
)
def test_bad_gaps_raise(dt, leak, engine, message):
    res = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=leak)
    with pytest.raises(ValueError, match=message):
        run(res, np.ones((3, 1)), dt=dt, engine=engine)
