"""Plain arrays of real, finite numbers: masks, imaginary parts, NaN and infinity raise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from reservoir._typing import Array

_HOLDERS = (np.ndarray, list, tuple)
_DEEPEST = 64  # axes that NumPy allows; a list that contains itself has no end
FILL = (
    "Fill it before fitting, for instance by interpolation (pandas' interpolate) or with "
    "scikit-learn's SimpleImputer. Dropping the row would shift time: rows are consecutive steps. "
    "Only rows at the start or the end of a series, such as those from lags and padding, may be "
    "removed, together with the same rows of y."
)


def check_unmasked(name: str, values: Any) -> None:
    """Raise if values are hidden by a mask, also in an array of a list; `name` is for messages.

    A mask that hides nothing is harmless: libraries that read files often return such arrays.
    """
    if _hides_values(values):
        raise TypeError(
            f"{name} contains a masked array that hides values, but masks are not supported. "
            "Convert it to float, and replace what is hidden by NaN (filled)."
        )


def as_array(name: str, values: Any, remedy: str = "Give each the same number of values.") -> Array:
    """Return values as an array; raise if their rows have different lengths."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"The rows of {name} have different lengths. {remedy}") from error


def check_real(name: str, values: Any) -> None:
    """Raise if numbers are complex, hidden by a mask, or in rows of different lengths."""
    check_unmasked(name, values)
    if np.iscomplexobj(values if hasattr(values, "dtype") else as_array(name, values)):
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


def in_dtype(table: Array, dtype: Any) -> Array:
    """Return a table in `dtype`, in which it may overflow; not copied if it has this dtype."""
    if table.dtype == dtype:
        return table
    with np.errstate(over="ignore"):
        return table.astype(dtype)


def as_finite(
    name: str,
    table: Array,
    dtype: Any,
    names: Any = None,
    *,
    if_nan: Callable[[int], str] | None = None,
    allow_nan: bool = False,
    bounds: Array | None = None,
) -> Array:
    """Return a table, (n_rows, n_columns), in `dtype`; raise if it contains NaN or infinity.

    The message states column and row of the first such value. `names` are the names of columns, or
    a function that returns the words for one; `if_nan` returns the advice for NaN in a row. With
    `allow_nan` only infinity raises. `bounds` are the rows at which sequences begin and end: the
    message then names the sequence, and the row in it.
    """
    given, table = table, in_dtype(table, dtype)
    finite = np.isfinite(table)
    if finite.all() or (allow_nan and not np.isinf(table).any()):
        return table
    row, column = (int(i) for i in np.argwhere(np.isinf(table) if allow_nan else ~finite)[0])
    value = given[row, column]
    if np.isnan(value):
        what, remedy = "NaN", FILL if if_nan is None else if_nan(row)
    elif np.isfinite(value):
        what, remedy = "infinity (inf)", f"{value:.3g} overflows: scale the data."
    else:
        what, remedy = "infinity (inf)", "Replace it by a finite value."
    if bounds is not None:
        i = int(np.searchsorted(bounds, row, side="right")) - 1
        name, row = f"sequence {i} of {name}", row - int(bounds[i])
    named = "" if names is None or callable(names) else f" ({names[column]!r})"
    where = names(column) if callable(names) else f"column {column}{named}"
    raise ValueError(
        f"{name} contains {what} in {where}, first in row {row}, as {np.dtype(dtype).name}. "
        f"{remedy}"
    )
