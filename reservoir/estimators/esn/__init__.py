"""Echo state networks as estimators: a fixed source of features under a readout that is learned.

`_echo_state` is what they share, `sources` lists what a source of features may be, `_learning`
takes sequences to a readout in batches.
"""

from reservoir.estimators.esn.esn_classifier import ESNClassifier
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.estimators.esn.transformer import ReservoirTransformer

__all__ = ["ESNClassifier", "ESNRegressor", "ReservoirTransformer"]
