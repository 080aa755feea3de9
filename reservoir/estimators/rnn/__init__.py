"""Recurrent networks as estimators: every weight is trained, from a least-squares start.

To follow a fit begin with `fit` in `network_estimator`, which names each step: `start`, from
parameters to a network and first weights; `start_trials`, which start is taken, and whether its
closed loops stay in the training range; `training_run`, what is learned, and by which solver. What
is fitted is a `network_model`, which also says how it is run; `online_learning` goes on with it,
chunk by chunk or in a session; `symbols` reads what `RNNClassifier.sample` is given.
"""

from reservoir.estimators.rnn.rnn_classifier import RNNClassifier
from reservoir.estimators.rnn.rnn_regressor import RNNRegressor

__all__ = ["RNNClassifier", "RNNRegressor"]
