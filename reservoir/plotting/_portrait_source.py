"""Trajectories and cycles of networks that a phase portrait runs: closed loops, and driven ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.stats import qmc
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.dynamics import Reservoir, run_many
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.pipeline import Layout, in_order_of_fit, walk
from reservoir.estimators.series.esn_forecaster import ESNForecaster
from reservoir.plotting._plot_arguments import finite
from reservoir.stability import LimitCycleError, LoopCycle, find_loop_cycle, sample_attractors

_STEPS, _MOST_STEPS = 300, 3000  # of a trajectory, and of one that has reached no cycle by then
_HELD = 300  # rows of equal outputs before a start
_MOST_CYCLES = 4  # of a loop
_FAR = 3.0  # ranges beyond which the rows of a diverging loop are not drawn


class Ran(NamedTuple):
    """Trajectories with the names of their columns, cycles, and their labels in a legend.

    Columns without names are numbered, as `what`. Rows of trajectories are `step` rows of the
    cycles apart. `reached` is the index of the cycle that each trajectory reaches, -1 for none.
    """

    paths: list[Array]
    columns: list[str] | None
    cycles: Any
    labels: list[str] | None = None
    reached: list[int] | None = None
    start: str = "initial state"
    title: str = ""
    what: str = "output"
    step: int = 1

    @property
    def is_run(self) -> bool:
        """Whether the trajectories are those of a network that is run."""
        return self.reached is not None

    def name_of(self, column: int) -> str:
        """Return the name of a column."""
        return self.columns[column] if self.columns else f"{self.what} {column}"

    def units(self, n_axes: int) -> Any:
        """Return the units that are drawn by default."""
        whole = not self.is_run or self.paths[0].shape[1] == n_axes
        return tuple(range(n_axes)) if whole else "pca"

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
    if layout is None:
        if context is not None:
            raise ValueError("context is for a closed loop; this network is driven by inputs.")
        row = constant and np.ndim(inputs) == 1
        return _driven(source, [inputs] if row else inputs, n_starts, cycle)
    if inputs is not None:
        raise ValueError("inputs are for a driven network, and this closed loop has none. Omit it.")
    return _closed(source, layout, context, n_starts, cycle)


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
        if hasattr(model, "reservoir_") and getattr(model.reservoir_, "W_fb", None) is None:
            return None
        raise


def _closed(model: Any, layout: Layout, context: Any, n_starts: int, cycle: Any) -> Ran:
    """Run the closed loop of a model, from given contexts or from outputs that were held."""
    contexts, start = _contexts(layout, context, n_starts)
    paths = [_outputs(model, layout, each, _STEPS) for each in contexts]
    found = [] if cycle is not None else _loop_cycles(model, layout, contexts, paths)
    reached = [next((k for k, c in enumerate(found) if _ends_on(p, c)), -1) for p in paths]
    title = "no cycle found" if cycle is None and not found else ""
    given = None if cycle is False else cycle
    return Ran(paths, layout.output_names, found or given, None, reached, start, title)


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


def _outputs(model: Any, layout: Layout, context: Any, n_steps: int) -> Array:
    """Return the outputs of the loop after a context, with its last row before them."""
    q = layout.n_outputs
    low, high = layout.to_units(layout.network.progress.target_range)
    rows = np.asarray(forecast(model, n_steps, context=context), float).reshape(n_steps, q)
    if context is not None and not layout.feedback:
        table = np.asarray(in_order_of_fit("context", context, layout.names), float)
        rows = np.vstack([table.reshape(len(table), -1)[-1:, layout.columns[:q]], rows])
    outside = np.abs(rows - (low + high) / 2) > _FAR * (high - low)
    return rows[: max(1, int(np.argmax(outside.any(axis=1))))] if outside.any() else rows


def _loop_cycles(
    model: Any, layout: Layout, contexts: list[Any], paths: list[Array]
) -> list[LoopCycle]:
    """Return the different cycles after some contexts; run on the paths that reach none of them."""
    found: list[LoopCycle] = []
    for i, context in enumerate(contexts):
        if len(paths[i]) < _STEPS or any(_ends_on(paths[i], cycle) for cycle in found):
            continue
        if found:
            paths[i] = _outputs(model, layout, context, _MOST_STEPS)
            if len(found) == _MOST_CYCLES or any(_ends_on(paths[i], cycle) for cycle in found):
                continue
        try:
            cycle = find_loop_cycle(model, context=context)
        except (LimitCycleError, ValueError):  # it has none, or its derivatives are not known
            break
        if not any(_ends_on(cycle.outputs, other) for other in found):
            found.append(cycle)
        if not _ends_on(paths[i], cycle):
            paths[i] = _outputs(model, layout, context, _MOST_STEPS)
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
    if reservoir.n_units == 1:
        raise ValueError("source has one unit, whose portrait is a line. Use plotting.cobweb.")
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
    shown = Ran(paths, None, None, title=title, what="state of unit", step=period)
    if cycle is not None:
        given = None if cycle is False else cycle
        return shown._replace(cycles=given, reached=[-1] * len(paths))
    labels = [
        f"{cycle_label(found.multiples[k] * period, k, found.count)}, multiplier {modulus:.3g}"
        for k, modulus in enumerate(found.moduli)
    ]
    if not found.count:
        title = ", ".join(filter(None, [title, "no cycle found"]))
    return shown._replace(
        cycles=found.states or None,
        labels=labels if 0 < found.count <= 4 else None,
        reached=found.labels.tolist(),
        title=title,
    )


def cycle_label(period: float, k: int, n_cycles: int) -> str | None:
    """Return the legend label of the k-th cycle; more than four cycles share one label."""
    if n_cycles > 4:
        return f"{n_cycles} cycles" if k == 0 else None
    steps = f"{period:.0f}" if period >= 1000 else f"{period:.4g}"
    what = "fixed point" if period == 1 else f"cycle of period {steps}"
    return what if n_cycles == 1 else f"{what}, no. {k + 1}"
