"""Class probabilities: the softmax of the scores of classes at a fitted temperature."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import optimize
from scipy.special import softmax

from reservoir._typing import Array
from reservoir.readouts.eigen import EPS
from reservoir.readouts.row_sample import RowSample
from reservoir.readouts.selection import centre_of_codes
from reservoir.readouts.sums import RidgeSolution, Solved

# Bounds on 1 / temperature for scores of magnitude 1: at the lower bound all classes are equally
# probable to three digits; at the upper bound any difference makes one class certain.
_LEAST, _MOST = 1e-3, 1e3
_N_PARTS = 8  # consecutive parts of a sample, each scored by a fit without it
_LEAST_LEFT = np.sqrt(EPS)  # least 1 - leverage: below it, a row's error is only a rounding error


def probabilities(scores: Array, temperature: float) -> Array:
    """Return the probabilities of the classes, (n_rows, n_classes).

    They are the softmax of ``scores / temperature``. For two classes, scores may be (n_rows, 1):
    those of the second class, and the negative of those of the first.
    """
    scores = _by_class(scores)
    with np.errstate(over="ignore"):
        scaled = scores / temperature
        overflow = ~np.isfinite(scaled).all(axis=1, keepdims=True)
        if overflow.any():  # differences from the largest score may overflow: exp(-inf) is 0
            below = (scores - scores.max(axis=1, keepdims=True)) / temperature
            scaled = np.where(overflow, below, scaled)
        return softmax(scaled, axis=1)


def log_probabilities(shares: Array) -> Array:
    """Return the logarithms of probabilities, an array of the same shape; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(shares)


def fitted_temperature(
    scores: Array, columns: Array, weights: Array | None = None, *, in_order: bool = False
) -> float:
    """Return the temperature under which labels are most probable, given scores of held-out rows.

    It does not change the order of the classes (Guo et al. 2017, section 4.2). As scores that
    separate the classes would give 0, the target probability of each label is 1 - 1 / (n + 2), n
    the effective number of rows, and the remainder is spread over all classes by their frequencies
    (after Platt 1999, eq. 2.2). `in_order` of time, n is at most twice the number of runs of equal
    labels: rows of a run are not independent. `scores` and `columns` are (n_rows, n_classes), or
    (n_rows, 1) for two classes; the label's column is the largest of its row, a single one is
    positive for the second class. The result is 1.0 without rows, or if the scores of classes do
    not differ.
    """
    scores, right = _by_class(scores), np.argmax(_by_class(columns), axis=1)
    weights = np.ones(len(scores)) if weights is None else weights
    kept = weights > 0
    scores, right, weights = scores[kept].astype(float), right[kept], weights[kept]
    if len(scores) == 0:
        return 1.0
    scores = scores - scores.mean(axis=1, keepdims=True)
    spread = float(np.abs(scores).max())
    if spread == 0.0:
        return 1.0
    scores = scores / spread  # dividing by the largest score first keeps squares in range
    size = float(np.sqrt(np.mean(scores**2)))
    scores, spread = scores / size, spread * size
    weights = weights / weights.max()
    n = weights.sum() ** 2 / (weights @ weights)  # effective number of rows (Kish)
    if in_order:
        n = min(n, 2.0 * (1 + np.count_nonzero(np.diff(right))))
    shares = np.bincount(right, weights, minlength=scores.shape[1]) / weights.sum()
    shares = (n * shares + 1) / (n + scores.shape[1])
    below = scores - scores.max(axis=1, keepdims=True)
    target = ((n + 1) * scores[np.arange(len(scores)), right] + scores @ shares) / (n + 2)

    def slope(log_sharpness: float) -> float:
        p = np.exp(np.exp(log_sharpness) * below)
        return float(weights @ (np.einsum("ij,ij->i", p, scores) / p.sum(axis=1) - target))

    # likelihood is concave in 1 / temperature: it has one maximum, possibly at a bound
    low, high = np.log(_LEAST), np.log(_MOST)
    if slope(low) >= 0:
        best = low
    elif slope(high) <= 0:
        best = high
    else:
        best = optimize.brentq(slope, low, high, xtol=1e-7)
    return spread / float(np.exp(best))


def _by_class(columns: Array) -> Array:
    """Return one column for each class, even if there are two classes."""
    return np.hstack([-columns, columns]) if columns.shape[1] == 1 else columns


def held_out_temperature(
    kept: RowSample, solution: RidgeSolution, solved: Solved, of_intercept: float, factor: float
) -> float:
    """Return the temperature fitted to scores of rows whose part of time is left out.

    It is raised if the scores of rows in held-out blocks are further too large: a sample does not
    contain all rows of a part, whose other rows are then in the fit. `solution` and `solved` are of
    the fit on all rows. The intercept adds the leverage `of_intercept` to each row, per unit of
    weight. `factor` gives the scores of rows in held-out blocks the least error, or is 1.
    """
    if len(kept) == 0:
        return 1.0
    _, features, targets, weights = kept.rows()
    features = features.astype(np.float64, copy=False)
    errors = targets - (features @ solution.coef.T + solution.intercept)
    parts = _parts_of_time(weights)
    for part, leverage in zip(parts, solved.leverage(features, parts), strict=True):
        errors[part] = _left_out(errors[part], weights[part], leverage + of_intercept)
    scores = targets - errors
    centre = centre_of_codes(targets.shape[1])
    deviations = (scores - centre) * weights[:, None]
    total = float((deviations * (scores - centre)).sum())
    own = float((deviations * (targets - centre)).sum()) / total if total > 0 else factor
    ratio = max(min(own, 1.0) / factor, 1.0)
    return fitted_temperature(scores, targets, weights, in_order=True) * ratio


def _parts_of_time(weights: Array) -> list[slice]:
    """Return consecutive parts of rows, of equal weight."""
    before = np.cumsum(weights)
    targets = before[-1] * np.arange(1, _N_PARTS) / _N_PARTS * (1 + _LEAST_LEFT)
    ends = [0, *np.searchsorted(before, targets, side="right").tolist(), len(weights)]
    return [slice(start, end) for start, end in itertools.pairwise(ends) if start < end]


def _left_out(errors: Array, weights: Array, leverage: Array) -> Array:
    """Return the errors of rows, (n_rows, n_outputs), of a fit without all of them."""
    roots = np.sqrt(weights)
    values, vectors = np.linalg.eigh(leverage * np.outer(roots, roots))
    along = np.swapaxes(vectors, -1, -2) @ (errors.T * roots)[..., None]
    along /= np.maximum(1 - values, _LEAST_LEFT)[..., None]
    return ((vectors @ along)[..., 0] / roots).T
