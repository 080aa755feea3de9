"""Lyapunov exponents of known maps and flows, and the dimension that they imply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir.stability._arguments import as_real
from reservoir.stability.measures._qr_method import Lengths, exponents_along

Function = Callable[[Array], ArrayLike]


def flow_exponents(
    f: Function,
    jacobian: Function,
    x0: ArrayLike,
    n_exponents: int | None = None,
    n_steps: int = 20_000,
    dt: float = 0.01,
    *,
    washout: int = 1000,
    random_state: RandomState = None,
) -> Array:
    """Compute the Lyapunov exponents of a flow x' = f(x) from its equation.

    The flow and its variational equation V' = J(x) V are integrated together by the classical
    Runge-Kutta method of order 4, and the QR method is applied to V [1]_.

    Parameters
    ----------
    f : callable, ``f(x) -> (n,)``
        The right-hand side for x of shape (n,).
    jacobian : callable, ``jacobian(x) -> (n, n)``
        Its derivatives: row i contains those of f[i].
    x0 : array of shape (n,)
        The initial point.
    n_exponents : int, at most n, optional
        Number of exponents, the largest first; all n by default.
    n_steps : int, default=20_000
        Number of counted steps. The error of an exponent decays like the square root of the time
        that they cover.
    dt : float, time units of the flow, default=0.01
        Length of a step; the error of a step is of order dt^5.
    washout : int, steps, default=1000
        Number of uncounted steps before, which lead to the attractor and align the directions.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the first directions.

    Returns
    -------
    array of shape (n_exponents,)
        Natural logarithms per unit of time, descending.

    Raises
    ------
    TypeError, ValueError
        If a function returns another shape, the trajectory diverges (the message gives the step),
        or a parameter is out of range.

    See Also
    --------
    map_exponents : The same for maps.
    loop_exponents : Exponents of a fitted model in closed loop.

    References
    ----------
    .. [1] G. Benettin, L. Galgani, A. Giorgilli and J.-M. Strelcyn, "Lyapunov characteristic
       exponents for smooth dynamical systems and for Hamiltonian systems", Meccanica 15, 1980.

    Examples
    --------
    A stable spiral, whose exponents are the real parts of its eigenvalues:

    >>> import numpy as np
    >>> from reservoir.stability import flow_exponents
    >>> A = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    >>> flow_exponents(lambda x: A @ x, lambda x: A, [1.0, 0.0], n_steps=5000).round(3)
    array([-0.1, -0.1])
    """
    f, jacobian, point = _read_system(f, jacobian, x0)
    k = point.size if n_exponents is None else n_exponents
    lengths = Lengths.read(point.size, k, n_steps, washout, dt)
    dt = lengths.dt

    def advance(x: Array, V: Array) -> tuple[Array, Array]:
        # the stages of the method, for the point and for the directions
        k1, K1 = f(x), jacobian(x) @ V
        y = x + dt / 2 * k1
        k2, K2 = f(y), jacobian(y) @ (V + dt / 2 * K1)
        y = x + dt / 2 * k2
        k3, K3 = f(y), jacobian(y) @ (V + dt / 2 * K2)
        y = x + dt * k3
        k4, K4 = f(y), jacobian(y) @ (V + dt * K3)
        return (
            x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4),
            V + dt / 6 * (K1 + 2 * K2 + 2 * K3 + K4),
        )

    return exponents_along(advance, point, lengths, random_state)


def map_exponents(
    f: Function,
    jacobian: Function,
    x0: ArrayLike,
    n_exponents: int | None = None,
    n_steps: int = 20_000,
    *,
    washout: int = 1000,
    random_state: RandomState = None,
) -> Array:
    """Compute the Lyapunov exponents of a map x -> f(x) from its equation, by the QR method.

    Parameters
    ----------
    f : callable, ``f(x) -> (n,)``
        The map for x of shape (n,).
    jacobian : callable, ``jacobian(x) -> (n, n)``
        Its derivatives: row i contains those of f[i].
    x0 : array of shape (n,)
        The initial point.
    n_exponents : int, at most n, optional
        Number of exponents, the largest first; all n by default.
    n_steps : int, default=20_000
        Number of counted steps.
    washout : int, steps, default=1000
        Number of uncounted steps before, which lead to the attractor and align the directions.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the first directions.

    Returns
    -------
    array of shape (n_exponents,)
        Natural logarithms per step, descending; -inf for directions that vanish.

    Raises
    ------
    TypeError, ValueError
        If a function returns another shape, the trajectory diverges (the message gives the step),
        or a parameter is out of range.

    See Also
    --------
    flow_exponents : The same for flows.
    loop_exponents : Exponents of a fitted model in closed loop.

    Examples
    --------
    The Henon map contracts areas by 0.3 in each step, so the exponents have the sum log(0.3):

    >>> import numpy as np
    >>> from reservoir.stability import map_exponents
    >>> found = map_exponents(
    ...     lambda x: np.array([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]]),
    ...     lambda x: np.array([[-2.8 * x[0], 1.0], [0.3, 0.0]]), [0.1, 0.1], random_state=0)
    >>> found.round(1), float(found.sum().round(4)), float(np.log(0.3).round(4))
    (array([ 0.4, -1.6]), -1.204, -1.204)
    """
    f, jacobian, point = _read_system(f, jacobian, x0)
    k = point.size if n_exponents is None else n_exponents
    lengths = Lengths.read(point.size, k, n_steps, washout, 1.0)
    return exponents_along(lambda x, V: (f(x), jacobian(x) @ V), point, lengths, random_state)


def kaplan_yorke_dimension(exponents: ArrayLike) -> float:
    """Compute the Kaplan-Yorke dimension of an attractor from its Lyapunov exponents.

    It is ``j + (l[1] + ... + l[j]) / |l[j+1]|``, where l are the exponents in descending order and
    j is the largest number of them whose sum is not negative [1]_.

    Parameters
    ----------
    exponents : array of shape (n_exponents,)
        The leading exponents, in any order.

    Returns
    -------
    float
        The dimension; 0 if the largest exponent is negative. NaN if the sum of all given exponents
        is not negative: then these are too few, so ask for more exponents.

    Raises
    ------
    TypeError, ValueError
        If the exponents are not a non-empty array of numbers of shape (n_exponents,).

    Notes
    -----
    In closed loop a negative exponent may be the loop's own instead of the flow's: see
    `loop_exponents`. An exponent that is 0 in theory is measured as a small number of either sign,
    so the dimension of a cycle comes out as 0 or as 1: round small exponents first.

    References
    ----------
    .. [1] J. L. Kaplan and J. A. Yorke, "Chaotic behavior of multidimensional difference
       equations", Lecture Notes in Mathematics 730, 1979.

    Examples
    --------
    >>> from reservoir.stability import kaplan_yorke_dimension
    >>> round(kaplan_yorke_dimension([0.906, 0.0, -14.57]), 3)
    2.062
    >>> kaplan_yorke_dimension([0.906, 0.0])
    nan
    """
    values = np.sort(np.atleast_1d(as_real("exponents", exponents)))[::-1]
    if values.ndim != 1 or not values.size or np.isnan(values).any():
        raise ValueError(
            f"exponents={exponents!r} must be numbers of shape (n_exponents,), without NaN."
        )
    sums = np.cumsum(values)
    j = int(np.count_nonzero(sums >= 0))  # after a negative sum all others are negative
    if j == len(values):
        return float("nan")
    return float(j - sums[j - 1] / values[j]) if j else 0.0


def _read_system(
    f: Function, jacobian: Function, x0: ArrayLike
) -> tuple[Callable[[Array], Array], Callable[[Array], Array], Array]:
    """Return both functions, with checked results of given shapes, and the initial point."""
    point = np.atleast_1d(as_real("x0", x0))
    if point.ndim != 1 or not point.size or not np.isfinite(point).all():
        raise ValueError(f"x0={x0!r} must be finite numbers of shape (n,).")
    n = point.size
    return _shaped("f", f, (n,)), _shaped("jacobian", jacobian, (n, n)), point


def _shaped(name: str, function: Any, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return a function whose results are arrays of doubles; another shape raises."""
    if not callable(function):
        raise TypeError(f"{name}={function!r} must be a function of x.")

    def call(x: Array) -> Array:
        found = np.asarray(function(x), dtype=float)
        if found.shape != shape:
            raise ValueError(
                f"{name} must return shape {shape} for x of shape {x.shape}; got {found.shape}."
            )
        return found

    return call
