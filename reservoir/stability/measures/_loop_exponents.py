"""Lyapunov exponents of the closed loop of a fitted model."""

from __future__ import annotations

from typing import Any

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir.stability.loop_of import loop_of
from reservoir.stability.measures._qr_method import Lengths, exponents_along


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
