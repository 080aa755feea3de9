"""The reservoir as an immutable record, one step of it, and the Jacobian of that step."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._kernels import (
    Leaks,
    Packed,
    Rows,
    pack,
    pack_drive,
    pack_rows,
    repeat_leaks,
)
from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike, Matrix
from reservoir._validation import check_choice, check_numbers, check_real, dense
from reservoir._validation.arrays import check_csr
from reservoir.activations import Activation, get_activation
from reservoir.dynamics._extremes import check_sums_defined, may_overflow


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Reservoir:
    """A reservoir: recurrent, input and feedback weights, bias, leak rate and activation.

    The arrays are copied and made read-only. The dtype of `W` determines the dtype of the states:
    float32 if `W` is float32, otherwise float64.

    Parameters
    ----------
    W : array or sparse array of shape (n_units, n_units)
        Row i contains the weights of the connections to unit i. A sparse W stays sparse (CSR).
    W_in : array or sparse array of shape (n_units, n_features)
        Weights from the inputs to the units.
    bias : array of shape (n_units,)
        Constant input of each unit.
    leak_rate : float in (0, 1] or array of shape (n_units,), per step, default=1.0
        With 1.0, the reservoir is a standard echo state network without leak; with a smaller leak
        rate, states average over about 1 / leak_rate steps.
    activation : str or Activation, default="tanh"
        A name in `reservoir.activations.ACTIVATIONS`, or an `Activation`.
    W_fb : array of shape (n_units, n_outputs), optional
        Feedback weights, from the previous output to the units.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is NaN or infinite, or a leak rate is not in (0, 1].
    TypeError
        If weights or leak rates are strings, objects or complex numbers, or if leak rates are
        booleans.

    References
    ----------
    .. [1] H. Jaeger, "The 'echo state' approach to analysing and training recurrent neural
       networks", GMD Report 148, 2001.
    .. [2] H. Jaeger, M. Lukosevicius, D. Popovici and U. Siewert, "Optimization and applications
       of echo state networks with leaky-integrator neurons", Neural Networks 20, 2007, eq. (2).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run
    >>> res = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2), leak_rate=0.5)
    >>> res
    Reservoir(n_units=2, n_features=1, n_outputs=0, connections=4, activation='tanh', dtype=float64)
    >>> run(res, [[1.0], [0.0]]).round(4)
    array([[0.3808, 0.3808],
           [0.2845, 0.2845]])
    """

    W: Matrix
    W_in: Matrix
    bias: Array
    _: KW_ONLY
    leak_rate: float | Array = 1.0
    activation: str | Activation = "tanh"
    W_fb: Array | None = None

    def __post_init__(self) -> None:
        # W determines the dtype of all the others
        for name in ("W", "W_in", "bias") if self.W_fb is None else ("W", "W_in", "bias", "W_fb"):
            _check_no_objects(name, getattr(self, name))
        dtype = np.float32 if getattr(self.W, "dtype", None) == np.float32 else np.float64
        W = _as_matrix("W", self.W, dtype)
        n_units = W.shape[0]
        if W.shape != (n_units, n_units) or n_units == 0:
            raise ValueError(f"W must be square with at least one unit; got shape {W.shape}.")
        W_in = _as_matrix("W_in", self.W_in, dtype)
        if W_in.shape[0] != n_units:
            raise ValueError(
                f"W_in must have shape (n_units={n_units}, n_features); got {W_in.shape}."
            )
        # copy the other arrays to that dtype, and check that their shapes fit W
        values: dict[str, Any] = {"W": W, "W_in": W_in}
        values["bias"] = as_vector("bias", self.bias, n_units, dtype)
        values["leak_rate"] = as_leak(self.leak_rate, n_units, dtype)
        if self.W_fb is not None:
            W_fb = _as_matrix("W_fb", self.W_fb, dtype)
            if sp.issparse(W_fb) or W_fb.shape[0] != n_units or W_fb.shape[1] == 0:
                raise ValueError(
                    f"W_fb must be a dense array of shape (n_units={n_units}, n_outputs); "
                    f"got {W_fb.shape}."
                )
            values["W_fb"] = W_fb
        # a known activation is stored by name; the class is frozen, hence object.__setattr__
        activation = get_activation(self.activation)
        if not isinstance(self.activation, Activation):
            values["activation"] = activation.name
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._freeze()

    def _freeze(self) -> None:
        """Make every array read-only."""
        for value in vars(self).values():
            parts = (value.data, value.indices, value.indptr) if sp.issparse(value) else (value,)
            for part in parts:
                if isinstance(part, np.ndarray):
                    part.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # kernels and sparse products access memory according to the arrays' shapes and indices, so
        # these are validated for every reservoir, also for one from a pickle
        self.__init__(**state)  # type: ignore[misc]

    @cached_property
    def _product_W(self) -> Matrix:
        """W in the fastest form for products: dense if over half of its entries are stored."""
        crowded = sp.issparse(self.W) and self.W.nnz > self.W.shape[0] ** 2 / 2
        return dense(self.W) if crowded else self.W

    @cached_property
    def _n_products(self) -> int:
        """Number of products of a weight and a state in a step."""
        W = self._product_W
        return W.nnz if sp.issparse(W) else W.size

    @cached_property
    def _packed(self) -> Packed:
        """W in the layout that kernels read for one sequence; computed once, never pickled."""
        return pack(self._product_W)

    @cached_property
    def _packed_rows(self) -> Rows:
        """[W, bias, W_in, W_fb] in the layout that kernels read for sequences side by side."""
        return pack_rows(self.W, self.bias[:, None], self.W_in, self.W_fb)

    @cached_property
    def _leaks(self) -> Leaks:
        """Leak rates a and 1 - a per unit, in the layout of the kernels."""
        return repeat_leaks(self.leak_rate, self.n_units, self.dtype)

    @cached_property
    def _drive_weights(self) -> Array:
        """The transpose of [bias, W_in, W_fb], dense, in the layout of the kernels."""
        W_in = dense(self.W_in, "W_in")
        parts = [self.bias[:, None], W_in] + ([] if self.W_fb is None else [self.W_fb])
        return pack_drive(np.hstack(parts).T, self.dtype)

    @cached_property
    def _largest_row_sum(self) -> float:
        """Largest row sum of [|W|, |W_in|, |W_fb|, |bias|], in double precision.

        It is a bound on the modulus of the sum that a unit receives when no state, input or output
        has a modulus above 1.
        """
        sums = np.abs(self.bias.astype(np.float64))
        with np.errstate(over="ignore"):
            for A in (self.W, self.W_in, self.W_fb):
                if A is not None:
                    sums += _row_sums(A)
            return float(sums.max())

    @property
    def n_units(self) -> int:
        """Number of units N."""
        return self.W.shape[0]

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.W_in.shape[1]

    @property
    def n_outputs(self) -> int:
        """Number of outputs that are fed back; 0 if there are no feedback weights."""
        return 0 if self.W_fb is None else self.W_fb.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the weights and of the states: float32 or float64."""
        return self.W.dtype

    def astype(self, dtype: Any) -> Reservoir:
        """Return a copy with weights and states of the given `dtype`, float32 or float64."""
        dtype = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        check_choice("dtype", dtype, ("float32", "float64"))
        with np.errstate(over="ignore"):  # the constructor raises if a weight overflows
            return replace(self, W=self.W.astype(dtype))

    def __repr__(self) -> str:
        connections = self.W.nnz if sp.issparse(self.W) else self.W.size
        return (
            f"Reservoir(n_units={self.n_units}, n_features={self.n_features}, "
            f"n_outputs={self.n_outputs}, connections={connections}, "
            f"activation={get_activation(self.activation).name!r}, dtype={self.dtype})"
        )


