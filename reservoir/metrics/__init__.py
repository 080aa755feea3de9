"""Errors of forecasts, and measures of a reservoir's memory and of the rank of its states."""

from __future__ import annotations

from reservoir.metrics._capacity import generalization_rank, kernel_rank, memory_capacity
from reservoir.metrics._errors import nrmse, valid_time

__all__ = ["generalization_rank", "kernel_rank", "memory_capacity", "nrmse", "valid_time"]
