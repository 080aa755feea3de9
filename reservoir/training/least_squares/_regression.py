"""Ridge regressions from Gram matrices, with the penalty chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator

# In units of the mean eigenvalue of the Gram matrix: half decades. For series without noise even
# smaller penalties would be chosen, with readouts that amplify errors of the states by hundreds.
PENALTIES = 10.0 ** np.arange(-9.0, 1.01, 0.5)
# Used if the penalty shrinks towards given weights: large enough to keep these unchanged.
_FAR = 10.0 ** np.arange(1.5, 6.01, 0.5)
_MOST_FREEDOM = 0.98  # times the number of rows: above it, cross-validation divides by almost 0


def choose_ridge(
    gram: GramAccumulator, tau: float, *, far: bool = False
) -> tuple[Array, Array, float]:
    """Return coefficients, intercept and penalty: the largest penalty that is nearly the best.

    "Nearly" means a score of generalised cross-validation within a factor 1 + `tau` of the smallest
    one. Smaller weights cost little accuracy, and keep iterations stable, since the regressions of
    one iteration affect the next.
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
    """Sum the products of regressors, given in several arrays, block by block.

    Parameters
    ----------
    parts : iterable of (regressors, targets, weights)
        Regressors: a tuple of arrays with the same rows, which are concatenated for each block.
    n_features, n_outputs : int
    """
    gram = GramAccumulator(n_features, n_outputs)
    for regressors, targets, weights in parts:
        block = np.empty((len(targets), n_features))
        np.concatenate(regressors, axis=1, out=block)
        gram.update(block, targets, weights, overwrite_h=True)
    return gram
