"""Run sequences through a source, and pass their rows to a readout, or return its outputs."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np

from reservoir._typing import Array
from reservoir._validation import SumError, check_count, check_fits, resolve_washout
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.dynamics.engines import full_width
from reservoir.dynamics.feature_source import FeatureSource, Run
from reservoir.dynamics.fed_back import one_step_late
from reservoir.dynamics.saturation import Record
from reservoir.estimators.reading import TrainingData
from reservoir.estimators.reporting import ProgressReport
from reservoir.readouts.contract import Outputs, Readout, RowsAndColumns
from reservoir.readouts.input_rows import InputRows
from reservoir.stability import transient_length

_R = TypeVar("_R")
Blocks = Iterator[tuple[int, int, Array, Array]]  # sequence, first row, features, state after
_GATHERED_ROWS = 512  # rows of short sequences that are added at once
_BATCH_ROWS = 4096  # the least number of rows for one worker
_SOLVING = 7  # the readout is solved in the time of about 7 rows per feature
_FAN_IN = 4  # sums of a level of the tree that are merged at once, in the order of the data


def is_measured(washout: Any) -> bool:
    """Whether the washout is to be measured."""
    return isinstance(washout, str) and washout == "measured"


def washout_lengths(
    washout: Any,
    source: FeatureSource,
    data: TrainingData,
    starts: Sequence[Array],
    *,
    partial: bool = False,
) -> list[int]:
    """Return the number of rows at the start of each sequence that the fit excludes.

    "auto" is the memory of the source if that is finite. For a first chunk (`partial`), the result
    is one number, which is used for all later chunks and may exceed the length of the chunk.
    """
    lengths = data.sequences.lengths[:1] if partial else data.sequences.lengths
    if is_measured(washout):
        measured = _measured(source, data, starts, len(lengths))
        return _rows_between(source, measured, lengths)
    if isinstance(washout, str) and washout == "auto" and source.memory is not None:
        return [int(source.memory)] * len(lengths)
    if partial and not isinstance(washout, str):
        return [check_count("washout", washout, minimum=0)]
    return _rows_between(source, resolve_washout(washout, lengths), lengths)


def tails_of(source: FeatureSource, skips: Sequence[int]) -> list[int]:
    """Return the number of rows at the end of each sequence that the fit excludes.

    If the features depend on later rows, it is the number of rows excluded at the start.
    """
    return [0] * len(skips) if source.causal else list(skips)


def _rows_between(source: FeatureSource, skips: list[int], lengths: Sequence[int]) -> list[int]:
    """Return the washout of each sequence, after checking that rows are left between both ends."""
    for i, (skip, n_samples) in enumerate(zip(skips, lengths, strict=True)):
        if not source.causal and 2 * skip >= n_samples:
            which = "X" if len(lengths) == 1 else f"sequence {i}"
            raise ValueError(
                f"washout={skip} leaves nothing to fit: bidirectional=True excludes as many rows "
                f"at the end of a sequence as at its start, and {which} has "
                f'n_samples={n_samples}. Lower it or use washout="auto".'
            )
    return skips


def check_past(
    source: FeatureSource, washout: Any, lengths: Sequence[int], inputs: InputRows | None = None
) -> None:
    """Check the number of rows before the present one, and the memory for them.

    `lengths` are those of the sequences of a fit; empty for chunks, which more rows may follow. A
    number of rows that is chosen (`inputs`) is less for short sequences.
    """
    if not source.n_past:
        return
    if inputs is not None and inputs.chosen:
        lengths = ()
    if lengths and source.memory is None:
        _require_past(source, lengths)
    elif lengths and isinstance(washout, str) and washout == "auto":
        _require_more_rows(source, lengths)
    name = "n_lags" if source.n_lags > source.skip else "skip"  # type: ignore[attr-defined]
    n_bytes = 24.0 * max(len(lengths), 1) * source.state_size
    check_fits(name, getattr(source, name), n_bytes)


def _require_past(source: FeatureSource, lengths: Sequence[int]) -> None:
    """Check that at least one sequence has a row with a complete past."""
    if source.memory is None and source.n_past >= max(lengths):
        raise ValueError(
            f"{source.past_in_words} before the present one, but the longest sequence has "
            f"n_samples={max(lengths)}. Lower them."
        )


def _require_more_rows(source: FeatureSource, lengths: Sequence[int]) -> None:
    """Check that each sequence is longer than the memory of the source."""
    for i, n_samples in enumerate(lengths):
        if n_samples <= source.memory:
            which = "X" if len(lengths) == 1 else f"sequence {i}"
            raise ValueError(
                f"{source.past_in_words} before the present one, which leaves nothing to fit: "
                f"{which} has n_samples={n_samples}. Lower them, or give washout=0."
            )


def _measured(
    source: FeatureSource, data: TrainingData, starts: Sequence[Array], n_sequences: int
) -> list[int]:
    """Return the steps until states from different starts agree, for the first sequences."""
    reservoir = getattr(source, "reservoir", None)
    if reservoir is None:
        raise ValueError(
            f'washout="measured" compares runs of a reservoir, but {type(source).__name__} has '
            'none. Use an integer or "auto".'
        )
    washouts = []
    for i in range(n_sequences):
        X, Y, start = data.arrays[i], data.targets[i], starts[i]
        # the fed-back values are the targets of the step before; for the first step the output in
        # the initial state, or zeros
        feedback = None
        if reservoir.n_outputs:
            given = start[source.state_size :]
            first = given if given.size else np.zeros(reservoir.n_outputs)
            feedback = one_step_late(first, Y)
        try:
            runs = [X] if source.causal else [X, np.ascontiguousarray(X[::-1])]
            steps = max(
                transient_length(reservoir, rows, feedback=feedback, random_state=0)
                for rows in runs
            )
        except ValueError as error:
            raise ValueError(
                f'washout="measured" failed in sequence {i} (n_samples={len(X)}). {error}'
            ) from error
        if steps >= len(X):
            raise ValueError(
                f'washout="measured" leaves nothing to fit: states from different starts agree '
                f"only after {steps} steps, but sequence {i} has n_samples={len(X)}. Use a longer "
                "series, or an integer."
            )
        washouts.append(steps)
    return washouts


@dataclass(frozen=True)
class TrainingSequence:
    """One sequence to learn from.

    Its first row is row `number` of all training rows so far. The first `skip` rows are washout.
    Each other row i, counted from the start of the sequence, belongs to the part of the first pair
    (part, end) of `cuts` with ``i < end``. `last_output` is the output that the first step
    receives, if outputs are fed back.
    """

    X: Array
    Y: Array
    weights: Array | None
    skip: int
    cuts: tuple[tuple[int, int], ...]
    state: Array
    last_output: Array
    generator: np.random.Generator | None = None
    number: int = 0


class Learned(NamedTuple):
    """Result of learning from a batch of sequences.

    Contains a readout with the rows of these sequences, the state and the noise generator at the
    end of the last sequence, and a record of the units after the washout (None for sources without
    units that saturate).
    """

    readout: Readout
    state: Array
    generator: np.random.Generator | None
    activity: Record | None


def learn(
    source: FeatureSource,
    sequences: list[TrainingSequence],
    readout: Readout,
    activity: Record | None,
    *,
    noise: float,
    engine: str,
    limit_threads: bool = False,
    count: Callable[[int], None] | None = None,
) -> Learned:
    """Run sequences, pass their rows to a readout, and add to a record of the units.

    `count` is called with the number of rows of each block.
    """
    gathered = readout.begin(source.width, sequences[0].Y.shape[1])
    ends = [sequence.state for sequence in sequences]
    together = len(sequences) > 1 and noise == 0 and not readout.ordered
    rows = _Batched(gathered, source, sequences[0]) if together else _Direct(gathered)
    runs = [
        Run(_teacher(source, each), noise, each.generator, engine, activity, each.skip)
        for each in sequences
    ]
    inputs, starts = [each.X for each in sequences], list(ends)
    # one by one as all sources can, or together as this one does
    kind = type(source) if together else FeatureSource
    blocks = kind.iter_many_features(source, inputs, starts, runs)
    with one_blas_thread() if limit_threads else contextlib.nullcontext():
        for index, start, features, state in blocks:
            ends[index] = state
            n_rows = len(features)
            rows.add(sequences[index], start, features)
            if count is not None:
                count(n_rows)
        rows.finish()
    return Learned(gathered, ends[-1], sequences[-1].generator, activity)


def _teacher(source: FeatureSource, sequence: TrainingSequence) -> Any:
    """Return the output that each step receives, if outputs are fed back."""
    return one_step_late(sequence.last_output, sequence.Y) if source.n_fed_back else None


class _Direct:
    """Passes each block on immediately."""

    def __init__(self, readout: Readout) -> None:
        self.readout = readout

    def add(self, sequence: TrainingSequence, start: int, features: Array) -> None:
        """Pass on the rows of a block after the washout; the readout may overwrite them."""
        for part, low, high in _parts(sequence, start, len(features)):
            weights = None if sequence.weights is None else sequence.weights[low:high]
            rows, numbers = features[low - start : high - start], np.arange(low, high)
            self._pass_on(part, numbers + sequence.number, rows, sequence.Y[low:high], weights)

    def _pass_on(
        self, part: int, numbers: Array, features: Array, targets: Array, weights: Array | None
    ) -> None:
        self.readout.sample(numbers, features, targets, weights)
        self.readout.update(features, targets, weights, part=part)

    def finish(self) -> None:
        """Pass on the remaining rows."""


class _Batched(_Direct):
    """Collects rows of short sequences until they fill a block, for one product per block."""

    def __init__(self, readout: Readout, source: FeatureSource, sequence: TrainingSequence) -> None:
        super().__init__(readout)
        self.source, self.like = source, sequence
        self.waiting: dict[int, _Rows] = {}

    def add(self, sequence: TrainingSequence, start: int, features: Array) -> None:
        """Copy the rows of a block after the washout."""
        for part, low, high in _parts(sequence, start, len(features)):
            if part not in self.waiting:
                self.waiting[part] = _Rows(self.source.width, self.like, self.source.dtype)
            rows = self.waiting[part]
            while low < high:
                stop = min(high, low + len(rows.H) - rows.filled)
                place = slice(rows.filled, rows.filled + stop - low)
                rows.H[place] = features[low - start : stop - start]
                rows.Y[place] = sequence.Y[low:stop]
                rows.numbers[place] = np.arange(low, stop) + sequence.number
                if rows.weights is not None:
                    rows.weights[place] = sequence.weights[low:stop]  # type: ignore[index]
                rows.filled += stop - low
                low = stop
                if rows.filled == len(rows.H):
                    self._flush(part)

    def finish(self) -> None:
        """Pass on the remaining rows."""
        for part in self.waiting:
            self._flush(part)

    def _flush(self, part: int) -> None:
        rows = self.waiting[part]
        n, weights = rows.filled, rows.weights
        weights = None if weights is None else weights[:n]
        self._pass_on(part, rows.numbers[:n], rows.H[:n], rows.Y[:n], weights)
        rows.filled = 0


class _Rows:
    """A buffer for a block of rows."""

    def __init__(self, width: int, sequence: TrainingSequence, dtype: Any) -> None:
        self.H = np.empty((_GATHERED_ROWS, width), dtype)
        self.Y = np.empty((_GATHERED_ROWS, sequence.Y.shape[1]))
        self.weights = None if sequence.weights is None else np.empty(_GATHERED_ROWS)
        self.numbers = np.empty(_GATHERED_ROWS, dtype=np.int64)
        self.filled = 0


def _parts(sequence: TrainingSequence, start: int, n_rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield (part, low, high): the rows of a block, after the washout, that belong to a part."""
    begin = sequence.skip
    for part, end in sequence.cuts:
        low, high = max(begin, start), min(end, start + n_rows)
        if low < high:
            yield part, low, high
        begin = max(begin, end)


