"""Check sizes against the memory limit before allocating; errors name the data and a remedy."""

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
    """MemoryError whose message names the data, their size and the parameter to change."""

    names_parameters = False


def machine_memory() -> float:
    """Return the bytes of memory that this process may use; infinity if the limit is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return _installed_memory()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return _installed_memory() if limit < 0 else min(limit, _installed_memory())


@functools.cache
def _installed_memory() -> float:
    """Return the memory of this machine in bytes, or of the container that this process runs in."""
    known = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not on Windows
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in _LIMITS:
        with contextlib.suppress(ValueError, OSError):  # no such file, or "max"
            known.append(int(Path(limit).read_text()))
    return min((n for n in known if n > 0), default=np.inf)


@contextlib.contextmanager
def room_for(what: str, n_bytes: float, remedy: str) -> Iterator[None]:
    """Raise NotEnoughMemory if `n_bytes` exceed the limit, or if an allocation within fails.

    The size, a lower bound on the peak, is compared with the limit first, because operating systems
    grant more memory than they have, and then kill the process that uses it. `what` is a plural
    noun, the data; `remedy` the last sentence of the message, the parameter to change.
    """
    need = f"{what} need {n_bytes / GIB:.3g} GiB of memory"
    if n_bytes > (limit := machine_memory()):
        raise NotEnoughMemory(f"{need}, but the limit is {limit / GIB:.3g} GiB. {remedy}")
    try:
        yield
    except NotEnoughMemory:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(f"{need}, which could not be allocated. {remedy}") from error


def check_fits(name: str, value: Any, n_bytes: float) -> None:
    """Raise if the data that a parameter implies exceed the memory limit, before they are made."""
    if n_bytes > (limit := machine_memory()):
        error = NotEnoughMemory(
            f"The data that {name}={value} implies need {n_bytes / GIB:.3g} GiB of memory, but "
            f"the limit is {limit / GIB:.3g} GiB. Lower {name}."
        )
        error.names_parameters = True
        raise error


def dense(matrix: Any, name: str = "W") -> Array:
    """Return a sparse matrix as a dense array; an array is returned as it is."""
    if not sp.issparse(matrix):
        return np.asarray(matrix)
    size = " x ".join(map(str, matrix.shape))
    n_bytes = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize
    with room_for(f"The {size} numbers of a dense {name}", n_bytes, "Use fewer units."):
        return np.asarray(matrix.toarray())


@contextlib.contextmanager
def advising(advice: str) -> Iterator[None]:
    """Add advice on which parameters to change to a MemoryError raised within this context."""
    try:
        yield
    except MemoryError as error:
        raise_naming(error, advice)


def raise_naming(error: MemoryError, advice: str) -> NoReturn:
    """Re-raise a MemoryError with advice on which parameters of an estimator to change."""
    if isinstance(error, NotEnoughMemory) and error.names_parameters:
        raise error
    message = str(error) or "There is not enough memory."
    advising_error = NotEnoughMemory(f"{message.rstrip('.')}. {advice}")
    advising_error.names_parameters = True
    raise advising_error from error
