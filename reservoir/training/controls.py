"""Base class of controls, which modify the gradient so that long-range dependencies are learnt."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Batch, Network
from reservoir.training.cells import Cell
from reservoir.training.params import Params

__all__ = ["Control"]


class Control(ABC):
    """Base class of methods against vanishing gradients.

    A control adds a penalty to the loss, or replaces the gradient by another descent direction. An
    instance of a subclass can be passed as the `gradient_control` of a trained network. Subclasses
    are frozen dataclasses decorated with `reservoir.training.cells.saved`.

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
        """Whether the control has no effect and may be skipped."""
        return False

    @property
    def is_gradient(self) -> bool:
        """Whether `loss_and_gradient` returns the true gradient, which line searches need."""
        return True

    @abstractmethod
    def check(self, cell: Cell) -> None:
        """Check that a cell provides the derivatives or Jacobians that the control needs.

        Parameters
        ----------
        cell : Cell

        Raises
        ------
        ValueError
            If it does not.
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
        """Return the objective on a batch, its gradient or another direction, and the final states.

        Parameters
        ----------
        network : Network
        params : dict of arrays
        batch : Batch
        state : array of shape (n_sequences, state_size) or None
            Initial state of each sequence. None: zeros.
        generator : numpy Generator
            Source of random numbers, which are drawn again for each update.

        Returns
        -------
        value : float
            The objective: the loss, and the penalty if there is one.
        grads : dict of arrays
            Its gradient, or the direction that replaces it.
        end : array of shape (n_sequences, state_size)
            The final state of each sequence.
        """