def state_after(
    source: FeatureSource, rows: Array, targets: Array | None, state: Array, *, engine: str
) -> Array:
    """Return the state after rows, followed by the last output if there are feedback weights.

    With feedback weights each step receives the target of the step before, and `targets` are
    required.
    """
    size, teacher = source.state_size, None
    before, last = state[:size], state[size:]
    if source.n_fed_back:
        assert targets is not None
        teacher = one_step_late(last, targets)
        last = targets[-1].astype(state.dtype)
    for _, _, end in source.iter_features(rows, before, Run(teacher, engine=engine)):
        before = end
    return np.concatenate([before, last])


def learn_all(
    source: FeatureSource,
    sequences: list[TrainingSequence],
    readout: Readout,
    activity: Record | None,
    *,
    n_jobs: int | None,
    report: ProgressReport | None,
    **options: Any,
) -> Learned:
    """Run `learn` on batches of sequences in parallel; the result does not depend on `n_jobs`.

    The batches depend on the data alone and their sums are merged in a fixed order; with several
    sequences each batch runs on one BLAS thread, in workers or not, so the sums are the same to
    the bit. The first batch continues a copy of the record of the units, if there is one.
    """
    several = len(sequences) > 1
    batches = _batches(sequences, source.dtype)
    n_rows = [sum(len(sequence.X) for sequence in batch) for batch in batches]
    solving = _SOLVING * source.width
    if report is not None and len(batches) == 1:  # it runs in this thread: its rows can be counted
        report.start(n_rows[0], later=solving)
        options["count"] = report.advance
    one = partial(learn, limit_threads=several, **options)
    records = [copy.copy(activity)] + [activity and source.activity() for _ in batches[1:]]
    of_batches = [(source, *each) for each in zip(batches, repeat(readout), records)]
    results: Iterable[Any] = run_jobs(one, of_batches, n_jobs)
    if report is not None and len(batches) > 1:
        results = report.follow(results, n_rows, later=solving)
    return merged_in_tree(results, _joined)


