"""What the echo state estimators share: the parameters of a reservoir, and its states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir.estimators._described import description_of_reservoir
from reservoir.estimators._parameters import (
    DrawnParameters,
    InputParameters,
    ReservoirParameters,
)
from reservoir.estimators.esn._readout_description import description_of_readout
from reservoir.estimators.esn._readout_parameters import DrivenParameters
from reservoir.estimators.esn._source_estimator import SourceEstimator


@dataclass(eq=False, repr=False, kw_only=True)
class BaseESN(
    SourceEstimator, InputParameters, DrivenParameters, DrawnParameters, ReservoirParameters
):
    """A reservoir under a readout. Subclasses say what targets and outputs mean."""

    _source_kind = "reservoir"

    def _check(self) -> None:
        super()._check()
        if self._missing_targets == "skip" and self.feedback:
            raise ValueError(
                "missing_targets='skip' cannot go with feedback=True: each target is fed back "
                "into the next step. Fill the missing targets, or use feedback=False."
            )

    def _description(self) -> dict[str, str]:
        certificate = getattr(self, "certificate_", None)
        reservoir = description_of_reservoir(self, self.reservoir_, certificate)
        return reservoir | description_of_readout(self)

    def states(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the reservoir's states under a series.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : str or array, optional
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_units), or the container that X came in
            With feedback the outputs that are fed back are the network's own.
        """
        self._check_fitted()
        sequences = self._read(X, reset=False)
        starts = self._start_states(initial_state, sequences)
        source, size = self._source, self._source.state_size
        fed_back = None
        if source.n_fed_back:
            played, _ = self._play_all(sequences, starts)
            fed_back = [np.vstack([s[size:], y[:-1]]) for s, y in zip(starts, played, strict=True)]
        starts = [start[:size] for start in starts]
        return sequences.restore(
            source.states(sequences.arrays, starts, teachers=fed_back, engine=self._engine)
        )
