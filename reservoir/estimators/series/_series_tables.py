"""Series in whatever container, as standardised trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import container_of, read_series
from reservoir.loops.loop_design import Trajectories

_FEWEST_ROWS = 30
_ROUNDING = 1e-12  # a column that varies less, relative to its size, is constant to rounding


@saved
@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of each column."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, tables: list[Array]) -> Scale:
        """Return the scale of all rows; a constant column keeps its units."""
        rows = np.concatenate(tables)
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def standardise(self, rows: Array) -> Array:
        """Return rows without units."""
        return (rows - self.mean) / self.spread

    def restore(self, rows: Array) -> Array:
        """Return rows in units of the data."""
        return self.mean + self.spread * rows


def as_tables(values: Any) -> Any:
    """Return series with a column axis: one of shape (n_samples,) gets it, also in a list."""
    if isinstance(values, (list, tuple)) and len(values) and np.ndim(values[0]) > 0:
        return [as_tables(item) for item in values]
    if np.ndim(values) != 1:
        return values
    return values.to_frame() if hasattr(values, "to_frame") else np.reshape(values, (-1, 1))


def read_tables(name: str, reader: Any, values: Any, *, reset: bool) -> list[Array]:
    """Return series as a list of float64 tables, checked; `reader` keeps their names.

    Parameters
    ----------
    name : str
        What messages call it.
    reader : estimator
    values : series of any kind
    reset : bool
        Whether number and names of columns are set, or compared.
    """
    tables = as_tables(values)
    try:
        container_of(tables)
        found = read_series(reader, tables, reset=reset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = str(error).replace("sequence ", "trajectory ").replace(" of X", f" of {name}")
        raise type(error)(_renamed(text, name)) from error
    return list(found.arrays)


def _renamed(text: str, name: str) -> str:
    return text.replace("X has", f"{name} has").replace("X contains", f"{name} contains")


def refuse_short(tables: list[Array]) -> None:
    """Refuse series that no network can learn from."""
    longest = max(map(len, tables))
    if longest < _FEWEST_ROWS:
        raise ValueError(
            f"y has {longest} rows (n_samples={longest}), and ESNForecaster needs at least "
            f"{_FEWEST_ROWS} in a row: it fits networks on them and tries these in closed loop. "
            "Give a longer series, or forecast with a simpler model."
        )


def refuse_constants(name: str, tables: list[Array]) -> None:
    """Refuse columns without anything to forecast."""
    rows = np.concatenate(tables)
    size = np.abs(rows).max(axis=0)
    constant = np.flatnonzero(np.ptp(rows, axis=0) <= _ROUNDING * size)
    if not len(constant):
        return
    column = int(constant[0])
    if len(constant) == rows.shape[1]:
        what = f"All rows of {name} are equal"
    else:
        what = f"Column {column} of {name} is constant"
    raise ValueError(
        f"{what} (value {rows[0, column]:.6g}, n_samples={len(rows)}): there is nothing to "
        "forecast in it. Leave it out, or give rows in which it varies."
    )


def trajectories(levels: list[Array], known: list[Array]) -> Trajectories:
    """Return standardised trajectories; without exogenous columns these are empty."""
    if not known:
        known = [np.zeros((len(level), 0)) for level in levels]
    return Trajectories(levels, known)
