"""Kernels of trained networks: forward and backward passes over time (simple cells, LSTM, GRU).

Arrays are flat. Their order is step, sequence, gate, unit, the last varying fastest. `width` is the
number of units padded to a multiple of eight, as in every gate; `n_columns` is the number of
sequences that run side by side. Numbers in the padding are finite, and their weights are zero.

A product W h starts from zero, and the inputs are added to it afterwards. Starting from the inputs
would save the addition but read them panel by panel, alternating between sequences, which is slow
for arrays larger than the cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reservoir._kernels import _gates
from reservoir._kernels._compile import inner, kernel
from reservoir._kernels._panels import add_product
from reservoir._kernels._time_loops import _activate


@kernel
def pack_rows_of_gates(data: Any, W: Any, n_gates: int, width: int) -> None:
    """Write W into `data` in slices of eight rows, each gate padded to `width` rows.

    W has shape (n_gates n, n_columns), `data` (n_gates width / 8, n_columns, 8).
    """
    n, n_columns = W.shape[0] // n_gates, W.shape[1]
    for gate in range(n_gates):
        for i in range(n):
            row = gate * width + i
            for j in range(n_columns):
                data[row // 8, j, row % 8] = W[gate * n + i, j]


@kernel
def pack_columns(data: Any, W: Any, n_gates: int, width: int) -> None:
    """Write the transpose of W into `data` in slices of eight rows, each gate padded to `width`.

    W has shape (n_gates n, n_columns), `data` (width / 8, n_gates width, 8).
    """
    n, n_columns = W.shape[0] // n_gates, W.shape[1]
    for gate in range(n_gates):
        for i in range(n):
            for j in range(n_columns):
                data[j // 8, gate * width + i, j % 8] = W[gate * n + i, j]


@kernel
def simple_forward(
    H: Any, V: Any, U: Any, data: Any, n_units: int, width: int, n_columns: int,
    code: int, slope: Any, leak: Any, z: Any, zeros: Any,
) -> None:  # fmt: skip
    """Run a simple cell forwards: write states into H and, with a leak, activations into V.

    U contains the projected inputs of every step, `data` is W in slices of eight rows, `z` working
    memory for the pre-activations of a step, `zeros` a column of zeros. An empty `leak` means none.
    """
    size = width * n_columns
    for k in range(0, U.shape[0], size):
        add_product(
            z, 0, width, zeros, 0, 0,
            data, 0, width // 8, n_units, H, k, width, n_columns,
        )  # fmt: skip
        for i in range(0, size, 8):
            _gates.add(z, i, U, k + i)
        _activate(z, code, slope)
        if leak.shape[0] == 0:
            for i in range(0, size, 8):
                _gates.copy(H, k + size + i, z, i)
        else:
            for i in range(0, size, 8):
                _gates.leak_forward(H, k + size + i, k + i, V, k + i, z, i, leak, i % width)


@inner
def _slopes(out: Any, V: Any, k: int, code: int, slope: Any) -> None:
    """Write f'(z) of one step into `out`; V contains the values f(z), from index k on."""
    one, zero = out.dtype.type(1), out.dtype.type(0)
    for i in range(out.shape[0]):
        value = V[np.uint64(k) + np.uint64(i)]
        if code == 0:
            out[i] = one - value * value
        elif code == 1:
            out[i] = value * (one - value)
        elif code == 2:
            out[i] = one if value > zero else zero
        elif code == 3:
            out[i] = one if value > zero else slope
        elif code == 4:
            out[i] = one
        else:
            out[i] = -math.expm1(-value)


@kernel
def simple_backward(
    D: Any, V: Any, data: Any, width: int, n_columns: int, code: int, slope: Any, leak: Any,
    extra: Any, dh: Any, slopes: Any, zeros: Any,
) -> None:  # fmt: skip
    """Run a simple cell backwards: D is the gradient at the states, then at pre-activations.

    `data` is the transpose of W in slices of eight rows, V contains the activations, and `extra`,
    if not empty, is a gradient at the pre-activations to add. `dh` is the gradient passed from step
    to step, and finally the gradient at the initial state.
    """
    size = width * n_columns
    for k in range(D.shape[0] - size, -1, -size):
        _slopes(slopes, V, k, code, slope)
        if leak.shape[0] == 0:
            for i in range(0, size, 8):
                _gates.simple_backward(D, k + i, dh, i, slopes)
        else:
            for i in range(0, size, 8):
                _gates.leaky_backward(D, k + i, dh, i, slopes, leak, i % width)
        if extra.shape[0] > 0:
            for i in range(0, size, 8):
                _gates.add(D, k + i, extra, k + i)
        # to the previous step: through W, and directly through the leak, which is in dh already
        begin, stride = (zeros, 0) if leak.shape[0] == 0 else (dh, width)
        add_product(
            dh, 0, width, begin, 0, stride,
            data, 0, width // 8, width, D, k, width, n_columns,
        )  # fmt: skip


