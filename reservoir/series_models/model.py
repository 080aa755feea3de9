"""The contract of a model of series: learns from a history, forecasts from any row of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

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
            That which was learned from, or another one of the same series: it may go on longer, and
            begin later, as its `first` says.
        places : array of int of shape (n_places,)
            How many rows are known at each place, ascending; at least as many as `min_rows` of the
            model says.
        n_steps : int
            The history knows the inputs of so many rows behind each place.

        Returns
        -------
        array of shape (n_places, n_steps, n_outputs)

        Raises
        ------
        ValueError
            If fewer rows are known at a place than the forecast begins with.
        """


def check_enough_past(places: Array, min_rows: int) -> None:
    """Refuse to forecast from places before which too few rows are known."""
    if len(places) and places[0] < min_rows:
        raise ValueError(
            f"A forecast from the first {places[0]} rows: this model needs {min_rows} before it. "
            "Give more rows."
        )


class SeriesModel(ABC):
    """A way to learn from a series.

    Attributes
    ----------
    min_rows : int
        Rows that it needs to learn anything.
    simple : bool
        Whether it learns a few numbers only, which short series can tell.
    """

    min_rows: int = 3
    simple: ClassVar[bool] = True

    @abstractmethod
    def fit(self, history: History, seed: int) -> FittedModel:
        """Learn from all rows of a history.

        Parameters
        ----------
        history : History
        seed : int
            Of what is drawn; models that draw nothing pay no attention to it.
        """

    def fit_shared(self, histories: Sequence[History], seed: int) -> Sequence[FittedModel]:
        """Learn from several series together; return what is to forecast each.

        Here each is learned from alone. Models that can learn one rule from all give their own.

        Parameters
        ----------
        histories : sequence of History
            With as many columns, known inputs and seasons as the first; they may differ in length.
        seed : int
        """
        return [self.fit(history, seed) for history in histories]
