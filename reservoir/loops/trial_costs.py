"""The time to try candidate networks, estimated before it begins; progress is weighed by it."""

from __future__ import annotations

import numpy as np

from reservoir.loops.analogue_plan import AnaloguePlan
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_bank import Bank, Plan
from reservoir.loops.radial_plan import RadialPlan

# Measured on one core, in microseconds; other processors change their ratios by less than half.
_START, _PER_STEP = 500, 45  # of each trial, and of each step of loops that run side by side
_PER_SUM, _PER_SOLUTION = 1e-4, 3e-4  # of an entry of the sums and a row; width**3 of a fit
_PER_FEATURE = 1e-2  # of a feature in a step of one loop
_PER_PAIR = 1e-2  # of two rows that may be centres of radial units
_PER_DISTANCE = 2e-3  # of a number that an analogue compares in a step of one loop
_MOST_CENTRES = 2000  # rows among which centres are chosen
_RADIAL = 10  # number of radial units of width 1 that cover one dimension


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
