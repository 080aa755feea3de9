"""Certificates: proofs against attacks, exact arithmetic, rounding, errors."""

import os
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import certificate_fuzz
from reservoir import ESNRegressor
from reservoir.activations import ACTIVATIONS, Activation, Enclosure
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, run_closed_loop, run_many
from reservoir.stability import (
    UnboundedActivationError,
    certify,
    certify_cycle,
    certify_loop,
    critical_bias,
    drive_range,
    find_limit_cycle,
    stable_bias,
)
from reservoir.stability.proofs import _certify, _two_norm
from reservoir.stability.proofs._boxes import Box, interval_box
from reservoir.stability.proofs._cycle_rates import _Window
from reservoir.stability.proofs._interval_network import read_network
from reservoir.stability.proofs._max_norm import perron_bound
from reservoir.stability.proofs._series_rate import _Series, series_rate
from reservoir.stability.proofs._two_norm import norm_bound, perron_scaling
from reservoir.stability.proofs._zonotopes import zonotope_box

pytestmark = [pytest.mark.one_engine, pytest.mark.usefixtures("short_searches")]


@cache
def network(seed, n=30, radius=1.2, scaling=0.3, **params):
    """A reservoir with a designed bias, certified for inputs within 1 by the maximum norm."""
    res = build_reservoir(
        n, 1, spectral_radius=radius, input_scaling=scaling, random_state=seed, **params
    )
    low, high = drive_range(res, -1.0, 1.0)
    options = {"leak_rate": res.leak_rate, "activation": res.activation, "random_state": seed}
    return replace(res, bias=stable_bias(res.W, low, high, method="max_norm", **options)), low, high


# --- enclosures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", "logistic"])
@pytest.mark.parametrize("seed", range(5))
def test_enclosures_hold_the_function_its_slope_and_its_band(name, seed):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(seed)
    activation = ACTIVATIONS[name]
    low = rng.standard_normal(60) * 10.0 ** rng.uniform(-8, 2, 60)
    width = np.where(rng.random(60) < 0.2, 0.0, 10.0 ** rng.uniform(-13, 2, 60))
    high = low + width
    values = activation.enclosure.values(low, high)
    slopes = activation.enclosure.slopes(low, high)
    slope, middle, radius = activation.enclosure.lines(low, high)
    with mpmath.workdps(50):
        for i in range(60):
            for share in (0.0, 0.3, 0.5, 1.0):
                z = mpmath.mpf(low[i]) + share * (mpmath.mpf(high[i]) - mpmath.mpf(low[i]))
                h = mpmath.tanh(z) if name == "tanh" else 1 / (1 + mpmath.exp(-z))
                d = 1 - h**2 if name == "tanh" else h * (1 - h)
                assert values[0][i] <= h <= values[1][i]
                assert slopes[0][i] <= d <= slopes[1][i]
                assert abs(h - slope[i] * z - middle[i]) <= radius[i]


def test_bands_without_chords_hold_the_function_too():
    tanh = ACTIVATIONS["tanh"].enclosure
    plain = Enclosure(tanh.low, tanh.high, tanh.values, tanh.slopes)
    low, high = np.array([-3.0, -0.1, 0.5]), np.array([2.0, 0.2, 4.0])
    slope, middle, radius = plain.lines(low, high)
    z = low + (high - low) * np.linspace(0, 1, 101)[:, None]
    assert (np.abs(np.tanh(z) - slope * z - middle) <= radius).all()
    assert (radius >= tanh.lines(low, high)[2]).all()  # the chords are tighter


# --- boxes --------------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("leak", [1.0, 0.3, "units"])
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_trajectories_stay_in_the_box_and_come_into_it(leak, activation):
    rng = np.random.default_rng(3)
    leaks = rng.uniform(0.1, 1, 20) if leak == "units" else leak
    res = build_reservoir(
        20, 2, spectral_radius=1.3, leak_rate=leaks, activation=activation, random_state=1
    )
    low, high = drive_range(res, [-1.0, 0.0], [0.5, 2.0])
    certificate = certify(res, low, high)
    X = rng.uniform([-1.0, 0.0], [0.5, 2.0], (500, 2))
    inside = certificate.box[0] + rng.random((10, 20)) * (certificate.box[1] - certificate.box[0])
    for states in run_many(res, [X] * 10, initial_states=inside):
        assert (states >= certificate.box[0]).all()
        assert (states <= certificate.box[1]).all()
    far = run(res, np.tile(X, (3, 1)), initial_state=np.full(20, 7.0))[-1]
    assert (far >= certificate.box[0] - 1e-9).all()
    assert (far <= certificate.box[1] + 1e-9).all()


def column_sums(network, box):
    """A toy proof: differences shrink in the sum of moduli if columns of diag(d)|W| sum below 1."""
    r = float((box.largest_slope[:, None] * network.A).sum(axis=0).max()) * (1 + 1e-12)
    return network.leaky_rate(r), None


def test_a_proof_is_a_function_and_a_line_in_the_registry(monkeypatch):
    # as the recipe in docs/extending.md says
    proof = _certify.Proof("toy: contraction in the sum of moduli", column_sums, dense=False)
    monkeypatch.setitem(_certify.PROOFS, "column_sums", proof)
    res = Reservoir([[0.0, 0.0], [0.9, 0.0]], np.ones((2, 1)), np.zeros(2))
    found = certify(res, -1.0, 1.0, method="column_sums")
    assert (found.holds, found.method, found.theorem) == (True, "column_sums", proof.theorem)
    assert found.rate == pytest.approx(0.9)
    assert found.resolution is None  # no maximum norm
    strong = replace(res, W=np.array([[0.0, 0.0], [1.1, 0.0]]))
    assert not certify(strong, -1.0, 1.0, method="column_sums")
    assert certify(strong, -1.0, 1.0).method == "max_norm"  # a nilpotent W; "auto" tries all


