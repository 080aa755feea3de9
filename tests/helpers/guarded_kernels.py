"""Cases for compiled kernels whose arrays end, or begin, at memory that may not be touched.

Kernels read and write eight numbers at a time and check nothing. Whoever leaves an array ends the
process, which is why tests run this file in a child; for more cases:

    python tests/helpers/guarded_kernels.py 5000
"""

import ctypes
import mmap
import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest finds `helpers`

import numpy as np
import scipy.sparse as sp

from helpers.numpy_loops import NUMPY
from reservoir import _kernels
from reservoir._kernels import _calls, _networks
from reservoir.activations import ACTIVATIONS
from reservoir.dynamics import Pooling, Reservoir, pool_many, run, run_closed_loop, run_many
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.topologies import diagonals, random_sparse

PAGE = mmap.PAGESIZE
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}  # a number read from elsewhere is far off


def protect(start):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(PAGE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")


def guarded(array, at_end):
    """Return a copy between two pages that may not be touched, close to one of them."""
    room = -(-array.nbytes // PAGE) * PAGE
    raw = np.frombuffer(mmap.mmap(-1, room + 2 * PAGE), np.uint8)
    protect(raw.ctypes.data)
    protect(raw.ctypes.data + PAGE + room)
    start = PAGE + (room - array.nbytes if at_end else 0)
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def guarding(call, at_end):
    """Return `call` for guarded copies; what a kernel writes goes back to where they are from."""

    def guarded_call(kernel, *args):
        arrays = []

        def guard(arg):
            if isinstance(arg, tuple):  # packed weights
                return type(arg)(*map(guard, arg))
            if not isinstance(arg, np.ndarray):
                return arg
            arrays.append((arg, arg.tobytes(), guarded(arg, at_end)))
            return arrays[-1][2]

        result = call(kernel, *map(guard, args))
        for array, before, copy in arrays:
            if copy.tobytes() != before:  # two may overlap, and be written through one
                array[...] = copy
        return result

    return guarded_call


# --- cases, run by the child


def in_some_order(rng, array, *, written=False):
    """Return a copy that is strided, of columns first, read-only, or like others."""
    kind = rng.integers(3 if written else 4)
    if kind == 0:
        return array.copy()
    if kind == 1:
        return np.array(array, order="F")
    if kind == 2:
        wide = np.zeros((*array.shape, 2), array.dtype)
        wide[..., 0] = array
        return wide[..., 0]
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def draw_network(rng, n_steps, n_sequences, n_units, *, cell=None, dtype=None):
    """Return a function that runs one cell forwards and backwards and gives all that it wrote."""
    drawn = str(rng.choice(list(TOLERANCE))), str(rng.choice(["simple", "lstm", "gru"]))
    dtype, cell = dtype or drawn[0], cell or drawn[1]
    n_gates = {"simple": 1, "lstm": 4, "gru": 3}[cell]

    def normal(*shape, scale=1.0):
        return (scale * rng.normal(size=shape)).astype(dtype)

    def perhaps(array):
        return in_some_order(rng, array) if rng.integers(2) else None

    shape, size = (n_steps, n_sequences, n_units), n_gates * n_units
    states = normal(2, n_steps + 1, *shape[1:])
    written = [*states, normal(n_steps, n_sequences, size), np.zeros(shape, dtype), normal(*shape)]
    W = in_some_order(rng, normal(size, n_units, scale=0.4 / np.sqrt(n_units)))
    leak, extra = perhaps(rng.uniform(0.1, 1, n_units).astype(dtype)), perhaps(normal(*shape))
    peephole, bias = perhaps(normal(3, n_units)), in_some_order(rng, normal(n_units))
    d_cell, activation = normal(n_sequences, n_units), str(rng.choice(list(ACTIVATIONS)))

    def go(loops, copy):
        H, C, G, V, D = map(copy, written)
        if cell == "simple":
            V = H[1:] if leak is None else V
            loops.simple_forward(H, V, G, W, activation, leak)
            states = H.copy()
            start = loops.simple_backward(D, V, W, activation, leak, extra)
            return [states, V, D, start]
        if cell == "lstm":
            loops.lstm_forward(H, C, V, G, W, peephole)
            gates = G.copy()
            return [H, C, V, gates, *loops.lstm_backward(D, d_cell, G, C, V, W, peephole), G]
        loops.gru_forward(H, G, V, W, bias)
        gates, recurrent = G.copy(), V.copy()
        return [H, gates, recurrent, loops.gru_backward(D, G, H, V, W), G, V]

    return go, dtype


def draw_reservoir(rng, n_steps, n_sequences, n_units, *, sparse=None, dtype=None, pooled=True):
    """Return a function that runs one reservoir over some series and on its own outputs.

    `pooled` says whether it pools states, too.
    """
    drawn = str(rng.choice(list(TOLERANCE)))
    dtype = dtype or drawn
    n_features, n_outputs = (int(rng.integers(1, 4)) for _ in range(2))
    W = rng.normal(size=(n_units, n_units)) * (rng.random((n_units, n_units)) < rng.random())
    degree = int(rng.integers(1, n_units + 1))
    if rng.integers(2):  # rows of one length, which lie in order
        W = random_sparse(n_units, in_degree=degree, random_state=rng).toarray()
    if rng.integers(3) == 0:
        W = diagonals(n_units, degree, random_state=rng).toarray()
    W *= 0.8 / max(np.linalg.norm(W, 2), 1e-3)
    leak = 1.0 if rng.integers(2) else rng.uniform(0.1, 1, n_units)
    others = {"leak_rate": leak, "activation": str(rng.choice(list(ACTIVATIONS)))}
    bias = rng.uniform(-1, 1, n_units)
    drawn = bool(rng.integers(2))
    storage = sp.csr_array if (drawn if sparse is None else sparse) else np.asarray
    W_in, W_fb = (rng.uniform(-1, 1, (n_units, k)) for k in (n_features, n_outputs))
    open_loop = Reservoir(storage(W), W_in, bias, **others).astype(dtype)
    closed_loop = Reservoir(storage(W), W_in, bias, W_fb=W_fb, **others).astype(dtype)
    series = [rng.normal(size=(n_steps + 1, n_features)).astype(dtype) for _ in range(n_sequences)]
    augment = [None, "square", "even_square"][int(rng.integers(3))]
    n_columns = n_units * (2 if augment == "square" else 1)
    readout = 0.1 * rng.normal(size=(n_outputs, n_columns)), np.zeros(n_outputs)
    start = rng.normal(size=n_outputs)
    skip = int(rng.integers(1, 3))
    lags = PastInputs(DrivenReservoir(closed_loop, True, augment), int(rng.integers(1, 8)), skip)
    past = rng.normal(size=lags.state_size).astype(dtype)
    of_lags = 0.1 * rng.normal(size=(n_outputs, lags.width)), np.zeros(n_outputs)
    lengths = [int(rng.integers(1, n_steps + 2)) for _ in series]
    beside_each = DrivenReservoir(open_loop, include_input=True)
    n_fed, inputs = min(n_features, n_outputs), rng.normal(size=(n_steps, n_sequences, n_features))
    of_each = 0.1 * rng.normal(size=(n_sequences, n_fed, beside_each.width))
    bounds = np.ones((n_sequences, n_fed))
    thresholds = rng.uniform(-1, 1, (int(rng.integers(1, 6)), n_units)).astype(dtype)
    pooling = Pooling(("mean", "std", "max", "min", "last", "quantiles"), thresholds)

    def go(engine):
        X = series[0][:n_steps]
        outputs, _ = run_closed_loop(
            closed_loop,
            readout,
            n_steps,
            initial_output=start,
            exog=X,
            augment=augment,
            engine=engine,
        )
        beside = lags.run_loop(of_lags, LoopRun(n_steps, past, start, X, engine=engine))
        alone = run(open_loop, X, engine=engine)
        found = [outputs, *beside[:2], alone, *run_many(open_loop, series, engine=engine)]
        if n_steps:
            loops = beside_each.run_lanes(
                of_each,
                0 * bounds,
                states=np.zeros((n_sequences, n_units)),
                inputs=inputs,
                clip=(-bounds, bounds),
                engine=engine,
            )
            found.append(loops)
        if pooled:
            cut = [X[:n] for X, n in zip(series, lengths, strict=True)]
            found.append(pool_many(open_loop, cut, pooling, engine=engine))
        return found

    return go, dtype


def compare(ours, theirs, dtype, case):
    for a, b in zip(ours, theirs, strict=True):
        atol = TOLERANCE[dtype] * max(1, abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=atol, err_msg=str(case))


def run_cases(n_cases):
    plain = _calls.call
    for seed in range(n_cases):
        rng = np.random.default_rng(seed)
        # all numbers of columns and of slices that a panel may leave over; no step at all
        case = (int(rng.integers(0, 4)), int(rng.integers(1, 41)), int(rng.integers(1, 71)))
        case = case if seed else (20, 10, 20)
        for at_end in (True, False):
            _kernels.call = _networks.call = guarding(plain, at_end)
            print(case, seed, at_end, flush=True)  # the last line says who ended the process
            network, dtype = draw_network(rng, *case)
            ours = network(_kernels, partial(in_some_order, rng, written=True))
            if case[0]:  # NumPy asks for a first step
                compare(ours, network(NUMPY, np.copy), dtype, case)
            if seed % 4 == 0:
                many, dtype = draw_reservoir(rng, *case)
                compare(many("numba"), many("numpy"), dtype, case)


def run_sizes(kinds):
    """Run kinds of kernels at sizes that are and are not whole vectors and whole panels of four."""
    plain = _calls.call
    sizes = [(6, 1, 1), (5, 3, 5), (4, 2, 8), (6, 5, 20), (5, 4, 32), (4, 7, 40), (3, 6, 41)]
    for seed, case in enumerate(sizes):
        for kind in ("simple", "lstm", "gru", "reservoir"):
            if kind not in kinds and "all" not in kinds:
                continue
            _kernels.call = _networks.call = guarding(plain, at_end=seed % 2 == 0)
            print(case, kind, flush=True)
            rng = np.random.default_rng(seed)
            if kind == "reservoir":
                for sparse in (True, False):
                    go, dtype = draw_reservoir(
                        rng, *case, sparse=sparse, dtype="float64", pooled="pool" in kinds
                    )
                    compare(go("numba"), go("numpy"), dtype, case)
            else:
                go, dtype = draw_network(rng, *case, cell=kind, dtype="float64")
                compare(go(_kernels, np.copy), go(NUMPY, np.copy), dtype, case)


def leave():
    """Run a kernel on an array that is no multiple of eight: the second vector ends outside."""
    _kernels.load()
    for at_end in (False, True):  # the first ends in the middle of a page
        _kernels._call("activate", guarded(np.zeros(9), at_end), 0, 0.01)
        print("nothing happened", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "leave":
        leave()
    elif sys.argv[1] == "sizes":
        run_sizes(sys.argv[2:])
    else:
        run_cases(int(sys.argv[1]))
