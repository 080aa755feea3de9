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
    """Draw dropout masks in the context; outside it cells use all units."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def dropout_mask(shape: tuple[int, int, int], rate: float, same: bool, dtype: np.dtype) -> Array:
    """Return a mask of 0 for dropped numbers, and 1 / (1 - rate) for the others.

    Parameters
    ----------
    shape : tuple of int
        (n_steps, n_sequences, n_units).
    rate : float in [0, 1)
    same : bool
        Whether each sequence has one mask for all steps.
    dtype : dtype

    Returns
    -------
    array of that shape, or of shape (1, n_sequences, n_units), or (1, 1, 1)
        Ones if nothing is dropped: outside `dropping_out`, or at rate 0.
    """
    generator = _generator.get()
    if generator is None or rate == 0:
        return np.ones((1, 1, 1), dtype)
    drawn = generator.random((1, *shape[1:]) if same else shape)
    return (drawn >= rate).astype(dtype) / dtype.type(1 - rate)
