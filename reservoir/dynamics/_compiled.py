"""Stepping with compiled kernels: from reservoirs to what the kernels read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from reservoir import _kernels
from reservoir._typing import Array
from reservoir.dynamics import reference
from reservoir.dynamics.engines import code_of
from reservoir.dynamics.reservoir import Reservoir

_FEW_INPUTS = 8  # up to here the kernel adds the inputs itself; a GEMM pays for more


def advance(
    reservoir: Reservoir,
    state: Array,
    place: Array,
    X: Array,
    feedback: Array | None,
    kicks: Array | None,
) -> None:
    """Do what the reference does, compiled; an activation of one's own is called row by row."""
    code = code_of(reservoir)
    block = place[:, : reservoir.n_units]
    if code is None:
        reference.project(reservoir, X, feedback, block)
        reference.step_through(reservoir, state, block, kicks, recurrence(reservoir))
        return
    ready = place.flags.c_contiguous and place.flags.writeable
    buffer = place if ready else np.empty_like(place, order="C")
    inputs = X if feedback is None else np.hstack([X, feedback])
    few = inputs.shape[1] <= _FEW_INPUTS and not sp.issparse(reservoir.W_in)
    if not few:
        reference.project(reservoir, X, feedback, buffer[:, : reservoir.n_units])
    _kernels.advance(
        buffer,
        state,
        np.ascontiguousarray(inputs) if few else None,
        reservoir._drive_weights if few else None,
        reservoir._packed,
        code,
        reservoir._leaks,
        kicks,
    )
    if buffer is not place:
        block[:] = buffer[:, : reservoir.n_units]


def advance_lanes(reservoir: Reservoir, states: Array, inputs: Array, place: Array) -> None:
    """Step up to eight sequences side by side.

    Parameters
    ----------
    reservoir : Reservoir
        Sparse, with an activation that the kernels know.
    states : array of shape (n_sequences, n_units)
    inputs : array of shape (n_sequences, n_steps, n_features + n_outputs)
        With the outputs that are fed back behind the features.
    place : array of shape (8, n_steps, n_units)
        Where the states go; a sequence's rows follow each other, sequences may lie apart.
    """
    n_sequences, n_steps, n_inputs = inputs.shape
    lanes = _kernels.LANES
    state = np.zeros((reservoir.n_units, lanes), reservoir.dtype)
    state[:, :n_sequences] = states.T
    received = np.ones((n_steps, n_inputs + 1, lanes), reservoir.dtype)  # the last for the bias
    received[:, :n_inputs, :n_sequences] = inputs.transpose(1, 2, 0)
    received[:, :n_inputs, n_sequences:] = 0.0
    code = code_of(reservoir)
    assert code is not None
    _kernels.advance_lanes(
        place, state, received, reservoir._packed_rows, code, reservoir._lane_leaks
    )


def recurrence(reservoir: Reservoir) -> Callable[[Array, Array], None]:
    """Return ``add(x, z)``, which adds W x to z in place."""

    def add(x: Array, z: Array) -> None:
        z += _kernels.multiply(reservoir._packed, x)

    return add
