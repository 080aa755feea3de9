"""What estimators of sequences share, whatever network they hold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    check_count,
    index_of,
    read_last_weights,
    read_series,
    read_weights,
    refuse_one_row,
    resolve_washout,
    with_targets,
)
from reservoir._validation.kinds import refuse_scalar
from reservoir.estimators._batches import batches_of, packed_states, run_in_batches
from reservoir.estimators._parameters import LearnerParameters, SequenceParameters
from reservoir.estimators._predict_output import asks_for_pandas, in_frames, in_one_frame
from reservoir.estimators._progress import Progress
from reservoir.estimators._reporting import leaving_no_trace
from reservoir.estimators._session_learner import SessionLearner
from reservoir.estimators._target_coding import TargetCoding
from reservoir.estimators.reading import join, names_of, read_dtype
from reservoir.estimators.time_series_estimator import TimeSeriesEstimator
from reservoir.loops.loop_by_loop import run_one_by_one, states_before

_Self = TypeVar("_Self", bound="SequenceEstimator")


class SequenceEstimator(TimeSeriesEstimator, LearnerParameters, SequenceParameters):
    """An estimator whose rows are time steps.

    The order of things in a fit, the reading of containers, targets and weights, where runs start
    and what is left after an error are here; what a network is, and how it learns, is said by the
    two families below.
    """

    _changed_in_place: tuple[str, ...] = ("_progress",)
    _progress: Progress
    _targets: TargetCoding
    _sequence_column: Any
    _target_names: list[Any] | None = None  # as in files of versions that did not know them

    # ------------------------------------------------------------------ what a family says

    @property
    @abstractmethod
    def _dtype(self) -> Any:
        """Return the dtype of a fitted network."""

    @abstractmethod
    def _coding(self) -> TargetCoding:
        """Return how targets are read, before any have been."""

    @abstractmethod
    def _fit(
        self, sequences: Sequences, targets: list[Array], weights: list[Array] | None, data: Any
    ) -> None:
        """Learn from all sequences; `data` holds X and y as the user gave them."""

    @abstractmethod
    def _partial_fit(
        self, sequences: Sequences, targets: list[Array], data: Any, *, new_sequence: bool
    ) -> None:
        """Go on learning; families that take weights of rows get them as `weights`."""

    @abstractmethod
    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence, for a fitted network."""

    @abstractmethod
    def _outputs_from(
        self,
        sequences: Sequences,
        starts: list[Array],
        readout: Any = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence, from these states.

        `readout`, for families that have one, replaces the fitted one. Where the sequences are some
        of a larger job, `n_rows` are all its rows: who steps is chosen by these.
        """

    def _session_learner(self) -> SessionLearner:
        """Return what goes on learning in a session; most families say how."""
        raise TypeError(f"{type(self).__name__} does not learn in a session; use partial_fit.")

    _n_fed_back = 0  # outputs that come back through weights of their own

    def _refuse_loop(self) -> None:
        """Refuse a network whose outputs cannot be its next inputs; most can."""

    def _outputs(
        self, sequences: Sequences, spec: Any, readout: Any = None
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence, from where `spec` says."""
        return self._outputs_from(sequences, self._start_states(spec, sequences), readout)

    def _listen(self, rows: Array, targets: Array | None, state: Array) -> Array:
        """Return the state behind rows that are run over as in training."""
        return self._outputs(Sequences((rows,), "table"), state)[1][0]

    def _starts_of_training(self, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence where nothing came before, as in training."""
        last = isinstance(self.initial_state, str) and self.initial_state == "last"
        return self._start_states("zeros" if last else self.initial_state, sequences)

    def _readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        """Return what the training rows lead to under other penalties; None if it is not known."""
        return None

    def _run_loops(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run loops from several starts under several readouts; `run_one_by_one` says how."""
        return run_one_by_one(self._run_loop, readouts, n_steps, **options)  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ learning

    def _learn_all(self: _Self, X: Any, y: Any, sample_weight: Any) -> _Self:
        """Read the data and learn from all of it, or leave everything as it was."""
        with leaving_no_trace(self, self._changed_in_place):
            sequences = self._read(X, y, reset=True)
            refuse_one_row(self, sequences)
            targets = self._read_targets(y, sequences, first=True)
            by_class = getattr(self, "class_weight", None)
            weights = self._targets.weights(sample_weight, sequences, targets, by_class)
            self._fit(sequences, targets, weights, (X, y))
        return self

    def _learn_chunk(
        self: _Self, X: Any, y: Any, sample_weight: Any = None, *, new_sequence: bool, **known: Any
    ) -> _Self:
        """Read a chunk and learn from it, or leave everything as it was."""
        if getattr(self, "class_weight", None) is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} is not supported by partial_fit, which sees "  # type: ignore[attr-defined]
                "one chunk at a time. Use fit, or class_weight=None."
            )
        with leaving_no_trace(self, self._changed_in_place):
            sequences = self._read(X, y, reset=self._is_new)
            targets = self._read_targets(y, sequences, first=self._is_new, **known)
            weights = read_weights(sample_weight, sequences, all_zero=True)
            options: dict[str, Any] = {} if weights is None else {"weights": weights}
            self._partial_fit(sequences, targets, (X, y), new_sequence=new_sequence, **options)
        return self

    @property
    def _is_new(self) -> bool:
        """Whether nothing has been learned from yet."""
        return "_progress" not in vars(self)

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        return read_series(self, X, y, reset=reset, **self._reading(reset))

    def _reading(self, reset: bool) -> dict[str, Any]:
        """Return the dtype and the id column that X is read with."""
        dtype = self._dtype_asked_for() if reset else self._dtype
        return {
            "dtype": dtype,
            "sequence_column": self.sequence_column if reset else self._sequence_column,
        }

    def _dtype_asked_for(self) -> Any:
        """Return numpy's float32 or float64 for the parameter `dtype`."""
        return read_dtype(self.dtype)

    def _read_targets(
        self, y: Any, sequences: Sequences, *, first: bool, **known: Any
    ) -> list[Array]:
        if first:
            self._targets = self._coding()
        targets = self._targets.read(self, y, sequences, first=first, **known)
        if first:
            self._target_names = names_of(y)
        return targets

    def _washout_of_chunks(self, n_samples: int) -> int:
        """Return the washout that the first chunk decides for all that follow."""
        washout = self.washout  # type: ignore[attr-defined]
        if isinstance(washout, str):
            return resolve_washout(washout, [n_samples])[0]
        return check_count("washout", washout, minimum=0)

    def _refuse_other_outputs(self, targets: list[Array]) -> None:
        """Refuse a chunk with another number of outputs than those before."""
        n_outputs = targets[0].shape[1]
        if n_outputs != self.n_outputs_:  # type: ignore[attr-defined]
            raise ValueError(
                f"y has {n_outputs} outputs; earlier calls had {self.n_outputs_}."  # type: ignore[attr-defined]
            )

    # ------------------------------------------------------------------ using the fitted network

    def _predict(
        self,
        X: Any,
        initial_state: Any,
        decode: Any,
        readout: Any = None,
        *,
        names: Sequence[Any] | None = None,
        return_state: bool = False,
    ) -> Any:
        """Return what `decode` makes of the outputs, in the container of X.

        `names` are those of the columns, if they are not the targets'. With `return_state` a pair:
        that, and the end states.
        """
        self._check_fitted()
        sequences = self._read(X, reset=False)
        # loops that go astray are warned of once
        batches = [] if self._n_fed_back else batches_of(sequences.lengths)
        states: Any
        if len(batches) > 1:
            spec = self.initial_state if initial_state is None else initial_state
            made, states = run_in_batches(
                batches,
                sequences,
                spec,
                self._start_states,
                self._outputs_from,
                decode,
                last_only=self._targets.per_sequence,
                return_state=return_state,
            )
        else:
            outputs, states = self._outputs(sequences, initial_state, readout)
            values = [decode(rows) for rows in outputs]
            last = self._targets.per_sequence
            made = np.stack([rows[-1] for rows in values]) if last else sequences.restore(values)
        shown = self._presented(made, X, sequences, names)
        return (shown, packed_states(states, sequences)) if return_state else shown

    def _predicts_by(self) -> tuple[Any, Any]:
        """Return what makes predictions of outputs, and what outputs are: None for the usual."""
        return self._targets.decode, None

    def _presented(
        self, values: Any, X: Any, sequences: Sequences, names: Sequence[Any] | None = None
    ) -> Any:
        """Return values, in the container of X or one for each sequence, as they are asked for."""
        if not asks_for_pandas(self):
            return values
        names = self._target_names if names is None else names
        if self._targets.per_sequence:
            return in_one_frame(values, X, sequences, names, self._sequence_column)
        return in_frames(values, X, sequences, names)

    def _score(self, X: Any, y: Any, sample_weight: Any) -> float:
        self._check_fitted()
        refuse_scalar("y", y, "(n_samples,)")
        predict, score = self.predict, self._targets.score  # type: ignore[attr-defined]
        if self._targets.per_sequence:
            sequences = self._read(X, reset=False)
            truth = self._targets.truth(self, y, sequences)
            weights = read_last_weights(sample_weight, sequences)
            return score(truth, predict(X), None if weights is None else np.concatenate(weights))
        predicted = predict(X, initial_state=self._starts_of_score(X, y))
        y, predicted, sample_weight = (join(each, X) for each in (y, predicted, sample_weight))
        if getattr(self, "missing_targets", "raise") == "skip":
            y, known = with_targets(y, labels=self._targets.classes is not None)
            y, predicted = y[known], predicted[known]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return score(y, predicted, sample_weight)

    def _starts_of_score(self, X: Any, y: Any) -> Array | None:
        """Return where a run that is scored starts, by the index of y too; None: as in `predict`.

        In a pipeline X has often lost its index, and y has not.
        """
        items = y[:1] if isinstance(y, (list, tuple, np.ndarray)) else [y]
        if not any(index_of(item) is not None for item in items):
            return None
        return np.stack(self._start_states(None, self._read(X, y, reset=False)))

    def _last_state(self) -> Array | None:
        """Return the state that a run goes on from; None where it cannot."""
        return self.state_ if self._progress.continues else None  # type: ignore[attr-defined]


