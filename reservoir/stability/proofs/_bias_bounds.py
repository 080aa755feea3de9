"""Bias bounds for the echo state property: theorems for one unit, a heuristic for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.activations.enclosures import EPS
from reservoir.stability._arguments import as_real, read_drive, read_leak, read_matrix, read_range
from reservoir.stability._rounding import row_sums


@dataclass(frozen=True, eq=False)
class BiasBounds:
    """Biases that give a unit the echo state property: ``b < upper`` or ``b > lower``.

    Attributes
    ----------
    upper, lower : arrays of shape (n_units,)
        ``upper = -critical - drive_max`` and ``lower = critical - drive_min``; plus and minus
        infinity for a unit that has the property with every bias.
    guaranteed : bool
        True for one unit (theorems), False for more (a heuristic).
    basis : str
        The theorem, or the name of the heuristic.

    Examples
    --------
    >>> from reservoir.stability import bias_bounds
    >>> bounds = bias_bounds(3.78, -1.0, 1.0)
    >>> bounds.allow(-2.97), bounds.allow(-0.68)
    (True, False)
    """

    upper: Array
    lower: Array
    guaranteed: bool
    basis: str

    @property
    def unrestricted(self) -> bool:
        """Whether every bias of every unit is allowed."""
        return bool(np.isinf(self.upper).all())

    def allow(self, bias: ArrayLike) -> bool:
        """Whether each unit's bias is below its upper or above its lower bound.

        Parameters
        ----------
        bias : float or array of shape (n_units,)

        Returns
        -------
        bool
        """
        b = read_drive("bias", bias, len(self.upper))
        return bool(((b < self.upper) | (b > self.lower)).all())


def critical_bias(gain: ArrayLike, *, leak_rate: ArrayLike = 1.0) -> Any:
    """Return the critical value of bias plus drive for the echo state property of one tanh unit.

    The unit is ``x[t] = (1 - a) x[t-1] + a tanh(gain x[t-1] + c[t])``, where c is bias plus drive.
    All values of c must be above the critical value, or all below its negative.

    Parameters
    ----------
    gain : float or array
        The unit's self-recurrent weight.
    leak_rate : float or array in (0, 1], per step, default=1.0
        The leak rate; it matters only for negative gains.

    Returns
    -------
    float or array
        - gain in [-1, 1]: 0, and no bias is needed;
        - gain g > 1, any leak: ``g q - atanh q``, ``q = sqrt(1 - 1/g)``. Necessary and sufficient;
        - gain -g < -1, no leak: ``g q + atanh q``. Necessary and sufficient for constant drives,
          sufficient for all drives, for which the sign of c may change;
        - gain -g, leak a: with ``m = 2/a - 1``, 0 if ``g < m``; else ``g + atanh(sqrt(1 - m/g))``.
          Sufficient; smaller values are an open question.

    Raises
    ------
    TypeError, ValueError
        If a gain is complex, NaN or infinite, or a leak rate is not in (0, 1].

    References
    ----------
    .. [1] Bay, Lepsoy and Magli (2016), "Stable limit cycles in recurrent neural networks", IEEE
       COMM, 89-92; Bay (2017), prop. 3.4. With the sign corrected, and the cases of negative gain
       and of a leak added: theorems 1 to 4 of the page on stability.

    Examples
    --------
    >>> from reservoir.stability import critical_bias
    >>> round(critical_bias(3.78), 4), round(critical_bias(-3.78), 4), critical_bias(0.9)
    (1.9575, 4.5258, 0.0)
    """
    w, a = as_real("gain", gain), as_real("leak_rate", leak_rate)
    if not np.isfinite(w).all():
        raise ValueError(f"gain={gain!r} contains NaN or infinity.")
    if not ((a > 0) & (a <= 1)).all():
        raise ValueError(f"leak_rate={leak_rate!r} must be in (0, 1]; 1 means no leak.")
    try:
        w, a = np.broadcast_arrays(w, a)
    except ValueError:
        raise ValueError(
            f"gain of shape {w.shape} and leak_rate of shape {a.shape} do not fit: give one number "
            "or arrays of the same shape."
        ) from None
    critical = _critical(w, a)[0]
    return float(critical) if critical.ndim == 0 else critical


def _critical(w: Array, a: Array) -> tuple[Array, Array]:
    """Return the critical bias of gains w and leak rates a, and a bound of its rounding error."""
    g = np.maximum(np.abs(w), 1.0)
    with np.errstate(over="ignore"):
        m = 2 / a - 1
    ratio = np.maximum(g / m, 1.0)
    q, angle = _tangent(g)
    leaky = np.where(np.abs(w) < m, 0.0, g + _tangent(ratio)[1])
    negative = np.where(a == 1.0, g * q + angle, leaky)
    critical = np.where(np.abs(w) <= 1, 0.0, np.where(w > 0, g * q - angle, negative))
    # The two shares are not added first: their sum overflows near the largest float.
    return critical, (8 * EPS * g + 8 * EPS * np.abs(critical)) * (np.abs(w) > 1)


def _tangent(g: Array) -> tuple[Array, Array]:
    """Return q = sqrt(1 - 1/g), the state at which a map of gain g has slope 1, and artanh q."""
    q = np.sqrt((g - 1) / g)
    # Near q = 1 artanh q loses digits: there it follows from 1 - q^2 = 1/g. Elsewhere the error of
    # q hardly matters, because g q - artanh q is stationary in q.
    return q, np.where(q < 0.9, np.arctanh(np.minimum(q, 0.9)), np.log1p(q) + 0.5 * np.log(g))


def bias_bounds(
    W: Any,
    drive_min: ArrayLike,
    drive_max: ArrayLike,
    *,
    criterion: str = "row_norm",
    leak_rate: ArrayLike = 1.0,
    activation: str = "tanh",
) -> BiasBounds:
    """Return bias bounds for the echo state property: theorems for one unit, else a heuristic.

    One unit whose bias is beyond the bounds forgets its initial state under every drive in the
    range, periodic or not; a periodic drive leads to one globally attracting limit cycle of its
    period.

    For more units [1]_ requires the same of each row, with the gain ``||W_i||_2``. That is
    **not sufficient**: with most random matrices of norm 3.78 a network that meets it still has
    several responses. Use `certify` to prove a bias and `stable_bias` to find one.

    Parameters
    ----------
    W : array or sparse array of shape (n_units, n_units), or float
        Recurrent weights; a number is one unit's gain.
    drive_min, drive_max : float or array of shape (n_units,)
        Bounds of the drive p = W_in u, the bias excluded.
    criterion : {"row_norm"}, default="row_norm"
        Value used as the gain if there is more than one unit.
    leak_rate : float or array of shape (n_units,) in (0, 1], per step, default=1.0
        The leak rates.
    activation : {"tanh", "logistic"}, default="tanh"
        The activation of all units.

    Returns
    -------
    BiasBounds

    Raises
    ------
    TypeError, ValueError
        If `W` is not square or contains NaN, a lower bound of the drive exceeds the upper one, or a
        name is not known.

    Notes
    -----
    Logistic units are mapped to tanh units: ``x = (1 + m) / 2`` turns the weights into W/4, the
    bias into b/2 + W 1/4 and the drive into p/2.

    References
    ----------
    .. [1] Bay (2017), propositions 3.4 and 3.5, the first with the sign corrected: as printed, it
       takes the wrong end of a drive whose range is not symmetric about 0.

    Examples
    --------
    A drive in [0, 2] is not symmetric about 0, so the bounds are not symmetric either:

    >>> from reservoir.stability import bias_bounds
    >>> bounds = bias_bounds(3.78, 0.0, 2.0)
    >>> bounds.upper.round(4), bounds.lower.round(4), bounds.guaranteed
    (array([-3.9575]), array([1.9575]), True)

    Two units that meet the heuristic but still have two fixed points:

    >>> import numpy as np
    >>> W = np.full((2, 2), 1.5)
    >>> bias_bounds(W, 0.0, 0.0).allow([-0.7199, -0.7199])
    True
    >>> h = np.array([[1.0, 1.0], [-1.0, -1.0]])
    >>> for _ in range(100):
    ...     h = np.tanh(h @ W.T - 0.7199)
    >>> h.round(5)
    array([[ 0.97615,  0.97615],
           [-0.99882, -0.99882]])
    """
    check_choice("criterion", criterion, ("row_norm",))
    check_choice("activation", activation, ("tanh", "logistic"))
    W = read_matrix(W)
    n_units = W.shape[0]
    low, high = read_range(drive_min, drive_max, n_units)
    leak = read_leak(leak_rate, n_units)
    scale = 1.0 if activation == "tanh" else 0.25
    # The gain of one unit, or the norm of each row instead.
    if n_units == 1:
        gain = scale * float(W.toarray()[0, 0] if sp.issparse(W) else W[0, 0])
        gains = np.array([gain])
    else:
        size = max(abs(W).max(), 1e-300)  # divided out: squares of the entries might overflow
        scaled = W / size
        squares = scaled.multiply(scaled) if sp.issparse(scaled) else scaled * scaled
        with np.errstate(over="ignore"):
            norms = size * np.sqrt(row_sums(squares))
        gains = scale * np.minimum(norms, np.finfo(float).max)
    # The bounds, rounded outwards: a bias that is allowed is beyond the exact bound.
    critical, error = _critical(gains, leak)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest float: no bias is safe
        critical = (
            critical + error + 4 * EPS * (np.maximum(np.abs(low), np.abs(high)) + row_sums(abs(W)))
        )
        if activation == "tanh":
            upper, lower = -critical - high, critical - low
        else:  # as a tanh unit: b/2 + (W 1)/4 + p/2 must exceed the critical value
            shift = 0.5 * row_sums(W)
            upper, lower = -2 * critical - shift - high, 2 * critical - shift - low
    upper, lower = (
        np.where(np.isnan(upper), -np.inf, upper),
        np.where(np.isnan(lower), np.inf, lower),
    )
    # Units that need no bias. `critical` == 0 is no test: just above gain 1 it may round to 0.
    free = (np.abs(gains) <= 1) | ((gains < 0) & (leak < 1) & (np.abs(gains) < 2 / leak - 1))
    upper, lower = np.where(free, np.inf, upper), np.where(free, -np.inf, lower)
    basis = _basis(gains[0], leak, activation) if n_units == 1 else "row norms (heuristic)"
    return BiasBounds(upper, lower, n_units == 1, basis)


def _basis(gain: float, leak: Array, activation: str) -> str:
    """Return the theorem that proves one unit's bound."""
    if abs(gain) <= 1:
        name = "T0"
    elif gain > 1:
        name = "T1"
    else:
        name = "T2" if (leak == 1.0).all() else "T3"
    return f"theorem {name}" + (" by T4" if activation == "logistic" else "")
