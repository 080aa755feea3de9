"""Attack certificates: random small networks, adversarial drives, a search for a second response.

    python tests/helpers/certificate_fuzz.py [networks] [first seed]

Every network that is certified is driven from many states, by extreme, alternating and switching
drives, by one that is chosen at each step to make the activation as steep as it can be, and by one
that is chosen to make differences grow as much as they can. Where steps may differ in length,
short and long ones come in turn. Where a norm is certified to shrink, it
is measured at every step; what rounding leaves is measured in the end, of networks that amplify it.
"""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest finds `helpers`

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from helpers.quadratic_fuzz import draw_weights
from reservoir.activations import ACTIVATIONS
from reservoir.dynamics import Reservoir, run_many
from reservoir.stability import certify, certify_cycle, drive_range

METHODS = ("auto", "max_norm", "two_norm", "lyapunov", "series", "thorough")
NAMES = ("tanh", "logistic", "relu", "leaky_relu", "softplus", "identity")
SHARES = (0.6, 0.2, 0.05, 0.05, 0.05, 0.05)
BOUNDED = (0.75, 0.25, 0, 0, 0, 0)
N_STATES, N_STEPS, BATCH = 10, 400, 250


def random_weights(rng, n):
    if rng.random() < 0.5:
        return draw_weights(rng, 1, n)[1][0] * np.exp(rng.uniform(-1, 1.5))
    kind = rng.integers(8)
    W = rng.standard_normal((n, n))
    if kind == 1:
        W = rng.standard_t(1.0, (n, n))  # heavy tails
    elif kind == 2:
        W = np.abs(W)
    elif kind == 3:
        W = W - W.T
    elif kind == 4:
        W = rng.choice([-1.0, 1.0], (n, n))
    elif kind == 5:
        W = np.ones((n, n)) * rng.choice([-1.0, 1.0])
    elif kind == 6:
        W = np.roll(np.diag(rng.choice([-1.0, 1.0], n)), 1, axis=1) + 0.1 * W
    elif kind == 7:
        W = W * (rng.random((n, n)) < 0.5)
    radius = max(np.abs(np.linalg.eigvals(W)).max(), 1e-3)
    return W * np.exp(rng.uniform(np.log(0.4), np.log(6))) / radius


