"""Parameters that shape a model are fixed by its first rows: later changes raise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._workers import digest_of

_LONGEST = 60  # characters of a value in a message


def fixed_parameters(estimator: Any, since: str = "fit") -> dict[str, Any]:
    """Return the parameters of an estimator that are fixed since a call, by name.

    Each field of the estimator, a dataclass, has an entry "fixed" in its metadata. Arrays and lists
    are copied.
    """
    return {
        each.name: _copied(getattr(estimator, each.name))
        for each in fields(estimator)
        if each.metadata["fixed"] == since
    }


def check_fixed(estimator: Any, before: Mapping[str, Any]) -> None:
    """Raise if a parameter is not what it was when `fixed_parameters` returned `before`."""
    for name, value in before.items():
        check_unchanged(name, getattr(estimator, name, value), value)


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, (np.ndarray, list, dict)) else value


def check_unchanged(name: str, now: Any, before: Any) -> None:
    """Raise if the value of a parameter differs from the one that the model was made with."""
    if not is_same(now, before):
        raise ValueError(
            f"{name}={_shown(now)}, but the model was fitted with {name}={_shown(before)}, which "
            "later rows cannot change. Set it back, or call fit."
        )


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter mean the same: numbers, arrays and objects by value.

    Whole numbers differ from floats: a count and a share are different parameters. Functions
    without a name, and generators that have been used, are the same only if they are one object.
    """
    if one is other:
        return True
    if sp.issparse(one) or sp.issparse(other):
        both = sp.issparse(one) and sp.issparse(other) and one.shape == other.shape
        return both and (one != other).nnz == 0
    if any(isinstance(each, (type, np.dtype)) for each in (one, other)):
        return _is_same_dtype(one, other)
    now, before = _as_numbers(one), _as_numbers(other)
    if now is not None and before is not None:
        kind = now.dtype.kind
        return kind == before.dtype.kind and np.array_equal(now, before, equal_nan=kind == "f")
    try:
        return digest_of(_plain(one)) == digest_of(_plain(other))
    except (pickle.PicklingError, AttributeError, TypeError):  # a lambda, a local class
        return False


def _is_same_dtype(one: Any, other: Any) -> bool:
    try:
        return np.dtype(one) == np.dtype(other)
    except TypeError:
        return False


def _as_numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """Return numbers as an array; None for anything else."""
    if value is None or isinstance(value, (str, dict, set)) or callable(value):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _plain(value: Any) -> Any:
    """Return a frozen distribution of scipy.stats as its name and arguments; others unchanged."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # it holds a generator of numbers
        return type(value.dist), value.args, value.kwds
    return value


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
