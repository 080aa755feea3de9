"""A sequence alone and in a list: what is equal to the bit, and what up to rounding."""

import numpy as np
import pytest

from reservoir import ESNRegressor, ReservoirTransformer, _kernels
from reservoir.building import build_reservoir
from reservoir.dynamics import run, run_many
from reservoir.dynamics.engines import steps_in_numpy

pytestmark = pytest.mark.one_engine

needs_kernels = pytest.mark.skipif(not _kernels.usable(), reason="numba is missing")
# engine, topology and inputs of which the states in a list have the bits of `run`
EXACT = {
    ("numba", "random_sparse", 1),
    ("numba", "random_sparse", 32),
    ("numba", "orthogonal", 3),
    ("numpy", "random_sparse", 1),
}
OTHERS = {("numba", "random_sparse", 33), ("numpy", "random_sparse", 3), ("numpy", "orthogonal", 1)}


def sequences(n_inputs, n_sequences=13, longest=40):
    rng = np.random.default_rng(n_inputs)
    lengths = rng.integers(1, longest, n_sequences)
    return [rng.uniform(-1, 1, (n, n_inputs)) for n in lengths]


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("engine", "topology", "n_inputs"),
    [
        pytest.param(*case, marks=needs_kernels if case[0] == "numba" else ())
        for case in sorted(EXACT | OTHERS)
    ],
)
def test_states_alone_and_in_a_list(engine, topology, n_inputs, dtype):
    reservoir = build_reservoir(30, n_inputs, topology=topology, dtype=dtype, random_state=0)
    Xs = sequences(n_inputs)
    for X, states in zip(Xs, run_many(reservoir, Xs, engine=engine), strict=True):
        alone = run(reservoir, X, engine=engine)
        if (engine, topology, n_inputs) in EXACT:
            np.testing.assert_array_equal(states, alone)
        else:
            np.testing.assert_allclose(states, alone, rtol=0, atol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "by_kernels", [False, pytest.param(True, marks=needs_kernels)], ids=["numpy", "kernels"]
)
def test_a_fitted_model_alone_and_on_a_list(by_kernels):
    reservoir = build_reservoir(30, 1, random_state=0)
    most = steps_in_numpy(reservoir, 10**6, "auto") if _kernels.usable() else 3000
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (most + 1 if by_kernels else 300, 1))
    at_zero = {"random_state": 0, "initial_state": "zeros"}
    states = ReservoirTransformer(30, **at_zero).fit(X)
    esn = ESNRegressor(30, alpha=1e-3, **at_zero).fit(X, X[:, 0])
    few, many = sequences(1), sequences(1, 20, 2 * most // 15)
    assert sum(map(len, few)) < most < sum(map(len, many))  # NumPy's rows, and those of kernels
    for Xs in (few, many):
        for rows, listed, predicted in zip(Xs, states.transform(Xs), esn.predict(Xs), strict=True):
            alone = states.transform(rows)
            if by_kernels or Xs is few:
                np.testing.assert_array_equal(listed, alone)
            np.testing.assert_allclose(listed, alone, rtol=0, atol=1e-13)
            np.testing.assert_allclose(predicted, esn.predict(rows), rtol=0, atol=1e-12)
