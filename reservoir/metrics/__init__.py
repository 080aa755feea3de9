"""Error measures of forecasts, and measures of a reservoir's memory and the rank of its states."""

from __future__ import annotations

from reservoir.metrics._capacity import generalization_rank, kernel_rank, memory_capacity
from reservoir.metrics._errors import nrmse, valid_time
from reservoir.metrics._forecast_errors import coverage, mase, pinball, rmsse, smape

__all__ = [
    "coverage",
    "generalization_rank",
    "kernel_rank",
    "mase",
    "memory_capacity",
    "nrmse",
    "pinball",
    "rmsse",
    "smape",
    "valid_time",
]
