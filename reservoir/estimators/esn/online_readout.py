"""Learning in a session: the readout is updated row by row with features of the source."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.fed_back import one_step_late
from reservoir.dynamics.saturation import Record
from reservoir.estimators.esn.readout_model import warn_of_range
from reservoir.estimators.esn.readout_training import naming_columns
from reservoir.estimators.reading import Columns
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.stream import NewRows, SessionLearner, rows_that_enter
from reservoir.readouts.contract import ReadoutSettings, RowLearner


@saved
class FeatureLearner(SessionLearner):
    """Learner of the readout over a source of features.

    `readout` learns rows and continues from the readout of the estimator. `noise` generates the
    noise on the states until the sequence ends; `activity` is None if no warning of units is to be
    given.
    """

    def __init__(
        self, readout: RowLearner, noise: np.random.Generator | None, activity: Record | None
    ) -> None:
        self.readout, self.activity = readout, activity
        self.noise = copy.deepcopy(noise)
        self.new = False  # whether rows were learned since the fitted attributes were set

    def learn(self, estimator: Any, new: NewRows) -> Array:
        """Run over rows, and learn from those that enter."""
        rows, targets, weights = new.rows, new.targets, new.weights
        learned = copy.copy(estimator._model)  # a model is replaced at the end, never changed
        source, reader = learned.source, estimator._reader
        warn_of_range(learned.source, learned.certificate, Sequences((rows,), "table"))
        size, enter = source.state_size, rows_that_enter(targets, weights, new.skip)
        state, last = new.start[:size], new.start[size:]
        teacher = one_step_late(last, targets) if source.n_fed_back else None
        readout_targets = learned.readout_targets(rows, targets)
        activity, of_filter = copy.copy(self.activity), _filter_after(estimator, rows, new.start)
        with restored_on_error(self), naming_columns(source, reader.sequence_column):
            self.noise = copy.deepcopy(self.noise)
            if estimator.noise > 0 and (self.noise is None or not new.follows):
                self.noise = learned.next_noise()
            noise = estimator.noise, self.noise
            run = Run(teacher, *noise, engine=learned.engine, activity=activity, skip=new.skip)
            for begin, features, end in source.iter_features(rows, state, run):
                if begin == 0 and len(features) < len(rows):
                    self.readout = copy.deepcopy(self.readout)  # a later block may raise an error
                state = end
                block = slice(begin, begin + len(features))
                w = None if weights is None else weights[block]
                of_block = features, readout_targets[block], w, enter[block]
                self._learn_block(estimator, *of_block, begin, follows=new.follows or begin > 0)
            names = reader.names_of_columns(Columns.of(estimator))
            warned = activity and activity.warn(source.reservoir, names)
            self.activity = None if warned else activity
            learned.n_trained += len(rows)
            estimator._model = learned
        if source.n_fed_back:
            return np.concatenate([state, targets[-1].astype(state.dtype)])
        return np.concatenate([state, of_filter])

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
        """Set the coefficients or other fitted attributes of the readout."""
        if self.new:
            settings = estimator._new_readout(estimator._reader, partial=True).settings
            vars(estimator).update(estimator._model.of_targets(self.readout.fitted(settings)))
            self.new = False

    def finish(self, estimator: Any, *, complete: bool) -> None:
        """Set the fitted attributes, and the readout from which partial_fit continues."""
        self.new = True
        self.settle(estimator)
        if not complete:
            self.readout.separate()
        one = copy.copy(estimator._model)
        one.noise_generator, one.state = self.noise, estimator.state_
        one.readout = self.readout.readout()
        one.readout.settings = ReadoutSettings()
        estimator._model = one

    @property
    def forgetting(self) -> float:
        """Factor by which each row multiplies the weights of all earlier rows."""
        return self.readout.forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self.readout.forgetting = value

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`."""
        self.readout.forget(factor)
        self.new = True


def _filter_after(estimator: Any, rows: Array, start: Array) -> Array:
    """Return the state of the filter over labels after rows, which are not learned from yet.

    It is empty without a filter.
    """
    model = estimator._model
    if model.label_filter is None:
        return start[:0]
    end: Array = estimator._predictor().run_over(Sequences((rows,), "table"), [start])[1][0]
    return end[model.source.state_size :]
