"""Echo state networks with the interface of scikit-learn.

The distribution is called ``reservoir-esn``, the import ``reservoir``.
"""

import importlib

from reservoir.estimators import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    LocalForecaster,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    SeasonalNaive,
    fill_gap,
    fill_gaps,
    force_train,
    forecast,
    load,
    save,
)

__version__ = "0.1.0"

__all__ = [
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "ESNSequenceClassifier",
    "ESNSequenceRegressor",
    "LiquidStateMachine",
    "LocalForecaster",
    "NVARRegressor",
    "RNNClassifier",
    "RNNRegressor",
    "ReservoirFeatures",
    "ReservoirTransformer",
    "SeasonalNaive",
    "__version__",
    "fill_gap",
    "fill_gaps",
    "force_train",
    "forecast",
    "load",
    "save",
]

# registers the tables of Dask, which is not imported
importlib.import_module("reservoir.interop")
