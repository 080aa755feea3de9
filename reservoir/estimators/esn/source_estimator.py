"""Base classes of the estimators that learn a readout over a fixed source of features."""

from __future__ import annotations

import copy
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._validation import advising, check_choice
from reservoir.estimators.describe import (
    description_of_readout,
    description_of_reservoir,
    no_certificate,
)
from reservoir.estimators.esn._free_runs import check_free_runs
from reservoir.estimators.esn.label_filtering import (
    FilteringPredictor,
    check_transition,
    raise_in_chunks,
    with_filter,
)
from reservoir.estimators.esn.merging import check_merge, merged_model
from reservoir.estimators.esn.online_readout import FeatureLearner
from reservoir.estimators.esn.readout_model import (
    ReadoutModel,
    ReadoutPredictor,
    RunOptions,
    raise_looks_ahead,
    warn_of_range,
)
from reservoir.estimators.esn.readout_training import (
    check_past,
    equal_share,
    few_rows,
    naming_columns,
    tails_of,
    washout_lengths,
)
from reservoir.estimators.esn.sources import input_rows
from reservoir.estimators.forecasting.forecast import ClosedLoop
from reservoir.estimators.forecasting.predictor import Forecaster, forecaster_of
from reservoir.estimators.parameters import check_parameters
from reservoir.estimators.reading import CONFIG, Columns, DataReader, TrainingData
from reservoir.estimators.reporting import ProgressReport
from reservoir.estimators.targets import Numbers, TargetCoding
from reservoir.estimators.time_series_estimator import TimeSeriesEstimator
from reservoir.readouts import READOUTS, kind_of
from reservoir.readouts.contract import Readout, ReadoutSettings
from reservoir.readouts.selection import is_path, rule_for
from reservoir.readouts.sums import check_forgetting

_Self = TypeVar("_Self", bound="SourceEstimator")


class LazyTables(NamedTuple):
    """Fit and predict for tables of a library whose rows are not in memory.

    ``fit(estimator, X, y, sample_weight)`` returns a fitted clone, and ``predict(estimator, X,
    initial_state)`` returns predictions whose rows are computed later.
    """

    fit: Callable[..., Any]
    predict: Callable[..., Any]


#: Filled by `reservoir.interop`, by the package that defines the class of X.
LAZY_TABLES: dict[str, LazyTables] = {}


def _lazy_tables_of(X: Any) -> LazyTables | None:
    return LAZY_TABLES.get(type(X).__module__.partition(".")[0])


