"""Bias bounds: the critical bias, theorems for one unit, and counterexamples to the heuristics."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from reservoir.scaling import scale_to_norm
from reservoir.stability import bias_bounds, critical_bias

GAINS = [1.05, 1.5, 2.0, 3.78, 8.0, 30.0]


def follow(x, drive, gain, leak=1.0, f=np.tanh):
    """States of one unit from several starts after a drive (bias included)."""
    x = np.asarray(x, dtype=float)
    for c in drive:
        x = (1 - leak) * x + leak * f(gain * x + c)
    return x


STARTS = np.linspace(-1, 1, 21)


@pytest.mark.parametrize("gain", GAINS)
def test_critical_bias_is_where_the_diagonal_is_tangent(gain):
    # the local maximum of atanh(h) - g h on (-1, 0), found by a library
    found = minimize_scalar(
        lambda h: gain * h - np.arctanh(h), bounds=(-1 + 1e-12, 0), method="bounded"
    )
    assert critical_bias(gain) == pytest.approx(-found.fun, rel=1e-6)


def test_critical_bias_takes_arrays_and_signs():
    values = critical_bias([[3.78, -3.78], [0.5, -1.0]])
    assert values == pytest.approx(np.array([[1.957528, 4.525805], [0, 0]]), abs=1e-6)
    assert critical_bias(-3.0, leak_rate=0.5) == pytest.approx(3.0)  # m = 3: just where it begins
    assert critical_bias(-2.9, leak_rate=0.5) == 0.0
    assert critical_bias(np.float32(0.3)) == 0.0
    huge = critical_bias([1e200, -1e200])
    assert np.isfinite(huge).all()
    assert huge == pytest.approx(1e200)


@pytest.mark.parametrize("gain", [1e5, 1e15, 1e100, 1e307, 1.7e308, np.finfo(float).max])
def test_critical_bias_of_huge_gains_in_many_digits(gain):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(400):
        g = mpmath.mpf(gain)
        q = mpmath.sqrt(1 - 1 / g)
        exact = [g * q - mpmath.atanh(q), g * q + mpmath.atanh(q)]
        leaky = g + mpmath.atanh(mpmath.sqrt(1 - 3 / g))  # m = 3
        exact = [min(float(value), np.finfo(float).max) for value in (*exact, leaky)]
    assert critical_bias([gain, -gain]) == pytest.approx(exact[:2], rel=1e-15, abs=0)
    assert critical_bias([gain, -gain], leak_rate=0.5) == pytest.approx(
        [exact[0], exact[2]], rel=1e-15, abs=0
    )


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_bounds_beyond_the_largest_float_allow_no_bias_and_raise_no_warning(activation):
    largest = np.finfo(float).max
    for W in (largest, np.full((2, 2), largest), np.diag([largest, -largest])):
        n_units = np.size(W) if np.ndim(W) == 0 else len(W)
        bounds = bias_bounds(W, -largest, largest, activation=activation)
        assert not np.isnan([bounds.upper, bounds.lower]).any()
        for bias in (0.0, 1.0, 0.5 * largest, -largest, largest):
            assert not bounds.allow(np.full(n_units, bias))


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(30))
def test_theorem_1_is_sufficient_for_every_drive_in_the_range(seed):
    rng = np.random.default_rng(seed)
    gain, leak = 1 + rng.exponential(2), rng.choice([1.0, 0.5, rng.uniform(0.05, 1)])
    low, high = np.sort(rng.uniform(-3, 3, 2))
    bounds = bias_bounds(gain, low, high, leak_rate=leak)
    assert bounds.guaranteed
    bias = bounds.lower[0] + 0.02 if seed % 2 else bounds.upper[0] - 0.02
    assert bounds.allow(bias)
    worst = low if seed % 2 else high  # the end that is nearest to the critical value
    n_steps = int(1500 / leak)
    drives = [
        np.full(n_steps, worst),
        rng.uniform(low, high, n_steps),
        rng.choice([low, high], n_steps),
    ]
    starts = np.append(STARTS, [-5.0, 5.0, 20.0])
    for p in drives:
        assert np.ptp(follow(starts, p + bias, gain, leak)) < 1e-6


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(30))
def test_theorem_1_is_necessary(seed):
    rng = np.random.default_rng(seed)
    gain, leak = 1.2 + rng.exponential(2), rng.choice([1.0, 0.3])
    low, high = np.sort(rng.uniform(-3, 3, 2))
    bounds = bias_bounds(gain, low, high, leak_rate=leak)
    bias = bounds.lower[0] - 0.01
    assert not bounds.allow(bias)
    ends = follow(STARTS, np.full(int(4000 / leak), low + bias), gain, leak)
    assert np.ptp(ends) > 0.1  # two responses to the constant drive at the near end


def test_the_printed_sign_lets_two_attractors_coexist():
    # b < min(Ax) + k with k = -kappa+, as Bay (2017), eq. (3.3), prints it
    gain, low, high, bias = 3.78, 0.0, 2.0, -2.0075
    assert bias < low - critical_bias(gain)
    assert not bias_bounds(gain, low, high).allow(bias)
    ends = follow([-1.0, 1.0], np.full(2000, high + bias), gain)
    assert ends.round(5) == pytest.approx([-0.99897, 0.99893], abs=2e-5)
    # for symmetric drives both are the same
    assert bias_bounds(gain, -1.0, 1.0).upper == pytest.approx(-1 - critical_bias(gain))


@pytest.mark.parametrize("gain", [-1.0, -0.5, 0.0, 0.99, 1.0])
@pytest.mark.parametrize("leak", [1.0, 0.2])
def test_theorem_0_asks_for_nothing(gain, leak):
    bounds = bias_bounds(gain, -2.0, 2.0, leak_rate=leak)
    assert bounds.unrestricted
    assert bounds.allow(0.0)
    assert "T0" in bounds.basis
    drive = np.random.default_rng(0).uniform(-2, 2, 3000)
    assert np.ptp(follow(STARTS, drive, gain, leak)) < 1e-6


def test_a_gain_just_above_one_is_not_unrestricted():
    assert not bias_bounds(np.nextafter(1, 2), 0.0, 0.0).unrestricted


def test_bounds_err_outwards_next_to_gain_one():
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    with mpmath.workdps(60):
        for gain in 1 + 10 ** rng.uniform(-15, 2, 300):
            g = mpmath.mpf(gain)
            q = mpmath.sqrt(1 - 1 / g)
            exact = g * q - mpmath.atanh(q), g * q + mpmath.atanh(q)
            assert mpmath.mpf(bias_bounds(gain, 0.0, 0.0).lower[0]) >= exact[0]
            assert mpmath.mpf(bias_bounds(-gain, 0.0, 0.0).lower[0]) >= exact[1]
            assert critical_bias(gain) == pytest.approx(float(exact[0]), rel=1e-6, abs=1e-15)


def test_drives_that_change_sides_are_not_covered_at_positive_gains():
    drive = np.where(np.arange(2000) % 2, 2.0, -2.0)  # beyond the critical 1.9575 at every step
    assert np.ptp(follow([-0.94, 0.94], drive, 3.78)) > 1.5


def test_theorem_2_and_why_the_positive_gains_bound_fails():
    # Bay's bound for the gain's modulus is met, and there is a 2-cycle
    assert abs(critical_bias(3.78)) < 2.0
    ends = follow([-0.94, 0.99], np.full(2000, 2.0), -3.78)
    assert np.sort(ends).round(5) == pytest.approx([-0.94468, 0.99997])
    assert critical_bias(-3.78) == pytest.approx(4.5258, abs=1e-4)
    for factor, together in ((0.99, False), (1.01, True)):
        c = factor * critical_bias(-3.78)
        assert (np.ptp(follow(STARTS, np.full(20000, c), -3.78)) < 1e-6) == together


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("seed", range(20))
def test_theorem_2_holds_for_drives_that_change_sign(seed):
    rng = np.random.default_rng(seed)
    gain = 1 + rng.exponential(3)
    least = critical_bias(-gain) + 0.02
    largest = least + rng.exponential(3)
    size = rng.choice([least, largest, rng.uniform(least, largest)], 3000)
    drive = size * rng.choice([-1, 1], 3000)
    assert np.ptp(follow(STARTS, drive, -gain)) < 1e-6


def test_theorem_3_and_why_the_autonomous_bound_fails():
    gain, leak = 6.0, 0.5
    m = 2 / leak - 1
    q = np.sqrt(1 - m / gain)
    autonomous = gain * q + np.arctanh(q)  # linear stability of the fixed point
    assert autonomous == pytest.approx(5.1240, abs=1e-4)
    drive = np.where(np.arange(4000) % 2, 20.0, 5.15)
    ends = np.unique(follow(STARTS, drive, -gain, leak).round(4))
    assert ends == pytest.approx([0.7418, 0.8364])  # two responses
    bound = critical_bias(-gain, leak_rate=leak)
    assert bound > 5.15
    drive = np.where(np.arange(4000) % 2, 20.0, bound + 0.01)
    assert np.ptp(follow(STARTS, drive, -gain, leak)) < 1e-6


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(10))
def test_theorem_3_holds_for_adversarial_patterns(seed):
    rng = np.random.default_rng(seed)
    leak = rng.uniform(0.1, 0.95)
    gain = (2 / leak - 1) * (1 + rng.exponential(1))
    low = rng.uniform(-1, 1)
    bounds = bias_bounds(-gain, low, low + 30.0, leak_rate=leak)
    assert "T3" in bounds.basis
    bias = bounds.lower[0] + 0.02
    for period in range(1, 6):
        pattern = rng.choice([low, low + 0.3, low + 30.0], period)
        drive = np.resize(pattern, int(3000 / leak)) + bias
        assert np.ptp(follow(STARTS, drive, -gain, leak)) < 1e-6


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gain", [5.0, 8.0, 20.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_theorem_4_logistic_units(gain, side):
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    low, high = -0.5, 1.0
    bounds = bias_bounds(gain, low, high, activation="logistic")
    critical = 2 * critical_bias(gain / 4)
    assert bounds.lower == pytest.approx(critical - gain / 2 - low)
    assert bounds.upper == pytest.approx(-critical - gain / 2 - high)
    edge, near = (bounds.lower[0], low) if side > 0 else (bounds.upper[0], high)
    starts = np.linspace(0, 1, 21)
    for shift, together in ((0.02, True), (-0.02, False)):
        c = np.full(20000, edge + side * shift + near)
        assert (np.ptp(follow(starts, c, gain, f=logistic)) < 1e-6) == together
    assert bias_bounds(4.0, low, high, activation="logistic").unrestricted


def test_the_row_norm_bound_is_no_theorem():
    W = np.full((2, 2), 1.5)
    bounds = bias_bounds(W, 0.0, 0.0)
    bias = np.array([-0.7199, -0.7199])
    assert bounds.allow(bias)
    assert not bounds.guaranteed
    assert "heuristic" in bounds.basis
    x = np.array([[1.0, -1.0], [1.0, -1.0]])
    for _ in range(500):
        x = np.tanh(W @ x + bias[:, None])
    assert x[0].round(5) == pytest.approx([0.97615, -0.99882])


@pytest.mark.slow
def test_the_row_norm_bound_fails_on_most_random_matrices_of_norm_378():
    rng = np.random.default_rng(0)
    failed = 0
    for trial in range(100):
        n = int(rng.integers(2, 12))
        W = scale_to_norm(rng.standard_normal((n, n)), 3.78)
        bounds = bias_bounds(W, 0.0, 0.0)
        sign = rng.choice([-1, 1], n) if trial % 2 else np.ones(n)
        free = np.isinf(bounds.lower)
        bias = sign * np.where(free, 0.02, bounds.lower + 0.02)
        assert bounds.allow(bias)
        x = rng.uniform(-1, 1, (n, 20))
        for _ in range(2000):
            x = np.tanh(W @ x + bias[:, None])
        failed += np.ptp(x, axis=1).max() > 1e-3
    assert failed > 60


def test_sparse_and_dense_weights_give_the_same_bounds():
    W = np.random.default_rng(0).standard_normal((5, 5))
    dense, sparse = bias_bounds(W, -1.0, 2.0), bias_bounds(sp.csr_array(W), -1.0, 2.0)
    assert np.allclose(dense.upper, sparse.upper)
    norms = np.linalg.norm(W, axis=1)
    expected = np.where(norms > 1, critical_bias(norms) + 1.0, -np.inf)
    assert np.allclose(dense.lower, expected)
    one = bias_bounds(sp.csr_array([[2.0]]), 0.0, 0.0)
    assert one.guaranteed


@pytest.mark.parametrize(
    "args, options, kind, message",
    [
        ((np.ones((2, 3)), 0, 1), {}, ValueError, r"square.*\(2, 3\)"),
        ((np.full((2, 2), np.nan), 0, 1), {}, ValueError, "NaN"),
        ((2.0, 1.0, 0.0), {}, ValueError, "drive_min=1 exceeds drive_max=0"),
        ((2.0, np.nan, 0.0), {}, ValueError, "drive_min contains NaN"),
        ((2.0, -np.inf, 0.0), {}, ValueError, "drive_min contains NaN or infinity"),
        ((np.eye(2), [0, 0, 0], 1), {}, ValueError, r"\(n_units=2,\); got \(3,\)"),
        ((2.0, 0, 1), {"criterion": "row"}, ValueError, "Known: 'row_norm'"),
        ((2.0, 0, 1), {"activation": "relu"}, ValueError, "activation='relu' is not known"),
        ((2.0, 0, 1), {"leak_rate": 0.0}, ValueError, r"\(0, 1\]"),
        ((np.eye(2), 0, 1), {"leak_rate": [0.5] * 3}, ValueError, "leak_rate"),
        ((2j, 0, 1), {}, TypeError, "real"),
        ((2.0, "0", 1), {}, TypeError, "drive_min must be real"),
        (("three", 0, 1), {}, TypeError, "real"),
    ],
)
def test_bad_input(args, options, kind, message):
    with pytest.raises(kind, match=message):
        bias_bounds(*args, **options)
    if kind is ValueError and "leak_rate" in options:
        with pytest.raises(ValueError, match="leak_rate"):
            critical_bias(-2.0, leak_rate=0.0)
    with pytest.raises(ValueError, match="NaN"):
        critical_bias(np.nan)
    with pytest.raises(ValueError, match="do not fit"):
        critical_bias([1.0, 2.0], leak_rate=[0.5] * 3)
    with pytest.raises(ValueError, match=r"\(n_units=1,\); got \(3,\)"):
        bias_bounds(2.0, 0.0, 1.0).allow([0.0] * 3)


def test_huge_weights_of_rows_do_not_overflow():
    bounds = bias_bounds(1e200 * np.eye(2), 0.0, 0.0)
    assert bounds.lower == pytest.approx(1e200)
