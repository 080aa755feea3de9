"""Plain gradient descent, with and without momentum."""

from __future__ import annotations

from reservoir._typing import Array
from reservoir.training.optimizers._update import (
    LearningRate,
    Optimizer,
    Step,
    fractions,
    no_slots,
    one_slot,
)


def _sgd(g: Array, eta: float, n: int) -> Step:
    return eta * g, ()


def sgd(learning_rate: LearningRate = 1e-3) -> Optimizer:
    """Return the optimizer for gradient descent: ``w -= eta g``.

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
    return Optimizer("sgd", _sgd, no_slots, learning_rate)


def _momentum(g: Array, eta: float, n: int, v: Array, *, momentum: float) -> Step:
    v = momentum * v + g
    return eta * v, (v,)


def momentum(learning_rate: LearningRate = 1e-3, momentum: float = 0.9) -> Optimizer:
    """Return the optimizer for gradient descent with momentum: ``v = mu v + g; w -= eta v``.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
        The learning rate, which multiplies the velocity, so that a schedule takes effect
        immediately.
    momentum : float in [0, 1), default=0.9
        Decay mu of the velocity v.

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
    options = fractions(momentum=momentum)
    return Optimizer("momentum", _momentum, one_slot, learning_rate, options)


def _nesterov(g: Array, eta: float, n: int, v: Array, *, momentum: float) -> Step:
    v = momentum * v + g
    return eta * (g + momentum * v), (v,)


def nesterov(learning_rate: LearningRate = 1e-3, momentum: float = 0.9) -> Optimizer:
    """Return the optimizer for Nesterov momentum: ``v = mu v + g; w -= eta (g + mu v)``.

    In the original method, the gradient is evaluated at a point ahead of the weights, along the
    velocity. Here, w is that point, so that gradients are evaluated at w itself. This is the same
    method in other coordinates.

    Parameters
    ----------
    learning_rate : float, above 0, or callable of the number of updates done, default=1e-3
    momentum : float in [0, 1), default=0.9
        Decay mu of the velocity v.

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
    options = fractions(momentum=momentum)
    return Optimizer("nesterov", _nesterov, one_slot, learning_rate, options)
