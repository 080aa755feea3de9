"""Trajectories and cycles of networks that a phase portrait runs: closed loops, and driven ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial import KDTree
from scipy.stats import qmc
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.dynamics import Reservoir, run_many
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.pipeline import Layout, walk
from reservoir.estimators.series.esn_forecaster import ESNForecaster
from reservoir.plotting._plot_arguments import finite
from reservoir.stability import LimitCycleError, LoopCycle, find_loop_cycle, sample_attractors

_STEPS = 300  # of a trajectory, or three turns of the longest cycle, but at most _MOST_STEPS
_MOST_STEPS = 3000
_HELD = 300  # rows of equal outputs before a start
_MOST_CYCLES = 4  # of a loop
_FAR = 3.0  # ranges beyond which the rows of a diverging loop are not drawn


class Ran(NamedTuple):
    """Trajectories with the names of their columns, cycles, and their labels in a legend.

    `reached` is the index of the cycle that each trajectory reaches, -1 for none.
    """

    paths: list[Array]
    columns: list[str] | None
    cycles: Any
    labels: list[str] | None = None
    reached: list[int] | None = None
    start: str = "initial state"
    title: str = ""
    is_loop: bool = False
    delayed: bool = False

    def units(self, n_axes: int) -> Any:
        """Return the units that are drawn by default."""
        first = tuple(range(n_axes))
        if self.reached is None or self.delayed or self.paths[0].shape[1] == n_axes:
            return first
        return "pca"

    def is_smooth(self, smooth: bool | None) -> bool:
        """Whether curves are smooth, by default those of loops without a cycle of whole steps."""
        if smooth is None and self.is_loop:
            cycles = self.cycles if isinstance(self.cycles, list) else [self.cycles]
            return not any(getattr(cycle, "on_curve", 1) == 0 for cycle in cycles)
        return bool(smooth)

    def reached_by(self, i: int) -> int:
        """Return the cycle whose colour the i-th start gets: -1, unless there are several."""
        several = isinstance(self.cycles, list) and len(self.cycles) > 1
        return self.reached[i] if several and self.reached is not None else -1


def is_run(source: Any) -> bool:
    """Whether a portrait runs its source."""
    return isinstance(source, (Reservoir, BaseEstimator))


def ran(
    source: Any,
    inputs: Any,
    context: Any,
    n_starts: int,
    cycle: Any,
    *,
    constant: bool,
    delay: int | None,
) -> Ran:
    """Run a network from several starts, and find its cycles unless `cycle` gives them.

    If `constant`, inputs of one dimension are one row, which is repeated.
    """
    n_starts = check_count("n_starts", n_starts)
    if isinstance(source, ESNForecaster):
        raise TypeError(
            "source is ESNForecaster, whose forecasts start at the end of its series. Pass the "
            "rows of a series and of a forecast."
        )
    layout = None if isinstance(source, Reservoir) else _loop(source)
    if delay is not None and (layout is None or layout.n_outputs > 1):
        raise ValueError(f"delay={delay} is for a closed loop of one output. Omit delay.")
    if layout is None:
        if context is not None:
            raise ValueError("context is for a closed loop; this network is driven by inputs.")
        row = constant and np.ndim(inputs) == 1
        return _driven(source, [inputs] if row else inputs, n_starts, cycle)
    if inputs is not None:
        raise ValueError("inputs are for a driven network, and this closed loop has none. Omit it.")
    shown = _closed(source, layout, context, n_starts, cycle)
    return shown if layout.n_outputs > 1 else _delayed(shown, delay)


def _loop(model: Any) -> Layout | None:
    """Return the layout of a model that can run in closed loop; None for one with a reservoir."""
    check_is_fitted(model)
    try:
        layout = Layout(walk(model))
        if not layout.feedback:
            layout.check_trained_for_loop()
        if layout.n_exog:
            raise ValueError(
                f"X of source has {layout.n_exog} exogenous columns, so that its loop depends on "
                "them. Pass the rows of its forecasts."
            )
        return layout
    except (TypeError, ValueError):
        if hasattr(model, "reservoir_"):
            return None
        raise


def _closed(model: Any, layout: Layout, context: Any, n_starts: int, cycle: Any) -> Ran:
    """Run the closed loop of a model, from given contexts or from outputs that were held."""
    contexts, start = _contexts(layout, context, n_starts)
    paths = _forecasts(model, layout, contexts, _STEPS)
    found: list[LoopCycle] = []
    if cycle is None:
        found = _loop_cycles(model, contexts, paths)
        longest = max((each.period for each in found), default=0.0)
        if 3 * longest > _STEPS:
            n_steps = min(int(3 * longest), _MOST_STEPS)
            paths = _forecasts(model, layout, contexts, n_steps)
    columns = [f"output {k}" for k in range(layout.n_outputs)]
    if layout.names is not None:
        columns = [str(layout.names[layout.columns[k]]) for k in range(layout.n_outputs)]
    reached = [next((k for k, c in enumerate(found) if _ends_on(p, c)), -1) for p in paths]
    title = "no cycle found" if cycle is None and not found else ""
    given = None if cycle is False else cycle
    return Ran(paths, columns, found or given, None, reached, start, title, is_loop=True)


def _delayed(shown: Ran, delay: int | None) -> Ran:
    """Return a loop of one output with its outputs one delay and two delays before."""
    cycles = shown.cycles if isinstance(shown.cycles, list) else [shown.cycles]
    if delay is None:
        period = getattr(cycles[0], "period", None)
        d = max(1, round(period / 4)) if period else _uncorrelated(max(shown.paths, key=len)[:, 0])
    else:
        d = check_count("delay", delay)
    rows = [path[:, 0] for path in shown.paths if len(path) > 2 * d]
    if not rows:
        raise ValueError(f"delay={d} is more than half of each trajectory. Give a shorter delay.")
    paths = [np.column_stack([y[2 * d :], y[d:-d], y[: -2 * d]]) for y in rows]
    (name,) = shown.columns or ["output"]
    columns = [name, f"{name}, {d} steps before", f"{name}, {2 * d} steps before"]
    turned = None if shown.cycles is None else [_delayed_cycle(cycle, d) for cycle in cycles]
    reached = [-1] * len(paths)
    return shown._replace(
        paths=paths, columns=columns, cycles=turned, reached=reached, delayed=True
    )


def _uncorrelated(y: Array) -> int:
    """Return the first lag at which the autocorrelation is not positive; 1 for none."""
    y = y[len(y) // 2 :] - y[len(y) // 2 :].mean()
    correlation = np.correlate(y, y, "full")[len(y) - 1 :]
    return max(1, int(np.argmax(correlation <= 0)))


def _delayed_cycle(cycle: Any, d: int) -> Any:
    """Return a cycle of one output with its outputs one delay and two delays before."""
    if not isinstance(cycle, LoopCycle):
        y = np.asarray(cycle, float).reshape(-1, 1)
        return np.hstack([np.roll(y, k * d, axis=0) for k in range(3)])
    n = max(1, round(cycle.period))
    y = cycle.outputs[:n, 0]
    around = CubicSpline([*range(n), cycle.period], [*y, y[0]], bc_type="periodic")
    times = np.arange(len(cycle.outputs))[:, None] - d * np.arange(3)
    return replace(cycle, outputs=around(times % cycle.period))


def _contexts(layout: Layout, context: Any, n_starts: int) -> tuple[list[Any], str]:
    """Return a context for each start, and what a legend calls the starts."""
    if context is not None:
        several = isinstance(context, Sequence) and len(context) and np.ndim(context[0]) == 2
        return list(context) if several else [context], "start: end of context"
    if layout.feedback:
        return [None], "start: end of training"
    low, high = layout.to_units(layout.network.progress.target_range)
    shares = qmc.Halton(layout.n_outputs, scramble=False).random(n_starts + 1)[1:]
    rows = low + shares * (high - low)
    if layout.id_column is not None:
        rows = np.insert(rows, layout.id_column, 0.0, axis=1)
    held: list[Any] = [np.tile(row, (_HELD, 1)) for row in rows]
    if layout.names is not None:
        import pandas as pd

        held = [pd.DataFrame(rows, columns=layout.names) for rows in held]
    return held, "start: held"


def _forecasts(model: Any, layout: Layout, contexts: list[Any], n_steps: int) -> list[Array]:
    """Return the outputs of the loop after each context, with its last row before them."""
    q, paths = layout.n_outputs, []
    low, high = layout.to_units(layout.network.progress.target_range)
    for context in contexts:
        rows = np.asarray(forecast(model, n_steps, context=context), float).reshape(n_steps, q)
        if context is not None and not layout.feedback:
            last = np.asarray(context, float).reshape(len(context), -1)[-1:, layout.columns[:q]]
            rows = np.vstack([last, rows])
        outside = np.abs(rows - (low + high) / 2) > _FAR * (high - low)
        paths.append(rows[: max(1, int(np.argmax(outside.any(axis=1))))] if outside.any() else rows)
    return paths


def _loop_cycles(model: Any, contexts: list[Any], paths: list[Array]) -> list[LoopCycle]:
    """Return the different cycles that are found after some contexts."""
    found: list[LoopCycle] = []
    for context, path in zip(contexts, paths, strict=True):
        if len(found) == _MOST_CYCLES or any(_ends_on(path, cycle) for cycle in found):
            continue
        try:
            cycle = find_loop_cycle(model, context=context)
        except (LimitCycleError, ValueError):  # it has none, or its derivatives are not known
            break
        if not any(_ends_on(cycle.outputs, other) for other in found):
            found.append(cycle)
    return found


def _ends_on(path: Array, cycle: LoopCycle) -> bool:
    """Whether the last row of a path is on a cycle, to within a hundredth or the cycle's steps."""
    rows = cycle.outputs
    steps = np.abs(np.diff(rows, axis=0)).max(initial=0.0)
    near = max(0.01 * np.ptp(np.vstack([path, rows]), axis=0).max(), steps)
    return bool(KDTree(rows).query(path[-1], p=np.inf)[0] <= near)


