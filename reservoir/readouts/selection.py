"""Rules that choose a ridge penalty: the parts of the rows that they need, and their scores.

A rule is an entry of `SELECTIONS`; estimators and `ridge_path` refer to it by that name only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir.readouts.contract import Cuts
from reservoir.readouts.dependent_errors import NeighbourSums
from reservoir.readouts.eigen import PenaltyPath
from reservoir.readouts.sums import RowSums

_N_BLOCKS = 5  # folds of the blocked selection, scikit-learn's default number
_HELD_OUT = 0.2  # share of the rows that the hold-out selection scores on
_N_GROUPS = 5  # one in so many rows or sequences is held out for closed loops

#: Sums over the rows of a fit, and over the rows on which it is scored.
Folds = Iterable[tuple[RowSums, RowSums]]


class SelectionRule(ABC):
    """Choice of a penalty from a path by the lowest score; of equal scores by the larger penalty.

    A rule gets all rows in one sum, and folds if it needs parts. Sums may be of either class in
    `SOLVERS`.

    Attributes
    ----------
    min_blocks : int
        Least number of blocks (sums over parts of the rows) that the rule needs; 0 for none. A rule
        that needs blocks cannot be used in partial_fit, which keeps one sum over all rows, unless
        the blocks alternate.
    alternates : bool
        Whether the blocks are two halves, to which rows are assigned in turn by `Runs`.
    neighbours : bool
        Whether the rule also needs sums over the differences of neighbouring rows.
    in_loops : bool
        Whether it needs closed loops, which an estimator runs for it.
    """

    min_blocks = 0
    alternates = neighbours = in_loops = False

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return the part of the sums that each row belongs to.

        Parameters
        ----------
        lengths, skips : sequences of int
            Rows of each sequence, and how many at its start are washout.

        Returns
        -------
        list of tuples of pairs (part, end)
            A part contains the rows of a sequence from the previous pair's `end` to this `end`.
        """
        return [((0, length),) for length in lengths]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        """Return the parts on which fits are scored."""
        return []

    def check(  # noqa: B027 (most rules have nothing to check)
        self, name: str, blocks: Sequence[RowSums] | None
    ) -> None:
        """Check that the rule, called `name`, can score on these blocks."""

    @abstractmethod
    def scores(
        self,
        sums: RowSums,
        path: Callable[[], PenaltyPath],
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
        neighbours: NeighbourSums | None = None,
    ) -> Array:
        """Return an estimate of the mean squared error, (n_alphas, n_outputs).

        Parameters
        ----------
        sums : accumulator
            Sums over all rows.
        path : callable
            Returns their ridge solutions for any penalty.
        alphas : array of shape (n_alphas,)
        folds : iterable of (fitted, scored)
            For each block two sums: over all other rows, computed when needed, and over the block.
        fit_intercept : bool
        neighbours : NeighbourSums, optional
            Of all rows, if the rule needs them.
        """


class _FromPath(SelectionRule):
    """A score of each penalty from one decomposition of all rows, without held-out rows."""

    def __init__(self, score: Callable[[PenaltyPath, float], Array]) -> None:
        self.score = score

    def scores(
        self,
        sums: RowSums,
        path: Callable[[], PenaltyPath],
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
        neighbours: NeighbourSums | None = None,
    ) -> Array:
        found = path()
        return np.array([self.score(found, alpha) for alpha in alphas])


class _NeighboursDepend(SelectionRule):
    """Restricted maximum likelihood with AR(1) errors, from sums over neighbouring rows."""

    neighbours = True

    def scores(
        self,
        sums: RowSums,
        path: Callable[[], PenaltyPath],
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
        neighbours: NeighbourSums | None = None,
    ) -> Array:
        assert neighbours is not None
        return neighbours.scores(sums, alphas, fit_intercept)


