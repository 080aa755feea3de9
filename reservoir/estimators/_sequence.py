"""What estimators of sequences share, whatever network they hold."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from reservoir._typing import Array
from reservoir._validation import Sequences


class SequenceEstimator(BaseEstimator):
    """An estimator whose rows are time steps."""

    _kept: tuple[str, ...] = ()  # what a fit changes in place
    _seen: set[Any]
    _last_id: Any

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

    @staticmethod
    def _pack_states(states: list[Array], sequences: Sequences) -> Array:
        one_table = sequences.container == "table" and len(states) == 1
        return states[0] if one_table else np.stack(states)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
