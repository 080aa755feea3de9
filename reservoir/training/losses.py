"""Output functions and losses, which turn the readout's scores z into a scalar.

An output function maps scores to predictions, ``p = f(z)``; a loss compares predictions with
targets. The tables `OUTPUTS` and `LOSSES` list them by name. A loss that is defined in terms of the
scores, such as the cross-entropy of a softmax, stays exact where the output function is saturated;
the gradient of any other loss is multiplied by the output function's derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, softmax

from reservoir._typing import Array
from reservoir._validation import check_choice

__all__ = [
    "LOSSES",
    "OUTPUTS",
    "Loss",
    "Output",
    "apply_output",
    "check_targets",
    "curvature_product",
    "invert_output",
    "loss_and_slope",
    "loss_of",
    "resolve_loss",
]


class Output(NamedTuple):
    """An output function f, which maps scores to predictions.

    Attributes
    ----------
    function : callable, ``f(z)``
        Function that returns the predictions for scores z of shape (n_rows, n_outputs).
    inverse : callable, ``inverse(p)``
        Function that returns the scores for predictions p, which are first clipped to the inside of
        the range.
    backward : callable, ``backward(d, p)``
        Function that returns the gradient with respect to the scores, given the gradient d with
        respect to the predictions p. This is the product of d with the Jacobian of f; since the
        Jacobian is symmetric, the function also computes directional derivatives.
    loss : str
        The default loss for this output.
    low, high : float
        Bounds of the range of f.

    Examples
    --------
    >>> from reservoir.training.losses import OUTPUTS
    >>> OUTPUTS["logistic"].loss, OUTPUTS["logistic"].low, OUTPUTS["logistic"].high
    ('bce', 0.0, 1.0)
    """

    function: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    backward: Callable[[Array, Array], Array]
    loss: str = "mse"
    low: float = -np.inf
    high: float = np.inf


def _invert_logistic(p: Array) -> Array:
    p = np.clip(p, 5e-4, 1 - 5e-4)
    return np.log(p / (1 - p))


def _invert_softmax(p: Array) -> Array:
    scores = np.log(np.maximum(p, 1e-3 / p.shape[-1]))
    return scores - scores.mean(axis=-1, keepdims=True)


#: Output functions by name, each an `Output`.
OUTPUTS: dict[str, Output] = {
    "identity": Output(lambda z: z, lambda p: p, lambda d, _: d),
    "tanh": Output(
        np.tanh,
        lambda p: np.arctanh(np.clip(p, -1 + 1e-3, 1 - 1e-3)),
        lambda d, p: d * (1 - p * p),
        low=-1.0,
        high=1.0,
    ),
    "logistic": Output(expit, _invert_logistic, lambda d, p: d * (p * (1 - p)), "bce", 0.0, 1.0),
    "softmax": Output(
        lambda z: softmax(z, axis=-1),
        _invert_softmax,
        lambda d, p: p * (d - (d * p).sum(axis=-1, keepdims=True)),
        "cross_entropy",
        0.0,
        1.0,
    ),
}


class Loss(NamedTuple):
    """A loss, defined by the contribution of each row.

    Attributes
    ----------
    value : callable, ``value(p, y)``
        Function that returns the loss of each output of each row, (n_rows, n_outputs), given
        predictions p and targets y.
    slope : callable, ``slope(p, y)``
        Function that returns the derivative of the loss with respect to p, of the same shape; 0 at
        corners.
    outputs : tuple of str or None
        Names of the output functions that the loss can be used with. None: all of them.
    of_scores : bool
        Whether `value` and `slope` receive scores instead of predictions, and include the output
        function themselves.
    summed : bool
        Whether a row's loss is the sum over its outputs, instead of their mean.
    targets : tuple of float or None
        The only values allowed as targets. None: any value in the range of the output function.
    curvature : callable or None, ``curvature(p, y, v)``
        Function that returns the product of the second derivative with a direction v, both of the
        shape of p, for Hessian-free training. None: the second derivative is unknown, or 0 wherever
        it exists.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import LOSSES
    >>> LOSSES["mae"].value(np.array([[3.0]]), np.array([[1.0]]))
    array([[2.]])
    """

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    outputs: tuple[str, ...] | None = None
    of_scores: bool = False
    summed: bool = False
    targets: tuple[float, ...] | None = None
    curvature: Callable[[Array, Array, Array], Array] | None = None


def _cross_entropy(z: Array, y: Array) -> Array:
    return -(y * log_softmax(z, axis=-1))


def _slope_of_cross_entropy(z: Array, y: Array) -> Array:
    return softmax(z, axis=-1) * y.sum(axis=-1, keepdims=True) - y


def _curvature_of_cross_entropy(z: Array, y: Array, v: Array) -> Array:
    p = softmax(z, axis=-1)
    return (p * v - p * (p * v).sum(axis=-1, keepdims=True)) * y.sum(axis=-1, keepdims=True)


def _curvature_of_bce(z: Array, _: Array, v: Array) -> Array:
    p = expit(z)
    return p * (1 - p) * v


def _hinge(p: Array, y: Array) -> Array:
    return np.maximum(1 - y * p, 0)


def _slope_of_hinge(p: Array, y: Array) -> Array:
    return np.where(1 - y * p > 0, -y, 0).astype(p.dtype)


#: Losses by name, each a `Loss`.
LOSSES: dict[str, Loss] = {
    "mse": Loss(
        lambda p, y: np.square(p - y),
        lambda p, y: (p - y) * 2,
        curvature=lambda p, y, v: v * 2,
    ),
    "mae": Loss(lambda p, y: np.abs(p - y), lambda p, y: np.sign(p - y)),
    "bce": Loss(
        lambda z, y: np.logaddexp(0, z) - y * z,
        lambda z, y: expit(z) - y,
        ("logistic",),
        True,
        curvature=_curvature_of_bce,
    ),
    "cross_entropy": Loss(
        _cross_entropy,
        _slope_of_cross_entropy,
        ("softmax",),
        True,
        True,
        curvature=_curvature_of_cross_entropy,
    ),
    "hinge": Loss(_hinge, _slope_of_hinge, ("identity", "tanh"), targets=(-1, 1)),
}


def resolve_loss(output: str, loss: str = "auto") -> str:
    """Return the name of the loss to use with an output function.

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
        If a name is unknown, or if the loss cannot be used with the output: binary cross-entropy
        needs "logistic", cross-entropy needs "softmax", and the hinge loss needs "identity" or
        "tanh".

    Examples
    --------
    >>> from reservoir.training.losses import resolve_loss
    >>> resolve_loss("softmax")
    'cross_entropy'
    """
    check_choice("output", output, OUTPUTS)
    check_choice("loss", loss, ("auto", *LOSSES))
    if loss == "auto":
        return OUTPUTS[output].loss
    fits = LOSSES[loss].outputs or tuple(OUTPUTS)
    if output not in fits:
        raise ValueError(
            f"loss={loss!r} needs output={' or '.join(map(repr, fits))}; got output={output!r}."
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
    return OUTPUTS[output].function(z)


def invert_output(y: Array, output: str) -> Array:
    """Return scores whose predictions are close to y; they are the targets of least squares.

    Targets are first clipped to the inside of the range: to [-(1 - 1e-3), 1 - 1e-3] for tanh, to
    [5e-4, 1 - 5e-4] for the logistic function, and to at least 1e-3 / n_outputs for the softmax.
    The scores for the softmax have mean 0.

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
    return OUTPUTS[output].inverse(y)