def test_a_box_for_one_unit_is_the_interval_of_its_fixed_points():
    net = read_network(Reservoir([[2.0]], [[1.0]], [1.5]), -0.2, 0.3)
    box = interval_box(net)
    for drive, bound in ((-0.2, box.low), (0.3, box.high)):
        x = 0.9
        for _ in range(500):
            x = np.tanh(2 * x + 1.5 + drive)
        assert bound == pytest.approx(x, abs=1e-8)


@pytest.mark.parametrize("leak", [1.0, 0.4, "units"])
def test_zonotopes_hold_the_trajectories_and_never_widen(leak):
    rng = np.random.default_rng(0)
    leaks = rng.uniform(0.3, 1, 12) if leak == "units" else leak
    res = build_reservoir(
        12, 1, in_degree=12, spectral_radius=1.1, leak_rate=leaks, input_scaling=0.3, random_state=2
    )
    res = replace(res, bias=rng.choice([-1, 1], 12) * 0.5 * abs(res.W).sum(axis=1))
    low, high = drive_range(res, -1, 1)
    net = read_network(res, low, high)
    box = interval_box(net)
    shared = np.zeros(12), res.W_in
    for inputs in (None, shared):
        narrow = zonotope_box(net, box, inputs)
        assert (narrow.low >= box.low).all()
        assert (narrow.high <= box.high).all()
        assert (narrow.z_low >= box.z_low).all()
        for u in (np.ones((400, 1)), -np.ones((400, 1)), rng.uniform(-1, 1, (4000, 1))):
            states = run(res, u, initial_state=rng.uniform(-1, 1, 12))[300:]
            assert (states >= narrow.low - 1e-9).all()
            assert (states <= narrow.high + 1e-9).all()
    assert (zonotope_box(net, box, shared).z_high - box.z_high).sum() < -0.1  # and they do narrow


def test_one_step_of_the_box_holds_the_exact_image():
    # drives and biases that cancel: what is left of z is rounding, and the box must hold it
    rng = np.random.default_rng(0)
    for size in (1.0, 1e5, 1e10):
        for n in (1, 3, 20):
            W = rng.standard_normal((n, n))
            p = size * rng.standard_normal(n)
            b = -p + rng.standard_normal(n)
            net = read_network(Reservoir(W, np.eye(n), b), p, p)
            box = interval_box(net, max_iter=1)
            for i in range(n):
                z = Fraction(b[i]) + Fraction(p[i])
                reach = sum(abs(Fraction(w)) for w in W[i])
                assert Fraction(box.z_low[i]) <= z - reach
                assert z + reach <= Fraction(box.z_high[i])


def test_the_tube_holds_the_rounding_of_the_drive():
    inputs = np.array([[1.0, 1.0, 1e-3]])
    W_in = np.array([[1e10, -1e10, 1.0]])
    res = Reservoir([[0.5]], W_in, [0.0])
    found = certify_cycle(res, inputs)
    exact = float(sum(Fraction(w) * Fraction(u) for w, u in zip(W_in[0], inputs[0], strict=True)))
    x = 0.0
    for _ in range(200):
        x = np.tanh(0.5 * x + exact)
    assert found.box[0, 0, 0] < x < found.box[0, 1, 0]
    assert np.ptp(found.box) > 1e-6  # it does not pretend to know the sum better


# --- bounds of radius and norm ------------------------------------------------------------------


@pytest.mark.fast_cases(10)  # three of them find a margin that is missing
@pytest.mark.parametrize("seed", range(10))
def test_perron_bound_is_above_the_radius_and_close(seed):
    rng = np.random.default_rng(seed)
    M = np.abs(rng.standard_normal((20, 20))) * (rng.random((20, 20)) < 0.4)
    radius = np.abs(np.linalg.eigvals(M)).max()
    bound, v = perron_bound(sp.csr_array(M))
    assert (v > 0).all()
    exact = [Fraction(x) for x in v]
    for row, x in zip(M, exact, strict=True):  # no rounding: the margin is to cover all of it
        assert sum(Fraction(a) * y for a, y in zip(row, exact, strict=True)) <= Fraction(bound) * x
    assert radius <= bound * (1 + 1e-12)
    assert bound <= radius * 1.01


def test_perron_bound_of_feed_forward_networks():
    chain = 5.0 * np.eye(60, k=-1)  # radius 0, norm 5
    bound, v = perron_bound(chain)
    assert bound < 1
    assert (chain @ v <= bound * v).all()
    res = Reservoir(chain, np.ones((60, 1)), np.zeros(60))
    assert certify(res, -1.0, 1.0).holds


def test_a_scaling_may_span_more_than_doubles_hold():
    # a delay line: the two Perron vectors run in opposite directions, each over 280 orders
    n = 40
    M = 1e-8 * np.eye(n, k=-1) + 1e-30
    scaling = perron_scaling(M, np.geomspace(1e280, 1.0, n))
    assert np.isfinite(scaling).all()
    assert (scaling > 0).all()


@pytest.mark.parametrize("kind", ["random", "orthogonal", "rank one", "graded"])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_norm_bound_is_above_the_norm_and_close(kind, scale):
    rng = np.random.default_rng(1)
    B = rng.standard_normal((40, 40))
    if kind == "orthogonal":
        B = np.linalg.qr(B)[0]
    elif kind == "rank one":
        B = np.outer(B[0], B[1])
    elif kind == "graded":
        B = B * 10.0 ** -np.arange(40.0)
    B = B * scale
    norm = np.linalg.norm(B, 2)
    assert norm <= norm_bound(B) <= norm * (1 + 1e-5)
    assert norm_bound(B, below=norm / 2) == np.inf


