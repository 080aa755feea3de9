"""NARMA: nonlinear autoregressive moving average systems of any order."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, as_plain, check_count

# order -> ((alpha, beta, gamma, delta), saturated), as published
PUBLISHED: dict[int, tuple[tuple[float, float, float, float], bool]] = {
    10: ((0.3, 0.05, 1.5, 0.1), False),
    20: ((0.3, 0.05, 1.5, 0.01), True),
    30: ((0.2, 0.04, 1.5, 0.001), False),
}


def narma(
    n_samples: int,
    *,
    order: int = 10,
    coefficients: ArrayLike | None = None,
    saturated: bool | None = None,
    washout: int = 200,
    random_state: RandomState = None,
) -> tuple[Array, Array]:
    """Generate NARMA; the task is to predict the output of a nonlinear system with random inputs.

    The inputs u(t) are drawn from U(0, 0.5), and the output is::

        y(t+1) = alpha y(t) + beta y(t) [y(t) + ... + y(t-order+1)]
                 + gamma u(t-order+1) u(t) + delta

    with y = 0 and u = 0 before the first step.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    order : int, default=10
        Order of the system.
    coefficients : array-like of shape (4,), default=None
        alpha, beta, gamma and delta. None means the published values: (0.3, 0.05, 1.5, 0.1) for
        order 10 [1]_ [2]_, (0.3, 0.05, 1.5, 0.01) for order 20 [3]_, and (0.2, 0.04, 1.5, 0.001)
        for order 30 [4]_. Other orders use the values of order 10, except that for orders above 10
        beta is 0.5 / order, so that the weight of the whole sum is the same. (This is our choice:
        with beta = 0.05 every series of order 12 or more diverges within some thousand steps.)
    saturated : bool or None, default=None
        Whether tanh is applied to the right-hand side, so that y stays below 1. None means as
        published: order 20 is saturated [3]_, and other orders are not.
    washout : int, samples, default=200
        Number of steps dropped from the start, while the system forgets the initial value y = 0.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the inputs. With None new inputs are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The inputs u(t).
    y : ndarray of shape (n_samples,)
        The outputs y(t+1); the target of row t depends on u(t), u(t-order+1) and the past of y.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the system diverges. Without saturation the
        output is not bounded for every input: at order 10 it diverges within 2000 steps for about
        3 of 200 seeds. The series is not silently truncated or drawn again.

    References
    ----------
    .. [1] Atiya and Parlos (2000), "New results on recurrent network training", IEEE Trans.
       Neural Networks 11, 697-709, equation (86).
    .. [2] Jaeger (2003), "Adaptive nonlinear system identification with echo state networks",
       NIPS 15, 609-616.
    .. [3] Rodan and Tino (2011), "Minimum complexity echo state network", IEEE Trans. Neural
       Networks 22, 131-144, section IV.
    .. [4] Schrauwen, Wardermann, Verstraeten, Steil and Stroobandt (2008), "Improving reservoirs
       using intrinsic plasticity", Neurocomputing 71, 1159-1171.

    Examples
    --------
    >>> from reservoir.datasets import narma
    >>> X, y = narma(1000, order=10, random_state=0)
    >>> X.shape, y.shape
    ((1000, 1), (1000,))
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    order = check_count("order", order, size=1)
    washout = check_count("washout", washout, minimum=0, size=1)
    if saturated not in (None, True, False):
        raise ValueError(f"saturated={saturated!r} must be True, False or None (as published).")
    standard = (0.3, min(0.05, 0.5 / order), 1.5, 0.1)
    published, squash = PUBLISHED.get(order, (standard, False))
    squash = squash if saturated is None else bool(saturated)
    constants = _check_coefficients(published if coefficients is None else coefficients)
    u = as_generator(random_state).uniform(0.0, 0.5, washout + n_samples)
    y = _run(u, order, constants, squash)
    return u[washout:, None].copy(), y[washout:]


def _check_coefficients(coefficients: ArrayLike) -> list[float]:
    constants = as_plain("coefficients", coefficients, float)
    if constants.shape != (4,) or not np.isfinite(constants).all():
        raise ValueError(
            f"coefficients={coefficients!r} must be four finite numbers: alpha, beta, gamma, delta."
        )
    return [float(c) for c in constants]


def _run(u: Array, order: int, constants: list[float], saturated: bool) -> Array:
    """Return the outputs y(1), ..., y(T) of the NARMA system under the inputs u(0), ..., u(T-1).

    `constants` are alpha, beta, gamma and delta; both series have shape (T,).
    """
    alpha, beta, gamma, delta = constants
    lagged = np.concatenate([np.zeros(order - 1), u])[: len(u)]
    drive = (gamma * lagged * u + delta).tolist()
    y = [0.0] * order  # the last `order` values, then the series
    for t, d in enumerate(drive):
        now = y[-1]
        # Summed from scratch at each step: a running sum would accumulate rounding errors.
        value = alpha * now + beta * now * sum(y[-order:]) + d
        if not abs(value) < 1e3:
            raise ValueError(
                f"NARMA of order={order} diverges at step {t} for these inputs (|y| > 1000). Use "
                "saturated=True, another random_state, or a smaller beta in coefficients (beta * "
                "order = 0.5 at order 10)."
            )
        y.append(float(np.tanh(value)) if saturated else value)
    return np.array(y[order:])