def check_targets(y: Array, output: str, loss: str) -> None:
    """Check that targets are in the range of the output function, and valid for the loss.

    Parameters
    ----------
    y : array of shape (n_rows, n_outputs)
    output, loss : str

    Raises
    ------
    ValueError
        If a target is out of range or not valid; the message states the value and a remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import check_targets
    >>> check_targets(np.array([[0.5]]), "tanh", "mse")
    """
    allowed = _rule(loss).targets
    if allowed is not None:
        wrong = ~np.isin(y, allowed)
        if wrong.any():
            raise ValueError(
                f'loss="{loss}" needs targets {" and ".join(f"{value:g}" for value in allowed)}; '
                f"y contains {y[wrong][0]:g}."
            )
        return
    low, high = OUTPUTS[output].low, OUTPUTS[output].high
    outside = (y < low) | (y > high)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise ValueError(
            f"output={output!r} gives values in [{low:g}, {high:g}]; y contains "
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
                f"{sums[row]:.6g}. Use probabilities as targets, or another output."
            )


def loss_of(z: Array, y: Array, output: str, loss: str, weights: Array | None = None) -> float:
    """Return the loss of scores: the (weighted) mean over rows.

    For the cross-entropy, a row's loss is ``-sum y log f(z)``, with the natural logarithm. For the
    other losses, it is the mean over outputs of the squared error, the absolute error, the binary
    cross-entropy or the hinge ``max(0, 1 - y f(z))``.

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
    rule = _rule(loss)
    return _mean(rule, rule.value(z if rule.of_scores else apply_output(z, output), y), weights)


def loss_and_slope(
    z: Array, y: Array, output: str, loss: str, weights: Array | None = None
) -> tuple[float, Array]:
    """Return the loss of scores (the mean over rows), and its gradient with respect to the scores.

    The loss of no rows is 0.

    Parameters
    ----------
    z, y : arrays of shape (n_rows, n_outputs)
    output, loss : str
    weights : array of shape (n_rows,), optional

    Returns
    -------
    value : float
    slope : array of the shape of z
        The gradient of the loss, taken as 0 where the loss has a corner: for "mae" where the error
        is 0, and for "hinge" where ``y f(z)`` is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import loss_and_slope
    >>> loss_and_slope(np.array([[3.0]]), np.array([[1.0]]), "identity", "mse")
    (4.0, array([[4.]]))
    """
    if not len(z):
        return 0.0, np.zeros_like(z)
    rule, kind = _rule(loss), OUTPUTS[output]
    at = z if rule.of_scores else kind.function(z)
    slopes = rule.slope(at, y) * _shares(rule, z, weights)
    value = _mean(rule, rule.value(at, y), weights)
    return value, slopes if rule.of_scores else kind.backward(slopes, at)


def curvature_product(
    z: Array, y: Array, output: str, loss: str, v: Array, weights: Array | None = None
) -> Array:
    """Return the product of the curvature of a loss at scores z with a direction v.

    For a loss that is defined in terms of the scores, the curvature is the second derivative. For a
    loss that is defined in terms of the predictions f(z), it is the generalised Gauss-Newton matrix
    J' L'' J, where J is the Jacobian of f. Both are symmetric and positive semi-definite.

    Parameters
    ----------
    z, y, v : arrays of shape (n_rows, n_outputs)
    output, loss : str
    weights : array of shape (n_rows,), optional
        As in `loss_of`.

    Returns
    -------
    array of the shape of z

    Raises
    ------
    ValueError
        If the loss has no curvature, as "mae" and "hinge".

    References
    ----------
    N. N. Schraudolph, "Fast curvature matrix-vector products for second-order gradient descent",
    Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.losses import curvature_product
    >>> zeros, ones = np.zeros((1, 1)), np.ones((1, 1))
    >>> curvature_product(zeros, ones, "logistic", "bce", ones)
    array([[0.25]])
    """
    rule, kind = _rule(loss), OUTPUTS[output]
    if rule.curvature is None:
        known = [name for name, entry in LOSSES.items() if entry.curvature is not None]
        raise ValueError(
            f"loss={loss!r} has no curvature, which Hessian-free training needs. Use "
            f"{' or '.join(map(repr, known))}, or solver='lbfgs' or 'adam'."
        )
    share = _shares(rule, z, weights)
    if rule.of_scores:
        return rule.curvature(z, y, v) * share
    at = kind.function(z)
    return kind.backward(rule.curvature(at, y, kind.backward(v, at)) * share, at)


def _rule(loss: str) -> Loss:
    return LOSSES[check_choice("loss", loss, LOSSES)]


def _mean(rule: Loss, values: Array, weights: Array | None) -> float:
    """Return the (weighted) mean over rows of the losses of all outputs."""
    per_row = values.sum(axis=-1) if rule.summed else values.mean(axis=-1)
    if weights is None:
        return float(per_row.mean(dtype=np.float64))
    return float(np.average(per_row.astype(np.float64), weights=weights))


def _shares(rule: Loss, z: Array, weights: Array | None) -> Array:
    """Return the factor by which each row's outputs are weighted in the loss, as a column."""
    share = _row_shares(len(z), weights, z.dtype)
    return share if rule.summed else share / z.dtype.type(z.shape[-1])


def _row_shares(n_rows: int, weights: Array | None, dtype: np.dtype) -> Array:
    """Return each row's share of the total weight, as a column."""
    if weights is None:
        return np.full((1, 1), 1 / n_rows, dtype)
    return (weights / weights.sum(dtype=np.float64))[:, None].astype(dtype)
