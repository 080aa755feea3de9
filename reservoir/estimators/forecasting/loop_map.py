"""The closed loop of a fitted model as a map of points, for `reservoir.stability`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir.estimators.forecasting.contexts import Contexts
from reservoir.estimators.forecasting.pipeline import Layout, walk
from reservoir.estimators.forecasting.row_steps import Affine, affine, folded
from reservoir.stability.loop_of import Loop, loop_of


class LoopMap(Loop):
    """The closed loop of a model, as a map of points: the state, then what is fed back into it.

    Scalers around the network are affine maps, and enter the readout.
    """

    def __init__(self, model: Any, context: Any) -> None:
        check_is_fitted(model)
        try:
            layout = Layout(walk(model))
        except TypeError as error:
            raise TypeError(
                f"Exponents and cycles need the closed loop of one network. {error}"
            ) from error
        network = layout.network
        if not network.feeds_back:
            layout.check_trained_for_loop()
        if layout.n_exog:
            raise ValueError(
                "Exponents and cycles need a closed loop without other inputs, but X has "
                f"{layout.n_exog} exogenous columns, which forecast takes as exog. Fit a model "
                "whose X has only the columns that it predicts."
            )
        coef, intercept = _linear(network.readout())
        output, state = _beginning(layout, context)
        if network.feeds_back:  # outputs are fed back as they are; the state ends with the last one
            self.start = state.astype(float)
            self._to_outputs: Callable[[Array], Array] = layout.to_units
        else:
            fed = _fed_back(layout)
            coef, intercept = folded(fed, (coef, intercept))
            self._to_outputs = lambda rows: layout.to_units(fed.inverse()(rows))
            self.start = np.concatenate([state, fed(output)]).astype(float)
        self._coef, self._intercept = np.asarray(coef, float), np.asarray(intercept, float)
        self._size = self.start.size - layout.n_outputs
        self._step = network.tangent()

    def tangent(self, point: Array, differences: Array) -> tuple[Array, Array]:
        """Return the point after a step, and the differences of points."""
        rows = np.empty((1 + differences.shape[1], len(point)))
        rows[0], rows[1:] = point, differences.T
        features, states = self._step(rows[:, : self._size], rows[:, self._size :])
        rows[:, : self._size] = states
        np.matmul(features, self._coef.T, out=rows[:, self._size :])
        rows[0, self._size :] += self._intercept
        return rows[0], rows[1:].T

    def outputs(self, points: Array) -> Array:
        """Return the outputs at points, in the units of y."""
        return self._to_outputs(points[:, self._size :])


def _beginning(layout: Layout, context: Any) -> tuple[Array, Array]:
    """Return the last output before the loop, and the state after it."""
    if context is None:
        return layout.end_of_training(np.zeros((1, 0)), None)
    sequences = Contexts.read(layout, context).sequences
    if len(sequences) != 1:
        raise ValueError(
            f"context must be one sequence, from which one loop starts; got {len(sequences)} "
            "sequences. Pass one of them."
        )
    outputs, (state,) = layout.network.warm_up(sequences[0], None)
    return outputs[0][-1], state


def _fed_back(layout: Layout) -> Affine:
    """Return the map from outputs to the next inputs; raise if it is not affine."""
    fed = layout.fed_back()
    if fed is None:
        steps = (*layout.chain.inputs, *layout.chain.outputs)
        names = [type(step).__name__ for step in steps if affine(step, 1) is None]
        raise ValueError(
            "Exponents and cycles need affine maps between output and next input; "
            f"{', '.join(names)} is none. Use StandardScaler, RobustScaler, MaxAbsScaler, or "
            "MinMaxScaler without clip."
        )
    return fed


def _linear(readout: Any) -> Any:
    """Return a readout (coef, intercept); raise if it is a function."""
    if callable(readout):
        raise ValueError(
            "Exponents and cycles need a linear readout, but the readout of this model is a "
            "function of the features, whose derivative is not known. Use the built-in readout of "
            'echo state networks, or output="identity" of trained networks.'
        )
    return readout


@loop_of.register
def _(model: BaseEstimator, context: Any) -> Loop:
    return LoopMap(model, context)
