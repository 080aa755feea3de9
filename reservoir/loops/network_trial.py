"""Closed loops of fitted networks: the trial of one with many penalties, and an ensemble's run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.dynamics.radial_units import RadialUnits
from reservoir.loops.loop_design import (
    LoopDesign,
    NetworkPlan,
    Place,
    RadialPlan,
    Trajectories,
)
from reservoir.loops.path_loops import log_errors, run_path_loops
from reservoir.readouts import GramAccumulator, QRAccumulator
from reservoir.readouts.sums import RowSums

Plan = NetworkPlan | RadialPlan
Clip = tuple[Array, Array]
ROUNDING = 1e-15  # smaller errors of standardised rows are rounding errors
_LEAST_FOR_GRAM = 1e-11  # per row: the smallest penalty for which a Gram matrix is accurate enough
_LEEWAY = 1e-9  # rounding error, relative to high - low, by which levels may exceed the bounds


@saved
@dataclass(frozen=True, eq=False)
class Member:
    """A network with one linear readout, which predicts the increment to the next level."""

    source: Any
    coef: Array
    intercept: Array


class NetworkTrial:
    """A network fitted with every penalty, on all rows and on the rows outside each block.

    `alphas` are penalties per row. `fits` has the coefficients, (n_alphas, n_outputs, width), and
    intercepts, (n_alphas, n_outputs), on all rows, then, if `leave_out`, those for each block on
    the rows outside it. `one_step`, (n_alphas,), is the root mean squared one-step error in
    held-out blocks; NaN if not `leave_out`.
    """

    def __init__(
        self,
        plan: Plan,
        seed: int,
        data: Trajectories,
        design: LoopDesign,
        alphas: Array,
        *,
        leave_out: bool,
    ) -> None:
        self.plan, self.seed, self.data, self.design = plan, seed, data, design
        self.alphas = alphas
        self.source = plan.build(data, seed)
        mixing = _mixing(self.source)
        all_digits = min(alphas) < _LEAST_FOR_GRAM
        sums = accumulate(self.source, data, design, all_digits=all_digits, mixing=mixing)
        total = merged(sums)
        self.fits = [_path(total, alphas)]
        self.one_step = np.full(len(alphas), np.nan)
        if leave_out:
            # subtract each block's sums from the total instead of running the network again
            others = [total.without(part, sums[:k] + sums[k + 1 :]) for k, part in enumerate(sums)]
            self.fits += [_path(rest, alphas) for rest in others]
            self.one_step = self._one_step_errors(sums)
        if mixing is not None:
            self.fits = [(coefs @ mixing.T, intercepts) for coefs, intercepts in self.fits]

    def _one_step_errors(self, sums: list[RowSums]) -> Array:
        squares = [
            block.squared_errors(*fit).sum(axis=1)
            for block, fit in zip(sums, self.fits[1:], strict=True)
        ]
        n_values = sum(block.n_samples for block in sums) * self.data.n_outputs
        return np.sqrt(np.sum(squares, axis=0) / n_values)

    def recycled_errors(self, clip: Clip) -> Array:
        """Return log errors of loops in the training rows, (n_steps, n_alphas, n_starts)."""
        return self._errors(0, self.design.recycled, self.design.n_steps, clip)

    def left_out_errors(self, clip: Clip) -> list[Array]:
        """Return log errors of loops in each block, run with the fit on the rows outside it."""
        return [
            self._errors(1 + k, places, self.design.n_steps_left_out(k), clip)
            for k, places in enumerate(self.design.left_out)
        ]

    def _errors(self, which: int, places: list[Place], n_steps: int, clip: Clip) -> Array:
        data, (coefs, intercepts) = self.data, self.fits[which]
        rows = run_path_loops(
            self.source,
            coefs,
            intercepts,
            states_at(self.source, data, places),
            data.input_at(places),
            n_steps,
            exog=(lambda k: data.known_after(places, k)) if data.exog[0].size else None,
            clip=clip,
            increments=True,
        )
        followed = data.followed(places, n_steps)[:, None]
        return log_errors(rows, followed, np.ones(data.n_outputs), low=ROUNDING)

    def member(self, which: int) -> Member:
        """Return the network with the readout for the penalty with index `which`."""
        coefs, intercepts = self.fits[0]
        return Member(self.source, coefs[which], intercepts[which])


def accumulate(
    source: FeatureSource,
    data: Trajectories,
    design: LoopDesign,
    *,
    all_digits: bool,
    mixing: Array | None = None,
) -> list[RowSums]:
    """Run over all trajectories and return each block's sums over rows, without storing states.

    If `mixing`, of shape (width, n_mixed), is passed, the sums are over ``features @ mixing``.
    `all_digits` selects sums that retain full precision for very small penalties.
    """
    kind = QRAccumulator if all_digits else GramAccumulator
    width = source.width if mixing is None else mixing.shape[1]
    sums: list[RowSums] = [kind(width, data.n_outputs) for _ in design.blocks]
    for i, (rows, targets) in enumerate(zip(data.inputs, data.increments, strict=True)):
        wanted = [
            (block, low, high)
            for block, pieces in zip(sums, design.blocks, strict=True)
            for which, low, high in pieces
            if which == i
        ]
        for start, features, _ in source.iter_features(rows, source.initial_state_of(rows[0])):
            features = features if mixing is None else features @ mixing
            for block, low, high in wanted:
                first, last = max(low, start), min(high, start + len(features))
                if first < last:
                    block.update(features[first - start : last - start], targets[first:last])
    return sums


def _mixing(source: FeatureSource) -> Array | None:
    """Return the matrix that mixes radial units before ridge, (width, n_mixed); None otherwise."""
    units = source.source if isinstance(source, LaggedSource) else source
    return units.mixing() if isinstance(units, RadialUnits) else None


def states_at(source: FeatureSource, data: Trajectories, places: Sequence[Place]) -> Array:
    """Return the states before the rows at the given positions, which must be in order."""
    states = np.empty((len(places), source.state_size), source.dtype)
    before, at, state = -1, 0, np.zeros(0)
    for k, (i, t) in enumerate(places):
        if i != before:
            before, at, state = i, 0, source.initial_state_of(data.inputs[i][0])
        if t > at:
            if source.memory is not None and t - at > source.memory:
                at = t - source.memory  # earlier rows have no influence
            for _, _, end in source.iter_features(data.inputs[i][at:t], state):
                state = end
            at = t
        states[k] = state
    return states


def merged(sums: Sequence[RowSums]) -> RowSums:
    """Return a new accumulator that merges several others."""
    total = sums[0].copy()
    for one in sums[1:]:
        total.merge(one)
    return total


def _path(sums: RowSums, alphas: Array) -> tuple[Array, Array]:
    """Return the coefficients and intercepts for all penalties."""
    path = sums.path()
    coefs = [path.coef(alpha * sums.n_samples) for alpha in alphas.tolist()]
    return np.stack(coefs), np.stack([path.intercept(coef) for coef in coefs])


class EnsembleRun(NamedTuple):
    """Results of an ensemble's loops from several starts.

    `levels`, (n_steps, n_starts, n_outputs), are predictions, clipped as they were fed back.
    `states` are those of each member, (n_starts, state_size), after the last step, which precedes
    the last level. `n_free`, (n_starts,), is the number of steps before a level was first clipped,
    or n_steps.
    """

    levels: Array
    states: list[Array]
    n_free: Array


def run_ensemble(
    members: Sequence[Member],
    states: Sequence[Array],
    rows: Array,
    n_steps: int,
    *,
    exog: Array,
    clip: Clip,
    counted: Any = True,
) -> EnsembleRun:
    """Run networks in closed loop with the median of their outputs, from several starts at once.

    `rows`, (n_starts, n_outputs), are the last known levels, and `states` those of each member
    before them, (n_starts, state_size). `exog` is (n_steps, n_starts, n_exog); `clip` bounds the
    levels. `counted`, one bool or (n_outputs,), is False for outputs that `n_free` does not depend
    on, as they cannot exceed their bounds, such as probabilities.
    """
    low, high = clip
    leeway = _LEEWAY * (high - low)
    n_free = np.full(len(rows), n_steps)
    levels = np.empty((n_steps, *rows.shape))
    now = list(states)
    transposed = [np.ascontiguousarray(member.coef.T) for member in members]
    increments = np.empty((len(members), *rows.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_steps):
            given = np.hstack([rows, exog[k]])
            for m, member in enumerate(members):
                features, now[m] = member.source.advance(now[m], given)
                increments[m] = features @ transposed[m] + member.intercept
            predicted = rows + np.nan_to_num(np.median(increments, axis=0))
            rows = np.clip(predicted, low, high)
            clipped = (counted & (np.abs(predicted - rows) > leeway)).any(axis=1)
            n_free[clipped & (n_free > k)] = k
            levels[k] = rows
    return EnsembleRun(levels, now, n_free)
