"""The reservoir and its state update.

`Reservoir` is an immutable record of the weights; the functions of this package run it over a
series, take single steps, and linearise a step. The state update with leak rate a is::

    x[t] = (1 - a) x[t-1] + a f(W x[t-1] + W_in u[t] + bias + W_fb y[t-1])
"""

from reservoir.dynamics._many import iter_many, run_many
from reservoir.dynamics.closed_loop import run_closed_loop
from reservoir.dynamics.joined import join_reservoirs
from reservoir.dynamics.open_loop import iter_states, run
from reservoir.dynamics.pooling import Pooling, pool_many
from reservoir.dynamics.reservoir import Reservoir, step, step_jacobian

__all__ = [
    "Pooling",
    "Reservoir",
    "iter_many",
    "iter_states",
    "join_reservoirs",
    "pool_many",
    "run",
    "run_closed_loop",
    "run_many",
    "step",
    "step_jacobian",
]
