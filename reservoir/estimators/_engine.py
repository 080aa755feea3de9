"""From sequences to Gram matrices and outputs: functions on arrays below the estimators."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from reservoir._typing import Array
from reservoir._validation import SumError, caller_level, container_of
from reservoir.dynamics import Reservoir, iter_many, iter_states
from reservoir.dynamics.engines import engine_for
from reservoir.dynamics.open_loop import block_rows
from reservoir.estimators._saturation import Activity
from reservoir.readouts import GramAccumulator

_GATHERED_ROWS = 512  # rows of short sequences that are added at once
_BATCH_ROWS = 8192  # at least so many rows go to one worker
_MAX_BATCHES = 32  # at most so many Gram matrices are on their way at a time
_STEADY_STEPS = 10_000
_N_BLOCKS = 5  # folds of the blocked selection, scikit-learn's default number
_HELD_OUT = 0.2  # share of the rows that the hold-out selection scores on


@dataclass(frozen=True)
class Job:
    """One sequence to learn from.

    `skip` rows are washout. Row i of the rest belongs to part k of the Gram if
    ``edges[k - 1] <= i < edges[k]``, counted from the start of the sequence.
    """

    X: Array
    Y: Array
    weights: Array | None
    skip: int
    edges: tuple[int, ...]
    state: Array
    last_output: Array
    generator: np.random.Generator | None = None


class Learned(NamedTuple):
    """What a batch of jobs gives back.

    Grams by part, the state and generator at the end of the last job, and what the units have done
    behind the washout.
    """

    grams: dict[int, GramAccumulator]
    state: Array
    generator: np.random.Generator | None
    activity: Activity


def edges_of(selection: str | None, lengths: list[int], skips: list[int]) -> list[tuple[int, ...]]:
    """Return where each sequence's parts end: one part, or what the selection scores on."""
    if selection is None or selection == "gcv":
        return [(length,) for length in lengths]
    kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
    if selection == "holdout":
        held = [round(_HELD_OUT * n) for n in kept]
        return [(length - h, length) for length, h in zip(lengths, held, strict=True)]
    total, before, edges = sum(kept), 0, []
    ends = [round(total * (k + 1) / _N_BLOCKS) for k in range(_N_BLOCKS)]
    for skip, n in zip(skips, kept, strict=True):
        edges.append(tuple(skip + min(max(end - before, 0), n) for end in ends))
        before += n
    return edges


def iter_features(
    reservoir: Reservoir, job: Job, *, noise: float, include_input: bool, engine: str = "auto"
) -> Iterator[tuple[int, Array]]:
    """Yield (start, features) block by block, teacher-forced where there is feedback.

    The memory of the features is used again: copy what you keep; the states in it may be changed.
    """
    n_units = reservoir.n_units
    width = n_units + (job.X.shape[1] if include_input else 0)
    buffer = np.empty((block_rows(n_units, len(job.X)), width), reservoir.dtype)
    for start, states in iter_states(
        reservoir,
        job.X,
        initial_state=job.state,
        feedback=_teacher(reservoir, job),
        noise=noise,
        generator=job.generator,
        buffer=buffer,
        engine=engine,
    ):
        features = buffer[: len(states)]
        features[:, n_units:] = job.X[start : start + len(states), : width - n_units]
        yield start, features


def _teacher(reservoir: Reservoir, job: Job) -> Array | None:
    """Return what each step receives of the outputs: the targets, one step late."""
    return None if reservoir.W_fb is None else np.vstack([job.last_output, job.Y[:-1]])


def with_inputs(states: Array, X: Array, include_input: bool) -> Array:
    """Return the features of a block: the states, then the inputs if they are asked for."""
    return np.hstack([states, X]) if include_input else states


def learn(
    reservoir: Reservoir,
    jobs: list[Job],
    *,
    noise: float,
    include_input: bool,
    missing: str,
    n_steps: int,
    limit_threads: bool = False,
) -> Learned:
    """Run jobs and sum up their features and targets; `n_steps` of the whole choose the engine."""
    engine = engine_for(reservoir, n_steps)
    width = reservoir.n_units + (jobs[0].X.shape[1] if include_input else 0)
    sums = _Sums(width, jobs[0].Y.shape[1], missing)
    activity = Activity.of_nothing(reservoir.n_units)
    leak = reservoir.leak_rate
    with threadpool_limits(1) if limit_threads else contextlib.nullcontext():
        if len(jobs) > 1 and noise == 0:
            before = [job.state for job in jobs]
            for index, start, states in iter_many(
                reservoir,
                [job.X for job in jobs],
                initial_states=np.stack([job.state for job in jobs]),
                feedback=[_teacher(reservoir, job) for job in jobs]
                if reservoir.n_outputs
                else None,
                engine=engine,
            ):
                activity.add_behind(jobs[index].skip - start, states, before[index], leak)
                before[index] = states[-1].copy()
                sums.gather(jobs[index], start, states)
            state = before[-1]
        else:
            for job in jobs:
                state = job.state
                for start, features in iter_features(
                    reservoir, job, noise=noise, include_input=include_input, engine=engine
                ):
                    states = features[:, : reservoir.n_units]
                    activity.add_behind(job.skip - start, states, state, leak)
                    state = states[-1].copy()
                    sums.add(job, start, features)
        return Learned(sums.finish(), state, jobs[-1].generator, activity)


