"""A linear readout that was learned in the closed loop: its coefficients alone are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from reservoir._saving import saved
from reservoir._validation import code
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

    def check_takes_more_rows(self) -> NoReturn:
        """Refuse rows that are learned from by teacher forcing."""
        raise ValueError(
            "This network was trained by force_train, on its own outputs; partial_fit and "
            "session.learn feed back the targets, and know none of its rows. Go on with "
            f"{code('reservoir.force_train(model, y)')}, or use fit."
        )

    def row_learner(self, model: Any) -> NoReturn:
        """Refuse sessions that learn, as chunks are refused."""
        self.check_takes_more_rows()

    def linear_path(self, alphas: Sequence[float], *, fit_intercept: bool, dtype: Any) -> None:
        """Return None: what other penalties lead to is not known."""
