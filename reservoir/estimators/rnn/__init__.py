"""Recurrent networks as estimators: every weight is trained, from a least-squares start.

To follow a fit begin with `fit` in `network_estimator`, which calls each step: `start` makes a
network and initial weights from the parameters; `start_trials` selects a start, and checks that its
closed loops stay in the training range; `training_run` prepares the data and runs the solver. The
result is a `network_model`, which also runs the network; `online_learning` continues its training,
chunk by chunk or in a session; `symbols` reads the arguments of `RNNClassifier.sample`.
"""

from reservoir.estimators.rnn.rnn_classifier import RNNClassifier
from reservoir.estimators.rnn.rnn_regressor import RNNRegressor

__all__ = ["RNNClassifier", "RNNRegressor"]
