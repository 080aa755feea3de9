"""Theorem C7: proved statements hold in exact arithmetic, and false ones are never proved."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from helpers import quadratic_fuzz
from reservoir.building import build_reservoir
from reservoir.stability import certify, drive_range
from reservoir.stability.proofs import _quadratic_form
from reservoir.stability.proofs._lyapunov import _riccati, contraction, least_rate, split_scaling
from reservoir.stability.proofs._quadratic_form import Step, is_proved
from reservoir.stability.proofs._unit_scalings import balanced


def network_step(W, leak, least, largest):
    return Step(1 - leak, leak, W, least, largest)


def is_contraction(W, leak, least, largest, s, scaling):
    return contraction(network_step(W, leak, least, largest), s, scaling) is not None


def odd_weights(rng, n):
    """Return weights of one of several laws, some of them far from any that a reservoir has."""
    W = rng.standard_normal((n, n))
    kind = rng.integers(7)
    if kind == 1:
        W = rng.standard_t(1.0, (n, n))
    elif kind == 2:
        W = np.triu(W, 1) * 10  # nilpotent
    elif kind == 3:
        W = np.outer(rng.standard_normal(n), rng.standard_normal(n))
    elif kind == 4:
        W = np.diag(np.ones(n - 1), 1)
        W[-1] = rng.standard_normal(n)  # a companion matrix
    elif kind == 5:
        W = W * 10.0 ** rng.uniform(-8, 8, (n, n))
    elif kind == 6:
        W = np.linalg.qr(W)[0]
    size = max(np.abs(np.linalg.eigvals(W)).max(), 1e-3 * np.abs(W).max(), 1e-300)
    return W / size * rng.uniform(0.2, 1.6)


def problem(seed):
    """Return weights, leaks and bounds of slopes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    W = odd_weights(rng, n)
    leak = [np.ones(n), np.full(n, rng.uniform(0.01, 1)), rng.uniform(0.01, 1, n)][rng.integers(3)]
    largest = rng.uniform(0, 1, n) ** rng.choice([0.0, 1.0])
    least = largest * rng.choice([0.0, 0.5, 0.99, 1.0], n)
    return W, leak, least, largest


def at_the_threshold(W, leak, least, largest):
    """Return the problem with W scaled up as far as the proof goes, s and the scaling, or None."""
    s = 1 - 1e-4 * float(leak.min())
    scaling = balanced(largest[:, None] * W)

    def proved(factor):
        return is_contraction(factor * W, leak, least, largest, s, scaling)

    low, high = 1e-3, 64.0
    if not proved(low):
        return None
    for _ in range(30):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if proved(middle) else (low, middle)
    return low * W, leak, least, largest, s, scaling


def exact(M):
    return [[Fraction(float(v)) for v in row] for row in M]


def is_definite(M):
    """Whether a symmetric matrix of fractions is positive definite, by elimination."""
    M = [row[:] for row in M]
    for k in range(len(M)):
        if M[k][k] <= 0:
            return False
        for i in range(k + 1, len(M)):
            factor = M[i][k] / M[k][k]
            for j in range(k, len(M)):
                M[i][j] -= factor * M[k][j]
    return True


def exact_matrix(W, leak, least, largest, s, P, multipliers):
    """Return N of theorem C7 in fractions, term by term."""
    n = len(W)
    W, P = exact(W), exact(P)
    a, low, high, lam = (exact([v])[0] for v in (leak, least, largest, multipliers))
    square = Fraction(float(s * s))
    N = [[Fraction(0)] * (2 * n) for _ in range(2 * n)]
    for i, j in product(range(n), range(n)):
        N[i][j] = square * P[i][j] - (1 - a[i]) * P[i][j] * (1 - a[j])
        N[i][j] += sum(W[k][i] * lam[k] * low[k] * high[k] * W[k][j] for k in range(n))
        N[n + i][j] = -a[i] * P[i][j] * (1 - a[j]) - lam[i] * (low[i] + high[i]) / 2 * W[i][j]
        N[j][n + i] = N[n + i][j]
        N[n + i][n + j] = (lam[i] if i == j else 0) - a[i] * P[i][j] * a[j]
    return N


def scaled_form(found):
    """Return what `is_contraction` proves: in units scaled by powers of two, with P and Lambda."""
    W, leak, least, largest, s, scaling = found
    powers, rest = split_scaling(scaling)
    W = powers[:, None] * W / powers
    P = np.tril(_riccati(network_step(W, leak, least, largest), s, rest))
    return W, leak, least, largest, s, P + np.tril(P, -1).T, (s * rest) ** 2


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("seed", range(40))
def test_proofs_at_the_threshold_hold_in_rational_arithmetic(seed):
    found = at_the_threshold(*problem(seed))
    if found is None:
        return
    parts = scaled_form(found)
    s, P, multipliers = parts[4:]
    assert is_proved(network_step(*parts[:4]), s * s, P, P, multipliers)
    assert is_definite(exact(parts[5]))
    assert is_definite(exact_matrix(*parts))


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("seed", range(40))
def test_the_quadratic_form_shrinks_under_any_slopes(seed):
    found = at_the_threshold(*problem(seed))
    if found is None:
        return
    W, leak, least, largest, s, P, _ = scaled_form(found)
    rng = np.random.default_rng(seed)
    slopes = np.vstack([least, largest, rng.uniform(least, largest, (50, len(W)))])
    slopes = np.vstack([slopes, np.where(rng.random((50, len(W))) < 0.5, least, largest)])
    for D in slopes:
        step = np.diag(1 - leak) + (leak * D)[:, None] * W
        e = rng.standard_normal((len(W), 20))
        before, after = ((v * (P @ v)).sum(axis=0) for v in (e, step @ e))
        assert (after <= s * s * before * (1 + 1e-12)).all()


