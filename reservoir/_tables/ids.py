"""Ids of sequences in one table: a column of it, or the outer levels of its MultiIndex."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._tables.values import as_floats
from reservoir._typing import Array
from reservoir._validation.columns import column_number
from reservoir._validation.kinds import is_polars
from reservoir._validation.levels import check_levels

_IDS = "Give each row the id of its sequence, or omit such rows."


def has_levels(data: Any) -> bool:
    """Whether a table has a MultiIndex, whose outer levels are ids."""
    return getattr(getattr(data, "index", None), "nlevels", 1) > 1


def ids_in_levels(name: str, data: Any) -> tuple[Array, tuple[Any, ...]]:
    """Return bounds and ids of the sequences of a table with a MultiIndex."""
    check_levels(name, data)
    codes = np.array(data.index.codes[:-1])
    missing = (codes < 0).any(axis=0)
    if missing.any():
        raise ValueError(
            f"The index of {name} contains NaN in place of an id, first in row "
            f"{int(np.argmax(missing))}. {_IDS}"
        )
    begins = np.append(0, np.flatnonzero((np.diff(codes, axis=1) != 0).any(axis=0)) + 1)
    return _runs(name, begins, len(data), data.index.droplevel(-1)[begins].to_numpy())


def ids_in_column(name: str, data: Any, column: Any) -> tuple[Array, tuple[Any, ...], int]:
    """Return bounds and ids of the sequences of a table, and the position of its column of ids."""
    names = list(data.columns) if hasattr(data, "columns") else None
    place = column_number("sequence_column", column, names, data.shape[1])
    if hasattr(data, "iloc"):
        ids, missing = data.iloc[:, place].to_numpy(), data.iloc[:, place].isna().to_numpy()
    elif is_polars(data):
        given = data.get_column(data.columns[place])
        ids = given.to_numpy()
        missing = given.is_null().to_numpy() | (ids != ids)
    else:
        ids = data[:, place]
        missing = ids != ids
    if missing.any():
        raise ValueError(
            f"{name} contains NaN in the id column {place}, first in row "
            f"{int(np.argmax(missing))}. {_IDS}"
        )
    begins = np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)
    return *_runs(name, begins, len(ids), ids[begins]), place


def without_ids(name: str, data: Any, place: int) -> Array:
    """Return the values of a table without its column of ids, which need not be numbers."""
    if hasattr(data, "iloc"):
        others = [j for j in range(data.shape[1]) if j != place]
        return as_floats(name, data.iloc[:, others], has_ids=True)
    if is_polars(data):
        return as_floats(name, data.drop(data.columns[place]), has_ids=True)
    table = np.array(data)
    table[:, place] = 0  # so that columns keep their numbers in messages
    return np.delete(as_floats(name, table, has_ids=True), place, axis=1)


def _runs(name: str, begins: Array, n_rows: int, ids: Array) -> tuple[Array, tuple[Any, ...]]:
    """Return bounds and ids of runs of rows with one id; raise if an id has two runs."""
    each = tuple(ids)
    if len(set(each)) < len(each):
        again = next(i for i, one in enumerate(each) if one in each[:i])
        raise ValueError(
            f"Sequence id {each[again]!r} appears again in row {begins[again]} of {name} after "
            "other ids: rows of one sequence must be adjacent and in time order. Sort by id and "
            "time, and do not shuffle rows when you split."
        )
    return np.append(begins, n_rows), each
