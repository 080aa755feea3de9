"""Iterates of a least-squares fit: the weights, their run over the data, and its error."""

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

_GAP_STEPS = 100  # minimal number of inputs after which initial states should be forgotten
_GAP_STATES = 7  # number of random initial states, which are compared with zeros
_GAP_PLACES = 3  # number of segments of the longest sequence
_TOO_LARGE = 1e100  # a run diverges if the sum of its squared states is not smaller
# Largest gap, relative to the error: networks with larger ones may end in another attractor on
# later rows, even if the error is small on those that they are fitted to.
_GAP_SHARE = 0.1
_GAP_FLOOR = 1e-10  # smaller gaps are accepted for any error
_FOLDS = 5  # parts of the rows, or of the sequences, each of which is held out once


class LeastSquaresResult(NamedTuple):
    """Result of a least-squares fit: the weights and the history of the error.

    Attributes
    ----------
    params : dict of arrays
        The weights with the smallest error on the scored rows (the held-out rows, or all rows).
    history : array of shape (n_accepted + 1,)
        Mean squared error on the scored rows, after fitting only the readout and after each
        accepted iteration. With method "bay2017", with the given weights and after each iteration.
    n_accepted : int
        Number of accepted iterations.

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
    """An iterate of a fit: the weights, their run over the task, and errors over the scored rows.

    Both are mean squared errors: `error` in units of `Task.scale`, and `mse` in units of the
    targets.
    """

    params: Params
    trace: Trace
    error: float
    mse: float


def simulate(task: Task, params: Params) -> Trace | None:
    """Return the network's run over the task, or None if the states are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        trace = task.cell.forward(params, task.batch.inputs, task.start, task.batch.lengths)
        return trace if float(np.vdot(trace.states, trace.states)) < _TOO_LARGE else None


def with_readout(
    task: Task, params: Params, tau: float, prior: Params | None = None
) -> Iterate | None:
    """Return the iterate with the readout fitted exactly, or None if the run diverges.

    The ridge penalty shrinks the readout towards the readout of `prior`, or towards zero if `prior`
    is None.
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


def held_out_error(task: Task, params: Params, tau: float) -> float:
    """Return the mean squared error of scores in rows that the readout was not fitted to.

    The rows are cut into five blocks of time, or, if there are at least five sequences, these are
    dealt into five groups. Each part is predicted by a readout fitted to the others, with the ridge
    penalty chosen for all rows. The result is in units of `Task.scale`, and infinite if the run
    diverges.
    """
    trace = simulate(task, params)
    if trace is None:
        return np.inf
    parts = [readout_gram(task, trace, places=places) for places in _folds(task)]
    alpha = choose_ridge(_merged(parts), tau)[2]
    squares = total = 0.0
    for part in parts:
        rest = _merged([other for other in parts if other is not part])
        solution = rest.solve(alpha)
        squares += float(part.squared_errors(solution.coef[None], solution.intercept[None]).sum())
        total += part.weight
    return squares / (total * task.network.n_outputs)


def _merged(parts: list[GramAccumulator]) -> GramAccumulator:
    """Return the sums over the rows of all parts."""
    sums = GramAccumulator(parts[0].n_features, parts[0].n_outputs)
    for part in parts:
        sums.merge(part)
    return sums


def _folds(task: Task) -> list[Array]:
    """Return the indices of the targets of each part of the rows."""
    weights = task.weights(task.fit)
    places = task.fit if weights is None else task.fit[weights > 0]
    n_sequences = task.batch.inputs.shape[1]
    n_folds = min(_FOLDS, len(places))
    if n_sequences < n_folds:
        return np.array_split(places, n_folds)
    group = task.steps(places) % n_sequences % n_folds
    return [places[group == k] for k in range(n_folds) if (group == k).any()]


def readout_gram(
    task: Task, trace: Trace, prior: Params | None = None, places: Array | None = None
) -> GramAccumulator:
    """Return the summed products of the readout's features and its target scores.

    With `prior`, the targets are the residuals of the prior readout. The rows are those of
    `Task.fit`, or those of the targets with the indices `places`.
    """

    def target_scores(block: Array, features: tuple[Array, ...]) -> Array:
        if prior is None:
            return task.latent[block]
        return task.latent[block] - scores(prior, features) / task.scale

    parts = (
        (features, target_scores(block, features), task.weights(block))
        for block, features in _feature_blocks(task, trace, task.fit if places is None else places)
    )
    return sum_rows(parts, task.network.shapes()["coef"][1], task.network.n_outputs)


def measure(task: Task, params: Params, trace: Trace | None) -> Iterate | None:
    """Return the iterate with the errors of the given weights, or None if these overflow."""
    if trace is None:
        return None
    squares, total = np.zeros(task.network.n_outputs), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for places, features in _feature_blocks(task, trace, task.scored):
            z = scores(params, features)
            residual = apply_output(z, task.network.output) - task.batch.targets[places]
            residual *= residual
            weights = task.weights(places)
            squares += residual.sum(axis=0) if weights is None else weights @ residual
            total += len(residual) if weights is None else float(weights.sum())
        error = float(np.mean(squares / task.scale**2) / total)
        if not np.isfinite(error):
            return None
        return Iterate(params, trace, error, float(squares.mean() / total))


def scores(params: Params, features: tuple[Array, ...]) -> Array:
    """Return the readout's scores for `features`: states, or states and inputs."""
    coef, width = params["coef"], features[0].shape[1]
    z = features[0] @ coef[:, :width].T
    if len(features) > 1:
        z += features[1] @ coef[:, width:].T
    z += params["intercept"]
    return z


