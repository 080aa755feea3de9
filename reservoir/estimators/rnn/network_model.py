"""The model of a trained network: its weights, its position in the data, and runs.

Learning replaces a `NetworkModel` and never changes it, so that the old model is kept if a call
fails. A `NetworkPredictor` runs a model over rows and in closed loop.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._saving import saved
from reservoir._tables import Clock, Sequences
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.dynamics import Reservoir, run_closed_loop
from reservoir.dynamics.closed_loop import loop_limit
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.fed_back import as_hold
from reservoir.estimators.forecasting.predictor import Outputs, Predictor, Step
from reservoir.estimators.progress import Progress, StateShape
from reservoir.estimators.reading import timed_starts
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import Cell
from reservoir.training.controls import Control
from reservoir.training.loop_engines import kept, using
from reservoir.training.losses import apply_output
from reservoir.training.online import OnlineLearner
from reservoir.training.params import Params
from reservoir.training.trainer import Data

_BLOCK_STEPS = 2048  # steps run at a time, so that a long series needs little memory
BATCH_SIZE = 32
Recent = tuple[Array, Array, Array, int]  # rows, targets, the state before, washout left
_STEADY_STEPS = 10_000


@saved
class NetworkModel:
    """A network, its weights, and its position in the data.

    `state`, (state_size,), is the state after the last row. `losses` has the loss at the start and
    after each epoch, or of each chunk learned online; `n_iter` counts epochs, or calls of
    partial_fit. `online` and `online_fixed`, parameters of the estimator by name, are None before
    online learning begins; `recent` are the last rows of a fit for it. A large training run sets
    `engine` for later.
    """

    online_fixed: dict[str, Any] | None = None  # missing in files of earlier versions

    def __init__(
        self,
        network: Network,
        progress: Progress,
        dtype: str,
        *,
        control: Control | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.network, self.progress, self.dtype = network, progress, dtype
        self.control, self.clock = control, clock
        self.params: Params = {}
        self.state: Array | None = None
        self.losses: list[float] = []
        self.n_iter = 0
        self.online: OnlineLearner | None = None
        self.recent: Recent | None = None
        self.engine = "auto"

    @property
    def n_outputs(self) -> int:
        """Number of outputs per step."""
        return self.network.n_outputs

    @property
    def fitted_attributes(self) -> dict[str, Any]:
        """Fitted attributes, by name."""
        return {
            "network_": self.network,
            "n_outputs_": self.network.n_outputs,
            "params_": self.params,
            "loss_curve_": self.losses,
            "n_iter_": self.n_iter,
            "state_": self.state,
        }

    def copy(self) -> NetworkModel:
        """Return a model that learns independently of this one."""
        one = copy.copy(self)
        one.progress, one.losses = self.progress.draft(), list(self.losses)
        one.online = copy.deepcopy(self.online)
        return one

    def copy_for_session(self) -> NetworkModel:
        """Return a copy without the online learner, for a session, which has a separate learner."""
        one = copy.copy(self)
        one.progress, one.losses, one.online = self.progress.draft(), list(self.losses), None
        return one

    # ------------------------------------------------------------------ runs

    def initial_states(
        self, spec: Any, sequences: Sequences, last: Array | None = None, *, trained: bool = False
    ) -> list[Array]:
        """Return the state before each sequence.

        `last` is the state to which "last" refers, or None. "steady" is the steady state of the
        network if its weights are `trained`; during training it is zero.
        """
        cell, params = self.network.cell, self.params if trained else None
        fresh = None
        if self.clock is not None:
            spec = timed_starts(self.clock, spec, sequences, last, cell.n_units)
            fresh = partial(_steady_state_of, cell, None)
        shape = StateShape(cell.state_size, 0, sequences.arrays[0].dtype)
        steady = partial(_steady_state_of, cell, params)
        return self.progress.starts(spec, sequences, shape, last=last, steady=steady, fresh=fresh)

    def require_later(self, arrays: Sequence[Array], states: Sequence[Array]) -> None:
        """Check that rows are later than the states from which they continue."""
        if self.clock is not None:
            for rows, state in zip(arrays, states, strict=True):
                self.clock.require_later(rows[0, self.clock.place], state[-1])

    def run(self, sequences: Sequences, starts: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence."""
        self.require_later(sequences.arrays, starts)
        data = Data(sequences.arrays, sequences.arrays)
        outputs: list[Array] = [np.empty(0)] * len(sequences)
        ends: list[Array] = [np.empty(0)] * len(sequences)
        for index in data.by_length(BATCH_SIZE):
            batch, _ = data.batch(index)
            state = np.stack([starts[i] for i in index])
            parts = []
            for chunk in batch.chunks(_BLOCK_STEPS if self.network.cell.causal else None):
                with np.errstate(over="ignore", invalid="ignore"), using(kept(self.engine)):
                    rows, state = predict(
                        self.network, self.params, chunk.inputs, state, chunk.lengths
                    )
                parts.append(rows)
            padded = np.concatenate(parts)
            for k, i in enumerate(index):
                outputs[i] = np.ascontiguousarray(padded[: len(sequences.arrays[i]), k])
                ends[i] = state[k].copy()
        _check_finite("output", outputs, sequences.numbers)
        return outputs, ends

    def states(self, sequences: Sequences, starts: Sequence[Array]) -> list[Array]:
        """Return the states that the readout receives, for each sequence."""
        self.require_later(sequences.arrays, starts)
        with np.errstate(over="ignore", invalid="ignore"):
            traces = [
                self.network.cell.forward(self.params, rows[:, None], start[None])
                for rows, start in zip(sequences.arrays, starts, strict=True)
            ]
        states = [np.ascontiguousarray(trace.states[1:, 0]) for trace in traces]
        _check_finite("state", states)
        return states

    def reservoir(self) -> Reservoir:
        """Return the recurrent layer with its present weights; raise for other kinds of cells."""
        cell = self.network.cell.at_even_steps().as_simple()
        if cell is None:
            name = type(self.network.cell).__name__
            raise AttributeError(
                f"{name} is not a reservoir: only the cells 'rnn' and 'leaky' have a reservoir_."
            )
        return cell.reservoir(self.params)


