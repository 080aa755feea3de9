"""A linear readout trained in the closed loop; only its coefficients are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from reservoir._saving import saved
from reservoir.readouts.ridge import RidgeReadout


@saved
class LoopTrainedReadout(RidgeReadout):
    """Coefficients that were fitted to rows produced by the network in the closed loop.

    No sums over rows are stored: further rows or another penalty would require a new closed loop.
    """

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Return False: the parameter `readout` never selects this class."""
        return False

    def check_takes_more_rows(self) -> NoReturn:
        """Raise an error, as rows from teacher forcing cannot be added."""
        raise ValueError(
            "This network was trained by force_train, in the closed loop; partial_fit and "
            "session.learn are teacher-forced and cannot continue from it. Continue with "
            "`reservoir.force_train(model, y)`, or use fit."
        )

    def row_learner(self, model: Any) -> NoReturn:
        """Raise an error, as rows of a session cannot be added."""
        self.check_takes_more_rows()

    def linear_path(
        self, alphas: Sequence[float], *, model: Any, fit_intercept: bool, dtype: Any
    ) -> None:
        """Return None: the coefficients under other penalties are unknown."""
