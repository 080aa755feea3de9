"""An estimate of a reservoir's memory that is fast enough for comparing many reservoirs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from reservoir._typing import Array
from reservoir.dynamics import Reservoir, run, run_many

_MOST_OBSERVED = 1000  # largest number of units that are observed
_MOST_DENSE = 2000  # largest number of units with a dense W; for more an estimate takes too long
_MOST_LAGS = 1000  # longest lag
_EACH = 50  # longest lag up to which every lag is measured
_WORTH = 0.01  # the sum is truncated where lags contribute less than this on average
_AHEAD = 60  # number of future inputs; no state depends on these, so their R^2 is due to chance
_RIDGE = 1e-12  # ridge penalty relative to the mean variance of the units


def estimated_memory(reservoir: Reservoir, draw: Callable[[int], Array]) -> float | None:
    """Estimate how many past inputs a linear readout can reconstruct from the states.

    It is a sum over lags and inputs, as in `memory_capacity`, but fit and score share rows: with p
    the mean R^2 of future inputs, due to chance, a lag counts (R^2 - p) / (1 - p). Lags above 50
    are sampled until they add less than .01 each. ``draw(n_rows)`` returns independent inputs,
    (n_rows, n_features + n_outputs). None if W is dense with over 2000 units; possibly too low with
    over 1000.
    """
    n_units = reservoir.n_units
    if n_units > _MOST_DENSE and not sp.issparse(reservoir.W):
        return None
    lags = _lags(n_units, float(np.min(reservoir.leak_rate)))
    observed = np.linspace(0, n_units - 1, min(n_units, _MOST_OBSERVED)).astype(int)
    n_rows = max(3000, 3 * len(observed))
    # if several series are run in parallel, a large dense W is read less often
    n_series = 8 if n_units >= 300 and not sp.issparse(reservoir.W) else 1
    length = int(lags[-1]) + -(-n_rows // n_series) + _AHEAD
    series = draw(n_series * length).reshape(n_series, length, -1)
    states = [H[lags[-1] : -_AHEAD, observed] for H in _driven(reservoir, series)]
    shifts = np.concatenate([-lags, np.arange(_AHEAD // 3, _AHEAD)])
    explained = _explained(np.concatenate(states), _shifted(series, shifts, int(lags[-1])))
    profile = explained.reshape(len(shifts), -1).sum(axis=1)
    chance = profile[len(lags) :].mean()
    n_inputs = series.shape[2]
    if not chance < 0.99 * n_inputs:
        return 0.0
    return _sum_of(lags, (profile[: len(lags)] - chance) / (1 - chance / n_inputs))


def _lags(n_units: int, leak: float) -> Array:
    """Return the lags at which the memory is measured, starting from 1."""
    longest = min(_MOST_LAGS, int(np.ceil(min(max(2 * n_units, 100), 500) / np.sqrt(leak))))
    sampled = np.geomspace(_EACH, longest, 40).astype(int)
    return np.unique(np.concatenate([np.arange(1, _EACH + 1), sampled]))


def _sum_of(lags: Array, profile: Array) -> float:
    """Return the sum of a profile over all lags, truncated where lags contribute almost nothing."""
    edges = np.concatenate([[0.5], 0.5 * (lags[1:] + lags[:-1]), [lags[-1] + 0.5]])
    spans = np.diff(edges)
    end = _EACH
    while end < len(lags):
        block = slice(end, end + 8)
        if np.average(profile[block], weights=spans[block]) < _WORTH:
            break
        end += 8
    return max(0.0, float(spans[:end] @ profile[:end]))


def _driven(reservoir: Reservoir, series: Array) -> list[Array]:
    """Return the states under several series, whose last columns are outputs that are fed back."""
    series = series.astype(reservoir.dtype)
    inputs, outputs = np.split(series, [reservoir.n_features], axis=2)
    if len(series) == 1:
        fed = outputs[0] if reservoir.n_outputs else None
        return [run(reservoir, inputs[0], feedback=fed, engine="numpy")]
    given = list(outputs) if reservoir.n_outputs else None
    return run_many(reservoir, list(inputs), feedback=given, engine="numpy")


def _shifted(series: Array, shifts: Array, first: int) -> Array:
    """Return the inputs shifted relative to each observed row, one column per shift and input."""
    rows = np.arange(first, series.shape[1] - _AHEAD)
    parts = series[:, rows[:, None] + shifts]  # (n_series, rows, shifts, columns)
    return parts.reshape(len(series) * len(rows), -1)


def _explained(H: Array, Y: Array) -> Array:
    """Return the fraction of each column's variance in Y that a linear map of H explains."""
    H, Y = H.astype(float), Y - Y.mean(axis=0)
    H -= H.mean(axis=0)
    scale = np.sqrt(np.mean(H**2))
    if not scale > 0:
        return np.zeros(Y.shape[1])
    H /= scale
    gram = H.T @ H
    gram[np.diag_indices(len(gram))] += _RIDGE * len(H)
    along = H.T @ Y
    solved = linalg.cho_solve(linalg.cho_factor(gram, lower=True), along)
    total = np.sum(Y**2, axis=0)
    return np.sum(along * solved, axis=0) / np.where(total > 0, total, np.inf)
