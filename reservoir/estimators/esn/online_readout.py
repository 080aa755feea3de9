"""Learning in a session: features come from the source, the readout goes on row by row."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import Sequences
from reservoir.dynamics.fed_back import one_step_late
from reservoir.dynamics.saturation import Record
from reservoir.estimators.esn.readout_training import naming_columns
from reservoir.estimators.reading import Columns
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.session_learner import SessionLearner, rows_that_enter
from reservoir.readouts.contract import ReadoutSettings, RowLearner


@saved
class FeatureLearner(SessionLearner):
    """Learns the readout over a source of features.

    Parameters
    ----------
    readout : RowLearner
        Goes on from what the estimator has learned.
    noise : numpy.random.Generator or None
        Where the noise on states comes from, as long as the sequence goes on.
    activity : Activity, Growth or None
        A record of what the units do; None if nothing is to be said of them.
    """

    activity: Record | None = None  # in files that know none

    def __init__(
        self, readout: RowLearner, noise: np.random.Generator | None, activity: Record | None
    ) -> None:
        self.readout, self.activity = readout, activity
        self.noise = copy.deepcopy(noise)
        self.new = False  # whether rows have come since the fitted attributes were told

    def learn(
        self,
        estimator: Any,
        rows: Array,
        targets: Array,
        weights: Array | None,
        *,
        start: Array,
        skip: int,
        follows: bool,
    ) -> Array:
        """Run over rows, and learn from those that enter."""
        learned = copy.copy(estimator._model)  # replaced at the end, never changed
        source, reader = learned.source, estimator._reader
        learned.warn_of_range(Sequences((rows,), "table"))
        size, enter = source.state_size, rows_that_enter(targets, weights, skip)
        state, last = start[:size], start[size:]
        teacher = one_step_late(last, targets) if source.n_fed_back else None
        taught = learned.readout_targets(rows, targets)
        activity = copy.copy(self.activity)
        watched = {} if activity is None else {"activity": activity, "skip": skip}
        kept = restored_on_error(self, () if self.noise is None else ("noise",))
        with kept, naming_columns(source, reader.sequence_column):
            if estimator.noise > 0 and (self.noise is None or not follows):
                self.noise = learned.next_noise()
            blocks = source.iter_features(
                rows,
                state,
                teacher=teacher,
                noise=estimator.noise,
                generator=self.noise,
                engine=learned.engine,
                **watched,
            )
            for begin, features, end in blocks:
                if begin == 0 and len(features) < len(rows):
                    self.readout = copy.deepcopy(self.readout)  # a later block may be refused
                state = end
                block = slice(begin, begin + len(features))
                w = None if weights is None else weights[block]
                of_block = features, taught[block], w, enter[block]
                self._learn_block(estimator, *of_block, begin, follows=follows or begin > 0)
            names = reader.names_of_columns(Columns.of(estimator))
            said = activity and activity.warn(source.reservoir, names)
            self.activity = None if said else activity
            learned.n_trained += len(rows)
            estimator._model = learned
        if source.n_fed_back:
            return np.concatenate([state, targets[-1].astype(state.dtype)])
        return state

    def _learn_block(
        self,
        estimator: Any,
        features: Array,
        targets: Array,
        weights: Array | None,
        enter: Array,
        begin: int,
        *,
        follows: bool,
    ) -> None:
        if not enter.any():
            return
        numbers = estimator._model.n_trained + begin + np.flatnonzero(enter)
        if not enter.all():
            features, targets = features[enter], targets[enter]
            weights = None if weights is None else weights[enter]
        self.readout.learn(features, targets, weights, estimator._reader.targets.for_readout)
        if not follows:
            self.readout.separate()
        self.readout.sample(numbers, features, targets, weights)
        self.new = True

    def settle(self, estimator: Any) -> None:
        """Set coefficients, or whatever else the readout has."""
        if self.new:
            settings = estimator._new_readout(estimator._reader, partial=True).settings
            vars(estimator).update(estimator._model.of_targets(self.readout.fitted(settings)))
            self.new = False

    def finish(self, estimator: Any, *, stands: bool) -> None:
        """Set the readout, too, from which partial_fit goes on."""
        self.new = True
        self.settle(estimator)
        if not stands:
            self.readout.separate()
        one = copy.copy(estimator._model)
        one.readout, one.noise_generator, one.state = (
            self.readout.readout(),
            self.noise,
            estimator.state_,
        )
        one.readout.settings = ReadoutSettings()
        estimator._model = one

    @property
    def forgetting(self) -> float:
        """Factor on the weights of all earlier rows, for each row."""
        return self.readout.forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self.readout.forgetting = value

    def forget(self, factor: float) -> None:
        """Let all that was learned so far weigh `factor` times as much."""
        self.readout.forget(factor)
        self.new = True
