"""Model selection for series: splits, scores, containers and transformers that respect time.

For one series, `sklearn.model_selection.TimeSeriesSplit` with the estimators' default
``initial_state="last"`` scores what a forecaster means. For estimators that start each prediction
from zeros, `ContextSplit` plays some rows before each test block, and `washout_scorer` leaves them
out of the score. For several sequences, `stack_sequences` makes one table with an id column, which
goes through Pipeline, cross-validation and search with every scorer.
"""

from __future__ import annotations

from reservoir.model_selection._containers import make_forecast_pairs, stack_sequences
from reservoir.model_selection._context import ContextSplit
from reservoir.model_selection._per_step import PerStep
from reservoir.model_selection._scoring import washout_scorer

__all__ = [
    "ContextSplit",
    "PerStep",
    "make_forecast_pairs",
    "stack_sequences",
    "washout_scorer",
]
