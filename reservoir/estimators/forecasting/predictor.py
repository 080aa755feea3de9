"""A fitted estimator ready to run: over rows, and on its own outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, index_of, read_last_weights, with_targets
from reservoir._validation.kinds import check_has_rows
from reservoir.estimators._batches import batches_of, packed_states, run_in_batches
from reservoir.estimators.forecasting.forecaster import Forecaster
from reservoir.estimators.reading import Columns, join

Outputs = Callable[[Array], Array]


class Predictor(Forecaster):
    """Runs a fitted model over rows that an estimator's reader reads; a family says how.

    It is what `forecast` asks of an estimator, and what a session runs. It is made for each call,
    and changes nothing.

    Parameters
    ----------
    estimator : estimator
        Fitted: with `_reader`, `_model` and `state_`.
    n_fed_back : int, default=0
        Outputs that come back through weights of their own.
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

    # ------------------------------------------------------------------ what a family gives

    @abstractmethod
    def starts(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Return the state before each sequence; None asks for the estimator's own."""

    @abstractmethod
    def run_over(
        self,
        sequences: Sequences,
        starts: list[Array],
        outputs_of: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence.

        `outputs_of` replaces the fitted readout, in families that have one. Where the sequences are
        some of a larger call, `n_rows` are all its rows: who steps is chosen by these.
        """

    # ------------------------------------------------------------------ over rows

    @property
    def end(self) -> Array | None:
        """The state that a run goes on from; None where it cannot."""
        return self.state if self.progress.continues else None

    def read(self, X: Any) -> Sequences:
        """Return rows of input as the network takes them."""
        sequences: Sequences = self.reader.inputs(self.estimator, X)
        return sequences

    def listen(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        """Return outputs and end states of a run on given inputs."""
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
        """Return what `decode` makes of the outputs, in the container of X.

        `names` are those of the columns, if they are not the targets'. With `return_state` a pair:
        that, and the end states.
        """
        sequences = self.read(X)
        last_only = self.reader.targets.per_sequence
        # loops that go astray are warned of once
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
        """Return how good the estimator's `predict` is: R^2 or accuracy, over all rows."""
        check_has_rows("y", y, "(n_samples,)")
        estimator, coding = self.estimator, self.reader.targets
        score: float
        if coding.per_sequence:
            sequences = self.read(X)
            truth = coding.truth(estimator, y, sequences)
            weights = read_last_weights(sample_weight, sequences)
            each = None if weights is None else np.concatenate(weights)
            score = coding.score(truth, estimator.predict(X), each)
            return score
        start = None
        items = y[:1] if isinstance(y, (list, tuple, np.ndarray)) else [y]
        if any(index_of(item) is not None for item in items):  # in pipelines X has lost its own
            start = np.stack(self.starts(None, self.reader.inputs(estimator, X, y)))
        predicted = estimator.predict(X, initial_state=start)
        y, predicted, sample_weight = (join(each, X) for each in (y, predicted, sample_weight))
        if skip_missing:
            y, known = with_targets(y, labels=coding.classes is not None)
            y, predicted = y[known], predicted[known]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        score = coding.score(y, predicted, sample_weight)
        return score
