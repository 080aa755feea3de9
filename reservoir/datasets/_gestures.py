"""Generated recordings of gestures: sequences with one label each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_GRAVITY = 9.81  # m/s^2
_RATE = 50  # rows per second
_TILT, _TURN = 0.2, 0.1  # radians: tilt of the sensor, and its rotation during a gesture

_Path = Callable[[Array], Array]


def gestures(
    n_sequences: int = 240,
    *,
    n_classes: int = 8,
    noise: float = 0.5,
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Generate accelerometer recordings of hand gestures; the task is to classify each recording.

    A hand rests, draws a figure in the air, and rests again, at 50 rows per second. Its position
    follows minimum-jerk profiles [1]_; the three channels are its acceleration plus gravity and
    noise, in the axes of the sensor. Speed, size and start of the gesture and tilt of the sensor
    vary from one gesture to the next, and the hand may be faster at the beginning or at the end.

    "left" and "right" are the same accelerations in the opposite order, and so are "push" and
    "pull" and, in one channel, the two circles. These classes cannot be distinguished by the
    means and standard deviations of the channels.

    Parameters
    ----------
    n_sequences : int, default=240
        Number of sequences returned. The sizes of classes differ by at most one; their order is
        random.
    n_classes : int in [2, 8], default=8
        Number of classes, which are the first of "left", "right", "circle", "circle back", "push",
        "pull", "eight", "tick".
    noise : float >= 0, m/s^2, default=0.5
        Standard deviation of the sensor noise in each row and channel.
    random_state : None, int, Generator or RandomState, default=None
        Seed of labels, movements and noise. With None new ones are drawn at each call.

    Returns
    -------
    X : list of n_sequences ndarrays of shape (n_steps_i, 3)
        Accelerations to the right, to the front and upwards in m/s^2, including gravity. Sequences
        have about 50 to 230 rows, and half of them have fewer than 100.
    y : ndarray of shape (n_sequences,), str
        The class of each sequence.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Flash and Hogan (1985), "The coordination of arm movements: an experimentally confirmed
       mathematical model", Journal of Neuroscience 5, 1688-1703.

    Examples
    --------
    >>> from reservoir.datasets import gestures
    >>> X, y = gestures(4, n_classes=2, random_state=0)
    >>> y.tolist()
    ['left', 'left', 'right', 'right']
    >>> [sequence.shape for sequence in X]
    [(58, 3), (78, 3), (108, 3), (103, 3)]
    """
    n_sequences = check_count("n_sequences", n_sequences, size=120)
    n_classes = check_count("n_classes", n_classes, minimum=2)
    if n_classes > len(_PATHS):
        raise ValueError(f"n_classes={n_classes} must be at most {len(_PATHS)}.")
    noise = check_number("noise", noise, low=0)
    rng = as_generator(random_state)
    names = np.array(list(_PATHS)[:n_classes])
    labels = names[rng.permutation(np.arange(n_sequences) % n_classes)]
    return [_recorded(*_PATHS[label], noise, rng) for label in labels], labels


def _recorded(path: _Path, seconds: float, noise: float, rng: np.random.Generator) -> Array:
    """Return the sensor's recording of one gesture, of shape (n_steps, 3)."""
    before, after = rng.uniform(0.2, 0.8, 2)
    moving = seconds * np.exp(0.2 * rng.standard_normal())
    n_steps = round((before + moving + after) * _RATE)
    # From one row before the first to one row after the last, for second differences.
    t = (np.arange(-1, n_steps + 1) / _RATE - before) / moving
    part = np.clip(t, 0.0, 1.0)
    part = part + rng.uniform(-0.4, 0.4) * part * (1.0 - part)
    position = np.exp(0.2 * rng.standard_normal()) * path(part)
    acceleration = np.diff(position, n=2, axis=0) * _RATE**2 + [0.0, 0.0, _GRAVITY]
    progress = np.linspace(0.0, 1.0, n_steps)[:, None]
    tilt = _TILT * rng.standard_normal(3) + _TURN * rng.standard_normal(3) * progress
    recorded = Rotation.from_rotvec(tilt).apply(acceleration)
    return recorded + noise * rng.standard_normal(recorded.shape)


def _smooth(s: Array) -> Array:
    """Return the minimum-jerk profile from 0 to 1, which is at rest at both ends."""
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def _strokes(*moves: tuple[float, float, float]) -> _Path:
    """Return the path of straight moves of equal duration, with a stop between them."""

    def path(s: Array) -> Array:
        parts = np.clip(len(moves) * s[:, None] - np.arange(len(moves)), 0.0, 1.0)
        return _smooth(parts) @ np.array(moves)

    return path


def _loop(right: float, up: float, turns: int = 1) -> _Path:
    """Return the path of a closed figure, from its top, with `turns` horizontal periods."""

    def path(s: Array) -> Array:
        angle = 2.0 * np.pi * _smooth(s)
        still = np.zeros_like(angle)
        return np.stack([right * np.sin(turns * angle), still, up * np.cos(angle)], axis=1)

    return path


# The path of each class (right, front and up, in metres), and its typical duration in seconds.
_PATHS: dict[str, tuple[_Path, float]] = {
    "left": (_strokes((-0.3, 0.0, 0.0)), 0.8),
    "right": (_strokes((0.3, 0.0, 0.0)), 0.8),
    "circle": (_loop(0.1, 0.1), 1.4),
    "circle back": (_loop(-0.1, 0.1), 1.4),
    "push": (_strokes((0.0, 0.3, 0.0)), 0.8),
    "pull": (_strokes((0.0, -0.3, 0.0)), 0.8),
    "eight": (_loop(0.07, 0.12, 2), 1.8),
    "tick": (_strokes((0.1, 0.0, -0.15), (0.15, 0.0, 0.3)), 1.0),
}
