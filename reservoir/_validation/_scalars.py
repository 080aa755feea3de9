"""Checks of single values: numbers, names, random states."""

from __future__ import annotations

import difflib
import inspect
import numbers
from collections.abc import Collection
from typing import Any

import numpy as np

from reservoir._typing import RandomState


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`; booleans and fractions are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} of type {type(value).__name__}.")
    if value < minimum:
        raise ValueError(f"{name}={value} must be at least {minimum}.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Return `value` as a finite float inside the interval; booleans are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}.")
    number = float(value)
    inside = (number > low if low_open else number >= low) and (
        number < high if high_open else number <= high
    )
    if not np.isfinite(number) or not inside:
        left = "(" if low_open or np.isinf(low) else "["
        right = ")" if high_open or np.isinf(high) else "]"
        raise ValueError(f"{name}={value} must be finite and in {left}{low:g}, {high:g}{right}.")
    return number


def check_choice(name: str, value: Any, known: Collection[str]) -> str:
    """Return `value` if it is one of the `known` names; else name the close matches."""
    if isinstance(value, str) and value in known:
        return value
    listed = ", ".join(repr(k) for k in sorted(known))
    close = difflib.get_close_matches(value, list(known), n=3) if isinstance(value, str) else []
    hint = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    raise ValueError(f"{name}={value!r} is not known.{hint} Known: {listed}.")


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator that one public call draws from.

    An int (or None) seeds `numpy.random.default_rng`; from a `RandomState` one integer is drawn;
    a `Generator` is spawned, so that the caller's own stream of numbers is not touched.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state.spawn(1)[0]
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise TypeError(
            "random_state must be None, an int, a numpy.random.Generator or a "
            f"numpy.random.RandomState; got {random_state!r}."
        )
    if random_state < 0:
        raise ValueError(f"random_state={random_state} must be at least 0.")
    return np.random.default_rng(int(random_state))


def caller_level() -> int:
    """Return the `stacklevel` for a warning that is to name the line outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("reservoir."):
        frame, level = frame.f_back, level + 1
    return level
