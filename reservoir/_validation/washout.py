"""Resolve the parameter `washout`, the number of rows dropped at the start of each sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reservoir._validation.scalars import check_count


def resolve_washout(washout: Any, lengths: Sequence[int]) -> list[int]:
    """Return the number of rows to drop at the start of each sequence.

    `washout` is a number of rows, or "auto": a tenth of the sequence, at most 100. `lengths` are
    the numbers of rows of the sequences. A washout that leaves no row of one raises an error.
    """
    if isinstance(washout, str) and washout == "auto":
        return [min(100, n_samples // 10) for n_samples in lengths]
    if isinstance(washout, str):
        raise ValueError(f'washout={washout!r} is not known. Use an integer, "auto" or "measured".')
    # a number of rows: every sequence must be longer
    washout = check_count("washout", washout, minimum=0)
    for i, n_samples in enumerate(lengths):
        if washout >= n_samples and len(lengths) == 1:
            raise ValueError(
                f"washout={washout} leaves nothing to fit: X has n_samples={n_samples}. "
                'Lower it or use washout="auto".'
            )
        if washout >= n_samples:
            raise ValueError(
                f"washout={washout} must be shorter than every training sequence, but sequence {i} "
                f'has n_samples={n_samples}. Lower it or use washout="auto".'
            )
    return [washout] * len(lengths)
