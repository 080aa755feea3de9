"""Rows whose targets are missing (NaN): they drive the network and count for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.estimators.rnn._starting_weights import check_squares
from reservoir.training.bptt import Network
from reservoir.training.losses import check_targets


def known_rows(targets: Sequence[Array]) -> list[Array] | None:
    """Return which rows of each sequence have all their targets; None if every row has."""
    known: list[Array] = []
    for values in targets:
        missing = np.isnan(values).reshape(len(values), -1)
        known.append(np.logical_not(missing.any(axis=1)))
    return None if all(rows.all() for rows in known) else known


def filled(targets: list[Array], known: list[Array] | None) -> list[Array]:
    """Return targets without NaN: a row that misses one holds the first row that misses none.

    So what is refused of the others is not refused of these. Nothing is learned from them.
    """
    if known is None:
        return targets
    every, rows = np.concatenate(targets), np.concatenate(known)
    if not rows.any():
        return [np.zeros_like(values) for values in targets]
    sample = every[np.argmax(rows)]
    return [np.where(k[:, None], Y, sample) for Y, k in zip(targets, known, strict=True)]


def weights_of_known(weights: list[Array] | None, known: list[Array] | None) -> list[Array] | None:
    """Return the weights of rows, 0 where a target is missing; None where all are equal."""
    if known is None:
        return weights
    if weights is None:
        return [rows.astype(np.float64) for rows in known]
    return [w * rows for w, rows in zip(weights, known, strict=True)]


def followed(
    inputs: Sequence[Array], targets: Sequence[Array], known: list[Array] | None
) -> tuple[list[Array], list[Array]]:
    """Return sequences whose missing targets are the next inputs, which targets are known to be.

    A last row without a target has no next input, and is left out.
    """
    if known is None:
        return list(inputs), list(targets)
    rows, values = [], []
    for X, Y, k in zip(inputs, targets, known, strict=True):
        n = len(X) - (not k[-1])
        following = np.concatenate([X[1:, : Y.shape[1]], Y[-1:]])
        rows.append(X[:n])
        values.append(np.where(k[:, None], Y, following)[:n])
    return rows, values


def check_values(
    inputs: Sequence[Array], targets: list[Array], network: Network, dtype: Any
) -> None:
    """Refuse values that a network of a dtype cannot take; missing targets are none."""
    known = known_rows(targets)
    values = filled(targets, known)
    if known is None or any(rows.any() for rows in known):
        check_targets(np.vstack(values), network.output, network.loss)
    check_squares(inputs, values, dtype)