def random_network(rng, n, shares=SHARES):
    """Return a reservoir, the middle of its drive and the generators of its range.

    The drive is middle + G u with every |u_k| <= 1: a range for each unit, or inputs that the units
    share.
    """
    W = random_weights(rng, n)
    activation = rng.choice(NAMES, p=shares)
    if activation == "logistic":
        W = 4 * W
    leak = [1.0, rng.uniform(0.05, 1), 10 ** rng.uniform(-2, 0, n)][rng.integers(3)]
    half = np.abs(rng.standard_normal(n)) * rng.choice([0.0, 0.1, 0.5, 2.0])
    middle = rng.standard_normal(n) * rng.choice([0.0, 1.0])
    size = np.abs(W).sum(axis=1) * rng.uniform(0.2, 1.3) + half
    bias = rng.choice([-1.0, 1.0], n) * size - middle
    if rng.random() < 0.1:
        bias = np.zeros(n)
    if activation == "logistic":  # the shift that makes its centre tanh's
        bias = bias - W.sum(axis=1) / 2
    G = np.diag(half)
    if rng.random() < 0.5:
        G = np.zeros((n, n))
        G[:, : 1 + n // 3] = rng.standard_normal((n, 1 + n // 3)) * half[:, None]
    return Reservoir(W, G, bias + middle, leak_rate=leak, activation=activation), G


def certified(rng, reservoir, G, of_lengths=False):
    """Return the certificate by a method drawn at random; perhaps of steps of several lengths."""
    method = METHODS[rng.integers(len(METHODS))]
    steps = None
    if of_lengths and rng.random() < 0.3:
        equal = np.ptp(np.atleast_1d(reservoir.leak_rate)) == 0
        mixed = METHODS[:4] if equal else METHODS[:2]
        method = method if method in mixed else "auto"
        steps = tuple(np.sort(10 ** rng.uniform(-2, 1.5, 2)))
    low, high = drive_range(reservoir, -1.0, 1.0)
    shared = (-1.0, 1.0) if rng.random() < 0.7 else None
    return certify(reservoir, low, high, method=method, input_range=shared, step_range=steps)


def attack(batch):
    """Drive certified networks of one size; return what is wrong with each, and how close it came.

    A list of messages, and the largest ratio of observed to certified contraction per step.
    """
    n = batch[0][0].n_units
    W = np.stack([res.W for res, *_ in batch])[:, None]
    b = np.stack([res.bias for res, *_ in batch])[:, None]
    a = np.stack([np.broadcast_to(res.leak_rate, n) for res, *_ in batch])[:, None, None]
    G = np.stack([G for _, G, _ in batch])[:, None]
    sizes = (G * G).sum(axis=-2) + 1e-300
    certificates = [certificate for *_, certificate in batch]
    names = np.array([res.activation for res, *_ in batch])
    box = np.clip([certificate.box for certificate in certificates], -3, 3)
    rng = np.random.default_rng(len(batch))
    n_drives = 7
    X = box[:, :1, None] + (box[:, 1:, None] - box[:, :1, None]) * rng.random(
        (len(batch), n_drives, N_STATES, n)
    )
    corner = rng.random((len(batch), n_drives, 4, n)) < 0.5
    X[:, :, :4] = np.where(corner, box[:, 0, None, None], box[:, 1, None, None])
    X[:, :, -3:] = rng.uniform(-3, 3, (len(batch), n_drives, 3, n))  # outside the range, too
    lengths = np.array([[1.0, 1.0] if c.step_range is None else c.step_range for c in certificates])
    norm, scaled = _norms(certificates, n)
    rates = np.array([certificate.rate for certificate in certificates])
    worst = np.zeros(len(batch))
    inside = slice(0, N_STATES - 3)
    before = _lengths(X[:, :, inside], norm, scaled)
    for t in range(N_STEPS):
        Z = X @ np.swapaxes(W, -1, -2) + b[:, :, None]
        # slopes as large as they can be: inputs that bring z near zero
        near = -(Z[:, 4:].mean(axis=2)[:, :, None] @ G)[:, :, 0] / sizes
        one = np.ones((len(batch), 1, n))
        switch = rng.choice([-1.0, 1.0], (len(batch), 1, n if t % 5 else 1)) * one
        alternating = one if t % 2 else -one
        near = np.clip(near, -1, 1)
        # of some inputs the one after which the last drive's differences are largest
        tried = np.concatenate([-one, one, switch, near[:, :1], np.sign(near[:, 1:])], axis=1)
        after = Z[:, -1:] + tried[:, :, None] @ np.swapaxes(G, -1, -2)
        after = (1 - a) * X[:, -1:] + a * _values(names, after)
        growth = _lengths(after[:, :, inside], norm, scaled).max(axis=2).argmax(axis=1)
        greedy = tried[np.arange(len(batch)), growth][:, None]
        u = np.concatenate([-one, one, alternating, switch, near[:, :2], greedy], axis=1)
        Z += u[:, :, None] @ np.swapaxes(G, -1, -2)
        # steps that differ in length: the shortest and the longest in turn, or any between
        share = _shares(a, lengths[:, t % 2] if t < N_STEPS // 2 else rng.uniform(*lengths.T))
        X = (1 - share) * X + share * _values(names, Z)
        after = _lengths(X[:, :, inside], norm, scaled)
        # below, the rounding of the states decides: 1e-15 of the larger ones
        size = np.maximum(np.abs(X).max(axis=(1, 2, 3)), 1.0)[:, None, None]
        big = before > 1e-6 * size
        ratio = np.where(big, (after - 1e-14 * size) / np.where(big, before, 1.0), 0.0)
        worst = np.maximum(worst, ratio.max(axis=(1, 2)))
        before = after
    # those from outside may still be passing where a fixed point has just vanished
    spread = np.ptp(X[:, :, inside], axis=2).max(axis=(1, 2))
    messages = []
    for i, certificate in enumerate(certificates):
        if scaled[i] and worst[i] > rates[i] * (1 + 1e-8):
            messages.append(f"{certificate}: one step by {worst[i]}: {batch[i][0].W!r}")
        # differences start below 10, and the constants of small networks are far below 1e6, but for
        # chains of huge weights, whose norms say how large theirs are
        constant = 1e6 if certificate.weights is None else _constant(certificate)
        if rates[i] ** N_STEPS * 10 * constant < 1e-3 and spread[i] > 1e-3 * float(size[i, 0, 0]):
            messages.append(f"{certificate}: two responses, {spread[i]} apart: {batch[i][0].W!r}")
    return messages, np.where(scaled, worst / rates, 0.0)


def _shares(a, dt):
    """Return the shares that units of leak rates a move by in each network's step of length dt."""
    dt = dt[:, None, None, None]
    with np.errstate(divide="ignore"):
        return np.where(dt == 1, a, -np.expm1(dt * np.log1p(-a)))


def _values(names, Z):
    """Return each network's activation of its pre-activations."""
    values = np.empty_like(Z)
    for name in np.unique(names):
        values[names == name] = ACTIVATIONS[name].function(Z[names == name])
    return values


def _norms(certificates, n):
    """Return for each certificate F of its norm |F e|, if that is the largest entry (0) or the
    Euclidean length (1), and whether it shrinks."""
    factors, euclidean, shrinks = np.tile(np.eye(n), (len(certificates), 1, 1)), [], []
    for i, certificate in enumerate(certificates):
        equal = certificate.method in ("max_norm", "lyapunov") or certificate.equal_leak
        shrinks.append(certificate.weights is not None and equal)
        euclidean.append(certificate.method in ("two_norm", "lyapunov"))
        if certificate.weights is not None:
            factors[i] = _factor(certificate)
    factors /= np.abs(factors).max(axis=(1, 2), keepdims=True)
    return (factors[:, None], np.array(euclidean)[:, None, None]), np.array(shrinks)


def _factor(certificate):
    """Return F of the norm |F e|, the largest entry or the Euclidean length, of a certificate."""
    weights = certificate.weights
    if certificate.method == "lyapunov":
        return np.linalg.cholesky(weights).T
    return np.diag(weights if certificate.method == "two_norm" else 1 / weights)


def _constant(certificate):
    """Return the constant that goes with the rate of a certificate, 1e6 at least."""
    return max(1e6, np.linalg.cond(_factor(certificate)))


def _lengths(X, norm, scaled):
    factors, euclidean = norm
    e = (X[:, :, 1:] - X[:, :, :1]) @ np.swapaxes(factors, -1, -2)
    return np.where(euclidean, np.sqrt((e * e).sum(axis=-1)), np.abs(e).max(axis=-1))


class _Certified:
    """A certificate, and whether all leak rates of its network are equal."""

    def __init__(self, certificate, equal_leak):
        self._certificate, self.equal_leak = certificate, equal_leak

    def __getattr__(self, name):
        return getattr(self._certificate, name)

    def __repr__(self):
        return repr(self._certificate)


def fuzz(n_networks, seed=0):
    """Return the messages, the counts by method and the closest approach to the certified rate."""
    rng = np.random.default_rng(seed)
    messages, counts, closest = [], Counter(), 0.0
    for start in range(0, n_networks, BATCH):
        n = int(rng.integers(1, 7))
        batch = []
        for _ in range(min(BATCH, n_networks - start)):
            reservoir, G = random_network(rng, n)
            certificate = certified(rng, reservoir, G, of_lengths=True)
            counts[certificate.method if certificate else "not certified"] += 1
            if certificate:
                equal = np.ptp(np.atleast_1d(reservoir.leak_rate)) == 0
                batch.append((reservoir, G, _Certified(certificate, equal)))
        if batch:
            found, ratios = attack(batch)
            messages += found
            closest = max(closest, float(ratios.max()))
    return messages, counts, closest


def fuzz_cycles(n_networks, seed=0):
    """The same for one periodic drive: all starts must meet, at the certified rate per period."""
    rng = np.random.default_rng([seed, 1])
    messages, counts = [], Counter()
    for _ in range(n_networks):
        n, period = int(rng.integers(1, 6)), int(rng.integers(1, 7))
        reservoir, _ = random_network(rng, n, BOUNDED)
        reservoir = replace(reservoir, bias=reservoir.bias * rng.uniform(0.1, 1))
        inputs = rng.choice([-1.0, 1.0, 0.3], (period, n))
        method = ("auto", "max_norm", "series", "lyapunov", "thorough")[rng.integers(5)]
        certificate = certify_cycle(reservoir, inputs, method=method)
        counts[certificate.method if certificate else "not certified"] += 1
        if not certificate:
            continue
        n_steps = np.log(1e-10) / np.log(certificate.rate)
        if n_steps > 5000:
            continue
        # without weights the rate is of the long run: narrowed boxes take some steps to come into
        n_periods = int(n_steps / period) + (2 if certificate.weights is not None else 30)
        low, high = certificate.box[0]  # the rate counts from inside
        starts = low + (high - low) * rng.random((12, n))
        starts[:6] = np.where(starts[:6] > (low + high) / 2, high, low)
        drive = np.tile(inputs, (n_periods, 1))
        ends = [x[-period:] for x in run_many(reservoir, [drive] * 12, initial_states=starts)]
        spread = np.ptp(ends, axis=0).max()
        states = ends[0][np.arange(-1, period - 1)]  # the state before each step
        outside = max(
            np.max(certificate.box[:, 0] - states), np.max(states - certificate.box[:, 1])
        )
        if spread > 1e-3 or outside > 1e-6:
            messages.append(f"{certificate}: {spread} apart, {outside} outside: {reservoir.W!r}")
    return messages, counts


def steep_weights(rng, n):
    """Weights whose certificates have spread-out weights, or a rate near 1."""
    W = rng.standard_normal((n, n))
    kind = rng.integers(6)
    if kind == 0:  # a delay line
        return np.eye(n, k=-1) * rng.uniform(1, 12) * rng.choice([-1, 1], (n, 1))
    if kind == 1:  # feed-forward
        return np.tril(W, -1) * rng.uniform(0.5, 6)
    if kind == 2:
        return np.linalg.qr(W)[0] * rng.choice([0.9, 0.99, 0.999, 0.99999])
    if kind == 3:  # graded
        W = W * np.exp(rng.uniform(-4, 4, (n, 1)) - rng.uniform(-4, 4, n))
        return W * (
            rng.choice([0.5, 0.9, 0.99, 0.999]) / np.abs(np.linalg.eigvals(np.abs(W))).max()
        )
    if kind == 4:
        return np.tril(W, -1) * 3 + np.diag(rng.uniform(-0.99, 0.99, n))
    return W * rng.uniform(1, 3) / np.sqrt(n)


def steep_network(rng):
    """Return a network that amplifies what rounding does; half of them rest where it is steep."""
    n, m = int(rng.integers(1, 16)), int(rng.integers(1, 4))
    W = steep_weights(rng, n)
    W_in = rng.standard_normal((n, m)) * rng.choice([0, 1e-20, 0.1, 1, 10])
    bias = rng.choice([-1, 1], n) * np.abs(W).sum(axis=1) * rng.uniform(0.0, 1.5)
    if rng.random() < 0.5:
        x = rng.uniform(-0.9, 0.9, n) * (rng.random(n) < 0.3)
        bias = np.arctanh(x) - W @ x
    leak = [1.0, rng.uniform(0.02, 1), rng.uniform(0.02, 1, n), 10 ** rng.uniform(-3, 0)]
    reservoir = Reservoir(W, W_in, bias, leak_rate=leak[rng.integers(4)])
    return reservoir.astype(("float64", "float32")[rng.integers(2)])


def lasting_difference(rng, reservoir, certificate, inputs, engine, longest=8000):
    """Return how far apart random starts stay; None if it takes too long until the rate is through.

    By then what is left of the starts, by the certified rate and the weights' ratio, is a hundredth
    of the resolution. The rate counts from inside the box, which has no date of arrival: where the
    states are too far apart they are given four times as long.
    """
    ratio = np.linalg.cond(_factor(certificate))
    transient = np.log(certificate.resolution / (400 * ratio)) / np.log(certificate.rate)
    n_steps = int(max(2 * transient, 500))
    if n_steps > longest:
        return None
    starts = rng.uniform(-1, 1, (16, reservoir.n_units))
    starts[:4] = np.sign(starts[:4])
    for length in (n_steps, 4 * n_steps):
        drive = np.tile(inputs, (length // len(inputs) + 1, 1))
        runs = run_many(reservoir, [drive] * 16, initial_states=starts, engine=engine)
        seen = float(np.ptp([states[len(drive) // 2 :] for states in runs], axis=0).max())
        if seen <= certificate.resolution:
            break
    return seen


def fuzz_rounding(n_networks, seed=0, engines=("numpy", "numba")):
    """Random starts must come as near as `Certificate.resolution` says, in floating point."""
    rng = np.random.default_rng([seed, 2])
    messages, counts, closest = [], Counter(), 0.0
    for _ in range(n_networks):
        reservoir, period = steep_network(rng), int(rng.integers(1, 6))
        inputs = rng.choice([-1.0, 1.0, 0.3], (period, reservoir.n_features))
        if rng.random() < 0.3:
            method = ("auto", "lyapunov")[rng.integers(2)]
            certificate = certify_cycle(reservoir, inputs, method=method)
        else:
            method = ("auto", "max_norm", "two_norm", "lyapunov")[rng.integers(4)]
            certificate = certify(reservoir, *drive_range(reservoir, -1.0, 1.0), method=method)
            if rng.random() < 0.5:
                inputs = rng.uniform(-1, 1, (500, reservoir.n_features))
        if certificate.resolution is None:
            counts["no resolution" if certificate else "not certified"] += 1
            continue
        engine = engines[rng.integers(len(engines))]
        seen = lasting_difference(rng, reservoir, certificate, inputs, engine)
        counts["too slow" if seen is None else f"{certificate.method}, {reservoir.dtype}"] += 1
        if seen is not None:
            closest = max(closest, seen / certificate.resolution)
            if seen > certificate.resolution:
                messages.append(f"{certificate}: {seen} apart, {engine}: {reservoir.W!r}")
    return messages, counts, closest


DISTANCES = np.array([1e-1, 1e-3, 1e-6, 1e-9])


def differences(rng, reservoir, drives):
    """Yield the largest difference of states, step by step, over starts and rows of drives.

    `drives(t, X)` returns what each row of starts receives besides the bias: (rows, n_units).
    Starts are corners of the activation's range and states inside it.
    """
    n = reservoir.n_units
    logistic = reservoir.activation == "logistic"
    low, f = (0.0, expit) if logistic else (-1.0, np.tanh)
    rows = len(drives(0, np.zeros((1, 1, n))))
    X = np.where(rng.random((rows, 12, n)) < 0.5, low, 1.0)
    X[:, 0], X[:, 1] = low, 1.0
    X[:, -3:] = rng.uniform(low, 1, (rows, 3, n))
    leak, t = reservoir.leak_rate, 0
    W = reservoir.W.toarray() if sp.issparse(reservoir.W) else reservoir.W
    while True:
        yield float(np.ptp(X, axis=1).max())
        Z = X @ W.T + reservoir.bias + drives(t, X)[:, None]
        X = (1 - leak) * X + leak * f(Z)
        t += 1


def too_few_steps(rng, reservoir, certificate, drives, longest=2000):
    """Return what is wrong with `steps_to`, if anything, and by how much it exceeds what is seen.

    None in place of that where no number is proved, or where it is too large to be tried.
    """
    distances = DISTANCES[(certificate.resolution or 0.0) <= DISTANCES]
    try:
        steps = certificate.steps_to(distances)
    except ValueError as error:
        return None if "No number of steps" in str(error) else str(error), None
    if not len(steps) or steps.max() > longest:
        return None, None
    needed = np.zeros(len(steps))
    for t, apart in enumerate(differences(rng, reservoir, drives)):
        if (apart > distances[steps <= t] * (1 + 1e-9) + 1e-13).any():
            return f"{certificate}: {apart} apart after {t} steps, proved {steps}", None
        needed[apart > distances] = t + 1
        if t == steps.max():
            break
    return None, float((steps / np.maximum(needed, 1))[-1])


def fuzz_steps(n_networks, seed=0, longest=2000):
    """No start may take more steps than `Certificate.steps_to` says, whatever the inputs."""
    rng = np.random.default_rng([seed, 3])
    messages, excess = [], {}
    for k in range(n_networks):
        n = int(rng.integers(1, 7))
        reservoir, G = random_network(rng, n, BOUNDED)
        if k % 3:
            certificate = certified(rng, reservoir, G)

            def drives(t, X, G=G, n=n):  # extreme, alternating, switching, and as steep as can be
                near = np.clip(-(X[-1] @ G).mean(axis=0) / ((G * G).sum(axis=0) + 1e-300), -1, 1)
                one = np.ones(n)
                u = [-one, one, one * (-1) ** t, rng.choice([-1.0, 1.0], n), near]
                return np.array(u) @ G.T
        else:
            reservoir = replace(reservoir, bias=reservoir.bias * rng.uniform(0.1, 1))
            inputs = rng.choice([-1.0, 1.0, 0.3], (int(rng.integers(1, 6)), n))
            method = ("auto", "max_norm", "series", "thorough", "lyapunov")[rng.integers(5)]
            certificate = certify_cycle(reservoir, inputs, method=method)
            rows = inputs @ reservoir.W_in.T

            def drives(t, X, rows=rows):  # all phases that a run may start at
                return np.roll(rows, -t, axis=0)

        if certificate:
            message, ratio = too_few_steps(rng, reservoir, certificate, drives, longest)
            messages += [] if message is None else [message]
            positive = "W >= 0" if (reservoir.W >= 0).all() else "any W"
            if ratio is not None:
                excess.setdefault(f"{certificate.method}, {positive}", []).append(ratio)
    return messages, excess


if __name__ == "__main__":
    n_networks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    messages, counts, closest = fuzz(n_networks, seed)
    cycle_messages, cycle_counts = fuzz_cycles(n_networks // 10, seed)
    print(f"cycles: {dict(cycle_counts)}; {len(cycle_messages)} violations")
    rounding_messages, rounding_counts, nearest = fuzz_rounding(n_networks // 10, seed)
    print(f"rounding: {dict(rounding_counts)}; {len(rounding_messages)} violations; ", end="")
    print(f"observed / certified resolution at most {nearest:.6f}")
    step_messages, excess = fuzz_steps(n_networks // 10, seed)
    summary = {name: f"{np.median(r):.2f} of {len(r)}" for name, r in excess.items()}
    print(f"steps: {len(step_messages)} violations; proved / needed, medians: {summary}")
    messages += cycle_messages + rounding_messages + step_messages
    print("\n".join(messages[:20]))
    print(f"{n_networks} networks from seed {seed}: {dict(counts)}")
    print(f"{len(messages)} violations; observed / certified contraction at most {closest:.6f}")
    sys.exit(bool(messages))
