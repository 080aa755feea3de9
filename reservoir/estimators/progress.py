"""Position of an estimator in its data: continuing sequences, new ones, and initial states."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import Ending, caller_level, check_choice, check_numbers
from reservoir.dynamics.held_reservoir import Training

Ended = tuple[Ending | None, Ending | None]
NOWHERE: Ended = (None, None)  # without an index the ends of X and y are not known
_CHUNK = 2**14  # rows that are compared at a time, to avoid copies of a long series
_MAX_PAIRS = 64  # kept so that the scaling of a pipeline can be checked later
_FAR = 10.0  # widths of the training range beyond it, where no useful forecast is
_ROUNDING = 1e-9  # a range narrower than this share of its largest number counts as constant
_NOTHING = np.array([[np.inf], [-np.inf]])  # the range without any targets
_NAMED = 20  # further sequences that a warning names
_OF_CONSTANT = 0.1  # of a constant's size: used as the width of its range
AFTER_GAP = (
    "To cross-validate, warm up each test block with the rows before it: "
    'initial_state="zeros" with ContextSplit and washout_scorer. To continue in spite of the gap, '
    "give initial_state=model.state_ to predict; for a new start without this warning, "
    'initial_state="steady" or "zeros".'
)


class SeenIds:
    """A set of ids that only grows, and whose copies share storage: copying takes constant time."""

    def __init__(self, ids: Iterable[Any] = ()) -> None:
        # ids in order of entry, shared with copies; this set consists of the first `_n`
        self._numbers: dict[Any, int] = {}
        self._n = 0
        self.update(ids)

    def __contains__(self, value: Any) -> bool:
        return self._numbers.get(value, self._n) < self._n

    def __iter__(self) -> Iterator[Any]:
        return islice(self._numbers, self._n)

    def update(self, ids: Iterable[Any]) -> None:
        """Add ids; if a copy has added others since, the storage is copied first."""
        if len(self._numbers) > self._n:
            self._numbers = dict(islice(self._numbers.items(), self._n))
        for value in ids:
            self._numbers.setdefault(value, len(self._numbers))
        self._n = len(self._numbers)


class StateShape(NamedTuple):
    """Layout of a state: past rows and units, then the outputs that are fed back.

    `n_units` counts the `n_held` entries of past rows, too.
    """

    n_units: int
    n_fed_back: int
    dtype: Any
    n_held: int = 0

    @property
    def width(self) -> int:
        """Length of a state."""
        return self.n_units + self.n_fed_back


@saved
class Progress:
    """Position of an estimator in the data that it has learned from, where runs begin.

    `n_steps` are the rows so far of the last sequence, 0 before the first chunk; `continues` is
    False after several sequences. `last_output`, (n_outputs,), need not be a target. `target_range`
    and `input_range`, (2, n), are the lowest and highest values of each column so far. Unless
    `compares`, outputs are never fed back as inputs; if `coded`, the input is a symbol's number.
    """

    last_is_target = True
    input_range: Array | None = None  # missing in files of earlier versions

    def __init__(
        self, n_outputs: int, *, washout: int = 0, compares: bool = True, coded: bool = False
    ) -> None:
        self.washout = washout
        self.n_steps = 0
        self.continues = False
        self.last_output = np.zeros(n_outputs)
        self.target_range = np.repeat(range_of_targets([]), n_outputs, axis=1)
        self.pairing = NextInputCheck(n_outputs, feedback=not compares, coded=coded)
        self.ids = SeenIds()
        self.last_id: Any = None
        self.ended: Ended = NOWHERE

    def draft(self) -> Progress:
        """Return a copy that may be changed; the ids of earlier chunks are not copied."""
        draft = type(self).__new__(type(self))
        others = {name: value for name, value in vars(self).items() if name != "ids"}
        draft.__dict__.update(copy.deepcopy(others), ids=copy.copy(self.ids))
        return draft

    def joined(self, later: Progress, *, continues: bool = False) -> Progress:
        """Return the position after the rows of this one and of a later one, where that one ends.

        `continues` says whether the later one began within the last sequence of this one.
        """
        one = later.draft()
        one.washout = self.washout
        one.continues = continues and self.continues and later.continues
        one.target_range = _range_of_both(self.target_range, later.target_range)
        one.input_range = None
        if self.input_range is not None and later.input_range is not None:
            one.input_range = _range_of_both(self.input_range, later.input_range)
        one.pairing = self.pairing.joined(later.pairing)
        one.ids = copy.copy(self.ids)
        one.ids.update(later.ids)
        return one

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be pickled, copied or saved, with the ids as a plain set."""
        return {**vars(self), "ids": set(self.ids)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, ids=SeenIds(state["ids"]))

    # ------------------------------------------------------------------ learning

    def continues_last(self, sequences: Sequences, new_sequence: bool) -> bool:
        """Whether a chunk's first sequence continues the last sequence of the chunk before."""
        if self.n_steps == 0 or new_sequence or sequences.container != "table":
            return False
        return sequences.ids is None or sequences.ids[0] == self.last_id

    def enter(self, sequences: Sequences, new_sequence: bool) -> bool:
        """Add the sequences of a chunk, and return whether the first continues the one before.

        The id of a sequence that has ended raises an error; a gap in the index raises a warning.
        """
        continues = self.continues_last(sequences, new_sequence)
        new_ids = sequences.ids or ()
        for value in new_ids[1:] if continues or new_sequence else new_ids:
            if value in self.ids:
                raise ValueError(
                    f"Sequence id {value!r} occurs again after its sequence ended in an earlier "
                    "chunk, but rows of one sequence must be adjacent. To begin a new sequence "
                    "with this id, pass it first in a separate call, with new_sequence=True."
                )
        gap = gap_before(self.ended, sequences) if continues else None
        if gap is not None:
            _warn_of_gap(gap)
        self.end(sequences, continues=continues)
        return continues

    def steps_before(self, sequences: Sequences, continues: bool) -> list[int]:
        """Return the number of rows of each sequence in earlier chunks."""
        return [self.n_steps if continues else 0] + [0] * (len(sequences) - 1)

    def skips(self, sequences: Sequences, continues: bool) -> list[int]:
        """Return the number of rows of each sequence of a chunk that are still washout."""
        before = self.steps_before(sequences, continues)
        remaining = [max(self.washout - steps, 0) for steps in before]
        return [min(skip, n) for skip, n in zip(remaining, sequences.lengths, strict=True)]

    def add(self, sequences: Sequences, targets: Sequence[Array], *, continues: bool) -> None:
        """Record the rows of a chunk that has been learned from."""
        for X, Y in zip(sequences.arrays, targets, strict=True):
            self.pairing.add(X, Y)
        if continues and self.last_is_target:
            self.pairing.join(self.last_output, sequences.arrays[0][0])
        self.target_range = range_of_targets(targets, self.target_range)
        self.last_output = np.array(targets[-1][-1], dtype=np.float64)
        self.last_is_target = True
        self.count(sequences, continues=continues)

    def finish(
        self, sequences: Sequences, targets: Sequence[Array] | None, *, washout: int
    ) -> None:
        """Record all data of a fit; `targets` are None if there is one for each sequence."""
        self.washout = washout
        if targets is None:
            self.count(sequences, continues=False)
        else:
            self.add(sequences, targets, continues=False)
        self.end(sequences)
        self.continues = len(sequences) == 1

    def count(self, sequences: Sequences, *, continues: bool) -> None:
        """Record the number of steps, the range of the inputs and the ids of a chunk."""
        self.reach(sequences)
        self.n_steps = self.steps_before(sequences, continues)[-1] + sequences.lengths[-1]
        self.last_id = None if sequences.ids is None else sequences.ids[-1]
        self.ids.update(sequences.ids or ())

    def reach(self, sequences: Sequences) -> None:
        """Record the range of the inputs of a chunk, unless that of earlier chunks is unknown."""
        if self.n_steps == 0 or self.input_range is not None:
            self.input_range = range_of_targets(sequences.arrays, self.input_range)

    def training(self, clock: Any) -> Training:
        """Return what functions of the reservoir need; times are no inputs of it."""
        reach = self.input_range
        if reach is not None and clock is not None:
            reach = np.delete(reach, clock.place, axis=1)
        fed_back = self.pairing.feedback and np.isfinite(self.target_range).all()
        outputs = self.target_range if fed_back else None
        return Training(reach, outputs, self.pairing.holds)

    def end(self, sequences: Sequences, *, continues: bool = False) -> None:
        """Record the end of the last sequence, by its index."""
        same = continues and len(sequences) == 1
        x, y = sequences.times.ended(self.ended if same else NOWHERE)
        if same:
            # rows that are numbered from 0 in every chunk do not show their position in the whole
            x, y = None if x and x.plain else x, None if y and y.plain else y
        self.ended = x, y

    # ------------------------------------------------------------------ starting a run

    def starts(
        self,
        spec: Any,
        sequences: Sequences,
        shape: StateShape,
        *,
        last: Array | None,
        steady: Callable[..., Array],
        fresh: Callable[[Array], Array] | None = None,
        after_gap: str = AFTER_GAP,
    ) -> list[Array]:
        """Return the state before each sequence; `spec` is the initial state, as the user gave it.

        "last" means `last`, (n_units + n_fed_back,), for one sequence that follows training,
        otherwise the state of a new sequence: ``fresh(row)`` before its first row, by default
        zeros. ``steady(row, quiet=False)`` is the state to which an input of constant rows leads.
        `after_gap` is the advice that ends the warning of rows that do not follow training.
        """
        if not isinstance(spec, str):
            return _given_states(spec, len(sequences), shape)
        check_choice("initial_state", spec, ("last", "steady", "zeros"))
        states = [np.zeros(shape.width, shape.dtype) for _ in range(len(sequences))]
        if spec == "last" and last is not None and len(sequences) == 1:
            gap = gap_before(self.ended, sequences)
            if gap is None or not shape.width:  # a gap does not matter to an empty state
                return [last]
            states[0][: shape.n_units] = steady(sequences.arrays[0][0], quiet=True)
            _warn_of_restart(gap, after_gap, from_zeros=not states[0][shape.n_held :].any())
        elif spec == "steady" or (spec == "last" and fresh is not None):
            before = steady if spec == "steady" else fresh
            for state, X in zip(states, sequences.arrays, strict=True):
                state[: shape.n_units] = before(X[0])  # type: ignore[misc]
        return states


