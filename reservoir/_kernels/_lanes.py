"""Kernel that runs sequences side by side, so that each weight is read once for all of them.

The states of one unit in all sequences are adjacent, one sequence per lane: ``width`` numbers in
one cache line or in `MOST_LINES`. In every lane the operations are those of a
sequence that is run alone, in the same order, so that its states have the same bits.

Two states, which alternate as old and new one, are halves of one flat array and are referred to by
their offsets. A state contains one row of lanes for each unit, one of ones for the bias, and one
for each input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reservoir._kernels._compile import inner, kernel
from reservoir._kernels._finish import LINE, activated
from reservoir._kernels._layout import LANES, MOST_LINES
from reservoir._kernels._vector import LONG, Vectors, lines_at_once, transposed, unrolled


def _by_width(
    context: Any, builder: Any, kind: Any, width: Any, emit: Callable[[Vectors, int], None]
) -> None:
    """Emit code for lanes in one cache line, and in `MOST_LINES`: ``emit(v, first lane)``."""
    numbers = LINE // kind.dtype.bitwidth
    with builder.if_else(builder.icmp_signed("==", width, LONG(numbers))) as branches:
        for branch, n_lines in zip(branches, (1, MOST_LINES), strict=True):
            with branch:
                v = Vectors(context, builder, kind, min(n_lines, lines_at_once(context)) * numbers)
                for lane in range(0, n_lines * numbers, v.n):
                    emit(v, lane)


def _step_lanes(
    v: Vectors, x: Any, new: Any, old: Any, width: Any, at: Any, row: tuple[Any, ...],
    leak: tuple[Any, ...], code: Any, slope: Any,
) -> None:  # fmt: skip
    """Emit the step of one unit for the lanes of a vector.

    `row` is (weights, indices, start, stop) of the row of the unit, `leak` is (rates a, rates
    1 - a, number of the unit, whether there is a leak).
    """
    builder = v.builder
    weights, indices, start, stop = row
    source = builder.gep(x, [old])
    # the terms are added one after the other, as in the product with one vector
    (total,) = v.sums(1)
    with cgutils.for_range_slice(builder, start, stop, LONG(1), LONG) as (j, _):
        unit = builder.zext(builder.load(builder.gep(indices, [j])), LONG)
        weight = v.broadcast(builder.load(builder.gep(weights, [j])))
        v.add_product(total, weight, v.load(source, builder.mul(unit, width)))
    value = activated(v, builder.load(total), code, slope)
    place = cgutils.alloca_once(builder, v.vector)
    builder.store(value, place)
    leaks, keeps, i, leaky = leak
    with builder.if_then(leaky):
        a, rest = (v.broadcast(builder.load(builder.gep(each, [i]))) for each in (leaks, keeps))
        mixed = v.mix(a, value, rest, v.load(source, at))
        builder.store(mixed, place)
    v.store(builder.load(place), builder.gep(x, [new]), at)


@intrinsic
def step_unit(
    typingctx: Any, x: Any, new: Any, old: Any, width: Any, i: Any, data: Any, indices: Any,
    start: Any, stop: Any, leak: Any, keep: Any, leaky: Any, code: Any, slope: Any,
) -> Any:  # fmt: skip
    """Step unit i of all sequences, from the state at ``x[old]`` to the state at ``x[new]``.

    Its weights are ``data[start : stop]``. `width` is one cache line or `MOST_LINES`. This is an
    intrinsic, because numba counts references to the arrays that are passed to a compiled function,
    which takes as long as a unit.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        kinds = signature.args

        def emit(v: Vectors, lane: int) -> None:
            x, weights, places, leaks, keeps = (v.data(kinds[j], args[j]) for j in (0, 5, 6, 9, 10))
            row, at = (weights, places, args[7], args[8]), builder.mul(args[4], args[3])
            rates = leaks, keeps, args[4], builder.icmp_signed("!=", args[11], LONG(0))
            new, old = (builder.add(args[j], LONG(lane)) for j in (1, 2))
            _step_lanes(v, x, new, old, args[3], at, row, rates, args[12], args[13])

        _by_width(context, builder, kinds[0], args[3], emit)
        return context.get_dummy_value()

    long = types.int64
    signature = types.void(
        x, long, long, long, long, data, indices, long, long, leak, keep, long, long, x.dtype
    )
    return signature, codegen


@inner
def receive(x: Any, at: int, width: int, inputs: Any, t: int) -> None:
    """Store the inputs of a step after the units and the bias of the state at ``x[at]``."""
    for k in range(inputs.shape[1]):
        for lane in range(width):
            x[at + k * width + lane] = inputs[t, k, lane]


