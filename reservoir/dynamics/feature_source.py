"""The interface of feature sources, which turn rows of input into the features of a readout."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.dynamics.saturation import Record

_STEADY_STEPS = 10_000


class FeatureSource(ABC):
    """Turns rows of input into rows of features, starting from a state and returning the last one.

    The main example is `DrivenReservoir`, which wraps a `Reservoir`. An estimator uses only the
    methods and attributes defined here, so that lags of the input, several layers or both
    directions of time are further classes with the same interface.
    A source is immutable data: arrays and plain objects that can be saved; a run changes nothing.

    Attributes
    ----------
    n_features : int
        Columns of the input.
    width : int
        Columns of the features.
    state_size : int
        Numbers in a state.
    n_fed_back : int
        Outputs that are fed back into the source, one step late; 0 for none.
    n_past : int
        Rows before the present one that a state contains; 0 for none.
    memory : int or None
        Rows after which the state before them has no influence; None if its influence fades
        gradually, so that there is no such number.
    hides_input_by : str
        Parameters of an estimator that exclude the input from the features; empty if none do.
    dtype : numpy.dtype
        Type of features and states.
    state_dtype : numpy.dtype
        Type of a whole state: float64 if it contains a time in addition to the units, otherwise
        `dtype`.
    """

    n_features: Any
    width: Any
    state_size: Any
    dtype: Any
    n_fed_back: Any = 0
    n_past: Any = 0
    memory: Any = None
    hides_input_by: Any = ""

    @property
    def state_dtype(self) -> Any:
        """Type of states."""
        return self.dtype

    @abstractmethod
    def iter_features(
        self,
        rows: Array,
        state: Array,
        *,
        teacher: Array | None = None,
        noise: float = 0.0,
        generator: np.random.Generator | None = None,
        engine: str = "auto",
        activity: Record | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[int, Array, Array]]:
        """Run over one sequence, block by block.

        Parameters
        ----------
        rows : array of shape (n_samples, n_features)
        state : array of shape (state_size,)
            The state before the first row.
        teacher : array of shape (n_samples, n_fed_back), optional
            Previous outputs that each step receives, if outputs are fed back (teacher forcing).
        noise : float, default=0.0
            Standard deviation of Gaussian noise on the state, from `generator`.
        generator : numpy.random.Generator, optional
        engine : {"auto", "numpy", "numba"}, default="auto"
        activity : Activity or Growth, optional
            A record from the method `activity`; the activity of the units from row `skip` on is
            added to it. A source without such a record need not accept these two parameters.
        skip : int, default=0

        Yields
        ------
        start : int
            First row of the block.
        features : array of shape (n_rows, width)
            In memory that is reused and that the caller may change: copy the features that you
            keep.
        state : array of shape (state_size,)
            The state after the block, which may be kept.
        """

    def iter_many_features(
        self,
        series: Sequence[Array],
        states: Sequence[Array],
        *,
        teachers: Sequence[Array] | None = None,
        engine: str = "auto",
        activity: Record | None = None,
        skips: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, int, Array, Array]]:
        """Run over several sequences; the blocks of each are in order.

        Parameters
        ----------
        series : sequence of arrays of shape (n_samples, n_features)
        states : sequence of arrays of shape (state_size,)
        teachers : sequence of arrays of shape (n_samples, n_fed_back), optional
        engine : str, default="auto"
        activity : Activity or Growth, optional
            As in `iter_features`.
        skips : sequence of int, optional
            As `skip` in `iter_features`, one for each sequence.

        Yields
        ------
        index : int
            Number of the sequence that the block belongs to.
        start, features, state
            As `iter_features`.
        """
        for index, (rows, state) in enumerate(zip(series, states, strict=True)):
            options: dict[str, Any] = {"engine": engine}
            if teachers is not None:
                options["teacher"] = teachers[index]
            if activity is not None:
                options |= {"activity": activity, "skip": 0 if skips is None else skips[index]}
            for block in self.iter_features(rows, state, **options):
                yield index, *block

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side.

        Parameters
        ----------
        states : array of shape (n_runs, state_size)
        inputs : array of shape (n_runs, n_features)
        teachers : array of shape (n_runs, n_fed_back), optional
            Previous outputs that each run receives, if outputs are fed back.

        Returns
        -------
        features : array of shape (n_runs, width)
        states : array of shape (n_runs, state_size)
            New arrays.
        """
        rows = np.empty((len(states), self.width), self.dtype)
        after = np.empty((len(states), self.state_size), self.state_dtype)
        for k, state in enumerate(states):
            teacher = None if teachers is None else teachers[k : k + 1]
            for _, features, end in self.iter_features(inputs[k : k + 1], state, teacher=teacher):
                rows[k], after[k] = features[0], end
        return rows, after

    def initial_state_of(self, row: Array) -> Array:
        """Return the state before the first row of a new sequence: zeros.

        Parameters
        ----------
        row : array of shape (n_features,)
            The first row.
        """
        return np.zeros(self.state_size, self.state_dtype)

    def steady_state(self, row: Array, *, quiet: bool = False) -> Array:
        """Return the fixed point that a constant input leads to from zero; zeros if there is none.

        Parameters
        ----------
        row : array of shape (n_features,)
            The constant input.
        quiet : bool, default=False
            Whether to suppress the warning if no fixed point is found.

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
                f'initial_state="steady": no fixed point was reached in {_STEADY_STEPS} steps of '
                "the first row; starting from zeros. A smaller spectral radius makes a fixed point "
                "more likely.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        return np.zeros(self.state_size, self.dtype)

    def _last_two(self, rows: Array, state: Array, teacher: Array | None) -> tuple[Array, Array]:
        """Return the last two states of a run."""
        for part in (slice(None, -1), slice(-1, None)):
            before, given = state, None if teacher is None else teacher[part]
            for _, _, end in self.iter_features(rows[part], state, teacher=given):
                state = end
        return before, state

    def run_loop(
        self,
        readout: Any,
        n_steps: int,
        *,
        initial_state: Array,
        initial_output: Array,
        exog: Array | None = None,
        clip: Any = None,
        engine: str = "auto",
    ) -> tuple[Array, Array, int]:
        """Run in closed loop, as `run_closed_loop` does with ``return_steps=True``.

        A source whose outputs cannot be fed back does not override this method, which raises.
        """
        self.check_can_loop()

    def check_can_loop(self) -> NoReturn:
        """Raise, because the source has no closed loop."""
        raise ValueError(
            f"{type(self).__name__} has no closed loop: its outputs cannot be fed back. Use "
            "predict, or features that have a closed loop, such as the states of a Reservoir."
        )

    def states(
        self,
        series: Sequence[Array],
        starts: Sequence[Array],
        *,
        teachers: Sequence[Array] | None = None,
        engine: str = "auto",
    ) -> list[Array]:
        """Return the states of a run for display to users: all features, if there are no units.

        Parameters
        ----------
        series, teachers, engine
            As in `iter_many_features`.
        starts : sequence of arrays of shape (state_size,)
        """
        rows = [np.empty((len(X), self.width), self.dtype) for X in series]
        blocks = self.iter_many_features(series, starts, teachers=teachers, engine=engine)
        for index, start, features, _ in blocks:
            rows[index][start : start + len(features)] = features
        return rows

    def input_column(self, column: int) -> int | None:
        """Return the column of the input that a column of the features copies, None if none."""
        return None

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for features, other than inputs, that overflow."""
        what = f"The squares of the features overflow, first in column {column}"
        return what, "Scale X (StandardScaler)."

    def engine_for(self, n_steps: int) -> str:
        """Return the engine for a source that is fitted on `n_steps` rows."""
        return "auto"

    @property
    def fitted(self) -> dict[str, Any]:
        """Fitted attributes of the source that an estimator exposes, by name."""
        return {}

    @property
    def past_in_words(self) -> str:
        """The number of past rows in use, in words, with the parameters that set it."""
        return f"{type(self).__name__} uses {self.memory or self.n_past} rows"

    @property
    def description(self) -> dict[str, str]:
        """Description of the source for notebooks, in words, by the names of its parts."""
        return {}

    def activity(self) -> Record | None:
        """Return an empty record of the units' activity; None for sources without units."""
        return None

    def watch_run(  # noqa: B027 (sources without units have no record)
        self,
        activity: Record,
        skip: int,
        rows: Array,
        states: Array,
        start: Array,
        *,
        received: Array | None = None,
    ) -> None:
        """Add the states of a run, from row `skip` on, to a record.

        Parameters
        ----------
        activity : Activity or Growth
        skip : int
        rows : array of shape (n_samples, n_features)
        states : array of shape (n_samples, n_units)
        start : array of shape (state_size,)
            The state before the first row.
        received : array of shape (n_samples, n_fed_back), optional
            Outputs that were fed back.
        """
