"""What `bias="stable"` means: the range that is certified, the bias, and a warning of its cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir
from reservoir.metrics.memory_estimate import estimated_memory
from reservoir.scaling import scale_to_spectral_radius, spectral_radius
from reservoir.stability._arguments import read_range
from reservoir.stability._certified_values import stable_bias
from reservoir.stability._drive_ranges import inputs_of_drive
from reservoir.stability.proofs._certify import certify
from reservoir.topologies import orthogonal, ring

RADIUS = 0.99  # times the largest slope: what a norm of W proves, with room for rounding
MARGIN = 0.1  # of the width of each feature's range, on both sides: room for rows to come
_CLEARLY = 0.8  # a bias that leaves less of the memory costs more than it brings
_DENSE = 1000  # up to so many units an orthogonal W is made to say what it remembers
_SCANNED = 200  # up to so many units the largest certified radius is looked for
_STEP = 0.97  # from one radius that is tried to the next
_SMALLEST = 0.2  # radius that is tried, times the largest slope


def widened_range(arrays: Sequence[Array]) -> Array:
    """Return the range of several series, a tenth wider on both sides: (2, n_columns)."""
    low = np.min([array.min(axis=0) for array in arrays], axis=0).astype(float)
    high = np.max([array.max(axis=0) for array in arrays], axis=0).astype(float)
    return np.array([low - MARGIN * (high - low), high + MARGIN * (high - low)])


def certified_reservoir(
    reservoir: Reservoir,
    low: ArrayLike,
    high: ArrayLike,
    generator: np.random.Generator,
    step_range: tuple[float, float] | None = None,
) -> Reservoir:
    """Return a reservoir that is certified, with the bias it has or another.

    `low` and `high` bound the drive, `step_range` the lengths of steps, as in `certify`. Where a
    bias has to be found that costs more memory than it brings, a warning says what would keep more.
    """
    if certify(reservoir, low, high, step_range=step_range).holds:
        return reservoir
    # What a maximum norm proves, it proves of steps of any length.
    bias = stable_bias(
        reservoir.W,
        low,
        high,
        method="auto" if step_range is None else "max_norm",
        leak_rate=reservoir.leak_rate,
        activation=reservoir.activation,
        random_state=generator,
    )
    found = replace(reservoir, bias=bias)
    # rounding to float32 might undo it, or steps that are so short that nothing decays in them
    if not certify(found, low, high, step_range=step_range).holds:
        longer = "" if step_range is None else f", or longer steps than step_range={step_range}"
        raise ValueError(
            f'bias="stable" found no bias that is certified in {reservoir.dtype}. Use '
            f'dtype="float64", or a smaller spectral radius{longer}.'
        )
    if bias.any():
        ends = read_range(low, high, reservoir.n_units)
        _warn_of_lost_memory(reservoir, found, *ends, step_range)
    return found


def smaller_radii(radius: float, lipschitz: float) -> Iterator[float]:
    """Yield the radii below `radius` at which a certificate is looked for, the largest first.

    They have three digits, so that a reservoir of the same radius can be built from the number.
    """
    largest = RADIUS / lipschitz
    tried = largest if radius > largest else radius * _STEP
    while tried * lipschitz >= _SMALLEST:
        yield float(np.floor(tried * 1000 + 1e-9) / 1000)
        tried *= _STEP


def _warn_of_lost_memory(
    drawn: Reservoir, found: Reservoir, low: Array, high: Array, step_range: Any
) -> None:
    """Say so where a certified bias leaves clearly less memory, and what keeps more."""
    least, largest = inputs_of_drive(drawn, low, high)

    def draw(n_rows: int) -> Array:
        return np.random.default_rng(0).uniform(least, largest, (n_rows, len(least)))

    before, kept = estimated_memory(drawn, draw), estimated_memory(found, draw)
    if before is None or kept is None or not kept < min(_CLEARLY * before, before - 1):
        return

    def holds(made: Reservoir) -> bool:
        return certify(made, low, high, step_range=step_range).holds

    others = _others(drawn, holds, draw, kept)
    named = " or ".join(f"{name} (keeps {memory:.0f})" for name, memory in others)
    remedy = f"No other bias is needed with {named}. " if named else ""
    warnings.warn(
        f'bias="stable" found a bias that costs memory: about {kept:.0f} of {before:.0f} steps are '
        f"left. {remedy}reservoir.stability.design compares what can be certified.",
        UserWarning,
        stacklevel=caller_level(),
    )


def _others(
    drawn: Reservoir,
    holds: Callable[[Reservoir], bool],
    draw: Callable[[int], Array],
    kept: float,
) -> list[tuple[str, float]]:
    """Return what is certified with the drawn bias and keeps more memory, and how much it keeps."""
    lipschitz = get_activation(drawn.activation).lipschitz
    radius = RADIUS / lipschitz
    others = []
    for name, topology in (("orthogonal", orthogonal), ("ring", ring)):
        if name == "ring" or drawn.n_units <= _DENSE:
            W = topology(drawn.n_units, random_state=0) * radius
            made = replace(drawn, W=W)
            if holds(made):
                others.append((f'topology="{name}", spectral_radius={radius:.2f}', made))
    own = spectral_radius(drawn.W) if drawn.n_units <= _SCANNED else 0.0
    for smaller in smaller_radii(own, lipschitz):
        scaled = replace(drawn, W=scale_to_spectral_radius(drawn.W, smaller))
        if holds(scaled):
            others.append((f"spectral_radius={smaller:g}", scaled))
            break
    measured = [(words, estimated_memory(other, draw)) for words, other in others]
    return [(words, memory) for words, memory in measured if memory is not None and memory > kept]
