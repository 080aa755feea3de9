"""First-order optimizers: what a gradient does to the weights.

An optimizer is data: a rule of a few lines for one flat vector, what the rule starts from, its
numbers, and a learning rate. A new one is a rule, a constructor and a line in `OPTIMIZERS`. Where
torch has the same optimizer, the same defaults give the same path.

Examples
--------
>>> import numpy as np
>>> from reservoir.training.optimizers import adam
>>> optimizer = adam(learning_rate=0.1)
>>> weights = {"W": np.array([[1.0, -2.0]])}
>>> state = optimizer.init(weights)
>>> for _ in range(200):  # the minimum of W^2 / 2 is at 0
...     weights, state = optimizer.update(weights, {"W": weights["W"]}, state)
>>> bool(np.abs(weights["W"]).max() < 1e-3)
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reservoir._validation import check_choice, check_number
from reservoir.training import _rules
from reservoir.training._optimizer import LearningRate, Optimizer, OptimizerState

__all__ = [
    "OPTIMIZERS",
    "Optimizer",
    "OptimizerState",
    "adadelta",
    "adagrad",
    "adam",
    "get_optimizer",
    "momentum",
    "nadam",
    "nesterov",
    "rmsprop",
    "sgd",
]


def _fraction(name: str, value: Any) -> float:
    return check_number(name, value, low=0.0, high=1.0, high_open=True)


def _positive(name: str, value: Any) -> float:
    return check_number(name, value, low=0.0, low_open=True)


def sgd(learning_rate: LearningRate = 1e-3) -> Optimizer:
    """Gradient descent: ``w -= eta g``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If the learning rate is not a positive number.

    References
    ----------
    H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical Statistics
    22, 1951.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import sgd
    >>> optimizer, weights = sgd(0.5), {"bias": np.array([1.0])}
    >>> optimizer.update(weights, {"bias": np.array([4.0])}, optimizer.init(weights))[0]
    {'bias': array([-1.])}
    """
    return Optimizer("sgd", _rules.sgd, _rules.no_slots, learning_rate)


def momentum(learning_rate: LearningRate = 1e-3, momentum: float = 0.9) -> Optimizer:
    """Gradient descent with a heavy ball: ``v = mu v + g; w -= eta v``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
        Multiplies the velocity, so that a schedule acts at once.
    momentum : float in [0, 1), default=0.9
        What is kept of the velocity.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR
    Computational Mathematics and Mathematical Physics 4, 1964.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import momentum
    >>> optimizer, weights = momentum(0.5), {"bias": np.array([1.0])}
    >>> state = optimizer.init(weights)
    >>> for _ in range(2):
    ...     weights, state = optimizer.update(weights, {"bias": np.array([1.0])}, state)
    ...     print(weights["bias"])
    [0.5]
    [-0.45]
    """
    options = {"momentum": _fraction("momentum", momentum)}
    return Optimizer("momentum", _rules.momentum, _rules.one_slot, learning_rate, options)


def nesterov(learning_rate: LearningRate = 1e-3, momentum: float = 0.9) -> Optimizer:
    """Nesterov's accelerated gradient: ``v = mu v + g; w -= eta (g + mu v)``.

    The gradient is to be taken where the velocity leads. Here w is that point, so that gradients
    are asked for at the weights themselves: the same path in other coordinates.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
    momentum : float in [0, 1), default=0.9
        What is kept of the velocity.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    Y. Nesterov, "A method of solving a convex programming problem with convergence rate O(1/k^2)",
    Soviet Mathematics Doklady 27, 1983; I. Sutskever, J. Martens, G. Dahl and G. Hinton, "On the
    importance of initialization and momentum in deep learning", ICML 2013, eqs. (3) and (4).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.optimizers import nesterov
    >>> optimizer, weights = nesterov(0.5), {"bias": np.array([1.0])}
    >>> optimizer.update(weights, {"bias": np.array([1.0])}, optimizer.init(weights))[0]
    {'bias': array([0.05])}
    """
    options = {"momentum": _fraction("momentum", momentum)}
    return Optimizer("nesterov", _rules.nesterov, _rules.one_slot, learning_rate, options)


def adagrad(learning_rate: LearningRate = 1e-2, epsilon: float = 1e-10) -> Optimizer:
    """Adagrad: ``s += g^2; w -= eta g / (sqrt(s) + epsilon)``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-2
    epsilon : float, above 0, default=1e-10
        Keeps the first steps finite where the gradient is 0.

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
    options = {"epsilon": _positive("epsilon", epsilon)}
    return Optimizer("adagrad", _rules.adagrad, _rules.one_slot, learning_rate, options)


