"""Registry of the classes that `reservoir.save` may write and `reservoir.load` may create."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound=type)

#: Name -> class. A file names the classes of its parts; no other class is ever created.
SAVED: dict[str, Any] = {}


def saved(cls: _T) -> _T:
    """Register a class with `reservoir.save` and `reservoir.load`: a decorator.

    Parameters
    ----------
    cls : type
        The attributes of its objects, or what ``__getstate__`` returns, must be arrays, numbers,
        text, containers of these, or objects of registered classes. Its module must be imported
        before such objects are loaded.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    ValueError
        If a different class is registered under the same name.

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