def _row_sums(A: Any) -> Array:
    """Return the sums of the moduli in each row, in double precision."""
    if not sp.issparse(A):
        return np.abs(A).sum(axis=1, dtype=np.float64)
    sums, filled = np.zeros(A.shape[0]), np.diff(A.indptr) > 0
    sums[filled] = np.add.reduceat(np.abs(A.data.astype(np.float64)), A.indptr[:-1][filled])
    return sums


def _as_matrix(name: str, value: Any, dtype: Any) -> Matrix:
    """Return a copy of a matrix after checks: a csr_array if it is sparse, otherwise in C order."""
    check_real(name, value)
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(value):
            check_csr(name, value)  # check first, because conversion reads memory at its indices
            matrix = sp.csr_array(value, dtype=dtype, copy=True)
            matrix.sum_duplicates()
            finite = np.isfinite(matrix.data).all()
        else:
            matrix = np.array(value, dtype=dtype, order="C")
            finite = np.isfinite(matrix).all()
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {matrix.shape}.")
    if not finite:
        raise ValueError(f"{name} contains NaN or infinity as {np.dtype(dtype).name}.")
    return matrix


def as_vector(name: str, value: Any, size: int, dtype: Any) -> Array:
    """Return a copy of a vector as an array of `dtype` and of shape (size,), after checks."""
    vector = as_real(name, value, dtype).copy()
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},); got {vector.shape}.")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} contains NaN or infinity as {np.dtype(dtype).name}.")
    return vector


