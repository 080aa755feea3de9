"""Other libraries: adapters to aeon and sktime, the types that skops must trust, parts of a fit.

aeon and sktime are not imported before their function is called, and skops is never imported.
`plan_parts` cuts one fit into parts for any engine that runs functions on other machines.
"""

from reservoir.estimators.esn import PartPlan, plan_parts
from reservoir.interop import _dask as _registers_its_tables  # noqa: F401
from reservoir.interop._adapting import as_aeon, as_sktime
from reservoir.interop._skops import skops_types

__all__ = ["PartPlan", "as_aeon", "as_sktime", "plan_parts", "skops_types"]