# --- the methods against their slow, obvious versions -------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_the_maximum_norm_proves_the_radius_of_the_gains_times_the_moduli(seed):
    res, low, high = network(seed)
    found = certify(res, low, high, method="max_norm")
    M = found.gains[:, None] * abs(res.W).toarray()
    radius = np.abs(np.linalg.eigvals(M)).max()
    assert radius <= found.rate <= radius * 1.001
    assert (M @ found.weights <= found.rate * found.weights * (1 + 1e-12)).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_the_euclidean_norm_is_that_of_the_scaled_matrix(seed):
    res, low, high = network(seed)
    found = certify(res, low, high, method="two_norm")
    P, W = found.weights, res.W.toarray()
    norm = np.linalg.norm((P * found.gains)[:, None] * W / P, 2)
    assert norm <= found.rate <= norm * 1.001
    assert found.rate <= certify(res, low, high, method="max_norm").rate * (1 + 1e-3)


def naive_series(W, least, largest, leak, rate, n_terms=400):
    """The radius of sum_j |a D_r W J^j| rate^-(j+1)."""
    centre, radius = (least + largest) / 2, (largest - least) / 2
    J = (1 - leak) * np.eye(len(W)) + leak * centre[:, None] * W
    S, total = leak * radius[:, None] * W, 0.0
    for j in range(n_terms):
        total = total + np.abs(S) * rate ** -(j + 1.0)
        S = S @ J
    return np.abs(np.linalg.eigvals(total)).max()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", [1.0, 0.5])
def test_the_series_proves_no_more_than_the_whole_series_says(seed, leak):
    res, low, high = network(seed, leak_rate=leak)
    net = read_network(res, low, high)
    box = interval_box(net)
    rate = series_rate(net, box.least_slope, box.largest_slope, np.ones(30))
    decisive = naive_series(res.W.toarray(), box.least_slope, box.largest_slope, leak, 1.0)
    assert np.isfinite(rate) == (decisive < 1)  # no seed lies within rounding of the boundary
    if np.isfinite(rate):
        W = res.W.toarray()
        assert naive_series(W, box.least_slope, box.largest_slope, leak, rate) <= 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_series_of_one_unit_in_closed_form(seed):
    rng = np.random.default_rng(seed)
    w, a = rng.uniform(-3, 3), rng.choice([1.0, rng.uniform(0.2, 1)])
    c, r = rng.uniform(0.1, 0.5), rng.uniform(0.0, 0.1)
    rate = abs(1 - a + a * c * w) + a * r * abs(w)
    net = read_network(Reservoir([[w]], [[1.0]], [0.0], leak_rate=a), 0, 0)
    got = series_rate(net, np.array([c - r]), np.array([c + r]), np.ones(1))
    if rate >= 1:
        assert got == np.inf
    elif rate < 0.99 and rate ** (12 / a) < 0.02:  # the powers fade within the terms it takes
        assert rate * (1 - 1e-12) <= got <= rate * (1 + 1e-9)


def test_the_terms_of_the_series_hold_what_rounding_loses():
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    for leak in (1.0, 0.4):
        n = 5
        W = rng.standard_normal((n, n))
        W /= np.abs(np.linalg.eigvals(W)).max()
        net = read_network(Reservoir(W, np.eye(n), np.zeros(n), leak_rate=leak), 0, 0)
        least, largest = rng.uniform(0.3, 0.5, n), rng.uniform(0.5, 0.7, n)
        series, v = _Series(net, least, largest), rng.uniform(0.5, 2, n)
        rows, _ = series.terms(v, 30)
        with mpmath.workdps(60):
            a = mpmath.mpf(leak)
            middle = [
                (mpmath.mpf(x) + mpmath.mpf(y)) / 2 for x, y in zip(least, largest, strict=True)
            ]
            half = [
                (mpmath.mpf(y) - mpmath.mpf(x)) / 2 for x, y in zip(least, largest, strict=True)
            ]
            M = mpmath.matrix(W.tolist())
            J = mpmath.diag([1 - a] * n) + a * mpmath.diag(middle) * M
            S, power = a * mpmath.diag(half) * M, mpmath.eye(n)
            for row in rows[:-1]:
                exact = (S * power).apply(abs) * mpmath.matrix(v.tolist())
                assert all(exact[i] <= row[i] for i in range(n))
                power = J * power
            exact = power.apply(abs) * mpmath.matrix(v.tolist())
            assert all(exact[i] <= rows[-1][i] for i in range(n))


def test_the_factorised_matrix_leaves_room_for_all_rounding(monkeypatch):
    kept = []
    factor = _two_norm.linalg.cholesky
    monkeypatch.setattr(
        _two_norm.linalg, "cholesky", lambda M, **options: factor(kept.append(M.copy()) or M)
    )
    n = 40
    B = np.random.default_rng(0).standard_normal((n, n))
    theta = norm_bound(B)
    room = np.diag(theta**2 * np.eye(n) - B.T @ B - kept[-1])
    eps = np.finfo(float).eps
    assert (room >= 0.9 * (n + 8) * eps * ((B * B).sum() + n * theta**2)).all()


def test_with_slopes_of_one_the_conditions_on_the_weights_are_what_is_left():
    W = np.array([[0.5, 0.3], [-0.4, 0.2]])
    res = Reservoir(W, np.ones((2, 1)), np.zeros(2))
    found = certify(res, -1e3, 1e3)
    assert found.holds
    assert found.rate == pytest.approx(np.abs(np.linalg.eigvals(abs(W))).max(), rel=1e-3)
    rotation = 0.9 * np.array([[0.0, 1.0], [-1.0, 0.0]]) @ np.array([[0.8, -0.6], [0.6, 0.8]])
    found = certify(Reservoir(rotation, np.ones((2, 1)), np.zeros(2)), -1e3, 1e3)
    assert found.method == "two_norm"  # |W| has radius 1.26
    assert found.rate == pytest.approx(0.9, rel=1e-4)


