"""The interface of a model of series: it learns from a history and forecasts from any row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from reservoir._typing import Array
from reservoir.series_models.history import History


class FittedModel(ABC):
    """A fitted model, immutable."""

    @abstractmethod
    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Forecast from several origins.

        Parameters
        ----------
        history : History
            The history of the fit, or another one of the same series, which may continue longer or
            begin later (by its `first`).
        origins : array of int of shape (n_origins,)
            Number of known rows at each origin, ascending; at least `min_rows` of the model.
        n_steps : int
            The history must contain the known inputs of this number of rows after each origin.

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
            f"A forecast begins at row {origins[0]}: this model needs {min_rows} or more rows "
            "before it. Give more rows."
        )


class SeriesModel(ABC):
    """A model of series before it is fitted.

    Attributes
    ----------
    min_rows : int
        Least number of rows for a fit.
    simple : bool
        Whether it has few parameters, which short series can determine.
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
            Seed of random weights; models without any ignore it.
        """

    def fit_shared(self, histories: Sequence[History], seed: int) -> Sequence[FittedModel]:
        """Learn from several series together; return one fitted model for each.

        By default each series is fitted alone. Models that can learn from all series override this.

        Parameters
        ----------
        histories : sequence of History
            With as many columns, known inputs and seasons as the first; they may differ in length.
        seed : int
        """
        return [self.fit(history, seed) for history in histories]
