"""Echo state network for whole sequences: one label for each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils.metaestimators import available_if

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.estimators.parameters import attributes_of, documented
from reservoir.estimators.sequences.feature_parameters import shared_with_readout as shared
from reservoir.estimators.sequences.sequence_readout import SequenceReadout, UniqueSequences
from reservoir.estimators.targets import Labels, readout_has
from reservoir.readouts.temperature import fitted_temperature, log_probabilities, probabilities

__all__ = ["ESNSequenceClassifier"]


@saved
@documented(FITTED=attributes_of(SequenceReadout))
@dataclass(eq=False, repr=False, kw_only=True)
class ESNSequenceClassifier(ClassifierMixin, SequenceReadout):
    """Echo state network that predicts one label per sequence.

    `ReservoirFeatures` turn each sequence into a vector of features. These are standardised, and
    ridge regression predicts labels coded as -1 and +1, with one column per class; the class with
    the largest score is predicted. There are usually more features than sequences: features that
    distinguish the classes on their own are therefore penalised less (`relevance_weights`), and the
    penalty is chosen on held-out sequences. The scores of held-out sequences also serve to
    calibrate probabilities. If `readout` is set, this classifier replaces the ridge regression.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, in the order of the columns of `predict_proba`.
    temperature_ : float
        Divisor of the scores in the softmax that gives probabilities: fitted by maximum
        likelihood on the scores of held-out sequences.
    {FITTED}

    See Also
    --------
    ESNSequenceRegressor : Predicts numbers instead of labels.
    ReservoirFeatures : Computes the features alone.
    ESNClassifier : Predicts one label per time step.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNSequenceClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["slow", "fast"], 20)
    >>> step = {"slow": 0.3, "fast": 0.4}
    >>> waves = [np.sin(np.arange(rng.integers(40, 80)) * step[label]) for label in y]
    >>> clf = ESNSequenceClassifier(100, random_state=0).fit(waves[:20], y[:20])
    >>> clf.score(waves[20:], y[20:])
    1.0
    >>> clf.predict_proba(waves[20:]).shape
    (20, 2)
    """

    class_weight: Any = shared.class_weight

    def _coding(self) -> Labels:
        return Labels(per_sequence=True, single=True)

    def _check(self) -> None:
        super()._check()
        if self.readout is not None and not is_classifier(self.readout):
            raise TypeError(
                f"readout={self.readout!r} is not a classifier. Use a classifier, such as "
                "LogisticRegression, or use ESNSequenceRegressor to predict numbers."
            )

    def _learn_from_left_out(
        self, left_out: Array, cases: UniqueSequences, targets: Array, weights: Array | None
    ) -> None:
        self._warn_of_single_members(targets)
        # equal sequences of one label are one row, as in the ridge
        used = cases.used & np.isfinite(left_out[0, cases.place]).all(axis=1)
        pairs = np.column_stack([cases.place[used], targets[used]])
        pairs, which = np.unique(pairs, axis=0, return_inverse=True)
        total = np.bincount(which.ravel(), None if weights is None else weights[used])
        scores = left_out[:, pairs[:, 0].astype(int)]
        each = [fitted_temperature(of_deal, pairs[:, 1:], total) for of_deal in scores]
        self.temperature_ = float(np.exp(np.mean(np.log(each))))

    def _warn_of_single_members(self, targets: Array) -> None:
        """Warn if a class has one sequence: a fit without it cannot predict the class.

        Copies count and weights do not, as in scikit-learn's warnings of small classes.
        """
        labels, counts = np.unique(self._targets.decode(targets), return_counts=True)
        single = labels[counts == 1].tolist()
        if single:
            others = f" (one of {len(single)} such classes)" if len(single) > 1 else ""
            warnings.warn(
                f"Class {single[0]!r} has 1 sequence in fit{others}: while it is held out, no "
                "example of the class is left to learn from. Its probability cannot be estimated "
                "from held-out sequences, and temperature_ and alpha_ count an error for it. Use "
                "at least 2 sequences of each class, or remove the class.",
                UserWarning,
                stacklevel=caller_level(),
            )

    @available_if(readout_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences, n_classes), or (n_sequences,) for two classes
            For two classes, a positive score means ``classes_[1]``. If X is a table and y had one
            entry per row in fit, the result has one entry per row of X.
        """
        sequences = self._read_again(X)
        values = self._values(
            "decision_function", sequences, lambda rows: rows[:, 0] if rows.shape[1] == 1 else rows
        )
        return self._as_given(values, sequences)

    @available_if(readout_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes: the softmax of the scores over `temperature_`.

        If `readout` is set, the result is returned by its `predict_proba`.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences, n_classes)
            If X is a table and y had one entry per row in fit, the result has one row per row of X.
        """
        sequences = self._read_again(X)
        values = self._values(
            "predict_proba", sequences, lambda rows: probabilities(rows, self.temperature_)
        )
        return self._as_given(values, sequences)

    @available_if(readout_has("predict_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of the classes; -inf for a probability of 0.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences, n_classes)
            The logarithms of `predict_proba`.
        """
        return log_probabilities(self.predict_proba(X))

    score = SequenceReadout.score
