"""Closed-loop forecasts: outputs fed back as inputs, also through pipelines and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import Sequences
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count
from reservoir.estimators.forecasting.contexts import Contexts
from reservoir.estimators.forecasting.pipeline import (
    Bounds,
    Chain,
    Layout,
    bounds_of,
    through_inputs,
    through_weights,
    walk,
)
from reservoir.estimators.parameters import with_other_names
from reservoir.estimators.progress import warn_of_leaving

__all__ = ["forecast"]


@with_other_names
def forecast(
    model: Any,
    n_steps: int,
    *,
    context: Any = None,
    exog: Any = None,
    clip: bool | tuple[ArrayLike, ArrayLike] | Callable[[Array], ArrayLike] = False,
) -> Any:
    """Forecast in closed loop with a network, alone or inside scikit-learn's wrappers.

    Finds the network inside Pipeline, TransformedTargetRegressor, fitted searches (their best
    estimator) and FrozenEstimator, in any nesting. Outputs that are fed back pass through the same
    scalers as the training data: scalers that act on each column separately are folded into the
    loop as one affine map, whereas any other transformer is called for each row.

    A network may also consist of steps: the states of `ReservoirTransformer`, several of them (deep
    reservoirs) or parts of FeatureUnion and ColumnTransformer, follow the loop row by row, to a
    linear model, another regressor or an echo state network at the end.

    Parameters
    ----------
    model : fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline,
        TransformedTargetRegressor or search that contains one, or a Pipeline of
        `ReservoirTransformer` and a regressor
    n_steps : int
        Number of rows to forecast.
    context : array of shape (n_context, n_features), or sequences, optional
        Rows to warm up on, in the units of the model's X. By default the forecast continues from
        the end of training. Columns of a DataFrame, also of `exog`, are matched by name if the
        model was fitted on names. Several sequences, in any container that `fit` accepts, lead to
        one forecast each, the same as a call with this sequence alone returns.
    exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
        Exogenous inputs, the last columns of X, in the same units. With several contexts there is
        one such table for each, in the same kind of container.
    clip : bool, (low, high) or callable, default=False
        True clips the feedback to the range of the training targets, widened by its width on both
        sides, or to the range that the network's ``certificate_`` covers (``bias="stable"``). A
        pair (low, high) of numbers, or of arrays of shape (n_outputs,), is a range in the units of
        the model's y. A function receives the outputs of a step, (n_outputs,), in these units, and
        returns values of the same shape that are fed back instead: a threshold, for instance, or a
        projection. The returned rows are the unclipped outputs.

    Returns
    -------
    array of shape (n_steps,) or (n_steps, n_outputs), or sequences
        In the units of the model's y; with several contexts in their container.

    Warns
    -----
    RuntimeWarning
        If a row leaves the range of the training targets by more than ten times its width, or the
        loop diverges; the message gives the step, and with several contexts the sequence. Rows
        after it are unreliable.

    Raises
    ------
    TypeError
        If there is no network with a `forecast` at the end of the chain.
    ValueError
        If the model was not trained to predict its next input (the message gives the columns of the
        outputs if they are not the first), its outputs are the probabilities of
        ``output="softmax"``, the shape or a column name of an argument does not match, a
        transformer depends on other rows, a ReservoirTransformer was fitted without targets,
        n_steps < 1, or `clip` is not a range.

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


