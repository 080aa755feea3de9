"""The reservoir alone, as a transformer."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    as_generator,
    check_choice,
    read_series,
    resolve_washout,
)
from reservoir.dynamics import run_many
from reservoir.dynamics.engines import engine_for
from reservoir.estimators._docs import COLUMN, RESERVOIR, describe
from reservoir.estimators._engine import steady_state
from reservoir.estimators._following import NOWHERE, Ended, endings
from reservoir.estimators._recipe import build, estimator_dtype, is_stable, ranges_of
from reservoir.estimators._saturation import Activity, warn_of_saturation
from reservoir.estimators._states import initial_states

__all__ = ["ReservoirTransformer"]


@describe(RESERVOIR=RESERVOIR, COLUMN=COLUMN)
class ReservoirTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn a series into the states of a reservoir that it drives.

    One row of states per row of X. Nothing is learned from the values of X; `fit` builds the
    reservoir. For several sequences see `ESNRegressor`.

    Parameters
    ----------
    {RESERVOIR}
    initial_state : {"zeros", "last", "steady"} or array, default="zeros"
        Where a run starts. "last": `transform` goes on from the end of the series that fit saw,
        unless an index tells that X does not follow (see `ESNRegressor`), and `fit_transform`
        starts from zeros.
    {COLUMN}
    random_state : int, Generator, RandomState or None, default=None
        Seed of all weights.

    Attributes
    ----------
    reservoir_ : reservoir.dynamics.Reservoir
    state_ : array of shape (n_units,)
        The state at the end of the (last) series that fit saw; with ``initial_state="last"``.
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

    _ended: Ended = NOWHERE

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
        initial_state: Any = "zeros",
        sequence_column: Any = None,
        dtype: Any = "float64",
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
        self.initial_state = initial_state
        self.sequence_column = sequence_column
        self.dtype = dtype
        self.random_state = random_state

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
        last = self.state_ if self._continues else None
        return sequences.restore(self._run(sequences, self._starts(sequences, last)))

    def _read(self, X: Any, *, reset: bool) -> Sequences:
        dtype = estimator_dtype(self.dtype) if reset else self.reservoir_.dtype
        return read_series(self, X, reset=reset, dtype=dtype, sequence_column=self.sequence_column)

    def _build(self, X: Any) -> Sequences:
        if isinstance(self.initial_state, str):
            check_choice("initial_state", self.initial_state, ("last", "steady", "zeros"))
        sequences = self._read(X, reset=True)
        generator = as_generator(self.random_state)
        ranges = ranges_of(sequences.arrays) if is_stable(self.bias) else None
        self.reservoir_ = build(self, sequences.arrays[0].shape[1], generator, ranges=ranges)
        if ranges is not None:
            self.certificate_ = ranges.certify(self.reservoir_)
        elif hasattr(self, "certificate_"):
            del self.certificate_
        self._n_trained = sum(sequences.lengths)
        self._n_features_out = self.reservoir_.n_units
        self.state_ = np.zeros(self.reservoir_.n_units, self.reservoir_.dtype)
        self._continues = False
        self._ended = endings(NOWHERE, sequences, goes_on=False)
        return sequences

    def _states(self, sequences: Sequences) -> list[Array]:
        """Run over the series of fit, from zeros where it says "last"; remember its end."""
        starts = self._starts(sequences, None)
        parts = self._run(sequences, starts)
        self.state_ = parts[-1][-1].copy()
        self._continues = len(sequences) == 1
        if not is_stable(self.bias):
            leak, activity = self.reservoir_.leak_rate, Activity.of_nothing(self.reservoir_.n_units)
            skips = resolve_washout("auto", sequences.lengths)
            for part, start, skip in zip(parts, starts, skips, strict=True):
                activity.add_behind(skip, part, start, leak)
            warn_of_saturation(activity, self.reservoir_)
        return parts

    def _starts(self, sequences: Sequences, last: Array | None) -> list[Array]:
        return initial_states(
            self.initial_state,
            sequences,
            n_units=self.reservoir_.n_units,
            n_fed_back=0,
            dtype=self.reservoir_.dtype,
            last=last,
            steady=partial(steady_state, self.reservoir_),
            ended=self._ended,
        )

    def _run(self, sequences: Sequences, starts: list[Array]) -> list[Array]:
        return run_many(
            self.reservoir_,
            sequences.arrays,
            initial_states=np.stack(starts),
            engine=engine_for(self.reservoir_, self._n_trained),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # the parameter dtype decides, not X
        return tags
