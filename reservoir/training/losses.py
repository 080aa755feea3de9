"""Outputs and losses: what stands behind the readout's scores z.

An output function turns scores into predictions, ``y = f(z)``; a loss compares predictions with
targets. Every pair that makes sense is differentiated together, so that the logistic output with
binary cross-entropy and the softmax with cross-entropy stay exact where their factors overflow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_softmax, softmax

from reservoir._typing import Array
from reservoir._validation import check_choice

__all__ = [
    "LOSSES",
    "OUTPUTS",
    "apply_output",
    "check_targets",
    "invert_output",
    "loss_and_slope",
    "loss_of",
    "resolve_loss",
]

#: Names of output functions.
OUTPUTS = ("identity", "tanh", "logistic", "softmax")
#: Names of losses.
LOSSES = ("mse", "mae", "bce", "cross_entropy", "hinge")
_USUAL = {"identity": "mse", "tanh": "mse", "logistic": "bce", "softmax": "cross_entropy"}
_ONLY_WITH = {"bce": ("logistic",), "cross_entropy": ("softmax",), "hinge": ("identity", "tanh")}
_RANGES = {"tanh": (-1.0, 1.0), "logistic": (0.0, 1.0), "softmax": (0.0, 1.0)}


def resolve_loss(output: str, loss: str = "auto") -> str:
    """Return the name of the loss for an output function.

    Parameters
    ----------
    output : {"identity", "tanh", "logistic", "softmax"}
    loss : {"auto", "mse", "mae", "bce", "cross_entropy", "hinge"}, default="auto"
        "auto": squared errors for "identity" and "tanh", binary cross-entropy for "logistic",
        cross-entropy for "softmax".

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a name is unknown, or the two do not fit: cross-entropies need probabilities of their
        kind, the hinge needs a score.

    Examples
    --------
    >>> from reservoir.training.losses import resolve_loss
    >>> resolve_loss("softmax")
    'cross_entropy'
    """
    check_choice("output", output, OUTPUTS)
    check_choice("loss", loss, ("auto", *LOSSES))
    if loss == "auto":
        return _USUAL[output]
    fits = _ONLY_WITH.get(loss, OUTPUTS)
    if output not in fits:
        raise ValueError(
            f"loss={loss!r} goes with output={' or '.join(map(repr, fits))}; got output={output!r}."
        )
    return loss


def apply_output(z: Array, output: str) -> Array:
    """Return predictions for scores.

    Parameters
    ----------
    z : array of shape (..., n_outputs)
    output : {"identity", "tanh", "logistic", "softmax"}

    Returns
    -------
    array of the shape of z
        z itself for "identity".

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import apply_output
    >>> apply_output(np.zeros((1, 2)), "softmax")
    array([[0.5, 0.5]])
    """
    if output == "tanh":
        return np.tanh(z)
    if output == "logistic":
        return expit(z)
    if output == "softmax":
        return softmax(z, axis=-1)
    return z


def invert_output(y: Array, output: str) -> Array:
    """Return scores whose predictions are near y: the least-squares targets.

    Targets are pulled into the open range first: tanh to 1 - 1e-3, the logistic function to 5e-4
    from its ends, probabilities to 1e-3 over the number of outputs. Scores of the softmax are those
    of mean 0.

    Parameters
    ----------
    y : array of shape (..., n_outputs)
    output : {"identity", "tanh", "logistic", "softmax"}

    Returns
    -------
    array of the shape of y

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import invert_output
    >>> invert_output(np.array([0.0, np.tanh(0.5)]), "tanh")
    array([0. , 0.5])
    """
    if output == "tanh":
        return np.arctanh(np.clip(y, -1 + 1e-3, 1 - 1e-3))
    if output == "logistic":
        y = np.clip(y, 5e-4, 1 - 5e-4)
        return np.log(y / (1 - y))
    if output == "softmax":
        scores = np.log(np.maximum(y, 1e-3 / y.shape[-1]))
        return scores - scores.mean(axis=-1, keepdims=True)
    return y


def check_targets(y: Array, output: str, loss: str) -> None:
    """Refuse targets that an output function can never reach, or a loss cannot take.

    Parameters
    ----------
    y : array of shape (n_rows, n_outputs)
    output, loss : str

    Raises
    ------
    ValueError
        With the value, its row, and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import check_targets
    >>> check_targets(np.array([[0.5]]), "tanh", "mse")
    """
    if loss == "hinge":
        if not np.isin(y, (-1, 1)).all():
            raise ValueError(
                f'loss="hinge" needs targets -1 and 1; y holds {y[~np.isin(y, (-1, 1))][0]:g}.'
            )
        return
    low, high = _RANGES.get(output, (-np.inf, np.inf))
    outside = (y < low) | (y > high)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise ValueError(
            f"output={output!r} gives values in [{low:g}, {high:g}]; y holds "
            f"{y[outside][0]:.6g} in row {row}. Scale y (TransformedTargetRegressor), or use "
            'output="identity".'
        )
    if output == "softmax":
        sums = y.sum(axis=1)
        off = np.abs(sums - 1) > 1e-6
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise ValueError(
                f'output="softmax" gives rows that sum to 1; row {row} of y sums to '
                f"{sums[row]:.6g}. Give probabilities, or use another output."
            )


def _mean(per_row: Array, weights: Array | None) -> float:
    if weights is None:
        return float(per_row.mean(dtype=np.float64))
    return float(np.average(per_row.astype(np.float64), weights=weights))


def loss_of(z: Array, y: Array, output: str, loss: str, weights: Array | None = None) -> float:
    """Return the loss of scores: the (weighted) mean over rows.

    A row's loss is the mean over outputs of the squared or absolute error, of the binary
    cross-entropy or of the hinge ``max(0, 1 - y f(z))``; for the cross-entropy it is
    ``-sum y log f(z)``, natural logarithm of the prediction.

    Parameters
    ----------
    z, y : arrays of shape (n_rows, n_outputs)
    output, loss : str
    weights : array of shape (n_rows,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import loss_of
    >>> round(loss_of(np.zeros((1, 2)), np.array([[1.0, 0.0]]), "softmax", "cross_entropy"), 4)
    0.6931
    """
    if loss == "cross_entropy":
        return _mean(-(y * log_softmax(z, axis=-1)).sum(axis=-1), weights)
    if loss == "bce":
        return _mean((np.logaddexp(0, z) - y * z).mean(axis=-1), weights)
    predictions = apply_output(z, output)
    if loss == "hinge":
        return _mean(np.maximum(1 - y * predictions, 0).mean(axis=-1), weights)
    errors = predictions - y
    per_output = np.abs(errors) if loss == "mae" else errors * errors
    return _mean(per_output.mean(axis=-1), weights)


def loss_and_slope(
    z: Array, y: Array, output: str, loss: str, weights: Array | None = None
) -> tuple[float, Array]:
    """Return the loss of scores, and its gradient there; parameters as in `loss_of`.

    Parameters
    ----------
    z, y : arrays of shape (n_rows, n_outputs)
    output, loss : str
    weights : array of shape (n_rows,), optional

    Returns
    -------
    value : float
    slope : array of the shape of z
        The gradient of the value. Where a loss has a corner (absolute error 0, hinge at 1), 0.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import loss_and_slope
    >>> loss_and_slope(np.array([[3.0]]), np.array([[1.0]]), "identity", "mse")
    (4.0, array([[4.]]))
    """
    per_row = _per_row(len(z), weights, z.dtype)
    if loss == "cross_entropy":  # folded: the Jacobian of the softmax cancels
        total = y.sum(axis=-1, keepdims=True)
        return loss_of(z, y, output, loss, weights), (softmax(z, axis=-1) * total - y) * per_row
    per_row = per_row / z.dtype.type(z.shape[-1])
    if loss == "bce":
        return loss_of(z, y, output, loss, weights), (expit(z) - y) * per_row
    predictions = apply_output(z, output)
    if loss == "hinge":
        margins = 1 - y * predictions
        value = _mean(np.maximum(margins, 0).mean(axis=-1), weights)
        slopes = np.where(margins > 0, -y, 0).astype(z.dtype)
    else:
        errors = predictions - y
        if loss == "mae":
            value = _mean(np.abs(errors).mean(axis=-1), weights)
            slopes = np.sign(errors)
        else:
            value = _mean((errors * errors).mean(axis=-1), weights)
            slopes = errors * 2
    slopes *= per_row
    return value, _THROUGH[output](slopes, predictions)


def _per_row(n_rows: int, weights: Array | None, dtype: np.dtype) -> Array:
    """Return each row's share of the mean, as a column."""
    if weights is None:
        return np.full((1, 1), 1 / n_rows, dtype)
    return (weights / weights.sum(dtype=np.float64))[:, None].astype(dtype)


def _through_tanh(slopes: Array, y: Array) -> Array:
    return slopes * (1 - y * y)


def _through_logistic(slopes: Array, y: Array) -> Array:
    return slopes * (y * (1 - y))


def _through_softmax(slopes: Array, y: Array) -> Array:
    return y * (slopes - (slopes * y).sum(axis=-1, keepdims=True))


_THROUGH: dict[str, Callable[[Array, Array], Array]] = {
    "identity": lambda slopes, _: slopes,
    "tanh": _through_tanh,
    "logistic": _through_logistic,
    "softmax": _through_softmax,
}
