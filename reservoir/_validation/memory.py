"""Memory: what does not fit is refused by name, where its size is known before it is asked for."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array

GIB = 2**30
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class NotEnoughMemory(MemoryError):
    """A MemoryError that says what takes how much, and what to change."""

    names_parameters = False


def machine_memory() -> float:
    """Return the bytes of memory that this process may have at most; infinity if not known."""
    try:
        import resource
    except ImportError:  # Windows
        return _installed_memory()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return _installed_memory() if limit < 0 else min(limit, _installed_memory())


@functools.cache
def _installed_memory() -> float:
    """Return the memory of this machine, or of its container."""
    known = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not on Windows
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in _LIMITS:
        with contextlib.suppress(ValueError, OSError):  # no such file, or "max"
            known.append(int(Path(limit).read_text()))
    return min((n for n in known if n > 0), default=np.inf)


@contextlib.contextmanager
def room_for(what: str, n_bytes: float, remedy: str) -> Iterator[None]:
    """Refuse what is larger than the memory there is; say of a smaller one that fails what it was.

    Systems promise memory that they do not have, and then end the process that makes use of it.

    Parameters
    ----------
    what : str
        What is made within this context, in the plural.
    n_bytes : float
        That it takes at least, all at the same time.
    remedy : str
        What to change, in the user's terms.

    Raises
    ------
    NotEnoughMemory
    """
    said = f"{what} take {n_bytes / GIB:.3g} GiB of memory, "
    if n_bytes > (there := machine_memory()):
        raise NotEnoughMemory(f"{said}and there are {there / GIB:.3g} GiB. {remedy}")
    try:
        yield
    except NotEnoughMemory:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(f"{said}which could not be had. {remedy}") from error


def dense(matrix: Any, name: str = "W") -> Array:
    """Return a sparse matrix as an array; an array as it is."""
    if not sp.issparse(matrix):
        return np.asarray(matrix)
    size = " x ".join(map(str, matrix.shape))
    n_bytes = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize
    with room_for(f"The {size} numbers of a dense {name}", n_bytes, "Use fewer units."):
        return np.asarray(matrix.toarray())


@contextlib.contextmanager
def advising(advice: str) -> Iterator[None]:
    """Let a MemoryError within this context say what to change, in the user's terms."""
    try:
        yield
    except MemoryError as error:
        raise_naming(error, advice)


def raise_naming(error: MemoryError, advice: str) -> NoReturn:
    """Raise an error again that says, too, which parameters of an estimator to change."""
    if isinstance(error, NotEnoughMemory) and error.names_parameters:
        raise error
    said = str(error) or "There is not enough memory."
    told = NotEnoughMemory(f"{said.rstrip('.')}. {advice}")
    told.names_parameters = True
    raise told from error
