"""Estimators with scikit-learn's interface: thin shells over functions on arrays."""

from reservoir.estimators.classifier import ESNClassifier
from reservoir.estimators.esn import ESNRegressor
from reservoir.estimators.forecast import forecast
from reservoir.estimators.persistence import load, save
from reservoir.estimators.rnn import RNNRegressor
from reservoir.estimators.rnn_classifier import RNNClassifier
from reservoir.estimators.stream import Stream
from reservoir.estimators.transformer import ReservoirTransformer

__all__ = [
    "ESNClassifier",
    "ESNRegressor",
    "RNNClassifier",
    "RNNRegressor",
    "ReservoirTransformer",
    "Stream",
    "forecast",
    "load",
    "save",
]
