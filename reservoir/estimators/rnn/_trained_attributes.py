"""What the docstrings of trained networks share beside parameters."""

FITTED = """
params_ : dict of arrays
    The weights: "W_in", "W", "bias", "coef", "intercept" (and those of the cell's own); gates stand
    one below the other. Of a cell made of cells "0.W" is the first one's, "1.W" the next one's.
network_ : reservoir.training.bptt.Network
    The cell, and what stands around it.
init_ : str or None
    Where training started: `init`, or what "auto" came to; None where that was an estimator.
loss_curve_ : list of floats, one more than epochs done
    The training loss, penalties on weights included: at the start, and after each epoch.
    `partial_fit` adds one entry per call and sequence.
validation_loss_curve_ : list of floats, one more than epochs done
    With `early_stopping`: the loss on what was held out.
best_loss_ : float
    After `fit`, and likewise `best_epoch_`. The smallest loss, of validation if there is any;
    `params_` are the weights that had it.
best_epoch_ : int
    Where that was; 0 is the start.
n_iter_ : int
    Epochs done, or calls of `partial_fit`.
reservoir_ : reservoir.dynamics.Reservoir
    The recurrent layer of the cells "rnn" and "leaky", for `reservoir.stability`; with a
    `time_column` at steps of one length.
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
