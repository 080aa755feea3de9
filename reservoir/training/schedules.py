"""Schedules of the learning rate: callables of the time t.

Every function ``f(learning_rate, n_steps, ...)`` returns a schedule: a callable that maps the time
t to the learning rate, and that can be pickled. t counts epochs or updates from 0, in the same unit
as `n_steps`, and may be fractional. All other parameters have defaults, some of which depend on
`n_steps`.

Examples
--------
>>> from reservoir.training.schedules import cosine
>>> rate = cosine(0.1, n_steps=100)
>>> [round(rate(t), 4) for t in (0, 50, 100)]
[0.1, 0.05, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cos, pi
from typing import TypeAlias

from reservoir._validation import check_choice, check_number

__all__ = [
    "SCHEDULES",
    "constant",
    "cosine",
    "exponential",
    "get_schedule",
    "inverse",
    "linear",
    "linear_warmup",
    "step",
]

Schedule: TypeAlias = Callable[[float], float]


def _check(learning_rate: float, n_steps: float) -> tuple[float, float]:
    rate = check_number("learning_rate", learning_rate, low=0.0, low_open=True)
    return rate, check_number("n_steps", n_steps, low=0.0, low_open=True)


def _factor(factor: float) -> float:
    return check_number("factor", factor, low=0.0, high=1.0, low_open=True)


def _constant(t: float, *, rate: float) -> float:
    return rate


def _step(t: float, *, rate: float, every: float, factor: float) -> float:
    return float(rate * factor ** (t // every))


def _exponential(t: float, *, rate: float, factor: float) -> float:
    return float(rate * factor**t)


def _inverse(t: float, *, rate: float, decay: float, power: float) -> float:
    return float(rate / (1.0 + decay * t) ** power)


def _linear(t: float, *, rate: float, n_steps: float, final: float) -> float:
    return float(rate + (final - rate) * min(1.0, t / n_steps))


def _cosine(t: float, *, rate: float, n_steps: float, final: float) -> float:
    done = min(1.0, t / n_steps)
    return final + (rate - final) * 0.5 * (1.0 + cos(pi * done))


def _warmed(t: float, *, schedule: Schedule, n_steps: float) -> float:
    return schedule(t) * min(1.0, (t + 1.0) / (n_steps + 1.0))


def constant(learning_rate: float, n_steps: float = 1.0) -> Schedule:
    """Return a schedule with a constant rate.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0, default=1
        Ignored.

    Returns
    -------
    callable of t

    Examples
    --------
    >>> from reservoir.training.schedules import constant
    >>> constant(0.1)(1e6)
    0.1
    """
    rate, _ = _check(learning_rate, n_steps)
    return partial(_constant, rate=rate)


def step(
    learning_rate: float, n_steps: float, *, every: float | None = None, factor: float = 0.1
) -> Schedule:
    """Return a schedule of regular drops: ``rate * factor^floor(t / every)``.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0
    every : float, above 0, optional
        Time between two drops; ``n_steps / 3`` by default.
    factor : float in (0, 1], default=0.1
        Factor by which the rate is multiplied at each drop.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    Examples
    --------
    >>> from reservoir.training.schedules import step
    >>> [round(step(0.1, 90)(t), 6) for t in (0, 29, 30, 89)]
    [0.1, 0.1, 0.01, 0.001]
    """
    rate, n_steps = _check(learning_rate, n_steps)
    every = n_steps / 3.0 if every is None else check_number("every", every, low=0.0, low_open=True)
    return partial(_step, rate=rate, every=every, factor=_factor(factor))


def exponential(learning_rate: float, n_steps: float, *, factor: float | None = None) -> Schedule:
    """Return a schedule of exponential decay: ``rate * factor^t``.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0
    factor : float in (0, 1], optional
        Factor per unit of time. By default, it reduces the rate to a hundredth at ``t = n_steps``.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    Examples
    --------
    >>> from reservoir.training.schedules import exponential
    >>> [round(exponential(0.1, 100)(t), 6) for t in (0, 50, 100)]
    [0.1, 0.01, 0.001]
    """
    rate, n_steps = _check(learning_rate, n_steps)
    factor = 0.01 ** (1.0 / n_steps) if factor is None else _factor(factor)
    return partial(_exponential, rate=rate, factor=factor)


def inverse(
    learning_rate: float, n_steps: float, *, decay: float | None = None, power: float = 1.0
) -> Schedule:
    """Return a schedule of decay by a power of time: ``rate / (1 + decay t)^power``.

    With a power in (0.5, 1], the sum of the rates is infinite but the sum of their squares is
    finite, which is the condition for convergence with noisy gradients [1]_.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0
    decay : float, at least 0, optional
        Decay per unit of time. The default, ``9 / n_steps``, reduces the rate to a tenth at
        ``t = n_steps`` if `power` is 1.
    power : float, above 0, default=1.0
        Exponent of the decay.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    .. [1] H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical
       Statistics 22, 1951.

    Examples
    --------
    >>> from reservoir.training.schedules import inverse
    >>> [round(inverse(0.1, 90)(t), 6) for t in (0, 10, 90)]
    [0.1, 0.05, 0.01]
    """
    rate, n_steps = _check(learning_rate, n_steps)
    decay = 9.0 / n_steps if decay is None else check_number("decay", decay, low=0.0)
    power = check_number("power", power, low=0.0, low_open=True)
    return partial(_inverse, rate=rate, decay=decay, power=power)


def cosine(learning_rate: float, n_steps: float, *, final: float = 0.0) -> Schedule:
    """Return a schedule that falls to `final` along half a period of a cosine, and stays there.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0
        Time at which `final` is reached.
    final : float, at least 0, default=0.0
        Final rate, at most `learning_rate`.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range, or if `final` is above `learning_rate`.

    References
    ----------
    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017,
    eq. (5), without restarts.

    Examples
    --------
    >>> from reservoir.training.schedules import cosine
    >>> [round(cosine(0.1, 100, final=0.02)(t), 4) for t in (0, 50, 100, 150)]
    [0.1, 0.06, 0.02, 0.02]
    """
    rate, n_steps = _check(learning_rate, n_steps)
    final = check_number("final", final, low=0.0, high=rate)
    return partial(_cosine, rate=rate, n_steps=n_steps, final=final)


def linear(learning_rate: float, n_steps: float, *, final: float = 0.0) -> Schedule:
    """Return a schedule that falls to `final` along a straight line, and stays there.

    Parameters
    ----------
    learning_rate : float, above 0
    n_steps : float, above 0
        Time at which `final` is reached.
    final : float, at least 0, default=0.0
        Final rate, at most `learning_rate`.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range, or if `final` is above `learning_rate`.

    Examples
    --------
    >>> from reservoir.training.schedules import linear
    >>> [round(linear(0.1, 100, final=0.02)(t), 4) for t in (0, 50, 100, 150)]
    [0.1, 0.06, 0.02, 0.02]
    """
    rate, n_steps = _check(learning_rate, n_steps)
    final = check_number("final", final, low=0.0, high=rate)
    return partial(_linear, rate=rate, n_steps=n_steps, final=final)


def linear_warmup(schedule: Schedule, n_steps: float) -> Schedule:
    """Return a schedule multiplied by a linear ramp, ``min(1, (t + 1) / (n_steps + 1))``.

    Parameters
    ----------
    schedule : callable of t
        The schedule to multiply.
    n_steps : float, at least 0
        Time at which the ramp ends; from then on, the schedule is unchanged.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If `schedule` is not callable, or `n_steps` is negative.

    Examples
    --------
    >>> from reservoir.training.schedules import constant, linear_warmup
    >>> [linear_warmup(constant(1.0), 3)(t) for t in (0, 1, 3, 10)]
    [0.25, 0.5, 1.0, 1.0]
    """
    if not callable(schedule):
        raise TypeError(
            f"schedule must be a callable of t; got {schedule!r}. For a constant rate, use "
            "`reservoir.training.schedules.constant(schedule)`."
        )
    return partial(_warmed, schedule=schedule, n_steps=check_number("n_steps", n_steps, low=0.0))


#: The schedules that estimators accept by name: ``f(learning_rate, n_steps)``.
SCHEDULES: dict[str, Callable[..., Schedule]] = {
    build.__name__: build for build in (constant, step, exponential, inverse, linear, cosine)
}


def get_schedule(name: str, learning_rate: float, n_steps: float) -> Schedule:
    """Return the schedule of the given name in `SCHEDULES`, with default parameters.

    Parameters
    ----------
    name : {"constant", "step", "exponential", "inverse", "linear", "cosine"}
    learning_rate : float, above 0
        The rate at t = 0.
    n_steps : float, above 0
        Planned number of epochs or updates.

    Returns
    -------
    callable of t

    Raises
    ------
    TypeError, ValueError
        If the name is unknown, or a number is outside its range.

    Examples
    --------
    >>> from reservoir.training.schedules import get_schedule
    >>> round(get_schedule("inverse", 0.1, 200)(200), 6)
    0.01
    >>> get_schedule("cosin", 0.1, 200)
    Traceback (most recent call last):
    ...
    ValueError: learning_rate='cosin' is not known. Did you mean 'cosine'? Known: ...
    """
    return SCHEDULES[check_choice("learning_rate", name, SCHEDULES)](learning_rate, n_steps)
