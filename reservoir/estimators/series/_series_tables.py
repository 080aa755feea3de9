"""Series in whatever container, as standardised trajectories."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level, container_of, read_series
from reservoir.estimators.series._series_values import check_real_numbers
from reservoir.loops.loop_design import Trajectories

_FEWEST_ROWS = 30
_ROUNDING = 1e-12  # a column that varies less, relative to its size, is constant to rounding
_NO_NAMES = "X does not have valid feature names"
_NUMBERS = "The index of X goes from"  # said by the estimator itself


@saved
@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of each column."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, tables: list[Array]) -> Scale:
        """Return the scale of all rows; a constant column keeps its units."""
        rows = np.concatenate(tables)
        # a power of two as the unit: squares neither overflow nor vanish, and no bit changes
        size = 2.0 ** np.frexp(np.abs(rows).max(axis=0))[1].clip(-1000, 1000)
        rows /= size
        spread = rows.std(axis=0)
        varies = np.ptp(rows, axis=0) > _ROUNDING
        return cls(rows.mean(axis=0) * size, np.where(varies, spread * size, 1.0))

    def standardise(self, rows: Array) -> Array:
        """Return rows without units."""
        return (rows - self.mean) / self.spread

    def restore(self, rows: Array) -> Array:
        """Return rows in units of the data."""
        return self.mean + self.spread * rows


def is_collection(values: Any) -> bool:
    """Whether values hold several trajectories; a list of lists of numbers is one table."""
    if isinstance(values, np.ndarray):
        return values.ndim == 3 or (
            values.dtype == object and values.ndim == 1 and len(values) > 0 and _has_rows(values[0])
        )
    if not isinstance(values, (list, tuple)) or not len(values):
        return False
    first = values[0]
    if isinstance(first, (list, tuple)):
        return len(first) > 0 and isinstance(first[0], (list, tuple))
    return _has_rows(first)


def _has_rows(item: Any) -> bool:
    return getattr(item, "ndim", 0) > 0 or hasattr(item, "to_frame") or hasattr(item, "columns")


def as_tables(values: Any) -> Any:
    """Return series with a column axis: one of shape (n_samples,) gets it, also in a list."""
    if is_collection(values):
        return [as_tables(item) for item in values]
    if hasattr(values, "to_frame"):
        return values.to_frame()
    flat = not hasattr(values, "columns") and _n_dimensions(values) == 1
    return np.reshape(values, (-1, 1)) if flat else values


def _n_dimensions(values: Any) -> int | None:
    """Return the number of axes; None for rows of different lengths."""
    try:
        return int(np.ndim(values))
    except ValueError:
        return None


def dtype_of(y: Any) -> Any:
    """Return float32 where all data are, else float64: what forecasts come in."""
    kinds = set()
    for item in y if is_collection(y) else [y]:
        dtypes = getattr(item, "dtypes", None)
        if dtypes is None or np.ndim(dtypes) == 0:
            dtypes = [getattr(item, "dtype", "float64")]
        kinds |= {str(dtype).lower() for dtype in dtypes}
    return np.float32 if kinds == {"float32"} else np.float64


def read_tables(name: str, reader: Any, values: Any, *, reset: bool) -> list[Array]:
    """Return series as a list of float64 tables, checked; `reader` keeps their names.

    Parameters
    ----------
    name : str
        What messages call it.
    reader : estimator
    values : series of any kind
    reset : bool
        Whether number and names of columns are set, or compared.
    """
    tables = as_tables(values)
    parts = tables if is_collection(tables) else [tables]
    for i, part in enumerate(parts):
        _check_shape(f"Trajectory {i} of {name}" if len(parts) > 1 else name, part)
        check_real_numbers(f"trajectory {i} of {name}" if len(parts) > 1 else name, part)
    if not reset:
        _check_columns(name, reader, parts)
    try:
        container_of(tables)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", message=_NO_NAMES)
            if not is_collection(tables):
                warnings.filterwarnings("ignore", message=_NUMBERS)
            found = read_series(reader, tables, reset=reset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(_renamed(str(error), name, reader)) from error
    for each in said:
        text = _renamed(str(each.message), name, reader)
        warnings.warn(text, each.category, stacklevel=caller_level())
    return list(found.arrays)


def _check_shape(name: str, table: Any) -> None:
    """Refuse what is no table of real numbers with rows and columns."""
    if _n_dimensions(table) == 0:
        raise ValueError(
            f"{name} must be an array of shape (n_samples,) or (n_samples, n_columns); got "
            f"{type(table).__name__}."
        )
    try:
        shape = table.shape if hasattr(table, "shape") else np.shape(table)
    except ValueError:
        raise ValueError(
            f"{name} has rows of different lengths. Give each row the same columns; trajectories "
            "of different lengths are a list of arrays."
        ) from None
    if 0 in shape:
        what = "rows (n_samples=0)" if shape[0] == 0 else "columns"
        raise ValueError(f"{name} has no {what}; its shape is {tuple(shape)}.")
    if np.iscomplexobj(table):
        raise ValueError(
            f"{name} holds complex numbers. Give real and imaginary parts as columns of their own."
        )


def _check_columns(name: str, reader: Any, tables: list[Any]) -> None:
    """Refuse another number of columns than in fit; say so where their names are missing."""
    for table in tables:
        n_columns = np.shape(table)[-1]
        if n_columns != reader.n_features_in_:
            raise ValueError(
                f"{name} has {n_columns} column{'s' * (n_columns != 1)}, and in fit it had "
                f"{reader.n_features_in_}. Give the same columns, in the same order."
            )
    names = getattr(reader, "feature_names_in_", None)
    if names is not None and len(names) > 1 and not hasattr(tables[0], "columns"):
        warnings.warn(
            f"{name} has no column names, and in fit it had. Its columns are taken to be "
            f"{', '.join(names)}, in this order.",
            UserWarning,
            stacklevel=caller_level(),
        )


def _renamed(text: str, name: str, reader: Any) -> str:
    """Return a message about X in terms of what the user gave."""
    text = text.replace("Sequence ", "Trajectory ").replace("sequence ", "trajectory ")
    text = re.sub(r"\bX\b", name, text).replace(type(reader).__name__, "ESNForecaster")
    return text if re.search(rf"\b{name}\b", text) else f"In {name}: {text}"


def check_long_enough(tables: list[Array]) -> None:
    """Refuse series that no network can learn from."""
    longest, shortest = max(map(len, tables)), min(map(len, tables))
    if longest < _FEWEST_ROWS:
        which = "y" if len(tables) == 1 else "The longest trajectory of y"
        raise ValueError(
            f"{which} has {longest} rows (n_samples={longest}), and ESNForecaster needs at least "
            f"{_FEWEST_ROWS} in a row: it fits networks on them and tries these in closed loop. "
            'Give a longer series, search="series", or panel="each" if these are several series.'
        )
    if shortest < 2:
        which_one = [len(table) for table in tables].index(shortest)
        raise ValueError(
            f"Trajectory {which_one} of y has {shortest} row, and networks learn from one row to "
            "the next. Give it 2 rows or more, or leave it out."
        )


def check_varies(name: str, tables: list[Array]) -> None:
    """Refuse columns without anything to forecast."""
    rows = np.concatenate(tables)
    with np.errstate(over="ignore"):
        low, high = rows.min(axis=0), rows.max(axis=0)
        size = np.maximum(np.abs(low), np.abs(high))
        constant = np.flatnonzero(high / 2 - low / 2 <= _ROUNDING / 2 * size)
    if not len(constant):
        return
    column = int(constant[0])
    if len(constant) == rows.shape[1]:
        what = f"All rows of {name} are equal"
    else:
        what = f"Column {column} of {name} is constant"
    if low[column] != high[column]:
        what += f" to {_ROUNDING:g} of their size"
    raise ValueError(
        f"{what} (value {rows[0, column]:.6g}, n_samples={len(rows)}): there is nothing to "
        "forecast in it. Leave it out, or give rows in which it varies."
    )


def trajectories(levels: list[Array], known: list[Array]) -> Trajectories:
    """Return standardised trajectories; without exogenous columns these are empty."""
    if not known:
        known = [np.zeros((len(level), 0)) for level in levels]
    return Trajectories(levels, known)
