"""The choice of networks by their closed loops: a bank is tried, the winners make a committee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from reservoir._typing import Array
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_bank import (
    Bank,
    Diagnosis,
    bank_for,
    design_of,
    diagnose,
    grown,
    scores_of,
)
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Clip, Member, NetworkTrial

Report = Callable[[Iterable[Any], int], Iterable[Any]]
_STRETCH = 2000  # rows that a bank is tried on


class Tried(NamedTuple):
    """What came of one network: its readout under the best penalty, and the scores of all."""

    member: Member
    scores: Array

    @property
    def best(self) -> int:
        """Which penalty won."""
        return int(np.argmax(self.scores))


class Choice(NamedTuple):
    """Networks that were chosen, and what was tried.

    Attributes
    ----------
    members : list of Member
    plan : NetworkPlan
        Of the best network.
    score : float
        Its score.
    results : dict of arrays
        A row for each network and penalty.
    diagnosis : Diagnosis
    washout : int
        Rows that networks were given to forget where they started.
    """

    members: list[Member]
    plan: NetworkPlan
    score: float
    results: dict[str, Any]
    diagnosis: Diagnosis
    washout: int


class Search:
    """A search on trajectories.

    Parameters
    ----------
    data : Trajectories
        Standardised.
    clip : (low, high)
        Bounds of what is fed back.
    plans : sequence of NetworkPlan, optional
        What to try instead of the bank for such data.
    n_members : int
        Networks in the committee.
    n_steps : int, optional
        Of a loop.
    seed : int
    n_jobs : int, optional
    report : callable
        ``report(results, n)`` passes results on as they come.
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
        bank = bank_for(self.stretch, self.diagnosis)
        self.bank = bank if plans is None else replace(bank, plans=tuple(plans))

    def run(self) -> Choice:
        """Try the bank; return the committee that came of it."""
        design = design_of(self.stretch, self.bank.plans, n_steps=self.n_steps)
        first = [(plan, self.seed) for plan in self.bank.plans]
        tried = self._try(first, self.stretch, design, self.bank)
        order = np.argsort([-one.scores.max() for one in tried], kind="stable")
        best = int(order[0])
        final, chosen = self._finalists(tried, order)
        # what has not been fitted like that yet
        design = design_of(self.data, [plan for plan, _ in chosen], n_steps=self.n_steps)
        if self.stretch is self.data and final is self.bank:
            known = {key: one for key, one in zip(first, tried, strict=True)}
        else:
            known = {}
        wanted = [key for key in chosen if key not in known]
        known |= dict(zip(wanted, self._try(wanted, self.data, design, final), strict=True))
        return Choice(
            [known[key].member for key in chosen],
            chosen[0][0],
            float(known[chosen[0]].scores.max()),
            self._table(tried, best),
            self.diagnosis,
            design.washout,
        )

    def _finalists(
        self, tried: list[Tried], order: Array
    ) -> tuple[Bank, list[tuple[NetworkPlan, int]]]:
        """Return which networks, by plan and seed, make the committee, and how they are judged."""
        if self.bank.seeds_of_best:
            final, plan = grown(self.bank, self.bank.plans[order[0]], self.data)
            return final, [(plan, self.seed + k) for k in range(self.n_members)]
        picked = order[: self.n_members].tolist()
        return self.bank, [(self.bank.plans[k], self.seed) for k in picked]

    def _try(
        self,
        wanted: list[tuple[NetworkPlan, int]],
        data: Trajectories,
        design: LoopDesign,
        bank: Bank,
    ) -> list[Tried]:
        """Fit and try networks; the result does not depend on the number of workers."""
        jobs = (delayed(_try_one)(*key, data, design, bank, self.clip) for key in wanted)
        if self.n_jobs in (None, 1) or len(wanted) < 2:
            results: Iterable[Tried] = (run(*args) for run, args, _ in jobs)
        else:
            results = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        return list(self.report(results, len(wanted)))

    def _table(self, tried: list[Tried], best: int) -> dict[str, Any]:
        """Return a row for each network and penalty that was tried."""
        n_alphas = len(self.bank.alphas)
        plans = [asdict(plan) for plan in self.bank.plans]
        table: dict[str, Any] = {
            each.name: np.repeat(np.array([p[each.name] for p in plans], object), n_alphas)
            for each in fields(NetworkPlan)
        }
        for name, column in table.items():
            if name != "augment":
                table[name] = column.astype(type(plans[0][name]))
        table["alpha"] = np.tile(self.bank.alphas, len(plans))
        scores = np.concatenate([one.scores for one in tried])
        table["score"] = scores
        table["rank"] = 1 + np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
        table["observed"] = self.diagnosis.observed
        table["noise"] = self.diagnosis.noise
        return table


def _try_one(
    plan: NetworkPlan,
    seed: int,
    data: Trajectories,
    design: LoopDesign,
    bank: Bank,
    clip: Clip,
) -> Tried:
    trial = NetworkTrial(
        plan, seed, data, design, np.array(bank.alphas), leave_out=bank.leave_out
    )
    scores = scores_of(trial, bank, clip)
    return Tried(trial.member(int(np.argmax(scores))), scores)
