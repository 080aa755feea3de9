"""Estimators with a source of features under a readout: the shells that users see."""

from __future__ import annotations

import copy
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import advising, check_choice
from reservoir.estimators.describe import description_of_readout, description_of_reservoir
from reservoir.estimators.esn._free_runs import check_free_runs
from reservoir.estimators.esn.online_readout import FeatureLearner
from reservoir.estimators.esn.readout_model import ReadoutModel, ReadoutPredictor, RunOptions
from reservoir.estimators.esn.readout_training import equal_share, few_rows, washout_lengths
from reservoir.estimators.forecasting.forecast import forecast_network
from reservoir.estimators.forecasting.forecaster import Forecaster, forecaster_of
from reservoir.estimators.parameters import check_parameters
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.targets import Numbers, TargetCoding
from reservoir.estimators.time_series_estimator import TimeSeriesEstimator
from reservoir.readouts import READOUTS, kind_of
from reservoir.readouts.contract import Readout, ReadoutSettings
from reservoir.readouts.ridge import is_path, rule_for
from reservoir.readouts.sums import check_forgetting

_Self = TypeVar("_Self", bound="SourceEstimator")


class SourceEstimator(TimeSeriesEstimator):
    """A source of features under a readout. Subclasses list their parameters.

    What is fitted is held by two objects: `_reader`, how X and y are read, and `_model`, what was
    learned from them. All else is published from these, once, when everything is made.
    """

    _reader: DataReader
    _model: ReadoutModel
    _grows_with: tuple[str, ...] = ()  # parameters that the number of features grows with
    noise = 0.0  # a parameter of those whose states can have it

    @abstractmethod
    def _coding(self) -> TargetCoding:
        """Return how targets are read."""

    @abstractmethod
    def _new_model(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        """Return a model that has learned nothing: over which features, each class says."""

    # ------------------------------------------------------------------ learning

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Turn X into features, a row for each row, and solve for the readout.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Two rows at least.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or one such array per sequence
            Numbers; for a classifier labels, (n_samples,).
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            At least 0. A row of weight 0 is still seen by the rows after it.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is refused; the message says why, and what to do. Dates in
            an index must increase within each sequence; y's index must be X's, or ahead of it by a
            constant offset; dates among the values are refused.

        Warns
        -----
        UserWarning
            If the dates of an index have no frequency: a row is one step, however long.
        """
        with advising(self._memory_advice()):
            reader = DataReader(self, self._coding())
            data = reader.read(self, X, y, sample_weight, allow_nan=self._skips_missing())
            model = self._begun(reader, data)
            starts = model.initial_states(self.initial_state, data.sequences)
            skips = washout_lengths(self.washout, model.source, data, starts)
            readout, options = self._new_readout(reader), self._run_options(reader, data)
            model = model.fitted(
                data, starts, skips, readout, options, by_loops=self._chooses_by_loops()
            )
            doubt = few_rows(model.readout, share=equal_share(data.weights, skips))
            self._publish(reader, model, data, skips, model.solution(doubt))
        return self

    def _partial_fit(
        self: _Self, X: Any, y: Any, sample_weight: Any, *, new_sequence: bool, **known: Any
    ) -> _Self:
        """Learn from a chunk; `known` as `TargetCoding.read` takes it."""
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
            starts = model.initial_states(self.initial_state, data.sequences)
            if first:
                (model.progress.washout,) = washout_lengths(
                    self.washout, model.source, data, starts, partial=True
                )
            earlier, options = model.readout, self._run_options(reader, data)
            model, skips = model.continued(
                data, starts, readout, options, new_sequence=new_sequence
            )
            told = None if earlier is None else self._told_of(earlier, readout.settings)
            doubt = few_rows(model.readout, told, share=equal_share(data.weights, skips))
            solution = self._solution_of_chunks(model, doubt)
            washout = [model.progress.washout] if first else self.washout_
            self._publish(reader, model, data, washout, solution)
        return self

    def _begun(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        """Return a model that has learned nothing, for parameters and data that go together."""
        self._check(reader, data)
        model = self._new_model(reader, data)
        self._check_times(reader, model)
        return model

    def _new_readout(self, reader: DataReader, *, partial: bool = False) -> Readout:
        """Return an empty readout of the kind that the parameters ask for."""
        return self._readout_kind()(
            ReadoutSettings(
                estimator=self.readout,
                solver=self.solver,
                alpha=copy.copy(self.alpha),  # solved under perhaps when the user's has changed
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
            )
        )

    def _run_options(self, reader: DataReader, data: TrainingData) -> RunOptions:
        """Return how rows are run over."""
        names = reader.names_of_columns(data.columns)
        return RunOptions(self.noise, self.n_jobs, self.verbose, reader.sequence_column, names)

    def _told_of(self, earlier: Readout, settings: ReadoutSettings) -> Any:
        """Return what was to be said of the rows before a chunk; None if nobody has heard it."""
        unsolved = vars(self).get("_lazy_solution")
        heard = unsolved is None or unsolved.has_told
        return earlier.renewed(settings).held_by_rows() if heard else None

    def _solution_of_chunks(self, model: ReadoutModel, doubt: str | None) -> dict[str, Any]:
        """Return the fitted attributes that chunks lead to, or what makes them when read."""
        if not model.readout.n_rows:  # all rows were washout, or are forgotten
            kept = vars(self).keys() & {"_lazy_solution", *_fitted_by_readouts()}
            return {name: vars(self)[name] for name in kept}
        lazy = model.readout.lazy
        return {"_lazy_solution": LazySolution(model, doubt)} if lazy else model.solution(doubt)

    def _publish(
        self,
        reader: DataReader,
        model: ReadoutModel,
        data: TrainingData,
        washout: Sequence[int],
        solution: Mapping[str, Any],
    ) -> None:
        """Set all that is fitted, in the place of all that was; until here nothing is set."""
        # settings are made anew from the parameters in each call; what is kept can be saved
        model.readout.settings = ReadoutSettings()
        fitted = {
            "_reader": reader,
            "_model": model,
            "washout_": np.array(washout, dtype=np.int64),
            **data.columns.fitted,
            **model.fitted_attributes,
            **solution,
        }
        if reader.targets.classes is not None:
            fitted["classes_"] = reader.targets.classes
        if hasattr(self, "time_step"):
            fitted["time_step_"] = None if reader.clock is None else reader.clock.step
        earlier = () if self._is_new else self._model.fitted_attributes
        for name in (*earlier, *_FITTED, *_fitted_by_readouts()):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)

    # ------------------------------------------------------------------ what is refused

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        """Refuse parameters that cannot be right: alone, together, or for these data."""
        check_parameters(self)
        if self.readout is not None and np.ndim(self.alpha) > 0:
            raise ValueError(
                "alpha is an array, but readout= replaces the ridge that would choose from "
                "it. Give a number, or search over the readout's own parameters."
            )
        self._check_forgetting()
        if self._chooses_by_loops():
            check_free_runs(self)

    def _check_forgetting(self) -> None:
        """Refuse to forget where rows have no order, or nothing is told to forget them."""
        kind = self._readout_kind()
        if check_forgetting("forgetting", self.forgetting) == 1:
            return
        if not kind.forgets:
            raise ValueError(
                f"forgetting={self.forgetting} is the ridge's; readout={self.readout!r} replaces "
                "it. Use readout=None, or forgetting=1.0 and a readout that forgets by itself."
            )
        if is_path(self.alpha) and rule_for(self.alpha_selection, self.forgetting).min_blocks:
            raise ValueError(
                f"alpha_selection={self.alpha_selection!r} compares parts of the data, of which "
                f"forgetting={self.forgetting} would leave the last. Use "
                'alpha_selection="auto" or "reml", a number as alpha, or forgetting=1.0.'
            )

    def _readout_kind(self) -> type[Readout]:
        """Return what kind of readout the parameters ask for."""
        kind = kind_of(self.readout)
        if kind is None:
            raise TypeError(
                f"readout must be a scikit-learn estimator or None; got {self.readout!r}."
            )
        return kind

    def _check_times(self, reader: DataReader, model: ReadoutModel) -> None:
        """Refuse a column of times that the source of features would take for an input."""
        if reader.clock is not None and not hasattr(model.source, "clock"):
            raise ValueError(
                f"time_column={reader.time_column!r} cannot go with {type(self).__name__}, whose "
                "features are no states that a gap could change. Give the time between rows as a "
                "column of X."
            )

    def _check_chunk(self, readout: Readout, data: TrainingData) -> None:
        """Refuse a chunk that cannot follow those before, or a readout that cannot go on."""
        earlier = self._model.readout
        earlier.check_takes_more_rows()
        if type(readout) is not type(earlier):
            raise ValueError(
                f"readout={self.readout!r} is of another kind than that of earlier calls, and "
                "would know their rows no more. Use fit, or the readout that partial_fit began "
                "with."
            )
        readout.go_on_from(earlier)
        self._model.warn_of_range(data.sequences)
        self._check_same_outputs(data.targets)

    def _check_same_outputs(self, targets: list[Array]) -> None:
        """Refuse a chunk with another number of outputs than those before."""
        n_outputs = targets[0].shape[1]
        if n_outputs != self._model.n_outputs:
            raise ValueError(
                f"y has {n_outputs} outputs; earlier calls had {self._model.n_outputs}."
            )

    def _chooses_by_loops(self) -> bool:
        """Whether the parameters ask for a penalty that is chosen by free runs."""
        path = self.readout is None and is_path(self.alpha)
        return path and rule_for(self.alpha_selection, self.forgetting).in_loops

    def _skips_missing(self) -> bool:
        """Whether rows without a target are left out."""
        how = getattr(self, "missing_targets", "raise")
        return check_choice("missing_targets", how, ("raise", "skip")) == "skip"

    def _memory_advice(self) -> str:
        """Return which parameters to change where memory fails."""
        sizes = " or ".join(f"{name}={getattr(self, name)}" for name in self._grows_with)
        sizes = sizes or "the number of features"
        if self.readout is not None:
            return f"Lower {sizes}, or give fewer rows; partial_fit takes some at a time."
        few = "RidgeClassifier" if isinstance(self, ClassifierMixin) else "Ridge"
        return (
            f"Lower {sizes}; or, where rows are few, give a "
            f"sklearn.linear_model.{few} as readout, which stores n_samples x n_features numbers "
            "and solves for one number per row."
        )

    # ------------------------------------------------------------------ fitted or not

    @property
    def _is_new(self) -> bool:
        """Whether nothing has been learned from yet."""
        return "_model" not in vars(self)

    if not TYPE_CHECKING:  # or no misspelt attribute would be found any more

        def __getattr__(self, name: str) -> Any:
            """Return a fitted attribute that is made when it is first read."""
            unsolved = self.__dict__.get("_lazy_solution")
            if unsolved is not None and name in unsolved.names:
                made = unsolved.attributes()
                if name in made:
                    return made[name]
            return object.__getattribute__(self, name)  # which says in Python's words what is wrong

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, copied and saved: with every fitted attribute in its place."""
        state = dict(super().__getstate__())
        unsolved = state.pop("_lazy_solution", None)
        return state if unsolved is None else state | unsolved.attributes()

    def __sklearn_is_fitted__(self) -> bool:
        return any(name in vars(self) for name in ("_lazy_solution", *_fitted_by_readouts()))

    def _check_fitted(self) -> None:
        if self.__sklearn_is_fitted__():  # scikit-learn's check takes longer than a step
            return
        if not self._is_new:
            n, skip = self._model.progress.n_steps, self._model.progress.washout
            why = f"seen only washout rows so far: {n} steps, washout={skip}"
            if n > skip:
                why = f"learned from none of {n} steps: washout={skip}, others weigh 0 or miss y"
            me = type(self).__name__
            raise NotFittedError(f"This {me} has {why}. Call partial_fit with more rows.")
        check_is_fitted(self)

    def _description(self) -> dict[str, str]:
        words: dict[str, str] = {}
        if hasattr(self, "reservoir_"):
            words = description_of_reservoir(self, self.reservoir_, self._model.certificate)
        return words | self._model.source.description | description_of_readout(self)

    # ------------------------------------------------------------------ using the fitted model

    def _shown_model(self) -> ReadoutModel:
        """Return the model at the state that the fitted attribute has: a user may have set it."""
        if self.state_ is self._model.state:
            return self._model
        one = copy.copy(self._model)
        one.state = self.state_
        return one

    def _predictor(self) -> ReadoutPredictor:
        """Return the fitted model, ready to run."""
        self._check_fitted()
        return ReadoutPredictor(self)

    def _score(self, X: Any, y: Any, sample_weight: Any) -> float:
        skip = getattr(self, "missing_targets", "raise") == "skip"
        return self._predictor().score(X, y, sample_weight, skip_missing=skip)

    # ------------------------------------------------------------------ in a session

    def _predicts_by(self) -> tuple[Any, Any]:
        """Return what makes predictions of outputs, and what outputs are: None for the usual."""
        return self._reader.targets.decode, None

    def _session_learner(self) -> FeatureLearner:
        model = self._model
        settings = self._new_readout(self._reader, partial=True).settings
        learner = model.readout.renewed(settings).row_learner(self)
        # what the session receives is judged by itself, unless all is said
        activity = model.source.activity() if model.activity is not None else None
        return FeatureLearner(learner, model.noise_generator, activity)


class SourceRegressor(RegressorMixin, SourceEstimator):
    """A source of features under a readout that gives numbers, one row for each row of X."""

    def partial_fit(
        self: _Self, X: Any, y: Any, sample_weight: Any = None, *, new_sequence: bool = False
    ) -> _Self:
        """Go on learning with the next chunk of rows.

        Any split of the data over calls gives the model of one `fit`, as long as nothing else
        looks at the data as a whole. What does is the first chunk's: of an echo state network
        ``washout="auto"`` and ``"measured"``, and the range that ``bias="stable"`` certifies (a
        warning says where a later one leaves it); of Chebyshev polynomials the range that inputs
        are scaled by.

        The rows are added to sums in the call. The ridge's attributes (`coef_`, `intercept_`,
        `alpha_`, `alpha_scores_`) are solved for when one of them is first read, which `predict`,
        `forecast`, `reservoir.save` and pickling do as well: under the parameters that the call
        has seen, and with the errors that `fit` would raise in solving. A `readout` of your own
        learns in the call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A table goes on where the last call ended; each item of a list is a
            sequence of its own. All weights of a call may be 0.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence: fresh state, fresh washout. With
            `sequence_column` a new id says so by itself.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If an index tells that a chunk does not begin where the last one ended, and
            `new_sequence` does not say so.
        """
        return self._partial_fit(X, y, sample_weight, new_sequence=new_sequence)

    def _coding(self) -> TargetCoding:
        return Numbers()

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Run over X and read it out, one row of output per row of X.

        The estimator is not changed: the same call gives the same answer. An echo state network
        with ``feedback=True`` runs on its own outputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs), as y in fit; or sequences
        state : array of the shape of `state_`, or one row per sequence
            Where the run ended; only if `return_state`.

        Raises
        ------
        ValueError, TypeError
            If X is refused, as in `fit`.

        Warns
        -----
        UserWarning
            If ``initial_state="last"`` and an index tells that X does not begin right after
            training; the run then starts from "steady".
        """
        predictor, decode = self._predictor(), self._reader.targets.decode
        return predictor.predict(X, initial_state, decode, return_state=return_state)

    def forecast(
        self,
        n_steps: int,
        *,
        context: Any = None,
        exog: Any = None,
        initial_state: Any = None,
        return_state: bool = False,
        clip: Any = False,
    ) -> Any:
        """Forecast by feeding outputs back as inputs.

        Needs an estimator that was trained to predict its own next input: ``y[t] == X[t+1]`` in
        the first n_outputs columns of X (`reservoir.model_selection.make_forecast_pairs` makes such
        pairs); further columns are exogenous. Of an echo state network with ``feedback=True`` X is
        exogenous altogether.

        Parameters
        ----------
        n_steps : int
            Rows to forecast.
        context : array of shape (n_context, n_features), optional
            Rows to listen to first, from where `predict` would start. Row 0 of the
            forecast is then what `predict` says of the last of them. Without context the forecast
            goes on from the end of training: row 0 is the step after the last target. The columns
            of a DataFrame are matched by name, if X had names in fit.
        exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
            Exogenous inputs; row k enters with the input that yields row k (with context: row
            k + 1). Columns as in `context`.
        initial_state : str or array, optional
            As in `predict`; without context, by default, the state at the end of training.
        return_state : bool, default=False
        clip : bool, (low, high) or callable, default=False
            True holds what is fed back in the range of the training targets, widened by its own
            width on both sides. Of an echo state network with ``bias="stable"`` it is the range
            that `certificate_` covers: the proof then covers the reservoir in the loop, too, since
            its state follows from what it was fed. A pair, numbers or arrays of shape
            (n_outputs,), is a range in y's units. A function of the outputs of a step,
            (n_outputs,), in y's units returns what is fed back in their place, of the same shape:
            a threshold, say, or a projection. The rows returned are what the network said, and the
            loop as a whole may oscillate all the same, as a generator must.

        Returns
        -------
        y : array of shape (n_steps,) or (n_steps, n_outputs), as y in fit
        state : array of the shape of `state_`
            Only if `return_state`.

        Raises
        ------
        ValueError
            If it was not trained so, shapes or names of columns do not fit, n_steps < 1,
            or `clip` is no range, or makes of outputs another shape or numbers that are not
            finite. Inside a pipeline with a scaler use
            ``reservoir.forecast(pipeline, n_steps)``, which walks it.

        Warns
        -----
        RuntimeWarning
            If a row leaves the range of the training targets (over all calls of partial_fit) by
            more than ten times its width, or the loop diverges altogether: the rows then repeat
            the last output before it. The message names the step; nothing after it is to be
            trusted.
        """
        self._check_fitted()
        rows, state = forecast_network(
            self, n_steps, context=context, exog=exog, initial_state=initial_state, clip=clip
        )
        return (rows, state) if return_state else rows

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of `predict`, over all rows of all sequences.

        Rows whose target is NaN are left out where ``missing_targets="skip"``. (scikit-learn's own
        scorers cannot do so: use `reservoir.model_selection.washout_scorer` there.)

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Where X has lost its index, as behind a scaler in a pipeline, that of y
            tells whether the rows follow those of training (``initial_state="last"``).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the index of y does not go with that of X, or no row has a target.
        """
        return self._score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@forecaster_of.register
