"""Several sequences side by side: one sparse matrix times a block of states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir import _kernels
from reservoir._typing import Array, ArrayLike
from reservoir.activations import get_activation
from reservoir.dynamics import _compiled, _reference
from reservoir.dynamics._engines import code_of, uses_kernels
from reservoir.dynamics._open_loop import (
    as_feedback,
    as_series,
    check_finite_states,
    iter_states,
    may_overflow,
    run,
)
from reservoir.dynamics._reservoir import Reservoir, _as_vector

_GROUP = 32  # sequences side by side with NumPy: enough to hide what a call costs
_FEWEST = {True: 5, False: 2}  # fewer are stepped one by one; a kernel pays for all eight lanes
_BLOCK_SIZE = 2**19  # numbers in a block of states: 4 MiB of doubles
_BLOCK_ROWS = 512


def run_many(
    reservoir: Reservoir,
    series: Sequence[Any],
    *,
    initial_states: ArrayLike | None = None,
    feedback: Sequence[Any] | None = None,
    engine: str = "auto",
) -> list[Array]:
    """Drive the reservoir with several series, each from a state of its own.

    The same states as `run` on each, to rounding, in less time: the series are stepped side by
    side, and W is read once for all of them.

    Parameters
    ----------
    reservoir : Reservoir
    series : sequence of arrays of shape (n_samples, n_features)
        The lengths may differ.
    initial_states : array of shape (n_series, n_units), optional
        The states before the first steps; zero by default.
    feedback : sequence of arrays of shape (n_samples, n_outputs), optional
        As in `run`, one per series.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`.

    Returns
    -------
    list of arrays of shape (n_samples, n_units)

    Raises
    ------
    ValueError
        As `run`; and if there is not one initial state, or feedback, per series.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run, run_many
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> short, long = run_many(res, [np.ones((2, 1)), np.ones((3, 1))])
    >>> short.shape, np.allclose(long, run(res, np.ones((3, 1))))
    ((2, 1), True)
    """
    if len(series) == 1:  # nothing to share: straight into the result
        x0 = None if initial_states is None else np.asarray(initial_states).reshape(-1)
        F = None if feedback is None else feedback[0]
        return [run(reservoir, series[0], initial_state=x0, feedback=F, engine=engine)]
    states = [np.empty((len(X), reservoir.n_units), reservoir.dtype) for X in series]
    for index, start, block in iter_many(
        reservoir, series, initial_states=initial_states, feedback=feedback, engine=engine
    ):
        states[index][start : start + len(block)] = block
    return states


def iter_many(
    reservoir: Reservoir,
    series: Sequence[Any],
    *,
    initial_states: ArrayLike | None = None,
    feedback: Sequence[Any] | None = None,
    engine: str = "auto",
) -> Iterator[tuple[int, int, Array]]:
    """Drive the reservoir with several series, block by block.

    Parameters
    ----------
    reservoir, series, initial_states, feedback, engine
        As in `run_many`.

    Yields
    ------
    index : int
        Which series the block belongs to. Those of one series come in order, those of different
        series do not.
    start : int
        The row of the series that the block begins with.
    block : array of shape (rows, n_units)
        The states; the memory is used again, so copy what you keep.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, iter_many
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> [(i, start, len(block)) for i, start, block in iter_many(res, [np.ones((2, 1))])]
    [(0, 0, 2)]
    """
    n_units, dtype = reservoir.n_units, reservoir.dtype
    inputs = [
        as_series(f"series[{i}]", X, reservoir.n_features, dtype) for i, X in enumerate(series)
    ]
    received = _each_feedback(reservoir, feedback, inputs)
    starts = np.zeros((len(inputs), n_units), dtype)
    if initial_states is not None:
        given = np.asarray(initial_states)
        if given.shape != starts.shape:
            raise ValueError(f"initial_states must have shape {starts.shape}; got {given.shape}.")
        for i, state in enumerate(given):
            starts[i] = _as_vector(f"initial_states[{i}]", state, n_units, dtype)
    bounded = get_activation(reservoir.activation).bounded
    extreme = any(
        may_overflow(reservoir, X, F, x, 0.0)
        for X, F, x in zip(inputs, received, starts, strict=True)
    )
    n_steps = sum(len(X) for X in inputs)
    kernels = uses_kernels(reservoir, n_steps, engine) and not (bounded and extreme)
    lanes = kernels and sp.issparse(reservoir._product_W) and code_of(reservoir) is not None
    size = _kernels.LANES if lanes else _GROUP
    order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i]))
    chosen = "numba" if kernels else "numpy"  # for the whole, not for each by its own length
    for begin in range(0, len(order), size):
        group = [i for i in order[begin : begin + size] if len(inputs[i])]
        blocks = _lockstep(reservoir, group, inputs, received, starts, chosen, lanes)
        for index, start, block in blocks:
            if extreme or not bounded:
                check_finite_states(reservoir, block, start)
            yield index, start, block


def _each_feedback(
    reservoir: Reservoir, feedback: Sequence[Any] | None, inputs: list[Array]
) -> list[Array | None]:
    if feedback is not None and len(feedback) != len(inputs):
        raise ValueError(f"feedback has {len(feedback)} items; there are {len(inputs)} series.")
    given = [None] * len(inputs) if feedback is None else feedback
    return [as_feedback(reservoir, F, len(X)) for F, X in zip(given, inputs, strict=True)]


def _lockstep(
    reservoir: Reservoir,
    group: list[int],
    inputs: list[Array],
    feedback: list[Array | None],
    starts: Array,
    engine: str,
    lanes: bool,
) -> Iterator[tuple[int, int, Array]]:
    """Step a group, longest first, side by side until few of them are left."""
    n_units = reservoir.n_units
    size = _kernels.LANES if lanes else max(len(group), 1)
    rows = int(np.clip(_BLOCK_SIZE // (n_units * size), 8, _BLOCK_ROWS))
    memory = np.empty(rows * reservoir.n_units * size, reservoir.dtype)
    states, now = starts[group], 0
    advance = _compiled.advance_lanes if lanes else _reference.advance_many
    while len(group) >= _FEWEST[lanes]:
        stop = min(now + rows, len(inputs[group[-1]]))
        here = [np.hstack([inputs[i][now:stop], *_part(feedback[i], now, stop)]) for i in group]
        with np.errstate(over="ignore", invalid="ignore"):
            block = advance(reservoir, states, np.stack(here), memory)
        for i, part in zip(group, block, strict=True):
            yield i, now, part
        now = stop
        group = [i for i in group if len(inputs[i]) > now]
        states = block[: len(group), -1].copy()
    for i, state in zip(group, states, strict=True):
        rest = None if feedback[i] is None else feedback[i][now:]  # type: ignore[index]
        for start, part in iter_states(
            reservoir, inputs[i][now:], initial_state=state, feedback=rest, engine=engine
        ):
            yield i, now + start, part


def _part(feedback: Array | None, start: int, stop: int) -> list[Array]:
    return [] if feedback is None else [feedback[start:stop]]
