"""Networks that users ask for in `search`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from reservoir._validation import check_count, check_number
from reservoir.dynamics.augment import check_augment
from reservoir.loops.network_plan import NetworkPlan

_PLAN = tuple(each.name for each in fields(NetworkPlan))
_DEFAULTS = {"spectral_radius": 0.05, "input_scaling": 0.3}
_COUNTS = ("n_units", "n_lags", "skip")


def plans_of_users(search: Any) -> list[NetworkPlan] | None:
    """Return the networks that are asked for; None for the bank that suits the data."""
    if isinstance(search, str):
        return None
    return [NetworkPlan(**(_DEFAULTS | item)) for item in search]


def check_search(name: str, value: Any) -> None:
    """Refuse what is no list of networks."""
    if isinstance(value, str) and value in ("auto", "dynamics", "series"):
        return
    known = isinstance(value, (list, tuple)) and len(value) > 0
    if not known or not all(isinstance(item, dict) for item in value):
        raise ValueError(
            f'search={value!r} must be "auto", "dynamics", "series", or a list of '
            f"dicts, one for each network to try, "
            f"with keys among {', '.join(_PLAN)}."
        )
    for i, item in enumerate(value):
        _check_network(f"search[{i}]", item)


def _check_network(place: str, item: dict[str, Any]) -> None:
    strange = [key for key in item if key not in _PLAN]
    if strange:
        raise ValueError(
            f"{place} has the key {strange[0]!r}, which is none of {', '.join(_PLAN)}."
        )
    if "n_units" not in item:
        raise ValueError(f"{place} has no n_units: {item!r}. Add it.")
    for key, value in item.items():
        _CHECKS.get(key, _check_factor)(f"{place}: {key}", value)


def _check_factor(name: str, value: Any) -> None:
    check_number(name, value, low=0.0)


def _check_leak(name: str, value: Any) -> None:
    check_number(name, value, low=0.0, high=1.0, low_open=True)


def _check_augment(name: str, value: Any) -> None:
    if callable(value):
        raise TypeError(
            f"{name} is a function; ESNForecaster takes None or the name of one of its own."
        )
    try:
        check_augment(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(_COUNTS, check_count),
    "leak_rate": _check_leak,
    "augment": _check_augment,
}
