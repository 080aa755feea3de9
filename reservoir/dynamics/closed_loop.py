"""Closed loops: runs of a reservoir in which the outputs of its readout are fed back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir import _kernels
from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_array, caller_level, check_count, dense
from reservoir.activations import get_activation
from reservoir.dynamics._extremes import check_sums_defined, may_overflow, room
from reservoir.dynamics.augment import augmented_width, split_augmented, write_augmented
from reservoir.dynamics.engines import code_of, steps_in_numpy
from reservoir.dynamics.fed_back import as_hold, as_limits
from reservoir.dynamics.open_loop import as_series, block_rows
from reservoir.dynamics.reference import recurrence
from reservoir.dynamics.reservoir import Reservoir, as_real, as_vector

_PRODUCT_ROWS = 64  # exogenous rows that are multiplied by the weights at once


def run_closed_loop(
    reservoir: Reservoir,
    readout: tuple[Array, Array] | Callable[[Array], Array],
    n_steps: int,
    *,
    initial_state: ArrayLike | None = None,
    initial_output: ArrayLike | None = None,
    exog: ArrayLike | None = None,
    include_input: bool = False,
    augment: Any = None,
    clip: tuple[ArrayLike, ArrayLike] | Callable[[Array], ArrayLike] | None = None,
    return_steps: bool = False,
    engine: str = "auto",
) -> Any:
    """Run the reservoir in closed loop (free-running): each step receives the previous output.

    Without feedback weights the previous output is part of the input: step k receives
    ``u[k] = [y[k-1], exog[k]]``. With feedback weights the output enters through them, and
    ``u[k] = exog[k]``.

    Parameters
    ----------
    reservoir : Reservoir
    readout : (coef, intercept) or callable
        Either the coefficients of ``y[k] = coef @ features + intercept``, where coef has shape
        (n_outputs, n_units [+ n_features]), or a function ``readout(features) -> (n_outputs,)``.
        The features are the state, or the result of `augment` for the state, followed by the input
        if `include_input` is set. A function must neither keep nor modify the array that it
        receives: the array is reused for every step.
    n_steps : int
        Number of steps; with 0, the outputs have no rows.
    initial_state : array of shape (n_units,), optional
        The state before the first step; zero by default.
    initial_output : array of shape (n_outputs,), optional
        The previous output y[-1] that the first step receives; zero by default.
    exog : array of shape (n_steps, n_exog), optional
        Exogenous inputs; row k is an input of the step that computes y[k].
    include_input : bool, default=False
        Whether the features contain the input after the state.
    augment : {"square", "even_square"} or callable, optional
        Features that are computed from the state x and replace it. "square" uses [x, x^2], and
        "even_square" uses x with the entries of even index squared. A function receives states of
        shape (n_rows, n_units) and returns an array with one row of features per row.
    clip : (low, high) or callable, optional
        Bounds to which outputs are clipped before they are fed back, each a number or an array of
        shape (n_outputs,); the returned outputs are not clipped. If the stability of a reservoir is
        certified for a range of inputs, clipping keeps the outputs fed back in that range.
        Alternatively, a function that receives the outputs of one step, of shape (n_outputs,), and
        returns the values to feed back, of the same shape: a threshold or a projection, for
        example.
    return_steps : bool, default=False
        Whether to return `n_valid` as a third result, instead of warning if the loop diverges.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`. If the readout, `augment` or `clip` is a function, "auto" uses NumPy.
        Otherwise NumPy runs the first steps, as many as would not repay loading compiled kernels,
        and kernels run the rest, so that a longer loop begins with exactly the same bits as a
        shorter one.

    Returns
    -------
    outputs : array of shape (n_steps, n_outputs)
        The output of each step.
    state : array of shape (n_units,)
        The state after the last step; if the loop diverged, the last finite state.
    n_valid : int
        Number of steps that stayed finite, which is `n_steps` unless the loop diverged. Only
        returned if `return_steps` is set.

    Raises
    ------
    ValueError
        If the shapes of `readout`, `exog` and `reservoir` disagree; if a lower bound in `clip` is
        above the upper bound, or `clip` is a function that returns a wrong shape or a value that is
        not finite; if the sum that a unit receives has infinite terms of both signs, as in `run`;
        or if `augment` is an unknown name or a function that returns a wrong shape.
    ImportError
        If ``engine="numba"`` and numba is not installed.

    Warns
    -----
    RuntimeWarning
        If the loop diverges, that is, an output or a state becomes so large that its square is not
        finite. The loop then stops. The message contains the step at which it diverged; the rows
        from that step on repeat the last output before it, so that the result has the requested
        shape and contains no NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run_closed_loop
    >>> res = Reservoir([[0.0]], [[1.0]], [0.0], activation="identity")
    >>> outputs, state = run_closed_loop(
    ...     res, (np.array([[0.5]]), np.zeros(1)), 3, initial_output=[1.0])
    >>> outputs.ravel(), state
    (array([0.5  , 0.25 , 0.125]), array([0.25]))
    """
    loop = LoopRun(n_steps, initial_state, initial_output, exog, clip, engine)
    outputs, state, n_valid = run_loop(
        reservoir, readout, loop, include_input=include_input, augment=augment
    )
    if return_steps:
        return outputs, state, n_valid
    if n_valid < len(outputs):
        warn_of_divergence(n_valid, loop_limit(reservoir.dtype))
    return outputs, state


@dataclass(frozen=True)
class LoopRun:
    """A run in closed loop: its steps, what it starts from, and what it receives.

    `initial_state`, (state_size,), and `initial_output`, (n_outputs,), are those before the first
    step. `exog`, (n_steps, n_exog), contains the known inputs of each step, `clip` bounds the
    outputs that are fed back, as in `run_closed_loop`, and `engine` computes the steps.
    """

    n_steps: int
    initial_state: Any
    initial_output: Any
    exog: Any = None
    clip: Any = None
    engine: str = "auto"


class LoopInputs(NamedTuple):
    """The input rows of a closed loop, older ones of which are the last features of its readout.

    `rows`, (n_past + n_steps, n_features), are those before the loop, then memory for the input of
    each step, which the loop writes. `older` are indices of the older rows that the first step's
    features contain, latest first; at step k they are greater by k.
    """

    rows: Array
    n_past: int
    older: Array


def run_loop(
    reservoir: Reservoir,
    readout: Any,
    loop: LoopRun,
    *,
    include_input: bool,
    augment: Any,
    inputs: LoopInputs | None = None,
) -> tuple[Array, Array, int]:
    """Run in closed loop as `run_closed_loop` with ``return_steps=True``; record the inputs."""
    n_steps = check_count("n_steps", loop.n_steps, minimum=0, size=1)
    dtype = reservoir.dtype
    exog, n_outputs = _read_exog(reservoir, loop.exog, n_steps)
    state = np.zeros(reservoir.n_units, dtype)
    if loop.initial_state is not None:
        state[:] = as_vector("initial_state", loop.initial_state, reservoir.n_units, dtype)
    n_fed = 0 if reservoir.W_fb is not None else n_outputs
    if inputs is None:
        inputs = LoopInputs(np.empty((n_steps, reservoir.n_features), dtype), 0, np.empty(0, int))
    inputs.rows[inputs.n_past :, n_fed:] = exog
    seen = _Seen.by_readout(inputs, state, augment, include_input=include_input)
    # the output that the first step receives, and the bounds of the outputs that are fed back
    output = np.zeros(n_outputs, dtype)
    if loop.initial_output is not None:
        output = as_vector("initial_output", loop.initial_output, n_outputs, dtype)
    limits = None if callable(loop.clip) else as_limits(loop.clip, n_outputs, dtype)
    # a sum that overflows depends on the order of its terms; outputs may grow up to `loop_limit`
    extreme = may_overflow(reservoir, exog, output, state, 0.0) or (
        loop_limit(dtype) * reservoir._largest_row_sum >= room(reservoir)
    )
    # kernels support linear readouts only; sums that may overflow are computed by NumPy
    in_python = callable(readout) or callable(augment) or callable(loop.clip)
    first = steps_in_numpy(reservoir, n_steps, "numpy" if in_python else loop.engine)
    if extreme or code_of(reservoir) is None:
        first = n_steps
    predict = readout if callable(readout) else _linear(readout, n_outputs, seen.features)
    limited = as_hold(loop.clip, n_outputs, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        outputs, state, n_valid = _loop(
            reservoir, predict, seen, output, exog[:first], n_fed, limited, extreme
        )
        output = outputs[-1] if first else output
        if n_valid < first:
            outputs = np.concatenate([outputs, np.tile(output, (n_steps - first, 1))])
        elif first < n_steps:
            ridge = _as_coefficients(readout, n_outputs, seen.features)
            rest = inputs._replace(rows=inputs.rows[first:])
            later, state, n_more = _compiled_loop(
                reservoir, ridge, augment, state, output, exog[first:], n_fed, limits, rest
            )
            outputs, n_valid = np.concatenate([outputs, later]), first + n_more
    return outputs, state, n_valid


def _read_exog(reservoir: Reservoir, exog: Any, n_steps: int) -> tuple[Array, int]:
    """Return the exogenous inputs, of shape (n_steps, n_exog), and the number of outputs.

    Without feedback weights the outputs are fed back as the first columns of the input, and `exog`
    must contain the remaining columns.
    """
    if exog is not None and as_array("exog", exog).ndim != 2:
        raise ValueError(f"exog must have shape ({n_steps}, n_exog); got {np.shape(exog)}.")
    n_exog = 0 if exog is None else np.shape(exog)[1]
    n_outputs = reservoir.n_outputs or reservoir.n_features - n_exog
    n_inputs = reservoir.n_features if reservoir.W_fb is not None else n_exog
    if n_outputs < 1 or (exog is None and n_inputs > 0):
        raise ValueError(
            f"exog has {n_exog} columns, but the reservoir has n_features={reservoir.n_features}"
            + (
                ": it has feedback weights, so exog must contain all of these inputs."
                if reservoir.W_fb is not None
                else ": at least one of these inputs must be an output that is fed back."
            )
        )
    exog = np.zeros((n_steps, 0), reservoir.dtype) if exog is None else exog
    exog = as_series("exog", exog, n_inputs, reservoir.dtype)
    if len(exog) != n_steps:
        raise ValueError(
            f"exog has {len(exog)} rows, but n_steps={n_steps}. It needs one row per step."
        )
    return exog, n_outputs


class _Seen(NamedTuple):
    """The state of a loop, and the features that its readout receives.

    `features` is memory: first the `n_seen` features computed from the state (itself, or `augment`,
    which is as in `run_closed_loop`), then the input, if the readout receives it, then older
    inputs. `tail`, (n_features,) or (0,), and `older`, (n_older * n_features,), are its parts that
    are the input and older inputs.
    """

    state: Array
    features: Array
    n_seen: int
    augment: Any
    inputs: LoopInputs
    tail: Array
    older: Array

    @classmethod
    def by_readout(
        cls, inputs: LoopInputs, state: Array, augment: Any, *, include_input: bool
    ) -> _Seen:
        """Return a copy of a state, with memory for the features that a readout receives."""
        with np.errstate(all="ignore"):  # the initial state itself is never passed to a readout
            n_seen = augmented_width(augment, state[None], check=False)
        n_features = inputs.rows.shape[1]
        end = n_seen + (n_features if include_input else 0)
        features = np.zeros(end + len(inputs.older) * n_features, state.dtype)
        held = state.copy() if augment is not None else features[:n_seen]
        held[:] = state
        return cls(held, features, n_seen, augment, inputs, features[n_seen:end], features[end:])

    def write(self, fed: Array, step: int) -> None:
        """Write the features after a step; `fed` contains its inputs that are fed back."""
        if self.augment is not None:
            seen = self.features[None, : self.n_seen]
            write_augmented(self.augment, self.state[None], seen, check=False)
        rows, n_past, older = self.inputs
        now = rows[n_past + step]
        now[: fed.size] = fed
        if self.tail.size:
            self.tail[:] = now
        if self.older.size:
            self.older[:] = rows[older + step].ravel()


def _linear(readout: Any, n_outputs: int, features: Array) -> Callable[[Array], Array]:
    """Return a linear readout (coef, intercept) as a function of the features."""
    coef, intercept = _as_coefficients(readout, n_outputs, features)
    return lambda v: coef @ v + intercept


def _as_coefficients(readout: Any, n_outputs: int, features: Array) -> tuple[Array, Array]:
    """Return a linear readout's coef and intercept in the features' dtype, after checks."""
    coef, intercept = readout
    coef = as_real("coef", coef, features.dtype)
    if coef.shape != (n_outputs, features.size):
        raise ValueError(
            f"coef must have shape (n_outputs={n_outputs}, n_features={features.size}); "
            f"got {coef.shape}."
        )
    intercept = as_real("intercept", intercept, features.dtype)
    if intercept.shape not in ((), (n_outputs,)):
        raise ValueError(f"intercept must have shape ({n_outputs},); got {intercept.shape}.")
    return coef, intercept


def _weights_of_loop(reservoir: Reservoir, n_outputs: int, n_fed: int) -> tuple[Array, Array]:
    """Return the weights from the outputs and from the exogenous inputs to the units.

    These are W_fb, or without feedback weights the first `n_outputs` columns of W_in; and the
    columns of W_in after the first `n_fed`.
    """
    W_in = dense(reservoir.W_in, "W_in")
    from_output = W_in[:, :n_outputs] if reservoir.W_fb is None else reservoir.W_fb
    return np.ascontiguousarray(from_output), W_in[:, n_fed:]


def _received(reservoir: Reservoir, output: Array, row: Array) -> tuple[Array, Array | None]:
    """Return u[t] and y[t-1] of a step, given the previous output and a row of exogenous inputs.

    Without feedback weights the previous output is part of u[t], and the second result is None.
    """
    if reservoir.W_fb is not None:
        return row, output
    return np.concatenate([output, row]), None


def loop_limit(dtype: Any) -> float:
    """Return the largest modulus whose square is finite; a closed loop beyond it has diverged."""
    return float(np.sqrt(np.finfo(dtype).max))


def warn_of_divergence(step: int, limit: float) -> None:
    """Warn that a closed loop diverged at a step, and that the rows from there on are filled in."""
    warnings.warn(
        f"The closed loop diverged at step {step}: it left the range +-{limit:.1e}. The rows "
        "from this step on repeat the last output before it. A larger alpha, noise in "
        "training or a smaller spectral radius often helps.",
        RuntimeWarning,
        stacklevel=caller_level(),
    )


def _compiled_loop(
    reservoir: Reservoir,
    ridge: tuple[Array, Array],
    augment: str | None,
    state: Array,
    output: Array,
    exog: Array,
    n_fed: int,
    limits: tuple[Array, Array] | None,
    inputs: LoopInputs,
) -> tuple[Array, Array, int]:
    """Run the closed loop of a linear readout with compiled kernels; the results are as in `_loop`.

    `ridge` is (coef, intercept). One kernel call runs all steps. With exogenous inputs, a call runs
    one block of steps, so that the products of these inputs with their weights need not be stored
    for all steps.
    """
    from_output, from_exog = _weights_of_loop(reservoir, output.size, n_fed)
    coef, of_older = _split_older(ridge[0], inputs)
    coef, squares = split_augmented(augment, coef, reservoir.n_units)
    limit = loop_limit(output.dtype)
    outputs = np.empty((len(exog), output.size), output.dtype)
    rows = block_rows(reservoir.n_units, len(exog)) if exog.shape[1] else max(len(exog), 1)
    # the kernel writes into the block; its state and last output are passed to the next block
    for start in range(0, len(exog), rows):
        given = np.ascontiguousarray(exog[start : start + rows])
        drive = reservoir.bias[None] + (_products(given, from_exog) if given.shape[1] else 0)
        block = outputs[start : start + rows]
        done, state = _kernels.closed_loop(
            block,
            state,
            output,
            drive=drive,
            from_output=from_output,
            rows=inputs.rows[start : start + inputs.n_past + len(block)],
            coef=coef,
            squares=squares,
            intercept=ridge[1],
            older=of_older,
            n_fed=n_fed,
            clip=limits,
            bounded=get_activation(reservoir.activation).bounded,
            limit=limit,
            W=reservoir._packed,
            code=code_of(reservoir),  # type: ignore[arg-type]
            leaks=reservoir._leaks,
        )
        # diverged: repeat the last good output
        if done < len(block):
            outputs[start + done :] = block[done - 1] if done else output
            return outputs, state, start + done
        output = block[-1].copy()
    return outputs, state, len(exog)


def _split_older(coef: Array, inputs: LoopInputs) -> tuple[Array, Array]:
    """Split a readout's weights for kernels: the weights of older rows are the last columns.

    The second result contains weights of all rows from the oldest in use to the last one before the
    present, in this order; they are zero for rows that the readout does not receive.
    """
    first, n_features = inputs.older.min(initial=inputs.n_past), inputs.rows.shape[1]
    n_others = coef.shape[1] - inputs.older.size * n_features
    older = np.zeros((len(coef), inputs.n_past - first, n_features), coef.dtype)
    shape = len(coef), inputs.older.size, n_features
    older[:, inputs.older - first] = coef[:, n_others:].reshape(shape)
    return coef[:, :n_others], older.reshape(len(coef), (inputs.n_past - first) * n_features)


def _products(given: Array, weights: Array) -> Array:
    """Return the products of rows of exogenous inputs with their weights, (n_rows, n_units).

    The rounding errors of a matrix product depend on its shape. All products are padded with zeros
    to the same shape, so that the result for a row does not depend on how many rows follow it.
    """
    n_blocks = -(-len(given) // _PRODUCT_ROWS)
    blocks = np.zeros((n_blocks, _PRODUCT_ROWS, given.shape[1]), given.dtype)
    blocks.reshape(-1, given.shape[1])[: len(given)] = given
    return (blocks @ weights.T).reshape(-1, len(weights))[: len(given)]


def _loop(
    reservoir: Reservoir,
    readout: Callable[[Array], Array],
    seen: _Seen,
    output: Array,
    exog: Array,
    n_fed: int,
    limited: Callable[[Array], Array],
    extreme: bool,
) -> tuple[Array, Array, int]:
    """Run the closed loop step by step with NumPy, which writes to `seen`.

    The first step receives `output`; `n_fed` outputs are fed back as inputs: 0 with feedback
    weights, otherwise all, as ``limited(outputs)``. If sums may overflow (`extreme`), every step is
    checked for infinite terms that cancel. Return outputs, (n_steps, n_outputs), the last finite
    state, and the number of steps that stayed finite.
    """
    n_units, n_outputs = reservoir.n_units, output.size
    state, features = seen.state, seen.features
    from_output, from_exog = _weights_of_loop(reservoir, n_outputs, n_fed)
    add_recurrence = recurrence(reservoir._product_W)
    activation = get_activation(reservoir.activation)
    activate, bounded = activation.function, activation.bounded
    leak, keep = reservoir.leak_rate, np.asarray(1 - reservoir.leak_rate, dtype=features.dtype)
    limit = loop_limit(features.dtype)
    outputs = np.empty((len(exog), n_outputs), features.dtype)
    z = np.empty(n_units, features.dtype)
    last_state = np.empty_like(z)  # kept because `state` is overwritten before divergence is found
    for k, row in enumerate(exog):
        fed = limited(output)
        if extreme and (np.abs(fed) < limit).all():  # beyond the limit the loop has diverged
            check_sums_defined(reservoir, state, *_received(reservoir, fed, row), step=k)
        # the reservoir's step, in place
        np.dot(from_output, fed, out=z)
        z += reservoir.bias
        if row.size:
            z += from_exog @ row
        add_recurrence(state, z)
        activate(z, out=z)
        z *= leak
        last_state[:] = state
        state *= keep
        state += z
        # the readout, from the new state and the input that led to it
        seen.write(fed[:n_fed], k)
        # a readout may map states beyond the limit to finite outputs: check the states as well
        valid = bounded or bool((np.abs(state) < limit).all())
        new = np.asarray(readout(features), dtype=features.dtype) if valid else output
        if new.shape != output.shape:
            raise ValueError(f"readout must return shape {output.shape}; got {new.shape}.")
        # diverged: repeat the last good output
        if not valid or not (np.abs(new) < limit).all():
            outputs[k:] = outputs[k - 1] if k else output
            return outputs, last_state, k
        outputs[k] = new
        output = outputs[k]  # a copy, because a readout may return a view of the features
    return outputs, state.copy(), len(exog)
