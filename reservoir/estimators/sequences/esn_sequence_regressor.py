"""Echo state network for whole sequences: one number, or several, for each."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.base import RegressorMixin, is_classifier

from reservoir._saving import saved
from reservoir.estimators.parameters import attributes_of, documented
from reservoir.estimators.sequences.sequence_readout import SequenceReadout
from reservoir.estimators.targets import Numbers

__all__ = ["ESNSequenceRegressor"]


@saved
@documented(FITTED=attributes_of(SequenceReadout))
@dataclass(eq=False, repr=False, kw_only=True)
class ESNSequenceRegressor(RegressorMixin, SequenceReadout):
    """Echo state network that predicts one or several numbers per sequence.

    `ReservoirFeatures` turn each sequence into a vector of features. These are standardised, and
    ridge regression predicts y; it penalises informative features less (`relevance_weights`), and
    its penalty is chosen on held-out sequences. If `readout` is set, this regressor replaces the
    ridge regression.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}
    n_outputs_ : int
        Number of targets per sequence.

    See Also
    --------
    ESNSequenceClassifier : Predicts labels instead of numbers.
    ReservoirFeatures : Computes the features alone.
    ESNRegressor : Predicts one number per time step.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNSequenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.2, 0.5, 60)  # angular frequency of each wave
    >>> waves = [np.sin(np.arange(rng.integers(40, 80)) * speed) for speed in y]
    >>> esn = ESNSequenceRegressor(100, random_state=0).fit(waves[:40], y[:40])
    >>> esn.score(waves[40:], y[40:]) > 0.98
    True
    """

    def _coding(self) -> Numbers:
        return Numbers(per_sequence=True)

    def _check(self) -> None:
        super()._check()
        if self.readout is not None and is_classifier(self.readout):
            raise TypeError(
                f"readout={self.readout!r} is a classifier. Use a regressor, or "
                "ESNSequenceClassifier for labels."
            )

    score = SequenceReadout.score
