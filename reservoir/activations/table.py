"""The registry of activation functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from reservoir._typing import Array
from reservoir._validation import check_choice
from reservoir.activations.enclosures import (
    LOGISTIC,
    SOFTPLUS,
    TANH,
    Enclosure,
    piecewise_linear,
)

LEAKY_SLOPE = 0.01  # slope of leaky_relu below zero, as in the common deep-learning libraries


@dataclass(frozen=True)
class Activation:
    """An elementwise activation function f, with the properties that the package uses.

    Parameters
    ----------
    name : str
        Name by which estimators accept the activation.
    function : callable, ``function(z, out=None) -> array``
        f(z), elementwise. The function must write to `out` if it is passed, and keep the dtype of
        `z`.
    derivative : callable, ``derivative(z) -> array``
        f'(z), elementwise.
    lipschitz : float
        Lipschitz constant: the smallest L with ``|f(y) - f(z)| <= L |y - z|``.
    inverse : callable or None
        ``f^-1(h)``, elementwise, on the open range of f; None if f is not one-to-one.
    bounded : bool
        Whether the range is bounded, so that states cannot diverge.
    enclosure : Enclosure or None, default=None
        Bounds on f and f' over intervals, rounding errors included. If it is None,
        `reservoir.stability` cannot certify a network.
    slope : callable or None, default=None
        f'(z), elementwise, as a function of f(z) and in its dtype. If it is None, a trained network
        computes f'(z) by `derivative` and stores it for every step.
    curvature : callable or None, default=None
        f''(z), elementwise, as a function of f(z); 0 where f has a corner. It is needed for
        gradient control.
    kernel : int or None, default=None
        Number that identifies f in compiled loops. If it is None, NumPy is used.

    Examples
    --------
    >>> from reservoir.activations import ACTIVATIONS
    >>> tanh = ACTIVATIONS["tanh"]
    >>> float(tanh.function(0.0)), float(tanh.derivative(0.0)), tanh.lipschitz
    (0.0, 1.0, 1.0)
    """

    name: str
    function: Callable[..., Array]
    derivative: Callable[[Array], Array]
    lipschitz: float
    inverse: Callable[[Array], Array] | None
    bounded: bool
    enclosure: Enclosure | None = None
    slope: Callable[[Array], Array] | None = None
    curvature: Callable[[Array], Array] | None = None
    kernel: int | None = None


def _tanh_derivative(z: Array) -> Array:
    return 1.0 - np.tanh(z) ** 2


def _logistic_derivative(z: Array) -> Array:
    s = special.expit(z)
    return s * (1.0 - s)


def _relu(z: Array, out: Array | None = None) -> Array:
    return np.maximum(z, 0, out=out)


def _relu_derivative(z: Array) -> Array:
    return np.asarray(np.asarray(z) > 0, dtype=np.result_type(z, np.float32))


def _leaky_relu(z: Array, out: Array | None = None) -> Array:
    return np.maximum(z, np.multiply(z, LEAKY_SLOPE), out=out)


def _leaky_relu_derivative(z: Array) -> Array:
    z = np.asarray(z)
    return np.where(z > 0, 1.0, LEAKY_SLOPE).astype(np.result_type(z, np.float32))


def _leaky_relu_inverse(h: Array) -> Array:
    return np.minimum(h, np.divide(h, LEAKY_SLOPE))


def _identity(z: Array, out: Array | None = None) -> Array:
    return np.positive(z, out=out)


def _softplus(z: Array, out: Array | None = None) -> Array:
    return np.logaddexp(z, np.zeros((), dtype=np.asarray(z).dtype), out=out)


def _softplus_inverse(h: Array) -> Array:
    return h + np.log(-np.expm1(-np.asarray(h)))


# slopes and curvatures that follow from the value h = f(z)


def _tanh_slope(h: Array) -> Array:
    return 1 - h * h


def _tanh_curvature(h: Array) -> Array:
    return -2 * h * (1 - h * h)


def _logistic_slope(h: Array) -> Array:
    return h * (1 - h)


def _logistic_curvature(h: Array) -> Array:
    return h * (1 - h) * (1 - 2 * h)


def _relu_slope(h: Array) -> Array:
    return (h > 0).astype(h.dtype)


def _leaky_relu_slope(h: Array) -> Array:
    return np.where(h > 0, h.dtype.type(1), h.dtype.type(LEAKY_SLOPE))


def _softplus_slope(h: Array) -> Array:
    return -np.expm1(-h)


def _softplus_curvature(h: Array) -> Array:
    rest = np.exp(-h)
    return rest * (1 - rest)


_TABLE = (
    Activation(
        "tanh",
        np.tanh,
        _tanh_derivative,
        1.0,
        np.arctanh,
        True,
        TANH,
        slope=_tanh_slope,
        curvature=_tanh_curvature,
        kernel=0,
    ),
    Activation(
        "logistic",
        special.expit,
        _logistic_derivative,
        0.25,
        special.logit,
        True,
        LOGISTIC,
        slope=_logistic_slope,
        curvature=_logistic_curvature,
        kernel=1,
    ),
    Activation(
        "relu",
        _relu,
        _relu_derivative,
        1.0,
        None,
        False,
        piecewise_linear(0.0),
        slope=_relu_slope,
        curvature=np.zeros_like,
        kernel=2,
    ),
    Activation(
        "leaky_relu",
        _leaky_relu,
        _leaky_relu_derivative,
        1.0,
        _leaky_relu_inverse,
        False,
        piecewise_linear(LEAKY_SLOPE),
        slope=_leaky_relu_slope,
        curvature=np.zeros_like,
        kernel=3,
    ),
    Activation(
        "identity",
        _identity,
        np.ones_like,
        1.0,
        _identity,
        False,
        piecewise_linear(1.0),
        slope=np.ones_like,
        curvature=np.zeros_like,
        kernel=4,
    ),
    Activation(
        "softplus",
        _softplus,
        special.expit,
        1.0,
        _softplus_inverse,
        False,
        SOFTPLUS,
        slope=_softplus_slope,
        curvature=_softplus_curvature,
        kernel=5,
    ),
)
ACTIVATIONS: dict[str, Activation] = {activation.name: activation for activation in _TABLE}


def get_activation(activation: str | Activation) -> Activation:
    """Return the `Activation` with a given name; an `Activation` is returned as it is.

    Parameters
    ----------
    activation : str or Activation
        A name in `ACTIVATIONS`, or an `Activation`.

    Returns
    -------
    Activation
        The activation function and its properties.

    Raises
    ------
    ValueError
        If the name is not known; the message lists close matches.
    TypeError
        If `activation` is a function that is not wrapped in an `Activation`.

    Examples
    --------
    >>> from reservoir.activations import get_activation
    >>> get_activation("logistic").lipschitz
    0.25
    >>> get_activation("tahn")
    Traceback (most recent call last):
        ...
    ValueError: activation='tahn' is not known. Did you mean 'tanh'? Known: 'identity', ...
    """
    if isinstance(activation, Activation):
        return activation
    if callable(activation):
        raise TypeError(
            f"activation={activation!r} is a bare function. Wrap it in a "
            "reservoir.activations.Activation with its name, derivative, Lipschitz constant and "
            f"inverse, or use one of the names {', '.join(map(repr, ACTIVATIONS))}."
        )
    return ACTIVATIONS[check_choice("activation", activation, ACTIVATIONS)]
