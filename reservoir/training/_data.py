"""Training data: sequences, and their division into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Batch, make_batch


@dataclass(frozen=True, eq=False)
class Data:
    """Sequences of inputs and targets.

    Parameters
    ----------
    inputs : sequence of arrays of shape (n_steps_i, n_features)
    targets : sequence of arrays of shape (n_steps_i, n_outputs), or with `last` (n_outputs,)
    weights : sequence of arrays of shape (n_steps_i,), or with `last` of numbers, optional
        Weight of each target in the loss; 1 by default.
    starts : array of shape (n_sequences, state_size), optional
        Initial state of each sequence; zeros by default.
    last : bool, default=False
        Whether each sequence has only one target, for its last step.
    dtype : dtype, optional
        The dtype of targets and weights; by default that of the inputs, which is float64 if one of
        the input columns contains times.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.trainer import Data
    >>> len(Data([np.ones((3, 1))], [np.ones((3, 1))]))
    1
    """

    inputs: Sequence[Array]
    targets: Sequence[Array]
    weights: Sequence[Array] | None = None
    starts: Array | None = None
    last: bool = False
    dtype: Any = None

    def __post_init__(self) -> None:
        if self.dtype is None:
            object.__setattr__(self, "dtype", self.inputs[0].dtype)

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, index: Array) -> tuple[Batch, Array | None]:
        """Return the sequences with the indices `index` as a batch, and their initial states."""
        of = [int(i) for i in index]
        batch = make_batch(
            [self.inputs[i] for i in of],
            [self.targets[i] for i in of],
            weights=None if self.weights is None else [self.weights[i] for i in of],
            last=self.last,
            dtype=self.dtype,
        )
        return batch, None if self.starts is None else self.starts[index]

    def picked(self, index: Array) -> Data:
        """Return the sequences with the indices `index` as a separate `Data` object."""
        of = [int(i) for i in index]
        return Data(
            [self.inputs[i] for i in of],
            [self.targets[i] for i in of],
            None if self.weights is None else [self.weights[i] for i in of],
            None if self.starts is None else self.starts[index],
            self.last,
            self.dtype,
        )

    def by_length(self, size: int) -> list[Array]:
        """Return all indices in groups of `size` sequences of similar length, in order of length.

        Similar lengths keep the padding small.
        """
        order = np.argsort([len(X) for X in self.inputs], kind="stable")
        return [order[i : i + size] for i in range(0, len(order), size)]

    def groups(self, size: int, generator: np.random.Generator) -> list[Array]:
        """Return all indices in groups of `size` with similar lengths, shuffled by `generator`."""
        n = len(self)
        if n <= size:
            return [np.arange(n)]
        mixed = generator.permutation(n)
        lengths = np.array([len(self.inputs[i]) for i in mixed])
        order = mixed[np.argsort(lengths, kind="stable")]
        groups = [order[i : i + size] for i in range(0, n, size)]
        return [groups[i] for i in generator.permutation(len(groups))]
