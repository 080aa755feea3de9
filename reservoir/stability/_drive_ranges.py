"""The drive W_in u + W_fb y of inputs u and fed-back outputs y: bounds, series, terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir._validation import dense
from reservoir.activations.enclosures import EPS
from reservoir.dynamics import Reservoir
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.dynamics.open_loop import as_feedback, as_series
from reservoir.stability._arguments import as_double, as_pair, read_ends
from reservoir.stability._rounding import TINY, image_of_box


def drive_range(
    model: Any,
    low: ArrayLike,
    high: ArrayLike,
    *,
    feedback_low: ArrayLike | None = None,
    feedback_high: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Compute bounds of the drive p = W_in u [+ W_fb y] of an open reservoir for inputs in a box.

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
        Bounds of each unit's drive, rounded outwards.

    Raises
    ------
    ValueError
        If bounds are missing, NaN or infinite, have a wrong shape, or a lower bound exceeds the
        upper.

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
    # The part that the inputs drive.
    least, largest = _bounds("low", "high", reservoir.W_in, low, high)
    # The part from outputs fed back; the sum of the two is rounded outwards once more.
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


def inputs_of_drive(reservoir: Reservoir, low: Array, high: Array) -> tuple[Array, Array]:
    """Return a range of inputs, and of outputs fed back, whose drive has about these bounds.

    This inverts `drive_range` if the bounds were computed by it; otherwise the drive of the
    returned range is nearest to the bounds in the least-squares sense.
    """
    matrices = [reservoir.W_in] if reservoir.W_fb is None else [reservoir.W_in, reservoir.W_fb]
    M = np.hstack([dense(M, "W_in") if sp.issparse(M) else as_double(M) for M in matrices])
    middle = np.linalg.lstsq(M, 0.5 * low + 0.5 * high, rcond=None)[0]
    half = np.linalg.lstsq(abs(M), 0.5 * high - 0.5 * low, rcond=None)[0]
    half = np.maximum(half, 0.0)
    return middle - half, middle + half


def _bounds(of_low: str, of_high: str, M: Matrix, low: Any, high: Any) -> tuple[Array, Array]:
    """Check the box low <= u <= high, and return bounds of M u over it, rounded outwards."""
    M = as_double(M)
    return image_of_box(M, *read_ends(of_low, of_high, M.shape[1], low, high))


def drive_terms(reservoir: Reservoir, inputs: Array, outputs: Array | None) -> Array:
    """Return the largest ``|W_in| |u| + |W_fb| |y|`` of each unit over the rows of u and y.

    The drive's rounding error is proportional to it: terms may be large where their sum is small.
    """
    with np.errstate(over="ignore"):
        terms = np.abs(inputs) @ abs(as_double(reservoir.W_in)).T
        if outputs is not None:
            terms = terms + np.abs(outputs) @ abs(as_double(reservoir.W_fb)).T
        return np.asarray(terms).max(axis=0)


def shared_inputs(
    reservoir: Reservoir, input_range: Any, output_range: Any
) -> tuple[Array, Array | None, tuple[Array, Array]]:
    """Check the ranges of inputs and outputs, and return them with the set of resulting drives.

    The ranges are (2, n_columns), the second None without feedback weights. Every drive is ``centre
    + generators @ s`` with all ``|s_k| <= 1`` (a zonotope), which preserves the dependence between
    units that receive the same inputs: (n_units,) and (n_units, n_generators).
    """
    if input_range is None or (output_range is None) != (reservoir.W_fb is None):
        raise ValueError(
            "input_range is required, and output_range if and only if the reservoir has feedback "
            "weights."
        )
    checked: list[Array] = []
    given = [("input_range", input_range, reservoir.W_in)]
    if reservoir.W_fb is not None:
        given.append(("output_range", output_range, reservoir.W_fb))
    centre, generators = np.zeros(reservoir.n_units), []
    for name, ends, M in given:
        low, high = as_pair(name, ends)
        M = dense(as_double(M), name)
        below, above = read_ends(f"{name}[0]", f"{name}[1]", M.shape[1], low, high)
        checked.append(np.array([below, above]))
        # The half width is rounded up, so that the range about the rounded midpoint includes both
        # bounds.
        half = 0.5 * above - 0.5 * below + 2 * EPS * (np.abs(below) + np.abs(above))
        centre = centre + M @ (0.5 * below + 0.5 * above)
        # One generator for each column, and one for each unit to cover the products' rounding.
        generators.append(M * (half * (1 + 8 * EPS)))
        generators.append(
            np.diag(EPS * (M.shape[1] + 8) * (abs(M) @ np.abs(checked[-1]).max(axis=0)))
        )
    outputs = checked[1] if len(checked) > 1 else None
    return checked[0], outputs, (centre, np.hstack(generators))


def periodic_drive(reservoir: Any, inputs: ArrayLike, feedback: ArrayLike | None) -> Array:
    """Return the drive of each step of one period, of shape (period, n_units), without the bias."""
    X = as_series("inputs", inputs, reservoir.n_features, np.float64)
    if len(X) == 0:
        raise ValueError("inputs has no rows; one period needs at least 1.")
    given = as_feedback(reservoir, feedback, len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        drives = np.asarray((reservoir.W_in.astype(float) @ X.T).T)
        if given is not None:
            drives = drives + given.astype(float) @ reservoir.W_fb.T.astype(float)
    if not np.isfinite(drives).all():
        raise ValueError("The drive W_in u overflows: scale the input weights or the inputs down.")
    return drives
