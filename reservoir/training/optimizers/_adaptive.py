"""Optimizers whose steps adapt to previous gradients, separately for each weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_number
from reservoir.training.optimizers._update import (
    LearningRate,
    Optimizer,
    Step,
    fractions,
    one_slot,
    positives,
    two_slots,
)


def _mix(old: Array, new: Array, keep: float) -> Array:
    mixed = keep * old
    mixed += (1.0 - keep) * new
    return mixed


def _adagrad(g: Array, eta: float, n: int, total: Array, *, epsilon: float) -> Step:
    total = total + g * g
    return eta * g / (np.sqrt(total) + epsilon), (total,)


def adagrad(learning_rate: LearningRate = 1e-2, epsilon: float = 1e-10) -> Optimizer:
    """Return the Adagrad optimizer: ``s += g^2; w -= eta g / (sqrt(s) + epsilon)``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-2
    epsilon : float, above 0, default=1e-10
        Term that avoids a division by zero as long as all gradients are 0.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
    stochastic optimization", JMLR 12, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import adagrad
    >>> optimizer, weights = adagrad(0.5), {"bias": np.array([1.0])}
    >>> optimizer.update(weights, {"bias": np.array([8.0])}, optimizer.init(weights))[0]
    {'bias': array([0.5])}
    """
    options = positives(epsilon=epsilon)
    return Optimizer("adagrad", _adagrad, one_slot, learning_rate, options)


def _adadelta(
    g: Array, eta: float, n: int, s: Array, d: Array, *, rho: float, epsilon: float
) -> Step:
    s = _mix(s, g * g, rho)
    change = np.sqrt((d + epsilon) / (s + epsilon)) * g
    return eta * change, (s, _mix(d, change * change, rho))


def adadelta(
    learning_rate: LearningRate = 1.0, rho: float = 0.9, epsilon: float = 1e-6
) -> Optimizer:
    """Return the Adadelta optimizer, which scales steps by the mean square of previous steps.

    ``s = rho s + (1 - rho) g^2; c = g sqrt((d + epsilon) / (s + epsilon));
    d = rho d + (1 - rho) c^2; w -= eta c``

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1.0
        Factor of the steps. The original method has no learning rate, which corresponds to 1.
    rho : float in [0, 1), default=0.9
        Decay of the running mean squares.
    epsilon : float, above 0, default=1e-6
        Initial mean square of the steps: the size of the first steps is proportional to its root.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    M. D. Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701, 2012, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import adadelta
    >>> optimizer, weights = adadelta(), {"bias": np.array([1.0])}
    >>> weights, _ = optimizer.update(weights, {"bias": np.array([8.0])}, optimizer.init(weights))
    >>> (1 - weights["bias"]).round(6)  # sqrt(epsilon / (1 - rho))
    array([0.003162])
    """
    options = fractions(rho=rho) | positives(epsilon=epsilon)
    return Optimizer("adadelta", _adadelta, two_slots, learning_rate, options)


def _rmsprop(g: Array, eta: float, n: int, s: Array, *, rho: float, epsilon: float) -> Step:
    s = _mix(s, g * g, rho)
    return eta * g / (np.sqrt(s) + epsilon), (s,)


def rmsprop(
    learning_rate: LearningRate = 1e-2, rho: float = 0.99, epsilon: float = 1e-8
) -> Optimizer:
    """Return the RMSprop optimizer.

    ``s = rho s + (1 - rho) g^2; w -= eta g / (sqrt(s) + epsilon)``

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-2
    rho : float in [0, 1), default=0.99
        Decay of the running mean square.
    epsilon : float, above 0, default=1e-8
        Term that avoids a division by zero.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    T. Tieleman and G. Hinton, "Lecture 6.5 - RMSProp", COURSERA: Neural Networks for Machine
    Learning, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import rmsprop
    >>> optimizer, weights = rmsprop(0.01), {"bias": np.array([1.0])}
    >>> weights, _ = optimizer.update(weights, {"bias": np.array([8.0])}, optimizer.init(weights))
    >>> weights["bias"].round(6)  # the first step is learning_rate / sqrt(1 - rho)
    array([0.9])
    """
    options = fractions(rho=rho) | positives(epsilon=epsilon)
    return Optimizer("rmsprop", _rmsprop, one_slot, learning_rate, options)


def _adam(
    g: Array, eta: float, n: int, m: Array, s: Array, *, beta1: float, beta2: float, epsilon: float
) -> Step:
    m, s = _mix(m, g, beta1), _mix(s, g * g, beta2)
    root = np.sqrt(s / (1.0 - beta2**n))
    root += epsilon
    return eta / (1.0 - beta1**n) * m / root, (m, s)


def adam(
    learning_rate: LearningRate = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    warmup: int = 0,
) -> Optimizer:
    """Return the Adam optimizer: steps are the mean gradient divided by its root mean square.

    The mean and the mean square are running means that start from 0. In update n, they are divided
    by ``1 - beta^n``, so that they are weighted means over the gradients so far.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
        The learning rate. Without a warm-up, it is the change of every weight in the first update.
    beta1, beta2 : float in [0, 1), default=0.9 and 0.999
        Decay of the mean and of the mean square.
    epsilon : float, above 0, default=1e-8
        Term that avoids a division by zero.
    warmup : int, default=0
        Number of updates over which the steps grow to their full length; see `Optimizer`.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import adam
    >>> weights = {"bias": np.array([1.0, 1.0])}
    >>> for warmup in (0, 9):
    ...     optimizer = adam(0.1, warmup=warmup)
    ...     start = optimizer.init(weights)
    ...     optimizer.update(weights, {"bias": np.array([8.0, -1e-3])}, start)[0]["bias"].round(4)
    array([0.9, 1.1])
    array([0.99, 1.01])
    """
    options = fractions(beta1=beta1, beta2=beta2) | positives(epsilon=epsilon)
    return Optimizer("adam", _adam, two_slots, learning_rate, options, warmup)


def _nadam_slots(weights: Array) -> tuple[Any, ...]:
    return (*two_slots(weights), 1.0)


def _nadam(
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


def nadam(
    learning_rate: LearningRate = 2e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    momentum_decay: float = 4e-3,
    *,
    warmup: int = 0,
) -> Optimizer:
    """Return the Nadam optimizer: Adam with Nesterov momentum.

    The momentum grows with the index n of the update, from about beta1 / 2 to beta1:
    ``mu_n = beta1 (1 - 0.96^(n momentum_decay) / 2)``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=2e-3
    beta1, beta2 : float in [0, 1), default=0.9 and 0.999
        Decay of the mean and of the mean square.
    epsilon : float, above 0, default=1e-8
        Term that avoids a division by zero.
    momentum_decay : float, at least 0, default=4e-3
        Rate at which the momentum mu_n grows.
    warmup : int, default=0
        Number of updates over which the steps grow to their full length; see `Optimizer`.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR 2016 workshop, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import nadam
    >>> optimizer, weights = nadam(0.1), {"bias": np.array([1.0])}
    >>> weights, _ = optimizer.update(weights, {"bias": np.array([8.0])}, optimizer.init(weights))
    >>> weights["bias"].round(4)
    array([0.8944])
    """
    options = fractions(beta1=beta1, beta2=beta2) | positives(epsilon=epsilon)
    options["momentum_decay"] = check_number("momentum_decay", momentum_decay, low=0.0)
    return Optimizer("nadam", _nadam, _nadam_slots, learning_rate, options, warmup)
