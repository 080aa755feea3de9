"""Input data of estimators, read once, and results in the container of the input.

`DataReader` reads X and y. With ``set_output(predict="pandas")`` results are Series and DataFrames;
the `set_output` of scikit-learn supports results of `transform` only.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._tables import (
    Clock,
    Sequences,
    check_enough_rows,
    check_leak_below_one,
    container_of,
    read_series,
)
from reservoir._tables.frames import is_pandas
from reservoir._tables.targets import read_weights
from reservoir._tables.time_column import in_steps, step_of, with_gaps
from reservoir._typing import Array
from reservoir._validation import (
    caller_level,
    check_count,
    check_fixed,
    check_numbers,
    continued,
    ending_of,
    fixed_parameters,
    steps_between,
)
from reservoir._validation.index import plain_name
from reservoir.activations import ACTIVATIONS
from reservoir.dynamics.saturation import Names
from reservoir.estimators.parameters import (
    check_time_step,
    read_dtype,
)
from reservoir.estimators.progress import width_of
from reservoir.estimators.targets import TargetCoding
from reservoir.training.codes import valid_codes

_MOST_BEYOND = 0.2  # share of rows that may be half a width outside the range in training
_ENOUGH = 20  # rows of a call: fewer may be a single excursion
_LONG = 60  # rows of training: in fewer, slow series have not reached their range yet
_SMALL = 0.5  # input of a unit up to which tanh is almost linear
_SEQUENCES = 1024  # of more sequences only some are compared, to save time and memory
CONFIG = "_sklearn_output_config"  # the name that scikit-learn uses: `clone` copies it


class Columns(NamedTuple):
    """Number and names of the columns of X, including those of ids and times."""

    n_features_in: int
    names: Array | None

    @classmethod
    def of(cls, estimator: Any) -> Columns:
        """Return the columns that an estimator has been fitted on."""
        return cls(estimator.n_features_in_, vars(estimator).get("feature_names_in_"))

    @property
    def fitted(self) -> dict[str, Any]:
        """Fitted attributes, by name."""
        named = {} if self.names is None else {"feature_names_in_": self.names}
        return {"n_features_in_": self.n_features_in, **named}


@dataclass(frozen=True)
class TrainingData:
    """Training data, as read from X, y and sample_weight, by sequence.

    `targets` are columns of numbers, (n_samples, n_outputs), NaN where missing; `weights` are
    (n_samples,), and None if all rows have equal weight.
    """

    sequences: Sequences
    targets: list[Array]
    weights: list[Array] | None
    columns: Columns

    @property
    def arrays(self) -> Sequence[Array]:
        """Inputs of each sequence, (n_samples, n_features)."""
        return self.sequences.arrays

    @property
    def n_rows(self) -> int:
        """Number of rows of all sequences."""
        return sum(self.sequences.lengths)

    @property
    def n_outputs(self) -> int:
        """Number of columns of the targets."""
        return int(self.targets[0].shape[-1])


@saved
class DataReader:
    """Reader of X and y, and the parameters of an estimator that its first data have fixed.

    `targets` converts y to columns of numbers, and outputs back; it is None if there is no y.
    `clock` converts a column of times to steps. `n_symbols` is None unless the rows of X are symbol
    numbers. `fixed` are the parameters of the estimator that later rows cannot change, by name.
    """

    n_symbols: int | None = None  # for files of earlier versions, as the next one
    fixed: dict[str, Any] | None = None

    def __init__(self, estimator: Any, targets: TargetCoding | None = None) -> None:
        self.dtype: str = read_dtype(estimator.dtype).name
        self.sequence_column = estimator.sequence_column
        self.time_column = getattr(estimator, "time_column", None)
        self.targets: Any = targets
        self.target_names: list[Any] | None = None
        self.clock: Clock | None = None
        self.n_symbols = getattr(estimator, "n_symbols", None)
        self.fixed: dict[str, Any] | None = fixed_parameters(estimator)

    # ------------------------------------------------------------------ reading

    def read(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> TrainingData:
        """Return all data of a fit; `options` are arguments of `TargetCoding.read`."""
        sequences, columns = self.first_inputs(estimator, X, y)
        check_enough_rows(estimator, sequences)
        targets = self.first_outputs(estimator, y, sequences, **options)
        by_class = getattr(estimator, "class_weight", None)
        weights = self.targets.weights(sample_weight, sequences, targets, by_class)
        return TrainingData(sequences, targets, weights, columns)

    def read_chunk(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, *, first: bool, **options: Any
    ) -> TrainingData:
        """Return the data of one call of partial_fit."""
        by_class = getattr(estimator, "class_weight", None)
        if by_class is not None:
            raise ValueError(
                f"class_weight={by_class!r} is not supported by partial_fit, which receives one "
                "chunk at a time. Use fit, or class_weight=None."
            )
        if first:
            sequences, columns = self.first_inputs(estimator, X, y)
            targets = self.first_outputs(estimator, y, sequences, **options)
        else:
            self.check_fixed(estimator)
            sequences, columns = self.inputs(estimator, X, y), Columns.of(estimator)
            targets = self.outputs(estimator, y, sequences, **options)
        weights = read_weights(sample_weight, sequences, all_zero=True)
        return TrainingData(sequences, targets, weights, columns)

    def check_fixed(self, estimator: Any) -> None:
        """Raise if a parameter that the first data have fixed was changed since."""
        check_fixed(estimator, self.fixed or {})

    def first_inputs(self, estimator: Any, X: Any, y: Any = None) -> tuple[Sequences, Columns]:
        """Return sequences and columns of the first X; the estimator is not changed."""
        # the checks of scikit-learn set attributes, here on a temporary copy
        copied = object.__new__(type(estimator))
        vars(copied).update(vars(estimator))
        if hasattr(estimator, "time_step"):
            check_time_step("time_step", estimator.time_step)
        if self.time_column is None:
            return self._without_times(copied, X, y, reset=True), Columns.of(copied)
        sequences, place = self._with_times(copied, X, y, reset=True)
        check_leak_below_one(self.time_column, estimator.leak_rate)
        step = step_of(sequences, self._step_of(estimator))
        self.clock = Clock(place, float(sequences.arrays[0][0, place]), step)
        return in_steps(self.clock, sequences, self.dtype), Columns.of(copied)

    def _step_of(self, estimator: Any) -> Any:
        """Return `time_step`; if training continues, "auto" is the step used before."""
        step, continues = estimator.time_step, getattr(estimator, "warm_start", False)
        earlier: Clock | None = getattr(getattr(estimator, "_reader", None), "clock", None)
        return earlier.step if earlier and continues and isinstance(step, str) else step

    def inputs(self, estimator: Any, X: Any, y: Any = None) -> Sequences:
        """Return the sequences of X; times are in steps since the first row of fit."""
        if self.clock is not None:
            sequences, _ = self._with_times(estimator, X, y, reset=False)
            return in_steps(self.clock, sequences, self.dtype)
        return self._without_times(estimator, X, y, reset=False)

    def _without_times(self, estimator: Any, X: Any, y: Any, *, reset: bool) -> Sequences:
        """Return sequences whose rows are one step each."""
        y = None if self.targets is not None and self.targets.per_sequence else y
        ids, dtype = self.sequence_column, self.dtype
        sequences = read_series(estimator, X, y, reset=reset, dtype=dtype, sequence_column=ids)
        if self.n_symbols is not None:
            _check_codes(sequences, self.n_symbols)
        return sequences

    def _with_times(self, estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Sequences, int]:
        """Return sequences with the unchanged column of times, and its position."""
        y = None if self.targets is not None and self.targets.per_sequence else y
        sequences = read_series(
            estimator,
            X,
            y,
            reset=reset,
            dtype=np.float64,
            sequence_column=self.sequence_column,
            has_times=True,
        )
        names = getattr(estimator, "feature_names_in_", None)
        return with_gaps(sequences, self.time_column, names, self.sequence_column)

    def first_outputs(
        self, estimator: Any, y: Any, sequences: Sequences, **options: Any
    ) -> list[Array]:
        """Return the targets of each sequence; these determine the form of later ones."""
        targets: list[Array] = self.targets.read(estimator, y, sequences, first=True, **options)
        self.target_names = names_of(y)
        return targets

    def outputs(self, estimator: Any, y: Any, sequences: Sequences, **options: Any) -> list[Array]:
        """Return the targets of each sequence; they must have the form of the first ones."""
        targets: list[Array] = self.targets.read(estimator, y, sequences, first=False, **options)
        return targets

    def warn_of_rows_beyond(self, estimator: Any, sequences: Sequences) -> bool:
        """Warn if many rows are far outside the training range of a column; return whether it did.

        Activations without bounds and symbols are not compared, nor a call with few rows.
        """
        progress, clock = estimator._progress, self.clock
        arrays = sequences.arrays[:: 1 + len(sequences) // _SEQUENCES]
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        reach, most = progress.input_range, _MOST_BEYOND * len(rows)
        if reach is None or len(rows) < _ENOUGH:
            return False
        if clock is not None:
            rows, reach = clock.channels(rows), clock.channels(reach)
        low, high = reach
        # to save time: in most calls few values are outside at all
        if np.count_nonzero((rows < low) | (rows > high)) <= most:
            return False
        activation: Any = getattr(estimator, "activation", None)
        bounded = getattr(ACTIVATIONS.get(activation, activation), "bounded", False)
        with np.errstate(over="ignore", divide="ignore"):
            margin = width_of(reach) * max(1.0, _LONG / max(progress.n_steps, 1)) / 2
            # for small inputs units are almost linear, and extrapolate
            small = _SMALL / np.max(np.abs(getattr(estimator, "input_scaling", 1.0)))
            low, high = np.minimum(low - margin, -small), np.maximum(high + margin, small)
        beyond = ((rows < low) | (rows > high)).sum(axis=0)
        j = int(np.argmax(beyond))
        if not bounded or self.n_symbols is not None or beyond[j] <= most:
            return False
        column = self.names_of_columns(Columns.of(estimator)).input(j)
        warnings.warn(
            f"Rows beyond what was learned in {column}: more than a fifth are outside its range in "
            f"training, {reach[0, j]:.6g} to {reach[1, j]:.6g}, by more than half the width. "
            "States saturate there: train on rows with such values or on differences between "
            "rows, or forecast the series with ESNForecaster.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return True

    # ------------------------------------------------------------------ results

    def present(
        self, estimator: Any, values: Any, X: Any, sequences: Sequences, names: Any = None
    ) -> Any:
        """Return values in the container of X, with the index of X if pandas output is set.

        `names` are the names of the columns, by default the names of the targets.
        """
        if not asks_for_pandas(estimator):
            return values
        names = self.target_names if names is None else names
        if self.targets.per_sequence:
            return in_one_frame(values, X, sequences, names, self.sequence_column)
        return in_frames(values, X, sequences, names)

    def names_of_columns(self, columns: Columns, sequences: Sequences | None = None) -> Names:
        """Return names, for messages, of the inputs of the units: columns of X and of y.

        `sequences` were read from X; if given, the advice on scaling keeps their container.
        """

        def of_output(column: int) -> str:
            names = self.target_names or ()
            named = len(names) > 1  # one column of labels is fed back as a column for each class
            return f"column {repr(names[column]) if named else column} of y"

        def of_input(column: int) -> str:
            labels = columns.names
            # ids are removed from the columns first, then times
            place = None if self.clock is None else self.clock.place
            for taken in (place, self.id_place(columns)):
                column += taken is not None and column >= taken
            return f"column {column if labels is None else repr(labels[column])} of X"

        advice = _scaling_advice(sequences, self.sequence_column)
        return Names(of_input, of_output) if advice is None else Names(of_input, of_output, advice)

    def id_place(self, columns: Columns) -> int | None:
        """Return the position of the column of ids in X; None if there is none."""
        ids = self.sequence_column
        if isinstance(ids, str):
            # without names, as of adopted weights, reading X raises
            return None if columns.names is None else list(columns.names).index(ids)
        return None if ids is None else int(ids) % columns.n_features_in


def _scaling_advice(sequences: Sequences | None, ids: int | str | None) -> str | None:
    """Return the advice to scale X that keeps its sequences apart; None if any scaler does."""
    if isinstance(ids, str):
        return "scale the columns of X but that of ids (make_column_transformer) in a pipeline"
    if sequences is None:
        return None
    if sequences.container != "table":
        return "scale X, `PerStep(StandardScaler())` in a pipeline"
    if sequences.ids is not None and ids is None:  # a MultiIndex, which arrays lack
        return 'scale X, `StandardScaler().set_output(transform="pandas")` in a pipeline'
    return None


def names_of(y: Any) -> list[Any] | None:
    """Return the names of the columns of y, or of its first sequence; None if there are none."""
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object):
        y = y[0] if len(y) else None
    if hasattr(y, "columns"):
        return [plain_name(name) for name in y.columns]
    name = getattr(y, "name", None)
    return None if name is None else [plain_name(name)]


def join(values: Any, X: Any) -> Any:
    """Return the values of several sequences as one array; values of one table are unchanged."""
    if values is None or container_of(X) == "table":
        return values
    return np.concatenate([np.asarray(item) for item in values])


def _check_codes(sequences: Sequences, n_symbols: int) -> None:
    """Check that the rows of sequences are symbol numbers."""
    check_count("n_symbols", n_symbols, minimum=2)
    dtype = sequences.arrays[0].dtype
    if n_symbols > 1 / np.finfo(dtype).eps:
        raise ValueError(
            f"n_symbols={n_symbols}: dtype {dtype} cannot represent so many whole numbers. Use "
            'dtype="float64".'
        )
    for i, rows in enumerate(sequences.arrays):
        where = "X" if len(sequences) == 1 else f"sequence {i} of X"
        if rows.shape[1] != 1:
            raise ValueError(
                f"n_symbols={n_symbols} reads X as one column of symbol numbers, but {where} has "
                f"{rows.shape[1]} columns. Pass one column, or use n_symbols=None for columns of "
                "ordinary numbers."
            )
        valid = valid_codes(rows, n_symbols)
        if not valid.all():
            row = int(np.argmin(valid[:, 0]))
            raise ValueError(
                f"n_symbols={n_symbols}: {where} must contain whole numbers from 0 to "
                f"{n_symbols - 1}; row {row} is {rows[row, 0]:g}. Number all symbols that occur, "
                "by np.unique with return_inverse=True."
            )


def asks_for_pandas(estimator: Any) -> bool:
    """Whether an estimator is set to return Series and DataFrames."""
    return vars(estimator).get(CONFIG, {}).get("predict") == "pandas"


def require_pandas() -> Any:
    """Return pandas; raise with advice if it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'predict="pandas" in set_output needs pandas: pip install pandas. Without pandas use '
            'predict="default".'
        ) from error
    return pandas


