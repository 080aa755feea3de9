"""Products of packed weights with several columns at once, in vectors of eight.

A panel is a few slices of eight rows of W times a few columns. Its sums stay in registers while it
reads the weights: the processor then multiplies as fast as it can, whatever the size, where a BLAS
packs both factors anew at each call, which costs more than the product if there are few columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.extending import intrinsic

from reservoir._kernels._compile import inner
from reservoir._kernels._layout import LANES
from reservoir._kernels._vector import LONG, Vectors, unrolled


def _sums_in_registers(bits: int, features: str) -> int:
    """Return how many sums of eight numbers fit beside what is multiplied."""
    if "+avx512f" in features.split(","):
        return 16
    return 4 if bits == 64 else 8  # half of sixteen registers, four numbers or eight in each


def _panel(n_columns: int, n_slices: int, n_chains: int) -> Any:
    """Return an intrinsic for panels of one size; `n_chains` sums for each of its vectors."""

    @intrinsic
    def panel(
        typingctx: Any, out: Any, at: Any, stride: Any, begin: Any, begin_at: Any,
        begin_stride: Any, data: Any, slice_: Any, n: Any, x: Any, x_at: Any, x_stride: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            v = Vectors(context, builder, signature.args[0])
            to, start, weights, source = (v.data(signature.args[i], args[i]) for i in (0, 3, 6, 9))

            def places(first: Any, step: Any) -> list[Any]:
                return [builder.add(first, builder.mul(step, LONG(c))) for c in range(n_columns)]

            def multiply(first: int, last: int, n_chains: int) -> None:
                """Emit the loop for some of the slices."""
                which = range(first, last)
                sums = [[v.sums(n_chains) for _ in which] for _ in range(n_columns)]
                for column, place in zip(sums, places(args[4], args[5]), strict=True):
                    for s, chains in zip(which, column, strict=True):
                        begun = v.load(start, builder.add(place, LONG(LANES * s)))
                        builder.store(begun, chains[0])
                size = builder.mul(args[8], LONG(LANES))
                slices = [builder.mul(builder.add(args[7], LONG(s)), size) for s in which]
                numbers = places(args[10], args[11])

                def entry(j: Any, turn: int) -> None:
                    behind = builder.mul(j, LONG(LANES))
                    rows = [v.load(weights, builder.add(place, behind)) for place in slices]
                    for column, place in zip(sums, numbers, strict=True):
                        number = builder.load(builder.gep(source, [builder.add(place, j)]))
                        repeated = v.broadcast(number)
                        for chains, row in zip(column, rows, strict=True):
                            v.add_product(chains[turn % n_chains], row, repeated)

                unrolled(builder, LONG(0), args[8], max(4, n_chains), entry)
                for column, place in zip(sums, places(args[1], args[2]), strict=True):
                    for s, chains in zip(which, column, strict=True):
                        v.store(v.total(chains), to, builder.add(place, LONG(LANES * s)))

            room = _sums_in_registers(v.bits, context.codegen().magic_tuple()[2])
            chains = min(n_chains, room // n_columns)
            at_once = min(n_slices, room // (n_columns * chains))
            for first in range(0, n_slices, at_once):
                multiply(first, first + at_once, chains)
            return context.get_dummy_value()

        long = types.int64
        signature = (out, long, long, begin, long, long, data, long, long, x, long, long)
        return types.void(*signature), codegen

    return panel


def _strip(four: Any, two: Any, one: Any) -> Any:
    """Return a function for some slices and all columns, given panels of 4, 2 and 1 of those."""

    @inner
    def strip(
        out: Any, at: int, stride: int, begin: Any, begin_at: int, begin_stride: int,
        data: Any, s: int, n: int, x: Any, x_at: int, x_stride: int, n_columns: int,
    ) -> None:  # fmt: skip
        c = 0
        while c + 4 <= n_columns:
            o, b, i = at + c * stride, begin_at + c * begin_stride, x_at + c * x_stride
            four(out, o, stride, begin, b, begin_stride, data, s, n, x, i, x_stride)
            c += 4
        if c + 2 <= n_columns:
            o, b, i = at + c * stride, begin_at + c * begin_stride, x_at + c * x_stride
            two(out, o, stride, begin, b, begin_stride, data, s, n, x, i, x_stride)
            c += 2
        if c < n_columns:
            o, b, i = at + c * stride, begin_at + c * begin_stride, x_at + c * x_stride
            one(out, o, stride, begin, b, begin_stride, data, s, n, x, i, x_stride)

    return strip


# where there are few sums, several chains for each hide the latency of an addition
_four_slices = _strip(_panel(4, 4, 1), _panel(2, 4, 1), _panel(1, 4, 2))
_one_slice = _strip(_panel(4, 1, 2), _panel(2, 1, 4), _panel(1, 1, 8))


@inner
def add_product(
    out: Any, at: int, stride: int, begin: Any, begin_at: int, begin_stride: int,
    data: Any, first: int, last: int, n: int, x: Any, x_at: int, x_stride: int, n_columns: int,
) -> None:  # fmt: skip
    """Write ``begin + W x`` for each of several columns.

    Arrays are flat, each with where the first column begins and how far it is to the next. `data`
    holds W in slices of eight rows, each of n numbers per row; those from `first` to `last` are
    read.
    """
    whole = first + (last - first) // 4 * 4
    for s in range(first, whole, 4):
        ahead = 8 * (s - first)
        _four_slices(
            out, at + ahead, stride, begin, begin_at + ahead, begin_stride,
            data, s, n, x, x_at, x_stride, n_columns,
        )  # fmt: skip
    for s in range(whole, last):
        ahead = 8 * (s - first)
        _one_slice(
            out, at + ahead, stride, begin, begin_at + ahead, begin_stride,
            data, s, n, x, x_at, x_stride, n_columns,
        )  # fmt: skip
