"""Jobs shared out to joblib's workers, whatever the backend; one thread for linear algebra."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController


def n_workers(n_jobs: int | None) -> int:
    """Return how many workers the parameter `n_jobs` means under the active backend."""
    return int(effective_n_jobs(n_jobs))


def run_jobs(
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    in_threads: bool = False,
) -> Iterator[Any]:
    """Return an iterator over what a function makes of each job, in the order of the jobs.

    A single worker, or a single job, runs here, each job as its result is asked for. Workers see
    scikit-learn's configuration as it is here.

    Parameters
    ----------
    function : callable
        Importable, as are its arguments, where workers are processes.
    jobs : iterable of tuples
        Arguments of the function. Workers may get arrays that are read-only.
    n_jobs : int or None
        As in joblib.
    in_threads : bool, default=False
        Whether the function writes what others read: no backend of processes will do.
    """
    jobs = list(jobs)
    if len(jobs) < 2 or n_workers(n_jobs) < 2:
        return (function(*job) for job in jobs)
    options = {"n_jobs": n_jobs, "require": "sharedmem" if in_threads else None}
    try:
        parallel = Parallel(return_as="generator", **options)
    except (TypeError, ValueError):  # joblib before 1.3; multiprocessing, which passes on a list
        parallel = Parallel(**options)
    return iter(parallel(delayed(function)(*job) for job in jobs))


_FEW_UNITS = 500  # up to so many, products of matrices take no time that is worth a second thread


class _Limit:
    """The limit that `one_blas_thread` sets, and how many ask for it at present."""

    lock = threading.Lock()
    n_holders = 0
    limiter: Any = None


@cache
def _thread_pools() -> ThreadpoolController:
    """Return what holds the threads of BLAS libraries; to find these takes long."""
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run linear algebra on one thread: how many there are changes the last bits of a sum.

    The limit is one for the whole process. Whoever comes first sets it, and whoever leaves last
    takes it away: if each restored what it had found, overlapping threads would leave it behind.
    """
    with _Limit.lock:
        if _Limit.n_holders == 0:
            _Limit.limiter = _thread_pools().limit(limits=1)
        _Limit.n_holders += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.n_holders -= 1
            if _Limit.n_holders == 0:
                _Limit.limiter.restore_original_limits()


def threads_for(n_units: int) -> contextlib.AbstractContextManager[None]:
    """Return one thread for linear algebra of so few units, or else leave the threads as they are.

    Threads that wait for one another in many small products cost more than they gain, and beside
    other work on the same cores a hundred times as much.
    """
    return one_blas_thread() if n_units <= _FEW_UNITS else contextlib.nullcontext()
