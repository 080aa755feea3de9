"""What a notebook shows of a fitted estimator: what it holds, beneath scikit-learn's diagram."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir

_LISTED = 4  # numbers that are told one by one
_CELL = "text-align: left; vertical-align: top; padding: 0.15em 1em 0.15em 0"
_RULES = {
    "gcv": "generalised cross-validation",
    "reml": "restricted maximum likelihood",
    "reml_ar1": "restricted maximum likelihood with AR(1) errors",
    "halves": "halves of the rows, each left out once",
    "blocked": "blocks of time left out",
    "holdout": "the last rows left out",
    "forecast": "free runs in the last rows",
}


class Described:
    """An estimator whose HTML says, once it is fitted, what it holds.

    Jupyter, and all who ask for the HTML, get a table of two columns under the diagram.
    """

    def _description(self) -> Mapping[str, str]:
        """Return what each part of the fitted estimator is, in words, by the part's name."""
        return {}

    def _repr_html_inner(self) -> str:
        return described_html(self, lambda: table_of(self._description()))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return with_html(self, super()._repr_mimebundle_(**kwargs))  # type: ignore[misc]


def described_html(estimator: Any, details: Callable[[], str]) -> str:
    """Return scikit-learn's diagram of an estimator, with `details` below it once it is fitted."""
    diagram = str(estimator_html_repr(estimator))
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return diagram
    return diagram + details()


def table_of(description: Mapping[str, str]) -> str:
    """Return a table of two columns in HTML: parts, and what they are."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(part)}</th>'
        f'<td style="{_CELL}">{escape(words)}</td></tr>'
        for part, words in description.items()
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def with_html(estimator: Any, bundle: dict[str, str]) -> dict[str, str]:
    """Return what Jupyter shows, with the description in its HTML."""
    if "text/html" in bundle:  # unless scikit-learn's `display` is "text"
        bundle["text/html"] = estimator._repr_html_inner()
    return bundle


def description_of_reservoir(
    estimator: Any, reservoir: Reservoir, certificate: Any
) -> dict[str, str]:
    """Return what a reservoir is, by its weights and by what an estimator drew them from."""
    return {
        "Reservoir": _words_for_reservoir(reservoir, estimator.topology, estimator.spectral_radius),
        "Certificate": _words_for_certificate(certificate),
    }


def _words_for_reservoir(reservoir: Reservoir, topology: Any, radius: float | None) -> str:
    connections = reservoir.W.nnz if sp.issparse(reservoir.W) else reservoir.W.size
    leaks = np.unique(reservoir.leak_rate)
    several = f"leak rates {leaks[0]:g} to {leaks[-1]:g}"
    words = [
        f"{reservoir.n_units} {get_activation(reservoir.activation).name} units",
        *([topology] if isinstance(topology, str) else []),
        f"{connections} connections",
        "W as given" if radius is None else f"spectral radius {radius:g}",
        f"leak rate {leaks[0]:g}" if len(leaks) == 1 else several,
    ]
    return ", ".join(words)


def _words_for_certificate(certificate: Any) -> str:
    if certificate is None:
        return 'none asked for: bias="stable" asks for one'
    return (
        "proved to forget its start, for every input in the certified range: in the long run two "
        f"states come nearer by a factor of {certificate.rate:.4g} per step ({certificate.theorem})"
    )


def words_for_penalty(alpha: Any, path: Any, how: str) -> str:
    """Return which penalty the ridge uses, and how it was found among those that were tried.

    Parameters
    ----------
    alpha : float or array of shape (n_outputs,)
    path : array of shape (n_alphas,), or None
        The penalties that were tried; None if one was given.
    how : str
        What the penalties were compared by.
    """
    used = f"ridge, penalty {listed(alpha)}"
    if path is None:
        return used + ", given"
    tried = np.unique(np.asarray(path, dtype=float))
    said = f"{used}, the best of {tried.size} from {tried[0]:.3g} to {tried[-1]:.3g} by {how}"
    ends = np.isin(alpha, tried[[0, -1]]).any() and tried.size > 1
    return said + ". It stands at an end of them: a better one may lie beyond" if ends else said


def description_of_readout(model: Any) -> dict[str, str]:
    """Return the readout of an estimator with a source of features, and its errors."""
    if not hasattr(model, "coef_"):
        own = getattr(model, "readout_", None)
        if own is None:  # another kind, by its name
            return {"Readout": type(model._model.readout).__name__}
        return {"Readout": f"{type(own).__name__}, a scikit-learn estimator"}
    rule = getattr(model, "alpha_selection_", model.alpha_selection)
    rule = _RULES.get(rule, rule)
    path = getattr(model, "alphas_", None)
    found = {"Readout": words_for_penalty(model.alpha_, path, rule)}
    error = getattr(model, "training_error_", None)
    if error is not None:
        of = " of scores that aim at 1 and -1" if is_classifier(model) else ""
        found["Training error"] = f"{listed(error)} (root mean square{of}), {_rows_of(model)}"
    scores = getattr(model, "alpha_scores_", None)
    if scores is not None:
        best = np.min(scores, axis=0)
        if getattr(model, "alpha_selection_", None) == "forecast":
            found["Expected error"] = f"{best[0]:.3g} standard deviations of y, by {rule}"
        else:
            found["Expected error"] = f"{listed(np.sqrt(best))} on other rows like these, by {rule}"
    return found


def _rows_of(model: Any) -> str:
    rows, left_out = model._model.readout.n_rows, int(np.sum(model.washout_))
    return f"over {rows} rows, without {left_out} of washout"


def listed(values: Any) -> str:
    """Return a few numbers one by one, many by their range."""
    numbers: Array = np.atleast_1d(np.asarray(values, dtype=float))
    if np.unique(numbers).size == 1:
        return f"{numbers[0]:.3g}"
    if numbers.size <= _LISTED:
        return ", ".join(f"{number:.3g}" for number in numbers)
    return f"{numbers.min():.3g} to {numbers.max():.3g} ({numbers.size} outputs)"
