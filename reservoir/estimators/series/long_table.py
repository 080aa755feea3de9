"""Tables whose columns are ids, times, targets and known inputs: read as series, and made again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import (
    check_shape,
    column_values,
    is_collection,
    is_polars,
    library_of,
    n_dimensions,
    n_levels,
    place_of,
    stacked,
    take_columns,
    take_rows,
)
from reservoir._tables.reading import check_ids, some
from reservoir._typing import Array
from reservoir._validation.index import kind_of, numbers_of, plain_name, show
from reservoir._validation.kinds import check_readable
from reservoir.estimators.series.calendar import Calendars
from reservoir.estimators.series.column_types import ColumnType, as_pandas
from reservoir.estimators.series.panel import Panel
from reservoir.estimators.series.tables import repeated

Errors = dict[Any, Exception]  # by id

_ONE_TABLE = (
    "Give one table with a column for each, or set time_column=None and target_column=None."
)
_DATES = (
    "Convert text and Python's dates by pd.to_datetime (text of polars by str.to_datetime), "
    "durations by dt.total_seconds()."
)


# remedies for an index, and those for a column of times
_REMEDIES = {
    "Insert them with NaN by asfreq.": "Add rows with these times, and NaN for the values.",
    "Insert them with NaN by reindex.": "Add rows with these times, and NaN for the values.",
    "number the rows by reset_index(drop=True)": "number the rows of each series (cumcount)",
}


class Columns(NamedTuple):
    """The parameters that name columns of a table, each by number or name, or None."""

    sequence_column: Any = None
    time_column: Any = None
    target_column: Any = None

    @classmethod
    def of(cls, estimator: Any) -> Columns:
        """Return the parameters of an estimator."""
        return cls(*(getattr(estimator, name) for name in cls._fields))


@saved
@dataclass(frozen=True)
class LongTable:
    """The roles of the columns of a table, by their labels: names, numbers for arrays.

    With a column of times, rows are grouped by id and sorted by time, and become a pandas table
    with an index of times; forecasts of that table become tables like the user's. Without one, only
    columns are selected. By default there is no such table: containers stay as they are.
    """

    kind: str = "array"  # the library: "pandas", "polars" or "array"
    labels: tuple[Any, ...] = ()  # of all columns; empty if no column is selected or moved
    ids: Any = None
    time: Any = None
    targets: tuple[Any, ...] = ()
    known: tuple[Any, ...] = ()
    chosen: bool = False  # whether targets were named, so that all other columns are known inputs
    id_type: ColumnType | None = None
    time_type: ColumnType | None = None
    level_types: tuple[ColumnType, ...] = ()  # of the ids in a MultiIndex

    # ------------------------------------------------------------------ roles

    @classmethod
    def of(cls, y: Any, exog: Any, columns: Columns) -> LongTable:
        """Return the roles of the columns of y and exog.

        Raise if y is not one table, if a column is missing or has two roles, or if `exog` is given
        although the other columns of y are known inputs.
        """
        if not is_collection(y):
            check_readable("y", y)
        sequence_column, time_column, target_column = columns
        chosen = target_column is not None
        if time_column is None and not chosen:
            found = sequence_column is not None and hasattr(y, "columns") and n_levels(y) == 1
            label = _label(y, "sequence_column", sequence_column) if found else None
            return cls(library_of(y), id_type=_type_of(y, label), level_types=_types_of_levels(y))
        if chosen and exog is not None:
            raise ValueError(
                f"exog was given, but with target_column={target_column!r} known inputs are the "
                "other columns of y. Put them in y, or set target_column=None."
            )
        check_one_table("y", y, time_column)
        labels = _labels_of("y", y)
        ids = _label(y, "sequence_column", sequence_column)
        time = _label(y, "time_column", time_column)
        roles = [each for each in (ids, time) if each is not None]
        others = tuple(each for each in labels if each not in roles)
        targets = others
        if chosen:
            several = isinstance(target_column, (list, tuple))
            wanted = target_column if several else [target_column]
            targets = tuple(_label(y, "target_column", each) for each in wanted)
        twice = repeated([*roles, *targets])
        if twice or not targets:
            fault = f"column {twice[0]!r} has two roles" if twice else "none is left to forecast"
            raise ValueError(
                f"sequence_column={sequence_column!r}, time_column={time_column!r} and "
                f"target_column={target_column!r} name columns of y, but {fault}. Name different "
                "columns, at least one of them to forecast."
            )
        known = tuple(each for each in others if each not in targets)
        if exog is not None and time is not None:
            check_one_table("exog", exog, time_column)
            known = tuple(each for each in _labels_of("exog", exog) if each not in roles)
        types = _type_of(y, ids), _type_of(y, time), _types_of_levels(y)
        return cls(library_of(y), labels, ids, time, targets, known, chosen, *types)

    @property
    def id_place(self) -> int | None:
        """Number of the column of ids in the tables that `split` returns; None without ids."""
        return None if self.ids is None else 0

    @property
    def _roles(self) -> list[Any]:
        return [each for each in (self.ids, self.time) if each is not None]

    def check_joins(self, other: LongTable) -> None:
        """Check that the series of another table can be in this one."""
        selected = bool(self.labels or other.labels)  # other tables are compared as panels
        for name in ("kind", "ids", "time", "targets", "known"):
            mine, others = getattr(self, name), getattr(other, name)
            if selected and mine != others:
                raise ValueError(
                    f"The models were fitted to different tables: one has {mine!r} ({name}), "
                    f"another {others!r}. Fit all to tables with the same columns."
                )

    # ------------------------------------------------------------------ reading

    def split(
        self, y: Any, exog: Any = None, *, name: str = "y", errors: Errors | None = None
    ) -> tuple[Any, Any]:
        """Return the table of the series and that of their known inputs, as `Panel` reads them.

        `name` is the name of y in messages. Errors in the times of a series with an id are added to
        `errors`, if given, instead of raised.
        """
        if not self.labels:
            return y, exog
        if self.chosen and exog is not None:
            raise ValueError(
                f"exog was given, but known inputs are columns of {name}, as in fit "
                f"(target_column). Put them in {name}."
            )
        known = [*self._id_label, *self.known]
        wanted = [*self._id_label, *self.targets]
        if self.time is None:
            places = self._places(name, y, self.labels)
            rows = take_columns(y, [places[each] for each in wanted])
            if self.chosen:
                exog = take_columns(y, [places[each] for each in known]) if self.known else None
            return rows, exog
        table = self._grouped(name, y, self.labels, errors)
        rows = table[wanted]
        if self.chosen:
            return rows, table[known] if self.known else None
        if exog is not None:
            exog = self._grouped("exog", exog, [*self._roles, *self.known], errors)[known]
            due = {each: part.index for each, part in self._parts(rows).items()}
            self._check_times(exog, due, f"the rows of {name}", errors)
        return rows, exog

    def split_later(self, y: Any, exog: Any, panel: Panel) -> tuple[Any, Any]:
        """Return later rows as `split` does; raise if whole numbers do not continue the times."""
        errors: Errors = {}
        y, exog = self.split(y, exog, errors=errors)
        _raise_of(errors, panel)
        if self.time is None:
            return y, exog
        calendars = dict(zip(panel.ids, panel.calendars, strict=True))
        for each, part in self._parts(y).items():
            calendar = calendars.get(each)
            # `Calendar` takes numbers from 0 for numbers of rows, which follow any others
            if calendar is None or (kind_of(part.index) or "") != "number":
                continue
            due = calendar.following(1)[0]
            if part.index[0] != due:
                raise ValueError(
                    f"The rows{self._of_series(each)} in y begin at {show(part.index[0])} in "
                    f"column {self.time!r}, but {show(due)} follows the rows before. Drop rows "
                    "that are known already, and give those in between, with NaN where there is "
                    "no value."
                )
        return y, exog

    def future(self, exog: Any, panel: Panel, n_steps: int) -> Any:
        """Return the known inputs of the rows to be forecast, as `Panel` reads them."""
        if exog is None or not self.labels or not self.known:
            return exog
        wanted = [*self._id_label, *self.known]
        if self.time is None:
            if not self.chosen:
                return exog
            places = self._places("exog", exog, wanted)
            return take_columns(exog, [places[each] for each in wanted])
        errors: Errors = {}
        table = self._grouped("exog", exog, [*self._roles, *self.known], errors)[wanted]
        _raise_of(errors, panel)
        due = {
            each: calendar.due(n_steps, following=True)
            for each, calendar in zip(panel.ids, panel.calendars, strict=True)
        }
        self._check_times(table, due, "the forecast")
        return table

    def context(self, context: Any, exog: Any) -> tuple[Any, Any]:
        """Return a context and known inputs of its rows and of those after it."""
        if not self.labels:
            return context, exog
        if self.ids is not None:
            raise ValueError(
                "context continues one system, but there are several series "
                f"(sequence_column, {self.ids!r}). Omit it, or append rows by update."
            )
        if not self.chosen:
            rows, _ = self.split(context, name="context")
            if exog is not None and self.time is not None:
                exog = self._grouped("exog", exog, [self.time, *self.known])[[*self.known]]
            return rows, exog
        rows, known = self.split(context, name="context")
        if known is None or exog is None:
            return rows, exog
        if self.time is None:
            places = self._places("exog", exog, self.known)
            later = take_columns(exog, [places[each] for each in self.known])
        else:
            later = self._grouped("exog", exog, [self.time, *self.known])[[*self.known]]
        return rows, stacked([known, later])

    @property
    def _id_label(self) -> list[Any]:
        return [] if self.ids is None else [self.ids]

    def _places(self, name: str, table: Any, needed: Sequence[Any]) -> dict[Any, int]:
        """Return the number of each column by its label; raise if one is missing or unknown."""
        check_one_table(name, table, self.time)
        labels = _labels_of(name, table)
        if not hasattr(table, "columns"):
            labels = self._labels_of_array(name, len(labels))
        missing = [each for each in needed if each not in labels]
        strange = [each for each in labels if each not in (*self.labels, *self.known)]
        if missing or strange or np.shape(table)[1] != len(labels):
            fault = f"has {np.shape(table)[1]} columns"
            if missing or strange:
                fault = f"{'has no' if missing else 'has the'} column {(missing or strange)[0]!r}"
            raise ValueError(
                f"{name} {fault}, but the columns of fit are {some(self.labels)}. Give those of "
                "the ids and times, and all that are needed besides, by the same names."
            )
        return {each: i for i, each in enumerate(labels)}

    def _labels_of_array(self, name: str, width: int) -> tuple[Any, ...]:
        """Return the labels of the columns of an array, which are in the order of fit."""
        if name != "exog":
            return self.labels
        if not self.chosen:
            return tuple(sorted([*self._roles, *self.known]))
        # the targets may be left out
        every = len(self.labels) == width
        return tuple(each for each in self.labels if every or each not in self.targets)

    def _grouped(
        self, name: str, table: Any, needed: Sequence[Any], errors: Errors | None = None
    ) -> Any:
        """Return the rows of a table grouped by id and sorted by time, which is their index.

        A missing time, or text, is an error of its series, as in `split`.
        """
        import pandas as pd

        places, columns = self._places(name, table, needed), as_pandas(table)
        given = take_columns(columns, places[self.time])
        codes, ids = np.zeros(len(given), dtype=int), None
        if self.ids is not None:
            codes, ids = pd.factorize(take_columns(columns, places[self.ids]))
            check_ids(name, codes < 0, self.ids)
        for row in np.flatnonzero(given.isna()).tolist():
            error = ValueError(
                f"{name} has no time in row {row} of column {self.time!r} (NaN). Fill it, or drop "
                "that row."
            )
            if errors is None or ids is None:
                raise error
            errors.setdefault(plain_name(ids[codes[row]]), error)
        times = _index_of_times(given)
        fault = _fault_of_times(name, self.time, times)
        if fault is not None:
            if errors is None or ids is None:
                raise fault
            times = self._without_text(name, given, codes, ids, errors)
        order = np.lexsort((numbers_of(times), codes))
        wanted = [each for each in needed if each != self.time]
        rows = take_rows(take_columns(columns, [places[each] for each in wanted]), order)
        rows.columns = pd.Index(wanted, tupleize_cols=False)
        return rows.set_axis(times[order].rename(self.time), axis=0)

    def _without_text(self, name: str, given: Any, codes: Array, ids: Any, errors: Errors) -> Any:
        """Return times with NaT in series of which some are text, which are errors of theirs."""
        found = {}
        for code, each in enumerate(ids):
            part = _index_of_times(given[codes == code].infer_objects())
            fault = _fault_of_times(name, self.time, part)
            if fault is not None:
                found[code] = fault
                errors.setdefault(plain_name(each), fault)
        if len(found) == len(ids):
            raise found[0]
        return _index_of_times(given.where(~np.isin(codes, list(found)), None).infer_objects())

    def _parts(self, table: Any) -> dict[Any, Any]:
        """Return the rows of each series of a table that `_grouped` returned, by id."""
        if self.ids is None:
            return {0: table}
        found = table[self.ids].astype(object).to_numpy()
        begins = [0, *(np.flatnonzero(found[1:] != found[:-1]) + 1).tolist(), len(found)]
        return {plain_name(found[i]): take_rows(table, slice(i, j)) for i, j in pairwise(begins)}

    def _check_times(
        self, exog: Any, due: Mapping[Any, Any], whose: str, errors: Errors | None = None
    ) -> None:
        """Check that known inputs of each series have a row for each time that is due."""
        parts = self._parts(exog)
        for each, times in due.items():
            found = parts[each].index if each in parts else times[:0]
            if len(found) == len(times) and _equal(found, times).all():
                continue
            if errors and each in errors:
                continue
            span = f"from {show(times[0])} to {show(times[-1])}"
            fault = "has two rows for the same time"
            kinds = kind_of(found) or "", kind_of(times) or ""
            lacking, strange = times[~times.isin(found)], found[~found.isin(times)]
            if len(found) and kinds[0] != kinds[1]:
                fault = f"has times of another dtype ({found.dtype}, not {times.dtype})"
            elif len(lacking):
                fault = f"has no row for {show(lacking[0])}"
            elif len(strange):
                fault = f"has a row for {show(strange[0])}, which is none of them"
            error = ValueError(
                f"exog must have the times of {whose}{self._of_series(each)}, {span}, each once, "
                f"but it {fault}. Add the rows that are missing, and drop all others."
            )
            if errors is None or self.ids is None:
                raise error
            errors[each] = error

    def _of_series(self, each: Any) -> str:
        return "" if self.ids is None else f" of series {each!r}"

    @contextmanager
    def in_messages(self) -> Iterator[None]:
        """Name the column of times, in place of the index that it becomes, in errors."""
        try:
            yield
        except ValueError as error:
            text = self.worded(str(error))
            if text == str(error):
                raise
            raise ValueError(text) from error

    def worded(self, message: str) -> str:
        """Return a message on the column of times in place of the index, with its remedy."""
        if self.time is None:
            return message
        message = message.replace("The index of", f"Column {self.time!r} of")
        for of_index, of_column in _REMEDIES.items():
            message = message.replace(of_index, of_column)
        return message

    # ------------------------------------------------------------------ forecasts

    def back(self, made: Any, panel: Panel) -> Any:
        """Return forecasts that `Panel` wrapped as a table like the user's."""
        if self.time is None:
            return self._with_id_type(made)
        n_rows = len(made)
        columns: dict[Any, Any] = {}
        if self.ids is not None:
            ids = [each for each in panel.ids for _ in range(n_rows // len(panel))]
            columns[self.ids] = self._typed(self.id_type, ids)
            made = take_columns(made, slice(1, None))
        times = Calendars(panel.calendars).following(n_rows)
        return self._assembled(columns, times, made)

    def back_past(self, made: Any) -> Any:
        """Return the last rows of a series, or a dict of them, as tables like the user's."""
        if self.time is None:
            return made
        if isinstance(made, dict):
            return {each: self._assembled({}, part.index, part) for each, part in made.items()}
        return self._assembled({}, made.index, made)

    def _assembled(self, columns: dict[Any, Any], times: Any, values: Any) -> Any:
        """Return a table of columns, the column of times, and those of a pandas table."""
        columns[self.time] = self._typed(self.time_type, times)
        points = {f"{each} forecast": each for each in self.targets}
        for i, label in enumerate(values.columns):
            name = " ".join(map(str, label)) if len(values.columns.names) > 1 else label
            columns[points.get(name, name)] = column_values(values, i)
        if self.kind == "polars":
            import polars as pl

            return pl.DataFrame({str(name): column for name, column in columns.items()})
        import pandas as pd

        table = pd.DataFrame(columns)
        return table.to_numpy() if self.kind == "array" else table

    def _typed(self, kind: ColumnType | None, values: Any) -> Any:
        return values if kind is None else kind.restored(values)

    def _with_id_type(self, made: Any) -> Any:
        """Return a table in which the column of ids, or the levels, have their types again."""
        if self.level_types:
            import pandas as pd

            kept = zip(made.index.levels, self.level_types, strict=False)
            levels = [pd.Index(kind.restored(level.tolist())) for level, kind in kept]
            made.index = made.index.set_levels(levels, level=range(len(levels)))
            return made
        if self.id_type is None or not hasattr(made, "columns"):
            return made
        labels = [plain_name(each) for each in made.columns]
        if self.id_type.label not in labels:
            return made
        place = labels.index(self.id_type.label)
        if is_polars(made):
            column = self.id_type.restored(made[made.columns[place]].to_list())
            return made.with_columns(column.alias(made.columns[place]))
        column = self.id_type.restored(take_columns(made, place).tolist())
        made.isetitem(place, column.set_axis(made.index))
        return made


def check_one_table(name: str, table: Any, time_column: Any) -> None:
    """Check that columns of a table can be selected."""
    if is_collection(table) or isinstance(table, Mapping):
        what = f"is a {type(table).__name__} of tables"
    else:
        check_shape(name, table)
        what = "has one dimension" if n_dimensions(table) != 2 else ""
        if not what and n_levels(table) > 1 and time_column is not None:
            what = "has a MultiIndex, so that its ids and times are no columns (reset_index)"
    if what:
        raise ValueError(
            f"{name} {what}, but time_column and target_column are columns of one table. "
            f"{_ONE_TABLE}"
        )


def _labels_of(name: str, table: Any) -> tuple[Any, ...]:
    """Return the names of the columns of a table, numbers for arrays."""
    if not hasattr(table, "columns"):
        return tuple(range(np.shape(table)[1]))
    labels = tuple(plain_name(each) for each in table.columns)
    twice = repeated(labels)
    if twice:
        raise ValueError(f"{name} has the column {twice[0]!r} twice. Rename one of the two.")
    return labels


def _label(table: Any, parameter: str, column: Any) -> Any:
    """Return the label of a column that a parameter names; None if it names none."""
    if column is None:
        return None
    return _labels_of("y", table)[place_of("y", table, column, parameter)]


def _type_of(table: Any, label: Any) -> ColumnType | None:
    """Return the type of a column; None for arrays, and without a column."""
    if label is None or not hasattr(table, "columns"):
        return None
    return ColumnType.of(table, _labels_of("y", table).index(label), label)


def _types_of_levels(table: Any) -> tuple[ColumnType, ...]:
    """Return the types of the levels of ids of a table; none without a MultiIndex."""
    if n_levels(table) == 1:
        return ()
    outer = zip(table.index.levels[:-1], table.index.names, strict=False)
    return tuple(ColumnType.of_pandas(level.dtype, plain_name(name)) for level, name in outer)


def _raise_of(errors: Errors, panel: Panel) -> None:
    """Raise the first error of a series of a panel; others are of series that were left out."""
    for each in panel.ids:
        if each in errors:
            raise errors[each]


def _index_of_times(column: Any) -> Any:
    """Return a column of times as an index."""
    import pandas as pd

    if pd.api.types.is_integer_dtype(column.dtype) and not isinstance(column.dtype, np.dtype):
        column = column.astype(np.float64 if column.hasnans else np.int64)  # a nullable dtype
    index = pd.Index(column)
    if index.dtype.kind == "M" and not isinstance(index, pd.DatetimeIndex):
        index = pd.DatetimeIndex(index)  # timestamps of Arrow
    return index


def _fault_of_times(name: str, label: Any, index: Any) -> ValueError | None:
    """Return the error of a column whose values are no dates, periods or numbers, else None."""
    if kind_of(index[index.notna()]) is not None:
        return None
    first = next((each for each in index if isinstance(each, str)), index[0])
    return ValueError(
        f"Column {label!r} of {name} (time_column) contains {first!r} ({index.dtype}), but dates, "
        f"periods or numbers are needed. {_DATES}"
    )


def _equal(found: Any, due: Any) -> Array:
    """Return for each entry of two indexes whether they are equal, floats up to rounding."""
    if found.dtype.kind == "f" or due.dtype.kind == "f":
        return np.isclose(np.asarray(found, dtype=float), np.asarray(due, dtype=float))
    return np.asarray(found == due)
