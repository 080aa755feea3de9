"""Activation functions: a name -> (f, f', Lipschitz constant, inverse, enclosure).

A new activation is one line in `ACTIVATIONS`.
"""

from reservoir.activations.enclosures import Enclosure
from reservoir.activations.table import ACTIVATIONS, Activation, get_activation

__all__ = ["ACTIVATIONS", "Activation", "Enclosure", "get_activation"]
