"""The model of an estimator over features: learning, and runs.

    source (fixed)  ->  rows of features  ->  readout (learned)

A `ReadoutModel` learns. It is replaced, never changed, so that the old model remains if a call
fails. A `ReadoutPredictor` is a model whose readout has been solved: it runs over rows, and in
closed loop.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import caller_level, check_numbers
from reservoir.dynamics.both_directions import BothDirections
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.feature_source import FeatureSource, Run
from reservoir.dynamics.fed_back import one_step_late
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.dynamics.saturation import Names, Record, held_by_bias
from reservoir.estimators.esn._free_runs import free_runs
from reservoir.estimators.esn.readout_training import (
    TrainingSequence,
    columns_apart,
    forgets_too_fast,
    learn_all,
    naming_columns,
    open_loop_outputs,
    state_after,
    tails_of,
)
from reservoir.estimators.forecasting.predictor import Outputs, Predictor, Step
from reservoir.estimators.progress import AFTER_GAP, Progress, StateShape, warn_of_leaving
from reservoir.estimators.reading import TrainingData, timed_starts
from reservoir.estimators.reporting import ProgressReport
from reservoir.loops.loop_by_loop import run_one_by_one
from reservoir.loops.path_loops import run_source_loops
from reservoir.readouts.contract import Readout
from reservoir.readouts.label_filter import LabelFilter
from reservoir.readouts.selection import FreeRuns
from reservoir.stability import Certificate


class RunOptions(NamedTuple):
    """Options of the run over training rows, and the names of columns in messages."""

    noise: float
    n_jobs: int | None
    report: ProgressReport | None  # None if nothing is shown
    sequence_column: Any
    names: Names


@saved
class ReadoutModel:
    """A readout over a source of features, with what it has learned so far.

    With `increments`, the readout learns the difference of y from the first columns of X. `state`,
    (state_size + n_fed_back,), is the state after the last row, then the last target; with a label
    filter, its start in the next row, (n_classes,), follows. `noise_generator` belongs to the
    sequence of the last row. `activity` is None after its warning, or if no warning is to be given.
    """

    label_filter: LabelFilter | None = None  # missing in files of earlier versions

    def __init__(
        self,
        source: FeatureSource,
        n_outputs: int,
        *,
        certificate: Certificate | None = None,
        noise_seed: int | None = None,
        increments: bool = False,
    ) -> None:
        self.source, self.n_outputs = source, n_outputs
        self.certificate, self.increments = certificate, increments
        self.readout: Any = None
        self.progress = Progress(n_outputs, compares=not source.n_fed_back)
        self.state: Array | None = None
        self.noise_seed, self.n_noisy = noise_seed, 0
        self.noise_generator: np.random.Generator | None = None
        # a bias chosen for its certificate saturates units by design
        by_design = certificate is not None and held_by_bias(source.reservoir)  # type: ignore[attr-defined]
        self.activity: Record | None = None if by_design else source.activity()
        self.n_trained = 0

    @property
    def dtype(self) -> Any:
        """The dtype of features and outputs."""
        return self.source.dtype

    @property
    def engine(self) -> str:
        """The engine of runs: a large training run also determines the engine of later runs."""
        return self.source.engine_for(self.n_trained)

    @property
    def fitted_attributes(self) -> dict[str, Any]:
        """Fitted attributes except those of the readout, by name."""
        proved = {} if self.certificate is None else {"certificate_": self.certificate}
        own: dict[str, Any] = {"state_": self.state, "n_outputs_": self.n_outputs}
        if self.label_filter is not None:
            own["transition_"] = self.label_filter.transition
            own["transition_power_"] = self.label_filter.power
        return {**own, **proved, **self.source.fitted}

    def copy(self) -> ReadoutModel:
        """Return a model that learns independently of this one."""
        one = copy.copy(self)
        one.progress = self.progress.draft()
        one.noise_generator = copy.deepcopy(self.noise_generator)
        one.activity = copy.copy(self.activity)
        return one

    copy_for_session = copy

    # ------------------------------------------------------------------ learning

    def fitted(
        self,
        data: TrainingData,
        starts: list[Array],
        skips: list[int],
        readout: Readout,
        options: RunOptions,
        *,
        by_loops: bool = False,
    ) -> ReadoutModel:
        """Return a copy that has learned from all rows of a fit, into the empty `readout`.

        `starts` and `skips` are the state before each sequence and its washout. With `by_loops`,
        the penalty is chosen by closed loops over held-out rows.
        """
        one = self.copy()
        sequences = one._training_sequences(data, starts, skips, readout)
        rule = FreeRuns(free_runs(one, sequences, data.targets).errors) if by_loops else None
        one._learn(sequences, readout, options)
        one.watch(one.activity, options.names)
        if rule is not None:  # set after learning, so that the loops are not sent to workers
            one.readout.settings = replace(readout.settings, rule=rule)
        one.progress.finish(data.sequences, data.targets, washout=skips[0])
        return one

    def continued(
        self,
        data: TrainingData,
        starts: list[Array],
        readout: Readout,
        options: RunOptions,
        *,
        new_sequence: bool,
    ) -> tuple[ReadoutModel, list[int]]:
        """Return a model that has learned from a chunk, and the washout of each sequence in it.

        If the first sequence continues the last one, the state, the washout and the noise continue
        as well. The parameters are as in `fitted`.
        """
        one = self.copy()
        continues = one.progress.enter(data.sequences, new_sequence)
        if continues:
            assert self.state is not None
            starts = [self.state, *starts[1:]]
        skips = one.progress.skips(data.sequences, continues)
        sequences = one._training_sequences(data, starts, skips, readout, continues=continues)
        one._learn(sequences, readout, options)
        one.watch(one.activity, options.names)
        one.progress.add(data.sequences, data.targets, continues=continues)
        one.progress.continues = True
        return one, skips

    def part(
        self,
        data: TrainingData,
        starts: list[Array],
        skips: list[int],
        readout: Readout,
        options: RunOptions,
        *,
        continues: bool,
    ) -> ReadoutModel:
        """Return a model of some rows in the middle of a fit, which does not warn of its units.

        The parameters are as in `fitted`. If the first sequence `continues` an earlier one,
        `starts` contains the state in which that one ended.
        """
        one = self.copy()
        sequences = one._training_sequences(data, starts, skips, readout, continues=continues)
        one._learn(sequences, readout, options)
        one.progress.end(data.sequences, continues=continues)
        one.progress.add(data.sequences, data.targets, continues=continues)
        one.progress.continues = len(sequences) == 1
        return one

    def merged(self, later: ReadoutModel, *, continues: bool = False) -> ReadoutModel:
        """Return a model of the rows of this one, followed by those of a later one.

        Both learned from the same source with separate sums. Halves of rows are added half by half.
        `continues` says whether the first sequence of the later one continues the last one here.
        """
        one = self.copy()
        one.readout = copy.deepcopy(later.readout).after(self.readout)
        if one.activity is not None and later.activity is not None:
            one.activity.merge(later.activity)  # type: ignore[arg-type]
        else:
            one.activity = None
        one.progress = self.progress.joined(later.progress, continues=continues)
        one.state, one.noise_generator = later.state, copy.deepcopy(later.noise_generator)
        one.n_trained += later.n_trained
        one.n_noisy += later.n_noisy
        return one

    def _training_sequences(
        self,
        data: TrainingData,
        starts: list[Array],
        skips: list[int],
        readout: Readout,
        *,
        continues: bool = False,
    ) -> list[TrainingSequence]:
        """Return the sequences to learn from; one that continues keeps its noise generator."""
        size, number = self.source.state_size, self.n_trained
        # the rows at the end of a sequence that are excluded belong to no part, and have no number
        tails = tails_of(self.source, skips)
        lengths = [n - tail for n, tail in zip(data.sequences.lengths, tails, strict=True)]
        cuts = readout.cut(lengths, skips, continues=continues, number=number)
        previous = self.noise_generator if continues else None
        sequences = []
        for i, (X, Y) in enumerate(zip(data.arrays, data.targets, strict=True)):
            last = np.zeros(self.n_outputs)
            last[: len(starts[i]) - size] = starts[i][size:]
            noise = previous if i == 0 and previous is not None else self.next_noise()
            weights = None if data.weights is None else data.weights[i]
            start, targets = starts[i][:size], self.readout_targets(X, Y)
            sequences.append(
                TrainingSequence(X, targets, weights, skips[i], cuts[i], start, last, noise, number)
            )
            number += lengths[i]
        return sequences

    def _learn(
        self, sequences: list[TrainingSequence], readout: Readout, options: RunOptions
    ) -> None:
        """Run over sequences, add their rows to the readout, and store the final state."""
        source = self.source
        self.n_trained += sum(len(sequence.X) for sequence in sequences)
        # an overflow is reported with the name of the user's column
        with naming_columns(source, options.sequence_column):
            learned = learn_all(
                source,
                sequences,
                readout,
                self.activity,
                n_jobs=options.n_jobs,
                report=options.report,
                noise=options.noise,
                engine=self.engine,
            )
            before, self.readout = self.readout, learned.readout
            if before is not None:
                self.readout = learned.readout.after(before)
        self.activity = learned.activity
        self.noise_generator, self.state = learned.generator, learned.state
        if source.n_fed_back:
            last = sequences[-1].Y[-1].astype(learned.state.dtype)
            self.state = np.concatenate([learned.state, last])

    def watch(self, activity: Record | None, names: Names) -> None:
        """Warn if units saturate or grow; otherwise keep their record for later rows."""
        warned = activity and activity.warn(self.source.reservoir, names)  # type: ignore[attr-defined]
        self.activity = None if warned else activity

    def next_noise(self) -> np.random.Generator | None:
        """Return the generator of the next sequence's noise."""
        if self.noise_seed is None:
            return None
        self.n_noisy += 1
        return np.random.default_rng([self.noise_seed, self.n_noisy])

    def solution(self, doubt: str | None = None) -> dict[str, Any]:
        """Solve the readout for the rows so far, and return its fitted attributes.

        Warns of a doubtful solution; `doubt` is the text of a warning that was found earlier.
        """
        following = self.progress.pairing.holds
        self.readout.settings = replace(self.readout.settings, next_inputs=following)
        made = self.readout.solve()
        doubt = doubt or forgets_too_fast(self.readout, made)
        doubt = doubt or columns_apart(self.readout, self.source)
        if doubt is not None:
            warnings.warn(doubt, UserWarning, stacklevel=caller_level())
        return self.of_targets(made)

    # ------------------------------------------------------------------ increments

    def readout_targets(self, X: Array, Y: Array) -> Array:
        """Return the targets of the readout for the targets Y of X."""
        return Y - X[:, : self.n_outputs] if self.increments else Y

    def of_targets(self, made: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes that predict y, given those that predict its increments."""
        if self.increments:
            shape = np.shape(made["coef_"])
            coef, intercept = self.source.repeating(self.n_outputs)  # type: ignore[attr-defined]
            made["coef_"] = made["coef_"] + coef.reshape(shape)
            made["intercept_"] = made["intercept_"] + (
                intercept[0] if len(shape) == 1 else intercept
            )
        return made

    def of_outputs(self, readouts: list[Any]) -> list[Any]:
        """Return the weights that predict y, given the weights that predict its increments."""
        if not self.increments:
            return readouts
        coef, intercept = self.source.repeating(self.n_outputs)  # type: ignore[attr-defined]
        return [(one + coef, constant + intercept) for one, constant in readouts]

    # ------------------------------------------------------------------ runs

    def initial_states(
        self, spec: Any, sequences: Sequences, last: Array | None = None
    ) -> list[Array]:
        """Return the state before each sequence; `last` is the state for "last", if any."""
        return initial_states(self.source, self.progress, spec, sequences, last)

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run in closed loop; the caller warns of a loop that diverged."""
        return self.source.run_loop(readout, LoopRun(n_steps, engine=self.engine, **options))

    def run_many(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run loops from several starts with several readouts, as `run_one_by_one`."""
        if self.source.n_fed_back or any(callable(readout) for readout in readouts):
            return run_one_by_one(self.run, readouts, n_steps, **options)
        return run_source_loops(self.source, readouts, n_steps, **options)


def initial_states(
    source: FeatureSource,
    progress: Progress,
    spec: Any,
    sequences: Sequences,
    last: Array | None,
    after_gap: str = AFTER_GAP,
) -> list[Array]:
    """Return the state of a source before each sequence.

    `spec` is as the user gave it; `last`, (state_size + n_fed_back,), is the state that "last"
    means.
    """
    clock = getattr(source, "clock", None)
    if clock is not None:
        n_units = source.reservoir.n_units  # type: ignore[attr-defined]
        spec = timed_starts(clock, spec, sequences, last, n_units)
    elif isinstance(source, PastInputs):
        spec = _with_equal_past(source, spec, sequences)
    elif isinstance(source, BothDirections):
        spec = _of_both_directions(source, progress, spec, sequences)
    n_held = source.n_held if isinstance(source, PastInputs) else 0
    shape = StateShape(source.state_size, source.n_fed_back, source.state_dtype, n_held)
    steady, fresh = source.steady_state, source.initial_state_of
    return progress.starts(
        spec, sequences, shape, last=last, steady=steady, fresh=fresh, after_gap=after_gap
    )


def warn_of_range(
    source: FeatureSource, certificate: Certificate | None, sequences: Sequences
) -> None:
    """Warn if a chunk leaves the range that was certified for the first one."""
    if certificate is None or all(_covers(certificate, source, X) for X in sequences.arrays):
        return
    warnings.warn(
        'bias="stable" was certified for the range of the first chunk, and this chunk leaves that '
        "range: certificate_ does not cover all of its rows. Begin with a chunk that spans the "
        "whole range, or use fit.",
        UserWarning,
        stacklevel=caller_level(),
    )


def _covers(certificate: Certificate, source: FeatureSource, rows: Array) -> bool:
    """Whether rows are within the certified range."""
    clock = getattr(source, "clock", None)
    if clock is None:
        return certificate.covers_inputs(rows)
    within = certificate.covers_inputs(clock.channels(rows))
    return within and certificate.covers_steps(np.diff(rows[:, clock.place]))


def _with_equal_past(source: PastInputs, spec: Any, sequences: Sequences) -> Any:
    """Return an initial state for `Progress.starts`, with past rows before the states of units.

    If `spec` is zeros, or contains states of the units alone, the past rows equal the first row.
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
    return np.stack([source.after_equal_rows(rows[0], each) for rows, each in pairs])


def _of_both_directions(
    source: BothDirections, progress: Progress, spec: Any, sequences: Sequences
) -> Any:
    """Return an initial state for `Progress.starts`: of the run forwards, then backwards.

    Both runs start in the same way, from zeros or from the steady state of their first row: no
    earlier run ends where a recording begins, so that "last" is zeros for a single one, too. An
    array may contain the states of the run forwards only; the other run then starts from zeros.
    """
    one = source.source
    if isinstance(spec, str):
        shape = StateShape(one.state_size, 0, one.state_dtype)
        turned = replace(sequences, arrays=tuple(rows[::-1] for rows in sequences.arrays))
        runs = [
            progress.starts(spec, each, shape, last=None, steady=one.steady_state)
            for each in (sequences, turned)
        ]
        return np.hstack(runs)
    states = check_numbers("initial_state", spec)
    if states.ndim not in (1, 2) or states.shape[-1] != one.state_size:
        return spec
    return np.concatenate([states, np.zeros_like(states)], axis=-1)


def raise_looks_ahead(what: str, remedy: str) -> NoReturn:
    """Raise an error about states that depend on later rows."""
    raise ValueError(
        f"{what}, and bidirectional=True reads rows from the end of a recording back to its start. "
        f"{remedy}."
    )


class ReadoutPredictor(Predictor):
    """A source of features with a solved readout; the estimator has its coefficients."""

    def __init__(self, estimator: Any) -> None:
        self.model: ReadoutModel = estimator._model
        source = self.model.source
        if isinstance(source, PastInputs):
            n_rows = getattr(estimator, "n_lags_", source.n_rows)
            if n_rows != source.n_rows:
                self.model = copy.copy(self.model)
                self.model.source = source.using(n_rows)
        self.source = self.model.source
        super().__init__(estimator, self.source.n_fed_back)

    # ------------------------------------------------------------------ over rows

    def starts(
        self, spec: Any, sequences: Sequences, *, as_in_training: bool = False
    ) -> list[Array]:
        """Return the state before each sequence; a `spec` of None means the parameter."""
        spec = self.estimator.initial_state if spec is None else spec
        return self.model.initial_states(spec, sequences, None if as_in_training else self.end)

    def run_over(
        self,
        sequences: Sequences,
        starts: list[Array],
        outputs_of: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence."""
        if self.feeds_back:
            return self._run_closed(sequences, starts)
        outputs_of = outputs_of or self.model.readout.outputs(self.estimator)
        engine = self.model.engine
        if engine == "auto" and n_rows is not None:
            engine = self.source.engine_for(n_rows)
        return open_loop_outputs(self.source, sequences.arrays, starts, outputs_of, engine=engine)

    def _run_closed(
        self, sequences: Sequences, starts: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Run with outputs fed back, and warn of the first sequence that diverges."""
        size, rows, ends, valid = self.source.state_size, [], [], []
        for X, start in zip(sequences.arrays, starts, strict=True):
            outputs, state, n_valid = self.run(
                self.readout(),
                len(X),
                initial_state=start[:size],
                initial_output=start[size:],
                exog=X,
            )
            rows.append(outputs)
            ends.append(np.concatenate([state, outputs[-1]]))
            valid.append(n_valid)
        names = range(len(rows)) if len(rows) > 1 else None
        warn_of_leaving(
            list(zip(rows, valid, strict=True)), self.progress.target_range, names=names
        )
        return rows, ends

    def states(self, sequences: Sequences, starts: list[Array]) -> list[Array]:
        """Return the states of units in a run over each sequence."""
        size, engine = self.source.state_size, self.model.engine
        runs = [Run(engine=engine)] * len(starts)
        if self.feeds_back:
            outputs, _ = self._run_closed(sequences, starts)
            fed_back = (one_step_late(s[size:], y) for s, y in zip(starts, outputs, strict=True))
            runs = [Run(teacher, engine=engine) for teacher in fed_back]
        return self.source.states(sequences.arrays, [start[:size] for start in starts], runs)

    # ------------------------------------------------------------------ in closed loop

    def check_can_loop(self) -> None:
        """Check that outputs can be fed back as the next inputs."""
        self.estimator._check_steps("forecast")
        self.source.check_can_loop()

    def readout(self) -> Any:
        """Return the readout of a loop: (coef, intercept), or a function of one row of features."""
        outputs = self.model.readout.outputs(self.estimator)
        return self.model.readout.linear(self.estimator) or (
            lambda features: outputs(features[None])[0]
        )

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run in closed loop; the caller warns of a loop that diverged."""
        return self.model.run(readout, n_steps, **options)

    def tangent(self) -> Step:
        """Return the step of the source with differences, in double precision."""
        return self.source.astype(np.float64).tangent

    def run_many(self, readouts: Sequence[Any], n_steps: int, **options: Any) -> Array:
        """Run loops from several starts with several readouts."""
        return self.model.run_many(readouts, n_steps, **options)

    def readout_path(self, alphas: Sequence[float]) -> list[Any] | None:
        """Return the readouts fitted with other penalties; None if they are not available."""
        path = self.model.readout.linear_path(
            alphas,
            model=self.estimator,
            fit_intercept=self.estimator.fit_intercept,
            dtype=self.dtype,
        )
        return None if path is None else self.model.of_outputs(path)

    def state_after(self, rows: Array, targets: Array | None, state: Array) -> Array:
        """Return the state after rows of a teacher-forced run."""
        return state_after(self.source, rows, targets, state, engine=self.model.engine)
