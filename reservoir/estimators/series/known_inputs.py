"""Known inputs: categories, which become columns of 0 and 1, missing values, lengths."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._tables.frames import columns_of, is_polars, n_dimensions, with_columns
from reservoir._tables.reading import some
from reservoir._typing import Array
from reservoir._validation.index import plain_name

# for each column its categories in their order, None if it contains numbers; empty if all do
Categories = tuple[tuple[Any, ...] | None, ...]


def categories_of(tables: Sequence[Any], id_place: int | None = None) -> Categories:
    """Return the categories of each column of known inputs, in tables of the same columns.

    They are those of an unordered pandas dtype, or of Enum in polars, in their order, and the
    values of a Categorical of polars, in the order of their first rows. Those that only later
    tables have come last. The column of ids, number `id_place`, is left out.
    """
    found: list[dict[Any, None] | None] = []
    for table in tables:
        columns = [column for i, column in enumerate(columns_of(table)) if i != id_place]
        of_table = [_categories(column) for column in columns]
        found += [None] * (len(of_table) - len(found))
        for i, labels in enumerate(of_table):
            if labels is not None:
                found[i] = (found[i] or {}) | dict.fromkeys(map(plain_name, labels))
    if all(labels is None for labels in found):
        return ()
    return tuple(None if labels is None else tuple(labels) for labels in found)


def as_numbers(name: str, table: Any, known: Categories, id_place: int | None = None) -> Any:
    """Return known inputs with each category replaced by its number in `known`, those of fit.

    Missing categories become NaN. Columns that contained numbers in fit are unchanged, and that of
    ids, number `id_place`. Raise if a column has categories but had none in fit, or the reverse,
    or if a category is new.
    """
    columns = columns_of(table)
    if not columns and known:
        first = next(labels for labels in known if labels is not None)
        raise ValueError(
            f"{name} is a {type(table).__name__}, but in fit it had categories: {some(first)}. "
            "Give a DataFrame with the columns of fit."
        )
    places = [i for i in range(len(columns)) if i != id_place]
    changed = {}
    for place, labels in zip(places, known or (None,) * len(places), strict=False):
        if labels is None:
            _check_has_numbers(name, columns[place])
        else:
            label = columns[place].name if n_dimensions(table) == 2 else None
            changed[place] = _numbers(name, label, columns[place], labels)
    return with_columns(table, changed) if changed else table


def indicators(values: Array, known: Categories) -> Array:
    """Return known inputs with a column for each category instead of the numbers of categories.

    `values`, (n_rows, n_columns), are those that `as_numbers` returns. A value is 1 if the row has
    this category, otherwise 0, and NaN if the category is missing.
    """
    if not known:
        return values
    parts = []
    for column, labels in zip(values.T[:, :, None], known, strict=True):
        if labels is None:
            parts.append(column)
        else:
            is_category = column == np.arange(len(labels))
            parts.append(np.where(np.isnan(column), np.nan, is_category))
    return np.hstack(parts)


def fill_known(
    names: Sequence[str], tables: list[Array], how: str, categories: Categories = ()
) -> list[Array]:
    """Return known inputs whose missing values are filled as `missing_values` of ESNForecaster.

    The numbers of `categories` become columns of 0 and 1, which are interpolated like other values.
    Raise if a value is missing with `how="raise"`, or if none is there to repeat or interpolate.
    """
    found: list[Array] = []
    for i, table in enumerate(tables):
        # all series may share one table: fill it once, and keep it one object
        shared = i > 0 and table is tables[i - 1]
        missing = np.isnan(table)
        if shared or not missing.any():
            found.append(found[-1] if shared else indicators(table, categories))
            continue
        row, column = (int(k) for k in np.argwhere(missing)[0])
        if how == "raise":
            raise ValueError(
                f"Row {row} of {names[i]} has no value in column {column} (NaN). Fill it, or set "
                'missing_values="hold" to repeat the value before it, or "interpolate".'
            )
        if missing.all(axis=0).any() or (how == "hold" and missing[0].any()):
            column = int(
                np.argmax(missing.all(axis=0) if missing.all(axis=0).any() else missing[0])
            )
            raise ValueError(
                f"Column {column} of {names[i]} begins with missing values (NaN), and there is no "
                "earlier value to repeat. Fill them; if the column has later values, "
                'missing_values="interpolate" can do so.'
            )
        filled = [_filled(values, how) for values in indicators(table, categories).T]
        found.append(np.column_stack(filled))
    return found


def _filled(values: Array, how: str) -> Array:
    rows, known = np.arange(len(values)), np.flatnonzero(np.isfinite(values))
    if how == "interpolate":
        return np.interp(rows, known, values[known])
    return values[known[np.searchsorted(known, rows, side="right") - 1]]


def check_lengths(
    names: Sequence[str], tables: list[Array], lengths: Sequence[int], partner: str
) -> None:
    """Check that the known inputs of each series have the required number of rows."""
    for name, table, length in zip(names, tables, lengths, strict=True):
        if len(table) != length:
            raise ValueError(
                f"{name} has {len(table)} rows, but {length} are needed: one for each row of "
                f"{partner}."
            )


def check_n_tables(n_tables: int, n_series: int) -> None:
    """Check that there is a table of known inputs for each series."""
    if n_tables != n_series:
        raise ValueError(
            f"exog contains {n_tables} tables, but there are {n_series} series. Give one "
            "table for each series, or one for all of them."
        )


def _categories(column: Any) -> list[Any] | None:
    """Return the categories of a column; None if it has none, or if these are ordered."""
    if not _has_categories(column) or getattr(column.dtype, "ordered", False):
        return None
    if not is_polars(column):
        return list(column.cat.categories)
    if str(column.dtype).startswith("Enum"):
        return column.dtype.categories.to_list()
    return column.drop_nulls().unique(maintain_order=True).to_list()


def _has_categories(column: Any) -> bool:
    if is_polars(column):
        return str(column.dtype).startswith(("Categorical", "Enum"))
    return getattr(column.dtype, "categories", None) is not None


def _check_has_numbers(name: str, column: Any) -> None:
    """Check that a column that contained numbers in `fit` has no categories of another kind."""
    labels = _categories(column) or []
    strange = [each for each in labels if not isinstance(each, (numbers.Real, np.bool_))]
    if strange:
        raise ValueError(
            f"Column {column.name!r} of {name} has categories, such as {plain_name(strange[0])!r}, "
            "but in fit it contained numbers. Give numbers, or fit again with categories."
        )


def _numbers(name: str, label: Any, column: Any, known: tuple[Any, ...]) -> Array:
    """Return the numbers of the categories in a column; raise if one is not among `known`.

    `label` is the name of the column in a table, and None for a Series.
    """
    which = name if label is None else f"Column {label!r} of {name}"
    if not _has_categories(column):
        raise ValueError(
            f"{which} has the dtype {column.dtype}, but in fit it had the categories "
            f"{some(known)}. Convert it to the dtype category (pl.Categorical in polars)."
        )
    number = {each: float(i) for i, each in enumerate(known)}
    values = column.to_list() if is_polars(column) else column.astype(object).tolist()
    missing = column.is_null() if is_polars(column) else column.isna()
    found = np.full(len(values), np.nan)
    for row in np.flatnonzero(~np.asarray(missing, dtype=bool)).tolist():
        value = plain_name(values[row])
        if value not in number:
            raise ValueError(
                f"{which} has the category {value!r} in row {row}, which is not among the "
                f"categories of fit: {some(known)}. Replace it by one of these, or fit again with "
                "rows of this category."
            )
        found[row] = number[value]
    return found
