"""Closed-loop forecasts: outputs fed back as inputs, also through pipelines and searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array, ArrayLike
from reservoir._validation import Sequences, check_count, refuse_dates
from reservoir.dynamics.closed_loop import as_limits
from reservoir.estimators._chain import Affine, Chain, compose, walk
from reservoir.estimators._columns import in_order_of_fit, names_in_fit
from reservoir.estimators._reach import warn_of_leaving, widened

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
    model : fitted ESNRegressor or RNNRegressor, Pipeline, TransformedTargetRegressor or search
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
    chain = walk(model)
    chain.network._check_fitted()
    return _forecast(chain, n_steps, context, exog, None, clip)[0]


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
    network, layout = chain.network, _Layout(chain)
    fence = _fence(network, clip)
    if not network._n_fed_back:
        layout.check_trained_for_loop()
    n_rows = n_steps if context is None else n_steps - 1
    exog = layout.read_exog(exog, n_rows, has_context=context is not None)
    if context is None:
        output, state = layout.end_of_training(exog, initial_state)
        head = np.zeros((0, layout.n_outputs))
    else:
        output, state = layout.listen(context, initial_state)
        head = output[None]
    rows, n_sound = np.zeros((0, layout.n_outputs)), 0
    if n_rows:
        close = _through_weights if network._n_fed_back else _through_inputs
        rows, state, n_sound = close(layout, output, state, exog, fence)
    rows = layout.to_units(np.concatenate([head, rows]))
    warn_of_leaving(rows, layout.reach(), n_sound=len(head) + n_sound)
    rows = rows.astype(network._dtype)
    return (rows[:, 0] if chain.one_dimensional else rows), state


class _Fence(NamedTuple):
    """What is fed back stays between these ends.

    They are given in terms of the network's `inputs`, of its `targets`, or of the `units` of the
    outermost y.
    """

    of: str
    ends: Array

    def hold(self, of: str, rows: Array) -> Array:
        """Return rows inside the ends, if it is these that they are for."""
        return np.clip(rows, *self.ends) if of == self.of else rows


def _fence(network: Any, clip: Any) -> _Fence | None:
    """Return the bounds that `clip` asks for."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return None
    if isinstance(clip, (bool, np.bool_)):
        certificate = getattr(network, "certificate_", None)
        if certificate is not None and certificate.holds:
            fed_back = network._n_fed_back > 0
            ends = certificate.output_range if fed_back else certificate.input_range
            return _Fence("targets" if fed_back else "inputs", ends)
        if not np.isfinite(network._target_range).all():
            raise ValueError(
                "clip=True holds what is fed back near the range of the training targets, and this "
                "network has seen none. Give a range in y's units: clip=(low, high)."
            )
        return _Fence("targets", widened(network._target_range))
    limits = as_limits(clip, network.n_outputs_, np.float64)
    assert limits is not None
    return _Fence("units", np.array([np.broadcast_to(end, network.n_outputs_) for end in limits]))


