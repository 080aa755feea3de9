"""Check parameters: numbers, names, switches, random states, the washout; those that are fixed."""

from __future__ import annotations

import copy
import difflib
import inspect
import math
import numbers
import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, RandomState
from reservoir._validation.memory import check_fits
from reservoir._validation.plain import as_array, check_unmasked
from reservoir._workers import digest_of


class SumError(ValueError):
    """Error raised for a column whose sum of squares is not finite.

    `of` is its matrix: "H", the features, or "Y", the targets; `column` is its number.
    """

    of = ""
    column = 0


_BETWEEN = ("reservoir.", "sklearn.", "joblib.")  # modules between the user's line and a warning


def check_count(name: str, value: Any, *, minimum: int = 1, size: float = 0) -> int:
    """Return `value` as an int; raise unless it is an integer of at least `minimum`.

    `size` is the least number of doubles in memory for each of the things counted: NotEnoughMemory
    is raised if there is no memory for them.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} of type {type(value).__name__}.")
    if value < minimum:
        raise ValueError(f"{name}={value} must be at least {minimum}.")
    if size:
        check_fits(name, value, 8.0 * int(value) * size)
    return int(value)


def check_instance(name: str, value: Any, *, called: bool = False) -> None:
    """Raise if `value` is a class where an object is needed; classes of numbers are dtypes.

    If `called` is True, also raise if it is a function, which should have been called. Lists whose
    rows have different lengths raise as well.
    """
    if isinstance(value, (list, tuple)):
        as_array(name, value)
    is_class = isinstance(value, type) and not issubclass(value, (np.generic, float, int))
    if not is_class and not (called and inspect.isroutine(value)):
        return
    kind = "class" if isinstance(value, type) else "function"
    raise TypeError(
        f"{name} is the {kind} {value.__name__}, but an object is needed. Call it, with its "
        "arguments in brackets."
    )


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Return `value` as a float; raise unless it is a finite number from `low` to `high`.

    Booleans are not numbers here. `low_open` and `high_open` exclude the bounds themselves.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}.")
    number = _as_float(value)
    inside = (number > low if low_open else number >= low) and (
        number < high if high_open else number <= high
    )
    if not inside or not math.isfinite(number):
        left = "(" if low_open or np.isinf(low) else "["
        right = ")" if high_open or np.isinf(high) else "]"
        raise ValueError(f"{name}={value} must be finite and in {left}{low:g}, {high:g}{right}.")
    return number


def check_switch(name: str, value: Any) -> None:
    """Check that `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}.")


def check_numbers(name: str, value: Any, *, kinds: str = "iuf") -> Array:
    """Return a number or an array of numbers as a float64 array.

    `kinds` are the allowed values of ``dtype.kind``. Strings, booleans and objects, which NumPy
    would silently convert to numbers, raise an error.
    """
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        return np.array(_as_float(value))
    check_unmasked(name, value)
    given = as_array(name, value)
    if given.dtype.kind in kinds:
        return given.astype(np.float64)
    if given.ndim == 0:
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}.")
    raise TypeError(
        f"{name} must contain numbers; got an array of dtype {given.dtype} and shape {given.shape}."
    )


def check_scaling(name: str, value: Any, n_columns: int, column: str = "feature") -> Array:
    """Return non-negative factors, one per column, as an array of shape (n_columns,).

    A single number is used for every column. `column` is what the message calls a column, such as
    "row" or "block".
    """
    factors = check_numbers(name, value)
    if factors.ndim == 0:
        return np.full(n_columns, check_number(name, float(factors), low=0.0))
    if factors.shape != (n_columns,):
        raise ValueError(
            f"{name} must be a number or have shape ({n_columns},), one factor per {column}; "
            f"got shape {factors.shape}."
        )
    if not np.all(np.isfinite(factors) & (factors >= 0)):
        raise ValueError(f"{name}={value!r} must be finite and not negative.")
    return factors


def check_penalties(name: str, value: Any) -> Array:
    """Return penalties as a float64 array; raise if one is negative or not finite."""
    several = isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "to_numpy")
    if several or (isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))):
        penalties = check_numbers(name, value)
        if np.isfinite(penalties).all() and (penalties >= 0).all():
            return penalties
    raise ValueError(f"{name}={value!r} must be finite and at least 0.")


def check_n_jobs(n_jobs: Any) -> None:
    """Check that `n_jobs` is valid for joblib: None, or an integer other than 0."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, (bool, np.bool_)) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(
            f"n_jobs must be an integer or None; got {n_jobs!r} of type {type(n_jobs).__name__}. "
            "-1 uses all processors."
        )
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no workers. Use 1 or more, or -1 for all processors.")


def _as_float(value: Any) -> float:
    """Return a number as a float; infinity for integers beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats
        return np.inf


def check_choice(name: str, value: Any, known: Collection[str]) -> str:
    """Return `value` if it is in `known`; otherwise raise an error that lists similar names."""
    if isinstance(value, str) and value in known:
        return value
    listed = ", ".join(repr(k) for k in sorted(known))
    close = difflib.get_close_matches(value, list(known), n=3) if isinstance(value, str) else []
    hint = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    raise ValueError(f"{name}={value!r} is not known.{hint} Known: {listed}.")


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a `numpy.random.Generator` for one call of a public function.

    An int or None is the seed of `numpy.random.default_rng`. From a `RandomState` one integer is
    drawn as the seed. From a `Generator` a child is spawned, so that the caller's stream of random
    numbers does not advance.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state.spawn(1)[0]
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise TypeError(
            "random_state must be None, an int, a numpy.random.Generator or a "
            f"numpy.random.RandomState; got {random_state!r}."
        )
    if random_state < 0:
        raise ValueError(f"random_state={random_state} must be at least 0.")
    return np.random.default_rng(int(random_state))


def caller_level() -> int:
    """Return the `stacklevel` that makes a warning point to the user's line of code.

    This is the innermost line outside this package, scikit-learn and joblib; in pipelines and
    searches it is these two that call the package.
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    return level


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


_LONGEST = 60  # characters of a value in a message


def fixed_parameters(estimator: Any, since: str = "fit") -> dict[str, Any]:
    """Return the parameters of an estimator that are fixed since a call, by name.

    Each field of the estimator, a dataclass, has an entry "fixed" in its metadata. Arrays and lists
    are copied.
    """
    return {
        each.name: _copied(getattr(estimator, each.name))
        for each in fields(estimator)
        if each.metadata["fixed"] == since
    }


def check_fixed(estimator: Any, before: Mapping[str, Any]) -> None:
    """Raise if a parameter is not what it was when `fixed_parameters` returned `before`."""
    for name, value in before.items():
        check_unchanged(name, getattr(estimator, name, value), value)


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, (np.ndarray, list, dict)) else value


def check_unchanged(name: str, now: Any, before: Any) -> None:
    """Raise if the value of a parameter differs from the one that the model was made with."""
    if not is_same(now, before):
        raise ValueError(
            f"{name}={_shown(now)}, but the model was fitted with {name}={_shown(before)}, which "
            "later rows cannot change. Set it back, or call fit."
        )


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter mean the same: numbers, arrays and objects by value.

    Whole numbers differ from floats: a count and a share are different parameters. Functions
    without a name, and generators that have been used, are the same only if they are one object.
    """
    if one is other:
        return True
    if sp.issparse(one) or sp.issparse(other):
        both = sp.issparse(one) and sp.issparse(other) and one.shape == other.shape
        return both and (one != other).nnz == 0
    if any(isinstance(each, (type, np.dtype)) for each in (one, other)):
        return _is_same_dtype(one, other)
    now, before = _as_numbers(one), _as_numbers(other)
    if now is not None and before is not None:
        kind = now.dtype.kind
        return kind == before.dtype.kind and np.array_equal(now, before, equal_nan=kind == "f")
    try:
        return digest_of(_plain(one)) == digest_of(_plain(other))
    except (pickle.PicklingError, AttributeError, TypeError):  # a lambda, a local class
        return False


def _is_same_dtype(one: Any, other: Any) -> bool:
    try:
        return np.dtype(one) == np.dtype(other)
    except TypeError:
        return False


def _as_numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """Return numbers as an array; None for anything else."""
    if value is None or isinstance(value, (str, dict, set)) or callable(value):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _plain(value: Any) -> Any:
    """Return a frozen distribution of scipy.stats as its name and arguments; others unchanged."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # it holds a generator of numbers
        return type(value.dist), value.args, value.kwds
    return value


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
