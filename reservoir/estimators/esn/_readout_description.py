"""What a fitted readout is, in words: its penalty, how that was found, what error is left."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from reservoir.estimators._described import listed, words_for_penalty

_RULES = {
    "gcv": "generalised cross-validation",
    "reml": "restricted maximum likelihood",
    "reml_ar1": "restricted maximum likelihood with AR(1) errors",
    "halves": "halves of the rows, each left out once",
    "blocked": "blocks of time left out",
    "holdout": "the last rows left out",
    "forecast": "free runs in the last rows",
}


def description_of_readout(model: Any) -> dict[str, str]:
    """Return the readout of an estimator with a source of features, and its errors."""
    if not hasattr(model, "coef_"):
        name = type(getattr(model, "readout_", model.readout)).__name__
        return {"Readout": f"{name}, a scikit-learn estimator"}
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
    rows, left_out = model._readout.n_rows, int(np.sum(model.washout_))
    return f"over {rows} rows, without {left_out} of washout"