def adadelta(
    learning_rate: LearningRate = 1.0, rho: float = 0.9, epsilon: float = 1e-6
) -> Optimizer:
    """Adadelta: the step has the running size of the steps before it.

    ``s = rho s + (1 - rho) g^2; c = g sqrt((d + epsilon) / (s + epsilon));
    d = rho d + (1 - rho) c^2; w -= eta c``

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1.0
        The method itself has none: 1.
    rho : float in [0, 1), default=0.9
        What is kept of the mean squares.
    epsilon : float, above 0, default=1e-6
        Its root is the size of the first step.

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
    options = {"rho": _fraction("rho", rho), "epsilon": _positive("epsilon", epsilon)}
    return Optimizer("adadelta", _rules.adadelta, _rules.two_slots, learning_rate, options)


def rmsprop(
    learning_rate: LearningRate = 1e-2, rho: float = 0.99, epsilon: float = 1e-8
) -> Optimizer:
    """RMSprop: ``s = rho s + (1 - rho) g^2; w -= eta g / (sqrt(s) + epsilon)``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-2
    rho : float in [0, 1), default=0.99
        What is kept of the mean square.
    epsilon : float, above 0, default=1e-8

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
    options = {"rho": _fraction("rho", rho), "epsilon": _positive("epsilon", epsilon)}
    return Optimizer("rmsprop", _rules.rmsprop, _rules.one_slot, learning_rate, options)


def adam(
    learning_rate: LearningRate = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    warmup: int = 0,
) -> Optimizer:
    """Adam: a running mean of the gradients over the root of their running mean square.

    Both means start from 0 and are divided by ``1 - beta^n``, which makes them means over the
    gradients seen.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
        The length of the first step in every weight.
    beta1, beta2 : float in [0, 1), default=0.9 and 0.999
        What is kept of the mean and of the mean square.
    epsilon : float, above 0, default=1e-8
    warmup : int, default=0
        Updates over which the step grows to its full length; see `Optimizer`.

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
    options = {
        "beta1": _fraction("beta1", beta1),
        "beta2": _fraction("beta2", beta2),
        "epsilon": _positive("epsilon", epsilon),
    }
    return Optimizer("adam", _rules.adam, _rules.two_slots, learning_rate, options, warmup)


def nadam(
    learning_rate: LearningRate = 2e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    momentum_decay: float = 4e-3,
    *,
    warmup: int = 0,
) -> Optimizer:
    """Nadam: Adam whose mean of the gradients looks one step ahead, as Nesterov's does.

    The weight of the mean grows with the number n of the update, from about beta1 / 2 to beta1:
    ``mu_n = beta1 (1 - 0.96^(n momentum_decay) / 2)``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=2e-3
    beta1, beta2 : float in [0, 1), default=0.9 and 0.999
        What is kept of the mean and of the mean square.
    epsilon : float, above 0, default=1e-8
    momentum_decay : float, at least 0, default=4e-3
        How fast mu_n grows.
    warmup : int, default=0
        Updates over which the step grows to its full length; see `Optimizer`.

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
    options = {
        "beta1": _fraction("beta1", beta1),
        "beta2": _fraction("beta2", beta2),
        "epsilon": _positive("epsilon", epsilon),
        "momentum_decay": check_number("momentum_decay", momentum_decay, low=0.0),
    }
    return Optimizer("nadam", _rules.nadam, _rules.nadam_slots, learning_rate, options, warmup)


#: The optimizers that estimators know by name.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgd": sgd,
    "momentum": momentum,
    "nesterov": nesterov,
    "adagrad": adagrad,
    "adadelta": adadelta,
    "rmsprop": rmsprop,
    "adam": adam,
    "nadam": nadam,
}


def get_optimizer(
    name: str, learning_rate: LearningRate | None = None, *, warmup: int = 0
) -> Optimizer:
    """Return an optimizer by its name in `OPTIMIZERS`.

    Parameters
    ----------
    name : str
    learning_rate : float, above 0, or callable of the number of updates done, optional
        Default: the optimizer's own.
    warmup : int, default=0
        Updates over which the step grows to its full length; see `Optimizer`.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If the name is not known, or a number outside its range.

    Examples
    --------
    >>> from reservoir.training.optimizers import get_optimizer
    >>> get_optimizer("nadam").learning_rate
    0.002
    >>> get_optimizer("adm")
    Traceback (most recent call last):
    ...
    ValueError: optimizer='adm' is not known. Did you mean 'adam' or 'nadam'? Known: ...
    """
    build = OPTIMIZERS[check_choice("optimizer", name, OPTIMIZERS)]
    optimizer = build() if learning_rate is None else build(learning_rate)
    return replace(optimizer, warmup=warmup)
