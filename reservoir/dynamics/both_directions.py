"""A reservoir that runs over each sequence forwards and backwards, as a source of features."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics._extremes import StatesError
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, Run, SourceWrapper
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.open_loop import iter_states

_PART_SIZE = 2**22  # numbers in a part of the states of a run backwards: 32 MiB of doubles
_GROUP = 32  # sequences side by side, whose states backwards are in memory together


@saved
@dataclass(frozen=True, eq=False)
class BothDirections(SourceWrapper):
    """A reservoir that runs over each sequence twice: forwards, and backwards from the last row.

    The features of a row are those of the run forwards, then the states of the run backwards at
    this row, or their `augment`; `iter_features` must receive whole sequences. A state is that
    before the first row, then that after the last row, from which the run backwards starts; after a
    block, those of both runs at its last row. States backwards of a long sequence are computed in
    parts, from a first run that keeps the states at the ends of parts: so memory does not grow with
    length.
    """

    source: DrivenReservoir

    causal = False
    hides_input_by = DrivenReservoir.hides_input_by

    @property
    def description(self) -> dict[str, str]:
        """Description of the second run for notebooks."""
        return {"Directions": "the reservoir runs over each sequence forwards and backwards"}

    @property
    def width(self) -> int:
        """Number of columns of the features."""
        return self.source.width + self.source.n_seen

    @property
    def state_size(self) -> int:
        """Number of entries of a state: two per unit."""
        return 2 * self.source.state_size

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one whole sequence in both directions, block by block."""
        ahead, last = self._split(state)
        parts = self._parts(rows, last, run)
        back, first = np.empty((0, len(last)), self.dtype), 0  # states backwards from row `first`
        for start, features, end in self.source.iter_features(rows, ahead, run):
            stop = start + len(features)
            while first + len(back) < stop:
                back, first = np.concatenate([back[start - first :], next(parts)]), start
            here = back[start - first : stop - first]
            yield start, *self._joined(features, end, here)

    def _parts(self, rows: Array, last: Array, run: Run) -> Iterator[Array]:
        """Yield the states of the run backwards in parts, in the order of the rows."""
        n_rows = max(1, _PART_SIZE // len(last))
        begins = range(0, len(rows), n_rows)
        options = {"noise": run.noise, "generator": run.generator, "engine": run.engine}
        starts = [last]  # the state that the run over each part starts from, the last part first
        for begin in reversed(begins[1:]):
            states = self._backwards(rows, begin, begin + n_rows, starts[-1], options)
            starts.append(states[0].copy())
        for begin in begins:
            yield self._backwards(rows, begin, begin + n_rows, starts.pop(), options)

    def _backwards(
        self, rows: Array, begin: int, end: int, state: Array, options: dict[str, Any]
    ) -> Array:
        """Return the states at rows of a run backwards over them, in the order of the rows."""
        part = np.ascontiguousarray(rows[begin:end][::-1])
        states = np.empty((len(part), len(state)), self.dtype)
        with _naming_direction(len(rows) - begin - len(part)):
            for _ in iter_states(self.reservoir, part, initial_state=state, out=states, **options):
                pass
        return states[::-1]

    def iter_many_features(
        self, series: Sequence[Array], states: Sequence[Array], runs: Sequence[Run]
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences: groups of short ones side by side, long ones one by one."""
        # the states backwards of a group are in memory together
        most = _PART_SIZE // (8 * self.source.state_size)
        order = sorted(range(len(series)), key=lambda i: -len(series[i]))
        short = [i for i in order if len(series[i]) <= most]
        for i in order[: len(order) - len(short)]:
            for block in self.iter_features(series[i], states[i], runs[i]):
                yield i, *block
        for begin in range(0, len(short), _GROUP):
            group = short[begin : begin + _GROUP]
            some, ours = [series[i] for i in group], [runs[i] for i in group]
            ahead, last = zip(*(self._split(states[i]) for i in group), strict=True)
            back = self._states_backwards(some, last, ours)
            for k, start, features, end in self.source.iter_many_features(some, ahead, ours):
                here = back[k][start : start + len(features)]
                yield group[k], start, *self._joined(features, end, here)

    def _states_backwards(
        self, series: Sequence[Array], last: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of runs backwards over sequences, in the order of their rows."""
        turned = [np.ascontiguousarray(rows[::-1]) for rows in series]
        with _naming_direction():
            return [rows[::-1] for rows in self.source.states(turned, last, runs)]

    def _split(self, state: Array) -> tuple[Array, Array]:
        """Return the states before the first row and after the last row."""
        return state[: self.source.state_size], state[self.source.state_size :]

    def _joined(self, features: Array, end: Array, back: Array) -> tuple[Array, Array]:
        """Return the features of both runs in a block, and the states of both at its last row."""
        both = np.hstack([features, self.source.seen(back)])
        return both, np.concatenate([end, back[-1]])

    def states(
        self, series: Sequence[Array], starts: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of the units, (n_samples, 2 * n_units): forwards, then backwards."""
        ahead, last = zip(*(self._split(start) for start in starts), strict=True)
        forwards = self.source.states(series, ahead, runs)
        back = self._states_backwards(series, last, runs)
        return [np.hstack(pair) for pair in zip(forwards, back, strict=True)]

    def input_column(self, column: int) -> int | None:
        """Return the input column that a feature column copies; None for a state."""
        return self.source.input_column(column) if column < self.source.width else None

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for a unit, or a feature of it, whose squares overflow."""
        return self.source.overflow_of(column % self.source.width)


@contextlib.contextmanager
def _naming_direction(n_before: int = 0) -> Iterator[None]:
    """Name the run backwards in errors, whose steps are counted from the last row."""
    try:
        yield
    except StatesError as error:
        name = "the run backwards" if error.series is None else f"{error.series}, backwards"
        raise StatesError(n_before + error.step, error.reason, name) from None
