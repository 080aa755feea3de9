"""FORCE learning: training the readout of a feedback loop while the loop runs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.base import clone

from reservoir._saving import saved
from reservoir._tables import Sequences, check_enough_rows, read_series
from reservoir._tables.frames import read_one
from reservoir._typing import Array, ArrayLike
from reservoir._validation import (
    as_generator,
    caller_level,
    check_count,
    check_instance,
    check_switch,
)
from reservoir.dynamics import Reservoir
from reservoir.dynamics.closed_loop import loop_limit
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.dynamics.saturation import Record, Steps
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.estimators.esn.readout_model import ReadoutModel, ReadoutPredictor
from reservoir.estimators.esn.readout_training import is_measured, washout_lengths
from reservoir.estimators.esn.sources import check_reservoir
from reservoir.estimators.progress import Progress, range_of_targets, width_of
from reservoir.estimators.reading import Columns, DataReader, TrainingData
from reservoir.estimators.reporting import ProgressReport
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.penalised_factor import PenalisedFactor
from reservoir.readouts.ridge import RidgeReadout

__all__ = ["ForceHistory", "force_train"]

_FIRST_STATES = 0.5  # a random state is U(-1, 1) times this
_FOLLOWS = 0.5  # largest error of a loop that follows, in standard deviations of the targets
_ROUNDING = 1e-9  # share of the range of the targets: a smaller deviation counts as constant
_LONGEST_TEST = 100  # rows of the closed-loop test, unless the user gives a number


@saved
class LoopTrainedReadout(RidgeReadout):
    """Coefficients that were fitted to rows produced by the network in the closed loop.

    No sums over rows are stored: further rows or another penalty would require a new closed loop.
    """

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Return False: the parameter `readout` never selects this class."""
        return False

    def check_takes_more_rows(self) -> NoReturn:
        """Raise an error, as rows from teacher forcing cannot be added."""
        raise ValueError(
            "This network was trained by force_train, in the closed loop; partial_fit and "
            "session.learn are teacher-forced and cannot continue from it. Continue with "
            "`reservoir.force_train(model, y)`, or use fit."
        )

    def row_learner(self, model: Any) -> NoReturn:
        """Raise an error, as rows of a session cannot be added."""
        self.check_takes_more_rows()

    def linear_path(
        self, alphas: Sequence[float], *, model: Any, fit_intercept: bool, dtype: Any
    ) -> None:
        """Return None: the coefficients under other penalties are unknown."""


