"""Trials of starts: some epochs for one target per sequence, and closed loops where there are any.

For one target per sequence no rule says which start suits. A reservoir under a ridge readout knows
patients and speakers before any gradient; what decides long before the end of a sequence is learned
from random weights, or not at all. So where ``init="auto"`` meets ``target="last"``, each start is
trained for a while on three quarters of the sequences, the last quarter says which is ahead, and it
goes on from there, with all of them. Random weights are taken unless another start is clearly
ahead: a start that has learned its three quarters by heart is ahead of nothing, and what random
weights stand on for some epochs is often a plateau, not the end.

A one-step error says little of a loop: a readout may be right along the training data and send the
state away as soon as it is a little off. So where a network is trained to predict its own next
input, its start and what training makes of it are tried: loops begin at several places of the data
and at its end, where `forecast` begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split

from reservoir._typing import Array
from reservoir.estimators.progress import NextInputCheck
from reservoir.estimators.reporting import say
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import (
    check_same,
    name_of_start,
    resolve_init,
    starting_weights,
)
from reservoir.estimators.rnn.training_run import Task, run_training
from reservoir.loops.loop_score import Baseline, LoopScore, run_loops, score_loops
from reservoir.training.bptt import Network, predict
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.loop_engines import using
from reservoir.training.params import Params
from reservoir.training.starts import STARTS
from reservoir.training.trainer import Data, Training, data_loss, refit_readout

CANDIDATES = ("least_squares", "esn", "orthogonal")
BASE = "orthogonal"  # what is taken unless another is clearly ahead
_BY_CHANCE = 0.025  # how often noise is ahead
_HELD = 0.25  # of the sequences
_FEWEST = 12  # sequences: fewer say nothing
_PART, _LEAST = 8, 10  # epochs of a trial: an eighth of all, ten at least, if there are so many
_PLACES = 7  # within the data, and one more at its end
_STEPS = 500  # of a loop; of a short series three quarters, so that a trend stays in the leeway
_SCORED = 100  # steps of a loop that are compared with what followed
_ENOUGH = 8  # steps of a loop, at least
_LEEWAY = 1.0  # widths of the training range that a loop may leave it by
_DRAWS = 3  # networks more that are drawn where the first one is lost
_TAUS = (1.0, 1e2, 1e4, 1e6)  # growing penalties on the readout, where no draw will do
_DEARER = 1.25  # times the error of lost loops that those which stay instead may have
_BLOCK_STEPS = 2048


class Start:
    """The weights that a training run starts from.

    Attributes
    ----------
    name : str or None
        What `init` came to; None for an estimator.
    params : dict of arrays
    drawn : bool
        Whether they are random.
    """

    def __init__(self, name: str | None, params: Params, *, drawn: bool, trial: Any = None) -> None:
        self.name, self.params, self.drawn, self._trial = name, params, drawn, trial

    def settle(self, done: Training) -> None:
        """Go back to these weights where training has lost closed loops that they keep."""
        if self._trial is not None:
            self._trial.settle(done, self.params)


def first_weights(
    estimator: Any,
    model: NetworkModel,
    task: Task,
    given: tuple[Any, Any],
    generator: np.random.Generator,
) -> Start:
    """Return where a training run starts: of several starts, where they are tried, the best.

    Parameters
    ----------
    estimator : NetworkEstimator
    model : NetworkModel
    task : Task
    given : tuple of X and y, as the user gave them
    generator : numpy.random.Generator
    """
    network, learned = model.network, task.learned
    if estimator.warm_start and not estimator._is_new:
        before: NetworkModel = estimator._model
        check_same(network, before.network)
        params = {name: array.astype(learned.dtype) for name, array in before.params.items()}
        return Start(estimator.init_, params, drawn=False)
    trial = trial_of(estimator, model, task)
    name = name_of_start(estimator, network.cell)
    if wants_trial(estimator, network, learned):
        found = best_start(estimator, network, learned, generator)
        if found is not None:
            return Start(*found, drawn=False, trial=trial)
    step = None if model.clock is None else model.clock.step

    def draw() -> Params:
        spawned = generator.spawn(1)[0]
        return starting_weights(estimator, network, *given, learned, step=step, generator=spawned)

    params = draw()
    params = params if trial is None else trial.safest(params, draw, learned)
    return Start(name, params, drawn=name in INITIALIZERS, trial=trial)


def wants_trial(estimator: Any, network: Network, data: Data) -> bool:
    """Say whether starts are to be compared: nobody has named one, and there is what to compare."""
    named = not isinstance(estimator.init, str) or estimator.init != "auto"
    if named or estimator.target != "last" or not estimator.max_iter:
        return False
    return network.cell.layer() is not None and len(data) >= _FEWEST


def best_start(
    estimator: Any, network: Network, data: Data, generator: np.random.Generator
) -> tuple[str, Params] | None:
    """Return the start that is to be trained, and its weights after some epochs.

    None if weights of 0 leave no sequences to learn from, or to compare by.
    """
    kept, held = (data.picked(index) for index in _parted(estimator, data, generator))
    held = held.picked(_counted(held))
    if len(_counted(kept)) < 2 or len(held) < 2:
        return None
    short = copy(estimator)
    short.max_iter = min(estimator.max_iter, max(_LEAST, estimator.max_iter // _PART))
    short.n_iter_no_change = short.max_iter + 1  # some epochs on a plateau say nothing
    short.verbose = False
    trained, losses = {}, {}
    for name, spawned in zip(CANDIDATES, generator.spawn(len(CANDIDATES)), strict=True):
        short.init = name
        params = starting_weights(short, network, None, None, kept, step=None, generator=spawned)
        done = run_training(short, network, params, kept, held, spawned)
        trained[name], losses[name] = done.params, _losses(network, done.params, held)
        if estimator.verbose:
            say(
                f"Trial of init={name!r}: loss {done.criterion[done.best_epoch]:.6g} of held-out "
                f"sequences in epoch {done.best_epoch}"
            )
    weights = np.ones(len(held)) if held.weights is None else np.ravel(list(held.weights))
    ahead = [name for name in CANDIDATES if _is_ahead(losses[name], losses[BASE], weights)]
    best = min(ahead, key=lambda name: weights @ losses[name], default=BASE)
    if estimator.verbose:
        say(f"Training goes on from init={best!r}")
    return best, trained[best]


def _losses(network: Network, params: Params, data: Data) -> Array:
    """Return the loss of each sequence."""
    each = (data.picked(np.array([i])) for i in range(len(data)))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([data_loss(network, params, one) for one in each])


def _is_ahead(losses: Array, of: Array, weights: Array) -> bool:
    """Say whether losses are clearly the lower ones, by a paired t test."""
    if not np.isfinite(losses).all():
        return False
    if not np.isfinite(of).all():
        return True
    gains, shares = of - losses, weights / weights.sum()
    mean, largest = float(shares @ gains), float(shares @ shares)
    if largest == 1:  # a single sequence
        return False
    # of a mean with unequal weights; with equal ones the variance over n
    variance = largest / (1 - largest) * float(shares @ (gains - mean) ** 2)
    return mean > stats.t.isf(_BY_CHANCE, 1 / largest - 1) * np.sqrt(variance)


def _parted(estimator: Any, data: Data, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw which sequences are learned from and which are held out; of labels a share of each."""
    n, labels = len(data), None
    if is_classifier(estimator):
        coded, codes, counts = np.unique(
            np.stack(list(data.targets)), axis=0, return_inverse=True, return_counts=True
        )
        if counts.min() > 1 and len(coded) <= _HELD * n:
            labels = codes.ravel()
    seed = int(generator.integers(2**31))
    kept, held = train_test_split(np.arange(n), test_size=_HELD, stratify=labels, random_state=seed)
    return np.sort(kept), np.sort(held)


