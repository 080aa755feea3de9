"""What takes the gradient's place in training, so that what happened long ago is learned from."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Batch, Network
from reservoir.training.cells import Cell
from reservoir.training.params import Params

__all__ = ["Control"]


class Control(ABC):
    """A way to keep gradients from vanishing: a penalty, or another direction.

    An object of a class derived from it may be `gradient_control` of a trained network: a frozen
    dataclass that is decorated with `reservoir.training.cells.saved`.

    Examples
    --------
    >>> from reservoir.training.controls import Control
    >>> from reservoir.training.gradient_control import GradientControl
    >>> from reservoir.training.omega import Omega
    >>> from reservoir.training.temporal_gradients import SimplexDirection
    >>> [issubclass(kind, Control) for kind in (GradientControl, Omega, SimplexDirection)]
    [True, True, True]
    """

    @property
    def idle(self) -> bool:
        """Whether it changes nothing, and may be left out."""
        return False

    @property
    def is_gradient(self) -> bool:
        """Whether what it returns is the gradient of what is lowered; line searches need that."""
        return True

    @abstractmethod
    def check(self, cell: Cell) -> None:
        """Refuse a cell that lacks what is needed.

        Parameters
        ----------
        cell : Cell

        Raises
        ------
        ValueError
        """

    @abstractmethod
    def loss_and_gradient(
        self,
        network: Network,
        params: Params,
        batch: Batch,
        state: Array | None,
        generator: np.random.Generator,
    ) -> tuple[float, Params, Array]:
        """Return what is lowered on a batch, the way to go down, and the end states.

        Parameters
        ----------
        network : Network
        params : dict of arrays
        batch : Batch
        state : array of shape (n_sequences, state_size) or None
        generator : numpy Generator
            For what is drawn anew at each update.

        Returns
        -------
        value : float
        grads : dict of arrays
        end : array of shape (n_sequences, state_size)
        """
