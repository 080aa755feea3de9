"""The network as the proofs read it: weights, drive, rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir.activations import Activation, Enclosure, get_activation
from reservoir.activations.enclosures import EPS
from reservoir.dynamics import Reservoir
from reservoir.dynamics.reservoir import as_leak

TINY = 1e-300  # covers what underflow takes from a sum


class UnboundedActivationError(ValueError):
    """The activation has no bounds on intervals, without which nothing can be certified."""


@dataclass(frozen=True, eq=False)
class Network:
    """z = W x + p + b with p in [drive_min, drive_max], in double precision.

    Attributes
    ----------
    W, A : matrices of shape (n_units, n_units)
        The weights, sparse or dense as given, and their absolute values.
    drive_min, drive_max, bias, leak : arrays of shape (n_units,)
    enclosure : Enclosure
    """

    W: Matrix
    A: Matrix
    drive_min: Array
    drive_max: Array
    bias: Array
    leak: Array
    enclosure: Enclosure

    @property
    def n_units(self) -> int:
        """Number of units N."""
        return self.W.shape[0]

    @property
    def row_sizes(self) -> Array:
        """Return the number of terms in each row's sum."""
        if sp.issparse(self.W):
            return np.diff(self.W.indptr).astype(float)
        return np.full(self.n_units, float(self.n_units))

    def rounding(self, drive_size: Array) -> Array:
        """Return what rounding may do to z: any order of summation, centre and radius apart.

        The sums have n_i terms and a few more for the centre, the radius and the drive; each
        contributes a relative 2^-53 of at most the sum of the moduli, so that the factor 2^-52
        leaves a margin of two.
        """
        reach = max(abs(self.enclosure.low), abs(self.enclosure.high), 1.0)
        sizes = reach * row_sums(self.A) + drive_size + np.abs(self.bias)
        return (self.row_sizes + 6) * EPS * sizes + TINY

    def biased(self, bias: Array) -> Network:
        """Return the network with another bias."""
        return Network(
            self.W, self.A, self.drive_min, self.drive_max, bias, self.leak, self.enclosure
        )


def row_sums(A: Matrix) -> Array:
    """Return the sums over each row of a sparse or dense matrix."""
    with np.errstate(over="ignore"):
        return np.asarray(A.sum(axis=1), dtype=float).ravel()


def as_real(name: str, value: Any) -> Array:
    """Return real numbers as an array of doubles; text and complex numbers are refused."""
    try:
        array = np.asarray(value)
    except ValueError:  # nested lists of different lengths
        array = np.asarray(value, dtype=object)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be real: a number or an array of numbers; got {type(value).__name__} of "
            f"dtype {array.dtype}."
        )
    return array.astype(float)


def as_pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return the two items of (low, high)."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (low, high); got {value!r}.") from None
    return low, high


def as_reservoir(model: Any) -> Reservoir:
    """Return the reservoir itself, or that of a fitted estimator."""
    reservoir = getattr(model, "reservoir_", model)
    if not isinstance(reservoir, Reservoir):
        if hasattr(model, "fit"):
            raise TypeError(
                f"{type(model).__name__} holds no reservoir_: call fit first. Of a Pipeline pass "
                "the step that holds it, such as pipe[-1]."
            )
        raise TypeError(
            "reservoir must be a reservoir.dynamics.Reservoir, or a fitted estimator that holds "
            f"one as reservoir_; got {type(model).__name__}."
        )
    return reservoir


def enclosure_of(activation: str | Activation) -> Enclosure:
    """Return the activation's enclosure, or refuse it by name."""
    found = get_activation(activation)
    if found.enclosure is None:
        if found.bounded:
            raise UnboundedActivationError(
                f"activation={found.name!r} has no enclosure: a certificate needs bounds of f and "
                "f' over intervals. Give Activation(..., enclosure=Enclosure(low, high, values, "
                "slopes)) from reservoir.activations."
            )
        raise UnboundedActivationError(
            f"activation={found.name!r} is unbounded: its states lie in no box, and a certificate "
            "needs one. Use 'tanh' or 'logistic', or a bounded Activation with an enclosure. "
            "echo_state_conditions(W), without a box, holds for every activation of slope at most "
            "1."
        )
    return found.enclosure


