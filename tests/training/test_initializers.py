"""Random starts: variances, orthogonality, spectral radius, seeds, errors."""

import numpy as np
import pytest
import scipy.stats as st

from reservoir.scaling import spectral_radius
from reservoir.training.bptt import Network
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.initializers import INITIALIZERS, initialize

CELLS = {
    "rnn": (SimpleCell, 1),
    "lstm": (LSTMCell, 4),
    "peephole": (lambda n: LSTMCell(n, peephole=True), 4),
    "gru": (GRUCell, 3),
}
EVERY_CELL = pytest.mark.parametrize("cell", CELLS)
EVERY_SCHEME = pytest.mark.parametrize("scheme", INITIALIZERS)


def start(cell, scheme, n_units=20, n_features=8, n_outputs=3, **options):
    make, n_gates = CELLS[cell]
    network = Network(make(n_units), n_features, n_outputs)
    return initialize(network.shapes(), scheme, n_gates=n_gates, **options), network, n_gates


def blocks(params, name, n_gates):
    return np.split(params[name], n_gates)


@EVERY_CELL
@EVERY_SCHEME
@pytest.mark.parametrize("dtype", [np.float64, np.float32, "float32"])
def test_shapes_dtype_and_seed(cell, scheme, dtype):
    params, network, _ = start(cell, scheme, dtype=dtype, random_state=3)
    assert {name: array.shape for name, array in params.items()} == network.shapes()
    assert list(params) == list(network.shapes())
    again, *_ = start(cell, scheme, dtype=dtype, random_state=3)
    other, *_ = start(cell, scheme, dtype=dtype, random_state=4)
    double, *_ = start(cell, scheme, random_state=3)
    for name, array in params.items():
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, again[name])
        np.testing.assert_array_equal(array, double[name].astype(dtype))
    assert not np.array_equal(params["W"], other["W"])
    assert not np.array_equal(params["coef"], other["coef"])


@pytest.mark.fast_cases(2)
@EVERY_CELL
def test_variances_per_gate(cell):
    n_units, n_features, n_outputs = 60, 40, 30
    variances = {
        "glorot": lambda fan_out, fan_in: 2 / (fan_in + fan_out),
        "he": lambda fan_out, fan_in: 2 / fan_in,
        "normal": lambda fan_out, fan_in: 0.3**2,
    }
    fans = {"W_in": (n_units, n_features), "W": (n_units, n_units), "coef": (n_outputs, n_units)}
    for scheme, variance in variances.items():
        drawn = {name: [] for name in fans}
        for seed in range(5):
            params, _, n_gates = start(
                cell, scheme, n_units, n_features, n_outputs, scale=0.3, random_state=seed
            )
            for name in fans:
                count = 1 if name == "coef" else n_gates
                drawn[name].append(blocks(params, name, count))
        for name, shape in fans.items():
            for gate in zip(*drawn[name], strict=True):
                values = np.concatenate([block.ravel() for block in gate])
                assert values.mean() == pytest.approx(
                    0, abs=5 * np.sqrt(variance(*shape) / values.size)
                )
                # of 9000 draws or more: the relative deviation is at most sqrt(2 / 9000) = 1.5 %
                assert values.var() == pytest.approx(variance(*shape), rel=0.075)
                law = "uniform" if scheme == "glorot" else "norm"
                bound = np.sqrt(3 * variance(*shape))
                args = (-bound, 2 * bound) if law == "uniform" else (0, np.sqrt(variance(*shape)))
                assert st.kstest(values, getattr(st, law)(*args).cdf).pvalue > 1e-4


@pytest.mark.fast_cases(2)
@EVERY_CELL
def test_recurrent_blocks(cell):
    for seed in range(5):
        params, _, n_gates = start(cell, "orthogonal", gain=1.5, random_state=seed)
        for W in blocks(params, "W", n_gates):
            np.testing.assert_allclose(W @ W.T, 2.25 * np.eye(20), atol=1e-12)
        params, _, n_gates = start(cell, "spectral", random_state=seed)
        gates = blocks(params, "W", n_gates)
        for W in gates:
            assert spectral_radius(W) == pytest.approx(1.1, rel=1e-9)
            assert np.all((W != 0).sum(axis=1) == 15)
        assert all(not np.array_equal(gates[0], W) for W in gates[1:])
        params, _, n_gates = start(
            cell, "spectral", spectral_radius=0.7, in_degree=3, random_state=seed
        )
        for W in blocks(params, "W", n_gates):
            assert spectral_radius(W) == pytest.approx(0.7, rel=1e-9)
            assert np.all((W != 0).sum(axis=1) == 3)


