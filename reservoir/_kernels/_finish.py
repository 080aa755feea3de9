"""The second half of a step: from the product W x to the new state, in one pass.

A product writes W x for all units. The pass then adds the drive, applies the activation and the
leak, and stores the new state twice, in the state itself and in the array of the states. It does so
for several registers of units at a time, so that the operations of one hide the latency of those of
another. Kernels call the intrinsics in their own body: numba counts references to the arrays that
are passed to a compiled function, which takes as long as a tenth of a small step.

All arrays are flat. Those with a number per unit are padded with zeros to whole cache lines
(`reservoir._kernels._layout.padded`); the states of a step are `stride` numbers apart, unpadded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reservoir._kernels._layout import CACHE_LINE, LANES
from reservoir._kernels._vector import LONG, Vectors, lines_at_once, logistic, softplus, tanh

LINE = 8 * CACHE_LINE  # bits


def _relu(v: Vectors, x: Any) -> Any:
    zero = v.const(0.0)
    return v.choose("<", x, zero, zero, x)  # NaN stays NaN


def activated(v: Vectors, x: Any, code: Any, slope: Any) -> Any:
    """Emit f(x) for the activation with the number `code`; numbers not listed are the identity."""
    builder = v.builder
    place = cgutils.alloca_once(builder, v.vector)
    builder.store(x, place)
    formulas = {
        0: tanh,
        1: logistic,
        2: _relu,
        3: lambda v, x: v.choose("<", x, v.const(0.0), v.mul(x, v.broadcast(slope)), x),
        5: softplus,
    }
    end = builder.append_basic_block("activated")
    switch = builder.switch(code, end)
    for number, formula in formulas.items():
        block = builder.append_basic_block("activation")
        switch.add_case(LONG(number), block)
        builder.position_at_end(block)
        builder.store(formula(v, x), place)
        builder.branch(end)
    builder.position_at_end(end)
    return builder.load(place)


def _elementwise(lines: int | None) -> Any:
    """Return an intrinsic that applies the activation to vectors, of eight numbers or of lines."""

    @intrinsic
    def replace(typingctx: Any, z: Any, start: Any, code: Any, slope: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            kind = signature.args[0]
            n = LANES if lines else lines_at_once(context) * LINE // kind.dtype.bitwidth
            v = Vectors(context, builder, kind, n)
            base = v.data(kind, args[0])
            v.store(activated(v, v.load(base, args[1]), args[2], args[3]), base, args[1])
            return context.get_dummy_value()

        return types.void(z, types.int64, types.int64, z.dtype), codegen

    return replace


activate_lines, activate_eight = _elementwise(None), _elementwise(1)


def _driven(
    v: Vectors, start: Any, i: Any, weights: Any, size: Any, factors: Any, first: Any, n: Any
) -> Any:
    """Emit ``start + sum(weights[k size + i] * factors[first + k] for k in range(n))``."""
    builder = v.builder
    place = cgutils.alloca_once(builder, v.vector)
    builder.store(start, place)
    with cgutils.for_range_slice(builder, LONG(0), n, LONG(1), LONG) as (k, _):
        factor = builder.load(builder.gep(factors, [builder.add(first, k)]))
        weight = v.load(weights, builder.add(builder.mul(k, size), i))
        v.add_product(place, weight, v.broadcast(factor))
    return builder.load(place)


def _finish(lines: int | None) -> Any:
    """Return an intrinsic for the pass over the units of `lines` cache lines (None: at once)."""

    @intrinsic
    def finish(
        typingctx: Any, z: Any, i: Any, n_units: Any, x: Any, old: Any, new: Any, out: Any,
        row: Any, base: Any, base_at: Any, weights: Any, weights_at: Any, size: Any, factors: Any,
        first: Any, n_factors: Any, leak: Any, keep: Any, leaky: Any, code: Any, slope: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            kinds = signature.args
            n_lines = lines or lines_at_once(context)
            v = Vectors(context, builder, kinds[0], n_lines * LINE // kinds[0].dtype.bitwidth)
            at = args[1]
            z, x, out, base, weights, factors, leak, keep = (
                v.data(kinds[j], args[j]) for j in (0, 3, 6, 8, 10, 13, 16, 17)
            )
            # the pre-activation and its function value
            start = v.add(v.load(z, at), v.load(base, builder.add(args[9], at)))
            rows = builder.gep(weights, [args[11]])
            total = _driven(v, start, at, rows, args[12], factors, args[14], args[15])
            value = activated(v, total, args[19], args[20])
            # the leak, if there is one
            place = cgutils.alloca_once(builder, v.vector)
            builder.store(value, place)
            with builder.if_then(builder.icmp_signed("!=", args[18], LONG(0))):
                before = v.load(x, builder.add(args[4], at))
                mixed = v.mix(v.load(leak, at), value, v.load(keep, at), before)
                builder.store(mixed, place)
            state = builder.load(place)
            # both stores; the one into the unpadded row only if it does not exceed the row
            v.store(state, x, builder.add(args[5], at))
            inside = builder.icmp_signed("<=", builder.add(at, LONG(v.n)), args[2])
            with builder.if_then(inside):
                v.store(state, out, builder.add(args[7], at))
            return context.get_dummy_value()

        long = types.int64
        signature = types.void(
            z, long, long, x, long, long, out, long, base, long, weights, long, long, factors,
            long, long, leak, keep, long, long, z.dtype,
        )  # fmt: skip
        return signature, codegen

    return finish


finish_lines, finish_line = _finish(None), _finish(1)


@intrinsic
def line_size(typingctx: Any, x: Any) -> Any:
    """Return how many numbers of x are in a cache line: the units of `finish_line`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return LONG(LINE // signature.args[0].dtype.bitwidth)

    return types.int64(x), codegen


@intrinsic
def lines_size(typingctx: Any, x: Any) -> Any:
    """Return the number of units of `finish_lines`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return LONG(lines_at_once(context) * LINE // signature.args[0].dtype.bitwidth)

    return types.int64(x), codegen


@intrinsic
def copy_line(typingctx: Any, to: Any, at: Any, x: Any, start: Any) -> Any:
    """Copy the numbers of a cache line from ``x[start]`` on to ``to[at]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        kinds = signature.args
        v = Vectors(context, builder, kinds[2], LINE // kinds[2].dtype.bitwidth)
        v.store(v.load(v.data(kinds[2], args[2]), args[3]), v.data(kinds[0], args[0]), args[1])
        return context.get_dummy_value()

    return types.void(to, types.int64, x, types.int64), codegen


def _diagonals(lines: int | None) -> Any:
    """Return an intrinsic for the product of W, in layout `Diagonals`, for some cache lines of z.

    The vector of n numbers begins at ``x[at]``, and its first numbers are repeated behind its end,
    so that the numbers that a diagonal multiplies are contiguous wherever they begin.
    """

    @intrinsic
    def product(
        typingctx: Any, z: Any, i: Any, n: Any, data: Any, offsets: Any, n_diagonals: Any, x: Any,
        at: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            kinds = signature.args
            v = Vectors(context, builder, kinds[0], LINE // kinds[0].dtype.bitwidth)
            to, weights, offsets, source = (v.data(kinds[j], args[j]) for j in (0, 3, 4, 6))
            source, n = builder.gep(source, [args[7]]), args[2]
            # the lines of W in the order of the memory: line, diagonal, unit
            step = builder.mul(args[5], LONG(v.n))
            first = builder.mul(builder.udiv(args[1], LONG(v.n)), step)
            sums = v.sums(lines or lines_at_once(context))
            with cgutils.for_range_slice(builder, LONG(0), args[5], LONG(1), LONG) as (k, _):
                begin = builder.add(args[1], builder.load(builder.gep(offsets, [k])))
                beyond = builder.icmp_unsigned(">=", begin, n)
                begin = builder.select(beyond, builder.sub(begin, n), begin)
                place = builder.add(first, builder.mul(k, LONG(v.n)))
                for which, total in enumerate(sums):
                    row = v.load(weights, builder.add(place, builder.mul(step, LONG(which))))
                    numbers = v.load(source, builder.add(begin, LONG(which * v.n)))
                    v.add_product(total, row, numbers)
            for which, total in enumerate(sums):
                v.store(builder.load(total), to, builder.add(args[1], LONG(which * v.n)))
            return context.get_dummy_value()

        long = types.int64
        return types.void(z, long, long, data, offsets, long, x, long), codegen

    return product


diagonals_of_lines, diagonals_of_line = _diagonals(None), _diagonals(1)
