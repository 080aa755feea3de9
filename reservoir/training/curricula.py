"""Curricula, which select easy or shortened sequences for the first epochs of training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_number
from reservoir.training._data import Data

__all__ = ["Curriculum", "EasyFirst", "GrowingLength"]


class Curriculum(ABC):
    """Base class of curricula, which select the data for the first epochs of `train`.

    An object of a subclass is the `curriculum` of a trained network.

    The losses, which determine the best weights, are measured on all the data, including data that
    the curriculum omits. Whether training is lost, or no longer improves, is determined only after
    the end of the curriculum (see `reservoir.training.trainer.train`).

    Examples
    --------
    >>> from reservoir.training.curricula import Curriculum, EasyFirst, GrowingLength
    >>> [issubclass(kind, Curriculum) for kind in (EasyFirst, GrowingLength)]
    [True, True]
    """

    n_epochs: int  # number of first epochs that do not use all the data

    @abstractmethod
    def part(self, data: Data, epoch: int) -> Data:
        """Return the part of `data` to train on in `epoch`, which is counted from 1 to `n_epochs`.

        Subclasses define this method.
        """

    def of_epoch(self, data: Data, epoch: int) -> Data:
        """Return the part of `data` to train on in `epoch`; all data after `n_epochs` epochs.

        Parameters
        ----------
        data : Data
            All the training data.
        epoch : int
            Index of the epoch, counted from 1.

        Returns
        -------
        Data

        Raises
        ------
        ValueError
            If no target with a positive weight remains.
        """
        if epoch > self.n_epochs:
            return data
        part = self.part(data, epoch)
        if part.weights is not None and not any(np.any(w) for w in part.weights):
            raise ValueError(
                f"{self} selects no target for epoch {epoch}: all of the selected rows are in the "
                "washout or have a weight of 0. Begin with more data."
            )
        return part


@saved
@dataclass(frozen=True)
class EasyFirst(Curriculum):
    """Curriculum that begins with the easiest sequences and adds more in each epoch [1]_.

    Parameters
    ----------
    n_epochs : int
        Number of epochs before all sequences are used; the share of sequences grows linearly.
    first : float in (0, 1], default=0.1
        Share of the sequences that is used in the first epoch.
    difficulty : callable, optional
        Function ``difficulty(inputs, targets)`` that returns a number for a sequence, which is
        larger for harder sequences. By default, it is the length of the sequence.

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    .. [1] Y. Bengio, J. Louradour, R. Collobert and J. Weston, "Curriculum learning", ICML 2009,
       section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.curricula import EasyFirst
    >>> from reservoir.training.trainer import Data
    >>> lengths = (9, 2, 5, 7)
    >>> data = Data([np.ones((n, 1)) for n in lengths], [np.ones((n, 1)) for n in lengths])
    >>> plan = EasyFirst(n_epochs=2, first=0.5)
    >>> [[len(X) for X in plan.of_epoch(data, epoch).inputs] for epoch in (1, 2, 3)]
    [[2, 5], [2, 5, 7], [9, 2, 5, 7]]
    """

    n_epochs: int
    first: float = 0.1
    difficulty: Callable[[Array, Array], float] | None = None

    def __post_init__(self) -> None:
        check_count("n_epochs", self.n_epochs)
        check_number("first", self.first, low=0.0, high=1.0, low_open=True)

    def part(self, data: Data, epoch: int) -> Data:
        """Return the easiest sequences, as many as the `epoch` uses, in the order of `data`."""
        share = self.first + (1 - self.first) * (epoch - 1) / self.n_epochs
        order = np.argsort(self._difficulties(data.inputs, data.targets), kind="stable")
        n_used = int(np.ceil(share * len(data) * (1 - 1e-12)))  # 6.000000000000001 is 6
        return data.picked(np.sort(order[:n_used]))

    def _difficulties(self, inputs: Sequence[Array], targets: Sequence[Array]) -> Array:
        if self.difficulty is None:
            return np.array([len(X) for X in inputs])
        pairs = zip(inputs, targets, strict=True)
        found = np.array([float(self.difficulty(X, y)) for X, y in pairs])
        if np.isnan(found).any():
            k = int(np.argmax(np.isnan(found)))
            raise ValueError(
                f"difficulty returned NaN for sequence {k}. It must return a number for each "
                "sequence."
            )
        return found


@saved
@dataclass(frozen=True)
class GrowingLength(Curriculum):
    """Curriculum that begins with the first steps of all sequences and adds more in each epoch.

    Parameters
    ----------
    n_epochs : int
        Number of epochs before whole sequences are used; the number of steps grows linearly, up to
        the length of the longest sequence.
    first : int
        Number of steps per sequence in the first epoch.

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range. In training, if each sequence has only one target, for its
        last step.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.curricula import GrowingLength
    >>> from reservoir.training.trainer import Data
    >>> data = Data([np.ones((10, 1)), np.ones((4, 1))], [np.ones((10, 1)), np.ones((4, 1))])
    >>> plan = GrowingLength(n_epochs=2, first=2)
    >>> [[len(X) for X in plan.of_epoch(data, epoch).inputs] for epoch in (1, 2, 3)]
    [[2, 2], [6, 4], [10, 4]]
    """

    n_epochs: int
    first: int

    def __post_init__(self) -> None:
        check_count("n_epochs", self.n_epochs)
        check_count("first", self.first)

    def part(self, data: Data, epoch: int) -> Data:
        """Return the first steps of all sequences of `data`, as many as the `epoch` uses."""
        if data.last:
            raise ValueError(
                "GrowingLength shortens sequences, but here each sequence has only one target, for "
                "its last step. Use EasyFirst."
            )
        longest = max(len(X) for X in data.inputs)
        grown = (longest - self.first) * (epoch - 1) / self.n_epochs
        n_steps = self.first + max(0, int(np.ceil(grown)))
        weights = data.weights
        return replace(
            data,
            inputs=[X[:n_steps] for X in data.inputs],
            targets=[y[:n_steps] for y in data.targets],
            weights=None if weights is None else [w[:n_steps] for w in weights],
        )
