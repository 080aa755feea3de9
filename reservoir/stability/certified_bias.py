"""Implementation of `bias="stable"`: the certified range, the bias, and a warning of its cost."""

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

RADIUS = 0.99  # largest provable product of norm and slope, with room for rounding
MARGIN = 0.1  # of the width of each feature's range, on both sides: room for future rows
_CLEARLY = 0.8  # warn if a bias keeps a smaller share of the memory than this
_DENSE = 1000  # number of units up to which an orthogonal W is tried
_SCANNED = 200  # number of units up to which the largest certified radius is searched for
_STEP = 0.97  # ratio of one tried radius to the one before
_SMALLEST = 0.2  # smallest tried radius times the largest slope


def widened_range(arrays: Sequence[Array]) -> Array:
    """Return the range of several series, a tenth wider on both sides, of shape (2, n_columns)."""
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
    """Return the reservoir, with another bias if it is not certified with the present one.

    `low` and `high` bound the drive, `step_range` the lengths of steps, as in `certify`. If the
    other bias shortens the memory clearly, a warning names alternatives that keep more.
    """
    if certify(reservoir, low, high, step_range=step_range).holds:
        return reservoir
    # A proof in a maximum norm covers steps of any length.
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
    # Rounding to float32 may lose the certificate, and so may steps too short for any decay.
    if not certify(found, low, high, step_range=step_range).holds:
        longer = "" if step_range is None else f", or longer steps than step_range={step_range}"
        raise ValueError(
            f'bias="stable" found no certified bias in {reservoir.dtype}. Use '
            f'dtype="float64", or a smaller spectral radius{longer}.'
        )
    if bias.any():
        ends = read_range(low, high, reservoir.n_units)
        _warn_of_lost_memory(reservoir, found, *ends, step_range)
    return found


def smaller_radii(radius: float, lipschitz: float) -> Iterator[float]:
    """Yield the radii below `radius` at which a certificate is tried, the largest first.

    They are rounded down to three decimals, so that the printed number gives the same reservoir.
    """
    largest = RADIUS / lipschitz
    tried = largest if radius > largest else radius * _STEP
    while tried * lipschitz >= _SMALLEST:
        yield float(np.floor(tried * 1000 + 1e-9) / 1000)
        tried *= _STEP


def _warn_of_lost_memory(
    drawn: Reservoir, found: Reservoir, low: Array, high: Array, step_range: Any
) -> None:
    """Warn if a certified bias leaves clearly less memory, and name what keeps more."""
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
        f'bias="stable" found a bias that costs memory: about {kept:.0f} of {before:.0f} steps '
        f"remain. {remedy}reservoir.stability.design compares certified reservoirs.",
        UserWarning,
        stacklevel=caller_level(),
    )


def _others(
    drawn: Reservoir,
    holds: Callable[[Reservoir], bool],
    draw: Callable[[int], Array],
    kept: float,
) -> list[tuple[str, float]]:
    """Return alternatives that are certified with the drawn bias and keep more memory."""
    lipschitz = get_activation(drawn.activation).lipschitz
    radius = RADIUS / lipschitz
    others = []
    for name, topology in (("orthogonal", orthogonal), ("ring", ring)):
        if name == "ring" or drawn.n_units <= _DENSE:
            W = topology(drawn.n_units, random_state=0) * radius
            made = replace(drawn, W=W)
            if holds(made):
                others.append((f'topology="{name}", spectral_radius={radius:.2f}', made))
    present = spectral_radius(drawn.W) if drawn.n_units <= _SCANNED else 0.0
    for smaller in smaller_radii(present, lipschitz):
        scaled = replace(drawn, W=scale_to_spectral_radius(drawn.W, smaller))
        if holds(scaled):
            others.append((f"spectral_radius={smaller:g}", scaled))
            break
    measured = [(name, estimated_memory(other, draw)) for name, other in others]
    return [(name, memory) for name, memory in measured if memory is not None and memory > kept]
