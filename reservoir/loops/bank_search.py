"""The search for networks by their closed loops, and the ensemble of the best candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, Report
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.loops.analogue_plan import AnaloguePlan
from reservoir.loops.loop_design import LoopDesign, NetworkPlan, RadialPlan, Trajectories
from reservoir.loops.network_bank import (
    Bank,
    Diagnosis,
    Plan,
    bank_for,
    bank_of,
    design_of,
    diagnose,
    grown,
    rivals_of,
    scores_of,
)
from reservoir.loops.network_trial import Clip, Member, NetworkTrial
from reservoir.loops.path_loops import log_errors

Key = tuple[Plan, int]
_SEGMENT = 2000  # number of rows that candidates are tried on
_SCORED_TWICE = 4  # number of best networks that are also scored on held-out blocks
_CLEARLY = 0.05  # difference of scores by which other models must be better than networks
# Time to try candidates, measured on one core in microseconds; progress is weighed by it. Other
# processors change the ratios by less than half.
_START, _PER_STEP = 500, 45  # of each trial, and of each step of loops that run side by side
_PER_SUM, _PER_SOLUTION = 1e-4, 3e-4  # of an entry of the sums and a row; width**3 of a fit
_PER_FEATURE = 1e-2  # of a feature in a step of one loop
_PER_PAIR = 1e-2  # of two rows that may be centres of radial units
_PER_DISTANCE = 2e-3  # of a number that an analogue compares in a step of one loop
_MOST_CENTRES = 2000  # rows among which centres are chosen
_RADIAL = 10  # number of radial units of width 1 that cover one dimension


class Tried(NamedTuple):
    """Results of trying one network with each penalty.

    `members` are the network with the readout for each penalty. `recycled` and `left_out`,
    (n_alphas,), are scores of the loops within the training rows, and in held-out blocks; NaN if no
    such loops were run.
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


class Round(NamedTuple):
    """A bank whose candidates were tried, and the results.

    `bank` has the scores by which the best candidates were compared; `best` are the keys of the
    best candidates, best first.
    """

    bank: Bank
    tried: dict[Key, Tried]
    best: list[Key]

    @property
    def score(self) -> float:
        """Score of the best candidate, from all kinds of loops of this bank."""
        return float(self.tried[self.best[0]].scores.max())

    @property
    def left_out(self) -> float:
        """Best score of loops in held-out blocks."""
        return float(np.nanmax([self.tried[key].left_out for key in self.best]))


class Choice(NamedTuple):
    """The networks that a search chose, fitted on all rows, and the results of all candidates.

    `plan` and `score` are those of the best network; `score_of_mean` is that of a forecast that
    always predicts the mean. `results` is a table with one row for each pair of network and
    penalty. During `washout` rows networks forget their initial state.
    """

    members: list[Member]
    plan: Plan
    score: float
    score_of_mean: float
    results: dict[str, Any]
    diagnosis: Diagnosis
    washout: int


