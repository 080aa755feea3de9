"""Spectral radius of recurrent weights W, and scaling of W to a given radius or norm.

Examples
--------
>>> from scipy.sparse import csr_array
>>> W = csr_array([[0.0, 4.0], [1.0, 0.0]])
>>> spectral_radius(W)
2.0
>>> scale_to_spectral_radius(W, 0.9).toarray()
array([[0.  , 1.8 ],
       [0.45, 0.  ]])
"""

from __future__ import annotations

from reservoir.scaling._radius import SpectralRadiusError, spectral_radius
from reservoir.scaling._scale import (
    scale_blocks,
    scale_rows,
    scale_to_norm,
    scale_to_spectral_radius,
)

__all__ = [
    "SpectralRadiusError",
    "scale_blocks",
    "scale_rows",
    "scale_to_norm",
    "scale_to_spectral_radius",
    "spectral_radius",
]