def test_what_some_slopes_break_is_never_proved():
    n_broken = 0
    for seed in range(400):
        W, leak, least, largest = problem(seed)
        corners = np.array(list(product(*zip(least, largest, strict=True))))
        steps = np.diag(1 - leak) + (leak * corners)[:, :, None] * W
        if np.abs(np.linalg.eigvals(steps)).max() < 1 - 1e-12:
            continue
        n_broken += 1
        scaling = balanced(largest[:, None] * W)
        assert not is_contraction(W, leak, least, largest, 1.0, scaling)
    assert n_broken > 60


@pytest.mark.parametrize("size", [1e140, 1e155, 1e200, np.nan, np.inf])
def test_overflow_and_nan_prove_nothing(size):
    """LAPACK takes NaN for positive: with a first pivot that overflows it runs to its end."""
    for n in (1, 2, 40):
        ones = np.ones(n)
        W = np.full((n, n), size)
        step, P = network_step(W, ones, ones, ones), 0.5 * np.eye(n)
        assert not is_proved(step, 0.81, P, P, ones)
        assert not is_contraction(W, ones, ones, ones, 0.9, np.zeros(n))
    ones = np.ones(2)
    assert not is_contraction(np.eye(2), ones, 0 * ones, ones, 0.9, np.nan * ones)


def test_no_odd_law_has_a_false_proof():
    messages, counts, n_exact = quadratic_fuzz.fuzz(500, seed=2, largest_n=4)
    assert not messages
    assert counts["proved"] > 300
    assert n_exact >= 1


@pytest.mark.sweep
def test_no_odd_law_has_a_false_proof_slow():
    assert not quadratic_fuzz.fuzz(15_000, seed=3)[0]


def test_the_fuzz_notices_proofs_without_margins(monkeypatch):
    monkeypatch.setattr(_quadratic_form, "_of_entries", lambda *_: 0.0)
    monkeypatch.setattr(_quadratic_form, "is_definite", lambda M, _: _has_a_factor(M))
    assert len(quadratic_fuzz.fuzz(400, seed=3, largest_n=2)[0]) > 5


def _has_a_factor(M):
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return False
    return True


def numerical_radius(M):
    """Return max |x* M x| over unit vectors x, from the largest eigenvalues of its rotations."""
    angles = np.linspace(0, np.pi, 721)
    turned = np.exp(1j * angles)[:, None, None] * M
    values = np.linalg.eigvalsh((turned + np.conj(np.swapaxes(turned, 1, 2))) / 2)
    return max(values[:, -1].max(), -values[:, 0].min())


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_for_slopes_between_0_and_1_it_is_the_numerical_radius(seed):
    """Ando (1973): the matrix inequality has a solution if the numerical radius is below 1."""
    rng = np.random.default_rng(seed)
    n = 20
    W = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.4)
    found = at_the_threshold(W, np.ones(n), np.zeros(n), np.ones(n))
    scale = np.exp(found[5])
    assert numerical_radius(scale[:, None] * found[0] / scale) == pytest.approx(1, abs=2e-3)


def test_orthogonal_weights_are_proved_up_to_one():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 50)))[0]
    ones = np.ones(50)
    assert is_contraction(0.999 * Q, ones, 0 * ones, ones, 1 - 1e-4, balanced(Q))
    assert not is_contraction(1.0001 * Q, ones, 0 * ones, ones, 1.0, balanced(Q))


@pytest.mark.parametrize("slowest", [0.1, 1e-2, 1e-3, 1e-4])
def test_units_may_differ_widely_in_leak(slowest):
    leak = np.array([1.0, slowest])
    W = np.array([[0.5, 0.3], [0.2, 0.5]])
    assert is_contraction(W, leak, 0 * leak, leak**0, 1 - 1e-4 * slowest, balanced(W))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("leak", [1.0, 0.3, 0.01])
def test_it_certifies_what_moduli_cannot(leak):
    """Of random networks of 100 units and ten connections each, radius .7 without bias."""
    n_proved = 0
    for seed in range(3):
        reservoir = build_reservoir(
            100, 1, in_degree=10, spectral_radius=0.7, leak_rate=leak, random_state=seed
        )
        low, high = drive_range(reservoir, -5.0, 5.0)
        assert not any(
            certify(reservoir, low, high, method=name) for name in ("max_norm", "two_norm")
        )
        found = certify(reservoir, low, high)
        n_proved += found.holds and found.method == "lyapunov"
        assert not found.holds or 1 - leak < found.rate < 1
    assert n_proved >= 2


@pytest.mark.parametrize("size", [1e-3, 0.05, 0.2])
def test_a_search_that_begins_at_a_rate_ends_above_the_true_one(size):
    """Beyond a rate of 0 its square grows again, and is proved: -0.2 would stand for 0.2."""
    W = size * np.array([[0.0, 1.0], [-1.0, 0.0]])  # each step multiplies lengths by `size`
    step = network_step(W, np.ones(2), np.ones(2), np.ones(2))
    for known in (0.3, 0.5, 0.9):
        rate, P = least_rate(step, 1e-4, proved=1 - known)
        assert P is not None
        assert size <= rate <= known * (1 + 1e-12)
