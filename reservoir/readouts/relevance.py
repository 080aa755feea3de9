"""Ridge regression that penalises a column less the more it is related to the targets.

The weights of the columns depend on the targets. Predictions of held-out rows are therefore
unbiased only if both weights and coefficients are computed from other rows, which requires folds.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_penalties
from reservoir.readouts.dual import (
    ColumnBasis,
    LeaveOneOut,
    StandardRows,
    even_spread,
    leave_one_out_ridge,
    read_rows,
    ridge_at,
)
from reservoir.readouts.eigen import EPS, NOISE
from reservoir.readouts.selection import least_score

_CONSTANT = 16  # a target that varies by less, in rounding errors of its largest value, is constant
_ALONE = 50  # up to this number of rows, each row is held out alone
_FEW, _DEALS = 100, 3  # with fewer rows than 100, rows are assigned to folds three times
_LEFT_OUT = 500  # number of held-out rows that suffices to choose a penalty
_TRIED = 3000  # most rows that are used to choose a penalty, held-out rows included
_LEAST = 1e-3  # added to F so that no column is dropped; also the least unexplained fraction
_LARGE = 1000  # number of rows and columns above which an eigendecomposition takes seconds


def folds_for(Y: Array) -> Array:
    """Return the number of the fold in which each row is held out, (n_deals, n_rows).

    It is -1 for rows that are never held out, and -2 for rows that are not used to choose a
    penalty. As the result depends on which rows are held out together, few rows are assigned to
    folds several times. Of many rows, some 500 are held out, at most a fifth at a time. Rows with
    similar targets are assigned to different folds: rows are sorted by their targets, independently
    of units and of the names of classes; rows with equal targets stay in their order (see
    `_by_targets`).
    """
    n_rows = len(Y)
    if n_rows <= _ALONE:
        return np.arange(n_rows)[None]
    n_out = min(n_rows, _LEFT_OUT)
    n_folds = max(-(-5 * n_out // n_rows), 1000 // n_rows)
    folds = np.full((_DEALS if n_rows < _FEW else 1, n_rows), -1)
    order = _by_targets(Y)
    out = _evenly(n_rows, n_out)
    for k, each in enumerate(folds):  # one fold fewer each time, which changes the groups
        each[order[out]] = np.arange(n_out) % (n_folds - k)
    if n_rows > _TRIED:
        kept = np.delete(order, out)
        folds[:, np.delete(kept, _evenly(len(kept), _TRIED - n_out))] = -2
    return folds


def _by_targets(Y: Array) -> Array:
    """Return the rows sorted by their targets, which may be numbers or classes.

    Columns are ordered by their values in the first row, then in the second row, and so on, so that
    classes are numbered by their first appearance, whatever their column. A single column is paired
    with its negative, as it may encode two classes. Values are rounded relative to their range, so
    that equal targets remain equal in other units.
    """
    low, high = Y.min(axis=0), Y.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        columns = (Y - (low / 2 + high / 2)) / np.where(high > low, high - low, 1.0)
    columns = np.round(np.hstack([-columns, columns]) if Y.shape[1] == 1 else columns, 9)
    return np.lexsort(columns[:, np.lexsort(columns[::-1])].T)


def _evenly(n: int, n_wanted: int) -> Array:
    """Return `n_wanted` evenly spaced integers from 0 to n - 1."""
    return np.arange(n_wanted) * n // n_wanted


def relevance_weights(H: Array, Y: Array, weights: Array) -> Array:
    """Return a weight for each column: the root of its F statistic, with a mean square of 1.

    F is the ratio of explained to unexplained variance, per degree of freedom, in a regression of
    the column on the targets; for classes that of a one-way analysis of variance. Constant columns
    get the weight 1, and do not count in the mean. `weights`, (n_rows,), are positive weights of
    the rows.
    """
    rows, relevance = StandardRows(H, weights), _Relevance(Y, weights[None])
    varies = np.isfinite(rows.scale)
    if not varies.any():
        return np.ones(len(varies))
    F = np.concatenate([relevance.of(rows[:, at])[0] for at in rows.column_slices()])
    return np.where(varies, np.sqrt(F / F.mean(where=varies)), 1.0)


class _Relevance:
    """F statistics of columns under several sets of row weights, (n_parts, n_rows).

    Rows of weight 0, such as held-out rows, are excluded.
    """

    def __init__(self, Y: Array, weights: Array) -> None:
        self.share = weights / weights.sum(axis=1, keepdims=True)
        self.directions = np.zeros((len(weights), Y.shape[1], len(Y)))
        self.per_freedom = np.empty((len(weights), 1))
        for k, share in enumerate(self.share):
            n_rows = np.count_nonzero(share)
            root = np.sqrt(share)[:, None]
            # a constant differs from its mean by rounding errors, which are no direction
            used = Y[share > 0]
            varies = np.ptp(used, axis=0) > _CONSTANT * EPS * np.abs(used).max(axis=0)
            spread = np.where((root > 0) & varies, Y - share @ Y, 0.0)
            spread = root * (spread / np.maximum(np.abs(spread).max(axis=0), np.finfo(float).tiny))
            left, sizes, _ = linalg.svd(spread, full_matrices=False)
            # an orthonormal basis of the directions in which the targets vary
            basis = left[:, sizes > n_rows * np.finfo(float).eps]
            rank = basis.shape[1]
            self.directions[k, :rank] = (root * basis).T
            self.per_freedom[k] = max(n_rows - 1 - rank, 1) / max(rank, 1)

    def of(self, columns: Array) -> Array:
        """Return F of each column, (n_parts, n_columns), within bounds that keep it finite."""
        n_parts, n_outputs, n_rows = self.directions.shape
        mean = self.share @ columns
        total = self.share @ np.square(columns) - mean**2
        along = self.directions.reshape(-1, n_rows) @ columns
        explained = np.square(along).reshape(n_parts, n_outputs, -1).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(total > NOISE, explained / total, 0.0).clip(0.0, 1.0)
        return part / np.maximum(1 - part, _LEAST) * self.per_freedom + _LEAST


def relevance_ridge(
    H: Array, Y: Array, alphas: ArrayLike, weights: Array, folds: Array
) -> LeaveOneOut:
    """Fit a ridge on standardised columns times their relevance, its penalty chosen by folds.

    Weights of rows are positive; every row counts once in the standard deviations of columns.
    `folds` are as from `folds_for`: column weights and coefficients are learned without the rows of
    the fold, and all deals hold out the same rows. Scores are means over the deals; held-out
    predictions are (n_deals, n_rows, n_outputs), NaN for rows that are never held out.
    """
    H, Y, weights = read_rows(H, Y, weights)
    alphas = np.atleast_1d(check_penalties("alphas", alphas))
    tried = np.flatnonzero(folds[0] >= -1)
    each, truth, share = H[tried], Y[tried], weights[tried]
    predicted = np.stack(
        [left_out_by_folds(each, truth, alphas, share, deal) for deal in folds[:, tried]]
    )
    out = folds[0, tried] >= 0
    share, squares = share[out] / share[out].sum(), np.square(predicted[:, :, out] - truth[out])
    scores = np.einsum("i,daij->aj", share, squares) / len(folds)
    best = least_score(alphas, scores, False)
    left_out = np.full((len(folds), *Y.shape), np.nan)
    left_out[:, tried] = predicted[:, int(np.argmax(alphas == best))]
    column_weights = relevance_weights(H, Y, weights) * even_spread(H, weights)
    if min(H.shape) > _LARGE:
        coef, intercept = ridge_at(H, Y, float(best), weights, column_weights)
    else:
        given = H, Y, np.atleast_1d(best), weights
        coef, intercept = leave_one_out_ridge(*given, column_weights=column_weights)[:2]
    return LeaveOneOut(coef, intercept, best, scores, left_out)


def left_out_by_folds(H: Array, Y: Array, alphas: Array, weights: Array, folds: Array) -> Array:
    """Return predictions of each row by a fit on the other folds, (n_alphas, n_rows, n_outputs).

    Columns are standardised over all rows, which does not depend on the targets.
    """
    rows, numbers = StandardRows(H, weights), np.unique(folds[folds >= 0])
    rows.weigh_columns(even_spread(H, weights))
    outside = [folds == number for number in numbers]
    relevance = _Relevance(Y, np.where(outside, 0.0, weights))
    predicted = np.full((len(alphas), *Y.shape), np.nan)
    by_products = np.count_nonzero(~outside[0]) <= H.shape[1]
    if by_products:
        products = _products(rows, relevance)
        for out in outside:
            predicted[:, out] = _predicted_by_rows(out, products.pop(0), Y, weights, alphas)
    else:
        F = np.concatenate([relevance.of(rows[:, at]) for at in rows.column_slices()], axis=1)
        for out, each in zip(outside, F, strict=True):
            predicted[:, out] = _predicted_by_columns(out, each, rows, Y, alphas)
    return predicted


def _products(rows: StandardRows, relevance: _Relevance) -> list[Array]:
    """Return the products between rows for each fold's column weights, in one pass over columns."""
    n_rows, n_folds = len(rows.H), len(relevance.share)
    products = [np.zeros((n_rows, n_rows)) for _ in range(n_folds)]
    totals = np.zeros(n_folds)
    for at in rows.column_slices():
        block = rows[:, at]
        F = relevance.of(block)
        totals += F.sum(axis=1, where=np.isfinite(rows.scale[at]))
        for each, root in zip(products, np.sqrt(F), strict=True):
            weighted = block * root
            each += weighted @ weighted.T  # BLAS computes one half only
    size = np.count_nonzero(np.isfinite(rows.scale))
    for each, total in zip(products, totals, strict=True):
        each *= size / total if size else 1.0
    return products


