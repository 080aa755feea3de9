"""Compiled forward and backward passes of trained networks (simple cells, LSTM, GRU).

Each function has the signature and the effect of the function of the same name in
`reservoir.training.cells`, where the parameters and their shapes are described. The kernels
read flat arrays in which every gate consists of whole vectors of eight units: if the number of
units is not a multiple of eight, they use padded copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._kernels._calls import CODES, call, compiled, slope_below
from reservoir._kernels._layout import LANES, aligned
from reservoir._typing import Array


def _call(name: str, *args: Any) -> None:
    call(getattr(compiled("_recurrent"), name), *args)


def _width(n_units: int) -> int:
    return -(-n_units // LANES) * LANES


def _padded(A: Array, n_gates: int = 1, *, read: bool = True) -> Array:
    """Return A, or a copy in which each gate is padded to a multiple of eight units.

    The last axis of A consists of `n_gates` gates of n_units each. A itself is returned if it needs
    no padding and the kernels can write to it; with ``read=False`` a copy is filled with zeros, for
    arrays that are only written.
    """
    n = A.shape[-1] // n_gates
    width = _width(n)
    if width == n and A.flags.c_contiguous and A.flags.writeable:
        return A
    out = np.zeros((*A.shape[:-1], n_gates * width), A.dtype)
    if read:
        for gate in range(n_gates):
            out[..., gate * width : gate * width + n] = A[..., gate * n : (gate + 1) * n]
    return out


def _give_back(A: Array, padded: Array, n_gates: int = 1) -> None:
    """Copy the results of a kernel from the padded copy back into A, if there is a copy."""
    if padded is A:
        return
    n, width = A.shape[-1] // n_gates, padded.shape[-1] // n_gates
    for gate in range(n_gates):
        A[..., gate * n : (gate + 1) * n] = padded[..., gate * width : gate * width + n]


def _by_rows(W: Array, n_gates: int) -> Array:
    """Return W, of shape (n_gates n_units, n_columns), in slices of eight rows, for W h."""
    n = W.shape[1]
    data = aligned((n_gates * _width(n) // LANES, n, LANES), W.dtype)
    _call("pack_rows_of_gates", data, W, n_gates, _width(n))
    return data


def _by_columns(W: Array, n_gates: int) -> Array:
    """Return the transpose of W in slices of eight rows, for the backward pass."""
    width = _width(W.shape[1])
    data = aligned((width // LANES, n_gates * width, LANES), W.dtype)
    _call("pack_columns", data, W, n_gates, width)
    return data


def _per_unit(values: Array | None, dtype: Any) -> Array:
    """Return one number per unit as a padded vector; an empty array for None."""
    if values is None:
        return np.empty(0, dtype)
    return _padded(np.array(values, dtype)).ravel()


def _peephole(peephole: Array | None, n_units: int, dtype: Any) -> Array:
    if peephole is None:
        return np.zeros(3 * _width(n_units), dtype)
    return _per_unit(peephole, dtype)


def _room(n_columns: int, width: int, dtype: Any) -> tuple[Array, Array]:
    """Return working memory for the products of a step, and a column of zeros of `width` units."""
    return aligned((n_columns * width,), dtype), aligned((width,), dtype)


def _next(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of an array that also contains the value before the first step."""
    return (shape[0] + 1, *shape[1:])


def _wide(shape: tuple[int, ...], n_gates: int) -> tuple[int, ...]:
    """Return the shape of an array with `n_gates` values per unit, given the shape with one."""
    return (*shape[:-1], n_gates * shape[-1])


def _demand(*pairs: tuple[Array | None, tuple[int, ...]]) -> None:
    """Raise if an array has a wrong shape: kernels would read and write past its end."""
    for array, shape in pairs:
        if array is not None and array.shape != shape:
            raise ValueError(f"an array has shape {array.shape}, but must have shape {shape}.")


def simple_forward(
    H: Array, V: Array, U: Array, W: Array, activation: str, leak: Array | None
) -> None:
    """Run the forward pass of a simple cell, ``h = (1 - a) h + a f(W h + u)``, into H and V."""
    _demand((H, _next(U.shape)), (V, U.shape), (W, 2 * U.shape[2:]), (leak, U.shape[2:]))
    n_columns, n_units = H.shape[1:]
    dtype, width = H.dtype, _width(n_units)
    states, values = _padded(H), _padded(V, read=False)
    _call(
        "simple_forward", states.ravel(), values.ravel(), _padded(U).ravel(), _by_rows(W, 1),
        n_units, width, n_columns, CODES[activation], slope_below(dtype), _per_unit(leak, dtype),
        *_room(n_columns, width, dtype),
    )  # fmt: skip
    _give_back(H, states)
    if leak is not None:
        _give_back(V, values)


