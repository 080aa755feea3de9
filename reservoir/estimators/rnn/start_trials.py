"""Trials of initial weights: by some epochs of training, or by the stability of closed loops.

With one target per sequence no rule predicts which start is best. On some classification tasks a
ridge readout on a random reservoir is accurate before any gradient step; on other tasks training
reaches a lower error from random weights. With ``init="auto"`` and ``target="last"`` each start is
therefore trained for some epochs on three quarters of the sequences, compared on the last quarter,
and the best one is trained further, with all sequences.
Random weights are taken unless another start is clearly better: a start may fit noise in the
sequences that it is trained on, and the loss of random weights is often on a plateau for some
epochs.

The error of one step indicates little about a closed loop: a readout may be accurate along the
training data, and let the state diverge after a small deviation. For a network that is trained to
predict its next input, both the start and the trained weights are therefore tested in closed loop,
from several origins in the data and from its end, where `forecast` begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split

from reservoir._typing import Array
from reservoir.estimators.progress import NextInputCheck
from reservoir.estimators.reporting import log
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import (
    BASE,
    check_same,
    resolve_init,
    starting_weights,
)
from reservoir.estimators.rnn.training_run import Task, resolve_solver, run_training
from reservoir.loops.loop_score import Baseline, LoopScore, run_loops, score_loops
from reservoir.training.bptt import Network, predict
from reservoir.training.initializers import INITIALIZERS, initialize
from reservoir.training.loop_engines import using
from reservoir.training.params import Params
from reservoir.training.starts import N_DRAWS, STARTS, NoStart, StartResult
from reservoir.training.trainer import Data, Training, data_loss, refit_readout
from reservoir.training.variable_projection import trials

CANDIDATES = ("least_squares", "esn", "orthogonal")
_BY_CHANCE = 0.025  # significance level of the t test
_HELD_OUT = 0.25  # of the sequences
_FEWEST = 12  # sequences: fewer are not conclusive
_PART, _LEAST = 8, 10  # epochs of a trial: an eighth of `max_iter`, at least ten if it allows
_TRIED = 25  # iterations of random weights and of a start by parts; ten do not tell them apart
_PASSED_FROM = 75  # iterations; with fewer, upper layers that are fitted end at smaller errors
_ORIGINS = 7  # within the data, and one more at its end
_STEPS = 1000  # of a loop, or twice the length of a shorter series
_DRIVEN_STEPS = 500  # of a loop with exogenous columns, or a quarter of a shorter series
_SCORED = 100  # steps of a loop that are compared with the true values
_ENOUGH = 8  # steps of a loop, at least
_LEEWAY = 1.0  # widths of the training range by which a loop may leave it
_DRAWS = 3  # further networks that are drawn if loops of the first one diverge
_TAUS = (1.0, 1e2, 1e4, 1e6)  # growing penalties on the readout, if loops of all draws diverge
_DEARER = 1.25  # largest error of more stable loops, relative to that of the loops they replace
_BLOCK_STEPS = 2048


#: Columns of the table of starts, and their dtypes.
_COLUMNS: dict[str, Any] = {
    "init": str,
    "draw": np.int64,
    "input_scaling": np.float64,
    "error": np.float64,
    "halfway_error": np.float64,
    "trial_loss": np.float64,
    "lost_loops": np.float64,
    "readout_tau": np.float64,
    "kept": np.bool_,
}


class Candidate(NamedTuple):
    """Initial weights, and their row in the table of starts."""

    params: Params
    row: dict[str, Any]


class StartTable:
    """The starts that were tried, one row each, as in the attribute `start_results_`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._n_drawn = 0

    def add(self, init: str | None, params: Params, found: StartResult | None) -> Candidate:
        """Add a start and all candidates that it was chosen from; return the start."""
        if found is None:
            row = self._row(init, self._n_drawn)
            self._n_drawn += 1
            return Candidate(params, row)
        for (i, j), error in np.ndenumerate(found.errors):
            row = self._row(init, self._n_drawn + i)
            row |= {"input_scaling": found.input_scalings[j], "error": error}
            row["halfway_error"] = found.halfway[i, j]
            if (i, j) == (found.draw, found.scaling):
                chosen = row
        self._n_drawn += len(found.errors)
        return Candidate(params, chosen)

    def add_variant(self, start: Candidate, params: Params, readout_tau: float) -> Candidate:
        """Add a start with a readout refitted under a stronger ridge penalty, and return it."""
        self.rows.append({**start.row, "readout_tau": readout_tau, "lost_loops": np.nan})
        return Candidate(params, self.rows[-1])

    def results(self, kept: Candidate) -> dict[str, Array]:
        """Return the table by columns."""
        for row in self.rows:
            row["kept"] = row is kept.row
        return {
            name: np.array([row[name] for row in self.rows], dtype=dtype)
            for name, dtype in _COLUMNS.items()
        }

    def _row(self, init: str | None, draw: int) -> dict[str, Any]:
        self.rows.append({**dict.fromkeys(_COLUMNS, np.nan), "init": init, "draw": draw})
        return self.rows[-1]


