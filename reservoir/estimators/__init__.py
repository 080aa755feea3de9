"""Estimators with scikit-learn's interface: thin shells over functions on arrays.

The packages: `esn` and `rnn` (the two families of networks), `forecasting` (closed loops), `series`
(forecasters that choose their networks automatically), `sequences` (one output per sequence).
Shared modules: `reading` (input data and containers of results), `targets` (numbers or labels),
`progress` (how much data an estimator has learned from), `parameters` (each written once),
`time_series_estimator` (base of estimators whose rows are time steps), `session` (the position of
a session, sessions of transformers), `stream` (sessions that learn), `describe` (HTML of fitted
estimators), `reporting` (progress bars, restoring after errors).

To follow a fit, begin with `fit` in `esn.source_estimator`, or for trained networks in
`rnn.network_estimator`: they name each step.
"""

from reservoir.estimators.esn import (
    ESNClassifier,
    ESNRegressor,
    ForceHistory,
    LocalForecaster,
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
from reservoir.estimators.series import ESNForecaster, SeasonalNaive
from reservoir.estimators.session import StateStream
from reservoir.estimators.stream import Stream

__all__ = [
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "ESNSequenceClassifier",
    "ESNSequenceRegressor",
    "LiquidStateMachine",
    "ForceHistory",
    "LocalForecaster",
    "NVARRegressor",
    "RNNClassifier",
    "RNNRegressor",
    "ReservoirFeatures",
    "ReservoirTransformer",
    "SeasonalNaive",
    "StateStream",
    "Stream",
    "fill_gap",
    "fill_gaps",
    "force_train",
    "forecast",
    "load",
    "save",
]
