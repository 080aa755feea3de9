"""Rules that choose a ridge penalty: which parts of the rows they need, and how they score.

A rule is an entry of `SELECTIONS`; estimators and `ridge_path` know it by its name there alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.readouts.eigen import PenaltyPath
from reservoir.readouts.sums import RowSums

_N_BLOCKS = 5  # folds of the blocked selection, scikit-learn's default number
_HELD_OUT = 0.2  # share of the rows that the hold-out selection scores on

Edges = list[tuple[int, ...]]
#: Sums over the rows of a fit, and over those that it is scored on.
Folds = Iterable[tuple[RowSums, RowSums]]


class SelectionRule(ABC):
    """How a penalty is chosen from a path: the least score wins, of equal ones the larger penalty.

    A rule gets all rows in one sum, and folds if it asks for parts. Sums are of either kind that
    `solver` names; rules need not know which.

    Attributes
    ----------
    fewest : int
        Blocks, sums over parts of the rows, that the rule needs at least; 0 for none. A rule that
        needs blocks cannot choose in partial_fit, which keeps one sum over all rows.
    """

    fewest = 0

    def edges(self, lengths: Sequence[int], skips: Sequence[int]) -> Edges:
        """Return where the parts of each sequence end.

        Parameters
        ----------
        lengths, skips : sequences of int
            Rows of each sequence, and how many at its start are washout.

        Returns
        -------
        list of tuples of int
            Row i of a sequence belongs to part k if it comes before ``edges[k]``, and not before
            ``edges[k - 1]``.
        """
        return [(length,) for length in lengths]

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
        path: PenaltyPath,
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
    ) -> Array:
        """Return an estimate of the mean squared error, (n_alphas, n_outputs).

        Parameters
        ----------
        sums : accumulator
            Sums over all rows.
        path : PenaltyPath
            Their ridge solutions for any penalty.
        alphas : array of shape (n_alphas,)
        folds : iterable of (fitted, scored)
            For each block two sums, over all other rows and over the block's; the first is made
            when its turn comes.
        fit_intercept : bool
        """


class _FromPath(SelectionRule):
    """A score of each penalty from one decomposition of all rows: no row is left out."""

    def __init__(self, score: Callable[[PenaltyPath, float], Array]) -> None:
        self.score = score

    def scores(
        self,
        sums: RowSums,
        path: PenaltyPath,
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
    ) -> Array:
        return np.array([self.score(path, alpha) for alpha in alphas])


class _Blocked(SelectionRule):
    """Blocks of consecutive rows, each scored by a fit on all others."""

    fewest = 2

    def edges(self, lengths: Sequence[int], skips: Sequence[int]) -> Edges:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        total, before, edges = sum(kept), 0, []
        ends = [round(total * (k + 1) / _N_BLOCKS) for k in range(_N_BLOCKS)]
        for skip, n in zip(skips, kept, strict=True):
            edges.append(tuple(skip + min(max(end - before, 0), n) for end in ends))
            before += n
        return edges

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        # a long gap in the targets may leave nothing of a block
        return [part for part in parts.values() if part.n_samples]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks < self.fewest:
            raise ValueError(f"selection={name!r} needs two blocks or more; got {n_blocks}.")

    def scores(
        self,
        sums: RowSums,
        path: PenaltyPath,
        alphas: Array,
        folds: Folds,
        fit_intercept: bool,
    ) -> Array:
        squared_error = np.zeros((len(alphas), sums.n_outputs))
        weights = []
        for fitted, scored in folds:
            others = fitted.path(fit_intercept)
            coefs = [others.coef(alpha) for alpha in alphas]
            intercepts = [others.intercept(coef) for coef in coefs]
            squared_error += scored.squared_errors(np.array(coefs), np.array(intercepts))
            weights.append(scored.weight)
        return squared_error / sum(weights)


class _HoldOut(_Blocked):
    """The end of each sequence, scored by a fit on what comes before."""

    fewest = 1

    def edges(self, lengths: Sequence[int], skips: Sequence[int]) -> Edges:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        held = [round(_HELD_OUT * n) for n in kept]
        return [(length - h, length) for length, h in zip(lengths, held, strict=True)]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        return [parts[1]] if 1 in parts else []

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 1:
            raise ValueError(f"selection={name!r} needs blocks=[held_out]; got {n_blocks} blocks.")


#: Name -> rule: what ``alpha_selection`` and ``ridge_path(selection=...)`` may be.
SELECTIONS: dict[str, SelectionRule] = {
    "gcv": _FromPath(lambda path, alpha: path.gcv(alpha)),
    "reml": _FromPath(lambda path, alpha: path.reml(alpha)),
    "blocked": _Blocked(),
    "holdout": _HoldOut(),
}


def least_score(alphas: Array, scores: Array, per_target: bool) -> float | Array:
    """Return the penalty of the least score; of equal ones the largest.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    scores : array of shape (n_alphas, n_outputs)
    per_target : bool
        Whether each output gets a penalty of its own, (n_outputs,); else the sum decides.
    """
    order = np.argsort(-alphas, kind="stable")
    if per_target:
        return alphas[order[np.argmin(scores[order], axis=0)]]
    return float(alphas[order[np.argmin(scores[order].sum(axis=1))]])


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
