"""Decorators that compile kernels with numba, and the disk cache of the compiled code."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from reservoir._kernels._calls import MADE_OF
from reservoir._kernels._vector import gathers_fast

# only contraction: anything that reorders sums would undo the corrections of rounding errors
OPTIONS = {"fastmath": {"contract", "nsz"}, "error_model": "numpy"}


class _Files(IndexDataCacheFile):
    """Files of numba's disk cache with their key next to the code, and a checksum at the end.

    Processes that compile at the same time may choose the same file name, so that an index points
    to code of another version or for other types: `load` returns None if the key differs. A damaged
    file is treated as missing; numba would fail to read it at each call, or run machine code with a
    wrong bit. Unpickling ignores the checksum, so that earlier versions can read the file.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        held = super().load(key)
        return held[1] if held is not None and held[0] == key else None

    def _load_index(self) -> dict[Any, str]:
        try:
            _check_sum(self._index_path)
            index = super()._load_index()
        except Exception:  # an unreadable file of any kind: the next `save` replaces it
            return {}
        return index if isinstance(index, dict) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        _check_sum(path)
        return super()._load_data(name)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        yield (text := io.BytesIO())
        with contextlib.suppress(OSError):
            os.rmdir(filepath)  # an empty directory with the name of the file
        with super()._open_for_write(filepath) as file:
            file.write(text.getvalue() + sha256(text.getvalue()).digest())


def _check_sum(path: str) -> None:
    """Raise OSError unless a file ends in the checksum of its other bytes."""
    text = Path(path).read_bytes()
    if sha256(text[:-_SUM_SIZE]).digest() != text[-_SUM_SIZE:]:
        raise OSError(f"{path} is damaged")


_SUM_SIZE = sha256().digest_size


class Cache(FunctionCache):
    """numba's disk cache, whose entries also depend on all files of this package and the processor.

    numba itself checks only the file of the kernel. But kernels call functions of other files, and
    emit different code if the processor's gather instruction is slow.
    """

    made_of = MADE_OF

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None if there is no valid code on disk."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file may raise almost any exception
            return None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        machine = gathers_fast(*codegen.magic_tuple())  # not part of numba's own key
        return (*super()._index_key(sig, codegen), machine, self.made_of)


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function; raise if another one could have the same symbol when compiled.

    numba builds the symbol from the module, the qualified name, the types of the arguments and a
    counter of the functions compiled in the process, for code from the disk in another process. Two
    functions that agree in everything else could share a symbol, and one be called instead of the
    other: closures, lambdas and second definitions of a name therefore raise an error.
    """
    qualified = f"{function.__module__}.{function.__qualname__}"
    if "<" in qualified or function.__closure__:
        raise TypeError(
            f"{qualified} is made by a function or a lambda: two of these would have the same name "
            "in compiled code. Define it at the top level of its module, or as an intrinsic."
        )
    if _NAMED.setdefault(qualified, function.__code__) != function.__code__:
        raise TypeError(f"{qualified} is defined twice. Give one of the two another name.")
    return function


_NAMED: dict[str, Any] = {}


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that is called only by kernels (a decorator)."""
    return njit(**OPTIONS)(named(function))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that is called from Python (a decorator).

    It is compiled at its first call, and its code is cached on disk if possible. It runs without
    the GIL.
    """
    dispatcher = njit(nogil=True, **OPTIONS)(named(function))
    with contextlib.suppress(RuntimeError):  # no writeable directory
        dispatcher._cache = Cache(function)
    return dispatcher
