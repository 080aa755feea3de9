"""A scikit-learn estimator as a readout: fitted on stored features, or row by row in a session."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
from sklearn.base import clone

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import room_for
from reservoir.readouts.contract import Decode, Outputs, Readout, ReadoutSettings, RowLearner
from reservoir.readouts.sums import check_forgetting


@saved
class StoredReadout(Readout):
    """Any estimator with `fit` and `predict`, fitted on the stored features of all rows."""

    fitted = ("readout_",)
    ordered = True

    def __init__(self, settings: ReadoutSettings) -> None:
        super().__init__(settings)
        self.rows: list[tuple[Array, Array, Array | None]] = []
        self.learned: Any = None  # the estimator that continues to learn in partial_fit
        self.asked: dict[str, Any] = {}  # the estimator's parameters in the last call

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Whether `readout` has `fit` and `predict`."""
        return hasattr(readout, "fit") and hasattr(readout, "predict")

    @property
    def n_rows(self) -> int:
        """Number of stored rows; 0 after `solve`."""
        return sum(len(features) for features, _, _ in self.rows)

    def check_room(self, width: int, n_rows: int = 0) -> None:
        """Check that there is enough memory to store features and to concatenate them."""
        what = f"Two copies of the features of {n_rows} rows x {width} features"
        remedy = 'Use dtype="float32", or the built-in ridge (readout=None), which stores no rows.'
        with room_for(what, 2.0 * n_rows * width * np.dtype(self.settings.dtype).itemsize, remedy):
            pass

    def renewed(self, settings: ReadoutSettings) -> StoredReadout:
        """Return an independent copy, so that a chunk that fails does not change the estimator."""
        one = super().renewed(settings)
        one.learned = copy.deepcopy(self.learned)
        return one

    def check_partial(self) -> None:
        """Check that the estimator has partial_fit."""
        if not hasattr(self.settings.estimator, "partial_fit"):
            raise TypeError(
                f"{type(self.settings.estimator).__name__} has no partial_fit. Use a readout that "
                "has one, such as SGDRegressor, or the built-in ridge (readout=None)."
            )

    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Store rows."""
        keep: Array = np.ones(len(features), bool)
        if self.settings.skip_missing:
            keep = np.logical_not(np.isnan(targets).any(axis=1))
        # a mask copies the rows
        self.rows.append(
            (features[keep], targets[keep], None if weights is None else weights[keep])
        )

    def merge(self, other: StoredReadout) -> None:
        """Add the rows of another readout."""
        self.rows = self.rows + other.rows

    def solve(self) -> dict[str, Any]:
        """Fit the estimator, or continue with partial_fit, and drop the rows."""
        if self.n_rows == 0:
            raise ValueError("No rows to fit: every row has a missing target.")
        features, targets, weights = zip(*self.rows, strict=True)
        self.rows = []
        params = self.settings.estimator.get_params()
        if self.learned is None or not self.settings.partial:
            self.learned = clone(self.settings.estimator)
        elif changed := _changes(self.asked, params):
            self.learned.set_params(**changed)  # the estimator raises if a change is not allowed
        self.asked = params
        fit = self.learned.partial_fit if self.settings.partial else self.learned.fit
        options: dict[str, Any] = {}
        if weights[0] is not None:
            if not _takes_weights(fit):
                raise TypeError(
                    f"{type(self.settings.estimator).__name__} does not accept sample_weight, but "
                    "weights were passed or computed from class_weight."
                )
            options["sample_weight"] = np.concatenate(weights)
        if self.settings.partial and self.settings.classes is not None:
            options["classes"] = self.settings.classes
        Y, decode = np.concatenate(targets), self.settings.decode
        fit(np.concatenate(features), Y if decode is None else decode(Y), **options)
        return {"readout_": self.learned}

    def row_learner(self, model: Any) -> StoredRows:
        """Return an online learner with a copy of the fitted estimator."""
        self.check_partial()
        estimator = copy.deepcopy(model.readout_)
        return StoredRows(self.renewed(ReadoutSettings()), estimator, self.settings.classes)

    @classmethod
    def outputs(cls, model: Any) -> Outputs:
        """Return the estimator's prediction function, with outputs in the dtype of the features."""
        predict = model.readout_.predict

        def predicted(features: Array) -> Array:
            return np.reshape(predict(features), (len(features), -1)).astype(features.dtype)

        return predicted


@saved
class StoredRows(RowLearner):
    """Online learner that passes rows to the partial_fit of a scikit-learn estimator.

    partial_fit of the whole network continues from `readout`. `estimator` is a copy of the fitted
    readout, for this learner alone; `classes` are all labels that can occur, for a classifier.
    """

    def __init__(self, readout: Any, estimator: Any, classes: Array | None) -> None:
        self.kept, self.estimator, self.classes = readout, estimator, classes
        self.takes_weights = _takes_weights(estimator.partial_fit)

    @property
    def name(self) -> str:
        """Name of the estimator in messages."""
        return type(self.estimator).__name__

    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Pass rows to the estimator."""
        options: dict[str, Any] = {}
        if weights is not None:
            if not self.takes_weights:
                raise TypeError(f"{self.name} does not accept sample_weight, which was passed.")
            options["sample_weight"] = weights
        if self.classes is not None:
            options["classes"] = self.classes
        self.estimator.partial_fit(features, decode(targets), **options)

    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return the estimator."""
        return {"readout_": self.estimator}

    def readout(self) -> Readout:
        """Return the readout, which continues with the same estimator."""
        self.kept.learned = self.estimator
        return self.kept

    @property
    def forgetting(self) -> float:
        """Parameter `forgetting` of the estimator, if it has one."""
        if not hasattr(self.estimator, "forgetting"):
            raise AttributeError(self._without("forgetting"))
        return self.estimator.forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        if not hasattr(self.estimator, "forgetting"):
            raise AttributeError(self._without("forgetting"))
        self.estimator.set_params(forgetting=check_forgetting("forgetting", value))

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`, if the estimator supports it."""
        if not hasattr(self.estimator, "discount"):
            raise TypeError(self._without("forget"))
        self.estimator.discount(factor)


def _changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that have changed."""
    return {name: value for name, value in now.items() if not _same(before.get(name), value)}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one is other or repr(one) == repr(other)


def _takes_weights(fit: Any) -> bool:
    """Whether a method accepts sample_weight."""
    takes = inspect.signature(fit).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in takes)
