"""A few rows that are kept while the rest is summed up: the same ones, however the rows come."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

CAPACITY = 256  # to fit one number: some .003 nats from the best log loss; 512 gain nothing more


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
    """

    def __init__(self) -> None:
        self.level = 0
        # numbers, features, targets and weights, as they came
        self._parts: list[tuple[Array, ...]] = []

    def add(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Keep some of these rows; what is kept is copied. Rows of weight zero are not."""
        kept = _is_kept(numbers, self.level)
        if weights is not None:
            kept &= weights > 0
        if kept.any():
            w = np.ones(len(numbers)) if weights is None else weights
            self._parts.append(tuple(each[kept] for each in (numbers, features, targets, w)))
            self._make_room()

    def merge(self, other: RowSample) -> None:
        """Add what another sample has kept of other rows."""
        self.level = max(self.level, other.level)
        self._parts += other._parts
        self._cut()
        self._make_room()

    def copy(self) -> RowSample:
        """Return an independent sample of the same rows."""
        one = RowSample()
        one.merge(self)
        return one

    def rows(self) -> tuple[Array, Array, Array, Array]:
        """Return numbers, ascending, features, targets and weights; only if there are any rows."""
        numbers, *others = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        order = np.argsort(numbers, kind="stable")
        features, targets, weights = (each[order] for each in others)
        return numbers[order], features, targets, weights

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    def _make_room(self) -> None:
        while len(self) > CAPACITY:
            self.level += 1
            self._cut()

    def _cut(self) -> None:
        """Let go of the rows that are kept no longer."""
        kept = [_is_kept(part[0], self.level) for part in self._parts]
        self._parts = [
            part if mask.all() else tuple(each[mask] for each in part)
            for part, mask in zip(self._parts, kept, strict=True)
            if mask.any()
        ]


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
