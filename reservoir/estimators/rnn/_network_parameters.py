"""The parameters of trained networks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from reservoir._validation import check_choice, check_count, check_number, check_switch
from reservoir.estimators.parameters import (
    DrawnParameters,
    InputParameters,
    LabelParameters,
    LearnerParameters,
    SequenceParameters,
    Shared,
    TimeParameters,
    changed,
    one_of,
    parameter,
)
from reservoir.training.hessian_free import HessianFree
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.online import LEARNERS
from reservoir.training.optimizers import OPTIMIZERS
from reservoir.training.schedules import SCHEDULES
from reservoir.training.starts import STARTS

WHOLE = ("lbfgs", "least_squares", "hessian_free")


def name_of_solver(solver: Any) -> str:
    """Return the name of a solver that may be given by its settings."""
    return "hessian_free" if isinstance(solver, HessianFree) else solver


def _check_solver(name: str, value: Any) -> None:
    check_choice(name, name_of_solver(value), (*OPTIMIZERS, *WHOLE))


def _check_batch_size(name: str, value: Any) -> None:
    if value is None:
        raise ValueError('batch_size=None: give a number of sequences, or "auto".')
    _check_truncation(name, value)


def _check_truncation(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif value is not None:
        check_count(name, value)


def _check_clip_norm(name: str, value: Any) -> None:
    if value is not None:
        check_number(name, value, low=0.0, low_open=True)


def _check_symbols(name: str, value: Any) -> None:
    if value is not None:
        check_count(name, value, minimum=2)


def _check_init(name: str, value: Any) -> None:
    names = ("auto", *STARTS, *INITIALIZERS)
    if isinstance(value, str):
        check_choice(name, value, names)
    elif not isinstance(value, BaseEstimator):
        raise TypeError(
            f"init={value!r} must be a name ({', '.join(names)}) "
            "or an echo state or recurrent network."
        )


@dataclass(eq=False, repr=False)
class NetworkParameters:
    """What describes a recurrent network and its training."""

    n_units: int = parameter(
        64,
        "int",
        """Number of recurrent units.""",
        check_count,
    )
    _: KW_ONLY
    cell: Any = parameter(
        "rnn",
        '{"rnn", "leaky", "lstm", "gru", "scrn", "gated_feedback"}, recipe or Cell',
        """Elman's cell; the reservoir's, with a leak; gated cells; slow context units beside hidden
        ones (`SCRNCell`); two simple layers that feed each other (`GatedFeedbackCell`); another
        name in `reservoir.training.cells.CELLS`; an object of that module or of a class derived
        from its ``Cell``, such as ``LSTMCell(64, peephole=True)``; or a recipe for a cell made of
        cells, such as ``stacked("lstm", "rnn")`` or ``bidirectional("lstm")``, where each cell
        given by name has `n_units`.""",
    )
    activation: str = parameter(
        "tanh",
        "str",
        """Of the cells "rnn", "leaky" and "scrn": "tanh", "logistic", "relu", "leaky_relu",
        "softplus", "identity", or another name in `reservoir.activations.ACTIVATIONS`.""",
    )
    leak_rate: Any = parameter(
        0.3,
        "float in (0, 1] or array of shape (n_units,), per step",
        """Of the cell "leaky": how much of the state is new at each step. It is not trained. Other
        cells ignore it.""",
    )
    n_symbols: int | None = parameter(
        None,
        "int or None",
        """Given, X is one column of whole numbers from 0 to n_symbols - 1, each of which stands for
        a symbol. The network is that of n_symbols one-hot columns, but the input weights of a
        symbol are looked up, and no such columns are made. None: columns are numbers.""",
        _check_symbols,
    )
    loss: str = parameter(
        "auto",
        '{"auto", "mse", "mae", "bce", "cross_entropy", "hinge"}',
        """"auto": squared errors for "identity" and "tanh", binary cross-entropy for "logistic",
        cross-entropy for "softmax".""",
    )
    init: Any = parameter(
        "auto",
        "str or estimator",
        """Where training starts. "least_squares": a random reservoir whose recurrent weights and
        readout are fitted layer by layer; "esn": a random reservoir under a ridge readout;
        "orthogonal", "glorot", "he", "spectral" (radius 1.1) or "normal": random weights.
        "auto" is "least_squares", what measures best; "orthogonal" for cells that starts from data
        do not know. With ``target="last"``, twelve sequences or more and ``max_iter`` above 0,
        "auto" tries "least_squares", "esn" and "orthogonal": each is trained on three quarters of
        the sequences, for an eighth of `max_iter` epochs (at least ten, if `max_iter` allows).
        Random weights go on, with all the sequences, unless another start is clearly ahead on the
        last quarter (a one-sided paired t test at 2.5 %); then the best of these does.
        `init_` is the start that was taken. That takes about two fifths more time with 200 epochs;
        with ten, when each start is trained in full, about four times as long. Where the network is
        to predict its own next input (``y[t] == X[t+1]``), "auto" also runs it on its own outputs,
        from eight places of the training data: a start of which one of these loops leaves the
        training range by more than its width gives way to another draw or to a smaller readout,
        and weights that training has made worse in that give way to a start whose loops were about
        as accurate. Or an ESNRegressor or RNNRegressor with the same n_units, leak and
        include_input: unfitted, it is fitted on the same data; wrap a fitted one in
        `sklearn.frozen.FrozenEstimator`, because scikit-learn's clone (in searches and
        cross-validation) would forget its weights.""",
        _check_init,
    )
    solver: Any = parameter(
        "adam",
        "str or HessianFree",
        """"sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam" or "nadam"; or
        one that takes all data and the whole gradient at once: "lbfgs"; "hessian_free"
        (conjugate gradients on the Gauss-Newton matrix with structural damping; not for the losses
        "mae" and "hinge"; an object `reservoir.training.hessian_free.HessianFree` has settings of
        its own, mini-batches for instance); or "least_squares",
        whose steps are preconditioned by second moments and followed by an exact readout
        (squared errors only, so not for labels; no penalties;
        `reservoir.training.least_squares.credit_fit`).""",
        _check_solver,
    )
    learning_rate_init: float = parameter(
        0.001,
        "float",
        """The first learning rate; unused by solvers that take all data at once.""",
        partial(check_number, low=0.0, low_open=True),
    )
    learning_rate: str = parameter(
        "constant",
        '{"constant", "step", "exponential", "inverse", "cosine"}',
        """How it falls over the `max_iter` epochs; see `reservoir.training.schedules`.""",
        partial(check_choice, known=SCHEDULES),
    )
    max_iter: int = parameter(
        200,
        "int",
        """Epochs; 0 leaves the start as it is. Reaching it is no cause for a warning: the best
        weights seen are kept in any case.""",
        partial(check_count, minimum=0),
    )
    batch_size: Any = parameter(
        "auto",
        'int or "auto"',
        """Sequences that are played side by side; "auto" is 32.""",
        _check_batch_size,
    )
    truncation: Any = parameter(
        "auto",
        'int, None or "auto"',
        """Steps after which the weights move, and that the gradient looks back; the state goes on.
        None: whole sequences. "auto": 50, whole sequences for ``target="last"`` and solvers
        that take all data at once.""",
        _check_truncation,
    )
    clip_norm: float | None = parameter(
        1.0,
        "float or None",
        """Longer gradients are scaled to this norm; unused by solvers that take all data at
        once.""",
        _check_clip_norm,
    )
    alpha: float = parameter(
        0.0,
        "float",
        """L2 penalty: ``alpha / 2 ||w||^2``, biases and intercepts left out, is added to the mean
        loss.""",
        partial(check_number, low=0.0),
    )
    l1: float = parameter(
        0.0,
        "float",
        """L1 penalty, likewise.""",
        partial(check_number, low=0.0),
    )
    gradient_control: Any = parameter(
        0.0,
        "float or Control",
        """Weight of the penalties that hold the singular values of the Jacobians of a step near 1,
        so that gradients neither vanish nor explode (`GradientControl`, cells "rnn", "leaky" and
        "scrn"); or another way to the same end: `reservoir.training.omega.Omega`, Pascanu's
        regulariser, or `reservoir.training.temporal_gradients.SimplexDirection`, for solvers
        that take steps.""",
    )
    target: str = parameter(
        "step",
        '{"step", "last"}',
        """Whether y has a row for every row of X, or one for each sequence, for its last step.""",
    )
    missing_targets: str = parameter(
        "raise",
        '{"raise", "skip"}',
        """Whether rows without a target (NaN in y; of labels None and pandas' NA as well) are
        refused, or drive the network and are left out of the losses, of all regressions, of what
        early stopping looks at, of `score`, `partial_fit` and
        `reservoir.model_selection.washout_scorer`, as with ``sample_weight=0``. A label -1 is a
        label. Not for ``target="last"``: leave such a sequence out of X and y. scikit-learn's own
        scorers (``scoring="r2"``) refuse NaN in any case.""",
        one_of("raise", "skip"),
    )
    early_stopping: bool = parameter(
        False,
        "bool",
        """Whether to hold out `validation_fraction`, and to choose the best weights and the time
        to stop by the loss there: whole sequences, drawn at random, or the end of a single one.
        With one label per sequence each class keeps a sequence to learn from, where others can
        be held out. The start does not see what is held out, unless `init` is an estimator,
        which is fitted on everything.""",
        check_switch,
    )
    validation_fraction: float = parameter(
        0.1,
        "float in (0, 1)",
        check=partial(check_number, low=0.0, high=1.0, low_open=True, high_open=True),
    )
    n_iter_no_change: int = parameter(
        10,
        "int",
        """Epochs without improvement after which training stops.""",
        check_count,
    )
    tol: float = parameter(
        0.0001,
        "float",
        """Share of the best loss below which an improvement does not count. (scikit-learn's is
        absolute; a loss of 1e-7 is an ordinary one here.)""",
        partial(check_number, low=0.0),
    )
    online: str = parameter(
        "bptt",
        '{"bptt", "rtrl", "least_squares"}',
        """How `partial_fit` learns: by a gradient step per `truncation` rows; by an exact one per
        row, for small networks; or by a relaxed step of least squares per `truncation` rows, which
        is on trial: after `fit` its weights are used once they have predicted new rows better
        than those of `fit`, beyond doubt. (A call with fewer rows makes a step of its own: hand
        over some rows at a time.) Learning
        rates are `learning_rate_init` there, constant, and `gradient_control` counts for "bptt"
        only. Gated cells learn better from a random `init`: the gates of a least-squares start
        hardly move.""",
        partial(check_choice, known=LEARNERS),
    )
    online_window: int = parameter(
        300,
        "int",
        """Rows that ``online="least_squares"`` looks back to. Where it is set before `fit`, the
        last rows of training are among them.""",
        check_count,
    )
    washout: Any = parameter(
        "auto",
        'int or "auto"',
        """Rows at the start of each sequence without a part in the loss, because the states there
        remember the initial state. "auto" is ``min(100, n_samples // 10)`` for one sequence,
        and 0 for several, which all start from zeros, in `predict` as in `fit`, and for
        ``target="last"``.""",
    )
    warm_start: bool = parameter(
        False,
        "bool",
        """Whether `fit` goes on from the weights of the fit before.""",
        check_switch,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkRunParameters:
    """Parameters that other estimators have, with what they are for a trained network."""

    include_input: bool = changed(InputParameters, "include_input", default=False)
    time_column: Any = changed(
        TimeParameters, "time_column", more="""With ``cell="leaky"`` (`TimedLeakyCell`)."""
    )
    verbose: int = changed(
        LearnerParameters,
        "verbose",
        text="""1 reports a line per epoch to the logger "reservoir", on standard error unless
        logging is set up otherwise.""",
    )
    initial_state: Any = changed(
        SequenceParameters,
        "initial_state",
        text="""Where a run starts. "last": `predict` goes on from the end of training (so
        TimeSeriesSplit scores what it should) if fit saw one sequence and X is one; otherwise,
        and in training, zeros. Where an index of dates, periods or numbers tells that X does
        not begin right after training, the run starts from "steady" and a warning says so.
        Without such an index (arrays; rows numbered from 0) nothing can be known, and X is
        taken to follow: cross-validate with `reservoir.model_selection.ContextSplit` and
        "zeros". "steady": in training zeros, in `predict` the state that the first row leads to
        when it is held. An array has shape (state_size,) or (n_sequences, state_size);
        state_size (``network_.cell.state_size``) is n_units, for the LSTM 2 n_units: outputs, then
        cells; for "scrn" hidden units, then context units; of a cell made of cells the states of
        its parts side by side; with a `time_column` n_units + 1: then the time of the row before,
        in steps since the first.""",
    )


#: Where a trained network takes its parameters from.
shared = Shared(
    NetworkParameters,
    NetworkRunParameters,
    TimeParameters,
    DrawnParameters,
    SequenceParameters,
    LabelParameters,
)
