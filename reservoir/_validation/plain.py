"""Plain arrays of real numbers: masks and imaginary parts raise, for conversion drops them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from reservoir._typing import Array

_HOLDERS = (np.ndarray, list, tuple)
_DEEPEST = 64  # axes that NumPy allows; a list that contains itself has no end


def check_unmasked(name: str, values: Any) -> None:
    """Raise if values are hidden by a mask, also in an array of a list; `name` is for messages.

    A mask that hides nothing is harmless: libraries that read files often return such arrays.
    """
    if _hides_values(values):
        raise TypeError(
            f"{name} contains a masked array that hides values, but masks are not supported. "
            "Convert it to float, and replace what is hidden by NaN (filled)."
        )


def check_real(name: str, values: Any) -> None:
    """Raise if numbers are complex, or hidden by a mask; `name` is for messages."""
    check_unmasked(name, values)
    if np.iscomplexobj(values):
        raise TypeError(f"{name} must be real; got complex numbers. Take the real part first.")


def as_plain(name: str, values: Any, dtype: Any = None) -> Array:
    """Return real numbers as an array of `dtype`, by default their own; raise by `check_real`."""
    check_real(name, values)
    return np.asarray(values, dtype=dtype)


def _hides_values(values: Any) -> bool:
    # level by level, and by types first: a call for each number of a long list takes too long
    level = [values]
    for _ in range(_DEEPEST):
        kinds = [each for each in set(map(type, level)) if issubclass(each, _HOLDERS)]
        if not kinds:
            break
        masks = any(issubclass(each, np.ma.MaskedArray) for each in kinds)
        if masks and any(np.ma.is_masked(each) for each in level if np.ma.isMaskedArray(each)):
            return True
        holders = (each for each in level if isinstance(each, _HOLDERS))
        level = list(chain.from_iterable(map(_items, holders)))
    return False


def _items(values: Any) -> Any:
    """Return what a list, or an array of objects, contains; nothing for an array of numbers."""
    if not isinstance(values, np.ndarray):
        return values
    return values.flat if values.dtype == object else ()
