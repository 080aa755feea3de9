"""Compiled loops of trained networks against those in NumPy."""

import numpy as np
import pytest

from helpers.numpy_loops import NUMPY
from reservoir import _kernels
from reservoir.activations import ACTIVATIONS

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}  # relative to the largest number of an array
DTYPES = list(TOLERANCE)
# numbers of units and of sequences: whole vectors or not, and every width of a panel
SIZES = [(1, 1), (5, 3), (8, 2), (13, 7), (24, 4), (33, 1), (40, 6)]
N_STEPS = 13


def draw(seed, dtype):
    rng = np.random.default_rng(seed)
    return lambda *shape, scale=1.0: (scale * rng.normal(size=shape)).astype(dtype)


def assert_same(ours, theirs, dtype):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype == dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype] * max(1, abs(b).max()))


def simple(loops, weights, activation, leak, extra, n_steps=N_STEPS):
    """Forwards and backwards; everything that is written."""
    H, U, W, D = (array.copy() for array in weights)
    V = H[1:] if leak is None else np.zeros_like(U)
    loops.simple_forward(H, V, U, W, activation, leak)
    states = H.copy()
    start = loops.simple_backward(D, V, W, activation, leak, extra)
    return states, V.copy(), D, start


@pytest.mark.fast_cases(24)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("leaky", [False, True])
@pytest.mark.parametrize(("n_units", "n_sequences"), SIZES)
def test_simple_cells(n_units, n_sequences, leaky, activation, dtype):
    normal = draw(n_units, dtype)
    shape = (N_STEPS, n_sequences, n_units)
    H = normal(N_STEPS + 1, n_sequences, n_units)
    W = normal(n_units, n_units, scale=0.4 / np.sqrt(n_units))
    weights = H, normal(*shape), W, normal(*shape)
    leak = np.linspace(0.2, 0.9, n_units).astype(dtype) if leaky else None
    for extra in (None, normal(*shape)):
        ours, theirs = (
            simple(loops, weights, activation, leak, extra) for loops in (_kernels, NUMPY)
        )
        assert_same(ours, theirs, dtype)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize(("n_units", "n_sequences"), SIZES)
def test_lstm(n_units, n_sequences, peephole, dtype):
    normal = draw(n_units, dtype)
    shape = (N_STEPS, n_sequences, n_units)
    start = normal(2, N_STEPS + 1, n_sequences, n_units)
    inputs = normal(*shape[:2], 4 * n_units)
    W = normal(4 * n_units, n_units, scale=0.7 / np.sqrt(n_units))
    peep = normal(3, n_units) if peephole else None
    D, d_cell = normal(*shape), normal(n_sequences, n_units)
    results = []
    for loops in (_kernels, NUMPY):
        (H, C), G, TC = start.copy(), inputs.copy(), np.zeros(shape, dtype)
        loops.lstm_forward(H, C, TC, G, W, peep)
        gates = G.copy()
        starts = loops.lstm_backward(D.copy(), d_cell.copy(), G, C, TC, W, peep)
        results.append((H, C, TC, gates, G, *starts))
    assert_same(*results, dtype)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_units", "n_sequences"), SIZES)
def test_gru(n_units, n_sequences, dtype):
    normal = draw(n_units, dtype)
    shape = (N_STEPS, n_sequences, n_units)
    start = normal(N_STEPS + 1, n_sequences, n_units)
    inputs = normal(*shape[:2], 3 * n_units)
    W = normal(3 * n_units, n_units, scale=0.7 / np.sqrt(n_units))
    bias, D = normal(n_units), normal(*shape)
    results = []
    for loops in (_kernels, NUMPY):
        H, G, R = start.copy(), inputs.copy(), np.zeros(shape, dtype)
        loops.gru_forward(H, G, R, W, bias)
        gates, recurrent = G.copy(), R.copy()
        d_start = loops.gru_backward(D.copy(), G, H, R, W)
        results.append((H, gates, recurrent, G, R, d_start))
    assert_same(*results, dtype)


def test_padding_stays_out_of_reach():
    """A state that is not finite in one sequence leaves the others alone."""
    normal = draw(0, "float64")
    H, U = normal(4, 3, 5), normal(3, 3, 5)
    W = normal(5, 5, scale=0.3)
    clean = H.copy()
    H[0, 1] = np.inf
    _kernels.simple_forward(clean, clean[1:], U.copy(), W, "softplus", None)
    with np.errstate(invalid="ignore"):
        _kernels.simple_forward(H, H[1:], U.copy(), W, "softplus", None)
    np.testing.assert_array_equal(H[1:, ::2], clean[1:, ::2])
    assert not np.isfinite(H[1:, 1]).all()


