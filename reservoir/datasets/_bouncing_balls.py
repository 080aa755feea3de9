"""Videos of balls that bounce off the walls of a box and off each other."""

from __future__ import annotations

from math import pi

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_FULLEST = 0.3  # share of the box that balls may cover; random placement is fast up to this share
_TRIES = 200  # positions tried for a ball before all balls of a video are placed again


def bouncing_balls(
    n_videos: int,
    *,
    n_frames: int = 100,
    size: int = 15,
    n_balls: int = 3,
    radius: float = 0.12,
    speed: float = 0.05,
    random_state: RandomState = None,
) -> Array:
    """Generate videos of bouncing balls in a box; the task is to predict the next frame.

    Discs of equal mass move in straight lines and bounce off the walls and off each other without
    loss of energy. A single frame does not show their directions, so predicting the next one needs
    memory; and their motion after a collision is not a linear function of earlier frames.

    Parameters
    ----------
    n_videos : int
        Number of videos; the initial positions of the balls are drawn for each.
    n_frames : int, default=100
        Number of frames of each video.
    size : int, pixels, default=15
        Width and height of the square frames.
    n_balls : int, default=3
        Number of balls in each video; [1]_ uses three, [2]_ two and three.
    radius : float in (0, 0.5), side lengths of the box, default=0.12
        Radius of each ball. Together the balls may cover at most 30 % of the box.
    speed : float > 0, side lengths of the box per frame, default=0.05
        Initial speed of each ball, in a random direction; balls that collide exchange energy.
    random_state : None, int, Generator or RandomState, default=None
        Seed of positions and directions. With None new ones are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_videos, n_frames, size * size)
        Pixels of each frame, row by row: 0 in the background, 1 inside a ball, and about the
        covered fraction of the pixel at the edge of a ball. ``X[:, :-1]`` and ``X[:, 1:]`` are
        inputs and targets. ``X >= 0.5`` are black and white frames as in [2]_ (which uses
        ``size=18``).

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range, or if the balls leave no room to move.

    Notes
    -----
    The motion from one collision to the next is exact: for any number of frames, the kinetic energy
    is constant up to rounding, and balls neither overlap nor leave the box. The default radius and
    speed are our choice.

    References
    ----------
    .. [1] Sutskever, Hinton and Taylor (2009), "The recurrent temporal restricted Boltzmann
       machine", NIPS 21, 1601-1608.
    .. [2] Bay (2017), "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, section 7.1.

    Examples
    --------
    >>> from reservoir.datasets import bouncing_balls
    >>> X = bouncing_balls(2, n_frames=30, random_state=0)
    >>> X.shape
    (2, 30, 225)
    >>> for row in X[0, 0].reshape(15, 15)[::2]:
    ...     print("".join(" .oO"[int(3 * pixel)] for pixel in row).rstrip())
    <BLANKLINE>
    <BLANKLINE>
           oOOo
            ..
              OOO.
              .o.
      oOOo
    <BLANKLINE>
    """
    size = check_count("size", check_count("size", size), size=size)
    n_frames = check_count("n_frames", n_frames, size=size**2)
    n_videos = check_count("n_videos", n_videos, size=n_frames * size**2)
    n_balls = check_count("n_balls", n_balls, size=2)
    radius = check_number("radius", radius, low=0, high=0.5, low_open=True, high_open=True)
    speed = check_number("speed", speed, low=0, low_open=True)
    covered = n_balls * pi * radius**2
    if covered > _FULLEST:
        raise ValueError(
            f"n_balls={n_balls} of radius={radius} cover {covered:.0%} of the box, but may cover "
            f"at most {_FULLEST:.0%}, to have room to move. Lower n_balls or radius."
        )
    rng = as_generator(random_state)
    places = np.stack([_placed(n_balls, radius, rng) for _ in range(n_videos)])
    angles = rng.uniform(0.0, 2.0 * pi, (n_videos, n_balls))
    velocities = speed * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    X = np.empty((n_videos, n_frames, size * size))
    for frame in range(n_frames):
        if frame:
            _advance(places, velocities, radius)
        X[:, frame] = _drawn(places, radius, size)
    return X


