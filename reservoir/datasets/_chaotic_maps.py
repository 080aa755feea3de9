"""Chaotic maps, which are iterated in discrete time and so have no integration error."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count, check_number
from reservoir.datasets._flows import starting_point


def henon(
    n_samples: int,
    *,
    a: float = 1.4,
    b: float = 0.3,
    washout: int = 100,
    initial_state: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Array:
    """Generate an orbit of Henon's map of the plane.

    ``x[t+1] = 1 - a x[t]**2 + y[t]``, ``y[t+1] = b x[t]`` [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    a, b : float, default=1.4 and 0.3
        Parameters of the map, as in [1]_.
    washout : int, samples, default=100
        Number of rows dropped from the start. With 0 the first row is the initial state.
    initial_state : array-like of shape (2,), default=None
        Starting point; None means the origin.
    random_state : None, int, Generator or RandomState, default=None
        With None the orbit starts exactly from the initial state, so two calls return the same
        series. With a seed both components of the start are displaced by draws from U(-0.1, 0.1).

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The orbit, with columns x and y.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the orbit escapes to infinity.

    Notes
    -----
    The largest Lyapunov exponent is 0.41922 per step [2]_: ``LYAPUNOV_TIME["henon"]`` is 2.385
    steps.

    References
    ----------
    .. [1] Henon (1976), "A two-dimensional mapping with a strange attractor", Commun. Math. Phys.
       50, 69-77.
    .. [2] Sprott (2003), "Chaos and Time-Series Analysis", Oxford, appendix A.

    Examples
    --------
    >>> from reservoir.datasets import henon
    >>> henon(3, washout=0)
    array([[ 0. ,  0. ],
           [ 1. ,  0. ],
           [-0.4,  0.3]])
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    washout = check_count("washout", washout, minimum=0, size=1)
    a = check_number("a", a)
    b = check_number("b", b)
    start = starting_point("henon", initial_state, np.zeros(2), random_state)
    # Python floats are faster here than arrays of two entries.
    X = np.empty((washout + n_samples, 2))
    x, y = start.tolist()
    for t in range(len(X)):
        if not (abs(x) < 1e6 and abs(y) < 1e6):
            raise ValueError(
                f"henon escaped to infinity at step {t}, from initial_state={start} with a={a}, "
                f"b={b}. Start closer to the attractor, or use the published constants a=1.4, "
                "b=0.3."
            )
        X[t] = x, y
        x, y = 1.0 - a * x * x + y, b * x
    return X[washout:]


def logistic_map(
    n_samples: int,
    *,
    r: float = 4.0,
    washout: int = 100,
    initial_state: float = 0.3,
    random_state: RandomState = None,
) -> Array:
    """Generate an orbit of the logistic map.

    ``x[t+1] = r x[t] (1 - x[t])`` [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    r : float in [0, 4], default=4.0
        Growth rate. At 4 the map is fully chaotic, and its values have the arcsine distribution;
        above 4 orbits leave [0, 1].
    washout : int, samples, default=100
        Number of rows dropped from the start. With 0 the first row is the initial state.
    initial_state : float in [0, 1], default=0.3
        Starting point.
    random_state : None, int, Generator or RandomState, default=None
        With None the orbit starts exactly from `initial_state`. With a seed the start is displaced
        by a draw from U(-0.1, 0.1), and reflected at 0 and 1.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The orbit.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if for r > 1 rounding moves the orbit onto the
        fixed point 0, where it would stay. At r = 4 this happens if a value is within 1e-8 of 1/2,
        as in about one of 100 orbits of a million steps.

    Notes
    -----
    At r = 4 the Lyapunov exponent is ln 2 per step exactly: ``LYAPUNOV_TIME["logistic_map"]`` is
    1.4427 steps.

    References
    ----------
    .. [1] May (1976), "Simple mathematical models with very complicated dynamics", Nature 261,
       459-467.

    Examples
    --------
    >>> from reservoir.datasets import logistic_map
    >>> logistic_map(3, washout=0, initial_state=0.25).ravel()
    array([0.25, 0.75, 0.75])
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    washout = check_count("washout", washout, minimum=0, size=1)
    r = check_number("r", r, low=0.0, high=4.0)
    x = check_number("initial_state", initial_state, low=0.0, high=1.0)
    if random_state is not None:
        x = abs(x + as_generator(random_state).uniform(-0.1, 0.1))
        x = min(x, 2.0 - x)
    X = np.empty((washout + n_samples, 1))
    for t in range(len(X)):
        X[t] = x
        x = r * x * (1.0 - x)
    # 0 is an unstable fixed point for r > 1: in exact arithmetic the orbit would not reach it.
    if r > 1.0 and X[-1, 0] == 0.0 and X[0, 0] != 0.0:
        raise ValueError(
            f"logistic_map: from initial_state={X[0, 0]!r} the orbit at r={r:g} is rounded onto "
            f"the fixed point 0 at step {int(np.argmin(X))}. Use another initial_state or "
            "random_state."
        )
    return X[washout:]
