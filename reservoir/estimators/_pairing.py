"""Whether y[t] is the next input: what a network that runs on its own outputs relies on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_CHUNK = 2**14  # rows that are compared at a time: no copy of a long series
_MAX_PAIRS = 64  # kept so that a pipeline's own scaling can be checked later


@saved
class Pairing:
    """Compares targets with the inputs one step later, sequence by sequence.

    Parameters
    ----------
    n_outputs : int
    feedback : bool
        With feedback weights outputs do not enter as inputs: nothing is compared.
    coded : bool, default=False
        Whether inputs are one column, the number of the output that is the largest.

    Attributes
    ----------
    problem : str or None
        Where y[t] first differs from X[t+1]; None if it never does.
    targets, inputs : arrays of shape (n_pairs, n_outputs) and (n_pairs, n_features)
        A sample of targets, each with the row of X one step later.
    """

    coded = False  # as in files of versions that did not know it

    def __init__(self, n_outputs: int, feedback: bool, coded: bool = False) -> None:
        n_outputs = 1 if coded else n_outputs
        self.n_outputs, self.coded = n_outputs, coded
        self.feedback = feedback
        self.problem: str | None = None
        self.targets = np.zeros((0, n_outputs))
        self.inputs = np.zeros((0, 0))

    def add(self, X: Array, Y: Array) -> None:
        """Compare one sequence with its targets."""
        self._compare(Y[:-1], X[1:], 0)

    def join(self, last_output: Array, x: Array) -> None:
        """Compare the last target of a chunk with the first row of the next."""
        self._compare(last_output[None], x[None], -1)

    def _compare(self, targets: Array, following: Array, first: int) -> None:
        if self.feedback or following.shape[1] < self.n_outputs:
            return
        if self.coded:
            missing = np.isnan(targets).any(axis=1)
            targets = np.where(missing, np.nan, np.argmax(targets, axis=1))[:, None]
        room = _MAX_PAIRS - len(self.targets)
        if room > 0 and len(targets):
            rows = np.unique(np.linspace(0, len(targets) - 1, room).astype(int))
            rows = rows[~np.isnan(targets[rows]).any(axis=1)]
            old = self.inputs if self.inputs.size else np.zeros((0, following.shape[1]))
            self.targets = np.concatenate([self.targets, targets[rows]])
            self.inputs = np.concatenate([old, following[rows].astype(np.float64)])
        if self.problem is not None:
            return
        shown = following[:, : self.n_outputs]
        with np.errstate(over="ignore", invalid="ignore"):
            # close against how much the column moves: a large offset must not hide a lag
            spread = shown.std(axis=0, dtype=np.float64) if len(shown) > 1 else 0.0
        for start in range(0, len(shown), _CHUNK):
            given, seen = targets[start : start + _CHUNK], shown[start : start + _CHUNK]
            same = _close(given, seen, spread)
            if not same.all():
                row, k = (int(i) for i in np.argwhere(~same)[0])
                t = start + row + first
                self.problem = (
                    f"y[{t}, {k}]={given[row, k]:.6g}, but X[{t + 1}, {k}]={seen[row, k]:.6g}"
                )
                return


def affine_pairs(arrays: Sequence[Array], targets: Sequence[Array]) -> tuple[Array, Array] | None:
    """Return scale and offset with y[t] == scale * X[t+1] + offset, (n_outputs,) each.

    So it is behind a scaler in a pipeline, which y does not pass through. None if y is nothing of
    the kind, or an output tells nothing of the input.

    Parameters
    ----------
    arrays : sequence of arrays of shape (n_samples, n_features)
    targets : sequence of arrays of shape (n_samples, n_outputs)
    """
    x = np.concatenate([X[1:, : targets[0].shape[1]] for X in arrays])
    y = np.concatenate([Y[:-1] for Y in targets])
    known = ~np.isnan(y).any(axis=1)
    x, y = x[known].astype(np.float64), y[known]
    if not len(y):
        return None
    dx, dy = x - x.mean(axis=0), y - y.mean(axis=0)
    square = (dx**2).mean(axis=0)
    scale = np.where(square > 0, (dx * dy).mean(axis=0) / np.where(square > 0, square, 1.0), 1.0)
    offset = y.mean(axis=0) - scale * x.mean(axis=0)
    shown = (scale * x + offset).astype(arrays[0].dtype)
    fits = scale.all() and _close(y, shown, y.std(axis=0)).all()
    return (scale, offset) if fits else None


def _close(targets: Array, shown: Array, spread: Array | float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        differences = np.abs(targets.astype(shown.dtype) - shown)
    near = 1e-6 * spread + 16 * np.finfo(shown.dtype).eps * np.abs(shown)
    return (differences <= near) | np.isnan(targets)
