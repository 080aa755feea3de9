"""Ridge regressions from Gram matrices, with the penalty chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator

# Penalties in units of the mean eigenvalue of the Gram matrix, half a decade apart. For series
# without noise, even smaller penalties would be chosen, with readouts that amplify errors of the
# states by factors of hundreds.
PENALTIES = 10.0 ** np.arange(-9.0, 1.01, 0.5)
# Additional penalties for shrinkage towards given weights, large enough to keep these unchanged.
_FAR = 10.0 ** np.arange(1.5, 6.01, 0.5)
# Maximal degrees of freedom per row: beyond it, cross-validation divides by almost 0.
_MOST_FREEDOM = 0.98


def choose_ridge(
    gram: GramAccumulator, tau: float, *, far: bool = False
) -> tuple[Array, Array, float]:
    """Return coefficients and intercept of a ridge regression, and the penalty that is chosen.

    It is the largest penalty whose score in generalised cross-validation is within a factor
    1 + `tau` of the smallest score. Smaller weights cost little accuracy, and keep the iterations
    stable, since the regressions of one iteration affect the next. With `far`, larger penalties are
    compared, too.
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
    """Return the sums over blocks of (regressors, targets, weights), read one after the other.

    The columns of a block's regressors, a tuple of arrays, are joined to `n_features` columns.
    Weights of None are 1.
    """
    gram = GramAccumulator(n_features, n_outputs)
    for regressors, targets, weights in parts:
        block = np.empty((len(targets), n_features))
        np.concatenate(regressors, axis=1, out=block)
        gram.update(block, targets, weights, overwrite_h=True)
    return gram