@intrinsic
def _store_transposed(
    typingctx: Any, flat: Any, at: Any, stride: Any, x: Any, start: Any, width: Any
) -> Any:
    """Write ``flat[at + l stride + i] = x[start + i width + l]`` for i and l below eight.

    This transposes the states of eight units (i) of eight sequences (l).
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        kinds = signature.args
        v = Vectors(context, builder, kinds[3])
        to, source = v.data(kinds[0], args[0]), v.data(kinds[3], args[3])
        places = [builder.add(args[4], builder.mul(args[5], LONG(i))) for i in range(LANES)]
        for lane, row in enumerate(transposed(v, [v.load(source, place) for place in places])):
            v.store(row, to, builder.add(args[1], builder.mul(args[2], LONG(lane))))
        return context.get_dummy_value()

    long = types.int64
    return types.void(flat, long, long, x, long, long), codegen


@kernel
def advance_lanes(
    flat: Any, stride: int, n_units: int, n_sequences: int, x: Any, inputs: Any, W: Any,
    code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Run sequences side by side.

    `flat` receives the states; the states of a sequence are contiguous, and sequences are `stride`
    numbers apart; it has room for a multiple of eight sequences. `x` contains two states: in the
    first, those before the first step; in both, ones for the bias. `inputs` has shape (n_steps,
    n_inputs, width). The weights are [W, bias, W_in, W_fb] by rows. `leak` and `keep` are a and
    1 - a for each unit, both empty without a leak.
    """
    offsets, data, indices, leaky = W.offsets, W.data, W.indices, leak.shape[0]
    width, half = inputs.shape[2], x.shape[0] // 2
    for t in range(inputs.shape[0]):
        old, new = (t & 1) * half, (1 - (t & 1)) * half
        receive(x, old + (n_units + 1) * width, width, inputs, t)
        for i in range(n_units):
            step_unit(
                x, new, old, width, i, data, indices, offsets[i], offsets[i + 1],
                leak, keep, leaky, code, slope,
            )  # fmt: skip
            # in memory the units of a sequence are adjacent: transpose eight units that are ready
            if i & 7 == 7:
                for lane in range(0, n_sequences, 8):
                    to = lane * stride + t * n_units + i - 7
                    _store_transposed(flat, to, stride, x, new + (i - 7) * width + lane, width)
        for i in range(n_units & -8, n_units):
            for lane in range(n_sequences):
                to = lane * stride + t * n_units + i
                flat[np.uint64(to)] = x[np.uint64(new + i * width + lane)]


@intrinsic
def _read_lanes(
    typingctx: Any, out: Any, at: Any, width: Any, coef: Any, first: Any, x: Any, start: Any,
    n_rows: Any,
) -> Any:  # fmt: skip
    """Write, in each lane, the sum over rows of ``coef[first :]`` times ``x[start :]`` to `out`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        kinds = signature.args

        def emit(v: Vectors, lane: int) -> None:
            to, weights, numbers = (v.data(kinds[j], args[j]) for j in (0, 3, 5))
            at, first, start = (builder.add(args[j], LONG(lane)) for j in (1, 4, 6))
            sums = v.sums(4)

            def row(j: Any, which: int) -> None:
                behind = builder.mul(j, args[2])
                weight = v.load(weights, builder.add(first, behind))
                v.add_product(sums[which], weight, v.load(numbers, builder.add(start, behind)))

            unrolled(builder, LONG(0), args[7], len(sums), row)
            v.store(v.total(sums), to, at)

        _by_width(context, builder, kinds[0], args[2], emit)
        return context.get_dummy_value()

    long = types.int64
    return types.void(out, long, long, coef, long, x, long, long), codegen


@kernel
def loop_lanes(
    outputs: Any, n_units: int, x: Any, inputs: Any, coef: Any, low: Any, high: Any, W: Any,
    code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Run closed loops side by side, each with its own readout.

    `outputs` is flat, by step, output and lane; each is clipped to `low` and `high`, flat by output
    and lane (NaN becomes 0 first), and fed back as an input of the next step, the first of the
    inputs. `coef` is flat, with rows of lanes for each output: of the units, the intercept and the
    inputs, in the order of a state. Other parameters as in `advance_lanes`.
    """
    offsets, data, indices, leaky = W.offsets, W.data, W.indices, leak.shape[0]
    n_steps, n_inputs, width = inputs.shape
    half, n_rows, n_outputs = x.shape[0] // 2, n_units + 1 + n_inputs, low.shape[0] // width
    for t in range(n_steps):
        old, new = (t & 1) * half, (1 - (t & 1)) * half
        # the readouts find the inputs behind the new state
        receive(x, old + (n_units + 1) * width, width, inputs, t)
        receive(x, new + (n_units + 1) * width, width, inputs, t)
        for i in range(n_units):
            step_unit(
                x, new, old, width, i, data, indices, offsets[i], offsets[i + 1],
                leak, keep, leaky, code, slope,
            )  # fmt: skip
        for j in range(n_outputs):
            at = (t * n_outputs + j) * width
            _read_lanes(outputs, at, width, coef, j * n_rows * width, x, new, n_rows)
            for lane in range(width):
                k, bound = np.uint64(at + lane), np.uint64(j * width + lane)
                value = outputs[k] if outputs[k] == outputs[k] else outputs.dtype.type(0)
                outputs[k] = min(max(value, low[bound]), high[bound])
                if t + 1 < n_steps:
                    inputs[t + 1, j, lane] = outputs[k]
