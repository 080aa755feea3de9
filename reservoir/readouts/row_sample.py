"""A few rows that are kept while the rest is summed up: the same ones, however the rows come."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.sums import above_tiny, ageing_factors

CAPACITY = 256  # to fit one number: some .003 nats from the best log loss; 512 gain nothing more


_MOST_PARTS = 16  # more are put together, so that rows may come one by one


@saved
class RowSample:
    """Rows drawn by their number in the data, as many as there is room for.

    A number is kept if the last `level` bits of its hash are zero; as soon as there are more rows
    than `CAPACITY`, `level` rises by one. So it is a matter of the numbers alone which rows are
    left in the end: the blocks they come in, their order and the way that samples are merged do
    not matter. Rows at regular distances would not do, since data have periods.

    With ``forgetting < 1`` `level` stays, and the oldest rows make room: it is the least one at
    which `CAPACITY` rows reach back over the last ``1 / (1 - forgetting)``. Rows must then come in
    the order of their numbers; their weights fade as in the sums.

    Parameters
    ----------
    forgetting : float in (0, 1], default=1.0

    Attributes
    ----------
    level : int
    ageing : float
        What the rows seen multiply the weights of rows before them by.
    """

    # as in files of earlier versions, which forgot nothing
    forgetting = 1.0
    ageing = 1.0

    def __init__(self, *, forgetting: float = 1.0) -> None:
        self.forgetting = forgetting
        self.level = 0
        if forgetting < 1:
            memory = 1 / (1 - forgetting)
            self.level = max(0, int(np.ceil(np.log2(memory / CAPACITY))))
        # numbers, features, targets and weights, as they came
        self._parts: list[tuple[Array, ...]] = []

    def add(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Keep some of these rows; what is kept is copied. Rows of weight zero are not."""
        w = np.ones(len(numbers)) if weights is None else weights
        enters = w > 0
        if self.forgetting < 1:
            factors = ageing_factors(self.forgetting, int(enters.sum()) + 1)
            self._age(float(factors[0]))
            w = np.array(w, dtype=np.float64)
            w[enters] *= factors[1:]
        kept = _is_kept(numbers, self.level) & enters
        if kept.any():
            self._parts.append(tuple(each[kept] for each in (numbers, features, targets, w)))
            self._make_room()

    def merge(self, other: RowSample) -> None:
        """Add what another sample has kept of other rows, of later ones where they are forgotten.

        The sample forgets as the other one does from then on.
        """
        self._age(other.ageing)
        self.forgetting, before = other.forgetting, self.level
        self.level = other.level if other.forgetting < 1 else max(self.level, other.level)
        mine = _cut(self._parts, self.level) if self.level > before else self._parts
        its = _cut(other._parts, self.level) if self.level > other.level else other._parts
        self._parts = [*mine, *its]
        self._make_room()

    def discount(self, factor: float) -> None:
        """Let all rows so far weigh `factor` times as much, 0 to 1."""
        if factor == 0:
            self._parts = []
        self._age(factor)

    def copy(self) -> RowSample:
        """Return an independent sample of the same rows."""
        one = copy.copy(self)
        one._parts = list(self._parts)
        return one

    def rows(self) -> tuple[Array, Array, Array, Array]:
        """Return numbers, ascending, features, targets and weights; only if there are any rows."""
        numbers, *others = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        order = np.argsort(numbers, kind="stable")
        features, targets, weights = (each[order] for each in others)
        return numbers[order], features, targets, weights

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    def _age(self, ageing: float) -> None:
        """Make the weights of what is kept lighter."""
        if ageing != 1.0:
            self._parts = [(*part[:3], part[3] * ageing) for part in self._parts]
            self.ageing = above_tiny(self.ageing * ageing)

    def _make_room(self) -> None:
        if len(self._parts) > _MOST_PARTS:
            self._parts = [tuple(map(np.concatenate, zip(*self._parts, strict=True)))]
        excess = len(self) - CAPACITY
        if self.forgetting < 1 and excess > 0:
            numbers = np.concatenate([part[0] for part in self._parts])
            first = np.partition(numbers, excess)[excess]
            self._parts = _chosen(self._parts, lambda numbers: numbers >= first)
        while len(self) > CAPACITY:
            self.level += 1
            self._parts = _cut(self._parts, self.level)


def _cut(parts: list[tuple[Array, ...]], level: int) -> list[tuple[Array, ...]]:
    """Return parts without the rows that are not kept at a level."""
    return _chosen(parts, lambda numbers: _is_kept(numbers, level))


def _chosen(
    parts: list[tuple[Array, ...]], is_chosen: Callable[[Array], Array]
) -> list[tuple[Array, ...]]:
    masks = [is_chosen(part[0]) for part in parts]
    return [
        part if mask.all() else tuple(each[mask] for each in part)
        for part, mask in zip(parts, masks, strict=True)
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
