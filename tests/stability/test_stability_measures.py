"""Lyapunov exponents, echo-state index, consistency and transient length."""

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import naive
from reservoir.dynamics import Reservoir, run, step_jacobian
from reservoir.estimators import ESNRegressor
from reservoir.scaling import scale_to_norm, scale_to_spectral_radius
from reservoir.stability import (
    certify_cycle,
    consistency,
    echo_state_index,
    find_limit_cycle,
    lyapunov_exponents,
    sample_attractors,
    transient_length,
)
from reservoir.topologies import random_sparse

pytestmark = pytest.mark.both_engines


def network(n_units, seed, *, radius=0.9, leak=1.0, activation="tanh", bias=0.2, W_fb=None):
    rng = np.random.default_rng(seed)
    W = random_sparse(n_units, in_degree=min(10, n_units), random_state=seed)
    return Reservoir(
        scale_to_spectral_radius(W, radius),
        rng.uniform(-1, 1, (n_units, 1)),
        rng.uniform(-bias, bias, n_units),
        leak_rate=leak,
        activation=activation,
        W_fb=W_fb,
    )


def contracting(n_units, seed, norm=0.8):
    base = network(n_units, seed)
    return Reservoir(scale_to_norm(base.W, norm), base.W_in, base.bias)


def drive(n_samples, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n_samples, 1))


def slow_exponents(reservoir, X, k, *, start=None, skip=0, seed=0):
    """Dense Jacobians, QR at every step, logarithms added up."""
    x = np.zeros(reservoir.n_units) if start is None else start
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((reservoir.n_units, k)))[0]
    sums = np.zeros(k)
    for t, u in enumerate(X):
        Q, R = np.linalg.qr(step_jacobian(reservoir, x, u) @ Q)
        x = run(reservoir, u[None], initial_state=x)[0]
        if t >= skip:
            sums += np.log(np.abs(np.diag(R)))
    return np.sort(sums / (len(X) - skip))[::-1]


# --- lyapunov_exponents ------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", [1.0, 0.3])
@pytest.mark.parametrize("storage", [sp.csr_array, np.asarray])
def test_exponents_of_a_linear_network(seed, leak, storage):
    rng = np.random.default_rng(seed)
    # eigenvalues apart in modulus, of a matrix that is not normal
    values = np.array([1.1, -0.9, 0.7, 0.5, -0.3])
    basis = rng.normal(size=(5, 5))
    W = basis @ np.diag(values) @ np.linalg.inv(basis)
    linear = Reservoir(
        storage(W), np.ones((5, 1)), np.zeros(5), leak_rate=leak, activation="identity"
    )
    found = lyapunov_exponents(linear, drive(2000), 5, random_state=seed, washout=500)
    moduli = np.sort(np.abs(1 - leak + leak * values))[::-1]
    np.testing.assert_allclose(found, np.log(moduli), atol=1e-3)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 3, 12])
@pytest.mark.parametrize("leak", [1.0, 0.4, "per unit"])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "softplus"])
def test_exponents_equal_the_naive_version(seed, k, leak, activation):
    leaks = np.random.default_rng(seed).uniform(0.2, 1.0, 12) if leak == "per unit" else leak
    reservoir = network(12, seed, leak=leaks, activation=activation)
    X, start = drive(150), np.linspace(-0.5, 0.5, 12)
    found = lyapunov_exponents(reservoir, X, k, washout=20, initial_state=start, random_state=9)
    expected = slow_exponents(reservoir, X, k, start=start, skip=20, seed=9)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (np.diff(found) <= 0).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_exponents_of_a_cycle_are_logarithms_of_its_multipliers(seed):
    reservoir = network(6, seed, radius=1.1)
    X = np.sin(2 * np.pi * np.arange(4) / 4)[:, None]
    cycle = sample_attractors(reservoir, X, random_state=seed, n_initial_states=5).states[0]
    cycle = find_limit_cycle(reservoir, X, initial_state=cycle[-1], n_transient=0)
    assert cycle.stable
    found = lyapunov_exponents(
        reservoir,
        np.tile(X, (1000, 1)),
        6,
        initial_state=cycle.states[-1],
        washout=2000,
        random_state=seed,
    )
    expected = np.log(np.abs(cycle.multipliers)) / 4
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_exponent_of_one_unit_by_hand():
    unit = Reservoir([[0.8]], [[1.0]], [0.1], leak_rate=0.6)
    X = drive(50)
    x, total = 0.3, 0.0
    for t, (u,) in enumerate(X):
        z = 0.8 * x + u + 0.1
        if t >= 5:
            total += np.log(0.4 + 0.6 * 0.8 * (1 - np.tanh(z) ** 2))
        x = 0.4 * x + 0.6 * np.tanh(z)
    found = lyapunov_exponents(unit, X, initial_state=[0.3], washout=5)
    np.testing.assert_allclose(found, [total / 45], rtol=1e-12)


