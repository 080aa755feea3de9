"""Frames and arrays of Dask: one fit in parts, one for each partition, and predictions of each.

Tasks are made by `dask.delayed` alone, so that any scheduler runs them. Dask is imported when a
table of it arrives.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from reservoir._tables import column_number
from reservoir._typing import Array
from reservoir.estimators.esn import PartPlan, SeamError, plan_parts
from reservoir.estimators.esn.part_outputs import PartOutputs
from reservoir.estimators.esn.source_estimator import LAZY_TABLES, LazyTables

_FAN_IN = 4  # parts that are merged at a time: of two levels of a tree, so many are in memory
_FIRST_ROWS = 1000  # rows that settle columns, weights and the overlap


class _Tables(NamedTuple):
    """Partitions of X, y and weights as delayed tables."""

    X: list[Any]
    y: list[Any]
    weights: list[Any]
    thin: list[Any]  # the ids, or one column of X
    has_ids: bool


class _Look(NamedTuple):
    """Runs of ids in a partition with their rows, its sizes and its labels."""

    ids: list[Any]
    lengths: list[int]
    sizes: list[int]
    labels: Array | None


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a clone of an estimator that is fitted to all partitions."""
    import dask

    tables = _read(estimator, X, y, sample_weight)
    labels = is_classifier(estimator)
    found = [_looked(dask, tables, i, labels) for i in range(len(tables.X))]
    looks = dask.compute(*found)
    for i, look in enumerate(looks):
        if len(set(look.sizes)) > 1:
            _raise_unequal(f"partition {i} has {look.sizes} rows")
    sizes = [sum(look.lengths) for look in looks]
    head = _head(dask, tables.X, tables.y, sizes)
    classes = None
    if labels:
        classes = np.unique(
            np.concatenate([look.labels for look in looks if look.labels is not None])
        )
    ids = [look.ids for look in looks] if tables.has_ids else None

    def plan(overlap: int | None) -> PartPlan:
        lengths = [look.lengths for look in looks]
        return plan_parts(estimator, *head, lengths, classes=classes, ids=ids, overlap=overlap)

    try:
        first = plan(None)
    except SeamError:  # states did not agree in the first rows: seams show whether they do later
        first = plan(len(head[1]))
    try:
        return first.finish(_part_of_all(dask, first, tables, sizes))
    except SeamError:
        twice = plan(2 * max(first.overlap, 1))
    try:
        return twice.finish(_part_of_all(dask, twice, tables, sizes))
    except SeamError as error:
        raise ValueError(
            f"{error.found} Partitions cannot be learned apart where states forget so slowly: call "
            "partial_fit with one partition after the other, each loaded with compute."
        ) from error


def _read(estimator: Any, X: Any, y: Any, sample_weight: Any) -> _Tables:
    """Return the partitions, after checking that they are alike and hold whole rows."""
    given = {"X": X, "y": y, **({} if sample_weight is None else {"sample_weight": sample_weight})}
    for name, table in given.items():
        if _is_array(table) != _is_array(X) or not hasattr(type(table), "to_delayed"):
            raise TypeError(
                f"{name} is a {type(table).__name__}, and X is a {type(X).__name__} of Dask. Pass "
                "both as frames of Dask, or both as its arrays, with equal partitions, or load "
                "X with np.asarray."
            )
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, and partitions are learned as rows of a table with 2. "
            "Reshape it, or load it with np.asarray."
        )
    counts = {name: len(_partitions(name, table)) for name, table in given.items()}
    if len(set(counts.values())) > 1:
        _raise_unequal(f"they have {', '.join(f'{n} ({name})' for name, n in counts.items())}")
    parts = [_partitions(name, table) for name, table in given.items()]
    ids = estimator.sequence_column
    thin = _column(X, ids)
    weights = parts[2] if len(parts) > 2 else [None] * len(parts[0])
    return _Tables(parts[0], parts[1], weights, _partitions("X", thin), ids is not None)


def _is_array(table: Any) -> bool:
    return hasattr(type(table), "chunks")


def _partitions(name: str, table: Any) -> list[Any]:
    """Return the partitions of a frame or an array, none of which is fused with another."""
    if not _is_array(table):
        # fused partitions of parquet depend on the columns that are read
        return list(table.to_delayed(optimize_graph=False))
    if any(len(widths) > 1 for widths in table.chunks[1:]):
        raise ValueError(
            f"{name} has chunks across columns, {table.chunks[1:]}, and a row must be in one. "
            "Rechunk it with -1 for axis 1, or load it with np.asarray."
        )
    if any(np.isnan(n) for n in table.chunks[0]):
        raise ValueError(
            f"{name} has chunks of unknown sizes. Call its method compute_chunk_sizes first, or "
            "load it with np.asarray."
        )
    return list(table.to_delayed(optimize_graph=False).ravel())


def _column(X: Any, ids: Any) -> Any:
    """Return the column of ids, or the first one."""
    names = None if _is_array(X) else list(X.columns)
    place = 0 if ids is None else column_number("sequence_column", ids, names, X.shape[1])
    return X[:, place : place + 1] if names is None else X[[names[place]]]


def _raise_unequal(what: str) -> Any:
    raise ValueError(
        f"X, y and sample_weight must have equal partitions, but {what}. Take them from one frame, "
        "or load them with np.asarray."
    )


# ---------------------------------------------------------------------- tasks


def _looked(dask: Any, tables: _Tables, i: int, labels: bool) -> Any:
    others = [tables.y[i], *([] if tables.weights[i] is None else [tables.weights[i]])]
    return dask.delayed(_look)(tables.thin[i], others, tables.has_ids, labels)


