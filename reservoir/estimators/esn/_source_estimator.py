"""A source of features under a readout: fit, partial_fit, outputs, the loop on own outputs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    as_generator,
    caller_level,
    resolve_washout,
)
from reservoir.dynamics import Reservoir
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.saturation import Record, held_by_bias
from reservoir.estimators._base import SequenceEstimator
from reservoir.estimators._parameters import check_parameters
from reservoir.estimators._progress import Progress, StateShape
from reservoir.estimators._reach import warn_of_leaving
from reservoir.estimators.esn._free_runs import check_free_runs, chooses_by_loops, free_runs
from reservoir.estimators.esn._learning import (
    Job,
    columns_apart,
    equal_share,
    few_rows,
    forgets_too_fast,
    learn_all,
    naming_columns,
    open_loop_outputs,
    state_behind,
)
from reservoir.estimators.esn._measured_washout import is_measured, measured_washouts
from reservoir.estimators.esn._readout_parameters import ReadoutParameters
from reservoir.estimators.esn._session import FeatureLearner
from reservoir.estimators.esn._unsolved import Unsolved
from reservoir.estimators.esn.sources import SOURCES
from reservoir.loops.path_loops import run_source_loops
from reservoir.readouts import READOUTS, kind_of
from reservoir.readouts.contract import Outputs, Readout, ReadoutSettings
from reservoir.readouts.ridge import is_path, rule_for
from reservoir.readouts.selection import FreeRuns
from reservoir.readouts.sums import check_forgetting

_Self = TypeVar("_Self", bound="SourceEstimator")


@dataclass(eq=False, repr=False, kw_only=True)
class SourceEstimator(SequenceEstimator, ReadoutParameters):
    """A source of features under a readout. Subclasses say which, and what outputs mean."""

    _source_kind = ""  # an entry of SOURCES
    _changed_in_place = ("_progress", "_noise_generator")
    # parameters of echo state networks; other sources have nothing that these would mean
    feedback = False
    noise = 0.0
    random_state = None

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
        return self._learn_all(X, y, sample_weight)

    def _check(self) -> None:
        """Refuse parameters that cannot be right, alone or together."""
        check_parameters(self)
        if self.readout is not None and np.ndim(self.alpha) > 0:
            raise ValueError(
                "alpha is an array, but readout= replaces the ridge that would choose from "
                "it. Give a number, or search over the readout's own parameters."
            )
        self._check_forgetting()
        if chooses_by_loops(self):
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
        if is_path(self.alpha) and rule_for(self.alpha_selection, self.forgetting).fewest:
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

    @property
    def _missing_targets(self) -> str:
        return getattr(self, "missing_targets", "raise")

    def _start(self, sequences: Sequences, targets: list[Array]) -> None:
        """Build the source of features and forget everything learned."""
        self._check()
        # what its rows will take is known before units are connected, which may take minutes
        if isinstance(n_units := getattr(self, "n_units", None), Integral):
            self._new_readout().check_room(int(n_units), sum(sequences.lengths))
        generator = as_generator(self.random_state)
        # nothing of an earlier fit is left
        names = ("state_", "certificate_", "reservoir_", "_unsolved", *_fitted_by_readouts())
        for name in names:
            self.__dict__.pop(name, None)
        # the source of features, with what is proved of it
        build = SOURCES[self._source_kind]
        fed_back = targets if self.feedback else None
        source, certificate = build(self, sequences.arrays, fed_back, generator)
        self._source: FeatureSource = source
        if hasattr(source, "reservoir"):
            self.reservoir_: Reservoir = source.reservoir
        if certificate is not None:
            self.certificate_ = certificate
        self.n_outputs_ = targets[0].shape[-1]
        # what later calls rely on, whatever set_params makes of the constructor's parameters
        self._sequence_column = self.sequence_column
        # a number, not a generator: older NumPy forgets on copying what a generator would spawn
        of_noise = generator.spawn(1)[0] if self.noise > 0 else None
        self._noise_seed = None if of_noise is None else int(of_noise.integers(2**63))
        self._n_noisy = 0
        self._noise_generator: np.random.Generator | None = None
        self._readout: Readout | None = None
        self._progress = Progress(self.n_outputs_, compares=not self.feedback)
        # a bias that was searched for a certificate saturates units by design
        self._activity: Record | None = None
        if certificate is None or not held_by_bias(self.reservoir_):
            self._activity = source.activity()
        self._n_trained = 0

    def _fit(
        self, sequences: Sequences, targets: list[Array], weights: list[Array] | None, data: Any
    ) -> None:
        # how many rows are washout: known before anything is built, unless it is measured
        measured = is_measured(self.washout)
        skips = [0] if measured else self._washouts(sequences.lengths)
        self._start(sequences, targets)
        starts = self._states_before(self.initial_state, sequences, None)
        if measured:
            skips = measured_washouts(self._source, sequences.arrays, targets, starts)
        self.washout_ = np.array(skips, dtype=np.int64)
        # what there is to learn from, and the closed loops that choose the penalty, if they do
        readout = self._new_readout()
        jobs = self._jobs(readout, sequences, targets, weights, skips, starts)
        rule = FreeRuns(free_runs(self, jobs, targets).errors) if chooses_by_loops(self) else None
        # run, sum up, solve
        self._learn(readout, jobs, rule)
        self._progress.finish(sequences, targets, washout=skips[0])

    def _washouts(self, lengths: list[int]) -> list[int]:
        """Return how many rows of each sequence the fit leaves out."""
        return resolve_washout(self.washout, lengths)

    def _partial_fit(
        self,
        sequences: Sequences,
        targets: list[Array],
        data: Any,
        *,
        new_sequence: bool,
        weights: list[Array] | None = None,
    ) -> None:
        first = self._is_new
        self._check_forgetting()
        readout = self._new_readout(partial=True)
        readout.check_partial()
        if first:
            self._start(sequences, targets)
            self._progress.washout = self._first_washout(sequences, targets)
            self.washout_ = np.array([self._progress.washout], dtype=np.int64)
        else:
            self._refuse_other_readout(readout)
            self._warn_of_range(sequences)
        self._refuse_other_outputs(targets)
        progress = self._progress
        # where the first sequence goes on, so do state, washout and noise
        starts = self._states_before(self.initial_state, sequences, None)
        goes_on = progress.enter(sequences, new_sequence)
        if goes_on:
            starts[0] = self.state_
        held = self._noise_generator if goes_on else None
        skips = progress.skips(sequences, goes_on)
        jobs = self._jobs(
            readout, sequences, targets, weights, skips, starts, held=held, continues=goes_on
        )
        self._learn(readout, jobs)
        progress.add(sequences, targets, goes_on=goes_on)
        progress.continues = True

    def _refuse_other_readout(self, readout: Readout) -> None:
        """Refuse a readout that cannot go on from what another kind has learned."""
        if self._readout is not None:
            self._readout.refuse_more_rows()
        if type(readout) is not type(self._readout):
            raise ValueError(
                f"readout={self.readout!r} is of another kind than that of earlier calls, and "
                "would know their rows no more. Use fit, or the readout that partial_fit began "
                "with."
            )
        readout.go_on_from(self._readout)

    def _jobs(
        self,
        readout: Readout,
        sequences: Sequences,
        targets: list[Array],
        weights: list[Array] | None,
        skips: list[int],
        starts: list[Array],
        held: np.random.Generator | None = None,
        continues: bool = False,
    ) -> list[Job]:
        """Return what there is to learn from; `held` makes the first sequence's noise go on."""
        size = self._source.state_size
        jobs, number = [], self._n_trained
        cuts = readout.cut(sequences.lengths, skips, continues=continues, number=number)
        for i, (X, Y) in enumerate(zip(sequences.arrays, targets, strict=True)):
            last = np.zeros(self.n_outputs_)
            last[: len(starts[i]) - size] = starts[i][size:]
            noise = held if i == 0 and held is not None else self._next_noise()
            weight = None if weights is None else weights[i]
            start = starts[i][:size]
            taught = self._as_learned(X, Y)
            jobs.append(Job(X, taught, weight, skips[i], cuts[i], start, last, noise, number))
            number += len(X)
        return jobs

    def _next_noise(self) -> np.random.Generator | None:
        """Return the generator of the next sequence's noise."""
        if self._noise_seed is None:
            return None
        self._n_noisy += 1
        return np.random.default_rng([self._noise_seed, self._n_noisy])

    def _new_readout(self, *, partial: bool = False) -> Readout:
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
                skip_missing=self._missing_targets == "skip",
                dtype=self._dtype_asked_for() if self._is_new else self._dtype,
                one_dimensional=self._targets.one_dimensional,
                decode=self._targets.for_readout,
                classes=self._targets.classes,
                partial=partial,
            )
        )

    def _learn(self, empty: Readout, jobs: list[Job], rule: FreeRuns | None = None) -> None:
        """Run the jobs, solve for the readout, and keep where the run ended.

        `rule` chooses the penalty, where what the settings name does not do.
        """
        source, settings = self._source, empty.settings
        self._n_trained += sum(len(job.X) for job in jobs)
        # what overflows is named by the user's column
        with naming_columns(source, self._sequence_column):
            learned = learn_all(
                source,
                jobs,
                empty,
                self._activity,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                noise=self.noise,
                engine=self._engine,
            )
            readout = learned.readout
            if self._readout is not None:
                readout = readout.after(self._readout)
            if rule is not None:  # not before: what loops need is not sent to workers
                readout.settings = replace(readout.settings, rule=rule)
        self._watch_units(learned.activity)
        unread = not getattr(self.__dict__.get("_unsolved"), "has_told", True)
        earlier = None if unread or self._readout is None else self._readout.renewed(settings)
        told = None if earlier is None else earlier.held_by_rows()
        self._solve(readout, settings, few_rows(readout.held_by_rows(), told, equal_share(jobs)))
        # settings are made anew from the parameters in each call; what is kept can be saved
        readout.settings = ReadoutSettings()
        self._readout, self._noise_generator = readout, learned.generator
        state = learned.state
        if source.n_fed_back:
            state = np.concatenate([state, jobs[-1].Y[-1].astype(state.dtype)])
        self.state_ = state

    def _solve(self, readout: Readout, settings: ReadoutSettings, warning: str | None) -> None:
        """Make the coefficients, or whatever else the readout makes of the rows; or put it off."""
        if settings.partial and not readout.n_rows:  # all rows were washout
            return
        for name in ("_unsolved", *readout.fitted):
            self.__dict__.pop(name, None)
        if settings.partial and readout.lazy:
            self._unsolved = Unsolved(readout, warning)
            return
        for name, value in self._made_of(readout, warning).items():
            setattr(self, name, value)

    def _made_of(self, readout: Readout, warning: str | None) -> dict[str, Any]:
        """Return the fitted attributes that the rows seen lead to; warn if there is cause."""
        made = readout.solve()
        warning = warning or forgets_too_fast(readout, made) or columns_apart(readout, self._source)
        if warning is not None:
            warnings.warn(warning, UserWarning, stacklevel=caller_level())
        return self._as_attributes(made)

    def _as_learned(self, X: Array, Y: Array) -> Array:
        """Return what the readout is taught where X has the targets Y."""
        return Y

    def _as_attributes(self, made: dict[str, Any]) -> dict[str, Any]:
        """Return what the readout makes of it as this estimator's attributes."""
        return made

    def _session_learner(self) -> FeatureLearner:
        assert self._readout is not None
        settings = self._new_readout(partial=True).settings
        learner = self._readout.renewed(settings).row_learner(self)
        # what the session receives is judged by itself, unless all is said
        activity = self._source.activity() if self._activity is not None else None
        return FeatureLearner(learner, self._noise_generator, activity)

    def _watch_units(self, activity: Record | None) -> None:
        """Keep a record of the units; warn once if they are saturated, or grow."""
        said = activity and activity.warn(self.reservoir_, self._names_of_columns())
        self._activity = None if said else activity

    def _warn_of_range(self, sequences: Sequences) -> None:
        """Say so where a chunk leaves what the first one was certified for, if anything was."""

    def _first_washout(self, sequences: Sequences, targets: list[Array]) -> int:
        """Return the washout that the first chunk decides for all that follow."""
        if not is_measured(self.washout):
            return self._washout_of_chunks(sequences.lengths[0])
        starts = self._states_before(self.initial_state, sequences, None)
        arrays = sequences.arrays
        return measured_washouts(self._source, arrays[:1], targets[:1], starts[:1])[0]

    # ------------------------------------------------------------------ using the fitted network

    @property
    def _dtype(self) -> Any:
        return self._source.dtype

    @property
    def _n_fed_back(self) -> int:  # type: ignore[override]
        return self._source.n_fed_back

    @property
    def _engine(self) -> str:
        """Return who steps: large jobs in training decide for the small ones after them."""
        return self._source.engine_for(self._n_trained)

    if not TYPE_CHECKING:  # or no misspelt attribute would be found any more

        def __getattr__(self, name: str) -> Any:
            """Return a fitted attribute that is made when it is first read."""
            unsolved = self.__dict__.get("_unsolved")
            if unsolved is not None and name in unsolved.names:
                made = unsolved.attributes(self)
                if name in made:
                    return made[name]
            return object.__getattribute__(self, name)  # which says in Python's words what is wrong

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, copied and saved: with every fitted attribute in its place."""
        state = dict(super().__getstate__())
        unsolved = state.pop("_unsolved", None)
        return state if unsolved is None else state | unsolved.attributes(self)

    def __sklearn_is_fitted__(self) -> bool:
        return any(name in vars(self) for name in ("_unsolved", *_fitted_by_readouts()))

    def _check_fitted(self) -> None:
        if not self._is_new and not self.__sklearn_is_fitted__():
            n, skip = self._progress.n_steps, self._progress.washout
            why = f"seen only washout rows so far: {n} steps, washout={skip}"
            if n > skip:
                why = f"learned from none of {n} steps: washout={skip}, others weigh 0 or miss y"
            me = type(self).__name__
            raise NotFittedError(f"This {me} has {why}. Call partial_fit with more rows.")
        check_is_fitted(self)

    def _solved(self) -> Readout:
        """Return the readout that reads the fitted attributes back."""
        assert self._readout is not None
        return self._readout

    def _loop_readout(self) -> Any:
        """Return what closes a loop: (coef, intercept), or a function of one row of features."""
        readout = self._solved()
        outputs = readout.outputs(self)
        return readout.linear(self) or (lambda features: outputs(features[None])[0])

    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        spec = self.initial_state if spec is None else spec
        return self._states_before(spec, sequences, self._last_state())

    def _states_before(self, spec: Any, sequences: Sequences, last: Array | None) -> list[Array]:
        source = self._source
        shape = StateShape(source.state_size, source.n_fed_back, source.state_dtype)
        return self._progress.starts(
            spec,
            sequences,
            shape,
            last=last,
            steady=source.steady_state,
            fresh=source.fresh_state,
        )

    def _outputs_from(
        self,
        sequences: Sequences,
        starts: list[Array],
        readout: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        if self._source.n_fed_back:
            return self._play_all(sequences, starts)
        readout = readout or self._solved().outputs(self)
        engine = self._engine
        if engine == "auto" and n_rows is not None:
            engine = self._source.engine_for(n_rows)
        return open_loop_outputs(self._source, sequences.arrays, starts, readout, engine=engine)

    def _play_all(
        self, sequences: Sequences, starts: list[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Run on own outputs; return outputs and end states, and warn of the first that strays."""
        played = [self._play(X, start) for X, start in zip(sequences.arrays, starts, strict=True)]
        for i, (rows, _, n_sound) in enumerate(played):
            which = i if len(played) > 1 else None
            reach = self._progress.target_range
            if warn_of_leaving(rows, reach, n_sound=n_sound, sequence=which):
                break
        return [rows for rows, _, _ in played], [state for _, state, _ in played]

    def _play(self, X: Array, start: Array) -> tuple[Array, Array, int]:
        """Run on own outputs through the feedback weights; return outputs, state, sound steps."""
        size = self._source.state_size
        rows, state, n_sound = self._run_loop(
            self._loop_readout(),
            len(X),
            initial_state=start[:size],
            initial_output=start[size:],
            exog=X,
        )
        return rows, np.concatenate([state, rows[-1]]), n_sound

    def _run_loop(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run on own outputs; the caller warns of a loop that diverged."""
        return self._source.run_loop(readout, n_steps, engine=self._engine, **options)

    def _readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        path = self._solved().linear_path(
            alphas, fit_intercept=self.fit_intercept, dtype=self._dtype
        )
        return None if path is None else self._as_outputs(path)

    def _as_outputs(self, readouts: list[Any]) -> list[Any]:
        """Return coefficients and intercepts of outputs, for those of what readouts are taught."""
        return readouts

    def _run_loops(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        if self._source.n_fed_back or any(callable(readout) for readout in readouts):
            return super()._run_loops(readouts, n_steps, **options)
        return run_source_loops(self._source, readouts, n_steps, **options)

    def _listen(self, rows: Array, targets: Array | None, state: Array) -> Array:
        return state_behind(self._source, rows, targets, state, engine=self._engine)

    def _starts_of_training(self, sequences: Sequences) -> list[Array]:
        return self._states_before(self.initial_state, sequences, None)


def _fitted_by_readouts() -> set[str]:
    """Return the names of all fitted attributes that readouts make."""
    return {name for kind in READOUTS.values() for name in kind.fitted}
