"""Kernel that runs sequences side by side and pools their states while they are in the cache.

The states of some steps are stored, the sequences of a unit side by side. Then the states of
each unit are read once per kind of sum, with the sums in registers, and merged into the sums of the
earlier steps: counts and squared deviations in double precision for states of any precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reservoir._kernels._compile import inner, kernel
from reservoir._kernels._lanes import receive, step_unit
from reservoir._kernels._layout import LANES
from reservoir._kernels._vector import LONG, Vectors


def _over_steps(v: Vectors, block: Any, args: Sequence[Any], body: Callable[[Any], None]) -> None:
    """Emit a loop over steps; `body` receives the vector of the states of one unit after each.

    `args` are the index of the unit in the block, the distance between steps, and their number.
    """
    start, stride, n_steps = args
    with cgutils.for_range_slice(v.builder, LONG(0), n_steps, LONG(1), LONG) as (t, _):
        body(v.load(block, v.builder.add(start, v.builder.mul(t, stride))))


def _register(v: Vectors, value: Any) -> Any:
    """Return a variable for a vector, which becomes a register, with an initial value."""
    place = cgutils.alloca_once(v.builder, value.type)
    v.builder.store(value, place)
    return place


@intrinsic
def _sum_deviations(
    typingctx: Any, work: Any, block: Any, start: Any, stride: Any, n_steps: Any
) -> Any:
    """Write ``sum(d)`` and ``sum(d * d)`` into ``work[0:8]`` and ``work[8:16]``, d = x[t] - x[0].

    Any of the states can be subtracted instead of the mean, which is not known yet: with n steps,
    the squares about it are at most n + 1 times the squares about the mean.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[1])
        to, states = (v.data(signature.args[i], args[i]) for i in range(2))
        first = v.load(states, args[2])
        total, squares = (_register(v, v.const(0.0)) for _ in range(2))

        def body(x: Any) -> None:
            d = v.sub(x, first)
            builder.store(v.add(builder.load(total), d), total)
            v.add_product(squares, d, d)

        _over_steps(v, states, args[2:], body)
        v.store(builder.load(total), to, LONG(0))
        v.store(builder.load(squares), to, LONG(LANES))
        return context.get_dummy_value()

    long = types.int64
    return types.void(work, block, long, long, long), codegen


@intrinsic
def _find_ends(typingctx: Any, work: Any, block: Any, start: Any, stride: Any, n_steps: Any) -> Any:
    """Write the largest and the smallest state of each lane: ``work[0:8]``, ``work[8:16]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[1])
        to, states = (v.data(signature.args[i], args[i]) for i in range(2))
        high, low = (_register(v, v.load(states, args[2])) for _ in range(2))

        def body(x: Any) -> None:
            for place, sign in ((high, ">"), (low, "<")):
                end = builder.load(place)
                builder.store(v.choose(sign, x, end, x, end), place)

        _over_steps(v, states, args[2:], body)
        v.store(builder.load(high), to, LONG(0))
        v.store(builder.load(low), to, LONG(LANES))
        return context.get_dummy_value()

    long = types.int64
    return types.void(work, block, long, long, long), codegen


@intrinsic
def _count_above(
    typingctx: Any, work: Any, thresholds: Any, first: Any, block: Any, start: Any, stride: Any,
    n_steps: Any,
) -> Any:  # fmt: skip
    """Count the states of each lane above four thresholds, into ``work[0:32]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[3])
        to, bounds, states = (v.data(signature.args[i], args[i]) for i in (0, 1, 3))
        places = [builder.add(args[2], LONG(k)) for k in range(4)]
        levels = [v.broadcast(builder.load(builder.gep(bounds, [place]))) for place in places]
        counts = [_register(v, v.const_int(0)) for _ in levels]

        def body(x: Any) -> None:
            for count, level in zip(counts, levels, strict=True):
                above = builder.sext(builder.fcmp_ordered(">", x, level), v.integers)  # -1
                builder.store(builder.sub(builder.load(count), above), count)

        _over_steps(v, states, args[4:], body)
        for k, count in enumerate(counts):
            v.store(builder.sitofp(builder.load(count), v.vector), to, LONG(LANES * k))
        return context.get_dummy_value()

    long = types.int64
    return types.void(work, thresholds, long, block, long, long, long), codegen


@inner
def _merge_deviations(sums: Any, at: int, block: Any, work: Any, shares: Any, first: int) -> None:
    """Merge a block's deviations from its first state into means and squared deviations.

    The formula of Chan, Golub and LeVeque (1983), for the eight lanes from `first` on; a lane
    without steps in the block has zeros in `shares`.
    """
    for lane in range(8):
        k, j = np.uint64(at) + np.uint64(lane), first + lane
        total, squares = np.float64(work[lane]), np.float64(work[8 + lane])
        gap = np.float64(block[k]) + total * shares[0, j] - sums.mean[k]
        squares += gap * gap * shares[2, j] - total * total * shares[0, j]
        sums.squares[k] += squares * shares[4, j]
        sums.mean[k] += gap * shares[1, j]


