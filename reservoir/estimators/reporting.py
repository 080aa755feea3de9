"""Progress of a fit, and restoring the estimator after a failed one.

Progress is a bar if tqdm is installed, else lines to the logger "reservoir".
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from reservoir._validation import raise_naming

_LOGGER = logging.getLogger("reservoir")


@contextlib.contextmanager
def restored_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the enclosed block raises.

    Objects in its attributes must not be changed in the block. The estimator's `_memory_advice` is
    added to the message of a MemoryError.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        if isinstance(error, MemoryError) and hasattr(estimator, "_memory_advice"):
            raise_naming(error, estimator._memory_advice())
        raise


def log(text: str) -> None:
    """Log a line, on standard error unless logging is configured otherwise."""
    _LOGGER.warning(text)


def progress(
    items: Iterable[Any], total: int, verbose: int, *, what: str = "", unit: str = "batch"
) -> Iterable[Any]:
    """Return items, with a progress bar if `verbose`; `unit` and `what` appear in its text."""
    if not verbose:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _counted(items, total, f"fit, {what}" if what else "fit", unit)
    title = f"reservoir fit, {what}" if what else "reservoir fit"
    return tqdm(items, total=total, desc=title, unit=unit)


def _counted(items: Iterable[Any], total: int, title: str, unit: str) -> Iterator[Any]:
    for i, item in enumerate(items):
        log(f"{title}: {unit} {i + 1} of {total}")
        yield item
