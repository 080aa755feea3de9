"""Parameter descriptions that the trained networks share, written once."""

NETWORK = """
n_units : int, default=64
    Number of recurrent units.
cell : {"rnn", "leaky", "lstm", "gru"} or Cell, default="rnn"
    Elman's cell; the reservoir's, with a leak; gated cells; another name in
    `reservoir.training.cells.CELLS`; or an object of that module or of a class derived from its
    ``Cell``, such as ``LSTMCell(64, peephole=True)``.
activation : str, default="tanh"
    Of the cells "rnn" and "leaky": "tanh", "logistic", "relu", "leaky_relu", "softplus",
    "identity", or another name in `reservoir.activations.ACTIVATIONS`.
leak_rate : float in (0, 1] or array of shape (n_units,), per step, default=0.3
    Of the cell "leaky": how much of the state is new at each step. It is not trained. Other cells
    ignore it.
output : {"identity", "tanh", "logistic", "softmax"}, default="identity"
    What stands behind the readout. Targets outside its range are refused.
loss : {"auto", "mse", "mae", "bce", "cross_entropy", "hinge"}, default="auto"
    "auto": squared errors for "identity" and "tanh", binary cross-entropy for "logistic",
    cross-entropy for "softmax".
init : str or estimator, default="auto"
    Where training starts. "least_squares": a random reservoir whose recurrent weights and readout
    are fitted layer by layer; "esn": a random reservoir under a ridge readout; "orthogonal",
    "glorot", "he", "spectral" (radius 1.1) or "normal": random weights. "auto" is "least_squares",
    what measures best; "orthogonal" for one label per sequence (unless ``max_iter=0`` leaves the
    start as it is), and for cells that starts from data do not know. Where the network is trained
    to predict its own next input (``y[t] == X[t+1]``), "auto" also runs it on its own outputs, from
    eight places of the training data: a start of which one of these loops leaves the training range
    by more than its width gives way to another draw or to a smaller readout, and weights that
    training has made worse in that give way to a start whose loops were about as accurate. Or an
    ESNRegressor or RNNRegressor with the same n_units, leak and include_input: unfitted, it is
    fitted on the same data; wrap a fitted one in `sklearn.frozen.FrozenEstimator`, because
    scikit-learn's clone (in searches and cross-validation) would forget its weights.
"""

TRAINING = """
solver : str, default="adam"
    "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam" or "nadam"; or one that
    takes all data and the whole gradient at once: "lbfgs", or "least_squares", whose steps are
    preconditioned by second moments and followed by an exact readout (squared errors only, no
    penalties; `reservoir.training.least_squares.credit_fit`).
learning_rate_init : float, default=1e-3
    The first learning rate; unused by "lbfgs" and "least_squares".
learning_rate : {"constant", "step", "exponential", "inverse", "cosine"}, default="constant"
    How it falls over the `max_iter` epochs; see `reservoir.training.schedules`.
max_iter : int, default=200
    Epochs; 0 leaves the start as it is. Reaching it is no cause for a warning: the best weights
    seen are kept in any case.
batch_size : int or "auto", default="auto"
    Sequences that are played side by side; "auto" is 32.
truncation : int, None or "auto", default="auto"
    Steps after which the weights move, and that the gradient looks back; the state goes on. None:
    whole sequences. "auto": 50, whole sequences for ``target="last"`` and
    solvers that take all data at once.
clip_norm : float or None, default=1.0
    Longer gradients are scaled to this norm; unused by "lbfgs" and "least_squares".
alpha : float, default=0.0
    L2 penalty: ``alpha / 2 ||w||^2``, biases and intercepts left out, is added to the mean loss.
l1 : float, default=0.0
    L1 penalty, likewise.
gradient_control : float or GradientControl, default=0.0
    Weight of the penalties that hold the singular values of the Jacobians of a step near 1, so that
    gradients neither vanish nor explode; `reservoir.training.gradient_control`. Cells "rnn" and
    "leaky" only.
refit_readout : bool, default=True
    Whether to solve for the readout by ridge regression after each epoch, and to keep that where it
    lowers the loss. For squared errors behind "identity", "tanh" or "logistic".
include_input : bool, default=False
    Whether the readout sees the input beside the states.
target : {"step", "last"}, default="step"
    Whether y has a row for every row of X, or one for each sequence, for its last step.
early_stopping : bool, default=False
    Whether to hold out `validation_fraction`, and to choose the best weights and the time to stop
    by the loss there: whole sequences, drawn at random, or the end of a single one. The start does
    not see them, unless `init` is an estimator, which is fitted on everything.
validation_fraction : float in (0, 1), default=0.1
n_iter_no_change : int, default=10
    Epochs without improvement after which training stops.
tol : float, default=1e-4
    Share of the best loss below which an improvement does not count. (scikit-learn's is absolute; a
    loss of 1e-7 is an ordinary one here.)
online : {"bptt", "rtrl", "least_squares"}, default="bptt"
    How `partial_fit` learns: by a gradient step per `truncation` rows; by an exact one per row,
    for small networks; or by a relaxed step of least squares per `truncation` rows. (A call with
    fewer rows makes a step of its own: hand over some rows at a time.) Learning rates
    are `learning_rate_init` there, constant, and `gradient_control` counts for "bptt" only. Gated
    cells learn better from a random `init`: the gates of a least-squares start hardly move.
online_window : int, default=300
    Rows that ``online="least_squares"`` looks back to.
washout : int or "auto", default="auto"
    Rows at the start of each sequence without a part in the loss, because the states there
    remember the initial state. "auto" is ``min(100, n_samples // 10)`` for one sequence, and 0 for
    several, which all start from zeros, in `predict` as in `fit`, and for ``target="last"``.
initial_state : {"last", "zeros", "steady"} or array, default="last"
    Where a run starts. "last": `predict` goes on from the end of training (so TimeSeriesSplit
    scores what it should) if fit saw one sequence and X is one; otherwise, and in training, zeros.
    Where an index of dates, periods or numbers tells that X does not begin right after training,
    the run starts from "steady" and a warning says so. Without such an index (arrays; rows numbered
    from 0) nothing can be known, and X is taken to follow: cross-validate with
    `reservoir.model_selection.ContextSplit` and "zeros". "steady": in training zeros, in `predict`
    the state that the first row leads to when it is held. An array has shape (state_size,) or
    (n_sequences, state_size); state_size is n_units, for the LSTM 2 n_units: outputs, then cells.
warm_start : bool, default=False
    Whether `fit` goes on from the weights of the fit before.
verbose : int, default=0
    1 prints a line per epoch.
random_state : int, Generator, RandomState or None, default=None
    Seed of the start, the order of sequences and the steps that are controlled.
"""

FITTED_RNN = """
params_ : dict of arrays
    The weights: "W_in", "W", "bias", "coef", "intercept" (and those of the cell's own); gates stand
    one below the other.
network_ : reservoir.training.bptt.Network
    The cell, and what stands around it.
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
    The recurrent layer of the cells "rnn" and "leaky", for `reservoir.stability`.
state_ : array of shape (state_size,)
    The state at the end of training (of its last sequence).
washout_ : array of shape (n_sequences,)
n_outputs_ : int
n_features_in_ : int
feature_names_in_ : array of shape (n_features_in_,)
    If X had names.
"""