def _given_states(given: Any, n_sequences: int, shape: StateShape) -> list[Array]:
    """Return the states in an array from the user, one for all sequences or one for each."""
    n_units, width = shape.n_units, shape.width
    with np.errstate(over="ignore"):  # raises an error below
        states = check_numbers("initial_state", given).astype(shape.dtype)
    known = {sizes for n in (n_units, width) for sizes in ((n,), (n_sequences, n))}
    if states.shape not in known:
        extra = f", or {n_units} with the past rows at the start" if shape.n_held else ""
        extra += f", or {width} with the last output at the end" if shape.n_fed_back else ""
        few = n_units - shape.n_held
        raise ValueError(
            f'initial_state must be "last", "zeros", "steady" or an array of shape ({few},) '
            f"or (n_sequences={n_sequences}, {few}){extra}; got shape {states.shape}."
        )
    if not np.isfinite(states).all():
        raise ValueError("initial_state contains NaN or infinity.")
    padded = np.zeros((n_sequences, width), shape.dtype)
    padded[:, : states.shape[-1]] = states
    return list(padded)


class Gap(NamedTuple):
    """A gap before rows: "X" or "y", the last position of the earlier rows, and the first after."""

    name: str
    end: str
    begin: str


def gap_before(ended: Ended, sequences: Sequences) -> Gap | None:
    """Return the gap between training and the first sequence; None if there is none known.

    The index of X determines the gap, or the index of y if that of X gives no position on one of
    the two sides.
    """
    times = sequences.times
    for name, ending, span in zip("Xy", ended, (times.X, times.y), strict=True):
        if ending is None or span is None or ending.kind != span[0].kind:
            continue
        if ending.plain and span[0].plain:
            continue
        if span[0].follows(ending):
            return None
        return Gap(name, ending.shown, span[0].show(0))
    return None