class Start:
    """Initial weights of a training run; `drawn` tells whether they are random.

    `name` is as in `init`, None for an estimator. `results` are the starts that were tried, by
    columns, None if the weights do not come from data. `began` computes the start from part of the
    data; it is None if the weights do not come from data, or have been trained.
    """

    def __init__(
        self,
        name: str | None,
        params: Params,
        *,
        drawn: bool,
        results: dict[str, Array] | None = None,
        loop_test: ClosedLoopTest | None = None,
        began: Callable[[Data], Params] | None = None,
    ) -> None:
        self.name, self.params, self.drawn, self.began = name, params, drawn, began
        self.results, self._loop_test = results, loop_test

    def settle(self, done: Training) -> None:
        """Return to these weights if closed loops that were stable diverge after training."""
        if self._loop_test is not None:
            self._loop_test.settle(done, self.params)


def first_weights(
    estimator: Any,
    model: NetworkModel,
    task: Task,
    given: tuple[Any, Any],
    generator: np.random.Generator,
) -> Start:
    """Return the start of training, chosen by a trial if needed; `given` is (X, y) of the user."""
    network, learned = model.network, task.learned
    if estimator.warm_start and not estimator._is_new:
        before: NetworkModel = estimator._model
        check_same(network, before.network)
        params = {name: array.astype(learned.dtype) for name, array in before.params.items()}
        return Start(estimator.init_, params, drawn=False, results=estimator.start_results_)
    tick, table = time.perf_counter(), StartTable()
    loop_test = loop_test_of(estimator, model, task)
    kept = None
    if wants_trial(estimator, network, learned):
        kept = best_start(estimator, network, learned, generator, table)
    compared = kept is not None  # and trained for some epochs
    if kept is None:
        fixed: dict[str, Any] = {"pass_on": _passes_on(estimator, network, learned)}
        fixed["step"] = None if model.clock is None else model.clock.step

        def draw(n_draws: int = 1) -> Candidate:
            options = {"generator": generator.spawn(1)[0], "n_draws": n_draws, **fixed}
            return table.add(*starting_weights(estimator, network, *given, learned, **options))

        kept = draw(N_DRAWS)
        kept, compared = _or_random(estimator, network, learned, kept, generator, table)
        if loop_test is not None:
            kept = loop_test.safest(kept, draw, learned, table)
    name = kept.row["init"]
    results = table.results(kept) if compared or name in STARTS else None
    if estimator.verbose and results is not None:
        log(f"{_describe(kept, table)} {time.perf_counter() - tick:.2g} s.")
    drawn = name in INITIALIZERS and not compared
    fitted = name in STARTS and not compared
    began = _starter(estimator, network, learned, name, generator) if fitted else None
    options: dict[str, Any] = {"results": results, "loop_test": loop_test, "began": began}
    return Start(name, kept.params, drawn=drawn, **options)


def _starter(
    estimator: Any, network: Network, data: Data, name: str, generator: np.random.Generator
) -> Callable[[Data], Params]:
    """Return a function that computes a start from part of the data."""
    begun = copy(estimator)
    begun.init = name
    options: dict[str, Any] = {"step": None, "pass_on": _passes_on(begun, network, data)}

    def began(part: Data) -> Params:
        child = generator.spawn(1)[0]
        return starting_weights(begun, network, None, None, part, generator=child, **options)[1]

    return began


def _passes_on(estimator: Any, network: Network, data: Data) -> bool:
    """Whether upper layers of a stack pass states on: if variable projection trains them enough."""
    if resolve_init(estimator, network.cell) != "least_squares":
        return False
    if estimator.max_iter < _PASSED_FROM:
        return False
    return resolve_solver(estimator, network, data, drawn=False) == "variable_projection"