def _(model: SourceRegressor) -> Forecaster:
    return model._predictor()


class LazySolution:
    """What a model's fitted attributes are made of, once, by whoever reads the first of them.

    An estimator keeps it in the place of the attributes. Reading changes nothing that the
    estimator holds: what was made stays here.

    Parameters
    ----------
    model : ReadoutModel
        Its readout has the settings that it is to be solved under; shallow copies are kept.
    doubt : str or None
        What to warn of when it is solved.
    """

    def __init__(self, model: ReadoutModel, doubt: str | None) -> None:
        self._doubt = doubt
        self.names = frozenset(model.readout.fitted)
        self._model: ReadoutModel | None = _with_readout_of_its_own(model)
        self._made: dict[str, Any] | None = None
        self._lock = threading.RLock()

    @property
    def has_told(self) -> bool:
        """Whether there is no warning that nobody has seen."""
        return self._doubt is None or self._made is not None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes by name; other threads wait while they are made."""
        made = self._made
        if made is not None:
            return made
        with self._lock:
            if self._made is None:
                assert self._model is not None
                # should it fail, the next one who asks gets the same error
                self._made = _with_readout_of_its_own(self._model).solution(self._doubt)
                self._model = None
            return self._made


def _with_readout_of_its_own(model: ReadoutModel) -> ReadoutModel:
    """Return a shallow copy of a model, and of its readout."""
    one = copy.copy(model)
    one.readout = copy.copy(model.readout)
    return one


#: Fitted attributes that a later fit may lack, beside those of models and readouts.
_FITTED = ("_lazy_solution", "feature_names_in_")


def _fitted_by_readouts() -> set[str]:
    """Return the names of all fitted attributes that readouts make."""
    return {name for kind in READOUTS.values() for name in kind.fitted}
