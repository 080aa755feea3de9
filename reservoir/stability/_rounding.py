"""Sums and products whose rounding is bounded, and the sizes at which floating point ends."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS

TINY = 1e-300  # covers what underflow takes from a sum
SMALL = 1e-30  # covers what underflow takes from products with the smallest entries of a vector
LARGEST = 1e100  # weights and drives beyond are not certified: their products might overflow
FLOOR = 1e-280  # keeps vectors positive where a power iteration would underflow
# what overflows is no proof: a bound that is infinite or NaN compares as above 1
OVERFLOWS = np.errstate(over="ignore", invalid="ignore")


def row_sums(A: Matrix) -> Array:
    """Return the sums over each row of a sparse or dense matrix."""
    with np.errstate(over="ignore"):
        return np.asarray(A.sum(axis=1), dtype=float).ravel()


def is_small(A: Matrix) -> bool:
    """Whether the moduli of a matrix leave room for products of their sums."""
    sums = row_sums(A)
    return bool((sums < LARGEST).all())


def image_of_box(M: Matrix, low: Array, high: Array) -> tuple[Array, Array]:
    """Return bounds of M v for low <= v <= high, rounded outwards."""
    with np.errstate(over="ignore", invalid="ignore"):
        positive, negative = (M + abs(M)) / 2, (M - abs(M)) / 2  # an end of each entry, no middle
        size = abs(M) @ np.maximum(np.abs(low), np.abs(high))
        error = (2 * M.shape[1] + 6) * EPS * size + TINY
        least = positive @ low + negative @ high - error
        return least, positive @ high + negative @ low + error
