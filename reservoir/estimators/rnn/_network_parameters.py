"""The parameters of trained networks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from reservoir._validation import (
    check_choice,
    check_count,
    check_instance,
    check_number,
    check_switch,
)
from reservoir.estimators.parameters import CommonParameters, Shared, one_of, parameter
from reservoir.estimators.parameters import shared as common
from reservoir.training.curricula import Curriculum
from reservoir.training.hessian_free import HessianFree
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.online import LEARNERS
from reservoir.training.optimizers import OPTIMIZERS, Optimizer
from reservoir.training.schedules import SCHEDULES
from reservoir.training.starts import STARTS

WHOLE = ("variable_projection", "lbfgs", "least_squares", "hessian_free")


def name_of_solver(solver: Any) -> str:
    """Return the name of a solver, given by name or as an object with settings."""
    if isinstance(solver, Optimizer):
        return solver.name
    return "hessian_free" if isinstance(solver, HessianFree) else solver


def first_rate(estimator: Any) -> float:
    """Return the learning rate of the first update of gradient steps."""
    if isinstance(estimator.solver, Optimizer):
        return estimator.solver.rate(0)
    if callable(estimator.learning_rate):
        return check_number("learning_rate(0)", estimator.learning_rate(0.0), low=0.0)
    return estimator.learning_rate_init


def place_of_rate(estimator: Any) -> str:
    """Return the parameter that sets the learning rate, with its value, for a message."""
    if isinstance(estimator.solver, Optimizer):
        return f"the learning rate of solver={estimator.solver!r}"
    if callable(estimator.learning_rate):
        return f"learning_rate(0)={first_rate(estimator):g}"
    return f"learning_rate_init={estimator.learning_rate_init:g}"


def _check_solver(name: str, value: Any) -> None:
    if isinstance(value, Optimizer):
        if value.name in ("auto", *WHOLE):
            raise ValueError(
                f"{name}={value!r} has the name of another solver, {value.name!r}. Give the "
                "Optimizer a name of its own."
            )
        return
    check_instance(name, value, called=True)
    check_choice(name, name_of_solver(value), ("auto", *OPTIMIZERS, *WHOLE))


def _check_batch_size(name: str, value: Any) -> None:
    if value is None:
        raise ValueError(
            'batch_size=None is not supported. Set it to a number of sequences, or to "auto".'
        )
    _check_truncation(name, value)


def _check_truncation(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif value is not None:
        check_count(name, value)


def _check_learning_rate(name: str, value: Any) -> None:
    if not callable(value):
        check_choice(name, value, SCHEDULES)


def _check_curriculum(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Curriculum):
        raise TypeError(
            f"{name}={value!r} must be None or an object of reservoir.training.curricula, such as "
            "EasyFirst or GrowingLength."
        )


def _check_clip(name: str, value: Any) -> None:
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
    """Parameters of a recurrent network and its training."""

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
        """"rnn": Elman's cell; "leaky": the cell of a reservoir, with a leak; "lstm", "gru": gated
        cells; "scrn": slow context units in addition to hidden ones (`SCRNCell`); "gated_feedback":
        two simple layers that feed each other (`GatedFeedbackCell`); another name in
        `reservoir.training.cells.CELLS`; an object of that module or of a class derived from its
        ``Cell``, such as ``LSTMCell(64, peephole=True)``; or a recipe for a composite cell, such as
        ``stacked("lstm", "rnn")`` or ``bidirectional("lstm")``, in which every cell that is given
        by name has `n_units` units.""",
    )
    activation: str = parameter(
        "tanh",
        "str",
        """Activation of the cells "rnn", "leaky" and "scrn": "tanh", "logistic", "relu",
        "leaky_relu", "softplus", "identity", or another name in
        `reservoir.activations.ACTIVATIONS`.""",
    )
    leak_rate: Any = parameter(
        0.3,
        "float in (0, 1] or array of shape (n_units,), per step",
        """Leak rate of the cell "leaky": the share of the state that is replaced at each step. It
        is not trained. Other cells ignore it.""",
    )
    n_symbols: int | None = parameter(
        None,
        "int or None",
        """If given, X is one column of integers from 0 to n_symbols - 1, each of which represents a
        symbol. The network is equivalent to one with n_symbols one-hot columns, but the input
        weights of each symbol are looked up, so that no one-hot columns are created. If None, the
        columns of X are numbers.""",
        _check_symbols,
    )
    loss: str = parameter(
        "auto",
        '{"auto", "mse", "mae", "bce", "cross_entropy", "hinge"}',
        """Loss minimised in training. "auto" depends on `output`: squared errors for "identity" and
        "tanh", binary cross-entropy for "logistic", cross-entropy for "softmax".""",
    )
    init: Any = parameter(
        "auto",
        "str or estimator",
        """Initial weights of training. "least_squares": a random reservoir whose recurrent weights
        and readout are fitted layer by layer; "esn": a random reservoir with a ridge readout (for
        both, two reservoirs are drawn, each with 1, .3 and .1 times the same input weights, and
        compared by errors in held-out rows; see `start_results_` and
        `reservoir.training.starts.start`);
        "orthogonal", "glorot", "he", "spectral" (radius 1.1) or "normal": random weights. "auto" is
        "least_squares", which was the best start in benchmarks, or "orthogonal" for cells that do
        not support starts from data. A cell that consists of parts, such as a stack, is fitted part
        by part (but before 75 or more iterations of "variable_projection", upper layers of a stack
        pass on the states of a layer below with as many units); for labels at every step, "auto" is
        "orthogonal" with such a cell. If the solver is "variable_projection", "auto" also trains
        random weights for 25 iterations beside such a start, both on four fifths of the rows, and
        continues with the better one on the others.
        With ``target="last"``, twelve sequences or more and ``max_iter`` above 0, "auto" tries
        "least_squares", "esn" and "orthogonal": each is trained on three quarters of the sequences,
        for an eighth of `max_iter` epochs (at least ten, if `max_iter` allows). Training then
        continues, with all sequences, from the random weights, unless another start is clearly
        better on the last quarter (a one-sided paired t test at the 2.5 % level); in that case it
        continues from the best of those. `init_` is the start that was taken. With 200 epochs the
        trial increases the training time by about two fifths; with ten epochs, when each start is
        trained in full, training takes about four times as long. If the network is to predict its
        next input (``y[t] == X[t+1]``), "auto" also runs it in closed loop, from seven origins
        within the training data and, without exogenous columns, from their end (rows held out by
        `early_stopping` are not used). If one of these loops leaves the
        training range by more than its width, further draws are tried, then readouts with a
        stronger ridge penalty, and the start is replaced if one of these candidates scores better;
        and if training has made the loops leave the range, its weights are replaced by those of the
        start, provided the loops of the start were about as accurate. `init` can also be an
        ESNRegressor or RNNRegressor with the same n_units, leak and include_input. An unfitted
        estimator is fitted on the same data; wrap a fitted one in `sklearn.frozen.FrozenEstimator`,
        because scikit-learn's clone (in searches and cross-validation) would lose its weights.""",
        _check_init,
    )
    solver: Any = parameter(
        "auto",
        "str, Optimizer or HessianFree",
        """"auto": "variable_projection" for a regressor with squared errors, the output "identity",
        targets at every step (25 or more), and a start from data, from an estimator or from the
        previous fit (`warm_start`); otherwise "adam", which is also used if `batch_size`,
        `truncation`, `learning_rate_init`, `learning_rate`, `clip_norm`, `clip_value`,
        `curriculum`, `alpha`, `l1` or `gradient_control` differs from its default, for cells with
        dropout, and by `partial_fit`. `solver_` is the solver that was used. Gradient-step solvers:
        "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam" and "nadam"; or an
        object of `reservoir.training.optimizers`, such as ``adam(0.01, beta1=0.8)``, whose own
        learning rate is then used, so that `learning_rate_init` and `learning_rate` must keep their
        defaults. Solvers that use all data at once:
        "variable_projection" (L-BFGS on the recurrent weights, with the readout solved for at every
        evaluation; a fifth of the rows is held out to choose the best weights, and in the end the
        readout is fitted to all rows; if training from a start from data ends at its start, it is
        repeated from one that is fitted without these rows, unless there are validation rows; no
        penalties; `reservoir.training.variable_projection`);
        "lbfgs"; "hessian_free" (conjugate gradients on the Gauss-Newton matrix with structural
        damping; not for the losses "mae" and "hinge"; an object
        `reservoir.training.hessian_free.HessianFree` has further settings, such as mini-batches);
        and "least_squares" (steps that are preconditioned by second moments and followed by an
        exact readout; squared errors only, so not for labels; no penalties;
        `reservoir.training.least_squares.credit_fit`).""",
        _check_solver,
        fixed="online",
    )
    learning_rate_init: float = parameter(
        0.001,
        "float",
        """Initial learning rate; unused by solvers that use all data at once.""",
        partial(check_number, low=0.0, low_open=True),
        fixed="online",
    )
    learning_rate: Any = parameter(
        "constant",
        '{"constant", "step", "exponential", "inverse", "linear", "cosine"} or callable',
        """Schedule of the learning rate over the `max_iter` epochs; see
        `reservoir.training.schedules`. A callable receives the number of epochs done (a float,
        initially 0, with fractions between the updates of an epoch), and returns the rate;
        `learning_rate_init` must then keep its default. `reservoir.save` does not write callables;
        joblib does.""",
        _check_learning_rate,
        fixed="online",
    )
    max_iter: int = parameter(
        200,
        "int",
        """Number of epochs; 0 keeps the initial weights. No warning is issued when training reaches
        this number: the best weights found are kept in any case.""",
        partial(check_count, minimum=0),
        fixed="",
    )
    batch_size: Any = parameter(
        "auto",
        'int or "auto"',
        """Number of sequences that are run in parallel; "auto" is 32.""",
        _check_batch_size,
        fixed="",
    )
    truncation: Any = parameter(
        "auto",
        'int, None or "auto"',
        """Number of steps between updates of the weights, through which gradients are also
        back-propagated; the state is carried over to the next update. None: whole sequences.
        "auto": 50 steps, or whole sequences for ``target="last"`` and for solvers that use all data
        at once.""",
        _check_truncation,
        fixed="online",
    )
    clip_norm: float | None = parameter(
        1.0,
        "float or None",
        """Largest norm of a gradient: gradients with a larger norm are scaled down to it. None:
        gradients are not clipped. Solvers that use all data at once ignore it.""",
        _check_clip,
        fixed="online",
    )
    clip_value: float | None = parameter(
        None,
        "float or None",
        """Largest magnitude of a component of a gradient: larger components are set to it, with
        their sign, before `clip_norm` is applied. None: components are not clipped. For solvers of
        gradient steps only.""",
        _check_clip,
        fixed="online",
    )
    alpha: float = parameter(
        0.0,
        "float",
        """L2 penalty: ``alpha / 2 ||w||^2``, without biases and intercepts, is added to the mean
        loss.""",
        partial(check_number, low=0.0),
        fixed="online",
    )
    l1: float = parameter(
        0.0,
        "float",
        """L1 penalty on the same weights: ``l1 ||w||_1``.""",
        partial(check_number, low=0.0),
        fixed="online",
    )
    gradient_control: Any = parameter(
        0.0,
        "float or Control",
        """Weight of the penalties that keep the singular values of the one-step Jacobians near 1,
        so that gradients neither vanish nor explode (`GradientControl`, cells "rnn", "leaky" and
        "scrn"); or another method with the same aim: `reservoir.training.omega.Omega`, Pascanu's
        regulariser, or `reservoir.training.temporal_gradients.SimplexDirection`, for solvers that
        take gradient steps.""",
    )
    curriculum: Any = parameter(
        None,
        "Curriculum or None",
        """Selection of the data for the first epochs of `fit`, by an object of
        `reservoir.training.curricula`: `EasyFirst`, which begins with some of the sequences, or
        `GrowingLength`, which begins with their first steps. For solvers of gradient steps only.
        Losses are always measured on all the data.""",
        _check_curriculum,
        fixed="",
    )
    target: str = parameter(
        "step",
        '{"step", "last"}',
        """Whether y has one row for every row of X ("step"), or one row for each sequence, which is
        the target at its last step ("last").""",
    )
    missing_targets: str = parameter(
        "raise",
        '{"raise", "skip"}',
        """Whether rows without a target (NaN in y; for labels also None and pandas' NA) raise an
        error, or are skipped: they then drive the network, but are excluded from the losses, all
        regressions, early stopping, `score`, `partial_fit` and
        `reservoir.model_selection.washout_scorer`, as with ``sample_weight=0``. A label -1 is a
        label. Not for ``target="last"``: omit such a sequence from X and y. The scorers of
        scikit-learn (``scoring="r2"``) raise an error for NaN in any case.""",
        one_of("raise", "skip"),
        fixed="",
    )
    early_stopping: bool = parameter(
        False,
        "bool",
        """Whether to hold out `validation_fraction` of the data, and to choose the best weights and
        the time to stop by the loss on this part. If there are several sequences, whole sequences
        are drawn at random and held out; if there is only one, its end is held out. With one label
        per sequence, at least one sequence of each class is kept for training, if other sequences
        can be held out instead. Held-out data are not used for the initial weights, unless `init`
        is an estimator, which is fitted on all data.""",
        check_switch,
        fixed="",
    )
    validation_fraction: float = parameter(
        0.1,
        "float in (0, 1)",
        check=partial(check_number, low=0.0, high=1.0, low_open=True, high_open=True),
        fixed="",
    )
    n_iter_no_change: int = parameter(
        10,
        "int",
        """Epochs without improvement after which training stops; twice as many for
        "variable_projection", whose errors on held-out rows fluctuate.""",
        check_count,
        fixed="",
    )
    tol: float = parameter(
        0.0001,
        "float",
        """Smallest improvement that counts, as a fraction of the best loss. (In scikit-learn `tol`
        is absolute; here a loss of 1e-7 is not unusual.)""",
        partial(check_number, low=0.0),
        fixed="",
    )
    online: str = parameter(
        "bptt",
        '{"bptt", "rtrl", "least_squares"}',
        """Learning rule of `partial_fit`. "bptt": a gradient step per `truncation` rows; "rtrl": an
        exact gradient step per row, for small networks; "least_squares": a relaxed least-squares
        step per `truncation` rows, tested before use: after `fit`, new weights replace those of
        `fit` only once they have predicted new rows significantly better. (A call with fewer rows
        still makes a step: pass several rows at a time.) The learning rate is constant and equal to
        `learning_rate_init` (or to the first rate of `learning_rate`, if this is a callable; an
        Optimizer as `solver` has its own rate). `curriculum` is not used, and `gradient_control`
        with "bptt" only. Gated cells learn better from a random `init`: the gates of a
        least-squares start hardly change.""",
        partial(check_choice, known=LEARNERS),
        fixed="online",
    )
    online_window: int = parameter(
        300,
        "int",
        """Number of recent rows that ``online="least_squares"`` uses. If `online` is set before
        `fit`, these rows include the last rows of training.""",
        check_count,
        fixed="online",
    )
    washout: Any = parameter(
        "auto",
        'int or "auto"',
        """Rows at the start of each sequence that are excluded from the loss, because their states
        depend on the initial state. "auto" is ``min(100, n_samples // 10)`` for one sequence. It is
        0 for several sequences, which all start from a zero state in both `fit` and `predict`, and
        for ``target="last"``.""",
    )
    warm_start: bool = parameter(
        False,
        "bool",
        """Whether `fit` continues from the weights of the previous fit.""",
        check_switch,
        fixed="",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkRunParameters:
    """Parameters shared with other estimators, with their meaning for a trained network."""

    include_input: bool = common.but("include_input", default=False)
    time_column: Any = common.but(
        "time_column", more="""With ``cell="leaky"`` (`TimedLeakyCell`)."""
    )
    verbose: int = common.but(
        "verbose",
        text="""1 writes a line per epoch to the logger "reservoir", which prints to standard error
        unless logging is configured otherwise.""",
    )
    initial_state: Any = common.but(
        "initial_state",
        text="""State before the first row of a run. "last": `predict` continues from the end of
        training (so that TimeSeriesSplit scores correctly) if fit received one sequence and X is a
        single sequence; otherwise, and in training, the state is zero. If an index of dates,
        periods or numbers shows that X does not begin right after training, the run starts from
        "steady", with a warning. Without such an index (arrays; rows numbered from 0) X is assumed
        to follow training: cross-validate with `reservoir.model_selection.ContextSplit` and
        "zeros". "steady": zeros in training; in `predict`, the state to which the network converges
        if the first row is its constant input. An array has shape (state_size,) or (n_sequences,
        state_size); state_size (``network_.cell.state_size``) is n_units for most cells. For the
        LSTM it is 2 n_units: the outputs, then the cell states. For "scrn" the state contains the
        hidden units, then the context units; for a composite cell, the states of its parts in
        order; with a `time_column`, the n_units units, then the time of the previous row, in steps
        since the first row.""",
    )


#: The parameters that trained networks share, from these groups.
shared = Shared(NetworkParameters, NetworkRunParameters, CommonParameters)
