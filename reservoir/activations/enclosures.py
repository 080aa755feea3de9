"""Interval extensions: rigorous bounds on an activation and its slope over an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from reservoir._typing import Array

EPS = 2.0**-52
_ERROR = 8 * EPS  # assumed bound on the relative error of NumPy's tanh; tested with 50 digits
_SINGLE = 2.0**-23
_LEAST_CHORD = 1e-12  # smallest slope of a chord; below it the tangent points are lost to rounding

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Enclosure:
    """An interval extension of an activation f.

    Every function takes arrays of lower and upper ends, ``low <= high``, and returns bounds over
    each interval ``[low, high]``. The bounds must be valid in spite of rounding errors, because
    proofs depend on them: they may be too wide, but never too narrow. `slopes` must accept the
    interval (-inf, inf) if the range is unbounded.

    Parameters
    ----------
    low, high : float
        Lower and upper bound of the range of f; either may be infinite.
    values : callable, ``values(low, high) -> (least, largest)``
        Function that returns bounds on f over each interval.
    slopes : callable, ``slopes(low, high) -> (least, largest)``
        Function that returns bounds on f' over each interval. They must be non-negative: f must not
        decrease.
    chords : callable, optional, ``chords(low, high) -> (slope, middle, radius)``
        Function that returns a line and a tolerance such that
        ``|f(z) - slope z - middle| <= radius`` over the interval. By default they are computed from
        `slopes`.

    Examples
    --------
    The range and the slopes of tanh on [0, 1]:

    >>> import numpy as np
    >>> from reservoir.activations import ACTIVATIONS
    >>> tanh = ACTIVATIONS["tanh"].enclosure
    >>> [bound.round(4) for bound in tanh.values(np.zeros(1), np.ones(1))]
    [array([-0.]), array([0.7616])]
    >>> [bound.round(4) for bound in tanh.slopes(np.zeros(1), np.ones(1))]
    [array([0.42]), array([1.])]
    """

    low: float
    high: float
    values: Callable[[Array, Array], Pair]
    slopes: Callable[[Array, Array], Pair]
    chords: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None

    @property
    def bounded(self) -> bool:
        """Whether the range is bounded, so that all states are within a box."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def lines(self, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Return a line and a tolerance for f on each interval.

        Parameters
        ----------
        low, high : arrays of the same shape
            Lower and upper ends of the intervals.

        Returns
        -------
        slope, middle, radius : arrays of that shape
            ``|f(z) - slope z - middle| <= radius`` for every z in the interval.
        """
        if self.chords is not None:
            return self.chords(low, high)
        # mean value theorem at the midpoint c: f(z) in f(c) + [least, largest] (z - c)
        least, largest = self.slopes(low, high)
        c = 0.5 * low + 0.5 * high
        below, above = self.values(c, c)
        slope = 0.5 * (least + largest)
        middle = 0.5 * (below + above) - slope * c
        radius = 0.5 * (above - below) + 0.5 * (largest - least) * (0.5 * (high - low))
        # widen the radius by a bound on the rounding errors of slope, middle and radius
        size = np.maximum(np.abs(low), np.abs(high))
        reach = max(abs(self.low), abs(self.high))
        return slope, middle, radius * (1 + 8 * EPS) + 16 * EPS * (slope * size + reach)


def _tanh_values(low: Array, high: Array) -> Pair:
    below, above = np.tanh(low), np.tanh(high)
    below = below - (_ERROR * np.abs(below) + 1e-300)
    above = above + (_ERROR * np.abs(above) + 1e-300)
    return np.maximum(below, -1.0), np.minimum(above, 1.0)


def _tanh_slopes(low: Array, high: Array) -> Pair:
    # the slope 1 - tanh^2 is largest at the point nearest to zero, and smallest at the farthest
    size_low, size_high = np.abs(low), np.abs(high)
    inside = (low <= 0) & (high >= 0)
    nearest = np.tanh(np.where(inside, 0.0, np.minimum(size_low, size_high))) * (1 - _ERROR)
    farthest = np.minimum(np.tanh(np.maximum(size_low, size_high)) * (1 + _ERROR), 1.0)
    largest = np.minimum((1 - nearest) * (1 + nearest) + 4 * EPS, 1.0)
    least = np.maximum((1 - farthest) * (1 + farthest) - 4 * EPS, 0.0)
    return least, largest


def _tanh_chords(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return slope, middle and radius of the narrowest band that is parallel to the chord of tanh.

    The band contains tanh over the interval. tanh is farthest from the chord at the ends of the
    interval, or where its slope equals the slope of the chord.
    """
    # slope of the chord; if the interval is too short for a quotient, largest slope of tanh
    width = high - low
    wide = width > 1e-9
    _, largest = _tanh_slopes(low, high)
    rise = np.tanh(high) - np.tanh(low)
    slope = np.where(wide, rise / np.where(wide, width, 1.0), largest)
    slope = np.clip(slope, _LEAST_CHORD, 1.0)
    # at +-tangent the slope of tanh equals the slope of the chord
    tangent = np.arctanh(np.minimum(np.sqrt(1 - slope), 1 - 1e-13))
    places = [low, high, np.clip(-tangent, low, high), np.clip(tangent, low, high)]
    # clipping replaces a tangent point outside the interval by an end, which is a candidate anyway;
    # an error of the tangent point changes the value only to second order
    excess = np.array([np.tanh(z) - slope * z for z in places])
    below, above = excess.min(axis=0), excess.max(axis=0)
    error = 32 * EPS * (1 + slope * np.maximum(np.abs(low), np.abs(high)))
    return slope, 0.5 * (below + above), 0.5 * (above - below) + error


