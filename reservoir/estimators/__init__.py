"""Estimators with scikit-learn's interface: thin shells over functions on arrays.

`esn` and `rnn` hold the two families, `forecasting` what runs them on their own outputs, `series`
forecasters that find their networks by themselves, `sequences` what takes whole sequences as cases.
What they share is beside: `reading` (X and y, once, at the door), `time_series_estimator` (the base
of estimators whose rows are time steps), `stream` (sessions), `_parameters` (each written once),
`_progress` (where an estimator stands in its data), `_target_coding` (numbers or labels).

To follow a fit begin with `fit` in `esn.source_estimator`, or of trained networks in
`rnn.network_estimator`: they name each step.
"""

from reservoir.estimators.esn import (
    ESNClassifier,
    ESNRegressor,
    ForceHistory,
    NVARRegressor,
    ReservoirTransformer,
    force_train,
)
from reservoir.estimators.forecasting import fill_gap, fill_gaps, forecast
from reservoir.estimators.persistence import load, save
from reservoir.estimators.rnn import RNNClassifier, RNNRegressor
from reservoir.estimators.sequences import (
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    ReservoirFeatures,
)
from reservoir.estimators.series import ESNForecaster
from reservoir.estimators.stream import Stream

__all__ = [
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "ESNSequenceClassifier",
    "ESNSequenceRegressor",
    "LiquidStateMachine",
    "ForceHistory",
    "NVARRegressor",
    "RNNClassifier",
    "RNNRegressor",
    "ReservoirFeatures",
    "ReservoirTransformer",
    "Stream",
    "fill_gap",
    "fill_gaps",
    "force_train",
    "forecast",
    "load",
    "save",
]
