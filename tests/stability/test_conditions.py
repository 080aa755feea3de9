"""Conditions on the weights alone: their values, and `certify` proves what they prove."""

import contextlib
import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import minimize
from test_lyapunov import odd_weights

from helpers import naive
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir
from reservoir.scaling import scale_to_spectral_radius
from reservoir.stability import certify, echo_state_conditions
from reservoir.stability.proofs._turning_scaling import numerical_radius
from reservoir.stability.proofs._two_norm import norm_bound
from reservoir.stability.proofs._unit_scalings import aligned, balanced
from reservoir.topologies import TOPOLOGIES, delay_line, orthogonal, random_sparse, ring

NUMBERS = ("spectral_norm", "abs_radius", "diagonal_schur", "numerical_radius")

# --- the numerical radius -----------------------------------------------------------------------


@pytest.mark.parametrize("n, leaks", [(1, "units"), (3, "equal"), (20, "none"), (26, "units")])
def test_the_numerical_radius_against_a_fine_grid(n, leaks):
    rng = np.random.default_rng(n)
    leak = {"none": np.ones(n), "equal": np.full(n, 0.1), "units": rng.uniform(0.02, 1, n)}[leaks]
    M = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.5)
    expected = naive.numerical_radius(M, leak)
    for stored in (M, sp.csr_array(M)):
        assert numerical_radius(stored, leak) == pytest.approx(expected, rel=1e-4)


