"""Which classes `reservoir.save` may write, and `reservoir.load` may make again."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound=type)

#: Name -> class. A file names the classes of its parts; none that is not here is ever made.
SAVED: dict[str, Any] = {}


def saved(cls: _T) -> _T:
    """Let objects of a class be saved: a decorator.

    Their attributes, or what ``__getstate__`` returns, must be arrays, numbers, text, containers of
    these, or objects of classes that may be saved themselves.
    """
    SAVED[cls.__name__] = cls
    return cls