class _Blocked(SelectionRule):
    """Blocks of consecutive rows, each scored by a fit on all other rows."""

    min_blocks = 2

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        total, before, cuts = sum(kept), 0, []
        ends = [round(total * (k + 1) / _N_BLOCKS) for k in range(_N_BLOCKS)]
        for skip, n in zip(skips, kept, strict=True):
            within = [skip + min(max(end - before, 0), n) for end in ends]
            cuts.append(tuple(enumerate(within)))
            before += n
        return cuts

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        # a long gap in the targets may leave a block empty
        return [part for part in parts.values() if part.n_samples]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks < self.min_blocks:
            raise ValueError(f"selection={name!r} needs two blocks or more; got {n_blocks}.")

    def scores(
        self,
        sums: RowSums,
        path: Callable[[], PenaltyPath],
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
        neighbours: NeighbourSums | None = None,
    ) -> Array:
        squared_error = np.zeros((len(alphas), sums.n_outputs))
        weights = []
        for fitted, scored in folds:
            squared_error += scored.squared_errors(*fitted.along(alphas, fit_intercept))
            weights.append(scored.weight)
        return squared_error / sum(weights)


class _HoldOut(_Blocked):
    """The end of each sequence, scored by a fit on the rows before it."""

    min_blocks = 1

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        held_out = [round(_HELD_OUT * n) for n in kept]
        return [((0, length - n), (1, length)) for length, n in zip(lengths, held_out, strict=True)]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        return [parts[1]] if 1 in parts else []

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 1:
            raise ValueError(f"selection={name!r} needs blocks=[held_out]; got {n_blocks} blocks.")


