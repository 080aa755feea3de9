"""What a network must offer to be run on its own outputs, by `forecast` and by scores of loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Protocol

from reservoir._typing import Array
from reservoir._validation import Sequences, code
from reservoir.estimators.progress import Progress
from reservoir.loops.loop_by_loop import run_one_by_one, states_before


class Forecaster(Protocol):
    """A fitted network, as far as forecasts ask for it.

    `forecaster_of` makes one from an estimator; an estimator of another family registers how its
    own is made: ``@forecaster_of.register``. A class derived from this one inherits the last three
    methods, by which models are compared.

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

    def check_can_loop(self) -> None:
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

    def states_at(
        self,
        places: Sequence[tuple[int, int]],
        sequences: Sequences,
        targets: Sequence[Array] | None = None,
        *,
        anew: bool = True,
    ) -> list[Array]:
        """Return the state before each place, (sequence, row), of a run as in training.

        `targets` are those of the network, and are needed where outputs come back through
        feedback weights. The run begins as in training, or if not `anew` as in `predict`.
        """

        def listen(i: int, begin: int, end: int, state: Array) -> Array:
            return self.listen(Sequences((sequences.arrays[i][begin:end],), "table"), state)[1][0]

        return states_before(places, self.starts("zeros" if anew else None, sequences), listen)

    def readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        """Return the readouts that other values of the parameter `alpha` would have led to.

        None if training would have to be repeated for each.
        """
        return None

    def run_many(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run from several starts under several readouts, as `run_one_by_one`."""
        return run_one_by_one(self.run, readouts, n_steps, **options)


@singledispatch
def forecaster_of(model: Any) -> Forecaster:
    """Return what forecasts ask of a fitted estimator; refuse what is no such estimator."""
    if hasattr(model, "forecast"):
        raise TypeError(
            f"{type(model).__name__} forecasts by its own method: "
            f"{code('model.forecast(n_steps)')}."
        )
    if hasattr(model, "sample"):
        raise TypeError(
            f"{type(model).__name__} says labels, and forecast feeds numbers back as inputs. Where "
            f"the inputs are symbols, {code('model.sample(n_steps)')} draws those that follow."
        )
    raise TypeError(
        "forecast needs a fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline, "
        f"TransformedTargetRegressor or search that ends in one; got {type(model).__name__}."
    )