def as_real(name: str, value: Any, dtype: Any) -> Array:
    """Return real numbers as an array of `dtype`, where they may overflow; raise if complex."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    check_real(name, value)
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype=dtype)


def _check_no_objects(name: str, value: Any) -> None:
    """Raise if a value has strings, dates or objects, which NumPy would silently convert."""
    if not sp.issparse(value) and np.asarray(value).dtype.kind not in "biufc":
        check_numbers(name, value)  # raises, and names the type


def as_leak(value: Any, n_units: int, dtype: Any) -> float | Array:
    """Return the leak rate in (0, 1], a float or an array with one entry per unit, after checks."""
    leak = check_numbers("leak_rate", value)
    if leak.shape not in ((), (n_units,)):
        raise ValueError(
            f"leak_rate must be a number or have shape ({n_units},); got shape {leak.shape}. Give "
            "one number, or one for each unit."
        )
    if not ((leak > 0) & (leak <= 1)).all():
        bad = leak[~((leak > 0) & (leak <= 1))].flat[0]
        raise ValueError(f"leak_rate={bad:g} must be in (0, 1]; 1 means no leak.")
    return float(leak) if leak.ndim == 0 else leak.astype(dtype)


def step(
    reservoir: Reservoir, x: ArrayLike, u: ArrayLike, y_prev: ArrayLike | None = None
) -> Array:
    """Return the state after one step.

    Parameters
    ----------
    reservoir : Reservoir
    x : array of shape (n_units,)
        The state before the step.
    u : array of shape (n_features,)
        The input of the step.
    y_prev : array of shape (n_outputs,), optional
        The previous output; zero by default. It is allowed only if the reservoir has feedback
        weights.

    Returns
    -------
    array of shape (n_units,)
        The state after the step.

    Raises
    ------
    ValueError
        If shapes disagree, or if an argument or the state after the step is not finite, as in
        `run`.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, step
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> step(res, [0.2], [0.9]) == np.tanh(0.5 * 0.2 + 0.9)
    array([ True])
    """
    x = as_vector("x", x, reservoir.n_units, reservoir.dtype)
    new = get_activation(reservoir.activation).function(_preactivation(reservoir, x, u, y_prev))
    leak = reservoir.leak_rate
    return (1 - leak) * x + leak * new


def step_jacobian(
    reservoir: Reservoir, x: ArrayLike, u: ArrayLike, y_prev: ArrayLike | None = None
) -> Array:
    """Return the Jacobian of `step` with respect to the state.

    For leak rate a and activation f, the Jacobian is ``J = (1 - a) I + a diag(f'(z)) W`` with
    ``z = W x + W_in u + bias + W_fb y_prev``. The previous output is treated as a constant: its
    dependence on the state is not differentiated.

    Parameters
    ----------
    reservoir, x, u, y_prev
        As in `step`.

    Returns
    -------
    array of shape (n_units, n_units)
        The Jacobian, which is dense even if W is sparse.

    Raises
    ------
    ValueError
        In the same cases as `step`.

    Examples
    --------
    >>> from reservoir.dynamics import Reservoir, step_jacobian
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=0.5)
    >>> step_jacobian(res, [0.0], [0.0])
    array([[0.75]])
    """
    x = as_vector("x", x, reservoir.n_units, reservoir.dtype)
    slope = get_activation(reservoir.activation).derivative(_preactivation(reservoir, x, u, y_prev))
    jacobian = (reservoir.leak_rate * slope)[:, None] * dense(reservoir.W)
    jacobian[np.diag_indices(reservoir.n_units)] += 1 - reservoir.leak_rate
    return jacobian


def _preactivation(reservoir: Reservoir, x: Array, u: Any, y_prev: Any) -> Array:
    """Return W x + W_in u + bias + W_fb y_prev of one step, after checks."""
    u = as_vector("u", u, reservoir.n_features, reservoir.dtype)
    if y_prev is not None:
        if reservoir.W_fb is None:
            raise ValueError("y_prev was given, but the reservoir has no feedback weights W_fb.")
        y_prev = as_vector("y_prev", y_prev, reservoir.n_outputs, reservoir.dtype)
    if may_overflow(reservoir, u, y_prev, x, 0.0):
        check_sums_defined(reservoir, x, u, y_prev)
    with np.errstate(over="ignore", invalid="ignore"):  # infinity saturates; NaN raises below
        z = reservoir.W @ x + reservoir.W_in @ u + reservoir.bias
        if y_prev is not None:
            z += reservoir.W_fb @ y_prev
    bounded = get_activation(reservoir.activation).bounded
    if np.isnan(z).any() or not (bounded or np.isfinite(z).all()):
        raise ValueError(
            f"The state after the step is not finite (dtype={reservoir.dtype}). Scale the inputs "
            "down."
        )
    return z
