"""Limit cycles, attractors and sweeps: theory, counterexamples, errors."""

import inspect

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from reservoir import metrics, stability
from reservoir.activations import Activation
from reservoir.dynamics import Reservoir, engines, run, step, step_jacobian
from reservoir.estimators import ESNRegressor
from reservoir.scaling import scale_to_norm, scale_to_spectral_radius
from reservoir.stability import (
    Attractors,
    LimitCycleError,
    certify,
    certify_cycle,
    critical_bias,
    echo_state_index,
    find_limit_cycle,
    lyapunov_exponents,
    sample_attractors,
    sweep,
)
from reservoir.topologies import random_sparse

pytestmark = pytest.mark.both_engines


def network(n_units, seed, *, radius=0.9, leak=1.0, n_features=1, bias=0.2, **options):
    rng = np.random.default_rng(seed)
    W = scale_to_spectral_radius(
        random_sparse(n_units, in_degree=min(10, n_units), random_state=seed), radius
    )
    W_in = rng.uniform(-1, 1, (n_units, n_features))
    return Reservoir(W, W_in, rng.uniform(-bias, bias, n_units), leak_rate=leak, **options)


def contracting(n_units, seed, **options):
    """A network whose largest singular value is .9: every drive has one response."""
    reservoir = network(n_units, seed, **options)
    W = scale_to_norm(reservoir.W, 0.9)
    return Reservoir(W, reservoir.W_in, reservoir.bias, leak_rate=reservoir.leak_rate)


def wave(period, n_features=1, size=1.0):
    phases = 2 * np.pi * np.arange(period)[:, None] / period + np.arange(n_features)
    return size * np.sin(phases)


UNIT = {"W_in": [[1.0]]}
PAIR = Reservoir(1.5 * np.ones((2, 2)), np.ones((2, 1)), [-0.7199, -0.7199])
FLIP = Reservoir([[-3.78]], [[1.0]], [2.0])
PITCHFORK = Reservoir([[3.78]], [[1.0]], [0.0])


# --- find_limit_cycle --------------------------------------------------------------------------


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_contracting_network_has_one_cycle(seed, leak):
    reservoir, X = contracting(20, seed, leak=leak), wave(7)
    cycle = find_limit_cycle(reservoir, X)
    assert cycle.states.shape == (7, 20)
    assert cycle.residual <= 1e-14
    assert cycle.stable
    assert np.abs(cycle.multipliers).max() <= (1 - leak * 0.1) ** 7 + 1e-12
    # the response from elsewhere comes to the same cycle, in step with the drive
    start = np.random.default_rng(seed).uniform(-1, 1, 20)
    states = run(reservoir, np.tile(X, (200, 1)), initial_state=start)
    np.testing.assert_allclose(states[-7:], cycle.states, atol=1e-12)


