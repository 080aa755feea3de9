"""Answers as Series and DataFrames: `set_output(predict="pandas")` and what it does.

scikit-learn's own `set_output` knows what `transform` returns, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    continued,
    ending_of,
    steps_between,
)

CONFIG = "_sklearn_output_config"  # as scikit-learn calls it, whose clone copies it


def asks_for_pandas(estimator: Any) -> bool:
    """Whether an estimator is to return Series and DataFrames."""
    return getattr(estimator, CONFIG, {}).get("predict") == "pandas"


def require_pandas() -> Any:
    """Return pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'predict="pandas" of set_output needs pandas: pip install pandas. Without it use '
            'predict="default".'
        ) from error
    return pandas


def framed(rows: Array, index: Any, names: Sequence[Any] | None) -> Any:
    """Return rows as a Series or a DataFrame; names count if there is one for each column."""
    pd = require_pandas()
    n_names = 0 if names is None else len(names)
    if rows.ndim == 1:
        return pd.Series(rows, index=index, name=names[0] if names and n_names == 1 else None)
    columns = list(names) if names is not None and n_names == rows.shape[1] else None
    return pd.DataFrame(rows, index=index, columns=columns)


def in_frames(values: Any, X: Any, sequences: Sequences, names: Sequence[Any] | None) -> Any:
    """Return arrays in the container that X came in as Series or DataFrames."""
    if sequences.container == "array":
        return values
    if sequences.container == "table":
        return framed(values, _index(X), names)
    frames = [framed(rows, _index(item), names) for rows, item in zip(values, X, strict=True)]
    return sequences.restore(frames)


def in_one_frame(
    rows: Array, X: Any, sequences: Sequences, names: Sequence[Any] | None, id_name: Any
) -> Any:
    """Return one row per sequence as a Series or a DataFrame; the ids of the sequences lead."""
    index = None
    if sequences.ids is not None:
        index = require_pandas().Index(list(sequences.ids))
        levels = getattr(_index(X), "names", [None])[:-1]
        index.names = levels or [id_name if isinstance(id_name, str) else None]
    return framed(rows, index, names)


def _index(table: Any) -> Any:
    """Return the index of a pandas table; None for others."""
    return table.index if hasattr(table, "iloc") else None


def framed_forecast(estimator: Any, rows: Array, index: Any) -> Any:
    """Return the rows of a forecast as they are asked for; `index` is their index."""
    if not asks_for_pandas(estimator):
        return rows
    return framed(rows, index, estimator._reader.target_names)


def index_of_forecast(estimator: Any, network: Any, n_steps: int, context: Any) -> Any:
    """Return the index of a forecast; None if arrays are asked for, or where nothing is known.

    Parameters
    ----------
    estimator : estimator
    network : Forecaster
        The same as far as forecasts ask for it. If its outputs come back through feedback weights,
        y has the stamps of X's own rows, unless its index says that it is ahead; if not, y is X one
        step later.
    n_steps : int
    context : table or None
        What the forecast goes on from, if not the rows of training.
    """
    if not asks_for_pandas(estimator):
        return None
    of_X, of_y = network.progress.ended
    if context is not None:
        while isinstance(context, (list, tuple)) and len(context) == 1:
            context = context[0]
        end = ending_of(context, of_X)
        ahead = 1
        if network.feeds_back:
            ahead = 0 if of_X is None or of_y is None else steps_between(of_X, of_y)
        return None if end is None else continued(end, n_steps, skip=ahead - 1)
    # behind the last target, by its own stamp, or else two steps behind the last row of X
    counted = of_X is None or (of_X.plain and of_y is not None and not of_y.plain)
    if of_y is not None and (network.feeds_back or counted):
        return continued(of_y, n_steps)
    return None if of_X is None else continued(of_X, n_steps, skip=0 if network.feeds_back else 1)
