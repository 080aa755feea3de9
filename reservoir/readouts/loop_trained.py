"""A linear readout that was learned in the closed loop: its coefficients alone are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reservoir._saving import saved
from reservoir.readouts.ridge import RidgeReadout


@saved
class LoopTrainedReadout(RidgeReadout):
    """Coefficients that belong to rows which the network itself has produced.

    No sums over rows are kept: other rows, or another penalty, would need another run of the loop.
    """

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Whether an estimator's parameter `readout` asks for this: never."""
        return False

    def linear_path(self, alphas: Sequence[float], *, fit_intercept: bool, dtype: Any) -> None:
        """Return None: what other penalties lead to is not known."""
