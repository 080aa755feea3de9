"""How kernels are compiled, and kept on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from reservoir._kernels._calls import MADE_OF

# contraction alone: anything that reorders sums would undo the rounding tricks
OPTIONS = {"fastmath": {"contract", "nsz"}, "error_model": "numpy"}


class _Files(IndexDataCacheFile):
    """Files of code that say what they hold.

    Processes that compile at the same time may choose the same file: what an index names is then
    another's code, of another version or for other types.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        held = super().load(key)
        return held[1] if held is not None and held[0] == key else None


class Cache(FunctionCache):
    """numba's cache on disk, which knows a kernel by its own file alone: add what it is made of."""

    made_of = MADE_OF

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

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
