"""The echo state network for whole sequences: one number, or a few, for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.estimators._parameters import documented
from reservoir.estimators._target_coding import Numbers
from reservoir.estimators.sequences._cases import UniqueSequences
from reservoir.estimators.sequences._sequence_readout import FITTED, SequenceReadout

__all__ = ["ESNSequenceRegressor"]


@saved
@documented(FITTED=FITTED)
@dataclass(eq=False, repr=False, kw_only=True)
class ESNSequenceRegressor(RegressorMixin, SequenceReadout):
    """Echo state network that gives one number, or several, per sequence.

    `ReservoirFeatures` turn each sequence into a row of numbers. On these, standardised, stands a
    ridge that penalises columns less which say much of y by themselves (`relevance_weights`), its
    penalty chosen on sequences left out. With ``readout=`` any regressor takes the place of the
    ridge.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}
    n_outputs_ : int

    See Also
    --------
    ESNSequenceClassifier : Labels instead of numbers.
    ReservoirFeatures : The features alone.
    ESNRegressor : One number per time step.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNSequenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.2, 0.5, 60)  # how fast each wave is
    >>> waves = [np.sin(np.arange(rng.integers(40, 80)) * speed) for speed in y]
    >>> esn = ESNSequenceRegressor(100, random_state=0).fit(waves[:40], y[:40])
    >>> esn.score(waves[40:], y[40:]) > 0.98
    True
    """

    def _coding(self) -> Numbers:
        return Numbers(per_sequence=True)

    def _check_readout(self) -> None:
        super()._check_readout()
        if self.readout is not None and is_classifier(self.readout):
            raise TypeError(
                f"readout={self.readout!r} is a classifier. Use a regressor, or "
                "ESNSequenceClassifier for labels."
            )

    def _note_targets(self, targets: Array) -> None:
        self.n_outputs_ = targets.shape[1]

    def _sizes(self, cases: UniqueSequences) -> Array:
        """Return the standard deviations of several outputs: their units are of no account."""
        if cases.targets.shape[1] == 1:
            return super()._sizes(cases)
        away = cases.targets - np.average(cases.targets, axis=0, weights=cases.weights)
        largest = np.abs(away).max(axis=0)
        largest[largest == 0] = 1.0  # first to unit size, so that no square overflows
        spread = np.sqrt(np.average((away / largest) ** 2, axis=0, weights=cases.weights))
        return largest * np.where(spread > 0, spread, 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of `predict`, each sequence counted once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        return self._score(X, y, sample_weight)
