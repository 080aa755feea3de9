"""Predictions of parts of a series, each from the state to which the rows before it lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reservoir._tables.frames import is_pandas
from reservoir._typing import Array
from reservoir.estimators.esn.part_plan import SeamError, apart, check_seam, default_overlap
from reservoir.estimators.reading import framed


class Place(NamedTuple):
    """Position of a part: whether a sequence begins there, and how many rows before it to run."""

    begins: bool
    n_before: int
    from_start: bool  # whether these rows begin where their sequence begins


class Made(NamedTuple):
    """Outputs of a part, the state to which the rows before it led, and that at its end."""

    values: Any
    entry: Array | None
    end: Array | None


class PartOutputs:
    """A fitted estimator that predicts parts.

    In `rows`, the first rows of X, the overlap of the parts is measured; it is `most` if states do
    not forget within these rows.
    """

    def __init__(self, estimator: Any, rows: Any, initial_state: Any, most: int) -> None:
        self.estimator, self.spec = estimator, initial_state
        predictor = estimator._predictor()
        estimator._check_steps("predict for a table of Dask")
        for name in ("feedback", "transition"):
            if getattr(estimator, name, None):
                raise ValueError(
                    f"{name}={getattr(estimator, name)!r}: outputs depend on all outputs before "
                    "them, and partitions are predicted apart. Load X with np.asarray."
                )
        self.alone = False
        try:
            self.overlap = default_overlap(predictor.source, predictor.read(rows).arrays)
        except SeamError:
            self.overlap = most

    def places(self, lengths: Sequence[list[int]], ids: Sequence[list[Any]]) -> list[Place]:
        """Return the position of each part, given the rows and ids of its sequences."""
        found, within, last, n_sequences = list[Place](), 0, None, 0
        for rows, names in zip(lengths, ids, strict=True):
            begins = not n_sequences or bool(rows and names and names[0] != last)
            within = 0 if begins else within
            n = min(self.overlap, within) if rows else 0
            found.append(Place(begins, n, n == within))
            if rows:
                n_sequences += len(rows) - (not begins)
                within = rows[-1] + (within if len(rows) == 1 else 0)
                last = names[-1] if names else None
        self.alone = n_sequences == 1
        return found

    def run(self, X: Any, before: Any, place: Place) -> Made:
        """Return the outputs of the rows of a part."""
        if not len(X):
            return Made(self.empty(X), None, None)
        predictor = self.estimator._predictor()
        sequences = predictor.read(X)
        fresh = not self.alone  # "last" continues training with a single series
        starts = predictor.starts(self.spec, sequences, as_in_training=fresh or not place.begins)
        entry = None
        if before is not None:
            warm = predictor.read(before)
            far = fresh or not place.from_start
            ends = predictor.run_over(warm, predictor.starts(self.spec, warm, as_in_training=far))[
                1
            ]
            starts[0] = entry = ends[0]
        decode, outputs_of = self.estimator._predicts_by()
        outputs, ends = predictor.run_over(sequences, starts, outputs_of)
        values = np.concatenate([decode(rows) for rows in outputs])
        return Made(self._framed(values, X), entry, ends[-1])

    def checked(self, made: Made, earlier: Made | None) -> Any:
        """Return the outputs of a part, after comparing states with the end of the one before."""
        if earlier is not None and made.entry is not None:
            assert earlier.end is not None
            dtype = self.estimator._reader.dtype
            try:
                check_seam(apart(earlier.end, made.entry), dtype, self.overlap)
            except SeamError as error:
                raise ValueError(f"{error.found} Load X with np.asarray, or compute.") from None
        return made.values

    def empty(self, X: Any) -> Any:
        """Return the outputs of no rows, in a frame with the index of X if it has one."""
        none = np.zeros((1, self.estimator.n_outputs_), self.estimator._reader.dtype)
        return self._framed(self.estimator._predicts_by()[0](none)[:0], X)

    def _framed(self, values: Array, X: Any) -> Any:
        names = self.estimator._reader.target_names
        return framed(values, X.index, names) if is_pandas(X) else values