def test_rows_are_states_after_the_steps_and_the_last_is_the_fixed_point():
    reservoir, X = network(12, 1), wave(5)
    cycle = find_limit_cycle(reservoir, X)
    x = cycle.states[-1]
    for t in range(5):
        x = step(reservoir, x, X[t])
        np.testing.assert_allclose(x, cycle.states[t], atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", [1.0, 0.4])
def test_multipliers_are_eigenvalues_of_the_product_of_jacobians(seed, leak):
    reservoir, X = network(15, seed, radius=1.3, leak=leak), wave(6)
    cycle = find_limit_cycle(reservoir, X, random_state=seed)
    product, x = np.eye(15), cycle.states[-1]
    for u, after in zip(X, cycle.states, strict=True):
        product = step_jacobian(reservoir, x, u) @ product
        x = after
    expected = np.linalg.eigvals(product)
    moduli = np.abs(cycle.multipliers)
    np.testing.assert_allclose(moduli, np.sort(np.abs(expected))[::-1], atol=1e-10)
    assert cycle.multipliers.dtype == complex
    assert cycle.stable == (moduli[0] < 1)


def test_two_fixed_points_of_the_counterexample():
    high = find_limit_cycle(PAIR, [[0.0]], initial_state=[1.0, 1.0])
    low = find_limit_cycle(PAIR, [[0.0]], initial_state=[-1.0, -1.0])
    np.testing.assert_allclose(high.states, [[0.97615, 0.97615]], atol=5e-6)
    np.testing.assert_allclose(low.states, [[-0.99882, -0.99882]], atol=5e-6)
    assert high.stable
    assert low.stable


def test_subharmonic_cycle_of_a_negative_gain():
    cycle = find_limit_cycle(FLIP, [[0.0]], multiple=2)
    assert cycle.multiple == 2
    np.testing.assert_allclose(np.sort(cycle.states.ravel()), [-0.94468, 0.99997], atol=5e-6)
    assert cycle.stable
    assert cycle.residual <= 1e-15
    fixed = find_limit_cycle(FLIP, [[0.0]])
    assert fixed.multiple == 1
    assert not fixed.stable
    assert fixed.multipliers[0].real < -1


def test_a_cycle_that_closes_before_is_shortened():
    for multiple in (2, 3, 6):
        cycle = find_limit_cycle(contracting(8, 0), wave(4), multiple=multiple)
        assert cycle.multiple == 1
        assert cycle.states.shape == (4, 8)
    assert find_limit_cycle(FLIP, [[0.0]], multiple=6).multiple == 2


@pytest.mark.parametrize("start", [0.05, -0.1, 0.15])
def test_unstable_middle_of_the_pitchfork(start):
    middle = find_limit_cycle(PITCHFORK, [[0.0]], initial_state=[start], n_transient=0)
    assert abs(middle.states[0, 0]) <= 1e-14
    assert not middle.stable
    np.testing.assert_allclose(middle.multipliers, [3.78])
    aside = find_limit_cycle(PITCHFORK, [[0.0]], initial_state=[start])
    assert aside.stable
    assert np.sign(aside.states[0, 0]) == np.sign(start)


def test_unstable_cycle_of_the_drive_between_two_attractors():
    unit = Reservoir([[3.78]], [[1.0]], [-2.0075])
    X = [[0.0], [2.0]]
    found = sample_attractors(unit, X, random_state=0)
    ends = sorted(cycle[-1, 0] for cycle in found.states)
    between = [
        find_limit_cycle(unit, X, initial_state=[x], n_transient=0)
        for x in np.linspace(ends[0], ends[1], 41)[1:-1]
    ]
    unstable = [cycle for cycle in between if not cycle.stable]
    assert unstable
    for cycle in unstable:
        assert ends[0] < cycle.states[-1, 0] < ends[1]
        assert cycle.residual <= 1e-13


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [0.9, 1.2])
def test_large_sparse_network(seed, radius):
    reservoir, X = network(500, seed, radius=radius), wave(50)
    cycle = find_limit_cycle(reservoir, X, random_state=seed)
    assert cycle.residual <= 1e-13
    assert len(cycle.multipliers) == 500
    again = run(reservoir, X, initial_state=cycle.states[-1])
    np.testing.assert_allclose(again, cycle.states, atol=1e-11)


@pytest.mark.parametrize("n_units", [60, 250])
def test_continuation_finds_the_cycle_from_weights_of_zero(n_units):
    from reservoir.stability.measures._cycle_search import continued
    from reservoir.stability.measures._trajectories import read_drive_series

    drive = read_drive_series(network(n_units, 0, radius=1.3), "inputs", wave(10), None)
    point = continued(drive)
    assert np.abs(drive.states(point)[-1] - point).max() <= 1e-13


def test_leading_multipliers_above_the_dense_limit(monkeypatch):
    from reservoir.stability.measures import _multipliers

    reservoir, X = network(300, 2, radius=1.4), wave(10)
    every = find_limit_cycle(reservoir, X)
    monkeypatch.setattr(_multipliers, "DENSE_UNITS", 100)
    some = find_limit_cycle(reservoir, X)
    assert len(some.multipliers) == 10
    np.testing.assert_allclose(np.abs(some.multipliers), np.abs(every.multipliers[:10]), rtol=1e-6)


