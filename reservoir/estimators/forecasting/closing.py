"""Closing a loop: bounds of the feedback, and the ways from outputs to next inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.fed_back import as_limits, changed
from reservoir.estimators.forecasting.forecaster import Forecaster
from reservoir.estimators.forecasting.pipeline import Affine, Layout
from reservoir.estimators.progress import widened

Rows = Callable[[Array], Array]


class Bounds(NamedTuple):
    """Bounds of the feedback: two ends to which it is clipped, or a function of it.

    Ends, of shape (2, n_outputs), are in terms of the network's `inputs`, of its `targets`, or in
    the `units` of the outermost y; a function always takes and returns values in these units.
    """

    of: str
    ends: Array | Callable[[Array], Any]

    def apply(self, of: str, rows: Array) -> Array:
        """Return bounded rows if the bounds are in terms of `of`, else the rows unchanged."""
        if of != self.of:
            return rows
        if callable(self.ends):
            return np.array([changed(self.ends, row) for row in rows])
        return np.clip(rows, *self.ends)

    def of_inputs(self, layout: Layout) -> Any:
        """Return `clip` in terms of the network's inputs, by affine maps."""
        fed, of_units, q = layout.fed_back(), layout.inputs_map, layout.n_outputs
        assert fed is not None
        assert of_units is not None
        to_inputs = {"targets": fed, "units": of_units.columns(layout.columns[:q])}.get(self.of)
        if callable(self.ends):
            assert to_inputs is not None
            return self._between(to_inputs.inverse().__call__, to_inputs.__call__)
        ends = self.ends[:, :q] if to_inputs is None else to_inputs(self.ends)
        low, high = np.sort(ends, axis=0)  # a scale may be negative
        return low, high

    def of_targets(self, layout: Layout) -> Any:
        """Return `clip` in terms of the outputs fed back through feedback weights."""
        if callable(self.ends):
            return self._between(layout.to_units, layout.to_targets)
        low, high = layout.ends_of_targets(self.ends) if self.of == "units" else self.ends
        return low, high

    def _between(self, to_units: Rows, back: Rows) -> Callable[[Array], Array]:
        """Return the function of one row, between the maps to its units and back."""
        return lambda row: back(self.apply(self.of, to_units(row[None])))[0]


def bounds_of(network: Forecaster, clip: Any) -> Bounds | None:
    """Return the bounds that the parameter `clip` defines; None for none."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return None
    if callable(clip):
        return Bounds("units", clip)
    if isinstance(clip, (bool, np.bool_)):
        certificate = network.certificate
        if certificate is not None and certificate.holds:
            fed_back = network.feeds_back
            ends = certificate.output_range if fed_back else certificate.input_range
            return Bounds("targets" if fed_back else "inputs", ends)
        if not np.isfinite(network.progress.target_range).all():
            raise ValueError(
                "clip=True keeps the feedback near the range of the training targets, and this "
                "network has none. Give a range in y's units: clip=(low, high)."
            )
        return Bounds("targets", widened(network.progress.target_range))
    limits = as_limits(clip, network.n_outputs, np.float64)
    assert limits is not None
    return Bounds("units", np.array([np.broadcast_to(end, network.n_outputs) for end in limits]))


def through_inputs(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through the inputs; return outputs, end state and number of finite steps."""
    network, q = layout.network, layout.n_outputs
    fed = layout.fed_back()
    if fed is None or layout.inputs_map is None:
        return row_by_row(layout, network.readout(), output, state, exog, bounds)
    inputs_map = layout.inputs_map.columns(layout.columns)
    rows, state, n_valid = network.run(
        folded(fed, network.readout()),
        len(exog),
        initial_state=state,
        initial_output=fed(output),
        exog=inputs_map.columns(slice(q, None))(exog) if layout.n_exog else None,
        clip=None if bounds is None else bounds.of_inputs(layout),
    )
    return fed.inverse()(rows.astype(np.float64)), state, n_valid


def folded(fed: Affine, readout: Any) -> Any:
    """Return a readout of the feedback: the outputs after the scalers."""
    if callable(readout):
        return lambda features: fed(readout(features))
    coef, intercept = readout
    return fed.scale[:, None] * coef, fed(intercept)


def row_by_row(
    layout: Layout,
    readout: Any,
    output: Array,
    state: Array,
    exog: Array,
    bounds: Bounds | None,
    first_input: Array | None = None,
) -> tuple[Array, Array, int]:
    """Close the loop through transformers that are not affine maps, one row at a time.

    `first_input` is the input of the first step; by default computed from the last output.
    """
    network, outputs = layout.network, [output]

    def bounded(of: str, rows: Array) -> Array:
        return rows if bounds is None else bounds.apply(of, rows)

    def following() -> Array:
        """Return the network's input after the last output; that after the final step is unused."""
        row = exog[min(len(outputs), len(exog)) - 1]
        units = bounded("units", layout.to_units(bounded("targets", outputs[-1][None])))
        return layout.to_inputs(units, row[None])[0]

    def step(features: Array) -> Array:
        new = readout(features) if callable(readout) else readout[0] @ features + readout[1]
        outputs.append(np.asarray(new, dtype=np.float64))
        return following()

    _, state, n_valid = network.run(
        step,
        len(exog),
        initial_state=state,
        initial_output=following() if first_input is None else first_input,
        clip=bounds.ends if bounds is not None and bounds.of == "inputs" else None,
    )
    rows = np.array(outputs[1 : 1 + n_valid]).reshape(n_valid, output.size)
    last = np.repeat(np.array(outputs[n_valid])[None], len(exog) - n_valid, axis=0)
    return np.concatenate([rows, last]), state, n_valid


def through_weights(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through feedback weights; all inputs are exogenous."""
    network, n_units = layout.network, layout.network.n_units
    rows, end, n_valid = network.run(
        network.readout(),
        len(exog),
        initial_state=state[:n_units],
        initial_output=state[n_units:],
        exog=layout.to_inputs(np.zeros((len(exog), 0)), exog),
        clip=None if bounds is None else bounds.of_targets(layout),
    )
    return rows.astype(np.float64), np.concatenate([end, rows[-1]]), n_valid
