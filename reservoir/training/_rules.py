"""The rules of the optimizers, each on flat vectors.

g is the gradient, eta the learning rate, n the number of the update, from 1. What comes back is
what to take from the weights, and the slots for the next update.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from reservoir._typing import Array

Slots: TypeAlias = tuple[Any, ...]
Step: TypeAlias = tuple[Array, Slots]


def no_slots(weights: Array) -> Slots:
    return ()


def one_slot(weights: Array) -> Slots:
    return (np.zeros_like(weights),)


def two_slots(weights: Array) -> Slots:
    return np.zeros_like(weights), np.zeros_like(weights)


def nadam_slots(weights: Array) -> Slots:
    return np.zeros_like(weights), np.zeros_like(weights), 1.0


def _mix(old: Array, new: Array, keep: float) -> Array:
    mixed = keep * old
    mixed += (1.0 - keep) * new
    return mixed


def sgd(g: Array, eta: float, n: int) -> Step:
    return eta * g, ()


def momentum(g: Array, eta: float, n: int, v: Array, *, momentum: float) -> Step:
    v = momentum * v + g
    return eta * v, (v,)


def nesterov(g: Array, eta: float, n: int, v: Array, *, momentum: float) -> Step:
    v = momentum * v + g
    return eta * (g + momentum * v), (v,)


def adagrad(g: Array, eta: float, n: int, total: Array, *, epsilon: float) -> Step:
    total = total + g * g
    return eta * g / (np.sqrt(total) + epsilon), (total,)


def adadelta(
    g: Array, eta: float, n: int, s: Array, d: Array, *, rho: float, epsilon: float
) -> Step:
    s = _mix(s, g * g, rho)
    change = np.sqrt((d + epsilon) / (s + epsilon)) * g
    return eta * change, (s, _mix(d, change * change, rho))


def rmsprop(g: Array, eta: float, n: int, s: Array, *, rho: float, epsilon: float) -> Step:
    s = _mix(s, g * g, rho)
    return eta * g / (np.sqrt(s) + epsilon), (s,)


def adam(
    g: Array, eta: float, n: int, m: Array, s: Array, *, beta1: float, beta2: float, epsilon: float
) -> Step:
    m, s = _mix(m, g, beta1), _mix(s, g * g, beta2)
    root = np.sqrt(s / (1.0 - beta2**n))
    root += epsilon
    return eta / (1.0 - beta1**n) * m / root, (m, s)


def nadam(
    g: Array,
    eta: float,
    n: int,
    m: Array,
    s: Array,
    product: float,
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    momentum_decay: float,
) -> Step:
    now, following = (beta1 * (1.0 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (n, n + 1))
    product *= now
    m, s = _mix(m, g, beta1), _mix(s, g * g, beta2)
    root = np.sqrt(s / (1.0 - beta2**n))
    root += epsilon
    step = eta * (1.0 - now) / (1.0 - product) * g
    step += eta * following / (1.0 - product * following) * m
    return step / root, (m, s, product)
