"""The choice of networks by their closed loops: a bank is tried, the winners make a committee."""

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
_STRETCH = 2000  # rows that a bank is tried on
_JUDGED_TWICE = 4  # networks that are fitted without each block, too


class Tried(NamedTuple):
    """What came of one network.

    Attributes
    ----------
    members : list of Member
        The network with the readout under each penalty.
    recycled : array of shape (n_alphas,)
        Scores of loops within the rows that were fitted; NaN where these were not run.
    left_out : array of shape (n_alphas,)
        Scores of loops in blocks that the fit has not seen; NaN where these were not run.
    """

    members: list[Member]
    recycled: Array
    left_out: Array

    @property
    def scores(self) -> Array:
        """What penalties are chosen by."""
        return _scores(self.recycled, self.left_out)

    def pick(self, number: int | None) -> Member:
        """Return the member under a penalty; under the best one if there is no number."""
        return self.members[int(np.argmax(self.scores)) if number is None else number]


class Choice(NamedTuple):
    """Networks that were chosen, and what was tried.

    Attributes
    ----------
    members : list of Member
    plan : NetworkPlan or RadialPlan
        Of the best network.
    score : float
        Its score.
    score_of_mean : float
        What the mean of the data would have in its place.
    results : dict of arrays
        A row for each network and penalty.
    diagnosis : Diagnosis
    washout : int
        Rows that networks were given to forget where they started.
    """

    members: list[Member]
    plan: Plan
    score: float
    score_of_mean: float
    results: dict[str, Any]
    diagnosis: Diagnosis
    washout: int


class Search:
    """A search on trajectories.

    Its result depends in the last bits on the number of BLAS threads: hold it at one, which is
    fastest for matrices of this size, too. Workers do so themselves.

    Parameters
    ----------
    data : Trajectories
        Standardised.
    clip : (low, high)
        Bounds of what is fed back.
    plans : sequence of NetworkPlan, optional
        What to try instead of the bank for such data. They keep their size.
    n_members : int
        Seeds of the best network in the committee.
    n_steps : int, optional
        Of a loop.
    seed : int
    n_jobs : int, optional
    report : callable
        ``report(results, n, what)`` passes results on as they come; `what` says what is done.
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
        # the bank is tried on a stretch of a long series
        self.stretch = data.last_rows(_STRETCH) if data.n_rows > _STRETCH else data
        self.diagnosis = diagnose(self.stretch, seed)
        if plans is None:
            self.bank = bank_for(self.stretch, self.diagnosis)
        else:
            self.bank = bank_of(plans, self.stretch, self.diagnosis)

    def run(self) -> Choice:
        """Try the bank; return the committee that came of it."""
        keys = [(plan, self.seed) for plan in self.bank.plans]
        sifted = self.bank.leave_out and self.bank.recycle
        first = replace(self.bank, leave_out=False) if sifted else self.bank
        tried = dict(zip(keys, self._try(keys, self.stretch, first, "trying"), strict=True))
        best = sorted(keys, key=lambda key: -tried[key].scores.max())
        # loops in blocks that were left out cost more: of the best ones only
        if sifted:
            best = best[:_JUDGED_TWICE]
            again = self._try(best, self.stretch, self.bank, "trying on rows left out")
            tried |= zip(best, again, strict=True)
            best = sorted(best, key=lambda key: -tried[key].scores.max())
        table = self._table([tried[key] for key in keys])
        # the committee, fitted on everything
        bank, chosen, numbers = self._committee(best, tried)
        known = tried if self.stretch is self.data and bank is self.bank else {}
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

    def _committee(
        self, best: list[Key], tried: dict[Key, Tried]
    ) -> tuple[Bank, list[Key], list[int | None]]:
        """Return how members are judged, their networks, and the numbers of their penalties.

        The best network under several seeds, each with the penalty that suits it; radial units,
        which no seed changes, under the best pairs of network and penalty.
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
        """Return what a forecast of zeros, the mean of standardised rows, scores."""
        design, data = self._design(self.data, bank), self.data
        followed = data.followed(design.recycled, design.n_steps)
        errors = log_errors(np.zeros_like(followed), followed, np.ones(data.n_outputs))
        return float(-np.maximum(errors, np.log10(bank.least_error)).mean())

    def _design(self, data: Trajectories, bank: Bank) -> LoopDesign:
        return design_of(data, bank.plans, leave_out=bank.leave_out, n_steps=self.n_steps)

    def _try(self, keys: list[Key], data: Trajectories, bank: Bank, what: str) -> list[Tried]:
        """Fit and try networks; the result does not depend on the number of workers."""
        design = self._design(data, bank)
        jobs = [(*key, data, design, bank, self.clip) for key in keys]
        results = run_jobs(_try_one, jobs, self.n_jobs)
        return list(self.report(results, len(keys), what))

    def _table(self, tried: list[Tried]) -> dict[str, Any]:
        """Return a row for each network and penalty that was tried."""
        plans, n_alphas = self.bank.plans, len(self.bank.alphas)
        table: dict[str, Any] = {
            each.name: np.repeat([getattr(plan, each.name) for plan in plans], n_alphas)
            for each in fields(plans[0])
        }
        table["alpha"] = np.tile(self.bank.alphas, len(plans))
        table["score"] = np.concatenate([one.recycled for one in tried])
        table["score_left_out"] = np.concatenate([one.left_out for one in tried])
        # those that were judged twice come before the others
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
    """Fit and try a network, on one BLAS thread: how many there are would change the last bits."""
    alphas = np.array(bank.alphas)
    trial = NetworkTrial(plan, seed, data, design, alphas, leave_out=bank.leave_out)
    recycled, left_out = scores_of(trial, bank, clip)
    return Tried([trial.member(a) for a in range(len(alphas))], recycled, left_out)


def _scores(recycled: Array, left_out: Array) -> Array:
    """Return the mean of the two, or the one that there is."""
    return np.nanmean([recycled, left_out], axis=0)
