"""Activation functions f, by name, each with what the rest of the package needs to know of it.

That is its derivative, its Lipschitz constant, its inverse and bounds on intervals. A new
activation is one entry of `ACTIVATIONS`.
"""

from reservoir.activations.enclosures import Enclosure
from reservoir.activations.table import ACTIVATIONS, Activation, get_activation

__all__ = ["ACTIVATIONS", "Activation", "Enclosure", "get_activation"]
