"""One fit in parts, which are learned on any machine and merged in the order of their rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from reservoir._typing import Array
from reservoir._validation import Ending, check_count, resolve_washout
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.fed_back import one_step_late
from reservoir.estimators.esn.merging import check_adds
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.readout_training import check_past, few_rows, state_after
from reservoir.estimators.esn.source_estimator import SourceEstimator
from reservoir.estimators.esn.sources import input_rows
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.selection import Runs
from reservoir.stability import transient_length


class SeamError(ValueError):
    """States depend on rows before the overlap; `found` is the message without its remedy."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found} {remedy}")
        self.found = found


#: Largest seam, by dtype: relative to the largest state, between rounding and what is seen later.
MOST_APART = {"float64": 1e-8, "float32": 1e-4}


@dataclass(frozen=True)
class Part:
    """Result of learning the parts `first` to `last` of a plan.

    `model` has no source, so that a part is small; it is None without rows. `entry` is the state to
    which the rows before the first one led, None if a sequence begins there. `seam` is the largest
    difference between a state in which a part ended and that to which the next one was warmed up,
    relative to the largest entry of the state.
    """

    first: int
    last: int
    model: ReadoutModel | None = None
    entry: Array | None = None
    seam: float = 0.0


@dataclass
class _Place:
    """Position of a part in the data, and its sequences."""

    number: int
    begins: bool
    within: int  # rows of its first sequence before it
    n_sequences: int  # that began before it
    lengths: list[int]
    ids: list[Any] | None
    runs: Runs = field(default_factory=Runs)
    skips: list[int] = field(default_factory=list)


class _Begun(NamedTuple):
    """Reader, untrained model and columns of X, as the first rows settle them."""

    reader: DataReader
    model: ReadoutModel
    columns: Any