def framed(rows: Array, index: Any, names: Sequence[Any] | None) -> Any:
    """Return rows as a Series or a DataFrame; names are used if there is one per column."""
    pd = require_pandas()
    n_names = 0 if names is None else len(names)
    if rows.ndim == 1:
        return pd.Series(rows, index=index, name=names[0] if names and n_names == 1 else None)
    columns = list(names) if names is not None and n_names == rows.shape[1] else None
    return pd.DataFrame(rows, index=index, columns=columns)


def in_frames(values: Any, X: Any, sequences: Sequences, names: Sequence[Any] | None) -> Any:
    """Return values in the container of X, as Series or DataFrames."""
    if sequences.container == "array":
        return values
    if sequences.container == "table":
        return framed(values, _index(X), names)
    frames = [framed(rows, _index(item), names) for rows, item in zip(values, X, strict=True)]
    return sequences.restore(frames)


def in_one_frame(
    rows: Array, X: Any, sequences: Sequences, names: Sequence[Any] | None, id_name: Any
) -> Any:
    """Return one row per sequence as a Series or a DataFrame, with the ids as its index."""
    index = None
    if sequences.ids is not None:
        index = require_pandas().Index(list(sequences.ids))
        levels = getattr(_index(X), "names", [None])[:-1]
        index.names = levels or [id_name if isinstance(id_name, str) else None]
    return framed(rows, index, names)


