"""FORCE learning: the readout of a feedback loop is learned while the loop runs."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from reservoir._typing import Array, ArrayLike
from reservoir._validation import (
    Sequences,
    as_generator,
    caller_level,
    check_count,
    check_switch,
    code,
    read_series,
    refuse_one_row,
)
from reservoir._validation.kinds import refuse_sparse
from reservoir.estimators._progress import Progress
from reservoir.estimators._reach import reach_of, width_of
from reservoir.estimators._reporting import progress
from reservoir.estimators.esn._force_loop import ForceRun, LinearReadout, Loop, force_loop
from reservoir.estimators.esn._measured_washout import is_measured
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.loop_trained import LoopTrainedReadout
from reservoir.readouts.penalised_factor import PenalisedFactor

__all__ = ["ForceHistory", "force_train"]

_FIRST_STATES = 0.5  # a random state is U(-1, 1) times this
_FOLLOWS = 0.5  # of the targets' standard deviation: a larger error is none of a loop that follows
_ROUNDING = 1e-9  # of the range of the targets: a smaller deviation is that of a constant
_LONGEST_TEST = 100  # rows that a trained loop must follow alone, unless the user says how many


@dataclass(frozen=True)
class ForceHistory:
    """What happened while a loop was trained; made by `force_train`.

    Parameters
    ----------
    outputs : array of shape (n_samples, n_outputs)
        What the network said in each step, before the correction of that step.
    errors : array of shape (n_samples, n_outputs)
        Outputs less targets.
    weight_norm : array of shape (n_samples,)
        Euclidean norm of all weights of the readout, the intercept among them, after each step.
    weight_change : array of shape (n_samples,)
        Norm of what the step has changed of them; 0 in steps without a correction.
    test_outputs : array of shape (n_test, n_outputs)
        What the trained network says alone, from where it was `n_test` rows before the end.
    test_error : float
        Root mean square of the error of these rows, in standard deviations of the targets; NaN if
        ``n_test=0``.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, force_train
    >>> esn = ESNRegressor(50, leak_rate=0.1, feedback=True, washout=100, random_state=0)
    >>> y = np.sin(0.05 * np.arange(1000))
    >>> model, history = force_train(esn, y, return_history=True)
    >>> errors = np.abs(history.errors[:, 0])
    >>> bool(errors[:100].mean() > 10 * errors[-100:].mean())  # before, and at the end
    True
    """

    outputs: Array
    errors: Array
    weight_norm: Array
    weight_change: Array
    test_outputs: Array
    test_error: float


def force_train(
    esn: ESNRegressor,
    y: ArrayLike,
    *,
    exog: Any = None,
    n_steps_between: int = 2,
    alpha: float = 0.01,
    forgetting: float = 1.0,
    feed_corrected: bool = True,
    initial_state: Any = None,
    n_test: int | None = None,
    return_history: bool = False,
) -> Any:
    """Train a feedback loop while it runs on its own outputs: FORCE learning.

    The network hears its own outputs from the first row on. After every `n_steps_between` steps the
    readout is corrected by recursive least squares, so strongly that the output is near the target
    from the start [1]_. The errors that remain go round the loop, so that the weights are learned
    on the states that the network visits when it runs alone. A ``spectral_radius`` of 1.2 to 1.5,
    at which the units may be active by themselves before training, is often best; a strongly
    chaotic network (2 and more) is not tamed.

    Parameters
    ----------
    esn : ESNRegressor
        With ``feedback=True`` and the built-in readout; it is not changed. If it is not fitted, all
        weights of the readout begin at zero. If it is, its reservoir is used and the training goes
        on from its weights and its state: a loop that was learned by teacher forcing (`fit`), and
        does not stay near a chaotic target, often does so afterwards. For the rows of its `washout`
        the loop runs without corrections. Its parameters that say how `fit` learns (`alpha`,
        `forgetting`, `solver`, `noise` and others) play no part.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        What the outputs are to be, one row for each step. Repeat a pattern (``np.tile``) to train
        on it several times.
    exog : array of shape (n_samples, n_exog), optional
        Exogenous inputs; row t enters with the step that yields ``y[t]``. Without them the
        network has no input at all (``n_features_in_`` is 0): forecasts need no `exog`, and what
        `predict` gets has shape (n_samples, 0).
    n_steps_between : int, default=2
        Steps from one correction of the readout to the next. 1 keeps outputs nearer to the targets;
        a larger number costs less time, and lets the loop stray more.
    alpha : float > 0, default=0.01
        Ridge penalty on what is learned, 1 over the learning rate of [1]_: at first a correction
        removes all of an error but a share of ``alpha / ||x||^2``, x being the features. The
        weights at the end are the ridge solution for the rows of all corrections. For a fitted
        `esn` the penalty is on the distance from its weights. Targets without noise may be learned
        with less, 1e-4 say.
    forgetting : float in (0, 1], default=1.0
        Each correction multiplies the weight of the rows before it by this. The first rows come
        from a loop that knew nothing: with .999, say, they fade, and chaotic targets (Lorenz) are
        learned that are not learned with 1. It must remember several periods of a pattern, about
        ``n_steps_between / (1 - forgetting)`` steps.
    feed_corrected : bool, default=True
        Whether in the steps of corrections the output of the corrected readout is fed back; False
        feeds back the output before the correction.
    initial_state : {"random", "last", "zeros", "steady"} or array, optional
        The state before the first row, as in `ESNRegressor.predict`; "random" draws U(-.5, .5)
        for each unit, from ``random_state``. By default "random" for an `esn` that is not fitted,
        else "last".
    n_test : int, optional
        Over the last `n_test` rows the trained loop is run alone, for the warning below. By default
        a tenth of the rows, at most 100; 0 tests nothing.
    return_history : bool, default=False

    Returns
    -------
    model : ESNRegressor
        A fitted copy of `esn`, whose `state_` is where the run has ended, with the last target
        behind the units. It predicts, forecasts, streams and is saved as any other, and `alpha_` is
        the penalty used here. `partial_fit` and ``stream().learn`` are refused, since they feed
        back the targets; go on with ``force_train(model, ...)``.
    history : ForceHistory
        Only if `return_history`.

    Raises
    ------
    TypeError
        If `esn` is no ESNRegressor.
    ValueError
        If it has no feedback, or a `readout` of its own; if a parameter or the data is refused; if
        the loop leaves what floating point can hold.

    Warns
    -----
    RuntimeWarning
        If the trained loop, run alone over the last `n_test` rows, is wrong by more than half a
        standard deviation of the targets (root mean square): it does not follow, and its forecasts
        are not to be trusted. Nobody can follow a chaotic target for long: give a smaller `n_test`
        there, a tenth of the time in which an error grows to the size of the attractor.

    See Also
    --------
    ESNRegressor.fit : Teacher forcing: the loop is closed by the targets. Much faster, and the
        better choice where it leads to a stable loop.

    References
    ----------
    .. [1] D. Sussillo and L. F. Abbott, "Generating coherent patterns of activity from chaotic
       neural networks", Neuron 63, 2009, pp. 544-557.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, force_train
    >>> y = np.sin(0.05 * np.arange(2000)) + 0.5 * np.sin(0.1 * np.arange(2000))
    >>> esn = ESNRegressor(100, spectral_radius=1.5, leak_rate=0.1, feedback=True, random_state=0)
    >>> model = force_train(esn, y[:1500])
    >>> bool(abs(model.forecast(500) - y[1500:]).max() < 0.1)
    True
    """
    _refuse_esn(esn)
    every = check_count("n_steps_between", n_steps_between)
    check_switch("feed_corrected", feed_corrected)
    check_switch("return_history", return_history)
    model = copy.deepcopy(esn) if esn.__sklearn_is_fitted__() else clone(esn)
    rows, targets, readout = _prepare(model, exog, y)
    n_test = _check_test(n_test, len(targets))
    # which steps are corrected, and by what
    numbers = np.arange(len(targets))
    skip = model._washouts(rows.lengths)[0]
    updates = (numbers >= skip) & ((numbers - skip) % every == 0)
    factor = PenalisedFactor(
        model._source.width,
        targets.shape[1],
        alpha,
        forgetting=forgetting,
        fit_intercept=bool(model.fit_intercept),
    )
    # the run
    initial_state = ("last" if readout else "random") if initial_state is None else initial_state
    run = ForceRun.begin(
        readout or LinearReadout.of_zeros(targets.shape[1], model._source.width),
        _start_of(model, rows, initial_state),
        len(targets),
    )
    force_loop(
        model._source,
        rows.arrays[0],
        targets,
        run,
        factor,
        model._activity,
        skip=skip,
        updates=updates,
        feed_corrected=feed_corrected,
        mark=len(targets) - n_test,
        steps=progress(numbers, len(targets), model.verbose, what="FORCE", unit="step"),
    )
    model._watch_units(model._activity)
    _keep(model, run, rows, targets, alpha=factor.alpha, skip=skip)
    history = _tested(model, run, rows.arrays[0], targets, n_test)
    return (model, history) if return_history else model


def _refuse_esn(esn: Any) -> None:
    """Refuse what has no loop of the kind that can be trained."""
    if not isinstance(esn, ESNRegressor):
        raise TypeError(
            f"force_train needs an ESNRegressor with feedback=True; got {type(esn).__name__}."
        )
    if not esn.feedback:
        raise ValueError(
            "feedback=False: force_train trains the loop through feedback weights. Use them, "
            f"{code('model.set_params(feedback=True)')}."
        )
    if esn.readout is not None:
        raise ValueError(
            f"readout={esn.readout!r} cannot be corrected step by step: force_train needs the "
            "built-in readout. Use readout=None."
        )
    if esn.sequence_column is not None:
        raise ValueError(
            f"sequence_column={esn.sequence_column!r}, but force_train learns from one sequence. "
            "Use sequence_column=None, and give the rows of one."
        )
    if is_measured(esn.washout):
        raise ValueError(
            'washout="measured" compares runs under the same targets; in force_train the network '
            'hears its own outputs. Give an integer or "auto".'
        )


def _check_test(n_test: Any, n_samples: int) -> int:
    """Return over how many rows the trained loop is tested."""
    if n_test is None:
        return min(_LONGEST_TEST, n_samples // 10)
    n_test = check_count("n_test", n_test, minimum=0)
    if n_test >= n_samples:
        raise ValueError(f"n_test={n_test} must be smaller than the number of rows, {n_samples}.")
    return n_test


def _prepare(
    model: ESNRegressor, exog: Any, y: Any
) -> tuple[Sequences, Array, LinearReadout | None]:
    """Return the one sequence of inputs, its targets, and the readout so far.

    A model that is new, and has no readout, takes note of the data and builds its reservoir.
    """
    new = model._is_new
    rows = _read(model, exog, y, new=new)
    refuse_one_row(model, rows)
    targets = model._read_targets(y, rows, first=new)
    if not new:
        model._refuse_other_outputs(targets)
        return rows, targets[0], LinearReadout.of_float64(*model._loop_readout())
    if model.n_features_in_:
        model._start(rows, targets)
        return rows, targets[0], None
    # built for a column of zeros, which is then taken away
    n_samples = len(targets[0])
    model._start(replace(rows, arrays=(np.zeros((n_samples, 1)),)), targets)
    if model._source.n_past:
        raise ValueError(
            f"n_lags={model.n_lags} counts rows of exog, and none are given. Use n_lags=1, or give "
            "exog."
        )
    deaf = replace(model.reservoir_, W_in=np.zeros((model.reservoir_.n_units, 0)))
    model._source, model.reservoir_ = replace(model._source, reservoir=deaf), deaf  # type: ignore[type-var]
    return rows, targets[0], None


def _read(model: ESNRegressor, exog: Any, y: Any, *, new: bool) -> Sequences:
    """Return the one sequence of inputs; without exogenous ones its rows have no columns."""
    if exog is not None:
        rows = model._read(exog, y, reset=new)
        if len(rows) != 1 or rows.container != "table":
            raise ValueError(
                f"force_train learns from one sequence; exog holds {len(rows)}. Give the rows of "
                "one as a table, and go on with the next by another call."
            )
        return rows
    refuse_sparse("y", y)
    if np.ndim(y) not in (1, 2):
        raise ValueError(
            "force_train learns from one sequence: y must have shape (n_samples,) or (n_samples, "
            f"n_outputs); got {np.shape(y)}."
        )
    if new:
        model.n_features_in_ = 0
    if model.n_features_in_:
        raise ValueError(
            f"esn was fitted with {model.n_features_in_} columns of X: give exog of shape "
            f"({len(y)}, {model.n_features_in_})."
        )
    dtype = model._dtype_asked_for() if new else model._dtype
    return read_series(model, np.empty((len(y), 0)), y, reset=False, dtype=dtype)


def _start_of(model: ESNRegressor, rows: Sequences, spec: Any) -> Loop:
    """Return where the run begins."""
    source = model._source
    size = source.state_size
    if isinstance(spec, str) and spec == "random":
        generator = as_generator(model.random_state)  # its children have made the weights
        spec = generator.uniform(-_FIRST_STATES, _FIRST_STATES, model.reservoir_.n_units)
    last = model._last_state() if "state_" in vars(model) else None
    state = model._states_before(spec, rows, last)[0]
    return Loop(state[:size], state[size:])


def _keep(
    model: ESNRegressor, run: ForceRun, rows: Sequences, targets: Array, *, alpha: float, skip: int
) -> None:
    """Give a model all that a fit leaves behind."""
    source, one = model._source, model._targets.one_dimensional
    coef, intercept = (weights.astype(source.dtype) for weights in run.readout)
    for name in ("alphas_", "alpha_scores_", "alpha_selection_", "training_error_"):
        model.__dict__.pop(name, None)
    model.coef_ = coef[0] if one else coef
    model.intercept_ = intercept[0] if one else intercept
    model.alpha_ = alpha
    model.washout_ = np.array([skip], dtype=np.int64)
    model.state_ = np.concatenate([run.loop.state, targets[-1].astype(source.dtype)])
    model._readout = LoopTrainedReadout(ReadoutSettings()).begin(source.width, targets.shape[1])
    model._progress = Progress(targets.shape[1], compares=False)
    model._progress.finish(rows, [targets], washout=skip)
    model._n_trained += len(targets)


def _tested(
    model: ESNRegressor, run: ForceRun, inputs: Array, targets: Array, n_test: int
) -> ForceHistory:
    """Run the trained loop alone over the last rows, and say so where it does not follow."""
    rows, error, begin = targets[:0], np.nan, len(targets) - n_test
    if run.marked is not None:
        rows, _, _ = model._run_loop(
            model._loop_readout(),
            n_test,
            initial_state=run.marked.state,
            initial_output=run.marked.output,
            exog=inputs[begin:],
        )
        constant = width_of(reach_of([targets]))
        deviation = np.std(targets, axis=0)
        scale = np.where(deviation > _ROUNDING * constant, deviation, constant)
        error = float(np.sqrt(np.mean(((rows - targets[begin:]) / scale) ** 2)))
    if error > _FOLLOWS:
        warnings.warn(
            f"The trained loop does not follow its targets: alone over the last n_test={n_test} "
            f"rows it is wrong by {error:.3g} of their standard deviation, and {_FOLLOWS} is "
            "allowed. More rows or units, another alpha, a forgetting of .999 or another "
            "random_state often help; a chaotic target needs a smaller n_test.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )
    return ForceHistory(
        run.outputs, run.outputs - targets, run.weight_norm, run.weight_change, rows, error
    )
