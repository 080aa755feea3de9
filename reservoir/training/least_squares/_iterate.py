"""An iterate of a least-squares fit: weights, their run over the task, error and echo gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator
from reservoir.training.cells import Trace
from reservoir.training.cells.cell_parts import as_rows
from reservoir.training.codes import columns_of
from reservoir.training.least_squares._regression import choose_ridge, sum_rows
from reservoir.training.least_squares._task import Task, blocks
from reservoir.training.losses import apply_output
from reservoir.training.params import Params

_GAP_STEPS = 100  # inputs after which start states should be forgotten, at least
_GAP_STATES = 7  # random ones, against the start from zeros
_GAP_PLACES = 3
_TOO_LARGE = 1e100  # sum of squared states
_GAP_FLOOR = 1e-10  # smaller gaps are accepted whatever the error


class LeastSquaresResult(NamedTuple):
    """Weights after a least-squares fit.

    Attributes
    ----------
    params : dict of arrays
        The best weights seen, by the error on the scored rows.
    history : array of shape (n_accepted + 1,)
        Mean squared error on those rows: with the readout alone fitted, then after each accepted
        iteration ("bay2017": after each iteration, the given weights first).
    n_accepted : int
        Iterations that were kept.

    Examples
    --------
    >>> from reservoir.training.least_squares import LeastSquaresResult
    >>> LeastSquaresResult._fields
    ('params', 'history', 'n_accepted')
    """

    params: Params
    history: Array
    n_accepted: int


@dataclass(frozen=True, eq=False)
class Iterate:
    """Weights, the run over the task, and the error there.

    Parameters
    ----------
    params : dict of arrays
    trace : Trace
    error : float
        Mean squared error over the scored rows, in units of `Task.scale`.
    mse : float
        The same in the units of the targets.
    """

    params: Params
    trace: Trace
    error: float
    mse: float


def simulate(task: Task, params: Params) -> Trace | None:
    """Run over the task; None if the sum of the squared states overflows or comes near it."""
    with np.errstate(over="ignore", invalid="ignore"):
        trace = task.cell.forward(params, task.batch.inputs, task.start, task.batch.lengths)
        return trace if float(np.vdot(trace.states, trace.states)) < _TOO_LARGE else None


def with_readout(
    task: Task, params: Params, tau: float, prior: Params | None = None
) -> Iterate | None:
    """Run, fit the readout exactly, measure; None if the run diverges.

    Its penalty pulls to the readout of `prior`, or to zero without one.
    """
    trace = simulate(task, params)
    if trace is None:
        return None
    coef, intercept, _ = choose_ridge(readout_gram(task, trace, prior), tau, far=prior is not None)
    if prior is not None:
        coef += prior["coef"] / task.scale[:, None]
        intercept += prior["intercept"] / task.scale
    dtype = params["coef"].dtype
    fitted = dict(params)
    fitted["coef"] = (coef * task.scale[:, None]).astype(dtype)
    fitted["intercept"] = (intercept * task.scale).astype(dtype)
    return measure(task, fitted, trace)


def readout_gram(task: Task, trace: Trace, prior: Params | None = None) -> GramAccumulator:
    """Sum the products of what the readout sees and the scores it is to give.

    With `prior` what its readout leaves of these scores.
    """

    def wanted(places: Array, seen: tuple[Array, ...]) -> Array:
        if prior is None:
            return task.latent[places]
        return task.latent[places] - scores(prior, seen) / task.scale

    parts = (
        (seen, wanted(places, seen), task.weights(places)) for places, seen in _seen(task, trace)
    )
    return sum_rows(parts, task.network.shapes()["coef"][1], task.network.n_outputs)


def measure(task: Task, params: Params, trace: Trace | None) -> Iterate | None:
    """Return the errors of weights as they are."""
    if trace is None:
        return None
    squares, total = np.zeros(task.network.n_outputs), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for places, seen in _seen(task, trace, scored=True):
            z = scores(params, seen)
            residual = apply_output(z, task.network.output) - task.batch.targets[places]
            residual *= residual
            weights = task.weights(places)
            squares += residual.sum(axis=0) if weights is None else weights @ residual
            total += len(residual) if weights is None else float(weights.sum())
        error = float(np.mean(squares / task.scale**2) / total)
        if not np.isfinite(error):
            return None
        return Iterate(params, trace, error, float(squares.mean() / total))


def scores(params: Params, seen: tuple[Array, ...]) -> Array:
    """Return the readout's scores of states, or of states and inputs."""
    coef, width = params["coef"], seen[0].shape[1]
    z = seen[0] @ coef[:, :width].T
    if len(seen) > 1:
        z += seen[1] @ coef[:, width:].T
    z += params["intercept"]
    return z