def _index(table: Any) -> Any:
    """Return the index of a pandas table; None for any other table."""
    return table.index if is_pandas(table) else None


def framed_forecast(estimator: Any, rows: Array, index: Any) -> Any:
    """Return the rows of a forecast, with `index` if pandas output is set."""
    if not asks_for_pandas(estimator):
        return rows
    return framed(rows, index, estimator._reader.target_names)


def index_of_forecast(estimator: Any, network: Any, n_steps: int, context: Any) -> Any:
    """Return the index of a forecast; None if outputs are arrays or the index is unknown.

    `context` are the rows before the forecast, by default the rows of training. If outputs are fed
    back through feedback weights, y has the time stamps of X, unless its index is ahead; otherwise
    y is X one step later.
    """
    if not asks_for_pandas(estimator):
        return None
    of_X, of_y = network.progress.ended
    if context is not None:
        end = ending_of(context, of_X)
        ahead = 1
        if network.feeds_back:
            ahead = 0 if of_X is None or of_y is None else steps_between(of_X, of_y)
        return None if end is None else continued(end, n_steps, skip=ahead - 1)
    # after the last target by its time stamp, or else two steps after the last row of X
    counted = of_X is None or (of_X.plain and of_y is not None and not of_y.plain)
    if of_y is not None and (network.feeds_back or counted):
        return continued(of_y, n_steps)
    return None if of_X is None else continued(of_X, n_steps, skip=0 if network.feeds_back else 1)