def simple_backward(
    D: Array, V: Array, W: Array, activation: str, leak: Array | None, extra: Array | None
) -> Array:
    """Replace the gradient at the states, D, by the one at the pre-activations.

    Returns the gradient at the state before the first step.
    """
    _demand((V, D.shape), (W, 2 * D.shape[2:]), (leak, D.shape[2:]), (extra, D.shape))
    n_columns, n_units = D.shape[1:]
    dtype, width = D.dtype, _width(n_units)
    d = _padded(D)
    dh = aligned((n_columns, width), dtype)
    slopes = aligned((n_columns * width,), dtype)
    more = np.empty(0, dtype) if extra is None else _padded(extra).ravel()
    _call(
        "simple_backward", d.ravel(), _padded(V).ravel(), _by_columns(W, 1), width, n_columns,
        CODES[activation], slope_below(dtype), _per_unit(leak, dtype), more, dh.ravel(), slopes,
        np.zeros(width, dtype),
    )  # fmt: skip
    _give_back(D, d)
    return dh[:, :n_units]


def lstm_forward(H: Array, C: Array, TC: Array, G: Array, W: Array, peephole: Array | None) -> None:
    """Run an LSTM forwards into H, C, TC and G; gates are input, forget, candidate, output."""
    n_columns, n_units = H.shape[1:]
    _demand((H, _next(TC.shape)), (C, H.shape), (G, _wide(TC.shape, 4)))
    _demand((W, (4 * n_units, n_units)), (peephole, (3, n_units)))
    h, c, tanh_c, g = _padded(H), _padded(C), _padded(TC, read=False), _padded(G, 4)
    _call(
        "lstm_forward", h.ravel(), c.ravel(), tanh_c.ravel(), g.ravel(), _by_rows(W, 4),
        _peephole(peephole, n_units, H.dtype), n_units, _width(n_units), n_columns,
        *_room(n_columns, 4 * _width(n_units), H.dtype),
    )  # fmt: skip
    for given, worked_on, n_gates in ((H, h, 1), (C, c, 1), (TC, tanh_c, 1), (G, g, 4)):
        _give_back(given, worked_on, n_gates)


def lstm_backward(
    D: Array, dC: Array, G: Array, C: Array, TC: Array, W: Array, peephole: Array | None
) -> tuple[Array, Array]:
    """Replace the gates of an LSTM, G, by the gradient at their pre-activations.

    Returns the gradients at the state and at the cell before the first step.
    """
    n_columns, n_units = D.shape[1:]
    _demand((dC, D.shape[1:]), (G, _wide(D.shape, 4)), (C, _next(D.shape)), (TC, D.shape))
    _demand((W, (4 * n_units, n_units)), (peephole, (3, n_units)))
    dtype, width = D.dtype, _width(n_units)
    g = _padded(G, 4)
    dh, dc = (aligned((n_columns, width), dtype) for _ in range(2))
    dc[:, :n_units] = dC
    _call(
        "lstm_backward", _padded(D).ravel(), dh.ravel(), dc.ravel(), g.ravel(), _padded(C).ravel(),
        _padded(TC).ravel(), _by_columns(W, 4), _peephole(peephole, n_units, dtype), width,
        n_columns, np.zeros(width, dtype),
    )  # fmt: skip
    _give_back(G, g, 4)
    return dh[:, :n_units], dc[:, :n_units]


def gru_forward(H: Array, G: Array, R: Array, W: Array, bias_recurrent: Array) -> None:
    """Run a GRU forwards into H, G and R; gates are reset, update, candidate."""
    n_columns, n_units = H.shape[1:]
    _demand((H, _next(R.shape)), (G, _wide(R.shape, 3)))
    _demand((W, (3 * n_units, n_units)), (bias_recurrent, (n_units,)))
    h, g, r = _padded(H), _padded(G, 3), _padded(R, read=False)
    _call(
        "gru_forward", h.ravel(), g.ravel(), r.ravel(), _by_rows(W, 3),
        _per_unit(bias_recurrent, H.dtype), n_units, _width(n_units), n_columns,
        *_room(n_columns, 3 * _width(n_units), H.dtype),
    )  # fmt: skip
    for given, worked_on, n_gates in ((H, h, 1), (G, g, 3), (R, r, 1)):
        _give_back(given, worked_on, n_gates)


def gru_backward(D: Array, G: Array, H: Array, R: Array, W: Array) -> Array:
    """Replace the gates of a GRU, G, and the recurrent products, R, by their gradients.

    Returns the gradient at the state before the first step.
    """
    n_columns, n_units = D.shape[1:]
    _demand((G, _wide(D.shape, 3)), (H, _next(D.shape)), (R, D.shape))
    _demand((W, (3 * n_units, n_units)))
    g, r = _padded(G, 3), _padded(R)
    dh = aligned((n_columns, _width(n_units)), D.dtype)
    _call(
        "gru_backward", _padded(D).ravel(), dh.ravel(), g.ravel(), _padded(H).ravel(), r.ravel(),
        _by_columns(W[: 2 * n_units], 2), _by_columns(W[2 * n_units :], 1), _width(n_units),
        n_columns,
    )  # fmt: skip
    _give_back(G, g, 3)
    _give_back(R, r)
    return dh[:, :n_units]
