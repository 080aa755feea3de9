"""Answers as Series and DataFrames: `set_output(predict="pandas")` and what it does.

scikit-learn's own `set_output` knows what `transform` returns, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    check_choice,
    continued,
    ending_of,
    steps_between,
)

_CONFIG = "_sklearn_output_config"  # as scikit-learn calls it, whose clone copies it
_Self = TypeVar("_Self", bound="PredictOutput")


class PredictOutput:
    """What estimators return from `predict`, `forecast` and their like: arrays, or pandas."""

    def set_output(self: _Self, *, predict: str | None = None) -> _Self:
        """Set the container of what `predict` and `forecast` return.

        Parameters
        ----------
        predict : {"default", "pandas"} or None, default=None
            "pandas" asks for a Series or a DataFrame with the index of X (of a forecast: continued
            by its frequency) and the names of the columns of y in fit. "default" asks for arrays.
            None leaves the setting as it is.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the container is not known.
        ImportError
            If pandas is not installed.

        Notes
        -----
        It holds for the classifiers' `predict_proba` and `decision_function` as well, whose columns
        are the classes. An X without an index gets one that counts from 0; a collection keeps its
        kind, with a Series or DataFrame per sequence, except that a 3-D array stays an array.
        Clones, saved copies and searches keep the setting. Set it on the estimator inside a
        pipeline, ``pipe[-1].set_output(predict="pandas")``: scalers before it hand on arrays, and
        with them no index, unless the pipeline has ``set_output(transform="pandas")``.

        Examples
        --------
        >>> import pandas as pd
        >>> from reservoir import ESNRegressor
        >>> from reservoir.datasets import mackey_glass
        >>> from reservoir.model_selection import make_forecast_pairs
        >>> days = pd.date_range("2024-01-01", periods=500, freq="D")
        >>> series = pd.Series(mackey_glass(500, random_state=0).ravel(), days, name="level")
        >>> X, y = make_forecast_pairs(series)
        >>> esn = ESNRegressor(50, random_state=0).set_output(predict="pandas").fit(X, y)
        >>> esn.forecast(2).index.strftime("%d %B %Y").tolist()  # the series ends on 14 May
        ['15 May 2025', '16 May 2025']
        """
        if predict is None:
            return self
        check_choice("predict", predict, ("default", "pandas"))
        if predict == "pandas":
            _pandas()
        setattr(self, _CONFIG, {**getattr(self, _CONFIG, {}), "predict": predict})
        return self


def asks_for_pandas(estimator: Any) -> bool:
    """Whether an estimator is to return Series and DataFrames."""
    return getattr(estimator, _CONFIG, {}).get("predict") == "pandas"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'predict="pandas" of set_output needs pandas: pip install pandas. Without it use '
            'predict="default".'
        ) from error
    return pandas


def names_of(y: Any) -> list[Any] | None:
    """Return the names of the columns of y, or of its first sequence; None if there are none."""
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object):
        y = y[0] if len(y) else None
    if hasattr(y, "columns"):
        return [_as_text(name) for name in y.columns]
    name = getattr(y, "name", None)
    return None if name is None else [_as_text(name)]


def _as_text(name: Any) -> Any:
    """Return a name as what can be saved: text, a number, or a tuple of them."""
    if isinstance(name, tuple):
        return tuple(_as_text(part) for part in name)
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, (str, int, float)) else str(name)


def framed(rows: Array, index: Any, names: Sequence[Any] | None) -> Any:
    """Return rows as a Series or a DataFrame; names count if there is one for each column."""
    pd = _pandas()
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
        index = _pandas().Index(list(sequences.ids))
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
    return framed(rows, index, estimator._target_names)


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
