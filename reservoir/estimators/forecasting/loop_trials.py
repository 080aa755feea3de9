"""Closed loops of a fitted model from origins in its data, for comparison with the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._tables import Sequences
from reservoir._tables.frames import take_columns
from reservoir._typing import Array
from reservoir.estimators.forecasting.pipeline import (
    Bounds,
    Layout,
    bounds_of,
    folded,
    in_order_of_fit,
    row_by_row,
    walk,
)

_PENALTY = "alpha"  # the parameter that `Forecaster.readout_path` varies

Places = Sequence[tuple[int, int]]


def run_trials(
    model: Any,
    X: Any,
    y: Any,
    places: Places,
    n_steps: int,
    *,
    clip: Any = False,
    as_in_training: bool = True,
    others: tuple[str, Sequence[float]] | None = None,
) -> Array | None:
    """Run closed loops of a model from rows of its data, in parallel; the rows are in units of y.

    At each origin (sequence, row) of `places`, row > 0, that row is the first input, and the first
    output is compared with y there. The run up to it begins as in `predict`, or `as_in_training`.
    `others` are a parameter and values of it to run loops for. Return (n_steps, n_values or 1,
    n_places, n_outputs), not finite from divergence on, or None if the `others` require training.
    """
    chain = walk(model)
    network, layout = chain.network, Layout(chain)
    readouts: list[Any] | None = [network.readout()]
    if others is not None:
        name, values = others
        known = chain.prefix is not None and name == chain.prefix + _PENALTY
        readouts = network.readout_path(values) if known else None
    if readouts is None:
        return None
    bounds = bounds_of(network, clip)
    if not network.feeds_back:
        layout.check_trained_for_loop()
    sequences = layout.read_inputs("X", X)
    targets = layout.read_targets(y, sequences) if network.feeds_back else None
    states = network.states_at(places, sequences, targets, as_in_training=as_in_training)
    windows = np.stack([sequences.arrays[i][t : t + n_steps] for i, t in places])
    with np.errstate(over="ignore", invalid="ignore"):
        if targets is not None:
            before = np.stack([targets[i][t - 1] for i, t in places])
            rows = _through_weights(layout, readouts, states, before, windows, bounds)
        elif layout.fed_back() is not None:
            rows = _through_affine(layout, readouts, states, windows, bounds)
        else:
            exog = _exogenous(layout, X, sequences, places, n_steps)
            rows = _one_by_one(layout, readouts, states, windows, exog, bounds)
        return _to_units(layout, rows)


def _to_units(layout: Layout, rows: Array) -> Array:
    """Return outputs in the units of the outermost y; rows with non-finite values become NaN."""
    flat = rows.reshape(-1, layout.n_outputs)
    units = np.full(flat.shape, np.nan)
    finite = np.isfinite(flat).all(axis=1)
    if finite.any():
        units[finite] = layout.to_units(flat[finite])
    return units.reshape(rows.shape)


def _through_weights(
    layout: Layout,
    readouts: list[Any],
    states: list[Array],
    before: Array,
    windows: Array,
    bounds: Bounds | None,
) -> Array:
    """Close loops through feedback weights; `before` are the outputs before the origins."""
    network = layout.network
    return network.run_many(
        readouts,
        windows.shape[1],
        initial_states=np.stack(states)[:, : network.n_units],
        initial_outputs=before,
        exog=windows,
        clip=None if bounds is None else bounds.of_targets(layout),
    )


def _through_affine(
    layout: Layout,
    readouts: list[Any],
    states: list[Array],
    windows: Array,
    bounds: Bounds | None,
) -> Array:
    """Close loops through scalers that are folded into the readouts."""
    fed, q = layout.fed_back(), layout.n_outputs
    assert fed is not None
    rows = layout.network.run_many(
        [folded(fed, readout) for readout in readouts],
        windows.shape[1],
        initial_states=np.stack(states),
        initial_outputs=windows[:, 0, :q],
        exog=windows[:, :, q:] if layout.n_exog else None,
        clip=None if bounds is None else bounds.of_inputs(layout),
    )
    return fed.inverse()(rows)


def _one_by_one(
    layout: Layout,
    readouts: list[Any],
    states: list[Array],
    windows: Array,
    exog: Array,
    bounds: Bounds | None,
) -> Array:
    """Close loops through transformers that are not affine maps."""
    nothing = np.zeros(layout.n_outputs)
    rows = np.full((windows.shape[1], len(readouts), len(states), layout.n_outputs), np.nan)
    for k, readout in enumerate(readouts):
        for i, state in enumerate(states):
            outputs, _, n_valid = row_by_row(
                layout, readout, nothing, state, exog[i], bounds, first_input=windows[i, 0]
            )
            rows[:n_valid, k, i] = outputs[:n_valid]
    return rows


def _exogenous(layout: Layout, X: Any, sequences: Sequences, places: Places, n_steps: int) -> Array:
    """Return the exogenous columns of the outermost X, (n_places, n_steps, n_exog)."""
    if not layout.n_exog:
        return np.zeros((len(places), n_steps, 0))
    columns = layout.columns[-layout.n_exog :]

    def of(table: Any) -> Array:
        table = in_order_of_fit("X", table, layout.names)
        return np.asarray(take_columns(table, columns), dtype=np.float64)

    parts = sequences.split(of(X)) if sequences.container == "table" else [of(t) for t in X]
    return np.stack([parts[i][t : t + n_steps] for i, t in places])