def test_exponents_of_what_is_annihilated():
    line = Reservoir(np.eye(6, k=-1), np.eye(6, 1), np.zeros(6))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(lyapunov_exponents(line, drive(50), 6), [-np.inf] * 6)
        np.testing.assert_array_equal(lyapunov_exponents(line, drive(50)), [-np.inf])
    empty = Reservoir(np.zeros((3, 3)), np.ones((3, 1)), np.zeros(3))
    np.testing.assert_array_equal(lyapunov_exponents(empty, drive(5), 2), [-np.inf] * 2)
    # a ring beside the line: the exponents of the ring remain
    ring = sp.coo_array([[0.0, 0.5], [0.5, 0.0]])
    W = sp.block_diag([sp.eye_array(4, k=-1), ring], format="csr")
    both = Reservoir(W, np.ones((6, 1)), np.zeros(6), activation="identity")
    found = lyapunov_exponents(both, drive(400), 6, random_state=1)
    np.testing.assert_allclose(found[:2], np.log(0.5), atol=1e-9)
    np.testing.assert_array_equal(found[2:], [-np.inf] * 4)


@pytest.mark.parametrize("seed", range(5))
def test_a_direction_lost_on_the_way_leaves_the_others_their_sums(seed):
    # unit 0 dominates until it saturates once, and its derivative is exactly zero
    pair = Reservoir(np.diag([0.99, 0.5]), [[1.0], [0.0]], np.zeros(2))
    X = np.zeros((400, 1))
    X[150] = 1e4
    found = lyapunov_exponents(pair, X, 2, washout=0, random_state=seed)
    assert found[0] == pytest.approx(np.log(0.5), abs=0.02)
    assert found[1] == -np.inf


def test_exponent_below_what_squares_can_hold():
    tiny = Reservoir([[1e-200]], [[1.0]], [0.0], activation="identity")
    np.testing.assert_allclose(lyapunov_exponents(tiny, drive(20)), [-200 * np.log(10)])


def test_the_sign_of_the_exponent_tells_chaos(global_random_seed):
    X = 0.1 * drive(1000, global_random_seed)
    assert lyapunov_exponents(network(200, global_random_seed, radius=0.8, bias=0.0), X)[0] < 0
    assert lyapunov_exponents(network(200, global_random_seed, radius=2.5, bias=0.0), X)[0] > 0


def test_exponents_over_several_blocks_feedback_and_precision():
    rng = np.random.default_rng(0)
    W_fb = rng.uniform(-1, 1, (10, 1))
    reservoir = network(10, 3, W_fb=W_fb)
    X, F = drive(1200), drive(1200, 1)
    wide = Reservoir(reservoir.W, np.hstack([reservoir.W_in, W_fb]), reservoir.bias)
    found = lyapunov_exponents(reservoir, X, 3, feedback=F, random_state=0)
    same = lyapunov_exponents(wide, np.hstack([X, F]), 3, random_state=0)
    np.testing.assert_allclose(found, same, atol=1e-12)
    np.testing.assert_allclose(
        found, slow_exponents(wide, np.hstack([X, F]), 3, skip=100), atol=1e-9
    )
    single = wide.astype("float32")
    np.testing.assert_array_equal(
        lyapunov_exponents(single, np.hstack([X, F]), random_state=0),
        lyapunov_exponents(single.astype("float64"), np.hstack([X, F]), random_state=0),
    )


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"X": [[np.nan]]}, ValueError, "X contains NaN"),
        ({"X": np.empty((0, 1))}, ValueError, "X has no rows"),
        ({"X": [1.0]}, ValueError, "X must have shape"),
        ({"n_exponents": 0}, ValueError, "n_exponents=0"),
        ({"n_exponents": 9}, ValueError, "n_exponents=9 must be at most n_units=8"),
        ({"n_exponents": True}, TypeError, "n_exponents must be an integer"),
        ({"washout": 30}, ValueError, "washout=30 leaves 0 rows of n_samples=30"),
        ({"washout": -1}, ValueError, "washout=-1"),
        ({"washout": "all"}, ValueError, "washout='all' is not known"),
        ({"washout": 1.5}, TypeError, "washout must be an integer"),
        ({"initial_state": [1.0]}, ValueError, "initial_state must have shape"),
        ({"feedback": drive(30)}, ValueError, "no feedback weights"),
        ({"reservoir": "esn"}, TypeError, "reservoir must be"),
    ],
)
def test_errors_of_lyapunov_exponents(options, error, match):
    given = {"reservoir": network(8, 0), "X": drive(30)} | options
    with pytest.raises(error, match=match):
        lyapunov_exponents(given.pop("reservoir"), given.pop("X"), **given)


