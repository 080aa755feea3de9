"""Ridge from fewer rows than features: the rows are kept, and the products between rows solved.

A ridge uses only the inner products of its rows H. If ``Z = P'L`` with ``Z Z' = H H'`` is their
pivoted Cholesky factor, the rows of Z have the same inner products in at most as many columns as
there are rows. All sums, rules and scores are computed from Z; its coefficients c are those of the
features, ``c L^-1 P H``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from reservoir._typing import Array
from reservoir.readouts.dual import StandardRows, inner_products
from reservoir.readouts.row_sample import RowSample
from reservoir.readouts.selection import FreeRuns
from reservoir.readouts.sums import raise_overflow

#: Rows that were added together: their part, numbers, features, targets and weights.
Block = tuple[int, Array, Array, Array, Array]


def block_of(
    numbers: Array, features: Array, targets: Array, weights: Array | None, skip_missing: bool
) -> Block:
    """Return copies of the rows to learn from."""
    weights = np.ones(len(numbers)) if weights is None else weights
    enters = weights > 0
    if skip_missing:
        enters &= ~np.isnan(targets).any(axis=1)
    features, targets = features[enters], targets[enters].astype(np.float64, copy=False)
    for name, rows in ("H", features), ("Y", targets):
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.einsum("ij,ij->j", rows, rows, dtype=np.float64))
        if not finite.all():
            raise_overflow(name, int(np.argmin(finite)))
    return 0, numbers[enters], features, targets, weights[enters]


class _Columns:
    """Columns of blocks of rows, of which slices are put together in double precision."""

    dtype = np.dtype(np.float64)

    def __init__(self, blocks: Sequence[Block], which: Sequence[int] | Array) -> None:
        self.blocks, self.which = blocks, np.asarray(which, dtype=np.intp)
        self.shape = sum(len(block[1]) for block in blocks), len(self.which)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: tuple[slice, slice]) -> Array:
        return np.concatenate([each[2][:, self.which[at[1]]] for each in self.blocks], dtype=float)


def standard_columns(blocks: Sequence[Block], which: Sequence[int] | Array) -> StandardRows:
    """Return the means and standard deviations of columns."""
    weights = np.concatenate([block[4] for block in blocks])
    return StandardRows(_Columns(blocks, which), weights)  # type: ignore[arg-type]


class FewRows:
    """The kept rows of a `RidgeReadout`, and the coefficients of its features for those of Z.

    Rows of the input stay beside Z, since they may have a penalty of their own.
    """

    def __init__(self, readout: Any) -> None:
        self.readout, inputs = readout, readout.inputs
        beside = range(0) if inputs is None else range(inputs.start, inputs.width(inputs.n_rows))
        self.beside = np.asarray(beside, dtype=np.intp)
        self.states = np.delete(np.arange(readout.width), self.beside)
        self.rows = standard_columns(readout.rows, self.states)
        self.squares = self.rows.square_sums()
        self.rows.scale[self.squares > 0] = 1.0  # the others are divided by infinity
        if not readout.settings.fit_intercept:
            self.rows.mean[:], self.rows.scale[:] = 0.0, 1.0

    def _decomposed(self) -> Array:
        """Return Z."""
        products = inner_products(self.rows)
        if not np.isfinite(products.trace()):
            raise ValueError("The Gram matrix overflows: scale the data down.")
        factor, pivots, rank, _ = linalg.lapack.dpstrf(products.T, lower=1, overwrite_a=1)
        rank = max(rank, 1)  # 0 if all rows are equal
        reduced = np.empty((len(factor), rank))
        reduced[pivots - 1] = np.tril(factor[:, :rank])
        self.pivots = pivots[:rank] - 1
        self.triangle = reduced[self.pivots]
        if self.triangle[0, 0] <= 0:
            self.triangle[0, 0] = 1.0
        return reduced

    def reduced(self) -> Any:
        """Return a readout with the same settings that has learned from Z."""
        one, settings = copy.copy(self.readout), self.readout.settings
        rows, blocks = self._decomposed(), one.rows
        # states of a run backwards follow the inputs: a column of zeros takes their place
        after = len(self.beside) > 0 and self.beside[-1] + 1 < one.width
        zeros = np.zeros((len(rows), int(after)))
        one.leading, one.parts = (rows.shape[1], self.squares), {}
        if one.inputs is not None:
            one.inputs = replace(one.inputs, start=rows.shape[1])
        rows = np.hstack([rows, _Columns(blocks, self.beside)[:, :], zeros])
        one.rows, one.width, rule = None, rows.shape[1], settings.rule
        if rule is not None:  # its closed loops need coefficients of the features
            rule = FreeRuns(lambda *fits: settings.rule.errors(*self.of_features(*fits)))
        one.settings = replace(settings, dtype="float64", one_dimensional=False, rule=rule)
        numbers, Y, w = (np.concatenate([block[k] for block in blocks]) for k in (1, 3, 4))
        if one.kept is not None:
            one.kept = RowSample()
            one.kept.add(numbers, rows, Y, w)
        parts = np.repeat([block[0] for block in blocks], [len(block[1]) for block in blocks])
        for part in np.unique(parts).tolist():
            which = parts == part
            one.update(rows[which], Y[which], w[which], part=part)
        return one

    def of_features(self, coefs: Array, intercepts: Array) -> tuple[Array, Array]:
        """Return coefficients of features, (..., n_features), and intercepts."""
        rank = len(self.pivots)
        beside = self.beside[: coefs.shape[-1] - rank]
        found = np.empty((*coefs.shape[:-1], len(self.states) + len(beside)))
        found[..., beside] = coefs[..., rank : rank + len(beside)]
        dual = coefs[..., :rank].reshape(-1, rank).T
        dual = linalg.solve_triangular(self.triangle, dual, trans="T", lower=True).T
        for at in self.rows.column_slices():
            each = dual @ self.rows[:, at][self.pivots]
            found[..., self.states[at]] = each.reshape(*coefs.shape[:-1], -1)
        return found, intercepts - found[..., self.states] @ self.rows.mean
