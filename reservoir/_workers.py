"""joblib: jobs in workers, with any backend and one thread for linear algebra; digests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from joblib import hash as content_hash
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController


def n_workers(n_jobs: int | None) -> int:
    """Return the number of workers for the parameter `n_jobs` under the active backend."""
    return int(effective_n_jobs(n_jobs))


def run_jobs(
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    in_threads: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the results of calling a function for each job, in order.

    With one worker or one job, jobs run in this thread, each when its result is requested. Workers
    use the current configuration of scikit-learn. The function must be importable, as it and its
    arguments, the tuple of a job, are pickled for processes; `in_threads` requires threads, because
    it writes to shared memory. Workers may receive arrays read-only.
    """
    jobs = list(jobs)
    if len(jobs) < 2 or n_workers(n_jobs) < 2:
        return (function(*job) for job in jobs)
    options = {"n_jobs": n_jobs, "require": "sharedmem" if in_threads else None}
    try:
        parallel = Parallel(return_as="generator", **options)
    except (TypeError, ValueError):  # joblib before 1.3; multiprocessing, which returns a list
        parallel = Parallel(**options)
    return iter(parallel(delayed(function)(*job) for job in jobs))


_FEW_UNITS = 500  # up to this number of units a second thread does not speed up matrix products


class _Limit:
    """The limit set by `one_blas_thread`, and the number of contexts that currently need it."""

    lock = threading.Lock()
    n_holders = 0
    limiter: Any = None


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the controller of BLAS threads; cached, because finding the libraries is slow."""
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run linear algebra on one thread, because the number of threads changes rounding.

    The limit applies to the whole process. The first of overlapping contexts sets it, and the last
    one removes it: if each context restored the limit that it had found, contexts in several
    threads could leave it set.
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
    """Return `one_blas_thread` if `n_units` is small, else a context that does nothing.

    In many small products, threads wait for one another, which costs more time than they save, and
    a hundred times as much if other work runs on the same cores.
    """
    return one_blas_thread() if n_units <= _FEW_UNITS else contextlib.nullcontext()


def digest_of(value: Any) -> str:
    """Return a digest of an object's content; objects that cannot be pickled raise."""
    return str(content_hash(value))