def _warn_of_restart(gap: Gap, advice: str, *, from_zeros: bool) -> None:
    """Warn that a run does not continue from the state at the end of training."""
    start = "zeros" if from_zeros else "the steady state of its first row"
    warnings.warn(
        f'initial_state="last" continues from the end of training, but {gap.name} begins at '
        f"{gap.begin} and does not follow it: training ended at {gap.end}. This run starts from "
        f"{start} instead. {advice}",
        UserWarning,
        stacklevel=caller_level(),
    )


def warn_of_session_gap(ended: Ended, sequences: Sequences) -> None:
    """Warn if the index of X shows that rows do not follow the last rows of a session."""
    gap = gap_before((ended[0], None), sequences)
    if gap is not None:
        warnings.warn(
            f"A session continues from the state after its last row, but X begins at {gap.begin} "
            f"and that row was at {gap.end}. If X does not follow, call "
            f"`session.reset()` first, or pass the rows in between.",
            UserWarning,
            stacklevel=caller_level(),
        )


def _warn_of_gap(gap: Gap) -> None:
    """Warn that training continues across a gap between two chunks."""
    warnings.warn(
        f"partial_fit continues from the state at the end of the last chunk, but {gap.name} begins "
        f"at {gap.begin} and that chunk ended at {gap.end}. Use new_sequence=True if a chunk does "
        "not follow the last one, or pass the rows in between.",
        UserWarning,
        stacklevel=caller_level(),
    )


