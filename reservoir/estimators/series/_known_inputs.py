"""Inputs that are known beforehand: read, compared with those of fit, gaps filled as asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import code
from reservoir.estimators.series._series_container import SeriesContainer
from reservoir.estimators.series._series_panels import Panel
from reservoir.estimators.series._series_tables import is_collection
from reservoir.estimators.series._series_values import n_dimensions, read_values


@saved
@dataclass(frozen=True)
class KnownInputs:
    """How known inputs came in fit; None if there were none."""

    container: SeriesContainer | None

    @classmethod
    def of(cls, exog: Any) -> KnownInputs:
        """Return how inputs came; the first of several tables tells."""
        if exog is None:
            return cls(None)
        tables = list(exog) if is_collection(exog) else [exog]
        for table in tables:
            check_table(table)
        return cls(SeriesContainer.of(tables[0]))

    def read(
        self,
        panel: Panel,
        exog: Any,
        lengths: list[int],
        how: str,
        sequence_column: Any,
        *,
        following: bool,
    ) -> list[Array]:
        """Return known inputs for each series of a panel, without columns if there are none.

        `following` says whether rows are those behind the series, `how` what becomes of gaps.
        """
        if self._absent(exog, lengths):
            return [np.zeros((length, 0)) for length in lengths]
        self._check_columns([exog[0] if is_collection(exog) else exog])
        tables = panel.read_exog("exog", exog, sequence_column, following=following)
        check_lengths(tables, lengths, "the forecast" if following else "y")
        return fill_known(tables, how)

    def read_trajectories(
        self, exog: Any, lengths: list[int], how: str, partner: str = "y"
    ) -> list[Array]:
        """Return known inputs of several trajectories, or of a context with what follows it."""
        if self._absent(exog, lengths):
            return [np.zeros((length, 0)) for length in lengths]
        if not is_collection(exog) or len(exog) != len(lengths):
            n_tables = len(exog) if is_collection(exog) else 1
            raise ValueError(
                f"exog holds {n_tables} table{'s' * (n_tables != 1)}, and there are "
                f"{len(lengths)} trajectories. Give one for each."
            )
        self._check_columns(exog)
        tables = [read_values(f"table {i} of exog", table) for i, table in enumerate(exog)]
        check_lengths(tables, lengths, partner)
        return fill_known(tables, how)

    def _absent(self, exog: Any, lengths: list[int]) -> bool:
        """Whether there are none; refuse those that are missing, or were not there in fit."""
        if exog is None and self.container is not None:
            raise ValueError(
                f"exog is missing: the series was fitted with {self.container.n_outputs} column"
                f"{'s' * (self.container.n_outputs != 1)} of it. Give it with {lengths[0]} rows."
            )
        if exog is not None and self.container is None:
            raise ValueError("exog was given, and the series was fitted without. Leave it out.")
        return exog is None

    def _check_columns(self, tables: Any) -> None:
        for table in tables:
            check_table(table)
            if self.container is not None:
                self.container.check_same("exog", table)


def check_table(table: Any) -> None:
    """Refuse what is no table of known inputs, in fit and behind it: a dict, a number, text."""
    if n_dimensions(table) not in (1, 2):
        made = f" (of a dict {code('exog = pd.DataFrame(exog)')})" if hasattr(table, "keys") else ""
        raise TypeError(
            f"exog is a {type(table).__name__} of {n_dimensions(table)} dimensions; give an array "
            f"of shape (n_samples, n_columns), a Series or a DataFrame{made}, or a list of these, "
            "one for each series."
        )


def fill_known(tables: list[Array], how: str) -> list[Array]:
    """Return known inputs without gaps: refused, held, or on a straight line.

    Raises
    ------
    ValueError
        If a value is missing and `how` is "raise", or none is there to be held.
    """
    found: list[Array] = []
    for i, table in enumerate(tables):
        shared = i > 0 and table is tables[i - 1]
        missing = np.isnan(table)
        if shared or not missing.any():
            found.append(found[-1] if shared else table)
            continue
        row, column = (int(k) for k in np.argwhere(missing)[0])
        which = f"table {i} of exog" if len(tables) > 1 else "exog"
        if how == "raise":
            raise ValueError(
                f"Row {row} of {which} has no value in column {column} (NaN). Fill it, or let "
                'missing_values="hold" (the value before it) or "interpolate" do so.'
            )
        if missing.all(axis=0).any() or (how == "hold" and missing[0].any()):
            column = int(
                np.argmax(missing.all(axis=0) if missing.all(axis=0).any() else missing[0])
            )
            raise ValueError(
                f"Column {column} of {which} begins with missing values (NaN), and there is none "
                'before them to be held. Fill them, or let missing_values="interpolate" do so.'
            )
        found.append(np.column_stack([_filled(values, how) for values in table.T]))
    return found


def _filled(values: Array, how: str) -> Array:
    rows, known = np.arange(len(values)), np.flatnonzero(np.isfinite(values))
    if how == "interpolate":
        return np.interp(rows, known, values[known])
    return values[known[np.searchsorted(known, rows, side="right") - 1]]


def check_lengths(tables: list[Array], lengths: list[int], partner: str) -> None:
    """Refuse known inputs that are not row by row."""
    for i, (table, length) in enumerate(zip(tables, lengths, strict=True)):
        if len(table) != length:
            which = f"Table {i} of exog" if len(tables) > 1 else "exog"
            raise ValueError(
                f"{which} has {len(table)} rows, and {length} are needed: one for each row of "
                f"{partner}."
            )


def read_coverages(coverage: Any) -> list[float]:
    """Return the coverages that were asked for, in their order; an empty list for None."""
    if coverage is None:
        return []
    given = np.atleast_1d(np.asarray(coverage, dtype=object))
    found = []
    for each in given.ravel().tolist():
        number = isinstance(each, (int, float, np.number)) and not isinstance(each, bool)
        if not number or not 0 < float(each) < 1:
            raise ValueError(
                f"coverage={coverage!r} must be a share between 0 and 1, such as 0.9, or a list "
                "of them."
            )
        found.append(float(each))
    if not found or len(set(found)) < len(found):
        raise ValueError(f"coverage={coverage!r} must name each share once, and at least one.")
    return found
