"""Features that a readout receives instead of the states: squares or a function of the states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_choice

Function = Callable[[Array], Array]
_TOLERANCE = 1e-3  # relative to the largest result: smaller differences are rounding errors


class Squares(NamedTuple):
    """An entry of `AUGMENTS`: features, in the order of the units, of states and their squares.

    ``width(n_units)`` is their number; ``write(states, place)`` fills `place`, (n_rows, width).
    ``split(coef, n_units)`` splits weights, (n_outputs, width), into those of states and of
    squares, (n_outputs, n_units) each, for compiled closed loops. ``slopes(state)``, (width,), are
    derivatives by the unit that each feature comes from.
    """

    width: Callable[[int], int]
    write: Callable[[Array, Array], None]
    split: Callable[[Array, int], tuple[Array, Array]]
    slopes: Callable[[Array], Array]


def _write_square(states: Array, place: Array) -> None:
    n_units = states.shape[1]
    place[:, :n_units] = states
    np.multiply(states, states, out=place[:, n_units:])


def _split_square(coef: Array, n_units: int) -> tuple[Array, Array]:
    return coef[:, :n_units], coef[:, n_units:]


def _write_even_square(states: Array, place: Array) -> None:
    even = states[:, ::2]
    place[:] = states
    np.multiply(even, even, out=place[:, ::2])


def _split_even_square(coef: Array, n_units: int) -> tuple[Array, Array]:
    even = np.arange(n_units) % 2 == 0
    return np.where(even, 0, coef), np.where(even, coef, 0)


def _slopes_of_square(state: Array) -> Array:
    return np.concatenate([np.ones_like(state), 2 * state])


def _slopes_of_even_square(state: Array) -> Array:
    slopes = np.ones_like(state)
    slopes[::2] = 2 * state[::2]
    return slopes


#: Value of the parameter `augment` -> features that the readout receives.
AUGMENTS: dict[str, Squares] = {
    "square": Squares(lambda n_units: 2 * n_units, _write_square, _split_square, _slopes_of_square),
    "even_square": Squares(
        lambda n_units: n_units, _write_even_square, _split_even_square, _slopes_of_even_square
    ),
}


def check_augment(augment: Any) -> None:
    """Raise if the parameter `augment` is invalid."""
    if augment is None or callable(augment):
        return
    if not isinstance(augment, str):
        raise TypeError(
            f"augment={augment!r} must be None, a name ({', '.join(AUGMENTS)}) or a function of "
            "states of shape (n_rows, n_units)."
        )
    check_choice("augment", augment, AUGMENTS)


def augmented_width(augment: Any, states: Array, *, check: bool = True) -> int:
    """Return the number of features that `augment` computes from the states of the units.

    If `augment` is a function, it is called on `states`, a few example rows. Its result must have
    one row per row of states; with `check`, the result must also be finite, and none of its rows
    may depend on the other rows of states.
    """
    n_units = states.shape[1]
    if augment is None:
        return n_units
    check_augment(augment)
    if isinstance(augment, str):
        return AUGMENTS[augment].width(n_units)
    together = _called(augment, states, None, check=check)
    if not check:
        return together.shape[1]
    alone = np.concatenate([_called(augment, row[None], together.shape[1]) for row in states])
    far = np.abs(together - alone).max(initial=0.0)
    if far > _TOLERANCE * np.abs(together).max(initial=0.0):
        raise ValueError(
            f"augment={augment!r} must map each row of states independently, because closed loops "
            f"pass one row at a time: its result for {len(states)} rows differs by {far:.3g} from "
            "its results for the same rows one by one."
        )
    return together.shape[1]


def write_augmented(augment: Any, states: Array, place: Array, *, check: bool = True) -> None:
    """Write the features of states, (n_rows, n_units), into `place`, (n_rows, width).

    With `check`, raise if `augment` is a function that returns values that are not finite. Closed
    loops omit this check: when a loop diverges, the function is not the cause.
    """
    if isinstance(augment, str):
        with np.errstate(over="ignore", invalid="ignore"):
            AUGMENTS[augment].write(states, place)
        return
    place[:] = _called(augment, states, place.shape[1], check=check)


def augmented_differences(augment: Any, states: Array) -> Array:
    """Return the features of a state, the first row, and of its differences, the other rows."""
    if callable(augment):
        raise ValueError(
            f"augment={augment!r} is a function, whose derivative is not known, and exponents need "
            f"it. Use one of {', '.join(map(repr, AUGMENTS))}."
        )
    entry, n_units = AUGMENTS[augment], states.shape[1]
    features = np.tile(states, entry.width(n_units) // n_units) * entry.slopes(states[0])
    entry.write(states[:1], features[:1])
    return features


def split_augmented(augment: Any, coef: Array, n_units: int) -> tuple[Array, Array | None]:
    """Split a readout's weights for kernels: weights of states and inputs, and weights of squares.

    `coef` has shape (n_outputs, width [+ n_features]). The second result has shape
    (n_outputs, n_units); it is None if `augment` is None.
    """
    if augment is None:
        return coef, None
    entry = AUGMENTS[augment]
    width = entry.width(n_units)
    linear, squares = entry.split(coef[:, :width], n_units)
    return np.hstack([linear, coef[:, width:]]), squares


def _called(
    function: Function, states: Array, n_columns: int | None, *, check: bool = True
) -> Array:
    """Return ``function(states)`` after checks; if `n_columns` is None, any width is allowed."""
    given = np.asarray(function(states))
    shape = (len(states), "any number" if n_columns is None else n_columns)
    fits = given.ndim == 2 and len(given) == len(states) and given.shape[1] > 0
    if not fits or n_columns not in (None, given.shape[1]):
        raise ValueError(
            f"augment={function!r} must return shape ({shape[0]}, {shape[1]}) for states of shape "
            f"{states.shape}; got {given.shape}."
        )
    if given.dtype.kind not in "fiub":
        raise TypeError(f"augment={function!r} must return real numbers; got dtype {given.dtype}.")
    if check and not np.isfinite(given).all():
        raise ValueError(
            f"augment={function!r} returned NaN or infinity. Its result must be finite for all "
            "states of the reservoir."
        )
    return given