def test_leading_multipliers_of_a_product_that_vanishes(monkeypatch):
    from reservoir.stability.measures import _multipliers

    monkeypatch.setattr(_multipliers, "DENSE_UNITS", 10)
    line = Reservoir(np.eye(40, k=-1), np.eye(40, 1), np.zeros(40))
    cycle = find_limit_cycle(line, wave(50))
    np.testing.assert_allclose(cycle.multipliers, 0.0, atol=1e-12)
    assert cycle.stable


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_units", [30, 250])
def test_newton_finds_the_unstable_cycle_of_a_linear_network(n_units):
    # x = M x + m has one solution, repelling here; the transient must be left out
    rng = np.random.default_rng(3)
    W = scale_to_spectral_radius(rng.normal(size=(n_units, n_units)), 1.2)
    reservoir = Reservoir(
        W, rng.normal(size=(n_units, 1)), np.zeros(n_units), activation="identity"
    )
    X = wave(4)
    cycle = find_limit_cycle(reservoir, X, n_transient=0)
    forced = sum(np.linalg.matrix_power(W, 3 - t) @ reservoir.W_in @ X[t] for t in range(4))
    fixed = np.linalg.solve(np.eye(n_units) - np.linalg.matrix_power(W, 4), forced)
    np.testing.assert_allclose(cycle.states[-1], fixed, atol=1e-9)
    np.testing.assert_allclose(abs(cycle.multipliers[0]), 1.2**4, rtol=1e-9)
    assert not cycle.stable


def test_float32_is_computed_in_float64():
    single = network(30, 4).astype("float32")
    cycle = find_limit_cycle(single, wave(6))
    assert cycle.states.dtype == np.float64
    assert cycle.residual <= 1e-14
    double = find_limit_cycle(single.astype("float64"), wave(6))
    np.testing.assert_array_equal(cycle.states, double.states)


def test_feedback_and_dense_weights():
    rng = np.random.default_rng(5)
    base = contracting(10, 5)
    W_fb = rng.uniform(-1, 1, (10, 2))
    X, F = wave(4), wave(4, 2)
    for W in (base.W, base.W.toarray()):
        reservoir = Reservoir(W, base.W_in, base.bias, W_fb=W_fb)
        cycle = find_limit_cycle(reservoir, X, feedback=F)
        wide = Reservoir(W, np.hstack([base.W_in, W_fb]), base.bias)
        same = find_limit_cycle(wide, np.hstack([X, F]))
        np.testing.assert_allclose(cycle.states, same.states, atol=1e-14)
    with pytest.raises(ValueError, match="pass feedback"):
        find_limit_cycle(reservoir, X)


def test_fitted_estimator():
    X = np.random.default_rng(0).normal(size=(100, 1))
    model = ESNRegressor(20, random_state=0).fit(X, X[:, 0])
    cycle = find_limit_cycle(model, wave(5))
    np.testing.assert_array_equal(cycle.states, find_limit_cycle(model.reservoir_, wave(5)).states)


def test_no_cycle_is_an_error_of_its_own():
    # x -> x + 1 has no fixed point
    drift = Reservoir([[1.0]], [[1.0]], [1.0], activation="identity")
    with pytest.raises(LimitCycleError, match=r"least residual was 1 from 6 .*n_transient"):
        find_limit_cycle(drift, [[0.0]], random_state=0)
    doubling = Reservoir([[1e3]], [[1.0]], [0.0], activation="identity")
    with pytest.raises(LimitCycleError, match="initial_state"):
        find_limit_cycle(doubling, np.zeros((50, 1)), initial_state=[1.0])
    assert issubclass(LimitCycleError, ValueError)


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"inputs": [[np.nan]]}, ValueError, "inputs contains NaN"),
        ({"inputs": [0.0]}, ValueError, "inputs must have shape"),
        ({"inputs": [[0.0, 1.0]]}, ValueError, "inputs must have shape"),
        ({"inputs": np.empty((0, 1))}, ValueError, "inputs has no rows"),
        ({"multiple": 0}, ValueError, "multiple=0 must be at least 1"),
        ({"multiple": 1.5}, TypeError, "multiple must be an integer"),
        ({"n_transient": -1}, ValueError, "n_transient=-1"),
        ({"initial_state": [1.0, 2.0]}, ValueError, "initial_state must have shape"),
        ({"initial_state": [np.inf]}, ValueError, "initial_state contains NaN"),
        ({"feedback": [[1.0]]}, ValueError, "no feedback weights"),
        ({"reservoir": np.eye(2)}, TypeError, "reservoir must be"),
        ({"random_state": "x"}, TypeError, "random_state"),
    ],
)
def test_errors_of_find_limit_cycle(options, error, match):
    given = {"reservoir": PITCHFORK, "inputs": [[0.0]]} | options
    with pytest.raises(error, match=match):
        find_limit_cycle(given.pop("reservoir"), given.pop("inputs"), **given)