class _Sums:
    """Gram matrices by part; rows of short sequences are gathered until they fill a block."""

    def __init__(self, width: int, n_outputs: int, missing: str) -> None:
        self.width, self.n_outputs, self.missing = width, n_outputs, missing
        self.grams: dict[int, GramAccumulator] = {}
        self.waiting: dict[int, _Rows] = {}

    def add(self, job: Job, start: int, features: Array) -> None:
        """Add a block of features, which is used up."""
        for part, low, high in _parts(job, start, len(features)):
            weights = None if job.weights is None else job.weights[low:high]
            rows = features[low - start : high - start]
            self._update(part, rows, job.Y[low:high], weights)

    def gather(self, job: Job, start: int, states: Array) -> None:
        """Add a block of states; the inputs beside them are taken from the job."""
        n_units = states.shape[1]
        for part, low, high in _parts(job, start, len(states)):
            if part not in self.waiting:
                self.waiting[part] = _Rows(self.width, job, states.dtype)
            rows = self.waiting[part]
            while low < high:
                stop = min(high, low + len(rows.H) - rows.filled)
                place = slice(rows.filled, rows.filled + stop - low)
                rows.H[place, :n_units] = states[low - start : stop - start]
                rows.H[place, n_units:] = job.X[low:stop, : self.width - n_units]
                rows.Y[place] = job.Y[low:stop]
                if rows.weights is not None:
                    rows.weights[place] = job.weights[low:stop]  # type: ignore[index]
                rows.filled += stop - low
                low = stop
                if rows.filled == len(rows.H):
                    self._flush(part)

    def finish(self) -> dict[int, GramAccumulator]:
        for part in self.waiting:
            self._flush(part)
        return self.grams

    def _flush(self, part: int) -> None:
        rows = self.waiting[part]
        n, weights = rows.filled, rows.weights
        self._update(part, rows.H[:n], rows.Y[:n], None if weights is None else weights[:n])
        rows.filled = 0

    def _update(self, part: int, H: Array, Y: Array, weights: Array | None) -> None:
        if part not in self.grams:
            self.grams[part] = GramAccumulator(self.width, self.n_outputs)
        self.grams[part].update(H, Y, weights, missing=self.missing, overwrite_h=True)


class _Rows:
    """A block of rows on its way into a Gram matrix."""

    def __init__(self, width: int, job: Job, dtype: Any) -> None:
        self.H = np.empty((_GATHERED_ROWS, width), dtype)
        self.Y = np.empty((_GATHERED_ROWS, job.Y.shape[1]))
        self.weights = None if job.weights is None else np.empty(_GATHERED_ROWS)
        self.filled = 0


