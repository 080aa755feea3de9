"""Draw random weights and random connections, for topologies and input weights."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_choice, check_count, check_number

# largest number of random keys in memory at a time in `_by_keys`: 2**24 doubles are 128 MiB
_BLOCK_ENTRIES = 2**24

LAWS: dict[str, Callable[[np.random.Generator, Any], Array]] = {
    "normal": lambda generator, size: generator.standard_normal(size),
    "uniform": lambda generator, size: generator.uniform(-1.0, 1.0, size),
    "bernoulli": lambda generator, size: 2.0 * generator.integers(0, 2, size) - 1.0,
}


def draw(
    law: Any, size: int | tuple[int, ...], generator: np.random.Generator, *, name: str = "weights"
) -> Array:
    """Return float64 weights of shape `size` drawn from a distribution.

    `law` is "normal", N(0, 1); "uniform", U(-1, 1); "bernoulli", -1 and +1 with equal probability;
    or any object with a method ``rvs(size=..., random_state=...)``, whose draws must be finite and
    have the right shape. The state of `generator` advances. `name` is the caller's parameter, for
    messages.
    """
    if isinstance(law, str):
        return LAWS[check_choice(name, law, LAWS)](generator, size)
    if not callable(getattr(law, "rvs", None)):
        raise TypeError(
            f"{name} must be one of {', '.join(map(repr, sorted(LAWS)))} or a frozen scipy.stats "
            f"distribution such as `scipy.stats.uniform(-1, 2)`; got {law!r} of type "
            f"{type(law).__name__}."
        )
    # check the draws from a user's distribution
    values = np.asarray(law.rvs(size=size, random_state=generator), dtype=np.float64)
    shape = size if isinstance(size, tuple) else (size,)
    if values.shape != shape:
        raise ValueError(
            f"{name}: {law!r} returned an array of shape {values.shape} instead of {shape}. "
            "Use a univariate distribution."
        )
    n_bad = int(values.size - np.count_nonzero(np.isfinite(values)))
    if n_bad:
        raise ValueError(
            f"{name}: {n_bad} of {values.size} draws from the given distribution are NaN or "
            "infinite. Use a distribution whose draws are finite."
        )
    return values


def resolve_degree(name: str, degree: Any, n_columns: int) -> int:
    """Return the number of connections per row, given that number or a density.

    An integer is the number itself, capped at `n_columns`. Another real number, in (0, 1], is a
    density, which means ``max(1, round(degree * n_columns))`` connections. So 1 means one
    connection, and 1.0 means all of them.

    Examples
    --------
    >>> [resolve_degree("in_degree", d, 50) for d in (1, 1.0, 0.1, 0.001, 80)]
    [1, 50, 5, 1, 50]
    """
    if isinstance(degree, (bool, np.bool_)) or not isinstance(degree, numbers.Real):
        raise TypeError(
            f"{name} must be an integer (connections per row) or a number in (0, 1] (density); "
            f"got {degree!r} of type {type(degree).__name__}."
        )
    if isinstance(degree, numbers.Integral):
        return min(check_count(name, degree), n_columns)
    # a density; if it exceeds 1, the number of connections was probably meant
    density = float(degree)
    if 1.0 < density < np.inf:
        raise ValueError(
            f"{name}={degree} as a real number is a density and must be in (0, 1]. Use an "
            f"integer, {name}={round(density)}, for that many connections per row."
        )
    check_number(name, density, low=0.0, high=1.0, low_open=True)
    return min(n_columns, max(1, round(density * n_columns)))


def distinct_columns(
    n_rows: int, n_columns: int, degree: int, generator: np.random.Generator
) -> Array:
    """Return `degree` different columns for each row, drawn uniformly at random and sorted.

    The result is (n_rows, degree), int32; every set of columns is equally likely. If rows are
    sparse, the memory needed is proportional to ``n_rows * degree``.
    """
    if degree >= n_columns:
        return np.tile(np.arange(n_columns, dtype=np.int32), (n_rows, 1))
    if 8 * degree > n_columns:
        return _by_keys(n_rows, n_columns, degree, generator)
    columns = generator.integers(0, n_columns, (n_rows, degree), dtype=np.int32)
    return fill_distinct(columns, np.zeros_like(columns, dtype=bool), n_columns, generator)


def heads_of_lines(n_units: int, n_lines: int) -> Array:
    """Return the unit at which each of several delay lines begins."""
    return np.arange(n_lines) * n_units // n_lines


def fill_distinct(
    columns: Array, fixed: Array, n_columns: int, generator: np.random.Generator
) -> Array:
    """Replace duplicates within rows by new draws until each row's entries are distinct.

    `columns`, (n_rows, degree), are from 0 to ``n_columns - 1``, `fixed` marks entries to keep,
    which are distinct within rows. Return int32 columns, sorted within rows. As duplicates are
    redrawn, not whole rows, the first distinct values are a uniform sample without replacement. A
    few rounds suffice if `degree` is at most an eighth of `n_columns`.
    """
    # sorting makes duplicates neighbours; the last bit is 1 for entries that may be redrawn
    codes = 2 * columns.astype(np.int64) + ~fixed  # a fixed entry comes before its duplicate
    codes.sort(axis=1)
    pending = np.arange(len(codes))
    while pending.size:
        rows = codes[pending]
        again = np.zeros(rows.shape, dtype=bool)
        again[:, 1:] = rows[:, 1:] // 2 == rows[:, :-1] // 2
        hit = again.any(axis=1)
        pending, rows, again = pending[hit], rows[hit], again[hit]
        rows[again] = 2 * generator.integers(0, n_columns, np.count_nonzero(again)) + 1
        rows.sort(axis=1)
        codes[pending] = rows
    return (codes // 2).astype(np.int32)


def _by_keys(n_rows: int, n_columns: int, degree: int, generator: np.random.Generator) -> Array:
    """Return `degree` different columns for each row, like `distinct_columns`, for dense rows.

    Every column of a row gets a random key, and the columns with the smallest keys are chosen.
    """
    # in blocks of rows, because there are n_columns keys per row
    out = np.empty((n_rows, degree), dtype=np.int32)
    step = max(1, _BLOCK_ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        keys = generator.random((min(step, n_rows - start), n_columns))
        out[start : start + step] = np.argpartition(keys, degree - 1, axis=1)[:, :degree]
    out.sort(axis=1)
    return out
