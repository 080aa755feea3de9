"""Closed loops from places in the training data: weights that a loop does not survive are left.

A one-step error says little of a loop: a readout may be right along the training data and send the
state away as soon as it is a little off. So where a network is trained to predict its own next
input, its start and what training makes of it are tried: loops begin at several places of the data
and at its end, where `forecast` begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from reservoir._typing import Array
from reservoir.estimators._progress import Pairing
from reservoir.estimators.rnn._missing_rows import followed
from reservoir.estimators.rnn._starting_weights import resolve_init
from reservoir.loops.loop_score import LoopScore, Yardstick, run_loops, score_loops
from reservoir.training.bptt import Network, predict
from reservoir.training.loop_engines import using
from reservoir.training.params import Params
from reservoir.training.starts import STARTS
from reservoir.training.trainer import Data, Training, refit_readout

_PLACES = 7  # within the data, and one more at its end
_STEPS = 500  # of a loop; of a short series three quarters, so that a trend stays in the leeway
_SCORED = 100  # steps of a loop that are compared with what followed
_ENOUGH = 8  # steps of a loop, at least
_LEEWAY = 1.0  # widths of the training range that a loop may leave it by
_DRAWS = 3  # networks more that are drawn where the first one is lost
_TAUS = (1.0, 1e2, 1e4, 1e6)  # growing penalties on the readout, where no draw will do
_DEARER = 1.25  # times the error of lost loops that those which stay instead may have
_BLOCK_STEPS = 2048


def trial_of(
    estimator: Any,
    network: Network,
    inputs: Sequence[Array],
    targets: Sequence[Array],
    starts: Sequence[Array],
    known: list[Array] | None = None,
) -> Trial | None:
    """Return how to try an estimator's loop; None if it has none, or was told where to start.

    `known` says which rows have targets, if not all have.
    """
    if not (isinstance(estimator.init, str) and estimator.init == "auto"):
        return None
    if resolve_init(estimator, network.cell) not in STARTS:
        return None  # nothing is known at a random start
    if estimator.target == "last" or is_classifier(estimator) or network.output == "softmax":
        return None
    if network.coded or estimator._clock is not None or network.n_features < network.n_outputs:
        return None
    inputs, targets = followed(inputs, targets, known)
    pairing = Pairing(network.n_outputs, feedback=False)
    for X, Y in zip(inputs, targets, strict=True):
        pairing.add(X, Y)
    if pairing.problem is not None:
        return None
    trial = Trial(network, Data(inputs, targets, starts=np.stack(starts)))
    return trial if trial.places else None


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
        self.yardstick = Yardstick.of(data.targets)
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
            states = self._listen(params)
            with using("numpy"):  # one step at a time: nothing for kernels
                rows = self._run(params, states)
            targets = self.data.targets
            followed = [targets[i][t : t + self.n_scored] for i, t in self.places]
            return score_loops(rows, followed, self.yardstick, leeway=_LEEWAY)

    def _listen(self, params: Params) -> Array:
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