def read_network(model: Any, drive_min: ArrayLike, drive_max: ArrayLike) -> Network:
    """Check a reservoir and the range of its drive, and return them in double precision."""
    reservoir = as_reservoir(model)
    n_units = reservoir.n_units
    low, high = read_range(drive_min, drive_max, n_units)
    W = as_double(reservoir.W)
    return Network(
        W,
        abs(W),
        low,
        high,
        reservoir.bias.astype(float),
        np.broadcast_to(np.asarray(reservoir.leak_rate, dtype=float), (n_units,)),
        enclosure_of(reservoir.activation),
    )


def as_double(W: Matrix) -> Matrix:
    """Return W in double precision; dense where more than half of it is stored."""
    if sp.issparse(W):
        W = sp.csr_array(W, dtype=float)
        return W.toarray() if W.nnz > W.shape[0] ** 2 / 2 else W
    return np.asarray(W, dtype=float)


def read_leak(leak_rate: ArrayLike, n_units: int) -> Array:
    """Return the leak rates as an array of shape (n_units,)."""
    leak = as_leak(as_real("leak_rate", leak_rate), n_units, np.float64)
    return np.broadcast_to(np.asarray(leak), (n_units,))


def read_matrix(W: Any) -> Matrix:
    """Return a square W in double precision; a number is a network of one unit."""
    if not sp.issparse(W):
        W = np.asarray(W)
        if W.ndim == 0:
            W = W.reshape(1, 1)
    if W.dtype.kind not in "biuf":
        raise TypeError(f"W must be a real matrix; got dtype {W.dtype}.")
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError(f"W must be square with at least one unit; got shape {W.shape}.")
    if sp.issparse(W):
        W = sp.csr_array(W, dtype=float)
        W.sum_duplicates()
    values = W.data if sp.issparse(W) else W
    if not np.isfinite(values).all():
        raise ValueError("W holds NaN or infinity.")
    return as_double(W)


def read_range(drive_min: ArrayLike, drive_max: ArrayLike, n_units: int) -> tuple[Array, Array]:
    """Return the bounds of the drive as arrays of shape (n_units,)."""
    low = read_drive("drive_min", drive_min, n_units)
    high = read_drive("drive_max", drive_max, n_units)
    if (low > high).any():
        unit = int(np.argmax(low > high))
        raise ValueError(
            f"drive_min={low[unit]:g} exceeds drive_max={high[unit]:g} (unit {unit}): the drive's "
            "lower bound must not exceed its upper bound. Swap them."
        )
    return low, high


def read_drive(name: str, value: ArrayLike, n_units: int) -> Array:
    """Return one bound of the drive as an array of shape (n_units,)."""
    bound = as_real(name, value)
    if bound.shape not in ((), (n_units,)):
        raise ValueError(
            f"{name} must be a number or have shape (n_units={n_units},); got {bound.shape}: one "
            "entry per unit, not per input (drive_range makes bounds of the drive from those of u)."
        )
    if not np.isfinite(bound).all():
        raise ValueError(f"{name} holds NaN or infinity; it must be finite.")
    return np.broadcast_to(bound, (n_units,)).copy()


