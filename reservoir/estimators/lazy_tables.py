"""Tables of other libraries whose rows are not in memory, for estimators that learn in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class LazyTables(NamedTuple):
    """Fit and predict for the tables of a library, as `reservoir.interop` registers them.

    Attributes
    ----------
    fit : callable
        ``fit(estimator, X, y, sample_weight)`` returns a fitted clone of the estimator.
    predict : callable
        ``predict(estimator, X, initial_state)`` returns predictions whose rows are computed later.
    """

    fit: Callable[..., Any]
    predict: Callable[..., Any]


#: Functions by the package that defines the class of X.
LAZY_TABLES: dict[str, LazyTables] = {}


def lazy_tables_of(X: Any) -> LazyTables | None:
    """Return the functions for X; None if its rows are in memory, or its library is unknown."""
    return LAZY_TABLES.get(type(X).__module__.partition(".")[0])
