"""Ridge regressions from Gram matrices, the penalty by cross-validation with a tolerance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator

# In units of the mean eigenvalue of the Gram matrix: half decades. Series without noise would ask
# for less still, and get readouts that multiply what a wrong state says by hundreds.
PENALTIES = 10.0 ** np.arange(-9.0, 1.01, 0.5)
# Where the penalty pulls to weights that are there, so large that they stay.
_FAR = 10.0 ** np.arange(1.5, 6.01, 0.5)
_MOST_FREEDOM = 0.98  # of the number of rows: beyond, cross-validation divides by next to nothing


def choose_ridge(
    gram: GramAccumulator, tau: float, *, far: bool = False
) -> tuple[Array, Array, float]:
    """Return coefficients, intercept and penalty: the largest penalty that is nearly the best.

    "Nearly" is a score of generalised cross-validation within 1 + `tau` of the least one: the
    regressions of one iteration feed the next, and smaller weights cost little and break nothing.
    """
    basis = gram.path()
    penalties = (np.append(PENALTIES, _FAR) if far else PENALTIES) * basis.values.mean()
    pooled = basis.pooled()
    scores = np.array([pooled.gcv(alpha)[0] for alpha in penalties])
    freedom = 1 + basis.freedom(penalties)
    scores[freedom > _MOST_FREEDOM * gram.n_samples] = np.inf
    near = np.flatnonzero(scores <= (1 + tau) * scores.min())
    alpha = float(penalties[near[-1]])
    coef = basis.coef(alpha)
    return coef, gram.mean_y - coef @ gram.mean_h, alpha


def sum_rows(
    parts: Iterable[tuple[tuple[Array, ...], Array, Array | None]], n_features: int, n_outputs: int
) -> GramAccumulator:
    """Sum the products of regressors that stand in several arrays, block by block.

    Parameters
    ----------
    parts : iterable of (regressors, targets, weights)
        Regressors: a tuple of arrays with the same rows, put side by side one block at a time.
    n_features, n_outputs : int
    """
    gram = GramAccumulator(n_features, n_outputs)
    for regressors, targets, weights in parts:
        block = np.empty((len(targets), n_features))
        np.concatenate(regressors, axis=1, out=block)
        gram.update(block, targets, weights, overwrite_h=True)
    return gram
