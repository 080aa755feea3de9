"""Names of parameters in other libraries: errors for unknown keywords give the names here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: Maps names in other libraries to the names here, each with an example. A callable without the
#: first of several names has the second one.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    name: tuple(examples)
    for names, *examples in (
        ("fh h n steps horizon n_periods periods prediction_length", "n_steps=12"),
        ("level interval quantiles confidence", "coverage=0.9"),
        ("season_length seasonal_periods sp period", "season=12"),
        ("X X_df exogenous future_covariates xreg", "exog=X"),
        ("lags", "n_lags=12", 'search="auto"'),
        ("units n_reservoir reservoir_size hidden_size n_hidden n_neurons", "n_units=300"),
        ("sr rho", "spectral_radius=0.9"),
        ("lr", "learning_rate_init=0.01", "leak_rate=0.3"),
        ("leaking_rate leakage leaky_rate", "leak_rate=0.3"),
        ("rc_connectivity sparsity density connectivity", "in_degree=10"),
        ("ridge regularization reg", "alpha=1e-6"),
        ("W", "topology=W"),
        ("warmup", "washout=100"),
        ("seed", "random_state=0"),
    )
    for name in names.split()
}


def with_other_names(function: _F) -> _F:
    """Return a function whose TypeError for an unknown keyword names the keyword that it has.

    Signature and class of the error stay. A method `forecast` of the same object is searched as
    well, since other libraries pass to constructors what is passed to it here.
    """
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        # checked first, so that an error from within the function is not touched
        unknown = [name for name in keywords if name not in known]
        if not unknown:
            return function(*args, **keywords)
        try:
            return function(*args, **keywords)
        except TypeError as error:
            method = getattr(type(args[0]), "forecast", None) if args else None
            advice = [_advice(name, known, method) for name in unknown if name in OTHER_NAMES]
            named = ", ".join(each for each in advice if each)
            raise TypeError(f"{error}. Its name here: {named}" if named else str(error)) from None

    return call  # type: ignore[return-value]


def _advice(name: str, known: Any, method: Any) -> str:
    """Return an example with the name here, or nothing if neither callable has such a parameter."""
    of_method = inspect.signature(method).parameters if inspect.isfunction(method) else ()
    for parameters, where in ((known, ""), (of_method, " (in the method forecast)")):
        for example in OTHER_NAMES[name]:
            if example.partition("=")[0] in parameters:
                return f"{name}: {example}{where}"
    return ""
