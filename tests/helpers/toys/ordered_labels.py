"""Targets that are labels in an order: one column, the rank; outputs are rounded back."""

from dataclasses import dataclass

import numpy as np

from reservoir import ESNRegressor
from reservoir._saving import saved
from reservoir._tables.targets import read_labels
from reservoir.estimators.parameters import documented, parameter
from reservoir.estimators.targets import TargetCoding


@saved
class OrderedLabels(TargetCoding):
    def __init__(self, order):
        super().__init__()
        self.order = np.array(order)

    def read(self, estimator, y, sequences, *, first, **known):
        labels, _ = read_labels(estimator, y, sequences)
        return [
            (part[:, None] == self.order).argmax(axis=1)[:, None].astype(float) for part in labels
        ]

    def decode(self, columns):
        ranks = np.clip(np.rint(columns[:, 0]), 0, len(self.order) - 1)
        return self.order[ranks.astype(int)]

    @staticmethod
    def score(y, predicted, sample_weight):
        return float(np.average(np.asarray(y) == predicted, weights=sample_weight))


@documented()
@saved
@dataclass(eq=False, repr=False, kw_only=True)
class OrderedRegressor(ESNRegressor):
    """An echo state network for labels in an order.

    Parameters
    ----------
    {PARAMETERS}
    """

    order: tuple = parameter(("low", "middle", "high"), "tuple of labels", "From low to high.")

    def _coding(self):
        return OrderedLabels(self.order)
