"""Checks of arguments common to several plots: arrays of numbers, units, times and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_count, check_real, check_unmasked, index_of


def columns(name: str, values: ArrayLike) -> Array:
    """Return a series of one or more columns as floats of shape (n_samples, n_columns)."""
    table = as_numbers(name, values)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be a non-empty array of shape (n_samples,) "
            "or (n_samples, n_columns)."
        )
    return table.reshape(len(table), -1)


def as_numbers(name: str, values: Any) -> Array:
    """Return the rows of one series as floats; raise if they contain ids or several series."""
    remedy = "Give the rows of one series, without its ids and other columns that are not numbers."
    if hasattr(values, "iloc") and values.index.nlevels > 1:
        n_series = values.index.droplevel(-1).nunique()
        if n_series > 1:
            raise ValueError(f"{name} has the rows of {n_series} series. {remedy}")
    check_real(name, values)
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        where = (each for each in getattr(values, "columns", ()) if not _is_numeric(values[each]))
        column = next((f"column {each!r} of " for each in where), "")
        raise ValueError(f"{column}{name} must contain numbers: {error}. {remedy}") from error


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def finite(name: str, values: Any, *axes: str) -> Array:
    """Return `values` as a non-empty array of finite floats, with one axis per name in `axes`."""
    check_unmasked(name, values)
    shape = f"({', '.join(axes)}{',' * (len(axes) == 1)})"
    if np.iscomplexobj(values):
        raise TypeError(f"{name} is complex; it must be real, of shape {shape}.")
    try:
        table = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers of shape {shape}: {error}") from error
    if table.ndim != len(axes) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be a non-empty array of shape {shape}."
        )
    return check_finite(name, table)


def check_finite(name: str, table: Array) -> Array:
    """Return `table` if it is finite; otherwise the error names the first entry that is not."""
    bad = ~np.isfinite(table)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} is {table[index]} at index {index}; only finite numbers can be drawn. Remove "
            "it, or find its cause."
        )
    return table


def increasing(name: str, values: ArrayLike) -> Array:
    """Return the values of a parameter as floats that increase strictly."""
    row = finite(name, values, f"n_{name}")
    if not (np.diff(row) > 0).all():
        raise ValueError(f"{name} must increase strictly. Sort it together with the values.")
    return row


def read_mask(certified: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Check `certified` against the shape of the drawn values, and return it as a bool array."""
    mask = as_plain("certified", certified)
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(
            f"certified has shape {mask.shape} and dtype {mask.dtype}; it must have shape {shape} "
            "and dtype bool, with one entry for each value."
        )
    return mask


def choose_units(units: int | Sequence[int], n_units: int) -> Array:
    """Return the indices of the units to draw: the given indices, or `units` evenly spread ones."""
    if isinstance(units, (int, np.integer)):
        count = min(check_count("units", units), n_units)
        return np.linspace(0, n_units - 1, count).round().astype(int)
    chosen = np.asarray(units, dtype=int)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.min() < 0 or chosen.max() >= n_units:
        raise ValueError(f"units={units!r} must contain at least one unit in [0, {n_units - 1}].")
    return chosen


def times_of(index: ArrayLike | None, n_rows: int) -> Array:
    """Return the time of each row: `index`, or the row numbers if `index` is None."""
    if index is None:
        return np.arange(n_rows)
    times = np.asarray(index)
    if times.shape != (n_rows,):
        raise ValueError(
            f"index has shape {times.shape}; it must be ({n_rows},), one time per row."
        )
    return times


def stamps_of(table: Any) -> Array | None:
    """Return the times in a pandas index as a NumPy array, or None if the index has no times.

    The time of a period is its start; times with a time zone become naive local times. An index
    that only numbers the rows from 0 counts as having no times.
    """
    index = index_of(table)
    if index is None:
        return None
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if index.dtype.kind == "M":
        return np.asarray(index.tz_localize(None))
    values = np.asarray(index)
    return None if np.array_equal(values, np.arange(len(values))) else values


def index_given(index: ArrayLike | None, *tables: Any) -> ArrayLike | None:
    """Return the caller's times, or else those in the index of the first table that has some."""
    if index is not None:
        return index
    return next((found for found in map(stamps_of, tables) if found is not None), None)


def reservoir_of(source: Any) -> Any:
    """Return the network of a fitted estimator, or a Reservoir itself; None for other objects."""
    network = getattr(source, "reservoir_", source)
    return network if hasattr(network, "W") and hasattr(network, "W_in") else None


def names_of(labels: Sequence[str] | None, n_columns: int) -> list[str]:
    """Return one label per column."""
    if labels is None:
        return [f"output {j}" for j in range(n_columns)]
    if isinstance(labels, str) or len(labels) != n_columns:
        raise ValueError(f"labels={labels!r} must be a list of {n_columns} names, one per column.")
    return [str(label) for label in labels]
