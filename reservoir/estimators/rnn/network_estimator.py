"""Base class of the estimators whose weights are all trained."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import Clock, Sequences
from reservoir._validation import advising, as_generator, check_choice
from reservoir.dynamics import Reservoir
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn._network_parameters import shared
from reservoir.estimators.rnn.network_model import NetworkModel, NetworkPredictor, raise_not_causal
from reservoir.estimators.rnn.online_learning import (
    NetworkLearner,
    check_online,
    learned_online,
    online_solver,
    started_online,
)
from reservoir.estimators.rnn.start import (
    check_recordings,
    check_timed,
    check_together,
    check_values,
    model_of,
    read_control,
)
from reservoir.estimators.rnn.start_trials import first_weights
from reservoir.estimators.rnn.training_run import (
    Task,
    check_loss_finite,
    engine_for_training,
    last_rows,
    rate_of,
    resolve_solver,
    run_training,
    training_task,
    warn_of_large_inputs,
    warn_of_trouble,
)
from reservoir.estimators.time_series_estimator import TimeSeriesEstimator
from reservoir.training.bptt import Network
from reservoir.training.cells import TimedLeakyCell
from reservoir.training.loop_engines import using
from reservoir.training.params import Params
from reservoir.training.torch_conversion import to_torch
from reservoir.training.trainer import Training

_Self = TypeVar("_Self", bound="NetworkEstimator")


@dataclass(eq=False, repr=False)
class NetworkEstimator(TimeSeriesEstimator):
    """Base class of recurrent networks in which every weight is trained.

    Subclasses list the parameters in which they differ. The fitted state is in two objects:
    `_reader` reads X and y, and `_model` is the network with its weights. All fitted attributes are
    set from these two, at the end of a successful call.

    Attributes
    ----------
    params_ : dict of arrays
        The weights by name: "W_in", "W", "bias", "coef", "intercept", and further weights of some
        cells. The matrices of the gates of a cell are stacked by rows. For a composite cell, "0.W"
        belongs to the first part, "1.W" to the second, and so on.
    network_ : reservoir.training.bptt.Network
        The architecture: the cell, inputs, outputs and loss.
    init_ : str or None
        The start of training: `init`, or the start chosen by "auto"; None if it was an estimator.
    start_results_ : dict of arrays or None
        The starts that were tried, one per row of ``pandas.DataFrame(start_results_)``: ``init``,
        the name; ``draw``, the number of the random network; ``input_scaling``, the factor of its
        input weights; ``error``, its error on rows that the readout was not fitted to, with only
        the readout fitted; ``halfway_error``, the same after half of the iterations;
        ``trial_loss``, its loss in a trial of starts; ``lost_loops``, the number of closed loops
        that left the training range; ``readout_tau``, the `tau` with which the readout was
        refitted, if that was needed to stabilise closed loops; and ``kept``, whether training
        started from it. Values that do not apply are NaN. Errors are squared, and relative to the
        variance of y if the output function is the identity. None if no start was computed from
        data, as with random weights that were not compared with others, or if `init` is an
        estimator.
    solver_ : str or None
        Name of the solver: `solver`, or the one chosen by "auto", even if ``max_iter=0`` leaves it
        nothing to do. None for a converted network (`ESNRegressor.to_rnn`,
        `RNNRegressor.from_torch`) before `fit`.
    loss_curve_ : list of float
        The training loss, including penalties on weights, at the start and after each epoch; for
        the solver "variable_projection" the loss of the rows that are not held out, each time with
        the best readout, and of the repetition if training was repeated. `partial_fit` appends one
        entry per call and sequence.
    validation_loss_curve_ : list of float
        The loss on held-out data, at the start and after each epoch; only with `early_stopping`,
        or if the solver "variable_projection" has held out some rows.
    best_loss_ : float
        The smallest loss, on held-out data if there are any. `params_` are the weights with this
        loss; if the solver "variable_projection" has held out some rows, their readout was then
        fitted to all rows. Only after `fit`.
    best_epoch_ : int
        The epoch of the smallest loss; 0 means the initial weights. Only after `fit`.
    n_iter_ : int
        Number of epochs done, or of calls of `partial_fit`.
    reservoir_ : reservoir.dynamics.Reservoir
        The recurrent layer of the cells "rnn" and "leaky", for `reservoir.stability`; with a
        `time_column`, the layer for steps of length 1.
    state_ : array of shape (state_size,)
        The state at the end of training (of its last sequence).
    time_step_ : float or None
        The gap for which `leak_rate` is given; None without a `time_column`.
    washout_ : array of shape (n_sequences,)
        Number of rows at the start of each sequence that the loss excludes.
    n_outputs_ : int
        Number of outputs per step.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X; only if X had names.

    """

    n_units: int = shared.n_units
    _: KW_ONLY
    cell: Any = shared.cell
    activation: str = shared.activation
    leak_rate: Any = shared.leak_rate
    n_symbols: int | None = shared.n_symbols
    init: Any = shared.init
    solver: Any = shared.solver
    learning_rate_init: float = shared.learning_rate_init
    learning_rate: Any = shared.learning_rate
    max_iter: int = shared.max_iter
    batch_size: Any = shared.batch_size
    truncation: Any = shared.truncation
    clip_norm: float | None = shared.clip_norm
    clip_value: float | None = shared.clip_value
    alpha: float = shared.alpha
    l1: float = shared.l1
    gradient_control: Any = shared.gradient_control
    curriculum: Any = shared.curriculum
    target: str = shared.target
    missing_targets: str = shared.missing_targets
    early_stopping: bool = shared.early_stopping
    validation_fraction: float = shared.validation_fraction
    n_iter_no_change: int = shared.n_iter_no_change
    tol: float = shared.tol
    online: str = shared.online
    online_window: int = shared.online_window
    washout: Any = shared.washout
    warm_start: bool = shared.warm_start
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    random_state: Any = shared.random_state
    include_input: bool = shared.include_input
    initial_state: Any = shared.initial_state
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype
    verbose: int = shared.verbose

    refit_readout = False  # a parameter of the regressor

    @abstractmethod
    def _new_model(self, reader: DataReader, data: TrainingData) -> NetworkModel:
        """Return an untrained model, with the output and the loss of the class."""

    # ------------------------------------------------------------------ learning

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Initialise the network, and train it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            At least two rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or one such array per sequence
            Numbers, or for a classifier labels of shape (n_samples,). With ``target="last"``, y has
            one row or label for each sequence: its shape is (n_sequences,) or (n_sequences,
            n_outputs). If X is a table with sequence ids, the target of a sequence may be repeated
            in each of its rows instead.
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            Non-negative weights of the rows. A row of weight 0 still drives the network. With
            ``target="last"``, an array of shape (n_sequences,).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is invalid; the message gives the reason and a remedy. Dates
            in an index must increase within each sequence; the index of y must equal that of X, or
            be ahead of it by a constant offset; dates among the values are not allowed.

        Warns
        -----
        ConvergenceWarning
            If training diverged (the message names the epoch), did not improve on a random start,
            or kept another start by the loss of held-out rows although the training loss fell by a
            tenth (before `max_iter`); the best weights found are kept.
        UserWarning
            If the dates of an index have no frequency: each row then counts as one step, whatever
            the time between rows. Also if X is so large that it saturates most units, or that one
            update of the weights by `learning_rate_init` changes pre-activations by more than .5:
            starts from data adapt the weights to the scale of X, but random starts and gradient
            steps do not.
        """
        with advising(self._memory_advice()):
            reader = self._new_reader()
            data = reader.read(self, X, y, sample_weight, allow_nan=self._skips_missing())
            self._check(reader, data)
            model = self._new_model(reader, data)
            check_recordings(self, model.network, data.sequences)
            generator = as_generator(self.random_state)
            task = training_task(self, model, data, generator)
            model.engine = engine_for_training(self, model.network, task.learned)
            with np.errstate(over="ignore", invalid="ignore"), using(model.engine):
                start = first_weights(self, model, task, (X, y), generator)
                network, validation = model.network, task.validation
                solver = resolve_solver(self, network, task.learned, drawn=start.drawn)
                done = run_training(
                    self,
                    network,
                    start.params,
                    task.learned,
                    validation,
                    generator,
                    solver=solver,
                    began=start.began,
                )
                start.settle(done)
            check_loss_finite(done)
            model = self._trained(model, data, task, done)
            if not warn_of_trouble(self, network, done, solver=solver, drawn=start.drawn):
                rate = rate_of(self, solver) if done.n_epochs else 0.0
                warn_of_large_inputs(network, done.params, task.learned, rate=rate)
            fitted = {
                "init_": start.name,
                "start_results_": start.results,
                "solver_": solver,
                **_results_of(done),
            }
            washout = np.array(task.skips, dtype=np.int64)
            self._publish(reader, model, data, washout_=washout, **fitted)
        return self

    def _trained(
        self, model: NetworkModel, data: TrainingData, task: Task, done: Training
    ) -> NetworkModel:
        """Return a model with the weights of a training run, positioned after all rows."""
        one = model.copy()
        one.params, one.losses, one.n_iter = done.params, list(done.losses), done.n_epochs
        targets = None if self.target == "last" else data.targets  # type: ignore[attr-defined]
        one.progress.finish(data.sequences, targets, washout=task.skips[0])
        last = Sequences(data.arrays[-1:], "table")
        one.state = one.run(last, task.initial_states[-1:])[1][0]
        one.recent = last_rows(self, one, task)
        return one

    def _partial_fit(self: _Self, X: Any, y: Any, *, new_sequence: bool, **known: Any) -> _Self:
        """Learn online from a chunk; `known` is passed to `TargetCoding.read`."""
        with advising(self._memory_advice()):
            first, skips_missing = self._is_new, self._skips_missing()
            reader = self._new_reader() if first else self._reader
            data = reader.read_chunk(
                self, X, y, None, first=first, allow_nan=skips_missing, **known
            )
            check_online(self, "partial_fit")
            model, fitted = (
                self._begun(reader, data, (X, y)) if first else (self._shown_model(), {})
            )
            _require_causal(self.cell, model, "partial_fit")
            if not first:
                self._check_same_outputs(data.targets)
            check_values(data.arrays, data.targets, model.network, model.dtype)
            model = learned_online(self, model, data, new_sequence=new_sequence)
            self._publish(reader, model, data, **fitted)
        return self

    def _begun(
        self, reader: DataReader, data: TrainingData, given: tuple[Any, Any]
    ) -> tuple[NetworkModel, dict[str, Any]]:
        """Return a model with the initial weights of online learning, and its fitted attributes."""
        self._check(reader, data)
        model, start = started_online(self, self._new_model(reader, data), data, given)
        washout = np.array([model.progress.washout], dtype=np.int64)
        fitted = {
            "init_": start.name,
            "start_results_": start.results,
            "solver_": online_solver(self),
            "washout_": washout,
        }
        return model, fitted

    def _new_reader(self) -> DataReader:
        """Return a reader of X and y for the parameters."""
        check_choice("target", self.target, ("step", "last"))  # the coding of y depends on it
        check_timed(self)
        return DataReader(self, self._coding())

    def _publish(
        self, reader: DataReader, model: NetworkModel, data: TrainingData, **fitted: Any
    ) -> None:
        """Set all fitted attributes; before this, a call that fails has changed none."""
        clock = reader.clock
        fitted |= {
            "_reader": reader,
            "_model": model,
            "time_step_": None if clock is None else clock.step,
            **data.columns.fitted,
            **model.fitted_attributes,
        }
        if reader.targets.classes is not None:
            fitted["classes_"] = reader.targets.classes
        if "best_loss_" in fitted:  # a new fit; later chunks keep the curve of the fit
            self.__dict__.pop("validation_loss_curve_", None)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(fitted)

    def _adopt(
        self: _Self, network: Network, params: Params, *, one_dimensional: bool = False
    ) -> _Self:
        """Set the estimator to the state after a fit with these weights, without any data."""
        dtype = params["coef"].dtype
        reader = DataReader(self, self._coding())
        reader.dtype, reader.targets.one_dimensional = dtype.name, one_dimensional
        reader.n_symbols = network.n_features if network.coded else None
        model = model_of(network, reader, read_control(self.gradient_control))
        model.params = {name: np.array(params[name], dtype=dtype) for name in network.shapes()}
        model.progress.target_range = np.full((2, network.n_outputs), np.nan)
        model.state = np.zeros(network.cell.state_size, network.cell.held_in(dtype))
        self._reader = reader
        self._model: NetworkModel = model
        self.__dict__.update(model.fitted_attributes)
        self.n_features_in_, self.best_epoch_ = network.n_features, 0
        if isinstance(network.cell, TimedLeakyCell):
            check_timed(self)
            step = 1.0 if isinstance(self.time_step, str) else float(self.time_step)
            reader.clock = model.clock = Clock(network.cell.place, 0.0, step)
            self.time_step_: float | None = step
        self.init_: str | None = None
        self.start_results_: dict[str, Any] | None = None
        self.solver_: str | None = None
        return self

    # ------------------------------------------------------------------ checks

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        """Check the parameters, each alone and together."""
        check_together(self)

    def _skips_missing(self) -> bool:
        """Whether rows without a target are skipped."""
        check_choice("target", self.target, ("step", "last"))
        how = check_choice("missing_targets", self.missing_targets, ("raise", "skip"))
        if how == "skip" and self.target == "last":
            raise ValueError(
                "missing_targets='skip' skips the targets of single steps, but with "
                "target='last' each target belongs to a whole sequence. Use "
                "missing_targets='raise', and omit sequences without a target from X and y."
            )
        return how == "skip"

    def _check_steps(self, what: str) -> None:
        _require_causal(self.cell, self._model, what)

    def _memory_advice(self) -> str:
        """Return a sentence on which parameters to change if memory runs out."""
        return (
            f"Lower n_units={self.n_units} (weights grow with its square), batch_size or the "
            'lengths of sequences (training keeps their states), or use dtype="float32".'
        )

    # ------------------------------------------------------------------ using the fitted network

    def __sklearn_is_fitted__(self) -> bool:
        return not self._is_new

    def _check_fitted(self) -> None:
        if self._is_new:  # scikit-learn's check is slower than a step of a session
            check_is_fitted(self)

    @property
    def reservoir_(self) -> Reservoir:
        """The recurrent layer with its present weights, for `reservoir.stability`."""
        self._check_fitted()
        return self._shown_model().reservoir()

    def _shown_model(self) -> NetworkModel:
        """Return the model with weights and state of the fitted attributes, which users may set."""
        model = self._model
        if self.params_ is model.params and self.state_ is model.state:
            return model
        one = copy.copy(model)
        one.params, one.state = self.params_, self.state_
        return one

    def _predictor(self) -> NetworkPredictor:
        """Return the fitted network, ready to run."""
        self._check_fitted()
        return NetworkPredictor(self)

    def _session_learner(self) -> NetworkLearner:
        return NetworkLearner.of(self)

    def states(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the states of the recurrent layer that the readout receives.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : str or array, optional
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, width), or sequences in the container of X
            The width is n_units, or more for some cells: see ``network_.cell.width``.
        """
        predictor = self._predictor()
        sequences = predictor.read(X)
        starts = predictor.starts(initial_state, sequences)
        return sequences.restore(predictor.model.states(sequences, starts))

    def to_torch(self) -> Any:
        """Return the network as a torch module.

        Returns
        -------
        torch.nn.Module
            A module that maps (batch, time, n_features) to (batch, time, n_outputs) in the dtype of
            the network, starting from a zero state; it includes the output function. With
            ``target="last"``, the prediction is its last row. With `n_symbols`, it receives one-hot
            columns. With a `time_column`, it receives the times in units of `time_step_`, and
            starts one step before the first row.

        Raises
        ------
        ImportError
            If torch is not installed.
        ValueError
            If the cell cannot be converted: a cell with peepholes, context units, gated feedback or
            dropout, or a GRU with ``reset_after=False``.
        """
        self._check_fitted()
        return to_torch(self.network_, self.params_)

    def _description(self) -> dict[str, str]:
        n_weights = sum(array.size for array in self.params_.values())
        network = f"{self.n_units} units, cell {self.cell!r}, {n_weights} weights, all trained"
        epochs = "epoch" if self.n_iter_ == 1 else "epochs"
        begun = f"init={self.init!r}"
        if isinstance(self.init, str) and self.init == "auto" and getattr(self, "init_", None):
            begun += f", which is {self.init_!r}"
        solver = repr(self.solver)
        if solver == "'auto'" and getattr(self, "solver_", None):
            solver += f", which is {self.solver_!r},"
        found = {
            "Network": network,
            "Training": f"{self.n_iter_} {epochs} of {solver} from {begun}",
        }
        loss = self.network_.loss
        if hasattr(self, "best_loss_"):
            held_out = hasattr(self, "validation_loss_curve_")
            which = "of held-out rows" if held_out else "of training"
            at = f"epoch {self.best_epoch_}" if self.best_epoch_ else "the start"
            found["Loss"] = f"{self.best_loss_:.3g} ({loss}, {which}), at {at}"
        elif self.loss_curve_:
            found["Loss"] = f"{self.loss_curve_[-1]:.3g} ({loss}, of the last rows learned from)"
        return found


def _require_causal(cell: Any, model: NetworkModel, what: str) -> None:
    """Raise if the states of a network depend on later rows."""
    if not model.network.cell.causal:
        remedy = 'Use a cell without one, such as cell="lstm", or pass whole recordings to predict'
        raise_not_causal(cell, f"{what} needs states that do not depend on later rows", remedy)


def _results_of(done: Training) -> dict[str, Any]:
    """Return the fitted attributes that describe a training run."""
    found: dict[str, Any] = {
        "best_loss_": done.criterion[done.best_epoch],
        "best_epoch_": done.best_epoch,
    }
    if done.validation_losses:
        found["validation_loss_curve_"] = list(done.validation_losses)
    return found
