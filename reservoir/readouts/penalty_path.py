"""Choice of a ridge penalty from a path by the scores of a rule, and what penalties imply."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_penalties
from reservoir.readouts.dependent_errors import NeighbourSums
from reservoir.readouts.selection import SELECTIONS, Penalties, SelectionRule, folds, least_score
from reservoir.readouts.sums import RidgeSolution, RowSums, Solved

# bounds of the default path: the mean and the total of the features' sums of squares times these
_PATH = (1e-11, 100.0)
_OF_SMALL = 1e-8  # lower bound, relative to the sums of squares of features in small units
_LEAST_OF_GRAM = 1e-11  # penalty whose effect is lost in the rounding errors of a Gram matrix


def ridge_path(
    gram: RowSums,
    alphas: ArrayLike,
    *,
    selection: str = "gcv",
    blocks: Sequence[RowSums] | None = None,
    rest: RowSums | None = None,
    fit_intercept: bool = True,
    per_target: bool = False,
) -> RidgeSolution:
    """Choose a ridge penalty from a path, and return the solution for it.

    Parameters
    ----------
    gram : GramAccumulator or QRAccumulator
        Sums over all rows.
    alphas : array of shape (n_alphas,), at least 0
        Penalties to choose from.
    selection : {"gcv", "reml", "halves", "blocked", "holdout"}, default="gcv"
        "gcv": generalised cross-validation [1]_, from one decomposition. "reml": restricted maximum
        likelihood [2]_, from the same decomposition; it is less misled by autocorrelated errors
        [3]_, and never selects a penalty of 0. "blocked": each block is scored by a fit on all
        other rows. "halves": as "blocked", with two blocks. "holdout": as "blocked", with a single
        block of held-out rows. Estimators also have the rules "reml_ar1", which needs the order of
        the rows, and "forecast", which needs closed loops; `gram` can provide neither.
    blocks : sequence of accumulators, optional
        Sums over parts of the rows of `gram`, each over consecutive rows. "blocked" requires two or
        more, "halves" two and "holdout" one.
    rest : accumulator, optional
        Sums over the rows of `gram` outside the blocks; not needed if the blocks contain all rows.
        A QRAccumulator requires it. Without it, a GramAccumulator subtracts the block, whose
        rounding errors remain.
    fit_intercept : bool, default=True
    per_target : bool, default=False
        Whether each output gets a separate penalty; otherwise one penalty minimises the sum of the
        scores over outputs, each in units of the variance of its targets.

    Returns
    -------
    RidgeSolution
        The solution fitted on all rows, with `scores` of shape (n_alphas, n_outputs) in the order
        of `alphas`. The penalty with the lowest score is chosen; of equal scores, the largest
        penalty.

    Raises
    ------
    ValueError
        If a penalty is negative or not finite, the blocks do not fit the selection, or the
        selection needs the order of the rows.

    References
    ----------
    .. [1] G. H. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method for
       choosing a good ridge parameter", Technometrics 21, 1979, eq. (1.4).
    .. [2] S. N. Wood, "Fast stable restricted maximum likelihood and marginal likelihood estimation
       of semiparametric generalized linear models", J. Royal Stat. Soc. B 73, 2011.
    .. [3] T. Krivobokova and G. Kauermann, "A note on penalized spline smoothing with correlated
       errors", J. American Stat. Assoc. 102, 2007.

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
    check_choice("selection", selection, SELECTIONS)
    if SELECTIONS[selection].neighbours:
        raise ValueError(
            f"selection={selection!r} compares neighbouring rows, but sums do not record which "
            f"rows were neighbours. Use ESNRegressor(alpha_selection={selection!r}), or another "
            'estimator with this parameter, or selection="reml" here.'
        )
    SELECTIONS[selection].check(selection, blocks)
    options = SELECTIONS[selection], fit_intercept, per_target, variances_of(gram)
    return along_penalties(gram, alphas, blocks, rest, *options)[0]


def along_penalties(
    gram: RowSums,
    alphas: ArrayLike,
    blocks: Sequence[RowSums] | None,
    rest: RowSums | None,
    rule: SelectionRule,
    fit_intercept: bool,
    per_target: bool,
    units: ArrayLike,
    neighbours: NeighbourSums | None = None,
) -> tuple[RidgeSolution, Solved]:
    """Return the solution of `ridge_path`, and the leverages of rows in that fit."""
    alphas = np.atleast_1d(check_penalties("alpha", alphas))
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must have shape (n_alphas,); got {alphas.shape}.")
    path = functools.cache(partial(gram.path, fit_intercept))
    parts = folds(gram, blocks or (), () if rest is None else (rest,))
    scores = rule.scores(Penalties(alphas, gram, path, parts, fit_intercept, neighbours))
    best = least_score(alphas, scores, per_target, units)
    # solved again: the path has larger rounding errors, and results must equal `solve` bitwise
    solved = gram._solve(best, fit_intercept, path)
    return gram._solution(solved.coef, best, fit_intercept, scores), solved


def variances_of(sums: RowSums) -> Array:
    """Return the variance of each target, (n_outputs,)."""
    zeros = np.zeros((1, sums.n_outputs, sums.n_features))
    constant = sums._solution(zeros[0], 0.0, True)
    return sums.squared_errors(zeros, constant.intercept[None])[0] / sums.weight


def default_path(sums: RowSums, leading: tuple[int, Array] | None = None) -> Array:
    """Return powers of ten, from penalties without effect to penalties that leave only the mean.

    Let S be the sums of squares of the features about their means. The path, (n_alphas,), goes from
    1e-11 times the mean of S, or 1e-8 times the 10 % quantile of S if that is smaller, to 100 times
    the total of S. `leading` are a number of features that stand for other ones, and the sums of
    squares of these.
    """
    squares = sums.square_sums()
    if leading is not None:
        squares = np.append(leading[1], squares[leading[0] :])
    if not squares.any():
        return np.ones(1)
    squares = squares[squares > sums.held * squares.max()]  # smaller ones are rounding errors
    least = min(_PATH[0] * squares.mean(), _OF_SMALL * np.quantile(squares, 0.1))
    ends = np.ceil(np.log10([least, _PATH[1] * squares.sum()]))
    exponents = range(int(ends[0]), int(ends[1]) + 1)
    return np.array([float(f"1e{k}") for k in exponents])  # 10.0**k has rounding errors


def check_alpha(name: str, value: Any) -> None:
    """Check that a value is a penalty, an array of penalties or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif check_penalties(name, value).ndim > 1 or np.size(value) == 0:
        raise ValueError(
            "alpha must be a number or have shape (n_alphas,), with penalties to choose from; got "
            f"shape {np.shape(value)}."
        )


def is_path(alpha: Any) -> bool:
    """Whether `alpha` is an array of penalties to choose from, or "auto"."""
    return isinstance(alpha, str) or np.ndim(alpha) > 0


def rule_for(selection: str, forgetting: float) -> SelectionRule:
    """Return the rule; "auto" is "halves", or "reml" with forgetting, which needs a single sum."""
    if selection == "auto":
        selection = "halves" if forgetting == 1 else "reml"
    return SELECTIONS[selection]


def solver_for(solver: str, alpha: Any, dtype: Any) -> str:
    """Return the class of sums to use; "auto" depends only on the penalties and the dtype.

    The choice is thus made before the first row, and does not depend on how rows are split.
    """
    if solver != "auto":
        return solver
    if is_path(alpha) and not np.ndim(alpha):
        return "cholesky"
    small = np.min(alpha) < _LEAST_OF_GRAM and np.dtype(dtype) == np.float64
    return "qr" if small else "cholesky"
