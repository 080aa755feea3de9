"""How kernels are compiled, and kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

# contraction alone: anything that reorders sums would undo the rounding tricks
OPTIONS = {"fastmath": {"contract", "nsz"}, "error_model": "numpy"}


def _sources() -> str:
    """Return a digest of every file that kernels are made of."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Cache(FunctionCache):
    """numba's cache on disk, which knows a kernel by its own file alone: add what it is made of."""

    made_of = _sources()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), self.made_of)


def inner(function: Callable[..., Any]) -> Any:
    """Compile as a part of kernels."""
    return njit(**OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use; kept on disk where there is a place for it."""
    dispatcher = njit(nogil=True, **OPTIONS)(function)
    with contextlib.suppress(RuntimeError):  # no directory that may be written
        dispatcher._cache = Cache(function)
    return dispatcher