# --- echo_state_index and consistency ----------------------------------------------------------


def test_contracting_networks_forget(global_random_seed):
    reservoir, X = contracting(20, global_random_seed), drive(400)
    # .8 ** 200 is below rounding
    assert echo_state_index(reservoir, X, washout=200, random_state=global_random_seed) <= 1e-13
    assert consistency(reservoir, X, washout=200, random_state=global_random_seed) == pytest.approx(
        1, abs=1e-12
    )


def test_echo_state_index_by_hand():
    # x halves: the distance from the zero start is |x0| / 2^t
    linear = Reservoir([[0.5]], [[1.0]], [0.0], activation="identity")
    found = echo_state_index(linear, drive(10), n_initial_states=1, washout=3)
    np.testing.assert_allclose(found, np.mean(0.5 ** np.arange(4, 11)), rtol=1e-12)
    # two units: the Euclidean distance
    two = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2), activation="identity")
    found = echo_state_index(two, drive(10), n_initial_states=1, washout=3)
    np.testing.assert_allclose(found, np.sqrt(2) * np.mean(0.5 ** np.arange(4, 11)), rtol=1e-12)


def test_two_responses_raise_the_index(global_random_seed):
    X = 0.05 * drive(500, global_random_seed)
    apart = Reservoir([[2.0]], [[1.0]], [0.3])
    assert echo_state_index(apart, X, random_state=global_random_seed) > 0.1
    chaotic = network(100, global_random_seed, radius=2.5, bias=0.0)
    assert echo_state_index(chaotic, X, random_state=global_random_seed) > 1
    assert consistency(chaotic, X, random_state=global_random_seed) < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_consistency_equals_the_naive_correlation(seed):
    reservoir, X = network(7, seed, radius=2.2, bias=0.0), 0.2 * drive(1200)
    found = consistency(reservoir, X, n_initial_states=4, washout=30, random_state=seed)
    from reservoir.stability.measures._trajectories import spread_states

    starts = spread_states(reservoir, 4, np.random.default_rng(seed))
    responses = [run(reservoir, X, initial_state=x)[30:] for x in starts]
    each = [
        np.corrcoef(responses[i][:, n], responses[j][:, n])[0, 1]
        for i in range(4)
        for j in range(i)
        for n in range(7)
    ]
    np.testing.assert_allclose(found, np.mean(each), atol=1e-9)


def test_consistency_of_units_that_do_not_vary():
    zeros = np.zeros((200, 1))
    still = Reservoir([[0.5]], [[1.0]], [0.7])
    assert consistency(still, zeros, random_state=0) == 1.0
    silent = Reservoir([[0.0]], [[0.0]], [0.0])
    assert consistency(silent, zeros, random_state=0) == 1.0
    # two fixed points: pairs within a basin agree, those across do not
    bistable = Reservoir([[3.78]], [[1.0]], [0.3])
    found = consistency(bistable, zeros, n_initial_states=3, random_state=0)
    assert found == pytest.approx(1 / 3)  # zeros and ones go up, minus ones down
    # correlation ignores the level around which the drive is followed
    wave = 0.01 * np.sin(np.arange(400.0))[:, None]
    levels = consistency(Reservoir([[1.5]], [[1.0]], [0.0]), wave, random_state=0)
    assert levels > 0.9


