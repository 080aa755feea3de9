"""Standard deviation of errors that a few odd ones hardly change."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array

_MAD, _MEAN = 1.4826, 1.2533  # normal standard deviation over median and mean absolute error


def robust_deviation(errors: Array) -> Array:
    """Return the standard deviation of normal errors with the same median or mean, the greater.

    `errors`, (n, n_rows, n_outputs), are absolute; NaN are omitted. The result is (n, n_outputs),
    and 0 where all errors are NaN.
    """
    counted = np.isfinite(errors).any(axis=1, keepdims=True)
    filled = np.where(counted, errors, 0.0)
    return np.maximum(_MAD * np.nanmedian(filled, axis=1), _MEAN * np.nanmean(filled, axis=1))
