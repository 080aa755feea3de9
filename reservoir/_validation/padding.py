"""Recognise padding (NaN in all channels at the start or end of series); suggest its removal."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.kinds import is_polars
from reservoir._validation.wording import code

_ADVICE = (
    "From there to the {where} of the series all channels are missing: this is padding. Remove it, "
    "since series may differ in length: {cut}."
)


def padding_advice(given: Any, table: Array, each: str = "X") -> str | None:
    """Return advice on the padding of one series; None if its NaN are not padding.

    Parameters
    ----------
    given : any
        The series as the user passed it.
    table : array of shape (n_steps, n_channels)
        The series as an array with NaN.
    each : str, default="X"
        The Python expression that iterates over all series.
    """
    there = np.asarray(~np.isnan(table).all(axis=1))
    if not there.any() or (there[0] and there[-1]):
        return None
    known = "~np.isnan(rows)" if np.ndim(given) == 1 else "~np.isnan(rows).all(axis=1)"
    if is_polars(given):
        known = known.replace("(rows)", "(rows.to_numpy())")
    if hasattr(given, "iloc"):
        known = "rows.notna()" if given.ndim == 1 else "rows.notna().any(axis=1)"
    rows = "rows.iloc" if hasattr(given, "iloc") else "rows"
    # a series that contains only NaN becomes an empty series
    kept = f": np.flatnonzero({known}).max(initial=-1) + 1"
    if there[-1]:
        kept = f"np.flatnonzero({known}).min(initial=len(rows)) :"
    cut = code(f"X = [{rows}[{kept}] for rows in {each}]")
    return _ADVICE.format(where="start" if there[-1] else "end", cut=cut)


def table_padding_advice(
    X: Any, y: Any, table: Array, column: int | None, ids: Array | None
) -> str | None:
    """Return advice on padding in a table of several series; None if its NaN are not padding.

    Parameters
    ----------
    X : table
        The table as the user passed it.
    y : any
        Targets, one per row or one per series; None if they are not known.
    table : array of shape (n_rows, n_columns)
        X as an array with NaN, and with zeros in the id column.
    column : int or None
        The number of the id column; None if the ids are in a MultiIndex.
    ids : array of shape (n_rows,) or None
        The id of each row's series; None if there is a single series.
    """
    channels = table if column is None else np.delete(table, column, axis=1)
    there = np.flatnonzero(~np.isnan(channels).all(axis=1))
    if ids is None or len(there) in (0, len(table)):
        return None
    if ((np.diff(there) > 1) & (ids[there[1:]] == ids[there[:-1]])).any():
        return None  # the NaN are within a series
    if np.shape(y)[:1] == (len(table),):
        cut = code(_with_targets(X, y, column))
    elif column is None:
        cut = code('X = X.dropna(how="all")')
    elif is_polars(X):
        cut = code(f"X = X.filter({_known_in_polars(X, column)})")
    elif hasattr(X, "dropna"):
        cut = code(f'X = X.dropna(how="all", subset=X.columns.drop({X.columns[column]!r}))')
    else:
        cut = code(f"X = X[~np.isnan(np.delete(X, {column}, axis=1)).all(axis=1)]")
    return _ADVICE.format(where="end", cut=cut)


def _with_targets(X: Any, y: Any, column: int | None) -> str:
    """Return code that removes padding from X, and from a y that has an entry per row."""
    channels = "X" if column is None else f"np.delete(X, {column}, axis=1)"
    known = f"~np.isnan({channels}).all(axis=1)"
    if hasattr(X, "dropna"):
        channels = "X" if column is None else f"X.drop(columns={X.columns[column]!r})"
        known = f"{channels}.notna().any(axis=1).to_numpy()"
    if is_polars(X) and column is not None:
        return f"rows = {_known_in_polars(X, column)}; X, y = X.filter(rows), np.asarray(y)[rows]"
    targets = "y" if hasattr(y, "shape") and not is_polars(y) else "np.asarray(y)"
    return f"rows = {known}; X, y = X[rows], {targets}[rows]"


def _known_in_polars(X: Any, column: int) -> str:
    """Return the expression of the rows of a table of polars that are not padding."""
    return f"~np.isnan(X.drop({X.columns[column]!r}).to_numpy().astype(float)).all(axis=1)"