class PartPlan:
    """Plan of one fit in parts, made by `plan_parts`; it and its parts can be pickled.

    Parameters
    ----------
    estimator : estimator
        With the columns of X, and parameters that are not changed.
    begun : tuple
        The reader of X and y, the untrained model, and the columns of X.
    places : list
        Position of each part in the data.
    whole : list of int
        Number of rows of each whole sequence.
    overlap : int
        Most rows before a part that warm up its state; fewer where a sequence begins.

    Attributes
    ----------
    n_before : list of int
        Number of rows before each part that `learn` needs as `before`.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import NVARRegressor
    >>> from reservoir.interop import plan_parts
    >>> X = np.random.default_rng(0).normal(size=(90, 1))
    >>> plan = plan_parts(NVARRegressor(3), X[:50], X[:50, 0], [50, 40])
    >>> plan.n_before
    [0, 2]
    >>> parts = [plan.learn(0, X[:50], X[:50, 0])]
    >>> parts += [plan.learn(1, X[50:], X[50:, 0], before=(X[48:50], X[48:50, 0]))]
    >>> plan.finish(plan.merge(parts)).seam_
    0.0
    """

    def __init__(
        self, estimator: Any, begun: _Begun, places: list[_Place], whole: list[int], overlap: int
    ) -> None:
        self._estimator, self._begun, self._places = estimator, begun, places
        source, washout = begun.model.source, estimator.washout
        finite = source.memory if isinstance(washout, str) and washout == "auto" else None
        self._washout = resolve_washout(washout, whole) if finite is None else [finite] * len(whole)
        self._runs = self._cut()
        self.overlap = overlap
        self.n_before = [
            0 if place.begins or not place.lengths else min(overlap, place.within)
            for place in places
        ]

    def _cut(self) -> Runs:
        """Set washout and runs of each part as one fit would, and return the runs after it."""
        runs = Runs()
        for place in self._places:
            before = [place.within] + [0] * (len(place.lengths) - 1)
            of_part = self._washout[place.n_sequences - (not place.begins) :]
            place.skips = [
                min(max(skip - rows, 0), n)
                for skip, rows, n in zip(of_part, before, place.lengths, strict=False)
            ]
            place.runs = copy.copy(runs)
            runs.cut(place.lengths, place.skips, continues=not place.begins)
        return runs

    # ------------------------------------------------------------------ learning

    def learn(
        self, i: int, X: Any, y: Any, *, sample_weight: Any = None, before: Any = None
    ) -> Part:
        """Learn from the rows of part i.

        Parameters
        ----------
        i : int
        X, y, sample_weight
            As in `fit`: the rows of this part.
        before : tuple (X, y), optional
            The ``n_before[i]`` rows before them, of the same sequence; required if there are any.

        Returns
        -------
        Part
            For `merge` and `finish`; it knows which parts it contains.
        """
        n = len(self._places)
        if check_count("i", i, minimum=0) >= n:
            raise ValueError(f"i={i} must be below {n}, the number of parts. Count them from 0.")
        place, esn, (reader, model, _) = self._places[i], self._estimator, self._begun
        if not place.lengths:
            return Part(i, i)
        data = self._read(X, y, sample_weight)
        _check_rows(f"part {i}", data, place.lengths, place.ids)
        model = model.copy()
        model.n_trained, model.n_noisy = place.number, place.n_sequences
        model.progress.n_steps, model.progress.washout = place.within, self._washout[0]
        starts, entry = model.initial_states(esn.initial_state, data.sequences), None
        if not place.begins:
            starts[0] = entry = self._warmed_up(i, before, model, starts[0])
        readout = esn._new_readout(reader, partial=True)
        readout.runs, readout.inputs = copy.copy(place.runs), input_rows(esn, model.source)
        options = esn._run_options(reader, data)._replace(report=None, n_jobs=None)
        made = model.part(data, starts, place.skips, readout, options, continues=not place.begins)
        made.n_trained, made.n_noisy = sum(place.lengths), made.n_noisy - place.n_sequences
        made.readout.settings = ReadoutSettings()  # of the plan, and need not travel back
        made.source = made.certificate = None  # type: ignore[assignment]
        return Part(i, i, made, entry)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        esn = self._estimator
        return self._begun.reader.read_chunk(
            esn, X, y, sample_weight, first=False, allow_nan=esn._skips_missing()
        )

    def _warmed_up(self, i: int, before: Any, model: ReadoutModel, start: Array) -> Array:
        """Return the state after the rows before part i, whose last target the model is told."""
        place, n = self._places[i], self.n_before[i]
        model.progress.last_is_target = n > 0
        if n == 0:
            return start
        if before is None:
            raise ValueError(
                f"Part {i} continues a sequence, whose last {n} rows lead to its first state. Pass "
                "them as before=(X, y); n_before of the plan has their number."
            )
        data = self._read(*before)
        _check_rows(f"before of part {i}", data, [n], place.ids and place.ids[:1])
        start = model.initial_states(self._estimator.initial_state, data.sequences)[0]
        rows, targets = data.arrays[0], data.targets[0]
        model.progress.last_output = np.array(targets[-1], dtype=np.float64)
        return state_after(model.source, rows, targets, start, engine=model.engine)

    # ------------------------------------------------------------------ merging

    def merge(self, parts: Iterable[Part]) -> Part:
        """Merge parts that follow one another.

        The result depends on the order in which sums are added, up to rounding.

        Parameters
        ----------
        parts : iterable of Part
            Neighbours, in the order of their rows; none is changed.

        Returns
        -------
        Part
        """
        several = list(parts)
        if not several or not all(isinstance(part, Part) for part in several):
            kinds = sorted({type(part).__name__ for part in several}) or "none"
            raise TypeError(f"merge needs parts, and got {kinds}. Pass what learn returns.")
        for one, other in pairwise(several):
            if other.first != one.last + 1:
                raise ValueError(
                    f"Parts {other.first} to {other.last} cannot be merged after parts "
                    f"{one.first} to {one.last}: rows between or in both. Pass neighbours in the "
                    "order of their rows."
                )
        total = several[0]
        for part in several[1:]:
            total = _joined(total, part)
        return total

    def finish(self, part: Part) -> Any:
        """Solve for the readout of all rows.

        Parameters
        ----------
        part : Part
            All parts, merged.

        Returns
        -------
        estimator
            A fitted clone of the estimator; its `seam_` is the largest seam.

        Raises
        ------
        ValueError
            If parts are missing, or if a state still depended on rows before the overlap.
        """
        if (part.first, part.last) != (0, len(self._places) - 1) or part.model is None:
            raise ValueError(
                f"The fit has parts 0 to {len(self._places) - 1}, and this one contains parts "
                f"{part.first} to {part.last}. Merge all of them first."
            )
        reader, begun, columns = self._begun
        check_seam(part.seam, reader.dtype, self.overlap)
        esn, model = clone(self._estimator), part.model.copy()
        model.source, model.certificate = begun.source, begun.certificate
        readout = esn._new_readout(reader, partial=True)
        model.readout = model.readout.renewed(replace(readout.settings, partial=False))
        model.readout.runs = copy.copy(self._runs)
        n_rows = sum(sum(place.lengths) for place in self._places)
        ends = [_numbered(end, n_rows) for end in model.progress.ended]
        model.progress.ended = ends[0], ends[1]
        model.watch(model.activity, reader.names_of_columns(columns))
        solution = model.solution(few_rows(model.readout))
        esn._publish(copy.deepcopy(reader), model, columns, self._washout, solution)
        esn.seam_ = part.seam
        return esn