def _seen(
    task: Task, trace: Trace, scored: bool = False
) -> Iterator[tuple[Array, tuple[Array, ...]]]:
    """Yield places in the targets, and what the readout sees there."""
    places = task.scored if scored else task.fit
    for where, take in blocks(task.steps(places)):
        yield places[where], look(task, trace, take)


def regressors(task: Task, trace: Trace, take: Any) -> tuple[Array, Array]:
    """Return what the recurrent layer sees at some steps: inputs over their spread, h(t-1)."""
    before = as_rows(trace.states[:-1])
    return columns_of(task.inputs[take], task.network.n_channels) / task.input_scale, before[take]


def look(task: Task, trace: Trace, take: Any) -> tuple[Array, ...]:
    """Return what the readout sees at some steps."""
    states = as_rows(trace.states[1:])[take]
    if task.network.include_input:
        return states, task.inputs[take]
    return (states,)


def echo_gap(task: Task, iterate: Iterate) -> float:
    """Mean squared gap between the scores of runs from different states, after many inputs.

    The runs start from zeros and from seven random states, over ``max(washout, 100)`` inputs at
    three places of the longest sequence. Outputs of a network that has not forgotten its start by
    then depend on it; the spectral radius does not tell (measured: good networks have up to 1.8).
    The gap is 0 where there are several sequences, all shorter: each starts at the same state.
    """
    # three pieces of the longest sequence
    inputs, lengths = task.batch.inputs, task.batch.lengths
    longest = int(lengths.argmax())
    n_steps = max(task.washout, _GAP_STEPS)
    if lengths[longest] < n_steps:
        if len(lengths) > 1:
            return 0.0
        n_steps = int(lengths[longest])
    last = int(lengths[longest]) - n_steps
    places = sorted({round(k * last / (_GAP_PLACES - 1)) for k in range(_GAP_PLACES)})
    pieces = np.stack([inputs[a : a + n_steps, longest] for a in places], axis=1)
    # each piece from all start states, side by side; then scores against those from zeros
    params, starts = iterate.params, _start_states(task, iterate.trace)
    X, states = np.repeat(pieces, len(starts), axis=1), np.tile(starts, (len(places), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        end = task.cell.forward(params, X, task.cell.before(X[0], states)).states[-1]
        groups = end.reshape(len(places), len(starts), -1)
        coef = params["coef"][:, : end.shape[1]] / task.scale[:, None]
        gap = float(np.mean(((groups - groups[:, :1]) @ coef.T) ** 2))
    return gap if np.isfinite(gap) else np.inf


def begin(task: Task, params: Params, tau: float) -> Iterate:
    """Return the first iterate, the readout fitted."""
    iterate = with_readout(task, params, tau)
    if iterate is None:
        raise ValueError(
            "The states that params produce on X diverge. Scale X or W down, or use a bounded "
            'activation such as "tanh".'
        )
    return iterate


def conclude(
    task: Task, given: Params, best: Iterate, errors: list[float], tau: float
) -> LeastSquaresResult:
    """Return the result: the last iterate, or the given weights where their error is smaller."""
    history = np.array(errors)
    if given["coef"].any():
        own = measure(task, given, simulate(task, given))
        if own is not None and own.mse < best.mse:
            return LeastSquaresResult(given, np.array([own.mse]), 0)
    params = best.params
    if task.fit is not task.scored:  # the readout is fitted to the rows held out as well
        every = replace(task, fit=np.arange(len(task.batch.targets)))
        refitted = with_readout(every, params, tau)
        params = params if refitted is None else refitted.params
    return LeastSquaresResult(params, history, len(history) - 1)


def _start_states(task: Task, trace: Trace) -> Array:
    """Zeros, then random states over .9 of the range that states have."""
    shape = (_GAP_STATES, task.cell.state_size)
    uniform = np.random.default_rng(task.rng_seed).uniform(-0.9, 0.9, shape)
    drawn = task.cell.random_states(uniform, float(np.abs(trace.states).max()))
    return np.vstack([np.zeros((1, shape[1])), drawn]).astype(trace.states.dtype)


def better(task: Task, candidate: Iterate, current: Iterate) -> bool:
    """Return whether a candidate has the smaller error, in both units, and forgets its start."""
    if not candidate.error < current.error or candidate.mse > current.mse:
        return False
    return echo_gap(task, candidate) <= max(candidate.error, _GAP_FLOOR)
