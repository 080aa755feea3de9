"""Banks of networks: which ones are tried on a series, under which penalties, by which score.

All of it was chosen by resampling: networks were tried on the systems of Gilpin (2021) in windows,
lengths, sampling rates and noises of their own, and the banks grown one network at a time by what
they add to the mean of log2(1 + valid Lyapunov times). `examples/benchmarks/chaos.py` measures
what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Clip, NetworkTrial, Plan
from reservoir.loops.radial_plan import RadialPlan

_UNITS, _FEW_UNITS, _MANY_UNITS = 150, 80, 500
_SHARE = 0.3  # units per row, at most
_PART_SEEN = 10  # part of the rows that radial units see at once, at most: one of so many
_MEDIUM = 1500  # rows from which loops and the washout are longer
_LONG = 3000  # rows from which the winner of a bank grows
_FEWEST_LEARNED = 20  # rows behind the washout that are needed in any case
_N_STARTS, _N_BLOCKS, _STARTS_PER_BLOCK = 8, 4, 6
_HIDDEN = 2.5  # times the error of a network with memory: what rows by themselves do not tell
_EXACT = 1e-4  # error of a step, likewise, up to which some rows of the past tell the next one
_NOISY = 5e-3  # error of a step, in standard deviations, from which loops are judged as noisy

# Networks: spectral radius, input scaling, bias and, if there is a leak, its rate.
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
# Radial units: width, memory in steps, lags and the steps between them.
_RADIAL = (
    (0.5, 6.0, 24, 1),
    (0.7, 16.0, 32, 1),
    (0.7, np.inf, 8, 2),
    (1.4, 2.0, 12, 1),
    (0.7, np.inf, 2, 1),
)
_CLEAN_PENALTIES = (1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-25)
_LONG_PENALTIES = (1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-25, 1e-30)
_NOISE_PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
_RADIAL_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 2e-11)
_HIDDEN_PENALTIES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15, 1e-18)
_PROBE_PENALTIES = (1e-1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-16)


class Diagnosis(NamedTuple):
    """What networks have found out about a series.

    Attributes
    ----------
    observed : {"all", "some"}
        Whether a row tells the next one, or rows of the past are needed as well.
    noise : float
        Error of one step that the best of a few networks makes in rows that it has not seen, in
        standard deviations: noise, and what networks of this size cannot tell.
    """

    observed: str
    noise: float


@dataclass(frozen=True)
class Bank:
    """Networks to be tried, and how one of them is chosen.

    Attributes
    ----------
    plans : tuple of NetworkPlan, or of RadialPlan
    alphas : tuple of float
        Penalties per row.
    least_error : float
        In standard deviations; smaller errors of a loop say no more.
    leave_out : bool
        Whether loops in blocks that the fit has not seen count.
    recycle : bool
        Whether loops within the rows that were fitted count. They say nothing of networks that
        can follow whatever they were fitted on.
    grows : bool
        Whether the best network gets more units where there are rows for them.
    """

    plans: tuple[Plan, ...]
    alphas: tuple[float, ...]
    least_error: float
    leave_out: bool
    recycle: bool = True
    grows: bool = False


def diagnose(data: Trajectories, seed: int) -> Diagnosis:
    """Compare a network without memory with some that have one."""
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
    # errors of rounding are alike, whatever they are
    hidden = errors[0] > _HIDDEN * max(least, 1e-9)
    return Diagnosis("some" if hidden else "all", least)


def bank_for(data: Trajectories, diagnosis: Diagnosis) -> Bank:
    """Return the bank for such data."""
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
        return Bank(plans, _NOISE_PENALTIES, 1e-3, leave_out=True)
    plans = plans_of(_CLEAN, n_units, "square")
    return Bank(plans, _CLEAN_PENALTIES, 1e-14, leave_out=False, grows=True)


def bank_of(plans: Sequence[NetworkPlan], data: Trajectories, diagnosis: Diagnosis) -> Bank:
    """Return a bank of a user's own networks, which keep their size."""
    if diagnosis.observed == "some":
        return Bank(tuple(plans), _HIDDEN_PENALTIES, 1e-2, leave_out=False)
    return replace(bank_for(data, diagnosis), plans=tuple(plans), grows=False)