class _Layout:
    """The columns of the outermost X (ids, outputs, exogenous), and how they reach the network."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.network = chain, chain.network
        self.n_outputs = self.network.n_outputs_
        self.feedback = self.network._n_fed_back > 0
        outermost = chain.inputs[0] if chain.inputs else self.network
        width = getattr(outermost, "n_features_in_", self.network.n_features_in_)
        self.id_column = self._find_ids()
        n_features = width - (self.id_column is not None)
        self.n_exog = n_features - (0 if self.feedback else self.n_outputs)
        self.inputs_map = compose(chain.inputs, width)
        self.units_map = compose(chain.outputs, self.n_outputs, inverse=True)
        self.columns = [column for column in range(width) if column != self.id_column]
        self.names = names_in_fit(outermost)

    def _find_ids(self) -> int | None:
        column = self.network._sequence_column
        if isinstance(column, str):
            return list(self.network.feature_names_in_).index(column)
        return None if column is None else int(column) % self.network.n_features_in_

    def check_trained_for_loop(self) -> None:
        """Refuse a network that was not trained to predict its own next input."""
        self.network._check_loop()
        if self.n_exog < 0:
            raise ValueError(
                f"forecast feeds outputs back as inputs, but y has {self.n_outputs} columns and "
                f"X {self.n_exog + self.n_outputs}: the first columns of X must be the outputs."
            )
        alone = not self.chain.inputs and not self.chain.outputs
        problem = self.network._pairing.problem if alone else self._sampled_problem()
        if problem is not None:
            elsewhere = self._columns_of_outputs()
            if elsewhere is not None:
                raise ValueError(self._say_how_to_reorder(elsewhere))
            raise ValueError(
                "forecast feeds outputs back as inputs and needs y[t] == X[t+1] in training; "
                f"{problem}. Make such pairs with model_selection.make_forecast_pairs. If the "
                "network is a step of a pipeline or of TransformedTargetRegressor, use the "
                "function instead: reservoir.forecast(pipe, n_steps)."
            )

    def _sampled_problem(self) -> str | None:
        """Send a sample of training targets through the chain; compare with what followed them."""
        pairing = self.network._pairing
        mixes = self.inputs_map is None and self.n_exog > 0  # the exogenous values are not kept
        if len(pairing.targets) == 0 or mixes:
            return None
        n_exog_zeros = np.zeros((len(pairing.targets), self.n_exog))
        rows = self.to_inputs(self.to_units(pairing.targets), n_exog_zeros)
        compared = slice(None) if self.inputs_map is None else slice(self.n_outputs)
        rows, followed = rows[:, compared], pairing.inputs[:, compared]
        same = _agree(rows, followed)
        if same.all():
            return None
        i, k = (int(v) for v in np.argwhere(~same)[0])
        return (
            f"in a sample of the training rows a target that the steps turn into the input "
            f"{rows[i, k]:.6g} (column {k}) was followed by {followed[i, k]:.6g}"
        )

    def _columns_of_outputs(self) -> list[int] | None:
        """Return the column of the outermost X that holds each output one step later, if all are.

        None, too, where they are the first ones: then something else is wrong with the pairs.
        """
        pairing = self.network._pairing
        if len(pairing.targets) == 0 or self.inputs_map is None:
            return None
        found: list[int] = []
        for values in self.to_units(pairing.targets).T:
            fed = self.inputs_map.columns(self.columns)(values[:, None])
            same = np.atleast_1d(_agree(fed, pairing.inputs).all(axis=0))
            free = [c for c, ok in zip(self.columns, same, strict=True) if ok and c not in found]
            if not free:
                return None
            found.append(free[0])
        return None if found == self.columns[: self.n_outputs] else found

    def _say_how_to_reorder(self, found: list[int]) -> str:
        rest = [column for column in self.columns if column not in found]
        order = found + rest
        if self.id_column is not None:
            order.insert(self.id_column, self.id_column)
        outermost = self.chain.inputs[0] if self.chain.inputs else self.network
        names = getattr(outermost, "feature_names_in_", None)
        if names is None:
            which, line = ", ".join(map(str, found)), f"X = X[:, {order}]"
        else:
            which = ", ".join(repr(str(names[column])) for column in found)
            line = f"X = X[{[str(names[column]) for column in order]}]"
        several = self.n_outputs > 1
        return (
            "forecast feeds outputs back as inputs: the outputs must be the first columns of X, "
            "in the order of y, exogenous ones last. Here y[t] is X[t+1] in "
            f"column{'s' if several else ''} {which}. Reorder before fit, with exog and context "
            f"in the same order: {line}"
        )

    def to_inputs(self, outputs: Array, exog: Array) -> Array:
        """Return the network's inputs for rows in the units of the outermost X."""
        rows = np.hstack([exog] if self.feedback else [outputs, exog])
        if self.id_column is not None:
            rows = np.insert(rows, self.id_column, 0.0, axis=1)
        if self.inputs_map is not None:
            rows = self.inputs_map(rows)
        else:
            rows = np.asarray(self._transform(rows))
        return rows if self.id_column is None else np.delete(rows, self.id_column, axis=1)

    def _transform(self, rows: Any) -> Any:
        for step in self.chain.inputs:
            rows = step.transform(_with_names(step, rows))
        return rows

    def to_units(self, outputs: Array) -> Array:
        """Return network outputs in the units of the outermost y."""
        rows = np.asarray(outputs, dtype=np.float64)
        if self.units_map is not None:
            return self.units_map(rows)
        for step in self.chain.outputs:
            rows = np.reshape(step.inverse_transform(rows), (len(rows), -1))
        return rows

    def ends_of_targets(self, ends: Array) -> Array:
        """Return a range in the units of the outermost y as one of the network's own targets."""
        if self.units_map is not None:
            return np.sort(self.units_map.inverse()(ends), axis=0)  # a scale may be negative
        # a step need not take infinity, nor numbers that it has no inverse for: its own range will
        reach = self.reach()
        open_ended = np.isinf(ends)
        rows = np.concatenate([np.where(open_ended, reach, ends), reach])
        with np.errstate(divide="ignore"):  # of a logarithm zero is the end
            for step in reversed(self.chain.outputs):
                rows = np.reshape(step.transform(rows), (len(rows), -1))
        turned = rows[2] > rows[3]
        low, high = np.where(open_ended, np.where(turned, -1, 1) * ends, rows[:2])
        return np.where(turned, [high, low], [low, high])

    def reach(self) -> Array:
        """Return the range of the training targets in the units of the outermost y."""
        reach = self.network._target_range
        if not self.chain.outputs or not np.isfinite(reach).all():
            return reach
        # the ends alone would do, were it not for steps that mix the outputs
        rows = self.to_units(np.concatenate([reach, self.network._pairing.targets]))
        return np.array([rows.min(axis=0), rows.max(axis=0)])

    def read_exog(self, exog: Any, n_rows: int, *, has_context: bool) -> Array:
        """Return exogenous rows of the right shape, or say which shape is right."""
        wanted = (n_rows, self.n_exog)
        why = " (row 0 of the forecast comes from the context)" if has_context else ""
        if exog is None:
            if self.n_exog and n_rows:
                raise ValueError(
                    f"X has {self.n_exog} exogenous columns: give exog of shape {wanted}{why}."
                )
            return np.zeros(wanted)
        if self.names is not None and self.n_exog:
            names = [self.names[column] for column in self.columns[-self.n_exog :]]
            exog = in_order_of_fit("exog", exog, names)
        refuse_dates("exog", exog)
        try:
            rows = np.asarray(exog, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"exog must hold numbers, shape {wanted}: {error}.") from error
        rows = rows[:, None] if rows.ndim == 1 and self.n_exog == 1 else rows
        if rows.shape != wanted:
            raise ValueError(f"exog must have shape {wanted}{why}; got {rows.shape}.")
        if not np.isfinite(rows).all():
            raise ValueError("exog contains NaN or infinity.")
        return rows

    def end_of_training(self, exog: Array, initial_state: Any) -> tuple[Array, Array]:
        """Return the last target and the state to go on from without context."""
        network = self.network
        if not network._continues:
            raise ValueError(
                "After training on several sequences there is no one state to go on from: "
                "forecast needs context=, the rows to listen to first."
            )
        target = network._last_output
        if np.isnan(target).any():
            raise ValueError(
                "The last training target is NaN, so there is no first input: give context=."
            )
        if initial_state is None:
            return target, network.state_
        row = self.to_inputs(self.to_units(target[None]), exog[:1])
        one = Sequences((row.astype(network._dtype),), "table")
        return target, network._start_states(initial_state, one)[0]

    def listen(self, context: Any, initial_state: Any) -> tuple[Array, Array]:
        """Run over the context; return its last output and the state there."""
        context = in_order_of_fit("context", context, self.names)
        rows = context
        try:
            for step in self.chain.inputs:
                rows = step.transform(rows)
            sequences = self.network._read(rows, reset=False)
        except ValueError as error:
            raise ValueError(f"In context: {error}") from error
        if self.inputs_map is None:
            self._check_memoryless(context, rows)
        if len(sequences) != 1:
            raise ValueError(f"context must be one sequence; got {len(sequences)}.")
        outputs, states = self.network._outputs(sequences, initial_state)
        return outputs[0][-1].astype(np.float64), states[0]

    def _check_memoryless(self, context: Any, rows: Any) -> None:
        last = context.iloc[-1:] if hasattr(context, "iloc") else np.asarray(context)[-1:]
        for step in self.chain.inputs:
            last = step.transform(last)
        if not np.allclose(np.asarray(last)[0], np.asarray(rows)[-1]):
            names = ", ".join(type(step).__name__ for step in self.chain.inputs)
            raise ValueError(
                f"A step before the network ({names}) gives a row another value when it stands "
                "alone than among its neighbours, so rows cannot be fed back one by one."
            )