class ClosedLoop:
    """Definition of the method `forecast` of the regressors of both families of networks."""

    @with_other_names
    def forecast(
        self: Any,
        n_steps: int,
        *,
        context: Any = None,
        exog: Any = None,
        initial_state: Any = None,
        return_state: bool = False,
        clip: Any = False,
    ) -> Any:
        """Forecast by feeding outputs back as inputs.

        The estimator must have been trained to predict its next input: ``y[t] == X[t+1]`` in the
        first n_outputs columns of X (`reservoir.model_selection.make_forecast_pairs` makes such
        pairs); further columns are exogenous. For an echo state network with ``feedback=True`` all
        columns of X are exogenous.

        Parameters
        ----------
        n_steps : int
            Number of rows to forecast.
        context : array of shape (n_context, n_features), or sequences, optional
            Rows that warm the model up first, starting where `predict` would. Row 0 of the
            forecast is then the prediction of `predict` for the last of them. Without context the
            forecast continues from the end of training: row 0 is the step after the last target.
            The columns of a DataFrame are matched by name, if X had names in fit. Several
            sequences, in any container that `fit` accepts, lead to one forecast each, the same as
            a call with this sequence alone returns.
        exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
            Exogenous inputs. Row k is used together with the input that yields row k of the
            forecast, or row k + 1 if there is a context. The columns of a DataFrame are matched by
            name, as in `context`. With several contexts there is one such table for each, in the
            same kind of container.
        initial_state : str or array, optional
            As in `predict`: one for all contexts, or a row for each. Without a context the default
            is the state at the end of training.
        return_state : bool, default=False
            Whether to return the state as well.
        clip : bool, (low, high) or callable, default=False
            True clips the outputs that are fed back to the range of the training targets, widened
            by its own width on both sides. For an echo state network with ``bias="stable"`` the
            range is the one that `certificate_` covers: the proof then also covers the reservoir in
            the loop, since its state depends on its inputs only. A pair (low, high), of numbers or
            arrays of shape (n_outputs,), is a range in the units of y. A function takes the outputs
            of a step, of shape (n_outputs,) and in the units of y, and returns the values to feed
            back instead, of the same shape: a threshold, for instance, or a projection. The rows
            returned are the outputs before clipping. The loop as a whole may still oscillate, as a
            signal generator must.

        Returns
        -------
        y : array of shape (n_steps,) or (n_steps, n_outputs), as y in fit; or sequences
            With several contexts in their container.
        state : array of the shape of `state_`, or (n_sequences, n_units)
            Only if `return_state`; with several contexts a row for each.

        Raises
        ------
        ValueError
            If the estimator was not trained to predict its next input, its outputs are the
            probabilities of ``output="softmax"``, shapes or names of columns do not match, n_steps
            < 1, or `clip` is not a range, or returns another shape or numbers that are not finite.
            For a pipeline with a scaler use ``reservoir.forecast(pipeline, n_steps)``, which
            applies the scaler.

        Warns
        -----
        RuntimeWarning
            If a row leaves the range of the training targets (over all calls of partial_fit) by
            more than ten times its width, or the loop diverges; the rows after a divergence repeat
            the last output before it. The message names the step, and with several contexts the
            sequences; later rows are unreliable.
        """
        self._check_fitted()
        rows, state = _forecast(walk(self), n_steps, context, exog, initial_state, clip)
        return (rows, state) if return_state else rows


def _forecast(
    chain: Chain, n_steps: int, context: Any, exog: Any, initial_state: Any, clip: Any
) -> tuple[Any, Array]:
    """Close a loop after each context, and return its rows and the states at their ends."""
    n_steps = check_count("n_steps", n_steps, size=3)
    network, layout = chain.network, Layout(chain)
    bounds = bounds_of(network, clip)
    # all checks before anything runs
    contexts = Contexts.read(layout, context)
    if not network.feeds_back:
        layout.check_trained_for_loop()
    given = contexts.exog(layout, exog, n_steps if context is None else n_steps - 1)
    specs = contexts.initial_states(initial_state)
    # one loop after the other, so that each has the bits that it has alone
    before = contexts.sequences or (None,)
    loops = [_loop(layout, *each, bounds) for each in zip(before, given, specs, strict=True)]
    outcomes = [(rows, n_valid) for rows, _, n_valid in loops]
    names, clipped = contexts.names, bounds is not None
    warn_of_leaving(outcomes, layout.reach(), names=names, clipped=clipped)
    made = [rows.astype(network.dtype) for rows, _, _ in loops]
    made = [rows[:, 0] if chain.one_dimensional else rows for rows in made]
    return contexts.restore(layout, made), contexts.stacked([state for _, state, _ in loops])


def _loop(
    layout: Layout, before: Sequences | None, exog: Array, spec: Any, bounds: Bounds | None
) -> tuple[Array, Array, int]:
    """Close one loop, after a context or the end of training, in the units of the user's y."""
    network = layout.network
    # the first output and the state before the loop
    if before is None:
        output, state = layout.end_of_training(exog, spec)
        head = np.zeros((0, layout.n_outputs))
    else:
        outputs, (state,) = network.warm_up(before, spec)
        output = outputs[0][-1].astype(np.float64)
        head = output[None]
    # the loop itself runs in the units of the network
    rows, n_valid = np.zeros((0, layout.n_outputs)), 0
    if len(exog):
        close = through_weights if network.feeds_back else through_inputs
        rows, state, n_valid = close(layout, output, state, exog, bounds)
    return layout.to_units(np.concatenate([head, rows])), state, len(head) + n_valid
