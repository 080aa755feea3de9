"""A scikit-learn estimator that goes on learning in a session."""

from __future__ import annotations

from typing import Any

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.contract import Decode, Readout, ReadoutSettings, RowLearner
from reservoir.readouts.sums import check_forgetting


@saved
class StoredRows(RowLearner):
    """Hands rows to an estimator's own partial_fit.

    Parameters
    ----------
    readout : Readout
        What partial_fit of the whole estimator goes on from.
    estimator : object
        The fitted readout, this learner's own.
    classes : array or None
        All labels that will ever come, for a classifier.
    takes_weights : bool
    """

    def __init__(
        self, readout: Any, estimator: Any, classes: Array | None, *, takes_weights: bool
    ) -> None:
        self.kept, self.estimator, self.classes = readout, estimator, classes
        self.takes_weights = takes_weights

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self.estimator).__name__

    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Go on with the estimator."""
        known: dict[str, Any] = {}
        if weights is not None:
            if not self.takes_weights:
                raise TypeError(f"{self.name} does not take the sample_weight that was given.")
            known["sample_weight"] = weights
        if self.classes is not None:
            known["classes"] = self.classes
        self.estimator.partial_fit(features, decode(targets), **known)

    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return the estimator."""
        return {"readout_": self.estimator}

    def readout(self) -> Readout:
        """Return what goes on with the same estimator."""
        self.kept.learned = self.estimator
        return self.kept

    @property
    def forgetting(self) -> float:
        """The estimator's own parameter, if it has one."""
        if not hasattr(self.estimator, "forgetting"):
            raise AttributeError(self._without("forgetting"))
        return self.estimator.forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        if not hasattr(self.estimator, "forgetting"):
            raise AttributeError(self._without("forgetting"))
        self.estimator.set_params(forgetting=check_forgetting("forgetting", value))

    def forget(self, factor: float) -> None:
        """Let all rows so far weigh `factor` times as much, if the estimator can."""
        if not hasattr(self.estimator, "discount"):
            raise TypeError(self._without("forget"))
        self.estimator.discount(factor)