def _describe(kept: Candidate, table: StartTable) -> str:
    """Return a sentence on the starts that were tried, and on the one that is kept."""
    row, n_draws = kept.row, 1 + max(row["draw"] for row in table.rows)
    drawn = f"{n_draws} network{'s' * (n_draws > 1)} drawn, {len(table.rows)} starts tried."
    text = f"Start {row['init']!r}: {drawn} Kept: draw {row['draw']}"
    for name, words in (
        ("input_scaling", "input weights times {:g}"),
        ("error", "held-out error {:.3g} with the readout fitted"),
        ("halfway_error", "{:.3g} after half of the iterations"),
        ("readout_tau", "readout with a stronger ridge penalty (tau={:g})"),
        ("lost_loops", "{:g} closed loops out of range"),
    ):
        if np.isfinite(row[name]):
            text += f", {words.format(row[name])}"
    return f"{text}."


def wants_trial(estimator: Any, network: Network, data: Data) -> bool:
    """Whether starts are compared: `init` is "auto", and there are enough sequences."""
    named = not isinstance(estimator.init, str) or estimator.init != "auto"
    if named or estimator.target != "last" or not estimator.max_iter:
        return False
    return network.cell.starts_from_data and len(data) >= _FEWEST


def _or_random(
    estimator: Any,
    network: Network,
    data: Data,
    kept: Candidate,
    generator: np.random.Generator,
    table: StartTable,
) -> tuple[Candidate, bool]:
    """Return the start, or random weights if they are better after some iterations.

    Only a start that was put together from parts, for variable projection, is compared. Both are
    trained on the same rows, to which the start is fitted for this purpose, and compared
    on the others. Also return whether the random weights are taken, as they are after these
    iterations.
    """
    by_parts = kept.row["init"] in STARTS and network.cell.layer() is None
    auto = isinstance(estimator.init, str) and estimator.init == "auto" and estimator.max_iter
    solver = resolve_solver(estimator, network, data, drawn=False)
    if not (by_parts and auto and solver == "variable_projection"):
        return kept, False
    generator = generator.spawn(1)[0]
    started = _starter(estimator, network, data, kept.row["init"], generator)

    def drawn(part: Data) -> Params:
        params = initialize(network.weights(), BASE, random_state=generator)
        params = {name: array.astype(part.dtype) for name, array in params.items()}
        return refit_readout(network, params, part)

    trained = trials(network, data, (started, drawn), min(estimator.max_iter, _TRIED), generator)
    if trained is None:
        return kept, False
    own, random = trained
    kept.row["trial_loss"] = own.criterion[own.best_epoch]
    other = table.add(BASE, refit_readout(network, random.params, data), None)
    other.row["trial_loss"] = random.criterion[random.best_epoch]
    wins = other.row["trial_loss"] < kept.row["trial_loss"]
    return (other, True) if wins else (kept, False)


