"""The protocol of networks that `forecast` and scores of closed loops can run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Protocol

from reservoir._typing import Array
from reservoir._validation import Sequences, code
from reservoir.estimators.progress import Progress
from reservoir.loops.loop_by_loop import run_one_by_one, states_before


class Forecaster(Protocol):
    """A fitted network, as forecasts use it.

    `forecaster_of` makes one from an estimator; another family of estimators registers its
    conversion with ``@forecaster_of.register``. A derived class inherits the last three methods,
    which serve to compare models.

    Attributes
    ----------
    n_outputs : int
    n_features_in : int
        Columns of X, including that of the ids.
    id_column : int or None
        Position of the column of ids in X.
    dtype : numpy.dtype
    one_dimensional : bool
        Whether outputs have no column axis.
    feeds_back : bool
        Whether outputs are fed back through feedback weights; else they are the next inputs.
    n_units : int
        Size of a state, without the last output if that is part of the state.
    progress : Progress
    state : array
        State at the end of training.
    certificate : Certificate or None
        The ranges in which the network is proved to forget its initial state, if there is a proof.
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
        """Raise if outputs cannot be the next inputs."""

    def read(self, X: Any) -> Sequences:
        """Return rows of input as sequences for the network."""

    def starts(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence."""

    def listen(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        """Return outputs and end states of a teacher-forced run."""

    def readout(self) -> Any:
        """Return (coef, intercept), or a function of one row of features."""

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run in closed loop, as `run_closed_loop` with ``return_steps=True``."""

    def states_at(
        self,
        places: Sequence[tuple[int, int]],
        sequences: Sequences,
        targets: Sequence[Array] | None = None,
        *,
        anew: bool = True,
    ) -> list[Array]:
        """Return the state before each forecast origin, (sequence, row).

        `targets` are the network's targets; they are required if outputs are fed back through
        feedback weights. By default the run begins as in training, else as in `predict`.
        """

        def listen(i: int, begin: int, end: int, state: Array) -> Array:
            return self.listen(Sequences((sequences.arrays[i][begin:end],), "table"), state)[1][0]

        return states_before(places, self.starts("zeros" if anew else None, sequences), listen)

    def readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        """Return the readouts for other values of the parameter `alpha`.

        None if that requires training again for each value.
        """
        return None

    def run_many(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run closed loops from several states with several readouts, as `run_one_by_one`."""
        return run_one_by_one(self.run, readouts, n_steps, **options)


@singledispatch
def forecaster_of(model: Any) -> Forecaster:
    """Return the `Forecaster` of a fitted estimator; raise if there is none."""
    if hasattr(model, "forecast"):
        raise TypeError(
            f"{type(model).__name__} forecasts by its own method: "
            f"{code('model.forecast(n_steps)')}."
        )
    if hasattr(model, "sample"):
        raise TypeError(
            f"{type(model).__name__} predicts labels, and forecast feeds numbers back as inputs. "
            f"If the inputs are symbols, {code('model.sample(n_steps)')} draws the following ones."
        )
    raise TypeError(
        "forecast needs a fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline, "
        f"TransformedTargetRegressor or search that ends in one; got {type(model).__name__}."
    )