def _agree(rows: Array, followed: Array) -> Array:
    near = 1e-5 * followed.std(axis=0) + 1e-6 * np.abs(followed)
    return np.abs(rows - followed) <= near


def _with_names(step: Any, rows: Any) -> Any:
    """Give rows the feature names that a step was fitted with, if it was."""
    names = getattr(step, "feature_names_in_", None)
    if names is None or hasattr(rows, "columns"):
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _through_inputs(
    layout: _Layout, output: Array, state: Array, exog: Array, fence: _Fence | None
) -> tuple[Array, Array, int]:
    """Close the loop through the inputs; return network outputs, end state and sound steps."""
    if layout.inputs_map is None or layout.units_map is None:
        return _row_by_row(layout, output, state, exog, fence)
    network, q = layout.network, layout.n_outputs
    inputs_map = layout.inputs_map.columns(layout.columns)
    from_units = inputs_map.columns(slice(0, q))
    fed = from_units.after(layout.units_map)
    clip = None
    if fence is not None:
        to_inputs = {"targets": fed, "units": from_units}.get(fence.of)
        ends = fence.ends[:, :q] if to_inputs is None else to_inputs(fence.ends)
        clip = tuple(np.sort(ends, axis=0))  # a scale may be negative
    rows, state, n_sound = network._run_loop(
        _folded(fed, network._loop_readout()),
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
    layout: _Layout, output: Array, state: Array, exog: Array, fence: _Fence | None
) -> tuple[Array, Array, int]:
    """Close the loop through transformers that are no affine maps, one row at a time."""
    network, outputs = layout.network, [output]
    readout = network._loop_readout()

    def hold(of: str, rows: Array) -> Array:
        return rows if fence is None else fence.hold(of, rows)

    def following() -> Array:
        """Return the network's input after the last output; the very last is never used."""
        row = exog[min(len(outputs), len(exog)) - 1]
        said = hold("units", layout.to_units(hold("targets", outputs[-1][None])))
        return layout.to_inputs(said, row[None])[0]

    def step(features: Array) -> Array:
        new = readout(features) if callable(readout) else readout[0] @ features + readout[1]
        outputs.append(np.asarray(new, dtype=np.float64))
        return following()

    _, state, n_sound = network._run_loop(
        step,
        len(exog),
        initial_state=state,
        initial_output=following(),
        clip=tuple(fence.ends) if fence is not None and fence.of == "inputs" else None,
    )
    rows = np.array(outputs[1 : 1 + n_sound]).reshape(n_sound, output.size)
    last = np.repeat(np.array(outputs[n_sound])[None], len(exog) - n_sound, axis=0)
    return np.concatenate([rows, last]), state, n_sound


def _through_weights(
    layout: _Layout, output: Array, state: Array, exog: Array, fence: _Fence | None
) -> tuple[Array, Array, int]:
    """Close the loop through feedback weights; all inputs are exogenous."""
    network, n_units = layout.network, layout.network.reservoir_.n_units
    ends = None
    if fence is not None:
        ends = layout.ends_of_targets(fence.ends) if fence.of == "units" else fence.ends
    rows, end, n_sound = network._run_loop(
        network._loop_readout(),
        len(exog),
        initial_state=state[:n_units],
        initial_output=state[n_units:],
        exog=layout.to_inputs(np.zeros((len(exog), 0)), exog),
        clip=None if ends is None else tuple(ends),
    )
    return rows.astype(np.float64), np.concatenate([end, rows[-1]]), n_sound
