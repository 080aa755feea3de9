"""Recurrent networks trained on labels, with scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    check_choice,
    check_switch,
    read_labels,
    read_last_labels,
    read_last_weights,
    read_weights,
    refuse_one_row,
)
from reservoir.estimators._docs import COLUMN, describe
from reservoir.estimators._engine import join
from reservoir.estimators._rnn import BaseRNN
from reservoir.estimators._rnn_docs import FITTED_RNN, NETWORK, TRAINING
from reservoir.estimators._sequence import check_classes, index_of_labels

__all__ = ["RNNClassifier"]


def _has_probabilities(classifier: RNNClassifier) -> bool:
    if hasattr(classifier, "network_"):
        return classifier.network_.output == "softmax"
    return classifier.loss != "hinge"


@describe(
    NETWORK=NETWORK[: NETWORK.index("output :")]
    + NETWORK[NETWORK.index("loss :") :].replace(
        NETWORK[NETWORK.index("loss :") : NETWORK.index("init :")],
        """loss : {"auto", "cross_entropy", "hinge"}, default="auto"
    "auto" is the cross-entropy of the softmax; the hinge takes each class against the rest.
""",
    ),
    TRAINING=(
        TRAINING[: TRAINING.index("refit_readout :")]
        + TRAINING[TRAINING.index("include_input :") :]
    ).replace("(squared errors only,", "(squared errors only: not for this estimator;"),
    COLUMN=COLUMN,
    FITTED_RNN=FITTED_RNN,
)
class RNNClassifier(ClassifierMixin, BaseRNN):
    """Recurrent network with every weight trained, for labels.

    One label per time step or, with ``target="last"``, one per sequence. The network, its start and
    its training are those of `RNNRegressor`, under a softmax.

    Parameters
    ----------
    {NETWORK}
    {TRAINING}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    {COLUMN}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    {FITTED_RNN}

    See Also
    --------
    RNNRegressor : Numbers instead of labels.
    ESNClassifier : Only the readout is learned.

    Examples
    --------
    >>> from reservoir import RNNClassifier
    >>> from reservoir.datasets import sine_square
    >>> X, y = sine_square(1500, random_state=0)
    >>> clf = RNNClassifier(20, max_iter=5, random_state=0).fit(X[:1000], y[:1000])
    >>> clf.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _one_dimensional = False

    def __init__(
        self,
        n_units: int = 64,
        *,
        cell: Any = "rnn",
        activation: str = "tanh",
        leak_rate: Any = 0.3,
        loss: str = "auto",
        init: Any = "auto",
        solver: str = "adam",
        learning_rate_init: float = 1e-3,
        learning_rate: str = "constant",
        max_iter: int = 200,
        batch_size: Any = "auto",
        truncation: Any = "auto",
        clip_norm: float | None = 1.0,
        alpha: float = 0.0,
        l1: float = 0.0,
        gradient_control: Any = 0.0,
        include_input: bool = False,
        target: str = "step",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        online: str = "bptt",
        online_window: int = 300,
        washout: Any = "auto",
        initial_state: Any = "last",
        class_weight: Any = None,
        sequence_column: Any = None,
        warm_start: bool = False,
        dtype: Any = "float64",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_units = n_units
        self.cell = cell
        self.activation = activation
        self.leak_rate = leak_rate
        self.loss = loss
        self.init = init
        self.solver = solver
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.truncation = truncation
        self.clip_norm = clip_norm
        self.alpha = alpha
        self.l1 = l1
        self.gradient_control = gradient_control
        self.include_input = include_input
        self.target = target
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.online = online
        self.online_window = online_window
        self.washout = washout
        self.initial_state = initial_state
        self.class_weight = class_weight
        self.sequence_column = sequence_column
        self.warm_start = warm_start
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _output_and_loss(self) -> tuple[str, str]:
        loss = check_choice("loss", self.loss, ("auto", "cross_entropy", "hinge"))
        return ("identity", "hinge") if loss == "hinge" else ("softmax", "cross_entropy")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNNClassifier:
        """Start the network, and train it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Two rows at least.
        y : array of shape (n_samples,), or one such array per sequence
            Labels, one per row; with ``target="last"`` (n_sequences,), one per sequence.
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            With ``target="last"`` (n_sequences,).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As `RNNRegressor.fit`.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As `RNNRegressor.fit`.
        """
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=True)
            refuse_one_row(self, sequences)
            check_switch("warm_start", self.warm_start)
            labels = self._read_labels(y, sequences)
            before = getattr(self, "classes_", None)
            self.classes_ = check_classes(np.unique(np.concatenate(labels)))
            if self.warm_start and before is not None and not np.array_equal(before, self.classes_):
                raise ValueError(
                    f"warm_start=True goes on with the classes {before.tolist()}; y holds "
                    f"{self.classes_.tolist()}. Use warm_start=False."
                )
            last = self.target == "last"
            weights = (read_last_weights if last else read_weights)(sample_weight, sequences)
            if self.class_weight is not None:
                every = compute_sample_weight(self.class_weight, np.concatenate(labels))
                parts = np.split(every, np.cumsum([len(part) for part in labels])[:-1])
                given = [np.ones(1)] * len(parts) if weights is None else weights
                weights = [a * b for a, b in zip(parts, given, strict=True)]
            targets = [self._encode(part, self.loss) for part in labels]
            if last:
                targets = [rows[0] for rows in targets]
            self._fit(sequences, targets, weights, X, y)
        return self

    def _read_labels(self, y: Any, sequences: Sequences) -> list[Array]:
        read = read_last_labels if self.target == "last" else read_labels
        labels = read(self, y, sequences)
        check_classification_targets(np.concatenate(labels))
        return labels

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, new_sequence: bool = False
    ) -> RNNClassifier:
        """Learn online from the next rows; see `RNNRegressor.partial_fit`.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All labels that will ever come; needed in the first call unless its y has them all.
        new_sequence : bool, default=False

        Returns
        -------
        self
        """
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} is not supported by partial_fit, which sees "
                "one chunk at a time. Use fit, or class_weight=None."
            )
        first = not hasattr(self, "params_")
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=first)
            labels = self._read_labels(y, sequences)
            if first:
                self.classes_ = check_classes(
                    np.unique(np.concatenate(labels) if classes is None else classes)
                )
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes={classes!r} are not those of the first call, "
                    f"{self.classes_.tolist()}."
                )
            loss = self.loss if first else self.network_.loss
            targets = [self._encode(part, loss) for part in labels]
            self._partial_fit(sequences, targets, X, y, first=first, new_sequence=new_sequence)
        return self

    def _encode(self, labels: Array, loss: str) -> Array:
        """Return one column per class, 1 for the label's and 0, or -1 for the hinge, elsewhere."""
        index = index_of_labels(labels, self.classes_)
        low = -1.0 if isinstance(loss, str) and loss == "hinge" else 0.0
        return np.where(index[:, None] == np.arange(len(self.classes_)), 1.0, low)

    def _values(self, X: Any, initial_state: Any, transform: Any) -> tuple[Any, Any]:
        self._check_fitted()
        sequences = self._read(X, reset=False)
        outputs, states = self._outputs(sequences, initial_state)
        values = self._restore([transform(rows) for rows in outputs], sequences)
        return values, self._pack_states(states, sequences)

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Return one label per row of X, or per sequence with ``target="last"``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        labels : array of shape (n_samples,), or sequences
        state : array of shape (state_size,), or one row per sequence
            Where the run ended; only if `return_state`.

        Warns
        -----
        UserWarning
            As `ESNRegressor.predict`.
        """
        values = self._values(X, initial_state, lambda rows: self.classes_[rows.argmax(axis=1)])
        return values if return_state else values[0]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the probabilities of the classes, as the network has learned them.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or sequences
            With ``target="last"`` (n_sequences, n_classes). Not offered with ``loss="hinge"``.
        """
        return self._values(X, initial_state, _rows_that_sum_to_one)[0]

    def decision_function(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the scores of the classes: log probabilities, or with the hinge its margins.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes; or sequences
            For two classes the difference of their scores: positive means ``classes_[1]``.
        """

        def scores(rows: Array) -> Array:
            if self.network_.output == "softmax":
                rows = np.log(np.maximum(rows, np.finfo(rows.dtype).tiny))
            return rows[:, 1] - rows[:, 0] if rows.shape[1] == 2 else rows

        return self._values(X, initial_state, scores)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, over all rows of all sequences.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Where X has no index, that of y tells whether the rows follow training.

        Returns
        -------
        float
        """
        start = None if self._last else self._starts_of_score(X, y)
        predicted = self.predict(X, initial_state=start)
        if not self._last:
            y, predicted, sample_weight = (join(v, X) for v in (y, predicted, sample_weight))
        return accuracy_score(y, predicted, sample_weight=sample_weight)


def _rows_that_sum_to_one(rows: Array) -> Array:
    return rows / rows.sum(axis=1, keepdims=True)