def _numbered(end: Ending | None, n_rows: int) -> Ending | None:
    """Return the end of an index, as that of a default index if it numbers the rows of a fit."""
    if end is None or end.kind != "number" or end.last != n_rows - 1:
        return end
    return replace(end, plain=True)


def _joined(one: Part, other: Part) -> Part:
    """Return two neighbours as one part."""
    seam = max(one.seam, other.seam)
    if one.model is None or other.model is None:
        kept = other if one.model is None else one
        return replace(kept, first=one.first, last=other.last, seam=seam)
    if other.entry is not None:
        assert one.model.state is not None
        seam = max(seam, apart(one.model.state, other.entry))
    model = one.model.merged(other.model, continues=other.entry is not None)
    model.readout.runs = other.model.readout.runs
    return Part(one.first, other.last, model, one.entry, seam)


def apart(end: Array, entry: Array) -> float:
    """Return the seam of two parts: the largest difference relative to the largest entry."""
    if not end.size:
        return 0.0
    size, difference = float(np.abs(end).max()), float(np.abs(end - entry).max())
    return difference / size if size else difference


def check_seam(seam: float, dtype: str, overlap: int) -> None:
    """Raise if a state depends on rows before the overlap."""
    if not seam <= MOST_APART[dtype]:
        raise SeamError(
            f"States still depend on rows before the overlap={overlap}: at the seam of two parts "
            f"they differ by {seam:.1e} of their size.",
            "Raise overlap, or call partial_fit part by part.",
        )


def _check_rows(what: str, data: TrainingData, lengths: list[int], ids: Any) -> None:
    """Raise unless data have the planned sequences."""
    found = data.sequences.lengths
    if found != lengths:
        raise ValueError(
            f"{what} has sequences of {found} rows, and the plan has {lengths}. Pass these rows, "
            "or plan with their lengths."
        )
    there = data.sequences.ids
    if ids is not None and there is not None and list(there) != list(ids):
        raise ValueError(
            f"{what} has the ids {np.asarray(there).tolist()}, and the plan has "
            f"{np.asarray(ids).tolist()}. Pass these rows, or plan with their ids."
        )


# ---------------------------------------------------------------------- making a plan