# logistic(z) = (1 + tanh(z / 2)) / 2, exactly
def _logistic_values(low: Array, high: Array) -> Pair:
    below, above = _tanh_values(0.5 * low, 0.5 * high)
    return np.maximum(0.5 + 0.5 * below - EPS, 0.0), np.minimum(0.5 + 0.5 * above + EPS, 1.0)


def _logistic_slopes(low: Array, high: Array) -> Pair:
    least, largest = _tanh_slopes(0.5 * low, 0.5 * high)
    return 0.25 * least, 0.25 * largest


def _logistic_chords(low: Array, high: Array) -> tuple[Array, Array, Array]:
    slope, middle, radius = _tanh_chords(0.5 * low, 0.5 * high)
    return 0.25 * slope, 0.5 + 0.5 * middle, 0.5 * radius + 2 * EPS


def piecewise_linear(slope: float) -> Enclosure:
    """Return the enclosure of max(z, slope z) for 0 <= slope <= 1, valid for every dtype of z."""
    # in single precision the slope is rounded, unless it is 0 or 1
    share = _SINGLE if 0 < slope < 1 else 0.0
    least, largest = slope * (1 - share), slope * (1 + share)
    return Enclosure(
        0.0 if slope == 0 else -np.inf,
        np.inf,
        partial(_bent_values, least=least, largest=largest),
        partial(_bent_slopes, least=least, largest=largest),
    )


def _bent_values(low: Array, high: Array, least: float, largest: float) -> Pair:
    below = np.where(low > 0, low, largest * low)
    above = np.where(high > 0, high, least * high)
    return below - EPS * np.abs(below) - 1e-300, above + EPS * np.abs(above) + 1e-300


def _bent_slopes(low: Array, high: Array, least: float, largest: float) -> Pair:
    return np.where(low > 0, 1.0, least), np.where(high >= 0, 1.0, largest)


def _softplus_values(low: Array, high: Array) -> Pair:
    below, above = np.logaddexp(low, 0.0), np.logaddexp(high, 0.0)
    return np.maximum(below * (1 - _ERROR) - 1e-300, 0.0), above * (1 + _ERROR) + 1e-300


TANH = Enclosure(-1.0, 1.0, _tanh_values, _tanh_slopes, _tanh_chords)
LOGISTIC = Enclosure(0.0, 1.0, _logistic_values, _logistic_slopes, _logistic_chords)
# the slope of softplus is the logistic function, which increases
SOFTPLUS = Enclosure(0.0, np.inf, _softplus_values, _logistic_values)