def grown(bank: Bank, plan: Plan, data: Trajectories) -> tuple[Bank, Plan]:
    """Return the winner of a bank as large as the data can bear, and how it is judged."""
    if isinstance(plan, RadialPlan) or not bank.grows or data.n_rows < _LONG:
        return bank, plan
    plan = replace(plan, n_units=_MANY_UNITS, augment=None)
    return replace(bank, alphas=_LONG_PENALTIES), plan


def plans_of(
    networks: Sequence[tuple[float, ...]], n_units: int, augment: str | None, **lags: int
) -> tuple[NetworkPlan, ...]:
    """Return plans for (radius, input scaling, bias[, leak rate]) and a size."""
    plans = []
    for radius, scaling, bias, *leak in networks:
        plan = NetworkPlan(n_units, radius, scaling, bias, augment=augment, **lags)
        plans.append(replace(plan, leak_rate=leak[0]) if leak else plan)
    return tuple(plans)


def radial_plans(n_rows: int) -> tuple[RadialPlan, ...]:
    """Return plans for radial units and series of so many rows in a row."""
    most = max(2, n_rows // _PART_SEEN)
    return tuple(
        RadialPlan(_MANY_UNITS, width, memory, max(2, min(n_lags, most // skip)), skip)
        for width, memory, n_lags, skip in _RADIAL
    )


def most_units(n_rows: int) -> int:
    """Return how many units so many rows can tell apart."""
    return max(10, min(_UNITS, int(_SHARE * n_rows)))


def design_of(
    data: Trajectories,
    plans: Sequence[Plan],
    *,
    leave_out: bool,
    n_steps: int | None = None,
) -> LoopDesign:
    """Return where loops begin, and how long they are."""
    n_rows, longest = data.n_rows, max(map(len, data.levels))
    past = max((plan.n_lags - 1) * plan.skip for plan in plans)
    washout = max(min(20 if n_rows < _MEDIUM else 50, longest // 10), past)
    automatic = int(np.clip(longest // 5, 5, 100 if n_rows < _MEDIUM else 150))
    _check_past_fits(past, automatic if n_steps is None else 0, longest)
    if n_steps is None:
        n_steps = automatic
    elif n_steps > longest - 1 - washout:
        raise ValueError(
            f"horizon={n_steps} leaves no place for a loop: networks are tried on {longest} rows "
            f"in a row, of which the first {washout} are washout. It must be at most "
            f'{longest - 1 - washout}; "auto" takes a fifth of the rows.'
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
    """Refuse networks that see so far back that hardly a row is left to learn from."""
    most = longest - 1 - max(2 * n_steps, _FEWEST_LEARNED)
    if past > max(most, 0):
        raise ValueError(
            f"A network of search sees {past} rows back ((n_lags - 1) * skip), and networks are "
            f"tried on {longest} rows in a row. That may be {max(most, 0)} at most: lower n_lags "
            "or skip, or give a longer series."
        )


def scores_of(trial: NetworkTrial, bank: Bank, clip: Clip) -> tuple[Array, Array]:
    """Return minus the mean log error of loops under each penalty: greater is better.

    The first is of loops within the rows that were fitted, the second of loops in blocks left out;
    NaN where the bank does not ask for them.
    """
    low = np.log10(bank.least_error)
    recycled, left_out = np.full((2, len(bank.alphas)), np.nan)
    if bank.recycle:
        recycled = -np.maximum(trial.recycled_errors(clip), low).mean(axis=(0, 2))
    if bank.leave_out:
        blocks = [np.maximum(block, low).mean(axis=(0, 2)) for block in trial.left_out_errors(clip)]
        left_out = -np.mean(blocks, axis=0)
    return recycled, left_out