# ---------------------------------------------------------------------- is y[t] the next input?


@saved
class NextInputCheck:
    """Comparison of targets with the inputs one step later, sequence by sequence.

    With feedback weights, outputs are no columns of X, and nothing is compared. If `coded`, the
    input is one column, the number of the largest output. `problem` is a text that shows the first
    y[t] that differs from X[t+1]. `targets` and `inputs`, (n_pairs, n_outputs) and (n_pairs,
    n_features), are a sample of targets, each with the row of X one step later.
    """

    coded = False  # missing in files of earlier versions

    def __init__(self, n_outputs: int, feedback: bool, coded: bool = False) -> None:
        n_outputs = 1 if coded else n_outputs
        self.n_outputs, self.coded = n_outputs, coded
        self.feedback = feedback
        self.problem: str | None = None
        self.targets = np.zeros((0, n_outputs))
        self.inputs = np.zeros((0, 0))

    @property
    def holds(self) -> bool:
        """Whether each target was the next input, or differs from it by a scale and an offset."""
        if self.problem is None:
            return len(self.targets) > 0
        targets = self.targets
        return len(targets) > 2 and _affine(self.inputs[:, : targets.shape[1]], targets) is not None

    def joined(self, later: NextInputCheck) -> NextInputCheck:
        """Return the comparison of the sequences of both."""
        one = copy.copy(self)
        one.problem = self.problem or later.problem
        room = _MAX_PAIRS - len(self.targets)
        if room > 0 and len(later.targets):
            old = self.inputs if self.inputs.size else later.inputs[:0]
            one.targets = np.concatenate([self.targets, later.targets[:room]])
            one.inputs = np.concatenate([old, later.inputs[:room]])
        return one

    def add(self, X: Array, Y: Array) -> None:
        """Compare one sequence with its targets."""
        self._compare(Y[:-1], X[1:], 0)

    def join(self, last_output: Array, x: Array) -> None:
        """Compare the last target of a chunk with the first row of the next."""
        self._compare(last_output[None], x[None], -1)

    def _compare(self, targets: Array, following: Array, first: int) -> None:
        if self.feedback or following.shape[1] < self.n_outputs:
            return
        if self.coded:
            missing = np.isnan(targets).any(axis=1)
            targets = np.where(missing, np.nan, np.argmax(targets, axis=1))[:, None]
        room = _MAX_PAIRS - len(self.targets)
        if room > 0 and len(targets):
            rows = np.unique(np.linspace(0, len(targets) - 1, room).astype(int))
            rows = rows[~np.isnan(targets[rows]).any(axis=1)]
            old = self.inputs if self.inputs.size else np.zeros((0, following.shape[1]))
            self.targets = np.concatenate([self.targets, targets[rows]])
            self.inputs = np.concatenate([old, following[rows].astype(np.float64)])
        if self.problem is not None:
            return
        shown = following[:, : self.n_outputs]
        with np.errstate(over="ignore", invalid="ignore"):
            # equality relative to the spread of the column: a large offset must not hide a lag
            spread = shown.std(axis=0, dtype=np.float64) if len(shown) > 1 else 0.0
        for start in range(0, len(shown), _CHUNK):
            given, seen = targets[start : start + _CHUNK], shown[start : start + _CHUNK]
            same = _close(given, seen, spread)
            if not same.all():
                row, k = (int(i) for i in np.argwhere(~same)[0])
                t = start + row + first
                self.problem = (
                    f"y[{t}, {k}]={given[row, k]:.6g}, but X[{t + 1}, {k}]={seen[row, k]:.6g}"
                )
                return


def affine_pairs(arrays: Sequence[Array], targets: Sequence[Array]) -> tuple[Array, Array] | None:
    """Return scale and offset with y[t] == scale * X[t+1] + offset, (n_outputs,) each.

    Such numbers exist if a scaler in a pipeline scales X but not y. The result is None if there are
    none, or if the scale of an output is 0.
    """
    x = np.concatenate([X[1:, : targets[0].shape[1]] for X in arrays])
    return _affine(x, np.concatenate([Y[:-1] for Y in targets]))


def _affine(x: Array, y: Array) -> tuple[Array, Array] | None:
    """Return scale and offset with y == scale * x + offset, as `affine_pairs` does."""
    known = ~np.isnan(y).any(axis=1)
    dtype, x, y = x.dtype, x[known].astype(np.float64), y[known]
    if not len(y):
        return None
    dx, dy = x - x.mean(axis=0), y - y.mean(axis=0)
    square = (dx**2).mean(axis=0)
    scale = np.where(square > 0, (dx * dy).mean(axis=0) / np.where(square > 0, square, 1.0), 1.0)
    offset = y.mean(axis=0) - scale * x.mean(axis=0)
    shown = (scale * x + offset).astype(dtype)
    fits = scale.all() and _close(y, shown, y.std(axis=0)).all()
    return (scale, offset) if fits else None