@dataclass(frozen=True)
class ForceHistory:
    """Record of the training of a loop; made by `force_train`.

    Parameters
    ----------
    outputs : array of shape (n_samples, n_outputs)
        Outputs of the network at each step, before the correction at that step.
    errors : array of shape (n_samples, n_outputs)
        Outputs minus targets.
    weight_norm : array of shape (n_samples,)
        Euclidean norm of all weights of the readout, including the intercept, after each step.
    weight_change : array of shape (n_samples,)
        Norm of the change of these weights at each step; 0 at steps without a correction.
    test_outputs : array of shape (n_test, n_outputs)
        Outputs of the trained network in closed loop over the last `n_test` rows, starting from the
        state of the network before these rows.
    test_error : float
        Root mean square error of `test_outputs`, in standard deviations of the targets; NaN if
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
    """Train a feedback network in closed loop by FORCE learning.

    The outputs of the network are fed back from the first row on. After every `n_steps_between`
    steps the readout is corrected by recursive least squares, so strongly that the output is near
    the target from the start [1]_. The remaining errors are fed back too, so that the weights are
    learned on the states that the network visits when it runs freely. A ``spectral_radius`` of 1.2
    to 1.5, with which the units may be active without inputs before training, is often best; a
    strongly chaotic network (2 and more) cannot be stabilised.

    Parameters
    ----------
    esn : ESNRegressor
        A network with ``feedback=True`` and the built-in readout; it is not changed. If it is not
        fitted, all weights of the readout start at zero. If it is fitted, its reservoir is used,
        and training continues from its weights and state: a loop trained by teacher forcing (`fit`)
        that does not stay near a chaotic target often does so after this training. During the
        `washout` rows of the network, the loop runs without corrections. The parameters of `fit`
        (`alpha`, `forgetting`, `solver`, `noise` and others) are not used.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the outputs, one row per step. To train on a pattern several times, repeat it
        (``np.tile``).
    exog : array of shape (n_samples, n_exog), optional
        Exogenous inputs; row t is the input of the step that yields ``y[t]``. Without exogenous
        inputs, the network has no input at all (``n_features_in_`` is 0): forecasts need no `exog`,
        and the X of `predict` has shape (n_samples, 0).
    n_steps_between : int, default=2
        Number of steps from one correction of the readout to the next. 1 keeps the outputs closest
        to the targets; a larger number takes less time, but lets the loop diverge further between
        corrections.
    alpha : float > 0, default=0.01
        Ridge penalty on the weights, the inverse of the learning rate of [1]_. At first, a
        correction removes all of an error except a fraction of ``alpha / ||x||^2``, where x is the
        vector of features. The final weights are the ridge solution for the rows of all
        corrections. If `esn` is fitted, the distance from its weights is penalised instead. Targets
        without noise may be learned with a smaller penalty, such as 1e-4.
    forgetting : float in (0, 1], default=1.0
        Factor by which each correction multiplies the weights of all earlier rows. The first rows
        come from an untrained loop. With a value such as .999 their influence fades, and some
        chaotic targets (Lorenz) are learned that are not learned with 1. About ``n_steps_between /
        (1 - forgetting)`` steps are remembered; this number should cover several periods of a
        pattern. The penalty decays too, to no less than a tenth, and is restored for one weight
        after the other, as in sessions; in `partial_fit` it does not decay.
    feed_corrected : bool, default=True
        Whether the output of the corrected readout is fed back at steps with a correction. With
        False, the output before the correction is fed back.
    initial_state : {"random", "last", "zeros", "steady"} or array, optional
        The state before the first row, as in `ESNRegressor.predict`; "random" draws the state of
        each unit from U(-.5, .5), with ``random_state``. The default is "last" if `esn` is fitted,
        and "random" if it is not.
    n_test : int, optional
        Number of rows at the end over which the trained loop is also run freely, for the warning
        described below. The default is a tenth of the rows, at most 100; 0 skips the test.
    return_history : bool, default=False
        Whether to return the record of the training as well.

    Returns
    -------
    model : ESNRegressor
        A fitted copy of `esn`. Its `state_` is the state at the end of the run, followed by the
        last target, and its `alpha_` is the penalty used here. It predicts, forecasts, streams and
        is saved like any other network. `partial_fit` and ``stream().learn`` raise an error, since
        they would feed back the targets; to continue training, call ``force_train(model, ...)``.
    history : ForceHistory
        Record of the training; returned only if `return_history` is True.

    Raises
    ------
    TypeError
        If `esn` is not an ESNRegressor.
    ValueError
        If `esn` has no feedback, or has a custom `readout`; if a parameter or the data are invalid;
        or if the loop diverges beyond the floating-point range.

    Warns
    -----
    RuntimeWarning
        If the trained loop, run freely over the last `n_test` rows, has a root mean square error
        above half a standard deviation of the targets: it does not follow them, and its forecasts
        are unreliable. No model can follow a chaotic target for long: for such a target set a
        smaller `n_test`, a tenth of the time in which an error grows to the size of the attractor.

    See Also
    --------
    ESNRegressor.fit : Trains by teacher forcing: the targets are fed back. This is much faster, and
        the better choice where it leads to a stable loop.

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
    _check_esn(esn)
    every = check_count("n_steps_between", n_steps_between)
    for name, value in (("feed_corrected", feed_corrected), ("return_history", return_history)):
        check_switch(name, value)
    esn = copy.deepcopy(esn) if esn.__sklearn_is_fitted__() else clone(esn)
    reader, data, model, readout = _prepare(esn, exog, y)
    targets = data.targets[0]
    n_test = _check_test(n_test, len(targets))
    # steps with a correction, and the least-squares problem that the corrections solve
    numbers = np.arange(len(targets))
    (skip,) = washout_lengths(esn.washout, model.source, data, [])
    updates = (numbers >= skip) & ((numbers - skip) % every == 0)
    factor = PenalisedFactor(
        model.source.width,
        targets.shape[1],
        alpha,
        forgetting=forgetting,
        fit_intercept=bool(esn.fit_intercept),
    )
    # the run
    initial_state = ("last" if readout else "random") if initial_state is None else initial_state
    readout = readout or LinearReadout.of_zeros(targets.shape[1], model.source.width)
    start = _start_of(esn, model, data.sequences, initial_state)
    run, report = ForceRun.begin(readout, start, len(targets)), ProgressReport(esn.verbose)
    _run_loop(
        model.source,
        data.arrays[0],
        targets,
        run,
        factor,
        model.activity,
        skip=skip,
        updates=updates,
        feed_corrected=feed_corrected,
        mark=len(targets) - n_test,
        steps=report.follow(numbers, [1.0] * len(targets), "FORCE", unit="step"),
    )
    report.finish()
    model.watch(model.activity, reader.names_of_columns(data.columns, data.sequences))
    _publish(esn, reader, data, model, run, alpha=factor.alpha, skip=skip)
    history = _tested(esn, run, data.arrays[0], targets, n_test)
    return (esn, history) if return_history else esn