def drive_range(
    model: Any,
    low: ArrayLike,
    high: ArrayLike,
    *,
    feedback_low: ArrayLike | None = None,
    feedback_high: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Bounds of the drive p = W_in u [+ W_fb y] for inputs in a box.

    Parameters
    ----------
    model : Reservoir or fitted estimator
    low, high : float or array of shape (n_features,)
        Bounds of each input.
    feedback_low, feedback_high : float or array of shape (n_outputs,), optional
        Bounds of each output that is fed back; required if the reservoir has feedback weights.

    Returns
    -------
    drive_min, drive_max : arrays of shape (n_units,)
        Rounded outwards.

    Raises
    ------
    ValueError
        If bounds are missing, NaN, infinite, crossed or of a wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import drive_range
    >>> res = Reservoir(np.zeros((2, 2)), [[1.0], [-2.0]], np.zeros(2))
    >>> [bound.round(6) for bound in drive_range(res, 0.5, 1.0)]
    [array([ 0.5, -2. ]), array([ 1., -1.])]
    """
    reservoir = as_reservoir(model)
    least, largest = _bounds("low", "high", reservoir.W_in, low, high)
    if (reservoir.W_fb is None) != (feedback_low is None and feedback_high is None):
        raise ValueError(
            "The reservoir has feedback weights: give feedback_low and feedback_high."
            if reservoir.W_fb is not None
            else "feedback bounds were given, but the reservoir has no feedback weights W_fb."
        )
    if reservoir.W_fb is not None:
        if feedback_low is None or feedback_high is None:
            raise ValueError("Give both feedback_low and feedback_high.")
        more = _bounds("feedback_low", "feedback_high", reservoir.W_fb, feedback_low, feedback_high)
        least, largest = least + more[0], largest + more[1]
        margin = EPS * (np.abs(least) + np.abs(largest)) + TINY
        least, largest = least - margin, largest + margin
    if not (np.isfinite(least).all() and np.isfinite(largest).all()):
        raise ValueError("The drive overflows: scale the input weights or the inputs down.")
    return least, largest


def drive_terms(reservoir: Reservoir, inputs: Array, outputs: Array | None) -> Array:
    """Return bounds of ``|W_in| |u| + |W_fb| |y|``, given series or ranges of u and y."""
    with np.errstate(over="ignore"):
        terms = np.abs(inputs) @ abs(as_double(reservoir.W_in)).T
        if outputs is not None:
            terms = terms + np.abs(outputs) @ abs(as_double(reservoir.W_fb)).T
        return np.asarray(terms).max(axis=0)


def shared_inputs(
    reservoir: Reservoir, input_range: Any, output_range: Any
) -> tuple[Array, Array | None, tuple[Array, Array]]:
    """Return the checked ranges, each (2, n_columns), and the drive's centre and generators.

    The units share the generators: the drive is the centre plus their combinations.
    """
    if input_range is None or (output_range is None) != (reservoir.W_fb is None):
        raise ValueError(
            "input_range is needed, and output_range if and only if the reservoir has feedback "
            "weights."
        )
    checked: list[Array] = []
    given = [("input_range", input_range, reservoir.W_in)]
    if reservoir.W_fb is not None:
        given.append(("output_range", output_range, reservoir.W_fb))
    centre, generators = np.zeros(reservoir.n_units), []
    for name, ends, M in given:
        low, high = as_pair(name, ends)
        M = as_double(M)
        M = M.toarray() if sp.issparse(M) else M
        below, above = _ends(f"{name}[0]", f"{name}[1]", M.shape[1], low, high)
        checked.append(np.array([below, above]))
        # the half widths rounded up: they must reach both ends from the rounded middle
        half = 0.5 * above - 0.5 * below + 2 * EPS * (np.abs(below) + np.abs(above))
        centre = centre + M @ (0.5 * below + 0.5 * above)
        # the products' rounding, as one more share of every generator
        generators.append(M * (half * (1 + 8 * EPS)))
        generators.append(
            np.diag(EPS * (M.shape[1] + 8) * (abs(M) @ np.abs(checked[-1]).max(axis=0)))
        )
    outputs = checked[1] if len(checked) > 1 else None
    return checked[0], outputs, (centre, np.hstack(generators))


def _bounds(of_low: str, of_high: str, M: Matrix, low: Any, high: Any) -> tuple[Array, Array]:
    """Return bounds of M u over a box, rounded outwards."""
    M = as_double(M)
    return image_of_box(M, *_ends(of_low, of_high, M.shape[1], low, high))


def _ends(of_low: str, of_high: str, n_columns: int, low: Any, high: Any) -> tuple[Array, Array]:
    """Return the checked ends of a box."""
    ends = []
    for name, value in ((of_low, low), (of_high, high)):
        end = as_real(name, value)
        if end.shape not in ((), (n_columns,)) or not np.isfinite(end).all():
            raise ValueError(
                f"{name}={value!r} must be finite: a number or an array of shape ({n_columns},)."
            )
        ends.append(np.broadcast_to(end, (n_columns,)))
    below, above = ends
    if (below > above).any():
        raise ValueError(f"{of_low}={low!r} exceeds {of_high}={high!r}. Swap them.")
    return below, above


def image_of_box(M: Matrix, low: Array, high: Array) -> tuple[Array, Array]:
    """Return bounds of M v for low <= v <= high, rounded outwards."""
    with np.errstate(over="ignore", invalid="ignore"):
        positive, negative = (M + abs(M)) / 2, (M - abs(M)) / 2  # an end of each entry, no middle
        size = abs(M) @ np.maximum(np.abs(low), np.abs(high))
        error = (2 * M.shape[1] + 6) * EPS * size + TINY
        least = positive @ low + negative @ high - error
        return least, positive @ high + negative @ low + error