def best_start(
    estimator: Any,
    network: Network,
    data: Data,
    generator: np.random.Generator,
    table: StartTable,
) -> Candidate | None:
    """Return the best start, with its weights after some epochs; all are added to the table.

    None if too few sequences with a positive weight remain to learn from, or to compare with.
    """
    kept, held_out = (data.picked(index) for index in _parted(estimator, data, generator))
    held_out = held_out.picked(_counted(held_out))
    if len(_counted(kept)) < 2 or len(held_out) < 2:
        return None
    short = copy(estimator)
    short.max_iter = min(estimator.max_iter, max(_LEAST, estimator.max_iter // _PART))
    short.n_iter_no_change = short.max_iter + 1  # no early stopping: a plateau may end later
    short.verbose, short.curriculum = False, None  # starts are compared on all the data
    trained: dict[str, Candidate] = {}
    losses = {}
    for name, spawned in zip(CANDIDATES, generator.spawn(len(CANDIDATES)), strict=True):
        short.init = name
        try:
            _, params, found = starting_weights(
                short, network, None, None, kept, step=None, generator=spawned
            )
        except NoStart:
            continue
        solver = resolve_solver(short, network, kept, drawn=name in INITIALIZERS)
        done = run_training(short, network, params, kept, held_out, spawned, solver=solver)
        trained[name] = table.add(name, done.params, found)
        losses[name] = _losses(network, done.params, held_out)
        if estimator.verbose:
            log(
                f"Trial of init={name!r}: loss {done.criterion[done.best_epoch]:.6g} of held-out "
                f"sequences in epoch {done.best_epoch}"
            )
    given = held_out.weights
    weights = np.ones(len(held_out)) if given is None else np.ravel(list(given))
    for name, each in losses.items():
        trained[name].row["trial_loss"] = float(weights @ each / weights.sum())
    better = [name for name in losses if _is_better(losses[name], losses[BASE], weights)]
    best = min(better, key=lambda name: weights @ losses[name], default=BASE)
    if estimator.verbose:
        log(f"Training continues from init={best!r}")
    return trained[best]


def _losses(network: Network, params: Params, data: Data) -> Array:
    """Return the loss of each sequence."""
    each = (data.picked(np.array([i])) for i in range(len(data)))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([data_loss(network, params, one) for one in each])


def _is_better(losses: Array, base: Array, weights: Array) -> bool:
    """Whether losses are significantly lower than those of the base, by a paired t test."""
    if not np.isfinite(losses).all():
        return False
    if not np.isfinite(base).all():
        return True
    gains, shares = base - losses, weights / weights.sum()
    mean, squares = float(shares @ gains), float(shares @ shares)
    if squares == 1:  # a single sequence
        return False
    # variance of a weighted mean, with 1 / squares effective sequences; with equal weights the
    # sample variance over n
    variance = squares / (1 - squares) * float(shares @ (gains - mean) ** 2)
    return mean > stats.t.isf(_BY_CHANCE, 1 / squares - 1) * np.sqrt(variance)


def _parted(estimator: Any, data: Data, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw sequences to learn from and held-out ones, stratified by label if possible."""
    n, labels = len(data), None
    if is_classifier(estimator):
        coded, codes, counts = np.unique(
            np.stack(list(data.targets)), axis=0, return_inverse=True, return_counts=True
        )
        if counts.min() > 1 and len(coded) <= _HELD_OUT * n:
            labels = codes.ravel()
    seed = int(generator.integers(2**31))
    kept, held_out = train_test_split(
        np.arange(n), test_size=_HELD_OUT, stratify=labels, random_state=seed
    )
    return np.sort(kept), np.sort(held_out)


def _counted(data: Data) -> Array:
    """Return the numbers of the sequences with a positive weight."""
    if data.weights is None:
        return np.arange(len(data))
    return np.flatnonzero([np.any(np.asarray(weight) > 0) for weight in data.weights])


# ---------------------------------------------------------------------- closed loops


def loop_test_of(estimator: Any, model: NetworkModel, task: Task) -> ClosedLoopTest | None:
    """Return the test of an estimator's closed loops; None if none is needed."""
    network = model.network
    if not (isinstance(estimator.init, str) and estimator.init == "auto"):
        return None
    if resolve_init(estimator, network.cell) not in STARTS:
        return None  # the readout of a random start has not been fitted
    if estimator.target == "last" or is_classifier(estimator) or network.output == "softmax":
        return None
    if network.coded or model.clock is not None or network.n_features < network.n_outputs:
        return None
    if not network.cell.causal:
        return None
    learned, known = task.learned, task.known
    if known is not None:
        known = [known[i][: len(X)] for i, X in zip(task.kept, learned.inputs, strict=True)]
    inputs, targets = _followed(learned.inputs, learned.targets, known)
    pairing = NextInputCheck(network.n_outputs, feedback=False)
    for X, Y in zip(inputs, targets, strict=True):
        pairing.add(X, Y)
    if pairing.problem is not None:
        return None
    loop_test = ClosedLoopTest(network, Data(inputs, targets, starts=learned.starts))
    return loop_test if loop_test.origins else None


def _followed(
    inputs: Sequence[Array], targets: Sequence[Array], known: list[Array] | None
) -> tuple[list[Array], list[Array]]:
    """Return sequences whose missing targets are filled with the next inputs.

    A last row without a target has no next input, and is dropped.
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


class ClosedLoopTest:
    """Closed loops from fixed origins, by which different weights of a network are compared.

    In `data`, ``y[t] == X[t+1]`` in the first columns of X; further columns are exogenous. If there
    are any, the loops end where the data end.
    """

    def __init__(self, network: Network, data: Data) -> None:
        self.network, self.data = network, data
        q = network.n_outputs
        self.driven = network.n_features > q
        self.baseline = Baseline.of(data.targets)
        self.slope = _slope(data.targets)
        self.n_steps, self.origins = self._find_origins()
        self.n_scored = min(self.n_steps, _SCORED)

    def _find_origins(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of steps of loops, and their origins: (sequence, row)."""
        lengths = np.array([len(X) for X in self.data.inputs])
        known = min(_DRIVEN_STEPS if self.driven else _SCORED, int(lengths.max()) // 4)
        first = np.minimum(100, lengths // 10)
        rooms = np.maximum(lengths - known - first + 1, 0)
        if known < _ENOUGH:
            return 0, []
        # evenly spaced over all rows of all sequences from which a loop can be scored
        ends = np.cumsum(rooms)
        origins = []
        for pick in np.unique(np.linspace(0, ends[-1] - 1, _ORIGINS).astype(int)):
            i = int(np.searchsorted(ends, pick, side="right"))
            origins.append((i, int(first[i] + pick - (ends[i] - rooms[i]))))
        if self.driven:
            return known, origins
        end = (len(lengths) - 1, int(lengths[-1]))
        return min(_STEPS, 2 * int(lengths.max())), [*origins, end]

    def score(self, params: Params) -> LoopScore:
        """Run the loops, and return their score."""
        with np.errstate(over="ignore", invalid="ignore"):
            states = self._teacher_forced_state(params)
            with using("numpy"):  # one step at a time: nothing for kernels
                rows = self._run(params, states)
            targets = self.data.targets
            followed = [targets[i][t : t + self.n_scored] for i, t in self.origins]
            # a trend may continue
            drift = np.abs(self.slope) * np.arange(1, self.n_steps + 1)[:, None, None]
            leeway = _LEEWAY + drift / self.baseline.width
            return score_loops(rows, followed, self.baseline, leeway=leeway)

    def _teacher_forced_state(self, params: Params) -> Array:
        """Return the state before each origin, reached by a teacher-forced run."""
        states: list[Array] = []
        at, row, state = -1, 0, np.empty(0)
        for i, t in self.origins:
            if i != at:
                initial = self.data.starts
                size = self.network.cell.state_size
                state = np.zeros((1, size)) if initial is None else initial[i][None]
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
            return np.stack([inputs[i][t + k, q:] for i, t in self.origins])

        first = np.stack([self._row(i, t) for i, t in self.origins]).astype(inputs[0].dtype)
        driven = exog if self.driven else None
        return run_loops(advance, first, state, self.n_steps, q, driven)

    def _row(self, i: int, t: int) -> Array:
        X = self.data.inputs[i]
        return X[t] if t < len(X) else np.asarray(self.data.targets[i][-1])

    def safest(
        self, start: Candidate, draw: Callable[[], Candidate], data: Data, table: StartTable
    ) -> Candidate:
        """Return the start with the most stable loops, of several candidates.

        These are the given start, which is returned if none of its loops diverges; further draws;
        and readouts with a stronger ridge penalty.
        """
        best, starts = (self._tried(start), start), [start]
        while best[0].n_lost and len(starts) <= _DRAWS:
            starts.append(draw())
            best = self._better(best, starts[-1])
        for tau in _TAUS:
            if not best[0].n_lost:
                break
            # with a trend the series itself leaves its range; a readout that prevents this is less
            # accurate and is rejected
            limit = _DEARER * best[0].error
            for one in starts:
                params = refit_readout(self.network, one.params, data, tau=tau)
                best = self._better(best, table.add_variant(one, params, tau), limit)
        return best[1]

    def _better(
        self, best: tuple[LoopScore, Candidate], start: Candidate, limit: float = np.inf
    ) -> tuple[LoopScore, Candidate]:
        score = self._tried(start)
        return (score, start) if score < best[0] and score.error <= limit else best

    def _tried(self, start: Candidate) -> LoopScore:
        score = self.score(start.params)
        start.row["lost_loops"] = score.n_lost
        return score

    def settle(self, done: Training, start: Params) -> None:
        """Return to the start if training has destabilised loops that were about as accurate."""
        if not done.best_epoch:
            return
        trained = self.score(done.params)
        if not trained.n_lost:
            return
        before = self.score(start)
        fewer = before.n_lost < trained.n_lost
        if fewer and before.error <= _DEARER * trained.error:
            done.params, done.best_epoch = start, 0


def _slope(targets: Sequence[Array]) -> Array:
    """Return the linear trend of the targets per step, which all sequences share, (n_outputs,)."""
    products, squares = np.zeros(targets[0].shape[1]), 0.0
    for Y in targets:
        t = np.arange(len(Y)) - (len(Y) - 1) / 2
        products, squares = products + t @ Y, squares + float(t @ t)
    return products / max(squares, 1.0)
