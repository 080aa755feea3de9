"""Echo state networks and their kin: a fixed source of features under a readout that is learned.

`source_estimator` has the `fit` of all of them, `readout_model` what is learned and how it is run,
`sources` makes reservoirs, `readout_training` takes sequences to a readout in batches; `force`
trains a loop while it runs.
"""

from reservoir.estimators.esn.esn_classifier import ESNClassifier
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.estimators.esn.force import ForceHistory, force_train
from reservoir.estimators.esn.nvar_regressor import NVARRegressor
from reservoir.estimators.esn.transformer import ReservoirTransformer

__all__ = [
    "ESNClassifier",
    "ESNRegressor",
    "ForceHistory",
    "NVARRegressor",
    "ReservoirTransformer",
    "force_train",
]
