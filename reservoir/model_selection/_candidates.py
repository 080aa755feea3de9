"""Candidates of a search, grouped by shared fits, and the jobs that fit them and run loops."""

from __future__ import annotations

import numbers
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count
from reservoir._workers import one_blas_thread
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.model_selection._loop_places import LoopData, Round
from reservoir.model_selection._loop_scoring import Scoring

Params = dict[str, Any]


def read_candidates(candidates: Any, n_iter: int | None, random_state: RandomState) -> list[Params]:
    """Return the parameters of each candidate: all combinations, or `n_iter` that are drawn.

    In a dict, a parameter has a list of values or a distribution; anything else is a single value.
    """
    spaces = [candidates] if isinstance(candidates, Mapping) else candidates
    if not isinstance(spaces, (list, tuple)) or not all(isinstance(s, Mapping) for s in spaces):
        raise TypeError(
            "candidates must be a dict that maps parameters to lists or distributions, or a list "
            f"of such dicts; got {candidates!r}."
        )
    if not spaces:
        raise ValueError("candidates is empty. Give a dict, or a list with at least one dict.")
    wrapped = [
        {name: value if _is_several(value) else [value] for name, value in space.items()}
        for space in spaces
    ]
    drawn = [name for space in wrapped for name, v in space.items() if hasattr(v, "rvs")]
    if n_iter is not None:
        seed = int(as_generator(random_state).integers(2**31 - 1))
        n_drawn = check_count("n_iter", n_iter)
        return list(ParameterSampler(wrapped, n_drawn, random_state=seed))
    if drawn:
        raise ValueError(
            f"candidates has a distribution for {drawn[0]!r}, which cannot be enumerated "
            "(n_iter=None). Give n_iter, the number of candidates to draw."
        )
    return list(ParameterGrid(wrapped))


def _is_several(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return hasattr(value, "rvs") or (isinstance(value, Sequence) and not isinstance(value, str))


class Group(NamedTuple):
    """Positions of candidates that differ only in `name` (None for one); the first is fitted."""

    members: list[int]
    name: str | None = None


def groups_of(candidates: list[Params]) -> list[Group]:
    """Return groups of candidates that differ only in a penalty, the smallest penalty first."""
    found: dict[Any, list[int]] = {}
    names: dict[Any, str] = {}
    for i, params in enumerate(candidates):
        penalties = [name for name in params if name.rpartition("__")[2] == "alpha"]
        if len(penalties) != 1 or not _is_penalty(params[penalties[0]]):
            found[i] = [i]
            continue
        rest = frozenset((k, _identity(v)) for k, v in params.items() if k != penalties[0])
        found.setdefault((penalties[0], rest), []).append(i)
        names[penalties[0], rest] = penalties[0]
    groups = []
    for key, members in found.items():
        name = names[key] if len(members) > 1 else None
        if name is not None:
            members.sort(key=lambda i: candidates[i][name])
        groups.append(Group(members, name))
    return groups


def _is_penalty(value: Any) -> bool:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return is_number and bool(np.isfinite(value)) and value >= 0


def _identity(value: Any) -> Any:
    """Return a dict key: the type and value of a string or number, the id of any other object."""
    if value is None or isinstance(value, (str, numbers.Number, np.bool_)):
        return type(value), value
    return id(value)


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
