"""Errors and climates of forecasts, scores of anomalies, memory and states of a reservoir."""

from __future__ import annotations

from reservoir.metrics._anomalies import anomaly_scores
from reservoir.metrics._capacity import generalization_rank, kernel_rank, memory_capacity
from reservoir.metrics._climate import power_spectrum_distance, sliced_wasserstein
from reservoir.metrics._errors import nrmse, valid_time
from reservoir.metrics._forecast_errors import coverage, mase, pinball, rmsse, smape

__all__ = [
    "anomaly_scores",
    "coverage",
    "generalization_rank",
    "kernel_rank",
    "mase",
    "memory_capacity",
    "nrmse",
    "pinball",
    "power_spectrum_distance",
    "rmsse",
    "sliced_wasserstein",
    "smape",
    "valid_time",
]
