"""Closed-loop forecasts: outputs fed back as inputs, also through pipelines and searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count
from reservoir.dynamics.closed_loop import as_limits
from reservoir.estimators._reach import warn_of_leaving, widened
from reservoir.estimators.forecasting._chain import Affine, Chain, walk
from reservoir.estimators.forecasting._column_layout import Layout
from reservoir.estimators.forecasting.forecaster import Forecaster

__all__ = ["forecast"]


def forecast(
    model: Any,
    n_steps: int,
    *,
    context: ArrayLike | None = None,
    exog: ArrayLike | None = None,
    clip: bool | tuple[ArrayLike, ArrayLike] = False,
) -> Array:
    """Forecast in closed loop with a network, alone or inside scikit-learn's wrappers.

    Walks Pipeline, TransformedTargetRegressor, fitted searches (their best estimator) and
    FrozenEstimator, in any nesting, down to the network. What is fed back passes through the
    same scalers as the training data did: scalers that work column by column are folded into the
    loop as one affine map, any other transformer is called row by row.

    Parameters
    ----------
    model : fitted ESNRegressor, NVARRegressor or RNNRegressor, or what holds one: Pipeline,
        TransformedTargetRegressor or search
    n_steps : int
        Rows to forecast.
    context : array of shape (n_context, n_features), optional
        Rows to listen to first, in the units of the model's own X. Without it the forecast goes
        on from the end of training. Columns of a DataFrame, as of `exog`, are matched by name, if
        the model was fitted on names.
    exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
        Exogenous inputs, the last columns of X, in the same units.
    clip : bool or (low, high), default=False
        True holds what is fed back in the range of the training targets, widened by its own width
        on both sides, or in the range that the network's ``certificate_`` covers
        (``bias="stable"``). A pair, numbers or arrays of shape (n_outputs,), is a range in the
        units of the model's own y. The rows returned are not clipped.

    Returns
    -------
    array of shape (n_steps,) or (n_steps, n_outputs)
        In the units of the model's own y.

    Warns
    -----
    RuntimeWarning
        If a row leaves the range of the training targets by more than ten times its width, or the
        loop diverges altogether; the message names the step. Nothing after it is to be trusted.

    Raises
    ------
    TypeError
        If there is no network with a `forecast` at the end of the chain.
    ValueError
        If the model was not trained to predict its next input (the message says in which columns
        the outputs stand, if they are not the first), its outputs are the probabilities of
        ``output="softmax"``, a shape or a name does not fit, a step has memory of other rows,
        n_steps < 1, or `clip` is no range.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from reservoir import ESNRegressor, forecast
    >>> series = 20 + 5 * np.sin(0.3 * np.arange(600))
    >>> pipe = make_pipeline(StandardScaler(), ESNRegressor(100, random_state=0))
    >>> pipe = pipe.fit(series[:499, None], series[1:500])
    >>> rows = forecast(pipe, 100)
    >>> bool(abs(rows - series[500:]).max() < 0.1)
    True
    """
    check_is_fitted(model)
    return _forecast(walk(model), n_steps, context, exog, None, clip)[0]


def forecast_network(
    network: Any, n_steps: int, *, context: Any, exog: Any, initial_state: Any, clip: Any
) -> tuple[Array, Array]:
    """Forecast with a network that has nothing around it; return rows and end state."""
    return _forecast(walk(network), n_steps, context, exog, initial_state, clip)


def _forecast(
    chain: Chain, n_steps: int, context: Any, exog: Any, initial_state: Any, clip: Any
) -> tuple[Array, Array]:
    """Find the first output and the state to go on from, then close the loop."""
    n_steps = check_count("n_steps", n_steps)
    network, layout = chain.network, Layout(chain)
    bounds = _bounds_of(network, clip)
    # what can be refused, before anything runs
    if not network.feeds_back:
        layout.check_trained_for_loop()
    n_rows = n_steps if context is None else n_steps - 1
    exog = layout.read_exog(exog, n_rows, has_context=context is not None)
    # where the loop begins: at the end of training, or behind the context
    if context is None:
        output, state = layout.end_of_training(exog, initial_state)
        head = np.zeros((0, layout.n_outputs))
    else:
        output, state = layout.listen(context, initial_state)
        head = output[None]
    # the loop itself, in the network's units, and back
    rows, n_sound = np.zeros((0, layout.n_outputs)), 0
    if n_rows:
        close = _through_weights if network.feeds_back else _through_inputs
        rows, state, n_sound = close(layout, output, state, exog, bounds)
    rows = layout.to_units(np.concatenate([head, rows]))
    warn_of_leaving(rows, layout.reach(), n_sound=len(head) + n_sound)
    rows = rows.astype(network.dtype)
    return (rows[:, 0] if chain.one_dimensional else rows), state


class _Bounds(NamedTuple):
    """What is fed back stays between these ends.

    They are given in terms of the network's `inputs`, of its `targets`, or of the `units` of the
    outermost y.
    """

    of: str
    ends: Array

    def hold(self, of: str, rows: Array) -> Array:
        """Return rows inside the ends, if it is these that they are for."""
        return np.clip(rows, *self.ends) if of == self.of else rows


def _bounds_of(network: Forecaster, clip: Any) -> _Bounds | None:
    """Return the bounds that `clip` asks for."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return None
    if isinstance(clip, (bool, np.bool_)):
        certificate = network.certificate
        if certificate is not None and certificate.holds:
            fed_back = network.feeds_back
            ends = certificate.output_range if fed_back else certificate.input_range
            return _Bounds("targets" if fed_back else "inputs", ends)
        if not np.isfinite(network.progress.target_range).all():
            raise ValueError(
                "clip=True holds what is fed back near the range of the training targets, and this "
                "network has seen none. Give a range in y's units: clip=(low, high)."
            )
        return _Bounds("targets", widened(network.progress.target_range))
    limits = as_limits(clip, network.n_outputs, np.float64)
    assert limits is not None
    return _Bounds("units", np.array([np.broadcast_to(end, network.n_outputs) for end in limits]))


