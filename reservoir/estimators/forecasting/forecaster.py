"""What a network must offer to be run on its own outputs, by `forecast` and by scores of loops."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

from reservoir._typing import Array
from reservoir._validation import Sequences
from reservoir.estimators._progress import Progress


class Forecaster(Protocol):
    """A fitted network, as far as forecasts ask for it.

    `forecaster_of` makes one from an estimator; an estimator of another family registers how its
    own is made: ``@forecaster_of.register``.

    Attributes
    ----------
    n_outputs : int
    n_features_in : int
        Columns of X, that of the ids included.
    id_column : int or None
        Where the ids stand in X.
    dtype : numpy.dtype
    one_dimensional : bool
        Whether outputs have no column axis.
    feeds_back : bool
        Whether outputs come back through feedback weights; else they are the next inputs.
    n_units : int
        Numbers in a state before the last output, if that is part of it.
    progress : Progress
    state : array
        At the end of training.
    certificate : Certificate or None
        For which ranges the network is proved to forget, if it is.
    """

    n_outputs: int
    n_features_in: int
    id_column: int | None
    dtype: Any
    one_dimensional: bool
    feeds_back: bool
    n_units: int
    progress: Progress
    state: Array
    certificate: Any

    def refuse_loop(self) -> None:
        """Refuse where outputs cannot be the next inputs."""

    def read(self, X: Any) -> Sequences:
        """Return rows of input as the network takes them."""

    def starts(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence."""

    def listen(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        """Return outputs and end states of a run on given inputs."""

    def readout(self) -> Any:
        """Return (coef, intercept), or a function of one row of features."""

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run on own outputs, as `run_closed_loop` with ``return_steps=True``."""


@singledispatch
def forecaster_of(model: Any) -> Forecaster:
    """Return what forecasts ask of a fitted estimator; refuse what is no such estimator."""
    raise TypeError(
        "forecast needs a fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline, "
        f"TransformedTargetRegressor or search that ends in one; got {type(model).__name__}."
    )
