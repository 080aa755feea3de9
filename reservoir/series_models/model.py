"""The interface of models of series, which learn from a history and forecast from any row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from reservoir._typing import Array
from reservoir.series_models.history import History


class FittedModel(ABC):
    """An immutable fitted model."""

    @abstractmethod
    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Forecast from several origins.

        Parameters
        ----------
        history : History
            The history of the fit, or another history of the same series, which may end later or
            begin later (as its `first` shows).
        origins : array of int of shape (n_origins,)
            Number of known rows at each origin, ascending and at least `min_rows` of the model.
        n_steps : int
            Number of steps. The history must contain the known inputs of as many rows after each
            origin.

        Returns
        -------
        array of shape (n_origins, n_steps, n_outputs)

        Raises
        ------
        ValueError
            If an origin has fewer rows before it than a forecast needs.
        """


def check_enough_past(origins: Array, min_rows: int) -> None:
    """Check that there are at least `min_rows` rows before each forecast origin."""
    if len(origins) and origins[0] < min_rows:
        raise ValueError(
            f"A forecast begins at row {origins[0]}, but this model needs at least {min_rows} rows "
            "before a forecast. Use more rows."
        )


class SeriesModel(ABC):
    """A model of series before it is fitted.

    Attributes
    ----------
    min_rows : int
        Least number of rows for a fit.
    simple : bool
        Whether the model has only a few parameters, which a short series can determine.
    cost : float
        Rough time of fits and forecasts, relative to `Theta`, by which progress is weighed.
    favour : float
        Factor by which the model's weight in an average is multiplied.
    """

    min_rows: int = 3
    simple: ClassVar[bool] = True
    cost: ClassVar[float] = 1.0
    favour: ClassVar[float] = 1.0

    @abstractmethod
    def fit(self, history: History, seed: int) -> FittedModel:
        """Learn from all rows of a history.

        Parameters
        ----------
        history : History
        seed : int
            Seed of random weights; models without random weights ignore it.
        """

    def fit_shared(self, histories: Sequence[History], seed: int) -> Sequence[FittedModel]:
        """Learn from several series together, and return one fitted model for each.

        By default each series is fitted separately. Models that can learn from all series together
        override this method.

        Parameters
        ----------
        histories : sequence of History
            Series with the same numbers of columns, known inputs and seasons; their lengths may
            differ.
        seed : int
            Seed of random weights.
        """
        return [self.fit(history, seed) for history in histories]
