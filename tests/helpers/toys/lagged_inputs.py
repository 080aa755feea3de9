"""A source of features without a reservoir: the last rows of the input, side by side."""

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir.dynamics.feature_source import PLAIN_RUN, FeatureSource


@saved
@dataclass(frozen=True, eq=False)
class LaggedInputs(FeatureSource):
    n_features: int
    n_lags: int
    dtype: np.dtype

    @property
    def width(self):
        return self.n_features * (self.n_lags + 1)

    @property
    def state_size(self):
        return self.n_features * self.n_lags

    def iter_features(self, rows, state, run=PLAIN_RUN):
        known = np.vstack([state.reshape(self.n_lags, self.n_features), rows])
        windows = [known[k : k + len(rows)] for k in range(self.n_lags + 1)]
        yield 0, np.hstack(windows), known[len(rows) :].ravel().copy()


def lagged_inputs(estimator, rows):
    """Return the source that an estimator's parameters describe, for given rows."""
    return LaggedInputs(rows[0].shape[1], estimator.n_lags, rows[0].dtype)
