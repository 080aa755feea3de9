"""Sampling of a sequence of symbols from a network that predicts the next symbol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Network
from reservoir.training.loop_engines import using
from reservoir.training.params import Params


def walk(
    network: Network,
    params: Params,
    n_steps: int,
    *,
    symbol: int,
    state: Array,
    row_of: Callable[[int], Array],
    choices: Callable[[int], Array | None],
    temperature: float,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Draw symbols one by one from a network, and feed each back as the next input.

    `symbol` is the last one that the network has not yet received, `state`, (state_size,), the
    state before it. ``row_of(symbol)`` is its input row, (n_features,), and ``choices(symbol)`` the
    symbols that may follow, ascending, or None for all. At temperature 0, the largest score wins.
    Returns the symbols, (n_steps,), and the state before the last of them.
    """
    drawn = np.empty(n_steps, dtype=np.intp)
    state = state[None]
    with using("numpy"):  # single steps, for which compiled kernels do not pay off
        for k in range(n_steps):
            allowed = choices(symbol)
            x = row_of(symbol)
            trace = network.cell.forward(params, x[None, None], state)
            features = trace.states[1, 0]
            if network.include_input:
                features = np.concatenate([features, x])
            scores = params["coef"] @ features + params["intercept"]
            at = _draw(scores if allowed is None else scores[allowed], temperature, generator)
            symbol = at if allowed is None else int(allowed[at])
            drawn[k], state = symbol, trace.end
    return drawn, state[0].copy()


def _draw(scores: Array, temperature: float, generator: np.random.Generator) -> int:
    """Return the index of a symbol drawn with probability proportional to exp(score / T)."""
    largest = int(np.argmax(scores))
    if temperature == 0:
        return largest
    # in double precision; if the temperature is near 0, all exponentials but the largest vanish
    below = scores.astype(np.float64) - float(scores[largest])
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.exp(below / temperature))
    at = np.searchsorted(sums, generator.random() * sums[-1], side="right")
    # in spite of rounding, do not exceed the last symbol with a positive probability
    return int(min(at, np.searchsorted(sums, sums[-1])))
