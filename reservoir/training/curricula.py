"""What training plays in its first epochs: easy sequences, or the beginnings of all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_count, check_number
from reservoir.training._data import Data

__all__ = ["Curriculum", "EasyFirst", "GrowingLength"]


class Curriculum(ABC):
    """What training plays before it plays everything; for `reservoir.training.trainer.train`.

    Whatever a curriculum leaves out, losses are measured on all the data, and the best weights are
    chosen by these. Whether training is lost, or has stopped improving, is judged from the end of
    the curriculum on.

    Examples
    --------
    >>> from reservoir.training.curricula import Curriculum, EasyFirst, GrowingLength
    >>> [issubclass(kind, Curriculum) for kind in (EasyFirst, GrowingLength)]
    [True, True]
    """

    n_epochs: int  # how many of the first epochs do not play all

    @abstractmethod
    def part(self, data: Data, epoch: int) -> Data:
        """Return the part of `data` that is played in an `epoch`, from 1 to `n_epochs`.

        This is what a curriculum of your own defines.
        """

    def of_epoch(self, data: Data, epoch: int) -> Data:
        """Return what of `data` is played in an `epoch`: all, once the curriculum is over.

        Parameters
        ----------
        data : Data
        epoch : int
            From 1.

        Returns
        -------
        Data

        Raises
        ------
        ValueError
            If no target is left that counts.
        """
        if epoch > self.n_epochs:
            return data
        part = self.part(data, epoch)
        if part.weights is not None and not any(np.any(w) for w in part.weights):
            raise ValueError(
                f"{self} leaves no target that counts in epoch {epoch}: its part lies in the "
                "washout, or has weights of 0. Begin with more."
            )
        return part


@dataclass(frozen=True)
class EasyFirst(Curriculum):
    """Begin with the easiest sequences, and take in more from epoch to epoch [1]_.

    Parameters
    ----------
    n_epochs : int
        Epochs until all sequences are played: the share that is played grows by equal parts.
    first : float in (0, 1], default=0.1
        The share of the first epoch.
    difficulty : callable, optional
        ``difficulty(inputs, targets)`` is a number for a sequence, the larger the harder. By
        default its length.

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
        """Return the easiest sequences of an `epoch`, in the order that they have in `data`."""
        share = self.first + (1 - self.first) * (epoch - 1) / self.n_epochs
        order = np.argsort(self._difficulties(data.inputs, data.targets), kind="stable")
        n_played = int(np.ceil(share * len(data) * (1 - 1e-12)))  # 6.000000000000001 are 6
        return data.picked(np.sort(order[:n_played]))

    def _difficulties(self, inputs: Sequence[Array], targets: Sequence[Array]) -> Array:
        if self.difficulty is None:
            return np.array([len(X) for X in inputs])
        pairs = zip(inputs, targets, strict=True)
        found = np.array([float(self.difficulty(X, y)) for X, y in pairs])
        if np.isnan(found).any():
            k = int(np.argmax(np.isnan(found)))
            raise ValueError(f"difficulty is NaN for sequence {k}: it must be a number for each.")
        return found


@dataclass(frozen=True)
class GrowingLength(Curriculum):
    """Begin with the first steps of all sequences, and take in more from epoch to epoch.

    Parameters
    ----------
    n_epochs : int
        Epochs until whole sequences are played: what is played grows by equal parts, up to the
        longest sequence.
    first : int
        Steps of the first epoch.

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range; in training, where a sequence has one target, at its end.

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
        """Return the beginnings of all sequences of `data` that an `epoch` plays."""
        if data.last:
            raise ValueError(
                "GrowingLength cuts sequences, and here each has one target, for its last step. "
                "Use EasyFirst."
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
