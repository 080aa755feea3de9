"""From the channels of a series to the inputs of a reservoir: scaled, with differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_ROUNDING = 1e-12  # a channel that varies less, relative to its size, is constant to rounding
_ROWS = 2**16  # rows of short sequences that are looked at together


@saved
@dataclass(frozen=True, eq=False)
class SequenceInputs:
    """What is done to the channels of a series before they drive a reservoir.

    Attributes
    ----------
    mean, scale : arrays of shape (n_channels,)
        Taken off each channel, and what the rest is divided by.
    difference_scale : array of shape (n_channels,) or None
        What differences of scaled channels are divided by; None: they are no inputs.
    missing : {"raise", "hold", "interpolate"}
    indicator : bool
        Whether each channel has an input that says where it was missing.
    """

    mean: Array
    scale: Array
    difference_scale: Array | None
    missing: str
    indicator: bool

    @classmethod
    def of(
        cls,
        arrays: Sequence[Array],
        *,
        scaling: str | None,
        differences: bool,
        missing: str,
        indicator: bool,
    ) -> SequenceInputs:
        """Return what suits the training series, each of shape (n_steps, n_channels)."""
        n_channels = arrays[0].shape[1]
        known = cls(np.zeros(n_channels), np.ones(n_channels), None, missing, indicator)
        if scaling is not None:
            known = cls(*_mean_and_spread(arrays), None, missing, indicator)
        if not differences:
            return known
        size = known._size_of_differences(arrays)
        return cls(known.mean, known.scale, size, missing, indicator)

    @property
    def n_inputs(self) -> int:
        """Inputs of the reservoir."""
        return len(self.mean) * self.n_parts

    @property
    def n_parts(self) -> int:
        """Inputs per channel."""
        return 1 + (self.difference_scale is not None) + self.indicator

    def __call__(self, rows: Array, dtype: Any = np.float64) -> Array:
        """Return the inputs of one series, (n_steps, n_inputs)."""
        n = len(self.mean)
        rows, gaps = self._without_gaps(rows)
        inputs = np.zeros((len(rows), self.n_inputs), dtype)
        with np.errstate(over="ignore"):  # refused below
            values = (rows - self.mean) / self.scale
            inputs[:, :n] = values
            if self.difference_scale is not None:
                inputs[1:, n : 2 * n] = np.diff(values, axis=0) / self.difference_scale
        if self.indicator:
            inputs[:, -n:] = 0.0 if gaps is None else gaps
        if not np.isfinite(inputs).all():
            self._refuse(rows, inputs)
        return inputs

    def _without_gaps(self, rows: Array) -> tuple[Array, Array | None]:
        """Return one series with its gaps filled, and where they were; None if there are none."""
        gaps = np.isnan(rows) if self.missing != "raise" else None
        if gaps is None or not gaps.any():
            return rows, None
        return _filled(rows, gaps, self.missing, self.mean), gaps

    def _refuse(self, rows: Array, inputs: Array) -> None:
        """Refuse a series with values so large that they overflow once they are scaled."""
        step, column = (int(k) for k in np.argwhere(~np.isfinite(inputs))[0])
        channel = column % len(self.mean)
        raise ValueError(
            f"A sequence of X has {rows[step, channel]:.6g} in channel {channel}, step {step}, "
            f"which overflows {inputs.dtype} when it is scaled: in fit the channel had mean "
            f"{self.mean[channel]:.6g} and deviation {self.scale[channel]:.6g}. Check the value; "
            'dtype="float64" has a wider range.'
        )

    def _size_of_differences(self, arrays: Sequence[Array]) -> Array:
        """Return the root mean square of the differences from step to step, of scaled channels."""
        n_channels = len(self.mean)
        top, squares, n_steps = np.full(n_channels, _ROUNDING), np.zeros(n_channels), 0
        for batch in _batches(arrays):
            rows = np.concatenate([self._without_gaps(rows)[0] for rows in batch])
            with np.errstate(over="ignore"):
                steps = np.diff((rows - self.mean) / self.scale, axis=0)
            steps = np.delete(steps, np.cumsum([len(rows) for rows in batch])[:-1] - 1, axis=0)
            # in units of the largest one: squares do not overflow
            larger = np.maximum(top, np.abs(steps).max(axis=0, initial=0.0))
            if not np.isfinite(larger).all():
                raise ValueError(
                    f"The differences of channel {int(np.argmax(np.isinf(larger)))} of X overflow: "
                    'use scaling="standard", or differences=False.'
                )
            squares = squares * (top / larger) ** 2 + np.square(steps / larger).sum(axis=0)
            top, n_steps = larger, n_steps + len(steps)
        size = top * np.sqrt(squares / max(n_steps, 1))
        return np.where(size > _ROUNDING, size, 1.0)


def _mean_and_spread(arrays: Sequence[Array]) -> tuple[Array, Array]:
    """Return mean and standard deviation of each channel over all steps; NaN are left out.

    The spread of a constant channel is its size, so that other values, should they come, count by
    their relative change; 1 for a channel of zeros, or one that is missing throughout.
    """
    size = np.max([_largest(np.concatenate(batch)) for batch in _batches(arrays)], axis=0)
    # a power of two as the unit: squares neither overflow nor vanish, and no bit changes
    unit = 2.0 ** np.frexp(size)[1].clip(-1000, 1000)
    count = np.zeros(len(unit))
    total, squares = np.zeros(len(unit)), np.zeros(len(unit))
    for rows in map(np.concatenate, _batches(arrays)):
        count += np.count_nonzero(~np.isnan(rows), axis=0)
        total += np.nansum(rows / unit, axis=0)
    mean = total / np.maximum(count, 1)
    for rows in map(np.concatenate, _batches(arrays)):
        squares += np.nansum(np.square(rows / unit - mean), axis=0)
    spread = np.sqrt(squares / np.maximum(count, 1))
    varies = spread > _ROUNDING * np.abs(size / unit)
    return mean * unit, np.where(varies, spread * unit, np.where(size > 0, size, 1.0))


def _largest(rows: Array) -> Array:
    return np.max(np.abs(rows), axis=0, initial=0.0, where=~np.isnan(rows))


def _batches(arrays: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield all sequences, short ones together."""
    waiting: list[Array] = []
    n_rows = 0
    for rows in arrays:
        waiting.append(rows)
        n_rows += len(rows)
        if n_rows >= _ROWS:
            yield waiting
            waiting, n_rows = [], 0
    if waiting:
        yield waiting


def _filled(rows: Array, gaps: Array, how: str, mean: Array) -> Array:
    """Return a series with its gaps filled, channel by channel."""
    filled = rows.copy()
    steps = np.arange(len(rows))
    for channel in np.flatnonzero(gaps.any(axis=0)):
        missing = gaps[:, channel]
        known = np.flatnonzero(~missing)
        if not len(known):
            filled[:, channel] = mean[channel]
        elif how == "interpolate":
            filled[missing, channel] = np.interp(steps[missing], known, rows[known, channel])
        else:
            before = np.searchsorted(known, steps[missing], side="right") - 1
            filled[missing, channel] = rows[known[np.maximum(before, 0)], channel]
    return filled
