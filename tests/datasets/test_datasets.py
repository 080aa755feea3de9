"""Datasets: their equations, tolerances, and known statistics."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import datasets
from reservoir.datasets._mackey_glass import _integrate

CHAOTIC = sorted(datasets.LYAPUNOV_TIME)
FLOWS = ["lorenz", "roessler", "lorenz96"]
SEQUENCES = (
    "adding",
    "bouncing_balls",
    "gestures",
    "patient_visits",
    "multiplication",
    "spike_patterns",
    "street_walks",
    "temporal_order",
)
OTHERS = (*SEQUENCES, "load_co2", "load_el_nino", "load_sunspots")
GENERATORS = [name for name in datasets.__all__ if name[0].islower() and name not in OTHERS]


def make(name, n_samples=60, **keywords):
    if name in FLOWS and n_samples > 1:
        keywords.setdefault("washout", 10)  # integrating takes time
    return getattr(datasets, name)(n_samples, **keywords)


# ---------------------------------------------------------------- all generators


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("name", GENERATORS)
def test_shapes_seeds_and_finiteness(name):
    result = make(name, random_state=3)
    X = result[0] if isinstance(result, tuple) else result
    assert X.ndim == 2
    assert len(X) == 60
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert X.flags.writeable
    again, other = make(name, random_state=3), make(name, random_state=4)
    if isinstance(result, tuple):
        assert len(result[1]) == 60
        np.testing.assert_array_equal(result[1], again[1])
        again, other = again[0], other[0]
    np.testing.assert_array_equal(X, again)
    assert not np.array_equal(X, other)


@pytest.mark.parametrize("name", GENERATORS)
def test_documentation_and_errors(name):
    function = getattr(datasets, name)
    for word in function.__doc__, datasets.__doc__:
        assert "random_state" in word
    assert "References" in function.__doc__
    assert next(iter(inspect.signature(function).parameters)) == "n_samples"
    with pytest.raises(ValueError, match="n_samples=0 must be at least 1"):
        function(0)
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        function(2.5)
    with pytest.raises(ValueError, match="random_state=-1"):
        function(5, random_state=-1)


@pytest.mark.parametrize("name", CHAOTIC)
def test_washout_drops_the_first_rows(name):
    whole = make(name, 40, washout=0)
    np.testing.assert_allclose(make(name, 30, washout=10), whole[10:], rtol=0, atol=1e-10)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("name", CHAOTIC)
def test_without_a_seed_the_start_is_the_published_one(name):
    np.testing.assert_array_equal(make(name), make(name))
    first = make(name, 1, washout=0)
    assert np.abs(make(name, 1, washout=0, random_state=0) - first).max() <= 0.1
    generator = np.random.default_rng(5)
    make(name, 2, random_state=generator)
    assert generator.random() == np.random.default_rng(5).random()


# ---------------------------------------------------------------- Mackey-Glass


def test_mackey_glass_first_interval_in_closed_form():
    times = np.linspace(0.0, 17.0, 35)
    x = datasets.mackey_glass(35, washout=0, dt=0.5).ravel()
    inflow = 0.2 * 1.2 / (1.0 + 1.2**10)
    exact = 1.2 * np.exp(-0.1 * times) + inflow / 0.1 * (1.0 - np.exp(-0.1 * times))
    np.testing.assert_allclose(x, exact, rtol=1e-14)


def test_mackey_glass_satisfies_its_equation():
    tau, dt = 17.0, 0.01
    x = datasets.mackey_glass(8000, washout=5000, dt=dt).ravel()
    slope = (x[:-4] - 8 * x[1:-3] + 8 * x[3:-1] - x[4:]) / (12 * dt)
    lag = round(tau / dt)
    delayed, now = x[2 : len(x) - 2 - lag], x[2 + lag : -2]
    right = 0.2 * delayed / (1.0 + delayed**10) - 0.1 * now
    np.testing.assert_allclose(slope[lag:], right, rtol=0, atol=1e-9)


def test_mackey_glass_order_of_convergence():
    times = np.arange(0.0, 301.0)

    def solve(n_panels):
        return _integrate(times, 17.0, 0.2, 0.1, 10.0, 1.2, 17.0 / n_panels)

    reference = solve(100)
    errors = [np.abs(solve(n) - reference).max() for n in (5, 10, 20)]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 7.5).all(), orders
    assert np.abs(datasets.mackey_glass(301, washout=0).ravel() - reference).max() < 1e-12


def test_mackey_glass_independent_of_sampling_and_against_a_crude_method():
    fine = datasets.mackey_glass(601, dt=0.5, washout=0, tau=23.0)
    np.testing.assert_allclose(
        datasets.mackey_glass(301, washout=0, tau=23.0), fine[::2], rtol=0, atol=1e-13
    )
    h, lag = 1e-3, 23_000
    x = np.full(lag + 60_001, 1.2)
    gain = 0.2 / (1.0 + x**10) * x
    for t in range(lag, lag + 60_000):
        middle = (gain[t - lag] + gain[t - lag + 1]) / 2  # the trapezoidal rule
        x[t + 1] = (x[t] * (1 - 0.05 * h) + h * middle) / (1 + 0.05 * h)
        gain[t + 1] = 0.2 * x[t + 1] / (1.0 + x[t + 1] ** 10)
    np.testing.assert_allclose(x[lag::500], fine[:121, 0], rtol=0, atol=1e-6)


def test_mackey_glass_statistics(global_random_seed):
    x = datasets.mackey_glass(20_000, random_state=global_random_seed)
    assert 0.2 < x.min() < x.max() < 1.4
    assert x.mean() == pytest.approx(0.93, abs=0.01)
    assert x.std() == pytest.approx(0.23, abs=0.01)


def test_mackey_glass_below_the_onset_of_chaos_is_stationary():
    # one fixed point x = 1, stable for tau below 4.71 at the default constants
    x = datasets.mackey_glass(10, tau=3.0, washout=2000)
    np.testing.assert_allclose(x, 1.0, atol=1e-10)


def test_mackey_glass_extreme_parameters_are_finite():
    for keywords in ({"history": 1e200}, {"history": 0.0}, {"exponent": 500.5}, {"beta": 0.0}):
        assert np.isfinite(datasets.mackey_glass(50, **keywords)).all()
    with pytest.raises(ValueError, match=r"tau=0 must be finite and in \(0"):
        datasets.mackey_glass(5, tau=0)
    with pytest.raises(ValueError, match="history=-1"):
        datasets.mackey_glass(5, history=-1)


def test_mackey_glass_displaced_below_zero_is_reflected():
    starts = [datasets.mackey_glass(1, history=0.0, washout=0, random_state=s) for s in range(12)]
    assert min(start.item() for start in starts) > 0


# ---------------------------------------------------------------- flows


def right_hand_side(name, X):
    if name == "lorenz":
        x, y, z = X.T
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=1)
    if name == "roessler":
        x, y, z = X.T
        return np.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)], axis=1)
    ahead, behind, behind2 = (np.roll(X, k, axis=1) for k in (-1, 1, 2))
    return (ahead - behind2) * behind - X + 8.0


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", FLOWS)
def test_flows_satisfy_their_equations(name):
    dt = 1e-3
    X = make(name, 400, dt=dt, initial_state=make(name, 1)[0], washout=0)
    slope = (X[:-4] - 8 * X[1:-3] + 8 * X[3:-1] - X[4:]) / (12 * dt)
    np.testing.assert_allclose(slope, right_hand_side(name, X[2:-2]), rtol=0, atol=1e-4)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", FLOWS)
def test_flows_keep_their_tolerance_before_chaos_separates(name, global_random_seed):
    dt = datasets.LYAPUNOV_TIME[name] / 20
    default = inspect.signature(getattr(datasets, name)).parameters["rtol"].default
    errors = []
    for seed in global_random_seed + 100 * np.arange(3):  # some starts soon lead to a burst
        start = make(name, 1, washout=100, random_state=int(seed))[0]
        tight, found, coarse = (
            make(name, 101, dt=dt, washout=0, initial_state=start, rtol=rtol, atol=rtol)
            for rtol in (1e-13, default, 1e-4)
        )
        error, by_coarse = np.abs(found - tight), np.abs(coarse - tight)
        errors.append((error[:21].max(), error.max(), by_coarse.max() / error.max()))
    first, last, gained = np.median(errors, axis=0)
    assert first < 1e-6
    assert last < 1e-6 * np.exp(5.0)
    assert gained > 100


def test_lorenz_statistics(global_random_seed):
    X = datasets.lorenz(
        3000, dt=0.1, washout=100, rtol=1e-5, atol=1e-5, random_state=global_random_seed
    )
    assert X[:, 2].mean() == pytest.approx(23.55, abs=0.25)
    np.testing.assert_allclose(X.std(axis=0), [7.93, 9.01, 8.62], atol=0.25)
    # stationarity: the mean of z' is 0, so <xy> = 8/3 <z>
    assert (X[:, 0] * X[:, 1]).mean() == pytest.approx(8 / 3 * X[:, 2].mean(), rel=0.01)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_features", [4, 5, 40])
def test_lorenz96_energy_balance(n_features):
    X = datasets.lorenz96(1500, n_features=n_features, rtol=1e-6, atol=1e-6)
    assert X.shape == (1500, n_features)
    # the quadratic terms conserve energy: <|x|^2> = forcing <sum x>
    assert (X**2).sum(axis=1).mean() == pytest.approx(8.0 * X.sum(axis=1).mean(), rel=0.03)


def test_errors_of_flows():
    with pytest.raises(ValueError, match=r"shape \(2,\), but lorenz needs \(3,\)"):
        datasets.lorenz(5, initial_state=[1, 2])
    with pytest.raises(ValueError, match="NaN or inf"):
        datasets.roessler(5, initial_state=[1, 2, np.nan])
    with pytest.raises(ValueError, match="roessler escaped to infinity"):
        datasets.roessler(400, a=1.0, washout=0)
    with pytest.raises(ValueError, match="n_features=3 must be at least 4"):
        datasets.lorenz96(5, n_features=3)
    with pytest.raises(ValueError, match="rtol=0"):
        datasets.lorenz(5, rtol=0)
    start = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(datasets.lorenz(1, washout=0, initial_state=start), [start])


def test_waves_converge_keep_their_mean_and_travel(global_random_seed):
    start = datasets.kuramoto_sivashinsky(1, random_state=global_random_seed)[0]
    start = start + 0.1
    ends = [
        datasets.kuramoto_sivashinsky(20 * n + 1, dt=0.25 / n, washout=0, initial_state=start)[-1]
        for n in (1, 8, 16, 64)
    ]
    coarse, middle, fine = (np.abs(rows - ends[-1]).max() for rows in ends[:-1])
    assert coarse < 0.01
    assert middle / fine > 9  # the order is 4
    assert ends[0].mean() == pytest.approx(start.mean(), abs=1e-12)
    # the equation has no preferred place
    turned = datasets.kuramoto_sivashinsky(21, washout=0, initial_state=np.roll(start, 5))
    np.testing.assert_allclose(turned[-1], np.roll(ends[0], 5), atol=1e-9)


def test_errors_of_waves():
    with pytest.raises(ValueError, match="n_points=65 is odd"):
        datasets.kuramoto_sivashinsky(5, n_points=65)
    with pytest.raises(ValueError, match="length=0 must be"):
        datasets.kuramoto_sivashinsky(5, length=0)
    with pytest.raises(ValueError, match=r"grows without bounds with dt=0.25. Use a shorter dt"):
        datasets.kuramoto_sivashinsky(200, washout=0, initial_state=1e3 * np.sin(np.arange(64)))


# ---------------------------------------------------------------- maps


def test_maps_satisfy_their_equations():
    x, y = datasets.henon(500).T
    np.testing.assert_allclose(x[1:], 1 - 1.4 * x[:-1] ** 2 + y[:-1], atol=1e-14)
    np.testing.assert_allclose(y[1:], 0.3 * x[:-1], atol=1e-15)
    z = datasets.logistic_map(500, r=3.9).ravel()
    np.testing.assert_allclose(z[1:], 3.9 * z[:-1] * (1 - z[:-1]), atol=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_logistic_map_exponent_and_density(seed):
    x = datasets.logistic_map(20_000, random_state=seed).ravel()
    assert np.log(np.abs(4.0 - 8.0 * x)).mean() == pytest.approx(np.log(2.0), abs=0.01)
    # the arcsine law: quantiles sin^2(pi q / 2)
    q = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    np.testing.assert_allclose(np.quantile(x, q), np.sin(np.pi * q / 2) ** 2, atol=0.03)
    assert datasets.LYAPUNOV_TIME["logistic_map"] == pytest.approx(1 / np.log(2))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(20))
def test_henon_exponents(seed):
    x = datasets.henon(20_000, random_state=seed)[:, 0]
    v, total = np.array([1.0, 0.0]), 0.0
    for value in x[:10_000]:
        v = np.array([-2.8 * value * v[0] + v[1], 0.3 * v[0]])
        norm = np.linalg.norm(v)
        total += np.log(norm)
        v /= norm
    assert total / 10_000 == pytest.approx(1 / datasets.LYAPUNOV_TIME["henon"], abs=0.02)


def test_errors_of_maps():
    with pytest.raises(ValueError, match="henon escaped to infinity at step"):
        datasets.henon(100, initial_state=[5.0, 5.0])
    with pytest.raises(ValueError, match=r"r=4.1 must be finite and in \[0, 4\]"):
        datasets.logistic_map(5, r=4.1)
    with pytest.raises(ValueError, match=r"fixed point 0 at step 2\. Use another initial_state"):
        datasets.logistic_map(5, initial_state=0.5, washout=0)
    assert datasets.logistic_map(5, initial_state=0).sum() == 0


# ---------------------------------------------------------------- exponents of the flows


@pytest.mark.slow
def test_lyapunov_time_of_lorenz():
    h, steps = 0.01, 10_000
    z = np.tile(datasets.lorenz(1), (2, 1))
    z[1, 0] += 1e-7
    total = 0.0
    for step in range(steps):
        k1 = right_hand_side("lorenz", z)
        k2 = right_hand_side("lorenz", z + h / 2 * k1)
        k3 = right_hand_side("lorenz", z + h / 2 * k2)
        k4 = right_hand_side("lorenz", z + h * k3)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if step % 20 == 19:
            apart = np.linalg.norm(z[1] - z[0])
            total += np.log(apart / 1e-7)
            z[1] = z[0] + (z[1] - z[0]) * 1e-7 / apart
    exponent = total / (steps * h)
    assert exponent == pytest.approx(1 / datasets.LYAPUNOV_TIME["lorenz"], abs=0.09)


# ---------------------------------------------------------------- NARMA


@pytest.mark.parametrize("order", [1, 2, 5, 10, 15, 20, 30, 40])
def test_narma_satisfies_its_equation(order):
    X, y = datasets.narma(400, order=order, random_state=1)
    alpha, beta, gamma, delta = {20: (0.3, 0.05, 1.5, 0.01), 30: (0.2, 0.04, 1.5, 0.001)}.get(
        order, (0.3, min(0.05, 0.5 / order), 1.5, 0.1)
    )
    u = X[:, 0]
    assert 0.0 <= u.min() < u.max() <= 0.5
    for t in range(order, 400):  # y[t] is y(t+1)
        value = alpha * y[t - 1] + beta * y[t - 1] * y[t - order : t].sum()
        value += gamma * u[t - order + 1] * u[t] + delta
        assert y[t] == pytest.approx(np.tanh(value) if order == 20 else value, abs=1e-13)


def test_narma_starts_from_zero():
    _, y = datasets.narma(3, washout=0, random_state=0)
    assert y[0] == 0.1  # u(-9) = 0 and y = 0
    assert y[1] == pytest.approx(0.3 * 0.1 + 0.05 * 0.1 * 0.1 + 0.1)


@pytest.mark.parametrize("order", [10, 20, 30])
def test_narma_statistics(order):
    mean, std = {10: (0.389, 0.109), 20: (0.203, 0.093), 30: (0.157, 0.093)}[order]
    y = np.concatenate([datasets.narma(2000, order=order, random_state=s)[1] for s in range(5)])
    assert y.mean() == pytest.approx(mean, abs=0.01)
    assert y.std() == pytest.approx(std, abs=0.01)


def test_narma_diverges_by_name_and_saturated_never():
    with pytest.raises(ValueError, match=r"order=12 diverges at step .* saturated=True"):
        datasets.narma(4000, order=12, coefficients=[0.3, 0.05, 1.5, 0.1], random_state=0)
    _, y = datasets.narma(
        4000, order=12, coefficients=[0.3, 0.05, 1.5, 0.1], saturated=True, random_state=0
    )
    assert np.abs(y).max() < 1.0
    _, saturated = datasets.narma(100, order=10, saturated=True, random_state=0)
    _, plain = datasets.narma(100, order=10, random_state=0)
    assert np.abs(plain - saturated).max() > 1e-3
    with pytest.raises(ValueError, match="four finite numbers"):
        datasets.narma(5, coefficients=[1, 2, 3])
    with pytest.raises(ValueError, match="saturated='tanh' must be True, False or None"):
        datasets.narma(5, saturated="tanh")


# ---------------------------------------------------------------- signals


def test_multiple_superposed_oscillators():
    t = np.arange(50)
    expected = np.sin(0.2 * t) + np.sin(0.311 * t) + np.sin(0.42 * t)
    x = datasets.multiple_superposed_oscillators(50, n_oscillators=3).ravel()
    np.testing.assert_allclose(x, expected, atol=1e-13)
    x = datasets.multiple_superposed_oscillators(50, frequencies=[0.3], random_state=0).ravel()
    # a single sine satisfies x[t+1] = 2 cos(w) x[t] - x[t-1] at any phase
    np.testing.assert_allclose(x[2:], 2 * np.cos(0.3) * x[1:-1] - x[:-2], atol=1e-13)
    with pytest.raises(ValueError, match="n_oscillators=13 must be at most 12"):
        datasets.multiple_superposed_oscillators(5, n_oscillators=13)
    with pytest.raises(ValueError, match="frequencies"):
        datasets.multiple_superposed_oscillators(5, frequencies=[])


def test_random_phase_sines(global_random_seed):
    X = datasets.random_phase_sines(
        60, n_features=4, periods=[20, 10, 4], random_state=global_random_seed
    )
    np.testing.assert_allclose(X[20:40], X[:20], atol=1e-12)
    np.testing.assert_allclose(X[:20].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X[:20].var(axis=0), 1.0, atol=1e-12)
    power = np.abs(np.fft.rfft(X[:20], axis=0)) ** 2
    assert set(np.flatnonzero(power[:, 0] > 1e-9)) == {1, 2, 5}
    assert np.abs(X[:, 0] - X[:, 1]).max() > 0.1
    with pytest.raises(ValueError, match="must be positive"):
        datasets.random_phase_sines(5, periods=[3.0, 0.0])


def test_sine_square():
    X, y = datasets.sine_square(12 * 400 + 5, random_state=0)
    assert y.dtype.kind == "i"
    assert set(y) == {0, 1}
    assert abs(y.mean() - 0.5) < 0.08
    wave = np.sin(2 * np.pi * np.arange(12) / 12)
    for start in range(0, 12 * 400, 12):
        assert len(set(y[start : start + 12])) == 1
        shape = X[start : start + 12, 0]
        if y[start]:
            np.testing.assert_array_equal(shape, [1] * 6 + [-1] * 6)
        else:
            np.testing.assert_allclose(shape, wave)
    with pytest.raises(ValueError, match="period=3 must be at least 4"):
        datasets.sine_square(5, period=3)


def test_subsequence_detection():
    X, y = datasets.subsequence_detection(30_000, mean_spacing=25, length=6, random_state=1)
    assert X.shape == (30_000, 1)
    assert y.dtype.kind == "i"
    first = int(np.argmax(y))
    pattern = X[first - 6 : first, 0]
    windows = np.lib.stride_tricks.sliding_window_view(X[:, 0], 6)
    starts = np.flatnonzero((windows == pattern).all(axis=1))
    alarm = np.zeros(30_000, dtype=int)
    for start in starts:
        alarm[start + 6 : start + 12] = 1
    np.testing.assert_array_equal(y[:-6], alarm[:-6])  # the last pattern may be cut short
    spacings = np.diff(starts) - 6
    assert spacings.min() == 0
    assert abs(spacings.mean() - 25) < 3
    assert abs(spacings.std() - np.sqrt(25 * 26)) < 4  # geometric
    assert abs(X.mean()) < 0.2  # of the noise, and of 6 draws that return
    np.testing.assert_array_equal(
        X, datasets.subsequence_detection(30_000, mean_spacing=25, length=6, random_state=1)[0]
    )
    _, y = datasets.subsequence_detection(100, mean_spacing=0, random_state=0)
    np.testing.assert_array_equal(y, np.arange(100) >= 10)
    assert datasets.subsequence_detection(3, random_state=0)[0].shape == (3, 1)
    with pytest.raises(ValueError, match="mean_spacing=-1 must be finite"):
        datasets.subsequence_detection(5, mean_spacing=-1)
    with pytest.raises(ValueError, match="length=0 must be at least 1"):
        datasets.subsequence_detection(5, length=0)


def test_memory_capacity_input():
    X, y = datasets.memory_capacity_input(200, max_lag=7, random_state=0)
    for lag in range(1, 8):
        np.testing.assert_array_equal(y[lag:, lag - 1], X[:-lag, 0])
    assert (y[0] != 0).all()
    assert -0.5 <= X.min() < -0.45 < 0.45 < X.max() <= 0.5
    with pytest.raises(ValueError, match="high=-1"):
        datasets.memory_capacity_input(5, high=-1)


# ---------------------------------------------------------------- whole sequences


def test_gestures(global_random_seed):
    X, y = datasets.gestures(60, n_classes=7, random_state=global_random_seed)
    assert len(X) == len(y) == 60
    assert y.dtype.kind == "U"
    counts = np.unique(y, return_counts=True)[1]
    assert len(counts) == 7
    assert set(counts) == {8, 9}
    assert len({len(rows) for rows in X}) > 20
    for rows in X:
        assert rows.shape[1:] == (3,)
        assert rows.dtype == np.float64
        assert np.isfinite(rows).all()
    again = datasets.gestures(60, n_classes=7, random_state=global_random_seed)
    other = datasets.gestures(60, n_classes=7, random_state=global_random_seed + 100)
    np.testing.assert_array_equal(y, again[1])
    np.testing.assert_array_equal(np.concatenate(X), np.concatenate(again[0]))
    assert not np.array_equal(X[0], other[0][0])


def test_gestures_begin_and_end_at_rest(monkeypatch):
    monkeypatch.setattr("reservoir.datasets._gestures._TURN", 0.0)
    for rows in datasets.gestures(80, noise=0.0, random_state=0)[0]:
        # what is felt at rest is gravity, and accelerations between rest and rest add up to 0
        np.testing.assert_allclose(rows[[0, -1]], [rows.mean(axis=0)] * 2, atol=1e-9)
        assert np.linalg.norm(rows[0]) == pytest.approx(9.81)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("pair", [("left", "right"), ("push", "pull"), ("circle", "circle back")])
def test_gestures_need_the_order_of_time(pair):
    X, y = datasets.gestures(800, random_state=0)
    chosen = [i for i, label in enumerate(y) if label in pair]
    features = np.array([np.r_[X[i].mean(axis=0), X[i].std(axis=0)] for i in chosen])
    pooled = make_pipeline(StandardScaler(), LogisticRegression())
    assert cross_val_score(pooled, features, y[chosen]).mean() < 0.65
    # a clock is enough: the mean of each eighth of a sequence
    eighths = [[part.mean(axis=0) for part in np.array_split(X[i], 8)] for i in chosen]
    clocked = make_pipeline(StandardScaler(), LogisticRegression())
    assert cross_val_score(clocked, np.reshape(eighths, (len(chosen), -1)), y[chosen]).mean() > 0.8


def test_errors_of_gestures():
    for word in "random_state", "References":
        assert word in datasets.gestures.__doc__
    with pytest.raises(ValueError, match="n_sequences=0 must be at least 1"):
        datasets.gestures(0)
    with pytest.raises(ValueError, match="n_classes=9 must be at most 8"):
        datasets.gestures(5, n_classes=9)
    with pytest.raises(ValueError, match="n_classes=1 must be at least 2"):
        datasets.gestures(5, n_classes=1)
    with pytest.raises(ValueError, match="noise=-1"):
        datasets.gestures(5, noise=-1)


# ---------------------------------------------------------------- real series


@pytest.mark.usefixtures("statsmodels")
def test_real_series_equal_statsmodels():
    from statsmodels import datasets as source

    sunspots = source.sunspots.load_pandas().data
    np.testing.assert_array_equal(
        datasets.load_sunspots().ravel(), sunspots["SUNACTIVITY"].to_numpy()
    )
    co2 = source.co2.load_pandas().data
    np.testing.assert_array_equal(datasets.load_co2(missing="nan"), co2.to_numpy())
    frame = datasets.load_co2(missing="nan", as_frame=True)
    assert (frame.index == co2.index).all()
    el_nino = source.elnino.load_pandas().data.to_numpy()[:, 1:]
    np.testing.assert_allclose(datasets.load_el_nino().ravel(), el_nino.ravel())


def test_co2_missing():
    raw, filled = datasets.load_co2(missing="nan"), datasets.load_co2()
    known = ~np.isnan(raw[:, 0])
    assert (~known).sum() == 59
    np.testing.assert_array_equal(filled[known], raw[known])
    np.testing.assert_array_equal(datasets.load_co2(missing="drop"), raw[known])
    assert filled[6, 0] == pytest.approx((filled[5, 0] + filled[7, 0]) / 2)
    assert np.isfinite(filled).all()
    with pytest.raises(ValueError, match=r"missing='intrepolate'.*'interpolate'"):
        datasets.load_co2(missing="intrepolate")


@pytest.mark.parametrize("name", ["load_sunspots", "load_co2", "load_el_nino"])
def test_frames(name):
    pytest.importorskip("pandas")
    load = getattr(datasets, name)
    frame, X = load(as_frame=True), load()
    np.testing.assert_array_equal(frame.to_numpy(), X)
    years = {"load_sunspots": (1700, 2008), "load_co2": (1958, 2001), "load_el_nino": (1950, 2010)}
    assert (frame.index[0].year, frame.index[-1].year) == years[name]
    assert frame.index.freq is not None
    assert "Public domain" in load.__doc__


def test_frame_of_dropped_weeks_keeps_the_dates():
    pytest.importorskip("pandas")
    frame = datasets.load_co2(missing="drop", as_frame=True)
    assert len(frame) == 2225
    assert str(frame.index[6].date()) == "1958-05-17"