# --- sample_attractors -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_contracting_network_has_one_attractor(seed):
    found = sample_attractors(contracting(15, seed), wave(5), random_state=seed)
    assert (found.count, found.n_unsettled, found.n_responses) == (1, 0, 1)
    assert found.basins.tolist() == [1.0]
    cycle = find_limit_cycle(contracting(15, seed), wave(5))
    np.testing.assert_allclose(found.states[0], cycle.states, atol=1e-12)
    assert found.moduli[0] == pytest.approx(abs(cycle.multipliers[0]), abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_attractors_of_the_counterexamples(seed):
    found = sample_attractors(PAIR, [[0.0]], random_state=seed)
    assert (found.count, found.n_unsettled) == (2, 0)
    ends = sorted(cycle[0, 0] for cycle in found.states)
    np.testing.assert_allclose(ends, [-0.99882, 0.97615], atol=5e-6)
    # the printed condition b < min(drive) + k holds here, and two cycles coexist all the same
    unit = Reservoir([[3.78]], [[1.0]], [-2.0075])
    assert unit.bias[0] < 0.0 - critical_bias(3.78)
    found = sample_attractors(unit, [[0.0], [2.0]], random_state=seed)
    assert (found.count, found.n_unsettled) == (2, 0)
    constant = sample_attractors(unit, [[2.0]], random_state=seed)
    ends = sorted(cycle[0, 0] for cycle in constant.states)
    np.testing.assert_allclose(ends, [-0.99897, 0.99893], atol=5e-6)


def test_a_subharmonic_cycle_is_one_attractor_with_two_responses():
    found = sample_attractors(FLIP, [[0.0]], random_state=0)
    assert (found.count, found.n_responses, found.multiples.tolist()) == (1, 2, [2])
    # phases differ between the trajectories, labels do not
    assert set(found.labels) == {0}
    assert len({round(x, 3) for x in found.final_states[:, 0]}) == 2
    # two independent ones: in step or out of step are two attractors, four responses
    two = Reservoir(-3.78 * np.eye(2), np.ones((2, 1)), [2.0, 2.0])
    found = sample_attractors(two, [[0.0]], random_state=0)
    assert (found.count, found.n_responses) == (2, 4)
    with pytest.warns(RuntimeWarning, match="None of 50 trajectories settled within 200 rows"):
        alone = sample_attractors(FLIP, [[0.0]], max_multiple=1, random_state=0)
    assert (alone.count, alone.n_unsettled) == (0, 50)
    assert set(alone.labels) == {-1}


@pytest.mark.parametrize("n_units", [1, 2, 3, 4])
def test_count_of_independent_bistable_units(n_units):
    reservoir = Reservoir(2 * np.eye(n_units), np.ones((n_units, 1)), np.zeros(n_units))
    found = sample_attractors(reservoir, [[0.0]], n_initial_states=200, random_state=0)
    assert found.count == 2**n_units
    assert found.n_unsettled == 0  # zeros rest on an unstable fixed point, and are nudged
    assert found.basins.sum() == pytest.approx(1.0)
    assert (np.diff(found.basins) <= 0).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("sign", [1, -1])
def test_slow_convergence_is_not_counted_twice(gap, sign):
    # the multiplier is sign * (1 - gap), so that a trajectory may be far off and hardly move
    unit = Reservoir([[sign * (1 - gap)]], [[1.0]], [0.0])
    found = sample_attractors(unit, [[0.0]], n_periods=60, tol=1e-4, random_state=0)
    assert found.count <= 1
    many = sample_attractors(unit, [[0.0]], n_periods=30_000, tol=1e-4, random_state=0)
    assert (many.count, many.n_unsettled, many.n_responses) == (1, 0, 1)
    np.testing.assert_allclose(many.states[0], 0.0, atol=1e-12)


@pytest.mark.parametrize("multiplier", [0.949, -0.99, 0.999])
def test_slow_convergence_is_waited_for(multiplier, global_random_seed):
    # as linear, and far from it: a fixed point under a constant drive, of a multiplier near 1
    linear = Reservoir([[multiplier]], [[1.0]], [0.0], activation="identity")
    curved = Reservoir([[multiplier]], [[1.0]], [0.0])
    for reservoir, row in ((linear, 0.2), (curved, 0.0)):
        found = sample_attractors(
            reservoir, [[row]], n_initial_states=4, random_state=global_random_seed
        )
        assert (found.count, found.n_unsettled) == (1, 0)
        assert found.moduli[0] == pytest.approx(abs(multiplier), abs=1e-6)
        assert find_limit_cycle(reservoir, [[row]]).states == pytest.approx(found.states[0])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("excess", [1e-1, 1e-2, 1e-3])
def test_close_attractors_after_the_pitchfork_are_two(excess):
    unit = Reservoir([[1 + excess]], [[1.0]], [0.0])
    found = sample_attractors(unit, [[0.0]], n_periods=30_000, random_state=0)
    assert (found.count, found.n_unsettled) == (2, 0)
    assert found.moduli.max() < 1


def test_neutral_and_weakly_attracting_points_are_not_counted():
    rotation = Reservoir(
        [[0.0, -1.0], [1.0, 0.0]], np.ones((2, 1)), np.zeros(2), activation="identity"
    )
    with pytest.warns(RuntimeWarning, match="chaotic, quasi-periodic or neutral"):
        found = sample_attractors(rotation, [[0.0]], random_state=0)
    assert (found.count, found.n_unsettled) == (0, 50)
    critical = Reservoir([[1.0]], [[1.0]], [0.0])
    with pytest.warns(RuntimeWarning, match="or converge too slowly"):
        assert sample_attractors(critical, [[0.0]], n_initial_states=4).count == 0


def test_chaos_is_unsettled():
    reservoir = network(100, 0, radius=3.0, bias=0.0)
    with pytest.warns(RuntimeWarning, match=r"None of 10 .* within 1000 rows"):
        found = sample_attractors(reservoir, wave(5, size=0.1), n_initial_states=10, random_state=0)
    assert found.n_unsettled == 10
    assert found.count == 0
    assert found.basins.shape == found.multiples.shape == (0,)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_initial_states_fill_the_range(activation):
    unit = network(5, 0, activation=activation)
    found = sample_attractors(unit, wave(3), n_initial_states=60, random_state=1)
    low, high = (0.0, 1.0) if activation == "logistic" else (-1.0, 1.0)
    starts = found.initial_states
    assert starts.min() == low
    assert starts.max() == high
    corners = np.isin(starts, (low, high)).all(axis=1)
    assert 10 <= corners.sum() <= 30
    again = sample_attractors(unit, wave(3), n_initial_states=60, random_state=1)
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(starts, again.initial_states)


def test_bounded_custom_activation():
    sine = Activation("sine", np.sin, np.cos, 1.0, None, True)
    unit = Reservoir([[0.5]], [[1.0]], [0.1], activation=sine)
    assert sample_attractors(unit, wave(3), random_state=0).count == 1


def test_certified_networks_have_one_attractor():
    for seed in range(20):
        reservoir = network(6, seed, radius=1.2, bias=4.0)
        if certify(reservoir, -0.5, 0.5).holds:
            X = np.random.default_rng(seed).uniform(-1, 1, (3, 1))
            X *= 0.5 / np.abs(reservoir.W_in).max()
            found = sample_attractors(reservoir, X, random_state=seed)
            assert (found.count, found.n_unsettled, found.n_responses) == (1, 0, 1)


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"inputs": [[np.inf]]}, ValueError, "inputs contains NaN or infinity"),
        ({"n_initial_states": 0}, ValueError, "n_initial_states=0"),
        ({"n_periods": 8}, ValueError, "n_periods=8 must exceed max_multiple=8"),
        ({"max_multiple": 0}, ValueError, "max_multiple=0"),
        ({"tol": 0.0}, ValueError, "tol=0"),
        ({"tol": "small"}, TypeError, "tol must be a number"),
        ({"feedback": [[1.0]]}, ValueError, "no feedback weights"),
        ({"reservoir": None}, TypeError, "reservoir must be"),
    ],
)
def test_errors_of_sample_attractors(options, error, match):
    given = {"reservoir": PITCHFORK, "inputs": [[0.0]]} | options
    with pytest.raises(error, match=match):
        sample_attractors(given.pop("reservoir"), given.pop("inputs"), **given)