def _parts(job: Job, start: int, n_rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield (part, low, high): which rows of the sequence, behind the washout, go where."""
    begin = job.skip
    for part, end in enumerate(job.edges):
        low, high = max(begin, start), min(end, start + n_rows)
        if low < high:
            yield part, low, high
        begin = max(begin, end)


def learn_all(
    reservoir: Reservoir, jobs: list[Job], *, n_jobs: int | None, verbose: int, **options: Any
) -> Learned:
    """`learn` over batches of sequences in parallel; the result does not depend on `n_jobs`.

    The batches depend on the data alone and their Grams are merged in order; with several
    sequences each batch runs on one BLAS thread, in workers or not, so the sums are the same to
    the bit.
    """
    several = len(jobs) > 1
    batches = _batches(jobs)
    results: Iterable[Learned]
    if effective_n_jobs(n_jobs) > 1 and len(batches) > 1:
        results = Parallel(n_jobs=n_jobs)(
            delayed(learn)(reservoir, batch, limit_threads=several, **options) for batch in batches
        )
    else:
        results = (learn(reservoir, batch, limit_threads=several, **options) for batch in batches)
    total: Learned | None = None
    for result in progress(results, len(batches), verbose):
        if total is None:
            total = result
            continue
        for part, gram in result.grams.items():
            if part in total.grams:
                total.grams[part].merge(gram)
            else:
                total.grams[part] = gram
        total.activity.merge(result.activity)
        total = total._replace(state=result.state, generator=result.generator)
    assert total is not None
    return total._replace(grams=dict(sorted(total.grams.items())))


def _batches(jobs: list[Job]) -> list[list[Job]]:
    rows = max(_BATCH_ROWS, sum(len(job.X) for job in jobs) // _MAX_BATCHES)
    batches: list[list[Job]] = [[]]
    filled = 0
    for job in jobs:
        if filled >= rows:
            batches.append([])
            filled = 0
        batches[-1].append(job)
        filled += len(job.X)
    return batches


def progress(items: Iterable[Any], total: int, verbose: int) -> Iterable[Any]:
    """Show a progress line if `verbose` (tqdm where it is installed, else the log)."""
    if not verbose:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _logged(items, total)
    return tqdm(items, total=total, desc="reservoir fit", unit="batch")


def _logged(items: Iterable[Any], total: int) -> Iterator[Any]:
    logger = logging.getLogger("reservoir")
    for i, item in enumerate(items):
        logger.warning("fit: batch %d of %d", i + 1, total)
        yield item


def steady_state(reservoir: Reservoir, u: Array, *, quiet: bool = False) -> Array:
    """Return the state that a constant input leads to from zero; zeros, with a warning, if none."""
    tolerance = 50 * np.finfo(reservoir.dtype).eps
    state = np.zeros(reservoir.n_units, reservoir.dtype)
    constant = np.tile(u, (100, 1))
    feedback = None if reservoir.W_fb is None else np.zeros((100, reservoir.n_outputs))
    for _ in range(_STEADY_STEPS // len(constant)):
        try:
            blocks = iter_states(reservoir, constant, initial_state=state, feedback=feedback)
            block = np.concatenate([b.copy() for _, b in blocks])
        except ValueError:  # an unbounded activation ran away
            break
        state = block[-1]
        if np.abs(state - block[-2]).max() <= tolerance * max(1.0, np.abs(state).max()):
            return state
    if not quiet:
        warnings.warn(
            f'initial_state="steady": no fixed point was reached in {_STEADY_STEPS} steps of the '
            "first row; starting from zeros. A smaller spectral radius makes one more likely.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
    return np.zeros(reservoir.n_units, reservoir.dtype)


Readout = Callable[[Array], Array]


def open_loop_outputs(
    reservoir: Reservoir,
    series: Sequence[Array],
    starts: Sequence[Array],
    readout: Readout,
    *,
    include_input: bool,
    engine: str,
) -> tuple[list[Array], list[Array]]:
    """Return readout(features) for every row of every sequence, and the states at the ends."""
    parts: list[list[Array]] = [[] for _ in series]
    ends = [start.copy() for start in starts]
    blocks: Iterable[tuple[int, int, Array]]
    if len(series) == 1:
        blocks = (
            (0, *b)
            for b in iter_states(reservoir, series[0], initial_state=starts[0], engine=engine)
        )
    else:
        blocks = iter_many(reservoir, series, initial_states=np.stack(starts), engine=engine)
    for index, start, states in blocks:
        X = series[index][start : start + len(states)]
        with np.errstate(over="ignore", invalid="ignore"):
            rows = readout(with_inputs(states, X, include_input))
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            row = start + int(np.argmin(np.isfinite(rows).reshape(len(rows), -1).all(axis=1)))
            raise ValueError(
                f"The output of row {row} overflows {rows.dtype}: the input there is far outside "
                "what the readout was fitted on. Check that row, or scale the data."
            )
        parts[index].append(rows)
        ends[index] = states[-1].copy()
    return [np.concatenate(rows) for rows in parts], ends


@contextlib.contextmanager
def naming_columns(n_units: int, sequence_column: Any) -> Iterator[None]:
    """Say of sums that overflow which of the user's columns is too large."""
    try:
        yield
    except SumError as error:
        column = error.column
        if error.of == "Y":
            what = f"The squares of y overflow in column {column}"
            remedy = "Scale y (TransformedTargetRegressor)."
        elif column < n_units:
            what = f"The squares of the states overflow, first those of unit {column}"
            remedy = 'Scale X (StandardScaler), or use a bounded activation such as "tanh".'
        else:
            what = f"The squares of X overflow in column {column - n_units}"
            what += "" if sequence_column is None else " (the id column not counted)"
            remedy = "Scale X (StandardScaler), or keep it from the readout (include_input=False)."
        raise ValueError(f"{what}. {remedy}") from error


def join(values: Any, X: Any) -> Any:
    """Join what belongs to the sequences of X; what belongs to one table stays as it is."""
    if values is None or container_of(X) == "table":
        return values
    return np.concatenate([np.asarray(item) for item in values])
