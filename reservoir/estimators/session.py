"""Sessions that follow one sequence from chunk to chunk: their state and their position."""

from __future__ import annotations

from typing import Any

from sklearn.utils._set_output import _wrap_data_with_container

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import check_choice
from reservoir.estimators.progress import Ended, warn_of_session_gap


class Session:
    """Base class of sessions, with the state and the position in the sequence.

    `ended` are the ends of the indexes of X and y in training.
    """

    _beyond = False  # whether a warning of rows beyond the training range was issued

    def __init__(self, estimator: Any, initial_state: Any, ended: Ended) -> None:
        if isinstance(initial_state, str):
            check_choice("initial_state", initial_state, ("last", "steady", "zeros"))
        self._estimator = estimator
        self._initial_state = initial_state
        self.state: Array | None = None
        self._id: Any = None
        self._ended = ended

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be saved and pickled."""
        return dict(vars(self))

    @property
    def _current(self) -> Any:
        """The estimator that reads and runs."""
        return self._estimator

    def _read(self, X: Any, y: Any = None) -> Sequences:
        """Return the one sequence of a chunk."""
        estimator = self._current
        sequences: Sequences = estimator._reader.inputs(estimator, X, y)
        if sequences.container != "table" or len(sequences) != 1:
            raise ValueError(
                "A session follows one sequence, so a chunk must be a table of its next rows; this "
                f"chunk contains {len(sequences)} sequence(s). Pass one sequence at a time, and "
                "call reset between sequences, or pass them all to the estimator."
            )
        if self._id is not None and sequences.ids != self._id:
            raise ValueError(
                "A session follows one sequence, but the chunk belongs to another sequence than "
                f"the rows before it: to {sequences.name(0)}. Begin a new sequence by "
                f"`session.reset()`."
            )
        if y is None and not self._beyond:  # rows with targets are to be learned
            self._beyond = estimator._reader.warn_of_rows_beyond(estimator, sequences)
        return sequences

    def _warn_of_gap(self, sequences: Sequences) -> None:
        """Warn if the index shows that rows do not follow the rows before."""
        if self.state is not None:
            warn_of_session_gap(self._ended, sequences)

    def _move(self, sequences: Sequences, state: Array) -> None:
        """Record the end of rows that have been run over."""
        x, y = sequences.times.ended(self._ended)
        if self.state is not None and x and x.plain:
            x = None  # numbered from 0 in each chunk: gives no position
        self.state, self._id, self._ended = state, sequences.ids, (x, y)

    def reset(self) -> None:
        """Return to the initial state: the next rows begin a new sequence."""
        self.state, self._id = None, None


@saved
class StateStream(Session):
    """Session that transforms chunk by chunk; made by ``transformer.stream()``.

    The session starts from the fitted transformer, which it does not change. It can be copied,
    pickled and saved.

    Parameters
    ----------
    transformer : fitted ReservoirTransformer
    initial_state : {"last", "zeros", "steady"} or array, default="last"
        The state before the first row: the end of `fit` and `partial_fit`, or as in the
        transformer; an array may have the shape of `state_`.

    Attributes
    ----------
    state : array of the shape of `state_`, or None
        The state at the end of the last chunk; None before the first chunk.

    See Also
    --------
    reservoir.ReservoirTransformer.partial_fit : Moves the end from which `transform` continues.

    Examples
    --------
    The session of a transformer and that of the network behind it, which learns:

    >>> from reservoir import ESNRegressor, ReservoirTransformer
    >>> from reservoir.datasets import narma
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = narma(700, random_state=0)
    >>> esn = ESNRegressor(50, random_state=1)
    >>> pipe = make_pipeline(ReservoirTransformer(50, random_state=0), esn).fit(X[:500], y[:500])
    >>> states, session = pipe[0].stream(), pipe[-1].stream()
    >>> for t in range(500, 700):
    ...     row = states.transform(X[t : t + 1])
    ...     guess = session.predict(row)
    ...     session = session.learn(row, y[t : t + 1])
    >>> bool(session.score_ > 0.5)
    True
    """

    def __init__(self, transformer: Any, initial_state: Any = "last") -> None:
        super().__init__(transformer, initial_state, transformer._progress.ended)

    def transform(self, chunk: Any) -> Any:
        """Return the states in the next rows of one series.

        Parameters
        ----------
        chunk : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_units), or the container of the transformer's `set_output`

        Raises
        ------
        ValueError
            If the chunk contains several sequences, or its id differs from the id of earlier rows:
            a session follows one sequence.

        Warns
        -----
        UserWarning
            If the index shows that the rows do not follow the rows before.
        """
        transformer, sequences = self._estimator, self._read(chunk)
        self._warn_of_gap(sequences)
        start = self.state
        if start is None:
            (start,) = transformer._starts(sequences, self._initial_state)
        (states,), (end,) = transformer._run(sequences, [start])
        self._move(sequences, end)
        return _wrap_data_with_container("transform", states, chunk, transformer)
