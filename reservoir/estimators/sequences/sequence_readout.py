"""Readout of features of whole sequences: base class of the classifier and the regressor."""

from __future__ import annotations

import contextlib
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import Sequences, read_whole_series
from reservoir._tables.frames import n_levels
from reservoir._tables.targets import is_per_row, read_weights
from reservoir._typing import Array
from reservoir._validation import SumError, as_generator
from reservoir._validation.arrays import joined, together
from reservoir.estimators.describe import Described, listed, words_for_penalty
from reservoir.estimators.parameters import check_parameters
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.sequences.feature_parameters import shared_with_readout as shared
from reservoir.estimators.sequences.reservoir_features import ReservoirFeatures, features_of
from reservoir.estimators.sequences.sequence_inputs import mean_and_spread
from reservoir.estimators.targets import TargetCoding
from reservoir.readouts import LeaveOneOut, StoredReadout, leave_one_out_ridge
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.dual import StandardRows, even_spread
from reservoir.readouts.relevance import folds_for, relevance_ridge

_Self = TypeVar("_Self", bound="SequenceReadout")
_BLOCK = 512  # sequences whose features are computed at a time for the built-in readout
_MISSING = 10 / 3  # replaces NaN, in standard deviations: a value that data do not have

_FITTED_AT_TIMES = (
    "coef_",
    "intercept_",
    "alpha_",
    "alpha_scores_",
    "readout_",
    "temperature_",
    "input_scaling_scores_",
)


class UniqueSequences(NamedTuple):
    """The distinct sequences of positive weight (cases), in an order determined by their content.

    A repeated sequence is thus a larger weight, also when held out, and a weight of zero omits it.
    The order depends neither on bytes, nor on the order of X or units of channels. `place`,
    (n_sequences,), is the case of each sequence, or -1 for weight zero.
    """

    sequences: Sequences
    targets: Array  # (n_cases, n_outputs), weighted means over equal sequences
    weights: Array  # (n_cases,), totals
    place: Array

    @property
    def used(self) -> Array:
        """Whether each sequence has a positive weight."""
        return self.place >= 0

    @classmethod
    def of(cls, sequences: Sequences, targets: Array, weights: Array | None) -> UniqueSequences:
        """Return the cases among sequences; raise if there are fewer than two."""
        each = np.ones(len(sequences)) if weights is None else weights
        gaps = [None] * len(sequences) if sequences.gaps is None else sequences.gaps
        cases = zip(sequences.arrays, gaps, each, strict=True)
        keys = [_content(rows, between) if w > 0 else b"" for rows, between, w in cases]
        found = {key: i for i, key in enumerate(keys) if key}
        if len(found) < 2:
            raise ValueError(
                f"X has {len(found)} distinct sequence(s) of positive weight (n_samples="
                f"{len(sequences)}): at least 2 are needed, so that one can be held out."
            )
        different = sequences.some(list(found.values()))
        # keys determine the order of sequences that differ by rounding errors only
        order = [key for _, key in sorted(zip(_marks(different).tolist(), found, strict=True))]
        number = {key: k for k, key in enumerate(order)} | {b"": -1}
        place = np.array([number[key] for key in keys])
        used = place >= 0
        total, sums = np.zeros(len(order)), np.zeros((len(order), targets.shape[1]))
        np.add.at(total, place[used], each[used])
        np.add.at(sums, place[used], each[used, None] * targets[used])
        ones = sequences.some([found[key] for key in order])
        return cls(ones, sums / total[:, None], total, place)


def _content(rows: Array, gaps: Array | None) -> bytes:
    """Return a digest of an array and of the times between its rows; it is never empty."""
    rows = rows + 0.0  # -0 becomes 0, and all NaN get the same bits
    rows[np.isnan(rows)] = np.nan
    content = rows.tobytes() + (b"" if gaps is None else gaps.tobytes())
    digest = hashlib.blake2b(content, digest_size=16).digest()
    return digest + str(rows.shape).encode()


def _marks(sequences: Sequences) -> Array:
    """Return a number for each sequence, different for all: a random sum of its values.

    Channels are standardised first: other units and zero points change the numbers by rounding
    errors, which are far smaller than their differences, and do not change their order.
    """
    arrays = list(sequences.arrays)
    if sequences.gaps is not None:
        before = [np.append(0.0, between) for between in sequences.gaps]
        arrays = [np.column_stack(both) for both in zip(arrays, before, strict=True)]
    mean, spread = mean_and_spread(arrays)
    factors = np.random.default_rng(0).normal(size=(max(map(len, arrays)), len(mean)))
    marks = []
    for some in together(arrays):
        rows, lengths = joined(some), np.array([len(each) for each in some])
        begins = np.cumsum(lengths) - lengths
        steps = np.arange(len(rows)) - np.repeat(begins, lengths)
        with np.errstate(over="ignore", invalid="ignore"):  # raises later
            values = np.where(np.isnan(rows), _MISSING, (rows - mean) / spread)
            marks.append(np.add.reduceat((values * factors[steps]).sum(axis=1), begins))
    return np.concatenate(marks)


