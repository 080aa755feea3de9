"""A ridge that penalises columns less the more they say of the targets, each by itself.

The weights of the columns are learned from the targets of all rows. So what is said of a row is
honest only where its weights, like its coefficients, come from other rows: from folds.
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
    leave_one_out_ridge,
    read_rows,
    ridge_at,
)
from reservoir.readouts.eigen import EPS, NOISE
from reservoir.readouts.selection import least_score

_TRIED = 3000  # rows that penalties are tried on, at most
_CONSTANT = 16  # roundings of its largest value, by which a constant target seems to vary
_LEAST = 1e-3  # added to F, so that no column is left out; taken for the share that is unexplained
_LARGE = 1000  # rows and columns from which on an eigendecomposition takes seconds


def folds_for(Y: Array) -> Array:
    """Return the number of the fold that each row is left out with, (n_rows,); -1 for none.

    Rows of similar targets go to different folds. Many folds, where rows are few, leave many rows
    to learn from; about 500 rows left out say enough.
    """
    n_rows = len(Y)
    n_folds = min(n_rows, max(5, min(20, 1000 // n_rows)))
    folds = np.empty(n_rows, int)
    folds[np.lexsort(Y.T)] = np.arange(n_rows) % n_folds
    return np.where(folds < -(-500 * n_folds // n_rows), folds, -1)


def tried_rows(Y: Array, folds: Array) -> Array:
    """Return the rows that penalties are tried on: all, or 3000 of them evenly by their targets.

    Those that are left out come first.
    """
    if len(Y) <= _TRIED:
        return np.arange(len(Y))
    order = np.lexsort(Y.T)
    out, kept = order[folds[order] >= 0], order[folds[order] < 0]
    wanted = max(_TRIED - len(out), 0)
    return np.sort(np.concatenate([out, kept[np.linspace(0, len(kept) - 1, wanted).astype(int)]]))


def relevance_weights(H: Array, Y: Array, weights: Array) -> Array:
    """Return a weight for each column: the root of its F statistic, their mean square 1.

    F compares what a regression of the column on the targets explains with what it leaves, per
    degree of freedom. For targets that code classes it is that of the one-way analysis of variance,
    for one number per row that of simple regression.

    Parameters
    ----------
    H : array of shape (n_rows, n_features)
        Constant columns get the weight 1, and do not count in the mean.
    Y : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,)
        Of the rows, positive.
    """
    rows, relevance = StandardRows(H, weights), _Relevance(Y, weights[None])
    varies = np.isfinite(rows.scale)
    if not varies.any():
        return np.ones(len(varies))
    F = np.concatenate([relevance.of(rows[:, at])[0] for at in rows.column_slices()])
    return np.where(varies, np.sqrt(F / F.mean(where=varies)), 1.0)


class _Relevance:
    """The F statistics of columns under several weights of the rows, such as 0 for a fold.

    Parameters
    ----------
    Y : array of shape (n_rows, n_outputs)
    weights : array of shape (n_parts, n_rows)
        Rows of weight 0 are not there.
    """

    def __init__(self, Y: Array, weights: Array) -> None:
        self.share = weights / weights.sum(axis=1, keepdims=True)
        self.directions = np.zeros((len(weights), Y.shape[1], len(Y)))
        self.per_freedom = np.empty((len(weights), 1))
        for k, share in enumerate(self.share):
            n_rows = np.count_nonzero(share)
            root = np.sqrt(share)[:, None]
            # what a constant differs from its mean by is rounding errors, no direction
            there = Y[share > 0]
            varies = np.ptp(there, axis=0) > _CONSTANT * EPS * np.abs(there).max(axis=0)
            spread = np.where((root > 0) & varies, Y - share @ Y, 0.0)
            spread = root * (spread / np.maximum(np.abs(spread).max(axis=0), np.finfo(float).tiny))
            left, sizes, _ = linalg.svd(spread, full_matrices=False)
            # an orthonormal basis of what the targets vary in
            basis = left[:, sizes > n_rows * np.finfo(float).eps]
            n_known = basis.shape[1]
            self.directions[k, :n_known] = (root * basis).T
            self.per_freedom[k] = max(n_rows - 1 - n_known, 1) / max(n_known, 1)

    def of(self, columns: Array) -> Array:
        """Return F of each column, (n_parts, n_columns): from 1e-3 to 1000 degrees of freedom."""
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

    Parameters
    ----------
    H : array of shape (n_rows, n_features)
    Y : array of shape (n_rows, n_outputs)
    alphas : array of shape (n_alphas,)
    weights : array of shape (n_rows,)
        Of the rows, positive.
    folds : array of int of shape (n_rows,)
        Rows of one number, from 0, are left out together, and weights of columns and coefficients
        are learned from the others; those of number -1 are never left out. Of more than 3000 rows
        so many are looked at, evenly by their targets: the penalty does not depend on how many
        there are.

    Returns
    -------
    LeaveOneOut
        Scores and left-out predictions are those of the folds; NaN for rows never left out.
    """
    H, Y, weights = read_rows(H, Y, weights)
    alphas = np.atleast_1d(check_penalties("alphas", alphas))
    said = np.full((len(alphas), *Y.shape), np.nan)
    tried = tried_rows(Y, folds)
    each = H[tried], Y[tried], alphas, weights[tried], folds[tried]
    said[:, tried] = left_out_by_folds(*each)
    known = np.zeros(len(Y), bool)
    known[tried] = folds[tried] >= 0
    share = weights[known] / weights[known].sum()
    scores = np.einsum("i,aij->aj", share, np.square(said[:, known] - Y[known]))
    best = least_score(alphas, scores, False)
    column_weights = relevance_weights(H, Y, weights)
    left_out = said[int(np.argmax(alphas == best))]
    if min(H.shape) > _LARGE:
        coef, intercept = ridge_at(H, Y, float(best), weights, column_weights)
    else:
        given = H, Y, np.atleast_1d(best), weights
        coef, intercept = leave_one_out_ridge(*given, column_weights=column_weights)[:2]
    return LeaveOneOut(coef, intercept, best, scores, left_out)


