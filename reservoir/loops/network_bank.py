"""Candidate networks for a series, their penalties, and the score by which one is chosen.

The candidates were chosen by resampling: networks were tried on the systems of Gilpin (2021) with
random windows, lengths, sampling rates and noise levels. Candidates were added one at a time, and
each was the network that increased the mean of log2(1 + valid Lyapunov times) most.
`examples/benchmarks/chaos.py` measures the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.analogue_plan import AnaloguePlan
from reservoir.loops.loop_design import LoopDesign, NetworkPlan, RadialPlan, Trajectories
from reservoir.loops.network_trial import Clip, NetworkTrial

Plan = NetworkPlan | RadialPlan | AnaloguePlan
_UNITS, _FEW_UNITS, _MANY_UNITS = 150, 80, 500
_SHARE = 0.3  # largest number of units per row
_PART_SEEN = 10  # radial units receive at most 1 / 10 of the rows at once
_MEDIUM = 1500  # number of rows from which loops and the washout are longer
_LONG = 3000  # number of rows from which the best network gets more units
_FEWEST_LEARNED = 20  # least number of rows after the washout
_N_STARTS, _N_BLOCKS, _STARTS_PER_BLOCK = 8, 4, 6
_HIDDEN = 2.5  # ratio of one-step errors without and with memory above which memory is needed
_EXACT = 1e-4  # one-step error, in standard deviations, up to which past rows determine the next
_NOISY = 5e-3  # one-step error, in standard deviations, above which the series is noisy
_DETERMINED = 1e-5  # one-step errors below it, in standard deviations, are not compared
_POOR = 4.5  # score of networks for clean series up to which other models are tried as well
_FAIR = 1.5  # score of networks for noisy series from which networks for clean series are tried
_FEWEST_FOR_RIVALS = 200  # least number of consecutive rows for which other models are tried

# Networks: spectral radius, input scaling, bias scaling and, for leaky units, the leak rate.
_CLEAN = (
    (0.05, 0.3, 1.0),
    (0.0, 1.5, 1.0),
    (0.0, 0.2, 1.0),
    (0.4, 0.3, 1.0),
    (0.0, 0.4, 1.0),
    (0.05, 0.1, 0.5),
    (0.05, 0.8, 1.0),
    (0.0, 0.05, 1.0),
    (0.8, 0.8, 1.0),
    (0.8, 0.3, 1.0, 0.3),
)
_NOISE = (
    (0.3, 0.3, 1.0, 0.5),
    (0.8, 0.8, 1.0),
    (0.8, 0.3, 1.0, 0.3),
    (0.4, 0.3, 1.0),
    (0.4, 0.8, 1.0),
    (0.0, 0.8, 1.0),
)
_NOISE_FEW = ((0.8, 0.1, 0.5), (0.4, 0.3, 1.0))
_MEMORY = (
    (0.05, 0.8, 1.0),
    (0.3, 0.3, 1.0, 0.5),
    (0.8, 0.3, 1.0, 0.3),
    (0.8, 0.8, 1.0),
    (0.4, 0.8, 1.0),
)
# Radial units: width, memory in steps, number of lags, and number of steps between lags.
_RADIAL = (
    (0.5, 6.0, 24, 1),
    (0.7, 16.0, 32, 1),
    (0.7, np.inf, 8, 2),
    (1.4, 2.0, 12, 1),
    (0.7, np.inf, 2, 1),
)
# Widths of radial units that receive the present row only, and numbers of rows of analogues.
_RIVAL_WIDTHS = (0.15, 0.25, 0.5, 1.0, 2.0)
_RIVAL_LAGS = (1, 3, 5, 10, 20)
_CLEAN_PENALTIES = (1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-25)
_LONG_PENALTIES = (1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-25, 1e-30)
_NOISE_PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
_RADIAL_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 2e-11)
_HIDDEN_PENALTIES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15, 1e-18)
_PROBE_PENALTIES = (1e-1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-16)


class Diagnosis(NamedTuple):
    """Diagnosis of a series, made by fitting a few networks to it.

    `observed` is "all" if a row determines the next row, "some" if past rows are needed as well.
    `noise` is the one-step error of the best of these networks in held-out rows, in standard
    deviations: noise and the error of networks of this size.
    """

    observed: str
    noise: float


@dataclass(frozen=True)
class Bank:
    """Candidate networks, and the score by which one of them is chosen.

    `alphas` are penalties per row. Errors of a loop are at least `least_error`, in standard
    deviations. The score is of loops in held-out blocks (`leave_out`), and within the training rows
    (`recycle`), which say nothing about networks that can reproduce any training rows. If it
    `grows`, the best network gets more units if rows suffice. Above the score `enough` no other
    models are tried.
    """

    plans: tuple[Plan, ...]
    alphas: tuple[float, ...]
    least_error: float
    leave_out: bool
    recycle: bool = True
    grows: bool = False
    enough: float = -np.inf


def diagnose(data: Trajectories, seed: int) -> Diagnosis:
    """Diagnose a series by comparing a network without memory with networks that have memory."""
    n_units, augment = min(_FEW_UNITS, most_units(data.n_rows)), "square"
    memoryless = plans_of(((0.0, 0.3, 1.0),), n_units, augment)
    others = plans_of(((0.05, 0.3, 1.0), (0.4, 0.3, 1.0)), n_units, augment)
    others += plans_of(((0.0, 0.3, 1.0),), n_units, augment, n_lags=3, skip=2)
    design = design_of(data, memoryless + others, leave_out=True)
    errors = [
        NetworkTrial(
            plan, seed, data, design, np.array(_PROBE_PENALTIES), leave_out=True
        ).one_step.min()
        for plan in memoryless + others
    ]
    least = float(min(errors))
    # the lower bound, because a row whose next row is known to five digits determines it
    hidden = errors[0] > _HIDDEN * max(least, _DETERMINED)
    return Diagnosis("some" if hidden else "all", least)


def bank_for(data: Trajectories, diagnosis: Diagnosis) -> Bank:
    """Return the bank of default candidates for data and their diagnosis."""
    n_units = most_units(data.n_rows)
    if diagnosis.observed == "some" and diagnosis.noise > _EXACT:
        radial = radial_plans(max(map(len, data.levels)))
        return Bank(radial, _RADIAL_PENALTIES, 1e-2, leave_out=True, recycle=False)
    if diagnosis.observed == "some":
        plans = plans_of(_MEMORY, n_units, "square")
        plans += plans_of(((0.8, 0.3, 1.0),), min(_FEW_UNITS, n_units), "square")
        plans += plans_of(((0.05, 0.8, 1.0),), n_units, "square", n_lags=2)
        plans += plans_of(((0.05, 0.3, 1.0),), n_units, "square", n_lags=3)
        plans += plans_of(((0.05, 0.8, 1.0), (0.4, 0.3, 1.0)), n_units, "square", n_lags=3, skip=2)
        return Bank(plans, _HIDDEN_PENALTIES, 1e-2, leave_out=False)
    if diagnosis.noise > _NOISY:
        plans = plans_of(_NOISE, n_units, "square")
        plans += plans_of(_NOISE_FEW, min(_FEW_UNITS, n_units), "square")
        return Bank(plans, _NOISE_PENALTIES, 1e-3, leave_out=True, enough=np.inf)
    plans = plans_of(_CLEAN, n_units, "square")
    return Bank(plans, _CLEAN_PENALTIES, 1e-14, leave_out=False, grows=True, enough=_POOR)


def rivals_of(bank: Bank, data: Trajectories, score: float) -> list[Bank]:
    """Return banks of other models if the best network of `bank` has a poor score.

    They are compared by loops in held-out blocks, because such models can reproduce any training
    rows. Narrow radial units follow sudden changes that networks smooth, as in spikes and switches,
    and analogues repeat what a series repeats itself. If networks are not quite so poor, the error
    that was taken for noise may be theirs, and the others are networks for clean series.
    """
    if score >= bank.enough or max(map(len, data.levels)) < _FEWEST_FOR_RIVALS:
        return []
    alone = replace(bank, leave_out=True, recycle=False, grows=False)
    if bank.alphas == _NOISE_PENALTIES and score >= _FAIR:
        clean = plans_of(_CLEAN, most_units(data.n_rows), "square")
        return [replace(alone, plans=clean, alphas=_CLEAN_PENALTIES)]
    radial = tuple(RadialPlan(_MANY_UNITS, width, np.inf, 1) for width in _RIVAL_WIDTHS)
    banks = [replace(alone, plans=radial, alphas=_RADIAL_PENALTIES)]
    if not data.exog[0].size:
        analogues = tuple(AnaloguePlan(n_lags) for n_lags in _RIVAL_LAGS)
        banks.append(replace(alone, plans=analogues, alphas=(np.nan,)))
    return banks


def bank_of(plans: Sequence[NetworkPlan], data: Trajectories, diagnosis: Diagnosis) -> Bank:
    """Return a bank of user-defined candidates, whose number of units is not changed."""
    if diagnosis.observed == "some":
        return Bank(tuple(plans), _HIDDEN_PENALTIES, 1e-2, leave_out=False)
    return replace(bank_for(data, diagnosis), plans=tuple(plans), grows=False, enough=-np.inf)


def grown(bank: Bank, plan: Plan, data: Trajectories) -> tuple[Bank, Plan]:
    """Return bank and plan for the final fit: more units if the bank allows it and rows suffice."""
    if not isinstance(plan, NetworkPlan) or not bank.grows or data.n_rows < _LONG:
        return bank, plan
    plan = replace(plan, n_units=_MANY_UNITS, augment=None)
    return replace(bank, alphas=_LONG_PENALTIES), plan


def plans_of(
    networks: Sequence[tuple[float, ...]], n_units: int, augment: str | None, **lags: int
) -> tuple[NetworkPlan, ...]:
    """Return plans of `n_units` units from tuples (radius, input scaling, bias[, leak rate])."""
    plans = []
    for radius, scaling, bias, *leak in networks:
        plan = NetworkPlan(n_units, radius, scaling, bias, augment=augment, **lags)
        plans.append(replace(plan, leak_rate=leak[0]) if leak else plan)
    return tuple(plans)


def radial_plans(n_rows: int) -> tuple[RadialPlan, ...]:
    """Return plans of radial units for series of at most `n_rows` consecutive rows."""
    most = max(2, n_rows // _PART_SEEN)
    return tuple(
        RadialPlan(_MANY_UNITS, width, memory, max(2, min(n_lags, most // skip)), skip)
        for width, memory, n_lags, skip in _RADIAL
    )


def most_units(n_rows: int) -> int:
    """Return the largest number of units whose weights `n_rows` rows can determine."""
    return max(10, min(_UNITS, int(_SHARE * n_rows)))


def design_of(
    data: Trajectories,
    plans: Sequence[Plan],
    *,
    leave_out: bool,
    n_steps: int | None = None,
) -> LoopDesign:
    """Return the design of loops (blocks, starts and number of steps) for data and candidates."""
    n_rows, longest = data.n_rows, max(map(len, data.levels))
    past = max((plan.n_lags - 1) * plan.skip for plan in plans)
    washout = max(min(20 if n_rows < _MEDIUM else 50, longest // 10), past)
    automatic = int(np.clip(longest // 5, 5, 100 if n_rows < _MEDIUM else 150))
    _check_past_fits(past, automatic if n_steps is None else 0, longest)
    if n_steps is None:
        n_steps = automatic
    elif n_steps > longest - 1 - washout:
        raise ValueError(
            f"horizon={n_steps} is too long for a loop: networks are tried on {longest} "
            f"consecutive rows, of which the first {washout} are washout. It must be at most "
            f'{longest - 1 - washout}; "auto" uses a fifth of the rows.'
        )
    return LoopDesign.of(
        [len(levels) for levels in data.levels],
        washout=washout,
        n_steps=n_steps,
        n_starts=_N_STARTS,
        n_blocks=_N_BLOCKS if leave_out else 1,
        n_starts_per_block=_STARTS_PER_BLOCK,
    )


def _check_past_fits(past: int, n_steps: int, longest: int) -> None:
    """Raise if a network uses so many past rows that too few rows remain for training."""
    most = longest - 1 - max(2 * n_steps, _FEWEST_LEARNED)
    if past > max(most, 0):
        raise ValueError(
            f"A network in search uses {past} past rows, (n_lags - 1) * skip, but networks are "
            f"tried on {longest} consecutive rows, which allow at most {max(most, 0)} past rows. "
            "Lower n_lags or skip, or pass a longer series."
        )


def scores_of(trial: NetworkTrial, bank: Bank, clip: Clip) -> tuple[Array, Array]:
    """Return the scores of each penalty: minus the mean log error of loops; greater is better.

    The first array contains the scores of loops within the training rows, the second array those of
    loops in held-out blocks. An array is NaN if the bank does not use such loops.
    """
    low = np.log10(bank.least_error)
    recycled, left_out = np.full((2, len(bank.alphas)), np.nan)
    if bank.recycle:
        recycled = -np.maximum(trial.recycled_errors(clip), low).mean(axis=(0, 2))
    if bank.leave_out:
        blocks = [np.maximum(block, low).mean(axis=(0, 2)) for block in trial.left_out_errors(clip)]
        left_out = -np.mean(blocks, axis=0)
    return recycled, left_out
