"""Several reservoirs joined into one, as groups of units that are not connected to each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from reservoir.dynamics.reservoir import Reservoir


def join_reservoirs(reservoirs: Sequence[Reservoir]) -> Reservoir:
    """Join reservoirs into one, as groups of units that are not connected to each other.

    The joined W is block-diagonal, and all groups receive the same inputs. One run of the joined
    reservoir computes the states of all reservoirs side by side.

    Parameters
    ----------
    reservoirs : sequence of Reservoir
        Reservoirs with the same number of inputs, activation and dtype, and without feedback
        weights.

    Returns
    -------
    Reservoir
        The joined reservoir, whose units are the units of the first reservoir, then those of the
        second, and so on.

    Raises
    ------
    ValueError
        If there are no reservoirs, if they differ in the number of inputs, the activation or the
        dtype, or if one of them has feedback weights.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.building import build_reservoir
    >>> from reservoir.dynamics import join_reservoirs, run
    >>> fast, slow = (build_reservoir(2, 1, leak_rate=a, random_state=0) for a in (1.0, 0.1))
    >>> both = join_reservoirs([fast, slow])
    >>> both.leak_rate
    array([1. , 1. , 0.1, 0.1])
    >>> X = np.ones((5, 1))
    >>> bool(np.allclose(run(both, X), np.hstack([run(fast, X), run(slow, X)])))
    True
    """
    if not len(reservoirs):
        raise ValueError("reservoirs is empty: at least 1 is required.")
    for name in ("n_features", "activation", "dtype"):
        values = [getattr(each, name) for each in reservoirs]
        if any(value != values[0] for value in values):
            raise ValueError(f"reservoirs must have the same {name}; got {values}.")
    if any(each.W_fb is not None for each in reservoirs):
        raise ValueError("reservoirs have feedback weights W_fb, which cannot be joined.")
    if len(reservoirs) == 1:
        return reservoirs[0]
    inputs = [each.W_in for each in reservoirs]
    sparse = any(map(sp.issparse, inputs))
    return Reservoir(
        sp.csr_array(sp.block_diag([sp.coo_array(each.W) for each in reservoirs])),
        sp.csr_array(sp.vstack(inputs)) if sparse else np.vstack(inputs),
        np.concatenate([each.bias for each in reservoirs]),
        leak_rate=np.concatenate(
            [np.broadcast_to(each.leak_rate, each.n_units) for each in reservoirs]
        ),
        activation=reservoirs[0].activation,
    )
