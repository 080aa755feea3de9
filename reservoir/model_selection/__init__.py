"""Model selection for time series: splits, scorers, containers and transformers.

For one series, `sklearn.model_selection.TimeSeriesSplit` with the estimators' default
``initial_state="last"`` scores forecasts: each test block follows its training rows. For estimators
that start each prediction from zeros, `ContextSplit` adds the preceding rows to each test block,
and `washout_scorer` excludes them from the score. For several sequences, `stack_sequences` makes
one table with an id column, which works with Pipeline, cross-validation, search and every scorer.
For models that will run in closed loop, `ClosedLoopSearchCV` selects a candidate by its closed-loop
forecasts, and `forecast_scorer` scores such forecasts in scikit-learn's searches. `backtest`
measures how well a model forecasts from several origins within a series. For estimators of whole
sequences, `channel_importance` measures how much each channel matters.
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