def _driven(source: Any, inputs: Any, n_starts: int, cycle: Any) -> Ran:
    """Run a network on zeros, or on inputs that are repeated, and observe it once a period."""
    reservoir = as_reservoir(source).astype("float64")
    X = np.zeros((1, reservoir.n_features))
    if inputs is not None:
        X = finite("inputs", inputs, "period", "n_features")
    if reservoir.W_fb is not None:
        raise ValueError(
            "source has feedback weights, through which outputs enter its states. Pass the fitted "
            "model that has them, or trajectories of states."
        )
    period = len(X)
    found = sample_attractors(reservoir, X, n_initial_states=n_starts, random_state=0)
    rounds = max(30, min(_STEPS, _MOST_STEPS // period))
    starts = found.initial_states
    runs = run_many(reservoir, [np.tile(X, (rounds, 1))] * len(starts), initial_states=starts)
    paths = [
        np.vstack([start, states[period - 1 :: period]])
        for start, states in zip(starts, runs, strict=True)
    ]
    title = "" if isinstance(source, Reservoir) else "open reservoir"
    if cycle is not None:
        given = None if cycle is False else cycle
        return Ran(paths, None, given, None, [-1] * len(paths), title=title)
    labels = [
        f"{cycle_label(found.multiples[k] * period, k, found.count)}, multiplier {modulus:.3g}"
        for k, modulus in enumerate(found.moduli)
    ]
    cycles = [states[period - 1 :: period] for states in found.states] or None
    if cycles is None:
        title = ", ".join(filter(None, [title, "no cycle found"]))
    few = labels if 0 < len(labels) <= 4 else None
    return Ran(paths, None, cycles, few, found.labels.tolist(), title=title)


def cycle_label(period: float, k: int, n_cycles: int) -> str | None:
    """Return the legend label of the k-th cycle; more than four cycles share one label."""
    if n_cycles > 4:
        return f"{n_cycles} cycles" if k == 0 else None
    steps = f"{period:.0f}" if period >= 1000 else f"{period:.4g}"
    what = "fixed point" if period == 1 else f"cycle of period {steps}"
    return what if n_cycles == 1 else f"{what}, no. {k + 1}"
