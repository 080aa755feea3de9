"""Chaotic flows: ordinary differential equations, integrated by DOP853 (Runge-Kutta of order 8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, as_plain, check_count, check_number

ESCAPED = 1e6  # a variable larger than this is outside every attractor of this module


def lorenz(
    n_samples: int,
    *,
    dt: float = 0.02,
    washout: int = 1000,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8.0 / 3.0,
    initial_state: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-10,
    random_state: RandomState = None,
) -> Array:
    """Generate a trajectory of the Lorenz-63 system, a convection model of three variables.

    ``x' = sigma (y - x)``, ``y' = x (rho - z) - y``, ``z' = x y - beta z`` [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    dt : float, time units of the ODE, default=0.02
        Time between two rows; the integrator chooses its own steps.
    washout : int, samples, default=1000
        Number of rows dropped from the start, while the solution approaches the attractor. With 0
        the first row is the initial state.
    sigma, rho, beta : float, default=10, 28 and 8/3
        Prandtl number, relative Rayleigh number and aspect ratio, as in [1]_.
    initial_state : array-like of shape (3,), default=None
        Starting point; None is (1, 1, 1).
    rtol, atol : float, default=1e-10
        Tolerances of the integrator (`scipy.integrate.solve_ivp`, DOP853) per step. At the
        default the error is below 1e-6 for one Lyapunov time. It grows by a factor e per Lyapunov
        time, so series with different tolerances differ completely after about 20 Lyapunov times.
    random_state : None, int, Generator or RandomState, default=None
        With None the trajectory starts exactly from the initial state, so two calls return the same
        series. With a seed every component of the start is displaced by a draw from U(-0.1, 0.1).

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        The trajectory, with columns x, y and z; row i is at time ``(washout + i) * dt``.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the solution escapes to infinity.

    Notes
    -----
    The largest Lyapunov exponent is 0.9056 per time unit [2]_: ``LYAPUNOV_TIME["lorenz"]`` is its
    reciprocal, 1.104 time units, or 55 rows at the default dt.

    References
    ----------
    .. [1] Lorenz (1963), "Deterministic nonperiodic flow", J. Atmos. Sci. 20, 130-141,
       equations (25) to (27).
    .. [2] Sprott (2003), "Chaos and Time-Series Analysis", Oxford, appendix A.

    Examples
    --------
    >>> from reservoir.datasets import lorenz
    >>> X = lorenz(2000)
    >>> X.shape
    (2000, 3)
    >>> lorenz(2, washout=0)[0]
    array([1., 1., 1.])
    """
    sigma = check_number("sigma", sigma)
    rho = check_number("rho", rho)
    beta = check_number("beta", beta)

    def slope(t: float, s: Array) -> list[float]:
        x, y, z = s.tolist()
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    start = starting_point("lorenz", initial_state, np.ones(3), random_state)
    return integrate("lorenz", slope, start, n_samples, dt, washout, rtol, atol)


def roessler(
    n_samples: int,
    *,
    dt: float = 0.1,
    washout: int = 1000,
    a: float = 0.2,
    b: float = 0.2,
    c: float = 5.7,
    initial_state: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-10,
    random_state: RandomState = None,
) -> Array:
    """Generate a trajectory of the Roessler system, whose attractor is a single folded band.

    ``x' = -y - z``, ``y' = x + a y``, ``z' = b + z (x - c)`` [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    dt : float, time units of the ODE, default=0.1
        Time between two rows; one turn around the attractor takes about 6 time units.
    washout : int, samples, default=1000
        Number of rows dropped from the start. With 0 the first row is the initial state.
    a, b, c : float, default=0.2, 0.2 and 5.7
        Parameters of the flow, as in [1]_.
    initial_state : array-like of shape (3,), default=None
        Starting point; None is (1, 1, 1).
    rtol, atol : float, default=1e-10
        Tolerances of the integrator (`scipy.integrate.solve_ivp`, DOP853) per step. At the
        default the rows of one Lyapunov time are right to 1e-6.
    random_state : None, int, Generator or RandomState, default=None
        None starts from the initial state exactly. With a seed, every component of the start is
        displaced by a draw from U(-0.1, 0.1).

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        The trajectory, with columns x, y and z; row i is at time ``(washout + i) * dt``.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the solution escapes to infinity, as it does if
        it starts outside the basin of attraction.

    Notes
    -----
    The largest Lyapunov exponent is 0.0714 per time unit [2]_: ``LYAPUNOV_TIME["roessler"]`` is
    14.0 time units.

    References
    ----------
    .. [1] Roessler (1976), "An equation for continuous chaos", Phys. Lett. A 57, 397-398.
    .. [2] Sprott (2003), "Chaos and Time-Series Analysis", Oxford, appendix A.

    Examples
    --------
    >>> from reservoir.datasets import roessler
    >>> roessler(500).shape
    (500, 3)
    """
    a = check_number("a", a)
    b = check_number("b", b)
    c = check_number("c", c)

    def slope(t: float, s: Array) -> list[float]:
        x, y, z = s.tolist()
        return [-y - z, x + a * y, b + z * (x - c)]

    start = starting_point("roessler", initial_state, np.ones(3), random_state)
    return integrate("roessler", slope, start, n_samples, dt, washout, rtol, atol)


def lorenz96(
    n_samples: int,
    *,
    n_features: int = 40,
    forcing: float = 8.0,
    dt: float = 0.05,
    washout: int = 1000,
    initial_state: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-10,
    random_state: RandomState = None,
) -> Array:
    """Generate a trajectory of the Lorenz-96 system, a ring of sites with spatio-temporal chaos.

    ``x_i' = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + forcing``, with indices modulo n_features [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    n_features : int, at least 4, default=40
        Number of sites; 40 as in [2]_.
    forcing : float, default=8.0
        Constant forcing; at 8 the system of 40 sites is chaotic.
    dt : float, time units of the ODE, default=0.05
        Time between two rows; 0.05 represents 6 hours of weather [1]_.
    washout : int, samples, default=1000
        Number of rows dropped from the start. With 0 the first row is the initial state.
    initial_state : array-like of shape (n_features,), default=None
        Starting point; None means the unstable equilibrium (`forcing` at all sites) with 0.01 added
        at the first site.
    rtol, atol : float, default=1e-10
        Tolerances of the integrator (`scipy.integrate.solve_ivp`, DOP853) per step. At the
        default the rows of one Lyapunov time are right to 1e-6.
    random_state : None, int, Generator or RandomState, default=None
        None starts from the initial state exactly. With a seed, every component of the start is
        displaced by a draw from U(-0.1, 0.1).

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The trajectory, with a column per site; row i is at time ``(washout + i) * dt``.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Notes
    -----
    For 40 sites and forcing 8, errors double in 0.42 time units (2.1 days) [2]_. The largest
    Lyapunov exponent, which we measured over 6000 time units, is 1.67 per time unit;
    ``LYAPUNOV_TIME["lorenz96"]`` is 0.60 time units, for these two parameter values only.

    References
    ----------
    .. [1] Lorenz (1996), "Predictability: a problem partly solved", ECMWF Seminar on
       Predictability.
    .. [2] Lorenz and Emanuel (1998), "Optimal sites for supplementary weather observations",
       J. Atmos. Sci. 55, 399-414.

    Examples
    --------
    >>> from reservoir.datasets import lorenz96
    >>> lorenz96(100, n_features=8, washout=100).shape
    (100, 8)
    """
    n_features = check_count("n_features", n_features, minimum=4, size=4)
    forcing = check_number("forcing", forcing)
    right = np.roll(np.arange(n_features), -1)
    left = np.roll(np.arange(n_features), 1)
    left2 = np.roll(np.arange(n_features), 2)

    def slope(t: float, x: Array) -> Array:
        return (x[right] - x[left2]) * x[left] - x + forcing

    default = np.full(n_features, forcing)
    default[0] += 0.01
    start = starting_point("lorenz96", initial_state, default, random_state)
    return integrate("lorenz96", slope, start, n_samples, dt, washout, rtol, atol)


def starting_point(
    name: str, initial_state: ArrayLike | None, default: Array, random_state: RandomState
) -> Array:
    """Check and return the starting point, displaced by draws from U(-0.1, 0.1) if there is a seed.

    `default` is used if `initial_state` is None; `name` is the name of the dataset, for messages.
    """
    start = (
        default if initial_state is None else as_plain("initial_state", initial_state, float).copy()
    )
    if start.shape != default.shape:
        raise ValueError(
            f"initial_state has shape {start.shape}, but {name} needs {default.shape}. Use one "
            "number per variable, or None for the standard start."
        )
    if not np.isfinite(start).all():
        raise ValueError(f"initial_state={start} contains NaN or infinity. Use finite numbers.")
    if random_state is not None:
        start = start + as_generator(random_state).uniform(-0.1, 0.1, start.shape)
    return start


def integrate(
    name: str,
    slope: Callable[[float, Array], Array | list[float]],
    start: Array,
    n_samples: int,
    dt: float,
    washout: int,
    rtol: float,
    atol: float,
) -> Array:
    """Return the solution of ``s' = slope(t, s)`` from time ``washout * dt``, at intervals of `dt`.

    `start`, (n_features,), is the state at time 0; the result is (n_samples, n_features). `name`,
    of the dataset, is for messages.
    """
    n_samples = check_count("n_samples", n_samples, size=2 * len(start))
    washout = check_count("washout", washout, minimum=0, size=1)
    dt = check_number("dt", dt, low=0.0, low_open=True)
    # If rtol is below 100 machine epsilons, solve_ivp itself increases it, with a warning.
    rtol = check_number("rtol", rtol, low=1e-13, high=1e-2)
    atol = check_number("atol", atol, low=0.0, low_open=True)
    times = dt * np.arange(washout, washout + n_samples)
    if times[-1] == 0.0:
        return start[None, :].copy()

    def inside(t: float, s: Array) -> float:
        return ESCAPED - float(np.abs(s).max())

    # Stop at an escape to infinity; otherwise the integrator would follow it with tiny steps.
    inside.terminal = True  # type: ignore[attr-defined]
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(
            slope,
            (0.0, times[-1]),
            start,
            method="DOP853",
            t_eval=times,
            rtol=rtol,
            atol=atol,
            events=inside,
        )
    if solution.status != 0 or not np.isfinite(solution.y).all():
        raise ValueError(
            f"{name} escaped to infinity from initial_state={start}: it exceeded {ESCAPED:g} "
            f"before t={times[-1]:g}. Start closer to the attractor, or use the published "
            "constants (the defaults)."
        )
    return np.ascontiguousarray(solution.y.T)
