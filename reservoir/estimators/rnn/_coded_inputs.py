"""Inputs that an estimator reads as the numbers of symbols (`n_symbols`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, check_count, code
from reservoir.training.codes import valid_codes


def check_codes(sequences: Sequences, n_symbols: int) -> Sequences:
    """Return sequences whose rows are one symbol each, or refuse them."""
    check_count("n_symbols", n_symbols, minimum=2)
    dtype = sequences.arrays[0].dtype
    if n_symbols > 1 / np.finfo(dtype).eps:
        raise ValueError(
            f"n_symbols={n_symbols}: dtype {dtype} does not tell so many numbers apart. Use "
            'dtype="float64".'
        )
    for i, rows in enumerate(sequences.arrays):
        where = "X" if len(sequences) == 1 else f"sequence {i} of X"
        if rows.shape[1] != 1:
            raise ValueError(
                f"n_symbols={n_symbols} reads X as one column, the numbers of symbols; {where} has "
                f"{rows.shape[1]} columns. Give one column, or n_symbols=None for columns of "
                "numbers."
            )
        valid = valid_codes(rows, n_symbols)
        if not valid.all():
            row = int(np.argmin(valid[:, 0]))
            numbered = "X = np.unique(X, return_inverse=True)[1].reshape(-1, 1)"
            if sequences.container != "table":
                numbered = "X = [np.searchsorted(np.unique(np.concatenate(X)), rows) for rows in X]"
            raise ValueError(
                f"n_symbols={n_symbols}: {where} must hold whole numbers from 0 to "
                f"{n_symbols - 1}; row {row} holds {rows[row, 0]:g}. Number them among all that "
                f"there are: {code(numbered)}."
            )
    return sequences


def check_combined(estimator: Any) -> None:
    """Refuse what does not go with symbols as inputs."""
    if estimator.n_symbols is None:
        return
    if estimator.include_input:
        raise ValueError(
            f"include_input=True does not go with n_symbols={estimator.n_symbols}: the readout "
            "takes numbers. Use include_input=False, or one-hot columns."
        )


def row_of_symbol(symbol: int, network: Any, dtype: Any) -> Array:
    """Return the row of X that stands for a symbol: its number, or one column that is 1."""
    if network.coded:
        return np.array([symbol], dtype=dtype)
    row = np.zeros(network.n_features, dtype)
    row[symbol] = 1
    return row
