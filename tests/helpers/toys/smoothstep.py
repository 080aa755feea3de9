"""An activation that says all that a trained network can ask of one: ``(3 z - z^3) / 2``.

That is so between -1 and 1, where it is one to one; beyond, it is +-1, and flat.
"""

import numpy as np

from reservoir.activations import Activation


def _bend(z, out=None):
    inside = np.clip(z, -1, 1)
    return np.multiply(inside, 1.5 - 0.5 * inside**2, out=out)


def _derivative(z):
    return np.where(np.abs(z) < 1, 1.5 * (1 - z**2), 0.0)


def _inverse(h):
    """z - z^3 / 3 = 2 h / 3, the middle root of the three."""
    return 2 * np.sin(np.arcsin(h) / 3)


def _slope(h):
    return (1.5 * (1 - _inverse(h) ** 2)).astype(h.dtype)


def _curvature(h):
    return np.where(np.abs(h) < 1, -3 * _inverse(h), 0.0).astype(h.dtype)


SMOOTHSTEP = Activation(
    "smoothstep", _bend, _derivative, 1.5, _inverse, True, slope=_slope, curvature=_curvature
)