# --- what is certified --------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1.2, 3.78, 10.0])
def test_for_one_unit_of_positive_gain_the_certificate_is_tight(gain):
    low, high = -0.3, 0.8
    for factor, holds in ((1.001, True), (0.999, False)):
        bias = factor * critical_bias(gain) - low
        for leak in (1.0, 0.2):
            unit = Reservoir([[gain]], [[1.0]], [bias], leak_rate=leak)
            assert certify(unit, low, high).holds == holds


@pytest.mark.slow
def test_radius_above_one_is_certified_at_300_units():
    res, low, high = network(0, n=300, radius=1.2)
    found = certify(res, low, high)
    assert found.holds
    assert bool(found)
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (200, 1))
    starts = rng.choice([-1.0, 1.0], (6, 300))
    ends = np.array([states[-1] for states in run_many(res, [X] * 6, initial_states=starts)])
    assert np.ptp(ends, axis=0).max() < 1e-6


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["max_norm", "two_norm"])
def test_differences_shrink_at_the_certified_rate_at_every_step(seed, method):
    res, low, high = network(seed, leak_rate=[1.0, 0.3][seed % 2])
    found = certify(res, low, high, method=method)
    assert found.holds
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (60, 1))
    starts = found.box[0] + rng.random((2, 30)) * (found.box[1] - found.box[0])
    first, second = run_many(res, [X] * 2, initial_states=starts)
    e = np.vstack([starts[0] - starts[1], first - second])
    if method == "max_norm":
        sizes = (np.abs(e) / found.weights).max(axis=1)
    else:
        sizes = np.linalg.norm(e * found.weights, axis=1)
    assert (sizes[1:] <= found.rate * sizes[:-1] + 1e-13 * sizes[0]).all()


def test_the_maximum_norm_holds_at_every_leak_or_at_none():
    res, low, high = network(2)
    plain = certify(res, low, high, method="max_norm")
    r = plain.rate
    for leak in (0.1, np.linspace(0.2, 0.9, 30)):
        leaky = certify(replace(res, leak_rate=leak), low, high, method="max_norm")
        assert leaky.rate == pytest.approx(1 - np.min(leak) * (1 - r))
        assert np.array_equal(leaky.box, plain.box)
    weak = replace(res, bias=0.5 * res.bias)
    assert not certify(weak, low, high, method="max_norm").holds
    assert not certify(replace(weak, leak_rate=0.1), low, high, method="max_norm").holds


def test_two_fixed_points_are_not_certified_and_one_is():
    W = np.full((2, 2), 1.5)
    for method in ("auto", "thorough"):
        assert not certify(Reservoir(W, np.eye(2), [-0.7199] * 2), 0, 0, method=method).holds
        # the true threshold is kappa+(3): the two units act as one
        for factor, holds in ((1.001, True), (0.999, False)):
            bias = np.full(2, -factor * critical_bias(3.0))
            assert certify(Reservoir(W, np.eye(2), bias), 0, 0, method=method).holds == holds


def test_logistic_units_are_tanh_units_in_disguise():
    res, low, high = network(1)
    res = replace(res, bias=0.9 * res.bias)
    W = 4 * res.W
    disguised = Reservoir(
        W, 2 * res.W_in, 2 * res.bias - W.sum(axis=1) / 2, activation="logistic", leak_rate=0.7
    )
    plain = replace(res, leak_rate=0.7)
    for method in ("max_norm", "two_norm", "series", "thorough"):
        one = certify(plain, low, high, method=method)
        other = certify(disguised, 2 * low, 2 * high, method=method)
        assert one.holds == other.holds
        if one.rate < np.inf:
            assert other.rate == pytest.approx(one.rate, rel=1e-6)
        assert np.allclose((1 + one.box) / 2, other.box, atol=1e-8)


@pytest.mark.slow
def test_other_activations_bring_their_own_enclosure():
    def values(low, high):
        error = 1e-15
        return 2 / np.pi * np.arctan(low) - error, 2 / np.pi * np.arctan(high) + error

    def slopes(low, high):
        nearest = np.where((low < 0) & (high > 0), 0, np.minimum(abs(low), abs(high)))
        farthest = np.maximum(abs(low), abs(high))
        scale = 2 / np.pi
        return scale / (1 + farthest**2) * (1 - 1e-14), scale / (1 + nearest**2) * (1 + 1e-14)

    def function(z, out=None):
        return np.multiply(2 / np.pi, np.arctan(z), out=out)

    def derivative(z):
        return 2 / np.pi / (1 + z**2)

    arctan = Activation(
        "arctan", function, derivative, 2 / np.pi, None, True, Enclosure(-1, 1, values, slopes)
    )
    W = np.array([[2.0, 0.5], [-0.5, 2.0]])
    assert not certify(Reservoir(W, np.eye(2), [0.0, 0.0], activation=arctan), -0.1, 0.1).holds
    for method in ("max_norm", "two_norm", "series", "thorough"):
        res = Reservoir(W, np.eye(2), [4.0, -4.0], activation=arctan)
        assert certify(res, -0.1, 0.1, method=method).holds
    bias = stable_bias(W, -0.1, 0.1, activation=arctan, random_state=0)
    assert certify(replace(res, bias=bias), -0.1, 0.1).holds


