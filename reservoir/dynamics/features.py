"""A reservoir as a source of features: its states, or functions of them, and the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.activations import get_activation
from reservoir.dynamics import _compiled
from reservoir.dynamics._many import iter_many, run_many
from reservoir.dynamics.augment import (
    AUGMENTS,
    augmented_differences,
    augmented_width,
    check_augment,
    write_augmented,
)
from reservoir.dynamics.closed_loop import LoopInputs, LoopRun, run_loop
from reservoir.dynamics.engines import code_of, demand, engine_for
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run
from reservoir.dynamics.open_loop import block_rows, iter_states, run
from reservoir.dynamics.reference import leaks_of, recurrent_matrix, step_many
from reservoir.dynamics.reservoir import Reservoir
from reservoir.dynamics.saturation import Record, Steps, new_record

_TRIED = 10  # rows of input on which a function passed as `augment` is tried out


@saved
@dataclass(frozen=True, eq=False)
class DrivenReservoir(FeatureSource):
    """A reservoir as a source of features: its states, optionally followed by the inputs.

    `augment`, a name in `AUGMENTS` or a function of the states, computes features that replace the
    states; for a function, `n_augmented` must be the number of columns that it returns.
    """

    reservoir: Reservoir
    include_input: bool = False
    augment: Any = None
    n_augmented: int | None = None

    hides_input_by = "include_input=False"

    def drawn_by(self, function: Callable[..., Any], *arguments: Any) -> DrivenReservoir:
        """Return this source, which pickles as the call that draws it again instead of weights."""
        vars(self)["_drawn_by"] = function, arguments
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return vars(self).get("_drawn_by") or super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; skops, which reads no calls, keeps the weights."""
        return {name: value for name, value in vars(self).items() if name != "_drawn_by"}

    @classmethod
    def seen_through(
        cls, augment: Any, reservoir: Reservoir, rows: Array, *, include_input: bool
    ) -> DrivenReservoir:
        """Return a source with the given `augment`; a function is tried on a few states first.

        These states, of the first of the input `rows`, tell how many columns a function returns.
        """
        check_augment(augment)
        if not callable(augment):
            return cls(reservoir, include_input, augment)
        rows = rows[:_TRIED]
        received = np.zeros((len(rows), reservoir.n_outputs)) if reservoir.n_outputs else None
        states = run(reservoir, rows, feedback=received, engine="numpy")
        return cls(reservoir, include_input, augment, augmented_width(augment, states))

    @property
    def fitted(self) -> dict[str, Any]:
        """The reservoir, as the fitted attribute `reservoir_`."""
        return {"reservoir_": self.reservoir}

    @property
    def n_features(self) -> int:
        """Number of columns of the input."""
        return self.reservoir.n_features

    @property
    def width(self) -> int:
        """Number of columns of the features."""
        return self.n_seen + (self.n_features if self.include_input else 0)

    @property
    def n_seen(self) -> int:
        """Number of feature columns computed from states; the inputs come after them."""
        if isinstance(self.augment, str):
            return AUGMENTS[self.augment].width(self.reservoir.n_units)
        return self.reservoir.n_units if self.n_augmented is None else self.n_augmented

    @property
    def state_size(self) -> int:
        """Number of units."""
        return self.reservoir.n_units

    @property
    def n_fed_back(self) -> int:
        """Number of outputs that are fed back through feedback weights."""
        return self.reservoir.n_outputs

    @property
    def dtype(self) -> Any:
        """Data type of the states and of the features."""
        return self.reservoir.dtype

    def iter_features(
        self, rows: Array, state: Array, run: Run = PLAIN_RUN, room: int = 0
    ) -> Iterator[Block]:
        """Run over one sequence block by block.

        `room` is the number of further columns of the features, which the caller fills.
        """
        n_units, n_seen, width = self.reservoir.n_units, self.n_seen, self.width
        plain = self.augment is None
        n_rows = block_rows(n_units if plain else max(n_units, width), len(rows))
        # without `augment`, states are written directly into the features; otherwise they are
        # written into a second buffer, from which the features are computed
        buffer = np.empty((n_rows, width + room), self.dtype)
        before = state  # the record of activity needs the state before each block
        for start, states in iter_states(
            self.reservoir,
            rows,
            initial_state=state,
            feedback=run.teacher,
            dt=run.dt,
            noise=run.noise,
            generator=run.generator,
            buffer=buffer if plain else np.empty((n_rows, n_units), self.dtype),
            engine=run.engine,
        ):
            after = states[-1].copy()
            if run.activity is not None:
                self._watch(run.activity, run, rows, start, states, before)
                before = after
            features = buffer[: len(states)]
            if not plain:
                write_augmented(self.augment, states, features[:, :n_seen])
            features[:, n_seen:width] = rows[start : start + len(states), : width - n_seen]
            yield start, features, after

    def iter_many_features(
        self,
        series: Sequence[Array],
        states: Sequence[Array],
        runs: Sequence[Run],
        room: int = 0,
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences side by side, so that W is read only once per step."""
        before = list(states)
        for index, start, block in iter_many(
            self.reservoir,
            series,
            initial_states=np.stack(states),
            **_side_by_side(runs),
        ):
            after, run = block[-1].copy(), runs[index]
            if run.activity is not None:
                self._watch(run.activity, run, series[index], start, block, before[index])
                before[index] = after
            inputs = series[index][start : start + len(block)]
            yield index, start, self.seen(block, inputs, room=room), after

    def seen(
        self, states: Array, inputs: Array | None = None, *, check: bool = True, room: int = 0
    ) -> Array:
        """Return the features of rows of states, without inputs if `inputs` is None.

        The result has new memory unless the features are the states; `room` as in `iter_features`.
        """
        n_seen, n_inputs = self.n_seen, 0 if inputs is None else self.width - self.n_seen
        if self.augment is None and not n_inputs + room:
            return states
        features = np.empty((len(states), n_seen + n_inputs + room), self.dtype)
        if self.augment is None:
            features[:, :n_seen] = states
        else:
            write_augmented(self.augment, states, features[:, :n_seen], check=check)
        if n_inputs:
            features[:, n_seen : n_seen + n_inputs] = inputs
        return features

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None, room: int = 0
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side, with one product with W for all of them."""
        with np.errstate(over="ignore", invalid="ignore"):
            after = step_many(self.reservoir, states, inputs, teachers)
        return self.seen(after, inputs, check=False, room=room), after

    def tangent(self, states: Array, inputs: Array, room: int = 0) -> tuple[Array, Array]:
        """Take one step with differences; `room` is the number of further columns of features."""
        reservoir, activation = self.reservoir, get_activation(self.reservoir.activation)
        leak = np.asarray(reservoir.leak_rate)
        # one column each, the first for the run
        before = np.array(states.T, order="C")
        z = recurrent_matrix(reservoir) @ before
        inputs, fed_back = inputs[:, : self.n_features], inputs[:, self.n_features :]
        z += reservoir.W_in @ inputs.T
        if reservoir.W_fb is not None:
            z += reservoir.W_fb @ fed_back.T
        first = z[:, 0] + reservoir.bias
        z *= (leak * activation.derivative(first))[:, None]
        z[:, 0] = leak * activation.function(first)
        before *= (1 - leak)[..., None]
        z += before
        after = z.T
        seen = after if self.augment is None else augmented_differences(self.augment, after)
        n_seen, width = seen.shape[1], seen.shape[1] + self.n_features * self.include_input
        if width + room == n_seen:
            return seen, after
        features = np.empty((len(states), width + room))
        features[:, :n_seen] = seen
        if self.include_input:
            features[:, n_seen:width] = inputs
        return features, after

    def astype(self, dtype: Any) -> DrivenReservoir:
        """Return the source over the reservoir in another dtype."""
        return replace(self, reservoir=self.reservoir.astype(dtype))

    def _last_two(self, rows: Array, state: Array, teacher: Array | None) -> tuple[Array, Array]:
        blocks = iter_states(self.reservoir, rows, initial_state=state, feedback=teacher)
        states = np.concatenate([block.copy() for _, block in blocks])
        return states[-2], states[-1]

    def run_loop(
        self, readout: Any, loop: LoopRun, inputs: LoopInputs | None = None
    ) -> tuple[Array, Array, int]:
        """Run in closed loop, with feedback through the inputs or through feedback weights."""
        return run_loop(
            self.reservoir,
            readout,
            loop,
            include_input=self.include_input,
            augment=self.augment,
            inputs=inputs,
        )

    def run_lanes(
        self,
        coef: Array,
        intercept: Array,
        *,
        states: Array,
        inputs: Array,
        clip: tuple[Array, Array],
        engine: str,
    ) -> Array:
        """Run closed loops side by side, with ``engine="numba"`` by a kernel."""
        plain = self.augment is None and self.include_input and self.reservoir.W_fb is None
        if engine != "numba" or not plain or code_of(self.reservoir) is None or not demand():
            return super().run_lanes(
                coef, intercept, states=states, inputs=inputs, clip=clip, engine=engine
            )
        n_units = self.reservoir.n_units
        parts = [coef[..., :n_units], intercept[..., None], coef[..., n_units:]]
        readouts = np.concatenate(parts, axis=-1)
        return _compiled.loop_lanes(self.reservoir, readouts, states, inputs, clip)

    def states(
        self, series: Sequence[Array], starts: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of the units, an array of shape (n_samples, n_units) per sequence."""
        first = np.stack(starts)
        return run_many(self.reservoir, series, initial_states=first, **_side_by_side(runs))

    def input_column(self, column: int) -> int | None:
        """Return the input column that a feature column copies; None for a state."""
        return column - self.n_seen if column >= self.n_seen else None

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for a unit, or a feature of it, whose squares overflow."""
        remedy = 'Scale X (StandardScaler), or use a bounded activation such as "tanh".'
        if not get_activation(self.reservoir.activation).bounded:
            remedy = f"Lower spectral_radius if they grow without input. {remedy}"
        if callable(self.augment):
            what = f"the features returned by augment overflow, first in column {column}"
        else:
            what = f"the states overflow, first in unit {column % self.state_size}"
        return f"The squares of {what}", remedy

    def engine_for(self, n_steps: int) -> str:
        """Return the engine for a model fitted on `n_steps` rows, as `engines.engine_for` does."""
        return engine_for(self.reservoir, n_steps)

    def activity(self) -> Record | None:
        """Return an empty record of the units' activity; None if the activation has no record."""
        return new_record(self.reservoir)

    def _watch(
        self, record: Record, run: Run, rows: Array, start: int, states: Array, before: Array
    ) -> None:
        """Add a block of states, from row `start` of a run on, and the one before, to a record."""
        block, leak = slice(start, start + len(states)), self.reservoir.leak_rate
        received = None if run.teacher is None else run.teacher[block]
        if run.dt is not None:
            leak = leaks_of(leak, run.dt[block], self.dtype)[0]
        steps = Steps(states, before, rows[block], received, leak, run.noise > 0)
        record.add(self.reservoir, run.skip - start, steps)


def _side_by_side(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the options of runs over several sequences, for `run_many`."""
    teachers, steps = [run.teacher for run in runs], [run.dt for run in runs]
    return {
        "feedback": None if teachers[0] is None else teachers,
        "dt": None if steps[0] is None else steps,
        "engine": runs[0].engine,
    }
