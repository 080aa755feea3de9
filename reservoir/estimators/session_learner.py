"""Interface between a session and the estimators that learn in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reservoir._typing import Array


class SessionLearner(ABC):
    """Online learner of a session, with all that it has learned.

    A learner contains only arrays and plain objects, so that it can be saved. It never contains the
    estimator: each method receives the estimator of the session, a shallow copy of the user's. New
    attributes may be set on this copy, but the objects in its attributes are shared and must not be
    changed.
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
            The estimator of the session.
        rows : array of shape (n_rows, n_features)
        targets : array of shape (n_rows, n_outputs)
        weights : array of shape (n_rows,) or None
        start : array
            The state before the first row.
        skip : int
            Number of rows at the start that are run over and not learned from.
        follows : bool
            Whether the rows follow the rows that were learned from last.

        Returns
        -------
        array
            The state after the rows.
        """

    @abstractmethod
    def settle(self, estimator: Any) -> None:
        """Set the fitted attributes of the estimator, as learned from all rows so far."""

    @abstractmethod
    def finish(self, estimator: Any, *, complete: bool) -> None:
        """Prepare an estimator for `partial_fit`; this learner must not be used afterwards.

        `complete` states whether the last rows that the session has run over were learned from.
        """

    @property
    def forgetting(self) -> float:
        """Factor by which each row multiplies the weights of all earlier rows."""
        raise AttributeError(self._without("forgetting"))

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        raise AttributeError(self._without("forgetting"))

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`."""
        raise TypeError(self._without("forget"))

    def _without(self, what: str) -> str:
        return (
            f"{what} is not available: {type(self).__name__} keeps no weights of earlier rows. "
            "Echo state networks with the built-in ridge do."
        )


def rows_that_enter(targets: Array, weights: Array | None, skip: int) -> Array:
    """Return a mask of the rows to learn from.

    These are the rows after the washout with known targets and a positive weight.
    """
    enter = np.arange(len(targets)) >= skip
    if weights is not None:
        enter &= weights > 0
    if targets.dtype.kind == "f":
        enter &= ~np.isnan(targets).any(axis=1)
    return enter
