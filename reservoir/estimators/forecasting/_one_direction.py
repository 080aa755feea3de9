"""Gaps filled in one direction of time: a model runs into each from the rows before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from reservoir._typing import Array
from reservoir.dynamics.fed_back import changed
from reservoir.estimators._progress import widened
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.loop_trials import run_trials

_N_PLACES = 16  # loops by which each direction is judged
_SETTLED = 30  # rows that a loop hears before it is judged
_LOST = 1e100  # squared error of a loop that has diverged


class OneDirection(NamedTuple):
    """A model that is to fill gaps in one direction, where it learns, and what it is judged by.

    `n_judged` is the length of the loops by which errors are measured; 0 for none.
    """

    model: Any
    stretches: list[slice]
    clip: Any
    hold: Callable[[Array], Array]
    n_context: int
    n_judged: int

    def reversed(self, n_rows: int) -> OneDirection:
        """Return the task for rows in reverse order."""
        return self._replace(stretches=[mirrored(s, n_rows) for s in reversed(self.stretches)])

    def filled(
        self, rows: Array, known: Array | None, missing: Array
    ) -> tuple[Array, Array | None]:
        """Fill every gap in the order of the rows.

        Returns
        -------
        rows : array of shape (n_samples,) or (n_samples, n_outputs)
            NaN where nothing is before a gap.
        errors : array of shape (n_judged,) or (n_judged, n_outputs), or None
            Mean squares after so many steps.
        """
        pairs = [_pairs(rows[s], None if known is None else known[s]) for s in self.stretches]
        X, y = [X for X, _ in pairs], [y for _, y in pairs]
        fitted = clone(self.model).fit(X, y)
        rows = rows.copy()
        first = int(np.argmin(missing))  # nothing is before a gap at the beginning
        for gap in runs_of(missing):
            if gap.start < first:
                continue
            window = slice(max(first, gap.start - self.n_context), gap.stop)
            place = slice(gap.start - window.start, gap.stop - window.start)
            seen = None if known is None else known[window]
            rows[gap] = self.hold(run_into(fitted, rows[window], seen, place, self.clip))
        return rows, self._errors(fitted, X, y)

    def _errors(self, fitted: Any, X: list[Array], y: list[Array]) -> Array | None:
        """Return mean squares of loops within the stretches; None if there is no room for any."""
        n_steps = self.n_judged
        places = [(i, t) for i, rows in enumerate(y) for t in range(_SETTLED, len(rows) - n_steps)]
        if not n_steps or not places:
            return None
        picked = np.unique(np.linspace(0, len(places) - 1, _N_PLACES).astype(int))
        places = [places[k] for k in picked]
        said = run_trials(fitted, X, y, places, n_steps, clip=self.clip)
        assert said is not None
        truth = np.stack([y[i][t : t + n_steps] for i, t in places], axis=1)
        with np.errstate(over="ignore"):
            squares = (said[:, 0].reshape(truth.shape) - truth) ** 2
        # what was lost counts as very wrong, and errors do not become smaller again
        squares = np.where(squares < _LOST, squares, _LOST)
        return np.maximum.accumulate(squares.mean(axis=1), axis=0)


def run_into(model: Any, rows: Array, known: Array | None, gap: slice, clip: Any) -> Array:
    """Return what a model makes of a gap, from the rows before it."""
    n_steps = gap.stop - gap.start
    before = rows[: gap.start].reshape(gap.start, -1)
    if known is None:
        return forecast(model, n_steps, context=before, clip=clip)
    context = np.hstack([before, known[1 : gap.start + 1]])
    exog = known[gap.start + 1 : gap.stop]
    return forecast(model, n_steps, context=context, exog=exog, clip=clip)


def _pairs(rows: Array, known: Array | None) -> tuple[Array, Array]:
    """Return inputs and targets one step ahead, of one stretch."""
    X = rows[:-1].reshape(len(rows) - 1, -1)
    return (X if known is None else np.hstack([X, known[1:]])), rows[1:]


def hold_of(clip: Any, known: Array) -> Callable[[Array], Array]:
    """Return what makes of the rows of a loop those that are filled in."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return lambda rows: rows
    if callable(clip):
        return lambda rows: np.array([changed(clip, np.atleast_1d(row)) for row in rows]).reshape(
            rows.shape
        )
    if isinstance(clip, (bool, np.bool_)):
        clip = widened(np.array([known.min(axis=0), known.max(axis=0)]))
    return lambda rows: np.clip(rows, *clip)


def runs_of(mask: Array) -> Iterator[slice]:
    """Yield the places of consecutive rows that are True."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    for start, stop in edges.reshape(-1, 2):
        yield slice(int(start), int(stop))


def mirrored(place: slice, n_rows: int) -> slice:
    """Return where rows are when all are taken in reverse order."""
    return slice(n_rows - place.stop, n_rows - place.start)
