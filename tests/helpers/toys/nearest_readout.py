"""A readout: the output of a row is the target of the nearest training row."""

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from reservoir._saving import saved
from reservoir.readouts.contract import Readout, RowLearner


@saved
class NearestReadout(Readout):
    fitted = ("rows_", "values_")
    lazy = True

    def __init__(self, settings):
        super().__init__(settings)
        self.rows, self.values = [], []

    @classmethod
    def takes(cls, readout):
        return isinstance(readout, str) and readout == "nearest"

    @property
    def n_rows(self):
        return sum(map(len, self.rows))

    def check_partial(self):
        pass  # more rows are more rows

    def update(self, features, targets, weights=None, *, part=0):
        self.rows.append(features.copy())
        self.values.append(targets.copy())

    def merge(self, other):
        self.rows, self.values = self.rows + other.rows, self.values + other.values

    def solve(self):
        return {"rows_": np.concatenate(self.rows), "values_": np.concatenate(self.values)}

    @classmethod
    def outputs(cls, model):
        rows, values = model.rows_, model.values_
        return lambda features: values[pairwise_distances_argmin(features, rows)]

    def row_learner(self, model):
        return NearestRows(self.renewed(self.settings))


@saved
class NearestRows(RowLearner):
    def __init__(self, kept):
        self.kept = kept
        self.kept.rows, self.kept.values = list(kept.rows), list(kept.values)

    def learn(self, features, targets, weights, decode):
        self.kept.update(features, targets)

    def fitted(self, settings):
        return self.kept.solve()

    def readout(self):
        return self.kept
