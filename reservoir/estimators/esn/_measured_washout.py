"""The washout that a reservoir needs on the series at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.stability import transient_length


def is_measured(washout: Any) -> bool:
    """Whether the washout is to be measured."""
    return isinstance(washout, str) and washout == "measured"


def measured_washouts(
    source: FeatureSource,
    arrays: Sequence[Array],
    targets: Sequence[Array],
    starts: Sequence[Array],
) -> list[int]:
    """Return, for each sequence, the steps until states from different starts agree."""
    reservoir = getattr(source, "reservoir", None)
    if reservoir is None:
        raise ValueError(
            f'washout="measured" compares runs of a reservoir, and {type(source).__name__} has '
            'none. Give an integer or "auto".'
        )
    washouts = []
    for i, (X, Y, start) in enumerate(zip(arrays, targets, starts, strict=True)):
        # fed back is the target, one step late; before the first what the start says, or zeros
        feedback = None
        if reservoir.n_outputs:
            given = start[source.state_size :]
            first = given if given.size else np.zeros(reservoir.n_outputs)
            feedback = np.vstack([first, Y[:-1]])
        try:
            steps = transient_length(reservoir, X, feedback=feedback, random_state=0)
        except ValueError as error:
            raise ValueError(
                f'washout="measured" failed in sequence {i} (n_samples={len(X)}). {error}'
            ) from error
        if steps >= len(X):
            raise ValueError(
                f'washout="measured" leaves nothing to fit: states from different starts agree '
                f"only after {steps} steps; sequence {i} has n_samples={len(X)}. Give a longer "
                "series, or an integer."
            )
        washouts.append(steps)
    return washouts
