"""A session that keeps its state from chunk to chunk, and learns while it runs.

A `SessionLearner` learns for it, and `PendingRows` keeps rows until their targets arrive.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._tables.targets import read_weights
from reservoir._typing import Array
from reservoir._validation import advising, caller_level, check_number, check_switch
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.session import Session
from reservoir.readouts.contract import KeepsWeights


@dataclass(frozen=True)
class NewRows:
    """Rows of the sequence that a session learns from, in their order.

    `rows`, `targets` and `weights` are (n_rows, n_features), (n_rows, n_outputs) and (n_rows,) or
    None, and `start` is the state before the first row. The first `skip` rows are run over only.
    `follows` tells whether the rows follow the rows that were learned from last.
    """

    rows: Array
    targets: Array
    weights: Array | None
    start: Array
    skip: int
    follows: bool


class SessionLearner(KeepsWeights):
    """Online learner of a session, with all that it has learned.

    A learner contains only arrays and plain objects, so that it can be saved. It never contains the
    estimator: each method receives the estimator of the session, a shallow copy of the user's. New
    attributes may be set on this copy, but the objects in its attributes are shared and must not be
    changed.
    """

    @abstractmethod
    def learn(self, estimator: Any, new: NewRows) -> Array:
        """Learn from rows of the sequence, and return the state after them."""

    @abstractmethod
    def settle(self, estimator: Any) -> None:
        """Set the fitted attributes of the estimator, as learned from all rows so far."""

    @abstractmethod
    def finish(self, estimator: Any, *, complete: bool) -> None:
        """Prepare an estimator for `partial_fit`; this learner must not be used afterwards.

        `complete` states whether the last rows that the session has run over were learned from.
        """

    def _without(self, what: str) -> str:
        return (
            f"{what} is not available: {type(self).__name__} keeps no weights of earlier rows. "
            "Echo state networks with the built-in ridge do."
        )


def rows_that_enter(targets: Array, weights: Array | None, skip: int) -> Array:
    """Return a mask of the rows after the washout with known targets and a positive weight."""
    enter = np.arange(len(targets)) >= skip
    if weights is not None:
        enter &= weights > 0
    if targets.dtype.kind == "f":
        enter &= ~np.isnan(targets).any(axis=1)
    return enter


@saved
class Chunk:
    """Rows that were predicted together, (n_rows, n_features), and the state before them.

    `first` is the number of the first row, counted over all rows of the session. `outputs`,
    (n_rows, ...), are what the readout predicted.
    """

    def __init__(self, first: int, rows: Array, state: Array, outputs: Array) -> None:
        self.first, self.rows, self.state, self.outputs = first, rows, state, outputs

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + len(self.rows)


@saved
class PendingRows:
    """The latest rows that a session has run over but not learned from, in order.

    Rows are found by their values, in a time that hardly depends on the number of waiting rows.
    `most` rows are kept, and the last chunk is kept whole.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._build([])

    def _build(self, chunks: list[Chunk]) -> None:
        self.chunks: deque[Chunk] = deque(chunks)
        self._n_rows = sum(len(chunk.rows) for chunk in chunks)
        # an index of the first rows, extended when it is needed: their values in order, and the
        # numbers of the rows that have a value
        self._keys: deque[bytes] = deque()
        self._numbers: dict[bytes, deque[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be saved."""
        return {"most": self.most, "chunks": list(self.chunks)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        chunks = state["chunks"]
        if any(later.first != chunk.end for chunk, later in itertools.pairwise(chunks)):
            raise ValueError("the chunks of waiting rows are not consecutive")
        self.most = state["most"]
        self._build(chunks)

    def __len__(self) -> int:
        return self._n_rows

    @property
    def end(self) -> int | None:
        """The number of the row after the last one; None if no rows wait."""
        return self.chunks[-1].end if self.chunks else None

    def add(self, chunk: Chunk) -> None:
        """Add rows that follow the waiting ones."""
        self.chunks.append(chunk)
        self._n_rows += len(chunk.rows)
        while len(self.chunks) > 1 and self._n_rows - len(self.chunks[0].rows) >= self.most:
            self.drop_before(self.chunks[1].first)

    def find(self, rows: Array) -> Iterator[int]:
        """Yield the numbers of the first rows of all matches, the oldest first."""
        if not 0 < len(rows) <= self._n_rows:
            return
        first = self.chunks[0]
        if len(first.rows) == len(rows) == self._n_rows:
            if np.array_equal(first.rows, rows):
                yield first.first
            return
        self._index()
        keys = list(_keys_of(rows))
        last = self.chunks[-1].end - len(keys)
        for number in self._numbers.get(keys[0], ()):
            if number > last:
                return
            at = number - first.first
            if all(self._keys[at + i] == keys[i] for i in range(1, len(keys))):
                yield number

    def match(self, rows: Array, predicted: bool | None) -> int | None:
        """Return the number of the first waiting row that matches; None if the rows are new.

        `predicted` states whether the rows have been predicted; with None their values determine
        it.
        """
        if predicted is not None:
            check_switch("predicted", predicted)
        if predicted is False:
            return None
        found = list(itertools.islice(self.find(rows), 2))
        if not found:
            if predicted:
                raise ValueError(
                    f"predicted=True, but the {len(self)} rows that wait for their targets do not "
                    f"contain these {len(rows)} rows consecutively. Rows wait from predict "
                    "until they, or later rows, are learned from. Omit predicted for rows that "
                    "were not predicted."
                )
            return None
        if len(found) > 1 and predicted is None:
            warnings.warn(
                "Rows equal to these have been predicted several times and wait for their targets: "
                "the oldest are learned from. Set predicted=True if that is right, or "
                "predicted=False if these are new rows.",
                UserWarning,
                stacklevel=caller_level(),
            )
        return found[0]

    def _index(self) -> None:
        """Add all rows that are missing in the index."""
        done = self.chunks[0].first + len(self._keys)
        for chunk in self.chunks:
            if chunk.end > done:
                rows = chunk.rows[max(done - chunk.first, 0) :]
                for number, key in enumerate(_keys_of(rows), max(done, chunk.first)):
                    self._keys.append(key)
                    self._numbers.setdefault(key, deque()).append(number)

    def chunk_of(self, number: int) -> Chunk:
        """Return the chunk that contains a row."""
        return next(chunk for chunk in self.chunks if number < chunk.end)

    def outputs(self, begin: int, end: int) -> Array:
        """Return the outputs of rows at the time when they were run over."""
        parts = []
        for chunk in self.chunks:
            if chunk.first >= end:
                break
            if chunk.end > begin:
                parts.append(chunk.outputs[max(begin - chunk.first, 0) : end - chunk.first])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def drop_before(self, number: int, state: Array | None = None) -> None:
        """Drop all rows before one, and replace the state before it if `state` is given."""
        while self.chunks and self.chunks[0].first < number:
            chunk = self.chunks.popleft()
            n_dropped = min(number, chunk.end) - chunk.first
            self._n_rows -= n_dropped
            for _ in range(min(n_dropped, len(self._keys))):
                key = self._keys.popleft()
                self._numbers[key].popleft()
                if not self._numbers[key]:
                    del self._numbers[key]
            if n_dropped < len(chunk.rows):
                rest = Chunk(number, chunk.rows[n_dropped:], chunk.state, chunk.outputs[n_dropped:])
                self.chunks.appendleft(rest)
        if self.chunks and state is not None:
            self.chunks[0].state = state

    def drop_from(self, number: int) -> None:
        """Drop all chunks from a row on; none of their rows may be in the index."""
        while self.chunks and self.chunks[-1].first >= number:
            self._n_rows -= len(self.chunks.pop().rows)

    def clear(self) -> None:
        """Drop all rows."""
        self._build([])


def _keys_of(rows: Array) -> Iterator[bytes]:
    """Yield the values of each row as one key, with -0 equal to 0."""
    rows = np.ascontiguousarray(rows + 0.0)
    return (row.tobytes() for row in rows)


_MOST_WAITING = 10_000  # rows that are kept for delayed targets


def _has_probabilities(session: Stream) -> bool:
    return hasattr(session._current, "predict_proba")


@saved
class Stream(Session):
    """Session that predicts chunk by chunk and learns online; made by ``estimator.stream()``.

    A session starts from the fitted estimator, and its method `learn` then trains it independently:
    the estimator is not changed, and sessions do not affect each other.

    The session trains the readout. It updates the built-in ridge row by row, with the penalty and
    the forgetting of the estimator; it trains a custom `readout` by the ``partial_fit`` of the
    readout. In trained networks it trains all weights, as their ``partial_fit`` does.

    Parameters
    ----------
    estimator : fitted ESNRegressor, ESNClassifier, NVARRegressor, RNNRegressor or RNNClassifier
    initial_state : {"last", "zeros", "steady"} or array, default="last"
        The state before the first row, as in `predict`; an array may have the shape of `state_`.
    score_forgetting : float in (0, 1], default=0.999
        Factor by which each scored row multiplies the weights of earlier rows in `score_`. The
        default corresponds to about 1000 rows: with fewer rows R^2 is noisy, and with many more it
        would react to a drift too late. 1.0 gives all rows the same weight.
    callback : callable, optional
        ``callback(session)`` is called after each `learn`; its return value is not used. It may set
        `forgetting`, or call `forget` or `reset`, but not `learn`. It is not pickled or saved: set
        it again on a loaded session, ``session.callback = f``.

    Attributes
    ----------
    state : array of the shape of `state_`, or None
        The state at the end of the last chunk; None before the first chunk.
    score_ : float
        Score (R^2 or accuracy) of the predictions, each made before its target was learned [1]_. It
        is not available until one row (for R^2, two rows) has been scored.
    n_learned_ : int
        Number of rows learned from, excluding washout rows, rows of weight 0 and rows without a
        target.
    last_errors_ : array of shape (n_rows,) or (n_rows, n_outputs)
        Errors of the rows that the last call of `learn` learned from: target minus prediction, or
        for labels 1 where the prediction was wrong and 0 where it was right.
    forgetting : float
        Factor by which each learned row multiplies the weights of all rows before it; it may be
        set. Available only if the readout supports it.

    See Also
    --------
    reservoir.ESNRegressor.partial_fit : Learns from chunks, without a session.

    Notes
    -----
    Each row is learned once. With ``guess = session.predict(x)`` and then ``session.learn(x, y)``
    the session recognises the rows that it has predicted by their values; see `learn`.

    If the session does not start from the state at the end of training, and after each `reset`, it
    runs over the first rows without learning from them; their number is the washout of the
    estimator.

    With ``forgetting < 1`` the penalty of each coefficient decays with the rows, to no less
    than a tenth, and is then restored. In `partial_fit` it does not decay, so that outputs differ
    if little is remembered; neither is better in general.

    The temperature of a classifier's probabilities and a selected penalty are not changed.
    `partial_fit` of the estimator that `to_estimator` returns fits both again, from all rows.

    References
    ----------
    .. [1] J. Gama, R. Sebastiao and P. P. Rodrigues, "On evaluating stream learning algorithms",
       Machine Learning 90, 2013: prequential errors with fading factors.

    Examples
    --------
    A plant whose gain falls by half while it runs:

    >>> import numpy as np
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import narma
    >>> X, y = narma(1000, random_state=0)
    >>> y[500:] *= 0.5
    >>> esn = ESNRegressor(50, random_state=0).fit(X[:300], y[:300])
    >>> session = esn.stream(score_forgetting=0.99)
    >>> session.forgetting = 0.99
    >>> for t in range(300, 1000):
    ...     guess = session.predict(X[t : t + 1])  # before the target is known
    ...     session = session.learn(X[t : t + 1], y[t : t + 1])
    >>> session.n_learned_, session.score_ > 0.6, esn.score(X[700:], y[700:]) < 0
    (700, True, True)

    A drift detector, such as `river.drift.ADWIN`, makes it forget at once:

    >>> def watch(session):
    ...     for error in np.abs(session.last_errors_):
    ...         detector.update(error)
    ...     if detector.drift_detected:
    ...         session.forget(0.1)
    >>> session = esn.stream(callback=watch)
    """

    def __init__(
        self,
        estimator: Any,
        initial_state: Any = "last",
        *,
        score_forgetting: float = 0.999,
        callback: Callable[[Stream], Any] | None = None,
    ) -> None:
        fading = check_number("score_forgetting", score_forgetting, low=0, high=1, low_open=True)
        if callback is not None and not callable(callback):
            raise TypeError(
                f"callback must be a function of the session, or None; got {callback!r}."
            )
        super().__init__(estimator, initial_state, estimator._model.progress.ended)
        self.callback = callback
        self.n_learned_ = 0
        self.last_errors_: Array = np.zeros(0)
        self._score = estimator._reader.targets.running_score(fading)
        # from the first call of `learn` on: a copy of the estimator, and its learner
        self._own: Any = None
        self._learner: SessionLearner | None = None
        # the position of the session: the number of rows run over, the numbers of the sequence's
        # first row and of the row after the last one learned from, and its steps before that row
        self._n_run = self._first = self._learned_to = self._steps_before = 0
        self._anew = False  # whether `reset` was called, and no row has been run over since
        self._ended_before = self._ended
        self._waiting = PendingRows(_MOST_WAITING)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be saved and pickled: all attributes except the callback."""
        return {**vars(self), "callback": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # copied, because joblib may map the arrays of a file read-only, and `learn` writes to them
        vars(self).update(state, _learner=copy.deepcopy(state["_learner"]))

    def __copy__(self) -> Stream:
        """Return a deep copy: a shallow one would learn together with this session."""
        return copy.deepcopy(self)

    # ------------------------------------------------------------------ predicting

    def predict(self, chunk: Any) -> Any:
        """Return the outputs of the next rows of one series.

        Parameters
        ----------
        chunk : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)

        Raises
        ------
        ValueError
            If the chunk contains several sequences, or its id differs from the id of earlier rows:
            a session follows one sequence.

        Warns
        -----
        UserWarning
            If the index shows that the rows do not follow the rows before; also in `learn`. Once
            in a session, if many rows are far outside the range in training, as in the estimator.
        """
        estimator = self._current
        sequences = self._read(chunk)
        decode, _ = estimator._predicts_by()
        return estimator._reader.present(estimator, decode(self._run(sequences)), chunk, sequences)

    @available_if(_has_probabilities)
    def predict_proba(self, chunk: Any) -> Any:
        """Predict the next rows, and return the probabilities of their classes.

        As in `predict`, the session runs over the rows, which then wait for their labels: call one
        or the other. `score_` scores the labels that `predict` would return.

        Parameters
        ----------
        chunk : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            As from `predict_proba` of the estimator; available if the estimator has it.
        """
        estimator = self._current
        sequences = self._read(chunk)
        outputs = self._run(sequences)
        decode, own = estimator._probabilities_by()
        if own is not None:  # a custom readout, whose outputs in `_run` are labels
            start = self._waiting.chunks[-1].state
            outputs = estimator._predictor().run_over(sequences, [start], own)[0][0]
        names = np.asarray(estimator.classes_).tolist()
        return estimator._reader.present(estimator, decode(outputs), chunk, sequences, names)

    @property
    def _current(self) -> Any:
        """The estimator, with the weights that the session has learned."""
        return self._estimator if self._own is None else self._own

    def _run(self, sequences: Sequences) -> Array:
        """Run over rows, which then wait for their targets, and return their outputs."""
        estimator = self._current
        start = self._begin_sequence(sequences) if self.state is None else self.state
        self._warn_of_gap(sequences)
        if self._learner is not None:
            self._learner.settle(estimator)
        predictor, outputs_of = estimator._predictor(), estimator._predicts_by()[1]
        outputs, states = predictor.run_over(sequences, [start], outputs_of)
        rows = sequences.arrays[0]
        self._waiting.add(Chunk(self._n_run, rows.copy(), start, outputs[0].copy()))
        self._n_run += len(rows)
        self._anew, self._ended_before = False, self._ended
        self._move(sequences, states[0])
        return outputs[0]

    def _begin_sequence(self, sequences: Sequences) -> Array:
        """Return the state before the first row, and record whether it continues from training."""
        predictor = self._current._predictor()
        start: Array = predictor.starts(self._initial_state, sequences)[0]
        last = predictor.end
        continues = not self._anew and last is not None and np.array_equal(start, last)
        self._first = self._n_run
        self._steps_before = self._estimator._model.progress.n_steps if continues else 0
        self._learned_to = self._n_run if continues else -1
        return start

    def reset(self) -> None:
        """Return to the initial state: the next rows begin a new sequence.

        The learned weights are kept. Rows that wait for their targets are dropped.
        """
        super().reset()
        self._anew = True
        self._waiting.clear()

    # ------------------------------------------------------------------ learning

    def learn(
        self, x: Any, y: Any, sample_weight: Any = None, *, predicted: bool | None = None
    ) -> Stream:
        """Learn from rows of the series and their targets.

        Rows that were predicted but not learned from wait for their targets; the last 10,000 are
        kept. If `x` equals consecutive waiting rows, the session learns from these rows (from the
        oldest of several matches), and drops the rows that waited before them. Targets may
        therefore arrive late, in the order of the rows, and in other chunks than the predictions.
        All other rows are new: they follow the last row, and the session runs over them first.

        With feedback weights, the session runs from the state before the rows with the targets fed
        back; `predict` then continues from the last target.

        Parameters
        ----------
        x : array of shape (n_samples, n_features)
            One or more rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            As in the estimator's `fit`. With ``missing_targets="skip"`` rows may have NaN.
        sample_weight : array of shape (n_samples,), optional
            Weight of each row, at least 0. A row of weight 0 is neither learned from nor scored.
        predicted : bool, optional
            Whether the rows have been predicted. True raises an error if they are not among the
            waiting rows; False treats them as new. By default they are compared with the waiting
            rows; set `predicted` if inputs repeat.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If rows, targets or weights are invalid, as in `fit`; if the estimator, or its
            `readout`, cannot learn row by row; if ``predicted=True`` and the rows do not wait. The
            session is then the same as before the call.

        Warns
        -----
        UserWarning
            If rows equal to `x` wait at several positions, and `predicted` is not given.
        """
        learner = self._prepare()
        estimator = self._own
        sequences = self._read(x, y)
        skips_missing = estimator._skips_missing()
        targets = estimator._reader.outputs(estimator, y, sequences, allow_nan=skips_missing)
        estimator._check_same_outputs(targets)
        read = read_weights(sample_weight, sequences, all_zero=True)
        weights = None if read is None else read[0]
        first = self._waiting.match(sequences.arrays[0], predicted)
        try:
            with advising(estimator._memory_advice()), restored_on_error(self):
                if first is None:
                    first = self._n_run
                    self._run(sequences)
                self._learn_at(learner, first, sequences, targets[0], weights)
        except BaseException:
            self._waiting.drop_from(self._n_run)
            raise
        if self.callback is not None:
            self.callback(self)
        return self

    def _prepare(self) -> SessionLearner:
        """Return the learner of the session; the first call makes it."""
        if self._learner is None:
            estimator = self._estimator
            estimator._check_fitted()
            if getattr(estimator, "class_weight", None) is not None:
                raise ValueError(
                    f"class_weight={estimator.class_weight!r} is not supported by a session, which "
                    "receives one chunk at a time. Use class_weight=None, and sample_weight in "
                    "learn."
                )
            estimator._reader.check_fixed(estimator)
            self._learner = estimator._session_learner()
            self._own = copy.copy(estimator)
            self._own._model = estimator._model.copy_for_session()
        return self._learner

    def _learn_at(
        self,
        learner: SessionLearner,
        first: int,
        sequences: Sequences,
        targets: Array,
        weights: Array | None,
    ) -> None:
        """Learn from waiting rows, of which the first one has number `first`."""
        estimator, rows = self._own, sequences.arrays[0]
        end, outputs = first + len(rows), self._waiting.outputs(first, first + len(rows))
        progress = estimator._model.progress
        steps = self._steps_before + first - self._first
        skip = min(max(progress.washout - steps, 0), len(rows))
        follows = first == self._learned_to
        start = self._state_before(first)
        state = learner.learn(estimator, NewRows(rows, targets, weights, start, skip, follows))
        # the new position; the state changes where targets were fed back
        newest = end == self._n_run
        self._waiting.drop_before(end, state)
        self._learned_to = end
        if newest:
            self.state = state
            if self._ended != (None, None):
                self._ended = self._ended[0], sequences.times.ended(self._ended_before)[1]
        progress.add(sequences, [targets], continues=follows and steps > 0)
        progress.n_steps = steps + len(rows)
        self._rate(rows_that_enter(targets, weights, skip), targets, outputs, weights)

    def _state_before(self, number: int) -> Array:
        """Return the state before a waiting row, given by its number."""
        chunk = self._waiting.chunk_of(number)
        if number == chunk.first:
            return chunk.state
        before = Sequences((chunk.rows[: number - chunk.first],), "table")
        state: Array = self._own._predictor().run_over(before, [chunk.state])[1][0]
        return state

    def _rate(self, entered: Array, targets: Array, outputs: Array, weights: Array | None) -> None:
        """Score predictions of rows that have been learned from."""
        if not entered.all():
            targets, outputs = targets[entered], outputs[entered]
            weights = None if weights is None else weights[entered]
        decode, _ = self._own._predicts_by()
        truth, predicted = self._own._reader.targets.decode(targets), decode(outputs)
        self.last_errors_ = self._score.errors(truth, predicted)
        if len(targets):
            self.n_learned_ += len(targets)
            self._score.add(truth, predicted, weights)

    @property
    def score_(self) -> float:
        """Score of the estimator for the predictions made before their targets were learned."""
        value = self._score.value()
        if value is None:
            raise AttributeError(
                f"score_ is not available yet: {self._score.n_rows} row(s) have been learned from, "
                f"and the {self._score.what} needs more. Call learn."
            )
        return value

    # ------------------------------------------------------------------ forgetting

    @property
    def forgetting(self) -> float:
        """Factor by which each learned row multiplies the weights of all rows before it."""
        return self._prepare().forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self._prepare().forgetting = value

    def forget(self, factor: float = 0.0) -> Stream:
        """Reduce the weight of all rows learned so far, at once.

        Parameters
        ----------
        factor : float in [0, 1], default=0.0
            Factor for the weights of all rows so far, including those of training. With 0 learning
            starts from scratch: outputs are 0 until rows are learned from. The penalty is kept.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If the learner keeps no weights of rows, as with gradient descent.
        """
        factor = check_number("factor", factor, low=0, high=1)
        self._prepare().forget(factor)
        return self

    # ------------------------------------------------------------------ the learned estimator

    def to_estimator(self) -> Any:
        """Return an estimator with the weights, the state and the position of the session.

        Its `predict`, `forecast`, `partial_fit` and `stream` continue after the last rows. If the
        last rows still wait for their targets, `forecast` uses the predicted outputs instead of
        these targets.

        Returns
        -------
        estimator
            Fitted, of the same class and with the same parameters as the estimator of the session.
            It is independent of the session.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNRegressor
        >>> from reservoir.datasets import narma
        >>> X, y = narma(600, random_state=0)
        >>> esn = ESNRegressor(50, random_state=0).fit(X[:400], y[:400])
        >>> session = esn.stream().learn(X[400:500], y[400:500])
        >>> rows = session.to_estimator().predict(X[500:])
        >>> bool(np.allclose(rows, session.predict(X[500:])))
        True
        """
        learner = copy.deepcopy(self._prepare())
        one = copy.copy(self._own)
        one._model = self._own._model.copy()
        progress = one._model.progress
        complete = self.state is None or self._learned_to == self._n_run
        if self.state is not None:
            one.state_ = np.array(self.state)
            progress.ended, progress.continues = self._ended, True
            progress.n_steps = self._steps_before + self._n_run - self._first
        if not complete:
            last = self._waiting.chunks[-1].outputs[-1]
            if last.dtype.kind == "f" and last.shape == progress.last_output.shape:
                progress.last_output = last.astype(np.float64)
            progress.last_is_target = False
        learner.finish(one, complete=complete)
        return one
