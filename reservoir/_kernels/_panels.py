"""Products of packed weights with several columns at once, in vectors of eight.

A panel is a few slices of eight rows of W times a few columns. Its sums stay in registers while it
reads the weights: the processor then multiplies as fast as it can, whatever the size, where a BLAS
packs both factors anew at each call, which costs more than the product if there are few columns.
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
    """Return how many sums of eight numbers fit beside what is multiplied."""
    if "+avx512f" in features.split(","):
        return 16
    return 4 if bits == 64 else 8  # half of sixteen registers, four numbers or eight in each


class _Columns(NamedTuple):
    """Flat columns: where their numbers are, where the first begins, how far it is to the next."""

    base: Any
    at: Any
    stride: Any

    def places(self, builder: Any, first: Any, n: int) -> list[Any]:
        """Return where n columns begin, from the given one on."""
        numbers = (builder.add(first, LONG(c)) for c in range(n))
        return [builder.add(self.at, builder.mul(self.stride, number)) for number in numbers]


class _Slices(NamedTuple):
    """Some slices of W: the first one's number, and how many numbers a row has."""

    base: Any
    first: Any
    n: Any


def _panel(
    v: Vectors, out: _Columns, begin: _Columns, x: _Columns, W: _Slices,
    which: range, column: Any, n_columns: int, n_chains: int,
) -> None:  # fmt: skip
    """Emit the product of a few slices and a few columns, `n_chains` sums for each vector of it."""
    builder = v.builder
    sums = [[v.sums(n_chains) for _ in which] for _ in range(n_columns)]
    for totals, place in zip(sums, begin.places(builder, column, n_columns), strict=True):
        for s, chains in zip(which, totals, strict=True):
            begun = v.load(begin.base, builder.add(place, LONG(LANES * s)))
            builder.store(begun, chains[0])
    size = builder.mul(W.n, LONG(LANES))
    slices = [builder.mul(builder.add(W.first, LONG(s)), size) for s in which]
    numbers = x.places(builder, column, n_columns)

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
    """Return an intrinsic for some slices and all columns: panels of 4, of 2 and of 1 of those.

    An intrinsic is written into the code of whoever calls it. A function made here would have a
    symbol, the same one for every number of slices.
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

            def panels(column: Any, n_columns: int) -> None:
                chains = min(chains_of[n_columns], room // n_columns)
                at_once = min(n_slices, room // (n_columns * chains))
                for first in range(0, n_slices, at_once):
                    which = range(first, first + at_once)
                    _panel(v, to, start, source, W, which, column, n_columns, chains)

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


# where there are few sums, several chains for each hide the latency of an addition
_four_slices = _strip(4, {4: 1, 2: 1, 1: 2})
_one_slice = _strip(1, {4: 2, 2: 4, 1: 8})


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
