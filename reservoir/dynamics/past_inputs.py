"""Sources with past rows of the input in their states, for the readout or for the reservoir."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.closed_loop import LoopInputs, LoopRun
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run, SourceWrapper
from reservoir.dynamics.features import DrivenReservoir

sys.modules["reservoir.dynamics.lagged"] = sys.modules[__name__]  # its name in earlier pickles


@dataclass(frozen=True, eq=False)
class HoldsPast(SourceWrapper):
    """A source whose state contains past rows of its input, then the state of an inner source.

    The `n_lags` rows in use are the present row and the rows `skip`, 2 `skip`, ... steps before it.
    """

    source: Any
    n_lags: int
    skip: int = 1

    @property
    def n_past(self) -> int:
        """Number of rows before the present one that a state contains."""
        return (self.n_lags - 1) * self.skip

    @property
    def past_in_words(self) -> str:
        """Text for messages: the number of past rows in use and the parameters that set it."""
        return f"n_lags={self.n_lags} and skip={self.skip} use {self.n_past} rows"

    @property
    def n_held(self) -> int:
        """Number of entries of a state that are past rows."""
        return self.n_past * self.n_features

    @property
    def state_size(self) -> int:
        """Length of a state: the past rows, oldest first, and the state of the inner source."""
        return self.n_held + self.source.state_size

    def initial_state_of(self, row: Array) -> Array:
        """Return a state with all past rows equal to `row`, and zeros for the inner source."""
        return self.after_equal_rows(row, np.zeros(self.source.state_size))

    def after_equal_rows(self, row: Array, state: Array) -> Array:
        """Return a state with all past rows equal to `row`, and `state` for the inner source."""
        return np.concatenate([np.tile(row, self.n_past), state])

    def _split(self, state: Array) -> tuple[Array, Array]:
        """Return the past rows of a state, and the state of the inner source."""
        n_past, n_columns = self.n_past, self.n_features
        held = n_past * n_columns
        return state[:held].reshape(n_past, n_columns), state[held:]

    def _ages(self) -> range:
        """Return the indices of the rows in use, present row first, in past and present rows."""
        return range(self.n_past, -1, -self.skip)


@saved
@dataclass(frozen=True, eq=False)
class PastInputs(HoldsPast):
    """A reservoir that receives the present row, for a readout that also receives older rows.

    The states then need not represent the linear effects of the last few inputs. The features are
    those of `source`, which must end with the present input, followed by the older rows, latest
    first: of `n_used` rows in all, the present one included, by default `n_lags`. `n_used` does not
    change the state.
    """

    source: DrivenReservoir
    n_used: int | None = None

    hides_input_by = "include_input=False, n_lags=1"

    def __post_init__(self) -> None:
        """Check `n_used`."""
        if not 1 <= self.n_rows <= self.n_lags:
            raise ValueError(f"n_used={self.n_used} must be from 1 to n_lags={self.n_lags}.")

    def using(self, n_used: int) -> PastInputs:
        """Return the source whose features contain `n_used` rows; its states are the same."""
        return replace(self, n_used=n_used)

    @property
    def n_rows(self) -> int:
        """Number of rows, the present row included, that the features contain."""
        return self.n_lags if self.n_used is None else self.n_used

    @property
    def description(self) -> dict[str, str]:
        """Description of the older rows for notebooks."""
        words = f"the readout receives {self.n_rows} rows, {self.skip} apart"
        return {"Inputs": words} if self.n_rows > 1 else {}

    @property
    def width(self) -> int:
        """Number of columns of the features."""
        return self.source.width + self._room

    @property
    def _room(self) -> int:
        """Number of columns of the features that contain older rows."""
        return (self.n_rows - 1) * self.n_features

    def _older(self) -> range:
        """Return the indices of the rows in use, as `_ages`, without the present row."""
        return self._ages()[1 : self.n_rows]

    def trimmed(self, states: Array) -> tuple[FeatureSource, Array]:
        """Return the source and its states without past rows that its features do not contain."""
        unused = (self.n_lags - self.n_rows) * self.skip * self.n_features
        kept = self.source if self.n_rows == 1 else PastInputs(self.source, self.n_rows, self.skip)
        return kept, states[:, unused:]

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, block by block."""
        past, units = self._split(state)
        for start, features, after in self.source.iter_features(rows, units, run, self._room):
            past, end = self._write(features, past, rows[start : start + len(features)], after)
            yield start, features, end

    def iter_many_features(
        self, series: Sequence[Array], states: Sequence[Array], runs: Sequence[Run]
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences side by side."""
        past, units = map(list, zip(*map(self._split, states), strict=True))
        blocks = self.source.iter_many_features(series, units, runs, self._room)
        for index, start, features, after in blocks:
            rows = series[index][start : start + len(features)]
            past[index], end = self._write(features, past[index], rows, after)
            yield index, start, features, end

    def _write(
        self, features: Array, past: Array, rows: Array, units: Array
    ) -> tuple[Array, Array]:
        """Write older rows into the features of a block; return the past rows and state after it.

        `past` contains the past rows before the block, `rows` the rows of the block, and `units`
        the state of the reservoir after it.
        """
        known, older, (n_rows, n_columns) = np.concatenate([past, rows]), self._older(), rows.shape
        at = features.shape[1] - len(older) * n_columns
        for age in older:
            features[:, at : at + n_columns] = known[age : age + n_rows]
            at += n_columns
        past = known[n_rows:]
        return past, np.concatenate([past.ravel(), units])

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        inner = states[:, self.n_held :]
        return self._stepped(
            states, inputs, *self.source.advance(inner, inputs, teachers, self._room)
        )

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step with differences, to which past rows are added as to states."""
        inner = states[:, self.n_held :]
        features, units = self.source.tangent(inner, inputs, self._room)
        return self._stepped(states, inputs[:, : self.n_features], features, units)

    def _stepped(
        self, states: Array, inputs: Array, features: Array, units: Array
    ) -> tuple[Array, Array]:
        """Return features and states after a step of the reservoir, with past rows."""
        n_runs, held = len(states), self.n_held
        known = np.hstack([states[:, :held], inputs])
        older = known.reshape(n_runs, self.n_past + 1, self.n_features)[:, self._older()]
        features[:, self.source.width :] = older.reshape(n_runs, self._room)
        return features, np.hstack([known[:, self.n_features :], units])

    def steady_state(self, row: Array, *, quiet: bool = False) -> Array:
        """Return the fixed point for a constant input."""
        return self.after_equal_rows(row, self.source.steady_state(row, quiet=quiet))

    def run_loop(self, readout: Any, loop: LoopRun) -> tuple[Array, Array, int]:
        """Run in closed loop: the reservoir's loop, which records its inputs."""
        rows = np.empty((self.n_past + loop.n_steps, self.n_features), self.dtype)
        rows[: self.n_past], units = self._split(loop.initial_state)
        inputs = LoopInputs(rows, self.n_past, np.array(self._older(), np.intp))
        inner = replace(loop, initial_state=units)
        outputs, units, n_valid = self.source.run_loop(readout, inner, inputs)
        past = rows[n_valid : n_valid + self.n_past]
        return outputs, np.concatenate([past.ravel(), units]), n_valid

    def states(
        self, series: Sequence[Array], starts: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of the units, an array of shape (n_samples, n_units) per sequence."""
        return self.source.states(series, [start[self.n_held :] for start in starts], runs)

    def input_column(self, column: int) -> int | None:
        """Return the input column that a feature column copies from any row; None for a state."""
        n_seen = self.source.width
        if column < n_seen:
            return self.source.input_column(column)
        return (column - n_seen) % self.n_features


@saved
@dataclass(frozen=True, eq=False)
class LaggedSource(HoldsPast):
    """A source that passes past rows to an inner source, as inputs in addition to the present row.

    It is meant for systems of which one row does not determine the state: delayed values of the few
    observed variables replace the variables that are not observed (Takens 1981). The inner source
    receives the present row, then the rows `skip`, 2 `skip`, ... steps before it.
    """

    @property
    def n_features(self) -> int:
        """Number of columns of the input, not counting past rows."""
        return self.source.n_features // self.n_lags

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, block by block."""
        past, inner = self._split(state)
        every = np.concatenate([past, rows])
        lagged = np.hstack([every[k : k + len(rows)] for k in self._ages()])
        for start, features, end in self.source.iter_features(lagged, inner, run):
            past = every[start + len(features) :][: self.n_past]
            yield start, features, np.concatenate([past.ravel(), end])

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        return self._stepped(states, inputs, self.source.advance, teachers)

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step with differences, which are lagged as inputs are."""
        return self._stepped(states, inputs, self.source.tangent)

    def _stepped(
        self, states: Array, inputs: Array, step: Callable[..., Any], *teachers: Array | None
    ) -> tuple[Array, Array]:
        """Return features and states after a step of the inner source on lagged inputs."""
        n_runs, size = len(states), self.n_held
        every = np.hstack([states[:, :size], inputs]).reshape(n_runs, self.n_past + 1, -1)
        lagged = every[:, self._ages()].reshape(n_runs, -1)
        features, after = step(states[:, size:], lagged, *teachers)
        return features, np.hstack([every[:, 1:].reshape(n_runs, -1), after])
