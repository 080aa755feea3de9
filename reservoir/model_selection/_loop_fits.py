"""Jobs of a search's workers: fit a candidate and run it in closed loop."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from reservoir._typing import Array
from reservoir._workers import one_blas_thread
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.model_selection._candidates import Params
from reservoir.model_selection._loop_places import LoopData, Round
from reservoir.model_selection._loop_scoring import Scoring


class Outcome(NamedTuple):
    """Outcome of one candidate in one round.

    The `scores`, (n_starts,), are empty if the trial failed. Then `error` is its message, and
    `stage`, "fit" or "run", is where it was raised. Times are in seconds; `score_time` was taken by
    the loops.
    """

    scores: Array
    fit_time: float
    score_time: float
    error: str | None = None
    stage: str = "run"


@dataclass(frozen=True)
class Trial:
    """Settings of a search; a call, also in workers, fits and runs a candidate in one round."""

    data: LoopData
    rounds: list[Round]
    score: Scoring
    horizon: int
    clip: Any
    error_score: Any
    fit_params: Params

    def __call__(self, model: Any, k: int, others: tuple[str, list[float]] | None) -> list[Outcome]:
        """Fit a candidate and run its loops, and the loops of `others` if they share the fit."""
        model = clone(model)  # fit may draw from a generator among the parameters
        start, stage = time.perf_counter(), "fit"
        fitted = start
        try:
            with one_blas_thread():
                self._fit(model, k)
                fitted, stage = time.perf_counter(), "run"
                scores = self._run(model, k, others)
        except Exception as error:
            if self.error_score == "raise":
                raise
            none, now = np.empty(0), time.perf_counter()
            fit_time = (now if stage == "fit" else fitted) - start
            score_time = 0.0 if stage == "fit" else now - fitted
            message = f"{type(error).__name__}: {error}"
            return [Outcome(none, fit_time, score_time, message, stage)]
        n, end = len(scores), time.perf_counter()
        return [Outcome(one, (fitted - start) / n, (end - fitted) / n) for one in scores]

    def _fit(self, model: Any, k: int) -> None:
        sizes, data = self.rounds[k].sizes, self.data
        known = {name: data.heads(value, sizes) for name, value in self.fit_params.items()}
        model.fit(data.heads(data.X, sizes), data.heads(data.y, sizes), **known)

    def _run(self, model: Any, k: int, others: tuple[str, list[float]] | None) -> Array:
        """Return the scores, (n_values, n_starts), of the `others`, or else of the model alone."""
        data, (sizes, places, pooled) = self.data, self.rounds[k]
        followed = data.followed(places, self.horizon)
        given = (model, data.X, data.y, places, self.horizon)
        rows = None if others is None else run_trials(*given, clip=self.clip, others=others)
        if rows is None:
            rows = run_trials(*given, clip=self.clip)
        assert rows is not None
        scores = self.score(rows, followed, data.spread(sizes))
        return scores.mean(axis=1, keepdims=True) if pooled else scores