class SourceEstimator(TimeSeriesEstimator):
    """Readout over a source of features; base class whose subclasses list their parameters.

    The fitted state is in two objects: `_reader` reads X and y, and `_model` contains what was
    learned from them. All fitted attributes are set from these two, at the end of a successful
    call.

    Attributes
    ----------
    coef_ : array of shape (n_outputs, n_units [+ n_features]), or 1-D for 1-D y
        Weights of the built-in readout: states first, then inputs. With `augment`, the weights of
        the augmented states replace the first n_units weights. In `ESNRegressor` the weights of
        older rows follow the weights of the present input, ``n_lags_ - 1`` rows of n_features
        weights, the latest row first. With `bidirectional`, the weights of the states of the run
        backwards come last.
    intercept_ : float or array of shape (n_outputs,)
        Intercept of each output.
    alpha_ : float or array of shape (n_outputs,)
        The penalty used.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried, unless `alpha` is a number; with another `input_alpha_`,
        those that were tried with it.
    n_lags_ : int
        `ESNRegressor` only: the number of rows of the input that the readout receives.
    input_alpha_ : float or array of shape (n_outputs,)
        `ESNRegressor` only: the penalty of the weights of these rows.
    alpha_scores_ : array of shape (n_alphas, n_outputs) or (n_alphas, 1)
        Mean squared error on held-out rows that `alpha_selection` expects for each penalty. With
        "forecast" there is one error for all outputs, in standard deviations of y: the geometric
        mean over the steps of each closed loop, then the median over the loops. The error of each
        step is clipped to the range from 1e-9 to 1.
    alpha_selection_ : str
        The selection rule used; for "auto" the rule that it resolved to.
    training_error_ : array of shape (n_outputs,)
        Root mean squared error of each output over the fitted rows; for a classifier the error of
        its scores, whose targets are 1 and -1. With ``solver="cholesky"`` an error below about 1e-8
        times the standard deviation of the targets cannot be distinguished from 0. The `learn`
        method of a session does not change it.
    readout_ : estimator
        The fitted `readout`, if one was given.
    reservoir_ : reservoir.dynamics.Reservoir
        The reservoir with its fixed weights.
    certificate_ : reservoir.stability.Certificate
        With ``bias="stable"``: the property that is proved, and the range of inputs that it covers.
    washout_ : array of shape (n_sequences,)
        Number of rows at the start of each sequence that fit excluded; with `bidirectional` it
        excluded as many at the end.
    state_ : array of shape (n_units,), with feedback (n_units + n_outputs,)
        The state at the end of the last training sequence. With feedback, the last target follows.
        With a `time_column` the shape is (n_units + 1,), and the last entry is the time of the last
        row, in steps since the first row of fit. In `ESNRegressor` the last ``(n - 1) * skip`` rows
        of X come first, the oldest of them at the start; n is `n_lags`, or with "auto" the largest
        number of rows that it may choose, whatever `n_lags_`. With
        `bidirectional` the shape is (2 * n_units,): the states of both runs at the last row.
    seam_ : float
        After a fit in parts (tables of Dask, `reservoir.interop.plan_parts`): the largest
        difference between the state in which a part ended and that to which the next one was warmed
        up, relative to the largest entry of the state.
    time_step_ : float or None
        The time between two rows to which `leak_rate` refers; None without a `time_column`.
    n_outputs_ : int
        Number of outputs.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.

    """

    _model: ReadoutModel
    _grows_with: tuple[str, ...] = ()  # parameters that the number of features grows with
    # parameters of some subclasses only
    noise: float = 0.0
    bidirectional: bool = False
    transition: str | None = None

    @abstractmethod
    def _new_model(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        """Return an untrained model over the features of the class."""

    # ------------------------------------------------------------------ learning

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Compute the features of each row of X, and solve for the readout.

        Frames and arrays of Dask with equal partitions are learned partition by partition, by
        Dask's workers, as parts of one fit (`reservoir.interop.plan_parts`); `predict` then returns
        one that is computed later.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Inputs; at least two rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or one such array per sequence
            Targets: numbers, or for a classifier labels of shape (n_samples,).
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            Weight of each row, at least 0. A row of weight 0 is not learned from, but still drives
            the states of the rows after it.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is invalid; the message gives the reason and a remedy. Dates
            in an index must increase within each sequence. The index of y must equal the index of
            X, or be ahead of it by a constant offset. Dates among the values are not allowed.

        Warns
        -----
        UserWarning
            If the dates of an index have no frequency: each row then counts as one step, whatever
            the time between rows.
        """
        lazy = _lazy_tables_of(X)
        if lazy is not None:
            self._replace_fitted(lazy.fit(self, X, y, sample_weight)._fitted_alone())
            return self
        with advising(self._memory_advice()):
            reader = DataReader(self, self._coding())
            data = reader.read(self, X, y, sample_weight, allow_nan=self._skips_missing())
            model = self._begun(reader, data)
            readout, options = self._new_readout(reader), self._run_options(reader, data)
            readout.inputs = input_rows(self, model.source)
            check_past(model.source, self.washout, data.sequences.lengths, readout.inputs)
            readout.check_room(model.source.width, sum(data.sequences.lengths))
            starts = model.initial_states(self.initial_state, data.sequences)
            skips = washout_lengths(self.washout, model.source, data, starts)
            model = model.fitted(
                data, starts, skips, readout, options, by_loops=self._chooses_by_loops()
            )
            tails = tails_of(model.source, skips)
            doubt = few_rows(model.readout, share=equal_share(data.weights, skips, tails))
            unsolved = copy.copy(model.readout)
            solution = model.solution(doubt)
            if options.report is not None:
                options.report.finish()
            if self.transition is not None:
                fits = unsolved.held_out_fits(solution["alpha_"])
                empty = self._new_readout(reader)
                model = with_filter(model, fits, empty, data, starts, skips, solution)
            self._publish(reader, model, data.columns, skips, solution)
        return self

    def _partial_fit(
        self: _Self, X: Any, y: Any, sample_weight: Any, *, new_sequence: bool, **known: Any
    ) -> _Self:
        """Learn from a chunk; `known` is passed to `TargetCoding.read`."""
        self._check_steps("partial_fit", bool(self.bidirectional))
        if self.transition is not None:
            raise_in_chunks()
        with advising(self._memory_advice()):
            first, skips_missing = self._is_new, self._skips_missing()
            reader = DataReader(self, self._coding()) if first else self._reader
            data = reader.read_chunk(
                self, X, y, sample_weight, first=first, allow_nan=skips_missing, **known
            )
            self._check_forgetting()
            readout = self._new_readout(reader, partial=True)
            readout.check_partial()
            if not first:
                self._check_chunk(readout, data)
            model = self._begun(reader, data) if first else self._shown_model()
            if first:
                readout.inputs = input_rows(self, model.source)
                check_past(model.source, self.washout, ())
                readout.check_room(model.source.width)
            starts = model.initial_states(self.initial_state, data.sequences)
            if first:
                (model.progress.washout,) = washout_lengths(
                    self.washout, model.source, data, starts, partial=True
                )
            earlier, options = model.readout, self._run_options(reader, data)
            model, skips = model.continued(
                data, starts, readout, options, new_sequence=new_sequence
            )
            before = None if earlier is None else self._warned_of(earlier, readout.settings)
            doubt = few_rows(model.readout, before, share=equal_share(data.weights, skips))
            solution = self._solution_of_chunks(model, doubt)
            if options.report is not None:
                options.report.finish()
            washout = [model.progress.washout] if first else self.washout_
            self._publish(reader, model, data.columns, washout, solution)
        return self

    def merge(self: _Self, other: SourceEstimator) -> _Self:
        """Add what another estimator has learned from, after the rows of this one.

        Both must have been fitted with the same parameters and the same integer `random_state`, on
        different sequences. The penalty is chosen by `alpha` of this estimator, from the sums
        of both: a number, "gcv" and "reml" give the predictions of one fit to the list of all
        sequences, up to rounding. By default each model has halves of its own, and `alpha_` may
        differ from that of one fit, as `temperature_` of a classifier may, whose sample of rows is
        drawn from those of both.

        The state is that after the last row of `other`, and `partial_fit` continues its last
        sequence. As after a fit to several sequences, `predict` begins a new one, and `forecast`
        needs `context`.

        Parameters
        ----------
        other : estimator of the same class
            It is not changed.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the two differ in their features, targets, solver or rule of selection, have learned
            from sequences of the same id, or keep more than sums (`readout`, `transition`, `noise`,
            ``forgetting < 1``; ``alpha_selection="blocked"``, ``"holdout"``, ``"forecast"`` and
            ``"reml_ar1"``). This estimator is then unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNRegressor
        >>> rng = np.random.default_rng(0)
        >>> Xs = rng.normal(size=(2, 500, 1))
        >>> ys = np.roll(Xs[:, :, 0], 1, axis=1)
        >>> one, other = (ESNRegressor(20, alpha=1e-3, random_state=0) for _ in range(2))
        >>> model = one.fit(Xs[0], ys[0]).merge(other.fit(Xs[1], ys[1]))
        >>> together = ESNRegressor(20, alpha=1e-3, random_state=0).fit(Xs, ys)
        >>> bool(np.allclose(model.predict(Xs[0]), together.predict(Xs[0])))
        True
        """
        check_merge(self, other)
        with advising(self._memory_advice()):
            reader, columns, earlier = self._reader, Columns.of(self), self._model.readout
            settings = self._new_readout(reader, partial=True).settings
            with naming_columns(self._model.source, reader.sequence_column):
                model = merged_model(self, other)
            model.readout.settings = settings
            model.readout.check_partial()
            model.watch(model.activity, reader.names_of_columns(columns))
            doubt = few_rows(model.readout, self._warned_of(earlier, settings))
            solution = self._solution_of_chunks(model, doubt)
            self._publish(reader, model, columns, [*self.washout_, *other.washout_], solution)
        return self

    def _begun(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        """Return an untrained model, after the parameters were checked against the data."""
        self._check(reader, data)
        model = self._new_model(reader, data)
        self._check_times(reader, model)
        return model

    def _new_readout(self, reader: DataReader, *, partial: bool = False) -> Readout:
        """Return an empty readout of the kind that the parameters select."""
        return self._readout_kind()(
            ReadoutSettings(
                estimator=self.readout,
                solver=self.solver,
                alpha=copy.copy(self.alpha),  # solved later, when the user's may have changed
                selection=self.alpha_selection,
                alpha_per_target=self.alpha_per_target,
                fit_intercept=self.fit_intercept,
                forgetting=self.forgetting,
                skip_missing=self._skips_missing(),
                dtype=reader.dtype,
                one_dimensional=reader.targets.one_dimensional,
                decode=reader.targets.for_readout,
                classes=reader.targets.classes,
                partial=partial,
                halves=self.transition is not None,
                input_alpha=getattr(self, "input_alpha", None),
            )
        )

    def _run_options(self, reader: DataReader, data: TrainingData) -> RunOptions:
        """Return the options of the run over the training rows."""
        names = reader.names_of_columns(data.columns, data.sequences)
        report = ProgressReport(self.verbose, unit="batch") if self.verbose else None
        return RunOptions(self.noise, self.n_jobs, report, reader.sequence_column, names)

    def _warned_of(self, earlier: Readout, settings: ReadoutSettings) -> Any:
        """Return the rows and columns before a chunk; None if their warning is pending."""
        unsolved = vars(self).get("_lazy_solution")
        warned = unsolved is None or unsolved.has_warned
        return earlier.renewed(settings).held_by_rows() if warned else None

    def _solution_of_chunks(self, model: ReadoutModel, doubt: str | None) -> dict[str, Any]:
        """Return the fitted attributes after a chunk, or a solution that makes them when read."""
        if not model.readout.n_rows:  # all rows were washout, or have been forgotten
            kept = vars(self).keys() & {"_lazy_solution", *_fitted_by_readouts()}
            return {name: vars(self)[name] for name in kept}
        lazy = model.readout.lazy
        return {"_lazy_solution": LazySolution(model, doubt)} if lazy else model.solution(doubt)

    def _publish(
        self,
        reader: DataReader,
        model: ReadoutModel,
        columns: Columns,
        washout: Sequence[int],
        solution: Mapping[str, Any],
    ) -> None:
        """Replace all fitted attributes; before this, a call that fails has changed none."""
        # each call makes the settings from the parameters; empty ones can be saved
        model.readout.settings = ReadoutSettings()
        fitted = {
            "_reader": reader,
            "_model": model,
            "washout_": np.array(washout, dtype=np.int64),
            **columns.fitted,
            **model.fitted_attributes,
            **solution,
        }
        if reader.targets.classes is not None:
            fitted["classes_"] = reader.targets.classes
        if hasattr(self, "input_alpha") and model.readout.inputs is None:
            fitted["n_lags_"] = getattr(model.source, "n_rows", 1)
        if hasattr(self, "time_step"):
            fitted["time_step_"] = None if reader.clock is None else reader.clock.step
        self._replace_fitted(fitted)

    def _replace_fitted(self, fitted: dict[str, Any]) -> None:
        earlier = () if self._is_new else self._model.fitted_attributes
        for name in (*earlier, *_FITTED, *_fitted_by_readouts()):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)

    def _fitted_alone(self) -> dict[str, Any]:
        """Return what a fit has set, without parameters and the container of results."""
        own = {*self.get_params(deep=False), CONFIG}
        return {name: value for name, value in vars(self).items() if name not in own}

    # ------------------------------------------------------------------ checks

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        """Check the parameters: each alone, together, and for these data."""
        check_parameters(self)
        if self.readout is not None and np.ndim(self.alpha) > 0:
            raise ValueError(
                "alpha is an array of candidates, but readout= replaces the ridge that would "
                "choose from them. Use a number, or search over the parameters of the readout."
            )
        self._check_forgetting()
        if self.transition is not None:
            check_transition(self, reader)
        if self._chooses_by_loops():
            check_free_runs(self)

    def _check_forgetting(self) -> None:
        """Check that the readout and its rule of selection support `forgetting`."""
        kind = self._readout_kind()
        if check_forgetting("forgetting", self.forgetting) == 1:
            return
        if not kind.forgets:
            raise ValueError(
                f"forgetting={self.forgetting} is a parameter of the built-in ridge, which "
                f"readout={self.readout!r} replaces. Use readout=None, or forgetting=1.0 and a "
                "readout that has its own forgetting parameter."
            )
        if is_path(self.alpha) and rule_for(self.alpha_selection, self.forgetting).min_blocks:
            raise ValueError(
                f"alpha_selection={self.alpha_selection!r} compares parts of the data, and with "
                f"forgetting={self.forgetting} only the last part would count. Use "
                'alpha_selection="auto" or "reml", a number as alpha, or forgetting=1.0.'
            )

    def _readout_kind(self) -> type[Readout]:
        """Return the kind of readout that the parameters select."""
        kind = kind_of(self.readout)
        if kind is None:
            raise TypeError(
                f"readout must be a scikit-learn estimator or None; got {self.readout!r}."
            )
        return kind

    def _check_times(self, reader: DataReader, model: ReadoutModel) -> None:
        """Check that the source of features can use a column of times."""
        if reader.clock is not None and not hasattr(model.source, "clock"):
            raise ValueError(
                f"time_column={reader.time_column!r} is not supported by {type(self).__name__}, "
                "whose features have no state that decays between rows. Give the time between rows "
                "as a column of X."
            )

    def _check_chunk(self, readout: Readout, data: TrainingData) -> None:
        """Check that a chunk can follow the earlier ones, and that the readout can continue."""
        earlier = self._model.readout
        earlier.check_takes_more_rows()
        if type(readout) is not type(earlier):
            raise ValueError(
                f"readout={self.readout!r} differs in kind from the readout of earlier calls, and "
                "cannot continue from their rows. Use fit, or the readout that partial_fit began "
                "with."
            )
        readout.go_on_from(earlier)
        warn_of_range(self._model.source, self._model.certificate, data.sequences)
        self._check_same_outputs(data.targets)

    def _chooses_by_loops(self) -> bool:
        """Whether the penalty is to be chosen by closed-loop runs."""
        path = self.readout is None and is_path(self.alpha)
        return path and rule_for(self.alpha_selection, self.forgetting).in_loops

    def _skips_missing(self) -> bool:
        """Whether rows without a target are skipped."""
        how = getattr(self, "missing_targets", "raise")
        return check_choice("missing_targets", how, ("raise", "skip")) == "skip"

    def _memory_advice(self) -> str:
        """Return a sentence on which parameters to change if memory runs out."""
        values = {name: getattr(self, name) for name in self._grows_with}
        # those that make out most of it, the largest first; invalid ones raise errors of their own
        values = {name: value for name, value in values.items() if isinstance(value, Integral)}
        large = [name for name in values if 100 * values[name] >= max(values.values())]
        large.sort(key=lambda name: -values[name])
        sizes = " or ".join(f"{name}={values[name]}" for name in large) or "the number of features"
        if self.readout is not None:
            return f"Lower {sizes}, or pass fewer rows; partial_fit accepts them in chunks."
        few = "A fit of at most half as many rows as features needs no square matrix."
        return f"Lower {sizes}. {few}"

    # ------------------------------------------------------------------ fitted or not

    if not TYPE_CHECKING:  # with it a type checker would accept any misspelt attribute

        def __getattr__(self, name: str) -> Any:
            """Return a fitted attribute, solved for when it is first read."""
            unsolved = self.__dict__.get("_lazy_solution")
            if unsolved is not None and name in unsolved.names:
                made = unsolved.attributes()
                if name in made:
                    return made[name]
            if name == "certificate_" and hasattr(self, "bias"):
                raise AttributeError(no_certificate(self))
            return object.__getattribute__(self, name)  # raises Python's own AttributeError

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be pickled, copied or saved, with all fitted attributes solved."""
        state = dict(super().__getstate__())
        unsolved = state.pop("_lazy_solution", None)
        return state if unsolved is None else state | unsolved.attributes()

    def __sklearn_is_fitted__(self) -> bool:
        mine = vars(self)
        return "_lazy_solution" in mine or any(
            name in mine for kind in READOUTS.values() for name in kind.fitted
        )

    def _check_begun(self) -> None:
        """Raise unless the estimator has seen rows, of which all may be washout."""
        if self._is_new:
            check_is_fitted(self)

    def _check_fitted(self) -> None:
        if self.__sklearn_is_fitted__():  # scikit-learn's check is slower than a step of a session
            return
        if not self._is_new:
            n, skip = self._model.progress.n_steps, self._model.progress.washout
            why = f"seen only washout rows so far: {n} steps, washout={skip}"
            if n > skip:
                why = (
                    f"learned from none of {n} steps: washout={skip}, and the other rows have "
                    "weight 0 or no target"
                )
            me = type(self).__name__
            raise NotFittedError(f"This {me} has {why}. Call partial_fit with more rows.")
        check_is_fitted(self)

    def _description(self) -> dict[str, str]:
        words: dict[str, str] = {}
        if hasattr(self, "reservoir_"):
            words = description_of_reservoir(self, self.reservoir_, self._model.certificate)
        source = self._predictor().source  # with the rows of the input in use
        return words | source.description | description_of_readout(self)

    # ------------------------------------------------------------------ using the fitted model

    def _check_steps(self, what: str, asked: bool = False) -> None:
        """Raise if states depend on later rows, in the fitted model or as `asked` for."""
        if asked or not (self._is_new or self._model.source.causal):
            run = "fit" if what == "partial_fit" else "predict"
            raise_looks_ahead(
                f"{what} needs states that do not depend on later rows",
                f"Use bidirectional=False, or pass whole recordings to {run}",
            )

    def _shown_model(self) -> ReadoutModel:
        """Return the model with the state in `state_`, which the user may have set."""
        if self.state_ is self._model.state:
            return self._model
        one = copy.copy(self._model)
        one.state = self.state_
        return one

    def _run_by(self, by: Any, X: Any, initial_state: Any, **options: Any) -> Any:
        """Return outputs for X; those of `predict` are computed later if its rows are."""
        lazy = _lazy_tables_of(X)
        if lazy is None or by != self._predicts_by or any(options.values()):
            return super()._run_by(by, X, initial_state, **options)
        self._check_fitted()
        return lazy.predict(self, X, initial_state)

    def _predictor(self) -> ReadoutPredictor:
        """Return the fitted model, ready to run."""
        self._check_fitted()
        filters = self._model.label_filter is not None
        return FilteringPredictor(self) if filters else ReadoutPredictor(self)

    # ------------------------------------------------------------------ in a session

    def _session_learner(self) -> FeatureLearner:
        model = self._model
        settings = self._new_readout(self._reader, partial=True).settings
        learner = model.readout.renewed(settings).row_learner(self)
        # a new record, of the session's rows only; none if a warning was already given
        activity = model.source.activity() if model.activity is not None else None
        return FeatureLearner(learner, model.noise_generator, activity)


class SourceRegressor(RegressorMixin, SourceEstimator):
    """Base class of regressors over a source of features: one row of outputs per row of X."""

    def partial_fit(
        self: _Self, X: Any, y: Any, sample_weight: Any = None, *, new_sequence: bool = False
    ) -> _Self:
        """Continue learning with the next chunk of rows.

        However the data are split over calls, the model is the same as after one `fit`, except for
        settings that depend on the data as a whole. These settings are determined from the first
        chunk: for an echo state network ``washout="auto"`` and ``"measured"``, and the range that
        ``bias="stable"`` certifies (with a warning if a later chunk leaves it); for Chebyshev
        polynomials the range by which inputs are scaled.

        The call adds the rows to sums. The attributes of the ridge (`coef_`, `intercept_`,
        `alpha_`, `alpha_scores_`) are computed when one of them is first read, which `predict`,
        `forecast`, `reservoir.save` and pickling do as well. They are computed with the parameters
        at the time of the call, and computing them may raise the errors that `fit` would raise in
        solving. A custom `readout` learns during the call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A table continues where the last call ended; each item of a list is a
            separate sequence. All weights of a call may be 0.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence, with a new initial state and washout. With
            `sequence_column`, a new id starts a new sequence automatically.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the index shows that a chunk does not begin where the last one ended, and
            `new_sequence` is False.
        """
        return self._partial_fit(X, y, sample_weight, new_sequence=new_sequence)

    def _coding(self) -> TargetCoding:
        return Numbers()

    forecast = ClosedLoop.forecast
    score = SourceEstimator.score


@forecaster_of.register
def _(model: SourceRegressor) -> Forecaster:
    return model._predictor()


class LazySolution:
    """Fitted attributes of a model, all computed when the first of them is read.

    An estimator has this object in place of the attributes, and is not changed by reading them: the
    solution is cached here. `model` and its readout, with the settings for solving, are kept as
    shallow copies. `doubt` is a warning that is given when the readout is solved.
    """

    def __init__(self, model: ReadoutModel, doubt: str | None) -> None:
        self._doubt = doubt
        self.names = frozenset(model.readout.fitted)
        self._model: ReadoutModel | None = _with_own_readout(model)
        self._made: dict[str, Any] | None = None
        self._lock = threading.RLock()

    @property
    def has_warned(self) -> bool:
        """Whether no warning is pending."""
        return self._doubt is None or self._made is not None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes by name; other threads wait while they are made."""
        made = self._made
        if made is not None:
            return made
        with self._lock:
            if self._made is None:
                assert self._model is not None
                # the model is kept until this succeeds: a second attempt raises the same error
                self._made = _with_own_readout(self._model).solution(self._doubt)
                self._model = None
            return self._made


def _with_own_readout(model: ReadoutModel) -> ReadoutModel:
    """Return a shallow copy of a model, and of its readout."""
    one = copy.copy(model)
    one.readout = copy.copy(model.readout)
    return one


#: Fitted attributes that a later fit may lack, in addition to those of models and readouts.
_FITTED = ("_lazy_solution", "feature_names_in_", "seam_")


def _fitted_by_readouts() -> set[str]:
    """Return the names of the fitted attributes of all readouts."""
    return {name for kind in READOUTS.values() for name in kind.fitted}