def test_diverging_states_raise():
    unit = Reservoir([[10.0]], [[1.0]], [0.0], activation="identity")
    with pytest.raises(ValueError, match="not finite"):
        sample_attractors(unit, [[0.0]], n_periods=1000, random_state=0)


# --- sweep -------------------------------------------------------------------------------------


def test_sweep_of_the_pitchfork():
    gains = [0.5, 0.9, 1.5, 3.78]
    biases = [0.0, 1.0, 2.5]
    unit = Reservoir([[-1.0]], [[1.0]], [1.0])
    found = sweep(
        unit.__class__([[1.0]], [[1.0]], [1.0]),
        [[0.0]],
        {"spectral_radius": gains, "bias": biases},
        random_state=0,
    )
    assert found.counts.shape == found.exponents.shape == found.certified.shape == (4, 3)
    for i, gain in enumerate(gains):
        for j, bias in enumerate(biases):
            # theorem T1: two fixed points within the critical bias, one beyond
            assert found.counts[i, j] == (2 if bias < critical_bias(gain) else 1)
            assert isinstance(found.attractors[i, j], Attractors)
            slopes = [gain * (1 - x[0, 0] ** 2) for x in found.attractors[i, j].states]
            np.testing.assert_allclose(found.exponents[i, j], np.log(max(slopes)), atol=1e-9)
    assert (found.counts[found.certified] == 1).all()
    assert found.certified[:2].all()
    assert not found.certified[2:, 0].any()
    assert list(found.parameters) == ["spectral_radius", "bias"]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_sweep_does_not_depend_on_n_jobs(backend, monkeypatch):
    # the rule that other processes go by, whatever the suite is told to put on kernels
    monkeypatch.setattr(engines, "_WORTH_LOADING", 0.01)
    reservoir = network(20, 0)
    grid = {"spectral_radius": [0.5, 2.0], "leak_rate": [0.5, 1.0], "input_scaling": [0.1]}
    one = sweep(reservoir, wave(4), grid, n_initial_states=6, random_state=3)
    with joblib.parallel_config(backend):
        two = sweep(reservoir, wave(4), grid, n_initial_states=6, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one.exponents, two.exponents)
    np.testing.assert_array_equal(one.counts, two.counts)
    np.testing.assert_array_equal(one.certified, two.certified)
    for a, b in zip(one.attractors.flat, two.attractors.flat, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.initial_states, one.attractors.flat[0].initial_states)


