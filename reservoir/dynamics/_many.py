"""Runs of several sequences side by side: W times a matrix with one state per column."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir import _kernels
from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain
from reservoir.activations import get_activation
from reservoir.dynamics import _compiled, reference
from reservoir.dynamics._extremes import StatesError, check_states, exceeds_room, largest_of
from reservoir.dynamics.engines import code_of, uses_kernels
from reservoir.dynamics.open_loop import (
    as_feedback,
    as_gaps,
    as_many_series,
    iter_states,
    room_for_states,
)
from reservoir.dynamics.reservoir import Reservoir, as_vector

_GROUP = 32  # sequences side by side with NumPy: enough to make the overhead of a call negligible
# Fewer sequences than this are run one by one. The key True is for the kernel for lanes, which
# computes whole cache lines of them, used or not; the key False is for NumPy.
_FEWEST = {True: 5, False: 2}
_DENSE_UNITS = 250  # for a larger dense W, one BLAS product for several sequences is faster
_BLOCK_SIZE = 2**19  # numbers in a block of states: 4 MiB of doubles
_BLOCK_ROWS = 512


def run_many(
    reservoir: Reservoir,
    series: Sequence[Any],
    *,
    initial_states: ArrayLike | None = None,
    feedback: Sequence[Any] | None = None,
    dt: Sequence[Any] | None = None,
    engine: str = "auto",
) -> list[Array]:
    """Drive the reservoir with several series, each from a separate initial state.

    The states take less time to compute than by `run` on each series: the series are advanced side
    by side, and each step reads W once for all of them. The states of a series have the same bits
    as those of `run` with compiled kernels (``engine="numba"``), up to 32 inputs and a dense W_in,
    and with NumPy (``engine="numpy"``), one input and a sparse W. Otherwise they agree up to
    rounding: BLAS adds in an order that depends on the number of rows, and "auto" chooses one
    engine for all series, by the sum of their rows.

    Parameters
    ----------
    reservoir : Reservoir
    series : sequence of arrays of shape (n_samples, n_features)
        The inputs of each series; the lengths may differ, and be 0, which leads to no states.
    initial_states : array of shape (n_series, n_units), optional
        The states before the first steps; zero by default.
    feedback : sequence of arrays of shape (n_samples, n_outputs), optional
        Outputs that are fed back, as in `run`, one array per series.
    dt : sequence of arrays of shape (n_samples,), optional
        Duration of each step, as in `run`, one array per series.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`.

    Returns
    -------
    list of arrays of shape (n_samples, n_units)
        The states of each series.

    Raises
    ------
    ValueError
        In the same cases as `run`, and if the number of initial states, of arrays in `feedback` or
        of arrays in `dt` differs from the number of series.
    ImportError
        If ``engine="numba"`` and numba is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run, run_many
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> short, long = run_many(res, [np.ones((2, 1)), np.ones((3, 1))])
    >>> short.shape, np.allclose(long, run(res, np.ones((3, 1))))
    ((2, 1), True)
    """
    plan = make_plan(reservoir, series, initial_states, feedback, engine, dt=dt)
    states = [np.empty((0, reservoir.n_units), reservoir.dtype)] * len(series)
    for group in plan.groups:
        longest = max((len(plan.inputs[i]) for i in group), default=0)
        # the kernel for lanes writes tiles of eight series; a small group is run one by one
        tiled = plan.lanes and len(group) >= _FEWEST[True]
        n_lanes = -(-len(group) // _kernels.LANES) * _kernels.LANES if tiled else len(group)
        with room_for_states(n_lanes, longest, reservoir.n_units, reservoir.dtype):
            whole = np.empty((n_lanes, longest, reservoir.n_units), reservoir.dtype)
        for _ in lockstep(plan, group, whole):
            pass
        rows = sum(len(plan.inputs[i]) for i in group)
        for i, memory in zip(group, whole, strict=False):
            part = memory[: len(plan.inputs[i])]
            # a view of the group's memory, unless more than half of that memory is padding
            states[i] = part if 2 * rows >= len(whole) * longest else part.copy()
    return states


def iter_many(
    reservoir: Reservoir,
    series: Sequence[Any],
    *,
    initial_states: ArrayLike | None = None,
    feedback: Sequence[Any] | None = None,
    dt: Sequence[Any] | None = None,
    engine: str = "auto",
) -> Iterator[tuple[int, int, Array]]:
    """Drive the reservoir with several series and yield their states block by block.

    Parameters
    ----------
    reservoir, series, initial_states, feedback, dt, engine
        As in `run_many`.

    Yields
    ------
    index : int
        Index of the series that the block belongs to. Blocks of one series are in order; blocks of
        different series are interleaved.
    start : int
        First row of the block in the series.
    block : array of shape (rows, n_units)
        The states. The memory is reused for later blocks: copy the states that you keep.

    Raises
    ------
    ValueError, ImportError
        In the same cases as `run_many`.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, iter_many
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> [(i, start, len(block)) for i, start, block in iter_many(res, [np.ones((2, 1))])]
    [(0, 0, 2)]
    """
    plan = make_plan(reservoir, series, initial_states, feedback, engine, dt=dt)
    for group in plan.groups:
        yield from lockstep(plan, group)


class Plan(NamedTuple):
    """The checked arguments of `run_many`, with the groups and the engine for running them.

    `inputs`, `feedback` and `gaps`, the durations of steps, have an array for each series. `groups`
    are at most `size` indices of series, longest first, that run side by side, by the kernel for
    `lanes` or NumPy; empty series are in none. Series, or rests of series, that run alone use
    `engine`. Without `name_of`, errors do not name the series.
    """

    reservoir: Reservoir
    inputs: list[Array]
    feedback: list[Array | None]
    gaps: list[Array] | None  # None if all steps have the duration 1
    starts: Array  # (n_series, n_units), the states before the first steps
    engine: str
    lanes: bool
    size: int
    check: bool  # whether states may become infinite
    groups: list[list[int]]
    name_of: Callable[[int], str] | None


def make_plan(
    reservoir: Reservoir,
    series: Sequence[Any],
    initial_states: Any,
    feedback: Any,
    engine: str,
    name_of: Callable[[int], str] | None = None,
    dt: Sequence[Any] | None = None,
    n_workers: int = 1,
) -> Plan:
    """Check the arguments of `run_many`, and choose the engine and the groups.

    Lanes are divided into at least `n_workers` groups, if there are as many series.
    """
    n_units, dtype = reservoir.n_units, reservoir.dtype
    called = by_number if name_of is None else name_of
    inputs, largest = as_many_series(called, series, reservoir.n_features, dtype)
    received = _each_feedback(reservoir, feedback, inputs)
    gaps = None if dt is None else _each_gaps(reservoir, dt, inputs, engine, called)
    starts = np.zeros((len(inputs), n_units), dtype)
    if initial_states is not None:
        given = as_plain("initial_states", initial_states)
        if given.shape != starts.shape:
            raise ValueError(f"initial_states must have shape {starts.shape}; got {given.shape}.")
        for i, state in enumerate(given):
            starts[i] = as_vector(f"initial_states[{i}]", state, n_units, dtype)
    # one engine for all series: if a sum may overflow in one series, the NumPy reference runs all
    bounded = get_activation(reservoir.activation).bounded
    others = [starts, *(F for F in received if F is not None)]
    extreme = exceeds_room(reservoir, max(largest, *map(largest_of, others)))
    n_steps = sum(len(X) for X in inputs)
    sparse, known = sp.issparse(reservoir._product_W), code_of(reservoir) is not None
    by_blas = engine == "auto" and not sparse and n_units > _DENSE_UNITS
    wanted = "numpy" if gaps is not None or by_blas else engine
    kernels = uses_kernels(reservoir, n_steps, wanted) and not (bounded and extreme)
    lanes = kernels and sparse and known
    # series of similar length share a group, so that few lanes are unused
    order = sorted((i for i, X in enumerate(inputs) if len(X)), key=lambda i: -len(inputs[i]))
    size = min(_GROUP, max(len(order), 1))
    if lanes:
        size = _kernels.lanes_for(-(-len(order) // n_workers), dtype)
    elif kernels and known:
        size = 1  # the kernel for one sequence is faster than NumPy for several
    groups = [order[begin : begin + size] for begin in range(0, len(order), size)]
    chosen = "numba" if kernels else "numpy"  # the total length decides, also for series run alone
    check = extreme or not bounded
    return Plan(
        reservoir, inputs, received, gaps, starts, chosen, lanes, size, check, groups, name_of
    )


def by_number(i: int) -> str:
    """Return the default name of a series in messages: its index in `series`."""
    return f"series[{i}]"


def _each_feedback(
    reservoir: Reservoir, feedback: Sequence[Any] | None, inputs: list[Array]
) -> list[Array | None]:
    if feedback is not None and len(feedback) != len(inputs):
        raise ValueError(
            f"feedback has {len(feedback)} items, but there are {len(inputs)} series. It needs one "
            "array per series."
        )
    given = [None] * len(inputs) if feedback is None else feedback
    return [as_feedback(reservoir, F, len(X)) for F, X in zip(given, inputs, strict=True)]


def _each_gaps(
    reservoir: Reservoir, dt: Any, inputs: list[Array], engine: str, called: Callable[[int], str]
) -> list[Array]:
    if len(dt) != len(inputs):
        raise ValueError(
            f"dt has {len(dt)} items, but there are {len(inputs)} series. It needs one array per "
            "series."
        )
    pairs = enumerate(zip(dt, inputs, strict=True))
    return [as_gaps(f"dt of {called(i)}", reservoir, d, len(X), engine) for i, (d, X) in pairs]


def _leaks(plan: Plan, group: list[int], start: int, stop: int) -> tuple[Any, ...]:
    """Return ``(leaks,)`` for `reference.advance_many`; () if all steps have duration 1."""
    if plan.gaps is None:
        return ()
    rate, dtype = plan.reservoir.leak_rate, plan.reservoir.dtype
    each = [reference.leaks_of(rate, plan.gaps[i][start:stop], dtype) for i in group]
    return (tuple(np.stack(leaks, axis=-1) for leaks in zip(*each, strict=True)),)


def _received(plan: Plan, group: list[int], start: int, stop: int) -> Array:
    """Return what each series receives in some steps: features, then outputs fed back, if any."""
    n_features = plan.reservoir.n_features
    shape = len(group), stop - start, n_features + plan.reservoir.n_outputs
    rows = np.empty(shape, plan.reservoir.dtype)
    for row, i in zip(rows, group, strict=True):
        row[:, :n_features], outputs = plan.inputs[i][start:stop], plan.feedback[i]
        if outputs is not None:
            row[:, n_features:] = outputs[start:stop]
    return rows


def lockstep(
    plan: Plan, group: list[int], whole: Array | None = None
) -> Iterator[tuple[int, int, Array]]:
    """Run a group of series side by side; when only a few have steps left, run these one by one.

    The states are written to `whole`, of shape (plan.size, longest, n_units), or by default to a
    buffer that the next block overwrites. Yields the index of the series, the first row of the
    block, and the block, as `iter_many` does.
    """
    reservoir, inputs, feedback = plan.reservoir, plan.inputs, plan.feedback
    n_units = reservoir.n_units
    # steps in a block: few enough for its states to stay small, but at least 8
    rows = int(np.clip(_BLOCK_SIZE // (n_units * plan.size), 8, _BLOCK_ROWS))
    reused = None if whole is not None else np.empty((plan.size, rows, n_units), reservoir.dtype)
    states, now = plan.starts[group], 0
    advance = _compiled.advance_lanes if plan.lanes else reference.advance_many
    while len(group) >= _FEWEST[plan.lanes]:
        # advance all series of the group to the end of the shortest series or of the block,
        # whichever is first; the group is sorted by length, so the last series is the shortest
        stop = min(now + rows, len(inputs[group[-1]]))
        place = reused[:, : stop - now] if whole is None else whole[:, now:stop]  # type: ignore[index]
        received, leaks = _received(plan, group, now, stop), _leaks(plan, group, now, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            advance(reservoir, states, received, place, *leaks)
        # series that end here are removed from the group
        remaining = [k for k, i in enumerate(group) if len(inputs[i]) > stop]
        before, states = states, place[remaining, -1]  # a copy: the caller may change the block
        for i, state, block in zip(group, before, place, strict=False):
            if plan.check:
                fed = None if feedback[i] is None else feedback[i][now:stop]  # type: ignore[index]
                with _naming(plan, i):
                    check_states(reservoir, state, inputs[i][now:stop], fed, block, now)
            yield i, now, block
        now, group = stop, [group[k] for k in remaining]
    # too few series remain to share a product: run the rest of each series alone
    for k, (i, state) in enumerate(zip(group, states, strict=True)):
        rest = None if feedback[i] is None else feedback[i][now:]  # type: ignore[index]
        out = None if whole is None else whole[k, now : len(inputs[i])]
        X, gaps = inputs[i][now:], None if plan.gaps is None else plan.gaps[i][now:]
        with _naming(plan, i, now):
            for start, block in iter_states(
                reservoir,
                X,
                initial_state=state,
                feedback=rest,
                dt=gaps,
                out=out,
                engine=plan.engine,
            ):
                yield i, now + start, block


@contextlib.contextmanager
def _naming(plan: Plan, i: int, before: int = 0) -> Iterator[None]:
    """Complete a `StatesError`: set the name of the series, and add `before` to the step."""
    try:
        yield
    except StatesError as error:
        name = None if plan.name_of is None else plan.name_of(i)
        raise StatesError(before + error.step, error.reason, name) from None
