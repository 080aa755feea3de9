"""Features of all rows at once, for readouts that need them."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics import Reservoir
from reservoir.estimators._engine import Job, iter_features
from reservoir.estimators._saturation import Activity


def stored_features(
    reservoir: Reservoir,
    jobs: list[Job],
    *,
    noise: float,
    include_input: bool,
    engine: str,
    skip_missing: bool,
) -> tuple[Array, Array, Array | None, Array, Activity]:
    """Return features, targets and weights of every row behind the washout.

    And the end state, and what the units have done.
    """
    features, targets, weights = [], [], []
    n_units = reservoir.n_units
    activity = Activity.of_nothing(n_units)
    for job in jobs:
        blocks = iter_features(
            reservoir, job, noise=noise, include_input=include_input, engine=engine
        )
        rows = np.concatenate([block.copy() for _, block in blocks])
        activity.add_behind(job.skip, rows[:, :n_units], job.state, reservoir.leak_rate)
        keep = np.arange(len(rows)) >= job.skip
        if skip_missing:
            keep &= ~np.isnan(job.Y).any(axis=1)
        features.append(rows[keep])
        targets.append(job.Y[keep])
        if job.weights is not None:
            weights.append(job.weights[keep])
    state = rows[-1, :n_units].copy()
    stacked = np.concatenate(weights) if weights else None
    return np.concatenate(features), np.concatenate(targets), stacked, state, activity