@pytest.mark.slow
def test_thorough_proves_what_auto_proves_and_more():
    more = 0
    for seed in range(12):
        res, low, high = network(seed, n=8, in_degree=8)
        for factor in (1.0, 0.85, 0.75, 0.65):
            scaled = replace(res, bias=factor * res.bias)
            auto = certify(scaled, low, high)
            thorough = certify(scaled, low, high, method="thorough", input_range=(-1, 1))
            assert thorough.holds >= auto.holds
            more += thorough.holds > auto.holds
    assert more >= 3


def test_shared_inputs_are_in_the_certificate():
    res, low, high = network(0)
    found = certify(res, low, high, input_range=(-1.0, 1.0))
    with pytest.raises(ValueError, match="drive must have 30 columns"):
        found.covers(np.zeros(3))
    with pytest.raises(ValueError, match=r"\(n_samples, 1\)"):
        found.covers_inputs(np.zeros((3, 2)))
    assert found.input_range.tolist() == [[-1.0], [1.0]]
    assert found.output_range is None
    assert found.covers(res.W_in[:, 0])
    assert not found.covers(1.01 * res.W_in[:, 0])
    assert not replace(found, holds=False).covers(res.W_in[:, 0])
    assert found.covers_inputs([[-1.0], [1.0]])
    assert not found.covers_inputs([[0.0], [1.001]])
    assert not replace(found, holds=False).covers_inputs([[0.0]])
    with pytest.raises(ValueError, match="has a range of the drive only"):
        certify(res, low, high).covers_inputs([[0.0]])
    with pytest.raises(ValueError, match="output_range if and only if"):
        certify(res, low, high, input_range=(-1, 1), output_range=(0, 1))
    with pytest.raises(ValueError, match=r"input_range\[0\]=1 exceeds"):
        certify(res, low, high, input_range=(1, -1))


def test_covers_raises_for_a_proof_of_shared_inputs():
    # two units of gain 1.031 whose drives oppose each other: certified for the one input, and two
    # responses at a corner of the drive's box that no input reaches
    W = np.array(
        [
            [0.44022011, -0.78190411, -1.00810288],
            [-0.28672191, 1.03191096, 1.34351186],
            [-0.87231227, 0.60078562, 0.41749478],
        ]
    )
    W_in = np.array([[1.24126537], [1.33819325], [-1.45534842]])
    res = Reservoir(W, W_in, [1.75927976, -2.09999122, -1.49136445])
    low, high = drive_range(res, -1, 1)
    found = certify(res, low, high, method="thorough", input_range=(-1, 1))
    assert found.holds
    assert found.shared
    assert found.weights is None
    assert not certify(res, low, high, method="thorough").holds
    corner = np.array([-1.24126537, 1.33819325, 1.45534842])
    x = np.random.default_rng(0).uniform(-1, 1, (3, 20))
    for _ in range(2000):
        x = np.tanh(W @ x + (corner + res.bias)[:, None])
    assert np.ptp(x, axis=1).max() > 1.9
    with pytest.raises(ValueError, match="covers_inputs"):
        found.covers(corner)
    assert found.covers_inputs([[1.0], [-1.0]])
    plain = certify(replace(res, bias=3 * res.bias), low, high, input_range=(-1, 1))
    assert not plain.shared  # the box suffices
    assert plain.covers(0.9 * corner)


def test_a_range_of_inputs_must_agree_with_the_drives():
    res = Reservoir([[2.0]], [[1.0]], [-1.0])
    for method in ("auto", "thorough"):
        with pytest.raises(ValueError, match="input_range exceeds drive_min"):
            certify(res, -0.1, 0.1, method=method, input_range=(-1, 1))
    found = certify(res, -1.0, 1.0, input_range=(-1, 1))  # exact ends, within rounding
    assert found.drive_max >= 1.0


def test_certificates_are_read_only():
    res, low, high = network(0)
    found = certify(res, low, high)
    for values in (found.box, found.gains, found.weights, found.drive_min):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0


def test_a_gain_of_one_is_not_certified_by_a_rate_of_one():
    for method in ("auto", "thorough", "two_norm", "series"):
        assert not certify(Reservoir([[1.0]], [[1.0]], [0.0]), 0, 0, method=method).holds


def test_huge_weights_and_drives_are_not_certified_and_raise_no_warning():
    for scale in (1e110, 1e160, 1.7e308):
        W = np.full((3, 3), scale)
        found = certify(Reservoir(W, np.eye(3), np.zeros(3)), -1, 1, method="thorough")
        assert not found.holds
        assert found.box.shape == (2, 3)
    found = certify(Reservoir(np.eye(3), np.eye(3), np.zeros(3)), -1e308, 1e308)
    assert not found.holds
    with pytest.raises(ValueError, match="overflows"):
        certify_cycle(Reservoir([[0.5]], [[1e200]], [0.0]), [[1e200]])
    with pytest.raises(ValueError, match="overflows"):
        drive_range(Reservoir([[0.5]], [[1e308]], [0.0]), -100, 100)
    with pytest.raises(ValueError, match="Scale W or the inputs down"):
        stable_bias([[2.0]], -1.7e308, 1.7e308)
    loud = certify_loop(
        Reservoir([[0.5]], [[1.0]], [0.0]), ([[1.7e308]], [0.0]), include_input=False
    )
    assert not loud.holds
    slow = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=1e-320)
    for method in ("auto", "thorough", "series"):
        certify(slow, -1, 1, method=method)
    # cancellation: a drive near minus the bias, with a rounding error that the box must hold
    found = certify(Reservoir([[2.0]], [[1.0]], [1e16]), -1e16, -1e16)
    assert not found.holds
    assert found.gains[0] == 1.0


def test_float32_reservoirs_are_read_in_double_precision():
    res, low, high = network(0)
    single = res.astype("float32")
    assert certify(single, low, high).rate == pytest.approx(certify(res, low, high).rate, rel=1e-4)


