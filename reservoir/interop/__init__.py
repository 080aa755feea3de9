"""Other libraries: adapters to aeon and sktime, and the types that skops must trust.

aeon and sktime are not imported before their function is called, and skops is never imported.
"""

from reservoir.interop._adapting import as_aeon, as_sktime
from reservoir.interop._skops import skops_types

__all__ = ["as_aeon", "as_sktime", "skops_types"]
