r"""Training by variable projection: L-BFGS on the recurrent weights, with the readout solved for.

For squared errors and an identity output, the best readout C for given recurrent weights w is a
ridge regression from the n rows of features H(w) to the targets Y, with a penalty m. What remains
to be minimised is a function of w only::

    E(w) = min over C, c of  1/n ||Y - H(w) C' - c||^2 + m/n ||C||^2

Its gradient is the partial derivative of the right-hand side with respect to w, taken at the
best C, since the derivative with respect to C is zero there (Golub and Pereyra 1973). L-BFGS on all
weights has to follow the valley of the best C in small steps; on E it can take long ones.

Let R = [x(t), h(t-1)] be the regressors of the recurrent layer, and D the gradients with respect to
its pre-activations. The variables of L-BFGS are u with ``dW = S^-1/2 u Q^-1/2``, where Q and S are
the second moments of R and D plus a multiple of the identity, so that all variables have about the
same scale.

The recurrent weights are not penalised, and the search would fit the noise of the data. A fifth of
the data is therefore held out: whole sequences, or segments of a few long ones. The weights with
the smallest error on these rows are kept, and then the readout is fitted to all rows, the held-out
ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from reservoir._typing import Array
from reservoir._validation import as_generator
from reservoir.readouts import GramAccumulator
from reservoir.training._data import Data
from reservoir.training._evaluation import Report, Training, data_loss, refit_readout
from reservoir.training._objective import check_no_dropout
from reservoir.training.bptt import Batch, Network, forward, through_readout
from reservoir.training.cells import Layer, Trace
from reservoir.training.cells.cell_parts import as_rows
from reservoir.training.codes import columns_of
from reservoir.training.least_squares._regression import choose_ridge
from reservoir.training.least_squares._task import blocks
from reservoir.training.losses import loss_and_slope
from reservoir.training.params import Params, flatten, unflatten

__all__ = ["train_variable_projection"]

_SEGMENTS = 10  # sequences at least: a few long ones are cut into so many segments
_EVERY = 5  # every fifth sequence or segment is held out
FEWEST_TARGETS = 25  # with fewer targets, no rows are held out
_LEAD = 0.1, 100  # rows before a segment that wash out its initial state: a share, and the maximum
_MEMORY = 20  # pairs of vectors that L-BFGS keeps
_PENALTY, _SLOPE_PENALTY = 0.03, 1.0  # multiples of the identity, in units of the mean moments
_RESTARTS = 4  # of L-BFGS, from the weights reached, with other variables and another ridge penalty
_AT_START, _CLEAR = 1, 0.9  # last iteration, and share of the error, that count as no gain
_DEARER = 1.5  # largest loss on all rows, relative to that of a start that was fitted to them
_UNSEEN = 2.5  # largest held-out loss, relative to that of a start that was fitted to these rows
_SHORTER = 0.1  # factor of the first step if no step could be taken


def train_variable_projection(
    network: Network,
    params: Params,
    data: Data,
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    validation: Data | None = None,
    hold_out: bool = True,
    n_iter_no_change: int = 20,
    tol: float = 1e-4,
    tau: float = 0.05,
    random_state: Any = None,
    report: Report | None = None,
) -> Training:
    """Train on all data at once by L-BFGS, with the readout solved for at every evaluation.

    Parameters
    ----------
    network : Network
        A network with squared errors as the loss and the output "identity".
    params : dict of arrays
        Initial weights. Not changed.
    data : Data
        The training sequences.
    max_iter : int, default=200
        Maximal number of iterations.
    batch_size : int, default=32
        Number of sequences that are run in parallel; it affects only memory.
    validation : Data, optional
        Validation data. If given, their loss determines the best weights and when to stop, nothing
        of `data` is held out, and the readout is not fitted to them.
    hold_out : bool, default=True
        Whether to hold out a fifth of `data` as validation data, if there are no others and at
        least 25 targets. The readout is fitted to all rows in the end. With or without this, fewer
        than ten sequences are cut into at least ten segments in total, each of which is preceded by
        up to 100 rows without targets; but not if only the last step has a target, if there are
        fewer than 25 targets, or if the cell is not causal.
    n_iter_no_change, tol, report
        As in `reservoir.training.trainer.train`.
    tau : float, default=0.05
        As in `reservoir.training.least_squares.ls_fit`.
    random_state : int, Generator or None
        Source of the random choice of held-out sequences, if there are more than 20, or one target
        per sequence; otherwise, every fifth is held out.

    Returns
    -------
    Training
        The losses are those of the rows that are not held out, with the readout solved for, also
        for the initial weights, which are epoch 0. The validation losses are those of the held-out
        rows, or of `validation`, in which case the first one is that of the given readout if it is
        smaller. Without `validation`, the weights are the initial ones unless the loss over all
        rows has fallen.

    Raises
    ------
    ValueError
        If the loss or the output of `network` is not supported, or if the cell has dropout.

    References
    ----------
    G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", SIAM Journal on Numerical Analysis 10, 1973.

    Examples
    --------
    >>> from reservoir.datasets import narma
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.starts import start
    >>> from reservoir.training.trainer import Data
    >>> from reservoir.training.variable_projection import train_variable_projection
    >>> X, y = narma(300, random_state=0)
    >>> network, data = Network(SimpleCell(20), 1, 1), Data([X], [y[:, None]])
    >>> params = start(network, data.inputs, data.targets, random_state=0).params
    >>> done = train_variable_projection(network, params, data, max_iter=30)
    >>> min(done.validation_losses) < 0.8 * done.validation_losses[0]
    True
    """
    if network.loss != "mse" or network.output != "identity":
        raise ValueError(
            "solver='variable_projection' needs loss='mse' and output='identity'; got "
            f"loss={network.loss!r}, output={network.output!r}. Use solver='lbfgs' or 'adam'."
        )
    check_no_dropout(network, "variable_projection")
    before = data_loss(network, params, data, batch_size)
    if max_iter == 0 or not np.isfinite(before):
        return Training(_copied(params), [before])
    # training and validation rows
    learned, held_out = _segments(network, data), validation
    if validation is None and hold_out:
        learned, held_out = _parted(learned, random_state)
    done = Training(params, [before])
    if validation is not None:
        done.validation_losses = [data_loss(network, params, validation, batch_size)]
    search = _Search(network, learned, held_out, batch_size, tau, tol, report)
    search.run(done, params, max_iter, n_iter_no_change)
    # the readout learns from the rows that were held out, too
    found = done.params
    if validation is None and held_out is not None and done.params is not params:
        found = refit_readout(network, found, data, batch_size=batch_size, tau=tau)
    # a run over a whole sequence may reach another attractor than runs over its segments
    if validation is None and not data_loss(network, found, data, batch_size) < before:
        found, done.best_epoch = params, 0
    done.params = _copied(found)
    return done


def train_from_data(
    network: Network,
    params: Params,
    data: Data,
    began: Callable[[Data], Params],
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    n_iter_no_change: int = 20,
    tol: float = 1e-4,
    random_state: Any = None,
    report: Report | None = None,
) -> Training:
    """Train from a start that was computed from data, if need be from one that did not see all.

    A start fitted to all rows has a small held-out error, too, which few iterations lower. If
    training ends there, it is repeated from `began(learned)`, fitted only to the rows to learn
    from. If that lowers the held-out error by a tenth, the readout is fitted to all rows, and a
    quarter as many iterations follow on all rows; the losses are those of the repetition.
    Otherwise, or if an error ends much larger than it began, the first result is returned.
    """
    generator = np.random.default_rng() if random_state is None else random_state
    same_split = deepcopy(generator)
    options: dict[str, Any] = {"batch_size": batch_size, "tol": tol, "report": report}
    options["n_iter_no_change"] = n_iter_no_change
    done = train_variable_projection(
        network, params, data, max_iter=max_iter, random_state=generator, **options
    )
    if done.best_epoch > _AT_START or max_iter < 2 or not done.validation_losses:
        return done
    learned, held_out = _parted(_segments(network, data), same_split)
    again = train_variable_projection(
        network, began(learned), learned, max_iter=max_iter, validation=held_out, **options
    )
    least, first = min(again.validation_losses), again.validation_losses[0]
    if not least < min(_CLEAR * first, _UNSEEN * min(done.validation_losses)):
        return done
    found = refit_readout(network, again.params, data, batch_size=batch_size)
    more = -(-again.best_epoch // 4)
    last = train_variable_projection(network, found, data, max_iter=more, hold_out=False, **options)
    # a start fits the rows that it saw a little better than it should, but not much
    losses = [data_loss(network, each, data, batch_size) for each in (params, last.params)]
    if not losses[1] < _DEARER * losses[0]:
        return done
    again.params = last.params
    return again


def trials(
    network: Network,
    data: Data,
    starts: Sequence[Callable[[Data], Params]],
    max_iter: int,
    random_state: Any = None,
) -> list[Training] | None:
    """Train from several starts on the same part of the data, and validate on the other part.

    Each start is a function of the data to learn from. None if there are too few targets.
    """
    learned, held_out = _parted(_segments(network, data), random_state)
    if held_out is None:
        return None
    options: dict[str, Any] = {"validation": held_out, "max_iter": max_iter}
    return [
        train_variable_projection(network, begin(learned), learned, **options) for begin in starts
    ]


def _copied(params: Params) -> Params:
    return {name: array.copy() for name, array in params.items()}


def _in_dtype(params: Params, dtype: Any) -> Params:
    return {name: array.astype(dtype) for name, array in params.items()}


# ---------------------------------------------------------------------- held-out rows


def _parted(data: Data, random_state: Any) -> tuple[Data, Data | None]:
    """Return the data to learn from, and the held-out data; None if there are too few targets."""
    held: Array = np.arange(len(data)) % _EVERY == _EVERY - 1
    if len(data) > 2 * _SEGMENTS or data.last:  # sequences, whose order is not that of time
        held = as_generator(random_state).permutation(held)
    parts = data.picked(np.flatnonzero(~held)), data.picked(np.flatnonzero(held))
    few = n_targets(data) < FEWEST_TARGETS or not held.any()
    few = few or min(map(n_targets, parts)) < FEWEST_TARGETS // _EVERY
    return (data, None) if few else parts


def n_targets(data: Data) -> int:
    """Return the number of targets with a positive weight."""
    if data.weights is not None:
        return sum(int(np.count_nonzero(np.asarray(weight) > 0)) for weight in data.weights)
    return len(data) if data.last else sum(len(X) for X in data.inputs)


def _segments(network: Network, data: Data) -> Data:
    """Cut a few sequences into segments that start from zeros, some rows before their targets.

    Weights that work only in one long run, from its first state, have a large error there.
    """
    if len(data) >= _SEGMENTS or data.last or not network.cell.causal:
        return data
    if n_targets(data) < FEWEST_TARGETS:
        return data
    n_cuts = -(-_SEGMENTS // len(data))
    inputs, targets, weights, initial_states = [], [], [], []
    for i, (X, Y) in enumerate(zip(data.inputs, data.targets, strict=True)):
        row = np.ones(len(X)) if data.weights is None else np.asarray(data.weights[i], float)
        counted = np.flatnonzero(row > 0)
        if not len(counted):
            continue
        lead = min(int(_LEAD[0] * len(X)), _LEAD[1])
        n_parts = min(n_cuts, len(counted))
        cuts = np.linspace(counted[0], len(X), n_parts + 1).round().astype(int)
        zeros = np.zeros((1, network.cell.state_size), network.cell.held_in(data.dtype))
        for first, stop in pairwise(cuts.tolist()):
            begin = max(0, first - lead)
            part = row[begin:stop].copy()
            part[: first - begin] = 0
            inputs.append(X[begin:stop])
            targets.append(Y[begin:stop])
            weights.append(part)
            given = data.starts if begin == 0 else None
            state = network.cell.before(X[begin][None], zeros)[0] if given is None else given[i]
            initial_states.append(state)
    if not inputs:
        return data
    return Data(inputs, targets, weights, np.stack(initial_states), dtype=data.dtype)


# ---------------------------------------------------------------------- the search


class _Point(NamedTuple):
    """Weights with the readout solved for, their loss, and the gradient of the objective."""

    vector: Array
    params: Params
    loss: float
    value: float
    gradient: Array


@dataclass(eq=False)
class _Search:
    """A search over the recurrent weights; weights are float64 while it runs."""

    network: Network
    data: Data
    validation: Data | None
    batch_size: int
    tau: float
    tol: float
    report: Report | None

    def __post_init__(self) -> None:
        self.batches = [self.data.batch(i) for i in self.data.by_length(self.batch_size)]
        self.weight = sum(batch.total_weight for batch, _ in self.batches)
        self.penalty = 0.0  # of the readout

    def run(self, done: Training, params: Params, max_iter: int, patience: int) -> None:
        """Add the iterations to a training, and keep the weights with the smallest `criterion`."""
        dtype = params["coef"].dtype
        now = {name: array.astype(np.float64) for name, array in params.items()}
        unchanged, shorter = 0, 1.0

        def after(point: _Point) -> bool:
            """Record an iterate; return whether to stop."""
            nonlocal now, unchanged
            now = point.params
            improved = self._record(done, point, dtype)
            unchanged = 0 if improved else unchanged + 1
            return unchanged >= patience or done.n_epochs >= max_iter

        for attempt in range(_RESTARTS):
            now, self.penalty = self._solved(now, self._runs(now), None)
            variables = self._variables(now)
            origin = self._point(variables, np.zeros(variables.size))
            if origin is None:
                break
            if attempt == 0:
                self._begin(done, origin, dtype)
            if not origin.value > 0 or not origin.gradient.any():
                break
            n_before = done.n_epochs
            self._minimise(variables, origin, shorter, max_iter - n_before, after)
            if unchanged >= patience or done.n_epochs >= max_iter:
                break
            shorter = 1.0 if done.n_epochs > n_before else _SHORTER * shorter

    def _begin(self, done: Training, origin: _Point, dtype: Any) -> None:
        """Record the initial weights as epoch 0; keep the solved readout if it is better."""
        given = done.losses[0]
        done.losses = [origin.loss]
        if self.validation is not None:
            given, solved = self._validation_loss(done.params), self._validation_loss(origin.params)
            # the given readout may have been fitted to rows that are held out here
            done.validation_losses = [min([*done.validation_losses, solved])]
        if done.criterion[0] < given:
            done.params = _in_dtype(origin.params, dtype)
        if self.report is not None:
            self.report(done)

    def _minimise(
        self,
        variables: _Variables,
        origin: _Point,
        shorter: float,
        max_iter: int,
        after: Callable[[_Point], bool],
    ) -> None:
        """Run L-BFGS from a point until it ends, or until `after` returns True for an iterate."""
        # The first L-BFGS step has length 1. In this unit it ends no further than where the linear
        # model of the objective, which is never negative, reaches 0.
        norm = float(np.linalg.norm(origin.gradient))
        unit = shorter * min(1.0, origin.value / norm)
        last: _Point = origin

        def objective(scaled: Array) -> tuple[float, Array]:
            nonlocal last
            point = self._point(variables, unit * scaled)
            if point is None:
                return np.inf, np.zeros(len(scaled))
            last = point
            return point.value / origin.value, point.gradient * (unit / origin.value)

        def callback(scaled: Array) -> None:
            at = unit * scaled
            point = last if np.array_equal(last.vector, at) else self._point(variables, at)
            if point is not None and after(point):
                raise StopIteration

        options = {
            "maxiter": max_iter,
            "maxfun": 2 * max_iter + 20,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxcor": _MEMORY,
        }
        start = np.zeros(variables.size)
        minimize(objective, start, (), "L-BFGS-B", True, callback=callback, options=options)

    def _record(self, done: Training, point: _Point, dtype: Any) -> bool:
        """Record an iterate; return whether its loss has fallen by more than `tol`."""
        least = min(done.criterion)
        done.losses.append(point.loss)
        if self.validation is not None:
            done.validation_losses.append(self._validation_loss(point.params))
        value = done.criterion[-1]
        if value < least:
            done.params = _in_dtype(point.params, dtype)
            done.best_epoch = done.n_epochs
        if self.report is not None:
            self.report(done)
        return value < least - self.tol * abs(least)

    def _validation_loss(self, params: Params) -> float:
        """Return the loss on the validation data; infinite if it overflows."""
        assert self.validation is not None
        with np.errstate(over="ignore", invalid="ignore"):
            loss = data_loss(self.network, params, self.validation, self.batch_size)
        return loss if np.isfinite(loss) else np.inf

    # ------------------------------------------------------------------ the objective

    def _point(self, variables: _Variables, vector: Array) -> _Point | None:
        """Return the weights at a vector of variables; None if states or loss overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            params = variables.weights(vector)
            runs = self._runs(params)
            if not all(np.isfinite(run.features).all() for run in runs):
                return None
            params, _ = self._solved(params, runs, self.penalty)
            loss, grads, _ = self._gradient(params, runs)
            gradient = variables.gradient(grads)
            squares = float(np.vdot(params["coef"], params["coef"]))
        value = loss + self.penalty * squares / (self.weight * self.network.n_outputs)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return None
        return _Point(vector.copy(), params, loss, value, gradient)

    def _runs(self, params: Params) -> list[_Run]:
        """Return the network's runs over all batches."""
        return [
            _Run(batch, *forward(self.network, params, batch, state)[:2])
            for batch, state in self.batches
        ]

    def _solved(
        self, params: Params, runs: list[_Run], penalty: float | None
    ) -> tuple[Params, float]:
        """Return the weights with the readout solved for, and its penalty (chosen if None)."""
        gram = GramAccumulator(runs[0].features.shape[1], self.network.n_outputs)
        for run in runs:
            if len(run.batch.targets):
                targets = run.batch.targets.astype(np.float64, copy=False)
                gram.update(run.features, targets, run.batch.weights)
        if penalty is None:
            coef, intercept, penalty = choose_ridge(gram, self.tau)
        else:
            solution = gram.solve(penalty)
            coef, intercept = solution.coef, solution.intercept
        return {**params, "coef": coef, "intercept": intercept}, penalty

    def _gradient(self, params: Params, runs: list[_Run]) -> tuple[float, Params, list[Array]]:
        """Return the loss, and its gradients by weights and, per run, by pre-activations."""
        loss, slopes = 0.0, []
        total = {name: np.zeros_like(array) for name, array in params.items()}
        for batch, trace, features in runs:
            share = batch.total_weight / self.weight
            d = np.zeros((len(features), self.network.n_outputs))
            if len(batch.targets):
                scores = features @ params["coef"].T + params["intercept"]
                part, d = loss_and_slope(scores, batch.targets, "identity", "mse", batch.weights)
                loss += share * part
            _, dH = through_readout(self.network, params, batch, features, share * d)
            slopes.append(trace.place_of_slopes(dH))
            grads, _, _ = self.network.cell.backward(params, trace, dH)
            for name, grad in grads.items():
                total[name] += grad
        return loss, total, slopes

    def _variables(self, params: Params) -> _Variables:
        """Return the variables of the search from these weights on."""
        names = [name for name in params if name not in ("coef", "intercept")]
        layer, network = self.network.cell.layer(), self.network
        if layer is None or layer.second_bias is not None:
            return _Variables(params, names)
        runs = self._runs(params)
        width, n_channels = network.cell.width, network.n_channels
        regressors = GramAccumulator(n_channels + width, 1)
        moments = 0.0
        for run, D in zip(runs, self._gradient(params, runs)[2], strict=True):
            ran = np.flatnonzero(np.arange(len(run.batch.inputs))[:, None] < run.batch.lengths)
            X, H = as_rows(network.cell.channels(run.batch.inputs)), as_rows(run.trace.states[:-1])
            for _, take in blocks(ran):
                rows = np.hstack([columns_of(X[take], n_channels), H[take, :width]])
                regressors.update(rows, np.zeros((len(rows), 1)), overwrite_h=True)
            slopes = as_rows(D)[ran].reshape(len(ran), -1, network.cell.n_units)
            moments = moments + np.einsum("tgi,tgj->gij", slopes, slopes)
        return _Scaled(params, names, layer, regressors, np.asarray(moments))


