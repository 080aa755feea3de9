"""Whole sequences: one row of features, one label or one number per series."""

from reservoir.estimators.sequences.reservoir_features import ReservoirFeatures

__all__ = ["ReservoirFeatures"]
