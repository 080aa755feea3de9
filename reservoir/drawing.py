"""Draw the weights of a reservoir, with a separate random generator for each matrix.

`reservoir.building` adds certificates; `reservoir.stability` compares reservoirs drawn here.
Recurrent weights at spectral radius 1 are cached.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections import OrderedDict
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Matrix
from reservoir._validation import (
    advising,
    as_array,
    check_choice,
    check_count,
    check_number,
    check_numbers,
    check_scaling,
    check_unmasked,
)
from reservoir._weights import resolve_degree
from reservoir.dynamics import Reservoir
from reservoir.input_weights import bias as make_bias
from reservoir.input_weights import feedback_weights
from reservoir.input_weights import input_weights as make_input_weights
from reservoir.scaling import SpectralRadiusError, scale_to_spectral_radius
from reservoir.scaling import spectral_radius as spectral_radius_of
from reservoir.topologies import TOPOLOGIES, diagonals

_FEW_UNITS = 2  # up to as many units have the first of several leak rates


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """Distributions and scalings of the weights of a reservoir, without its sizes and its seed.

    The fields are the parameters of `build_reservoir` of the same names; `draw` checks them.
    """

    topology: Any
    in_degree: Any
    weights: Any
    input_weights: Any
    spectral_radius: Any
    leak_rate: Any
    activation: Any
    input_scaling: Any
    bias: Any
    bias_scaling: Any
    feedback_scaling: Any
    dtype: Any

    def draw(
        self,
        n_units: int,
        n_features: int,
        n_outputs: int,
        generator: np.random.Generator,
        *,
        repeatable: bool,
    ) -> tuple[Reservoir, np.random.Generator]:
        """Return a reservoir of the given sizes, and the generator from which its bias was drawn.

        Four generators are spawned from `generator`, which the caller may continue to use.
        `n_outputs` is the number of outputs that are fed back. `repeatable` means that `generator`
        was created from an integer seed, so that the same W may be needed again and is cached.
        """
        # all checks come before W is generated, which may take long
        n_units = check_count("n_units", n_units)
        n_features = check_count("n_features", n_features)
        n_outputs = check_count("n_outputs", n_outputs, minimum=0)
        dtype = _dtype_name(self.dtype)
        factors = check_scaling("input_scaling", self.input_scaling, n_features)
        bias_factor = check_number("bias_scaling", self.bias_scaling, low=0.0)
        leak = _leak_of_each(self.leak_rate, n_units)
        # one generator per matrix, so that a change of the input scaling, say, does not change W
        of_W, of_input, of_bias, of_feedback = generator.spawn(4)
        with advising(f"Lower n_units={n_units}, or use a sparse topology and a low in_degree."):
            W = _scaled_weights(self, n_units, of_W, repeatable)
        W_in = make_input_weights(
            n_units, n_features, law=self.input_weights, scaling=factors, random_state=of_input
        )
        b = make_bias(n_units, law=self.bias, scaling=bias_factor, random_state=of_bias)
        W_fb = None
        if n_outputs:
            factors = check_scaling("feedback_scaling", self.feedback_scaling, n_outputs, "output")
            W_fb = feedback_weights(n_units, n_outputs, scaling=factors, random_state=of_feedback)
        reservoir = Reservoir(W, W_in, b, leak_rate=leak, activation=self.activation, W_fb=W_fb)
        return reservoir if reservoir.dtype == dtype else reservoir.astype(dtype), of_bias


def _leak_of_each(leak_rate: Any, n_units: int) -> Any:
    """Return leak rates as `Reservoir` needs them: the rates in a short tuple belong to groups.

    A group consists of neighbouring units; the sizes of groups differ by at most one. One or
    two units have the first rates.
    """
    if not isinstance(leak_rate, tuple) or len(leak_rate) < 2:
        return leak_rate
    if n_units <= _FEW_UNITS:  # a default of several rates must be valid for few units, too
        leak_rate = leak_rate[:n_units]
    if len(leak_rate) >= n_units:
        return leak_rate if n_units > 1 else leak_rate[0]
    sizes = [len(part) for part in np.array_split(np.arange(n_units), len(leak_rate))]
    return np.repeat(check_numbers("leak_rate", leak_rate), sizes)


def _dtype_name(dtype: Any) -> str:
    if not isinstance(dtype, str):
        with contextlib.suppress(TypeError):  # not a dtype: check_choice raises
            dtype = np.dtype(dtype).name
    return check_choice("dtype", dtype, ("float64", "float32"))


def _scaled_weights(
    drawing: Drawing, n_units: int, generator: np.random.Generator, repeatable: bool
) -> Matrix:
    """Return W, scaled; if repeatable, W at radius 1 is cached, and only multiplied later."""
    if drawing.spectral_radius is None:
        return _recurrent_weights(drawing, n_units, generator)
    radius = check_number("spectral_radius", drawing.spectral_radius, low=0.0)
    if radius == 0.0:  # skip the computation of the radius
        return scale_to_spectral_radius(_recurrent_weights(drawing, n_units, generator), 0.0)
    key = _cache_key(drawing, n_units, generator) if repeatable else None
    unit = None if key is None else _unit_radius.get(key)
    if unit is None:
        W = _recurrent_weights(drawing, n_units, generator)
        unit = _to_unit_radius(W, drawing.topology, radius)
        if key is not None:
            _unit_radius.put(key, unit)
    with np.errstate(over="ignore"):  # `Reservoir` raises for entries that overflow
        return unit * radius


def _to_unit_radius(W: Matrix, topology: Any, wanted: float) -> Matrix:
    """Return W scaled to radius 1; the error for a W of radius 0 names the requested radius."""
    try:
        return scale_to_spectral_radius(W, 1.0)
    except SpectralRadiusError:
        raise
    except ValueError:
        if spectral_radius_of(W) > 0:
            raise
    gives = f"topology={topology!r} gives" if isinstance(topology, str) else "topology gives"
    by_norm = ""
    if not isinstance(topology, str) and not callable(topology):
        by_norm = ", or scale it by `reservoir.scaling.scale_to_norm`"
    raise ValueError(
        f"{gives} a W of spectral radius 0, which cannot be scaled to spectral_radius={wanted:g}: "
        f"its powers vanish. Leave W as it is (spectral_radius=None){by_norm}."
    )


def _cache_key(drawing: Drawing, n_units: int, generator: np.random.Generator) -> Any:
    """Return a tuple that determines W at radius 1; None if W depends on arrays or functions."""
    topology, weights, in_degree = drawing.topology, drawing.weights, drawing.in_degree
    named = isinstance(topology, str) and isinstance(weights, str)
    # True equals 1 as a key, but the generator rejects it
    if not named or not isinstance(in_degree, Real) or isinstance(in_degree, bool):
        return None
    seed: Any = generator.bit_generator.seed_seq
    fraction = not isinstance(in_degree, Integral)  # 1 connection differs from a density of 1.0
    generate = TOPOLOGIES.get(topology)  # users may assign a name to another function
    return n_units, generate, weights, in_degree, fraction, seed.entropy, seed.spawn_key


class _MatrixCache:
    """Cache of the most recently used matrices, by key, with a bound on their memory."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._matrices: OrderedDict[Any, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> Matrix | None:
        with self._lock:
            if key in self._matrices:
                self._matrices.move_to_end(key)
            return self._matrices.get(key)

    def put(self, key: Any, matrix: Matrix) -> None:
        if _n_bytes(matrix) > self.max_bytes // 2:
            return
        with self._lock:
            self._matrices[key] = matrix
            while sum(map(_n_bytes, self._matrices.values())) > self.max_bytes:
                self._matrices.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._matrices.clear()

    def __len__(self) -> int:
        return len(self._matrices)


