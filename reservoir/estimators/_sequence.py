"""What estimators of sequences share, whatever network they hold."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import Sequences, index_of
from reservoir.estimators._following import (
    NOWHERE,
    Ended,
    endings,
    gap_before,
    warn_of_gap,
)
from reservoir.estimators.stream import Stream


class SequenceEstimator(BaseEstimator):
    """An estimator whose rows are time steps."""

    _kept: tuple[str, ...] = ()  # what a fit changes in place
    _seen: set[Any]
    _target_range: Array = np.full((2, 1), np.nan)  # not known: files from before it was kept
    _last_id: Any
    _ended: Ended = NOWHERE  # where training did, as the indexes of X and y tell

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        raise NotImplementedError

    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        raise NotImplementedError

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave no trace of a fit that fails: what it changes in place is copied before."""
        before = dict(vars(self))
        try:
            for name in self._kept:
                if name in before:
                    setattr(self, name, copy.deepcopy(before[name]))
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _goes_on(self, sequences: Sequences, new_sequence: bool) -> bool:
        """Whether the first sequence of this chunk is the last one of the chunk before."""
        if new_sequence or sequences.container != "table":
            return False
        return sequences.ids is None or sequences.ids[0] == self._last_id

    def _follow(self, sequences: Sequences, *, goes_on: bool) -> None:
        """Remember where a chunk ends; say so where it does not begin where the last one ended."""
        if goes_on:
            gap = gap_before(self._ended, sequences)
            if gap is not None:
                warn_of_gap(gap)
        self._ended = endings(self._ended, sequences, goes_on=goes_on)

    def _starts_of_score(self, X: Any, y: Any) -> Array | None:
        """Return where a run that is scored starts, by the index of y too; None: as in `predict`.

        In a pipeline X has often lost its index, and y has not.
        """
        items = y[:1] if isinstance(y, (list, tuple, np.ndarray)) else [y]
        if not any(index_of(item) is not None for item in items):
            return None
        self._check_fitted()
        return np.stack(self._start_states(None, self._read(X, y, reset=False)))

    def _check_ids(self, fresh: tuple[Any, ...]) -> None:
        for value in fresh:
            if value in self._seen:
                raise ValueError(
                    f"Sequence id {value!r} returns after ending in an earlier chunk: rows of one "
                    "sequence must be adjacent, or use new_sequence=True."
                )

    def _remember_ids(self, sequences: Sequences) -> None:
        self._last_id = None if sequences.ids is None else sequences.ids[-1]
        self._seen.update(sequences.ids or ())

    def _check_loop(self) -> None:
        """Refuse a network whose outputs cannot be its next inputs; most can."""

    @staticmethod
    def _pack_states(states: list[Array], sequences: Sequences) -> Array:
        one_table = sequences.container == "table" and len(states) == 1
        return states[0] if one_table else np.stack(states)

    def stream(self, initial_state: Any = "last") -> Stream:
        """Return a session that keeps its state from chunk to chunk.

        Parameters
        ----------
        initial_state : {"last", "zeros", "steady"} or array, default="last"

        Returns
        -------
        Stream
            With ``predict(chunk)``, ``state`` and ``reset()``. The estimator is not changed.
        """
        self._check_fitted()
        return Stream(self, initial_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def check_classes(classes: Array) -> Array:
    """Return classes, of which there must be two at least."""
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes.tolist()[0]!r}); a classifier needs at least "
            "two classes. In partial_fit name them all with classes=."
        )
    return classes


def index_of_labels(labels: Array, classes: Array) -> Array:
    """Return where each label stands among the classes, in ascending order; refuse others."""
    index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = classes[index] != labels
    if unknown.any():
        raise ValueError(
            f"y holds the label {labels[unknown].tolist()[0]!r}, which is not among the "
            f"classes {classes.tolist()}. Name them all in the first partial_fit, with "
            "classes=."
        )
    return index
