"""Adapters: sequence estimators for aeon and sktime, forecasters for sktime.

Neither library is imported before one of these functions is called.
"""

from reservoir.interop._adapting import as_aeon, as_sktime

__all__ = ["as_aeon", "as_sktime"]
