"""Fitted attributes in the docstrings of trained networks."""

FITTED = """
params_ : dict of arrays
    The weights: "W_in", "W", "bias", "coef", "intercept" (and further weights of the cell); the
    rows of gates are stacked. For a composite cell "0.W" belongs to the first part, "1.W" to the
    next.
network_ : reservoir.training.bptt.Network
    The architecture: the cell, inputs, outputs and loss.
init_ : str or None
    The start of training: `init`, or the start chosen by "auto"; None if it was an estimator.
loss_curve_ : list of floats, one more than epochs done
    The training loss, penalties on weights included: at the start, and after each epoch.
    `partial_fit` adds one entry per call and sequence.
validation_loss_curve_ : list of floats, one more than epochs done
    With `early_stopping`: the loss on held-out data.
best_loss_ : float
    After `fit` only: the smallest loss, on held-out data if there are any; `params_` are the
    weights of that loss.
best_epoch_ : int
    After `fit` only: the epoch of that loss; 0 is the start.
n_iter_ : int
    Epochs done, or calls of `partial_fit`.
reservoir_ : reservoir.dynamics.Reservoir
    The recurrent layer of the cells "rnn" and "leaky", for `reservoir.stability`; with a
    `time_column` for steps of length 1.
state_ : array of shape (state_size,)
    The state at the end of training (of its last sequence).
time_step_ : float or None
    The gap for which `leak_rate` is given; None without a `time_column`.
washout_ : array of shape (n_sequences,)
n_outputs_ : int
n_features_in_ : int
feature_names_in_ : array of shape (n_features_in_,)
    If X had names.
"""
