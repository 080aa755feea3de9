"""A reservoir driven by rows at irregular times, as a source of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._tables import Clock
from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, Run, SourceWrapper
from reservoir.dynamics.features import DrivenReservoir


@saved
@dataclass(frozen=True, eq=False)
class TimedReservoir(SourceWrapper):
    """A reservoir whose step durations are computed from a column of times in the input.

    The times are in steps since the clock's origin (`Clock.set`). A state contains the units and
    the time of the previous row, so that the result does not depend on how rows are split into
    chunks. Times are float64 for any dtype of the reservoir: float32 would round seconds since 1970
    to a minute or two. `driven`, without feedback, receives the other columns.
    """

    driven: DrivenReservoir
    clock: Clock

    hides_input_by = DrivenReservoir.hides_input_by

    @property
    def source(self) -> DrivenReservoir:
        """The reservoir as a source of features of the columns other than the times."""
        return self.driven

    @property
    def n_features(self) -> int:
        """Number of columns of the input, including the column of times."""
        return self.driven.n_features + 1

    @property
    def state_size(self) -> int:
        """Number of entries of a state: one per unit, and the time of the previous row."""
        return self.driven.state_size + 1

    @property
    def state_dtype(self) -> Any:
        """Data type of the states: float64, because they contain a time."""
        return np.dtype(np.float64)

    def _read(self, rows: Array, state: Array, run: Run) -> tuple[Array, Array, Array, Run]:
        """Return inputs of rows, units before them, times of rows, and the run with durations."""
        times = rows[:, self.clock.place]
        dt = np.diff(times, prepend=state[-1:])
        if len(dt):
            self.clock.require_later(times[0], state[-1])
        units = state[:-1].astype(self.dtype, copy=False)
        return self._channels(rows), units, times, run._replace(engine="auto", dt=dt)

    def _channels(self, rows: Array) -> Array:
        return self.clock.channels(rows).astype(self.dtype, copy=False)

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, block by block."""
        inputs, units, times, timed = self._read(rows, state, run)
        for start, features, after in self.driven.iter_features(inputs, units, timed):
            yield start, features, np.append(after, times[start + len(features) - 1])

    def iter_many_features(
        self, series: Sequence[Array], states: Sequence[Array], runs: Sequence[Run]
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences side by side."""
        inputs, units, times, timed = zip(*map(self._read, series, states, runs), strict=True)
        blocks = self.driven.iter_many_features(inputs, units, timed)
        for index, start, features, after in blocks:
            time = times[index][start + len(features) - 1]
            yield index, start, features, np.append(after, time)

    def initial_state_of(self, row: Array) -> Array:
        """Return the zero state at a time one step before the first row."""
        return self._one_step_before(row, np.zeros(self.driven.state_size, self.dtype))

    def steady_state(self, row: Array, *, quiet: bool = False) -> Array:
        """Return the fixed point for a constant input, at a time one step before the first row."""
        inputs = self._channels(row[None])[0]
        return self._one_step_before(row, self.driven.steady_state(inputs, quiet=quiet))

    def _one_step_before(self, row: Array, state: Array) -> Array:
        return np.append(state, row[self.clock.place] - 1)

    def states(
        self, series: Sequence[Array], starts: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of the units, an array of shape (n_samples, n_units) per sequence."""
        inputs, units, _, timed = zip(*map(self._read, series, starts, runs), strict=True)
        return self.driven.states(inputs, units, timed)

    def check_can_loop(self) -> NoReturn:
        """Raise, because the rows of a closed loop have no times."""
        self.clock.check_can_loop()

    def input_column(self, column: int) -> int | None:
        """Return the input column that a feature column copies; None for a state."""
        found = self.driven.input_column(column)
        return None if found is None else found + (found >= self.clock.place)

    def engine_for(self, n_steps: int) -> str:
        """Return "numpy", because kernels use one leak rate for all steps."""
        return "numpy"
