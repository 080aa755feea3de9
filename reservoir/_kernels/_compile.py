"""How kernels are compiled, and kept on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from reservoir._kernels._calls import MADE_OF
from reservoir._kernels._vector import gathers_fast

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
        machine = gathers_fast(*codegen.magic_tuple())  # not among what numba knows of it
        return (*super()._index_key(sig, codegen), machine, self.made_of)


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a function whose name in compiled code another one might bear.

    A compiled function is known by its module, its qualified name, the types of its arguments, and
    a number that counts what the process has compiled. Code that other processes compiled is kept
    on disk with numbers of theirs, so the number parts nothing: of two functions that are alike in
    the rest, loaded into one process, one is called in the place of the other.
    """
    qualified = f"{function.__module__}.{function.__qualname__}"
    if "<" in qualified or function.__closure__:
        raise TypeError(
            f"{qualified} is made by a function or a lambda: two of them would bear one name in "
            "compiled code. Write it at the top level of its module, or as an intrinsic."
        )
    if _NAMED.setdefault(qualified, function.__code__) != function.__code__:
        raise TypeError(f"{qualified} is defined twice. Give one of the two another name.")
    return function


_NAMED: dict[str, Any] = {}


def inner(function: Callable[..., Any]) -> Any:
    """Compile as a part of kernels."""
    return njit(**OPTIONS)(named(function))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use; kept on disk where there is a place for it."""
    dispatcher = njit(nogil=True, **OPTIONS)(named(function))
    with contextlib.suppress(RuntimeError):  # no directory that may be written
        dispatcher._cache = Cache(function)
    return dispatcher
