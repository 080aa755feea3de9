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

    `shape` is (n_steps, n_sequences, n_units). With `same`, all steps of a sequence share a mask,
    and the first axis has length 1. If nothing is dropped (rate 0, or outside `dropping_out`), the
    mask is a single 1 of shape (1, 1, 1).
    """
    generator = _generator.get()
    if generator is None or rate == 0:
        return np.ones((1, 1, 1), dtype)
    drawn = generator.random((1, *shape[1:]) if same else shape)
    return (drawn >= rate).astype(dtype) / dtype.type(1 - rate)
