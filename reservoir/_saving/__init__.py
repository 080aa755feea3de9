"""Which classes `reservoir.save` may write, and `reservoir.load` may make again."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound=type)

#: Name -> class. A file names the classes of its parts; none that is not here is ever made.
SAVED: dict[str, Any] = {}


def saved(cls: _T) -> _T:
    """Let objects of a class be written by `reservoir.save`: a decorator.

    Parameters
    ----------
    cls : type
        The attributes of its objects, or what ``__getstate__`` returns, must be arrays, numbers,
        text, containers of these, or objects of classes that may be saved themselves. Whoever loads
        them imports its module first.

    Returns
    -------
    type
        The same.

    Raises
    ------
    ValueError
        If a class of that name, from elsewhere, may be saved already.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from reservoir.training.cells import SimpleCell, saved
    >>> @saved
    ... @dataclass(frozen=True)
    ... class Settings:
    ...     decay: float = 0.9
    """
    other = SAVED.get(cls.__name__)
    if other is not None and (other.__module__, other.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise ValueError(
            f"{cls.__name__} is the name of {other.__module__}.{other.__qualname__} in saved files:"
            " choose another."
        )
    SAVED[cls.__name__] = cls
    return cls
