"""Memory layouts of recurrent weights for kernels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix

REPEATED = 256  # bytes of a vector that are repeated behind its end, in products with diagonals
_MOST_DIAGONALS = 16
MOST_LINES = 4  # cache lines of sequences side by side: 32 in float64, 64 in float32
LANES = 8  # numbers per vector: one register of 512 bits, two of 256
CACHE_LINE = 64  # bytes
_SHORT = 2**16  # smaller indices need only 16 bits: less to read per connection


class Sell(NamedTuple):
    """A sparse W in slices of eight rows (sliced ELLPACK format), for products with one vector.

    Rows are sorted by their number of entries, and shorter ones padded with zero weights. Slice s
    is ``offsets[s] : offsets[s + 1]`` of `indices` and `data`, (n_entries, 8): lane l belongs to
    row ``rows[s, l]`` of W; n_units in unused lanes of the last slice. `rows` is empty, (0, 8), if
    lane l of slice s is row 8 s + l, as for equal numbers of entries. Indices are unsigned:
    compiled code would test each signed one for being negative.
    """

    offsets: Array
    indices: Array
    data: Array
    rows: Array


class Dense(NamedTuple):
    """A dense W in slices of eight rows, for products with one vector.

    ``data[s, j, l]`` is ``W[8 s + l, j]``, (n_slices, n_units, 8); zero beyond the last row of W.
    """

    data: Array


class Diagonals(NamedTuple):
    """A sparse W on a few diagonals, modulo n_units, for products with one vector.

    `offsets`, (n_diagonals,), int64, are column minus row, from 0 to n_units - 1. ``data[s, k, l]``
    is the weight on diagonal k in row ``s * numbers + l``, with the numbers per cache line as last
    axis; zero beyond the last row of W.
    """

    offsets: Array
    data: Array
    n_units: int


class Rows(NamedTuple):
    """Weights by rows (CSR) with unsigned indices, for products with several vectors at a time.

    The entries of a row are in the order in which the layout from `pack` adds them, so that the
    sums have the same bits.
    """

    offsets: Array
    indices: Array
    data: Array


class LaneSums(NamedTuple):
    """Sums for pooling sequences, with `width` lanes per unit; sums not needed are empty.

    All are flat, (n_units width,); `mean`, `squares` (deviations from it) and `counts` are float64.
    `counts`, (n_units n_thresholds width,), are steps above each threshold of a unit; the number of
    thresholds is a multiple of four.
    """

    mean: Array
    squares: Array
    high: Array
    low: Array
    last: Array
    counts: Array


class LaneWork(NamedTuple):
    """Working memory for pooling sequences, reused for the next ones.

    `x` has two states, as in `lane_states`; `block` the states of some steps, `stride` numbers for
    each. `sums`, (32,), is room for four vectors. `shares`, (5, width), float64, are weights with
    which the steps of each lane are merged.
    """

    x: Array
    block: Array
    stride: int
    sums: Array
    shares: Array


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return zeros whose memory begins at a cache line, so that no vector of eight crosses one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + CACHE_LINE, np.uint8)
    start = -raw.__array_interface__["data"][0] % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def padded(n_units: int, dtype: Any) -> int:
    """Return the number of units with room for whole cache lines of numbers."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-n_units // per_line) * per_line


