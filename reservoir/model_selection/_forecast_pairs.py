"""Inputs and targets for forecasting, from a series and exogenous variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._tables.frames import (
    check_moved,
    columns_of,
    is_collection,
    is_pandas,
    n_levels,
    take_rows,
)
from reservoir._typing import Array
from reservoir._validation import as_array, check_count, index_of
from reservoir._validation.order import check_index
from reservoir._validation.plain import as_finite


def make_forecast_pairs(
    series: Any, horizon: int | Sequence[int] = 1, *, exog: Any = None
) -> tuple[Any, Any]:
    """Make inputs, and targets that are `horizon` steps ahead of them, from a series.

    ``X[t] = series[t]`` and ``y[t] = series[t + horizon]``. Horizon 1 gives the pairs for
    closed-loop forecasting; a list of horizons gives the pairs for a direct forecast, with a
    separate output for each horizon. Variables that are known in advance for the forecast rows
    (holidays, prices, the hour) are passed as `exog`.

    Parameters
    ----------
    series : array-like of shape (n_samples,) or (n_samples, n_outputs), or a collection of them
        The series, or several. A collection is a list of arrays or DataFrames, an object array or a
        3-D array; a nested list of numbers is one table.
    horizon : int or list of int, steps, default=1
        Number of steps from an input to its target.
    exog : array-like of shape (n_samples,) or (n_samples, n_exog), or a collection, optional
        Exogenous variables, one row for each row of `series`; a collection if `series` is a
        collection. If both are pandas objects, rows are matched by index, so `exog` may start
        earlier and end later. In X, the columns of ``series[t]`` are followed by
        ``exog[t + horizon]``, the row of the target; with several horizons, by the row of each
        target. With horizon 1, `forecast` then takes the rows of `exog` that follow.

    Returns
    -------
    X : ndarray or DataFrame of shape (n_samples - max(horizon), n_outputs + n_horizons * n_exog)
        Always 2-D; for a collection, one for each item, in the same container. Columns of `exog`
        keep their names; with a list of horizons "+1", "+2" and so on are appended.
    y : ndarray, Series or DataFrame
        For an integer `horizon`, y has as many dimensions as the series; a pandas y keeps, in each
        row, the index of its value, `horizon` steps after the index of the same row of X. For a
        list of horizons, y has shape (n_samples - max(horizon), n_horizons * n_outputs), with all
        outputs of the first horizon first; a pandas y has the index of X, from which the horizons
        are counted, and columns such as "sales+1" and "sales+2".

    Raises
    ------
    TypeError, ValueError
        If a horizon is not an integer of at least 1, is repeated, or is not smaller than the length
        of every series; if a series has neither 1 nor 2 dimensions; if values are masked, complex,
        infinite or dates; if `exog` lacks a row, or has a column name in common with the series.

    Notes
    -----
    Either all column names are strings, or none. If there are several columns, an unnamed Series is
    named "y"; the columns of an array `exog` next to named columns are "exog0", "exog1" and so on.

    Examples
    --------
    >>> from reservoir.model_selection import make_forecast_pairs
    >>> X, y = make_forecast_pairs([1.0, 2.0, 4.0, 8.0], horizon=2)
    >>> X.ravel(), y
    (array([1., 2.]), array([4., 8.]))
    >>> X, y = make_forecast_pairs([1.0, 2.0, 4.0, 8.0], horizon=[1, 2], exog=[0, 1, 0, 1])
    >>> X
    array([[1., 1., 0.],
           [2., 0., 1.]])
    >>> y
    array([[2., 4.],
           [4., 8.]])
    """
    steps = _read_horizons(horizon)
    if not is_collection(series):
        return _pair(_Item(series, exog, "the series"), steps)
    # pairs item by item, so that no target is in the next sequence
    known = _one_each(exog, len(series))
    pairs = [
        _pair(_Item(item, rows, f"series {i}"), steps)
        for i, (item, rows) in enumerate(zip(series, known, strict=True))
    ]
    if not isinstance(series, np.ndarray):
        return [X for X, _ in pairs], [y for _, y in pairs]
    if series.ndim == 3:
        return np.stack([X for X, _ in pairs]), np.stack([y for _, y in pairs])
    packed = np.empty((2, len(pairs)), dtype=object)
    for i, pair in enumerate(pairs):
        packed[0, i], packed[1, i] = pair
    return packed[0], packed[1]


@dataclass(frozen=True)
class _Horizons:
    """Horizons of the targets; `several` is true if they were passed as a list."""

    steps: list[int]
    several: bool

    @property
    def longest(self) -> int:
        return max(self.steps)

    def named(self, name: Any, step: int) -> Any:
        """Return the name of a column that is shifted by `step` rows."""
        return f"{name}+{step}" if self.several else name


@dataclass(frozen=True)
class _Item:
    """A single series with its exogenous variables; `name` is its name in messages."""

    series: Any
    exog: Any
    name: str

    @property
    def name_of_exog(self) -> str:
        return "exog" if self.name == "the series" else f"exog of {self.name}"


def _read_horizons(horizon: Any) -> _Horizons:
    if as_array("horizon", horizon).ndim == 0:
        return _Horizons([check_count("horizon", horizon)], several=False)
    steps = [check_count(f"horizon[{i}]", step) for i, step in enumerate(horizon)]
    if not steps or len(set(steps)) < len(steps):
        raise ValueError(
            f"horizon={steps} must contain at least one number of steps, and none of them twice. "
            "Give a number, or a list such as [1, 2, 3]."
        )
    return _Horizons(steps, several=True)


def _one_each(exog: Any, n_series: int) -> list[Any]:
    """Return the exogenous variables of each series."""
    if exog is None:
        return [None] * n_series
    if not hasattr(exog, "__len__") or is_pandas(exog) or len(exog) != n_series:
        items = f"{len(exog)} items" if hasattr(exog, "__len__") else "one value"
        what = "is one table" if is_pandas(exog) else f"contains {items}"
        raise ValueError(
            f"exog {what}, but there are {n_series} series. Give a list with one table for each."
        )
    return list(exog)


def _pair(item: _Item, horizons: _Horizons) -> tuple[Any, Any]:
    """Return inputs and targets of a single series."""
    for name, each in ((item.name, item.series), (item.name_of_exog, item.exog)):
        if n_levels(each) > 1:
            raise ValueError(
                f"{name} has a MultiIndex, so pairs would span two sequences. Give a list with one "
                "DataFrame per sequence."
            )
    _check_values(item.name, item.series)
    values = item.series if is_pandas(item.series) else np.array(item.series)
    index = index_of(values)
    if index is not None:  # sorting the pairs later would not correct their targets
        check_index(item.name, index)
    if len(values) <= horizons.longest:
        raise ValueError(
            f"horizon={horizons.longest} must be smaller than the number of rows, but {item.name} "
            f"has n_samples={len(values)}. Lower it, or give a longer series."
        )
    pair = _pair_of_arrays if isinstance(values, np.ndarray) else _pair_of_frames
    return pair(item, values, horizons)


def _check_values(name: str, table: Any) -> None:
    """Raise for complex numbers, infinity and dates; NaN may be filled, text may be symbols."""
    check_moved(name, table)
    if not is_pandas(table):
        rows = np.asarray(table)
        if rows.dtype.kind == "f":
            as_finite(name, rows.reshape(len(rows), -1), float, allow_nan=True)
        return
    for i, column in enumerate(columns_of(table)):
        if getattr(column.dtype, "kind", "O") == "f":
            rows, words = column.to_numpy(float, na_value=np.nan), f"{i} ({column.name!r})"
            as_finite(name, rows[:, None], float, lambda _, w=words: f"column {w}", allow_nan=True)


def _pair_of_arrays(item: _Item, values: Array, horizons: _Horizons) -> tuple[Array, Array]:
    n = len(values) - horizons.longest
    table = values.reshape(len(values), -1)
    X = table[:n]
    if item.exog is not None:
        known = _known_rows(item, len(values))
        X = np.hstack([X, *(known[step : step + n] for step in horizons.steps)])
    if not horizons.several:
        return X, values[horizons.longest :]
    return X, np.hstack([table[step : step + n] for step in horizons.steps])


def _known_rows(item: _Item, n_samples: int) -> Array:
    """Return exogenous rows as an array, one for each row of the series."""
    _check_values(item.name_of_exog, item.exog)
    index = index_of(item.exog)
    if index is not None:  # the series has none that its rows could be matched by
        check_index(item.name_of_exog, index)
    rows = np.asarray(item.exog)
    if len(rows) != n_samples:
        raise ValueError(
            f"{item.name_of_exog} has shape {rows.shape}; (n_samples,) or (n_samples, n_exog) with "
            f"n_samples={n_samples} is required, one row for each row of {item.name}."
        )
    return rows.reshape(n_samples, -1)


def _pair_of_frames(item: _Item, values: Any, horizons: _Horizons) -> tuple[Any, Any]:
    import pandas as pd

    n = len(values) - horizons.longest
    frame = values if values.ndim == 2 else values.to_frame()
    if values.ndim == 1 and values.name is None and (item.exog is not None or horizons.several):
        frame.columns = ["y"]
    X = take_rows(frame, slice(n))

    def ahead(table: Any) -> list[Any]:
        """Return the rows of a table that are ahead of the rows of X, for each horizon."""
        # with the index of X, because pandas joins columns by index
        return [
            take_rows(table, slice(step, step + n))
            .set_axis(X.index)
            .set_axis([horizons.named(name, step) for name in table.columns], axis=1)
            for step in horizons.steps
        ]

    if item.exog is not None:
        table = _known_frame(item, frame)
        numbered = not any(isinstance(name, str) for name in (*frame.columns, *table.columns))
        known = ahead(table)
        names = [name for part in known for name in (table if numbered else part).columns]
        _check_names(item, frame, names[: table.shape[1]] if numbered else names)
        X = pd.concat([X, *known], axis=1)
        if numbered and horizons.several:
            X.columns = range(X.shape[1])
    if not horizons.several:
        return X, take_rows(values, slice(horizons.longest, None))
    return X, pd.concat(ahead(frame), axis=1)


def _known_frame(item: _Item, frame: Any) -> Any:
    """Return exogenous rows as a frame with the index of the series."""
    import pandas as pd

    if not is_pandas(item.exog):
        rows = _known_rows(item, len(frame))
        named = all(isinstance(name, str) for name in frame.columns)
        first = frame.shape[1]
        names = [f"exog{i}" if named else first + i for i in range(rows.shape[1])]
        return pd.DataFrame(rows, index=frame.index, columns=names)
    known = item.exog if item.exog.ndim == 2 else item.exog.to_frame(item.exog.name or "exog")
    _check_values(item.name_of_exog, known)
    if known.index.equals(frame.index):
        return known
    found = frame.index.isin(known.index)
    if not found.all():
        stamp = str(frame.index[int(np.argmin(found))]).removesuffix(" 00:00:00")
        raise ValueError(
            f"{item.name_of_exog} has no row for {stamp}, which is in the index of {item.name}. "
            "Give one row for each, or, if the rows are in the same order, the index of the "
            "series, `exog.set_axis(series.index)`."
        )
    if not known.index.is_unique or not frame.index.is_unique:
        raise ValueError(
            f"The indexes of {item.name} and {item.name_of_exog} differ, and one of them has "
            "repeated entries, so rows cannot be matched. Give both the same index."
        )
    return known.loc[frame.index]


def _check_names(item: _Item, frame: Any, known: list[Any]) -> None:
    """Check that no column name of X is repeated, and that all or none are strings."""
    names = [*frame.columns, *known]
    counts = Counter(names)
    twice = [name for name in known if counts[name] > 1]
    if twice:
        raise ValueError(
            f"X would have two columns named {twice[0]!r}, one of them from {item.name_of_exog}: "
            f"{names}. Rename it."
        )
    if len({isinstance(name, str) for name in names}) > 1:
        raise ValueError(
            f"X would have the columns {names}, a mix of names and numbers, which scikit-learn "
            "rejects. Name all columns, or none."
        )