@kernel
def lstm_forward(
    H: Any, C: Any, TC: Any, G: Any, data: Any, peephole: Any, n_units: int, width: int,
    n_columns: int, z: Any, zeros: Any,
) -> None:  # fmt: skip
    """Run an LSTM forwards: G contains the projected inputs, then the gates.

    Outputs are written to H, cells to C, both after the values before the first step, and the tanh
    of the cells to TC. `data` is W in slices of eight rows; `z` and `zeros` are working memory.
    """
    size = width * n_columns
    for k in range(0, TC.shape[0], size):
        add_product(
            z, 0, 4 * width, zeros, 0, 0,
            data, 0, width // 2, n_units, H, k, width, n_columns,
        )  # fmt: skip
        for c in range(0, size, width):
            for u in range(0, width, 8):
                i, at = 4 * c + u, k + c + u
                _gates.lstm_forward(
                    G, 4 * k + i, width, z, i, C, H, at, size, TC, peephole, u,
                )  # fmt: skip


@kernel
def lstm_backward(
    D: Any, dh: Any, dc: Any, G: Any, C: Any, TC: Any, data: Any, peephole: Any, width: int,
    n_columns: int, zeros: Any,
) -> None:  # fmt: skip
    """Run an LSTM backwards: G contains the gates, then the gradients at their pre-activations.

    D is the gradient at the outputs, `data` the transpose of W in slices of eight rows. `dh` and
    `dc` are the gradients at state and cell passed from step to step, and finally those at the
    initial state and cell.
    """
    size = width * n_columns
    for k in range(D.shape[0] - size, -1, -size):
        for c in range(0, size, width):
            for u in range(0, width, 8):
                at, g = c + u, 4 * (k + c) + u
                _gates.lstm_backward(D, k + at, dh, dc, at, G, g, width, C, TC, peephole, u)
        add_product(
            dh, 0, width, zeros, 0, 0,
            data, 0, width // 8, 4 * width, G, 4 * k, 4 * width, n_columns,
        )  # fmt: skip


@kernel
def gru_forward(
    H: Any, G: Any, R: Any, data: Any, bias_recurrent: Any, n_units: int, width: int,
    n_columns: int, z: Any, zeros: Any,
) -> None:  # fmt: skip
    """Run a GRU forwards: G contains the projected inputs, then the gates.

    States are written to H, after the initial state; the recurrent part of the candidate, before
    the reset gate, is written to R. `z` and `zeros` are working memory.
    """
    size = width * n_columns
    for k in range(0, R.shape[0], size):
        add_product(
            z, 0, 3 * width, zeros, 0, 0,
            data, 0, 3 * width // 8, n_units, H, k, width, n_columns,
        )  # fmt: skip
        for c in range(0, size, width):
            for u in range(0, width, 8):
                i, at = 3 * c + u, k + c + u
                _gates.gru_forward(
                    H, at, size, G, 3 * k + i, width, z, i, R, bias_recurrent, u
                )  # fmt: skip


@kernel
def gru_backward(
    D: Any, dh: Any, G: Any, H: Any, R: Any, gates: Any, candidate: Any, width: int,
    n_columns: int,
) -> None:  # fmt: skip
    """Run a GRU backwards: G and R contain gates and recurrent products, then their gradients.

    D is the gradient at the states, H contains the states, beginning with the initial one. `gates`
    is the transpose of the rows of W for the reset and update gates, `candidate` the transpose of
    the rows for the candidate. `dh` is the gradient passed from step to step, and finally the
    gradient at the initial state.
    """
    size = width * n_columns
    for k in range(D.shape[0] - size, -1, -size):
        for c in range(0, size, width):
            for u in range(0, width, 8):
                at, g = c + u, 3 * (k + c) + u
                _gates.gru_backward(D, k + at, dh, at, G, g, width, H, R)
        add_product(
            dh, 0, width, dh, 0, width,
            gates, 0, width // 8, 2 * width, G, 3 * k, 3 * width, n_columns,
        )  # fmt: skip
        add_product(
            dh, 0, width, dh, 0, width,
            candidate, 0, width // 8, width, R, k, width, n_columns,
        )  # fmt: skip
