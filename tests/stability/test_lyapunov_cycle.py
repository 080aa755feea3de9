"""Quadratic norms over a cycle and through a closed loop: theorems C5 and C6 by the lemma of C7."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from test_lyapunov import exact, is_definite, odd_weights

from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run_closed_loop, run_many
from reservoir.stability import certify, certify_cycle, certify_loop, drive_range
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._certify_loop import _Loop
from reservoir.stability.proofs._interval_network import read_network
from reservoir.stability.proofs._lyapunov import contraction, split_scaling
from reservoir.stability.proofs._lyapunov_cycle import _norms, _separate_norms, cycle_lyapunov
from reservoir.stability.proofs._quadratic_form import Step, is_below, is_proved
from reservoir.stability.proofs._quadratic_norms import unit_bounds
from reservoir.stability.proofs._unit_scalings import balanced


def times(*factors):
    """Return the product of matrices of fractions, exactly."""
    made = factors[0]
    for M in factors[1:]:
        made = [
            [sum(a * b for a, b in zip(row, c, strict=True)) for c in zip(*M, strict=True)]
            for row in made
        ]
    return made


def exact_form(A, B, K, least, largest, square, now, after, multipliers):
    """Return N of the lemma in fractions; A and B are given as fractions, all else as floats."""
    n, k = len(A), len(K)
    K, now, after = exact(K), exact(now), exact(after)
    low, high, lam = (exact([v])[0] for v in (least, largest, multipliers))
    A_t, B_t = ([list(row) for row in zip(*M, strict=True)] for M in (A, B))
    APA, BPA, BPB = times(A_t, after, A), times(B_t, after, A), times(B_t, after, B)
    N = [[Fraction(0)] * (n + k) for _ in range(n + k)]
    for i, j in product(range(n), range(n)):
        between = sum(K[u][i] * lam[u] * low[u] * high[u] * K[u][j] for u in range(k))
        N[i][j] = Fraction(float(square)) * now[i][j] - APA[i][j] + between
    for i in range(k):
        for j in range(n):
            N[n + i][j] = -BPA[i][j] - lam[i] * (low[i] + high[i]) / 2 * K[i][j]
            N[j][n + i] = N[n + i][j]
        for j in range(k):
            N[n + i][n + j] = (lam[i] if i == j else 0) - BPB[i][j]
    return N


def symmetric(P):
    lower = np.tril(P)
    return lower + np.tril(lower, -1).T


def diagonal(values):
    return [
        [v if i == j else Fraction(0) for j in range(len(values))] for i, v in enumerate(values)
    ]


def cycle_problem(seed):
    """Return steps of a small network under a period of boxes."""
    rng = np.random.default_rng([seed, 5])
    n, period = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    W = odd_weights(rng, n)
    leak = [np.ones(n), np.full(n, rng.uniform(0.1, 1)), rng.uniform(0.1, 1, n)][rng.integers(3)]
    largest = rng.uniform(0, 1, (period, n)) ** rng.choice([0.0, 1.0])
    least = largest * rng.choice([0.0, 0.5, 0.99, 1.0], (period, n))
    return [Step(1 - leak, leak, W, *slopes) for slopes in zip(least, largest, strict=True)]


def weighed(steps, factor):
    return [step._replace(K=factor * step.K) for step in steps]


def largest_factor(proves, rounds=9):
    """Return about the largest factor of the weights that is proved, or None."""
    low, high = 1e-3, 64.0
    if not proves(low):
        return None
    for _ in range(rounds):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if proves(middle) else (low, middle)
    return low


@cache
def cycle_at_the_threshold(seed):
    """Return steps whose weights are about as large as is proved."""
    steps = cycle_problem(seed)
    factor = largest_factor(lambda f: _separate_norms(weighed(steps, f), None).rate < 1)
    return None if factor is None else weighed(steps, factor)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(8))
def test_cycles_at_the_threshold_hold_in_rational_arithmetic(seed):
    steps = cycle_at_the_threshold(seed)
    if steps is None:
        return
    # what `_separate_norms` proves at the weakest contraction, in units scaled by powers of two
    s = 1 - 1e-4 * float(steps[0].B.min())
    slopes = np.sqrt(np.mean([step.largest**2 for step in steps], axis=0))
    powers, rest = split_scaling(balanced(slopes[:, None] * steps[0].K))
    scaled = [step.scaled(powers) for step in steps]
    closing = 1 + min(0.1 * np.expm1(-2 * len(steps) * np.log(s)), 0.1)
    norms = [symmetric(P) for P in _norms(scaled, s, rest, closing)]
    assert is_below(norms[0], norms[-1], closing)
    assert is_definite(exact(norms[0]))
    last = [
        [Fraction(closing) * a - b for a, b in zip(*rows, strict=True)]
        for rows in zip(exact(norms[-1]), exact(norms[0]), strict=True)
    ]
    assert is_definite(last)
    for step, now, after in zip(scaled, norms[:-1], norms[1:], strict=True):
        assert is_proved(step, s * s, now, after, (s * rest) ** 2)
        leak = exact([step.B])[0]
        A = diagonal([1 - a for a in leak])
        form = (step.K, step.least, step.largest, s * s, now, after, (s * rest) ** 2)
        assert is_definite(exact_form(A, diagonal(leak), *form))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(8))
def test_no_sequence_of_slopes_breaks_what_is_proved_of_a_period(seed):
    steps = cycle_at_the_threshold(seed)
    if steps is None:
        return
    found, rng = _separate_norms(steps, None), np.random.default_rng(seed)
    n = len(steps[0].K)
    corners = np.array(list(product([False, True], repeat=n)))
    for adversarial in (True, True, True, False, False):
        e = rng.standard_normal((n, 200))
        sizes = [np.sqrt((e * (found.norms[0] @ e)).sum(axis=0))]
        for step, P in zip(steps, found.norms[1:], strict=True):
            # the corner that makes most of each difference, or one drawn at random
            D = np.where(corners, step.largest, step.least)[:, :, None]
            ends = step.A[:, None] * e + step.B[:, None] * D * (step.K @ e)
            lengths = np.sqrt((ends * (P @ ends)).sum(axis=1))
            worst = lengths.argmax(axis=0) if adversarial else rng.integers(len(corners), size=200)
            e = np.take_along_axis(ends, worst[None, None], axis=0)[0]
            sizes.append(np.take_along_axis(lengths, worst[None], axis=0)[0])
            assert (sizes[-1] <= found.growth * sizes[-2] * (1 + 1e-10)).all()
        first = np.sqrt((e * (found.norms[0] @ e)).sum(axis=0))
        assert (first <= found.closing * sizes[-1] * (1 + 1e-10)).all()
        assert (first <= found.rate ** len(steps) * sizes[0] * (1 + 1e-9)).all()


def test_a_period_that_some_slopes_break_is_never_proved():
    n_broken = 0
    for seed in range(150):
        steps = cycle_problem(seed)
        rng, n, broken = np.random.default_rng(seed), len(steps[0].K), 0.0
        for _ in range(15):
            J = np.eye(n)
            for step in steps:
                D = np.where(rng.random(n) < 0.5, step.least, step.largest)
                J = (np.diag(step.A) + (step.B * D)[:, None] * step.K) @ J
            broken = max(broken, np.abs(np.linalg.eigvals(J)).max())
        if broken > 1 + 1e-9:
            n_broken += 1
            assert not _separate_norms(steps, None).rate < 1
    assert n_broken > 15


@pytest.mark.parametrize("leak", [1.0, 0.4])
def test_a_constant_input_is_proved_as_by_certify(leak):
    res = build_reservoir(30, 1, in_degree=10, spectral_radius=0.7, leak_rate=leak, random_state=1)
    cycle = certify_cycle(res, [[0.0]], method="lyapunov")
    found = certify(res, *drive_range(res, 0.0, 0.0), method="lyapunov")
    assert cycle.method == found.method == "lyapunov"
    assert cycle.rate == pytest.approx(found.rate, rel=1e-12)
    assert np.allclose(cycle.weights, found.weights, rtol=1e-9)
    assert cycle.resolution == pytest.approx(found.resolution, rel=0.1)


def test_norms_for_each_step_prove_what_one_for_all_does_not():
    res = build_reservoir(
        20, 1, in_degree=5, spectral_radius=1.0, input_scaling=5.0, random_state=0
    )
    inputs = np.sin(2 * np.pi * np.arange(8) / 8)[:, None]
    found = certify_cycle(res, inputs, method="lyapunov")
    net = read_network(res, -5.0, 5.0)
    boxes = [
        Box(*box, *box, np.zeros(20), gains)
        for box, gains in zip(found.box, found.gains, strict=True)
    ]
    assert found.holds
    assert found.weights.shape == (20, 20)
    hull = boxes[0]._replace(largest_slope=found.gains.max(axis=0))
    assert cycle_lyapunov(net, [hull] * 8).rate > found.rate


def test_cycles_that_moduli_do_not_prove():
    """Radius .7, drives of .2, ten connections: 4 of 4, where moduli prove none."""
    for seed in range(4):
        res = build_reservoir(
            60, 1, in_degree=10, spectral_radius=0.7, input_scaling=0.2, random_state=seed
        )
        inputs = np.random.default_rng(seed).uniform(-1, 1, (6, 1))
        assert not certify_cycle(res, inputs, method="max_norm")
        assert not certify_cycle(res, inputs, method="series")
        found = certify_cycle(res, inputs)
        assert found.method == "lyapunov"
        starts = np.random.default_rng(seed).uniform(-1, 1, (8, 60))
        drive = np.tile(inputs, (200, 1))
        runs = run_many(res, [drive] * 8, initial_states=starts, engine="numpy")
        assert np.ptp([x[-6:] for x in runs], axis=0).max() <= found.resolution < 1e-8


def test_weights_that_scaling_would_lose_prove_nothing():
    # without the second weight, which is lost where it is scaled, the first alone would pass
    W = np.array([[0.5, 1e300], [1e-300, 0.0]])
    step = Step(np.zeros(2), np.ones(2), W, np.zeros(2), np.ones(2))
    scaled = step.scaled(np.exp2([-1000.0, 1000.0]))
    assert not scaled.is_manageable
    assert not step.scaled(np.exp2([1000.0, -1000.0])).is_manageable


# --- resolution ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_single_units_in_a_norm(seed):
    rng = np.random.default_rng(seed)
    n = 8
    F = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-seed, seed, (n, 1))
    F = F * 2.0 ** rng.integers(-100, 100, n)
    P = F.T @ F
    u = unit_bounds(0.5 * P + 0.5 * P.T)
    # columns of the inverse are the vectors of length one with the largest entries
    true = np.sqrt((np.linalg.inv(F / np.linalg.norm(F, axis=0)) ** 2).sum(axis=1))
    true = true / np.linalg.norm(F, axis=0)
    assert (u >= true * (1 - 1e-4)).all()
    assert (u <= true * 1.1).all() or seed > 2


def test_an_indefinite_norm_bounds_nothing():
    for P in (np.diag([1.0, -1.0]), np.ones((2, 2)), np.full((2, 2), np.nan)):
        assert np.isinf(unit_bounds(P)).all()


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("leak", [1.0, "units"])
def test_the_floor_of_a_quadratic_norm(dtype, leak):
    leaks = np.linspace(0.3, 1, 40) if leak == "units" else leak
    res = build_reservoir(
        40, 1, in_degree=10, spectral_radius=0.6, leak_rate=leaks, random_state=2, dtype=dtype
    )
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (900, 1))
    found = certify(res, *drive_range(res, -1.0, 1.0), method="lyapunov")
    cycle = certify_cycle(res, inputs[:5], method="lyapunov")
    eps = np.finfo(dtype).eps
    for certificate, drive in ((found, inputs), (cycle, np.tile(inputs[:5], (180, 1)))):
        starts = rng.uniform(-1, 1, (12, 40))
        runs = run_many(res, [drive] * 12, initial_states=starts, engine="numpy")
        seen = np.ptp([x[600:] for x in runs], axis=0).max()
        assert seen <= certificate.resolution < 3e5 * eps


# --- closed loops --------------------------------------------------------------------------------


def small_loop(seed):
    """Return a reservoir, a readout, and whether it sees the inputs, which may be unstable."""
    rng = np.random.default_rng([seed, 9])
    n, q = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    W = odd_weights(rng, n)
    leak = [1.0, rng.uniform(0.1, 1), rng.uniform(0.1, 1, n)][rng.integers(3)]
    res = Reservoir(W, rng.standard_normal((n, q)), np.zeros(n), leak_rate=leak)
    include_input = bool(rng.random() < 0.5)
    coef = rng.standard_normal((q, n + q * include_input)) * rng.choice([0.1, 0.4])
    return res, (coef, np.zeros(q)), include_input


def loop_parts(res, readout, include_input):
    """Return step and scaling of a loop, with slopes anywhere between 0 and 1."""
    made = _Loop(res, readout[0], readout[1], include_input, None, None)
    ones = np.ones(res.n_units)
    return made.step(0 * ones, ones), made.scaling(ones)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(12))
def test_loops_at_the_threshold_hold_in_rational_arithmetic(seed):
    res, (coef, intercept), include_input = small_loop(seed)
    s, n = 0.999, res.n_units

    def made(factor):
        return loop_parts(replace(res, W=factor * res.W), (factor * coef, intercept), include_input)

    factor = largest_factor(lambda f: contraction(made(f)[0], s, made(f)[1]) is not None)
    if factor is None:
        return
    step, scaling = made(factor)
    P, powers = contraction(step, s, scaling)
    # exact entries of A and B, from the weights of the readout and the leak rates as they are
    C, D = exact(factor * coef[:, :n]), exact(factor * coef[:, n:])
    leak = exact([np.broadcast_to(res.leak_rate, n)])[0]
    t = exact([powers])[0]
    A, B = diagonal([1 - a for a in leak]), diagonal(leak)
    A = [row + [Fraction(0)] * len(C) for row in A]
    for i, row in enumerate(C):
        tail = D[i] if include_input else [Fraction(0)] * len(C)
        A.append([c * (1 - a) for c, a in zip(row, leak, strict=True)] + tail)
        B.append([c * a for c, a in zip(row, leak, strict=True)])
    A = [[t[i] * v / t[j] for j, v in enumerate(row)] for i, row in enumerate(A)]
    B = [[t[i] * v / t[j] for j, v in enumerate(row)] for i, row in enumerate(B)]
    scaled, P = step.scaled(powers), symmetric(P)
    multipliers = (s * split_scaling(scaling)[1][:n]) ** 2
    assert is_proved(scaled, s * s, P, P, multipliers)
    assert is_definite(exact(P))
    form = (scaled.K, scaled.least, scaled.largest, s * s, P, P, multipliers)
    assert is_definite(exact_form(A, B, *form))


def test_loops_that_some_slopes_break_are_never_proved():
    n_broken, n_proved = 0, 0
    for seed in range(150):
        step, scaling = loop_parts(*small_loop(seed))
        corners = np.array(list(product([0.0, 1.0], repeat=len(step.K))))
        maps = step.A + step.B @ (corners[:, :, None] * step.K)
        proved = contraction(step, 1.0, scaling) is not None
        n_proved += proved
        if np.abs(np.linalg.eigvals(maps)).max() > 1 + 1e-12:
            n_broken += 1
            assert not proved
    assert n_broken > 30
    assert n_proved > 30


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("include_input", [False, True])
def test_loops_that_moduli_do_not_prove_come_to_rest(include_input):
    n_proved = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        res = build_reservoir(
            40, 1, in_degree=8, spectral_radius=0.5, leak_rate=0.7, random_state=seed
        )
        coef = 0.5 * rng.standard_normal((1, 40 + include_input)) / np.sqrt(40)
        readout = (coef, np.array([0.1]))
        options = {"include_input": include_input}
        assert not certify_loop(res, readout, method="max_norm", **options)
        found = certify_loop(res, readout, **options)
        n_proved += found.holds
        if not found.holds:
            continue
        assert found.method == "lyapunov"
        assert found.weights.shape == (41, 41)
        assert certify_loop(res, readout, clip=(-50, 50), **options).method == "lyapunov"
        assert not certify_loop(res, readout, clip=(-0.1, 0.1), method="lyapunov", **options)
        # the distance of two loops shrinks at the certified rate, in the certified norm
        runs = []
        for _ in range(2):
            start = {
                "initial_state": rng.uniform(-1, 1, 40),
                "initial_output": rng.uniform(-3, 3, 1),
            }
            state, output = start["initial_state"], start["initial_output"]
            path = []
            for _ in range(40):
                y, state = run_closed_loop(
                    res,
                    readout,
                    1,
                    initial_state=state,
                    initial_output=output,
                    include_input=include_input,
                    engine="numpy",
                )
                output = y[-1]
                path.append(np.append(state, output))
            runs.append(path)
        e = np.subtract(*runs)[10:]
        sizes = np.sqrt(((e @ found.weights) * e).sum(axis=1))
        assert (sizes[1:] <= found.rate * sizes[:-1] * (1 + 1e-6) + 1e-13).all()
    assert n_proved >= 2


def test_a_loop_of_too_many_units_raises():
    res = Reservoir(np.eye(1000) * 0.1, np.ones((1000, 1)), np.zeros(1000))
    readout = (np.full((1, 1000), 1e-5), [0.0])
    with pytest.raises(ValueError, match=r"n_units \+ n_outputs = 1001.*up to 1000"):
        certify_loop(res, readout, include_input=False, method="lyapunov")
    assert certify_loop(res, readout, include_input=False).method == "max_norm"
