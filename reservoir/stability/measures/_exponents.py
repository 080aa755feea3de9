"""Lyapunov exponents by the QR method: conditional ones, and those of a fitted model's loop."""

from __future__ import annotations

from typing import Any

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import check_count, room_for
from reservoir.dynamics import iter_states
from reservoir.stability.loop_of import loop_of
from reservoir.stability.measures._qr_method import Basis, Lengths, exponents_along
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


def loop_exponents(
    model: Any,
    n_exponents: int = 3,
    n_steps: int = 20_000,
    dt: float = 1.0,
    *,
    context: ArrayLike | None = None,
    washout: int = 1000,
    random_state: RandomState = None,
) -> Array:
    """Compute the leading Lyapunov exponents of a fitted model's closed loop.

    The loop is the one that `forecast` runs, as a map of points: the state of the network and its
    next input. The QR method is applied to the exact derivatives of its steps, in double
    precision; scalers are part of the loop. `lyapunov_exponents` measures a network under a given
    drive instead.

    Parameters
    ----------
    model : fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline,
        TransformedTargetRegressor or search that contains one
        It must predict its next input, without exogenous columns; a network of
        `reservoir.force_train` may have no inputs. Trained networks may have the cells "rnn",
        "leaky", "lstm" and "gru".
    n_exponents : int, at most the number of entries of a point, default=3
        Number of exponents, the largest first.
    n_steps : int, default=20_000
        Number of counted steps.
    dt : float, time units of the system, default=1.0
        Time between two rows.
    context : array of shape (n_context, n_features), optional
        Rows to warm up on, as in `forecast`. By default the loop starts at the end of training;
        after training on several sequences a context is required.
    washout : int, steps, default=1000
        Number of uncounted steps before, which lead to the loop's attractor and align the
        directions.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the first directions.

    Returns
    -------
    array of shape (n_exponents,)
        Natural logarithms per unit of time, descending.

    Raises
    ------
    TypeError, ValueError
        If the model cannot run in closed loop, has exogenous columns, or has no derivatives: a
        readout or `augment` that is a function, a scaler that is not affine, another cell; if the
        loop diverges (the message gives the step); or if a parameter is out of range.

    See Also
    --------
    flow_exponents, map_exponents : Exponents of known equations, to compare with.
    kaplan_yorke_dimension : The dimension that exponents imply.

    Notes
    -----
    A loop of N units and q outputs has N + q exponents. Only the leading ones, those that are not
    negative, are properties of the system from which the data come, and only if the loop
    reproduces its climate. Negative exponents tell how the loop returns to its attractor, and the
    data lie on the attractor. For the Lorenz system (0.906, 0 and -14.57), networks of 300 units
    with a spectral radius of 0.6, a leak rate of 0.8 and ``n_lags=1`` find all three within a
    tenth. With a radius of 0.9, or with lags, the first two are right, and the third is anywhere
    between -1 and -14; for the Henon map, networks of radius 0.6 find -0.4 instead of
    -1.62. So compare with `flow_exponents` or `map_exponents` where the equation is known, and
    across seeds where it is not: an exponent that depends on the seed is the network's.

    20,000 steps are enough for two digits: the first exponent is within 0.02 of its final value
    from 5,000 steps on.

    References
    ----------
    .. [1] J. Pathak, Z. Lu, B. Hunt, M. Girvan and E. Ott, "Using machine learning to replicate
       chaotic attractors and calculate Lyapunov exponents from data", Chaos 27, 2017.

    Examples
    --------
    Polynomials of degree 2 contain the Henon map, whose exponents are 0.419 and -1.623:

    >>> from reservoir import NVARRegressor
    >>> from reservoir.datasets import henon
    >>> from reservoir.stability import loop_exponents
    >>> X = henon(1000)
    >>> model = NVARRegressor(n_lags=1, degree=2).fit(X[:-1], X[1:])
    >>> loop_exponents(model, 2, n_steps=3000, random_state=0).round(1)
    array([ 0.4, -1.6])
    """
    loop = loop_of(model, context)
    lengths = Lengths.read(loop.start.size, n_exponents, n_steps, washout, dt)
    remedy = "A larger alpha, noise in training or a smaller spectral radius often helps."
    return exponents_along(loop.tangent, loop.start, lengths, random_state, remedy=remedy)
