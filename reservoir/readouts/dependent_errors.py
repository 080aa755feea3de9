"""Restricted likelihood with autocorrelated errors, from sums over pairs of neighbouring rows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.sums import RowSums

#: Values of the autocorrelation of neighbouring errors that are tried.
RHOS = np.array([0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98])


@saved
@dataclass
class RunEnd:
    """The last row of a run of neighbours, which the next row of its sequence may continue.

    `number` is its position among all rows; `h`, (n_features,), and `y`, (n_outputs,), are its
    features and targets, `weight` > 0 its sample weight. `age` is the fraction of the weight that
    remains after forgetting. `pivots`, (n_rhos,), are those of the row for each rho as long as no
    row follows it.
    """

    number: int
    h: Array
    y: Array
    weight: float
    age: float
    pivots: Array


@saved
class NeighbourSums:
    """Sums over the differences of neighbouring rows, for errors with an autocorrelation rho.

    The errors of a run of neighbouring rows have the precision ``((1 - rho)^2 W + rho L) / s^2``,
    with a variance s^2, sample weights W, and the Laplacian L of the path along the run, with edges
    ``sqrt(w_t w_(t-1))``: AR(1) errors with reflecting ends, so that one sum serves every rho, and
    weighted means do not depend on it. `differences` are empty at first, and of the class of the
    sums over the rows; `starts` are the ascending first rows of sequences. `ends` has the last row
    of the last run of each sequence that may continue, by the number of sequences that began up to
    it, 0 for one that continues from `before`. `log_dets`, (n_rhos,), are of the precision over W:
    sums over rows of the log pivot (given the rows before) times the row's ageing factor.
    """

    def __init__(self, differences: RowSums, starts: Array, before: RunEnd | None = None) -> None:
        self.differences, self.starts = differences, starts
        self.ends = {} if before is None else {0: copy.copy(before)}
        self.log_dets = np.zeros(len(RHOS))

    def add(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Add rows, in order within each sequence; sequences may be interleaved.

        `numbers`, (n_rows,), are the positions of the rows among all rows ever learned from. The
        other arrays have a row each and are not changed. Rows of weight zero, or with a NaN target,
        are skipped.
        """
        enters = ~np.isnan(targets).any(axis=1)
        if weights is not None:
            enters &= weights > 0
        # neighbours are not adjacent where sequences are interleaved
        enter = np.flatnonzero(enters)
        enter = enter[np.argsort(numbers[enter], kind="stable")]
        numbers, n = numbers[enter], len(enter)
        if n == 0:
            return
        H, Y = (each[enter].astype(np.float64, copy=False) for each in (features, targets))
        w = np.ones(n) if weights is None else weights[enter]
        runs = np.searchsorted(self.starts, numbers, side="right")
        joined = np.zeros(n + 1, bool)  # whether each row follows its neighbour
        joined[1:-1] = (np.diff(numbers) == 1) & (np.diff(runs) == 0)
        before = self._ends_before(numbers, runs, joined)
        self._add_pivots(numbers, runs, H, Y, w, joined, before)
        rows = [np.vstack([each[:1], each[:-1]]) for each in (H, Y)]
        roots = np.sqrt(w)
        edges = roots * np.concatenate([roots[:1], roots[:-1]])
        alone = ~joined[:-1]
        for previous, each in zip(rows, (H, Y), strict=True):
            previous[alone] = each[alone]
        for i, end in before.items():
            rows[0][i], rows[1][i], edges[i] = end.h, end.y, roots[i] * np.sqrt(end.weight)
        # a row without a neighbour is added as a zero difference: both sums then age equally
        with np.errstate(over="ignore", invalid="ignore"):
            h, y = np.subtract(H, rows[0], out=rows[0]), Y - rows[1]
        self.differences.update(h, y, None if weights is None else edges, overwrite_h=True)

    def _ends_before(self, numbers: Array, runs: Array, joined: Array) -> dict[int, RunEnd]:
        """Return the ends of earlier runs that these rows continue, by position of the row."""
        found = {}
        for i in np.flatnonzero(~joined[:-1]).tolist():
            end = self.ends.get(int(runs[i]))
            if end is not None and end.number == numbers[i] - 1:
                found[i] = end
        return found

    def _add_pivots(
        self,
        numbers: Array,
        runs: Array,
        H: Array,
        Y: Array,
        w: Array,
        joined: Array,
        before: dict[int, RunEnd],
    ) -> None:
        """Add the log determinant of a tridiagonal matrix for each rho, and store ends of runs.

        Multiplied by ``W^(-1/2)`` from both sides, the precision has the entries -rho next to its
        diagonal.
        """
        ageing, ages = self.differences._row_ages(len(w))
        ages = np.ones(len(w)) if ages is None else ages
        rho = RHOS[:, None]
        ratio = np.sqrt(w[1:] / w[:-1]) * joined[1:-1]
        ties = np.zeros(len(w))
        ties[:-1] += ratio
        ties[1:] += np.divide(1.0, ratio, out=np.zeros_like(ratio), where=ratio > 0)
        diagonal = (1 - rho) ** 2 + rho * ties
        self.log_dets *= ageing
        for end in self.ends.values():
            end.age *= ageing
        for i, end in before.items():
            step = np.sqrt(w[i] / end.weight)
            pivots = end.pivots + RHOS * step
            self.log_dets += end.age * np.log(pivots / end.pivots)
            diagonal[:, i] += RHOS / step - RHOS**2 / pivots
        # one matrix for all runs and every rho, with zeros next to the diagonal where they meet
        off_diagonal = -rho * joined[1:]
        pivots, _, _ = linalg.lapack.dpttrf(diagonal.ravel(), off_diagonal.ravel()[:-1])
        pivots = pivots.reshape(diagonal.shape)
        self.log_dets += np.log(pivots) @ ages
        over = np.searchsorted(self.starts, numbers + 1, side="right") != runs
        for i in np.flatnonzero(~joined[1:]).tolist():
            run, of_row = int(runs[i]), (float(w[i]), float(ages[i]), pivots[:, i].copy())
            self.ends[run] = RunEnd(int(numbers[i]), H[i].copy(), Y[i].copy(), *of_row)
            if over[i]:
                del self.ends[run]

    @property
    def last(self) -> RunEnd | None:
        """The last row if a later call may continue from it, else None."""
        return copy.copy(self.ends[max(self.ends)]) if self.ends else None

    def merge(self, other: NeighbourSums) -> None:
        """Add the later rows of another `NeighbourSums`, whose sums must not be used again."""
        ageing = other.differences.ageing
        self.differences.merge(other.differences)
        self.log_dets = self.log_dets * ageing + other.log_dets
        self.ends = other.ends

    def after(self, earlier: NeighbourSums) -> NeighbourSums:
        """Return sums over earlier rows followed by these rows; do not use these sums again."""
        one, ageing = copy.copy(self), self.differences.ageing
        one.differences = self.differences.after(earlier.differences)
        one.log_dets = earlier.log_dets * ageing + self.log_dets
        return one

    def separate(self) -> None:
        """Start a new sequence: the next rows are not neighbours of the previous ones."""
        self.ends = {}

    def fade(self, *, forgetting: float | None = None, factor: float = 1.0) -> None:
        """Multiply the weights of all rows so far by `factor`, and set the forgetting factor."""
        if forgetting is not None:
            self.differences.forgetting = forgetting
        self.differences = self.differences.discounted(factor)
        self.log_dets = self.log_dets * factor
        for end in self.ends.values():
            end.age *= factor

    def scores(self, sums: RowSums, alphas: Array, fit_intercept: bool) -> Array:
        """Return the restricted likelihood of each penalty, at the rho that is best for it.

        The result is (n_alphas, n_outputs), in the units of `PenaltyPath.reml`, to which it is
        equal for rho = 0; infinite for a penalty of 0. `sums` are over the same rows.
        """
        scores = np.full((len(alphas), sums.n_outputs), np.inf)
        m = sums._n_contrasts(fit_intercept)
        positive = alphas > 0
        if m <= 0 or not positive.any():
            return scores
        least = float(alphas[positive].min())
        # try every rho: a second minimum is rare, but may be at another penalty
        for rho, log_det in zip(RHOS.tolist(), self.log_dets.tolist(), strict=True):
            found = sums._likelihood(self.differences, rho, least, fit_intercept)
            # the intercept takes one contrast, of the precision (1 - rho)^2
            log_det -= 2 * np.log1p(-rho) * fit_intercept
            each = np.array([found.reml(alpha) for alpha in alphas[positive]])
            with np.errstate(over="ignore", invalid="ignore"):  # if rows are almost forgotten
                each *= np.exp(-log_det / m)
            scores[positive] = np.fmin(scores[positive], each)
        return scores


def starts_of(lengths: Sequence[int], number: int, continues: bool) -> Array:
    """Return the numbers of the first rows of sequences of the given lengths.

    `number` is the number of the first row of all. If the first sequence `continues` from an
    earlier call, its first row is left out.
    """
    starts = number + np.cumsum([0, *lengths[:-1]])
    return starts[1:] if continues else starts
