"""The types of this package that the loader of skops must be told to trust."""

from __future__ import annotations

from scipy.sparse import csr_array

from reservoir._saving import SAVED
from reservoir.model_selection import (
    ClosedLoopSearchCV,
    ContextSplit,
    PerStep,
    forecast_scorer,
    washout_scorer,
)


def skops_types() -> list[str]:
    """Return the types that `skops.io.load` must trust to read models of this package.

    They are the types that `reservoir.save` writes (a class of your own that is marked with
    `reservoir.training.cells.saved` is among them), those of `reservoir.model_selection` in
    pipelines and searches, and SciPy's sparse array. Types of other packages that skops does not
    trust by itself, such as the splitter of a search, must be added.

    Returns
    -------
    list of str
        The types with their modules, sorted, for the argument `trusted` of `skops.io.load`.

    See Also
    --------
    reservoir.load : Checks the fields of objects too, not only their types.

    Examples
    --------
    >>> from reservoir.interop import skops_types
    >>> model = skops.io.load("model.skops", trusted=skops_types())  # doctest: +SKIP
    >>> "reservoir.estimators.stream.Stream" in skops_types()
    True
    """
    of_searches = (ClosedLoopSearchCV, ContextSplit, PerStep)
    scorers = (type(forecast_scorer(1)), type(washout_scorer()))
    types = (*SAVED.values(), *of_searches, *scorers, csr_array)
    return sorted(f"{each.__module__}.{each.__qualname__}" for each in types)