def _predicted_by_columns(
    out: Array, F: Array, rows: StandardRows, Y: Array, alphas: Array
) -> Array:
    """Return predictions of held-out rows by a fit on the others, from products between columns."""
    kept, varies = rows.part(~out), np.isfinite(rows.scale)
    kept.weigh_columns(np.sqrt(F / F.mean(where=varies)) if varies.any() else np.ones(len(F)))
    basis = ColumnBasis(kept, Y[~out])
    predicted = np.empty((len(alphas), np.count_nonzero(out), Y.shape[1]))
    for k, alpha in enumerate(alphas):
        coef = basis.coef(alpha)
        intercept = basis.intercept(coef)
        coef = coef / kept.scale
        predicted[k] = rows.H[out] @ coef.T + (intercept - coef @ kept.mean)
    return predicted


def _predicted_by_rows(
    out: Array, products: Array, Y: Array, weights: Array, alphas: Array
) -> Array:
    """Return predictions of held-out rows by a fit on the others, from products between rows.

    Matrices are overwritten where possible: with thousands of rows they take most of the memory.
    """
    Y, weights = Y[~out], weights[~out]
    across, inner = products[np.ix_(out, ~out)], products[np.ix_(~out, ~out)]
    del products
    share, root = weights / weights.sum(), np.sqrt(weights)[:, None]
    mean = share @ Y
    # centre the columns on their means over the training rows
    middle = share @ inner
    across = across - (across @ share)[:, None] - (middle - middle @ share)
    inner -= middle[:, None]
    inner -= middle - middle @ share
    inner *= root
    inner *= root.T
    values, vectors = linalg.eigh(inner, overwrite_a=True, check_finite=False)
    along = vectors.T @ (root * (Y - mean))
    across = (across * root.T) @ vectors
    least = NOISE * values[-1] if values[-1] > 0 else 1.0
    gains = [1 / (np.maximum(values, 0.0) + max(alpha, least)) for alpha in alphas]
    return np.stack([across @ (gain[:, None] * along) + mean for gain in gains])
