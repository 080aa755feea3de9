"""Bounds valid under rounding: margins for underflow and overflow, row sums, images of boxes.

Relative rounding errors are multiples of `EPS`, from `reservoir.activations.enclosures`.
"""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS

TINY = 1e-300  # absolute margin for terms of a sum that underflow to zero
SMALL = 1e-30  # the same for ratios whose denominators may be as small as FLOOR
LARGEST = 1e100  # larger weights and drives are not certified: their products might overflow
FLOOR = 1e-280  # least entry of the positive vectors of power iterations, above underflow
# Decorates functions that may overflow: their bound is then infinite or NaN, which proves nothing.
OVERFLOWS = np.errstate(over="ignore", invalid="ignore")


def row_sums(A: Matrix) -> Array:
    """Return the sum of each row of a sparse or dense matrix."""
    with np.errstate(over="ignore"):
        return np.asarray(A.sum(axis=1), dtype=float).ravel()


def is_small(A: Matrix) -> bool:
    """Whether products of row sums of A, a matrix of absolute values, cannot overflow."""
    sums = row_sums(A)
    return bool((sums < LARGEST).all())


def image_of_box(M: Matrix, low: Array, high: Array) -> tuple[Array, Array]:
    """Return bounds of M v for low <= v <= high, rounded outwards."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The sign of each entry of M determines which end of the interval gives the bound.
        positive, negative = (M + abs(M)) / 2, (M - abs(M)) / 2
        size = abs(M) @ np.maximum(np.abs(low), np.abs(high))
        error = (2 * M.shape[1] + 6) * EPS * size + TINY
        least = positive @ low + negative @ high - error
        return least, positive @ high + negative @ low + error