@pytest.mark.parametrize("n_units", [1, 2, 5])
@EVERY_CELL
@EVERY_SCHEME
def test_small_networks(cell, scheme, n_units):
    for seed in range(5):
        params, _, n_gates = start(cell, scheme, n_units, 1, 1, random_state=seed)
        assert all(np.isfinite(array).all() for array in params.values())
        if scheme == "spectral":
            for W in blocks(params, "W", n_gates):
                assert spectral_radius(W) == pytest.approx(1.1, rel=1e-9)


@pytest.mark.fast_cases("values")
@EVERY_CELL
@EVERY_SCHEME
def test_biases_and_forget_gate(cell, scheme):
    n_units = 2000 if scheme == "normal" else 20  # enough to see a mean and a deviation
    params, _, n_gates = start(cell, scheme, n_units, n_features=1, random_state=0)
    n = len(params["bias"]) // n_gates
    for k, bias in enumerate(np.split(params["bias"], n_gates)):
        base = 1.0 if n_gates == 4 and k == 1 else 0.0
        if scheme == "normal":
            assert bias.mean() == pytest.approx(base, abs=0.015)
            assert bias.std() == pytest.approx(0.1, rel=0.1)
        else:
            np.testing.assert_array_equal(bias, np.full(n, base))
    for name in ("intercept", "peephole", "bias_recurrent"):
        if name in params:
            assert np.any(params[name] != 0) == (scheme == "normal")
    plain, *_ = start(cell, scheme, forget_bias=0.0, random_state=0)
    assert n_gates != 4 or abs(plain["bias"]).max() < 0.6


@EVERY_SCHEME
def test_a_change_of_one_array_leaves_the_others(scheme):
    base, *_ = start("lstm", scheme, random_state=7)
    wider, *_ = start("lstm", scheme, n_features=11, random_state=7)
    more, *_ = start("lstm", scheme, n_outputs=9, random_state=7)
    peephole, *_ = start("peephole", scheme, random_state=7)
    for other, changed in ((wider, {"W_in"}), (more, {"coef", "intercept"}), (peephole, set())):
        for name in set(base) - changed:
            np.testing.assert_array_equal(base[name], other[name])
    assert wider["W_in"].shape != base["W_in"].shape
    # names that no cell of today has: drawn, and nothing else moves
    shapes = {"W": (20, 20), "A_skip": (5, 6)}
    extra = initialize(shapes, scheme, random_state=7)
    assert extra["A_skip"].shape == (5, 6)
    assert extra["A_skip"].any()
    np.testing.assert_array_equal(
        extra["W"], initialize({"W": (20, 20)}, scheme, random_state=7)["W"]
    )


def test_random_states():
    draw = [start("rnn", "glorot", random_state=s)[0]["W"] for s in (None, None)]
    assert not np.array_equal(*draw)
    generator = np.random.default_rng(5)
    position = generator.bit_generator.state
    first, second = (start("rnn", "glorot", random_state=generator)[0]["W"] for _ in range(2))
    assert generator.bit_generator.state == position  # spawned from, not drawn from
    assert not np.array_equal(first, second)
    start("rnn", "glorot", random_state=np.random.RandomState(0))


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"scheme": "xavier"}, ValueError, "init='xavier' is not known.*'glorot'.*'orthogonal'"),
        ({"n_gates": 0}, ValueError, "n_gates=0"),
        (
            {"n_gates": 3},
            ValueError,
            "W_in has 8 rows, but the number of rows must be a multiple of n_gates=3",
        ),
        ({"n_gates": 2}, ValueError, r"W must have shape \(4, 2\) with n_gates=2; got \(8, 2\)"),
        ({"gain": 0}, ValueError, "gain=0"),
        ({"scale": -1}, ValueError, "scale=-1"),
        ({"spectral_radius": np.inf}, ValueError, "spectral_radius=inf"),
        ({"scheme": "spectral", "in_degree": 1.5}, ValueError, "in_degree=1.5"),
        ({"forget_bias": np.nan}, ValueError, "forget_bias=nan"),
        ({"dtype": int}, ValueError, "dtype=.* must be float64 or float32"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
    ],
)
def test_errors(options, error, message):
    shapes = {"W_in": (8, 3), "W": (8, 2), "bias": (8,)}
    options = {"scheme": "glorot", "n_gates": 4, **options}
    with pytest.raises(error, match=message):
        initialize(shapes, options.pop("scheme"), **options)
