"""The echo state network for labels: one label per time step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from reservoir._typing import Array
from reservoir._validation import read_labels, read_weights, refuse_one_row
from reservoir.estimators._base import BaseESN
from reservoir.estimators._docs import COMMON, FITTED, READOUT, RESERVOIR, describe
from reservoir.estimators._engine import join
from reservoir.estimators._sequence import check_classes, index_of_labels

__all__ = ["ESNClassifier"]


def _readout_has(method: str) -> Callable[[ESNClassifier], bool]:
    """Return the check that the readout, if one was given, offers a method."""
    return lambda clf: clf.readout is None or hasattr(clf.readout, method)


@describe(
    RESERVOIR=RESERVOIR,
    READOUT=READOUT.replace("default=1e-6", "default=1e-2").replace(
        "    eigendecomposition (per block).\n",
        "    eigendecomposition (per block). More than the regressor's: labels are coarse,\n"
        "    and a readout that interpolates them does not heed class weights.\n",
    ),
    COMMON=COMMON,
    FITTED=FITTED,
)
class ESNClassifier(ClassifierMixin, BaseESN):
    """Echo state network that gives one label per time step.

    A ridge readout on labels coded as -1 and +1, one column per class, as scikit-learn's
    RidgeClassifier; the largest score wins. With ``readout=`` any classifier on the states.

    Rows of X are time steps; several sequences as in `ESNRegressor`.

    Parameters
    ----------
    {RESERVOIR}
    {READOUT}
    {COMMON}
    verbose : int, default=0
        1 shows a progress line.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, Generator, RandomState or None, default=None
        Seed of all weights and of the noise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    {FITTED}

    See Also
    --------
    ESNRegressor : Numbers instead of labels.

    Examples
    --------
    >>> from reservoir import ESNClassifier
    >>> from reservoir.datasets import sine_square
    >>> X, y = sine_square(2000, random_state=0)
    >>> clf = ESNClassifier(100, random_state=0).fit(X[:1500], y[:1500])
    >>> clf.score(X[1500:], y[1500:]) > 0.95
    True
    """

    def __init__(
        self,
        n_units: int = 100,
        *,
        topology: Any = "random_sparse",
        in_degree: float = 10,
        weights: Any = "normal",
        input_weights: Any = "uniform",
        spectral_radius: float | None = 0.9,
        leak_rate: Any = 1.0,
        activation: Any = "tanh",
        input_scaling: Any = 1.0,
        bias: Any = "uniform",
        bias_scaling: float = 0.1,
        alpha: Any = 1e-2,
        alpha_selection: str = "gcv",
        alpha_per_target: bool = False,
        readout: Any = None,
        fit_intercept: bool = True,
        include_input: bool = True,
        washout: Any = "auto",
        initial_state: Any = "last",
        feedback: bool = False,
        feedback_scaling: Any = 1.0,
        noise: float = 0.0,
        sequence_column: Any = None,
        dtype: Any = "float64",
        n_jobs: int | None = None,
        verbose: int = 0,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_units = n_units
        self.topology = topology
        self.in_degree = in_degree
        self.weights = weights
        self.input_weights = input_weights
        self.spectral_radius = spectral_radius
        self.leak_rate = leak_rate
        self.activation = activation
        self.input_scaling = input_scaling
        self.bias = bias
        self.bias_scaling = bias_scaling
        self.alpha = alpha
        self.alpha_selection = alpha_selection
        self.alpha_per_target = alpha_per_target
        self.readout = readout
        self.fit_intercept = fit_intercept
        self.include_input = include_input
        self.washout = washout
        self.initial_state = initial_state
        self.feedback = feedback
        self.feedback_scaling = feedback_scaling
        self.noise = noise
        self.sequence_column = sequence_column
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ESNClassifier:
        """Build the reservoir, run it over X, and solve for the readout.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Two rows at least.
        y : array of shape (n_samples,), or one such array per sequence
            Labels, one per row.
        sample_weight : array of shape (n_samples,), or one per sequence, optional

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is refused; the message says why, and what to do. Dates in
            an index must increase within each sequence; y's index must be X's, or ahead of it by a
            constant offset; dates among the values are refused.

        Warns
        -----
        UserWarning
            If the dates of an index have no frequency: a row is one step, however long.
        """
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=True)
            refuse_one_row(self, sequences)
            labels = read_labels(self, y, sequences)
            check_classification_targets(np.concatenate(labels))
            self._set_classes(np.unique(np.concatenate(labels)))
            targets = [self._encode(part) for part in labels]
            weights = read_weights(sample_weight, sequences)
            if self.class_weight is not None:
                by_class = sequences.split(
                    compute_sample_weight(self.class_weight, np.concatenate(labels))
                )
                if weights is not None:
                    by_class = [a * b for a, b in zip(by_class, weights, strict=True)]
                weights = by_class
            self._fit(sequences, targets, weights)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, new_sequence: bool = False
    ) -> ESNClassifier:
        """Go on learning with the next chunk of rows; see `ESNRegressor.partial_fit`.

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
        first = not hasattr(self, "reservoir_")
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=first)
            labels = read_labels(self, y, sequences)
            check_classification_targets(np.concatenate(labels))
            if first:
                self._set_classes(np.unique(np.concatenate(labels) if classes is None else classes))
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes={classes!r} are not those of the first call, "
                    f"{self.classes_.tolist()}."
                )
            targets = [self._encode(part) for part in labels]
            self._partial_fit(sequences, targets, first=first, new_sequence=new_sequence)
        return self

    _one_dimensional = False  # coef_ has one row per score column

    def _set_classes(self, classes: Array) -> None:
        if hasattr(self.readout, "fit") and not is_classifier(self.readout):
            raise TypeError(
                f"readout={self.readout!r} is not a classifier. Use one, such as "
                "LogisticRegression, or ESNRegressor for numbers."
            )
        if self.readout is not None and self.feedback:
            raise ValueError(
                "feedback=True needs the built-in readout, whose scores are fed back. Use "
                "readout=None or feedback=False."
            )
        self.classes_ = check_classes(classes)

    def _encode(self, labels: Array) -> Array:
        """Return +-1 for each class and row; one column, of the second class, for two classes."""
        index = index_of_labels(labels, self.classes_)
        if len(self.classes_) == 2:
            return np.where(index == 1, 1.0, -1.0)[:, None]
        return np.where(index[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

    def _decode(self, Y: Array) -> Array:
        index = (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else np.argmax(Y, axis=1)
        return self.classes_[index]

    def _call_readout_fit(
        self, fit: Callable[..., Any], H: Array, Y: Array, known: dict[str, Any], partial: bool
    ) -> None:
        if partial:
            known["classes"] = self.classes_
        fit(H, self._decode(Y), **known)

    def _values(self, method: str, X: Any, initial_state: Any, return_state: bool = False) -> Any:
        """Return what a method says of every row: the built-in scores', or the readout's own."""
        self._check_fitted()
        sequences = self._read(X, reset=False)
        if not hasattr(self, "readout_"):
            outputs, states = self._outputs(sequences, initial_state)
            transform = {
                "predict": self._decode,
                "decision_function": lambda Y: Y[:, 0] if Y.shape[1] == 1 else Y,
                "predict_proba": _probabilities,
            }[method]
            outputs = [transform(scores) for scores in outputs]
        else:
            own = getattr(self.readout_, method)
            outputs, states = self._outputs(sequences, initial_state, own)
        values = sequences.restore(outputs)
        return (values, self._pack_states(states, sequences)) if return_state else values

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Return one label per row of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        labels : array of shape (n_samples,), or sequences
        state : array of shape (n_units [+ n_outputs],), or one row per sequence
            Where the run ended; only if `return_state`.

        Warns
        -----
        UserWarning
            As `ESNRegressor.predict`.
        """
        return self._values("predict", X, initial_state, return_state)

    @available_if(_readout_has("decision_function"))
    def decision_function(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the scores of the classes.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes; or sequences
            For two classes positive means ``classes_[1]``.
        """
        return self._values("decision_function", X, initial_state)

    @available_if(_readout_has("predict_proba"))
    def predict_proba(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the softmax of the scores; it is not calibrated.

        With a `readout` that has its own `predict_proba`, that. To calibrate, wrap the estimator
        in scikit-learn's CalibratedClassifierCV with time-ordered splits.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or sequences
        """
        return self._values("predict_proba", X, initial_state)

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
        predicted = join(self.predict(X, initial_state=self._starts_of_score(X, y)), X)
        return accuracy_score(join(y, X), predicted, sample_weight=join(sample_weight, X))


def _probabilities(scores: Array) -> Array:
    both = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
    return softmax(both, axis=1)
