"""X and y as an estimator reads them: any container is read once, at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    Clock,
    Sequences,
    check_count,
    check_enough_rows,
    check_leak_below_one,
    code,
    container_of,
    read_series,
    read_weights,
    with_gaps,
)
from reservoir.dynamics.unit_steps import Names
from reservoir.estimators._parameters import check_time_step
from reservoir.estimators._predict_output import asks_for_pandas, in_frames, in_one_frame
from reservoir.estimators._target_coding import TargetCoding
from reservoir.training.codes import valid_codes


class Columns(NamedTuple):
    """Columns of X as scikit-learn counts and names them, those of ids and times among them."""

    n_features_in: int
    names: Array | None

    @classmethod
    def of(cls, estimator: Any) -> Columns:
        """Return the columns that an estimator has been fitted on."""
        return cls(estimator.n_features_in_, getattr(estimator, "feature_names_in_", None))

    @property
    def fitted(self) -> dict[str, Any]:
        """Fitted attributes, by name."""
        named = {} if self.names is None else {"feature_names_in_": self.names}
        return {"n_features_in_": self.n_features_in, **named}


@dataclass(frozen=True)
class TrainingData:
    """X, y and weights, read.

    Attributes
    ----------
    sequences : Sequences
    targets : list of arrays of shape (n_samples, n_outputs)
        Columns of numbers; NaN where a target is missing.
    weights : list of arrays of shape (n_samples,), or None
        None if all rows count alike.
    columns : Columns
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
        """Rows of all sequences."""
        return sum(self.sequences.lengths)

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        return int(self.targets[0].shape[-1])


@saved
class DataReader:
    """Reads X and y. The first data determine how; later `set_params` changes nothing.

    Parameters
    ----------
    estimator : estimator
        Its parameters name the columns of ids and times, and the dtype.
    targets : TargetCoding, optional
        Turns y into columns of numbers, and outputs back; None where there is no y.

    Attributes
    ----------
    sequence_column, time_column : int, str or None
    dtype : {"float64", "float32"}
        Of inputs and outputs.
    clock : Clock or None
        Turns the column of times into steps.
    n_symbols : int or None
        Rows of X are the numbers of so many symbols.
    target_names : list or None
        Of the columns of y.
    """

    n_symbols: int | None = None  # in files that know none

    def __init__(self, estimator: Any, targets: TargetCoding | None = None) -> None:
        self.dtype: str = read_dtype(estimator.dtype).name
        self.sequence_column = estimator.sequence_column
        self.time_column = getattr(estimator, "time_column", None)
        self.targets: Any = targets
        self.target_names: list[Any] | None = None
        self.clock: Clock | None = None
        self.n_symbols = getattr(estimator, "n_symbols", None)

    # ------------------------------------------------------------------ reading

    def read(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> TrainingData:
        """Return all data of a fit; `options` as `TargetCoding.read` takes them."""
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
        if first:
            sequences, columns = self.first_inputs(estimator, X, y)
            targets = self.first_outputs(estimator, y, sequences, **options)
        else:
            sequences, columns = self.inputs(estimator, X, y), Columns.of(estimator)
            targets = self.outputs(estimator, y, sequences, **options)
        weights = read_weights(sample_weight, sequences, all_zero=True)
        return TrainingData(sequences, targets, weights, columns)

    def first_inputs(self, estimator: Any, X: Any, y: Any = None) -> tuple[Sequences, Columns]:
        """Return the sequences of the first X, and its columns; the estimator is not changed."""
        # scikit-learn's checks note the columns in an estimator: in one that nobody else holds
        noting = object.__new__(type(estimator))
        vars(noting).update(vars(estimator))
        if hasattr(estimator, "time_step"):
            check_time_step("time_step", estimator.time_step)
        if self.time_column is None:
            return self._without_times(noting, X, y, reset=True), Columns.of(noting)
        sequences, place = self._with_times(noting, X, y, reset=True)
        check_leak_below_one(self.time_column, estimator.leak_rate)
        self.clock = Clock.of(sequences, place, self._step_of(estimator))
        return self.clock.set(sequences, self.dtype), Columns.of(noting)

    def _step_of(self, estimator: Any) -> Any:
        """Return `time_step`; where training goes on, "auto" is the step that it went by."""
        step, continues = estimator.time_step, getattr(estimator, "warm_start", False)
        earlier: Clock | None = getattr(getattr(estimator, "_reader", None), "clock", None)
        return earlier.step if earlier and continues and isinstance(step, str) else step

    def inputs(self, estimator: Any, X: Any, y: Any = None) -> Sequences:
        """Return the sequences of X; times are in steps since the first row of fit."""
        if self.clock is not None:
            sequences, _ = self._with_times(estimator, X, y, reset=False)
            return self.clock.set(sequences, self.dtype)
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
        """Return sequences with a column of times as the user gave it, and its place."""
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
        """Return the targets of each sequence; they decide what later ones look like."""
        targets: list[Array] = self.targets.read(estimator, y, sequences, first=True, **options)
        self.target_names = names_of(y)
        return targets

    def outputs(self, estimator: Any, y: Any, sequences: Sequences, **options: Any) -> list[Array]:
        """Return the targets of each sequence; they must look like the first ones."""
        targets: list[Array] = self.targets.read(estimator, y, sequences, first=False, **options)
        return targets

    # ------------------------------------------------------------------ the way back

    def present(
        self, estimator: Any, values: Any, X: Any, sequences: Sequences, names: Any = None
    ) -> Any:
        """Return values that stand in the container of X, with its index if pandas is asked for.

        `names` are those of the columns, if they are not the targets'.
        """
        if not asks_for_pandas(estimator):
            return values
        names = self.target_names if names is None else names
        if self.targets.per_sequence:
            return in_one_frame(values, X, sequences, names, self.sequence_column)
        return in_frames(values, X, sequences, names)

    def names_of_columns(self, columns: Columns) -> Names:
        """Return what messages call a column that the units receive, of X and of y."""

        def of_output(column: int) -> str:
            names = self.target_names or ()
            named = len(names) > 1  # one column of labels is fed back as one of each class
            return f"column {repr(names[column]) if named else column} of y"

        def of_input(column: int) -> str:
            labels = columns.names
            # times are no inputs, and ids are taken off before them
            place = None if self.clock is None else self.clock.place
            for taken in (place, self.id_place(columns)):
                column += taken is not None and column >= taken
            return f"column {column if labels is None else repr(labels[column])} of X"

        return Names(of_input, of_output)

    def id_place(self, columns: Columns) -> int | None:
        """Return where the ids stand in X; None if there are none."""
        ids = self.sequence_column
        if isinstance(
            ids, str
        ):  # without names, as of adopted weights, X is refused when it is read
            return None if columns.names is None else list(columns.names).index(ids)
        return None if ids is None else int(ids) % columns.n_features_in


def read_dtype(dtype: Any) -> Any:
    """Return numpy's float32 or float64 for an estimator's parameter `dtype`."""
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    return resolved


def names_of(y: Any) -> list[Any] | None:
    """Return the names of the columns of y, or of its first sequence; None if there are none."""
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object):
        y = y[0] if len(y) else None
    if hasattr(y, "columns"):
        return [_as_text(name) for name in y.columns]
    name = getattr(y, "name", None)
    return None if name is None else [_as_text(name)]


