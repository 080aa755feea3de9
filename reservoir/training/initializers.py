"""Random initial weights of a network.

The cell describes each array of weights (`reservoir.training.cells.Weight`). Gates are blocks of
rows, and each block is drawn as a separate matrix, to which fan-in and fan-out, orthogonality and
the spectral radius refer. To add a scheme, write a function that draws one matrix, and add an entry
to `INITIALIZERS`.

Examples
--------
>>> from reservoir.training.bptt import Network
>>> from reservoir.training.cells import LSTMCell
>>> from reservoir.training.initializers import initialize
>>> weights = Network(LSTMCell(2), n_features=3, n_outputs=1).weights()
>>> params = initialize(weights, "orthogonal", random_state=0)
>>> W_forget = params["W"][2:4]
>>> (W_forget @ W_forget.T).round(12) + 0.0
array([[1., 0.],
       [0., 1.]])
>>> params["bias"]
array([0., 0., 1., 1., 0., 0., 0., 0.])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_choice, check_count, check_number, dense
from reservoir.scaling import scale_to_spectral_radius
from reservoir.topologies import orthogonal, random_sparse
from reservoir.training.cells import Weight
from reservoir.training.params import Params

__all__ = ["INITIALIZERS", "Scheme", "initialize"]

# Each name is assigned a child generator in this order, whether or not a cell has such a weight.
_ORDER = ("W_in", "W", "bias", "coef", "intercept", "peephole", "bias_recurrent")
# Roles of weights with one of these names that are described by a bare shape.
_ROLES = {"W": "recurrent", "coef": "readout", "peephole": "diagonal"}
_GATED = ("W_in", "W", "bias")
_LSTM_GATES, _FORGET = 4, 1  # input, forget, candidate, output


class Options(NamedTuple):
    """Parameters of the schemes."""

    gain: float
    spectral_radius: float
    in_degree: float
    scale: float


Draw: TypeAlias = Callable[[tuple[int, int], np.random.Generator, Options], Array]


def _glorot(shape: tuple[int, int], rng: np.random.Generator, options: Options) -> Array:
    fan_out, fan_in = shape
    bound = options.gain * np.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, shape)


def _he(shape: tuple[int, int], rng: np.random.Generator, options: Options) -> Array:
    return options.gain * np.sqrt(2.0 / shape[1]) * rng.standard_normal(shape)


def _normal(shape: tuple[int, int], rng: np.random.Generator, options: Options) -> Array:
    return options.scale * rng.standard_normal(shape)


def _orthogonal(shape: tuple[int, int], rng: np.random.Generator, options: Options) -> Array:
    rows, columns = shape
    return options.gain * orthogonal(max(shape), random_state=rng)[:rows, :columns]


def _spectral(shape: tuple[int, int], rng: np.random.Generator, options: Options) -> Array:
    if shape[0] != shape[1]:
        raise ValueError(
            f'init="spectral" needs square recurrent matrices, but the cell has a recurrent matrix '
            f'of shape {shape}. Use "orthogonal", or layers of equal size.'
        )
    W = random_sparse(shape[0], in_degree=options.in_degree, random_state=rng)
    return np.asarray(scale_to_spectral_radius(dense(W), options.spectral_radius))


class Scheme(NamedTuple):
    """An initialization scheme: functions that draw the weights of a network.

    Attributes
    ----------
    recurrent : callable, ``recurrent(shape, generator, options) -> matrix``
        Function that draws the block of recurrent weights of a gate; `options` contains parameters
        of `initialize`.
    dense : callable, ``dense(shape, generator, options) -> matrix``
        Function that draws any other matrix: the block of input weights of a gate, or the readout.
    vector : callable or None
        Function that draws a bias or the peepholes, as a matrix with one row. None: these are
        zeros. Weights that change time constants are always initialised to zeros.
    """

    recurrent: Draw
    dense: Draw
    vector: Draw | None = None


#: The schemes that estimators accept by name.
INITIALIZERS: dict[str, Scheme] = {
    "glorot": Scheme(_glorot, _glorot),
    "he": Scheme(_he, _he),
    "orthogonal": Scheme(_orthogonal, _glorot),
    "spectral": Scheme(_spectral, _glorot),
    "normal": Scheme(_normal, _normal, _normal),
}


def initialize(
    weights: Mapping[str, Weight | tuple[int, ...]],
    scheme: str = "glorot",
    *,
    n_gates: int = 1,
    gain: float = 1.0,
    spectral_radius: float = 1.1,
    in_degree: float = 15,
    scale: float = 0.1,
    forget_bias: float = 1.0,
    dtype: Any = np.float64,
    random_state: RandomState = None,
) -> Params:
    """Draw initial weights of a recurrent network.

    The schemes are:

    "glorot" [1]_
        For each gate, uniform with variance 2 / (fan_in + fan_out).
    "he" [2]_
        For each gate, normal with variance 2 / fan_in; intended for rectifiers.
    "orthogonal" [3]_
        Each gate's recurrent matrix is a uniformly random orthogonal matrix. If it is not square
        (between layers of different sizes), its rows or columns are orthonormal. Other matrices are
        drawn as with "glorot".
    "spectral" [4]_
        Each gate's recurrent matrix has `in_degree` connections per unit and spectral radius
        `spectral_radius`. Other matrices are drawn as with "glorot" ([4]_ adapts them to the
        problem). A recurrent matrix that is not square raises an error, since it has no spectral
        radius.
    "normal"
        All weights and biases are drawn from N(0, scale^2).

    Biases and peepholes are 0 with all schemes except "normal".

    Parameters
    ----------
    weights : mapping of str to Weight
        Descriptions of the weights by name, as returned by `Network.weights`. The parts of a
        composite cell, whose weights have the same prefix before the dot, are drawn one after the
        other. A bare shape is interpreted by its name, as a weight of a simple cell or, with
        `n_gates`, of an LSTM or a GRU.
    scheme : {"glorot", "he", "orthogonal", "spectral", "normal"}, default="glorot"
        The initialization scheme.
    n_gates : int, default=1
        Number of gates of ``W_in``, ``W`` and ``bias``, if these are bare shapes; 4 means an LSTM,
        whose second gate is the forget gate.
    gain : float, above 0, default=1.0
        Factor by which matrices are multiplied with "glorot", "he" and "orthogonal".
    spectral_radius : float, at least 0, default=1.1
        Spectral radius of each recurrent matrix with "spectral".
    in_degree : int or float in (0, 1], default=15
        Number of connections per unit with "spectral", or their density; an integer is capped at
        `n_units`.
    scale : float, at least 0, default=0.1
        Standard deviation with "normal".
    forget_bias : float, default=1.0
        Number that is added to the bias of a forget gate, such as the LSTM's, so that cells keep
        their state until the gate is trained [5]_.
    dtype : {float64, float32}, default=float64
        The dtype of the weights, which are drawn in float64 and rounded.
    random_state : None, int, Generator or RandomState, default=None
        Seed. Each array is drawn from a separate generator, so that a change of one array does not
        affect the other arrays.

    Returns
    -------
    dict of arrays
        The weights by name, in the order of `weights`.

    Raises
    ------
    TypeError, ValueError
        If the scheme is unknown or does not fit the shape of a recurrent matrix, if a number is
        outside its range, or if the number of rows of a matrix is not a multiple of `n_gates`.

    References
    ----------
    .. [1] X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward
       neural networks", AISTATS 2010, eq. (16).
    .. [2] K. He, X. Zhang, S. Ren and J. Sun, "Delving deep into rectifiers", ICCV 2015, eq. (10).
    .. [3] A. Saxe, J. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of
       learning in deep linear neural networks", ICLR 2014.
    .. [4] I. Sutskever, J. Martens, G. Dahl and G. Hinton, "On the importance of initialization
       and momentum in deep learning", ICML 2013, section 4.
    .. [5] R. Jozefowicz, W. Zaremba and I. Sutskever, "An empirical exploration of recurrent
       network architectures", ICML 2015.

    Examples
    --------
    >>> from reservoir.scaling import spectral_radius
    >>> from reservoir.training.initializers import initialize
    >>> params = initialize({"W": (50, 50), "bias": (50,)}, "spectral", random_state=0)
    >>> round(spectral_radius(params["W"]), 6), int((params["W"][0] != 0).sum())
    (1.1, 15)
    """
    draws = INITIALIZERS[check_choice("init", scheme, INITIALIZERS)]
    n_gates = check_count("n_gates", n_gates)
    options = Options(
        check_number("gain", gain, low=0.0, low_open=True),
        check_number("spectral_radius", spectral_radius, low=0.0),
        in_degree,
        check_number("scale", scale, low=0.0),
    )
    forget_bias = check_number("forget_bias", forget_bias)
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype={dtype!r} must be float64 or float32.")
    specs = {name: _as_weight(name, weight, n_gates) for name, weight in weights.items()}
    generator, params = as_generator(random_state), dict.fromkeys(specs, np.empty(0))
    for part in dict.fromkeys(name.rpartition(".")[0] for name in specs):
        names = {name.rpartition(".")[2]: name for name in specs if name.rpartition(".")[0] == part}
        order = [*_ORDER, *sorted(set(names) - set(_ORDER))]
        children = dict(zip(order, generator.spawn(len(order)), strict=True))
        for own, name in names.items():
            array = _draw(name, specs[name], draws, children[own], options)
            if (gate := specs[name].forget) is not None:
                np.split(array, specs[name].n_blocks)[gate][:] += forget_bias  # views
            params[name] = array.astype(dtype, copy=False)
    return params


def _as_weight(name: str, weight: Weight | tuple[int, ...], n_gates: int) -> Weight:
    """Return the description of a weight, which is inferred from the name for a bare shape."""
    if isinstance(weight, Weight):
        return weight
    shape, n_blocks = tuple(weight), n_gates if name in _GATED else 1
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} has shape {shape}, but it must be a vector or a matrix.")
    if shape[0] % n_blocks:
        raise ValueError(
            f"{name} has {shape[0]} rows, but the number of rows must be a multiple of "
            f"n_gates={n_blocks}."
        )
    if name == "W" and shape[0] != n_blocks * shape[1]:
        raise ValueError(
            f"W must have shape ({n_blocks * shape[1]}, {shape[1]}) with n_gates={n_blocks}; got "
            f"{shape}."
        )
    role = _ROLES.get(name, "bias" if len(shape) == 1 else "input")
    forget = _FORGET if name == "bias" and n_gates == _LSTM_GATES else None
    return Weight(shape, role, n_blocks, forget)


def _draw(
    name: str, weight: Weight, draws: Scheme, rng: np.random.Generator, options: Options
) -> Array:
    if weight.role == "decay":
        return np.zeros(weight.shape)
    if len(weight.shape) == 1 or weight.role == "diagonal":
        if draws.vector is None:
            return np.zeros(weight.shape)
        return draws.vector((1, int(np.prod(weight.shape))), rng, options).reshape(weight.shape)
    rows, columns = weight.shape[0] // weight.n_blocks, weight.shape[1]
    draw = draws.recurrent if weight.role == "recurrent" else draws.dense
    return np.concatenate([draw((rows, columns), rng, options) for _ in range(weight.n_blocks)])
