"""Read data of any container once: `read` returns `Sequences`."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_array

from reservoir._tables.sequences import Sequences
from reservoir._typing import Array
from reservoir._validation.kinds import (
    check_has_rows,
    check_numeric,
    check_readable,
    is_polars,
    na_as_nan,
)
from reservoir._validation.order import check_levels
from reservoir._validation.plain import FILL, as_array, as_finite

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_STEPS = "(n_samples, n_features), one row per time step"
_SERIES = "(n_steps, n_channels), or (n_steps,) for one channel"


def read(
    name: str,
    data: Any,
    *,
    sequence_column: Any = None,
    rows: str = "steps",
    allow_nan: bool = False,
    dtype: Any = None,
    fill: str = FILL,
    cut: bool = False,
    least_columns: int = 1,
) -> Sequences:
    """Read data of any container once: the rows, the ids of their sequences, and its form.

    A row of a 2-D array without ids is a step (`rows="steps"`), or a series of one column
    ("series": items of a list may be 1-D, too). NaN passes if `allow_nan`; `fill` is the advice for
    it, and `cut` that for padding. Values have the dtype `dtype`, by default float32 if the data
    have, else float64.
    """
    _check_rows(name, data)
    kind = container_of(data, rows, name)
    if sequence_column is not None or has_levels(data):
        values, found = _with_ids(name, data, sequence_column, kind)
    elif kind in ("table", "rows"):
        values, found = _one(name, data, kind, least_columns)
    elif kind == "array":
        values, found = _stack(name, data)
    else:
        values, found = _several(name, data, kind, 1 if rows == "series" else 2, least_columns)

    kind = found.container

    def advice(row: int) -> str:
        if not cut or (found.ids is None and kind == "table"):
            return fill
        return _padding_advice(found.arrays[found.locate(row)[0]]) or fill

    floats = as_finite(
        name,
        values,
        values.dtype if dtype is None else dtype,
        found.column,
        if_nan=advice,
        allow_nan=allow_nan,
        bounds=None if kind == "table" else found.bounds,
    )
    return found if floats is values else replace(found, arrays=_cut(floats, found.lengths, kind))


def _check_rows(name: str, data: Any) -> None:
    """Raise if data have no rows, or none in memory."""
    check_readable(name, data)
    nested = hasattr(data, "iloc") and data.size and np.ndim(data.iloc[(0,) * data.ndim])
    if nested:
        raise TypeError(
            f"{name} is a {type(data).__name__} of sequences, but must be a table, or a list of "
            "arrays with a row for each time step."
        )
    check_has_rows(name, data, "(n_samples, n_features)")
    if isinstance(data, (list, tuple)) and not len(data):
        raise ValueError(f"{name} contains no sequences (n_sequences=0); at least 1 is required.")


def container_of(data: Any, rows: str = "steps", name: str = "X") -> str:
    """Return the kind of container of data, as in `Sequences`.

    A list of lists of numbers is one table, with `rows` as in `read`, or "tables", whose items may
    be 1-D. Only a list of 1-D arrays raises an error where rows are steps, because it is ambiguous.
    """
    least, whole = 2 if rows == "steps" else 1, "rows" if rows == "series" else "table"
    if isinstance(data, (list, tuple)) and len(data):
        first = data[0]
        if least == 2 and isinstance(first, np.ndarray) and first.ndim == 1 and len(first) != 1:
            raise ValueError(
                f"{name} is a list of 1-D arrays (the first has shape {first.shape}), which is "
                "ambiguous. Reshape each to 2-D, (n_samples, n_features), if they are sequences, "
                "or stack them (np.stack) if they are the rows of one table."
            )
        # frames of polars have no `ndim`, those that are not in memory no shape
        in_memory, kind = hasattr(first, "shape"), type(first)
        if in_memory or hasattr(kind, "columns"):
            return "list" if not in_memory or least <= len(first.shape) <= 2 else whole
        if not isinstance(first, (list, tuple)) or not len(first):
            return whole
        deeper = isinstance(first[0], (list, tuple)) or getattr(first[0], "ndim", 0) > 0
        ragged = whole == "rows" and len({len(row) for row in data if hasattr(row, "__len__")}) > 1
        return "list" if deeper or ragged else whole
    if getattr(data, "ndim", 2) == 3:
        return "array"
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1 and len(data):
        return "object" if np.ndim(data[0]) >= least else whole
    return whole


def _with_ids(name: str, data: Any, column: Any, kind: str) -> tuple[Array, Sequences]:
    """Read one table of several sequences, which are identified by a column or a MultiIndex."""
    if column is not None and has_levels(data):
        raise ValueError(
            f"sequence_column={column!r}, but {name} has a MultiIndex, which identifies the "
            "sequences, too. Set sequence_column=None, or reset the index."
        )
    if kind not in ("table", "rows"):
        raise ValueError(
            f"sequence_column={column!r} is for one table of several sequences, but {name} is a "
            "collection of sequences already. Set sequence_column=None, or pass one table "
            "(model_selection.stack_sequences makes it)."
        )
    data = as_table(name, data)
    _check_shape(name, data.shape, 1)
    bounds, ids, place = ids_of_rows(name, data, column)
    if place is not None and data.shape[1] == 1:
        raise ValueError(
            f"{name} has no column except the id column: at least 1 feature is required."
        )
    values = _floats_without(name, data, place)
    parts, columns = _cut(values, np.diff(bounds), "table"), tuple(getattr(data, "columns", ()))
    return values, Sequences(parts, "table", ids, columns=columns, id_place=place)


def _one(name: str, data: Any, kind: str, least_columns: int) -> tuple[Array, Sequences]:
    """Read one table without ids: one sequence, or a series in each row."""
    data = as_table(name, data)
    _check_shape(name, data.shape, least_columns)
    values = as_floats(name, data)
    columns = tuple(getattr(data, "columns", ()))
    lengths = [len(values)] if kind == "table" else [values.shape[1]] * len(values)
    values = values if kind == "table" else values.reshape(-1, 1)
    return values, Sequences(_cut(values, lengths, kind), kind, columns=columns)


def _cut(values: Array, lengths: Any, kind: str) -> Sequence[Array]:
    """Return the rows of each sequence; one 3-D array, which takes less memory than many views."""
    if kind in ("array", "rows"):
        return values.reshape(len(lengths), -1, values.shape[1])  # type: ignore[return-value]
    if len(lengths) == 1:
        return (values,)
    return tuple(values[i:j] for i, j in pairwise(np.append(0, np.cumsum(lengths)).tolist()))


def as_table(name: str, data: Any) -> Any:
    """Return nested lists as an array, and tables as they are."""
    if hasattr(data, "shape"):
        return data
    return as_array(name, data, "Pass sequences of different lengths as a list of 2-D arrays.")


def _check_shape(name: str, shape: tuple[int, ...], least_columns: int) -> None:
    """Raise unless a shape is that of a table with rows and columns."""
    if len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} has shape {shape}, but must have "
            f"shape {_STEPS}. Reshape your data: to one column if it is a series of one feature, "
            "to one row if it is one row of several features."
        )
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape)}: {name} has shape {shape}, but one series has "
            "shape (n_samples, n_features), and several of equal length have shape (n_sequences, "
            "n_samples, n_features). Reshape your data: put all values of a step in one row."
        )
    if not shape[0] or shape[1] < least_columns:
        what = "feature" if shape[0] else "sample"
        raise ValueError(
            f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: "
            f"{name} needs at least one row and one column."
        )


def _stack(name: str, data: Any) -> tuple[Array, Sequences]:
    """Read a 3-D array."""
    values = as_floats(name, data)
    if not values.size:
        raise ValueError(
            f"{name} has shape {values.shape}, (n_sequences, n_steps, n_channels): it contains no "
            "sequences, no steps or no channels, but at least 1 of each is required."
        )
    return values.reshape(-1, values.shape[2]), Sequences(values, "array")  # type: ignore[arg-type]


def _several(
    name: str, data: Any, kind: str, ndim: int, least_columns: int
) -> tuple[Array, Sequences]:
    """Read a list or an object array of tables; with `ndim` of 1 they may be 1-D."""
    columns = tuple(getattr(data[0], "columns", ()))
    parts: list[Array] = []
    for i, item in enumerate(data):
        plain = type(item) is np.ndarray and item.dtype in FLOATS
        each = f"Sequence {i} of {name}"
        part = np.asarray(item, order="C") if plain else as_floats(each, item, has_ids=True)
        if part.ndim == 1 == ndim:
            part = part[:, None]
        if part.ndim != 2 or not len(part) or part.shape[1] < least_columns:
            raise ValueError(
                f"{each} has shape {np.shape(item)}, but must have shape "
                f"{_STEPS if ndim == 2 else _SERIES}, with at least 1 step and 1 column. Omit "
                "empty sequences."
            )
        if parts and part.shape[1] != parts[0].shape[1]:
            raise ValueError(
                f"{each} has {part.shape[1]} columns, but sequence 0 has "
                f"{parts[0].shape[1]}. All sequences need the same columns; rows are time steps."
            )
        if not plain and tuple(getattr(item, "columns", columns)) != columns:
            raise ValueError(
                f"{each} has the columns {list(item.columns)}, but sequence 0 has "
                f"{list(columns)}. All sequences need the same columns."
            )
        parts.append(part)
    values = np.concatenate(parts)
    if any(part.dtype != values.dtype for part in parts):
        parts = list(_cut(values, [len(part) for part in parts], kind))
    return values, Sequences(tuple(parts), kind, columns=columns)


def sequence_lengths(X: Any, sequence_column: int | str | None) -> tuple[list[int], bool]:
    """Return the number of rows of each sequence, and whether X is one table."""
    if container_of(X) != "table":
        return [len(item) for item in X], False
    data = as_table("X", X)
    if sequence_column is None and not has_levels(data):
        return [data.shape[0]], True
    return np.diff(ids_of_rows("X", data, sequence_column)[0]).tolist(), True


def has_levels(data: Any) -> bool:
    """Whether a table has a MultiIndex, whose outer levels are ids."""
    return getattr(getattr(data, "index", None), "nlevels", 1) > 1


def ids_of_rows(name: str, data: Any, column: Any) -> tuple[Array, tuple[Any, ...], int | None]:
    """Return bounds and ids of the sequences of a table, and the position of its column of ids.

    Without a `column` the ids are in the outer levels of its MultiIndex.
    """
    place = None
    if column is None:
        check_levels(name, data)
        codes = np.array(data.index.codes[:-1])
        check_ids(name, (codes < 0).any(axis=0))
        changes = (np.diff(codes, axis=1) != 0).any(axis=0)
    else:
        names = list(data.columns) if hasattr(data, "columns") else None
        place = column_number("sequence_column", column, names, data.shape[1], name)
        ids, missing = _column_of_ids(data, place)
        check_ids(name, missing, column)
        changes = ids[1:] != ids[:-1]
    begins = np.append(0, np.flatnonzero(changes) + 1)
    each = tuple(data.index.droplevel(-1)[begins].to_numpy() if column is None else ids[begins])
    if len(set(each)) < len(each):
        again = next(i for i, one in enumerate(each) if one in each[:i])
        raise ValueError(
            f"Sequence id {each[again]!r} appears again in row {begins[again]} of {name} after "
            "other ids: rows of one sequence must be adjacent and in time order. Sort by id and "
            "time, and do not shuffle rows when you split."
        )
    return np.append(begins, len(data)), each, place


def check_ids(name: str, missing: Any, column: Any = None) -> None:
    """Raise if the id of a row is missing in a column, or in the index without one."""
    if missing.any():
        of = "of its index" if column is None else f"of column {column!r}"
        raise ValueError(
            f"{name} has no id in row {int(np.argmax(missing))} {of} (NaN). Give each row the id "
            "of its sequence, or drop such rows."
        )


def _column_of_ids(data: Any, place: int) -> tuple[Array, Array]:
    """Return the ids in a column of a table, and which of them are missing."""
    if hasattr(data, "iloc"):
        return data.iloc[:, place].to_numpy(), data.iloc[:, place].isna().to_numpy()
    if is_polars(data):
        given = data.get_column(data.columns[place])
        ids = given.to_numpy()
        return ids, given.is_null().to_numpy() | (ids != ids)
    ids = data[:, place]
    return ids, ids != ids


def _floats_without(name: str, data: Any, place: int | None) -> Array:
    """Return the values of a table without its column of ids, which need not be numbers."""
    if place is None:
        return as_floats(name, data, has_ids=True)
    if hasattr(data, "iloc"):
        others = [j for j in range(data.shape[1]) if j != place]
        return as_floats(name, data.iloc[:, others], has_ids=True)
    if is_polars(data):
        return as_floats(name, data.drop(data.columns[place]), has_ids=True)
    table = np.array(data)
    table[:, place] = 0  # so that columns keep their numbers in messages
    return np.delete(as_floats(name, table, has_ids=True), place, axis=1)


def as_floats(name: str, data: Any, **options: Any) -> Array:
    """Return the values of a table or an array as float32 if they are, else as float64.

    Rows are contiguous, so that sums do not depend on the memory layout. `options` are those of
    `check_numeric`.
    """
    if type(data) is np.ndarray and data.dtype in FLOATS:
        return np.ascontiguousarray(data)
    if hasattr(data, "iloc"):
        dtypes = set(data.dtypes) if data.ndim == 2 else {data.dtype}
        if all(isinstance(each, np.dtype) and each.kind in "fiub" for each in dtypes):
            single = np.float32 if dtypes == {FLOATS[1]} else np.float64
            return np.ascontiguousarray(data.to_numpy(single))
    check_numeric(name, data, **options)
    try:
        floats: Array = check_array(
            na_as_nan(data),
            dtype=list(FLOATS),
            ensure_2d=False,
            ensure_all_finite=False,
            allow_nd=True,
            order="C",
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (ValueError, TypeError) as error:
        what = str(error).removesuffix(".")
        raise type(error)(f"In {name}: {what}. Give a number or NaN in each place.") from error
    return floats


def _padding_advice(rows: Array) -> str | None:
    """Return advice on padding: NaN in all columns at one end of a sequence; None without it."""
    known = np.asarray(~np.isnan(rows).all(axis=1))
    if not known.any() or (known[0] and known[-1]):
        return None
    return (
        f"From there to the {'start' if known[-1] else 'end'} of the series all channels are "
        "missing: this is padding, which can be cut off, since series may differ in length."
    )


def column_number(parameter: str, column: Any, names: Any, n_columns: int, name: str = "X") -> int:
    """Return the position of a column of a table; a negative number counts from the last one.

    `parameter` refers to the column by its number or name; `names` are those of all columns, None
    if they have none. `name` is the name of the table in messages.
    """
    if isinstance(column, str):
        known = [] if names is None else list(names)
        if not known:
            raise ValueError(
                f"{parameter}={column!r} is a name, but {name} has no column names. Use the "
                "column's number, or pass a DataFrame."
            )
        if column not in known:
            raise ValueError(
                f"{parameter}={column!r} is not in {name}; its columns are {some(known)}. Use one "
                "of these names, or the column's number."
            )
        return known.index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} must be an int or a column name; got {column!r}.")
    number = int(column)
    if not -n_columns <= number < n_columns:
        raise ValueError(f"{parameter}={number} is outside {name}, which has {n_columns} columns.")
    return number % n_columns


def some(names: Sequence[Any]) -> str:
    """Return the first five names as a string."""
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