def test_sweep_scales_what_it_says():
    reservoir = network(10, 1, leak=0.7)
    values = {"spectral_radius": 0.4, "bias": 3.0, "input_scaling": 0.5, "leak_rate": 0.2}
    found = sweep(
        reservoir, wave(4), {k: [v] for k, v in values.items()}, n_initial_states=3, random_state=0
    )
    made = Reservoir(
        scale_to_spectral_radius(reservoir.W, 0.4),
        0.5 * reservoir.W_in,
        3.0 * reservoir.bias,
        leak_rate=0.2,
    )
    expected = find_limit_cycle(made, wave(4)).states
    np.testing.assert_allclose(found.attractors[0, 0, 0, 0].states[0], expected, atol=1e-12)


def gain_family(gain):
    return Reservoir([[gain]], [[1.0]], [0.0])


def test_sweep_over_a_family_and_kinds_of_certificates():
    found = sweep(gain_family, [[0.0]], {"gain": [-3.0, 0.5, 3.0]}, random_state=0)
    assert found.counts.tolist() == [1, 1, 2]
    assert found.certified.tolist() == [False, True, False]
    assert found.attractors[0].multiples.tolist() == [2]
    # the range of the drive covers the origin, the cycle does not come near it
    unit = Reservoir([[2.0]], [[1.0]], [0.0])
    X = [[4.0], [-4.0]]
    kinds = {
        kind: sweep(unit, X, {"bias": [1.0]}, certificate=kind, random_state=0).certified[0]
        for kind in ("range", "cycle", None)
    }
    assert kinds == {"range": False, "cycle": True, None: False}
    relu = Reservoir([[0.5]], [[1.0]], [0.0], activation="relu")
    assert sweep(relu, X, {"bias": [1.0]}, random_state=0).certified[0]
    in_a_box = sweep(relu, X, {"bias": [1.0]}, certificate="cycle", random_state=0)
    assert not in_a_box.certified[0]


