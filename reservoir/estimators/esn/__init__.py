"""Echo state networks and related models: a learned readout over a fixed source of features.

The modules: `source_estimator` contains the base classes, with the `fit` that all of these models
share; `readout_model` contains the model that is learned, and runs it; `sources` builds reservoirs;
`readout_training` passes sequences to a readout in batches; `force` trains a closed loop while it
runs.
"""

from reservoir.estimators.esn.esn_classifier import ESNClassifier
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.estimators.esn.force import ForceHistory, force_train
from reservoir.estimators.esn.local_forecaster import LocalForecaster
from reservoir.estimators.esn.nvar_regressor import NVARRegressor
from reservoir.estimators.esn.part_plan import PartPlan, SeamError, plan_parts
from reservoir.estimators.esn.transformer import ReservoirTransformer

__all__ = [
    "ESNClassifier",
    "ESNRegressor",
    "ForceHistory",
    "LocalForecaster",
    "NVARRegressor",
    "PartPlan",
    "ReservoirTransformer",
    "SeamError",
    "force_train",
    "plan_parts",
]
