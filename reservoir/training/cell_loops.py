"""The loops over time, in NumPy: what a step of each cell computes, and its transpose.

Nothing else in `training` does Python work per time step. Where numba is installed and the job is
worth it, `reservoir._kernels` does the same, compiled.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from reservoir._typing import Array
from reservoir.activations import ACTIVATIONS
from reservoir.activations.table import LEAKY_SLOPE

#: Activations whose slope and curvature follow from the value, below.
FROM_VALUES = ("tanh", "logistic", "relu", "leaky_relu", "softplus", "identity")


def slope(activation: str, value: Array) -> Array:
    """Return f'(z), given the value f(z).

    Parameters
    ----------
    activation : str
        "tanh", "logistic", "relu", "leaky_relu", "softplus" or "identity".
    value : array

    Returns
    -------
    array of the shape of value

    Raises
    ------
    ValueError
        If the activation is another: its derivative is known from z alone.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import slope
    >>> slope("tanh", np.array([0.0, 0.5]))
    array([1.  , 0.75])
    """
    if activation == "tanh":
        return 1 - value * value
    if activation == "logistic":
        return value * (1 - value)
    if activation == "relu":
        return (value > 0).astype(value.dtype)
    if activation == "leaky_relu":
        one = value.dtype.type(1)
        return np.where(value > 0, one, value.dtype.type(LEAKY_SLOPE))
    if activation == "softplus":
        return -np.expm1(-value)
    check_from_values(activation, "slope")
    return np.ones_like(value)


def curvature(activation: str, value: Array) -> Array:
    """Return f''(z), given the value f(z); 0 where f has a corner.

    Parameters
    ----------
    activation : str
        As in `slope`.
    value : array

    Returns
    -------
    array of the shape of value

    Raises
    ------
    ValueError
        If the activation is another.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import curvature
    >>> curvature("tanh", np.array([0.0, 0.5]))
    array([-0.  , -0.75])
    """
    if activation == "tanh":
        return -2 * value * (1 - value * value)
    if activation == "logistic":
        return value * (1 - value) * (1 - 2 * value)
    if activation == "softplus":
        rest = np.exp(-value)
        return rest * (1 - rest)
    check_from_values(activation, "curvature")
    return np.zeros_like(value)


def check_from_values(activation: str, what: str) -> None:
    """Refuse an activation of which a value does not say how steep it is there."""
    if activation not in FROM_VALUES:
        raise ValueError(
            f"activation={activation!r}: its {what} does not follow from its value, as that of "
            f"{', '.join(map(repr, FROM_VALUES))} does. Use one of these."
        )


def simple_forward(
    H: Array,
    V: Array,
    U: Array,
    W: Array,
    activation: str,
    leak: Array | None,
) -> None:
    """Step ``h = (1 - a) h + a f(W h + u)``.

    Parameters
    ----------
    H : array of shape (n_steps + 1, n_sequences, n_units)
        The states; the first row is given, the others are written.
    V : array of shape (n_steps, n_sequences, n_units)
        Written: the values f(z). The rows of H themselves if there is no leak.
    U : array of shape (n_steps, n_sequences, n_units)
        The projected inputs, bias included. Overwritten, here by z.
    W : array of shape (n_units, n_units)
    activation : str
        A name in `reservoir.activations.ACTIVATIONS`.
    leak : array of shape (n_units,) or None
    """
    activate = ACTIVATIONS[activation].function
    W_T = np.ascontiguousarray(W.T)
    keep = np.ones(1) if leak is None else 1 - leak
    room = np.empty_like(U[0])
    for t in range(len(U)):
        z = U[t]
        np.matmul(H[t], W_T, out=room)
        z += room
        activate(z, out=V[t])
        if leak is not None:
            np.multiply(H[t], keep, out=room)
            np.multiply(V[t], leak, out=H[t + 1])
            H[t + 1] += room


def simple_backward(
    D: Array, V: Array, W: Array, activation: str, leak: Array | None, extra: Array | None
) -> Array:
    """Replace the gradient at the states, D, by that at the pre-activations.

    Parameters
    ----------
    D : array of shape (n_steps, n_sequences, n_units)
        In: what enters at each state directly. Out: dL/dz.
    V, W, leak
        As in `simple_forward`.
    activation : str
        As in `slope`.
    extra : array of the shape of D, or None
        What enters at the pre-activations directly.

    Returns
    -------
    array of shape (n_sequences, n_units)
        The gradient at the state before the first step.
    """
    slopes = slope(activation, V)
    if leak is not None:
        slopes *= leak
    return backward_by_slopes(D, slopes, W, leak, extra)


def backward_by_slopes(
    D: Array, slopes: Array, W: Array, leak: Array | None, extra: Array | None
) -> Array:
    """Do as `simple_backward`, given a f'(z) at every step."""
    keep = None if leak is None else 1 - leak
    g = np.zeros_like(D[0])
    through = np.empty_like(g)
    for t in range(len(D) - 1, -1, -1):
        d = D[t]
        d += g
        if keep is not None:
            np.multiply(d, keep, out=through)
        d *= slopes[t]
        if extra is not None:
            d += extra[t]
        np.matmul(d, W, out=g)
        if keep is not None:
            g += through
    return g


