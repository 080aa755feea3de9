"""What the echo state estimators share: fit, partial_fit, states, the loop on own outputs."""

from __future__ import annotations

import inspect
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    as_generator,
    caller_level,
    check_count,
    read_series,
    resolve_washout,
)
from reservoir.dynamics import Reservoir, run_closed_loop, run_many
from reservoir.dynamics.engines import engine_for
from reservoir.estimators._engine import (
    Job,
    Readout,
    edges_of,
    learn_all,
    naming_columns,
    open_loop_outputs,
    steady_state,
)
from reservoir.estimators._pairing import Pairing
from reservoir.estimators._parameters import check_parameters
from reservoir.estimators._reach import reach_of, warn_of_leaving
from reservoir.estimators._recipe import build, estimator_dtype, is_stable, ranges_of
from reservoir.estimators._saturation import Activity, warn_of_saturation
from reservoir.estimators._sequence import SequenceEstimator
from reservoir.estimators._states import initial_states
from reservoir.estimators._stored import stored_features
from reservoir.estimators._washout import is_measured, measured_washouts
from reservoir.readouts import GramAccumulator, ridge_path


class BaseESN(SequenceEstimator):
    """An echo state network under a readout. Subclasses say what targets and outputs mean."""

    missing_targets = "raise"  # ESNRegressor makes a parameter of it
    _activity: tuple[Array, int] | None = None  # in files from before it was kept, too
    _kept = ("_noise_generator", "_pairing", "_seen")

    def _read(self, X: Any, y: Any = None, *, reset: bool) -> Sequences:
        dtype = estimator_dtype(self.dtype) if reset else self.reservoir_.dtype
        column = self.sequence_column if reset else self._sequence_column
        return read_series(self, X, y, reset=reset, dtype=dtype, sequence_column=column)

    def _start(self, sequences: Sequences, targets: list[Array]) -> None:
        """Build the reservoir and forget everything learned."""
        check_parameters(self)
        generator = as_generator(self.random_state)
        n_features, n_outputs = sequences.arrays[0].shape[1], targets[0].shape[1]
        ranges = None
        if is_stable(self.bias):
            ranges = ranges_of(sequences.arrays, targets if self.feedback else None)
        self.reservoir_: Reservoir = build(
            self,
            n_features,
            generator,
            n_outputs=n_outputs if self.feedback else 0,
            ranges=ranges,
        )
        self.n_outputs_ = n_outputs
        # what later calls rely on, whatever set_params makes of the constructor's parameters
        self._include_input = bool(self.include_input)
        self._sequence_column = self.sequence_column
        # a number, not a generator: older NumPy forgets on copying what a generator would spawn
        of_noise = generator.spawn(1)[0] if self.noise > 0 else None
        self._noise_seed = None if of_noise is None else int(of_noise.integers(2**63))
        self._n_noisy = 0
        self._noise_generator: np.random.Generator | None = None
        self._gram: GramAccumulator | None = None
        self._pairing = Pairing(n_outputs, self.feedback)
        self._target_range = reach_of([])
        # of certified biases most saturate, by design
        of_nothing = Activity.of_nothing(self.reservoir_.n_units)
        self._activity = None if ranges is not None else (of_nothing.total, 0)
        self._seen: set[Any] = set()
        self._steps = 0
        self._n_trained = 0
        self._last_output = np.zeros(n_outputs)
        self._state = np.zeros(self.reservoir_.n_units, self.reservoir_.dtype)
        self._continues = False
        for name in ("coef_", "intercept_", "alpha_", "alpha_scores_", "readout_", "state_"):
            if hasattr(self, name):
                delattr(self, name)
        if ranges is not None:
            self.certificate_ = ranges.certify(self.reservoir_)
        elif hasattr(self, "certificate_"):
            del self.certificate_

    def _fit(self, sequences: Sequences, targets: list[Array], weights: list[Array] | None) -> None:
        measured = is_measured(self.washout)
        skips = [0] if measured else resolve_washout(self.washout, sequences.lengths)
        self._start(sequences, targets)
        starts = self._states_before(self.initial_state, sequences, None)
        if measured:
            skips = measured_washouts(self.reservoir_, sequences.arrays, targets, starts)
        self._washout = skips[0]
        self.washout_ = np.array(skips)
        jobs = self._jobs(sequences, targets, weights, skips, starts, held=None)
        self._learn(jobs, partial=False)
        self._steps = sequences.lengths[-1]
        self._remember_ids(sequences)
        self._follow(sequences, goes_on=False)
        self._continues = len(sequences) == 1

    @property
    def _n_fed_back(self) -> int:
        return self.reservoir_.n_outputs

    @property
    def _dtype(self) -> Any:
        return self.reservoir_.dtype

    def _jobs(
        self,
        sequences: Sequences,
        targets: list[Array],
        weights: list[Array] | None,
        skips: list[int],
        starts: list[Array],
        held: np.random.Generator | None,
    ) -> list[Job]:
        n_units = self.reservoir_.n_units
        choose = np.ndim(self.alpha) > 0 and self.readout is None
        edges = edges_of(self.alpha_selection if choose else None, sequences.lengths, skips)
        jobs = []
        for i, (X, Y) in enumerate(zip(sequences.arrays, targets, strict=True)):
            last = np.zeros(self.n_outputs_)
            last[: len(starts[i]) - n_units] = starts[i][n_units:]
            goes_on = i == 0 and held is not None
            noise = held if goes_on else self._next_noise()
            jobs.append(
                Job(
                    X,
                    Y,
                    None if weights is None else weights[i],
                    skips[i],
                    edges[i],
                    starts[i][:n_units],
                    last,
                    noise,
                )
            )
        return jobs

    def _next_noise(self) -> np.random.Generator | None:
        """Return the generator of the next sequence's noise."""
        if self._noise_seed is None:
            return None
        self._n_noisy += 1
        return np.random.default_rng([self._noise_seed, self._n_noisy])

    @property
    def _engine(self) -> str:
        return engine_for(self.reservoir_, self._n_trained)

    def _learn(self, jobs: list[Job], *, partial: bool) -> None:
        self._n_trained += sum(len(job.X) for job in jobs)
        if self.readout is None:
            with naming_columns(self.reservoir_.n_units, self._sequence_column):
                learned = learn_all(
                    self.reservoir_,
                    jobs,
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                    noise=self.noise,
                    include_input=self._include_input,
                    missing=self.missing_targets,
                    n_steps=self._n_trained,
                )
                self._state, self._noise_generator = learned.state, learned.generator
                self._watch_units(learned.activity)
                self._solve(learned.grams, partial=partial)
        else:
            self._fit_readout(jobs, partial=partial)
        for job in jobs:
            self._pairing.add(job.X, job.Y)
        self._target_range = reach_of([job.Y for job in jobs], self._target_range)
        self._last_output = jobs[-1].Y[-1].copy()
        state = self._state
        if self._n_fed_back:
            state = np.concatenate([state, self._last_output.astype(state.dtype)])
        self.state_ = state

    def _watch_units(self, activity: Activity) -> None:
        """Say so once where the inputs hold most units at their bounds."""
        if self._activity is not None:
            activity.merge(Activity(*self._activity))
            said = warn_of_saturation(activity, self.reservoir_)
            self._activity = None if said else (activity.total, activity.n_steps)

    def _solve(self, grams: dict[int, GramAccumulator], *, partial: bool) -> None:
        choose = np.ndim(self.alpha) > 0
        blocks = []
        if choose and self.alpha_selection != "gcv":  # copies: the parts are merged below
            scored = grams if self.alpha_selection == "blocked" else [1]
            blocks = [grams[part].copy() for part in scored if part in grams]
        total = None if self._gram is None else self._gram.copy()
        for gram in grams.values():
            total = gram if total is None else total.merge(gram)
        self._gram = total
        if self._gram is None or self._gram.n_samples == 0:
            if partial:
                return  # still inside the washout
            raise ValueError("No rows to fit: every row has weight 0 or a missing target.")
        if choose:
            self._check_blocks(blocks)
            solution = ridge_path(
                self._gram,
                self.alpha,
                selection=self.alpha_selection,
                blocks=blocks,
                fit_intercept=self.fit_intercept,
                per_target=self.alpha_per_target,
            )
            self.alpha_scores_ = solution.scores
        else:
            solution = self._gram.solve(self.alpha, fit_intercept=self.fit_intercept)
        self._store(solution.coef, solution.intercept)
        self.alpha_ = solution.alpha

    def _check_blocks(self, blocks: list[GramAccumulator]) -> None:
        n_rows = self._gram.n_samples  # type: ignore[union-attr]
        sizes = [block.n_samples for block in blocks]
        few = len(sizes) < (2 if self.alpha_selection == "blocked" else 1)
        if self.alpha_selection != "gcv" and (few or min(sizes) < 1 or max(sizes) >= n_rows):
            raise ValueError(
                f"alpha_selection={self.alpha_selection!r} has too few rows to choose from: "
                f"{n_rows} behind the washout, in parts of {sizes}. Give a longer series, a "
                'smaller washout, or alpha_selection="gcv".'
            )

    def _store(self, coef: Array, intercept: Array) -> None:
        dtype = self.reservoir_.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            coef, intercept = coef.astype(dtype), intercept.astype(dtype)
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError(
                f"The readout's coefficients overflow {dtype}: the targets are near the largest "
                "float. Scale y, for instance with TransformedTargetRegressor."
            )
        self.coef_ = coef[0] if self._one_dimensional else coef
        self.intercept_ = intercept[0] if self._one_dimensional else intercept

    def _fit_readout(self, jobs: list[Job], *, partial: bool) -> None:
        H, Y, weights, self._state, activity = stored_features(
            self.reservoir_,
            jobs,
            noise=self.noise,
            include_input=self._include_input,
            engine=self._engine,
            skip_missing=self.missing_targets == "skip",
        )
        self._noise_generator = jobs[-1].generator
        self._watch_units(activity)
        if len(H) == 0:
            if partial:
                return
            raise ValueError("No rows to fit: every row has a missing target.")
        if not (partial and hasattr(self, "readout_")):
            self.readout_ = clone(self.readout)
        fit = self.readout_.partial_fit if partial else self.readout_.fit
        known: dict[str, Any] = {}
        if weights is not None:
            takes = inspect.signature(fit).parameters.values()
            if not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in takes):
                raise TypeError(
                    f"{type(self.readout).__name__} does not take the sample_weight that was "
                    "given, or that class_weight makes."
                )
            known["sample_weight"] = weights
        self._call_readout_fit(fit, H, Y, known, partial)

    def _partial_fit(
        self,
        sequences: Sequences,
        targets: list[Array],
        *,
        first: bool,
        new_sequence: bool,
    ) -> None:
        n_outputs = targets[0].shape[1]
        if np.ndim(self.alpha) > 0 and self.alpha_selection != "gcv":
            raise ValueError(
                f"partial_fit cannot choose alpha by alpha_selection={self.alpha_selection!r}: "
                'it keeps one sum over all rows. Use alpha_selection="gcv" or a number.'
            )
        if self.readout is not None and not hasattr(self.readout, "partial_fit"):
            raise TypeError(
                f"{type(self.readout).__name__} has no partial_fit. Use a readout that has one, "
                "such as SGDRegressor, or the built-in ridge (readout=None)."
            )
        if first:
            self._start(sequences, targets)
            self._washout = self._first_washout(sequences, targets)
            self.washout_ = np.array([self._washout])
        else:
            self._warn_of_range(sequences)
        if n_outputs != self.n_outputs_:
            raise ValueError(f"y has {n_outputs} outputs; earlier calls had {self.n_outputs_}.")
        goes_on = not first and self._goes_on(sequences, new_sequence)
        if sequences.ids is not None and not first:
            self._check_ids(sequences.ids[1:] if goes_on or new_sequence else sequences.ids)
        starts = self._states_before(self.initial_state, sequences, None)
        before = [0] * len(sequences)
        self._follow(sequences, goes_on=goes_on)
        if goes_on:
            starts[0], before[0] = self.state_, self._steps
        skips = [max(self._washout - steps, 0) for steps in before]
        skips = [min(s, n) for s, n in zip(skips, sequences.lengths, strict=True)]
        previous = self._last_output if goes_on else None
        held = self._noise_generator if goes_on else None
        jobs = self._jobs(sequences, targets, None, skips, starts, held=held)
        self._learn(jobs, partial=True)
        if previous is not None:
            self._pairing.join(previous, sequences.arrays[0][0])
        self._remember_ids(sequences)
        self._steps = before[-1] + sequences.lengths[-1]
        self._continues = True

    def _warn_of_range(self, sequences: Sequences) -> None:
        """Say so where a chunk leaves the range that the first one was certified for."""
        certificate = getattr(self, "certificate_", None)
        if certificate is None or all(map(certificate.covers_inputs, sequences.arrays)):
            return
        warnings.warn(
            'bias="stable" was certified for the range of the first chunk, and this one leaves '
            "it: certificate_ does not cover its rows. Begin with rows that span the range, or use "
            "fit.",
            UserWarning,
            stacklevel=caller_level(),
        )

    def _first_washout(self, sequences: Sequences, targets: list[Array]) -> int:
        """Return the washout that the first chunk decides for all that follow."""
        if is_measured(self.washout):
            starts = self._states_before(self.initial_state, sequences, None)
            return measured_washouts(
                self.reservoir_, sequences.arrays[:1], targets[:1], starts[:1]
            )[0]
        if isinstance(self.washout, str):
            return resolve_washout(self.washout, [sequences.lengths[0]])[0]
        return check_count("washout", self.washout, minimum=0)

    # ---------------------------------------------------------------- using the fitted network

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_") or hasattr(self, "readout_")

    def _check_fitted(self) -> None:
        if hasattr(self, "reservoir_") and not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} has seen only washout rows so far: {self._steps} "
                f"steps, washout={self._washout}. Call partial_fit with more rows."
            )
        check_is_fitted(self)

    def _readout(self) -> Readout:
        """Return features -> outputs of shape (n_rows, n_outputs) in the reservoir's dtype."""
        if not hasattr(self, "readout_"):
            coef = np.atleast_2d(self.coef_)
            intercept = np.atleast_1d(self.intercept_)
            return lambda features: features @ coef.T + intercept
        dtype, predict = self.reservoir_.dtype, self.readout_.predict
        return lambda features: np.reshape(predict(features), (len(features), -1)).astype(dtype)

    def _loop_readout(self) -> Any:
        """Return what `run_closed_loop` takes: the ridge itself, or a function of one row."""
        if not hasattr(self, "readout_"):
            return np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        readout = self._readout()
        return lambda features: readout(features[None])[0]

    def _last_state(self) -> Array | None:
        return self.state_ if self._continues else None

    def _start_states(self, spec: Any, sequences: Sequences) -> list[Array]:
        spec = self.initial_state if spec is None else spec
        return self._states_before(spec, sequences, self._last_state())

    def _states_before(self, spec: Any, sequences: Sequences, last: Array | None) -> list[Array]:
        return initial_states(
            spec,
            sequences,
            n_units=self.reservoir_.n_units,
            n_fed_back=self._n_fed_back,
            dtype=self._dtype,
            last=last,
            steady=partial(steady_state, self.reservoir_),
            ended=self._ended,
        )

    def _outputs(
        self, sequences: Sequences, spec: Any, readout: Readout | None = None
    ) -> tuple[list[Array], list[Array]]:
        """Return outputs and end state of each sequence; `readout` replaces the fitted one."""
        starts = self._start_states(spec, sequences)
        if not self._n_fed_back:
            return open_loop_outputs(
                self.reservoir_,
                sequences.arrays,
                starts,
                readout or self._readout(),
                include_input=self._include_input,
                engine=self._engine,
            )
        return self._play_all(sequences, starts)

    def _play_all(
        self, sequences: Sequences, starts: list[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Run on own outputs; return outputs and end states, and warn of the first that strays."""
        played = [self._play(X, start) for X, start in zip(sequences.arrays, starts, strict=True)]
        for i, (rows, _, n_sound) in enumerate(played):
            which = i if len(played) > 1 else None
            if warn_of_leaving(rows, self._target_range, n_sound=n_sound, sequence=which):
                break
        return [rows for rows, _, _ in played], [state for _, state, _ in played]

    def _play(self, X: Array, start: Array) -> tuple[Array, Array, int]:
        """Run on own outputs through the feedback weights; return outputs, state, sound steps."""
        n_units = self.reservoir_.n_units
        rows, state, n_sound = self._run_loop(
            self._loop_readout(),
            len(X),
            initial_state=start[:n_units],
            initial_output=start[n_units:],
            exog=X,
        )
        return rows, np.concatenate([state, rows[-1]]), n_sound

    def _run_loop(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run on own outputs, as `run_closed_loop`; the caller warns of a loop that diverged."""
        return run_closed_loop(
            self.reservoir_,
            readout,
            n_steps,
            include_input=self._include_input,
            return_steps=True,
            engine=self._engine,
            **options,
        )

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
        n_units = self.reservoir_.n_units
        feedback = None
        if self._n_fed_back:
            played, _ = self._play_all(sequences, starts)
            feedback = [
                np.vstack([s[n_units:], y[:-1]]) for s, y in zip(starts, played, strict=True)
            ]
        states = run_many(
            self.reservoir_,
            sequences.arrays,
            initial_states=np.stack([start[:n_units] for start in starts]),
            feedback=feedback,
            engine=self._engine,
        )
        return sequences.restore(states)