def test_numerical_radii_that_are_known():
    n = 50
    assert numerical_radius(np.eye(n, k=1)) == pytest.approx(np.cos(np.pi / (n + 1)), rel=1e-4)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    assert numerical_radius(Q) == pytest.approx(1, rel=1e-4)
    assert numerical_radius(Q + Q.T) == pytest.approx(np.linalg.norm(Q + Q.T, 2), rel=1e-6)
    assert numerical_radius(np.zeros((n, n))) == 0.0
    # a turn by a right angle, times 1.5, loses length where a leak mixes it with the old state
    turn = np.array([[0.0, 1.5], [-1.5, 0.0]])
    assert numerical_radius(turn) == pytest.approx(1.5)
    assert numerical_radius(turn, np.full(2, 0.3)) == pytest.approx(1.5 / 1.7, rel=1e-5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("degree", [2, 60])
def test_no_scaling_falls_below_the_bound_and_the_aligned_one_comes_near(degree):
    W = build_reservoir(60, 1, in_degree=degree, random_state=1).W
    x, least = aligned(W, balanced(W))
    schur = echo_state_conditions(W).diagonal_schur
    assert 0.85 * schur < least <= schur
    if degree == 2:  # where balancing, which looks at all weights alike, does not
        dense = sp.csr_array(W).toarray()
        near, far = (np.linalg.norm(np.exp(s[:, None] - s) * dense, 2) for s in (x, balanced(W)))
        assert near < 1.05 * schur
        assert far > 1.1 * schur


def test_bounds_of_norms_too_large_to_factor():
    rng = np.random.default_rng(0)
    places = rng.integers(3001, size=(2, 9006))
    B = sp.coo_array((rng.random(9006), places), (3001, 3001)).tocsr()
    norm = sp.linalg.svds(B, k=1, return_singular_vectors=False)[0]
    assert norm <= norm_bound(B) <= 1.5 * norm


# --- certify never refuses what is sufficient -----------------------------------------------------


def laws_and_topologies(seed):
    """Every topology with every law of the weights, and weights that no reservoir has."""
    rng = np.random.default_rng(seed)
    for (name, topology), n in itertools.product(TOPOLOGIES.items(), (1, 2, 7, 30)):
        known = inspect.signature(topology).parameters
        laws = ("normal", "bernoulli", "uniform", stats.t(1)) if "weights" in known else (None,)
        for law in laws:
            options = {"in_degree": min(int(rng.choice([2, 4, n])), n), "weights": law}
            options |= {"random_state": int(rng.integers(1000))}
            with contextlib.suppress(ValueError):  # some need more units
                yield name, topology(n, **{k: v for k, v in options.items() if k in known})
    for _ in range(60):
        yield "odd", odd_weights(rng, int(rng.integers(1, 12)))


def just_below(W, leak, rng):
    """Scale W so that one of the numbers comes just below 1, or some way; None if it is 0."""
    found = echo_state_conditions(W, leak)
    number = getattr(found, rng.choice(NUMBERS))
    share = rng.choice([1e-6, 1e-3, 1e-2, 0.3])
    return W * ((1 - share) / number) if number > 1e-9 else None


def check_one(name, W, rng):
    """Assert that a drawn network with these weights is certified if they are sufficient."""
    n = W.shape[0]
    leak = [1.0, 0.3, 0.05, rng.uniform(0.02, 1, n)][rng.integers(4)]
    W = just_below(W, leak, rng)
    if W is None:
        return False
    if rng.random() < 0.3:
        W = W.astype(np.float32)
    if rng.random() < 0.5:
        W = W.toarray() if sp.issparse(W) else sp.csr_array(W)
    if not echo_state_conditions(W, leak).sufficient:
        return False
    options = {"leak_rate": leak, "bias": rng.uniform(-1, 1, n) * rng.choice([0.0, 0.2, 3.0])}
    made = Reservoir(W, np.ones((n, 1)), **options)
    if rng.random() < 0.4:
        made = replace(made, W=W * 4, activation="logistic")
    drives = [(-1e3, 1e3), (0.0, 0.0), (-0.05, 0.05), (-0.2, 5.0), (-rng.random(n), 1.0)]
    low, high = drives[rng.integers(len(drives))]
    assert certify(made, low, high).holds, (name, n, leak, low, echo_state_conditions(W, leak))
    return True


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_certify_proves_whatever_the_conditions_prove(seed):
    rng = np.random.default_rng(seed)
    drawn = [(name, W) for name, W in laws_and_topologies(seed)]
    if not seed:  # the quick one looks at some of them, mostly small
        drawn = [(name, W) for name, W in drawn if rng.random() < 1 / (50 + W.shape[0])]
    n_sufficient = sum(check_one(name, W, rng) for name, W in drawn)
    assert n_sufficient > 0.6 * len(drawn)


@pytest.mark.parametrize("kind", ["orthogonal", "ring"])
@pytest.mark.parametrize("n", [30, 300, pytest.param(1000, marks=pytest.mark.slow)])
def test_orthogonal_weights_and_rings_are_certified_for_any_drive(kind, n):
    made = build_reservoir(n, 1, topology=kind, spectral_radius=0.99, random_state=0)
    assert certify(made, -1e3, 1e3).holds
    assert certify(replace(made, leak_rate=np.linspace(0.1, 1, n)), -0.2, 0.2).holds


@pytest.mark.slow
def test_a_network_too_large_to_factor_is_certified_by_its_norm():
    n = 3002
    turn = 0.65 * np.array([[1.0, 1.0], [-1.0, 1.0]])
    W = sp.csr_array(sp.kron(sp.eye_array(n // 2), turn))
    found = echo_state_conditions(W)
    assert found.sufficient
    assert found.abs_radius == pytest.approx(1.3)
    assert certify(Reservoir(W, np.ones((n, 1)), np.zeros(n)), -1e3, 1e3).method == "two_norm"


@pytest.mark.slow
def test_few_connections_are_scaled_by_their_leading_vectors():
    made = build_reservoir(
        100, 1, in_degree=2, spectral_radius=0.9, bias_scaling=0.0, random_state=3
    )
    assert echo_state_conditions(made.W).diagonal_schur > 1
    assert certify(made, -1e3, 1e3).method == "lyapunov"


# --- the conditions -----------------------------------------------------------------------------


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_conditions_against_dense_computations(seed, leak):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((12, 12))
    W *= rng.uniform(0.3, 1.5) / np.abs(np.linalg.eigvals(W)).max()
    found = echo_state_conditions(W, leak)
    leaky = (1 - leak) * np.eye(12) + leak * W
    assert found.spectral_radius == pytest.approx(np.abs(np.linalg.eigvals(leaky)).max())
    assert found.spectral_norm == pytest.approx(np.linalg.norm(W, 2))
    assert found.abs_radius == pytest.approx(np.abs(np.linalg.eigvals(abs(W))).max())
    assert found.necessary == (found.spectral_radius <= 1)
    smallest = min(found.spectral_norm, found.abs_radius, found.diagonal_schur)
    assert found.diagonal_schur == smallest
    assert found.numerical_radius <= smallest
    assert found.sufficient == (found.numerical_radius < 1)
    assert found.margins["abs_radius"] == pytest.approx(1 - found.abs_radius)
    assert "Yildiz" in str(found)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(4))
def test_the_search_for_the_scaling_finds_what_another_optimiser_finds(seed):
    W = np.random.default_rng(seed).standard_normal((5, 5))

    def norm(log_p):
        P = np.exp(np.append(log_p, 0.0))
        return np.linalg.norm(P[:, None] * W / P, 2)

    options = {"maxiter": 20000, "maxfev": 20000, "xatol": 1e-9, "fatol": 1e-12}
    best = min(
        minimize(norm, start, method="Nelder-Mead", options=options).fun
        for start in (np.zeros(4), np.ones(4))
    )
    found = echo_state_conditions(W).diagonal_schur
    assert best * (1 - 1e-9) <= found <= best * 1.005
    assert found >= np.abs(np.linalg.eigvals(W)).max() * (1 - 1e-9)  # what no scaling beats


def test_c2_fails_where_a_unit_keeps_the_state_of_another():
    """Residual units: the radius of the moduli is 0, and there are two responses."""
    W, swap = np.array([[0.0, 0.0], [5.0, 0.0]]), np.eye(2)[::-1]
    assert echo_state_conditions(W).abs_radius == 0.0
    for sign in (-1.0, 1.0):
        x = np.array([sign, sign])
        for _ in range(100):
            x = 0.5 * swap @ x + 0.5 * np.tanh(W @ x)
        np.testing.assert_allclose(x, sign * np.array([0.302, 0.605]), atol=1e-3)


def test_conditions_of_known_matrices():
    for W in (0.95 * ring(20).toarray(), 0.95 * ring(90), 0.95 * orthogonal(20, random_state=0)):
        found = echo_state_conditions(W)
        assert found.diagonal_schur == pytest.approx(0.95, rel=1e-6)
        assert found.sufficient
        assert found.necessary
    line = echo_state_conditions(5.0 * delay_line(20))  # nilpotent: stable at any weight
    assert line.spectral_norm == pytest.approx(5.0)
    assert line.abs_radius == 0.0
    assert line.sufficient
    swap = echo_state_conditions(np.array([[0.0, 1.5], [-1.5, 0.0]]), 0.3)
    assert swap.necessary  # with a leak the rotation loses its length: |0.7 + 0.45 i| < 1
    assert swap.numerical_radius == pytest.approx(1.5 / 1.7, rel=1e-5)
    assert swap.sufficient  # though the three numbers that know no leak are 1.5
    turn = echo_state_conditions(np.array([[0.0, 1.5], [-1.5, 0.0]]))
    assert turn.numerical_radius == pytest.approx(1.5)
    assert not turn.sufficient
    assert not turn.necessary
    edge = echo_state_conditions(1.0)  # one unit of gain 1 has the property, by T0
    assert edge.necessary
    assert not edge.sufficient
    assert "<= 1" in str(edge)
    one = echo_state_conditions(-0.9)
    assert one.sufficient
    zero = echo_state_conditions(np.zeros((3, 3)))
    assert zero.sufficient
    assert zero.diagonal_schur == 0.0


@pytest.mark.slow
def test_diagonal_schur_stability_is_proved_where_norm_and_moduli_fail():
    W = scale_to_spectral_radius(random_sparse(100, random_state=0), 0.6)
    found = echo_state_conditions(W)
    assert found.spectral_norm > 1
    assert found.abs_radius > 1
    assert found.diagonal_schur < 1
    assert found.sufficient
    # the proof does not depend on how W is stored
    dense = echo_state_conditions(W.toarray())
    assert dense.diagonal_schur == pytest.approx(found.diagonal_schur, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3001, 10_000])
def test_conditions_of_large_sparse_networks(n):
    rotation = echo_state_conditions(0.99 * ring(n))
    assert rotation.sufficient
    W = random_sparse(n, random_state=0)
    W = W * (0.3 / np.sqrt(10))
    small = echo_state_conditions(W, 0.5)
    assert small.sufficient
    assert small.diagonal_schur <= small.spectral_norm
    assert not echo_state_conditions(3 * W).sufficient


@pytest.mark.parametrize(
    "W, leak, kind, message",
    [
        (np.ones((2, 3)), 1.0, ValueError, r"square.*\(2, 3\)"),
        (np.full((2, 2), np.inf), 1.0, ValueError, "NaN or infinity"),
        (np.eye(2), 0.0, ValueError, r"leak_rate=0 must be in \(0, 1\]"),
        (np.eye(2), 1.5, ValueError, r"leak_rate=1.5 must be in \(0, 1\]"),
        (np.eye(2), [0.5] * 3, ValueError, r"\(2,\); got shape \(3,\)"),
        (1j * np.eye(2), 1.0, TypeError, "real"),
        (Reservoir([[0.5]], [[1.0]], [0.0]), 1.0, TypeError, "Pass W and leak_rate"),
    ],
)
def test_bad_input_of_conditions(W, leak, kind, message):
    with pytest.raises(kind, match=message):
        echo_state_conditions(W, leak)