class NetworkPredictor(Predictor):
    """Predictor that runs a trained network."""

    def __init__(self, estimator: Any) -> None:
        self.model: NetworkModel = estimator._shown_model()
        super().__init__(estimator)

    def starts(
        self, spec: Any, sequences: Sequences, *, as_in_training: bool = False
    ) -> list[Array]:
        """Return the state before each sequence; None means the estimator's `initial_state`."""
        spec = self.estimator.initial_state if spec is None else spec
        last = None if as_in_training else self.end
        if not self.model.network.cell.causal:
            check_start(self.estimator.cell, spec, last)
        return self.model.initial_states(spec, sequences, last, trained=True)

    def run_over(
        self,
        sequences: Sequences,
        starts: list[Array],
        outputs_of: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence."""
        return self.model.run(sequences, starts)

    def check_can_loop(self) -> None:
        """Check that the outputs of the network can be fed back as its next inputs."""
        self.estimator._check_loop()

    def readout(self) -> Any:
        """Return the readout of a loop: (coef, intercept), or a function of the features."""
        params, output = self.model.params, self.model.network.output
        coef, intercept = params["coef"], params["intercept"]
        if output == "identity":
            return coef, intercept
        return lambda features: apply_output(coef @ features + intercept, output)

    def tangent(self) -> Step:
        """Return the step of the network with differences, in double precision."""
        network, cell = self.model.network, self.model.network.cell
        if cell.as_simple() is not None:
            source = DrivenReservoir(self.model.reservoir(), network.include_input)
            return source.astype(np.float64).tangent
        params = {name: each.astype(np.float64) for name, each in self.model.params.items()}

        def step(states: Array, inputs: Array) -> tuple[Array, Array]:
            after = cell.state_tangent(params, states, inputs)
            seen = after[:, : cell.width]
            return np.hstack([seen, inputs]) if network.include_input else seen, after

        return step

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run in closed loop, as `run_closed_loop`; the caller warns of a loop that diverged."""
        network, params = self.model.network, self.model.params
        if network.cell.as_simple() is None:
            return _run_gated_loop(network, params, readout, n_steps, **options)
        return run_closed_loop(
            self.model.reservoir(),
            readout,
            n_steps,
            include_input=network.include_input,
            return_steps=True,
            **options,
        )


def check_start(cell: Any, spec: Any, last: Array | None) -> None:
    """Raise if a run does not start from zeros, for cells whose states depend on later rows.

    "last" means zeros if `last`, the state to continue from, is None.
    """
    if isinstance(spec, str) and (spec == "zeros" or (spec == "last" and last is None)):
        return
    given = repr(spec) if isinstance(spec, str) else "an array"
    what = f"initial_state={given} continues from a state that earlier rows have led to"
    raise_not_causal(cell, what, 'Set initial_state="zeros"')


def raise_not_causal(cell: Any, what: str, remedy: str) -> None:
    """Raise an error about a cell whose states depend on later rows."""
    raise ValueError(
        f"{what}, and cell={cell!r} has a part that reads rows from the end of a recording back "
        f"to its start. {remedy}."
    )


def _check_finite(name: str, parts: list[Array], numbers: Sequence[int] | None = None) -> None:
    """Check that outputs or states are finite; the error names the first row that is not."""
    for i, rows in enumerate(parts):
        if not np.isfinite(rows).all():
            row = int(np.argmin(np.isfinite(rows).all(axis=1)))
            number = i if numbers is None else numbers[i]
            where = f"row {row}" if len(parts) == 1 else f"row {row} of sequence {number}"
            raise ValueError(
                f"The {name} of {where} overflows {rows.dtype}: its input is far outside the "
                "range that the network was trained on. Check that row, or scale the data."
            )


def _run_gated_loop(
    network: Network,
    params: Params,
    readout: Any,
    n_steps: int,
    *,
    initial_state: Array,
    initial_output: Array,
    exog: Array | None = None,
    clip: Any = None,
) -> tuple[Array, Array, int]:
    """Run a network in closed loop; return outputs, final state and the number of valid steps."""
    dtype = params["coef"].dtype
    if not callable(readout):
        coef, intercept = (np.asarray(part, dtype=dtype) for part in readout)

        def predict(features: Array) -> Array:
            return coef @ features + intercept

    else:
        predict = readout
    # clip applies to the fed-back output, not to the returned one
    limit, width = loop_limit(dtype), network.cell.width
    output, state = np.asarray(initial_output, dtype=dtype), np.asarray(initial_state, dtype=dtype)
    outputs = np.empty((n_steps, output.size), dtype)
    hold = as_hold(clip, output.size, dtype)
    for k in range(n_steps):
        fed = hold(output)
        x = fed if exog is None else np.concatenate([fed, exog[k]]).astype(dtype)
        trace = network.cell.forward(params, x[None, None], state[None])
        features = trace.states[1, 0]
        if network.include_input:
            features = np.concatenate([features[:width], x])
        new = np.asarray(predict(features), dtype=dtype)
        if not (np.abs(new) < limit).all():
            outputs[k:] = outputs[k - 1] if k else output
            return outputs, state, k
        outputs[k] = output = new
        state = trace.end[0]
    return outputs, state.copy(), n_steps


def _steady_state_of(cell: Cell, params: Params | None, u: Array, *, quiet: bool = False) -> Array:
    """Return the fixed point that a cell reaches from zeros with the constant input u.

    If it reaches none, a warning is given and the result is zeros. If `params` is None, the result
    is zeros, too.
    """
    found = cell.before(u, np.zeros(cell.state_size, u.dtype))
    if params is None or not cell.state_size:
        return found
    # a hundred steps at a time, until one more step changes nothing
    dtype = params["coef"].dtype
    tolerance = 50 * np.finfo(dtype).eps
    even = cell.at_even_steps()
    constant = np.tile(cell.channels(u).astype(dtype, copy=False), (100, 1, 1))
    state = np.zeros((1, even.state_size), dtype)
    for _ in range(_STEADY_STEPS // len(constant)):
        with np.errstate(over="ignore", invalid="ignore"):
            state = even.forward(params, constant, state).end
            following = even.forward(params, constant[:1], state).end
        if not np.isfinite(following).all():
            break
        if np.abs(following - state).max() <= tolerance * max(1.0, np.abs(state).max()):
            found[: even.state_size] = state[0]
            return found
    if not quiet:
        warnings.warn(
            f'initial_state="steady": no fixed point was reached in {_STEADY_STEPS} steps with the '
            "first row as constant input. The run starts from zeros.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
    return found