def _counted(data: Data) -> Array:
    """Return which sequences have a weight."""
    if data.weights is None:
        return np.arange(len(data))
    return np.flatnonzero([np.any(np.asarray(weight) > 0) for weight in data.weights])


# ---------------------------------------------------------------------- closed loops


def trial_of(estimator: Any, model: NetworkModel, task: Task) -> Trial | None:
    """Return how to try an estimator's loop; None if it has none, or was told where to start."""
    network = model.network
    if not (isinstance(estimator.init, str) and estimator.init == "auto"):
        return None
    if resolve_init(estimator, network.cell) not in STARTS:
        return None  # nothing is known at a random start
    if estimator.target == "last" or is_classifier(estimator) or network.output == "softmax":
        return None
    if network.coded or model.clock is not None or network.n_features < network.n_outputs:
        return None
    inputs, targets = _followed(task.sequences.arrays, task.targets, task.known)
    pairing = NextInputCheck(network.n_outputs, feedback=False)
    for X, Y in zip(inputs, targets, strict=True):
        pairing.add(X, Y)
    if pairing.problem is not None:
        return None
    trial = Trial(network, Data(inputs, targets, starts=np.stack(task.starts)))
    return trial if trial.places else None


def _followed(
    inputs: Sequence[Array], targets: Sequence[Array], known: list[Array] | None
) -> tuple[list[Array], list[Array]]:
    """Return sequences whose missing targets are the next inputs, which targets are known to be.

    A last row without a target has no next input, and is left out.
    """
    if known is None:
        return list(inputs), list(targets)
    rows, values = [], []
    for X, Y, k in zip(inputs, targets, known, strict=True):
        n = len(X) - (not k[-1])
        following = np.concatenate([X[1:, : Y.shape[1]], Y[-1:]])
        rows.append(X[:n])
        values.append(np.where(k[:, None], Y, following)[:n])
    return rows, values