class Search:
    """A search for the networks whose closed loops follow given standardised trajectories best.

    The best network is fitted with `n_members` seeds, from `seed` on. `clip` bounds levels that are
    fed back. `plans` replace the default candidates, with their numbers of units. ``report(results,
    costs, what, later=later)`` returns the results and shows progress: `costs` are their expected
    times, `later` that of the work after them. The last bits depend on the number of BLAS threads:
    use one, which is also fastest for these matrices; workers set the number themselves.
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
        first, others = self._first_round()
        ahead = self._costs_ahead(first.bank, others)
        rivals = [self._round(bank, later) for bank, later in zip(others, ahead[1:], strict=True)]
        rounds = [first, *sorted(rivals, key=lambda one: -one.left_out)]
        if rivals and rounds[1].left_out > first.left_out + _CLEARLY:
            rounds = [*rounds[1:], first]
        bank, tried, best = rounds[0]
        # fit the ensemble on all rows; fits that already used all rows are reused
        final, chosen, numbers = self._ensemble(bank, best, tried)
        known = tried if self.segment is self.data and final is bank else {}
        wanted = [key for key in dict.fromkeys(chosen) if key not in known]
        fitted = self._try(wanted, self.data, final, "fitting") if wanted else []
        known = known | dict(zip(wanted, fitted, strict=True))
        return Choice(
            [known[key].pick(number) for key, number in zip(chosen, numbers, strict=True)],
            chosen[0][0],
            float(known[chosen[0]].scores.max()),
            self._score_of_mean(final),
            self._table(rounds),
            self.diagnosis,
            self._design(self.data, final).washout,
        )

    def _first_round(self) -> tuple[Round, list[Bank]]:
        """Try the bank for the data; return the results, and banks that must be tried as well.

        The best networks are also tried on held-out blocks, if the bank is for noisy data or is
        compared with others.
        """
        bank = self.bank
        # others are tried however well the networks do; which of them depends on the score
        expected = rivals_of(bank, self.segment, -np.inf) if bank.enough == np.inf else []
        ahead = self._costs_ahead(bank, expected)[0]
        if not bank.recycle:
            first = self._round(bank, ahead)
            return first, rivals_of(bank, self.segment, first.score)
        if bank.leave_out or expected:
            some = bank.plans[:_SCORED_TWICE]
            ahead += self._cost(some, self.segment, replace(bank, leave_out=True))
        first = self._round(replace(bank, leave_out=False), ahead)
        others = rivals_of(bank, self.segment, first.score)
        if not bank.leave_out and not others:
            return first, []
        # loops in held-out blocks need more fits: run them for the best networks only
        bank = replace(bank, leave_out=True)
        best = first.best[:_SCORED_TWICE]
        ahead = self._costs_ahead(bank, others)[0]
        again = self._try(best, self.segment, bank, "trying on held-out rows", ahead)
        tried = first.tried | dict(zip(best, again, strict=True))
        best = sorted(best, key=lambda key: -tried[key].scores.max())
        return Round(bank, tried, best), others

    def _round(self, bank: Bank, later: float) -> Round:
        """Try all candidates of a bank; `later` is the cost of the work after that."""
        keys = [(plan, self.seed) for plan in bank.plans]
        tried = dict(zip(keys, self._try(keys, self.segment, bank, "trying", later), strict=True))
        return Round(bank, tried, sorted(keys, key=lambda key: -tried[key].scores.max()))

    def _ensemble(
        self, bank: Bank, best: list[Key], tried: dict[Key, Tried]
    ) -> tuple[Bank, list[Key], list[int | None]]:
        """Return the bank for the ensemble, its networks, and the indices of their penalties.

        The members are the best network under several seeds, each with its best penalty, for which
        the index is None. Radial units do not depend on a seed: their members are the best pairs of
        network and penalty. An analogue has no other members: a median of several series of rows is
        none of them.
        """
        if isinstance(best[0][0], AnaloguePlan):
            return bank, best[:1], [None]
        if isinstance(best[0][0], RadialPlan):
            pairs = [(key, a) for key in best for a in range(len(bank.alphas))]
            pairs.sort(key=lambda pair: -tried[pair[0]].scores[pair[1]])
            first = pairs[: self.n_members]
            return bank, [key for key, _ in first], [number for _, number in first]
        bank, plan = grown(bank, best[0][0], self.data)
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

    def _try(
        self, keys: list[Key], data: Trajectories, bank: Bank, what: str, later: float = 0.0
    ) -> list[Tried]:
        """Fit and score networks; the result does not depend on the number of workers."""
        design = self._design(data, bank)
        jobs = [(*key, data, design, bank, self.clip) for key in keys]
        costs = [cost_of(plan, data, design, bank) for plan, _ in keys]
        results = run_jobs(_try_one, jobs, self.n_jobs)
        return list(self.report(results, costs, what, later=later))

    def _cost(self, plans: Sequence[Plan], data: Trajectories, bank: Bank) -> float:
        """Return the cost of trying plans."""
        design = self._design(data, bank)
        return sum(cost_of(plan, data, design, bank) for plan in plans)

    def _costs_ahead(self, bank: Bank, others: Sequence[Bank]) -> list[float]:
        """Return the cost of what is ahead before each of the other banks, and after the last.

        The ensemble is expected to be of networks of `bank`, of which one is known already.
        """
        final, plan = grown(bank, bank.plans[0], self.data)
        known = self.segment is self.data and final is bank
        n_fits = self.n_members - known if isinstance(plan, NetworkPlan) else (not known)
        costs = [self._cost(each.plans, self.segment, each) for each in others]
        costs.append(n_fits * self._cost([plan], self.data, final))
        return np.cumsum(costs[::-1])[::-1].tolist()

    def _table(self, rounds: list[Round]) -> dict[str, Any]:
        """Return a table with a row for each network and penalty; the first round ranks first."""
        of_round, banks, plans, tried = zip(
            *[
                (number, one.bank, plan, results)
                for number, one in enumerate(rounds)
                for (plan, _), results in one.tried.items()
            ],
            strict=True,
        )
        sizes = [len(bank.alphas) for bank in banks]
        names = dict.fromkeys(each.name for plan in plans for each in fields(plan))
        table: dict[str, Any] = {name: np.repeat(_column(plans, name), sizes) for name in names}
        table["alpha"] = np.concatenate([bank.alphas for bank in banks])
        table["score"] = np.concatenate([each.recycled for each in tried])
        table["score_left_out"] = np.concatenate([each.left_out for each in tried])
        # networks that were also scored on held-out blocks rank before the others: the two kinds of
        # scores are not comparable
        total = np.concatenate([each.scores for each in tried])
        twice = np.repeat([bank.leave_out for bank in banks], sizes)
        once = np.isnan(table["score_left_out"]) & twice
        order = np.lexsort((-total, once, np.repeat(of_round, sizes)))
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
    if isinstance(plan, AnaloguePlan):
        score = plan.score(data, design, bank.least_error, clip)
        return Tried([plan.member(data)], np.array([np.nan]), np.array([score]))
    alphas = np.array(bank.alphas)
    trial = NetworkTrial(plan, seed, data, design, alphas, leave_out=bank.leave_out)
    recycled, left_out = scores_of(trial, bank, clip)
    return Tried([trial.member(a) for a in range(len(alphas))], recycled, left_out)


def _column(plans: Sequence[Plan], name: str) -> Array:
    """Return a parameter of plans; NaN, or None for texts, where a plan does not have it."""
    has = [hasattr(plan, name) for plan in plans]
    numeric = all(not isinstance(getattr(plan, name, 0), (str, type(None))) for plan in plans)
    values = [getattr(plan, name, np.nan if numeric else None) for plan in plans]
    return np.array(values) if all(has) or numeric else np.array(values, dtype=object)


def _scores(recycled: Array, left_out: Array) -> Array:
    """Return the mean of both scores, or the score that is not NaN if the other one is."""
    return np.nanmean([recycled, left_out], axis=0)


def cost_of(plan: Plan, data: Trajectories, design: LoopDesign, bank: Bank) -> float:
    """Return the time to fit a plan and run its loops, roughly in microseconds."""
    n_alphas, n_blocks = len(bank.alphas), len(design.blocks)
    left_out = [design.n_steps_left_out(k) for k in range(n_blocks)] if bank.leave_out else []
    per_block = [len(places) for places in design.left_out]
    steps, pairs = sum(left_out), int(np.dot(left_out, per_block[: len(left_out)]))
    if isinstance(plan, AnaloguePlan):
        compared = data.n_rows * plan.n_lags * data.n_outputs
        return _START + _PER_STEP * steps + _PER_DISTANCE * pairs * compared
    if bank.recycle:
        steps, pairs = steps + design.n_steps, pairs + design.n_steps * len(design.recycled)
    width = _width_of(plan, data)
    choosing = min(data.n_rows, _MOST_CENTRES) ** 2 * isinstance(plan, RadialPlan)
    return (
        _START
        + _PER_STEP * steps
        + _PER_FEATURE * pairs * n_alphas * width
        + _PER_SUM * data.n_rows * width**2
        + _PER_SOLUTION * (1 + len(left_out)) * width**3
        + _PER_PAIR * choosing
    )


def _width_of(plan: Plan, data: Trajectories) -> int:
    """Return the number of features; an estimate for radial units, some of which are omitted."""
    n_seen = data.n_inputs * plan.n_lags
    if isinstance(plan, RadialPlan):
        covering = (_RADIAL / plan.width) ** min(n_seen, 2)
        return int(min(plan.n_units, data.n_rows, covering))
    assert not isinstance(plan, AnaloguePlan)
    return plan.n_units * (1 if plan.augment is None else 2) + n_seen
