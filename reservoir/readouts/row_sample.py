"""A few rows that are kept while the rest is summed up: the same ones, however the rows come."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

CAPACITY = 512  # enough for one number: its likelihood is within a thousandth of the best


@saved
class RowSample:
    """Rows drawn by their number in the data, as many as there is room for.

    A number is kept if the last `level` bits of its hash are zero; as soon as there are more rows
    than `CAPACITY`, `level` rises by one. So it is a matter of the numbers alone which rows are
    left in the end: the blocks they come in, their order and the way that samples are merged do
    not matter. Rows at regular distances would not do, since data have periods.

    Attributes
    ----------
    level : int
    numbers : array of shape (n_rows,)
        Ascending.
    rows : tuple of arrays
        Features, targets and weights of these rows; empty before the first.
    """

    def __init__(self) -> None:
        self.level = 0
        self.numbers = np.zeros(0, dtype=np.int64)
        self.rows: tuple[Array, ...] = ()

    def add(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Keep some of these rows; what is kept is copied. Rows of weight zero are not."""
        kept = _is_kept(numbers, self.level)
        if weights is not None:
            kept &= weights > 0
        if kept.any():
            w = np.ones(int(kept.sum())) if weights is None else weights[kept]
            self._join(numbers[kept], features[kept], targets[kept], w)

    def merge(self, other: RowSample) -> None:
        """Add what another sample has kept of other rows."""
        self.level = max(self.level, other.level)
        if other.rows:
            self._join(other.numbers, *other.rows)

    def _join(self, numbers: Array, *rows: Array) -> None:
        if self.rows:
            numbers = np.concatenate([self.numbers, numbers])
            rows = tuple(np.concatenate(pair) for pair in zip(self.rows, rows, strict=True))
        kept = _is_kept(numbers, self.level)
        while kept.sum() > CAPACITY:
            self.level += 1
            kept = _is_kept(numbers, self.level)
        order = np.flatnonzero(kept)[np.argsort(numbers[kept], kind="stable")]
        self.numbers = numbers[order]
        self.rows = tuple(part[order] for part in rows)


def _is_kept(numbers: Array, level: int) -> Array:
    """Whether the hash of a number ends in so many zero bits.

    The mixing function of SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable
    pseudorandom number generators", OOPSLA 2014, figure 17.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z & np.uint64((1 << level) - 1)) == 0