def _feature_blocks(
    task: Task, trace: Trace, places: Array
) -> Iterator[tuple[Array, tuple[Array, ...]]]:
    """Yield blocks of indices into the targets, with the readout's features in these rows."""
    for where, take in blocks(task.steps(places)):
        yield places[where], readout_features(task, trace, take)


def regressors(task: Task, trace: Trace, take: Any) -> tuple[Array, Array]:
    """Return the recurrent layer's regressors at some steps: scaled inputs, and h(t-1)."""
    before = as_rows(trace.states[:-1])
    return columns_of(task.inputs[take], task.network.n_channels) / task.input_scale, before[take]


def readout_features(task: Task, trace: Trace, take: Any) -> tuple[Array, ...]:
    """Return the readout's features at some steps: states, and inputs with `include_input`."""
    states = as_rows(trace.states[1:])[take]
    if task.network.include_input:
        return states, task.inputs[take]
    return (states,)


def echo_gap(task: Task, iterate: Iterate) -> float:
    """Return the mean squared gap between scores after runs from different initial states.

    The runs start from zeros and from seven random states, and receive ``max(washout, 100)`` inputs
    from each of three segments of the longest sequence. A large gap means that outputs still depend
    on the initial state. The spectral radius cannot replace the gap: in measurements, good networks
    had spectral radii of up to 1.8. If there are several sequences, and all are shorter than that
    number of inputs, the gap is taken as 0, since each sequence starts from the same state.
    """
    # three segments of the longest sequence
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
    # run each segment from all initial states in parallel; compare scores with the run from zeros
    params, starts = iterate.params, _start_states(task, iterate.trace)
    X, states = np.repeat(pieces, len(starts), axis=1), np.tile(starts, (len(places), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        end = task.cell.forward(params, X, task.cell.before(X[0], states)).states[-1]
        groups = end.reshape(len(places), len(starts), -1)
        coef = params["coef"][:, : end.shape[1]] / task.scale[:, None]
        gap = float(np.mean(((groups - groups[:, :1]) @ coef.T) ** 2))
    return gap if np.isfinite(gap) else np.inf


def begin(task: Task, params: Params, tau: float) -> Iterate:
    """Return the first iterate: the given weights, with the readout fitted."""
    iterate = with_readout(task, params, tau)
    if iterate is None:
        raise ValueError(
            "The states that params produce for X diverge. Scale X or W down, or use a bounded "
            'activation such as "tanh".'
        )
    return iterate


def conclude(
    task: Task, given: Params, best: Iterate, errors: list[float], tau: float
) -> LeastSquaresResult:
    """Return the result: the best iterate, or the given weights if their error is smaller."""
    history = np.array(errors)
    if given["coef"].any():
        initial = measure(task, given, simulate(task, given))
        if initial is not None and initial.mse < best.mse:
            return LeastSquaresResult(given, np.array([initial.mse]), 0)
    params = best.params
    if task.fit is not task.scored:  # refit the readout to all rows, including held-out ones
        every = replace(task, fit=np.arange(len(task.batch.targets)))
        refitted = with_readout(every, params, tau)
        params = params if refitted is None else refitted.params
    return LeastSquaresResult(params, history, len(history) - 1)


def _start_states(task: Task, trace: Trace) -> Array:
    """Return initial states: zeros, and random states in .9 of the range of the states."""
    shape = (_GAP_STATES, task.cell.state_size)
    uniform = np.random.default_rng(task.rng_seed).uniform(-0.9, 0.9, shape)
    drawn = task.cell.random_states(uniform, float(np.abs(trace.states).max()))
    return np.vstack([np.zeros((1, shape[1])), drawn]).astype(trace.states.dtype)


def better(task: Task, candidate: Iterate, current: Iterate) -> bool:
    """Return whether a candidate has a smaller error and forgets its initial state."""
    if not candidate.error < current.error or candidate.mse > current.mse:
        return False
    return echo_gap(task, candidate) <= max(_GAP_SHARE * candidate.error, _GAP_FLOOR)