def left_out_by_folds(H: Array, Y: Array, alphas: Array, weights: Array, folds: Array) -> Array:
    """Return what fits on the other folds say of each row, (n_alphas, n_rows, n_outputs).

    Columns are standardised over all rows: that looks at no target.
    """
    rows, numbers = StandardRows(H, weights), np.unique(folds[folds >= 0])
    outside = [folds == number for number in numbers]
    relevance = _Relevance(Y, np.where(outside, 0.0, weights))
    said = np.full((len(alphas), *Y.shape), np.nan)
    by_products = np.count_nonzero(~outside[0]) <= H.shape[1]
    if by_products:
        products = _products(rows, relevance)
        for out in outside:
            said[:, out] = _said_by_rows(out, products.pop(0), Y, weights, alphas)
    else:
        F = np.concatenate([relevance.of(rows[:, at]) for at in rows.column_slices()], axis=1)
        for out, each in zip(outside, F, strict=True):
            said[:, out] = _said_by_columns(out, each, rows, Y, alphas)
    return said


def _products(rows: StandardRows, relevance: _Relevance) -> list[Array]:
    """Return the products of the rows for each fold's weights, in one pass over the columns."""
    n_rows, n_folds = len(rows.H), len(relevance.share)
    products = [np.zeros((n_rows, n_rows)) for _ in range(n_folds)]
    totals = np.zeros(n_folds)
    for at in rows.column_slices():
        block = rows[:, at]
        F = relevance.of(block)
        totals += F.sum(axis=1, where=np.isfinite(rows.scale[at]))
        for each, root in zip(products, np.sqrt(F), strict=True):
            weighed = block * root
            each += weighed @ weighed.T  # of which BLAS computes one half
    size = np.count_nonzero(np.isfinite(rows.scale))
    for each, total in zip(products, totals, strict=True):
        each *= size / total if size else 1.0
    return products


def _said_by_columns(out: Array, F: Array, rows: StandardRows, Y: Array, alphas: Array) -> Array:
    """Return what a fit on the other rows says of those left out, from products of columns."""
    kept, varies = rows.part(~out), np.isfinite(rows.scale)
    kept.weigh_columns(np.sqrt(F / F.mean(where=varies)) if varies.any() else np.ones(len(F)))
    basis = ColumnBasis(kept, Y[~out])
    said = np.empty((len(alphas), np.count_nonzero(out), Y.shape[1]))
    for k, alpha in enumerate(alphas):
        coef = basis.coef(alpha)
        intercept = basis.intercept(coef)
        coef = coef / kept.scale
        said[k] = rows.H[out] @ coef.T + (intercept - coef @ kept.mean)
    return said


def _said_by_rows(out: Array, products: Array, Y: Array, weights: Array, alphas: Array) -> Array:
    """Return what a fit on the other rows says of those left out, from products between rows.

    In place where it can be: for thousands of rows these matrices are the most that memory holds.
    """
    Y, weights = Y[~out], weights[~out]
    across, inner = products[np.ix_(out, ~out)], products[np.ix_(~out, ~out)]
    del products
    share, root = weights / weights.sum(), np.sqrt(weights)[:, None]
    mean = share @ Y
    # of columns about their means over the rows that are learned from
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
