"""Metrics: their definitions, their theory, published values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import cross_val_score

from reservoir import datasets
from reservoir.dynamics import Reservoir, run
from reservoir.metrics import generalization_rank, kernel_rank, memory_capacity, nrmse, valid_time
from reservoir.scaling import scale_to_spectral_radius
from reservoir.topologies import random_sparse, ring

pytestmark = pytest.mark.one_engine


def make_reservoir(topology="ring", activation="tanh", seed=0, n_units=50, radius=0.95):
    """The reservoir of the reference protocol: input weights +-0.1, no bias."""
    rng = np.random.default_rng(seed)
    W = ring(n_units) if topology == "ring" else random_sparse(n_units, random_state=seed)
    W_in = 0.1 * rng.choice([-1.0, 1.0], (n_units, 1))
    return Reservoir(
        scale_to_spectral_radius(W, radius), W_in, np.zeros(n_units), activation=activation
    )


def delay_line(n_units, n_features=1):
    W_in = np.eye(n_units, n_features)
    return Reservoir(np.eye(n_units, k=-1), W_in, np.zeros(n_units), activation="identity")


# ---------------------------------------------------------------- nrmse


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 3))
def test_nrmse_against_its_definition(seed, n_samples, n_outputs):
    rng = np.random.default_rng(seed)
    y, p = rng.normal(1.0, 3.0, size=(2, n_samples, n_outputs))
    rmse = np.sqrt(((y - p) ** 2).mean(axis=0))
    np.testing.assert_allclose(nrmse(y, p, multioutput="raw_values"), rmse / y.std(axis=0))
    assert nrmse(y, p) == pytest.approx((rmse / y.std(axis=0)).mean())
    assert nrmse(y, p, normalization="range") == pytest.approx((rmse / np.ptp(y, axis=0)).mean())
    assert nrmse(y[:, 0], p[:, 0]) ** 2 == pytest.approx(1 - r2_score(y[:, 0], p[:, 0]))
    assert nrmse(5 * y + 2, 5 * p + 2) == pytest.approx(nrmse(y, p))


def test_nrmse_weights_and_types():
    y, p = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]), np.ones((3, 2))
    raw = nrmse(y, p, multioutput="raw_values")
    assert raw.shape == (2,)
    assert nrmse(y, p, multioutput=[1.0, 3.0]) == pytest.approx((raw[0] + 3 * raw[1]) / 4)
    assert isinstance(nrmse(y, p), float)
    weights = np.array([1, 2, 0])
    repeated = nrmse(y[[0, 1, 1]], p[[0, 1, 1]])
    assert nrmse(y, p, sample_weight=weights) == pytest.approx(repeated)
    assert nrmse(y, p, sample_weight=weights, normalization="range") == pytest.approx(
        nrmse(y[[0, 1, 1]], p[[0, 1, 1]], normalization="range")
    )
    assert nrmse(y, y) == 0.0
    assert nrmse([[1.0], [2.0]], [1.0, 2.0]) == 0.0
    assert nrmse(1e200 * y, 1e200 * p) == pytest.approx(nrmse(y, p))
    X = np.arange(30.0)[:, None]
    scorer = make_scorer(nrmse, greater_is_better=False)
    assert cross_val_score(LinearRegression(), X, X[:, 0], scoring=scorer).min() > -1e-9


def test_errors_of_nrmse():
    with pytest.raises(ValueError, match=r"Column 1 of y_true is constant \(2\)"):
        nrmse([[1.0, 2.0], [3.0, 2.0]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="constant"):
        nrmse([1.0, 1.0, 2.0], np.zeros(3), sample_weight=[1, 1, 0])
    with pytest.raises(
        ValueError, match=r"y_true has shape \(2, 1\), but y_pred has shape \(3, 1\)"
    ):
        nrmse([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        nrmse([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(ValueError, match=r"normalization='sdt' is not known\. Did you mean 'std'"):
        nrmse([1.0, 2.0], [1.0, 2.0], normalization="sdt")
    with pytest.raises(ValueError, match="multioutput='mean' is not known"):
        nrmse([1.0, 2.0], [1.0, 2.0], multioutput="mean")


# ---------------------------------------------------------------- valid_time


def test_valid_time_counts_the_steps_before_the_first_large_error():
    y = np.tile([1.0, -1.0], 50)  # standard deviation 1
    for first in (0, 1, 17, 99):
        p = y.copy()
        p[:first] += 0.29
        p[first] += 0.31
        assert valid_time(y, p) == first
        assert valid_time(y, p, dt=0.1, lyapunov_time=2.0) == pytest.approx(first * 0.1 / 2.0)
    assert valid_time(y, y) == 100
    assert valid_time(y, y + 0.4) == 0
    assert valid_time(y, y + 0.4, threshold=0.5) == 100
    assert valid_time(y, y + 0.4, scale=[2.0]) == 100


def test_valid_time_is_the_rms_over_channels():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 3)) * [1.0, 10.0, 0.1]
    p = y.copy()
    p[40] += 0.5 * y.std(axis=0) * [1, 0, 0]  # 0.5 / sqrt(3) = 0.289
    assert valid_time(y, p) == 500
    p[60] += 0.53 * y.std(axis=0) * [0, 0, 1]  # 0.306
    assert valid_time(y, p) == 60
    assert valid_time(y * [1, 1e5, 1], p * [1, 1e5, 1]) == 60


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_valid_time_of_a_diverged_forecast(value):
    y = np.sin(np.arange(50.0))
    p = y.copy()
    p[20:] = value
    assert valid_time(y, p) == 20


@pytest.mark.slow
def test_valid_time_of_a_perturbed_lorenz_grows_with_the_exponent(global_random_seed):
    """A start displaced by 1e-6 is lost after about ln(0.3 sigma / 1e-6) Lyapunov times."""
    keywords = {"washout": 0, "rtol": 1e-8, "atol": 1e-8}
    unit, lasted = datasets.LYAPUNOV_TIME["lorenz"], []
    # from one start to another the exponent over so short a time varies by a ninth
    for start in datasets.lorenz(601, random_state=global_random_seed, rtol=1e-6)[::300]:
        y = datasets.lorenz(1500, initial_state=start, **keywords)
        p = datasets.lorenz(1500, initial_state=start + np.array([1e-6, 0, 0]), **keywords)
        lasted.append(valid_time(y, p, dt=0.02, lyapunov_time=unit, scale=[7.93, 9.01, 8.62]))
    assert np.mean(lasted) == pytest.approx(np.log(0.3 * 8.5 / 1e-6), abs=5.0)


def test_errors_of_valid_time():
    y = np.arange(5.0)
    with pytest.raises(ValueError, match="y_true has shape"):
        valid_time(y, y[:4])
    with pytest.raises(ValueError, match="y_true contains NaN"):
        valid_time([0.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="is constant"):
        valid_time(np.ones(5), y)
    with pytest.raises(ValueError, match="threshold=0 must be finite and in"):
        valid_time(y, y, threshold=0)
    with pytest.raises(ValueError, match="one positive finite number per channel"):
        valid_time(y, y, scale=[1.0, 2.0])
    with pytest.raises(ValueError, match="lyapunov_time=-1"):
        valid_time(y, y, lyapunov_time=-1)


# ---------------------------------------------------------------- memory capacity


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "topology, activation, published, tolerance",
    [("ring", "identity", 48.8, 0.8), ("ring", "tanh", 45.9, 2.0), ("random", "tanh", 24.6, 5.0)],
)
def test_memory_capacity_of_the_reference_protocol(
    topology, activation, published, tolerance, seed
):
    reservoir = make_reservoir(topology, activation, seed)
    total, profile = memory_capacity(reservoir, random_state=seed, return_profile=True)
    assert total == pytest.approx(published, abs=tolerance)
    assert total <= 50
    assert profile.shape == (100,)
    assert total == pytest.approx(profile.sum())
    assert profile.max() <= 1.0
    assert profile[:10].min() > 0.95


def test_memory_capacity_of_a_ring_in_closed_form():
    """Linear cycle, whitened: lags N + k repeat lag k, weaker by radius^N [Rodan and Tino]."""
    radius, n_units = 0.8, 10
    reservoir = make_reservoir("ring", "identity", 3, n_units, radius)
    _, profile = memory_capacity(
        reservoir, max_lag=30, n_train=60_000, n_test=60_000, random_state=0, return_profile=True
    )
    # MC_k = V_k' C^-1 V_k, C the covariance of the states and V_k that of states and u(t - k)
    W, V = reservoir.W.toarray(), [reservoir.W_in[:, 0]]
    for _ in range(400):
        V.append(W @ V[-1])
    C = sum(np.outer(v, v) for v in V)
    exact = [v @ np.linalg.solve(C, v) for v in V[1:31]]
    np.testing.assert_allclose(profile, exact, atol=0.01)


def test_memory_capacity_has_no_bias_where_there_is_no_memory(global_random_seed):
    n_units = 30
    deaf = Reservoir(np.zeros((n_units, n_units)), np.ones((n_units, 1)), np.zeros(n_units))
    total, profile = memory_capacity(
        deaf,
        max_lag=200,
        n_train=500,
        n_test=300,
        random_state=global_random_seed,
        return_profile=True,
    )
    # raw squared correlations would add up to 200 / 299 = 0.67
    assert abs(total) < 0.35
    assert np.abs(profile).max() < 0.08


def test_memory_capacity_of_a_silent_reservoir_is_zero():
    silent = Reservoir(np.zeros((4, 4)), np.zeros((4, 1)), 0.3 * np.ones(4))
    total, profile = memory_capacity(silent, return_profile=True, random_state=0)
    assert total == 0.0
    assert (profile == 0.0).all()


def test_memory_capacity_of_a_delay_line_is_its_length():
    total = memory_capacity(delay_line(8), max_lag=20, random_state=0)
    assert total == pytest.approx(7.0, abs=0.05)  # lag 0 is the eighth


def test_memory_capacity_input_and_seeds():
    reservoir = make_reservoir()
    u = np.random.default_rng(7).uniform(-0.5, 0.5, 2000)
    keywords = {"n_train": 1000, "n_test": 800}
    given_u = memory_capacity(reservoir, X=u, **keywords)
    assert given_u == memory_capacity(reservoir, X=u[:, None], **keywords)
    assert given_u == memory_capacity(reservoir, X=np.r_[u, 9.0], **keywords)
    assert memory_capacity(reservoir, random_state=1) == memory_capacity(reservoir, random_state=1)
    assert given_u == pytest.approx(memory_capacity(reservoir, random_state=1), abs=2)
    strong = Reservoir(reservoir.W, 50 * reservoir.W_in, reservoir.bias)
    assert memory_capacity(strong, X=u, **keywords) < given_u / 2  # saturation costs memory
    single = Reservoir(reservoir.W.astype(np.float32), reservoir.W_in, reservoir.bias)
    assert memory_capacity(single, random_state=1) == pytest.approx(45.4, abs=2.5)


def test_errors_of_memory_capacity():
    reservoir = make_reservoir()
    with pytest.raises(ValueError, match="washout=50 must be at least max_lag=100"):
        memory_capacity(reservoir, washout=50)
    with pytest.raises(ValueError, match=r"X has shape \(100, 1\).* 8200 rows are required"):
        memory_capacity(reservoir, X=np.arange(100.0))
    with pytest.raises(ValueError, match="Column 0 of X is constant"):
        memory_capacity(reservoir, X=np.ones(9000))
    with pytest.raises(ValueError, match="n_features=2, but this measure requires n_features=1"):
        memory_capacity(delay_line(4, 2))
    with pytest.raises(TypeError, match=r"must be a reservoir\.dynamics\.Reservoir.*got ndarray"):
        memory_capacity(np.eye(3))
    loop = Reservoir(np.eye(3), np.ones((3, 1)), np.zeros(3), W_fb=np.ones((3, 1)))
    for measure in memory_capacity, kernel_rank, generalization_rank:
        with pytest.raises(ValueError, match="feedback weights"):
            measure(loop)
    with pytest.raises(ValueError, match="alpha=-1"):
        memory_capacity(reservoir, alpha=-1)


# ---------------------------------------------------------------- ranks


@pytest.mark.parametrize("n_common", [0, 1, 4, 9])
def test_ranks_of_a_delay_line_are_known(n_common):
    line = delay_line(10)
    assert kernel_rank(line, random_state=0) == 10
    # units 0 .. n_common - 1 hold the same in all streams: one direction together
    expected = 10 - n_common + (n_common > 0)
    assert generalization_rank(line, n_common=n_common, random_state=0) == expected
    assert kernel_rank(line, n_streams=4, random_state=0) == 4
    assert generalization_rank(line, n_common=20, random_state=0) == 1


def test_ranks_equal_the_rank_of_the_final_states():
    reservoir = make_reservoir("random", seed=1, radius=0.9)
    streams = np.random.default_rng(5).uniform(-0.5, 0.5, (50, 100, 1))
    states = np.stack([run(reservoir, stream)[-1] for stream in streams])
    values = np.linalg.svd(states, compute_uv=False)
    for rtol in (1e-1, 1e-2, 1e-4):
        expected = int((values > rtol * values[0]).sum())
        assert kernel_rank(reservoir, rtol=rtol, random_state=5) == expected


def test_memory_raises_both_ranks(global_random_seed):
    ranks = []
    for radius in (0.1, 0.5, 0.95):
        reservoir = make_reservoir("random", seed=global_random_seed, radius=radius)
        kernel = kernel_rank(reservoir, random_state=global_random_seed)
        general = generalization_rank(reservoir, n_common=10, random_state=global_random_seed)
        assert general <= kernel
        ranks.append((kernel, general))
    assert ranks == sorted(ranks)
    assert ranks[0][1] == 1  # forgets within 10 steps


def test_rank_of_a_reservoir_without_input_is_that_of_its_bias():
    still = Reservoir(np.zeros((4, 4)), np.zeros((4, 1)), np.ones(4))
    assert kernel_rank(still, random_state=0) == 1
    dead = Reservoir(np.zeros((4, 4)), np.zeros((4, 1)), np.zeros(4))
    assert kernel_rank(dead, random_state=0) == 0
    with pytest.raises(ValueError, match="n_common=10 must be smaller than length=10"):
        generalization_rank(still, length=10, n_common=10)
    with pytest.raises(ValueError, match="rtol=1"):
        kernel_rank(still, rtol=1)
