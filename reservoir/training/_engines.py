"""Who loops over time: NumPy, or compiled kernels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from reservoir.training import _loops


def loops_for(shape: tuple[int, ...], dtype: Any) -> ModuleType:
    """Return the loops for arrays of a shape (n_steps, n_sequences, n_gates * n_units)."""
    return _loops
