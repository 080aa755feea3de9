"""The QR method: orthonormal directions carried along a trajectory, and their rates of growth."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number, room_for

_LONGEST = 5  # most steps between two QR factorisations
_APART = float(np.log(1e6))  # by how much directions may grow apart between two of them
_LOST = 4 * float(np.finfo(float).eps)  # smaller factors, relative to the largest, are rounding


class Basis:
    """Orthonormal directions, and the sums of the logarithms of the factors by which they grew.

    `directions`, (size, n_kept), are those that are not lost; `random_state` draws the first
    `n_exponents`.
    """

    def __init__(self, size: int, n_exponents: int, random_state: RandomState) -> None:
        normal = as_generator(random_state).standard_normal((size, n_exponents))
        self.n_exponents, self.directions = n_exponents, np.linalg.qr(normal)[0]
        self._sums = np.zeros(n_exponents)

    def renew(self, moved: Array, *, counted: bool = True) -> Array:
        """Make the moved directions orthonormal again, and return the factors of their growth."""
        self.directions, factors, kept = _orthonormal(moved)
        self._sums = self._sums[kept]
        if counted:
            self._sums = self._sums + np.log(factors)
        return factors

    def exponents(self, duration: float) -> Array:
        """Return the exponents, descending; those of lost directions are -inf."""
        exponents = np.full(self.n_exponents, -np.inf)
        exponents[: len(self._sums)] = np.sort(self._sums / duration)[::-1]
        return exponents


class Lengths(NamedTuple):
    """Checked lengths of a measurement: exponents, counted and uncounted steps, time per step."""

    n_exponents: int
    n_steps: int
    washout: int
    dt: float

    @classmethod
    def read(cls, size: int, n_exponents: int, n_steps: int, washout: int, dt: float) -> Lengths:
        """Check the arguments of a function that measures exponents of a map of `size` numbers."""
        k = check_count("n_exponents", n_exponents)
        if k > size:
            raise ValueError(
                f"n_exponents={k} must be at most {size}, the number of variables. Lower it."
            )
        n_steps = check_count("n_steps", n_steps)
        washout = check_count("washout", washout, minimum=0)
        return cls(k, n_steps, washout, check_number("dt", dt, low=0.0, low_open=True))


def exponents_along(
    advance: Callable[[Array, Array], tuple[Array, Array]],
    point: Array,
    lengths: Lengths,
    random_state: RandomState,
    *,
    remedy: str = "Start from another point, or take shorter steps.",
) -> Array:
    """Return the exponents of a map per unit of time; raise ValueError if its orbit diverges.

    `advance` maps a point and directions, of shapes (size,) and (size, n), to those after a step.
    `remedy` is the advice for an orbit that diverges.
    """
    what = (
        f"Directions of {point.size} x n_exponents = {point.size} x {lengths.n_exponents} numbers"
    )
    with room_for(
        f"{what}, 3 at a time,", 24.0 * point.size * lengths.n_exponents, "Lower n_exponents."
    ):
        basis = Basis(point.size, lengths.n_exponents, random_state)
    moved, age, due = basis.directions, 0, 1
    n_all = lengths.washout + lengths.n_steps
    for t in range(n_all):
        with np.errstate(over="ignore", invalid="ignore"):
            point, moved = advance(point, moved)
            diverged = not np.dot(point, point) < np.inf
        if diverged:
            raise ValueError(
                f"The trajectory diverged at step {t}: its values exceed 1e154, so that it has no "
                f"exponents. {remedy}"
            )
        age += 1
        if age == due or t + 1 in (lengths.washout, n_all):
            n_before = moved.shape[1]
            factors = basis.renew(moved, counted=t >= lengths.washout)
            moved, due = basis.directions, _steps_until_due(factors, age)
            due, age = due if len(factors) == n_before else 1, 0
            if not len(factors):
                break
    return basis.exponents(lengths.n_steps * lengths.dt)


def _steps_until_due(factors: Array, age: int) -> int:
    """Return the steps to the next factorisation, from the factors of the growth in `age` steps."""
    if len(factors) < 2:
        return _LONGEST
    apart = np.log(factors.max()) - np.log(factors.min())
    return int(np.clip(_APART * age / max(apart, 1e-9), 1, _LONGEST))


def _orthonormal(V: Array) -> tuple[Array, Array, Array]:
    """Return an orthonormal basis of the columns of V, its factors, and the indices it keeps.

    The factors are the absolute values of the diagonal of R in the QR factorisation. A column that
    is, to rounding, a combination of the columns before it has lost its direction and is dropped.
    """
    kept = np.arange(V.shape[1])
    size = np.abs(V).max()
    if size == 0:
        return V[:, :0], np.empty(0), kept[:0]
    V = V / size  # squares must not underflow
    if V.shape[1] == 1:
        norm = np.linalg.norm(V)
        return V / norm, np.array([size * norm]), kept
    while True:
        Q, R = np.linalg.qr(V)
        factors = np.abs(np.diag(R))
        lost = factors <= _LOST * np.linalg.norm(V, axis=0).max()
        if not lost.any():
            return Q, factors * size, kept
        first = int(np.argmax(lost))
        V, kept = np.delete(V, first, axis=1), np.delete(kept, first)
