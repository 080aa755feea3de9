"""What RNNRegressor and RNNClassifier share: fit, partial_fit, outputs, the loop on own outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, as_generator, check_choice, resolve_washout, room_for
from reservoir.dynamics import Reservoir, run_closed_loop
from reservoir.estimators._base import SequenceEstimator
from reservoir.estimators._parameters import (
    DrawnParameters,
    InputParameters,
    LearnerParameters,
    SequenceParameters,
    TimeParameters,
    changed,
)
from reservoir.estimators._progress import Progress, StateShape
from reservoir.estimators._timed_rows import TimedRows
from reservoir.estimators.rnn._coded_inputs import check_codes
from reservoir.estimators.rnn._large_inputs import rate_of, warn_of_large_inputs
from reservoir.estimators.rnn._loop_trial import trial_of
from reservoir.estimators.rnn._missing_rows import (
    check_values,
    filled,
    known_rows,
    weights_of_known,
)
from reservoir.estimators.rnn._network_description import description_of_network
from reservoir.estimators.rnn._network_parameters import NetworkParameters
from reservoir.estimators.rnn._online_session import NetworkLearner, check_online
from reservoir.estimators.rnn._online_start import Recent, last_rows, new_learner, start_online
from reservoir.estimators.rnn._refused_runs import check_same, refuse_lost, refuse_overflow
from reservoir.estimators.rnn._start_trial import best_start, wants_trial
from reservoir.estimators.rnn._starting_weights import (
    check_timed,
    check_together,
    make_cell,
    name_of_start,
    read_control,
    starting_weights,
)
from reservoir.estimators.rnn._training_run import (
    BATCH_SIZE,
    engine_for_training,
    run_training,
    split,
    warn_of_trouble,
)
from reservoir.estimators.rnn._whole_recordings import (
    check_recordings,
    check_start,
    require_causal,
)
from reservoir.training.bptt import Network, predict
from reservoir.training.gated_loop import run_gated_loop, steady_state_of
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.loop_engines import kept, using
from reservoir.training.losses import apply_output, resolve_loss
from reservoir.training.online import OnlineLearner
from reservoir.training.params import Params
from reservoir.training.trainer import Data, Training

_BLOCK_STEPS = 2048  # run at a time, so that a long series needs little memory
_Self = TypeVar("_Self", bound="BaseRNN")


@dataclass(eq=False, repr=False, kw_only=True)
class BaseRNN(SequenceEstimator, InputParameters, DrawnParameters, TimedRows, NetworkParameters):
    """A recurrent network whose weights are all trained. Subclasses say what targets mean."""

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
    _changed_in_place = ("_progress", "_online", "loss_curve_")
    _engine = "auto"
    refit_readout = False  # RNNRegressor makes a parameter of it
    _recent = cast("Recent | None", None)

    def _description(self) -> dict[str, str]:
        return description_of_network(self)

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Start the network, and train it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Two rows at least.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or one such array per sequence
            Numbers; for a classifier labels, (n_samples,). With ``target="last"`` one row, or one
            label, for each sequence: (n_sequences,) or (n_sequences, n_outputs). For a table that
            tells its sequences apart it may be repeated for each row of the sequence.
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            At least 0. A row of weight 0 still drives the network. With ``target="last"``:
            (n_sequences,).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is refused; the message says why, and what to do. Dates in
            an index must increase within each sequence; y's index must be X's, or ahead of it by a
            constant offset; dates among the values are refused.

        Warns
        -----
        ConvergenceWarning
            If training diverged (the message names the epoch), or did not improve on a random
            start; the best weights seen are kept.
        UserWarning
            If the dates of an index have no frequency: a row is one step, however long. If X is so
            large that it holds most units at their bounds, or that an update of the weights by
            `learning_rate_init` moves their sums by more than .5: starts from data scale their
            weights by X, random ones do not, and gradient steps do not either.
        """
        return self._learn_all(X, y, sample_weight)

    # ------------------------------------------------------------------ what is read

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        check_choice("target", self.target, ("step", "last"))  # how y is read depends on it
        if reset:
            check_timed(self)
        by_row = None if self.target == "last" else y
        sequences = self._read_rows(X, by_row, reset=reset, **self._reading(reset))
        if reset:
            return sequences if self.n_symbols is None else check_codes(sequences, self.n_symbols)
        network = self.network_
        return check_codes(sequences, network.n_features) if network.coded else sequences

    def _read_targets(
        self, y: Any, sequences: Sequences, *, first: bool, **known: Any
    ) -> list[Array]:
        skip = check_choice("missing_targets", self.missing_targets, ("raise", "skip")) == "skip"
        if skip and self.target == "last":
            raise ValueError(
                "missing_targets='skip' skips rows of y that stand for a step; with "
                "target='last' each stands for a sequence. Use missing_targets='raise', and leave "
                "sequences without a target out of X and y."
            )
        return super()._read_targets(y, sequences, first=first, allow_nan=skip, **known)

    @property
    def _dtype(self) -> Any:
        return self.params_["coef"].dtype

    def _memory_advice(self) -> str:
        """Return which parameters to change where memory fails."""
        return (
            f"Lower n_units={self.n_units}, with whose square weights grow; batch_size, or the "
            'lengths of sequences, whose states training keeps; or use dtype="float32".'
        )

    def _hold(self, network: Network, params: Params, losses: list[float]) -> None:
        """Keep a network and its weights."""
        self.network_: Network = network
        self.n_outputs_: int = network.n_outputs
        self.params_: Params = params
        self.loss_curve_: list[float] = losses

    def _output_and_loss(self) -> tuple[str, str]:
        """Return the function behind the readout, and the loss that goes with it."""
        return self.output, resolve_loss(self.output, self.loss)  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ learning

    def _begin(self, sequences: Sequences, targets: list[Array]) -> Network:
        """Check the parameters and forget everything learned; return the network."""
        check_together(self)
        output, loss = self._output_and_loss()
        self._control = read_control(self.gradient_control)
        network = Network(
            make_cell(self, self._clock),
            self.n_symbols or sequences.arrays[0].shape[1],
            targets[0].shape[-1],
            output,
            loss,
            bool(self.include_input),
            coded=self.n_symbols is not None,
        )
        n_weights = sum(math.prod(shape) for shape in network.shapes().values())
        n_bytes = 2.0 * n_weights * np.dtype(self._dtype_asked_for()).itemsize
        what = f"The weights of n_units={self.n_units}, and a gradient of their size,"
        with room_for(what, n_bytes, "Use fewer units."):
            pass
        if self._control is not None:
            self._control.check(network.cell)
        check_values(sequences.arrays, targets, network, self._dtype_asked_for())
        self._sequence_column = self.sequence_column
        return network

    def _new_progress(self, network: Network, washout: int = 0) -> Progress:
        labels, coded = self._targets.classes is not None, network.coded
        compares = not self._targets.per_sequence and (labels or not coded)
        return Progress(network.n_outputs, washout=washout, compares=compares, coded=coded)

    def _washouts(self, lengths: list[int]) -> list[int]:
        several = len(lengths) > 1 and isinstance(self.washout, str)  # each starts from zeros
        if several or self._targets.per_sequence:
            return [0] * len(lengths)
        return resolve_washout(self.washout, lengths)

    def _fit(
        self, sequences: Sequences, targets: list[Array], weights: list[Array] | None, data: Any
    ) -> None:
        known = known_rows(targets)
        seen = None if self._targets.per_sequence else targets  # NaN included
        weights, targets = weights_of_known(weights, known), filled(targets, known)
        network = self._begin(sequences, targets)
        check_recordings(self, network, sequences)
        goes_on = self.warm_start and hasattr(self, "params_")
        before = (self.network_, self.params_) if goes_on else None
        generator = as_generator(self.random_state)
        # what to learn from, and what to stop by
        skips = self._washouts(sequences.lengths)
        fresh = self._new_progress(network)
        starts = self._states_before(fresh, network, self.initial_state, sequences, None)
        learned, validation = split(self, sequences, targets, weights, skips, starts, generator)
        self._engine = engine_for_training(self, network, learned)
        trial = None
        if before is None:
            trial = trial_of(self, network, sequences.arrays, targets, starts, known)
        # where training starts, and the run itself
        with np.errstate(over="ignore", invalid="ignore"), using(self._engine):
            self._drawn_at_random = False
            if before is None:
                params = self._first_weights(network, data, learned, trial, generator)
            else:
                check_same(network, before[0])
                params = {name: array.astype(learned.dtype) for name, array in before[1].items()}
            done = run_training(self, network, params, learned, validation, generator)
            if trial is not None:
                trial.settle(done, params)
        refuse_lost(done)
        # what is left of it
        self._hold(network, done.params, list(done.losses))
        self._keep(done)
        self.washout_ = np.array(skips, dtype=np.int64)
        self._progress = fresh
        fresh.finish(sequences, seen, washout=skips[0])
        last = Sequences(sequences.arrays[-1:], "table")
        self.state_ = self._run(last, starts[-1:])[1][0]
        self._online: OnlineLearner | None = None
        self._recent = last_rows(self, sequences, targets, weights, skips, starts)
        if not warn_of_trouble(self, done):
            rate = rate_of(self) if done.n_epochs else 0.0
            warn_of_large_inputs(network, done.params, learned, rate=rate)

    def _first_weights(
        self,
        network: Network,
        data: Any,
        learned: Data,
        trial: Any,
        generator: np.random.Generator,
    ) -> Params:
        """Return the weights to start from: of several, where they are tried, the best."""
        self.init_: str | None = name_of_start(self, network.cell)
        if wants_trial(self, network, learned):
            found = best_start(self, network, learned, generator)
            if found is not None:
                self.init_, params = found
                return params
        self._drawn_at_random = self.init_ in INITIALIZERS

        def draw() -> Params:
            X, y = data
            spawned = generator.spawn(1)[0]
            return starting_weights(self, network, X, y, learned, generator=spawned)

        params = draw()
        return params if trial is None else trial.safest(params, draw, learned)

    def _adopt(self: _Self, network: Network, params: Params, *, one_dimensional: bool) -> _Self:
        """Stand as after a fit that had these weights for a result and saw no data."""
        dtype = params["coef"].dtype
        copied = {name: np.array(params[name], dtype=dtype) for name in network.shapes()}
        self._hold(network, copied, [])
        self.init_ = None
        self.n_features_in_ = network.n_features
        self.n_iter_ = self.best_epoch_ = 0
        self._sequence_column = self.sequence_column
        self._targets = self._coding()
        self._targets.one_dimensional = one_dimensional
        self._control = read_control(self.gradient_control)
        self._progress = self._new_progress(network)
        self._progress.target_range = np.full((2, network.n_outputs), np.nan)
        self.state_ = np.zeros(network.cell.state_size, network.cell.held_in(dtype))
        self._online = self._recent = None
        return self

    def _keep(self, done: Training) -> None:
        self.best_loss_ = done.criterion[done.best_epoch]
        self.best_epoch_, self.n_iter_ = done.best_epoch, done.n_epochs
        if done.validation_losses:
            self.validation_loss_curve_ = list(done.validation_losses)
        elif hasattr(self, "validation_loss_curve_"):
            del self.validation_loss_curve_

    # ------------------------------------------------------------------ learning online

    def _partial_fit(
        self, sequences: Sequences, targets: list[Array], data: Any, *, new_sequence: bool
    ) -> None:
        check_online(self, "partial_fit")
        if self._is_new:
            start_online(self, sequences, targets, data)
        self._refuse_steps("partial_fit")
        self._refuse_other_outputs(targets)
        check_values(sequences.arrays, targets, self.network_, self._dtype)
        if self._online is None:
            self._online = new_learner(self)
        # where the first sequence goes on, so do state and washout; the others start anew
        progress, online = self._progress, self._online
        starts = self._states_before(progress, self.network_, self.initial_state, sequences, None)
        goes_on = progress.enter(sequences, new_sequence)
        skips = progress.skips(sequences, goes_on)
        for i, (rows, values) in enumerate(zip(sequences.arrays, targets, strict=True)):
            start = starts[i] if i or not goes_on else None
            loss = self._learn_sequence(online, rows, values, skips[i], start)
            if np.isfinite(loss):
                self.loss_curve_.append(loss)
        self.params_ = online.params
        self.state_ = online.state.copy()
        self.n_iter_ += 1
        progress.add(sequences, targets, goes_on=goes_on)
        progress.continues = True

    def _learn_sequence(
        self, online: OnlineLearner, rows: Array, targets: Array, skip: int, start: Array | None
    ) -> float:
        """Go through rows, from a state or from where the sequence stands; return the loss."""
        if start is not None:
            online.restart(start)
        elif not online.running:  # after fit: the learner has not run yet
            online.restart(self.state_)
            if self._recent is not None:
                online.look_back(*self._recent)
        self._require_later([rows], [online.state])
        return online.learn(rows, targets.astype(self._dtype), skip)

    def _refuse_steps(self, what: str) -> None:
        require_causal(self, f"{what} needs states that rows to come do not change")

    def _session_learner(self) -> NetworkLearner:
        return NetworkLearner.of(self)

    # ------------------------------------------------------------------ using the fitted network

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "params_")

    @property
    def reservoir_(self) -> Reservoir:
        """The recurrent layer with its weights as they are: what `reservoir.stability` takes."""
        self._check_fitted()
        cell = self.network_.cell.at_even_steps().as_simple()
        if cell is None:
            name = type(self.network_.cell).__name__
            raise AttributeError(f"{name} is no reservoir: cells 'rnn' and 'leaky' are.")
        return cell.reservoir(self.params_)

    def _states_before(
        self,
        progress: Progress,
        network: Network,
        spec: Any,
        sequences: Sequences,
        last: Array | None,
        params: Params | None = None,
    ) -> list[Array]:
        cell = network.cell
        spec = self._starting_from(spec, sequences, last, cell.n_units)
        shape = StateShape(cell.state_size, 0, sequences.arrays[0].dtype)
        steady = partial(steady_state_of, cell, params)
        fresh = partial(steady_state_of, cell, None) if self._clock is not None else None
        return progress.starts(spec, sequences, shape, last=last, steady=steady, fresh=fresh)

    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        spec = self.initial_state if spec is None else spec
        if not self.network_.cell.causal:
            check_start(self.cell, spec, self._last_state())
        return self._states_before(
            self._progress, self.network_, spec, sequences, self._last_state(), self.params_
        )

    def _run(self, sequences: Sequences, starts: list[Array]) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence."""
        self._require_later(sequences.arrays, starts)
        data = Data(sequences.arrays, sequences.arrays)
        outputs: list[Array] = [np.empty(0)] * len(sequences)
        ends: list[Array] = [np.empty(0)] * len(sequences)
        for index in data.by_length(BATCH_SIZE):
            batch, _ = data.batch(index)
            state = np.stack([starts[i] for i in index])
            parts = []
            for chunk in batch.chunks(_BLOCK_STEPS if self.network_.cell.causal else None):
                with np.errstate(over="ignore", invalid="ignore"), using(kept(self._engine)):
                    rows, state = predict(
                        self.network_, self.params_, chunk.inputs, state, chunk.lengths
                    )
                parts.append(rows)
            played = np.concatenate(parts)
            for k, i in enumerate(index):
                outputs[i] = np.ascontiguousarray(played[: len(sequences.arrays[i]), k])
                ends[i] = state[k].copy()
        refuse_overflow("output", outputs, sequences.numbers)
        return outputs, ends

    def _outputs_from(
        self,
        sequences: Sequences,
        starts: list[Array],
        readout: Any = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        return self._run(sequences, starts)

    def states(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return what the readout sees of the recurrent layer.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : str or array, optional
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, width), or the container that X came in
            The width is n_units, where the cell does not show more: see ``network_.cell.width``.
        """
        self._check_fitted()
        sequences = self._read(X, reset=False)
        starts = self._start_states(initial_state, sequences)
        self._require_later(sequences.arrays, starts)
        with np.errstate(over="ignore", invalid="ignore"):
            traces = [
                self.network_.cell.forward(self.params_, rows[:, None], start[None])
                for rows, start in zip(sequences.arrays, starts, strict=True)
            ]
        states = [np.ascontiguousarray(trace.states[1:, 0]) for trace in traces]
        refuse_overflow("state", states)
        return sequences.restore(states)

    def _loop_readout(self) -> Any:
        """Return what closes a loop: (coef, intercept), or a function of the features."""
        coef, intercept = self.params_["coef"], self.params_["intercept"]
        if self.network_.output == "identity":
            return coef, intercept
        output = self.network_.output
        return lambda features: apply_output(coef @ features + intercept, output)

    def _run_loop(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run on own outputs, as `run_closed_loop`; the caller warns of a loop that diverged."""
        if self.network_.cell.as_simple() is not None:
            return run_closed_loop(
                self.reservoir_,
                readout,
                n_steps,
                include_input=self.network_.include_input,
                return_steps=True,
                **options,
            )
        return run_gated_loop(self.network_, self.params_, readout, n_steps, **options)
