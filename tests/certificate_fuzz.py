"""Attack certificates: random small networks, adversarial drives, a search for a second response.

    python tests/certificate_fuzz.py [networks] [first seed]

Every network that is certified is driven from many states, by extreme, alternating and switching
drives, and by one that is chosen at each step to make the activation as steep as it can be. Where a
norm is certified to shrink, it is measured at every step.
"""

import sys
from collections import Counter

import numpy as np
from scipy.special import expit

from reservoir.dynamics import Reservoir
from reservoir.stability import certify

METHODS = ("auto", "max_norm", "two_norm", "series", "thorough")
N_STATES, N_STEPS, BATCH = 10, 400, 250


def random_weights(rng, n):
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


def random_network(rng, n):
    """Return a reservoir and the range of its drive; every second one may just be certified."""
    W = random_weights(rng, n)
    logistic = rng.random() < 0.25
    if logistic:
        W = 4 * W
    leak = [1.0, rng.uniform(0.05, 1), rng.uniform(0.05, 1, n)][rng.integers(3)]
    half = np.abs(rng.standard_normal(n)) * rng.choice([0.0, 0.1, 0.5, 2.0])
    middle = rng.standard_normal(n) * rng.choice([0.0, 1.0])
    size = np.abs(W).sum(axis=1) * rng.uniform(0.2, 1.3) + half
    bias = rng.choice([-1.0, 1.0], n) * size - middle
    if rng.random() < 0.1:
        bias = np.zeros(n)
    if logistic:  # the shift that makes its centre tanh's
        bias = bias - W.sum(axis=1) / 2
    reservoir = Reservoir(
        W, np.eye(n), bias, leak_rate=leak, activation="logistic" if logistic else "tanh"
    )
    return reservoir, middle - half, middle + half


def attack(batch):
    """Drive certified networks of one size; return what is wrong with each, and how close it came.

    A list of messages, and the largest ratio of observed to certified contraction per step.
    """
    n = batch[0][0].n_units
    W = np.stack([res.W for res, *_ in batch])[:, None]
    b = np.stack([res.bias for res, *_ in batch])[:, None]
    a = np.stack([np.broadcast_to(res.leak_rate, n) for res, *_ in batch])[:, None, None]
    low, high = (np.stack([item[k] for item in batch])[:, None] for k in (1, 2))
    certificates = [item[3] for item in batch]
    logistic = np.array([res.activation == "logistic" for res, *_ in batch])[:, None, None, None]
    box = np.stack([certificate.box for certificate in certificates])
    rng = np.random.default_rng(len(batch))
    n_drives = 6
    X = box[:, :1, None] + (box[:, 1:, None] - box[:, :1, None]) * rng.random(
        (len(batch), n_drives, N_STATES, n)
    )
    corner = rng.random((len(batch), n_drives, 4, n)) < 0.5
    X[:, :, :4] = np.where(corner, box[:, 0, None, None], box[:, 1, None, None])
    X[:, :, -3:] = rng.uniform(-3, 3, (len(batch), n_drives, 3, n))  # outside the range, too
    norm, scaled = _norms(certificates, n)
    rates = np.array([certificate.rate for certificate in certificates])
    worst = np.zeros(len(batch))
    inside = slice(0, N_STATES - 3)
    before = _lengths(X[:, :, inside], norm, scaled)
    for t in range(N_STEPS):
        Z = X @ np.swapaxes(W, -1, -2) + b[:, :, None]
        steep = np.clip(-Z[:, 4:].mean(axis=2), low, high)  # slopes as large as they can be
        switch = np.where(rng.random((len(batch), 1, n)) < 0.5, low, high)
        still = np.where(rng.random((len(batch), 1, 1)) < 0.5, low, high)
        drive = np.concatenate(
            [low, high, high if t % 2 else low, switch if t % 5 else still, steep], axis=1
        )
        Z += drive[:, :, None]
        X = (1 - a) * X + a * np.where(logistic, expit(Z), np.tanh(Z))
        after = _lengths(X[:, :, inside], norm, scaled)
        big = before > 1e-6  # below, rounding decides
        ratio = np.where(big, after / np.where(big, before, 1.0), 0.0)
        worst = np.maximum(worst, ratio.max(axis=(1, 2)))
        before = after
    spread = np.ptp(X, axis=2).max(axis=(1, 2))
    messages = []
    for i, certificate in enumerate(certificates):
        if scaled[i] and worst[i] > rates[i] * (1 + 1e-8):
            messages.append(f"{certificate}: one step by {worst[i]}: {batch[i][0].W!r}")
        # differences start below 10 and the constants of small networks are far below 1e6
        if rates[i] ** N_STEPS * 1e7 < 1e-3 and spread[i] > 1e-3:
            messages.append(f"{certificate}: two responses, {spread[i]} apart: {batch[i][0].W!r}")
    return messages, np.where(scaled, worst / rates, 0.0)


def _norms(certificates, n):
    """Return for each certificate a maximum norm (0) or Euclidean norm (1), and if it shrinks."""
    weights, euclidean, shrinks = np.ones((len(certificates), n)), [], []
    for i, certificate in enumerate(certificates):
        equal = certificate.method == "max_norm" or certificate.equal_leak
        shrinks.append(certificate.weights is not None and equal)
        euclidean.append(certificate.method == "two_norm")
        if certificate.weights is not None:
            weights[i] = certificate.weights if euclidean[-1] else 1 / certificate.weights
    return (weights[:, None, None], np.array(euclidean)[:, None, None]), np.array(shrinks)


def _lengths(X, norm, scaled):
    weights, euclidean = norm
    e = (X[:, :, 1:] - X[:, :, :1]) * weights / weights.max(axis=-1, keepdims=True)
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
        certified = []
        for _ in range(min(BATCH, n_networks - start)):
            reservoir, low, high = random_network(rng, n)
            certificate = certify(reservoir, low, high, method=METHODS[rng.integers(len(METHODS))])
            counts[certificate.method if certificate else "not certified"] += 1
            if certificate:
                equal = np.ptp(np.atleast_1d(reservoir.leak_rate)) == 0
                certified.append((reservoir, low, high, _Certified(certificate, equal)))
        if certified:
            found, ratios = attack(certified)
            messages += found
            closest = max(closest, float(ratios.max()))
    return messages, counts, closest


if __name__ == "__main__":
    n_networks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    messages, counts, closest = fuzz(n_networks, seed)
    print("\n".join(messages[:20]))
    print(f"{n_networks} networks from seed {seed}: {dict(counts)}")
    print(f"{len(messages)} violations; observed / certified contraction at most {closest:.6f}")
    sys.exit(bool(messages))
