"""Initial weights computed from data: a reservoir with a fitted readout, and least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import as_generator, check_choice, dense, resolve_washout
from reservoir.building import build_reservoir
from reservoir.training.bptt import Network
from reservoir.training.codes import mean_and_spread
from reservoir.training.least_squares import ls_fit
from reservoir.training.params import Params

__all__ = ["STARTS", "start"]

#: Names of starts computed from data.
STARTS = ("esn", "least_squares")
_N_ITER = 20  # maximum: the iterations stop when the error no longer falls


def start(
    network: Network,
    inputs: Sequence[Array],
    targets: Sequence[Array],
    *,
    scheme: str = "least_squares",
    weights: Sequence[Array] | None = None,
    target: str = "step",
    n_iter: int = _N_ITER,
    tau: float | None = None,
    random_state: Any = None,
    dtype: Any = None,
) -> Params:
    """Return initial weights for training, computed from data.

    The recurrent layer is drawn as a reservoir with spectral radius .9, ten connections per unit,
    and input weights that act on each feature as if it had mean 0 and variance 1 / n_features. The
    weights and biases of gates are 0. The scheme "esn" fits the readout by ridge regression;
    "least_squares" then also fits the recurrent layer (`reservoir.training.least_squares.ls_fit`).

    Parameters
    ----------
    network : Network
        A network whose cell declares a `layer`: `SimpleCell`, `TimedLeakyCell`, `LSTMCell` or
        `GRUCell`.
    inputs : sequence of arrays of shape (n_steps_i, n_features)
    targets : sequence of arrays of shape (n_steps_i, n_outputs), or (n_outputs,) for "last"
    scheme : {"least_squares", "esn"}, default="least_squares"
        Whether all weights are fitted, or only the readout.
    weights : sequence of arrays of shape (n_steps_i,), optional
        Weights of the rows; 0 excludes a row. By default, if there is only one sequence, its first
        rows are excluded as a washout, since the state still depends on the initial zeros: a tenth
        of the rows, and at most 100.
    target : {"step", "last"}, default="step"
        Whether each step has a target, or only the last step.
    n_iter : int, default=20
        Maximal number of iterations of "least_squares".
    tau : float, optional
        Relative distance from the best cross-validation score within which a larger ridge penalty
        is preferred; larger values keep the readout small. By default .05 for squared and absolute
        errors, and .2 for other losses, which the regressions do not minimise.
    random_state : int, Generator, RandomState or None
        Source of the random reservoir.
    dtype : dtype, optional
        The dtype of the weights; by default that of the inputs.

    Returns
    -------
    dict of arrays
        The weights by name.

    Raises
    ------
    ValueError
        If the cell does not declare a layer.

    Examples
    --------
    >>> from reservoir.datasets import narma
    >>> from reservoir.training.bptt import Network, loss_value, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.starts import start
    >>> X, y = narma(1000, random_state=0)
    >>> network, batch = Network(SimpleCell(30), 1, 1), make_batch([X], [y[:, None]], washout=100)
    >>> drawn = start(network, [X], [y[:, None]], scheme="esn", random_state=1)
    >>> fitted = start(network, [X], [y[:, None]], random_state=1)
    >>> loss_value(network, fitted, batch)[0] < 0.5 * loss_value(network, drawn, batch)[0]
    True
    """
    check_choice("scheme", scheme, STARTS)
    generator = as_generator(random_state)
    if weights is None and target == "step" and len(inputs) == 1:
        skip = resolve_washout("auto", [len(inputs[0])])[0]
        weights = [(np.arange(len(inputs[0])) >= skip) * 1.0]
    if tau is None:
        tau = 0.05 if network.loss in ("mse", "mae") else 0.2
    params = _drawn(network, inputs, generator)
    dtype = inputs[0].dtype if dtype is None else dtype
    fitted = ls_fit(
        {name: array.astype(dtype) for name, array in params.items()},
        list(inputs),
        list(targets),
        cell=network.cell,
        output=network.output,
        include_input=network.include_input,
        n_iter=n_iter if scheme == "least_squares" else 0,
        tau=tau,
        target=target,
        sample_weight=None if weights is None else list(weights),
        random_state=generator,
    )
    return fitted.params


def _drawn(network: Network, inputs: Sequence[Array], generator: np.random.Generator) -> Params:
    """Return weights whose recurrent layer is a random reservoir; the other weights are 0."""
    cell, p = network.cell, network.n_channels
    layer = cell.layer()
    if layer is None:
        raise ValueError(
            "A start from data needs a cell that declares a layer, as SimpleCell, LSTMCell and "
            f'GRUCell do; got {type(cell).__name__}. Use an initializer, such as "glorot".'
        )
    reservoir = build_reservoir(
        cell.n_units, p, input_scaling=1 / np.sqrt(p), random_state=generator
    )
    rows = cell.channels(np.concatenate(inputs))
    mean, spread = mean_and_spread(rows, p)
    W_in = reservoir.W_in / np.where(spread > 0, spread, 1.0)
    params = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    params[layer.inputs][layer.rows] = W_in
    params[layer.recurrent][layer.rows] = dense(reservoir.W)
    params[layer.bias][layer.rows] = reservoir.bias - W_in @ mean
    return params
