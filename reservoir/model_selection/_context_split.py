"""A cross-validator that adds rows for the reservoir's warm-up before each test block."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, check_cv

from reservoir._typing import Array
from reservoir._validation import as_plain, check_count


class ContextSplit(BaseCrossValidator):
    """Cross-validator that prepends the rows before each test block to the test indices.

    It is meant for estimators that start each prediction from zeros (``initial_state="zeros"``, in
    a pipeline in all its steps): the rows before the block warm up the reservoir. Score with
    `washout_scorer`, with a washout equal to `context`, so that these rows are excluded from the
    score. The training indices of `cv` are unchanged. Do not use it with
    ``initial_state="last"``, the default of estimators and of `ReservoirTransformer`, which
    continues from the end of training and would run the context rows a second time; the scorer
    warns if only some of the steps start from zeros.

    Parameters
    ----------
    cv : int, cross-validator or list of (train, test)
        The splitter that selects the blocks; an int is the number of folds of
        `sklearn.model_selection.KFold`. Test indices must be consecutive rows (no shuffling).
    context : int, default=100
        Number of rows added before each block, or all rows before it if there are fewer. 100 is the
        longest washout of ``washout="auto"``.

    Notes
    -----
    The first block of a KFold starts at row 0 and has no context, so a washout scorer excludes
    rows of the block itself. TimeSeriesSplit has no such block.

    With `groups`, the context is taken only from the group of the block, and a test set may contain
    one block in each of several groups. Whole groups as test sets
    (`sklearn.model_selection.GroupKFold`) need no context.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import TimeSeriesSplit
    >>> from reservoir.model_selection import ContextSplit
    >>> cv = ContextSplit(TimeSeriesSplit(n_splits=2), context=2)
    >>> for train, test in cv.split(np.zeros((9, 1))):
    ...     print(train, test)
    [0 1 2] [1 2 3 4 5]
    [0 1 2 3 4 5] [4 5 6 7 8]
    """

    # the context of a block does not extend beyond its group
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, cv: Any, context: int = 100) -> None:
        self.cv = cv
        self.context = context

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits of `cv`.

        Parameters
        ----------
        X, y, groups : array-like of shape (n_samples, ...), default=None
            Passed to `cv`.

        Returns
        -------
        int
        """
        return int(self._inner().get_n_splits(X, y, groups))

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Yield training indices, and test indices with their context in front.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        groups : array-like of shape (n_samples,), default=None
            The sequence to which each row belongs.

        Yields
        ------
        train, test : ndarrays of int

        Raises
        ------
        TypeError, ValueError
            If `context` is not a count, `cv` is an iterator, or the rows of a test block are not
            consecutive.
        """
        context = check_count("context", self.context, minimum=0)
        labels = None if groups is None else as_plain("groups", groups)
        # all splits at once, so that the warnings filter is not active while the caller fits
        with warnings.catch_warnings():
            # KFold warns that it ignores groups; here they limit the context
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            splits = list(self._inner().split(X, y, groups))
        for i, (train, test) in enumerate(splits):
            blocks = _blocks(np.asarray(test), labels)
            _check_blocks(i, blocks, labels)
            yield train, np.concatenate([_with_context(b, context, labels) for b in blocks])

    def _inner(self) -> Any:
        """Return the cross-validator that selects the blocks."""
        if hasattr(self.cv, "__next__"):
            raise TypeError(
                f"cv={self.cv!r} is an iterator, which is empty after one pass. Give a list of "
                "(train, test), a cross-validator or an int."
            )
        return check_cv(self.cv)


def _blocks(test: Array, labels: Array | None) -> list[Array]:
    """Cut test indices into blocks of consecutive rows of one group."""
    cut = np.diff(test) != 1
    if labels is not None:
        cut |= labels[test[1:]] != labels[test[:-1]]
    return np.split(test, np.flatnonzero(cut) + 1)


def _check_blocks(split: int, blocks: list[Array], labels: Array | None) -> None:
    """Check that a split has only one block, or one block per group."""
    n_groups = 1 if labels is None else len({labels[b[0]] for b in blocks})
    if len(blocks) > n_groups:
        where = "" if labels is None else f" in {n_groups} groups"
        raise ValueError(
            f"The test indices of split {split} fall into {len(blocks)} blocks of consecutive "
            f"rows{where}; ContextSplit needs one block (one per group). Use a cv without "
            "shuffling, or give groups."
        )


def _with_context(block: Array, context: int, labels: Array | None) -> Array:
    """Return a block's indices with up to `context` earlier rows of its group in front."""
    start = max(block[0] - context, 0)
    if labels is not None:
        other = np.flatnonzero(labels[start : block[0]] != labels[block[0]])
        start += int(other[-1]) + 1 if other.size else 0
    return np.arange(start, block[-1] + 1)
