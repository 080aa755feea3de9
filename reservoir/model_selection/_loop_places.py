"""Origins of closed loops: X and y as sequences, the training rows, the rows to start from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from reservoir._tables import sequence_lengths
from reservoir._typing import Array
from reservoir._validation import as_plain, check_choice, resolve_washout
from reservoir.loops.loop_by_loop import Places, evenly_spaced_starts

_HELD_OUT = 5  # the held-out part of each sequence is one in this many
STRATEGIES = ("holdout", "recycle", "rolling")


class Round(NamedTuple):
    """One fit and its loops.

    `sizes` are the numbers of training rows of each sequence, or None for all; `places` are the
    first inputs of the loops, by sequence and row. If `pooled`, their scores are averaged into one.
    """

    sizes: list[int] | None
    places: Places
    pooled: bool = False


class LoopData:
    """X and y as in `fit`, split into sequences; `targets` are (n_samples_i, n_outputs)."""

    def __init__(self, X: Any, y: Any, sequence_column: int | str | None) -> None:
        if y is None:
            raise ValueError("y is None, but closed loops are scored against targets. Give y.")
        self.X, self.y = X, y
        self.lengths, self.is_table = sequence_lengths(X, sequence_column)
        if sum(self.lengths) == 0:
            raise ValueError("X has no rows (n_samples=0); closed loops need rows to start from.")
        parts = [_as_columns(part) for part in ([y] if self.is_table else y)]
        if self.is_table and len(parts[0]) == sum(self.lengths):
            parts = np.split(parts[0], np.cumsum(self.lengths)[:-1])
        if [len(part) for part in parts] != self.lengths:
            raise ValueError(
                f"y must have one row per row of X, but the sequences of X have {self.lengths} "
                f"rows and the sequences of y {[len(part) for part in parts]}."
            )
        self.targets = parts

    def heads(self, values: Any, sizes: list[int] | None) -> Any:
        """Return the first rows of each sequence of X, or of values by row; others unchanged."""
        if sizes is None or not self._belongs(values):
            return values
        if not self.is_table:
            return _cut_each(values, sizes)
        if len(sizes) == 1:
            return _safe_indexing(values, slice(0, sizes[0]))
        starts = np.cumsum([0, *self.lengths[:-1]])
        rows = [np.arange(start, start + n) for start, n in zip(starts, sizes, strict=True)]
        return _safe_indexing(values, np.concatenate(rows))

    def _belongs(self, values: Any) -> bool:
        if isinstance(values, (str, dict)) or not (
            hasattr(values, "__len__") or hasattr(values, "shape")
        ):
            return False
        n_items = values.shape[0] if hasattr(values, "shape") else len(values)
        return n_items == (sum(self.lengths) if self.is_table else len(self.lengths))

    def spread(self, sizes: list[int] | None) -> Array:
        """Return the standard deviation of the training targets, or 1 for a constant output."""
        ends = self.lengths if sizes is None else sizes
        learned = np.concatenate([Y[:n] for Y, n in zip(self.targets, ends, strict=True)])
        known = learned[~np.isnan(learned).any(axis=1)]
        spread = known.std(axis=0) if len(known) else np.zeros(learned.shape[1])
        return np.where(spread > 0, spread, 1.0)

    def followed(self, places: Places, horizon: int) -> Array:
        """Return the targets from each origin on, (horizon, n_places, n_outputs)."""
        rows = np.stack([self.targets[i][t : t + horizon] for i, t in places], axis=1)
        empty = np.isnan(rows).any(axis=2).all(axis=0)
        if empty.any():
            i, t = places[int(np.argmax(empty))]
            raise ValueError(
                f"The loop from row {t} of sequence {i} cannot be scored: all {horizon} targets "
                "there are missing (NaN). Fill y, or use a longer horizon."
            )
        return rows


def _as_columns(y: Any) -> Array:
    try:
        rows = as_plain("y", y, np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must contain numbers, to score forecasts: {error}") from error
    if rows.ndim not in (1, 2):
        raise ValueError(
            f"y has shape {rows.shape}; (n_samples,) or (n_samples, n_outputs) is required."
        )
    return rows.reshape(len(rows), -1)


def _cut_each(values: Any, sizes: list[int]) -> Any:
    """Return the first rows of each item of a collection, in the same container."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values[:, : sizes[0]]  # sequences of equal length have equal sizes
    cut = [_safe_indexing(item, slice(0, n)) for item, n in zip(values, sizes, strict=True)]
    if not isinstance(values, np.ndarray):
        return cut
    packed = np.empty(len(cut), dtype=object)
    packed[:] = cut
    return packed


