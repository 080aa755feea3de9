"""Spike trains that differ only in their timing."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number


def spike_patterns(
    n_series: int,
    *,
    n_templates: int = 8,
    n_channels: int = 1,
    n_steps: int = 200,
    n_spikes: int = 8,
    jitter: float = 4.0,
    random_state: RandomState = None,
) -> tuple[Array, Array]:
    """Generate spike patterns; the task is to classify noisy copies of template spike trains.

    Templates are drawn once, with uniform spike times. Each series is a copy of one template, in
    which every spike is displaced by a separate draw from a normal distribution [1]_.

    Parameters
    ----------
    n_series : int
        Number of series. Training and test series must be from one call, because each call draws
        new templates.
    n_templates : int, at least 2, default=8
        Number of classes; all are equally likely.
    n_channels : int, default=1
        Number of spike trains in each template.
    n_steps : int, default=200
        Number of steps of each series; a step is 1 ms in [1]_.
    n_spikes : int, default=8
        Number of spikes in each train. It is the same in all templates, so that counts carry no
        information.
        (In [1]_ the number is random, on average 20 per second.)
    jitter : float >= 0, steps, default=4.0
        Standard deviation of the displacements; spikes beyond the start or the end of the series
        are reflected.
    random_state : None, int, Generator or RandomState, default=None
        Seed of templates, labels and jitter. With None new ones are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_series, n_steps, n_channels)
        Number of spikes in each step: 0, 1, or sometimes more.
    y : ndarray of shape (n_series,), int
        Index of the template of each series.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Maass, Natschlaeger and Markram (2002), "Real-time computing without stable states: a new
       framework for neural computation based on perturbations", Neural Computation 14, 2531-2560.

    Examples
    --------
    >>> from reservoir.datasets import spike_patterns
    >>> X, y = spike_patterns(3, n_templates=2, n_steps=40, jitter=1, random_state=0)
    >>> for train, label in zip(X[:, :, 0], y):
    ...     print("".join(".|2"[int(n)] for n in train), label)
    .||........|.............2...|.|....|... 0
    ||.....|.............|.......|..||..|... 1
    2..........|...........|.|....|..|....|. 0
    """
    n_spikes = check_count("n_spikes", n_spikes, size=1)
    n_steps = check_count("n_steps", n_steps, size=1)
    n_channels = check_count("n_channels", n_channels, size=n_steps)
    n_series = check_count("n_series", n_series, size=n_steps * n_channels)
    n_templates = check_count("n_templates", n_templates, minimum=2, size=n_channels * n_spikes)
    jitter = check_number("jitter", jitter, low=0)
    rng = as_generator(random_state)
    templates = rng.uniform(0.0, n_steps, (n_templates, n_channels, n_spikes))
    y = rng.integers(0, n_templates, n_series)
    times = templates[y] + jitter * rng.standard_normal((n_series, n_channels, n_spikes))
    folded = np.mod(times, 2 * n_steps)  # reflected at the start and the end, as often as needed
    folded = np.minimum(folded, 2 * n_steps - folded)
    steps = np.minimum(folded.astype(int), n_steps - 1)
    X = np.zeros((n_series, n_steps, n_channels))
    series, channel, _ = np.indices(steps.shape)
    np.add.at(X, (series, steps, channel), 1.0)
    return X, y
