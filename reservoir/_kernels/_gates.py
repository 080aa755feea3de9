"""Elementwise arithmetic of a step of a trained network, for eight units at a time.

A function under ``@_unitwise`` is written like a formula for scalars and becomes a numba intrinsic
for vectors of eight. Its arrays are flat, and its other arguments are indices: ``A[k]`` means the
eight numbers that begin at index k. Arguments that are not described in the functions:

======================  ===========================================================================
H, C, TC, G, R, D, V    states, LSTM cells, tanh of these, gates, the GRU's recurrent products,
                        gradients, activations: one value per unit (or gate) of every step
z, dh, dc, slopes       of the current step only: pre-activations, gradients, f'(z)
k, g                    index of the units in arrays of all steps (g: in arrays of the gates)
i, at, r, u             index of the units in arrays of one step (u: in arrays of one sequence)
n, size                 distance from a gate to the next, and from a step to the next
======================  ===========================================================================
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numba import types
from numba.extending import intrinsic

from reservoir._kernels._vector import (
    FORMATS,
    LONG,
    Vectors,
    expm1_parts,
    power_of_two,
    tanh,
)


class _Numbers:
    """Eight numbers in a vector register, with Python's arithmetic operators."""

    def __init__(self, vectors: Vectors, value: Any) -> None:
        self.vectors, self.value = vectors, value

    def _other(self, other: _Numbers | float) -> Any:
        return other.value if isinstance(other, _Numbers) else self.vectors.const(float(other))

    def __add__(self, other: _Numbers) -> _Numbers:
        return _Numbers(self.vectors, self.vectors.add(self.value, other.value))

    def __sub__(self, other: _Numbers) -> _Numbers:
        return _Numbers(self.vectors, self.vectors.sub(self.value, other.value))

    def __rsub__(self, other: float) -> _Numbers:
        return _Numbers(self.vectors, self.vectors.sub(self._other(other), self.value))

    def __mul__(self, other: _Numbers) -> _Numbers:
        return _Numbers(self.vectors, self.vectors.mul(self.value, other.value))


