"""Estimators of whole sequences as those of aeon and of sktime, and forecasters as sktime's.

Neither library is imported before one of these functions is called.
"""

from reservoir.interop._adapting import as_aeon, as_sktime

__all__ = ["as_aeon", "as_sktime"]
