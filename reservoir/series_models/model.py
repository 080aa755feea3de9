"""The contract of a model of series: learns from a history, forecasts from any row of one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from reservoir._typing import Array
from reservoir.series_models.history import History


class FittedModel(ABC):
    """What a model has learned. Immutable."""

    @abstractmethod
    def forecast(self, history: History, places: Array, n_steps: int) -> Array:
        """Forecast from several places.

        Parameters
        ----------
        history : History
            That which was learned from, or a longer one of the same series.
        places : array of int of shape (n_places,)
            How many rows are known at each place; ascending.
        n_steps : int
            The history knows the inputs of so many rows behind each place.

        Returns
        -------
        array of shape (n_places, n_steps, n_outputs)
        """


class NothingObserved(ValueError):
    """A series has gaps everywhere that a model would have to learn from."""


class SeriesModel(ABC):
    """A way to learn from a series.

    Attributes
    ----------
    fewest : int
        Rows that it needs to learn anything.
    """

    fewest: int = 3

    @abstractmethod
    def fit(self, history: History, seed: int) -> FittedModel:
        """Learn from all rows of a history; raise `NothingObserved` if gaps leave nothing.

        Parameters
        ----------
        history : History
        seed : int
            Of what is drawn; models that draw nothing pay no attention to it.
        """
