"""Conditional Lyapunov exponents, by the QR method."""

from __future__ import annotations

from typing import Any

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import check_count, room_for
from reservoir.dynamics import iter_states
from reservoir.stability.measures._qr_method import Basis
from reservoir.stability.measures._trajectories import read_drive_series, read_state, read_washout


def lyapunov_exponents(
    reservoir: Any,
    X: ArrayLike,
    n_exponents: int = 1,
    *,
    feedback: ArrayLike | None = None,
    initial_state: ArrayLike | None = None,
    washout: int | str = "auto",
    random_state: RandomState = None,
) -> Array:
    """Compute conditional Lyapunov exponents of a reservoir that is driven by given inputs.

    They are the rates at which nearby states converge or diverge: those of a closed loop, such as
    `forecast` runs, are others. The QR method [1]_ [2]_ is applied along the trajectory driven by
    X: the step Jacobians act on an orthonormal basis, which is made orthonormal again after each
    step; the exponents are the mean logarithms of the factors. The largest exponent is negative if
    the response is locally stable.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    X : array of shape (n_samples, n_features)
        The inputs that drive the reservoir.
    n_exponents : int, at most n_units, default=1
        Number of exponents, the largest first. A step costs n_exponents products with W and
        n_units * n_exponents^2 for the QR factorisation.
    feedback : array of shape (n_samples, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    initial_state : array of shape (n_units,), optional
        The state before the first row; zeros by default.
    washout : int or "auto", rows, default="auto"
        Number of rows at the start, which align the basis and are not counted; "auto" is min(100,
        n_samples // 10).
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the first basis. Its influence on the exponents decays like 1 / n_samples.

    Returns
    -------
    array of shape (n_exponents,)
        Natural logarithms per step, descending. An exponent is -inf if all differences in its
        direction vanish, as under a nilpotent W. All exponents but the largest are also -inf if the
        differences vanish up to rounding errors.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, X contains NaN or infinity, washout leaves fewer than two rows, or
        n_exponents exceeds n_units.

    Notes
    -----
    The exponents are measured along one trajectory and prove nothing: another drive or initial
    state may have other exponents. The network is teacher-forced with the given `feedback`.

    References
    ----------
    .. [1] G. Benettin, L. Galgani, A. Giorgilli and J.-M. Strelcyn, "Lyapunov characteristic
       exponents for smooth dynamical systems and for Hamiltonian systems", Meccanica 15, 1980.
    .. [2] K. Geist, U. Parlitz and W. Lauterborn, "Comparison of different methods for computing
       Lyapunov exponents", Progress of Theoretical Physics 83, 1990.

    Examples
    --------
    In a linear network the exponents are the logarithms of the eigenvalues' moduli:

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import lyapunov_exponents
    >>> linear = Reservoir(np.diag([0.5, -0.9]), np.ones((2, 1)), np.zeros(2),
    ...                    activation="identity")
    >>> lyapunov_exponents(linear, np.ones((1000, 1)), 2, random_state=0).round(6)
    array([-0.105361, -0.693147])
    """
    drive = read_drive_series(reservoir, "X", X, feedback)
    n_units = drive.reservoir.n_units
    k = check_count("n_exponents", n_exponents)
    if k > n_units:
        raise ValueError(f"n_exponents={k} must be at most n_units={n_units}. Lower it.")
    skip = read_washout(washout, len(drive))
    state = read_state(drive.reservoir, initial_state)
    what = f"Directions of n_units x n_exponents = {n_units} x {k} numbers, 3 at a time,"
    with room_for(what, 24.0 * n_units * k, "Lower n_exponents."):
        basis = Basis(n_units, k, random_state)
    blocks = iter_states(drive.reservoir, drive.X, initial_state=state, feedback=drive.feedback)
    # Carry the basis along the trajectory.
    for begin, block in blocks:
        tangent = drive.tangent(state, block, begin)
        state = block[-1].copy()
        for t in range(len(block)):
            basis.renew(tangent.advance(basis.directions, t), counted=begin + t >= skip)
            if not basis.directions.size:
                return basis.exponents(1)
    return basis.exponents(len(drive) - skip)
