"""How kernels are called: the numbers of activations, and arrays of the one layout they know."""

from __future__ import annotations

import functools
import hashlib
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.activations.table import LEAKY_SLOPE

CODES = {
    name: code
    for code, name in enumerate(("tanh", "logistic", "relu", "leaky_relu", "identity", "softplus"))
}


def sources() -> str:
    """Return a digest of every file that kernels are made of."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


MADE_OF = sources()


class FilesChanged(RuntimeError):
    """The files on the disk are not those that were imported."""


@functools.cache
def compiled(module: str) -> ModuleType:
    """Import a module of kernels, and numba with it.

    Raises
    ------
    FilesChanged
        If it, or what calls it, may be of another version: arrays that are too small for a kernel
        are written past their ends, and its code would be kept under the wrong name.
    """
    imported = importlib.import_module(f"reservoir._kernels.{module}")
    if sources() != MADE_OF:
        raise FilesChanged(
            "the files of reservoir have changed since it was imported: start Python anew."
        )
    return imported


def call(kernel: Any, *args: Any) -> Any:
    """Call a kernel."""
    args = tuple(_ready(arg) if isinstance(arg, np.ndarray) else arg for arg in args)
    try:
        return kernel(*args)
    except OSError:  # compiled, but the disk did not take the copy: it is here all the same
        return kernel(*args)


def slope_below(dtype: Any) -> Any:
    """Return the slope of leaky_relu below zero."""
    return np.dtype(dtype).type(LEAKY_SLOPE)


def _ready(array: Array) -> Array:
    """Return an array as kernels are compiled for: each layout and flag would be another type."""
    ready = array.flags.c_contiguous and array.flags.writeable
    return array if ready else np.array(array, order="C")