def _n_bytes(W: Matrix) -> int:
    if sp.issparse(W):
        return W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    return W.nbytes


_unit_radius = _MatrixCache(2**27)  # each W at spectral radius 1


def clear_cache() -> None:
    """Clear the cache of recurrent weights of `build_reservoir`.

    The recurrent weights of named topologies with integer seeds are cached at spectral radius 1.
    The most recently used matrices are kept, up to 128 MiB in total; a matrix larger than 64 MiB is
    not cached. So a search over radius, scalings, leak rate or penalty generates each W, and
    computes its radius, only once.

    Examples
    --------
    >>> from reservoir.building import build_reservoir, clear_cache
    >>> res = build_reservoir(50, 1, random_state=0)
    >>> clear_cache()
    """
    _unit_radius.clear()


def _recurrent_weights(drawing: Drawing, n_units: int, generator: np.random.Generator) -> Matrix:
    """Return the unscaled W of a topology, which is a name, a callable or W itself."""
    topology = drawing.topology
    if isinstance(topology, str):
        topology = TOPOLOGIES[check_choice("topology", topology, TOPOLOGIES)]
    if not callable(topology):
        return _given_weights("topology", topology, n_units)
    offered = {"in_degree": drawing.in_degree, "weights": drawing.weights}
    if topology is diagonals:  # not a partial of it, whose number of diagonals is set
        offered["n_diagonals"] = _whole_diagonals(drawing.in_degree, n_units)
    wanted = inspect.signature(topology).parameters
    known = {name: value for name, value in offered.items() if name in wanted}
    W = topology(n_units, random_state=generator, **known)
    return _given_weights(f"topology={getattr(topology, '__name__', topology)!r}", W, n_units)


def _whole_diagonals(in_degree: Any, n_units: int) -> int:
    """Return the number of diagonals for an in-degree; raise for a density."""
    degree = resolve_degree("in_degree", in_degree, n_units)
    if not isinstance(in_degree, Integral):
        raise ValueError(
            f"in_degree={in_degree} is a density, but topology='diagonals' consists of whole "
            f"diagonals, one connection per row each. Set in_degree={degree}, an integer, for that "
            "many diagonals."
        )
    return degree


def _given_weights(name: str, W: Any, n_units: int) -> Matrix:
    check_unmasked(name, W)
    given, W = W, W if sp.issparse(W) else as_array(name, W)
    if W.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be a name, a callable or a real array; got {type(given).__name__} of "
            f"dtype {W.dtype}."
        )
    if W.shape != (n_units, n_units):
        raise ValueError(
            f"{name} gives W of shape {W.shape}, but n_units={n_units} needs "
            f"({n_units}, {n_units}). Set n_units to the size of W."
        )
    if sp.issparse(W):
        W = sp.csr_array(W)  # in some formats `data` is not an array of the entries
    n_bad = int(np.count_nonzero(~np.isfinite(W.data if sp.issparse(W) else W)))
    if n_bad:
        raise ValueError(f"{name} gives a W with {n_bad} NaN or infinite values. Replace them.")
    return sp.csr_array(W, dtype=np.float64) if sp.issparse(W) else W.astype(np.float64)