def test_feedback_weights_count_as_drive():
    rng = np.random.default_rng(0)
    res = Reservoir(
        0.5 * np.eye(4), rng.normal(size=(4, 2)), np.zeros(4), W_fb=rng.normal(size=(4, 1))
    )
    low, high = drive_range(res, -1, 1, feedback_low=0.0, feedback_high=2.0)
    u, y = rng.uniform(-1, 1, (1000, 2)), rng.uniform(0, 2, (1000, 1))
    p = u @ res.W_in.T + y @ res.W_fb.T
    assert (p >= low).all()
    assert (p <= high).all()
    assert low == pytest.approx(-abs(res.W_in).sum(axis=1) + 2 * np.minimum(res.W_fb[:, 0], 0))
    found = certify(res, low, high, input_range=(-1, 1), output_range=(0, 2), method="thorough")
    assert found.output_range.tolist() == [[0.0], [2.0]]
    with pytest.raises(ValueError, match="feedback_low and feedback_high"):
        drive_range(res, -1, 1)


# --- cycles -------------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["auto", "thorough", "series", "lyapunov"])
def test_certified_cycles_have_the_drives_period_and_attract_from_anywhere(seed, method):
    res, *_ = network(seed, n=20, leak_rate=[1.0, 0.5][seed % 2])
    period = 2 + seed
    inputs = np.random.default_rng(seed).uniform(-1, 1, (period, 1))
    found = certify_cycle(res, inputs, method=method)
    assert found.holds
    cycle = find_limit_cycle(res, inputs)
    assert cycle.states.shape == (period, 20)
    assert cycle.residual < 1e-12
    # asymptotically no faster than the slowest multiplier, no slower than the certificate
    assert np.abs(cycle.multipliers).max() <= found.rate**period * (1 + 1e-9)
    before = np.roll(cycle.states, 1, axis=0)
    assert (before >= found.box[:, 0] - 1e-9).all()
    assert (before <= found.box[:, 1] + 1e-9).all()
    rng = np.random.default_rng(seed)
    n_periods = int(np.ceil((np.log(1e-8) / np.log(found.rate) + 100) / period))
    drive = np.tile(inputs, (n_periods, 1))
    starts = rng.choice([-1.0, 1.0], (5, 20))
    for states in run_many(res, [drive] * 5, initial_states=starts):
        assert np.abs(states[-period:] - cycle.states).max() < 1e-6


@pytest.mark.slow
def test_a_cycle_is_certified_with_less_bias_than_all_inputs():
    res, low, high = network(0, n=20)
    inputs = np.array([[1.0], [-0.5], [0.2]])
    scales = np.linspace(0.3, 1.0, 15)
    least = {}
    for name, holds in {
        "all": lambda r: certify(r, low, high, method="max_norm").holds,
        "cycle": lambda r: certify_cycle(r, inputs).holds,
        "thorough": lambda r: certify_cycle(r, inputs, method="thorough").holds,
    }.items():
        least[name] = min(s for s in scales if holds(replace(res, bias=s * res.bias)))
    assert least["thorough"] <= least["cycle"] < least["all"]


def test_the_contraction_over_a_period_is_that_of_the_product():
    res, *_ = network(0, n=15, leak_rate=0.6)
    inputs = np.array([[1.0], [-0.5], [0.2], [0.0]])
    found = certify_cycle(res, inputs)
    product = np.eye(15)
    for gains in found.gains:
        product = (0.4 * np.eye(15) + 0.6 * gains[:, None] * abs(res.W).toarray()) @ product
    radius = np.abs(np.linalg.eigvals(product)).max()
    assert radius ** (1 / 4) <= found.rate <= radius ** (1 / 4) * 1.002


