"""The search for networks by their closed loops, and the ensemble of the best candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_bank import (
    Bank,
    Diagnosis,
    bank_for,
    bank_of,
    design_of,
    diagnose,
    grown,
    scores_of,
)
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Clip, Member, NetworkTrial, Plan
from reservoir.loops.path_loops import log_errors
from reservoir.loops.radial_plan import RadialPlan

Report = Callable[[Iterable[Any], int, str], Iterable[Any]]
Key = tuple[Plan, int]
_SEGMENT = 2000  # number of rows that candidates are tried on
_SCORED_TWICE = 4  # number of best networks that are also scored on held-out blocks


class Tried(NamedTuple):
    """Results of trying one network with each penalty.

    Attributes
    ----------
    members : list of Member
        The network with the readout for each penalty.
    recycled : array of shape (n_alphas,)
        Score of the loops within the training rows for each penalty; NaN if no such loops were run.
    left_out : array of shape (n_alphas,)
        Score of the loops in held-out blocks for each penalty; NaN if no such loops were run.
    """

    members: list[Member]
    recycled: Array
    left_out: Array

    @property
    def scores(self) -> Array:
        """Score of each penalty, by which one is chosen."""
        return _scores(self.recycled, self.left_out)

    def pick(self, number: int | None) -> Member:
        """Return the member for the penalty with index `number`; the best penalty if it is None."""
        return self.members[int(np.argmax(self.scores)) if number is None else number]


class Choice(NamedTuple):
    """The networks that a search chose, and the results of all candidates.

    Attributes
    ----------
    members : list of Member
        The networks of the ensemble, fitted on all rows.
    plan : NetworkPlan or RadialPlan
        Plan of the best network.
    score : float
        Score of the best network.
    score_of_mean : float
        Score of a forecast that always predicts the mean of the data.
    results : dict of arrays
        Table of the results, with one row for each pair of network and penalty.
    diagnosis : Diagnosis
        Diagnosis of the data.
    washout : int
        Number of washout rows, during which networks forget their initial state.
    """

    members: list[Member]
    plan: Plan
    score: float
    score_of_mean: float
    results: dict[str, Any]
    diagnosis: Diagnosis
    washout: int


class Search:
    """A search for the networks whose closed loops follow given trajectories best.

    The last bits of the result depend on the number of BLAS threads. Use one thread, which is also
    fastest for matrices of this size; workers set the number themselves.

    Parameters
    ----------
    data : Trajectories
        The standardised data.
    clip : (low, high)
        Bounds of the levels that are fed back.
    plans : sequence of NetworkPlan, optional
        Candidates that replace the default ones for the data. Their number of units is not changed.
    n_members : int
        Number of networks in the ensemble: the best network is fitted with this many seeds.
    n_steps : int, optional
        Number of steps per loop; by default it is chosen from the number of rows.
    seed : int
        The first seed.
    n_jobs : int, optional
        Number of workers.
    report : callable
        ``report(results, n, what)`` yields the `n` results as they arrive; `what` is a text that
        describes the present task.
    """

    def __init__(
        self,
        data: Trajectories,
        clip: Clip,
        *,
        plans: Sequence[NetworkPlan] | None,
        n_members: int,
        n_steps: int | None,
        seed: int,
        n_jobs: int | None,
        report: Report,
    ) -> None:
        self.data, self.clip, self.seed = data, clip, seed
        self.n_members, self.n_steps = n_members, n_steps
        self.n_jobs, self.report = n_jobs, report
        # if the series is long, candidates are tried on a segment of it
        self.segment = data.last_rows(_SEGMENT) if data.n_rows > _SEGMENT else data
        self.diagnosis = diagnose(self.segment, seed)
        if plans is None:
            self.bank = bank_for(self.segment, self.diagnosis)
        else:
            self.bank = bank_of(plans, self.segment, self.diagnosis)

    def run(self) -> Choice:
        """Try the candidates, and return the ensemble of the best networks with all results."""
        keys = [(plan, self.seed) for plan in self.bank.plans]
        in_two_rounds = self.bank.leave_out and self.bank.recycle
        first = replace(self.bank, leave_out=False) if in_two_rounds else self.bank
        tried = dict(zip(keys, self._try(keys, self.segment, first, "trying"), strict=True))
        best = sorted(keys, key=lambda key: -tried[key].scores.max())
        # loops in held-out blocks need more fits: run them for the best networks only
        if in_two_rounds:
            best = best[:_SCORED_TWICE]
            again = self._try(best, self.segment, self.bank, "trying on held-out rows")
            tried |= zip(best, again, strict=True)
            best = sorted(best, key=lambda key: -tried[key].scores.max())
        table = self._table([tried[key] for key in keys])
        # fit the ensemble on all rows; fits that already used all rows are reused
        bank, chosen, numbers = self._ensemble(best, tried)
        known = tried if self.segment is self.data and bank is self.bank else {}
        wanted = [key for key in dict.fromkeys(chosen) if key not in known]
        fitted = self._try(wanted, self.data, bank, "fitting") if wanted else []
        known = known | dict(zip(wanted, fitted, strict=True))
        return Choice(
            [known[key].pick(number) for key, number in zip(chosen, numbers, strict=True)],
            chosen[0][0],
            float(known[chosen[0]].scores.max()),
            self._score_of_mean(bank),
            table,
            self.diagnosis,
            self._design(self.data, bank).washout,
        )

    def _ensemble(
        self, best: list[Key], tried: dict[Key, Tried]
    ) -> tuple[Bank, list[Key], list[int | None]]:
        """Return the bank for the ensemble, its networks, and the indices of their penalties.

        The members are the best network under several seeds, each with its best penalty, for which
        the index is None. Radial units do not depend on a seed: their members are the best pairs of
        network and penalty.
        """
        if isinstance(best[0][0], RadialPlan):
            pairs = [(key, a) for key in best for a in range(len(self.bank.alphas))]
            pairs.sort(key=lambda pair: -tried[pair[0]].scores[pair[1]])
            first = pairs[: self.n_members]
            return self.bank, [key for key, _ in first], [number for _, number in first]
        bank, plan = grown(self.bank, best[0][0], self.data)
        seeds = range(self.seed, self.seed + self.n_members)
        return bank, [(plan, seed) for seed in seeds], [None] * self.n_members

    def _score_of_mean(self, bank: Bank) -> float:
        """Return the score of forecasting zero, which is the mean of the standardised rows."""
        design, data = self._design(self.data, bank), self.data
        followed = data.followed(design.recycled, design.n_steps)
        errors = log_errors(np.zeros_like(followed), followed, np.ones(data.n_outputs))
        return float(-np.maximum(errors, np.log10(bank.least_error)).mean())

    def _design(self, data: Trajectories, bank: Bank) -> LoopDesign:
        return design_of(data, bank.plans, leave_out=bank.leave_out, n_steps=self.n_steps)

    def _try(self, keys: list[Key], data: Trajectories, bank: Bank, what: str) -> list[Tried]:
        """Fit and score networks; the result does not depend on the number of workers."""
        design = self._design(data, bank)
        jobs = [(*key, data, design, bank, self.clip) for key in keys]
        results = run_jobs(_try_one, jobs, self.n_jobs)
        return list(self.report(results, len(keys), what))

    def _table(self, tried: list[Tried]) -> dict[str, Any]:
        """Return a table with one row for each pair of network and penalty that was tried."""
        plans, n_alphas = self.bank.plans, len(self.bank.alphas)
        table: dict[str, Any] = {
            each.name: np.repeat([getattr(plan, each.name) for plan in plans], n_alphas)
            for each in fields(plans[0])
        }
        table["alpha"] = np.tile(self.bank.alphas, len(plans))
        table["score"] = np.concatenate([one.recycled for one in tried])
        table["score_left_out"] = np.concatenate([one.left_out for one in tried])
        # networks that were also scored on held-out blocks rank before the others: the two kinds of
        # scores are not comparable
        total = np.concatenate([one.scores for one in tried])
        once = np.isnan(table["score_left_out"]) & self.bank.leave_out
        order = np.lexsort((-total, once))
        table["rank"] = np.empty(len(order), int)
        table["rank"][order] = np.arange(1, len(order) + 1)
        return table | self.diagnosis._asdict()


@one_blas_thread()
def _try_one(
    plan: Plan,
    seed: int,
    data: Trajectories,
    design: LoopDesign,
    bank: Bank,
    clip: Clip,
) -> Tried:
    """Fit and score a network with one BLAS thread, because their number affects the last bits."""
    alphas = np.array(bank.alphas)
    trial = NetworkTrial(plan, seed, data, design, alphas, leave_out=bank.leave_out)
    recycled, left_out = scores_of(trial, bank, clip)
    return Tried([trial.member(a) for a in range(len(alphas))], recycled, left_out)


def _scores(recycled: Array, left_out: Array) -> Array:
    """Return the mean of both scores, or the score that is not NaN if the other one is."""
    return np.nanmean([recycled, left_out], axis=0)