class _Place:
    """An index into a flat array, whose value is known only when the kernel runs."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, other: _Place) -> _Place:
        return _Place(self.builder, self.builder.add(self.value, other.value))

    def __rmul__(self, other: int) -> _Place:
        return _Place(self.builder, self.builder.mul(LONG(other), self.value))


class _Flat:
    """A flat array whose item at a `_Place` is the eight numbers that begin there."""

    def __init__(self, vectors: Vectors, base: Any) -> None:
        self.vectors, self.base = vectors, base

    def __getitem__(self, place: _Place) -> _Numbers:
        return _Numbers(self.vectors, self.vectors.load(self.base, place.value))

    def __setitem__(self, place: _Place, numbers: _Numbers) -> None:
        self.vectors.store(numbers.value, self.base, place.value)


def _tanh(x: _Numbers) -> _Numbers:
    return _Numbers(x.vectors, tanh(x.vectors, x.value, corrected=False))


def _logistic(x: _Numbers) -> _Numbers:
    """Return 1 / (1 + exp(-x)), without the corrections of `logistic8`.

    x is clipped to the range in which exp(-x) is a normal number.
    """
    v = x.vectors
    cut = FORMATS[v.bits].exp_is_normal
    y = v.choose(">", x.value, v.const(cut), v.const(cut), x.value)
    y = v.choose("<", y, v.const(-cut), v.const(-cut), y)
    k, m = expm1_parts(v, v.sub(v.const(-0.0), y))
    power = power_of_two(v, k)
    return _Numbers(v, v.div(v.const(1.0), v.add(v.muladd(power, m, power), v.const(1.0))))


def _unitwise(formula: Callable[..., None]) -> Any:
    """Turn a formula for scalars into an intrinsic for eight units at a time (a decorator).

    `formula` is called once, at compile time, with a `_Flat` for every array and a `_Place` for
    every index; its operations on them emit the code. The intrinsic has the same parameters.
    """

    def typed(typingctx: Any, *given: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            v = Vectors(context, builder, next(k for k in signature.args if is_array(k)))
            formula(
                *(
                    _Flat(v, v.data(kind, arg)) if is_array(kind) else _Place(builder, arg)
                    for kind, arg in zip(signature.args, args, strict=True)
                )
            )
            return context.get_dummy_value()

        def is_array(kind: Any) -> bool:
            return isinstance(kind, types.Array)

        kinds = (kind if is_array(kind) else types.int64 for kind in given)
        return types.void(*kinds), codegen

    # numba reads the number of arguments from the signature
    names = ["typingctx", *inspect.signature(formula).parameters]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    typed.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, plain) for name in names]
    )
    return intrinsic(typed)


@_unitwise
def copy(out: Any, at: Any, x: Any, k: Any) -> None:
    """Copy the eight numbers at ``x[k]`` to ``out[at]``."""
    out[at] = x[k]


@_unitwise
def leak_forward(
    H: Any, k: Any, before: Any, V: Any, v: Any, z: Any, i: Any, leak: Any, u: Any
) -> None:
    """Store the activation z in V, and its leaky mean with the previous state in H."""
    V[v] = z[i]
    H[k] = (1 - leak[u]) * H[before] + leak[u] * z[i]


@_unitwise
def simple_backward(D: Any, k: Any, dh: Any, i: Any, slopes: Any) -> None:
    """Replace in D the gradient at the state by the one at the pre-activation, without a leak.

    `dh` contains the part from the next step.
    """
    D[k] = (D[k] + dh[i]) * slopes[i]


@_unitwise
def leaky_backward(D: Any, k: Any, dh: Any, i: Any, slopes: Any, leak: Any, u: Any) -> None:
    """Replace in D the gradient at the state by the one at the pre-activation, with a leak.

    `dh` contains the part from the next step, and receives the part that the leak passes directly
    to the previous step.
    """
    d = D[k] + dh[i]
    D[k] = d * slopes[i] * leak[u]
    dh[i] = d * (1 - leak[u])


@_unitwise
def add(x: Any, i: Any, y: Any, k: Any) -> None:
    """Add the eight numbers at ``y[k]`` to the eight at ``x[i]``."""
    x[i] = x[i] + y[k]


@_unitwise
def lstm_forward(
    G: Any, g: Any, n: Any, z: Any, i: Any, C: Any, H: Any, k: Any, size: Any, TC: Any,
    peephole: Any, u: Any,
) -> None:  # fmt: skip
    """Compute gates, cell and output of an LSTM step.

    G contains W_in x + b when the step begins, and the gates when it ends; z contains W h. C and H
    have one row more than steps: ``C[k]`` is the cell before the step, ``C[k + size]`` after it.
    """
    before = C[k]
    gate_i = _logistic(G[g] + z[i] + peephole[u] * before)
    gate_f = _logistic(G[g + n] + z[i + n] + peephole[u + n] * before)
    candidate = _tanh(G[g + 2 * n] + z[i + 2 * n])
    c = gate_f * before + gate_i * candidate
    gate_o = _logistic(G[g + 3 * n] + z[i + 3 * n] + peephole[u + 2 * n] * c)
    tanh_c = _tanh(c)
    G[g], G[g + n], G[g + 2 * n], G[g + 3 * n] = gate_i, gate_f, candidate, gate_o
    C[k + size], TC[k], H[k + size] = c, tanh_c, gate_o * tanh_c


@_unitwise
def lstm_backward(
    D: Any, k: Any, dh: Any, dc: Any, r: Any, G: Any, g: Any, n: Any, C: Any, TC: Any,
    peephole: Any, u: Any,
) -> None:  # fmt: skip
    """Replace the gates of an LSTM step, G, by the gradient at their pre-activations.

    `dc` contains the gradient at the cell after the step, and receives the one at the cell before.
    """
    i, f, candidate, o = G[g], G[g + n], G[g + 2 * n], G[g + 3 * n]
    d, tanh_c = D[k] + dh[r], TC[k]
    d_o = d * tanh_c * o * (1 - o)
    d_c = dc[r] + d * o * (1 - tanh_c * tanh_c) + d_o * peephole[u + 2 * n]
    d_i = d_c * candidate * i * (1 - i)
    d_f = d_c * C[k] * f * (1 - f)
    G[g], G[g + n], G[g + 3 * n] = d_i, d_f, d_o
    G[g + 2 * n] = d_c * i * (1 - candidate * candidate)
    dc[r] = d_c * f + d_i * peephole[u] + d_f * peephole[u + n]


@_unitwise
def gru_forward(
    H: Any, k: Any, size: Any, G: Any, g: Any, n: Any, z: Any, i: Any, R: Any, bias: Any, u: Any
) -> None:
    """Compute gates and state of a GRU step.

    G contains W_in x + b when the step begins, and the gates when it ends; z contains W h. R
    receives the recurrent part of the candidate, W_n h + b_r, before the reset gate.
    """
    reset, update = _logistic(G[g] + z[i]), _logistic(G[g + n] + z[i + n])
    recurrent = z[i + 2 * n] + bias[u]
    candidate = _tanh(G[g + 2 * n] + reset * recurrent)
    G[g], G[g + n], G[g + 2 * n], R[k] = reset, update, candidate, recurrent
    H[k + size] = candidate + update * (H[k] - candidate)


@_unitwise
def gru_backward(D: Any, k: Any, dh: Any, r: Any, G: Any, g: Any, n: Any, H: Any, R: Any) -> None:
    """Replace the gates of a GRU step, G, and R by the gradients at their pre-activations.

    `dh` contains the part of the gradient from the next step, and receives the part that the
    update gate passes directly to the previous step.
    """
    reset, update, candidate = G[g], G[g + n], G[g + 2 * n]
    d = D[k] + dh[r]
    d_candidate = d * (1 - update) * (1 - candidate * candidate)
    G[g] = d_candidate * R[k] * reset * (1 - reset)
    G[g + n] = d * (H[k] - candidate) * update * (1 - update)
    G[g + 2 * n], R[k] = d_candidate, d_candidate * reset
    dh[r] = d * update