def merged_in_tree(results: Iterable[_R], join: Callable[[_R, _R], _R]) -> _R:
    """Return all results, joined in a tree of their order, whichever was ready first.

    One sum is in memory for each level: their number grows with the logarithm of the results.
    """
    levels: list[list[_R]] = []  # of each level the sum so far, as often as results are in it
    for result in results:
        for level in levels:
            level[:] = [join(level[0], result) if level else result] * (len(level) + 1)
            if len(level) < _FAN_IN:
                break
            result = level[0]
            level.clear()
        else:
            levels.append([result])
    return reduce(lambda later, earlier: join(earlier, later), [s[0] for s in levels if s])


def _joined(total: Learned, later: Learned) -> Learned:
    """Add a later result to an earlier one, which is used up."""
    total.readout.merge(later.readout)
    if total.activity is not None and later.activity is not None:
        total.activity.merge(later.activity)  # type: ignore[arg-type]
    return total._replace(state=later.state, generator=later.generator)


def _batches(sequences: list[TrainingSequence], dtype: Any) -> list[list[TrainingSequence]]:
    """Cut sequences into batches that kernels run at full width, of up to four times the rows."""
    n_rows = sum(len(sequence.X) for sequence in sequences)
    rows = _BATCH_ROWS
    multiple = full_width(4 * rows * len(sequences) / max(n_rows, 1), dtype)
    batches: list[list[TrainingSequence]] = [[]]
    filled = 0
    for sequence in sequences:
        if filled >= rows and len(batches[-1]) % multiple == 0:
            batches.append([])
            filled = 0
        batches[-1].append(sequence)
        filled += len(sequence.X)
    return batches


