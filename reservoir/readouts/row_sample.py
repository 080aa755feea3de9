"""A sample of rows, stored while sums over all rows are computed, whatever their order."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.sums import above_tiny, ageing_factors

CAPACITY = 1024  # parts of up to so many rows can be left out whole; 256 would fit one number


_MOST_PARTS = 16  # more parts are concatenated, since rows may arrive one by one


@saved
class RowSample:
    """Sample of at most `CAPACITY` rows, chosen by their numbers in the data.

    A row is kept if the last `level` bits of the hash of its number are zero; with too many rows
    `level` increases by one. So the sample does not depend on the order of rows, on blocks or on
    merging, and is not regular, as data may be periodic. With ``forgetting < 1``, `level` is the
    lowest at which `CAPACITY` rows cover the last ``1 / (1 - forgetting)`` rows, which arrive in
    order; the oldest are dropped, and the rows seen multiply the weights of rows before them by
    `ageing`, as in the sums.
    """

    ageing = 1.0  # before rows with forgetting

    def __init__(self, *, forgetting: float = 1.0) -> None:
        self.forgetting = forgetting
        self.level = 0
        if forgetting < 1:
            memory = 1 / (1 - forgetting)
            self.level = max(0, int(np.ceil(np.log2(memory / CAPACITY))))
        # numbers, features, targets and weights, in order of arrival
        self._parts: list[tuple[Array, ...]] = []

    def add(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Add copies of a sample of these rows; rows of weight zero are skipped."""
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
        """Add a sample of other rows, later ones with forgetting; adopt its forgetting factor."""
        self._age(other.ageing)
        self.forgetting, before = other.forgetting, self.level
        self.level = other.level if other.forgetting < 1 else max(self.level, other.level)
        mine = _cut(self._parts, self.level) if self.level > before else self._parts
        its = _cut(other._parts, self.level) if self.level > other.level else other._parts
        self._parts = [*mine, *its]
        self._make_room()

    def discount(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`, 0 to 1."""
        if factor == 0:
            self._parts = []
        self._age(factor)

    def copy(self) -> RowSample:
        """Return an independent sample of the same rows."""
        one = copy.copy(self)
        one._parts = list(self._parts)
        return one

    def rows(self) -> tuple[Array, Array, Array, Array]:
        """Return ascending numbers, features, targets and weights of the rows, if there are any."""
        numbers, *others = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        order = np.argsort(numbers, kind="stable")
        features, targets, weights = (each[order] for each in others)
        return numbers[order], features, targets, weights

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    def _age(self, ageing: float) -> None:
        """Multiply the weights of the stored rows by `ageing`."""
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
    """Return the rows of parts that are kept at a level."""
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
    """Whether the hash of each number ends in `level` zero bits.

    The mixing function of SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable
    pseudorandom number generators", OOPSLA 2014, figure 17.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z & np.uint64((1 << level) - 1)) == 0
