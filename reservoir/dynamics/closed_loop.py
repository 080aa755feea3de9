"""Closed loop: a reservoir that receives its own readout's outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from reservoir import _kernels
from reservoir._typing import Array, ArrayLike
from reservoir._validation import caller_level, check_count, dense
from reservoir.activations import get_activation
from reservoir.dynamics._extremes import check_sums_defined, may_overflow, room
from reservoir.dynamics.augment import augmented_width, split_augmented, write_augmented
from reservoir.dynamics.engines import code_of, steps_in_numpy
from reservoir.dynamics.fed_back import as_hold, as_limits
from reservoir.dynamics.open_loop import as_series, block_rows
from reservoir.dynamics.reference import recurrence
from reservoir.dynamics.reservoir import Reservoir, as_vector

_PRODUCT_ROWS = 64  # exogenous rows that are multiplied with the weights at once


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
    """Let the reservoir run on its own outputs.

    Without feedback weights the output is the next input: step k receives
    ``u[k] = [y[k-1], exog[k]]``. With feedback weights it enters through them, and
    ``u[k] = exog[k]``.

    Parameters
    ----------
    reservoir : Reservoir
    readout : (coef, intercept) or callable
        ``y[k] = coef @ features + intercept``, coef of shape (n_outputs, n_units [+ n_features]);
        or ``readout(features) -> (n_outputs,)``. The features are the state, or what `augment`
        makes of it, then the input if `include_input`. A callable must neither keep nor change the
        array that it receives, which is reused for every step.
    n_steps : int
        Number of steps; 0 returns no rows.
    initial_state : array of shape (n_units,), optional
        The state before the first step; zero by default.
    initial_output : array of shape (n_outputs,), optional
        y[-1], what the first step receives; zero by default.
    exog : array of shape (n_steps, n_exog), optional
        Exogenous inputs, row k enters with the step that yields y[k].
    include_input : bool, default=False
        Whether the features hold the input behind the state.
    augment : {"square", "even_square"} or callable, optional
        What the features hold in the place of the state x: "square" [x, x^2]; "even_square" x with
        the entries of even index squared; a function what it returns for states, (n_rows, n_units),
        with a row for each row.
    clip : (low, high) or callable, optional
        Bounds, numbers or arrays of shape (n_outputs,), to which outputs are clipped where they are
        fed back; the outputs that are returned are not clipped. The inputs of a reservoir whose
        stability is certified for a range then stay in that range. Or a function of the outputs of
        a step, (n_outputs,), that returns what is fed back in their place, of the same shape: a
        threshold, say, or a projection.
    return_steps : bool, default=False
        Whether to also return `n_valid`, in place of the warning of a loop that diverged.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`. With a readout, an `augment` or a `clip` that is a function "auto" takes NumPy;
        else it takes NumPy for the first steps, as many as are not worth kernels, so that a longer
        loop begins with the bits of a shorter one.

    Returns
    -------
    outputs : array of shape (n_steps, n_outputs)
    state : array of shape (n_units,)
        The state after the last step.
    n_valid : int
        Only if `return_steps`: how many steps stayed finite, n_steps unless the loop diverged.

    Raises
    ------
    ValueError
        If the shapes of readout, exog and reservoir disagree, bounds of `clip` are crossed, or it
        is a function that returns another shape or a value that is not finite; if the sum that a
        unit receives has infinite terms of both signs, as in `run`; if `augment` is not known, or
        returns another shape than it must.
    ImportError
        If ``engine="numba"`` and numba is not installed.

    Warns
    -----
    RuntimeWarning
        If an output or a state becomes so large that its square is not finite: the loop has
        diverged and stops. The message names the step; the rows from there on repeat the last
        output before it, so that the shape is as asked for and nothing is NaN.

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
    n_steps = check_count("n_steps", n_steps, minimum=0)
    dtype = reservoir.dtype
    exog, n_outputs = _read_exog(reservoir, exog, n_steps)
    state = np.zeros(reservoir.n_units, dtype)
    if initial_state is not None:
        state[:] = as_vector("initial_state", initial_state, reservoir.n_units, dtype)
    seen = _Seen.by_readout(reservoir, state, augment, include_input=include_input)
    # what the first step receives, and the bounds of what is fed back
    output = np.zeros(n_outputs, dtype)
    if initial_output is not None:
        output = as_vector("initial_output", initial_output, n_outputs, dtype)
    n_fed = 0 if reservoir.W_fb is not None else n_outputs
    limits = None if callable(clip) else as_limits(clip, n_outputs, dtype)
    # sums that overflow depend on the order of their terms; outputs may grow to the loop's limit
    extreme = may_overflow(reservoir, exog, output, state, 0.0) or (
        loop_limit(dtype) * reservoir._largest_row_sum >= room(reservoir)
    )
    # kernels know linear readouts only, and leave sums that may overflow to NumPy
    in_python = callable(readout) or callable(augment) or callable(clip)
    first = steps_in_numpy(reservoir, n_steps, "numpy" if in_python else engine)
    if extreme or code_of(reservoir) is None:
        first = n_steps
    say = readout if callable(readout) else _linear(readout, n_outputs, seen.features)
    hold = as_hold(clip, n_outputs, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        outputs, state, n_valid = _loop(
            reservoir, say, seen, output, exog[:first], n_fed, hold, extreme
        )
        output = outputs[-1] if first else output
        if n_valid < first:
            outputs = np.concatenate([outputs, np.tile(output, (n_steps - first, 1))])
        elif first < n_steps:
            ridge = _as_coefficients(readout, n_outputs, seen.features)
            later, state, n_more = _compiled_loop(
                reservoir, ridge, augment, state, output, exog[first:], n_fed, limits
            )
            outputs, n_valid = np.concatenate([outputs, later]), first + n_more
    if return_steps:
        return outputs, state, n_valid
    if n_valid < n_steps:
        warn_of_divergence(n_valid, loop_limit(dtype))
    return outputs, state


def _read_exog(reservoir: Reservoir, exog: Any, n_steps: int) -> tuple[Array, int]:
    """Return the exogenous inputs, of shape (n_steps, n_exog), and the number of outputs.

    Without feedback weights the outputs are fed back as the first features of the input, and `exog`
    must hold the others.
    """
    if exog is not None and np.ndim(exog) != 2:
        raise ValueError(f"exog must have shape ({n_steps}, n_exog); got {np.shape(exog)}.")
    n_exog = 0 if exog is None else np.shape(exog)[1]
    n_outputs = reservoir.n_outputs or reservoir.n_features - n_exog
    n_inputs = reservoir.n_features if reservoir.W_fb is not None else n_exog
    if n_outputs < 1 or (exog is None and n_inputs > 0):
        raise ValueError(
            f"exog has {n_exog} columns; the reservoir has n_features={reservoir.n_features}"
            + (" and feedback weights." if reservoir.W_fb is not None else ", outputs included.")
        )
    exog = np.zeros((n_steps, 0), reservoir.dtype) if exog is None else exog
    exog = as_series("exog", exog, n_inputs, reservoir.dtype)
    if len(exog) != n_steps:
        raise ValueError(f"exog has {len(exog)} rows; n_steps={n_steps} needs as many.")
    return exog, n_outputs


class _Seen(NamedTuple):
    """The state, and what a readout sees of it.

    Attributes
    ----------
    state : array of shape (n_units,)
    features : array of shape (n_seen [+ n_features],)
        The state itself, or room for what `augment` makes of it; then room for the input.
    n_seen : int
    augment : None, str or callable
    """

    state: Array
    features: Array
    n_seen: int
    augment: Any

    @classmethod
    def by_readout(
        cls, reservoir: Reservoir, state: Array, augment: Any, *, include_input: bool
    ) -> _Seen:
        """Return a state, which is copied, with room for what a readout sees of it."""
        with np.errstate(all="ignore"):  # of the initial state, which no readout sees
            n_seen = augmented_width(augment, state[None], check=False)
        features = np.zeros(n_seen + (reservoir.n_features if include_input else 0), state.dtype)
        if augment is not None:
            return cls(state.copy(), features, n_seen, augment)
        features[:n_seen] = state
        return cls(features[:n_seen], features, n_seen, None)


def _linear(readout: Any, n_outputs: int, features: Array) -> Callable[[Array], Array]:
    """Return a linear readout (coef, intercept) as a function of the features."""
    coef, intercept = _as_coefficients(readout, n_outputs, features)
    return lambda v: coef @ v + intercept


def _as_coefficients(readout: Any, n_outputs: int, features: Array) -> tuple[Array, Array]:
    """Return coef and intercept of a linear readout in the dtype of the features, after checks."""
    coef, intercept = readout
    coef = np.asarray(coef, dtype=features.dtype)
    if coef.shape != (n_outputs, features.size):
        raise ValueError(
            f"coef must have shape (n_outputs={n_outputs}, n_features={features.size}); "
            f"got {coef.shape}."
        )
    intercept = np.asarray(intercept, dtype=features.dtype)
    if intercept.shape not in ((), (n_outputs,)):
        raise ValueError(f"intercept must have shape ({n_outputs},); got {intercept.shape}.")
    return coef, intercept


def _weights_of_loop(reservoir: Reservoir, n_outputs: int, n_fed: int) -> tuple[Array, Array]:
    """Return the weights by which outputs and exogenous inputs enter the units.

    Returns
    -------
    from_output : array of shape (n_units, n_outputs)
        W_fb, or without it the first columns of W_in.
    from_exog : array of shape (n_units, n_exog)
        The columns of W_in behind the first `n_fed`.
    """
    W_in = dense(reservoir.W_in, "W_in")
    from_output = W_in[:, :n_outputs] if reservoir.W_fb is None else reservoir.W_fb
    return np.ascontiguousarray(from_output), W_in[:, n_fed:]


def _received(reservoir: Reservoir, output: Array, row: Array) -> tuple[Array, Array | None]:
    """Return u[t] and y[t-1] of a step, given the last output and a row of exogenous inputs.

    Without feedback weights the output is part of u[t], and None stands for y[t-1].
    """
    if reservoir.W_fb is not None:
        return row, output
    return np.concatenate([output, row]), None


def loop_limit(dtype: Any) -> float:
    """Return the largest modulus whose square is finite; a closed loop beyond it has diverged."""
    return float(np.sqrt(np.finfo(dtype).max))


def warn_of_divergence(step: int, limit: float) -> None:
    """Warn that a closed loop diverged at a step, and what is returned from there on."""
    warnings.warn(
        f"The closed loop diverged at step {step}: it left the range +-{limit:.1e}. The rows "
        "from there on repeat the last output before it. A larger alpha, noise in "
        "training or a smaller spectral radius often help.",
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
) -> tuple[Array, Array, int]:
    """Run the closed loop of a linear readout with compiled kernels; otherwise as `_loop`.

    `ridge` is (coef, intercept). One call runs all steps, or a block of them where there are
    exogenous inputs, so that their products with the weights need not be stored for all steps.
    """
    from_output, from_exog = _weights_of_loop(reservoir, output.size, n_fed)
    coef, squares = split_augmented(augment, ridge[0], reservoir.n_units)
    limit = loop_limit(output.dtype)
    outputs = np.empty((len(exog), output.size), output.dtype)
    rows = block_rows(reservoir.n_units, len(exog)) if exog.shape[1] else max(len(exog), 1)
    # the outputs write themselves into the block; state and output go from block to block
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
            exog=given,
            coef=coef,
            squares=squares,
            intercept=ridge[1],
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


def _products(given: Array, weights: Array) -> Array:
    """Return the products of rows of exogenous inputs with weights, (n_rows, n_units).

    The bits of a product depend on its shape: all have the same, so that a row's product does not
    depend on how many rows come behind.
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
    hold: Callable[[Array], Array],
    extreme: bool,
) -> tuple[Array, Array, int]:
    """Run the closed loop step by step with NumPy.

    Parameters
    ----------
    reservoir : Reservoir
    readout : callable, ``readout(features) -> (n_outputs,)``
    seen : _Seen
        The initial state and room for the features; written in place.
    output : array of shape (n_outputs,)
        What the first step receives.
    exog : array of shape (n_steps, n_exog)
    n_fed : int
        How many outputs are part of the input: none with feedback weights, else all.
    hold : callable, ``hold(outputs) -> (n_outputs,)``
        What of the outputs is fed back.
    extreme : bool
        Whether sums may overflow, so that every step is checked for terms that cancel.

    Returns
    -------
    outputs : array of shape (n_steps, n_outputs)
    state : array of shape (n_units,)
        The last finite state.
    n_valid : int
        How many steps stayed finite.
    """
    n_units, n_outputs = reservoir.n_units, output.size
    state, features, tail = seen.state, seen.features, seen.features[seen.n_seen :]
    from_output, from_exog = _weights_of_loop(reservoir, n_outputs, n_fed)
    add_recurrence = recurrence(reservoir._product_W)
    activation = get_activation(reservoir.activation)
    activate, bounded = activation.function, activation.bounded
    leak, keep = reservoir.leak_rate, np.asarray(1 - reservoir.leak_rate, dtype=features.dtype)
    limit = loop_limit(features.dtype)
    outputs = np.empty((len(exog), n_outputs), features.dtype)
    z = np.empty(n_units, features.dtype)
    last_state = np.empty_like(z)
    for k, row in enumerate(exog):
        fed = hold(output)
        if extreme and (np.abs(fed) < limit).all():  # beyond it the loop has diverged
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
        if seen.augment is not None:
            write_augmented(seen.augment, state[None], features[None, : seen.n_seen], check=False)
        if tail.size:
            tail[:n_fed], tail[n_fed:] = fed[:n_fed], row
        # a readout may map states beyond the limit to finite outputs, so they are checked as well
        sound = bounded or bool((np.abs(state) < limit).all())
        new = np.asarray(readout(features), dtype=features.dtype) if sound else output
        if new.shape != output.shape:
            raise ValueError(f"readout must return shape {output.shape}; got {new.shape}.")
        # diverged: repeat the last good output
        if not sound or not (np.abs(new) < limit).all():
            outputs[k:] = outputs[k - 1] if k else output
            return outputs, last_state, k
        outputs[k] = new
        output = outputs[k]  # a copy, because a readout may return a view of the features
    return outputs, state.copy(), len(exog)
