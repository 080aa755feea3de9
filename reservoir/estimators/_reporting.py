"""Progress of long fits: a bar where tqdm is installed, lines to the logger "reservoir" else."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

_LOGGER = logging.getLogger("reservoir")


def say(text: str) -> None:
    """Report a line; it reaches standard error unless logging is set up otherwise."""
    _LOGGER.warning(text)


def progress(items: Iterable[Any], total: int, verbose: int) -> Iterable[Any]:
    """Pass batches on, and show how many have come if `verbose`."""
    if not verbose:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _counted(items, total)
    return tqdm(items, total=total, desc="reservoir fit", unit="batch")


def _counted(items: Iterable[Any], total: int) -> Iterator[Any]:
    for i, item in enumerate(items):
        say(f"fit: batch {i + 1} of {total}")
        yield item
