"""Values of tables as floats, and the checks for NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from reservoir._tables.table import Table
from reservoir._typing import Array
from reservoir._validation.kinds import check_numeric, na_as_nan
from reservoir._validation.sequences import in_dtype, not_finite

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def as_floats(name: str, data: Any, *, has_ids: bool = False) -> Array:
    """Return the values of a table or an array as float32 if they are, else as float64.

    Rows are contiguous, so that sums do not depend on the memory layout. `has_ids` is as in
    `check_numeric`.
    """
    if type(data) is np.ndarray and data.dtype in FLOATS:
        return np.ascontiguousarray(data)
    if hasattr(data, "iloc"):
        dtypes = set(data.dtypes) if data.ndim == 2 else {data.dtype}
        if all(isinstance(each, np.dtype) and each.kind in "fiub" for each in dtypes):
            single = np.float32 if dtypes == {FLOATS[1]} else np.float64
            return np.ascontiguousarray(data.to_numpy(single))
    check_numeric(name, data, has_ids=has_ids)
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
        raise type(error)(f"In {name}: {error}") from error
    return floats


def check_finite(table: Table, dtype: Any, *, allow_nan: bool, fill: str, cut: bool) -> Array:
    """Return the values of a table in `dtype`; raise for infinity, and for NaN if not allowed.

    `fill` is the advice for NaN. If `cut` is True, sequences may be shorter, and the advice for
    padding is to cut it off.
    """
    floats = in_dtype(table.values, dtype)
    finite = np.isfinite(floats)
    if finite.all() or (allow_nan and not np.isinf(floats).any()):
        return floats
    bad = np.isinf(floats) if allow_nan else ~finite
    row, column = (int(each) for each in np.argwhere(bad)[0])
    i, begin = table.sequence_at(row)
    if cut and (table.ids is not None or table.form.kind != "table"):
        fill = _padding_advice(table.values[begin : table.bounds[i + 1]]) or fill
    name, first = table.name, row
    if table.form.kind != "table":
        name, first = f"sequence {i} of {name}", row - begin
    where = f"{table.column(column)}, first in row {first}"
    raise ValueError(
        not_finite(name, where, table.values[row, column], floats[row, column], dtype, fill)
    )


def _padding_advice(rows: Array) -> str | None:
    """Return advice on padding: NaN in all columns at one end of a sequence; None without it."""
    known = np.asarray(~np.isnan(rows).all(axis=1))
    if not known.any() or (known[0] and known[-1]):
        return None
    return (
        f"From there to the {'start' if known[-1] else 'end'} of the series all channels are "
        "missing: this is padding, which can be cut off, since series may differ in length."
    )
