"""Call kernels: codes of activations, and arguments in the form that kernels need."""

from __future__ import annotations

import functools
import hashlib
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.activations.table import ACTIVATIONS, LEAKY_SLOPE

#: Number that identifies each activation in kernels, by its name.
CODES = {name: f.kernel for name, f in ACTIVATIONS.items() if f.kernel is not None}


def sources() -> str:
    """Return a digest of the source of all files in this package: kernels depend on all of them."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


MADE_OF = sources()


class FilesChanged(RuntimeError):
    """Error raised if the files of the package have changed on disk since they were imported."""


@functools.cache
def compiled(module: str) -> ModuleType:
    """Import a module of this package, and numba with it.

    Raise `FilesChanged` if a file of this package has changed since the first import. Kernels and
    callers could then be of different versions: a kernel might write past the end of an array, and
    would be cached under the digest of the old files.
    """
    imported = importlib.import_module(f"reservoir._kernels.{module}")
    if sources() != MADE_OF:
        raise FilesChanged(
            "the files of reservoir have changed since it was imported: restart Python."
        )
    return imported


def call(kernel: Any, *args: Any) -> Any:
    """Call a kernel, with every array made C-contiguous and writeable."""
    args = tuple([_ready(arg) if isinstance(arg, np.ndarray) else arg for arg in args])
    try:
        return kernel(*args)
    except OSError:  # compiled, but not saved on disk: call it again, the code is in memory
        return kernel(*args)


def slope_below(dtype: Any) -> Any:
    """Return the slope of leaky_relu below zero, in the dtype of the arrays."""
    return np.dtype(dtype).type(LEAKY_SLOPE)


def _ready(array: Array) -> Array:
    """Return an array that is C-contiguous and writeable, a copy if necessary.

    numba compiles a kernel again for each layout and for read-only arrays; this avoids it.
    """
    return array if array.flags.carray else np.array(array, order="C")