def open_loop_outputs(
    source: FeatureSource,
    series: Sequence[Array],
    starts: Sequence[Array],
    readout: Outputs,
    *,
    engine: str,
) -> tuple[list[Array], list[Array]]:
    """Return readout(features) for every row of each sequence, and the state at its end."""
    parts: list[list[Array]] = [[] for _ in series]
    ends = [start.copy() for start in starts]
    run = Run(engine=engine)
    if len(series) == 1:  # each step of a session
        one = source.iter_features(series[0], starts[0], run)
        blocks: Blocks = ((0, *block) for block in one)
    else:
        blocks = source.iter_many_features(series, starts, [run] * len(series))
    for index, start, features, ends[index] in blocks:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.array(readout(features))  # a copy: the source reuses `features`
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            row = start + int(np.argmin(np.isfinite(rows).reshape(len(rows), -1).all(axis=1)))
            raise ValueError(
                f"The output of row {row} overflows {rows.dtype}: its input is far outside the "
                "range that the readout was fitted on. Check that row, or scale the data."
            )
        parts[index].append(rows)
    return [rows[0] if len(rows) == 1 else np.concatenate(rows) for rows in parts], ends


@contextlib.contextmanager
def naming_columns(source: FeatureSource, sequence_column: Any) -> Iterator[None]:
    """Name the user's column in errors about sums that overflow."""
    try:
        yield
    except SumError as error:
        column = error.column
        of_input = source.input_column(column)
        if error.of == "Y":
            what = f"The squares of y overflow in column {column}"
            remedy = "Scale y (TransformedTargetRegressor)."
        elif of_input is None:
            what, remedy = source.overflow_of(column)
        else:
            what = f"The squares of X overflow in column {of_input}"
            what += "" if sequence_column is None else " (the id column not counted)"
            hidden = source.hides_input_by
            remedy = f", or exclude it from the readout ({hidden})." if hidden else "."
            remedy = f"Scale X (StandardScaler){remedy}"
        raise ValueError(f"{what}. {remedy}") from error