def timed_starts(
    clock: Clock, spec: Any, sequences: Sequences, last: Array | None, n_units: int
) -> Any:
    """Return initial states for `Progress.starts`, with the time before each run.

    Returns "steady" instead of "last", with a warning, if the rows do not come after the state.
    """
    firsts = np.array([rows[0, clock.place] for rows in sequences.arrays])
    if isinstance(spec, str):
        if spec == "last" and last is not None and len(firsts) == 1 and firsts[0] <= last[-1]:
            _warn_of_earlier_rows(clock, firsts[0], last[-1])
            return "steady"
        if spec != "zeros":
            return spec
        spec = np.zeros(n_units)
    states = check_numbers("initial_state", spec)
    if states.ndim not in (1, 2) or states.shape[-1] != n_units:
        return spec
    states = np.broadcast_to(states, (len(firsts), n_units))
    return np.column_stack([states, firsts - 1])


def _warn_of_earlier_rows(clock: Clock, first: float, last: float) -> None:
    """Warn that a run does not continue from the state at the end of training."""
    begin, end = (f"{clock.time_at(steps):.12g}" for steps in (first, last))
    warnings.warn(
        'initial_state="last" continues from the end of training, but X begins at time '
        f"{begin}, and training ended at {end}. This run starts from the steady state of its first "
        'row instead. Give initial_state="steady" or "zeros" to avoid this warning.',
        UserWarning,
        stacklevel=caller_level(),
    )
