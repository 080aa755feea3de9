"""Sources of features that run others: one after the other, or side by side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run


@dataclass(frozen=True, eq=False)
class RowFunction(FeatureSource):
    """A function of each row alone, as a source without a state.

    ``function(rows)`` returns one row of features per row. `scale` is a float or (n_features,): the
    factor of each column if the function is an affine map of columns. `name` is for messages.
    """

    function: Callable[[Array], Array]
    n_features: int
    scale: Any = None
    name: str = "a function"

    state_size = 0
    dtype = np.dtype(np.float64)

    @property
    def width(self) -> int:
        """Number of columns that the function returns."""
        return int(self.function(np.zeros((1, self.n_features))).shape[1])

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Return the features of all rows as one block."""
        yield 0, self.function(rows), state

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        return self.function(inputs), states

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step with differences, if the function is affine."""
        if self.scale is None:
            raise ValueError(
                f"Exponents and cycles need the derivative of each step, and that of {self.name} "
                "is not known. Use StandardScaler, RobustScaler, MaxAbsScaler, or MinMaxScaler "
                "without clip."
            )
        rows = self.scale * inputs
        rows[0] = self.function(inputs[:1])[0]
        return rows, states


@dataclass(frozen=True, eq=False)
class SeveralSources(FeatureSource):
    """Base class of sources that run several; a state contains theirs, one after the other."""

    sources: tuple[FeatureSource, ...]

    @property
    def state_size(self) -> int:
        """Sum of the numbers of entries of the states."""
        return sum(source.state_size for source in self.sources)

    @property
    def state_dtype(self) -> Any:
        """Data type that contains all states."""
        return np.result_type(*(source.state_dtype for source in self.sources))

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """Whether all sources are causal."""
        return all(source.causal for source in self.sources)

    def check_can_loop(self) -> None:
        """Raise if one of the sources cannot run in closed loop."""
        for source in self.sources:
            source.check_can_loop()

    def astype(self, dtype: Any) -> SeveralSources:
        """Return the sources in another dtype."""
        return replace(self, sources=tuple(source.astype(dtype) for source in self.sources))

    def parts(self, states: Array) -> list[Array]:
        """Return the states of each source, in its data type, from states of all of them."""
        ends = np.cumsum([source.state_size for source in self.sources])
        parts = np.split(states, ends[:-1], axis=-1)
        pairs = zip(parts, self.sources, strict=True)
        return [part.astype(source.state_dtype, copy=False) for part, source in pairs]

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, row by row."""
        states = state[None]
        for k in range(len(rows)):
            features, states = self.advance(states, rows[k : k + 1])
            yield k, features, states[0]

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        return self._stepped(states, inputs, "advance")

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step with differences, which pass from source to source as rows do."""
        return self._stepped(states, inputs, "tangent")

    @abstractmethod
    def _stepped(self, states: Array, inputs: Array, step: str) -> tuple[Array, Array]:
        """Return features and states after a step of all sources, by their method `step`."""


class ChainedSource(SeveralSources):
    """Sources of which each receives the features of the one before it: a deep reservoir."""

    @property
    def n_features(self) -> int:
        """Number of columns of the input, which the first source receives."""
        return int(self.sources[0].n_features)

    @property
    def width(self) -> int:
        """Number of columns of the features of the last source."""
        return int(self.sources[-1].width)

    @property
    def dtype(self) -> Any:
        """Data type of the features of the last source."""
        return self.sources[-1].dtype

    def _stepped(self, states: Array, inputs: Array, step: str) -> tuple[Array, Array]:
        rows, ends = inputs, []
        for source, part in zip(self.sources, self.parts(states), strict=True):
            rows, end = getattr(source, step)(part, rows.astype(source.dtype, copy=False))
            ends.append(end)
        return rows, np.hstack(ends)


@dataclass(frozen=True, eq=False)
class JoinedSource(SeveralSources):
    """Sources side by side, whose features are joined; each receives its `columns` of the input."""

    columns: tuple[Array, ...]
    n_features: int

    @property
    def width(self) -> int:
        """Sum of the numbers of columns of the features."""
        return sum(source.width for source in self.sources)

    @property
    def dtype(self) -> Any:
        """Data type of the joined features."""
        return np.result_type(*(source.dtype for source in self.sources))

    def _stepped(self, states: Array, inputs: Array, step: str) -> tuple[Array, Array]:
        found = [
            getattr(source, step)(part, inputs[:, columns].astype(source.dtype, copy=False))
            for source, columns, part in zip(
                self.sources, self.columns, self.parts(states), strict=True
            )
        ]
        rows, ends = zip(*found, strict=True)
        return np.hstack(rows), np.hstack(ends)
