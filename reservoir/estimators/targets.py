"""Targets of estimators: numbers or labels, per row or per sequence; running scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._tables.reading import as_table
from reservoir._tables.targets import (
    check_targets,
    plain_rows,
    read_labels,
    read_targets,
    read_weights,
)
from reservoir._typing import Array
from reservoir._validation import check_choice, check_number, check_unmasked


class TargetCoding(ABC):
    """Conversion of targets, one per row or sequence, to columns of numbers, and back."""

    one_dimensional = False  # whether outputs have no column axis
    classes: Array | None = None

    def __init__(self, *, per_sequence: bool = False) -> None:
        self.per_sequence = per_sequence

    @abstractmethod
    def read(
        self, estimator: Any, y: Any, sequences: Sequences, *, first: bool, **known: Any
    ) -> list[Array]:
        """Return the targets of each sequence as columns of numbers, (n_samples, n_outputs).

        With one target per sequence, the shape is (n_outputs,). The `first` targets determine the
        form of later ones, which is checked. The name of `estimator` appears in messages.
        """

    @abstractmethod
    def decode(self, columns: Array) -> Array:
        """Return outputs, (n_rows, n_outputs), in the form of y."""

    def truth(self, estimator: Any, y: Any, sequences: Sequences) -> Array:
        """Return y for scoring, one entry per sequence; labels unseen in fit are allowed."""
        return np.asarray(y)

    def for_readout(self, columns: Array) -> Array:
        """Return columns as targets of a scikit-learn estimator."""
        return self.decode(columns)

    def weights(
        self,
        sample_weight: Any,
        sequences: Sequences,
        targets: list[Array],
        class_weight: Any = None,
    ) -> list[Array] | None:
        """Return the weight of each target, by sequence; None if all are equal."""
        return read_weights(sample_weight, sequences, per_sequence=self.per_sequence)

    @staticmethod
    @abstractmethod
    def score(y: Any, predicted: Any, sample_weight: Any) -> float:
        """Return the score of predictions: 1 is the best."""

    def running_score(self, forgetting: float) -> RunningScore:
        """Return a running score of predictions: the accuracy by default."""
        return RunningAccuracy(forgetting)


@saved
class Numbers(TargetCoding):
    """Numeric targets, which are used as columns without conversion."""

    def read(
        self,
        estimator: Any,
        y: Any,
        sequences: Sequences,
        *,
        first: bool,
        allow_nan: bool = False,
        **known: Any,
    ) -> list[Array]:
        """Return the targets of each sequence, and store whether y is 1-D."""
        options = {"allow_nan": allow_nan, "per_sequence": self.per_sequence}
        targets, ndim = read_targets(estimator, y, sequences, **options)
        if not first and self.one_dimensional != (ndim == 1) and targets[0].shape[-1] == 1:
            raise ValueError(
                f"y has {ndim} dimension(s), but in earlier calls it had {3 - ndim}. Pass y of "
                "shape " + ("(n_samples,)." if self.one_dimensional else "(n_samples, 1).")
            )
        if first:
            self.one_dimensional = ndim == 1
        return targets

    def truth(self, estimator: Any, y: Any, sequences: Sequences) -> Array:
        """Return y, (n_sequences, n_outputs)."""
        return np.stack(read_targets(estimator, y, sequences, per_sequence=True)[0])

    def decode(self, columns: Array) -> Array:
        """Return the outputs, as a 1-D array if y was 1-D."""
        return columns[:, 0] if self.one_dimensional else columns

    def for_readout(self, columns: Array) -> Array:
        """Return the columns; a single column is returned as a 1-D array."""
        return columns[:, 0] if columns.shape[1] == 1 else columns

    @staticmethod
    def score(y: Any, predicted: Any, sample_weight: Any) -> float:
        """Return R^2."""
        check_targets(as_table("y", y))
        return r2_score(y, predicted, sample_weight=sample_weight)

    def running_score(self, forgetting: float) -> RunningScore:
        """Return a running R^2."""
        return RunningR2(forgetting)


@saved
class Labels(TargetCoding):
    """Labels, coded as one column per class: 1 for the class of the label, `low` for the others.

    With `single`, two classes are coded in one column, which is 1 for the second class.
    """

    classes: Array

    def __init__(
        self, *, per_sequence: bool = False, low: float = -1.0, single: bool = False
    ) -> None:
        super().__init__(per_sequence=per_sequence)
        self.low, self.single = low, single

    def read(
        self,
        estimator: Any,
        y: Any,
        sequences: Sequences,
        *,
        first: bool,
        classes: Any = None,
        allow_nan: bool = False,
        **known: Any,
    ) -> list[Array]:
        """Return the columns of each sequence; `classes` contains all labels, also of later calls.

        With `allow_nan` labels may be missing; the columns of missing labels are NaN.
        """
        # fast path, but not for objects, some of which may be None
        if not (first or self.per_sequence or self.classes.dtype.kind == "O") and classes is None:
            plain = plain_rows(y, sequences, kinds=self.classes.dtype.kind, ndims=(1,))
            if plain is not None:
                index = self._index(plain)
                if (self.classes[index] == plain).all():
                    return [self._columns(index)]
        check_unmasked("classes", classes)
        options = {"allow_missing": allow_nan, "per_sequence": self.per_sequence}
        labels, there = read_labels(estimator, y, sequences, **options)
        every = np.concatenate(labels)[np.concatenate(there)]
        if len(every):
            check_classification_targets(every)
        elif first and classes is None:
            raise ValueError("No rows to fit: every label of y is missing.")
        if first:
            found = np.unique(every if classes is None else classes)
            self.classes = _check_classes(found, in_chunks=not self.per_sequence)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes):
            raise ValueError(
                f"classes={classes!r} differ from the classes of the first call, "
                f"{self.classes.tolist()}."
            )
        coded = [self._with_gaps(part, k) for part, k in zip(labels, there, strict=True)]
        return [columns[0] for columns in coded] if self.per_sequence else coded

    def weights(
        self,
        sample_weight: Any,
        sequences: Sequences,
        targets: list[Array],
        class_weight: Any = None,
    ) -> list[Array] | None:
        """Return the weight of each target, multiplied by the weight of its class."""
        given = super().weights(sample_weight, sequences, targets)
        if class_weight is None:
            return given
        _check_class_weight(class_weight)
        rows = [np.atleast_2d(part) for part in targets]
        columns = np.concatenate(rows)
        known = ~np.isnan(columns).any(axis=1)  # the others have no weight in any case
        every = np.zeros(len(columns))
        if known.any():
            every[known] = compute_sample_weight(class_weight, self.decode(columns[known]))
        by_class = np.split(every, np.cumsum([len(part) for part in rows])[:-1])
        if given is None:
            return by_class
        return [a * b for a, b in zip(by_class, given, strict=True)]

    def code(self, labels: Array) -> Array:
        """Return the columns of labels, (n_rows, n_outputs); raise for unknown labels."""
        index = self._index(labels)
        unknown = self.classes[index] != labels
        if unknown.any():
            raise ValueError(
                f"y contains the label {labels[unknown].tolist()[0]!r}, which is not among the "
                f"classes {self.classes.tolist()}. Pass all classes in the first call of "
                "partial_fit, as classes=."
            )
        return self._columns(index)

    def _with_gaps(self, labels: Array, known: Array) -> Array:
        """Return the columns of labels, NaN for missing labels."""
        if known.all():
            return self.code(labels)
        columns = np.full((len(labels), self._columns(np.zeros(1, dtype=int)).shape[1]), np.nan)
        if known.any():
            columns[known] = self.code(labels[known])
        return columns

    def _index(self, labels: Array) -> Array:
        """Return the index of each label in the classes, assuming that it is one of them."""
        return np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)

    def _columns(self, index: Array) -> Array:
        if self.single and len(self.classes) == 2:
            return np.where(index == 1, 1.0, self.low)[:, None]
        return np.where(index[:, None] == np.arange(len(self.classes)), 1.0, self.low)

    def truth(self, estimator: Any, y: Any, sequences: Sequences) -> Array:
        """Return y, (n_sequences,)."""
        return np.concatenate(read_labels(estimator, y, sequences, per_sequence=True)[0])

    def decode(self, columns: Array) -> Array:
        """Return the label of the largest column; a single column is decoded by its sign."""
        if columns.shape[1] == 1:
            return self.classes[(columns[:, 0] > 0).astype(int)]
        return self.classes[np.argmax(columns, axis=1)]

    @staticmethod
    def score(y: Any, predicted: Any, sample_weight: Any) -> float:
        """Return the accuracy."""
        return accuracy_score(y, predicted, sample_weight=sample_weight)


def readout_has(method: str) -> Callable[[Any], bool]:
    """Return a check that the `readout` of a classifier, if one was given, has a method."""
    return lambda classifier: classifier.readout is None or hasattr(classifier.readout, method)


def _check_classes(classes: Array, *, in_chunks: bool) -> Array:
    """Return classes after a check that there are at least two."""
    if len(classes) < 2:
        raise ValueError(
            f"y contains one class only ({classes.tolist()[0]!r}); a classifier needs at least "
            "two classes." + (" In partial_fit pass all of them as classes=." if in_chunks else "")
        )
    return classes


def _check_class_weight(given: Any) -> None:
    """Check that class weights are "balanced" or a dict of finite numbers of at least 0."""
    if isinstance(given, str):
        check_choice("class_weight", given, ("balanced",))
    elif not isinstance(given, dict):
        raise TypeError(
            'class_weight must be None, "balanced" or a dict from labels to weights; got '
            f"{given!r} of type {type(given).__name__}."
        )
    else:
        for label, weight in given.items():
            check_number(f"class_weight[{label!r}]", weight, low=0.0)


class RunningScore(ABC):
    """A score over all rows so far; each row multiplies earlier rows' weights by `forgetting`."""

    what = ""  # the score's name, for messages

    def __init__(self, forgetting: float) -> None:
        self.forgetting = forgetting
        self.n_rows = 0
        self.total = 0.0  # sum of the weights

    @abstractmethod
    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return the error of each row, as it is reported to users."""

    def add(self, truth: Array, predicted: Array, weights: Array | None) -> None:
        """Add rows in order, with positive weights."""
        ages = self.forgetting ** np.arange(len(truth) - 1, -1, -1.0)
        before = self.total * self.forgetting ** len(truth)
        w = ages if weights is None else ages * weights
        self._add(truth, predicted, w, before)
        self.total = before + float(w.sum())
        self.n_rows += len(truth)

    @abstractmethod
    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        """Add rows; `before` is the remaining total weight of earlier rows."""

    @abstractmethod
    def value(self) -> float | None:
        """Return the score; None if there are too few rows."""


@saved
class RunningR2(RunningScore):
    """R^2, the mean over outputs, as in `sklearn.metrics.r2_score`."""

    what = "R^2"
    mean: Any = 0.0
    spread: Any = 0.0  # sum of squares of the targets about their mean
    squares: Any = 0.0  # sum of squared errors

    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return targets minus predictions."""
        return truth - predicted

    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        truth, predicted = (np.reshape(each, (len(each), -1)) for each in (truth, predicted))
        added = float(weights.sum())
        mean = weights @ truth / added
        apart, errors = truth - mean, truth - predicted
        total = before + added
        left = before / self.total if self.total else 0.0
        shift = mean - self.mean
        self.spread = left * self.spread + weights @ apart**2 + shift**2 * (before * added / total)
        self.squares = left * self.squares + weights @ errors**2
        self.mean = self.mean + shift * (added / total)

    def value(self) -> float | None:
        """Return the score; None before the second row."""
        if self.n_rows < 2:
            return None
        varies = self.spread > 0
        shares = np.divide(self.squares, self.spread, where=varies, out=np.ones(len(self.squares)))
        # for constant targets the score is 1 if all predictions are exact, else 0
        shares[~varies & (self.squares == 0)] = 0.0
        return float(np.mean(1.0 - shares))


@saved
class RunningAccuracy(RunningScore):
    """Accuracy: the fraction of labels that are correct."""

    what = "accuracy"
    right = 0.0

    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return 1 for a wrong label, else 0."""
        return (truth != predicted).astype(np.float64)

    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        left = before / self.total if self.total else 0.0
        self.right = left * self.right + float(weights @ (truth == predicted))

    def value(self) -> float | None:
        """Return the score; None before the first row."""
        return self.right / self.total if self.n_rows else None