def _through_inputs(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: _Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through the inputs; return network outputs, end state and sound steps."""
    if layout.inputs_map is None or layout.units_map is None:
        return _row_by_row(layout, output, state, exog, bounds)
    network, q = layout.network, layout.n_outputs
    inputs_map = layout.inputs_map.columns(layout.columns)
    from_units = inputs_map.columns(slice(0, q))
    fed = from_units.after(layout.units_map)
    # bounds in whatever units, as those of the inputs
    clip = None
    if bounds is not None:
        to_inputs = {"targets": fed, "units": from_units}.get(bounds.of)
        ends = bounds.ends[:, :q] if to_inputs is None else to_inputs(bounds.ends)
        clip = tuple(np.sort(ends, axis=0))  # a scale may be negative
    rows, state, n_sound = network.run(
        _folded(fed, network.readout()),
        len(exog),
        initial_state=state,
        initial_output=fed(output),
        exog=inputs_map.columns(slice(q, None))(exog) if layout.n_exog else None,
        clip=clip,
    )
    return fed.inverse()(rows.astype(np.float64)), state, n_sound


def _folded(fed: Affine, readout: Any) -> Any:
    """Return a readout of what is fed back: outputs behind the scalers."""
    if callable(readout):
        return lambda features: fed(readout(features))
    coef, intercept = readout
    return fed.scale[:, None] * coef, fed(intercept)


def _row_by_row(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: _Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through transformers that are no affine maps, one row at a time."""
    network, outputs = layout.network, [output]
    readout = network.readout()

    def hold(of: str, rows: Array) -> Array:
        return rows if bounds is None else bounds.hold(of, rows)

    def following() -> Array:
        """Return the network's input after the last output; the very last is never used."""
        row = exog[min(len(outputs), len(exog)) - 1]
        said = hold("units", layout.to_units(hold("targets", outputs[-1][None])))
        return layout.to_inputs(said, row[None])[0]

    def step(features: Array) -> Array:
        new = readout(features) if callable(readout) else readout[0] @ features + readout[1]
        outputs.append(np.asarray(new, dtype=np.float64))
        return following()

    _, state, n_sound = network.run(
        step,
        len(exog),
        initial_state=state,
        initial_output=following(),
        clip=tuple(bounds.ends) if bounds is not None and bounds.of == "inputs" else None,
    )
    rows = np.array(outputs[1 : 1 + n_sound]).reshape(n_sound, output.size)
    last = np.repeat(np.array(outputs[n_sound])[None], len(exog) - n_sound, axis=0)
    return np.concatenate([rows, last]), state, n_sound


def _through_weights(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: _Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through feedback weights; all inputs are exogenous."""
    network, n_units = layout.network, layout.network.n_units
    ends = None
    if bounds is not None:
        ends = layout.ends_of_targets(bounds.ends) if bounds.of == "units" else bounds.ends
    rows, end, n_sound = network.run(
        network.readout(),
        len(exog),
        initial_state=state[:n_units],
        initial_output=state[n_units:],
        exog=layout.to_inputs(np.zeros((len(exog), 0)), exog),
        clip=None if ends is None else tuple(ends),
    )
    return rows.astype(np.float64), np.concatenate([end, rows[-1]]), n_sound
