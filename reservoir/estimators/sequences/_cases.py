"""The different sequences of a fit: what weighs, is repeated, and stands anywhere in X."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences
from reservoir._validation.arrays import joined, together
from reservoir.estimators.sequences._sequence_inputs import mean_and_spread

_MISSING = 10 / 3  # what stands for NaN, in standard deviations: a value that nobody measures


class UniqueSequences(NamedTuple):
    """The different sequences of positive weight, in an order that their content decides.

    So a sequence that is repeated counts as one that weighs more, also where it is left out, one of
    weight zero as one that is not there, and the order of sequences is of no account. Nor are the
    units and zeros of channels: which bytes stand for a sequence does not decide its place.

    Attributes
    ----------
    sequences : Sequences
    targets : array of shape (n_cases, n_outputs)
        Weighted means, where equal sequences have different targets.
    weights : array of shape (n_cases,)
    place : array of shape (n_sequences,)
        Which of the cases each sequence is; -1 for those of weight zero.
    """

    sequences: Sequences
    targets: Array
    weights: Array
    place: Array

    @property
    def used(self) -> Array:
        """Whether each sequence is of positive weight."""
        return self.place >= 0

    @classmethod
    def of(cls, sequences: Sequences, targets: Array, weights: Array | None) -> UniqueSequences:
        """Return the cases among sequences; refuse fewer than two."""
        each = np.ones(len(sequences)) if weights is None else weights
        gaps = [None] * len(sequences) if sequences.gaps is None else sequences.gaps
        cases = zip(sequences.arrays, gaps, each, strict=True)
        keys = [_content(rows, between) if w > 0 else b"" for rows, between, w in cases]
        found = {key: i for i, key in enumerate(keys) if key}
        if len(found) < 2:
            raise ValueError(
                f"X holds {len(found)} different sequence(s) of positive weight (n_samples="
                f"{len(sequences)}): at least 2 are needed, so that one can be left out."
            )
        different = sequences.some(list(found.values()))
        # keys decide where sequences differ by rounding errors only
        order = [key for _, key in sorted(zip(_marks(different).tolist(), found, strict=True))]
        number = {key: k for k, key in enumerate(order)} | {b"": -1}
        place = np.array([number[key] for key in keys])
        used = place >= 0
        total, sums = np.zeros(len(order)), np.zeros((len(order), targets.shape[1]))
        np.add.at(total, place[used], each[used])
        np.add.at(sums, place[used], each[used, None] * targets[used])
        ones = sequences.some([found[key] for key in order])
        return cls(ones, sums / total[:, None], total, place)


def _content(rows: Array, gaps: Array | None) -> bytes:
    """Return what is equal for equal arrays, and times between rows, alone, and never empty."""
    rows = rows + 0.0  # -0 is 0, and one NaN is like another
    rows[np.isnan(rows)] = np.nan
    content = rows.tobytes() + (b"" if gaps is None else gaps.tobytes())
    digest = hashlib.blake2b(content, digest_size=16).digest()
    return digest + str(rows.shape).encode()


def _marks(sequences: Sequences) -> Array:
    """Return a number for each sequence, which no other one has: a random sum of its values.

    Values are those of standardised channels: other units and zeros move the numbers by rounding
    errors, which are far smaller than what lies between them, and leave their order as it is.
    """
    arrays = list(sequences.arrays)
    if sequences.gaps is not None:
        before = [np.append(0.0, between) for between in sequences.gaps]
        arrays = [np.column_stack(both) for both in zip(arrays, before, strict=True)]
    mean, spread = mean_and_spread(arrays)
    factors = np.random.default_rng(0).normal(size=(max(map(len, arrays)), len(mean)))
    marks = []
    for some in together(arrays):
        rows, lengths = joined(some), np.array([len(each) for each in some])
        begins = np.cumsum(lengths) - lengths
        steps = np.arange(len(rows)) - np.repeat(begins, lengths)
        with np.errstate(over="ignore", invalid="ignore"):  # refused later
            values = np.where(np.isnan(rows), _MISSING, (rows - mean) / spread)
            marks.append(np.add.reduceat((values * factors[steps]).sum(axis=1), begins))
    return np.concatenate(marks)
