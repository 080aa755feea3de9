"""Input weights under which the drive of every unit varies by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array

_ROWS = 2000  # that deviations are taken from, at most
_NOTHING = 1e-6  # a drive that varies less, relative to its weights, is constant
_LEAST = 1e-30  # so that the weights fit into single precision


def unit_drive(W_in: Array, inputs: Sequence[Array]) -> Array:
    """Return W_in, each row divided by the standard deviation of ``W_in u`` over the inputs u.

    Channels that move together would else drive all units harder than channels that do not, and
    many channels harder than one. A drive that does not vary is divided as though its inputs varied
    by one each, independently.

    Parameters
    ----------
    W_in : array of shape (n_units, n_inputs)
    inputs : sequence of arrays of shape (n_steps, n_inputs)
        A sample of series; of many steps, some at equal distances.
    """
    n_steps = sum(map(len, inputs))
    rows = np.concatenate([each[:: -(-n_steps // _ROWS)] for each in inputs]).astype(np.float64)
    W = W_in.astype(np.float64)
    # inputs in units of the largest: squares do not overflow
    largest = np.abs(rows).max(axis=0)
    largest[largest == 0.0] = 1.0
    weights = W * largest
    size = np.abs(weights).max(axis=1, keepdims=True)
    size[size == 0.0] = 1.0
    weights /= size
    deviation = np.std((rows / largest) @ weights.T, axis=0)
    total = np.sqrt(np.square(W).sum(axis=1))
    spread = np.where(
        deviation > _NOTHING * np.sqrt(np.square(weights).sum(axis=1)),
        deviation * size[:, 0],
        total,
    )
    spread = np.where(spread > _LEAST, spread, np.where(total > 0, total, 1.0))
    return W / spread[:, None]
