"""Features of whole sequences: states of a reservoir, pooled over the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from reservoir._saving import saved
from reservoir._tables import Sequences, check_leak_below_one, read_whole_series
from reservoir._tables.time_column import step_of
from reservoir._typing import Array
from reservoir._validation import as_generator, check_count, check_scaling, room_for
from reservoir._workers import n_workers, run_jobs
from reservoir.building import Recipe
from reservoir.dynamics import Pooling, Reservoir
from reservoir.dynamics.engines import engine_for
from reservoir.dynamics.pooling import POOLS, check_pools, pool_into
from reservoir.dynamics.saturation import STRIDE, Names, record_of
from reservoir.dynamics.state_quantiles import state_quantiles
from reservoir.estimators.describe import Described, description_of_reservoir
from reservoir.estimators.parameters import check_parameters, documented, read_dtype
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.sequences.feature_parameters import shared
from reservoir.estimators.sequences.sequence_inputs import SequenceInputs, chosen_lags

__all__ = ["ReservoirFeatures"]

_Self = TypeVar("_Self", bound="ReservoirFeatures")
_BATCH, _BATCH_STEPS = 32, 2**14  # series per batch of a thread, or more if they are short
_SAMPLE_SERIES, _SAMPLE_STEPS = 40, 1000  # at most, in the sample for the thresholds


@saved
@documented()
@dataclass(eq=False, repr=False)
class ReservoirFeatures(Described, TransformerMixin, BaseEstimator):
    """Turn each sequence into one row of features: states of a reservoir, pooled over its steps.

    Each sequence drives the same fixed reservoir from a zero state, and the states of every unit
    are reduced to a few numbers: mean and standard deviation, extremes, and the fraction of steps
    above thresholds. A linear model on these distinguishes sequences of any lengths.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    reservoir_ : reservoir.dynamics.Reservoir
        The reservoir. Its inputs are the channels, then their differences, lag by lag, then the
        indicators of missing values. Its units are ordered by groups: first the groups that receive
        the values, one for each leak rate, then the groups that receive the differences over the
        first lag, and so on.
    mean_, scale_ : arrays of shape (n_channels_,)
        `mean_` is subtracted from each channel, and the result is divided by `scale_`.
    lags_ : tuple of int
        The lags over which differences are inputs.
    thresholds_ : array of shape (2, n_quantiles, n_units), or None
        Thresholds of "quantiles", for the forward and the backward run; with
        ``bidirectional=False`` of shape (n_quantiles, n_units).
    time_step_ : float or None
        The time between two rows for which `leak_rate` is given; None without a `time_column`.
    n_channels_ : int
        Number of channels.
    n_features_in_ : int
        Number of columns of X, including an id column; for a 2-D X with one series per row, the
        number of steps.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X; only if X had names.

    Notes
    -----
    Features of a sequence depend only on that sequence and on the sequences of fit, not on the
    other sequences of X. Pooled states were introduced in [1]_, [2]_; shares above thresholds, for
    random convolutions, in [3]_.

    References
    ----------
    .. [1] H. Jaeger, M. Lukosevicius, D. Popovici and U. Siewert, "Optimization and applications
       of echo state networks with leaky-integrator neurons", Neural Networks 20, 2007, section 5.
    .. [2] F. M. Bianchi, S. Scardapane, S. Lokse and R. Jenssen, "Reservoir computing approaches
       for representation and classification of multivariate time series", IEEE Transactions on
       Neural Networks and Learning Systems 32, 2021.
    .. [3] A. Dempster, D. F. Schmidt and G. I. Webb, "MiniRocket: a very fast (almost)
       deterministic transform for time series classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from reservoir import ReservoirFeatures
    >>> rng = np.random.default_rng(0)
    >>> waves = [np.sin(np.arange(rng.integers(40, 80)) * (0.3 + 0.1 * (i % 2))) for i in range(40)]
    >>> y = np.arange(40) % 2
    >>> features = ReservoirFeatures(50, random_state=0)
    >>> features.fit_transform(waves).shape
    (40, 1000)
    >>> pipe = make_pipeline(features, StandardScaler(), RidgeClassifierCV())
    >>> pipe.fit(waves[:20], y[:20]).score(waves[20:], y[20:])
    1.0
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
    scaling: str | None = shared.scaling
    differences: Any = shared.differences
    pool: Any = shared.pool
    n_quantiles: int = shared.n_quantiles
    bidirectional: bool = shared.bidirectional
    missing_values: str = shared.missing_values
    add_indicator: bool = shared.add_indicator
    sequence_column: Any = shared.sequence_column
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    dtype: Any = shared.dtype
    n_jobs: int | None = shared.n_jobs
    random_state: Any = shared.random_state

    def _description(self) -> dict[str, str]:
        n_features = f"{len(self.get_feature_names_out())} for each sequence"
        channels = f", from {self.n_channels_} channels"
        reservoir = description_of_reservoir(self, self.reservoir_, None)["Reservoir"]
        return {"Reservoir": reservoir, "Features": n_features + channels}

    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Build the reservoir, and compute scales and thresholds from sequences.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            A list of arrays or DataFrames of shape (n_steps, n_channels), whose lengths may
            differ, or (n_steps,) for one channel; an array of shape (n_sequences, n_steps,
            n_channels); a table with an id column (`sequence_column`) or a MultiIndex whose last
            level is time; a 2-D array of one series of one channel per row.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If X cannot be read, no sequence has two steps, or a parameter is invalid.
        """
        with restored_on_error(self):
            self._fit(X)
        return self

    def _fit(self, X: Any) -> Sequences:
        """Fit to X, and return it as sequences."""
        sequences = self._read(X, None)
        self.fit_sequences(sequences)
        self.warn_of_units(sequences)
        return sequences

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and return the features of the same sequences.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        As `transform`.
        """
        with restored_on_error(self):
            return self._labelled(self._fit(X))

    def transform(self, X: Any) -> Array:
        """Return the features of sequences.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences, n_features)
            The columns are named by `get_feature_names_out`.
        """
        check_is_fitted(self)
        return self._labelled(self._read(X, (self._container, self.n_channels_)))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features, such as "mean_unit0".

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, which are compared with those of fit.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        labels = self._poolings[0].labels(self.reservoir_.n_units)
        if len(self._poolings) == 2:
            labels = [f"{way}_{label}" for way in ("forward", "backward") for label in labels]
        return np.array(labels, dtype=object)

    def fit_sequences(self, sequences: Sequences) -> None:
        """Fit to sequences that have been read already, for estimators that use these features.

        Parameters
        ----------
        sequences : Sequences
        """
        check_parameters(self)
        arrays = sequences.arrays
        self._check_several_steps(sequences)
        self.time_step_ = self._step_of(sequences)
        self._container, self.n_channels_ = sequences.container, arrays[0].shape[1]
        self._columns = self.sequence_column, self.time_column
        n_rates = max(np.size(self.leak_rate), 1)
        n_units = check_count("n_units", self.n_units, size=4)
        if "quantiles" in np.atleast_1d(self.pool):
            check_count("n_quantiles", self.n_quantiles, size=n_units)
        most = n_units // n_rates if n_rates < n_units else n_units
        self.lags_ = chosen_lags(self.differences, sequences.lengths, most - 1)
        self._inputs = SequenceInputs.of(
            arrays,
            scaling=self.scaling,
            lags=self.lags_,
            missing=self.missing_values,
            indicator=self.add_indicator,
        )
        self.mean_, self.scale_ = self._inputs.mean, self._inputs.scale
        generator = as_generator(self.random_state)
        of_weights, of_sample = generator.spawn(2)
        self.reservoir_ = self._build(of_weights)
        self._n_trained = sum(sequences.lengths)
        self._poolings = self._pools(sequences, of_sample)
        known = [each.thresholds for each in self._poolings if each.thresholds is not None]
        self.thresholds_ = np.stack(known) if len(known) > 1 else known[0] if known else None

    @property
    def _widths(self) -> list[int]:
        """Number of columns for each direction of time."""
        return [each.n_columns(self.reservoir_.n_units) for each in self._poolings]

    def transform_sequences(self, sequences: Sequences, engine: str | None = None) -> Array:
        """Return the features of sequences that have been read already.

        Parameters
        ----------
        sequences : Sequences
        engine : {"numba", "numpy"}, optional
            Engine to use; by default the one that `engine_of` returns for these sequences.

        Returns
        -------
        array of shape (n_sequences, n_features)
        """
        arrays = sequences.arrays
        # series of similar length run in parallel
        order = np.argsort([-len(rows) for rows in arrays], kind="stable")
        batches = _batches(order, sequences.lengths, n_workers(self.n_jobs))
        widths = self._widths
        dtype = self.reservoir_.dtype
        what = f"{sum(widths)} features of each of {len(arrays)} sequences"
        n_bytes = float(sum(widths)) * len(arrays) * dtype.itemsize
        with room_for(what, n_bytes, "Transform some of the sequences at a time."):
            features = np.empty((len(arrays), sum(widths)), dtype)
        places = np.split(features, np.cumsum(widths)[:-1], axis=1)
        engine = self.engine_of(sequences) if engine is None else engine

        def fill(batch: Array) -> None:
            some = sequences.some(batch.tolist())
            inputs = self._inputs(some.arrays, self.reservoir_.dtype, some.place)
            dt = self._lengths_of_steps(some.gaps)
            for way, place, pooling in zip((1, -1), places, self._poolings, strict=False):
                ordered = [rows[::way] for rows in inputs]
                name_of = some.name if way == 1 else _backwards(some.name)
                pool_into(
                    place,
                    batch,
                    self.reservoir_,
                    ordered,
                    pooling,
                    dt=dt[way],
                    engine=engine,
                    name_of=name_of,
                )

        jobs = [(batch,) for batch in batches]
        for _ in run_jobs(fill, jobs, self.n_jobs, in_threads=True):
            pass
        return features

    def engine_of(self, sequences: Sequences) -> str:
        """Return the engine for all series of a call.

        After a fit to many steps, calls with few steps use the same engine.

        Parameters
        ----------
        sequences : Sequences

        Returns
        -------
        {"numba", "numpy"}
        """
        return self._engine_for(max(sum(sequences.lengths), self._n_trained))

    def _engine_for(self, n_steps: int) -> str:
        if self.time_step_ is not None:
            return "numpy"  # kernels have one leak rate for all steps
        return "numba" if engine_for(self.reservoir_, n_steps) == "numba" else "numpy"

    def _labelled(self, sequences: Sequences) -> Any:
        """Return the features; for pandas output a table with the ids as its index."""
        features = self.transform_sequences(sequences)
        if sequences.ids is None or _get_output_config("transform", self)["dense"] != "pandas":
            return features
        import pandas as pd

        return pd.DataFrame(
            features, index=list(sequences.ids), columns=self.get_feature_names_out()
        )

    def _read(self, X: Any, fitted: tuple[str, int] | None) -> Sequences:
        missing = self.missing_values if fitted is None else self._inputs.missing
        ids, times = self.sequence_column, self.time_column
        if fitted is not None:  # files of earlier versions have none
            ids, times = getattr(self, "_columns", (ids, times))
        return read_whole_series(
            self,
            X,
            sequence_column=ids,
            time_column=times,
            allow_nan=missing != "raise",
            fitted=fitted,
        )

    def _check_several_steps(self, sequences: Sequences) -> None:
        if max(sequences.lengths) > 1:
            return
        n_channels = sequences.arrays[0].shape[1]
        raise ValueError(
            f"Every sequence of X has 1 step (n_features={self.n_features_in_}), but at least one "
            f"must have 2 or more. X was read as {len(sequences)} "
            f"sequences of {n_channels} channel{'s' * (n_channels != 1)}; 3-D arrays have shape "
            "(n_sequences, n_steps, n_channels)."
        )

    def _step_of(self, sequences: Sequences) -> float | None:
        """Return the time between two rows for which `leak_rate` is given."""
        if sequences.gaps is None:
            return None
        check_leak_below_one(self.time_column, self.leak_rate)
        return step_of(sequences, self.time_step)

    def _lengths_of_steps(self, gaps: Sequence[Array] | None) -> dict[int, list[Array] | None]:
        """Return the lengths of the steps of series, forwards (1) and backwards (-1).

        A first step has no gap before it; its length is one `time_step_`.
        """
        if gaps is None:
            return {1: None, -1: None}
        assert self.time_step_ is not None
        each = [between / self.time_step_ for between in gaps]
        return {way: [np.append(1.0, between[::way]) for between in each] for way in (1, -1)}

    def warn_of_units(self, sequences: Sequences) -> None:
        """Warn if the units saturate, or grow, in a small sample of the steps.

        Parameters
        ----------
        sequences : Sequences
            The sequences of `fit_sequences`.
        """
        n_steps = max(sum(sequences.lengths) // STRIDE, 2 * STRIDE)
        n_series = min(-(-len(sequences) // STRIDE), _SAMPLE_SERIES)
        longest = min(-(-n_steps // n_series), _SAMPLE_STEPS)
        inputs, dt, name_of = self._sample(sequences, np.random.default_rng(0), n_series, longest)
        activity = record_of(self.reservoir_, inputs, dt=dt[1], name_of=name_of)
        if activity is not None:
            names = Names(self._name_of_input, str, 'use scaling="standard"')
            activity.warn(self.reservoir_, names)

    def _name_of_input(self, column: int) -> str:
        return f"channel {column % self.n_channels_} of X"

    def _sample(
        self,
        sequences: Sequences,
        generator: np.random.Generator,
        n_series: int = _SAMPLE_SERIES,
        n_steps: int = _SAMPLE_STEPS,
    ) -> tuple[list[Array], dict[int, list[Array] | None], Callable[[int], str]]:
        """Return the inputs of some series, the lengths of their steps, and names for messages.

        Of a long series a window at a random position is used.
        """
        some = sequences.some(generator.permutation(len(sequences))[:n_series].tolist())
        lasts = [max(n - n_steps, 0) for n in some.lengths]
        begins = [int(generator.integers(last + 1)) for last in lasts]
        pairs = zip(some.arrays, begins, strict=True)
        parts = [rows[begin : begin + n_steps] for rows, begin in pairs]

        def name_of(i: int) -> str:
            steps = f" (from step {begins[i]}, {n_steps} steps)" if lasts[i] else ""
            return some.name(i) + steps

        inputs = self._inputs(
            parts, read_dtype(self.dtype), lambda i, step: some.place(i, begins[i] + step)
        )
        gaps = None
        if some.gaps is not None:
            cut = zip(some.gaps, parts, begins, strict=True)
            gaps = [between[begin : begin + len(rows) - 1] for between, rows, begin in cut]
        return inputs, self._lengths_of_steps(gaps), name_of

    def _memory_advice(self) -> str:
        """Return which parameters to change if memory fails."""
        return (
            f"Lower n_units={self.n_units}, keep less of the states (pool, n_quantiles, "
            'bidirectional=False), pass fewer sequences, or use dtype="float32".'
        )

    def _build(self, generator: np.random.Generator) -> Reservoir:
        """Return the reservoir that the parameters describe."""
        inputs = self._inputs
        factors = check_scaling("input_scaling", self.input_scaling, self.n_channels_, "channel")
        kinds = [inputs.columns_of(kind) for kind in range(inputs.n_kinds)]
        recipe = Recipe.from_attributes(
            self,
            input_scaling=np.tile(factors / np.sqrt(len(kinds[0])), inputs.n_parts),
            drive_bounds=None,
            feedback_scaling=1.0,
            dtype=read_dtype(self.dtype),
        )
        repeatable = isinstance(self.random_state, Integral)
        return recipe.build_groups(
            self.n_units, inputs.n_inputs, generator, repeatable=repeatable, kinds=kinds
        )

    def _pools(self, sequences: Sequences, generator: np.random.Generator) -> list[Pooling]:
        """Return the pooling of each direction of time, with thresholds from a sample."""
        sample, dt, called = self._sample(sequences, generator)
        names = check_pools("pool", self.pool)
        ways = [1, -1] if self.bidirectional else [1]
        if not any(POOLS[name].needs_thresholds for name in names):
            return [Pooling(names) for _ in ways]
        levels = (np.arange(self.n_quantiles) + 0.5) / self.n_quantiles
        poolings = []
        for way in ways:
            thresholds = state_quantiles(
                self.reservoir_,
                [rows[::way] for rows in sample],
                levels,
                generator=generator,
                dt=dt[way],
                engine=self._engine_for(self._n_trained),
                name_of=called if way == 1 else _backwards(called),
            )
            # a constant state, up to rounding errors, is not above its own quantile
            thresholds += 16 * np.finfo(thresholds.dtype).eps * np.maximum(abs(thresholds), 1)
            poolings.append(Pooling(names, thresholds))
        return poolings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing_values != "raise"
        tags.transformer_tags.preserves_dtype = []  # determined by the parameter dtype, not by X
        return tags


def _backwards(name_of: Callable[[int], str]) -> Callable[[int], str]:
    """Return names, for messages, of series whose steps are counted from the last."""
    return lambda i: f"{name_of(i)}, backwards"


def _batches(order: Array, lengths: Sequence[int], n_jobs: int) -> list[Array]:
    """Cut the order of series into batches of some steps each, several of them for each thread."""
    n_steps = min(_BATCH_STEPS, sum(lengths) // (2 * n_jobs))
    batches, begin, taken = [], 0, 0
    for end in range(_BATCH, len(order) + _BATCH, _BATCH):
        taken += sum(lengths[i] for i in order[end - _BATCH : end])
        if taken >= n_steps or end >= len(order):
            batches.append(order[begin:end])
            begin, taken = end, 0
    return batches


def features_of(estimator: Any, **others: Any) -> ReservoirFeatures:
    """Return unfitted features with an estimator's parameters, some of them replaced."""
    names = [each.name for each in fields(ReservoirFeatures) if each.name not in others]
    return ReservoirFeatures(**{name: getattr(estimator, name) for name in names}, **others)
