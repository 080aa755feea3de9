"""Topologies: the connections between the units of a reservoir, and their weights.

Every function takes the number of units and keyword arguments, and returns an *unscaled* matrix W
of shape ``(n_units, n_units)``, whose row i contains the weights of the inputs to unit i: a
csr_array, or a dense array for `orthogonal`. `reservoir.scaling` scales it to a spectral radius or
a norm. A new topology is one function, composed of the building blocks (`cycle`, `add_jumps`,
`with_weights`, ...) if possible, and one line in `TOPOLOGIES`.

Examples
--------
>>> sorted(TOPOLOGIES)[:4]
['band', 'clustered', 'cycle_with_jumps', 'delay_line']
>>> def lazy_ring(n_units, *, random_state=None):  # a custom topology, as estimators accept it
...     return add_self_loops(cycle(n_units), weight=0.2)
>>> lazy_ring(3).toarray()
array([[0.2, 0. , 1. ],
       [1. , 0.2, 0. ],
       [0. , 1. , 0.2]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reservoir.topologies._connections import (
    add_diagonal,
    add_jumps,
    add_self_loops,
    band,
    cycle,
    dale,
    diagonals,
    orthogonal,
    permutation,
    random_sparse,
    with_signs,
    with_weights,
)
from reservoir.topologies._deterministic import (
    cycle_with_jumps,
    delay_line,
    delay_line_feedback,
    double_cycle,
    forward_connection,
    ring,
    self_loop_cycle,
    self_loop_delay_line,
    toeplitz,
)
from reservoir.topologies._graphs import cluster_labels, clustered, scale_free, small_world

__all__ = [
    "TOPOLOGIES",
    "random_sparse",
    "diagonals",
    "ring",
    "delay_line",
    "delay_line_feedback",
    "self_loop_delay_line",
    "forward_connection",
    "cycle_with_jumps",
    "double_cycle",
    "self_loop_cycle",
    "orthogonal",
    "permutation",
    "small_world",
    "scale_free",
    "clustered",
    "cluster_labels",
    "band",
    "toeplitz",
    "cycle",
    "add_diagonal",
    "add_jumps",
    "add_self_loops",
    "with_weights",
    "with_signs",
    "dale",
]

#: The topologies that estimators accept by name: ``f(n_units, *, random_state=None, ...)``.
TOPOLOGIES: dict[str, Callable[..., Any]] = {
    "random_sparse": random_sparse,
    "diagonals": diagonals,
    "ring": ring,
    "delay_line": delay_line,
    "delay_line_feedback": delay_line_feedback,
    "self_loop_delay_line": self_loop_delay_line,
    "forward_connection": forward_connection,
    "cycle_with_jumps": cycle_with_jumps,
    "double_cycle": double_cycle,
    "self_loop_cycle": self_loop_cycle,
    "orthogonal": orthogonal,
    "permutation": permutation,
    "small_world": small_world,
    "scale_free": scale_free,
    "clustered": clustered,
    "band": band,
    "toeplitz": toeplitz,
}