def _close(targets: Array, shown: Array, spread: Array | float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        differences = np.abs(targets.astype(shown.dtype) - shown)
    near = 1e-6 * spread + 16 * np.finfo(shown.dtype).eps * np.abs(shown)
    return (differences <= near) | np.isnan(targets)


# ---------------------------------------------------------------------- the range of the targets


def range_of_targets(targets: Sequence[Array], before: Array | None = None) -> Array:
    """Return the smallest and the largest target of each output, (2, n_outputs).

    `before` is the range of earlier chunks. Missing targets are ignored.
    """
    low, high = before if before is not None else _NOTHING
    for part in targets:
        low = np.fmin(np.fmin.reduce(part, axis=0), low)
        high = np.fmax(np.fmax.reduce(part, axis=0), high)
    return np.array([low, high], dtype=np.float64)


def _range_of_both(one: Array, other: Array) -> Array:
    """Return the range that covers two ranges; NaN where one of them is unknown."""
    return np.array([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


def width_of(reach: Array) -> Array:
    """Return the width of each output's range; for a constant c, abs(c) / 10, or 1 if c is 0."""
    low, high = reach
    size = np.abs(reach).max(axis=0)
    floor = np.where(size > 0, _OF_CONSTANT * size, 1.0)
    with np.errstate(over="ignore"):
        width = high - low
    return np.where(width > _ROUNDING * size, width, floor)


def widened(reach: Array) -> Array:
    """Return a range that is extended by its own width on both sides."""
    width = width_of(reach)
    return np.array([reach[0] - width, reach[1] + width])


def warn_of_leaving(
    loops: Sequence[tuple[Array, int]],
    reach: Array,
    *,
    names: Sequence[Any] | None = None,
    clipped: bool | None = False,
) -> None:
    """Warn once if loops are far outside the range of the training targets, or diverged.

    Each loop is its rows, (n_steps, n_outputs), and the step at which it left the floating-point
    range, or n_steps. `reach`, (2, n_outputs), is the range of the targets in the units of the
    rows, NaN or infinite where unknown. `names` are numbers or ids of the sequences that the loops
    continue. `clipped` tells whether fed-back outputs went through `clip`; None if they cannot.
    """
    left = [_first_outside(rows[:n_valid], reach) for rows, n_valid in loops]
    lost = [i for i, (rows, n) in enumerate(loops) if left[i] is not None or n < len(rows)]
    if not lost:
        return
    # one warning for all loops, of both if both are true
    (rows, n_valid), found = loops[lost[0]], left[lost[0]]
    which = "" if names is None else f" of sequence {names[lost[0]]}"
    text = []
    if n_valid < len(rows):
        text.append(
            f"The closed loop{which} diverged at step {n_valid}: it left the range of numbers "
            "whose squares are finite. The rows from this step on repeat the last output before it."
        )
    if found is not None:
        k, j = found
        name = f" {j}" if rows.shape[1] > 1 else ""
        text.append(
            f"The closed loop{which} left the range of the training targets at step {k}: output"
            f"{name} is {rows[k, j]:.6g}, and the targets were between {reach[0, j]:.6g} and "
            f"{reach[1, j]:.6g}. The rows from this step on are unreliable."
        )
    if names is not None and len(lost) > 1:
        others = ", ".join(str(names[i]) for i in lost[1 : 1 + _NAMED])
        others += " and more" if len(lost) > 1 + _NAMED else ""
        text.append(f"The same happened to other sequences: {others}.")
    advice = {
        None: ".",
        True: "; the fed-back outputs went through clip, and that was not enough.",
        False: "; clip=True in forecast keeps the fed-back outputs near those targets.",
    }
    text.append(
        "Scaled data (StandardScaler), a larger alpha, noise in training or a smaller spectral "
        f"radius often help{advice[clipped]}"
    )
    warnings.warn(" ".join(text), RuntimeWarning, stacklevel=caller_level())


def _first_outside(rows: Array, reach: Array) -> tuple[int, int] | None:
    """Return row and column of the first output more than ten widths outside the range."""
    with np.errstate(over="ignore", invalid="ignore"):
        room = _FAR * width_of(reach)
        outside = (rows < reach[0] - room) | (rows > reach[1] + room)
    if not outside.any():
        return None
    k = int(np.argmax(outside.any(axis=1)))
    return k, int(np.argmax(outside[k]))
