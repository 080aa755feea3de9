"""Transformer that returns reservoir states as features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import Sequences, as_generator, check_choice, resolve_washout
from reservoir.dynamics.saturation import held_by_bias
from reservoir.estimators.describe import Described, description_of_reservoir
from reservoir.estimators.esn.readout_model import initial_states
from reservoir.estimators.esn.sources import reservoir_source
from reservoir.estimators.parameters import documented, shared
from reservoir.estimators.progress import Progress
from reservoir.estimators.reading import Columns, DataReader
from reservoir.estimators.reporting import restored_on_error

__all__ = ["ReservoirTransformer"]


@saved
@documented()
@dataclass(eq=False, repr=False)
class ReservoirTransformer(
    Described, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Transform a series into the states of a reservoir that it drives.

    The result has one row of states per row of X. `fit` builds the reservoir, and learns nothing
    from the values of X. Several sequences are passed as for `ESNRegressor`.

    The defaults differ from those of `ESNRegressor` (300 units with leak rates 0.5 and 0.3, chosen
    on many tasks): 100 units without a leak are few features for the next step, and remember the
    last rows only. ``ReservoirTransformer(300, leak_rate=(0.5, 0.3))`` has the same reservoir.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    reservoir_ : reservoir.dynamics.Reservoir
        The reservoir with its fixed weights.
    state_ : array of shape (n_units,)
        With ``initial_state="last"``: the state at the end of the (last) series of fit. With a
        `time_column` the shape is (n_units + 1,), and the last entry is the time of the last row,
        in steps since the first row.
    time_step_ : float or None
        The time between two rows to which `leak_rate` refers; None without a `time_column`.
    certificate_ : reservoir.stability.Certificate
        With ``bias="stable"``: the property that is proved, and the range of inputs that it covers.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.

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

    n_units: int = shared.n_units
    _: KW_ONLY
    topology: Any = shared.topology
    in_degree: float = shared.in_degree
    weights: Any = shared.weights
    input_weights: Any = shared.input_weights
    spectral_radius: float | None = shared.spectral_radius
    leak_rate: Any = shared.leak_rate
    activation: Any = shared.activation
    input_scaling: Any = shared.input_scaling
    bias: Any = shared.bias
    bias_scaling: float = shared.bias_scaling
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    random_state: Any = shared.random_state
    initial_state: Any = shared.but(
        "initial_state",
        default="zeros",
        text="""State before the first row. "last": `transform`
        continues from the end of the series of fit, unless an index shows that X does not follow it
        (see `ESNRegressor`); `fit_transform` starts from zeros.""",
    )
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype

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
        with restored_on_error(self):
            sequences = self._build(X)
            if isinstance(self.initial_state, str) and self.initial_state == "last":
                self._first_states(sequences)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Build the reservoir, and return its states when driven by X.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        States, as from `transform`.
        """
        with restored_on_error(self):
            sequences = self._build(X)
            return sequences.restore(self._first_states(sequences))

    def transform(self, X: Any) -> Any:
        """Return the states of the reservoir when driven by X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences

        Returns
        -------
        array of shape (n_samples, n_units), or sequences in the container of X
        """
        check_is_fitted(self)
        sequences = self._reader.inputs(self, X)
        last = self.state_ if self._progress.continues else None
        return sequences.restore(self._run(sequences, self._initial_states(sequences, last)))

    def _build(self, X: Any) -> Sequences:
        """Build the reservoir for the columns of X, and return X as sequences."""
        if isinstance(self.initial_state, str):
            check_choice("initial_state", self.initial_state, ("last", "steady", "zeros"))
        reader = DataReader(self)
        sequences, columns = reader.first_inputs(self, X)
        generator = as_generator(self.random_state)
        source, certificate = reservoir_source(
            self, reader.clock, sequences.arrays, None, generator
        )
        progress = Progress(0)
        progress.end(sequences)
        for name in ("certificate_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if certificate is not None:
            self.certificate_ = certificate
        self.__dict__.update(columns.fitted)
        self._reader, self._source, self._progress = reader, source, progress
        self.time_step_ = None if reader.clock is None else reader.clock.step
        self.reservoir_, self._n_features_out = source.reservoir, source.reservoir.n_units
        self._n_trained = sum(sequences.lengths)
        self.state_ = np.zeros(source.state_size, source.state_dtype)
        return sequences

    def _first_states(self, sequences: Sequences) -> list[Array]:
        """Run over the series of fit, from zeros for "last", and store the final state."""
        starts = self._initial_states(sequences, None)
        parts, clock = self._run(sequences, starts), self._reader.clock
        self.state_ = parts[-1][-1].copy()
        if clock is not None:
            self.state_ = np.append(self.state_, sequences.arrays[-1][-1, clock.place])
        self._progress.continues = len(sequences) == 1
        # a bias chosen for its certificate saturates units by design
        if not hasattr(self, "certificate_") or not held_by_bias(self.reservoir_):
            self._watch(sequences, parts, starts)
        return parts

    def _watch(self, sequences: Sequences, parts: list[Array], starts: list[Array]) -> None:
        """Warn if the units are saturated, or grow, after the washout."""
        activity = self._source.activity()
        if activity is None:
            return
        skips = resolve_washout("auto", sequences.lengths)
        for rows, part, start, skip in zip(sequences.arrays, parts, starts, skips, strict=True):
            self._source.watch_run(activity, skip, rows, part, start)
        names = self._reader.names_of_columns(Columns.of(self), sequences)
        activity.warn(self.reservoir_, names)

    def _initial_states(self, sequences: Sequences, last: Array | None) -> list[Array]:
        return initial_states(self._source, self._progress, self.initial_state, sequences, last)

    def _run(self, sequences: Sequences, starts: list[Array]) -> list[Array]:
        engine = self._source.engine_for(self._n_trained)
        return self._source.states(sequences.arrays, starts, engine=engine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # set by the parameter dtype, not by X
        return tags