@inner
def _merge_ends(sums: Any, at: int, work: Any, shares: Any, first: int) -> None:
    for lane in range(8):
        k = np.uint64(at) + np.uint64(lane)
        live = shares[4, first + lane] > 0
        sums.high[k] = work[lane] if live and work[lane] > sums.high[k] else sums.high[k]
        sums.low[k] = work[8 + lane] if live and work[8 + lane] < sums.low[k] else sums.low[k]


@inner
def _merge_counts(
    sums: Any, level: int, thresholds: Any, block: Any, place: int, work: Any, shares: Any,
    first: int,
) -> None:  # fmt: skip
    """Add the counts of four thresholds, less the counts of steps that repeat the first state."""
    width = shares.shape[1]
    for j in range(4):
        for lane in range(8):
            k = np.uint64((level + j) * width + first) + np.uint64(lane)
            above = block[np.uint64(place) + np.uint64(lane)] > thresholds[level + j]
            share = shares[4, first + lane]
            sums.counts[k] += work[8 * j + lane] * share - shares[3, first + lane] * above


@inner
def _pool_units(
    sums: Any, thresholds: Any, n_units: int, block: Any, stride: int, n_steps: int, work: Any,
    shares: Any,
) -> None:  # fmt: skip
    n_thresholds, width = thresholds.shape[0] // n_units, shares.shape[1]
    for i in range(n_units):
        for first in range(0, width, 8):
            at = i * width + first
            if sums.mean.shape[0] > 0:
                _sum_deviations(work, block, at, stride, n_steps)
                _merge_deviations(sums, at, block, work, shares, first)
            if sums.high.shape[0] > 0:
                _find_ends(work, block, at, stride, n_steps)
                _merge_ends(sums, at, work, shares, first)
            for j in range(0, n_thresholds, 4):
                level = i * n_thresholds + j
                _count_above(work, thresholds, level, block, at, stride, n_steps)
                _merge_counts(sums, level, thresholds, block, at, work, shares, first)


@inner
def _share_out(shares: Any, done: Any, lengths: Any, begin: int, n_steps: int) -> None:
    """Compute the weights of the next steps of each lane, and add their number to `done`.

    Rows of `shares`: 1 / new steps, new steps / all steps so far, old steps * new steps / all, the
    number of steps after the end of the sequence, and whether there is any step before it.
    """
    for lane in range(done.shape[0]):
        new = np.float64(min(max(lengths[lane] - begin, 0), n_steps))
        old = done[lane]
        done[lane] = old + new
        live = new > 0
        shares[0, lane] = 1 / new if live else 0.0
        shares[1, lane] = new / done[lane] if live else 0.0
        shares[2, lane] = old * new / done[lane] if live else 0.0
        shares[3, lane] = n_steps - new if live else 0.0
        shares[4, lane] = 1.0 if live else 0.0


@inner
def _end_lanes(sums: Any, block: Any, at: int, n_units: int, t: int, lengths: Any) -> None:
    """Store the last states of sequences; after the end, repeat the first state of the block."""
    width = lengths.shape[0]
    for lane in range(width):
        if t == lengths[lane] - 1 and sums.last.shape[0] > 0:
            for i in range(n_units):
                sums.last[i * width + lane] = block[at + i * width + lane]
        if t >= lengths[lane]:
            for i in range(n_units):
                block[at + i * width + lane] = block[i * width + lane]


@kernel
def pool_lanes(
    sums: Any, thresholds: Any, done: Any, lengths: Any, block: Any, stride: int, work: Any,
    shares: Any, n_units: int, x: Any, inputs: Any, W: Any, code: int, slope: Any, leak: Any,
    keep: Any,
) -> None:  # fmt: skip
    """Run sequences side by side and pool their states, as `_kernels.pool_lanes`.

    `thresholds` is flat, unit by unit. `block` has room for the states of some steps, `stride`
    numbers each, of which the first are used, the lanes of a unit side by side; `work` for four
    vectors, `shares` for five rows of lanes. After an even number of steps, the states are in the
    first half of `x`.
    """
    # a sequence that has ended repeats the first state of the block, so that the inner loops need
    # no branch per lane: this changes neither extremes nor deviations from that state, and
    # `_merge_counts` subtracts it
    n_rows, width, half = block.shape[0] // stride, inputs.shape[2], x.shape[0] // 2
    offsets, data, indices, leaky = W.offsets, W.data, W.indices, leak.shape[0]
    shortest = lengths.min()
    for begin in range(0, inputs.shape[0], n_rows):
        n_steps = min(n_rows, inputs.shape[0] - begin)
        for row in range(n_steps):
            t, at = begin + row, row * stride
            old, new = (t & 1) * half, (1 - (t & 1)) * half
            receive(x, old + (n_units + 1) * width, width, inputs, t)
            for i in range(n_units):
                step_unit(
                    x, new, old, width, i, data, indices, offsets[i], offsets[i + 1],
                    leak, keep, leaky, code, slope,
                )  # fmt: skip
            for i in range(n_units * width):
                block[np.uint64(at) + np.uint64(i)] = x[np.uint64(new) + np.uint64(i)]
            if t >= shortest - 1:
                _end_lanes(sums, block, at, n_units, t, lengths)
        _share_out(shares, done, lengths, begin, n_steps)
        _pool_units(sums, thresholds, n_units, block, stride, n_steps, work, shares)
