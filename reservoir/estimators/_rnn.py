"""What RNNRegressor and RNNClassifier share: fit, partial_fit, outputs, the loop on own outputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    as_generator,
    check_choice,
    check_count,
    read_series,
    resolve_washout,
)
from reservoir.dynamics import Reservoir, run_closed_loop
from reservoir.estimators._pairing import Pairing
from reservoir.estimators._reach import reach_of
from reservoir.estimators._recipe import estimator_dtype
from reservoir.estimators._rnn_learning import (
    BATCH_SIZE,
    TRUNCATION,
    engine_for_training,
    require_targets,
    run_training,
    split,
    steps_of_update,
    warn_of_trouble,
)
from reservoir.estimators._rnn_loop import run_gated_loop, steady_state_of
from reservoir.estimators._rnn_start import (
    WHOLE,
    check_controllable,
    check_rnn,
    check_squares,
    make_cell,
    read_control,
    resolve_init,
    starting_weights,
)
from reservoir.estimators._rnn_trial import trial_of
from reservoir.estimators._sequence import SequenceEstimator
from reservoir.estimators._states import initial_states
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.loop_engines import kept, using
from reservoir.training.losses import apply_output, check_targets, resolve_loss
from reservoir.training.online import OnlineLearner
from reservoir.training.params import Params
from reservoir.training.trainer import Data, Training

_BLOCK_STEPS = 2048  # run at a time, so that a long series needs little memory


class BaseRNN(SequenceEstimator):
    """A recurrent network whose weights are all trained. Subclasses say what targets mean."""

    _kept = ("_pairing", "_seen", "_online", "loss_curve_")
    _n_fed_back = 0  # outputs come back as inputs only
    network_: Network
    params_: Params
    _engine = "auto"
    _one_dimensional: bool
    refit_readout = False  # RNNRegressor makes a parameter of it

    # ------------------------------------------------------------------ what is read

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        check_choice("target", self.target, ("step", "last"))  # how y is read depends on it
        dtype = estimator_dtype(self.dtype) if reset else self._dtype
        column = self.sequence_column if reset else self._sequence_column
        y = None if self.target == "last" else y  # one row per sequence then
        return read_series(self, X, y, reset=reset, dtype=dtype, sequence_column=column)

    @property
    def _dtype(self) -> Any:
        return self.params_["coef"].dtype

    def _output_and_loss(self) -> tuple[str, str]:
        return self.output, resolve_loss(self.output, self.loss)

    # ------------------------------------------------------------------ learning

    def _begin(self, sequences: Sequences, targets: list[Array]) -> Network:
        """Check the parameters and forget everything learned; return the network."""
        check_rnn(self)
        output, loss = self._output_and_loss()
        self._control = read_control(self.gradient_control)
        network = Network(
            make_cell(self),
            sequences.arrays[0].shape[1],
            targets[0].shape[-1],
            output,
            loss,
            bool(self.include_input),
        )
        if self._control is not None:
            check_controllable(self, network.cell)
        check_targets(np.vstack(targets), output, loss)
        check_squares(sequences.arrays, targets)
        self._last = self.target == "last"
        self._sequence_column = self.sequence_column
        return network

    def _washouts(self, lengths: list[int]) -> list[int]:
        several = len(lengths) > 1 and isinstance(self.washout, str)  # each starts from zeros
        return (
            [0] * len(lengths) if self._last or several else resolve_washout(self.washout, lengths)
        )

    def _starts_at_random(self, network: Network) -> bool:
        init = resolve_init(self, network.cell)
        return isinstance(init, str) and init in INITIALIZERS

    def _fit(
        self,
        sequences: Sequences,
        targets: list[Array],
        weights: list[Array] | None,
        X: Any,
        y: Any,
    ) -> None:
        network = self._begin(sequences, targets)
        goes_on = self.warm_start and hasattr(self, "params_")
        before = (self.network_, self.params_) if goes_on else None
        generator = as_generator(self.random_state)
        skips = self._washouts(sequences.lengths)
        starts = self._states_before(network, self.initial_state, sequences, None)
        data, validation = split(self, sequences, targets, weights, skips, starts, generator)
        self._drawn_at_random = before is None and self._starts_at_random(network)
        self._engine = engine_for_training(self, network, data)
        trial = None
        if before is None:
            trial = trial_of(self, network, sequences.arrays, targets, starts)
        draw = partial(starting_weights, self, network, X, y, data)
        with np.errstate(over="ignore", invalid="ignore"), using(self._engine):
            if before is None:
                params = draw(generator=generator.spawn(1)[0])
                if trial is not None:
                    params = trial.safest(
                        params, lambda: draw(generator=generator.spawn(1)[0]), data
                    )
            else:
                _check_same(network, before[0])
                dtype = data.inputs[0].dtype
                params = {name: array.astype(dtype) for name, array in before[1].items()}
            done = run_training(self, network, params, data, validation, generator)
            if trial is not None:
                trial.settle(done, params)
        if not np.isfinite(done.criterion[done.best_epoch]):
            raise ValueError(
                "The loss overflows from the start on. Scale X and y, or use a bounded activation "
                'such as "tanh".'
            )
        self.network_, self.n_outputs_ = network, network.n_outputs
        self._keep(done)
        self.washout_ = np.array(skips)
        self._washout, self._steps = skips[0], sequences.lengths[-1]
        self._pairing = Pairing(self.n_outputs_, feedback=self._last)
        if not self._last:
            for rows, values in zip(sequences.arrays, targets, strict=True):
                self._pairing.add(rows, values)
            self._target_range = reach_of(targets)
            self._last_output = np.array(targets[-1][-1], dtype=np.float64)
        self._seen: set[Any] = set()
        self._remember_ids(sequences)
        self._follow(sequences, goes_on=False)
        self._continues = len(sequences) == 1
        last = Sequences(sequences.arrays[-1:], "table")
        self.state_ = self._run(last, starts[-1:])[1][0]
        self._online: OnlineLearner | None = None
        warn_of_trouble(self, done)

    def _adopt(self, network: Network, params: Params) -> None:
        """Stand as after a fit that had these weights for a result and saw no data."""
        self.network_, self.n_outputs_ = network, network.n_outputs
        self.n_features_in_ = network.n_features
        dtype = params["coef"].dtype
        self.params_ = {name: np.array(params[name], dtype=dtype) for name in network.shapes()}
        self.loss_curve_: list[float] = []
        self.n_iter_ = self.best_epoch_ = 0
        self._last, self._sequence_column = self.target == "last", self.sequence_column
        self._control = read_control(self.gradient_control)
        self._pairing = Pairing(network.n_outputs, feedback=self._last)
        self._target_range = np.full((2, network.n_outputs), np.nan)
        self._last_output = np.zeros(network.n_outputs)
        self._seen = set()
        self._last_id = None
        self._washout = self._steps = 0
        self._continues = False
        self.state_ = np.zeros(network.cell.state_size, dtype)
        self._online = None

    def _keep(self, done: Training) -> None:
        self.params_ = done.params
        self.loss_curve_ = list(done.losses)
        self.best_loss_ = done.criterion[done.best_epoch]
        self.best_epoch_, self.n_iter_ = done.best_epoch, done.n_epochs
        if done.validation_losses:
            self.validation_loss_curve_ = list(done.validation_losses)
        elif hasattr(self, "validation_loss_curve_"):
            del self.validation_loss_curve_

    # ------------------------------------------------------------------ learning online

    def _partial_fit(
        self,
        sequences: Sequences,
        targets: list[Array],
        X: Any,
        y: Any,
        *,
        first: bool,
        new_sequence: bool,
    ) -> None:
        if self.target == "last":
            raise ValueError(
                "partial_fit learns step by step, from a target at every step; target='last' "
                "needs fit."
            )
        if self.solver in WHOLE:
            raise ValueError(
                f"partial_fit goes through the data once; solver={self.solver!r} needs all of it. "
                "Use solver='adam', or fit."
            )
        if first:
            network = self._begin(sequences, targets)
            generator = as_generator(self.random_state)
            washout = self._first_washout(sequences.lengths[0])
            data = self._first_data(network, sequences, targets, washout)
            params = starting_weights(self, network, X, y, data, generator=generator.spawn(1)[0])
            self.network_, self.n_outputs_ = network, network.n_outputs
            self.params_, self.loss_curve_, self.n_iter_ = params, [], 0
            self._pairing, self._seen = Pairing(self.n_outputs_, feedback=False), set()
            self._online, self._washout, self._steps = None, washout, 0
            self._target_range = reach_of([])
            self.washout_ = np.array([washout])
        n_outputs = targets[0].shape[1]
        if n_outputs != self.n_outputs_:
            raise ValueError(f"y has {n_outputs} outputs; earlier calls had {self.n_outputs_}.")
        check_targets(np.vstack(targets), self.network_.output, self.network_.loss)
        check_squares(sequences.arrays, targets)
        if self._online is None:
            self._online = OnlineLearner(
                self.network_,
                self.params_,
                method=self.online,
                solver=self.solver,
                learning_rate=self.learning_rate_init,
                truncation=steps_of_update(self) or TRUNCATION,
                window=self.online_window,
                clip_norm=self.clip_norm,
                l1=self.l1,
                l2=self.alpha,
                control=self._control,
            )
        goes_on = self._steps > 0 and self._goes_on(sequences, new_sequence)
        if sequences.ids is not None and not first:
            self._check_ids(sequences.ids[1:] if goes_on or new_sequence else sequences.ids)
        starts = self._states_before(self.network_, self.initial_state, sequences, None)
        self._follow(sequences, goes_on=goes_on)
        previous = self._last_output if goes_on else None
        steps = self._steps
        for i, (rows, values) in enumerate(zip(sequences.arrays, targets, strict=True)):
            if i or not goes_on:
                steps = 0
                self._online.restart(starts[i])
            elif not self._online.running:
                self._online.restart(self.state_)
            skip = min(max(self._washout - steps, 0), len(rows))
            loss = self._online.learn(rows, values.astype(self._dtype), skip)
            if np.isfinite(loss):
                self.loss_curve_.append(loss)
            steps += len(rows)
            self._pairing.add(rows, values)
        if previous is not None:
            self._pairing.join(previous, sequences.arrays[0][0])
        self.params_ = self._online.params
        self.state_ = self._online.state.copy()
        self._steps = steps
        self._target_range = reach_of(targets, self._target_range)
        self._last_output = np.array(targets[-1][-1], dtype=np.float64)
        self.n_iter_ += 1
        self._remember_ids(sequences)
        self._continues = True

    def _first_washout(self, n_samples: int) -> int:
        """Return the washout that the first chunk decides for all that follow."""
        if isinstance(self.washout, str):
            return resolve_washout(self.washout, [n_samples])[0]
        return check_count("washout", self.washout, minimum=0)

    def _first_data(
        self, network: Network, sequences: Sequences, targets: list[Array], washout: int
    ) -> Data:
        """Return what learning online starts from."""
        rows = [(np.arange(n) >= washout).astype(np.float64) for n in sequences.lengths]
        if not self._starts_at_random(network):
            require_targets(rows)
        starts = self._states_before(network, self.initial_state, sequences, None)
        return Data(list(sequences.arrays), targets, rows if washout else None, np.stack(starts))

    # ------------------------------------------------------------------ using the fitted network

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "params_")

    @property
    def reservoir_(self) -> Reservoir:
        """The recurrent layer with its weights as they are: what `reservoir.stability` takes."""
        self._check_fitted()
        cell = self.network_.cell
        if not isinstance(cell, SimpleCell):
            raise AttributeError(
                f"{type(cell).__name__} is no reservoir: cells 'rnn' and 'leaky' are."
            )
        leak = cell.leaks(self._dtype)
        return Reservoir(
            self.params_["W"],
            self.params_["W_in"],
            self.params_["bias"],
            leak_rate=1.0 if leak is None else leak,
            activation=cell.activation,
        )

    def _states_before(
        self,
        network: Network,
        spec: Any,
        sequences: Sequences,
        last: Array | None,
        params: Params | None = None,
    ) -> list[Array]:
        return initial_states(
            spec,
            sequences,
            n_units=network.cell.state_size,
            n_fed_back=0,
            dtype=sequences.arrays[0].dtype,
            last=last,
            steady=partial(steady_state_of, network.cell, params),
            ended=self._ended,
        )

    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        return self._states_before(
            self.network_,
            self.initial_state if spec is None else spec,
            sequences,
            self.state_ if self._continues else None,
            self.params_,
        )

    def _run(self, sequences: Sequences, starts: list[Array]) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence."""
        data = Data(sequences.arrays, sequences.arrays)
        outputs: list[Array] = [np.empty(0)] * len(sequences)
        ends: list[Array] = [np.empty(0)] * len(sequences)
        for index in data.by_length(BATCH_SIZE):
            batch, _ = data.batch(index)
            state = np.stack([starts[i] for i in index])
            parts = []
            for chunk in batch.chunks(_BLOCK_STEPS):
                with np.errstate(over="ignore", invalid="ignore"), using(kept(self._engine)):
                    rows, state = predict(
                        self.network_, self.params_, chunk.inputs, state, chunk.lengths
                    )
                parts.append(rows)
            played = np.concatenate(parts)
            for k, i in enumerate(index):
                outputs[i] = np.ascontiguousarray(played[: len(sequences.arrays[i]), k])
                ends[i] = state[k].copy()
        _refuse_overflow("output", outputs)
        return outputs, ends

    def _outputs(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        return self._run(sequences, self._start_states(spec, sequences))

    def _restore(self, outputs: list[Array], sequences: Sequences) -> Any:
        """Return outputs in the container of X; for targets at the last step, one row each."""
        if self._last:
            return np.stack([rows[-1] for rows in outputs])
        return sequences.restore(outputs)

    def states(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return what the readout sees of the recurrent layer.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : str or array, optional
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_units), or the container that X came in
        """
        self._check_fitted()
        sequences = self._read(X, reset=False)
        starts = self._start_states(initial_state, sequences)
        with np.errstate(over="ignore", invalid="ignore"):
            traces = [
                self.network_.cell.forward(self.params_, rows[:, None], start[None])
                for rows, start in zip(sequences.arrays, starts, strict=True)
            ]
        states = [np.ascontiguousarray(trace.states[1:, 0]) for trace in traces]
        _refuse_overflow("state", states)
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
        if isinstance(self.network_.cell, SimpleCell):
            return run_closed_loop(
                self.reservoir_,
                readout,
                n_steps,
                include_input=self.network_.include_input,
                return_steps=True,
                **options,
            )
        return run_gated_loop(self.network_, self.params_, readout, n_steps, **options)


def _refuse_overflow(name: str, parts: list[Array]) -> None:
    for i, rows in enumerate(parts):
        if not np.isfinite(rows).all():
            row = int(np.argmin(np.isfinite(rows).all(axis=1)))
            where = f"row {row}" if len(parts) == 1 else f"row {row} of sequence {i}"
            raise ValueError(
                f"The {name} of {where} overflows {rows.dtype}: the input there is far outside "
                "what the network was trained on. Check that row, or scale the data."
            )


def _check_same(network: Network, before: Network) -> None:
    for name in ("cell", "n_features", "n_outputs", "include_input"):
        ours, theirs = getattr(network, name), getattr(before, name)
        if ours != theirs:
            raise ValueError(
                f"warm_start=True goes on with the network of the last fit, which had "
                f"{name}={theirs!r}; now it is {ours!r}. Use warm_start=False."
            )
