"""A forecaster that is no network: the next value is the present one plus what is learned."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from reservoir._tables import Sequences
from reservoir.estimators.forecasting.predictor import Forecaster, forecaster_of
from reservoir.estimators.progress import Progress


class Drift(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        X, y = np.asarray(X), np.asarray(y)
        self.n_features_in_, self.drift_ = X.shape[1], float(np.mean(y - X[:, 0]))
        self._progress = Progress(1)
        self._progress.finish(Sequences((X,), "table"), [y[:, None]], washout=0)
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0] + self.drift_


class DriftForecaster(Forecaster):
    n_outputs, id_column, one_dimensional, feeds_back, n_units = 1, None, True, False, 0
    dtype, certificate, state = np.dtype(float), None, np.zeros(0)

    def __init__(self, model):
        self.n_features_in, self.progress = model.n_features_in_, model._progress
        self.drift = model.drift_

    def check_can_loop(self):
        pass

    def read(self, X):
        return Sequences((np.asarray(X, dtype=float),), "table")

    def starts(self, spec, sequences):
        return [self.state for _ in sequences.arrays]

    def warm_up(self, sequences, spec):
        return [X[:, :1] + self.drift for X in sequences.arrays], self.starts(spec, sequences)

    def readout(self):
        return lambda features: features[:1] + self.drift

    def run(self, readout, n_steps, *, initial_state, initial_output, exog=None, clip=None):
        rows = np.empty((n_steps, 1))
        for k in range(n_steps):
            rows[k] = initial_output = readout(initial_output)
        return rows, initial_state, n_steps


@forecaster_of.register
def _(model: Drift) -> Forecaster:
    return DriftForecaster(model)