def _look(thin: Any, others: list[Any], has_ids: bool, labels: bool) -> _Look:
    """Look at a partition: one column of X, y and the weights."""
    n, values = len(thin), np.asarray(thin)[:, 0]
    runs = [(value, len(list(rows))) for value, rows in groupby(values.tolist())] if has_ids else []
    lengths = [rows for _, rows in runs] if has_ids else [n] if n else []
    found = np.unique(np.asarray(others[0])) if labels and len(others[0]) else None
    return _Look([value for value, _ in runs], lengths, [n, *map(len, others)], found)


def _head(dask: Any, X: list[Any], y: list[Any], sizes: list[int]) -> tuple[Any, Any]:
    """Return the first rows of X and y."""
    there, wanted = [], _FIRST_ROWS
    for i, size in enumerate(sizes):
        n = min(size, wanted)
        if n:
            there.append((i, n))
            wanted -= n
    if not there:
        raise ValueError("X has no rows in any partition. Pass a table with rows.")
    ends = [dask.delayed(_rows)(X[i], y[i], 0, n) for i, n in there]
    return dask.compute(dask.delayed(_together)(ends))[0]


def _rows(X: Any, y: Any, start: int, end: int | None) -> tuple[Any, Any]:
    part = slice(start, end)
    return tuple(t.iloc[part] if hasattr(t, "iloc") else t[part] for t in (X, y))  # type: ignore[return-value]


def _together(pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return rows of several partitions as one table of X, and one of y."""
    if not hasattr(pairs[0][0], "iloc"):
        return tuple(np.concatenate(each) for each in zip(*pairs, strict=True))  # type: ignore[return-value]
    import pandas

    return tuple(pandas.concat(each) for each in zip(*pairs, strict=True))  # type: ignore[return-value]


def _before(dask: Any, X: list[Any], y: list[Any], sizes: list[int], i: int, wanted: int) -> Any:
    """Return the delayed last rows before partition i, of as many partitions as that needs."""
    if not wanted:
        return None
    ends: list[Any] = []
    while wanted > 0:
        i -= 1
        n = min(wanted, sizes[i])
        if n:
            ends.insert(0, dask.delayed(_rows)(X[i], y[i], sizes[i] - n, None))
        wanted -= n
    return dask.delayed(_together)(ends)


def _part_of_all(dask: Any, plan: PartPlan, tables: _Tables, sizes: list[int]) -> Any:
    """Learn and merge all partitions, in a tree whose order no scheduler can change."""
    shared = dask.delayed(plan, pure=False, traverse=False)  # sent once to each worker
    level = []
    for i, rows in enumerate(zip(tables.X, tables.y, tables.weights, strict=True)):
        before = _before(dask, tables.X, tables.y, sizes, i, plan.n_before[i])
        level.append(dask.delayed(_learn)(shared, i, *rows, before))
    while len(level) > 1:
        groups = [level[k : k + _FAN_IN] for k in range(0, len(level), _FAN_IN)]
        level = [dask.delayed(_merge)(shared, group) for group in groups]
    return dask.compute(level[0])[0]


def _learn(plan: PartPlan, i: int, X: Any, y: Any, weights: Any, before: Any) -> Any:
    return plan.learn(i, X, y, sample_weight=weights, before=before)


def _merge(plan: PartPlan, parts: list[Any]) -> Any:
    return plan.merge(parts)


# ---------------------------------------------------------------------- predictions


def predict(estimator: Any, X: Any, initial_state: Any) -> Any:
    """Return predictions of each partition, in the container of X, which are computed later.

    One column of X is read at once, to learn how many rows partitions have.
    """
    import dask

    rows, ids = _partitions("X", X), estimator.sequence_column
    thin = _partitions("X", _column(X, ids))
    looks = dask.compute(*[dask.delayed(_look)(each, [], ids is not None, False) for each in thin])
    sizes = [sum(look.lengths) for look in looks]
    head = _head(dask, rows, rows, sizes)[0]
    runs = PartOutputs(estimator, head, initial_state, _FIRST_ROWS)
    shared = dask.delayed(runs, pure=False, traverse=False)
    places = runs.places([look.lengths for look in looks], [look.ids for look in looks])
    made, out = [], []
    for i, place in enumerate(places):
        before = _before(dask, rows, rows, sizes, i, place.n_before)
        made.append(dask.delayed(_run)(shared, rows[i], before, place))
    full = [i for i, n in enumerate(sizes) if n]
    earlier = dict(zip(full[1:], full, strict=False))
    for i in range(len(made)):
        one = made[earlier[i]] if i in earlier else None
        out.append(dask.delayed(_checked)(shared, made[i], one))
    return _together_later(runs, X, out)


def _run(runs: PartOutputs, X: Any, before: Any, place: Any) -> Any:
    return runs.run(X, None if before is None else before[0], place)


def _checked(runs: PartOutputs, made: Any, earlier: Any) -> Any:
    return runs.checked(made, earlier)


def _together_later(runs: PartOutputs, X: Any, parts: list[Any]) -> Any:
    """Return the outputs of all partitions as a frame or an array of Dask."""
    if not _is_array(X):
        from dask import dataframe

        meta = runs.empty(X._meta)
        return dataframe.from_delayed(parts, meta=meta, divisions=X.divisions, verify_meta=False)
    from dask import array

    none = runs.empty(None)
    blocks = [
        array.from_delayed(part, shape=(n, *none.shape[1:]), dtype=none.dtype)
        for part, n in zip(parts, X.chunks[0], strict=True)
    ]
    return array.concatenate(blocks)


for _package in (
    "dask",
    "dask_expr",
):  # the frames of older versions were in a package of their own
    LAZY_TABLES[_package] = LazyTables(fit, predict)