def lstm_forward(H: Array, C: Array, TC: Array, G: Array, W: Array, peephole: Array | None) -> None:
    """Step the LSTM; gates in the order input, forget, candidate, output.

    Parameters
    ----------
    H, C : arrays of shape (n_steps + 1, n_sequences, n_units)
        Outputs and cells; the first rows are given.
    TC : array of shape (n_steps, n_sequences, n_units)
        Written: tanh of the cells.
    G : array of shape (n_steps, n_sequences, 4 n_units)
        In: the projected inputs. Out: the gates.
    W : array of shape (4 n_units, n_units)
    peephole : array of shape (3, n_units) or None
        How much of the cell the input, forget and output gate see.
    """
    n = H.shape[2]
    W_T = np.ascontiguousarray(W.T)
    room = np.empty_like(G[0])
    for t in range(len(G)):
        z = G[t]
        np.matmul(H[t], W_T, out=room)
        z += room
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        if peephole is not None:
            i += peephole[0] * C[t]
            f += peephole[1] * C[t]
        both = z[:, : 2 * n]
        expit(both, out=both)
        np.tanh(g, out=g)
        c = C[t + 1]
        np.multiply(f, C[t], out=c)
        c += i * g
        if peephole is not None:
            o += peephole[2] * c
        expit(o, out=o)
        np.tanh(c, out=TC[t])
        np.multiply(o, TC[t], out=H[t + 1])


def lstm_backward(
    D: Array, dC: Array, G: Array, C: Array, TC: Array, W: Array, peephole: Array | None
) -> tuple[Array, Array]:
    """Replace the gates, G, by the gradient at their pre-activations.

    Parameters
    ----------
    D : array of shape (n_steps, n_sequences, n_units)
        What enters at each output directly; used as room.
    dC : array of shape (n_sequences, n_units)
        What enters at the last cell.
    G, C, TC, W, peephole
        As `lstm_forward` left them.

    Returns
    -------
    dh, dc : arrays of shape (n_sequences, n_units)
        The gradients at the state before the first step.
    """
    n = D.shape[2]
    dh, dc = np.zeros_like(D[0]), dC.copy()
    for t in range(len(D) - 1, -1, -1):
        i, f, g, o = (G[t][:, k * n : (k + 1) * n] for k in range(4))
        d = D[t]
        d += dh
        d_o = d * TC[t] * o * (1 - o)
        dc += d * o * (1 - TC[t] ** 2)
        if peephole is not None:
            dc += d_o * peephole[2]
        d_g = dc * i * (1 - g * g)
        d_i = dc * g * i * (1 - i)
        d_f = dc * C[t] * f * (1 - f)
        dc *= f
        if peephole is not None:
            dc += d_i * peephole[0] + d_f * peephole[1]
        i[:], f[:], g[:], o[:] = d_i, d_f, d_g, d_o
        np.matmul(G[t], W, out=dh)
    return dh, dc


def gru_forward(H: Array, G: Array, R: Array, W: Array, bias_recurrent: Array) -> None:
    """Step the GRU; gates in the order reset, update, candidate.

    Parameters
    ----------
    H : array of shape (n_steps + 1, n_sequences, n_units)
    G : array of shape (n_steps, n_sequences, 3 n_units)
        In: the projected inputs. Out: the gates and the candidate.
    R : array of shape (n_steps, n_sequences, n_units)
        Written: what the reset gate lets through of, W h + bias_recurrent.
    W : array of shape (3 n_units, n_units)
    bias_recurrent : array of shape (n_units,)
    """
    n = H.shape[2]
    W_T = np.ascontiguousarray(W.T)
    room = np.empty_like(G[0])
    for t in range(len(G)):
        z = G[t]
        np.matmul(H[t], W_T, out=room)
        gates = z[:, : 2 * n]
        gates += room[:, : 2 * n]
        expit(gates, out=gates)
        reset, update, candidate = (z[:, k * n : (k + 1) * n] for k in range(3))
        np.add(room[:, 2 * n :], bias_recurrent, out=R[t])
        candidate += reset * R[t]
        np.tanh(candidate, out=candidate)
        h = H[t + 1]
        np.subtract(H[t], candidate, out=h)
        h *= update
        h += candidate


def gru_backward(D: Array, G: Array, H: Array, R: Array, W: Array) -> Array:
    """Replace the gates, G, and what was reset, R, by the gradients there.

    Parameters
    ----------
    D : array of shape (n_steps, n_sequences, n_units)
        What enters at each state directly; used as room.
    G, H, R, W
        As `gru_forward` left them. R then holds the gradient at W h + bias_recurrent.

    Returns
    -------
    array of shape (n_sequences, n_units)
        The gradient at the state before the first step.
    """
    n = D.shape[2]
    dh = np.zeros_like(D[0])
    W_gates, W_candidate = W[: 2 * n], W[2 * n :]
    for t in range(len(D) - 1, -1, -1):
        reset, update, candidate = (G[t][:, k * n : (k + 1) * n] for k in range(3))
        d = D[t]
        d += dh
        d_candidate = d * (1 - update) * (1 - candidate * candidate)
        d_update = d * (H[t] - candidate) * update * (1 - update)
        d_reset = d_candidate * R[t] * reset * (1 - reset)
        np.multiply(d, update, out=dh)
        np.multiply(d_candidate, reset, out=R[t])
        reset[:], update[:], candidate[:] = d_reset, d_update, d_candidate
        dh += G[t][:, : 2 * n] @ W_gates
        dh += R[t] @ W_candidate
    return dh