def plan_parts(
    estimator: Any,
    X: Any,
    y: Any,
    lengths: Sequence[Any],
    *,
    classes: Any = None,
    begins: Sequence[bool] | None = None,
    ids: Sequence[Any] | None = None,
    overlap: int | None = None,
) -> PartPlan:
    """Plan one fit in parts, each of which may be learned by another process or machine.

    A part that continues a sequence is learned from the state to which the rows before it lead, its
    overlap. Where states forget their start within the overlap, the merged model is that of one fit
    up to rounding, however the rows are cut.

    Parameters
    ----------
    estimator : ESNRegressor, ESNClassifier or NVARRegressor
        Its parameters are used; it is not changed.
    X, y
        First rows of the data, some hundred or more: they settle the columns, the form of y, the
        weights of the reservoir and the default of `overlap`. They are not learned from.
    lengths : sequence of int, or of lists of int
        Number of rows of each part; a list if the part has several sequences, a number for each.
    classes : array of shape (n_classes,), optional
        All labels, for a classifier; required unless `y` contains them all.
    begins : sequence of bool, optional
        Whether each part begins a sequence. By default a part does if its first id is not the last
        one of the part before; without `ids` only the first part does.
    ids : sequence, optional
        The id of each part, or a list with the id of each of its sequences; required if X has ids.
    overlap : int, optional
        Most rows before a part from which its first state is computed. By default twice the number
        of rows after which states from different starts agree in X, by
        `reservoir.stability.transient_length`; where features depend on a fixed number of rows,
        that number.

    Returns
    -------
    PartPlan

    Raises
    ------
    ValueError, TypeError
        If parameters need all rows at once (``washout="measured"``, ``bias="stable"``,
        `bidirectional`, `time_column`, `class_weight`, `transition`, `readout`, ``forgetting < 1``,
        ``alpha_selection="blocked"``, ``"holdout"``, ``"forecast"``, ``"reml_ar1"``), if `noise` is
        above 0 and a part continues a sequence, or if an id returns after another one.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor
    >>> from reservoir.interop import plan_parts
    >>> X = np.random.default_rng(0).normal(size=(3000, 1))
    >>> y = np.roll(X[:, 0], 2)
    >>> plan = plan_parts(ESNRegressor(50, random_state=0), X[:500], y[:500], [1200, 800, 1000])
    >>> ends, parts = [0, 1200, 2000, 3000], []
    >>> for i in range(3):  # each of these may run elsewhere
    ...     here, n = slice(ends[i], ends[i + 1]), plan.n_before[i]
    ...     before = None if n == 0 else (X[ends[i] - n : ends[i]], y[ends[i] - n : ends[i]])
    ...     parts.append(plan.learn(i, X[here], y[here], before=before))
    >>> model = plan.finish(plan.merge(parts))
    >>> one = ESNRegressor(50, random_state=0).fit(X, y)
    >>> bool(np.allclose(model.predict(X), one.predict(X)))
    True
    """
    if not isinstance(estimator, SourceEstimator):
        raise TypeError(
            f"plan_parts needs an estimator whose readout is solved from sums; got {estimator!r}. "
            "Pass an ESNRegressor, ESNClassifier or NVARRegressor."
        )
    esn: Any = clone(estimator)
    _check_parameters(esn)
    if classes is not None and not is_classifier(esn):
        raise ValueError(f"classes={classes!r} are for classifiers. Leave them out.")
    reader = DataReader(esn, esn._coding())
    known = {} if classes is None else {"classes": classes}
    data = reader.read_chunk(esn, X, y, None, first=True, allow_nan=esn._skips_missing(), **known)
    model = esn._begun(reader, data)
    readout = esn._new_readout(reader, partial=True)
    check_adds(esn, readout.settings)
    readout.check_partial()
    vars(esn).update(data.columns.fitted)
    if data.sequences.ids is not None and ids is None:
        raise ValueError(
            "X has ids, and without those of the parts it is not known where a sequence ends. "
            "Pass ids, one for each part or a list of those in it."
        )
    places, whole = _places(lengths, begins, ids)
    check_past(model.source, esn.washout, whole, input_rows(esn, model.source))
    continued = any(place.lengths and not place.begins for place in places)
    if continued and esn.noise > 0:
        raise ValueError(
            f"noise={esn.noise}: the noise within a sequence continues from row to row, and a part "
            "continues one. Cut between sequences, or use noise=0.0."
        )
    if overlap is not None:
        overlap = check_count("overlap", overlap)
    elif continued:
        overlap = default_overlap(model.source, data.arrays, data.targets)
    return PartPlan(esn, _Begun(reader, model, data.columns), places, whole, overlap or 0)


