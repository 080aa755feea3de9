"""Estimators of whole sequences: one row of features, one label or number for each."""

from reservoir.estimators.sequences.esn_sequence_classifier import ESNSequenceClassifier
from reservoir.estimators.sequences.esn_sequence_regressor import ESNSequenceRegressor
from reservoir.estimators.sequences.liquid_state_machine import LiquidStateMachine
from reservoir.estimators.sequences.reservoir_features import ReservoirFeatures

__all__ = [
    "ESNSequenceClassifier",
    "ESNSequenceRegressor",
    "LiquidStateMachine",
    "ReservoirFeatures",
]
