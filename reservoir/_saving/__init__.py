"""Registry of the classes that `reservoir.save` may write and `reservoir.load` may create."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound=type)

#: Registered classes by name. `load` creates objects of these classes only.
SAVED: dict[str, Any] = {}


def saved(cls: _T) -> _T:
    """Register a class with `reservoir.save` and `reservoir.load`; used as a decorator.

    Parameters
    ----------
    cls : type
        The class. The attributes of its objects, or the result of ``__getstate__``, must be arrays,
        numbers, strings, containers of these, or objects of registered classes. The module that
        defines the class must be imported before its objects are loaded.

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
            " choose another name."
        )
    SAVED[cls.__name__] = cls
    return cls
