"""Closed loops of cells, and fixed points of any cell."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.dynamics.closed_loop import loop_limit
from reservoir.dynamics.fed_back import as_hold
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell
from reservoir.training.params import Params

_STEADY_STEPS = 10_000


def run_gated_loop(
    network: Network,
    params: Params,
    readout: Any,
    n_steps: int,
    *,
    initial_state: Array,
    initial_output: Array,
    exog: Array | None = None,
    clip: Any = None,
) -> tuple[Array, Array, int]:
    """Run a network in closed loop; return outputs, final state and the number of valid steps."""
    dtype = params["coef"].dtype
    if not callable(readout):
        coef, intercept = (np.asarray(part, dtype=dtype) for part in readout)

        def predict(features: Array) -> Array:
            return coef @ features + intercept

    else:
        predict = readout
    # clip applies to the fed-back output, not to the returned one
    limit, width = loop_limit(dtype), network.cell.width
    output, state = np.asarray(initial_output, dtype=dtype), np.asarray(initial_state, dtype=dtype)
    outputs = np.empty((n_steps, output.size), dtype)
    hold = as_hold(clip, output.size, dtype)
    for k in range(n_steps):
        fed = hold(output)
        x = fed if exog is None else np.concatenate([fed, exog[k]]).astype(dtype)
        trace = network.cell.forward(params, x[None, None], state[None])
        features = trace.states[1, 0]
        if network.include_input:
            features = np.concatenate([features[:width], x])
        new = np.asarray(predict(features), dtype=dtype)
        if not (np.abs(new) < limit).all():
            outputs[k:] = outputs[k - 1] if k else output
            return outputs, state, k
        outputs[k] = output = new
        state = trace.end[0]
    return outputs, state.copy(), n_steps


def steady_state_of(cell: Cell, params: Params | None, u: Array, *, quiet: bool = False) -> Array:
    """Return the fixed point that a cell reaches from zeros with the constant input u.

    If it reaches none, a warning is given and the result is zeros. If `params` is None, the result
    is zeros, too.
    """
    found = cell.before(u, np.zeros(cell.state_size, u.dtype))
    if params is None or not cell.state_size:
        return found
    # a hundred steps at a time, until one more step changes nothing
    dtype = params["coef"].dtype
    tolerance = 50 * np.finfo(dtype).eps
    even = cell.at_even_steps()
    constant = np.tile(cell.channels(u).astype(dtype, copy=False), (100, 1, 1))
    state = np.zeros((1, even.state_size), dtype)
    for _ in range(_STEADY_STEPS // len(constant)):
        with np.errstate(over="ignore", invalid="ignore"):
            state = even.forward(params, constant, state).end
            following = even.forward(params, constant[:1], state).end
        if not np.isfinite(following).all():
            break
        if np.abs(following - state).max() <= tolerance * max(1.0, np.abs(state).max()):
            found[: even.state_size] = state[0]
            return found
    if not quiet:
        warnings.warn(
            f'initial_state="steady": no fixed point was reached in {_STEADY_STEPS} steps with the '
            "first row as constant input. The run starts from zeros.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
    return found