def _check_esn(esn: Any) -> None:
    """Check that an estimator has a feedback loop that can be trained."""
    check_instance("esn", esn)
    if not isinstance(esn, ESNRegressor):
        raise TypeError(
            f"force_train needs an ESNRegressor with feedback=True; got {type(esn).__name__}."
        )
    if not esn.feedback:
        raise ValueError(
            "feedback=False: force_train trains a loop through feedback weights. Enable them by "
            "`model.set_params(feedback=True)`."
        )
    if esn.readout is not None:
        raise ValueError(
            f"readout={esn.readout!r} cannot be corrected step by step: force_train needs the "
            "built-in readout. Use readout=None."
        )
    if esn.sequence_column is not None:
        raise ValueError(
            f"sequence_column={esn.sequence_column!r}, but force_train learns from one sequence. "
            "Use sequence_column=None, and pass the rows of one sequence."
        )
    if is_measured(esn.washout):
        raise ValueError(
            'washout="measured" compares teacher-forced runs, but force_train runs the network '
            'in closed loop. Use an integer or "auto".'
        )


def _check_test(n_test: Any, n_samples: int) -> int:
    """Return the number of rows over which the trained loop is tested."""
    if n_test is None:
        return min(_LONGEST_TEST, n_samples // 10)
    n_test = check_count("n_test", n_test, minimum=0)
    if n_test >= n_samples:
        raise ValueError(f"n_test={n_test} must be smaller than the number of rows, {n_samples}.")
    return n_test


def _prepare(
    esn: ESNRegressor, exog: Any, y: Any
) -> tuple[DataReader, TrainingData, ReadoutModel, LinearReadout | None]:
    """Return the reader, the data, the model, and the readout learned so far.

    For an `esn` that is not fitted the reservoir is built, and the readout is None.
    """
    new = esn._is_new
    reader = DataReader(esn, esn._coding()) if new else esn._reader
    reader.check_fixed(esn)
    rows, columns = _read(esn, reader, exog, y, new=new)
    check_enough_rows(esn, rows)
    read = reader.first_outputs if new else reader.outputs
    targets = read(esn, y, rows, allow_nan=esn._skips_missing())
    data = TrainingData(rows, targets, None, columns)
    esn._check(reader, data)
    if not new:
        check_reservoir(esn, reader)
        esn._check_same_outputs(targets)
        coef, intercept = ReadoutPredictor(esn).readout()
        model = esn._model.copy()
        model.source = ReadoutPredictor(esn).source  # of the rows of the input in use
        return reader, data, model, LinearReadout.of_float64(coef, intercept)
    if columns.n_features_in:
        return reader, data, _of_one_row(esn, esn._new_model(reader, data)), None
    # built with one column of zeros as input, which is removed again below
    zeros = replace(rows, arrays=(np.zeros((data.n_rows, 1)),))
    model = _of_one_row(esn, esn._new_model(reader, replace(data, sequences=zeros)))
    if model.source.n_past:
        raise ValueError(
            f"n_lags={esn.n_lags} counts rows of exog, but exog was not passed. Use n_lags=1, or "
            "pass exog."
        )
    reservoir: Reservoir = model.source.fitted["reservoir_"]
    without_inputs = replace(reservoir, W_in=np.zeros((reservoir.n_units, 0)))
    model.source = replace(model.source, reservoir=without_inputs)  # type: ignore[type-var]
    return reader, data, model, None


def _of_one_row(esn: ESNRegressor, model: ReadoutModel) -> ReadoutModel:
    """Return a model whose readout receives one row of the input, unless more are asked for."""
    if esn.n_lags == "auto" and isinstance(model.source, PastInputs):
        model.source = model.source.source
    return model


def _read(
    esn: ESNRegressor, reader: DataReader, exog: Any, y: Any, *, new: bool
) -> tuple[Sequences, Columns]:
    """Return the one sequence of inputs; without exogenous inputs it has no columns."""
    if exog is not None:
        if new:
            rows, columns = reader.first_inputs(esn, exog, y)
        else:
            rows, columns = reader.inputs(esn, exog, y), Columns.of(esn)
        if len(rows) != 1 or rows.container != "table":
            raise ValueError(
                "force_train learns from one sequence, and exog must be one table; it contains "
                f"{len(rows)} sequence(s). Pass the rows of one sequence as a table, and continue "
                "with the next sequence in another call."
            )
        return rows, columns
    n_rows = len(read_one("y", y, allow_nan=True))
    if new:
        esn.n_features_in_, reader.time_column = 0, None
    if esn.n_features_in_:
        raise ValueError(
            f"esn was fitted on {esn.n_features_in_} columns of X. Pass exog of shape "
            f"({n_rows}, {esn.n_features_in_})."
        )
    rows = read_series(esn, np.empty((n_rows, 0)), y, reset=False, dtype=reader.dtype)
    return rows, Columns.of(esn)


def _start_of(esn: ESNRegressor, model: ReadoutModel, rows: Sequences, spec: Any) -> Loop:
    """Return the state and the output before the first step."""
    size = model.source.state_size
    if isinstance(spec, str) and spec == "random":
        # the weights were drawn from children of this generator, so its own numbers are unused
        generator = as_generator(esn.random_state)
        n_units = model.source.fitted["reservoir_"].n_units
        spec = generator.uniform(-_FIRST_STATES, _FIRST_STATES, n_units)
    state = model.initial_states(spec, rows, model.state if model.progress.continues else None)[0]
    return Loop(state[:size], state[size:])


def _publish(
    esn: ESNRegressor,
    reader: DataReader,
    data: TrainingData,
    model: ReadoutModel,
    run: ForceRun,
    *,
    alpha: float,
    skip: int,
) -> None:
    """Set the fitted attributes of the network."""
    source, n_outputs, one = model.source, data.n_outputs, reader.targets.one_dimensional
    coef, intercept = (weights.astype(source.dtype) for weights in run.readout)
    model.state = np.concatenate([run.loop.state, data.targets[0][-1].astype(source.dtype)])
    model.readout = LoopTrainedReadout(ReadoutSettings()).begin(source.width, n_outputs)
    model.progress = Progress(n_outputs, compares=False)
    model.progress.finish(data.sequences, data.targets, washout=skip)
    model.n_trained += data.n_rows
    weights = (coef[0], intercept[0]) if one else (coef, intercept)
    solution = {"coef_": weights[0], "intercept_": weights[1], "alpha_": alpha}
    esn._publish(reader, model, data.columns, [skip], solution)


def _tested(
    esn: ESNRegressor, run: ForceRun, inputs: Array, targets: Array, n_test: int
) -> ForceHistory:
    """Run the trained loop freely over the last rows, and warn if it leaves the targets."""
    rows, error, begin = targets[:0], np.nan, len(targets) - n_test
    if run.marked is not None:
        predictor = ReadoutPredictor(esn)
        rows, _, _ = predictor.run(
            predictor.readout(),
            n_test,
            initial_state=run.marked.state,
            initial_output=run.marked.output,
            exog=inputs[begin:],
        )
        constant = width_of(range_of_targets([targets]))
        deviation = np.std(targets, axis=0)
        scale = np.where(deviation > _ROUNDING * constant, deviation, constant)
        error = float(np.sqrt(np.mean(((rows - targets[begin:]) / scale) ** 2)))
    if error > _FOLLOWS:
        warnings.warn(
            "The trained loop does not follow its targets: run freely over the last "
            f"n_test={n_test} rows, it has an error of {error:.3g} standard deviations of the "
            f"targets, above the limit of {_FOLLOWS}. More rows or units, another alpha, a "
            "forgetting factor of .999 or another random_state often help; a chaotic target needs "
            "a smaller n_test.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )
    return ForceHistory(
        run.outputs, run.outputs - targets, run.weight_norm, run.weight_change, rows, error
    )


# ---------------------------------------------------------------------- the loop, on arrays


class Loop(NamedTuple):
    """A closed loop: its state, (state_size,), and the output that the next step receives."""

    state: Array
    output: Array


class LinearReadout(NamedTuple):
    """Float64 coefficients, (n_outputs, n_features), and intercepts, (n_outputs,)."""

    coef: Array
    intercept: Array

    @classmethod
    def of_zeros(cls, n_outputs: int, n_features: int) -> LinearReadout:
        """Return a readout whose outputs are zero."""
        return cls(np.zeros((n_outputs, n_features)), np.zeros(n_outputs))

    @classmethod
    def of_float64(cls, coef: Array, intercept: Array) -> LinearReadout:
        """Return a float64 readout from weights of any dtype."""
        return cls(coef.astype(np.float64), intercept.astype(np.float64))

    def outputs(self, features: Array) -> Array:
        """Return the outputs of rows of features."""
        return features @ self.coef.T + self.intercept

    def plus(self, coef: Array, intercept: Array) -> LinearReadout:
        """Return the readout with `coef` and `intercept` added to its weights."""
        return LinearReadout(self.coef + coef, self.intercept + intercept)

    def norm(self) -> float:
        """Return the Euclidean norm of all weights."""
        return float(np.hypot(np.linalg.norm(self.coef), np.linalg.norm(self.intercept)))


@dataclass
class ForceRun:
    """A run in which the readout is corrected.

    `readout` includes all corrections. `loop` is the loop before the first step and, after the run,
    the loop at its end. `outputs`, (n_samples, n_outputs), were made before the correction of their
    step; `weight_norm` and `weight_change`, (n_samples,), are norms of all weights after each step
    and of their change. `marked` is the loop before the marked row.
    """

    readout: LinearReadout
    loop: Loop
    outputs: Array
    weight_norm: Array
    weight_change: Array
    marked: Loop | None = None

    @classmethod
    def begin(cls, readout: LinearReadout, loop: Loop, n_samples: int) -> ForceRun:
        """Return a run of `n_samples` steps that has not begun."""
        shape = (n_samples, len(loop.output))
        return cls(readout, loop, np.empty(shape), np.empty(n_samples), np.zeros(n_samples))


def _run_loop(
    source: FeatureSource,
    inputs: Array,
    targets: Array,
    run: ForceRun,
    factor: PenalisedFactor,
    activity: Record | None,
    *,
    skip: int,
    updates: Array,
    feed_corrected: bool,
    mark: int,
    steps: Iterable[int],
) -> None:
    """Run in closed loop, and correct the readout at the steps marked in `updates`.

    The weights are those at the start of `run`, which is updated in place, plus the ridge solution
    for their residuals on the rows of all corrections so far, collected in `factor`. The first
    `skip` steps are not in `activity`. With `feed_corrected`, the output is computed again after a
    correction, before it is fed back. The loop before row `mark` is stored in ``run.marked``.
    """
    first, dtype, limit = run.readout, source.dtype, loop_limit(source.dtype)
    state, fed = run.loop.state[None], run.loop.output[None]
    size, n_stored = first.norm(), source.n_past * source.n_features
    for t in steps:
        if t == mark:
            run.marked = Loop(state[0], fed[0])
        before, row = state[0], inputs[t : t + 1]
        features, state = source.advance(state, row, fed)
        if activity is not None:  # of the units, without the stored past inputs at the front
            units, reservoir = state[:, n_stored:], source.reservoir  # type: ignore[attr-defined]
            step = Steps(units, before[n_stored:], row, fed, reservoir.leak_rate, noisy=False)
            activity.add(reservoir, skip - t, step)
        with np.errstate(over="ignore", invalid="ignore"):
            output = run.readout.outputs(features)
        _check_bounded(t, limit, state, output)
        run.outputs[t] = output[0]
        if updates[t]:
            # residuals of the first readout: the penalty is on the distance from its weights
            factor.add(features, targets[t : t + 1] - first.outputs(features))
            earlier, run.readout = run.readout, first.plus(*factor.coef())
            run.weight_change[t] = run.readout.plus(-earlier.coef, -earlier.intercept).norm()
            size = run.readout.norm()
            if feed_corrected:
                output = run.readout.outputs(features)
        run.weight_norm[t] = size
        _check_bounded(t, limit, output)
        fed = output.astype(dtype)
    run.loop = Loop(state[0], fed[0])


def _check_bounded(step: int, limit: float, *values: Array) -> None:
    """Check that states or outputs are within the bounds of a closed loop."""
    if not all((np.abs(part) < limit).all() for part in values):
        raise ValueError(
            f"The loop diverged at step {step} of the training: states or outputs left the range "
            f'+-{limit:.1e}. A bounded activation such as "tanh", scaled targets, a smaller '
            "feedback_scaling or a larger alpha may help."
        )