def rounds_of(
    strategy: str, lengths: list[int], horizon: int, n_starts: int, washout: Any
) -> list[Round]:
    """Return the fits of a strategy with the origins of their loops.

    From each origin on there are at least `horizon` rows, before it at least `washout` in its
    sequence. `n_starts` is the number of origins or, with "rolling", of fits.
    """
    check_choice("strategy", strategy, STRATEGIES)
    if strategy == "rolling":
        return _rolling(lengths, horizon, n_starts, washout)
    if strategy == "recycle":
        return [Round(None, equispaced(lengths, horizon, n_starts, washout))]
    sizes = [n - n // _HELD_OUT for n in lengths]
    where = "the last fifth of each sequence"
    return [Round(sizes, equispaced(lengths, horizon, n_starts, washout, sizes, where))]


def equispaced(
    lengths: list[int],
    horizon: int,
    n_starts: int,
    washout: Any,
    after: list[int] | None = None,
    where: str = "the data",
) -> Places:
    """Return origins at equal distances, after the washout and after the first `after` rows."""
    first = _first_rows(lengths, washout, after)
    places = evenly_spaced_starts(first, lengths, horizon, n_starts)
    if len(places) < n_starts:
        _check_origins(lengths, horizon, n_starts, len(places), where)
    return places


def _rolling(lengths: list[int], horizon: int, n_starts: int, washout: Any) -> list[Round]:
    """Return fits on growing parts of each sequence, from a half on, with loops from their ends."""
    first = _first_rows(lengths, washout, [n // 2 for n in lengths])
    rooms = [n - horizon - row + 1 for n, row in zip(lengths, first, strict=True)]
    if max(rooms) < n_starts:
        where = "the second half of the longest sequence"
        _check_origins(lengths, horizon, n_starts, max(*rooms, 0), where)
    rounds = []
    for k in range(n_starts):
        # the last part is followed by exactly `horizon` rows; sequences that are too short for a
        # loop are used for training as a whole
        back = [(room - 1) * (n_starts - 1 - k) // max(n_starts - 1, 1) for room in rooms]
        sizes = [
            n - horizon - less if room > 0 else n
            for n, room, less in zip(lengths, rooms, back, strict=True)
        ]
        places = [(i, size) for i, size in enumerate(sizes) if rooms[i] > 0]
        rounds.append(Round(sizes, places, pooled=True))
    return rounds


def _first_rows(lengths: list[int], washout: Any, after: list[int] | None) -> list[int]:
    """Return the first row of each sequence from which a loop may start; row 0 never may."""
    washed = resolve_washout(washout, lengths)
    return [max(1, *pair) for pair in zip(washed, after or washed, strict=True)]


def _check_origins(lengths: list[int], horizon: int, n_starts: int, room: int, where: str) -> None:
    shown = ", ".join(map(str, lengths[:5])) + (", ..." if len(lengths) > 5 else "")
    raise ValueError(
        f"n_starts={n_starts} loops need as many origins, each followed by horizon={horizon} rows, "
        f"but there are only {room} after the washout in {where} (n_samples={shown}). Lower "
        "horizon or n_starts, or give longer sequences."
    )
