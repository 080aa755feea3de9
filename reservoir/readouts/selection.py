"""Rules that choose a ridge penalty: which parts of the rows they need, and how they score.

A rule is an entry of `SELECTIONS`; estimators and `ridge_path` know it by its name there alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.readouts.eigen import Eigenbasis
from reservoir.readouts.gram import GramAccumulator

_N_BLOCKS = 5  # folds of the blocked selection, scikit-learn's default number
_HELD_OUT = 0.2  # share of the rows that the hold-out selection scores on

Edges = list[tuple[int, ...]]


class SelectionRule(ABC):
    """How a penalty is chosen from a path: the least score wins, of equal ones the larger penalty.

    A rule gets all rows in one sum, unless it asks for parts of them.

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

    def blocks(self, parts: dict[int, GramAccumulator]) -> list[GramAccumulator]:
        """Return the parts that are scored on."""
        return []

    def check(  # noqa: B027 (most rules have nothing to refuse)
        self, name: str, blocks: Sequence[GramAccumulator] | None
    ) -> None:
        """Refuse blocks that the rule, known as `name`, cannot score on."""

    @abstractmethod
    def scores(
        self,
        gram: GramAccumulator,
        path: Eigenbasis,
        alphas: Array,
        blocks: Sequence[GramAccumulator],
        fit_intercept: bool,
    ) -> Array:
        """Return an estimate of the mean squared error, (n_alphas, n_outputs).

        Parameters
        ----------
        gram : GramAccumulator
            Sums over all rows.
        path : Eigenbasis
            Its eigenbasis.
        alphas : array of shape (n_alphas,)
        blocks : sequence of GramAccumulator
            Sums over parts of the rows.
        fit_intercept : bool
        """


class _GeneralisedCrossValidation(SelectionRule):
    """Leave-one-out without leaving any out: all from one eigendecomposition."""

    def scores(
        self,
        gram: GramAccumulator,
        path: Eigenbasis,
        alphas: Array,
        blocks: Sequence[GramAccumulator],
        fit_intercept: bool,
    ) -> Array:
        return np.array([path.gcv(alpha) for alpha in alphas])


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

    def blocks(self, parts: dict[int, GramAccumulator]) -> list[GramAccumulator]:
        return list(parts.values())

    def check(self, name: str, blocks: Sequence[GramAccumulator] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks < self.fewest:
            raise ValueError(f"selection={name!r} needs two blocks or more; got {n_blocks}.")

    def scores(
        self,
        gram: GramAccumulator,
        path: Eigenbasis,
        alphas: Array,
        blocks: Sequence[GramAccumulator],
        fit_intercept: bool,
    ) -> Array:
        squared_error = np.zeros((len(alphas), gram.n_outputs))
        for block in blocks:
            squared_error += _squared_error(gram, block, alphas, fit_intercept)
        return squared_error / sum(block.weight for block in blocks)


class _HoldOut(_Blocked):
    """The end of each sequence, scored by a fit on what comes before."""

    fewest = 1

    def edges(self, lengths: Sequence[int], skips: Sequence[int]) -> Edges:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        held = [round(_HELD_OUT * n) for n in kept]
        return [(length - h, length) for length, h in zip(lengths, held, strict=True)]

    def blocks(self, parts: dict[int, GramAccumulator]) -> list[GramAccumulator]:
        return [parts[1]] if 1 in parts else []

    def check(self, name: str, blocks: Sequence[GramAccumulator] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 1:
            raise ValueError(f"selection={name!r} needs blocks=[held_out]; got {n_blocks} blocks.")


#: Name -> rule: what ``alpha_selection`` and ``ridge_path(selection=...)`` may be.
SELECTIONS: dict[str, SelectionRule] = {
    "gcv": _GeneralisedCrossValidation(),
    "blocked": _Blocked(),
    "holdout": _HoldOut(),
}


def _squared_error(
    gram: GramAccumulator, block: GramAccumulator, alphas: Array, fit_intercept: bool
) -> Array:
    """Return the squared error on a block of a fit on all other rows, (n_alphas, n_outputs)."""
    rest = gram.copy().subtract(block)
    if rest.n_samples == 0 or block.n_samples == 0:
        raise ValueError(
            f"A block of {block.n_samples} rows leaves {rest.n_samples} of "
            f"{gram.n_samples} to fit; both must be at least 1. Use fewer blocks."
        )
    path, products = rest.eigenbasis(fit_intercept), block.gram
    errors = np.zeros((len(alphas), gram.n_outputs))
    for error, alpha in zip(errors, alphas, strict=True):
        coef, intercept, _, _ = rest._solution(path.coef(alpha), alpha, fit_intercept)
        # ||y - C h - c||^2 summed over the block, from its sums about its means
        inside = np.einsum("ij,ij->i", coef, coef @ products - 2 * block.cross.T)
        offset = block.mean_y - coef @ block.mean_h - intercept
        error += np.maximum(block.sum_y2 + inside, 0.0) + block.weight * offset**2
    return errors
