"""The parameters that the echo state estimators share, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._validation import (
    check_choice,
    check_count,
    check_n_jobs,
    check_number,
    check_penalties,
    check_switch,
)

_SELECTIONS = ("gcv", "blocked", "holdout")


def check_parameters(estimator: Any) -> None:
    """Refuse parameters of an echo state estimator that cannot be right, or not together."""
    check_number("noise", estimator.noise, low=0.0)
    for name in ("fit_intercept", "include_input", "feedback", "alpha_per_target"):
        check_switch(name, getattr(estimator, name))
    check_choice("alpha_selection", estimator.alpha_selection, _SELECTIONS)
    if not isinstance(estimator.verbose, (bool, np.bool_)):
        check_count("verbose", estimator.verbose, minimum=0)
    check_n_jobs(estimator.n_jobs)
    if check_penalties("alpha", estimator.alpha).ndim > 1 or np.size(estimator.alpha) == 0:
        raise ValueError(
            "alpha must be a number or have shape (n_alphas,), penalties to choose from; got "
            f"shape {np.shape(estimator.alpha)}."
        )
    if estimator.missing_targets == "skip" and estimator.feedback:
        raise ValueError(
            "missing_targets='skip' cannot go with feedback=True: each target is fed back "
            "into the next step. Fill the missing targets, or use feedback=False."
        )
    if estimator.readout is not None:
        if np.ndim(estimator.alpha) > 0:
            raise ValueError(
                "alpha is an array, but readout= replaces the ridge that would choose from "
                "it. Give a number, or search over the readout's own parameters."
            )
        if not hasattr(estimator.readout, "fit") or not hasattr(estimator.readout, "predict"):
            raise TypeError(
                f"readout must be a scikit-learn estimator or None; got {estimator.readout!r}."
            )
