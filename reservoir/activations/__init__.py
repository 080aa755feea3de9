"""Activation functions f by name, with the properties that the package uses.

These properties are the derivative, the Lipschitz constant, the inverse and bounds on intervals. To
add an activation, add one entry to `ACTIVATIONS`.
"""

from reservoir.activations.enclosures import Enclosure
from reservoir.activations.table import ACTIVATIONS, Activation, get_activation

__all__ = ["ACTIVATIONS", "Activation", "Enclosure", "get_activation"]
