"""Permutation importance of the channels of whole sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring

from reservoir._tables import column_number
from reservoir._tables.frames import column_values, n_levels, with_columns
from reservoir._typing import Array
from reservoir._validation import as_generator, check_count

__all__ = ["ChannelImportance", "channel_importance"]


class ChannelImportance(NamedTuple):
    """Loss of score when a channel is permuted between sequences.

    Attributes
    ----------
    importances_mean : array of shape (n_channels,)
        The mean loss of score over the repetitions.
    importances_std : array of shape (n_channels,)
        The standard deviation of the loss of score over the repetitions.
    importances : array of shape (n_channels, n_repeats)
        The loss of score in each repetition.
    names : list of str, or None
        Names of the channels; None if X has no names.
    """

    importances_mean: Array
    importances_std: Array
    importances: Array
    names: list[str] | None


def channel_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_repeats: int = 5,
    sequence_column: Any = None,
    random_state: Any = None,
) -> ChannelImportance:
    """Measure how much the score of a fitted estimator drops if a channel is permuted.

    Each channel is permuted at random, as a whole, between the sequences, while the other channels
    stay unchanged; the loss of score is the channel's importance (Breiman's permutation importance
    [1]_, with channels instead of columns). Use held-out sequences: on the training sequences the
    importances show what the estimator has learned, not what generalises. Among redundant channels,
    each seems unimportant as long as the others are present.

    If lengths differ, a permuted channel is cut off, or extended by reflection until it is long
    enough, so its time scale does not change. Times (the estimator's `time_column`) are not
    permuted; their importance is 0.

    Parameters
    ----------
    estimator : estimator
        A fitted `ESNSequenceClassifier`, pipeline or any other estimator that accepts X and has a
        method `score`.
    X : list, object array, 3-D array, 2-D array, or table
        The sequences, as in `ReservoirFeatures`: a list of arrays or DataFrames of shape (n_steps,
        n_channels) or (n_steps,); an array (n_sequences, n_steps, n_channels); a 2-D array of one
        channel, one sequence per row; a table with an id column or a MultiIndex.
    y : array
        The targets, as in the estimator's `score`.
    scoring : str or callable, optional
        The scorer, as in scikit-learn; by default the estimator's `score`.
    n_repeats : int, default=5
        Number of permutations of each channel.
    sequence_column : int or str, optional
        The id column of a table; by default the estimator's parameter `sequence_column`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the permutations.

    Returns
    -------
    ChannelImportance

    Raises
    ------
    ValueError
        If X contains fewer than two sequences, or `n_repeats` is less than 1.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45, 2001, section 10.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.model_selection import channel_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30, 2))  # two channels
    >>> y = np.arange(60) % 2
    >>> X[:, :, 1] += 0.5 * y[:, None]  # the second one depends on the class
    >>> clf = ESNSequenceClassifier(50, random_state=0).fit(X[:30], y[:30])
    >>> found = channel_importance(clf, X[30:], y[30:], random_state=0)
    >>> bool(found.importances_mean[1] > 0.2 > 0.1 > abs(found.importances_mean[0]))
    True
    """
    n_repeats = check_count("n_repeats", n_repeats)
    if sequence_column is None:
        sequence_column = _parameter(estimator, "sequence_column")
    scorer = check_scoring(estimator, scoring=scoring)
    generator = as_generator(random_state)
    whole = scorer(estimator, X, y)  # first: its errors for an invalid X are clearer
    channels = _channels_of(X, sequence_column)
    n_sequences = len(channels.columns[0])
    if n_sequences < 2:
        raise ValueError(
            f"X contains {n_sequences} sequence(s); at least 2 are needed, because channels are "
            "permuted between sequences."
        )
    times = channels.number_of(_parameter(estimator, "time_column"))
    lost = np.zeros((len(channels.columns), n_repeats))
    for k in range(n_repeats):
        order = generator.permutation(n_sequences)  # the same for all channels, to compare
        for c, columns in enumerate(channels.columns):
            if c == times:
                continue
            others = [_fitted(columns[j], len(columns[i])) for i, j in enumerate(order)]
            lost[c, k] = whole - scorer(estimator, channels.replaced(c, others), y)
    return ChannelImportance(lost.mean(axis=1), lost.std(axis=1), lost, channels.names)


def _parameter(estimator: Any, name: str) -> Any:
    """Return a parameter of an estimator or of its parts; None if it is unset or ambiguous."""
    params = estimator.get_params()
    found = [value for key, value in params.items() if key.split("__")[-1] == name]
    known = {repr(value): value for value in found if value is not None}
    return next(iter(known.values())) if len(known) == 1 else None


def _fitted(values: Array, n_steps: int) -> Array:
    """Return values cut off, or extended by reflection, to the requested length."""
    if len(values) >= n_steps:
        return values[:n_steps]
    if len(values) == 1:
        return np.repeat(values, n_steps)
    return np.pad(values, (0, n_steps - len(values)), mode="reflect")


class _Channels(ABC):
    """The channels of a container, with a method to replace one.

    `columns` holds arrays (n_steps_i,) by channel, then by sequence; `positions` is the column of X
    of each channel. `labels` and `n_columns`, of the columns of X, include an id column.
    """

    columns: list[list[Array]]
    labels: list[str] | None = None
    positions: list[int]
    n_columns: int

    @property
    def names(self) -> list[str] | None:
        """The names of the channels, if X has any."""
        return None if self.labels is None else [self.labels[c] for c in self.positions]

    def number_of(self, column: Any) -> int | None:
        """Return the channel of the time column, from its name or number; None if there is none."""
        if column is None:
            return None
        return self.positions.index(
            column_number("time_column", column, self.labels, self.n_columns)
        )

    @abstractmethod
    def replaced(self, channel: int, values: Sequence[Array]) -> Any:
        """Return a copy of the container with new values of a channel."""


class _OfArray(_Channels):
    """The channels of a 3-D array, or of a 2-D array with one series of one channel per row."""

    def __init__(self, X: Any) -> None:
        self.X = X
        values = np.asarray(X)
        values = values[:, :, None] if values.ndim == 2 else values
        self.n_columns = values.shape[2]
        self.positions = list(range(self.n_columns))
        self.columns = [list(values[:, :, c]) for c in self.positions]

    def replaced(self, channel: int, values: Sequence[Array]) -> Any:
        if hasattr(self.X, "columns"):  # a table of one series per row
            return type(self.X)(np.stack(values), index=self.X.index, columns=self.X.columns)
        one = np.array(self.X)
        one[(slice(None), slice(None), channel)[: one.ndim]] = np.stack(values)
        return one


class _OfItems(_Channels):
    """The channels of a list, or an object array, of sequences."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.labels = list(X[0].columns) if hasattr(X[0], "columns") else None
        tables = [np.asarray(item) for item in X]
        tables = [table[:, None] if table.ndim == 1 else table for table in tables]
        self.n_columns = tables[0].shape[1]
        self.positions = list(range(self.n_columns))
        self.columns = [[table[:, c] for table in tables] for c in self.positions]

    def replaced(self, channel: int, values: Sequence[Array]) -> Any:
        items = [
            with_columns(item, {channel: new}) for item, new in zip(self.X, values, strict=True)
        ]
        if isinstance(self.X, np.ndarray):
            packed = np.empty(len(items), dtype=object)
            packed[:] = items
            return packed
        return items


class _OfTable(_Channels):
    """The channels of a table whose sequences have an id column or a MultiIndex."""

    def __init__(self, X: Any, sequence_column: Any) -> None:
        self.X = X
        self.labels = list(X.columns) if hasattr(X, "columns") else None
        self.n_columns = np.shape(X)[1]
        if sequence_column is None:
            ids, of_ids = X.index.droplevel(-1).to_numpy(), None
        else:
            of_ids = column_number("sequence_column", sequence_column, self.labels, self.n_columns)
            ids = column_values(X, of_ids)
        self.positions = [c for c in range(self.n_columns) if c != of_ids]
        cuts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
        self.columns = [np.split(column_values(X, c), cuts) for c in self.positions]

    def replaced(self, channel: int, values: Sequence[Array]) -> Any:
        return with_columns(self.X, {self.positions[channel]: np.concatenate(values)})


def _channels_of(X: Any, sequence_column: Any) -> _Channels:
    several_levels = n_levels(X) > 1
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        return _OfItems(X)
    if isinstance(X, (list, tuple)):
        return _OfItems(X)
    if several_levels or (sequence_column is not None and np.ndim(X) == 2):
        return _OfTable(X, None if several_levels else sequence_column)
    return _OfArray(X)