class FreeRuns(_HoldOut):
    """Closed loops over rows at the end, with coefficients from the rows before.

    The last fifth of each sequence is held out. If there are five sequences or more, and none has
    more than a fifth of the rows, whole sequences at the end are held out instead.

    Parameters
    ----------
    errors : callable, optional
        ``errors(coefs, intercepts)`` returns the errors of closed loops with the results of
        `RowSums.along`, as scores, (n_alphas, 1). An estimator runs the loops; sums cannot.
    """

    in_loops = True

    def __init__(self, errors: Callable[[Array, Array], Array] | None = None) -> None:
        self.errors = errors

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return the rows to learn from as part 0, and the held-out rows as part 1."""
        kept = np.maximum(np.subtract(lengths, skips), 0)
        held_out = kept // _N_GROUPS
        if len(kept) >= _N_GROUPS and kept.max() <= kept.sum() / _N_GROUPS:
            at_end = np.cumsum(kept[::-1])[::-1] <= kept.sum() / _N_GROUPS
            at_end[-1] = True
            held_out = np.where(at_end, lengths, 0)
        ends = np.subtract(lengths, held_out).tolist()
        return [((0, end), (1, length)) for length, end in zip(lengths, ends, strict=True)]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        """Check that an estimator runs closed loops, and that there is one held-out block."""
        if self.errors is None:
            raise ValueError(
                f"selection={name!r} runs closed loops, and sums cannot run any. Use "
                f"ESNRegressor(alpha_selection={name!r}), or another estimator that forecasts, or "
                'selection="reml" here.'
            )
        super().check(name, blocks)

    def scores(
        self,
        sums: RowSums,
        path: Callable[[], PenaltyPath],
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
        neighbours: NeighbourSums | None = None,
    ) -> Array:
        """Return the error of closed loops under each penalty, for all outputs together."""
        assert self.errors is not None
        ((before, _),) = folds
        return self.errors(*before.along(alphas, fit_intercept))


class _Halves(_Blocked):
    """Two halves, each scored by a fit on the other; runs of rows are assigned to them in turn."""

    alternates = True

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        return Runs().cut(lengths, skips)

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 2:
            raise ValueError(f"selection={name!r} needs two blocks; got {n_blocks}.")


_LEAST_RUN = 8  # rows of a run that ends with a sequence; twice as many within one
_GROWTH = 5  # a run has at least a fifth of the rows before it, within one sequence two fifths


@saved
class Runs:
    """Runs of rows that are assigned to two halves in turn, as rows arrive.

    Errors of neighbouring rows depend on one another, so that with short runs one half would be no
    independent test of the other. Runs grow with the number of rows before them: the end of a run
    depends on earlier rows alone, not on the number of later ones, or on how rows are split into
    calls. A run ends with a sequence, unless it contains twice its least number of rows from one
    sequence.
    """

    def __init__(self, n_rows: int = 0) -> None:
        self.n_rows = n_rows  # of all runs so far
        self.filled = self.within = 0  # rows of this run, and how many are from this sequence
        self.half = 0
        self.least = max(_LEAST_RUN, n_rows // _GROWTH)

    def cut(self, lengths: Sequence[int], skips: Sequence[int], *, continues: bool = False) -> Cuts:
        """Return the half that each row belongs to; the next call continues from there.

        Parameters
        ----------
        lengths, skips : sequences of int
            Rows of each sequence, and how many at its start are washout.
        continues : bool, default=False
            Whether the first sequence continues the last one of the previous call.
        """
        cuts = []
        for length, skip in zip(lengths, skips, strict=True):
            if not continues:
                self._begin_sequence()
            cuts.append(tuple(self._halves_of(skip, length)))
            continues = False
        return cuts

    def _begin_sequence(self) -> None:
        self.within = 0
        if self.filled >= self.least:
            self._turn()

    def _halves_of(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        while start < end:
            n = min(end - start, 2 * self.least - self.within)
            start += n
            self.n_rows += n
            self.filled += n
            self.within += n
            yield self.half, start
            if self.within == 2 * self.least:
                self._turn()

    def _turn(self) -> None:
        self.half, self.filled, self.within = 1 - self.half, 0, 0
        self.least = max(_LEAST_RUN, self.n_rows // _GROWTH)


#: Name -> rule: the values of ``alpha_selection`` and ``ridge_path(selection=...)``.
SELECTIONS: dict[str, SelectionRule] = {
    "gcv": _FromPath(lambda path, alpha: path.gcv(alpha)),
    "reml": _FromPath(lambda path, alpha: path.reml(alpha)),
    "reml_ar1": _NeighboursDepend(),
    "halves": _Halves(),
    "blocked": _Blocked(),
    "holdout": _HoldOut(),
    "forecast": FreeRuns(),
}


def least_score(
    alphas: Array, scores: Array, per_target: bool, variances: ArrayLike = 1.0
) -> float | Array:
    """Return the penalty with the lowest score; of equal scores the largest penalty.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    scores : array of shape (n_alphas, n_outputs)
    per_target : bool
        Whether each output gets a separate penalty, (n_outputs,); else one penalty minimises the
        sum of the scores, in units of the variance of each output.
    variances : array of shape (n_outputs,), default=1.0
        Of the targets.
    """
    order = np.argsort(-alphas, kind="stable")
    if per_target:
        return alphas[order[np.argmin(scores[order], axis=0)]]
    units = np.where(np.greater(variances, 0), variances, 1.0)
    return float(alphas[order[np.argmin((scores[order] / units).sum(axis=1))]])


def folds(sums: RowSums, blocks: Sequence[RowSums], rest: Sequence[RowSums]) -> Folds:
    """Yield for each block the sums over all other rows, and over the block.

    Parameters
    ----------
    sums : accumulator
        Over all rows.
    blocks : sequence of accumulators
    rest : sequence of accumulators
        The rows outside the blocks.
    """
    for k, block in enumerate(blocks):
        if not 0 < block.n_samples < sums.n_samples:
            raise ValueError(
                f"A block of {block.n_samples} rows leaves {sums.n_samples - block.n_samples} of "
                f"{sums.n_samples} to fit; both must be at least 1. Use fewer blocks."
            )
        yield sums.without(block, [*blocks[:k], *blocks[k + 1 :], *rest]), block
