"""The known conditions for the echo state property, on the weights alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import ArrayLike
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.scaling import spectral_radius
from reservoir.stability._arguments import enclosure_of, read_leak, read_matrix
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._turning_scaling import scaled_radius, turning_scaling
from reservoir.stability.proofs._unit_scalings import (
    good_scaling,
    leading_singular,
    searched_scaling,
)
from reservoir.stability.proofs._weights_alone import weights_proof

# Sufficient conditions and their sources, the most demanding first.
_SUFFICIENT = (
    ("spectral_norm", "Jaeger (2001), prop. 3"),
    ("abs_radius", "theorem C2 with slopes of 1"),
    ("diagonal_schur", "Yildiz et al. (2012), thm. 4.1"),
    ("numerical_radius", "theorem C7 with slopes from 0 to 1"),
)


@dataclass(frozen=True)
class EchoStateConditions:
    """Conditions on W and the leak rate; a sufficient one holds if its number is below 1.

    The last two are weaker than the other sufficient conditions, and hold for more networks.

    Attributes
    ----------
    spectral_radius : float
        Spectral radius of (1 - a) I + a W, the linearisation at the origin.
    spectral_norm : float
        Largest singular value of W [1]_.
    abs_radius : float
        Spectral radius of ``|W|``.
    diagonal_schur : float
        Least ``||P W P^-1||_2`` over diagonal P that a search has found; if it is below 1, W is
        diagonally Schur stable [2]_. It never exceeds `spectral_norm` or `abs_radius`.
    numerical_radius : float
        Numerical radius of ``P W P^-1``, the largest ``|x* P W P^-1 x|`` over complex vectors x of
        norm 1, with a diagonal P that makes it small [3]_. With a leak it is the largest
        ``Re x* P W F P^-1 x``, where F, the diagonal of ``a / (exp(i t) - 1 + a)``, is the
        frequency response of the leaky means at any frequency t. It never exceeds `diagonal_schur`:
        it uses the signs of W, and is about a fifth lower for random matrices. It is computed to an
        accuracy of about 1e-4, mostly better.
    sufficient : bool
        Whether the echo state property is proved, for every input and bias: one of the last four
        numbers is below 1, rounding included. `certify` then proves it as well.
    necessary : bool
        Whether `spectral_radius` is at most 1. Without bias and input a reservoir that fails this
        condition lacks the echo state property [1]_; with a bias, or with inputs that keep away
        from zero, it may have it. A value of exactly 1 is inconclusive: one tanh unit of gain 1 has
        the property.

    References
    ----------
    .. [1] Jaeger (2001), GMD Report 148, proposition 3; with leak: Jaeger et al. (2007), Neural
       Networks 20, proposition 2.
    .. [2] Yildiz, Jaeger and Kiebel (2012), Neural Networks 35, theorem 4.1; with leak: definition
       2.1 there, and theorem C3 of the page on stability.
    .. [3] Ando (1973), Acta Scientiarum Mathematicarum 34, 11-15; for networks theorem C7 of the
       page on stability.

    Examples
    --------
    >>> from reservoir.stability import echo_state_conditions
    >>> echo_state_conditions([[0.5, 0.0], [0.0, -0.8]]).margins["spectral_norm"]
    0.1999...
    """

    spectral_radius: float
    spectral_norm: float
    abs_radius: float
    diagonal_schur: float
    numerical_radius: float
    sufficient: bool
    necessary: bool

    @property
    def margins(self) -> dict[str, float]:
        """Difference between 1 and each number; negative if its condition fails."""
        names = ("spectral_radius", *(name for name, _ in _SUFFICIENT))
        return {name: 1.0 - getattr(self, name) for name in names}

    def __str__(self) -> str:
        rows = [("necessary", "spectral_radius", "Jaeger (2001), prop. 3")]
        rows += [("sufficient", name, source) for name, source in _SUFFICIENT]
        return "\n".join(
            f"{kind:<11}{name:<17}{getattr(self, name):>9.4f} "
            f"{_compared(kind, getattr(self, name))} 1".ljust(43)
            + f"margin {self.margins[name]:>8.4f}  {source}"
            for kind, name, source in rows
        )


def _compared(kind: str, value: float) -> str:
    """Return the sign of comparison with 1: a necessary condition allows a radius of exactly 1."""
    if kind == "necessary":
        return "<=" if value <= 1 else ">"
    return "<" if value < 1 else ">="


def echo_state_conditions(W: Any, leak_rate: ArrayLike = 1.0) -> EchoStateConditions:
    """Check necessary and sufficient conditions for the echo state property of an open reservoir.

    They depend on the weights alone. `certify` also uses the bias and the range of the inputs, and
    proves more.

    Parameters
    ----------
    W : array or sparse array of shape (n_units, n_units)
        Recurrent weights of units whose activation has slopes between 0 and 1, such as tanh. For a
        `Reservoir` or fitted estimator pass its W.
    leak_rate : float or array of shape (n_units,) in (0, 1], per step, default=1.0
        The leak rates.

    Returns
    -------
    EchoStateConditions
        Print it for a table with margins and references.

    Raises
    ------
    TypeError, ValueError
        If W is not square, complex, NaN or infinite, or a leak rate is not in (0, 1]; if a spectral
        radius cannot be computed accurately (`reservoir.scaling.SpectralRadiusError`).

    Notes
    -----
    The first three sufficient conditions do not depend on the leak: if r is the condition's number,
    differences decay at every rate above ``1 - a_min (1 - r)``, also with unequal leaks. The fourth
    condition at leak 1 implies it at every equal leak, and is weaker the smaller the leak; with
    unequal leaks it is computed, and proved, for these leaks.

    The proofs are bounds of Collatz and Wielandt, and Cholesky factorisations with Rump's (2006)
    correction. Beyond 3000 units ``||B||^2 <= rho(|B'B|)`` replaces the latter. A numerical
    radius is proved up to 1000 units, if it is below 1 by some 1e-3; with leak rates of .01 and
    less by up to .02. If a number is below 1 but nothing is proved, `sufficient` is False.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.stability import echo_state_conditions
    >>> found = echo_state_conditions(np.array([[0.5, 0.9], [-0.9, 0.2]]))
    >>> found.sufficient
    True
    >>> print(found)
    necessary  spectral_radius     0.9539 <= 1 margin   0.0461  Jaeger (2001), prop. 3
    sufficient spectral_norm       1.1157 >= 1 margin  -0.1157  Jaeger (2001), prop. 3
    sufficient abs_radius          1.2624 >= 1 margin  -0.2624  theorem C2 with slopes of 1
    sufficient diagonal_schur      1.1157 >= 1 margin  -0.1157  Yildiz et al. (2012), thm. 4.1
    sufficient numerical_radius    0.9675 < 1  margin   0.0325  theorem C7 with slopes from 0 to 1
    """
    if hasattr(W, "fit"):
        as_reservoir(W)  # raises for an estimator without a reservoir, such as an unfitted one
    if hasattr(W, "reservoir_") or hasattr(W, "W_in"):
        raise TypeError(
            f"W must be a matrix; got {type(W).__name__}. Pass W and leak_rate of the reservoir "
            "(the attribute reservoir_ of an estimator)."
        )
    # The numbers.
    W = read_matrix(W)
    leak = read_leak(leak_rate, W.shape[0])
    A = abs(W)
    identity = sp.eye_array(W.shape[0], format="csr")
    radius = spectral_radius(scaled_rows(leak, sp.csr_array(W)) + scaled_rows(1 - leak, identity))
    norm, moduli = float(leading_singular(W)[1][0]), spectral_radius(A)
    _, schur = searched_scaling(W, A, norm)
    schur = min(schur, norm, moduli)
    turning = scaled_radius(W, leak, turning_scaling(W, leak, good_scaling(W)))
    if (leak == 1).all():
        turning = max(turning, radius)
    # A proof with rounding included: a number computed as just below 1 is not enough.
    zeros = np.zeros(W.shape[0])
    network = IntervalNetwork(W, A, zeros, zeros, zeros, leak, enclosure_of("tanh"))
    proved = weights_proof(network, 1.0) is not None
    return EchoStateConditions(
        radius, norm, moduli, schur, min(turning, schur), proved, bool(radius <= 1)
    )
