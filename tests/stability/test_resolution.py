"""The effect of floating point on a certificate: `Certificate.resolution`."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import certificate_fuzz
from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.stability import certify, certify_cycle, certify_loop, drive_range, stable_bias
from reservoir.stability.proofs._interval_network import read_network
from reservoir.stability.proofs._resolution import _Errors

ENGINES = ("numpy", "numba")


def delay_line(n=16, dtype="float64"):
    """Sixteen units of gain 10 in a row, the second at rest where it is steepest."""
    bias = np.zeros(n)
    bias[:2] = np.arctanh(0.3), -3.0
    made = Reservoir(10.0 * np.eye(n, k=-1), np.ones((n, 1)), bias, leak_rate=0.3)
    return made.astype(dtype)


def least_seen(dtype):
    """The last unit's difference if the first one's is one unit in its last place.

    Fifteen links of gain 10 follow; a tenth is allowed for slopes below 1. How much more comes of
    rounding depends on the processor: on the tanh that NumPy has for it.
    """
    return 0.9 * np.tanh(10.0**15 * float(np.spacing(np.dtype(dtype).type(0.3))))


def lasting(res, n_steps=2000, seed=0, drive=1.0, engine="auto"):
    """The largest difference of any unit over the second half, 24 random starts, one input."""
    rng = np.random.default_rng(seed)
    X = drive * rng.choice([-1.0, 1.0], (n_steps, res.n_features))
    starts = rng.uniform(-1, 1, (24, res.n_units))
    runs = run_many(res, [X] * 24, initial_states=starts, engine=engine)
    return float(np.ptp([states[n_steps // 2 :] for states in runs], axis=0).max())


@pytest.mark.fast_cases(1)
@pytest.mark.both_engines
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_certified_delay_line_keeps_what_rounding_makes(dtype):
    res = delay_line(dtype=dtype)
    found = certify(res, -1e-20, 1e-20)
    assert found.holds
    assert found.rate == pytest.approx(0.7, abs=1e-3)
    apart = [lasting(res, seed=seed, drive=1e-20) for seed in range(3)]
    assert max(apart) > least_seen(dtype)  # what the rate alone does not tell
    assert max(apart) <= found.resolution
    # no more than the activation's range; the certificate's box is of the exact map, and narrower:
    # in float32 what rounding does to the second unit decides where those behind it end
    assert found.resolution <= 2 * (1 + 1e-5)
    assert f"resolution={found.resolution:.2g}" in repr(found)


@pytest.mark.both_engines
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_floor_grows_along_the_line_as_the_differences_do(dtype):
    for n in range(2, 7):
        res = delay_line(n, dtype)
        found, apart = certify(res, -1e-20, 1e-20), lasting(res, drive=1e-20)
        assert 0 < apart <= found.resolution <= 40 * apart


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", [180])
def test_the_fuzz_finds_no_difference_above_the_resolution(n_networks):
    messages, counts, closest = certificate_fuzz.fuzz_rounding(n_networks, 3, engines=("numpy",))
    assert not messages
    assert sum(count for name, count in counts.items() if "float" in name) > n_networks / 2
    assert closest > 0.1  # and some come near


@pytest.mark.slow
def test_the_fuzz_on_compiled_kernels():
    pytest.importorskip("numba")
    messages, _, closest = certificate_fuzz.fuzz_rounding(150, 4, engines=("numba",))
    assert not messages
    assert closest > 0.1


@pytest.mark.sweep
def test_a_long_fuzz_finds_no_difference_above_the_resolution():
    for seed in range(2):
        assert not certificate_fuzz.fuzz_rounding(1000, 100 + seed, engines=("numpy",))[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("leak", [1.0, 0.2, "units"])
def test_the_resolution_is_the_least_that_any_weights_prove(seed, dtype, leak):
    rng = np.random.default_rng(seed)
    n = 12
    W = rng.standard_normal((n, n)) * np.exp(rng.uniform(-3, 3, (n, 1)) - rng.uniform(-3, 3, n))
    W = W * (0.95 / np.abs(np.linalg.eigvals(np.abs(W))).max())
    leaks = rng.uniform(0.1, 1, n) if leak == "units" else leak
    res = Reservoir(W, 0.1 * rng.standard_normal((n, 1)), np.zeros(n), leak_rate=leaks).astype(
        dtype
    )
    low, high = drive_range(res, -1.0, 1.0)
    found = certify(res, low, high, method="max_norm")
    network = read_network(res, low, high)
    errors = _Errors(network, res, np.maximum(np.abs(low), np.abs(high)))
    size = np.abs(found.box).max(axis=0)
    pushed = 2 * (found.gains * errors.of_sum(size) + errors.of_value(size))
    M = found.gains[:, None] * np.abs(network.W)
    least = np.linalg.solve(np.eye(n) - M, pushed).max()
    assert least * (1 - 1e-3) <= found.resolution <= least * 1.05 + 1e-5 * (dtype == "float32")
    # the weights of the certificate prove more only: their ratio stands before them
    v, a = found.weights, network.leak
    by_weights = v.max() * (a * pushed / v).max() / (1 - found.rate)
    assert found.resolution <= by_weights * (1 + 1e-6)


@pytest.mark.fast_cases(2)
@pytest.mark.both_engines
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("leak", [1.0, 0.3, "units"])
def test_weights_of_one_leave_a_floor_of_rounding(dtype, leak):
    leaks = np.linspace(0.2, 1, 30) if leak == "units" else leak
    options = {"topology": "orthogonal", "spectral_radius": 0.9, "leak_rate": leaks}
    for seed in range(3):
        res = build_reservoir(30, 1, random_state=seed, dtype=dtype, **options)
        found = certify(res, *drive_range(res, -1.0, 1.0))
        assert found.method == "two_norm"
        assert (found.weights == 1).all()
        eps = np.finfo(dtype).eps
        assert 10 * eps < found.resolution < (3e4 if leak != "units" else 3e6) * eps
        assert lasting(res, 1000, seed) <= found.resolution


@pytest.mark.both_engines
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cycles_have_a_floor_too(dtype):
    inputs = 1e-20 * np.array([[1.0], [-1.0], [1.0]])
    res = delay_line(dtype=dtype)
    found = certify_cycle(res, inputs)
    assert found.holds
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1, 1, (24, 16))
    runs = run_many(res, [np.tile(inputs, (600, 1))] * 24, initial_states=starts)
    apart = np.ptp([states[1000:] for states in runs], axis=0).max()
    assert least_seen(dtype) < apart <= found.resolution
    calm = certify_cycle(build_reservoir(20, 1, spectral_radius=0.3, random_state=0), inputs)
    assert calm.resolution < 1e-13


def test_proofs_without_weights_have_no_resolution():
    res = build_reservoir(20, 1, spectral_radius=0.3, random_state=0)
    low, high = drive_range(res, -1.0, 1.0)
    assert certify(res, low, high).resolution > 0
    for method in ("max_norm", "two_norm"):
        assert certify(res, low, high, method=method).resolution < 1e-12
    series = certify(res, low, high, method="series")
    assert series.holds
    assert series.resolution is None
    assert "resolution" not in repr(series)
    wild = certify(replace(res, W=res.W * 10), low, high)
    assert not wild.holds
    assert wild.resolution is None
    loop = certify_loop(res, (np.zeros((1, 20)), [0.0]), include_input=False)
    assert loop.holds
    assert loop.resolution is None


@pytest.mark.slow
def test_narrowed_boxes_have_no_resolution():
    found = 0
    for seed in range(8):
        res = build_reservoir(5, 1, spectral_radius=1.2, input_scaling=0.3, random_state=seed)
        low, high = drive_range(res, -1.0, 1.0)
        res = replace(res, bias=0.9 * stable_bias(res.W, low, high, random_state=seed))
        certificate = certify(res, low, high, method="thorough", input_range=(-1.0, 1.0))
        if certificate.holds and certificate.weights is None:
            found += 1
            assert certificate.resolution is None
    assert found > 0


@pytest.mark.both_engines
def test_a_leak_that_is_lost_in_rounding_resolves_nothing():
    res = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=1e-7).astype("float32")
    found = certify(res, 0.0, 0.0)
    assert found.holds
    assert found.resolution == np.inf
    ends = [run(res, np.zeros((5000, 1)), initial_state=[x])[-1] for x in (3.0, -3.0)]
    assert abs(ends[0] - ends[1]) > 5  # neither comes nearer
    assert certify(res.astype("float64"), 0.0, 0.0).resolution < 1e-8


def test_large_inputs_that_cancel_need_their_range():
    # sums of 1e9 and -1e9 leave seven digits: the drive's bounds do not know of them
    pytest.importorskip("numba")
    res = Reservoir(np.full((4, 4), 0.2), np.tile([1e9, -1e9], (4, 1)), np.full(4, 0.1))
    inputs = (np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    found = certify(res, -1e-3, 1e-3, input_range=inputs)
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1, 1, (16, 4))
    for engine in ENGINES:
        runs = run_many(res, [np.ones((500, 2))] * 16, initial_states=starts, engine=engine)
        assert np.ptp([states[300:] for states in runs], axis=0).max() <= found.resolution
    assert 1e-7 < found.resolution < 1e-4
    assert certify(res, -1e-3, 1e-3).resolution < 1e-13


def test_the_title_of_a_plot_names_the_resolution():
    pytest.importorskip("matplotlib")
    res = build_reservoir(10, 1, spectral_radius=0.3, random_state=0)
    ax = plotting.certificate(certify(res, -1.0, 1.0))
    assert "rounding" not in ax.get_title(loc="left")  # too little to be seen
    ax = plotting.certificate(certify(delay_line(), -1e-20, 1e-20))
    assert "; rounding leaves up to" in ax.get_title(loc="left")