@pytest.mark.parametrize("method", ["auto", "series", "thorough"])
def test_the_rate_of_a_cycle_of_one_unit_in_closed_form(method):
    unit = Reservoir([[0.8]], [[1.0]], [0.3], leak_rate=0.5)
    found = certify_cycle(unit, [[1.0], [-0.5], [2.0]], method=method)
    assert found.rate == pytest.approx(np.prod(0.5 + 0.4 * found.gains) ** (1 / 3), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_windows_bound_every_product_of_jacobians(seed):
    rng = np.random.default_rng(seed)
    n, period = 4, 5
    res = Reservoir(rng.standard_normal((n, n)), np.eye(n), np.zeros(n), leak_rate=0.6)
    net = read_network(res, -1, 1)
    least = rng.uniform(0.0, 0.5, (period, n))
    largest = least + rng.uniform(0.0, 0.5, (period, n))
    zero = np.zeros(n)
    boxes = [Box(zero, zero, zero, zero, *slopes) for slopes in zip(least, largest, strict=True)]
    v = rng.uniform(0.5, 2, n)
    bound, reached = _Window(net, boxes).advance(v), 0.0
    for _ in range(300):
        e = v * rng.choice([-1.0, 1.0], n)
        for t in range(period):
            d = np.where(rng.random(n) < 0.5, least[t], largest[t])
            e = 0.4 * e + 0.6 * d * (res.W @ e)
        assert (np.abs(e) <= bound).all()
        reached = max(reached, np.max(np.abs(e) / bound))
    assert reached > 0.2


def test_two_cycles_are_not_certified():
    # constant drive, gain 3.78: two attractors below the critical bias
    for factor, holds in ((1.01, True), (0.99, False)):
        unit = Reservoir([[3.78]], [[1.0]], [factor * critical_bias(3.78)])
        for method in ("auto", "thorough", "series", "lyapunov"):
            assert certify_cycle(unit, [[0.0]], method=method).holds == holds
    # a 2-cycle of a unit of negative gain, T2
    for method in ("auto", "thorough", "series", "lyapunov"):
        unit = Reservoir([[-3.78]], [[1.0]], [2.0])
        assert not certify_cycle(unit, [[0.0]], method=method).holds


# --- closed loops -------------------------------------------------------------------------------


def loop(seed, gain, include_input, through_weights):
    rng = np.random.default_rng(seed)
    n, q = 6, 2
    W = rng.standard_normal((n, n))
    W *= 0.4 / np.abs(np.linalg.eigvals(abs(W))).max()
    W_in = rng.uniform(-1, 1, (n, 1 if through_weights else q)) * 0.5
    W_fb = rng.uniform(-1, 1, (n, q)) * 0.5 if through_weights else None
    res = Reservoir(W, W_in, rng.uniform(-0.5, 0.5, n), leak_rate=0.8, W_fb=W_fb)
    n_columns = n + (res.n_features if include_input else 0)
    coef = gain * rng.standard_normal((q, n_columns)) / n_columns
    return res, (coef, rng.uniform(-0.2, 0.2, q))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize("through_weights", [False, True])
@pytest.mark.parametrize("clip", [None, (-0.3, 0.4)])
def test_certified_loops_come_to_rest_at_one_point(include_input, through_weights, clip):
    certified = 0
    for seed in range(15):
        res, readout = loop(seed, 0.5 + 0.4 * seed, include_input, through_weights)
        exog = [0.3] if through_weights else None
        found = certify_loop(res, readout, include_input=include_input, exog=exog, clip=clip)
        certified += found.holds
        rng, ends = np.random.default_rng(seed), []
        if not found.holds:
            continue
        rows = np.full((500, 1), 0.3) if through_weights else None
        for _ in range(3):
            y, x = run_closed_loop(
                res,
                readout,
                500,
                initial_state=rng.choice([-1.0, 1.0], 6),
                initial_output=rng.uniform(-5, 5, 2),
                exog=rows,
                include_input=include_input,
                clip=clip,
            )
            ends.append(np.append(x, y[-1]))
        assert np.ptp(ends, axis=0).max() < 1e-8
        assert (ends[0] >= found.box[0] - 1e-9).all()
        assert (ends[0] <= found.box[1] + 1e-9).all()
    assert 3 <= certified <= 14


def test_a_generator_that_oscillates_is_never_certified_as_a_loop():
    series = np.sin(0.3 * np.arange(600))
    options = {"topology": "orthogonal", "spectral_radius": 0.99, "alpha": 1e-8}
    esn = ESNRegressor(50, bias="stable", random_state=0, **options)
    esn.fit(series[:-1, None], series[1:])
    assert esn.certificate_.holds  # it listens well
    assert np.ptp(esn.forecast(400)[300:]) > 1.5  # and goes on to oscillate
    assert not certify_loop(esn).holds


def test_the_readouts_own_feedthrough_is_part_of_the_loop():
    # W + W_in C is small, and the loop unstable all the same: y[t] = 2 y[t-1] + ...
    res = Reservoir(np.zeros((2, 2)), [[0.1], [0.1]], np.zeros(2))
    readout = (np.array([[0.1, 0.1, 2.0]]), np.zeros(1))
    found = certify_loop(res, readout, include_input=True)
    assert not found.holds
    assert np.isinf(found.box[:, -1]).all()  # nothing bounds the output
    with pytest.warns(RuntimeWarning, match="diverged"):
        run_closed_loop(res, readout, 2000, initial_output=[0.1], include_input=True)
    # with the outputs held where they are fed back they are bounded; it contracts where it is not
    assert np.isfinite(certify_loop(res, readout, include_input=True, clip=(-1, 1)).box).all()
    damped = (np.array([[0.1, 0.1, 0.5]]), np.zeros(1))
    assert certify_loop(res, damped, include_input=True).holds


@pytest.mark.parametrize(
    "args, options, message",
    [
        (([[1.0]],), {"include_input": True}, "reservoir must be"),
        ((None,), {}, "linear readout"),
        ((([[1.0, 2.0]], [0.0]),), {"include_input": False}, r"coef must have shape \(1, 1\)"),
        ((([[1.0]], [0.0]),), {}, "include_input is required"),
        ((([[np.nan]], [0.0]),), {"include_input": False}, "finite"),
        ((([[1.0]], [0.0]),), {"include_input": False, "clip": (1, 0)}, "low <= high"),
        ((([[1.0]], [0.0]),), {"include_input": False, "exog": [1.0]}, "exog"),
        ((([[1.0]], [0.0]),), {"include_input": False, "clip": 1.0}, r"pair \(low, high\)"),
        ((([[1.0]], [0.0]),), {"include_input": False, "clip": (0, 1, 2)}, r"pair \(low, high\)"),
        ((([[1.0]], [0.0, 1.0]),), {"include_input": False}, "intercept"),
        ((np.zeros((2, 0, 1)),), {"include_input": False}, "must not be empty"),
        ((np.tanh,), {"include_input": False}, "got a function"),
    ],
)
def test_bad_input_of_loops(args, options, message):
    res = Reservoir([[0.5]], [[1.0]], [0.0])
    first = [res] if message != "reservoir must be" else ["none"]
    with pytest.raises((TypeError, ValueError), match=message):
        certify_loop(*first, *args, **options)


def test_clipped_loops_move_inside_their_box():
    res = Reservoir([[0.2]], [[1.0]], [0.0])
    for clip in ((0.5, 3.0), (-0.2, 0.1), (-np.inf, 0.4), (-np.inf, np.inf)):
        found = certify_loop(res, ([[2.0]], [0.3]), include_input=False, clip=clip)
        for start in (-3.0, 0.0, 3.0):
            y, x = run_closed_loop(
                res, ([[2.0]], [0.3]), 500, initial_output=[start], initial_state=[1.0], clip=clip
            )
            assert found.box[0, 1] - 1e-9 <= y[-1, 0] <= found.box[1, 1] + 1e-9
            assert found.box[0, 0] - 1e-9 <= x[0] <= found.box[1, 0] + 1e-9


# --- the fuzz, and what is refused --------------------------------------------------------------


@pytest.mark.parametrize("n_networks", [40, pytest.param(800, marks=pytest.mark.sweep)])
def test_a_short_fuzz_finds_no_second_response(n_networks):
    messages, counts, closest = certificate_fuzz.fuzz(n_networks, seed=1)
    assert not messages
    assert min(counts.values()) > n_networks / 40
    assert closest > 0.999  # the attack reaches the certified rate, and does not pass it
    messages, counts = certificate_fuzz.fuzz_cycles(n_networks // 10, seed=1)
    assert not messages
    assert counts["max_norm"] > n_networks / 80


@pytest.mark.sweep
def test_the_fuzz_finds_no_second_response():
    """10,000 networks; RESERVOIR_FUZZ=1000000 for more."""
    n_networks = int(os.environ.get("RESERVOIR_FUZZ", "10000"))
    messages, counts, closest = certificate_fuzz.fuzz(n_networks)
    assert not messages
    assert sum(counts.values()) == n_networks
    assert closest > 0.999
    assert not certificate_fuzz.fuzz_cycles(n_networks // 10)[0]


@pytest.mark.parametrize("activation", ["relu", "identity", "softplus", "leaky_relu"])
def test_unbounded_activations_raise_where_a_box_is_needed(activation):
    res = Reservoir([[0.5]], [[1.0]], [0.0], activation=activation)
    for call in (
        lambda: certify_cycle(res, [[0.0]]),
        lambda: certify_loop(res, ([[1.0]], [0.0]), include_input=False),
        lambda: stable_bias([[0.5]], -1, 1, activation=activation),
    ):
        with pytest.raises(UnboundedActivationError, match=f"'{activation}' is unbounded.*'tanh'"):
            call()
    bounded = Activation("sine", np.sin, np.cos, 1.0, None, True)
    with pytest.raises(UnboundedActivationError, match="'sine' has no enclosure"):
        certify(replace(res, activation=bounded), -1, 1)


@pytest.mark.parametrize(
    "low, high, options, kind, message",
    [
        (1.0, 0.0, {}, ValueError, r"drive_min=1 exceeds drive_max=0 \(unit 0\)"),
        (np.nan, 0.0, {}, ValueError, "drive_min contains NaN"),
        (0.0, np.inf, {}, ValueError, "drive_max contains NaN or infinity"),
        ([0.0] * 3, 1.0, {}, ValueError, r"\(n_units=2,\); got \(3,\)"),
        (1j, 1.0, {}, TypeError, "real"),
        ("-1", 1.0, {}, TypeError, "drive_min must be real"),
        (None, 1.0, {}, TypeError, "drive_min and drive_max belong together"),
        ([[0.0], [1.0, 2.0]], 1.0, {}, ValueError, "rows of drive_min have different lengths"),
        (-1, 1, {"input_range": 5}, ValueError, r"input_range must be a pair \(low, high\)"),
        (-1, 1, {"input_range": (0, 1, 2)}, ValueError, "pair"),
        (-1, 1, {"input_range": ("a", 1)}, TypeError, r"input_range\[0\] must be real"),
        (0.0, 1.0, {"method": "norm"}, ValueError, "method='norm' is not known"),
    ],
)
def test_bad_input(low, high, options, kind, message):
    with pytest.raises(kind, match=message):
        certify(Reservoir(np.eye(2), np.eye(2), [0, 0]), low, high, **options)


def test_more_bad_input():
    res = Reservoir(np.eye(2), np.eye(2), [0, 0])
    with pytest.raises(
        TypeError, match="ESNRegressor has no reservoir_ before it is fitted: call fit first"
    ):
        certify(ESNRegressor(), -1, 1)
    with pytest.raises(TypeError, match=r"must be a reservoir\.dynamics\.Reservoir"):
        certify(np.eye(2), -1, 1)
    with pytest.raises(ValueError, match=r"inputs must have shape \(n_samples, 2\)"):
        certify_cycle(res, [[1.0]])
    with pytest.raises(ValueError, match="inputs has no rows"):
        certify_cycle(res, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="NaN"):
        certify_cycle(res, [[np.nan, 0.0]])
    with pytest.raises(ValueError, match="method='two_norm' is not known"):
        certify_cycle(res, [[1.0, 0.0]], method="two_norm")
    big = Reservoir(sp.eye_array(3001, format="csr"), np.ones((3001, 1)), np.zeros(3001))
    with pytest.raises(ValueError, match=r"n_units=3001.*up to 3000"):
        certify(big, -1, 1, method="series")
    assert not certify(big, -1, 1).holds
    with pytest.raises(ValueError, match="exceeds 500"):
        certify_cycle(big, [[0.0]], method="thorough")
    with pytest.raises(ValueError, match="exceeds 1000"):
        certify_cycle(big, [[0.0]], method="lyapunov")


def test_a_network_without_connections_is_certified_by_every_method():
    res = Reservoir(np.zeros((3, 3)), np.eye(3), np.zeros(3), leak_rate=0.5)
    for method in ("auto", "thorough", "max_norm", "two_norm", "series"):
        found = certify(res, -1.0, 1.0, method=method)
        assert found.holds
        assert found.rate == pytest.approx(0.5, abs=1e-6)
    for method in ("auto", "thorough", "series"):
        assert certify_cycle(res, np.zeros((2, 3)), method=method).rate == pytest.approx(0.5)
    # a short search of its rate
    assert 0.5 < certify_cycle(res, np.zeros((2, 3)), method="lyapunov").rate < 0.7
