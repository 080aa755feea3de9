"""Products of packed weights with several columns (sequences) at once, in vectors of eight.

A panel is the product of a few slices of W, of eight rows each, with a few columns. Its sums stay
in registers while the weights are read, so that the processor multiplies at full speed for any
size. A BLAS would copy both factors into its own layout at each call, which for a few columns costs
more than the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reservoir._kernels._compile import inner
from reservoir._kernels._layout import LANES
from reservoir._kernels._vector import LONG, Vectors, unrolled


def _sums_in_registers(bits: int, features: str) -> int:
    """Return how many sums of eight numbers fit into registers together with the factors.

    `bits` is the precision, `features` LLVM's list of the features of the processor.
    """
    if "+avx512f" in features.split(","):
        return 16
    return 4 if bits == 64 else 8  # half of 16 registers, each with four or eight numbers


class _Columns(NamedTuple):
    """Several columns inside a flat array.

    `base` points to the first number of the array; `at` is the index of the first number of the
    first column, `stride` the distance from one column to the next.
    """

    base: Any
    at: Any
    stride: Any

    def places(self, builder: Any, first: Any, n: int) -> list[Any]:
        """Return the indices at which n columns begin, beginning with column `first`."""
        numbers = (builder.add(first, LONG(c)) for c in range(n))
        return [builder.add(self.at, builder.mul(self.stride, number)) for number in numbers]


class _Slices(NamedTuple):
    """Consecutive slices of eight rows of W.

    `base` points to the packed weights; `first` is the number of the first slice, `n` the numbers
    per row of W.
    """

    base: Any
    first: Any
    n: Any


def _panel(
    v: Vectors, out: _Columns, begin: _Columns, x: _Columns, W: _Slices,
    which: range, column: Any, n_columns: int, n_chains: int,
) -> None:  # fmt: skip
    """Emit ``out = begin + W x`` for the slices `which` of W and a few columns.

    Each vector of the result has `n_chains` accumulators, to which the terms are added in turn.
    """
    builder = v.builder
    # accumulators in registers; the first of each begins with the value from `begin`
    sums = [[v.sums(n_chains) for _ in which] for _ in range(n_columns)]
    for totals, place in zip(sums, begin.places(builder, column, n_columns), strict=True):
        for s, chains in zip(which, totals, strict=True):
            begun = v.load(begin.base, builder.add(place, LONG(LANES * s)))
            builder.store(begun, chains[0])
    # the first indices of the slices of W and of the columns of x
    size = builder.mul(W.n, LONG(LANES))
    slices = [builder.mul(builder.add(W.first, LONG(s)), size) for s in which]
    numbers = x.places(builder, column, n_columns)

    # column j of every slice times number j of every column of x
    def entry(j: Any, turn: int) -> None:
        behind = builder.mul(j, LONG(LANES))
        rows = [v.load(W.base, builder.add(place, behind)) for place in slices]
        for totals, place in zip(sums, numbers, strict=True):
            number = builder.load(builder.gep(x.base, [builder.add(place, j)]))
            repeated = v.broadcast(number)
            for chains, row in zip(totals, rows, strict=True):
                v.add_product(chains[turn % n_chains], row, repeated)

    unrolled(builder, LONG(0), W.n, max(4, n_chains), entry)
    for totals, place in zip(sums, out.places(builder, column, n_columns), strict=True):
        for s, chains in zip(which, totals, strict=True):
            v.store(v.total(chains), out.base, builder.add(place, LONG(LANES * s)))


def _strip(n_slices: int, chains_of: dict[int, int]) -> Any:
    """Return an intrinsic for the product of `n_slices` slices of W with any number of columns.

    The columns are split into panels of 4, and at the end of 2 and of 1; `chains_of` gives the
    number of accumulators of each vector of such a panel. This is an intrinsic, whose code is
    inlined by the caller, because compiled functions made here would all have the same symbol.
    """

    @intrinsic
    def strip(
        typingctx: Any, out: Any, at: Any, stride: Any, begin: Any, begin_at: Any,
        begin_stride: Any, data: Any, slice_: Any, n: Any, x: Any, x_at: Any, x_stride: Any,
        n_columns: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            v = Vectors(context, builder, signature.args[0])
            to, start, source = (
                _Columns(v.data(signature.args[i], args[i]), args[i + 1], args[i + 2])
                for i in (0, 3, 9)
            )
            W = _Slices(v.data(signature.args[6], args[6]), args[7], args[8])
            room = _sums_in_registers(v.bits, context.codegen().magic_tuple()[2])

            # all slices times some columns, as many slices at once as fit into the registers
            def panels(column: Any, n_columns: int) -> None:
                chains = min(chains_of[n_columns], room // n_columns)
                at_once = min(n_slices, room // (n_columns * chains))
                for first in range(0, n_slices, at_once):
                    which = range(first, first + at_once)
                    _panel(v, to, start, source, W, which, column, n_columns, chains)

            # groups of four columns, then two and one of the remaining columns
            fours = builder.and_(args[12], LONG(-4))
            with cgutils.for_range_slice(builder, LONG(0), fours, LONG(4), LONG) as (column, _):
                panels(column, 4)
            two = builder.and_(args[12], LONG(2))
            with builder.if_then(builder.icmp_signed("!=", two, LONG(0))):
                panels(fours, 2)
            one = builder.and_(args[12], LONG(1))
            with builder.if_then(builder.icmp_signed("!=", one, LONG(0))):
                panels(builder.add(fours, two), 1)
            return context.get_dummy_value()

        long = types.int64
        columns = (long, long)
        signature = types.void(out, *columns, begin, *columns, data, *columns, x, *columns, long)
        return signature, codegen

    return strip


# if there are few sums, several accumulators for each hide the latency of an addition
_four_slices = _strip(4, {4: 1, 2: 1, 1: 2})
_one_slice = _strip(1, {4: 2, 2: 4, 1: 8})


@inner
def add_product(
    out: Any, at: int, stride: int, begin: Any, begin_at: int, begin_stride: int,
    data: Any, first: int, last: int, n: int, x: Any, x_at: int, x_stride: int, n_columns: int,
) -> None:  # fmt: skip
    """Write ``out = begin + W x`` for each of several columns.

    `out`, `begin` and `x` are flat, each with the index at which its first column begins (`at`) and
    the distance to the next (`stride`; 0 repeats one column). `data` is W in slices of eight rows
    of n numbers; the slices ``first : last`` are used.
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