def lanes_for(n_sequences: int, dtype: Any) -> int:
    """Return the number of lanes for some sequences, or the largest if they need several groups.

    Several cache lines take little longer than one, so there is no width between.
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return per_line if n_sequences <= per_line else MOST_LINES * per_line


def pack_drive(weights: Array, dtype: Any) -> Array:
    """Return rows of a number per unit, each padded with zeros, as a flat array."""
    n_rows, n_units = weights.shape
    out = aligned((n_rows, padded(n_units, dtype)), dtype)
    out[:n_rows, :n_units] = weights
    return out.ravel()


def unsigned(n_columns: int) -> Any:
    """Return the smallest unsigned integer type (uint16 or uint32) that can index the columns."""
    return np.uint16 if n_columns <= _SHORT else np.uint32


def find_diagonals(W: Any) -> Array | None:
    """Return the offsets of the diagonals of a csr_array, modulo n_units; None if there are many.

    There are many if they are more than 16, or if less than a quarter of their entries are stored.
    """
    n_units = W.shape[0]
    # the first rows are enough to refuse most matrices
    for n_rows in (min(_MOST_DIAGONALS, n_units), n_units):
        rows = np.repeat(np.arange(n_rows), np.diff(W.indptr[: n_rows + 1]))
        found = np.bincount((W.indices[: rows.size] - rows) % n_units, minlength=n_units)
        offsets = np.flatnonzero(found)
        if offsets.size > _MOST_DIAGONALS:
            return None
    return offsets if 0 < offsets.size * n_units <= 4 * W.nnz else None


def _pack_diagonals(W: Any, offsets: Array) -> Diagonals:
    n_units, per_line = W.shape[0], CACHE_LINE // W.dtype.itemsize
    rows = np.repeat(np.arange(n_units), np.diff(W.indptr))
    which = np.searchsorted(offsets, (W.indices - rows) % n_units)
    data = aligned((-(-n_units // per_line), offsets.size, per_line), W.dtype)
    np.add.at(data, (rows // per_line, which, rows % per_line), W.data)  # adds duplicate entries
    return Diagonals(offsets.astype(np.int64), data, n_units)


def pack(W: Matrix) -> Sell | Dense | Diagonals:
    """Return W, of shape (n_units, n_units), in the layout for products with one vector.

    A sparse W (csr_array) on a few diagonals becomes a `Diagonals`, another a `Sell`, and a dense
    one a `Dense`.
    """
    if not sp.issparse(W):
        n_units = W.shape[0]
        data = aligned((-(-n_units // LANES), n_units, LANES), W.dtype)
        for lane in range(LANES):
            rows = W[lane::LANES]
            data[: len(rows), :, lane] = rows
        return Dense(data)
    offsets = find_diagonals(W)
    if offsets is not None:
        return _pack_diagonals(W, offsets)
    # rows by decreasing length, eight per slice
    n_units = W.shape[0]
    lengths = np.diff(W.indptr)
    order = np.argsort(-lengths, kind="stable")
    n_slices = -(-n_units // LANES)
    rows = np.full(n_slices * LANES, n_units, np.uint32)
    rows[:n_units] = order
    widths = lengths[order[::LANES]]  # the longest row comes first in its slice
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    # the destination of each entry of the sorted rows: start of its slice + position in its row
    sorted_lengths = lengths[order]
    lane_of_row = np.arange(n_units)
    place_in_row = np.arange(W.nnz) - np.repeat(
        np.cumsum(sorted_lengths) - sorted_lengths, sorted_lengths
    )
    slice_of_entry = np.repeat(lane_of_row // LANES, sorted_lengths)
    lane_of_entry = np.repeat(lane_of_row % LANES, sorted_lengths)
    source = np.repeat(W.indptr[order], sorted_lengths) + place_in_row
    row_of_entry = starts[slice_of_entry] + place_in_row
    # fill; entries not written remain zero weights in column 0
    indices = np.zeros((starts[-1], LANES), unsigned(n_units))
    data = aligned((int(starts[-1]), LANES), W.dtype)
    indices[row_of_entry, lane_of_entry] = W.indices[source]
    data[row_of_entry, lane_of_entry] = W.data[source]
    in_order = np.array_equal(order, np.arange(n_units))
    return Sell(starts, indices, data, rows[: 0 if in_order else None].reshape(-1, LANES))


def pack_rows(W: Matrix, *others: Matrix | None) -> Rows:
    """Return [W, others] side by side, by rows, for products with several vectors at a time."""
    W = sp.csr_array(W)
    n_units = W.shape[0]
    offsets = find_diagonals(W)
    if offsets is not None:  # a row begins with its entry on the first diagonal
        rows = np.repeat(np.arange(n_units), np.diff(W.indptr))
        order = np.lexsort(((W.indices - rows) % n_units, rows))
        W = sp.csr_array((W.data[order], W.indices[order], W.indptr), shape=W.shape)
    parts = [W] + [sp.csr_array(part) for part in others if part is not None]
    # the destination of each entry: start of its row + entries of earlier parts in this row
    lengths = [np.diff(part.indptr) for part in parts]
    starts = np.concatenate([[0], np.cumsum(sum(lengths))]).astype(np.int64)
    indices = np.empty(starts[-1], unsigned(sum(part.shape[1] for part in parts)))
    data = np.empty(starts[-1], W.dtype)
    begin, n_columns = starts[:-1].copy(), 0
    for part, length in zip(parts, lengths, strict=True):
        place = np.arange(part.nnz) + np.repeat(begin - part.indptr[:-1], length)
        indices[place], data[place] = part.indices + n_columns, part.data
        begin += length
        n_columns += part.shape[1]
    return Rows(starts, indices, data)