def _check_parameters(esn: Any) -> None:
    """Raise for parameters that need all rows at once."""
    for name, value in (
        ("washout", "measured"),
        ("bias", "stable"),
        ("bidirectional", True),
    ):
        given = getattr(esn, name, None)
        if type(given) is type(value) and given == value:
            raise ValueError(
                f"{name}={value!r} needs all rows of a sequence at once, and a part has some of "
                "them. Use another value, or fit on all rows together."
            )
    for name in ("time_column", "class_weight"):
        if getattr(esn, name, None) is not None:
            raise ValueError(
                f"{name}={getattr(esn, name)!r} refers to all rows of a fit, and a part has some "
                f"of them. Use {name}=None, or fit on all rows together."
            )


def default_overlap(source: FeatureSource, arrays: Sequence[Array], targets: Any = None) -> int:
    """Return twice the rows in which states agree in the longest series, or a finite memory.

    `targets` of each series are fed back, if there are feedback weights.
    """
    if source.memory is not None:
        return int(source.memory)
    i, feedback = int(np.argmax([len(rows) for rows in arrays])), None
    if source.n_fed_back:
        feedback = one_step_late(np.zeros(source.n_fed_back), targets[i])
    reservoir: Any = source.reservoir  # type: ignore[attr-defined]
    try:
        steps = transient_length(reservoir, arrays[i], feedback=feedback, random_state=0)
    except ValueError as error:
        raise SeamError(
            f"overlap could not be measured in the first {len(arrays[i])} rows. {error}",
            "Pass more rows, or give overlap.",
        ) from error
    return max(2 * steps, source.n_past, 1)


def _places(
    lengths: Sequence[Any], begins: Sequence[bool] | None, ids: Sequence[Any] | None
) -> tuple[list[_Place], list[int]]:
    """Return where each part begins, and the number of rows of each whole sequence."""
    if not hasattr(lengths, "__len__"):
        raise TypeError(f"lengths={lengths!r} must be a list. Give one entry for each part.")
    for name, given in (("begins", begins), ("ids", ids)):
        if given is not None and len(given) != len(lengths):
            raise ValueError(
                f"{name} has {len(given)} entries, and lengths has {len(lengths)}. Pass one for "
                "each part."
            )
    places, whole, names = list[_Place](), list[int](), _Names()
    for i, given in enumerate(lengths):
        rows, of_part = _counts(i, given), None if ids is None else _listed(ids[i])
        begin = not whole or (begins is not None and bool(begins[i]))
        if of_part is not None and rows:
            begin = names.enter(i, of_part, len(rows))
            if begins is not None and bool(begins[i]) != begin and whole:
                raise ValueError(
                    f"begins[{i}]={begins[i]!r}, but ids[{i}]={of_part!r} after another part. "
                    "Pass ids alone."
                )
        within = 0 if begin else whole[-1]
        here = of_part if rows else None
        places.append(_Place(sum(whole), begin, within, len(whole), rows, here))
        if rows and not begin:
            whole[-1] += rows[0]
        whole += rows if begin else rows[1:]
    if not whole:
        raise ValueError(f"lengths={list(lengths)} has no rows. Pass parts with rows.")
    return places, whole


class _Names:
    """Ids of the sequences so far."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.last: Any = None

    def enter(self, i: int, ids: list[Any], n: int) -> bool:
        """Add the ids of part i with n sequences; return whether its first one is another one."""
        if len(ids) != n:
            raise ValueError(
                f"ids[{i}] has {len(ids)} ids, and lengths[{i}] has {n} sequences. Pass an id for "
                "each sequence."
            )
        begins = not self.seen or ids[0] != self.last
        for value in ids if begins else ids[1:]:
            if value in self.seen:
                raise ValueError(
                    f"Sequence id {value!r} occurs again in part {i} after another id, but rows of "
                    "one sequence must be adjacent. Sort the rows by id."
                )
            self.seen.add(value)
        self.last = ids[-1]
        return begins


def _counts(i: int, given: Any) -> list[int]:
    """Return the rows of the sequences of a part; none if it has no rows."""
    if np.ndim(given) == 0:
        n = check_count(f"lengths[{i}]", given, minimum=0)
        return [n] if n else []
    return [check_count(f"lengths[{i}]", each) for each in given]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