@pytest.mark.parametrize("chaotic", ["tanh", "relu"])
def test_single_steps_where_runs_diverge(chaotic):
    normal = draw(1, "float64")
    n_units, W = 24, 3 * draw(2, "float64")(24, 24)
    for _ in range(20):
        H, U, D = normal(2, 2, n_units), normal(1, 2, n_units), normal(1, 2, n_units)
        ours, theirs = (
            simple(loops, (H, U, W, D), chaotic, None, None) for loops in (_kernels, NUMPY)
        )
        assert_same(ours, theirs, "float64")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_are_as_good_as_the_format(dtype):
    """Two units in the last place; 0 and 1 far out, and NaN where NaN went in."""
    eps = np.finfo(dtype).eps
    if np.finfo(np.longdouble).eps >= eps:
        pytest.skip("the system has no longer format to compare with")
    x = np.concatenate(
        [np.linspace(-30, 30, 4001), np.geomspace(1e-30, 1, 400), [700.0, -700.0, 5000.0, -5000.0]]
    ).astype(dtype)
    size = len(x)
    G = np.zeros((1, 1, 4 * size), dtype)
    G[0, 0, :size], G[0, 0, 2 * size : 3 * size] = x, x
    H, C, TC = (np.zeros((n, 1, size), dtype) for n in (2, 2, 1))
    W = np.zeros((4 * size, size), dtype)
    _kernels.lstm_forward(H, C, TC, G, W, None)
    wide = x.astype(np.longdouble)
    gate = G[0, 0, :size]
    smallest = np.finfo(dtype).tiny
    np.testing.assert_allclose(gate, 1 / (1 + np.exp(-wide)), rtol=2 * eps, atol=20 * smallest)
    np.testing.assert_allclose(G[0, 0, 2 * size : 3 * size], np.tanh(wide), rtol=2 * eps, atol=0)
    assert gate.min() >= 0
    assert gate.max() <= 1
    assert abs(G[0, 0, 2 * size : 3 * size]).max() <= 1
    G[0, 0, :] = np.nan
    _kernels.lstm_forward(H, C, TC, G, W, None)
    assert np.isnan(G).all()
    assert np.isnan(H[1]).all()


def test_arrays_in_other_orders_are_written_all_the_same():
    normal = draw(3, "float64")
    W, U = normal(8, 8, scale=0.3), normal(6, 2, 8)
    plain = np.zeros((7, 2, 8))
    _kernels.simple_forward(plain, plain[1:], U.copy(), W, "tanh", None)
    wide = np.zeros((7, 2, 16))[:, :, ::2]
    W_read_only = np.asfortranarray(W)
    W_read_only.flags.writeable = False
    _kernels.simple_forward(wide, wide[1:], np.asfortranarray(U), W_read_only, "tanh", None)
    np.testing.assert_array_equal(wide, plain)


def test_the_cache_knows_what_recurrent_kernels_are_made_of():
    from reservoir._kernels import _compile, _recurrent

    for cell in ("simple", "lstm", "gru"):
        for direction in ("forward", "backward"):
            kernel = getattr(_recurrent, f"{cell}_{direction}")
            assert isinstance(kernel._cache, _compile.Cache)
            assert kernel.targetoptions["nogil"]
            assert kernel.targetoptions["fastmath"] == {"contract", "nsz"}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_sums", [4, 8, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_panels_of_processors_with_few_registers(n_sums, dtype, monkeypatch):
    from numba import njit

    from reservoir._kernels import _panels

    monkeypatch.setattr(_panels, "_sums_in_registers", lambda bits, features: n_sums)
    slices = _panels._strip(4, {4: 1, 2: 1, 1: 2})

    @njit
    def strip(*args):
        slices(*args)

    normal = draw(4, dtype)
    W, x, begin = normal(32, 11), normal(7, 11), normal(7, 32)
    data = np.ascontiguousarray(W.reshape(4, 8, 11).transpose(0, 2, 1))
    out = np.zeros_like(begin)
    strip(out.ravel(), 0, 32, begin.ravel(), 0, 32, data, 0, 11, x.ravel(), 0, 11, 7)
    assert_same([out], [begin + x @ W.T], dtype)
