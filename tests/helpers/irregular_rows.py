"""Rows at irregular times, for tests of `time_column`."""

import numpy as np


def timed(n=300, seed=0, begin=1e5):
    """Return irregular times, two inputs, and a target that they lead to."""
    rng = np.random.default_rng(seed)
    times = begin + np.cumsum(rng.exponential(3.0, n) + 0.1)
    u = rng.normal(size=(n, 2))
    return times, u, u[:, 0] + np.r_[0, u[:-1, 1]]


def table(times, u):
    """Return the inputs with the times between them."""
    return np.column_stack([u[:, 0], times, u[:, 1]])


def steps_of(times, step):
    return np.r_[1.0, np.diff(times) / step]