class _Run(NamedTuple):
    """A run over a batch."""

    batch: Batch
    trace: Trace
    features: Array


class _Variables:
    """Changes of the recurrent weights, as one vector."""

    def __init__(self, params: Params, names: list[str]) -> None:
        self.base, self.like = params, {name: params[name] for name in names}
        self.size = sum(array.size for array in self.like.values())

    def weights(self, vector: Array) -> Params:
        """Return the weights after a change."""
        parts = self._changes(unflatten(vector, self.like))
        moved = {name: np.ascontiguousarray(self.base[name] + parts[name]) for name in self.like}
        return {**self.base, **moved}

    def gradient(self, grads: Params) -> Array:
        """Return the gradient by the vector, given the gradient by the weights."""
        return flatten({name: self._slopes(grads)[name] for name in self.like})[0]

    def _changes(self, parts: Params) -> Params:
        return parts

    def _slopes(self, grads: Params) -> Params:
        return grads


class _Scaled(_Variables):
    """Changes in units of the second moments of regressors and, per gate, of slopes.

    `names` are the weights that vary. `regressors` sums over the inputs and states that the layer
    receives; `moments`, (n_gates, n_units, n_units), are the second moments of the gradients with
    respect to the pre-activations.
    """

    def __init__(
        self,
        params: Params,
        names: list[str],
        layer: Layer,
        regressors: GramAccumulator,
        moments: Array,
    ) -> None:
        super().__init__(params, names)
        self.layer, self.mean, self.n = layer, regressors.mean_h, moments.shape[-1]
        second = regressors.gram / regressors.weight
        scale = float(np.trace(second)) / len(second) or 1.0
        self.right = _inverse_root(second + _PENALTY * scale * np.eye(len(second)))
        self.left = []
        for gate in moments:
            scaled = gate / (float(np.trace(gate)) / self.n or 1.0)
            self.left.append(_inverse_root(scaled + _SLOPE_PENALTY * np.eye(self.n)))

    def _changes(self, parts: Params) -> Params:
        W_in, W, bias = self.layer.inputs, self.layer.recurrent, self.layer.bias
        p = parts[W_in].shape[1]
        change = self._per_gate(np.hstack([parts[W_in], parts[W]])) @ self.right
        shift = self._per_gate(parts[bias][:, None])[:, 0] - change @ self.mean
        return {**parts, W_in: change[:, :p], W: change[:, p:], bias: shift}

    def _slopes(self, grads: Params) -> Params:
        W_in, W, bias = self.layer.inputs, self.layer.recurrent, self.layer.bias
        p = grads[W_in].shape[1]
        centred = np.hstack([grads[W_in], grads[W]]) - np.outer(grads[bias], self.mean)
        both = self._per_gate(centred) @ self.right
        shift = self._per_gate(grads[bias][:, None])[:, 0]
        return {**grads, W_in: both[:, :p], W: both[:, p:], bias: shift}

    def _per_gate(self, rows: Array) -> Array:
        return np.vstack([A @ rows[k * self.n : (k + 1) * self.n] for k, A in enumerate(self.left)])


def _inverse_root(matrix: Array) -> Array:
    """Return the symmetric inverse square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.sqrt(values)) @ vectors.T
