"""Dropout masks, drawn by a generator that is set only during training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np

from reservoir._typing import Array

_generator: ContextVar[np.random.Generator | None] = ContextVar("dropout", default=None)


@contextlib.contextmanager
def dropping_out(generator: np.random.Generator) -> Iterator[None]:
    """Apply dropout in the context, with masks from `generator`; elsewhere nothing is dropped."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def dropout_mask(shape: tuple[int, int, int], rate: float, same: bool, dtype: np.dtype) -> Array:
    """Return a dropout mask: 0 for dropped values, and 1 / (1 - rate) for the others.

    Parameters
    ----------
    shape : tuple of int
        Shape of the values, (n_steps, n_sequences, n_units).
    rate : float in [0, 1)
        Probability that a value is dropped.
    same : bool
        Whether each sequence has one mask for all steps.
    dtype : dtype
        The dtype of the mask.

    Returns
    -------
    array of shape (n_steps or 1, n_sequences, n_units), or (1, 1, 1)
        With `same`, the first axis has length 1. The shape is (1, 1, 1), with the value 1, if
        nothing is dropped: outside the context `dropping_out`, or at rate 0.
    """
    generator = _generator.get()
    if generator is None or rate == 0:
        return np.ones((1, 1, 1), dtype)
    drawn = generator.random((1, *shape[1:]) if same else shape)
    return (drawn >= rate).astype(dtype) / dtype.type(1 - rate)
