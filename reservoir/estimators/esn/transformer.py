"""The reservoir alone, as a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    as_generator,
    check_choice,
    resolve_washout,
)
from reservoir.dynamics.saturation import held_by_bias
from reservoir.estimators._base import read_dtype
from reservoir.estimators._described import Described, description_of_reservoir
from reservoir.estimators._parameters import (
    DrawnParameters,
    ReservoirParameters,
    SequenceParameters,
    changed,
    documented,
)
from reservoir.estimators._progress import Progress, StateShape
from reservoir.estimators._timed_rows import TimedRows
from reservoir.estimators.esn.sources import reservoir_source

__all__ = ["ReservoirTransformer"]


@saved
@documented()
@dataclass(eq=False, repr=False, kw_only=True)
class ReservoirTransformer(
    Described,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    SequenceParameters,
    DrawnParameters,
    TimedRows,
    BaseEstimator,
    ReservoirParameters,
):
    """Turn a series into the states of a reservoir that it drives.

    One row of states per row of X. Nothing is learned from the values of X; `fit` builds the
    reservoir. For several sequences see `ESNRegressor`.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    reservoir_ : reservoir.dynamics.Reservoir
    state_ : array of shape (n_units,)
        The state at the end of the (last) series that fit saw; with ``initial_state="last"``. With
        a `time_column` (n_units + 1,): then the time of the last row, in steps since the first.
    time_step_ : float or None
        The gap for which `leak_rate` is given; None without a `time_column`.
    certificate_ : reservoir.stability.Certificate
        With ``bias="stable"``.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If X had names.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from reservoir import ReservoirTransformer
    >>> from reservoir.datasets import narma
    >>> X, y = narma(1000, random_state=0)
    >>> pipe = make_pipeline(ReservoirTransformer(100, random_state=0), Ridge(1e-6))
    >>> bool(pipe.fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.7)
    True
    """

    initial_state: Any = changed(
        SequenceParameters,
        "initial_state",
        default="zeros",
        text="""Where a run starts. "last": `transform` goes on from the end of the series that fit
        saw, unless an index tells that X does not follow (see `ESNRegressor`), and `fit_transform`
        starts from zeros.""",
    )

    def _description(self) -> dict[str, str]:
        certificate = getattr(self, "certificate_", None)
        return description_of_reservoir(self, self.reservoir_, certificate)

    def fit(self, X: Any, y: Any = None) -> ReservoirTransformer:
        """Build the reservoir for the columns of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        y : ignored

        Returns
        -------
        self
        """
        sequences = self._build(X)
        if isinstance(self.initial_state, str) and self.initial_state == "last":
            self._states(sequences)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Build the reservoir and return the states of the run over X itself.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        As `transform`.
        """
        sequences = self._build(X)
        return sequences.restore(self._states(sequences))

    def transform(self, X: Any) -> Any:
        """Return the states of the reservoir under X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences

        Returns
        -------
        array of shape (n_samples, n_units), or the container that X came in
        """
        check_is_fitted(self)
        sequences = self._read(X, reset=False)
        last = self.state_ if self._progress.continues else None
        return sequences.restore(self._run(sequences, self._starts(sequences, last)))

    def _read(self, X: Any, *, reset: bool) -> Sequences:
        dtype = read_dtype(self.dtype) if reset else self.reservoir_.dtype
        column = self.sequence_column
        return self._read_rows(X, None, reset=reset, dtype=dtype, sequence_column=column)

    def _build(self, X: Any) -> Sequences:
        if isinstance(self.initial_state, str):
            check_choice("initial_state", self.initial_state, ("last", "steady", "zeros"))
        sequences = self._read(X, reset=True)
        generator = as_generator(self.random_state)
        self.__dict__.pop("certificate_", None)
        self._source, certificate = reservoir_source(self, sequences.arrays, None, generator)
        self.reservoir_ = self._source.reservoir
        if certificate is not None:
            self.certificate_ = certificate
        self._n_trained = sum(sequences.lengths)
        self._n_features_out = self.reservoir_.n_units
        self.state_ = np.zeros(self._source.state_size, self._source.state_dtype)
        self._progress = Progress(0)
        self._progress.end(sequences)
        return sequences

    def _states(self, sequences: Sequences) -> list[Array]:
        """Run over the series of fit, from zeros where it says "last"; remember its end."""
        starts = self._starts(sequences, None)
        parts = self._run(sequences, starts)
        self.state_ = parts[-1][-1].copy()
        if self._clock is not None:
            self.state_ = np.append(self.state_, sequences.arrays[-1][-1, self._clock.place])
        self._progress.continues = len(sequences) == 1
        # a bias that was searched for a certificate saturates units by design
        if not hasattr(self, "certificate_") or not held_by_bias(self.reservoir_):
            self._watch(sequences, parts, starts)
        return parts

    def _watch(self, sequences: Sequences, parts: list[Array], starts: list[Array]) -> None:
        """Warn if the units are saturated, or grow, behind the washout."""
        activity = self._source.activity()
        if activity is None:
            return
        skips = resolve_washout("auto", sequences.lengths)
        for rows, part, start, skip in zip(sequences.arrays, parts, starts, skips, strict=True):
            self._source.watch_run(activity, skip, rows, part, start)
        activity.warn(self.reservoir_, self._names_of_columns())

    def _starts(self, sequences: Sequences, last: Array | None) -> list[Array]:
        source, n_units = self._source, self.reservoir_.n_units
        spec = self._starting_from(self.initial_state, sequences, last, n_units)
        shape = StateShape(source.state_size, 0, source.state_dtype)
        return self._progress.starts(
            spec,
            sequences,
            shape,
            last=last,
            steady=source.steady_state,
            fresh=source.fresh_state,
        )

    def _run(self, sequences: Sequences, starts: list[Array]) -> list[Array]:
        engine = self._source.engine_for(self._n_trained)
        return self._source.states(sequences.arrays, starts, engine=engine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # the parameter dtype decides, not X
        return tags