_NO_BETTER = 1.2  # of the targets' variance; above 1, since the expected error is an estimate
_FEW = (0.8, 1.25)  # rows per column, between which a small penalty leads to large errors


def _let_data_choose() -> str:
    return 'Let the data choose by alpha="auto"'


def few_rows(
    readout: Readout, before: RowsAndColumns | None = None, *, share: float = 1.0
) -> str | None:
    """Return a warning if there are about as many rows as columns, with a small penalty.

    Returns None if this was already the case `before`. `share` is the effective number of rows,
    given their weights, divided by their number.
    """
    now = readout.held_by_rows()
    few = [
        one is not None and _FEW[0] <= share * one.rows / one.columns <= _FEW[1]
        for one in (now, before)
    ]
    if now is None or few != [True, False]:
        return None
    return (
        f"The readout has {now.columns} columns, {share * now.rows:.0f} effective rows, and "
        f"the single penalty alpha={now.alpha:g}: with about as many rows as columns it fits "
        "noise, and errors on new rows are at their largest. "
        f"{_let_data_choose()}, or take many more rows than columns."
    )


def columns_apart(readout: Readout, source: FeatureSource) -> str | None:
    """Return a warning if features differ so much in size that small ones are lost in rounding."""
    inputs = [k for k in range(source.width) if source.input_column(k) is not None]
    # compare inputs only if units are recorded: that record warns of saturated or growing units
    among = range(source.width) if source.activity() is None else inputs
    factor = readout.columns_apart(inputs, among)
    if factor is None:
        return None
    return (
        f"The features differ in size by a factor of {factor:.1g}: the sums from which the penalty "
        "is chosen lose the small ones in rounding errors. Scale X (StandardScaler), or use "
        'solver="qr".'
    )


def forgets_too_fast(readout: Readout, made: dict[str, Any]) -> str | None:
    """Return a warning if about as many rows as columns are remembered, and predict badly.

    The expected error is Akaike's final prediction error: with p columns and n effective rows, the
    error on new rows is the error in training times (1 + p / n) / (1 - p / n).
    """
    now = readout.held_by_rows()
    if now is None or not _FEW[0] <= now.remembered / now.columns <= _FEW[1]:
        return None
    share = now.columns / now.rows
    spread = readout.spread_of_targets()
    if spread is None or share >= 1:
        return None
    unexplained = np.mean((made["training_error_"] / np.where(spread > 0, spread, 1.0)) ** 2)
    if unexplained * (1 + share) / (1 - share) < _NO_BETTER:
        return None
    return (
        f"The readout remembers about {now.remembered:.0f} rows for {now.columns} columns, under "
        f"the single penalty alpha={now.alpha:g}, and its training error implies that it predicts "
        "new rows worse than their mean does. "
        f"{_let_data_choose()}, take fewer units, or forget more slowly."
    )


def equal_share(
    weights: Sequence[Array] | None, skips: Sequence[int], tails: Sequence[int] | None = None
) -> float:
    """Return the effective number of rows that the fit includes, divided by their number."""
    if weights is None:
        return 1.0
    tails = [0] * len(skips) if tails is None else tails
    w = np.concatenate(
        [
            part[skip : len(part) - tail]
            for part, skip, tail in zip(weights, skips, tails, strict=True)
        ]
    )
    w = w[w > 0]
    return float(w.sum() ** 2 / (len(w) * np.square(w).sum())) if len(w) else 1.0
