"""Recurrent networks as estimators: every weight is trained, from a least-squares start.

`_trained_network` is what they share. The steps of a fit are `_starting_weights`, where training
starts; `_start_trial`, which start suits one target per sequence; `_training_run`; and
`_loop_trial`, whether closed loops stay in the training range.
"""

from reservoir.estimators.rnn.rnn_classifier import RNNClassifier
from reservoir.estimators.rnn.rnn_regressor import RNNRegressor

__all__ = ["RNNClassifier", "RNNRegressor"]
