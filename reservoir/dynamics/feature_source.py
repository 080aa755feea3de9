"""The interface of feature sources, which compute the features of a readout from rows of input."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.dynamics.closed_loop import LoopRun, loop_limit
from reservoir.dynamics.fed_back import as_hold
from reservoir.dynamics.saturation import Record

_STEADY_STEPS = 10_000

Block = tuple[int, Array, Array]  # first row, features, state after the block


class Run(NamedTuple):
    """Options of a run of a source over one sequence, which wrappers pass on.

    `teacher`, (n_samples, n_fed_back), is the previous output that each step receives if outputs
    are fed back (teacher forcing). `noise` is the standard deviation of the Gaussian noise, drawn
    from `generator`, that is added to the states. `engine` and `dt`, (n_samples,), the duration of
    each step, are as in `reservoir.dynamics.run`. The activity of the units from row `skip` on is
    added to `activity`, a record returned by the source's method of that name.
    """

    teacher: Array | None = None
    noise: float = 0.0
    generator: np.random.Generator | None = None
    engine: str = "auto"
    activity: Record | None = None
    skip: int = 0
    dt: Array | None = None


PLAIN_RUN = Run()


class FeatureSource(ABC):
    """Computes rows of features from rows of input, and the state after them from a first state.

    The main example is `DrivenReservoir`, which wraps a `Reservoir`. An estimator uses only the
    methods and attributes defined here. Lags of the input (`PastInputs`) and both directions of
    time (`BothDirections`) are further classes with the same interface, and several layers can be
    added likewise.
    A source is immutable: it consists of arrays and plain objects that can be saved, and a run does
    not change it.

    Attributes
    ----------
    n_features : int
        Number of columns of the input.
    width : int
        Number of columns of the features.
    state_size : int
        Number of entries of a state vector.
    n_fed_back : int
        Number of outputs that are fed back into the source, one step late; 0 without feedback.
    n_past : int
        Number of rows before the present one that a state contains; 0 if it contains no rows.
    causal : bool
        Whether the features of a row depend on this row and the rows before it only.
    memory : int or None
        Number of rows after which an earlier state has no influence; None if its influence fades
        gradually, so that there is no such number.
    hides_input_by : str
        Parameters of an estimator that exclude the input from the features; empty if there are
        none.
    dtype : numpy.dtype
        Data type of the features and of the states.
    state_dtype : numpy.dtype
        Data type of a whole state: float64 if the state contains a time in addition to the units,
        otherwise `dtype`.
    """

    n_features: Any
    width: Any
    state_size: Any
    dtype: Any
    n_fed_back: Any = 0
    n_past: Any = 0
    causal: Any = True
    memory: Any = None
    hides_input_by: Any = ""

    @property
    def state_dtype(self) -> Any:
        """Data type of the states."""
        return self.dtype

    @abstractmethod
    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence of inputs and yield the features block by block.

        Parameters
        ----------
        rows : array of shape (n_samples, n_features)
            The inputs.
        state : array of shape (state_size,)
            The state before the first row.
        run : Run, optional
            Options of the run; a source reads those that it supports.

        Yields
        ------
        start : int
            First row of the block.
        features : array of shape (n_rows, width)
            The features. Their memory is reused, and the caller may change it: copy the features
            that you keep.
        state : array of shape (state_size,)
            The state after the block, which may be kept without copying.
        """

    def iter_many_features(
        self, series: Sequence[Array], states: Sequence[Array], runs: Sequence[Run]
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences; the blocks of each sequence are in order.

        Parameters
        ----------
        series : sequence of arrays of shape (n_samples, n_features)
            The inputs of each sequence.
        states : sequence of arrays of shape (state_size,)
            The state before the first row of each sequence.
        runs : sequence of Run
            Options for each sequence. A source that runs several side by side reads `noise` of
            none, and `engine` of the first.

        Yields
        ------
        index : int
            Index of the sequence that the block belongs to.
        start, features, state
            As in `iter_features`.
        """
        for index, each in enumerate(zip(series, states, runs, strict=True)):
            for block in self.iter_features(*each):
                yield index, *block

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side.

        Parameters
        ----------
        states : array of shape (n_runs, state_size)
            The state of each run before the step.
        inputs : array of shape (n_runs, n_features)
            The input of each run.
        teachers : array of shape (n_runs, n_fed_back), optional
            The previous output that each run receives, if outputs are fed back.

        Returns
        -------
        features : array of shape (n_runs, width)
            The features of each run after the step, in new memory.
        states : array of shape (n_runs, state_size)
            The state of each run after the step, in new memory.
        """
        rows = np.empty((len(states), self.width), self.dtype)
        after = np.empty((len(states), self.state_size), self.state_dtype)
        for k, state in enumerate(states):
            run = PLAIN_RUN if teachers is None else Run(teachers[k : k + 1])
            for _, features, end in self.iter_features(inputs[k : k + 1], state, run):
                rows[k], after[k] = features[0], end
        return rows, after

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step, together with small differences of the state and of the input.

        This is optional: exponents of closed loops need it, and a source without it raises. The
        arrays are those of `advance`, but only the first row is a run; each other row is a
        difference, to which the step's derivative is applied. Products of arrays with few rows are
        enough: the derivative is not formed.

        Parameters
        ----------
        states : array of shape (1 + n_differences, state_size)
            The state before the step, then differences.
        inputs : array of shape (1 + n_differences, n_features + n_fed_back)
            The input and the output that is fed back, then their differences.

        Returns
        -------
        features : array of shape (1 + n_differences, width)
            The features after the step, then their differences.
        states : array of shape (1 + n_differences, state_size)
            The state after the step, then its differences.
        """
        raise ValueError(
            f"{type(self).__name__} has no derivative of its step (the method tangent), which "
            "exponents need. Use ESNRegressor without bidirectional or time_column, or "
            "NVARRegressor."
        )

    def astype(self, dtype: Any) -> FeatureSource:
        """Return the source with weights and states of another dtype; needed with `tangent`."""
        return self

    def initial_state_of(self, row: Array) -> Array:
        """Return the state before the first row of a new sequence: zeros.

        Parameters
        ----------
        row : array of shape (n_features,)
            The first row.
        """
        return np.zeros(self.state_size, self.state_dtype)

    def steady_state(self, row: Array, *, quiet: bool = False) -> Array:
        """Return the state to which a constant input drives the source from zero.

        If the states do not converge, the result is zero.

        Parameters
        ----------
        row : array of shape (n_features,)
            The constant input.
        quiet : bool, default=False
            Whether to suppress the warning when no fixed point is found.

        Warns
        -----
        ConvergenceWarning
            If the states do not converge.
        """
        tolerance = 50 * np.finfo(self.dtype).eps
        state, constant = np.zeros(self.state_size, self.dtype), np.tile(row, (100, 1))
        teacher = np.zeros((100, self.n_fed_back)) if self.n_fed_back else None
        for _ in range(_STEADY_STEPS // len(constant)):
            try:
                state, last = self._last_two(constant, state, teacher)
            except ValueError:  # the states of an unbounded activation overflow
                break
            if np.abs(last - state).max() <= tolerance * max(1.0, np.abs(last).max()):
                return last
            state = last
        if not quiet:
            warnings.warn(
                f'initial_state="steady": no fixed point was reached in {_STEADY_STEPS} steps '
                "with the first row as constant input, so the run starts from zeros. A smaller "
                "spectral radius makes a fixed point more likely.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        return np.zeros(self.state_size, self.dtype)

    def _last_two(self, rows: Array, state: Array, teacher: Array | None) -> tuple[Array, Array]:
        """Return the last two states of a run."""
        for part in (slice(None, -1), slice(-1, None)):
            before, run = state, Run(None if teacher is None else teacher[part])
            for _, _, end in self.iter_features(rows[part], state, run):
                state = end
        return before, state

    def run_loop(self, readout: Any, loop: LoopRun) -> tuple[Array, Array, int]:
        """Run in closed loop, as `run_closed_loop` with ``return_steps=True``.

        This default takes each step by `advance`; a source may override it with a faster loop.
        """
        self.check_can_loop()
        state, n_steps, fed_back = loop.initial_state, loop.n_steps, bool(self.n_fed_back)
        output = np.array(loop.initial_output, self.dtype)
        limited, limit = as_hold(loop.clip, output.size, self.dtype), loop_limit(self.dtype)
        predict = readout if callable(readout) else as_function(readout, self.dtype)
        outputs = np.empty((n_steps, output.size), self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(n_steps):
                given = np.zeros(0) if loop.exog is None else loop.exog[k]
                fed = limited(output)
                row = np.asarray(given if fed_back else np.concatenate([fed, given]), self.dtype)
                teachers = fed[None] if fed_back else None
                features, after = self.advance(state[None], row[None], teachers)
                # a readout may map states beyond the limit to finite outputs: check them as well
                valid = bool((np.abs(after) < limit).all())
                new = np.asarray(predict(features[0]), self.dtype) if valid else output
                if new.shape != output.shape:
                    raise ValueError(f"readout must return shape {output.shape}; got {new.shape}.")
                # diverged: repeat the last good output
                if not valid or not (np.abs(new) < limit).all():
                    outputs[k:] = output
                    return outputs, state, k
                outputs[k] = output = new
                state = after[0]
        return outputs, np.array(state), n_steps

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
        """Run closed loops side by side, each with its own readout.

        No result depends on the other loops, up to rounding, or on the number of steps.

        Parameters
        ----------
        coef : array of shape (n_loops, n_outputs, width)
        intercept : array of shape (n_loops, n_outputs)
        states : array of shape (n_loops, state_size)
            The states before the first steps.
        inputs : array of shape (n_steps, n_loops, n_features)
            The inputs. From the second step on, the first n_outputs are the outputs before.
        clip : two arrays of shape (n_loops, n_outputs)
            Bounds to which outputs are clipped before they are fed back.
        engine : {"auto", "numba"}
            From `engine_for`; a source without kernels ignores it.

        Returns
        -------
        array of shape (n_steps, n_loops, n_outputs)
            The clipped outputs.
        """
        outputs = np.empty((len(inputs), *intercept.shape))
        given = np.array(inputs[0])
        for k in range(len(inputs)):
            if k:
                given = np.hstack([outputs[k - 1], inputs[k, :, intercept.shape[1] :]])
            features, states = self.advance(states, given)
            with np.errstate(over="ignore", invalid="ignore"):
                rows = np.einsum("lof,lf->lo", coef, features) + intercept
            outputs[k] = np.clip(np.nan_to_num(rows), *clip)
        return outputs

    def check_can_loop(self) -> None:
        """Raise if the source cannot run in closed loop: by default if it reads later rows."""
        if not self.causal:
            raise ValueError(
                f"{type(self).__name__} cannot run in closed loop: its outputs cannot be fed back. "
                "Use predict, or features that support closed loops, such as the states of a "
                "Reservoir."
            )

    def states(
        self, series: Sequence[Array], starts: Sequence[Array], runs: Sequence[Run]
    ) -> list[Array]:
        """Return the states of the units in a run, or all features if the source has no units.

        Parameters
        ----------
        series, runs
            As in `iter_many_features`.
        starts : sequence of arrays of shape (state_size,)
            The state before the first row of each sequence.
        """
        rows = [np.empty((len(X), self.width), self.dtype) for X in series]
        for index, start, features, _ in self.iter_many_features(series, starts, runs):
            rows[index][start : start + len(features)] = features
        return rows

    def trimmed(self, states: Array) -> tuple[FeatureSource, Array]:
        """Return a source with the same features, and its states for these: without unused rows.

        Parameters
        ----------
        states : array of shape (n_runs, state_size)
            States of the source.
        """
        return self, states

    def input_column(self, column: int) -> int | None:
        """Return the input column that a feature column copies; None if it copies no input."""
        return None

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for a feature, not an input, whose squares overflow."""
        what = f"The squares of the features overflow, first in column {column}"
        return what, "Scale X (StandardScaler)."

    def engine_for(self, n_steps: int) -> str:
        """Return the engine for a source that is fitted on `n_steps` rows."""
        return "auto"

    @property
    def fitted(self) -> dict[str, Any]:
        """Fitted attributes of the source that an estimator exposes: a dict from name to value."""
        return {}

    @property
    def past_in_words(self) -> str:
        """Text for messages: the number of past rows in use and the parameters that set it."""
        return f"{type(self).__name__} uses {self.memory or self.n_past} rows"

    @property
    def description(self) -> dict[str, str]:
        """Description of the source for notebooks: a dict from the names of parts to texts."""
        return {}

    def activity(self) -> Record | None:
        """Return an empty record of the units' activity; None for sources without units."""
        return None


class SourceWrapper(FeatureSource):
    """A source that runs another one, `source`, whose properties it has unless it defines them."""

    source: Any

    @property
    def reservoir(self) -> Any:
        """The reservoir."""
        return self.source.reservoir

    @property
    def fitted(self) -> dict[str, Any]:
        """The reservoir, as the fitted attribute `reservoir_`."""
        return self.source.fitted

    @property
    def n_features(self) -> Any:
        """Number of columns of the input."""
        return self.source.n_features

    @property
    def width(self) -> Any:
        """Number of columns of the features."""
        return self.source.width

    @property
    def n_fed_back(self) -> Any:
        """Number of outputs that are fed back through feedback weights."""
        return self.source.n_fed_back

    @property
    def dtype(self) -> Any:
        """Data type of the features and of the outputs."""
        return self.source.dtype

    def check_can_loop(self) -> None:
        """Raise if this source, or the one that it runs, cannot run in closed loop."""
        super().check_can_loop()
        self.source.check_can_loop()

    def astype(self, dtype: Any) -> FeatureSource:
        """Return the source over the inner source of another dtype."""
        return replace(self, source=self.source.astype(dtype))  # type: ignore[type-var]

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for a unit, or a feature of it, whose squares overflow."""
        return self.source.overflow_of(column)

    def engine_for(self, n_steps: int) -> str:
        """Return the engine for a model fitted on `n_steps` rows."""
        return self.source.engine_for(n_steps)

    def activity(self) -> Record | None:
        """Return an empty record of the units' activity."""
        return self.source.activity()


def as_function(readout: tuple[Array, Array], dtype: Any) -> Callable[[Array], Array]:
    """Return a linear readout as a function of one row of features."""
    coef, intercept = (np.asarray(part, dtype) for part in readout)
    return lambda features: coef @ features + intercept