@pytest.mark.parametrize("function", [echo_state_index, consistency, transient_length])
def test_measures_take_estimators_float32_and_feedback(function):
    X = drive(300)
    model = ESNRegressor(15, random_state=0, spectral_radius=0.2).fit(X, X[:, 0])
    assert function(model, X, random_state=0) == function(model.reservoir_, X, random_state=0)
    single = contracting(10, 0).astype("float32")
    assert function(single, X, random_state=0) == function(
        single.astype("float64"), X, random_state=0
    )
    fed = Reservoir(0.3 * np.eye(4), np.ones((4, 1)), np.zeros(4), W_fb=np.ones((4, 1)))
    function(fed, X, feedback=drive(300, 1), random_state=0)
    with pytest.raises(ValueError, match="pass feedback"):
        function(fed, X, random_state=0)


@pytest.mark.parametrize("function", [echo_state_index, consistency, transient_length])
@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"X": [[np.inf]]}, ValueError, "X contains NaN or infinity"),
        ({"X": np.empty((0, 1))}, ValueError, "X has no rows"),
        ({"n_initial_states": 0}, ValueError, "n_initial_states=0"),
        ({"n_initial_states": 2.0}, TypeError, "n_initial_states must be an integer"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"reservoir": np.eye(3)}, TypeError, "reservoir must be"),
    ],
)
def test_errors_of_measures(function, options, error, match):
    given = {"reservoir": contracting(5, 0), "X": drive(30)} | options
    with pytest.raises(error, match=match):
        function(given.pop("reservoir"), given.pop("X"), **given)


def test_a_washout_that_leaves_too_little_raises():
    reservoir, X = contracting(5, 0), drive(30)
    with pytest.raises(ValueError, match="washout=30 leaves 0 rows"):
        echo_state_index(reservoir, X, washout=30)
    with pytest.raises(ValueError, match="washout=29 leaves 1 rows of n_samples=30"):
        consistency(reservoir, X, washout=29)


@pytest.mark.parametrize("function", [echo_state_index, consistency, lyapunov_exponents])
def test_one_period_of_a_constant_input_is_no_series(function):
    with pytest.raises(ValueError, match=r"leaves 1 rows .* its row repeated"):
        function(contracting(5, 0), [[0.2]])


@pytest.mark.parametrize("function", [echo_state_index, consistency])
def test_a_transient_that_is_counted_is_told(function, global_random_seed):
    # one response, which is reached by a factor of 0.949 a row
    unit = Reservoir([[0.949]], [[1.0]], [0.0])
    X, options = np.zeros((100, 1)), {"random_state": global_random_seed}
    with pytest.warns(RuntimeWarning, match="they converge, and the result describes this trans"):
        found = function(unit, X, **options)
    assert abs(found - (function is consistency)) > 0.004
    still = function(unit, np.repeat(X, 12, axis=0), washout=1000, **options)
    assert still == pytest.approx(float(function is consistency), abs=1e-9)


# --- transient_length --------------------------------------------------------------------------


def slow_transient(reservoir, X, starts, tol):
    """First row from which on all trajectories agree, by the naive loops."""
    trajectories = np.array(
        [
            naive.open_loop(
                reservoir.W, reservoir.W_in, reservoir.bias, X, x0=x, leak=reservoir.leak_rate
            )
            for x in starts
        ]
    )
    spread = np.ptp(trajectories, axis=0).max(axis=1)
    apart = np.flatnonzero(spread > tol)
    return int(apart[-1]) + 1 if len(apart) else 0


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tol", [1e-1, 1e-6])
@pytest.mark.parametrize("leak", [1.0, 0.5])
def test_transient_length_equals_the_naive_version(seed, tol, leak):
    from reservoir.stability.measures._trajectories import spread_states

    reservoir, X = network(8, seed, leak=leak), drive(300, seed)
    starts = spread_states(reservoir, 5, np.random.default_rng(seed))
    found = transient_length(reservoir, X, tol=tol, n_initial_states=5, random_state=seed)
    assert type(found) is int
    assert found == slow_transient(reservoir, X, starts, tol)


def test_transient_length_by_theory():
    linear = Reservoir([[0.5]], [[1.0]], [0.0], activation="identity")
    for tol in (0.3, 0.1, 1e-3, 1e-6):
        # after row t the corners are 2 / 2^(t+1) apart
        expected = int(np.ceil(np.log2(1 / tol)))
        assert transient_length(linear, drive(100), tol=tol) == expected
    line = Reservoir(np.eye(7, k=-1), np.eye(7, 1), np.zeros(7))
    assert transient_length(line, drive(100)) == 6
    empty = Reservoir(np.zeros((3, 3)), np.ones((3, 1)), np.zeros(3))
    assert transient_length(empty, drive(1)) == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_strong", [60, 100])
