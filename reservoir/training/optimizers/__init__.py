"""First-order optimizers, which turn gradients into updates of the weights.

An `Optimizer` consists of a short rule for one flat vector, the initial slots (state arrays) of the
rule, its options, and a learning rate. The arguments of a rule are the gradient g, the learning
rate eta, the index n of the update (counted from 1), and its slots; it returns the decrease of the
weights, and the slots for the next update. To add an optimizer, write a rule and a constructor in
`_plain.py`, `_adaptive.py` or another file of the package, and add an entry to `OPTIMIZERS`. If
torch has the same optimizer, its defaults and updates are the same.

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

from reservoir._validation import check_choice
from reservoir.training.optimizers._adaptive import adadelta, adagrad, adam, nadam, rmsprop
from reservoir.training.optimizers._plain import momentum, nesterov, sgd
from reservoir.training.optimizers._update import LearningRate, Optimizer, OptimizerState

__all__ = [
    "OPTIMIZERS",
    "Optimizer",
    "OptimizerState",
    "adadelta",
    "adagrad",
    "adam",
    "get_optimizer",
    "is_built_in",
    "momentum",
    "nadam",
    "nesterov",
    "rmsprop",
    "sgd",
]

#: The optimizers that estimators accept by name.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    build.__name__: build
    for build in (sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, nadam)
}


def get_optimizer(
    name: str, learning_rate: LearningRate | None = None, *, warmup: int = 0
) -> Optimizer:
    """Return the optimizer of the given name in `OPTIMIZERS`.

    Parameters
    ----------
    name : str
    learning_rate : float, above 0, or callable of the number of updates done, optional
        The learning rate, or a schedule. By default, the optimizer's default rate is used.
    warmup : int, default=0
        Number of updates over which the steps grow to their full length; see `Optimizer`.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        If the name is unknown, or a number is outside its range.

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


def is_built_in(optimizer: Optimizer) -> bool:
    """Whether an optimizer follows a rule in `OPTIMIZERS`, so that its numbers describe it.

    Parameters
    ----------
    optimizer : Optimizer

    Returns
    -------
    bool
        False for a rule of the user's, and for a learning rate that is a callable.

    Examples
    --------
    >>> from reservoir.training.optimizers import adam, is_built_in
    >>> is_built_in(adam(beta1=0.8)), is_built_in(adam(lambda n: 0.1))
    (True, False)
    """
    if optimizer.name not in OPTIMIZERS or callable(optimizer.learning_rate):
        return False
    same = OPTIMIZERS[optimizer.name]()
    return (optimizer.rule, optimizer.start) == (same.rule, same.start)