class Trial:
    """Loops on own outputs, from the same places for all weights.

    Parameters
    ----------
    network : Network
    data : Data
        The sequences, with ``y[t] == X[t+1]`` in the first columns of X; what is behind them in X
        is exogenous, and ends the loops with the data.
    """

    def __init__(self, network: Network, data: Data) -> None:
        self.network, self.data = network, data
        q = network.n_outputs
        self.driven = network.n_features > q
        self.yardstick = Baseline.of(data.targets)
        self.n_steps, self.places = self._find_places()
        self.n_scored = min(self.n_steps, _SCORED)

    def _find_places(self) -> tuple[int, list[tuple[int, int]]]:
        """Return how long loops are, and where they begin: a sequence, and a row of it."""
        lengths = np.array([len(X) for X in self.data.inputs])
        known = min(_STEPS if self.driven else _SCORED, int(lengths.max()) // 4)
        first = np.minimum(100, lengths // 10)
        rooms = np.maximum(lengths - known - first + 1, 0)
        if known < _ENOUGH:
            return 0, []
        ends = np.cumsum(rooms)
        places = []
        for pick in np.unique(np.linspace(0, ends[-1] - 1, _PLACES).astype(int)):
            i = int(np.searchsorted(ends, pick, side="right"))
            places.append((i, int(first[i] + pick - (ends[i] - rooms[i]))))
        if self.driven:
            return known, places
        return min(_STEPS, 3 * int(lengths.max()) // 4), [
            *places,
            (len(lengths) - 1, int(lengths[-1])),
        ]

    def verdict(self, params: Params) -> LoopScore:
        """Run the loops."""
        with np.errstate(over="ignore", invalid="ignore"):
            states = self._teacher_forced_state(params)
            with using("numpy"):  # one step at a time: nothing for kernels
                rows = self._run(params, states)
            targets = self.data.targets
            followed = [targets[i][t : t + self.n_scored] for i, t in self.places]
            return score_loops(rows, followed, self.yardstick, leeway=_LEEWAY)

    def _teacher_forced_state(self, params: Params) -> Array:
        """Return the state before each place, the data played up to there."""
        states: list[Array] = []
        at, row, state = -1, 0, np.empty(0)
        for i, t in self.places:
            if i != at:
                starts = self.data.starts
                size = self.network.cell.state_size
                state = np.zeros((1, size)) if starts is None else starts[i][None]
                at, row = i, 0
            X = self.data.inputs[i]
            state = state.astype(X.dtype, copy=False)
            for begin in range(row, t, _BLOCK_STEPS):
                block = X[begin : min(begin + _BLOCK_STEPS, t)]
                state = self.network.cell.forward(params, block[:, None], state).end
            row = t
            states.append(state[0])
        return np.stack(states)

    def _run(self, params: Params, state: Array) -> Array:
        """Return the outputs of all loops, (n_steps, n_loops, n_outputs)."""
        q, inputs = self.network.n_outputs, self.data.inputs

        def advance(x: Array, state: Array) -> tuple[Array, Array]:
            outputs, state = predict(self.network, params, x[None], state)
            return outputs[0], state

        def exog(k: int) -> Array:
            return np.stack([inputs[i][t + k, q:] for i, t in self.places])

        first = np.stack([self._row(i, t) for i, t in self.places]).astype(inputs[0].dtype)
        driven = exog if self.driven else None
        return run_loops(advance, first, state, self.n_steps, q, driven)

    def _row(self, i: int, t: int) -> Array:
        X = self.data.inputs[i]
        return X[t] if t < len(X) else np.asarray(self.data.targets[i][-1])

    def safest(self, params: Params, draw: Callable[[], Params], data: Data) -> Params:
        """Return a start whose loops stay: these weights, others, or a smaller readout.

        Weights whose loops all stay are returned as they are.
        """
        best, starts = (self.verdict(params), params), [params]
        while best[0].n_lost and len(starts) <= _DRAWS:
            starts.append(draw())
            best = self._better(best, starts[-1])
        for tau in _TAUS:
            if not best[0].n_lost:
                break
            limit = _DEARER * best[0].error  # a series may have to leave its range: do not hold it
            for start in starts:
                smaller = refit_readout(self.network, start, data, tau=tau)
                best = self._better(best, smaller, limit)
        return best[1]

    def _better(
        self, best: tuple[LoopScore, Params], params: Params, limit: float = np.inf
    ) -> tuple[LoopScore, Params]:
        verdict = self.verdict(params)
        return (verdict, params) if verdict < best[0] and verdict.error <= limit else best

    def settle(self, done: Training, start: Params) -> None:
        """Go back to the start where training has lost loops, and they were as accurate there."""
        if not done.best_epoch:
            return
        trained = self.verdict(done.params)
        if not trained.n_lost:
            return
        before = self.verdict(start)
        if before < trained and before.error <= _DEARER * trained.error:
            done.params, done.best_epoch = start, 0
