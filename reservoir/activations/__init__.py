"""Activation functions f, by name, with the properties that the package uses.

These are the derivative, the Lipschitz constant, the inverse and bounds on intervals. A new
activation is one entry in `ACTIVATIONS`.
"""

from reservoir.activations.enclosures import Enclosure
from reservoir.activations.table import ACTIVATIONS, Activation, get_activation

__all__ = ["ACTIVATIONS", "Activation", "Enclosure", "get_activation"]