def _placed(n_balls: int, radius: float, rng: np.random.Generator) -> Array:
    """Return positions of balls that do not touch, each drawn uniformly from the free space."""
    while True:
        places = np.empty((0, 2))
        for _ in range(n_balls):
            tried = rng.uniform(radius, 1.0 - radius, (_TRIES, 2))
            apart = np.linalg.norm(tried[:, None] - places, axis=-1) > 2.0 * radius
            free = apart.all(axis=1)
            if not free.any():
                break  # earlier balls leave no free space: place all of them again
            places = np.vstack([places, tried[free.argmax()]])
        if len(places) == n_balls:
            return places


def _advance(places: Array, velocities: Array, radius: float) -> None:
    """Move the balls of all videos by one frame, from collision to collision, in place.

    Both arrays have shape (n_videos, n_balls, 2), in side lengths and frames.
    """
    n_videos, n_balls = places.shape[:2]
    one, two = np.triu_indices(n_balls, 1)
    left = np.ones(n_videos)
    moving = np.arange(n_videos)
    while moving.size:
        x, v = places[moving], velocities[moving]
        times = np.hstack([_to_walls(x, v, radius), _to_contact(x, v, radius, one, two)])
        event = times.argmin(axis=1)
        step = np.minimum(times[np.arange(len(moving)), event], left[moving])
        x += step[:, None, None] * v
        hits = step < left[moving]
        left[moving] -= step
        wall = np.flatnonzero(hits & (event < 2 * n_balls))
        v.reshape(len(moving), -1)[wall, event[wall]] *= -1.0
        pair = np.flatnonzero(hits & (event >= 2 * n_balls))
        i, j = one[event[pair] - 2 * n_balls], two[event[pair] - 2 * n_balls]
        normal = x[pair, i] - x[pair, j]
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        # Equal masses exchange their velocity components along the line between them.
        exchanged = ((v[pair, i] - v[pair, j]) * normal).sum(axis=1, keepdims=True) * normal
        v[pair, i] -= exchanged
        v[pair, j] += exchanged
        places[moving], velocities[moving] = x, v
        moving = moving[hits]


def _to_walls(x: Array, v: Array, radius: float) -> Array:
    """Return the time until each ball reaches each wall ahead, in shape (n_videos, 2 n_balls)."""
    ahead = np.where(v > 0.0, 1.0 - radius - x, radius - x)
    times = np.full(v.shape, np.inf)
    np.divide(ahead, v, out=times, where=v != 0.0)
    return np.maximum(times, 0.0).reshape(len(x), -1)


def _to_contact(x: Array, v: Array, radius: float, one: Array, two: Array) -> Array:
    """Return the time until each pair of balls touches, (n_videos, n_pairs); infinite if never."""
    d, w = x[:, one] - x[:, two], v[:, one] - v[:, two]
    square, speed = (d**2).sum(axis=-1), (w**2).sum(axis=-1)
    # The first root of |d + w t| = 2 radius, in the form without cancellation.
    closing = -(d * w).sum(axis=-1)
    gap = np.maximum(square - 4.0 * radius**2, 0.0)
    discriminant = closing**2 - speed * gap
    # If balls approach only by rounding error, this is no collision: it would recur for ever.
    meets = (closing > 1e-12 * np.sqrt(square * speed)) & (discriminant >= 0.0)
    times = np.full(closing.shape, np.inf)
    np.divide(gap, closing + np.sqrt(np.maximum(discriminant, 0.0)), out=times, where=meets)
    return times


def _drawn(places: Array, radius: float, size: int) -> Array:
    """Return one frame of each video, of shape (n_videos, size * size)."""
    centres = (np.arange(size) + 0.5) / size
    across = (centres - places[..., :1]) ** 2  # (n_videos, n_balls, size)
    down = (centres - places[..., 1:]) ** 2
    distance = np.sqrt(down[..., :, None] + across[..., None, :])
    # Linear from 1 to 0 over the width of one pixel around the edge.
    shades = np.clip(0.5 + size * (radius - distance), 0.0, 1.0)
    return np.asarray(shades.max(axis=1).reshape(len(places), -1))
