"""Model selection for series: splits, scores, containers and transformers that respect time.

For one series, `sklearn.model_selection.TimeSeriesSplit` with the estimators' default
``initial_state="last"`` scores forecasts: each test block follows its training rows. For estimators
that start each prediction from zeros, `ContextSplit` adds the rows before each test block to it,
and `washout_scorer` leaves them out of the score. For several sequences, `stack_sequences` makes
one table with an id column, which works with Pipeline, cross-validation, search and every scorer.
For models that are to run on their own outputs, `ClosedLoopSearchCV` chooses by closed loops, and
`forecast_scorer` lets scikit-learn's searches do so. `backtest` says how well a model forecasts,
from several origins within a series. Of whole sequences, `channel_importance` says which channels
decide.
"""

from __future__ import annotations

from reservoir.model_selection._backtest import BacktestResult, backtest
from reservoir.model_selection._channel_importance import ChannelImportance, channel_importance
from reservoir.model_selection._closed_loop_search import ClosedLoopSearchCV
from reservoir.model_selection._containers import from_channels_first, stack_sequences
from reservoir.model_selection._context_split import ContextSplit
from reservoir.model_selection._forecast_pairs import make_forecast_pairs
from reservoir.model_selection._loop_scoring import forecast_scorer
from reservoir.model_selection._per_step import PerStep
from reservoir.model_selection._scoring import washout_scorer

__all__ = [
    "BacktestResult",
    "ChannelImportance",
    "ClosedLoopSearchCV",
    "ContextSplit",
    "PerStep",
    "backtest",
    "channel_importance",
    "forecast_scorer",
    "from_channels_first",
    "make_forecast_pairs",
    "stack_sequences",
    "washout_scorer",
]
