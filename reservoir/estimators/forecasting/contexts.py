"""The contexts of a forecast: one table of rows to warm up on, or one for each of several loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from reservoir._tables import Sequences, container_of
from reservoir._tables.frames import is_collection, n_levels, take_rows
from reservoir._tables.reading import ids_of_rows
from reservoir._typing import Array
from reservoir._validation import check_numbers
from reservoir.estimators.forecasting.pipeline import Layout
from reservoir.estimators.reading import asks_for_pandas, framed_forecast, index_of_forecast


@dataclass(frozen=True)
class Contexts:
    """The rows before each loop, and the container in which results are returned.

    `tables` are as the user gave them, (None,) if the loop continues training; `sequences` are the
    same rows as inputs of the network, one sequence each. `container` is as in `Sequences`; `ids`
    name the sequences of one table.
    """

    tables: tuple[Any, ...] = (None,)
    sequences: tuple[Sequences, ...] = ()
    container: str = "table"
    ids: tuple[Any, ...] | None = None

    @classmethod
    def read(cls, layout: Layout, context: Any) -> Contexts:
        """Return the contexts that the user gave, after checks."""
        if context is None:
            return cls()
        try:
            container = container_of(context)
        except ValueError as error:
            raise ValueError(f"In context: {error}") from error
        if container != "table":
            if not len(context):
                raise ValueError(
                    f"context contains no sequences (its shape is {np.shape(context)}); at least "
                    "1 is required."
                )
            tables = tuple(context)
            return cls(
                tables, tuple(_one(layout, i, each) for i, each in enumerate(tables)), container
            )
        whole = layout.read_inputs("context", context)
        if len(whole) == 1:
            return cls((context,), (whole,))
        tables = tuple(take_rows(context, slice(*ends)) for ends in pairwise(whole.bounds))
        # read once more, so that each loop begins as it would alone
        return cls(tables, tuple(layout.read_inputs("context", t) for t in tables), ids=whole.ids)

    @property
    def names(self) -> list[Any] | None:
        """The number or id of each sequence in messages; None if there is one table."""
        if self.container == "table" and self.ids is None:
            return None
        return list(range(len(self.tables)) if self.ids is None else map(repr, self.ids))

    def exog(self, layout: Layout, exog: Any, n_rows: int) -> list[Array]:
        """Return the exogenous rows of each loop, given in a container like the contexts."""
        options: Any = {"has_context": self.tables[0] is not None}
        if exog is None or self.names is None:
            return [layout.read_exog(exog, n_rows, **options)] * len(self.tables)
        n = len(self.tables)
        if self.ids is not None:  # one table, sequence after sequence
            given = ids_of_rows("exog", exog, None)[1] if n_levels(exog) > 1 else self.ids
            if given != self.ids:
                raise ValueError(
                    f"exog has the sequences {list(given)}, but context has {list(self.ids)}. "
                    "Give exog the same sequences in the same order."
                )
            rows = layout.read_exog(exog, n * n_rows, **options)
            return list(rows.reshape(n, n_rows, -1))
        several = isinstance(exog, (list, tuple)) or is_collection(exog)
        if not several or len(exog) != n:
            got = f"{len(exog)} of them" if several else f"one table of shape {np.shape(exog)}"
            raise ValueError(
                f"context has {n} sequences, so exog must be a collection of {n} tables of shape "
                f"({n_rows}, {layout.n_exog}); got {got}. Pass one table for each sequence."
            )
        named = enumerate(exog)
        return [layout.read_exog(e, n_rows, name=f"exog[{i}]", **options) for i, e in named]

    def initial_states(self, spec: Any) -> list[Any]:
        """Return the initial state of each loop, as the user gave it."""
        if self.names is None or spec is None or isinstance(spec, str):
            return [spec] * len(self.tables)
        states = check_numbers("initial_state", spec)
        if states.ndim == 2 and len(states) != len(self.tables):
            raise ValueError(
                f"initial_state has {len(states)} rows, but context has {len(self.tables)} "
                "sequences. Pass one row for each sequence, or one state for all."
            )
        return list(states) if states.ndim == 2 else [states] * len(self.tables)

    def restore(self, layout: Layout, loops: Sequence[Array]) -> Any:
        """Return the rows of the loops in the container of the contexts, with their indexes."""
        estimator, network = layout.chain.innermost, layout.network
        parts = []
        for table, rows in zip(self.tables, loops, strict=True):
            index = index_of_forecast(estimator, network, len(rows), table)
            if self.ids is not None and index is not None:  # ids come back below
                index = index.get_level_values(-1)
            parts.append(framed_forecast(estimator, rows, index))
        if self.ids is not None and asks_for_pandas(estimator):
            import pandas as pd

            first: Any = self.tables[0]
            levels = list(first.index.names) if n_levels(first) > 1 else None
            return pd.concat(parts, keys=self.ids, names=levels)
        return Sequences((), self.container).restore(parts)

    def stacked(self, states: Sequence[Array]) -> Array:
        """Return the end states of the loops: one, or a row for each sequence."""
        return states[0] if self.names is None else np.stack(states)


def _one(layout: Layout, i: int, table: Any) -> Sequences:
    """Return an item of several contexts, which must be one sequence."""
    found = layout.read_inputs(f"context[{i}]", table)
    if len(found) != 1:
        raise ValueError(f"context[{i}] must be one sequence; got {len(found)} sequences.")
    return found
