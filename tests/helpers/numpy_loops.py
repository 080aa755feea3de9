"""The loops of cells in NumPy, by the names of the kernels that do the same."""

from types import SimpleNamespace

import reservoir.training.cells  # noqa: F401  (each cell names the twins of its loops)
from reservoir.training.loop_engines import TWINS

NUMPY = SimpleNamespace(**{name: loop for loop, name in TWINS.items()})
