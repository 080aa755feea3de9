"""Plain arrays of real numbers: masks and imaginary parts raise, for conversion drops them."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.wording import code


def check_unmasked(name: str, values: Any) -> None:
    """Raise if values are hidden by a mask, also in an array of a list; `name` is for messages.

    A mask that hides nothing is harmless: libraries that read files often return such arrays.
    """
    if _hides_values(values):
        raise TypeError(
            f"{name} contains a masked array that hides values, but masks are not supported. "
            f"Replace what is hidden by NaN, {code('rows.astype(float).filled(np.nan)')} for a "
            "masked array rows."
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
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    if isinstance(values, np.ndarray):
        values = values.ravel() if values.dtype == object else ()
    if not isinstance(values, (np.ndarray, list, tuple)):
        return False
    # the types first: a list of a million numbers contains no array
    nested = any(issubclass(each, (np.ndarray, list, tuple)) for each in set(map(type, values)))
    return nested and any(map(_hides_values, values))