class _Candidate(NamedTuple):
    """Features with one candidate of the input scaling, and the ridge fitted to them."""

    features: ReservoirFeatures
    table: Array
    ridge: LeaveOneOut | None

    @property
    def error(self) -> float:
        """Error on held-out sequences with the best penalty, summed over outputs."""
        return 0.0 if self.ridge is None else float(self.ridge.scores.sum(axis=1).min())


@dataclass(eq=False, repr=False)
class SequenceReadout(Described, BaseEstimator):
    """Base class of readouts of features of whole sequences.

    Subclasses define the targets, and list the parameters in which they differ.

    Attributes
    ----------
    features_ : ReservoirFeatures
        The fitted features, with the chosen `input_scaling`.
    input_scaling_ : float
        The input scaling as set, or as chosen from several candidates.
    input_scaling_scores_ : array of shape (n_candidates,)
        The squared error of each candidate on held-out sequences (with its best `alpha`), summed
        over outputs; only with several candidates.
    coef_ : array of shape (n_outputs, n_columns), or 1-D for 1-D y
        Weights of the built-in readout; `features_.get_feature_names_out` names the columns.
    intercept_ : array of shape (n_outputs,), or float for 1-D y
        Intercepts of the built-in readout.
    alpha_ : float
        The penalty of the built-in readout, as set or as chosen.
    alpha_scores_ : array of shape (n_alphas, n_outputs)
        The mean squared error on held-out sequences for each penalty; with several outputs of a
        regressor, in units of their variances.
    readout_ : estimator
        The fitted `readout`, if one was given.
    n_features_in_ : int
        Number of columns of X, including an id column; for a 2-D X with one series per row, the
        number of steps.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X; only if X had names.
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
    alpha: Any = shared.alpha
    relevance_weights: bool = shared.relevance_weights
    readout: Any = shared.readout

    _time_column = None

    @abstractmethod
    def _coding(self) -> TargetCoding:
        """Return a new target coding."""

    def _learn_from_left_out(
        self, left_out: Array, cases: UniqueSequences, targets: Array, weights: Array | None
    ) -> None:
        """Learn from the predictions of the ridge for held-out cases.

        `left_out` has shape (n_deals, n_cases, n_outputs): one entry for each split of the cases
        into folds. NaN for cases that were never held out.
        """

    def _description(self) -> dict[str, str]:
        found = dict(self.features_._description())
        if not hasattr(self, "coef_"):
            return found | {"Readout": f"{type(self.readout_).__name__}, a scikit-learn estimator"}
        by = "held-out sequences"
        found["Readout"] = words_for_penalty(
            self.alpha_, self.alpha if np.ndim(self.alpha) else None, by
        )
        error = np.sqrt(np.min(self.alpha_scores_, axis=0))
        return found | {"Error": f"{listed(error)} (root mean square), on {by}"}

    _memory_advice = ReservoirFeatures._memory_advice

    def _check(self) -> None:
        """Raise if `readout` is not a scikit-learn estimator."""
        if self.readout is not None and not StoredReadout.takes(self.readout):
            raise TypeError(
                f"readout must be a scikit-learn estimator or None; got {self.readout!r}."
            )

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Compute a row of features for each sequence, and fit the readout to these.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `ReservoirFeatures.fit`; at least two sequences.
        y : array of shape (n_sequences,), or (n_sequences, n_outputs) for a regressor
            One entry per sequence. If X is a table with an id column or a MultiIndex, y may also
            have one entry per row of X, which scikit-learn's row-wise splitters require; it must be
            constant within each sequence (`GroupKFold` with the ids as groups keeps sequences
            whole). Predictions then also have one entry per row.
        sample_weight : array of shape (n_sequences,), or one per row like y, optional
            Non-negative weights. A weight of 2 is equivalent to passing the sequence twice.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is invalid; the message gives the reason and a remedy.
        """
        with restored_on_error(self):
            check_parameters(self)
            self._check()
            sequences = self._read(X, y, None)
            self._targets = self._coding()
            targets = np.stack(self._targets.read(self, y, sequences, first=True))
            self._per_row = is_per_row(y, sequences)
            self._fit(sequences, targets, self._read_weights(sample_weight, sequences, targets))
        return self

    def _fit(self, sequences: Sequences, targets: Array, weights: Array | None) -> None:
        for name in _FITTED_AT_TIMES:
            self.__dict__.pop(name, None)
        cases = UniqueSequences.of(sequences, targets, weights)
        scales = np.atleast_1d(np.asarray(self.input_scaling, dtype=float)).tolist()
        # the same weights for every candidate
        seed = self.random_state
        if len(scales) > 1 and not isinstance(seed, (int, np.integer)):
            seed = int(as_generator(seed).integers(2**31))
        best: _Candidate | None = None
        errors = []
        for scale in scales:
            features = features_of(self, input_scaling=scale, random_state=seed)
            features.__dict__.update(self._columns_seen())
            features.fit_sequences(cases.sequences)
            table, ridge = features.transform_sequences(cases.sequences), None
            if self.readout is None or len(scales) > 1:
                with _naming_targets():
                    ridge = self._ridge(table, cases)
            one = _Candidate(features, table, ridge)
            errors.append(one.error)
            best = one if best is None or one.error < best.error else best
        assert best is not None
        best.features.warn_of_units(cases.sequences)
        if self._targets.classes is None:
            self.n_outputs_ = targets.shape[1]
        else:
            self.classes_ = self._targets.classes
        self.features_, self.input_scaling_ = best.features, best.features.input_scaling
        if len(scales) > 1:
            self.input_scaling_scores_ = np.array(errors)
        if self.readout is None:
            assert best.ridge is not None
            self._keep_ridge(best.ridge)
            self._learn_from_left_out(best.ridge.left_out, cases, targets, weights)
        else:
            self._fit_readout(best.table, cases, targets, weights)

    def _ridge(self, table: Array, cases: UniqueSequences) -> LeaveOneOut:
        """Return the ridge on features, with its predictions for held-out sequences.

        Its scores are in units of `_sizes`, so that no output outweighs the others.
        """
        sizes = self._sizes(cases)
        given = table, cases.targets / sizes, self.alpha, cases.weights
        if self.relevance_weights:
            ridge = relevance_ridge(*given, folds_for(cases.targets))
        else:
            even = even_spread(table, cases.weights)
            ridge = leave_one_out_ridge(*given, column_weights=even)
            ridge = ridge._replace(left_out=ridge.left_out[None])
        return ridge._replace(
            coef=ridge.coef * sizes[:, None],
            intercept=ridge.intercept * sizes,
            left_out=ridge.left_out * sizes,
        )

    def _sizes(self, cases: UniqueSequences) -> Array:
        """Return the unit of each output in the comparison of penalties.

        The standard deviations of several numbers; 1 for a single output and for classes.
        """
        n_outputs = cases.targets.shape[1]
        if n_outputs == 1 or self._targets.classes is not None:
            return np.ones(n_outputs)
        away = cases.targets - np.average(cases.targets, axis=0, weights=cases.weights)
        largest = np.abs(away).max(axis=0)
        largest[largest == 0] = 1.0  # first to unit size, so that no square overflows
        spread = np.sqrt(np.average((away / largest) ** 2, axis=0, weights=cases.weights))
        return largest * np.where(spread > 0, spread, 1.0)

    def _columns_seen(self) -> dict[str, Any]:
        """Return number and names of the columns of X, by the names of these attributes."""
        names = ("n_features_in_", "feature_names_in_")
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _keep_ridge(self, ridge: LeaveOneOut) -> None:
        one = self._targets.one_dimensional
        self.coef_ = ridge.coef[0] if one else ridge.coef
        self.intercept_ = ridge.intercept[0] if one else ridge.intercept
        self.alpha_, self.alpha_scores_ = ridge.alpha, ridge.scores

    def _fit_readout(
        self, table: Array, cases: UniqueSequences, targets: Array, weights: Array | None
    ) -> None:
        """Fit the user's readout on standardised columns, one row for each sequence."""
        rows = StandardRows(table, cases.weights)
        rows.weigh_columns(even_spread(table, cases.weights))
        self._mean, self._scale = rows.mean, rows.scale
        settings = ReadoutSettings(
            estimator=clone(self.readout),
            decode=self._targets.for_readout,
            classes=self._targets.classes,
        )
        used = cases.used
        readout = StoredReadout(settings).begin(table.shape[1], targets.shape[1])
        readout.update(
            self._standardised(table)[cases.place[used]],
            targets[used],
            None if weights is None else weights[used],
        )
        self.readout_ = readout.solve()["readout_"]

    def _standardised(self, table: Array) -> Array:
        return ((table - self._mean) / self._scale).astype(table.dtype)

    # ------------------------------------------------------------------ reading

    def _read(self, X: Any, y: Any, fitted: tuple[str, int] | None) -> Sequences:
        missing = self.missing_values if fitted is None else self.features_._inputs.missing
        sequences = read_whole_series(
            self,
            X,
            sequence_column=self.sequence_column if fitted is None else self._sequence_column,
            time_column=self.time_column if fitted is None else self._time_column,
            allow_nan=missing != "raise",
            fitted=fitted,
            y=y,
        )
        if fitted is None:
            self._sequence_column: Any = self.sequence_column
            self._time_column = self.time_column
        _check_same_index(X, y)
        return sequences

    def _read_again(self, X: Any, y: Any = None) -> Sequences:
        check_is_fitted(self)
        return self._read(X, y, (self.features_._container, self.features_.n_channels_))

    def _read_weights(
        self, sample_weight: Any, sequences: Sequences, targets: Array
    ) -> Array | None:
        by_class = getattr(self, "class_weight", None)
        weights = self._targets.weights(sample_weight, sequences, list(targets), by_class)
        return None if weights is None else np.concatenate(weights)

    # ------------------------------------------------------------------ using the fitted readout

    def _scores(self, sequences: Sequences) -> Array:
        """Return the outputs of the built-in readout, (n_sequences, n_outputs)."""
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        scores = np.empty((len(sequences), len(coef)))
        rows = np.empty((min(len(sequences), _BLOCK), coef.shape[1]))
        engine = self.features_.engine_of(sequences)
        # in blocks, so that the memory for features does not grow with the number of sequences
        for begin in range(0, len(sequences), _BLOCK):
            some = sequences.some(range(len(sequences))[begin : begin + _BLOCK])
            double = rows[: len(some)]
            double[:] = self.features_.transform_sequences(some, engine)
            with np.errstate(over="ignore", invalid="ignore"):
                scores[begin : begin + _BLOCK] = double @ coef.T + intercept
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"The output for {sequences.name(int(np.argmin(finite)))} overflows float64: the "
                "sequence is far outside the range of the data in fit. Check that sequence, or "
                "scale X."
            )
        return scores

    def _values(
        self, method: str, sequences: Sequences, of_scores: Callable[[Array], Array]
    ) -> Any:
        """Return a value for each sequence: of the scores, or of a method of the user's readout."""
        if not hasattr(self, "readout_"):
            return of_scores(self._scores(sequences))
        table = self.features_.transform_sequences(sequences)
        return getattr(self.readout_, method)(self._standardised(table))

    def _as_given(self, values: Any, sequences: Sequences) -> Any:
        """Return one entry per sequence, or per row of the table if y was per row in fit."""
        if self._per_row and sequences.ids is not None:
            return np.repeat(values, sequences.lengths, axis=0)
        return values

    def predict(self, X: Any) -> Array:
        """Return the prediction for each sequence.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences,), or (n_sequences, n_outputs)
            If X is a table and y had one entry per row in fit, the result has one entry per row of
            X.
        """
        sequences = self._read_again(X)
        values = self._values("predict", sequences, self._targets.decode)
        return self._as_given(values, sequences)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the R^2 of `predict`, or its accuracy for labels; each sequence counts once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        sequences = self._read_again(X, y)
        truth = self._targets.truth(self, y, sequences)
        read = read_weights(sample_weight, sequences, per_sequence=True)
        weights = None if read is None else np.concatenate(read)
        predicted = self._values("predict", sequences, self._targets.decode)
        return self._targets.score(truth, predicted, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing_values != "raise"
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags


@contextlib.contextmanager
def _naming_targets() -> Iterator[None]:
    """Name y in the error for targets whose squares overflow."""
    try:
        yield
    except SumError as error:
        if error.of != "Y":
            raise
        raise ValueError(
            f"The squares of y overflow in column {error.column}. Scale y "
            "(TransformedTargetRegressor)."
        ) from error


def _check_same_index(X: Any, y: Any) -> None:
    """Check that the MultiIndex of a y with one entry per row is that of X."""
    if min(n_levels(X), n_levels(y)) > 1 and not X.index.equals(y.index):
        raise ValueError(
            "X and y have different MultiIndexes: they must have the same rows in the same order."
            " Take those of X: `y = y.loc[X.index]`."
        )
