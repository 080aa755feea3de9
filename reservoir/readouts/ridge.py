"""Choosing a penalty from a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_penalties
from reservoir.readouts.eigen import Eigenbasis
from reservoir.readouts.gram import GramAccumulator, RidgeSolution


def ridge_path(
    gram: GramAccumulator,
    alphas: ArrayLike,
    *,
    selection: str = "gcv",
    blocks: Sequence[GramAccumulator] | None = None,
    fit_intercept: bool = True,
    per_target: bool = False,
) -> RidgeSolution:
    """Choose a ridge penalty from a path, and solve for it.

    Parameters
    ----------
    gram : GramAccumulator
        All rows.
    alphas : array of shape (n_alphas,), at least 0
    selection : {"gcv", "blocked", "holdout"}, default="gcv"
        "gcv": generalised cross-validation [1]_, from one eigendecomposition. "blocked": each
        block is scored by a fit on all other rows. "holdout": the same with one block, the rows
        held out.
    blocks : sequence of GramAccumulator, optional
        Parts of `gram`, each over consecutive rows. Needed by "blocked" (two or more) and
        "holdout" (one).
    fit_intercept : bool, default=True
    per_target : bool, default=False
        Whether each output gets a penalty of its own; else the sum over outputs decides.

    Returns
    -------
    RidgeSolution
        Fitted on all rows; `scores` of shape (n_alphas, n_outputs) in the order of `alphas`.
        Equal scores: the larger penalty.

    Raises
    ------
    ValueError
        If a penalty is negative or not finite, or the blocks do not fit the selection.

    References
    ----------
    .. [1] G. H. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method for
       choosing a good ridge parameter", Technometrics 21, 1979, eq. (1.4).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import GramAccumulator, ridge_path
    >>> rng = np.random.default_rng(0)
    >>> H = rng.normal(size=(200, 5))
    >>> y = 0.1 * H.sum(axis=1) + rng.normal(size=200)
    >>> gram = GramAccumulator(5, 1).update(H, y)
    >>> solution = ridge_path(gram, [1e-3, 1e2, 1e5])
    >>> solution.alpha, solution.scores.shape
    (100.0, (3, 1))
    """
    check_choice("selection", selection, ("gcv", "blocked", "holdout"))
    alphas = np.atleast_1d(check_penalties("alpha", alphas))
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must have shape (n_alphas,); got {alphas.shape}.")
    path = Eigenbasis(gram, fit_intercept)
    if selection == "gcv":
        scores = np.array([path.gcv(alpha) for alpha in alphas])
    else:
        scores = _block_scores(gram, alphas, _check_blocks(selection, blocks), fit_intercept)
    order = np.argsort(-alphas, kind="stable")  # ties go to the larger penalty
    if per_target:
        best: Any = alphas[order[np.argmin(scores[order], axis=0)]]
    else:
        best = float(alphas[order[np.argmin(scores[order].sum(axis=1))]])
    # Cholesky loses less to rounding than the eigenbasis, and agrees with `solve` to the last bit
    coef = None if per_target else gram._cholesky_coef(best, fit_intercept)
    coef = path.coef(best) if coef is None else coef
    return gram._solution(coef, best, fit_intercept, scores)


def _check_blocks(selection: str, blocks: Any) -> Sequence[GramAccumulator]:
    n_blocks = 0 if blocks is None else len(blocks)
    if selection == "holdout" and n_blocks != 1:
        raise ValueError(f"selection='holdout' needs blocks=[held_out]; got {n_blocks} blocks.")
    if selection == "blocked" and n_blocks < 2:
        raise ValueError(f"selection='blocked' needs two blocks or more; got {n_blocks}.")
    return blocks


def _block_scores(
    gram: GramAccumulator, alphas: Array, blocks: Sequence[GramAccumulator], fit_intercept: bool
) -> Array:
    """Mean squared error on each block of a fit on the rest, shape (n_alphas, n_outputs)."""
    squared_error = np.zeros((len(alphas), gram.n_outputs))
    for block in blocks:
        rest = gram.copy().subtract(block)
        if rest.n_samples == 0 or block.n_samples == 0:
            raise ValueError(
                f"A block of {block.n_samples} rows leaves {rest.n_samples} of "
                f"{gram.n_samples} to fit; both must be at least 1. Use fewer blocks."
            )
        path = Eigenbasis(rest, fit_intercept)
        block_gram = block.gram
        for score, alpha in zip(squared_error, alphas, strict=True):
            coef, intercept, _, _ = rest._solution(path.coef(alpha), alpha, fit_intercept)
            inside = np.einsum("ij,ij->i", coef, coef @ block_gram - 2 * block.cross.T)
            offset = block.mean_y - coef @ block.mean_h - intercept
            score += np.maximum(block.sum_y2 + inside, 0.0) + block.weight * offset**2
    return squared_error / sum(block.weight for block in blocks)
