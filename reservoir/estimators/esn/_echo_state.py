"""What the echo state estimators share: the parameters of a reservoir, and its states."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, caller_level, check_numbers
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.estimators._described import description_of_reservoir
from reservoir.estimators._parameters import (
    DrawnParameters,
    InputParameters,
    ReservoirParameters,
)
from reservoir.estimators._timed_rows import TimedRows
from reservoir.estimators.esn._measured_washout import is_measured
from reservoir.estimators.esn._readout_description import description_of_readout
from reservoir.estimators.esn._readout_parameters import DrivenParameters
from reservoir.estimators.esn._source_estimator import SourceEstimator
from reservoir.stability import Certificate


@dataclass(eq=False, repr=False, kw_only=True)
class BaseESN(
    SourceEstimator,
    InputParameters,
    DrivenParameters,
    DrawnParameters,
    TimedRows,
    ReservoirParameters,
):
    """A reservoir under a readout. Subclasses say what targets and outputs mean."""

    _source_kind = "reservoir"
    # parameters of the regressor alone
    n_lags = 1
    skip = 1

    @property
    def _sees_past(self) -> bool:
        """Whether the readout is to see older rows; other sources have lags of their own."""
        return self._source_kind == "reservoir" and self.n_lags > 1

    def _check(self) -> None:
        super()._check()
        if self._missing_targets == "skip" and self.feedback:
            raise ValueError(
                "missing_targets='skip' cannot go with feedback=True: each target is fed back "
                "into the next step. Fill the missing targets, or use feedback=False."
            )
        if self._sees_past:
            self._check_lags()
        if self._clock is not None:
            self._check_timed()

    def _check_lags(self) -> None:
        """Refuse lags of inputs that the readout does not see, or whose age differs."""
        if not self.include_input:
            raise ValueError(
                f"n_lags={self.n_lags}: the lags are inputs that the readout sees beside the "
                "present one, and include_input=False keeps inputs from it. Use "
                "include_input=True, or n_lags=1."
            )
        if self._clock is not None:
            raise ValueError(
                f"time_column={self.time_column!r} cannot go with n_lags={self.n_lags}: of rows at "
                "irregular times no lag is of one length. Use n_lags=1, or a regular grid without "
                "time_column."
            )

    def _check_timed(self) -> None:
        """Refuse what is not known of steps of several lengths."""
        what = f"time_column={self.time_column!r} cannot go with"
        if self._source_kind != "reservoir":
            raise ValueError(
                f"{what} {type(self).__name__}, whose features are no states that a gap could "
                "change. Give the time between rows as a column of X."
            )
        if self.feedback:
            raise ValueError(
                f"{what} feedback=True: outputs are fed back once per row, however long it took. "
                "Use feedback=False, or a regular grid without time_column."
            )
        if is_measured(self.washout):
            raise ValueError(
                f'{what} washout="measured", which compares runs of equal steps. Give an integer '
                'or "auto".'
            )

    def _washouts(self, lengths: list[int]) -> list[int]:
        self._check()  # lags are counted before anything is built
        n_past = (self.n_lags - 1) * self.skip if self._sees_past else 0
        if n_past >= max(lengths):
            raise ValueError(
                f"n_lags={self.n_lags} and skip={self.skip} see {n_past} rows before the present "
                f"one; the longest sequence has n_samples={max(lengths)}. Lower them."
            )
        return super()._washouts(lengths)

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        return self._read_rows(X, y, reset=reset, **self._reading(reset))

    def _states_before(self, spec: Any, sequences: Sequences, last: Array | None) -> list[Array]:
        if self._clock is not None:
            spec = self._starting_from(spec, sequences, last, self.reservoir_.n_units)
        elif isinstance(self._source, PastInputs):
            spec = _behind_equal_rows(self._source, spec, sequences)
        return super()._states_before(spec, sequences, last)

    def _warn_of_range(self, sequences: Sequences) -> None:
        """Say so where a chunk leaves the range that the first one was certified for."""
        certificate = getattr(self, "certificate_", None)
        if certificate is None or all(self._covers(certificate, X) for X in sequences.arrays):
            return
        warnings.warn(
            'bias="stable" was certified for the range of the first chunk, and this one leaves '
            "it: certificate_ does not cover its rows. Begin with rows that span the range, or use "
            "fit.",
            UserWarning,
            stacklevel=caller_level(),
        )

    def _covers(self, certificate: Certificate, rows: Array) -> bool:
        """Whether rows are within what was certified."""
        clock = self._clock
        if clock is None:
            return certificate.covers_inputs(rows)
        within = certificate.covers_inputs(clock.channels(rows))
        return within and certificate.covers_steps(np.diff(rows[:, clock.place]))

    def _refuse_loop(self) -> None:
        if self._clock is not None:
            self._source.refuse_loop()  # type: ignore[attr-defined]

    def _description(self) -> dict[str, str]:
        certificate = getattr(self, "certificate_", None)
        reservoir = description_of_reservoir(self, self.reservoir_, certificate)
        return reservoir | self._description_of_lags() | description_of_readout(self)

    def _description_of_lags(self) -> dict[str, str]:
        source = self._source
        if not isinstance(source, PastInputs):
            return {}
        return {"Inputs": f"the readout sees those of {source.n_lags} rows, {source.skip} apart"}

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


def _behind_equal_rows(source: PastInputs, spec: Any, sequences: Sequences) -> Any:
    """Return where runs start, as `Progress.starts` takes it: units alone get a past.

    The rows before the first one are like it, for zeros and for states that the user gave.
    """
    n_units = source.reservoir.n_units
    if isinstance(spec, str):
        if spec != "zeros":
            return spec
        spec = np.zeros(n_units)
    states = check_numbers("initial_state", spec)
    if states.ndim not in (1, 2) or states.shape[-1] != n_units:
        return spec
    units = states if states.ndim == 2 else [states] * len(sequences)
    if len(units) != len(sequences):
        return spec
    pairs = zip(sequences.arrays, units, strict=True)
    return np.stack([source.behind_equal_rows(rows[0], each) for rows, each in pairs])
