"""`ls_online_step`: one relaxed least-squares step on a window of recent rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import check_number
from reservoir.training.cells import Cell
from reservoir.training.least_squares._credit import CreditSteps
from reservoir.training.least_squares._iterate import measure, simulate, with_readout
from reservoir.training.least_squares._ls_fit import layer_step
from reservoir.training.least_squares._task import fitted_layer, make_task
from reservoir.training.params import Params


class OnlineStep(NamedTuple):
    """Result of one least-squares step on a window of rows.

    Attributes
    ----------
    params : dict of arrays
        The weights after the step.
    state : array of shape (n_sequences, state_size)
        State at the end of the window, with these weights.
    mse : float
        Mean squared error on the window.
    kept : {"layer", "readout", "none"}
        Extent of the change: all weights, only the readout, or nothing.

    Examples
    --------
    >>> from reservoir.training.least_squares import OnlineStep
    >>> OnlineStep._fields
    ('params', 'state', 'mse', 'kept')
    """

    params: Params
    state: Array
    mse: float
    kept: str


def ls_online_step(
    params: Params,
    X: Any,
    Y: Any,
    *,
    output: str = "identity",
    step: float = 0.1,
    delta: float = 0.05,
    tau: float = 0.05,
    state: Any = None,
    washout: int = 0,
    cell: Cell | None = None,
    include_input: bool = False,
    credit: bool = False,
    shrink: float = 0.0,
    sample_weight: Any = None,
    random_state: RandomState = 0,
) -> OnlineStep:
    """Adapt a network to a window of recent rows by one relaxed least-squares step.

    The recurrent layer is moved a tenth of the way towards its regression on the window, then the
    readout is refitted. The result is compared on the window with the given model, and with the
    given model whose readout is refitted. The best of the three is returned, so that the error on
    the window never rises. If a step of full length is not better than the refitted readout, steps
    of half and a quarter of the length are tried. (If the algorithm printed in [1]_ is repeated on
    short windows, it diverges.)

    Parameters
    ----------
    params, X, Y, output, tau, washout, cell, include_input, sample_weight, random_state
        As in `ls_fit`; X and Y are the window. `params` must include a readout. Gates are not
        opened: if the gates of an LSTM or GRU are not open, the layer-wise step is skipped.
    step : float in (0, 1], default=0.1
        Share of the way towards the weights of the regression.
    delta : float in [0, 1], default=0.05
        As in `ls_fit`. The default is smaller, because states should stay near the previous ones.
    credit : bool, default=False
        Whether a step of `credit_fit` follows, which is more accurate, but takes more than twice as
        long.
    shrink : float in [0, 1], default=0.0
        Multiple of the given weights towards which the penalties of both regressions shrink the
        weights. 0 is ordinary ridge regression, which forgets dynamics that the window does not
        contain. With 1, only the residuals of the given weights are fitted. If these look like
        noise, cross-validation, which then also compares larger penalties, leaves the weights
        almost unchanged. Use 1 if the rows are few or noisy.
    state : array of shape (state_size,) or (n_sequences, state_size), optional
        State before the first row of the window. By default, it is zeros, in which case a washout
        is useful.

    Returns
    -------
    OnlineStep
        The weights, the final state, the error on the window, and the extent of the change.

    Raises
    ------
    ValueError, TypeError
        Under the same conditions as in `ls_fit`, and if `state` has the wrong shape.

    References
    ----------
    .. [1] Bay (2017), section 5.3. The checks of the error are
       added here.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.least_squares import ls_fit, ls_online_step
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(600, 3))
    >>> Y = np.cumsum(X, axis=1) * np.linspace(1, 2, 600)[:, None]  # a gain that drifts
    >>> start = {"W_in": rng.normal(size=(10, 3)), "W": np.zeros((10, 10)), "bias": np.zeros(10)}
    >>> model = ls_fit(start, X[:300], Y[:300])
    >>> new = ls_online_step(model.params, X[300:], Y[300:])
    >>> new.kept, new.state.shape
    ('layer', (1, 10))
    """
    check_number("step", step, low=0.0, high=1.0, low_open=True)
    check_number("delta", delta, low=0.0, high=1.0)
    check_number("tau", tau, low=0.0)
    check_number("shrink", shrink, low=0.0, high=1.0)
    task, weights = make_task(
        params,
        X,
        Y,
        cell=cell,
        output=output,
        include_input=include_input,
        washout=washout,
        sample_weight=sample_weight,
        random_state=random_state,
        start=state,
    )
    # the given weights, and the same weights with the readout refitted
    given = measure(task, weights, simulate(task, weights))
    if given is None:
        raise ValueError("The states that params produce for X diverge. Scale X or W down.")
    prior = {name: shrink * array for name, array in weights.items()} if shrink else None
    refitted = with_readout(task, weights, tau, prior)
    best, kept = given, "none"
    if refitted is not None and refitted.mse < best.mse:
        best, kept = refitted, "readout"
    # a layer-wise and a credit step, each kept if it lowers the error
    layer = fitted_layer(task.cell)
    if layer is not None and _gates_are_open(task.cell, weights):
        lengths = (step, step / 2, step / 4)
        moved = layer_step(task, layer, best, tau=tau, delta=delta, steps=lengths, prior=prior)
        if moved is not None:
            best, kept = moved, "layer"
    if credit:
        moved = CreditSteps(task, tau, prior).step(best)
        if moved is not None:
            best, kept = moved, "layer"
    return OnlineStep(best.params, best.trace.end, best.mse, kept)


def _gates_are_open(cell: Cell, params: Params) -> bool:
    """Return whether the cell with these weights is equivalent to its layer."""
    opened = cell.open_gates(params)
    return all(np.array_equal(opened[name], params[name]) for name in params)