def test_sweep_follows_chaos_and_feedback():
    rng = np.random.default_rng(0)
    base = network(100, 0, bias=0.0)
    reservoir = Reservoir(base.W, base.W_in, base.bias, W_fb=rng.uniform(-0.1, 0.1, (100, 1)))
    found = sweep(
        reservoir,
        wave(5, size=0.1),
        {"spectral_radius": [0.5, 3.0]},
        feedback=wave(5, size=0.1),
        n_initial_states=5,
        random_state=0,
    )
    assert found.exponents[0] < 0 < found.exponents[1]
    assert found.counts.tolist() == [1, 0]
    assert found.certified.tolist()[1] is False


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"parameters": {}}, ValueError, "non-empty dict"),
        ({"parameters": [1.0]}, ValueError, "non-empty dict"),
        ({"parameters": {"spectral_radios": [1.0]}}, ValueError, "Did you mean 'spectral_radius'"),
        ({"parameters": {"bias": []}}, ValueError, "non-empty list"),
        ({"parameters": {"bias": 1.0}}, ValueError, "non-empty list"),
        ({"parameters": {"bias": ["a"]}}, ValueError, "finite numbers"),
        ({"parameters": {"bias": [np.nan]}}, ValueError, "finite numbers"),
        ({"parameters": {"spectral_radius": [-1.0]}}, ValueError, "spectral_radius=-1"),
        ({"parameters": {"leak_rate": [1.5]}}, ValueError, r"leak_rate=1.5 must be in \(0, 1\]"),
        ({"certificate": "both"}, ValueError, "certificate='both' is not known"),
        ({"n_initial_states": 0}, ValueError, "n_initial_states=0"),
        ({"reservoir": Reservoir([[0.0]], [[1.0]], [0.0])}, ValueError, "spectral radius 0"),
        ({"reservoir": 3.0}, TypeError, "reservoir must be"),
        ({"reservoir": lambda spectral_radius: 3.0}, TypeError, "reservoir must be"),
    ],
)
def test_errors_of_sweep(options, error, match):
    given = {
        "reservoir": PITCHFORK,
        "inputs": [[0.0]],
        "parameters": {"spectral_radius": [0.5]},
    } | options
    with pytest.raises(error, match=match):
        sweep(given.pop("reservoir"), given.pop("inputs"), given.pop("parameters"), **given)


def test_sparse_and_dense_agree():
    reservoir = network(25, 7)
    dense = Reservoir(reservoir.W.toarray(), reservoir.W_in, reservoir.bias)
    assert sp.issparse(reservoir.W)
    a, b = find_limit_cycle(reservoir, wave(6)), find_limit_cycle(dense, wave(6))
    np.testing.assert_allclose(a.states, b.states, atol=1e-13)


# --- an estimator is its open reservoir ----------------------------------------------------------

SINE = np.sin(2 * np.pi * np.arange(101) / 25)[:, None]


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    "function",
    [
        find_limit_cycle,
        sample_attractors,
        certify_cycle,
        lambda model, row: echo_state_index(model, np.repeat(row, 900, axis=0)),
        lambda model, row: lyapunov_exponents(model, np.repeat(row, 20, axis=0)),
        lambda model, row: sweep(model, row, {"spectral_radius": [0.5]}),
    ],
)
def test_a_constant_drive_of_a_network_that_forecasts_is_told(function):
    made = ESNRegressor(15, spectral_radius=0.5, random_state=0)
    message = "result is of the open reservoir, not of its closed loop, which `forecast` runs"
    model = made.fit(SINE[:-1], SINE[1:])
    with pytest.warns(UserWarning, match=message) as told:
        function(model, np.zeros((1, 1)))
    assert len(told) == 1
    function(model.reservoir_, np.zeros((1, 1)))
    # targets in other units; another target than the next input
    with pytest.warns(UserWarning, match=message):
        function(made.fit(SINE[:-1], 10 * SINE[1:] + 273), np.zeros((1, 1)))
    function(made.fit(SINE, SINE**2), np.zeros((1, 1)))


def test_an_input_that_changes_is_a_drive():
    model = ESNRegressor(15, spectral_radius=0.5, random_state=0).fit(SINE[:-1], SINE[1:])
    assert find_limit_cycle(model, SINE[:25]).stable
    assert lyapunov_exponents(model, SINE)[0] < 0


@pytest.mark.parametrize("module", [metrics, stability])
def test_what_takes_an_estimator_says_in_its_first_line_what_it_examines(module):
    for name in module.__all__:
        text = getattr(module, name).__doc__
        if inspect.isfunction(getattr(module, name)) and "or fitted estimator" in text:
            assert "reservoir" in text.split("\n")[0], name