class NetworkForecaster:
    """What forecasts ask of a fitted estimator; `reservoir.estimators.forecasting.forecaster`."""

    def __init__(self, estimator: Any) -> None:
        estimator._check_fitted()
        self._estimator = estimator
        self.n_outputs = estimator.n_outputs_
        self.n_features_in = estimator.n_features_in_
        self.dtype = estimator._dtype
        self.one_dimensional = estimator._targets.one_dimensional
        self.feeds_back = estimator._n_fed_back > 0
        self.n_units = estimator.state_.size - estimator._n_fed_back
        self.progress = estimator._progress
        self.state = estimator.state_
        self.certificate = getattr(estimator, "certificate_", None)
        self.id_column = self._find_ids()
        # the same data went through these in training
        self.refuse_loop = estimator._refuse_loop
        self.starts = estimator._start_states
        self.listen = estimator._outputs
        self.readout = estimator._loop_readout
        self.readout_path = estimator._readout_path
        self.run = estimator._run_loop
        self.run_many = estimator._run_loops

    def read(self, X: Any) -> Sequences:
        """Return rows of input as the network takes them."""
        return self._estimator._read(X, reset=False)

    def states_at(
        self,
        places: Sequence[tuple[int, int]],
        sequences: Sequences,
        targets: Sequence[Array] | None = None,
        *,
        anew: bool = True,
    ) -> list[Array]:
        """Return the state before each place, (sequence, row), of a run as in training."""
        estimator = self._estimator
        if anew:
            starts = estimator._starts_of_training(sequences)
        else:
            starts = estimator._start_states(None, sequences)

        def listen(i: int, begin: int, end: int, state: Array) -> Array:
            taught = None if targets is None else targets[i][begin:end]
            return estimator._listen(sequences.arrays[i][begin:end], taught, state)

        return states_before(places, starts, listen)

    def _find_ids(self) -> int | None:
        """Return where the ids stand in X."""
        column = self._estimator._sequence_column
        if isinstance(column, str):
            return list(self._estimator.feature_names_in_).index(column)
        return None if column is None else int(column) % self.n_features_in
