"""A fitted estimator ready to run: teacher-forced over rows, and in closed loop.

Predictions of many sequences are computed in batches, each written into its part of the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from reservoir._tables import Sequences
from reservoir._tables.targets import read_weights, with_targets
from reservoir._typing import Array
from reservoir._validation import index_of
from reservoir._validation.kinds import check_has_rows, check_readable
from reservoir.estimators.progress import Progress
from reservoir.estimators.reading import Columns, join
from reservoir.loops.loop_by_loop import run_one_by_one, states_before

#: Function of states and inputs, (1 + n_differences, ...), that returns features and states.
Step = Callable[[Array, Array], tuple[Array, Array]]


class Forecaster(Protocol):
    """Interface through which forecasts use a fitted network; `forecaster_of` returns one.

    Other families register theirs with ``@forecaster_of.register``. `feeds_back` tells whether
    outputs go through feedback weights or are the next inputs; unless `reads_targets`, `progress`
    compares targets with what `to_first` returns.
    """

    n_outputs: int
    n_features_in: int  # the column of ids of X included
    id_column: int | None
    dtype: Any
    one_dimensional: bool
    feeds_back: bool
    n_units: int  # size of `state` without the last output
    progress: Progress
    state: Array  # at the end of training
    certificate: Any
    reads_targets: bool = True

    def to_first(self, rows: Array, *, check: bool = False) -> Array:
        """Return inputs of the network as inputs of the part that `progress` is of.

        If `check` is set, other parts are run over the rows, and raise if they have a memory.
        """
        return rows

    def check_can_loop(self) -> None:
        """Raise if outputs cannot be the next inputs."""

    def read(self, X: Any) -> Sequences:
        """Return rows of input as sequences for the network."""

    def starts(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence."""

    def warm_up(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
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
        as_in_training: bool = True,
    ) -> list[Array]:
        """Return the state before each forecast origin, (sequence, row).

        `targets` are the network's targets; they are required if outputs are fed back through
        feedback weights. By default the run begins as in training, else as in `predict`.
        """

        def warm_up(i: int, begin: int, end: int, state: Array) -> Array:
            teacher = None if targets is None else targets[i][begin:end]
            return self.state_after(sequences.arrays[i][begin:end], teacher, state)

        return states_before(places, self._first_states(sequences, as_in_training), warm_up)

    def state_after(self, rows: Array, targets: Array | None, state: Array) -> Array:
        """Return the state after rows; `targets` are fed back in these rows."""
        return self.warm_up(Sequences((rows,), "table"), state)[1][0]

    def _first_states(self, sequences: Sequences, as_in_training: bool) -> list[Array]:
        return self.starts("zeros" if as_in_training else None, sequences)

    def readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        """Return the readouts for other values of `alpha`; None if each requires training again."""
        return None

    def tangent(self) -> Step:
        """Return the step of the network with differences, `FeatureSource.tangent`, in doubles.

        Raises ValueError if the network has no derivative, which is the default.
        """
        raise ValueError(
            f"{type(self).__name__} has no derivative of its step (the method tangent), which "
            "exponents need. Use ESNRegressor, NVARRegressor or RNNRegressor."
        )

    def run_many(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run closed loops from several states with several readouts, as `run_one_by_one`."""
        return run_one_by_one(self.run, readouts, n_steps, **options)


@singledispatch
def forecaster_of(model: Any) -> Forecaster:
    """Return the `Forecaster` of a fitted estimator; raise if there is none."""
    if hasattr(model, "forecast"):
        raise TypeError(
            f"{type(model).__name__} forecasts by its own method: `model.forecast(n_steps)`."
        )
    if hasattr(model, "sample"):
        raise TypeError(
            f"{type(model).__name__} predicts labels, and forecast feeds numbers back as inputs. "
            f"If the inputs are symbols, `model.sample(n_steps)` draws the symbols "
            "that follow."
        )
    raise TypeError(
        "forecast needs a fitted ESNRegressor, NVARRegressor or RNNRegressor, a Pipeline, "
        "TransformedTargetRegressor or search that ends in one, or a Pipeline of a "
        f"ReservoirTransformer and a regressor; got {type(model).__name__}."
    )


Outputs = Callable[[Array], Array]


_GROUP = 32  # sequences that run in parallel: batches of whole groups give the bits of one run
_SEQUENCES = 1024  # in a batch, each with a separate state
_FEWEST_ROWS = 4096  # more sequences if these are short, because of the overhead of a batch
_MOST_ROWS = 2**16


class Predictor(Forecaster):
    """Base class that runs a fitted model over rows, as read by the estimator's reader.

    Forecasts and sessions create one for each call; it does not change the estimator. `n_fed_back`
    is the number of outputs that are fed back through feedback weights.
    """

    def __init__(self, estimator: Any, n_fed_back: int = 0) -> None:
        self.estimator, self.reader, model = estimator, estimator._reader, estimator._model
        self.progress, self.dtype = model.progress, model.dtype
        self.n_outputs, self.n_features_in = model.n_outputs, estimator.n_features_in_
        self.one_dimensional = self.reader.targets.one_dimensional
        self.state, self.feeds_back = estimator.state_, n_fed_back > 0
        self.n_units = self.state.size - n_fed_back
        self.certificate = getattr(model, "certificate", None)
        self.id_column = self.reader.id_place(Columns.of(estimator))

    # ------------------------------------------------------------------ defined by a family

    @abstractmethod
    def starts(
        self, spec: Any, sequences: Sequences, *, as_in_training: bool = False
    ) -> list[Array]:
        """Return the state before each sequence; None means the estimator's `initial_state`.

        If `as_in_training` is true, "last" means zeros, as in training: there is no earlier state.
        """

    @abstractmethod
    def run_over(
        self,
        sequences: Sequences,
        starts: list[Array],
        outputs_of: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence.

        `outputs_of` replaces the fitted readout, in families that have one. If the sequences are a
        batch of a larger call, `n_rows` is its total number of rows, which determines the engine.
        """

    # ------------------------------------------------------------------ over rows

    def state_after(self, rows: Array, targets: Array | None, state: Array) -> Array:
        """Return the state after rows; `targets` are fed back in these rows."""
        return self.run_over(Sequences((rows,), "table"), [state])[1][0]

    def _first_states(self, sequences: Sequences, as_in_training: bool) -> list[Array]:
        return self.starts(None, sequences, as_in_training=as_in_training)

    @property
    def end(self) -> Array | None:
        """The state from which a run can continue; None if there is none."""
        return self.state if self.progress.continues else None

    def read(self, X: Any) -> Sequences:
        """Return rows of input as sequences for the network."""
        sequences: Sequences = self.reader.inputs(self.estimator, X)
        return sequences

    def warm_up(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        """Return outputs and end states of a teacher-forced run."""
        return self.run_over(sequences, self.starts(spec, sequences))

    def predict(
        self,
        X: Any,
        initial_state: Any,
        decode: Callable[[Array], Array],
        outputs_of: Outputs | None = None,
        *,
        names: Sequence[Any] | None = None,
        return_state: bool = False,
    ) -> Any:
        """Return the decoded outputs in the container of X.

        `names` are the names of the columns, by default the names of the targets. With
        `return_state` the result is a pair of outputs and end states.
        """
        sequences = self.read(X)
        self.reader.warn_of_rows_beyond(self.estimator, sequences)
        last_only = self.reader.targets.per_sequence
        # not in batches with feedback, so that divergence is warned of once
        batches = [] if self.feeds_back else batches_of(sequences.lengths)
        if len(batches) > 1:
            spec = self.estimator.initial_state if initial_state is None else initial_state

            def run(some: Sequences, starts: list[Array]) -> tuple[list[Array], list[Array]]:
                return self.run_over(some, starts, outputs_of, sum(sequences.lengths))

            made, states = run_in_batches(
                batches,
                sequences,
                spec,
                self.starts,
                run,
                decode,
                last_only=last_only,
                return_state=return_state,
            )
        else:
            starts = self.starts(initial_state, sequences)
            outputs, states = self.run_over(sequences, starts, outputs_of)
            values = [decode(rows) for rows in outputs]
            each = sequences.restore
            made = np.stack([rows[-1] for rows in values]) if last_only else each(values)
        shown = self.reader.present(self.estimator, made, X, sequences, names)
        return (shown, packed_states(states, sequences)) if return_state else shown

    def score(self, X: Any, y: Any, sample_weight: Any, *, skip_missing: bool) -> float:
        """Return the score of the estimator's `predict`: R^2 or accuracy, over all rows."""
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            check_readable(name, given)
        check_has_rows("y", y, "(n_samples,)")
        estimator, coding = self.estimator, self.reader.targets
        score: float
        if coding.per_sequence:
            sequences = self.read(X)
            truth = coding.truth(estimator, y, sequences)
            weights = read_weights(sample_weight, sequences, per_sequence=True)
            each = None if weights is None else np.concatenate(weights)
            score = coding.score(truth, estimator.predict(X), each)
            return score
        start = None
        items = y[:1] if isinstance(y, (list, tuple, np.ndarray)) else [y]
        if any(index_of(item) is not None for item in items):  # in pipelines X has lost its index
            start = np.stack(self.starts(None, self.reader.inputs(estimator, X, y)))
        predicted = estimator.predict(X, initial_state=start)
        y, predicted, sample_weight = (join(each, X) for each in (y, predicted, sample_weight))
        if skip_missing:
            y, known = with_targets(y, labels=coding.classes is not None)
            y, predicted = y[known], predicted[known]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        score = coding.score(y, predicted, sample_weight)
        return score


def batches_of(lengths: Sequence[int]) -> list[Array]:
    """Return batches of indices of sequences, longest first; none if there are too few for two."""
    if len(lengths) <= _SEQUENCES:
        return []
    sizes = np.asarray(lengths)
    order = np.argsort(-sizes, kind="stable")
    rows = np.append(0, np.cumsum(sizes[order]))  # before each sequence
    ends = [0]
    # the last batch has at least two sequences: a single one would run by another code path
    for end in range(_GROUP, len(order) - 1, _GROUP):
        begin, n_rows = ends[-1], rows[end] - rows[ends[-1]]
        many = end - begin >= _SEQUENCES and n_rows >= _FEWEST_ROWS
        if many or n_rows >= _MOST_ROWS:
            ends.append(end)
    return np.split(order, ends[1:])


class Results:
    """Array or list for the results of all sequences, into which each batch is written directly.

    With `last_only`, each sequence has one row, its last, and the container is one array.
    """

    def __init__(self, sequences: Sequences, *, last_only: bool = False) -> None:
        self.sequences, self.last_only = sequences, last_only
        lengths = [1] * len(sequences) if last_only else sequences.lengths
        self._ends = np.cumsum(lengths)
        self._one_array = last_only or sequences.container in ("table", "array")
        self._rows: Array | None = None
        self._parts: list[Any] = [None] * len(sequences)

    def put(self, which: Sequence[int], parts: Sequence[Array]) -> None:
        """Store the results of some sequences, one array of shape (n_samples_i, ...) for each."""
        for i, rows in zip(which, parts, strict=True):
            rows = rows[-1:] if self.last_only else rows
            if not self._one_array:
                self._parts[i] = rows
            else:
                if self._rows is None:
                    self._rows = np.empty((self._ends[-1], *rows.shape[1:]), rows.dtype)
                self._rows[self._ends[i] - len(rows) : self._ends[i]] = rows

    def container(self) -> Any:
        """Return the results of all sequences."""
        if not self._one_array:
            return self.sequences.restore(self._parts)
        assert self._rows is not None
        if self.last_only or self.sequences.container == "table":
            return self._rows
        return self._rows.reshape(len(self._ends), -1, *self._rows.shape[1:])


def run_in_batches(
    batches: Sequence[Array],
    sequences: Sequences,
    spec: Any,
    starts_of: Callable[[Any, Sequences], list[Array]],
    run: Callable[[Sequences, list[Array]], tuple[list[Array], list[Array]]],
    decode: Callable[[Array], Any],
    *,
    last_only: bool = False,
    return_state: bool = False,
) -> tuple[Any, list[Array]]:
    """Return decoded outputs in the container of X, and end states if requested.

    Batches save memory: the states of all sequences at once would take more than the result. They
    are indices of sequences, as from `batches_of`. `spec` is the initial state as the user gave it,
    ``starts_of(spec, sequences)`` the states before some sequences, and ``run(sequences, starts)``
    returns their outputs and end states.
    """
    results, states = Results(sequences, last_only=last_only), [np.empty(0)] * len(sequences)
    each = not isinstance(spec, str) and np.ndim(spec) != 1  # a state for each sequence
    if each and (np.ndim(spec) != 2 or len(spec) != len(sequences)):
        starts_of(spec, sequences)  # raises
    for which in (batch.tolist() for batch in batches):
        some = sequences.some(which)
        outputs, ends = run(some, starts_of(np.asarray(spec)[which] if each else spec, some))
        results.put(which, [decode(rows) for rows in outputs])
        if return_state:
            for i, end in zip(which, ends, strict=True):
                states[i] = end
    return results.container(), states


def packed_states(states: list[Array], sequences: Sequences) -> Array:
    """Return end states for the user: a single one for a table, else a row for each sequence."""
    one_table = sequences.container == "table" and len(states) == 1
    return states[0] if one_table else np.stack(states)