def _as_text(name: Any) -> Any:
    """Return a name as what can be saved: text, a number, or a tuple of them."""
    if isinstance(name, tuple):
        return tuple(_as_text(part) for part in name)
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, (str, int, float)) else str(name)


def join(values: Any, X: Any) -> Any:
    """Join what belongs to the sequences of X; what belongs to one table stays as it is."""
    if values is None or container_of(X) == "table":
        return values
    return np.concatenate([np.asarray(item) for item in values])


def _check_codes(sequences: Sequences, n_symbols: int) -> None:
    """Refuse sequences whose rows are not one symbol each."""
    check_count("n_symbols", n_symbols, minimum=2)
    dtype = sequences.arrays[0].dtype
    if n_symbols > 1 / np.finfo(dtype).eps:
        raise ValueError(
            f"n_symbols={n_symbols}: dtype {dtype} does not tell so many numbers apart. Use "
            'dtype="float64".'
        )
    for i, rows in enumerate(sequences.arrays):
        where = "X" if len(sequences) == 1 else f"sequence {i} of X"
        if rows.shape[1] != 1:
            raise ValueError(
                f"n_symbols={n_symbols} reads X as one column, the numbers of symbols; {where} has "
                f"{rows.shape[1]} columns. Give one column, or n_symbols=None for columns of "
                "numbers."
            )
        valid = valid_codes(rows, n_symbols)
        if not valid.all():
            row = int(np.argmin(valid[:, 0]))
            numbered = "X = np.unique(X, return_inverse=True)[1].reshape(-1, 1)"
            if sequences.container != "table":
                numbered = "X = [np.searchsorted(np.unique(np.concatenate(X)), rows) for rows in X]"
            raise ValueError(
                f"n_symbols={n_symbols}: {where} must hold whole numbers from 0 to "
                f"{n_symbols - 1}; row {row} holds {rows[row, 0]:g}. Number them among all that "
                f"there are: {code(numbered)}."
            )