def test_states_that_part_again_are_seen(seed, n_strong):
    # a strong drive contracts, silence expands: what rounding left apart grows above tol again
    reservoir = network(60, seed, radius=2.0, bias=0.0)
    rng = np.random.default_rng(seed)
    strong = rng.choice([-4.0, 4.0], (n_strong + 200, 1))
    X = np.concatenate([strong[:n_strong], 0.05 * rng.normal(size=(400, 1)), strong[n_strong:]])
    found = transient_length(reservoir, X, random_state=seed)
    assert found > n_strong + 400
    # and if X ends in silence, there is no answer
    with pytest.raises(ValueError, match="do not agree"):
        transient_length(reservoir, X[: n_strong + 400], random_state=seed)


def test_transient_that_never_ends_raises():
    bistable = Reservoir([[3.78]], [[1.0]], [0.0])
    with pytest.raises(
        ValueError,
        match=r"do not agree to tol=1e-06 within n_samples=200 rows: "
        r"at the end they differ by 2.*larger tol",
    ):
        transient_length(bistable, np.zeros((200, 1)))
    slow = Reservoir([[0.99]], [[1.0]], [0.0], activation="identity")
    with pytest.raises(ValueError, match="longer X"):
        transient_length(slow, drive(100))
    assert transient_length(slow, drive(2000)) == pytest.approx(
        np.log(1e-6 / 2) / np.log(0.99), abs=1
    )
    with pytest.raises(ValueError, match="tol=0"):
        transient_length(slow, drive(10), tol=0)
    with pytest.raises(ValueError, match="n_initial_states=1"):
        transient_length(slow, drive(10), n_initial_states=1)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_merged_trajectories_do_not_change_the_answer(seed, monkeypatch):
    from reservoir.stability.measures import _transient_length

    reservoir, X = network(300, seed, radius=1.0), drive(1500, seed)
    found = transient_length(reservoir, X, random_state=seed)
    monkeypatch.setattr(_transient_length, "_MERGED", 0.0)
    assert transient_length(reservoir, X, random_state=seed) == found


def test_little_is_played_once_the_states_are_equal(monkeypatch):
    from reservoir.stability.measures import _transient_length

    played = []
    original = _transient_length.side_by_side

    def counting(*args, **options):
        for begin, block in original(*args, **options):
            played.append(block.shape[0] * block.shape[1])
            yield begin, block

    monkeypatch.setattr(_transient_length, "side_by_side", counting)
    transient_length(contracting(100, 0, norm=0.5), drive(10_000), random_state=0)
    assert sum(played) < 2_500


# --- heuristics, and where they are wrong -------------------------------------------------------


def test_measures_from_few_states_miss_a_second_response():
    # T3's example: a leaky unit of gain -6, a drive that alternates; the second basin is (0.2, 0.6)
    unit = Reservoir([[-6.0]], [[1.0]], [0.0], leak_rate=0.5)
    X = np.where(np.arange(2000) % 2, 20.0, 5.15)[:, None]
    options = {"n_initial_states": 3, "random_state": 0}
    assert echo_state_index(unit, X, washout=1000, **options) < 1e-9
    assert consistency(unit, X, washout=10, **options) > 0.999
    assert transient_length(unit, X, **options) < 400
    assert lyapunov_exponents(unit, X)[0] < 0
    ends = [run(unit, X, initial_state=[start])[-1, 0] for start in (0.0, 0.4)]
    assert np.round(ends, 4) == pytest.approx([0.8364, 0.7418])
    # and nothing of it is certified
    assert not certify_cycle(unit, [[5.15], [20.0]], method="thorough").holds


def test_sampling_finds_a_lower_bound_of_the_number_of_attractors():
    # ten units that do not meet, each with two fixed points, the lower with a twelfth of the range
    apart = Reservoir(3.78 * np.eye(10), np.ones((10, 1)), np.full(10, 1.95))
    found = sample_attractors(apart, [[0.0]], n_initial_states=30, random_state=0)
    assert 1 < found.count <= 30
    one = Reservoir([[3.78]], [[1.0]], [1.95])
    assert sample_attractors(one, [[0.0]], random_state=0).count == 2  # so there are 2^10
