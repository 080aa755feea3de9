"""Inputs of a reservoir: the scaled channels of a series, and their differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir._validation.arrays import joined, together

_ROUNDING = 1e-12  # a channel that varies less, relative to its size, is constant up to rounding


PlaceOf = Callable[[int, int], str]


def _by_number(i: int, step: int) -> str:
    return f"step {step} of sequence {i}"


@saved
@dataclass(frozen=True, eq=False)
class SequenceInputs:
    """Transformation of the channels of a series into inputs of a reservoir.

    Channels are shifted by `mean` and divided by `scale`, (n_channels,). `fill` are their means
    over all training steps, for series without a value. Differences x[t] - x[t - lag], before step
    `lag` from x[0], are inputs divided by `lag_scale`, (n_lags, n_channels). With `indicator`, each
    channel has an input that is 1 where it was missing.
    """

    mean: Array
    scale: Array
    fill: Array
    lags: tuple[int, ...]
    lag_scale: Array
    missing: str
    indicator: bool

    @classmethod
    def of(
        cls,
        arrays: Sequence[Array],
        *,
        scaling: str | None,
        lags: tuple[int, ...],
        missing: str,
        indicator: bool,
    ) -> SequenceInputs:
        """Return the transformation fitted to series, each of shape (n_steps, n_channels)."""
        n_channels = arrays[0].shape[1]
        mean, scale = np.zeros(n_channels), np.ones(n_channels)
        fill = mean
        if scaling is not None or missing != "raise":
            fill, spread = mean_and_spread(arrays)
            mean, scale = (mean, scale) if scaling is None else (fill, spread)
        if missing != "raise":
            _warn_of_empty_channels(arrays)
        known = cls(mean, scale, fill, lags, np.ones((len(lags), n_channels)), missing, indicator)
        return replace(known, lag_scale=known._size_of_differences(arrays)) if lags else known

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the reservoir."""
        return len(self.mean) * self.n_parts

    @property
    def n_parts(self) -> int:
        """Number of inputs per channel."""
        return self.n_kinds + self.indicator

    @property
    def n_kinds(self) -> int:
        """Number of kinds of inputs: the values, and the differences over each lag."""
        return 1 + len(self.lags)

    def columns_of(self, kind: int) -> Array:
        """Return the columns of one kind of input, and of the indicators of missing values."""
        n = len(self.mean)
        indicators = np.arange(n * self.n_kinds, self.n_inputs)
        return np.concatenate([np.arange(kind * n, (kind + 1) * n), indicators])

    def __call__(
        self, arrays: Sequence[Array], dtype: Any = np.float64, place_of: PlaceOf = _by_number
    ) -> list[Array]:
        """Return the inputs of several series, each of shape (n_steps, n_inputs).

        ``place_of(i, step)`` returns the name that messages use for a step of series i.
        """
        inputs: list[Array] = []
        for some in together(arrays):
            inputs += self._of_some(some, dtype, place_of, len(inputs))
        return inputs

    def _of_some(
        self, arrays: Sequence[Array], dtype: Any, place_of: PlaceOf, number: int
    ) -> list[Array]:
        """Return the inputs of some series, computed together; the first one has index `number`."""
        n = len(self.mean)
        rows = joined([self._without_gaps(each) for each in arrays])
        inputs = np.empty((len(rows), self.n_inputs), dtype)
        ends = np.cumsum([len(each) for each in arrays])
        begins = np.concatenate([[0], ends[:-1]])
        first, steps = np.repeat(begins, ends - begins), np.arange(len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # raises below
            values = (rows - self.mean) / self.scale
            inputs[:, :n] = values
            for k, (lag, size) in enumerate(zip(self.lags, self.lag_scale, strict=True), start=1):
                before = np.maximum(steps - lag, first)
                inputs[:, k * n : (k + 1) * n] = (values - values[before]) / size
        if self.indicator:
            inputs[:, -n:] = np.isnan(joined(arrays)) if self.missing != "raise" else 0.0
        if not np.isfinite(inputs).all():
            at = int(np.argmin(np.isfinite(inputs).all(axis=1)))
            which = int(np.searchsorted(ends, at, side="right"))
            place = place_of(number + which, at - int(first[at]))
            self._raise_overflow(rows[at], inputs[at], place)
        return [inputs[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def _without_gaps(self, rows: Array) -> Array:
        """Return one series with its gaps filled."""
        gaps = np.isnan(rows) if self.missing != "raise" else None
        if gaps is None or not gaps.any():
            return rows
        return _filled(rows, gaps, self.missing, self.fill)

    def _raise_overflow(self, row: Array, inputs: Array, place: str) -> None:
        """Raise for a row with a value so large that it overflows when it is scaled."""
        channel = int(np.argmin(np.isfinite(inputs))) % len(self.mean)
        raise ValueError(
            f"The value {row[channel]:.6g} in channel {channel}, {place}, overflows "
            f"{inputs.dtype} when it is scaled: in fit the channel had mean "
            f"{self.mean[channel]:.6g} and deviation {self.scale[channel]:.6g}. Check the value; "
            'dtype="float64" has a wider range.'
        )

    def _size_of_differences(self, arrays: Sequence[Array]) -> Array:
        """Return the root mean square of the differences of scaled channels for each lag."""
        top = np.full(self.lag_scale.shape, _ROUNDING)
        squares, count = np.zeros(top.shape), np.zeros(len(self.lags))
        for batch in together(arrays):
            rows = np.concatenate([self._without_gaps(rows) for rows in batch])
            owner = np.repeat(np.arange(len(batch)), [len(rows) for rows in batch])
            with np.errstate(over="ignore"):
                values = (rows - self.mean) / self.scale
            for k, lag in enumerate(self.lags):
                with np.errstate(over="ignore", invalid="ignore"):
                    steps = (values[lag:] - values[:-lag])[owner[lag:] == owner[:-lag]]
                # in units of the largest one: squares do not overflow
                larger = np.maximum(top[k], np.abs(steps).max(axis=0, initial=0.0))
                if not np.isfinite(larger).all():
                    raise ValueError(
                        f"The differences of channel {int(np.argmin(np.isfinite(larger)))} of X "
                        "overflow: scale X down, or use differences=False."
                    )
                squares[k] *= (top[k] / larger) ** 2
                squares[k] += np.square(steps / larger).sum(axis=0)
                top[k] = larger
                count[k] += len(steps)
        size = top * np.sqrt(squares / np.maximum(count, 1)[:, None])
        return np.where(size > _ROUNDING, size, 1.0)


def chosen_lags(differences: Any, lengths: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the lags over which differences are inputs, ascending; True means a lag of 1.

    Lags beyond a third of the median length of the training series are omitted; if all are, the
    shortest is used. At most `most` are returned: the longest are omitted.
    """
    if isinstance(differences, bool | np.bool_):
        return (1,)[:most] if differences else ()
    lags = sorted(int(lag) for lag in differences)
    short = [lag for lag in lags if lag <= np.median(lengths) / 3]
    return tuple((short or lags[:1])[:most])


def _warn_of_empty_channels(arrays: Sequence[Array]) -> None:
    """Warn if a channel has no value in any series of fit."""
    empty = np.all([np.isnan(rows).all(axis=0) for rows in arrays], axis=0)
    if empty.any():
        warnings.warn(
            f"Channel {int(np.argmax(empty))} of X has no value in any of the {len(arrays)} "
            "sequences of fit: it is set to 0 there. Remove the channel, or check the data.",
            UserWarning,
            stacklevel=caller_level(),
        )


def mean_and_spread(arrays: Sequence[Array]) -> tuple[Array, Array]:
    """Return mean and standard deviation of each channel over all steps, ignoring NaN.

    The spread of a constant channel is its absolute value, so that later deviations are scaled to
    relative changes; it is 1 for a channel of zeros, or without any value.
    """
    size = np.max([_largest(np.concatenate(batch)) for batch in together(arrays)], axis=0)
    # a power of two as the unit: squares neither overflow nor vanish, and no rounding occurs
    unit = 2.0 ** np.frexp(size)[1].clip(-1000, 1000)
    count = np.zeros(len(unit))
    total, squares = np.zeros(len(unit)), np.zeros(len(unit))
    for rows in map(np.concatenate, together(arrays)):
        count += np.count_nonzero(~np.isnan(rows), axis=0)
        total += np.nansum(rows / unit, axis=0)
    mean = total / np.maximum(count, 1)
    for rows in map(np.concatenate, together(arrays)):
        squares += np.nansum(np.square(rows / unit - mean), axis=0)
    spread = np.sqrt(squares / np.maximum(count, 1))
    varies = spread > _ROUNDING * np.abs(size / unit)
    return mean * unit, np.where(varies, spread * unit, np.where(size > 0, size, 1.0))


def _largest(rows: Array) -> Array:
    return np.max(np.abs(rows), axis=0, initial=0.0, where=~np.isnan(rows))


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
            values = rows[known, channel].astype(float)
            # slopes between the largest numbers would overflow
            unit = 4.0 if np.abs(values).max() > np.finfo(float).max / 4 else 1.0
            filled[missing, channel] = unit * np.interp(steps[missing], known, values / unit)
        else:
            before = np.searchsorted(known, steps[missing], side="right") - 1
            filled[missing, channel] = rows[known[np.maximum(before, 0)], channel]
    return filled
