"""Rules that choose a ridge penalty: which parts of the rows they need, and how they score.

A rule is an entry of `SELECTIONS`; estimators and `ridge_path` know it by its name there alone.
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
_N_GROUPS = 5  # of rows or of sequences one in so many is held out for closed loops

#: Sums over the rows of a fit, and over those that it is scored on.
Folds = Iterable[tuple[RowSums, RowSums]]


class SelectionRule(ABC):
    """How a penalty is chosen from a path: the least score wins, of equal ones the larger penalty.

    A rule gets all rows in one sum, and folds if it asks for parts. Sums are of either kind that
    `solver` names; rules need not know which.

    Attributes
    ----------
    min_blocks : int
        Blocks, sums over parts of the rows, that the rule needs at least; 0 for none. A rule that
        needs blocks cannot choose in partial_fit, which keeps one sum over all rows, unless they
        alternate.
    alternates : bool
        Whether the blocks are two halves that rows belong to in turns, by `Runs`.
    neighbours : bool
        Whether the rule needs sums over the differences of neighbouring rows, too.
    in_loops : bool
        Whether it needs closed loops, which an estimator runs for it.
    """

    min_blocks = 0
    alternates = neighbours = in_loops = False

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return which part of the sums each row belongs to.

        Parameters
        ----------
        lengths, skips : sequences of int
            Rows of each sequence, and how many at its start are washout.

        Returns
        -------
        list of tuples of pairs (part, end)
            Rows of a sequence belong to a part if they come before its `end`, and not before that
            of the pair before.
        """
        return [((0, length),) for length in lengths]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        """Return the parts that are scored on."""
        return []

    def check(  # noqa: B027 (most rules have nothing to refuse)
        self, name: str, blocks: Sequence[RowSums] | None
    ) -> None:
        """Refuse blocks that the rule, known as `name`, cannot score on."""

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
            For each block two sums, over all other rows and over the block's; the first is made
            when its turn comes.
        fit_intercept : bool
        neighbours : NeighbourSums, optional
            Of all rows, where the rule asks for them.
        """


class _FromPath(SelectionRule):
    """A score of each penalty from one decomposition of all rows: no row is left out."""

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
    """Blocks of consecutive rows, each scored by a fit on all others."""

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
        # a long gap in the targets may leave nothing of a block
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
    """The end of each sequence, scored by a fit on what comes before."""

    min_blocks = 1

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        held = [round(_HELD_OUT * n) for n in kept]
        return [((0, length - h), (1, length)) for length, h in zip(lengths, held, strict=True)]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        return [parts[1]] if 1 in parts else []

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 1:
            raise ValueError(f"selection={name!r} needs blocks=[held_out]; got {n_blocks} blocks.")


class FreeRuns(_HoldOut):
    """Closed loops in rows at the end, under coefficients from the rows before.

    The last fifth of each sequence is held out; of five sequences or more, none of which has more
    than a fifth of the rows, whole ones at the end.

    Parameters
    ----------
    errors : callable, optional
        ``errors(coefs, intercepts)``, the errors of loops under what `RowSums.along` returns, as
        scores, (n_alphas, 1). An estimator runs the loops: sums know of none.
    """

    in_loops = True

    def __init__(self, errors: Callable[[Array, Array], Array] | None = None) -> None:
        self.errors = errors

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return which rows are learned from, part 0, and which are held out."""
        kept = np.maximum(np.subtract(lengths, skips), 0)
        held = kept // _N_GROUPS
        if len(kept) >= _N_GROUPS and kept.max() <= kept.sum() / _N_GROUPS:
            at_end = np.cumsum(kept[::-1])[::-1] <= kept.sum() / _N_GROUPS
            at_end[-1] = True
            held = np.where(at_end, lengths, 0)
        ends = np.subtract(lengths, held).tolist()
        return [((0, end), (1, length)) for length, end in zip(lengths, ends, strict=True)]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        """Refuse to choose where nobody runs loops, or of other parts."""
        if self.errors is None:
            raise ValueError(
                f"selection={name!r} runs closed loops, and sums know of none. Use "
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
        """Return the error of loops under each penalty, (n_alphas, 1): all outputs have one."""
        assert self.errors is not None
        ((before, _),) = folds
        return self.errors(*before.along(alphas, fit_intercept))


class _Halves(_Blocked):
    """Two halves, each scored by a fit on the other: runs of rows belong to them in turns."""

    alternates = True

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        return Runs().cut(lengths, skips)

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 2:
            raise ValueError(f"selection={name!r} needs two blocks; got {n_blocks}.")


_LEAST_RUN = 8  # rows of sequences; within one, twice as many
_GROWTH = 5  # a run has a fifth of the rows before it at least, within one sequence two fifths


@saved
class Runs:
    """Runs of rows that belong to two halves in turns, as rows come in.

    Errors of neighbouring rows depend on one another, so that a half tells little of the other if
    the runs are short. They grow with the number of rows before them: where a run ends depends on
    the rows before alone, not on how many are to come, or on how they are dealt out to calls. It
    ends with a sequence, unless the rows of one sequence in it are twice as many as it must have.
    """

    def __init__(self, n_rows: int = 0) -> None:
        self.n_rows = n_rows  # of all runs so far
        self.filled = self.within = 0  # rows of this run, and those of this sequence among them
        self.half = 0
        self.least = max(_LEAST_RUN, n_rows // _GROWTH)

    def cut(self, lengths: Sequence[int], skips: Sequence[int], *, continues: bool = False) -> Cuts:
        """Return which half rows belong to, and go on from there with the next.

        Parameters
        ----------
        lengths, skips : sequences of int
            Rows of each sequence, and how many at its start are washout.
        continues : bool, default=False
            Whether the first sequence continues the last one of the call before.
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


#: Name -> rule: what ``alpha_selection`` and ``ridge_path(selection=...)`` may be.
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
    """Return the penalty of the least score; of equal ones the largest.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    scores : array of shape (n_alphas, n_outputs)
    per_target : bool
        Whether each output gets a penalty of its own, (n_outputs,); else the sum decides, of scores
        in units of the variance of the output.
    variances : array of shape (n_outputs,), default=1.0
        Of the targets.
    """
    order = np.argsort(-alphas, kind="stable")
    if per_target:
        return alphas[order[np.argmin(scores[order], axis=0)]]
    units = np.where(np.greater(variances, 0), variances, 1.0)
    return float(alphas[order[np.argmin((scores[order] / units).sum(axis=1))]])


def folds(sums: RowSums, blocks: Sequence[RowSums], rest: Sequence[RowSums]) -> Folds:
    """Yield for each block the sums over all other rows, and its own.

    Parameters
    ----------
    sums : accumulator
        All rows.
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
