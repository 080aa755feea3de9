"""What cells share: projections of inputs, states at the ends of sequences, weight gradients."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.training.params import Params


def project(X: Array, weights: Array, bias: Array) -> Array:
    """Return W_in x + bias for all steps in one product: the bias weighs an input that is 1."""
    both = np.vstack([weights.T, bias])
    return (with_ones(X) @ both).reshape(*X.shape[:2], -1)


def with_ones(*arrays: Array) -> Array:
    """Return the rows of arrays side by side, and a column of ones."""
    parts = [as_rows(A) for A in arrays]
    return np.hstack([*parts, np.ones((len(parts[0]), 1), parts[0].dtype)])


def as_rows(A: Array) -> Array:
    """View an array (n_steps, n_sequences, k) as rows."""
    return A.reshape(-1, A.shape[-1])


def ends_of(X: Array, lengths: Array | None) -> Array:
    """Return where each sequence ends; without lengths, at the last step."""
    return np.full(X.shape[1], len(X)) if lengths is None else np.asarray(lengths)


def states_at(states: Array, ends: Array) -> Array:
    """Return the state of each sequence at its end."""
    return states[ends, np.arange(states.shape[1])]


def enter(dH: Array, ends: Array, d_end: Array | None) -> None:
    """Add the gradient at the end states to that at the outputs."""
    if d_end is not None:
        running = np.flatnonzero(ends > 0)
        dH[ends[running] - 1, running] += d_end[running]


def weight_gradients(D: Array, X: Array, before: Array) -> Params:
    """Return the gradients of W_in, W and bias, given that at the pre-activations."""
    flat, n, p = as_rows(D), before.shape[2], X.shape[2]
    if flat.shape[1] == n:
        parts = flat.T @ as_rows(X), flat.T @ as_rows(before), flat.sum(axis=0)
    else:  # many gates: one product, the other way round, is up to 1.4 times faster
        whole = (with_ones(before, X).T @ flat).T
        parts = whole[:, n : n + p], whole[:, :n], whole[:, n + p]
    return dict(zip(("W_in", "W", "bias"), map(np.ascontiguousarray, parts), strict=True))
