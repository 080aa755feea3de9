"""Scores of predictions that keep up with a stream: old rows fade."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array


class RunningScore(ABC):
    """A score over all rows so far, the weights of earlier ones multiplied by a factor for each.

    Parameters
    ----------
    forgetting : float in (0, 1]

    Attributes
    ----------
    n_rows : int
        Rows scored.
    """

    what = ""  # the score's name, for messages

    def __init__(self, forgetting: float) -> None:
        self.forgetting = forgetting
        self.n_rows = 0
        self.total = 0.0  # sum of the weights

    @abstractmethod
    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return the error of each row, as users are shown it."""

    def add(self, truth: Array, predicted: Array, weights: Array | None) -> None:
        """Add rows, in order; their weights are positive."""
        ages = self.forgetting ** np.arange(len(truth) - 1, -1, -1.0)
        before = self.total * self.forgetting ** len(truth)
        w = ages if weights is None else ages * weights
        self._add(truth, predicted, w, before)
        self.total = before + float(w.sum())
        self.n_rows += len(truth)

    @abstractmethod
    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        """Add rows of these weights, where `before` is left of the weights of the others."""

    @abstractmethod
    def value(self) -> float | None:
        """Return the score; None where nothing can be told yet."""


@saved
class RunningR2(RunningScore):
    """R^2, the mean over outputs, as `sklearn.metrics.r2_score` has it."""

    what = "R^2"
    mean: Any = 0.0
    spread: Any = 0.0  # sum of squares of the targets about their mean
    squares: Any = 0.0  # sum of squared errors

    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return targets less predictions."""
        return truth - predicted

    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        truth, predicted = (np.reshape(each, (len(each), -1)) for each in (truth, predicted))
        added = float(weights.sum())
        mean = weights @ truth / added
        apart, errors = truth - mean, truth - predicted
        total = before + added
        left = before / self.total if self.total else 0.0
        shift = mean - self.mean
        self.spread = left * self.spread + weights @ apart**2 + shift**2 * (before * added / total)
        self.squares = left * self.squares + weights @ errors**2
        self.mean = self.mean + shift * (added / total)

    def value(self) -> float | None:
        """Return the score; None before the second row."""
        if self.n_rows < 2:
            return None
        varies = self.spread > 0
        shares = np.divide(self.squares, self.spread, where=varies, out=np.ones(len(self.squares)))
        # of a constant, right or wrong is all that can be said
        shares[~varies & (self.squares == 0)] = 0.0
        return float(np.mean(1.0 - shares))


@saved
class RunningAccuracy(RunningScore):
    """The share of labels that were right."""

    what = "accuracy"
    right = 0.0

    def errors(self, truth: Array, predicted: Array) -> Array:
        """Return 1 where a label was wrong, else 0."""
        return (truth != predicted).astype(np.float64)

    def _add(self, truth: Array, predicted: Array, weights: Array, before: float) -> None:
        left = before / self.total if self.total else 0.0
        self.right = left * self.right + float(weights @ (truth == predicted))

    def value(self) -> float | None:
        """Return the score; None before the first row."""
        return self.right / self.total if self.n_rows else None
