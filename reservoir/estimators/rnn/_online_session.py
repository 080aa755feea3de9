"""Learning in a session: all weights of a network go on, by the online learner of partial_fit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.estimators._session_learner import SessionLearner
from reservoir.estimators.rnn._missing_rows import check_values
from reservoir.estimators.rnn._network_parameters import WHOLE, name_of_solver
from reservoir.estimators.rnn._online_start import new_learner
from reservoir.training.online import OnlineLearner


@saved
class NetworkLearner(SessionLearner):
    """Learns all weights.

    Parameters
    ----------
    online : OnlineLearner
        This learner's own.
    """

    def __init__(self, online: OnlineLearner) -> None:
        self.online = online

    @classmethod
    def of(cls, model: Any) -> NetworkLearner:
        """Return what goes on from a fitted network."""
        check_online(model, "session.learn")
        online = model._online
        return cls(new_learner(model) if online is None else copy.deepcopy(online))

    def learn(
        self,
        model: Any,
        rows: Array,
        targets: Array,
        weights: Array | None,
        *,
        start: Array,
        skip: int,
        follows: bool,
    ) -> Array:
        """Go through the rows."""
        if weights is not None:
            raise TypeError(
                f"{type(model).__name__} does not take sample_weight in session.learn: its online "
                "learner weighs all rows alike. Leave it out, or use an echo state network."
            )
        check_values([rows], [targets], model.network_, model._dtype)
        model._learn_sequence(self.online, rows, targets, skip, None if follows else start)
        return self.online.state.copy()

    def settle(self, model: Any) -> None:
        """Set the weights."""
        model.params_ = self.online.params

    def _without(self, what: str) -> str:
        return (
            f"A trained network has no {what} in a session: it keeps no weights of earlier rows. "
            "Echo state networks with the built-in ridge do."
        )

    def finish(self, model: Any, *, stands: bool) -> None:
        """Set the learner, too; where rows wait for their targets, it goes on behind them."""
        self.settle(model)
        model.loss_curve_ = list(model.loss_curve_)
        model._online = copy.deepcopy(self.online)
        if not stands:
            model._online.restart(np.array(model.state_))


def check_online(model: Any, name: str) -> None:
    """Refuse, on behalf of a method, what cannot be learned row by row."""
    if model.target == "last":
        raise ValueError(
            f"{name} learns step by step, from a target at every step; target='last' needs fit."
        )
    if name_of_solver(model.solver) in WHOLE:
        raise ValueError(
            f"{name} goes through the data once; solver={model.solver!r} needs all of it. "
            "Use solver='adam', or fit."
        )
