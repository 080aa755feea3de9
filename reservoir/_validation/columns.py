"""Look up the columns of X that parameters refer to by number or name."""

from __future__ import annotations

import numbers
from typing import Any


def column_number(parameter: str, column: Any, names: Any, n_columns: int) -> int:
    """Return the position of a column of X, from 0, given its number or its name.

    Parameters
    ----------
    parameter : str
        The parameter that refers to the column, for messages.
    column : int or str
        Number or name of the column; a negative number counts from the last column.
    names : sequence of str, or None
        The names of all columns of X; None if it has no names.
    n_columns : int
        Number of columns of X.

    Raises
    ------
    ValueError
        If there is no such column.
    TypeError
        If `column` is neither a number nor a name.
    """
    if isinstance(column, str):
        known = [] if names is None else list(names)
        if not known:
            raise ValueError(
                f"{parameter}={column!r} is a name, but X has no feature names. Use the column's "
                "number, or pass a DataFrame."
            )
        if column not in known:
            raise ValueError(
                f"{parameter}={column!r} is not among the feature names {known}. Use one of "
                "these names, or the column's number."
            )
        return known.index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} must be an int or a feature name; got {column!r}.")
    number = int(column)
    if not -n_columns <= number < n_columns:
        raise ValueError(f"{parameter}={number} is outside X, which has {n_columns} columns.")
    return number % n_columns
