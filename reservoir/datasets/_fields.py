"""Chaotic fields: partial differential equations on a ring."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import check_count, check_number
from reservoir.datasets._flows import starting_point

_CIRCLE = 32  # points of the contour over which the coefficients of a step are averages
_FEWEST = 8  # points that resolve more than the mean


def kuramoto_sivashinsky(
    n_samples: int,
    *,
    length: float = 22.0,
    n_points: int = 64,
    dt: float = 0.25,
    washout: int = 2000,
    initial_state: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Array:
    """Generate a solution of the Kuramoto-Sivashinsky equation, waves of a flame front on a ring.

    ``u_t = -u u_x - u_xx - u_xxxx`` on [0, length), periodic. The Fourier modes are
    integrated by exponential time differencing, ETDRK4 with steps of `dt` [1]_; the products of the
    upper third of modes, which the points do not resolve, are left out.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    length : float, units of x, default=22.0
        Length of the ring; the number of positive exponents grows with it.
    n_points : int, even, at least 8, default=64
        Number of points on the ring. For a longer ring take as many more: three points for each
        unit of length, which resolve the waves of length 9.
    dt : float, time units, default=0.25
        Time between two rows, and step of the integration.
    washout : int, samples, default=2000
        Number of rows dropped from the start. With 0 the first row is the initial state.
    initial_state : array-like of shape (n_points,), default=None
        Starting point; None is that of [1]_, ``cos(x) (1 + sin(x))``, stretched to the ring.
    random_state : None, int, Generator or RandomState, default=None
        With None the solution starts from the initial state exactly. With a seed, every point is
        displaced by a draw from U(-0.1, 0.1).

    Returns
    -------
    u : ndarray of shape (n_samples, n_points)
        A column per point, a row per time; row i is at time ``(washout + i) * dt``.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or the solution grows without bounds, because `dt` is
        too long.

    Notes
    -----
    For the default ring the largest Lyapunov exponent is 0.048 per time unit [2]_:
    ``LYAPUNOV_TIME["kuramoto_sivashinsky"]`` is its reciprocal, 20.8 time units, or 83 rows.

    References
    ----------
    .. [1] A.-K. Kassam and L. N. Trefethen, "Fourth-order time-stepping for stiff PDEs", SIAM
       Journal on Scientific Computing 26, 2005.
    .. [2] P. Cvitanovic, R. L. Davidchack and E. Siminos, "On the state space geometry of the
       Kuramoto-Sivashinsky flow in a periodic domain", SIAM Journal on Applied Dynamical Systems 9,
       2010.

    Examples
    --------
    >>> from reservoir.datasets import kuramoto_sivashinsky
    >>> kuramoto_sivashinsky(100).shape
    (100, 64)
    """
    n_points = check_count("n_points", n_points, minimum=_FEWEST, size=_CIRCLE)
    n_samples = check_count("n_samples", n_samples, size=n_points)
    washout = check_count("washout", washout, minimum=0, size=1)
    length = check_number("length", length, low=0.0, low_open=True)
    dt = check_number("dt", dt, low=0.0, low_open=True)
    if n_points % 2:
        raise ValueError(f"n_points={n_points} is odd. Use an even number of points.")
    angle = 2 * np.pi * np.arange(n_points) / n_points
    default = np.cos(angle) * (1 + np.sin(angle))
    start = starting_point("kuramoto_sivashinsky", initial_state, default, random_state)
    modes = np.fft.rfft(start)
    waves = 2 * np.pi / length * np.arange(n_points // 2 + 1)
    step = _Step(waves, dt, n_points)
    rows = np.empty((n_samples, n_points))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(-washout, n_samples):
            if k >= 0:
                rows[k] = np.fft.irfft(modes, n_points)
            modes = step(modes)
    if not np.isfinite(rows).all():
        raise ValueError(f"The solution grows without bounds with dt={dt:g}. Use a shorter dt.")
    return rows


class _Step:
    """One step of ETDRK4 for Fourier modes whose linear part decays by itself."""

    def __init__(self, waves: Array, dt: float, n_points: int) -> None:
        linear = dt * (waves**2 - waves**4)
        self.n_points = n_points
        resolved = np.arange(len(waves)) < n_points / 3
        self._slope = -0.5j * waves * resolved
        self._decay, self._half = np.exp(linear), np.exp(linear / 2)
        # averages over a circle around each value, since the formulas cancel near 0
        circle = np.exp(1j * np.pi * (np.arange(_CIRCLE) + 0.5) / _CIRCLE)
        z = linear[:, None] + circle
        each = np.exp(z)
        self._middle = dt * ((np.exp(z / 2) - 1) / z).mean(axis=1).real
        self._first = dt * ((-4 - z + each * (4 - 3 * z + z**2)) / z**3).mean(axis=1).real
        self._second = dt * ((2 + z + each * (z - 2)) / z**3).mean(axis=1).real
        self._third = dt * ((-4 - 3 * z - z**2 + each * (4 - z)) / z**3).mean(axis=1).real

    def __call__(self, modes: Array) -> Array:
        """Return the modes after a step."""
        at_begin = self._product(modes)
        a = self._half * modes + self._middle * at_begin
        at_a = self._product(a)
        b = self._half * modes + self._middle * at_a
        at_b = self._product(b)
        c = self._half * a + self._middle * (2 * at_b - at_begin)
        ends = 2 * self._second * (at_a + at_b) + self._third * self._product(c)
        after: Array = self._decay * modes + self._first * at_begin + ends
        return after

    def _product(self, modes: Array) -> Array:
        """Return the modes of ``-u u_x``."""
        product: Array = self._slope * np.fft.rfft(np.fft.irfft(modes, self.n_points) ** 2)
        return product
