"""What a session asks of a family of estimators that learns in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reservoir._typing import Array


class SessionLearner(ABC):
    """What has been learned in a session, beside the estimator that the session began with.

    A learner holds arrays and plain objects only, so that it can be saved. It never holds the
    estimator: that of the session is handed to it, a copy that may get new attributes, while what
    these hold is shared with the user's own and must not be changed.
    """

    @abstractmethod
    def learn(
        self,
        estimator: Any,
        rows: Array,
        targets: Array,
        weights: Array | None,
        *,
        start: Array,
        skip: int,
        follows: bool,
    ) -> Array:
        """Learn from rows of the sequence.

        Parameters
        ----------
        estimator : estimator
            That of the session.
        rows : array of shape (n_rows, n_features)
        targets : array of shape (n_rows, n_outputs)
        weights : array of shape (n_rows,) or None
        start : array
            The state before the first row.
        skip : int
            How many rows at the start are run over and not learned from.
        follows : bool
            Whether the rows follow those that were learned from last.

        Returns
        -------
        array
            The state behind the rows.
        """

    @abstractmethod
    def settle(self, estimator: Any) -> None:
        """Give the session's estimator the attributes that all rows so far lead to."""

    @abstractmethod
    def finish(self, estimator: Any, *, stands: bool) -> None:
        """Give an estimator all that its `partial_fit` goes on from; this learner is used up.

        `stands` says whether the last rows that the session has run over were learned from.
        """

    @property
    def forgetting(self) -> float:
        """Factor on the weights of all earlier rows, for each row."""
        raise AttributeError(self._without("forgetting"))

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        raise AttributeError(self._without("forgetting"))

    def forget(self, factor: float) -> None:
        """Let all that was learned so far weigh `factor` times as much."""
        raise TypeError(self._without("forget"))

    def _without(self, what: str) -> str:
        return (
            f"{what} is not known here: {type(self).__name__} keeps no weights of earlier rows. "
            "Echo state networks with the built-in ridge do."
        )


def rows_that_enter(targets: Array, weights: Array | None, skip: int) -> Array:
    """Return a mask of the rows that are learned from.

    Those are rows behind the washout whose targets are known, and whose weight is not zero.
    """
    enter = np.arange(len(targets)) >= skip
    if weights is not None:
        enter &= weights > 0
    if targets.dtype.kind == "f":
        enter &= ~np.isnan(targets).any(axis=1)
    return enter
