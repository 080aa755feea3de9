"""Quantiles of the states of a reservoir driven by series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics._many import by_number, lockstep, make_plan
from reservoir.dynamics.reservoir import Reservoir


def state_quantiles(
    reservoir: Reservoir,
    series: Sequence[Any],
    levels: Array,
    *,
    max_rows: int = 2000,
    generator: np.random.Generator,
    dt: Sequence[Any] | None = None,
    engine: str = "auto",
    name_of: Callable[[int], str] = by_number,
) -> Array:
    """Return quantiles of each unit's states in runs over series, from a random sample of steps.

    The result is (n_levels, n_units), of the reservoir's dtype; `levels` are in [0, 1]. The sample,
    of at most `max_rows` steps of all series, is drawn by `generator`. `dt` has the durations of
    steps, as in `run_many`. `name_of` returns the name of a series in messages, given its index.
    """
    plan = make_plan(reservoir, series, None, None, engine, name_of, dt)
    begins = np.cumsum([0, *map(len, plan.inputs)])
    size = min(max_rows, begins[-1])
    drawn = np.sort(generator.choice(begins[-1], size, replace=False))
    sample = np.empty((size, reservoir.n_units), reservoir.dtype)
    for group in plan.groups:
        for i, start, states in lockstep(plan, group):
            first = begins[i] + start
            low, high = np.searchsorted(drawn, (first, first + len(states)))
            sample[low:high] = states[drawn[low:high] - first]
    # interpolate as np.quantile, but after sorting unit by unit, in a tenth of the time
    ordered = np.sort(np.ascontiguousarray(sample.T), axis=1).T
    positions = levels * (size - 1)
    low = positions.astype(int)
    fraction = (positions - low)[:, None].astype(reservoir.dtype)
    return ordered[low] + fraction * (ordered[np.minimum(low + 1, size - 1)] - ordered[low])
