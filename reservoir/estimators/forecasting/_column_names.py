"""Columns of frames, matched by name."""

from __future__ import annotations

from typing import Any

from reservoir._validation import code


def names_in_fit(estimator: Any) -> list[str] | None:
    """Return the names of the columns that an estimator was fitted on, if they had any."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


def in_order_of_fit(name: str, table: Any, names: list[str] | None) -> Any:
    """Return a frame with its columns as in fit; all else goes by position, as it came.

    As in scikit-learn, a frame has names if they are strings.
    """
    if names is None or not hasattr(table, "columns"):
        return table
    given = list(table.columns)
    if given == names or not any(isinstance(column, str) for column in given):
        return table
    missing = [column for column in names if column not in given]
    unknown = [column for column in given if column not in names]
    if missing or unknown or len(given) != len(names):
        told = [f"lacks {missing}"] if missing else []
        told += [f"has {unknown}, which fit has not seen there"] if unknown else []
        told += ["has a column twice"] if not told else []
        raise ValueError(
            f"{name} {' and '.join(told)}: its columns must be {names}, in any order. Choose them "
            f"by name, or give an array to go by position, {code(f'{name} = {name}.to_numpy()')}."
        )
    return table[names]
